"""The rows of a problem as a loss reads them, and the prices of moves by its quadratic model.

Near a fit the loss of a row is ω‖z − f‖² and a constant. With the weights ω in A = XᵀΩHX and the
force ω(z − f) in C, the formulas of `exactk.search.state` price additions, drops and swaps; they
hold to second order only, so what is priced well is fitted before it is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import ParamSpec, TypeVar

import numpy as np

from exactk.errors import InputError, Setting
from exactk.losses.base import Fits, design
from exactk.losses.softmax_native import CompiledSoftmax
from exactk.problem.problem import Problem
from exactk.search.descent import greedy_order
from exactk.search.state import price_swaps
from exactk.types import Floats, Indices
from exactk.utils.linalg import DEPENDENT

__all__ = [
    "ALL_SWAPS",
    "TIE",
    "LossTable",
    "QuadraticModel",
    "Support",
    "entry_order_by_loss",
    "ignore_overflow",
]


LIMIT = Setting("memory_limit")
# With so many swaps or fewer all of them are fitted before a support counts as an end.
ALL_SWAPS = 64
# Losses closer than this share of the loss without columns are ties.
TIE = 1e-6
# Bytes of columns that are fitted side by side.
SIDE_BY_SIDE = 2**24
# Entries of the table that are squared at once.
SQUARED_AT_ONCE = 2**16


P = ParamSpec("P")
R = TypeVar("R")


def ignore_overflow(function: Callable[P, R]) -> Callable[P, R]:
    """Make a function silent about numbers that overflow.

    A poor fit, or one on columns that nearly depend on each other, may lead to them; prices that
    are no numbers are no prices.
    """

    @wraps(function)
    def silent(*args: P.args, **kwargs: P.kwargs) -> R:
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            return function(*args, **kwargs)

    return silent


@dataclass(frozen=True, eq=False)
class Support:
    """Columns of a `LossTable`, sorted, and the fit on them."""

    members: tuple[int, ...]
    theta: Floats
    value: float


class LossTable:
    """Candidate columns of a problem, standardised, one a row, with the loss of its target.

    Parameters
    ----------
    problem : Problem
        With rows in memory.
    columns : ndarray of intp or None
        Which columns to hold; None is the candidates and those that must be in.

    Attributes
    ----------
    X : ndarray of shape (m, n)
    columns : ndarray of shape (m,)
        Which columns of the problem these are.
    fixed : tuple of int
        Places of those that must be in.
    """

    def __init__(self, problem: Problem, columns: Indices | None = None) -> None:
        self.problem, self.criterion = problem, problem.criterion
        include = () if problem.rules is None else problem.rules.include
        if columns is None:
            # What must be in is so even where it is constant.
            columns = np.union1d(problem.candidates, np.array(include, dtype=np.intp))
        self.columns = columns
        size = 8 * len(problem.weighted_rows) * len(self.columns)
        if size > problem.memory_limit:
            raise InputError(
                (f"loss {problem.loss.name!r} reads the whole table as float64, "
                 f"{size / 2**30:.1f} GiB, more than ", LIMIT, f" ({problem.memory_limit:,})"),
                parameter="memory_limit",
                hint=("raise ", LIMIT, ", or take ", Setting("loss", "squared")),
            )  # fmt: skip
        self.X = np.ascontiguousarray(
            problem.standardised(self.columns)[0][problem.weighted_rows].T
        )
        self.fixed = tuple(np.searchsorted(self.columns, np.sort(include)).tolist())
        self.penalty = problem.penalty
        self._compiled = self.criterion.compiled(self.X, self.penalty)

    def compiled(self, k: int) -> CompiledSoftmax | None:
        """Return what fits k columns in C, or None where NumPy does."""
        compiled = self._compiled
        return compiled if compiled is not None and compiled.can_fit(k) else None

    def __len__(self) -> int:
        """Return how many columns there are."""
        return len(self.columns)

    def fits(
        self,
        supports: Sequence[Sequence[int]],
        theta: Floats | None = None,
        *,
        steps: int,
        tol: float,
        ceiling: float = np.inf,
    ) -> Fits:
        """Fit on several supports of one size, as many side by side as are worth it.

        Parameters
        ----------
        supports : sequence of sequence of int
        theta : ndarray of shape (m, k + 1, r) or None
            To start from; None where nothing is known.
        steps, tol, ceiling
            As in `Criterion.fits`.
        """
        chosen = np.array(supports, dtype=np.intp).reshape(len(supports), -1)
        compiled = self.compiled(chosen.shape[1])
        if compiled is not None:
            if theta is None:
                m, k = chosen.shape
                theta = self.criterion.cold_start(np.empty((m, k + 1, 0)), self.penalty)
            return compiled.fits(chosen, theta, steps=steps, tol=tol, ceiling=ceiling)
        each = 8 * (chosen.shape[1] + 1) * self.X.shape[1]
        at_once = max(1, SIDE_BY_SIDE // each)
        parts = []
        for i in range(0, len(chosen), at_once):
            Z = design(self.X[chosen[i : i + at_once]])
            start = (
                self.criterion.cold_start(Z, self.penalty)
                if theta is None
                else theta[i : i + at_once]
            )
            parts.append(
                self.criterion.fits(Z, self.penalty, start, steps=steps, tol=tol, ceiling=ceiling)
            )
        if len(parts) == 1:
            return parts[0]
        names = ("theta", "values", "converged", "separated")
        return Fits(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))

    def predict(self, members: Sequence[int], theta: Floats) -> Floats:
        """Return what a fit predicts for each row."""
        F: Floats = self.X[list(members)].T @ theta[:-1] + theta[-1]
        return F

    @ignore_overflow
    def value(self, members: Sequence[int], theta: Floats) -> float:
        """Return the objective at given coefficients."""
        loss = float(self.criterion.value(self.predict(members, theta)[None])[0])
        value = loss + self.penalty * float((theta[:-1] ** 2).sum())
        return value if np.isfinite(value) else np.inf

    def scatter(self, omega: Floats, mean: Floats) -> Floats:
        """Return the weighted sums of squares of the columns about their weighted means."""
        out = np.empty(len(self.X))
        step = max(1, SQUARED_AT_ONCE // self.X.shape[1])
        room = np.empty((min(step, len(self.X)), self.X.shape[1]))
        for i in range(0, len(self.X), step):
            part = self.X[i : i + step]
            squares = np.multiply(part, part, out=room[: len(part)])
            np.dot(squares, omega, out=out[i : i + step])
        return np.maximum(out - omega.sum() * mean**2, 0.0)


class QuadraticModel:
    """The quadratic model of the loss at a fit, and what it says of moves.

    Parameters
    ----------
    table : LossTable
    support : Support

    Attributes
    ----------
    omega : ndarray of shape (n,)
    mean : ndarray of shape (m,)
        Weighted means of the columns.
    A : ndarray of shape (k, k)
        Of the members, ridge included.
    V : ndarray of shape (k, r)
        Their coefficients.
    """

    @ignore_overflow
    def __init__(self, table: LossTable, support: Support) -> None:
        self.table, self.support = table, support
        S = np.array(support.members, dtype=np.intp)
        force, omega = table.criterion.model(table.predict(support.members, support.theta))
        X, k = table.X, len(S)
        weight = max(float(omega.sum()), np.finfo(float).tiny)
        # All in one pass over the table.
        products = np.vstack([X[S] * omega, force.T, omega]) @ X.T
        mean = products[-1] / weight
        self.omega, self.mean = omega, mean
        self.AS = products[:k]
        self.AS -= weight * np.outer(mean[S], mean)
        self.diagonal = table.scatter(omega, mean) + table.penalty
        self.AS[np.arange(k), S] += table.penalty
        self.A, self.V = self.AS[:, S], support.theta[:-1]
        self.C = products[k:-1]
        self.C[:, S] = 0.0
        self.floor = DEPENDENT * self.diagonal
        # Columns that nearly depend on each other still have prices, if no good ones.
        shifted = self.A + np.diag(1e-12 * np.diagonal(self.A) + np.finfo(float).tiny)
        self.G: Floats = np.asarray(np.linalg.inv(shifted)) if k else np.zeros((0, 0))
        self.T = self.G @ self.AS
        self.D = self.diagonal - np.einsum("ij,ij->j", self.T, self.AS)
        self.D[S] = 0.0

    @ignore_overflow
    def additions(self) -> Floats:
        """Return how much adding each column would lower the loss; -inf where it cannot."""
        square = np.einsum("ij,ij->j", self.C, self.C)
        barred = np.full_like(square, -np.inf)
        return np.divide(square, self.D, out=barred, where=self.D > self.floor)

    def losses(self) -> Floats:
        """Return how much dropping each member would cost."""
        G_ii = np.maximum(np.diagonal(self.G), np.finfo(float).tiny)
        return np.einsum("ij,ij->i", self.V, self.V) / G_ii

    @ignore_overflow
    def swaps(self) -> Floats:
        """Return how much each member out (k) and each column in (m) would lower the loss."""
        S = list(self.support.members)
        G_ii = np.maximum(np.diagonal(self.G), np.finfo(float).tiny)
        gain = price_swaps(G_ii, self.V, self.T, self.C, self.D, self.floor, self.losses())
        gain[:, S] = -np.inf
        gain[[i for i, p in enumerate(S) if p in self.table.fixed]] = -np.inf
        return gain


def entry_order_by_loss(problem: Problem, support: Indices, theta: Floats | None = None) -> Indices:
    """Return the columns of a support in the order in which greedy selection would take them.

    By the quadratic model at the fit on all of them, which is near `theta` where that is given.
    """
    S = np.sort(np.asarray(support, dtype=np.intp))
    table = LossTable(problem, S)
    members = tuple(range(len(S)))
    start = None
    if theta is not None and problem.has_sharp_minimum and len(theta) == len(S) + 1:
        start = theta[None]
    fits = table.fits([members], start, steps=300, tol=1e-6)
    model = QuadraticModel(table, Support(members, fits.theta[0], float(fits.values[0])))
    B = model.A @ model.V
    explained = float(np.einsum("ij,ij->", model.V, B))
    # Of columns that nearly depend on each other it may be anything.
    tie_tolerance = TIE * max(explained, 0.0) if np.isfinite(explained) else 0.0
    order: Indices = S[greedy_order(np.vstack([model.A, B.T]), len(S), tie_tolerance)]
    return order
