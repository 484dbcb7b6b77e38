"""A file on disk becomes an Arrow table, and the table becomes features, target and weights."""

from __future__ import annotations

import gzip
import os
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import numpy.typing as npt

from exactk.data.arrow import (
    check_roles,
    choose_features,
    decode_column,
    is_number,
    is_text,
    plain_type,
)
from exactk.data.h5ad import is_h5ad
from exactk.errors import InputError, MissingExtraError, Row, Setting, join_items

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "DELIMITERS",
    "KINDS",
    "TableParts",
    "is_wide_text",
    "list_suffixes",
    "read_error",
    "read_table",
    "refuse_other_encoding",
    "refuse_pipe",
    "refuse_ragged",
    "refuse_semicolons",
    "require_pyarrow",
    "split_table",
    "suffix_of",
]

DELIMITERS = {".csv": ",", ".csv.gz": ",", ".tsv": "\t", ".tsv.gz": "\t"}
KINDS = {
    **dict.fromkeys(DELIMITERS, "text"),
    **dict.fromkeys((".parquet", ".pq"), "Parquet"),
    **dict.fromkeys((".arrow", ".feather", ".ipc"), "Arrow"),
}

# One row must fit into one block: this leaves room for a million columns.
CSV_BLOCK_BYTES = 1 << 24
# Enough of a header to see what parts its names.
HEADER_BYTES = 1 << 16
# From about here on, handing out columns to threads costs more than the threads save.
SERIAL_COLUMNS = 2_000
# Characters of a row that a message shows.
SHOWN = 60


@dataclass(frozen=True)
class TableParts:
    """The parts of a table that a problem is made of.

    Attributes
    ----------
    features : pyarrow.Table
        Columns without missing or infinite values, numeric unless text was asked for.
    target : ndarray of shape (n_rows,)
        Numbers, booleans or labels.
    weights : ndarray of float64, shape (n_rows,), or None
    groups : ndarray of shape (n_rows,), or None
        Text or whole numbers.
    """

    features: pa.Table
    target: npt.NDArray[Any]
    weights: npt.NDArray[np.float64] | None
    groups: npt.NDArray[Any] | None = None


