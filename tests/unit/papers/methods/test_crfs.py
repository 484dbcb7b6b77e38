"""CRFS: its weights, its objective with σ given and by the rule, its limits, wrong rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from exactk import Problem, Result, Status, solve
from exactk.papers.methods.irls import ActiveSet
from tests.oracles.brute import Reference, make_classes, make_numbers

# An end at the iteration limit is an end like others here.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

TALL, WIDE, SQUARE = (60, 9), (18, 30), (14, 14)
every_shape = pytest.mark.parametrize("shape", [TALL, WIDE, SQUARE])


def run(X: Any, y: Any, k: int = 3, weights: Any = None, **options: Any) -> Result:
    problem = Problem.from_arrays(X, y, sample_weight=weights)
    return solve(problem, k, "crfs", **({"max_iter": 20_000} | options))


def every_w(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Every W of a run to come: the method itself returns columns only."""
    seen: list[Any] = []
    plain = ActiveSet.solve

    def watched(self: ActiveSet, Y: Any, lam: float, *rest: Any, **named: Any) -> Any:
        W = plain(self, Y, lam, *rest, **named)
        rows = len(seen[0]) if seen else self.X.shape[1]
        seen.append(np.zeros((rows, Y.shape[1])))
        seen[-1][self.active] = W
        return W

    monkeypatch.setattr(ActiveSet, "solve", watched)
    return seen


@every_shape
@pytest.mark.parametrize(("sigma", "lam"), [(0.2, 5.0), (1.0, 0.1), (10.0, 5.0)])
def test_with_a_given_sigma_the_objective_never_rises(
    shape: tuple[int, int], sigma: float, lam: float
) -> None:
    weights = np.random.default_rng(0).uniform(0.2, 3.0, shape[0])
    for table in (make_classes(*shape, 3, seed=1), make_numbers(*shape, 2, seed=1)):
        for given in (None, weights):
            result = run(*table, weights=given, sigma=sigma, lam=lam, max_iter=300, tol=0)
            trace = np.array(result.trace)
            assert (np.diff(trace) <= 1e-9 * trace[:-1]).all()


