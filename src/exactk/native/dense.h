/* Small dense kernels of the proof's tree. Matrices are square, row-major, with a stride of their
   own; factors are upper triangles, A = RᵀR. Loops run along rows, so that they vectorise. */
#ifndef EXACTK_DENSE_H
#define EXACTK_DENSE_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "native.h"

enum { LANES = 8 };

static ALWAYS_INLINE double dot(const double *x, const double *y, int64_t n) {
    double part[8] = {0, 0, 0, 0, 0, 0, 0, 0}, sum = 0;
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (int64_t l = 0; l < 8; l++) part[l] += x[i + l] * y[i + l];
    for (; i < n; i++) sum += x[i] * y[i];
    for (int64_t l = 0; l < 8; l++) sum += part[l];
    return sum;
}

static ALWAYS_INLINE void add_scaled(double *restrict out, double by, const double *restrict x,
                                     int64_t n) {
    for (int64_t i = 0; i < n; i++) out[i] += by * x[i];
}

/* Factor the upper half of A in place, A = RᵀR; 0 where a pivot is not above its floor.
   `extra` right-hand sides behind each row become R⁻ᵀ times them on the way. */
CLONES static int cholesky(double *A, int64_t n, int64_t extra, int64_t stride, double floor) {
    for (int64_t i = 0; i < n; i++) {
        double *row = A + i * stride;
        if (!(row[i] > floor)) return 0;
        double root = sqrt(row[i]), inverse = 1.0 / root;
        row[i] = root;
        for (int64_t j = i + 1; j < n + extra; j++) row[j] *= inverse;
        for (int64_t j = i + 1; j < n; j++)
            add_scaled(A + j * stride + j, -row[j], row + j, n + extra - j);
    }
    return 1;
}

/* Solve R X = Y, where Y stands behind the rows of R; X has n rows of `extra` numbers, which
   is 1 or a multiple of LANES. */
CLONES static void back_substitute(const double *R, int64_t n, int64_t extra, int64_t stride,
                                   double *X) {
    for (int64_t i = n - 1; i >= 0; i--) {
        const double *row = R + i * stride;
        double *out = X + i * extra, inverse = 1.0 / row[i];
        if (extra == 1) {
            out[0] = (row[n] - dot(row + i + 1, X + i + 1, n - i - 1)) * inverse;
            continue;
        }
        for (int64_t block = 0; block < extra; block += LANES) {
            double even[LANES] = {0}, odd[LANES] = {0};
            const double *x = X + block;
            int64_t j = i + 1;
            for (; j + 2 <= n; j += 2)
                for (int64_t l = 0; l < LANES; l++) {
                    even[l] += row[j] * x[j * extra + l];
                    odd[l] += row[j + 1] * x[(j + 1) * extra + l];
                }
            if (j < n)
                for (int64_t l = 0; l < LANES; l++) even[l] += row[j] * x[j * extra + l];
            for (int64_t l = 0; l < LANES; l++)
                out[block + l] = (row[n + block + l] - even[l] - odd[l]) * inverse;
        }
    }
}

/* T = R⁻¹, an upper triangle too: each row from those below it. */
CLONES static void invert_triangle(const double *R, int64_t n, int64_t stride, double *T) {
    for (int64_t i = n - 1; i >= 0; i--) {
        const double *row = R + i * stride;
        double *t = T + i * stride, inverse = 1.0 / row[i];
        memset(t + i, 0, (size_t)(n - i) * sizeof(double));
        for (int64_t j = i + 1; j < n; j++)
            add_scaled(t + j, -row[j] * inverse, T + j * stride + j, n - j);
        t[i] = inverse;
    }
}

/* The upper half of the inverse of RᵀR into P; T is work space of the same shape. */
CLONES static void invert_factored(const double *R, int64_t n, int64_t stride, double *T,
                                   double *P) {
    invert_triangle(R, n, stride, T);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = i; j < n; j++)
            P[i * stride + j] = dot(T + i * stride + j, T + j * stride + j, n - j);
}

/* The m-th largest of n values (m from 1), which are reordered: those above come first. */
static double select_largest(double *x, int64_t n, int64_t m) {
    int64_t low = 0, high = n - 1, at = m - 1;
    while (low < high) {
        double pivot = x[(low + high) / 2];
        int64_t i = low, j = high;
        while (i <= j) {
            while (x[i] > pivot) i++;
            while (x[j] < pivot) j--;
            if (i <= j) {
                double other = x[i];
                x[i++] = x[j];
                x[j--] = other;
            }
        }
        if (at <= j) high = j;
        else if (at >= i) low = i;
        else break;
    }
    return x[at];
}

#endif
