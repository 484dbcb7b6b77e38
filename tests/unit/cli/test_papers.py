"""``exactk papers``: recipes, runs that survive a kill, and what they show."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from exactk.cli import papers
from exactk.papers.experiments.reading import read_recipe, recipe_names
from exactk.papers.experiments.runner import RunProgress
from exactk.papers.experiments.store import Store

posix = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")

RECIPE = """
name = "own"
title = "Two methods on two tables"
protocol = "fit"
datasets = ["wine", "iris"]
sizes = [2, 3]
repeats = {repeats}
[measure]
one_start = true
[[methods]]
label = "CD-LSR"
method = "cdlsr"
[[methods]]
label = "Fisher (1, 2)"
method = "fisher"
[[views]]
kind = "table"
measure = "objective"
[published.objective.wine.2]
"CD-LSR" = [40.0, 1.0]
"""


@pytest.fixture
def own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    place = tmp_path / "own.toml"
    place.write_text(RECIPE.format(repeats=2))
    return place


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A store of an unbroken run, with a data set that is absent, and what the command said."""
    folder = tmp_path_factory.mktemp("finished")
    (folder / "own.toml").write_text(RECIPE.format(repeats=2))
    (folder / "empty").mkdir()
    args = ["run", "own.toml", "--datasets", "wine,iris,lung", "--jobs", 2]
    nothing = str(folder / "empty")
    with start(*args, cwd=folder, EXACTK_DATA=nothing, XDG_CACHE_HOME=nothing) as process:
        out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return folder / "exactk-bench" / "own.jsonl", out, err


