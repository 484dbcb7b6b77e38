"""Spark tables: each partition is folded where it lies, and executors merge the rest in a tree.

Only data frames are used, no RDDs. Spark throws away what a failed task has sent, so a task that
is tried again counts once.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np

from exactk.errors import InputError
from exactk.streaming.arrow import Roles, blocks_of, resolve_roles, rows_per_block
from exactk.streaming.base import (
    Location,
    OnRows,
    Part,
    PartitionError,
    Reducer,
    Stream,
    merge_partitions,
    reduce_partition,
    unwrap,
)

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession

__all__ = [
    "PIECES",
    "FoldPartition",
    "MergeParts",
    "MixedError",
    "Sender",
    "SparkStream",
    "open_spark",
    "piece_bytes",
    "unpacked",
]


# What a partition has come to, in pieces: whose it is, the digest of the whole, which bytes of how
# many, and which of the tasks to come shall have it.
PIECES = "receiver int, sender int, digest long, start long, size long, body binary"
# Spark fills its Arrow batches by rows, so pieces are as large as lets a full batch have this many
# bytes: more than 2 GB it cannot hold, and what it holds is outside the heap.
BATCH_BYTES = 64 * 2**20
SMALLEST_PIECE, LARGEST_PIECE = 2**12, 2**20
# What the table has come to is fetched in shares: Java copies the result of a task several times.
SHARE_BYTES = 16 * 2**20


def piece_bytes(rows: int) -> int:
    """Return how large pieces may be where a batch has this many rows.

    Examples
    --------
    >>> piece_bytes(10_000), piece_bytes(1)
    (6710, 1048576)
    """
    return max(SMALLEST_PIECE, min(LARGEST_PIECE, BATCH_BYTES // rows))


@dataclass(frozen=True)
class Sender:
    """How a task sends what it has come to: to one of some tasks, or (None) in shares to all."""

    receivers: int | None
    piece: int

    def send(self, part: Any) -> Iterator[pa.RecordBatch]:
        """Cut a part into rows of pieces; there are none if there is no part."""
        import pyarrow as pa

        if part is None:
            return
        sender = _partition()
        body = memoryview(pickle.dumps(part, protocol=pickle.HIGHEST_PROTOCOL))
        digest = int.from_bytes(blake2b(body, digest_size=8).digest(), "big", signed=True)
        step = max(1, BATCH_BYTES // self.piece) * self.piece
        for first in range(0, len(body), step):
            starts = range(first, min(first + step, len(body)), self.piece)
            yield pa.RecordBatch.from_arrays(
                [
                    pa.array([self._receiver(sender, start) for start in starts], pa.int32()),
                    pa.array([sender] * len(starts), pa.int32()),
                    pa.array([digest] * len(starts), pa.int64()),
                    pa.array(starts, pa.int64()),
                    pa.array([len(body)] * len(starts), pa.int64()),
                    pa.array([body[start : start + self.piece] for start in starts], pa.binary()),
                ],
                names=["receiver", "sender", "digest", "start", "size", "body"],
            )

    def _receiver(self, sender: int, start: int) -> int:
        return start // SHARE_BYTES if self.receivers is None else sender % self.receivers


class MixedError(RuntimeError):
    """Pieces of two attempts at one task came together, and the attempts differ."""


def unpacked(pieces: Iterable[tuple[int, int, int, int, Any]]) -> Iterator[Any]:
    """Put the pieces of each sender together again; a part is given as soon as it is whole."""
    held: dict[int, bytearray] = {}
    missing: dict[int, int] = {}
    digests: dict[int, int] = {}
    for sender, digest, start, size, body in pieces:
        if digests.setdefault(sender, digest) != digest:
            raise MixedError(
                f"Spark ran the task of partition {sender} again while its result was fetched, "
                f"and the rows came in another order; try again, or cache the table"
            )
        if sender not in held:
            held[sender], missing[sender] = bytearray(size), size
        held[sender][start : start + len(body)] = body
        missing[sender] -= len(body)
        if not missing[sender]:
            yield pickle.loads(held.pop(sender))
    if held:
        raise RuntimeError(f"Spark delivered the parts of {len(held)} partitions incompletely")


@dataclass(frozen=True, eq=False)
class FoldPartition:
    """The first stage: the rows of one partition become one part."""

    reducer: Reducer[Any, Any]
    read: tuple[str, ...]
    roles: Roles
    vector: str | None
    post: Sender

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Fold the rows of this task's partition."""
        number = _partition()
        location = Location(f"partition {number}", number, 0)
        part = reduce_partition(
            self.reducer, blocks_of(self._named(batches, location), self.roles, location)
        )
        if isinstance(part, PartitionError):
            # Rows that did not become a block are told with the place of the one before.
            part = replace(part, location=(number, part.location[1]))
        yield from self.post.send(part)

    def _named(
        self, batches: Iterable[pa.RecordBatch], location: Location
    ) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        first = 0
        for batch in batches:
            named = pa.RecordBatch.from_arrays(batch.columns, names=list(self.read))
            if self.vector is None:
                yield named
            else:
                yield from self._spread(named, replace(location, first_row=first))
            first += batch.num_rows

    def _spread(self, batch: pa.RecordBatch, location: Location) -> Iterator[pa.RecordBatch]:
        """Make a column of each entry of the vectors, for some rows at a time."""
        import pyarrow as pa

        assert self.vector is not None
        names, width = self.roles.features, len(self.roles.features)
        others = [name for name in self.read if name != self.vector]
        step = rows_per_block(width)
        for start in range(0, batch.num_rows, step):
            rows = batch.slice(start, step)
            vectors = rows.column(self.vector)
            _check_lengths(
                vectors, self.vector, width, replace(location, first_row=location.first_row + start)
            )
            values = vectors.flatten().to_numpy(zero_copy_only=False)
            entries = np.ascontiguousarray(values.reshape(rows.num_rows, width).T)
            yield pa.RecordBatch.from_arrays(
                [*map(pa.array, entries), *map(rows.column, others)], names=[*names, *others]
            )


