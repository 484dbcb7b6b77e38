"""What Spark's executors run: rows become parts, and parts travel in pieces and are merged."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np

from exactk.errors import InputError
from exactk.streams.arrow import Layout, blocks_of, rows_per_block
from exactk.streams.base import Fold, Place, Refused, fold_part, merge_parts

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "PIECES",
    "FoldPartition",
    "MergeParts",
    "MixedError",
    "Post",
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
class Post:
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

    fold: Fold[Any, Any]
    read: tuple[str, ...]
    layout: Layout
    vector: str | None
    post: Post

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Fold the rows of this task's partition."""
        number = _partition()
        place = Place(f"partition {number}", number, 0)
        part = fold_part(self.fold, blocks_of(self._named(batches, place), self.layout, place))
        if isinstance(part, Refused):
            # Rows that did not become a block are told with the place of the one before.
            part = replace(part, place=(number, part.place[1]))
        yield from self.post.send(part)

    def _named(self, batches: Iterable[pa.RecordBatch], place: Place) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        first = 0
        for batch in batches:
            named = pa.RecordBatch.from_arrays(batch.columns, names=list(self.read))
            if self.vector is None:
                yield named
            else:
                yield from self._spread(named, replace(place, first_row=first))
            first += batch.num_rows

    def _spread(self, batch: pa.RecordBatch, place: Place) -> Iterator[pa.RecordBatch]:
        """Make a column of each entry of the vectors, for some rows at a time."""
        import pyarrow as pa

        assert self.vector is not None
        names, width = self.layout.features, len(self.layout.features)
        others = [name for name in self.read if name != self.vector]
        step = rows_per_block(width)
        for start in range(0, batch.num_rows, step):
            rows = batch.slice(start, step)
            vectors = rows.column(self.vector)
            _check_lengths(
                vectors, self.vector, width, replace(place, first_row=place.first_row + start)
            )
            values = vectors.flatten().to_numpy(zero_copy_only=False)
            entries = np.ascontiguousarray(values.reshape(rows.num_rows, width).T)
            yield pa.RecordBatch.from_arrays(
                [*map(pa.array, entries), *map(rows.column, others)], names=[*names, *others]
            )


@dataclass(frozen=True, eq=False)
class MergeParts:
    """The later stages: the parts that reach one task become one part."""

    fold: Fold[Any, Any]
    post: Post

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Merge the parts whose pieces reach this task."""
        pieces = (
            (*(number.as_py() for number in numbers), body.as_buffer())
            for batch in batches
            for *numbers, body in zip(*batch.columns[1:], strict=True)
        )
        yield from self.post.send(merge_parts(self.fold, unpacked(pieces)))


def _partition() -> int:
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    return int(context.partitionId())


def _check_lengths(vectors: Any, name: str, width: int, place: Place) -> None:
    import pyarrow.compute as pc

    lengths = pc.fill_null(pc.list_value_length(vectors), -1).to_numpy(zero_copy_only=False)
    wrong = np.flatnonzero(lengths != width)
    if not wrong.size:
        return
    row, length = int(wrong[0]), int(lengths[wrong[0]])
    where = place.rows(row, row + 1)
    if length < 0:
        raise InputError(f"column {name!r} is missing in {where}; fill it in, or drop those rows")
    raise InputError(
        f"column {name!r} has {length} entries in {where}, and {width} elsewhere; all rows must "
        f"have the same number"
    )
