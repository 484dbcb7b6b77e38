"""CD-LSR: its starts, its stopping rule and its options."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.linalg import hadamard

from exactk import Problem, Result, Status, solve
from exactk.papers.methods.cdlsr import CDLSR
from exactk.utils.monitor import Monitor, Progress
from tests.oracles.brute import Reference, make_classes, make_numbers


@pytest.fixture(scope="module")
def data() -> tuple[Any, Any]:
    return make_classes(50, 14, 3, seed=6)


@pytest.fixture(scope="module")
def problem(data: tuple[Any, Any]) -> Problem:
    return Problem.from_arrays(*data)


def run(problem: Problem, k: int = 4, **options: Any) -> Result:
    return solve(problem, k, "cdlsr", **options)


def test_the_defaults_are_those_of_the_paper() -> None:
    # 40 random starts, the lowest loss kept ("Solution accuracy evaluation"); the published code
    # stops at a relative change of 1e-4.
    defaults = CDLSR().get_params()
    assert defaults["n_starts"] == 40
    assert defaults["tol"] == 1e-4


def test_the_seed_decides_and_none_is_one() -> None:
    problem = Problem.from_arrays(*make_classes(60, 40, 4, seed=3))
    for seed in (None, 3, np.int32(3)):
        one, two = (run(problem, 6, n_starts=2, random_state=seed) for _ in range(2))
        assert one.trace == two.trace
        assert one.support.tolist() == two.support.tolist()
    traces = {run(problem, 6, n_starts=1, random_state=seed).trace for seed in range(5)}
    assert len(traces) == 5
    rng = np.random.default_rng(3)
    first = run(problem, 6, n_starts=1, random_state=rng)
    assert first.trace == run(problem, 6, n_starts=1, random_state=3).trace
    assert run(problem, 6, n_starts=1, random_state=rng).trace != first.trace


def test_the_last_value_is_that_of_a_refit_once_nothing_moves(data: Any) -> None:
    for ridge in (0.0, 0.3):
        problem = Problem.from_arrays(*data, ridge=ridge)
        result = run(problem, tol=0)
        assert result.status == Status.CONVERGED
        expected = Reference(*data, ridge=ridge).objective(result.support)
        assert result.trace[-1] == pytest.approx(expected, rel=1e-7)


def test_three_quiet_changes_end_it_but_not_before_the_fifth_iteration(problem: Problem) -> None:
    end = run(problem).support
    # Nothing moves from an end: iterations 2 to 4 are quiet, and the fifth is the first to count.
    assert run(problem, init=end).n_iter == 5
    # Every change is small enough: five iterations from anywhere.
    assert run(problem, init=[0, 1, 2, 3], tol=1e9).n_iter == 5


def test_changes_that_are_quiet_by_turns_do_not_end_it() -> None:
    problem = Problem.from_arrays(*make_classes(60, 60, 4, seed=3))
    broken = 0
    for seed in range(12):
        init = np.random.default_rng(seed).choice(60, 8, replace=False)
        for tol in (1e-1, 3e-2, 1e-2):
            trace = np.array(run(problem, 8, init=init, tol=tol).trace)
            quiet = (np.abs(np.diff(trace)) <= tol * np.abs(trace[:-1])).tolist()
            # The first window of three that counts, at the fifth iteration or later, is the last.
            windows = [all(quiet[t - 3 : t]) for t in range(4, len(quiet) + 1)]
            assert windows.index(True) == len(windows) - 1
            broken += sum(quiet) > 3 and not all(quiet[quiet.index(True) :])
    assert broken > 0, "no quiet change was followed by a loud one: a poor test"


def test_given_supports_take_the_place_of_random_ones(problem: Problem) -> None:
    supports = ([0, 1, 2, 3], [9, 4, 2, 7])
    alone = [run(problem, init=support) for support in supports]
    both = run(problem, init=supports)
    assert both.trace == min((r.trace for r in alone), key=lambda trace: trace[-1])
    for n_starts in (1, 7):
        assert run(problem, init=supports, n_starts=n_starts).trace == both.trace
    as_array = run(problem, init=np.array(supports))
    assert as_array.trace == both.trace


def test_a_given_support_is_not_changed(problem: Problem) -> None:
    init = np.array([0, 1, 2, 3])
    result = run(problem, init=init)
    assert init.tolist() == [0, 1, 2, 3]
    assert result.support.tolist() != [0, 1, 2, 3]


def test_starts_that_cannot_be_solved_lose_to_those_that_can() -> None:
    # Orthogonal columns of ±1 and a sum of two: a Gram matrix singular to the last digit.
    H = hadamard(8)[:, 1:].astype(float)
    X = np.column_stack([H[:, 0], H[:, 1], H[:, 0] + H[:, 1], H[:, 2:5]])
    y = np.random.default_rng(0).standard_normal(8)
    problem = Problem.from_arrays(X, y, scale=False)
    with pytest.warns(UserWarning, match="diverged"):
        alone = run(problem, 3, init=[0, 1, 2], epsilon=0)
    assert alone.status == Status.FAILED
    assert alone.n_iter == 0
    # Without a single good step the columns are those of greedy selection.
    assert alone.support.tolist() == sorted(Reference(X, y, scale=False).greedy(3)[0])
    both = run(problem, 3, init=[[0, 1, 2], [3, 4, 5]], epsilon=0)
    assert both.status == Status.CONVERGED
    assert both.trace == run(problem, 3, init=[3, 4, 5], epsilon=0).trace


def test_dependent_members_are_no_obstacle() -> None:
    X, y = make_numbers(40, 6, 1, seed=1)
    X[:, 2] = X[:, 0] + X[:, 1]
    problem = Problem.from_arrays(X, y)
    result = run(problem, 3, init=[0, 1, 2])
    assert result.k == 3
    assert np.isfinite(result.coef).all()
    assert np.isfinite(result.trace).all()


def test_progress_counts_the_starts_and_an_interrupt_keeps_the_best(problem: Problem) -> None:
    seen: list[Progress] = []

    def listen(progress: Progress) -> None:
        seen.append(progress)
        if progress.done == 7:
            raise KeyboardInterrupt

    answer = CDLSR(n_starts=10).run(problem, 4, Monitor(on_progress=listen))
    assert [(p.done, p.total) for p in seen] == [(n, 10) for n in range(1, 8)]
    objectives = [p.objective for p in seen]
    assert objectives == sorted(objectives, reverse=True)
    assert answer.status == Status.INTERRUPTED
    # As if seven starts had been asked for.
    expected = CDLSR(n_starts=7).run(problem, 4, Monitor())
    assert list(answer.support) == list(expected.support)
    assert answer.trace == expected.trace


def test_one_start_reports_its_iterations(problem: Problem) -> None:
    seen: list[Progress] = []
    answer = CDLSR(n_starts=1).run(problem, 4, Monitor(on_progress=seen.append))
    assert [(p.done, p.total) for p in seen] == [(t, 1000) for t in range(1, answer.n_iter + 1)]
    assert tuple(p.objective for p in seen) == answer.trace


def test_the_best_of_forty_starts_is_a_good_one(data: Any, problem: Problem) -> None:
    best = Reference(*data).best(2)[1]
    assert run(problem, 2).objective <= 1.05 * best
