/* Branch and bound over sets of m columns: which explain more of the target than a threshold?

   A part of the tree has columns that are in, and free ones of which m are still to be chosen. Its
   level holds what is left of the free columns beside those that are in: their Gram matrix E and
   products C with the target, so that a part is a problem of the same form as the whole. With a
   diagonal Δ such that M = E − Δ is positive semi-definite, and any U, no m free columns explain
   more than <U, MU> + the m largest s_j, s_j = |C_j − (MU)_j|²/Δ_j. U is made of weights z in
   [0, 1] with sum m, improved by alternation; Δ by Newton steps on
   Σ w_j log Δ_j + μ log det(E − Δ), and both are handed down. The last three columns are looked at
   in closed form. See exactk/proof/bounds.py for the same bound in NumPy. */
#include "bounds.h"
#include "closed.h"

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
EXPORT int64_t exactk_proof_statistics_size(void) { return 2 * DEPTHS + 2; }

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
    task->bound_statistics[2 * DEPTHS + IN_ALL] += (double)task->spent;
}
