"""What every filter is: a score for each column, the higher the better, and the k highest."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from exactk.methods.base import Method
from exactk.monitor import Monitor
from exactk.problem import Problem
from exactk.result import Answer, Status

__all__ = ["Filter", "Ranking", "Scorer", "by_score"]

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]

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
        scores[problem.copies] = scores[problem.originals]
    return Answer(
        chosen.tolist(), ranking.status, max(len(trace), 1), trace, ordered=True, scores=scores
    )
