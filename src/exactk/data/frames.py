"""pandas and polars frames and Arrow tables, through narwhals; column names are kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import numpy.typing as npt

from exactk.data.arrow import decode_numbers
from exactk.data.categories import (
    Category,
    Levels,
    check_coded_size,
    name_coded_columns,
    read_levels,
)
from exactk.data.targets import encode_weights
from exactk.errors import InputError, join_items

__all__ = [
    "encode_like",
    "frame_to_array",
    "is_frame",
    "open_frame",
    "take_columns",
]

_NUMBERS, _NUMBERS_AND_TEXT = "numbers", "numbers or text"
_TEXT_KINDS = (nw.String, nw.Categorical, nw.Enum)


def is_frame(X: Any) -> bool:
    """Whether X is a dataframe or table that narwhals knows (and not an array)."""
    if nw.dependencies.is_polars_lazyframe(X):
        raise InputError(
            "X is a polars LazyFrame",
            parameter="X",
            hint=(
                "call .collect() on it first, or .sink_parquet and give the "
                "file to Problem.from_files"
            ),
        )
    return bool(nw.dependencies.is_into_dataframe(X))


def frame_to_array(X: Any) -> tuple[npt.NDArray[Any], tuple[str, ...]]:
    """Return the values and column names of a frame of numbers.

    A pandas frame of one dtype is read in place. Columns kept apart (polars, Arrow, mixed
    dtypes) are laid side by side in the smallest dtype that holds them all.

    Raises
    ------
    InputError
        Duplicate names, columns that are not numbers, or missing values, each by name.
    """
    frame, names = _named_frame(X)
    _refuse_other_kinds(frame, _NUMBERS)
    _refuse_nulls(frame)
    return _numbers(frame), names


def open_frame(
    X: Any, given: tuple[str, ...] | None = None, sample_weight: Any = None
) -> tuple[npt.NDArray[Any], tuple[str, ...], tuple[Category, ...]]:
    """Return the values and column names of a frame of numbers, text and categories.

    Text and categories stand as columns of 0 and 1 in their place, one for each level but the
    most frequent one.

    Parameters
    ----------
    X : pandas or polars frame, Arrow table or record batch
    given : tuple of str or None
        Names in place of those of the frame.
    sample_weight : array-like of shape (n,) or None
        What each row counts where levels are counted.

    Raises
    ------
    InputError
        As for `frame_to_array`; text that is numbers, or an identifier.

    Examples
    --------
    >>> import polars as pl
    >>> frame = pl.DataFrame({"colour": ["red", "blue", "red"], "size": [1.0, 2.0, 3.0]})
    >>> values, names, categories = open_frame(frame)
    >>> names, values.tolist(), categories[0].reference
    (('colour=blue', 'size'), [[0.0, 1.0], [1.0, 2.0], [0.0, 3.0]], 'red')
    """
    frame, names = _named_frame(X)
    _refuse_other_kinds(frame, _NUMBERS_AND_TEXT)
    _refuse_nulls(frame)
    if given is not None:
        if len(given) != len(names):
            raise InputError(
                f"feature_names has {len(given)} names, X has {len(names)} columns",
                parameter="feature_names",
            )
        names = given
    if all(_is_number(dtype) for dtype in frame.schema.values()):
        return _numbers(frame), names, ()
    return _coded(frame, names, encode_weights(sample_weight, len(frame)))


def take_columns(X: Any, indices: Iterable[int], container: str = "default") -> Any:
    """Return some columns of a frame as they are, in a frame of the same or another kind.

    Parameters
    ----------
    X : pandas or polars frame, Arrow table or record batch
    indices : iterable of int
    container : {"default", "pandas", "polars"}
        What to return; "default" is what X is.

    Examples
    --------
    >>> import polars as pl
    >>> take_columns(pl.DataFrame({"a": [1], "b": ["x"], "c": [2]}), [1, 2]).columns
    ['b', 'c']
    """
    taken = nw.from_native(X, eager_only=True)[:, list(map(int, indices))]
    if container == "default":
        return nw.to_native(taken)
    return taken.to_pandas() if container == "pandas" else taken.to_polars()


def encode_like(X: Any, categories: Mapping[int, Category]) -> npt.NDArray[np.float64]:
    """Return the columns of a frame coded as those of another one were.

    Parameters
    ----------
    X : pandas or polars frame, Arrow table or record batch
    categories : mapping of int to Category
        How columns of text or categories were coded, by their place in X; all others are numbers.

    Raises
    ------
    InputError
        A level that the other frame did not have, by name.

    Examples
    --------
    >>> import polars as pl
    >>> colour = Category("colour", 0, 0, levels=("blue", "red"), reference="red")
    >>> encode_like(pl.DataFrame({"colour": ["red", "blue"], "size": [1, 2]}), {0: colour})
    array([[0., 1.],
           [1., 2.]])
    """
    frame, names = _named_frame(X)
    _refuse_nulls(frame)
    parts: list[npt.NDArray[Any]] = []
    for j, (column, name) in enumerate(zip(_columns(frame), names, strict=True)):
        if j in categories:
            parts.append(_levels_again(column.to_list(), categories[j]))
        elif _is_number(column.dtype):
            parts.append(_values(column)[:, None])
        else:
            raise InputError(
                f"column {name!r} holds {_dtype(column)}, where it held numbers before",
                parameter="X",
            )
    return np.hstack(parts).astype(np.float64)


def _levels_again(values: Sequence[Any], category: Category) -> npt.NDArray[np.float64]:
    place = {label: code for code, label in enumerate(category.levels)}
    # Levels that look the same are told apart as Python writes them.
    found = [place.get(str(value), place.get(repr(value), -1)) for value in values]
    codes = np.array(found, dtype=np.intp)
    unknown = np.flatnonzero(codes < 0)
    if unknown.size:
        raise InputError(
            f"column {category.name!r} holds {values[unknown[0]]!r} in row {unknown[0]}, which no "
            f"row had that the model was fitted on ({join_items(category.levels)})", parameter="X",
            hint="replace it, or fit again with such rows",
        )  # fmt: skip
    coded = Levels(category.levels, codes, category.levels.index(category.reference))
    out = np.empty((len(values), len(coded.coded_labels)))
    coded.write(out)
    return out


def _coded(
    frame: nw.DataFrame[Any], names: tuple[str, ...], weights: npt.NDArray[np.float64] | None
) -> tuple[npt.NDArray[Any], tuple[str, ...], tuple[Category, ...]]:
    n_rows = len(frame)
    if n_rows == 0:
        raise InputError("X has no rows", parameter="X")
    parts = [
        _read(column, name, weights) for column, name in zip(_columns(frame), names, strict=True)
    ]
    levels = {
        name: part for name, part in zip(names, parts, strict=True) if isinstance(part, Levels)
    }
    numbers = [part for part in parts if not isinstance(part, Levels)]
    # Booleans take no more room than what stands beside them.
    dtype = np.result_type(np.bool_, *numbers)
    check_coded_size(levels, n_rows, dtype.itemsize)
    width = len(numbers) + sum(len(found.coded_labels) for found in levels.values())
    values = np.empty((n_rows, width), dtype=dtype, order="F")
    taken, coded_names, categories = set(names), list[str](), list[Category]()
    for j, (name, part) in enumerate(zip(names, parts, strict=True)):
        first = len(coded_names)
        if not isinstance(part, Levels):
            values[:, first] = part
            coded_names.append(name)
            continue
        coded_names += name_coded_columns(name, part.coded_labels, taken)
        part.write(values[:, first : len(coded_names)])
        categories.append(Category(name, j, first, part.labels, part.labels[part.reference]))
    return values, tuple(coded_names), tuple(categories)


def _read(
    column: nw.Series[Any], name: str, weights: npt.NDArray[np.float64] | None
) -> npt.NDArray[Any] | Levels:
    if _is_number(column.dtype):
        return _values(column)
    declared = column.dtype != nw.String
    return read_levels(column.to_list(), name, declared=declared, weights=weights)


def _named_frame(X: Any) -> tuple[nw.DataFrame[Any], tuple[str, ...]]:
    """A frame as narwhals sees it, and its names, all there and all different."""
    columns = X.column_names if nw.dependencies.is_pyarrow_table(X) else X.columns
    if any(name is None or name != name for name in columns):
        raise InputError(
            "a column of X has no name (None or NaN)", parameter="X",
            hint="give every column a name",
        )  # fmt: skip
    raw_names = [str(name) for name in columns]
    repeated = [name for name, count in Counter(raw_names).items() if count > 1]
    if repeated:
        raise InputError(
            f"duplicate column names: {join_items(repeated)}", parameter="X",
            hint="rename them so that the answer can name its columns",
        )  # fmt: skip
    _refuse_mixed_names(columns)
    if nw.dependencies.is_pyarrow_table(X):
        X = decode_numbers(X)
    frame = nw.from_native(X, eager_only=True)
    if not frame.columns:
        raise InputError("X has no columns", parameter="X")
    return frame, tuple(raw_names)


def _refuse_mixed_names(columns: Sequence[Any]) -> None:
    """Raise for text beside other names, which scikit-learn does not keep."""
    others = [name for name in columns if type(name) is not str]
    if others and any(type(name) is str for name in columns):
        kinds = ", ".join(sorted({type(name).__name__ for name in others}))
        raise InputError(
            f"some column names of X are text and others are not: {join_items(others)} ({kinds})",
            parameter="X",
            hint="make them all text, for example with X.columns = X.columns.astype(str)",
        )


def _numbers(frame: nw.DataFrame[Any]) -> npt.NDArray[Any]:
    native = nw.to_native(frame)
    if frame.implementation.is_pandas() and len({str(t) for t in native.dtypes}) == 1:
        values: npt.NDArray[Any] = native.to_numpy()
        if values.dtype.kind in "fiub":
            return values
    parts = [_values(column) for column in _columns(frame)]
    dtype = np.result_type(*parts)
    values = np.empty((len(frame), len(parts)), dtype=dtype, order="F")
    for j, part in enumerate(parts):
        values[:, j] = part
    return values


def _columns(frame: nw.DataFrame[Any]) -> Iterator[nw.Series[Any]]:
    return (frame.get_column(name) for name in frame.columns)


def _values(column: nw.Series[Any]) -> npt.NDArray[Any]:
    values = np.asarray(column.to_numpy())
    if values.dtype.kind != "O":
        return values
    # Older pandas gives nullable columns as objects even where nothing is missing.
    kind = np.int64 if column.dtype.is_integer() else np.float64
    return values.astype(np.bool_ if column.dtype == nw.Boolean else kind)


def _is_number(dtype: nw.dtypes.DType) -> bool:
    return (dtype.is_numeric() or dtype == nw.Boolean) and dtype != nw.Decimal


def _dtype(column: nw.Series[Any]) -> str:
    """Return the type of a column as its own library has it."""
    native = column.to_native()
    return str(native.type if hasattr(native, "type") else native.dtype)


def _refuse_other_kinds(frame: nw.DataFrame[Any], allowed: str) -> None:
    schema = frame.schema
    other = [
        name
        for name, dtype in schema.items()
        if not (_is_number(dtype) or (allowed == _NUMBERS_AND_TEXT and dtype in _TEXT_KINDS))
    ]
    if other:
        kinds = join_items(dict.fromkeys(_dtype(frame.get_column(name)) for name in other))
        raise InputError(
            f"columns that are not {allowed}: {join_items(other)} (dtype {kinds})", parameter="X",
            hint="drop them, or code them as numbers first (for example one-hot)",
        )  # fmt: skip


def _refuse_nulls(frame: nw.DataFrame[Any]) -> None:
    counts = frame.select(nw.all().null_count()).row(0)
    missing = {name: int(n) for name, n in zip(frame.columns, counts, strict=True) if n}
    if missing:
        shown = join_items((f"{n} in {name!r}" for name, n in missing.items()), quoted=False)
        raise InputError(
            f"Input X contains NaN or missing values ({shown})", parameter="X",
            hint="fill them in (sklearn.impute), drop those rows, or drop those columns",
        )  # fmt: skip
