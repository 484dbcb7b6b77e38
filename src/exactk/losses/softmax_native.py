"""Multinomial logistic regression in C, where the library could be built; see `softmax.h`."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
import numpy.typing as npt

from exactk.losses.criterion import Fits
from exactk.losses.native import library

__all__ = ["CompiledSoftmax", "SecondOrder", "compiled_softmax"]

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]

_POINTER, _INTEGER, _NUMBER = ctypes.c_void_p, ctypes.c_int64, ctypes.c_double
_ENDS = (_INTEGER, _NUMBER, _NUMBER, _NUMBER)
# Products of one look at all rows, at most: a call cannot be interrupted.
MOST_WORK = 10**8


class _Softmax(ctypes.Structure):
    """Mirror of the struct in `softmax.h`."""

    _fields_ = (
        *((name, _INTEGER) for name in ("n", "classes", "k")),
        *((name, _POINTER) for name in ("X", "members", "codes", "w", "basis")),
        ("penalty", _NUMBER),
    )


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
    scale : float
        What the deviance is about: less than a share of it is nothing.
    most : int
        Unknowns of a fit, at most.
    """

    def __init__(
        self,
        loaded: Any,
        X: Floats,
        codes: Indices,
        w: Floats,
        basis: Floats,
        penalty: float,
        scale: float,
        most: int,
    ) -> None:
        self._library, self._scale, self._most = loaded, scale, most
        # Held here: the struct has only addresses.
        self._held = X, codes.astype(np.int64), np.ascontiguousarray(w), basis.copy()
        self._fields = _Softmax(n=X.shape[1], classes=len(basis), penalty=penalty)
        for name, array in zip(("X", "codes", "w", "basis"), self._held, strict=True):
            setattr(self._fields, name, array.ctypes.data)

    def serves(self, k: int) -> bool:
        """Whether fits on k columns are made here."""
        classes, r = self._held[-1].shape
        small = (k + 1) * r <= self._most
        return small and self._fields.n * (k + 1) * classes <= MOST_WORK

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
        cheaper than the steps without. Separated classes are not told apart.
        """
        m = len(theta)
        theta, values = np.array(theta, dtype=np.float64, order="C"), np.empty(m)
        settled = np.zeros(m, dtype=bool)
        value = _NUMBER()
        for i, members in enumerate(supports):
            fields, _chosen = self._with(members)
            done = self._library.exactk_softmax_fit(
                ctypes.byref(fields), theta[i].ctypes.data, steps, tol, ceiling, self._scale,
                ctypes.byref(value),
            )  # fmt: skip
            if done < 0:
                raise MemoryError("no memory for a fit")
            values[i], settled[i] = value.value, done
        return Fits(theta, values, settled, np.zeros(m, dtype=bool))

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

        The Hessian is what it says, too. Once one fit is better than the ceiling, it is the ceiling
        of the others. With no steps the values are those of the starts.

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
        settled = np.empty(count, dtype=np.uint8)
        arrays = (known.theta, known.K, known.T, known.E, known.C)
        wanted = [np.array(numbers, dtype=np.int64) for numbers in (known.columns, slots, at)]
        columns, out, into = (array.ctypes.data for array in wanted)
        if not self._library.exactk_softmax_swaps(
            ctypes.byref(fields), *(array.ctypes.data for array in arrays), columns, count, out,
            into, steps, tol, ceiling, self._scale, theta.ctypes.data, values.ctypes.data,
            settled.ctypes.data,
        ):  # fmt: skip
            raise MemoryError("no memory for fits")
        values[~np.isfinite(values)] = inf
        return Fits(theta, values, settled.astype(bool), np.zeros(count, dtype=bool))

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
        if not self._library.exactk_softmax_model(
            ctypes.byref(fields), theta.ctypes.data, m, wanted.ctypes.data,
            H.ctypes.data, gradients.ctypes.data, across.ctypes.data, own.ctypes.data,
        ):  # fmt: skip
            raise MemoryError("no memory for a Hessian")
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
        if not self._library.exactk_softmax_prices(
            q - 1, r, m, *(array.ctypes.data for array in arrays)
        ):
            raise MemoryError("no memory for prices")
        return gains


def compiled_softmax(
    X: Floats, codes: Indices, w: Floats, basis: Floats, penalty: float, scale: float, most: int
) -> CompiledSoftmax | None:
    """Return the compiled deviance, or None where nothing is compiled; see `CompiledSoftmax`."""
    loaded = library()
    if loaded is None:
        return None
    loaded.exactk_softmax_fit.argtypes = (_POINTER, _POINTER, *_ENDS, _POINTER)
    loaded.exactk_softmax_swaps.argtypes = (
        *[_POINTER] * 7, _INTEGER, _POINTER, _POINTER, *_ENDS, *[_POINTER] * 3,
    )  # fmt: skip
    loaded.exactk_softmax_model.argtypes = (_POINTER, _POINTER, _INTEGER, *[_POINTER] * 5)
    loaded.exactk_softmax_prices.argtypes = (*[_INTEGER] * 3, *[_POINTER] * 7)
    return CompiledSoftmax(loaded, X, codes, w, basis, penalty, scale, most)
