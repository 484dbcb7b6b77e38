"""The choice of k against loops over rows with scikit-learn, planted data, Ctrl-C and errors."""

from __future__ import annotations

import json
import signal
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.metrics import r2_score
from sklearn.model_selection import GroupKFold, KFold, RepeatedKFold, ShuffleSplit, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from exactk import AutoK, Moments, Problem, Result, Status, choose_k, solve, solve_path
from exactk.errors import InputError, UnknownOptionError
from exactk.methods.base import Method
from exactk.methods.exchange import Exchange
from exactk.model_selection.choose_k import FOLD_EFFORT, SizeScores
from exactk.model_selection.criteria import CRITERIA, criterion_values
from exactk.model_selection.cross_validation import Splits, deal_rows
from exactk.problem.constraints import Rules
from exactk.question import largest_size
from exactk.result import Answer
from tests.arrays import ArrayStream

Array = np.ndarray[Any, Any]


def data(n: int = 80, d: int = 12, seed: int = 0, noise: float = 1.0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) @ (np.eye(d) + 0.2 * rng.normal(size=(d, d))) + 1
    return X, X[:, 1] - 2 * X[:, 4] + X[:, 7] + noise * rng.normal(size=n)


def planted(seed: int, n: int = 500, d: int = 200) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    true = rng.choice(d, 10, replace=False)
    signal_part = X[:, true] @ rng.choice([-1.0, 1.0], 10)
    return X, signal_part + rng.normal(scale=signal_part.std() / 2, size=n), true


def labels_of(y: Array) -> Array:
    return np.array(["low", "mid", "high"])[np.digitize(y, np.quantile(y, [0.3, 0.7]))]


def row_errors(
    X: Array, Y: Array, train: Array, test: Array, support: Array, ridge: float, w: Array
) -> Array:
    """Weighted squared error of each held-out row of a ridge fit made by scikit-learn."""
    scaler = StandardScaler().fit(X[train], sample_weight=w[train])
    n = w[train].sum()
    # exactk standardises with n - 1, and its ridge is relative to the diagonal.
    Z = scaler.transform(X) * np.sqrt((n - 1) / n)
    model = Ridge(alpha=ridge * (n - 1)) if ridge else LinearRegression()
    model.fit(Z[train][:, support], Y[train], sample_weight=w[train])
    miss = Y[test] - model.predict(Z[test][:, support]).reshape(len(test), -1)
    return w[test] * (miss**2).sum(axis=1)


def fold_errors(
    X: Array, y: Array, pairs: Any, k_max: int, *, method: str = "exchange", ridge: float = 0.0,
    w: Array | None = None,
) -> Array:  # fmt: skip
    """Weighted squared error of every fold and size, of paths on the training rows alone."""
    w = np.ones(len(X)) if w is None else w
    is_text = y.dtype.kind == "U"
    Y = (y[:, None] == np.unique(y)).astype(float) if is_text else y[:, None]
    options: dict[str, Any] = {"effort": FOLD_EFFORT} if method == "exchange" else {}
    rows = []
    for train, test in pairs:
        own = Problem.from_arrays(X[train], y[train], sample_weight=w[train], ridge=ridge)
        path = solve_path(own, k_max, method, **options)
        rows.append([row_errors(X, Y, train, test, r.support, ridge, w).sum() for r in path])
    return np.array(rows)


