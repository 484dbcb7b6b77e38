"""The choice of k: against loops over rows with scikit-learn, planted data, and what it refuses."""

from __future__ import annotations

import json
import signal
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.metrics import make_scorer, r2_score
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    RepeatedKFold,
    ShuffleSplit,
    StratifiedKFold,
    cross_val_score,
)
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from exactk import Moments, Problem, Result, Status, choose_k, score_selection, solve, solve_path
from exactk.model_selection import path_runner
from exactk.model_selection.choose_k import largest_size, pick_size
from exactk.model_selection.criteria import CRITERIA, criterion_values
from exactk.model_selection.cross_validation import Splits, folds_of, make_folds
from exactk.problem.constraints import Rules
from tests.arrays import ArrayStream
from tests.support import says

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
    # exactk standardises with n − 1, and its ridge is relative to the diagonal.
    Z = scaler.transform(X) * np.sqrt((n - 1) / n)
    model = Ridge(alpha=ridge * (n - 1)) if ridge else LinearRegression()
    model.fit(Z[train][:, support], Y[train], sample_weight=w[train])
    miss = Y[test] - model.predict(Z[test][:, support]).reshape(len(test), -1)
    return w[test] * (miss**2).sum(axis=1)


@pytest.mark.parametrize("limit", [1, 2**30], ids=["rows", "moments"])
@pytest.mark.parametrize("kind", ["numbers", "classes", "weights"])
def test_errors_are_those_of_a_loop_over_the_rows(limit: int, kind: str) -> None:
    X, y = data()
    w = np.ones(len(X))
    Y = y[:, None]
    if kind == "classes":
        y = labels_of(y)
        Y = (y[:, None] == np.unique(y)).astype(float)
    if kind == "weights":
        w = np.random.default_rng(1).integers(0, 3, len(X)).astype(float)
    problem = Problem.from_arrays(
        X, y, sample_weight=w if kind == "weights" else None, ridge=0.2, memory_limit=limit
    )
    choice = choose_k(problem, 5, cv=4, random_state=3)
    sums, per_fold, held = np.zeros(5), [], []
    for fold in make_folds(problem, 4, np.random.default_rng(3)):
        train = np.setdiff1d(np.flatnonzero(w), fold.held_out)
        path = solve_path(fold.train, 5, effort=path_runner.FOLD_EFFORT)
        each = [row_errors(X, Y, train, fold.held_out, r.support, 0.2, w).sum() for r in path]
        sums += each
        held.append(w[fold.held_out].sum())
        per_fold.append(np.array(each) / held[-1])
    np.testing.assert_allclose(choice.table["mean"], sums / w.sum(), rtol=1e-8)
    # Each fold has its share in the mean, and the same share in the error of it.
    shares = np.array(held)[:, None] / w.sum()
    parts = shares * (np.array(per_fold) - sums / w.sum())
    np.testing.assert_allclose(
        choice.table["standard_error"], np.sqrt(4 / 3 * (parts**2).sum(axis=0)), rtol=1e-7
    )
    if kind != "weights":
        plain = np.std(per_fold, axis=0, ddof=1) / 2
        np.testing.assert_allclose(choice.table["standard_error"], plain, rtol=1e-7)
    assert choice.table["criterion"] == choice.table["mean"]
    assert choice.n_folds == 4


