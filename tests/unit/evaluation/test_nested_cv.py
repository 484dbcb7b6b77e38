"""Honest and naive scores against scikit-learn's, and the permutation null."""

from __future__ import annotations

import json
import tracemalloc
import warnings
from typing import ClassVar

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneOut,
    RepeatedStratifiedKFold,
    StratifiedKFold,
    cross_val_score,
)
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import exactk
from exactk import InputError, Problem, TopKSelector, UnknownOptionError, solve
from exactk.estimators.config import SelectorConfig
from exactk.evaluation import permutation_test
from exactk.evaluation.fold_data import ArrayData
from exactk.evaluation.nested_cv import score_selection
from exactk.papers.experiments.measures import nogueira
from tests.unit.evaluation.informative import make_classes, make_numbers


def _scaled(model):
    return make_pipeline(StandardScaler(), model)


def test_classes_equal_a_pipeline_of_scikit_learn():
    X, y = make_classes()
    score = score_selection(X, y, k=4, n_permutations=0, random_state=7)
    folds = StratifiedKFold(5, shuffle=True, random_state=7)
    model = _scaled(LogisticRegression(max_iter=1000))
    nested = make_pipeline(TopKSelector(k=4, random_state=7), model)
    np.testing.assert_allclose(score.folds["test_score"], cross_val_score(nested, X, y, cv=folds))
    columns = TopKSelector(k=4, random_state=7).fit(X, y).get_support()
    naive = cross_val_score(model, X[:, columns], y, cv=folds)
    np.testing.assert_allclose(score.folds["naive_score"], naive)
    dummy = cross_val_score(DummyClassifier(), X, y, cv=folds)
    np.testing.assert_allclose(score.folds["baseline_score"], dummy)
    assert score.scoring == "accuracy"
    assert score.optimism == pytest.approx(naive.mean() - score.test_score)
    spread = np.std(score.folds["test_score"], ddof=1) / np.sqrt(5)
    assert score.standard_error == pytest.approx(spread)


def test_numbers_equal_a_pipeline_of_scikit_learn():
    X, y = make_numbers()
    score = score_selection(X, y, k=3, cv=4, n_permutations=0)
    folds = KFold(4, shuffle=True, random_state=0)
    nested = make_pipeline(TopKSelector(k=3), _scaled(Ridge()))
    np.testing.assert_allclose(score.folds["test_score"], cross_val_score(nested, X, y, cv=folds))
    dummy = cross_val_score(DummyRegressor(), X, y, cv=folds)
    np.testing.assert_allclose(score.folds["baseline_score"], dummy)
    assert (score.scoring, score.estimator, score.task) == ("r2", "Ridge", "regression")


@pytest.mark.parametrize("k", [2, 5])
def test_own_selector_estimator_score_and_splitter(k):
    X, y = make_classes()
    selector = TopKSelector(k=9, method="fisher", ridge=0.5)
    folds = RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=1)
    model = KNeighborsClassifier(3)
    score = score_selection(
        X, y, k, selector=selector, estimator=model, scoring="balanced_accuracy", cv=folds,
        n_permutations=0,
    )  # fmt: skip
    nested = make_pipeline(clone(selector).set_params(k=k), model)
    theirs = cross_val_score(nested, X, y, cv=folds, scoring="balanced_accuracy")
    np.testing.assert_allclose(score.folds["test_score"], theirs)
    assert selector.k == 9
    assert not hasattr(selector, "support_")
    assert score.folds["k"] == [k] * 6
    assert score.k == k


def test_k_of_the_selector_unless_said():
    X, y = make_classes()
    assert score_selection(X, y, selector=TopKSelector(3), n_permutations=0).k == 3
    assert score_selection(X, y, n_permutations=0).k == 10


def test_k_is_chosen_within_each_fold():
    X, y = make_numbers()
    score = score_selection(X, y, "auto", k_max=5, cv=4, n_permutations=5)
    whole = TopKSelector("auto", k_max=5).fit(X, y)
    assert score.k == whole.k_
    for row, (train, _) in zip(score.folds, score.splits, strict=True):
        selector = TopKSelector("auto", k_max=5).fit(X[train], y[train])
        assert row["k"] == selector.k_ == len(row["features"])
    nested = make_pipeline(TopKSelector("auto", k_max=5), _scaled(Ridge()))
    folds = KFold(4, shuffle=True, random_state=0)
    np.testing.assert_allclose(score.folds["test_score"], cross_val_score(nested, X, y, cv=folds))
    assert score.p_value == 1 / 6
    problem = score_selection(
        Problem.from_arrays(X, y), k="auto", k_max=5, cv=4, ridge="auto", n_permutations=0
    )
    assert problem.folds["features"] == score.folds["features"]


