"""nmAPG: l2,1 loss and penalty, all rows but the K largest penalised again, proximal gradient."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from math import inf, sqrt
from typing import ClassVar, Literal

import numpy as np

from exactk.errors import InputError
from exactk.methods.base import IterativeMethod
from exactk.methods.iteration import Start, Starts, Step
from exactk.papers.methods.standard_table import (
    LABELS,
    Labels,
    StandardTable,
    standard_table,
    validate_init,
)
from exactk.params import Anything, Check, Choice, Integer, Number
from exactk.problem.problem import Problem
from exactk.types import Floats
from exactk.utils.linalg import largest, row_norms, shrink_rows, spectral_norm

__all__ = ["NMAPG"]


# Section 6: τ = 2L, δ = 0.1(τ − L). With the least L that is valid a τ just above it will do.
# Without a value ρ is this share of ρ_max, as in 6.3.
TAU = {"paper": 2.0, "spectral": 1.1}
DELTA = 0.1
# Norms are not smoothed any less: their squares would vanish.
LEAST_MU = 1e-150
# μ of Algorithm 1 (section 6.2), and μ₀ of Algorithm 2 (section 6.3).
MU = {1: 0.01, 2: 1.0}


class NMAPG(IterativeMethod):
    """min ‖XW − Y‖₂,₁ + γ‖W‖₂,₁ + ρ(‖W‖₂,₁ − ‖W‖_{K,21}) (eq. 3.2), K = k.

    ‖W‖_{K,21} sums the K largest row norms, so that the last term vanishes exactly when at most K
    rows are not zero. Norms in the first two terms are smoothed (Nesterov, parameter μ); the last
    one has the prox of Theorem 5.1: rows beyond the K largest are shortened by ρ/τ. The
    non-monotone accelerated proximal gradient method (Algorithm 1) runs at one μ; Algorithm 2
    starts at a large μ and multiplies it by σ until it is below μ* = 2ε/(n + γd). A run at one μ
    stops when ‖W^{t} − W^{t−1}‖ ≤ tol·max(‖W^t‖, 1) (eq. 6.1), or after its iterations. The
    columns are those of the k largest rows of W. The trace has F_μ at the μ of its time.

    An iteration costs two passes over X: products with extrapolated points are sums of known ones.

    Parameters
    ----------
    algorithm : {2, 1}
        2 decreases μ, 1 keeps it.
    gamma : float
        γ: 0.1 in sections 6.3 to 6.5 of the paper, 1 in section 6.2.
    rho : float or None
        ρ. None is a share of ρ_max = n·max|x_ij| − γ (Theorem 3.1).
    rho_share : float
        That share; section 6.3 has 0.01 and 0.001.
    mu : float or None
        μ of Algorithm 1, μ₀ of Algorithm 2. None is 0.01 or 1, as in the paper.
    sigma : float
        σ, the factor of μ in Algorithm 2.
    epsilon : float
        ε in μ*: the smoothing changes the objective by at most ε, σ permitting: Algorithm 2 ends
        above μ*, where the gap can be ε/σ.
    eta : float
        η, the weight of the past in the non-monotone test.
    step : {"spectral", "paper"}
        Lipschitz constant: (‖X‖₂² + γ)/μ, the smallest that is valid, or the paper's
        (‖X‖_F² + dγ)/μ, with steps several times smaller.
    tau : float or None
        τ, one over the step length, in multiples of the Lipschitz constant, above 1. The paper has
        2; None is that for its constant, and 1.1 for the spectral one.
    penalty : {"smoothed", "prox"}
        How γ‖W‖₂,₁ enters: smoothed, as in the paper, or through the prox, which keeps zero rows
        exactly zero.
    labels : {"centred", "one-hot", "plus-minus"}
        How classes are coded. The paper has 0 and 1 and a constant feature for the bias, which
        would be one of the K; centred classes need none.
    stage_iter : int
        Iterations at one μ in Algorithm 2, before the next; the last one goes on to `max_iter`.
    init : array-like of shape (n_features, n_outputs) or None
        W⁰, for standardised columns; None is zero.
    max_iter : int
        Iterations in all, at most.
    tol : float
        Relative change of W that counts as none.

    Notes
    -----
    Cost: O(n·d·c) an iteration, two passes over X. Memory: the standardised table and a few
    matrices of the size of W and Y.

    Guaranteed: exactly k columns; the smoothing changes the objective by at most about ε. Not the
    global optimum: the penalty is not convex.

    The printed prox factor 1 − α/‖u‖ is wrong where ‖u‖ < α: it is clipped at zero here, which is
    optimal. Often neither algorithm meets eq. 6.1 within the paper's iterations; the status then
    is ``max_iter``. The ridge of the problem takes no part in the search; numbers as target are
    brought to unit size about their median. The search is robust against wrong rows; coefficients
    and objective of the result are of squared loss, as for every method. In `exactk.solve_path`
    each k starts from the solution of k − 1.

    References
    ----------
    N. T. An, P. D. Dong, X. Qin, "Robust feature selection via nonconvex sparsity-based methods",
    J. Nonlinear Var. Anal. 5, 2021.

    Examples
    --------
    >>> import exactk
    >>> from sklearn.datasets import load_iris
    >>> problem = exactk.Problem.from_arrays(*load_iris(return_X_y=True))
    >>> exactk.solve(problem, 2, method="nmapg", max_iter=5000).support
    array([2, 3])
    """

    needs_rows: ClassVar[bool] = True
    checks: ClassVar[Mapping[str, Check]] = {
        "algorithm": Choice(options=(2, 1)),
        "gamma": Number("[0, inf)"),
        "rho": Number("(0, inf)", none="a share of ρ_max"),
        "rho_share": Number("(0, 1]"),
        "mu": Number("(0, inf)", none="the paper's value"),
        "sigma": Number("(0, 1)"),
        "epsilon": Number("(0, inf)"),
        "eta": Number("[0, 1)"),
        "step": Choice(options=("spectral", "paper")),
        "tau": Number("(1, inf)", none="2, or 1.1 for the spectral step"),
        "penalty": Choice(options=("smoothed", "prox")),
        "labels": LABELS,
        "stage_iter": Integer(1),
        "init": Anything("a matrix W⁰, features × outputs, or None"),
        "max_iter": Integer(1),
        "tol": Number("[0, inf)"),
    }

    def __init__(
        self,
        algorithm: Literal[2, 1] = 2,
        gamma: float = 0.1,
        rho: float | None = None,
        rho_share: float = 0.01,
        mu: float | None = None,
        sigma: float = 0.1,
        epsilon: float = 0.1,
        eta: float = 0.9,
        step: Literal["spectral", "paper"] = "spectral",
        tau: float | None = None,
        penalty: Literal["smoothed", "prox"] = "smoothed",
        labels: Labels = "centred",
        stage_iter: int = 200,
        init: object = None,
        max_iter: int = 1000,
        tol: float = 1e-7,
    ) -> None:
        self.algorithm = algorithm
        self.gamma = gamma
        self.rho = rho
        self.rho_share = rho_share
        self.mu = mu
        self.sigma = sigma
        self.epsilon = epsilon
        self.eta = eta
        self.step = step
        self.tau = tau
        self.penalty = penalty
        self.labels = labels
        self.stage_iter = stage_iter
        self.init = init
        self.max_iter = max_iter
        self.tol = tol

    def check_init(self, problem: Problem, k: int) -> None:  # noqa: D102
        if self.init is not None:
            validate_init(self.init, problem)

    def prepare(self, problem: Problem) -> _Objective:  # noqa: D102
        table = standard_table(problem, self.labels, robust=True)
        objective = _Objective(table, self)
        objective.last = self._first(problem)
        return objective

    def starts(self, problem: Problem, k: int, prepared: _Objective) -> Starts:
        """Return the one start: on a path the solution of the size before (section 6.3)."""
        if not np.isfinite(prepared.last).all():
            prepared.last = self._first(problem)
        return [Start(self._stages(prepared, k, prepared.last))]

    def _first(self, problem: Problem) -> Floats:
        if self.init is not None:
            return validate_init(self.init, problem)
        return np.zeros((len(problem.candidates), problem.n_outputs))

    def _stages(self, objective: _Objective, k: int, W: Floats) -> Iterator[Step]:
        """Algorithm 2, or the one stage of Algorithm 1; only the last stage can converge."""
        mu = MU[self.algorithm] if self.mu is None else self.mu
        least = 2.0 * self.epsilon / (objective.n + self.gamma * objective.d)
        while True:
            # Algorithm 2 as printed: a μ is used if the one before was not below μ*.
            final = self.algorithm == 1 or self.sigma * mu < max(least, LEAST_MU)
            limit = inf if final else self.stage_iter
            for number, step in enumerate(self._descend(objective, mu, k, W), start=1):
                ended = step.converged or number >= limit
                yield replace(step, converged=step.converged and final)
                if ended:
                    break
            if final:
                return
            W = objective.last
            mu *= self.sigma

    def _descend(self, objective: _Objective, mu: float, k: int, W0: Floats) -> Iterator[Step]:
        """Algorithm 1: F_μ of each iterate, until its steps are too small to count."""
        at = objective.smoothed(mu, k)
        share = TAU[self.step] if self.tau is None else self.tau
        tau, delta = share * at.lipschitz, DELTA * (share - 1.0) * at.lipschitz
        W = Z = last = at.point(W0)
        t_last, t = 0.0, 1.0
        c, q = W.value, 1.0
        while True:
            a, b = t_last / t, (t_last - 1.0) / t
            U = W.W + a * (Z.W - W.W) + b * (W.W - last.W)
            XU = W.XW + a * (Z.XW - W.XW) + b * (W.XW - last.XW)
            Z = at.proximal_step(U, XU, tau)
            last = W
            if Z.value <= c - 0.5 * delta * float(((Z.W - U) ** 2).sum()):
                W = Z
            else:
                V = at.proximal_step(W.W, W.XW, tau)
                W = Z if Z.value <= V.value else V
            t_last, t = t, 0.5 * (sqrt(4.0 * t * t + 1.0) + 1.0)
            q_next = self.eta * q + 1.0
            c = (self.eta * q * c + W.value) / q_next
            q = q_next
            objective.last = W.W
            change = float(np.linalg.norm(W.W - last.W))
            settled = change <= self.tol * max(float(np.linalg.norm(W.W)), 1.0)
            chosen = objective.table.columns[largest(row_norms(W.W), k)]
            yield Step(chosen, W.value, settled, partial(_details, W.W))


def _details(W: Floats) -> dict[str, Floats]:
    return {"row_norms": row_norms(W)}


class _Objective:
    """Data and constants of eq. 3.2."""

    def __init__(self, table: StandardTable, method: NMAPG) -> None:
        self.table, self.in_prox = table, method.penalty == "prox"
        self.gamma = gamma = method.gamma
        rho = method.rho
        self.n, self.d = table.weight, table.X.shape[1]
        if rho is None:
            most = float((np.abs(table.X).max(axis=1) / table.root).max())
            if gamma >= self.n * most:
                raise InputError(
                    f"gamma={gamma:g} is so large that ρ_max = n·max|x| − γ, of which the default "
                    "of rho is a share, is not above zero (n is the sum of the weights)",
                    parameter="gamma", hint=f"take gamma < {self.n * most:.6g}, or give rho",
                )  # fmt: skip
            rho = method.rho_share * (self.n * most - gamma)
        self.rho = rho
        smooth = 0.0 if self.in_prox else gamma
        if method.step == "paper":
            self.curvature = float(np.einsum("ij,ij->", table.X, table.X)) + self.d * smooth
        else:
            self.curvature = spectral_norm(table.X) ** 2 + smooth
        self.last: Floats = np.zeros((self.d, table.Y.shape[1]))

    def smoothed(self, mu: float, k: int) -> _Smoothed:
        """F_μ for one μ and K."""
        return _Smoothed(self, mu, k)


@dataclass(frozen=True)
class _Point:
    """A matrix W, its product XW and F_μ(W)."""

    W: Floats
    XW: Floats
    value: float


class _Smoothed:
    """F_μ (eq. 5.8): its value, its gradient and the proximal step."""

    def __init__(self, objective: _Objective, mu: float, k: int) -> None:
        self.objective, self.mu, self.k = objective, mu, k
        self.lipschitz = objective.curvature / mu

    def point(self, W: Floats) -> _Point:
        """Evaluate F_μ: ‖·‖ is replaced by ‖·‖²/2μ within μ of zero, and by ‖·‖ − μ/2 beyond."""
        of = self.objective
        XW = of.table.X @ W
        norms = row_norms(W)
        value = float(of.table.root**2 @ self._huber(of.table.row_norms(XW - of.table.Y)))
        value += of.gamma * float((norms if of.in_prox else self._huber(norms)).sum())
        beyond = float(norms.sum() - norms[largest(norms, self.k)].sum())
        return _Point(W, XW, value + of.rho * beyond)

    def _huber(self, norms: Floats) -> Floats:
        mu = self.mu
        return np.where(norms <= mu, norms**2 / (2.0 * mu), norms - 0.5 * mu)

    def proximal_step(self, U: Floats, XU: Floats, tau: float) -> _Point:
        """Take the prox of (ρ/τ)(‖·‖₂,₁ − ‖·‖_{K,21}) at U − ∇G_μ(U)/τ."""
        of, mu = self.objective, self.mu
        residual = XU - of.table.Y
        residual /= np.maximum(of.table.row_norms(residual), mu)[:, None]
        gradient = of.table.X.T @ residual
        shared = 0.0
        if of.in_prox:
            shared = of.gamma / tau
        else:
            gradient += of.gamma * U / np.maximum(row_norms(U), mu)[:, None]
        return self.point(prox(U - gradient / tau, of.rho / tau, self.k, shared))


def prox(U: Floats, alpha: float, k: int, shared: float = 0.0) -> Floats:
    """Return a W that minimises ½‖W − U‖² + α(‖W‖₂,₁ − ‖W‖_{k,21}) + shared·‖W‖₂,₁.

    The k largest rows of U are shortened by `shared`, the others by α more, to zero if shorter.

    Examples
    --------
    >>> prox(np.array([[3.0], [2.0], [0.5]]), 1.0, 1)
    array([[3.],
           [1.],
           [0.]])
    """
    by = np.full(len(U), alpha + shared)
    by[largest(row_norms(U), k)] = shared
    return shrink_rows(U, by)
