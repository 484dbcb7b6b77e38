/* Robust losses: reweighted least squares on few columns.
 *
 * The formulas of `exactk.losses.reweighted`, for powers of the length of a residual. A step is one
 * pass over the rows, tile by tile: residuals, weights, and the upper half of the weighted products
 * of the columns with each other and with the residuals. What is solved for is the change of the
 * coefficients, so that rounding is no larger than the change.
 */
#ifndef EXACTK_IRLS_H
#define EXACTK_IRLS_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "native.h"

/* Rows that are computed side by side; products that stay in registers, HIGH x WIDE of them. */
enum { IRLS_LANES = 4, IRLS_HIGH = 4, IRLS_WIDE = 3 };
/* Numbers in a tile of rows, so that it stays in the first cache; rows of it, at least and most. */
enum { IRLS_TILE = 3072, IRLS_LEAST = 64, IRLS_MOST = 256 };
/* A column depends on those before it where they leave no more than this share of its square. */
#define IRLS_DEPENDENT 1e-14

typedef double irls_vec __attribute__((vector_size(32)));
typedef double irls_loose __attribute__((vector_size(32), aligned(8), may_alias));

enum { IRLS_RUNNING, IRLS_SETTLED, IRLS_LEFT };

/* What fits have in common; the layout is known to `exactk.losses.reweighted`. */
typedef struct {
    int64_t n, q, r;
    double power, zero;      /* of the loss, and the length below which a residual is none */
    const double *T, *w;     /* r x n, n */
    const double *ridge;     /* q x q */
} IrlsTask;

/* Columns of one support and room to work in. */
typedef struct {
    const double *Z;         /* q x n */
    int64_t whole, tile;     /* rows in whole vectors, rows of a tile */
    double *end;             /* the rows behind them: q + r columns of IRLS_LANES, zeros behind */
    double *end_w;
    double *scaled;          /* a tile of columns and residuals */
    double *length;          /* of a tile */
    irls_vec *sums;
    double *system;          /* q x (q + r) */
} IrlsRoom;

static ALWAYS_INLINE int64_t irls_blocks(int64_t q, int64_t r) {
    int64_t blocks = 0;
    for (int64_t i = 0; i < q; i += IRLS_HIGH) blocks += (q + r - i + IRLS_WIDE - 1) / IRLS_WIDE;
    return blocks;
}

/* Residuals of `rows` rows from the columns at z (q, `stride` apart), behind the scaled ones. */
static ALWAYS_INLINE void irls_residuals(const IrlsTask *t, const double *theta, const double *z,
                                         const double *target, int64_t stride, int64_t rows,
                                         double *out, int64_t tile) {
    int64_t q = t->q, r = t->r, o = 0;
    for (; o + 4 <= r; o += 4)
        for (int64_t v = 0; v < rows; v += IRLS_LANES) {
            irls_vec a = *(const irls_loose *)(target + o * stride + v);
            irls_vec b = *(const irls_loose *)(target + (o + 1) * stride + v);
            irls_vec c = *(const irls_loose *)(target + (o + 2) * stride + v);
            irls_vec d = *(const irls_loose *)(target + (o + 3) * stride + v);
            for (int64_t j = 0; j < q; j++) {
                irls_vec x = *(const irls_loose *)(z + j * stride + v);
                const double *by = theta + j * r + o;
                a -= by[0] * x;
                b -= by[1] * x;
                c -= by[2] * x;
                d -= by[3] * x;
            }
            *(irls_loose *)(out + o * tile + v) = a;
            *(irls_loose *)(out + (o + 1) * tile + v) = b;
            *(irls_loose *)(out + (o + 2) * tile + v) = c;
            *(irls_loose *)(out + (o + 3) * tile + v) = d;
        }
    for (; o < r; o++)
        for (int64_t v = 0; v < rows; v += 2 * IRLS_LANES) {
            /* Two at a time hide the latency; the second may be the first again at the end. */
            int64_t u = v + IRLS_LANES < rows ? v + IRLS_LANES : v;
            irls_vec a = *(const irls_loose *)(target + o * stride + v);
            irls_vec b = *(const irls_loose *)(target + o * stride + u);
            for (int64_t j = 0; j < q; j++) {
                double by = theta[j * r + o];
                a -= by * *(const irls_loose *)(z + j * stride + v);
                b -= by * *(const irls_loose *)(z + j * stride + u);
            }
            *(irls_loose *)(out + o * tile + v) = a;
            *(irls_loose *)(out + o * tile + u) = b;
        }
}

