/* The kernels of exactk/sources/kernels.py in C: sums over the stored entries of a sparse table.
 *
 * Built as a plain shared library without Python or NumPy headers and called through ctypes on
 * arrays that SciPy and NumPy own. Entries are read as they are stored, whatever their type, and
 * summed in double. No state: threads call it side by side on parts of their own.
 */
#include <stdint.h>

#include "native.h"

/* Entries of a block of rows that is read several times: few enough to stay in the cache. */
#define ROWS_BLOCK (1 << 20)
#define PAIRS_BLOCK (1 << 18)
/* Numbers that spread_rows and spread_columns have for each column. */
#define SUMS 5
/* Looking for one column in a row takes as long as reading so many entries. */
#define SEARCH_ENTRIES 512
/* Right-hand sides summed side by side for a table stored by columns. */
#define LANES 8

EXPORT int64_t exactk_entries_version(void) { return 1; }

/* For the types I of an index:
 *
 * block_end: where a block of lines from `start` on ends that has at most so many entries.
 *
 * find: the first of the entries from..to whose index is `wanted` or more; indices ascend.
 */
#define SEARCHES(I, NAME)                                                                         \
    static ALWAYS_INLINE int64_t block_end_##NAME(const I *ends, int64_t start, int64_t stop,     \
                                                  int64_t most) {                                 \
        int64_t end = start + 1;                                                                  \
        while (end < stop && (int64_t)(ends[end + 1] - ends[start]) <= most) end++;               \
        return end;                                                                               \
    }                                                                                             \
                                                                                                  \
    static ALWAYS_INLINE int64_t find_##NAME(const I *index, int64_t from, int64_t to,            \
                                             int64_t wanted) {                                    \
        while (from < to) {                                                                       \
            const int64_t middle = from + (to - from) / 2;                                        \
            if ((int64_t)index[middle] < wanted)                                                  \
                from = middle + 1;                                                                \
            else                                                                                  \
                to = middle;                                                                      \
        }                                                                                         \
        return from;                                                                              \
    }

SEARCHES(int32_t, i4)
SEARCHES(int64_t, i8)

/* For every type T of an entry and I of an index:
 *
 * add_rows: out[q][j] += sum of right[q][i] * X[i][j] over the rows start..stop of a table stored
 * by rows. Rows of `right` are n apart, those of `out` d. Where right is zero nothing is read.
 *
 * spread_rows: sums about a centre over the rows start..stop of a table stored by rows. `sums`
 * holds SUMS numbers for each column: the centre, the sums of weight, weight * residual and
 * weight * residual^2 over its entries, and how many of these have a weight.
 *
 * pick_rows: out[q][i] = X[i][wanted[q]] for the rows start..stop of a table stored by rows.
 * `wanted` ascends, `place` tells for each column where it stands in it, -1 for those not wanted;
 * out is zero before and its rows are n apart.
 *
 * keep_rows: the entries of the wanted columns of the rows start..stop of a table stored by rows,
 * written from new_ends[i] on for row i, with the places of their columns; without `new_index` they
 * are counted into `new_ends`.
 *
 * pair_rows: out[p + q][j] += sum of factor * X[i][j] over the rows i listed for q, for j from
 * p + q on, for the lists start..stop; X is stored by rows and has n of them. The entries of
 * `listed` and `factor` for q are next[q]..list_ends[q + 1]; next is used up. Rows of `out` are d
 * apart.
 *
 * dot_columns: out[q][j] = sum of right[i][q] * X[i][j] over all rows, for the columns start..stop
 * of a table stored by columns. Rows of `right` are m apart, those of `out` d.
 *
 * spread_columns: as spread_rows, for the columns start..stop of a table stored by columns.
 */
