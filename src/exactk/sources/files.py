"""A file on disk becomes an Arrow table, and the table becomes features, target and weights."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from exactk.errors import InputError, listing, nearest

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Split", "read_table", "split_table"]

DELIMITERS = {".csv": ",", ".csv.gz": ",", ".tsv": "\t", ".tsv.gz": "\t"}
PARQUET = (".parquet", ".pq")
SUFFIXES = (*DELIMITERS, *PARQUET)

# One row must fit into one block: this leaves room for a million columns.
CSV_BLOCK_BYTES = 1 << 24
# From about here on, handing out columns to threads costs more than the threads save.
SERIAL_COLUMNS = 2_000


@dataclass(frozen=True)
class Split:
    """The parts of a table that a problem is made of.

    Attributes
    ----------
    features : pyarrow.Table
        Numeric columns without missing or infinite values.
    target : ndarray of shape (n_rows,)
        Numbers, booleans or labels.
    weights : ndarray of float64, shape (n_rows,), or None
    """

    features: pa.Table
    target: npt.NDArray[Any]
    weights: npt.NDArray[np.float64] | None


def read_table(path: str | os.PathLike[str]) -> pa.Table:
    r"""Read a CSV, TSV (either may be gzipped) or Parquet file.

    Parameters
    ----------
    path : path-like
        The suffix decides the format: .csv, .tsv, .csv.gz, .tsv.gz, .parquet or .pq.
        Text must be UTF-8 with one header row; the types of the columns are inferred.

    Returns
    -------
    pyarrow.Table
        At least one row and one column, all names different.

    Raises
    ------
    InputError
        The file cannot be read as a table; the message says what stands in the way.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "small.csv")
    ...     _ = path.write_text("height,label\n1.5,a\n2.5,b\n")
    ...     read_table(path).column_names
    ['height', 'label']
    """
    file = Path(path)
    name = file.name.lower()
    suffix = next((known for known in SUFFIXES if name.endswith(known)), None)
    if file.is_dir():
        raise InputError(f"table {str(path)!r} is a folder; give one file ({_choices()})")
    if not file.exists():
        raise InputError(f"table {str(path)!r} does not exist")
    if suffix is None:
        shown = f"the suffix {file.suffix!r}" if file.suffix else "no suffix"
        raise InputError(f"table {str(path)!r} has {shown}; give {_choices()}")
    try:
        import pyarrow as pa
    except ImportError as error:
        raise InputError(
            'reading files needs pyarrow; install it with: pip install "exactk[cli]"'
        ) from error
    try:
        table = _read_csv(file, DELIMITERS[suffix]) if suffix in DELIMITERS else _read_parquet(file)
    except UnicodeDecodeError as error:
        raise InputError(f"table {str(path)!r} is not UTF-8 text; save it as UTF-8") from error
    except (pa.ArrowException, OSError) as error:
        kind = "Parquet" if suffix in PARQUET else "text"
        raise InputError(
            f"table {str(path)!r} cannot be read as {kind}: {_one_line(error)}"
        ) from error
    _check_shape(table, str(path))
    return table


def split_table(
    table: pa.Table, target: str, *, weights: str | None = None, drop: Sequence[str] = ()
) -> Split:
    """Split a table into features, target and weights, and check each of them.

    Parameters
    ----------
    table : pyarrow.Table
    target : str
        Name of the target column: numbers, booleans or labels.
    weights : str, optional
        Name of the column with row weights.
    drop : sequence of str
        Names of columns to leave out. An index that pandas stored with the table is left out
        by itself, unless it is the target or the weights.

    Returns
    -------
    Split

    Raises
    ------
    InputError
        A named column is not in the table, a feature is not numeric, or a value is missing or
        infinite.

    Examples
    --------
    >>> import pyarrow as pa
    >>> table = pa.table({"height": [1.5, 2.5], "name": ["x", "y"], "label": ["a", "b"]})
    >>> parts = split_table(table, "label", drop=["name"])
    >>> parts.features.column_names, parts.target.tolist()
    (['height'], ['a', 'b'])
    """
    _check_roles(table, target, weights, drop)
    out = {target, weights, *drop, *_pandas_index(table)}
    names = [name for name in table.column_names if name not in out]
    return Split(
        features=_feature_columns(table, names),
        target=_target_column(table, target),
        weights=None if weights is None else _weights_column(table, weights),
    )


def _choices() -> str:
    return ", ".join(SUFFIXES[:-1]) + f" or {SUFFIXES[-1]}"


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split()).rstrip(".")


def _read_csv(file: Path, delimiter: str) -> pa.Table:
    from pyarrow import csv

    ragged: list[Any] = []

    def note(row: Any) -> str:
        if not ragged:
            ragged.append(row)
        return "skip"

    def read(use_threads: bool) -> pa.Table:
        ragged.clear()
        table = csv.read_csv(
            str(file),
            csv.ReadOptions(use_threads=use_threads, block_size=CSV_BLOCK_BYTES),
            csv.ParseOptions(delimiter=delimiter, invalid_row_handler=note),
            # Otherwise the text "NA" would quietly become a class of its own.
            csv.ConvertOptions(strings_can_be_null=True),
        )
        _ = table.column_names  # decoded here, so that a wrong encoding shows at once
        return table

    table = read(use_threads=not _is_wide(file, delimiter))
    if ragged:
        if ragged[0].number is None:  # only a serial pass counts rows
            read(use_threads=False)
        row = ragged[0]
        raise InputError(
            f"table {str(file)!r}: row {row.number} (the header is row 1) has "
            f"{row.actual_columns} values where the header has {row.expected_columns}"
        )
    return table


def _is_wide(file: Path, delimiter: str) -> bool:
    import pyarrow as pa

    with pa.input_stream(str(file)) as stream:
        head = stream.read(CSV_BLOCK_BYTES)
    return bool(head.partition(b"\n")[0].count(delimiter.encode()) >= SERIAL_COLUMNS)


def _read_parquet(file: Path) -> pa.Table:
    from pyarrow import parquet

    with parquet.ParquetFile(str(file)) as source:
        return source.read()


def _check_shape(table: pa.Table, path: str) -> None:
    if table.num_columns == 0:
        raise InputError(f"table {path!r} has no columns")
    repeated = [name for name, count in Counter(table.column_names).items() if count > 1]
    if repeated:
        raise InputError(
            f"table {path!r} has more than one column named {listing(repeated)}; rename them"
        )
    if table.num_rows == 0:
        raise InputError(f"table {path!r} has no rows")


def _check_roles(table: pa.Table, target: str, weights: str | None, drop: Sequence[str]) -> None:
    roles = [("target", target), *(("dropped", name) for name in drop)]
    if weights is not None:
        roles.append(("weights", weights))
    known = table.column_names
    for role, name in roles:
        if name not in known:
            hint = nearest(name, known) or f"; its columns are {listing(known)}"
            raise InputError(f"{role} column {name!r} is not in the table{hint}")
    if target == weights:
        raise InputError(f"column {target!r} cannot be both target and weights")
    for kept in (target, weights):
        if kept in drop:
            raise InputError(f"column {kept!r} cannot be dropped: it is the target or the weights")


def _pandas_index(table: pa.Table) -> set[str]:
    stored = (table.schema.pandas_metadata or {}).get("index_columns", [])
    return {name for name in stored if isinstance(name, str)}


def _feature_columns(table: pa.Table, names: list[str]) -> pa.Table:
    import pyarrow as pa

    if not names:
        raise InputError("the table has no feature columns besides the target, weights and drops")
    if "" in names:
        raise InputError(
            f"column {table.column_names.index('') + 1} of the table has no name; "
            "name it, or leave it out with --drop ''"
        )
    columns = [_plain(table.column(name)) for name in names]
    wrong = [name for name, column in zip(names, columns, strict=True) if not _is_number(column)]
    if wrong:
        kinds = sorted({str(table.schema.field(name).type) for name in wrong})
        verb = "is" if len(wrong) == 1 else "are"
        raise InputError(
            f"{_count(len(wrong), 'feature column')} {verb} not numeric "
            f"({', '.join(kinds[:3])}): {listing(wrong)}; leave out with --drop, or recode"
        )
    flaws = [
        f"column {name!r} has {flaw}"
        for name, column in zip(names, columns, strict=True)
        if (flaw := _flaw(column))
    ]
    if flaws:
        more = f" and {_count(len(flaws) - 3, 'more column')} likewise" if len(flaws) > 3 else ""
        raise InputError(
            f"{', '.join(flaws[:3])}{more}; fill or remove these, or leave the column out "
            "with --drop"
        )
    return pa.table(columns, names=names)


def _target_column(table: pa.Table, name: str) -> npt.NDArray[Any]:
    import pyarrow as pa

    column = _plain(table.column(name))
    kind = column.type
    if flaw := _flaw(column):
        raise InputError(f"target column {name!r} has {flaw}; remove these rows")
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        labels: npt.NDArray[Any] = column.to_numpy()
        if any("\n" in label for label in np.unique(labels.astype(str))):
            raise InputError(
                f"target column {name!r} has a label with a line break; is a quote left open?"
            )
        return labels
    if not _is_number(column):
        raise InputError(f"target column {name!r} is {kind}; it must hold numbers or UTF-8 labels")
    return np.asarray(column.to_numpy())


def _weights_column(table: pa.Table, name: str) -> npt.NDArray[np.float64]:
    column = _plain(table.column(name))
    if flaw := _flaw(column):
        raise InputError(f"weights column {name!r} has {flaw}; fill or remove these rows")
    if not _is_number(column):
        raise InputError(f"weights column {name!r} is {column.type}; it must hold numbers")
    return np.asarray(column.to_numpy(), dtype=np.float64)


def _plain(column: Any) -> Any:
    """Undo encodings that say how values are stored, not what they are."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_decimal(column.type) or pa.types.is_float16(column.type):
        column = column.cast(pa.float64())
    return column


def _is_number(column: Any) -> bool:
    import pyarrow as pa

    # A column of nulls only has no type; that it is empty is the better complaint.
    tests = (pa.types.is_boolean, pa.types.is_integer, pa.types.is_floating, pa.types.is_null)
    return any(test(column.type) for test in tests)


def _flaw(column: Any) -> str:
    """Say how many values are missing or infinite; empty when none is."""
    import pyarrow as pa
    import pyarrow.compute as pc

    missing, infinite = column.null_count, 0
    if pa.types.is_floating(column.type) and not pc.all(pc.is_finite(column)).as_py():
        missing += pc.sum(pc.is_nan(column)).as_py() or 0
        infinite = pc.sum(pc.is_inf(column)).as_py() or 0
    parts = [
        _count(number, f"{word} value")
        for word, number in (("missing", missing), ("infinite", infinite))
        if number
    ]
    return " and ".join(parts)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
