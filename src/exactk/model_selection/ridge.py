"""The ridge: by rule, by cross-validation, or a number."""

from __future__ import annotations

from typing import Any

import numpy as np

from exactk.errors import InputError, Setting
from exactk.methods.base import generator
from exactk.model_selection.criteria import counted_rows, is_likelihood
from exactk.model_selection.cross_validation import Splits
from exactk.problem.problem import Problem
from exactk.problem.validation import check_ridge
from exactk.result import Status
from exactk.solver import solve

__all__ = ["GRID", "auto_ridge", "cv_ridge", "find_ridge"]

# Likelihoods need less ridge: this share of the rule.
LIKELIHOOD_SHARE = 0.1
GRID = (0.001, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)


def auto_ridge(problem: Problem) -> float:
    """Return the relative ridge by rule: 0.1·√(d/n), at least 0.1 and at most 3.

    n is the number of rows (or the sum of whole weights) and d that of usable columns. Of the
    rules and fixed values that cost nothing, it has the best mean rank on real data
    (``benchmarks/ridge.py``): wide tables need more ridge than tall ones. Likelihoods
    ("logistic", "poisson") get a tenth of it, because more makes probabilities worse.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> auto_ridge(Problem.from_arrays(*load_iris(return_X_y=True)))
    0.1
    """
    n = counted_rows(problem)
    ridge = float(np.clip(0.1 * np.sqrt(problem.n_usable / n), 0.1, 3.0))
    return ridge * (LIKELIHOOD_SHARE if is_likelihood(problem) else 1.0)


def cv_ridge(problem: Problem, k: int, *, random_state: object = None, groups: Any = None) -> float:
    """Return the ridge of `GRID` with the smallest cross-validated loss at k features.

    Rows of one group stay in one fold; groups need the rows in memory.
    Files, Dask collections and Spark tables are split by the values of their rows, so their ridge
    may differ from that of the same rows in memory, which are shuffled.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> problem = Problem.from_arrays(*load_breast_cancer(return_X_y=True))
    >>> cv_ridge(problem, 5) in GRID
    True
    """
    if problem.rows is None and problem.stream is None:
        raise InputError(
            ("the problem was made of moments and has no rows for ", Setting("ridge", "cv")),
            parameter="ridge", value="cv", hint="give the ridge as a number",
        )  # fmt: skip
    k, errors = problem.check_k(k), np.zeros(len(GRID))
    if groups is not None:
        problem = problem.in_memory()
    for fold in Splits(problem, None, groups).folds(problem, generator(random_state)):
        size = min(k, fold.train.n_usable)
        for i, ridge in enumerate(GRID):
            result = solve(fold.train.with_ridge(ridge), size, effort=0)
            if result.status == Status.INTERRUPTED:
                # Not every ridge was tried, so none can be chosen.
                raise KeyboardInterrupt(result.message)
            errors[i] += float(fold.errors([result])[0])
    return GRID[int(np.argmin(errors))]


def find_ridge(
    ridge: Any, problem: Problem, k: int | None, *, random_state: object = None,
    groups: Any = None,
) -> float:  # fmt: skip
    """Return the ridge as a number: by rule for "auto", by cross-validation at k for "cv"."""
    if not isinstance(ridge, str):
        return check_ridge(ridge)
    if ridge == "auto":
        return auto_ridge(problem)
    if ridge != "cv":
        raise InputError(
            parameter="ridge", value=ridge, expected="'auto', 'cv' or a number of zero or more"
        )
    if k is None:
        raise InputError(
            (Setting("ridge", "cv"), " needs k, the number of features"),
            parameter="k", hint="use with_ridge('cv', k)",
        )  # fmt: skip
    return cv_ridge(problem, k, random_state=random_state, groups=groups)
