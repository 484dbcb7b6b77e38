"""Every size at once: falling objectives, none above greedy, the optimum where it is known."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_wine

from exactk import InputError, Problem, Status, solve, solve_path
from exactk.methods.exchange import Exchange
from exactk.utils.monitor import Monitor, Progress
from tests.oracles.brute import Reference, make_classes, make_numbers


def assert_a_path(path, problem: Problem, k_max: int) -> None:
    assert len(path) == k_max
    for k, result in enumerate(path, start=1):
        assert result.k == len(set(result.support.tolist())) == k
        assert result.objective == pytest.approx(problem.objective(result.support), rel=1e-9)
    assert (np.diff(path.objectives) <= 1e-9 * problem.total).all()


@pytest.mark.parametrize("ridge", [0.0, 0.2])
@pytest.mark.parametrize("seed", range(3))
def test_a_small_path_is_the_best_of_every_size(seed: int, ridge: float) -> None:
    X, y = make_classes(40, 8, 3, seed)
    problem, reference = Problem.from_arrays(X, y, ridge=ridge), Reference(X, y, ridge=ridge)
    path = solve_path(problem, 8)
    assert_a_path(path, problem, 8)
    for k, result in enumerate(path, start=1):
        assert result.objective == pytest.approx(reference.best(k)[1], rel=1e-8)


@pytest.mark.parametrize("effort", [0, None])
def test_falling_swap_optimal_and_never_above_greedy(effort: float | None) -> None:
    X, y = make_classes(60, 25, 4, seed=7)
    problem, reference = Problem.from_arrays(X, y), Reference(X, y)
    path = solve_path(problem, 10, effort=effort)
    assert_a_path(path, problem, 10)
    greedy = reference.greedy(10)[1]
    assert (path.objectives <= np.array(greedy) + 1e-9 * reference.total).all()
    for result in path[:5]:
        assert reference.best_swap(result.support) >= result.objective - 1e-8 * reference.total


def test_the_path_of_digits_reaches_the_proven_optima() -> None:
    problem = Problem.from_arrays(*load_digits(return_X_y=True))
    path = solve_path(problem, 9)
    proven = [1322.2045, 1237.9396, 1158.4706, 1090.3272, 1024.7821, 970.3557, 930.5224]
    assert path.objectives[2:] == pytest.approx(proven, abs=1e-3)


@pytest.mark.parametrize("method", ["exchange", "greedy"])
def test_every_usable_column_may_be_requested(method: str) -> None:
    X, y = load_wine(return_X_y=True)
    X = np.column_stack([X[:, :6], np.ones(len(X))])
    problem = Problem.from_arrays(X, y)
    path = solve_path(problem, 6, method)
    assert_a_path(path, problem, 6)
    assert path.at(6).support.tolist() == list(range(6))
    assert path.at(6).status == path.at(1).status == Status.OPTIMAL
    with pytest.raises(InputError, match="k=7 is more than the 6 usable columns"):
        solve_path(problem, 7, method)


@pytest.mark.parametrize("method", ["exchange", "greedy", "exhaustive"])
def test_past_the_rank_the_objective_stays_and_the_status_says_why(method: str) -> None:
    X, y = make_numbers(30, 3, 2, seed=3)
    X = np.column_stack([X, X @ np.random.default_rng(0).standard_normal((3, 3))])
    problem = Problem.from_arrays(X, y)
    with pytest.warns(UserWarning, match=r"only 3 .*6.* independent"):
        path = solve_path(problem, 6, method)
    assert_a_path(path, problem, 6)
    everything = Reference(X, y).objective([0, 1, 2])
    for result in path[2:]:
        assert result.objective == pytest.approx(everything, rel=1e-9)
    assert [r.status == Status.RANK_DEFICIENT for r in path] == [False] * 3 + [True] * 3


def test_fewer_rows_than_columns() -> None:
    X, y = make_numbers(8, 20, 1, seed=2)
    problem = Problem.from_arrays(X, y)
    with pytest.warns(UserWarning, match=r"only 7 .* independent"):
        path = solve_path(problem, 10)
    assert_a_path(path, problem, 10)
    assert path.at(7).objective == pytest.approx(0.0, abs=1e-8 * problem.total)


@pytest.mark.parametrize("seed", range(4, 10))
def test_a_path_cut_short_by_time_still_falls(seed: int) -> None:
    X, y = make_classes(60, 30, 3, seed)
    problem = Problem.from_arrays(X, y)
    path = solve_path(problem, 12, time_limit=1e-9)
    assert_a_path(path, problem, 12)
    greedy = solve_path(problem, 12, "greedy").objectives
    assert (path.objectives <= greedy + 1e-9 * problem.total).all()
    assert path.at(12).status == Status.TIME_LIMIT


def test_an_interrupted_path_has_every_size() -> None:
    X, y = make_classes(60, 30, 3, seed=4)
    problem = Problem.from_arrays(X, y)
    seen: list[Progress] = []

    def interrupt(progress: Progress) -> None:
        seen.append(progress)
        if len(seen) == 3:
            raise KeyboardInterrupt

    answers = list(Exchange().run_path(problem, 12, Monitor(on_progress=interrupt)))
    assert [len(set(answer.support)) for answer in answers] == list(range(1, 13))
    assert answers[-1].status == Status.INTERRUPTED
    objectives = [problem.objective(answer.support) for answer in answers]
    assert (np.diff(objectives) <= 1e-9 * problem.total).all()


def test_the_same_seed_gives_the_same_path() -> None:
    X, y = make_classes(60, 30, 3, seed=5)
    problem = Problem.from_arrays(X, y)
    one, two = (solve_path(problem, 8, random_state=3) for _ in range(2))
    assert [r.support.tolist() for r in one] == [r.support.tolist() for r in two]


def test_a_path_of_one_is_the_best_single_column() -> None:
    X, y = make_classes(60, 12, 3, seed=5)
    problem = Problem.from_arrays(X, y)
    (only,) = solve_path(problem, 1)
    assert only.support.tolist() == list(Reference(X, y).best(1)[0])
    assert only.objective == solve(problem, 1).objective


def test_options_of_a_path_are_checked() -> None:
    X, y = make_classes(60, 12, 3, seed=5)
    problem = Problem.from_arrays(X, y)
    with pytest.raises(InputError, match=r"init .*path"):
        solve_path(problem, 3, init=[0, 1, 2])
    with pytest.raises(InputError, match="effort must be a number in"):
        solve_path(problem, 3, effort=-1)
    with pytest.raises(InputError, match="random_state"):
        solve_path(problem, 3, random_state="x")
