"""``exactk select`` on files with text: coded, and the answer names the columns of the file."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from exactk.cli import tables

N = 120
ARGS = ["--target", "price", "--ridge", 0, "-k", 2]


@pytest.fixture(scope="module")
def table() -> pa.Table:
    rng = np.random.default_rng(5)
    colour = rng.permutation(["red"] * 60 + ["blue"] * 40 + ["green"] * 20)
    size, noise = rng.normal(size=(2, N))
    effect = np.select([colour == "blue", colour == "green"], [4.0, -4.0])
    return pa.table(
        {
            "noise": noise,
            "colour": colour.tolist(),
            "sex": rng.permutation(["f", "m"] * 60).tolist(),
            "size": size,
            "price": effect + size + 0.1 * rng.normal(size=N),
        }
    )


@pytest.fixture
def path(table: pa.Table, tmp_path: Path) -> Path:
    pa_csv.write_csv(table, tmp_path / "table.csv")
    return tmp_path / "table.csv"


def squared_error(table: pa.Table) -> float:
    """Of size and colour, by NumPy."""
    colour = np.array(table["colour"].to_pylist())
    y = table["price"].to_numpy()
    design = np.column_stack([np.ones(N), table["size"], colour == "blue", colour == "green"])
    return float(((y - design @ np.linalg.lstsq(design, y, rcond=None)[0]) ** 2).sum())


def test_text_names_the_columns_of_the_file(run, path, table):
    result = run("select", path, *ARGS)
    assert (result.code, result.err) == (0, "")
    lines = result.out.splitlines()
    assert lines[0] == "2 of 4 features for 'price' (regression, 120 rows)"
    assert {line[8:] for line in lines[2:4]} == {"colour (3 levels)", "size"}
    assert f"objective  {squared_error(table):.6g} of " in result.out


def test_csv_has_one_line_a_column(run, path):
    rows = list(csv.DictReader(io.StringIO(run("select", path, *ARGS, "--format", "csv").out)))
    assert [row["rank"] for row in rows] == ["1", "2"]
    assert {(row["index"], row["feature"]) for row in rows} == {("1", "colour"), ("3", "size")}


def test_json_keeps_coefficients_by_coded_column(run, path, table):
    content = json.loads(run("select", path, *ARGS, "--format", "json").out)
    assert sorted(content["selected"]) == ["colour", "size"]
    assert content["feature_names"] == ["colour=blue", "colour=green", "size"]
    assert len(content["coef"][0]) == 3
    assert content["objective"] == pytest.approx(squared_error(table))
    assert content["categories"] == [
        {"name": "colour", "levels": ["blue", "green", "red"], "reference": "red",
         "columns": [1, 2]},
        {"name": "sex", "levels": ["f", "m"], "reference": "f", "columns": [3]},
    ]  # fmt: skip


def test_json_of_numbers_is_as_it_was(run, path):
    args = [*ARGS, "--drop", "colour", "--drop", "sex", "--format", "json"]
    content = json.loads(run("select", path, *args).out)
    assert "categories" not in content
    assert sorted(content["feature_names"]) == sorted(content["selected"]) == ["noise", "size"]


def test_scores_of_a_filter_stand_beside_the_columns(run, path):
    args = ["--target", "sex", "--drop", "colour", "-k", 2, "--method", "fisher"]
    assert run("select", path, *args).code == 0
    args = ["--target", "colour", "-k", 2, "--method", "fisher", "--format", "csv"]
    rows = list(csv.DictReader(io.StringIO(run("select", path, *args).out)))
    assert rows[0]["feature"] == "price"
    assert float(rows[0]["score"]) > float(rows[1]["score"])


@pytest.mark.parametrize("encoded", [False, True], ids=["plain", "encoded"])
def test_parquet_gives_the_same_answer(run, path, table, tmp_path, encoded):
    if encoded:
        table = table.set_column(1, "colour", table["colour"].dictionary_encode())
    pq.write_table(table, tmp_path / "table.parquet")
    first, second = (
        json.loads(run("select", file, *ARGS, "--format", "json").out)
        for file in (path, tmp_path / "table.parquet")
    )
    assert first["selected"] == second["selected"]
    assert first["objective"] == pytest.approx(second["objective"], rel=1e-10)


def test_encoded_text_of_numbers_is_a_category(run, table, tmp_path):
    codes = pa.array([{"red": "1", "blue": "2", "green": "3"}[c.as_py()] for c in table["colour"]])
    args = [*ARGS, "--format", "json"]
    pq.write_table(table.set_column(1, "colour", codes.dictionary_encode()), tmp_path / "a.parquet")
    content = json.loads(run("select", tmp_path / "a.parquet", *args).out)
    assert content["feature_names"] == ["colour=2", "colour=3", "size"]
    pq.write_table(table.set_column(1, "colour", codes), tmp_path / "b.parquet")
    result = run("select", tmp_path / "b.parquet", *args)
    assert result.code == 2
    assert "column 'colour' holds numbers as text" in result.err


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("id", [f"row {i}" for i in range(N)], "column 'id' has 120 different values in 120 rows"),
        ("gap", [None, *["a", "b"] * 59, "a"], "column 'gap' has 1 missing value"),
        ("day", pa.array([0] * N, pa.date32()), "not numeric or text (date32[day]): 'day'"),
    ],
)
def test_what_cannot_be_coded_is_named(run, table, tmp_path, name, values, message):
    pq.write_table(table.append_column(name, pa.array(values)), tmp_path / "bad.parquet")
    result = run("select", tmp_path / "bad.parquet", *ARGS)
    assert result.code == 2
    assert message in result.err
    assert result.err.count("\n") == 1


def test_one_mark_in_a_column_of_numbers_is_found(run, tmp_path):
    path = tmp_path / "table.csv"
    rows = [f"{'?' if i == 700 else i % 100},{i % 7},{i % 11}" for i in range(1000)]
    path.write_text("\n".join(["v,x,y", *rows]) + "\n")
    result = run("select", path, "--target", "y", "-k", 1)
    assert (result.code, result.out, result.err.count("\n")) == (2, "", 1)
    for word in ("'v'", "'?'", "row 701 of the data", "--drop"):
        assert word in result.err
    assert run("select", path, "--target", "y", "-k", 1, "--drop", "v").code == 0


def test_a_table_that_is_passed_over_says_why_text_is_refused(
    run, path, table, tmp_path, monkeypatch
):
    folder = tmp_path / "parts"
    folder.mkdir()
    pq.write_table(table, folder / "part.parquet")
    monkeypatch.setattr(tables, "LARGE_TABLE", 100)
    for place in (folder, path):
        result = run("select", place, *ARGS)
        assert result.code == 2
        assert "2 feature columns are not numeric (string): 'colour', 'sex'; drop" in result.err
        assert "in memory" in result.err
        found = run("select", place, *ARGS, "--drop", "colour", "--drop", "sex")
        assert found.code == 0
