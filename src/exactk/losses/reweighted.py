"""Losses of the length of a residual, fitted by reweighted least squares."""

from __future__ import annotations

import ctypes
from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import cache, cached_property
from math import inf
from typing import Any

import numpy as np

from exactk.losses.base import Criterion, Fits
from exactk.losses.native import library
from exactk.types import Floats
from exactk.utils.linalg import weighted_median

__all__ = [
    "PowerFits",
    "ResidualCriterion",
    "compiled",
]


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


# Residuals below this share of the target's own size are zero, and weights no larger than theirs.
ZERO_SHARE = 1e-7
# For prices weights are held at that of a residual of this share of the median one: rows that are
# fitted exactly would otherwise seem to forbid every swap.
PRICE_SHARE = 0.4
# A fit that falls by x in a cycle is taken to fall by no more than this many times x in all.
REACH = 25.0
# With a tolerance as small as this a fit is one that is reported, to the last digits: so many steps
# are made after the loss has ceased to fall.
POLISHED = 1e-13
LAST_STEPS = 30
# Ten times as many of a small table, unless the coefficients have come to rest before.
FEW_VALUES, STILL = 10_000, 1e-13
# What is added to the diagonal, beside it: columns that depend on each other must not end a fit.
JITTER = 1e-15


class ResidualCriterion(Criterion):
    """A sum over rows of ρ(‖t_i − f_i‖), each bounded above by ω_i‖t_i − f_i‖² and a constant.

    The bound touches where it was made, so that least squares with the weights ω lower the loss,
    step by step (IRLS). Two steps show where they lead: every third goes there at once (SQUAREM,
    Varadhan & Roland 2008) and counts only if it lowers the objective.
    """

    def __init__(self, T: Floats, w: Floats, basis: Floats, offset: Floats) -> None:
        super().__init__(T, w, basis, offset)
        middle = self.centre()
        if not offset.any():
            # Of numbers, which a few wrong rows may move far; of classes a mean serves any order.
            middle = np.array([weighted_median(column, w) for column in T.T])
        size = np.sqrt(((T - middle) ** 2).sum(axis=1))
        self.size = float(np.average(size, weights=w)) or 1.0
        self.zero = ZERO_SHARE * self.size

    def norms(self, F: Floats) -> Floats:
        """Return the lengths of the residuals, m × n."""
        E = self.T - F
        norms: Floats = np.sqrt(np.einsum("...ij,...ij->...i", E, E))
        return norms

    @abstractmethod
    def total(self, e: Floats) -> Floats:
        """Return the loss of residuals of these lengths (m × n), summed over rows."""

    @abstractmethod
    def weights(self, e: Floats) -> Floats:
        """Return ω at residuals of these lengths (m × n), row weights included."""

    def value(self, F: Floats) -> Floats:  # noqa: D102
        return self.total(self.norms(F))

    def model(self, F: Floats) -> tuple[Floats, Floats]:  # noqa: D102
        e = self.norms(F)[None]
        force = self.weights(e)[0][:, None] * (self.T - F)
        least = max(PRICE_SHARE * weighted_median(e[0], self.w), self.zero)
        return force, self.weights(np.maximum(e, least))[0]

    def curvature(self) -> float:  # noqa: D102
        # Of residuals of the mean length: single ones may be zero.
        whole = self.weights(np.full((1, len(self.w)), self.size))
        return float(whole.sum() / self.w.sum())

    def centre(self) -> Floats:  # noqa: D102
        middle: Floats = np.average(self.T, axis=0, weights=self.w)
        return middle

    @property
    def power(self) -> float | None:
        """The r of a loss that is Σ w‖t − f‖ʳ, which is fitted in C; None for others."""
        return None

    @cached_property
    def _powers(self) -> PowerFits | None:
        """The fits in C, if there are any."""
        if self.power is None:
            return None
        across, w = np.ascontiguousarray(self.T.T), np.ascontiguousarray(self.w)
        return PowerFits(across, w, self.power, self.zero)

    @property
    def _compiled(self) -> PowerFits | None:
        return None if compiled() is None else self._powers

    def cold_start(self, Z: Floats, penalty: float) -> Floats:
        """Return the fits by squared loss: of a loss that is not convex the end depends on it."""
        ridge = _ridge(Z.shape[1], penalty / self.curvature())
        if (native := self._compiled) is not None:
            start = np.zeros((len(Z), Z.shape[1], self.n_outputs))
            return replace(native, power=2.0).steps(Z, ridge, start, 1, 0.0)[0]
        return self._solve(Z, np.broadcast_to(self.w, (len(Z), len(self.w))), ridge)

    def fits(  # noqa: D102
        self,
        Z: Floats,
        penalty: float,
        theta: Floats,
        *,
        steps: int,
        tol: float,
        ceiling: float = inf,
    ) -> Fits:
        ridge = _ridge(Z.shape[1], penalty)
        if tol > POLISHED:
            return self._descend(Z, ridge, theta, steps, tol, ceiling)
        return self._polished(Z, ridge, theta, steps, tol)

    def _polished(self, Z: Floats, ridge: Floats, theta: Floats, steps: int, tol: float) -> Fits:
        """Fit in coordinates that are orthogonal: columns may nearly depend on each other."""
        parts = []
        for one, start in zip(Z, theta, strict=True):
            U, s, V = np.linalg.svd(one.T, full_matrices=False)
            kept = s > np.finfo(float).eps * max(one.shape) * s.max(initial=0.0)
            back = V[kept].T / s[kept]
            turned = back.T @ ridge @ back
            across, at = U[:, kept].T[None], (s[kept, None] * (V[kept] @ start))[None]
            fit = self._descend(across, turned, at, steps, tol, inf)
            # The loss is flat there, and coefficients still gain digits.
            count = LAST_STEPS if one.size > FEW_VALUES else 10 * LAST_STEPS
            last, value = self._last_steps(across, turned, fit.theta, count)
            best = np.where(value <= fit.values + tol * self._scale, last, fit.theta)
            parts.append((back @ best[0], min(float(value[0]), float(fit.values[0])), fit))
        return Fits(
            np.array([part for part, *_ in parts]).reshape(theta.shape),
            np.array([value for _, value, _ in parts]),
            np.array([fit.converged[0] for *_, fit in parts]),
            np.zeros(len(Z), dtype=bool),
        )

    def _last_steps(
        self, Z: Floats, ridge: Floats, theta: Floats, count: int
    ) -> tuple[Floats, Floats]:
        """Return θ after so many plain steps, or when they have come to rest; and objectives."""
        if (native := self._compiled) is not None:
            return native.steps(Z, ridge, theta, count, STILL)
        for _ in range(count):
            before = theta
            theta, _ = self._step(Z, theta, ridge)
            if np.abs(theta - before).max(initial=0.0) <= STILL * np.abs(theta).max(initial=0.0):
                break
        return theta, self._objective(Z, theta, ridge)

    def _descend(
        self, Z: Floats, ridge: Floats, theta: Floats, steps: int, tol: float, ceiling: float
    ) -> Fits:
        if (native := self._compiled) is not None:
            return native.descend(
                Z, ridge, theta, steps=steps, tol=tol, ceiling=ceiling, scale=self._scale,
                reach=REACH,
            )  # fmt: skip
        m = len(Z)
        theta, best, values = theta.copy(), theta.copy(), np.full(m, inf)
        converged = np.zeros(m, dtype=bool)
        active, held = np.arange(m), Z
        for cycle in range(max(1, steps // 3)):
            t0 = theta[active]
            t1, v0 = self._step(held, t0, ridge)
            fell = values[active] - v0
            # With columns that nearly depend on each other rounding may let a step rise.
            better = active[fell > 0]
            best[better], values[better] = t0[fell > 0], v0[fell > 0]
            ended = ~(fell > tol * np.maximum(v0, tol * self._scale))
            given_up = v0 - REACH * np.maximum(fell, 0.0) > ceiling
            if cycle < 2:
                ended, given_up = ended & (fell <= 0), np.zeros(len(active), dtype=bool)
            converged[active[ended & ~given_up]] = True
            ended |= given_up
            if ended.any():
                active, t0, t1 = active[~ended], t0[~ended], t1[~ended]
                if len(active) == 0:
                    return Fits(best, values, converged, np.zeros(m, dtype=bool))
                held = Z[active]
            theta[active] = self._squarem_step(held, t0, t1, ridge)
        # What the last steps led to counts if it is better.
        now = self._objective(held, theta[active], ridge)
        lower = now < values[active]
        best[active[lower]], values[active[lower]] = theta[active[lower]], now[lower]
        return Fits(best, values, converged, np.zeros(m, dtype=bool))

    @property
    def _scale(self) -> float:
        """What the loss is about, in its own units."""
        return self.size * float(self.w.sum())

    def _objective(self, Z: Floats, theta: Floats, ridge: Floats) -> Floats:
        F = np.swapaxes(Z, 1, 2) @ theta
        return self.value(F) + np.einsum("mqr,mqr->m", ridge @ theta, theta)

    def _step(self, Z: Floats, theta: Floats, ridge: Floats) -> tuple[Floats, Floats]:
        """Return the next θ by least squares with the weights of this one, and its objective."""
        F = np.swapaxes(Z, 1, 2) @ theta
        e = self.norms(F)
        values = self.total(e) + np.einsum("mqr,mqr->m", ridge @ theta, theta)
        return self._solve(Z, self.weights(e), ridge), values

    def _solve(self, Z: Floats, omega: Floats, ridge: Floats) -> Floats:
        """Return the least squares with these weights (m × n)."""
        ZW = Z * omega[:, None, :]
        A = ZW @ np.swapaxes(Z, 1, 2)
        A += ridge
        diagonal = np.einsum("mqq->mq", A)
        diagonal += JITTER * diagonal + np.finfo(float).tiny
        return np.asarray(np.linalg.solve(A, ZW @ self.T))

    def _squarem_step(self, Z: Floats, t0: Floats, t1: Floats, ridge: Floats) -> Floats:
        """Return the θ after this step and two more, the last from where these lead."""
        t2, v1 = self._step(Z, t1, ridge)
        first, second = t1 - t0, t2 - 2.0 * t1 + t0
        speed = np.sqrt(np.einsum("mqr,mqr->m", first, first))
        turn = np.sqrt(np.einsum("mqr,mqr->m", second, second))
        alpha = np.maximum(np.divide(speed, turn, out=np.ones_like(speed), where=turn > 0), 1.0)
        far = t0 + (2.0 * alpha)[:, None, None] * first + (alpha**2)[:, None, None] * second
        t3, v3 = self._step(Z, far, ridge)
        # Beyond the step before, or not at all: the loss must never rise.
        good = (v3 <= v1) & np.isfinite(v3)
        return np.where(good[:, None, None], t3, t2)


def _ridge(q: int, penalty: float) -> Floats:
    """The matrix of the ridge term; the last coefficient is the intercept."""
    ridge = np.diag(np.full(q, float(penalty)))
    ridge[-1, -1] = 0.0
    return ridge
