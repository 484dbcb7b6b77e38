"""RPFS beside another implementation, the equations as printed, enumeration, and weak duality."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest

from exactk import Problem, Status, solve
from exactk.papers.methods.irls import robust_fit
from exactk.papers.methods.rpfs import RPFS, _Narrow, _Tall
from exactk.papers.methods.standard_table import standard_table
from exactk.types import Floats
from exactk.utils.monitor import Monitor
from tests.oracles.brute import Reference, make_classes, make_numbers, one_hot
from tests.oracles.cases import every_run, problem, robust_bounds, robust_numbers, stored, table


def fit_bounds(X: Floats, Y: Floats, support: Any) -> tuple[float, float]:
    """Bounds of the least ‖Y − X_S W − 1bᵀ‖₂,₁."""
    design = np.column_stack([X[:, list(support)], np.ones(len(X))])
    return robust_bounds(design, Y, np.zeros(design.shape[1]))


@every_run("rpfs")
def test_the_iterations_of_another_implementation(name: str, run: dict[str, Any]) -> None:
    W0 = stored("rpfs")[name]["starts"][run["start"]]
    method = RPFS(mu=run["mu"], row_norm=run["row_norm"], init=W0, tol=0, max_iter=1000)
    answer = method.run(problem(name), run["k"], Monitor())
    assert answer.status == Status.MAX_ITER
    assert len(answer.trace) == 1000
    np.testing.assert_allclose(answer.trace[:10], run["first10"], rtol=1e-11)
    assert answer.trace[-1] == pytest.approx(run["last"], rel=1e-8)
    assert sorted(answer.support) == run["selected"]


@every_run("rpfs")
def test_a_refit_is_as_good_as_the_stored_one_and_as_weak_duality_allows(
    name: str, run: dict[str, Any]
) -> None:
    held = standard_table(problem(name), "one-hot")
    own = robust_fit(held, np.array(run["selected"]))
    assert own == pytest.approx(run["refit"], rel=1e-6)
    # The iterates freeze as μ grows: what they end with is above the refit.
    assert run["last"] >= own * (1 - 1e-9)
    X, y = table(name)
    lower, upper = fit_bounds(Reference(X, y).X, one_hot(y), run["selected"])
    assert lower > upper * (1 - 1e-6)
    assert lower * (1 - 1e-10) <= own <= upper * (1 + 1e-6)


@pytest.mark.parametrize("seed", range(6))
def test_a_refit_on_random_columns_with_and_without_weights(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, Y = make_numbers(25, 8, 2, seed) if seed % 2 else make_classes(25, 8, 3, seed)
    # Rows far off, for which squared and robust fits differ.
    X[:3] += 20 * rng.standard_normal((3, 8))
    weights = rng.integers(0, 4, 25)
    weights[:6] = 1
    copies = np.repeat(np.arange(25), weights)
    own = Problem.from_arrays(X, Y, sample_weight=weights)
    held = standard_table(own, "one-hot", robust=True)
    reference = Reference(X[copies], Y[copies])
    target = one_hot(Y[copies]) if Y.ndim == 1 else robust_numbers(Y[copies])
    for k in (1, 3, 5):
        chosen = rng.choice(8, k, replace=False)
        lower, upper = fit_bounds(reference.X, target, chosen)
        assert lower > upper * (1 - 1e-6)
        fit = robust_fit(held, np.sort(chosen))
        # With rows far off, two hundred steps can end a little above the minimum.
        assert lower * (1 - 1e-10) <= fit <= upper * (1 + 2e-4)
        # Not what least squares have: the test would pass without any reweighting otherwise.
        design = np.column_stack([reference.X[:, chosen], np.ones(len(target))])
        residual = target - design @ np.linalg.lstsq(design, target, rcond=None)[0]
        assert fit < np.linalg.norm(residual, axis=1).sum() * (1 - 1e-3)


def test_the_stored_optimum_of_eq_7_is_the_best_of_all_supports() -> None:
    X, y = table("small1")
    X, Y, best = Reference(X, y).X, one_hot(y), stored("rpfs")["small1"]["optimum"]
    held = standard_table(problem("small1"), "one-hot")
    fits = {S: robust_fit(held, np.array(S)) for S in combinations(range(12), best["k"])}
    ranked = sorted(fits, key=lambda S: fits[S])
    assert list(ranked[0]) == best["support"]
    assert fits[ranked[0]] == pytest.approx(best["objective"], rel=1e-6)
    # The next in order are proven to be worse.
    upper = fit_bounds(X, Y, ranked[0])[1]
    assert all(fit_bounds(X, Y, S)[0] > upper for S in ranked[1:8])


@pytest.mark.parametrize("name", ["small1", "small2", "small3out"])
def test_no_iterate_is_below_the_optimum_of_eq_7(name: str) -> None:
    best = stored("rpfs")[name]["optimum"]
    for seed in range(2):
        for row_norm in ("l2", "l1"):
            found = solve(problem(name), best["k"], "rpfs", random_state=seed, row_norm=row_norm)
            # V has k rows at every iteration: a feasible point, whatever else is not settled.
            assert min(found.trace) >= best["objective"] * (1 - 1e-9)
            assert found.trace[-1] <= 1.5 * best["objective"]


def as_printed(
    X: Floats, Y: Floats, k: int, W: Floats, order: int, iterations: int
) -> tuple[list[float], Floats, list[int]]:
    """Algorithm 3 with a dense (XᵀX + I)⁻¹; V⁰ of W⁰, E⁰ = 0, rows ranked by l2 or l1 norms."""
    n, mu, trace, gaps = len(X), 0.1, [], []
    inverse = np.linalg.inv(X.T @ X + np.eye(X.shape[1]))
    one = np.ones((n, 1))
    E, Sigma, Lambda = np.zeros_like(Y), np.zeros_like(Y), np.zeros_like(W)
    V, S = _keep(W, k, order)
    for _ in range(iterations):
        b = (Y + E - Sigma / mu - X @ W).T @ one / n
        W = inverse @ (V - Lambda / mu + X.T @ (Y + E - Sigma / mu - one @ b.T))
        V, S = _keep(W + Lambda / mu, k, order)
        G = X @ W + one @ b.T - Y + Sigma / mu
        norms = np.maximum(np.linalg.norm(G, axis=1, keepdims=True), 1e-300)
        E = np.maximum(1 - 1 / (mu * norms), 0) * G
        Lambda = Lambda + mu * (W - V)
        Sigma = Sigma + mu * (X @ W + one @ b.T - Y - E)
        mu *= 1.02
        trace.append(float(np.linalg.norm(Y - X @ V - one @ b.T, axis=1).sum()))
        gap_E = np.abs(X @ W + one @ b.T - Y - E).max()
        gaps.append((np.abs(W - V).max() / np.abs(W).max(), gap_E))
    return trace, np.array(gaps), S


def _keep(W: Floats, k: int, order: int) -> tuple[Floats, list[int]]:
    S = sorted(np.argsort(np.linalg.norm(W, ord=order, axis=1))[-k:].tolist())
    V = np.zeros_like(W)
    V[S] = W[S]
    return V, S


TABLES = {
    "classes": make_classes(50, 12, 4, seed=5),
    "numbers": make_numbers(40, 10, 3, seed=6),
    "one number": make_numbers(40, 10, 1, seed=7),
    "fewer rows than columns": make_classes(12, 40, 3, seed=8),
}


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", list(TABLES))
def test_the_iterations_are_those_of_algorithm_3(name: str, weighted: bool, order: int) -> None:
    X, y = TABLES[name]
    rng = np.random.default_rng(9)
    weights = rng.integers(1, 3, len(X)) if weighted else None
    copies = np.repeat(np.arange(len(X)), weights) if weighted else np.arange(len(X))
    reference = Reference(X[copies], y[copies])
    Y = robust_numbers(y[copies]) if "number" in name else one_hot(y[copies])
    W0 = rng.normal(size=(X.shape[1], Y.shape[1]))
    own = Problem.from_arrays(X, y, sample_weight=weights)
    trace, _, S = as_printed(reference.X, Y, 3, W0, order, 400)
    answer = RPFS(init=W0, row_norm=f"l{order}", tol=0, max_iter=400).run(own, 3, Monitor())
    np.testing.assert_allclose(answer.trace, trace, rtol=1e-8)
    assert sorted(answer.support) == S


def test_it_stops_at_the_first_iteration_with_both_gaps_within_tol() -> None:
    decides = {"W - V": 0, "E": 0}
    for name, (X, y) in TABLES.items():
        own, reference = Problem.from_arrays(X, y), Reference(X, y)
        Y = robust_numbers(y) if "number" in name else one_hot(y)
        W0 = np.random.default_rng(9).normal(size=(X.shape[1], Y.shape[1]))
        for k in (3, X.shape[1] - 1):
            _, gaps, _ = as_printed(reference.X, Y, k, W0, 2, 400)
            for tol in (0.2, 0.05, 0.01, 0.002):
                within = gaps <= tol
                if not within.all(axis=1).any():
                    continue
                first = int(within.all(axis=1).argmax())
                stopped = RPFS(init=W0, tol=tol).run(own, k, Monitor())
                assert stopped.status == Status.CONVERGED
                assert len(stopped.trace) == first + 1
                decides["W - V"] += bool(within[:first, 1].any())
                decides["E"] += bool(within[:first, 0].any())
    assert min(decides.values()) > 3, decides


@pytest.mark.parametrize("shape", [(40, 10), (12, 40), (20, 20)])
@pytest.mark.parametrize("weighted", [False, True])
def test_both_inverses(shape: tuple[int, int], weighted: bool) -> None:
    rng = np.random.default_rng(3)
    X, y = make_classes(*shape, 3, seed=4)
    weights = rng.uniform(0.5, 2.0, len(X)) if weighted else None
    held = standard_table(Problem.from_arrays(X, y, sample_weight=weights), "one-hot")
    X = Reference(X, y, weights=weights).X
    for _ in range(3):
        Q, T = rng.normal(size=(X.shape[1], 3)), rng.normal(size=(len(X), 3))
        W = np.linalg.solve(X.T @ X + np.eye(X.shape[1]), Q + X.T @ T)
        for system in (_Narrow(held), _Tall(held)):
            own, product = system.solve(Q, X @ Q, T)
            np.testing.assert_allclose(own, W, rtol=1e-9, atol=1e-11)
            np.testing.assert_allclose(product, X @ W, rtol=1e-9, atol=1e-11)


def test_of_several_starts_the_one_with_the_best_refit_is_kept() -> None:
    """Not the one whose last iterate has the lowest loss, which here is another."""
    X, y = make_classes(20, 60, 3, seed=2)
    own, X, Y = Problem.from_arrays(X, y), Reference(X, y).X, one_hot(y)
    # One generator hands out the starts one after another.
    rng = np.random.default_rng(0)
    single = [RPFS(mu=0.5, max_iter=20, random_state=rng).run(own, 5, Monitor()) for _ in range(5)]
    fits = [fit_bounds(X, Y, answer.support)[1] for answer in single]
    lowest = int(np.argmin([answer.trace[-1] for answer in single]))
    assert fits[lowest] > 1.1 * min(fits)
    kept = RPFS(mu=0.5, max_iter=20, n_starts=5, random_state=0).run(own, 5, Monitor())
    assert sorted(kept.support) == sorted(single[int(np.argmin(fits))].support)