/* Add the products of HIGH columns with WIDE others over the rows of a tile. */
static ALWAYS_INLINE void irls_products(const double *x, const double *y, int64_t tile,
                                        int64_t rows, irls_vec *sums) {
    irls_vec a0 = sums[0], a1 = sums[1], a2 = sums[2], b0 = sums[3], b1 = sums[4], b2 = sums[5];
    irls_vec c0 = sums[6], c1 = sums[7], c2 = sums[8], d0 = sums[9], d1 = sums[10], d2 = sums[11];
    for (int64_t v = 0; v < rows; v += IRLS_LANES) {
        irls_vec y0 = *(const irls_loose *)(y + v), y1 = *(const irls_loose *)(y + tile + v);
        irls_vec y2 = *(const irls_loose *)(y + 2 * tile + v);
        irls_vec at = *(const irls_loose *)(x + v);
        a0 += at * y0, a1 += at * y1, a2 += at * y2;
        at = *(const irls_loose *)(x + tile + v);
        b0 += at * y0, b1 += at * y1, b2 += at * y2;
        at = *(const irls_loose *)(x + 2 * tile + v);
        c0 += at * y0, c1 += at * y1, c2 += at * y2;
        at = *(const irls_loose *)(x + 3 * tile + v);
        d0 += at * y0, d1 += at * y1, d2 += at * y2;
    }
    sums[0] = a0, sums[1] = a1, sums[2] = a2, sums[3] = b0, sums[4] = b1, sums[5] = b2;
    sums[6] = c0, sums[7] = c1, sums[8] = c2, sums[9] = d0, sums[10] = d1, sums[11] = d2;
}

/* One tile: return its loss, and add its weighted products to the sums if `to_solve`. */
static ALWAYS_INLINE double irls_tile(const IrlsTask *t, const IrlsRoom *room, const double *theta,
                                      const double *z, const double *target, const double *w,
                                      int64_t stride, int64_t rows, int to_solve) {
    int64_t q = t->q, r = t->r, tile = room->tile;
    double *scaled = room->scaled, *E = scaled + q * tile, *length = room->length;
    double power = t->power, zero = t->zero, part[IRLS_LANES] = {0}, loss = 0.0;
    irls_residuals(t, theta, z, target, stride, rows, E, tile);
    for (int64_t i = 0; i < rows; i++) length[i] = E[i] * E[i];
    for (int64_t o = 1; o < r; o++)
        for (int64_t i = 0; i < rows; i++) length[i] += E[o * tile + i] * E[o * tile + i];
    for (int64_t i = 0; i < rows; i++) length[i] = sqrt(length[i]);
    /* From here on `length` turns into the square root of the weight. */
    if (power == 1.0)
        for (int64_t i = 0; i < rows; i += IRLS_LANES)
            for (int64_t l = 0; l < IRLS_LANES; l++) {
                double e = length[i + l], held = e > zero ? e : zero;
                part[l] += w[i + l] * e;
                length[i + l] = sqrt(0.5 * w[i + l] / held);
            }
    else if (power == 2.0)
        for (int64_t i = 0; i < rows; i += IRLS_LANES)
            for (int64_t l = 0; l < IRLS_LANES; l++) {
                part[l] += w[i + l] * length[i + l] * length[i + l];
                length[i + l] = sqrt(w[i + l]);
            }
    else
        for (int64_t i = 0; i < rows; i++) {
            double e = length[i], held = e > zero ? e : zero, u = pow(held, power - 2.0);
            part[i % IRLS_LANES] += w[i] * (e >= zero ? e * e * u : pow(e, power));
            /* Rows that only fill up a tile weigh nothing, whatever u is. */
            length[i] = w[i] > 0.0 ? sqrt(0.5 * power * w[i] * u) : 0.0;
        }
    for (int64_t l = 0; l < IRLS_LANES; l++) loss += part[l];
    if (!to_solve) return loss;
    for (int64_t j = 0; j < q; j++)
        for (int64_t i = 0; i < rows; i++) scaled[j * tile + i] = z[j * stride + i] * length[i];
    for (int64_t o = 0; o < r; o++)
        for (int64_t i = 0; i < rows; i++) E[o * tile + i] *= length[i];
    irls_vec *sums = room->sums;
    for (int64_t i = 0; i < q; i += IRLS_HIGH)
        for (int64_t j = i; j < q + r; j += IRLS_WIDE, sums += IRLS_HIGH * IRLS_WIDE)
            irls_products(scaled + i * tile, scaled + j * tile, tile, rows, sums);
    return loss;
}