def heed_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@contextmanager
def start(*args: object, cwd: Path, **environment: str) -> Iterator[subprocess.Popen[str]]:
    """Run the command in a group of its own; nothing of it is left when the block ends."""
    process = subprocess.Popen(
        [sys.executable, "-m", "exactk", "papers", *map(str, args)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=cwd,
        env={**os.environ, **environment}, start_new_session=True,
        # Ignored in what a script starts in the background, and so in all that it starts.
        preexec_fn=heed_interrupts if os.name == "posix" else None,
    )  # fmt: skip
    with process:
        try:
            yield process
        finally:
            process.kill()


def cells(store: Path) -> list[dict[str, object]]:
    """What is recorded, but for times."""
    found = []
    for record in Store(store).records():
        if record["type"] == "cell":
            for result in record["results"]:
                del result["seconds"]
            for name in ("seconds", "wall", "finished"):
                del record[name]
            found.append(record)
    return sorted(found, key=lambda record: record["key"])


def lines(store: Path) -> int:
    return store.read_bytes().count(b"\n") if store.exists() else 0


def until_lines(store: Path, count: int, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 60
    while lines(store) < count and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.002)


def test_a_run_prints_published_beside_measured(finished):
    store, out, err = finished
    records = cells(store)
    # CD-LSR draws its starts, each size alone; Fisher gives both sizes at once, and once is enough.
    assert len(records) == 2 * (2 * 2 + 1)
    objectives = [
        record["results"][0]["objective"]
        for record in records
        if (record["dataset"], record["method"], record["sizes"]) == ("wine", "CD-LSR", [2])
    ]
    mean = sum(objectives) / 2
    head, _, _, line, *_ = out.splitlines()
    assert head == "own: Two methods on two tables (10 done)"
    assert line.split()[:7] == ["objective", "wine", "2", "CD-LSR", "40", "±", "1"]
    assert f"{mean:.4g} ± " in line
    assert f"{mean - 40:+.4g}" in line
    assert "Fisher (1, 2)" in out, "what no paper prints is shown as well"
    assert "own: 10 cells run, 0 stored before" in err
    assert "left out: lung (how to get it: exactk papers datasets fetch lung)" in err


def test_show(run, ask, rows, finished):
    store, out, _ = finished
    assert run("papers", "show", store).out == out
    assert run("papers", "show", store.parent).out == out
    wanted = ("wine", "2", "objective", "CD-LSR")
    names = ("dataset", "k", "measure", "method")
    found = {tuple(row[name] for name in names): row for row in rows("papers", "show", store)}
    one = found[wanted]
    assert (one["n"], one["published"], one["published_sd"]) == ("2", "40.0", "1.0")
    content = ask("papers", "show", store)["result"]
    assert content["published"][0]["measured"] == pytest.approx(float(one["mean"]))
    assert content["failures"] == []


def test_a_run_of_stored_cells_runs_nothing_and_writes_its_result(run, finished, monkeypatch):
    store, _, _ = finished
    monkeypatch.chdir(store.parent.parent)
    monkeypatch.setattr("exactk.papers.experiments.pool.Pool.run", lambda *args: iter(()))
    result = run("papers", "run", "own.toml", "--format", "json", "-o", "result.json")
    assert (result.code, result.out) == (0, "")
    assert "own: 0 cells run, 10 stored before" in result.err
    assert "CD-LSR" in {
        row["method"] for row in json.loads(Path("result.json").read_text())["result"]["rows"]
    }
    assert run("papers", "run", "own.toml", "--quiet").err == ""


def test_list(run, ask):
    text = run("papers", "list").out
    found = ask("papers", "list")["result"]["recipes"]
    assert [row["name"] for row in found] == recipe_names()
    for row in found:
        recipe = read_recipe(row["name"])
        assert sorted(row["here"] + row["absent"]) == sorted(recipe.datasets)
        assert f"{row['name']} " in text
        assert recipe.title in text


def test_list_cells_runs_nothing(run, own, tmp_path):
    result = run(
        "papers", "run", own, "--list-cells", "--datasets", "wine", "--sizes", "2-6:2", "--repeats",
        1, "--methods", "cd-lsr,FISHER (1, 2)", "--methods", "mrmr", "--format", "json",
    )  # fmt: skip
    assert result.code == 0
    found = json.loads(result.out)["result"]["cells"]
    assert [(cell["method"], cell["sizes"]) for cell in found] == [
        ("CD-LSR", [2]),
        ("CD-LSR", [4]),
        ("CD-LSR", [6]),
        ("Fisher (1, 2)", [2, 4, 6]),
        ("mrmr", [2, 4, 6]),
    ]
    assert {(cell["recipe"], cell["data"], cell["repeat"]) for cell in found} == {
        ("own", "wine", 0)
    }
    assert "5 cells to run, 0 stored" in result.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["own.toml"]


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["run", "gsrfs-tabel2"], "did you mean 'gsrfs-table2'?"),
        (["run", "none.toml"], "'none.toml'"),
        (["run"], "RECIPE..."),
        (["run", "own.toml", "--methods", "exchnage"], "did you mean 'exchange'?"),
        (["run", "own.toml", "--datasets", "wien"], "no data set named 'wien'"),
        (["run", "own.toml", "--sizes", "9-2"], "not '9-2'"),
        (["run", "own.toml", "--sizes", "1-99999999999"], "--sizes must be"),
        (["run", "own.toml", "--sizes", " "], "--sizes names nothing"),
        (["run", "own.toml", "--jobs", "0"], "--jobs must be"),
        (["run", "own.toml", "--store", ""], "--store"),
        (["run", "own.toml", "--store", "own.toml"], "not a store of exactk papers run"),
        (["run", "own.toml", "--store", "."], "--store . is a folder"),
        (["show", "nothing.jsonl"], "exactk papers run makes one"),
        (["show", "."], "'.' has no store"),
        (["show", "own.toml"], "not a store of exactk papers run"),
        (["report", "nothing.jsonl"], "there is no store 'nothing.jsonl'"),
        (["report", "own.toml", "-o", "own.toml"], "is also an input"),
    ],
)
def test_wrong_usage_is_one_sentence(fails, own, args, words):
    fails(words, "papers", *args)
    assert own.read_text() == RECIPE.format(repeats=2)


