"""Threads that read a table together and add it up apart.

The rows come in windows. All threads read the columns of a window, into blocks; then each lane
folds its share of the blocks into a state of its own. Which block falls to which lane follows from
the number of rows alone, so that the same table gives the same numbers to the last bit on every
run, and never more than one window is in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from exactk.errors import InputError
from exactk.native.threads import one_blas_thread
from exactk.streaming.arrow import (
    BLOCK_BYTES,
    MissingError,
    Roles,
    cut,
    fill,
    finish_block,
    rows_per_block,
)
from exactk.streaming.base import (
    Block,
    EncodedLabels,
    Location,
    OnRows,
    PartitionError,
    Reducer,
    merge_partitions,
)
from exactk.types import Floats

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Read", "Window", "fold_windows", "n_lanes", "window_rows"]

Part = TypeVar("Part")
Task = Callable[[], None]

# What the matrices of all states may take together, unless two of them take more.
STATE_BYTES = 256 * 2**20


@dataclass(frozen=True, eq=False)
class Read:
    """Gives some columns of a window.

    Attributes
    ----------
    columns : sequence of int
        Positions of the features.
    rest : bool
        Whether target and weights come with them.
    batches : callable
        Returns record batches that have all rows of the window.
    """

    columns: Sequence[int]
    rest: bool
    batches: Callable[[], Iterable[pa.RecordBatch]]


@dataclass(frozen=True, eq=False)
class Window:
    """Consecutive rows of one file, and the ways to their columns."""

    n_rows: int
    location: Location
    reads: Sequence[Read]


def n_lanes(n_features: int, threads: int, n_matrices: int = 1) -> int:
    """Return how many states are kept side by side: few where their matrices are large or many.

    Examples
    --------
    >>> n_lanes(100, 64), n_lanes(1_400, 64), n_lanes(1_400, 64, n_matrices=5), n_lanes(5_000, 64)
    (64, 17, 3, 2)
    """
    matrix = 8 * max(1, n_features) ** 2
    if matrix > BLOCK_BYTES:
        threads = min(threads, 2)
    return max(1, min(threads, max(2 * matrix, STATE_BYTES) // (matrix * max(1, n_matrices))))


def window_rows(n_features: int, threads: int, n_matrices: int = 1) -> int:
    """Return how many rows give every lane one block."""
    return n_lanes(n_features, threads, n_matrices) * rows_per_block(n_features)


def fold_windows(
    windows: Generator[Window, None, None],
    roles: Roles,
    reducer: Reducer[Any, Part],
    *,
    threads: int,
    on_rows: OnRows | None = None,
    total: int | None = None,
) -> Part | PartitionError | None:
    """Fold a table that comes in windows.

    Parameters
    ----------
    windows : generator of Window
        In the order of the table; closed in the end, whatever happens.
    roles : Roles
    reducer : Fold
    threads : int
    on_rows : callable or None
        Told after each window, in the thread of the caller, how many rows were read.
    total : int or None
        Number of rows, where it is known.

    Raises
    ------
    InputError
        The first flaw in the order of the table.
    """
    lanes = n_lanes(len(roles.features), threads, reducer.n_matrices)
    states = [reducer.begin() for _ in range(lanes)]
    buffers: list[Floats] = []
    done = 0
    with closing(windows), _blas_threads(threads // lanes), _thread_pool(threads) as run:
        for window in windows:
            frame = _Frame(window, roles, lanes, buffers)
            run([partial(frame.fill, read) for read in window.reads])
            frame.raise_first()
            run([partial(frame.reducer, reducer, state, lane) for lane, state in enumerate(states)])
            frame.raise_first()
            done += window.n_rows
            if on_rows is not None:
                on_rows(done, total)
    return merge_partitions(reducer, map(reducer.close, states))


def _blas_threads(threads: int) -> AbstractContextManager[Any]:
    if threads <= 1:
        return one_blas_thread()
    from threadpoolctl import threadpool_limits

    return threadpool_limits(threads, user_api="blas")


@contextmanager
def _thread_pool(threads: int) -> Iterator[Callable[[Iterable[Task]], None]]:
    """Run tasks side by side; after an error or Ctrl-C those not yet begun are left undone."""
    if threads == 1:

        def run(tasks: Iterable[Task]) -> None:
            for task in tasks:
                task()

        yield run
        return
    pool = ThreadPoolExecutor(threads, thread_name_prefix="exactk-files")

    def run_concurrently(tasks: Iterable[Task]) -> None:
        for done in [pool.submit(task) for task in tasks]:
            done.result()

    try:
        yield run_concurrently
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


class _Frame:
    """The blocks of a window."""

    def __init__(self, window: Window, roles: Roles, lanes: int, buffers: list[Floats]) -> None:
        self._window, self._layout, self._lanes = window, roles, lanes
        d = len(roles.features)
        rounds = -(-window.n_rows // (lanes * rows_per_block(d)))
        ends = np.linspace(0, window.n_rows, min(rounds * lanes, window.n_rows) + 1).astype(int)
        self._starts, self._sizes = ends[:-1], np.diff(ends)
        # Memory that is new costs more to touch than the rows cost to copy.
        missing = len(self._sizes) - len(buffers)
        buffers += [np.empty(rows_per_block(d) * d) for _ in range(missing)]
        self._blocks = [
            buffer[: size * d].reshape((size, d), order="F")
            for buffer, size in zip(buffers, self._sizes, strict=False)
        ]
        self._rest: list[list[pa.RecordBatch]] = []
        self._flaws: list[tuple[int, int, InputError]] = []

    def fill(self, read: Read) -> None:
        """Read some columns and copy them to where they belong."""
        location, first = self._window.location, self._window.location.first_row
        try:
            pieces = list(read.batches())
            if sum(piece.num_rows for piece in pieces) != self._window.n_rows:
                raise InputError(
                    f"table {location.source!r} has fewer rows than it announces", parameter="path",
                    hint="it is damaged, or was changed meanwhile",
                )  # fmt: skip
            fill(self._blocks, pieces, read.columns, self._layout, location)
            if read.rest:
                self._rest = list(cut(pieces, self._sizes))
        except MissingError as error:
            self._flaws.append((error.row, min(read.columns, default=0), error))
        except InputError as error:
            self._flaws.append((first, 0, error))

    def reducer(self, reducer: Reducer[Any, Any], state: Any, lane: int) -> None:
        """Fold the blocks of one lane."""
        for number in range(lane, len(self._blocks), self._lanes):
            try:
                block = finish_block(
                    self._blocks[number], self._rest[number], self._layout, self._place(number)
                )
                _refuse_line_breaks(block, self._layout.targets[0])
                reducer.add(state, block)
            except InputError as error:
                self._flaws.append((self._place(number).first_row, 0, error))
                return

    def _place(self, number: int) -> Location:
        return self._window.location.after(int(self._starts[number]))

    def raise_first(self) -> None:
        """Raise the flaw that comes first in the table, if there is any."""
        if self._flaws:
            raise min(self._flaws, key=lambda problem: problem[:2])[2]


def _refuse_line_breaks(block: Block, target: str) -> None:
    if isinstance(block.y, EncodedLabels) and any("\n" in label for label in block.y.labels):
        raise InputError(
            f"target column {target!r} has a label with a line break in {block.location.source}",
            parameter="target", hint="is a quote left open?",
        )  # fmt: skip
