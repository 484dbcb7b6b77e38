"""Scores against pipelines of scikit-learn, comparisons, permutations, and what Ctrl-C leaves."""

from __future__ import annotations

import json
import time
import warnings
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import ttest_rel
from sklearn.dummy import DummyClassifier
from sklearn.feature_selection import RFE, SelectKBest, f_classif, f_regression
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import accuracy_score
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    RepeatedKFold,
    StratifiedKFold,
    cross_val_predict,
    cross_val_score,
)
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from exactk import (
    AutoK,
    ExactkError,
    InputError,
    Problem,
    Status,
    TopKSelector,
    UnknownOptionError,
    choose_k,
    evaluate,
    solve,
    stability,
)
from exactk.errors import Setting
from exactk.evaluation import baselines, fold_methods, holdout
from exactk.evaluation.baselines import BASELINES, TrainingData
from exactk.evaluation.evaluate import measure_evaluation
from exactk.evaluation.holdout import FoldScores
from exactk.methods import registry
from exactk.methods.base import Method
from exactk.model_selection.cross_validation import training_problem
from exactk.result import Answer
from exactk.utils.monitor import Monitor
from tests.unit.evaluation.informative import make_classes, make_numbers

SCIKIT = list(BASELINES)


def _scaled(model: Any) -> Any:
    return make_pipeline(StandardScaler(), model)


def _logistic() -> Any:
    return _scaled(LogisticRegression(max_iter=1000))


def _row(found: Any, method: str) -> dict[str, Any]:
    return next(row for row in found.table if row["method"] == method)


def _scores(found: Any, method: str) -> list[float]:
    return [row["test_score"] for row in found.folds if row["method"] == method]


def _chosen(found: Any) -> list[tuple[str, list[str]]]:
    return [(row["method"], row["features"]) for row in [*found.table, *found.folds]]


def _nogueira(sets: list[list[str]], d: int) -> float:
    """The index by its definition, one feature after the other."""
    shares = np.array([np.mean([f"x{j}" in one for one in sets]) for j in range(d)])
    size = np.mean([len(one) for one in sets])
    variance = len(sets) / (len(sets) - 1) * np.mean(shares * (1 - shares))
    return float(1 - variance / (size / d * (1 - size / d)))


@pytest.mark.parametrize("method", ["exchange", "greedy"])
def test_scores_and_predictions_of_classes_are_those_of_a_nested_pipeline(method):
    X, y = make_classes()
    found = evaluate(X, y, k=3, method=method, random_state=3, cv=4)
    folds = StratifiedKFold(4, shuffle=True, random_state=3)
    selector = TopKSelector(3, method=method, random_state=3)
    nested = make_pipeline(selector, _logistic())
    assert _scores(found, method) == cross_val_score(nested, X, y, cv=folds).tolist()
    assert found.predictions == cross_val_predict(nested, X, y, cv=folds).tolist()
    whole = selector.fit(X, y)
    naive = cross_val_score(_logistic(), whole.transform(X), y, cv=folds)
    assert found.naive_score == pytest.approx(naive.mean())
    assert found.optimism == pytest.approx(naive.mean() - found.test_score)
    assert set(found.features) == set(whole.get_feature_names_out())
    assert found.ridge == whole.ridge_
    assert _row(found, method)["objective"] == pytest.approx(whole.objective_)
    assert found.observed == pytest.approx(whole.result_.explained)
    dummy = cross_val_score(DummyClassifier(), X, y, cv=folds)
    assert found.baseline_score == pytest.approx(dummy.mean())
    everything = cross_val_score(_logistic(), X, y, cv=folds)
    assert found.all_features_score == pytest.approx(everything.mean())
    assert (found.n_rows, found.n_features, found.n_folds, found.k) == (90, 16, 4, 3)
    assert (found.scoring, found.task) == ("accuracy", "classification")
    assert found.estimator == "LogisticRegression"


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_methods_of_scikit_learn_are_its_pipelines(task):
    is_number = task == "regression"
    X, y = make_numbers() if is_number else make_classes()
    model = Ridge() if is_number else LogisticRegression(max_iter=1000)
    found = evaluate(X, y, k=4, compare_with=["selectkbest", "rfe"], cv=4, random_state=7)
    folds = (KFold if is_number else StratifiedKFold)(4, shuffle=True, random_state=7)
    best = SelectKBest(f_regression if is_number else f_classif, k=4)
    selectors = {
        "exchange": TopKSelector(4, random_state=7),
        "selectkbest": best,
        "rfe": make_pipeline(StandardScaler(), RFE(model, n_features_to_select=4)),
    }
    for name, selector in selectors.items():
        nested = make_pipeline(selector, _scaled(model))
        expected = cross_val_score(nested, X, y, cv=folds)
        np.testing.assert_allclose(_scores(found, name), expected, err_msg=name)