def test_training_moments_agree_with_recomputed_ones() -> None:
    X, y = data(n=101, d=9)
    problem = Problem.from_arrays(X * 10.0 ** np.arange(-4, 5), y)
    for fold in make_folds(problem, 5, np.random.default_rng(0)):
        again = Moments.from_arrays(np.asarray(X * 10.0 ** np.arange(-4, 5))[fold.trained_on],
                                    y[fold.trained_on, None])  # fmt: skip
        size = np.sqrt(np.diagonal(again.xx))
        gram = fold.train.gram.whole() / np.outer(fold.train.x_scale, fold.train.x_scale)
        assert np.abs((gram - again.xx) / np.outer(size, size)).max() < 1e-10
        np.testing.assert_allclose(fold.train.x_mean, again.x_mean, rtol=1e-10)


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
def test_splitters(splitter: Any, limit: int) -> None:
    X, y = data()
    problem = Problem.from_arrays(X, y, memory_limit=limit)
    choice = choose_k(problem, 4, cv=splitter)
    total, weight, one = np.zeros(4), 0.0, np.ones(len(X))
    for train, test in splitter.split(X):
        own = solve_path(Problem.from_arrays(X[train], y[train]), 4, effort=0)
        total += [row_errors(X, y[:, None], train, test, r.support, 0.0, one).sum() for r in own]
        weight += len(test)
    np.testing.assert_allclose(choice.table["mean"], total / weight, rtol=1e-8)
    assert choice.n_folds == splitter.get_n_splits()
    pairs = list(splitter.split(X))
    assert choose_k(problem, 4, cv=iter(pairs)).table == choice.table
    masks = [tuple(np.isin(np.arange(len(X)), part) for part in pair) for pair in pairs]
    assert choose_k(problem, 4, cv=masks).table["k"] == choice.table["k"]


def test_repeated_training_rows_count_twice() -> None:
    X, y = data(n=40)
    train, test = np.r_[0:30, 0:10], np.arange(30, 40)
    for limit in (1, 2**30):
        problem = Problem.from_arrays(X, y, memory_limit=limit)
        [fold] = folds_of(problem, [(train, test)])
        expected = Problem.from_arrays(X[train], y[train])
        assert fold.train.objective([1, 4]) == pytest.approx(expected.objective([1, 4]), rel=1e-9)


def test_groups_stay_together() -> None:
    X, y = data()
    groups = np.repeat(np.arange(16), 5)
    problem = Problem.from_arrays(X, y)
    by_number = choose_k(problem, 3, cv=4, groups=groups)
    by_splitter = choose_k(problem, 3, cv=GroupKFold(4), groups=groups)
    assert by_number.table == by_splitter.table
    assert by_number.table != choose_k(problem, 3, cv=4).table
    for fold in Splits(problem, 4, groups).folds(problem, np.random.default_rng(0)):
        assert not set(groups[fold.held_out]) & set(groups[fold.trained_on])  # type: ignore[attr-defined]
    assert Splits(problem, None, np.repeat([0, 1, 2], [20, 30, 30])).n_folds == 3


def test_more_folds_than_groups() -> None:
    problem = Problem.from_arrays(*data(n=60))
    groups = np.arange(60) % 3
    with says("cv=10", "groups has 3", "cv=3"):
        choose_k(problem, 3, cv=10, groups=groups)
    assert choose_k(problem, 3, groups=groups).n_folds == 3


@pytest.mark.parametrize("limit", [1, 2**30], ids=["rows", "moments"])
@pytest.mark.parametrize(
    ("cv", "grouped"),
    [(None, True), (2, True), (KFold(4), False), (GroupKFold(2), True)],
    ids=["default", "number", "splitter", "group splitter"],
)
def test_rows_of_weight_zero_are_not_dealt_out(cv: Any, grouped: bool, limit: int) -> None:
    X, y = data(n=60)
    w, groups = np.r_[np.zeros(20), np.ones(40)], np.repeat([0, 1, 2], 20)
    weighted = Problem.from_arrays(X, y, sample_weight=w, memory_limit=limit)
    plain = Problem.from_arrays(X[20:], y[20:], memory_limit=limit)
    one = choose_k(weighted, 3, cv=cv, groups=groups if grouped else None)
    other = choose_k(plain, 3, cv=cv, groups=groups[20:] if grouped else None)
    np.testing.assert_allclose(one.table["mean"], other.table["mean"], rtol=1e-9)
    np.testing.assert_allclose(
        one.table["standard_error"], other.table["standard_error"], rtol=1e-9
    )
    assert one.n_folds == other.n_folds


