"""``exactk apply``: the chosen columns of a table, and what the fit on them predicts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from exactk.cli.options import output_option, words
from exactk.cli.output import check_output
from exactk.cli.table_writer import kind_of_output, open_writer
from exactk.errors import InputError, did_you_mean, join_items

if TYPE_CHECKING:
    import pyarrow as pa

    from exactk.export.saved_selection import SavedSelection
    from exactk.streaming.base import Location
    from exactk.streaming.columns import TableColumns

__all__ = ["apply"]

PREDICTION = "prediction"


@click.command()
@click.argument("choice", type=click.Path(), metavar="CHOICE")
@click.argument("table", type=click.Path(), metavar="TABLE")
@click.option("--keep", multiple=True, metavar="COLUMN,...", callback=words,
              help="Carry these columns along, before the chosen ones; repeatable.")  # fmt: skip
@click.option("--predict", is_flag=True,
              help="Add a column with the prediction of the linear fit.")  # fmt: skip
@output_option
def apply(choice: str, table: str, keep: list[str], predict: bool, output: str | None) -> None:
    """Write the columns of TABLE that CHOICE has chosen.

    CHOICE is a file that exactk select --export or export() wrote. TABLE is a file, a folder or a
    quoted pattern: CSV or TSV (.gz too), Parquet, Arrow or Feather; it is read in batches, whatever
    its size. The ending of --output says what is written; without it, CSV goes to stdout.
    """
    from exactk.data.h5ad import is_h5ad
    from exactk.export.saved_selection import SavedSelection
    from exactk.streaming.columns import open_columns, promote_type
    from exactk.streaming.csv import OtherKindError

    kind_of_output(output)
    if is_h5ad(table):
        raise InputError(
            f"table {table!r} is an AnnData, which apply does not write; in Python: "
            f"adata[:, list(exactk.SavedSelection.load({choice!r}).names)]"
        )
    if output is not None:
        check_output(output, "table or the choice", [table, choice])
    job = _ApplyJob.of(SavedSelection.load(choice), open_columns(table), table, keep, predict)
    # Text goes to text as it stands.
    as_it_is = job.columns.is_text and kind_of_output(output) == "text"
    types = job.types(as_it_is)
    while True:
        try:
            job.write(output, types, as_it_is)
            return
        except OtherKindError as error:
            types[error.column] = promote_type(types[error.column])


@dataclass(frozen=True)
class _ApplyJob:
    """What is to be written of a table."""

    choice: SavedSelection
    columns: TableColumns
    kept: tuple[str, ...]
    predictions: tuple[str, ...]

    @classmethod
    def of(
        cls,
        choice: SavedSelection,
        columns: TableColumns,
        table: str,
        keep: Sequence[str],
        predict: bool,
    ) -> _ApplyJob:
        """Find the columns in the table, or say which are missing."""
        from exactk.export.transform import find_positions

        known = columns.names
        what = f"table {table!r}"
        find_positions(choice, known, len(known), what)
        choice = _named(choice, known)
        chosen = choice.names
        for name in keep:
            if name not in known:
                hint = did_you_mean(name, known) or f"; its columns are {join_items(known)}"
                raise InputError(f"--keep: column {name!r} is not in {what}{hint}")
        kept = tuple(name for name in keep if name not in chosen)
        n_outputs = len(choice.intercept)
        predictions: tuple[str, ...] = (PREDICTION,)
        if choice.classes is None and n_outputs > 1:
            predictions = tuple(f"{PREDICTION}_{i}" for i in range(n_outputs))
        if predict:
            choice.check_predicts()
            taken = [name for name in predictions if name in (*kept, *chosen)]
            if taken:
                raise InputError(
                    f"--predict adds a column {taken[0]!r}, and the table has one already; rename "
                    f"it there, or leave it out of --keep"
                )
        return cls(choice, columns, kept, predictions if predict else ())

    def types(self, as_it_is: bool) -> dict[str, Any]:
        """Return the types to read the columns as, in the order of the output."""
        import pyarrow as pa

        found = self.columns.types((*self.kept, *self.choice.names))
        if as_it_is:
            return dict.fromkeys(found, pa.string())
        if self.columns.is_text:
            for feature in self.choice.features:
                kind = found[feature.name]
                if feature.levels is not None:
                    found[feature.name] = pa.string()
                elif not (pa.types.is_boolean(kind) or pa.types.is_integer(kind)):
                    found[feature.name] = pa.float64()
        return found

    def write(self, output: str | None, types: dict[str, Any], as_it_is: bool) -> None:
        """Write the table; a column whose first rows say too little of it is an error."""
        import pyarrow as pa

        # Numbers that were chosen cannot become text.
        widen = [name for name in self.kept if types[name] != pa.string()]
        widen += [name for name in self.choice.names if pa.types.is_integer(types[name])]
        fields = [*types.items(), *((name, self._kind()) for name in self.predictions)]
        schema = pa.schema(fields)
        with open_writer(output, schema) as write:
            for place, batch in self.columns.batches(types, promote=widen, nulls=not as_it_is):
                added = self._predicted(batch, place) if self.predictions else []
                write(pa.RecordBatch.from_arrays([*batch.columns, *added], schema=schema))

    def _kind(self) -> Any:
        """The type of what is predicted."""
        import pyarrow as pa

        if self.choice.classes is None:
            return pa.float64()
        return pa.array(self.choice.label_array()).type

    def _predicted(self, batch: pa.RecordBatch, place: Location) -> list[Any]:
        import pyarrow as pa

        try:
            found = self.choice.predict(pa.table(dict(self._frame(batch))))
        except InputError as error:
            start = f", counted from row {place.first_row}" if place.first_row else ""
            raise InputError(f"{error} (table {place.source!r}{start}, rows from 0)") from error
        outputs = [found] if found.ndim == 1 else list(found.T)
        return [pa.array(output, type=self._kind()) for output in outputs]

    def _frame(self, batch: pa.RecordBatch) -> Iterator[tuple[str, Any]]:
        """The chosen columns, numbers as numbers."""
        import pyarrow as pa

        from exactk.data.arrow import decode_column

        for feature in self.choice.features:
            # Decimals are numbers here, as they were when the columns were chosen.
            column = decode_column(batch.column(feature.name))
            if feature.levels is None and pa.types.is_string(column.type) and self.columns.is_text:
                column = _numbers(column, feature.name)
            yield feature.name, column


def _named(choice: SavedSelection, names: tuple[str, ...]) -> SavedSelection:
    """Call the columns of a choice that was made by position as the table calls them."""
    if choice.feature_names_in is not None:
        return choice
    called = {feature.name: names[feature.index] for feature in choice.features}
    return replace(
        choice,
        feature_names_in=names,
        features=tuple(replace(one, name=called[one.name]) for one in choice.features),
        order=tuple(called[name] for name in choice.order),
    )


def _numbers(column: Any, name: str) -> Any:
    """Text as numbers, or as true and false; what is neither is named."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = pc.utf8_trim_whitespace(column)
    for kind in (pa.float64(), pa.bool_()):
        try:
            return column.cast(kind)
        except pa.ArrowInvalid:
            continue
    words = column.to_pylist()
    flaws = {
        wanted: [row for row, word in enumerate(words) if not _casts(word, kind)]
        for wanted, kind in (("not a number", pa.float64()), ("neither true nor false", pa.bool_()))
    }
    # What most of the words are was meant.
    wanted, rows = min(flaws.items(), key=lambda item: len(item[1]))
    raise InputError(
        f"column {name!r} holds {words[rows[0]]!r} in row {rows[0]}, which is {wanted}"
    )


def _casts(word: str | None, kind: Any) -> bool:
    import pyarrow as pa

    try:
        pa.scalar(word, pa.string()).cast(kind)
    except pa.ArrowInvalid:
        return False
    return True