/* The loss at θ without its ridge term; its products go to the sums if `to_solve`. */
CLONES static double irls_pass(const IrlsTask *t, const IrlsRoom *room, const double *theta,
                               int to_solve) {
    int64_t n = t->n, q = t->q;
    double loss = 0.0;
    if (to_solve)
        memset(room->sums, 0,
               (size_t)(irls_blocks(q, t->r) * IRLS_HIGH * IRLS_WIDE) * sizeof(irls_vec));
    for (int64_t i = 0; i < room->whole; i += room->tile) {
        int64_t rows = room->whole - i < room->tile ? room->whole - i : room->tile;
        loss += irls_tile(t, room, theta, room->Z + i, t->T + i, t->w + i, n, rows, to_solve);
    }
    if (room->whole < n)
        loss += irls_tile(t, room, theta, room->end, room->end + q * IRLS_LANES, room->end_w,
                          IRLS_LANES, IRLS_LANES, to_solve);
    return loss;
}

/* The change of θ from the sums: factored A = RᵀR, where dependent columns keep what they have. */
CLONES static void irls_solve(const IrlsTask *t, const IrlsRoom *room, const double *pull,
                              const double *theta, double *next) {
    int64_t q = t->q, r = t->r, width = q + r;
    double *A = room->system;
    const irls_vec *sums = room->sums;
    for (int64_t i = 0; i < q; i += IRLS_HIGH)
        for (int64_t j = i; j < width; j += IRLS_WIDE)
            for (int64_t a = 0; a < IRLS_HIGH; a++)
                for (int64_t b = 0; b < IRLS_WIDE; b++, sums++)
                    if (i + a < q && j + b < width)
                        A[(i + a) * width + j + b] =
                            ((*sums)[0] + (*sums)[1]) + ((*sums)[2] + (*sums)[3]);
    for (int64_t i = 0; i < q; i++) {
        for (int64_t j = i; j < q; j++) A[i * width + j] += t->ridge[i * q + j];
        for (int64_t o = 0; o < r; o++) A[i * width + q + o] -= pull[i * r + o];
    }
    /* `next` holds the diagonal until it is written. */
    for (int64_t i = 0; i < q; i++) next[i] = A[i * width + i];
    for (int64_t i = 0; i < q; i++) {
        double *row = A + i * width;
        if (!(row[i] > IRLS_DEPENDENT * next[i])) {
            memset(row + i, 0, (size_t)(width - i) * sizeof(double));
            row[i] = 1.0;
            continue;
        }
        double inverse = 1.0 / sqrt(row[i]);
        for (int64_t j = i; j < width; j++) row[j] *= inverse;
        for (int64_t j = i + 1; j < q; j++) {
            double by = row[j], *restrict other = A + j * width;
            for (int64_t l = j; l < width; l++) other[l] -= by * row[l];
        }
    }
    for (int64_t i = q - 1; i >= 0; i--) {
        double *restrict out = A + i * width + q, inverse = 1.0 / A[i * width + i];
        for (int64_t j = i + 1; j < q; j++) {
            const double *below = A + j * width + q;
            double by = A[i * width + j];
            for (int64_t o = 0; o < r; o++) out[o] -= by * below[o];
        }
        for (int64_t o = 0; o < r; o++) {
            out[o] *= inverse;
            next[i * r + o] = theta[i * r + o] + out[o];
        }
    }
}

