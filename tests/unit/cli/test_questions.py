"""``exactk certify``, ``explain``, ``stability`` and ``evaluate``: the answers of the library."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import numpy as np
import pytest

import exactk
from exactk import BestSets, Certificate, CertifiedPath, Problem
from exactk.cli.framework.call import Call

WINE = ["cultivar", "--drop", "id,copies"]
# A small question for each command, and the function with its arguments.
QUICK = {
    "certify": ["-k", 2],
    "explain": ["-k", 2],
    "stability": ["-k", 2, "--subsamples", 6],
    "evaluate": ["-k", 2, "--folds", 3],
}


@pytest.fixture
def problem(wine) -> Problem:
    X, labels, names, _ = wine
    return Problem.from_arrays(X, labels, feature_names=names).with_ridge("auto")


@pytest.fixture
def ask(run):
    """The result in the JSON of a call."""

    def call(*args):
        done = run(*args, "--format", "json")
        assert done.code == 0, done.err
        found = json.loads(done.out)
        assert found["command"] == args[0]
        return found["result"]

    return call


@pytest.fixture
def rows(run):
    """The lines of the CSV of a call."""

    def call(*args):
        done = run(*args, "--format", "csv")
        assert done.code == 0, done.err
        return list(csv.DictReader(io.StringIO(done.out)))

    return call


def passing(name: str) -> Any:
    """Whether a value differs from run to run."""
    return name in ("seconds", "nodes")


def same(one: Any, two: Any) -> None:
    """Compare results without the seconds that they took."""
    if isinstance(two, dict):
        assert set(one) == set(two)
        for name in two:
            if not passing(name):
                same(one[name], two[name])
    elif isinstance(two, (list, tuple)):
        assert len(one) == len(two)
        for left, right in zip(one, two, strict=True):
            same(left, right)
    elif isinstance(two, float):
        assert one == pytest.approx(two, rel=1e-6, abs=1e-9)
    else:
        assert one == two


# --- all of them -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "args", "parameters"),
    [
        ("certify", ["-k", 2], {"k": 2}),
        ("explain", ["-k", 2, "--why-not", "ash"], {"k": 2, "why_not": ["ash"]}),
        ("explain", ["--features", "ash,hue"], {"features": ["ash", "hue"]}),
        (
            "stability",
            ["-k", 3, "--subsamples", 8, "--threshold", 0.8, "--seed", 2, "--method", "greedy"],
            {"k": 3, "n_subsamples": 8, "threshold": 0.8, "random_state": 2, "method": "greedy"},
        ),
        (
            "evaluate",
            ["-k", 2, "--folds", 3, "--estimator", "knn", "--scoring", "f1_macro", "--seed", 1,
             "--compare-with", "greedy,rfe", "--permutations", 3, "--ridge", 0.5],
            {"k": 2, "cv": 3, "estimator": "knn", "scoring": "f1_macro", "random_state": 1,
             "compare_with": ["greedy", "rfe"], "n_permutations": 3, "ridge": 0.5},
        ),
        ("evaluate", ["-k", "auto", "--folds", 3], {"k": "auto", "cv": 3}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_the_answer_is_that_of_the_library(ask, wine_csv, problem, command, args, parameters):
    expected = getattr(exactk, command)(problem, **{"ridge": "auto", **parameters}).to_dict()
    same(ask(command, wine_csv, *WINE, *args), json.loads(json.dumps(expected)))


@pytest.mark.parametrize("command", QUICK)
def test_text_names_the_table_and_the_features(run, ask, wine_csv, command):
    args = [command, wine_csv, *WINE, *QUICK[command], "--seed", 0]
    done = run(*args)
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines()[0].startswith("2 of 13 features for 'cultivar'")
    found = ask(*args)
    for name in found.get("result", found).get("selected", found.get("features", [])):
        assert name in done.out


@pytest.mark.parametrize("command", QUICK)
def test_constraints_are_kept(ask, wine_csv, command):
    args = [*WINE, *QUICK[command], "--include", "ash", "--exclude", "proline,alcohol"]
    text = json.dumps(ask(command, wine_csv, *args))
    assert '"ash"' in text
    found = ask(command, wine_csv, *args)
    names = found.get("result", found).get("selected", found.get("features", []))
    assert "proline" not in names
    assert "alcohol" not in names


@pytest.mark.parametrize("command", QUICK)
def test_what_was_assumed_is_said(run, tmp_path, command):
    path = tmp_path / "t.csv"
    path.write_text("a,b,c,y\n" + "".join(f"{i * i % 11},{i % 7},{i % 5},{i % 3}\n"
                                          for i in range(90)))  # fmt: skip
    done = run(command, path, "y", *QUICK[command])
    assert done.code == 0, done.err
    assert "--task regression" in done.out
    with_csv = run(command, path, "y", *QUICK[command], "--format", "csv")
    assert "--task regression" in with_csv.err


@pytest.mark.parametrize("command", ["stability", "evaluate"])
def test_groups_of_rows_stay_together(ask, run, wine_sites, problem, sites, command):
    args = [*WINE, *QUICK[command], "--seed", 3]
    found = ask(command, wine_sites, *args, "--groups", "site", "--quiet")
    sizes = {"n_subsamples": 6} if command == "stability" else {"cv": 3}
    expected = getattr(exactk, command)(
        problem, k=2, groups=np.array(sites), random_state=3, **sizes
    ).to_dict()
    for name in ("index", "core") if command == "stability" else ("test_score", "n_folds"):
        same(found[name], expected[name])
    wrong = run(command, wine_sites, *args, "--groups", "sit")
    assert wrong.code == 2
    assert "did you mean 'site'?" in wrong.err


@pytest.mark.parametrize("command", QUICK)
def test_moments(run, ask, wine_csv, tmp_path, command):
    moments = tmp_path / "wine.moments"
    assert run("moments", "build", wine_csv, *WINE, "-o", moments).code == 0
    if command in ("certify", "explain"):
        found = ask(command, moments, *QUICK[command])
        same(found["objective" if command == "explain" else "upper"],
             ask(command, wine_csv, *WINE, *QUICK[command])[
                 "objective" if command == "explain" else "upper"])  # fmt: skip
    else:
        done = run(command, moments, *QUICK[command])
        assert (done.code, done.out) == (2, "")
        assert "rows" in done.err


@pytest.mark.parametrize(
    ("command", "args", "words"),
    [
        ("certify", [], "give -k"),
        ("explain", ["-k", 2, "--features", "ash"], "-k"),
        ("explain", ["-k", 2, "--why-not", "asch"], "did you mean 'ash'?"),
        ("explain", ["-k", 2, "--tolerance", "-1"], "--tolerance must be"),
        ("stability", ["-k", 2, "--subsamples", 1], "--subsamples must be"),
        ("stability", ["-k", 2, "--threshold", 0.5], "--threshold must be"),
        ("stability", ["-k", 14], "14"),
        ("evaluate", ["-k", 2, "--folds", 400], "400"),
        ("evaluate", ["-k", 2, "--scoring", "nix"], "nix"),
        ("evaluate", ["-k", 2, "--estimator", "ridge"], "classification"),
        ("evaluate", ["-k", 2, "--compare-with", "exchnage"], "did you mean 'exchange'?"),
        ("evaluate", ["-k", 2, "--compare-with", "exchange"], "exchange"),
        ("certify", ["-k", 2, "--loss", "logistic"], "squared"),
        ("certify", ["-k", 2, "--best", 2, "--path"], "--best"),
        ("certify", ["--features", "ash,hue", "--best", 2], "--features does not go with --best"),
        ("certify", ["--features", "ash,hue", "--path"], "--features does not go with --path"),
        ("certify", ["-k", "auto", "--path"], "--path needs -k"),
        ("certify", ["--features", "asch"], "did you mean 'ash'?"),
        ("certify", ["-k", 2, "--time-limit", "nan"], "--time-limit must be"),
        ("certify", ["-k", 2, "--jobs", 0], "--jobs must be"),
    ],
)
def test_every_mistake_is_one_sentence(run, wine_csv, command, args, words):
    done = run(command, wine_csv, *WINE, *args)
    assert (done.code, done.out) == (2, "")
    assert words in done.err
    assert done.err.count("\n") == 1


# --- certify ---------------------------------------------------------------------------------


def test_a_better_set_replaces_the_given_one(run, ask, wine_csv, problem):
    found = Certificate.from_dict(ask("certify", wine_csv, *WINE, "--features", "ash,hue"))
    assert found.improved
    assert found.result.objective == pytest.approx(exactk.solve(problem, 2).objective)
    assert found.summary in run("certify", wine_csv, *WINE, "--features", "ash,hue").out


def test_every_size(run, ask, rows, wine_csv):
    args = ["certify", wine_csv, *WINE, "-k", 3, "--path"]
    found = CertifiedPath.from_dict(ask(*args))
    assert [one.k for one in found] == [1, 2, 3]
    assert all(one.proven for one in found)
    assert [float(row["objective"]) for row in rows(*args)] == pytest.approx(
        [one.upper for one in found]
    )
    assert run(*args).out.splitlines()[0].startswith("3 sizes for 'cultivar'")


def test_the_best_sets(run, ask, rows, wine_csv, problem):
    args = ["certify", wine_csv, *WINE, "-k", 2, "--best", 4]
    found = BestSets.from_dict(ask(*args))
    expected = exactk.best_sets(problem, k=2, n_best=4)
    assert found.names == expected.names
    assert len(rows(*args)) == 4
    assert run(*args).out.splitlines()[0].startswith("4 sets for 'cultivar'")
    near = ask("certify", wine_csv, *WINE, "-k", 2, "--within", 0.02)
    least = expected.objectives[0]
    assert near["objectives"] == pytest.approx(
        [one for one in expected.objectives if one <= 1.02 * least]
    )


# --- stability and evaluate ------------------------------------------------------------------


def test_a_time_limit_is_said(run, wine_csv):
    args = [*WINE, "-k", 3, "--subsamples", 100_000, "--time-limit", 0.3, "--format", "json"]
    done = run("stability", wine_csv, *args)
    assert done.code == 0
    assert json.loads(done.out)["result"]["status"] == "time_limit"
    assert done.err.startswith("Note: ")


def test_a_method_that_cannot_answer_is_a_line_with_its_reason(run, rows, wine_csv):
    args = ["evaluate", wine_csv, *WINE, "-k", 2, "--folds", 3, "--compare-with", "selectkbest"]
    args += ["--include", "ash", "--compare-with", "nmapg:max-iter=50"]
    found = {row["method"]: row for row in rows(*args)}
    assert list(found)[:2] == ["exchange", "selectkbest"]
    refused = [row for row in found.values() if row["status"] == "refused"]
    assert refused
    assert all(row["note"] for row in refused)


def test_the_permutation_test_counts_targets(run, wine_csv):
    done = run("evaluate", wine_csv, *WINE, "-k", 2, "--folds", 3, "--permutations", 5)
    assert "0 of 5 shuffled targets did as well" in done.out


def test_an_interrupted_result_is_written_with_its_own_code(run, wine_csv, monkeypatch):
    import importlib

    module = importlib.import_module("exactk.model_selection.stability")
    whole = module.stability

    def stopped(*args, **options):
        found = whole(*args, **options)
        object.__setattr__(found, "status", type(found.status).INTERRUPTED)
        return found

    monkeypatch.setattr(module, "stability", stopped)
    done = run("stability", wine_csv, *WINE, *QUICK["stability"])
    assert done.code == 130
    assert done.out.startswith("2 of 13 features")
    assert "Interrupted" in done.err


def test_arguments_have_only_what_was_given(run, wine_csv, monkeypatch):
    seen: dict[str, Any] = {}
    whole = Call.arguments

    def spy(self, data):
        seen.update(whole(self, data))
        return dict(seen)

    monkeypatch.setattr(Call, "arguments", spy)
    run("explain", wine_csv, *WINE, "-k", 2)
    assert seen == {"k": 2, "ridge": "auto", "verbose": 1}
