/* Branch and bound over sets of m columns: which explain more of the target than a threshold?

   A part of the tree has columns that are in, and free ones of which m are still to be chosen. Its
   level holds what is left of the free columns beside those that are in: their Gram matrix E and
   products C with the target, so that a part is a problem of the same form as the whole. With a
   diagonal Δ such that M = E − Δ is positive semi-definite, and any U, no m free columns explain
   more than <U, MU> + the m largest s_j, s_j = |C_j − (MU)_j|²/Δ_j. U is made of weights z in
   [0, 1] with sum m, improved by alternation; Δ by Newton steps on
   Σ w_j log Δ_j + μ log det(E − Δ), and both are handed down. The last three columns are looked at
   in closed form. See exactk/proof/relaxation.py for the same bound in NumPy. */
#include <stddef.h>

#include "dense.h"

/* First columns of triples that are looked at together. */
enum { FIRSTS = 8 };

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

/* What a column explains of which a share of `doubt` is left may be off by this much. */
#define NEAR 1e-8

/* What a call is given and gives back; mirrored in native.py. */
typedef struct {
    int64_t d, c, k, stride;
    const double *A, *B;        /* d × stride and c × stride */
    double *work;               /* as many numbers as `exactk_proof_room` says */
    volatile int64_t *stop;     /* ends the call when it is not zero */
    double margin;              /* M is kept this much above singular */
    double threshold;           /* sets that explain no more are of no interest */
    int64_t budget;             /* work after which the call ends, in products */
    /* The part to look at. */
    int64_t n_in, n_free;
    int64_t *inside, *free_columns;
    double *delta, *weight;
    /* The best sets found, at most n_best of them. */
    int64_t n_best, n_found;
    double *found_value;
    int64_t *found_sets;
    /* Parts that were not finished, at most k + 1, each with its columns, Δ and z. */
    int64_t n_open;
    double *open_bound;
    int64_t *open_counts, *open_columns;
    double *open_delta, *open_weight;
    int64_t nodes, spent;
    double *habits;             /* what bounds cost and brought, kept from call to call */
    /* Where columns nearly depend on each other there are no bounds, only m <= 3 columns to look
       for, and sets of which less than `doubt` is left of a column are written down. */
    int64_t bounds;
    double doubt;
    int64_t n_doubts, most_doubts, overflow;
    int64_t *doubts;
} Task;

/* Columns that are free at one depth, and what is left of them. */
typedef struct {
    int64_t r, m, n_in;
    double explained, bound;
    int64_t *columns, *in;
    double *E, *C, *delta, *z;
} Level;

typedef struct {
    Task *task;
    int64_t stride, c, lanes, wide;  /* lanes: c filled up; wide: a row with right-hand sides */
    Level *levels;
    double *N, *T, *P, *X, *W, *MU, *K, *E3, *K3;
    double *s, *sorted, *row, *step, *trial, *lefts, *crosses;
    int64_t *active, *kept;
    double inner;               /* <U, MU> of the last bound */
    int halted;
} Tree;

/* Habits by m: how often the diagonal was improved, and what share of the bound that gained. Behind
   them what was spent on diagonals, and in all earlier calls. */
enum { DEPTHS = 64, TRIED = 0, GAINED = 1, ON_DIAGONALS = 0, IN_ALL = 1 };

static double *habit(Tree *tree, int64_t m) {
    return tree->task->habits + 2 * (m < DEPTHS ? m : DEPTHS - 1);
}

/* Keep a set among the best; the threshold rises once there are n_best. */
static void record(Tree *tree, const Level *level, const int64_t *last, int64_t n_last,
                   double value) {
    Task *task = tree->task;
    int64_t at = task->n_found;
    if (!(value > task->threshold)) return;
    if (at == task->n_best) {
        at = 0;
        for (int64_t i = 1; i < task->n_found; i++)
            if (task->found_value[i] < task->found_value[at]) at = i;
    } else {
        task->n_found++;
    }
    int64_t *set = task->found_sets + at * task->k;
    memcpy(set, level->in, (size_t)level->n_in * sizeof(int64_t));
    for (int64_t i = 0; i < n_last; i++) set[level->n_in + i] = level->columns[last[i]];
    task->found_value[at] = value;
    if (task->n_found == task->n_best) {
        double least = task->found_value[0];
        for (int64_t i = 1; i < task->n_found; i++)
            if (task->found_value[i] < least) least = task->found_value[i];
        if (least > task->threshold) task->threshold = least;
    }
}

