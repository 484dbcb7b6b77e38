"""Robust losses: powers of the length of a row's residual, and Huber's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from exactk.data.targets import Target
from exactk.losses.base import Criterion, Loss, reduced_outputs
from exactk.losses.reweighted import ResidualCriterion
from exactk.params import Check, Number
from exactk.types import Floats

__all__ = ["L2R", "L21", "Huber"]


class L2R(Loss):
    """The sum of ‖y_i − x_i W − b‖ʳ over rows: the smaller r, the less a wrong row counts.

    r = 2 is squared loss, r = 1 the l2,1 loss. Below 1 it is not convex: a fit is a local minimum,
    reached from that of the support before.

    Parameters
    ----------
    r : float

    Examples
    --------
    >>> import exactk
    >>> from sklearn.datasets import load_iris
    >>> problem = exactk.Problem.from_arrays(*load_iris(return_X_y=True), loss="l2r")
    >>> exactk.solve(problem, 2).support
    array([2, 3])
    """

    name: ClassVar[str] = "l2r"
    summary: ClassVar[str] = "‖y − xW − b‖ʳ, a power of the length of the residual"
    checks: ClassVar[Mapping[str, Check]] = {"r": Number("(0, 2]")}

    def __init__(self, r: float = 0.5) -> None:
        self.r = r

    @property
    def convex(self) -> bool:
        """Whether what is minimised over the coefficients has no local minima."""
        return self.r >= 1.0

    def bind(self, target: Target, weights: Floats) -> Criterion:  # noqa: D102
        return _Power(self.r, *_parts(target, weights))


class L21(Loss):
    """The sum of ‖y_i − x_i W − b‖ over rows, the loss of RPFS and nmAPG.

    A row that is far off counts by its distance, not by the square of it. For one output it is the
    sum of absolute errors, and the fit that of a median.

    Examples
    --------
    >>> import exactk
    >>> from sklearn.datasets import load_iris
    >>> problem = exactk.Problem.from_arrays(*load_iris(return_X_y=True), loss="l21")
    >>> result = exactk.solve(problem, 2)
    >>> result.support, round(result.objective, 3)
    (array([2, 3]), 68.814)
    """

    name: ClassVar[str] = "l21"
    summary: ClassVar[str] = "‖y − xW − b‖, the length of the residual"

    def bind(self, target: Target, weights: Floats) -> Criterion:  # noqa: D102
        return _Power(1.0, *_parts(target, weights))


class Huber(Loss):
    """Huber's loss with its scale: squares of small residuals, lengths of large ones.

    With e_i = ‖y_i − x_i W − b‖ it is the least over σ of Σ σ + σ·H(e_i/σ), where H(z) is z² up to
    epsilon and 2·epsilon·z − epsilon² beyond: what scikit-learn's ``HuberRegressor`` minimises, so
    that what counts as large goes with the data and the loss with the units of y.

    Parameters
    ----------
    epsilon : float
        Residuals above epsilon·σ are large.

    Examples
    --------
    >>> import exactk
    >>> from sklearn.datasets import load_diabetes
    >>> problem = exactk.Problem.from_arrays(
    ...     *load_diabetes(return_X_y=True), loss="huber", task="regression"
    ... )
    >>> exactk.solve(problem, 3).support
    array([2, 3, 8])
    """

    name: ClassVar[str] = "huber"
    summary: ClassVar[str] = "squares of small residuals, lengths of large ones, with their scale"
    checks: ClassVar[Mapping[str, Check]] = {"epsilon": Number("[1, 1e6]")}

    def __init__(self, epsilon: float = 1.35) -> None:
        self.epsilon = epsilon

    def bind(self, target: Target, weights: Floats) -> Criterion:  # noqa: D102
        return _Huber(self.epsilon, *_parts(target, weights))


def _parts(target: Target, weights: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    T, basis, offset = reduced_outputs(target)
    return T, weights, basis, offset


class _Power(ResidualCriterion):
    def __init__(self, r: float, T: Floats, w: Floats, basis: Floats, offset: Floats) -> None:
        super().__init__(T, w, basis, offset)
        self.r = r

    @property
    def power(self) -> float | None:
        return self.r

    def total(self, e: Floats) -> Floats:
        return (e if self.r == 1.0 else e**self.r) @ self.w

    def weights(self, e: Floats) -> Floats:
        return (0.5 * self.r) * self.w * np.maximum(e, self.zero) ** (self.r - 2.0)


class _Huber(ResidualCriterion):
    def __init__(self, epsilon: float, T: Floats, w: Floats, basis: Floats, offset: Floats) -> None:
        super().__init__(T, w, basis, offset)
        self.epsilon = epsilon

    def scales(self, e: Floats) -> Floats:
        """Return for each row of e (m × n) the σ at which the loss is least; 0 if it is at none.

        With the residuals sorted and the first j small, σ² = Σ_{i≤j} w e² / (Σ w − ε²Σ_{i>j} w);
        that j is right at which εσ falls between the j-th residual and the next.
        """
        order = np.argsort(e, axis=1)
        sorted_e, w = np.take_along_axis(e, order, axis=1), self.w[order]
        small = np.cumsum(w * sorted_e**2, axis=1)
        share = self.w.sum() - self.epsilon**2 * (self.w.sum() - np.cumsum(w, axis=1))
        square = np.divide(small, share, out=np.full_like(small, np.inf), where=share > 0)
        # The first j whose σ leaves the next residual large.
        after = np.append(sorted_e[:, 1:], np.full((len(e), 1), np.inf), axis=1)
        fits = self.epsilon**2 * square <= after**2
        at = np.argmax(fits, axis=1)
        scales: Floats = np.sqrt(square[np.arange(len(e)), at])
        return scales

    def total(self, e: Floats) -> Floats:
        sigma = np.maximum(self.scales(e), self.zero)[:, None]
        large = e > self.epsilon * sigma
        rows = np.where(
            large, 2.0 * self.epsilon * e + (1.0 - self.epsilon**2) * sigma, e**2 / sigma + sigma
        )
        return rows @ self.w

    def weights(self, e: Floats) -> Floats:
        sigma = np.maximum(self.scales(e), self.zero)[:, None]
        return self.w / np.maximum(sigma, e / self.epsilon)
