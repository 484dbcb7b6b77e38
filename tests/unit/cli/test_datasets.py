"""``exactk papers datasets``: what it prints, and how it fails."""

from __future__ import annotations

import io
import os
from pathlib import Path

import numpy as np
import pytest

from exactk.cli import main
from exactk.papers.datasets import describe, names
from exactk.papers.datasets.catalogue import PAPERS
from exactk.papers.datasets.fetching import FetchError, Transfer


@pytest.fixture
def nowhere(tmp_path, monkeypatch) -> Path:
    """An empty folder of data."""
    monkeypatch.setenv("EXACTK_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("sys.platform", "linux")
    (tmp_path / "data").mkdir()
    return tmp_path / "data"


@pytest.fixture
def listed(ask):
    def call(*args: str) -> list[dict[str, object]]:
        return ask("papers", "datasets", "list", *args)["result"]["datasets"]

    return call


def test_list(run, listed, nowhere):
    np.savez(nowhere / "colon.npz", X=np.eye(2), y=[0, 1])
    text = run("papers", "datasets", "list").out.splitlines()
    lines = [line.split() for line in text]
    assert [line[0] for line in lines] == ["name", *names()]
    cells = {line[0]: line[1:] for line in lines}
    assert cells["srbct"] == ["83", "2308", "4", "cdlsr", "no", "solerxl/Code_For_AAAI_2023"]
    assert cells["diabetes"] == ["442", "10", "yes", "scikit-learn"]
    by_name = {row["name"]: row for row in listed()}
    assert list(by_name) == names()
    colon, srbct = by_name["colon"], by_name["srbct"]
    assert (colon["here"], colon["file"]) == (True, str(nowhere / "colon.npz"))
    assert (srbct["here"], srbct["fetchable"]) == (False, True)
    assert (len(srbct["commit"]), len(srbct["checksum"])) == (40, 64)
    assert srbct["licence"] == "no licence stated by the repository"
    marked = {line.split()[0] for line in text if line.endswith("(checksum unknown)")}
    files = [row for row in by_name.values() if row["origin"] == "file"]
    assert marked == {row["name"] for row in files if not row["checksum"]} == {"lung", "gli85"}
    assert (by_name["lung"]["checked"], colon["checked"]) == ("shape and class sizes", "checksum")


def test_own_files_are_listed(run, listed, nowhere, tmp_path, monkeypatch):
    other = tmp_path / "other"
    other.mkdir()
    monkeypatch.setenv("EXACTK_DATA", os.pathsep.join([str(nowhere), str(other)]))
    np.savez(nowhere / "cells.npz", X=np.eye(6, 4), y=list("abcabc"))
    np.savez(nowhere / "broken.npz", X=np.eye(6))
    (other / "flowers.csv").write_text("a,b,y\n1,2,0.5\n3,4,0.7\n5,7,0.1\n")
    lines = run("papers", "datasets", "list").out.splitlines()[-3:]
    assert [line.split() for line in lines] == [
        ["broken", "yes", "your", "folder"],
        ["cells", "6", "4", "3", "yes", "your", "folder"],
        ["flowers", "3", "2", "yes", "your", "folder"],
    ]
    rows = listed()
    assert {tuple(row) for row in rows} == {tuple(rows[0])}, "all have the same keys"
    cells, flowers = rows[-2:]
    assert (cells["n"], cells["d"], cells["classes"], cells["here"]) == (6, 4, 3, True)
    assert (flowers["task"], flowers["classes"]) == ("regression", None)
    assert (flowers["source"], flowers["file"]) == ("your folder", str(other / "flowers.csv"))
    assert "cells" not in {row["name"] for row in listed("--paper", "cdlsr")}
    only = {row["name"] for row in listed("--folder", str(other))}
    assert "flowers" in only
    assert "cells" not in only


def test_a_data_folder_that_does_not_exist(run, fails, nowhere):
    nowhere.rmdir()
    for args in (["list"], ["path", "colon"]):
        fails(f"EXACTK_DATA names {str(nowhere)!r}", "papers", "datasets", *args)
    assert run("papers", "datasets", "path").out.startswith(f"{nowhere}\n")


@pytest.mark.parametrize("paper", PAPERS)
def test_list_of_a_paper(listed, nowhere, paper):
    assert [row["name"] for row in listed("--paper", paper)] == [
        name for name in names() if paper in describe(name).papers
    ]


def test_path(run, nowhere, tmp_path):
    assert run("papers", "datasets", "path").out.splitlines() == [
        str(nowhere),
        str(tmp_path / "cache" / "exactk"),
    ]
    assert run("papers", "datasets", "path", "--folder", "x").out == "x\n"
    (nowhere / "mine.csv").write_text("a,y\n1,2\n")
    assert run("papers", "datasets", "path", "mine").out == f"{nowhere / 'mine.csv'}\n"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["path", "wine"], "data set 'wine' has no file: it is from scikit-learn."),
        (["path", "colon"], "data set 'colon' is not in "),
        (["path", "colom"], "no data set named 'colom'; did you mean 'colon'?"),
        (["fetch"], "give names of data sets, or --all, or --paper."),
        (["fetch", "colon", "--all"], "give names of data sets, or --all, or --paper."),
        (["fetch", "wine"], "data set 'wine' is part of scikit-learn"),
        (["fetch", "colon", "colom"], "no data set named 'colom'"),
        (["list", "--paper", "none"], "Invalid value for '--paper'"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else "",
)
def test_wrong_usage_is_one_sentence(fails, nowhere, args, message):
    fails(message, "papers", "datasets", *args)


