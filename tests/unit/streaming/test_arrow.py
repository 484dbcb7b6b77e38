"""Record batches become blocks: every kind of number, labels, and what cannot be used is named."""

from __future__ import annotations

import decimal
import pickle
import re
from typing import Any

import numpy as np
import pytest

from exactk.errors import InputError
from exactk.streaming.arrow import (
    Roles,
    blocks_of,
    cut,
    resolve_roles,
    rows_per_block,
    target_kind,
    to_block,
)
from exactk.streaming.base import EncodedLabels, Location

pa = pytest.importorskip("pyarrow")

HERE = Location("t.parquet", 0, 100)


def says(text: str) -> Any:
    return pytest.raises(InputError, match=re.escape(text))


def labels(block: Any) -> list[str]:
    assert isinstance(block.y, EncodedLabels)
    return [block.y.labels[code] for code in block.y.codes]


@pytest.mark.parametrize(
    "column",
    [
        pa.array([3, 0, 7], pa.int8()),
        pa.array([3, 0, 7], pa.uint64()),
        pa.array(np.array([3, 0, 7], dtype=np.float16)),
        pa.array([3, 0, 7], pa.float32()),
        pa.array([3.0, 0.0, 7.0]),
        pa.array([decimal.Decimal("3.0"), decimal.Decimal(0), decimal.Decimal(7)]),
        pa.array([3, 0, 7]).dictionary_encode(),
        pa.array([3.0, 0.0, 7.0]).dictionary_encode(),
    ],
    ids=lambda column: str(column.type).split(",")[0],
)
def test_numbers_of_every_kind(column: Any) -> None:
    batch = pa.record_batch({"y": pa.array([1.5, 2.5, 3.5]), "a": column})
    block = to_block(batch, resolve_roles(batch.schema, "y"), HERE)
    assert block.X.dtype == np.float64
    assert block.X.flags.f_contiguous
    assert block.X.ravel().tolist() == [3.0, 0.0, 7.0]
    assert block.y.tolist() == [1.5, 2.5, 3.5]
    assert block.weights is None


def test_true_and_false_are_one_and_zero() -> None:
    batch = pa.record_batch({"a": [True, False], "y": [True, False], "w": [1, 2]})
    block = to_block(batch, resolve_roles(batch.schema, "y", weights="w"), HERE)
    assert block.X.ravel().tolist() == [1.0, 0.0]
    assert block.y.tolist() == [True, False]
    assert block.weights is not None
    assert block.weights.tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["u", "v", "u", "w"]),
        pa.array(["u", "v", "u", "w"], pa.large_string()),
        pa.array(["u", "v", "u", "w"]).dictionary_encode(),
        # A label that does not occur, and one that is listed twice.
        pa.DictionaryArray.from_arrays(pa.array([4, 1, 0, 3]), ["u", "v", "no", "w", "u"]),
    ],
    ids=["string", "large", "dictionary", "odd dictionary"],
)
def test_labels(column: Any) -> None:
    batch = pa.record_batch({"a": [1, 2, 3, 4], "y": column})
    block = to_block(batch, resolve_roles(batch.schema, "y"), HERE)
    assert labels(block) == ["u", "v", "u", "w"]
    assert sorted(block.y.labels) == ["u", "v", "w"]


def test_labels_of_several_batches_share_their_codes() -> None:
    roles = Roles(("a",), ("y",), y_kind="text")
    batches = [
        pa.record_batch({"a": [1], "y": ["v"]}),
        pa.record_batch({"a": [2, 3], "y": ["u", "v"]}),
    ]
    block = to_block(batches, roles, HERE)
    assert labels(block) == ["v", "u", "v"]
    assert len(block.y.labels) == 2


def test_several_targets_are_columns() -> None:
    batch = pa.record_batch({"a": [1, 2], "y": [1, 0], "z": [0.5, 1.5]})
    roles = resolve_roles(batch.schema, ["y", "z"])
    assert (roles.features, roles.y_kind) == (("a",), "float")
    assert to_block(batch, roles, HERE).y.tolist() == [[1.0, 0.5], [0.0, 1.5]]


