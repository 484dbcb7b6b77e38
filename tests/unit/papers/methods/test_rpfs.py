"""RPFS: its V-step, its two systems, its starts and its options."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from exactk import Problem, Result, Status, solve
from exactk.papers.methods.rpfs import RPFS
from tests.oracles.brute import Reference, make_classes, make_numbers, one_hot
from tests.support import every_pair

# A thousand iterations of the paper's μ are often not enough to meet the default tol.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(scope="module")
def data() -> tuple[Any, Any]:
    return make_classes(50, 14, 3, seed=6)


@pytest.fixture(scope="module")
def problem(data: tuple[Any, Any]) -> Problem:
    return Problem.from_arrays(*data)


def run(problem: Problem, k: int = 4, **options: Any) -> Result:
    return solve(problem, k, "rpfs", **options)


def test_the_defaults_are_those_of_the_paper() -> None:
    # μ = 0.1 and ρ = 1.02 (Algorithm 3), at most 1000 iterations (section 5.2).
    defaults = RPFS().get_params()
    assert (defaults["mu"], defaults["rho"], defaults["max_iter"]) == (0.1, 1.02, 1000)


def test_rho_may_be_one(problem: Problem) -> None:
    with pytest.warns(UserWarning, match="raise max_iter"):
        result = run(problem, rho=1, max_iter=30)
    assert result.status == Status.MAX_ITER
    assert result.k == 4


def first_w(X: Any, y: Any) -> Any:
    """W after one iteration from W = 0: b is the mean of Y, and there are no multipliers yet."""
    Z = Reference(X, y).X
    Y = one_hot(y)
    return np.linalg.solve(Z.T @ Z + np.eye(Z.shape[1]), Z.T @ (Y - Y.mean(axis=0)))


@pytest.mark.parametrize("seed", range(5))
def test_the_norm_that_ranks_the_rows_can_be_chosen(seed: int) -> None:
    X, y = make_classes(50, 14, 4, seed)
    W = first_w(X, y)
    problem, zero = Problem.from_arrays(X, y), np.zeros((14, 4))
    for k in (2, 4, 6):
        for name, norms in (("l2", np.linalg.norm(W, axis=1)), ("l1", np.abs(W).sum(axis=1))):
            expected = sorted(np.argsort(-norms)[:k].tolist())
            result = run(problem, k, init=zero, max_iter=1, row_norm=name)
            assert result.support.tolist() == expected


def test_and_changes_what_is_found() -> None:
    different = 0
    for seed in range(20):
        X, y = make_classes(50, 14, 4, seed)
        W = first_w(X, y)
        by_l2, by_l1 = np.linalg.norm(W, axis=1), np.abs(W).sum(axis=1)
        different += set(np.argsort(-by_l2)[:4]) != set(np.argsort(-by_l1)[:4])
    assert different > 0, "the test above would not tell the norms apart"
    problem = Problem.from_arrays(*make_classes(60, 30, 4, seed=1))
    assert run(problem, row_norm="l1").trace != run(problem, row_norm="l2").trace


def test_the_iterates_end_where_the_constraints_hold(problem: Problem) -> None:
    results = [run(problem, tol=tol, max_iter=2000) for tol in (1e9, 1e-1, 1e-3, 1e-4)]
    assert all(result.status == Status.CONVERGED for result in results)
    counts = [result.n_iter for result in results]
    assert counts == sorted(counts)
    assert counts[0] == 1
    assert counts[-1] > counts[1]
    for result in results:
        assert results[-1].trace[: result.n_iter] == result.trace


def test_wild_rows_do_not_mislead_it() -> None:
    rng = np.random.default_rng(7)
    X = rng.standard_normal((80, 10))
    y = 3.0 * X[:, 2] - 2.0 * X[:, 6] + 0.1 * rng.standard_normal(80)
    # Six rows with a target that follows another column, a hundred times as strongly.
    y[:6] = 300.0 * X[:6, 0]
    problem = Problem.from_arrays(X, y)
    assert 0 in solve(problem, 2).support
    assert run(problem, 2).support.tolist() == [2, 6]


@every_pair(
    options=[{"rho": 1e200}, {"mu": 1e308, "rho": 10.0}],
    row_norm=["l2", "l1"],
    shape=[(50, 14), (12, 30)],
)
def test_a_penalty_that_overflows_fails_with_k_columns(
    shape: tuple[int, int], row_norm: str, options: Any
) -> None:
    problem = Problem.from_arrays(*make_classes(*shape, 3, seed=6))
    with pytest.warns(UserWarning, match="iterates diverged"):
        result = run(problem, row_norm=row_norm, tol=0, **options)
    assert result.status == Status.FAILED
    assert len(set(result.support.tolist())) == 4
    assert np.isfinite(result.coef).all()
    assert np.isfinite(result.trace).all()
    # The support is that of the last good iterate.
    with pytest.warns(UserWarning, match="raise max_iter"):
        last = run(problem, row_norm=row_norm, tol=0, max_iter=result.n_iter, **options)
    assert last.support.tolist() == result.support.tolist()


def test_whole_weights_stop_where_copies_of_the_rows_do() -> None:
    rng = np.random.default_rng(0)
    for seed in range(4):
        X, y = make_numbers(40, 10, 3, seed=seed)
        w = rng.integers(1, 30, 40)
        W0 = rng.normal(size=(10, 3))
        copies = np.repeat(np.arange(40), w)
        weighted = run(Problem.from_arrays(X, y, sample_weight=w), 5, init=W0, tol=0.2)
        repeated = run(Problem.from_arrays(X[copies], y[copies]), 5, init=W0, tol=0.2)
        assert weighted.n_iter == repeated.n_iter
