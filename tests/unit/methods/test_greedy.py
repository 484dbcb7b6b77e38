"""Forward selection against a version that fits every candidate by `lstsq`."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exactk import Problem, Status, solve, solve_path
from tests.oracles.brute import Reference, make_classes, make_numbers


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    ridge=st.sampled_from([0.0, 0.1, 5.0]),
    classes=st.booleans(),
    weighted=st.booleans(),
    scale=st.booleans(),
)
def test_greedy_is_naive_forward_selection(
    seed: int, ridge: float, classes: bool, weighted: bool, scale: bool
) -> None:
    X, y = make_classes(30, 8, 3, seed) if classes else make_numbers(30, 8, 2, seed)
    weights = np.random.default_rng(seed).integers(1, 4, 30) if weighted else None
    problem = Problem.from_arrays(X, y, ridge=ridge, sample_weight=weights, scale=scale)
    reference = Reference(X, y, ridge=ridge, weights=weights, scale=scale)
    order, trace = reference.greedy(5)
    result = solve(problem, 5, "greedy")
    assert result.order.tolist() == order
    assert result.objective == pytest.approx(trace[-1], rel=1e-8)
    np.testing.assert_allclose(result.trace, trace, rtol=1e-8)
    assert result.n_iter == 5


def test_each_size_of_the_path_is_a_prefix() -> None:
    X, y = make_classes(50, 10, 3, seed=3)
    path = solve_path(Problem.from_arrays(X, y), 10, "greedy")
    order, trace = Reference(X, y).greedy(10)
    for k, result in enumerate(path, start=1):
        assert result.order.tolist() == order[:k]
        assert result.objective == pytest.approx(trace[k - 1], rel=1e-8)
    # Of one column, and of all, there is nothing better.
    assert [result.status for result in path] == [
        Status.OPTIMAL, *[Status.CONVERGED] * 8, Status.OPTIMAL,
    ]  # fmt: skip


def test_more_rows_than_columns_are_not_needed() -> None:
    X, y = make_numbers(12, 40, 1, seed=1)
    order, trace = Reference(X, y).greedy(6)
    result = solve(Problem.from_arrays(X, y), 6, "greedy")
    assert result.order.tolist() == order
    assert result.objective == pytest.approx(trace[-1], rel=1e-7)


def test_copies_are_taken_once_and_the_first_of_them() -> None:
    X, y = make_classes(50, 4, 3, seed=2)
    order, _ = Reference(X, y).greedy(4)
    X = np.column_stack([X, X])
    assert solve(Problem.from_arrays(X, y), 4, "greedy").order.tolist() == order


def test_progress_counts_the_columns() -> None:
    from exactk.methods.greedy import Greedy
    from exactk.utils.monitor import Monitor

    X, y = make_classes(40, 6, 3, seed=2)
    seen = []
    Greedy().run(Problem.from_arrays(X, y), 4, Monitor(on_progress=seen.append))
    assert [(p.done, p.total) for p in seen] == [(k, 4) for k in range(1, 5)]