def test_a_method_has_the_same_scores_alone_and_in_a_comparison():
    X, y = make_classes()
    found = evaluate(X, y, k=4, compare_with=["greedy", *SCIKIT], random_state=3)
    assert found.table["method"] == ["exchange", "greedy", *SCIKIT]
    for name in found.table["method"]:
        alone = evaluate(X, y, k=4, method=name, random_state=3)
        together = _row(found, name)
        for key in ("test_score", "standard_error", "naive_score", "objective", "stability"):
            assert alone.table[0][key] == pytest.approx(together[key], rel=1e-12), (name, key)
        assert _scores(found, name) == _scores(alone, name)
        sets = [row["features"] for row in alone.folds]
        assert alone.stability == pytest.approx(_nogueira(sets, 16))
        assert set(alone.in_all_folds) == set.intersection(*map(set, sets))


def test_differences_are_paired_and_to_the_reference():
    X, y = make_classes()
    found = evaluate(X, y, k=3, method="rfe", compare_with="exchange", cv=6)
    ours, theirs = _scores(found, "exchange"), _scores(found, "rfe")
    row, first = _row(found, "exchange"), found.table[0]
    assert row["difference"] == pytest.approx(np.mean(ours) - np.mean(theirs))
    statistic = ttest_rel(ours, theirs).statistic
    assert row["difference"] / row["difference_error"] == pytest.approx(statistic)
    assert first["difference"] == first["difference_error"] == 0.0
    assert row["n_shared"] == len(set(row["features"]) & set(first["features"]))
    assert found.standard_error == pytest.approx(np.std(theirs, ddof=1) / np.sqrt(6))


def test_objectives_are_those_of_the_problem_and_none_is_below_enumeration():
    X, y = make_classes()
    names = [f"g{j}" for j in range(12)]
    problem = Problem.from_arrays(X[:, :12], y, feature_names=names, ridge=0.2)
    found = evaluate(problem, k=3, method="exhaustive", compare_with=["exchange", *SCIKIT])
    assert found.ridge == 0.2
    assert found.status == Status.OPTIMAL
    least = found.table[0]["objective"]
    for row in found.table:
        columns = [names.index(name) for name in row["features"]]
        assert row["objective"] == pytest.approx(problem.objective(columns))
        assert row["excess"] == pytest.approx(row["objective"] / least - 1, abs=1e-12)
        assert row["excess"] >= -1e-12
    assert max(found.table["excess"]) > 0


def test_a_problem_keeps_its_ridge_unless_another_is_given():
    X, y = make_classes()
    for own in (0.0, 0.2):
        problem = Problem.from_arrays(X, y, ridge=own)
        found = evaluate(problem, k=3, cv=3)
        assert found.ridge == own
        assert set(found.features) == set(solve(problem, 3).selected)
        by_rule = evaluate(problem, k=3, cv=3, ridge="auto")
        assert by_rule.ridge == problem.with_ridge("auto").ridge
        assert by_rule.folds == evaluate(X, y, k=3, cv=3).folds


def test_a_fit_without_error_has_no_excess():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 12))
    y = X[:, 2] + X[:, 4]
    # The third feature is any of the others: what it leaves is rounding error.
    found = evaluate(X, y, k=3, compare_with=[*SCIKIT, "covth"], ridge=0.0)
    *good, bad = found.table
    assert len({row["objective"] for row in good}) > 1
    assert [row["excess"] for row in good] == [0.0] * 4
    assert not {"x2", "x4"} <= set(bad["features"])
    assert bad["excess"] == np.inf
    assert "∞" in repr(found)
    assert found.to_dict()["methods"][-1]["excess"] is None


def test_noise_looks_like_noise_and_planted_columns_are_found():
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(80, 200)), np.arange(80) % 2
    found = evaluate(X, y, k=10, compare_with=SCIKIT, cv=4)
    for row in found.table:
        # Half of 80 coins, with three standard deviations.
        assert abs(row["test_score"] - 0.5) < 3 * 0.5 / np.sqrt(80)
        assert row["stability"] < 0.5
    assert found.optimism > 0.2
    planted = evaluate(*make_numbers(200), k=2, compare_with=SCIKIT, cv=3)
    assert planted.table["features"] == [["x3", "x11"]] * 4
    assert planted.table["n_shared"] == [2] * 4
    np.testing.assert_allclose(planted.table["excess"], 0, atol=1e-9)
    assert planted.table["stability"] == [1.0] * 4
    assert min(planted.table["test_score"]) > 0.6


