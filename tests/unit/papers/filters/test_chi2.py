"""Chi-squared against SciPy's test of contingency tables and scikit-learn's chi2 of counts."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import chi2_contingency
from scipy.stats.contingency import crosstab
from sklearn.datasets import load_digits, load_wine
from sklearn.feature_selection import chi2

from exactk import Problem, solve
from tests.oracles.brute import make_classes
from tests.support import says


def test_the_statistic_is_that_of_scipy() -> None:
    X, y = load_wine(return_X_y=True)
    low, high = (X.mean(axis=0) + sign * 0.5 * X.std(axis=0) for sign in (-1, 1))
    expected = [
        chi2_contingency(crosstab(y, np.digitize(x, [a, b])).count, correction=False).statistic
        for x, a, b in zip(X.T, low, high, strict=True)
    ]
    result = solve(Problem.from_arrays(X, y), 4, "chi2")
    np.testing.assert_allclose(result.scores, expected, rtol=1e-9)
    assert result.order.tolist() == np.argsort(expected)[::-1][:4].tolist()


@pytest.mark.parametrize("bins", [3, "values"])
def test_other_levels(bins: str | int) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 3, (90, 5)), rng.integers(0, 2, 90)
    # Two thirds of the first column are the class.
    X[:, 0] = np.where(rng.random(90) < 2 / 3, y, X[:, 0])
    result = solve(Problem.from_arrays(X, y), 1, "chi2", bins=bins)
    if bins == "values":
        expected = [chi2_contingency(crosstab(y, x).count, correction=False).statistic for x in X.T]
        np.testing.assert_allclose(result.scores, expected, rtol=1e-9)
    assert result.support.tolist() == [0]


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_counts_as_scikit_learn_scores_them(form: type) -> None:
    X, y = load_digits(return_X_y=True)
    varies = X.std(axis=0) > 0
    result = solve(Problem.from_arrays(form(X), y), 8, "chi2", bins="counts")
    np.testing.assert_allclose(result.scores[varies], chi2(X, y)[0][varies], rtol=1e-8)


def test_counts_with_weights_are_repeated_rows() -> None:
    rng = np.random.default_rng(1)
    X, y = rng.poisson(2.0, (60, 7)), rng.integers(0, 3, 60)
    w = rng.integers(0, 4, 60)
    # A row without weight may hold anything.
    X[np.flatnonzero(w == 0)[0]] = -5
    weighted = solve(Problem.from_arrays(X, y, sample_weight=w), 3, "chi2", bins="counts")
    expected = chi2(np.repeat(X, w, axis=0), np.repeat(y, w))[0]
    np.testing.assert_allclose(weighted.scores, expected, rtol=1e-9)


def test_counts_depend_on_the_unit() -> None:
    rng = np.random.default_rng(2)
    X, y = rng.poisson(2.0, (60, 4)).astype(float), rng.integers(0, 3, 60)
    plain = solve(Problem.from_arrays(X, y), 1, "chi2", bins="counts").scores
    twice = solve(Problem.from_arrays(X * [1, 2, 1, 1], y), 1, "chi2", bins="counts").scores
    np.testing.assert_allclose(twice, plain * [1, 2, 1, 1], rtol=1e-9)


def test_negative_counts_are_refused() -> None:
    X, y = make_classes(30, 4, 2)
    X = np.abs(X)
    X[12, 2] = -0.25
    problem = Problem.from_arrays(X, y, feature_names=["a", "b", "c", "d"])
    with says("bins='counts'", "'c'", "-0.25", "bins='sd'"):
        solve(problem, 2, "chi2", bins="counts")
    assert solve(problem, 2, "chi2").k == 2