@pytest.mark.parametrize("limit", [1, 2**30], ids=["rows", "moments"])
@pytest.mark.parametrize("kind", ["numbers", "classes", "weights"])
def test_errors_are_those_of_a_loop_over_the_rows(limit: int, kind: str) -> None:
    X, y = data()
    w = np.ones(len(X))
    if kind == "classes":
        y = labels_of(y)
    if kind == "weights":
        w = np.random.default_rng(1).integers(0, 3, len(X)).astype(float)
    problem = Problem.from_arrays(
        X, y, sample_weight=w if kind == "weights" else None, ridge=0.2, memory_limit=limit
    )
    choice = choose_k(problem, k_max=5, cv=4, random_state=3)
    pairs = deal_rows(problem, 4, np.random.default_rng(3))
    errors = fold_errors(X, y, pairs, 5, ridge=0.2, w=w)
    mean = errors.sum(axis=0) / w.sum()
    np.testing.assert_allclose(choice.table["mean"], mean, rtol=1e-8)
    # Each fold has its share in the mean, and the same share in the error of it.
    held = np.array([[w[test].sum()] for _, test in pairs])
    parts = (errors - held * mean) / w.sum()
    np.testing.assert_allclose(
        choice.table["standard_error"], np.sqrt(4 / 3 * (parts**2).sum(axis=0)), rtol=1e-7
    )
    assert choice.table["criterion"] == choice.table["mean"]
    assert choice.n_folds == 4


@pytest.mark.parametrize("limit", [1, 2**30], ids=["rows", "moments"])
@pytest.mark.parametrize(
    "splitter",
    [
        KFold(4, shuffle=True, random_state=0),
        RepeatedKFold(n_splits=3, n_repeats=2, random_state=0),
        ShuffleSplit(3, test_size=0.25, train_size=0.5, random_state=0),
    ],
    ids=["partition", "repeated", "overlapping"],
)
def test_splitters_pairs_and_masks(splitter: Any, limit: int) -> None:
    X, y = data()
    problem, pairs = Problem.from_arrays(X, y, memory_limit=limit), list(splitter.split(X))
    choice = choose_k(problem, k_max=4, cv=splitter)
    held = sum(len(test) for _, test in pairs)
    expected = fold_errors(X, y, pairs, 4).sum(axis=0) / held
    np.testing.assert_allclose(choice.table["mean"], expected, rtol=1e-8)
    assert choice.n_folds == splitter.get_n_splits()
    assert choose_k(problem, k_max=4, cv=iter(pairs)).table == choice.table
    masks = [tuple(np.isin(np.arange(len(X)), part) for part in pair) for pair in pairs]
    by_masks = choose_k(problem, k_max=4, cv=masks).table["mean"]
    np.testing.assert_allclose(by_masks, choice.table["mean"], rtol=1e-9)


@pytest.mark.parametrize("method", ["greedy", "fisher", "rfs"])
def test_other_methods(method: str) -> None:
    X, y = data()
    problem, cv = Problem.from_arrays(X, labels_of(y)), KFold(3)
    choice = choose_k(problem, k_max=4, method=method, cv=cv)
    errors = fold_errors(X, labels_of(y), cv.split(X), 4, method=method)
    np.testing.assert_allclose(choice.table["mean"], errors.sum(axis=0) / len(X), rtol=1e-8)
    path = solve_path(problem, 4, method)
    assert choice.result.support.tolist() == path.at(choice.k).support.tolist()
    assert choice.result.method == method


@pytest.mark.parametrize("limit", [1, 2**30], ids=["rows", "moments"])
@pytest.mark.parametrize(
    ("cv", "grouped"),
    [(None, True), (2, True), (KFold(4), False), (GroupKFold(2), True)],
    ids=["default", "number", "splitter", "group splitter"],
)
def test_rows_of_weight_zero_are_in_no_fold(cv: Any, grouped: bool, limit: int) -> None:
    X, y = data(n=60)
    w, groups = np.r_[np.zeros(20), np.ones(40)], np.repeat([0, 1, 2], 20)
    weighted = Problem.from_arrays(X, y, sample_weight=w, memory_limit=limit)
    plain = Problem.from_arrays(X[20:], y[20:], memory_limit=limit)
    one = choose_k(weighted, k_max=3, cv=cv, groups=groups if grouped else None)
    other = choose_k(plain, k_max=3, cv=cv, groups=groups[20:] if grouped else None)
    for name in ("mean", "standard_error"):
        np.testing.assert_allclose(one.table[name], other.table[name], rtol=1e-9)
    assert one.n_folds == other.n_folds


