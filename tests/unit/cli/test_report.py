"""``exactk report``: the page of the library, and code and command that come to it again."""

from __future__ import annotations

import hashlib
import html
import json
import os
import re
import shlex
import sys
from importlib import import_module

import pytest

import exactk
from exactk import Problem

WINE = ["cultivar", "--drop", "id,copies"]
FEW = "n_subsamples = 4\n"
# Little of everything that takes time.
QUICK = ["--permutations", 2, "--certify", 10, "--compare-with", "none", "--config", "few.toml"]


@pytest.fixture
def here(tmp_path, monkeypatch, wine_csv):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "few.toml").write_text(FEW)
    return tmp_path


def shown_code(page: str) -> list[str]:
    """Return what is shown for copying: the command and the code."""
    blocks = re.findall(r'<pre class="command"[^>]*><code>(.*?)</code></pre>', page, re.S)
    return [html.unescape(block) for block in blocks]


def test_the_page_is_that_of_the_library(run, here, wine_csv, wine):
    X, labels, names, _ = wine
    done = run("report", "wine.csv", *WINE, "-k", 3, *QUICK)
    assert (done.code, done.out, done.err) == (0, "", "Note: wrote report.html.\n")
    page = (here / "report.html").read_text("utf-8")
    report = exactk.investigate(
        Problem.from_arrays(X, labels, feature_names=names), k=3, target="cultivar", ridge="auto",
        n_subsamples=4, n_permutations=2, certify=10, compare_with=(),
    )  # fmt: skip
    for name in report.result.selected:
        assert name in page
    assert hashlib.sha256(wine_csv.read_bytes()).hexdigest() in page


def test_json_and_csv(ask, rows, here):
    args = ["report", "wine.csv", *WINE, "-k", 2, *QUICK]
    found = ask(*args)["result"]
    assert found["evaluation"]["n_permutations"] == 2
    assert found["stability"]["n_subsamples"] == 4
    assert found["certificate"]["proven"] is True
    assert found["missing_parts"] == {}
    assert [row["feature"] for row in rows(*args)] == found["result"]["selected"]
    assert not (here / "report.html").exists()


def test_parts_are_left_out(ask, here):
    (here / "none.toml").write_text("n_subsamples = 0\n")
    args = ["--certify", 0, "--permutations", 0, "--config", "none.toml"]
    found = ask("report", "wine.csv", *WINE, "-k", 2, *args)["result"]
    assert (found["certificate"], found["stability"]) == (None, None)
    assert found["evaluation"]["n_permutations"] == 0
    methods = [row["method"] for row in found["evaluation"]["methods"]]
    assert methods == ["exchange", "selectkbest", "rfe", "l1"]


def test_settings_reach_the_library(ask, here, wine_sites):
    table = os.path.relpath(wine_sites, here)
    (here / "s.toml").write_text("n_subsamples = 4\nridge = 0.5\n[k]\nk_max = 4\nrule = 'best'\n")
    args = ["--groups", "site", "--config", "s.toml", "--compare-with", "fisher", "--folds", 3]
    args += ["--scoring", "f1_macro", "--permutations", 0, "--seed", 4, "--quiet"]
    found = ask("report", table, *WINE, *args)["result"]
    assert (found["choice"]["k_max"], found["choice"]["rule"]) == (4, "best")
    assert found["result"]["ridge"] == 0.5
    assert found["evaluation"]["scoring"] == "f1_macro"
    assert (found["evaluation"]["n_folds"], found["settings"]["seed"]) == (3, 4)
    assert [row["method"] for row in found["evaluation"]["methods"]] == ["exchange", "fisher"]


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("<script>alert(1)<.csv", ["-k", 2, "--loss", "logistic"]),
        ("a b'c\"d.csv", ["-k", 2, "--weights", "copies"]),
        ("%s{0}$HOME.csv", ["-k", 2, "--include", "ash", "--max-correlation", 0.9]),
        ("é中👩‍🔬.csv", ["-k", 2, "--method", "gsrfs:lam=2"]),
    ],
)
def test_code_and_command_give_the_same_features(run, here, wine_csv, name, args):
    (here / name).write_bytes(wine_csv.read_bytes())
    words = ["report", name, "cultivar", *args, *QUICK, "--seed", 0]
    words += ["--drop", "id" if "--weights" in args else "id,copies"]
    assert run(*words).code == 0
    page = (here / "report.html").read_text("utf-8")
    assert page.count("<script") == 1
    command, code = shown_code(page)
    again = json.loads(run(*shlex.split(command)[1:], "--format", "json").out)["result"]
    shown = {}
    exec(compile(code, "page", "exec"), shown)
    assert list(shown["report"].result.selected) == again["result"]["selected"]
    assert shown["report"].result.objective == pytest.approx(again["result"]["objective"])


def test_a_file_that_exactk_did_not_write_is_kept(run, fails, here):
    args = ["report", "wine.csv", *WINE, "-k", 2, *QUICK, "-o", "page.html"]
    (here / "page.html").write_text("mine")
    fails("--overwrite", *args)
    assert (here / "page.html").read_text() == "mine"
    assert run(*args, "--overwrite").code == 0
    assert run(*args).code == 0, "exactk wrote it"


@pytest.mark.parametrize("style", ["json", "csv"])
def test_a_foreign_file_is_kept_in_every_format(run, fails, here, style):
    args = ["report", "wine.csv", *WINE, "-k", 2, *QUICK, "--format", style, "-o", "found"]
    (here / "found").write_text("rank;feature\n1;a\n")
    fails("--overwrite", *args)
    assert (here / "found").read_text().endswith("1;a\n")
    assert run(*args, "--overwrite").code == 0
    assert run(*args).code == 0, "exactk wrote it"


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are bytes on Linux")
def test_names_that_are_no_text(run, here, wine_csv):
    place = os.fsdecode(b"caf\xe9.html")
    args = ["report", "wine.csv", *WINE, "-k", 2, *QUICK]
    assert run(*args, "-o", place).code == 0
    assert "caf\ufffd.html" in (here / place).read_text("utf-8")
    done = run(*args, "--format", "json", "-o", os.fsdecode(b"caf\xe9.json"))
    assert done.code == 0
    assert json.loads((here / os.fsdecode(b"caf\xe9.json")).read_text())["command"] == "report"


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--compare-with", "nix"], "nix"),
        (["--compare-with", "exchange"], "exchange"),
        (["--scoring", "nix"], "nix"),
        (["-k", "99"], "99"),
        (["-o", "wine.csv"], "is also an input"),
        (["--certify", "nan"], "--certify must be a number in [0, inf]"),
    ],
)
def test_mistakes_are_said_before_any_work(fails, here, wine_csv, args, words):
    before = wine_csv.read_bytes()
    fails(words, "report", "wine.csv", *WINE, *args)
    assert not (here / "report.html").exists()
    assert wine_csv.read_bytes() == before


def test_ctrl_c_writes_what_is_done(run, here, monkeypatch):
    def stop(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(import_module("exactk.report.investigate"), "_evaluate", stop)
    done = run("report", "wine.csv", *WINE, "-k", 3, *QUICK)
    assert (done.code, done.out) == (130, "")
    assert "wrote report.html" in done.err
    assert "proline" in (here / "report.html").read_text("utf-8")
