"""The ridge by rule and by cross-validation, against the formula and folds worked out by hand."""

from __future__ import annotations

from itertools import combinations
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import exactk
from exactk import Moments, Problem, TopKSelector
from exactk.model_selection.cross_validation import Fold, make_folds
from exactk.model_selection.ridge import GRID, auto_ridge, cv_ridge
from tests.support import every_pair, says

Array = np.ndarray[Any, Any]
TINY = 1


def data(n: int = 60, d: int = 5, seed: int = 0, noise: float = 1.0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) @ (np.eye(d) + 0.4 * rng.normal(size=(d, d))) + 2
    return X, X[:, 0] - X[:, 3] + noise * rng.normal(size=n)


def held_out_error(X: Array, Y: Array, w: Array, out: Array, k: int, ridge: float) -> float:
    """Best k columns of the other rows by trying all, and their squared error on those left out."""
    keep = np.setdiff1d(np.arange(len(X)), out)
    v = w[keep] / w[keep].sum()
    mean, y_mean = v @ X[keep], v @ Y[keep]
    Z, U = X[keep] - mean, Y[keep] - y_mean
    sd = np.sqrt(w[keep] @ Z**2 / (w[keep].sum() - 1))
    root = np.sqrt(w[keep])[:, None]
    Z, U = Z / sd * root, U * root
    penalty = ridge * (Z**2).sum(axis=0).mean()
    best: tuple[float, tuple[int, ...], Array] = (np.inf, (), np.zeros(0))
    for S in combinations(range(X.shape[1]), k):
        left = np.vstack([Z[:, S], np.sqrt(penalty) * np.eye(k)])
        right = np.vstack([U, np.zeros((k, U.shape[1]))])
        W = np.linalg.lstsq(left, right, rcond=None)[0]
        objective = float(((right - left @ W) ** 2).sum())
        best = min(best, (objective, S, W), key=lambda item: item[0])
    _, S, W = best
    cols = list(S)
    miss = Y[out] - y_mean - (X[out][:, cols] - mean[cols]) / sd[cols] @ W
    return float((w[out][:, None] * miss**2).sum())


@pytest.mark.parametrize(
    ("n", "d", "expected"),
    [(100, 3, 0.1), (20, 20, 0.1), (10, 90, 0.3), (4, 100, 0.5), (2, 3000, 3.0), (3, 300, 1.0)],
)
def test_auto_is_a_tenth_of_the_root_of_the_shape(n: int, d: int, expected: float) -> None:
    X = np.random.default_rng(0).normal(size=(n, d))
    assert auto_ridge(Problem.from_arrays(X, np.arange(n) / 3)) == pytest.approx(expected)


def test_auto_counts_usable_columns_and_weight() -> None:
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(10, 400)), rng.normal(size=10)
    X[:, 40:] = 1.0
    assert auto_ridge(Problem.from_arrays(X, y)) == pytest.approx(0.2)
    X = rng.normal(size=(10, 360))
    w = np.array([0, 0, 0, 0, 0, 0, 2, 2, 3, 3])
    expected = auto_ridge(Problem.from_arrays(np.repeat(X, w, axis=0), np.repeat(y, w)))
    assert expected == pytest.approx(0.6)
    assert auto_ridge(Problem.from_arrays(X, y, sample_weight=w)) == pytest.approx(expected)


@every_pair(seed=[0, 1, 2], weighted=[False, True], limit=[TINY, 2**30], k=[1, 5])
def test_cv_picks_what_a_recomputation_picks(weighted: bool, limit: int, k: int, seed: int) -> None:
    # One column and all of them: sizes at which any search finds the best.
    X, y = data(n=24, seed=seed, noise=6.0)
    w = np.random.default_rng(seed).integers(0, 3, len(X)).astype(float) if weighted else None
    problem = Problem.from_arrays(X, y, sample_weight=w, memory_limit=limit)
    folds = make_folds(problem, 4, np.random.default_rng(seed))
    weights = np.ones(len(X)) if w is None else w
    errors = [
        sum(held_out_error(X, y[:, None], weights, fold.held_out, k, ridge) for fold in folds)
        for ridge in GRID
    ]
    expected = GRID[int(np.argmin(errors))]
    assert cv_ridge(problem, k, n_folds=4, random_state=seed) == expected


@pytest.mark.parametrize("limit", [TINY, 2**30], ids=["weights", "moments"])
def test_cv_of_classes(limit: int) -> None:
    X, y = data(n=30, noise=3.0)
    labels = np.digitize(y, np.quantile(y, [0.3, 0.7]))
    problem = Problem.from_arrays(X, labels, memory_limit=limit)
    folds = make_folds(problem, 5, np.random.default_rng(0))
    Y = np.eye(3)[labels]
    grid = [0.0, 0.5, 5.0]
    errors = [
        sum(held_out_error(X, Y, np.ones(30), fold.held_out, 1, ridge) for fold in folds)
        for ridge in grid
    ]
    assert cv_ridge(problem, 1, grid=grid) == grid[int(np.argmin(errors))]