def test_weights_reach_selection_estimator_and_score():
    X, y = make_classes()
    weights = np.random.default_rng(1).choice([0.0, 1.0, 2.0, 5.0], size=90)
    found = evaluate(X, y, k=3, compare_with=["l1"], sample_weight=weights)
    assert found.n_rows == (weights > 0).sum()
    for row, (train, test) in zip(found.folds, found.splits, strict=False):
        assert (weights[np.r_[train, test]] > 0).all()
        selector = TopKSelector(3).fit(X[train], y[train], sample_weight=weights[train])
        model = _logistic().fit(
            selector.transform(X[train]), y[train],
            standardscaler__sample_weight=weights[train],
            logisticregression__sample_weight=weights[train],
        )  # fmt: skip
        guess = model.predict(selector.transform(X[test]))
        expected = accuracy_score(y[test], guess, sample_weight=weights[test])
        assert row["test_score"] == pytest.approx(expected)
    assert {row for row, guess in enumerate(found.predictions) if guess is None} == set(
        np.flatnonzero(weights == 0)
    )
    rows = np.repeat(np.arange(90), weights.astype(int))
    copies = evaluate(X[rows], y[rows], k=3, compare_with=["l1"])
    assert copies.table["features"] == found.table["features"]


def test_classes_are_balanced_by_the_training_rows_alone():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100, 20)), np.arange(100) % 2
    test = np.r_[np.flatnonzero(y == 0)[:30], np.flatnonzero(y == 1)[:2]]
    train = np.setdiff1d(np.arange(100), test)
    flipped = y.copy()
    flipped[test] = 1 - y[test]
    first, problem = [], Problem.from_arrays(X, flipped).with_class_weight("balanced")
    for table in ({"X": X, "y": y, "class_weight": "balanced"}, {"X": problem}):
        found = evaluate(**table, k=5, compare_with=SCIKIT, ridge=0.1,
                         cv=[(train, test), (test, train)])  # fmt: skip
        first.append({r["method"]: r["features"] for r in found.folds if r["fold"] == 1})
    assert first[0] == first[1]
    weights = 1 / np.bincount(y[train])[y[train]] * len(train) / 2
    for name in BASELINES:
        rows = TrainingData(X[train], y[train], weights, "classification", 0, Monitor())
        assert first[0][name] == [f"x{j}" for j in BASELINES[name](rows, 5)]


def test_groups_are_never_on_both_sides():
    X, y = make_classes()
    groups = np.arange(90) // 6
    found = evaluate(X, y, k=3, groups=groups, n_permutations=3)
    for train, test in found.splits:
        assert not set(groups[train]) & set(groups[test])
    nested = make_pipeline(TopKSelector(3), _logistic())
    theirs = cross_val_score(nested, X, y, cv=GroupKFold(5), groups=groups)
    np.testing.assert_allclose(_scores(found, "exchange"), theirs)
    assert len(found.null) == 3


def test_own_estimator_score_and_folds():
    X, y = make_classes()
    rows = np.arange(90)
    cv = [(rows[:60], rows[60:])]
    found = evaluate(X, y, k=3, method="selectkbest", compare_with=["l1"], cv=cv,
                     estimator=KNeighborsClassifier(3), scoring="balanced_accuracy")  # fmt: skip
    nested = make_pipeline(SelectKBest(k=3), KNeighborsClassifier(3))
    theirs = cross_val_score(nested, X, y, cv=cv, scoring="balanced_accuracy")
    assert _scores(found, "selectkbest") == theirs.tolist()
    assert found.estimator == "KNeighborsClassifier"
    assert found.predictions[:60] == [None] * 60
    assert None not in found.predictions[60:]
    # One fold has no spread.
    for column in ("standard_error", "stability", "difference_error"):
        assert np.isnan(found.table[column]).all()
    assert found.to_dict()["standard_error"] is None
    masks = evaluate(X, y, k=3, cv=[(rows < 60, rows >= 60)], scoring=lambda model, X, y: 0.25)
    assert masks.test_score == masks.baseline_score == 0.25


def test_rows_that_are_held_out_twice_have_the_last_prediction():
    X, y = make_numbers()
    found = evaluate(X, y, k=2, cv=RepeatedKFold(n_splits=3, n_repeats=2, random_state=0))
    assert found.n_folds == 6
    for train, test in found.splits[3:]:
        model = make_pipeline(TopKSelector(2), _scaled(Ridge())).fit(X[train], y[train])
        np.testing.assert_allclose([found.predictions[i] for i in test], model.predict(X[test]))


