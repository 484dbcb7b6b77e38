/* The moves of exactk/search/state.py in C: same formulas, same bounds, same ties.
 *
 * Built as a plain shared library without Python or NumPy headers and called through ctypes on
 * arrays that NumPy owns. Every function takes the one struct below; the Python class NativeState
 * mirrors it field by field.
 */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "native.h"

typedef struct {
    int64_t d, c, room, size;
    double slack, total, objective;
    const double *diagonal, *floor, *cross;
    int64_t *S;
    double *AS; /* room x d */
    double *G;  /* room x room */
    double *V;  /* room x c */
    double *C;  /* c x d */
    double *D;  /* d */
    double *row, *bound; /* d each: work space */
    double *small;       /* 2 * room + c: work space */
    double *lanes;       /* (2 * room + c) * LANES: work space */
    double *square;      /* room x room: work space */
    double gain;         /* of the move found */
    int64_t slot, column;
    double penalty;               /* ridge on the diagonal of A */
    const double *const *columns; /* where each Gram column lies, NULL if not at hand */
    const uint64_t *marks;        /* d random numbers; those of a support add up to its key */
    const uint64_t *known;        /* keys of ends that are known */
    int64_t n_known, swaps;
    int64_t fixed; /* the first so many slots are never let go */
} State;

/* row = sum over members of weight_i * AS_i, in strips that stay in the first cache. */
static ALWAYS_INLINE void combine(const State *s, const double *weight, double *row) {
    const int64_t strip = 1024;
    for (int64_t start = 0; start < s->d; start += strip) {
        const int64_t stop = start + strip < s->d ? start + strip : s->d;
        int64_t i = 0;
        for (int64_t j = start; j < stop; j++) row[j] = 0.0;
        for (; i + 4 <= s->size; i += 4) {
            const double w0 = weight[i], w1 = weight[i + 1], w2 = weight[i + 2], w3 = weight[i + 3];
            const double *a0 = s->AS + i * s->d, *a1 = a0 + s->d, *a2 = a1 + s->d, *a3 = a2 + s->d;
            for (int64_t j = start; j < stop; j++)
                row[j] += w0 * a0[j] + w1 * a1[j] + w2 * a2[j] + w3 * a3[j];
        }
        for (; i < s->size; i++) {
            const double w = weight[i], *a = s->AS + i * s->d;
            for (int64_t j = start; j < stop; j++) row[j] += w * a[j];
        }
    }
}

/* C += scale * (v outer row), D += factor * row^2 */
static ALWAYS_INLINE void rank_one(State *s, const double *v, double scale, double factor,
                            const double *restrict row) {
    for (int64_t o = 0; o < s->c; o++) {
        const double w = scale * v[o];
        double *restrict C = s->C + o * s->d;
        for (int64_t j = 0; j < s->d; j++) C[j] += w * row[j];
    }
    double *restrict D = s->D;
    for (int64_t j = 0; j < s->d; j++) D[j] += factor * row[j] * row[j];
}

/* Take in column p, whose part of A stands in row `size` of AS. */
static ALWAYS_INLINE void border(State *s, int64_t p) {
    const int64_t k = s->size, d = s->d, c = s->c, room = s->room;
    double *T = s->small, *v = s->small + 2 * room;
    const double D_p = s->D[p];
    double square = 0.0;
    for (int64_t o = 0; o < c; o++) {
        v[o] = s->C[o * d + p];
        square += v[o] * v[o];
    }
    for (int64_t i = 0; i < k; i++) {
        double t = 0.0;
        for (int64_t l = 0; l < k; l++) t += s->G[i * room + l] * s->AS[l * d + p];
        T[i] = t;
    }
    combine(s, T, s->row);
    const double *restrict column = s->AS + k * d;
    double *restrict row = s->row;
    for (int64_t j = 0; j < d; j++) row[j] = column[j] - row[j];
    rank_one(s, v, -1.0 / D_p, -1.0 / D_p, row);
    s->D[p] = 0.0;
    for (int64_t i = 0; i < k; i++) {
        for (int64_t l = 0; l < k; l++) s->G[i * room + l] += T[i] * T[l] / D_p;
        s->G[i * room + k] = s->G[k * room + i] = -T[i] / D_p;
        for (int64_t o = 0; o < c; o++) s->V[i * c + o] -= T[i] * v[o] / D_p;
    }
    s->G[k * room + k] = 1.0 / D_p;
    for (int64_t o = 0; o < c; o++) s->V[k * c + o] = v[o] / D_p;
    s->objective -= square / D_p;
    s->S[k] = p;
    s->size = k + 1;
}

