"""Reweighted least squares in C, for powers of the length of a residual; see `irls.h`.

A call is kept short, for Ctrl-C has to wait for its end: large fits go on cycle by cycle.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cache
from math import inf
from typing import Any

import numpy as np
import numpy.typing as npt

from exactk.losses.criterion import Fits
from exactk.losses.native import library

__all__ = ["PowerFits", "compiled"]

Floats = npt.NDArray[np.float64]

_POINTER = ctypes.c_void_p
# Products of a call, some tenths of a second.
PRODUCTS_A_CALL = 10**9
# Steps of a cycle: two, and one from where they lead.
CYCLE = 3
# How a fit stands, as in `irls.h`.
RUNNING, SETTLED = 0, 1


class _Task(ctypes.Structure):
    """Mirror of the struct in `irls.h`."""

    _fields_ = (
        *((name, ctypes.c_int64) for name in ("n", "q", "r")),
        *((name, ctypes.c_double) for name in ("power", "zero")),
        *((name, _POINTER) for name in ("T", "w", "ridge")),
    )


@cache
def compiled() -> Any:
    """The library with its functions declared, or None: NumPy's then give the same answers."""
    loaded = library()
    if loaded is None:
        return None
    number, count = ctypes.c_double, ctypes.c_int64
    loaded.exactk_irls_descend.argtypes = (
        _POINTER, count, _POINTER, count, count, ctypes.c_int, *[number] * 4, *[_POINTER] * 4
    )  # fmt: skip
    loaded.exactk_irls_descend.restype = ctypes.c_int
    loaded.exactk_irls_steps.argtypes = (
        _POINTER, count, _POINTER, count, number, _POINTER, _POINTER
    )  # fmt: skip
    loaded.exactk_irls_steps.restype = count
    return loaded


@dataclass(frozen=True, eq=False)
class PowerFits:
    """Fits of Σ w_i‖t_i − f_i‖ʳ in C.

    Attributes
    ----------
    T : ndarray of shape (r, n)
    w : ndarray of shape (n,)
    power : float
    zero : float
        Residuals below it count as this.
    """

    T: Floats
    w: Floats
    power: float
    zero: float

    def descend(
        self,
        Z: Floats,
        ridge: Floats,
        theta: Floats,
        *,
        steps: int,
        tol: float,
        ceiling: float,
        scale: float,
        reach: float,
    ) -> Fits:
        """Return what the descent of `exactk.losses.reweighted` comes to."""
        m, Z = len(Z), np.ascontiguousarray(Z)
        theta = np.array(theta, order="C")
        best, values, state = theta.copy(), np.full(m, inf), np.zeros(m, dtype=np.uint8)
        task, kept = self._task(Z, ridge)
        cycles = max(1, steps // CYCLE)
        each = CYCLE * self._products(Z)
        at_once = max(1, PRODUCTS_A_CALL // (each * cycles))
        a_call = max(1, PRODUCTS_A_CALL // each)
        for i in range(0, m, at_once):
            part = slice(i, i + at_once)
            arrays = [array[part] for array in (Z, theta, best, values, state)]
            columns, *results = (array.ctypes.data for array in arrays)
            for first in range(0, cycles, a_call):
                last = min(first + a_call, cycles)
                done = compiled().exactk_irls_descend(
                    ctypes.byref(task), len(arrays[0]), columns, first, last, last == cycles,
                    tol, scale, reach, ceiling, *results,
                )  # fmt: skip
                _check(done)
                if arrays[-1].all():
                    break
        del kept
        return Fits(best, values, state == SETTLED, np.zeros(m, dtype=bool))

    def steps(
        self, Z: Floats, ridge: Floats, theta: Floats, count: int, still: float
    ) -> tuple[Floats, Floats]:
        """Return θ after so many plain steps, or when they have come to rest; and objectives."""
        Z, theta, values = np.ascontiguousarray(Z), np.array(theta, order="C"), np.empty(len(Z))
        task, kept = self._task(Z, ridge)
        a_call = max(1, PRODUCTS_A_CALL // self._products(Z))
        for i in range(len(Z)):
            for first in range(0, count, a_call):
                wanted = min(a_call, count - first)
                made = compiled().exactk_irls_steps(
                    ctypes.byref(task), 1, Z[i].ctypes.data, wanted, still,
                    theta[i].ctypes.data, values[i:].ctypes.data,
                )  # fmt: skip
                _check(made >= 0)
                if made < wanted:
                    break
        del kept
        return theta, values

    def _task(self, Z: Floats, ridge: Floats) -> tuple[_Task, Floats]:
        """The struct, and what must live as long as it."""
        _, q, n = Z.shape
        ridge = np.ascontiguousarray(ridge)
        pointers = (array.ctypes.data for array in (self.T, self.w, ridge))
        return _Task(n, q, len(self.T), self.power, self.zero, *pointers), ridge

    def _products(self, Z: Floats) -> int:
        """About how many a step of one fit takes."""
        _, q, n = Z.shape
        return n * q * (q // 2 + 2 * len(self.T) + 1)


def _check(is_done: bool) -> None:
    if not is_done:
        raise MemoryError("a fit found no memory to work in")
