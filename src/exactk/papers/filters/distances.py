"""City-block distances between rows, and sums over pairs of rows: in C where it could be built.

SciPy and NumPy give the same numbers, up to rounding, several times slower.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from exactk.native.loader import built_library, open_library
from exactk.native.threads import run_in_threads
from exactk.types import Floats, Indices

__all__ = ["city_block", "library", "library_path", "nearest_shares", "pair_sums"]

Integers = npt.NDArray[np.int32]

_POINTER, _INTEGER = ctypes.c_void_p, ctypes.c_int64
# Version of the functions in `native/distances.c`.
VERSION = 2
# Rows of a task at most; there should be several for each thread, and each worth a call.
TASK_ROWS = 128
LEAST_ROWS = 16
# Differences in so little work that more threads do not pay.
FEW = 2**21
# Columns that the C code sums at once.
WIDTH = 32
# Values of a block where NumPy does the work.
BLOCK_VALUES = 2**20


def library_path() -> Path:
    """Where the build puts the compiled kernels."""
    return built_library("distances")


@cache
def library() -> Any:
    """The compiled kernels, or None if they cannot be used."""
    # Threads run side by side in it, each on arrays of its own.
    loaded = open_library(library_path(), "exactk_rows_version", VERSION)
    if loaded is None:
        return None
    loaded.exactk_city_block.argtypes = (
        _POINTER, _INTEGER, _POINTER, _INTEGER, _INTEGER, _POINTER, _INTEGER,
    )  # fmt: skip
    loaded.exactk_pair_sums.argtypes = (
        _POINTER, _INTEGER, _INTEGER, _INTEGER, _INTEGER,
        _POINTER, _POINTER, _POINTER, _INTEGER, _POINTER, _POINTER,
    )  # fmt: skip
    loaded.exactk_shares.argtypes = (
        _POINTER, _INTEGER, _INTEGER, _INTEGER, _POINTER, _POINTER, _INTEGER, _INTEGER,
        ctypes.c_double, _POINTER, _POINTER, _POINTER,
    )  # fmt: skip
    for name in ("exactk_city_block", "exactk_pair_sums", "exactk_shares"):
        getattr(loaded, name).restype = None
    return loaded


def _run(tasks: Iterable[Callable[[], None]], work: int) -> None:
    """Run tasks side by side where there is enough to do."""
    if work >= FEW:
        run_in_threads(tasks)
        return
    for task in tasks:
        task()


def city_block(left: Floats, right: Floats | None = None) -> Floats:
    """Return Σ_k |left_ik − right_jk| for all pairs of rows.

    Parameters
    ----------
    left : ndarray of shape (n, d)
    right : ndarray of shape (m, d) or None
        None for the distances of `left` to itself, at half the price.

    Returns
    -------
    ndarray of shape (n, m)

    Examples
    --------
    >>> city_block(np.array([[0.0, 1.0], [2.0, -1.0]]))
    array([[0., 4.],
           [4., 0.]])
    """
    left = np.ascontiguousarray(left)
    other = left if right is None else np.ascontiguousarray(right)
    compiled = library()
    if compiled is None:
        from scipy.spatial.distance import cdist

        return np.asarray(cdist(left, other, "cityblock"), dtype=np.float64)
    out = np.empty((len(left), len(other)))
    d = left.shape[1]

    def part(i: slice, j: slice) -> Callable[[], None]:
        a, b, to = left[i], other[j], out[i, j]

        def task() -> None:
            compiled.exactk_city_block(
                a.ctypes.data, len(a), b.ctypes.data, len(b), d, to.ctypes.data, out.shape[1]
            )
            if right is None and i != j:
                out[j, i] = to.T

        return task

    rows, columns = _parts(len(left)), _parts(len(other))
    half = right is None
    _run(
        (part(i, j) for i in rows for j in columns if not half or j.start >= i.start),
        out.size * d // (2 if half else 1),
    )
    return out


def nearest_shares(
    D: Floats, codes: Indices, rows: Indices, most: int, factor: Floats, same: float
) -> Floats | None:
    """Return factor·(share of row j among the nearest of its class to row i), or None without C.

    Parameters
    ----------
    D : ndarray of shape (b, n)
        Distances of some rows to all.
    codes : ndarray of intp of shape (n,)
        Class of each row.
    rows : ndarray of intp of shape (b,)
        Which rows those are: a row is not its own neighbour.
    most : int
        Neighbours of each class.
    factor : ndarray of shape (c, c)
        For the class of i and that of j.
    same : float
        Relative difference of distances that counts as none: rows as far as the last neighbour
        divide its place.

    Returns
    -------
    ndarray of shape (b, n) or None
    """
    compiled = library()
    if compiled is None:
        return None
    D, factor = np.ascontiguousarray(D), np.ascontiguousarray(factor)
    codes, rows = codes.astype(np.int64), rows.astype(np.int64)
    out = np.empty_like(D)
    # No class has more rows than there are.
    most = min(most, D.shape[1])

    def part(rows_here: slice) -> Callable[[], None]:
        def task() -> None:
            work = np.empty(len(factor) * (most + 3))
            compiled.exactk_shares(
                D.ctypes.data, D.shape[1], rows_here.start, rows_here.stop, codes.ctypes.data,
                rows.ctypes.data, len(factor), most, same, factor.ctypes.data, work.ctypes.data,
                out.ctypes.data,
            )  # fmt: skip

        return task

    _run((part(some) for some in _parts(len(D))), 8 * D.size)
    return out


def _parts(n: int) -> list[slice]:
    step = min(TASK_ROWS, max(LEAST_ROWS, -(-n // 4)))
    return [slice(start, min(start + step, n)) for start in range(0, n, step)]


def pair_sums(X: Floats, first: Integers, second: Integers, weight: Floats) -> Floats:
    """Return Σ_p weight_p·|x_{first(p)} − x_{second(p)}|, a number for each column.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    first, second : ndarray of int32 of shape (p,)
        Pairs of rows.
    weight : ndarray of shape (p,)

    Returns
    -------
    ndarray of shape (d,)

    Examples
    --------
    >>> pairs = np.array([[0, 1], [1, 2]], dtype=np.int32)
    >>> pair_sums(np.array([[0.0], [1.0], [3.0]]), pairs[:, 0], pairs[:, 1], np.array([10.0, 1.0]))
    array([12.])
    """
    n, d = X.shape
    compiled = library()
    if compiled is None:
        sums = np.zeros(d)
        step = max(1, BLOCK_VALUES // max(1, d))
        for start in range(0, len(first), step):
            part = slice(start, start + step)
            sums += weight[part] @ np.abs(X[first[part]] - X[second[part]])
        return sums
    X = np.ascontiguousarray(X)
    first, second = np.ascontiguousarray(first), np.ascontiguousarray(second)
    weight = np.ascontiguousarray(weight)
    out = np.empty(d)

    def strip(start: int) -> Callable[[], None]:
        def task() -> None:
            work = np.empty(n * WIDTH)
            compiled.exactk_pair_sums(
                X.ctypes.data, n, d, start, min(start + step, d), first.ctypes.data,
                second.ctypes.data, weight.ctypes.data, len(first), work.ctypes.data,
                out.ctypes.data,
            )  # fmt: skip

        return task

    # Whole strips of the C code, some for each thread.
    step = WIDTH * max(1, d // (8 * WIDTH))
    _run((strip(start) for start in range(0, d, step)), len(first) * d)
    return out
