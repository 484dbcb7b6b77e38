"""``exactk report``: the page of the library, and code and command that come to it again."""

from __future__ import annotations

import hashlib
import html
import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from contextlib import redirect_stdout

import numpy as np
import pandas as pd
import pytest

from exactk import Moments, Problem, investigate
from exactk.report import investigate as investigate_module

DROPPED = ["--target", "cultivar", "--drop", "id", "--drop", "copies"]
# Little of everything that takes time.
QUICK = ["--samples", 4, "--permutations", 2, "--certify", 10, "--methods", "none", "--quiet"]
FEW = {"n_subsamples": 4, "n_permutations": 2, "certify": 10, "methods": ()}


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def page_and_record(run, *args):
    result = run("report", "--record", "record.json", "-o", "page.html", *args)
    assert (result.code, result.out, result.err) == (0, "", "")
    with open("page.html", encoding="utf-8") as file:
        page = file.read()
    with open("record.json", encoding="utf-8") as file:
        return page, json.load(file)


def shown_code(page):
    """What stands on the page, as one copies it."""
    blocks = re.findall(r'<pre class="command"[^>]*><code>(.*?)</code></pre>', page, re.S)
    return [html.unescape(block) for block in blocks]


def printed(code):
    """What the code prints, run by itself."""
    printer = io.StringIO()
    with redirect_stdout(printer):
        exec(compile(code, "page", "exec"), {"__name__": "__main__"})
    return printer.getvalue().splitlines()


