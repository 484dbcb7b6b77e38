"""Units under rules by a loss that needs rows: priced by its model, taken by its value."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from exactk.problem.problem import Problem
from exactk.search.loss_pricing import ALL_SWAPS, TIE, LossTable, QuadraticModel, Support
from exactk.search.unit_pricing import UnitMove, UnitPricing
from exactk.search.units import Units
from exactk.types import Bools
from exactk.utils.linalg import DEPENDENT

__all__ = ["LossUnitPricing", "make_unit_pricing"]


# Swaps that are fitted before the best of them is taken, by price, where not all are.
FITTED = 24
STEPS, TOLERANCE = 300, 1e-6


class LossUnitPricing(UnitPricing):
    """`UnitPricing` whose objective is that of a loss, and whose prices are those of its model.

    Parameters
    ----------
    units : Units
        Of a problem with rows in memory.
    """

    def __init__(self, units: Units) -> None:
        self.table = LossTable(units.problem, np.arange(units.problem.n_features))
        super().__init__(units)
        self.tie_tolerance = TIE * abs(units.problem.null_model[1])

    def load(self, members: Sequence[int]) -> None:
        """Hold these units: fit the loss on their columns, and take its model there."""
        S = self._hold(members).tolist()
        fits = self.table.fits([S], steps=STEPS, tol=TOLERANCE)
        model = QuadraticModel(self.table, Support(tuple(S), fits.theta[0], float(fits.values[0])))
        self._G, self._AS, self._V, self._T = model.G, model.AS, model.V, model.T
        self.C, self.D, self.objective = model.C, model.D, model.support.value
        # A model has a pseudo-inverse in effect; what depends is seen by its fit.
        self.is_deficient = False
        self._floor = DEPENDENT * model.diagonal
        self._weigh(model)
        self._gains = None

    def _weigh(self, model: QuadraticModel) -> None:
        """Give the groups the products of their columns under the weights of the model."""
        for alike in self._alike:
            X = self.table.X[alike.columns] - model.mean[alike.columns][:, :, None]
            alike.inner[...] = (X * model.omega) @ np.swapaxes(X, 1, 2)
            alike.inner[...] += self.table.penalty * np.eye(alike.inner.shape[-1])

    def best_swap(self, allowed: Sequence[Bools | None]) -> UnitMove | None:
        """Return the swap that lowers the loss most, of those with the best prices."""
        priced: list[tuple[float, int, int]] = []
        for i, fits in enumerate(allowed):
            if fits is not None and fits.any():
                gains = self.swap_gains(i, fits)
                top = np.argsort(-gains, kind="stable")[:ALL_SWAPS].tolist()
                priced += [(-float(gains[u]), i, u) for u in top if gains[u] > -np.inf]
        best: UnitMove | None = None
        most = len(priced) if len(priced) <= ALL_SWAPS else FITTED
        for _, i, unit in sorted(priced)[:most]:
            after = [*self.members[:i], *self.members[i + 1 :], unit]
            gain = self.objective - self._fitted(after)
            if gain > (self.tie_tolerance if best is None else best.gain):
                best = UnitMove(gain, self.members[i], unit)
        return best

    def _fitted(self, units: Sequence[int]) -> float:
        S = [int(p) for unit in units for p in self.varying_columns(unit)]
        fits = self.table.fits([S], steps=STEPS, tol=TOLERANCE, ceiling=self.objective)
        return float(fits.values[0])


def make_unit_pricing(problem: Problem) -> UnitPricing:
    """Return what prices the units of a problem, by its loss."""
    units = Units(problem)
    return UnitPricing(units) if problem.loss.by_moments else LossUnitPricing(units)