#define KERNELS(T, I, TYPE, INDEX)                                                                \
    EXPORT CLONES void exactk_add_rows_##TYPE##_##INDEX(                                          \
        const I *ends, const I *index, const T *value, int64_t start, int64_t stop,               \
        const double *right, int64_t n, double *out, int64_t d, int64_t m) {                      \
        for (int64_t end; start < stop; start = end) {                                            \
            end = block_end_##INDEX(ends, start, stop, ROWS_BLOCK);                               \
            for (int64_t q = 0; q < m; q++) {                                                     \
                double *to = out + q * d;                                                         \
                for (int64_t i = start; i < end; i++) {                                           \
                    const double factor = right[q * n + i];                                       \
                    if (factor == 0.0) continue;                                                  \
                    for (int64_t e = ends[i]; e < (int64_t)ends[i + 1]; e++)                      \
                        to[index[e]] += factor * (double)value[e];                                \
                }                                                                                 \
            }                                                                                     \
        }                                                                                         \
    }                                                                                             \
                                                                                                  \
    EXPORT CLONES void exactk_spread_rows_##TYPE##_##INDEX(                                       \
        const I *ends, const I *index, const T *value, int64_t start, int64_t stop,               \
        const double *weight, double *sums) {                                                     \
        for (int64_t i = start; i < stop; i++) {                                                  \
            const double w = weight[i];                                                           \
            if (w == 0.0) continue;                                                               \
            for (int64_t e = ends[i]; e < (int64_t)ends[i + 1]; e++) {                            \
                double *of = sums + SUMS * (int64_t)index[e];                                     \
                const double residual = (double)value[e] - of[0];                                 \
                of[1] += w;                                                                       \
                of[2] += w * residual;                                                            \
                of[3] += w * residual * residual;                                                 \
                of[4] += 1.0;                                                                     \
            }                                                                                     \
        }                                                                                         \
    }                                                                                             \
                                                                                                  \
    EXPORT CLONES void exactk_pick_rows_##TYPE##_##INDEX(                                         \
        const I *ends, const I *index, const T *value, int64_t start, int64_t stop,               \
        const int64_t *wanted, int64_t m, const int32_t *place, double *out, int64_t n) {         \
        for (int64_t i = start; i < stop; i++) {                                                  \
            int64_t e = ends[i];                                                                  \
            const int64_t end = ends[i + 1];                                                      \
            if (SEARCH_ENTRIES * m >= end - e) {                                                  \
                for (; e < end; e++)                                                              \
                    if (place[index[e]] >= 0) out[place[index[e]] * n + i] = (double)value[e];    \
                continue;                                                                         \
            }                                                                                     \
            for (int64_t q = 0; q < m; q++) {                                                     \
                e = find_##INDEX(index, e, end, wanted[q]);                                       \
                if (e == end) break;                                                              \
                if ((int64_t)index[e] == wanted[q]) out[q * n + i] = (double)value[e];            \
            }                                                                                     \
        }                                                                                         \
    }                                                                                             \
                                                                                                  \
    EXPORT CLONES void exactk_keep_rows_##TYPE##_##INDEX(                                         \
        const I *ends, const I *index, const T *value, int64_t start, int64_t stop,               \
        const int32_t *place, int64_t *new_ends, I *new_index, T *new_value) {                    \
        for (int64_t i = start; i < stop; i++) {                                                  \
            const int64_t end = ends[i + 1];                                                      \
            if (new_index) {                                                                      \
                int64_t to = new_ends[i];                                                         \
                for (int64_t e = ends[i]; e < end; e++)                                           \
                    if (place[index[e]] >= 0)                                                     \
                        new_index[to] = place[index[e]], new_value[to++] = value[e];              \
            } else {                                                                              \
                int64_t count = 0;                                                                \
                for (int64_t e = ends[i]; e < end; e++) count += place[index[e]] >= 0;            \
                new_ends[i] = count;                                                              \
            }                                                                                     \
        }                                                                                         \
    }                                                                                             \
                                                                                                  \
    EXPORT CLONES void exactk_pair_rows_##TYPE##_##INDEX(                                         \
        const I *ends, const I *index, const T *value, int64_t start, int64_t stop, int64_t n,    \
        const int64_t *list_ends, const int64_t *listed, const double *factor, int64_t *next,     \
        int64_t p, double *out, int64_t d) {                                                      \
        for (int64_t row = 0; row < n;) {                                                         \
            row = block_end_##INDEX(ends, row, n, PAIRS_BLOCK);                                   \
            for (int64_t q = start; q < stop; q++) {                                              \
                double *to = out + (p + q) * d;                                                   \
                for (; next[q] < list_ends[q + 1] && listed[next[q]] < row; next[q]++) {          \
                    const int64_t i = listed[next[q]], end = ends[i + 1];                         \
                    const double w = factor[next[q]];                                             \
                    for (int64_t e = find_##INDEX(index, ends[i], end, p + q); e < end; e++)      \
                        to[index[e]] += w * (double)value[e];                                     \
                }                                                                                 \
            }                                                                                     \
        }                                                                                         \
    }                                                                                             \
                                                                                                  \
    EXPORT CLONES void exactk_dot_columns_##TYPE##_##INDEX(                                       \
        const I *ends, const I *index, const T *value, int64_t start, int64_t stop,               \
        const double *right, int64_t m, double *out, int64_t d) {                                 \
        for (int64_t j = start; j < stop; j++) {                                                  \
            const int64_t from = ends[j], to = ends[j + 1];                                       \
            int64_t q = 0;                                                                        \
            for (; q + LANES <= m; q += LANES) {                                                  \
                double sum[LANES] = {0};                                                          \
                for (int64_t e = from; e < to; e++)                                               \
                    for (int l = 0; l < LANES; l++)                                               \
                        sum[l] += right[(int64_t)index[e] * m + q + l] * (double)value[e];        \
                for (int l = 0; l < LANES; l++) out[(q + l) * d + j] = sum[l];                    \
            }                                                                                     \
            for (; q < m; q++) {                                                                  \
                double sum = 0.0;                                                                 \
                for (int64_t e = from; e < to; e++)                                               \
                    sum += right[(int64_t)index[e] * m + q] * (double)value[e];                   \
                out[q * d + j] = sum;                                                             \
            }                                                                                     \
        }                                                                                         \
    }                                                                                             \
                                                                                                  \
    EXPORT CLONES void exactk_spread_columns_##TYPE##_##INDEX(                                    \
        const I *ends, const I *index, const T *value, int64_t start, int64_t stop,               \
        const double *weight, double *sums) {                                                     \
        for (int64_t j = start; j < stop; j++) {                                                  \
            double *of = sums + SUMS * j, present = 0.0, shift = 0.0, square = 0.0, count = 0.0;  \
            const double centre = of[0];                                                          \
            for (int64_t e = ends[j]; e < (int64_t)ends[j + 1]; e++) {                            \
                const double w = weight[index[e]];                                                \
                const double residual = (double)value[e] - centre;                                \
                present += w;                                                                     \
                shift += w * residual;                                                            \
                square += w * residual * residual;                                                \
                count += w != 0.0;                                                                \
            }                                                                                     \
            of[1] = present, of[2] = shift, of[3] = square, of[4] = count;                        \
        }                                                                                         \
    }

#define BOTH(T, TYPE) KERNELS(T, int32_t, TYPE, i4) KERNELS(T, int64_t, TYPE, i8)

BOTH(float, f4)
BOTH(double, f8)
BOTH(int8_t, i1)
BOTH(int16_t, i2)
BOTH(int32_t, i4)
BOTH(int64_t, i8)
BOTH(uint8_t, u1)
BOTH(uint16_t, u2)
BOTH(uint32_t, u4)
BOTH(uint64_t, u8)
