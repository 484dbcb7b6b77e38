"""Fits on all columns against other libraries and other algorithms, and how fits are made."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, minimize
from scipy.special import logsumexp
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import (
    HuberRegressor,
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
    QuantileRegressor,
    Ridge,
)
from sklearn.metrics import mean_poisson_deviance

from exactk import Problem
from exactk.losses import newton
from exactk.losses.base import design
from exactk.losses.newton import LikelihoodCriterion, half_hessian, products
from tests.oracles.brute import make_classes, make_numbers, one_hot

Array = np.ndarray[Any, Any]

both_ridges = pytest.mark.parametrize("ridge", [0.0, 0.1])
weighted_or_not = pytest.mark.parametrize("weighted", [False, True])


def weights_of(weighted: bool, n: int) -> Array | None:
    return np.random.default_rng(5).uniform(0.2, 3.0, n) if weighted else None


class Standard:
    """Columns of mean 0 and deviation 1, and how a fit on those of the table reads for them."""

    def __init__(self, X: Array, w: Array | None = None) -> None:
        self.w = np.ones(len(X)) if w is None else w
        self.mean = np.average(X, axis=0, weights=self.w)
        self.deviation = np.sqrt(self.w @ (X - self.mean) ** 2 / (self.w.sum() - 1.0))
        self.Z = (X - self.mean) / self.deviation

    def check(
        self, problem: Problem, W: Array, b: Array, loss: float, tol: float, rel: float = 1e-8
    ) -> None:
        """Hold the fit on all columns to coefficients (outputs × columns) and a loss."""
        fit = problem.refit(range(self.Z.shape[1]))
        found = fit.coef * self.deviation
        np.testing.assert_allclose(found, W, rtol=tol, atol=tol * np.abs(W).max())
        at_mean = fit.intercept + fit.coef @ self.mean
        np.testing.assert_allclose(at_mean, b, rtol=tol, atol=tol * max(1.0, np.abs(b).max()))
        assert fit.residual == pytest.approx(loss, rel=max(tol, rel))
        wanted = loss + problem.penalty * (W**2).sum()
        assert fit.objective == pytest.approx(wanted, rel=rel)
        assert problem.objective(range(self.Z.shape[1])) == pytest.approx(wanted, rel=rel)
        assert fit.note == ""


@both_ridges
@weighted_or_not
@pytest.mark.parametrize("c", [2, 3, 5])
def test_logistic(c: int, ridge: float, weighted: bool) -> None:
    X, y = make_classes(n=150, d=5, c=c, seed=c)
    y = np.random.default_rng(0).permutation(np.r_[y[:100], np.arange(50) % c])
    w = weights_of(weighted, len(y))
    table = Standard(X, w)
    problem = Problem.from_arrays(X, y, sample_weight=w, ridge=ridge, loss="logistic")
    assert (problem.penalty > 0) == (ridge > 0)
    # Of two classes scikit-learn fits the difference w; then ‖W‖² is ‖w‖²/2.
    C = (2.0 if c == 2 else 1.0) / problem.penalty if ridge else np.inf
    other = LogisticRegression(C=C, tol=1e-10, max_iter=5000, solver="newton-cg")
    other.fit(table.Z, y, sample_weight=w)
    W, b = other.coef_, other.intercept_
    if c == 2:
        W, b = np.vstack([-W, W]) / 2, np.r_[-b, b] / 2
    # What is added to all classes alike says nothing.
    W, b = W - W.mean(axis=0), b - b.mean()
    scores = table.Z @ W.T + b
    loss = 2.0 * table.w @ (logsumexp(scores, axis=1) - scores[np.arange(len(y)), y])
    table.check(problem, W, b, loss, tol=1e-5)


@both_ridges
@weighted_or_not
@pytest.mark.parametrize("outputs", [1, 2])
def test_poisson(outputs: int, ridge: float, weighted: bool) -> None:
    X, Y = make_numbers(n=90, d=5, c=outputs, seed=outputs)
    counts = np.random.default_rng(1).poisson(np.exp(0.5 + Y.reshape(90, -1) / Y.std() / 2))
    w = weights_of(weighted, 90)
    table = Standard(X, w)
    problem = Problem.from_arrays(
        X, counts, sample_weight=w, ridge=ridge, loss="poisson", task="regression"
    )
    fits = [
        PoissonRegressor(
            alpha=problem.penalty / table.w.sum(), solver="newton-cholesky", tol=1e-11
        ).fit(table.Z, column, sample_weight=w)
        for column in counts.T
    ]
    loss = sum(
        table.w.sum() * mean_poisson_deviance(column, fit.predict(table.Z), sample_weight=w)
        for column, fit in zip(counts.T, fits, strict=True)
    )
    W, b = np.array([fit.coef_ for fit in fits]), np.array([fit.intercept_ for fit in fits])
    table.check(problem, W, b, loss, tol=1e-5)


@both_ridges
@weighted_or_not
@pytest.mark.parametrize("epsilon", [1.1, 1.35, 2.5])
def test_huber(epsilon: float, ridge: float, weighted: bool) -> None:
    X, y = make_numbers(n=80, d=5, seed=3)
    y[:8] += 60.0
    w = weights_of(weighted, 80)
    table = Standard(X, w)
    problem = Problem.from_arrays(X, y, sample_weight=w, ridge=ridge)
    problem = problem.with_loss("huber", epsilon=epsilon)
    other = HuberRegressor(epsilon=epsilon, alpha=problem.penalty, tol=1e-9, max_iter=10_000)
    other.fit(table.Z, y, sample_weight=w)
    e, sigma = np.abs(y - other.predict(table.Z)), other.scale_
    rows = np.where(e <= epsilon * sigma, e**2 / sigma, 2 * epsilon * e - epsilon**2 * sigma)
    W, b, loss = other.coef_[None], np.array([other.intercept_]), table.w @ (sigma + rows)
    # Its own end is that of L-BFGS, a little above the minimum.
    table.check(problem, W, b, loss, tol=1e-3, rel=1e-6)
    assert problem.objective(range(5)) <= loss + problem.penalty * (W**2).sum()


@weighted_or_not
@pytest.mark.parametrize("name", ["l21", "l2r"])
def test_absolute_errors(name: str, weighted: bool) -> None:
    X, y = make_numbers(n=70, d=4, seed=4)
    y[:7] -= 40.0
    w = weights_of(weighted, 70)
    table = Standard(X, w)
    problem = Problem.from_arrays(X, y, sample_weight=w)
    problem = problem.with_loss(name, **({"r": 1.0} if name == "l2r" else {}))
    other = QuantileRegressor(quantile=0.5, alpha=0.0).fit(table.Z, y, sample_weight=w)
    loss = table.w @ np.abs(y - other.predict(table.Z))
    table.check(problem, other.coef_[None], np.array([other.intercept_]), loss, tol=1e-5, rel=1e-7)


@weighted_or_not
def test_absolute_errors_with_a_ridge(weighted: bool) -> None:
    X, y = make_numbers(n=30, d=3, seed=5)
    w = weights_of(weighted, 30)
    table = Standard(X, w)
    problem = Problem.from_arrays(X, y, sample_weight=w, ridge=0.3, loss="l21")
    # As a quadratic program, with a bound t for each error.
    Z = np.hstack([table.Z, np.ones((30, 1))])
    sides = np.vstack([np.hstack([Z, np.eye(30)]), np.hstack([-Z, np.eye(30)])])
    shrunk = np.r_[np.ones(3), np.zeros(31)]
    cost = np.r_[np.zeros(4), table.w]
    found = minimize(
        lambda v: cost @ v + problem.penalty * shrunk @ v**2,
        np.r_[np.zeros(4), np.abs(y)],
        jac=lambda v: cost + 2 * problem.penalty * shrunk * v,
        constraints=LinearConstraint(sides, lb=np.r_[y, -y]),
        method="SLSQP",
        options={"maxiter": 1000, "ftol": 1e-12},
    )
    assert found.success
    W, b = found.x[None, :3], found.x[3:4]
    loss = table.w @ np.abs(y - Z @ found.x[:4])
    table.check(problem, W, b, loss, tol=1e-5, rel=1e-7)


@both_ridges
@weighted_or_not
@pytest.mark.parametrize("target", ["number", "numbers", "classes"])
@pytest.mark.parametrize("name", ["squared", "l2r"])
def test_squares(name: str, target: str, ridge: float, weighted: bool) -> None:
    X, y = make_classes(d=5) if target == "classes" else make_numbers(d=5, c=len(target) - 5)
    Y = one_hot(y) if target == "classes" else y.reshape(len(X), -1)
    w = weights_of(weighted, len(X))
    table = Standard(X, w)
    problem = Problem.from_arrays(X, y, sample_weight=w, ridge=ridge)
    squared = problem.penalty
    problem = problem.with_loss(name, **({"r": 2.0} if name == "l2r" else {}))
    assert problem.penalty == pytest.approx(squared, rel=1e-12)
    assert (ridge > 0) == (squared > 0)
    other = Ridge(alpha=squared) if ridge else LinearRegression()
    other.fit(table.Z, Y, sample_weight=w)
    loss = table.w @ ((Y - other.predict(table.Z).reshape(Y.shape)) ** 2).sum(axis=1)
    table.check(problem, np.atleast_2d(other.coef_), np.ravel(other.intercept_), loss, tol=1e-7)


def smoothed(Z: Array, Y: Array, w: Array, penalty: float, r: float) -> Array:
    """Reweighted least squares of (e² + δ²)^(r/2), with δ that goes to nothing."""
    ridge = penalty * np.diag(np.r_[np.ones(Z.shape[1] - 1), 0.0])
    theta = np.linalg.lstsq(Z, Y, rcond=None)[0]
    for delta in 10.0 ** np.arange(1, -9, -1):
        for _ in range(60 if delta > 1e-8 else 1000):
            e = ((Y - Z @ theta) ** 2).sum(axis=1)
            ZW = Z.T * (0.5 * r * w * (e + delta**2) ** (r / 2 - 1))
            theta = np.linalg.solve(ZW @ Z + ridge, ZW @ Y)
    return theta


@both_ridges
@weighted_or_not
@pytest.mark.parametrize("r", [1.0, 1.3, 1.8])
@pytest.mark.parametrize("target", ["numbers", "classes"])
def test_powers_of_lengths(target: str, r: float, ridge: float, weighted: bool) -> None:
    X, y = make_classes(d=4, seed=1) if target == "classes" else make_numbers(d=4, c=3, seed=1)
    Y = one_hot(y) if target == "classes" else y
    w = weights_of(weighted, len(X))
    table = Standard(X, w)
    loss: Any = {"loss": "l21"} if r == 1.0 else {}
    problem = Problem.from_arrays(X, y, sample_weight=w, ridge=ridge, **loss)
    problem = problem if loss else problem.with_loss("l2r", r=r)
    Z = np.hstack([table.Z, np.ones((len(X), 1))])
    theta = smoothed(Z, Y, table.w, problem.penalty, r)
    value = table.w @ ((Y - Z @ theta) ** 2).sum(axis=1) ** (r / 2)
    table.check(problem, theta[:-1].T, theta[-1], value, tol=1e-5, rel=1e-7)


@both_ridges
@pytest.mark.parametrize("r", [0.4, 0.8])
def test_a_power_below_one_is_fitted_to_a_minimum_near_by(r: float, ridge: float) -> None:
    X, Y = make_numbers(n=50, d=3, c=3, seed=2)
    table = Standard(X)
    problem = Problem.from_arrays(X, Y, ridge=ridge).with_loss("l2r", r=r)
    fit = problem.refit(range(3))
    theta = np.vstack([(fit.coef * table.deviation).T, fit.intercept + fit.coef @ table.mean])
    Z = np.hstack([table.Z, np.ones((50, 1))])

    def value(flat: Array) -> float:
        W = flat.reshape(4, 3)
        lengths = np.sqrt(((Y - Z @ W) ** 2).sum(axis=1))
        return float((lengths**r).sum() + problem.penalty * (W[:-1] ** 2).sum())

    assert value(theta.ravel()) == pytest.approx(fit.objective, rel=1e-9)
    found = minimize(value, theta.ravel(), method="BFGS", options={"gtol": 1e-6})
    assert found.fun >= fit.objective * (1 - 1e-6)
    # And it is worth something: no worse than least squares, on which it improves.
    least = np.linalg.lstsq(Z, Y, rcond=None)[0]
    assert fit.objective < value(least.ravel()) or ridge > 0


@pytest.mark.parametrize("balanced", [False, True])
@pytest.mark.parametrize("c", [2, 4])
def test_optimal_scoring_is_the_criterion_of_discriminants(c: int, balanced: bool) -> None:
    X, y = make_classes(n=120, d=5, c=c, seed=6)
    y[40:80] = 0
    problem = Problem.from_arrays(
        X, y, loss="optimal_scoring", class_weight="balanced" if balanced else None
    )
    counts = np.bincount(y)
    assert counts.max() > 1.5 * counts.min(), "classes of different sizes, or both are the same"
    w = (1.0 / counts)[y] if balanced else np.ones(len(y))
    w /= w.sum()
    mean = w @ X
    means = np.array([np.average(X[y == j], axis=0) for j in range(c)])
    shares = np.array([w[y == j].sum() for j in range(c)])
    for S in ([0, 1, 2, 3, 4], [1, 3], [2]):
        total = ((X - mean)[:, S].T * w) @ (X - mean)[:, S]
        between = ((means - mean)[:, S].T * shares) @ (means - mean)[:, S]
        wanted = c - 1 - np.trace(np.linalg.solve(total, between))
        assert problem.objective(S) == pytest.approx(wanted, rel=1e-9)
    assert problem.total == pytest.approx(c - 1, rel=1e-12)
    if not balanced:
        # Its coefficients span the directions of linear discriminant analysis, and no more.
        directions = LinearDiscriminantAnalysis(solver="svd").fit(X, y).scalings_[:, : c - 1]
        coef = problem.refit(range(5)).coef
        assert np.linalg.matrix_rank(coef, tol=1e-8) == c - 1
        left = coef.T - directions @ np.linalg.lstsq(directions, coef.T, rcond=None)[0]
        assert np.abs(left).max() < 1e-9 * np.abs(coef).max()


def some_criterion(name: str, n: int = 60, seed: int = 8) -> tuple[Array, Any]:
    """Standardised columns, one a row, and a loss with its target."""
    if name == "logistic":
        X, y = make_classes(n=n, d=6, seed=seed)
    else:
        X, y = make_numbers(n=n, d=6, c=2, seed=seed)
    if name == "poisson":
        y = np.random.default_rng(seed).poisson(np.exp(y / y.std()))
    task: Any = "classification" if name == "logistic" else "regression"
    return Standard(X).Z.T, Problem.from_arrays(X, y, task=task, loss=name).criterion


every_fit = pytest.mark.parametrize("name", ["l21", "l2r", "huber", "logistic", "poisson"])


@every_fit
@pytest.mark.parametrize("penalty", [0.0, 2.0])
def test_several_fits_at_once_equal_one_by_one(name: str, penalty: float) -> None:
    X, criterion = some_criterion(name)
    supports = np.array([[0, 1, 2], [0, 1, 3], [5, 2, 4], [3, 4, 5]])
    start = np.zeros((4, 4, criterion.n_outputs))
    start[:, -1] = criterion.centre()
    Z = design(X[supports])
    together = criterion.fits(Z, penalty, start, steps=2000, tol=1e-11)
    assert together.converged.all()
    assert not together.separated.any()
    assert len(set(together.values)) == 4
    for i in range(4):
        alone = criterion.fits(Z[i : i + 1], penalty, start[i : i + 1], steps=2000, tol=1e-11)
        assert together.values[i] == pytest.approx(alone.values[0], rel=1e-10)
        np.testing.assert_allclose(together.theta[i], alone.theta[0], rtol=1e-5, atol=1e-7)


@every_fit
@pytest.mark.parametrize("penalty", [0.0, 2.0])
def test_a_fit_never_rises(name: str, penalty: float) -> None:
    # The last of these have columns that nearly depend on each other.
    for seed in (0, 1, 2, 16, 22):
        X, criterion = some_criterion(name, n=25, seed=seed)
        Z = design(X[None])
        start = np.zeros((1, 7, criterion.n_outputs))
        start[:, -1] = criterion.centre()
        F = np.swapaxes(Z, 1, 2) @ start
        values = [criterion.value(F)[0] + penalty * (start[:, :-1] ** 2).sum()]
        for steps in range(3, 46, 3):
            fit = criterion.fits(Z, penalty, start, steps=steps, tol=0.0)
            values.append(fit.values[0])
        assert (np.diff(values) <= 1e-9 * values[0]).all()
        assert values[-1] < values[0]


@pytest.mark.parametrize("name", ["logistic", "poisson"])
@pytest.mark.parametrize("size", [10.0, 100.0, 1e4])
def test_a_likelihood_is_fitted_from_anywhere(name: str, size: float) -> None:
    """Where rows are certain a Hessian is mostly rounding, and steps lead anywhere."""
    X, y = make_classes(n=60, d=4, c=3, seed=0)
    y = np.random.default_rng(0).permutation(y)
    task = "regression" if name == "poisson" else "classification"
    problem = Problem.from_arrays(X, y, loss=name, task=task, ridge=0.1)
    criterion = problem.criterion
    Z = design(problem.standardised(np.arange(4))[0].T[None])
    wanted = criterion.fits(
        Z, problem.penalty, criterion.cold_start(Z, problem.penalty), steps=100, tol=1e-12
    )
    for seed in range(10):
        start = size * np.random.default_rng(seed).standard_normal((1, 5, criterion.n_outputs))
        fit = criterion.fits(Z, problem.penalty, start, steps=100, tol=1e-12)
        assert fit.converged[0]
        assert not fit.separated[0]
        assert fit.values[0] == pytest.approx(wanted.values[0], rel=1e-9)


@pytest.mark.parametrize("name", ["logistic", "poisson"])
@pytest.mark.parametrize("c", [3, 6])
def test_products_with_the_hessian_are_those_of_the_hessian(name: str, c: int) -> None:
    X, y = make_classes(n=60, d=3, c=c, seed=1)
    task = "regression" if name == "poisson" else "classification"
    criterion = Problem.from_arrays(X, y, loss=name, task=task).criterion
    assert isinstance(criterion, LikelihoodCriterion)
    rng = np.random.default_rng(0)
    Z = design(X.T[None] / X.std())[0]
    theta, direction = rng.standard_normal((2, 4, criterion.n_outputs)) / 4
    seen = criterion.forward(Z.T @ theta)[1]
    H = half_hessian(criterion.derivatives(seen)[1], products(Z), criterion, np.zeros(4))
    found = criterion.hessian_product(seen, Z, direction)
    np.testing.assert_allclose(found.ravel(), H @ direction.ravel(), rtol=1e-9)


@pytest.mark.parametrize("name", ["logistic", "poisson"])
def test_many_columns_are_fitted_by_products_alone(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = make_classes(n=80, d=5, c=4, seed=2)
    y = np.random.default_rng(1).permutation(y)
    task = "regression" if name == "poisson" else "classification"
    problem = Problem.from_arrays(X, y, loss=name, task=task, ridge=0.01)
    wanted = problem.refit(range(5))
    monkeypatch.setattr(newton, "MOST_ENTRIES", 0)
    found = problem.refit(range(5))
    assert found.objective == pytest.approx(wanted.objective, rel=1e-10)
    np.testing.assert_allclose(found.coef, wanted.coef, rtol=1e-4)
