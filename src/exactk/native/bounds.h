/* The bound of a part, how it is improved, and what it decides. */
#ifndef EXACTK_BOUNDS_H
#define EXACTK_BOUNDS_H

#include "level.h"

/* No weight falls below this, so that it soon comes back where s says that it should. */
#define LEAST_WEIGHT 1e-3
/* Columns of which Δ/z is above this take no part in U: it would be next to nothing. */
#define STIFF 25.0
/* The barrier that keeps M positive definite, as a share of Σw/r: wide enough that a diagonal which
   is handed down still has room to grow. */
#define BARRIER 0.2
/* Weights are improved as long as a round gains this share of the way that is left. */
#define WORTHWHILE 0.4
/* The diagonal is improved where the way left is at most this many usual gains, and once anyway
   in parts with so many columns to choose that what is below will pay for it. */
#define REACH 1.5
enum { LARGE = 5, DIAGONAL_STEPS = 2, ROUNDS = 40 };
/* Columns from which on a diagonal must not cost more than all the rest. */
enum { MANY = 200 };

/* Scale weights to the sum m, none above 1. */
static void normalise(double *z, int64_t r, int64_t m) {
    if (m >= r) {
        for (int64_t i = 0; i < r; i++) z[i] = 1;
        return;
    }
    for (int round = 0; round < 30; round++) {
        double below = 0;
        int64_t full = 0;
        for (int64_t i = 0; i < r; i++) {
            if (z[i] >= 1) full++;
            else below += z[i];
        }
        double want = (double)(m - full);
        if (full >= m || below <= 0) {
            /* Too many at the top: bring all down a little and try again. */
            for (int64_t i = 0; i < r; i++) z[i] = 0.9 * (z[i] < 1 ? z[i] : 1) + 1e-3;
            continue;
        }
        double by = want / below;
        int above = 0;
        for (int64_t i = 0; i < r; i++)
            if (z[i] < 1) {
                z[i] *= by;
                if (z[i] >= 1) {
                    z[i] = 1;
                    above = 1;
                }
            }
        if (!above && by > 0.999999 && by < 1.000001) return;
    }
}

static ALWAYS_INLINE int takes_part(const Level *level, int64_t j) {
    return level->delta[j] < STIFF * level->z[j];
}

/* One bound of what m free columns explain, from the weights: sets s and `inner`. */
CLONES static double evaluate(Tree *tree, Level *level) {
    int64_t r = level->r, s = tree->stride, c = tree->c, n = 0;
    int64_t *active = tree->active;
    for (int64_t j = 0; j < r; j++)
        if (takes_part(level, j)) active[n++] = j;
    double *N = tree->N, *W = tree->W, *MU = tree->MU;
    int64_t lanes = tree->lanes, wide = tree->wide;
    for (int64_t i = 0; i < n; i++) {
        const double *row = level->E + active[i] * s;
        double *out = N + i * wide;
        for (int64_t l = i; l < n; l++) out[l] = row[active[l]];
        out[i] += level->delta[active[i]] * (1.0 / level->z[active[i]] - 1.0);
        for (int64_t o = 0; o < c; o++) out[n + o] = level->C[o * s + active[i]];
        for (int64_t o = c; o < lanes; o++) out[n + o] = 0;
    }
    if (!cholesky(N, n, lanes, wide, 0.0)) {
        /* No bound at all, rather than that of another part. */
        for (int64_t j = 0; j < r; j++) tree->s[j] = INFINITY;
        tree->inner = 0;
        return INFINITY;
    }
    back_substitute(N, n, lanes, wide, tree->X);
    for (int64_t i = 0; i < n; i++)
        for (int64_t o = 0; o < c; o++) W[o * s + i] = tree->X[i * lanes + o];
    double inner = 0, *sum = tree->s;
    memset(sum, 0, (size_t)r * sizeof(double));
    for (int64_t o = 0; o < c; o++) {
        double *mu = MU + o * s;
        const double *w = W + o * s, *own = level->C + o * s;
        memset(mu, 0, (size_t)r * sizeof(double));
        int64_t i = 0;
        for (; i + 4 <= n; i += 4) {
            const double *r0 = level->E + active[i] * s, *r1 = level->E + active[i + 1] * s;
            const double *r2 = level->E + active[i + 2] * s, *r3 = level->E + active[i + 3] * s;
            double w0 = w[i], w1 = w[i + 1], w2 = w[i + 2], w3 = w[i + 3];
            for (int64_t j = 0; j < r; j++)
                mu[j] += w0 * r0[j] + w1 * r1[j] + (w2 * r2[j] + w3 * r3[j]);
        }
        for (; i < n; i++) add_scaled(mu, w[i], level->E + active[i] * s, r);
        for (i = 0; i < n; i++) {
            int64_t j = active[i];
            mu[j] -= level->delta[j] * w[i];
            inner += w[i] * mu[j];
        }
        for (int64_t j = 0; j < r; j++) {
            double left = own[j] - mu[j];
            sum[j] += left * left;
        }
    }
    for (int64_t j = 0; j < r; j++) sum[j] /= level->delta[j];
    tree->inner = inner;
    tree->task->spent += n * n * (n / 3 + c) + n * r * c;
    return inner;
}

