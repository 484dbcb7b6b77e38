"""What the rules leave of a part of a tree: cheap checks, each of which can only be too lenient."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from exactk.search.feasible import Feasible

__all__ = ["Narrow"]

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]

# Costs are sums in some order: what is above the budget by less than this may be at it.
ROUNDING = 1e-9


class Narrow:
    """Which units may still come in, and whether enough of them do.

    Parameters
    ----------
    feasible : Feasible
    """

    def __init__(self, feasible: Feasible) -> None:
        self.feasible, self.weights, self.k = feasible, feasible.weights, feasible.k
        self._budget = feasible.budget * (1 + ROUNDING)
        self._has_budget = bool(np.isfinite(feasible.budget))
        self._ruled = (
            self._has_budget or len(feasible.low) > 0 or feasible.clashes.is_active
        )  # fmt: skip

    def left(self, inside: Sequence[int]) -> int:
        """Return how many of the k are missing."""
        return self.k - int(self.weights[list(inside)].sum())

    def __call__(self, inside: list[int], free: Indices) -> tuple[list[int], Indices] | None:
        """Return the units in and the units free as the rules have them; None if no set is left.

        Parameters
        ----------
        inside : list of int
            Units that are in.
        free : ndarray of intp
            Units that may be.
        """
        while True:
            left = self.left(inside)
            if left < 0:
                return None
            kept = free[self.weights[free] <= left]
            if self._ruled:
                within = self._within(inside, kept, left)
                if within is None:
                    return None
                kept = within
            there = int(self.weights[kept].sum())
            if there < left:
                return None
            if there > left or left == 0:
                return inside, kept
            # Whoever is left is needed.
            inside, free = inside + kept.tolist(), kept[:0]

    def _within(self, inside: list[int], free: Indices, left: int) -> Indices | None:
        """The free units that keep the rules beside those in; None where a rule is broken."""
        feasible = self.feasible
        at = feasible.totals(inside)
        if at.cost > self._budget or (at.counts > feasible.high).any() or at.clashes[inside].any():
            return None
        shares = feasible.shares[:, free]
        fits = (at.counts[:, None] + shares <= feasible.high[:, None]).all(axis=0)
        fits &= at.cost + feasible.costs[free] <= self._budget
        fits &= at.clashes[free] == 0
        free = free[fits]
        need = feasible.low - at.counts
        if (need > left).any() or (need > feasible.shares[:, free].sum(axis=1)).any():
            return None
        if self._has_budget and at.cost + self._cheapest(free, left) > self._budget:
            return None
        return free

    def _cheapest(self, free: Indices, left: int) -> float:
        """The least that so many of the k cost, were units divisible."""
        weights, costs = self.weights[free], self.feasible.costs[free]
        order = np.argsort(costs / weights, kind="stable")
        before = np.cumsum(weights[order]) - weights[order]
        taken = np.clip((left - before) / weights[order], 0.0, 1.0)
        return float((costs[order] * taken).sum())
