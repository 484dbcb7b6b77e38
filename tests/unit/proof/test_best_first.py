"""Driving a tree: the list of sets, the bound, and what an interruption leaves."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import combinations
from math import inf
from typing import Any

import numpy as np
import pytest

from exactk import Problem, Status
from exactk.proof import best_first as module
from exactk.proof.best_first import BestFirstSearch, FoundSet, Node, NodeResult, relative_gap
from exactk.proof.make_tree import make_tree
from exactk.utils.monitor import Monitor, Progress
from tests.oracles.brute import make_classes


@pytest.fixture(scope="module")
def problem() -> Problem:
    return Problem.from_arrays(*make_classes())


@pytest.fixture(scope="module")
def ranked(problem: Problem) -> list[tuple[float, tuple[int, ...]]]:
    """All sets of three, the best first."""
    return sorted((problem.objective(S), S) for S in combinations(range(9), 3))


class FakeTree:
    """A tree with given bounds; `answer` says what exploring a node finds."""

    tolerance, threads = 1e-9, 4
    assumptions: tuple[str, ...] = ()

    def __init__(self, roots: list[float], answer: Callable[[Node], NodeResult]) -> None:
        self.roots, self.answer = roots, answer
        self.explored: list[float] = []
        self.releases = 0

    def root(self) -> list[Node]:
        return [Node(bound, None) for bound in self.roots]

    def release(self) -> None:
        self.releases += 1

    def explore(
        self, part: Node, ceiling: float, n_best: int, stop: Any, *, quick: bool
    ) -> NodeResult:
        self.explored.append(part.bound)
        return self.answer(part)


def _finds(*sets: tuple[int, ...]) -> Callable[[Node], NodeResult]:
    return lambda part: NodeResult([FoundSet(S, 0.0) for S in sets], nodes=1)


def test_a_gap_is_a_share_of_the_upper_end() -> None:
    assert relative_gap(3.0, 4.0) == 0.25
    assert relative_gap(4.0 + 1e-12, 4.0) == 0.0
    assert relative_gap(0.0, 0.0) == 0.0


def test_sets_are_priced_by_the_problem_and_not_by_the_tree(problem: Problem) -> None:
    sets = [(0, 1, 2), (3, 4, 5)]
    told = FakeTree(
        [0.0], lambda part: NodeResult([FoundSet(sets[0], 1e-3), FoundSet(sets[1], 1e9)])
    )
    search = BestFirstSearch(problem, told, n_best=2)
    search.run(Monitor(), 1)
    expected = sorted((problem.objective(S), S) for S in sets)
    assert [(one.objective, one.columns) for one in search.sets] == expected


@pytest.mark.parametrize("n_best", [1, 2, 3, 5])
@pytest.mark.parametrize("seed", range(4))
def test_the_list_is_right_in_whatever_order_sets_come(
    problem: Problem, ranked: list[tuple[float, tuple[int, ...]]], n_best: int, seed: int
) -> None:
    # Before the list was sorted at each insertion, a good set could be cut off its end.
    rng = np.random.default_rng(seed)
    some = [ranked[i] for i in rng.permutation(len(ranked))[:12]]
    told = FakeTree([0.0], _finds(*(S for _, S in some), *(S for _, S in some[:3])))
    search = BestFirstSearch(problem, told, [some[0][1]], n_best=n_best)
    search.run(Monitor(), 1)
    assert [(one.objective, one.columns) for one in search.sets] == sorted(some)[:n_best]


def test_the_part_with_the_lowest_bound_comes_first(
    problem: Problem, ranked: list[tuple[float, tuple[int, ...]]]
) -> None:
    (best, S), total = ranked[0], problem.total
    told = FakeTree([0.3 * best, 0.1 * best, 2 * total, 0.2 * best], _finds())
    search = BestFirstSearch(problem, told, [S])
    assert search.run(Monitor(), 1) == Status.OPTIMAL
    # The one above what is known is not looked at.
    assert told.explored == [0.1 * best, 0.2 * best, 0.3 * best]
    assert search.lower == search.upper == best


def test_the_bound_is_that_of_the_part_that_is_worst_off(problem: Problem) -> None:
    bounds = [10.0, 11.0, 12.0, 13.0, 14.0, 15.0]

    class Late(Monitor):
        reports = 0
        lowers: list[float] = []  # noqa: RUF012

        def report(self, *_: Any) -> None:
            self.reports += 1
            self.lowers.append(search.lower)

        @property
        def expired(self) -> bool:
            return self.reports >= 3

    told = FakeTree(bounds, _finds())
    search = BestFirstSearch(problem, told, [(0, 1, 2)])
    monitor = Late()
    assert search.run(monitor, 1) == Status.TIME_LIMIT
    assert monitor.lowers == [11.0, 12.0, 13.0]
    assert not search.is_proven
    assert search.run(Monitor(), 1) == Status.OPTIMAL
    assert told.explored == bounds


def test_a_gap_that_is_small_enough_ends_it(
    problem: Problem, ranked: list[tuple[float, tuple[int, ...]]]
) -> None:
    best, S = ranked[0]
    for threads in (1, 2):
        bounds = [share * best for share in (0.5, 0.6, 0.7, 0.8, 0.85, 0.91, 0.95)]
        told = FakeTree(bounds, _finds())
        search = BestFirstSearch(problem, told, [S], gap=0.1)
        assert search.run(Monitor(), threads) == Status.CONVERGED
        assert 0.9 * best <= search.lower < best
        assert not search.is_proven
        assert len(told.explored) < len(bounds)
    # A millionth is as good as proven: then all of it is looked at.
    told = FakeTree([0.5 * best, (1 - 1e-7) * best], _finds())
    search = BestFirstSearch(problem, told, [S], gap=1e-6)
    assert search.run(Monitor(), 1) == Status.OPTIMAL
    assert len(told.explored) == 2


def test_what_could_not_be_seen_is_no_proof(problem: Problem) -> None:
    told = FakeTree([1.0], lambda part: NodeResult(is_sure=False))
    search = BestFirstSearch(problem, told, [(0, 1, 2)])
    assert search.run(Monitor(), 1) == Status.CONVERGED
    assert search.lower == 1.0
    assert not search.is_closed
    assert not search.is_proven


def test_below_a_ceiling_is_all_that_is_known(
    problem: Problem, ranked: list[tuple[float, tuple[int, ...]]]
) -> None:
    best, S = ranked[0]
    ceiling = 0.5 * best
    # Nothing lies below the ceiling; what lies between it and the start was not looked at.
    search = BestFirstSearch(
        problem, FakeTree([0.7 * best], _finds()), [ranked[5][1]], ceiling=ceiling
    )
    search.run(Monitor(), 1)
    assert search.lower == ceiling
    search = BestFirstSearch(problem, FakeTree([0.1 * best], _finds()), ceiling=ceiling)
    search.run(Monitor(), 1)
    assert (search.sets, search.lower) == ([], ceiling)
    # Sets at the ceiling are in.
    search = BestFirstSearch(
        problem, FakeTree([0.1], _finds(S, ranked[1][1])), ceiling=best, n_best=5
    )
    search.run(Monitor(), 1)
    assert [one.columns for one in search.sets] == [S]


def test_what_is_learnt_raises_the_bound_and_lowers_the_ceiling(
    problem: Problem, ranked: list[tuple[float, tuple[int, ...]]]
) -> None:
    best = ranked[0][0]
    told = FakeTree([0.1 * best, 1.5 * best], _finds())
    search = BestFirstSearch(problem, told, [ranked[-1][1]])
    search.add_known(lower=0.4 * best)
    assert search.lower == 0.4 * best
    search.add_known([ranked[0][1]], lower=2.0 * best)
    assert search.lower == search.upper == best
    search.add_known(lower=0.1)
    assert search.lower == best
    search.run(Monitor(), 1)
    assert 1.5 * best not in told.explored


def test_no_part_is_no_set(problem: Problem) -> None:
    search = BestFirstSearch(problem, FakeTree([], _finds()))
    assert not search.is_closed
    search.run(Monitor(), 1)
    assert search.is_closed
    assert search.upper == inf


class Raising(FakeTree):
    """One that a Ctrl-C, or something worse, meets while it looks."""

    def __init__(self, roots: list[float], at: int, error: BaseException, best: Any) -> None:
        super().__init__(
            roots, lambda part: NodeResult([FoundSet(best, 0.0)] * (part.bound == 9.0))
        )
        self.at, self.error = at, error

    def explore(self, part: Node, *rest: Any, **named: Any) -> NodeResult:
        explored = super().explore(part, *rest, **named)
        if len(self.explored) == self.at:
            raise self.error
        return explored


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("at", [1, 3, 5, 6, 7, 8])
def test_ctrl_c_loses_no_part(
    problem: Problem, ranked: list[tuple[float, tuple[int, ...]]], at: int, threads: int
) -> None:
    (best, S), (_, start) = ranked[0], ranked[-1]
    bounds = [float(bound) for bound in range(2, 10)]
    told = Raising(bounds, at, KeyboardInterrupt(), S)
    search = BestFirstSearch(problem, told, [start])
    assert search.run(Monitor(), threads) == Status.INTERRUPTED
    # Whatever was being looked at may still hold the best.
    assert search.lower <= 9.0
    assert not search.is_closed
    assert search.run(Monitor(), threads) == Status.OPTIMAL
    assert set(told.explored) == set(bounds)
    assert search.upper == search.lower == best


@pytest.mark.parametrize("at", [2, 6])
def test_an_error_is_passed_on_and_loses_no_part(
    problem: Problem, ranked: list[tuple[float, tuple[int, ...]]], at: int
) -> None:
    bounds = [float(bound) for bound in range(2, 10)]
    told = Raising(bounds, at, MemoryError("too much"), ranked[0][1])
    search = BestFirstSearch(problem, told, [ranked[-1][1]])
    with pytest.raises(MemoryError, match="too much"):
        search.run(Monitor(), 2)
    assert not search.is_closed
    assert search.run(Monitor(), 2) == Status.OPTIMAL
    assert search.upper == ranked[0][0]


@pytest.mark.parametrize("at", range(1, 8))
def test_ctrl_c_while_a_part_is_taken_out(
    problem: Problem,
    ranked: list[tuple[float, tuple[int, ...]]],
    at: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    taken, pop = [0], module.heapq.heappop

    def interrupted(heap: Any) -> Any:
        taken[0] += 1
        if taken[0] == at:
            raise KeyboardInterrupt
        return pop(heap)

    monkeypatch.setattr(module.heapq, "heappop", interrupted)

    def answer(part: Node) -> NodeResult:
        time.sleep(0.01)  # so that two are under way together
        return NodeResult([FoundSet(ranked[0][1], 0.0)] * (part.bound == 8.0))

    told = FakeTree([float(bound) for bound in range(2, 9)], answer)
    search = BestFirstSearch(problem, told, [ranked[-1][1]])
    assert search.run(Monitor(), 2) == Status.INTERRUPTED
    assert search.run(Monitor(), 2) == Status.OPTIMAL
    assert search.upper == search.lower == ranked[0][0]
    assert len({one.columns for one in search.sets}) == len(search.sets)


@pytest.mark.parametrize("threads", [1, 2])
def test_ctrl_c_from_progress_and_on_again(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("exactk.proof.column_tree.QUICK_BUDGET", 300)
    monkeypatch.setattr("exactk.proof.column_tree.BUDGET", 300)
    X, y = make_classes(n=80, d=12, seed=2)
    problem = Problem.from_arrays(X, y)
    every = sorted((problem.objective(S), S) for S in combinations(range(12), 5))
    search = BestFirstSearch(problem, make_tree(problem, 5), n_best=4)
    heard = 0

    def listen(progress: Progress) -> None:
        nonlocal heard
        heard += 1
        if heard % 5 == 0:
            raise KeyboardInterrupt

    for _ in range(10_000):
        status = search.run(Monitor(on_progress=listen), threads)
        assert search.lower <= every[0][0] + search.tree.tolerance
        if status != Status.INTERRUPTED:
            break
    assert heard > 10
    assert status == Status.OPTIMAL
    assert search.is_closed
    assert [(one.objective, one.columns) for one in search.sets] == every[:4]


def test_no_time_is_no_claim(problem: Problem) -> None:
    search = BestFirstSearch(problem, make_tree(problem, 4), [(0, 1, 2, 3)])
    assert search.run(Monitor(0.0), 2) == Status.TIME_LIMIT
    best = min(problem.objective(S) for S in combinations(range(9), 4))
    assert 0.0 < search.lower <= best
    assert not search.is_proven
    assert search.run(Monitor(), 2) == Status.OPTIMAL
    assert search.upper == pytest.approx(best)
