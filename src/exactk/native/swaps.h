/* Multinomial logistic regression: prices of swaps by the second order, and fits that start there.
 *
 * A fit takes steps of limited-memory BFGS on top of a Hessian: one of its own, or what a swap knows
 * of that of the support before it.
 */
#ifndef EXACTK_SWAPS_H
#define EXACTK_SWAPS_H

#include "softmax.h"

/* Steps that are remembered. */
enum { PAIRS_KEPT = 8 };
/* How much better than it says a Hessian from elsewhere may be taken to be. */
static const double MOST_BETTER = 10.0;
/* By how much of itself a diagonal is raised at most before a fit is given up. */
static const double MOST_RAISED = 1e3;

/* What a swap foresees: the inverse K of half the Hessian at the fit before it, with member `slot`
   out and a column in that has T = K A and the Schur complement E. */
typedef struct {
    const double *K; /* N x N, N = (k + 1) r */
    const double *T; /* N x r */
    const double *E; /* r x r */
    int64_t slot;
} Foreseen;

/* What each member out (k) and each of m columns in lowers the objective by, to second order. T is
   m x N x r, E m x r x r, gradients m x r; members with held[i] stay. */
CLONES EXPORT int exactk_softmax_prices(int64_t k, int64_t r, int64_t m, const double *K,
                                        const double *theta, const double *T, const double *E,
                                        const double *gradients, const uint8_t *held,
                                        double *gains) {
    const int64_t N = (k + 1) * r;
    double *memory = malloc((size_t)(3 * r * r + 3 * r) * sizeof(double));
    if (!memory) return NO_MEMORY;
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
    return DONE;
}

/* How a fit turns gradients into steps: a factor of the Hessian, or what a swap foresees; and the
   steps since then (limited-memory BFGS). */