def test_options_go_to_the_selector():
    X, y = make_numbers()
    score = score_selection(X, y, k=3, method="greedy", ridge=0.0, n_permutations=0)
    nested = make_pipeline(TopKSelector(k=3, method="greedy", ridge=0.0), _scaled(Ridge()))
    folds = KFold(5, shuffle=True, random_state=0)
    np.testing.assert_allclose(score.folds["test_score"], cross_val_score(nested, X, y, cv=folds))


def test_every_kind_of_table_gives_the_same():
    pd, pl, pa = map(pytest.importorskip, ("pandas", "polars", "pyarrow"))
    X, y = make_classes(60, 12)
    X[np.abs(X) < 0.5] = 0.0
    names = [f"gene {j}" for j in range(12)]
    frame = pd.DataFrame(X, columns=names, index=np.arange(60)[::-1])
    options = {"k": 3, "n_permutations": 4, "random_state": 2}
    expected = score_selection(X, y, **options)
    arrow = pa.table({name: X[:, j] for j, name in enumerate(names)})
    tables = (
        frame, pl.DataFrame(X, schema=names), arrow, arrow.to_batches()[0],
        sparse.csr_array(X), sparse.csc_array(X), X.tolist(),
    )  # fmt: skip
    for table in tables:
        found = score_selection(table, y, **options)
        np.testing.assert_allclose(found.folds["test_score"], expected.folds["test_score"])
        np.testing.assert_allclose(found.folds["naive_score"], expected.folds["naive_score"])
        np.testing.assert_allclose(found.null, expected.null)
    named = score_selection(frame, pd.Series(y), **options)
    assert named.features == tuple(names[int(name[1:])] for name in expected.features)


def test_a_problem_in_place_of_a_table():
    X, y = make_classes()
    weights = np.arange(90) % 3 + 1.0
    names = [f"f{j}" for j in range(30)]
    problem = Problem.from_arrays(X, y, sample_weight=weights, feature_names=names)
    ours = score_selection(problem, k=4, ridge="auto", n_permutations=5)
    theirs = score_selection(X, y, 4, sample_weight=weights, n_permutations=5)
    np.testing.assert_allclose(ours.folds["test_score"], theirs.folds["test_score"])
    np.testing.assert_allclose(ours.null, theirs.null)
    assert ours.features == tuple(name.replace("x", "f") for name in theirs.features)
    with pytest.raises(InputError, match="beside a Problem, which has its own"):
        score_selection(problem, y)
    with pytest.raises(InputError, match="'task' cannot be given beside a Problem"):
        score_selection(problem, k=2, task="regression")
    numbers = Problem.from_arrays(*make_numbers())
    np.testing.assert_allclose(
        score_selection(numbers, k=3, n_permutations=0).folds["test_score"],
        score_selection(*make_numbers(), k=3, ridge=0.0, n_permutations=0).folds["test_score"],
    )


def test_the_ridge_of_a_problem_unless_another_is_given():
    X, y = make_numbers()
    problem = Problem.from_arrays(X, y, ridge=5.0)
    own = score_selection(problem, k=3, n_permutations=2)
    same = score_selection(X, y, 3, ridge=5.0, n_permutations=2)
    np.testing.assert_allclose(own.null, same.null)
    assert own.observed == pytest.approx(same.observed)
    for options, ridge in (
        ({"ridge": "auto"}, "auto"),
        ({"ridge": 0.5}, 0.5),
        ({"selector": TopKSelector(ridge=0.5)}, 0.5),
        ({"selector": TopKSelector(method="greedy")}, 5.0),
    ):
        found = score_selection(problem, k=3, n_permutations=0, **options)
        expected = score_selection(X, y, 3, ridge=ridge, n_permutations=0)
        assert found.observed == pytest.approx(expected.observed, rel=1e-12)


