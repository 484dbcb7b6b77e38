"""Fisher score: scatter between the classes beside scatter within them."""

from __future__ import annotations

from typing import ClassVar

from exactk.papers.filters.base import Filter, Ranking, by_score, scatters
from exactk.problem.problem import Problem
from exactk.utils.monitor import Monitor

__all__ = ["Fisher"]


class Fisher(Filter):
    """Score each column by Σ_c n_c(μ_c − μ)² / Σ_c n_c σ_c².

    Both sums are functions of the moments: with one-hot classes row c of XᵀHY is n_c(μ_c − μ), and
    what lies within the classes is the scatter less what lies between them. The table is not read
    again, and moments without rows serve as well. The F statistic of the analysis of variance is
    the same number times (n − c)/(c − 1): the same order.

    Notes
    -----
    Cost: O(d·c) from the moments, for which the table is read once. Memory: O(d·c).

    Guaranteed: the k highest scores. Columns are judged one by one, so that several that say
    nearly the same may all be taken.

    References
    ----------
    R. O. Duda, P. E. Hart, D. G. Stork, "Pattern classification", 2nd edition, 2000.

    Examples
    --------
    >>> import exactk
    >>> from sklearn.datasets import load_iris
    >>> problem = exactk.Problem.from_arrays(*load_iris(return_X_y=True))
    >>> result = exactk.solve(problem, 2, method="fisher")
    >>> result.support, result.scores.round(3)
    (array([2, 3]), array([ 1.623,  0.669, 16.057, 13.061]))
    """

    needs_rows: ClassVar[bool] = False

    def rank(self, problem: Problem, k: int, monitor: Monitor) -> Ranking:  # noqa: D102
        between, within = scatters(problem)
        # The share of the scatter is of the same order and at most 1: beside a column that tells
        # the classes without fail, whose score is rounding, others differ as they do without it.
        return Ranking(by_score(between / (between + within), 1.0), between / within)
