"""Working sets: some columns of a wide table, copied out as a small problem of their own.

The Gram matrix of a wide table does not fit the memory, and each of its columns costs a pass over
the table. A few thousand columns do fit, with all of their products, and an objective is the same
there as in the whole table. What is found in such a set is then held against all columns: the Gram
columns of a support, one pass for all of them, price every addition and every swap exactly.

Which columns go into a set is a heuristic. Nothing proves beforehand that a column will not be
needed, for its gain beside others has no bound that could be had without its products with them:
a column of no use alone may explain everything beside a second one. So a set is a guess, and the
verdict is always one over all columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from exactk.data.gram import ColumnGram
from exactk.problem.constraints import Rules
from exactk.problem.problem import Problem
from exactk.search.descent import grow
from exactk.search.native_state import make_state
from exactk.search.state import State
from exactk.types import Floats, Indices

__all__ = ["GreedyPrefetch", "WorkingSet", "highest", "subproblem", "working_set"]


# Columns of a set, where memory allows; with fewer than this many for each to be chosen, or with
# little less than all candidates, a set would be of no use.
SET_COLUMNS = 4096
LEAST_FOR_EACH = 4
LEAST_RATIO = 2
# Columns among which greedy selection is foreseen, for each to be chosen, and at least.
FORESEEN_FOR_EACH, FORESEEN_LEAST = 8, 256
# A guess that served fewer steps than this was not worth its price; after as many, no more.
WORTH_STEPS, MOST_POOR = 3, 2


def subproblem(problem: Problem, columns: Indices) -> Problem:
    """Return the problem of some candidates alone, copied out of the table.

    Parameters
    ----------
    problem : Problem
        Made of a table, with Gram columns on demand.
    columns : ndarray of intp
        Candidates, sorted, and all that must be in. Column j of the new problem is ``columns[j]``.

    Returns
    -------
    Problem
        The objective of a support is the same as in the whole problem, ridge included.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> whole = Problem.from_arrays(*load_digits(return_X_y=True), ridge=0.1, gram="columns")
    >>> part = subproblem(whole, np.array([10, 21, 33, 42]))
    >>> round(whole.objective([21, 42]), 6) == round(part.objective([1, 3]), 6)
    True
    """
    gram = problem.gram
    assert isinstance(gram, ColumnGram)
    small = gram.subproblem(columns)
    rules = problem.rules
    if rules is not None:
        rules = Rules(include=tuple(np.searchsorted(columns, rules.include).tolist()))
    everyone, nobody = np.arange(len(columns)), np.zeros(0, dtype=np.intp)
    scatter = problem.scatter[columns]
    return replace(
        problem,
        given_names=None,
        usable=everyone,
        candidates=everyone,
        duplicates=nobody,
        originals=nobody,
        # The ridge is relative to the mean of the scatter; what it adds must stay what it was.
        ridge=problem.penalty / float(scatter.mean()),
        x_mean=problem.x_mean[columns],
        x_scale=problem.x_scale[columns],
        cross=np.ascontiguousarray(problem.cross[:, columns]),
        scatter=scatter,
        gram=small,
        rows=small.rows,
        rules=rules,
    )


def highest(values: Floats, most: int) -> Indices:
    """Return the indices of the highest values that are finite, highest first.

    Examples
    --------
    >>> highest(np.array([1.0, 3.0, -np.inf, 2.0]), 2)
    array([1, 3])
    """
    most = min(most, len(values))
    top = np.argpartition(-values, most - 1)[:most] if most else np.zeros(0, dtype=np.intp)
    top = top[np.isfinite(values[top])]
    found: Indices = top[np.lexsort((top, -values[top]))]
    return found


class WorkingSet:
    """Some candidates of a wide problem and the small problem that they make.

    At first these are the columns that explain most by themselves.

    Parameters
    ----------
    problem : Problem
    size : int
        How many columns.

    Attributes
    ----------
    columns : ndarray of intp
        Sorted, so that ties fall as they do among all columns.
    """

    def __init__(self, problem: Problem, size: int) -> None:
        self.problem, self.size = problem, size
        self.columns: Indices = np.zeros(0, dtype=np.intp)
        self._small: Problem | None = None
        self.fill([])

    @property
    def small(self) -> Problem:
        """The problem of these columns alone, read from the table when it is first asked for."""
        if self._small is None:
            self._small = subproblem(self.problem, self.columns)
        return self._small

    def fill(self, groups: Iterable[Sequence[int] | Indices]) -> None:
        """Hold the columns of these groups, then the most relevant ones, as many as there is room.

        Parameters
        ----------
        groups : iterable of sequence of int
            The most important first.
        """
        rules = self.problem.rules
        fixed = np.array([] if rules is None else rules.include, dtype=np.intp)
        rest = self.problem.candidates[self.problem.by_relevance[: 2 * self.size]]
        asked = [np.asarray(group, dtype=np.intp) for group in groups]
        wanted = np.concatenate([fixed, *asked, rest])
        first = np.sort(np.unique(wanted, return_index=True)[1])
        columns = np.sort(wanted[first[: self.size]])
        if not np.array_equal(columns, self.columns):
            self.columns, self._small = columns, None

    def has(self, support: Sequence[int] | int) -> bool:
        """Whether a column, or all of several, are in the set."""
        return bool(np.isin(support, self.columns).all())

    def to_local(self, support: Sequence[int]) -> list[int]:
        """Return the numbers that columns of the table have in the small problem."""
        numbers: list[int] = np.searchsorted(self.columns, support).tolist()
        return numbers

    def to_global(self, support: Sequence[int]) -> list[int]:
        """Return the columns of the table behind those of the small problem."""
        members: list[int] = self.columns[list(support)].tolist()
        return members


def working_set(problem: Problem, k: int) -> WorkingSet | None:
    """Return a set to search in, or None where the problem itself is small enough."""
    gram = problem.gram
    if not isinstance(gram, ColumnGram) or gram.full_gram_is_affordable:
        return None
    size = min(SET_COLUMNS, gram.subproblem_capacity())
    if size < LEAST_FOR_EACH * k or len(problem.candidates) < LEAST_RATIO * size:
        return None
    return WorkingSet(problem, size)


class GreedyPrefetch:
    """Greedy selection over all columns that fetches Gram columns together.

    What greedy selection will take is guessed by running it on a working set, and the Gram
    columns of the guess come from one pass. Each step is then the best addition among all columns,
    whatever was guessed: a wrong guess costs time and changes nothing.

    Parameters
    ----------
    problem : Problem
    size : int
        How many columns will be selected in the end.
    """

    def __init__(self, problem: Problem, size: int) -> None:
        self._problem, self._gram, self._target = problem, problem.gram, size
        self._working: WorkingSet | None = None
        self._room, self._cost = 0, np.inf
        # As long as the first guess has not been put to the test, it is trusted to the end.
        self._guessed_at, self._poor = -size, 0
        if isinstance(problem.gram, ColumnGram):
            gram = problem.gram
            wanted = max(FORESEEN_LEAST, FORESEEN_FOR_EACH * size, gram.n_cheap_products)
            room = min(wanted, SET_COLUMNS, gram.subproblem_capacity(), len(problem.candidates))
            if room >= LEAST_FOR_EACH * size:
                self._room, self._cost = room, gram.subproblem_cost(room)

    def grow(self, state: State, size: int) -> bool:
        """Add the best column until there are `size`; False if no independent one is left.

        No clock cuts it short: the greedy support is what any search gives at least.
        """
        while state.size < size:
            move = state.best_addition()
            if move is None:
                return False
            if not self._gram.holds(move.column) and self._pays(state):
                self._fetch(state, move.column)
            state.add(move.column)
        return True

    def _pays(self, state: State) -> bool:
        """Whether single passes for what is left would cost more than guessing and one pass."""
        gram = self._gram
        if not isinstance(gram, ColumnGram) or self._poor >= MOST_POOR:
            return False
        return (self._target - state.size) * gram.batch_saving > self._cost

    def _fetch(self, state: State, column: int) -> None:
        """Fetch a column, and with it those that will probably follow."""
        working = self._working = self._working or WorkingSet(self._problem, self._room)
        served, self._guessed_at = state.size - self._guessed_at, state.size
        self._poor += served < WORTH_STEPS
        if not working.has([*state.support, column]):
            working.fill([state.support, highest(state.gains(), working.size)])
        ahead = make_state(working.small, self._target)
        follow: list[int] = []
        if ahead.load(working.to_local(state.support)):
            # A guess that was wrong early is followed by one that looks twice as far, no further.
            grow(ahead, min(self._target, state.size + 2 * served))
            follow = working.to_global(ahead.support[state.size :])
        self._gram.prefetch(np.array([column, *follow], dtype=np.intp))