def test_the_standard_error_of_folds_of_different_size() -> None:
    X, y = data(noise=3.0)
    parts = np.split(np.random.default_rng(0).permutation(80), [45, 70])
    pairs = [(np.setdiff1d(np.arange(80), part), np.sort(part)) for part in parts]
    choice = choose_k(Problem.from_arrays(X, y), 3, cv=pairs)
    errors = []
    for train, test in pairs:
        path = solve_path(Problem.from_arrays(X[train], y[train]), 3, effort=0)
        one = np.ones(80)
        errors.append(
            [row_errors(X, y[:, None], train, test, r.support, 0.0, one).mean() for r in path]
        )
    for column, mean, spread in zip(
        zip(*errors, strict=True), choice.table["mean"], choice.table["standard_error"],
        strict=True,
    ):  # fmt: skip
        a, b, c = column
        expected = (45 * a + 25 * b + 10 * c) / 80
        assert mean == pytest.approx(expected)
        squares = (45 * (a - mean)) ** 2 + (25 * (b - mean)) ** 2 + (10 * (c - mean)) ** 2
        assert spread == pytest.approx((squares * 3 / 2) ** 0.5 / 80)


def test_nothing_of_one_fold_enters_another() -> None:
    X, y = data(noise=4.0)
    problem = Problem.from_arrays(X, y)
    pairs = list(KFold(4).split(X))
    forth = choose_k(problem, 5, cv=pairs)
    back = choose_k(problem, 5, cv=pairs[::-1])
    np.testing.assert_allclose(forth.table["mean"], back.table["mean"], rtol=1e-10)
    alone = [choose_k(problem, 5, cv=[pair]).table["mean"] for pair in pairs]
    np.testing.assert_allclose(np.mean(alone, axis=0), forth.table["mean"], rtol=1e-10)


def test_a_generator_does_not_go_from_fold_to_fold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(path_runner, "FOLD_EFFORT", 1.0)
    X, y = data(n=60, d=20, noise=5.0)
    problem, pairs = Problem.from_arrays(X, y), list(KFold(3).split(X))
    forth = choose_k(problem, 6, cv=pairs, random_state=np.random.default_rng(4))
    back = choose_k(problem, 6, cv=pairs[::-1], random_state=np.random.default_rng(4))
    np.testing.assert_allclose(forth.table["mean"], back.table["mean"], rtol=1e-10)


def test_one_standard_error() -> None:
    sizes, losses = [2, 3, 4, 5, 6], [9.0, 5.4, 5.1, 5.0, 5.2]
    errors = [9.0, 9.0, 9.0, 0.5, 9.0]
    assert pick_size(sizes, losses, errors, "one_se") == 3
    assert pick_size(sizes, losses, errors, "best") == 5
    errors[3] = 0.1
    assert pick_size(sizes, losses, errors, "one_se") == 4
    errors[3] = 0.0
    assert pick_size(sizes, losses, errors, "one_se") == 5
    assert pick_size(sizes, losses, [np.nan] * 5, "one_se") == 5
    assert pick_size([1, 2], [3.0, 3.0], [np.nan] * 2, "best") == 1
    with says("too few rows", "criterion='ebic'"):
        pick_size([1, 2], [np.inf, np.inf], [np.nan] * 2, "best")