@pytest.mark.parametrize("size", [1, 3, 7, 20, 50])
def test_blocks_do_not_depend_on_batches(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("exactk.streaming.arrow.rows_per_block", lambda width: 6)
    X = np.arange(40.0).reshape(20, 2)
    batches = [
        pa.record_batch({"a": X[i : i + size, 0], "b": X[i : i + size, 1], "y": X[i : i + size, 0]})
        for i in range(0, 20, size)
    ]
    roles = Roles(("a", "b"), ("y",))
    found = list(blocks_of(batches, roles, HERE))
    assert [len(block.X) for block in found] == [6, 6, 6, 2]
    assert [block.location.first_row for block in found] == [100, 106, 112, 118]
    np.testing.assert_array_equal(np.vstack([block.X for block in found]), X)


def test_batches_without_rows_are_no_blocks() -> None:
    empty = pa.record_batch({"a": pa.array([], pa.float64()), "y": pa.array([], pa.float64())})
    assert list(blocks_of([empty, empty], Roles(("a",), ("y",)), HERE)) == []
    assert list(cut([empty], [])) == []


def test_blocks_are_of_a_size_whatever_the_width() -> None:
    assert 8 * 100 * rows_per_block(100) <= 2**24
    assert rows_per_block(100_000) >= 1_000


# --- what cannot be used ---------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a", "y", "w"])
def test_a_missing_value_is_named_with_its_row(name: str) -> None:
    columns = {"a": [1.0, 2.0, 3.0], "y": ["u", "v", "u"], "w": [1.0, 1.0, 1.0]}
    columns[name][2] = None  # type: ignore[call-overload]
    batch = pa.record_batch(columns)
    roles = resolve_roles(batch.schema, "y", weights="w")
    whole = pa.record_batch({"a": [1.0], "y": ["u"], "w": [1.0]})
    with says(f"column {name!r} is missing in t.parquet, row 103 (from 0)") as caught:
        to_block([whole, batch], roles, HERE)
    assert pickle.loads(pickle.dumps(caught.value)).row == 103


def test_a_null_may_hide_in_a_dictionary() -> None:
    hidden = pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(["u", None]))
    batch = pa.record_batch({"a": [1, 2], "y": hidden})
    with says("column 'y' is missing in t.parquet, row 101"):
        to_block(batch, resolve_roles(batch.schema, "y"), HERE)


def test_a_column_of_nulls() -> None:
    batch = pa.record_batch({"a": pa.nulls(2), "y": ["u", "v"]})
    with says("column 'a' is missing in t.parquet, row 100"):
        to_block(batch, resolve_roles(batch.schema, "y"), HERE)


SCHEMA = pa.schema(
    {
        "a": pa.float64(),
        "b": pa.int64(),
        "name": pa.string(),
        "day": pa.date32(),
        "y": pa.string(),
    }
)


@pytest.mark.parametrize(
    ("target", "options", "message"),
    [
        ("z", {}, "target column 'z' is not in the table; its columns are 'a', 'b'"),
        ("Y", {"drop": ["name", "day"]}, "did you mean 'y'?"),
        ("y", {}, "2 feature columns are not numeric (date32[day], string): 'name', 'day'; drop"),
        ("y", {"columns": ["a", "name"]}, "1 feature column is not numeric (string): 'name'"),
        ("y", {"columns": ["a", "a"]}, "columns names 'a' more than once"),
        ("y", {"columns": ["a", "c"]}, "feature column 'c' is not in the table"),
        ("y", {"columns": ["a", "y"]}, "column 'y' cannot be a feature"),
        ("y", {"columns": "a"}, "columns must be a list of column names, not 'a'"),
        ("y", {"columns": []}, "no feature columns"),
        ("y", {"columns": ["a"], "weights": "y"}, "cannot be both target and weights"),
        ("y", {"columns": ["a"], "weights": "name"}, "weights column 'name' is string; it must"),
        ("y", {"columns": ["a"], "drop": ["y"]}, "column 'y' cannot be dropped"),
        ("day", {"columns": ["a"]}, "target column 'day' is date32[day]; it must hold numbers or"),
        (["b", "y"], {"columns": ["a"]}, "target column 'y' is string; it must hold numbers"),
        ([], {"columns": ["a"]}, "target names no column"),
    ],
)
def test_roles_that_do_not_fit(target: Any, options: dict[str, Any], message: str) -> None:
    with says(message):
        resolve_roles(SCHEMA, target, **options)


def test_names_that_are_no_names() -> None:
    twice = pa.schema([("a", pa.float64()), ("a", pa.float64()), ("y", pa.string())])
    with says("more than one column named 'a'"):
        resolve_roles(twice, "y")
    with says("column 1 of the table has no name"):
        resolve_roles(pa.schema({"": pa.float64(), "y": pa.string()}), "y")


def test_batches_that_are_not_as_the_schema_said() -> None:
    batch = pa.record_batch({"a": ["1"], "y": ["u"]})
    with says("column 'a' of t.parquet is string; it must hold numbers"):
        to_block(batch, Roles(("a",), ("y",), y_kind="text"), HERE)
    batch = pa.record_batch({"a": [1], "y": [1.5]})
    with says("target column 'y' of t.parquet is double, and was taken for int"):
        to_block(batch, Roles(("a",), ("y",), y_kind="int"), HERE)
    with says("target column 'y' of t.parquet is double, and was taken for text"):
        to_block(batch, Roles(("a",), ("y",), y_kind="text"), HERE)


def test_kinds_of_targets() -> None:
    assert resolve_roles(SCHEMA, "b", columns=["a"]).y_kind == "int"
    assert resolve_roles(SCHEMA, "b", columns=["a"], task="regression").y_kind == "float"
    assert target_kind(pa.bool_()) == "bool"
    assert target_kind(pa.decimal128(5, 2)) == "float"
    assert target_kind(pa.list_(pa.int8())) is None
