"""Files become tables, tables become parts, and what cannot be used is named."""

from __future__ import annotations

import decimal
import gzip
import os
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from exactk import Problem
from exactk.data.files import read_table, split_table
from exactk.errors import InputError

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
feather = pytest.importorskip("pyarrow.feather")


@pytest.fixture
def write(tmp_path):
    def _write(content: str | bytes, name: str = "t.csv") -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return _write


def says(text: str):
    return pytest.raises(InputError, match=re.escape(text))


TEXT = "a,b,y\n1,2.5,u\n3,4.5,v\n"
TRUNCATED = gzip.compress(TEXT.encode() * 99, mtime=0)[:40]
COLUMNS = {"a": [1, 3], "b": [2.5, 4.5], "y": ["u", "v"]}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.csv", TEXT.encode()),
        ("T.CSV", TEXT.encode()),
        ("t.csv.gz", gzip.compress(TEXT.encode(), mtime=0)),
        ("t.tsv", TEXT.replace(",", "\t").encode()),
        ("t.tsv.gz", gzip.compress(TEXT.replace(",", "\t").encode(), mtime=0)),
        ("bom.csv", b"\xef\xbb\xbf" + TEXT.encode()),
        ("crlf.csv", TEXT.replace("\n", "\r\n").encode()),
        ("quoted.csv", b'"a","b","y"\n1,"2.5","u"\n"3",4.5,v\n'),
        ("blank.csv", b"a,b,y\n\n1,2.5,u\n\n3,4.5,v\n\n"),
        ("no_end.csv", TEXT.rstrip().encode()),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_same_text_gives_the_same_table(write, name, content):
    assert read_table(write(content, name)).to_pydict() == COLUMNS


@pytest.mark.parametrize("name", ["t.parquet", "t.pq"])
def test_parquet(tmp_path, name):
    pq.write_table(pa.table(COLUMNS), tmp_path / name)
    assert read_table(str(tmp_path / name)).to_pydict() == COLUMNS


def test_arrow_as_file_and_as_stream(tmp_path):
    feather.write_feather(pa.table(COLUMNS), tmp_path / "t.feather")
    feather.write_feather(pa.table(COLUMNS), tmp_path / "t.arrow", compression="uncompressed")
    with pa.ipc.new_stream(tmp_path / "t.ipc", pa.table(COLUMNS).schema) as writer:
        writer.write_table(pa.table(COLUMNS))
    for name in ("t.feather", "t.arrow", "t.ipc"):
        assert read_table(tmp_path / name).to_pydict() == COLUMNS
    (tmp_path / "t.feather").write_bytes(b"FEA1" + bytes(100))
    with says("t.feather' is a Feather file of version 1; write it"):
        read_table(tmp_path / "t.feather")
    (tmp_path / "t.arrow").write_bytes(b"ARROW1" + bytes(100))
    with says("t.arrow' cannot be read as Arrow"):
        read_table(tmp_path / "t.arrow")


def test_names_may_hold_commas_and_line_breaks(write):
    table = read_table(write('"a, ""left""","b\nc",é\n1,2,3\n'))
    assert table.column_names == ['a, "left"', "b\nc", "é"]


def test_a_wide_row_fits(write):
    names = [f"{i:0200d}" for i in range(10_000)]
    text = ",".join(names) + "\n" + ",".join(["1"] * len(names)) + "\n"
    assert read_table(write(text)).column_names == names
    with says("row '1' in line 3 has 1 values where the header has 10000"):
        read_table(write(text + "1\n"))


def test_a_column_that_turns_real_far_down_is_real(write):
    lines = ["a,y", *["1,0"] * 5_000_000, "0.5,1"]
    column = read_table(write("\n".join(lines))).column("a")
    assert pa.types.is_float64(column.type)
    assert column[-1].as_py() == 0.5


