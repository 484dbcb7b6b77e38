"""GSR-FS and its kin beside another implementation, scikit-learn, and proofs of optimality."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import MultiTaskLasso

from exactk import Problem, Status, solve
from exactk.papers.methods.gsrfs import GSRFS
from exactk.papers.methods.irls import reweighted_steps
from exactk.papers.methods.standard_table import standard_table
from exactk.types import Floats
from exactk.utils.monitor import Monitor
from tests.oracles.brute import Reference, make_classes, make_numbers, one_hot
from tests.oracles.cases import (
    SMALL,
    every_run,
    problem,
    robust_bounds,
    robust_numbers,
    stored,
    table,
)
from tests.support import every_pair

TIGHT = {"tol": 1e-11, "max_iter": 10_000}


def norms(W: Floats) -> Floats:
    return np.linalg.norm(W, axis=1)


def value(X: Floats, Y: Floats, W: Floats, r: float, p: float, lam: float) -> float:
    """J as in eq. 2."""
    return float((norms(X @ W - Y) ** r).sum() + lam * (norms(W) ** p).sum())


@cache
def plus_minus(name: str) -> tuple[Floats, Floats]:
    """X and Y of a stored table as the paper has them: standardised, −1 and 1."""
    X, y = table(name)
    return Reference(X, y).X, 2 * one_hot(y) - 1


def settled(
    problem: Problem, r: float, p: float, lam: float, epsilon: float = 0.0
) -> tuple[list[float], Floats]:
    """The objective of every iteration, and W of the last, which the method keeps to itself."""
    held = standard_table(problem, "plus-minus")
    steps = reweighted_steps(held, 1, r=r, p=p, lam=lam, epsilon=epsilon, tol=TIGHT["tol"])
    trace = []
    active = np.arange(problem.n_features)
    for step in steps:
        trace.append(step.value)
        inside = steps.gi_frame.f_locals
        if step.converged:
            break
        active = inside["rows"].active
        assert len(trace) < TIGHT["max_iter"]
    W = np.zeros((problem.n_features, held.Y.shape[1]))
    W[active] = inside["W"]
    W[np.setdiff1d(active, inside["rows"].active)] = 0.0
    return trace, W


def orders(run: dict[str, Any]) -> dict[str, float]:
    return {key: float(run[key]) for key in ("r", "p", "lam")}


@every_run("gsrfs")
def test_the_iterations_of_another_implementation(name: str, run: dict[str, Any]) -> None:
    # Where r < 1 some rows are fitted exactly, with weights that rounding decides.
    rel = 1e-6 if run["r"] < 1 else 1e-10
    result = solve(problem(name), 3, "gsrfs", **orders(run))
    assert result.status == Status.CONVERGED
    np.testing.assert_allclose(result.trace[:10], run["first10"], rtol=1e-8)
    assert result.n_iter == run["iterations"]
    assert result.trace[-1] == pytest.approx(run["at_stop"], rel=rel)


@every_run("gsrfs")
def test_the_end_of_another_implementation(name: str, run: dict[str, Any]) -> None:
    exact = run["r"] >= 1
    trace, W = settled(problem(name), **orders(run))
    assert trace[-1] == pytest.approx(run["converged"], rel=1e-9 if exact else 1e-6)
    if "optimum" in run:
        assert trace[-1] == pytest.approx(run["optimum"], rel=1e-8)
    # The figures are those of W: no row was counted that is not there, none left out that is.
    own = value(*plus_minus(name), W, **orders(run))
    assert own == pytest.approx(trace[-1], rel=1e-10 if exact else 1e-6)
    np.testing.assert_allclose(norms(W), run["row_norms"], rtol=1e-4, atol=1e-4)
    X, Y = plus_minus(name)
    assert (norms(X @ W - Y) < 1e-6).sum() == run["zero_residuals"]
    # The k largest rows, wherever they are clearly larger than the next.
    wanted = np.array(run["row_norms"])
    ranking = np.argsort(-wanted)
    compared = 0
    for k in range(1, len(wanted)):
        if wanted[ranking[k - 1]] > 1.01 * wanted[ranking[k]] + 1e-3:
            answer = GSRFS(**orders(run), **TIGHT).run(problem(name), k, Monitor())
            assert sorted(answer.support) == sorted(ranking[:k])
            compared += 1
        if compared == 2:
            break
    assert compared


@pytest.mark.parametrize("lam", [0.5, 3.0, 10.0])
@pytest.mark.parametrize("name", SMALL)
def test_mtfs_is_the_multi_task_lasso(name: str, lam: float) -> None:
    X, Y = plus_minus(name)
    lasso = MultiTaskLasso(alpha=lam / (2 * len(X)), fit_intercept=False, tol=1e-12, max_iter=10**6)
    V = lasso.fit(X, Y).coef_.T
    trace, W = settled(problem(name), 2.0, 1.0, lam)
    best = value(X, Y, V, 2, 1, lam)
    assert trace[-1] == pytest.approx(best, rel=1e-8)
    # Rows that are zero in the end are left behind by less and less at every iteration.
    np.testing.assert_allclose(norms(W), norms(V), rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(X @ W, X @ V, atol=1e-4)
    k = int((norms(V) > 1e-2).sum())
    if 0 < k < X.shape[1] and np.sort(norms(V))[-k - 1] < 1e-3:
        found = solve(problem(name), k, "mtfs", lam=lam, **TIGHT).support
        assert found.tolist() == np.flatnonzero(norms(V) > 1e-2).tolist()


@pytest.mark.parametrize("lam", [0.3, 1.0, 10.0])
@pytest.mark.parametrize("name", SMALL)
def test_rfs_ends_where_weak_duality_says_that_nothing_is_lower(name: str, lam: float) -> None:
    X, Y = plus_minus(name)
    trace, W = settled(problem(name), 1.0, 1.0, lam)
    lower, upper = robust_bounds(X, Y, np.full(X.shape[1], lam))
    assert lower > upper * (1 - 1e-6)
    assert lower * (1 - 1e-11) <= trace[-1] <= lower * (1 + 1e-7)
    assert value(X, Y, W, 1, 1, lam) >= lower * (1 - 1e-11)
    known = [run for run in stored("gsrfs")[name]["runs"] if "optimum" in run and run["r"] == 1]
    assert {run["lam"] for run in known} == {1.0, 10.0}
    for run in known:
        if run["lam"] == lam:
            assert lower * (1 - 1e-8) <= run["optimum"] <= upper * (1 + 1e-8)


@pytest.mark.parametrize(
    ("r", "p", "lam"),
    [(2.0, 0.8, 3.0), (2.0, 0.5, 3.0), (2.0, 0.25, 3.0), (1.5, 0.7, 3.0), (1.0, 0.9, 5.0)],
)
@pytest.mark.parametrize("name", SMALL)
def test_below_one_the_end_is_stationary(name: str, r: float, p: float, lam: float) -> None:
    X, Y = plus_minus(name)
    _, W = settled(problem(name), r, p, lam)
    E = X @ W - Y
    e, w = norms(E), norms(W)
    assert e.min() > 1e-3, "a row is fitted exactly: no derivative"
    active = w > 1e-5
    assert active.any()
    pull = X.T @ (r * e[:, None] ** (r - 2.0) * E)
    push = lam * p * w[active, None] ** (p - 2.0) * W[active]
    np.testing.assert_allclose(pull[active], -push, atol=1e-3 * np.abs(push).max())


def as_printed(
    X: Floats, Y: Floats, r: float, p: float, lam: float, iterations: int
) -> tuple[list[float], Floats]:
    """Algorithm 1 in the primal form of eq. 4, for as long as no row has died."""
    S1, S2, trace = np.eye(len(X)), np.eye(X.shape[1]), []
    for _ in range(iterations):
        W = np.linalg.solve(X.T @ S1 @ X + lam * S2, X.T @ S1 @ Y)
        trace.append(value(X, Y, W, r, p, lam))
        S1 = np.diag(r / 2 * norms(X @ W - Y) ** (r - 2))
        S2 = np.diag(p / 2 * norms(W) ** (p - 2))
    return trace, norms(W)


TABLES = {
    "classes": make_classes(50, 12, 4, seed=5),
    "numbers": make_numbers(40, 10, 3, seed=6),
    "one number": make_numbers(40, 10, 1, seed=7),
    "fewer rows than columns": make_classes(12, 20, 3, seed=8),
}
CODES = {
    "plus-minus": lambda Y: 2 * Y - 1,
    "one-hot": lambda Y: Y,
    "centred": lambda Y: Y - Y.mean(axis=0),
}
# Numbers are centred, whatever is said of classes.
ORDERS = [(2.0, 1.0), (1.0, 1.0), (2.0, 0.5), (1.0, 0.5), (0.5, 0.5)]
CODED = [
    (name, code)
    for name in TABLES
    for code in CODES
    if "number" not in name or code == "plus-minus"
]


@every_pair(orders=ORDERS, coded=CODED, weighted=[False, True])
def test_the_iterations_are_those_of_eq_4(
    orders: tuple[float, float], coded: tuple[str, str], weighted: bool
) -> None:
    (r, p), (name, labels) = orders, coded
    X, y = TABLES[name]
    weights = np.random.default_rng(9).integers(0, 3, len(X)) if weighted else None
    if weights is not None:
        weights[: len(X) // 2] = 1
    copies = np.arange(len(X)) if weights is None else np.repeat(np.arange(len(X)), weights)
    reference = Reference(X[copies], y[copies])
    if "number" in name:
        # The size of numbers, and their centre, are of the same kind as the loss.
        squared = reference.Y / np.sqrt((reference.Y**2).mean())
        Y = squared if r == 2 else robust_numbers(y[copies])
    else:
        Y = CODES[labels](one_hot(y[copies]))
    own = Problem.from_arrays(X, y, sample_weight=weights)
    # Where r < 1 rows are soon fitted nearly exactly, and the primal form breaks down.
    iterations = 6 if r >= 1 else 3
    trace, w = as_printed(reference.X, Y, r, p, 1.0, iterations)
    answer = GSRFS(r=r, p=p, labels=labels, tol=0, max_iter=iterations).run(own, 4, Monitor())
    np.testing.assert_allclose(answer.trace, trace, rtol=1e-8)
    assert sorted(answer.support) == sorted(np.argsort(-w)[:4])


@pytest.mark.parametrize(("r", "p"), [(2.0, 1.0), (2.0, 0.3), (1.0, 1.0), (1.5, 0.6), (1.0, 0.3)])
@pytest.mark.parametrize("name", list(TABLES))
def test_the_objective_never_rises(name: str, r: float, p: float) -> None:
    own = Problem.from_arrays(*TABLES[name])
    for lam in (0.1, 1.0, 10.0):
        method = GSRFS(r=r, p=p, lam=lam, tol=1e-10, max_iter=500)
        trace = method.run(own, 3, Monitor()).trace
        assert len(trace) > 5
        assert (np.diff(trace) <= 1e-10 * trace[0]).all()
        assert trace[-1] < trace[0]


KIN = [
    ("mtfs", {}, {"r": 2.0, "p": 1.0}),
    ("rfs", {}, {"r": 1.0, "p": 1.0}),
    ("erfs", {"p": 0.7}, {"r": 0.7, "p": 0.7}),
    ("rk1u", {"p": 0.3}, {"r": 2.0, "p": 0.3}),
]


@pytest.mark.parametrize("shared", [{}, {"lam": 4.0, "labels": "centred", "epsilon": 1e-6}])
@pytest.mark.parametrize(("kin", "named", "general"), KIN)
@pytest.mark.parametrize("name", ["small1", "wide4"])
def test_the_kin_are_gsrfs_with_their_orders(
    name: str, kin: str, named: dict[str, Any], general: dict[str, Any], shared: dict[str, Any]
) -> None:
    own = solve(problem(name), 3, kin, **named, **shared)
    same = solve(problem(name), 3, "gsrfs", **general, **shared)
    assert own.trace == same.trace
    assert own.support.tolist() == same.support.tolist()
    other = solve(problem(name), 3, "gsrfs", **general | {"p": 0.9}, **shared)
    assert own.trace != other.trace


@pytest.mark.parametrize("epsilon", [1e-6, 1e-10])
@pytest.mark.parametrize("r", [1.0, 2.0])
@pytest.mark.parametrize("name", SMALL)
def test_smoothing_moves_the_optimum_by_no_more_than_it_must(
    name: str, r: float, epsilon: float
) -> None:
    """‖·‖ ≤ √(‖·‖² + ε) ≤ ‖·‖ + √ε at every row, so the same holds of the minima."""
    X, _ = plus_minus(name)
    exact, smooth = (settled(problem(name), r, 1.0, 10.0, e)[0][-1] for e in (0.0, epsilon))
    rows = len(X) * (np.sqrt(epsilon) if r == 1 else epsilon)
    assert exact * (1 - 1e-8) <= smooth <= exact + rows + 10.0 * X.shape[1] * np.sqrt(epsilon)
    if epsilon == 1e-10:
        assert smooth == pytest.approx(exact, rel=1e-3)


def test_smoothing_biases_the_objective_for_small_p() -> None:
    run = next(run for run in stored("gsrfs")["small1"]["runs"] if run["p"] == 0.25)
    plain, smooth = (settled(problem("small1"), **orders(run), epsilon=e)[0][-1] for e in (0, 1e-8))
    assert plain == pytest.approx(run["converged"], rel=1e-9)
    assert smooth > plain + 1.0
