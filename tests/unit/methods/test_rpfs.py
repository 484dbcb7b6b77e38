"""RPFS: its V-step, its two systems, its starts and its options."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from exactk import Problem, Result, Status, solve, solve_path
from exactk.methods.rpfs import RPFS
from exactk.monitor import Monitor, Progress
from tests.oracles.brute import Reference, make_classes, make_numbers, one_hot
from tests.support import says

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


@pytest.mark.parametrize(
    ("option", "bad", "words"),
    [
        ("mu", 0, "a number in (0, inf), not 0"),
        ("rho", 0.99, "a number in [1, inf), not 0.99"),
        ("rho", np.inf, "a number in [1, inf), not inf"),
        ("row_norm", "l3", "'l2' or 'l1', not 'l3'"),
        ("row_norm", 2, "'l2' or 'l1', not 2"),
        ("n_starts", 0, "a whole number of at least 1, not 0"),
        ("max_iter", 0, "a whole number of at least 1, not 0"),
        ("tol", "small", "a number in [0, inf), not 'small'"),
        ("random_state", 1.5, "an integer that is zero or more"),
    ],
)
def test_options_are_checked(problem: Problem, option: str, bad: Any, words: str) -> None:
    with says(f"{option} must be", words):
        run(problem, **{option: bad})


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


@pytest.mark.parametrize("seed", range(20))
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


@pytest.mark.parametrize(
    ("init", "words"),
    [
        (np.zeros((14, 2)), "init must be a matrix of shape (14, 3)"),
        (np.zeros(14), "not of shape (14,)"),
        (np.full((14, 3), np.inf), "init has NaN or infinite entries"),
        ({"a": 1}, "init must be a matrix of numbers of shape (14, 3)"),
    ],
)
def test_init_is_checked(problem: Problem, init: Any, words: str) -> None:
    with says(words):
        run(problem, init=init)


def test_a_given_start_is_the_only_one(problem: Problem) -> None:
    W = np.random.default_rng(0).standard_normal((14, 3))
    alone = run(problem, init=W)
    assert run(problem, init=W, n_starts=5, random_state=3).trace == alone.trace
    assert run(problem, n_starts=1).trace != alone.trace


def test_rows_of_constant_columns_in_a_start_do_not_count(data: Any) -> None:
    X, y = data
    problem = Problem.from_arrays(np.column_stack([X, np.ones(50)]), y)
    W = np.zeros((15, 3))
    quiet = run(problem, init=W)
    W[14] = 1e9
    assert run(problem, init=W).trace == quiet.trace


def test_the_seed_decides_and_none_is_one(problem: Problem) -> None:
    traces = [run(problem, random_state=seed).trace for seed in (None, None, 1, 1, 2)]
    assert traces[0] == traces[1]
    assert traces[2] == traces[3]
    assert len(set(traces)) == 3


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


@pytest.mark.parametrize("options", [{"rho": 1e200}, {"rho": 1e100}, {"mu": 1e308, "rho": 10.0}])
@pytest.mark.parametrize("row_norm", ["l2", "l1"])
@pytest.mark.parametrize("shape", [(50, 14), (12, 30)])
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


def test_an_interrupt_keeps_the_last_iterate(problem: Problem) -> None:
    def stop(progress: Progress) -> None:
        if progress.done == 4:
            raise KeyboardInterrupt

    answer = RPFS().run(problem, 4, Monitor(on_progress=stop))
    assert answer.status == Status.INTERRUPTED
    assert len(set(answer.support)) == 4
    assert answer.trace == run(problem).trace[:4]


def test_an_interrupt_between_starts_keeps_the_best(problem: Problem) -> None:
    def stop(progress: Progress) -> None:
        if progress.done == 2:
            raise KeyboardInterrupt

    answer = RPFS(n_starts=4).run(problem, 4, Monitor(on_progress=stop))
    assert answer.status == Status.INTERRUPTED
    assert answer.trace == run(problem, n_starts=2).trace


def test_the_ridge_of_the_problem_has_no_part_in_the_search(problem: Problem) -> None:
    assert run(problem.with_ridge(5.0)).trace == run(problem).trace


def test_a_path_has_every_size(problem: Problem) -> None:
    path = solve_path(problem, 14, "rpfs")
    assert [len(set(r.support.tolist())) for r in path] == list(range(1, 15))
    assert path.at(14).status == Status.OPTIMAL
    assert path.at(3).trace == run(problem, 3).trace


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
