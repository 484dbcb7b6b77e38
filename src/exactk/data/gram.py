"""The Gram matrix behind a Problem: whole, or column by column as they are asked for.

Which of the two is a question of cost, answered as a renter answers when to buy: columns are
fetched singly until what they cost together has reached the price of the whole matrix, which is
then computed if it fits the memory limit. As far as the estimates of cost are right, the total is
at most twice that of the cheaper choice.

Columns that are asked for together come from one pass over the table: `take` and `prefetch` make
one matrix product of many columns, which for a dense table costs little more than one column.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from threading import RLock
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from exactk.data.design_matrix import DesignMatrix, far_from_zero
from exactk.data.moments import Margins, Moments
from exactk.data.targets import Target
from exactk.errors import InputError
from exactk.params import Choice, Integer
from exactk.types import Floats, Indices

__all__ = ["ColumnGram", "Gram", "GramMode", "WholeGram", "check_memory_limit", "choose_gram"]

GramMode = Literal["auto", "full", "columns"]

# At first sight the whole matrix is computed only where it costs no more than this many columns.
FIRST_COLUMNS = 16
# Columns fetched together are at most this share of those that may be kept.
PARTS = 4


class Gram(ABC):
    """Rows of the scaled, centred Gram matrix ``S XᵀHX S`` without ridge.

    Attributes
    ----------
    columns_read : int
        Columns fetched by a pass over the table so far.
    passes : int
        Passes over the whole table so far, whatever they were made for.
    """

    columns_read: int = 0
    passes: int = 0

    @abstractmethod
    def take(self, indices: Indices, out: Floats | None = None) -> Floats:
        """Return the columns named as the rows of an m × d array: `out`, or a new one."""

    @abstractmethod
    def column(self, p: int) -> Floats:
        """Return one column, to read only: it may be the stored one itself."""

    def holds(self, p: int) -> bool:
        """Whether a column is at hand, without a pass over the table."""
        return True

    def prefetch(self, indices: Indices) -> None:
        """Have columns at hand that will be asked for, as far as memory allows."""
        return

    @abstractmethod
    def addresses(self) -> npt.NDArray[np.uintp]:
        """Return where each column lies in memory, 0 for those not at hand: for compiled code."""

    def block(self, indices: Indices) -> Floats:
        """Return the square matrix of the columns named."""
        return self.take(indices)[:, indices]

    @abstractmethod
    def whole(self) -> Floats:
        """Return the d × d matrix, computing it if need be."""


class WholeGram(Gram):
    """A Gram matrix held in memory."""

    def __init__(self, matrix: Floats) -> None:
        # The matrix is symmetric, so its transpose is as good, and rows are then contiguous.
        self._matrix = matrix.T if matrix.flags.f_contiguous else matrix
        self._locate()

    def _locate(self) -> None:
        steps = np.arange(len(self._matrix), dtype=np.uintp) * np.uintp(self._matrix.strides[0])
        self._addresses = steps + np.uintp(self._matrix.ctypes.data)

    def __getstate__(self) -> dict[str, Any]:
        return {"_matrix": self._matrix, "passes": self.passes}

    def __setstate__(self, state: dict[str, Any]) -> None:
        # A copy lies elsewhere in memory, and a pickle may have made rows of columns.
        self._matrix = np.ascontiguousarray(state["_matrix"])
        self.passes = state["passes"]
        self._locate()

    def addresses(self) -> npt.NDArray[np.uintp]:  # noqa: D102
        return self._addresses

    def take(self, indices: Indices, out: Floats | None = None) -> Floats:  # noqa: D102
        if out is None:
            return self._matrix[indices]
        return self._matrix.take(indices, axis=0, out=out, mode="clip")

    def column(self, p: int) -> Floats:  # noqa: D102
        column: Floats = self._matrix[p]
        return column

    def block(self, indices: Indices) -> Floats:  # noqa: D102
        return self._matrix[np.ix_(indices, indices)]

    def whole(self) -> Floats:  # noqa: D102
        return self._matrix


@dataclass(frozen=True)
class _Table:
    """What is needed to read the table again."""

    rows: DesignMatrix
    target: Target
    weights: Floats | None
    mean: Floats
    scale: Floats
    offset: Indices


class ColumnGram(Gram):
    """Columns on demand, kept until the memory limit, and the whole matrix once that is cheaper.

    Parameters
    ----------
    table : _Table
    memory_limit : int
        Bytes that kept columns, or the whole matrix, may take.
    keep_columns : bool
        Never switch to the whole matrix.
    """

    def __init__(self, table: _Table, memory_limit: int, keep_columns: bool) -> None:
        self._table = table
        self._limit = memory_limit
        self._keep_columns = keep_columns
        self._kept: OrderedDict[int, Floats] = OrderedDict()
        self._spent = 0.0
        self._matrix: WholeGram | None = None
        self._addresses = np.zeros(table.rows.n_features, dtype=np.uintp)
        self._lock = RLock()
        self.columns_read = self.passes = 0

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            state = self.__dict__ | {"_kept": OrderedDict(self._kept)}
        del state["_addresses"], state["_lock"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        # A copy lies elsewhere in memory.
        self.__dict__.update(state)
        self._lock = RLock()
        self._addresses = np.zeros(self._table.rows.n_features, dtype=np.uintp)
        for p, column in self._kept.items():
            self._addresses[p] = column.ctypes.data

    def addresses(self) -> npt.NDArray[np.uintp]:  # noqa: D102
        return self._addresses if self._matrix is None else self._matrix.addresses()

    @property
    def rows(self) -> DesignMatrix:
        """The table that columns are read from."""
        return self._table.rows

    @property
    def full_gram_is_affordable(self) -> bool:
        """Whether the whole matrix is here, or will be once it has become the cheaper choice."""
        fits = 8 * self.rows.n_features**2 <= self._limit
        return self._matrix is not None or (fits and not self._keep_columns)

    @property
    def batch_saving(self) -> float:
        """Rough seconds that a column costs less in a batch than by itself."""
        return 0.0 if self._matrix is not None else self.rows.pass_cost - self.rows.column_cost

    def subproblem_cost(self, n_columns: int) -> float:
        """Rough seconds to copy some columns out of the table and multiply them with each other."""
        share = n_columns / self.rows.n_features
        return self.rows.pass_cost + self.rows.gram_cost * share**2

    @property
    def n_cheap_products(self) -> int:
        """How many columns have a Gram matrix that costs half as much as a pass over the table."""
        return int(self.rows.n_features * np.sqrt(self.rows.pass_cost / self.rows.gram_cost / 2))

    def subproblem_capacity(self) -> int:
        """How many columns may be copied out: they and their Gram matrix keep to the limit each."""
        return int(min(self._limit / self.rows.column_bytes, np.sqrt(self._limit / 8)))

    def subproblem(self, columns: Indices) -> ColumnGram:
        """Return the Gram matrix of some columns that are copied out as a table of their own."""
        table = self._table
        place = np.flatnonzero(np.isin(columns, table.offset))
        self.passes += 1
        small = replace(
            table, rows=table.rows.select(columns), mean=table.mean[columns],
            scale=table.scale[columns], offset=place,
        )  # fmt: skip
        return ColumnGram(small, self._limit, keep_columns=False)

    def holds(self, p: int) -> bool:  # noqa: D102
        return self._matrix is not None or p in self._kept

    def prefetch(self, indices: Indices) -> None:  # noqa: D102
        with self._lock:
            wanted = [p for p in dict.fromkeys(map(int, indices)) if not self.holds(p)]
            wanted = wanted[: self._most_kept]
            if wanted and not self._full_gram_is_cheaper(len(wanted)):
                for part, fetched in self._fetch_in_parts(wanted):
                    self._keep(part, fetched)

    def take(self, indices: Indices, out: Floats | None = None) -> Floats:  # noqa: D102
        with self._lock:
            return self._take(indices, out)

    def _take(self, indices: Indices, out: Floats | None) -> Floats:
        if self._matrix is not None:
            return self._matrix.take(indices, out)
        places: dict[int, list[int]] = {}
        for i, p in enumerate(map(int, indices)):
            places.setdefault(p, []).append(i)
        missing = [p for p in places if p not in self._kept]
        if missing and self._full_gram_is_cheaper(len(missing)):
            self.whole()
            return self._take(indices, out)
        if out is None:
            out = np.empty((len(indices), self.rows.n_features))
        # Before others are kept in their place, for which they may have to go.
        for p, at in places.items():
            if p in self._kept:
                out[at] = self._kept[p]
                self._kept.move_to_end(p)
        for part, fetched in self._fetch_in_parts(missing):
            for p, column in zip(part, fetched, strict=True):
                out[places[p]] = column
            self._keep(part, fetched)
        return out

    def column(self, p: int) -> Floats:  # noqa: D102
        with self._lock:
            return self._column(p)

    def block(self, indices: Indices) -> Floats:  # noqa: D102
        with self._lock:
            if self._matrix is not None:
                return self._matrix.block(indices)
            if all(int(p) in self._kept for p in indices):
                return np.array([self._kept[int(p)][indices] for p in indices])
            return self._products_among(indices)

    def _products_among(self, indices: Indices) -> Floats:
        """The block alone, from its own columns: the rest of the table is not read."""
        table = self._table
        z = (table.rows.columns(indices) - table.mean[indices]) * table.scale[indices]
        weighted = z if table.weights is None else z * table.weights[:, None]
        return np.asarray(weighted.T @ z, dtype=np.float64)

    def _column(self, p: int) -> Floats:
        if self._matrix is not None:
            return self._matrix.column(p)
        kept = self._kept.get(p)
        if kept is not None:
            self._kept.move_to_end(p)
            return kept
        if self._full_gram_is_cheaper(1):
            self.whole()
            return self._column(p)
        fetched = self._fetch([p])
        self._keep([p], fetched)
        return fetched[0]

    @property
    def _most_kept(self) -> int:
        """How many columns the memory limit allows to keep."""
        return max(1, self._limit // (8 * self.rows.n_features))

    def _full_gram_is_cheaper(self, n_columns: int) -> bool:
        rent = self._spent + self._fetch_cost(n_columns)
        return self._matrix is None and self.full_gram_is_affordable and rent >= self.rows.gram_cost

    def _fetch_cost(self, n_columns: int) -> float:
        return self.rows.pass_cost + (n_columns - 1) * self.rows.column_cost

    def _fetch_in_parts(self, columns: list[int]) -> Iterator[tuple[list[int], Floats]]:
        """Fetch columns, as many at once as a part of the memory limit holds."""
        step = max(1, self._most_kept // PARTS)
        for start in range(0, len(columns), step):
            part = columns[start : start + step]
            yield part, self._fetch(part)

    def _fetch(self, indices: list[int]) -> Floats:
        table = self._table
        columns = np.array(indices, dtype=np.intp)
        out = table.rows.gram_columns(columns, table.weights, table.mean, table.offset)
        out *= table.scale
        out *= table.scale[columns][:, None]
        self.columns_read += len(indices)
        self.passes += 1
        self._spent += self._fetch_cost(len(indices))
        return out

    def _keep(self, columns: list[int], fetched: Floats) -> None:
        for p, column in zip(columns, fetched, strict=True):
            # One row of a larger array would keep all of it alive.
            self._kept[p] = column if len(columns) == 1 else column.copy()
            self._addresses[p] = self._kept[p].ctypes.data
        while len(self._kept) > self._most_kept:
            self._addresses[self._kept.popitem(last=False)[0]] = 0

    def whole(self) -> Floats:  # noqa: D102
        with self._lock:
            return self._whole()

    def _whole(self) -> Floats:
        if self._matrix is None:
            table = self._table
            moments = table.rows.moments(table.target, table.weights)
            self._matrix = WholeGram(scale_in_place(moments.xx, table.scale))
            self.columns_read += table.rows.n_features
            self.passes += 1
            self._kept.clear()
        return self._matrix.whole()


def check_memory_limit(memory_limit: Any) -> None:
    """Raise unless this is a number of bytes.

    Examples
    --------
    >>> check_memory_limit("4GB")
    Traceback (most recent call last):
    ...
    exactk.errors.InputError: memory_limit must be a number of bytes, zero or more, not '4GB'
    """
    if not Integer(0).allows(memory_limit):
        raise InputError(
            parameter="memory_limit", value=memory_limit,
            expected="a number of bytes, zero or more",
        )  # fmt: skip


def choose_gram(
    rows: DesignMatrix,
    target: Target,
    weights: Floats | None,
    mode: GramMode,
    memory_limit: int,
) -> Margins | Moments:
    """Read the table once: with its Gram matrix where that is cheap or asked for, else without."""
    check_memory_limit(memory_limit)
    Choice(("auto", "full", "columns"))("gram", mode)
    d = rows.n_features
    cheap = rows.gram_cost <= FIRST_COLUMNS * rows.pass_cost and 8 * d * d <= memory_limit
    if mode == "full" and 8 * d * d > memory_limit:
        raise InputError(
            f"gram='full' needs {8 * d * d:,} bytes for {d} columns, more than memory_limit "
            f"({memory_limit:,})", parameter="memory_limit", hint="raise it or use gram='columns'",
        )  # fmt: skip
    if mode == "full" or (mode == "auto" and cheap):
        return rows.moments(target, weights)
    return rows.margins(target, weights)


def column_gram(
    rows: DesignMatrix,
    target: Target,
    weights: Floats | None,
    read: Margins,
    scale: Floats,
    mode: GramMode,
    memory_limit: int,
) -> ColumnGram:
    """Build a Gram that reads its columns from the table."""
    offset = far_from_zero(read.x_mean, read.scatter, read.weight)
    table = _Table(rows, target, weights, read.x_mean, scale, offset)
    return ColumnGram(table, memory_limit, keep_columns=mode == "columns")


def scale_in_place(matrix: Floats, scale: Floats, step: int = 256) -> Floats:
    """``diag(scale) · matrix · diag(scale)`` in strips, without a second matrix."""
    for start in range(0, len(matrix), step):
        strip = matrix[:, start : start + step] if matrix.flags.f_contiguous else None
        if strip is not None:
            strip *= scale[:, None]
            strip *= scale[start : start + step]
        else:
            strip = matrix[start : start + step]
            strip *= scale
            strip *= scale[start : start + step][:, None]
    return matrix
