"""A pass over a stream that weighs each row by its residual: reweighted least squares at scale.

With W given, a pass finds the norm e of the residual of every row, adds up the loss, and makes the
products XᵀS₁X and XᵀS₁Y of the next iteration, S₁ being the weights that the loss gives to rows
with such residuals. Nothing is kept of a row, but for a few that are fitted all but exactly: their
weight would drown the others in rounding, so they come home as they are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt

from exactk.accumulate import MomentsAccumulator
from exactk.linalg import row_norms
from exactk.moments import Moments
from exactk.streams.base import Block, Fold
from exactk.streams.coding import Coding, Labels
from exactk.streams.moments import check_block, merge_found, outputs

__all__ = [
    "Affine",
    "Apart",
    "Correntropy",
    "PowerLoss",
    "ReweightedFold",
    "RowLoss",
    "Weighted",
    "counted_rows",
]

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]

# 1/S₁ of rows that are not apart, beside the limit below which rows are: there may be more such
# rows than are kept.
LEAST_SHARE = 1e-6
# The same where nothing is known yet: targets are of unit size, and this is below their rounding.
LEAST = 1e-30


class RowLoss(Protocol):
    """What a residual costs."""

    def __call__(self, norms: Floats) -> tuple[Floats, Floats]:
        """Return the loss of each row and the inverse of its weight, given norms of residuals."""
        ...


@dataclass(frozen=True)
class PowerLoss:
    """The loss (‖e‖² + ε)^{r/2}, whose weights are (r/2)·(‖e‖² + ε)^{(r−2)/2}.

    Examples
    --------
    >>> loss, inverse = PowerLoss(1.0)(np.array([0.0, 3.0]))
    >>> loss.tolist(), inverse.tolist()
    ([0.0, 3.0], [0.0, 6.0])
    """

    r: float
    epsilon: float = 0.0

    def __call__(self, norms: Floats) -> tuple[Floats, Floats]:  # noqa: D102
        e = np.sqrt(norms**2 + self.epsilon)
        return e**self.r, (2.0 / self.r) * e ** (2.0 - self.r)


@dataclass(frozen=True)
class Correntropy:
    """The loss 2σ²·(1 − exp(−‖e‖²/(2σ²))), whose weights are exp(−‖e‖²/(2σ²)).

    Examples
    --------
    >>> loss, inverse = Correntropy(double=1e6)(np.array([2.0]))
    >>> round(float(loss[0]), 4), round(float(inverse[0]), 4)
    (4.0, 1.0)
    """

    double: float

    def __call__(self, norms: Floats) -> tuple[Floats, Floats]:  # noqa: D102
        share = norms**2 / self.double
        # Beyond float64 a row has the weight zero, as it should.
        with np.errstate(over="ignore"):
            return -self.double * np.expm1(-share), np.exp(share)


@dataclass(frozen=True, eq=False)
class Affine:
    """How raw rows become standardised ones.

    Attributes
    ----------
    columns : ndarray of intp of shape (m,)
        Which columns of the table are meant.
    mean, factor : ndarray of shape (m,)
        x becomes (x − mean)·factor.
    shift : ndarray of shape (c,)
    unit : float
        y becomes (y − shift)/unit.
    """

    columns: Indices
    mean: Floats
    factor: Floats
    shift: Floats
    unit: float

    def take(self, which: npt.NDArray[np.bool_] | Indices) -> Affine:
        """Return the same of fewer columns."""
        columns, mean, factor = self.columns[which], self.mean[which], self.factor[which]
        return replace(self, columns=columns, mean=mean, factor=factor)


@dataclass(frozen=True, eq=False)
class Apart:
    """Rows as they are: centred columns, target, inverse of the weight by the loss, weight."""

    X: Floats
    Y: Floats
    inverse: Floats
    weights: Floats

    def take(self, which: Indices) -> Apart:
        """Return some of the rows."""
        return Apart(self.X[which], self.Y[which], self.inverse[which], self.weights[which])

    def join(self, other: Apart) -> Apart:
        """Return the rows of both."""
        return Apart(
            np.concatenate([self.X, other.X]),
            np.concatenate([self.Y, other.Y]),
            np.concatenate([self.inverse, other.inverse]),
            np.concatenate([self.weights, other.weights]),
        )

    def split(self, most: int) -> tuple[Apart, Apart | None]:
        """Return the rows of the largest weights by the loss, at most so many, and the others."""
        if len(self.inverse) <= most:
            return self, None
        order = np.argsort(self.inverse, kind="stable")
        return self.take(order[:most]), self.take(order[most:])


@dataclass(frozen=True, eq=False)
class Weighted:
    """What a pass has come to.

    Attributes
    ----------
    moments : Moments or None
        Of centred columns and coded target, weighted by the loss, without the rows apart; None if
        there are no others.
    apart : Apart
    loss : float
        Weighted sum over all rows.
    n_rows : int
        Rows of positive weight.
    logs : float
        Sum of the logarithms of the inverse weights that are not zero.
    n_logs : int
        How many these are.
    """

    moments: Moments | None
    apart: Apart
    loss: float
    n_rows: int
    logs: float
    n_logs: int

    @property
    def typical(self) -> float:
        """Geometric mean of the inverse weights: neither outliers nor exact rows move it far."""
        return float(np.exp(self.logs / self.n_logs)) if self.n_logs else 0.0


@dataclass
class _State:
    accumulator: MomentsAccumulator
    labels: Labels | None
    apart: Apart
    loss: float = 0.0
    n_rows: int = 0
    logs: float = 0.0
    n_logs: int = 0


class ReweightedFold(Fold[_State, Weighted]):
    """Weighs rows by their residuals and adds their products up.

    Parameters
    ----------
    coding : Coding
        How the target is read; classes are known by now.
    affine : Affine
    W : ndarray of shape (m, c)
        Coefficients of standardised columns.
    loss : RowLoss
    limit : float
        Rows with a smaller inverse weight are kept apart,
    most : int
        of these at most so many, those of the smallest.
    """

    def __init__(
        self,
        coding: Coding,
        affine: Affine,
        W: Floats,
        loss: RowLoss,
        *,
        limit: float = 0.0,
        most: int = 0,
    ) -> None:
        self.coding, self.affine, self.loss = coding, affine, loss
        self.coefficients = affine.factor[:, None] * W
        self.limit, self.most = limit, most
        self.least = max(LEAST_SHARE * limit, LEAST)

    def begin(self) -> _State:  # noqa: D102
        m, c = self.coefficients.shape
        none = Apart(np.zeros((0, m)), np.zeros((0, c)), np.zeros(0), np.zeros(0))
        return _State(MomentsAccumulator(m, c), self.coding.start(), none)

    def add(self, state: _State, block: Block) -> None:  # noqa: D102
        X, Y, weights = counted_rows(block, self.coding, state.labels, self.affine)
        losses, inverse = self.loss(row_norms(X @ self.coefficients - Y))
        state.loss += float(weights @ losses)
        state.n_rows += len(X)
        if self.most:
            positive = inverse[inverse > 0]
            state.logs += float(np.log(positive).sum())
            state.n_logs += len(positive)
        near = np.flatnonzero(inverse < self.limit)
        if near.size:
            found = Apart(X[near], Y[near], inverse[near], weights[near])
            state.apart, spilled = state.apart.join(found).split(self.most)
            if spilled is not None:
                self._absorb(state.accumulator, spilled)
            weights = weights.copy()
            weights[near] = 0.0
        state.accumulator.absorb(X, Y, weights / np.maximum(inverse, self.least))

    def _absorb(self, accumulator: MomentsAccumulator, rows: Apart) -> None:
        weights = rows.weights / np.maximum(rows.inverse, self.least)
        accumulator.absorb(np.asfortranarray(rows.X), rows.Y, weights)

    def close(self, state: _State) -> Weighted | None:  # noqa: D102
        if state.n_rows == 0:
            return None
        moments = None if state.accumulator.is_empty else state.accumulator.finish()
        return Weighted(moments, state.apart, state.loss, state.n_rows, state.logs, state.n_logs)

    def merge(self, one: Weighted, other: Weighted) -> Weighted:  # noqa: D102
        apart, spilled = one.apart.join(other.apart).split(self.most)
        moments = merge_found(one.moments, other.moments)
        if spilled is not None:
            accumulator = MomentsAccumulator(*self.coefficients.shape)
            self._absorb(accumulator, spilled)
            moments = merge_found(moments, accumulator.finish())
        return Weighted(
            moments,
            apart,
            one.loss + other.loss,
            one.n_rows + other.n_rows,
            one.logs + other.logs,
            one.n_logs + other.n_logs,
        )


def counted_rows(
    block: Block, coding: Coding, labels: Labels | None, affine: Affine
) -> tuple[Floats, Floats, Floats]:
    """Return centred columns in Fortran order, coded target and weight of the rows that count.

    Factors of columns are left to coefficients and products, which are fewer. X may be that of
    the block, overwritten.
    """
    check_block(block)
    weights = np.ones(len(block.X)) if block.weights is None else block.weights
    counted = weights > 0
    X, columns = block.X, affine.columns
    if not counted.any():
        return np.zeros((0, len(columns))), np.zeros((0, len(affine.shift))), np.zeros(0)
    Y = (outputs(block, coding, labels) - affine.shift) / affine.unit
    if len(columns) < X.shape[1]:
        X = X.T[columns].T
    if not counted.all():
        X, Y, weights = np.asfortranarray(X[counted]), Y[counted], weights[counted]
    X -= affine.mean
    return X, Y, weights
