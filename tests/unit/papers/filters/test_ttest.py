"""t-test: SciPy's statistic, weights, classes of one row, several classes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import ttest_ind

from exactk import Problem, solve
from tests.oracles.brute import make_classes
from tests.support import says


def scores(X: Any, y: Any, weights: Any = None, **options: Any) -> Any:
    return solve(Problem.from_arrays(X, y, sample_weight=weights), 1, "ttest", **options).scores


def expected(X: Any, y: Any, c: int, equal_var: bool = False) -> Any:
    return np.abs(ttest_ind(X[y == c], X[y != c], equal_var=equal_var).statistic)


@pytest.mark.parametrize("equal_var", [False, True])
@pytest.mark.parametrize("shape", [(40, 7), (7, 9), (300, 25)])
def test_two_classes_as_scipy(shape: tuple[int, int], equal_var: bool) -> None:
    X, y = make_classes(*shape, 2, seed=2)
    assert np.bincount(y).min() > 1, "SciPy has no answer for one row"
    wanted = expected(X, y, 1, equal_var)
    for combine in ("max", "mean"):
        found = scores(X, y, equal_var=equal_var, combine=combine)
        np.testing.assert_allclose(found, wanted, rtol=1e-10)


@pytest.mark.parametrize("equal_var", [False, True])
def test_several_classes_each_against_the_rest(equal_var: bool) -> None:
    X, y = make_classes(60, 9, 4, seed=3)
    each = np.array([expected(X, y, c, equal_var) for c in range(4)])
    for combine, wanted in (("max", each.max(axis=0)), ("mean", each.mean(axis=0))):
        found = scores(X, y, equal_var=equal_var, combine=combine)
        np.testing.assert_allclose(found, wanted, rtol=1e-10)


@pytest.mark.parametrize("equal_var", [False, True])
def test_whole_weights_are_counts(equal_var: bool) -> None:
    X, y = make_classes(40, 7, 2, seed=4)
    w = np.random.default_rng(0).integers(0, 4, 40)
    wanted = expected(np.repeat(X, w, axis=0), np.repeat(y, w), 1, equal_var)
    np.testing.assert_allclose(scores(X, y, w, equal_var=equal_var), wanted, rtol=1e-10)


def test_weights_that_are_shares_give_the_order_of_large_samples() -> None:
    X, y = make_classes(40, 7, 2, seed=4)
    found = scores(X, y, np.full(40, 1 / 40))
    a, b = X[y == 0], X[y == 1]
    square = a.var(axis=0) / (len(a) / 40) + b.var(axis=0) / (len(b) / 40)
    np.testing.assert_allclose(found, np.abs(a.mean(0) - b.mean(0)) / np.sqrt(square), rtol=1e-10)


def test_a_class_of_one_row_has_the_variance_of_the_others() -> None:
    X, y = make_classes(30, 5, 2, seed=5)
    y[:] = 0
    y[7] = 1
    rest = X[y == 0]
    error = np.sqrt(rest.var(axis=0, ddof=1) * (1 + 1 / 29))
    np.testing.assert_allclose(scores(X, y), np.abs(X[7] - rest.mean(0)) / error, rtol=1e-10)
    # The pooled statistic needs no such rule.
    np.testing.assert_allclose(
        scores(X, y, equal_var=True), expected(X, y, 1, equal_var=True), rtol=1e-10
    )


def test_classes_without_any_overlap_have_a_finite_score_and_come_first() -> None:
    X, y = make_classes(30, 5, 2, seed=6)
    X[:, 3] = y
    found = scores(X, y)
    assert np.isfinite(found).all()
    assert found.argmax() == 3


def test_values_far_from_zero_lose_nothing() -> None:
    X, y = make_classes(50, 6, 2, seed=7)
    np.testing.assert_allclose(scores(X + 1e6, y), scores(X, y), rtol=1e-7)


def test_two_rows_are_too_few_and_options_are_checked() -> None:
    with says("ttest needs at least three rows", "there are 2", "method='fisher'"):
        scores(np.arange(6.0).reshape(2, 3) ** 2, [0, 1])
    X, y = make_classes(30, 5, 2)
    with says("equal_var must be True or False, not 1"):
        scores(X, y, equal_var=1)
    with says("combine must be 'max' or 'mean', not 'sum'"):
        scores(X, y, combine="sum")


@pytest.mark.parametrize("noise", [1e-3, 1e-6])
def test_variances_far_smaller_than_the_distance_of_the_means(noise: float) -> None:
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    X = y[:, None] + noise * rng.standard_normal((40, 3))
    np.testing.assert_allclose(scores(X, y), expected(X, y, 1), rtol=1e-7)
