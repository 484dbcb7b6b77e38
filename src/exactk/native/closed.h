/* The last columns in closed form: all sets of one, two or three more. */
#ifndef EXACTK_CLOSED_H
#define EXACTK_CLOSED_H

#include "level.h"

/* First columns of triples that are looked at together. */
enum { FIRSTS = 8 };

/* What a column explains of which a share of `doubt` is left may be off by this much. */
#define NEAR 1e-8

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

#endif