def test_five_folds_unless_said():
    X, y = make_numbers()
    groups = np.arange(80) % 3
    five = score_selection(X, y, 3, cv=5, n_permutations=0)
    assert score_selection(X, y, 3, cv=None, n_permutations=0).to_dict() == five.to_dict()
    assert score_selection(X, y, 3, n_permutations=0).to_dict() == five.to_dict()
    assert len(score_selection(X, y, 3, groups=groups, n_permutations=0).folds) == 3


@pytest.mark.parametrize(
    ("cv", "grouped"),
    [(None, True), (3, True), (3, False), (KFold(4), False), (GroupKFold(3), True)],
    ids=["default", "number of groups", "number", "splitter", "group splitter"],
)
def test_rows_of_weight_zero_are_no_rows(cv, grouped):
    X, y = make_numbers()
    weights, groups = np.r_[np.zeros(20), np.ones(60)], np.repeat([0, 1, 2, 3], 20)
    options = {"k": 3, "cv": cv, "n_permutations": 0}
    own = {"groups": groups} if grouped else {}
    rest = {"groups": groups[20:]} if grouped else {}
    one = score_selection(X, y, sample_weight=weights, **own, **options)
    other = score_selection(X[20:], y[20:], **rest, **options)
    np.testing.assert_allclose(one.folds["test_score"], other.folds["test_score"])
    assert one.folds["features"] == other.folds["features"]


def test_stability_is_that_of_what_can_be_chosen():
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(60, 20)), rng.normal(size=60)
    X[:, 4] = 3.0
    score = score_selection(X, y, 5, include=[0, 1], exclude=list(range(10, 20)), n_permutations=0)
    free = [2, 3, 5, 6, 7, 8, 9]
    supports = [
        [free.index(int(name[1:])) for name in row["features"] if name not in ("x0", "x1")]
        for row in score.folds
    ]
    assert len({tuple(support) for support in supports}) > 1
    assert score.stability == pytest.approx(nogueira(supports, 7))
    all_in = score_selection(X[:, :3], y, 3, include=[0, 1, 2], n_permutations=0)
    assert all_in.stability == 1.0


