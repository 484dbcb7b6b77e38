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

from exactk.native.threads import one_blas_thread
from exactk.problem.problem import Problem
from exactk.proof.best_first import BoundTree, Tree
from exactk.proof.bounds import FIRST_WORKING, Relaxed, WorkingColumns, relax, relax_wide
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
    column_problem = (
        make_column_problem(problem, k)
        if library() is not None and has_only_column_rules(problem)
        else None
    )
    if column_problem is None or not 0 < column_problem.m <= len(column_problem.columns):
        return _units_or_nothing(problem, k)
    column_problem, relaxed = _thinned(column_problem, ceiling, stop)
    need, kept = column_problem.total - ceiling, relaxed.columns
    room = 8 * len(kept) ** 2
    if len(kept) <= MOST_BOUNDED and room * (column_problem.m + 8) <= problem.memory_limit:
        tree = _bounded(column_problem, relaxed, need, stop)
        if tree is not None:
            return tree
    doubt = _doubt(column_problem, kept)
    if (
        column_problem.m <= MOST_LOOKED_AT
        and 5 * room <= problem.memory_limit
        and doubt < MOST_DOUBT
    ):
        return ColumnTree(
            column_problem,
            relaxed,
            column_problem.block(kept),
            tolerance=NEAR * problem.total,
            doubt=doubt,
        )
    if len(column_problem.columns) <= MOST_UNITS:
        return UnitTree(problem, k)
    if len(kept) > MOST_BOUNDED:
        reason = f"{len(kept)} columns may be in the best set, and a search takes {MOST_BOUNDED}"
    elif room * (column_problem.m + 8) > problem.memory_limit:
        reason = "a search needs more memory than memory_limit"
    else:
        reason = (
            "numerical precision: some columns are almost linear combinations of others; a larger "
            "ridge may help"
        )
    return BoundTree(problem, max(column_problem.total - relaxed.explained, 0.0), reason)


def _units_or_nothing(problem: Problem, k: int) -> Tree:
    """The tree in NumPy, unless the fit on all columns would take longer than anyone waits."""
    if problem.n_usable <= MOST_FITTED:
        return UnitTree(problem, k)
    reason = f"under these constraints, or without a compiler, a search takes {MOST_FITTED} columns"
    return BoundTree(problem, 0.0, reason)


def _thinned(
    column_problem: ColumnProblem, ceiling: float, stop: Callable[[], bool]
) -> tuple[ColumnProblem, Relaxed]:
    """The columns that may matter: of few all, of many those that a quick bound leaves.

    Columns without which no set is below the ceiling are taken in, which makes the bound of the
    others much better, and so on.
    """
    d = len(column_problem.columns)
    if (
        d <= WIDE
        or column_problem.problem.penalty * float((column_problem.root**2).min()) < LEAST_RIDGE
    ):
        return column_problem, Relaxed(np.arange(d), np.zeros(d), np.zeros(d), inf)
    k, wide = (
        column_problem.m + len(column_problem.inside),
        _WideBound(column_problem, ceiling, stop),
    )
    while column_problem.m > 1 and len(wide.relaxed.columns) > column_problem.m and not stop():
        needed = wide.needed()
        inner = make_column_problem(column_problem.problem, k, needed) if needed else None
        if inner is None:
            break
        # The earlier bound still holds, less what those that were taken in explain.
        before = wide.relaxed.explained + column_problem.explained - inner.explained
        column_problem, wide = inner, _WideBound(inner, ceiling, stop)
        explained = min(wide.relaxed.explained, before)
        wide.relaxed = replace(wide.relaxed, explained=explained)
    return column_problem, wide.relaxed


