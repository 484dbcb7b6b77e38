"""``exactk certify``, ``explain``, ``stability`` and ``evaluate``: the answers of the library."""

from __future__ import annotations

import json
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import exactk
from exactk import BestSets, Certificate, CertifiedPath
from exactk.cli.framework.call import Call

WINE = ["cultivar", "--drop", "id,copies"]
# A small question for each command.
QUICK = {
    "certify": ["-k", 2],
    "explain": ["-k", 2],
    "stability": ["-k", 2, "--subsamples", 6],
    "evaluate": ["-k", 2, "--folds", 3],
}


def same(one: Any, two: Any) -> None:
    """Compare results without the seconds that they took."""
    if isinstance(two, dict):
        assert set(one) == set(two)
        for name in set(two) - {"seconds", "nodes"}:
            same(one[name], two[name])
    elif isinstance(two, (list, tuple)):
        assert len(one) == len(two)
        for left, right in zip(one, two, strict=True):
            same(left, right)
    elif isinstance(two, float):
        assert one == pytest.approx(two, rel=1e-6, abs=1e-9)
    else:
        assert one == two


def chosen(found: dict[str, Any]) -> list[str]:
    return found.get("result", found).get("selected", found.get("features", []))


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
    found = ask(command, wine_csv, *WINE, *args)
    assert found["command"] == command
    same(found["result"], json.loads(json.dumps(expected)))


@pytest.mark.parametrize("command", QUICK)
def test_text_names_the_table_and_the_features(run, ask, wine_csv, command):
    args = [command, wine_csv, *WINE, *QUICK[command], "--seed", 0]
    done = run(*args)
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines()[0].startswith("2 of 13 features for 'cultivar'")
    assert all(name in done.out for name in chosen(ask(*args)["result"]))


@pytest.mark.parametrize("command", QUICK)
def test_constraints_are_kept(ask, wine_csv, command):
    args = [*WINE, *QUICK[command], "--include", "ash", "--exclude", "proline,alcohol"]
    found = ask(command, wine_csv, *args)["result"]
    assert '"ash"' in json.dumps(found)
    assert not {"proline", "alcohol"} & set(chosen(found))


@pytest.mark.parametrize("command", QUICK)
def test_what_was_assumed_is_said(run, tmp_path, command):
    path = tmp_path / "t.csv"
    lines = [f"{i * i % 11},{i % 7},{i % 5},{i % 3}\n" for i in range(90)]
    path.write_text("a,b,c,y\n" + "".join(lines))
    assert "--task regression" in run(command, path, "y", *QUICK[command]).out
    as_csv = run(command, path, "y", *QUICK[command], "--format", "csv")
    assert "--task regression" in as_csv.err


@pytest.mark.parametrize(
    ("command", "options", "names"),
    [
        ("stability", {"n_subsamples": 6}, ["index", "core"]),
        ("evaluate", {"cv": 3}, ["test_score", "n_folds"]),
    ],
)
def test_groups_of_rows_stay_together(
    ask, fails, wine_sites, problem, sites, command, options, names
):
    args = [command, wine_sites, *WINE, *QUICK[command], "--seed", 3, "--quiet", "--groups"]
    found = ask(*args, "site")["result"]
    expected = getattr(exactk, command)(
        problem, k=2, groups=np.array(sites), random_state=3, **options
    ).to_dict()
    for name in names:
        same(found[name], expected[name])
    fails("did you mean 'site'?", *args, "sit")


@pytest.mark.parametrize(
    ("command", "number"),
    [("certify", "upper"), ("explain", "objective"), ("stability", ""), ("evaluate", "")],
)
def test_moments(run, ask, fails, wine_csv, tmp_path, command, number):
    moments = tmp_path / "wine.moments"
    assert run("moments", "build", wine_csv, *WINE, "-o", moments).code == 0
    if not number:
        fails("rows", command, moments, *QUICK[command])
        return
    found = ask(command, moments, *QUICK[command])["result"]
    expected = ask(command, wine_csv, *WINE, *QUICK[command])["result"]
    assert found[number] == pytest.approx(expected[number])


