"""From a support down to one that no single swap improves, and supports to start from."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from exactk.problem.problem import Problem
from exactk.search.native_state import make_state
from exactk.search.state import TIE, Marks, Outcome, State
from exactk.types import Floats, Indices
from exactk.utils.linalg import DEPENDENT

__all__ = [
    "Descent",
    "beam_search",
    "entry_order",
    "greedy_order",
    "grow",
    "trusted_objective",
]


# Ends of descents kept in mind, the latest; most ways lead to a few of them.
KNOWN_ENDS = 128
# Swaps between two looks at the clock.
SWAPS_BEFORE_PAUSE = 32


def grow(state: State, size: int) -> bool:
    """Add the best column until there are `size`; False if no independent one is left before."""
    while state.size < size:
        move = state.best_addition()
        if move is None:
            return False
        state.add(move.column)
    return True


def trusted_objective(state: State, incumbent: float) -> float:
    """Return the objective of a state that was refreshed, or is above the incumbent."""
    if state.objective < incumbent and state.is_ill_conditioned:
        # The problem goes back to the rows where the Gram matrix has lost digits.
        return state.problem.objective(state.support)
    return state.objective


def entry_order(problem: Problem, support: Indices) -> Indices:
    """Return the columns of a support in the order in which greedy selection would take them."""
    S = np.sort(np.asarray(support, dtype=np.intp))
    # Columns of the target below those of A, so that one rank-one update serves both.
    k = len(S)
    M = np.vstack([problem.gram.block(S) + problem.penalty * np.eye(k), problem.cross[:, S]])
    return S[greedy_order(M, k, TIE * problem.total)]


def greedy_order(M: Floats, k: int, tie_tolerance: float) -> Indices:
    """Return the order in which greedy selection takes all of k columns.

    Parameters
    ----------
    M : ndarray of shape (k + c, k)
        A of these columns, and B transposed below it; changed in place.
    k : int
    tie_tolerance : float
        Gains closer than this are ties; zero or more.
    """
    D = M[:k].diagonal().copy()
    floor = DEPENDENT * D
    order: list[int] = []
    left = np.ones(k, dtype=bool)
    for _ in range(k):
        square = (M[k:] ** 2).sum(axis=0)
        gains = np.where(D > floor, square / np.maximum(D, floor), 0.0)
        # Of columns that nearly depend on each other some numbers may be none.
        gains[~np.isfinite(gains)] = 0.0
        gains[~left] = -np.inf
        j = int((gains >= gains.max() - tie_tolerance).argmax())
        order.append(j)
        left[j] = False
        if D[j] > floor[j]:
            row = M[j] / D[j]
            M -= M[:, j, None] * row
            D = M[:k].diagonal()
    return np.array(order, dtype=np.intp)


class Descent:
    """Steepest swaps, with a memory of where they started and ended.

    Parameters
    ----------
    problem : Problem
    """

    def __init__(self, problem: Problem) -> None:
        # The marks of a support's members add up to its key: order does not matter.
        self._marks = _mix(np.arange(1, problem.n_features + 1, dtype=np.uint64))
        self._started: set[int] = set()
        self._ends = np.zeros(KNOWN_ENDS, dtype=np.uint64)
        self._n_ends = 0

    def mark_visited(self, support: Sequence[int]) -> bool:
        """Whether no descent has started or ended here yet; it counts as started from now on."""
        key = int(self._marks[support].sum())
        new = key not in self._started
        self._started.add(key)
        return new

    def run(
        self, state: State, incumbent: float = np.inf, stop: Callable[[], bool] = lambda: False
    ) -> bool:
        """Take the steepest swap until none lowers the objective.

        Parameters
        ----------
        state : State
            Changed in place.
        incumbent : float
            An end above this is of no interest and not checked for rounding.
        stop : callable
            Asked now and then, and after every pass over the table.

        Returns
        -------
        bool
            False when the way led to an end that is known or to dependent columns (objective
            infinite), or `stop` said so; the state is then wherever it was.
        """
        reached = np.inf
        while True:
            outcome = state.descend(self._marks, self._ends, SWAPS_BEFORE_PAUSE, stop)
            if outcome == Outcome.KNOWN:
                return False
            if outcome == Outcome.PAUSED or state.objective < incumbent:
                # The end of a chain of updates is computed anew before it counts, and a chain
                # that turns out to have gained nothing is one of rounding: it goes no further.
                if not state.refresh():
                    return False
                gained = state.objective < reached - state.tie_tolerance
                reached = min(reached, state.objective)
                if outcome == Outcome.PAUSED and stop():
                    return False
                if gained and (outcome == Outcome.PAUSED or state.best_swap() is not None):
                    continue
            self._remember(state)
            return True

    def _remember(self, state: State) -> None:
        key = int(self._marks[state.support].sum())
        self._started.add(key)
        self._ends[self._n_ends % KNOWN_ENDS] = key
        self._n_ends += 1


def _mix(numbers: Marks) -> Marks:
    """Scatter whole numbers over 64 bits (the finaliser of SplitMix64, Steele et al. 2014)."""
    mixed = numbers * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def beam_search(
    problem: Problem, k: int, width: int, stop: Callable[[], bool] = lambda: False
) -> list[list[int]]:
    """Grow `width` supports side by side, each level keeping the best distinct ones.

    Parameters
    ----------
    problem : Problem
    k : int
    width : int
    stop : callable
        Asked at each level.

    Returns
    -------
    list of list of int
        Supports in order of entry, best first; shorter than k where the rank is, or stopped.
    """
    beam = [make_state(problem, k)]
    while beam[0].size < k and not stop():
        children = _best_children(beam, width)
        if not children:
            break
        grown, last_use = [], {parent: n for n, (_, parent, _) in enumerate(children)}
        for n, (_, parent, p) in enumerate(children):
            # The last child of a parent may take its arrays over instead of copying them.
            state = beam[parent] if last_use[parent] == n else beam[parent].copy()
            grown.append((state, p))
        for state, p in grown:
            state.add(p)
        beam = sorted((state for state, _ in grown), key=lambda state: state.objective)
    return [state.support for state in beam]


def _best_children(beam: list[State], width: int) -> list[tuple[float, int, int]]:
    """Return (objective, parent, column) of the best distinct children, best first."""
    found: dict[frozenset[int], tuple[float, int, int]] = {}
    for n, state in enumerate(beam):
        gains = state.gains()
        top = np.argpartition(gains, -width)[-width:] if len(gains) > width else range(len(gains))
        for p in top:
            if gains[p] > 0:
                child = (state.objective - float(gains[p]), n, int(p))
                key = frozenset([*state.support, int(p)])
                found[key] = min(child, found.get(key, child))
    return sorted(found.values())[:width]