def test_groups_of_features_are_one_each_for_the_stability():
    rng = np.random.default_rng(6)
    X, y = rng.normal(size=(60, 12)), rng.normal(size=60)
    pairs = {f"g{j}": [2 * j, 2 * j + 1] for j in range(6)}
    score = score_selection(X, y, 2, groups=None, selector=TopKSelector(feature_groups=pairs),
                            n_permutations=0)  # fmt: skip
    supports = [sorted({int(name[1:]) // 2 for name in row["features"]}) for row in score.folds]
    assert score.stability == pytest.approx(nogueira(supports, 6))


def test_rules_of_a_problem_are_kept():
    X, y = make_numbers()
    from exactk.problem.constraints import Rules

    problem = Problem.from_arrays(X, y).with_rules(Rules(include=(7,), exclude=(11,)))
    score = score_selection(problem, k=3, n_permutations=3)
    for features in [*score.folds["features"], score.features]:
        assert "x7" in features
        assert "x11" not in features


def test_several_outputs():
    X, y = make_numbers()
    Y = np.c_[y, X[:, 5] + 0.1 * y]
    score = score_selection(X, Y, k=3, n_permutations=2)
    nested = make_pipeline(TopKSelector(k=3), _scaled(Ridge()))
    folds = KFold(5, shuffle=True, random_state=0)
    np.testing.assert_allclose(score.folds["test_score"], cross_val_score(nested, X, Y, cv=folds))


def test_several_labels_a_row():
    X, y = make_numbers()
    Y = (np.c_[y, X[:, 5]] > 0).astype(int)
    with pytest.raises(InputError, match="several labels a row, which estimator 'logistic'"):
        score_selection(X, Y, k=3)
    score = score_selection(X, Y, k=3, estimator="knn", n_permutations=2)
    nested = make_pipeline(TopKSelector(k=3), _scaled(KNeighborsClassifier()))
    folds = KFold(5, shuffle=True, random_state=0)
    np.testing.assert_allclose(score.folds["test_score"], cross_val_score(nested, X, Y, cv=folds))


def test_noise_looks_good_to_the_naive_figure_alone():
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(60, 500)), np.arange(60) % 2
    score = score_selection(X, y, k=10, n_permutations=39)
    assert score.naive_score > 0.8
    assert score.test_score < 0.7
    assert score.baseline_score == 0.5
    assert score.optimism > 0.2
    assert score.p_value > 0.05
    assert score.stability < 0.5


def test_planted_features_pass_the_test():
    X, y = make_numbers()
    score = score_selection(X, y, k=2, n_permutations=30)
    assert score.p_value == 1 / 31
    assert score.features == ("x3", "x11")
    assert score.in_all_folds == ("x3", "x11")
    assert score.stability == 1.0
    assert score.test_score > 0.5


def test_the_null_is_the_same_search_on_permuted_rows():
    X, y = make_classes()
    weights = np.arange(90) % 4.0
    score = score_selection(X, y, 3, sample_weight=weights, n_permutations=4, random_state=5)
    problem = Problem.from_arrays(X, y, sample_weight=weights).with_ridge(
        TopKSelector(3).fit(X, y, sample_weight=weights).ridge_
    )
    result = solve(problem, 3, random_state=5)
    assert score.observed == pytest.approx(1 - result.objective / problem.total, rel=1e-12)
    rng = np.random.default_rng(5)
    alive = np.flatnonzero(weights)
    for value in score.null:
        mixed = y.copy()
        mixed[alive] = y[rng.permutation(alive)]
        other = Problem.from_arrays(X, mixed, sample_weight=weights, ridge=problem.ridge)
        found = solve(other, 3, random_state=5)
        assert value == pytest.approx(1 - found.objective / other.total, rel=1e-10)


def test_weights_reach_selection_estimator_and_score():
    X, y = make_classes()
    rng = np.random.default_rng(1)
    weights = rng.choice([0.0, 1.0, 2.0, 5.0], size=90)
    score = score_selection(X, y, 3, sample_weight=weights, n_permutations=0)
    assert score.n_rows == (weights > 0).sum()
    for row, (train, test) in zip(score.folds, score.splits, strict=True):
        assert (weights[np.r_[train, test]] > 0).all()
        selector = TopKSelector(3).fit(X[train], y[train], sample_weight=weights[train])
        model = _scaled(LogisticRegression(max_iter=1000))
        model.fit(
            selector.transform(X[train]), y[train],
            standardscaler__sample_weight=weights[train],
            logisticregression__sample_weight=weights[train],
        )  # fmt: skip
        guess = model.predict(selector.transform(X[test]))
        expected = accuracy_score(y[test], guess, sample_weight=weights[test])
        assert row["test_score"] == pytest.approx(expected)


def test_groups_are_never_on_both_sides():
    X, y = make_classes()
    groups = np.arange(90) // 6
    score = score_selection(X, y, 3, groups=groups, n_permutations=3)
    for train, test in score.splits:
        assert not set(groups[train]) & set(groups[test])
    nested = make_pipeline(TopKSelector(3), _scaled(LogisticRegression(max_iter=1000)))
    theirs = cross_val_score(nested, X, y, cv=GroupKFold(5), groups=groups)
    np.testing.assert_allclose(score.folds["test_score"], theirs)


def test_named_estimators():
    X, y = make_classes()
    for name, model in (("svm", "SVC"), ("knn", "KNeighborsClassifier"), ("logistic", "Logistic")):
        score = score_selection(X, y, 3, estimator=name, n_permutations=0)
        assert score.estimator.startswith(model)
    X, y = make_numbers()
    assert score_selection(X, y, 2, estimator="forest", n_permutations=0).test_score > 0.3
    with pytest.raises(InputError, match="'logistic' is not for regression; use ridge, svm"):
        score_selection(X, y, 2, estimator="logistic")
    with pytest.raises(InputError, match="not 'ridg'; did you mean 'ridge'"):
        score_selection(X, y, 2, estimator="ridg")


class Noting(LogisticRegression):
    """Keeps what it was trained on, of every copy of it."""

    seen: ClassVar[list] = []

    def fit(self, X, y, sample_weight=None):
        self.seen.append(X)
        return super().fit(X, y, sample_weight)


def _colours():
    X, y = make_classes(90, 10)
    rng = np.random.default_rng(0)
    colour = np.where(rng.random(90) < 0.8, np.char.add("c ", y), "c no")
    return {f"x{j}": X[:, j] for j in range(10)} | {"colour": colour}, y


def _made_by(library, columns):
    frames = pytest.importorskip(library)
    return frames.table(columns) if library == "pyarrow" else frames.DataFrame(columns)


@pytest.mark.parametrize(
    ("library", "model"),
    [("pandas", None), ("polars", "knn"), ("pyarrow", LogisticRegression(max_iter=1000))],
    ids=["pandas", "polars, knn", "pyarrow, own"],
)
def test_text_scores_the_same_in_a_frame_of_any_library_and_in_a_problem(library, model):
    columns, y = _colours()
    frame = _made_by(library, columns)
    named = {"k": 2, "estimator": model, "n_permutations": 2, "ridge": "auto"}
    score = score_selection(frame, y, **named)
    assert "colour" in score.in_all_folds
    assert score.test_score > score.baseline_score + 0.2
    assert score.n_features == 11
    of_problem = score_selection(Problem.from_arrays(frame, y), **named)
    assert score.to_dict() == of_problem.to_dict()
    # Coded by hand.
    levels = [level for level in np.unique(columns["colour"]) if level != "c no"]
    dummies = columns["colour"][:, None] == levels
    numbers = np.column_stack([columns[f"x{j}"] for j in range(10)])
    groups = {"colour": [10, 11]}
    coded = score_selection(np.c_[numbers, dummies], y, **named,
                            selector=TopKSelector(feature_groups=groups))  # fmt: skip
    np.testing.assert_allclose(score.folds["test_score"], coded.folds["test_score"])


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_text_reaches_the_estimator_as_an_array_and_numbers_as_they_are(library, monkeypatch):
    monkeypatch.setattr(Noting, "seen", [])
    columns, y = _colours()
    frame = _made_by(library, columns)
    score_selection(frame, y, 2, estimator=Noting(max_iter=1000), n_permutations=0)
    assert {type(seen) for seen in Noting.seen} == {np.ndarray}
    assert {seen.shape[1] for seen in Noting.seen} <= {2, 3, 4}
    Noting.seen.clear()
    del columns["colour"]
    numbers = _made_by(library, columns)
    score_selection(numbers, y, 2, estimator=Noting(max_iter=1000), n_permutations=0)
    # scikit-learn knows no Arrow tables.
    wanted = np.ndarray if library == "pyarrow" else type(numbers)
    assert {type(seen) for seen in Noting.seen} == {wanted}


def test_many_levels_in_few_rows_are_coded_once():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(2)
    level = rng.permutation(np.arange(64) % 30)
    y = 3.0 * np.sin(level) + rng.normal(size=64)
    frame = pd.DataFrame(rng.normal(size=(64, 4)), columns=list("abcd"))
    frame["t"] = pd.Categorical([f"level {i:02d}" for i in level])
    # More levels than half of the 51 rows of a fold: a category all the same.
    score = score_selection(frame, y, 2, n_permutations=3)
    assert "t" in score.features
    first = int(np.bincount(level).argmax())
    coded = np.c_[frame[list("abcd")], level[:, None] == np.delete(np.arange(30), first)]
    selector = TopKSelector(2, feature_groups={"t": list(range(4, 33))})
    for row, (train, test) in zip(score.folds, score.splits, strict=True):
        with warnings.catch_warnings():
            # Of levels that are not in the training rows.
            warnings.filterwarnings("ignore", "only .* are independent")
            support = clone(selector).fit(coded[train], y[train]).get_support()
            model = _scaled(Ridge()).fit(coded[train][:, support], y[train])
        names = [name for j, name in enumerate("abcdt") if support[j]]
        assert row["features"] == names
        assert row["test_score"] == pytest.approx(model.score(coded[test][:, support], y[test]))


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array, sparse.csc_array])
def test_an_estimator_gets_its_columns_without_a_copy_of_the_others(kind):
    X, _ = make_numbers(2000, 300)
    y, rows, columns = X[:, 0] + X[:, 1], np.arange(0, 2000, 2), np.array([7, 3])
    given = ArrayData(kind(X), y, None, TopKSelector(2), None)
    given.values(rows, columns)
    tracemalloc.start()
    part = given.values(rows, columns)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    np.testing.assert_array_equal(part if kind is np.asarray else part.toarray(),
                                  X[rows][:, columns])  # fmt: skip
    assert peak < X[rows].nbytes / 10