@pytest.mark.parametrize("criterion", ["cv", "ebic"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_planted_columns_are_counted(criterion: str, seed: int) -> None:
    X, y, true = planted(seed)
    choice = choose_k(Problem.from_arrays(X, y), 25, criterion=criterion)
    assert abs(choice.k - 10) <= 2
    assert len(set(choice.result.support) & set(true)) >= 8


@pytest.mark.parametrize("criterion", CRITERIA)
def test_a_criterion_decides_by_its_value(criterion: str) -> None:
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
    X, y = data(n=60, d=30, noise=5.0)
    problem = Problem.from_arrays(X, y, ridge=0.1)
    for k_max in (4, 9):
        choice = choose_k(problem, k_max, criterion="bic")
        path = solve_path(problem, k_max)
        assert choice.result.objective <= path.at(choice.k).objective * (1 + 1e-12)
        assert choice.result.objective <= solve(problem, choice.k).objective * (1 + 1e-12)
        assert choice.path.at(choice.k) is choice.result
        row = choice.table[choice.table["k"].index(choice.k)]
        assert row["support"] == choice.result.support.tolist()
        assert row["objective"] == choice.result.objective


def test_the_table_says_what_came_and_went() -> None:
    X, y = data(noise=3.0)
    names = [f"c{j}" for j in range(12)]
    choice = choose_k(Problem.from_arrays(X, y, feature_names=names), 8)
    before: set[str] = set()
    for row, result in zip(choice.table, choice.path, strict=True):
        assert row["features"] == list(result.feature_names)
        assert row["support"] == result.support.tolist()
        assert row["objective"] == result.objective
        assert set(row["added"]) == set(row["features"]) - before
        assert set(row["removed"]) == before - set(row["features"])
        before = set(row["features"])
    assert choice.table["chosen"] == [k == choice.k for k in range(1, 9)]
    assert choice.table["k"] == list(range(1, 9))
    content = json.loads(choice.to_json())
    assert content["k"] == choice.k
    assert Result.from_dict(content["result"]) == choice.result
    assert content["table"][2]["features"] == choice.table[2]["features"]
    assert content["status"] == str(choice.status)


def test_the_table_speaks_of_groups_as_the_result_does() -> None:
    X, y = data()
    names = [f"c{j}" for j in range(12)]
    problem = Problem.from_arrays(X, y, feature_names=names).with_constraints(
        feature_groups={"pair": ["c4", "c9"], "other": ["c2", "c3"]}
    )
    choice = choose_k(problem, 4, criterion="bic")
    before: set[str] = set()
    for row, result in zip(choice.table, choice.path, strict=True):
        assert sorted(row["features"]) == sorted(result.selected)
        assert len(row["features"]) == row["k"]
        assert set(row["added"]) == set(row["features"]) - before
        assert set(row["removed"]) == before - set(row["features"])
        before = set(row["features"])
    assert "pair" in before
    # In the order of the table, a group where its first column stands.
    place = {**{name: j for j, name in enumerate(names)}, "pair": 4, "other": 2}
    assert all(row["features"] == sorted(row["features"], key=place.get) for row in choice.table)  # type: ignore[arg-type]


def test_the_default_largest_size() -> None:
    def largest(n: int, d: int, cv: Any = None) -> int:
        rng = np.random.default_rng(0)
        problem = Problem.from_arrays(rng.normal(size=(n, d)), rng.normal(size=n))
        return largest_size(problem, None, Splits(problem, cv))

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
    assert largest_size(kept, None) == 4


def test_a_score_is_that_of_cross_val_score() -> None:
    X, y = data(noise=2.0)
    labels = labels_of(y)
    problem = Problem.from_arrays(X, labels)
    # Columns that must be in leave nothing to choose: the same in all folds.
    fixed = problem.with_rules(Rules(include=(1, 4)))
    splitter = KFold(5, shuffle=True, random_state=2)
    choice = choose_k(fixed, 2, cv=splitter, scoring="accuracy")
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    expected = cross_val_score(model, X[:, [1, 4]], labels, cv=splitter, scoring="accuracy")
    assert choice.table["mean"] == pytest.approx([expected.mean()])
    assert choice.table["standard_error"] == pytest.approx([expected.std(ddof=1) / np.sqrt(5)])
    assert choice.scoring == "accuracy"

    near = KNeighborsClassifier(3)
    choice = choose_k(fixed, 2, cv=splitter, estimator=near)
    expected = cross_val_score(near, X[:, [1, 4]], labels, cv=splitter)
    assert choice.table["mean"] == pytest.approx([expected.mean()])

    numbers = Problem.from_arrays(X, y).with_rules(Rules(include=(1, 4)))
    choice = choose_k(numbers, 2, cv=splitter, scoring="r2")
    model = make_pipeline(StandardScaler(), Ridge())
    expected = cross_val_score(model, X[:, [1, 4]], y, cv=splitter, scoring="r2")
    assert choice.table["mean"] == pytest.approx([expected.mean()])


def test_estimators_by_name_are_those_of_score_selection() -> None:
    X, y = data(noise=2.0)
    fixed = Problem.from_arrays(X, y).with_rules(Rules(include=(1, 4)))
    splitter = KFold(4, shuffle=True, random_state=2)
    for name in (None, "knn"):
        choice = choose_k(fixed, 2, cv=splitter, scoring="r2", estimator=name)
        score = score_selection(
            fixed, k=2, cv=splitter, scoring="r2", estimator=name, n_permutations=0
        )
        assert choice.table["mean"] == pytest.approx([score.test_score])
        assert choice.table["standard_error"] == pytest.approx([score.standard_error])
    made = make_scorer(r2_score)
    assert choose_k(fixed, 2, scoring=made).scoring == "r2_score"
    assert score_selection(fixed, k=2, scoring=made, n_permutations=0).scoring == "r2_score"
    with says("estimator", "class Ridge"):
        choose_k(fixed, 2, estimator=Ridge)


def test_columns_are_chosen_anew_in_each_fold_before_they_are_scored() -> None:
    X, y = data(noise=3.0)
    problem = Problem.from_arrays(X, y)
    splitter = KFold(4)
    choice = choose_k(problem, 4, cv=splitter, scoring="neg_mean_absolute_error", rule="best")
    scores = []
    for train, test in splitter.split(X):
        path = solve_path(Problem.from_arrays(X[train], y[train]), 4, effort=0)
        scores.append(
            [
                -np.abs(
                    y[test]
                    - make_pipeline(StandardScaler(), Ridge())
                    .fit(X[train][:, r.support], y[train])
                    .predict(X[test][:, r.support])
                ).mean()
                for r in path
            ]
        )  # fmt: skip
    means = np.mean(scores, axis=0)
    np.testing.assert_allclose(choice.table["mean"], means, rtol=1e-9)
    # The larger the better.
    assert choice.k == int(means.argmax()) + 1


@pytest.mark.parametrize("estimator", [None, LogisticRegression(max_iter=1000)])
def test_weighted_scores_are_those_of_repeated_rows(estimator: Any) -> None:
    X, y = data(noise=2.0)
    labels, w = labels_of(y), np.random.default_rng(0).integers(0, 3, len(X))
    rows = np.repeat(np.arange(len(X)), w)
    pairs = list(KFold(3).split(X))
    repeated = [tuple(np.flatnonzero(np.isin(rows, part)) for part in pair) for pair in pairs]
    weighted = Problem.from_arrays(X, labels, sample_weight=w)
    plain = Problem.from_arrays(X[rows], labels[rows])
    one = choose_k(weighted, 4, cv=pairs, scoring="accuracy", estimator=estimator)
    other = choose_k(plain, 4, cv=repeated, scoring="accuracy", estimator=estimator)
    np.testing.assert_allclose(one.table["mean"], other.table["mean"], rtol=1e-6)


@pytest.mark.parametrize("estimator", ["logistic", "knn"])
def test_scores_are_those_of_score_selection_whatever_classes_weigh(estimator: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 6))
    y = (X[:, 0] + 1.5 * rng.normal(size=150) > 1.5).astype(int)
    problem = Problem.from_arrays(X, y, class_weight="balanced")
    folds = list(StratifiedKFold(3, shuffle=True, random_state=0).split(X, y))
    # With all columns the choice has no part in it.
    choice = choose_k(problem, 6, scoring="accuracy", estimator=estimator, cv=folds)
    honest = score_selection(X, y, 6, cv=folds, estimator=estimator, n_permutations=0)
    assert choice.table["mean"][-1] == pytest.approx(honest.test_score)


def test_weights_are_repeated_rows() -> None:
    X, y = data(noise=2.0)
    w = np.random.default_rng(0).integers(0, 3, len(X))
    rows = np.repeat(np.arange(len(X)), w)
    pairs = list(KFold(3).split(X))
    repeated = [tuple(np.flatnonzero(np.isin(rows, part)) for part in pair) for pair in pairs]
    one = choose_k(Problem.from_arrays(X, y, sample_weight=w, ridge=0.1), 6, cv=pairs)
    other = choose_k(Problem.from_arrays(X[rows], y[rows], ridge=0.1), 6, cv=repeated)
    assert one.k == other.k
    assert one.table["support"] == other.table["support"]
    np.testing.assert_allclose(one.table["mean"], other.table["mean"], rtol=1e-9)
    np.testing.assert_allclose(
        one.table["standard_error"], other.table["standard_error"], rtol=1e-8
    )


def test_a_method_that_needs_rows_reads_those_of_a_stream() -> None:
    X, y = data(n=60)
    problem = Problem.from_stream(ArrayStream(X, labels_of(y), None, n_parts=2))
    choice = choose_k(problem, 3, method="rfs", cv=3)
    in_memory = choose_k(problem.in_memory(), 3, method="rfs", cv=3)
    assert choice.table == in_memory.table


def test_a_stream_is_cross_validated_by_moments() -> None:
    X, y = data(n=400, noise=2.0)
    problem = Problem.from_stream(ArrayStream(X, y, None, n_parts=3))
    choice = choose_k(problem, 6)
    assert choice.k == 3
    assert choice.result.support.tolist() == [1, 4, 7]
    with says("scoring", "in memory"):
        choose_k(problem, 3, scoring="r2")
    with says("splitter", "in memory"):
        choose_k(problem, 3, cv=KFold(3))
    with says("groups", "in memory"):
        choose_k(problem, 3, groups=np.zeros(400))


@pytest.mark.parametrize("method", ["greedy", "fisher", "rfs"])
def test_other_methods(method: str) -> None:
    X, y = data()
    problem = Problem.from_arrays(X, labels_of(y))
    splitter = KFold(3)
    choice = choose_k(problem, 4, method=method, cv=splitter)
    total, one = np.zeros(4), np.ones(len(X))
    Y = (labels_of(y)[:, None] == problem.classes).astype(float)
    for train, test in splitter.split(X):
        own = solve_path(Problem.from_arrays(X[train], labels_of(y)[train]), 4, method)
        total += [row_errors(X, Y, train, test, r.support, 0.0, one).sum() for r in own]
    np.testing.assert_allclose(choice.table["mean"], total / len(X), rtol=1e-8)
    assert choose_k(problem, 4, method=method).n_folds == 5
    path = solve_path(problem, 4, method)
    assert choice.result.support.tolist() == path.at(choice.k).support.tolist()
    assert choice.result.method == method


def test_ridge_is_resolved_at_the_largest_size() -> None:
    X, y = data(noise=4.0)
    problem = Problem.from_arrays(X, y, ridge=0.7)
    assert choose_k(problem, 3).ridge == 0.7
    assert choose_k(problem, 3, ridge=0.2).result.ridge == 0.2
    assert choose_k(problem, 3, ridge="auto").ridge == problem.with_ridge("auto").ridge
    for cv in (4, KFold(4)):
        in_all_fits = choose_k(problem.with_ridge(5.0), 3, cv=cv).table
        assert choose_k(problem, 3, cv=cv, ridge=5.0).table == in_all_fits
    assert choose_k(problem, 3, ridge="cv").ridge == problem.with_ridge("cv", 3).ridge


def test_a_column_that_is_constant_in_a_fold() -> None:
    X, y = data(n=20)
    X = X[:, :3]
    X[:, 1] = 0.0
    X[4, 1] = 1.0
    choice = choose_k(Problem.from_arrays(X, y), 3)
    assert choice.table["k"] == [1, 2]
    assert len(choice.path) == 3


def test_a_limit_above_the_columns_is_all_of_them() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 6))
    y = X[:, 0] - X[:, 1] + rng.normal(size=60)
    problem = Problem.from_arrays(X, y)
    few, many = choose_k(problem, 6), choose_k(problem, 50)
    assert many.k_max == 6
    assert many.table == few.table


