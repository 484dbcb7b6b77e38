"""The bound at the root: weights in place of a choice, and the diagonal that makes it tight.

For a Gram matrix E with unit diagonal, products C with the target and any diagonal Δ with
M = E − Δ positive semi-definite, every set S of m columns explains

    tr(C_Sᵀ E_SS⁻¹ C_S)  ≤  <U, MU> + Σ_{j∈S} s_j,    s_j = ‖C_j − (MU)_j‖² / Δ_j

for any U, so no set explains more than <U, MU> and the m largest s together. The best U belongs to
weights z in [0, 1] with sum m: U = (M + ΔZ⁻¹)⁻¹ C. Weights grow where s is large; the derivative
of the bound by log Δ_j is w_j = z_j(1 − z_j)s_j, and Newton steps on
Σ w_j log Δ_j + μ log det(E − Δ) raise the diagonal while M stays positive definite.
A column whose s is so small that it cannot be among the m largest without pulling the bound below
what is known is out for good. See `native/proof.c` for the same bound within the tree.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from exactk.types import Floats, Indices

__all__ = ["Relaxed", "WorkingColumns", "bound_of", "improve_weights", "relax", "relax_wide"]


# No weight falls below this, so that it soon comes back where s says that it should.
LEAST_WEIGHT = 1e-3
# Columns of which Δ/z is above this take no part in U: it would be next to nothing.
STIFF = 25.0
# The barrier that keeps M positive definite, as a share of Σw/d: at first, and at the end.
FIRST_BARRIER, LAST_BARRIER = 0.3, 0.02
# Steps for the diagonal at most, evaluations between them, and steps without gain that end it.
MOST_STEPS, EVALUATIONS, PATIENCE = 40, 3, 3
# Steps for the diagonal of many columns: so many products, but a few anyway.
MOST_WORK, LEAST_STEPS = 4e9, 6
# The barrier has come down by then.
SCHEDULE = 12
# A step that gains less of the way that is left gains little.
WORTHWHILE = 0.01
# Columns that the weights of a wide table may fall on at first, how many may join in a round, and
# how many rounds there are.
FIRST_WORKING, MOST_JOINING, MOST_ROUNDS = 300, 50, 60


@dataclass(frozen=True, eq=False)
class Relaxed:
    """A bound and what it rests on.

    Attributes
    ----------
    columns : ndarray of intp
        Columns that may still be chosen.
    delta, weights : ndarray of float
        Of these columns.
    explained : float
        No m columns explain more.
    """

    columns: Indices
    delta: Floats
    weights: Floats
    explained: float


def bound_of(E: Floats, C: Floats, delta: Floats, weights: Floats, m: int) -> tuple[float, Floats]:
    """Return a bound of what m columns explain, and the s that it is made of.

    Parameters
    ----------
    E : ndarray of shape (d, d)
    C : ndarray of shape (d, c)
    delta : ndarray of shape (d,)
        Such that E − Δ is positive semi-definite.
    weights : ndarray of shape (d,)
        In [0, 1]; any such weights give a bound.
    m : int

    Examples
    --------
    >>> bound, s = bound_of(np.eye(3), np.array([[3.0], [2.0], [1.0]]), np.ones(3), np.ones(3), 2)
    >>> bound, s
    (13.0, array([9., 4., 1.]))
    """
    active = np.flatnonzero(delta < STIFF * weights)
    return _bound(E[active], active, C, delta, weights[active], m)


def _bound(
    rows: Floats,
    active: Indices,
    C: Floats,
    delta: Floats,
    weights: Floats,
    m: int,
    barred: int | None = None,
) -> tuple[float, Floats]:
    """The same from the rows of E that have weight; one column may be barred from all sets."""
    N = rows[:, active]
    N[np.diag_indices_from(N)] += delta[active] * (1.0 / weights - 1.0)
    U = np.linalg.solve(N, C[active])
    MU = rows.T @ U
    MU[active] -= delta[active, None] * U
    s = ((C - MU) ** 2).sum(axis=1) / delta
    if barred is not None:
        s[barred] = 0.0
    top = s if len(s) <= m else np.partition(s, len(s) - m)[len(s) - m :]
    return float(np.einsum("ij,ij->", U, MU[active]) + top.sum()), s


def improve_weights(weights: Floats, s: Floats, m: int) -> Floats:
    """Move weight to where s is large; the sum stays m.

    Examples
    --------
    >>> improve_weights(np.array([0.5, 0.5, 0.5, 0.5]), np.array([4.0, 1.0, 1.0, 1.0]), 2)
    array([0.97..., 0.34..., 0.34..., 0.34...])
    """
    raised = np.maximum(weights, LEAST_WEIGHT) * s**0.75
    if len(raised) <= m:
        return np.ones_like(raised)
    order = np.argsort(-raised, kind="stable")
    ordered = np.maximum(raised[order], np.finfo(np.float64).tiny)
    left = np.cumsum(ordered[::-1])[::-1]
    # How many are at 1: the first number for which the next one stays below.
    by = (m - np.arange(m)) / left[:m]
    full = int(np.argmax(by * ordered[:m] <= 1.0)) if (by * ordered[:m] <= 1.0).any() else m - 1
    out: Floats = np.minimum(raised * by[full], 1.0)
    return out


def _raise_diagonal(E: Floats, delta: Floats, w: Floats, barrier: float, margin: float) -> Floats:
    """One Newton step, shortened until E − Δ stays positive definite by a margin."""
    P = np.linalg.inv(E - np.diag(delta))
    mu = barrier * w.sum() / len(w)
    H = mu * P * P
    H[np.diag_indices_from(H)] += w / delta**2
    step = np.linalg.solve(H, w / delta - mu * np.diagonal(P))
    length = float(min(1.0, np.min(0.9 * delta / np.maximum(-step, 1e-300))))
    for _ in range(8):
        trial: Floats = delta + length * step
        try:
            np.linalg.cholesky(E - np.diag(trial + margin))
        except np.linalg.LinAlgError:
            length *= 0.4
            continue
        return trial
    return delta


def relax(
    E: Floats,
    C: Floats,
    m: int,
    least: float,
    need: float,
    margin: float,
    stop: Callable[[], bool] = lambda: False,
) -> Relaxed:
    """Improve weights and diagonal together until that gains little, and leave out columns.

    Parameters
    ----------
    E : ndarray of shape (d, d)
    C : ndarray of shape (d, c)
    m : int
    least : float
        The least eigenvalue of E, above zero.
    need : float
        Sets that explain no more are of no interest.
    margin : float
        How much M is kept above singular.
    stop : callable
        Whether the time is up.

    Returns
    -------
    Relaxed
    """
    columns = np.arange(len(E))
    delta, weights = np.full(len(E), 0.5 * least), np.full(len(E), min(1.0, m / len(E)))
    best, idle = np.inf, 0
    for step in range(max(LEAST_STEPS, min(MOST_STEPS, int(MOST_WORK / len(E) ** 3)))):
        before = best
        for _ in range(EVALUATIONS):
            bound, s = bound_of(E, C, delta, weights, m)
            best = min(best, bound)
            keep = _kept(s, bound, m, need)
            if not keep.all():
                columns, delta, weights, s = columns[keep], delta[keep], weights[keep], s[keep]
                E, C = E[np.ix_(keep, keep)], C[keep]
            weights = improve_weights(weights, s, m)
        idle = idle + 1 if before - best < WORTHWHILE * (best - max(need, 0.0)) else 0
        if best <= need or len(columns) <= m or (step > SCHEDULE and idle >= PATIENCE) or stop():
            break
        w = weights * (1.0 - weights) * s
        if not w.max() > 0.0:
            break
        share = min(1.0, step / SCHEDULE)
        barrier = FIRST_BARRIER * (LAST_BARRIER / FIRST_BARRIER) ** share
        delta = _raise_diagonal(E, delta, np.maximum(w, 1e-6 * w.max()), barrier, margin)
    return Relaxed(columns, delta, weights, best)


def _kept(s: Floats, bound: float, m: int, need: float) -> npt.NDArray[np.bool_]:
    """Which columns a set that explains more than needed may have."""
    if len(s) <= m or bound <= need:
        return np.ones(len(s), dtype=bool)
    edge = float(np.partition(s, len(s) - m)[len(s) - m])
    kept: npt.NDArray[np.bool_] = bound - edge + s > need
    # The m largest themselves are decided within the tree.
    return kept | (s >= edge)


class WorkingColumns:
    """Columns of a wide table that weights may fall on, and their rows of E.

    Parameters
    ----------
    gram_rows : callable
        Gives rows of E for some columns.
    first : ndarray of intp
        Columns to begin with.
    m : int
        The sum of the weights.
    most : int
        Columns that there may be.
    """

    def __init__(
        self, gram_rows: Callable[[Indices], Floats], first: Indices, m: int, most: int
    ) -> None:
        self._gram_rows, self.m, self.most = gram_rows, m, most
        self.columns = np.unique(first)
        self.rows = gram_rows(self.columns)
        self.weights = np.full(len(self.columns), min(1.0, m / len(self.columns)))

    def wanted(self, s: Floats, kept: npt.NDArray[np.bool_]) -> Indices:
        """Return columns outside whose s is among the m largest, the first of them."""
        outside = kept.copy()
        outside[self.columns] = False
        edge = np.partition(s, len(s) - self.m)[len(s) - self.m] if len(s) > self.m else 0.0
        found = np.flatnonzero(outside & (s >= edge))
        room = min(max(self.m, MOST_JOINING), max(self.most - len(self.columns), 0))
        return found[np.argsort(-s[found], kind="stable")[:room]]

    def join(self, columns: Indices) -> None:
        """Take columns in."""
        self.rows = np.vstack([self.rows, self._gram_rows(columns)])
        self.columns = np.append(self.columns, columns)
        self.weights = np.append(self.weights, np.full(len(columns), LEAST_WEIGHT))


def relax_wide(
    working: WorkingColumns,
    C: Floats,
    delta: Floats,
    need: float,
    stop: Callable[[], bool] = lambda: False,
    barred: int | None = None,
) -> Relaxed:
    """The bound of a wide table with a given diagonal, of which few rows of E are ever read.

    Weights fall on a working set of columns; the bound holds for all of them, and columns outside
    that would be among the m largest join the set until there are none.

    Parameters
    ----------
    working : WorkingColumns
        Its weights are where this begins and, unless a column is barred, where it ends.
    C : ndarray of shape (d, c)
    delta : ndarray of shape (d,)
        What the ridge puts on the diagonal of E: E − Δ is positive semi-definite by itself.
    need, stop
        As in `relax`.
    barred : int or None
        A column that is not to be chosen.

    Returns
    -------
    Relaxed
    """
    m, weights = working.m, working.weights.copy()
    best, kept, idle = np.inf, np.ones(len(C), dtype=bool), 0
    if barred is not None:
        kept[barred] = False
        weights[working.columns == barred] = 0.0
    for _ in range(MOST_ROUNDS):
        active = np.flatnonzero(delta[working.columns] < STIFF * weights)
        bound, s = _bound(
            working.rows[active], working.columns[active], C, delta, weights[active], m, barred
        )
        gained, best = best - bound, min(best, bound)
        kept &= _kept(s, bound, m, need)
        wanted = working.wanted(s, kept)
        weights = improve_weights(weights, s[working.columns], m)
        if barred is not None:
            weights[working.columns == barred] = 0.0
        slow = gained < WORTHWHILE * (best - max(need, 0.0))
        idle = idle + 1 if slow and not wanted.size else 0
        if best <= need or idle == PATIENCE or stop():
            break
        if wanted.size:
            working.join(wanted)
            weights = np.append(weights, np.full(len(wanted), LEAST_WEIGHT))
    if barred is None:
        working.weights = weights
    full = np.full(len(C), LEAST_WEIGHT)
    full[working.columns] = np.maximum(weights, LEAST_WEIGHT)
    columns = np.flatnonzero(kept)
    return Relaxed(columns, delta[columns], full[columns], best)
