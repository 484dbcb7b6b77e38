"""SFS: a smooth loss on exactly k rows, from the multi-task lasso with as many."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from math import inf, sqrt
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from exactk.methods.base import IterativeMethod
from exactk.methods.iteration import Start, Starts, Step
from exactk.papers.methods.standard_table import (
    LABELS,
    Labels,
    StandardTable,
    standard_table,
    validate_init,
)
from exactk.params import Anything, Boolean, Check, Choice, Integer, Number
from exactk.problem.problem import Problem
from exactk.types import Floats
from exactk.utils.linalg import largest, row_norms, shrink_rows, spectral_norm

__all__ = ["SFS"]

Loss = Literal["squared", "l2,1"]

# The penalty of the lasso falls by this factor until k rows are not zero, or it is this small
# beside the one that leaves none.
FALL, LEAST_PENALTY = 0.8, 1e-3
# Steps for one penalty at most, and the relative change of its objective that ends them.
LASSO_STEPS, LASSO_CHANGE = 200, 1e-7
# A loss this small beside that of W = 0 is none: what is left is rounding.
NO_LOSS = 1e-12


class SFS(IterativeMethod):
    """min f(W) with ‖W‖₂,₀ ≤ k for a smooth f: W ← k largest rows of W − ∇f(W)/L.

    L is the Lipschitz constant of ∇f, so that f(V) ≤ f(W) + ⟨∇f(W), V − W⟩ + L/2·‖V − W‖² for all
    V, and the step is the best V with k rows for the right-hand side: f never rises. It stops when
    the relative change of f in such a step is at most `tol`. f is ‖XW − Y‖², with L = 2‖X‖₂², or
    the l2,1 loss smoothed, Σ_i h(‖e_i‖) with h(e) = e²/(2μ) up to μ and e − μ/2 beyond, and
    L = ‖X‖₂²/μ.

    The start is the multi-task lasso min f(W) + λ‖W‖₂,₁ with that λ of a falling sequence at which
    k rows first are not zero (`mtfs` for squared loss). Each λ counts as an iteration, and its f is
    in the trace.

    Parameters
    ----------
    loss : {"squared", "l2,1"}
        f. The smoothed l2,1 loss is robust against wrong rows.
    mu : float
        μ, where the l2,1 loss begins to be linear, in units of the coded classes, or of the usual
        deviation of numbers from their median.
    accelerate : bool
        Whether a step begins at W + β(W − last W), β growing as Nesterov's. Where that would raise
        f, a plain step is made instead and β starts again from zero.
    labels : {"centred", "one-hot", "plus-minus"}
        How classes are coded; centred classes need no bias.
    init : array-like of shape (n_features, n_outputs) or None
        W⁰ to start from instead of the lasso, for standardised columns.
    max_iter : int
        Iterations at most, those of the start among them.
    tol : float
        Relative change of f that counts as none.

    Notes
    -----
    Cost: O(n·d·c) an iteration. Memory: the standardised table and a few matrices of the size of W.

    Guaranteed: exactly k columns; after the start the loss never rises. What is found is a fixed
    point of the step, not an optimum.

    Of the paper only the problem is taken: a general smooth loss with at most k rows. The step is
    the natural one for it; the start from the multi-task lasso, with λ such that it has k rows, is
    how Cai, Nie and Huang (IJCAI 2013) run the method. Ours are the two losses, the sequence of λ,
    the acceleration and the stopping rule. What is found is a fixed point of the step, which
    depends on the start; with squared loss the step is that of `pgd`. The ridge of the problem
    takes no part in the search. Coefficients and objective of the result are of squared loss, as
    for every method.

    References
    ----------
    D. Luo, C. Ding, H. Huang, "Towards structural sparsity: an explicit l2/l0 approach", ICDM 2010
    and Knowl. Inf. Syst. 36(2), 2013.

    Examples
    --------
    >>> import exactk
    >>> from sklearn.datasets import load_iris
    >>> problem = exactk.Problem.from_arrays(*load_iris(return_X_y=True))
    >>> exactk.solve(problem, 2, method="sfs").support
    array([2, 3])
    """

    needs_rows: ClassVar[bool] = True
    checks: ClassVar[Mapping[str, Check]] = {
        "loss": Choice(options=("squared", "l2,1")),
        "mu": Number("(0, inf)"),
        "accelerate": Boolean(),
        "labels": LABELS,
        "init": Anything("a matrix W⁰, features × outputs, or None"),
        "max_iter": Integer(1),
        "tol": Number("[0, inf)"),
    }

    def __init__(
        self,
        loss: Loss = "squared",
        mu: float = 0.5,
        accelerate: bool = True,
        labels: Labels = "centred",
        init: object = None,
        max_iter: int = 1000,
        tol: float = 1e-5,
    ) -> None:
        self.loss = loss
        self.mu = mu
        self.accelerate = accelerate
        self.labels = labels
        self.init = init
        self.max_iter = max_iter
        self.tol = tol

    def check_init(self, problem: Problem, k: int) -> None:  # noqa: D102
        if self.init is not None:
            validate_init(self.init, problem)

    def prepare(self, problem: Problem) -> _Lasso:  # noqa: D102
        table = standard_table(problem, self.labels, robust=self.loss != "squared")
        return _Lasso(_Squared(table) if self.loss == "squared" else _Smoothed(table, self.mu))

    def starts(self, problem: Problem, k: int, prepared: _Lasso) -> Starts:  # noqa: D102
        W0 = None if self.init is None else validate_init(self.init, problem)
        return [Start(self._iterations(prepared, problem.candidates, k, W0))]

    def _iterations(
        self, lasso: _Lasso, columns: npt.NDArray[np.intp], k: int, W0: Floats | None
    ) -> Iterator[Step]:
        f = lasso.f
        W = np.zeros((f.X.shape[1], f.Y.shape[1])) if W0 is None else W0
        if W0 is None:
            for W in lasso.until(k):
                here = _Point(f, W, k)
                yield Step(columns[here.S], here.value)
        here = before = _Point(f, W, k)
        theta, floor = 1.0, NO_LOSS * f(-f.Y)
        while True:
            grown = 0.5 * (1.0 + sqrt(1.0 + 4.0 * theta**2))
            beta = (theta - 1.0) / grown if self.accelerate else 0.0
            last, theta = here.value, grown
            moved = _Point(f, f.step(*here.beyond(before, beta)), k)
            if beta > 0.0 and not moved.value <= last:
                beta, theta = 0.0, 1.0
                moved = _Point(f, f.step(here.W, here.XW), k)
            here, before = moved, here
            small = abs(last - here.value) <= self.tol * max(abs(last), floor)
            if small:
                theta = 1.0
            # Only a plain step says that nothing is left to gain.
            yield Step(columns[here.S], here.value, small and beta == 0.0)


class _Point:
    """The k largest rows of a matrix, with its fit and its loss."""

    def __init__(self, f: _Smooth, W: Floats, k: int) -> None:
        self.S = largest(row_norms(W), k)
        self.W = np.zeros_like(W)
        self.W[self.S] = W[self.S]
        self.XW = f.X[:, self.S] @ W[self.S]
        self.value = f(self.XW - f.Y)

    def beyond(self, before: _Point, beta: float) -> tuple[Floats, Floats]:
        """W + β(W − last W), and X times that."""
        if beta == 0.0:
            return self.W, self.XW
        W = self.W + beta * (self.W - before.W)
        return W, self.XW + beta * (self.XW - before.XW)


class _Smooth(ABC):
    """A loss of the residual E = XW − Y with a Lipschitz gradient."""

    X: Floats
    Y: Floats
    lipschitz: float

    @abstractmethod
    def __call__(self, E: Floats) -> float:
        """Return the loss."""

    @abstractmethod
    def gradient_at(self, E: Floats) -> Floats:
        """Return the gradient with respect to E."""

    def fit(self, W: Floats) -> Floats:
        """XW, for a W of which few rows are not zero."""
        S = np.flatnonzero(row_norms(W))
        fitted: Floats = self.X[:, S] @ W[S] if 2 * len(S) < len(W) else self.X @ W
        return fitted

    def step(self, W: Floats, XW: Floats) -> Floats:
        """W − ∇f(W)/L."""
        # In this order the rows of X are read as they lie, several times as fast for few outputs.
        gradient = (self.gradient_at(XW - self.Y).T @ self.X).T
        stepped: Floats = W - gradient / self.lipschitz
        return stepped


class _Squared(_Smooth):
    """‖E‖²; of more rows than columns only as many as columns are needed."""

    def __init__(self, table: StandardTable) -> None:
        self.X, self.Y, self._rest = table.X, table.Y, 0.0
        if len(self.X) > self.X.shape[1]:
            Q, self.X = np.linalg.qr(self.X)
            self.Y = Q.T @ table.Y
            self._rest = float(((table.Y - Q @ self.Y) ** 2).sum())
        self.lipschitz = 2.0 * spectral_norm(self.X) ** 2

    def __call__(self, E: Floats) -> float:
        return float((E**2).sum()) + self._rest

    def gradient_at(self, E: Floats) -> Floats:
        return 2.0 * E


class _Smoothed(_Smooth):
    """The norms of the rows of E, quadratic below μ."""

    def __init__(self, table: StandardTable, mu: float) -> None:
        self.X, self.Y, self._table, self._mu = table.X, table.Y, table, float(mu)
        self.lipschitz = spectral_norm(self.X) ** 2 / self._mu

    def __call__(self, E: Floats) -> float:
        e = self._table.row_norms(E)
        near = np.minimum(e, self._mu)
        # With e = near + far both branches are one expression.
        return float(self._table.root**2 @ (near**2 / (2.0 * self._mu) + (e - near)))

    def gradient_at(self, E: Floats) -> Floats:
        return E / np.maximum(self._table.row_norms(E), self._mu)[:, None]


class _Lasso:
    """min f(W) + λ‖W‖₂,₁ for falling λ; solutions are kept for the next k."""

    def __init__(self, f: _Smooth) -> None:
        self.f = f
        self._lam = self._most = float(row_norms(f.X.T @ f.gradient_at(-f.Y)).max())
        self._solutions: list[Floats] = []

    def until(self, k: int) -> Iterator[Floats]:
        """Yield one solution after the other, as far as the first with k rows that are not zero."""
        for number in range(10**9):
            if number == len(self._solutions):
                self._lam *= FALL
                if self._lam <= LEAST_PENALTY * self._most:
                    return
                self._solutions.append(self._solve())
            W = self._solutions[number]
            yield W
            if np.count_nonzero(row_norms(W)) >= k:
                return

    def _solve(self) -> Floats:
        """Accelerated proximal gradient from the last solution, restarted where it rises."""
        f, by = self.f, self._lam / self.f.lipschitz
        shape = (f.X.shape[1], f.Y.shape[1])
        W = self._solutions[-1] if self._solutions else np.zeros(shape)
        XW = f.fit(W)
        V, XV, theta, value = W, XW, 1.0, inf
        for _ in range(LASSO_STEPS):
            moved = shrink_rows(f.step(V, XV), by)
            X_moved = f.fit(moved)
            last, value = value, f(X_moved - f.Y) + self._lam * float(row_norms(moved).sum())
            if abs(last - value) <= LASSO_CHANGE * value:
                return moved
            if value > last:
                theta = 1.0
            grown = 0.5 * (1.0 + sqrt(1.0 + 4.0 * theta**2))
            beta = (theta - 1.0) / grown
            V, XV = moved + beta * (moved - W), X_moved + beta * (X_moved - XW)
            W, XW, theta = moved, X_moved, grown
        return W
