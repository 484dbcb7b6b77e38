/* Multinomial logistic regression on a few columns: values, gradients, Hessians.
 *
 * Rows are read in tiles, along which all loops vectorise. Coefficients come in the coordinates of
 * `contrasts` (r, one fewer than classes), row by row: members, then the intercept. Gradients are
 * half of those of the deviance, downhill; Hessians are halves, too.
 */
#ifndef EXACTK_SOFTMAX_H
#define EXACTK_SOFTMAX_H

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "native.h"
#include "small.h"

#if defined(FLT_EVAL_METHOD) && FLT_EVAL_METHOD != 0
#error "exp_below needs numbers that are rounded to doubles: NumPy does the work"
#endif

/* Rows of a tile, at most and at least. */
enum { TILE = 256, LEAST_TILE = 64 };
/* Bytes of products that a tile may make, as far as it goes: they should stay in the second cache. */
enum { TILE_BYTES = 1 << 18 };
/* What the functions return. */
enum { DONE, SETTLED, NO_MEMORY = -1, NO_COLUMN = -2 };

/* The layout is known to `exactk.losses.softmax_native`, as is that of `Ends`. */
typedef struct {
    int64_t n, width, classes, k;
    const double *X;        /* the table: `width` columns of n numbers */
    const int64_t *members; /* k of them */
    const int64_t *codes;   /* class of each row */
    const double *w;        /* weight of each row */
    const double *basis;    /* classes x r */
    double penalty;
} Softmax;

/* Whether one of these is no column of the table. */
static int outside(const Softmax *s, const int64_t *columns, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        if (columns[i] < 0 || columns[i] >= s->width) return 1;
    return 0;
}

/* exp(x) for x <= 0, below -700 that of -700: a polynomial that vectorises, right to rounding. */
static ALWAYS_INLINE double exp_below(double x) {
    const double shift = 6755399441055744.0;
    x = x < -700.0 ? -700.0 : x;
    const double t = x * 1.4426950408889634074 + shift, whole = t - shift;
    const double y = (x - whole * 6.93147180369123816490e-01) - whole * 1.90821492927058770002e-10;
    double p = 1.0 / 6227020800.0;
    p = p * y + 1.0 / 479001600.0;
    p = p * y + 1.0 / 39916800.0;
    p = p * y + 1.0 / 3628800.0;
    p = p * y + 1.0 / 362880.0;
    p = p * y + 1.0 / 40320.0;
    p = p * y + 1.0 / 5040.0;
    p = p * y + 1.0 / 720.0;
    p = p * y + 1.0 / 120.0;
    p = p * y + 1.0 / 24.0;
    p = p * y + 1.0 / 6.0;
    p = p * y + 0.5;
    p = p * y + 1.0;
    p = p * y + 1.0;
    int64_t bits, power;
    memcpy(&bits, &p, 8);
    memcpy(&power, &t, 8);
    bits += (int64_t)((uint64_t)power << 52);
    memcpy(&p, &bits, 8);
    return p;
}

/* A part of the rows: columns that end inside a tile are copied and filled up with zeros. */
typedef struct {
    int64_t start, count, length; /* count rows, filled up to `length` */
    const double **x;             /* k columns */
    double *filled;               /* (k + extra) x TILE, where the last tile is copied to */
    double *w, *p;                /* TILE, classes x TILE */
    double *top, *total;          /* TILE */
} Tile;

static ALWAYS_INLINE const double *tile_column(const Softmax *s, const Tile *tile, int64_t column,
                                               double *room) {
    const double *x = s->X + column * s->n + tile->start;
    if (tile->count == tile->length) return x;
    memcpy(room, x, (size_t)tile->count * sizeof(double));
    for (int64_t t = tile->count; t < tile->length; t++) room[t] = 0.0;
    return room;
}

/* Find the columns of a tile, weights and probabilities (coefficients `beta` of all classes, by
   row); return half of its deviance. */