def test_nothing_of_one_fold_enters_another() -> None:
    problem = Problem.from_arrays(*data(noise=4.0))
    pairs = list(KFold(4).split(np.zeros(80)))
    forth, back = (
        choose_k(problem, k_max=5, cv=cv, random_state=np.random.default_rng(4))
        for cv in (pairs, pairs[::-1])
    )
    np.testing.assert_allclose(forth.table["mean"], back.table["mean"], rtol=1e-10)
    alone = [choose_k(problem, k_max=5, cv=[pair]).table["mean"] for pair in pairs]
    np.testing.assert_allclose(np.mean(alone, axis=0), forth.table["mean"], rtol=1e-10)


def test_the_rules() -> None:
    def pick(losses: list[float], errors: list[float], rule: str = "one_se") -> int:
        values, spread = np.array(losses), np.array(errors)
        sizes = list(range(2, 2 + len(losses)))
        return SizeScores(sizes, values, values, spread, spread).pick(rule)

    losses = [9.0, 5.4, 5.1, 5.0, 5.2]
    errors = [9.0, 9.0, 9.0, 0.5, 9.0]
    assert pick(losses, errors) == 3
    assert pick(losses, errors, "best") == 5
    assert pick(losses, [9.0, 9.0, 9.0, 0.1, 9.0]) == 4
    assert pick(losses, [9.0, 9.0, 9.0, 0.0, 9.0]) == 5
    assert pick(losses, [0.1, 0.1, 0.2, 0.0, 0.1], "paired") == 4
    assert pick(losses, [np.nan] * 5) == 5
    assert pick([3.0, 3.0], [np.nan] * 2, "best") == 2
    with pytest.raises(InputError) as error:
        pick([np.inf, np.inf], [np.nan] * 2)
    assert error.value.parameter == "criterion"


def test_the_paired_rule_uses_differences_within_folds() -> None:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(90, 12))
    y = X[:, :4] @ [2.0, 1.0, 0.5, 0.3] + rng.normal(size=90)
    problem = Problem.from_arrays(X, y, ridge=0.1)
    paired, plain, best = (
        choose_k(problem, k_max=8, rule=rule) for rule in ("paired", "one_se", "best")
    )
    errors = np.array([
        fold.errors(list(solve_path(fold.train, 8, effort=0))) / fold.weight
        for fold in Splits(problem, 5).folds(problem, np.random.default_rng(0))
    ])  # fmt: skip
    difference = errors - errors[:, [best.k - 1]]
    spread = difference.std(axis=0, ddof=1) / np.sqrt(5)
    assert paired.k == 1 + int(np.argmax(difference.mean(axis=0) <= spread))
    assert plain.k <= paired.k <= best.k


