"""SFS: its step, its losses, its start by the multi-task lasso, planted columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import check_grad
from sklearn.linear_model import MultiTaskLasso

import exactk.papers.methods.sfs as sfs
from exactk import Problem, Result, Status, solve, solve_path
from exactk.papers.methods.sfs import SFS
from tests.oracles.brute import Reference, make_classes, make_numbers

# An end at the iteration limit is an end like others here.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

TALL, WIDE, SQUARE = (60, 12), (20, 40), (14, 14)
every_shape = pytest.mark.parametrize("shape", [TALL, WIDE, SQUARE])
every_loss = pytest.mark.parametrize("loss", ["squared", "l2,1"])


def run(X: Any, y: Any, k: int = 4, weights: Any = None, **options: Any) -> Result:
    problem = Problem.from_arrays(X, y, sample_weight=weights)
    return solve(problem, k, "sfs", **({"max_iter": 50_000} | options))


def points(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Every point of a run to come that has been evaluated: the method returns columns only."""
    seen: list[Any] = []
    plain = sfs._Point.__init__

    def watched(self: Any, f: Any, W: Any, k: int) -> None:
        plain(self, f, W, k)
        seen.append(self)

    monkeypatch.setattr(sfs._Point, "__init__", watched)
    return seen


def value_and_gradient(X: Any, Y: Any, W: Any, loss: str, mu: float) -> tuple[float, Any]:
    """By definition: ‖E‖², or norms of the rows of E that are quadratic below μ."""
    E = X @ W - Y
    if loss == "squared":
        return float((E**2).sum()), 2.0 * X.T @ E
    value, slopes = 0.0, np.zeros_like(E)
    for i, row in enumerate(E):
        e = np.linalg.norm(row)
        value += e**2 / (2 * mu) if e <= mu else e - mu / 2
        slopes[i] = row / mu if e <= mu else row / e
    return float(value), X.T @ slopes


@every_shape
@every_loss
@pytest.mark.parametrize("accelerate", [True, False])
def test_the_objective_never_rises_after_the_start(
    shape: tuple[int, int], loss: str, accelerate: bool
) -> None:
    weights = np.random.default_rng(0).uniform(0.2, 3.0, shape[0])
    for table in (make_classes(*shape, 3, seed=1), make_numbers(*shape, 2, seed=1)):
        problem = Problem.from_arrays(*table, sample_weight=weights)
        options = {"loss": loss, "mu": 0.2, "accelerate": accelerate}
        zero = np.zeros((shape[1], problem.n_outputs))
        result = solve(problem, 4, "sfs", init=zero, tol=0, max_iter=300, **options)
        trace = np.array(result.trace)
        assert (np.diff(trace) <= 1e-12 * trace[0]).all()
        assert trace[-1] < trace[0]