def test_tidy_json_and_text():
    X, y = make_classes()
    score = score_selection(X, y, 3, n_permutations=9)
    assert score.folds.columns == (
        "fold", "n_train", "n_test", "k", "features", "test_score", "naive_score", "baseline_score",
    )  # fmt: skip
    assert score.folds["fold"] == [1, 2, 3, 4, 5]
    assert sum(score.folds["n_test"]) == 90
    supports = [[int(name[1:]) for name in row["features"]] for row in score.folds]
    assert score.stability == pytest.approx(nogueira(supports, 30))
    content = json.loads(score.to_json())
    assert content["test_score"] == score.test_score
    assert content["folds"][0]["features"] == score.folds[0]["features"]
    assert len(content["null"]) == content["n_permutations"] == 9
    text = repr(score)
    assert f"honest    {score.test_score:.3f} ± {score.standard_error:.3f}" in text
    assert "which leaks" in text
    assert f"p-value   {score.p_value:.3g}  (9 permutations)" in text
    none = score_selection(X, y, 3, n_permutations=0)
    assert np.isnan(none.p_value)
    assert json.loads(none.to_json())["p_value"] is None
    assert "p-value" not in repr(none)


def test_one_fold_has_no_spread():
    X, y = make_classes()
    rows = np.arange(90)
    score = score_selection(X, y, 3, cv=[(rows[:60], rows[60:])], n_permutations=0)
    assert np.isnan(score.standard_error)
    assert np.isnan(score.stability)
    assert " ± " not in repr(score)
    masks = [(rows < 60, rows >= 60)]
    again = score_selection(X, y, 3, cv=masks, n_permutations=0)
    assert again.test_score == score.test_score


