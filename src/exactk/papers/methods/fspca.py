"""FSPCA: the principal subspace that k columns span best, whatever the target."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

import numpy as np

from exactk.methods.base import IterativeMethod
from exactk.methods.iteration import Start, Starts, Step
from exactk.papers.methods.subspace import Scatter, principal, proxy_scores, scatter, top
from exactk.params import Check, Integer, Number
from exactk.problem.problem import Problem
from exactk.utils.linalg import row_norms

__all__ = ["FSPCA"]


# What is left of the trace beside m eigenvalues when there are no more: rounding.
NO_REST = 1e-10


class FSPCA(IterativeMethod):
    """max Tr(WᵀAW) with WᵀW = I_m and ‖W‖₂,₀ ≤ k: the y of the problem has no part in it.

    A is the covariance of the standardised columns. On given rows S the best W has the m leading
    eigenvectors of A_SS, and Tr(WᵀAW) is the sum of their eigenvalues. The first iterate
    (Algorithm 1) takes the k largest diagonal entries of A_m, which is A with its m largest
    eigenvalues alone; the others (Algorithm 2) take those of the proxy

        P = A W (WᵀAW)⁺ WᵀA,

    of rank m, nowhere above A, and equal to it on W: hence Tr(WᵀAW) never falls. It stops when the
    relative gain is at most `tol`, and at once if A has rank m or less, where the first iterate is
    the global optimum. Where A has a higher rank the value found is at least k/d of the optimum
    and below it by at most λ_{m+1} + … + λ_{2m}, eigenvalues of A. The trace has Tr(WᵀAW).

    An iteration costs O(dkm), with the table O(ndm), and needs k columns of A; the first needs m
    eigenvectors of A, computed for the smaller of n and d. Moments serve as well as rows.

    Parameters
    ----------
    n_components : int or None
        Dimension m of the subspace; more than k is taken as k. None is half of k, rounded up.
    max_iter : int
        Iterations at most.
    tol : float
        Relative gain of the objective that counts as none.

    Notes
    -----
    Cost: the m leading eigenvectors of A once, for the smaller of n and d; then O(d·k·m) an
    iteration. Memory: the table or d², and k columns of A.

    Guaranteed: exactly k columns; Tr(WᵀAW) never falls, is at least k/d of its optimum, and the
    optimum where A has rank m or less. Nothing about y, which it does not look at.

    The two bounds follow from Tr(A_m,SS) being the greatest of all S in the first iterate: it is
    at least k/d of Tr(A_m) ≥ the optimum, and at least Tr(W*ᵀA_mW*) for the optimal W*.

    The paper leaves m to the user. With standardised columns m = k says nothing, for the trace of
    A_SS is then k for every S; nor does m ≥ rank(A): columns whose entries are equal are taken in
    the order of the diagonal of A_m², which is ours. So is the rule to stop: the authors make 20
    iterations. Ridge and target of the problem have no part in the search.

    References
    ----------
    L. Tian, F. Nie, R. Wang, X. Li, "Learning feature sparse principal subspace", NeurIPS 2020.

    Examples
    --------
    >>> import exactk
    >>> from sklearn.datasets import load_iris
    >>> problem = exactk.Problem.from_arrays(*load_iris(return_X_y=True))
    >>> exactk.solve(problem, 2, method="fspca").support
    array([2, 3])
    """

    uses_target: ClassVar[bool] = False
    checks: ClassVar[Mapping[str, Check]] = {
        "n_components": Integer(1, none="half of k, rounded up"),
        "max_iter": Integer(1),
        "tol": Number("[0, inf)"),
    }

    def __init__(
        self, n_components: int | None = None, max_iter: int = 1000, tol: float = 1e-9
    ) -> None:
        self.n_components = n_components
        self.max_iter = max_iter
        self.tol = tol

    def prepare(self, problem: Problem) -> Scatter:  # noqa: D102
        return scatter(problem)

    def starts(self, problem: Problem, k: int, prepared: Scatter) -> Starts:  # noqa: D102
        m = (k + 1) // 2 if self.n_components is None else min(int(self.n_components), k)
        return [Start(self._iterations(problem, prepared, k, m))]

    def _iterations(self, problem: Problem, A: Scatter, k: int, m: int) -> Iterator[Step]:
        columns = problem.candidates
        values, vectors = A.leading(m)
        # Diagonals of A_m and of its square.
        scores, second = vectors**2 @ values, vectors**2 @ values**2
        S = top(scores, k, second)
        value, W = principal(A.block(S), m)
        total = float(A.diagonal.sum())
        solved = total - float(values.sum()) <= NO_REST * total
        while True:
            yield Step(columns[S[np.argsort(-row_norms(W), kind="stable")]], value, solved)
            S = top(proxy_scores(A, S, W), k, second)
            last = value
            value, W = principal(A.block(S), m)
            solved = value - last <= self.tol * last
