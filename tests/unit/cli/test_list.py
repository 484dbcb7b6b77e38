"""``exactk list``: methods and losses with their parameters."""

from __future__ import annotations

import csv
import io
import json

import pytest

from exactk import Problem, losses, solve
from exactk.methods import registry


def listed(run, *args: str) -> dict[str, object]:
    result = run("list", *args, "--format", "json")
    assert (result.code, result.err) == (0, "")
    return json.loads(result.out)["result"]


def test_methods(run):
    rows = listed(run, "methods")["methods"]
    assert [row["name"] for row in rows] == registry.names()
    by_name = {row["name"]: row for row in rows}
    assert "all in memory" in " ".join(by_name["gsrfs"]["needs"])
    assert by_name["exchange"]["needs"] == []
    text = run("list", "methods").out
    starts = [line.split()[0] for line in text.splitlines() if not line.startswith(" ")]
    assert starts == registry.names()
    rows = list(csv.DictReader(io.StringIO(run("list", "methods", "--format", "csv").out)))
    assert [row["name"] for row in rows] == registry.names()


@pytest.mark.parametrize("name", ["gsrfs", "fisher", "exchange"])
def test_one_method(run, name):
    found = listed(run, "methods", name)
    assert found["name"] == name
    made = registry.create(name)
    given = {one["name"]: one["default"] for one in found["parameters"]}
    assert given == {option: getattr(made, option) for option in made.option_names()}
    text = run("list", "methods", name).out
    for option, value in given.items():
        assert f"{option}={value}" in text
    lines = run("list", "methods", name, "--format", "csv").out.splitlines()
    assert len(lines) == max(1, len(given)) + bool(given)


def test_losses(run):
    rows = listed(run, "losses")["losses"]
    assert [row["name"] for row in rows] == losses.names()
    parameters = {row["name"]: row["parameters"] for row in rows}
    assert parameters["l2r"] == {"r": 0.5}
    assert parameters["squared"] == {}


def test_the_loss_options_that_are_shown_work(run, wine):
    X, labels, _, _ = wine
    shown = [line.split()[1] for line in run("list", "losses").out.splitlines() if "--loss" in line]
    assert [text.split(":")[0] for text in shown] == ["l2r", "huber"]
    for text in shown:
        name, _, value = text.partition(":")
        parameter, _, number = value.partition("=")
        loss = losses.create(name, **{parameter: float(number)})
        assert solve(Problem.from_arrays(X, labels, loss=loss), 1).k == 1


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["methods", "exchnage"], "did you mean 'exchange'?"),
        (["lossess"], "did you mean 'losses'?"),
        (["losses", "huber"], "'huber'"),
    ],
)
def test_mistakes(run, args, words):
    result = run("list", *args)
    assert (result.code, result.out) == (2, "")
    assert words in result.err
    assert result.err.count("\n") == 1


@pytest.mark.parametrize("group", [["list"], ["moments"], ["papers"], ["papers", "datasets"]])
def test_a_group_without_a_command_shows_its_help(run, group):
    alone, asked = run(*group), run(*group, "--help")
    assert (alone.code, alone.err) == (0, "")
    assert alone.out == asked.out
    assert "Commands:" in alone.out
