"""``exactk list``: methods and losses with their parameters."""

from __future__ import annotations

import pytest

from exactk import Problem, losses, solve
from exactk.methods import registry


def test_methods(run, ask, rows):
    found = {row["name"]: row for row in ask("list", "methods")["result"]["methods"]}
    assert list(found) == registry.names()
    assert "all in memory" in " ".join(found["gsrfs"]["needs"])
    assert found["exchange"]["needs"] == []
    text = run("list", "methods").out
    starts = [line.split()[0] for line in text.splitlines() if not line.startswith(" ")]
    assert starts == registry.names()
    assert [row["name"] for row in rows("list", "methods")] == registry.names()


@pytest.mark.parametrize("name", ["gsrfs", "fisher"])
def test_one_method(run, ask, rows, name):
    found = ask("list", "methods", name)["result"]
    made = registry.create(name)
    given = {one["name"]: one["default"] for one in found["parameters"]}
    assert given == {option: getattr(made, option) for option in made.option_names()}
    text = run("list", "methods", name).out
    assert all(f"{option}={value}" in text for option, value in given.items())
    assert len(rows("list", "methods", name)) == len(given)


def test_losses(run, ask, wine):
    parameters = {
        row["name"]: row["parameters"] for row in ask("list", "losses")["result"]["losses"]
    }
    assert list(parameters) == losses.names()
    assert (parameters["l2r"], parameters["squared"]) == ({"r": 0.5}, {})
    shown = [line.split()[1] for line in run("list", "losses").out.splitlines() if "--loss" in line]
    assert [text.split(":")[0] for text in shown] == ["l2r", "huber"]
    for text in shown:
        name, _, value = text.partition(":")
        parameter, _, number = value.partition("=")
        loss = losses.create(name, **{parameter: float(number)})
        assert solve(Problem.from_arrays(wine[0], wine[1], loss=loss), 1).k == 1


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["methods", "exchnage"], "did you mean 'exchange'?"),
        (["lossess"], "did you mean 'losses'?"),
        (["losses", "huber"], "unexpected 'huber'; see exactk list losses --help"),
    ],
)
def test_mistakes(fails, args, words):
    fails(words, "list", *args)


@pytest.mark.parametrize("group", [["list"], ["moments"], ["papers"], ["papers", "datasets"]])
def test_a_group_without_a_command_shows_its_help(run, group):
    alone, asked = run(*group), run(*group, "--help")
    assert (alone.code, alone.err) == (0, "")
    assert alone.out == asked.out
    assert "Commands:" in alone.out
