/* Multinomial logistic regression on a few columns: values, gradients, Hessians and fits.
 *
 * Rows are read in tiles, along which all loops vectorise. Coefficients come in the coordinates of
 * `contrasts` (r, one fewer than classes), row by row: members, then the intercept. Gradients are
 * half of those of the deviance, downhill; Hessians are halves, too.
 */
#ifndef EXACTK_SOFTMAX_H
#define EXACTK_SOFTMAX_H

enum { TILE = 256, LEAST_TILE = 64, PAIRS_KEPT = 8 };
/* Bytes of products that a tile may make: they should stay in the second cache. */
enum { TILE_BYTES = 1 << 18 };
/* As in `newton.py`: beside the diagonal, the share of a promise that a step must keep, how much more
   than promised a fit may fall. */
static const double LEAST_PIVOT = 1e-12, ARMIJO_SHARE = 1e-4, FIT_REACH = 3.0;
enum { MOST_HALVINGS = 40 };
/* How much better than it says a Hessian from elsewhere may be taken to be. */
static const double MOST_KEPT = 10.0;

typedef struct {
    int64_t n, classes, k;
    const double *X;        /* columns of the table, n numbers each */
    const int64_t *members; /* k of them */
    const int64_t *codes;   /* class of each row */
    const double *w;        /* weight of each row */
    const double *basis;    /* classes x r */
    double penalty;
} Softmax;

/* What a swap foresees: the inverse K of half the Hessian at the fit before it, with member `slot`
   out and a column in that has T = K A and the Schur complement E. */
typedef struct {
    const double *K; /* N x N, N = (k + 1) r */
    const double *T; /* N x r */
    const double *E; /* r x r */
    int64_t slot;
} Foreseen;

typedef double v4 __attribute__((vector_size(32), aligned(8), may_alias));

/* ---- small dense kernels ---- */

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

