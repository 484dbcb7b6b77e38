"""Criteria against least squares from the rows and the closed formulas, worked out apart."""

from __future__ import annotations

from math import comb
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.preprocessing import StandardScaler

from exactk import Moments, Problem, choose_k, solve, solve_path
from exactk.errors import InputError
from exactk.model_selection.criteria import (
    CRITERIA,
    counted_rows,
    criterion_values,
    degrees_of_freedom,
)
from exactk.problem.constraints import Group, Rules

Array = np.ndarray[Any, Any]


def data(n: int = 60, d: int = 7, seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) @ (np.eye(d) + 0.3 * rng.normal(size=(d, d))) + 1
    return X, X[:, 1] - 2 * X[:, 4] + rng.normal(size=n)


def residual_of(X: Array, Y: Array) -> float:
    design = np.column_stack([np.ones(len(X)), X])
    left = Y - design @ np.linalg.lstsq(design, Y, rcond=None)[0]
    return float((left**2).sum())


def expected_values(X: Array, Y: Array, supports: list[list[int]], free: int) -> dict[str, Array]:
    """All four by their formulas for plain least squares with `free` independent outputs."""
    n, d = X.shape
    N = n * free
    variance = residual_of(X, Y) / (N - free * (d + 1))
    out: dict[str, list[float]] = {name: [] for name in CRITERIA}
    for S in supports:
        rss, k = residual_of(X[:, S], Y), len(S)
        m = free * (k + 1)
        p = m + 1
        fit = N * np.log(rss / N)
        out["bic"].append(fit + p * np.log(n))
        out["ebic"].append(fit + p * np.log(n) + 2 * np.log(comb(d, min(k, d // 2))))
        out["aicc"].append(fit + 2 * p + 2 * p * (p + 1) / (N - p - 1))
        out["cp"].append(rss / variance - N + 2 * m)
    return {name: np.array(values) for name, values in out.items()}


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("target", ["number", "two numbers", "three classes"])
def test_against_least_squares_from_the_rows(criterion: str, target: str) -> None:
    X, y = data()
    if target == "three classes":
        y = np.digitize(y, np.quantile(y, [0.3, 0.6]))
        Y, free = np.eye(3)[y], 2
    else:
        y = y if target == "number" else np.column_stack([y, X[:, 0] + y**2])
        Y, free = (y[:, None], 1) if y.ndim == 1 else (y, 2)
    problem = Problem.from_arrays(X, y)
    path = solve_path(problem, 7)
    expected = expected_values(X, Y, [r.support.tolist() for r in path], free)
    found = criterion_values(problem, path, criterion)
    np.testing.assert_allclose(found, expected[criterion], rtol=1e-9)
    # Moments are enough.
    from_moments = Problem.from_moments(
        Moments.from_arrays(X, Y), classes=np.arange(3) if target == "three classes" else None
    )
    again = criterion_values(from_moments, solve_path(from_moments, 7), criterion)
    np.testing.assert_allclose(again, found, rtol=1e-8)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_whole_weights_are_repeated_rows(criterion: str) -> None:
    X, y = data()
    w = np.random.default_rng(3).integers(0, 4, len(X))
    weighted = Problem.from_arrays(X, y, sample_weight=w, ridge=0.1)
    repeated = Problem.from_arrays(np.repeat(X, w, axis=0), np.repeat(y, w), ridge=0.1)
    np.testing.assert_allclose(
        criterion_values(weighted, solve_path(weighted, 5), criterion),
        criterion_values(repeated, solve_path(repeated, 5), criterion),
        rtol=1e-9,
    )


@pytest.mark.parametrize("criterion", CRITERIA)
def test_fractional_weights_have_no_unit(criterion: str) -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 6))
    y, w = X[:, 0] + 0.5 * X[:, 1] + rng.normal(size=60), rng.uniform(0.1, 0.9, 60)
    found = []
    for unit in (0.01, 1.0, 10.0, 1000.0):
        problem = Problem.from_arrays(X, y, sample_weight=w * unit)
        assert counted_rows(problem) == 60
        # In Problem.from_moments no more than the sum is known.
        moments = Problem.from_moments(Moments.from_arrays(X, y[:, None], sample_weight=w * unit))
        assert counted_rows(moments) == 60
        values = criterion_values(problem, solve_path(problem, 6), criterion)
        assert choose_k(problem, criterion=criterion).k == values.argmin() + 1
        found.append(values - values[0])
    np.testing.assert_allclose(found, found[:1] * 4, rtol=1e-8, atol=1e-8)


def test_whole_weights_count_rows() -> None:
    X, y = data()
    w = np.random.default_rng(3).integers(0, 4, len(X)).astype(float)
    moments = Moments.from_arrays(X, y[:, None], sample_weight=w)
    assert counted_rows(Problem.from_arrays(X, y, sample_weight=w)) == w.sum()
    assert counted_rows(Problem.from_moments(moments)) == w.sum()


def test_degrees_of_freedom_are_the_trace_of_the_hat_matrix() -> None:
    X, y = data()
    S = np.array([0, 2, 5])
    Z = (X - X.mean(axis=0)) / X.std(axis=0, ddof=1)
    for ridge in (0.0, 0.1, 3.0):
        problem = Problem.from_arrays(X, y, ridge=ridge)
        penalty = ridge * (len(X) - 1)
        hat = Z[:, S] @ np.linalg.solve(Z[:, S].T @ Z[:, S] + penalty * np.eye(3), Z[:, S].T)
        assert degrees_of_freedom(problem, S) == pytest.approx(np.trace(hat), rel=1e-10)


def test_dependent_and_constant_columns_gain_nothing() -> None:
    X, y = data()
    X[:, 3] = X[:, 0] + X[:, 1]
    X[:, 6] = 1.0
    problem = Problem.from_arrays(X, y)
    assert degrees_of_freedom(problem, np.array([0, 1, 3, 6])) == 2.0
    assert degrees_of_freedom(problem, np.array([6])) == 0.0


def test_ebic_counts_models_that_were_there_to_choose_from() -> None:
    X, y = data()
    plain = Problem.from_arrays(X, y)

    def extra(problem: Problem, support: list[int]) -> float:
        residual = problem.refit(support).residual
        result: Any = SimpleNamespace(support=np.array(support), residual=residual)
        ebic = criterion_values(problem, [result], "ebic")
        return float((ebic - criterion_values(problem, [result], "bic"))[0])

    assert extra(plain, [0, 4]) == pytest.approx(2 * np.log(21))
    assert extra(plain, list(range(7))) == pytest.approx(2 * np.log(35))
    # One column must be in and one is out: one of five is chosen.
    assert extra(plain.with_rules(Rules(include=(0,), exclude=(6,))), [0, 4]) == pytest.approx(
        2 * np.log(5)
    )
    # Three columns are one unit: one of five.
    grouped = plain.with_rules(Rules(feature_groups=(Group("g", (4, 5, 6)),)))
    assert extra(grouped, [4, 5, 6]) == pytest.approx(2 * np.log(5))


@pytest.mark.parametrize("criterion", CRITERIA)
def test_of_perfect_fits_the_smallest_is_the_best(criterion: str) -> None:
    X, _ = data()
    problem = Problem.from_arrays(X, X[:, 1] - X[:, 4])
    values = criterion_values(problem, solve_path(problem, 6), criterion)
    assert np.isfinite(values).all()
    assert values.argmin() == 1


def test_aicc_is_infinite_where_nothing_is_left() -> None:
    X, y = data(n=8)
    problem = Problem.from_arrays(X, y)
    values = criterion_values(problem, solve_path(problem, 6), "aicc")
    # p = k + 2 parameters, and 8 − p − 1 must be more than zero.
    assert np.isfinite(values).tolist() == [True, True, True, True, False, False]


@pytest.mark.parametrize("criterion", ["bic", "ebic", "aicc"])
def test_a_likelihood_is_deviance_and_parameters(criterion: str) -> None:
    X, y = load_breast_cancer(return_X_y=True)
    problem = Problem.from_arrays(X, y, loss="logistic")
    Z, n = StandardScaler().fit_transform(X), len(y)
    for k in (1, 2):
        result = solve(problem, k, effort=0)
        fit = LogisticRegression(C=np.inf, tol=1e-10, max_iter=100_000).fit(Z[:, result.support], y)
        found = fit.predict_proba(Z[:, result.support])
        deviance = 2 * log_loss(y, found, normalize=False)
        added = {
            "bic": (k + 1) * np.log(n),
            "ebic": (k + 1) * np.log(n) + 2 * np.log(comb(30, k)),
            "aicc": 2 * (k + 1) * n / (n - k - 2),
        }
        value = criterion_values(problem, [result], criterion)[0]
        assert value == pytest.approx(deviance + added[criterion], rel=1e-6)


@pytest.mark.parametrize(
    ("criterion", "loss", "n"),
    [("cp", "squared", 8), ("bci", "squared", 60), ("bic", "l21", 60), ("cp", "logistic", 60)],
)
def test_criteria_that_a_problem_does_not_have(criterion: Any, loss: str, n: int) -> None:
    X, y = data(n=n)
    problem = Problem.from_arrays(X, (y > 0).astype(int), loss=loss)
    with pytest.raises(InputError) as error:
        choose_k(problem, k_max=2, criterion=criterion)
    assert error.value.parameter == "criterion"