def test_own_score_function():
    X, y = make_classes()
    folds = [0.25] * 5
    score = score_selection(X, y, 3, scoring=lambda model, X, y: 0.25, n_permutations=0)
    assert score.folds["test_score"] == score.folds["baseline_score"] == folds
    made = score_selection(X, y, 3, scoring=make_scorer(accuracy_score), n_permutations=0)
    assert made.test_score == score_selection(X, y, 3, n_permutations=0).test_score


def test_same_seed_same_answer_and_inputs_untouched():
    X, y = make_classes()
    before = X.copy()
    first, same, other = (
        score_selection(X, y, 3, n_permutations=3, random_state=seed) for seed in (4, 4, 5)
    )
    assert first.to_dict() == same.to_dict()
    assert not np.allclose(first.null, other.null)
    drawn = [
        score_selection(X, y, 3, n_permutations=3, random_state=np.random.default_rng(1))
        for _ in range(2)
    ]
    assert drawn[0].to_dict() == drawn[1].to_dict()
    np.testing.assert_array_equal(X, before)


BAD = {
    "few members": (
        {"cv": 31}, "class '(no|yes|maybe)' has 30 rows, fewer than the cv=31 folds.*use cv=30",
    ),
    "one fold": ({"cv": 1}, "cv must be a whole number from 2 to 90, or None.*, not 1"),
    "no folds": ({"cv": []}, "cv=\\[\\] yields no splits"),
    "odd splitter": ({"cv": "five"}, "cv must be a number of folds, a splitter.*, not 'five'"),
    "no such row": ({"cv": [([0, 1, 3], [90])]}, "split 1 of cv must hold numbers.*0..89"),
    "test in train": ({"cv": [([0, 1, 2], [2, 3])]}, "fold 1 of cv tests rows that it is trained"),
    "one class": ({"cv": [([0, 3, 6], [1, 2])]}, "fold 1 has one class only"),
    "empty test": ({"cv": [([0, 1, 6], [])]}, "split 1 of cv must.*one to hold out"),
    "few groups": ({"groups": [0] * 45 + [1] * 45, "cv": 5}, "groups has 2; use cv=2 or fewer"),
    "short groups": ({"groups": [1, 2]}, "the group of each of the 90 rows"),
    "groups of features": ({"groups": {"a": [1]}}, "with_constraints"),
    "scoring": ({"scoring": "acuracy"}, "not 'acuracy'; did you mean 'accuracy'"),
    "two scores": ({"scoring": ["accuracy"]}, "scoring must be a score"),
    "score of numbers": ({"scoring": "neg_log_loss", "cv": [([0, 1, 3], [2, 5])]}, "fails on a"),
    "score that is nan": ({"scoring": lambda e, X, y: float("nan")}, "gives nan.*the 18 test"),
    "score that is no number": ({"scoring": lambda e, X, y: "good"}, "'good', which is not one"),
    "estimator class": ({"estimator": LogisticRegression}, "not the class LogisticRegression"),
    "no estimator": ({"estimator": 5}, "estimator must be a scikit-learn estimator.*not 5"),
    "permutations": ({"n_permutations": -1}, "n_permutations must be a whole number of at least 0"),
    "seed": ({"random_state": -1}, "random_state must be"),
    "k": ({"k": 31}, "k=31 is more than the 30 usable columns"),
    "k of nothing": ({"k": 0}, "k must be at least 1"),
    "selector": ({"selector": Ridge()}, "selector must be a TopKSelector, not Ridge"),
    "method": ({"method": "exchnage"}, "did you mean 'exchange'"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_errors_come_before_any_search(name, monkeypatch):
    X, y = make_classes()

    def searched(*args, **options):
        raise AssertionError("searched")

    monkeypatch.setattr(SelectorConfig, "solve", searched)
    options, message = BAD[name]
    with pytest.raises(InputError, match=message):
        score_selection(X, y, **options)


def test_other_errors():
    X, y = make_classes()
    with pytest.raises(UnknownOptionError, match="metod"):
        score_selection(X, y, metod="greedy")
    with pytest.raises(InputError, match="y is None"):
        score_selection(X)
    with pytest.raises(InputError, match="NaN"):
        score_selection(np.where(X > 2, np.nan, X), y)
    with pytest.raises(InputError, match="X has 90 rows, y has 80"):
        score_selection(X, y[:80])
    weights = np.ones(90)
    with pytest.raises(InputError, match="rows have weights, and KNeighborsClassifier takes none"):
        score_selection(X, y, estimator="knn", sample_weight=weights)
    with pytest.raises(InputError, match="does not take sample_weight"):
        score_selection(X, y, sample_weight=weights, scoring=lambda e, X, y: 1.0)


def test_k_beyond_what_a_fold_has():
    X, y = make_numbers(20)
    X = X[:, :4]
    X[:, 2] = 0.0
    X[5, 2] = 1.0  # constant wherever row 5 is held out
    with pytest.raises(InputError, match="k=4 is more than the 3 columns that are not constant"):
        score_selection(X, y, 4)
    assert score_selection(X, y, 3, n_permutations=0).k == 3


def test_leave_one_out():
    X, y = make_numbers(15)
    score = score_selection(
        X, y, 2, cv=LeaveOneOut(), scoring="neg_mean_absolute_error", n_permutations=0
    )
    assert len(score.folds) == 15
    assert score.test_score < 0


def test_stopped_within_the_permutations(monkeypatch):
    X, y = make_classes()
    explained, calls = permutation_test._explained, []

    def stopped(problem, *options):
        calls.append(problem)
        return None if len(calls) == 5 else explained(problem, *options)

    monkeypatch.setattr(permutation_test, "_explained", stopped)
    score = score_selection(X, y, 3, n_permutations=20)
    assert len(score.null) == 3
    assert score.message == "stopped by the user after 3 of 20 permutations"
    assert score.p_value >= 1 / 4


def test_stopped_within_the_folds(monkeypatch):
    X, y = make_classes()
    solve, calls = SelectorConfig.solve, []

    def stopped(self, *args, **options):
        calls.append(self)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return solve(self, *args, **options)

    monkeypatch.setattr(SelectorConfig, "solve", stopped)
    with pytest.raises(KeyboardInterrupt):
        score_selection(X, y, 3)


def test_progress_is_logged(caplog, monkeypatch):
    monkeypatch.setattr("exactk.utils.progress.LOG_EVERY", 0.0)
    X, y = make_classes()
    with caplog.at_level("INFO", "exactk"):
        score_selection(X, y, 3, n_permutations=2, verbose=1)
    assert "folds: 5 of 5" in caplog.text
    assert "permutations: 2 of 2" in caplog.text


def test_public_name():
    assert exactk.score_selection is score_selection
    assert "score_selection" in dir(exactk)


def test_p_values_of_noise_are_spread_evenly_though_classes_weigh_the_same():
    found = []
    for seed in range(80):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(60, 20)), rng.permutation(np.arange(60) < 8)
        score = score_selection(
            X, y, k=3, cv=2, n_permutations=9, effort=0, class_weight="balanced"
        )
        found.append(score.p_value)
    # Ten values from 0.1 to 1, each as likely as another: a mean of 0.55, give or take 0.032.
    assert np.mean(found) == pytest.approx(0.55, abs=0.09)
    assert np.mean(np.array(found) <= 0.2) < 0.3
