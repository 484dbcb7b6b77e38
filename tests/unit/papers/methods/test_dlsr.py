"""DLSR: the objective never rises, the optimum is that of a squared hinge, planted columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from exactk import Problem, Result, Status, solve
from exactk.papers.methods.irls import ActiveSet
from tests.oracles.brute import Reference, make_classes, one_hot

# An end at the iteration limit is an end like others here.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

TALL, WIDE, SQUARE = (60, 9), (18, 30), (14, 14)
every_shape = pytest.mark.parametrize("shape", [TALL, WIDE, SQUARE])


def run(X: Any, y: Any, k: int = 3, weights: Any = None, **options: Any) -> Result:
    problem = Problem.from_arrays(X, y, sample_weight=weights)
    return solve(problem, k, "dlsr", **({"max_iter": 20_000} | options))


def last_w(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Where the last W of a run will be found: the method itself returns columns only."""
    seen: dict[str, Any] = {}
    plain = ActiveSet.solve

    def watched(self: ActiveSet, Y: Any, lam: float, *rest: Any, **named: Any) -> Any:
        W = plain(self, Y, lam, *rest, **named)
        seen["W"] = np.zeros((seen.setdefault("m", self.X.shape[1]), Y.shape[1]))
        seen["W"][self.active] = W
        return W

    monkeypatch.setattr(ActiveSet, "solve", watched)
    return seen


def hinge(X: Any, y: Any, W: Any, t: Any) -> tuple[float, Any]:
    """Σ (1 − f)₊² over own classes, Σ f₊² over the others, and its derivative by f."""
    f, own = X @ W + t, one_hot(y) > 0
    wrong = np.where(own, np.minimum(f - 1.0, 0.0), np.maximum(f, 0.0))
    return float((wrong**2).sum()), 2.0 * wrong


@every_shape
@pytest.mark.parametrize(("lam", "c"), [(0.01, 2), (1.0, 4), (10.0, 2)])
def test_the_objective_never_rises(shape: tuple[int, int], lam: float, c: int) -> None:
    X, y = make_classes(*shape, c, seed=1)
    weights = np.random.default_rng(0).uniform(0.2, 3.0, len(y))
    for given in (None, weights):
        trace = np.array(run(X, y, weights=given, lam=lam, max_iter=400, tol=0).trace)
        assert (np.diff(trace) <= 1e-9 * trace[:-1]).all()


@every_shape
@pytest.mark.parametrize("lam", [1.0, 8.0])
def test_the_end_is_stationary(
    shape: tuple[int, int], lam: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = make_classes(*shape, 3, seed=2)
    seen = last_w(monkeypatch)
    result = run(X, y, lam=lam, tol=1e-13)
    assert result.status == Status.CONVERGED
    Z, W = Reference(X, y).X, seen["W"]
    # t is not returned: it is where the sum of the slopes of each class is zero.
    t = minimize(
        lambda t: hinge(Z, y, W, t)[0],
        one_hot(y).mean(axis=0),
        jac=lambda t: hinge(Z, y, W, t)[1].sum(axis=0),
        options={"gtol": 1e-9},
    ).x
    value, slope = hinge(Z, y, W, t)
    norms, gradient = np.linalg.norm(W, axis=1), Z.T @ slope
    assert result.trace[-1] == pytest.approx(value + lam * norms.sum(), rel=1e-6)
    active = norms > 1e-3 * norms.max()
    assert 0 < active.sum() < len(norms) or lam == 1.0
    pull = lam * W[active] / norms[active, None]
    np.testing.assert_allclose(gradient[active], -pull, atol=2e-3 * lam)
    assert np.linalg.norm(gradient[~active], axis=1).max(initial=0.0) <= lam * (1 + 1e-3)


def test_it_is_the_optimum_of_a_squared_hinge() -> None:
    """The same convex problem, with M gone and the norms smoothed, by a general solver."""
    X, y = make_classes(50, 6, 3, seed=4)
    Z, lam, d, c = Reference(X, y).X, 5.0, 6, 3

    def objective(v: Any) -> tuple[float, Any]:
        W, t = v[: d * c].reshape(d, c), v[d * c :]
        value, slope = hinge(Z, y, W, t)
        norms = np.sqrt((W**2).sum(axis=1) + 1e-14)
        by_w = Z.T @ slope + lam * W / norms[:, None]
        return value + lam * norms.sum(), np.concatenate([by_w.ravel(), slope.sum(axis=0)])

    start = np.full(d * c + c, 0.01)
    wanted = minimize(
        objective, start, jac=True, method="L-BFGS-B", options={"maxiter": 20_000, "ftol": 1e-15}
    ).fun
    assert run(X, y, lam=lam, tol=1e-12).trace[-1] == pytest.approx(wanted, rel=1e-5)


def planted(seed: int, n: int = 120, d: int = 60) -> tuple[Any, Any]:
    """Four columns of sixty tell three classes apart."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    X = rng.standard_normal((n, d))
    X[:, [7, 19]] += 1.5 * np.eye(3)[y][:, :2]
    X[:, [33, 52]] -= 1.5 * np.eye(3)[y][:, 1:]
    return X, y


def test_planted_columns_are_found() -> None:
    # By chance 4 of 60 columns hold 0.27 of the four on average, 1.3 in five runs.
    found = sum(len({7, 19, 33, 52} & set(run(*planted(s), 4).support)) for s in range(5))
    assert found >= 18


@pytest.mark.parametrize("seed", range(2))
def test_rows_far_on_the_right_side_do_not_mislead_it(seed: int) -> None:
    """What ε-dragging is for: column 2 parts the classes without error, with a long tail.

    For squared loss a row far out on its own side is a bad fit. λ is small: a column with a long
    tail needs a large coefficient, and a large λ forbids that to both.
    """
    rng = np.random.default_rng(seed)
    y = np.repeat([0, 1], 100)
    X = rng.standard_normal((200, 8))
    X[:, 2] = np.where(y == 1, 1.0, -1.0) * (0.5 + rng.exponential(1.0, 200) ** 3)
    X[:, 5] += np.where(y == 1, 1.0, -1.0)
    assert run(X, y, 1, lam=0.1).support.tolist() == [2]
    assert solve(Problem.from_arrays(X, y), 1, "mtfs", lam=0.1).support.tolist() == [5]
