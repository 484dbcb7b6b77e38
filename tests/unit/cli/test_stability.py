"""``exactk stability``: text, JSON, CSV, and one sentence for every mistake."""

from __future__ import annotations

import csv
import io
import json

import pytest

from exactk import Problem
from exactk.model_selection.stability import stability

ARGS = ["--target", "cultivar", "--drop", "id", "--drop", "copies", "-k", 3, "--samples", 12]


@pytest.fixture
def answer(wine):
    """What the library says."""
    X, labels, names, _ = wine
    problem = Problem.from_arrays(X, labels, feature_names=names)
    return stability(problem.with_ridge("auto"), 3, n_subsamples=12)


def test_text(run, wine_csv, answer):
    result = run("stability", wine_csv, *ARGS)
    assert (result.code, result.err) == (0, "")
    head, _, columns, *lines = result.out.splitlines()
    assert head == (
        "3 of 13 features for 'cultivar', chosen on 12 halves of 178 rows (classification)"
    )
    assert columns.split()[0] == "feature"
    shown = [line.split()[0] for line in lines[: lines.index("")]]
    assert shown == [
        row["feature"]
        for row in answer.table
        if row["part"] != "rare" or row["in_full"] or row["selected"]
    ]
    low, high = answer.interval
    assert f"index         {answer.index:.3f} ({low:.3f} to {high:.3f})" in result.out
    assert f"core          {len(answer.core)} in 90% of the halves" in result.out
    assert f"unstable      {len(answer.unstable)}\n" in result.out
    assert f"rare          {len(answer.rare)} in 5% of the halves" in result.out


def test_csv(run, wine_csv, answer):
    text = run("stability", wine_csv, *ARGS, "--format", "csv").out
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["feature"] for row in rows] == answer.table["feature"]
    assert [float(row["frequency"]) for row in rows] == answer.table["frequency"]


def test_json_and_output(run, wine_csv, answer, tmp_path):
    out = tmp_path / "found.json"
    result = run("stability", wine_csv, *ARGS, "--format", "json", "-o", out)
    assert (result.code, result.out) == (0, "")
    content = json.loads(out.read_text())
    assert content["index"] == pytest.approx(answer.index)
    assert content["support"] == answer.support.tolist()
    assert [row["frequency"] for row in content["table"]] == answer.table["frequency"]
    assert (content["target"], content["n_rows"]) == ("cultivar", 178)


def test_seed_threshold_and_method(run, wine_csv, wine):
    X, labels, names, _ = wine
    problem = Problem.from_arrays(X, labels, feature_names=names, ridge=0.5)
    words = ["--seed", 3, "--threshold", 0.6, "--negligible", 0.2, "--method", "fisher",
             "--ridge", 0.5, "--format", "json"]  # fmt: skip
    content = json.loads(run("stability", wine_csv, *ARGS, *words).out)
    wanted = stability(
        problem, 3, n_subsamples=12, method="fisher", threshold=0.6, negligible=0.2, random_state=3
    )
    assert content["core"] == list(wanted.core.names)
    assert content["unstable"] == list(wanted.unstable.names)
    assert content["method"] == "fisher"


def test_a_time_limit_is_said(run, wine_csv):
    result = run("stability", wine_csv, *ARGS, "--time-limit", 1e-9)
    assert result.code == 0
    assert result.err == "exactk: the time limit ended it after 2 of 12 half-samples.\n"
    assert "status        time_limit" in result.out


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--samples", 1], ["--samples"]),
        (["--threshold", 0.5], ["--threshold"]),
        (["--method", "nonsense"], ["nonsense"]),
        (["-O", "nonsense=1"], ["nonsense"]),
        (["-k", 99], ["k=99", "13 usable"]),
    ],
    ids=["samples", "threshold", "method", "option", "k"],
)
def test_one_sentence_for_a_mistake(run, wine_csv, args, words):
    result = run("stability", wine_csv, *ARGS, *args)
    assert result.code == 2
    assert len(result.err.splitlines()) == 1
    assert all(word in result.err for word in words)


def test_moments_cannot_be_halved(run, wine_csv, tmp_path):
    moments = tmp_path / "wine.npz"
    words = ["--target", "cultivar", "--drop", "id", "--drop", "copies"]
    assert run("stats", "build", wine_csv, *words, "-o", moments).code == 0
    result = run("stability", "--from-moments", moments, "-k", 3)
    assert result.code == 2
    assert "rows" in result.err


def test_groups_of_rows_are_drawn_whole(run, wine_sites, wine, sites):
    X, labels, names, _ = wine
    problem = Problem.from_arrays(X, labels, feature_names=names)
    problem = problem.with_ridge("auto")
    # Without effort, so that not all halves agree.
    wanted = stability(problem, 3, n_subsamples=12, groups=sites, effort=0)
    args = [*ARGS, "--effort", 0, "--groups", "site", "--format", "json", "--quiet"]
    content = json.loads(run("stability", wine_sites, *args).out)
    assert content["row_groups"] == "site"
    assert content["table"] == json.loads(wanted.table.to_json())
    alone = stability(problem, 3, n_subsamples=12, effort=0)
    assert wanted.table["frequency"] != alone.table["frequency"]


def test_too_few_groups(run, wine_csv):
    result = run("stability", wine_csv, *ARGS, "--groups", "copies")
    assert result.code == 2
    assert "--groups has 3 groups of rows" in result.err