/* Write down a set whose columns nearly depend on each other: others price it from the rows. */
static void doubtful(Tree *tree, const Level *level, const int64_t *last, int64_t n_last) {
    Task *task = tree->task;
    if (task->n_doubts == task->most_doubts) {
        task->overflow = 1;
        return;
    }
    int64_t *set = task->doubts + task->n_doubts++ * task->k;
    memcpy(set, level->in, (size_t)level->n_in * sizeof(int64_t));
    for (int64_t i = 0; i < n_last; i++) set[level->n_in + i] = level->columns[last[i]];
}

/* Forget free column j: the last one takes its place. */
static void leave_out(Tree *tree, Level *level, int64_t j) {
    int64_t last = --level->r, s = tree->stride;
    if (j == last) return;
    level->columns[j] = level->columns[last];
    level->delta[j] = level->delta[last];
    level->z[j] = level->z[last];
    for (int64_t o = 0; o < tree->c; o++) level->C[o * s + j] = level->C[o * s + last];
    double corner = level->E[last * s + last];
    memcpy(level->E + j * s, level->E + last * s, (size_t)last * sizeof(double));
    for (int64_t i = 0; i < last; i++) level->E[i * s + j] = level->E[j * s + i];
    level->E[j * s + j] = corner;
}

/* Take free column j of `from` in; what is left of the others goes to `to`, which may be the same
   level. */
CLONES static void take_in(Tree *tree, Level *from, Level *to, int64_t j) {
    int64_t r = from->r, s = tree->stride;
    double *row = tree->row, inverse = 1.0 / from->E[j * s + j], gain = 0;
    memcpy(row, from->E + j * s, (size_t)r * sizeof(double));
    for (int64_t i = 0; i < r; i++) {
        const double *source = from->E + i * s;
        double *out = to->E + i * s, by = row[i] * inverse;
        for (int64_t l = 0; l < r; l++) out[l] = source[l] - by * row[l];
    }
    for (int64_t o = 0; o < tree->c; o++) {
        const double *source = from->C + o * s;
        double *out = to->C + o * s, own = source[j], by = own * inverse;
        gain += own * by;
        for (int64_t l = 0; l < r; l++) out[l] = source[l] - by * row[l];
    }
    if (from != to) {
        memcpy(to->columns, from->columns, (size_t)r * sizeof(int64_t));
        memcpy(to->delta, from->delta, (size_t)r * sizeof(double));
        memcpy(to->z, from->z, (size_t)r * sizeof(double));
        memcpy(to->in, from->in, (size_t)from->n_in * sizeof(int64_t));
    }
    to->in[from->n_in] = from->columns[j];
    to->n_in = from->n_in + 1;
    to->r = r;
    to->m = from->m - 1;
    to->explained = from->explained + gain;
    leave_out(tree, to, j);
}

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

/* All sets of one more column. */
static void one_more(Tree *tree, Level *level) {
    int64_t s = tree->stride;
    for (int64_t j = 0; j < level->r; j++) {
        double gain = 0;
        for (int64_t o = 0; o < tree->c; o++) gain += level->C[o * s + j] * level->C[o * s + j];
        if (!(level->E[j * s + j] > tree->task->doubt)) {
            doubtful(tree, level, &j, 1);
            continue;
        }
        record(tree, level, &j, 1, level->explained + gain / level->E[j * s + j]);
    }
}

CLONES static void products(Tree *tree, Level *level, double *K) {
    int64_t r = level->r, s = tree->stride;
    for (int64_t p = 0; p < r; p++) {
        double *row = K + p * s;
        memset(row + p, 0, (size_t)(r - p) * sizeof(double));
        for (int64_t o = 0; o < tree->c; o++)
            add_scaled(row + p, level->C[o * s + p], level->C + o * s + p, r - p);
    }
}