/* The sum of the m largest s; `edge` gets the m-th and the next. */
static double top_sum(Tree *tree, int64_t r, int64_t m, double edge[2]) {
    double sum = 0, *x = tree->sorted;
    memcpy(x, tree->s, (size_t)r * sizeof(double));
    edge[0] = select_largest(x, r, m);
    edge[1] = 0;
    for (int64_t i = 0; i < m; i++) sum += x[i];
    for (int64_t i = m; i < r; i++)
        if (x[i] > edge[1]) edge[1] = x[i];
    return sum;
}

static void improve_weights(Tree *tree, Level *level, double edge) {
    double *z = level->z;
    if (!(edge > 0)) return;
    for (int64_t j = 0; j < level->r; j++) {
        double ratio = tree->s[j] / edge, base = z[j] > LEAST_WEIGHT ? z[j] : LEAST_WEIGHT;
        z[j] = base * sqrt(ratio * sqrt(ratio));
        if (z[j] > 1) z[j] = 1;
    }
    normalise(z, level->r, level->m);
}

/* A Newton step for the diagonal; whether it could be made. */
CLONES static int improve_diagonal(Tree *tree, Level *level, double open) {
    int64_t r = level->r, s = tree->stride, wide = tree->wide;
    double *N = tree->N, *T = tree->T, *P = tree->P, *step = tree->step, *w = tree->sorted;
    double total = 0, most = 0;
    for (int64_t j = 0; j < r; j++) {
        w[j] = level->z[j] * (1 - level->z[j]) * tree->s[j];
        total += w[j];
        if (w[j] > most) most = w[j];
    }
    if (!(total > 0)) return 0;
    for (int64_t j = 0; j < r; j++)
        if (w[j] < 1e-6 * most) w[j] = 1e-6 * most;
    double mu = BARRIER * (open < total ? open : total) / (double)r;
    for (int64_t i = 0; i < r; i++) {
        memcpy(N + i * wide + i, level->E + i * s + i, (size_t)(r - i) * sizeof(double));
        N[i * wide + i] -= level->delta[i];
    }
    tree->task->spent += 2 * r * r * r / 3;
    if (!cholesky(N, r, 0, wide, 0.0)) return 0;
    invert_factored(N, r, wide, T, P);
    for (int64_t i = 0; i < r; i++) {
        double delta = level->delta[i];
        for (int64_t l = i; l < r; l++) N[i * wide + l] = mu * P[i * wide + l] * P[i * wide + l];
        N[i * wide + i] += w[i] / (delta * delta);
        N[i * wide + r] = w[i] / delta - mu * P[i * wide + i];
    }
    if (!cholesky(N, r, 1, wide, 0.0)) return 0;
    back_substitute(N, r, 1, wide, step);
    double length = 1;
    for (int64_t j = 0; j < r; j++)
        if (step[j] * length < -0.9 * level->delta[j]) length = -0.9 * level->delta[j] / step[j];
    for (int attempt = 0; attempt < 6; attempt++, length *= 0.4) {
        for (int64_t i = 0; i < r; i++) {
            memcpy(N + i * wide + i, level->E + i * s + i, (size_t)(r - i) * sizeof(double));
            N[i * wide + i] -= level->delta[i] + length * step[i] + tree->task->margin;
        }
        tree->task->spent += r * r * r / 6;
        if (cholesky(N, r, 0, wide, 0.0)) {
            for (int64_t j = 0; j < r; j++) level->delta[j] += length * step[j];
            return 1;
        }
    }
    return 0;
}

