"""Descents, beams and orders of entry against naive versions of themselves."""

from __future__ import annotations

import numpy as np
import pytest

from exactk import Problem
from exactk.search.descent import Descent, beam_search, entry_order, grow, trusted_objective
from exactk.search.native_state import NativeState, library, make_state
from exactk.search.state import Outcome, State
from tests.oracles.brute import Reference, make_classes, make_numbers

both = pytest.mark.parametrize(
    "kind",
    [
        pytest.param(State, id="numpy"),
        pytest.param(
            NativeState,
            id="native",
            marks=pytest.mark.skipif(library() is None, reason="the compiled moves are not built"),
        ),
    ],
)
NO_ENDS = np.zeros(1, dtype=np.uint64)


@pytest.mark.parametrize("ridge", [0.0, 0.3])
@pytest.mark.parametrize("seed", range(4))
def test_a_descent_ends_where_no_swap_helps(seed: int, ridge: float) -> None:
    X, y = make_classes(50, 12, 3, seed)
    problem, reference = Problem.from_arrays(X, y, ridge=ridge), Reference(X, y, ridge=ridge)
    start = np.random.default_rng(seed).choice(12, 4, replace=False).tolist()
    state, descent = make_state(problem, 4), Descent(problem)
    assert state.load(start)
    assert descent.run(state)
    end = reference.objective(state.support)
    assert state.objective == pytest.approx(end, rel=1e-9)
    assert end <= reference.objective(start)
    assert reference.best_swap(state.support) >= end - 1e-9 * reference.total


@both
@pytest.mark.parametrize("gram", ["full", "columns"])
def test_each_swap_is_the_steepest(kind: type[State], gram: str) -> None:
    X, y = make_numbers(50, 10, 2, seed=3)
    problem, reference = Problem.from_arrays(X, y, gram=gram), Reference(X, y)
    marks = np.arange(1, 11, dtype=np.uint64)
    S, steps = [0, 1, 2], 0
    state = kind(problem, 3)
    state.load(S)
    while reference.best_swap(S) < reference.objective(S) - 1e-9:
        assert state.descend(marks, NO_ENDS, 1) == Outcome.PAUSED
        swaps = [[*S[:i], *S[i + 1 :], p] for i in range(3) for p in range(10) if p not in S]
        S = min(swaps, key=reference.objective)
        steps += 1
        assert sorted(state.support) == sorted(S)
        assert state.objective == pytest.approx(reference.objective(S), rel=1e-9)
        assert state.swaps == steps
    assert state.descend(marks, NO_ENDS, 5) == Outcome.ENDED
    assert sorted(state.support) == sorted(S)
    assert steps >= 2


@both
def test_a_descent_does_not_arrive_at_an_end_that_is_known(kind: type[State]) -> None:
    X, y = make_classes(50, 10, 3, seed=1)
    problem = Problem.from_arrays(X, y)
    marks = np.random.default_rng(0).integers(2**40, size=10).astype(np.uint64)
    state = kind(problem, 3)
    state.load([0, 1, 2])
    assert state.descend(marks, NO_ENDS, 100) == Outcome.ENDED
    end = marks[state.support].sum(keepdims=True)
    state.load([2, 0, 1])
    assert state.descend(marks, end, 100) == Outcome.KNOWN


@both
@pytest.mark.parametrize("gram", ["full", "columns"])
def test_the_time_limit_is_checked_after_every_pass_over_the_table(
    kind: type[State], gram: str
) -> None:
    X, y = make_numbers(50, 10, 2, seed=3)
    problem = Problem.from_arrays(X, y, gram=gram)
    marks = np.arange(1, 11, dtype=np.uint64)
    state, passes = kind(problem, 3), []

    def note() -> bool:
        passes.append(problem.passes)
        return False

    state.load([0, 1, 2])
    before = problem.passes
    assert state.descend(marks, NO_ENDS, 50, note) == Outcome.ENDED
    assert passes == list(range(before + 1, problem.passes + 1))
    assert bool(passes) == (gram == "columns")
    # What has been read once is at hand.
    again = kind(problem, 3)
    again.load([0, 1, 2])
    assert again.descend(marks, NO_ENDS, 50, lambda: True) == Outcome.ENDED
    assert again.support == state.support


def test_a_stop_ends_a_descent_after_one_pass() -> None:
    X, y = make_numbers(50, 10, 2, seed=3)
    problem = Problem.from_arrays(X, y, gram="columns")
    state = make_state(problem, 3)
    state.load([0, 1, 2])
    before, start = problem.passes, state.objective
    assert not Descent(problem).run(state, stop=lambda: True)
    assert (problem.passes, state.swaps) == (before + 1, 1)
    assert state.objective == pytest.approx(Reference(X, y).objective(state.support), rel=1e-9)
    assert state.objective < start


