"""``exactk score``: the figures of the library, in every format, and one sentence a mistake."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest

import exactk
from exactk import Problem, score_selection
from exactk.cli.score import ESTIMATORS
from exactk.model_selection import scoring

WINE = ["--target", "cultivar", "--drop", "id", "--drop", "copies", "-k", 3, "--permutations", 5]


@pytest.fixture
def expected(wine):
    X, labels, names, _ = wine
    problem = Problem.from_arrays(X, labels, feature_names=names)
    return score_selection(problem, k=3, ridge="auto", n_permutations=5)


def test_text(run, wine_csv, expected):
    result = run("score", wine_csv, *WINE)
    assert (result.code, result.err) == (0, "")
    head, *lines = result.out.splitlines()
    assert head == (
        "accuracy of LogisticRegression on 3 of 13 features for 'cultivar' (classification, 178 "
        "rows, 5 folds)"
    )
    figures = f"honest     {expected.test_score:.3f} ± {expected.standard_error:.3f}"
    assert any(line.startswith(figures) for line in lines)
    assert any(line.startswith(f"naive      {expected.naive_score:.3f} ") for line in lines)
    assert any(line.startswith(f"baseline   {expected.baseline_score:.3f} ") for line in lines)
    assert any(line.startswith(f"optimism   {expected.optimism:.3f} ") for line in lines)
    assert any(line.startswith(f"p-value    {expected.p_value:.3g} ") for line in lines)
    for row in expected.folds:
        assert f"fold {row['fold']:<7} {', '.join(row['features'])}" in lines
    assert lines[-1] == f"on all rows  {', '.join(expected.features)}"


def test_csv_and_json(run, wine_csv, expected, tmp_path):
    rows = list(csv.DictReader(io.StringIO(run("score", wine_csv, *WINE, "--format", "csv").out)))
    assert [float(row["test_score"]) for row in rows] == pytest.approx(expected.folds["test_score"])
    file = tmp_path / "score.json"
    assert run("score", wine_csv, *WINE, "--format", "json", "-o", file).out == ""
    content = json.loads(file.read_text("utf-8"))
    assert content["version"] == exactk.__version__
    assert content["target"] == "cultivar"
    assert content["p_value"] == expected.p_value
    assert content["null"] == pytest.approx(expected.null.tolist())
    assert content["folds"][0]["features"] == expected.folds[0]["features"]


def test_options_reach_the_library(run, wine_csv, wine):
    X, labels, names, weights = wine
    args = [
        "--target", "cultivar", "--drop", "id", "-k", 2, "--folds", 3, "--permutations", 0,
        "--weights", "copies", "--scoring", "balanced_accuracy", "--estimator", "svm",
        "--method", "greedy", "--ridge", 0.5, "--seed", 3, "--exclude", "proline",
    ]  # fmt: skip
    content = json.loads(run("score", wine_csv, *args, "--format", "json").out)
    problem = Problem.from_arrays(X, labels, sample_weight=weights, feature_names=names)
    score = score_selection(
        problem.with_constraints(exclude=["proline"]), k=2, cv=3, scoring="balanced_accuracy",
        estimator="svm", method="greedy", ridge=0.5, random_state=3, n_permutations=0,
    )  # fmt: skip
    assert content["test_score"] == pytest.approx(score.test_score)
    assert [row["features"] for row in content["folds"]] == score.folds["features"]
    assert content["p_value"] is None
    assert content["scoring"] == "balanced_accuracy"


def test_auto(run, wine_csv, wine):
    X, labels, names, _ = wine
    args = [*WINE[:6], "-k", "auto", "--permutations", 0, "--format", "json"]
    content = json.loads(run("score", wine_csv, *args).out)
    problem = Problem.from_arrays(X, labels, feature_names=names)
    score = score_selection(problem, k="auto", ridge="auto", n_permutations=0)
    assert [row["k"] for row in content["folds"]] == score.folds["k"]


@pytest.mark.parametrize("ridge", ["auto", "cv", "0"])
def test_ridge(run, wine_csv, wine, ridge):
    X, labels, *_ = wine
    content = json.loads(run("score", wine_csv, *WINE, "--ridge", ridge, "--format", "json").out)
    asked = ridge if ridge != "0" else 0.0
    score = score_selection(X, labels, 3, ridge=asked, n_permutations=5)
    assert content["null"] == pytest.approx(score.null.tolist())
    assert content["observed"] == pytest.approx(score.observed)


def test_groups_column(run, wine_sites, wine, sites):
    X, labels, names, _ = wine
    problem = Problem.from_arrays(X, labels, feature_names=names)
    score = score_selection(problem, k=3, ridge="auto", n_permutations=5, groups=sites)
    result = run("score", wine_sites, *WINE, "--groups", "site", "--quiet", "--format", "json")
    content = json.loads(result.out)
    assert content["test_score"] == pytest.approx(score.test_score)
    assert content["n_features"] == 13
    assert content["null"] == pytest.approx(score.null.tolist())


def test_stopped_within_the_permutations(run, wine_csv, monkeypatch):
    from exactk.evaluation import permutation_test

    explained, calls = permutation_test._explained, []

    def stopped(problem, *options):
        calls.append(problem)
        return None if len(calls) == 4 else explained(problem, *options)

    monkeypatch.setattr(permutation_test, "_explained", stopped)
    result = run("score", wine_csv, *WINE)
    assert result.code == 130
    assert "stopped by the user after 2 of 5 permutations" in result.err
    assert "2 shuffled targets" in result.out


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["-k", "ten"], "'ten' is neither 'auto' nor a whole number"),
        (["-k", 0], "'0' is neither 'auto'"),
        (["--folds", 1], "--folds"),
        (["--scoring", "acuracy"], "did you mean 'accuracy'"),
        (["--estimator", "ridge"], "'ridge' is not for classification"),
        (["--estimator", "oracle"], "'oracle' is not one of"),
        (["--groups", "cultivar"], "--groups 'cultivar' has another part already"),
        (["--groups", "nowhere"], "--groups 'nowhere'"),
        (["--folds", 60], "class 'third' has 48 rows, fewer than the --folds 60"),
        (["-k", 14], "k=14 is more than the 13 usable columns"),
    ],
)
def test_mistakes(run, wine_csv, args, message):
    result = run("score", wine_csv, *WINE, *args)
    assert result.code == 2
    assert result.out == ""
    assert message in result.err
    assert result.err.count("\n") == 1


def test_moments_have_no_rows(run, wine_csv, tmp_path):
    result = run("score", "--from-moments", tmp_path / "some.npz", "-k", 3)
    assert result.code == 2
    assert "--from-moments cannot be scored: rows are held out" in result.err


def test_estimators_are_those_of_the_library():
    assert tuple(scoring.ESTIMATORS) == ESTIMATORS
    assert np.all([name.islower() for name in ESTIMATORS])


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--scoring", "roc_auc"], "use 'roc_auc_ovr' or 'roc_auc_ovo'"),
        (["--scoring", "f1"], "use 'f1_macro' or 'f1_weighted'"),
        (["--scoring", "roc_auc_ovr", "--estimator", "svm"], "this score needs probabilities"),
    ],
)
def test_scores_that_do_not_go_with_the_classes_or_the_estimator(run, wine_csv, args, message):
    asked = ["--target", "cultivar", "--drop", "id", "-k", 2, "--permutations", 0, "--quiet"]
    done = run("score", wine_csv, *asked, *args)
    assert done.code == 2
    assert message in done.err
    assert f"scoring {args[1]}" in done.err
