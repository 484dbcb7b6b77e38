"""Frames and tables keep their names and give the answers of the array they hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from exactk import Problem, TopKSelector
from exactk.data.frames import frame_to_array, is_frame
from exactk.data.open_table import open_rows
from tests.support import says

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

Array = np.ndarray[Any, Any]
MAKERS: dict[str, Any] = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.table}
every_maker = pytest.mark.parametrize("maker", MAKERS)
Y = np.array([0, 1, 1, 0, 1, 0])


def columns() -> dict[str, Array]:
    rng = np.random.default_rng(0)
    return {
        "size": rng.normal(size=6),
        "count": rng.integers(0, 9, 6),
        "seen": np.array([True, False, True, True, False, False]),
        "share": rng.random(6).astype(np.float32),
    }


def stacked(parts: dict[str, Array]) -> Array:
    return np.column_stack([part.astype(float) for part in parts.values()])


@every_maker
def test_mixed_dtypes_and_names(maker: str) -> None:
    parts = columns()
    frame = MAKERS[maker](parts)
    assert is_frame(frame)
    values, names = frame_to_array(frame)
    assert names == ("size", "count", "seen", "share")
    assert (values == stacked(parts)).all()
    problem = Problem.from_arrays(frame, Y)
    assert problem.feature_names == names
    assert problem.objective([0, 3]) == pytest.approx(
        Problem.from_arrays(stacked(parts), Y).objective([0, 3]), rel=1e-12
    )


@every_maker
@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "i1", "u4", "?"])
def test_one_dtype_is_kept(maker: str, dtype: str) -> None:
    block = np.random.default_rng(1).integers(0, 2, (6, 3)).astype(dtype)
    values, names = frame_to_array(MAKERS[maker](dict(zip("abc", block.T.copy(), strict=True))))
    assert values.dtype == np.dtype(dtype)
    assert (values == block).all()
    assert names == ("a", "b", "c")


def test_pandas_of_one_dtype_is_read_in_place() -> None:
    block = np.random.default_rng(2).normal(size=(6, 3))
    values, _ = frame_to_array(pd.DataFrame(block, columns=list("abc"), copy=False))
    assert np.shares_memory(values, block)


@pytest.mark.parametrize("backend", ["numpy_nullable", "pyarrow"])
def test_pandas_nullable_dtypes(backend: str) -> None:
    parts = columns()
    frame = pd.DataFrame(parts).convert_dtypes(dtype_backend=backend)
    values, names = frame_to_array(frame)
    assert values.dtype.kind == "f"
    assert (values == stacked(parts)).all()
    assert names == tuple(parts)
    integers = pd.DataFrame({"a": [1, 2], "b": [3, 4]}).astype("Int64")
    assert frame_to_array(integers)[0].tolist() == [[1, 3], [2, 4]]
    booleans = pd.DataFrame({"a": [True, False]}).astype("boolean")
    assert frame_to_array(booleans)[0].astype(int).tolist() == [[1], [0]]


def test_chunked_tables_are_joined() -> None:
    table = pa.table({"a": [1, 2], "b": [0.5, 1.5]})
    values, _ = frame_to_array(pa.concat_tables([table, table]))
    assert values.tolist() == [[1, 0.5], [2, 1.5]] * 2


@every_maker
def test_columns_that_are_not_numbers_are_named(maker: str) -> None:
    days = np.array(["2020-01-01", "2020-01-02"] * 3, dtype="datetime64[ms]")
    frame = MAKERS[maker]({"ok": Y, "day": days})
    with says("columns that are not numbers or text: 'day'", "drop", "one-hot"):
        open_rows(frame)


@every_maker
def test_where_numbers_are_requested_text_is_refused(maker: str) -> None:
    frame = MAKERS[maker]({"ok": Y, "city": ["a", "b", "a", "b", "a", "b"]})
    with says("columns that are not numbers: 'city'", "drop", "one-hot"):
        frame_to_array(frame)


@pytest.mark.parametrize(
    "values",
    [
        pd.Series([1, 2, 3, 4, 5, 6], dtype=object),
        pd.date_range("2020-01-01", periods=6),
        pd.timedelta_range("1D", periods=6),
    ],
    ids=["object", "date", "duration"],
)
def test_pandas_columns_of_other_kinds(values: Any) -> None:
    frame = pd.DataFrame({"ok": Y, "other": values})
    with says("not numbers", "'other'"):
        open_rows(frame)


@pytest.mark.parametrize(
    ("frame", "dtype"),
    [
        (pd.DataFrame({"day": pd.date_range("2020-01-01", periods=6)}), "datetime64["),
        (pd.DataFrame({"day": pd.Series([1j, 2j])}), "complex128"),
        (pl.DataFrame({"day": [[1], [2]]}), "List(Int64)"),
        (pa.table({"day": [[1], [2]]}), "list<"),
    ],
    ids=["pandas date", "pandas complex", "polars", "arrow"],
)
def test_types_have_the_names_of_their_library(frame: Any, dtype: str) -> None:
    with says("'day'", dtype) as error:
        open_rows(frame)
    assert error.value.parameter == "X"


def test_decimals_and_nested_values_are_refused() -> None:
    decimals = pl.DataFrame({"price": [1, 2]}).cast(pl.Decimal(10, 2))
    with says("not numbers", "'price'"):
        open_rows(decimals)
    with says("not numbers", "'list'"):
        open_rows(pl.DataFrame({"list": [[1], [2]]}))


def test_many_bad_columns_are_cut_short() -> None:
    frame = pl.DataFrame({f"c{j}": [[1], [2]] for j in range(8)})
    with says("'c0'", "'c4' and 3 more"):
        open_rows(frame)


@every_maker
def test_missing_values_are_named_and_counted(maker: str) -> None:
    frame = MAKERS[maker]({"a": [1, 2, 3, 4], "b": [1.5, None, None, 2.0], "c": [None, 1, 2, 3]})
    with says("missing values (2 in 'b', 1 in 'c')", "sklearn.impute"):
        open_rows(frame)


def test_nullable_pandas_missing_values() -> None:
    frame = pd.DataFrame(
        {
            "n": pd.array([1, None, 3], dtype="Int64"),
            "b": pd.array([True, None, None], dtype="boolean"),
        }
    )
    with says("missing values", "1 in 'n'", "2 in 'b'"):
        open_rows(frame)


@every_maker
def test_nan_and_infinity_are_named(maker: str) -> None:
    bad = np.array([1.0, np.inf, 3.0, 4.0, 5.0, -np.inf])
    with says("'b' (2 of 6 rows)"):
        Problem.from_arrays(MAKERS[maker]({"a": Y, "b": bad}), Y)
    nan = np.array([1.0, np.nan, 3.0, 4.0, 5.0, 6.0])
    with says("NaN", "b"):
        Problem.from_arrays(MAKERS[maker]({"a": Y, "b": nan}), Y)


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame([[1, 2.5, 3], [3, 4.5, 5]], columns=["a", "b", "a"]),
        pd.DataFrame([[1, 2.5], [3, 4.5]], columns=[1, "1"]),
        pa.table([pa.array([1, 2]), pa.array([3, 4])], names=["a", "a"]),
    ],
    ids=["pandas", "same text", "arrow"],
)
def test_duplicate_names(frame: Any) -> None:
    with says("duplicate column names", "rename"):
        Problem.from_arrays(frame, [0, 1])


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ([0, 1], ("0", "1")),
        (["column_names", "b"], ("column_names", "b")),
        (["columns", "schema"], ("columns", "schema")),
        ([("a", 1), ("b", 2)], ("('a', 1)", "('b', 2)")),
    ],
    ids=["numbers", "column_names", "attributes", "two levels"],
)
@pytest.mark.parametrize("mixed", [False, True])
def test_unusual_pandas_names(names: list[Any], expected: tuple[str, str], mixed: bool) -> None:
    frame = pd.DataFrame([[1, 2], [3, 4]], columns=pd.Index(names))
    if mixed:
        frame = frame.astype({frame.columns[0]: float})
    values, found = frame_to_array(frame)
    assert found == expected
    assert values.tolist() == [[1, 2], [3, 4]]


def test_large_integers_of_both_signs() -> None:
    frame = pd.DataFrame({"a": np.array([2**63, 1], dtype=np.uint64), "b": [-1, 2]})
    values, _ = frame_to_array(frame)
    assert values.tolist() == [[2.0**63, -1], [1, 2]]


def test_frames_without_rows_or_columns() -> None:
    with says("no samples"):
        open_rows(pd.DataFrame({"a": [], "b": []}, dtype=float))
    with says("no columns"):
        open_rows(pd.DataFrame(index=range(3)))


def test_lazy_frames_must_be_collected() -> None:
    with says("collect"):
        open_rows(pl.DataFrame({"a": [1, 2], "b": [3, 4]}).lazy())


def test_arrays_and_lists_are_no_frames() -> None:
    assert not is_frame(np.ones((2, 2)))
    assert not is_frame([[1, 2], [3, 4]])
    assert not is_frame(np.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f8")]))


def test_the_frame_is_not_changed() -> None:
    frame = pd.DataFrame(columns())
    before = frame.copy(deep=True)
    Problem.from_arrays(frame, Y, sample_weight=np.arange(6)).objective([0, 1])
    pd.testing.assert_frame_equal(frame, before)


def test_names_of_several_kinds_are_refused_by_name() -> None:
    block = np.random.default_rng(0).normal(size=(6, 3))
    frame = pd.DataFrame(block, columns=["a", 3, (1, 2)])
    wanted = ("column names", "'3', '(1, 2)'", "int, tuple", "X.columns.astype(str)")
    with says(*wanted):
        Problem.from_arrays(frame, Y)
    with says(*wanted):
        TopKSelector(k=1).fit(frame, Y)
    assert Problem.from_arrays(pd.DataFrame(block), Y).feature_names == ("0", "1", "2")
    assert TopKSelector(k=1).fit(pd.DataFrame(block), Y).n_features_in_ == 3
