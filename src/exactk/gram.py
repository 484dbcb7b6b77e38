"""The Gram matrix behind a Problem: whole, or column by column as they are asked for.

Which of the two is a question of cost, answered as a renter answers when to buy: columns are
fetched singly until what they cost together has reached the price of the whole matrix, which is
then computed if it fits the memory limit. As far as the estimates of cost are right, the total is
at most twice that of the cheaper choice.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict
from dataclasses import dataclass
from threading import RLock
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from exactk.errors import InputError
from exactk.moments import Margins, Moments
from exactk.sources.base import Rows, offset_columns
from exactk.targets import Target

__all__ = ["ColumnGram", "Gram", "GramMode", "WholeGram", "choose_gram"]

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]
GramMode = Literal["auto", "full", "columns"]

# At first sight the whole matrix is computed only where it costs no more than this many columns.
FIRST_COLUMNS = 16


class Gram(ABC):
    """Rows of the scaled, centred Gram matrix ``S XᵀHX S`` without ridge.

    Attributes
    ----------
    columns_read : int
        Columns fetched by a pass over the table so far.
    """

    columns_read: int = 0

    @abstractmethod
    def take(self, indices: Indices) -> Floats:
        """Return the columns named as the rows of a new m × d array."""

    @abstractmethod
    def column(self, p: int) -> Floats:
        """Return one column, to read only: it may be the stored one itself."""

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
        return {"_matrix": self._matrix}

    def __setstate__(self, state: dict[str, Any]) -> None:
        # A copy lies elsewhere in memory, and a pickle may have made rows of columns.
        self._matrix = np.ascontiguousarray(state["_matrix"])
        self._locate()

    def addresses(self) -> npt.NDArray[np.uintp]:  # noqa: D102
        return self._addresses

    def take(self, indices: Indices) -> Floats:  # noqa: D102
        return self._matrix[indices]

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

    rows: Rows
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
    stay : bool
        Never switch to the whole matrix.
    """

    def __init__(self, table: _Table, memory_limit: int, stay: bool) -> None:
        self._table = table
        self._limit = memory_limit
        self._stay = stay
        self._kept: OrderedDict[int, Floats] = OrderedDict()
        self._spent = 0.0
        self._matrix: WholeGram | None = None
        self._addresses = np.zeros(table.rows.n_features, dtype=np.uintp)
        self._lock = RLock()
        self.columns_read = 0

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

    def take(self, indices: Indices) -> Floats:  # noqa: D102
        with self._lock:
            return self._take(indices)

    def _take(self, indices: Indices) -> Floats:
        if self._matrix is not None:
            return self._matrix.take(indices)
        wanted = [int(p) for p in indices]
        missing = [p for p in dict.fromkeys(wanted) if p not in self._kept]
        if missing and self._buying_pays(len(missing)):
            self.whole()
            return self._take(indices)
        fetched = dict(zip(missing, self._fetch(missing), strict=True)) if missing else {}
        out = np.empty((len(wanted), self._table.rows.n_features))
        for i, p in enumerate(wanted):
            out[i] = fetched[p] if p in fetched else self._kept[p]
            if p in self._kept:
                self._kept.move_to_end(p)
        self._keep(fetched)
        return out

    def column(self, p: int) -> Floats:  # noqa: D102
        with self._lock:
            return self._column(p)

    def block(self, indices: Indices) -> Floats:  # noqa: D102
        with self._lock:
            if self._matrix is None:
                kept = sum(int(p) in self._kept for p in indices)
                if kept == len(indices):
                    return np.array([self._kept[int(p)][indices] for p in indices])
                if kept == 0:
                    return self._products_among(indices)
        return super().block(indices)

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
        if self._buying_pays(1):
            self.whole()
            return self._column(p)
        fetched = self._fetch([p]).reshape(-1)
        self._keep({p: fetched})
        return fetched

    def _buying_pays(self, n_columns: int) -> bool:
        table = self._table
        fits = 8 * table.rows.n_features**2 <= self._limit
        price = self._spent + n_columns * table.rows.pass_cost
        return fits and not self._stay and price >= table.rows.gram_cost

    def _fetch(self, indices: list[int]) -> Floats:
        table = self._table
        columns = np.array(indices, dtype=np.intp)
        z = table.rows.columns(columns) - table.mean[columns]
        if table.weights is not None:
            z *= table.weights[:, None]
        out = table.rows.centred_products(z, table.mean, table.offset)
        out *= table.scale
        out *= table.scale[columns][:, None]
        self.columns_read += len(indices)
        self._spent += len(indices) * table.rows.pass_cost
        return out

    def _keep(self, fetched: dict[int, Floats]) -> None:
        for p, column in fetched.items():
            # One row of a larger array would keep all of it alive.
            alone = column.base is None or column.base.size == column.size
            self._kept[p] = column if alone else column.copy()
            self._addresses[p] = self._kept[p].ctypes.data
        most = max(1, self._limit // (8 * self._table.rows.n_features))
        while len(self._kept) > most:
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
            self._kept.clear()
        return self._matrix.whole()


def choose_gram(
    rows: Rows,
    target: Target,
    weights: Floats | None,
    mode: GramMode,
    memory_limit: int,
) -> Margins | Moments:
    """Read the table once: with its Gram matrix where that is cheap or asked for, else without."""
    limit: object = memory_limit
    if isinstance(limit, bool) or not isinstance(limit, (int, np.integer)) or limit < 0:
        raise InputError(
            f"memory_limit must be a number of bytes, zero or more, not {memory_limit!r}"
        )
    if mode not in ("auto", "full", "columns"):
        raise InputError(f"gram must be 'auto', 'full' or 'columns', not {mode!r}")
    d = rows.n_features
    cheap = rows.gram_cost <= FIRST_COLUMNS * rows.pass_cost and 8 * d * d <= memory_limit
    if mode == "full" and 8 * d * d > memory_limit:
        raise InputError(
            f"gram='full' needs {8 * d * d:,} bytes for {d} columns, more than memory_limit "
            f"({memory_limit:,}); raise it or use gram='columns'"
        )
    if mode == "full" or (mode == "auto" and cheap):
        return rows.moments(target, weights)
    return rows.margins(target, weights)


def column_gram(
    rows: Rows,
    target: Target,
    weights: Floats | None,
    read: Margins,
    scale: Floats,
    mode: GramMode,
    memory_limit: int,
) -> ColumnGram:
    """Build a Gram that reads its columns from the table."""
    offset = offset_columns(read.x_mean, read.scatter, read.weight)
    table = _Table(rows, target, weights, read.x_mean, scale, offset)
    return ColumnGram(table, memory_limit, stay=mode == "columns")


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
