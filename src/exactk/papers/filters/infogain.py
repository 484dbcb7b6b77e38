"""Information gain: how much the levels of a column tell of the classes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from exactk.papers.filters.base import Scorer
from exactk.papers.filters.discretise import BINS, WIDTH, class_tables, entropy
from exactk.params import Check
from exactk.problem.problem import Problem
from exactk.types import Floats
from exactk.utils.monitor import Monitor

__all__ = ["InfoGain"]


class InfoGain(Scorer):
    """Score each column by H(y) − H(y | x), in nats, of its levels.

    With the weights n_lc of the rows of class c at level l, H(y) = −Σ_c (n_c/n) log(n_c/n), and
    H(y | x) is the mean over the levels of the entropy of the classes within each; 0·log 0 is 0.
    This is the mutual information of x and y, the gain of a decision tree that splits on x once,
    into all its levels. One pass over the table. Nothing is guaranteed: columns are judged one
    by one, and the more levels a column has, the more of its gain is chance.

    Parameters
    ----------
    bins : {"sd", "values"} or int
        How columns become levels: below, within and above mean ± width·sd; every distinct value,
        for columns that are discrete already; or that many bins of equal frequency.
    width : float
        For "sd". At 0.5, and at any width below 1, every column has two levels at least.

    Notes
    -----
    Cost: O(n·d) for the levels and their counts. Memory: blocks of columns.

    Guaranteed: the k highest scores. Columns are judged one by one, so that several that say
    nearly the same may all be taken.

    Equal gains are common where there are few rows; the lowest index then comes first.

    References
    ----------
    L. E. Raileanu, K. Stoffel, "Theoretical comparison between the Gini index and information gain
    criteria", Annals of Mathematics and Artificial Intelligence 41, 2004.

    Examples
    --------
    >>> import exactk
    >>> from sklearn.datasets import load_iris
    >>> problem = exactk.Problem.from_arrays(*load_iris(return_X_y=True))
    >>> result = exactk.solve(problem, 2, method="infogain")
    >>> result.support, result.scores.round(3)
    (array([2, 3]), array([0.469, 0.235, 0.877, 0.914]))
    """

    unit: ClassVar[float] = 1.0
    checks: ClassVar[Mapping[str, Check]] = {"bins": BINS, "width": WIDTH}

    def __init__(self, bins: str | int = "sd", width: float = 0.5) -> None:
        self.bins = bins
        self.width = width

    def score(self, problem: Problem, monitor: Monitor) -> Floats:  # noqa: D102
        scores = np.empty(len(problem.candidates))
        for part, counts in class_tables(problem, self.bins, self.width):
            H_y, H_x = entropy(counts.sum(axis=1)), entropy(counts.sum(axis=0))
            scores[part] = np.maximum(H_y + H_x - entropy(counts, axis=(0, 1)), 0.0)
        return scores