@pytest.mark.parametrize("criterion", ["cv", "ebic"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_planted_columns_are_counted(criterion: Any, seed: int) -> None:
    X, y, true = planted(seed)
    choice = choose_k(Problem.from_arrays(X, y), k_max=25, criterion=criterion)
    assert abs(choice.k - 10) <= 2
    assert len(set(choice.result.support) & set(true)) >= 8


@pytest.mark.parametrize("criterion", CRITERIA)
def test_a_criterion_decides_by_its_value(criterion: Any) -> None:
    X, y = data()
    problem = Problem.from_arrays(X, y)
    choice = choose_k(problem, criterion=criterion)
    values = criterion_values(problem, choice.path, criterion)
    assert choice.table["criterion"] == pytest.approx(values.tolist())
    assert choice.k == int(values.argmin()) + 1
    assert (choice.n_folds, choice.rule) == (0, "best")
    assert np.isnan(choice.table["mean"]).all()
    assert np.isnan(choice.table["standard_error"]).all()
    moments = Problem.from_moments(Moments.from_arrays(X, y[:, None]))
    assert choose_k(moments, criterion=criterion).k == choice.k


def test_the_result_is_no_worse_than_path_or_solve() -> None:
    problem = Problem.from_arrays(*data(n=60, d=30, noise=5.0), ridge=0.1)
    for k_max in (4, 9):
        choice = choose_k(problem, k_max=k_max, criterion="bic")
        path = solve_path(problem, k_max)
        assert choice.result.objective <= path.at(choice.k).objective * (1 + 1e-12)
        assert choice.result.objective <= solve(problem, choice.k).objective * (1 + 1e-12)
        assert choice.path.at(choice.k) is choice.result


def test_the_table_and_the_other_forms_of_the_result() -> None:
    names = [f"c{j}" for j in range(12)]
    choice = choose_k(Problem.from_arrays(*data(noise=3.0), feature_names=names), k_max=8)
    before: set[str] = set()
    for row, result in zip(choice.table, choice.path, strict=True):
        assert row["features"] == list(result.feature_names)
        assert row["support"] == result.support.tolist()
        assert row["objective"] == result.objective
        assert set(row["added"]) == set(row["features"]) - before
        assert set(row["removed"]) == before - set(row["features"])
        before = set(row["features"])
    assert choice.table["chosen"] == [k == choice.k for k in range(1, 9)]
    content = json.loads(choice.to_json())
    assert content["k"] == choice.k
    assert Result.from_dict(content["result"]) == choice.result
    assert content["table"][2]["features"] == choice.table[2]["features"]
    assert choice.to_frame()["k"].tolist() == list(range(1, 9))
    assert "<table>" in choice._repr_html_()
    ax = choice.plot()
    assert ax.get_xlabel() == "number of features k"
    ax.figure.clear()


def test_the_table_names_groups_as_the_result_does() -> None:
    names = [f"c{j}" for j in range(12)]
    problem = Problem.from_arrays(*data(), feature_names=names).with_constraints(
        feature_groups={"pair": ["c4", "c9"], "other": ["c2", "c3"]}
    )
    choice = choose_k(problem, k_max=4, criterion="bic")
    # In the order of the table, a group where its first column stands.
    place = {**{name: j for j, name in enumerate(names)}, "pair": 4, "other": 2}
    for row, result in zip(choice.table, choice.path, strict=True):
        assert row["features"] == sorted(result.selected, key=place.__getitem__)
        assert len(row["features"]) == row["k"]
    assert "pair" in choice.table[3]["features"]


def test_the_default_largest_size() -> None:
    def largest(n: int, d: int, cv: Any = None) -> int:
        rng = np.random.default_rng(0)
        problem = Problem.from_arrays(rng.normal(size=(n, d)), rng.normal(size=n))
        return largest_size(problem, None, Splits(problem, cv).smallest_training)

    assert largest(500, 200) == 50
    assert largest(500, 20) == 20
    # 40 training rows.
    assert largest(50, 200) == 19
    assert largest(50, 200, 2) == 12
    assert largest(3, 200) == 1
    X, y = data()
    X[:, 3] = 2 * X[:, 2]
    assert choose_k(Problem.from_arrays(X, y)).k_max == 11
    kept = Problem.from_arrays(X[:6], y[:6]).with_rules(Rules(include=(0, 1, 2, 5), exclude=(6,)))
    assert largest_size(kept) == 4
    few, many = (choose_k(Problem.from_arrays(X, y), k_max=k_max) for k_max in (12, 50))
    assert many.k_max == 12
    assert many.table == few.table


def test_the_message_says_that_the_largest_size_is_the_best() -> None:
    problem = Problem.from_arrays(*data())
    assert "largest" in choose_k(problem, k_max=2).message
    assert choose_k(problem, k_max=8).message == ""


@pytest.mark.parametrize(
    ("scoring", "estimator", "model"),
    [
        ("accuracy", None, make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))),
        (None, KNeighborsClassifier(3), KNeighborsClassifier(3)),
        ("r2", None, make_pipeline(StandardScaler(), Ridge())),
    ],
    ids=["logistic", "own", "ridge"],
)
def test_a_score_is_that_of_cross_val_score(scoring: Any, estimator: Any, model: Any) -> None:
    X, numbers = data(noise=2.0)
    y = numbers if scoring == "r2" else labels_of(numbers)
    # Columns that must be in leave nothing to choose: the same in all folds.
    fixed = Problem.from_arrays(X, y).with_rules(Rules(include=(1, 4)))
    splitter = KFold(5, shuffle=True, random_state=2)
    choice = choose_k(fixed, k_max=2, cv=splitter, scoring=scoring, estimator=estimator)
    expected = cross_val_score(model, X[:, [1, 4]], y, cv=splitter, scoring=scoring)
    assert choice.table["mean"] == pytest.approx([expected.mean()])
    assert choice.table["standard_error"] == pytest.approx([expected.std(ddof=1) / np.sqrt(5)])
    assert choice.scoring == (scoring or "score")


