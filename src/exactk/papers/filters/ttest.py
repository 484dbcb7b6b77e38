"""t-test: distance of the class means in units of its standard error."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

import numpy as np

from exactk.errors import InputError
from exactk.papers.filters.base import Filter, Ranking, by_score
from exactk.params import Boolean, Check, Choice
from exactk.problem.problem import Problem
from exactk.types import Floats
from exactk.utils.monitor import Monitor

__all__ = ["TTest"]


# Where classes do not overlap at all: what is left of the variance within them is rounding.
LEAST_WITHIN = 1e-14


class TTest(Filter):
    """Score each column by |t| = |μ₁ − μ₂| / √(s₁²/n₁ + s₂²/n₂), Welch's statistic.

    s² are the unbiased variances of the two classes; with `equal_var` both are the pooled
    variance ((n₁ − 1)s₁² + (n₂ − 1)s₂²) / (n₁ + n₂ − 2), Student's statistic. Of three and more
    classes each is held against all others together, and `combine` makes one score of the |t|.
    Means of the classes come from the moments, their variances from one more pass over the table.

    Parameters
    ----------
    equal_var : bool
        Whether both sides are taken to have the same variance.
    combine : {"max", "mean"}
        What to take of the |t| of several classes; it has no effect for two, whose |t| are equal.

    Notes
    -----
    Cost: O(n·d). Memory: O(d·c), beside a block of the table.

    Guaranteed: the k highest scores. Columns are judged one by one, so that several that say
    nearly the same may all be taken.

    A class of one row has no variance: it is taken to be that of the other side. Weights are
    counts, so that n is a sum of weights; if all of them together make two or less they are
    shares, and s² is divided by n. The score is |t| and not a probability: with Welch's degrees
    of freedom the order of the two may differ a little.

    References
    ----------
    Student, "The probable error of a mean", Biometrika 6, 1908.
    B. L. Welch, "The generalization of 'Student's' problem when several different population
    variances are involved", Biometrika 34, 1947.

    Examples
    --------
    >>> import exactk
    >>> from sklearn.datasets import load_breast_cancer
    >>> problem = exactk.Problem.from_arrays(*load_breast_cancer(return_X_y=True))
    >>> result = exactk.solve(problem, 3, method="ttest")
    >>> result.order, result.scores[result.order].round(3)
    (array([27, 22,  7]), array([29.118, 25.332, 24.845]))
    """

    checks: ClassVar[Mapping[str, Check]] = {
        "equal_var": Boolean(),
        "combine": Choice(options=("max", "mean")),
    }

    def __init__(self, equal_var: bool = False, combine: Literal["max", "mean"] = "max") -> None:
        self.equal_var = equal_var
        self.combine = combine

    def check_problem(self, problem: Problem) -> None:  # noqa: D102
        weights = problem.weights
        n_rows = problem.n_rows if weights is None else int(np.count_nonzero(weights > 0))
        if n_rows < 3:
            raise InputError(
                "ttest needs at least three rows, for a variance within the classes, and there "
                f"are {n_rows}", parameter="X", hint="give more, or use method='fisher'",
            )  # fmt: skip

    def rank(self, problem: Problem, k: int, monitor: Monitor) -> Ranking:  # noqa: D102
        t = self._score(problem)
        # Of the same order, at most 1, and with errors of one size: beside a column whose classes
        # do not overlap, whose |t| is rounding, others differ as they do without it.
        return Ranking(by_score(t**2 / (problem.weight + t**2), 1.0), t)

    def _score(self, problem: Problem) -> Floats:
        rows, target = problem.rows, problem.target
        assert rows is not None
        assert target is not None
        assert target.codes is not None
        members = np.ascontiguousarray(target.block(0, rows.n_rows).T)
        if problem.weights is not None:
            members *= problem.weights
        # Counted, for n − 1 of a class of one row must be zero.
        sizes = members.sum(axis=1)
        scale = problem.x_scale
        means = problem.cross / sizes[:, None]
        centres = means / np.where(scale > 0, scale, 1.0) + problem.x_mean
        within = rows.class_scatter(members, target.codes, centres) * scale**2
        S = problem.candidates
        t = self._statistics(sizes, means[:, S], within[:, S])
        return t.max(axis=0) if self.combine == "max" else t.mean(axis=0)

    def _statistics(self, sizes: Floats, means: Floats, within: Floats) -> Floats:
        """|t| of each class against all others, from sums of squares within each class."""
        n = float(sizes.sum())
        # Against each other both of two classes have the same |t|.
        t = np.empty((1 if len(sizes) == 2 else len(sizes), means.shape[1]))
        for c in range(len(t)):
            rest = np.arange(len(sizes)) != c
            n_c, n_rest = float(sizes[c]), float(sizes[rest].sum())
            mean = sizes[rest] @ means[rest] / n_rest
            between = sizes[rest] @ (means[rest] - mean) ** 2
            inner, outer = within[c], within[rest].sum(axis=0) + between
            gap = means[c] - mean
            if self.equal_var:
                pooled = (inner + outer) / (n - 2.0 if n > 2.0 else n)
                square = pooled * (1.0 / n_c + 1.0 / n_rest)
            else:
                square = _welch(inner, outer, n_c, n_rest)
            total = inner + outer + gap**2 * n_c * n_rest / n
            least = LEAST_WITHIN * total / n * (1.0 / n_c + 1.0 / n_rest)
            t[c] = np.abs(gap) / np.sqrt(np.maximum(square, least))
        return t


def _welch(inner: Floats, outer: Floats, n_c: float, n_rest: float) -> Floats:
    """Squared standard error of the difference, each side with a variance of its own."""
    degrees = [m - 1.0 if n_c + n_rest > 2.0 else m for m in (n_c, n_rest)]
    sums = [inner, outer]
    if degrees[0] <= 0.0:
        degrees[0], sums[0] = degrees[1], sums[1]
    elif degrees[1] <= 0.0:
        degrees[1], sums[1] = degrees[0], sums[0]
    square: Floats = sums[0] / (degrees[0] * n_c) + sums[1] / (degrees[1] * n_rest)
    return square