def test_several_outputs():
    X, y = make_numbers()
    Y = np.c_[y, X[:, 3] + X[:, 5]]
    found = evaluate(X, Y, k=3, compare_with=SCIKIT)
    assert set(found.table["status"]) == {"converged"}
    assert np.shape(found.predictions) == Y.shape
    labels = evaluate(X, (Y > 0).astype(int), k=3, task="classification", estimator="knn")
    assert labels.test_score > labels.baseline_score


def _colours() -> tuple[dict[str, Any], Any]:
    X, y = make_classes(90, 10)
    rng = np.random.default_rng(0)
    colour = np.where(rng.random(90) < 0.8, np.char.add("c ", y), "c no")
    return {f"x{j}": X[:, j] for j in range(10)} | {"colour": colour}, y


def _made_by(library: str, columns: dict[str, Any]) -> Any:
    frames = pytest.importorskip(library)
    return frames.table(columns) if library == "pyarrow" else frames.DataFrame(columns)


class Noting(LogisticRegression):
    """Keeps what it was trained on, of every copy of it."""

    seen: ClassVar[list[Any]] = []

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        self.seen.append(X)
        return super().fit(X, y, sample_weight)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_frames_of_any_library_and_problems_have_the_same_scores(library, monkeypatch):
    monkeypatch.setattr(Noting, "seen", [])
    columns, y = _colours()
    frame, options = _made_by(library, columns), {"k": 2, "ridge": "auto", "compare_with": ["l1"]}
    found = evaluate(frame, y, estimator=Noting(max_iter=1000), **options)
    assert {type(seen) for seen in Noting.seen} == {np.ndarray}
    assert "colour" in found.in_all_folds
    assert found.n_features == 11
    problem = Problem.from_arrays(frame, y)
    assert evaluate(problem, estimator=Noting(max_iter=1000), **options).folds == found.folds
    assert "encoded columns" in _row(found, "l1")["note"]
    del columns["colour"]
    Noting.seen.clear()
    numbers = _made_by(library, columns)
    scores = evaluate(numbers, y, estimator=Noting(max_iter=1000), **options).folds
    # scikit-learn does not read Arrow tables.
    wanted = np.ndarray if library == "pyarrow" else type(numbers)
    assert {type(seen) for seen in Noting.seen} == {wanted}
    X = np.column_stack(list(columns.values()))
    assert scores == evaluate(X, y, estimator=Noting(max_iter=1000), **options).folds
    assert scores == evaluate(sparse.csr_array(X), y, estimator=Noting(max_iter=1000),
                              **options).folds  # fmt: skip


def test_levels_are_encoded_once_for_all_folds():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(2)
    level = rng.permutation(np.arange(64) % 30)
    y = 3.0 * np.sin(level) + rng.normal(size=64)
    frame = pd.DataFrame(rng.normal(size=(64, 4)), columns=list("abcd"))
    frame["t"] = pd.Categorical([f"level {i:02d}" for i in level])
    # 30 levels in the 51 training rows of a fold are a category, too.
    found = evaluate(frame, y, k=2)
    assert "t" in found.in_all_folds
    problem = Problem.from_arrays(frame, y)
    for row, (train, _) in zip(found.folds, found.splits, strict=True):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            part = training_problem(problem, train).with_ridge("auto", 2)
            assert set(row["features"]) == set(solve(part, 2).selected)


def test_constraints_are_kept_by_methods_of_exactk_alone():
    X, y = make_classes()
    found = evaluate(
        X, y, k=2, constraints={"include": [0], "exclude": [5]}, compare_with=SCIKIT, cv=2
    )
    for name, features in _chosen(found):
        assert "x5" not in features
        assert "x0" in features or name != "exchange"
    for row in found.table[1:]:
        assert row["note"] == "keeps no constraint but exclude"
        assert row["excess"] < 0
    free = evaluate(X, y, k=2, constraints={"exclude": [5]}, compare_with=SCIKIT, cv=2)
    assert set(free.table["note"]) == {""}


def test_constant_columns_and_copies():
    X, y = make_classes(90, 10)
    X[:, 0] = 3.0
    X[:, 1] = np.arange(90) == 7  # constant if row 7 is held out
    X[:, 5] = 2 * X[:, 4] + 1
    found = evaluate(X, y, k=6, compare_with=SCIKIT)
    for _, features in _chosen(found):
        assert len(features) == 6
        assert "x0" not in features
    assert np.isfinite(found.table["objective"]).all()