static ALWAYS_INLINE double see_tile(const Softmax *s, Tile *tile, const double *beta) {
    const int64_t C = s->classes, k = s->k, n = tile->length;
    for (int64_t j = 0; j < k; j++)
        tile->x[j] = tile_column(s, tile, s->members[j], tile->filled + j * TILE);
    for (int64_t t = 0; t < n; t++) tile->w[t] = t < tile->count ? s->w[tile->start + t] : 0.0;
    int64_t c = 0;
    for (; c + 2 <= C; c += 2) {
        double *restrict f = tile->p + c * TILE, *restrict g = f + TILE;
        const double *b = beta + k * C + c;
        for (int64_t t = 0; t < n; t += 8) {
            v4 f0 = {b[0], b[0], b[0], b[0]}, f1 = f0, g0 = {b[1], b[1], b[1], b[1]}, g1 = g0;
            for (int64_t j = 0; j < k; j++) {
                const double *x = tile->x[j] + t, *a = beta + j * C + c;
                const v4 x0 = *(const v4 *)x, x1 = *(const v4 *)(x + 4);
                f0 += a[0] * x0, f1 += a[0] * x1, g0 += a[1] * x0, g1 += a[1] * x1;
            }
            *(v4 *)(f + t) = f0, *(v4 *)(f + t + 4) = f1;
            *(v4 *)(g + t) = g0, *(v4 *)(g + t + 4) = g1;
        }
    }
    for (; c < C; c++) {
        double *restrict f = tile->p + c * TILE;
        for (int64_t t = 0; t < n; t++) f[t] = beta[k * C + c];
        for (int64_t j = 0; j < k; j++) {
            const double a = beta[j * C + c], *x = tile->x[j];
            for (int64_t t = 0; t < n; t++) f[t] += a * x[t];
        }
    }
    double *restrict top = tile->top, *restrict total = tile->total;
    memcpy(top, tile->p, (size_t)n * sizeof(double));
    for (c = 1; c < C; c++) {
        const double *f = tile->p + c * TILE;
        for (int64_t t = 0; t < n; t++) top[t] = f[t] > top[t] ? f[t] : top[t];
    }
    double half = 0.0;
    for (int64_t t = 0; t < tile->count; t++)
        half -= tile->w[t] * (tile->p[s->codes[tile->start + t] * TILE + t] - top[t]);
    for (int64_t t = 0; t < n; t++) total[t] = 0.0;
    for (c = 0; c < C; c++) {
        double *restrict f = tile->p + c * TILE;
        for (int64_t t = 0; t < n; t++) {
            f[t] = exp_below(f[t] - top[t]);
            total[t] += f[t];
        }
    }
    for (int64_t t = 0; t < tile->count; t++) half += tile->w[t] * log(total[t]);
    for (int64_t t = 0; t < n; t++) total[t] = 1.0 / total[t];
    for (c = 0; c < C; c++) {
        double *restrict f = tile->p + c * TILE;
        for (int64_t t = 0; t < n; t++) f[t] *= total[t];
    }
    return half;
}

/* w p_a p_b of all pairs of classes a < b, a row each. */
static ALWAYS_INLINE void tile_pairs(const Softmax *s, const Tile *tile, double *out,
                                     int64_t stride) {
    for (int64_t a = 0; a < s->classes; a++) {
        double *restrict scaled = tile->top;
        const double *p = tile->p + a * TILE;
        for (int64_t t = 0; t < tile->length; t++) scaled[t] = tile->w[t] * p[t];
        for (int64_t b = a + 1; b < s->classes; b++, out += stride) {
            const double *q = tile->p + b * TILE;
            for (int64_t t = 0; t < tile->length; t++) out[t] = scaled[t] * q[t];
        }
    }
}

