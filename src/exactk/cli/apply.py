"""``exactk apply``: the selected columns of a table, and predictions of the linear fit."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from exactk.cli.framework import Call, argument, check_place, command, name_list, option, write_text
from exactk.errors import InputError, Setting, join_items, suggest

if TYPE_CHECKING:
    import pyarrow as pa

    from exactk.export.saved_selection import SavedSelection
    from exactk.streaming.base import Location
    from exactk.streaming.columns import TableColumns

__all__ = ["apply"]

PREDICTION = "prediction"
Write = Callable[["pa.RecordBatch"], None]


@command("apply", formats=())
@argument("selection", type=click.Path())
@argument("table", type=click.Path())
@option("--keep", multiple=True, callback=name_list, section="Input", metavar="COLUMN,...",
        help="Write these columns, too, before the selected ones.")  # fmt: skip
@option("--predict", is_flag=True, help="Add the predictions of the linear fit as a column.")
@option("-o", "--output", type=click.Path(), metavar="FILE",
        help="Write to FILE in place of stdout.")  # fmt: skip
def apply(call: Call, selection: str, keep: list[str], predict: bool) -> int:
    """Write the columns of TABLE that were selected.

    SELECTION is a file of exactk select --export. TABLE is a file, a folder or a
    pattern in quotes: CSV, TSV, Parquet, Arrow or Feather. It is read in batches,
    so it may have any size. The name of the output says its format, such as
    small.parquet; without --output, CSV is printed.
    """
    from exactk.data.h5ad import is_h5ad
    from exactk.streaming.columns import open_columns, promote_type
    from exactk.streaming.csv import OtherKindError

    table, output = str(call.table), call.output
    kind = _output_kind(output)
    if is_h5ad(table):
        raise InputError(
            f"apply does not write .h5ad files such as {table!r}", parameter="table", value=table,
            hint=f"in Python: adata[:, list(exactk.SavedSelection.load({selection!r}).names)]",
        )  # fmt: skip
    if output is not None:
        check_place(output, [selection])
    job = _plan(_load(selection), open_columns(table), table, keep, predict)
    # Values of a text file are copied to a text file as they are.
    as_is = job.columns.is_text and kind == "text"
    types = job.types(as_is)
    while True:
        try:
            job.write(output, types, as_is)
            if output is not None:
                call.say(f"wrote {output}")
            return 0
        except OtherKindError as error:
            types[error.column] = promote_type(types[error.column])


@dataclass(frozen=True)
class _Job:
    """What is written of a table.

    Attributes
    ----------
    selection : SavedSelection
        With the names of the table.
    columns : TableColumns
    kept : tuple of str
        Further columns, which come first.
    predictions : tuple of str
        Columns that are added at the end.
    """

    selection: SavedSelection
    columns: TableColumns
    kept: tuple[str, ...]
    predictions: tuple[str, ...]

    def types(self, as_is: bool) -> dict[str, Any]:
        """Return the types to read the columns as, in the order of the output."""
        import pyarrow as pa

        found = self.columns.types((*self.kept, *self.selection.names))
        if as_is:
            return dict.fromkeys(found, pa.string())
        for feature in self.selection.features if self.columns.is_text else ():
            kind = found[feature.name]
            if feature.levels is not None:
                found[feature.name] = pa.string()
            elif not (pa.types.is_boolean(kind) or pa.types.is_integer(kind)):
                found[feature.name] = pa.float64()
        return found

    def write(self, output: str | None, types: dict[str, Any], as_is: bool) -> None:
        """Write the table; a value that does not have the type of its column is an error."""
        import pyarrow as pa

        # Columns that were selected as numbers cannot become text.
        widen = [name for name in self.kept if types[name] != pa.string()]
        widen += [name for name in self.selection.names if pa.types.is_integer(types[name])]
        classes = self.selection.classes
        kind = pa.float64() if classes is None else pa.array(self.selection.label_array()).type
        schema = pa.schema([*types.items(), *((name, kind) for name in self.predictions)])
        with _open_output(output, schema) as write:
            for place, batch in self.columns.batches(types, promote=widen, nulls=not as_is):
                added = self._predict(batch, place) if self.predictions else []
                arrays = [pa.array(values, type=kind) for values in added]
                write(pa.RecordBatch.from_arrays([*batch.columns, *arrays], schema=schema))

    def _predict(self, batch: pa.RecordBatch, place: Location) -> list[Any]:
        import pyarrow as pa

        from exactk.data.arrow import decode_column

        columns: dict[str, Any] = {}
        for feature in self.selection.features:
            # Decimals are numbers, as they were when the features were selected.
            column = decode_column(batch.column(feature.name))
            if feature.levels is None and pa.types.is_string(column.type) and self.columns.is_text:
                column = _numbers(column, feature.name, place)
            columns[feature.name] = column
        rows = pa.table(columns)
        try:
            found = self.selection.predict(rows)
        except InputError as error:
            row = place.first_row + self._first_flaw(rows)
            # In a text file the header is line 1.
            name = f"line {row + 2}" if self.columns.is_text else f"row {row}, counted from 0,"
            raise InputError(
                f"{error.text()} ({name} of {place.source!r})", parameter=error.parameter
            ) from error
        return [found] if found.ndim == 1 else list(found.T)

    def _first_flaw(self, rows: pa.Table) -> int:
        """Return the first row that cannot be predicted from."""
        first, last = 0, rows.num_rows
        while last - first > 1:
            middle = (first + last) // 2
            try:
                self.selection.predict(rows.slice(first, middle - first))
                first = middle
            except InputError:
                last = middle
        return first


def _load(path: str) -> SavedSelection:
    """Read the selection; a table in its place is named so."""
    from exactk.export.saved_selection import SavedSelection

    try:
        return SavedSelection.load(path)
    except InputError as error:
        raise InputError(
            f"selection file {path!r} cannot be read: {error.__cause__ or error}",
            parameter="selection", value=path,
            hint="give a file of exactk select --export, and the table after it",
        ) from error  # fmt: skip


def _plan(
    selection: SavedSelection,
    columns: TableColumns,
    table: str,
    keep: Sequence[str],
    predict: bool,
) -> _Job:
    """Find the columns in the table, or say which are missing."""
    from exactk.export.transform import find_positions

    known = columns.names
    find_positions(selection, known, len(known), f"table {table!r}")
    if selection.feature_names_in is None:
        # It was made of a table without names: the place of a column gives its name.
        called = {feature.name: known[feature.index] for feature in selection.features}
        selection = replace(
            selection,
            feature_names_in=known,
            features=tuple(replace(one, name=called[one.name]) for one in selection.features),
            order=tuple(called[name] for name in selection.order),
        )
    for name in keep:
        if name not in known:
            raise InputError(
                f"column {name!r} is not in table {table!r}", parameter="keep", value=name,
                hint=suggest(name, known) or f"its columns are {join_items(known)}",
            )  # fmt: skip
    kept = tuple(name for name in keep if name not in selection.names)
    predictions: tuple[str, ...] = ()
    if predict:
        selection.check_predicts()
        several = selection.classes is None and len(selection.intercept) > 1
        predictions = (
            tuple(f"{PREDICTION}_{i}" for i in range(len(selection.intercept)))
            if several
            else (PREDICTION,)
        )
        taken = [name for name in predictions if name in (*kept, *selection.names)]
        if taken:
            raise InputError(
                (Setting("predict"), f" adds a column {taken[0]!r}, and the table has one already"),
                parameter="predict", hint="rename the column of the table",
            )  # fmt: skip
    return _Job(selection, columns, kept, predictions)


def _numbers(column: Any, name: str, place: Location) -> Any:
    """Return text as numbers, or as true and false."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column, flaws = pc.utf8_trim_whitespace(column), {}
    for expected, kind in (("a number", pa.float64()), ("true or false", pa.bool_())):
        try:
            return column.cast(kind)
        except pa.ArrowInvalid:
            flaws[expected] = [row for row, word in enumerate(column) if not _casts(word, kind)]
    # The kind that most values have was meant.
    expected, rows = min(flaws.items(), key=lambda item: len(item[1]))
    word = column[rows[0]].as_py()
    raise InputError(
        f"column {name!r} has {word!r} in line {place.first_row + rows[0] + 2} of "
        f"{place.source!r} (the header is line 1), which is not {expected}",
        parameter="table", value=word, hint="correct the value, or remove the row",
    )  # fmt: skip


