"""How often features are chosen over half-samples, and the k chosen most often."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from exactk.problem.problem import Problem
from exactk.result import Status
from exactk.search.feasibility import InfeasibleError, UndecidedError
from exactk.search.infeasibility import find_feasible
from exactk.search.units import Units
from exactk.types import Floats, Indices
from exactk.utils.monitor import Monitor

__all__ = ["Features", "HalfSampleSupports", "collect_supports", "most_frequent", "size_in"]

# Supports of a half-sample, one for each size that is asked for; None if it was interrupted.
Choose = Callable[[Problem], "list[Indices] | None"]

# Beside a frequency, which differs by a hundredth or so, this only decides between equal ones.
TIE = 1e-6


@dataclass(frozen=True, eq=False)
class Features:
    """What can be chosen, and is counted: single columns, and groups as one.

    Attributes
    ----------
    of_column : ndarray of intp of shape (d,)
        Feature that each column belongs to; −1 for columns that cannot be chosen.
    first : ndarray of intp
        Lowest column of each feature.
    """

    problem: Problem
    of_column: Indices
    first: Indices

    @classmethod
    def of(cls, problem: Problem) -> Features:
        """Return the features that the rules of a problem leave.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> problem = Problem.from_arrays(*load_iris(return_X_y=True))
        >>> len(Features.of(problem).first)
        4
        """
        rules, of_column = problem.rules, np.full(problem.n_features, -1, dtype=np.intp)
        if rules is not None and not rules.is_simple:
            # Copies among them: rules that cost or count columns may tell them apart.
            units = Units(problem)
            sets = [units.columns(u) for u in range(len(units)) if units.selectable[u]]
            for feature, columns in enumerate(sets):
                of_column[columns] = feature
            return cls(problem, of_column, np.array([s.min() for s in sets], dtype=np.intp))
        columns = problem.candidates
        if rules is not None:
            columns = np.union1d(columns, np.array(rules.include, dtype=np.intp))
        of_column[columns] = np.arange(len(columns))
        return cls(problem, of_column, columns)

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.first)

    def name(self, feature: int) -> str:
        """Return the name of the column, or of the group."""
        column, rules = int(self.first[feature]), self.problem.rules
        if rules is not None and column in rules.group_of:
            return rules.group_of[column].name
        return self._names[self.problem.input_columns[column]]

    @cached_property
    def _names(self) -> tuple[str, ...]:
        return self.problem.original_names

    @cached_property
    def is_included(self) -> npt.NDArray[np.bool_]:
        """Which of them the rules have in every set."""
        flags = np.zeros(len(self), dtype=bool)
        if self.problem.rules is not None and self.problem.rules.include:
            flags[self.of_column[list(self.problem.rules.include)]] = True
        return flags

    @cached_property
    def gains(self) -> Floats:
        """What the best column of each explains by itself."""
        problem, gains = self.problem, np.zeros(len(self))
        # A column that must be in may be constant, and then explains nothing.
        columns = np.flatnonzero((self.of_column >= 0) & (problem.scatter > 0))
        alone = (problem.cross[:, columns] ** 2).sum(axis=0)
        alone /= problem.scatter[columns] + problem.with_squared_loss.penalty
        np.maximum.at(gains, self.of_column[columns], alone)
        return gains

    def members(self, supports: Sequence[Indices]) -> Floats:
        """Return which features each support holds, as a matrix of zeros and ones."""
        member = np.zeros((len(supports), len(self)))
        for row, support in zip(member, supports, strict=True):
            found = self.of_column[support]
            row[found[found >= 0]] = 1.0
        return member

    def scores(self, frequencies: Floats) -> Floats:
        """Return the frequency of each column, a copy's being that of its original, else nan."""
        problem, scores = self.problem, self.spread(frequencies, np.nan)
        scores[problem.duplicates] = np.fmax(scores[problem.duplicates], scores[problem.originals])
        return scores

    def spread(self, values: Floats, rest: float = 0.0) -> Floats:
        """Return the value of each column's feature, and `rest` for columns without one."""
        out = np.full(len(self.of_column), rest)
        has = self.of_column >= 0
        out[has] = values[self.of_column[has]]
        return out


@dataclass(frozen=True, eq=False)
class HalfSampleSupports:
    """What was chosen in half-samples.

    Attributes
    ----------
    supports : list of list of ndarray
        Supports of each half-sample, one for each size.
    unfit : int
        Half-samples with a constant target, or in which no set keeps the rules.
    status : Status
        ``converged`` if all were made, ``time_limit`` or ``interrupted`` if not.
    """

    supports: list[list[Indices]]
    unfit: int
    status: Status


def collect_supports(
    halves: Iterable[Problem | None],
    choose: Choose,
    monitor: Monitor,
    shown: Callable[[int], None] | None = None,
) -> HalfSampleSupports:
    """Choose in one half-sample after the other until there are no more, or the time is up.

    Two are made whatever the time limit is: there is no frequency of less.
    """
    supports: list[list[Indices]] = []
    unfit, status = 0, Status.CONVERGED
    try:
        for half in halves:
            found = None if half is None else _chosen(half, choose)
            if found is None:
                unfit += 1
            else:
                supports.append(found)
            if shown is not None:
                shown(len(supports) + unfit)
            if monitor.expired and len(supports) >= 2:
                status = Status.TIME_LIMIT
                break
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    return HalfSampleSupports(supports, unfit, status)


def _chosen(half: Problem, choose: Choose) -> list[Indices] | None:
    try:
        found = choose(half)
    except InfeasibleError:
        # What the rules ask for may be constant, or correlated, in one half and not in the other.
        return None
    if found is None:
        raise KeyboardInterrupt
    return found


def size_in(half: Problem, k: int) -> int:
    """Return how many columns to choose in a half-sample: k, unless the last would be arbitrary.

    Without a ridge, as many columns as rows but one fit perfectly, whichever come last.

    Examples
    --------
    >>> few = Problem.from_arrays(np.random.default_rng(0).normal(size=(5, 9)), [0, 0, 1, 1, 1])
    >>> size_in(few, 6), size_in(few.with_ridge(0.1), 6)
    (3, 6)
    """
    most = min(k, half.n_usable)
    if half.ridge == 0.0 and (half.rules is None or half.rules.is_simple):
        most = min(most, max(half.n_rows - 2, 1))
    return most


def most_frequent(features: Features, k: int, frequencies: Floats) -> list[int]:
    """Return the columns of the k features chosen most often, in that order.

    What is chosen equally often goes by what it explains alone, and then by its lowest column.
    Under rules it is the set of the highest total frequency among those that keep them.
    """
    problem, gains = features.problem, features.gains
    size = float(gains.max(initial=0.0)) or 1.0
    first = np.lexsort((-gains / size, -frequencies, ~features.is_included))
    rules = problem.rules
    if rules is None or rules.is_simple:
        return [int(features.first[f]) for f in first[:k]]
    units = Units(problem)
    of_unit = [int(features.of_column[units.columns(u)[0]]) for u in range(len(units))]
    values = np.array([frequencies[f] + TIE * gains[f] / size if f >= 0 else 0.0 for f in of_unit])
    settled = find_feasible(units, k)
    if settled is None:
        raise InfeasibleError(f"no set of k={k} keeps all constraints", parameter="constraints")
    feasible, found = settled
    with suppress(UndecidedError):
        found = feasible.complete(units.included, values) or found
    place = np.empty(len(features), dtype=np.intp)
    place[first] = np.arange(len(features))
    return units.columns_of(sorted(found, key=lambda u: int(place[of_unit[u]])))
