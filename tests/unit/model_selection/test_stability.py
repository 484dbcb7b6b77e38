"""Stability: planted features, groups by frequency, index, constraints, early ends, bad input."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import combinations
from math import sqrt
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_wine

import exactk
from exactk import InputError, Moments, Problem, Result, Status, UnknownOptionError, solve
from exactk.methods.exchange import Exchange
from exactk.model_selection import stability as module
from exactk.model_selection.stability import (
    SizeFrequencies,
    Stability,
    measure_stability,
    stability,
)
from exactk.question import Question, read_question
from exactk.search.subsampling import half_samples
from exactk.utils.set_similarity import nogueira_interval
from tests.arrays import ArrayStream
from tests.support import says


def planted(n: int = 200, d: int = 20, seed: int = 0, noise: float = 0.5) -> tuple[Any, Any]:
    """Three columns that make the target, the others nothing."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, 2 * X[:, 3] - 2 * X[:, 7] + 2 * X[:, 11] + noise * rng.normal(size=n)


def noisy(n: int = 80, d: int = 12, seed: int = 0) -> Problem:
    """Classes that several columns tell apart about as well."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    X = rng.normal(size=(n, d))
    X[:, :6] += 0.8 * rng.normal(size=(3, 6))[y]
    return Problem.from_arrays(X, y, feature_names=[f"f{j}" for j in range(d)])


@pytest.fixture(scope="module")
def found() -> Stability:
    return stability(noisy(), k=3, n_subsamples=40)


def test_planted_columns_are_the_core_and_noise_is_never_chosen() -> None:
    X, y = planted()
    answer = stability(Problem.from_arrays(X, y), k=3, n_subsamples=30)
    assert sorted(answer.core.indices) == [3, 7, 11]
    assert (answer.frequencies[[3, 7, 11]] == 1.0).all()
    assert answer.frequencies.sum() == 3.0
    assert len(answer.unstable) == 0
    assert len(answer.rare) == 17
    assert answer.index == 1.0
    assert answer.interval == (1.0, 1.0)
    assert answer.jaccard == 1.0
    assert answer.support.tolist() == answer.full.support.tolist() == [3, 7, 11]
    # One column more is noise, another one each time.
    more = stability(Problem.from_arrays(X, y), k=4, n_subsamples=30)
    assert sorted(more.core.indices) == [3, 7, 11]
    assert np.delete(more.frequencies, [3, 7, 11]).max() < 0.6
    assert more.index < 1.0


def test_a_copy_stands_behind_its_original() -> None:
    X, y = planted()
    twice = np.column_stack([X, 1.0 - 2.0 * X[:, 3], np.ones(200)])
    answer = stability(Problem.from_arrays(twice, y), k=3, n_subsamples=20)
    plain = stability(Problem.from_arrays(X, y), k=3, n_subsamples=20)
    np.testing.assert_array_equal(answer.frequencies[:20], plain.frequencies)
    assert answer.frequencies[20:].tolist() == [0.0, 0.0]
    assert 20 not in answer.table["index"]
    assert answer.result.scores is not None
    assert answer.result.scores[20] == 1.0


def test_frequencies_are_those_of_solving_the_half_samples(found: Stability) -> None:
    problem = noisy()
    halves = half_samples(problem, np.random.default_rng(0), n_subsamples=40)
    wanted = [solve(half, 3, effort=0).support.tolist() for half in halves]
    assert [support.tolist() for support in found.supports] == wanted
    counts = np.bincount(np.concatenate(wanted), minlength=12)
    np.testing.assert_allclose(found.frequencies, counts / 40)
    pairs = [len({*a} & {*b}) / len({*a} | {*b}) for a, b in combinations(wanted, 2)]
    assert found.jaccard == pytest.approx(np.mean(pairs))
    # Kuncheva's index, which Nogueira's is where all sets have one size.
    common = [(len({*a} & {*b}) - 9 / 12) / (3 - 9 / 12) for a, b in combinations(wanted, 2)]
    assert found.index == pytest.approx(np.mean(common))
    assert found.interval[0] < found.index < found.interval[1]
    assert found.expected_false == pytest.approx(9 / (0.8 * 12))


def test_the_interval_ends_at_the_largest_index() -> None:
    found = stability(*planted(60, 14, noise=2.4), k=3, n_subsamples=10, task="regression")
    _, high = nogueira_interval(np.array([[j in s for j in range(14)] for s in found.supports]))
    assert found.index < found.interval[1] == 1.0 < high


def test_the_table(found: Stability) -> None:
    table = found.table
    assert len(table) == 12
    assert table["frequency"] == sorted(table["frequency"], reverse=True)
    assert sorted(table["index"]) == list(range(12))
    for row in table:
        p = found.frequencies[row["index"]]
        assert row["feature"] == f"f{row['index']}"
        assert row["frequency"] == p
        assert row["standard_error"] == pytest.approx(sqrt(p * (1 - p) / 40))
        assert 0 <= row["low"] <= p <= row["high"] <= 1
        group = "core" if p >= 0.9 else "rare" if p <= 0.05 else "unstable"
        assert row["frequency_group"] == group
        assert row["feature"] in getattr(found, group).names
        assert row["in_full"] == (row["index"] in found.full.support)
        assert row["selected"] == (row["index"] in found.support)
    assert len(found.core) + len(found.unstable) + len(found.rare) == 12


def test_the_most_frequent_are_selected_and_graded(found: Stability) -> None:
    assert found.result.objective == pytest.approx(noisy().objective(found.support))
    assert found.result.method == "stability"
    by_method = solve(noisy(), 3, "stability", n_subsamples=40)
    assert by_method.order.tolist() == found.result.order.tolist()
    np.testing.assert_allclose(by_method.scores, found.frequencies)
    chosen = found.frequencies[found.support]
    assert chosen.min() >= np.delete(found.frequencies, found.support).max()


def test_ties_go_by_what_a_column_explains_alone() -> None:
    # With as many columns as can be chosen all are chosen always.
    problem = noisy()
    answer = stability(problem, k=12, n_subsamples=4)
    alone = [problem.objective([j]) for j in answer.table["index"]]
    assert alone == sorted(alone)
    assert answer.index == 1.0


def test_the_draw_goes_by_the_seed_and_not_by_the_order_of_rows() -> None:
    problem, move = noisy(), np.random.default_rng(3).permutation(80)
    one, other = (stability(problem, k=3, n_subsamples=20, random_state=seed) for seed in (4, 5))
    X, y = problem.rows.columns(np.arange(12)), problem.target.codes  # type: ignore[union-attr]
    moved = stability(Problem.from_arrays(X[move], y[move]), k=3, n_subsamples=20, random_state=4)
    np.testing.assert_array_equal(one.frequencies, moved.frequencies)
    assert not np.array_equal(one.frequencies, other.frequencies)


@pytest.mark.parametrize("loss", ["logistic", "huber", "optimal_scoring"])
def test_half_samples_are_searched_by_the_loss(loss: str) -> None:
    problem = Problem.from_arrays(*load_wine(return_X_y=True), loss=loss, ridge=0.05)
    found = stability(problem, k=2, n_subsamples=6)
    assert found.full.loss == loss
    assert found.result.objective == pytest.approx(problem.objective(found.support), rel=1e-9)
    assert found.frequencies.sum() == pytest.approx(2.0)


@pytest.mark.parametrize("method", ["greedy", "fisher", "rfs", Exchange(effort=0)],
                         ids=["greedy", "fisher", "rfs", "object"])  # fmt: skip
def test_other_methods(method: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    # In blocks as well: a method that reads rows gets them.
    monkeypatch.setattr("exactk.search.subsampling.BLOCK_ROWS", 60)
    answer = stability(noisy(), k=2, n_subsamples=6, method=method)
    assert answer.method == (method if isinstance(method, str) else "exchange")
    assert all(len(support) == 2 for support in answer.supports)


def test_parameters_of_a_method_object_are_kept() -> None:
    method = exactk.registry.create("rfs", lam=0.5)
    answer = stability(noisy(), k=2, n_subsamples=4, method=method)
    assert answer.full.support.tolist() == solve(noisy(), 2, "rfs", lam=0.5).support.tolist()
    with pytest.raises(UnknownOptionError, match="effort"):
        stability(noisy(), k=2, n_subsamples=4, method="fisher", effort=1)


def test_an_existing_selection_is_compared_with_the_halves(found: Stability) -> None:
    problem = noisy()
    worst = solve(problem, 3, "fisher")
    answer = stability(problem, features=worst, n_subsamples=40)
    assert answer.full == worst
    np.testing.assert_array_equal(answer.frequencies, found.frequencies)
    in_full = {row["feature"] for row in answer.table if row["in_full"]}
    assert in_full == set(worst.selected)
    assert stability(problem, features=["f0", "f9"], n_subsamples=4).k == 2


def test_include_and_exclude() -> None:
    problem = noisy().with_constraints(include=["f9"], exclude=["f0", "f1"])
    answer = stability(problem, k=3, n_subsamples=20)
    assert answer.frequencies[9] == 1.0
    assert answer.frequencies[[0, 1]].tolist() == [0.0, 0.0]
    assert 9 in answer.support
    assert not {0, 1} & set(answer.support.tolist())
    assert {"f0", "f1"}.isdisjoint(answer.table["feature"])
    # The index is that of the two which are left to choose among nine.
    rest = [set(s.tolist()) - {9} for s in answer.supports]
    common = [(len(a & b) - 4 / 9) / (2 - 4 / 9) for a, b in combinations(rest, 2)]
    assert answer.index == pytest.approx(np.mean(common))


def test_groups_are_counted_as_one() -> None:
    problem = noisy().with_constraints(
        feature_groups={"pair": ["f0", "f7"], "trio": ["f2", "f3", "f8"]}
    )
    answer = stability(problem, k=3, n_subsamples=20)
    names = answer.table["feature"]
    assert {"pair", "trio"} <= set(names)
    assert {"f0", "f7", "f2", "f3", "f8"}.isdisjoint(names)
    assert len(names) == 12 - 5 + 2
    assert answer.frequencies[0] == answer.frequencies[7]
    assert sum(answer.table["frequency"]) == pytest.approx(3.0)
    assert answer.result.k == 3
    assert sum(answer.table["selected"]) == 3


def test_other_rules_take_the_best_total_frequency_that_keeps_them() -> None:
    costs = {f"f{j}": 1.0 + j % 3 for j in range(12)}
    problem = noisy().with_constraints(costs=costs, budget=5.0)
    answer = stability(problem, k=3, n_subsamples=20)
    price = np.array(list(costs.values()))
    assert price[answer.support].sum() <= 5.0
    best = max(
        answer.frequencies[list(S)].sum()
        for S in combinations(range(12), 3)
        if price[list(S)].sum() <= 5.0
    )
    assert answer.frequencies[answer.support].sum() == pytest.approx(best)


def test_few_rows_choose_fewer_columns_and_say_so() -> None:
    rng = np.random.default_rng(0)
    problem = Problem.from_arrays(rng.normal(size=(10, 30)), np.arange(10) % 2)
    answer = stability(problem, k=6, n_subsamples=10)
    assert {len(support) for support in answer.supports} == {3}
    assert "10 of 10 half-samples" in answer.message
    assert len(answer.support) == 6


def test_halves_with_a_constant_target_are_left_out() -> None:
    X = np.random.default_rng(0).normal(size=(20, 5))
    y = (np.arange(20) == 7).astype(int)
    answer = stability(Problem.from_arrays(X, y), k=1, n_subsamples=10)
    assert answer.n_subsamples == 5
    assert "5 half-samples were left out" in answer.message
    for task, parameter in (("classification", "y"), ("regression", "X")):
        with pytest.raises(InputError) as error:
            stability(Problem.from_arrays(X, y, task=task), k=1, n_subsamples=2)
        assert error.value.parameter == parameter


def test_a_time_limit_leaves_two_at_least() -> None:
    answer = stability(noisy(), k=3, time_limit=1e-9)
    assert answer.n_subsamples == len(answer.supports) == 2
    assert answer.status == "time_limit"
    assert "2 of 100" in answer.message


@pytest.mark.parametrize(("after", "kept"), [(1, None), (2, None), (3, 2), (6, 5)])
@pytest.mark.parametrize("way", ["raised", "in the search"])
def test_what_was_done_before_an_interrupt_is_kept(
    after: int, kept: int | None, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = 0

    def interrupted(problem: Problem, k: int, *args: Any, **options: Any) -> Result:
        nonlocal calls
        # The first is on all rows.
        calls += problem.n_rows < 80
        result = solve(problem, k, *args, **options)
        if calls != after:
            return result
        if way == "raised":
            raise KeyboardInterrupt
        return replace(result, status=Status.INTERRUPTED)

    monkeypatch.setattr(module, "solve", interrupted)
    if kept is None:
        with pytest.raises(KeyboardInterrupt):
            stability(noisy(), k=3, n_subsamples=10)
        return
    answer = stability(noisy(), k=3, n_subsamples=10)
    assert answer.n_subsamples == kept
    assert answer.status == "interrupted"
    assert f"{kept} of 10" in answer.message
    monkeypatch.undo()
    full = stability(noisy(), k=3, n_subsamples=10)
    for one, other in zip(answer.supports, full.supports, strict=False):
        assert one.tolist() == other.tolist()


def test_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = planted(300, 12)
    problem, in_memory = Problem.from_stream(ArrayStream(X, y)), Problem.from_arrays(X, y)
    one, other = (stability(each, k=3, n_subsamples=10) for each in (problem, in_memory))
    np.testing.assert_array_equal(one.frequencies, other.frequencies)
    monkeypatch.setattr("exactk.search.subsampling.HELD_BYTES", 0)
    streamed = stability(problem, k=3, n_subsamples=10)
    assert sorted(streamed.core.indices) == [3, 7, 11]


def test_json(found: Stability) -> None:
    content = json.loads(found.to_json(allow_nan=False))
    assert content["index"] == found.index
    assert content["interval"] == list(found.interval)
    assert content["table"] == found.table.to_dicts()
    assert content["core"] == list(found.core.names)
    assert content["by_size"] is None
    assert content["support"] == found.support.tolist()
    assert content["status"] == "converged"
    assert repr(found).startswith("Stability(k=3, index 0.")


def test_progress_is_shown(monkeypatch: pytest.MonkeyPatch, caplog: Any) -> None:
    monkeypatch.setattr("exactk.utils.progress.LOG_EVERY", 0.0)
    with caplog.at_level("INFO", logger="exactk.utils.progress"):
        stability(noisy(), k=3, n_subsamples=4, verbose=1)
    assert "half-samples: 4 of 4" in caplog.messages[-1]


@pytest.mark.parametrize(
    ("options", "parameter"),
    [
        ({"n_subsamples": 1}, "n_subsamples"),
        ({"method": "no_such"}, "method"),
        ({"method": 3}, "method"),
        ({"k": 13}, "k"),
        ({"features": [0]}, "features"),
    ],
    ids=str,
)
def test_bad_input(options: dict[str, Any], parameter: str) -> None:
    with pytest.raises(InputError) as error:
        stability(noisy(), **{"k": 3, **options})
    assert error.value.parameter == parameter


def test_bad_problems() -> None:
    moments = Moments.from_arrays(np.random.default_rng(0).normal(size=(9, 3)), np.arange(9.0))
    with says("moments", "rows"):
        stability(Problem.from_moments(moments), k=2)
    with says("at least 6 rows", "there are 4"):
        stability(Problem.from_arrays(np.eye(4), [1.0, 2.0, 3.0, 4.0]), k=2)


def test_groups_of_rows_are_drawn_whole() -> None:
    problem = noisy(96)
    patients = [f"p{i % 12:02d}" for i in range(96)]
    answer = stability(problem, k=3, n_subsamples=20, groups=patients, random_state=4)
    # Halves of the sorted labels, the second the complement of the first, by hand.
    rng = np.random.default_rng(4)
    labels, rows, wanted = np.array(patients), problem.rows, []
    assert rows is not None
    X, y = rows.columns(np.arange(12)), np.array(problem.target.codes)  # type: ignore[union-attr]
    for _ in range(10):
        first = np.isin(labels, np.unique(labels)[rng.permutation(12)[:6]])
        for half in (first, ~first):
            part = Problem.from_arrays(X[half], y[half], ridge=problem.ridge)
            wanted.append(solve(part, 3, effort=0).support.tolist())
    assert [support.tolist() for support in answer.supports] == wanted


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        (np.arange(80) % 3, "3 groups"),
        (np.zeros(80), "1 group of"),
        (np.r_[np.nan, np.arange(79)], "1 of 80 rows"),
    ],
    ids=["three", "one", "missing"],
)
def test_groups_that_cannot_be_drawn(groups: Any, words: str) -> None:
    with says(words) as error:
        stability(noisy(), k=3, groups=groups)
    assert error.value.parameter == "groups"


def test_groups_need_rows_in_memory() -> None:
    X, groups = np.random.default_rng(0).normal(size=(40, 3)), np.arange(40) % 8
    problem = Problem.from_stream(ArrayStream(X, X[:, 1]))
    with says("problem.in_memory()") as error:
        stability(problem, k=1, groups=groups)
    assert error.value.parameter == "groups"
    held = stability(problem.in_memory(), k=1, groups=groups, n_subsamples=4)
    assert held.n_subsamples == 4


def test_a_copy_that_the_rules_prefer_is_counted() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 5))
    y = 2 * X[:, 0] + X[:, 1] + rng.standard_normal(60)
    problem = Problem.from_arrays(np.hstack([X, X[:, :1]]), y, ridge=0.1)
    found = stability(
        problem.with_constraints(costs=[9, 1, 1, 1, 1, 1], budget=5), k=2, n_subsamples=12
    )
    assert found.support.tolist() == [1, 5]
    frequency = dict(zip(found.table["feature"], found.table["frequency"], strict=True))
    assert (frequency["x5"], frequency["x0"]) == (1.0, 0.0)
    assert set(found.core.names) == {"x1", "x5"}


def by_size(problem: Problem, k_max: int, n: int = 8, **options: Any) -> SizeFrequencies:
    """The frequencies of every size, beside those of one feature."""
    question = Question(problem, 1)
    found = measure_stability(question, k_max=k_max, n_subsamples=n, **options).by_size
    assert found is not None
    return found


def by_name(found: SizeFrequencies, k: int) -> dict[str, float]:
    return dict(zip(found.names, found.values[found.sizes.index(k)].tolist(), strict=True))


# A path and a search of one size agree where columns enter one by one.
@pytest.mark.parametrize("method", ["greedy", "fisher", "mrmr"])
@pytest.mark.parametrize("grouped", [False, True])
def test_frequencies_by_size_are_those_of_each_size(method: str, grouped: bool) -> None:
    groups = np.arange(80) // 8 if grouped else None
    options = {"method": method, "random_state": 3, "groups": groups}
    found = by_size(noisy(), 4, 12, **options)
    assert (found.sizes, found.n_subsamples) == ([1, 2, 3, 4], 12)
    for k in found.sizes:
        one = stability(noisy(), k=k, n_subsamples=12, **options)
        expected = {row["feature"]: row["frequency"] for row in one.table}
        assert by_name(found, k) == pytest.approx(expected)
        assert found.indices[k - 1] == pytest.approx(one.index)


def test_the_size_of_the_question_is_searched_as_usual(found: Stability) -> None:
    """One draw: the sets at k are the same with and without the other sizes."""
    question = read_question(noisy(), k=3)
    both = measure_stability(question, k_max=5, n_subsamples=40)
    assert [s.tolist() for s in both.supports] == [s.tolist() for s in found.supports]
    assert both.by_size is not None
    expected = {row["feature"]: row["frequency"] for row in found.table}
    assert by_name(both.by_size, 3) == pytest.approx(expected)
    assert both.to_dict()["by_size"]["n_subsamples"] == 40


def test_the_table_of_all_sizes() -> None:
    found = by_size(noisy(), 3)
    assert found.values.shape == (3, 12)
    # Every set has as many features as its size.
    assert found.values.sum(axis=1) == pytest.approx([1, 2, 3])
    assert np.all(np.diff(found.values.sum(axis=0)) <= 1e-12)
    table = found.table
    assert list(table[0]) == ["k", "index", *found.names]
    assert table["k"] == [1, 2, 3]
    assert table[1][found.names[0]] == found.values[1, 0]


def test_sizes_under_constraints() -> None:
    held = noisy().with_constraints(include=["f9"], exclude=["f0"])
    found = by_size(held, 3)
    assert all(by_name(found, k)["f9"] == 1.0 for k in found.sizes)
    assert "f0" not in found.names
    found = by_size(noisy().with_constraints(feature_groups={"pair": ["f0", "f1"]}), 2)
    assert "pair" in found.names
    assert not {"f0", "f1"} & set(found.names)


def test_all_features_have_no_index() -> None:
    found = by_size(noisy(), 12, 4)
    assert np.isnan(found.indices[-1])
    assert found.values[-1].tolist() == [1.0] * 12
    assert found.to_dict()["table"][-1]["index"] is None


def test_paths_end_when_they_take_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATH_SECONDS", 0.0)
    answer = measure_stability(Question(noisy(), 2), k_max=3, n_subsamples=6)
    assert answer.n_subsamples == 6
    assert answer.by_size is not None
    assert answer.by_size.n_subsamples == 1
