"""Prices of swaps by the whole Hessian of a likelihood, for the few columns that are worth it.

The formulas are those of `exactk.search.blocks` with K, the inverse of half the Hessian at the fit
(intercepts included), in place of G: each column has r coefficients, one an output.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from exactk.losses.newton import LikelihoodCriterion, half_hessian, products
from exactk.search.model import LossTable, Support

__all__ = ["NewtonModel"]

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]

# What is left of a block beside its own size, at least.
LEAST = 1e-9


class NewtonModel:
    """Second-order prices of swaps, and the coefficients that they lead to.

    Parameters
    ----------
    table : LossTable
        With a likelihood.
    support : Support
    columns : ndarray of intp
        Places of the columns that may come in.
    """

    def __init__(self, table: LossTable, support: Support, columns: Indices) -> None:
        criterion = table.criterion
        assert isinstance(criterion, LikelihoodCriterion)
        self.columns, self.theta = columns, support.theta
        q, r = support.theta.shape
        Z = np.vstack([table.X[list(support.members)], np.ones(table.X.shape[1])])
        seen = criterion.see(table.predict(support.members, support.theta))[1]
        force, h = criterion.slope(seen)
        ridge = np.full(q, table.penalty)
        ridge[-1] = 0.0
        first, second = criterion.pairs
        H = half_hessian(h, products(Z), criterion, ridge)
        size = H.ravel()[:: q * r + 1]
        size += LEAST * np.maximum(size, LEAST * (float(size.max()) or 1.0))
        self.K = np.linalg.inv(H).reshape(q, r, q, r)
        self.C = table.X[columns] @ force
        m = len(columns)
        self.T = np.empty((m, q, r, r))
        self.E = np.empty((m, r, r))
        flat = self.K.reshape(q * r, q * r)
        across, own = np.zeros((q, r, r)), np.zeros((r, r))
        for i, p in enumerate(columns):
            x = table.X[p]
            hx = h * x
            across[:, first, second] = across[:, second, first] = (hx @ Z.T).T
            own[first, second] = own[second, first] = hx @ x
            self.T[i] = (flat @ across.reshape(q * r, r)).reshape(q, r, r)
            self.E[i] = own - np.tensordot(across, self.T[i], axes=((0, 1), (0, 1)))
        self.E += table.penalty * np.eye(r)
        # Where all rows are certain there is nothing left to price.
        self._floor = LEAST * float(np.einsum("mrr->m", self.E).max(initial=0.0)) / r or 1.0
        self._kept: dict[int, tuple[Floats, Floats, float]] = {}
        self._held = [i for i, p in enumerate(support.members) if p in table.fixed]

    def swaps(self) -> Floats:
        """Return how much each member out (k) and each of the columns in (m) lowers the loss."""
        k = len(self.theta) - 1
        out = np.full((k, len(self.columns)), -np.inf)
        for i in range(k):
            if i not in self._held:
                C, E, loss = self._without(i)
                gain = np.linalg.solve(E, C[:, :, None])[:, :, 0]
                out[i] = np.einsum("mr,mr->m", C, gain) - loss
        return out

    def _without(self, i: int) -> tuple[Floats, Floats, float]:
        """Gradients and Hessians of the columns once member i is gone, and what that costs."""
        if i in self._kept:
            return self._kept[i]
        K_ii, v = self.K[i, :, i], self.theta[i]
        T_i = self.T[:, i]
        inverse = np.linalg.inv(K_ii)
        force = inverse @ v
        weight = inverse @ T_i
        C = self.C + np.einsum("mab,a->mb", T_i, force)
        E = self.E + np.swapaxes(T_i, 1, 2) @ weight
        E[:, np.arange(len(v)), np.arange(len(v))] += self._floor
        self._kept[i] = C, E, float(v @ force)
        return self._kept[i]

    def start(self, i: int, at: int) -> Floats:
        """Return the coefficients with member i out and column number `at` in, as its last."""
        C, E, _ = self._without(i)
        new = np.linalg.solve(E[at], C[at])
        K_ii = self.K[i, :, i]
        gone = np.linalg.solve(K_ii, self.theta[i] + self.T[at, i] @ new)
        theta = self.theta - np.einsum("qab,b->qa", self.K[:, :, i], gone)
        theta -= np.einsum("qab,b->qa", self.T[at], new)
        # What is left of the member's own coefficients is rounding.
        rest = np.delete(theta[:-1], i, axis=0)
        return np.vstack([rest, new, theta[-1:]])
