"""Methods side by side: figures against pipelines of scikit-learn, refusals, and what is kept."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import ttest_rel
from sklearn.dummy import DummyClassifier
from sklearn.feature_selection import RFE, SelectKBest, f_classif, f_regression
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import exactk
from exactk import (
    InputError,
    Problem,
    UnknownMethodError,
    UnknownOptionError,
    compare,
    score_selection,
)
from exactk.evaluation import compare as compare_module
from exactk.evaluation import competitors, sklearn_baselines
from exactk.evaluation.compare import MethodOutcome, tabulate
from exactk.evaluation.fold_data import EvaluationData
from exactk.evaluation.holdout import score_columns
from exactk.evaluation.sklearn_baselines import BASELINES, TrainingData
from exactk.methods import registry
from exactk.methods.base import Method
from exactk.papers.experiments.measures import nogueira
from exactk.utils.monitor import Monitor
from tests.unit.evaluation.informative import make_classes, make_numbers

ALL = ["exchange", "selectkbest", "rfe", "l1"]


def _scaled(model):
    return make_pipeline(StandardScaler(), model)


def _scores(found, method):
    return [row["score"] for row in found.folds if row["method"] == method]


def _row(found, method):
    return next(row for row in found.table if row["method"] == method)


def _sheet(X, y, weights=None, task="regression"):
    return TrainingData(X, y, weights, task, 0, Monitor())


@pytest.mark.parametrize(("data", "k"), [(make_classes, 4), (make_numbers, 3)])
def test_methods_of_exactk_have_the_test_scores_of_score_selection(data, k):
    X, y = data()
    found = compare(X, y, k, ["greedy", "exchange"], random_state=3, cv=4)
    for method in ("greedy", "exchange"):
        alone = score_selection(X, y, k, method=method, random_state=3, cv=4, n_permutations=0)
        row = _row(found, method)
        assert _scores(found, method) == alone.folds["test_score"]
        assert row["mean"] == alone.test_score
        assert row["standard_error"] == pytest.approx(alone.standard_error)
        assert row["stability"] == alone.stability
        assert tuple(row["features"]) == alone.features
        assert found.baseline == alone.baseline_score
    chosen = exactk.TopKSelector(k, random_state=3).fit(X, y)
    assert _row(found, "exchange")["objective"] == pytest.approx(chosen.objective_)
    assert found.ridge == chosen.ridge_
    assert found.estimator == alone.estimator
    assert (found.scoring, found.task, found.k) == (alone.scoring, alone.task, k)
    assert (found.n_rows, found.n_features, found.n_folds) == (*X.shape, 4)


def test_baselines_of_classes_equal_pipelines_of_scikit_learn():
    X, y = make_classes()
    found = compare(X, y, 4, ["selectkbest", "rfe"], random_state=7)
    folds = StratifiedKFold(5, shuffle=True, random_state=7)
    model = _scaled(LogisticRegression(max_iter=1000))
    best = make_pipeline(SelectKBest(f_classif, k=4), model)
    assert _scores(found, "selectkbest") == cross_val_score(best, X, y, cv=folds).tolist()
    wrapper = RFE(LogisticRegression(max_iter=1000), n_features_to_select=4)
    eliminated = make_pipeline(StandardScaler(), wrapper, model)
    assert _scores(found, "rfe") == cross_val_score(eliminated, X, y, cv=folds).tolist()
    whole = cross_val_score(model, X, y, cv=folds)
    assert found.all_features == pytest.approx(whole.mean())
    assert found.baseline == pytest.approx(
        cross_val_score(DummyClassifier(), X, y, cv=folds).mean()
    )


def test_baselines_of_numbers_equal_pipelines_of_scikit_learn():
    X, y = make_numbers()
    found = compare(X, y, 3, ["selectkbest", "rfe"], cv=4)
    folds = KFold(4, shuffle=True, random_state=0)
    best = make_pipeline(SelectKBest(f_regression, k=3), _scaled(Ridge()))
    np.testing.assert_allclose(_scores(found, "selectkbest"), cross_val_score(best, X, y, cv=folds))
    eliminated = make_pipeline(
        StandardScaler(), RFE(Ridge(), n_features_to_select=3), _scaled(Ridge())
    )
    np.testing.assert_allclose(_scores(found, "rfe"), cross_val_score(eliminated, X, y, cv=folds))


def test_differences_are_paired_and_to_the_first():
    X, y = make_classes()
    found = compare(X, y, 3, ["rfe", "exchange"], cv=6)
    ours, theirs = _scores(found, "exchange"), _scores(found, "rfe")
    row = _row(found, "exchange")
    assert row["difference"] == pytest.approx(np.mean(ours) - np.mean(theirs))
    t = ttest_rel(ours, theirs).statistic
    assert row["difference"] / row["difference_error"] == pytest.approx(t)
    assert _row(found, "rfe")["difference"] == _row(found, "rfe")["difference_error"] == 0.0
    shared = set(row["features"]) & set(_row(found, "rfe")["features"])
    assert row["shared"] == len(shared)
    assert _row(found, "rfe")["shared"] == 3


def test_the_objective_is_that_of_the_problem_and_no_baseline_is_below_enumeration():
    X, y = make_classes()
    names = [f"g{j}" for j in range(12)]
    problem = Problem.from_arrays(X[:, :12], y, feature_names=names, ridge=0.2)
    found = compare(problem, k=3, methods=["selectkbest", "exhaustive", "rfe", "l1"])
    assert found.ridge == 0.2
    for row in found.table:
        columns = [names.index(name) for name in row["features"]]
        assert row["objective"] == pytest.approx(problem.objective(columns))
        least = _row(found, "exhaustive")["objective"]
        assert row["excess"] == pytest.approx(row["objective"] / least - 1, abs=1e-12)
        assert row["excess"] >= -1e-12
    assert _row(found, "exhaustive")["status"] == "optimal"
    assert max(found.table["excess"]) > 0


def test_a_problem_keeps_its_ridge_as_everywhere_unless_another_is_given():
    X, y = make_classes()
    for own in (0.0, 0.2):
        problem = Problem.from_arrays(X, y, ridge=own)
        found = compare(problem, k=3, methods=["exchange"], cv=3)
        honest = score_selection(problem, k=3, cv=3, n_permutations=0)
        assert found.ridge == own
        assert set(found.table[0]["features"]) == set(exactk.solve(problem, 3).selected)
        assert _scores(found, "exchange") == honest.folds["test_score"]
        by_rule = compare(problem, k=3, methods=["exchange"], cv=3, ridge="auto")
        assert by_rule.ridge == problem.with_ridge("auto").ridge
    assert compare(X, y, 3, ["exchange"], cv=3).ridge == by_rule.ridge


def test_stability_of_baselines_is_nogueiras_index():
    X, y = make_classes()
    found = compare(X, y, 4, ["l1", "rfe"])
    for method in ("l1", "rfe"):
        sets = [
            [int(name[1:]) for name in row["features"]]
            for row in found.folds
            if row["method"] == method
        ]
        assert len({tuple(one) for one in sets}) > 1
        assert _row(found, method)["stability"] == pytest.approx(nogueira(sets, 30))


def test_noise_looks_like_noise_to_all_of_them():
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(80, 500)), np.arange(80) % 2
    found = compare(X, y, 10, ALL)
    assert found.table["method"] == ALL
    for row in found.table:
        # Half of 80 coins, give or take three standard deviations; leaking gives 0.85 and more.
        assert abs(row["mean"] - 0.5) < 3 * 0.5 / np.sqrt(80)
        assert row["stability"] < 0.5


def test_planted_columns_are_found_by_all_of_them():
    X, y = make_numbers(200)
    found = compare(X, y, 2, ALL)
    assert found.table["features"] == [["x3", "x11"]] * 4
    assert found.table["stability"] == [1.0] * 4
    assert found.table["shared"] == [2] * 4
    np.testing.assert_allclose(found.table["excess"], 0, atol=1e-9)
    assert min(found.table["mean"]) > 0.6


def test_order_of_columns_does_not_matter():
    X, y = make_classes()
    order = np.random.default_rng(5).permutation(X.shape[1])
    names = [f"x{j}" for j in range(X.shape[1])]
    pd = pytest.importorskip("pandas")
    one = compare(pd.DataFrame(X, columns=names), y, 4, ALL)
    other = compare(pd.DataFrame(X[:, order], columns=[names[j] for j in order]), y, 4, ALL)
    for a, b in zip(one.folds, other.folds, strict=True):
        assert set(a["features"]) == set(b["features"])
        assert a["score"] == pytest.approx(b["score"], abs=1e-8)
    np.testing.assert_allclose(one.table["objective"], other.table["objective"], rtol=1e-8)


def test_every_kind_of_table_and_a_problem_give_the_same():
    pd, pl = map(pytest.importorskip, ("pandas", "polars"))
    X, y = make_classes(60, 12)
    X[np.abs(X) < 0.5] = 0.0
    names = [f"x{j}" for j in range(12)]
    some = ["exchange", "selectkbest"]
    expected = compare(X, y, 3, some)
    problem = Problem.from_arrays(X, y)
    for table in (pd.DataFrame(X, columns=names), pl.DataFrame(X, schema=names),
                  sparse.csr_array(X)):  # fmt: skip
        assert compare(table, y, 3, some).folds == expected.folds
    assert compare(problem, k=3, methods=some).folds == expected.folds
    with pytest.raises(InputError, match="beside a Problem, which has its own"):
        compare(problem, y)
    with pytest.raises(InputError, match="'task' cannot be given beside a Problem"):
        compare(problem, k=3, task="regression")


def test_weights_reach_everything():
    X, y = make_classes()
    weights = np.random.default_rng(1).choice([0.0, 1.0, 2.0, 5.0], size=90)
    found = compare(X, y, 3, ALL, sample_weight=weights)
    assert found.n_rows == (weights > 0).sum()
    alone = score_selection(X, y, 3, sample_weight=weights, n_permutations=0)
    assert _scores(found, "exchange") == alone.folds["test_score"]
    codes = np.unique(y, return_inverse=True)[1]
    for number, (train, _) in enumerate(found.splits):
        assert (weights[train] > 0).all()
        for name in BASELINES:
            sheet = _sheet(X[train], codes[train], weights[train], "classification")
            expected = [f"x{j}" for j in BASELINES[name](sheet, 3)]
            row = [row for row in found.folds if row["method"] == name][number]
            assert row["features"] == expected
    # As many copies of the rows.
    whole = np.repeat(np.arange(90), weights.astype(int))
    copies = compare(X[whole], y[whole], 3, ["exchange", "l1"], cv=2)
    once = compare(X, y, 3, ["exchange", "l1"], cv=2, sample_weight=weights)
    assert copies.table["features"] == once.table["features"]


def test_weights_of_classes_reach_the_choice_of_baselines():
    X, y = make_classes()
    few = np.r_[np.flatnonzero(y != "yes"), np.flatnonzero(y == "yes")[:12]]
    X, y = X[few], y[few]
    labels, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
    found = compare(X, y, 8, [*BASELINES], cv=3, class_weight="balanced")
    plain = compare(X, y, 8, [*BASELINES], cv=3)
    for row in found.table:
        sheet = _sheet(X, codes, (1.0 / counts)[codes] * len(y) / len(labels), "classification")
        assert row["features"] == [f"x{j}" for j in BASELINES[row["method"]](sheet, 8)]
    assert plain.table["features"] != found.table["features"]


@pytest.mark.parametrize("made", ["table", "problem"])
def test_classes_are_balanced_by_the_training_rows_alone(made):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100, 60)), np.arange(100) % 2
    # Hard folds: of one class the first has next to none in its test rows.
    test = np.r_[np.flatnonzero(y == 0)[:30], np.flatnonzero(y == 1)[:2]]
    train = np.setdiff1d(np.arange(100), test)
    cv = [(train, test), (test, train)]
    other = y.copy()
    other[test] = 1
    other[test[:2]] = 0

    def chosen(labels):
        options = {"class_weight": "balanced"}
        if made == "table":
            found = compare(X, labels, 5, ALL, cv=cv, **options, ridge=0.1)
        else:
            problem = Problem.from_arrays(X, labels).with_class_weight("balanced")
            found = compare(problem, k=5, methods=ALL, cv=cv, ridge=0.1)
        return {row["method"]: row["features"] for row in found.folds if row["fold"] == 1}

    first = chosen(y)
    assert chosen(other) == first
    alone = exactk.TopKSelector(5, class_weight="balanced", ridge=0.1).fit(X[train], y[train])
    assert first["exchange"] == alone.get_feature_names_out().tolist()
    weights = 1 / np.bincount(y[train])[y[train]] * len(train) / 2
    for name in BASELINES:
        sheet = _sheet(X[train], y[train], weights, "classification")
        assert first[name] == [f"x{j}" for j in BASELINES[name](sheet, 5)]


def test_groups_are_never_on_both_sides():
    X, y = make_classes()
    groups = np.arange(90) // 6
    found = compare(X, y, 3, ["selectkbest"], groups=groups)
    for train, test in found.splits:
        assert not set(groups[train]) & set(groups[test])
    nested = make_pipeline(SelectKBest(k=3), _scaled(LogisticRegression(max_iter=1000)))
    theirs = cross_val_score(nested, X, y, cv=GroupKFold(5), groups=groups)
    assert _scores(found, "selectkbest") == theirs.tolist()


def test_own_estimator_score_and_folds():
    X, y = make_classes()
    rows = np.arange(90)
    cv = [(rows[:60], rows[60:])]
    found = compare(X, y, 3, ["selectkbest", "l1"], estimator=KNeighborsClassifier(3), cv=cv,
                    scoring="balanced_accuracy")  # fmt: skip
    nested = make_pipeline(SelectKBest(k=3), KNeighborsClassifier(3))
    theirs = cross_val_score(nested, X, y, cv=cv, scoring="balanced_accuracy")
    assert _scores(found, "selectkbest") == theirs.tolist()
    assert found.estimator == "KNeighborsClassifier"
    # One fold has no spread.
    for column in ("standard_error", "stability", "difference_error"):
        assert np.isnan(found.table[column]).all()
    assert " ± " not in repr(found)


def test_categories_are_coded_and_what_baselines_do_with_them_is_said():
    pd = pytest.importorskip("pandas")
    X, y = make_classes(90, 10)
    rng = np.random.default_rng(0)
    colour = np.where(rng.random(90) < 0.8, np.char.add("c ", y), "c no")
    frame = pd.DataFrame(X, columns=list("abcdefghij")).assign(colour=colour)
    found = compare(frame, y, 2, [*ALL, "fisher"])
    alone = score_selection(frame, y, 2, n_permutations=0)
    assert _scores(found, "exchange") == alone.folds["test_score"]
    assert _row(found, "exchange")["note"] == ""
    for name in BASELINES:
        row = _row(found, name)
        assert row["note"] == (
            "chooses among the 12 coded columns, single levels of a category too"
        )
        assert row["mean"] > found.baseline + 0.2
        assert set(row["features"]) <= {*"abcdefghij", "colour"}
    refused = _row(found, "fisher")
    assert refused["status"] == "refused"
    assert "does not keep columns of 'colour' that enter together" in refused["note"]
    assert found.n_features == 11


def test_rules_are_kept_or_it_is_said_that_they_are_not():
    X, y = make_classes()
    found = compare(X, y, 4, [*ALL, "fisher"], include=["x0", "x2"], exclude=["x4"])
    for row in [*found.table, *found.folds]:
        assert "x4" not in row["features"]
    exchange = _row(found, "exchange")
    assert {"x0", "x2"} <= set(exchange["features"])
    assert exchange["excess"] == 0
    for name in BASELINES:
        assert _row(found, name)["note"] == "does not keep constraints other than exclude"
    # What keeps no constraints may be below the best that does.
    noise = compare(X, y, 2, ["rfe", "exchange"], include=["x0", "x2"], cv=2)
    assert noise.table["features"] == [["x4", "x9"], ["x0", "x2"]]
    assert noise.table["excess"][0] < 0 == noise.table["excess"][1]
    assert "does not keep constraints" in _row(found, "fisher")["note"]
    only_out = compare(X, y, 4, [*ALL, "fisher"], exclude=["x4"])
    assert set(only_out.table["note"]) == {""}
    assert min(only_out.table["excess"]) == 0
    assert not any("x4" in row["features"] for row in only_out.folds)
    grouped = Problem.from_arrays(X, y).with_constraints(
        feature_groups={"g": ["x1", "x2"]}, include=["g"]
    )
    of_groups = compare(grouped, k=2, methods=["exchange", "selectkbest"])
    assert {"x1", "x2"} <= set(_row(of_groups, "exchange")["features"])
    assert "does not keep" in _row(of_groups, "selectkbest")["note"]


def test_several_outputs_and_several_labels():
    X, y = make_numbers()
    Y = np.c_[y, X[:, 5] + 0.1 * y]
    found = compare(X, Y, 3, ALL)
    for row in found.table:
        assert set(row["features"]) == {"x3", "x5", "x11"}, row["method"]
    labels = (Y > 0).astype(int)
    found = compare(X, labels, 3, [*ALL, "fisher"], estimator="knn")
    for row in found.table[:4]:
        assert {"x5", "x11"} <= set(row["features"]), row["method"]
    assert "needs classes, one a row" in _row(found, "fisher")["note"]


class Odd(Method):
    """Raises what it is told to raise, on the call that it is told to raise it on."""

    calls = 0

    def __init__(self, what=RuntimeError("boom"), on=1):  # noqa: B008
        self.what = what
        self.on = on

    def run(self, problem, k, monitor):
        type(self).calls += 1
        if type(self).calls == self.on:
            raise self.what
        from exactk.result import Answer, Status

        return Answer(problem.candidates[:k].tolist(), Status.CONVERGED, 1)

    def __sklearn_clone__(self):
        return self


@pytest.mark.parametrize("on", [1, 3])
def test_a_method_that_fails_is_a_row_with_its_reason(on, monkeypatch):
    monkeypatch.setattr(Odd, "calls", 0)
    X, y = make_classes()
    found = compare(X, y, 3, ["exchange", Odd(on=on), "fisher"])
    row = _row(found, "odd")
    assert (row["status"], row["note"]) == ("error", "RuntimeError: boom")
    assert np.isnan([row[name] for name in ("mean", "objective", "excess", "seconds")]).all()
    assert row["shared"] is None
    assert row["features"] == []
    assert _scores(found, "odd") == []
    assert np.isfinite(_row(found, "fisher")["difference"])
    assert "odd" in repr(found)
    assert "RuntimeError: boom" in repr(found)
    content = json.loads(found.to_json())
    assert content["methods"][1]["mean"] is None


def test_the_first_that_fails_leaves_no_differences():
    X, y = make_numbers()
    found = compare(X, y, 3, ["fisher", "exchange"])
    assert found.message.startswith(
        "fisher, with which the others are compared, gave no answer (method 'fisher' needs classes"
    )
    row = _row(found, "exchange")
    assert np.isfinite(row["mean"])
    assert np.isnan(row["difference"])
    assert row["shared"] is None
    assert "refused" in repr(found)


def test_where_none_gives_an_answer_that_is_an_error():
    X, y = make_numbers()
    with pytest.raises(InputError, match="no method gave an answer: fisher: method 'fisher' needs"):
        compare(X, y, 3, ["fisher", "chi2"])
    with pytest.raises(InputError, match="no method gave an answer: l1: needs 80 rows and 25"):
        compare(Problem.from_arrays(X, y, memory_limit=1000), k=3, methods=["l1"])
    with pytest.raises(InputError, match=r"as in Problem\.from_arrays\(memory_limit=\.\.\.\)"):
        compare(Problem.from_arrays(X, y, memory_limit=1000), k=3, methods=["l1"])


def _stopped_on(call, monkeypatch):
    solve, calls = EvaluationData.solve, []

    def stopped(self, *args):
        calls.append(self)
        if len(calls) == call:
            raise KeyboardInterrupt
        return solve(self, *args)

    monkeypatch.setattr(EvaluationData, "solve", stopped)


@pytest.mark.parametrize("call", [7, 9, 12])
def test_stopped_after_a_method(call, monkeypatch):
    X, y = make_classes()
    full = compare(X, y, 3, ["exchange", "fisher", "rfe"])
    _stopped_on(call, monkeypatch)
    found = compare(X, y, 3, ["exchange", "fisher", "rfe"])
    assert found.message == "stopped by the user after 1 of 3 methods"
    assert found.table["method"] == ["exchange"]
    assert _scores(found, "exchange") == _scores(full, "exchange")
    assert np.isnan(found.all_features)


def test_stopped_before_the_score_with_all_features(monkeypatch):
    X, y = make_classes()

    def stopped(trial, given, split, columns):
        if len(columns) == X.shape[1]:
            raise KeyboardInterrupt
        return score_columns(trial, given, split, columns)

    monkeypatch.setattr(compare_module, "score_columns", stopped)
    found = compare(X, y, 3, ["exchange", "fisher"])
    assert found.message == "stopped by the user before the score with all features"
    assert found.table["method"] == ["exchange", "fisher"]
    assert np.isnan(found.all_features)


@pytest.mark.parametrize("call", [1, 4])
def test_stopped_before_any_method_is_done(call, monkeypatch):
    X, y = make_classes()
    _stopped_on(call, monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        compare(X, y, 3)


def test_a_method_that_says_it_was_interrupted_ends_the_comparison(monkeypatch):
    X, y = make_classes()
    solve, calls = exactk.estimators.config.SelectorConfig.solve, []

    def interrupted(self, *args):
        from dataclasses import replace

        result, choice = solve(self, *args)
        calls.append(self)
        last = len(calls) == 8
        return replace(result, status=exactk.Status.INTERRUPTED) if last else result, choice

    monkeypatch.setattr(exactk.estimators.config.SelectorConfig, "solve", interrupted)
    found = compare(X, y, 3, ["exchange", "fisher"])
    assert found.message == "stopped by the user after 1 of 2 methods"


def test_time_limit_of_baselines_and_of_methods():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 300))
    y = (X[:, 0] + rng.normal(size=200) > 0).astype(int)
    found = compare(X, y, 5, ["exchange", "selectkbest", "rfe", "l1"], time_limit=1e-4, cv=2)
    assert _row(found, "exchange")["status"] == "time_limit"
    assert "the time limit ended the search" in _row(found, "exchange")["note"]
    assert "time_limit in 2 of 2 folds" in _row(found, "exchange")["note"]
    for name in ("rfe", "l1"):
        row = _row(found, name)
        assert (row["status"], row["features"]) == ("time_limit", [])
        assert row["note"] == "the time limit came before an answer"
    # A limit is a guard, and no time to be used up.
    guarded = compare(X, y, 5, ["exchange"], time_limit=500, cv=2)
    assert guarded.folds == compare(X, y, 5, ["exchange"], cv=2).folds


def test_fits_that_do_not_converge_are_said(monkeypatch):
    class Hasty(LogisticRegression):
        def fit(self, X, y, sample_weight=None):
            return self.set_params(max_iter=1)._fit(X, y, sample_weight)

        def _fit(self, X, y, sample_weight):
            return super().fit(X, y, sample_weight)

    monkeypatch.setattr(sklearn_baselines, "LogisticRegression", Hasty)
    X, y = make_classes()
    found = compare(X, y, 3, ["rfe"], cv=3)
    row = found.table[0]
    assert row["status"] == "max_iter"
    assert row["note"] == "a fit ended before it converged; max_iter in 3 of 3 folds"


def test_same_seed_same_answer_and_inputs_untouched():
    X, y = make_classes()
    before = X.copy()

    def content(seed):
        found = compare(X, y, 3, ["exchange", "l1"], random_state=seed, cv=2).to_dict()
        for row in found["methods"]:
            del row["seconds"]
        return found

    assert content(4) == content(4)
    assert content(4)["folds"] != content(5)["folds"]
    assert content(np.random.default_rng(1)) == content(np.random.default_rng(1))
    np.testing.assert_array_equal(X, before)


def test_names_and_objects():
    X, y = make_classes()
    few, many = registry.create("gsrfs", lam=0.1), registry.create("gsrfs", lam=10.0)
    found = compare(X, y, 3, [few, "rfe"], cv=2)
    assert found.table["method"] == ["gsrfs", "rfe"]
    both = compare(X, y, 3, ["gsrfs", few, many], cv=2)
    assert both.table["method"] == ["gsrfs", "GSRFS(lam=0.1)", "GSRFS(lam=10.0)"]
    assert compare(X, y, 3, "rfe", cv=2).table["method"] == ["rfe"]
    assert compare(X, y, 3, cv=2).table["method"] == ALL
    low = compare(X, y, 6, ["exchange", "fisher"], effort=0, cv=2)
    assert low.table["status"] == ["converged", "converged"]


BAD = {
    "unknown": ({"methods": ["exchnage"]}, "unknown method 'exchnage'; did you mean 'exchange'"),
    "unknown rival": ({"methods": ["selectkbst"]}, "did you mean 'selectkbest'"),
    "not a method": ({"methods": [5]}, "unknown method 5"),
    "none": ({"methods": []}, "methods must be a list of names or method objects"),
    "number": ({"methods": 3}, "methods must be a list"),
    "twice": ({"methods": ["rfe", "rfe"]}, "methods names 'rfe' twice"),
    "parameters": ({"methods": [registry.create("gsrfs", lam=-1.0)]}, "lam must be a number"),
    "k": ({"k": 31}, "k=31 is more than the 30 usable columns"),
    "k of nothing": ({"k": 0}, "k must be at least 1"),
    "auto": ({"k": "auto"}, "k must be a whole number, not 'auto'"),
    "time limit": ({"time_limit": -1}, "time_limit must be a number of seconds above 0, not -1"),
    "seed": ({"random_state": -1}, "random_state must be"),
    "ridge": ({"ridge": "much"}, "ridge must be"),
    "folds": ({"cv": 31}, "fewer than the cv=31 folds"),
    "scoring": ({"scoring": "acuracy"}, "did you mean 'accuracy'"),
    "estimator": ({"estimator": "ridge"}, "'ridge' is not for classification"),
    "groups": ({"groups": [1, 2]}, "the group of each of the 90 rows"),
    "no target": ({"y": None}, "y is None"),
}


@pytest.mark.parametrize("name", BAD)
def test_errors_come_before_any_search(name, monkeypatch):
    X, y = make_classes()

    def searched(*args, **options):
        raise AssertionError("searched")

    monkeypatch.setattr(EvaluationData, "solve", searched)
    monkeypatch.setattr(competitors.BaselineEntry, "choose", searched)
    options, message = BAD[name]
    with pytest.raises(InputError, match=message):
        compare(X, **{"y": y, "k": 3, **options})


def test_other_errors():
    X, y = make_classes()
    with pytest.raises(UnknownMethodError, match=r"known methods: exchange.*selectkbest, rfe, l1"):
        compare(X, y, 3, ["zzz"])
    with pytest.raises(UnknownOptionError, match=r"no option 'lam'.*method object"):
        compare(X, y, 3, lam=3)
    with pytest.raises(UnknownOptionError, match="'efort'; did you mean 'effort'"):
        compare(X, y, 3, efort=3)
    with pytest.raises(UnknownOptionError, match="'method'; give methods="):
        compare(X, y, 3, method="rfe")
    with pytest.raises(InputError, match="NaN"):
        compare(np.where(X > 2, np.nan, X), y, 3)
    with pytest.raises(InputError, match="rows have weights, and KNeighborsClassifier takes none"):
        compare(X, y, 3, estimator="knn", sample_weight=np.ones(90))
    with pytest.raises(InputError, match=r"the group of each row here.*go into a Problem"):
        compare(X, y, 3, groups={"a": [1]})


def test_constant_columns_and_copies():
    X, y = make_classes(90, 10)
    X[:, 0] = 3.0
    X[:, 1] = 0.0
    X[7, 1] = 1.0  # constant wherever row 7 is held out
    X[:, 5] = 2 * X[:, 4] + 1
    found = compare(X, y, 6, ALL)
    for row in [*found.table, *found.folds]:
        assert len(row["features"]) == 6
        assert "x0" not in row["features"]
    assert np.isfinite(found.table["objective"]).all()


def test_wide_tables_have_no_score_of_all_features():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 1001)), np.arange(30) % 2
    found = compare(X, y, 2, ["selectkbest"], cv=2)
    assert np.isnan(found.all_features)
    assert np.isfinite(compare(X[:, 1:], y, 2, ["selectkbest"], cv=2).all_features)
    assert json.loads(found.to_json())["all_features"] is None


def test_an_estimator_that_fails_on_all_features_costs_one_figure_only():
    class Narrow(LogisticRegression):
        def fit(self, X, y, sample_weight=None):
            if X.shape[1] > 5:
                raise RuntimeError("too wide")
            return super().fit(X, y, sample_weight)

    X, y = make_classes()
    found = compare(X, y, 3, ["exchange"], estimator=Narrow())
    usual = compare(X, y, 3, ["exchange"], estimator=LogisticRegression())
    assert np.isnan(found.all_features)
    assert found.table["mean"] == usual.table["mean"]


def test_tables_json_and_text():
    X, y = make_classes()
    found = compare(X, y, 3, ["exchange", "rfe"])
    assert found.table.columns == (
        "method", "mean", "standard_error", "difference", "difference_error", "objective",
        "excess", "stability", "seconds", "shared", "features", "status", "note",
    )  # fmt: skip
    assert found.folds.columns == ("method", "fold", "score", "features")
    assert found.folds["fold"] == [1, 2, 3, 4, 5] * 2
    assert _row(found, "rfe")["mean"] == np.mean(_scores(found, "rfe"))
    assert all(seconds > 0 for seconds in found.table["seconds"])
    content = json.loads(found.to_json())
    assert content["methods"][1]["features"] == _row(found, "rfe")["features"]
    assert content["folds"][0]["score"] == _scores(found, "exchange")[0]
    assert found.to_frame()["mean"].tolist() == found.table["mean"]
    assert found.to_frame("polars")["method"].to_list() == ["exchange", "rfe"]
    text = repr(found)
    row = _row(found, "rfe")
    assert f"rfe       {row['mean']:.3f} ± {row['standard_error']:.3f}" in text
    assert f"{found.baseline:.3f} with no features, {found.all_features:.3f} all" in text
    assert "chosen within each of 5 folds" in text


def test_a_zero_has_no_sign_of_its_own():
    one = MethodOutcome(
        "a", "converged", "", (0.5, 0.5), (("x",), ("x",)), ("x",), 2.0, -1e-17, 0.1
    )
    other = replace(one, method="b", scores=(0.4999, 0.5), objective=2.0 - 1e-9, keeps_rules=False)
    table, folds = tabulate([one, other])
    found = replace(compare(*make_classes(), 2, "fisher", cv=2), table=table, folds=folds)
    assert "-0.0" not in "\n".join(found.lines())
    assert "+0.000 ± 0.000" in found.lines()[-1]


def test_a_fit_without_error_has_no_excess():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 12))
    y = X[:, 2] + X[:, 4]
    found = compare(X, y, 2, ALL, ridge=0.0)
    assert found.table["features"] == [["x2", "x4"]] * 4
    # The third is whatever it is, and what it leaves is rounding.
    found = compare(X, y, 3, [*ALL, "covth"], ridge=0.0)
    *good, bad = found.table
    assert len({row["objective"] for row in good}) > 1
    assert [row["excess"] for row in good] == [0.0] * 4
    assert not {"x2", "x4"} <= set(bad["features"])
    assert bad["excess"] == np.inf
    assert "∞" in found.lines()[-1]
    assert json.loads(found.to_json())["methods"][-1]["excess"] is None


def test_progress_is_logged(caplog, monkeypatch):
    monkeypatch.setattr("exactk.utils.progress.LOG_EVERY", 0.0)
    X, y = make_classes()
    with caplog.at_level("INFO", "exactk"):
        compare(X, y, 3, ["exchange", "rfe"], verbose=1)
    assert "selections: 6 of 12" in caplog.text
    assert "selections: 12 of 12" in caplog.text


def test_public_names():
    assert {"compare", "Comparison"} <= set(dir(exactk))
    X, y = make_classes()
    assert isinstance(exactk.compare(X, y, 2, "fisher", cv=2), exactk.Comparison)
    score = exactk.score_selection(X, y, 2, cv=2, n_permutations=0)
    assert isinstance(score, exactk.SelectionScore)
