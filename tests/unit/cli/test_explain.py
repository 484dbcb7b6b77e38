"""``exactk explain``: text, JSON, CSV, and one sentence for every mistake."""

from __future__ import annotations

import csv
import io
import json

import pytest

from exactk import Problem, explain

ARGS = ["--target", "cultivar", "--drop", "id", "--drop", "copies"]


@pytest.fixture
def why(wine):
    """What the library says."""
    X, labels, names, _ = wine
    problem = Problem.from_arrays(X, labels, feature_names=names)
    problem = problem.with_ridge("auto")
    return explain(problem, 3, why_not=["ash"], max_sets=20)


def test_text(run, wine_csv, why):
    result = run("explain", wine_csv, *ARGS, "-k", 3, "--why-not", "ash")
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith("3 of 13 features for 'cultivar' (classification, 178 rows")
    for row in why.selected_features:
        line = next(line for line in result.out.splitlines() if line.startswith(row["feature"]))
        assert f"{row['loss_fraction']:.2%}" in line
        assert row["substitute"] in line
    assert f"{why.why_not[0]['loss_fraction']:.2%}" in result.out
    assert ("these are all" in result.out) == why.is_complete


def test_json_and_csv(run, wine_csv, why):
    content = json.loads(
        run("explain", wine_csv, *ARGS, "-k", 3, "--why-not", "ash", "--format", "json").out
    )
    assert content["selected"] == list(why.selected)
    assert content["why_not"][0]["regret"] == pytest.approx(why.why_not[0]["regret"])
    assert content["is_complete"] is why.is_complete
    assert len(content["alternatives"]) == len(why.alternatives)
    text = run("explain", wine_csv, *ARGS, "-k", 3, "--format", "csv").out
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["substitute"] for row in rows] == why.selected_features["substitute"]


def test_a_set_of_ones_own(run, wine_csv):
    result = run("explain", wine_csv, *ARGS, "--features", "ash,alcohol", "--format", "json")
    content = json.loads(result.out)
    assert sorted(content["selected"]) == ["alcohol", "ash"]
    assert "better set" in result.err


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ([], ["-k", "--features"]),
        (["-k", "2", "--features", "ash"], ["-k", "--features"]),
        (["--features", "asch"], ["--features: ", "'asch'", "did you mean 'ash'"]),
        (["-k", "2", "--why-not", "asch"], ["--why-not: ", "'asch'"]),
        (["-k", "2", "--tolerance", "-1"], ["tolerance"]),
        (["-k", "2", "--tolerance", "nan"], ["--tolerance must be"]),
        (["-k", "99"], ["k=99"]),
    ],
)
def test_every_mistake_is_one_sentence(run, wine_csv, args, words):
    result = run("explain", wine_csv, *ARGS, *args)
    assert (result.code, result.out) == (2, "")
    assert result.err.count("\n") == 1
    for word in words:
        assert word in result.err