/* All pairs p < q. */
CLONES static void two_more(Tree *tree, Level *level) {
    int64_t r = level->r, s = tree->stride;
    double *excess = tree->trial, *left = tree->row, *own = tree->step, doubt = tree->task->doubt;
    const double *E = level->E, *K = tree->K;
    products(tree, level, tree->K);
    tree->task->spent += r * r * (tree->c + 6) / 2;
    for (int64_t q = 0; q < r; q++) left[q] = E[q * s + q], own[q] = K[q * s + q];
    for (int64_t p = 0; p + 1 < r; p++) {
        const double *e = E + p * s, *k = K + p * s;
        double inverse = 1.0 / e[p], gain = k[p] * inverse, two = 2 * inverse;
        double square = inverse * gain, need = tree->task->threshold - level->explained - gain;
        int64_t any = 0;
        for (int64_t q = p + 1; q < r; q++) {
            /* What q explains beside p, less what is needed, times what is left of q. */
            double a = e[q], remains = left[q] - a * a * inverse;
            double more = own[q] + a * (a * square - two * k[q]) - need * remains;
            excess[q] = remains > doubt ? more : INFINITY;
            any |= excess[q] > 0;
        }
        for (int64_t q = p + 1; any && q < r; q++) {
            double a = e[q], remains = left[q] - a * a * inverse;
            int64_t last[2] = {p, q};
            if (!(excess[q] > 0)) continue;
            if (!(remains > doubt) || !(e[p] > doubt)) {
                doubtful(tree, level, last, 2);
                continue;
            }
            double second = (own[q] + a * (a * square - two * k[q])) / remains;
            record(tree, level, last, 2, level->explained + gain + second);
        }
    }
}

/* Order free columns by s, the largest first, and put E and K in that order into E3 and K3. */
static void sort_columns(Tree *tree, Level *level) {
    int64_t r = level->r, s = tree->stride, *order = tree->active;
    for (int64_t i = 0; i < r; i++) {
        int64_t at = i;
        double own = tree->s[i];
        while (at > 0 && tree->sorted[at - 1] < own) {
            tree->sorted[at] = tree->sorted[at - 1];
            order[at] = order[at - 1];
            at--;
        }
        tree->sorted[at] = own;
        order[at] = i;
    }
    for (int64_t i = 0; i < r; i++) {
        const double *e = level->E + order[i] * s, *k = tree->K;
        for (int64_t j = i; j < r; j++) {
            int64_t low = order[i] < order[j] ? order[i] : order[j];
            int64_t high = order[i] < order[j] ? order[j] : order[i];
            tree->E3[i * s + j] = e[order[j]];
            tree->K3[i * s + j] = k[low * s + high];
        }
    }
}

/* What the first column of a triple leaves of the others. */
typedef struct {
    double inverse, gain, own;
    double *left, *cross;       /* of each later column: what is left, and its squared products */
} First;

/* Triples of p, q and t in (q, end): whether any explains more than needed, or is in doubt. */
CLONES static int any_third(const double *E, const double *K, int64_t s, const First *first,
                            int64_t p, int64_t q, int64_t end, double need, double doubt,
                            double scale, double *excess) {
    const double *e_p = E + p * s, *k_p = K + p * s, *e_q = E + q * s, *k_q = K + q * s;
    const double *left = first->left, *cross = first->cross;
    double a = e_p[q] * first->inverse, b = (k_p[q] - a * first->own) * first->inverse;
    double inverse = 1.0 / left[q], gain = cross[q] * inverse, rest = need - first->gain - gain;
    double square = gain * inverse, two = 2 * inverse;
    /* What is explained is off by rounding over the least eigenvalue of the three, which is about
       what is left of q times what remains of t. */
    double slack = doubt > 0 ? NEAR * doubt / left[q] * (scale + fabs(need)) : 0;
    int64_t any = 0, tells = left[q] > NEAR * doubt;
    for (int64_t t = q + 1; t < end; t++) {
        double e = e_q[t] - a * e_p[t], k = k_q[t] - a * k_p[t] - b * e_p[t];
        double remains = left[t] - e * e * inverse;
        double more = cross[t] + e * (e * square - two * k) - rest * remains;
        excess[t] = tells && remains > doubt ? more + slack : INFINITY;
        any |= excess[t] > 0;
    }
    return any != 0;
}

