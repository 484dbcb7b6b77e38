"""Projected gradient beside its definition: descent, fixed points, bounds, and divergence."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from exactk import Problem, Status, solve
from exactk.papers.methods.pgd import PGD
from exactk.types import Floats
from exactk.utils.monitor import Monitor
from tests.oracles.brute import Reference, make_classes, make_numbers
from tests.oracles.cases import SMALL, problem, table

TABLES = {
    "classes": make_classes(50, 12, 4, seed=5),
    "numbers": make_numbers(40, 10, 3, seed=6),
    "one number": make_numbers(40, 10, 1, seed=7),
    "fewer rows than columns": make_classes(12, 40, 3, seed=8),
}
every_table = pytest.mark.parametrize("name", list(TABLES))
with_ridge = pytest.mark.parametrize("ridge", [0.0, 0.3])


def objective(reference: Reference, W: Floats) -> float:
    fit = ((reference.Y - reference.X @ W) ** 2).sum()
    return float(fit + reference.penalty * (W**2).sum())


def step(reference: Reference, W: Floats, k: int, eta: float) -> Floats:
    """A gradient step from the residual, then the k largest rows."""
    residual = reference.Y - reference.X @ W
    return largest(W + 2 * eta * (reference.X.T @ residual - reference.penalty * W), k)


def largest(W: Floats, k: int) -> Floats:
    kept = np.argsort(-np.linalg.norm(W, axis=1), kind="stable")[:k]
    projected = np.zeros_like(W)
    projected[kept] = W[kept]
    return projected


def default_eta(reference: Reference) -> float:
    return float(0.5 / (np.linalg.norm(reference.X, ord=2) ** 2 + reference.penalty))


def pair(name: str, ridge: float, weighted: bool = False) -> tuple[Problem, Reference]:
    X, y = TABLES[name]
    weights = np.random.default_rng(9).uniform(0.5, 2.0, len(X)) if weighted else None
    own = Problem.from_arrays(X, y, ridge=ridge, sample_weight=weights)
    return own, Reference(X, y, ridge=ridge, weights=weights)


@every_table
@with_ridge
@pytest.mark.parametrize("weighted", [False, True])
def test_the_iterations_by_definition(name: str, ridge: float, weighted: bool) -> None:
    own, reference = pair(name, ridge, weighted)
    shape = (reference.X.shape[1], reference.Y.shape[1])
    W0 = np.random.default_rng(1).normal(size=shape)
    for init in (None, W0):
        for k in (1, 3):
            # Only the k largest rows of a start count.
            W = np.zeros(shape) if init is None else largest(init, k)
            trace: list[float] = []
            for _ in range(30):
                W = step(reference, W, k, default_eta(reference))
                trace.append(objective(reference, W))
            answer = PGD(init=init, tol=0, max_iter=30).run(own, k, Monitor())
            np.testing.assert_allclose(answer.trace, trace[: len(answer.trace)], rtol=1e-9)
            # With tol = 0 it ends early only where nothing changes any more.
            if answer.status == Status.CONVERGED:
                assert trace[-1] == pytest.approx(answer.trace[-1], rel=1e-12)
            else:
                assert len(answer.trace) == 30
            assert sorted(answer.support) == np.flatnonzero(np.linalg.norm(W, axis=1)).tolist()


@every_table
@with_ridge
def test_with_the_default_step_the_objective_never_rises(name: str, ridge: float) -> None:
    own, _ = pair(name, ridge)
    for seed in range(5):
        W0 = np.random.default_rng(seed).normal(size=(own.n_features, own.n_outputs))
        for k in (1, 4):
            result = solve(own, k, "pgd", init=W0, max_iter=20_000)
            assert result.status == Status.CONVERGED
            assert (np.diff(result.trace) <= 1e-12 * own.total).all()
            assert result.trace[-1] < result.trace[0]


def test_a_step_three_times_as_long_can_raise_the_objective() -> None:
    """The step of the test above is not shorter than it must be by much."""
    own, reference = pair("classes", 0.0)
    eta = 3 * default_eta(reference)
    rises = 0
    for seed in range(10):
        W0 = np.random.default_rng(seed).normal(size=(own.n_features, own.n_outputs))
        answer = PGD(init=W0, eta=eta, tol=0, max_iter=200).run(own, 11, Monitor())
        rises += bool((np.diff(answer.trace) > 1e-9 * own.total).any())
    assert rises


@every_table
@with_ridge
def test_the_end_is_a_fixed_point_of_the_step(name: str, ridge: float) -> None:
    own, reference = pair(name, ridge)
    eta = default_eta(reference)
    for k in (2, 4):
        result = solve(own, k, "pgd", tol=1e-13, max_iter=200_000)
        assert result.status == Status.CONVERGED
        # At a fixed point the coefficients are those of the fit, to which the steps lead.
        V, value = reference.fit(result.support)
        assert result.trace[-1] == pytest.approx(value, rel=1e-6)
        W = np.zeros((own.n_features, own.n_outputs))
        W[result.support] = V
        after = step(reference, W, k, eta)
        assert np.flatnonzero(np.linalg.norm(after, axis=1)).tolist() == result.support.tolist()
        np.testing.assert_allclose(after, W, atol=1e-9 * np.abs(W).max())


@pytest.mark.parametrize("n_starts", [1, 6])
@pytest.mark.parametrize("name", SMALL[:3])
def test_never_below_the_best_of_all_subsets(name: str, n_starts: int) -> None:
    best = Reference(*table(name)).best(3)[1]
    result = solve(problem(name), 3, "pgd", n_starts=n_starts, max_iter=20_000)
    assert result.objective >= best * (1 - 1e-10)
    assert min(result.trace) >= best * (1 - 1e-10)
    assert result.objective <= result.trace[-1] * (1 + 1e-10)


def test_of_several_starts_the_lowest_objective_is_kept() -> None:
    """Starts are compared where they end; more of them never end higher."""
    lower = 0
    for name in SMALL:
        ends = [
            solve(problem(name), 3, "pgd", n_starts=n, max_iter=20_000).trace[-1]
            for n in (1, 3, 10)
        ]
        assert ends[0] >= ends[1] >= ends[2]
        lower += ends[2] < ends[0] * (1 - 1e-3)
    assert lower, "random starts never helped"


@every_table
@pytest.mark.parametrize("n_starts", [1, 3])
def test_a_step_that_is_too_long_fails_and_says_so(name: str, n_starts: int) -> None:
    own, reference = pair(name, 0.0)
    with pytest.warns(UserWarning, match="diverged"):
        result = solve(own, 3, "pgd", eta=100.0, n_starts=n_starts)
    assert result.status == Status.FAILED
    assert len(set(result.support.tolist())) == 3
    assert set(result.support.tolist()) <= set(range(own.n_features))
    assert np.isfinite(result.coef).all()
    assert np.isfinite(result.intercept).all()
    assert np.isfinite(result.trace).all()
    assert result.objective == pytest.approx(reference.objective(result.support), rel=1e-9)


def test_an_end_at_the_limit_is_said() -> None:
    own, _ = pair("classes", 0.0)
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        result = solve(own, 3, "pgd", max_iter=4, tol=0)
    assert result.status == Status.MAX_ITER
    assert len(result.trace) == 4