@every_shape
@pytest.mark.parametrize("sigma", [0.5, None])
def test_the_end_is_stationary(
    shape: tuple[int, int], sigma: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    lam = 3.0
    X, y = make_classes(*shape, 3, seed=2)
    seen = every_w(monkeypatch)
    result = run(X, y, lam=lam, sigma=sigma, tol=1e-13)
    assert result.status == Status.CONVERGED
    reference, W = Reference(X, y), seen[-1]
    E = reference.X @ W - reference.Y
    squares = (E**2).sum(axis=1)
    # The rule: σ² is twice the mean squared residual.
    double = 2.0 * (2.0 * squares.mean() if sigma is None else sigma**2)
    p = np.exp(-squares / double)
    assert p.min() < 0.9, "weights that are all alike would test nothing"
    norms, gradient = np.linalg.norm(W, axis=1), 2.0 * reference.X.T @ (p[:, None] * E)
    value = double * (1.0 - p).sum() + lam * norms.sum()
    assert result.trace[-1] == pytest.approx(value, rel=1e-9)
    active = norms > 1e-3 * norms.max()
    assert 0 < active.sum() < len(norms)
    pull = lam * W[active] / norms[active, None]
    np.testing.assert_allclose(gradient[active], -pull, atol=2e-3 * lam)
    assert np.linalg.norm(gradient[~active], axis=1).max(initial=0.0) <= lam * (1 + 1e-3)


def test_an_iteration_is_the_printed_one(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = make_classes(*TALL, 3, seed=3)
    seen = every_w(monkeypatch)
    run(X, y, lam=2.0, max_iter=4, tol=0)
    reference = Reference(X, y)
    X, Y = reference.X, reference.Y
    p, D = np.ones(len(X)), np.ones(X.shape[1])
    for found in seen:
        W = np.linalg.solve(X.T @ (p[:, None] * X) + 2.0 * np.diag(D), X.T @ (p[:, None] * Y))
        np.testing.assert_allclose(found, W, rtol=1e-7, atol=1e-10)
        squares = ((Y - X @ W) ** 2).sum(axis=1)
        p = np.exp(-squares / (4.0 * squares.mean()))
        D = 0.5 / np.linalg.norm(W, axis=1)


@every_shape
def test_a_large_sigma_makes_it_the_multi_task_lasso(shape: tuple[int, int]) -> None:
    X, y = make_classes(*shape, 3, seed=4)
    found = run(X, y, 5, sigma=1e5, lam=2.0, tol=1e-12)
    lasso = solve(
        Problem.from_arrays(X, y), 5, "mtfs", lam=2.0, labels="centred", tol=1e-11, max_iter=20_000
    )
    assert found.support.tolist() == lasso.support.tolist()
    assert found.trace[-1] == pytest.approx(lasso.trace[-1], rel=1e-7)


def test_classes_that_are_wrong_do_not_mislead_it() -> None:
    """Forty of 300 labels are wrong."""
    rng = np.random.default_rng(1)
    y = np.tile([0, 1], 150)
    X = rng.standard_normal((300, 12))
    X[:, 4] += np.where(y == 1, 2.0, -2.0)
    clean = solve(Problem.from_arrays(X, y), 1, "crfs").support.tolist()
    y = y.copy()
    y[:40] = 1 - y[:40]
    assert clean == [4]
    assert run(X, y, 1).support.tolist() == [4]


def test_wrong_rows_weigh_nothing_where_sigma_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    X = rng.standard_normal((200, 6))
    y = X[:, 1] + 0.5 * X[:, 4] + 0.2 * rng.standard_normal(200)
    y[:8] += 20.0
    seen = every_w(monkeypatch)
    run(X, y, 2, sigma=1.0, lam=0.5, tol=1e-13)
    with_rows = seen[-1]
    # The median deviation from the median, and so the unit of σ, is the same for both.
    far = y.copy()
    far[:8] += 20.0
    seen.clear()
    run(X, far, 2, sigma=1.0, lam=0.5, tol=1e-13)
    np.testing.assert_allclose(seen[-1], with_rows, atol=1e-6 * np.abs(with_rows).max())


def planted(seed: int, shift: float) -> Problem:
    """Four columns of eighty make y; fewer rows than columns, six of them off by `shift`."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((70, 80))
    y = X[:, [3, 21, 44, 70]] @ [1.0, -1.0, 0.8, 0.8] + 0.3 * rng.standard_normal(70)
    y[rng.choice(70, 6, replace=False)] += shift
    return Problem.from_arrays(X, y)


def hits(name: str, shift: float, **options: Any) -> int:
    """How many of the four are found in five runs; by chance 4 of 80 columns hold 1 of 20."""
    supports = [solve(planted(s, shift), 4, name, lam=10.0, **options).support for s in range(5)]
    return sum(len({3, 21, 44, 70} & set(support.tolist())) for support in supports)


def test_planted_columns_are_found_beside_wild_rows() -> None:
    assert hits("crfs", 10.0) >= 18
    assert hits("mtfs", 10.0) <= 12


def test_wilder_rows_than_the_rule_can_bear_need_a_sigma() -> None:
    # The limit of the rule that the docstring names: with fewer rows than columns the first fit,
    # all weights one, follows the wild rows.
    assert hits("crfs", 30.0, sigma=1.0) >= 18
    assert hits("crfs", 30.0) <= 12


def test_a_tiny_sigma_leaves_no_weight_and_still_ranks() -> None:
    X, y = make_classes(*TALL, 3, seed=7)
    move = np.random.default_rng(0).permutation(X.shape[1])
    plain, moved = (run(Z, y, 3, sigma=1e-9) for Z in (X, X[:, move]))
    assert sorted(move[moved.support].tolist()) == plain.support.tolist()


def test_an_exact_fit_has_a_sigma() -> None:
    X = np.random.default_rng(0).standard_normal((30, 5))
    result = run(X, X[:, 2], 1, lam=1e-300)
    assert result.support.tolist() == [2]
    assert np.isfinite(result.trace).all()


def test_a_sigma_beyond_all_bounds_is_squared_loss() -> None:
    X, y = make_classes(*TALL)
    found = run(X, y, sigma=1e300)
    assert found.status == Status.CONVERGED
    assert found.trace[-1] == pytest.approx(run(X, y, sigma=1e6).trace[-1])