/* Drop the member in a slot; the last member takes that slot. */
static ALWAYS_INLINE void drop(State *s, int64_t slot) {
    const int64_t k = s->size, d = s->d, c = s->c, room = s->room, last = k - 1;
    double *g = s->small, *v = s->small + 2 * room;
    double square = 0.0;
    for (int64_t i = 0; i < k; i++) g[i] = s->G[slot * room + i];
    for (int64_t o = 0; o < c; o++) {
        v[o] = s->V[slot * c + o];
        square += v[o] * v[o];
    }
    const double G_ii = g[slot];
    combine(s, g, s->row);
    s->objective += square / G_ii;
    rank_one(s, v, 1.0 / G_ii, 1.0 / G_ii, s->row);
    for (int64_t i = 0; i < k; i++) {
        for (int64_t l = 0; l < k; l++) s->G[i * room + l] -= g[i] * g[l] / G_ii;
        for (int64_t o = 0; o < c; o++) s->V[i * c + o] -= g[i] * v[o] / G_ii;
    }
    if (slot != last) {
        memcpy(s->AS + slot * d, s->AS + last * d, (size_t)d * sizeof(double));
        memcpy(s->V + slot * c, s->V + last * c, (size_t)c * sizeof(double));
        memcpy(s->G + slot * room, s->G + last * room, (size_t)k * sizeof(double));
        for (int64_t i = 0; i < k; i++) s->G[i * room + slot] = s->G[i * room + last];
        s->S[slot] = s->S[last];
    }
    s->size = last;
    for (int64_t i = 0; i < last; i++) s->D[s->S[i]] = 0.0;
}

/* bound_p = ||C_p||^2 / D_p, the gain of adding p; -inf where p depends on the members. No finite
 * mark would do: gains are in the units of y squared, and so is the slack they are compared with. */
static ALWAYS_INLINE void addition_gains(State *s) {
    double *restrict bound = s->bound;
    const double *restrict D = s->D, *restrict floor_ = s->floor;
    const double *restrict C = s->C;
    for (int64_t j = 0; j < s->d; j++) bound[j] = C[j] * C[j];
    for (int64_t o = 1; o < s->c; o++) {
        C = s->C + o * s->d;
        for (int64_t j = 0; j < s->d; j++) bound[j] += C[j] * C[j];
    }
    for (int64_t j = 0; j < s->d; j++) {
        const double gain = bound[j] / (D[j] > floor_[j] ? D[j] : 1.0);
        bound[j] = D[j] > floor_[j] ? gain : -INFINITY;
    }
}

CLONES EXPORT int exactk_best_addition(State *s) {
    addition_gains(s);
    double best = -INFINITY;
    for (int64_t j = 0; j < s->d; j++) best = s->bound[j] > best ? s->bound[j] : best;
    if (!(best >= 0.0)) return 0;
    int64_t j = 0;
    while (s->bound[j] < best - s->slack) j++;
    s->gain = s->bound[j];
    s->slot = -1;
    s->column = j;
    return 1;
}

/* Columns priced together: enough to fill vector registers, few enough for the first cache. */
enum { LANES = 64 };

/* Price the swaps of every member for up to LANES columns; update the move if one is better.
 * Lanes past `n` repeat the last column. */
