"""nmAPG beside another implementation, enumeration, finite differences and convex optima."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest

from exactk import Problem, Status
from exactk.methods.iteration import iterate
from exactk.papers.methods.nmapg import NMAPG, _Objective, prox
from exactk.papers.methods.standard_table import standard_table
from exactk.types import Floats
from exactk.utils.monitor import Monitor
from tests.oracles.brute import Reference, make_classes, make_numbers, one_hot
from tests.oracles.cases import SMALL, problem, robust_bounds, robust_numbers, stored, table


def norms(W: Floats) -> Floats:
    return np.linalg.norm(W, axis=1)


def options(run: dict[str, Any]) -> dict[str, Any]:
    named = {key: run[key] for key in ("algorithm", "gamma", "rho", "mu", "step")}
    if run["algorithm"] == 1:
        named |= {"max_iter": run["max_iter"], "tol": run["tol"]}
    else:
        named |= {"max_iter": sum(run["stages"]), "stage_iter": run["stages"][0]}
    # The reference has τ = 2L for either constant.
    return named | {"labels": "one-hot", "tau": 2.0}


def last_iterate(method: NMAPG, problem: Problem, k: int) -> Floats:
    """W after max_iter iterations or at convergence; `run` is not asked, so that k = d can be."""
    objective = method.prepare(problem)
    [start] = method.starts(problem, k, objective)
    iterate(start.steps, method.max_iter, Monitor())
    return objective.last


cells = [
    pytest.param(
        name,
        run,
        id=f"{name}-{number}",
        marks=[pytest.mark.slow] if run.get("max_iter") == run.get("iterations", 0) > 1000 else [],
    )
    for name in SMALL
    for number, run in enumerate(stored("nmapg")[name]["runs"])
]


@pytest.mark.parametrize(("name", "run"), cells)
def test_the_iterations_of_another_implementation(name: str, run: dict[str, Any]) -> None:
    method = NMAPG(**options(run))
    answer = method.run(problem(name), run["K"], Monitor())
    np.testing.assert_allclose(answer.trace[:10], run["first10"], rtol=1e-11)
    assert answer.trace[-1] == pytest.approx(run["last"], rel=1e-9)
    assert sorted(answer.support) == run["selected"]
    if run.get("iterations") == run.get("max_iter"):
        assert answer.status == Status.MAX_ITER
        assert len(answer.trace) == method.max_iter
    else:
        # At changes of 1e-10 rounding decides which of two points is taken, and so when to stop.
        assert answer.status == Status.CONVERGED
        assert len(answer.trace) == pytest.approx(run["iterations"], rel=0.05)


short = [cell for cell in cells if cell.values[1].get("max_iter", 0) <= 1000]


@pytest.mark.parametrize(("name", "run"), short)
def test_the_rows_of_another_implementation(name: str, run: dict[str, Any]) -> None:
    X, y = table(name)
    W = last_iterate(NMAPG(**options(run)), problem(name), run["K"])
    np.testing.assert_allclose(norms(W), run["row_norms"], rtol=1e-6, atol=1e-9)
    value = eq_3_2(Reference(X, y).X, one_hot(y), W, run["gamma"], run["rho"], run["K"])
    assert value == pytest.approx(run["F_last"], rel=1e-9)


def eq_3_2(X: Floats, Y: Floats, W: Floats, gamma: float, rho: float, k: int) -> float:
    """F as printed: nothing smoothed."""
    beyond = np.sort(norms(W))[: len(W) - k].sum()
    return float(norms(X @ W - Y).sum() + gamma * norms(W).sum() + rho * beyond)


second = [cell for cell in cells if cell.values[1]["algorithm"] == 2]


@pytest.mark.parametrize(("name", "run"), second)
def test_rho_of_the_paper(name: str, run: dict[str, Any]) -> None:
    """ρ_max = n·max|x_ij| − γ, of which the runs of Algorithm 2 take two shares."""
    X, y = table(name)
    most = len(X) * np.abs(Reference(X, y).X).max() - run["gamma"]
    assert run["rho"] == pytest.approx(run["rho_share"] * most, rel=1e-10)
    if run["rho_share"] == 0.01:
        named = options(run) | {"rho": None, "max_iter": 10}
        answer = NMAPG(**named).run(problem(name), run["K"], Monitor())
        np.testing.assert_allclose(answer.trace, run["first10"], rtol=1e-10)


@pytest.mark.parametrize(("name", "run"), second)
def test_the_last_mu_is_the_first_whose_next_is_below_the_least(
    name: str, run: dict[str, Any]
) -> None:
    """F_μ rises with each smaller μ, by up to half the difference a row; then no more."""
    named = options(run) | {"max_iter": 800}
    trace = np.array(NMAPG(**named).run(problem(name), run["K"], Monitor()).trace)
    assert len(trace) == 800
    assert trace[599] == pytest.approx(run["last"], rel=1e-9)
    rises = np.diff(trace)
    assert rises[[199, 399]].min() > 0.3
    assert np.delete(rises, [199, 399]).max() < 0.01


@pytest.mark.parametrize("shared", [0.0, 0.4])
@pytest.mark.parametrize("c", [1, 3])
def test_the_prox_is_the_best_over_all_choices_of_rows(c: int, shared: float) -> None:
    rng, d = np.random.default_rng(c), 6
    for _ in range(60):
        k = int(rng.integers(1, d + 1))
        U, alpha = rng.normal(size=(d, c)), float(rng.uniform(0.05, 3.0))

        def value(W: Floats, U: Floats = U, alpha: float = alpha, k: int = k) -> float:
            beyond = np.sort(norms(W))[: d - k].sum()
            distance = 0.5 * ((W - U) ** 2).sum()
            return float(distance + alpha * beyond + shared * norms(W).sum())

        best = value(prox(U, alpha, k, shared))
        # Whatever rows are the k largest of W, the rest of the problem is one of each row.
        tries = []
        for kept in combinations(range(d), k):
            by = np.full(d, alpha + shared)
            by[list(kept)] = shared
            tries.append(value(U * np.maximum(1 - by / norms(U), 0)[:, None]))
        assert best == pytest.approx(min(tries), rel=1e-12, abs=1e-12)
        W = prox(U, alpha, k, shared)
        for size in (1e-3, 0.1, 1.0):
            for _ in range(20):
                assert value(W + size * rng.normal(size=(d, c))) >= best - 1e-12


def test_the_printed_factor_of_the_prox_is_worse_for_short_rows() -> None:
    """Theorem 5.1 leaves 1 − α/‖u‖ below zero where ‖u‖ < α; zero is better there."""
    U = np.array([[3.0, 0.0], [0.3, 0.4]])
    W = prox(U, 2.0, 1)
    np.testing.assert_array_equal(W, [[3.0, 0.0], [0.0, 0.0]])
    printed = np.array([[3.0, 0.0], (1 - 2.0 / 0.5) * U[1]])
    cost = [0.5 * ((V - U) ** 2).sum() + 2.0 * norms(V)[1] for V in (W, printed)]
    assert cost[0] < cost[1]


TABLES = {
    "classes": make_classes(30, 8, 3, seed=5),
    "numbers": make_numbers(30, 7, 2, seed=6),
    "fewer rows than columns": make_classes(12, 20, 3, seed=8),
}


def copied(name: str) -> tuple[Problem, Floats, Floats]:
    """A problem with whole weights, and X and Y with as many copies of each row."""
    X, y = TABLES[name]
    weights = np.random.default_rng(9).integers(0, 4, len(X))
    weights[:4] = 1
    copies = np.repeat(np.arange(len(X)), weights)
    reference = Reference(X[copies], y[copies])
    Y = robust_numbers(y[copies]) if name == "numbers" else one_hot(y[copies])
    return Problem.from_arrays(X, y, sample_weight=weights), reference.X, Y


def smoothed(X: Floats, Y: Floats, W: Floats, gamma: float, mu: float) -> float:
    """The smooth part of F_μ (eq. 5.8), by the definition of Nesterov's smoothing.

    max over ‖u‖ ≤ 1 of ⟨u, e⟩ − μ‖u‖²/2, which u = e/μ, or its projection, attains.
    """

    def soft(E: Floats) -> float:
        u = E / mu
        u /= np.maximum(norms(u), 1.0)[:, None]
        return float((u * E).sum() - 0.5 * mu * (u**2).sum())

    return soft(X @ W - Y) + gamma * soft(W)


@pytest.mark.parametrize("mu", [0.01, 0.5])
@pytest.mark.parametrize("name", list(TABLES))
def test_the_gradient_by_finite_differences(name: str, mu: float) -> None:
    own, X, Y = copied(name)
    rng, gamma, h = np.random.default_rng(1), 0.7, 1e-6
    # Without ρ the proximal step is a gradient step.
    method = NMAPG(gamma=gamma, rho=0.0)
    of = _Objective(standard_table(own, "one-hot", robust=True), method)
    at = of.smoothed(mu, 2)
    for size in (0.02, 1.0):
        W = size * rng.normal(size=(X.shape[1], Y.shape[1]))
        assert at.point(W).value == pytest.approx(smoothed(X, Y, W, gamma, mu), rel=1e-10)
        gradient = W - at.proximal_step(W, of.table.X @ W, 1.0).W
        for _ in range(10):
            D = rng.normal(size=W.shape)
            ends = [smoothed(X, Y, W + sign * h * D, gamma, mu) for sign in (1, -1)]
            slope = (ends[0] - ends[1]) / (2 * h)
            assert (gradient * D).sum() == pytest.approx(slope, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("mu", [0.01, 0.5])
@pytest.mark.parametrize("name", list(TABLES))
def test_both_lipschitz_constants_hold_and_the_spectral_one_is_the_smaller(
    name: str, mu: float
) -> None:
    own, X, Y = copied(name)
    rng, gamma, constants = np.random.default_rng(2), 0.7, {}
    for step in ("spectral", "paper"):
        method = NMAPG(gamma=gamma, rho=0.0, step=step)
        of = _Objective(standard_table(own, "one-hot", robust=True), method)
        at = of.smoothed(mu, 2)
        constants[step] = at.lipschitz
        steepest = 0.0
        for size in (1e-4, 1e-2, 1.0):
            for _ in range(20):
                W = size * rng.normal(size=(X.shape[1], Y.shape[1]))
                V = W + 1e-3 * mu * rng.normal(size=W.shape)
                ends = [U - at.proximal_step(U, of.table.X @ U, 1.0).W for U in (W, V)]
                rise = np.linalg.norm(ends[0] - ends[1]) / np.linalg.norm(W - V)
                steepest = max(steepest, float(rise))
        assert steepest <= at.lipschitz
    most = np.linalg.norm(X, ord=2) ** 2
    assert constants["spectral"] == pytest.approx((most + gamma) / mu, rel=1e-10)
    frobenius = (X**2).sum() + X.shape[1] * gamma
    assert constants["paper"] == pytest.approx(frobenius / mu, rel=1e-10)
    assert constants["spectral"] < constants["paper"]


@pytest.mark.parametrize("name", list(TABLES))
def test_whole_weights_are_copies_of_rows(name: str) -> None:
    own, X, Y = copied(name)
    y = TABLES[name][1]
    labels = Y if name == "numbers" else np.unique(y)[Y.argmax(axis=1)]
    again = Problem.from_arrays(X, labels)
    named: dict[str, Any] = {"labels": "one-hot", "stage_iter": 30, "max_iter": 90}
    for penalty in ("smoothed", "prox"):
        method = NMAPG(penalty=penalty, **named)
        traces = [method.run(p, 3, Monitor()).trace for p in (own, again)]
        assert len(traces[0]) == 90
        np.testing.assert_allclose(traces[0], traces[1], rtol=1e-7)


@pytest.mark.parametrize("penalty", ["smoothed", "prox"])
@pytest.mark.parametrize("name", SMALL)
def test_with_all_rows_among_the_largest_the_convex_optimum(name: str, penalty: str) -> None:
    X, y = table(name)
    X, Y, case = Reference(X, y).X, one_hot(y), stored("nmapg")[name]["convex"]
    d = X.shape[1]
    lower, upper = robust_bounds(X, Y, np.full(d, case["gamma"]))
    assert lower * (1 - 1e-7) <= case["optimum"] <= upper * (1 + 1e-7)
    method = NMAPG(
        gamma=case["gamma"], labels="one-hot", epsilon=1e-3, stage_iter=800, max_iter=4000, tol=0,
        penalty=penalty,
    )  # fmt: skip
    W = last_iterate(method, problem(name), d)
    value = eq_3_2(X, Y, W, case["gamma"], 1.0, d)
    # Algorithm 2 allows ε/σ, and needs it where smoothed rows have far to go to zero.
    slack = 1e-3 / 0.1 if (name, penalty) == ("wide4", "smoothed") else 1e-4
    assert case["optimum"] * (1 - 1e-8) <= value <= case["optimum"] + slack


def test_in_the_prox_the_penalty_leaves_k_rows_at_most() -> None:
    """At ρ above ρ_max exactly; smoothed, the penalty pulls at rows but never ends them."""
    name, K = "small1", 3
    X, y = table(name)
    X, Y, best = Reference(X, y).X, one_hot(y), stored("nmapg")[name]["optimum"]
    assert best["K"] == K
    rho = len(X) * np.abs(X).max()
    method = NMAPG(labels="one-hot", gamma=best["gamma"], rho=rho, max_iter=1500, penalty="prox")
    W = last_iterate(method, problem(name), K)
    assert (norms(W) > 0).sum() == K
    # Feasible for eq. 2.3, and so not below its optimum over all supports.
    value = eq_3_2(X, Y, W, best["gamma"], rho, K)
    assert value >= best["objective"] * (1 - 1e-9)
    chosen = np.flatnonzero(norms(W))
    lower, upper = robust_bounds(X[:, chosen], Y, np.full(K, best["gamma"]))
    assert lower * (1 - 1e-9) <= value <= upper * (1 + 1e-2)


def test_the_stored_optimum_of_eq_2_3_is_what_its_columns_have() -> None:
    for name in ("small1", "small2", "small3out"):
        X, y = table(name)
        best = stored("nmapg")[name]["optimum"]
        lam = np.full(best["K"], best["gamma"])
        lower, upper = robust_bounds(Reference(X, y).X[:, best["support"]], one_hot(y), lam)
        assert lower * (1 - 1e-6) <= best["objective"] <= upper * (1 + 1e-6)