typedef struct {
    int64_t N, r, k, stride;
    int own;   /* whether `L` holds a factor */
    double *L; /* N x stride; the upper half is that of the Hessian */
    double *diagonal;
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
    metric->diagonal = cut(piece, N);
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

/* Change `out` so that the member that goes ends at minus `value`, or, without one, at zero. */
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
    double along = 0.0, length = 0.0, fall = 0.0;
    for (int64_t j = 0; j < N; j++) {
        const double y = before[j] - after[j];
        along += s[j] * y, length += s[j] * s[j], fall += y * y;
    }
    /* What is not clearly uphill in curvature is rounding. */
    if (!(along > 1e-12 * sqrt(length) * sqrt(fall))) return;
    for (int64_t j = 0; j < N; j++) keep[j] = share * s[j], fell[j] = before[j] - after[j];
    metric->rho[at] = 1.0 / (share * along);
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

/* When a fit ends: a step promises less than `tol` of max(value, scale), or it cannot come below the
   ceiling any more, though it may fall `reach` times as far as is promised. */
typedef struct {
    int64_t steps, halvings;
    double tol, ceiling, scale, reach;
    double armijo; /* share of a promise that a step must keep */
    double rest;   /* what promises no more than this of max(value, scale) is rounding */
    double jitter; /* added to the diagonal of a Hessian, beside it */
} Ends;

/* Factor the Hessian whose upper half is in L, with its diagonal raised by the share `more`. */
static ALWAYS_INLINE int factor_raised(Metric *metric, double more) {
    const int64_t N = metric->N, stride = metric->stride;
    double largest = 0.0;
    for (int64_t i = 0; i < N; i++)
        if (metric->diagonal[i] > largest) largest = metric->diagonal[i];
    if (largest == 0.0) largest = 1.0;
    for (int64_t i = 0; i < N; i++) {
        const double own = metric->diagonal[i], least = 1e-3 * largest;
        for (int64_t j = 0; j < i; j++) metric->L[i * stride + j] = metric->L[j * stride + i];
        metric->L[i * stride + i] = own + more * (own > least ? own : least);
    }
    return factor(metric->L, N, stride);
}

/* A Hessian of here, raised by `*more`, or by as much more as it takes; 0 if nothing does. */
static ALWAYS_INLINE int renew(const Softmax *s, const double *theta, FitRoom *room, double *more) {
    Metric *metric = &room->metric;
    metric->kept = metric->next = 0;
    half_hessian(s, theta, metric->L, metric->stride, &room->hessian);
    for (int64_t i = 0; i < metric->N; i++)
        metric->diagonal[i] = metric->L[i * metric->stride + i];
    metric->own = factor_raised(metric, *more);
    for (; !metric->own && *more < MOST_RAISED; *more *= 1e3)
        metric->own = factor_raised(metric, 1e3 * *more);
    return metric->own;
}

/* Costs of a look at the rows and of a Hessian, in products. */
static double look_cost(const Softmax *s) {
    return (double)s->n * (double)s->classes * (2.0 * (double)s->k + 16.0);
}

static double hessian_cost(const Softmax *s) {
    const double C = (double)s->classes, q = (double)(s->k + 1), N = q * (C - 1.0);
    return (double)s->n * 0.5 * C * (C - 1.0) * (0.5 * q * (q + 1.0) + 2.0) + look_cost(s) +
           N * N * N / 6.0;
}

/* Fit from `theta`, with what `swap` knows of the Hessian if there is one; SETTLED or DONE. */
static ALWAYS_INLINE int fit(const Softmax *s, double *theta, const Foreseen *swap,
                             const Ends *ends, FitRoom *room, double *value) {
    const int64_t N = (s->k + 1) * (s->classes - 1);
    const double look = look_cost(s), hessian = hessian_cost(s);
    Metric *metric = &room->metric;
    metric->swap = swap, metric->own = 0, metric->kept = metric->next = 0;
    int ready = swap != 0, settled = 0;
    double now = slope(s, theta, room->now, &room->slope);
    if (ends->steps > 0 && !(now <= 2.0 * ends->scale * log((double)s->classes))) {
        /* Worse than to know nothing: where classes are separated the second order leads anywhere. */
        memset(theta, 0, (size_t)N * sizeof(double));
        now = slope(s, theta, room->now, &room->slope);
        ready = 0;
    }
    /* Of the last step: what it promised, and how much better than that it was. */
    double last = 0.0, better = 1.0, more = ends->jitter;
    for (int64_t i = 0; i < ends->steps && isfinite(now); i++) {
        const double size = now > ends->scale ? now : ends->scale, target = ends->tol * size;
        double promise = 0.0;
        for (int fresh = !ready;; fresh = 1) {
            if (fresh) {
                if (!renew(s, theta, room, &more)) goto end;
                ready = 1, last = 0.0, better = 1.0;
            }
            turn(metric, room->now, room->step);
            promise = better * dot_of(room->now, room->step, N);
            if (!isfinite(promise) || promise < 0) {
                if (fresh) goto end;
                continue;
            }
            if (fresh || promise <= target) break;
            /* Steps that are left if they go on as the last did, or a Hessian and one or two. */
            const double rate = last > 0 ? promise / last : 0.1;
            const double left = rate < 0.9 ? log(promise / target) / -log(rate) : 1e3;
            if (left * look <= hessian + 2.0 * look) break;
            /* A new one would say the same. */
            if (now - ends->reach * promise > ends->ceiling && i > 0) break;
        }
        const int is_last = promise <= target;
        /* Before the first step it is not known how far a Hessian from elsewhere is off. */
        const double trust = i == 0 && !metric->own ? MOST_BETTER : 1.0;
        if (!is_last && now - trust * ends->reach * promise > ends->ceiling) break;
        double share = 1.0, then = 0.0;
        int moved = 0;
        for (int64_t half = is_last ? 1 : ends->halvings; half > 0; half--, share *= 0.5) {
            for (int64_t j = 0; j < N; j++) room->trial[j] = theta[j] + share * room->step[j];
            then = slope(s, room->trial, room->next, &room->slope);
            if (then <= now - 2.0 * ends->armijo * share * promise) {
                moved = 1;
                break;
            }
        }
        if (moved) {
            /* Where the loss fell by more than was promised, the next promise is too small, too. */
            const double ratio = share == 1.0 ? better * (now - then) / promise : 1.0;
            better = ratio < 1.0 ? 1.0 : ratio > MOST_BETTER ? MOST_BETTER : ratio;
            remember(metric, room->step, share, room->now, room->next);
            memcpy(theta, room->trial, (size_t)N * sizeof(double));
            double *swapped = room->now;
            room->now = room->next, room->next = swapped;
            now = then, last = promise;
            if (share < 1.0) ready = 0;
            more = ends->jitter;
        }
        settled = is_last || (!moved && promise <= ends->rest * size);
        if (settled) break;
        if (!moved) {
            /* Where all rows are certain a Hessian is next to nothing, and steps lead too far. */
            if (metric->own && metric->kept == 0) more *= 1e3;
            if (more > MOST_RAISED) break;
            ready = 0;
        }
    }
end:
    *value = now;
    return settled ? SETTLED : DONE;
}

/* Fit on the members from `theta`, which is overwritten; *value is the objective. SETTLED, DONE,
   NO_MEMORY or NO_COLUMN. */
CLONES EXPORT int exactk_softmax_fit(const Softmax *s, double *theta, const Ends *ends,
                                     double *value) {
    FitRoom room;
    Piece piece = {0, 0};
    double *memory = 0;
    if (outside(s, s->members, s->k)) return NO_COLUMN;
    for (;;) {
        cut_fit(&piece, s, 0, &room);
        if (memory) break;
        piece.next = memory = malloc((size_t)piece.need * sizeof(double));
        if (!memory) return NO_MEMORY;
    }
    const int done = fit(s, theta, 0, ends, &room, value);
    free(memory);
    return done;
}

/* Fit several supports that are one swap away from that of `s`, whose fit is `theta`: member
   slots[i] out, column columns[at[i]] in. K, T, E and gradients are of that fit (see `Foreseen`; T
   and E of all columns). If there is a ceiling, a fit that is better is the next one's. Members of the
   i-th support are those that stay, then the new one. */
CLONES EXPORT int exactk_softmax_swaps(const Softmax *s, const double *theta, const double *K,
                                       const double *T, const double *E, const double *gradients,
                                       const int64_t *columns, int64_t count, const int64_t *slots,
                                       const int64_t *at, const Ends *given, double *thetas,
                                       double *values, uint8_t *settled) {
    const int64_t k = s->k, r = s->classes - 1, N = (k + 1) * r;
    const size_t one = (size_t)r * sizeof(double);
    Ends ends = *given;
    FitRoom room;
    Softmax other = *s;
    int64_t *members;
    Piece piece = {0, 0};
    double *memory = 0;
    for (int64_t i = 0; i < count; i++)
        if (outside(s, columns + at[i], 1) || slots[i] < 0 || slots[i] >= k) return NO_COLUMN;
    if (outside(s, s->members, k)) return NO_COLUMN;
    for (;;) {
        cut_fit(&piece, s, 1, &room);
        members = (int64_t *)cut(&piece, k);
        if (memory) break;
        piece.next = memory = malloc((size_t)piece.need * sizeof(double));
        if (!memory) return NO_MEMORY;
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
            memcpy(out, theta, (size_t)slot * one);
            memcpy(out + slot * r, theta + (slot + 1) * r, (size_t)(k - 1 - slot) * one);
            memset(out + (k - 1) * r, 0, one);
            memcpy(out + k * r, theta + k * r, one);
        }
        settled[i] = fit(&other, out, ready ? &known : 0, &ends, &room, values + i) == SETTLED;
        /* Without a ceiling each is wanted for itself. */
        if (isfinite(given->ceiling) && settled[i] && values[i] < ends.ceiling)
            ends.ceiling = values[i];
    }
    free(memory);
    return DONE;
}

#endif