class Fetches:
    """Stands in for the network: notes what is asked, and fails where told."""

    def __init__(self, monkeypatch, *broken: str) -> None:
        self.asked: list[str] = []
        self.options: dict[str, object] = {}
        self.broken = broken
        monkeypatch.setattr("exactk.papers.datasets.fetch", self)

    def __call__(self, name: str, **options: object) -> Path:
        self.asked.append(name)
        self.options = options
        if options["on_progress"] is not None:
            options["on_progress"](Transfer(name, 1, 2, 10, 100))
        if name in self.broken:
            raise FetchError(f"data set {name!r} cannot be downloaded: the server answered 404")
        return Path("there") / f"{name}.npz"


def test_fetch_prints_the_files_and_says_what_was_checked(run, monkeypatch):
    fetches = Fetches(monkeypatch)
    done = run("papers", "datasets", "fetch", "lung", "colon", "lung", "--folder", "there")
    assert (done.code, done.out) == (0, "there/lung.npz\nthere/colon.npz\n")
    assert fetches.options == {"folder": "there", "on_progress": None}
    (note,) = done.err.splitlines()
    assert "lung: no checksum is known; checked were shape and class sizes" in note


def test_fetch_of_a_paper_and_of_all(run, monkeypatch):
    fetches = Fetches(monkeypatch)
    run("papers", "datasets", "fetch", "--paper", "rpfs")
    assert fetches.asked == ["leu", "allaml", "carcinom", "lung"]
    fetches.asked.clear()
    run("papers", "datasets", "fetch", "--all")
    assert len(fetches.asked) == 32
    assert not {"lung56", "wine", "genes"} & set(fetches.asked)


def test_one_failure_does_not_stop_the_others(run, monkeypatch):
    Fetches(monkeypatch, "allaml")
    result = run("papers", "datasets", "fetch", "leu", "allaml", "colon")
    assert result.code == 2
    assert result.out == "there/leu.npz\nthere/colon.npz\n"
    assert "1 of 3 data sets could not be downloaded ('allaml')" in result.err
    assert "the server answered 404" in result.err


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("quiet", [False, True])
def test_a_bar_on_a_terminal(monkeypatch, quiet):
    Fetches(monkeypatch)
    terminal = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stderr", terminal)
    with pytest.raises(SystemExit) as stop:
        main(["papers", "datasets", "fetch", "colon", *["--quiet"] * quiet])
    assert stop.value.code == 0
    assert ("colon (1 of 2)" in terminal.getvalue()) is not quiet
