"""CFS: the subset that best tells the classes and whose members tell least of each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import ClassVar

import numpy as np

from exactk.papers.filters.base import Filter, Ranking
from exactk.papers.filters.discretise import BINS, WIDTH, LevelTable
from exactk.params import Check, Integer
from exactk.problem.problem import Problem
from exactk.result import Answer, Status
from exactk.types import Floats, Indices
from exactk.utils.monitor import Monitor

__all__ = ["CFS"]


# Merits that agree to this many digits are equal: they lie between 0 and √k.
DIGITS = 12


class CFS(Filter):
    """Maximise the merit k·r_cf / √(k + k(k−1)·r_ff) of a subset by best-first search.

    r_cf is the mean symmetrical uncertainty of a member and the classes, r_ff that of two members,
    where SU(a, b) = 2·I(a; b)/(H(a) + H(b)) of levels lies between 0 and 1. The search
    starts with no column. It expands the best subset that it has seen and not expanded yet, that
    is, it finds the merit of that subset with each other column added, and ends when `patience`
    expansions in a row have seen no merit above the best so far.

    Hall's search may end at any size; this one has to end at k:

    * subsets of k columns are seen, never expanded;
    * at the end, the best of the subsets of size k that were seen is the answer;
    * if none of them has k columns, the best subset seen at all grows, by the column that
      leaves the highest merit each time, until it has k.

    Uncertainties of a column with all others come from one matrix product, when a subset with that
    column is first expanded, and are kept; an expansion then costs O(d log d). Nothing is
    guaranteed but that no subset seen of size k is better; the best of all is found if patience
    lasts for every subset below size k. The trace is the merit of the subset as its columns came
    in. Merits belong to subsets: there are no scores of columns.

    Parameters
    ----------
    patience : int
        Expansions without a better merit after which the search ends: 5 in the paper.
    bins : {"sd", "values"} or int
        How columns become levels: below, within and above mean ± width·sd; every distinct value,
        for columns that are discrete already; or that many bins of equal frequency.
    width : float
        For "sd". At 0.5, and at any width below 1, every column has two levels at least.

    Notes
    -----
    Cost: O(n·d·L²) for each column that is expanded first, L the levels, and O(d log d) an
    expansion. Memory: a byte for each value of the table, d numbers for each such column.

    Guaranteed: exactly k columns; no subset of size k that was seen has a higher merit.

    Hall cuts numbers into levels by the entropy of the classes (Fayyad & Irani), which leaves many
    columns with one level and nothing to choose between; here levels are made without the classes.
    His addition of locally predictive columns has no place where k is given.

    When time is up, or the user stops it, the best subset seen is filled up with the columns that
    each by itself leave the highest merit beside it. Of equal merits that of the lowest
    index is the first.

    References
    ----------
    M. A. Hall, L. A. Smith, "Feature selection for machine learning: comparing a correlation-based
    filter approach to the wrapper", FLAIRS 1999.

    M. A. Hall, "Correlation-based feature selection for machine learning", thesis, University of
    Waikato, 1999.

    Examples
    --------
    >>> import exactk
    >>> from sklearn.datasets import load_breast_cancer
    >>> problem = exactk.Problem.from_arrays(*load_breast_cancer(return_X_y=True))
    >>> result = exactk.solve(problem, 4, method="cfs")
    >>> result.order, np.round(result.trace, 3)
    (array([22, 27,  7, 20]), array([0.471, 0.571, 0.584, 0.592]))
    """

    checks: ClassVar[Mapping[str, Check]] = {"patience": Integer(1), "bins": BINS, "width": WIDTH}

    def __init__(self, patience: int = 5, bins: str | int = "sd", width: float = 0.5) -> None:
        self.patience = patience
        self.bins = bins
        self.width = width

    def rank(self, problem: Problem, k: int, monitor: Monitor) -> Ranking:  # noqa: D102
        merits = _Merits(LevelTable(problem, self.bins, self.width))
        subset, status = _Search(merits, k, self.patience, monitor).run()
        return _ranking(merits, subset, k, status)

    def run_path(self, problem: Problem, k_max: int, monitor: Monitor) -> Iterator[Answer]:
        """A search for each size, for the best subsets need not be nested; uncertainties are kept.

        Once time is up or the user has stopped it, the other sizes are read off the last subset.
        """
        merits = _Merits(LevelTable(problem, self.bins, self.width))
        last: Ranking | None = None
        for k in range(1, k_max + 1):
            if last is None or last.status is Status.CONVERGED:
                subset, status = _Search(merits, k, self.patience, monitor).run()
                last = _ranking(merits, subset, k_max, status)
            support, trace = problem.candidates[last.order[:k]], tuple(last.trace[:k])
            yield Answer(support.tolist(), last.status, len(trace), trace, ordered=True)


class _Merits:
    """Uncertainties of columns, those of pairs when they are asked for."""

    def __init__(self, table: LevelTable) -> None:
        self.with_class = table.class_uncertainty()
        self._table = table
        self._kept: dict[int, Floats] = {}

    def __len__(self) -> int:
        """Return the number of columns."""
        return len(self.with_class)

    def pairs(self, p: int) -> Floats:
        """Uncertainty of column p with each."""
        if p not in self._kept:
            self._kept[p] = self._table.uncertainty(p)
        return self._kept[p]


@dataclass(frozen=True, eq=False)
class _Subset:
    """Columns in the order in which they came in, and what the merit is made of.

    Attributes
    ----------
    columns : tuple of int
    trace : tuple of float
        Merit with the first column, the first two, and so on.
    relevance : float
        Sum of the uncertainties of the columns and the class.
    redundancy : float
        Sum of those of all pairs.
    """

    columns: tuple[int, ...] = ()
    trace: tuple[float, ...] = ()
    relevance: float = 0.0
    redundancy: float = 0.0

    @property
    def merit(self) -> float:
        return self.trace[-1] if self.trace else 0.0


def merit(size: int, relevance: Floats | float, redundancy: Floats | float) -> Floats:
    """Return k·r_cf / √(k + k(k−1)·r_ff) from the sums over members and over pairs.

    Examples
    --------
    >>> round(float(merit(2, 0.130 + 0.185, 0.022)), 3)
    0.22
    """
    found: Floats = np.asarray(relevance) / np.sqrt(size + 2.0 * np.asarray(redundancy))
    return found


class _Children:
    """A subset with each other column added: their merits at once, the subsets when asked for."""

    def __init__(self, parent: _Subset, redundancy: Floats, merits: _Merits) -> None:
        self._parent, self._with_class = parent, merits.with_class
        self.redundancy = redundancy
        relevance, pairs = parent.relevance + merits.with_class, parent.redundancy + redundancy
        self._merits = merit(len(parent.columns) + 1, relevance, pairs)
        left = np.delete(np.arange(len(merits)), parent.columns)
        self.order: Indices = left[np.argsort(-np.round(self._merits[left], DIGITS), kind="stable")]

    def subset(self, i: int) -> _Subset:
        """The i-th best."""
        p, parent = int(self.order[i]), self._parent
        return _Subset(
            (*parent.columns, p),
            (*parent.trace, float(self._merits[p])),
            parent.relevance + float(self._with_class[p]),
            parent.redundancy + float(self.redundancy[p]),
        )


class _Search:
    """Best-first search for one size."""

    def __init__(self, merits: _Merits, k: int, patience: int, monitor: Monitor) -> None:
        self._merits, self._k = merits, min(k, len(merits))
        self._patience, self._monitor = patience, monitor
        self._best = self._best_of_k = _Subset()
        # Of every expanded subset the best child that has not been expanded itself: merit with a
        # minus sign, columns, the children, and which of them.
        self._open: list[tuple[float, tuple[int, ...], int, int]] = []
        self._families: list[_Children] = []

    def run(self) -> tuple[_Subset, Status]:
        """Return the answer and how the search ended: with fewer columns if it was cut short."""
        status = Status.INTERRUPTED
        try:
            status = self._look()
            if status is Status.CONVERGED and not self._best_of_k.columns:
                status = self._grow()
        except KeyboardInterrupt:
            if not self._best.columns:
                raise
        return self._best_of_k if self._best_of_k.columns else self._best, status

    def _look(self) -> Status:
        """Expand the best subset seen until patience, time or subsets come to an end."""
        stale, seen = 0, {frozenset[int]()}
        self._expand(_Subset(), np.zeros(len(self._merits)))
        while self._open:
            self._monitor.report(len(self._families), None, self._best.merit)
            if stale >= self._patience:
                break
            if self._monitor.expired:
                return Status.TIME_LIMIT
            _, _, family, i = heappop(self._open)
            children = self._families[family]
            subset = children.subset(i)
            self._push(family, i + 1)
            # Other orders of the same columns are the same subset.
            if frozenset(subset.columns) in seen:
                continue
            seen.add(frozenset(subset.columns))
            better = self._expand(
                subset, children.redundancy + self._merits.pairs(subset.columns[-1])
            )
            stale = 0 if better else stale + 1
        return Status.CONVERGED

    def _expand(self, subset: _Subset, redundancy: Floats) -> bool:
        """See all children, and say whether one is better than all before."""
        children = _Children(subset, redundancy, self._merits)
        child = children.subset(0)
        self._families.append(children)
        if len(child.columns) < self._k:
            self._push(len(self._families) - 1, 0)
        elif _better(child, self._best_of_k):
            self._best_of_k = child
        if not _better(child, self._best):
            return False
        self._best = child
        return True

    def _push(self, family: int, i: int) -> None:
        children = self._families[family]
        if i < len(children.order):
            child = children.subset(i)
            key = (-round(child.merit, DIGITS), tuple(sorted(child.columns)))
            heappush(self._open, (*key, family, i))

    def _grow(self) -> Status:
        """Add columns to the best subset, each the best beside those before."""
        redundancy = sum((self._merits.pairs(p) for p in self._best.columns), 0.0)
        while len(self._best.columns) < self._k:
            if self._monitor.expired:
                return Status.TIME_LIMIT
            self._best = _Children(self._best, np.asarray(redundancy), self._merits).subset(0)
            self._monitor.report(len(self._best.columns), self._k, self._best.merit)
            redundancy = redundancy + self._merits.pairs(self._best.columns[-1])
        return Status.CONVERGED


def _better(one: _Subset, other: _Subset) -> bool:
    """Whether a merit is higher by more than rounding, or the first at all."""
    return not other.columns or one.merit > other.merit + 10.0**-DIGITS


def _ranking(merits: _Merits, subset: _Subset, size: int, status: Status) -> Ranking:
    """The subset, and if it was cut short, what is best beside it one by one."""
    order = np.array(subset.columns, dtype=np.intp)
    if status is not Status.CONVERGED and len(order) < min(size, len(merits)):
        redundancy = np.sum([merits.pairs(p) for p in subset.columns], axis=0)
        order = np.concatenate([order, _Children(subset, redundancy, merits).order])
    return Ranking(order[:size], None, subset.trace, status)
