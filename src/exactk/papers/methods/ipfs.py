"""IPFS: 0-1 weights on the columns as box and sphere, by ADMM."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from math import isfinite, sqrt
from typing import ClassVar, Literal

import numpy as np

from exactk.errors import InputError
from exactk.methods.base import IterativeMethod
from exactk.methods.iteration import Start, Starts, Step
from exactk.papers.methods.standard_table import column_unit, standard_table, target_unit
from exactk.params import Check, Choice, Integer, Number
from exactk.problem.problem import Problem
from exactk.types import Floats
from exactk.utils.linalg import largest, row_norms

__all__ = ["IPFS"]


# Passes over the table that conjugate gradients are expected to need for one v-step.
CG_PASSES = 200
CG_TOLERANCE = 1e-12
CG_MOST = 1000


class IPFS(IterativeMethod):
    """min ‖Y − X·diag(v)·W‖² + γ‖W‖² over W and binary v with k ones (eq. 7), by ADMM.

    v ∈ {0, 1}^D is box ∩ sphere (Proposition 3.1): v = v₁ ∈ [0, 1]^D, v = v₂ with
    ‖v₂ − ½‖² = D/4, and 1ᵀv = k, each with a multiplier. An iteration is (W = Aᵀ of the paper)

    * W = (diag(v)·XᵀX·diag(v) + γI)⁻¹ diag(v)·XᵀY  (eq. 10);
    * v = (2·XᵀX ∘ WWᵀ + ρ(11ᵀ + 2I))⁻¹ (2·diag(XᵀYWᵀ) + ρ(v₁ − y₁/ρ + v₂ − y₂/ρ + (k − y₃/ρ)1))
      (eq. 11);
    * v₁, v₂ = projections of v + y/ρ on box and sphere (eq. 12, with the new v: with the old one v
      does not settle);
    * y += ρ·(constraint), ρ ← μρ (eq. 13).

    It stops when all three constraints hold within `tol`. The columns are those of the k largest
    v, for v need not be binary at the end.

    The paper solves two D × D systems an iteration, O(D³). Here the W-step is an n × n system
    where n < D. The v-step's matrix is 2ρI + JᵀJ with nc + 1 rows in J, so that a system of that
    size serves where nc < D (Woodbury), a D × D one where D is small, and otherwise conjugate
    gradients, whose matrix product costs O(ncD): whichever is estimated to cost least.

    Parameters
    ----------
    gamma : float
        γ, the weight of ‖W‖².
    rho : float
        ρ at the start.
    mu : float
        Factor by which ρ grows.
    max_iter : int
        Iterations at most; the published code makes 200.
    tol : float
        ε of the stopping rule, which the paper does not give.
    solver : {"auto", "direct", "woodbury", "cg"}
        How the v-step is solved.

    Notes
    -----
    Cost: an iteration has an n × n or d × d system for W, O(n·d·min(n, d)), and for v what is
    estimated to cost least of O(d³), O((n·c)²·d) and some products of O(n·c·d). Memory: the
    standardised table, and the square of the smaller system.

    Guaranteed: exactly k columns. Nothing of their quality: the problem is not convex, and v need
    not be binary at the end.

    γ is the ridge of its own search, for columns of unit standard deviation; the ridge of the
    problem grades the answer. Columns and target are centred rather than augmented by a constant
    feature, which the method would then spend one of its k on. Numbers as target are brought to
    unit size. Neither eq. 12 as printed nor the constant feature is an option: no useful answer
    comes of them. The iterates are chaotic on some tables: a change in the last digit of X can
    change the set.

    References
    ----------
    M. Fan, X. Chang, X. Zhang, D. Wang, L. Du, "Top-k supervise feature selection via ADMM for
    integer programming", IJCAI 2017.

    Examples
    --------
    >>> import exactk
    >>> from sklearn.datasets import load_iris
    >>> problem = exactk.Problem.from_arrays(*load_iris(return_X_y=True))
    >>> exactk.solve(problem, 2, method="ipfs").support
    array([1, 3])
    """

    checks: ClassVar[Mapping[str, Check]] = {
        "gamma": Number("(0, inf)"),
        "rho": Number("(0, inf)"),
        "mu": Number("(1, inf)"),
        "max_iter": Integer(1),
        "tol": Number("[0, inf)"),
        "solver": Choice(options=("auto", "direct", "woodbury", "cg")),
    }

    def __init__(
        self,
        gamma: float = 0.2,
        rho: float = 1.0,
        mu: float = 1.05,
        max_iter: int = 200,
        tol: float = 1e-4,
        solver: Literal["auto", "direct", "woodbury", "cg"] = "auto",
    ) -> None:
        self.gamma = gamma
        self.rho = rho
        self.mu = mu
        self.max_iter = max_iter
        self.tol = tol
        self.solver = solver

    def prepare(self, problem: Problem) -> _Parts:  # noqa: D102
        return _Parts(problem, self.gamma, self.solver)

    def starts(self, problem: Problem, k: int, prepared: _Parts) -> Starts:  # noqa: D102
        return [Start(self._iterations(problem, k, prepared))]

    def _iterations(self, problem: Problem, k: int, parts: _Parts) -> Iterator[Step]:
        D, rho = len(problem.candidates), float(self.rho)
        v, v1, v2 = np.ones(D), np.zeros(D), np.zeros(D)
        y1, y2, y3 = np.zeros(D), np.zeros(D), 0.0
        while True:
            W = parts.solve_w(v)
            right = 2.0 * (W * parts.B).sum(axis=1)
            right += rho * (v1 + v2 + k) - y1 - y2 - y3
            v = parts.solve_v(W, rho, right, v)
            v1 = np.clip(v + y1 / rho, 0.0, 1.0)
            v2 = _on_sphere(v + y2 / rho)
            gap1, gap2, gap3 = v - v1, v - v2, float(v.sum()) - k
            y1, y2, y3 = y1 + rho * gap1, y2 + rho * gap2, y3 + rho * gap3
            rho *= self.mu
            worst = max(np.abs(gap1).max(), np.abs(gap2).max(), abs(gap3))
            support = problem.candidates[largest(v, k, positive=False)]
            settled = bool(worst <= self.tol)
            yield Step(support, parts.objective(W, v), settled, partial(_details, W, v))


def _details(W: Floats, v: Floats) -> dict[str, Floats]:
    return {"row_norms": row_norms(W), "weights": v}


class _Parts:
    """The two linear systems of an iteration, each solved in the cheapest of its forms."""

    def __init__(self, problem: Problem, gamma: float, solver: str) -> None:
        columns, size = problem.candidates, column_unit(problem)
        self.gamma, unit = gamma, target_unit(problem)
        self.B = np.ascontiguousarray(problem.cross[:, columns].T) / (size * unit)
        self.squares = problem.scatter[columns] / size**2
        self.total = problem.total / unit**2
        D, c = self.B.shape
        n = min(problem.n_rows, D) if problem.rows is None else problem.n_rows
        self.form = _choose(n, c, D, solver, problem)
        self.rows_first = problem.rows is not None and n < D
        self.X: Floats | None = None
        self.gram: Floats | None = None
        if self.rows_first or self.form != "direct":
            table = standard_table(problem)
            self.X, self.Y = table.X, table.Y
        if not self.rows_first or self.form == "direct":
            self.gram = problem.gram.whole()[np.ix_(columns, columns)] / size**2

    def solve_w(self, v: Floats) -> Floats:
        """Eq. 10, in D or in n unknowns."""
        if self.rows_first:
            assert self.X is not None
            Z = self.X * v
            K = Z @ Z.T
            K[np.diag_indices_from(K)] += self.gamma
            return Z.T @ np.linalg.solve(K, self.Y)
        assert self.gram is not None
        M = self.gram * np.outer(v, v)
        M[np.diag_indices_from(M)] += self.gamma
        return np.asarray(np.linalg.solve(M, v[:, None] * self.B), dtype=np.float64)

    def solve_v(self, W: Floats, rho: float, right: Floats, v: Floats) -> Floats:
        """Eq. 11: (2·XᵀX ∘ WWᵀ + ρ(11ᵀ + 2I)) v = right."""
        if self.form == "direct":
            assert self.gram is not None
            M = 2.0 * self.gram * (W @ W.T)
            M += rho
            M[np.diag_indices_from(M)] += 2.0 * rho
            return np.asarray(np.linalg.solve(M, right), dtype=np.float64)
        if self.form == "woodbury":
            return self._solve_v_woodbury(W, rho, right)
        return self._solve_v_cg(W, rho, right, v)

    def _solve_v_woodbury(self, W: Floats, rho: float, right: Floats) -> Floats:
        X = self.X
        assert X is not None
        n, c = len(X), W.shape[1]
        J = np.empty((n * c + 1, X.shape[1]))
        for j in range(c):
            np.multiply(X, sqrt(2.0) * W[:, j], out=J[j * n : (j + 1) * n])
        J[-1] = sqrt(rho)
        K = J @ J.T
        K[np.diag_indices_from(K)] += 2.0 * rho
        return (right - J.T @ np.linalg.solve(K, J @ right)) / (2.0 * rho)

    def _solve_v_cg(self, W: Floats, rho: float, right: Floats, v: Floats) -> Floats:
        """Conjugate gradients from the last v, scaled by the diagonal."""
        X = self.X
        assert X is not None

        def product(u: Floats) -> Floats:
            inner = X.T @ (X @ (W * u[:, None]))
            return 2.0 * (W * inner).sum(axis=1) + rho * (u.sum() + 2.0 * u)

        scale = 1.0 / (2.0 * self.squares * (W**2).sum(axis=1) + 3.0 * rho)
        residual = right - product(v)
        z = scale * residual
        direction, size = z, float(residual @ z)
        goal = CG_TOLERANCE * float(np.linalg.norm(right))
        for _ in range(CG_MOST):
            left = float(np.linalg.norm(residual))
            if not isfinite(left):
                return np.full_like(v, np.nan)
            if left <= goal:
                break
            image = product(direction)
            step = size / float(direction @ image)
            v = v + step * direction
            residual = residual - step * image
            z = scale * residual
            size, last = float(residual @ z), size
            direction = z + (size / last) * direction
        return v

    def objective(self, W: Floats, v: Floats) -> float:
        """‖HY − X·diag(v)·W‖² + γ‖W‖², with W of the old v and the new v, as the paper plots."""
        U = W * v[:, None]
        if self.rows_first:
            assert self.X is not None
            residual = ((self.Y - self.X @ U) ** 2).sum()
        else:
            assert self.gram is not None
            residual = self.total - (U * (2.0 * self.B - self.gram @ U)).sum()
        return float(residual + self.gamma * (W**2).sum())


def _choose(n: int, c: int, D: int, solver: str, problem: Problem) -> str:
    """The form of the v-step that costs least, of those that fit in memory."""
    if problem.rows is None:
        return "direct"
    small, table, square = n * c + 1, n * D, 3 * D * D
    # Where n < D the W-step needs the rows in any case, and otherwise the Gram matrix.
    always = table if n < D else square
    most = problem.memory_limit // 8
    costs: dict[str, float] = {}
    if max(always, square) <= most:
        # Forming the matrix is bound by memory: it weighs more than its operations.
        costs["direct"] = 2.0 / 3.0 * D**3 + 30.0 * D**2
    if max(always, table + small * (D + small)) <= most:
        costs["woodbury"] = float(small) ** 2 * D + 2.0 / 3.0 * small**3 + 20.0 * small * D
    if max(always, table) <= most:
        costs["cg"] = 4.0 * CG_PASSES * n * c * D
    if solver in costs:
        return solver
    if not costs or solver != "auto":
        needs = {"direct": square, "woodbury": table + small * (D + small), "cg": table}
        size = 8 * max(always, needs.get(solver, always)) / 2**30
        raise InputError(
            f"ipfs with solver={solver!r} needs {size:.1f} GiB for {n:,} rows and {D:,} columns, "
            f"more than memory_limit={problem.memory_limit:,}", parameter="memory_limit",
            hint="raise memory_limit in Problem.from_arrays, or use method='exchange'",
        )  # fmt: skip
    return min(costs, key=lambda form: costs[form])


def _on_sphere(x: Floats) -> Floats:
    """The point of ‖v − ½‖² = D/4 next to x; the paper's other candidate is never nearer."""
    away = x - 0.5
    size = float(np.linalg.norm(away))
    if size == 0.0:
        # The centre is as near to every point; the paper leaves it open.
        return np.ones_like(x)
    return 0.5 + (0.5 * sqrt(len(x)) / size) * away