def test_a_fold_with_too_few_columns_is_named():
    X = np.random.default_rng(0).normal(size=(20, 4))
    y = X[:, 0] + X[:, 1]
    X[:, 2] = np.arange(20) == 5  # constant if row 5 is held out
    with pytest.raises(InputError, match=r"training rows of fold \d: ") as error:
        evaluate(X, y, k=4)
    assert error.value.__cause__ is not None
    assert evaluate(X, y, k=3).k == 3


def test_folds_choose_k_by_their_training_rows():
    X, y = make_classes()
    auto = AutoK(k_max=8, criterion="bic")
    found = evaluate(X, y, k=auto, compare_with=["greedy", "rfe"], cv=3)
    problem = Problem.from_arrays(X, y)
    assert found.k == choose_k(problem, **auto.get_params(), ridge="auto").k
    for fold, (train, _) in enumerate(found.splits):
        part = training_problem(problem, train)
        choice = choose_k(part, **auto.get_params(), ridge="auto")
        assert [row["k"] for row in found.folds if row["fold"] == fold + 1] == [choice.k] * 3
        assert set(found.folds[fold]["features"]) == set(choice.result.selected)
    assert found.table["k"] == [found.k] * 3
    sizes = [row["k"] for row in found.folds[:3]]
    assert set(sizes) != {found.k}
    assert f"3 folds with {', '.join(map(str, sizes))} features" in repr(found)
    word = evaluate(X, y, k="auto", cv=2, groups=np.arange(90) // 3)
    assert 1 <= word.k <= 16


def test_an_existing_selection_is_scored_as_it_is():
    X, y = make_classes()
    result = solve(Problem.from_arrays(X, y, ridge=0.3), 3)
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    expected = cross_val_score(_logistic(), X[:, result.support], y, cv=folds)
    fitted = TopKSelector(3, ridge=0.3).fit(X, y)
    for features in (result, result.support.tolist(), fitted):
        found = evaluate(X, y, features=features, ridge=0.3, compare_with=["exchange"],
                         n_permutations=9)  # fmt: skip
        given, other = found.table
        assert (given["method"], found.k, found.ridge) == ("given", 3, 0.3)
        assert _scores(found, "given") == expected.tolist()
        assert given["objective"] == pytest.approx(result.objective)
        assert np.isnan([found.optimism, found.stability]).all()
        assert "optimistic" in found.message
        assert found.status == Status.CONVERGED
        # Shuffled targets are searched.
        alone = evaluate(X, y, k=3, ridge=0.3, n_permutations=9)
        np.testing.assert_allclose(found.null, alone.null)
        assert found.observed == pytest.approx(alone.observed)
        assert other["test_score"] == alone.test_score
    assert evaluate(X, y, features=result).ridge == 0.3


@pytest.mark.parametrize("method", ["exchange", "selectkbest"])
def test_permutations_count_how_many_explain_as_much(method):
    X, y = make_numbers()
    found = evaluate(X, y, k=2, method=method, n_permutations=20, cv=2)
    result = solve(Problem.from_arrays(X, y, ridge=found.ridge), 2)
    assert found.observed == pytest.approx(result.explained)
    assert (found.n_as_good, found.p_value) == (0, pytest.approx(1 / 21))
    assert len(found.null) == 20
    assert found.null.max() < 0.5
    assert "0 of 20 shuffled targets did as well" in repr(found)
    rng = np.random.default_rng(0)
    noise = evaluate(X, rng.normal(size=80), k=2, method=method, n_permutations=20, cv=2)
    assert noise.n_as_good == (noise.null >= noise.observed).sum() > 0
    none = evaluate(X, y, k=2, cv=2)
    assert none.to_dict()["p_value"] is None
    assert "shuffled" not in repr(none)


def test_small_classes_have_fewer_folds_and_a_class_of_one_row_is_named():
    X, y = make_classes()
    y = np.where(np.arange(90) < 3, 9, (y == y[5]).astype(int))
    assert evaluate(X, y, k=2).n_folds == 3
    with pytest.raises(InputError) as error:
        evaluate(X, y, k=2, cv=4)
    assert error.value.parameter == "cv"
    y[:89], y[89] = np.arange(89) % 2, 7
    for cv in (None, 5):
        with pytest.raises(InputError, match="class '7' has 1 row") as error:
            evaluate(X, y, k=2, cv=cv)
        assert error.value.parameter == "y"
        assert Setting("task", "regression") in error.value.hint
    two = np.where(y == 7, "b", "a")
    for call in (choose_k, partial(stability, k=2, n_subsamples=2)):
        with pytest.raises(InputError, match="class 'b' has 1 row") as error:
            call(X, two)
        assert error.value.parameter == "y"
        assert Setting("task", "regression") not in error.value.hint


def test_the_target_is_searched_as_the_shuffled_ones():
    X, y = make_classes()
    problem = Problem.from_arrays(X, y, ridge=0.1)
    known = solve(problem, 3, "greedy")
    options = {
        "features": None, "compare_with": (), "estimator": None, "scoring": None, "cv": 2,
        "groups": None, "n_permutations": 5, "ridge": None, "effort": 0.0, "random_state": 0,
        "verbose": 0, "method": "exchange",
    }  # fmt: skip
    weak = replace(known, residual=known.total)
    found = measure_evaluation(problem, None, k=3, time_limit=None, known=weak, **options)
    assert found.observed == solve(problem, 3, effort=0.0).explained > weak.explained
    chosen = measure_evaluation(problem, None, k=AutoK(k_max=4), time_limit=None, **options)
    assert chosen.observed == solve(problem, chosen.k, effort=0.0).explained
    late = measure_evaluation(problem, None, k=3, time_limit=None, end=time.monotonic(), **options)
    assert (len(late.null), late.status) == (0, Status.CONVERGED)
    assert np.isnan(late.p_value)
    assert "0 of 5 permutations" in late.message


def test_p_values_of_noise_are_uniform_with_class_weights_too():
    found = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(60, 20)), rng.permutation(np.arange(60) < 8)
        score = evaluate(X, y, k=3, cv=2, n_permutations=9, effort=0, class_weight="balanced")
        found.append(score.p_value)
    # Ten values from 0.1 to 1, equally likely: a mean of 0.55 with standard error 0.045.
    assert np.mean(found) == pytest.approx(0.55, abs=0.14)
    assert np.mean(np.array(found) <= 0.2) < 0.4