def test_columns_are_chosen_anew_in_each_fold_before_they_are_scored() -> None:
    X, y = data(noise=3.0)
    choice = choose_k(X, y, ridge=0, k_max=4, cv=KFold(4), scoring="r2", rule="best")
    model, scores = make_pipeline(StandardScaler(), Ridge()), []
    for train, test in KFold(4).split(X):
        path = solve_path(Problem.from_arrays(X[train], y[train]), 4, effort=0)
        columns = [X[:, r.support] for r in path]
        scores.append([r2_score(y[test], model.fit(Z[train], y[train]).predict(Z[test]))
                       for Z in columns])  # fmt: skip
    means = np.mean(scores, axis=0)
    np.testing.assert_allclose(choice.table["mean"], means, rtol=1e-9)
    assert choice.k == int(means.argmax()) + 1


def test_whole_weights_are_repeated_rows_for_scores_too() -> None:
    X, y = data(noise=2.0)
    labels, w = labels_of(y), np.random.default_rng(0).integers(0, 3, len(X))
    rows = np.repeat(np.arange(len(X)), w)
    pairs = list(KFold(3).split(X))
    repeated = [tuple(np.flatnonzero(np.isin(rows, part)) for part in pair) for pair in pairs]
    weighted = Problem.from_arrays(X, labels, sample_weight=w, ridge=0.1)
    plain = Problem.from_arrays(X[rows], labels[rows], ridge=0.1)
    one = choose_k(weighted, k_max=4, cv=pairs, scoring="accuracy")
    other = choose_k(plain, k_max=4, cv=repeated, scoring="accuracy")
    assert one.table["support"] == other.table["support"]
    for name in ("mean", "standard_error"):
        np.testing.assert_allclose(one.table[name], other.table[name], rtol=1e-5)


def test_class_weights_select_and_do_not_score() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 6))
    y = (X[:, 0] + 1.5 * rng.normal(size=150) > 1.5).astype(int)
    folds = KFold(3, shuffle=True, random_state=0)
    balanced = Problem.from_arrays(X, y, class_weight="balanced")
    choice = choose_k(balanced, k_max=6, scoring="accuracy", estimator="knn", cv=folds)
    knn = make_pipeline(StandardScaler(), KNeighborsClassifier())
    # With all columns there is nothing to choose.
    assert choice.table["mean"][-1] == pytest.approx(cross_val_score(knn, X, y, cv=folds).mean())


def test_a_stream_is_cross_validated_by_moments_or_read_for_methods_of_rows() -> None:
    X, y = data(n=400, noise=2.0)
    problem = Problem.from_stream(ArrayStream(X, y, None, n_parts=3))
    choice = choose_k(problem, k_max=6)
    assert choice.result.support.tolist() == [1, 4, 7]
    wrong: dict[str, Any] = {"scoring": "r2", "cv": KFold(3), "groups": np.zeros(400)}
    for name, value in wrong.items():
        with pytest.raises(InputError) as error:
            choose_k(problem, k_max=3, **{name: value})
        assert error.value.parameter == name
    classes = Problem.from_stream(ArrayStream(X, labels_of(y), None, n_parts=2))
    read = choose_k(classes, k_max=3, method="rfs", cv=3)
    assert read.table == choose_k(classes.in_memory(), k_max=3, method="rfs", cv=3).table


