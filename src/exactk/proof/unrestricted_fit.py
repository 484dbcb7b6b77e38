"""The fit on all columns that are still allowed: no set made of them has a lower objective."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from exactk.problem.problem import Problem
from exactk.types import Floats, Indices
from exactk.utils.linalg import gram_rounding, sum_rounding

__all__ = ["Fit", "UnrestrictedFit"]


EPS = float(np.finfo(np.float64).eps)
# Least eigenvalue, at unit diagonal, from which on the Gram matrix prices all sets of its columns.
WELL = 1e-6
# Share of the total that rounding may come to: at the least, and where columns depend.
ROUNDING, DOUBTFUL = 1e-11, 1e-9
# Columns taken away one after the other before the fit is made anew.
MOST_UPDATES = 16

MOMENTS_ALONE = (
    "the rows are not at hand: sets of columns that nearly depend on each other are priced by the "
    "moments, which leave few digits of them"
)
DEPENDENT_COUNT = (
    "a column that others make up to within rounding counts as dependent on them and adds nothing"
)


@dataclass(frozen=True, eq=False)
class Fit:
    """A fit on some of the columns in play.

    Attributes
    ----------
    at : ndarray of intp
        Places of the columns among those in play, sorted.
    objective : float
        No set of these columns has a lower one.
    G, V : ndarray
        A⁻¹ and the coefficients A⁻¹B, if `is_well`.
    is_well : bool
        Whether the columns are so far from dependent that G and V are known.
    weak : ndarray
        Where they are not: how much each column takes part in the worst dependence.
    updates : int
        Times that columns were taken away since it was made.
    """

    at: Indices
    objective: float
    G: Floats
    V: Floats
    is_well: bool
    weak: Floats
    updates: int = 0

    def losses(self) -> Floats:
        """Return how much the objective rises without each of the columns."""
        return np.einsum("ij,ij->i", self.V, self.V) / np.diagonal(self.G)

    def loss_together(self, places: Indices) -> float:
        """Return how much the objective rises without several columns."""
        if len(places) == 0:
            return 0.0
        which = np.searchsorted(self.at, places)
        V = self.V[which]
        inner = np.linalg.solve(self.G[np.ix_(which, which)], V)
        return float(np.einsum("ij,ij->", V, inner))


class UnrestrictedFit:
    """The columns in play, each of unit size, and fits on some of them.

    Where the least eigenvalue of the Gram matrix is not small, fits are exact to rounding and are
    updated when columns go. Elsewhere they are made from the rows, if those are at hand: every
    direction that a fit on fewer columns may use is used, so that the objective is too low rather
    than too high. Of moments alone the same is done with the eigenvalues, less a margin for what
    their digits leave open.

    Parameters
    ----------
    problem : Problem
    columns : ndarray of intp
        Columns of the problem that are not constant, sorted.

    Attributes
    ----------
    A, B : ndarray
        Of the columns in play, at unit diagonal.
    is_well : bool
        Whether the Gram matrix prices all sets of the columns.
    tolerance : float
        Objectives are right to this much.
    assumptions : tuple of str
    """

    def __init__(self, problem: Problem, columns: Indices) -> None:
        self.problem, self.columns, self.total = problem, columns, problem.total
        A = problem.gram_rows(columns)[:, columns]
        self._root = 1.0 / np.sqrt(np.diagonal(A))
        A = A * np.outer(self._root, self._root)
        self.A: Floats = 0.5 * (A + A.T)
        self.B: Floats = problem.cross[:, columns].T * self._root[:, None]
        m = len(columns)
        least = float(np.linalg.eigvalsh(self.A)[0]) if m else 1.0
        self.is_well = least >= WELL
        self.tolerance = self.total * max(ROUNDING, m * EPS / max(least, WELL))
        if self.is_well:
            V = np.linalg.solve(self.A, self.B).astype(np.float64)
            self.is_well = self._rounding(np.arange(m), V) <= self.tolerance
        self.assumptions: tuple[str, ...] = ()
        if not self.is_well:
            self.tolerance = max(self.tolerance, self.total * DOUBTFUL)
            if self._floor(np.arange(m))[1] < m:
                self.assumptions = (DEPENDENT_COUNT,)
            if self._rows is None:
                self.assumptions = (*self.assumptions, MOMENTS_ALONE)

    def _rounding(self, at: Indices, V: Floats) -> float:
        """How far the objective of a fit may be from that which the rows would give."""
        problem = self.problem
        if problem.rows is None or len(V) == 0:
            return 0.0
        lost = V * problem.rounding_factor_x[self.columns[at]][:, None]
        return gram_rounding(lost, self.total * problem.rounding_factor_y, problem.n_rows)

    def fit(self, at: Indices) -> Fit:
        """Return the fit on the columns at these places."""
        none = np.zeros((0, 0))
        if len(at) == 0:
            return Fit(at, self.total, none, np.zeros((0, self.B.shape[1])), True, np.zeros(0))
        A, B = self.A[np.ix_(at, at)], self.B[at]
        weak = np.zeros(len(at))
        if not self.is_well:
            values, vectors = np.linalg.eigh(A)
            weak = vectors[:, 0] ** 2
            if values[0] < WELL:
                return Fit(at, self._floor(at)[0], none, none, False, weak)
        G = np.asarray(np.linalg.inv(A), dtype=np.float64)
        G = 0.5 * (G + G.T)
        V = G @ B
        if not self.is_well and self._rounding(at, V) > self.tolerance:
            return Fit(at, self._floor(at)[0], none, none, False, weak)
        objective = max(self.total - float(np.einsum("ij,ij->", V, B)), 0.0)
        return Fit(at, objective, G, V, True, weak)

    def without(self, fit: Fit, places: Indices) -> Fit:
        """Return a fit after the columns at some places were taken away."""
        if len(places) == 0:
            return fit
        kept = ~np.isin(fit.at, places)
        if not fit.is_well or fit.updates >= MOST_UPDATES or 2 * len(places) > len(fit.at):
            return self.fit(fit.at[kept])
        # G_RR − G_RI·G_II⁻¹·G_IR, and likewise V: as a block is dropped in
        # `exactk.search.unit_pricing`.
        out, stay = np.flatnonzero(~kept), np.flatnonzero(kept)
        rows, V_out = fit.G[out], fit.V[out]
        left = rows[:, stay].T
        inner = np.asarray(np.linalg.inv(rows[:, out]), dtype=np.float64)
        across = left @ inner
        rise = float(np.einsum("ij,ij->", V_out, inner @ V_out))
        V = fit.V[stay] - across @ V_out
        if not self.is_well and self._rounding(fit.at[stay], V) > self.tolerance:
            return self.fit(fit.at[stay])
        return Fit(
            fit.at[stay],
            fit.objective + max(rise, 0.0),
            fit.G[np.ix_(stay, stay)] - across @ left.T,
            V,
            True,
            fit.weak[stay],
            fit.updates + 1,
        )

    def one_more(self, inside: Indices, last: Indices, least: float) -> Floats | None:
        """Return the objectives of some columns with each of others; None if they may be dependent.

        Parameters
        ----------
        inside, last : ndarray of intp
            Places of the columns that are in, and of those of which one comes in.
        least : float
            The eigenvalue from which on columns count as independent, alone and with one more;
            one with which it may be less has -inf. 0 asks nothing.
        """
        A, B = self.A[inside], self.B[inside]
        if least > 0 and len(inside):
            own = float(np.linalg.eigvalsh(A[:, inside])[0])
            if own < least:
                return None
            # The least eigenvalue with one more is about the product of both.
            least /= min(own, 1.0)
        V, T = B[:0], A[:0, last]
        if len(inside):
            solved = np.linalg.solve(A[:, inside], np.hstack([B, A[:, last]])).astype(np.float64)
            V, T = solved[:, : B.shape[1]], solved[:, B.shape[1] :]
        C = self.B[last] - A[:, last].T @ V
        D = 1.0 - np.einsum("ij,ij->j", A[:, last], T)
        gains = np.full(len(last), np.inf)
        np.divide(np.einsum("ij,ij->i", C, C), D, out=gains, where=least < D)
        objectives: Floats = self.total - float(np.einsum("ij,ij->", B, V)) - gains
        return objectives

    def least_objective(self, at: Indices) -> float | None:
        """What the objective of a set may be at the least, if the problem cannot tell what it is.

        None if it can: the columns are independent enough, or the rows are at hand.
        """
        if self.is_well or self._rows is not None or len(at) == 0:
            return None
        well = np.linalg.eigvalsh(self.A[np.ix_(at, at)])[0] >= WELL
        return None if well else self._floor(at)[0]

    def _floor(self, at: Indices) -> tuple[float, int]:
        """A value that no objective of a set of these columns is below, and how many directions.

        The rank is that of the fit behind it.
        """
        if self._rows is None:
            return self._floor_of_moments(at)
        R, n = self._rows
        if self.problem.penalty == 0 and len(at) >= n:
            # Without a ridge as many columns as rows may fit anything.
            return 0.0, min(n, len(at) - 1)
        left, sizes, _ = np.linalg.svd(R[:, at], full_matrices=False)
        # Less than any fit leaves out: `least_squares` takes from EPS·n on what is independent.
        left = left[:, sizes > 1e-3 * EPS * n]
        Y = R[:, len(self.columns) :]
        rest = Y - left @ (left.T @ Y)
        return float(np.einsum("ij,ij->", rest, rest)), left.shape[1]

    def _floor_of_moments(self, at: Indices) -> tuple[float, int]:
        m = len(at)
        values, vectors = np.linalg.eigh(self.A[np.ix_(at, at)])
        known = int((values > 16 * EPS * m).sum())
        if self.problem.rows is not None and known < m:
            # The rows may know of a direction there, and are too many to be asked.
            return 0.0, known
        values = np.maximum(values, 16 * EPS * m)
        across = vectors.T @ self.B[at]
        share = np.einsum("ij,ij->i", across, across) / values
        # An eigenvalue is right to some roundings, so what a small one adds is hardly known.
        noise = 2.0 * m * sum_rounding(self.problem.n_rows)
        explained = float((share * (1.0 + noise / values)).sum())
        return max(self.total - explained, 0.0), known

    @cached_property
    def _rows(self) -> tuple[Floats, int] | None:
        """The triangle of the columns, at unit size, and of the target; and how many rows."""
        problem, m = self.problem, len(self.columns)
        if problem.rows is None or not problem.reads_rows(m):
            return None
        # As `Problem.objective` reads them, to the last bit.
        x, y = problem.standardised(self.columns)
        if problem.weights is not None:
            root = np.sqrt(problem.weights)[:, None]
            x, y = x * root, y * root
        both = np.hstack([x, y])
        n = len(both)
        if problem.penalty > 0:
            ridge = np.sqrt(problem.penalty) * np.eye(m, m + y.shape[1])
            both = np.vstack([both, ridge])
        both[:, :m] /= np.sqrt((both[:, :m] ** 2).sum(axis=0))
        return np.asarray(np.linalg.qr(both, mode="r"), dtype=np.float64), n