/* The objective at θ, and the next θ unless `next` is NULL; `pull` is work space like θ. */
static double irls_step(const IrlsTask *t, const IrlsRoom *room, const double *theta, double *pull,
                        double *next) {
    int64_t q = t->q, r = t->r;
    double value = irls_pass(t, room, theta, next != NULL);
    for (int64_t i = 0; i < q; i++) {
        memset(pull + i * r, 0, (size_t)r * sizeof(double));
        for (int64_t j = 0; j < q; j++) {
            double by = t->ridge[i * q + j];
            if (by == 0.0) continue;
            for (int64_t o = 0; o < r; o++) pull[i * r + o] += by * theta[j * r + o];
        }
        for (int64_t o = 0; o < r; o++) value += pull[i * r + o] * theta[i * r + o];
    }
    if (next != NULL) irls_solve(t, room, pull, theta, next);
    return value;
}

static double *irls_take(double **from, int64_t count) {
    double *here = *from;
    *from += count;
    return here;
}

/* Room for fits of a task, and `more` arrays like θ; NULL where there is no memory. */
static void *irls_room(const IrlsTask *t, IrlsRoom *room, int64_t more, double **thetas) {
    int64_t q = t->q, r = t->r, width = q + r + IRLS_HIGH, align = sizeof(irls_vec);
    int64_t tile = IRLS_TILE / width / IRLS_LANES * IRLS_LANES;
    room->tile = tile < IRLS_LEAST ? IRLS_LEAST : tile > IRLS_MOST ? IRLS_MOST : tile;
    room->whole = t->n / IRLS_LANES * IRLS_LANES;
    int64_t sums = irls_blocks(q, r) * IRLS_HIGH * IRLS_WIDE * IRLS_LANES;
    int64_t count = sums + (width + 1) * (IRLS_LANES + room->tile) + q * (q + r) + more * q * r;
    char *memory = calloc(1, (size_t)count * sizeof(double) + (size_t)align);
    if (memory == NULL) return NULL;
    double *at = (double *)(memory + (align - (int64_t)((uintptr_t)memory % (uintptr_t)align)));
    room->sums = (irls_vec *)irls_take(&at, sums);
    room->end = irls_take(&at, width * IRLS_LANES);
    room->end_w = irls_take(&at, IRLS_LANES);
    room->scaled = irls_take(&at, width * room->tile);
    room->length = irls_take(&at, room->tile);
    room->system = irls_take(&at, q * (q + r));
    *thetas = at;
    for (int64_t i = room->whole; i < t->n; i++) {
        room->end_w[i - room->whole] = t->w[i];
        for (int64_t o = 0; o < r; o++)
            room->end[(q + o) * IRLS_LANES + i - room->whole] = t->T[o * t->n + i];
    }
    return memory;
}

static void irls_enter(const IrlsTask *t, IrlsRoom *room, const double *Z) {
    room->Z = Z;
    for (int64_t j = 0; j < t->q; j++)
        for (int64_t i = room->whole; i < t->n; i++)
            room->end[j * IRLS_LANES + i - room->whole] = Z[j * t->n + i];
}

/* From t0 and t1, the step from it, to where another and one from where these lead come. */
static void irls_leap(const IrlsTask *t, const IrlsRoom *room, const double *t0, const double *t1,
                      double *t2, double *far, double *pull, double *out) {
    int64_t size = t->q * t->r;
    double v1 = irls_step(t, room, t1, pull, t2), speed = 0.0, turn = 0.0;
    for (int64_t i = 0; i < size; i++) {
        double first = t1[i] - t0[i], second = t2[i] - 2.0 * t1[i] + t0[i];
        speed += first * first;
        turn += second * second;
    }
    double alpha = turn > 0.0 ? sqrt(speed) / sqrt(turn) : 1.0;
    if (!(alpha >= 1.0)) alpha = 1.0;
    for (int64_t i = 0; i < size; i++) {
        double first = t1[i] - t0[i], second = t2[i] - 2.0 * t1[i] + t0[i];
        far[i] = t0[i] + 2.0 * alpha * first + alpha * alpha * second;
    }
    double v3 = irls_step(t, room, far, pull, out);
    if (!(v3 <= v1 && isfinite(v3))) memcpy(out, t2, (size_t)size * sizeof(double));
}

