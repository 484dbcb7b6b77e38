"""Some columns of a table in files, as they are, batch by batch: nothing is coded or computed."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from typing import TYPE_CHECKING, Any

from exactk.data.arrow import is_number, is_text
from exactk.data.files import read_error, require_pyarrow
from exactk.errors import InputError, join_items
from exactk.streaming.arrow import cut
from exactk.streaming.base import Location
from exactk.streaming.csv import typed_batches
from exactk.streaming.files import folder_columns, refuse_repeated
from exactk.streaming.folders import Paths, find_files
from exactk.streaming.formats import TableFile, arrow_batches, read_schema

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["TableColumns", "open_columns", "promote_type"]

# Bytes of a batch, about, and the least and the most rows of one.
BATCH_BYTES = 2**25
FEWEST_ROWS, MOST_ROWS = 2**10, 2**17


@dataclass(frozen=True)
class TableColumns:
    """A table in one or several files, of which columns can be read by name.

    Attributes
    ----------
    files : tuple of TableFile
    schemas : tuple of pyarrow.Schema
        What each file holds; of text, as its first rows look.
    names : tuple of str
        Columns of the first file, then those that folders spell out.
    """

    files: tuple[TableFile, ...]
    schemas: tuple[Any, ...]
    names: tuple[str, ...]

    @property
    def is_text(self) -> bool:
        """Whether the files say nothing of types."""
        return self.files[0].kind == "text"

    def types(self, names: Sequence[str]) -> dict[str, Any]:
        """Return a type for each of these columns that holds what all files have in it.

        Raises
        ------
        InputError
            A file lacks one, or has it of a kind that does not go with that of another.
        """
        import pyarrow as pa

        found: dict[str, Any] = {}
        for file, schema in zip(self.files, self.schemas, strict=True):
            missing = [name for name in names if name not in {*schema.names, *file.constants}]
            if missing:
                raise InputError(
                    f"table {file.path!r} lacks the column {join_items(missing)}", parameter="path"
                )
            for name in names:
                if name in file.constants:
                    kind = pa.scalar(file.constants[name]).type
                else:
                    kind = _decoded(schema.field(name).type)
                found[name] = self._both(found.get(name, kind), kind, name, file)
        return {
            name: pa.string() if pa.types.is_null(kind) else kind for name, kind in found.items()
        }

    def _both(self, one: Any, other: Any, name: str, file: TableFile) -> Any:
        import pyarrow as pa

        if one == other or pa.types.is_null(other):
            return one
        if pa.types.is_null(one):
            return other
        if is_number(one) and is_number(other) and pa.bool_() not in (one, other):
            # Numbers of rows and of people may have more digits than a float.
            whole = pa.types.is_integer(one) and pa.types.is_integer(other)
            return pa.int64() if whole and pa.uint64() not in (one, other) else pa.float64()
        if is_text(one) and is_text(other):
            return pa.large_string()
        if self.is_text:
            return pa.string()
        raise InputError(
            f"column {name!r} is {other} in {file.path!r} and {one} in {self.files[0].path!r}",
            parameter="path",
        )

    def batches(
        self, types: dict[str, Any], *, promote: Collection[str] = (), nulls: bool = True
    ) -> Iterator[tuple[Location, pa.RecordBatch]]:
        """Give the columns in batches of a useful size, with the place of the first row.

        Parameters
        ----------
        types : dict of str to pyarrow.DataType
            The columns, in the order in which they are given, and what they are given as.
        promote : collection of str
            Columns of text of which a value of another kind is an `OtherKindError`.
        nulls : bool
            Whether text such as "NA" is a missing value.
        """
        import pyarrow as pa

        rows = min(MOST_ROWS, max(FEWEST_ROWS, BATCH_BYTES // (8 * max(1, len(types)))))
        schema = pa.schema(list(types.items()))
        for part, file in enumerate(self.files):
            file.check_unchanged()
            first, inside = 0, [name for name in types if name not in file.constants]
            with read_error(file.path):
                for group in cut(_read(file, inside, types, rows, promote, nulls), repeat(rows)):
                    table = pa.Table.from_batches(group).combine_chunks()
                    columns = [_column(table, name, kind, file) for name, kind in types.items()]
                    batch = pa.RecordBatch.from_arrays(columns, schema=schema)
                    yield Location(file.path, part, first, is_text=file.kind == "text"), batch
                    first += batch.num_rows


def open_columns(paths: Paths) -> TableColumns:
    """Look at the files of a table; none is read yet.

    Parameters
    ----------
    paths : path, or sequence of paths
        As in `exactk.streaming.files.open_files`.
    """
    require_pyarrow()
    found = find_files(paths)
    looked = [read_schema(one) for one in found]
    for file, schema in looked:
        refuse_repeated(file.path, schema)
    extra = folder_columns(found, looked[0][1])
    files = tuple(
        replace(file, constants={name: values[i] for name, values in extra.items()})
        for i, (file, _) in enumerate(looked)
    )
    schemas = tuple(schema for _, schema in looked)
    return TableColumns(files, schemas, (*schemas[0].names, *extra))


def promote_type(kind: Any) -> Any:
    """Return the type to read a column of text as whose values do not fit this one.

    Examples
    --------
    >>> import pyarrow as pa
    >>> promote_type(pa.int64()), promote_type(pa.float64())
    (DataType(double), DataType(string))
    """
    import pyarrow as pa

    return pa.float64() if pa.types.is_integer(kind) else pa.string()


def _decoded(kind: Any) -> Any:
    import pyarrow as pa

    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _read(
    file: TableFile,
    names: Sequence[str],
    types: dict[str, Any],
    rows: int,
    promote: Collection[str],
    nulls: bool,
) -> Iterator[pa.RecordBatch]:
    if file.kind == "text":
        kinds = {name: types[name] for name in names}
        yield from typed_batches(file.path, kinds, names, promote=promote, nulls=nulls)
    elif file.kind == "Arrow":
        yield from arrow_batches(file, names)
    else:
        from pyarrow import parquet

        # Read ahead, whole row groups would be held.
        with parquet.ParquetFile(file.path, pre_buffer=False) as source:
            yield from source.iter_batches(rows, columns=list(names))


def _column(table: pa.Table, name: str, kind: Any, file: TableFile) -> Any:
    import pyarrow as pa

    if name in file.constants:
        return pa.array([file.constants[name]] * table.num_rows).cast(kind)
    column = table.column(name)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if column.type != kind:
        column = column.cast(kind)
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
