/* Small dense kernels of the fits: products that stay in registers, factors, and pieces of memory. */
#ifndef EXACTK_SMALL_H
#define EXACTK_SMALL_H

#include <math.h>
#include <stdint.h>

#include "native.h"

typedef double v4 __attribute__((vector_size(32), aligned(8), may_alias));

static ALWAYS_INLINE double sum4(v4 x) { return (x[0] + x[1]) + (x[2] + x[3]); }

/* out[i][j] += A_i . B_j over `length` numbers, a multiple of 4, for I x J rows. */
static ALWAYS_INLINE void block_products(const int I, const int J, const double *const *A,
                                         const double *const *B, int64_t length, double *out,
                                         int64_t stride) {
    v4 part[4][3];
    for (int i = 0; i < I; i++)
        for (int j = 0; j < J; j++) part[i][j] = (v4){0, 0, 0, 0};
    for (int64_t t = 0; t < length; t += 4) {
        v4 b[3];
        for (int j = 0; j < J; j++) b[j] = *(const v4 *)(B[j] + t);
        for (int i = 0; i < I; i++) {
            const v4 a = *(const v4 *)(A[i] + t);
            for (int j = 0; j < J; j++) part[i][j] += a * b[j];
        }
    }
    for (int i = 0; i < I; i++)
        for (int j = 0; j < J; j++) out[i * stride + j] += sum4(part[i][j]);
}

/* The same for any number of rows. */
static ALWAYS_INLINE void all_products(const double *const *A, int64_t a, const double *const *B,
                                       int64_t b, int64_t length, double *out, int64_t stride) {
    int64_t i = 0;
    for (; i + 4 <= a; i += 4) {
        int64_t j = 0;
        double *o = out + i * stride;
        for (; j + 3 <= b; j += 3) block_products(4, 3, A + i, B + j, length, o + j, stride);
        for (; j < b; j++) block_products(4, 1, A + i, B + j, length, o + j, stride);
    }
    for (; i < a; i++) {
        int64_t j = 0;
        double *o = out + i * stride;
        for (; j + 3 <= b; j += 3) block_products(1, 3, A + i, B + j, length, o + j, stride);
        for (; j < b; j++) block_products(1, 1, A + i, B + j, length, o + j, stride);
    }
}

static ALWAYS_INLINE double dot_of(const double *x, const double *y, int64_t n) {
    v4 part = {0, 0, 0, 0}, more = {0, 0, 0, 0};
    double rest = 0;
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) {
        part += *(const v4 *)(x + i) * *(const v4 *)(y + i);
        more += *(const v4 *)(x + i + 4) * *(const v4 *)(y + i + 4);
    }
    for (; i < n; i++) rest += x[i] * y[i];
    return sum4(part + more) + rest;
}

/* Lower factor of a symmetric matrix in place, rows of `stride` numbers, four columns at once; 0
   where it is not positive. */
static ALWAYS_INLINE int factor(double *A, int64_t n, int64_t stride) {
    for (int64_t start = 0; start < n; start += 4) {
        const int64_t stop = start + 4 < n ? start + 4 : n, wide = stop - start;
        const double *top[4];
        for (int64_t j = 0; j < wide; j++) top[j] = A + (start + j) * stride;
        for (int64_t i = start; i < n; i++) {
            double *row = A + i * stride;
            if (start > 0) {
                double less[4] = {0, 0, 0, 0};
                const double *one[1] = {row};
                int64_t j = 0;
                for (; j + 2 <= wide; j += 2) block_products(1, 2, one, top + j, start, less + j, 4);
                for (; j < wide; j++) block_products(1, 1, one, top + j, start, less + j, 4);
                for (j = 0; j < wide && start + j <= i; j++) row[start + j] -= less[j];
            }
            for (int64_t j = start; j < stop && j <= i; j++) {
                double rest = row[j];
                const double *other = A + j * stride;
                for (int64_t l = start; l < j; l++) rest -= row[l] * other[l];
                if (j < i) {
                    row[j] = rest / other[j];
                } else {
                    if (!(rest > 0)) return 0;
                    row[j] = sqrt(rest);
                }
            }
        }
    }
    return 1;
}

/* Solve L Lt x = b in place. */
static ALWAYS_INLINE void substitute(const double *L, int64_t n, int64_t stride, double *x) {
    for (int64_t i = 0; i < n; i++)
        x[i] = (x[i] - dot_of(L + i * stride, x, i)) / L[i * stride + i];
    for (int64_t i = n - 1; i >= 0; i--) {
        const double *row = L + i * stride;
        const double value = x[i] /= row[i];
        for (int64_t j = 0; j < i; j++) x[j] -= value * row[j];
    }
}

/* The memory of a call is one piece, which is cut up. */

typedef struct {
    double *next;
    int64_t need;
} Piece;

/* The next so many numbers; before there is memory, only counted. */
static double *cut(Piece *piece, int64_t count) {
    double *here = piece->next;
    piece->need += count;
    if (here) piece->next += count;
    return here;
}

#endif