/* Cycles `first` to `last` of fits on m supports; those that have ended are left as they are.
 *
 * `theta` is where each stands, `best` and `values` the best seen, `state` how each ended. After
 * the last cycle of all (`is_end`) where the fits stand counts if it is better. 0 without memory.
 */
EXPORT int exactk_irls_descend(const IrlsTask *t, int64_t m, const double *Z, int64_t first,
                               int64_t last, int is_end, double tol, double scale, double reach,
                               double ceiling, double *theta, double *best, double *values,
                               uint8_t *state) {
    int64_t size = t->q * t->r;
    size_t bytes = (size_t)size * sizeof(double);
    IrlsRoom room;
    double *work;
    void *memory = irls_room(t, &room, 4, &work);
    if (memory == NULL) return 0;
    double *t1 = work, *t2 = t1 + size, *far = t2 + size, *pull = far + size;
    for (int64_t f = 0; f < m; f++) {
        double *t0 = theta + f * size;
        if (state[f] != IRLS_RUNNING) continue;
        irls_enter(t, &room, Z + f * t->q * t->n);
        for (int64_t cycle = first; cycle < last; cycle++) {
            double v0 = irls_step(t, &room, t0, pull, t1), fell = values[f] - v0;
            if (fell > 0.0) {
                memcpy(best + f * size, t0, bytes);
                values[f] = v0;
            }
            double floor = tol * scale, large = v0 > floor ? v0 : floor;
            int ended = !(fell > tol * large), given_up = v0 - reach * fmax(fell, 0.0) > ceiling;
            if (cycle < 2) ended = ended && fell <= 0.0, given_up = 0;
            if (ended || given_up) {
                state[f] = given_up ? IRLS_LEFT : IRLS_SETTLED;
                break;
            }
            irls_leap(t, &room, t0, t1, t2, far, pull, t0);
        }
        if (is_end && state[f] == IRLS_RUNNING) {
            double now = irls_step(t, &room, t0, pull, NULL);
            if (now < values[f]) {
                memcpy(best + f * size, t0, bytes);
                values[f] = now;
            }
        }
    }
    free(memory);
    return 1;
}

/* At most `count` plain steps of fits on m supports, each until its θ has come to rest.
 *
 * Return the most that were made of any, or -1 without memory; `values`, unless NULL, are the
 * objectives after them.
 */
EXPORT int64_t exactk_irls_steps(const IrlsTask *t, int64_t m, const double *Z, int64_t count,
                                 double still, double *theta, double *values) {
    int64_t size = t->q * t->r, most = 0;
    IrlsRoom room;
    double *work;
    void *memory = irls_room(t, &room, 2, &work);
    if (memory == NULL) return -1;
    double *next = work, *pull = work + size;
    for (int64_t f = 0; f < m; f++) {
        double *at = theta + f * size, moved = 1.0, large = 0.0;
        irls_enter(t, &room, Z + f * t->q * t->n);
        int64_t made = 0;
        for (; made < count && moved > still * large; made++) {
            irls_step(t, &room, at, pull, next);
            moved = large = 0.0;
            for (int64_t i = 0; i < size; i++) {
                moved = fmax(moved, fabs(next[i] - at[i]));
                large = fmax(large, fabs(next[i]));
                at[i] = next[i];
            }
        }
        if (made > most) most = made;
        if (values != NULL) values[f] = irls_step(t, &room, at, pull, NULL);
    }
    free(memory);
    return most;
}

#endif