class Stopping(Method):
    """Selects the first k columns, and stops or fails at one call."""

    at: ClassVar[int] = 0
    error: ClassVar[BaseException] = KeyboardInterrupt()
    calls: ClassVar[list[int]] = []

    def run(self, problem: Problem, k: int, monitor: Monitor) -> Answer:
        self.calls.append(k)
        if len(self.calls) == self.at:
            if isinstance(self.error, KeyboardInterrupt) and self.error.args:
                return Answer(list(range(k)), Status.INTERRUPTED, 1)
            raise self.error
        return Answer(list(range(k)), Status.CONVERGED, 1)


def _stopping(monkeypatch: pytest.MonkeyPatch, at: int, error: BaseException) -> Method:
    monkeypatch.setattr(Stopping, "calls", [])
    monkeypatch.setattr(Stopping, "at", at)
    monkeypatch.setattr(Stopping, "error", error)
    return Stopping()


@pytest.mark.parametrize("stop", [KeyboardInterrupt(), KeyboardInterrupt("by its status")])
@pytest.mark.parametrize(
    ("at", "is_reference", "message", "n_methods", "n_null"),
    [
        (1, False, "after 1 of 2 methods", 1, 0),
        (6, False, "after 1 of 2 methods", 1, 0),
        (4, True, "after 2 of 5 folds", 1, 0),
        (6 + 4, True, "after 3 of 20 permutations", 2, 3),
    ],
)
def test_ctrl_c_keeps_what_is_done(at, is_reference, message, n_methods, n_null, stop, monkeypatch):
    X, y = make_classes()
    method = _stopping(monkeypatch, 0, stop)
    methods: tuple[Any, Any] = (method, "rfe") if is_reference else ("fisher", method)
    full = evaluate(X, y, k=3, method=methods[0])
    _stopping(monkeypatch, at, stop)
    found = evaluate(X, y, k=3, method=methods[0], compare_with=methods[1], n_permutations=20)
    assert found.status == Status.INTERRUPTED
    assert message in found.message
    assert (len(found.table), len(found.null)) == (n_methods, n_null)
    assert np.isfinite(found.all_features_score) == (n_methods == 2)
    assert found.folds[: found.n_folds] == full.folds[: found.n_folds]
    assert found.test_score == np.mean(full.folds["test_score"][: found.n_folds])
    held = np.concatenate([test for _, test in found.splits])
    assert {row for row, guess in enumerate(found.predictions) if guess is not None} == set(held)


@pytest.mark.parametrize("at", [1, 2])
def test_ctrl_c_before_the_first_fold_is_no_answer(at, monkeypatch):
    with pytest.raises(KeyboardInterrupt):
        evaluate(*make_classes(), k=3, method=_stopping(monkeypatch, at, KeyboardInterrupt()))


