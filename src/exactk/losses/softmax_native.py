"""Multinomial logistic regression in C, where the library could be built; see `swaps.h`."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
import numpy.typing as npt

from exactk.losses.base import Fits
from exactk.losses.native import library
from exactk.types import Floats, Indices

__all__ = ["CompiledSoftmax", "Limits", "SecondOrder", "compiled_softmax"]


_POINTER, _INTEGER, _NUMBER = ctypes.c_void_p, ctypes.c_int64, ctypes.c_double
# Products of a look at all rows, of a Hessian, and of a call, at most: no call can be interrupted.
MOST_LOOKED, MOST_HESSIAN, MOST_CALLED = 10**8, 10**9, 4 * 10**9
# Products of pairs of columns and of classes, at most: beyond, BLAS is faster.
MOST_PAIRS = 20_000
# Looks and Hessians that a fit is taken to need.
LOOKS, HESSIANS = 20, 2
# What `exactk_softmax_*` return.
_SETTLED, _NO_MEMORY, _NO_COLUMN = 1, -1, -2


class _Softmax(ctypes.Structure):
    """Mirror of the struct in `softmax.h`."""

    _fields_ = (
        *((name, _INTEGER) for name in ("n", "width", "classes", "k")),
        *((name, _POINTER) for name in ("X", "members", "codes", "w", "basis")),
        ("penalty", _NUMBER),
    )


class _Ends(ctypes.Structure):
    """Mirror of the struct in `swaps.h`."""

    _fields_ = (
        ("steps", _INTEGER),
        ("halvings", _INTEGER),
        *((name, _NUMBER) for name in ("tol", "ceiling", "scale", "reach")),
        *((name, _NUMBER) for name in ("armijo", "rest", "jitter")),
    )


@dataclass(frozen=True)
class Limits:
    """How steps are made and fits end, whoever makes them; see `exactk.losses.newton`."""

    scale: float
    reach: float
    armijo: float
    halvings: int
    rest: float
    jitter: float
    unknowns: int


@dataclass(frozen=True, eq=False)
class SecondOrder:
    """What is known at a fit of the columns that may come in.

    With N = (k + 1)·r unknowns, of which the intercepts are the last r.

    Attributes
    ----------
    members : tuple of int
    theta : ndarray of shape (k + 1, r)
    columns : ndarray of shape (m,)
    K : ndarray of shape (N, N)
        Inverse of half the Hessian.
    T : ndarray of shape (m, N, r)
        K times the products of a column with the members and the intercept.
    E : ndarray of shape (m, r, r)
        What these leave of a column's own.
    C : ndarray of shape (m, r)
        Gradients, downhill.
    """

    members: tuple[int, ...]
    theta: Floats
    columns: Indices
    K: Floats
    T: Floats
    E: Floats
    C: Floats


class CompiledSoftmax:
    """The deviance of one table and one target.

    Parameters
    ----------
    loaded : the library
    X : ndarray of shape (m, n)
        Columns of the table, one a row, C-contiguous.
    codes : ndarray of shape (n,)
    w : ndarray of shape (n,)
    basis : ndarray of shape (classes, r)
    penalty : float
    limits : Limits
    """

    def __init__(
        self,
        loaded: Any,
        X: Floats,
        codes: Indices,
        w: Floats,
        basis: Floats,
        penalty: float,
        limits: Limits,
    ) -> None:
        self._library, self._limits = loaded, limits
        # Held here: the struct has only addresses.
        self._held = [np.ascontiguousarray(a, dtype=np.float64) for a in (X, w, basis)]
        self._codes = np.ascontiguousarray(codes, dtype=np.int64)
        self._fields = _Softmax(
            n=X.shape[1], width=len(X), classes=len(basis), penalty=penalty,
            codes=self._codes.ctypes.data,
        )  # fmt: skip
        for name, array in zip(("X", "w", "basis"), self._held, strict=True):
            setattr(self._fields, name, array.ctypes.data)

    def can_fit(self, k: int) -> bool:
        """Whether fits on k columns are made here."""
        look, hessian, pairs = self._costs(k)
        small = (k + 1) * (self._fields.classes - 1) <= self._limits.unknowns
        short = look <= MOST_LOOKED and hessian <= MOST_HESSIAN
        return small and short and pairs <= MOST_PAIRS

    def _costs(self, k: int) -> tuple[int, int, int]:
        """Products of a look at the rows and of a Hessian, and pairs of columns and of classes."""
        n, classes = self._fields.n, self._fields.classes
        pairs, squares = classes * (classes - 1) // 2, (k + 1) * (k + 2) // 2
        unknowns = (k + 1) * (classes - 1)
        return n * classes * (2 * k + 16), n * pairs * squares + unknowns**3 // 6, pairs + squares

    def _ends(self, steps: int, tol: float, ceiling: float) -> _Ends:
        at = self._limits
        return _Ends(
            steps, at.halvings, tol, ceiling, at.scale, at.reach, at.armijo, at.rest, at.jitter
        )

    def _with(self, members: Sequence[int] | Indices) -> tuple[_Softmax, npt.NDArray[np.int64]]:
        chosen = np.array(members, dtype=np.int64)
        fields = _Softmax.from_buffer_copy(self._fields)
        fields.k, fields.members = len(chosen), chosen.ctypes.data
        return fields, chosen

    def fits(
        self,
        supports: Sequence[Sequence[int]] | Indices,
        theta: Floats,
        *,
        steps: int,
        tol: float,
        ceiling: float = inf,
    ) -> Fits:
        """Fit on several supports of one size, one after the other.

        By steps of limited-memory BFGS on top of a Hessian, which is made anew where that is
        cheaper than the steps without. `separated` is always False: fit with NumPy to know
        whether classes are separated.
        """
        m = len(theta)
        theta, values = np.array(theta, dtype=np.float64, order="C"), np.empty(m)
        converged = np.zeros(m, dtype=bool)
        value, ends = _NUMBER(), self._ends(steps, tol, ceiling)
        for i, members in enumerate(supports):
            fields, _chosen = self._with(members)
            done = self._library.exactk_softmax_fit(
                ctypes.byref(fields), theta[i].ctypes.data, ctypes.byref(ends), ctypes.byref(value)
            )
            _check(done)
            values[i], converged[i] = value.value, done == _SETTLED
        values[~np.isfinite(values)] = inf
        return Fits(theta, values, converged, np.zeros(m, dtype=bool))

    def swaps(
        self,
        known: SecondOrder,
        slots: Indices,
        at: Indices,
        *,
        steps: int,
        tol: float,
        ceiling: float = inf,
    ) -> Fits:
        """Fit several supports that are one swap away, from where the second order leads.

        The Hessian is what it says, too. Once one fit is better than a ceiling that is given,
        it is the ceiling of the others. With no steps the values are those of the starts.

        Parameters
        ----------
        known : SecondOrder
        slots, at : ndarray of intp
            Members that go, and which of the columns come in, as the last of the members.
        steps, tol, ceiling
            As in `Criterion.fits`.
        """
        fields, _chosen = self._with(known.members)
        count = len(slots)
        theta, values = np.empty((count, *known.theta.shape)), np.empty(count)
        converged = np.empty(count, dtype=np.uint8)
        arrays = (known.theta, known.K, known.T, known.E, known.C)
        addresses = [array.ctypes.data for array in arrays]
        columns, out, into = (
            np.array(numbers, dtype=np.int64) for numbers in (known.columns, slots, at)
        )
        if into.size and not 0 <= into.min() <= into.max() < len(columns):
            raise IndexError("a column to come in is none of those that are known")
        ends = self._ends(steps, tol, ceiling)
        look, hessian, _ = self._costs(len(known.members))
        each = LOOKS * look + HESSIANS * hessian if steps else look
        at_once = max(1, MOST_CALLED // each)
        for i in range(0, count, at_once):
            part = slice(i, i + at_once)
            _check(
                self._library.exactk_softmax_swaps(
                    ctypes.byref(fields), *addresses, columns.ctypes.data, len(out[part]),
                    out[part].ctypes.data, into[part].ctypes.data, ctypes.byref(ends),
                    theta[part].ctypes.data, values[part].ctypes.data, converged[part].ctypes.data,
                )
            )  # fmt: skip
            if ceiling < inf:
                done = values[part][converged[part] > 0]
                ends.ceiling = min(ends.ceiling, float(done.min(initial=inf)))
        values[~np.isfinite(values)] = inf
        return Fits(theta, values, converged.astype(bool), np.zeros(count, dtype=bool))

    def model(
        self, members: Sequence[int], theta: Floats, columns: Indices
    ) -> tuple[Floats, Floats, Floats, Floats]:
        """Return half the Hessian at a fit, and what it needs to know of other columns.

        Returns
        -------
        H : ndarray of shape (N, N)
            With the ridge.
        gradients : ndarray of shape (m, r)
        across : ndarray of shape (m, N, r)
            Products with the members and the intercept.
        own : ndarray of shape (m, r, r)
        """
        fields, _chosen = self._with(members)
        theta = np.ascontiguousarray(theta)
        q, r = theta.shape
        N, m = q * r, len(columns)
        H, gradients = np.empty((N, N)), np.empty((m, r))
        across, own = np.empty((m, N, r)), np.empty((m, r, r))
        wanted = np.ascontiguousarray(columns, dtype=np.int64)
        classes = self._fields.classes
        at_once = max(1, 2 * MOST_CALLED // (self._fields.n * classes**2 * (q + 1)))
        # At least once: the Hessian is wanted where no column is, too.
        for i in range(0, max(m, 1), at_once):
            part = slice(i, i + at_once)
            arrays = (wanted[part], H, gradients[part], across[part], own[part])
            _check(
                self._library.exactk_softmax_model(
                    ctypes.byref(fields), theta.ctypes.data, len(wanted[part]),
                    *(array.ctypes.data for array in arrays),
                )
            )  # fmt: skip
        return H, gradients, across, own

    def prices(self, known: SecondOrder, held: Sequence[int]) -> Floats:
        """Return what each member out (k) and each of m columns in lowers the objective by.

        Parameters
        ----------
        known : SecondOrder
        held : sequence of int
            Members that stay.
        """
        (q, r), m = known.theta.shape, len(known.T)
        gains = np.empty((q - 1, m))
        fixed = np.zeros(q - 1, dtype=np.uint8)
        fixed[list(held)] = 1
        arrays = (known.K, known.theta, known.T, known.E, known.C, fixed, gains)
        addresses = (array.ctypes.data for array in arrays)
        _check(self._library.exactk_softmax_prices(q - 1, r, m, *addresses))
        return gains


def _check(done: int) -> None:
    if done == _NO_MEMORY:
        raise MemoryError("no memory for fits of logistic regression")
    if done == _NO_COLUMN:
        raise IndexError("a member is no column of the table")


def compiled_softmax(
    X: Floats, codes: Indices, w: Floats, basis: Floats, penalty: float, limits: Limits
) -> CompiledSoftmax | None:
    """Return the compiled deviance, or None where nothing is compiled; see `CompiledSoftmax`."""
    loaded = library()
    if loaded is None:
        return None
    loaded.exactk_softmax_fit.argtypes = [_POINTER] * 4
    loaded.exactk_softmax_swaps.argtypes = (*[_POINTER] * 7, _INTEGER, *[_POINTER] * 6)
    loaded.exactk_softmax_model.argtypes = (_POINTER, _POINTER, _INTEGER, *[_POINTER] * 5)
    loaded.exactk_softmax_prices.argtypes = (*[_INTEGER] * 3, *[_POINTER] * 7)
    return CompiledSoftmax(loaded, X, codes, w, basis, penalty, limits)