static void record_triples(Tree *tree, Level *level, const First *first, int64_t p, int64_t q,
                           int64_t end) {
    int64_t s = tree->stride, *order = tree->active;
    const double *E = tree->E3, *K = tree->K3;
    double a = E[p * s + q] * first->inverse, b = (K[p * s + q] - a * first->own) * first->inverse;
    double inverse = 1.0 / first->left[q], gain = first->cross[q] * inverse;
    for (int64_t t = q + 1; t < end; t++) {
        if (!(tree->trial[t] > 0)) continue;
        double e = E[q * s + t] - a * E[p * s + t];
        double k = K[q * s + t] - a * K[p * s + t] - b * E[p * s + t];
        double remains = first->left[t] - e * e * inverse;
        int64_t last[3] = {order[p], order[q], order[t]};
        if (!(remains * (first->left[q] < 1 ? first->left[q] : 1) > tree->task->doubt)) {
            doubtful(tree, level, last, 3);
            continue;
        }
        double third = (first->cross[t] + e * inverse * (e * gain - 2 * k)) / remains;
        record(tree, level, last, 3, level->explained + first->gain + gain + third);
    }
}

/* All triples, some first columns at a time, so that what is read of a second serves all of them.
   Where there are bounds, s tells where to end. Returns the first column that was not done. */
static int64_t three_more(Tree *tree, Level *level) {
    int64_t r = level->r, s = tree->stride;
    Task *task = tree->task;
    const double *E = tree->E3, *K = tree->K3, *bound = tree->sorted;
    products(tree, level, tree->K);
    if (!task->bounds) memset(tree->s, 0, (size_t)r * sizeof(double));
    sort_columns(tree, level);
    task->spent += r * r * (tree->c / 2 + 2);
    double scale = 0;
    for (int64_t i = 0; i < r; i++)
        if (K[i * s + i] > scale) scale = K[i * s + i];
    First firsts[FIRSTS];
    for (int64_t start = 0; start + 2 < r; start += FIRSTS) {
        int64_t n = start + FIRSTS < r ? FIRSTS : r - start;
        int64_t halfway = task->doubt > 0 && 2 * task->n_doubts > task->most_doubts;
        if (*task->stop || (start && (halfway || task->spent > task->budget))) return start;
        for (int64_t i = 0; i < n; i++) {
            int64_t p = start + i;
            const double *e = E + p * s, *k = K + p * s;
            First *first = firsts + i;
            first->left = tree->lefts + i * s, first->cross = tree->crosses + i * s;
            first->inverse = 1.0 / e[p], first->own = k[p], first->gain = k[p] * first->inverse;
            for (int64_t t = p + 1; t < r; t++) {
                double by = e[t] * first->inverse;
                first->left[t] = E[t * s + t] - by * e[t];
                first->cross[t] = K[t * s + t] + by * (by * k[p] - 2 * k[t]);
            }
        }
        for (int64_t q = start + 1; q + 1 < r; q++) {
            int64_t looked = 0;
            for (int64_t p = start; p < q && p < start + n; p++) {
                double need = task->threshold - level->explained;
                int64_t end = r;
                if (task->bounds) {
                    double most = tree->inner + bound[p] + bound[q];
                    if (most + bound[q + 1] <= need) continue;
                    /* Down by halves, then up again to the last that counts. */
                    while (end > q + 2 && most + bound[end - 1] <= need)
                        end = q + 1 + (end - q - 1) / 2;
                    while (end < r && most + bound[end] > need) end++;
                }
                looked += end - q;
                const First *first = firsts + (p - start);
                if (any_third(E, K, s, first, p, q, end, need, task->doubt, scale,
                              tree->trial))
                    record_triples(tree, level, first, p, q, end);
            }
            task->spent += 4 * looked;
            if (!looked) break;
        }
    }
    return r;
}