def test_effort_is_that_of_the_search_on_all_rows() -> None:
    problem = Problem.from_arrays(*data(n=60, d=40, noise=6.0), ridge=0.1)
    options: Any = {"k_max": 12, "criterion": "bic", "random_state": 1}
    given = choose_k(problem, effort=3, **options)
    assert given.table == choose_k(problem, method=Exchange(effort=3), **options).table
    assert (
        given.path.objectives.sum() <= choose_k(problem, effort=0, **options).path.objectives.sum()
    )
    with pytest.raises(UnknownOptionError):
        choose_k(problem, method="greedy", effort=1)


def test_ridge() -> None:
    problem = Problem.from_arrays(*data(noise=4.0), ridge=0.7)
    assert choose_k(problem, k_max=3).ridge == 0.7
    assert choose_k(problem, k_max=3, ridge=0.2).result.ridge == 0.2
    assert choose_k(problem, k_max=3, ridge="auto").ridge == problem.with_ridge("auto").ridge
    for cv in (4, KFold(4)):
        in_all_fits = choose_k(problem.with_ridge(5.0), k_max=3, cv=cv).table
        assert choose_k(problem, k_max=3, cv=cv, ridge=5.0).table == in_all_fits
    assert choose_k(problem, k_max=3, ridge="cv").ridge == problem.with_ridge("cv", 3).ridge


def test_a_table_is_asked_as_a_problem_is() -> None:
    X, y = data(noise=3.0)
    frame, w = pd.DataFrame(X).add_prefix("c"), np.linspace(0.5, 2, 80)
    table: dict[str, Any] = {"sample_weight": w, "constraints": {"exclude": ["c4"]}}
    problem = Problem.from_arrays(frame, y, sample_weight=w).with_constraints(exclude=["c4"])
    choice = choose_k(frame, y, k_max=4, **table)
    assert choice.table == choose_k(problem, k_max=4, ridge="auto").table
    assert choice.ridge == problem.with_ridge("auto").ridge
    classes = choose_k(frame, labels_of(y), k_max=3, loss="logistic", class_weight="balanced")
    assert classes.result.loss == "logistic"
    given = AutoK(k_max=4, criterion="bic").get_params(deep=False)
    assert choose_k(X, y, **given).table == choose_k(X, y, k_max=4, criterion="bic").table


def test_a_column_that_is_constant_in_a_fold() -> None:
    X, y = data(n=20)
    X = X[:, :3]
    X[:, 1] = 0.0
    X[4, 1] = 1.0
    choice = choose_k(Problem.from_arrays(X, y), k_max=3)
    assert choice.table["k"] == [1, 2]
    assert len(choice.path) == 3


def test_constraints_that_a_fold_cannot_keep() -> None:
    X, y = data(n=60)
    X[:, 3] = np.arange(60) < 5
    problem = Problem.from_arrays(X, y, feature_names=[f"c{j}" for j in range(12)])
    pairs = [(np.arange(5, 60), np.arange(5)), (np.arange(50), np.arange(50, 60))]
    one = problem.with_constraints(quotas={"fam": {"columns": ["c3"], "at_least": 1}})
    with pytest.raises(InputError, match="feasible in every fold") as error:
        choose_k(one, k_max=3, cv=pairs)
    assert error.value.parameter == "constraints"
    # The message suggests this.
    assert choose_k(one, k_max=3, criterion="ebic").k <= 3
    # If the fold has another of the family, it is feasible.
    either = problem.with_constraints(quotas={"fam": {"columns": ["c3", "c5"], "at_least": 1}})
    assert choose_k(either, k_max=3, cv=pairs).table["k"] == [1, 2, 3]


def test_constraints_hold_at_every_size() -> None:
    problem = Problem.from_arrays(*data()).with_rules(Rules(include=(0, 2), exclude=(4,)))
    choice = choose_k(problem, k_max=5)
    assert choice.table["k"] == [2, 3, 4, 5]
    for row in choice.table:
        assert {0, 2} <= set(row["support"])
        assert 4 not in row["support"]
    with pytest.raises(InputError):
        choose_k(problem, k_max=1)