def test_stopped_before_the_score_with_all_features(monkeypatch):
    def stopped(self: FoldScores) -> float:
        raise KeyboardInterrupt

    monkeypatch.setattr(FoldScores, "all_features", stopped)
    found = evaluate(*make_classes(), k=3, compare_with=["fisher"])
    assert found.status == Status.INTERRUPTED
    assert found.table["method"] == ["exchange", "fisher"]


def test_a_method_that_fails_is_a_row_with_its_error(monkeypatch):
    X, y = make_numbers()
    method = _stopping(monkeypatch, 3, RuntimeError("no luck"))
    found = evaluate(X, y, k=3, compare_with=["fisher", method, "rfe"])
    refused, failed = found.table[1:3]
    assert (refused["status"], failed["status"]) == ("refused", "error")
    assert "needs classes" in refused["note"]
    assert failed["note"] == "RuntimeError: no luck"
    for row in (refused, failed):
        assert np.isnan([row["test_score"], row["objective"], row["excess"]]).all()
        assert (row["n_shared"], row["features"]) == (None, [])
    assert set(found.folds["method"]) == {"exchange", "rfe"}
    assert found.status == Status.CONVERGED
    assert "RuntimeError: no luck" in repr(found)
    json.loads(found.to_json())


def test_without_the_reference_the_error_is_raised(monkeypatch):
    X, y = make_numbers()
    with pytest.raises(InputError, match="needs classes"):
        evaluate(X, y, k=3, method="fisher", compare_with=["exchange"])
    with pytest.raises(RuntimeError, match="no luck"):
        evaluate(X, y, k=3, method=_stopping(monkeypatch, 1, RuntimeError("no luck")))
    with pytest.raises(InputError, match="array of") as error:
        evaluate(Problem.from_arrays(X, y, memory_limit=1000), k=3, method="l1")
    assert error.value.parameter == "memory_limit"


def test_our_own_bugs_pass(monkeypatch):
    def broken(*args: Any, **options: Any) -> Any:
        raise RuntimeError("a bug")

    X, y = make_numbers()
    monkeypatch.setitem(BASELINES, "l1", broken)
    with pytest.raises(RuntimeError, match="a bug"):
        evaluate(X, y, k=3, compare_with=["l1"])
    monkeypatch.setattr(holdout.HoldoutScorer, "score", broken)
    with pytest.raises(RuntimeError, match="a bug"):
        evaluate(X, y, k=3)


