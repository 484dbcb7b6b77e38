"""S2DFS: the trace ratio of between-class and within-class scatter in a subspace on k rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from exactk.methods.base import IterativeMethod
from exactk.methods.iteration import LazyStarts, Start, Starts, Step
from exactk.papers.methods.subspace import Scatter, principal, proxy_scores, scatter, top
from exactk.params import Check, Integer, Number
from exactk.problem.problem import Problem
from exactk.types import Floats, Indices
from exactk.utils.linalg import row_norms

__all__ = ["S2DFS"]


# Added to S_w, beside the mean scatter of a column: S_w is singular where n < d.
LEAST_WITHIN = 1e-8
# A class of a smaller share of the weight than this has a mean and a size of rounding alone.
LEAST_SHARE = 1e-16
# Proxy steps for one λ at most, as in the authors' code.
PROXY_STEPS = 20
# Steps to the best ratio on all rows; there are seldom ten.
RATIO_STEPS = 50


class S2DFS(IterativeMethod):
    """max Tr(WᵀS_bW)/Tr(WᵀS_wW) with WᵀW = I_m and ‖W‖₂,₀ = k.

    S_b is the scatter of the class means, S_w = S_t − S_b that within the classes. As for every
    trace ratio, λ is the ratio of the iterate before, and the next W has at least as great a

        Tr(Wᵀ(S_b − λS_w)W)

    as that one, which is zero: the ratio never falls. It stops when its relative gain is at most
    `tol`. The trace has the ratios.

    * m = k, the default: Tr(Wᵀ M W) = tr(M_SS) on the rows S, so that the k largest diagonal
      entries of S_b − λS_w solve it. The ratio reaches its global maximum, in O(dk) an iteration.
    * m < k: the paper's module. M = S_b − λS_w + ηI with the least η that makes it positive
      semi-definite; the k largest diagonal entries of MW(WᵀMW)⁺WᵀM, then the m leading
      eigenvectors of M_SS, until that gains nothing. It sets out from the W before, and once more
      from the k largest diagonal entries of the positive part of S_b − λS_w; the better is kept.
      All this from two starts, of which the better is kept: the solution for m = k, and the
      largest rows of the best subspace on all columns. An iteration costs O(dkm) and O(r³) with r
      the smaller of n and d, and nothing of size d × d is made where n < d.

    Moments serve as well as rows.

    Parameters
    ----------
    n_components : int or None
        Dimension m of the subspace; more than k is taken as k. None is k, as in the comparison
        of Xu et al. (2023).
    max_iter : int
        Iterations at most.
    tol : float
        Relative gain of the ratio that counts as none.

    Notes
    -----
    Cost: O(d·k) an iteration for m = k; for m < k O(d·k·m), and O(r³) with r the smaller of n and
    d. Memory: O(d·c), or r² numbers.

    Guaranteed: exactly k columns; for m = k the highest ratio of all sets, for m < k one that never
    falls on the way.

    With m = k and standardised columns the order of the diagonal entries is the same for every λ:
    these are the columns of the highest Fisher scores. A smaller m, such as the number of classes
    less one, looks at columns together.

    Ours are: 1e-8 of the mean scatter of a column added to the diagonal of S_w, which is singular
    where n < d and would allow an infinite ratio; the exact solution for m = k, where the proxy
    rarely leaves the rows it starts from; the starts, in place of a random W, and the second one
    of the module; and the rule to stop, in place of 50 iterations. The ridge of the problem has
    no part in the search.

    References
    ----------
    Z. Wang, F. Nie, L. Tian, R. Wang, X. Li, "Discriminative feature selection via a structured
    sparse subspace learning module", IJCAI 2020.
    L. Xu, R. Wang, F. Nie, X. Li, "Efficient top-k feature selection using coordinate descent
    method", AAAI 2023.

    Examples
    --------
    >>> import exactk
    >>> from sklearn.datasets import load_iris
    >>> problem = exactk.Problem.from_arrays(*load_iris(return_X_y=True))
    >>> exactk.solve(problem, 2, method="s2dfs").support
    array([2, 3])
    """

    needs_classes: ClassVar[bool] = True
    # By default only its diagonal is read.
    uses_gram: ClassVar[bool] = False
    checks: ClassVar[Mapping[str, Check]] = {
        "n_components": Integer(1, none="k"),
        "max_iter": Integer(1),
        "tol": Number("[0, inf)"),
    }

    def __init__(
        self, n_components: int | None = None, max_iter: int = 1000, tol: float = 1e-9
    ) -> None:
        self.n_components = n_components
        self.max_iter = max_iter
        self.tol = tol

    def prepare(self, problem: Problem) -> _Scatters:  # noqa: D102
        return _Scatters.of(problem)

    def starts(self, problem: Problem, k: int, prepared: _Scatters) -> Starts:  # noqa: D102
        m = k if self.n_components is None else min(int(self.n_components), k)
        if m == k:
            return [Start(self._by_diagonal(problem, prepared, k))]
        # The starts are made when their turn comes, for each has some work to do.
        first = iter([prepared.by_diagonal, prepared.by_discriminant])

        def make() -> Start:
            steps = self._by_subspace(problem, prepared, k, *next(first)(k, m))
            return Start(steps, lambda log: -log.value)

        return LazyStarts(2, make)

    def _by_diagonal(self, problem: Problem, scatters: _Scatters, k: int) -> Iterator[Step]:
        S, ratio = scatters.best_entries(k, 0.0)
        solved = False
        while True:
            yield Step(problem.candidates[S], ratio, solved)
            last = ratio
            S, ratio = scatters.best_entries(k, last)
            solved = ratio - last <= self.tol * last

    def _by_subspace(
        self, problem: Problem, scatters: _Scatters, k: int, S: Indices, W: Floats
    ) -> Iterator[Step]:
        m, ratio, solved = W.shape[1], scatters.ratio(S, W), False
        while True:
            ranked = S[np.argsort(-row_norms(W), kind="stable")]
            yield Step(problem.candidates[ranked], ratio, solved)
            M, last = _Form(scatters, ratio), ratio
            tries = [_refined(M, S, W, k), _refined(M, *M.best_rows(k, m), k)]
            S, W = max(tries, key=lambda pair: M.value(*pair))
            ratio = scatters.ratio(S, W)
            solved = ratio - last <= self.tol * last


@dataclass(frozen=True, eq=False)
class _Scatters:
    """S_b = BᵀB and S_t of the candidates, divided by the mean scatter of a column.

    Attributes
    ----------
    B : ndarray of shape (c, d)
    between, within : ndarray of shape (d,)
        The diagonals of S_b and S_w.
    """

    problem: Problem
    B: Floats
    between: Floats
    within: Floats

    @classmethod
    def of(cls, problem: Problem) -> _Scatters:
        """Read them from the moments: row c of YᵀHX is n_c(μ_c − μ)."""
        S = problem.candidates
        size = float(problem.scatter[S].mean())
        sizes = problem.weight * np.maximum(problem.y_mean, LEAST_SHARE)
        B = problem.cross[:, S] / np.sqrt(sizes * size)[:, None]
        between: Floats = (B**2).sum(axis=0)
        within = np.maximum(problem.scatter[S] / size - between, 0.0) + LEAST_WITHIN
        return cls(problem, B, between, within)

    @cached_property
    def total(self) -> Scatter:
        """S_t."""
        return scatter(self.problem)

    @cached_property
    def spectrum(self) -> tuple[Floats, Floats, Floats]:
        """Eigenvalues above zero and vectors V of S_t, and BV."""
        d = len(self.between)
        values, V = self.total.leading(d)
        return values, V, self.B @ V

    def best_entries(self, k: int, ratio: float) -> tuple[Indices, float]:
        """Return the k largest diagonal entries of S_b − λS_w, and the ratio on these rows."""
        S = top(self.between - ratio * self.within, k)
        return S, float(self.between[S].sum() / self.within[S].sum())

    def by_diagonal(self, k: int, m: int) -> tuple[Indices, Floats]:
        """Return the rows of the best ratio with m = k, and W on them."""
        last, (S, ratio) = -1.0, self.best_entries(k, 0.0)
        while ratio > last:
            last, (S, ratio) = ratio, self.best_entries(k, ratio)
        return S, principal(_Form(self, ratio).block(S), m)[1]

    def by_discriminant(self, k: int, m: int) -> tuple[Indices, Floats]:
        """Return the largest rows of the subspace of the best ratio on all rows, and W on them."""
        values, _, BV = self.spectrum
        M, last, ratio = _Form(self, 0.0), -1.0, 0.0
        for _ in range(RATIO_STEPS):
            if ratio <= last:
                break
            Z = M.inner_vectors[:, -m:]
            between = float(((BV @ Z) ** 2).sum())
            within = max(float((values @ Z**2).sum()) - between, 0.0) + LEAST_WITHIN * m
            last, ratio = ratio, between / within
            M = _Form(self, ratio)
        return M.best_rows(k, m)

    def ratio(self, S: Indices, W: Floats) -> float:
        """Return Tr(WᵀS_bW)/Tr(WᵀS_wW)."""
        between = float(((self.B[:, S] @ W) ** 2).sum())
        total = float((W * (self.total.block(S) @ W)).sum())
        return between / (max(total - between, 0.0) + LEAST_WITHIN * W.shape[1])


class _Form:
    """S_b − λS_w + ηI, positive semi-definite by its η."""

    def __init__(self, scatters: _Scatters, ratio: float) -> None:
        self.scatters, self.ratio = scatters, ratio
        # In the coordinates of the vectors of S_t, outside which S_b is zero as well.
        values, V, BV = scatters.spectrum
        inner = (1.0 + ratio) * (BV.T @ BV)
        inner[np.diag_indices_from(inner)] -= ratio * values
        self.values, self.inner_vectors = np.linalg.eigh(inner)
        least = float(self.values[0]) if len(values) == len(V) else min(self.values[0], 0.0)
        self.shift = max(-least, 0.0)

    def block(self, S: Indices) -> Floats:
        B = self.scatters.B[:, S]
        M = (1.0 + self.ratio) * (B.T @ B) - self.ratio * self.scatters.total.block(S)
        M[np.diag_indices_from(M)] += self.shift
        return M

    def times(self, S: Indices, W: Floats) -> Floats:
        B = self.scatters.B
        MW = (1.0 + self.ratio) * (B.T @ (B[:, S] @ W))
        MW -= self.ratio * self.scatters.total.times(S, W)
        MW[S] += self.shift * W
        return MW

    def value(self, S: Indices, W: Floats) -> float:
        """Return Tr(WᵀMW)."""
        return float((W * (self.block(S) @ W)).sum())

    def best_rows(self, k: int, m: int) -> tuple[Indices, Floats]:
        """Return the k largest diagonal entries of the positive part, and W on these rows."""
        few = min(m, int((self.values > 0).sum()))
        V = self.scatters.spectrum[1] @ self.inner_vectors[:, len(self.values) - few :]
        S = top(V**2 @ self.values[len(self.values) - few :], k, self.scatters.between)
        return S, principal(self.block(S), m)[1]


def _refined(M: _Form, S: Indices, W: Floats, k: int) -> tuple[Indices, Floats]:
    """Take proxy steps until they gain nothing."""
    m = W.shape[1]
    value, W = principal(M.block(S), m)
    for _ in range(PROXY_STEPS):
        chosen = top(proxy_scores(M, S, W), k, M.scatters.between)
        if set(chosen.tolist()) == set(S.tolist()):
            break
        last, (value, V) = value, principal(M.block(chosen), m)
        if value <= last:
            break
        S, W = chosen, V
    return S, W