/* Turn probabilities into w (y - p), a row for each class. */
static ALWAYS_INLINE void tile_force(const Softmax *s, Tile *tile) {
    for (int64_t c = 0; c < s->classes; c++) {
        double *restrict p = tile->p + c * TILE;
        for (int64_t t = 0; t < tile->length; t++) p[t] *= -tile->w[t];
    }
    for (int64_t t = 0; t < tile->count; t++)
        tile->p[s->codes[tile->start + t] * TILE + t] += tile->w[t];
}

static ALWAYS_INLINE void all_classes(const Softmax *s, const double *theta, double *beta) {
    const int64_t C = s->classes, r = C - 1;
    for (int64_t j = 0; j <= s->k; j++)
        for (int64_t c = 0; c < C; c++)
            beta[j * C + c] = dot_of(theta + j * r, s->basis + c * r, r);
}

/* out (rows x r) = in (rows x classes) times the basis. */
static ALWAYS_INLINE void to_contrasts(const Softmax *s, const double *in, int64_t rows,
                                       double *out) {
    const int64_t C = s->classes, r = C - 1;
    for (int64_t j = 0; j < rows; j++) {
        for (int64_t a = 0; a < r; a++) out[j * r + a] = 0.0;
        for (int64_t c = 0; c < C; c++)
            for (int64_t a = 0; a < r; a++)
                out[j * r + a] += in[j * C + c] * s->basis[c * r + a];
    }
}

/* A block of the Hessian (r x r, rows of `stride`) from its sums over pairs of classes. */
static ALWAYS_INLINE void to_block(const Softmax *s, const double *pairs, double *work,
                                   double *out, int64_t stride) {
    const int64_t C = s->classes, r = C - 1;
    double *h = work, *half = work + C * C;
    for (int64_t c = 0; c < C * C; c++) h[c] = 0.0;
    for (int64_t a = 0; a < C; a++)
        for (int64_t b = a + 1; b < C; b++, pairs++) {
            h[a * C + b] = h[b * C + a] = -*pairs;
            h[a * C + a] += *pairs;
            h[b * C + b] += *pairs;
        }
    for (int64_t a = 0; a < C; a++) {
        double *row = half + a * r;
        for (int64_t e = 0; e < r; e++) row[e] = 0.0;
        for (int64_t b = 0; b < C; b++)
            for (int64_t e = 0; e < r; e++) row[e] += h[a * C + b] * s->basis[b * r + e];
    }
    for (int64_t e = 0; e < r; e++)
        for (int64_t g = 0; g < r; g++) out[e * stride + g] = 0.0;
    for (int64_t a = 0; a < C; a++)
        for (int64_t e = 0; e < r; e++) {
            const double b = s->basis[a * r + e];
            for (int64_t g = 0; g < r; g++) out[e * stride + g] += b * half[a * r + g];
        }
}

static void cut_tile(Piece *piece, const Softmax *s, Tile *tile) {
    tile->x = (const double **)cut(piece, s->k + 1);
    tile->filled = cut(piece, (s->k + 1) * TILE);
    tile->p = cut(piece, s->classes * TILE);
    tile->w = cut(piece, TILE);
    tile->top = cut(piece, TILE);
    tile->total = cut(piece, TILE);
}

/* Where a tile begins and ends; tiles have at most `most` rows. */
static ALWAYS_INLINE void place_tile(const Softmax *s, Tile *tile, int64_t start, int64_t most) {
    tile->start = start;
    tile->count = s->n - start < most ? s->n - start : most;
    tile->length = (tile->count + 7) / 8 * 8;
}

/* Rows of a tile where each makes `products` numbers. */
static int64_t tile_rows(int64_t products) {
    int64_t rows = TILE;
    while (rows > LEAST_TILE && rows * products * (int64_t)sizeof(double) > TILE_BYTES) rows /= 2;
    return rows;
}

typedef struct {
    Tile tile;
    double *beta, *sums; /* (k + 1) x classes each */
    const double **force;
} SlopeRoom;

