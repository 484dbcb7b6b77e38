"""The default method: never above greedy, no swap left, and the options that steer it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_digits

from exactk import InputError, Problem, Result, Status, TopKSelector, solve
from exactk.methods.exchange import Exchange
from exactk.solver import grade
from exactk.utils.monitor import Monitor, Progress
from tests.oracles.brute import Reference, make_classes, make_numbers


@pytest.fixture(scope="module")
def digits() -> Problem:
    return Problem.from_arrays(*load_digits(return_X_y=True))


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    k=st.integers(2, 5),
    ridge=st.sampled_from([0.0, 0.3]),
    effort=st.sampled_from([0, None]),
    wide=st.booleans(),
)
def test_never_above_greedy_and_no_swap_left(
    seed: int, k: int, ridge: float, effort: float | None, wide: bool
) -> None:
    X, y = make_numbers(10, 16, 2, seed) if wide else make_classes(40, 12, 3, seed)
    reference = Reference(X, y, ridge=ridge)
    result = solve(Problem.from_arrays(X, y, ridge=ridge), k, effort=effort)
    assert result.status == Status.CONVERGED
    assert result.objective == pytest.approx(reference.objective(result.support), rel=1e-8)
    slack = 1e-8 * reference.total
    assert result.objective <= reference.greedy(k)[1][-1] + slack
    assert reference.best_swap(result.support) >= result.objective - slack


@pytest.mark.parametrize("seed", range(8))
def test_the_default_effort_finds_the_optimum_of_small_problems(seed: int) -> None:
    X, y = make_classes(40, 10, 4, seed)
    best, objective = Reference(X, y).best(4)
    result = solve(Problem.from_arrays(X, y), 4)
    assert result.objective == pytest.approx(objective, rel=1e-9)
    assert result.support.tolist() == list(best)


def test_digits_greedy_and_swaps_stop_above_the_optimum_and_the_search_does_not(
    digits: Problem,
) -> None:
    local = solve(digits, 5, effort=0)
    assert local.objective == pytest.approx(1164.92, abs=0.005)
    assert local.objective <= solve(digits, 5, "greedy").objective
    assert solve(digits, 5).objective == pytest.approx(1158.4706, abs=5e-5)


def test_more_effort_is_never_worse_and_the_trace_falls(digits: Problem) -> None:
    results = [solve(digits, 9, effort=effort) for effort in (0, 0.2, 1, 3)]
    objectives = [result.objective for result in results]
    assert objectives == sorted(objectives, reverse=True)
    for result in results:
        assert (np.diff(result.trace) < 0).all()
        assert result.trace[-1] == pytest.approx(result.objective, rel=1e-10)
    assert results[0].n_iter < results[-1].n_iter


def test_the_same_seed_gives_the_same_answer(digits: Problem) -> None:
    for seed in (None, 7, np.int64(7)):
        one, two = (solve(digits, 8, random_state=seed, effort=0.3) for _ in range(2))
        assert one.support.tolist() == two.support.tolist()
        assert one.trace == two.trace
        assert one.n_iter == two.n_iter


def test_seeds_of_every_kind_lead_to_a_swap_optimum() -> None:
    X, y = make_classes(40, 20, 3, seed=1)
    problem, reference = Problem.from_arrays(X, y), Reference(X, y)
    for seed in (0, 1, 12345, np.random.default_rng(5), np.random.RandomState(5)):
        result = solve(problem, 5, random_state=seed, effort=0.1)
        assert len(result.support) == 5
        assert reference.best_swap(result.support) >= result.objective - 1e-8 * reference.total


def test_an_earlier_answer_is_taken_up_again(digits: Problem) -> None:
    best = solve(digits, 5)
    for init in (best.support, best.support.tolist(), [best.order, [1, 2, 3, 4, 5]]):
        resumed = solve(digits, 5, effort=0, init=init)
        assert resumed.support.tolist() == best.support.tolist()
    # A start that leads nowhere does no harm.
    poor = solve(digits, 5, effort=0, init=[1, 2, 3, 4, 5])
    assert poor.objective <= solve(digits, 5, effort=0).objective


@pytest.mark.parametrize("effort", [-0.5, np.nan, np.inf, "high", True, [1]])
def test_effort_is_checked(effort: object) -> None:
    X, y = make_classes(40, 6, 3, seed=1)
    problem = Problem.from_arrays(X, y)
    for k in (1, 3, 6):
        with pytest.raises(InputError) as error:
            solve(problem, k, effort=effort)
        assert error.value.parameter == "effort"


def counted(problem: Problem, k: int, **options: object) -> tuple[Result, int]:
    """The result, and how many steps were reported on the way."""
    steps: list[Progress] = []
    method = Exchange(options.get("effort"))  # type: ignore[arg-type]
    monitor = Monitor(options.get("time_limit"), steps.append)  # type: ignore[arg-type]
    return grade(problem, k, method.run(problem, k, monitor), "exchange"), len(steps)


def test_a_time_limit_does_not_lengthen_a_search() -> None:
    problem = Problem.from_arrays(*load_breast_cancer(return_X_y=True))
    for kind in (problem, problem.with_loss("logistic")):
        free, steps = counted(kind, 5)
        limited, limited_steps = counted(kind, 5, time_limit=600)
        assert limited_steps == steps
        assert limited.status == Status.CONVERGED
        assert limited.order.tolist() == free.order.tolist()
        assert limited.objective == free.objective
        assert limited.n_iter == free.n_iter
    selector, unlimited = (TopKSelector(k=5, time_limit=limit) for limit in (3, None))
    X, y = load_breast_cancer(return_X_y=True)
    assert selector.fit(X, y).result_.n_iter == unlimited.fit(X, y).result_.n_iter
    assert selector.result_.support.tolist() == unlimited.result_.support.tolist()


def test_infinite_effort_uses_up_the_time_limit(digits: Problem) -> None:
    result = solve(digits, 5, effort=np.inf, time_limit=0.3)
    assert result.status == Status.TIME_LIMIT
    assert result.seconds >= 0.3


def test_a_time_limit_ends_the_search(digits: Problem) -> None:
    for effort in (np.inf, 1e6):
        result = solve(digits, 20, effort=effort, time_limit=0.1)
        assert result.status == Status.TIME_LIMIT
        assert "time limit" in result.message
        assert len(result.support) == 20
        assert result.objective <= solve(digits, 20, "greedy").objective
    # No time at all: what greedy selection gives is the least.
    result = solve(digits, 20, time_limit=1e-9)
    assert result.status == Status.TIME_LIMIT
    assert result.objective <= solve(digits, 20, "greedy").objective


def test_a_search_that_ends_before_its_time_limit_has_converged(digits: Problem) -> None:
    result = solve(digits, 5, effort=0, time_limit=600)
    assert result.status == Status.CONVERGED
    assert result.message == ""


def interrupt_after(reports: int) -> Callable[[Progress], None]:
    seen: list[Progress] = []

    def listen(progress: Progress) -> None:
        seen.append(progress)
        if len(seen) > reports:
            raise KeyboardInterrupt

    return listen


@pytest.mark.parametrize("reports", [0, 5])
def test_an_interrupt_gives_the_best_so_far(digits: Problem, reports: int) -> None:
    answer = Exchange().run(digits, 9, Monitor(on_progress=interrupt_after(reports)))
    assert answer.status == Status.INTERRUPTED
    assert len(set(answer.support)) == 9
    assert digits.objective(answer.support) <= solve(digits, 9, effort=0).objective * (1 + 1e-12)


def test_an_interrupted_solve_says_so(digits: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def show(description: str, verbose: int) -> Iterator[Callable[[Progress], None]]:
        yield interrupt_after(3)

    monkeypatch.setattr(import_module("exactk.solver"), "show_progress", show)
    result = solve(digits, 9, verbose=1)
    assert result.status == Status.INTERRUPTED
    assert "stopped by the user" in result.message


def test_progress_is_reported_with_the_best_objective(digits: Problem) -> None:
    seen: list[Progress] = []
    answer = Exchange().run(digits, 7, Monitor(on_progress=seen.append))
    objectives = [p.objective for p in seen]
    assert objectives == sorted(objectives, reverse=True)
    assert objectives[-1] == pytest.approx(digits.objective(answer.support), rel=1e-10)
    assert all(p.total is None or p.done <= p.total + 100 for p in seen)
    assert [p.done for p in seen] == sorted({p.done for p in seen})


@pytest.mark.parametrize("memory_limit", [2**30, 64 * 8 * 12])
def test_columns_fetched_one_by_one_give_the_same_answer(
    digits: Problem, memory_limit: int
) -> None:
    X, y = load_digits(return_X_y=True)
    problem = Problem.from_arrays(X, y, gram="columns", memory_limit=memory_limit)
    for k in (5, 9):
        one, other = solve(problem, k, effort=0.3), solve(digits, k, effort=0.3)
        assert one.support.tolist() == other.support.tolist()
        assert one.objective == pytest.approx(other.objective, rel=1e-10)


def test_one_column_and_all_columns_are_proven(digits: Problem) -> None:
    assert solve(digits, 1).status == Status.OPTIMAL
    assert solve(digits, digits.n_usable).status in (Status.OPTIMAL, Status.RANK_DEFICIENT)


@pytest.mark.parametrize("seed", [2, 5, 27, 32, 36, 40, 58])
def test_perfect_fits_end_at_a_perfect_fit(seed: int) -> None:
    # As many columns as the rows can tell apart: many supports are perfect, and rounding alone
    # tells them apart. A time limit keeps a search that never ends from holding up the tests.
    for n, d, k in [(8, 20, 7), (12, 40, 10), (12, 40, 11), (20, 60, 19)]:
        X, y = make_numbers(n, d, 1, seed)
        problem = Problem.from_arrays(X, y)
        result = solve(problem, k, effort=1, time_limit=5)
        assert result.status == Status.CONVERGED
        # Of columns that nearly depend on each other, normal equations keep half of the digits.
        assert result.objective <= solve(problem, k, "greedy").objective + 1e-7 * problem.total
        assert np.linalg.matrix_rank(X[:, result.support]) == k
