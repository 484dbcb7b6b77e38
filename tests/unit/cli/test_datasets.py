"""``exactk papers datasets``: what it prints, and how it fails."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path

import numpy as np
import pytest

from exactk.cli import main
from exactk.papers.datasets import names
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


def listed(run, *args: str) -> list[dict[str, object]]:
    result = run("papers", "datasets", "list", *args, "--format", "json")
    assert result.code == 0, result.err
    return json.loads(result.out)["result"]["datasets"]


def test_list(run, nowhere):
    np.savez(nowhere / "colon.npz", X=np.eye(2), y=[0, 1])
    result = run("papers", "datasets", "list")
    assert (result.code, result.err) == (0, "")
    lines = [line.split() for line in result.out.splitlines()]
    assert [line[0] for line in lines] == ["name", *names()]
    cells = {line[0]: line[1:] for line in lines}
    assert cells["srbct"] == ["83", "2308", "4", "cdlsr", "no", "solerxl/Code_For_AAAI_2023"]
    assert cells["diabetes"] == ["442", "10", "yes", "scikit-learn"]
    rows = listed(run)
    assert [row["name"] for row in rows] == names()
    by_name = {row["name"]: row for row in rows}
    assert by_name["colon"]["here"] is True
    assert by_name["colon"]["file"] == str(nowhere / "colon.npz")
    assert by_name["srbct"]["here"] is False
    assert len(by_name["srbct"]["commit"]) == 40
    assert len(by_name["srbct"]["checksum"]) == 64
    assert by_name["srbct"]["licence"] == "no licence stated by the repository"
    assert (by_name["srbct"]["fetchable"], by_name["lung56"]["fetchable"]) == (True, False)


def test_list_says_of_which_sets_no_checksum_is_known(run, nowhere):
    lines = run("papers", "datasets", "list").out.splitlines()
    marked = {line.split()[0] for line in lines if line.endswith("(checksum unknown)")}
    assert marked == {"lung", "gli85"}
    rows = listed(run)
    files = [row for row in rows if row["origin"] == "file"]
    assert {row["name"] for row in files if not row["checksum"]} == marked
    checked = {row["name"]: row["checked"] for row in rows}
    assert (checked["lung"], checked["colon"]) == ("shape and class sizes", "checksum")


def test_own_files_are_listed(run, nowhere, tmp_path, monkeypatch):
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
    rows = listed(run)
    assert {tuple(row) for row in rows} == {tuple(rows[0])}, "all have the same keys"
    cells, flowers = rows[-2:]
    assert (cells["n"], cells["d"], cells["classes"], cells["here"]) == (6, 4, 3, True)
    assert (flowers["task"], flowers["classes"]) == ("regression", None)
    assert (flowers["source"], flowers["file"]) == ("your folder", str(other / "flowers.csv"))
    assert "cells" not in {row["name"] for row in listed(run, "--paper", "cdlsr")}
    only = {row["name"] for row in listed(run, "--folder", str(other))}
    assert "flowers" in only
    assert "cells" not in only


def test_a_data_folder_that_does_not_exist(run, nowhere):
    nowhere.rmdir()
    for args in (["list"], ["path", "colon"]):
        result = run("papers", "datasets", *args)
        assert (result.code, result.out) == (2, "")
        assert f"EXACTK_DATA names {str(nowhere)!r}" in result.err
    assert run("papers", "datasets", "path").out.startswith(f"{nowhere}\n")


def test_list_of_a_paper(run, nowhere):
    assert {row["name"] for row in listed(run, "--paper", "gsrfs")} == {
        *("isolet_full", "mnist49", "semeion", "ar", "orl_full", "pie"),
        *("gsrfs-synthetic-0", "gsrfs-synthetic-1", "gsrfs-synthetic-10"),
    }


def test_every_paper_can_be_requested(run, nowhere):
    for paper in PAPERS:
        assert run("papers", "datasets", "list", "--paper", paper).out.count("\n") > 3


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
        (["lst"], "there is no command 'lst'; did you mean 'list'?"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else "",
)
def test_wrong_usage_is_one_sentence(run, nowhere, args, message):
    result = run("papers", "datasets", *args)
    assert (result.code, result.out) == (2, "")
    assert message in result.err
    assert result.err.count("\n") == 1


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


def test_fetch_prints_the_files(run, monkeypatch):
    fetches = Fetches(monkeypatch)
    result = run("papers", "datasets", "fetch", "colon", "srbct", "colon", "--folder", "there")
    assert result == type(result)(0, "there/colon.npz\nthere/srbct.npz\n", "")
    assert fetches.options == {"folder": "there", "on_progress": None}


def test_fetch_says_what_was_checked_without_a_checksum(run, monkeypatch):
    Fetches(monkeypatch)
    result = run("papers", "datasets", "fetch", "lung", "colon", "gli85")
    assert result.code == 0
    assert result.out == "there/lung.npz\nthere/colon.npz\nthere/gli85.npz\n"
    lung, gli85 = result.err.splitlines()
    assert "lung: no checksum is known; checked were shape and class sizes" in lung
    assert "gli85: no checksum is known; checked were shape and number of classes" in gli85


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
