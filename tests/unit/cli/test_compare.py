"""``exactk compare``: the figures of the library, in every format, and one sentence a mistake."""

from __future__ import annotations

import csv
import io
import json

import pytest

import exactk
from exactk import Problem, compare
from exactk.evaluation.fold_data import EvaluationData

WINE = ["--target", "cultivar", "--drop", "id", "--drop", "copies", "-k", 3]


@pytest.fixture
def expected(wine):
    X, labels, names, _ = wine
    return compare(Problem.from_arrays(X, labels, feature_names=names), k=3, ridge="auto")


def test_text(run, wine_csv, expected):
    result = run("compare", wine_csv, *WINE)
    assert (result.code, result.err) == (0, "")
    head, blank, *lines = result.out.splitlines()
    assert head == (
        "accuracy of LogisticRegression on 3 of 13 features for 'cultivar' (classification, 178 "
        "rows, 5 folds)"
    )
    assert blank == ""
    assert lines[0].split() == [
        "method", "accuracy", "difference", "excess", "stability", "seconds", "shared",
    ]  # fmt: skip
    for line, row in zip(lines[1:5], expected.table, strict=True):
        score = f"{row['mean']:.3f} ± {row['standard_error']:.3f}"
        assert line.startswith(f"{row['method']:11}  {score}")
        assert f"  {row['excess']:.2%} " in line
        assert line.endswith(f"  {row['shared']} of 3")
        assert f"{row['method']:11}  {', '.join(row['features'])}" in lines
    assert "chosen within each fold" in result.out
    assert (
        f"no features {expected.baseline:.3f}, with all {expected.all_features:.3f}" in result.out
    )
    # Columns stand below each other.
    assert len({line.index(" of 3") for line in lines[1:5]}) == 1


def test_csv_and_json(run, wine_csv, expected, tmp_path):
    rows = list(csv.DictReader(io.StringIO(run("compare", wine_csv, *WINE, "--format", "csv").out)))
    assert [float(row["mean"]) for row in rows] == pytest.approx(expected.table["mean"])
    assert [row["features"].split(";") for row in rows] == expected.table["features"]
    file = tmp_path / "compared.json"
    assert run("compare", wine_csv, *WINE, "--format", "json", "-o", file).out == ""
    content = json.loads(file.read_text("utf-8"))
    assert content["version"] == exactk.__version__
    assert content["target"] == "cultivar"
    assert [row["method"] for row in content["methods"]] == ["exchange", "selectkbest", "rfe", "l1"]
    assert content["folds"] == json.loads(expected.folds.to_json())


def test_options_reach_the_library(run, wine_csv, wine):
    X, labels, names, weights = wine
    args = [
        "--target", "cultivar", "--drop", "id", "-k", 2, "--folds", 3, "--weights", "copies",
        "--scoring", "balanced_accuracy", "--estimator", "svm", "--methods", "greedy,l1",
        "--methods", "fisher", "--ridge", 0.5, "--seed", 3, "--exclude", "proline",
        "--time-limit", 100,
    ]  # fmt: skip
    content = json.loads(run("compare", wine_csv, *args, "--format", "json").out)
    problem = Problem.from_arrays(X, labels, sample_weight=weights, feature_names=names)
    found = compare(
        problem.with_constraints(exclude=["proline"]), k=2, methods=["greedy", "l1", "fisher"],
        cv=3, scoring="balanced_accuracy", estimator="svm", ridge=0.5, random_state=3,
    )  # fmt: skip
    assert content["folds"] == json.loads(found.folds.to_json())
    assert content["ridge"] == 0.5
    assert content["seed"] == 3


def test_groups_column(run, wine_sites, wine, sites):
    X, labels, names, _ = wine
    problem = Problem.from_arrays(X, labels, feature_names=names)
    found = compare(problem, k=3, methods=["exchange", "rfe"], groups=sites)
    result = run("compare", wine_sites, *WINE, "--groups", "site", "--methods", "exchange,rfe",
                 "--quiet", "--format", "json")  # fmt: skip
    content = json.loads(result.out)
    assert [row["mean"] for row in content["methods"]] == pytest.approx(found.table["mean"])
    assert content["n_features"] == 13


