"""What a file holds, and its rows in windows: Parquet and Arrow; text is in `text`."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import repeat
from typing import TYPE_CHECKING, Any

from exactk.data.arrow import open_arrow
from exactk.data.files import read_error
from exactk.errors import InputError
from exactk.streaming.arrow import Roles, cut
from exactk.streaming.base import Location
from exactk.streaming.csv import bool_columns, text_batches, text_schema
from exactk.streaming.folders import Found
from exactk.streaming.parallel_fold import Read, Window

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["TableFile", "arrow_batches", "read_schema", "windows_of"]

# A row group is read column by column into its blocks where these take no more bytes than this, or
# than pages and dictionaries would, were all columns read in step: of each column all of them, or
# about 2 MB if it is long.
WHOLE_BYTES = 64 * 2**20
PAGES_BYTES = 2 * 2**20
# Fewer bytes at once would cost more in calls than in reading.
READ_BYTES = 2**20
# What is read ahead of each column where all columns are read in step.
BUFFER_BYTES = 2**16


@dataclass(frozen=True)
class TableFile:
    """A file as it was when it was first looked at.

    Attributes
    ----------
    path : str
    kind : {"text", "Parquet", "Arrow"}
    n_rows : int or None
        None where only reading tells.
    size, changed : int
        Bytes, and the time of the last change.
    constants : dict
        Values of the columns that its folders spell out.
    bool_columns : frozenset of str
        Columns of text that begin with true or false.
    """

    path: str
    kind: str
    n_rows: int | None
    size: int
    changed: int
    constants: dict[str, Any] = field(default_factory=dict)
    bool_columns: frozenset[str] = frozenset()

    def check_unchanged(self) -> None:
        """Raise where the file is gone or another than it was."""
        try:
            now = os.stat(self.path)
        except OSError as error:
            raise InputError(
                f"table {self.path!r} was there, and cannot be read any more: {error.strerror}",
                parameter="path",
            ) from error
        if (now.st_size, now.st_mtime_ns) != (self.size, self.changed):
            raise InputError(
                f"table {self.path!r} was changed while it was in use", parameter="path",
                hint="start anew",
            )  # fmt: skip


def read_schema(found: Found) -> tuple[TableFile, pa.Schema]:
    """Look at a file: its columns with their types, and its rows where it says how many."""
    with read_error(found.path):
        facts = os.stat(found.path)
        schema, n_rows = _LOOKS[found.kind](found.path)
        _ = schema.names  # decoded here, so that a wrong encoding shows at once
    file = TableFile(found.path, found.kind, n_rows, facts.st_size, facts.st_mtime_ns)
    if found.kind == "text":
        file = replace(file, bool_columns=bool_columns(schema))
    return file, schema


def _parquet_schema(path: str) -> tuple[pa.Schema, int | None]:
    from pyarrow import parquet

    with parquet.ParquetFile(path) as source:
        return source.schema_arrow, source.metadata.num_rows


def _arrow_schema(path: str) -> tuple[pa.Schema, int | None]:
    reader = open_arrow(path)
    # Files of the stream format cannot tell; old versions of pyarrow leave the counting to us.
    count = getattr(reader, "count_rows", None)
    if count is None and hasattr(reader, "num_record_batches"):
        batches = range(reader.num_record_batches)
        return reader.schema, sum(reader.get_batch(number).num_rows for number in batches)
    return reader.schema, None if count is None else count()


_LOOKS: dict[str, Callable[[str], tuple[pa.Schema, int | None]]] = {
    "Parquet": _parquet_schema,
    "Arrow": _arrow_schema,
    "text": lambda path: (text_schema(path), None),
}


def windows_of(
    file: TableFile, roles: Roles, part: int, threads: int, rows: int, *, promote: bool = False
) -> Iterator[Window]:
    """Give the rows of a file in windows.

    Parameters
    ----------
    file : TableFile
    roles : Roles
    part : int
        Number of the file in the table.
    threads : int
    rows : int
        Rows of a window, but for small row groups, which are windows as they are.
    promote : bool
        Whether a target in text that turns out to be of another kind may be read as that.
    """
    file.check_unchanged()
    location = Location(file.path, part, 0, is_text=file.kind == "text")
    if file.kind == "Parquet":
        with _Parquet(file.path) as source:
            yield from _parquet_windows(source, file, roles, location, threads, rows)
        return
    names = [name for name in roles.columns if name not in file.constants]
    with read_error(file.path):
        batches: Iterable[pa.RecordBatch]
        if file.kind == "Arrow":
            batches = arrow_batches(file, names)
        else:
            batches = text_batches(file.path, roles, names, file.bool_columns, promote=promote)
        for group in cut(batches, repeat(rows)):
            n_rows = sum(len(batch) for batch in group)
            shares = _shares(roles, file, -(-len(names) // threads))
            reads = [
                Read(columns, rest, partial(_completed, group, file, rest))
                for columns, rest in shares
            ]
            yield Window(n_rows, location, reads)
            location = location.after(n_rows)


def arrow_batches(file: TableFile, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Give some columns of an Arrow file in the batches that it has."""
    reader = open_arrow(file.path, names)
    batches: Iterable[pa.RecordBatch] = reader
    if hasattr(reader, "get_batch"):
        batches = map(reader.get_batch, range(reader.num_record_batches))
    for batch in batches:
        # Arrow takes a file at its word: in a damaged one, texts might end outside the memory.
        batch.validate(full=True)
        yield batch