@dataclass(frozen=True, eq=False)
class MergeParts:
    """The later stages: the parts that reach one task become one part."""

    reducer: Reducer[Any, Any]
    post: Sender

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Merge the parts whose pieces reach this task."""
        pieces = (
            (*(number.as_py() for number in numbers), body.as_buffer())
            for batch in batches
            for *numbers, body in zip(*batch.columns[1:], strict=True)
        )
        yield from self.post.send(merge_partitions(self.reducer, unpacked(pieces)))


def _partition() -> int:
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    return int(context.partitionId())


def _check_lengths(vectors: Any, name: str, width: int, location: Location) -> None:
    import pyarrow.compute as pc

    lengths = pc.fill_null(pc.list_value_length(vectors), -1).to_numpy(zero_copy_only=False)
    wrong = np.flatnonzero(lengths != width)
    if not wrong.size:
        return
    row, length = int(wrong[0]), int(lengths[wrong[0]])
    where = location.rows(row, row + 1)
    if length < 0:
        raise InputError(
            f"column {name!r} is missing in {where}", parameter="X",
            hint="fill it in, or drop those rows",
        )  # fmt: skip
    raise InputError(
        f"column {name!r} has {length} entries in {where}, and {width} elsewhere", parameter="X",
        hint="all rows must have the same number",
    )  # fmt: skip


# A task merges about this many parts, one after the other.
FAN_IN = 16
# How many shares the result is fetched in where Spark may not choose.
SHARES = 16
# How often it is fetched until all shares are of the same attempt at the last task.
FETCHES = 3


def open_spark(
    df: DataFrame,
    target: str | Sequence[str],
    *,
    columns: str | Sequence[str] | None = None,
    drop: Sequence[str] = (),
    weights: str | None = None,
    task: str = "auto",
) -> SparkStream:
    """Open a Spark data frame as a stream.

    Types are checked before any job. exactk must be installed where the executors run, as must
    pyarrow; ``PYSPARK_PYTHON`` says which Python that is. A pass needs d × d numbers three times
    and some rows for each task at a time, in Python's memory, not in Java's
    (``spark.executor.pyspark.memory``, ``spark.executor.memoryOverhead``).

    Parameters
    ----------
    df : pyspark.sql.DataFrame
        Read once in every pass: cache it if it is dear to compute.
    target : str or sequence of str
        Column to predict: text, true or false, or numbers; several columns of numbers for
        several outputs.
    columns : str, sequence of str, or None
        Features: columns of numbers, or one column of vectors (`pyspark.ml`) or arrays of
        numbers, all of one length. None takes every column that has no other part.
    drop : sequence of str
        Columns to leave out.
    weights : str or None
        Column of row weights.
    task : {"auto", "classification", "regression"}
        What the target is read as.

    Returns
    -------
    SparkStream

    Raises
    ------
    InputError
        A column is not there, or does not hold what its part needs.

    Examples
    --------
    With a session ``spark``::

        rows = [(1.0, 2, "a"), (3.0, 5, "b")]
        df = spark.createDataFrame(rows, "x double, n int, y string")
        open_spark(df, "y").feature_names  # ('x', 'n')
    """
    _check_frame(df)
    schema = df.schema
    targets = [target] if isinstance(target, str) else list(target)
    if isinstance(columns, str):
        columns = [columns]
    vector = _vector_column(schema, columns, {*targets, weights, *drop})
    kinds = _arrow_schema(schema, vector)
    roles = resolve_roles(kinds, target, columns=columns, drop=drop, weights=weights, task=task)
    # By position, for names may hold dots, or differ by case alone, which Spark would not tell.
    numbered = df.toDF(*[f"c{i}" for i in range(len(schema.names))])
    read = roles.columns
    frame = numbered.select(
        *[_plain_column(f"c{schema.names.index(name)}", schema[name].dataType) for name in read]
    )
    if vector is None:
        return SparkStream(frame, tuple(read), roles)
    names = _entry_names(frame, read.index(vector), schema[vector])
    return SparkStream(frame, tuple(read), replace(roles, features=names), vector)


class SparkStream(Stream):
    """A Spark data frame, opened by `open_spark`.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
        The columns that are read, under any names.
    read : tuple of str
        Their names.
    roles : Roles
        Which of them is what.
    vector : str or None
        The column whose entries are the features, if it is one.
    """

    hint = " of Problem.from_spark"

    def __init__(
        self, frame: DataFrame, read: tuple[str, ...], roles: Roles, vector: str | None = None
    ) -> None:
        self.frame, self.read, self.roles, self.vector = frame, read, roles, vector
        self.feature_names = roles.features
        self.target = roles.targets[0] if len(roles.targets) == 1 else None
        self.y_kind, self.n_outputs = roles.y_kind, len(roles.targets)

    def reduce(self, reducer: Reducer[Any, Part], on_rows: OnRows | None = None) -> Part:
        """Pass over the table once; Spark has a display of its own for how far it is."""
        session = self.frame.sparkSession
        piece = piece_bytes(
            _number(session, "spark.sql.execution.arrow.maxRecordsPerBatch", 10_000)
        )
        receivers = _receivers(_number(session, "spark.sql.shuffle.partitions", 200))
        folding = FoldPartition(
            reducer, self.read, self.roles, self.vector, Sender(receivers[0], piece)
        )
        parts = self.frame.mapInArrow(folding, PIECES)
        for now, after in zip(receivers, [*receivers[1:], None], strict=True):
            merging = MergeParts(reducer, Sender(after, piece))
            # In the order of senders, so that a task that is run again rounds as it did before.
            gathered = _gathered(parts, now, session).sortWithinPartitions("sender", "start")
            parts = gathered.mapInArrow(merging, PIECES)
        found = _fetched(_gathered(parts, SHARES, session))
        whole = merge_partitions(reducer, found)
        return unwrap(whole)


def _fetched(shares: DataFrame, fetches: int = FETCHES) -> list[Any]:
    """Fetch what the last task has come to, share by share; Spark may run it again in between."""
    try:
        return list(unpacked(row[1:] for row in shares.toLocalIterator()))
    except MixedError:
        if fetches == 1:
            raise
    return _fetched(shares, fetches - 1)


def _receivers(n_tasks: int) -> list[int]:
    """How many tasks merge, level by level, down to one.

    Examples
    --------
    >>> _receivers(200), _receivers(1)
    ([200, 13, 1], [1])
    """
    levels = [n_tasks]
    while levels[-1] > 1:
        levels.append(-(-levels[-1] // FAN_IN))
    return levels


def _gathered(parts: DataFrame, receivers: int, session: SparkSession) -> DataFrame:
    """Bring the parts of each receiver together."""
    # How many parts there are is not known without a job. Where Spark may join small shuffle
    # partitions while it runs, tasks with nothing to merge never start; it does so only if it is
    # not told a number.
    adaptive = ("spark.sql.adaptive.enabled", "spark.sql.adaptive.coalescePartitions.enabled")
    if receivers > 1 and all(session.conf.get(name, "true") == "true" for name in adaptive):
        return parts.repartition("receiver")
    return parts.repartition(receivers, "receiver")


def _number(session: SparkSession, name: str, default: int) -> int:
    """A setting above 0; some platforms have "auto" there, and 0 stands for no limit."""
    text = str(session.conf.get(name, str(default)))
    return int(text) if text.isdigit() and int(text) > 0 else default


def _check_frame(df: Any) -> None:
    if hasattr(df, "to_spark"):
        raise InputError("df is a pandas-on-Spark frame", parameter="X", hint="give df.to_spark()")
    if not (hasattr(df, "mapInArrow") and hasattr(df, "schema")):
        raise InputError(
            f"df must be a Spark data frame (pyspark.sql.DataFrame), not {type(df).__name__}",
            parameter="X",
        )
    if df.isStreaming:
        raise InputError(
            "df is a streaming data frame, which has no end", parameter="X",
            hint="give one that has",
        )  # fmt: skip


def _is_vector(kind: Any) -> bool:
    """Whether a Spark type holds several numbers a row."""
    from pyspark.sql import types

    if type(kind).__name__ == "VectorUDT":
        return True
    return isinstance(kind, types.ArrayType) and _is_number(kind.elementType)


def _is_number(kind: Any) -> bool:
    from pyspark.sql import types

    return isinstance(kind, (types.NumericType, types.BooleanType))


def _vector_column(schema: Any, columns: Sequence[str] | None, out: set[Any]) -> str | None:
    """The column whose entries are the features, if the features are one such column."""
    names = schema.names if columns is None else columns
    features = [name for name in names if name not in out and name in schema.names]
    vectors = [name for name in features if _is_vector(schema[name].dataType)]
    if vectors and len(features) > 1:
        raise InputError(
            f"column {vectors[0]!r} holds vectors, and stands beside {len(features) - 1} other "
            "feature columns",
            parameter="columns",
            hint=(
                f"name it alone (columns=[{vectors[0]!r}]), drop it, or join them "
                "with VectorAssembler"
            ),
        )
    return vectors[0] if vectors else None


def _arrow_schema(schema: Any, vector: str | None) -> pa.Schema:
    """The types of a Spark table as Arrow has them; a vector stands for its numbers."""
    import pyarrow as pa
    from pyspark.sql import types

    exact = {
        types.BooleanType: pa.bool_(), types.ByteType: pa.int8(), types.ShortType: pa.int16(),
        types.IntegerType: pa.int32(), types.LongType: pa.int64(), types.FloatType: pa.float32(),
        types.DoubleType: pa.float64(), types.DecimalType: pa.float64(),
        types.StringType: pa.string(), types.CharType: pa.string(), types.VarcharType: pa.string(),
        types.DateType: pa.date32(), types.TimestampType: pa.timestamp("us"),
        types.BinaryType: pa.binary(), types.NullType: pa.null(),
        types.ArrayType: pa.list_(pa.null()),
    }  # fmt: skip
    # What is not in the list cannot be used: that it is not a number is all that is to be said.
    fields = [
        (field.name, pa.float64())
        if field.name == vector
        else (field.name, exact.get(type(field.dataType), pa.struct([])))
        for field in schema
    ]
    return pa.schema(fields)


def _plain_column(name: str, kind: Any) -> Column:
    """A column as it is sent: vectors as arrays, decimals as the doubles they will become."""
    from pyspark.sql import functions, types

    column = functions.col(name)
    if type(kind).__name__ == "VectorUDT":
        from pyspark.ml.functions import vector_to_array

        return vector_to_array(column).alias(name)
    if isinstance(kind, types.DecimalType):
        return column.cast("double").alias(name)
    floats = (types.FloatType, types.DoubleType)
    if isinstance(kind, types.ArrayType) and not isinstance(kind.elementType, floats):
        return column.cast("array<double>").alias(name)
    return column


def _entry_names(frame: DataFrame, position: int, field: Any) -> tuple[str, ...]:
    """Names of the entries of vectors: those that VectorAssembler noted, else numbered."""
    attributes = field.metadata.get("ml_attr", {})
    known = {
        entry["idx"]: entry["name"]
        for group in attributes.get("attrs", {}).values()
        for entry in group
        if "name" in entry
    }
    width = attributes.get("num_attrs") or _first_length(frame, position, field.name)
    names = tuple(known.get(i, f"{field.name}[{i}]") for i in range(width))
    if len(set(names)) < width:
        return tuple(f"{field.name}[{i}]" for i in range(width))
    return names


def _first_length(frame: DataFrame, position: int, name: str) -> int:
    from pyspark.sql import functions

    row = frame.select(functions.size(frame.columns[position])).first()
    if row is None:
        raise InputError("the table has no rows", parameter="X")
    length = row[0]
    if length is None or length < 1:
        what = "has no entries" if length == 0 else "is missing"
        raise InputError(f"column {name!r} {what} in the first row of the table", parameter="X")
    return int(length)
