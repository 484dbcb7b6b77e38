"""An investigation: what it finds is what the library finds, whatever is missing has a reason."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, StratifiedKFold

import exactk
from exactk import Problem, TopKSelector, choose_k, investigate, score_selection, solve
from exactk.data.moments import Moments
from exactk.errors import UnknownMethodError, UnknownOptionError
from exactk.methods.registry import create
from exactk.model_selection.path_runner import Clock
from exactk.report import investigate as investigate_module
from tests.support import says

# Small, and with every part.
QUICK = {"n_subsamples": 6, "n_permutations": 2, "certify": 20, "methods": ("selectkbest",)}
NONE = {"n_subsamples": 0, "n_permutations": 0, "certify": 0, "methods": ()}
PARTS = ["certificate", "explanation", "stability", "sizes", "score", "scores", "frequencies",
         "comparison"]  # fmt: skip
NAMES = list("abcdef")


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 6))
    y = np.where(X[:, 0] + X[:, 1] + 0.5 * rng.normal(size=60) > 0, "yes", "no")
    return pd.DataFrame(X, columns=NAMES), y


@pytest.fixture(scope="module")
def numbers(table):
    X, _ = table
    return X, (2 * X["a"] + X["c"] + np.random.default_rng(1).normal(size=60)).to_numpy()


@pytest.fixture(scope="module")
def trap():
    """A table where greedy steps end in another set than the best."""
    rng = np.random.default_rng(3)
    u, v = rng.normal(size=(2, 100))
    X = np.c_[u + v + 0.3 * rng.normal(size=100), u, v, rng.normal(size=(100, 3))]
    y = u + v
    problem = Problem.from_arrays(X, y, feature_names=NAMES)
    best = min(combinations(range(6), 2), key=lambda S: problem.objective(np.array(S)))
    assert best == (1, 2)
    assert set(solve(problem, 2, "greedy").support) != {1, 2}
    return X, y


def checked(report):
    """A report whose record is plain JSON, and is drawn."""
    text = report.to_json(allow_nan=False)
    assert json.loads(text) == report.to_dict()
    assert report.to_html().startswith("<!DOCTYPE html>")
    for part, why in report.missing_parts.items():
        assert why.strip(), part
    return report


def test_the_result_is_that_of_the_selector(table):
    X, y = table
    report = checked(investigate(X, y, 2, **QUICK))
    selector = TopKSelector(2, certify=20).fit(X, y)
    assert report.result.support.tolist() == selector.selected_.tolist()
    assert report.result.objective == pytest.approx(selector.result_.objective)
    assert report.record["certificate"]["proven"] is True
    assert report.missing_parts == {}
    assert report.interrupted is False
    assert report.record["selection"]["selected"] == list(report.result.selected)


def test_a_problem_with_its_own_ridge(table):
    problem = Problem.from_arrays(*table).with_ridge(0.3)
    assert investigate(problem, k=2, **NONE).result.ridge == 0.3
    assert investigate(problem, k=2, ridge=0.0, **NONE).result.ridge == 0.0
    assert investigate(problem, k=2, **NONE).record["settings"]["ridge_rule"] == 0.3


@pytest.mark.parametrize("ridge", ["auto", "cv", 0.5])
def test_a_number_that_is_chosen(table, ridge):
    X, y = table
    report = checked(investigate(X, y, ridge=ridge, random_state=3, **QUICK))
    choice = choose_k(Problem.from_arrays(X, y), ridge=ridge, random_state=3)
    assert report.record["selection"]["k"] == choice.k
    assert report.result.support.tolist() == choice.result.support.tolist()
    assert report.result.ridge == pytest.approx(choice.ridge)
    found = report.record["sizes"]
    assert [row["k"] for row in found["rows"]] == choice.table["k"]
    assert [row["criterion"] for row in found["rows"]] == pytest.approx(choice.table["criterion"])
    by_score = choose_k(
        Problem.from_arrays(X, y).with_ridge(choice.ridge), scoring="accuracy", random_state=3,
        effort=0.0, cv=StratifiedKFold(5, shuffle=True, random_state=3),
    )  # fmt: skip
    assert [row["score"] for row in found["rows"]] == pytest.approx(by_score.table["mean"])


def test_what_a_proof_finds_takes_the_place_of_the_result(trap):
    report = checked(investigate(*trap, 2, method="greedy", ridge=0.0, **QUICK))
    record = report.record
    assert record["certificate"]["improved"] is True
    assert report.result.support.tolist() == [1, 2]
    assert set(record["selection"]["selected"]) == {"x1", "x2"}
    assert {row["feature"] for row in record["features"]} == {"x1", "x2"}
    assert {row["column"] for row in record["coefficients"]} == {"x1", "x2"}
    assert set(record["correlations"]["names"]) == {"x1", "x2"}
    assert {one["name"] for one in record["means"]["features"]} == {"x1", "x2"}
    assert set(record["sizes"]["rows"][1]["features"]) == {"x1", "x2"}
    assert record["sizes"]["rows"][1]["objective"] == report.result.objective
    X, y = trap
    expected = np.linalg.lstsq(np.c_[np.ones(100), X[:, [1, 2]]], y, rcond=None)[0]
    raw = {row["column"]: row["raw"][0] for row in record["coefficients"]}
    assert [raw["x1"], raw["x2"]] == pytest.approx(expected[1:].tolist(), abs=1e-6)
    unproven = investigate(*trap, 2, method="greedy", ridge=0.0, **{**QUICK, "certify": 0})
    assert unproven.result.support.tolist() != [1, 2]


def test_a_method_with_a_criterion_of_its_own_keeps_its_choice(trap):
    X, y = trap
    labels = np.where(y > np.median(y), "high", "low")
    report = checked(investigate(X, labels, 2, method="fisher", **QUICK))
    own = TopKSelector(2, method="fisher").fit(X, labels)
    best = TopKSelector(2, certify=True).fit(X, labels)
    assert set(own.selected_) != set(best.selected_)
    assert set(report.result.support) == set(own.selected_)
    better = report.record["certificate"]["better"]
    assert set(better) == {f"x{j}" for j in best.selected_}
    page = report.to_html()
    assert "chooses by a criterion of its own" in page
    assert "took their place" not in page


def test_an_estimator_that_fails_costs_only_what_it_is_for(table):
    class Stubborn(LogisticRegression):
        def fit(self, X, y, sample_weight=None):
            raise RuntimeError("not today")

    report = investigate(*table, 2, estimator=Stubborn(), **QUICK)
    for part in ("score", "scores"):
        assert "not today" in report.missing_parts[part]
    assert report.record["certificate"]["proven"]
    assert "not today" in report.to_html()


def test_all_sizes_where_one_column_is_constant_in_a_fold(numbers):
    X, y = numbers
    X = X.assign(f=np.r_[1.0, np.zeros(59)])
    options = {**QUICK, "certify": 0}
    report = checked(investigate(X, y, k_max=50, **options))
    assert "score" not in report.missing_parts
    assert [row["k"] for row in report.record["sizes"]["rows"]] == [1, 2, 3, 4, 5]
    expected = exactk.score_selection(X, y, "auto", k_max=6, n_permutations=0)
    assert report.record["score"]["test_score"] == pytest.approx(expected.test_score)


def test_the_test_score_is_that_of_score_selection(table):
    X, y = table
    report = investigate(X, y, 2, groups=np.arange(60) // 3, cv=4, random_state=5, **QUICK)
    expected = score_selection(
        X, y, k=2, groups=np.arange(60) // 3, cv=4, random_state=5, n_permutations=2
    )
    found = report.record["score"]
    for name in ("test_score", "naive_score", "baseline_score", "p_value"):
        assert found[name] == pytest.approx(getattr(expected, name))
    assert report.record["settings"]["grouped"] is True


@pytest.mark.parametrize("ridge", [0.0, "cv", "auto"])
def test_folds_have_their_ridge_by_the_same_rule(ridge):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 60))
    y = X[:, 0] + rng.normal(size=40)
    report = investigate(X, y, 3, ridge=ridge, random_state=1, **{**QUICK, "certify": 0})
    expected = score_selection(X, y, k=3, ridge=ridge, random_state=1, n_permutations=0)
    assert report.record["score"]["test_score"] == pytest.approx(expected.test_score)
    compared = exactk.compare(X, y, 3, ["exchange", "selectkbest"], ridge=ridge, random_state=1)
    rows = report.record["comparison"]["methods"]
    assert [row["mean"] for row in rows] == pytest.approx(compared.table["mean"])


def test_the_comparison_is_that_of_compare(table):
    X, y = table
    report = investigate(X, y, 2, **{**QUICK, "methods": ["fisher", "rfe"]})
    expected = exactk.compare(X, y, 2, ["exchange", "fisher", "rfe"])
    rows = report.record["comparison"]["methods"]
    assert [row["method"] for row in rows] == ["exchange", "fisher", "rfe"]
    for name in ("mean", "difference", "excess", "shared"):
        found = [row[name] for row in rows][1:]
        assert found == pytest.approx(expected.table[name][1:])


def test_stability_and_frequencies(table):
    X, y = table
    report = investigate(X, y, 2, random_state=4, **QUICK)
    expected = exactk.stability(
        Problem.from_arrays(X, y).with_ridge(report.result.ridge),
        2,
        n_subsamples=6,
        random_state=4,
    )
    often = {row["feature"]: row["frequency"] for row in expected.table}
    for row in report.record["features"]:
        assert row["frequency"] == often[row["feature"]]
    mapped = report.record["frequencies"]
    assert mapped["n_subsamples"] == 3
    assert mapped["sizes"] == list(range(1, 7))


LOSSES = {
    "logistic": "classes", "l21": "classes", "optimal_scoring": "classes", "huber": "numbers",
    "poisson": "counts", "l2r": "outputs",
}  # fmt: skip


@pytest.mark.parametrize("loss", LOSSES)
def test_losses(table, numbers, loss):
    X, r = numbers
    rng = np.random.default_rng(2)
    y = {
        "classes": table[1],
        "numbers": r,
        "counts": rng.poisson(np.exp(0.5 * X["a"])).astype(float),
        "outputs": np.c_[r, X["d"] + rng.normal(size=60)],
    }[LOSSES[loss]]
    problem = Problem.from_arrays(X, y, loss=loss)
    report = checked(
        investigate(problem, k=2, effort=0.0, **{**QUICK, "methods": (), "n_permutations": 0})
    )
    by_rows = not problem.loss.by_moments
    assert ("certificate" in report.missing_parts) == by_rows
    assert ("explanation" in report.missing_parts) == by_rows
    if by_rows:
        assert "squared loss" in report.missing_parts["certificate"]
    assert set(report.missing_parts) <= {"certificate", "explanation", "comparison"}
    held = problem.with_ridge(report.result.ridge)
    nothing = held.objective(np.array([], dtype=int))
    for row in report.record["features"]:
        rest = [j for j in report.result.support if problem.name(j) != row["feature"]]
        loss_without = held.objective(np.array(rest)) - held.objective(report.result.support)
        assert row["loss"] == pytest.approx(loss_without, rel=1e-4, abs=1e-6)
        assert row["loss_fraction"] == pytest.approx(loss_without / nothing, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_what_must_be_in_is_said(table, loss):
    problem = Problem.from_arrays(*table, loss=loss).with_constraints(include=["f"], exclude=["a"])
    report = checked(investigate(problem, k=2, **NONE))
    assert {row["feature"]: row["included"] for row in report.record["features"]} == {
        "b": False, "f": True,
    }  # fmt: skip


def test_moments_alone(table):
    X, y = table
    codes = (y == "yes").astype(int)
    moments = replace(
        Moments.from_arrays(X, np.eye(2)[codes]), classes=np.array(["no", "yes"]),
        feature_names=tuple(NAMES),
    )  # fmt: skip
    problem = Problem.from_moments(moments)
    report = checked(investigate(problem, k=2, **QUICK))
    assert report.result.support.tolist() == solve(problem, 2).support.tolist()
    lacking = {"stability", "sizes", "scores", "frequencies", "score", "comparison"}
    assert set(report.missing_parts) == lacking
    assert all("moments" in why for why in report.missing_parts.values())
    assert all(report.record[part] is None for part in lacking - {"scores"})
    by_bic = checked(investigate(problem, k=2, criterion="bic", **QUICK))
    assert "sizes" not in by_bic.missing_parts
    with says("cross-validation splits rows", "made of moments"):
        investigate(problem, **QUICK)


def test_a_stream_that_fits_and_one_that_does_not(table, tmp_path):
    X, y = table
    X.assign(y=y).to_parquet(tmp_path / "t.parquet")
    problem = Problem.from_files(tmp_path / "t.parquet", "y")
    held = checked(investigate(problem, k=2, **QUICK))
    assert held.missing_parts == {}
    assert held.record["settings"]["in_memory"] is True
    passed = checked(investigate(replace(problem, memory_limit=1000), k=2, **QUICK))
    assert passed.record["settings"]["in_memory"] is False
    assert passed.result.support.tolist() == held.result.support.tolist()
    assert set(passed.missing_parts) == {"scores", "score", "comparison"}
    assert all("more than memory_limit (1,000)" in why for why in passed.missing_parts.values())
    assert passed.record["means"]["features"][0]["means"] == pytest.approx(
        held.record["means"]["features"][0]["means"]
    )


def test_nothing_but_the_choice(table):
    report = checked(investigate(*table, 2, **NONE))
    asked_for = {part: why for part, why in report.missing_parts.items() if "not asked for" in why}
    assert set(asked_for) == {"certificate", "stability", "frequencies", "comparison"}
    assert report.record["score"]["p_value"] is None


ODD = {
    "one column": lambda X, y, r: (X[["a"]], y, 1),
    "all columns": lambda X, y, r: (X, y, 6),
    "fewer rows than columns": lambda X, y, r: (X[:5], y[:5], 2),
    "two rows a class": lambda X, y, r: (X[:6], list("uuvvww"), 2),
    "a class of one": lambda X, y, r: (X[:6], list("uuvvvw"), 2),
    "two rows": lambda X, y, r: (X[:2], [0, 1], 1),
    "numbers": lambda X, y, r: (X, r, 2),
    "outputs": lambda X, y, r: (X, np.c_[r, X["d"]], 2),
    "labels": lambda X, y, r: (X, np.c_[y == "yes", X["d"] > 0].astype(int), 2),
    "text": lambda X, y, r: (X.assign(t=list("uvw") * 20), y, 2),
    "number by rule": lambda X, y, r: (X[:12], y[:12], None),
    "nothing to find": lambda X, y, r: (X, np.random.default_rng(0).permutation(y), 2),
    "all explained": lambda X, y, r: (X, 2 * X["a"], 2),
    "very large": lambda X, y, r: (X * 1e150, y, 2),
    "very small target": lambda X, y, r: (X, 1e-100 * r, 2),
    "40 classes": lambda X, y, r: (
        pd.concat([X, X + 0.01, X - 0.01]),
        [f"class {i % 40}" for i in range(180)],
        2,
    ),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_tables(table, numbers, name):
    X, y, k = ODD[name](*table, numbers[1])
    checked(investigate(X, y, k, **{**QUICK, "certify": 2}))


RULES = {
    "include": {"include": ["f"]},
    "exclude": {"exclude": ["a", "b"]},
    "feature_groups": {"feature_groups": {"pair": ["a", "c"]}},
    "quotas": {"quotas": {"first": {"columns": ["a", "b", "c"], "at_most": 1}}},
    "budget": {"costs": dict.fromkeys(NAMES, 1.0) | {"a": 3.0}, "budget": 2.0},
    "correlation": {"max_correlation": 0.3},
}


@pytest.mark.parametrize("name", RULES)
def test_rules(table, name):
    problem = Problem.from_arrays(*table).with_constraints(**RULES[name])
    report = checked(investigate(problem, k=2, **QUICK))
    expected = exactk.certify(problem.with_ridge(report.result.ridge), 2)
    assert report.result.support.tolist() == expected.result.support.tolist()
    assert report.record["certificate"]["proven"] is True
    assert [row["feature"] for row in report.record["features"]] == list(report.result.selected)


def test_weights_of_any_size_give_the_same(table):
    X, y = table
    w = np.random.default_rng(0).integers(0, 3, 60)
    one, two = (
        checked(investigate(X, y, 2, sample_weight=size * w, **{**QUICK, "methods": ()})).record
        for size in (1.0, 1e-3)
    )
    assert one["selection"]["selected"] == two["selection"]["selected"]
    assert one["warnings"] == two["warnings"]
    assert one["settings"]["classes"] == two["settings"]["classes"]
    for part in ("means", "correlations"):
        assert json.dumps(_rounded(one[part])) == json.dumps(_rounded(two[part]))


def _rounded(value):
    if isinstance(value, dict):
        return {name: _rounded(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_rounded(one) for one in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


def test_the_same_seed_gives_the_same(table):
    records = [investigate(*table, 2, random_state=7, **QUICK).record for _ in range(2)]
    assert _timeless(records[0]) == _timeless(records[1])
    other = investigate(*table, 2, random_state=8, **QUICK).record
    assert other["score"]["folds"] != records[0]["score"]["folds"]


def _timeless(value):
    if isinstance(value, dict):
        skipped = ("seconds", "made", "summary")
        return {name: _timeless(one) for name, one in value.items() if name not in skipped}
    return [_timeless(one) for one in value] if isinstance(value, (list, tuple)) else value


def test_plain_values_of_numpy_numbers(table):
    report = investigate(
        *table, np.int64(2), k_max=np.int64(4), random_state=np.int64(3), ridge=np.float64(0.1),
        certify=np.float64(20), n_subsamples=np.int64(4), n_permutations=np.int64(2), methods=(),
    )  # fmt: skip
    checked(report)
    assert report.record["settings"]["seed"] == 3


def test_name_of_the_target(table):
    X, y = table
    report = checked(investigate(X, pd.Series(y, name=0), 2, **NONE))
    assert report.record["settings"]["target"] == "0"
    assert repr(report) == "SelectionReport(2 of 6 features for '0': a, b)"
    assert investigate(X, y, 2, target="sold", **NONE).record["settings"]["target"] == "sold"
    one = investigate(X, pd.DataFrame({"sold": y}), 2, **NONE)
    assert one.record["settings"]["target"] == "sold"


def test_pairs_of_rows_are_gone_through_by_every_part(table):
    pairs = KFold(3).split(table[0])
    report = investigate(*table, 2, cv=pairs, **QUICK)
    assert report.missing_parts == {}
    assert report.record["sizes"]["n_folds"] == len(report.record["score"]["folds"]) == 3


def test_method_objects(table):
    by_name = investigate(*table, 2, method="gsrfs", lam=0.5, **QUICK)
    by_object = checked(investigate(*table, 2, method=create("gsrfs", lam=0.5), **QUICK))
    assert by_name.result.support.tolist() == by_object.result.support.tolist()
    assert by_name.record["score"]["test_score"] == by_object.record["score"]["test_score"]
    assert by_object.record["settings"]["options"]["lam"] == 0.5
    assert by_name.record["settings"]["options"]["lam"] == 0.5


def test_tables_of_the_report(table, tmp_path):
    report = investigate(*table, 2, **QUICK)
    assert report.features["feature"] == ["a", "b"]
    assert report.features["rank"] == [1, 2]
    assert report.warnings["kind"] == [one["kind"] for one in report.record["warnings"]]
    path = report.save(tmp_path / "page.html")
    assert path.read_text("utf-8") == report.to_html()
    with says("nowhere", "cannot be written"):
        report.save(tmp_path / "nowhere" / "page.html")


def test_parts_of_a_time_limit_are_shared_out(table, monkeypatch):
    # Nine parts share it: halves of a ninth of the time, and the clock does not go on.
    monkeypatch.setattr(Clock, "is_over", property(lambda self: False))
    report = checked(investigate(*table, 2, time_limit=0.01, **{**QUICK, "n_subsamples": 50}))
    assert report.record["stability"]["n_subsamples"] < 50
    assert "time limit" in report.record["stability"]["message"]


def test_nothing_is_begun_after_the_time_limit(table):
    report = checked(investigate(*table, 2, time_limit=1e-6, **QUICK))
    assert report.interrupted is False
    for part in PARTS:
        assert report.missing_parts[part] == "the time limit came before it was begun"
    assert "The time limit came before its end" in report.to_html()


def test_ctrl_c_between_two_parts_loses_nothing(table, monkeypatch):
    looked, calls = investigate_module.find_warnings, []

    def stop_once(*args):
        calls.append(args)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return looked(*args)

    monkeypatch.setattr(investigate_module, "find_warnings", stop_once)
    report = checked(investigate(*table, 2, **QUICK))
    assert report.interrupted is True
    assert report.missing_parts == {}


def test_one_page_has_one_score_for_one_size(table):
    report = investigate(*table, 2, effort=0, **QUICK)
    row = next(row for row in report.record["sizes"]["rows"] if row["requested"])
    assert row["score"] == pytest.approx(report.record["score"]["test_score"])
    assert row["score_error"] == pytest.approx(report.record["score"]["standard_error"])


def test_who_comes_and_goes_fits_the_features_of_each_size(trap):
    report = investigate(*trap, 2, method="greedy", ridge=0.0, k_max=4, **QUICK)
    assert report.record["certificate"]["improved"]
    before = set()
    for row in report.record["sizes"]["rows"]:
        assert set(row["features"]) == (before | set(row["added"])) - set(row["removed"])
        before = set(row["features"])


def test_constraints_of_a_problem_are_reported(table):
    X, y = table
    problem = Problem.from_arrays(X.assign(colour=["red", "blue", "green"] * 20), y)
    assert investigate(problem, k=2, **NONE).record["settings"]["constraints"] == {}
    held = problem.with_constraints(
        exclude=["a"], feature_groups={"pair": ["b", "c"]},
        quotas={"few": {"columns": ["d", "e"], "at_most": 1}}, max_correlation=0.9,
    )  # fmt: skip
    report = checked(investigate(held, k=2, ridge=0.1, **{**NONE, "certify": 5}))
    assert report.record["settings"]["constraints"] == {
        "exclude": "'a'", "feature_groups": "pair: 'b', 'c'", "quotas": "0 to 1 of few: 'd', 'e'",
        "max_correlation": "0.9",
    }  # fmt: skip
    assert report.record["certificate"]["proven"]
    page = report.to_html()
    assert "no other set of this size that keeps the constraints has a lower objective" in page
    assert "every other set of 2 features that keeps the constraints was ruled out" in page


def test_what_is_minimised_is_reported_in_full(table):
    X, y = table
    problem = Problem.from_arrays(X, y, scale=False, class_weight="balanced")
    page = investigate(problem, k=2, **NONE).to_html()
    assert "linear fit on columns as they are, classes weighted (balanced)" in page
    robust = Problem.from_arrays(X, y).with_loss(exactk.losses.create("l2r", r=0.5))
    assert "r = 0.5" in investigate(robust, k=2, **NONE).to_html()


def test_sizes_by_a_criterion_and_scores_by_folds(table):
    page = checked(investigate(*table, criterion="bic", **NONE)).to_html()
    assert "within each of 5 folds" in page
    assert "By accuracy, by the rule one_se, it would be" in page


def test_auto_is_a_number_that_is_chosen(table):
    options = {**NONE, "k_max": 3}
    chosen, same = investigate(*table, "auto", **options), investigate(*table, **options)
    assert chosen.result.selected == same.result.selected
    assert chosen.record["settings"]["k"] is None


CALLS = {
    "certificate": "prove", "explanation": "explain_by_moments", "stability": "stability",
    "sizes": "choose_k", "scores": "scored_sizes", "frequencies": "frequencies_by_size",
    "score": "score_part", "comparison": "comparison_part",
}  # fmt: skip


@pytest.mark.parametrize("part", PARTS)
def test_ctrl_c_in_a_part_keeps_those_before(table, monkeypatch, part):
    def stop(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(investigate_module, CALLS[part], stop)
    report = checked(investigate(*table, 2, **QUICK))
    assert report.interrupted is True
    at = PARTS.index(part)
    assert [p for p in PARTS if p in report.missing_parts] == PARTS[at:]
    assert report.missing_parts[part] == "stopped by the user"
    for later in PARTS[at + 1 :]:
        assert report.missing_parts[later] == "stopped by the user before it was begun"
    assert report.record["features"][0]["feature"] == "a"
    assert "This was stopped before its end" in report.to_html()


def test_ctrl_c_in_a_part_that_hands_over_what_it_has(table, monkeypatch):
    """Half-samples that are stopped give a frequency; what comes after is not begun."""
    from exactk.model_selection.subsampling import HalfSampleSearch

    whole, calls = HalfSampleSearch.in_half, []

    def in_half(self, half, k):
        calls.append(k)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return whole(self, half, k)

    monkeypatch.setattr(HalfSampleSearch, "in_half", in_half)
    report = checked(investigate(*table, 2, **QUICK))
    assert report.interrupted is True
    assert report.record["stability"]["n_subsamples"] == 3
    assert [p for p in PARTS if p in report.missing_parts] == PARTS[3:]


def test_ctrl_c_among_permutations_and_methods(table, monkeypatch):
    from exactk.evaluation import compare as compare_module
    from exactk.evaluation import permutation_test

    def stop(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(permutation_test, "permuted_problems", stop)
    report = checked(investigate(*table, 2, **QUICK))
    assert report.interrupted is True
    assert report.record["score"]["message"] == "stopped by the user after 0 of 2 permutations"
    assert list(report.missing_parts) == ["scores", "frequencies", "comparison"]

    tried = compare_module._evaluate_method

    def second(competitor, *args):
        return tried(competitor, *args) if competitor.name == "exchange" else stop()

    monkeypatch.undo()
    monkeypatch.setattr(compare_module, "_evaluate_method", second)
    report = checked(investigate(*table, 2, **QUICK))
    assert report.interrupted is True
    assert [row["method"] for row in report.record["comparison"]["methods"]] == ["exchange"]


def test_ctrl_c_in_the_fits_without_a_feature(table, monkeypatch):
    """Losses that read rows fit once more for each feature, which may take long."""

    def stop(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(investigate_module, "drop_losses", stop)
    report = checked(investigate(Problem.from_arrays(*table, loss="logistic"), k=2, **QUICK))
    assert report.interrupted is True
    assert report.missing_parts["losses"] == "stopped by the user"
    assert report.record["features"][0]["loss_fraction"] is None
    assert report.record["comparison"] is not None


def test_ctrl_c_before_there_is_a_choice(table, monkeypatch):
    def stop(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(investigate_module, "solve", stop)
    with pytest.raises(KeyboardInterrupt):
        investigate(*table, 2, **QUICK)
    monkeypatch.setattr(investigate_module, "choose_k", stop)
    with pytest.raises(KeyboardInterrupt):
        investigate(*table, **QUICK)


def test_a_search_that_was_stopped_is_shown(table, monkeypatch):
    stopped = replace(solve(Problem.from_arrays(*table), 2), status=exactk.Status.INTERRUPTED)
    monkeypatch.setattr(investigate_module, "solve", lambda *args, **options: stopped)
    report = checked(investigate(*table, 2, **QUICK))
    assert report.interrupted is True
    assert set(report.missing_parts) >= set(PARTS)


BAD = {
    "k": ({"k": 0}, ("k must be a whole number of at least 1", "not 0")),
    "k a flag": ({"k": True}, ("k must be", "not True")),
    "k too large": ({"k": 7}, ("k=7 is more than the 6 usable columns",)),
    "k_max": ({"k_max": 0}, ("k_max", "not 0")),
    "k_max below k": ({"k": 4, "k_max": 3}, ("k_max=3 is less than k=4",)),
    "criterion": ({"criterion": "nix"}, ("criterion must be", "'nix'")),
    "rule": ({"rule": "nix"}, ("rule must be", "'nix'")),
    "cv": ({"cv": 1}, ("cv must be", "at least 2", "not 1")),
    "cv above rows": ({"cv": 61}, ("cv must be", "from 2 to 60", "not 61")),
    "groups": ({"groups": [1, 2]}, ("groups must name the group of each of the 60 rows",)),
    "methods text": ({"methods": "rfe"}, ("methods must be a list", "'rfe'")),
    "methods None": ({"methods": None}, ("methods must be a list", "None")),
    "methods own": ({"methods": ["exchange"]}, ("methods names 'exchange'", "leave it out")),
    "methods twice": ({"methods": ["rfe", "rfe"]}, ("methods names 'rfe' twice",)),
    "estimator": ({"estimator": "nix"}, ("estimator must be", "'nix'")),
    "estimator task": ({"estimator": "ridge"}, ("'ridge' is not for classification",)),
    "scoring": ({"scoring": "nix"}, ("scoring must be", "'nix'")),
    "certify": ({"certify": -1}, ("certify must be", "not -1")),
    "certify nan": ({"certify": float("nan")}, ("certify must be", "not nan")),
    "n_subsamples": ({"n_subsamples": -1}, ("n_subsamples", "not -1")),
    "n_subsamples 1": ({"n_subsamples": 1}, ("n_subsamples must be 0 or at least 2, not 1",)),
    "n_permutations": ({"n_permutations": 0.5}, ("n_permutations", "not 0.5")),
    "effort": ({"effort": -1}, ("effort must be", "not -1")),
    "time_limit": ({"time_limit": 0}, ("time_limit must be", "not 0")),
    "random_state": ({"random_state": -1}, ("random_state must be", "not -1")),
    "generator": ({"random_state": np.random.default_rng(0)}, ("random_state must be", "PCG64")),
    "ridge": ({"ridge": -1}, ("ridge must be", "not -1")),
    "ridge word": ({"ridge": "nix"}, ("ridge must be 'auto', 'cv' or a number", "'nix'")),
    "task": ({"task": "nix"}, ("task must be", "'nix'")),
    "weights": ({"sample_weight": [-1] * 60}, ("sample_weight",)),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_parameters_are_refused_before_any_search(table, monkeypatch, name):
    for search in ("solve", "prove", "scored_sizes", "stability"):
        monkeypatch.setattr(
            investigate_module, search, lambda *args, **options: pytest.fail("a search ran")
        )
    given, words = BAD[name]
    with says(*words):
        investigate(*table, **{"k": 2, **given})


def test_unknown_methods_and_options(table):
    with pytest.raises(UnknownMethodError, match="unknown method 'nix'"):
        investigate(*table, 2, method="nix")
    with pytest.raises(UnknownMethodError, match="unknown method 'nix'"):
        investigate(*table, 2, methods=["nix"])
    with pytest.raises(UnknownOptionError, match="'exchange' has no option 'lam'"):
        investigate(*table, 2, lam=1)
    with pytest.raises(UnknownOptionError, match="'greedy' has no option 'effort'"):
        investigate(*table, 2, method=create("greedy"), effort=1)


def test_bad_tables(table):
    X, y = table
    with says("y has 1 class", "'yes'", "at least two classes"):
        investigate(X, ["yes"] * 60, 2)
    with says("y is the same in every row"):
        investigate(X, np.full(60, 1.5), 2, task="regression")
    with says("y is None"):
        investigate(X)
    with says("cannot be given beside a Problem"):
        investigate(Problem.from_arrays(X, y), y, 2)
    with says("0 usable columns", "'a', 'b'", "give columns that vary"):
        investigate(X * 0, y)
    with says("NaN", "1 in 'a'"):
        investigate(X.mask(X > 2), y, 2)
