"""Losses of the length of a residual, fitted by reweighted least squares."""

from __future__ import annotations

from abc import abstractmethod
from math import inf

import numpy as np
import numpy.typing as npt

from exactk.linalg import weighted_median
from exactk.losses.criterion import Criterion, Fits

__all__ = ["ResidualCriterion"]

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]

# Residuals below this share of the target's own size are zero, and weights no larger than theirs.
ZERO_SHARE = 1e-8
# For prices weights are held at that of a residual of this share of the median one: rows that are
# fitted exactly would otherwise seem to forbid every swap.
PRICE_SHARE = 0.4
# A fit that falls by x in a cycle is taken to fall by no more than this many times x in all.
REACH = 25.0
# With a tolerance as small as this so many more steps are made once the loss does not fall any
# more: it is flat there, and coefficients still gain digits.
POLISHED = 1e-13
LAST_STEPS = 30
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

    def cold(self, Z: Floats, penalty: float) -> Floats:
        """Return the fits by squared loss: of a loss that is not convex the end depends on it."""
        ridge = np.full(Z.shape[1], penalty / self.curvature())
        ridge[-1] = 0.0
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
        m, q, _ = Z.shape
        theta, values = theta.copy(), np.full(m, inf)
        settled = np.zeros(m, dtype=bool)
        ridge = np.full(q, penalty)
        ridge[-1] = 0.0
        active, held = np.arange(m), Z
        floor = tol * self.size * float(self.w.sum())
        for cycle in range(max(1, steps // 3)):
            t0 = theta[active]
            t1, v0 = self._step(held, t0, ridge)
            fell = values[active] - v0
            values[active] = v0
            ended = fell <= np.maximum(tol * v0, tol * floor)
            if cycle > 1:
                given_up = v0 - REACH * fell > ceiling
                settled[active[ended & ~given_up]] = True
                ended |= given_up
            else:
                ended[:] = False
            if ended.any():
                active, t0, t1, v0 = active[~ended], t0[~ended], t1[~ended], v0[~ended]
                if len(active) == 0:
                    break
                held = Z[active]
            theta[active] = self._leap(held, t0, t1, v0, ridge)
        if tol <= POLISHED:
            for _ in range(LAST_STEPS):
                theta, _ = self._step(Z, theta, ridge)
        left = ~settled | (tol <= POLISHED)
        if left.any():
            # What was left at the last step, or given up, is worth what it is now.
            F = np.swapaxes(Z[left], 1, 2) @ theta[left]
            now = self.value(F) + np.einsum("mqr,q->m", theta[left] ** 2, ridge)
            values[left] = now
        return Fits(theta, values, settled, np.zeros(m, dtype=bool))

    def _step(self, Z: Floats, theta: Floats, ridge: Floats) -> tuple[Floats, Floats]:
        """Return the next θ by least squares with the weights of this one, and its objective."""
        F = np.swapaxes(Z, 1, 2) @ theta
        e = self.norms(F)
        values = self.total(e) + np.einsum("mqr,q->m", theta**2, ridge)
        return self._solve(Z, self.weights(e), ridge), values

    def _solve(self, Z: Floats, omega: Floats, ridge: Floats) -> Floats:
        """Return the least squares with these weights (m × n)."""
        ZW = Z * omega[:, None, :]
        A = ZW @ np.swapaxes(Z, 1, 2)
        diagonal = np.einsum("mqq->mq", A)
        diagonal += ridge + JITTER * diagonal + np.finfo(float).tiny
        return np.asarray(np.linalg.solve(A, ZW @ self.T))

    def _leap(self, Z: Floats, t0: Floats, t1: Floats, v0: Floats, ridge: Floats) -> Floats:
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