def test_noise_asks_for_more_ridge_than_signal() -> None:
    X, clean = data(n=40, noise=0.01)
    assert cv_ridge(Problem.from_arrays(X, clean), 2) == min(GRID)
    noise = np.random.default_rng(5).normal(size=40)
    assert cv_ridge(Problem.from_arrays(X, noise), 3) == max(GRID)


def test_the_grid_may_come_in_any_order() -> None:
    problem = Problem.from_arrays(*data(noise=3.0))
    picked = cv_ridge(problem, 2, grid=[5.0, 0.0, 0.5])
    assert picked == cv_ridge(problem, 2, grid=[0.0, 0.5, 5.0])
    assert cv_ridge(problem, 2, grid=[0.25]) == 0.25


def test_fewer_rows_than_folds() -> None:
    X, y = data(n=4)
    assert cv_ridge(Problem.from_arrays(X, y), 1, n_folds=10) in GRID


def test_the_same_seed_gives_the_same_ridge() -> None:
    problem = Problem.from_arrays(*data(noise=3.0))
    assert cv_ridge(problem, 2, random_state=3) == cv_ridge(problem, 2, random_state=3)
    assert cv_ridge(problem, 2) == cv_ridge(problem, 2)


def test_resolve() -> None:
    problem = Problem.from_arrays(*data())
    assert problem.with_ridge("auto", 2).ridge == auto_ridge(problem)
    assert problem.with_ridge("cv", 2).ridge == cv_ridge(problem, 2)
    assert problem.with_ridge(0.25, 2).ridge == 0.25
    assert problem.with_ridge(np.float32(0.5), 2).ridge == 0.5
    assert problem.with_ridge(0, 2).ridge == 0.0


@pytest.mark.parametrize("ridge", ["Auto", "none", -1, np.nan, None, True])
def test_what_is_no_ridge(ridge: Any) -> None:
    X, y = data()
    with says("ridge", "zero or more", repr(ridge)):
        Problem.from_arrays(X, y).with_ridge(ridge, 2)
    with says("ridge", "zero or more", repr(ridge)):
        TopKSelector(k=2, ridge=ridge).fit(X, y)


def test_cv_errors() -> None:
    X, y = data()
    problem = Problem.from_arrays(X, y)
    with says("grid", "empty"):
        cv_ridge(problem, 2, grid=[])
    with says("ridge", "-1"):
        cv_ridge(problem, 2, grid=[0.1, -1])
    with says("k=9", "5 usable"):
        problem.with_ridge("cv", 9)
    with says("n_folds", "1"):
        cv_ridge(problem, 2, n_folds=1)
    with says("moments", "no rows", "ridge as a number"):
        Problem.from_moments(Moments.from_arrays(X, y)).with_ridge("cv", 2)
    with says("random_state", "'a'"):
        cv_ridge(problem, 2, random_state="a")


def test_the_selector_uses_what_was_resolved() -> None:
    X, y = data(noise=3.0)
    problem = Problem.from_arrays(X, y)
    for ridge in ("auto", "cv", 0.7):
        fitted = TopKSelector(k=2, ridge=ridge).fit(X, y)
        assert fitted.ridge_ == problem.with_ridge(ridge, 2).ridge
        expected = exactk.solve(problem.with_ridge(fitted.ridge_), 2)
        assert fitted.objective_ == pytest.approx(expected.objective)
    assert problem.ridge == 0.0


def test_sparse_tables_are_cross_validated_too() -> None:
    X, y = data(noise=3.0)
    for table in (sparse.csr_array(X), sparse.csc_matrix(X)):
        for limit in (TINY, 2**30):
            problem = Problem.from_arrays(table, y, memory_limit=limit)
            assert cv_ridge(problem, 2) == cv_ridge(Problem.from_arrays(X, y), 2)


def test_error_is_that_of_the_rows_held_out() -> None:
    X, y = data()
    w = np.linspace(0.5, 2, 60)
    problem = Problem.from_arrays(X, y, sample_weight=w)
    fold: Fold = make_folds(problem, 3, np.random.default_rng(0))[1]
    support, coef, intercept = np.array([3, 0]), np.array([[2.0, -1.0]]), np.array([0.5])
    miss = y - (2 * X[:, 3] - X[:, 0] + 0.5)
    expected = (w[fold.held_out] * miss[fold.held_out] ** 2).sum()
    fit = SimpleNamespace(support=support, coef=coef, intercept=intercept)
    assert fold.errors([fit])[0] == pytest.approx(expected, rel=1e-12)
