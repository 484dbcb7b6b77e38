"""The rows of a stream gathered into arrays, in the order of the table, where they fit."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from exactk.errors import InputError, Setting
from exactk.streaming.base import Block, OnRows, Reducer, Stream
from exactk.streaming.moments import check_block, outputs, refuse_values
from exactk.streaming.target_encoding import Labels, TargetEncoding
from exactk.types import Floats, Indices

__all__ = ["RowsInMemory", "ToMemory", "TooLargeError", "check_unchanged", "read_into_memory"]


class TooLargeError(InputError):
    """The rows would take more memory than they may."""


@dataclass(frozen=True, eq=False)
class RowsInMemory:
    """Rows in memory.

    Attributes
    ----------
    X : ndarray of shape (n, m)
    codes : ndarray of intp of shape (n,) or None
        Which class each row has, where the target holds classes.
    values : ndarray of shape (n, c) or None
        The numbers otherwise.
    weights : ndarray of shape (n,) or None
    """

    X: Floats
    codes: Indices | None
    values: Floats | None
    weights: Floats | None


@dataclass
class _Chunk:
    """Rows of one block, and where they belong."""

    location: tuple[int, int]
    X: Floats
    y: npt.NDArray[np.float64] | Indices
    weights: Floats | None


@dataclass
class _Chunks:
    labels: Labels | None
    held: list[_Chunk] = field(default_factory=list)
    n_rows: int = 0


class ToMemory(Reducer[_Chunks, _Chunks]):
    """Keeps rows of positive weight.

    Parameters
    ----------
    names : tuple of str
        Columns of the table.
    target_encoding : TargetEncoding
        How its target is read; classes must be known.
    limit : int
        Bytes that the rows may take: beyond them a `TooLargeError` is raised.
    hint : tuple of str and Setting
        How they may take more, for messages.
    """

    def __init__(
        self,
        names: tuple[str, ...],
        target_encoding: TargetEncoding,
        limit: int,
        hint: tuple[str | Setting, ...],
    ) -> None:
        self.names, self.target_encoding = names, target_encoding
        self.limit, self.hint = limit, hint

    def begin(self) -> _Chunks:  # noqa: D102
        return _Chunks(self.target_encoding.start())

    def add(self, state: _Chunks, block: Block) -> None:  # noqa: D102
        check_block(block)
        if not np.isfinite(block.X).all():
            refuse_values(block, self.names)
        if block.weights is not None and not block.weights.any():
            return
        Y = outputs(block, self.target_encoding, state.labels)
        y = Y if state.labels is None else Y.argmax(axis=1).astype(np.intp)
        counted = slice(None) if block.weights is None else np.flatnonzero(block.weights)
        weights = None if block.weights is None else block.weights[counted]
        # A copy: a stream may use the block again.
        location = (block.location.part, block.location.first_row)
        chunk = _Chunk(location, np.array(block.X[counted], order="C"), y[counted], weights)
        state.held.append(chunk)
        state.n_rows += len(chunk.X)
        self._check(state.n_rows, "so far")

    def _check(self, n_rows: int, words: str = "") -> None:
        needed = 8 * n_rows * len(self.names)
        if needed > self.limit:
            raise TooLargeError(
                (f"{n_rows:,} rows {words}{' ' if words else ''}of {len(self.names):,} columns "
                 f"take {needed:,} bytes in memory, more than ", Setting("memory_limit"),
                 f" ({self.limit:,})"),
                parameter="memory_limit", hint=(*self.hint, ", or name fewer columns"),
            )  # fmt: skip

    def check_size(self, stream: Stream) -> None:
        """Raise before any reading where it is known that the rows do not fit."""
        if stream.n_rows is not None:
            self._check(stream.n_rows)

    def close(self, state: _Chunks) -> _Chunks | None:  # noqa: D102
        return _Chunks(None, state.held, state.n_rows) if state.held else None

    def merge(self, one: _Chunks, other: _Chunks) -> _Chunks:  # noqa: D102
        merged = _Chunks(None, one.held + other.held, one.n_rows + other.n_rows)
        self._check(merged.n_rows, "and more")
        return merged

    def assemble(self, chunks: _Chunks) -> RowsInMemory:
        """Make arrays of the chunks, in the order of the table; the chunks are used up."""
        held = sorted(chunks.held, key=lambda chunk: chunk.location)
        n = chunks.n_rows
        chunks.held.clear()
        weighted = held[0].weights is not None
        X, weights = np.empty((n, len(self.names))), np.empty(n if weighted else 0)
        y = np.empty((n, *held[0].y.shape[1:]), dtype=held[0].y.dtype)
        held.reverse()
        start = 0
        while held:
            # Each is let go once it is copied, so that the rows are hardly ever held twice.
            chunk = held.pop()
            rows = slice(start, start + len(chunk.X))
            X[rows], y[rows] = chunk.X, chunk.y
            if chunk.weights is not None:
                weights[rows] = chunk.weights
            start = rows.stop
        codes, values = (y, None) if self.target_encoding.labels else (None, y)
        return RowsInMemory(X, codes, values, weights if weighted else None)


def read_into_memory(
    stream: Stream,
    target_encoding: TargetEncoding,
    *,
    limit: int,
    on_rows: OnRows | None = None,
) -> RowsInMemory:
    """Read the rows of a stream into memory.

    Parameters
    ----------
    stream : Stream
    target_encoding : TargetEncoding
        How the target is read; classes must be known.
    limit : int
        Bytes that X may take, 8·n·m.
    on_rows : callable or None
        Told how many rows were read.

    Returns
    -------
    RowsInMemory
        Rows of positive weight, in the order of the table.

    Raises
    ------
    TooLargeError
        Before any reading, where the number of rows is known; else as soon as it shows.
    """
    reducer = ToMemory(stream.feature_names, target_encoding, limit, stream.memory_hint)
    reducer.check_size(stream)
    return reducer.assemble(stream.reduce(reducer, on_rows))


def check_unchanged(found: int, before: int) -> None:
    """Raise where a pass met more or fewer rows than the first.

    Examples
    --------
    >>> check_unchanged(999, 1000)
    Traceback (most recent call last):
    ...
    exactk.errors.InputError: the table has 999 rows of non-zero weight now and had 1,000 when it
    was read first; make the problem anew
    """
    if found != before:
        raise InputError(
            f"the table has {found:,} rows of non-zero weight now and had {before:,} when it was "
            "read first", parameter="X", hint="make the problem anew",
        )  # fmt: skip