static void cut_slope(Piece *piece, const Softmax *s, SlopeRoom *room) {
    cut_tile(piece, s, &room->tile);
    room->beta = cut(piece, (s->k + 1) * s->classes);
    room->sums = cut(piece, (s->k + 1) * s->classes);
    room->force = (const double **)cut(piece, s->classes);
}

/* The objective; the gradient of (k + 1) r numbers goes to `gradient`. */
static ALWAYS_INLINE double slope(const Softmax *s, const double *theta, double *gradient,
                                  SlopeRoom *room) {
    const int64_t C = s->classes, k = s->k, r = C - 1;
    Tile *tile = &room->tile;
    double half = 0.0, square = 0.0;
    all_classes(s, theta, room->beta);
    memset(room->sums, 0, (size_t)((k + 1) * C) * sizeof(double));
    for (int64_t c = 0; c < C; c++) room->force[c] = tile->p + c * TILE;
    for (int64_t start = 0; start < s->n; start += TILE) {
        place_tile(s, tile, start, TILE);
        half += see_tile(s, tile, room->beta);
        tile_force(s, tile);
        all_products(tile->x, k, room->force, C, tile->length, room->sums, C);
        for (int64_t c = 0; c < C; c++) {
            double sum = 0.0;
            for (int64_t t = 0; t < tile->length; t++) sum += room->force[c][t];
            room->sums[k * C + c] += sum;
        }
    }
    to_contrasts(s, room->sums, k + 1, gradient);
    for (int64_t j = 0; j < k * r; j++) {
        square += theta[j] * theta[j];
        gradient[j] -= s->penalty * theta[j];
    }
    return 2.0 * half + s->penalty * square;
}

typedef struct {
    Tile tile;
    int64_t rows; /* of a tile */
    double *beta, *pairs, *squares, *sums, *work;
    const double **pair_rows, **square_rows;
} HessianRoom;

static void cut_hessian(Piece *piece, const Softmax *s, HessianRoom *room) {
    const int64_t C = s->classes, q = s->k + 1, pairs = C * (C - 1) / 2, squares = q * (q + 1) / 2;
    /* A column that may come in has products with q others and with itself. */
    const int64_t held = squares > q + 1 ? squares : q + 1;
    room->rows = tile_rows(pairs + held);
    cut_tile(piece, s, &room->tile);
    room->beta = cut(piece, q * C);
    room->pairs = cut(piece, pairs * room->rows);
    room->squares = cut(piece, held * room->rows);
    room->sums = cut(piece, squares * pairs);
    room->work = cut(piece, 2 * C * C);
    room->pair_rows = (const double **)cut(piece, pairs);
    room->square_rows = (const double **)cut(piece, held);
}

/* Half the Hessian into H (N rows of `stride`). */
static ALWAYS_INLINE void half_hessian(const Softmax *s, const double *theta, double *H,
                                       int64_t stride, HessianRoom *room) {
    const int64_t C = s->classes, k = s->k, q = k + 1, r = C - 1;
    const int64_t pairs = C * (C - 1) / 2, squares = q * (q + 1) / 2;
    const int64_t rows = room->rows;
    Tile *tile = &room->tile;
    all_classes(s, theta, room->beta);
    for (int64_t i = 0; i < pairs; i++) room->pair_rows[i] = room->pairs + i * rows;
    memset(room->sums, 0, (size_t)(squares * pairs) * sizeof(double));
    for (int64_t start = 0; start < s->n; start += rows) {
        place_tile(s, tile, start, rows);
        see_tile(s, tile, room->beta);
        tile_pairs(s, tile, room->pairs, rows);
        double *out = room->squares;
        const double **at = room->square_rows;
        /* The last column is of ones: its products are the columns themselves. */
        for (int64_t t = 0; t < tile->length; t++) tile->total[t] = 1.0;
        for (int64_t j = 0; j < q; j++)
            for (int64_t l = j; l < q; l++, out += rows) {
                if (l == k) {
                    *at++ = j == k ? tile->total : tile->x[j];
                    continue;
                }
                const double *x = tile->x[j], *y = tile->x[l];
                for (int64_t t = 0; t < tile->length; t++) out[t] = x[t] * y[t];
                *at++ = out;
            }
        all_products(room->square_rows, squares, room->pair_rows, pairs, tile->length, room->sums,
                     pairs);
    }
    int64_t square = 0;
    for (int64_t j = 0; j < q; j++)
        for (int64_t l = j; l < q; l++, square++) {
            double *block = H + j * r * stride + l * r;
            to_block(s, room->sums + square * pairs, room->work, block, stride);
            if (l == j) continue;
            for (int64_t a = 0; a < r; a++)
                for (int64_t b = 0; b < r; b++)
                    H[(l * r + b) * stride + j * r + a] = block[a * stride + b];
        }
    for (int64_t i = 0; i < k * r; i++) H[i * stride + i] += s->penalty;
}

