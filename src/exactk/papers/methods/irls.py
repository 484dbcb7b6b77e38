"""Iteratively reweighted least squares for ‖XW − Y‖₂,ᵣʳ + λ‖W‖₂,ₚᵖ, and its special cases."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from exactk.methods.iteration import Step
from exactk.papers.methods.standard_table import StandardTable
from exactk.types import Floats, Indices
from exactk.utils.linalg import largest, row_norms

__all__ = [
    "ActiveSet",
    "reweighted_steps",
    "robust_fit",
]


# A row of W whose ‖w‖ᵖ is this small beside the largest has died: it will not come back, and the
# objective does not miss it.
DEAD = 1e-11
# Rows whose 1/weight is this small beside that of most are fitted nearly exactly. In a sum with
# the others they would drown them in rounding.
EXACT_FIT = 1e-6
# So many of them cost nothing.
FEW_ROWS = 100
# What is added to their system at least, beside its largest entry: the same row twice, fitted
# exactly, must not make it singular.
ROUNDING = 1e-14
# Least share of the largest residual that counts as one in a fit on few columns.
ZERO_RESIDUAL = 1e-9
FIT_STEPS = 200
FIT_CHANGE = 1e-10


def reweighted_steps(
    table: StandardTable, k: int, *, r: float, p: float, lam: float, epsilon: float, tol: float
) -> Iterator[Step]:
    """Iterate W = (XᵀS₁X + λS₂)⁻¹XᵀS₁Y with weights of the last W (Algorithm 1, eq. 4).

    S₁ and S₂ are diagonal with (r/2)·(‖e_i‖² + ε)^{(r−2)/2} and (p/2)·(‖w_j‖² + ε)^{(p−2)/2},
    identities at first. As printed the system breaks down when rows of W die (S₂ → ∞). In two
    equal forms it does not, for only S₂⁻¹ occurs: in n unknowns
    W = S₂⁻¹Xᵀ(XS₂⁻¹Xᵀ + λS₁⁻¹)⁻¹Y, and in as many unknowns as rows of W are alive
    W = T(TXᵀS₁XT + λI)⁻¹TXᵀS₁Y with T = S₂^{−½}. Rows that have died are left out, so the system
    shrinks as it converges. With m rows alive an iteration costs O(nm·min(n, m)), for the
    weights, and so the matrix, are new each time; for r = 2 and m < n it is made once.

    Yields
    ------
    Step
        The k largest rows, the largest first; of rows that have died the later is the larger.
    """
    Y, root = table.Y, table.root
    rows = ActiveSet(table.X, p)
    # Squared loss has no row weights.
    S1_inverse = None if r == 2.0 else np.ones(len(Y))
    value = np.inf
    while True:
        W = rows.solve(Y, lam, S1_inverse)
        E = rows.X @ W - Y
        w, e = np.sqrt(row_norms(W) ** 2 + epsilon), np.sqrt(table.row_norms(E) ** 2 + epsilon)
        last = value
        value = float(root**2 @ e**r + lam * (w**p).sum())
        rows.reweight(w)
        if r < 2.0:
            S1_inverse = (2.0 / r) * e ** (2.0 - r)
        yield Step(table.columns[rows.ranked(k)], value, bool(abs(last - value) <= tol))


class ActiveSet:
    """The rows of W that are alive under a penalty λ‖W‖₂,ₚᵖ, their weights, and the order of all.

    Parameters
    ----------
    X : ndarray of shape (n, m)
    p : float
        Order of the penalty.

    Attributes
    ----------
    X : ndarray of shape (n, number alive)
        The columns whose rows of W are alive.
    active : ndarray of intp
        Which rows of W are.
    S2_inverse : ndarray
        Inverse weights of these, ones at first.
    """

    def __init__(self, X: Floats, p: float = 1.0) -> None:
        self.X = X
        self.active, self.S2_inverse = np.arange(X.shape[1]), np.ones(X.shape[1])
        self._p, self._t = p, 0
        self._scores = np.zeros(X.shape[1])
        self._XX: Floats | None = None
        self._XY: Floats | None = None
        self._Y: Floats | None = None

    def reweight(self, w: Floats) -> None:
        """Take the norms of the rows alive: S₂ follows them, and the dead are left out."""
        self._t += 1
        before = self._scores[self.active]
        self._scores[self.active] = w
        floor = DEAD ** (1.0 / self._p) * w.max(initial=0.0)
        dead = w <= floor
        if dead.any():
            # Below zero, and nearer to it the later: dead rows keep an order among themselves,
            # that of the last iterate if this one is zero throughout.
            share = w[dead] / floor if floor > 0 else before[dead] / (before.max() or 1.0)
            self._scores[self.active[dead]] = -1.0 / (self._t + share)
            self.active, w = self.active[~dead], w[~dead]
            self._keep(~dead)
        self.S2_inverse = (2.0 / self._p) * w ** (2.0 - self._p)

    def _keep(self, kept: npt.NDArray[np.bool_]) -> None:
        self.X = self.X[:, kept]
        if self._XX is not None:
            self._XX = self._XX[np.ix_(kept, kept)]
        if self._XY is not None:
            self._XY = self._XY[kept]

    def ranked(self, k: int) -> Indices:
        """Return the k largest rows, the largest first; of dead rows the later is the larger."""
        chosen = largest(self._scores, k, positive=False)
        ranked: Indices = chosen[np.argsort(-self._scores[chosen], kind="stable")]
        return ranked

    def solve(
        self,
        Y: Floats,
        lam: float,
        S1_inverse: Floats | None = None,
        *,
        weights: Floats | None = None,
    ) -> Floats:
        """Return the rows alive of (XᵀS₁X + λS₂)⁻¹XᵀS₁Y.

        Parameters
        ----------
        Y : ndarray of shape (n, c)
        lam : float
        S1_inverse : ndarray of shape (n,) or None
            Inverse row weights, of which some may be zero or nearly so; None is S₁ = I.
        weights : ndarray of shape (n,) or None
            S₁ itself instead, where nothing is above one; here zeros are welcome.
        """
        X, S2_inverse = self.X, self.S2_inverse
        if weights is not None:
            half = np.sqrt(weights)[:, None]
            return _solve(half * X, half * Y, np.ones(len(X)), S2_inverse, lam)
        if S1_inverse is not None:
            return _solve(X, Y, S1_inverse, S2_inverse, lam)
        if X.shape[1] >= len(X):
            return _solve(X, Y, np.ones(len(X)), S2_inverse, lam)
        # Products of columns are made once.
        if self._XX is None:
            self._XX = X.T @ X
        if self._XY is None or self._Y is not Y:
            self._XY, self._Y = X.T @ Y, Y
        return _solve_squared(self._XX, self._XY, S2_inverse, lam)


def _solve(X: Floats, Y: Floats, S1_inverse: Floats, S2_inverse: Floats, lam: float) -> Floats:
    """Solve the reweighted system in the smaller of its two forms.

    Rows are times √w: their weight is in X and Y already.
    """
    n, m = X.shape
    half = np.sqrt(S2_inverse)
    XT = X * half
    if n <= m:
        K = XT @ XT.T
        _add_diagonal(K, lam * S1_inverse)
        return half[:, None] * (XT.T @ np.linalg.solve(K, Y))
    exact = _exact_rows(S1_inverse, m)
    usual = np.delete(np.arange(n), exact) if len(exact) else slice(None)
    # Both factors the same array, which halves the work of their product.
    scale = 1.0 / np.sqrt(S1_inverse[usual, None])
    weighted = XT[usual] * scale
    M = weighted.T @ weighted
    M[np.diag_indices_from(M)] += lam
    right = weighted.T @ (Y[usual] * scale)
    return half[:, None] * _solve_apart(M, right, XT[exact], Y[exact], S1_inverse[exact])


def _solve_apart(M: Floats, right: Floats, A: Floats, Y: Floats, S1_inverse: Floats) -> Any:
    """Solve (M + AᵀS₁A)W = right + AᵀS₁Y, where only S₁⁻¹ is known, which may be zero.

    Nearly exact rows A by their residual forces u = S₁(Y − AW), for only S₁⁻¹ is needed then.
    """
    if len(A) == 0:
        return np.linalg.solve(M, right)
    both = np.linalg.solve(M, np.hstack([right, A.T]))
    without, through = both[:, : Y.shape[1]], both[:, Y.shape[1] :]
    K = A @ through
    _add_diagonal(K, S1_inverse)
    u = np.linalg.solve(K, Y - A @ without)
    return without + through @ u


def _exact_rows(S1_inverse: Floats, m: int) -> Indices:
    """Rows fitted nearly exactly, of which m coefficients leave about m, copies aside.

    More than that beside the largest 1/weight means that it belongs to an outlier: then that of
    most rows is the measure, or of the upper tenth where most are fitted exactly.
    """
    exact = np.flatnonzero(S1_inverse <= EXACT_FIT * S1_inverse.max())
    if len(exact) <= max(3 * m, FEW_ROWS):
        return exact
    median, high = np.quantile(S1_inverse, [0.5, 0.9])
    return np.flatnonzero(S1_inverse <= EXACT_FIT * (median if median > EXACT_FIT * high else high))


def _add_diagonal(K: Floats, values: Floats) -> None:
    # Of rows that are zero throughout anything will do.
    least = ROUNDING * float(np.diagonal(K).max(initial=0.0)) or 1.0
    K[np.diag_indices_from(K)] += np.maximum(values, least)


def _solve_squared(XX: Floats, XY: Floats, S2_inverse: Floats, lam: float) -> Floats:
    """The system where no row is apart: for r = 2, of the products XᵀX and XᵀY."""
    half = np.sqrt(S2_inverse)
    M = XX * np.outer(half, half)
    M[np.diag_indices_from(M)] += lam
    return half[:, None] * np.linalg.solve(M, half[:, None] * XY)


def robust_fit(table: StandardTable, chosen: Indices) -> float:
    """Return the least ‖Y − X_S W − 1bᵀ‖₂,₁ on some columns."""
    root = table.root[:, None]
    X = np.hstack([table.X[:, chosen], root])
    weights, value = np.ones(len(X)), np.inf
    for _ in range(FIT_STEPS):
        half = np.sqrt(weights)[:, None]
        W = np.linalg.lstsq(half * X, half * table.Y, rcond=None)[0]
        e = table.row_norms(X @ W - table.Y)
        last, value = value, float(table.root**2 @ e)
        if last - value <= FIT_CHANGE * value or value == 0.0:
            break
        weights = 1.0 / np.maximum(e, ZERO_RESIDUAL * e.max())
    return min(last, value)
