"""Sums over some rows or columns of a sparse table: in C where it could be built.

NumPy and SciPy give the same numbers, up to rounding, several times slower, a block of entries at
a time. "Lines" are what the table is stored by: the rows of a CSR table, the columns of a CSC one.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from exactk.native.loader import built_library, open_library
from exactk.types import Floats, Indices

__all__ = [
    "SUMS",
    "Lists",
    "add_rows",
    "blocks",
    "centred_column_sums",
    "centred_row_sums",
    "dot_columns",
    "entries",
    "gather_columns",
    "gram_rows",
    "inverse_index",
    "library",
    "library_path",
    "select_columns",
]

Lists = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], Floats]

# Version of the functions in `native/sparse.c`.
VERSION = 1
# Numbers of a column in the sums of `centred_row_sums` and `centred_column_sums`.
SUMS = 5
# Entries that NumPy converts and sums at once.
BLOCK_ENTRIES = 2**18

_POINTER, _INTEGER = ctypes.c_void_p, ctypes.c_int64
# What follows the table and the range of its lines.
_ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "add_rows": (_POINTER, _INTEGER, _POINTER, _INTEGER, _INTEGER),
    "spread_rows": (_POINTER, _POINTER),
    "keep_rows": (_POINTER, _POINTER, _POINTER, _POINTER),
    "pair_rows": (
        _INTEGER,
        _POINTER,
        _POINTER,
        _POINTER,
        _POINTER,
        _INTEGER,
        _POINTER,
        _INTEGER,
    ),
    "pick_rows": (_POINTER, _INTEGER, _POINTER, _POINTER, _INTEGER),
    "dot_columns": (_POINTER, _INTEGER, _POINTER, _INTEGER),
    "spread_columns": (_POINTER, _POINTER),
}
_TYPES = ("f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")


def library_path() -> Path:
    """Where the build puts the compiled kernels."""
    return built_library("sparse")


@cache
def library() -> Any:
    """The compiled kernels, or None if they cannot be used."""
    # Threads run side by side in it, each on lines or sums of its own.
    return open_library(library_path(), "exactk_entries_version", VERSION)


@cache
def _function(loaded: Any, name: str, kinds: str) -> Any:
    function = getattr(loaded, f"exactk_{name}_{kinds}")
    function.argtypes = (_POINTER, _POINTER, _POINTER, _INTEGER, _INTEGER, *_ARGUMENTS[name])
    function.restype = None
    return function


def _compiled(name: str, X: Any) -> Callable[..., None] | None:
    """The kernel for a table's types with the table filled in, or None where there is none."""
    loaded = library()
    arrays = (X.indptr, X.indices, X.data)
    value = "u1" if X.data.dtype.kind == "b" else X.data.dtype.str[1:]
    index = X.indices.dtype.str[1:]
    if (
        loaded is None
        or value not in _TYPES
        or X.indptr.dtype != X.indices.dtype
        or not all(a.dtype.isnative and a.flags.c_contiguous and a.flags.aligned for a in arrays)
    ):
        return None
    function = _function(loaded, name, f"{value}_{index}")
    return partial(function, *(a.ctypes.data for a in arrays))


def blocks(X: Any, lines: slice) -> Iterator[slice]:
    """Cut lines into blocks of at most so many entries, or single lines."""
    start, stop = lines.start, lines.stop
    while start < stop:
        most = int(X.indptr[start]) + BLOCK_ENTRIES
        end = int(np.searchsorted(X.indptr, most, side="right")) - 1
        end = min(max(end, start + 1), stop)
        yield slice(start, end)
        start = end


def entries(X: Any, block: slice) -> tuple[Indices, Indices, Floats]:
    """Line, place in it, and value of each entry in some lines."""
    ends = X.indptr[block.start : block.stop + 1]
    inside = slice(int(ends[0]), int(ends[-1]))
    line = np.repeat(np.arange(block.start, block.stop), np.diff(ends))
    return line, X.indices[inside], X.data[inside].astype(np.float64)


def _piece(X: Any, block: slice) -> Any:
    """Some lines as the rows of a sparse table of float64."""
    ends = X.indptr[block.start : block.stop + 1]
    inside = slice(int(ends[0]), int(ends[-1]))
    width = X.shape[1] if X.format == "csr" else X.shape[0]
    return sparse.csr_array(
        (X.data[inside].astype(np.float64), X.indices[inside], ends - ends[0]),
        shape=(block.stop - block.start, width),
    )


def add_rows(X: Any, rows: slice, right: Floats, out: Floats) -> None:
    """Add ``right[:, rows] X[rows]`` to `out`, m × d, for a table stored by rows.

    Rows whose factor is zero are not read.
    """
    compiled = _compiled("add_rows", X)
    if compiled is None:
        for block in blocks(X, rows):
            factor = right[:, block]
            filled = np.nonzero(factor)
            if 8 * len(filled[0]) < factor.size:
                few = sparse.csr_array((factor[filled], filled), shape=factor.shape)
                out += (few @ _piece(X, block)).toarray()
            else:
                out += factor @ _piece(X, block)
        return
    m, d = out.shape
    compiled(rows.start, rows.stop, right.ctypes.data, right.shape[1], out.ctypes.data, d, m)