@pytest.mark.parametrize("incumbent", [np.inf, 0.0])
def test_an_objective_that_has_lost_digits_comes_from_the_rows(incumbent: float) -> None:
    X, y = make_numbers(50, 6, 1, seed=2)
    X[:, 1] = X[:, 0] + 1e-3 * X[:, 1]
    problem = Problem.from_arrays(X, y)
    tight, loose = make_state(problem, 2), make_state(problem, 2)
    assert tight.load([0, 1])
    assert loose.load([2, 3])
    assert tight.is_ill_conditioned
    assert not loose.is_ill_conditioned
    tight.objective = loose.objective = 1.0
    from_rows = problem.objective([0, 1])
    assert from_rows != 1.0
    assert trusted_objective(tight, incumbent) == (from_rows if incumbent else 1.0)
    assert trusted_objective(loose, incumbent) == 1.0


def test_the_same_end_is_found_once() -> None:
    X, y = make_classes(50, 10, 3, seed=1)
    problem = Problem.from_arrays(X, y)
    state, descent = make_state(problem, 3), Descent(problem)
    state.load([0, 1, 2])
    assert descent.run(state)
    assert not descent.mark_visited(state.support)
    state.load([2, 0, 1])
    assert not descent.run(state)


def test_a_start_is_new_once_in_any_order() -> None:
    X, y = make_classes(50, 10, 3, seed=1)
    descent = Descent(Problem.from_arrays(X, y))
    assert descent.mark_visited([4, 7, 1])
    assert not descent.mark_visited([1, 4, 7])
    assert descent.mark_visited([1, 4, 8])


def test_grow_stops_where_nothing_independent_is_left() -> None:
    X, y = make_numbers(30, 3, 1, seed=0)
    X = np.column_stack([X, X @ [[1.0, 0.0], [2.0, 1.0], [0.5, -1.0]], np.ones(30)])
    state = make_state(Problem.from_arrays(X, y), 5)
    assert grow(state, 2)
    assert grow(state, 3)
    assert not grow(state, 4)
    assert state.size == 3


@pytest.mark.parametrize("ridge", [0.0, 1.0])
@pytest.mark.parametrize("seed", range(3))
def test_entry_order_is_forward_selection_among_the_members(seed: int, ridge: float) -> None:
    X, y = make_classes(50, 12, 4, seed)
    problem = Problem.from_arrays(X, y, ridge=ridge)
    S = np.random.default_rng(seed).choice(12, 6, replace=False)
    inside = np.sort(S)
    reference = Reference(X, y, ridge=ridge)
    order: list[int] = []
    while len(order) < len(S):
        left = [p for p in inside if p not in order]
        order.append(min(left, key=lambda p: reference.objective([*order, p])))
    assert entry_order(problem, S).tolist() == order


def test_entry_order_names_dependent_members_once_and_last() -> None:
    X, y = make_numbers(30, 4, 1, seed=4)
    X = np.column_stack([X, X[:, 0] - X[:, 1]])
    order = entry_order(Problem.from_arrays(X, y), np.array([4, 1, 0, 3])).tolist()
    assert sorted(order) == [0, 1, 3, 4]
    reference = Reference(X, y)
    assert reference.objective(order[:3]) == pytest.approx(reference.objective(order), rel=1e-9)


def test_a_beam_of_one_is_greedy() -> None:
    X, y = make_classes(50, 12, 3, seed=5)
    assert beam_search(Problem.from_arrays(X, y), 5, 1) == [Reference(X, y).greedy(5)[0]]


def test_a_beam_of_all_single_columns_holds_the_best_pair() -> None:
    X, y = make_classes(50, 9, 3, seed=6)
    reference = Reference(X, y)
    beam = beam_search(Problem.from_arrays(X, y), 2, 9)
    assert sorted(beam[0]) == list(reference.best(2)[0])
    objectives = [reference.objective(S) for S in beam]
    assert objectives == sorted(objectives)
    assert len({frozenset(S) for S in beam}) == len(beam) == 9


@pytest.mark.parametrize("width", [2, 4])
def test_a_beam_keeps_the_best_distinct_children_of_each_level(width: int) -> None:
    X, y = make_numbers(40, 8, 2, seed=7)
    reference = Reference(X, y)
    level: set[frozenset[int]] = {frozenset()}
    for _ in range(4):
        children = {S | {p} for S in level for p in range(8) if p not in S}
        level = set(sorted(children, key=lambda S: reference.objective(sorted(S)))[:width])
    beam = beam_search(Problem.from_arrays(X, y), 4, width)
    assert {frozenset(S) for S in beam} == level


def test_a_beam_ends_with_the_rank() -> None:
    X, y = make_numbers(30, 3, 1, seed=8)
    X = np.column_stack([X, X[:, 0] + X[:, 1], X[:, 2] * 2])
    for support in beam_search(Problem.from_arrays(X, y), 5, 3):
        assert len(support) == 3
        assert np.linalg.matrix_rank(X[:, support]) == 3
