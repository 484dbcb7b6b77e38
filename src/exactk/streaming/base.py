"""What a table that is passed over is made of, and what a pass computes.

A `Stream` gives its rows in blocks, as often as it is asked; a `Fold` says what becomes of them.
The stream decides who does the work (threads, Dask workers, Spark executors), the fold what is
done: it travels to the workers, adds up the blocks of one part of the table there, and merges what
parts have come to. Nothing else of the table ever reaches the caller.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic, TypeVar

import numpy.typing as npt

from exactk.errors import InputError, Row, Setting
from exactk.types import Floats, Indices

__all__ = [
    "Block",
    "EncodedLabels",
    "Location",
    "OnRows",
    "PartitionError",
    "Reducer",
    "Stream",
    "merge_partitions",
    "reduce_partition",
    "unwrap",
]

# Told how many rows were read, and of how many if that is known.
OnRows = Callable[[int, int | None], None]

State = TypeVar("State")
Part = TypeVar("Part")


@dataclass(frozen=True)
class Location:
    """Where a block of rows lies.

    Attributes
    ----------
    source : str
        In words: a file, or "partition 3".
    part : int
        Number of the file or partition, in the order of the table.
    first_row : int
        Number of the first row within it, from 0.
    is_text : bool
        Whether it is a file of text. Messages then count its lines; the header is line 1.

    Examples
    --------
    >>> Location("day-2.parquet", part=1, first_row=100).rows(3, 7)
    'day-2.parquet, rows 103 to 106 (from 0)'
    >>> Location("day-2.csv", part=1, first_row=100, is_text=True).rows(3, 4)
    'day-2.csv, line 105'
    """

    source: str
    part: int
    first_row: int
    is_text: bool = False

    def rows(self, start: int, stop: int) -> str:
        """Name some rows of the block, for a message."""
        first, last = Row(self.first_row + start), Row(self.first_row + stop - 1)
        if self.is_text:
            span = first.line if first == last else f"lines {first.number + 2} to {last.number + 2}"
            return f"{self.source}, {span}"
        span = first if first == last else f"rows {first.number} to {last.number}"
        return f"{self.source}, {span} (from 0)"

    def row(self, index: int) -> str:
        """Name a row without its source."""
        row = Row(self.first_row + index)
        return row.line if self.is_text else row

    def after(self, n_rows: int) -> Location:
        """Return the place some rows further on."""
        return replace(self, first_row=self.first_row + n_rows)


@dataclass(frozen=True, eq=False)
class EncodedLabels:
    """A column of labels: which of a short list each row has."""

    codes: Indices
    labels: Sequence[Any]


@dataclass(frozen=True, eq=False)
class Block:
    """Some rows of a table.

    Attributes
    ----------
    X : ndarray of shape (n, d)
        Float64 in Fortran order; whoever gets the block may overwrite it, but not keep it: the
        stream may use the memory for the next one.
    y : ndarray of shape (n,) or (n, c), or EncodedLabels
        Numbers, or labels.
    weights : ndarray of shape (n,) or None
    location : Location
    """

    X: Floats
    y: npt.NDArray[Any] | EncodedLabels
    weights: Floats | None
    location: Location


class Reducer(ABC, Generic[State, Part]):
    """A computation over blocks: pickled, sent to where the rows are, and merged.

    ``begin`` makes a state, ``add`` changes it block by block, ``close`` makes of it what is sent
    back, and ``merge`` unites two of these. ``merge`` must not depend on the order of parts but
    for rounding.

    Attributes
    ----------
    n_matrices : int
        How many d × d matrices a state holds: streams keep fewer states at once if there are many.
    """

    n_matrices: int = 1

    @abstractmethod
    def begin(self) -> State:
        """Return the state before any row."""

    @abstractmethod
    def add(self, state: State, block: Block) -> None:
        """Take a block in; raises InputError for rows that cannot be used."""

    @abstractmethod
    def close(self, state: State) -> Part | None:
        """Return what a part of the table has come to; None if it had no rows."""

    @abstractmethod
    def merge(self, one: Part, other: Part) -> Part:
        """Unite what two parts have come to."""


@dataclass(frozen=True, eq=False)
class PartitionError:
    """Bad input found by a worker, on its way home: a cluster would retry what is raised."""

    error: InputError
    location: tuple[int, int]


class Stream(ABC):
    """A table that can be passed over again and again.

    Attributes
    ----------
    feature_names : tuple of str
    target : str or None
        Name of the column to predict, where there is one name.
    y_kind : {"text", "bool", "int", "float"}
        What the target holds: labels, true or false, whole numbers, numbers.
    n_outputs : int
        Columns of the target.
    n_rows : int or None
        Rows, where that is known without a pass.
    hint : str
        Whose memory limit counts, where the caller may not know it: " of Problem.from_dask".
    """

    hint: ClassVar[str] = ""
    feature_names: tuple[str, ...]
    target: str | None = None
    y_kind: str = "float"
    n_outputs: int = 1
    n_rows: int | None = None

    @property
    def n_features(self) -> int:
        """Number of columns of X."""
        return len(self.feature_names)

    @property
    def memory_hint(self) -> tuple[str | Setting, ...]:
        """How to give it more memory, for messages."""
        return "raise ", Setting("memory_limit"), self.hint

    @abstractmethod
    def reduce(self, reducer: Reducer[Any, Part], on_rows: OnRows | None = None) -> Part:
        """Pass over the table once.

        Parameters
        ----------
        reducer : Fold
        on_rows : callable or None
            Told now and then how many rows were read, where the stream can say.

        Returns
        -------
        object
            What the fold makes of the whole table.

        Raises
        ------
        InputError
            What the fold, or the stream itself, found wrong; or there are no rows.
        """


def reduce_partition(
    reducer: Reducer[Any, Part], blocks: Iterable[Block]
) -> Part | PartitionError | None:
    """Fold the blocks of one part of a table; bad input is returned and not raised."""
    state, location = reducer.begin(), (0, 0)
    try:
        for block in blocks:
            location = (block.location.part, block.location.first_row)
            reducer.add(state, block)
        return reducer.close(state)
    except InputError as error:
        return PartitionError(error, location)


def merge_partitions(
    reducer: Reducer[Any, Part], parts: Iterable[Part | PartitionError | None]
) -> Part | PartitionError | None:
    """Merge what parts have come to; of those refused the first in the table is kept."""
    whole: Part | PartitionError | None = None
    for part in parts:
        if part is None:
            continue
        if isinstance(part, PartitionError):
            if not isinstance(whole, PartitionError) or part.location < whole.location:
                whole = part
        elif whole is None:
            whole = part
        elif not isinstance(whole, PartitionError):
            whole = _merged(reducer, whole, part)
    return whole


def _merged(reducer: Reducer[Any, Part], one: Part, other: Part) -> Part | PartitionError:
    try:
        return reducer.merge(one, other)
    except InputError as error:
        # Labels of two kinds, for example: no single place is to blame.
        return PartitionError(error, (0, 0))


def unwrap(whole: Part | PartitionError | None) -> Part:
    """Return what a pass has come to, or raise what it was refused for."""
    if isinstance(whole, PartitionError):
        raise whole.error
    if whole is None:
        raise InputError("the table has no rows of non-zero weight", parameter="X")
    return whole
