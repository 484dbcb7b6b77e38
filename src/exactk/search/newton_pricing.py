"""Prices of swaps by the whole Hessian of a likelihood, for the few columns that are worth it.

The formulas are those of `exactk.search.unit_pricing` with K, the inverse of half the Hessian at
the fit (intercepts included), in place of G: each column has r coefficients, one an output.
"""

from __future__ import annotations

import numpy as np

from exactk.losses.base import Fits
from exactk.losses.newton import LikelihoodCriterion, half_hessian, products
from exactk.losses.softmax_native import SecondOrder
from exactk.search.loss_pricing import LossTable, Support, ignore_overflow
from exactk.types import Floats, Indices

__all__ = ["SecondOrderModel"]


# What is left of a block beside its own size, at least.
LEAST = 1e-9


class SecondOrderModel:
    """Second-order prices of swaps, and fits from the coefficients that they lead to.

    Parameters
    ----------
    table : LossTable
        With a likelihood.
    support : Support
    columns : ndarray of intp
        Places of the columns that may come in.
    """

    @ignore_overflow
    def __init__(self, table: LossTable, support: Support, columns: Indices) -> None:
        self.table, self.support, self.columns = table, support, columns
        self.theta = np.ascontiguousarray(support.theta)
        q, r = self.theta.shape
        self._compiled = table.compiled(q - 1)
        H, C, across, own = (
            self._sums()
            if self._compiled is None
            else self._compiled.model(support.members, self.theta, columns)
        )
        size = H.ravel()[:: q * r + 1]
        size += LEAST * np.maximum(size, LEAST * (float(size.max()) or 1.0))
        K = _inverse(H)
        T = K @ across
        E = own - np.swapaxes(across, 1, 2) @ T
        diagonal = np.einsum("mrr->mr", E)
        diagonal += table.penalty
        # Where all rows are certain there is nothing left to price.
        diagonal += LEAST * float(diagonal.sum(axis=1).max(initial=0.0)) / r or 1.0
        self.known = SecondOrder(support.members, self.theta, columns, K, T, E, C)
        self._held = [i for i, p in enumerate(support.members) if p in table.fixed]
        self._kept: dict[int, tuple[Floats, Floats, float]] = {}

    def _sums(self) -> tuple[Floats, Floats, Floats, Floats]:
        """Half the Hessian; of the columns gradients, products with it and with themselves."""
        table, columns = self.table, self.columns
        criterion = table.criterion
        assert isinstance(criterion, LikelihoodCriterion)
        (q, r), m = self.theta.shape, len(columns)
        members = list(self.support.members)
        Z = np.vstack([table.X[members], np.ones(table.X.shape[1])])
        seen = criterion.forward(table.predict(members, self.theta))[1]
        force, h = criterion.derivatives(seen)
        ridge = np.full(q, table.penalty)
        ridge[-1] = 0.0
        first, second = criterion.pairs
        across, own = np.zeros((m, q, r, r)), np.zeros((m, r, r))
        for i, p in enumerate(columns):
            x = table.X[p]
            hx = h * x
            across[i][:, first, second] = across[i][:, second, first] = (hx @ Z.T).T
            own[i][first, second] = own[i][second, first] = hx @ x
        H = half_hessian(h, products(Z), criterion, ridge)
        return H, table.X[columns] @ force, across.reshape(m, q * r, r), own

    @ignore_overflow
    def swaps(self) -> Floats:
        """Return how much each member out (k) and each of the columns in (m) lowers the loss."""
        if self._compiled is not None:
            return self._compiled.prices(self.known, self._held)
        k = len(self.theta) - 1
        out = np.full((k, len(self.columns)), -np.inf)
        for i in range(k):
            if i not in self._held:
                C, E, loss = self._without(i)
                inverses = np.array([_inverse(block) for block in E])
                out[i] = np.einsum("ma,mab,mb->m", C, inverses, C) - loss
        return out

    def members(self, slot: int, at: int) -> list[int]:
        """Return the members after a swap, the new one last."""
        members = [*self.support.members, int(self.columns[at])]
        del members[slot]
        return members

    def fits(
        self,
        slots: Indices,
        at: Indices,
        *,
        steps: int,
        tol: float,
        ceiling: float = np.inf,
    ) -> Fits:
        """Fit several swaps from where the prices lead; without steps, look at that alone.

        Parameters
        ----------
        slots, at : ndarray of intp
            Members that go, and which of the columns come in, as the last of the members.
        steps, tol, ceiling
            As in `Criterion.fits`.
        """
        if self._compiled is not None:
            return self._compiled.swaps(
                self.known, slots, at, steps=steps, tol=tol, ceiling=ceiling
            )
        pairs = list(zip(slots.tolist(), at.tolist(), strict=True))
        supports = [self.members(*pair) for pair in pairs]
        theta = np.array([self._start(*pair) for pair in pairs])
        if steps:
            return self.table.fits(supports, theta, steps=steps, tol=tol, ceiling=ceiling)
        values = [self.table.value(*each) for each in zip(supports, theta, strict=True)]
        none = np.zeros(len(pairs), dtype=bool)
        return Fits(theta, np.array(values), none, none)

    def _block(self, i: int) -> tuple[Floats, Floats]:
        """Columns i of K (q × r × r), and the inverse of its own block."""
        q, r = self.theta.shape
        column = self.known.K.reshape(q, r, q, r)[:, :, i]
        return column, _inverse(column[i])

    def _without(self, i: int) -> tuple[Floats, Floats, float]:
        """Gradients and Hessians of the columns once member i is gone, and what that costs."""
        if i in self._kept:
            return self._kept[i]
        r, v = self.theta.shape[1], self.theta[i]
        T_i = self.known.T[:, i * r : (i + 1) * r]
        _, inverse = self._block(i)
        force = inverse @ v
        C = self.known.C + np.einsum("mab,a->mb", T_i, force)
        E = self.known.E + np.swapaxes(T_i, 1, 2) @ (inverse @ T_i)
        self._kept[i] = C, E, float(v @ force)
        return self._kept[i]

    @ignore_overflow
    def _start(self, i: int, at: int) -> Floats:
        """Return the coefficients with member i out and column number `at` in, as its last."""
        q, r = self.theta.shape
        C, E, _ = self._without(i)
        new = _inverse(E[at]) @ C[at]
        column, inverse = self._block(i)
        T = self.known.T[at].reshape(q, r, r)
        gone = inverse @ (self.theta[i] - T[i] @ new)
        theta = self.theta - column @ gone - T @ new
        # What is left of the member's own coefficients is rounding.
        rest = np.delete(theta[:-1], i, axis=0)
        return np.vstack([rest, new, theta[-1:]])


def _inverse(A: Floats) -> Floats:
    """Return the inverse; of a matrix that has none, as of copies without a ridge, the nearest."""
    try:
        inverse = np.linalg.inv(A)
    except np.linalg.LinAlgError:
        inverse = np.linalg.pinv(A, hermitian=True)
    return np.asarray(inverse, dtype=np.float64)