@pytest.mark.parametrize(
    ("content", "name", "message"),
    [
        ("", "t.csv", "is empty"),
        ("\n", "t.csv", "is empty"),
        (gzip.compress(b"\n", mtime=0), "t.csv.gz", "is empty"),
        ("a,b\n", "t.csv", "has no rows"),
        ("a,b,a,b,c\n1,2,3,4,5\n", "t.csv", "more than one column named 'a', 'b'; rename them"),
        (
            "a,b\n1,2\n3\n4,5\n",
            "t.csv",
            "row '3' in line 3 has 1 values where the header has 2",
        ),
        (
            "a,b\n1,2\n3,4,5\n",
            "t.csv",
            "row '3,4,5' in line 3 has 3 values where the header has 2",
        ),
        ('a,b\n\n"x\ny",2\n3\n', "t.csv", "row '3' in line 5"),
        (gzip.compress(b"a,b\n1,2\n3\n", mtime=0), "t.csv.gz", "row '3' in line 3"),
        ("naïve,b\n1,2\n".encode("latin-1"), "t.csv", "is not UTF-8 text in line 1"),
        ("a,b\n1,2\n".encode("utf-16"), "t.csv", "is not UTF-8 text in line 1"),
        (TEXT, "t.csv.gz", "is not compressed with gzip"),
        (
            gzip.compress(TEXT.encode() * 99, mtime=0)[:40],
            "t.csv.gz",
            "ends too early",
        ),
        (TEXT, "t.parquet", "is not a Parquet file"),
        ("", "t.parquet", "is empty"),
        (b"PAR1" + bytes(100), "t.parquet", "cannot be read as Parquet"),
        (TEXT, "t.xlsx", "has the suffix '.xlsx'; give .csv, .csv.gz, .tsv, .tsv.gz, .parquet"),
        (TEXT, "table", "has no suffix; give .csv"),
        (TEXT, "t.gz", "has the suffix '.gz'; give .csv"),
    ],
)
def test_unreadable(write, content, name, message):
    with says(message) as caught:
        read_table(write(content, name))
    assert "\n" not in str(caught.value)
    assert name in str(caught.value)


@pytest.mark.parametrize("read", [read_table, lambda path: Problem.from_files(path, "b")])
def test_a_row_of_another_length_is_named_with_its_line(write, read):
    with says("row '5,6,7' in line 4") as caught:
        read(write("a,b\n1,2\n3,4\n5,6,7\n8\n"))
    assert caught.value.parameter == "path"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes have no names on this system")
def test_a_pipe_is_refused_before_it_is_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    for opened in (read_table, lambda path: Problem.from_files(path, "y")):
        with says("pipe.csv' is a pipe or a device; save it as a file first"):
            opened(tmp_path / "pipe.csv")


@pytest.mark.parametrize("name", ["table.csv", "table.csv.gz"])
def test_semicolons_are_said_and_not_guessed_at(tmp_path, name):
    text = "größe;preis;y\n1,5;2;a\n2,5;3;b\n".encode("latin-1")
    (tmp_path / name).write_bytes(gzip.compress(text, mtime=0) if name.endswith("gz") else text)
    for opened in (read_table, lambda path: Problem.from_files(path, "y")):
        with says("is separated by ';' and not by ','; save it with commas"):
            opened(tmp_path / name)


def test_absent_file_and_folder(tmp_path):
    with says("nowhere.csv' does not exist"):
        read_table(tmp_path / "nowhere.csv")
    with says("is a folder; give one file (.csv, "):
        read_table(tmp_path)


def test_parquet_without_columns_or_rows(tmp_path):
    pq.write_table(pa.table({}), tmp_path / "none.parquet")
    with says("has no columns"):
        read_table(tmp_path / "none.parquet")
    pq.write_table(pa.table({"a": pa.array([], pa.int64())}), tmp_path / "empty.parquet")
    with says("has no rows"):
        read_table(tmp_path / "empty.parquet")


def test_without_pyarrow_the_extra_is_named(write, monkeypatch):
    path = write(TEXT)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with says('pip install "exactk[cli]"'):
        read_table(path)


# --- the parts -------------------------------------------------------------------------------


def test_split():
    table = pa.table({"w": [1, 2], "a": [1, 3], "id": ["p", "q"], "y": ["u", "v"], "b": [0.5, 1]})
    parts = split_table(table, "y", weights="w", drop=["id"])
    assert parts.features.column_names == ["a", "b"]
    assert parts.target.tolist() == ["u", "v"]
    assert parts.weights.tolist() == [1.0, 2.0]
    assert parts.weights.dtype == np.float64
    assert split_table(table, "y", drop=["id", "w"]).weights is None


def test_storage_does_not_matter():
    columns = {
        "real": pa.array([1.0, 2.0], pa.float32()),
        "half": pa.array(np.array([1, 2], np.float16)),
        "decimal": pa.array([decimal.Decimal("1.0"), decimal.Decimal("2.0")]),
        "dictionary": pa.array([1, 2]).dictionary_encode(),
        "byte": pa.array([1, 2], pa.uint8()),
        "chunks": pa.chunked_array([[1], [2]]),
    }
    parts = split_table(pa.table({**columns, "y": [0.0, 1.0]}), "y")
    for name in columns:
        assert parts.features.column(name).to_numpy().tolist() == [1, 2], name


def test_booleans_are_numbers():
    parts = split_table(pa.table({"a": [True, False], "y": [False, True]}), "y")
    assert parts.features.column_names == ["a"]
    assert parts.target.dtype == bool