@pytest.mark.parametrize(
    ("command", "args", "words"),
    [
        ("certify", [], "give -k"),
        ("explain", ["-k", 2, "--features", "ash"], "-k"),
        ("explain", ["-k", 2, "--why-not", "asch"], "did you mean 'ash'?"),
        ("stability", ["-k", 2, "--threshold", 0.5], "--threshold must be"),
        ("stability", ["-k", 14], "14"),
        ("evaluate", ["-k", 2, "--folds", 400], "400"),
        ("evaluate", ["-k", 2, "--scoring", "nix"], "nix"),
        ("evaluate", ["-k", 2, "--estimator", "ridge"], "classification"),
        ("evaluate", ["-k", 2, "--compare-with", "exchnage"], "did you mean 'exchange'?"),
        ("certify", ["-k", 2, "--loss", "logistic"], "squared"),
        ("certify", ["-k", 2, "--best", 2, "--path"], "--best"),
        ("certify", ["--features", "ash,hue", "--best", 2], "--features does not go with --best"),
        ("certify", ["--features", "ash,hue", "--path"], "--features does not go with --path"),
        ("certify", ["-k", "auto", "--path"], "--path needs -k"),
        ("certify", ["--features", "asch"], "did you mean 'ash'?"),
    ],
)
def test_every_mistake_is_one_sentence(fails, wine_csv, command, args, words):
    fails(words, command, wine_csv, *WINE, *args)


# --- certify ---------------------------------------------------------------------------------


def test_a_better_set_replaces_the_given_one(run, ask, wine_csv, problem):
    args = ["certify", wine_csv, *WINE, "--features", "ash,hue"]
    found = Certificate.from_dict(ask(*args)["result"])
    assert found.improved
    assert found.result.objective == pytest.approx(exactk.solve(problem, 2).objective)
    assert found.summary in run(*args).out


def test_every_size(run, ask, rows, wine_csv):
    args = ["certify", wine_csv, *WINE, "-k", 3, "--path"]
    asked = ask(*args)
    found = CertifiedPath.from_dict(asked["result"])
    assert [one.k for one in found] == [1, 2, 3]
    assert asked["call"]["k"] == 3
    assert [float(row["objective"]) for row in rows(*args)] == pytest.approx(
        [one.upper for one in found]
    )
    assert run(*args).out.splitlines()[0].startswith("3 sizes for 'cultivar'")


def test_the_best_sets(run, ask, rows, wine_csv, problem):
    args = ["certify", wine_csv, *WINE, "-k", 2, "--best", 4]
    expected = exactk.best_sets(problem, k=2, n_best=4)
    assert BestSets.from_dict(ask(*args)["result"]).names == expected.names
    assert len(rows(*args)) == 4
    assert run(*args).out.splitlines()[0].startswith("4 sets for 'cultivar'")


# --- stability and evaluate ------------------------------------------------------------------


def test_a_time_limit_is_said(run, wine_csv):
    args = [*WINE, "-k", 3, "--subsamples", 100_000, "--time-limit", 0.3, "--format", "json"]
    done = run("stability", wine_csv, *args)
    assert done.code == 0
    assert json.loads(done.out)["result"]["status"] == "time_limit"
    assert done.err.startswith("Note: ")


def test_a_method_that_cannot_answer_is_a_line_with_its_reason(rows, wine_csv):
    args = ["evaluate", wine_csv, *WINE, "-k", 2, "--folds", 3, "--compare-with", "selectkbest"]
    args += ["--include", "ash", "--compare-with", "nmapg:max-iter=50"]
    found = {row["method"]: row for row in rows(*args)}
    assert list(found)[:2] == ["exchange", "selectkbest"]
    refused = [row["note"] for row in found.values() if row["status"] == "refused"]
    assert refused
    assert all(refused)


def test_an_interrupted_result_is_written_with_its_own_code(run, wine_csv, monkeypatch):
    module = import_module("exactk.model_selection.stability")
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
