"""Reweighted least squares on tables that are not held: of moments, and pass by pass."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from exactk.iterative.course import OutOfTimeError, Step
from exactk.iterative.irls import EXACT_FIT, FEW_ROWS, AliveRows, solve_products
from exactk.iterative.table import TINY_SHARE, Labels, column_unit, target_unit
from exactk.linalg import row_norms
from exactk.monitor import Monitor
from exactk.problem import Problem
from exactk.streams.base import Fold
from exactk.streams.collect import check_unchanged
from exactk.streams.medians import norm_median, output_medians
from exactk.streams.reweighted import Affine, PowerLoss, ReweightedFold, RowLoss

__all__ = ["PassTable", "Products", "pass_table", "streamed_steps"]

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Products:
    """What a system for W needs of the rows.

    Attributes
    ----------
    XX : ndarray of shape (m, m)
        XᵀS₁X of standardised columns.
    XY : ndarray of shape (m, c)
        XᵀS₁Y.
    apart : tuple of X, Y and S1_inverse
        Rows that are not in these (see `exactk.iterative.irls.solve_products`).
    """

    XX: Floats
    XY: Floats
    apart: tuple[Floats, Floats, Floats]

    def solve(self, rows: AliveRows, lam: float) -> Floats:
        """Return the rows alive of (XᵀS₁X + λS₂)⁻¹XᵀS₁Y."""
        return solve_products(self.XX, self.XY, rows.S2_inverse, lam, self.apart)

    def keep(self, kept: Mask) -> Products:
        """Return the same for the columns that stay."""
        if kept.all():
            return self
        X, Y, inverse = self.apart
        return Products(self.XX[np.ix_(kept, kept)], self.XY[kept], (X[:, kept], Y, inverse))


class _CountsRows(Protocol):
    @property
    def n_rows(self) -> int: ...


Counted = TypeVar("Counted", bound=_CountsRows)


class PassTable:
    """The standardised table of a problem without rows: its moments, and passes over its stream.

    As `exactk.iterative.table.standard_table` defines it, to the last digit but for rounding.

    Parameters
    ----------
    problem : Problem
        With moments, or a stream.
    shift : ndarray of shape (c,)
    unit : float
        The target is coded as (y − shift)/unit.

    Attributes
    ----------
    columns : ndarray of intp
        Candidates of the problem.
    weight : float
        Sum of the row weights.
    affine : Affine
        How raw rows become standardised ones.
    products : Products
        Of all columns, S₁ = I.
    monitor : Monitor or None
        Ends a pass when time is up, but for the first.
    """

    def __init__(self, problem: Problem, shift: Floats, unit: float) -> None:
        self.problem, self.columns, self.weight = problem, problem.candidates, problem.weight
        self.monitor: Monitor | None = None
        self._passes = 0
        S, size = self.columns, column_unit(problem)
        factor = problem.x_scale[S] / size
        self.affine = Affine(S, problem.x_mean[S], factor, shift, unit)
        XX = problem.gram.block(S) / size**2
        XY = np.ascontiguousarray(problem.cross[:, S].T) / (size * unit)
        self.products = Products(XX, XY, self._none(len(S)))
        # Sum of squares of the coded target: its columns need not be centred.
        self._YY = (
            problem.total + problem.weight * float(((problem.y_mean - shift) ** 2).sum())
        ) / unit**2
        self._typical = 0.0

    def _none(self, m: int) -> tuple[Floats, Floats, Floats]:
        return np.zeros((0, m)), np.zeros((0, self.problem.n_outputs)), np.zeros(0)

    def squares(self, plain: Products, W: Floats) -> float:
        """Return ‖XW − Y‖² of products with S₁ = I: no pass is needed for that."""
        return max(float((W * (plain.XX @ W - 2.0 * plain.XY)).sum()) + self._YY, 0.0)

    def reweigh(
        self, rows: AliveRows, W: Floats, loss: RowLoss, *, exact: bool = True
    ) -> tuple[float, Products]:
        """Pass over the stream: the loss of W, and products with the weights that it gives to rows.

        Parameters
        ----------
        rows : AliveRows
        W : ndarray of shape (number alive, c)
        loss : RowLoss
        exact : bool
            Whether the weights of rows that are fitted exactly have no bound.
        """
        affine = self.affine.take(rows.alive)
        fold = ReweightedFold(
            self.problem.coding, affine, W, loss,
            limit=EXACT_FIT * self._typical if exact else 0.0,
            most=len(W) + FEW_ROWS if exact else 0,
        )  # fmt: skip
        found = self.run(fold)
        self._typical = found.typical
        factor, m = affine.factor, len(W)
        XX, XY = np.zeros((m, m)), np.zeros_like(W)
        if found.moments is not None:
            # About the mean of all rows, not that of the weighted ones.
            made, mean, weight = found.moments, found.moments.x_mean, found.moments.weight
            XX = (made.xx + weight * np.outer(mean, mean)) * np.outer(factor, factor)
            XY = (made.xy + weight * np.outer(mean, made.y_mean)) * factor[:, None]
        apart, root = found.apart, np.sqrt(found.apart.weights)[:, None]
        rows_apart = (root * apart.X * factor, root * apart.Y, apart.inverse)
        return found.loss, Products(XX, XY, rows_apart)

    def run(self, fold: Fold[Any, Counted]) -> Counted:
        """Make a pass; all that time allows, once there has been one."""
        stream = self.problem.stream
        assert stream is not None
        found = stream.reduce(fold, self._watch)
        self._passes += 1
        check_unchanged(found.n_rows, self.problem.n_rows)
        return found

    def _watch(self, done: int, total: int | None) -> None:
        """End a pass that takes too long, but the first: some answer there must be."""
        ended = total is not None and done >= total
        if self._passes and not ended and self.monitor is not None and self.monitor.expired:
            raise OutOfTimeError


def pass_table(problem: Problem, labels: Labels, *, robust: bool = False) -> PassTable:
    """Return what `exactk.iterative.table.standard_table` is for problems without rows.

    Parameters
    ----------
    problem : Problem
    labels : {"centred", "one-hot", "plus-minus"}
        How classes are coded.
    robust : bool
        Numbers are centred at their medians, and their size is the median: exact, by a few passes
        over the stream.
    """
    c = problem.n_outputs
    if problem.task == "classification":
        if labels == "centred":
            return PassTable(problem, problem.y_mean, 1.0)
        half = 0.5 if labels == "plus-minus" else 0.0
        return PassTable(problem, np.full(c, half), 0.5 if labels == "plus-minus" else 1.0)
    unit = target_unit(problem)
    if not robust:
        return PassTable(problem, problem.y_mean, unit)
    stream, coding = problem.stream, problem.coding
    assert stream is not None
    square = problem.total / problem.weight
    shift = output_medians(stream, coding, problem.y_mean, float(np.sqrt(square)))
    square += float(((problem.y_mean - shift) ** 2).sum())
    size = norm_median(stream, coding, shift, float(np.sqrt(square))) / np.sqrt(c)
    return PassTable(problem, shift, float(size) if size > TINY_SHARE * unit else unit)


def streamed_steps(
    table: PassTable, k: int, *, r: float, p: float, lam: float, epsilon: float, tol: float
) -> Iterator[Step]:
    """Iterate as `exactk.iterative.irls.reweighted_steps` does, in a pass each; none for r = 2.

    Yields
    ------
    Step
        The k largest rows, the largest first.
    """
    rows, products = AliveRows(len(table.columns), p), table.products
    loss, value = PowerLoss(r, epsilon), np.inf
    while True:
        W = products.solve(rows, lam)
        if r < 2.0:
            lost, products = table.reweigh(rows, W, loss)
        else:
            lost = table.squares(products, W) + epsilon * table.weight
        w, last = np.sqrt(row_norms(W) ** 2 + epsilon), value
        value = float(lost + lam * (w**p).sum())
        products = products.keep(rows.reweight(w))
        yield Step(table.columns[rows.ranked(k)], value, bool(abs(last - value) <= tol))