def _shares(roles: Roles, file: TableFile, size: int) -> list[tuple[list[int], bool]]:
    """Split the features for reading; target, weights and constants go with the first share."""
    inside = [j for j, name in enumerate(roles.features) if name not in file.constants]
    outside = [j for j, name in enumerate(roles.features) if name in file.constants]
    shares = [inside[start : start + size] for start in range(0, len(inside), size)] or [[]]
    return [(share + outside * (i == 0), i == 0) for i, share in enumerate(shares)]


def _completed(
    batches: Iterable[pa.RecordBatch], file: TableFile, rest: bool
) -> Iterable[pa.RecordBatch]:
    """Add the columns that the folders of a file spell out, where they are asked for."""
    if not (rest and file.constants):
        return batches
    import pyarrow as pa

    return [
        pa.RecordBatch.from_arrays(
            [*batch.columns, *(pa.repeat(value, len(batch)) for value in file.constants.values())],
            names=[*batch.schema.names, *file.constants],
        )
        for batch in batches
    ]


class _Parquet:
    """Open handles of one file, as many as threads read it at once: none can be shared."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._all: list[Any] = []
        self._free: list[Any] = []
        self._positions: dict[str, int] = {}
        self.metadata: Any = None
        with read_error(path):
            self.metadata = self.handle().metadata

    def __enter__(self) -> _Parquet:
        return self

    def __exit__(self, *error: object) -> None:
        for handle in self._all:
            handle.close()

    def handle(self) -> Any:
        """Open the file once more."""
        from pyarrow import parquet

        # Mapped memory would count as ours page by page, and a file cut short would end the
        # process; read ahead, whole row groups would be held.
        handle = parquet.ParquetFile(
            self.path,
            metadata=self.metadata,
            buffer_size=BUFFER_BYTES,
            pre_buffer=False,
            page_checksum_verification=True,
        )
        self._all.append(handle)
        return handle

    @contextmanager
    def borrowed(self) -> Iterator[Any]:
        """Lend a handle that no other thread uses."""
        try:
            handle = self._free.pop()
        except IndexError:
            handle = self.handle()
        try:
            yield handle
        finally:
            self._free.append(handle)

    def held_in_step(self, groups: Sequence[int], features: Collection[str]) -> int:
        """Tell about how many bytes reading all features in step would hold of row groups."""
        if not self._positions:
            paths = self.metadata.schema
            self._positions = {paths.column(i).path: i for i in range(len(paths))}
        positions = [self._positions[name] for name in features if name in self._positions]
        return sum(
            min(PAGES_BYTES, group.column(i).total_uncompressed_size)
            for group in map(self.metadata.row_group, groups)
            for i in positions
        )

    def runs(self, rows: int) -> Iterator[tuple[list[int], int]]:
        """Row groups, small ones together, with the number of their rows."""
        run: list[int] = []
        held = 0
        for group in range(self.metadata.num_row_groups):
            n_rows = self.metadata.row_group(group).num_rows
            if run and held + n_rows > rows:
                yield run, held
                run, held = [], 0
            run.append(group)
            held += n_rows
        if held:
            yield run, held


def _parquet_windows(
    source: _Parquet, file: TableFile, roles: Roles, location: Location, threads: int, rows: int
) -> Generator[Window, None, None]:
    def named(columns: Sequence[int], rest: bool) -> list[str]:
        names = [roles.features[j] for j in columns]
        names += [*roles.targets, *filter(None, [roles.weights])] * rest
        return [name for name in names if name not in file.constants]

    def whole(groups: list[int], columns: Sequence[int], rest: bool) -> Iterable[pa.RecordBatch]:
        with read_error(file.path), source.borrowed() as handle:
            table = handle.read_row_groups(groups, named(columns, rest), use_threads=False)
            return _completed(table.to_batches(), file, rest)

    def steps(
        groups: list[int], columns: Sequence[int], rest: bool
    ) -> Generator[list[pa.RecordBatch], None, None]:
        with read_error(file.path), source.borrowed() as handle:
            batches = handle.iter_batches(rows, groups, named(columns, rest), use_threads=False)
            yield from cut(batches, repeat(rows))

    def step(steps: Iterator[Any], rest: bool) -> Iterable[pa.RecordBatch]:
        return _completed(next(steps, []), file, rest)

    first = location.first_row
    fair = -(-len(roles.features) // threads)
    for groups, n_rows in source.runs(rows):
        needed = 8 * len(roles.features) * n_rows
        if (
            n_rows <= rows
            or needed <= WHOLE_BYTES
            or needed <= source.held_in_step(groups, roles.features)
        ):
            size = max(1, min(fair, READ_BYTES // (8 * n_rows)))
            reads = [
                Read(columns, rest, partial(whole, groups, columns, rest))
                for columns, rest in _shares(roles, file, size)
            ]
            yield Window(n_rows, replace(location, first_row=first), reads)
        else:
            going = [
                (columns, rest, steps(groups, columns, rest))
                for columns, rest in _shares(roles, file, fair)
            ]
            for start in range(0, n_rows, rows):
                yield Window(
                    min(rows, n_rows - start),
                    replace(location, first_row=first + start),
                    [
                        Read(columns, rest, partial(step, ongoing, rest))
                        for columns, rest, ongoing in going
                    ],
                )
            # They wait for a call that never comes, and with them the handles that they borrowed.
            for _, _, ongoing in going:
                ongoing.close()
        first += n_rows
