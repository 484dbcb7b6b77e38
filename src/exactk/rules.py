"""Rules that a choice of columns must keep, by index: what in, what out, what together.

`exactk.constraints` makes them of what a user says by name. They hold no data, so the same rules
serve a table, its folds and its resamples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

__all__ = ["Count", "Family", "Group", "Rules"]

Indices = npt.NDArray[np.intp]
Floats = npt.NDArray[np.float64]
Count = Literal["groups", "columns"]


@dataclass(frozen=True)
class Group:
    """Columns that enter together or not at all."""

    name: str
    columns: tuple[int, ...]


@dataclass(frozen=True)
class Family:
    """Columns of which at least and at most so many may be chosen, counted as k is."""

    name: str
    columns: tuple[int, ...]
    at_least: int = 0
    at_most: int | None = None


@dataclass(frozen=True)
class Rules:
    """What every choice must keep.

    Attributes
    ----------
    include, exclude : tuple of int
        Columns that are always and never in, sorted; of a group all of its columns.
    groups : tuple of Group
        Disjoint.
    count : {"groups", "columns"}
        Whether a group counts as one of the k, or as its columns.
    families : tuple of Family
    costs : tuple of float or None
        One for each column.
    budget : float or None
    max_correlation : float or None
        No two chosen columns have a larger absolute correlation, those of one group excepted.

    Examples
    --------
    >>> rules = Rules(include=(2,), groups=(Group("colour", (3, 4)),))
    >>> rules.is_simple, rules.size_of([2, 3, 4])
    (False, 2)
    """

    include: tuple[int, ...] = ()
    exclude: tuple[int, ...] = ()
    groups: tuple[Group, ...] = ()
    count: Count = "groups"
    families: tuple[Family, ...] = ()
    costs: tuple[float, ...] | None = field(default=None, repr=False)
    budget: float | None = None
    max_correlation: float | None = None

    @property
    def is_simple(self) -> bool:
        """Whether they say no more than what is in and what is out."""
        return not (
            self.groups
            or self.families
            or self.budget is not None
            or self.max_correlation is not None
        )

    @cached_property
    def together(self) -> dict[int, Group]:
        """The group of each column that has one."""
        return {column: group for group in self.groups for column in group.columns}

    def size_of(self, support: Sequence[int] | Indices) -> int:
        """Return how many of the k these columns are; of a group all are there."""
        if self.count == "columns" or not self.groups:
            return len(support)
        whole = {self.together[int(p)].columns for p in support if int(p) in self.together}
        alone = sum(1 for p in support if int(p) not in self.together)
        return alone + len(whole)