/* Forget the first columns in the order of `sort_columns`: all sets with them were looked at. */
static void keep_from(Tree *tree, Level *level, int64_t done) {
    int64_t r = level->r, n = 0, *columns = tree->kept;
    for (int64_t i = done; i < r; i++, n++) {
        int64_t j = tree->active[i];
        columns[n] = level->columns[j];
        tree->row[n] = level->delta[j], tree->step[n] = level->z[j];
    }
    memcpy(level->columns, columns, (size_t)n * sizeof(int64_t));
    memcpy(level->delta, tree->row, (size_t)n * sizeof(double));
    memcpy(level->z, tree->step, (size_t)n * sizeof(double));
    level->r = n;
}

/* Write down a part that there was no time for. */
static void leave_open(Tree *tree, const Level *level) {
    Task *task = tree->task;
    int64_t at = task->n_open++, d = task->d;
    int64_t *columns = task->open_columns + at * (task->k + d);
    task->open_bound[at] = level->bound;
    task->open_counts[2 * at] = level->n_in;
    task->open_counts[2 * at + 1] = level->r;
    memcpy(columns, level->in, (size_t)level->n_in * sizeof(int64_t));
    memcpy(columns + task->k, level->columns, (size_t)level->r * sizeof(int64_t));
    memcpy(task->open_delta + at * d, level->delta, (size_t)level->r * sizeof(double));
    memcpy(task->open_weight + at * d, level->z, (size_t)level->r * sizeof(double));
}

static void note_gain(double *seen, double from, double bound) {
    if (isinf(from)) return;
    seen[TRIED] += 1;
    seen[GAINED] += (from - bound) / from;
}

