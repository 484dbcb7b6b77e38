/* The kernels of exactk/filters/distances.py in C: city-block distances between rows, their
 * nearest of each class, and weighted sums of the differences of pairs of rows.
 *
 * Built as a plain shared library without Python or NumPy headers and called through ctypes on
 * arrays that NumPy owns. No state: threads call it side by side on parts of their own.
 */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "native.h"

/* Rows of the second factor are handled LANES at a time, side by side in `packed`, ROWS rows of the
 * first against all of them: the sums stay in registers for a whole strip of columns. */
#define LANES 8
#define ROWS 4
#define VL 4
/* Columns of a strip: LANES * STRIP numbers of `packed` fit the first cache. */
#define STRIP 256
/* Columns summed at once over all pairs. */
#define WIDTH 32

#if defined(__GNUC__)
/* Left to itself the compiler gathers lanes from several columns, at a third of the speed. */
typedef double Vector __attribute__((vector_size(8 * VL), aligned(8), may_alias));
typedef int64_t Bits __attribute__((vector_size(8 * VL)));
#define VECTORS (LANES / VL)

static ALWAYS_INLINE void sums_of_strip(const double *const *row, const double *packed,
                                        int64_t strip, double (*sum)[LANES]) {
    const Bits positive = (Bits){0} + INT64_MAX;
    Vector total[ROWS][VECTORS];
    for (int r = 0; r < ROWS; r++)
        for (int v = 0; v < VECTORS; v++) total[r][v] = (Vector){0};
    for (int64_t k = 0; k < strip; k++) {
        const Vector *p = (const Vector *)(packed + k * LANES);
        for (int r = 0; r < ROWS; r++)
            for (int v = 0; v < VECTORS; v++)
                total[r][v] += (Vector)((Bits)(row[r][k] - p[v]) & positive);
    }
    memcpy(sum, total, sizeof total);
}

static ALWAYS_INLINE void sums_of_pairs(const double *rows, const int32_t *first,
                                        const int32_t *second, const double *weight,
                                        int64_t n_pairs, double *sum) {
    const Bits positive = (Bits){0} + INT64_MAX;
    Vector total[WIDTH / VL];
    for (int v = 0; v < WIDTH / VL; v++) total[v] = (Vector){0};
    for (int64_t p = 0; p < n_pairs; p++) {
        const Vector *a = (const Vector *)(rows + (int64_t)first[p] * WIDTH);
        const Vector *b = (const Vector *)(rows + (int64_t)second[p] * WIDTH);
        for (int v = 0; v < WIDTH / VL; v++)
            total[v] += weight[p] * (Vector)((Bits)(a[v] - b[v]) & positive);
    }
    memcpy(sum, total, sizeof total);
}
#else
static void sums_of_strip(const double *const *row, const double *packed, int64_t strip,
                          double (*sum)[LANES]) {
    memset(sum, 0, ROWS * LANES * sizeof(double));
    for (int64_t k = 0; k < strip; k++)
        for (int r = 0; r < ROWS; r++)
            for (int l = 0; l < LANES; l++) sum[r][l] += fabs(row[r][k] - packed[k * LANES + l]);
}

static void sums_of_pairs(const double *rows, const int32_t *first, const int32_t *second,
                          const double *weight, int64_t n_pairs, double *sum) {
    memset(sum, 0, WIDTH * sizeof(double));
    for (int64_t p = 0; p < n_pairs; p++) {
        const double *a = rows + (int64_t)first[p] * WIDTH;
        const double *b = rows + (int64_t)second[p] * WIDTH;
        for (int k = 0; k < WIDTH; k++) sum[k] += weight[p] * fabs(a[k] - b[k]);
    }
}
#endif

EXPORT int64_t exactk_rows_version(void) { return 2; }

/* out[i][j] = sum over the columns of |left[i] - right[j]| for the n_left x n_right pairs of rows;
 * rows of out are `stride` apart. */
EXPORT CLONES void exactk_city_block(const double *left, int64_t n_left, const double *right,
                                     int64_t n_right, int64_t d, double *out, int64_t stride) {
    double packed[STRIP * LANES];
    for (int64_t j0 = 0; j0 < n_right; j0 += LANES) {
        const int64_t lanes = n_right - j0 < LANES ? n_right - j0 : LANES;
        for (int64_t k0 = 0; k0 < d; k0 += STRIP) {
            const int64_t strip = d - k0 < STRIP ? d - k0 : STRIP;
            /* Lanes without a row repeat the last one; what they sum is not written. */
            for (int64_t l = 0; l < LANES; l++) {
                const double *row = right + (j0 + (l < lanes ? l : lanes - 1)) * d + k0;
                for (int64_t k = 0; k < strip; k++) packed[k * LANES + l] = row[k];
            }
            for (int64_t i0 = 0; i0 < n_left; i0 += ROWS) {
                const double *row[ROWS];
                for (int r = 0; r < ROWS; r++) {
                    const int64_t i = i0 + r < n_left ? i0 + r : n_left - 1;
                    row[r] = left + i * d + k0;
                }
                double sum[ROWS][LANES];
                sums_of_strip(row, packed, strip, sum);
                for (int r = 0; r < ROWS && i0 + r < n_left; r++) {
                    double *to = out + (i0 + r) * stride + j0;
                    if (k0 == 0)
                        for (int64_t l = 0; l < lanes; l++) to[l] = sum[r][l];
                    else
                        for (int64_t l = 0; l < lanes; l++) to[l] += sum[r][l];
                }
            }
        }
    }
}