def centred_row_sums(X: Any, rows: slice, weights: Floats, sums: Floats) -> None:
    """Add up the entries of some rows about a centre, for a table stored by rows.

    `sums` is d × 5: the centre of each column, and what is added to: the weight of its entries,
    their weighted residuals, the weighted squares of these, and how many have a weight.
    """
    compiled = _compiled("spread_rows", X)
    if compiled is None:
        for block in blocks(X, rows):
            row, column, value = entries(X, block)
            _add_spread(sums, column, weights[row], value)
        return
    compiled(rows.start, rows.stop, weights.ctypes.data, sums.ctypes.data)


def centred_column_sums(X: Any, columns: slice, weights: Floats, sums: Floats) -> None:
    """Do as `centred_row_sums` for some columns of a CSC table; the sums must be zero."""
    compiled = _compiled("spread_columns", X)
    if compiled is None:
        for block in blocks(X, columns):
            column, row, value = entries(X, block)
            _add_spread(sums[block], column - block.start, weights[row], value)
        return
    compiled(columns.start, columns.stop, weights.ctypes.data, sums.ctypes.data)


def _add_spread(sums: Floats, column: Indices, weight: Floats, value: Floats) -> None:
    residual = value - sums[column, 0]
    pull = weight * residual
    for place, part in enumerate((weight, pull, pull * residual, weight != 0.0), start=1):
        sums[:, place] += np.bincount(column, part, minlength=len(sums))


def gather_columns(X: Any, rows: slice, wanted: Indices, out: Floats) -> None:
    """Write the columns `wanted`, ascending, of some rows into ``out[:, rows]``, zero before."""
    compiled = _compiled("pick_rows", X)
    if compiled is None:
        for block in blocks(X, rows):
            found = _piece(X, block)[:, wanted].tocoo()
            out[found.col, block.start + found.row] = found.data
        return
    place = inverse_index(wanted, X.shape[1])
    columns = wanted.astype(np.int64)
    compiled(
        rows.start, rows.stop, columns.ctypes.data, len(columns), place.ctypes.data,
        out.ctypes.data, out.shape[1],
    )  # fmt: skip


def inverse_index(wanted: Indices, n_columns: int) -> npt.NDArray[np.int32]:
    """Where each column stands among those wanted, -1 for the others."""
    place = np.full(n_columns, -1, dtype=np.int32)
    place[wanted] = np.arange(len(wanted))
    return place


def select_columns(
    X: Any, rows: slice, place: npt.NDArray[np.int32], ends: npt.NDArray[np.int64], kept: Any
) -> None:
    """Copy the entries of wanted columns of some rows, in the order in which they are stored.

    Parameters
    ----------
    X : CSR table
    rows : slice
    place : ndarray of int32 of shape (d,)
        See `places`.
    ends : ndarray of int64 of shape (n,) or more
        Where the entries of each row go; without `kept`, written: how many there are.
    kept : tuple of ndarray, or None
        What is written: places and values.
    """
    compiled = _compiled("keep_rows", X)
    if compiled is not None:
        index, value = (None, None) if kept is None else (a.ctypes.data for a in kept)
        compiled(rows.start, rows.stop, place.ctypes.data, ends.ctypes.data, index, value)
        return
    for block in blocks(X, rows):
        line, column, _ = entries(X, block)
        wanted = place[column] >= 0
        if kept is None:
            ends[block] = np.bincount(line[wanted] - block.start, minlength=len(ends[block]))
            continue
        inside = slice(X.indptr[block.start], X.indptr[block.stop])
        to = slice(ends[block.start], ends[block.start] + np.count_nonzero(wanted))
        kept[0][to], kept[1][to] = place[column[wanted]], X.data[inside][wanted]


def gram_rows(X: Any, columns: slice, lists: Lists, first: int, out: Floats) -> None:
    """Add products of some columns of a table stored by rows with those from them on to `out`.

    Parameters
    ----------
    X : CSR table
    columns : slice
        Which of the lists.
    lists : tuple of ndarray
        Where the entries of each column end, as in `indptr` of a CSC table; their rows; their
        values times the weight of the row.
    first : int
        Column of the first list.
    out : ndarray of shape (d, d)
        What lies below the diagonal is of no meaning afterwards.
    """
    ends, listed, factor = lists
    compiled = _compiled("pair_rows", X)
    if compiled is None:
        inside = slice(ends[columns.start], ends[columns.stop])
        within = ends[columns.start : columns.stop + 1] - ends[columns.start]
        shape = (X.shape[0], columns.stop - columns.start)
        strip = sparse.csc_array((factor[inside], listed[inside], within), shape=shape).tocsr()
        for block in blocks(X, slice(0, X.shape[0])):
            product = (strip[block].T @ _piece(X, block)).toarray()
            out[first + columns.start : first + columns.stop] += product
        return
    following = ends.copy()
    compiled(
        columns.start, columns.stop, X.shape[0], ends.ctypes.data, listed.ctypes.data,
        factor.ctypes.data, following.ctypes.data, first, out.ctypes.data, len(out),
    )  # fmt: skip


def dot_columns(X: Any, columns: slice, right: Floats, out: Floats) -> None:
    """Write ``rightᵀ X`` for some columns of a table stored by columns into ``out[:, columns]``."""
    compiled = _compiled("dot_columns", X)
    if compiled is None:
        for block in blocks(X, columns):
            out[:, block] = (_piece(X, block) @ right).T
        return
    m, d = out.shape
    compiled(columns.start, columns.stop, right.ctypes.data, m, out.ctypes.data, d)