static ALWAYS_INLINE void price(State *s, int64_t *columns, int64_t n, const double *losses,
                         const double *inverse_G_ii) {
    const int64_t k = s->size, d = s->d, c = s->c, room = s->room;
    double *a = s->lanes, *C = a + k * LANES, *gains = C + c * LANES;
    double C2[LANES], D[LANES], low[LANES], T[LANES], VC[LANES], best[LANES];
    for (int64_t j = n; j < LANES; j++) columns[j] = columns[n - 1];
    for (int64_t l = 0; l < k; l++)
        for (int64_t j = 0; j < LANES; j++) a[l * LANES + j] = s->AS[l * d + columns[j]];
    for (int64_t j = 0; j < LANES; j++) {
        C2[j] = 0.0;
        D[j] = s->D[columns[j]];
        low[j] = s->floor[columns[j]];
        best[j] = -INFINITY;
    }
    for (int64_t o = 0; o < c; o++)
        for (int64_t j = 0; j < LANES; j++) {
            C[o * LANES + j] = s->C[o * d + columns[j]];
            C2[j] += C[o * LANES + j] * C[o * LANES + j];
        }
    for (int64_t i = s->fixed; i < k; i++) {
        const double *G_i = s->G + i * room, *V_i = s->V + i * c;
        for (int64_t j = 0; j < LANES; j++) T[j] = VC[j] = 0.0;
        for (int64_t l = 0; l < k; l++) {
            const double g = G_i[l];
            for (int64_t j = 0; j < LANES; j++) T[j] += g * a[l * LANES + j];
        }
        for (int64_t o = 0; o < c; o++) {
            const double v = V_i[o];
            for (int64_t j = 0; j < LANES; j++) VC[j] += v * C[o * LANES + j];
        }
        const double loss = losses[i], inverse = inverse_G_ii[i];
        for (int64_t j = 0; j < LANES; j++) {
            const double ratio = T[j] * inverse, left = D[j] + T[j] * ratio;
            /* ||V_i||^2 = loss * G_ii */
            const double top = C2[j] + ratio * (2.0 * VC[j] + T[j] * loss);
            const double gain = left > low[j] ? top / left - loss : -INFINITY;
            gains[i * LANES + j] = gain;
            best[j] = gain > best[j] ? gain : best[j];
        }
    }
    for (int64_t j = 0; j < n; j++) {
        const int better = best[j] > s->gain + s->slack;
        if (!(best[j] > -INFINITY)) continue;
        if (!better && !(best[j] >= s->gain - s->slack && columns[j] < s->column)) continue;
        int64_t slot = -1;
        for (int64_t i = s->fixed; i < k; i++)
            if (gains[i * LANES + j] >= best[j] - s->slack && (slot < 0 || s->S[i] < s->S[slot]))
                slot = i;
        if (slot < 0) continue;
        s->gain = gains[slot * LANES + j];
        s->slot = slot;
        s->column = columns[j];
    }
}

static ALWAYS_INLINE int best_swap(State *s) {
    const int64_t k = s->size, d = s->d, c = s->c, room = s->room;
    double *losses = s->small, *inverse = s->small + room;
    double cheapest = INFINITY;
    if (k <= s->fixed) return 0;
    for (int64_t i = s->fixed; i < k; i++) {
        double square = 0.0;
        for (int64_t o = 0; o < c; o++) square += s->V[i * c + o] * s->V[i * c + o];
        inverse[i] = 1.0 / s->G[i * room + i];
        losses[i] = square * inverse[i];
        cheapest = losses[i] < cheapest ? losses[i] : cheapest;
    }
    addition_gains(s);
    double *restrict bound = s->bound, *restrict reach = s->row;
    const double *restrict A = s->diagonal, *restrict D = s->D, *restrict floor_ = s->floor;
    for (int64_t j = 0; j < d; j++) {
        const double stand_in = A[j] / (D[j] > floor_[j] ? D[j] : (A[j] > 0.0 ? A[j] : 1.0));
        reach[j] = bound[j] * (4.0 * (stand_in > 1.0 ? stand_in : 1.0) - 2.0);
    }
    for (int64_t j = 0; j < d; j++) {
        /* Columns that depend on the members may still replace the one they depend on. */
        const double value = !(D[j] > floor_[j]) && A[j] > 0.0 ? INFINITY : bound[j];
        bound[j] = value == INFINITY || reach[j] > cheapest ? value : -INFINITY;
    }
    for (int64_t i = 0; i < k; i++) bound[s->S[i]] = -INFINITY;
    int64_t columns[LANES], n = 0;
    s->gain = 0.0;
    s->slot = 0;
    s->column = d;
    /* A first look at the highest bound in each of LANES stretches: the better the swap in hand,
     * the fewer of the others need pricing. */
    const int64_t stretch = (d + LANES - 1) / LANES;
    for (int64_t start = 0; start < d; start += stretch) {
        const int64_t stop = start + stretch < d ? start + stretch : d;
        int64_t high = start;
        for (int64_t j = start + 1; j < stop; j++) high = bound[j] > bound[high] ? j : high;
        if (bound[high] > 0.0) columns[n++] = high;
    }
    if (n == 0) return 0;
    price(s, columns, n, losses, inverse);
    n = 0;
    for (int64_t j = 0; j < d; j++) {
        if (!(bound[j] > 0.0) || bound[j] <= s->gain - s->slack) continue;
        columns[n++] = j;
        if (n == LANES) {
            price(s, columns, n, losses, inverse);
            n = 0;
        }
    }
    if (n > 0) price(s, columns, n, losses, inverse);
    return s->column < d && s->gain > s->slack;
}

CLONES EXPORT void exactk_border(State *s, int64_t p) { border(s, p); }

CLONES EXPORT void exactk_drop(State *s, int64_t slot) { drop(s, slot); }

CLONES EXPORT int exactk_best_swap(State *s) { return best_swap(s); }

enum { ENDED = 0, KNOWN = 1, STALLED = 2, PAUSED = 3, NEEDS_COLUMN = 4 };

