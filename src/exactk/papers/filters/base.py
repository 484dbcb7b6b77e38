"""What every filter is: a score for each column, the higher the better, and the k highest.

A score does not change if a column is shifted, scaled or negated, if rows change their order, or if
a weight replaces repeated rows. Ties, up to rounding, go to the lowest index.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from exactk.data.usable_columns import are_proportions
from exactk.methods.base import Method
from exactk.papers.methods.standard_table import column_unit, standard_rows
from exactk.problem.problem import Problem
from exactk.result import Answer, Status
from exactk.types import Floats, Indices
from exactk.utils.monitor import Monitor

__all__ = [
    "ClassTable",
    "Filter",
    "Labels",
    "Ranking",
    "Scorer",
    "by_score",
    "class_sizes",
    "class_table",
    "column_blocks",
    "labels",
    "scatters",
]


# Values of a block of columns: some megabytes, so that a pass over it stays near the caches.
BLOCK_VALUES = 2**20
# Where classes do not overlap at all: what is left of the scatter within them is rounding.
LEAST_WITHIN = 1e-14
# A class of a smaller share of the weight than this has a mean and a size of rounding alone.
LEAST_SHARE = 1e-16


@dataclass(frozen=True, eq=False)
class Labels:
    """Class and weight of the rows that count.

    Attributes
    ----------
    rows : ndarray of intp or None
        Which rows these are; None for all.
    codes : ndarray of intp of shape (n,)
    weights : ndarray of shape (n,)
        Ones where the problem has no weights; weights that sum to one or less are shares, and are
        scaled to the number of rows.
    n_classes : int
    """

    rows: Indices | None
    codes: Indices
    weights: Floats
    n_classes: int

    @property
    def sizes(self) -> Floats:
        """Weight of each class: its number of rows where there are no weights."""
        sizes: Floats = np.bincount(self.codes, self.weights, self.n_classes).astype(np.float64)
        return sizes


@dataclass(frozen=True, eq=False)
class ClassTable:
    """All candidate columns, centred and standardised, with the labels of the rows."""

    X: Floats
    labels: Labels


def labels(problem: Problem) -> Labels:
    """Return class and weight of each row of weight above zero; `solve` has checked the classes."""
    assert problem.target is not None
    assert problem.target.codes is not None
    codes, weights = problem.target.codes, problem.weights
    rows = None
    if weights is not None:
        rows = np.flatnonzero(weights > 0)
        codes, weights = codes[rows], weights[rows]
    weights = np.ones(len(codes)) if weights is None else weights
    if are_proportions(problem.weight):
        # Shares, not counts: neighbours are counted by weight.
        weights = weights * (len(codes) / problem.weight)
    return Labels(rows, codes, weights, problem.n_outputs)


def class_sizes(problem: Problem) -> Floats:
    """Return the weight of each class from the moments, above zero."""
    sizes: Floats = problem.weight * np.maximum(problem.y_mean, LEAST_SHARE)
    return sizes


def scatters(problem: Problem) -> tuple[Floats, Floats]:
    """Return the scatter of each candidate between the classes and within them.

    Functions of the moments: with one-hot classes row c of XᵀHY is n_c(μ_c − μ), and what does
    not lie between the classes lies within them.
    """
    S = problem.candidates
    cross, sizes = problem.cross[:, S], class_sizes(problem)
    between: Floats = np.einsum("cj,cj,c->j", cross, cross, 1.0 / sizes)
    total = problem.scatter[S]
    return between, np.maximum(total - between, LEAST_WITHIN * total)


def class_table(problem: Problem) -> ClassTable:
    """Return the whole table, for filters that compare rows."""
    return ClassTable(standard_rows(problem)[0], labels(problem))


def column_blocks(problem: Problem, rows: Indices | None) -> Iterator[tuple[slice, Floats]]:
    """Return some candidate columns at a time, centred and standardised.

    Parameters
    ----------
    problem : Problem
    rows : ndarray of intp or None
        The rows to keep (`Labels.rows`).

    Yields
    ------
    part : slice
        Positions among the candidates.
    X : ndarray of shape (n, m)
        A new array.
    """
    assert problem.rows is not None
    unit, step = column_unit(problem), max(1, BLOCK_VALUES // max(1, problem.rows.n_rows))
    for start in range(0, len(problem.candidates), step):
        part = slice(start, min(start + step, len(problem.candidates)))
        columns = problem.candidates[part]
        X = problem.rows.columns(columns)
        X = X if rows is None else X[rows]
        X -= problem.x_mean[columns]
        X *= problem.x_scale[columns] / unit
        yield part, X


# Scores that differ by less than this, beside the largest, differ by rounding.
ROUNDING_DIGITS = 12


@dataclass(frozen=True, eq=False)
class Ranking:
    """Candidates in the order in which a filter takes them.

    Attributes
    ----------
    order : ndarray of intp
        Positions among the candidates, the best first; all of them, or as many as were asked for.
    scores : ndarray or None
        A score for each candidate, not rising along `order`; None if a method has none.
    trace : sequence of float
        For methods that take one column after the other: the criterion of each as it was taken.
        For others that iterate, their objective.
    status : Status
    per_column : bool
        Whether the trace has an entry for each column, and so goes with k.
    """

    order: Indices
    scores: Floats | None
    trace: Sequence[float] = ()
    status: Status = Status.CONVERGED
    per_column: bool = True


def by_score(scores: Floats, unit: float = 0.0) -> Indices:
    """Return the order of falling scores; what is equal up to rounding stays in place.

    Parameters
    ----------
    scores : ndarray
    unit : float
        Size of the numbers that scores come from, where these may be zero up to rounding, all of
        them.

    Examples
    --------
    >>> by_score(np.array([1.0, 3.0, 3.0 + 1e-15, -2.0]))
    array([1, 2, 0, 3])
    >>> by_score(np.array([0.0, 1e-16]), unit=1.0)
    array([0, 1])
    """
    size = max(float(np.abs(scores).max(initial=0.0)), unit) or 1.0
    order: Indices = np.argsort(-np.round(scores / size, ROUNDING_DIGITS), kind="stable")
    return order


class Filter(Method):
    """Base of methods that rank columns; a subclass writes `rank`, or is a `Scorer`.

    Only candidates are ranked; a copy of a column has the score of its original, and constant
    columns have none. Scores must not depend on shift, scale or sign of a column.
    """

    needs_rows: ClassVar[bool] = True
    needs_classes: ClassVar[bool] = True
    uses_gram: ClassVar[bool] = False

    @abstractmethod
    def rank(self, problem: Problem, k: int, monitor: Monitor) -> Ranking:
        """Return the candidates in order of choice, as far as k."""

    def run(self, problem: Problem, k: int, monitor: Monitor) -> Answer:  # noqa: D102
        return _answer(problem, k, self.rank(problem, k, monitor))

    def run_path(self, problem: Problem, k_max: int, monitor: Monitor) -> Iterator[Answer]:
        """Every size from one ranking."""
        ranking = self.rank(problem, k_max, monitor)
        for k in range(1, k_max + 1):
            yield _answer(problem, k, ranking)


class Scorer(Filter):
    """Base of filters whose order is that of a score for each column; a subclass writes `score`.

    Attributes
    ----------
    unit : float
        Size of the numbers that scores come from (see `by_score`).
    """

    unit: ClassVar[float] = 0.0

    @abstractmethod
    def score(self, problem: Problem, monitor: Monitor) -> Floats:
        """Return a finite score for each candidate, the higher the better."""

    def rank(self, problem: Problem, k: int, monitor: Monitor) -> Ranking:  # noqa: D102
        scores = self.score(problem, monitor)
        return Ranking(by_score(scores, self.unit), scores)


def _answer(problem: Problem, k: int, ranking: Ranking) -> Answer:
    chosen = problem.candidates[ranking.order[:k]]
    trace = tuple(ranking.trace[:k] if ranking.per_column else ranking.trace)
    scores = None
    if ranking.scores is not None:
        scores = np.full(problem.n_features, np.nan)
        scores[problem.candidates] = ranking.scores
        scores[problem.duplicates] = scores[problem.originals]
    return Answer(
        chosen.tolist(), ranking.status, max(len(trace), 1), trace, ordered=True, scores=scores
    )