/* Half the Hessian (N x N), and for m columns: gradients (m x r), products with the members and the
   intercept (m x N x r) and with themselves (m x r x r). DONE, NO_MEMORY or NO_COLUMN. */
CLONES EXPORT int exactk_softmax_model(const Softmax *s, const double *theta, int64_t m,
                                       const int64_t *columns, double *H, double *gradients,
                                       double *across, double *own) {
    const int64_t C = s->classes, k = s->k, q = k + 1, r = C - 1, N = q * r;
    const int64_t pairs = C * (C - 1) / 2;
    if (outside(s, s->members, k) || outside(s, columns, m)) return NO_COLUMN;
    HessianRoom room;
    double *sums, *forces;
    const double **force, *one[1];
    Piece piece = {0, 0};
    double *memory = 0;
    for (;;) {
        cut_hessian(&piece, s, &room);
        sums = cut(&piece, m * (q + 1) * pairs);
        forces = cut(&piece, m * C);
        force = (const double **)cut(&piece, C);
        if (memory) break;
        piece.next = memory = malloc((size_t)piece.need * sizeof(double));
        if (!memory) return NO_MEMORY;
    }
    Tile *tile = &room.tile;
    half_hessian(s, theta, H, N, &room);
    memset(sums, 0, (size_t)(m * (q + 1) * pairs) * sizeof(double));
    memset(forces, 0, (size_t)(m * C) * sizeof(double));
    for (int64_t c = 0; c < C; c++) force[c] = tile->p + c * TILE;
    for (int64_t start = 0; start < s->n; start += room.rows) {
        place_tile(s, tile, start, room.rows);
        see_tile(s, tile, room.beta);
        tile_pairs(s, tile, room.pairs, room.rows);
        tile_force(s, tile);
        for (int64_t i = 0; i < m; i++) {
            const double *x = tile_column(s, tile, columns[i], tile->filled + k * TILE);
            for (int64_t j = 0; j <= q; j++) {
                if (j == k) {
                    room.square_rows[j] = x;
                    continue;
                }
                double *restrict out = room.squares + j * room.rows;
                const double *y = j == q ? x : tile->x[j];
                for (int64_t t = 0; t < tile->length; t++) out[t] = x[t] * y[t];
                room.square_rows[j] = out;
            }
            all_products(room.square_rows, q + 1, room.pair_rows, pairs, tile->length,
                         sums + i * (q + 1) * pairs, pairs);
            one[0] = x;
            all_products(one, 1, force, C, tile->length, forces + i * C, C);
        }
    }
    to_contrasts(s, forces, m, gradients);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j <= q; j++)
            to_block(s, sums + (i * (q + 1) + j) * pairs, room.work,
                     j == q ? own + i * r * r : across + (i * N + j * r) * r, r);
    free(memory);
    return DONE;
}

#endif