def test_rules_that_a_fold_cannot_keep() -> None:
    X, y = data(n=60)
    X[:, 3] = np.arange(60) < 5
    names = [f"c{j}" for j in range(12)]
    problem = Problem.from_arrays(X, y, feature_names=names)
    pairs = [(np.arange(5, 60), np.arange(5)), (np.arange(50), np.arange(50, 60))]
    with says("no size from 1 to k_max=3", "every fold", "constraint"):
        choose_k(
            problem.with_constraints(quotas={"fam": {"columns": ["c3"], "at_least": 1}}),
            3,
            cv=pairs,
        )
    # Where the fold has another of the family, it can be had.
    either = problem.with_constraints(quotas={"fam": {"columns": ["c3", "c5"], "at_least": 1}})
    assert choose_k(either, 3, cv=pairs).table["k"] == [1, 2, 3]


def test_sizes_that_the_rules_of_one_fold_do_not_allow() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    X[:, 1] = X[:, 0] + 0.01 * rng.normal(size=60)
    X[:3, 1] += [40.0, -50.0, 60.0]
    problem = Problem.from_arrays(X, X[:, 0] + X[:, 2] + rng.normal(size=60))
    kept = problem.with_constraints(max_correlation=0.9)
    assert [r.k for r in solve_path(kept, 3)] == [1, 2, 3]
    # Without the first rows two columns are nearly the same.
    pairs = [(np.arange(3, 60), np.arange(3)), (np.arange(50), np.arange(50, 60))]
    assert choose_k(kept, 3, cv=pairs).table["k"] == [1, 2]


