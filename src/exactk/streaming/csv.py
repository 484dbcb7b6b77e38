"""CSV and TSV in batches; their types are settled before, and what does not fit is named."""

from __future__ import annotations

from codecs import getincrementaldecoder
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from exactk.data.files import DELIMITERS, is_wide_text, refuse_ragged, suffix_of
from exactk.errors import InputError, Row
from exactk.streaming.arrow import Roles

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "WIDER",
    "OtherKindError",
    "bool_columns",
    "text_batches",
    "text_schema",
    "typed_batches",
]

# Text that is read at once: more only fills the memory.
BLOCK_BYTES = 2**22
# One row must fit; a table as wide as this has them long.
WIDE_BLOCK_BYTES = 2**24
# A target whose values do not fit is read as the next kind: the order in which Arrow infers.
WIDER = {"int": "bool", "bool": "float", "float": "text"}


class OtherKindError(InputError):
    """A column turned out to hold another kind of values than its first ones."""

    column: str


def text_schema(path: str) -> pa.Schema:
    """Return the columns of a file, with types inferred from its first rows."""
    import pyarrow as pa

    ragged: list[Any] = []

    def note(row: Any) -> str:
        ragged.append(row)
        return "skip"

    try:
        with _opened(path, {}, None) as reader:
            return reader.schema
    except pa.ArrowInvalid:
        with pa.input_stream(path) as stream:
            # What is no text in UTF-8 has no rows; the last letter may be cut in two.
            getincrementaldecoder("utf-8")().decode(stream.read(BLOCK_BYTES))
        with _opened(path, {}, None, note):
            if ragged:
                refuse_ragged(path, ragged[0])
        raise


def _opened(
    path: str,
    types: dict[str, Any],
    names: Sequence[str] | None,
    note: Any = None,
    *,
    serial: bool = False,
    nulls: bool = True,
) -> Any:
    from pyarrow import csv

    delimiter = DELIMITERS[suffix_of(path)]
    wide = is_wide_text(path, delimiter)
    return csv.open_csv(
        path,
        csv.ReadOptions(
            use_threads=not (serial or wide),
            block_size=WIDE_BLOCK_BYTES if wide else BLOCK_BYTES,
        ),
        csv.ParseOptions(delimiter=delimiter, invalid_row_handler=note),
        # Otherwise the text "NA" would quietly become a class of its own.
        csv.ConvertOptions(column_types=types, include_columns=names, strings_can_be_null=nulls),
    )


def bool_columns(schema: pa.Schema) -> frozenset[str]:
    """Return the names of the columns that hold true and false."""
    import pyarrow as pa

    return frozenset(field.name for field in schema if pa.types.is_boolean(field.type))


def _types(roles: Roles, bools: Collection[str]) -> dict[str, Any]:
    import pyarrow as pa

    of = {"text": pa.string(), "bool": pa.bool_(), "int": pa.int64(), "float": pa.float64()}
    types = {
        name: pa.bool_() if name in bools else pa.float64()
        for name in (*roles.features, *filter(None, [roles.weights]))
    }
    return types | dict.fromkeys(roles.targets, of[roles.y_kind])


def text_batches(
    path: str, roles: Roles, names: Sequence[str], bools: Collection[str], *, promote: bool
) -> Iterator[pa.RecordBatch]:
    """Read a file of text in batches.

    Parameters
    ----------
    path : str
    roles : Roles
    names : sequence of str
        The columns to read.
    bools : collection of str
        Those of the features that hold true and false.
    promote : bool
        Whether a target of another kind than the layout says is an `OtherKindError`.
    """
    may_widen = roles.targets if promote and roles.y_kind in WIDER else ()
    yield from typed_batches(path, _types(roles, bools), names, promote=may_widen)


def typed_batches(
    path: str,
    types: dict[str, Any],
    names: Sequence[str],
    *,
    promote: Collection[str] = (),
    nulls: bool = True,
) -> Iterator[pa.RecordBatch]:
    """Read some columns of a file of text in batches, each as a given type.

    Parameters
    ----------
    path : str
    types : dict of str to pyarrow.DataType
    names : sequence of str
        The columns to read.
    promote : collection of str
        Columns of which a value of another kind is an `OtherKindError`.
    nulls : bool
        Whether text such as "NA" is a missing value.
    """
    import pyarrow as pa

    ragged: list[Any] = []
    try:
        with _opened(path, types, names, _noting(ragged), nulls=nulls) as reader:
            for batch in reader:
                if ragged:
                    break
                yield batch
    except pa.ArrowInvalid as error:
        misfit = None if ragged else _find_misfit(path, types, names)
        if not ragged and misfit is None:
            raise
        if misfit is not None and misfit.column in promote:
            name = misfit.column
            other = OtherKindError(f"column {name!r} is not {types[name]}", parameter="path")
            other.column = name
            raise other from error
        if misfit is not None:
            raise misfit.error(path) from error
    if ragged:
        refuse_ragged(path, ragged[0])


def _noting(ragged: list[Any]) -> Callable[[Any], str]:
    """Keep the first row that has too few or too many values, and stop soon after it."""

    def note(row: Any) -> str:
        ragged.append(row)
        return "skip" if len(ragged) == 1 else "error"

    return note


@dataclass(frozen=True)
class _Misfit:
    """The first value of a file that its column cannot have; None for bytes that are no text."""

    column: str
    row: int
    value: str | None
    kind: Any

    def error(self, path: str) -> InputError:
        import pyarrow as pa

        line = Row(self.row).line
        if self.value is None:
            return InputError(
                f"table {path!r} is not UTF-8 text: column {self.column!r}, {line}",
                parameter="path", hint="save it as UTF-8",
            )  # fmt: skip
        wanted = "neither true nor false" if pa.types.is_boolean(self.kind) else "not a number"
        return InputError(
            f"column {self.column!r} of table {path!r} has {self.value!r} in {line}, which is "
            f"{wanted}", parameter="X", hint="correct it, or leave the column out",
        )  # fmt: skip


def _find_misfit(path: str, types: dict[str, Any], names: Sequence[str]) -> _Misfit | None:
    """Read a file as bytes and return the first value that does not fit its column."""
    import pyarrow as pa

    first = 0
    as_bytes = dict.fromkeys(names, pa.binary())
    with suppress(pa.ArrowInvalid), _opened(path, as_bytes, names, serial=True) as reader:
        for batch in reader:
            rows = {name: _first_misfit(batch.column(name), types[name]) for name in names}
            found = {name: row for name, row in rows.items() if row is not None}
            if found:
                name = min(found, key=lambda name: found[name])
                raw = batch.column(name)[found[name]].as_py()
                return _Misfit(name, first + found[name], _text(raw), types[name])
            first += batch.num_rows
    return None


def _first_misfit(column: Any, kind: Any) -> int | None:
    """Return the row of the first value that is not of a kind, if there is any."""
    if _fits(column, kind):
        return None
    low, high = 0, len(column)
    while high - low > 1:
        middle = (low + high) // 2
        if _fits(column.slice(low, middle - low), kind):
            low = middle
        else:
            high = middle
    return low


def _fits(column: Any, kind: Any) -> bool:
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        pc.utf8_trim_whitespace(column.cast(pa.string())).cast(kind)
    except pa.ArrowInvalid:
        return False
    return True


def _text(raw: bytes) -> str | None:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return None
