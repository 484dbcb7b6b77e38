"""``exactk path`` and ``exactk select -k auto``: the library's answers, in every format."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest
from sklearn.model_selection import GroupKFold

import exactk
from exactk import Problem, Result, choose_k
from exactk.cli import search_options
from exactk.model_selection import choose_k as choose_k_module

NO_ID = ["--drop", "id", "--drop", "copies"]


@pytest.fixture
def problem(wine) -> Problem:
    X, labels, names, _ = wine
    return Problem.from_arrays(X, labels, feature_names=names)


def asked(wine_csv, *args: object) -> list[object]:
    return [wine_csv, "--target", "cultivar", *NO_ID, *args]


def test_text(run, wine_csv, problem):
    choice = choose_k(problem, ridge="auto")
    result = run("path", *asked(wine_csv))
    assert (result.code, result.err) == (0, "")
    lines = result.out.splitlines()
    assert lines[0] == "sizes up to 13 of 13 features for 'cultivar' (classification, 178 rows)"
    rows = lines[3:16]
    assert [line for line in rows if line.startswith("*")] == [rows[choice.k - 1]]
    assert f"{choice.table['mean'][0]:.6g}" in rows[0]
    assert f"{choice.table['standard_error'][0]:.6g}" in rows[0]
    assert choice.table["added"][0][0] in rows[0]
    assert f"chosen     k = {choice.k} by cv (one_se, 5 folds)" in lines


@pytest.mark.parametrize("criterion", ["cv", "bic", "ebic", "aicc", "cp"])
def test_json_and_csv_hold_the_table(run, wine_csv, problem, criterion):
    args = asked(wine_csv, "--criterion", criterion, "--k-max", 6, "--ridge", 0.2)
    choice = choose_k(problem, 6, criterion=criterion, ridge=0.2)
    content = json.loads(run("path", *args, "--format", "json").out)
    assert content["k"] == choice.k
    assert content["criterion"] == criterion
    assert content["ridge"] == 0.2
    assert content["target"] == "cultivar"
    assert content["version"] == exactk.__version__
    assert Result.from_dict(content["result"]).support.tolist() == choice.result.support.tolist()
    assert [row["features"] for row in content["table"]] == choice.table["features"]
    rows = list(csv.DictReader(io.StringIO(run("path", *args, "--format", "csv").out)))
    values = [float(row["criterion"]) for row in rows]
    np.testing.assert_allclose(values, choice.table["criterion"], rtol=1e-12)
    assert [row["chosen"] for row in rows] == [str(k == choice.k) for k in range(1, 7)]
    assert [int(row["k"]) for row in rows] == list(range(1, 7))


def test_options_are_handed_on(run, wine_csv, problem):
    args = ["--k-max", 5, "--folds", 3, "--rule", "best", "--seed", 4, "--effort", 0]
    text = run("path", *asked(wine_csv, *args, "--format", "json")).out
    choice = choose_k(problem, 5, cv=3, rule="best", random_state=4, effort=0, ridge="auto")
    content = json.loads(text)
    assert content["n_folds"] == 3
    assert [row["mean"] for row in content["table"]] == pytest.approx(choice.table["mean"])
    # The seed is that of the split, also for a method without one.
    other = json.loads(
        run("path", *asked(wine_csv, "--k-max", 5, "--method", "greedy", "--seed", 4,
                           "--folds", 3, "--format", "json")).out
    )  # fmt: skip
    greedy = choose_k(problem, 5, cv=3, method="greedy", random_state=4, ridge="auto")
    assert [row["mean"] for row in other["table"]] == pytest.approx(greedy.table["mean"])


def test_select_auto(run, wine_csv, problem):
    choice = choose_k(problem, ridge="auto")
    text = run("select", *asked(wine_csv, "-k", "auto")).out
    assert text.startswith(f"{choice.k} of 13 features for 'cultivar'")
    assert f"chosen     k = {choice.k} of 1..13 by cv (one_se, 5 folds)" in text
    content = json.loads(run("select", *asked(wine_csv, "-k", "auto", "--format", "json")).out)
    assert content["support"] == choice.result.support.tolist()
    assert content["choice"]["k"] == choice.k
    assert len(content["choice"]["table"]) == 13
    args = ["-k", "auto", "--criterion", "bic", "--k-max", 4, "--format", "csv"]
    rows = list(csv.DictReader(io.StringIO(run("select", *asked(wine_csv, *args)).out)))
    expected = choose_k(problem, 4, criterion="bic", ridge="auto")
    assert [int(row["index"]) for row in rows] == expected.result.order.tolist()
    assert "by bic (the least)" in run("select", *asked(wine_csv, *args[:-2])).out


def test_groups_of_rows_stay_together(run, wine_sites, problem, sites):
    asked_for = ["--target", "cultivar", *NO_ID, "--groups", "site", "--folds", 4, "--format",
                 "json", "--quiet"]  # fmt: skip
    folds = list(GroupKFold(4).split(problem.rows.columns([0]), groups=sites))
    choice = choose_k(problem, ridge="auto", cv=folds)
    content = json.loads(run("path", wine_sites, *asked_for).out)
    assert content["row_groups"] == "site"
    assert content["n_features"] == 13
    assert [row["mean"] for row in content["table"]] == pytest.approx(choice.table["mean"])
    plain = choose_k(problem, ridge="auto", cv=4)
    assert choice.table["mean"] != pytest.approx(plain.table["mean"])
    chosen = json.loads(run("select", wine_sites, "-k", "auto", *asked_for).out)
    assert chosen["row_groups"] == "site"
    assert chosen["choice"]["table"] == content["table"]


def test_errors_of_groups_speak_of_groups(run, tmp_path):
    path = tmp_path / "table.csv"
    rows = "".join(f"{i},{i * 7 % 5},{'uv'[i % 2]},one,{'' if i % 4 else 's'}\n" for i in range(20))
    path.write_text(f"a,b,y,one,gaps\n{rows}", encoding="utf-8")
    for column, words in (
        ("one", "--groups 'one' has one group only; rows are split between two at least"),
        ("gaps", "--groups 'gaps': the column has 15 missing values"),
    ):
        others = [name for name in ("one", "gaps") if name != column]
        result = run("path", path, "--target", "y", "--drop", others[0], "--groups", column)
        assert result.code == 2
        assert words in result.err


@pytest.mark.parametrize(
    "command",
    [
        ["path", "--k-max", 3, "--effort", 0],
        ["score", "-k", 2, "--effort", 0],
        ["stability", "-k", 2, "--samples", 4, "--effort", 0],
        ["compare", "-k", 2, "--methods", "greedy,fisher"],
        ["select", "-k", "auto", "--k-max", 2, "--classes", "first,second,third"],
    ],
    ids=lambda command: command[0],
)
def test_rows_that_count_nothing_have_groups_too(run, wine, wine_sites, command):
    weights = wine[3]
    assert (weights == 0).any()
    asked_for = ["--target", "cultivar", "--drop", "id", "--weights", "copies", "--groups", "site",
                 "--format", "json", "--quiet", *command[1:]]  # fmt: skip
    found = run(command[0], wine_sites, *asked_for)
    assert (found.code, found.err) == (0, "")
    if wine_sites.is_file() and "--classes" not in command:
        # Read whole, they are rows of the folds all the same.
        return
    for file in wine_sites.glob("*.csv") if wine_sites.is_dir() else [wine_sites]:
        head, *rows = file.read_text().splitlines()
        counted = [row for row in rows if row.split(",")[-3] != "0"]
        file.write_text("\n".join([head, *counted]))
    other = json.loads(run(command[0], wine_sites, *asked_for).out)
    name = {"path": "table", "select": "choice", "compare": "methods", "score": "test_score",
            "stability": "index"}[command[0]]  # fmt: skip
    assert _rounded(json.loads(found.out)[name]) == _rounded(other[name])


def _rounded(found):
    """Without the last digits of numbers, and without what a clock has measured."""
    if isinstance(found, dict):
        return {name: _rounded(value) for name, value in found.items() if "seconds" not in name}
    if isinstance(found, list):
        return [_rounded(value) for value in found]
    return round(found, 8) if isinstance(found, float) else found


def test_groups_of_more_rows_than_memory_holds(run, wine_sites):
    result = run("path", wine_sites, "--target", "cultivar", *NO_ID, "--groups", "site",
                 "--memory-limit", "6K", "--quiet")  # fmt: skip
    if wine_sites.is_dir():
        assert result.code == 2
        assert "--groups 'site' needs the rows in memory" in result.err
        assert result.err.count("\n") == 1
    else:
        assert result.code == 0


@pytest.mark.parametrize("command", ["path", "select", "score", "stability"])
def test_help_distinguishes_groups_of_rows_from_groups_of_features(run, command):
    shown = " ".join(run(command, "--help").out.split())
    assert "--groups COLUMN Rows that belong together" in shown
    assert "(Features that enter together: --group.)" in shown


def test_moments_choose_by_a_criterion(run, wine_csv, problem, tmp_path):
    moments = tmp_path / "wine.moments"
    built = run("stats", "build", *asked(wine_csv), "-o", moments)
    assert built.code == 0
    for command in (["path"], ["select", "-k", "auto"]):
        refused = run(*command, "--from-moments", moments)
        assert refused.code == 2
        assert "made of moments" in refused.err
        assert "--criterion ebic" in refused.err
        refused = run(*command, "--from-moments", moments, "--groups", "site")
        assert refused.code == 2
        assert "--groups names the groups of rows, and --from-moments has none" in refused.err
    args = ["--from-moments", moments, "--criterion", "ebic", "--format", "json"]
    content = json.loads(run("path", *args).out)
    assert content["k"] == choose_k(problem, criterion="ebic", ridge="auto").k
    assert content["table"][0]["mean"] is None


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["path", "--k-max", 0], "Invalid value for '--k-max'"),
        (["path", "--folds", 1000], "--folds must be a whole number from 2 to 178, not 1000"),
        (["path", "--criterion", "bic", "--folds", 3], "leave --folds out"),
        (["path", "--criterion", "aic"], "'--criterion'"),
        (["path", "--method", "exchnage"], "did you mean 'exchange'?"),
        (["select", "-k", "many"], "'many' is neither 'auto' nor a whole number"),
        (["select", "-k", 3, "--k-max", 5], "--k-max goes with -k auto"),
        (["select", "-k", 3, "--criterion", "bic"], "--criterion goes with -k auto"),
        (["select", "-k", 3, "--groups", "color_intensity"], "--groups goes with -k auto"),
        (["path", "--groups", "cultivar"], "--groups 'cultivar' has another part already"),
        (["select", "-k", "auto", "--groups", "sight"], "--groups 'sight'"),
        (["path", "--groups", "alcohol"], "name the groups by text or whole numbers"),
        (["path", "--groups", "id", "--criterion", "bic"], "leave --groups out"),
        (["path", "--groups", "copies", "--folds", 4], "and --groups has 3; use --folds 3"),
    ],
)
def test_a_mistake_is_one_sentence(run, wine_csv, args, message):
    command, *rest = args
    result = run(command, *asked(wine_csv, *rest))
    assert (result.code, result.out) == (2, "")
    assert message in result.err
    assert result.err.startswith("exactk: ")
    assert result.err.count("\n") == 1


def test_output_goes_to_a_file(run, wine_csv, tmp_path):
    out = tmp_path / "path.csv"
    result = run("path", *asked(wine_csv, "--k-max", 3, "--format", "csv", "-o", out))
    assert (result.code, result.out) == (0, "")
    assert len(out.read_text().splitlines()) == 4
    refused = run("path", *asked(wine_csv, "-o", wine_csv))
    assert "is the table itself" in refused.err


def test_criteria_and_rules_are_those_of_the_library():
    assert search_options.CRITERIA == choose_k_module.CHOICES
    assert search_options.RULES == choose_k_module.RULES
