"""How much ridge: a rule, cross-validation, or the user's number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from exactk.errors import InputError
from exactk.losses.likelihood import Logistic, Poisson
from exactk.methods.base import generator
from exactk.model_selection.criteria import counted_rows
from exactk.model_selection.cross_validation import fold_by_fold
from exactk.problem.problem import Problem
from exactk.problem.validation import check_ridge
from exactk.result import Status
from exactk.solver import solve

__all__ = ["auto_ridge", "cv_ridge", "find_ridge"]

# Of the ridge by rule, for likelihoods.
LIKELIHOOD_SHARE = 0.1
GRID = (0.001, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)


def auto_ridge(problem: Problem) -> float:
    """Return the relative ridge by rule: 0.1·√(d/n), at least 0.1 and at most 3.

    n is the number of rows (or the sum of whole weights) and d that of usable columns. Of the
    rules and fixed values that cost nothing it has the best mean rank on real data
    (``benchmarks/ridge.py``): wide tables need more ridge than tall ones. For
    likelihoods ("logistic", "poisson") a tenth of it, with which models are the most accurate:
    probabilities suffer from more.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> auto_ridge(Problem.from_arrays(*load_iris(return_X_y=True)))
    0.1
    """
    n = counted_rows(problem)
    ridge = float(np.clip(0.1 * np.sqrt(problem.n_usable / n), 0.1, 3.0))
    by_likelihood = isinstance(problem.loss, (Logistic, Poisson))
    return ridge * (LIKELIHOOD_SHARE if by_likelihood else 1.0)


def cv_ridge(
    problem: Problem,
    k: int,
    *,
    grid: Sequence[float] = GRID,
    n_folds: int = 5,
    random_state: object = None,
) -> float:
    """Return the ridge of the grid with the least cross-validated loss at this k.

    Parameters
    ----------
    problem : Problem
        Made of a table; the table is read once for all folds. Files, Dask collections and Spark
        tables are split by the values of their rows, so the ridge may be another than that of the
        same rows in memory, which are shuffled.
    k : int
    grid : sequence of float
    n_folds : int
        Fewer where there are fewer rows.
    random_state : int, Generator or None
        Seed of the split.

    Returns
    -------
    float

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> problem = Problem.from_arrays(*load_breast_cancer(return_X_y=True))
    >>> cv_ridge(problem, 5) in GRID
    True
    """
    if len(grid) == 0:
        raise InputError("the grid of ridges is empty")
    ridges = sorted(check_ridge(ridge) for ridge in grid)
    folds = fold_by_fold(problem, min(n_folds, problem.n_rows), generator(random_state))
    errors = np.zeros(len(ridges))
    for fold in folds:
        size = min(problem.check_k(k), fold.train.n_usable)
        for i, ridge in enumerate(ridges):
            result = solve(fold.train.with_ridge(ridge), size, effort=0)
            if result.status == Status.INTERRUPTED:
                # A choice among ridges that were not all tried would be no choice.
                raise KeyboardInterrupt
            errors[i] += float(fold.errors([result])[0])
    return ridges[int(np.argmin(errors))]


def find_ridge(
    ridge: Any, problem: Problem, k: int | None, *, random_state: object = None
) -> float:
    """Return a number for "auto", "cv" or a number."""
    if isinstance(ridge, str):
        if ridge == "auto":
            return auto_ridge(problem)
        if ridge == "cv":
            if k is None:
                raise InputError("ridge='cv' needs k, the number of features: with_ridge('cv', k)")
            return cv_ridge(problem, problem.check_k(k), random_state=random_state)
        raise InputError(f"ridge must be 'auto', 'cv' or a number of zero or more, not {ridge!r}")
    return check_ridge(ridge)