@every_shape
@every_loss
@pytest.mark.parametrize("accelerate", [True, False])
def test_the_end_is_a_fixed_point_of_the_step(
    shape: tuple[int, int], loss: str, accelerate: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = make_classes(*shape, 3, seed=2)
    seen = points(monkeypatch)
    mu = 0.4
    result = run(X, y, loss=loss, mu=mu, accelerate=accelerate, tol=1e-13)
    assert result.status == Status.CONVERGED
    reference, W = Reference(X, y), seen[-1].W
    assert np.flatnonzero(np.linalg.norm(W, axis=1)).tolist() == result.support.tolist()
    value, gradient = value_and_gradient(reference.X, reference.Y, W, loss, mu)
    assert result.trace[-1] == pytest.approx(value, rel=1e-9)
    size = np.linalg.norm(reference.X, 2) ** 2
    stepped = W - gradient / (2.0 * size if loss == "squared" else size / mu)
    kept = np.argsort(-np.linalg.norm(stepped, axis=1))[:4]
    assert sorted(kept.tolist()) == result.support.tolist()
    np.testing.assert_allclose(stepped[kept], W[kept], atol=1e-5 * np.abs(W).max())


def test_for_squared_loss_the_fixed_point_is_the_fit_on_its_columns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X, y = make_numbers(60, 12, 3, seed=3)
    seen = points(monkeypatch)
    result = run(X, y, tol=1e-14)
    fitted = Reference(X, y).fit(result.support)[0]
    found = seen[-1].W[result.support]
    # The target is divided by its size.
    np.testing.assert_allclose(found / np.linalg.norm(found), fitted / np.linalg.norm(fitted),
                               atol=1e-5)  # fmt: skip


@every_shape
@pytest.mark.parametrize("weighted", [False, True])
def test_losses_and_derivatives_are_those_of_the_definition(
    shape: tuple[int, int], weighted: bool
) -> None:
    X, Y = make_numbers(*shape, 2, seed=4)
    w = np.random.default_rng(0).integers(1, 4, shape[0]) if weighted else None
    problem = Problem.from_arrays(X, Y, sample_weight=w)
    rng = np.random.default_rng(1)
    for loss, mu in (("squared", 0.5), ("l2,1", 0.5), ("l2,1", 3.0)):
        table = sfs.standard_table(problem, robust=loss != "squared")
        f = SFS(loss=loss, mu=mu).prepare(problem).f
        counts = np.ones(shape[0], dtype=int) if w is None else w
        Z = np.repeat(table.X / table.root[:, None], counts, axis=0)
        T = np.repeat(table.Y / table.root[:, None], counts, axis=0)
        W = 0.3 * rng.standard_normal((shape[1], 2))
        value, gradient = value_and_gradient(Z, T, W, loss, mu)
        assert f(f.X @ W - f.Y) == pytest.approx(value, rel=1e-10)
        np.testing.assert_allclose(f.X.T @ f.gradient_at(f.X @ W - f.Y), gradient, atol=1e-8)
        error = check_grad(
            lambda v, f=f: f(f.X @ v.reshape(-1, 2) - f.Y),
            lambda v, f=f: (f.X.T @ f.gradient_at(f.X @ v.reshape(-1, 2) - f.Y)).ravel(),
            W.ravel(),
        )
        assert error <= 1e-4 * np.linalg.norm(gradient)


@every_shape
def test_the_start_is_the_multi_task_lasso(shape: tuple[int, int]) -> None:
    X, y = make_classes(*shape, 3, seed=5)
    reference = Reference(X, y)
    lasso = SFS().prepare(Problem.from_arrays(X, y))
    lam = 2.0 * np.linalg.norm(reference.X.T @ reference.Y, axis=1).max()
    counts = []
    for W in lasso.until(6):
        lam *= sfs.FALL
        peer = MultiTaskLasso(
            alpha=lam / (2 * len(X)), fit_intercept=False, tol=1e-10, max_iter=100_000
        ).fit(reference.X, reference.Y)
        np.testing.assert_allclose(W, peer.coef_.T, atol=2e-2 * np.abs(peer.coef_).max())
        counts.append(np.count_nonzero(np.linalg.norm(W, axis=1)))
    assert len(counts) > 2
    assert counts[-1] >= 6
    assert max(counts[:-1]) < 6


def test_the_lasso_of_one_size_serves_the_next() -> None:
    problem = Problem.from_arrays(*make_classes(*TALL, 3, seed=5))
    path = solve_path(problem, 5, "sfs")
    for result in path:
        assert result.trace == solve(problem, result.k, "sfs").trace


def test_a_given_start_is_taken_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = make_classes(*TALL, 3, seed=6)
    reference = Reference(X, y)
    # A fit on some columns is the best on them: only other columns can take it further.
    W0 = np.zeros((12, 3))
    W0[[1, 4, 7]], value = reference.fit([1, 4, 7])
    seen = points(monkeypatch)
    run(X, y, 3, init=W0)
    assert seen[0].value == pytest.approx(value, rel=1e-10)
    assert seen[0].S.tolist() == [1, 4, 7]


def test_acceleration_saves_iterations_and_is_no_worse() -> None:
    plain, fast = 0, 0
    for seed in range(6):
        X, y = make_classes(40, 60, 3, seed=seed)
        one, two = (run(X, y, 8, accelerate=flag, tol=1e-8) for flag in (False, True))
        plain, fast = plain + one.n_iter, fast + two.n_iter
        assert two.trace[-1] <= 1.2 * one.trace[-1]
    assert fast < 0.7 * plain


def planted(seed: int) -> tuple[Any, Any]:
    """Four columns of ninety make two numbers, from fewer rows than columns."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((70, 90))
    W = np.array([[1.0, 0.5], [-0.8, 0.8], [0.7, -1.0], [0.9, 0.6]])
    return X, X[:, [3, 21, 44, 70]] @ W + 0.4 * rng.standard_normal((70, 2))


@every_loss
def test_planted_columns_are_found(loss: str) -> None:
    # By chance 4 of 90 columns hold 0.18 of the four on average, 0.9 in five runs.
    found = sum(
        len({3, 21, 44, 70} & set(run(*planted(seed), loss=loss).support)) for seed in range(5)
    )
    assert found >= 19


def test_a_target_that_no_column_follows_does_not_break_it() -> None:
    X = np.array([[1.0, 1, 1], [-1, 1, -1], [1, -1, -1], [-1, -1, 1], [0, 0, 0], [0, 0, 0]])
    y = np.array([0.0, 0, 0, 0, 1, -1])
    result = solve(Problem.from_arrays(X, y, task="regression"), 2, "sfs")
    assert result.k == 2
    assert result.objective == pytest.approx(2.0)
