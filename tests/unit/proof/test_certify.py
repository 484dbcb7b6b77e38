"""Certificates: right against every set, whenever they end, and never lost."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine

from exactk import (
    Certificate,
    Moments,
    Problem,
    Status,
    best_sets,
    certify,
    certify_path,
    evaluate,
    explain,
    solve,
    solve_path,
    stability,
)
from exactk.errors import InputError
from exactk.proof import best_sets as best_sets_module
from exactk.proof import certify as module
from exactk.proof import certify_path as certify_path_module
from exactk.proof import run
from exactk.proof.best_first import BestFirstSearch
from exactk.proof.make_tree import make_tree
from exactk.proof.run import Proof
from exactk.result import Path, Result
from exactk.utils.monitor import Monitor, Progress
from tests.support import says


@pytest.fixture(scope="module")
def cancer() -> Problem:
    return Problem.from_arrays(*load_breast_cancer(return_X_y=True))


def _random(seed: int, d: int = 9, n: int = 40, ridge: float = 0.0) -> Problem:
    rng = np.random.default_rng(seed)
    # Columns that resemble each other: what greedy takes first is seldom what is best.
    X = rng.standard_normal((n, 4)) @ rng.standard_normal((4, d)) + rng.standard_normal((n, d))
    y = X @ rng.standard_normal(d) + rng.standard_normal(n)
    return Problem.from_arrays(X, y, ridge=ridge, task="regression")


def _all_sets(problem: Problem, k: int) -> list[tuple[float, tuple[int, ...]]]:
    every = combinations(problem.candidates.tolist(), k)
    return sorted((problem.objective(one), one) for one in every)


def _hard() -> Problem:
    """What takes longer than a moment: 64 columns, of which 12 are wanted."""
    return Problem.from_arrays(*load_digits(return_X_y=True), ridge=0.01)


@contextmanager
def _raising(after: int, every: bool = False) -> Iterator[Callable[[Progress], None]]:
    """A listener that stands for a Ctrl-C while progress is shown."""
    heard = 0

    def listen(progress: Progress) -> None:
        nonlocal heard
        heard += 1
        if heard == after or (every and heard > after):
            raise KeyboardInterrupt

    yield listen


def _interrupt(*arguments: Any, **options: Any) -> Any:
    raise KeyboardInterrupt


def test_the_best_five_of_breast_cancer_are_proven(cancer: Problem) -> None:
    found = certify(cancer, features=solve(cancer, 5))
    assert found.proven
    assert not found.improved
    assert found.upper == pytest.approx(70.3327, abs=5e-5)
    assert found.lower == pytest.approx(found.upper, rel=1e-6)
    assert found.result.support.tolist() == [2, 7, 20, 21, 23]
    assert (found.status, found.result.status) == (Status.OPTIMAL, Status.OPTIMAL)
    assert found.result.method == "exchange"
    assert (found.k, found.ridge) == (5, 0.0)


@pytest.mark.parametrize("ridge", [0.0, 0.3])
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("k", [1, 3, 8, 9])
def test_it_agrees_with_looking_at_every_set(seed: int, k: int, ridge: float) -> None:
    problem = _random(seed, ridge=ridge)
    optimum, columns = _all_sets(problem, k)[0]
    found = certify(problem, features=list(range(k)))
    assert found.proven
    assert found.upper == pytest.approx(optimum, rel=1e-9)
    assert found.lower <= optimum * (1 + 1e-9)
    assert tuple(found.result.support.tolist()) == columns
    assert found.improved == (columns != tuple(range(k)))


@pytest.mark.parametrize(
    "constraints",
    [
        {"include": ["x0"], "exclude": ["x5"]},
        {"feature_groups": {"pair": ["x0", "x1"], "trio": ["x2", "x3", "x4"]}},
        {"feature_groups": {"pair": ["x0", "x1"]}, "count": "columns"},
        {"quotas": {"first": {"columns": ["x0", "x1", "x2", "x3"], "at_least": 1, "at_most": 2}}},
        {"costs": {f"x{j}": 1.0 + j % 4 for j in range(9)}, "budget": 6.0},
        {"max_correlation": 0.6},
    ],
)
@pytest.mark.parametrize("seed", range(3))
def test_constraints_are_kept(constraints: dict[str, Any], seed: int) -> None:
    problem = _random(seed, ridge=0.1).with_constraints(**constraints)
    optimum = solve(problem, 3, "exhaustive")
    worst = solve(problem, 3, "greedy")
    found = certify(problem, features=worst)
    assert found.proven
    assert found.upper == pytest.approx(optimum.objective, rel=1e-9)
    assert found.k == found.result.k == 3
    assert "only sets that keep the constraints count" in found.assumptions
    assert " that keep the constraints have a lower objective than " in found.summary


def test_a_bad_start_is_replaced(cancer: Problem) -> None:
    found = certify(cancer, features=[0, 1, 2, 3, 4])
    assert found.improved
    assert found.result.support.tolist() == [2, 7, 20, 21, 23]
    assert found.result.method == "certify"
    assert found.result.status == Status.OPTIMAL
    assert found.result.objective == found.upper
    names = certify(cancer, features=["x0", "x1"])
    assert names.k == 2
    assert names.proven


def test_the_answer_of_a_filter_gives_way_and_keeps_its_scores() -> None:
    problem = Problem.from_arrays(*load_wine(return_X_y=True))
    by_filter = solve(problem, 4, "fisher")
    found = certify(problem, features=by_filter)
    assert found.proven
    assert found.improved
    assert found.result.method == "certify"
    assert found.result.objective < by_filter.objective
    np.testing.assert_array_equal(found.result.scores, by_filter.scores)
    again = certify(problem, features=found.result)
    assert not again.improved
    assert again.result.method == "certify"


def test_a_number_is_solved_for_first(cancer: Problem) -> None:
    found = certify(cancer, k=np.int64(3))
    assert (found.k, found.proven, found.result.method) == (3, True, "exchange")


def test_the_bound_never_falls_and_is_never_above_the_optimum() -> None:
    problem = Problem.from_arrays(*load_digits(return_X_y=True), ridge=0.01)
    known = solve(problem, 6)
    proof, seen = Proof(problem, known, 0.0), []
    monitor = Monitor(3.0, lambda progress: seen.append((proof.lower, proof.upper)))
    for _ in range(40):
        proof.run(Monitor(0.01, lambda progress: seen.append((proof.lower, proof.upper))), 1)
    proof.run(monitor, 2)
    lowers, uppers = zip(*seen, strict=True)
    assert len(seen) > 5
    assert list(lowers) == sorted(lowers)
    assert list(uppers) == sorted(uppers, reverse=True)
    assert max(lowers) <= uppers[-1]


def test_a_gap_that_is_small_enough_ends_it() -> None:
    problem = _hard()
    found = certify(problem, k=12, gap=0.5, time_limit=30)
    assert found.gap <= 0.5
    assert not found.proven
    assert found.status == Status.CONVERGED
    assert "gap of 0.5" in found.message
    assert found.seconds < 20


def test_the_time_limit_holds_for_all_of_it() -> None:
    problem, begun = _hard(), time.perf_counter()
    found = certify(problem, k=12, time_limit=0.5)
    assert time.perf_counter() - begun < 5
    assert found.status == Status.TIME_LIMIT
    assert 0 < found.lower < found.upper
    assert found.gap == pytest.approx((found.upper - found.lower) / found.upper)
    # The search itself was not cut short, and its answer stays what it was.
    assert found.result.status == Status.CONVERGED
    assert "time limit" in found.message


def test_more_time_shows_more() -> None:
    problem = _hard()
    known = solve(problem, 12, effort=0)
    short, long = (certify(problem, features=known, time_limit=limit) for limit in (0.2, 1.5))
    assert short.lower <= long.lower <= long.upper <= short.upper


@pytest.mark.parametrize("n_jobs", [None, -1, 1, 3])
def test_any_number_of_threads_gives_the_same(cancer: Problem, n_jobs: int | None) -> None:
    found = certify(cancer, k=6, n_jobs=n_jobs)
    assert found.proven
    assert found.upper == pytest.approx(68.2805, abs=5e-5)


def test_an_interrupt_keeps_what_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = _hard()
    known = solve(problem, 12)
    monkeypatch.setattr(module, "show_progress", lambda *words: _raising(3))
    found = certify(problem, features=known)
    assert found.status == Status.INTERRUPTED
    assert 0 < found.lower <= found.upper <= known.objective
    assert "stopped by the user" in found.message


@pytest.mark.parametrize("threads", [1, 3])
def test_interrupts_one_after_the_other_lose_no_part(cancer: Problem, threads: int) -> None:
    optimum = certify(cancer, k=8).upper
    start = solve(cancer, 8, "greedy").support.tolist()
    for after in range(1, 9):
        search = BestFirstSearch(cancer, make_tree(cancer, 8), [start])
        with _raising(after, every=True) as listen:
            # Each press of the keys is heard while the last one is dealt with.
            for _ in range(3):
                ended = search.run(Monitor(None, listen), threads)
                assert not search.is_closed or search.upper == pytest.approx(optimum, rel=1e-9)
                assert search.lower <= optimum * (1 + 1e-9)
        assert ended in (Status.INTERRUPTED, Status.OPTIMAL)
        assert search.run(Monitor(), threads) == Status.OPTIMAL
        assert search.upper == pytest.approx(optimum, rel=1e-9)


def test_an_interrupt_before_there_is_a_bound(
    cancer: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = solve(cancer, 3)
    monkeypatch.setattr(run, "make_tree", _interrupt)
    found = certify(cancer, features=known)
    assert (found.status, found.lower, found.gap, found.nodes) == (Status.INTERRUPTED, 0.0, 1.0, 0)
    assert not found.proven
    assert found.result == known
    assert "no bound" in found.summary


def test_an_interrupted_search_is_not_proven(
    cancer: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped = Result.from_dict({**solve(cancer, 3).to_dict(), "status": "interrupted"})
    monkeypatch.setattr(module, "solve", lambda *given, **options: stopped)
    monkeypatch.setattr(run, "make_tree", lambda *given: pytest.fail("nobody waits for this"))
    found = certify(cancer, k=3)
    assert found.status == found.result.status == Status.INTERRUPTED


@pytest.mark.parametrize("ridge", [0.0, 0.2])
def test_more_columns_than_are_independent(ridge: float) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 4))
    X = np.column_stack([X, X[:, 0], X[:, 1]])
    problem = Problem.from_arrays(X, X @ rng.standard_normal(6), task="regression", ridge=ridge)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = certify(problem, k=5)
    assert found.k == 5
    # With a ridge it matters which copies make up the number, and they are not all looked at.
    assert found.proven == (ridge == 0)
    assert found.upper == pytest.approx(problem.objective(found.result.support))
    # The best, and still not five independent columns.
    assert found.result.status == Status.RANK_DEFICIENT
    assert "only 4 of the 5" in found.result.message


def test_copies_of_a_column_are_one_choice() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 3))
    X = np.column_stack([X, X[:, 0]])
    y = 3 * X[:, 0] + 0.01 * X[:, 1]
    problem = Problem.from_arrays(X, y, task="regression", ridge=1.0)
    # With a ridge two copies share the shrinkage and are below all sets of different columns.
    found = certify(problem, features=[0, 3])
    assert found.upper < min(problem.objective(one) for one in combinations(range(3), 2))
    # They are none of the sets that the bound is about.
    assert (found.lower, found.proven) == (0.0, False)
    assert "duplicate columns" in found.message
    assert found.result.support.tolist() == [0, 3]
    assert any("copies" in one for one in found.assumptions)


@pytest.mark.parametrize(
    ("options", "parameter"),
    [
        ({"k": 5, "time_limit": 0}, "time_limit"),
        ({"k": 5, "time_limit": "1"}, "time_limit"),
        ({"k": 5, "time_limit": np.nan}, "time_limit"),
        ({"k": 5, "gap": -0.1}, "gap"),
        ({"k": 5, "gap": np.nan}, "gap"),
        ({"k": 5, "n_jobs": 0}, "n_jobs"),
        ({"k": 5, "n_jobs": 1.5}, "n_jobs"),
        ({"k": 0}, "k"),
        ({"k": 31}, "k"),
        ({"k": True}, "k"),
        ({}, "k"),
        ({"k": 2, "features": [0]}, "features"),
        ({"features": []}, "features"),
        ({"features": 3.5}, "features"),
        ({"features": ["radius"]}, "features"),
        ({"features": [0, 99]}, "features"),
        ({"features": [0, 0]}, "features"),
        ({"k": 5, "ridge": -1}, "ridge"),
        ({"k": 5, "loss": "logistic"}, "loss"),
    ],
    ids=str,
)
def test_what_is_wrong_is_said_before_any_work(
    cancer: Problem, monkeypatch: pytest.MonkeyPatch, options: Any, parameter: str
) -> None:
    monkeypatch.setattr(run, "make_tree", lambda *given: pytest.fail("work was begun"))
    with pytest.raises(InputError) as error:
        certify(cancer, **options)
    assert error.value.parameter == parameter


def test_results_of_other_problems_are_refused(cancer: Problem) -> None:
    result = solve(cancer.with_ridge(0.5), 3)
    with pytest.raises(InputError) as error:
        certify(cancer, features=result)
    assert (error.value.parameter, error.value.value) == ("ridge", 0.0)
    X, y = load_breast_cancer(return_X_y=True)
    other = solve(Problem.from_arrays(X[:300], y[:300]), 3)
    renamed = Result.from_dict({**solve(cancer, 3).to_dict(), "feature_names": ["petal"] * 3})
    for strange in (other, renamed):
        with pytest.raises(InputError) as error:
            certify(cancer, features=strange)
        assert error.value.parameter == "features"


def test_a_table_has_the_ridge_and_loss_of_its_selection() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    result = solve(Problem.from_arrays(X, y, ridge=0.3), 3)
    found = certify(X, y, features=result)
    assert found.ridge == 0.3
    assert found.upper <= result.objective
    assert certify(X, y, k=3).ridge == Problem.from_arrays(X, y).with_ridge("auto").ridge
    assert certify(Problem.from_arrays(X, y, ridge=0.7), k=2).ridge == 0.7
    path = certify_path(X, y, path=Path([result]))
    assert (path.at(3).ridge, path.proven) == (0.3, True)


@pytest.mark.parametrize("function", [certify, explain, stability, evaluate])
def test_sets_that_break_the_rules_are_refused(function: Any, cancer: Problem) -> None:
    ruled = cancer.with_constraints(exclude=["x0"], max_correlation=0.5)
    with says("'x0'", "excluded") as error:
        function(ruled, features=["x0", "x1"])
    assert error.value.parameter == "features"
    with says("'x2', 'x3'", "constraints") as error:
        function(ruled, features=["x2", "x3"])
    assert error.value.parameter == "features"
    with says("'x2'", "constraints") as error:
        function(cancer.with_constraints(include=["x1"]), features=["x2"])
    assert error.value.parameter == "features"


def test_a_path_proves_every_size(cancer: Problem) -> None:
    found = certify_path(cancer, k_max=6)
    assert found.proven
    assert found.sizes == [1, 2, 3, 4, 5, 6]
    for one in found:
        assert one.upper == pytest.approx(certify(cancer, k=one.k).upper, rel=1e-9)
    assert found.status == Status.OPTIMAL
    assert found.at(5).result.support.tolist() == [2, 7, 20, 21, 23]


def test_a_path_that_was_found_is_proven_and_improved() -> None:
    problem = _random(3, ridge=0.1)
    path = solve_path(problem, 5, "greedy")
    found = certify_path(problem, path=path)
    assert found.proven
    for one in found:
        assert one.upper == pytest.approx(_all_sets(problem, one.k)[0][0], rel=1e-9)
    assert isinstance(found.path, Path)
    assert (np.diff(found.path.objectives) <= 0).all()


def test_a_path_out_of_time_has_bounds_for_all_sizes() -> None:
    problem, begun = _hard(), time.perf_counter()
    found = certify_path(problem, k_max=12, time_limit=2.0)
    assert time.perf_counter() - begun < 10
    assert found.sizes == list(range(1, 13))
    assert not found.proven
    assert found.status == Status.TIME_LIMIT
    assert found.at(1).proven
    lowers = found.table["lower"]
    # What holds for a larger size holds for a smaller one.
    assert lowers == sorted(lowers, reverse=True)
    assert all(one.lower <= one.upper for one in found)


def test_no_bound_is_passed_on_where_larger_sets_need_not_hold_smaller_ones() -> None:
    problem = _random(1).with_constraints(
        feature_groups={"all but one": [f"x{j}" for j in range(8)]}
    )
    found = certify_path(problem, k_max=2)
    assert found.proven
    for one in found:
        expected = solve(problem, one.k, "exhaustive").objective
        assert one.upper == pytest.approx(expected, rel=1e-9)


def test_sizes_without_sets_are_left_out() -> None:
    problem = _random(2).with_constraints(include=["x0", "x1", "x2"])
    assert certify_path(problem, k_max=5).sizes == [3, 4, 5]


def test_an_interrupted_path_keeps_every_size(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = _hard()
    path = solve_path(problem, 12)
    monkeypatch.setattr(certify_path_module, "show_progress", lambda *words: _raising(2))
    found = certify_path(problem, path=path)
    assert found.sizes == list(range(1, 13))
    assert found.status == Status.INTERRUPTED
    assert found.at(12).lower > 0
    assert {one.status for one in found if not one.proven} == {Status.INTERRUPTED}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("n_best", [1, 4, 200])
def test_the_best_sets_are_those_of_all(seed: int, n_best: int) -> None:
    problem = _random(seed, ridge=0.1)
    expected = _all_sets(problem, 4)[:n_best]
    found = best_sets(problem, k=4, n_best=n_best)
    assert found.is_complete
    assert found.status == Status.OPTIMAL
    assert found.sets == tuple(columns for _, columns in expected)
    np.testing.assert_allclose(found.objectives, [objective for objective, _ in expected])
    assert found.names[0] == tuple(f"x{j}" for j in found.sets[0])


@pytest.mark.parametrize("within", [0.0, 0.05, 0.5])
def test_sets_within_a_share_of_the_best(within: float) -> None:
    problem = _random(4)
    every = _all_sets(problem, 3)
    expected = [one for objective, one in every if objective <= (1 + within) * every[0][0]]
    found = best_sets(problem, k=3, n_best=1000, within=within)
    assert found.is_complete
    assert found.sets == tuple(expected)
    assert max(found.table["excess"]) <= within + 1e-9


def test_the_best_sets_keep_the_constraints() -> None:
    problem = _random(5).with_constraints(include=["x8"], feature_groups={"pair": ["x0", "x1"]})
    found = best_sets(problem, k=2, n_best=3)
    assert found.is_complete
    assert all("x8" in names for names in found.names)
    assert found.objectives[0] == pytest.approx(solve(problem, 2, "exhaustive").objective)


def test_a_list_that_is_not_proven_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = _hard()
    found = best_sets(problem, k=12, n_best=5, time_limit=0.5)
    assert not found.is_complete
    assert found.status == Status.TIME_LIMIT
    assert len(found.sets) == 5
    assert list(found.objectives) == sorted(found.objectives)
    assert "time limit" in found.message
    monkeypatch.setattr(best_sets_module, "show_progress", lambda *words: _raising(2))
    stopped = best_sets(problem, k=12, n_best=5)
    assert stopped.status == Status.INTERRUPTED
    assert 0 < stopped.lower <= stopped.objectives[0]


@pytest.mark.parametrize(
    ("options", "parameter"),
    [
        ({"k": 3, "n_best": 0}, "n_best"),
        ({"k": 3, "within": -1}, "within"),
        ({"k": 0}, "k"),
        ({}, "k"),
        ({"k": 3, "n_jobs": "2"}, "n_jobs"),
    ],
    ids=str,
)
def test_best_sets_checks_first(cancer: Problem, options: Any, parameter: str) -> None:
    with pytest.raises(InputError) as error:
        best_sets(cancer, **options)
    assert error.value.parameter == parameter


@pytest.mark.parametrize(
    ("options", "parameter"),
    [
        ({"k_max": 0}, "k_max"),
        ({"k_max": 3, "path": Path([])}, "path"),
        ({"path": [1, 2]}, "path"),
        ({"k_max": "3"}, "k_max"),
        ({"gap": 2}, "gap"),
    ],
    ids=str,
)
def test_certify_path_checks_first(cancer: Problem, options: Any, parameter: str) -> None:
    with pytest.raises(InputError) as error:
        certify_path(cancer, **options)
    assert error.value.parameter == parameter


def test_a_path_of_a_small_table_has_all_sizes() -> None:
    problem = Problem.from_arrays(*load_iris(return_X_y=True), ridge=0.1)
    found = certify_path(problem)
    assert found.sizes == [1, 2, 3, 4]
    with pytest.raises(InputError) as error:
        certify_path(problem, k_max=2, path=solve_path(problem, 2))
    assert error.value.parameter == "k_max"


@pytest.mark.parametrize(("ridge", "words"), [(0.0, "numerical precision"), (1e-3, "memory_limit")])
def test_a_gap_without_a_search_has_its_reason(ridge: float, words: str) -> None:
    # Too many columns for the search in NumPy; near duplicates, or no memory for matrices.
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 200))
    if ridge == 0.0:
        X[:, 100:] = X[:, :100] + 1e-4 * rng.standard_normal((60, 100))
    problem = Problem.from_arrays(X, X[:, 0] + rng.standard_normal(60), ridge=ridge)
    if ridge:
        problem = replace(problem, memory_limit=1000)
    found = certify(problem, k=4, time_limit=20)
    assert not found.proven
    assert (found.status, found.nodes) == (Status.CONVERGED, 0)
    assert words in found.message
    assert found.message in found.summary
    assert "no nodes explored" in found.summary
    assert Certificate.from_json(found.to_json()).message == found.message


def test_columns_of_text_are_named_as_the_user_knows_them() -> None:
    pl = pytest.importorskip("polars")
    rng = np.random.default_rng(0)
    table = pl.DataFrame({
        "colour": rng.choice(["red", "blue", "white"], 60),
        "a": rng.standard_normal(60), "b": rng.standard_normal(60),
    })  # fmt: skip
    y = (table["colour"] == "red").to_numpy() * 3.0 + table["a"].to_numpy()
    problem = Problem.from_arrays(table, y, task="regression")
    found = certify(problem, features=["b", "a"])
    assert found.proven
    assert set(found.result.selected) == {"colour", "a"}
    # No constraint of the user's, so none is said.
    assert not found.assumptions
    assert "no other 2 features" in found.summary
    best = best_sets(problem, k=2, n_best=3)
    assert best.sets[0] == (0, 1)
    assert set(best.names[0]) == {"colour", "a"}
    # Numbers are columns of the table, of which "colour" is the first.
    assert set(certify(problem, features=[0, 1]).result.selected) == {"colour", "a"}


def _milliseconds() -> Problem:
    """Two columns that agree to eleven digits, and a target that is their difference."""
    rng = np.random.default_rng(1)
    start = np.sort(rng.uniform(1.6e12, 1.7e12, 300)).round()
    took = rng.lognormal(0.5, 0.6, 300)
    X = np.column_stack([start, start + took, rng.standard_normal((300, 5))])
    return Problem.from_arrays(X, took, task="regression")


def test_columns_that_count_as_copies_are_named_as_an_assumption() -> None:
    problem = _milliseconds()
    found = certify(problem, k=2)
    assert found.upper > 1e6 * problem.objective([0, 1])
    assert any("agree to ten digits" in one for one in found.assumptions)
    assert any("agree to ten digits" in one for one in best_sets(problem, k=2).assumptions)
    both = certify(problem, features=[0, 1])
    assert (both.proven, both.lower) == (False, 0.0)


def _cancelling() -> Problem:
    """Three columns of which each has its own share beside the others, but together hardly."""
    rng = np.random.default_rng(4)
    x, g, h = rng.standard_normal((3, 2000))
    z = rng.standard_normal((2000, 3))
    near = [h + 1e-3 * rng.standard_normal(2000), h + 1.2e-3 * rng.standard_normal(2000)]
    columns = [x + 9.5, x + 9.5 + 0.021 * g, g + 9.5 + 0.014 * near[0], near[1], *z.T]
    twin = z[:, 0] + 1e-5 * rng.standard_normal(2000)
    return Problem.from_arrays(np.column_stack([*columns, twin]), h, task="regression")


@pytest.mark.parametrize("ruled", [False, True])
def test_a_triple_that_only_the_rows_can_price_is_not_passed_over(ruled: bool) -> None:
    problem = _cancelling()
    if ruled:
        problem = problem.with_constraints(quotas={"f": {"columns": [0, 4, 5, 6], "at_most": 3}})
    best = min(combinations(range(8), 3), key=problem.objective)
    found = certify(problem, k=3)
    assert found.result.support.tolist() == list(best)
    assert found.lower <= problem.objective(best) + found.tolerance


@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("distance", [1e-5, 1e-6, 1e-8])
def test_moments_of_near_copies_prove_nothing(k: int, distance: float) -> None:
    rng = np.random.default_rng(0)
    x, g = rng.standard_normal((2, 200))
    X = np.column_stack([x, x + distance * g, rng.standard_normal((200, 4))])
    y = g + 0.1 * rng.standard_normal(200)
    rows = Problem.from_arrays(X, y, task="regression")
    best = min(rows.objective(one) for one in combinations(range(6), k))
    found = certify(Problem.from_moments(Moments.from_arrays(X, y)), k=k)
    assert not found.proven
    # At 1e-8 the moments have no trace of the difference, and the certificate says so.
    assert found.lower <= best or "within rounding" in " ".join(found.assumptions)
    assert distance == 1e-8 or found.lower <= best


def test_weights_that_differ_by_twelve_orders() -> None:
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((6, 3)), rng.standard_normal(6)
    weights = np.array([1e-6, 1e-6, 1e-6, 1e6, 1e-6, 1e-6])
    found = certify(Problem.from_arrays(X, y, sample_weight=weights, task="regression"), k=2)
    root = np.sqrt(weights.astype(np.longdouble))
    mean = np.average(np.column_stack([X, y]).astype(np.longdouble), axis=0, weights=weights)
    table = (np.column_stack([X, y]) - mean) * root[:, None]

    def left(one: tuple[int, int]) -> float:
        a, b, t = table[:, one[0]], table[:, one[1]], table[:, 3]
        b, t = b - a * (a @ b) / (a @ a), t - a * (a @ t) / (a @ a)
        t = t - b * (b @ t) / (b @ b)
        return float(t @ t)

    assert found.upper == pytest.approx(min(map(left, combinations(range(3), 2))), rel=1e-6)


def test_lists_are_made_of_candidates_alone() -> None:
    rng = np.random.default_rng(0)
    a, b, c = rng.standard_normal((3, 40))
    X = np.column_stack([a, b, 2 * a + 1, 3 * b, c, rng.standard_normal((40, 3))])
    problem = Problem.from_arrays(X, a + b + 0.1 * c, task="regression")
    found = best_sets(problem, k=2, n_best=4)
    every = sorted((problem.objective(one), one) for one in combinations((0, 1, 4, 5, 6, 7), 2))
    assert found.is_complete
    assert [*found.sets] == [one for _, one in every[:4]]


def test_the_second_of_two_copies_is_as_good_as_the_first() -> None:
    X, y = load_iris(return_X_y=True)
    problem = Problem.from_arrays(np.column_stack([X, X[:, 3]]), y, ridge=0.1)
    first, second = certify(problem, features=[1, 3]), certify(problem, features=[1, 4])
    assert first.proven
    assert second.proven
    assert second.result.support.tolist() == [1, 4]
    assert second.lower == pytest.approx(first.lower)


def test_rules_that_do_not_bind_are_proven_without_them() -> None:
    free = Problem.from_arrays(*load_digits(return_X_y=True), ridge=0.1)
    best = certify(free, k=5)
    # With these rules the tree in NumPy alone would need longer than that.
    bound = free.with_constraints(max_correlation=0.999)
    found = certify(bound, features=best.result.support.tolist(), time_limit=20)
    assert found.proven
    assert found.upper == pytest.approx(best.upper)
    tight = free.with_constraints(
        quotas={"f": {"columns": best.result.support.tolist(), "at_most": 3}}
    )
    proof = Proof(tight, solve(tight, 5), 0.0)
    proof._free_bound(Monitor(), 1)
    assert proof.upper > best.upper
    assert proof.lower == pytest.approx(best.lower)


def test_what_was_given_may_be_a_mask_or_a_certificate() -> None:
    problem = Problem.from_arrays(*load_iris(return_X_y=True))
    mask = np.array([False, True, False, True])
    found = certify(problem, features=mask)
    assert found.result.support.tolist() == [1, 3]
    assert certify(problem, features=found).proven


def test_a_bound_that_is_interrupted_is_still_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = Problem.from_arrays(*load_digits(return_X_y=True))
    turns = 0
    turn = certify_path_module._Scheduler._turn

    def stopped(self: Any, *args: Any) -> None:
        nonlocal turns
        turns += 1
        if turns == 3:
            raise KeyboardInterrupt
        turn(self, *args)

    monkeypatch.setattr(certify_path_module._Scheduler, "_turn", stopped)
    path = certify_path(problem, k_max=14, time_limit=10)
    lower = [one.lower for one in path]
    assert path.status == Status.INTERRUPTED
    assert lower == sorted(lower, reverse=True)
    assert lower[0] > 0