class Narrow(LogisticRegression):
    """Refuses more than five columns."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        if X.shape[1] > 5:
            raise RuntimeError("too wide")
        return super().fit(X, y, sample_weight)


def test_an_estimator_of_the_user_may_fail():
    X, y = make_classes()
    found = evaluate(X, y, k=3, estimator=Narrow())
    assert np.isnan(found.all_features_score)
    assert found.folds == evaluate(X, y, k=3, estimator=LogisticRegression()).folds
    failing = {"estimator": Narrow(), "scoring": lambda model, X, y: 1 // 0}
    for name, text in (("estimator", "RuntimeError: too wide"), ("scoring", "ZeroDivisionError")):
        with pytest.raises(InputError, match=text) as error:
            evaluate(X, y, k=6, **{name: failing[name]})
        assert error.value.parameter == name


@pytest.mark.parametrize("limit", [15, 16])
def test_wide_tables_have_no_score_with_all_features(limit, monkeypatch):
    monkeypatch.setattr(holdout, "ALL_COLUMNS", limit)
    found = evaluate(*make_classes(), k=2, cv=2)
    assert np.isnan(found.all_features_score) == (limit < 16)
    assert ("with all features" in repr(found)) == (limit == 16)


def test_time_limit():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 300))
    y = (X[:, 0] + rng.normal(size=200) > 0).astype(int)
    found = evaluate(X, y, k=5, compare_with=SCIKIT, time_limit=1e-4, cv=2)
    assert found.status == Status.TIME_LIMIT
    assert "time_limit in 2 of 2 folds" in _row(found, "exchange")["note"]
    for name in ("rfe", "l1"):
        row = _row(found, name)
        assert (row["status"], row["features"]) == ("time_limit", [])
    with pytest.raises(ExactkError) as error:
        evaluate(X, y, k=5, method="rfe", time_limit=1e-4, cv=2)
    assert error.value.parameter == "time_limit"


def test_fits_that_do_not_converge_are_noted(monkeypatch):
    class Hasty(LogisticRegression):
        def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
            self.max_iter = 1
            return super().fit(X, y, sample_weight)

    monkeypatch.setattr(baselines, "LogisticRegression", Hasty)
    found = evaluate(*make_classes(), k=3, method="rfe", cv=3)
    assert found.status == Status.MAX_ITER
    assert "max_iter in 3 of 3 folds" in found.table[0]["note"]


def test_same_seed_same_answer():
    def content(seed: Any) -> list[Any]:
        found = evaluate(*make_classes(), k=3, cv=2, n_permutations=3, random_state=seed)
        return [found.folds, found.null.tolist()]

    assert content(4) == content(4)
    assert content(np.random.default_rng(1)) == content(np.random.default_rng(1))
    folds, null = content(5)
    assert folds != content(4)[0]
    assert null != content(4)[1]


def test_names_and_parameters_of_methods():
    X, y = make_classes()
    few, many = registry.create("gsrfs", lam=0.1), registry.create("gsrfs", lam=10.0)
    both = evaluate(X, y, k=3, method="gsrfs", compare_with=[few, many], cv=2)
    assert both.table["method"] == ["gsrfs", "GSRFS(lam=0.1)", "GSRFS(lam=10.0)"]
    two = evaluate(X, y, k=3, method=few, compare_with=many, cv=2)
    assert two.table["method"] == ["GSRFS(lam=0.1)", "GSRFS(lam=10.0)"]
    alone = evaluate(X, y, k=3, method=many, cv=2)
    assert alone.folds["features"] == two.folds["features"][2:]
    # Others ignore an effort that they do not have, the reference refuses it.
    assert evaluate(X, y, k=3, effort=0, compare_with=["fisher"], cv=2).table["status"][1]
    with pytest.raises(UnknownOptionError):
        evaluate(X, y, k=3, effort=0, method="fisher")


@pytest.mark.parametrize(
    ("options", "parameter"),
    [
        ({"k": None}, "k"),
        ({"method": "exchnage"}, "method"),
        ({"compare_with": ["selectkbst"]}, "compare_with"),
        ({"compare_with": [5]}, "compare_with"),
        ({"compare_with": 3}, "compare_with"),
        ({"compare_with": ["exchange"]}, "compare_with"),
        ({"k": "auto", "method": "rfe"}, "k"),
        ({"features": [1, 2]}, "features"),
        ({"groups": [1, 2]}, "groups"),
        ({"groups": {"a": [1]}}, "groups"),
        ({"scoring": "acuracy"}, "scoring"),
        ({"scoring": 0}, "scoring"),
        ({"scoring": ""}, "scoring"),
        ({"scoring": []}, "scoring"),
        ({"scoring": "r2"}, "scoring"),
        ({"estimator": StandardScaler()}, "estimator"),
        ({"estimator": "ridge"}, "estimator"),
    ],
)
def test_errors_come_before_any_search(options, parameter, monkeypatch):
    monkeypatch.setattr(fold_methods.FoldMethod, "search", lambda *args: pytest.fail("searched"))
    with pytest.raises(InputError) as error:
        evaluate(*make_classes(), **{"k": 3, **options})
    assert error.value.parameter == parameter


def test_tables_json_and_text():
    X, y = make_classes()
    found = evaluate(X, y, k=3, compare_with=["rfe"], n_permutations=9)
    assert found.folds["fold"] == [1, 2, 3, 4, 5] * 2
    assert sum(found.folds["n_test"]) == 2 * 90
    assert {row["n_train"] + row["n_test"] for row in found.folds} == {90}
    content = json.loads(found.to_json())
    assert content["test_score"] == found.test_score
    assert content["methods"][1]["features"] == _row(found, "rfe")["features"]
    assert content["folds"][0]["test_score"] == _scores(found, "exchange")[0]
    assert len(content["null"]) == content["n_permutations"] == 9
    assert content["status"] == "converged"
    assert found.to_frame()["test_score"].tolist() == found.table["test_score"]
    row = _row(found, "rfe")
    assert f"rfe       {row['test_score']:.3f} ± {row['standard_error']:.3f}" in repr(found)
    assert "difference" not in repr(evaluate(X, y, k=3, cv=2))
    assert "<table>" in found._repr_html_()


def test_progress_is_logged(caplog, monkeypatch):
    monkeypatch.setattr("exactk.utils.progress.LOG_EVERY", 0.0)
    with caplog.at_level("INFO", "exactk"):
        evaluate(*make_classes(), k=3, compare_with=["rfe"], n_permutations=2, verbose=1)
    assert "selections: 6 of 12" in caplog.text
    assert "selections: 12 of 12" in caplog.text
    assert "permutations: 2 of 2" in caplog.text
