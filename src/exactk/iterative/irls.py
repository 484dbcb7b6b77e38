"""Iteratively reweighted least squares for ‖XW − Y‖₂,ᵣʳ + λ‖W‖₂,ₚᵖ, and its special cases."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from exactk.iterative.course import Step
from exactk.iterative.table import StandardTable
from exactk.linalg import largest, row_norms

__all__ = ["reweighted_steps", "robust_fit"]

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]

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
    X, Y, root, columns = table.X, table.Y, table.root, table.columns
    scores = np.zeros(X.shape[1])
    alive = np.arange(X.shape[1])
    S1_inverse, S2_inverse = np.ones(len(X)), np.ones(X.shape[1])
    squares: tuple[Floats, Floats] | None = None
    value, t = np.inf, 0
    while True:
        t += 1
        if r == 2.0 and X.shape[1] < len(X):
            # Squared loss has no row weights: products of columns are made once.
            squares = squares or (X.T @ X, X.T @ Y)
            W = _solve_squared(*squares, S2_inverse, lam)
        else:
            W = _solve(X, Y, S1_inverse, S2_inverse, lam)
        E = X @ W - Y
        w, e = np.sqrt(row_norms(W) ** 2 + epsilon), np.sqrt(table.row_norms(E) ** 2 + epsilon)
        last = value
        value = float(root**2 @ e**r + lam * (w**p).sum())
        scores[alive] = w
        floor = DEAD ** (1.0 / p) * w.max(initial=0.0)
        dead = w <= floor
        if dead.any():
            # Below zero, and nearer to it the later: dead rows keep an order among themselves.
            share = w[dead] / floor if floor > 0 else 0.0
            scores[alive[dead]] = -1.0 / (t + share)
            alive, X, w = alive[~dead], X[:, ~dead], w[~dead]
            if squares is not None:
                squares = squares[0][np.ix_(~dead, ~dead)], squares[1][~dead]
        S1_inverse = (2.0 / r) * e ** (2.0 - r)
        S2_inverse = (2.0 / p) * w ** (2.0 - p)
        chosen = largest(scores, k, positive=False)
        ranked = chosen[np.argsort(-scores[chosen], kind="stable")]
        yield Step(columns[ranked], value, bool(abs(last - value) <= tol))


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
    if len(exact) == 0:
        return half[:, None] * np.linalg.solve(M, right)
    # Nearly exact rows by their residual forces u = S₁(Y − XW), for only S₁⁻¹ is needed then.
    A = XT[exact]
    both = np.linalg.solve(M, np.hstack([right, A.T]))
    without, through = both[:, : Y.shape[1]], both[:, Y.shape[1] :]
    K = A @ through
    _add_diagonal(K, S1_inverse[exact])
    u = np.linalg.solve(K, Y[exact] - A @ without)
    return half[:, None] * (without + through @ u)


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
    """The system for r = 2, of the products XᵀX and XᵀY."""
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
