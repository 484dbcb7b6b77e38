"""What methods for a subspace on k rows share: a scatter matrix, its spectrum, the proxy step.

The problem is max Tr(WᵀAW) with WᵀW = I and k rows of W that are not zero. For given rows S it is
solved by eigenvectors of A_SS, and for a matrix of rank m by the k largest diagonal entries.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Protocol

import numpy as np

from exactk.data.gram import WholeGram
from exactk.papers.methods.standard_table import column_unit, standard_table
from exactk.problem.problem import Problem
from exactk.types import Floats, Indices
from exactk.utils.linalg import SINGULAR

__all__ = ["Form", "Scatter", "leading_pairs", "principal", "proxy_scores", "scatter", "top"]


# Up to this size the whole spectrum costs little; beyond it, a few pairs are found by Lanczos.
FEW = 300
# Scores that differ by less than this, beside the largest, differ by rounding.
ROUNDING_DIGITS = 12


class Form(Protocol):
    """A symmetric matrix A, of which blocks and products are enough."""

    def block(self, S: Indices) -> Floats:
        """Return A_SS."""

    def times(self, S: Indices, W: Floats) -> Floats:
        """Return A W for a W whose rows are those given on S, and zero elsewhere."""


class Scatter(ABC):
    """XᵀHX of the candidates, divided by its mean diagonal entry.

    Attributes
    ----------
    diagonal : ndarray of shape (d,)
    """

    diagonal: Floats

    @abstractmethod
    def block(self, S: Indices) -> Floats:
        """Return A_SS."""

    @abstractmethod
    def times(self, S: Indices, W: Floats) -> Floats:
        """Return A W for a W whose rows are those given on S, and zero elsewhere."""

    @abstractmethod
    def leading(self, m: int) -> tuple[Floats, Floats]:
        """Return the m largest eigenvalues and their vectors; fewer if the rank is lower."""


class _Whole(Scatter):
    """The d × d matrix at hand."""

    def __init__(self, A: Floats) -> None:
        self.A, self.diagonal = A, A.diagonal().copy()

    def block(self, S: Indices) -> Floats:
        return self.A[np.ix_(S, S)]

    def times(self, S: Indices, W: Floats) -> Floats:
        # The matrix is symmetric, and its rows are contiguous.
        product: Floats = self.A[S].T @ W
        return product

    def leading(self, m: int) -> tuple[Floats, Floats]:
        return leading_pairs(self.A, m)


class _Rows(Scatter):
    """The n × d table at hand; nothing of size d × d is made where n < d."""

    def __init__(self, X: Floats) -> None:
        self.X, self.diagonal = X, np.einsum("ij,ij->j", X, X)

    def block(self, S: Indices) -> Floats:
        X = self.X[:, S]
        return X.T @ X

    def times(self, S: Indices, W: Floats) -> Floats:
        return self.X.T @ (self.X[:, S] @ W)

    def leading(self, m: int) -> tuple[Floats, Floats]:
        X = self.X
        if X.shape[1] <= len(X):
            return leading_pairs(X.T @ X, m)
        values, U = leading_pairs(X @ X.T, m)
        return values, X.T @ (U / np.sqrt(values))


def scatter(problem: Problem) -> Scatter:
    """Return the scatter matrix of the candidates, without ridge, from moments or rows.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> A = scatter(Problem.from_arrays(*load_iris(return_X_y=True)))
    >>> A.diagonal.round(12), A.leading(2)[0].round(3)
    (array([1., 1., 1., 1.]), array([2.918, 0.914]))
    """
    columns = problem.candidates
    size = float(problem.scatter[columns].mean())
    wide = problem.n_rows < len(columns)
    if problem.rows is None or (isinstance(problem.gram, WholeGram) and not wide):
        return _Whole(problem.gram.whole()[np.ix_(columns, columns)] / size)
    X = standard_table(problem).X
    X *= column_unit(problem) / np.sqrt(size)
    return _Rows(X)


def leading_pairs(A: Floats, m: int) -> tuple[Floats, Floats]:
    """Return the m largest eigenvalues above rounding and their vectors, the largest first.

    Examples
    --------
    >>> leading_pairs(np.diag([1.0, 3.0, 0.0]), 3)[0]
    array([3., 1.])
    """
    d = len(A)
    if d <= FEW or 5 * m >= d:
        values, vectors = np.linalg.eigh(A)
        values, vectors = values[::-1][:m], vectors[:, ::-1][:, :m]
    else:
        # Imported here, for it takes longer than all the rest of exactk.
        from scipy.sparse.linalg import ArpackNoConvergence, eigsh

        # Always the same start, so that answers repeat.
        start = np.random.default_rng(0).standard_normal(d)
        try:
            values, vectors = eigsh(A, k=m, which="LA", v0=start)
        except ArpackNoConvergence:
            values, vectors = np.linalg.eigh(A)
            values, vectors = values[-m:], vectors[:, -m:]
        order = np.argsort(-values)
        values, vectors = values[order], vectors[:, order]
    kept = values > SINGULAR * max(float(values[0]), 0.0)
    return values[kept], vectors[:, kept]


def principal(A_SS: Floats, m: int) -> tuple[float, Floats]:
    """Return the greatest Tr(WᵀAW) with m orthonormal columns on given rows, and W.

    Examples
    --------
    >>> value, W = principal(np.diag([1.0, 3.0, 2.0]), 2)
    >>> value, np.abs(W).sum(axis=1)
    (5.0, array([0., 1., 1.]))
    """
    values, vectors = np.linalg.eigh(A_SS)
    return float(values[-m:].sum()), vectors[:, -m:]


def proxy_scores(A: Form, S: Indices, W: Floats) -> Floats:
    """Return the diagonal of P = AW(WᵀAW)⁺WᵀA, which is below A and agrees with it on W.

    Where A is positive semi-definite the k largest entries name rows with no lower a Tr(WᵀAW).
    """
    AW = A.times(S, W)
    core = W.T @ AW[S]
    values, vectors = np.linalg.eigh(0.5 * (core + core.T))
    kept = values > SINGULAR * max(float(values[-1]), 0.0)
    half = vectors[:, kept] / np.sqrt(values[kept])
    scores: Floats = ((AW @ half) ** 2).sum(axis=1)
    return scores


def top(scores: Floats, k: int, second: Floats | None = None) -> Indices:
    """Return the k largest, the largest first; what is equal up to rounding by a second score.

    Examples
    --------
    >>> top(np.array([1.0, 2.0, 2.0 + 1e-15]), 2, np.array([0.0, 1.0, 5.0]))
    array([2, 1])
    """
    keys = [_rounded(scores)] if second is None else [_rounded(second), _rounded(scores)]
    order: Indices = np.lexsort([-key for key in keys])[:k]
    return order


def _rounded(scores: Floats) -> Floats:
    size = float(np.abs(scores).max(initial=0.0)) or 1.0
    return np.round(scores / size, ROUNDING_DIGITS)