def _casts(word: pa.Scalar, kind: Any) -> bool:
    try:
        return bool(word.cast(kind) is not None)
    except ValueError:
        return False


def _output_kind(output: str | None) -> str:
    """Return "text", "Parquet" or "Arrow" by the name of the output; stdout is text."""
    from exactk.data.files import KINDS, list_suffixes, suffix_of

    if output is None:
        return "text"
    try:
        return KINDS[suffix_of(output)]
    except InputError as error:
        raise InputError(
            f"the name of the output {output!r} does not say its format", parameter="output",
            value=output, hint=f"use a name that ends in {list_suffixes()}",
        ) from error  # fmt: skip


@contextmanager
def _open_output(output: str | None, schema: pa.Schema) -> Iterator[Write]:
    """Open a table for writing; it takes its name when all is written."""
    from exactk.data.files import DELIMITERS, suffix_of
    from exactk.utils.atomic_write import replace_file

    if output is None:
        yield _text_writer(write_text, schema, ",")
        return
    kind, suffix = _output_kind(output), suffix_of(output)
    with replace_file(output) as file:
        if kind == "Parquet":
            from pyarrow import parquet

            with parquet.ParquetWriter(file, schema) as writer:
                yield writer.write_batch
        elif kind == "Arrow":
            import pyarrow as pa

            with pa.ipc.new_file(file, schema) as writer:
                yield writer.write_batch
        else:
            text: Any = nullcontext(file)
            if suffix.endswith(".gz"):
                # Without the time, the same table gives the same bytes.
                text = gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=0)
            with text as opened:
                put = opened.write
                yield _text_writer(lambda part: put(part.encode()), schema, DELIMITERS[suffix])


def _text_writer(put: Callable[[str], object], schema: pa.Schema, delimiter: str) -> Write:
    from exactk.utils.formatting import csv_text

    def write(batch: pa.RecordBatch) -> None:
        columns = [_as_text(batch.column(j), name) for j, name in enumerate(schema.names)]
        put(csv_text(zip(*columns, strict=True), delimiter))

    put(csv_text([schema.names], delimiter))
    return write


def _as_text(column: Any, name: str) -> list[str | None]:
    import pyarrow as pa

    try:
        values: list[str | None] = column.cast(pa.string()).to_pylist()
    except pa.ArrowException as error:
        raise InputError(
            f"column {name!r} is {column.type}, which CSV cannot hold", parameter="output",
            hint="write Parquet or Arrow",
        ) from error  # fmt: skip
    return values
