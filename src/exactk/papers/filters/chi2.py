"""Chi-squared statistic of the levels of a column and the classes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from exactk.errors import InputError
from exactk.papers.filters.base import BLOCK_VALUES, Scorer, class_sizes, labels
from exactk.papers.filters.discretise import WIDTH, Bins, class_tables
from exactk.params import Check
from exactk.problem.problem import Problem
from exactk.types import Floats
from exactk.utils.monitor import Monitor

__all__ = ["Chi2"]


class Chi2(Scorer):
    """Score each column by χ² = Σ_lc (n_lc − e_lc)² / e_lc of its levels and the classes.

    n_lc is the weight of the rows of class c at level l, and e_lc = n_l·n_c/n what it would be if
    level and class were independent. One pass over the table. Columns are compared by the
    statistic itself, as is usual, although one with fewer levels has fewer degrees of freedom.

    Parameters
    ----------
    bins : {"sd", "values", "counts"} or int
        How columns become levels: below, within and above mean ± width·sd; every distinct value,
        for columns that are discrete already; or that many bins of equal frequency. "counts" makes
        no levels: the column holds counts of an event, such as a word, and what the events of each
        class sum up to is compared with what would fall on it by its share of the rows, as
        scikit-learn's ``chi2`` does. Values must not be below zero; this score depends on the unit
        and the zero of a column, as no other does, and a copy of a column in other units has the
        score of the first.
    width : float
        For "sd". At 0.5, and at any width below 1, every column has two levels at least.

    Notes
    -----
    Cost: O(n·d) for the levels and their counts, O(d·c) for "counts". Memory: blocks of columns.

    Guaranteed: the k highest scores. Columns are judged one by one, so that several that say
    nearly the same may all be taken.

    For "counts" nothing is summed again: observed less expected is XᵀHY, which the problem holds,
    and the expected sums are n_c times the mean of the column. Of
    equal scores the lowest index comes first.

    References
    ----------
    H. Liu, R. Setiono, "Chi2: feature selection and discretization of numeric attributes",
    ICTAI 1995.

    Examples
    --------
    >>> import exactk
    >>> from sklearn.datasets import load_iris
    >>> problem = exactk.Problem.from_arrays(*load_iris(return_X_y=True))
    >>> exactk.solve(problem, 2, method="chi2").scores.round(1)
    array([129.3,  61.7, 240.2, 256. ])
    >>> exactk.solve(problem, 2, method="chi2", bins="counts").scores.round(1)
    array([ 10.8,   3.7, 116.3,  67. ])
    """

    checks: ClassVar[Mapping[str, Check]] = {
        "bins": Bins(options=("sd", "values", "counts")),
        "width": WIDTH,
    }

    def __init__(self, bins: str | int = "sd", width: float = 0.5) -> None:
        self.bins = bins
        self.width = width

    def score(self, problem: Problem, monitor: Monitor) -> Floats:  # noqa: D102
        if self.bins == "counts":
            return _of_counts(problem)
        scores = np.empty(len(problem.candidates))
        for part, counts in class_tables(problem, self.bins, self.width):
            of_class, of_level = counts.sum(axis=1), counts.sum(axis=0)
            expected = of_class[:, None] * of_level[None] / of_class.sum(axis=0)
            scores[part] = ((counts - expected) ** 2 / expected).sum(axis=(0, 1))
        return scores


def _of_counts(problem: Problem) -> Floats:
    """The statistic of the sums of each class."""
    _refuse_negative(problem)
    S = problem.candidates
    excess = problem.cross[:, S] / problem.x_scale[S]
    expected = np.outer(class_sizes(problem), problem.x_mean[S])
    # In this order, for squares of large or small values leave the range of floats.
    scores: Floats = (excess / expected * excess).sum(axis=0)
    return scores


def _refuse_negative(problem: Problem) -> None:
    rows, S = problem.rows, problem.candidates
    assert rows is not None
    counted = labels(problem).rows
    step = max(1, BLOCK_VALUES // max(1, rows.n_rows))
    for start in range(0, len(S), step):
        columns = S[start : start + step]
        X = rows.columns(columns)
        least = (X if counted is None else X[counted]).min(axis=0)
        if least.min() < 0:
            first = int(np.argmax(least < 0))
            raise InputError(
                "bins='counts' takes counts, zero or more, and column "
                f"{problem.name(columns[first])!r} has the value {least[first]:g}",
                parameter="bins", hint="give bins='sd', or leave such columns out",
            )  # fmt: skip
