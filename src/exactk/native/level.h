/* What the tree is made of: the task of a call, levels, and how columns come in and go. */
#ifndef EXACTK_LEVEL_H
#define EXACTK_LEVEL_H

#include "dense.h"

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
    double *bound_statistics;             /* what bounds cost and brought, kept from call to call */
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
    return tree->task->bound_statistics + 2 * (m < DEPTHS ? m : DEPTHS - 1);
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

#endif