/* out[k] = sum over pairs p of weight[p] * |X[first[p]][k] - X[second[p]][k]| for the columns k in
 * start..stop. `work` has room for n * WIDTH numbers: a strip of columns with its rows close
 * together, for rows a power of two apart would share few lines of the cache. Pairs are best
 * sorted by `first`. */
EXPORT CLONES void exactk_pair_sums(const double *X, int64_t n, int64_t d, int64_t start,
                                    int64_t stop, const int32_t *first, const int32_t *second,
                                    const double *weight, int64_t n_pairs, double *work,
                                    double *out) {
    for (int64_t k0 = start; k0 < stop; k0 += WIDTH) {
        const int64_t width = stop - k0 < WIDTH ? stop - k0 : WIDTH;
        for (int64_t i = 0; i < n; i++) {
            memcpy(work + i * WIDTH, X + i * d + k0, (size_t)width * sizeof(double));
            for (int64_t k = width; k < WIDTH; k++) work[i * WIDTH + k] = 0.0;
        }
        double sum[WIDTH];
        sums_of_pairs(work, first, second, weight, n_pairs, sum);
        memcpy(out + k0, sum, (size_t)width * sizeof(double));
    }
}

/* The share of each row j among the `most` nearest of its class to row i, for the rows i in
 * start..stop: out[i][j] = factor[class of i][class of j] / number of them, for rows within the last
 * of them; rows as far as the last, up to `same`, divide what is left of it. Row i itself, at
 * self[i], is nobody's neighbour. `work` has room for n_classes * (most + 3) numbers. */
EXPORT void exactk_shares(const double *D, int64_t n, int64_t start, int64_t stop,
                          const int64_t *codes, const int64_t *self, int64_t n_classes,
                          int64_t most, double same, const double *factor, double *work,
                          double *out) {
    double *edge = work, *inside = work + n_classes, *level = work + 2 * n_classes;
    double *best = work + 3 * n_classes; /* the nearest so far, by class, in rising order */
    for (int64_t i = start; i < stop; i++) {
        const double *away = D + i * n;
        for (int64_t c = 0; c < n_classes; c++) inside[c] = level[c] = 0.0;
        for (int64_t j = 0; j < n; j++) {
            if (j == self[i]) continue;
            const int64_t c = codes[j];
            double *list = best + c * most;
            int64_t place = (int64_t)inside[c]; /* how many there are, for now */
            if (place == most) {
                if (away[j] >= list[most - 1]) continue;
                place--;
            } else {
                inside[c] += 1.0;
            }
            for (; place > 0 && list[place - 1] > away[j]; place--) list[place] = list[place - 1];
            list[place] = away[j];
        }
        for (int64_t c = 0; c < n_classes; c++) {
            const int64_t found = (int64_t)inside[c];
            edge[c] = found ? best[c * most + found - 1] : -1.0;
            level[c] = inside[c];
            inside[c] = 0.0;
        }
        /* level: how many there should be; from here on out holds 1 within and 2 at the edge. */
        double *to = out + i * n;
        const double *by = factor + codes[self[i]] * n_classes;
        for (int64_t j = 0; j < n; j++) {
            const int64_t c = codes[j];
            const int near = away[j] < edge[c] * (1.0 - same);
            const int at = !near && away[j] <= edge[c] * (1.0 + same);
            to[j] = j == self[i] ? 0.0 : near + 2.0 * at;
            inside[c] += to[j] == 1.0;
        }
        for (int64_t c = 0; c < n_classes; c++) best[c] = 0.0;
        for (int64_t j = 0; j < n; j++) best[codes[j]] += to[j] == 2.0;
        for (int64_t c = 0; c < n_classes; c++) {
            const double whole = level[c] > 0.0 ? by[c] / level[c] : 0.0;
            level[c] = best[c] > 0.0 ? whole * (level[c] - inside[c]) / best[c] : 0.0;
            inside[c] = whole;
        }
        for (int64_t j = 0; j < n; j++) {
            const int64_t c = codes[j];
            to[j] = to[j] == 0.0 ? 0.0 : to[j] == 1.0 ? inside[c] : level[c];
        }
    }
}