/* ---- rows ---- */

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
static ALWAYS_INLINE void tile_pairs(const Softmax *s, const Tile *tile, double *out) {
    for (int64_t a = 0; a < s->classes; a++) {
        double *restrict scaled = tile->top;
        const double *p = tile->p + a * TILE;
        for (int64_t t = 0; t < tile->length; t++) scaled[t] = tile->w[t] * p[t];
        for (int64_t b = a + 1; b < s->classes; b++, out += TILE) {
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
static ALWAYS_INLINE void to_block(const Softmax *s, const double *pairs, int64_t step,
                                   double *work, double *out, int64_t stride) {
    const int64_t C = s->classes, r = C - 1;
    double *h = work, *half = work + C * C;
    for (int64_t c = 0; c < C * C; c++) h[c] = 0.0;
    for (int64_t a = 0; a < C; a++)
        for (int64_t b = a + 1; b < C; b++, pairs += step) {
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

/* ---- memory of a call: one piece, cut up ---- */

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

/* ---- value and gradient ---- */

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

/* ---- Hessian, and products with columns that may come in ---- */

typedef struct {
    Tile tile;
    double *beta, *pairs, *squares, *sums, *work;
    const double **pair_rows, **square_rows;
} HessianRoom;

static void cut_hessian(Piece *piece, const Softmax *s, HessianRoom *room) {
    const int64_t C = s->classes, q = s->k + 1, pairs = C * (C - 1) / 2, squares = q * (q + 1) / 2;
    cut_tile(piece, s, &room->tile);
    room->beta = cut(piece, q * C);
    room->pairs = cut(piece, pairs * TILE);
    room->squares = cut(piece, squares * TILE);
    room->sums = cut(piece, squares * pairs);
    room->work = cut(piece, 2 * C * C);
    room->pair_rows = (const double **)cut(piece, pairs);
    room->square_rows = (const double **)cut(piece, squares);
}

/* Half the Hessian into H (N rows of `stride`), its diagonal raised by the share `more`. */
static ALWAYS_INLINE void half_hessian(const Softmax *s, const double *theta, double more,
                                       double *H, int64_t stride, HessianRoom *room) {
    const int64_t C = s->classes, k = s->k, q = k + 1, r = C - 1;
    const int64_t pairs = C * (C - 1) / 2, squares = q * (q + 1) / 2;
    const int64_t rows = tile_rows(pairs + squares);
    Tile *tile = &room->tile;
    all_classes(s, theta, room->beta);
    for (int64_t i = 0; i < pairs; i++) room->pair_rows[i] = room->pairs + i * TILE;
    memset(room->sums, 0, (size_t)(squares * pairs) * sizeof(double));
    for (int64_t start = 0; start < s->n; start += rows) {
        place_tile(s, tile, start, rows);
        see_tile(s, tile, room->beta);
        tile_pairs(s, tile, room->pairs);
        double *out = room->squares;
        const double **at = room->square_rows;
        /* The last column is of ones: its products are the columns themselves. */
        for (int64_t t = 0; t < tile->length; t++) tile->total[t] = 1.0;
        for (int64_t j = 0; j < q; j++)
            for (int64_t l = j; l < q; l++, out += TILE) {
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
            to_block(s, room->sums + square * pairs, 1, room->work, block, stride);
            if (l == j) continue;
            for (int64_t a = 0; a < r; a++)
                for (int64_t b = 0; b < r; b++)
                    H[(l * r + b) * stride + j * r + a] = block[a * stride + b];
        }
    double largest = 0.0;
    for (int64_t i = 0; i < q * r; i++) {
        double *at = H + i * stride + i;
        if (i < k * r) *at += s->penalty;
        if (*at > largest) largest = *at;
    }
    if (largest == 0.0) largest = 1.0;
    for (int64_t i = 0; i < q * r; i++) {
        double *at = H + i * stride + i;
        *at += more * (*at > 1e-3 * largest ? *at : 1e-3 * largest);
    }
}

/* Half the Hessian (N x N), and for m columns: gradients (m x r), products with the members and the
   intercept (m x N x r) and with themselves (m x r x r). 0 where there is no memory. */
CLONES EXPORT int exactk_softmax_model(const Softmax *s, const double *theta, int64_t m,
                                       const int64_t *columns, double *H, double *gradients,
                                       double *across, double *own) {
    const int64_t C = s->classes, k = s->k, q = k + 1, r = C - 1, N = q * r;
    const int64_t pairs = C * (C - 1) / 2, rows = tile_rows(pairs + q + 1);
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
        if (!memory) return 0;
    }
    Tile *tile = &room.tile;
    half_hessian(s, theta, LEAST_PIVOT, H, N, &room);
    memset(sums, 0, (size_t)(m * (q + 1) * pairs) * sizeof(double));
    memset(forces, 0, (size_t)(m * C) * sizeof(double));
    for (int64_t c = 0; c < C; c++) force[c] = tile->p + c * TILE;
    for (int64_t start = 0; start < s->n; start += rows) {
        place_tile(s, tile, start, rows);
        see_tile(s, tile, room.beta);
        tile_pairs(s, tile, room.pairs);
        tile_force(s, tile);
        for (int64_t i = 0; i < m; i++) {
            const double *x = tile_column(s, tile, columns[i], tile->filled + k * TILE);
            for (int64_t j = 0; j <= q; j++) {
                if (j == k) {
                    room.square_rows[j] = x;
                    continue;
                }
                double *restrict out = room.squares + j * TILE;
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
            to_block(s, sums + (i * (q + 1) + j) * pairs, 1, room.work,
                     j == q ? own + i * r * r : across + (i * N + j * r) * r, r);
    free(memory);
    return 1;
}

/* ---- prices of swaps ---- */

/* What each member out (k) and each of m columns in lowers the objective by, to second order. T is
   m x N x r, E m x r x r, C m x r; members with held[i] stay. 0 where there is no memory. */
CLONES EXPORT int exactk_softmax_prices(int64_t k, int64_t r, int64_t m, const double *K,
                                        const double *theta, const double *T, const double *E,
                                        const double *gradients, const uint8_t *held,
                                        double *gains) {
    const int64_t N = (k + 1) * r;
    double *memory = malloc((size_t)(3 * r * r + 3 * r) * sizeof(double));
    if (!memory) return 0;
    double *L = memory, *U = L + r * r, *A = U + r * r, *v = A + r * r, *g = v + r;
    for (int64_t i = 0; i < k; i++) {
        for (int64_t a = 0; a < r; a++)
            memcpy(L + a * r, K + (i * r + a) * N + i * r, (size_t)r * sizeof(double));
        const int usable = !held[i] && factor(L, r, r);
        double loss = 0.0;
        if (usable) {
            for (int64_t a = 0; a < r; a++) {
                v[a] = (theta[i * r + a] - dot_of(L + a * r, v, a)) / L[a * r + a];
                loss += v[a] * v[a];
            }
        }
        for (int64_t p = 0; p < m; p++) {
            double gain = -INFINITY;
            if (usable) {
                const double *Ti = T + (p * N + i * r) * r, *Ep = E + p * r * r;
                /* U = L^-1 T_i: what member i takes of the column. */
                for (int64_t a = 0; a < r; a++) {
                    double *row = U + a * r;
                    memcpy(row, Ti + a * r, (size_t)r * sizeof(double));
                    for (int64_t b = 0; b < a; b++) {
                        const double by = L[a * r + b], *other = U + b * r;
                        for (int64_t e = 0; e < r; e++) row[e] -= by * other[e];
                    }
                    const double inverse = 1.0 / L[a * r + a];
                    for (int64_t e = 0; e < r; e++) row[e] *= inverse;
                }
                memcpy(A, Ep, (size_t)(r * r) * sizeof(double));
                memcpy(g, gradients + p * r, (size_t)r * sizeof(double));
                for (int64_t a = 0; a < r; a++) {
                    const double *row = U + a * r;
                    for (int64_t e = 0; e < r; e++) {
                        const double by = row[e];
                        g[e] += by * v[a];
                        for (int64_t f = 0; f <= e; f++) A[e * r + f] += by * row[f];
                    }
                }
                if (factor(A, r, r)) {
                    gain = -loss;
                    for (int64_t e = 0; e < r; e++) {
                        g[e] = (g[e] - dot_of(A + e * r, g, e)) / A[e * r + e];
                        gain += g[e] * g[e];
                    }
                }
            }
            gains[i * m + p] = gain;
        }
    }
    free(memory);
    return 1;
}

/* ---- fits ---- */

/* How a fit turns gradients into steps: a factor of the Hessian, or what a swap foresees; and the
   steps since then (limited-memory BFGS). */
typedef struct {
    int64_t N, r, k, stride;
    int own;   /* whether `L` holds a factor */
    double *L; /* N x stride */
    const Foreseen *swap;
    double *E, *Q, *R; /* factor of E; column of the member that goes, N + r x r; factor of its own */
    double *in, *out;  /* N + r each */
    double *s, *y;     /* PAIRS_KEPT x N */
    double rho[PAIRS_KEPT], alpha[PAIRS_KEPT];
    int64_t kept, next;
} Metric;

static void cut_metric(Piece *piece, int64_t k, int64_t r, int swap, Metric *metric) {
    const int64_t N = (k + 1) * r;
    metric->N = N, metric->r = r, metric->k = k, metric->stride = (N + 3) / 4 * 4;
    metric->L = cut(piece, N * metric->stride);
    metric->E = cut(piece, swap ? r * r : 0);
    metric->Q = cut(piece, swap ? (N + r) * r : 0);
    metric->R = cut(piece, swap ? r * r : 0);
    metric->in = cut(piece, N + r);
    metric->out = cut(piece, N + r);
    metric->s = cut(piece, PAIRS_KEPT * N);
    metric->y = cut(piece, PAIRS_KEPT * N);
}

/* The inverse Hessian of the members and the new column times `in` (N + r), to `out`. */
static ALWAYS_INLINE void bordered(const Metric *metric, const double *in, double *out) {
    const int64_t N = metric->N, r = metric->r;
    const double *T = metric->swap->T;
    double *tail = out + N;
    for (int64_t a = 0; a < r; a++) tail[a] = in[N + a];
    for (int64_t i = 0; i < N; i++)
        for (int64_t a = 0; a < r; a++) tail[a] -= T[i * r + a] * in[i];
    substitute(metric->E, r, r, tail);
    for (int64_t i = 0; i < N; i++)
        out[i] = dot_of(metric->swap->K + i * N, in, N) - dot_of(T + i * r, tail, r);
}

/* Bring the member that goes to `value` below what `out` has of it: zero for a step. */
static ALWAYS_INLINE void take_out(const Metric *metric, double *out, const double *value,
                                   double *work) {
    const int64_t r = metric->r, at = metric->swap->slot * r;
    for (int64_t a = 0; a < r; a++) work[a] = out[at + a] + (value ? value[a] : 0.0);
    substitute(metric->R, r, r, work);
    for (int64_t i = 0; i < metric->N + r; i++) out[i] -= dot_of(metric->Q + i * r, work, r);
}

/* Between the order of a support with its new column (rest, new, intercept) and that of the support
   before it with the new one behind (members, intercept, new). */
static ALWAYS_INLINE void spread(const Metric *metric, const double *from, double *to) {
    const int64_t r = metric->r, k = metric->k, slot = metric->swap->slot;
    const size_t one = (size_t)r * sizeof(double);
    memcpy(to, from, (size_t)slot * one);
    memset(to + slot * r, 0, one);
    memcpy(to + (slot + 1) * r, from + slot * r, (size_t)(k - 1 - slot) * one);
    memcpy(to + k * r, from + k * r, one);
    memcpy(to + (k + 1) * r, from + (k - 1) * r, one);
}

static ALWAYS_INLINE void gather(const Metric *metric, const double *from, double *to) {
    const int64_t r = metric->r, k = metric->k, slot = metric->swap->slot;
    const size_t one = (size_t)r * sizeof(double);
    memcpy(to, from, (size_t)slot * one);
    memcpy(to + slot * r, from + (slot + 1) * r, (size_t)(k - 1 - slot) * one);
    memcpy(to + (k - 1) * r, from + (k + 1) * r, one);
    memcpy(to + k * r, from + k * r, one);
}

/* Make ready what a swap foresees; 0 where it cannot be factored. */
static ALWAYS_INLINE int prepare_swap(Metric *metric) {
    const int64_t N = metric->N, r = metric->r, slot = metric->swap->slot;
    memcpy(metric->E, metric->swap->E, (size_t)(r * r) * sizeof(double));
    if (!factor(metric->E, r, r)) return 0;
    for (int64_t a = 0; a < r; a++) {
        memset(metric->in, 0, (size_t)(N + r) * sizeof(double));
        metric->in[slot * r + a] = 1.0;
        bordered(metric, metric->in, metric->out);
        for (int64_t i = 0; i < N + r; i++) metric->Q[i * r + a] = metric->out[i];
    }
    memcpy(metric->R, metric->Q + slot * r * r, (size_t)(r * r) * sizeof(double));
    return factor(metric->R, r, r);
}

/* The coefficients that a swap foresees: `before` (k + 1 rows) with the new column's gradient. */
static ALWAYS_INLINE void foresee(Metric *metric, const double *before, const double *gradient,
                                  double *theta) {
    const int64_t N = metric->N, r = metric->r;
    memset(metric->in, 0, (size_t)N * sizeof(double));
    memcpy(metric->in + N, gradient, (size_t)r * sizeof(double));
    bordered(metric, metric->in, metric->out);
    take_out(metric, metric->out, before + metric->swap->slot * r, metric->in);
    for (int64_t i = 0; i < N; i++) metric->out[i] += before[i];
    gather(metric, metric->out, theta);
}

/* step = (inverse Hessian) gradient, by what is known of it. */
static ALWAYS_INLINE void turn(Metric *metric, const double *gradient, double *step) {
    const int64_t N = metric->N;
    memcpy(step, gradient, (size_t)N * sizeof(double));
    for (int64_t i = 0; i < metric->kept; i++) {
        const int64_t at = (metric->next + PAIRS_KEPT - 1 - i) % PAIRS_KEPT;
        const double *s = metric->s + at * N, *y = metric->y + at * N;
        const double alpha = metric->alpha[at] = metric->rho[at] * dot_of(s, step, N);
        for (int64_t j = 0; j < N; j++) step[j] -= alpha * y[j];
    }
    if (metric->own) {
        substitute(metric->L, N, metric->stride, step);
    } else {
        spread(metric, step, metric->in);
        bordered(metric, metric->in, metric->out);
        take_out(metric, metric->out, 0, metric->in);
        gather(metric, metric->out, step);
    }
    for (int64_t i = metric->kept - 1; i >= 0; i--) {
        const int64_t at = (metric->next + PAIRS_KEPT - 1 - i) % PAIRS_KEPT;
        const double *s = metric->s + at * N, *y = metric->y + at * N;
        const double by = metric->alpha[at] - metric->rho[at] * dot_of(y, step, N);
        for (int64_t j = 0; j < N; j++) step[j] += by * s[j];
    }
}

/* Keep a step s along which the gradient fell by y. */
static ALWAYS_INLINE void remember(Metric *metric, const double *s, double share,
                                   const double *before, const double *after) {
    const int64_t N = metric->N, at = metric->next;
    double *keep = metric->s + at * N, *fell = metric->y + at * N;
    for (int64_t j = 0; j < N; j++) keep[j] = share * s[j], fell[j] = before[j] - after[j];
    const double along = dot_of(keep, fell, N);
    if (!(along > 0)) return;
    metric->rho[at] = 1.0 / along;
    metric->next = (at + 1) % PAIRS_KEPT;
    if (metric->kept < PAIRS_KEPT) metric->kept++;
}

/* What one fit needs, from memory that several share. */
typedef struct {
    SlopeRoom slope;
    HessianRoom hessian;
    Metric metric;
    double *now, *next, *step, *trial; /* gradients at both ends of a step, and where it leads */
} FitRoom;

static void cut_fit(Piece *piece, const Softmax *s, int swap, FitRoom *room) {
    const int64_t r = s->classes - 1, N = (s->k + 1) * r;
    cut_slope(piece, s, &room->slope);
    cut_hessian(piece, s, &room->hessian);
    cut_metric(piece, s->k, r, swap, &room->metric);
    room->now = cut(piece, N), room->next = cut(piece, N);
    room->step = cut(piece, N), room->trial = cut(piece, N);
}

/* When a fit ends: a step promises less than tol of max(value, scale), or it cannot come below the
   ceiling any more. */
typedef struct {
    int64_t steps;
    double tol, ceiling, scale;
} Ends;

/* Fit from `theta`, with what `swap` knows of the Hessian if there is one; 1 if settled. */
static ALWAYS_INLINE int fit(const Softmax *s, double *theta, const Foreseen *swap,
                             const Ends *ends, FitRoom *room, double *value) {
    const int64_t k = s->k, C = s->classes, r = C - 1, N = (k + 1) * r;
    Metric *metric = &room->metric;
    metric->swap = swap, metric->own = 0, metric->kept = metric->next = 0;
    int ready = swap != 0, settled = 0;
    double now = slope(s, theta, room->now, &room->slope);
    /* Costs of a look at the rows and of a Hessian, in products: whether another one pays. */
    const double look = (double)s->n * (double)C * (2.0 * (double)k + 16.0);
    const double pairs = 0.5 * (double)(C * r), squares = 0.5 * (double)((k + 1) * (k + 2));
    const double hessian = (double)s->n * pairs * (squares + 2.0) + look +
                           (double)N * (double)N * (double)N / 6.0;
    double last = 0.0, kept = 1.0;
    for (int64_t i = 0; i < ends->steps && isfinite(now); i++) {
        const double target = ends->tol * (now > ends->scale ? now : ends->scale);
        double promise = 0.0;
        for (int fresh = !ready;; fresh = 1) {
            if (fresh) {
                metric->own = 0, metric->kept = metric->next = 0;
                for (double more = LEAST_PIVOT; !metric->own && more < 1e-2; more *= 1e3) {
                    half_hessian(s, theta, more, metric->L, metric->stride, &room->hessian);
                    metric->own = factor(metric->L, N, metric->stride);
                }
                if (!metric->own) goto end;
                ready = 1;
                last = 0.0, kept = 1.0;
            }
            turn(metric, room->now, room->step);
            promise = kept * dot_of(room->now, room->step, N);
            if (!isfinite(promise) || promise < 0) {
                if (fresh) goto end;
                continue;
            }
            if (fresh || promise <= target || now - FIT_REACH * promise > ends->ceiling) break;
            /* Steps that are left if they go on as the last did, or a Hessian and one or two. */
            const double rate = last > 0 ? promise / last : 0.1;
            const double left = rate < 0.9 ? log(promise / target) / -log(rate) : 1e3;
            if (left * look <= hessian + 2.0 * look) break;
        }
        const int is_last = promise <= target;
        if (!is_last && now - FIT_REACH * promise > ends->ceiling) break;
        double share = 1.0, then = 0.0;
        int moved = 0;
        for (int halvings = is_last ? 1 : MOST_HALVINGS; halvings > 0; halvings--, share *= 0.5) {
            for (int64_t j = 0; j < N; j++) room->trial[j] = theta[j] + share * room->step[j];
            then = slope(s, room->trial, room->next, &room->slope);
            if (then <= now - 2.0 * ARMIJO_SHARE * share * promise) {
                moved = 1;
                break;
            }
        }
        if (moved) {
            /* Where the loss fell by more than was promised, the next promise is too small, too. */
            const double kept_now = share == 1.0 ? kept * (now - then) / promise : 1.0;
            kept = kept_now < 1.0 ? 1.0 : kept_now > MOST_KEPT ? MOST_KEPT : kept_now;
            remember(metric, room->step, share, room->now, room->next);
            memcpy(theta, room->trial, (size_t)N * sizeof(double));
            double *swapped = room->now;
            room->now = room->next, room->next = swapped;
            now = then, last = promise;
            if (share < 1.0) ready = 0;
        }
        /* Without a fall from a Hessian of here, rounding is all that is left. */
        settled = is_last || (!moved && metric->own && metric->kept == 0);
        if (settled) break;
        if (!moved) ready = 0;
    }
end:
    *value = now;
    return settled;
}

/* Fit on the members from `theta`, which is overwritten; *value is the objective. 1 if settled, 0 if
   not, -1 without memory. */
CLONES EXPORT int exactk_softmax_fit(const Softmax *s, double *theta, int64_t steps, double tol,
                                     double ceiling, double scale, double *value) {
    const Ends ends = {steps, tol, ceiling, scale};
    FitRoom room;
    Piece piece = {0, 0};
    double *memory = 0;
    for (;;) {
        cut_fit(&piece, s, 0, &room);
        if (memory) break;
        piece.next = memory = malloc((size_t)piece.need * sizeof(double));
        if (!memory) return -1;
    }
    const int settled = fit(s, theta, 0, &ends, &room, value);
    free(memory);
    return settled;
}

/* Fit several supports that are one swap away from that of `s`, whose fit is `theta`: member
   slots[i] out, column columns[at[i]] in. K, T, E and gradients are of that fit (see `Foreseen`; T
   and E of all columns). A fit that is better than the ceiling is the next one's. Members of the
   i-th support are those that stay, then the new one. 0 without memory. */
CLONES EXPORT int exactk_softmax_swaps(const Softmax *s, const double *theta, const double *K,
                                       const double *T, const double *E, const double *gradients,
                                       const int64_t *columns, int64_t count, const int64_t *slots,
                                       const int64_t *at, int64_t steps, double tol, double ceiling,
                                       double scale, double *thetas, double *values,
                                       uint8_t *settled) {
    const int64_t k = s->k, r = s->classes - 1, N = (k + 1) * r;
    Ends ends = {steps, tol, ceiling, scale};
    FitRoom room;
    Softmax other = *s;
    int64_t *members;
    Piece piece = {0, 0};
    double *memory = 0;
    for (;;) {
        cut_fit(&piece, s, 1, &room);
        members = (int64_t *)cut(&piece, k);
        if (memory) break;
        piece.next = memory = malloc((size_t)piece.need * sizeof(double));
        if (!memory) return 0;
    }
    other.members = members;
    for (int64_t i = 0; i < count; i++) {
        const int64_t slot = slots[i], column = at[i];
        const Foreseen known = {K, T + column * N * r, E + column * r * r, slot};
        double *out = thetas + i * N;
        for (int64_t j = 0; j < k - 1; j++) members[j] = s->members[j < slot ? j : j + 1];
        members[k - 1] = columns[column];
        room.metric.swap = &known;
        const int ready = prepare_swap(&room.metric);
        if (ready) {
            foresee(&room.metric, theta, gradients + column * r, out);
        } else {
            memcpy(out, theta, (size_t)(slot * r) * sizeof(double));
            memcpy(out + slot * r, theta + (slot + 1) * r,
                   (size_t)((k - 1 - slot) * r) * sizeof(double));
            memset(out + (k - 1) * r, 0, (size_t)r * sizeof(double));
            memcpy(out + k * r, theta + k * r, (size_t)r * sizeof(double));
        }
        settled[i] = (uint8_t)fit(&other, out, ready ? &known : 0, &ends, &room, values + i);
        if (settled[i] && values[i] < ends.ceiling) ends.ceiling = values[i];
    }
    free(memory);
    return 1;
}

#endif