class _WideBound:
    """A quick bound of a wide table, with the diagonal that the ridge brings."""

    def __init__(
        self, column_problem: ColumnProblem, ceiling: float, stop: Callable[[], bool]
    ) -> None:
        problem, m, d = column_problem.problem, column_problem.m, len(column_problem.columns)
        self.column_problem, self.need, self._stop = (
            column_problem,
            column_problem.total - ceiling,
            stop,
        )
        # Their rows of the Gram matrix are held, and copied when others join.
        most = max(problem.memory_limit // (32 * d), 3 * m)
        size = min(max(FIRST_WORKING, 3 * m), most)
        first = np.argsort(-row_norms(column_problem.C), kind="stable")[:size]
        self._working = WorkingColumns(column_problem.gram, first, m, most)
        # Rounding may have taken a little of what the ridge put there.
        noise = _noise(column_problem, np.arange(d)) + d * float(np.finfo(np.float64).eps)
        self._delta = problem.penalty * column_problem.root**2 * (1.0 - 1e-9) - noise
        self.relaxed = self._bound()

    def _bound(self, barred: int | None = None) -> Relaxed:
        C = self.column_problem.C
        return relax_wide(self._working, C, self._delta, self.need, self._stop, barred)

    def needed(self) -> list[int]:
        """Columns without which no set is below the ceiling, but for those the rules want in.

        Those of most weight are looked at; the list is empty where it has nothing new.
        """
        column_problem, relaxed, missed = self.column_problem, self.relaxed, 0
        wanted = (
            () if column_problem.problem.rules is None else column_problem.problem.rules.include
        )
        known = [p for p in column_problem.inside if p not in wanted]
        heaviest = relaxed.columns[
            np.argsort(-relaxed.weights, kind="stable")[: column_problem.m - 1]
        ]
        found: list[int] = []
        for j in heaviest.tolist():
            if missed == MOST_MISSED or self._stop():
                break
            if self._bound(barred=j).explained <= self.need:
                found.append(int(column_problem.columns[j]))
            else:
                missed += 1
        return [*known, *found] if found else []


def _noise(column_problem: ColumnProblem, kept: npt.NDArray[np.intp]) -> float:
    """How far entries of the Gram matrix of unit diagonal may be off by adding up the rows."""
    problem = column_problem.problem
    columns = np.append(
        column_problem.columns[kept], np.array(column_problem.inside, dtype=np.intp)
    )
    lost = float((problem.rounding_factor_x[columns] ** 2).max(initial=1.0))
    return sum_rounding(problem.n_rows) * max(lost, problem.rounding_factor_y)


def _doubt(column_problem: ColumnProblem, kept: npt.NDArray[np.intp]) -> float:
    """Share of a column below which the Gram matrix does not tell what it explains to `NEAR`."""
    grown = column_problem.grown
    if column_problem.inside:
        # What those inside explain must be right, too.
        grown = max(grown, 1.0 / max(column_problem.least_eigenvalue(kept[:0]), TIE))
    return max(DOUBT, grown * _noise(column_problem, kept) / NEAR)


def _rounding(column_problem: ColumnProblem, kept: npt.NDArray[np.intp], least: float) -> float:
    """How far what a set explains may be off, as a share of ‖HY‖².

    An error of the Gram matrix, from adding up the rows or from working with it here, enters with
    the coefficients on either side, and their squares are at most ‖HY‖² over its least eigenvalue:
    that of the columns with those inside, from which what is left was made.
    """
    if column_problem.inside:
        least = min(least, column_problem.least_eigenvalue(kept))
    eps = float(np.finfo(np.float64).eps)
    return (len(kept) * eps + _noise(column_problem, kept)) / max(least, eps)


def _bounded(
    column_problem: ColumnProblem, thinned: Relaxed, need: float, stop: Callable[[], bool]
) -> ColumnTree | None:
    """The tree with bounds, or None where columns depend on each other too nearly."""
    kept = thinned.columns
    E = column_problem.block(kept)
    least = float(np.linalg.eigvalsh(E)[0])
    if least < CONDITIONED:
        return None
    rounding = _rounding(column_problem, kept, least)
    if rounding > WORST_ROUNDING:
        return None
    margin = min(4.0 * rounding, 0.01 * least)
    C = column_problem.C[kept]
    if len(kept) <= FEW_COLUMNS:
        with one_blas_thread():
            relaxed = relax(E, C, column_problem.m, least, need, margin, stop)
    else:
        relaxed = relax(E, C, column_problem.m, least, need, margin, stop)
    inner = relaxed.columns
    explained = min(relaxed.explained, thinned.explained)
    return ColumnTree(
        column_problem,
        Relaxed(kept[inner], relaxed.delta, relaxed.weights, explained),
        E[np.ix_(inner, inner)],
        tolerance=max(TIE, rounding) * column_problem.problem.total,
        margin=margin,
    )