def printed_elsewhere(code):
    """The same in a process of its own, where nothing is imported yet."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=120,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{code}\n{done.stderr}"
    return done.stdout.splitlines()


def test_the_page_is_that_of_the_library(run, here, wine_csv, wine):
    X, labels, names, _ = wine
    page, record = page_and_record(run, "wine.csv", *DROPPED, "-k", 3, *QUICK)
    problem = Problem.from_arrays(X, labels, feature_names=names)
    expected = investigate(problem, k=3, target="cultivar", ridge="auto", **FEW)
    assert record["selection"]["selected"] == list(expected.result.selected)
    assert record["selection"]["objective"] == pytest.approx(expected.result.objective)
    assert record["score"]["test_score"] == pytest.approx(expected.record["score"]["test_score"])
    assert record["settings"]["target"] == "cultivar"
    assert record["settings"]["n_rows"] == 178
    content = wine_csv.read_bytes()
    assert record["settings"]["checksum"] == hashlib.sha256(content).hexdigest()
    assert record["settings"]["checksum"] in page
    assert record["settings"]["classes"][0] == {"label": "first", "rows": 59.0}


def test_what_it_says(run, here, wine_csv):
    result = run("report", "wine.csv", *DROPPED, "-k", 2, *QUICK[:-1])
    assert (result.code, result.out) == (0, "")
    # What was not asked for is no news.
    assert result.err == "exactk: wrote report.html.\n"
    result = run("report", "wine.csv", *DROPPED, "-k", 2, "--loss", "logistic", *QUICK[:-1])
    assert "exactk: without certificate: a proof is for squared loss" in result.err
    assert (here / "report.html").exists()


TABLES = {
    "csv": ["wine.csv"],
    "tsv.gz": ["wine.tsv.gz"],
    "parquet": ["wine.parquet"],
    "folder": ["parts"],
}
ASKED = {
    "k": ["-k", 3],
    "folds": ["--folds", 3, "--rule", "best", "--seed", 4],
}


@pytest.fixture
def tables(here, wine_csv, sites):
    frame = pd.read_csv(wine_csv)
    frame["site"] = sites
    frame.to_csv("wine.csv", index=False)
    frame.to_csv("wine.tsv.gz", index=False, sep="\t")
    frame.to_parquet("wine.parquet")
    (here / "parts").mkdir()
    frame[:100].to_csv("parts/a.csv", index=False)
    frame[100:].to_csv("parts/b.csv", index=False)
    return here


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("asked", ASKED)
def test_the_code_of_the_page_prints_its_features(run, tables, table, asked):
    page, record = page_and_record(
        run, *TABLES[table], *DROPPED, "--drop", "site", *ASKED[asked], *QUICK
    )
    command, code = shown_code(page)
    assert command == record["settings"]["command"]
    run_it = printed_elsewhere if asked == "k" else printed
    assert run_it(code) == record["selection"]["selected"]


OPTIONS = {
    "chosen": [],
    "auto": ["-k", "auto"],
    "chosen by bic": ["--k-max", 6, "--criterion", "bic"],
    "weights": ["-k", 3, "--weights", "copies"],
    "columns": ["-k", 2, "--columns", "hue,ash,proline,alcohol"],
    "loss": ["-k", 2, "--loss", "l2r:r=0.7"],
    "likelihood": ["-k", 2, "--loss", "logistic"],
    "class weight": ["-k", 3, "--class-weight", "balanced"],
    "ridge": ["-k", 3, "--ridge", 0.5],
    "ridge by cv": ["--ridge", "cv", "--seed", 5],
    "method": ["-k", 3, "--method", "gsrfs", "-O", "lam=0.1"],
    "an option called as one of the page": ["-k", 3, "--method", "covth", "-O", "rule=soft"],
    "n_samples of the method": ["-k", 3, "--method", "stability", "-O", "n_subsamples=10"],
    "a seed that the method has none for": ["-k", 3, "--method", "greedy", "--seed", 3],
    "better by proof": ["-k", 4, "--method", "fisher", "--certify", "inf"],
    "rules": ["-k", 3, "--include", "hue", "--exclude", "proline"],
    "effort": ["-k", 3, "--effort", 2],
    "numbers": ["-k", 3, "--task", "classification"],
}


@pytest.mark.parametrize("name", OPTIONS)
def test_the_code_of_the_page_for_every_option(run, tables, name):
    out = [] if name == "weights" else ["--drop", "copies"]
    start = ["wine.csv", "--target", "cultivar", "--drop", "id", "--drop", "site", *out]
    page, record = page_and_record(run, *start, *QUICK, *OPTIONS[name])
    if name == "better by proof":
        assert record["certificate"]["improved"] is True
    # Those that import more than the selector.
    run_it = printed_elsewhere if name in ("loss", "method") else printed
    assert run_it(shown_code(page)[1]) == record["selection"]["selected"]


@pytest.mark.parametrize(
    "more",
    [
        ["--groups", "site"],
        ["--groups", "site", "-k", 3],
        ["--groups", "site", "--criterion", "bic"],
        ["--drop", "site", "-k", 4, "--method", "fisher", "--certify", 30],
        ["--drop", "site", "-k", 3, "--ridge", "cv", "--seed", 2, "--method", "greedy"],
    ],
)
@pytest.mark.parametrize("table", ["wine.csv", "parts"])
def test_the_code_of_the_page_by_a_problem(run, tables, table, more):
    page, record = page_and_record(run, table, *DROPPED, *QUICK, *more)
    assert record["settings"]["grouped"] == ("--groups" in more)
    assert printed(shown_code(page)[1]) == record["selection"]["selected"]


def test_moments(run, tables):
    assert run("stats", "build", "wine.csv", *DROPPED, "--drop", "site", "-o", "m.npz").code == 0
    result = run(
        "report", "--from-moments", "m.npz", "-k", 3, *QUICK[:-1], "--record", "r.json",
        "-o", "page.html",
    )  # fmt: skip
    assert result.code == 0
    assert "without score: this problem was made of moments" in result.err
    with open("r.json", encoding="utf-8") as file:
        record = json.load(file)
    problem = Problem.from_moments(Moments.load("m.npz"))
    assert record["selection"]["selected"] == list(investigate(problem, k=3, **FEW).result.selected)
    with open("page.html", encoding="utf-8") as file:
        assert printed(shown_code(file.read())[1]) == record["selection"]["selected"]
    # On the page, too, in the words of the command.
    assert "in place of --from-moments" in record["missing_parts"]["score"]
    result = run("report", "--from-moments", "m.npz", *QUICK)
    assert result.code == 2
    assert "--criterion ebic" in result.err


def test_the_command_of_the_page_makes_it_again(run, tables):
    args = ["wine.csv", *DROPPED, "--drop", "site", "--seed", 3, "--rule", "paired", *QUICK]
    _, first = page_and_record(run, *args)
    words = shlex.split(first["settings"]["command"])
    assert words[:2] == ["exactk", "report"]
    assert run(*words[1:]).code == 0
    with open("record.json", encoding="utf-8") as file:
        second = json.load(file)
    assert second["selection"]["selected"] == first["selection"]["selected"]
    assert second["score"]["folds"] == first["score"]["folds"]
    assert second["settings"]["command"] == first["settings"]["command"]


@pytest.mark.parametrize(
    "name",
    ["<script>alert(1)<.csv", "a b'c\"d.csv", "--target.csv", "%s{0}$HOME.csv", "é中👩‍🔬.csv"],
)
def test_names_of_files(run, here, wine_csv, name):
    (here / name).write_bytes(wine_csv.read_bytes())
    page, record = page_and_record(run, *DROPPED, "-k", 2, *QUICK, "--", name)
    assert page.count("<script") == 1
    assert record["settings"]["table"] == name
    command, code = shown_code(page)
    assert shlex.split(command)[-1] == name
    assert printed(code) == record["selection"]["selected"]


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are bytes on Linux")
def test_names_that_are_no_text(run, here, wine_csv):
    name, place = os.fsdecode(b"caf\xe9.csv"), os.fsdecode(b"caf\xe9.html")
    (here / name).write_bytes(wine_csv.read_bytes())
    result = run("report", name, *DROPPED, "-k", 2, *QUICK)
    assert result.code == 2
    assert "is not UTF-8; rename the file" in result.err
    args = ["wine.csv", *DROPPED, "-k", 2, *QUICK, "--record", "r.json", "-o", place]
    assert run("report", *args).code == 0
    assert "caf\ufffd.html" in (here / place).read_text("utf-8")
    record = json.loads((here / "r.json").read_text("utf-8"))
    assert shlex.split(record["settings"]["command"])[-1] == place


def test_hostile_columns_and_classes(run, here):
    rng = np.random.default_rng(0)
    names = ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "a,b", "c d"]
    frame = pd.DataFrame(rng.normal(size=(60, 4)), columns=names)
    frame["</title>"] = np.where(frame["a,b"] + frame[names[0]] > 0, "<b>yes</b>", "no")
    frame.to_csv("t.csv", index=False)
    page, record = page_and_record(run, "t.csv", "--target", "</title>", "-k", 2, *QUICK)
    assert page.count("<script") == 1
    assert "<img" not in page
    assert "<b>" not in page
    assert printed(shown_code(page)[1]) == record["selection"]["selected"]


def test_the_word_none_is_a_label_and_a_level(run, here):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 3)), columns=list("abc"))
    frame["garage"] = ["None", "one", "two"] * 20
    frame["gaps"] = [None, 1.5] * 30
    score = frame["a"] + (frame["garage"] == "None")
    frame["fence"] = np.where(score > 0.5, "None", "wood")
    frame.to_csv("t.csv", index=False)
    page, record = page_and_record(
        run, "t.csv", "--target", "fence", "--drop", "gaps", "-k", 2, *QUICK
    )
    assert set(record["selection"]["selected"]) == {"garage", "a"}
    assert printed(shown_code(page)[1]) == record["selection"]["selected"]


def test_comparison(run, here, wine_csv):
    args = ["wine.csv", *DROPPED, "-k", 2, *QUICK[:6], "--quiet"]
    _, record = page_and_record(run, *args)
    found = [row["method"] for row in record["comparison"]["methods"]]
    assert found == ["exchange", "selectkbest", "rfe", "l1"]
    _, record = page_and_record(run, *args, "--methods", "fisher,l1", "--scoring", "f1_macro")
    found = [row["method"] for row in record["comparison"]["methods"]]
    assert found == ["exchange", "fisher", "l1"]
    assert record["comparison"]["scoring"] == "f1_macro"
    _, record = page_and_record(run, *args, "--methods", "none")
    assert record["comparison"] is None


MISTAKES = {
    "unknown rival": (["--methods", "nix"], "unknown method 'nix'"),
    "own method": (["--methods", "exchange"], "names 'exchange', which the others are compared"),
    "none and more": (["--methods", "none,rfe"], "unknown method 'none'"),
    "unknown method": (["--method", "nix"], "unknown method 'nix'"),
    "option": (["-O", "lam=1"], "'exchange' has no option 'lam'"),
    "score": (["--scoring", "nix"], "scoring"),
    "estimator": (["--estimator", "ridge"], "estimator 'ridge' is not for classification"),
    "no k": (["-k", "many"], "'many' is neither 'auto' nor a whole number"),
    "k": (["-k", "99"], "k=99 is more than the 13 usable columns"),
    "k-max": (["-k", "4", "--k-max", "3"], "--k-max 3 is less than k=4"),
    "samples": (["--samples", "1"], "--samples must be 0 or at least 2"),
    "folds": (["--folds", "400"], "400"),
    "target": (["--target", "nix"], "'nix'"),
    "place": (["-o", "nowhere/page.html"], "'nowhere/page.html' cannot be written: its folder"),
    "a folder": (["-o", "."], "is a folder"),
    "the table": (["-o", "wine.csv"], "is the table itself"),
    "record over table": (["--record", "wine.csv"], "is the table itself"),
    "record over page": (["--record", "./report.html"], "is the page itself"),
    "record place": (["--record", "nowhere/r.json"], "'nowhere/r.json' cannot be written"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_said_before_any_work(run, here, wine_csv, monkeypatch, name):
    for search in ("solve", "choose_k"):
        monkeypatch.setattr(
            investigate_module, search, lambda *args, **options: pytest.fail("a search ran")
        )
    before = wine_csv.read_bytes()
    more, words = MISTAKES[name]
    start = ["wine.csv", *(DROPPED[2:] if "--target" in more else DROPPED)]
    result = run("report", *start, *more)
    assert (result.code, result.out) == (2, "")
    assert words in result.err
    assert len(result.err.strip().splitlines()) == 1
    assert not (here / "report.html").exists()
    assert wine_csv.read_bytes() == before


def test_a_record_that_cannot_be_written_is_called_by_its_option(run, here, wine_csv):
    result = run("report", "wine.csv", *DROPPED, "-k", 2, "--record", "nowhere/r.json")
    assert "--record 'nowhere/r.json'" in result.err


def test_ctrl_c_before_there_is_a_choice(run, here, wine_csv, monkeypatch):
    def stop(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(investigate_module, "solve", stop)
    result = run("report", "wine.csv", *DROPPED, "-k", 2)
    assert result.code == 130
    assert "nothing was written" in result.err
    assert not (here / "report.html").exists()


# Tells when the score is begun: the choice is made then, and the permutations take an hour.
STOPPED = """
import signal, sys
from exactk.cli import main
import exactk.report.investigate as investigate_module

signal.signal(signal.SIGINT, signal.default_int_handler)
whole = investigate_module.score_part

def score_part(*args):
    print("begun", flush=True)
    return whole(*args)

investigate_module.score_part = score_part
main(sys.argv[1:])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT for a child on Windows")
def test_ctrl_c_in_a_long_report_writes_what_is_done(here, wine_csv):
    args = [
        "report", "wine.csv", *DROPPED, "-k", "3", "--permutations", "1000000", "--samples", "4",
        "--certify", "10", "--record", "r.json",
    ]  # fmt: skip
    process = subprocess.Popen(
        [sys.executable, "-c", STOPPED, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    try:
        assert process.stdout.readline() == "begun\n"
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130, err
    record = json.loads((here / "r.json").read_text("utf-8"))
    assert len(record["selection"]["selected"]) == 3
    assert record["stability"]["n_subsamples"] == 4
    assert record["missing_parts"]["comparison"].startswith("stopped by the user")
    assert "This was stopped before its end" in (here / "report.html").read_text("utf-8")
    assert "wrote report.html" in err
