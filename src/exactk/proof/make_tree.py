"""Choose the search tree that serves a problem.

The least eigenvalue of the Gram matrix decides: the compiled tree with bounds where rounding cannot
matter, a tree without bounds or on the rows where it could, and otherwise no claim.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import inf

import numpy as np
import numpy.typing as npt

from exactk.native.loader import one_blas_thread
from exactk.problem.problem import Problem
from exactk.proof.best_first import BoundTree, Tree
from exactk.proof.bounds import (
    FIRST_WORKING,
    Relaxed,
    WorkingColumns,
    relax,
    relax_wide,
)
from exactk.proof.column_tree import (
    CONDITIONED,
    ColumnProblem,
    ColumnTree,
    library,
    make_column_problem,
)
from exactk.proof.unit_tree import UnitTree
from exactk.search.native_state import has_only_column_rules
from exactk.search.state import TIE
from exactk.utils.linalg import row_norms, sum_rounding

__all__ = ["make_tree"]

# Columns from which on those that cannot matter are looked for before anything else.
WIDE = 400
# Columns up to which parts have bounds, and up to which the NumPy tree tries its luck.
MOST_BOUNDED, MOST_UNITS = 1200, 150
# Columns up to which a fit on all of them is made where there is no other way.
MOST_FITTED = 1000
# Sets that are looked at one by one: columns of which less is left beside the others are priced
# from the rows, and so is all that comes so near to what is needed, as a share of ‖HY‖².
# With rounding above the product of both more is priced so, up to a share that leaves little else.
DOUBT, NEAR, MOST_DOUBT = 1e-4, 1e-8, 0.05
MOST_LOOKED_AT = 3
# A ridge, as a share of the diagonal, from which on it gives bounds that say something.
LEAST_RIDGE = 1e-6
# Above this the rows, where they are at hand, tell more than the Gram matrix.
WORST_ROUNDING = 1e-6
# Columns that turn out not to be needed before the others are not looked at.
MOST_MISSED = 2
# Up to so many columns products are too small to share out among threads.
FEW_COLUMNS = 300


def make_tree(
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
    setting = (
        make_column_problem(problem, k)
        if library() is not None and has_only_column_rules(problem)
        else None
    )
    if setting is None or not 0 < setting.m <= len(setting.columns):
        return _units_or_nothing(problem, k)
    setting, relaxed = _thinned(setting, ceiling, stop)
    need, kept = setting.total - ceiling, relaxed.columns
    room = 8 * len(kept) ** 2
    if len(kept) <= MOST_BOUNDED and room * (setting.m + 8) <= problem.memory_limit:
        tree = _bounded(setting, relaxed, need, stop)
        if tree is not None:
            return tree
    doubt = _doubt(setting, kept)
    if setting.m <= MOST_LOOKED_AT and 5 * room <= problem.memory_limit and doubt < MOST_DOUBT:
        return ColumnTree(
            setting, relaxed, setting.block(kept), tolerance=NEAR * problem.total, doubt=doubt
        )
    if len(setting.columns) <= MOST_UNITS:
        return UnitTree(problem, k)
    return BoundTree(problem, max(setting.total - relaxed.explained, 0.0))


def _units_or_nothing(problem: Problem, k: int) -> Tree:
    """The tree in NumPy, unless the fit on all columns would take longer than anyone waits."""
    many = problem.n_usable > MOST_FITTED
    return BoundTree(problem, 0.0) if many else UnitTree(problem, k)


def _thinned(
    setting: ColumnProblem, ceiling: float, stop: Callable[[], bool]
) -> tuple[ColumnProblem, Relaxed]:
    """The columns that may matter: of few all, of many those that a quick bound leaves.

    Columns without which no set is below the ceiling are taken in, which makes the bound of the
    others much better, and so on.
    """
    d = len(setting.columns)
    if d <= WIDE or setting.problem.penalty * float((setting.root**2).min()) < LEAST_RIDGE:
        return setting, Relaxed(np.arange(d), np.zeros(d), np.zeros(d), inf)
    k, wide = setting.m + len(setting.inside), _WideBound(setting, ceiling, stop)
    while setting.m > 1 and len(wide.relaxed.columns) > setting.m and not stop():
        needed = wide.needed()
        inner = make_column_problem(setting.problem, k, needed) if needed else None
        if inner is None:
            break
        # The earlier bound still holds, less what those that were taken in explain.
        before = wide.relaxed.explained + setting.explained - inner.explained
        setting, wide = inner, _WideBound(inner, ceiling, stop)
        explained = min(wide.relaxed.explained, before)
        wide.relaxed = replace(wide.relaxed, explained=explained)
    return setting, wide.relaxed


class _WideBound:
    """A quick bound of a wide table, with the diagonal that the ridge brings."""

    def __init__(self, setting: ColumnProblem, ceiling: float, stop: Callable[[], bool]) -> None:
        problem, m, d = setting.problem, setting.m, len(setting.columns)
        self.setting, self.need, self._stop = setting, setting.total - ceiling, stop
        # Their rows of the Gram matrix are held, and copied when others join.
        most = max(problem.memory_limit // (32 * d), 3 * m)
        size = min(max(FIRST_WORKING, 3 * m), most)
        first = np.argsort(-row_norms(setting.C), kind="stable")[:size]
        self._working = WorkingColumns(setting.gram, first, m, most)
        # Rounding may have taken a little of what the ridge put there.
        noise = _noise(setting, np.arange(d)) + d * float(np.finfo(np.float64).eps)
        self._delta = problem.penalty * setting.root**2 * (1.0 - 1e-9) - noise
        self.relaxed = self._bound()

    def _bound(self, barred: int | None = None) -> Relaxed:
        C = self.setting.C
        return relax_wide(self._working, C, self._delta, self.need, self._stop, barred)

    def needed(self) -> list[int]:
        """Columns without which no set is below the ceiling, but for those the rules want in.

        Those of most weight are looked at; the list is empty where it has nothing new.
        """
        setting, relaxed, missed = self.setting, self.relaxed, 0
        wanted = () if setting.problem.rules is None else setting.problem.rules.include
        known = [p for p in setting.inside if p not in wanted]
        heaviest = relaxed.columns[np.argsort(-relaxed.weights, kind="stable")[: setting.m - 1]]
        found: list[int] = []
        for j in heaviest.tolist():
            if missed == MOST_MISSED or self._stop():
                break
            if self._bound(barred=j).explained <= self.need:
                found.append(int(setting.columns[j]))
            else:
                missed += 1
        return [*known, *found] if found else []


def _noise(setting: ColumnProblem, kept: npt.NDArray[np.intp]) -> float:
    """How far entries of the Gram matrix of unit diagonal may be off by adding up the rows."""
    problem = setting.problem
    columns = np.append(setting.columns[kept], np.array(setting.inside, dtype=np.intp))
    lost = float((problem.rounding_factor_x[columns] ** 2).max(initial=1.0))
    return sum_rounding(problem.n_rows) * max(lost, problem.rounding_factor_y)


def _doubt(setting: ColumnProblem, kept: npt.NDArray[np.intp]) -> float:
    """Share of a column below which the Gram matrix does not tell what it explains to `NEAR`."""
    grown = setting.grown
    if setting.inside:
        # What those inside explain must be right, too.
        grown = max(grown, 1.0 / max(setting.least_eigenvalue(kept[:0]), TIE))
    return max(DOUBT, grown * _noise(setting, kept) / NEAR)


def _rounding(setting: ColumnProblem, kept: npt.NDArray[np.intp], least: float) -> float:
    """How far what a set explains may be off, as a share of ‖HY‖².

    An error of the Gram matrix, from adding up the rows or from working with it here, enters with
    the coefficients on either side, and their squares are at most ‖HY‖² over its least eigenvalue:
    that of the columns with those inside, from which what is left was made.
    """
    if setting.inside:
        least = min(least, setting.least_eigenvalue(kept))
    eps = float(np.finfo(np.float64).eps)
    return (len(kept) * eps + _noise(setting, kept)) / max(least, eps)


def _bounded(
    setting: ColumnProblem, thinned: Relaxed, need: float, stop: Callable[[], bool]
) -> ColumnTree | None:
    """The tree with bounds, or None where columns depend on each other too nearly."""
    kept = thinned.columns
    E = setting.block(kept)
    least = float(np.linalg.eigvalsh(E)[0])
    if least < CONDITIONED:
        return None
    rounding = _rounding(setting, kept, least)
    if rounding > WORST_ROUNDING:
        return None
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
