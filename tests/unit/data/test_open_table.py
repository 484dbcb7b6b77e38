"""The door: what comes in as which kind of rows, and what stays out and why."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from exactk.data.dense import DenseRows
from exactk.data.design_matrix import DesignMatrix
from exactk.data.open_table import open_rows
from exactk.data.sparse import SparseRows
from exactk.errors import InputError
from tests.support import says

pd = pytest.importorskip("pandas")


def test_lists_are_arrays() -> None:
    rows = open_rows([[1, 2], [3, 4.5]])
    assert isinstance(rows, DenseRows)
    assert rows.columns(np.array([0, 1])).tolist() == [[1, 2], [3, 4.5]]
    assert rows.feature_names is None


@pytest.mark.parametrize("dtype", ["f8", "f4", "i4", "?"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_are_not_copied(dtype: str, order: str) -> None:
    X = np.asarray(np.eye(4, 3), dtype=dtype, order=order)
    rows = open_rows(X)
    assert isinstance(rows, DenseRows)
    X[2, 1] = 1
    assert rows.columns(np.array([1]))[2, 0] == 1


def test_sparse_stays_sparse() -> None:
    for kind in (sparse.csr_matrix, sparse.csc_array, sparse.coo_matrix):
        assert isinstance(open_rows(kind(np.eye(3))), SparseRows)


def test_numbers_as_objects_become_floats() -> None:
    rows = open_rows(np.array([[1, 2.5], [3, True]], dtype=object))
    assert rows.columns(np.array([0, 1])).tolist() == [[1, 2.5], [3, 1]]


def test_given_names() -> None:
    rows = open_rows(np.eye(3, 2), ["a", "b"])
    assert rows.feature_names == ("a", "b")
    assert open_rows(np.eye(3, 2), np.array([10, 20])).feature_names == ("10", "20")
    assert open_rows(sparse.eye(3, 2, format="csr"), ("u", "v")).feature_names == ("u", "v")


def test_given_names_replace_those_of_a_frame() -> None:
    frame = pd.DataFrame({"a": [1, 2], "b": [3, 4]})
    assert open_rows(frame).feature_names == ("a", "b")
    assert open_rows(frame, ["u", "v"]).feature_names == ("u", "v")


def test_wrong_names() -> None:
    with says("feature_names has 3 names", "2 columns"):
        open_rows(np.eye(3, 2), ["a", "b", "c"])
    with says("duplicate names in feature_names: 'b'"):
        open_rows(np.eye(3), ["b", "a", "b"])


@pytest.mark.parametrize(
    ("X", "words"),
    [
        (np.ones(3), ["1 dimension"]),
        (pd.Series([1.0, 2.0]), ["1 dimension"]),
        ({"a": [1.0, 2.0]}, ["dict"]),
        (np.ones((3, 2, 2)), ["3 dimensions"]),
        (None, ["NoneType"]),
        (3.0, ["float"]),
        (np.ones((0, 3)), ["no samples", "at least 2"]),
        (np.ones((1, 3)), ["1 sample", "at least 2", "give more rows"]),
        (np.ones((3, 0)), ["0 feature(s)"]),
        ([[1, 2], [3]], ["different lengths"]),
        (np.array([["a", 1], ["b", 2]], dtype=object), ["'a'", "column 0", "row 0"]),
        ([[1, None], [2, "x"]], ["'x'", "column 1", "row 1"]),
        (np.array([["1", "2"], ["3", "4"]]), ["numeric"]),
        (np.array([["2020-01-01"], ["2020-01-02"]], dtype="M8[D]"), ["datetime64", "not a number"]),
        (np.ones((3, 2)) * 1j, ["Complex data not supported"]),
    ],
    ids=lambda value: value[0] if isinstance(value, list) and isinstance(value[0], str) else "",
)
def test_what_is_no_table(X: Any, words: list[str]) -> None:
    with says(*words) as error:
        open_rows(X)
    assert error.value.parameter == "X"
    for internal in ("Found array with", "could not convert string"):
        assert internal not in str(error.value)


def test_masked_values_are_missing_values() -> None:
    X = np.ma.masked_array(np.eye(3), mask=np.eye(3, dtype=bool))
    with says("mask"):
        open_rows(X)


def test_tables_that_are_elsewhere_name_their_constructor() -> None:
    import polars as pl

    with says("LazyFrame", "collect", "from_files"):
        open_rows(pl.LazyFrame({"a": [1.0, 2.0]}))
    # The name of its module is all that is looked at: no Spark session is started here.
    spark = type("DataFrame", (), {"__module__": "pyspark.sql.classic.dataframe"})
    with says("Spark table", "from_spark"):
        open_rows(spark())


def test_every_source_is_rows() -> None:
    assert issubclass(DenseRows, DesignMatrix)
    assert issubclass(SparseRows, DesignMatrix)


def test_a_path_is_no_table(tmp_path: Path) -> None:
    for X in ("usage", tmp_path / "usage"):
        with pytest.raises(InputError, match=r"X is a path, .*usage'; Problem.from_files"):
            open_rows(X)
