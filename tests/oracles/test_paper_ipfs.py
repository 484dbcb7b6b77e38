"""IPFS beside the authors' code, the equations as printed, and enumeration."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from exactk import Moments, Problem, Status
from exactk.papers.methods.ipfs import IPFS, _on_sphere, _Parts
from exactk.result import Answer
from exactk.types import Floats
from exactk.utils.monitor import Monitor
from tests.oracles.brute import Reference, make_classes, make_numbers, one_hot
from tests.oracles.cases import SMALL, every_run, problem, table

GAMMA = 0.2
FORMS = ("direct", "woodbury", "cg")


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """The systems are too small for several threads, which only wait for each other."""
    with threadpool_limits(1):
        yield


def run_all(problem: Problem, k: int, solver: str = "auto") -> Answer:
    """As many iterations as the published code makes, which has no other end."""
    answer = IPFS(gamma=GAMMA, tol=0, max_iter=200, solver=solver).run(problem, k, Monitor())
    assert answer.status == Status.MAX_ITER
    assert len(answer.trace) == 200
    return answer


def means(name: str) -> float:
    """‖Y‖² − ‖HY‖²: the authors leave the means in the target; in X there are none."""
    Y = one_hot(table(name)[1])
    return float(len(Y) * (Y.mean(axis=0) ** 2).sum())


def ridge_objective(name: str, support: Any) -> float:
    """Eq. 6: the γ of the paper is for columns whose squares add up to n − 1."""
    X, y = table(name)
    return Reference(X, y, ridge=GAMMA / (len(X) - 1)).objective(support) + means(name)


# In conjugate gradients the systems are solved to 1e-13, a hundred times as far from exact as by
# factors, and what is lost grows at every step.
@pytest.mark.parametrize(("solver", "rtol"), [("direct", 1e-6), ("woodbury", 1e-6), ("cg", 1e-5)])
@every_run("ipfs", *SMALL)
def test_the_iterations_of_the_authors(
    name: str, run: dict[str, Any], solver: str, rtol: float
) -> None:
    assert len(run["trace"]) == 200
    answer = run_all(problem(name), run["k"], solver)
    trace = np.array(answer.trace) + means(name)
    np.testing.assert_allclose(trace[:20], run["trace"][:20], rtol=1e-9)
    np.testing.assert_allclose(trace, run["trace"], rtol=rtol)
    assert run["stable"]
    assert sorted(answer.support) == run["selected"]


@every_run("ipfs", "digitsA")
def test_the_iterations_of_the_authors_for_as_long_as_they_can_be_repeated(
    name: str, run: dict[str, Any]
) -> None:
    """From some iteration on, a change of X in its last digit changes the set."""
    assert not run["stable"]
    answer = run_all(problem(name), run["k"])
    trace = np.array(answer.trace) + means(name)
    same = len(run["trace"])
    assert same < 200
    np.testing.assert_allclose(trace[:30], run["trace"][:30], rtol=1e-9)
    np.testing.assert_allclose(trace[:same], run["trace"], rtol=1e-6)
    # Nine runs of changed tables ended in this range; a tenth can end somewhat outside.
    low, high = run["ridge_range"]
    assert 0.95 * low < ridge_objective(name, answer.support) < 1.05 * high


@every_run("ipfs")
def test_the_stored_values_are_those_of_eq_6(name: str, run: dict[str, Any]) -> None:
    own = ridge_objective(name, run["selected"])
    assert own == pytest.approx(run["ridge_objective"], rel=1e-10)
    if "optimum" in run:
        X, y = table(name)
        best = Reference(X, y, ridge=GAMMA / (len(X) - 1)).best(run["k"])[1] + means(name)
        assert best == pytest.approx(run["optimum"], rel=1e-10)
        assert own >= best * (1 - 1e-10)


@every_run("ipfs", *SMALL)
def test_a_binary_end_has_the_objective_of_its_columns(name: str, run: dict[str, Any]) -> None:
    answer = run_all(problem(name), run["k"])
    assert answer.trace[-1] + means(name) == pytest.approx(
        ridge_objective(name, answer.support), rel=1e-6
    )


def as_printed(X: Floats, Y: Floats, k: int, iterations: int) -> tuple[list[float], Floats]:
    """Eqs. 10 to 13 with dense d × d matrices; the new v in eq. 12."""
    d, rho, trace = X.shape[1], 1.0, []
    v, v1, v2 = np.ones(d), np.zeros(d), np.zeros(d)
    y1, y2, y3 = np.zeros(d), np.zeros(d), 0.0
    for _ in range(iterations):
        V = np.diag(v)
        W = np.linalg.solve(V @ X.T @ X @ V + GAMMA * np.eye(d), V @ X.T @ Y)
        M = 2 * (X.T @ X) * (W @ W.T) + rho * (np.ones((d, d)) + 2 * np.eye(d))
        right = 2 * np.diag(X.T @ Y @ W.T) + rho * (v1 - y1 / rho + v2 - y2 / rho)
        v = np.linalg.solve(M, right + rho * (k - y3 / rho))
        v1 = np.minimum(np.maximum(v + y1 / rho, 0), 1)
        away = v + y2 / rho - 0.5
        v2 = 0.5 + np.sqrt(d) / 2 * away / np.linalg.norm(away)
        y1, y2, y3 = y1 + rho * (v - v1), y2 + rho * (v - v2), y3 + rho * (v.sum() - k)
        rho *= 1.05
        trace.append(float(((Y - X @ np.diag(v) @ W) ** 2).sum() + GAMMA * (W**2).sum()))
    return trace, v


TABLES = {
    "classes": make_classes(50, 12, 4, seed=5),
    "numbers": make_numbers(40, 10, 3, seed=6),
    "one number": make_numbers(40, 10, 1, seed=7),
    "fewer rows than columns": make_classes(12, 40, 3, seed=8),
}


def weighted_problem(name: str, weighted: bool) -> tuple[Problem, Floats, Floats]:
    """A problem, and X and Y as the paper has them; numbers are of unit size."""
    X, y = TABLES[name]
    weights = np.random.default_rng(9).uniform(0.5, 2.0, len(X)) if weighted else None
    reference = Reference(X, y, weights=weights)
    Y = reference.Y
    if "number" in name:
        weight = len(X) if weights is None else weights.sum()
        Y = Y / np.sqrt(reference.total / (weight * Y.shape[1]))
    return Problem.from_arrays(X, y, sample_weight=weights), reference.X, Y


@pytest.mark.parametrize("solver", FORMS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", list(TABLES))
def test_the_iterations_are_those_of_eqs_10_to_13(name: str, weighted: bool, solver: str) -> None:
    own, X, Y = weighted_problem(name, weighted)
    for k in (1, 3):
        trace, v = as_printed(X, Y, k, 25)
        method = IPFS(tol=0, max_iter=25, solver=solver)
        answer = method.run(own, k, Monitor())
        np.testing.assert_allclose(answer.trace, trace, rtol=1e-8)
        assert sorted(answer.support) == sorted(np.argsort(v)[-k:])


def test_moments_take_the_same_course_as_rows() -> None:
    X, Y = TABLES["numbers"]
    answers = [
        IPFS(tol=0, max_iter=25).run(own, 3, Monitor())
        for own in (Problem.from_arrays(X, Y), Problem.from_moments(Moments.from_arrays(X, Y)))
    ]
    np.testing.assert_allclose(answers[0].trace, answers[1].trace, rtol=1e-9)


@pytest.mark.parametrize("rows_first", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", list(TABLES))
def test_the_w_step_in_d_and_in_n_unknowns(name: str, weighted: bool, rows_first: bool) -> None:
    own, X, Y = weighted_problem(name, weighted)
    # Narrow tables keep the Gram matrix, wide ones need it for a direct v-step: both forms are
    # possible on both.
    wide = len(X) < X.shape[1]
    parts = _Parts(own, GAMMA, "direct" if wide else "cg")
    assert parts.rows_first == wide
    parts.rows_first = rows_first
    for v in (np.ones(X.shape[1]), np.random.default_rng(1).normal(size=X.shape[1])):
        Z = X * v
        W = np.linalg.solve(Z.T @ Z + GAMMA * np.eye(X.shape[1]), Z.T @ Y)
        np.testing.assert_allclose(parts.solve_w(v), W, rtol=1e-8, atol=1e-10)
        own_value = ((Y - Z @ W) ** 2).sum() + GAMMA * (W**2).sum()
        assert parts.objective(W, v) == pytest.approx(own_value, rel=1e-10)


@pytest.mark.parametrize("solver", FORMS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", list(TABLES))
def test_the_v_step_in_every_form(name: str, weighted: bool, solver: str) -> None:
    own, X, Y = weighted_problem(name, weighted)
    d, rng = X.shape[1], np.random.default_rng(2)
    parts = _Parts(own, GAMMA, solver)
    assert parts.form == solver
    for rho in (1.0, 0.01, 50.0):
        W, right, start = rng.normal(size=(d, Y.shape[1])), rng.normal(size=d), rng.normal(size=d)
        M = 2 * (X.T @ X) * (W @ W.T) + rho * (np.ones((d, d)) + 2 * np.eye(d))
        v = parts.solve_v(W, rho, right, start)
        assert np.linalg.norm(M @ v - right) <= 1e-9 * np.linalg.norm(right)
        np.testing.assert_allclose(v, np.linalg.solve(M, right), rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("d", [2, 7, 30])
def test_the_sphere_is_met_at_its_nearest_point(d: int) -> None:
    rng = np.random.default_rng(d)
    # The corners of the cube are on the sphere, and so is any point as far from its centre.
    others = 0.5 + 0.5 * np.sqrt(d) * _unit(rng.normal(size=(2000, d)))
    others[:500] = rng.integers(0, 2, (500, d))
    for x in rng.normal(0.5, 2.0, size=(20, d)):
        nearest = _on_sphere(x)
        assert ((nearest - 0.5) ** 2).sum() == pytest.approx(d / 4, rel=1e-12)
        assert np.linalg.norm(x - nearest) <= np.linalg.norm(x - others, axis=1).min() + 1e-12
    assert ((_on_sphere(np.full(d, 0.5)) - 0.5) ** 2).sum() == pytest.approx(d / 4, rel=1e-12)


def _unit(x: Floats) -> Floats:
    return x / np.linalg.norm(x, axis=1, keepdims=True)
