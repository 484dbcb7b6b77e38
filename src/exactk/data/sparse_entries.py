"""Products and sums of a sparse table in bounded memory and in all threads.

The table is read where it lies, in whatever type its numbers and indices have. It is cut into
parts by its size alone, so an answer does not depend on the number of threads.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from exactk.data.sparse_kernels import (
    SUMS,
    Lists,
    add_rows,
    centred_column_sums,
    centred_row_sums,
    dot_columns,
    gather_columns,
    gram_rows,
    inverse_index,
    select_columns,
)
from exactk.native.threads import run_in_threads
from exactk.types import Floats, Indices

__all__ = ["CSCKernels", "CSRKernels", "Entries", "Spread", "open_entries"]

Spread = tuple[Floats, Floats, Floats]

# Parts that rows are summed in; each has sums of its own, which are then added.
ROW_PARTS = 4
# Parts of a table stored by columns, which need no sums of their own.
COLUMN_PARTS = 16
# Entries that are worth a part.
PART_ENTRIES = 2**18
# Memory of the sums of all parts.
PARTIAL_BYTES = 32 * 2**20
# Entries that are sorted by columns at a time, and values of a strip of products of columns.
LISTED_ENTRIES = 2**21
# Right-hand sides of a task: its rows are read from the cache after the first.
TASK_COLUMNS = 4


class Entries(ABC):
    """The stored entries of a table, in canonical form.

    Parameters
    ----------
    X : scipy sparse array or matrix
        CSR for `CSRKernels`, CSC for `CSCKernels`; kept by reference and never changed.
    parts : int
        Parts that a large table is cut into.
    """

    def __init__(self, X: Any, parts: int) -> None:
        self._X = X
        self._parts = _equal_parts(X.indptr, parts)

    @abstractmethod
    def products(self, right: Floats) -> Floats:
        """``rightᵀ X`` (m × d) for an n × m matrix."""

    @abstractmethod
    def centred_sums(self, weights: Floats, centre: Floats) -> Spread:
        """Sums over the entries of each column about a centre.

        Parameters
        ----------
        weights : ndarray of float64 of shape (n,)
            Contiguous.
        centre : ndarray of shape (d,)

        Returns
        -------
        absent : ndarray of shape (d,)
            Weight of the rows without an entry: exactly zero where there is none, for it may
            be multiplied by a large square.
        shift, square : ndarray of shape (d,)
            Weighted sums of residuals and of their squares.
        """

    @abstractmethod
    def columns(self, indices: Indices) -> Floats:
        """Columns as an n × m matrix of float64, in Fortran order."""


class CSRKernels(Entries):
    """Entries of a table stored by rows (CSR)."""

    def __init__(self, X: Any) -> None:
        super().__init__(X, ROW_PARTS)

    def products(self, right: Floats) -> Floats:  # noqa: D102
        left = np.ascontiguousarray(right.T, dtype=np.float64)
        d = self._X.shape[1]
        out = np.empty((len(left), d))
        step = max(1, PARTIAL_BYTES // (8 * max(1, d) * len(self._parts)))
        for start in range(0, len(left), step):
            out[start : start + step] = self._weighted_rows(left[start : start + step])
        return out

    def _weighted_rows(self, left: Floats) -> Floats:
        sums = np.zeros((len(self._parts), len(left), self._X.shape[1]))
        run_in_threads(
            partial(add_rows, self._X, rows, left[q : q + TASK_COLUMNS], own[q : q + TASK_COLUMNS])
            for rows, own in zip(self._parts, sums, strict=True)
            for q in range(0, len(left), TASK_COLUMNS)
        )
        return sums[0] if len(sums) == 1 else sums.sum(axis=0)

    def centred_sums(self, weights: Floats, centre: Floats) -> Spread:  # noqa: D102
        sums = np.zeros((len(self._parts), len(centre), SUMS))
        sums[:, :, 0] = centre
        run_in_threads(
            partial(centred_row_sums, self._X, rows, weights, own)
            for rows, own in zip(self._parts, sums, strict=True)
        )
        return _centred_sums(sums.sum(axis=0), weights)

    def columns(self, indices: Indices) -> Floats:  # noqa: D102
        wanted, place = np.unique(indices, return_inverse=True)
        out = np.zeros((len(wanted), self._X.shape[0]))
        run_in_threads(partial(gather_columns, self._X, rows, wanted, out) for rows in self._parts)
        return out.T if np.array_equal(wanted, indices) else out[place].T

    def select(self, indices: Indices) -> Any:
        """Some columns, each once, as a table of its own."""
        X, place = self._X, inverse_index(indices, self._X.shape[1])
        ends = np.zeros(X.shape[0] + 1, dtype=np.int64)
        run_in_threads(
            partial(select_columns, X, rows, place, ends[1:], None) for rows in self._parts
        )
        np.cumsum(ends, out=ends)
        kept = np.empty(ends[-1], X.indices.dtype), np.empty(ends[-1], X.data.dtype)
        run_in_threads(partial(select_columns, X, rows, place, ends, kept) for rows in self._parts)
        index, value = kept
        # SciPy would make both the wider type of the two.
        ends = ends.astype(index.dtype)
        return type(X)((value, index, ends), shape=(X.shape[0], len(indices)))

    def gram_upper(self, weights: Floats | None) -> Floats:
        """``Xᵀ W X`` in its upper half; the lower is of no meaning."""
        d, stored = self._X.shape[1], self._X.nnz
        out = np.zeros((d, d))
        width = max(1, min(LISTED_ENTRIES // max(1, d), LISTED_ENTRIES * d // max(1, stored)))
        for start in range(0, d, width):
            lists = self._lists(slice(start, start + width), weights)
            run_in_threads(
                partial(gram_rows, self._X, part, lists, start, out)
                for part in _equal_parts(lists[0], COLUMN_PARTS)
            )
        return out

    def _lists(self, columns: slice, weights: Floats | None) -> Lists:
        strip = self._X[:, columns].tocsc()
        listed, factor = strip.indices.astype(np.int64), strip.data.astype(np.float64)
        if weights is not None:
            factor *= weights[listed]
        return strip.indptr.astype(np.int64), listed, factor


class CSCKernels(Entries):
    """Entries of a table stored by columns (CSC)."""

    def __init__(self, X: Any) -> None:
        super().__init__(X, COLUMN_PARTS)

    def products(self, right: Floats) -> Floats:  # noqa: D102
        right = np.ascontiguousarray(right, dtype=np.float64)
        out = np.empty((right.shape[1], self._X.shape[1]))
        run_in_threads(partial(dot_columns, self._X, part, right, out) for part in self._parts)
        return out

    def centred_sums(self, weights: Floats, centre: Floats) -> Spread:  # noqa: D102
        sums = np.zeros((len(centre), SUMS))
        sums[:, 0] = centre
        run_in_threads(
            partial(centred_column_sums, self._X, part, weights, sums) for part in self._parts
        )
        return _centred_sums(sums, weights)

    def columns(self, indices: Indices) -> Floats:  # noqa: D102
        out = np.zeros((len(indices), self._X.shape[0]))
        for own, j in zip(out, indices, strict=True):
            inside = slice(self._X.indptr[j], self._X.indptr[j + 1])
            own[self._X.indices[inside]] = self._X.data[inside]
        return out.T


def open_entries(X: Any) -> Entries:
    """Read a CSR or CSC table the way it is stored."""
    return CSRKernels(X) if X.format == "csr" else CSCKernels(X)


def _centred_sums(sums: Floats, weights: Floats) -> Spread:
    _, present, shift, square, count = sums.T
    absent = np.maximum(weights.sum() - present, 0.0)
    return np.where(count == np.count_nonzero(weights), 0.0, absent), shift, square


def _equal_parts(ends: npt.NDArray[Any], most: int) -> list[slice]:
    """Cut lines into parts of about as many entries each."""
    n_lines, stored = len(ends) - 1, int(ends[-1])
    wanted = max(1, min(most, n_lines, 1 + stored // PART_ENTRIES))
    inner = np.searchsorted(ends, np.arange(1, wanted) * (stored / wanted))
    cuts = np.unique(np.concatenate([[0], np.clip(inner, 0, n_lines), [n_lines]]))
    return [slice(int(a), int(b)) for a, b in pairwise(cuts)] or [slice(0, 0)]
