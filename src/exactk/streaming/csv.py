"""CSV and TSV in batches; their types are settled before, and what does not fit is named."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from exactk.data.files import DELIMITERS, is_wide_text, refuse_ragged, suffix_of
from exactk.errors import InputError
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

_CONVERSION = re.compile(
    r"In CSV column #(?P<column>\d+): (?:Row #(?P<row>\d+): )?CSV conversion error to "
    r"(?P<kind>\w+): (?P<why>.*)"
)


class OtherKindError(InputError):
    """A column turned out to hold another kind of values than its first ones."""

    column: str


def text_schema(path: str) -> pa.Schema:
    """Return the columns of a file, with types inferred from its first rows."""
    with _opened(path, {}, None) as reader:
        return reader.schema


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
        if not ragged:
            problem = _CONVERSION.search(str(error))
            if problem is None:
                raise
            name = text_schema(path).names[int(problem["column"])]
            if name in promote:
                other = OtherKindError(f"column {name!r} is not {types[name]}", parameter="path")
                other.column = name
                raise other from error
            raise _refused(path, name, _with_row(path, types, names, problem)) from error
    if ragged:
        refuse_ragged(path, ragged[0])


def _noting(ragged: list[Any]) -> Callable[[Any], str]:
    """Keep the first row that has too few or too many values, and stop soon after it."""

    def note(row: Any) -> str:
        ragged.append(row)
        return "skip" if len(ragged) == 1 else "error"

    return note


def _with_row(
    path: str, types: dict[str, Any], names: Sequence[str], problem: re.Match[str]
) -> re.Match[str]:
    """Find the row of a value that does not fit: only a serial pass counts rows."""
    import pyarrow as pa

    try:
        with _opened(path, types, names, serial=True) as reader:
            for _ in reader:
                pass
    except pa.ArrowInvalid as error:
        return _CONVERSION.search(str(error)) or problem
    return problem


def _refused(path: str, name: str, problem: re.Match[str]) -> InputError:
    row = "" if problem["row"] is None else f", row {problem['row']} (the header is row 1)"
    if "UTF8" in problem["why"]:
        return InputError(
            f"table {path!r} is not UTF-8 text: column {name!r}{row}",
            parameter="path",
            hint="save it as UTF-8",
        )
    value = problem["why"].removeprefix("invalid value ")
    wanted = "neither true nor false" if problem["kind"] == "bool" else "not a number"
    return InputError(
        f"column {name!r} of table {path!r} holds {value}{row}, which is {wanted}",
        parameter="X",
        hint="correct it, or leave the column out",
    )
