"""Names of columns that a terminal would obey: shown in text, kept in JSON and CSV."""

from __future__ import annotations

import csv
import io
import json
import unicodedata

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

NAMES = ["red\x1b[31m", "bell\a", "line\nfeed", "back\rward", "tab\tbed", "\u202egpj.exe"]
SHOWN = [r"red\x1b[31m", r"bell\x07", r"line\nfeed", r"back\rward", r"tab\tbed", r"\u202egpj.exe"]
COMMANDS = {
    "select": ["-k", 6],
    "select filter": ["-k", 6, "--method", "fisher"],
    "compare": ["-k", 6, "--methods", "greedy,selectkbest"],
    "path": ["--k-max", 6],
    "explain": ["-k", 3, "--why-not", NAMES[5]],
    "stability": ["-k", 4, "--samples", 4],
    "score": ["-k", 6, "--permutations", 0],
    "certify": ["-k", 3, "--path"],
    "certify best": ["-k", 3, "--best", 2],
}


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 6))
    label = np.where(x @ [3, 2, 1, 1, 1, 1] > 0, "yes", "no")
    path = tmp_path / "table.parquet"
    pq.write_table(pa.table({**dict(zip(NAMES, x.T, strict=True)), "sold": label}), path)
    return path


def obeyed(text: str) -> list[str]:
    return [c for c in text if c != "\n" and unicodedata.category(c) in ("Cc", "Cf")]


@pytest.mark.parametrize("name", COMMANDS)
def test_text_shows_what_a_terminal_would_obey(run, table, name) -> None:
    done = run(name.split()[0], table, "--target", "sold", *COMMANDS[name], "--quiet")
    assert done.code == 0, done.err
    assert obeyed(done.out + done.err) == []
    assert SHOWN[0] in done.out
    # A name with a line end would be two lines.
    assert not [line for line in done.out.splitlines() if line.startswith(("feed", "ward"))]


@pytest.mark.parametrize("name", ["select", "path", "stability", "score"])
def test_json_and_csv_keep_names(run, table, name) -> None:
    asked = [name, table, "--target", "sold", *COMMANDS[name], "--quiet", "--format"]
    found = run(*asked, "json").out
    assert all(json.dumps(column, ensure_ascii=False) in found for column in NAMES)
    rows = list(csv.reader(io.StringIO(run(*asked, "csv").out, newline="")))
    cells = ";".join(cell for row in rows for cell in row)
    assert all(column in cells for column in NAMES)
    assert len({len(row) for row in rows}) == 1


def test_messages_show_them_too(run, table) -> None:
    done = run("select", table, "--target", "sold\x1b[2J", "-k", 2)
    assert done.code == 2
    assert obeyed(done.err) == []
    assert r"sold\x1b[2J" in done.err


def test_explain_shows_them_in_notes(run, tmp_path, table) -> None:
    frame = pq.read_table(table)
    frame = frame.append_column("still\x1b[0m", pa.array(np.ones(60)))
    pq.write_table(frame, table)
    done = run("explain", table, "--target", "sold", "-k", 2, "--why-not", "still\x1b[0m")
    assert done.code == 0, done.err
    assert obeyed(done.out) == []
    assert "still\\x1b[0m: constant" in done.out