@pytest.mark.parametrize("limit", [1, 2**30], ids=["rows", "moments"])
def test_training_problems_know_the_names_of_their_columns(limit: int) -> None:
    X, y = data()
    names = tuple(f"c{j}" for j in range(12))
    problem = Problem.from_arrays(X, y, feature_names=names, memory_limit=limit)
    for fold in make_folds(problem, 4, np.random.default_rng(0)):
        assert fold.train.feature_names == names
    for other in folds_of(problem, [(np.arange(60), np.arange(60, 80))]):
        assert other.train.feature_names == names


def test_rules_hold_in_every_row() -> None:
    X, y = data()
    problem = Problem.from_arrays(X, y).with_rules(Rules(include=(0, 2), exclude=(4,)))
    choice = choose_k(problem, 5)
    assert choice.table["k"] == [2, 3, 4, 5]
    for row in choice.table:
        assert {0, 2} <= set(row["support"])
        assert 4 not in row["support"]
    with says("k=1", "include"):
        choose_k(problem, 1)


def test_dependent_columns_warn_only_where_they_are_chosen() -> None:
    X, y = data(d=12)
    X[:, 5:] = X[:, :7] @ np.random.default_rng(0).normal(size=(7, 7)) * (np.arange(7) < 1)
    X[:, 6:] = X[:, :2] @ np.random.default_rng(1).normal(size=(2, 6))
    problem = Problem.from_arrays(X, y)
    choice = choose_k(problem, 10, criterion="ebic")
    assert choice.k <= 6


