"""The one door to trees: which of them serves a problem."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

import numpy as np

from exactk.compiled import one_blas_thread
from exactk.linalg import row_norms
from exactk.problem import Problem
from exactk.proof.columns import BoundTree, ColumnTree
from exactk.proof.native import library
from exactk.proof.relaxation import FIRST_WORKING, Relaxed, relax, relax_uniform
from exactk.proof.setting import CONDITIONED, Setting, prepare
from exactk.proof.tree import Tree
from exactk.proof.units import UnitTree
from exactk.search.native import serves
from exactk.search.state import TIE

__all__ = ["open_tree"]

# Columns from which on those that cannot matter are looked for before anything else.
WIDE = 400
# Columns up to which parts have bounds, and up to which the NumPy tree tries its luck.
MOST_BOUNDED, MOST_UNITS = 1200, 150
# Sets that are looked at one by one: columns of which less is left beside the others are priced
# from the rows, and so is all that comes so near to what is needed, as a share of ‖HY‖².
DOUBT, NEAR = 1e-4, 1e-8
MOST_LOOKED_AT = 3
# Up to so many columns products are too small to share out among threads.
FEW_COLUMNS = 300


def open_tree(
    problem: Problem, k: int, ceiling: float = inf, stop: Callable[[], bool] = lambda: False
) -> Tree:
    """Return the tree of all sets of size k that keep the problem's rules.

    Parameters
    ----------
    problem : Problem
    k : int
    ceiling : float
        Sets with a higher objective are of no interest, and columns that only they have are left
        out at once.
    stop : callable
        Whether the time is up.

    Returns
    -------
    Tree
    """
    setting = prepare(problem, k) if library() is not None and serves(problem) else None
    if setting is None or not 0 < setting.m <= len(setting.columns):
        return UnitTree(problem, k)
    need = setting.total - ceiling
    relaxed = _thinned(setting, need, stop)
    kept = relaxed.columns
    room = 8 * len(kept) ** 2
    if len(kept) <= MOST_BOUNDED and room * (setting.m + 8) <= problem.memory_limit:
        tree = _bounded(setting, relaxed, need, stop)
        if tree is not None:
            return tree
    if setting.m <= MOST_LOOKED_AT and 5 * room <= problem.memory_limit:
        return ColumnTree(
            setting, relaxed, setting.block(kept), tolerance=NEAR * problem.total, doubt=DOUBT
        )
    if len(setting.columns) <= MOST_UNITS:
        return UnitTree(problem, k)
    return BoundTree(problem, max(setting.total - relaxed.explained, 0.0))


def _thinned(setting: Setting, need: float, stop: Callable[[], bool]) -> Relaxed:
    """The columns that may matter: of few all, of many those that a quick bound leaves."""
    d, penalty = len(setting.columns), setting.problem.penalty
    if d <= WIDE or penalty == 0:
        return Relaxed(np.arange(d), np.zeros(d), np.zeros(d), inf)
    gains = row_norms(setting.C)
    first = np.argsort(-gains, kind="stable")[: max(FIRST_WORKING, 3 * setting.m)]
    # Rounding may have taken a little of what the ridge put there.
    delta = penalty * setting.root**2 * (1.0 - 1e-9)
    return relax_uniform(setting.gram, setting.C, delta, setting.m, need, first, stop)


def _bounded(
    setting: Setting, thinned: Relaxed, need: float, stop: Callable[[], bool]
) -> ColumnTree | None:
    """The tree with bounds, or None where columns depend on each other too nearly."""
    kept = thinned.columns
    E = setting.block(kept)
    least = float(np.linalg.eigvalsh(E)[0])
    if least < CONDITIONED:
        return None
    # Values of A are right to eps, so coefficients to eps over the least eigenvalue.
    rounding = len(E) * float(np.finfo(np.float64).eps) / least
    margin = min(4.0 * rounding, 0.01 * least)
    C = setting.C[kept]
    if len(kept) <= FEW_COLUMNS:
        with one_blas_thread():
            relaxed = relax(E, C, setting.m, least, need, margin, stop)
    else:
        relaxed = relax(E, C, setting.m, least, need, margin, stop)
    inner = relaxed.columns
    explained = min(relaxed.explained, thinned.explained)
    return ColumnTree(
        setting,
        Relaxed(kept[inner], relaxed.delta, relaxed.weights, explained),
        E[np.ix_(inner, inner)],
        tolerance=max(TIE, rounding) * setting.problem.total,
        margin=margin,
    )
