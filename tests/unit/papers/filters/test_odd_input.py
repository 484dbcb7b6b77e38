"""Filters on tables that are odd but allowed: nothing leaks, and ties do not hang on rounding."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from exactk import Problem, Status, solve
from exactk.methods import registry
from exactk.types import Floats
from exactk.utils.monitor import Monitor, Progress
from tests.support import says

Integers = npt.NDArray[np.int64]


def graded() -> tuple[Floats, Integers]:
    """Noise, three columns of rising use at the end, and the class itself first."""
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 200)
    X = rng.normal(size=(200, 8))
    X[:, 5:] += np.outer(y, [0.5, 1.0, 1.5])
    return np.column_stack([y, X]), y


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("fisher", {}),
        ("ttest", {}),
        ("ttest", {"equal_var": True}),
        ("mrmr", {}),
        ("mrmr", {"measure": "f"}),
        ("infogain", {}),
        ("chi2", {}),
        ("spec", {"graph": "classes"}),
        ("s2dfs", {"n_components": 1}),
    ],
)
def test_a_column_without_error_does_not_hide_the_others(
    name: str, options: dict[str, Any]
) -> None:
    X, y = graded()
    problem = Problem.from_arrays(X, y)
    assert solve(problem, 3, name, **options).support.tolist() == [0, 7, 8]
    assert solve(problem, 4, name, **options).support.tolist() == [0, 6, 7, 8]


@pytest.mark.parametrize("name", ["fisher", "ttest", "infogain", "chi2"])
def test_columns_that_tell_nothing_come_in_their_order(name: str) -> None:
    rng = np.random.default_rng(3)
    Z = rng.normal(size=(30, 7))
    # Each class has the same values of each column.
    X = np.vstack([rng.permuted(Z, axis=0) for _ in range(3)])
    problem = Problem.from_arrays(X, np.repeat([0, 1, 2], 30))
    assert solve(problem, 3, name).support.tolist() == [0, 1, 2]


def test_rows_that_are_their_own_neighbours_leave_the_order_alone() -> None:
    rng = np.random.default_rng(3)
    X, y = np.repeat(rng.normal(size=(12, 7)), 9, axis=0), np.repeat(np.arange(12) % 2, 9)
    assert solve(Problem.from_arrays(X, y), 3, "spec").support.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("fisher", {}),
        ("mrmr", {"measure": "f"}),
        ("spec", {"graph": "classes"}),
        ("chi2", {"bins": "counts"}),
        ("s2dfs", {}),
        ("s2dfs", {"n_components": 1}),
        ("svmrfe", {}),
    ],
)
@pytest.mark.parametrize("weight", [1e-18, 1e-100])
def test_a_class_of_next_to_no_weight(name: str, options: dict[str, Any], weight: float) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.random((60, 7)), np.arange(60) % 3
    X[:, 4] += y == 2
    problem = Problem.from_arrays(X, y, sample_weight=np.where(y == 1, weight, 1.0))
    result = solve(problem, 1, name, **options)
    assert result.support.tolist() == [4]
    if result.scores is not None:
        assert np.isfinite(result.scores).all()


@pytest.mark.parametrize("C", [1e-320, 1e20, 1e308])
def test_svmrfe_takes_any_cost(C: float) -> None:
    X, y = graded()
    # Two columns that depend on others, and rows that contradict each other.
    X = np.column_stack([X[:, 1:], X[:, 6] + X[:, 7], X[:, 7] - X[:, 8]])
    problem = Problem.from_arrays(np.vstack([X, X[:50]]), np.concatenate([y, 1 - y[:50]]))
    result = solve(problem, 3, "svmrfe", C=C)
    assert len(result.support) == 3
    assert result.status == Status.CONVERGED


def test_svmrfe_takes_weights_of_any_size() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 7)), rng.integers(0, 3, 60)
    weights = 10.0 ** rng.uniform(-20, 20, 60)
    result = solve(Problem.from_arrays(X, y, sample_weight=weights), 3, "svmrfe")
    assert result.status == Status.CONVERGED


@pytest.mark.parametrize("name", ["relieff", "spec", "slap"])
def test_more_neighbours_than_rows_are_all_rows(name: str) -> None:
    X, y = graded()
    problem = Problem.from_arrays(X[:60, 1:], y[:60])
    chosen = solve(problem, 3, name, n_neighbors=60).support
    np.testing.assert_array_equal(solve(problem, 3, name, n_neighbors=10**400).support, chosen)


def test_counts_in_small_and_large_units() -> None:
    X, y = graded()
    X = np.abs(X[:, 1:])
    expected = solve(Problem.from_arrays(X, y), 1, "chi2", bins="counts").scores
    for unit in (1e-120, 1e120):
        problem = Problem.from_arrays(X * unit, y)
        scores = solve(problem, 1, "chi2", bins="counts").scores
        np.testing.assert_allclose(scores / unit, expected, rtol=1e-9)


def test_ilfs_ends_at_the_time_limit_or_the_user() -> None:
    X, y = graded()
    problem = Problem.from_arrays(X, y)
    result = solve(problem, 3, "ilfs", max_iter=10**30, tol=0, time_limit=1e-6)
    assert result.status == Status.TIME_LIMIT
    assert len(result.support) == 3

    def stop(progress: Progress) -> None:
        if progress.done == 3:
            raise KeyboardInterrupt

    method = registry.create("ilfs", max_iter=10**30, tol=0)
    answer = method.run(problem, 3, Monitor(None, stop))
    assert answer.status == Status.INTERRUPTED
    assert len(answer.support) == 3


def test_ilfs_has_no_use_for_a_billion_tokens() -> None:
    with says("n_tokens must be a whole number from 2 to 255", "not 1000000000"):
        solve(Problem.from_arrays(*graded()), 1, "ilfs", n_tokens=10**9)