def test_perfect_data_take_the_smallest() -> None:
    X, y = data(noise=0.0)
    choice = choose_k(Problem.from_arrays(X, y), 6, rule="best")
    assert choice.k == 3


def test_a_time_limit_is_for_all_of_it() -> None:
    X, y, _ = planted(0, n=200, d=100)
    choice = choose_k(Problem.from_arrays(X, y), 12, time_limit=1e-6)
    assert choice.status == Status.TIME_LIMIT
    assert len(choice.table) == 12
    calm = choose_k(Problem.from_arrays(*data()), 3, time_limit=600)
    assert calm.status == Status.CONVERGED


def test_stopped_by_the_user_is_no_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = 0

    def interrupted(problem: Problem, *args: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 3:
            signal.raise_signal(signal.SIGINT)
        return solve_path(problem, *args, **options)

    monkeypatch.setattr(path_runner, "solve_path", interrupted)
    with pytest.raises(KeyboardInterrupt):
        choose_k(Problem.from_arrays(*data()), 3)
    assert calls == 3


def test_the_same_seed_the_same_choice() -> None:
    problem = Problem.from_arrays(*data(noise=4.0))
    assert choose_k(problem, 6).table == choose_k(problem, 6).table
    assert choose_k(problem, 6, random_state=1).table == choose_k(problem, 6, random_state=1).table
    means = choose_k(problem, 6, random_state=2).table["mean"]
    assert choose_k(problem, 6, random_state=1).table["mean"] != means


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"k_max": 0}, ["k_max", "of at least 1", "0"]),
        ({"k_max": 2.5}, ["k_max", "2.5"]),
        ({"criterion": "aic"}, ["criterion", "'aic'", "did you mean 'aicc'?"]),
        ({"rule": "1se"}, ["rule", "'one_se', 'paired' or 'best'", "'1se'"]),
        ({"criterion": "bic", "scoring": "r2"}, ["scoring", "criterion='bic'", "criterion='cv'"]),
        ({"criterion": "bic", "cv": 3}, ["cv", "criterion='bic'"]),
        ({"cv": 1}, ["cv", "from 2 to 80", "1"]),
        ({"cv": 81}, ["cv", "from 2 to 80", "81"]),
        ({"cv": []}, ["cv=[]", "no splits"]),
        ({"cv": "five"}, ["cv must be", "splitter", "'five'"]),
        ({"cv": [(0, 1, 2)]}, ["split 1 of cv", "pair"]),
        ({"cv": 2.5}, ["cv must be", "splitter", "2.5"]),
        ({"cv": [([0, 1], [99])]}, ["split 1 of cv", "0..79"]),
        ({"cv": [([0, 1, 2, 3], [])]}, ["split 1 of cv", "one to hold out"]),
        ({"cv": GroupKFold(3)}, ["GroupKFold", "groups"]),
        ({"groups": [1, 2]}, ["groups", "(2,)", "(80,)"]),
        ({"groups": np.zeros(80)}, ["groups", "one group only"]),
        ({"scoring": "acuracy"}, ["scoring", "'acuracy'", "did you mean 'accuracy'?"]),
        ({"scoring": 3}, ["scoring", "3"]),
        ({"scoring": lambda m, x, y: np.nan}, ["scoring", "finite"]),
        ({"method": 42}, ["method", "42"]),
        ({"time_limit": 0}, ["time_limit", "0"]),
        ({"ridge": -1}, ["ridge", "-1"]),
        ({"random_state": -1}, ["random_state", "-1"]),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_bad_input_is_named(options: dict[str, Any], words: list[str]) -> None:
    problem = Problem.from_arrays(*data())
    with says(*words):
        choose_k(problem, **options)