def test_a_method_that_refuses_is_a_line_with_its_reason(run, wine_csv):
    args = ["--methods", "exchange,fisher,rfe", "--include", "ash"]
    result = run("compare", wine_csv, *WINE, *args)
    assert result.code == 0
    lines = result.out.splitlines()
    assert any(line.split() == ["fisher", "refused"] for line in lines)
    assert any(
        line.startswith("fisher    method 'fisher' does not keep constraints other than --exclude")
        for line in lines
    )
    assert "rfe       does not keep constraints other than --exclude" in lines
    first = run("compare", wine_csv, *WINE, "--methods", "fisher,rfe", "--include", "ash")
    assert first.code == 0
    assert first.err.startswith("exactk: fisher, with which the others are compared, gave no")
    alone = run("compare", wine_csv, *WINE, "--methods", "fisher", "--include", "ash")
    assert (alone.code, alone.out) == (2, "")
    assert "no method gave an answer: fisher: method 'fisher' does not keep" in alone.err


def test_stopped_after_a_method(run, wine_csv, monkeypatch):
    solve, calls = EvaluationData.solve, []

    def stopped(self, *args):
        calls.append(self)
        if len(calls) == 8:
            raise KeyboardInterrupt
        return solve(self, *args)

    monkeypatch.setattr(EvaluationData, "solve", stopped)
    result = run("compare", wine_csv, *WINE, "--methods", "exchange,greedy,rfe")
    assert result.code == 130
    assert result.err == "exactk: stopped by the user after 1 of 3 methods.\n"
    assert "exchange" in result.out
    assert "greedy" not in result.out


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--methods", "exchnage"], "unknown method 'exchnage'; did you mean 'exchange'"),
        (["--methods", "rfe,select-k-best"], "did you mean 'selectkbest'"),
        (["--methods", ","], "names nothing"),
        (["--methods", "l1,rfe,l1"], "'--methods': 'l1' named more than once; name each once"),
        (["-k", 0], "-k"),
        (["-k", 14], "k=14 is more than the 13 usable columns"),
        (["--folds", 1], "--folds"),
        (["--folds", 60], "class 'third' has 48 rows, fewer than the --folds 60"),
        (["--scoring", "acuracy"], "did you mean 'accuracy'"),
        (["--estimator", "ridge"], "'ridge' is not for classification"),
        (["--time-limit", 0], "--time-limit"),
        (["--groups", "cultivar"], "--groups 'cultivar' has another part already"),
        (["--output", "/"], "--output '/' is a folder"),
    ],
)
def test_mistakes(run, wine_csv, args, message):
    result = run("compare", wine_csv, *WINE, *args)
    assert result.code == 2
    assert result.out == ""
    assert message in result.err
    assert result.err.count("\n") == 1


def test_names_are_checked_before_the_table_is_read(run, tmp_path):
    result = run("compare", tmp_path / "nowhere.csv", *WINE, "--methods", "exchnage")
    assert "unknown method 'exchnage'" in result.err


def test_moments_have_no_rows(run, tmp_path):
    result = run("compare", "--from-moments", tmp_path / "some.npz", "-k", 3)
    assert result.code == 2
    assert "--from-moments cannot be compared on: rows are held out" in result.err


def test_k_is_required(run, wine_csv):
    result = run("compare", wine_csv, "--target", "cultivar")
    assert result.code == 2
    assert "-k" in result.err


def test_a_reason_of_all_methods_is_said_once(run, wine_csv):
    asked = ["--target", "cultivar", "--drop", "id", "-k", 2, "--methods", "greedy,rfe", "--quiet"]
    done = run("compare", wine_csv, *asked, "--scoring", "roc_auc_ovr", "--estimator", "svm")
    assert done.code == 2
    assert "no method gave an answer: greedy, rfe: SVC with scoring roc_auc_ovr" in done.err
    assert done.err.count("needs probabilities") == 1