/* A step for the diagonal of many columns takes long: no more time than all the rest. */
static int affordable(Tree *tree, int64_t r) {
    double *cost = tree->task->habits + 2 * DEPTHS, step = 1.0 * r * r * r;
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

/* The free column to decide next: the one without which the bound falls most, by what the other
   columns explain with weights as they are and its own weight shared out among them. */
static int64_t branch_at(Tree *tree, Level *level) {
    int64_t s = tree->stride, n = 0, at = 0;
    double best = -1, edge[2];
    if (isinf(evaluate(tree, level))) return 0;
    top_sum(tree, level->r, level->m, edge);
    for (int64_t j = 0; j < level->r; j++) n += takes_part(level, j);
    invert_triangle(tree->N, n, tree->wide, tree->T);
    tree->task->spent += n * n * n / 6;
    for (int64_t i = 0; i < n; i++) {
        int64_t j = tree->active[i];
        double z = level->z[j], norm = 0;
        double inverse = dot(tree->T + i * tree->wide + i, tree->T + i * tree->wide + i, n - i);
        if (z > 0.9999) continue;
        for (int64_t o = 0; o < tree->c; o++) norm += tree->W[o * s + i] * tree->W[o * s + i];
        double score = norm / inverse - edge[0] * z;
        if (score > best) best = score, at = j;
    }
    return at;
}

static void grow(Tree *tree, Level *level) {
    Task *task = tree->task;
    for (;;) {
        /* No set at all, so nothing to come back to. */
        if (level->m > level->r) return;
        if (tree->halted || *task->stop || task->spent > task->budget) {
            tree->halted = 1;
            leave_open(tree, level);
            return;
        }
        task->nodes++;
        if (level->m == 0) {
            record(tree, level, NULL, 0, level->explained);
            return;
        }
        if (level->m == 1) {
            one_more(tree, level);
            return;
        }
        if (level->m == 2) {
            two_more(tree, level);
            return;
        }
        int64_t fixed = 0;
        int end = task->bounds ? relax(tree, level, &fixed) : OPEN;
        if (end == ENDED) return;
        if (end == FIXED) continue;
        if (level->m == 3) {
            int64_t done = three_more(tree, level);
            if (done < level->r) {
                tree->halted = 1;
                keep_from(tree, level, done);
                leave_open(tree, level);
            }
            return;
        }
        int64_t j = branch_at(tree, level);
        Level *child = level + 1;
        take_in(tree, level, child, j);
        task->spent += level->r * (level->r + tree->c);
        child->bound = level->bound;
        grow(tree, child);
        leave_out(tree, level, j);
    }
}

/* Outputs filled up so that loops over them vectorise. */
static int64_t lanes_of(int64_t c) { return c == 1 ? 1 : (c + LANES - 1) / LANES * LANES; }

/* Lengths of what a tree needs, in numbers. Without bounds one level and three matrices do. */
static int64_t n_levels(int64_t k, int64_t bounds) { return bounds ? k + 1 : 1; }

EXPORT int64_t exactk_proof_room(int64_t d, int64_t c, int64_t k, int64_t stride, int64_t bounds) {
    int64_t lanes = lanes_of(c), header = (int64_t)((sizeof(Level) + 7) / 8);
    int64_t level = stride * (d + c + 2) + d + k + 1 + header;
    int64_t square = bounds ? 3 * (stride + lanes) * d + lanes * d : 0;
    return n_levels(k, bounds) * level + square + 3 * stride * d +
           stride * (2 * c + 7 + 2 * FIRSTS);
}

EXPORT int64_t exactk_proof_layout(void) { return (int64_t)sizeof(Task); }

/* Numbers that a thread keeps from call to call. */
EXPORT int64_t exactk_proof_habits(void) { return 2 * DEPTHS + 2; }

/* Look at the part that the task names, until it is finished or the budget is spent. */
EXPORT void exactk_prove(Task *task) {
    int64_t d = task->d, c = task->c, k = task->k, s = task->stride;
    double *at = task->work;
    Tree tree = {.task = task, .stride = s, .c = c};
    tree.levels = (Level *)at;
    int64_t n = n_levels(k, task->bounds);
    at += n * (int64_t)((sizeof(Level) + 7) / 8);
    for (int64_t i = 0; i < n; i++) {
        Level *level = tree.levels + i;
        level->E = at, at += s * d;
        level->C = at, at += s * c;
        level->delta = at, at += s;
        level->z = at, at += s;
        level->columns = (int64_t *)at, at += d;
        level->in = (int64_t *)at, at += k + 1;
    }
    tree.lanes = lanes_of(c), tree.wide = s + tree.lanes;
    double **wide[] = {&tree.N, &tree.T, &tree.P}, **narrow[] = {&tree.K, &tree.E3, &tree.K3};
    for (int i = 0; task->bounds && i < 3; i++) *wide[i] = at, at += tree.wide * d;
    for (int i = 0; i < 3; i++) *narrow[i] = at, at += s * d;
    if (task->bounds) tree.X = at, at += tree.lanes * d;
    tree.W = at, at += s * c;
    tree.MU = at, at += s * c;
    double **rows[] = {&tree.s, &tree.sorted, &tree.row, &tree.step, &tree.trial};
    for (int i = 0; i < 5; i++) *rows[i] = at, at += s;
    tree.active = (int64_t *)at, at += s;
    tree.kept = (int64_t *)at, at += s;
    tree.lefts = at, at += FIRSTS * s;
    tree.crosses = at;

    Level *root = tree.levels;
    /* All free and all in, then those that are in are taken in one by one. */
    int64_t r = task->n_in + task->n_free;
    for (int64_t i = 0; i < r; i++) {
        int64_t own = i < task->n_in ? task->inside[i] : task->free_columns[i - task->n_in];
        root->columns[i] = own;
        root->delta[i] = i < task->n_in ? 0 : task->delta[i - task->n_in];
        root->z[i] = i < task->n_in ? 1 : task->weight[i - task->n_in];
    }
    for (int64_t i = 0; i < r; i++) {
        const double *row = task->A + root->columns[i] * s;
        for (int64_t l = 0; l < r; l++) root->E[i * s + l] = row[root->columns[l]];
    }
    for (int64_t o = 0; o < c; o++)
        for (int64_t l = 0; l < r; l++) root->C[o * s + l] = task->B[o * s + root->columns[l]];
    root->r = r, root->m = k, root->n_in = 0, root->explained = 0, root->bound = INFINITY;
    for (int64_t i = 0; i < task->n_in; i++) {
        int64_t j = 0;
        while (root->columns[j] != task->inside[i]) j++;
        take_in(&tree, root, root, j);
    }
    grow(&tree, root);
    task->habits[2 * DEPTHS + IN_ALL] += (double)task->spent;
}
