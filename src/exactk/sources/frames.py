"""pandas and polars frames and Arrow tables, through narwhals; column names are kept."""

from __future__ import annotations

from collections import Counter
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import numpy.typing as npt

from exactk.errors import InputError, listing

__all__ = ["frame_to_array", "is_frame"]


def is_frame(X: Any) -> bool:
    """Whether X is a dataframe or table that narwhals knows (and not an array)."""
    if nw.dependencies.is_polars_lazyframe(X):
        raise InputError(
            "X is a polars LazyFrame; call .collect() on it first, or .sink_parquet and give the "
            "file to Problem.from_parquet"
        )
    return bool(nw.dependencies.is_into_dataframe(X)) or _is_record_batch(X)


def _is_record_batch(X: Any) -> bool:
    """Whether X is a pyarrow RecordBatch, which narwhals knows only as a table."""
    return type(X).__name__ == "RecordBatch" and type(X).__module__.startswith("pyarrow")


def frame_to_array(X: Any) -> tuple[npt.NDArray[Any], tuple[str, ...]]:
    """Return the values and column names of a frame.

    A pandas frame of one dtype is read in place. Columns kept apart (polars, Arrow, mixed
    dtypes) are laid side by side in the smallest dtype that holds them all.

    Raises
    ------
    InputError
        Duplicate names, columns that are not numbers, or missing values, each by name.
    """
    if _is_record_batch(X):
        import pyarrow as pa

        X = pa.Table.from_batches([X])
    columns = X.column_names if nw.dependencies.is_pyarrow_table(X) else X.columns
    if any(name is None or name != name for name in columns):
        raise InputError("a column of X has no name (None or NaN); give every column a name")
    raw_names = [str(name) for name in columns]
    repeated = [name for name, count in Counter(raw_names).items() if count > 1]
    if repeated:
        raise InputError(
            f"duplicate column names: {listing(repeated)}; rename them so that the answer can "
            f"name its columns"
        )
    frame = nw.from_native(X, eager_only=True)
    if not frame.columns:
        raise InputError("Found array with 0 feature(s): X has no columns")
    _refuse_other_kinds(frame)
    _refuse_nulls(frame)
    native = nw.to_native(frame)
    if frame.implementation.is_pandas() and len({str(t) for t in native.dtypes}) == 1:
        values = native.to_numpy()
        if values.dtype.kind in "fiub":
            return values, tuple(raw_names)
    parts = [_values(column) for column in frame.iter_columns()]
    dtype = np.result_type(*parts)
    values = np.empty((len(frame), len(parts)), dtype=dtype, order="F")
    for j, part in enumerate(parts):
        values[:, j] = part
    return values, tuple(raw_names)


def _values(column: nw.Series[Any]) -> npt.NDArray[Any]:
    values = np.asarray(column.to_numpy())
    if values.dtype.kind != "O":
        return values
    # Older pandas gives nullable columns as objects even where nothing is missing.
    kind = np.int64 if column.dtype.is_integer() else np.float64
    return values.astype(np.bool_ if column.dtype == nw.Boolean else kind)


def _refuse_other_kinds(frame: nw.DataFrame[Any]) -> None:
    schema = frame.schema
    other = [
        name
        for name, dtype in schema.items()
        if not (dtype.is_numeric() or dtype == nw.Boolean) or dtype == nw.Decimal
    ]
    if other:
        kinds = listing({str(schema[name]) for name in other})
        raise InputError(
            f"columns that are not numbers: {listing(other)} (dtype {kinds}); drop them, or code "
            f"them as numbers first (for example one-hot)"
        )


def _refuse_nulls(frame: nw.DataFrame[Any]) -> None:
    counts = frame.select(nw.all().null_count()).row(0)
    missing = {name: int(n) for name, n in zip(frame.columns, counts, strict=True) if n}
    if missing:
        shown = listing(f"{name}: {n}" for name, n in missing.items())
        raise InputError(
            f"Input X contains NaN or missing values ({shown}); fill them in (sklearn.impute), "
            f"drop those rows, or drop those columns"
        )