def test_only_the_size_that_is_chosen_deserves_a_warning() -> None:
    X, y = data()
    X[:, 6:] = X[:, :2] @ np.random.default_rng(1).normal(size=(2, 6))
    problem = Problem.from_arrays(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        choice = choose_k(problem, k_max=10, criterion="ebic")
    assert choice.k <= 6
    assert choice.path[-1].status == Status.RANK_DEFICIENT


def test_perfect_data_take_the_smallest() -> None:
    choice = choose_k(Problem.from_arrays(*data(noise=0.0)), k_max=6, rule="best")
    assert choice.k == 3


def test_a_time_limit_is_for_all_of_it() -> None:
    X, y, _ = planted(0, n=200, d=100)
    choice = choose_k(Problem.from_arrays(X, y), k_max=12, time_limit=1e-6)
    assert choice.status == Status.TIME_LIMIT
    assert len(choice.table) == 12
    calm = choose_k(Problem.from_arrays(*data()), k_max=3, time_limit=600)
    assert calm.status == Status.CONVERGED


def test_the_same_seed_the_same_choice() -> None:
    problem = Problem.from_arrays(*data(noise=4.0))
    chosen = partial(choose_k, problem, k_max=6)
    assert chosen().table == chosen().table
    assert chosen(random_state=1).table == chosen(random_state=1).table
    assert chosen(random_state=1).table["mean"] != chosen(random_state=2).table["mean"]


class CtrlC(Method):
    """The best single columns, size by size; at a given run the user presses Ctrl-C."""

    presses = 0

    def __init__(self, at: int = 1) -> None:
        self.at = at

    def run(self, problem: Problem, k: int, monitor: Any) -> Answer:
        CtrlC.presses += 1
        if CtrlC.presses == self.at:
            signal.raise_signal(signal.SIGINT)
        return Answer(problem.by_relevance[:k].tolist(), Status.CONVERGED, 1)


@pytest.fixture
def stopped() -> Iterator[Callable[..., Any]]:
    """A choice of at most four sizes in three folds; each size of each path is one run."""

    def choose(at: int, **options: Any) -> Any:
        CtrlC.presses = 0
        return choose_k(problem, k_max=4, method=CtrlC(at), **options)

    problem = Problem.from_arrays(*data(noise=3.0))
    yield choose
    CtrlC.presses = 0


def test_ctrl_c_before_anything_was_found(stopped: Callable[..., Any]) -> None:
    for options in ({"cv": 3}, {"criterion": "bic"}):
        with pytest.raises(KeyboardInterrupt):
            stopped(1, **options)
    with pytest.raises(KeyboardInterrupt):
        solve_path(Problem.from_arrays(*data()), 3, CtrlC(CtrlC.presses + 1))


def test_ctrl_c_in_the_path_on_all_rows(stopped: Callable[..., Any]) -> None:
    choice = stopped(3, cv=3)
    # No fold was searched, so nothing is known of the sizes but their features.
    assert CtrlC.presses == 3
    assert choice.status == Status.INTERRUPTED
    assert choice.path.sizes == choice.table["k"] == [1, 2]
    assert (choice.k, choice.n_folds, choice.is_chosen) == (2, 0, False)
    assert not any(choice.table["chosen"])
    assert "cv" not in repr(choice)
    assert np.isnan(choice.table["criterion"]).all()
    assert "Ctrl-C" in choice.message
    by_criterion, whole = stopped(4, criterion="bic"), stopped(0, criterion="bic")
    assert by_criterion.status == Status.INTERRUPTED
    assert by_criterion.is_chosen
    assert by_criterion.table["criterion"] == whole.table["criterion"][:3]


def test_ctrl_c_in_a_fold_leaves_the_folds_before_it(stopped: Callable[..., Any]) -> None:
    # Four runs on all rows, four in each of two folds, and the second of the third fold.
    choice = stopped(14, cv=list(KFold(3).split(np.zeros(80))))
    assert CtrlC.presses == 14
    assert (choice.status, choice.n_folds) == (Status.INTERRUPTED, 2)
    assert "2 of 3" in choice.message
    two = stopped(0, cv=list(KFold(3).split(np.zeros(80)))[:2])
    assert two.status == Status.CONVERGED
    assert choice.k == two.k
    for name in ("mean", "standard_error"):
        np.testing.assert_allclose(choice.table[name], two.table[name], rtol=1e-9)
    assert json.loads(choice.to_json())["status"] == "interrupted"
    nothing = stopped(5, cv=3)
    assert (nothing.n_folds, nothing.k, nothing.path.sizes) == (0, 4, [1, 2, 3, 4])


def test_ctrl_c_while_sizes_are_scored() -> None:
    calls = []

    def score(model: Any, X: Array, y: Array) -> float:
        calls.append(len(X))
        if len(calls) == 10:
            signal.raise_signal(signal.SIGINT)
        return float(model.score(X, y))

    problem = Problem.from_arrays(*data(noise=3.0))
    choice = choose_k(problem, k_max=4, cv=5, scoring=score)
    assert (choice.status, choice.n_folds) == (Status.INTERRUPTED, 2)
    assert len(calls) == 10
    assert np.isfinite(choice.table["mean"]).all()


@pytest.mark.parametrize("found", [True, False])
def test_ctrl_c_while_the_chosen_size_is_searched_longer(
    monkeypatch: pytest.MonkeyPatch, found: bool
) -> None:
    run = Exchange.run

    def pressed(self: Exchange, problem: Problem, k: int, monitor: Any) -> Answer:
        if not found:
            signal.raise_signal(signal.SIGINT)
        answer = run(self, problem, k, monitor)
        return Answer(answer.support, Status.INTERRUPTED, answer.n_iter)

    problem = Problem.from_arrays(*data(noise=3.0))
    whole = choose_k(problem, k_max=6)
    monkeypatch.setattr(Exchange, "run", pressed)
    choice = choose_k(problem, k_max=6)
    assert choice.status == Status.INTERRUPTED
    assert choice.n_folds == 5
    assert (choice.k, choice.table["mean"]) == (whole.k, whole.table["mean"])


class Answers(CtrlC):
    """Answers Ctrl-C itself."""

    def run(self, problem: Problem, k: int, monitor: Any) -> Answer:
        try:
            return super().run(problem, k, monitor)
        except KeyboardInterrupt:
            return Answer(problem.by_relevance[:k].tolist(), Status.INTERRUPTED, 1)


def test_a_method_that_answers_ctrl_c_itself_ends_the_path() -> None:
    CtrlC.presses = 0
    path = solve_path(Problem.from_arrays(*data()), 5, Answers(2))
    assert path.sizes == [1, 2]
    assert path[-1].status == Status.INTERRUPTED


@pytest.mark.parametrize(
    ("parameter", "options"),
    [
        ("k_max", {"k_max": 0}),
        ("criterion", {"criterion": "aic"}),
        ("scoring", {"criterion": "bic", "scoring": "r2"}),
        ("estimator", {"criterion": "bic", "estimator": "ridge"}),
        ("cv", {"criterion": "bic", "cv": 3}),
        ("groups", {"criterion": "bic", "groups": np.arange(80)}),
        ("method", {"method": 42}),
        ("ridge", {"ridge": "none"}),
        ("y", {"y": np.arange(80)}),
    ],
)  # fmt: skip
def test_bad_input_is_named(parameter: str, options: dict[str, Any]) -> None:
    problem = Problem.from_arrays(*data())
    with pytest.raises(InputError) as error:
        choose_k(problem, **options)
    assert error.value.parameter == parameter


def test_a_problem_without_rows() -> None:
    X, y = data()
    moments = Problem.from_moments(Moments.from_arrays(X, y[:, None]))
    with pytest.raises(InputError) as error:
        choose_k(moments)
    assert error.value.parameter == "criterion"
    # The message suggests this.
    assert "criterion='ebic'" in str(error.value)
    assert choose_k(moments, criterion="ebic").k == 3