@pytest.mark.parametrize(
    ("values", "expected", "kind"),
    [
        (pa.array([3, 5]), [3, 5], "i"),
        (pa.array([3.5, 5]), [3.5, 5.0], "f"),
        (pa.array([decimal.Decimal("3.5"), decimal.Decimal("5.0")]), [3.5, 5.0], "f"),
        (pa.array(["u", "v"]).dictionary_encode(), ["u", "v"], "O"),
        (pa.array(["u", "v"], pa.large_string()), ["u", "v"], "O"),
    ],
)
def test_target_kinds(values, expected, kind):
    target = split_table(pa.table({"a": [1, 2], "y": values}), "y").target
    assert target.tolist() == expected
    assert target.dtype.kind == kind


def test_an_index_stored_by_pandas_is_no_feature(tmp_path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": [1, 2], "y": [0, 1]}, index=pd.Index([7, 9], name="sample"))
    frame.to_parquet(tmp_path / "t.parquet")
    table = read_table(tmp_path / "t.parquet")
    assert "sample" in table.column_names
    assert split_table(table, "y").features.column_names == ["a"]
    assert split_table(table, "y", weights="sample").weights.tolist() == [7, 9]


def test_na_is_missing_not_a_class(write):
    table = read_table(write("a,y\n1,u\n2,NA\n3,\n"))
    with says("target column 'y' has 2 missing values; remove these rows"):
        split_table(table, "y")


BASE = {"a": [1.0, 2.0], "alpha": [3.0, 4.0], "y": [0, 1]}
NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("extra", "arguments", "message"),
    [
        ({}, {"target": "Y"}, "target column 'Y' is not in the table; did you mean 'y'?"),
        ({}, {"target": "zz"}, "not in the table; its columns are 'a', 'alpha', 'y'"),
        ({}, {"drop": ["alpah"]}, "dropped column 'alpah' is not in the table; did you mean"),
        ({}, {"weights": "w8"}, "weights column 'w8' is not in the table"),
        ({}, {"weights": "y"}, "column 'y' cannot be both target and weights"),
        ({}, {"drop": ["y"]}, "column 'y' cannot be dropped"),
        ({}, {"drop": ["a", "alpha"]}, "no feature columns"),
        (
            {"s": ["u", "v"]},
            {},
            "1 feature column is not numeric (string): 's'; recode them, or",
        ),
        (
            {f"s{i}": ["u", "v"] for i in range(7)},
            {},
            "7 feature columns are not numeric (string): 's0', 's1', 's2', 's3', 's4' and 2 more",
        ),
        ({"t": pa.array([1, 2], pa.timestamp("s"))}, {}, "not numeric (timestamp[s]): 't'"),
        ({"t": pa.array([[1], [2]])}, {}, "not numeric"),
        ({"": [1, 2]}, {}, "column 4 of the table has no name; name it, or leave it out"),
        ({"": [1, 2]}, {}, "leave it out with drop=['']"),
        ({"n": [1, None]}, {}, "column 'n' has 1 missing value; fill or remove"),
        ({"n": [NAN, NAN]}, {}, "column 'n' has 2 missing values; fill or remove"),
        ({"n": [None, INF]}, {}, "column 'n' has 1 missing value and 1 infinite value"),
        ({"n": pa.array([None, None])}, {}, "column 'n' has 2 missing values"),
        ({"n": [INF, -INF]}, {}, "column 'n' has 2 infinite values"),
        (
            {f"n{i}": [1.0, NAN] for i in range(5)},
            {},
            "column 'n2' has 1 missing value and 2 more columns likewise; fill",
        ),
        ({"w": [1, None]}, {"weights": "w"}, "weights column 'w' has 1 missing value"),
        ({"w": ["1", "x"]}, {"weights": "w"}, "weights column 'w' is string; it must hold numbers"),
        ({"z": [1.0, NAN]}, {"target": "z"}, "target column 'z' has 1 missing value"),
        ({"z": [1.0, INF]}, {"target": "z"}, "target column 'z' has 1 infinite value"),
        ({"z": [b"u", b"\xe9"]}, {"target": "z"}, "'z' is not UTF-8 text in row 1"),
        ({"z": [b"u", b"\xe9"]}, {}, "'z' is not UTF-8 text in row 1"),
        ({"z": [b"u", b"v"]}, {"target": "z"}, "is binary; it must hold numbers or UTF-8"),
        ({"z": ["u", "v\n1,2"]}, {"target": "z"}, "is a quote left open?"),
    ],
)
def test_bad_parts(extra, arguments, message):
    arguments = {"target": "y", **arguments}
    with says(message) as caught:
        split_table(pa.table({**BASE, **extra}), arguments.pop("target"), **arguments)
    assert "\n" not in str(caught.value)