def read_table(path: str | os.PathLike[str]) -> pa.Table:
    r"""Read a CSV, TSV (either may be gzipped), Parquet, Arrow or Feather file.

    Parameters
    ----------
    path : path-like
        The suffix decides the format: .csv, .tsv, .csv.gz, .tsv.gz, .parquet, .pq, .arrow,
        .feather or .ipc.
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
    if file.is_dir():
        raise InputError(
            f"table {str(path)!r} is a folder", parameter="path",
            hint=f"give one file ({list_suffixes()})",
        )  # fmt: skip
    if not file.exists():
        raise InputError(f"table {str(path)!r} does not exist", parameter="path")
    refuse_pipe(file)
    suffix = suffix_of(file)
    require_pyarrow()
    refuse_semicolons(file)
    with read_error(file):
        table = _READERS[KINDS[suffix]](file)
    _check_shape(table, str(path))
    return table


def refuse_pipe(path: str | os.PathLike[str]) -> None:
    """Raise for what is no file on a disk: opening a pipe waits for its writer, for ever perhaps.

    Examples
    --------
    >>> refuse_pipe(os.devnull)
    Traceback (most recent call last):
    ...
    exactk.errors.InputError: table '/dev/null' is a pipe or a device; save it as a file first
    """
    if not os.path.isfile(path):
        raise InputError(
            f"table {os.fspath(path)!r} is a pipe or a device", parameter="path",
            hint="save it as a file first",
        )  # fmt: skip


def refuse_semicolons(path: str | os.PathLike[str]) -> None:
    """Raise for text whose header is parted by semicolons, as many programs write CSV.

    Of such a table with commas in its numbers half would be read as text.
    """
    if DELIMITERS.get(suffix_of(path)) != ",":
        return
    try:
        with _open(path) as file:
            header = file.readline(HEADER_BYTES)
    except (OSError, EOFError):
        return  # what reads the table says what is wrong with it
    if b";" in header and b"," not in header:
        name = os.fspath(path)
        raise InputError(
            f"table {name!r} is separated by ';' and not by ','",
            parameter="path",
            hint=(
                "save it with commas, for example "
                f"pd.read_csv({name!r}, sep=';', decimal=',').to_csv('commas.csv', index=False)"
            ),
        )


def suffix_of(path: str | os.PathLike[str]) -> str:
    """Return the suffix that says what kind of table a file is, or raise for others.

    Examples
    --------
    >>> suffix_of("data/Day 1.CSV.gz")
    '.csv.gz'
    """
    file = Path(path)
    name = file.name.lower()
    suffix = next((known for known in KINDS if name.endswith(known)), None)
    if is_h5ad(name):
        raise InputError(
            f"table {str(path)!r} is an AnnData, which commands take one at a time",
            parameter="path",
            hint=(
                "in Python: "
                "Problem.from_anndata(anndata.read_h5ad(path), target), or of several "
                "anndata.concat"
            ),
        )
    if suffix is None:
        shown = f"the suffix {file.suffix!r}" if file.suffix else "no suffix"
        raise InputError(
            f"table {str(path)!r} has {shown}", parameter="path", hint=f"give {list_suffixes()}"
        )
    return suffix


def require_pyarrow() -> None:
    """Raise, with the way out, where files cannot be read for want of pyarrow."""
    try:
        import pyarrow as pa  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(
            'reading files needs pyarrow; install it with: pip install "exactk[cli]"'
        ) from error


@contextmanager
def read_error(file: str | os.PathLike[str]) -> Iterator[None]:
    """Turn what Arrow and the system say of a file into an error that names it."""
    import pyarrow as pa

    try:
        yield
    except UnicodeDecodeError as error:
        if KINDS[suffix_of(file)] == "text":
            refuse_other_encoding(file)
        raise InputError(
            f"table {str(file)!r} is not UTF-8 text", parameter="path", hint="save it as UTF-8"
        ) from error
    except UnicodeEncodeError as error:
        raise InputError(
            f"the name of table {str(file)!r} is not UTF-8", parameter="path",
            hint="rename the file",
        ) from error  # fmt: skip
    except (pa.ArrowException, OSError) as error:
        words = " ".join(str(error).split()).rstrip(".")
        flaw = _look(file) or f"cannot be read as {KINDS[suffix_of(file)]}: {words}"
        raise InputError(f"table {str(file)!r} {flaw}", parameter="path") from error


def split_table(
    table: pa.Table,
    target: str,
    *,
    columns: Sequence[str] | None = None,
    weights: str | None = None,
    groups: str | None = None,
    drop: Sequence[str] = (),
    text: bool = False,
) -> TableParts:
    """Split a table into features, target and weights, and check each of them.

    Parameters
    ----------
    table : pyarrow.Table
    target : str
        Name of the target column: numbers, booleans or labels.
    columns : sequence of str, optional
        Names of the features; every column that has no other part by default.
    weights : str, optional
        Name of the column with row weights.
    groups : str, optional
        Name of the column with the group of each row; it is not a feature.
    drop : sequence of str
        Names of columns to leave out. An index that pandas stored with the table is left out
        by itself, unless it is the target or the weights.
    text : bool
        Whether features may hold text, too.

    Returns
    -------
    TableParts

    Raises
    ------
    InputError
        A named column is not in the table, a feature holds what it may not, or a value is missing
        or infinite.

    Examples
    --------
    >>> import pyarrow as pa
    >>> table = pa.table({"height": [1.5, 2.5], "name": ["x", "y"], "label": ["a", "b"]})
    >>> parts = split_table(table, "label", drop=["name"])
    >>> parts.features.column_names, parts.target.tolist()
    (['height'], ['a', 'b'])
    """
    check_roles(table.column_names, [target], weights, drop, groups)
    names = choose_features(table.schema, columns, {target, weights, groups, *drop})
    return TableParts(
        features=_feature_columns(table, names, text),
        target=_target_column(table, target),
        weights=None if weights is None else _weights_column(table, weights),
        groups=None if groups is None else _groups_column(table, groups),
    )


def list_suffixes() -> str:
    """Return the suffixes of the files that can be read, for a message."""
    *most, last = KINDS
    return ", ".join(most) + f" or {last}"


def _read_csv(file: Path, delimiter: str) -> pa.Table:
    from pyarrow import csv

    ragged: list[Any] = []

    def note(row: Any) -> str:
        if not ragged:
            ragged.append(row)
        return "skip"

    use_threads = not is_wide_text(file, delimiter)
    table = csv.read_csv(
        str(file),
        csv.ReadOptions(use_threads=use_threads, block_size=CSV_BLOCK_BYTES),
        csv.ParseOptions(delimiter=delimiter, invalid_row_handler=note),
        # Otherwise the text "NA" would quietly become a class of its own.
        csv.ConvertOptions(strings_can_be_null=True),
    )
    _ = table.column_names  # decoded here, so that a wrong encoding shows at once
    if ragged:
        refuse_ragged(file, ragged[0])
    return table


def refuse_ragged(file: str | os.PathLike[str], row: Any) -> NoReturn:
    """Raise for a row with more or fewer values than the header."""
    text = row.text if len(row.text) <= SHOWN else row.text[:SHOWN] + "..."
    raise InputError(
        f"table {str(file)!r}: row {text!r}{_line_of(file, row.text)} has {row.actual_columns} "
        f"values where the header has {row.expected_columns}", parameter="path",
    )  # fmt: skip


def _line_of(file: str | os.PathLike[str], text: str) -> str:
    """Return the line of a file on which a row begins, for a message; empty if it is not found."""
    first = text.partition("\n")[0].strip().encode()
    try:
        with _open(file) as lines:
            return next(
                (f" in line {n}" for n, line in enumerate(lines, 1) if line.strip() == first), ""
            )
    except (OSError, EOFError, zlib.error):
        return ""


def _open(file: str | os.PathLike[str]) -> Any:
    """Open a file as bytes, decompressed as its name says."""
    return (gzip.open if suffix_of(file).endswith(".gz") else open)(file, "rb")


def refuse_other_encoding(file: str | os.PathLike[str]) -> None:
    """Raise for text that is not UTF-8, with its first line that is not."""
    with _open(file) as lines:
        for number, line in enumerate(lines, 1):
            try:
                line.decode()
            except UnicodeDecodeError as error:
                raise InputError(
                    f"table {str(file)!r} is not UTF-8 text in line {number}", parameter="path",
                    hint="save it as UTF-8",
                ) from error  # fmt: skip


def _look(file: str | os.PathLike[str]) -> str:
    """Say what anybody can see to be wrong with a file that Arrow cannot read; or nothing."""
    try:
        if os.path.getsize(file) == 0:
            return "is empty"
        with open(file, "rb") as raw:
            head = raw.read(4)
        kind = KINDS[suffix_of(file)]
        if kind == "Parquet" and head != b"PAR1":
            return "is not a Parquet file, whatever its name says"
        if kind == "text" and suffix_of(file).endswith(".gz") and head[:2] != b"\x1f\x8b":
            return "is not compressed with gzip, whatever its name says"
        if kind == "text":
            with _open(file) as lines:
                filled = (bool(line.strip()) for line in lines)
                # To its end, to see whether that is there.
                if not (sum(filled) if suffix_of(file).endswith(".gz") else any(filled)):
                    return "is empty"
    except EOFError:
        return "ends too early: a part of it is missing"
    except (OSError, zlib.error):
        return ""
    return ""


def is_wide_text(file: str | os.PathLike[str], delimiter: str) -> bool:
    """Whether a file has so many columns that threads would cost more than they save."""
    import pyarrow as pa

    head = b""
    with pa.input_stream(str(file)) as stream:
        while b"\n" not in head and len(head) < CSV_BLOCK_BYTES:
            piece = stream.read(2**16)
            if not piece:
                break
            head += piece
    return bool(head.partition(b"\n")[0].count(delimiter.encode()) >= SERIAL_COLUMNS)


def _read_parquet(file: Path) -> pa.Table:
    from pyarrow import parquet

    with parquet.ParquetFile(str(file)) as source:
        return source.read()


def _read_arrow(file: Path) -> pa.Table:
    from exactk.data.arrow import open_arrow

    table = open_arrow(str(file)).read_all()
    # Arrow takes a file at its word: in a damaged one, texts might end outside the memory.
    table.validate(full=True)
    return table


_READERS: dict[str, Callable[[Path], pa.Table]] = {
    "text": lambda file: _read_csv(file, DELIMITERS[suffix_of(file)]),
    "Parquet": _read_parquet,
    "Arrow": _read_arrow,
}


def _check_shape(table: pa.Table, path: str) -> None:
    if table.num_columns == 0:
        raise InputError(f"table {path!r} has no columns", parameter="path")
    repeated = [name for name, count in Counter(table.column_names).items() if count > 1]
    if repeated:
        raise InputError(
            f"table {path!r} has more than one column named {join_items(repeated)}",
            parameter="path", hint="rename them",
        )  # fmt: skip
    if table.num_rows == 0:
        raise InputError(f"table {path!r} has no rows", parameter="path")


def _feature_columns(table: pa.Table, names: Sequence[str], text: bool) -> pa.Table:
    import pyarrow as pa

    for name in names:
        _refuse_bytes(table[name], ("column ", repr(name)), "columns")
    worded = {name for name in names if text and is_text(plain_type(table.schema.field(name).type))}
    # Encoded text stays so: it says that these are categories, whatever they look like.
    columns = [table[name] if name in worded else decode_column(table[name]) for name in names]
    wrong = [
        name
        for name, column in zip(names, columns, strict=True)
        if name not in worded and not is_number(column.type)
    ]
    if wrong:
        kinds = sorted({str(table.schema.field(name).type) for name in wrong})
        verb = "is" if len(wrong) == 1 else "are"
        allowed = "numeric or text" if text else "numeric"
        raise InputError(
            f"{_count(len(wrong), 'feature column')} {verb} not {allowed} "
            f"({', '.join(kinds[:3])}): {join_items(wrong)}",
            parameter="columns", hint=("recode them, or leave them out with ", Setting("drop")),
        )  # fmt: skip
    flaws = [
        f"column {name!r} has {flaw}"
        for name, column in zip(names, columns, strict=True)
        if (flaw := _flaw(column))
    ]
    if flaws:
        more = f" and {_count(len(flaws) - 3, 'more column')} likewise" if len(flaws) > 3 else ""
        raise InputError(
            f"{', '.join(flaws[:3])}{more}", parameter="columns",
            hint=("fill or remove these, or leave the column out with ", Setting("drop")),
        )  # fmt: skip
    return pa.table(columns, names=names)


def _refuse_bytes(column: Any, what: tuple[str, str], parameter: str) -> None:
    """Raise for a column of bytes that are not UTF-8, as Arrow reads text in another encoding."""
    import pyarrow as pa

    if not pa.types.is_binary(column.type):
        return
    for row, value in enumerate(column.to_pylist()):
        try:
            (value or b"").decode()
        except UnicodeDecodeError as error:
            raise InputError(
                (*what, " is not UTF-8 text in ", Row(row)), parameter=parameter,
                hint="save the table as UTF-8",
            ) from error  # fmt: skip


def _target_column(table: pa.Table, name: str) -> npt.NDArray[Any]:
    column = decode_column(table.column(name))
    _refuse_bytes(column, ("target column ", repr(name)), "target")
    kind = column.type
    if flaw := _flaw(column):
        raise InputError(
            f"target column {name!r} has {flaw}", parameter="target", hint="remove these rows"
        )
    if is_text(kind):
        labels: npt.NDArray[Any] = column.to_numpy()
        if any("\n" in label for label in np.unique(labels.astype(str))):
            raise InputError(
                f"target column {name!r} has a label with a line break", parameter="target",
                hint="is a quote left open?",
            )  # fmt: skip
        return labels
    if not is_number(column.type):
        raise InputError(
            f"target column {name!r} is {kind}", parameter="target",
            hint="it must hold numbers or UTF-8 labels",
        )  # fmt: skip
    return np.asarray(column.to_numpy())


def _weights_column(table: pa.Table, name: str) -> npt.NDArray[np.float64]:
    column = decode_column(table.column(name))
    if flaw := _flaw(column):
        raise InputError(
            f"weights column {name!r} has {flaw}", parameter="weights",
            hint="fill or remove these rows",
        )  # fmt: skip
    if not is_number(column.type):
        raise InputError(
            f"weights column {name!r} is {column.type}", parameter="weights",
            hint="it must hold numbers",
        )  # fmt: skip
    return np.asarray(column.to_numpy(), dtype=np.float64)


def _groups_column(table: pa.Table, name: str) -> npt.NDArray[Any]:
    column = decode_column(table.column(name))
    if flaw := _flaw(column):
        raise InputError(
            f"groups column {name!r} has {flaw}", parameter="groups", value=name,
            hint="give each of these rows a group, or remove them",
        )  # fmt: skip
    if not is_number(column.type) and not is_text(column.type):
        raise InputError(
            f"groups column {name!r} is {column.type}", parameter="groups", value=name,
            hint="name the groups by text or whole numbers",
        )  # fmt: skip
    return np.asarray(column.to_numpy())


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
