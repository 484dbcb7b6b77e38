"""Fisher score: scatter between the classes beside scatter within them."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import numpy.typing as npt

from exactk.filters.base import Filter
from exactk.filters.table import scatters
from exactk.monitor import Monitor
from exactk.problem import Problem

__all__ = ["Fisher"]

Floats = npt.NDArray[np.float64]


class Fisher(Filter):
    """Score each column by Σ_c n_c(μ_c − μ)² / Σ_c n_c σ_c².

    Both sums are functions of the moments: with one-hot classes row c of XᵀHY is n_c(μ_c − μ), and
    what lies within the classes is the scatter less what lies between them. The table is not read
    again, and moments without rows serve as well. The F statistic of the analysis of variance is
    the same number times (n − c)/(c − 1): the same order.

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

    def score(self, problem: Problem, monitor: Monitor) -> Floats:  # noqa: D102
        between, within = scatters(problem)
        return between / within