def test_what_has_no_rows_or_too_few() -> None:
    X, y = data()
    with says("made of moments", "criterion='ebic'"):
        choose_k(Problem.from_moments(Moments.from_arrays(X, y[:, None])))
    with says("problem", "exactk.Problem", "tuple"):
        choose_k((X, y))  # type: ignore[arg-type]
    weighted = Problem.from_arrays(X, y, sample_weight=np.r_[np.zeros(20), np.ones(60)])
    with says("split 1", "hold out", "weight"):
        choose_k(weighted, 2, cv=KFold(4).split(X))
    with says("KNeighborsClassifier", "sample_weight"):
        choose_k(
            Problem.from_arrays(X, labels_of(y), sample_weight=np.arange(80) + 1.0),
            2, estimator=KNeighborsClassifier(),
        )  # fmt: skip
    score = make_scorer(lambda true, found: 0.0)
    with says("scoring", "sample_weight"):
        choose_k(Problem.from_arrays(X, y, sample_weight=np.arange(80) + 1.0), 2, scoring=score)
    several = Problem.from_arrays(X, np.column_stack([y > 0, y > 1]).astype(int))
    with says("several labels", "estimator"):
        choose_k(several, 2, scoring="accuracy")


def test_the_paired_rule_goes_by_differences_within_folds() -> None:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(90, 12))
    y = X[:, :4] @ [2.0, 1.0, 0.5, 0.3] + rng.normal(size=90)
    problem = Problem.from_arrays(X, y, ridge=0.1)
    paired, plain = choose_k(problem, 8, rule="paired"), choose_k(problem, 8)
    best = choose_k(problem, 8, rule="best")
    errors = np.array([
        fold.errors(list(solve_path(fold.train, 8, effort=0))) / fold.weight
        for fold in make_folds(problem, 5, np.random.default_rng(0))
    ])  # fmt: skip
    np.testing.assert_allclose(paired.table["mean"], errors.mean(axis=0), rtol=1e-9)
    b = best.k - 1
    difference = errors - errors[:, [b]]
    error = difference.std(axis=0, ddof=1) / np.sqrt(5)
    assert paired.k == 1 + int(np.argmax(difference.mean(axis=0) <= error))
    assert plain.k <= paired.k <= best.k
