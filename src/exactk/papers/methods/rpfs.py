"""RPFS: robust l2,1 loss on exactly k rows, by an augmented Lagrangian."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import count
from typing import ClassVar, Literal

import numpy as np

from exactk.methods.base import IterativeMethod, generator
from exactk.methods.iteration import IterationLog, LazyStarts, Start, Starts, Step
from exactk.papers.methods.irls import robust_fit
from exactk.papers.methods.standard_table import (
    StandardTable,
    random_matrix,
    standard_table,
    validate_init,
)
from exactk.params import Anything, Check, Choice, Integer, Number, Seed
from exactk.problem.problem import Problem
from exactk.types import Floats, Indices
from exactk.utils.linalg import largest, row_norms, shrink_rows

__all__ = ["RPFS"]


# Size of a random W⁰: a large one ruins the search where there are many columns.
START_SIZE = 1e-3
# Iterations after which sums kept by updates are computed anew.
REFRESH = 50


class RPFS(IterativeMethod):
    """min ‖Y − XW − 1bᵀ‖₂,₁ with ‖W‖₂,₀ = k (eq. 7), by the augmented Lagrangian of Algorithm 3.

    With slacks V (k rows that are not zero) and E, multipliers Λ and Σ, and μ growing by ρ, an
    iteration is

    * b = mean of Y + E − Σ/μ − XW  (eq. 12);
    * W = (XᵀX + I)⁻¹(V − Λ/μ + Xᵀ(Y + E − Σ/μ − 1bᵀ))  (eq. 14);
    * V = the k rows of W + Λ/μ of largest norm  (eq. 15);
    * E = rows of XW + 1bᵀ − Y + Σ/μ shortened by 1/μ  (eq. 20);
    * Λ += μ(W − V), Σ += μ(XW + 1bᵀ − Y − E), μ ← ρμ.

    (XᵀX + I)⁻¹ is computed once, for the smaller of n and d; an iteration then costs one pass
    over X where n < d, and two otherwise. It stops when no entry of W − V is above `tol` times
    the largest of W, nor one of the residual of E above `tol`. The columns are those of V: only
    V is sparse, W is not.

    Parameters
    ----------
    mu : float
        μ at the start: 0.1 in Algorithm 3, 0.01 in section 5.2.
    rho : float
        Factor by which μ grows.
    row_norm : {"l2", "l1"}
        What ranks the rows in the V-step. l2 norms solve eq. 15; "l1" is the letter of Algorithm 2,
        which does not.
    n_starts : int
        Random W⁰ to start from; that whose columns have the lowest l2,1 loss after a refit is kept.
    init : array-like of shape (n_features, n_outputs) or None
        W⁰ to start from instead, for standardised columns; `n_starts` then has no effect.
    max_iter : int
        Iterations from one start at most.
    tol : float
        Largest violation of a constraint that counts as none; the paper does not give a rule.
    random_state : int, Generator, RandomState or None
        Seed of the starts; None is a fixed seed.

    Notes
    -----
    Cost: once O(n·d·m) with m the smaller of n and d; then O(n·d·c) an iteration. Memory: the
    standardised table and m² numbers.

    Guaranteed: exactly k columns. Nothing of their quality: the constraint is not convex, and as μ
    grows the iterates freeze wherever they are.

    Algorithm 3 leaves V and E open: here E⁰ = 0 and V⁰ is the k largest rows of W⁰, which is small
    (1e-3). As μ grows the iterates freeze, and the loss at (V, b) can be well above that of a
    refit on the same columns, which is why starts are compared after one. The ridge of the
    problem takes no part in the search. The search is robust against wrong rows; coefficients
    and objective of the result are of squared loss, as for every method.

    References
    ----------
    X. Cai, F. Nie, H. Huang, "Exact top-k feature selection via l2,0-norm constraint", IJCAI 2013.

    Examples
    --------
    >>> import exactk
    >>> from sklearn.datasets import load_iris
    >>> problem = exactk.Problem.from_arrays(*load_iris(return_X_y=True))
    >>> exactk.solve(problem, 2, method="rpfs").support
    array([1, 3])
    """

    needs_rows: ClassVar[bool] = True
    checks: ClassVar[Mapping[str, Check]] = {
        "mu": Number("(0, inf)"),
        "rho": Number("[1, inf)"),
        "row_norm": Choice(options=("l2", "l1")),
        "n_starts": Integer(1),
        "init": Anything("a matrix W⁰, features × outputs, or None"),
        "max_iter": Integer(1),
        "tol": Number("[0, inf)"),
        "random_state": Seed(),
    }

    def __init__(
        self,
        mu: float = 0.1,
        rho: float = 1.02,
        row_norm: Literal["l2", "l1"] = "l2",
        n_starts: int = 1,
        init: object = None,
        max_iter: int = 1000,
        tol: float = 1e-4,
        random_state: object = None,
    ) -> None:
        self.mu = mu
        self.rho = rho
        self.row_norm = row_norm
        self.n_starts = n_starts
        self.init = init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def check_init(self, problem: Problem, k: int) -> None:  # noqa: D102
        if self.init is not None:
            validate_init(self.init, problem)

    def prepare(self, problem: Problem) -> tuple[StandardTable, _System]:  # noqa: D102
        table = standard_table(problem, "one-hot", robust=True)
        return table, _Narrow(table) if len(table.X) < table.X.shape[1] else _Tall(table)

    def starts(  # noqa: D102
        self, problem: Problem, k: int, prepared: tuple[StandardTable, _System]
    ) -> Starts:
        table, system = prepared

        def merit(log: IterationLog) -> float:
            """The l2,1 loss of a fit on the columns found."""
            return robust_fit(table, np.searchsorted(table.columns, sorted(log.support)))

        if self.init is not None:
            W0 = validate_init(self.init, problem)
            return [Start(self._iterations(table, system, k, W0), merit)]
        rng = generator(self.random_state)

        def make() -> Start:
            W0 = random_matrix(problem, rng, START_SIZE)
            return Start(self._iterations(table, system, k, W0), merit)

        return LazyStarts(self.n_starts, make)

    def _scores(self, W: Floats) -> Floats:
        scores: Floats = row_norms(W) if self.row_norm == "l2" else np.abs(W).sum(axis=1)
        return scores

    def _iterations(
        self, table: StandardTable, system: _System, k: int, W0: Floats
    ) -> Iterator[Step]:
        X, Y, root = table.X, table.Y, table.root[:, None]
        weight, mu = table.weight, float(self.mu)
        S = largest(self._scores(W0), k)
        V_S, Lambda, Sigma, E = W0[S], np.zeros_like(W0), np.zeros_like(Y), np.zeros_like(Y)
        W, XW, X_Lambda = W0, X @ W0, np.zeros_like(Y)
        XV = X[:, S] @ V_S
        for t in count(1):
            T = Y + E - Sigma / mu
            b = (root * (T - XW)).sum(axis=0) / weight
            T -= root * b
            Q = Lambda / -mu
            Q[S] += V_S
            W, XW = system.solve(Q, XV - X_Lambda / mu, T)
            raised = W + Lambda / mu
            S = largest(self._scores(raised), k)
            V_S = raised[S]
            # Λ + μ(W − V): zero on the rows that V has, so that X·Λ needs none of them.
            Lambda = mu * raised
            Lambda[S] = 0.0
            XV = X[:, S] @ V_S
            X_Lambda = X @ Lambda if t % REFRESH == 0 else X_Lambda + mu * (XW - XV)
            fit = XW + root * b - Y
            G = fit + Sigma / mu
            E = shrink_rows(G, table.root / mu)
            Sigma = mu * (G - E)
            mu *= self.rho
            value = float(table.root @ row_norms(XV + root * b - Y))
            settled = self._has_converged(W, S, V_S, (fit - E) / root)
            yield Step(table.columns[S], value, settled, partial(_details, W, S, V_S))

    def _has_converged(self, W: Floats, S: Indices, V_S: Floats, gap_E: Floats) -> bool:
        """Whether W = V and E = XW + 1bᵀ − Y nearly hold; the target is of unit size."""
        gap = W.copy()
        gap[S] -= V_S
        close = np.abs(gap).max() <= self.tol * np.abs(W).max()
        return bool(close and np.abs(gap_E).max() <= self.tol)


def _details(W: Floats, S: Indices, V_S: Floats) -> dict[str, Floats]:
    """Row norms of V, which has k rows, and of W, which the penalty only draws towards it."""
    norms = np.zeros(len(W))
    norms[S] = row_norms(V_S)
    return {"row_norms": norms, "row_norms_w": row_norms(W)}


class _System(ABC):
    """(XᵀX + I)W = Q + XᵀT, solved for many right-hand sides."""

    @abstractmethod
    def solve(self, Q: Floats, XQ: Floats, T: Floats) -> tuple[Floats, Floats]:
        """Return W and XW, given Q, XQ and T."""


class _Narrow(_System):
    """In n unknowns: W = Q + XᵀR with R = (XXᵀ + I)⁻¹(T − XQ), and XW = T − R."""

    def __init__(self, table: StandardTable) -> None:
        self.X = table.X
        self.inverse = np.linalg.inv(self.X @ self.X.T + np.eye(len(self.X)))

    def solve(self, Q: Floats, XQ: Floats, T: Floats) -> tuple[Floats, Floats]:
        R = self.inverse @ (T - XQ)
        return Q + self.X.T @ R, T - R


class _Tall(_System):
    """In d unknowns."""

    def __init__(self, table: StandardTable) -> None:
        self.X = table.X
        self.inverse = np.linalg.inv(self.X.T @ self.X + np.eye(self.X.shape[1]))

    def solve(self, Q: Floats, XQ: Floats, T: Floats) -> tuple[Floats, Floats]:
        W = self.inverse @ (Q + self.X.T @ T)
        return W, self.X @ W