/* Take the steepest swap until none lowers the objective, at most `limit` times. Where the column
 * to come in is not at hand, the move is left in the struct for the caller to make. */
CLONES EXPORT int exactk_descend(State *s, int64_t limit) {
    s->swaps = 0;
    while (s->swaps < limit) {
        uint64_t key = 0;
        for (int64_t i = 0; i < s->size; i++) key += s->marks[s->S[i]];
        for (int64_t i = 0; i < s->n_known; i++)
            if (s->known[i] == key) return KNOWN;
        if (!best_swap(s)) return ENDED;
        const int64_t p = s->column;
        if (s->columns[p] == 0) return NEEDS_COLUMN;
        const double before = s->objective;
        drop(s, s->slot);
        double *row = s->AS + s->size * s->d;
        memcpy(row, s->columns[p], (size_t)s->d * sizeof(double));
        row[p] += s->penalty;
        border(s, p);
        s->swaps++;
        if (!(s->objective < before)) return STALLED;
    }
    return PAUSED;
}

/* So that the caller can tell a library built from another version of the struct. */
EXPORT int64_t exactk_layout(void) { return (int64_t)sizeof(State); }

/* Recompute G, V, C, D and the objective from the columns held; 0 if they are dependent. */
CLONES EXPORT int exactk_refresh(State *s) {
    const int64_t k = s->size, d = s->d, c = s->c, room = s->room;
    double *restrict L = s->square; /* lower Cholesky factor, then its inverse */
    /* Until it turns out otherwise: a support that cannot be factored must never look good. */
    s->objective = INFINITY;
    for (int64_t i = 0; i < k; i++)
        for (int64_t j = 0; j <= i; j++) {
            double sum = s->AS[i * d + s->S[j]];
            for (int64_t l = 0; l < j; l++) sum -= L[i * room + l] * L[j * room + l];
            if (i != j) {
                L[i * room + j] = sum / L[j * room + j];
            } else if (sum > s->floor[s->S[i]]) {
                L[i * room + i] = sqrt(sum);
            } else {
                return 0;
            }
        }
    for (int64_t i = 0; i < k; i++) {
        for (int64_t j = 0; j < i; j++) {
            double sum = 0.0;
            for (int64_t l = j; l < i; l++) sum -= L[i * room + l] * L[l * room + j];
            L[i * room + j] = sum / L[i * room + i];
        }
        L[i * room + i] = 1.0 / L[i * room + i];
    }
    for (int64_t i = 0; i < k; i++)
        for (int64_t j = 0; j <= i; j++) {
            double sum = 0.0;
            for (int64_t l = i; l < k; l++) sum += L[l * room + i] * L[l * room + j];
            s->G[i * room + j] = s->G[j * room + i] = sum;
        }
    double objective = s->total;
    for (int64_t i = 0; i < k; i++) {
        if (!(s->G[i * room + i] * s->floor[s->S[i]] < 1.0)) return 0;
        for (int64_t o = 0; o < c; o++) {
            double sum = 0.0;
            for (int64_t l = 0; l < k; l++) sum += s->G[i * room + l] * s->cross[o * d + s->S[l]];
            s->V[i * c + o] = sum;
            objective -= sum * s->cross[o * d + s->S[i]];
        }
    }
    s->objective = objective;
    const int64_t strip = 256;
    for (int64_t start = 0; start < d; start += strip) {
        const int64_t width = start + strip < d ? strip : d - start;
        const double *restrict AS = s->AS + start;
        double *restrict D = s->D + start, row[256];
        for (int64_t o = 0; o < c; o++) {
            double *restrict C = s->C + o * d + start;
            const double *restrict B = s->cross + o * d + start;
            for (int64_t j = 0; j < width; j++) C[j] = B[j];
            for (int64_t i = 0; i < k; i++) {
                const double v = s->V[i * c + o];
                for (int64_t j = 0; j < width; j++) C[j] -= v * AS[i * d + j];
            }
        }
        for (int64_t j = 0; j < width; j++) D[j] = s->diagonal[start + j];
        for (int64_t i = 0; i < k; i++) {
            for (int64_t j = 0; j < width; j++) row[j] = 0.0;
            for (int64_t l = 0; l <= i; l++) {
                const double w = L[i * room + l];
                for (int64_t j = 0; j < width; j++) row[j] += w * AS[l * d + j];
            }
            for (int64_t j = 0; j < width; j++) D[j] -= row[j] * row[j];
        }
    }
    for (int64_t i = 0; i < k; i++) s->D[s->S[i]] = 0.0;
    return 1;
}
