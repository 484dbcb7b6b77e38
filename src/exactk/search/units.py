"""What is chosen under rules: units, each a column or the columns of a group.

Rules may tell duplicates of a column apart, by cost or quota. So all duplicates are units, and they
exclude each other unless all must be in or the number cannot be reached without them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from exactk.problem.constraints import Rules
from exactk.problem.problem import Problem
from exactk.types import Bools, Indices

__all__ = ["CorrelationConflicts", "Units"]


# Correlations are sums: one that is this little above the limit is at the limit.
ROUNDING = 1e-10


class Units:
    """The units that a problem's rules leave to choose from, single columns first, then groups.

    Parameters
    ----------
    problem : Problem

    Attributes
    ----------
    singles : ndarray of intp
        Columns of the units that are one column, sorted; unit u is ``singles[u]``.
    groups : list of ndarray of intp
        Columns of the others.
    weights : ndarray of int
        How many of the k each counts.
    costs : ndarray of float
    included : list of int
        Units that are always in.
    """

    def __init__(self, problem: Problem) -> None:
        rules = problem.rules or Rules()
        self.problem, self.rules = problem, rules
        barred, grouped = set(rules.exclude), np.array(sorted(rules.group_of), dtype=np.intp)
        kept = [group for group in rules.feature_groups if not barred.issuperset(group.columns)]
        self._group_names = [group.name for group in kept]
        self._stands_for = np.arange(problem.n_features)
        self._stands_for[problem.duplicates] = problem.originals
        self.groups = [np.array(sorted(group.columns), dtype=np.intp) for group in kept]
        self.singles = self._single_columns(grouped)
        sizes = [len(columns) if rules.count == "columns" else 1 for columns in self.groups]
        self.weights = np.array([1] * len(self.singles) + sizes, dtype=np.int64)
        costs = np.zeros(problem.n_features) if rules.costs is None else np.array(rules.costs)
        self.costs = np.append(costs[self.singles], [costs[part].sum() for part in self.groups])
        wanted = self.spread(_flags(problem, rules.include))
        self.included: list[int] = np.flatnonzero(wanted).tolist()
        # Groups of constant columns, or of copies of another's, are there for those who insist.
        self.selectable = self.spread(_flags(problem, problem.usable))
        self.selectable[self._duplicated_groups()] = False
        self.selectable[self.included] = True

    @cached_property
    def names(self) -> list[str]:
        """Names of the units, as the user knows them."""
        originals, origins = self.problem.original_names, self.problem.input_columns
        return [originals[origins[p]] for p in self.singles] + self._group_names

    def _single_columns(self, grouped: Indices) -> Indices:
        problem, rules = self.problem, self.rules
        # Copies, too: they may differ in what they cost, or in the family that they belong to.
        singles = np.union1d(problem.usable, np.array(rules.include, dtype=np.intp))
        return np.setdiff1d(singles, [*grouped, *rules.exclude])

    @cached_property
    def has_duplicates(self) -> bool:
        """Whether some of the single columns are copies of each other."""
        same = self._stands_for[self.singles]
        return len(np.unique(same)) < len(same)

    def duplicates_of(self, unit: int) -> Bools:
        """Return which single columns are copies of this one; of those that must be in, none."""
        out = np.zeros(len(self), dtype=bool)
        if unit < len(self.singles):
            same = self._stands_for[self.singles]
            out[: len(same)] = same == same[unit]
            if unit in self.included:
                out[self.included] = False
        return out

    def _duplicated_groups(self) -> list[int]:
        """Return the groups whose columns are copies of those of an earlier one, all of them."""
        first: dict[frozenset[int], int] = {}
        copied = []
        for unit, columns in enumerate(self.groups, start=len(self.singles)):
            if first.setdefault(frozenset(self._stands_for[columns].tolist()), unit) != unit:
                copied.append(unit)
        return copied

    def __len__(self) -> int:
        """Return how many units there are."""
        return len(self.singles) + len(self.groups)

    def columns(self, unit: int) -> Indices:
        """Return the columns of a unit."""
        n = len(self.singles)
        return self.singles[unit : unit + 1] if unit < n else self.groups[unit - n]

    def columns_of(self, units: Sequence[int]) -> list[int]:
        """Return the columns of several units, in their order."""
        return [int(p) for u in units for p in self.columns(u)]

    def units_of(self, support: Sequence[int]) -> list[int] | None:
        """Return the units that these columns are, or None if they are not whole units."""
        wanted = set(support)
        found = np.flatnonzero(self.spread(_flags(self.problem, support))).tolist()
        return found if set(self.columns_of(found)) == wanted else None

    def spread(self, by_column: Bools) -> Bools:
        """Return for each unit whether the flag of any of its columns is set."""
        out = np.empty(len(self), dtype=bool)
        out[: len(self.singles)] = by_column[self.singles]
        for g, columns in enumerate(self.groups, start=len(self.singles)):
            out[g] = by_column[columns].any()
        return out


def _flags(problem: Problem, columns: Sequence[int] | Indices) -> Bools:
    flags = np.zeros(problem.n_features, dtype=bool)
    flags[np.asarray(columns, dtype=np.intp)] = True
    return flags


class CorrelationConflicts:
    """Which units are too strongly correlated to be chosen together.

    Parameters
    ----------
    units : Units
    limit : float or None
        The largest absolute correlation that two chosen columns may have; None is no limit.
    forbid_duplicates : bool
        Whether copies of a column clash with each other, unless both must be in: with a ridge two
        of them share the shrinkage and look better than one.

    Attributes
    ----------
    is_active : bool
        Whether any units may clash.
    """

    def __init__(
        self, units: Units, limit: float | None, *, forbid_duplicates: bool = True
    ) -> None:
        self.units, self.limit = units, limit
        self._forbids_duplicates = forbid_duplicates and units.has_duplicates
        self.is_active = limit is not None or self._forbids_duplicates
        self._rows: dict[int, Bools] = {}
        self._pairs: Bools | None = None
        problem = units.problem
        size = np.sqrt(problem.scatter)
        self._unit_size = np.divide(1.0, size, out=np.zeros_like(size), where=size > 0)
        self._none = np.zeros(len(units), dtype=bool)

    def of(self, unit: int) -> Bools:
        """Return which units clash with this one; it does not clash with itself."""
        if not self.is_active:
            return self._none
        if unit not in self._rows:
            row = self._none.copy() if self.limit is None else self._correlated(unit, self.limit)
            if self._forbids_duplicates:
                row |= self.units.duplicates_of(unit)
            row[unit] = False
            self._rows[unit] = row
        return self._rows[unit]

    def _correlated(self, unit: int, limit: float) -> Bools:
        columns = self.units.columns(unit)
        products = np.abs(self.units.problem.gram.take(columns))
        products *= self._unit_size
        products *= self._unit_size[columns][:, None]
        too_alike: Bools = products > limit + ROUNDING
        return self.units.spread(np.logical_or.reduce(too_alike, axis=0))

    def pairs(self) -> Bools:
        """Return the clashes of all pairs of units."""
        if self._pairs is None:
            self.units.problem.gram.prefetch(self.units.singles)
            self._pairs = np.array([self.of(unit) for unit in range(len(self.units))])
        return self._pairs

    def count(self, chosen: Sequence[int]) -> npt.NDArray[np.int64]:
        """Return for each unit how many of the chosen it clashes with."""
        total = np.zeros(len(self.units), dtype=np.int64)
        if self.is_active:
            for unit in chosen:
                total += self.of(unit)
        return total

    def clique(self, first: int, second: int, most: int = 64) -> list[int]:
        """Return units that all clash with each other, two that do among them."""
        found = [first, second]
        common = self.of(first) & self.of(second)
        while common.any() and len(found) < most:
            unit = int(np.argmax(common))
            found.append(unit)
            common = common & self.of(unit)
        return found
