"""Constraints on the command line."""

from __future__ import annotations

import json

import pytest

BASE = ["--target", "cultivar", "--drop", "id", "--drop", "copies"]


def _selected(run, table, *args):
    result = run("select", table, *BASE, *args, "--format", "json")
    assert result.code == 0, result.err
    return json.loads(result.out)


def test_every_constraint_is_kept_and_written_down(run, wine_csv, wine, tmp_path):
    names = wine[2]
    assert "alcohol" in _selected(run, wine_csv, "-k", 2, "--include", "alcohol")["selected"]
    barred = _selected(run, wine_csv, "-k", 3, "--exclude", "flavanoids,proline")
    assert not {"flavanoids", "proline"} & set(barred["selected"])
    assert barred["constraints"] == {"exclude": ["flavanoids", "proline"]}
    pair = f"pair={names[0]},{names[1]}"
    grouped = _selected(run, wine_csv, "-k", 2, "--group", pair, "--include", "pair")
    assert grouped["k"] == 2
    assert {names[0], names[1]} < set(grouped["feature_names"])
    by_size = _selected(
        run, wine_csv, "-k", 3, "--group", pair, "--include", "pair", "--count", "columns"
    )
    assert len(by_size["feature_names"]) == 3
    family = "acids=malic_acid,ash,alcalinity_of_ash"
    few = _selected(run, wine_csv, "-k", 4, "--family", family, "--at-least", "acids=2")
    assert len({"malic_acid", "ash", "alcalinity_of_ash"} & set(few["selected"])) >= 2
    none = _selected(run, wine_csv, "-k", 4, "--family", family, "--at-most", 0)
    assert not {"malic_acid", "ash", "alcalinity_of_ash"} & set(none["selected"])
    costs = tmp_path / "costs.csv"
    costs.write_text(
        "name,cost\n" + "".join(f"{name},{1 + (name == 'proline')}\n" for name in names)
    )
    cheap = _selected(run, wine_csv, "-k", 3, "--costs", costs, "--budget", 3)
    assert "proline" not in cheap["selected"]
    apart = _selected(run, wine_csv, "-k", 3, "--max-correlation", 0.3)
    assert len(apart["selected"]) == 3


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--include", "alcohl"], ["--include: ", "'alcohl'", "did you mean 'alcohol'"]),
        (["--group", "pair"], ["NAME=COLUMN"]),
        (["--group", "a=ash", "--group", "a=alcohol"], ["'a'", "twice"]),
        (["--at-most", "x"], ["FAMILY=NUMBER"]),
        (["--at-most", "2"], ["--at-most counts", "give --family as well"]),
        (["--at-most", "f=1", "--at-most", "f=2"], ["--at-most", "'f' is given twice"]),
        (["--at-most", "1", "--at-most", "2"], ["every family", "FAMILY=NUMBER"]),
        (["--at-least", "f=1", "--at-least", "f =1"], ["--at-least", "'f' is given twice"]),
        (["--group", "g=asch"], ["--group 'g': ", "'asch'"]),
        (["--family", "f=asch", "--at-most", "1"], ["--family 'f': ", "'asch'"]),
        (["--family", "f=ash"], ["--family 'f' has no bound"]),
        (["--exclude", "asch"], ["--exclude: there is no column 'asch'"]),
        (["--include", "ash", "--exclude", "ash"], ["--include and --exclude contradict"]),
        (["--include", "ash", "--exclude", "ash"], ["'ash' is in both"]),
        (["--exclude", "ash", "--method", "rfs", "--include", "hue"], ["other than --exclude"]),
        (["--exclude", "ash", "-k", "13"], ["keeps --exclude 'ash'"]),
        (["--max-correlation", "0", "-k", "2"], ["keeps --max-correlation 0"]),
        (["--budget", "3"], ["--budget needs --costs as well"]),
        (["--max-correlation", "2"], ["--max-correlation must be", "2"]),
        (["--costs", "nowhere.csv", "--budget", "1"], ["nowhere.csv"]),
        (["--include", "ash,alcohol,proline", "-k", "2"], ["k=2", "include", "k=3"]),
    ],
)
def test_every_mistake_is_one_sentence(run, wine_csv, args, words):
    size = [] if "-k" in args else ["-k", "3"]
    result = run("select", wine_csv, *BASE, *size, *args)
    assert (result.code, result.out) == (2, "")
    assert result.err.count("\n") == 1
    for word in words:
        assert word in result.err


def test_a_file_of_costs_may_do_without_a_header(run, wine_csv, wine, tmp_path):
    costs = tmp_path / "costs.csv"
    costs.write_text("".join(f"{name},{1 + (name == 'proline')}\n" for name in wine[2]))
    found = _selected(run, wine_csv, "-k", 3, "--costs", costs, "--budget", 3)
    assert "proline" not in found["selected"]
    assert found["constraints"]["costs"][wine[2][0]] == 1.0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("name,cost\nash,1,2\n", ["line 2", "3 values"]),
        ("name,cost\nash,dear\n", ["line 2", "'dear'"]),
        ("name,cost\nash,1\nash,2\n", ["line 3", "'ash'", "twice"]),
        ("name,cost\n", ["no costs", "NAME,COST"]),
    ],
)
def test_a_file_of_costs_is_read_with_care(run, wine_csv, tmp_path, text, words):
    costs = tmp_path / "costs.csv"
    costs.write_text(text)
    result = run("select", wine_csv, *BASE, "-k", 3, "--costs", costs, "--budget", 1)
    assert result.code == 2
    for word in words:
        assert word in result.err


@pytest.mark.parametrize(
    "content", [b"\xff\xfen\0a\0m\0e\0", b"PAR1\x15\x04\x15\x9c\xf0"], ids=["utf-16", "parquet"]
)
def test_costs_that_are_no_text_are_one_sentence(run, wine_csv, tmp_path, content):
    costs = tmp_path / "costs.csv"
    costs.write_bytes(content)
    result = run("select", wine_csv, *BASE, "-k", 3, "--costs", costs, "--budget", 1)
    assert (result.code, result.err.count("\n")) == (2, 1)
    for word in ("--costs", str(costs), "UTF-8", "NAME,COST"):
        assert word in result.err


@pytest.mark.parametrize("command", ["select", "stability", "explain", "path", "score"])
def test_the_file_of_costs_is_not_overwritten(run, wine_csv, wine, tmp_path, command):
    costs = tmp_path / "costs.csv"
    costs.write_text("name,cost\n" + "".join(f"{name},1\n" for name in wine[2]))
    before = costs.read_bytes()
    size = ["--k-max", 3] if command == "path" else ["-k", 3]
    beside = tmp_path / "." / "costs.csv"
    args = [wine_csv, *BASE, *size, "--costs", costs, "--budget", 3]
    result = run(command, *args, "-o", beside)
    assert (result.code, result.out) == (2, "")
    assert "the file of costs itself; give another name" in result.err
    assert costs.read_bytes() == before
    assert "is the table" in run(command, *args, "-o", wine_csv).err