/* Fix free columns by the last bound: out those that cannot be among the best, in those that
   cannot be spared. Returns how many. */
static int64_t fix_columns(Tree *tree, Level *level, double bound, const double edge[2],
                           double need) {
    int64_t fixed = 0;
    /* Backwards, as the last column takes the place of one that goes; s goes with it. */
    for (int64_t j = level->r - 1; j >= 0; j--) {
        double own = tree->s[j];
        int out = own < edge[0] && bound - edge[0] + own <= need;
        int in = own >= edge[0] && bound - own + edge[1] <= need && level->m > 0;
        if (!(out || in)) continue;
        int64_t last = level->r - 1;
        if (in) take_in(tree, level, level, j);
        else leave_out(tree, level, j);
        tree->s[j] = tree->s[last];
        tree->task->spent += in ? level->r * level->r : level->r;
        fixed++;
    }
    return fixed;
}

static void note_gain(double *seen, double from, double bound) {
    if (isinf(from)) return;
    seen[TRIED] += 1;
    seen[GAINED] += (from - bound) / from;
}

/* A step for the diagonal of many columns takes long: no more time than all the rest. */
static int affordable(Tree *tree, int64_t r) {
    double *cost = tree->task->bound_statistics + 2 * DEPTHS, step = 1.0 * r * r * r;
    if (r > MANY && cost[ON_DIAGONALS] + step > cost[IN_ALL] + (double)tree->task->spent) return 0;
    cost[ON_DIAGONALS] += 2 * step;
    return 1;
}

enum { ENDED, FIXED, OPEN };

/* Try to end a part by bounds, or at least to fix columns of it. */
static int relax(Tree *tree, Level *level, int64_t *fixed) {
    Task *task = tree->task;
    int64_t m = level->m, diagonal_steps = 0;
    double *seen = habit(tree, m), before = INFINITY, from = INFINITY;
    normalise(level->z, level->r, m);
    for (int round = 0; round < ROUNDS; round++) {
        double edge[2], bound = evaluate(tree, level), need = task->threshold - level->explained;
        if (isinf(bound)) return OPEN;
        bound += top_sum(tree, level->r, m, edge);
        if (level->explained + bound < level->bound) level->bound = level->explained + bound;
        if (bound <= need) {
            note_gain(seen, from, bound);
            return ENDED;
        }
        if (m == 3) return OPEN;
        double open = bound - need, gained = before - bound;
        before = bound;
        /* Goes on as long as the way that is left may be made at this pace. */
        if (gained > WORTHWHILE * open && !*task->stop) {
            improve_weights(tree, level, edge[0]);
            continue;
        }
        note_gain(seen, from, bound);
        from = INFINITY;
        *fixed = fix_columns(tree, level, bound, edge, need);
        if (*fixed) return FIXED;
        double share = open / bound, usual = seen[GAINED] / (seen[TRIED] + 1e-9);
        int pays = seen[TRIED] < 10 || share < REACH * usual || (m >= LARGE && !diagonal_steps);
        if (!pays || diagonal_steps++ == DIAGONAL_STEPS || !affordable(tree, level->r) ||
            *task->stop || !improve_diagonal(tree, level, open))
            return OPEN;
        from = bound;
        before = INFINITY;
    }
    return OPEN;
}

#endif
