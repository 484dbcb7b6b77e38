"""``--loss``, ``--class-weight`` and ``exactk losses``."""

from __future__ import annotations

import json

import numpy as np
import pytest

from exactk import Problem, losses, solve

ARGS = ["--target", "cultivar", "--drop", "id", "--drop", "copies", "-k", 3]


def the_problem(wine, loss: str, **options) -> Problem:
    X, labels, names, _ = wine
    problem = Problem.from_arrays(X, labels, feature_names=names, **options).with_loss(loss)
    return problem.with_ridge("auto")


@pytest.mark.parametrize("loss", ["logistic", "l21", "huber", "optimal_scoring"])
def test_select_by_a_loss(run, wine, wine_csv, loss):
    wanted = solve(the_problem(wine, loss), 3)
    result = run("select", wine_csv, *ARGS, "--loss", loss)
    assert (result.code, result.err) == (0, "")
    shown = [line.split()[1] for line in result.out.splitlines()[2:5]]
    assert shown == list(wanted.selected)
    measure = "deviance" if loss == "logistic" else "loss"
    assert f"explained  {wanted.explained:.1%} of the {measure}" in result.out
    parameters = {"huber": " (epsilon = 1.35)"}
    assert f"loss       {loss}{parameters.get(loss, '')}\n" in result.out


def test_parameters_follow_a_colon(run, wine, wine_csv):
    result = run("select", wine_csv, *ARGS, "--loss", "l2r:r=0.8", "--format", "json")
    found = json.loads(result.out)
    problem = the_problem(wine, "l2r").with_loss("l2r", r=0.8)
    assert found["objective"] == pytest.approx(problem.objective(found["support"]), rel=1e-8)
    assert found["loss"] == "l2r"
    assert found["loss_options"] == {"r": 0.8}


def test_balanced_classes(run, wine, wine_csv):
    args = [*ARGS, "--loss", "logistic", "--class-weight", "balanced", "--format", "json"]
    found = json.loads(run("select", wine_csv, *args).out)
    X, labels, _, _ = wine
    counts = {label: np.sum(labels == label) for label in np.unique(labels)}
    weights = [len(labels) / (3 * counts[label]) for label in labels]
    problem = Problem.from_arrays(X, labels, sample_weight=weights, loss="logistic")
    problem = problem.with_ridge(found["ridge"])
    assert found["objective"] == pytest.approx(problem.objective(found["support"]), rel=1e-8)
    assert found["class_weight"] == "balanced"


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--loss", "logistik"], "did you mean 'logistic'"),
        (["--loss", "l2r:r=5"], "r must be a number in (0, 2], not 5"),
        (["--loss", "l2r:p=1"], "has no option 'p'"),
        (["--loss", "l2r:r"], "'r' is not of the form NAME=VALUE, such as r=0.7"),
        (["--loss", "l2r:"], "'' is not of the form NAME=VALUE"),
        (["--loss", "poisson"], "cannot be read as numbers"),
        (["--loss", "l21", "--certify", 5], "is for squared loss"),
    ],
)
def test_mistakes_are_one_sentence(run, wine_csv, args, words):
    result = run("select", wine_csv, *ARGS, *args)
    assert (result.code, result.out) == (2, "")
    assert words in result.err
    assert result.err.count("\n") == 1


def test_what_is_for_squared_loss_says_so(run, wine_csv):
    for command in ("explain", "certify"):
        result = run(command, wine_csv, *ARGS, "--loss", "logistic")
        assert result.code == 2
        assert (
            "for squared loss, and this problem has loss 'logistic'; leave --loss out" in result.err
        )


def test_moments_are_not_enough(run, wine_csv, tmp_path):
    file = tmp_path / "wine.moments"
    built = run("stats", "build", wine_csv, *ARGS[:6], "-o", file)
    assert built.code == 0, built.err
    result = run("select", "--from-moments", file, "-k", 3, "--loss", "logistic")
    assert result.code == 2
    assert "'logistic' reads the rows" in result.err
    assert "give TABLE and --target in place of --from-moments" in result.err
    scored = run("select", "--from-moments", file, "-k", 3, "--loss", "optimal_scoring")
    assert scored.code == 0
    assert "optimal_scoring" in scored.out


def test_path_and_stability_go_by_the_loss(run, wine_csv):
    result = run("path", wine_csv, *ARGS[:6], "--k-max", 3, "--loss", "logistic", "--effort", 0)
    assert result.code == 0, result.err
    found = run("stability", wine_csv, *ARGS, "--samples", 4, "--loss", "logistic")
    assert found.code == 0, found.err
    assert "of the squared error" not in result.out + found.out


def test_the_list(run):
    text = run("losses").out
    assert [line.split()[0] for line in text.splitlines() if line[:1].isalpha()][:7] == (
        losses.names()
    )
    assert "l2r:r=0.5" in text
    listed = json.loads(run("losses", "--format", "json").out)
    assert [entry["name"] for entry in listed] == losses.names()
    assert listed[2]["options"] == {"r": 0.5}
