"""From iterates to an answer: every way in which the stream can end, and what is kept of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import pytest
from scipy.linalg import hadamard

from exactk import Problem, Status
from exactk.methods.iteration import (
    IterationLog,
    LazyStarts,
    Start,
    Step,
    best_answer,
    fill_support,
    iterate,
)
from exactk.utils.monitor import Monitor, Progress
from tests.oracles.brute import Reference, make_classes, make_numbers

inf, nan = float("inf"), float("nan")


class Clock(Monitor):
    """A monitor whose time is up after so many looks at it."""

    def __init__(self, looks: int, on_progress: Callable[[Progress], None] | None = None) -> None:
        super().__init__(on_progress=on_progress)
        self.looks = looks

    @property
    def expired(self) -> bool:
        self.looks -= 1
        return self.looks < 0


def stream(*items: Any) -> Iterator[Step]:
    """Steps with these values, the t-th on column t; an exception is raised in its turn."""
    for t, item in enumerate(items):
        if isinstance(item, BaseException):
            raise item
        yield item if isinstance(item, Step) else Step([t], float(item))


def endless(first: float = 100.0) -> Iterator[Step]:
    t = 0
    while True:
        yield Step([t, t + 1], first - t)
        t += 1


@pytest.fixture(scope="module")
def problem() -> Problem:
    return Problem.from_arrays(*make_classes(50, 8, 3, seed=2))


def test_a_converged_step_is_the_last() -> None:
    steps = stream(3.0, Step([4, 2], 1.0, converged=True), RuntimeError("not asked for"))
    course = iterate(steps, 10, Monitor())
    assert course.status == Status.CONVERGED
    assert course.support == [4, 2]
    assert course.trace == [3.0, 1.0]
    assert course.value == 1.0


@pytest.mark.parametrize("max_iter", [1, 2, 7])
def test_no_more_steps_than_the_limit(max_iter: int) -> None:
    course = iterate(endless(), max_iter, Monitor())
    assert course.status == Status.MAX_ITER
    assert course.trace == [100.0 - t for t in range(max_iter)]
    assert course.support == [max_iter - 1, max_iter]


def test_convergence_in_the_last_step_allowed_is_convergence() -> None:
    steps = stream(3.0, 2.0, Step([5], 1.0, converged=True))
    assert iterate(steps, 3, Monitor()).status == Status.CONVERGED


def test_a_stream_that_ends_by_itself_did_not_converge() -> None:
    course = iterate(stream(3.0, 2.0), 10, Monitor())
    assert course.status == Status.MAX_ITER
    assert course.support == [1]


@pytest.mark.parametrize(
    "end", [nan, inf, -inf, np.float64("nan"), np.linalg.LinAlgError("Singular matrix")], ids=repr
)
def test_divergence_keeps_the_last_good_step(end: Any) -> None:
    course = iterate(stream(5.0, 4.0, end, 1.0), 10, Monitor())
    assert course.status == Status.FAILED
    assert course.support == [1]
    assert course.trace == [5.0, 4.0]


@pytest.mark.parametrize("end", [nan, np.linalg.LinAlgError("Singular matrix")], ids=repr)
def test_divergence_at_once_keeps_nothing(end: Any) -> None:
    course = iterate(stream(end), 10, Monitor())
    assert course.status == Status.FAILED
    assert course.support == []
    assert course.trace == []
    assert course.value == inf


def test_a_step_that_diverged_has_not_converged() -> None:
    course = iterate(stream(2.0, Step([7], nan, converged=True)), 10, Monitor())
    assert course.status == Status.FAILED
    assert course.support == [0]


def test_overflow_inside_a_step_is_left_to_its_value() -> None:
    def steps() -> Iterator[Step]:
        size = np.array([1e200])
        yield Step([3], 1.0)
        yield Step([4], float((size * size)[0]))

    course = iterate(steps(), 10, Monitor())
    assert course.status == Status.FAILED
    assert course.support == [3]
    with pytest.warns(RuntimeWarning, match="overflow"):
        np.array([1e200]) * np.array([1e200])


def test_other_errors_come_through() -> None:
    with pytest.raises(TypeError, match="a defect"):
        iterate(stream(1.0, TypeError("a defect")), 10, Monitor())


def test_an_interrupt_after_a_good_step_keeps_it() -> None:
    course = iterate(stream(5.0, 4.0, KeyboardInterrupt()), 10, Monitor())
    assert course.status == Status.INTERRUPTED
    assert course.support == [1]
    assert course.trace == [5.0, 4.0]


def test_an_interrupt_before_any_step_is_passed_on() -> None:
    with pytest.raises(KeyboardInterrupt):
        iterate(stream(KeyboardInterrupt()), 10, Monitor())


def test_an_interrupt_while_progress_is_shown_keeps_the_step_shown() -> None:
    def stop(progress: Progress) -> None:
        if progress.done == 3:
            raise KeyboardInterrupt

    course = iterate(endless(), 10, Monitor(on_progress=stop))
    assert course.status == Status.INTERRUPTED
    assert course.trace == [100.0, 99.0, 98.0]
    assert course.support == [2, 3]


@pytest.mark.parametrize("looks", [0, 1, 4])
def test_the_time_limit_is_checked_after_each_step(looks: int) -> None:
    course = iterate(endless(), 100, Clock(looks))
    assert course.status == Status.TIME_LIMIT
    assert len(course.trace) == looks + 1


def test_convergence_and_the_iteration_limit_come_before_the_time_limit() -> None:
    assert iterate(stream(Step([1], 1.0, converged=True)), 9, Clock(0)).status == Status.CONVERGED
    assert iterate(endless(), 1, Clock(0)).status == Status.MAX_ITER


def test_progress_is_reported_step_by_step_or_not_at_all() -> None:
    seen: list[Progress] = []
    iterate(endless(), 3, Monitor(on_progress=seen.append))
    assert seen == [Progress(1, 3, 100.0), Progress(2, 3, 99.0), Progress(3, 3, 98.0)]
    iterate(endless(), 3, Monitor(on_progress=seen.append), show=False)
    assert len(seen) == 3


def test_a_step_that_failed_is_not_reported() -> None:
    seen: list[Progress] = []
    iterate(stream(2.0, nan), 9, Monitor(on_progress=seen.append))
    assert [p.objective for p in seen] == [2.0]


def test_supports_become_plain_integers_in_their_order() -> None:
    steps = stream(Step(np.array([6, 2], dtype=np.intp), np.float64(1.0), converged=True))
    course = iterate(steps, 9, Monitor())
    assert course.support == [6, 2]
    assert [type(p) for p in course.support] == [int, int]
    assert type(course.trace[0]) is float


def starts(*ends: Iterable[Any]) -> list[Start]:
    return [Start(stream(*items)) for items in ends]


def done(column: int, value: float) -> Step:
    return Step([column], value, converged=True)


def test_the_start_with_the_lowest_last_value_is_kept(problem: Problem) -> None:
    several = starts([1.0, done(5, 7.0)], [9.0, 8.0, done(6, 2.0)], [done(7, 3.0)])
    answer = best_answer(problem, 1, several, 9, Monitor())
    assert list(answer.support) == [6]
    assert answer.status == Status.CONVERGED
    assert answer.trace == (9.0, 8.0, 2.0)
    assert answer.n_iter == 3
    assert not answer.ordered


@pytest.mark.parametrize("value", [2.0, -2.0])
@pytest.mark.parametrize(("lower", "kept"), [(0.0, 5), (1e-14, 5), (1e-6, 6)])
def test_of_equal_starts_the_first_is_kept(
    problem: Problem, value: float, lower: float, kept: int
) -> None:
    several = starts([done(5, value)], [done(6, value - lower)])
    assert list(best_answer(problem, 1, several, 9, Monitor()).support) == [kept]


@pytest.mark.parametrize("first", [True, False])
def test_a_start_that_failed_loses_to_any_other(problem: Problem, first: bool) -> None:
    failed, good = [Step([5], 1.0), nan], [Step([6], 50.0), done(6, 40.0)]
    several = starts(failed, good) if first else starts(good, failed)
    answer = best_answer(problem, 1, several, 9, Monitor())
    assert list(answer.support) == [6]
    assert answer.status == Status.CONVERGED
    # Not having converged is no failure.
    several = starts(failed, [Step([7], 60.0)])
    answer = best_answer(problem, 1, several, 1, Monitor())
    assert answer.status == Status.MAX_ITER


def test_of_starts_that_all_failed_the_best_is_kept(problem: Problem) -> None:
    several = starts([nan], [Step([5], 3.0), nan], [Step([6], 2.0), nan], [inf])
    answer = best_answer(problem, 1, several, 9, Monitor())
    assert list(answer.support) == [6]
    assert answer.status == Status.FAILED
    assert answer.trace == (2.0,)


def test_where_no_start_has_a_good_step_the_columns_are_those_of_greedy() -> None:
    X, y = make_classes(50, 8, 3, seed=2)
    answer = best_answer(Problem.from_arrays(X, y), 3, starts([nan], [inf]), 9, Monitor())
    assert list(answer.support) == Reference(X, y).greedy(3)[0]
    assert answer.status == Status.FAILED
    assert answer.n_iter == 0


def test_a_merit_decides_where_there_is_one(problem: Problem) -> None:
    def merit(course: IterationLog) -> float:
        return {5: 1.0, 6: 2.0}[course.support[0]]

    several = [Start(stream(done(6, 10.0)), merit), Start(stream(done(5, 99.0)), merit)]
    answer = best_answer(problem, 1, several, 9, Monitor())
    assert list(answer.support) == [5]
    assert answer.trace == (99.0,)


def test_one_start_or_no_steps_need_no_selection_score(
    problem: Problem,
) -> None:
    def merit(course: IterationLog) -> float:
        assert course.trace, "nothing to judge"
        return 0.0

    def refuse(course: IterationLog) -> float:
        raise AssertionError("nothing to compare with")

    answer = best_answer(problem, 1, [Start(stream(done(6, 1.0)), refuse)], 9, Monitor())
    assert list(answer.support) == [6]
    several = [Start(stream(nan), merit), Start(stream(done(5, 1.0)), merit)]
    assert list(best_answer(problem, 1, several, 9, Monitor()).support) == [5]


def test_one_start_reports_its_steps_and_several_their_number(problem: Problem) -> None:
    seen: list[Progress] = []
    monitor = Monitor(on_progress=seen.append)
    best_answer(problem, 1, starts([4.0, done(5, 3.0)]), 9, monitor)
    assert seen == [Progress(1, 9, 4.0), Progress(2, 9, 3.0)]
    seen.clear()
    best_answer(problem, 1, starts([4.0, done(5, 3.0)], [done(6, 8.0)], [done(7, 1.0)]), 9, monitor)
    assert seen == [Progress(1, 3, 3.0), Progress(2, 3, 3.0), Progress(3, 3, 1.0)]


def test_time_between_starts_ends_them(problem: Problem) -> None:
    never = starts([RuntimeError("not asked for")])
    several = [*starts([done(5, 3.0)], [done(6, 1.0)]), *never]
    # A converged course does not look at the clock: the looks are those between starts.
    answer = best_answer(problem, 1, several, 9, Clock(1))
    assert answer.status == Status.TIME_LIMIT
    assert list(answer.support) == [6]


def test_time_that_is_up_after_the_last_start_is_no_limit(problem: Problem) -> None:
    answer = best_answer(problem, 1, starts([done(5, 3.0)], [done(6, 1.0)]), 9, Clock(1))
    assert answer.status == Status.CONVERGED
    answer = best_answer(problem, 1, starts([done(5, 3.0)]), 9, Clock(0))
    assert answer.status == Status.CONVERGED


def test_time_within_a_start_ends_all_and_the_best_is_kept(problem: Problem) -> None:
    several = [*starts([done(5, 3.0)]), Start(endless()), *starts([RuntimeError("not asked for")])]
    answer = best_answer(problem, 1, several, 99, Clock(2))
    assert answer.status == Status.TIME_LIMIT
    assert list(answer.support) == [5]
    assert answer.trace == (3.0,)


@pytest.mark.parametrize("after", [[], [1.0]], ids=["before a step", "after a step"])
def test_an_interrupt_in_the_second_start_keeps_the_best(
    problem: Problem, after: list[float]
) -> None:
    never = [RuntimeError("not asked for")]
    several = starts([done(5, 0.5)], [*after, KeyboardInterrupt()], never)
    answer = best_answer(problem, 1, several, 9, Monitor())
    assert answer.status == Status.INTERRUPTED
    assert list(answer.support) == [5]


def test_an_interrupted_start_counts_if_it_is_the_best(problem: Problem) -> None:
    several = starts([done(5, 3.0)], [Step([6], 1.0), KeyboardInterrupt()], [done(7, 0.0)])
    answer = best_answer(problem, 1, several, 9, Monitor())
    assert answer.status == Status.INTERRUPTED
    assert list(answer.support) == [6]


def test_an_interrupt_between_starts_keeps_the_best(problem: Problem) -> None:
    def stop(progress: Progress) -> None:
        raise KeyboardInterrupt

    several = starts([done(5, 3.0)], [done(6, 1.0)])
    answer = best_answer(problem, 1, several, 9, Monitor(on_progress=stop))
    assert answer.status == Status.INTERRUPTED
    assert list(answer.support) == [5]


def test_an_interrupt_before_anything_is_passed_on(problem: Problem) -> None:
    with pytest.raises(KeyboardInterrupt):
        best_answer(problem, 1, starts([KeyboardInterrupt()], [done(6, 1.0)]), 9, Monitor())


def test_a_first_start_that_is_cut_short_is_not_judged(problem: Problem) -> None:
    def refuse(course: IterationLog) -> float:
        raise AssertionError("nothing to compare with")

    several = [Start(stream(Step([5], 1.0), KeyboardInterrupt()), refuse), *starts([done(6, 0.0)])]
    answer = best_answer(problem, 1, several, 9, Monitor())
    assert answer.status == Status.INTERRUPTED
    assert list(answer.support) == [5]
    answer = best_answer(problem, 1, [Start(endless(), refuse)] * 2, 99, Clock(3))
    assert answer.status == Status.TIME_LIMIT


def test_lazy_starts_are_made_when_their_turn_comes(problem: Problem) -> None:
    made: list[int] = []

    def make() -> Start:
        made.append(len(made))
        assert len(made) <= 3, "time was up"
        return Start(stream(done(made[-1], 9.0 - made[-1])))

    # A million of them, of which the time allows three.
    lazy = LazyStarts(10**6, make)
    assert len(lazy) == 10**6
    assert made == []
    seen: list[Progress] = []
    answer = best_answer(problem, 1, lazy, 9, Clock(2, seen.append))
    assert made == [0, 1, 2]
    assert answer.status == Status.TIME_LIMIT
    assert list(answer.support) == [2]
    assert [(p.done, p.total) for p in seen] == [(1, 10**6), (2, 10**6), (3, 10**6)]


def test_a_support_that_is_too_small_is_filled_up() -> None:
    X, y = make_classes(50, 8, 3, seed=2)
    answer = best_answer(Problem.from_arrays(X, y), 3, starts([done(7, 1.0)]), 9, Monitor())
    assert list(answer.support) == naive_fill(Reference(X, y), [7], 3)


def naive_fill(reference: Reference, support: list[int], k: int) -> list[int]:
    """Add the best column until there are k, each found by fitting all."""
    support = list(support)
    while len(support) < k:
        left = [p for p in reference.usable if p not in support]
        support.append(min(left, key=lambda p: reference.objective([*support, p])))
    return support


@pytest.mark.parametrize("ridge", [0.0, 0.5])
@pytest.mark.parametrize("start", [[], [7], [3, 0], [6, 1, 2]])
def test_each_column_filled_in_is_the_best_addition(start: list[int], ridge: float) -> None:
    X, y = make_classes(50, 8, 3, seed=4)
    filled = fill_support(Problem.from_arrays(X, y, ridge=ridge), start, 5)
    assert filled == naive_fill(Reference(X, y, ridge=ridge), start, 5)


def test_a_support_that_is_large_enough_is_not_touched(problem: Problem) -> None:
    assert fill_support(problem, [5, 1], 2) == [5, 1]
    assert fill_support(problem, [5, 1, 3], 2) == [5, 1]
    assert fill_support(problem, np.array([5, 1]), 2) == [5, 1]


def test_members_that_depend_on_others_stay_and_do_not_disturb() -> None:
    X, y = make_numbers(40, 6, 2, seed=1)
    X[:, 2] = X[:, 0] - 2.0 * X[:, 1]
    filled = fill_support(Problem.from_arrays(X, y), [0, 1, 2], 5)
    assert filled[:3] == [0, 1, 2]
    expected = naive_fill(Reference(X, y), [0, 1], 4)
    assert filled[3:] == expected[2:]


def test_members_that_depend_on_others_to_the_last_digit() -> None:
    # Orthogonal columns of ±1 and a sum of two: nothing at all is left of the third.
    H = hadamard(16)[:, 1:].astype(float)
    X = np.column_stack([H[:, 0], H[:, 1], H[:, 0] + H[:, 1], H[:, 2:7]])
    y = np.random.default_rng(0).standard_normal(16)
    filled = fill_support(Problem.from_arrays(X, y, scale=False), [0, 1, 2], 5)
    assert filled == [0, 1, 2, *naive_fill(Reference(X, y, scale=False), [0, 1], 4)[2:]]


def test_columns_that_depend_on_the_members_are_not_filled_in() -> None:
    X, y = make_numbers(40, 5, 1, seed=1)
    X[:, 4] = X[:, 0] + X[:, 1]
    filled = fill_support(Problem.from_arrays(X, y), [0, 1], 4)
    assert sorted(filled) == [0, 1, 2, 3]


def test_where_nothing_is_left_to_add_the_support_stays_short() -> None:
    X, y = make_numbers(40, 2, 1, seed=1)
    X = np.column_stack([X, X[:, 0] + X[:, 1], X[:, 0] - X[:, 1]])
    problem = Problem.from_arrays(X, y)
    assert fill_support(problem, [3, 1], 4) == [3, 1]
    assert len(fill_support(problem, [], 4)) == 2


def test_constant_columns_and_copies_are_not_filled_in() -> None:
    X, y = make_numbers(40, 3, 1, seed=1)
    X = np.column_stack([np.ones(40), X, 3.0 - X])
    assert sorted(fill_support(Problem.from_arrays(X, y), [2], 3)) == [1, 2, 3]
