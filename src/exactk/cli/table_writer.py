"""Tables that commands write, batch by batch: CSV, Parquet and Arrow by the ending of the name."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from exactk.cli.output import print_as_is
from exactk.data.files import DELIMITERS, KINDS, list_suffixes, suffix_of
from exactk.errors import InputError
from exactk.utils.atomic_write import replace_file
from exactk.utils.formatting import csv_text

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["kind_of_output", "open_writer"]

Write = Callable[["pa.RecordBatch"], None]


def kind_of_output(output: str | None) -> str:
    """Return what a file of this name is to hold: "text", "Parquet" or "Arrow"; stdout is text.

    Examples
    --------
    >>> kind_of_output("small.parquet"), kind_of_output(None)
    ('Parquet', 'text')
    """
    if output is None:
        return "text"
    try:
        return KINDS[suffix_of(output)]
    except InputError as error:
        raise InputError(
            f"--output {output!r} does not end as a table does; give {list_suffixes()}"
        ) from error


@contextmanager
def open_writer(output: str | None, schema: pa.Schema) -> Iterator[Write]:
    """Open a table for writing; it takes its name when all is written, and only then."""
    if output is None:
        with _text(print_as_is, schema, ",") as write:
            yield write
        return
    kind = kind_of_output(output)
    try:
        with replace_file(output) as file:
            opened = _OPENERS[kind](file, schema, suffix_of(output))
            with opened as write:
                yield write
    except OSError as error:
        if error.filename is not None and error.filename != output:
            raise
        raise InputError(f"--output {output!r} cannot be written: {error.strerror}") from error


@contextmanager
def _open_text(file: Any, schema: pa.Schema, suffix: str) -> Iterator[Write]:
    if not suffix.endswith(".gz"):
        with _text(lambda words: file.write(words.encode()), schema, DELIMITERS[suffix]) as write:
            yield write
        return
    # Without the time, so that the same table gives the same bytes.
    with (
        gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=0) as packed,
        _text(lambda words: packed.write(words.encode()), schema, DELIMITERS[suffix]) as write,
    ):
        yield write


@contextmanager
def _text(put: Callable[[str], object], schema: pa.Schema, delimiter: str) -> Iterator[Write]:
    def write(batch: pa.RecordBatch) -> None:
        columns = [_words(batch.column(j), name) for j, name in enumerate(schema.names)]
        put(csv_text(zip(*columns, strict=True), delimiter))

    put(csv_text([schema.names], delimiter))
    yield write


def _words(column: Any, name: str) -> list[str | None]:
    """The values of a column as text; nothing for those that are missing."""
    import pyarrow as pa

    try:
        words: list[str | None] = column.cast(pa.string()).to_pylist()
    except pa.ArrowException as error:
        raise InputError(
            f"column {name!r} is {column.type}, which CSV cannot hold; write Parquet or Arrow"
        ) from error
    return words


@contextmanager
def _open_parquet(file: Any, schema: pa.Schema, suffix: str) -> Iterator[Write]:
    from pyarrow import parquet

    with parquet.ParquetWriter(file, schema) as writer:
        yield writer.write_batch


@contextmanager
def _open_arrow(file: Any, schema: pa.Schema, suffix: str) -> Iterator[Write]:
    import pyarrow as pa

    with pa.ipc.new_file(file, schema) as writer:
        yield writer.write_batch


_OPENERS = {"text": _open_text, "Parquet": _open_parquet, "Arrow": _open_arrow}
