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
COMMANDS = {
    "select": ["-k", 6],
    "select filter": ["-k", 6, "--method", "fisher"],
    "select sizes": ["-k", "auto", "--k-max", 6, "--table"],
    "evaluate": ["-k", 6, "--compare-with", "greedy,selectkbest"],
    "explain": ["-k", 3, "--why-not", NAMES[5]],
    "stability": ["-k", 4, "--subsamples", 4],
    "certify": ["-k", 3, "--path"],
    "certify best": ["-k", 3, "--best", 2],
    "certify one": ["-k", 3],
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
def test_text_shows_them_as_escapes(run, table, name) -> None:
    done = run(name.split()[0], table, "sold", *COMMANDS[name], "--quiet")
    assert done.code == 0, done.err
    assert obeyed(done.out + done.err) == []
    assert r"red\x1b[31m" in done.out
    # A name with a line end would be two lines.
    assert not [line for line in done.out.splitlines() if line.startswith(("feed", "ward"))]


@pytest.mark.parametrize("name", ["select", "stability", "evaluate"])
def test_json_and_csv_keep_them(run, table, name) -> None:
    asked = [name, table, "sold", *COMMANDS[name], "--quiet", "--format"]
    found = run(*asked, "json").out
    assert all(json.dumps(column, ensure_ascii=False) in found for column in NAMES)
    rows = list(csv.reader(io.StringIO(run(*asked, "csv").out, newline="")))
    cells = ";".join(cell for row in rows for cell in row)
    assert all(column in cells for column in NAMES)
    assert len({len(row) for row in rows}) == 1


def test_messages_show_them_as_escapes(run, table) -> None:
    done = run("select", table, "sold\x1b[2J", "-k", 2)
    assert done.code == 2
    assert obeyed(done.err) == []
    assert r"sold\x1b[2J" in done.err
