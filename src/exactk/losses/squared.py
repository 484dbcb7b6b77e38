"""Losses that are squared errors, for which moments are enough."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from exactk.data.targets import Target, Task
from exactk.losses.base import Criterion, Loss, refuse_numbers
from exactk.types import Floats

__all__ = ["OptimalScoring", "Squared", "class_scores"]


class Squared(Loss):
    """The squared error ‖y_i − x_i W − b‖², of one-hot classes or of numbers."""

    name: ClassVar[str] = "squared"
    summary: ClassVar[str] = "‖y − xW − b‖², of one-hot classes or numbers"
    by_moments: ClassVar[bool] = True

    def bind(self, target: Target, weights: Floats) -> Criterion:  # noqa: D102
        raise AssertionError("squared losses are fitted from moments")


class OptimalScoring(Loss):
    """The squared error of classes coded so that the criterion is that of linear discriminants.

    Class c is coded as 1/√n_c in its own output. The objective without ridge is then
    C − 1 − tr(S_T⁻¹ S_B), with S_T the scatter of the chosen columns and S_B that between the
    classes: 0 where they tell the classes apart perfectly, C − 1 where all means are the same.
    Plain squared loss weighs what tells two classes apart by their sizes once more. With
    ``class_weight="balanced"`` all classes count alike in S_T and S_B, too.

    Examples
    --------
    >>> import exactk
    >>> from sklearn.datasets import load_wine
    >>> problem = exactk.Problem.from_arrays(*load_wine(return_X_y=True), loss="optimal_scoring")
    >>> result = exactk.solve(problem, 4)
    >>> result.support, round(result.total, 6), round(result.objective, 4)
    (array([ 0,  6,  9, 12]), 2.0, 0.4085)
    """

    name: ClassVar[str] = "optimal_scoring"
    summary: ClassVar[str] = "squared error of classes scored so that it is LDA's tr(S_T⁻¹S_B)"
    task: ClassVar[Task] = "classification"
    by_moments: ClassVar[bool] = True

    def check_task(self, task: str, *, classes: bool) -> None:  # noqa: D102
        refuse_numbers(self.name, task, classes)

    def bind(self, target: Target, weights: Floats) -> Criterion:  # noqa: D102
        raise AssertionError("squared losses are fitted from moments")


def class_scores(shares: Floats, weight: float) -> Floats:
    """Return what codes each class, given their shares of the rows: 1/√n_c.

    Examples
    --------
    >>> class_scores(np.array([0.25, 0.75]), 16.0).round(4).tolist()
    [0.5, 0.2887]
    """
    # A class without rows, as in a fold, has a column of zeros whatever stands for it.
    counts = np.where(shares > 0, shares * weight, 1.0)
    scores: Floats = 1.0 / np.sqrt(counts)
    return scores
