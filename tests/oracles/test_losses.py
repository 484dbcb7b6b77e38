"""Choices by other losses than the squared error, against all subsets fitted by other libraries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp
from sklearn.linear_model import (
    HuberRegressor,
    LogisticRegression,
    PoissonRegressor,
    QuantileRegressor,
)
from sklearn.metrics import mean_poisson_deviance

from exactk import InputError, Problem, Result, solve, solve_path
from exactk.search.local_search import LocalSearch
from tests.oracles.brute import make_classes, make_numbers

Array = np.ndarray[Any, Any]
D, K = 8, 3
SEEDS = range(4)
# What the other libraries leave above the minimum.
SHORT = 1e-5


def _absolute(Z: Array, y: Array, penalty: float) -> float:
    assert penalty == 0
    fit = QuantileRegressor(quantile=0.5, alpha=0.0).fit(Z, y)
    return float(np.abs(y - fit.predict(Z)).sum())


def _huber(Z: Array, y: Array, penalty: float) -> float:
    fit = HuberRegressor(alpha=penalty, tol=1e-8, max_iter=10_000).fit(Z, y)
    z = np.abs(y - fit.predict(Z)) / fit.scale_
    rows = np.where(z <= 1.35, z**2, 2 * 1.35 * z - 1.35**2)
    return float(fit.scale_ * (1.0 + rows).sum() + penalty * (fit.coef_**2).sum())


def _logistic(Z: Array, y: Array, penalty: float) -> float:
    two = y.max() == 1
    C = (2.0 if two else 1.0) / penalty
    fit = LogisticRegression(C=C, tol=1e-8, max_iter=1000).fit(Z, y)
    scores = Z @ fit.coef_.T + fit.intercept_
    scores = np.hstack([np.zeros_like(scores), scores]) if two else scores
    loss = 2.0 * (logsumexp(scores, axis=1) - scores[np.arange(len(y)), y]).sum()
    return float(loss + (fit.coef_**2).sum() / C)


def _poisson(Z: Array, y: Array, penalty: float) -> float:
    fit = PoissonRegressor(alpha=penalty / len(y), solver="newton-cholesky", tol=1e-9).fit(Z, y)
    loss = len(y) * mean_poisson_deviance(y, fit.predict(Z))
    return float(loss + penalty * (fit.coef_**2).sum())


def _lengths(Z: Array, Y: Array, penalty: float) -> float:
    """The sum of lengths of residuals of two outputs, none of which is zero."""
    Z = np.hstack([Z, np.ones((len(Z), 1))])
    ridge = np.r_[np.full(Z.shape[1] - 1, penalty), 0.0][:, None]

    def value(flat: Array) -> tuple[float, Array]:
        W = flat.reshape(Z.shape[1], Y.shape[1])
        E = Y - Z @ W
        e = np.sqrt((E**2).sum(axis=1) + 1e-14)
        return e.sum() + (ridge * W**2).sum(), (2 * ridge * W - Z.T @ (E / e[:, None])).ravel()

    start = np.linalg.lstsq(Z, Y, rcond=None)[0].ravel()
    return float(minimize(value, start, jac=True, method="BFGS", options={"gtol": 1e-5}).fun)


# Loss, ridge, and who fits it.
KINDS: dict[str, tuple[str, float, Callable[[Array, Array, float], float]]] = {
    "absolute": ("l21", 0.0, _absolute),
    "lengths": ("l21", 0.1, _lengths),
    "huber": ("huber", 0.1, _huber),
    "two classes": ("logistic", 0.05, _logistic),
    "classes": ("logistic", 0.1, _logistic),
    "counts": ("poisson", 0.05, _poisson),
}
every_kind = pytest.mark.parametrize("kind", KINDS)


def data(kind: str, seed: int, n: int = 50, d: int = D) -> tuple[Array, Array]:
    """A table and a target of this kind; outliers where the loss is to bear them."""
    if "classes" in kind:
        return make_classes(n=n, d=d, c=2 if kind == "two classes" else 3, seed=seed)
    X, y = make_numbers(n=n, d=d, c=2 if kind == "lengths" else 1, seed=seed)
    if kind == "counts":
        return X, np.random.default_rng(seed).poisson(np.exp(0.5 + y / y.std())).astype(float)
    y[: n // 10] += 8.0 * y.std()
    return X, y


def make(kind: str, X: Any, y: Any, ridge: float | None = None) -> Problem:
    loss, usual, _ = KINDS[kind]
    task: Any = "classification" if "classes" in kind else "regression"
    ridge = usual if ridge is None else ridge
    return Problem.from_arrays(X, y, loss=loss, ridge=ridge, task=task)


def fitted(kind: str, X: Array, y: Array, S: Sequence[int], penalty: float) -> float:
    """The objective on some columns, by another library."""
    Z = (X - X.mean(axis=0)) / X.std(axis=0, ddof=1)
    return KINDS[kind][2](Z[:, list(S)], y, penalty)


@cache
def brute(kind: str, seed: int) -> tuple[Problem, dict[tuple[int, ...], float]]:
    """A problem, and the objective of every set of K columns."""
    X, y = data(kind, seed)
    problem = make(kind, X, y)
    sets = combinations(range(D), K)
    return problem, {S: fitted(kind, X, y, S, problem.penalty) for S in sets}


@every_kind
@pytest.mark.parametrize("seed", SEEDS)
def test_enumeration_finds_the_best(kind: str, seed: int) -> None:
    problem, values = brute(kind, seed)
    best = min(values, key=values.__getitem__)
    result = solve(problem, K, "exhaustive")
    assert tuple(result.support) == best
    assert result.objective == pytest.approx(values[best], rel=SHORT)
    assert result.status == "optimal"


def test_the_search_finds_the_best_of_nearly_all() -> None:
    found = []
    for kind in KINDS:
        for seed in SEEDS:
            problem, values = brute(kind, seed)
            result = solve(problem, K)
            least, here = min(values.values()), values[tuple(result.support)]
            assert result.objective == pytest.approx(here, rel=SHORT)
            assert result.objective >= least * (1 - SHORT)
            found.append(here <= least * (1 + SHORT))
            # All swaps are in the list of so small a problem: none of them is better.
            for S, value in values.items():
                if len(set(S) & set(result.support.tolist())) == K - 1:
                    assert value >= here * (1 - 2 * SHORT), (kind, seed, S)
    assert np.mean(found) >= 0.9


@every_kind
def test_columns_that_are_always_and_never_in(kind: str) -> None:
    found = []
    for seed in SEEDS:
        problem, values = brute(kind, seed)
        best = min(values, key=values.__getitem__)
        # What the best set has is out, what it has not is in.
        gone, kept = best[0], next(j for j in range(D) if j not in best)
        allowed = {S: v for S, v in values.items() if kept in S and gone not in S}
        bound = problem.with_constraints(include=[kept], exclude=[gone])
        wanted = min(allowed, key=allowed.__getitem__)
        assert tuple(solve(bound, K, "exhaustive").support) == wanted
        for method in ("greedy", "exchange"):
            result = solve(bound, K, method)
            assert tuple(result.support) in allowed
            assert result.objective >= allowed[wanted] * (1 - SHORT)
        found.append(result.objective <= allowed[wanted] * (1 + SHORT))
    assert np.mean(found) >= 0.75


@every_kind
def test_columns_that_go_together(kind: str) -> None:
    X, y = data(kind, 0)
    groups = {"a": [0, 5], "b": [1, 2], "c": [3, 7]}
    problem = make(kind, X, y).with_constraints(feature_groups=groups)
    units = [[0, 5], [1, 2], [3, 7], [4], [6]]
    values = {
        tuple(sorted(one + other)): fitted(kind, X, y, sorted(one + other), problem.penalty)
        for one, other in combinations(units, 2)
    }
    wanted = min(values, key=values.__getitem__)
    for method in ("exhaustive", "exchange"):
        result = solve(problem, 2, method)
        assert tuple(result.support) == wanted
        assert result.objective == pytest.approx(values[wanted], rel=SHORT)
    assert tuple(solve(problem, 2, "greedy").support) in values


@every_kind
def test_columns_that_must_not_be_alike(kind: str) -> None:
    problem, values = brute(kind, 1)
    X, _ = data(kind, 1)
    alike = np.abs(np.corrcoef(X.T))
    # The best set of all is just out.
    best = min(values, key=values.__getitem__)
    most = max(alike[i, j] for i, j in combinations(best, 2)) - 1e-9
    allowed = {
        S: v for S, v in values.items() if max(alike[i, j] for i, j in combinations(S, 2)) <= most
    }
    assert 0 < len(allowed) < len(values)
    wanted = min(allowed, key=allowed.__getitem__)
    bound = problem.with_constraints(max_correlation=most)
    for method in ("exhaustive", "exchange"):
        assert tuple(solve(bound, K, method).support) == wanted
    assert tuple(solve(bound, K, "greedy").support) in allowed


@every_kind
def test_paths_never_rise_and_greedy_is_never_better(kind: str) -> None:
    for seed in (0, 1):
        problem = make(kind, *data(kind, seed))
        path, greedy = solve_path(problem, 5), solve_path(problem, 5, "greedy")
        slack = 1e-6 * path[0].total
        for results in (path, greedy):
            assert results.sizes == [1, 2, 3, 4, 5]
            assert (np.diff([result.objective for result in results]) <= slack).all()
        for one, other in zip(path, greedy, strict=True):
            assert one.objective <= other.objective + slack
        assert solve(problem, 4).objective <= greedy[3].objective + slack


@every_kind
@pytest.mark.parametrize("method", ["exchange", "greedy", "exhaustive"])
def test_order_of_columns_and_rows(kind: str, method: str) -> None:
    X, y = data(kind, 2)
    wanted = solve(make(kind, X, y), K, method)
    for seed in (0, 1):
        rng = np.random.default_rng(seed)
        move, rows = rng.permutation(D), rng.permutation(len(X))
        found = solve(make(kind, X[rows][:, move], y[rows]), K, method)
        assert sorted(move[found.support]) == wanted.support.tolist()
        assert found.objective == pytest.approx(wanted.objective, rel=1e-6)


@pytest.mark.parametrize("loss", ["l21", "l2r", "huber", "logistic", "optimal_scoring"])
@pytest.mark.parametrize("ridge", [0.0, 0.1])
def test_names_of_classes(loss: str, ridge: float) -> None:
    X, y = make_classes(n=60, d=D, seed=3)
    wanted = solve(Problem.from_arrays(X, y, loss=loss, ridge=ridge), K)
    for labels in (["zeta", "beta", "eta"], [7, -1, 3], [2, 1, 0]):
        found = solve(Problem.from_arrays(X, np.array(labels)[y], loss=loss, ridge=ridge), K)
        assert found.support.tolist() == wanted.support.tolist()
        assert found.objective == pytest.approx(wanted.objective, rel=1e-6)
        size = np.abs(wanted.coef).max()
        rows = wanted.coef[np.argsort(labels)]
        np.testing.assert_allclose(found.coef, rows, rtol=0, atol=1e-3 * size)


def _same(one: Result, other: Result) -> bool:
    return one.support.tolist() == other.support.tolist() and one.objective == other.objective


@every_kind
def test_same_seed_same_answer(kind: str) -> None:
    X, y = data(kind, 7, n=40)
    first, again = (solve(make(kind, X, y), 4, random_state=3) for _ in range(2))
    assert _same(first, again)
    assert first.trace == again.trace
    paths = [solve_path(make(kind, X, y), 3, random_state=3) for _ in range(2)]
    assert all(_same(*pair) for pair in zip(*paths, strict=True))


@every_kind
@pytest.mark.parametrize("method", ["exchange", "exhaustive"])
def test_an_early_end_still_gives_k_columns(kind: str, method: str) -> None:
    X, y = data(kind, 3, n=60, d=12)
    problem = make(kind, X, y)
    result = solve(problem, 5, method, time_limit=1e-9)
    assert result.status == "time_limit"
    assert "time limit" in result.message
    assert len(set(result.support.tolist())) == 5
    assert result.objective == pytest.approx(problem.objective(result.support), rel=1e-9)


@every_kind
def test_one_column_and_all_columns(kind: str) -> None:
    X, y = data(kind, 4)
    problem = make(kind, X, y)
    alone = [fitted(kind, X, y, [j], problem.penalty) for j in range(D)]
    whole = fitted(kind, X, y, range(D), problem.penalty)
    for method in ("exchange", "greedy", "exhaustive"):
        one = solve(problem, 1, method)
        assert one.support.tolist() == [int(np.argmin(alone))]
        assert one.objective == pytest.approx(min(alone), rel=SHORT)
        every = solve(problem, D, method)
        assert every.support.tolist() == list(range(D))
        assert every.objective == pytest.approx(whole, rel=SHORT)
        assert every.status == "optimal"


@every_kind
def test_fewer_rows_than_columns(kind: str) -> None:
    X, y = data(kind, 5, n=14, d=25)
    problem = make(kind, X, y, ridge=0.1)
    result = solve(problem, 4)
    assert len(result.support) == 4
    worse = [problem.objective(S) for S in ([0, 1, 2, 3], [8, 9, 12, 20], [4, 11, 15, 24])]
    assert result.objective < min(worse)
    assert result.objective <= solve(problem, 4, "greedy").objective * (1 + 1e-6)


@every_kind
def test_columns_that_are_constant_or_copies(kind: str) -> None:
    X, y = data(kind, 6, d=6)
    wanted = solve(make(kind, X, y), K)
    table = np.column_stack([np.full(len(X), 3.0), X, -2.0 * X[:, :3] + 1.0, np.zeros(len(X))])
    problem = make(kind, table, y)
    for method in ("exchange", "greedy", "exhaustive"):
        result = solve(problem, K, method)
        assert not {0, 10} & set(result.support.tolist())
        places = sorted((p - 1) % 6 for p in result.support.tolist())
        assert len(set(places)) == K, "no column beside its copy"
        if method != "greedy":
            assert places == wanted.support.tolist()
            assert result.objective == pytest.approx(wanted.objective, rel=1e-6)
        with pytest.warns(UserWarning, match="only 6 of the 8 columns asked for are independent"):
            many = solve(problem, 8, method)
        assert many.status == "rank_deficient"
        assert len(many.support) == 8
    with pytest.raises(InputError, match="k=10"):
        solve(problem, 10)


@every_kind
def test_units_of_the_columns(kind: str) -> None:
    X, y = data(kind, 1)
    wanted = solve(make(kind, X, y), K)
    factors = 10.0 ** np.array([-30, 30, -8, 8, -100, 100, 0, 3]) * np.tile([1, -1], 4)
    found = solve(make(kind, X * factors, y), K)
    assert found.support.tolist() == wanted.support.tolist()
    assert found.objective == pytest.approx(wanted.objective, rel=1e-7)
    size = np.abs(wanted.coef).max()
    scaled = found.coef * factors[found.support]
    np.testing.assert_allclose(scaled, wanted.coef, rtol=0, atol=1e-3 * size)


def test_what_is_reported_of_a_loss_with_local_minima_is_what_the_search_found() -> None:
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((50, 12))
        y = X[:, 0] + X[:, 1] + rng.standard_cauchy(50)
        problem = Problem.from_arrays(X, y, ridge=0.01).with_loss("l2r", r=0.3)
        result = solve(problem, 4)
        assert result.objective <= result.trace[-1] * (1 + 1e-6)
        assert result.objective <= solve(problem, 4, effort=0).objective * (1 + 1e-6)
        objectives = solve_path(problem, 4).objectives
        assert (np.diff(objectives) <= 1e-6 * objectives[:-1]).all()


@pytest.mark.parametrize("loss", ["l21", "logistic"])
def test_whoever_stops_a_search_gets_the_best_so_far(
    loss: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 20))
    problem = Problem.from_arrays(X, (X[:, 0] + rng.standard_normal(80) > 0).astype(int), loss=loss)
    real, calls = LocalSearch.descend, []

    def stopped(self: LocalSearch) -> None:
        calls.append(1)
        if len(calls) > 1:
            raise KeyboardInterrupt
        real(self)

    monkeypatch.setattr(LocalSearch, "descend", stopped)
    result = solve(problem, 3)
    assert str(result.status) == "interrupted"
    assert len(result.support) == 3
