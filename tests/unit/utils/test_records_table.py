"""RecordsTable tables: what goes in comes out, in every shape."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest

import exactk
from exactk.errors import InputError, MissingExtraError
from exactk.utils import records_table
from exactk.utils.records_table import RecordsTable

TABLE = RecordsTable(
    ["k", "features", "error", "note"],
    [
        (np.int64(1), ("a",), np.float64(0.5), None),
        (2, np.array(["a", "b"]), np.nan, "x, y"),
    ],
)


def test_columns_rows_and_parts() -> None:
    assert len(TABLE) == 2
    assert TABLE["k"] == [1, 2]
    assert TABLE[0] == {"k": 1, "features": ["a"], "error": 0.5, "note": None}
    assert type(TABLE[0]["k"]) is int
    assert TABLE[1:]["features"] == [["a", "b"]]
    assert [row["k"] for row in TABLE] == [1, 2]
    assert TABLE == RecordsTable(TABLE.columns, [tuple(row.values()) for row in TABLE])
    assert TABLE[:1] != TABLE
    assert TABLE[["error", "k"]].columns == ("error", "k")
    assert TABLE[["k"]].head(1) == RecordsTable(["k"], [(1,)])
    with pytest.raises(KeyError):
        TABLE["nothing"]


def test_json_and_csv_can_be_read_again() -> None:
    assert json.loads(TABLE.to_json()) == [
        {"k": 1, "features": ["a"], "error": 0.5, "note": None},
        {"k": 2, "features": ["a", "b"], "error": None, "note": "x, y"},
    ]
    rows = list(csv.reader(io.StringIO(TABLE.to_csv())))
    assert rows == [["k", "features", "error", "note"], ["1", "a", "0.5", ""],
                    ["2", "a;b", "", "x, y"]]  # fmt: skip


def test_frames() -> None:
    frame = TABLE.to_pandas()
    assert list(frame.columns) == list(TABLE.columns)
    assert frame["features"].tolist() == [["a"], ["a", "b"]]
    assert TABLE.to_polars()["k"].to_list() == [1, 2]


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import builtins

    real = builtins.__import__

    def refuse(name, *rest, **more):
        if name in ("pandas", "polars"):
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(MissingExtraError, match=r"exactk\[pandas\]"):
        TABLE.to_pandas()
    with pytest.raises(MissingExtraError, match=r"exactk\[polars\]"):
        TABLE.to_polars()


def test_a_person_sees_aligned_columns_and_how_many_are_left_out() -> None:
    assert TABLE.to_text().splitlines() == [
        "k  features  error  note",
        "1  a         0.5",
        "2  a, b             x, y",
    ]
    long = RecordsTable(["n"], [(n,) for n in range(records_table.SHOWN_ROWS + 7)])
    assert repr(long).splitlines()[-1] == "... and 7 rows more"
    assert len(long.to_text().splitlines()) == len(long) + 1
    html = RecordsTable(["<name>"], [("a & b",)])._repr_html_()
    assert "<th>&lt;name&gt;</th>" in html
    assert "<td>a &amp; b</td>" in html


def test_a_notebook_shows_names_in_full() -> None:
    names = [f"a rather long name {number}" for number in range(5)]
    table = RecordsTable(["features"], [(names,)])
    assert ", ".join(names) in table._repr_html_()
    assert ", ".join(names) not in repr(table)


def test_a_row_of_another_length_is_refused() -> None:
    with pytest.raises(InputError, match="3 values for 2 columns"):
        RecordsTable(["a", "b"], [(1, 2, 3)])


def test_what_a_search_gives_shows_itself_in_a_notebook() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5))
    names = ["a<b", "two", "three", "four", "five"]
    problem = exactk.Problem.from_arrays(X, X[:, 0] - X[:, 2], feature_names=names)
    result = exactk.solve(problem, 2)
    for shown, rows in [
        (result, 2),
        (exactk.solve_path(problem, 3), 3),
        (exactk.choose_k(problem, k_max=3), 3),
        (exactk.stability(problem, k=2, n_subsamples=10), 5),
        (
            exactk.investigate(
                problem, k=2, n_subsamples=4, n_permutations=0, compare_with=(), certify=False
            ),
            2,
        ),
    ]:
        html = shown._repr_html_()
        assert html.count("<tr>") == 1 + rows, type(shown)
        assert "a&lt;b" in html
        assert "a<b" not in html
    assert "exchange, " in result._repr_html_()
    assert "converged" in result._repr_html_()


def test_names_with_line_ends_stay_in_their_cells() -> None:
    pd = pytest.importorskip("pandas")
    table = RecordsTable(["a\rb", "c\nd"], [("e\r", "f"), ("\r\n", "g\rh")])
    again = pd.read_csv(io.StringIO(table.to_csv(), newline=""))
    assert again.columns.tolist() == ["a\rb", "c\nd"]
    assert again["c\nd"].tolist() == ["f", "g\rh"]
    assert json.loads(table.to_json())[0] == {"a\rb": "e\r", "c\nd": "f"}
    assert table.to_text().splitlines() == [r"a\rb  c\nd", r"e\r   f", r"\r\n  g\rh"]
    assert RecordsTable(["x"], [(["\x1b[0m", "y"],)]).to_text() == "x\n\\x1b[0m, y"