def test_no_data_at_all_is_said(fails, own, tmp_path, monkeypatch):
    monkeypatch.setenv("EXACTK_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    said = fails("none of the data sets is here", "papers", "run", own, "--datasets", "srbct")
    assert "exactk papers datasets fetch srbct" in said


def test_report_gives_the_page_the_records(run, finished, tmp_path, monkeypatch):
    seen = {}

    def write_page(records, path, title):
        seen.update(records=records, title=title)
        path.write_text("page")

    monkeypatch.setattr("exactk.papers.experiments.page.html.write_page", write_page, raising=False)
    result = run("papers", "report", finished[0], "-o", tmp_path / "page.html")
    assert result.code == 0
    assert (tmp_path / "page.html").read_text() == "page"
    assert seen["title"] == "exactk papers: own"
    assert [record["type"] for record in seen["records"]] == ["recipe"] + ["cell"] * 10


def test_a_method_beside_its_recipe(own):
    (own.parent / "mine.py").write_text(
        "from exactk.methods.greedy import Greedy\nclass Mine(Greedy):\n    pass\n"
    )
    args = ["--methods", "mine:Mine", "--datasets", "iris", "--repeats", 1, "--sizes", 2]
    # Not with -m, which would find the folder by itself.
    code = "import sys; sys.path.remove(''); from exactk.cli import main; main(sys.argv[1:])"
    result = subprocess.run(
        [sys.executable, "-c", code, "papers", "run", str(own), *map(str, args)],
        capture_output=True, text=True, cwd=own.parent, timeout=120, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert "(1 done)" in result.stdout


@posix
@pytest.mark.slow
def test_killed_and_resumed_is_the_same_as_unbroken(tmp_path):
    (tmp_path / "own.toml").write_text(RECIPE.format(repeats=25))
    broken, whole = tmp_path / "broken.jsonl", tmp_path / "whole.jsonl"
    total = 2 * (25 * 2 + 1)
    recorded = 0
    # The process alone, whose worker must not go on; then the whole group.
    for kill in (lambda p: p.kill(), lambda p: os.killpg(p.pid, signal.SIGKILL)):
        with start("run", "own.toml", "--store", broken, cwd=tmp_path) as process:
            until_lines(broken, recorded + 20, process)
            kill(process)
            process.communicate()
        assert process.returncode == -signal.SIGKILL
        assert recorded + 10 < lines(broken) < total, "it was killed in the middle"
        recorded = lines(broken)
        with broken.open("ab") as file:
            # As if it had been killed within a write.
            file.write(b'{"type":"cell","schema":1,"key":"61')
    with start("run", "own.toml", "--store", broken, "--jobs", 2, cwd=tmp_path) as process:
        _, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert f"{total - (recorded - 1)} cells run, {recorded - 1} stored before" in err
    assert "cut short" in err

    with start("run", "own.toml", "--store", whole, cwd=tmp_path) as process:
        assert process.communicate(timeout=120)[0]
    keys = [json.loads(line).get("key") for line in broken.read_text().splitlines()]
    assert len(keys) == len(set(keys)), "no cell was run twice"
    assert len(cells(broken)) == total
    assert cells(broken) == cells(whole)


@posix
@pytest.mark.slow
def test_ctrl_c_keeps_and_shows_what_is_done(tmp_path):
    (tmp_path / "own.toml").write_text(RECIPE.format(repeats=400))
    store = tmp_path / "s.jsonl"
    with start("run", "own.toml", "--store", store, cwd=tmp_path) as process:
        until_lines(store, 10, process)
        # A terminal sends it to every process of the group.
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert f"finished cells are in {store}; the same command continues." in err
    assert "Interrupted: " in err
    assert "Traceback" not in err
    done = len(cells(store))
    assert 9 <= done < 2 * (400 * 2 + 1)
    assert out.startswith(f"own: Two methods on two tables ({done} done)\n")


def test_progress_lines(monkeypatch, capsys):
    monkeypatch.setattr("exactk.cli.papers.LINE_EVERY", 0.0)
    with papers._show_cells("own", verbose=1) as show:
        show(RunProgress(0, 4, None, ("iris",)))
        show(RunProgress(2, 4, 125.0, ("iris",)))
    with papers._show_cells("own", verbose=0) as show:
        assert show is None
    lines = capsys.readouterr().err.splitlines()
    assert ["0 of 4 cells" in lines[0], "2 of 4 cells, 2 min 05 s left" in lines[1]] == [True] * 2
    assert len(lines) == 2


def test_progress_bar(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr("sys.stderr", terminal)
    with papers._show_cells("own [1]", verbose=1) as show:
        show(RunProgress(2, 4, 125.0, ("iris · [b]",)))
    for words in ("own [1]", "2/4", "2 min 05 s left", "iris · [b]"):
        assert words in terminal.getvalue()
