"""Enumeration against enumeration by another route: `itertools` and `lstsq`."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exactk import InputError, Problem, Status, solve
from exactk.methods import exhaustive
from exactk.methods.exhaustive import Exhaustive
from exactk.utils.monitor import Monitor, Progress
from tests.oracles.brute import Reference, make_classes, make_numbers


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    k=st.integers(1, 6),
    ridge=st.sampled_from([0.0, 0.2, 5.0]),
    classes=st.booleans(),
    weighted=st.booleans(),
    scale=st.booleans(),
)
def test_the_best_of_all_subsets(
    seed: int, k: int, ridge: float, classes: bool, weighted: bool, scale: bool
) -> None:
    X, y = make_classes(25, 6, 3, seed) if classes else make_numbers(25, 6, 2, seed)
    weights = np.random.default_rng(seed).integers(1, 4, 25) if weighted else None
    problem = Problem.from_arrays(X, y, ridge=ridge, sample_weight=weights, scale=scale)
    reference = Reference(X, y, ridge=ridge, weights=weights, scale=scale)
    best, objective = reference.best(k)
    result = solve(problem, k, "exhaustive")
    assert result.objective == pytest.approx(objective, rel=1e-8)
    assert result.support.tolist() == list(best)
    assert result.status == Status.OPTIMAL


def test_columns_of_any_size_count_without_scaling() -> None:
    X, _ = make_numbers(50, 6, 1, seed=0)
    y = X @ [1.0, 1.0, 1.0, 0.2, 0.1, 0.0] + 0.3 * np.random.default_rng(0).standard_normal(50)
    X = X * [1e-6, 1.0, 1.0, 1e-6, 1e5, 1.0]
    best, objective = Reference(X, y, scale=False).best(3)
    result = solve(Problem.from_arrays(X, y, scale=False), 3, "exhaustive")
    assert result.support.tolist() == list(best)
    assert result.objective == pytest.approx(objective, rel=1e-8)


def test_constant_columns_are_never_candidates_and_indices_stay_those_of_the_table() -> None:
    X, y = make_classes(40, 5, 3, seed=9)
    X = np.column_stack([np.ones(40), X[:, :2], np.zeros(40), X[:, 2:]])
    best, _ = Reference(X, y).best(3)
    assert solve(Problem.from_arrays(X, y), 3, "exhaustive").support.tolist() == list(best)


def test_of_ties_the_first_in_lexicographic_order() -> None:
    X, y = make_classes(40, 4, 3, seed=9)
    X = np.column_stack([X, X])
    first, _ = Reference(X[:, :4], y).best(2)
    assert solve(Problem.from_arrays(X, y), 2, "exhaustive").support.tolist() == list(first)


def test_batches_do_not_change_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = make_classes(40, 9, 3, seed=4)
    problem = Problem.from_arrays(X, y)
    best, _ = Reference(X, y).best(4)
    for batch in (1, 7, 10_000):
        monkeypatch.setattr(exhaustive, "BATCH", batch)
        result = solve(problem, 4, "exhaustive")
        assert result.support.tolist() == list(best)


def test_too_many_subsets_are_refused_by_number() -> None:
    X, y = make_classes(40, 9, 3, seed=4)
    problem = Problem.from_arrays(X, y)
    with pytest.raises(InputError, match=r"126 subsets \(4 of 9 .*max_subsets=125.*exchange"):
        solve(problem, 4, "exhaustive", max_subsets=125)
    assert solve(problem, 4, "exhaustive", max_subsets=126).status == Status.OPTIMAL
    wide = Problem.from_arrays(np.random.default_rng(0).standard_normal((10, 200)), np.arange(10.0))
    with pytest.raises(InputError, match="max_subsets=50,000,000"):
        solve(wide, 20, "exhaustive")


def test_time_and_interrupts_end_it_with_the_best_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = make_classes(40, 9, 3, seed=4)
    problem, reference = Problem.from_arrays(X, y), Reference(X, y)
    monkeypatch.setattr(exhaustive, "BATCH", 2)
    answer = Exhaustive().run(problem, 4, Monitor(time_limit=1e-9))
    assert answer.status == Status.TIME_LIMIT
    assert len(set(answer.support)) == 4
    assert reference.objective(answer.support) > reference.best(4)[1]

    def interrupt(progress: Progress) -> None:
        if progress.done >= 6:
            raise KeyboardInterrupt

    answer = Exhaustive().run(problem, 4, Monitor(on_progress=interrupt))
    assert answer.status == Status.INTERRUPTED
    assert len(set(answer.support)) == 4


def test_progress_ends_at_the_number_of_prefixes() -> None:
    X, y = make_classes(40, 7, 3, seed=4)
    seen: list[Progress] = []
    Exhaustive().run(Problem.from_arrays(X, y), 3, Monitor(on_progress=seen.append))
    # Two of the first six columns, each with its best third.
    assert (seen[-1].done, seen[-1].total) == (15, 15)
    assert seen[-1].objective == pytest.approx(Reference(X, y).best(3)[1], rel=1e-9)
