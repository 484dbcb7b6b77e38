"""Projected gradient: its step, its starts and its options."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from exactk import Problem, Result, Status, solve
from tests.oracles.brute import Reference, make_classes, make_numbers


@pytest.fixture(scope="module")
def data() -> tuple[Any, Any]:
    return make_classes(50, 14, 3, seed=6)


@pytest.fixture(scope="module")
def problem(data: tuple[Any, Any]) -> Problem:
    return Problem.from_arrays(*data)


def run(problem: Problem, k: int = 4, **options: Any) -> Result:
    return solve(problem, k, "pgd", **options)


def longest_safe_step(reference: Reference, columns: Any) -> float:
    """η = 1/(2‖A‖), by NumPy's own norm."""
    X = reference.X[:, columns]
    return 0.5 / float(np.linalg.norm(X.T @ X, 2) + reference.penalty)


@pytest.mark.parametrize("ridge", [0.0, 0.5])
@pytest.mark.parametrize("gram", ["full", "columns"])
def test_the_default_step_is_the_longest_that_is_safe(data: Any, ridge: float, gram: Any) -> None:
    problem = Problem.from_arrays(*data, ridge=ridge, gram=gram)
    eta = longest_safe_step(Reference(*data, ridge=ridge), range(14))
    default, given = run(problem), run(problem, eta=eta)
    np.testing.assert_allclose(default.trace, given.trace, rtol=1e-8)
    assert (np.diff(default.trace) <= 0).all()


def test_the_step_of_many_columns_is_found_without_the_whole_spectrum() -> None:
    X, y = make_classes(40, 260, 3, seed=2)
    eta = longest_safe_step(Reference(X, y), range(260))
    default, given = (run(Problem.from_arrays(X, y, gram="full"), **o) for o in ({}, {"eta": eta}))
    np.testing.assert_allclose(default.trace, given.trace, rtol=1e-6)


def test_constant_columns_and_copies_have_no_part_in_the_step(data: Any) -> None:
    X, y = data
    more = np.column_stack([X, np.ones(50), X[:, :6]])
    np.testing.assert_allclose(
        run(Problem.from_arrays(more, y)).trace, run(Problem.from_arrays(X, y)).trace, rtol=1e-8
    )


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("k", [1, 3, 7])
def test_the_first_step_from_zero_ranks_the_columns_one_by_one(
    data: Any, problem: Problem, k: int
) -> None:
    reference = Reference(*data)
    B = reference.X.T @ reference.Y
    expected = np.sort(np.argsort(-np.linalg.norm(B, axis=1))[:k])
    result = run(problem, k, max_iter=1)
    assert result.support.tolist() == expected.tolist()
    # W = 2ηB on these rows.
    W = 2.0 * longest_safe_step(reference, range(14)) * B[expected]
    value = ((reference.Y - reference.X[:, expected] @ W) ** 2).sum()
    assert result.trace[0] == pytest.approx(value, rel=1e-8)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_given_start_is_cut_to_its_k_largest_rows_and_taken_from_there(data: Any) -> None:
    ridge, eta = 0.2, 2e-3
    reference = Reference(*data, ridge=ridge)
    A = reference.X.T @ reference.X + reference.penalty * np.eye(14)
    B = reference.X.T @ reference.Y
    W = np.random.default_rng(0).standard_normal((14, 3))
    result = run(Problem.from_arrays(*data, ridge=ridge), init=W, eta=eta, max_iter=1)
    W = W.copy()
    W[np.argsort(-np.linalg.norm(W, axis=1))[4:]] = 0.0
    W -= 2.0 * eta * (A @ W - B)
    support = np.sort(np.argsort(-np.linalg.norm(W, axis=1))[:4])
    assert result.support.tolist() == support.tolist()
    W[np.setdiff1d(np.arange(14), support)] = 0.0
    value = ((reference.Y - reference.X @ W) ** 2).sum() + reference.penalty * (W**2).sum()
    assert result.trace[0] == pytest.approx(value, rel=1e-10)


def test_a_fit_given_as_start_is_where_it_stays(data: Any, problem: Problem) -> None:
    first = run(problem, tol=1e-13, max_iter=100_000)
    W = np.zeros((14, 3))
    W[first.support] = Reference(*data).fit(first.support)[0]
    again = run(problem, init=W)
    assert again.support.tolist() == first.support.tolist()
    assert again.n_iter == 2
    assert again.trace[-1] == pytest.approx(again.objective, rel=1e-9)


def test_zero_given_as_start_is_the_default(problem: Problem) -> None:
    assert run(problem, init=np.zeros((14, 3))).trace == run(problem).trace


def test_random_is_a_start_too_and_the_seed_decides_it() -> None:
    # From zero there is one end; from random matrices there are several.
    problem = Problem.from_arrays(*make_classes(60, 40, 3, seed=2))
    ends = {tuple(run(problem, init="random", random_state=seed).support) for seed in range(8)}
    again = {tuple(run(problem, init="random", random_state=seed).support) for seed in range(8)}
    assert ends == again
    assert len(ends) > 1


def test_more_starts_are_never_worse_by_its_own_objective() -> None:
    problem = Problem.from_arrays(*make_classes(60, 40, 4, seed=3))
    found = [run(problem, 6, n_starts=n, random_state=1).trace[-1] for n in (1, 2, 4, 8, 16, 32)]
    assert found == sorted(found, reverse=True)
    assert found[-1] < found[0]
    assert run(problem, 6).trace == run(problem, 6, random_state=5).trace


@pytest.mark.parametrize(
    ("eta", "words"),
    [
        (1e3, r"iterates diverged;.*last good one.*exchange"),
        (1e100, r"iterates diverged;.*last good one.*exchange"),
        (1e300, r"iterates diverged at once.*forward selection.*exchange"),
    ],
)
@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_a_step_that_is_far_too_long_fails_with_k_columns(
    eta: float, words: str, kind: str
) -> None:
    X, y = make_classes(50, 14, 3, seed=6) if kind == "classes" else make_numbers(20, 30, 2, 1)
    with pytest.warns(UserWarning, match=words):
        result = run(Problem.from_arrays(X, y), 4, eta=eta)
    assert result.status == Status.FAILED
    assert "diverged" in result.message
    assert len(set(result.support.tolist())) == 4
    assert np.isfinite(result.coef).all()
    assert np.isfinite(result.trace).all()


def test_tol_ends_it_by_the_relative_change(problem: Problem) -> None:
    short, long = (run(problem, tol=tol) for tol in (1e-2, 1e-6))
    assert long.trace[: short.n_iter] == short.trace
    assert short.n_iter < long.n_iter
    for result, tol in ((short, 1e-2), (long, 1e-6)):
        changes = np.abs(np.diff(result.trace)) / np.abs(result.trace[:-1])
        assert changes[-1] <= tol < changes[:-1].min()


def test_a_target_without_any_relation_to_the_columns_gets_k_columns() -> None:
    # Orthogonal to the last digit: XᵀY is zero, and so is every iterate.
    X = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    problem = Problem.from_arrays(X, X[:, 0] * X[:, 1] + 0.5)
    assert np.abs(problem.cross).max() == 0.0
    result = run(problem, 1)
    assert result.k == 1
    assert result.objective == pytest.approx(4.0)
