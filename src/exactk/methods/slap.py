"""SLAP: similarities within the classes and a projection, learned together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from exactk.checks import Check, Number, Whole
from exactk.errors import InputError
from exactk.iterative.course import Start, Starts, Step
from exactk.iterative.subspace import leading_pairs
from exactk.iterative.table import standard_rows
from exactk.linalg import SINGULAR, largest, row_norms
from exactk.methods.base import PenaltyMethod
from exactk.problem import Problem

__all__ = ["SLAP"]

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]

# α beside the mean distance, at least: without it similarities to equal distances are not unique.
LEAST_ALPHA = 1e-6
# A row of W this small beside the largest is zero, and stays so.
DEAD = 1e-10


class SLAP(PenaltyMethod):
    """Similarities S of rows of one class and a projection W, by turns.

    min Σ_ij (‖Wᵀx_i − Wᵀx_j‖² s_ij + α s_ij²) + γ‖W‖₂,₁ with WᵀXᵀHXW = I_m,

    where s_i· is zero or more, sums to one, and is zero for i itself and for rows of another
    class. An iteration is

    * W = the m least eigenvectors of (2XᵀLX + γD)w = μXᵀHXw, with L the Laplacian of (S + Sᵀ)/2
      and D = diag(1/(2‖w_j‖)) of the W before;
    * s_i· = the projection of −‖Wᵀx_i − Wᵀx_j‖²/(2α) on the simplex, in closed form.

    α is set once, after the first W: the mean of the α_i that give row i exactly `n_neighbors`
    neighbours. The objective never rises from then on, for D makes a bound of the penalty that is
    tight at the W before. It stops when the relative change of the objective is at most `tol`. The
    columns are those of the largest rows of W.

    The eigenproblem is solved for the smaller of n and d, as max wᵀXᵀHXw beside
    wᵀ(2XᵀLX + γD)w with w = D^(−1/2)v, which needs no inverse of a row that has died; such rows
    are left out of d. An iteration costs O(r³ + n·d·r) with r that smaller number, and
    O(Σ n_c²(r + log n_c)) over the sizes n_c of the classes.

    Parameters
    ----------
    gamma : float
        Penalty γ; the comparison of Xu et al. (2023) searched 1e-3 to 1e3.
    n_neighbors : int
        Neighbours of a row that set α; in a class with n_c rows at most n_c − 2 count.
    n_components : int or None
        Dimension m of the projection, at most the rank of X. None is the number of classes.
    max_iter : int
        Iterations at most.
    tol : float
        Relative change of the objective that counts as none.

    Notes
    -----
    The paper was known to us by its abstract and by how others describe it: the terms of the
    objective are theirs, in the form that PCAN and SOGFS by some of the same authors give them.
    Ours are: the constraint WᵀXᵀHXW = I of PCAN, for with the WᵀW = I of SOGFS and n < d the
    best projection takes all rows to one point and says nothing of the classes; one α for all
    rows, held fixed, so that the objective cannot rise and copies of a row have unique
    similarities; the start, which is S of the standardised columns and D = I; and the rule to
    stop.

    A row of whole weight w is that row w times: its copies are neighbours at distance zero.
    The ridge of the problem has no part in the search.

    References
    ----------
    X. Chen, G. Yuan, W. Wang, F. Nie, X. Chang, J. Z. Huang, "Local adaptive projection framework
    for feature selection of labeled and unlabeled data", IEEE Trans. Neural Netw. Learn. Syst.
    29(12), 2018.
    F. Nie, X. Wang, H. Huang, "Clustering and projected clustering with adaptive neighbors",
    KDD 2014.
    L. Xu, R. Wang, F. Nie, X. Li, "Efficient top-k feature selection using coordinate descent
    method", AAAI 2023.

    Examples
    --------
    >>> import exactk
    >>> from sklearn.datasets import load_iris
    >>> problem = exactk.Problem.from_arrays(*load_iris(return_X_y=True))
    >>> exactk.solve(problem, 2, method="slap").support
    array([0, 3])
    """

    needs_rows: ClassVar[bool] = True
    needs_classes: ClassVar[bool] = True
    uses_gram: ClassVar[bool] = False
    checks: ClassVar[Mapping[str, Check]] = {
        "gamma": Number("(0, inf)"),
        "n_neighbors": Whole(1),
        "n_components": Whole(1, none="the number of classes"),
        "max_iter": Whole(1),
        "tol": Number("[0, inf)"),
    }

    def __init__(
        self,
        gamma: float = 1.0,
        n_neighbors: int = 5,
        n_components: int | None = None,
        max_iter: int = 1000,
        tol: float = 1e-4,
    ) -> None:
        self.gamma = gamma
        self.n_neighbors = n_neighbors
        self.n_components = n_components
        self.max_iter = max_iter
        self.tol = tol

    def prepare(self, problem: Problem) -> _Table:  # noqa: D102
        table = _Table.of(problem)
        most = max(len(rows) for rows in table.classes)
        if 8 * most**2 > problem.memory_limit:
            raise InputError(
                f"slap keeps the distances of all rows of a class, {8 * most**2 / 2**30:.1f} GiB "
                f"for one of {most:,} rows, more than memory_limit={problem.memory_limit:,}; give "
                f"fewer rows, raise memory_limit in Problem.from_arrays, or use method='spec'"
            )
        return table

    def starts(self, problem: Problem, k: int, prepared: _Table) -> Starts:  # noqa: D102
        return [Start(self._iterations(problem, prepared, k))]

    def _iterations(self, problem: Problem, table: _Table, k: int) -> Iterator[Step]:
        m = problem.n_outputs if self.n_components is None else int(self.n_components)
        gamma = float(self.gamma)
        alpha = table.alpha(table.X, self.n_neighbors)
        graph = table.similar(table.X, alpha)[0]
        W = table.project(graph, np.full(table.X.shape[1], 1.0 / gamma), m)
        alpha = table.alpha(table.X @ W, self.n_neighbors)
        alive, scores = np.arange(table.X.shape[1]), np.zeros(table.X.shape[1])
        value = np.inf
        for t in count(1):
            graph, local = table.similar(table.X @ W, alpha)
            W = table.project(graph, (2.0 / gamma) * row_norms(W), m)
            norms = row_norms(W)
            last = value
            value = table.scatter(graph, table.X @ W) + local + gamma * float(norms.sum())
            scores[alive] = norms
            dead = norms <= DEAD * norms.max()
            if dead.any():
                # Below zero, and nearer to it the later: they keep an order among themselves.
                scores[alive[dead]] = -1.0 / (t + norms[dead] / (DEAD * norms.max()))
                alive, W = alive[~dead], W[~dead]
                table = replace(table, X=table.X[:, ~dead])
            chosen = largest(scores, k, positive=False)
            ranked = chosen[np.argsort(-scores[chosen], kind="stable")]
            settled = bool(abs(last - value) <= self.tol * abs(value))
            yield Step(problem.candidates[ranked], value, settled)


# One class after the other: rows, and the symmetric matrix of similarities times weights.
Graph = list[tuple[Indices, Floats]]


@dataclass(frozen=True, eq=False)
class _Table:
    """Centred columns, times √w, with the weights w and the rows of each class.

    Attributes
    ----------
    X : ndarray of shape (n, d)
    weights : ndarray of shape (n,)
    classes : list of ndarray of intp
    """

    X: Floats
    weights: Floats
    classes: list[Indices]

    @classmethod
    def of(cls, problem: Problem) -> _Table:
        """Read the candidates of a problem; `solve` has checked the classes."""
        assert problem.target is not None
        assert problem.target.codes is not None
        X, _, weights = standard_rows(problem)
        codes = problem.target.codes
        if weights is None:
            weights = np.ones(len(X))
        else:
            assert problem.weights is not None
            codes = codes[problem.weights > 0]
            X *= np.sqrt(weights)[:, None]
        classes = [np.flatnonzero(codes == c) for c in range(problem.n_outputs)]
        return cls(X, weights, classes)

    def _neighbours(self, P: Floats) -> Iterator[_Neighbours]:
        """Squared distances of the rows of each class; P is times √w."""
        P = P / np.sqrt(self.weights)[:, None]
        for rows in self.classes:
            yield _Neighbours.of(P[rows], self.weights[rows])

    def alpha(self, P: Floats, n_neighbors: int) -> float:
        """Return the mean α that gives a row that many neighbours."""
        sums = np.zeros(3)
        for near in self._neighbours(P):
            sums += near.alpha(n_neighbors)
        _, alpha, distance = sums / (sums[0] or 1.0)
        return float(max(alpha, LEAST_ALPHA * distance)) or 1.0

    def similar(self, P: Floats, alpha: float) -> tuple[Graph, float]:
        """Return the similarities for projected rows, and their part α Σ s² of the objective."""
        graph, squares = [], 0.0
        for rows, near in zip(self.classes, self._neighbours(P), strict=True):
            t = near.similarities(alpha)
            squares += float(near.weights @ (near.masses * t**2).sum(axis=1))
            s = np.outer(near.weights, near.weights) * t
            np.fill_diagonal(s, 0.0)
            graph.append((rows, 0.5 * (s + s.T)))
        return graph, alpha * squares

    def laplacian(self, graph: Graph, Z: Floats) -> Floats:
        """Return 2ZᵀLZ for rows Z that are times √w."""
        product = np.zeros((Z.shape[1], Z.shape[1]))
        for rows, A in graph:
            z = Z[rows] / np.sqrt(self.weights[rows])[:, None]
            product += z.T @ (A.sum(axis=1)[:, None] * z - A @ z)
        return product + product.T

    def scatter(self, graph: Graph, P: Floats) -> float:
        """Return Σ_ij s_ij‖p_i − p_j‖²."""
        return float(np.trace(self.laplacian(graph, P)))

    def project(self, graph: Graph, E: Floats, m: int) -> Floats:
        """Return the W of least Tr(Wᵀ(2XᵀLX + E⁻¹)W) with WᵀXᵀXW = I, given the diagonal of E.

        With rows Z such that XE^(1/2) = ZQᵀ and orthonormal Q: the largest ratios of zᵀZᵀZz to
        zᵀ(2ZᵀLZ + I)z, which is far from singular.
        """
        half = np.sqrt(E)
        Z = self.X * half
        if len(Z) < Z.shape[1]:
            values, U = leading_pairs(Z @ Z.T, len(Z))
            back = half[:, None] * (Z.T @ (U / np.sqrt(values)))
            Z = U * np.sqrt(values)
        else:
            back = np.diag(half)
        C = self.laplacian(graph, Z)
        C[np.diag_indices_from(C)] += 1.0
        R = np.linalg.inv(np.linalg.cholesky(C))
        ZR = Z @ R.T
        ratios, Q = leading_pairs(ZR.T @ ZR, m)
        W: Floats = back @ (R.T @ (Q / np.sqrt(ratios)))
        return W


@dataclass(frozen=True, eq=False)
class _Neighbours:
    """Squared distances within a class, and how many neighbours stand at each.

    Attributes
    ----------
    weights : ndarray of shape (n,)
    distances : ndarray of shape (n, n)
    masses : ndarray of shape (n, n)
        w_j in row i, and w_i − 1 for i itself: the other copies of that row.
    """

    weights: Floats
    distances: Floats
    masses: Floats

    @classmethod
    def of(cls, P: Floats, weights: Floats) -> _Neighbours:
        P = P - P.mean(axis=0)
        squares = np.einsum("ij,ij->i", P, P)
        distances = np.maximum(squares[:, None] + squares - 2.0 * (P @ P.T), 0.0)
        np.fill_diagonal(distances, 0.0)
        masses = np.tile(weights, (len(weights), 1))
        np.fill_diagonal(masses, np.maximum(weights - 1.0, 0.0))
        return cls(weights, distances, masses)

    def _sorted(self) -> tuple[Floats, Floats]:
        if (self.weights == 1.0).all():
            # Without weights there is nothing to carry along: of those at distance zero it does
            # not matter which is the row itself.
            masses = np.ones_like(self.distances)
            masses[:, :1] = 0.0
            return np.sort(self.distances, axis=1), masses
        order = np.argsort(self.distances, axis=1, kind="stable")
        return (
            np.take_along_axis(self.distances, order, axis=1),
            np.take_along_axis(self.masses, order, axis=1),
        )

    def alpha(self, n_neighbors: int) -> Floats:
        """Return sums over the rows that have two neighbours: w, wα and w times their distance.

        α_i = (k d_{k+1} − Σ_{j ≤ k} d_j)/2 gives exactly the k nearest a similarity above zero.
        """
        d, v = self._sorted()
        count = np.cumsum(v, axis=1)
        rows = np.flatnonzero(count[:, -1] >= 2.0) if len(d) else np.zeros(0, dtype=np.intp)
        if len(rows) == 0:
            return np.zeros(3)
        d, v, count = d[rows], v[rows], count[rows]
        # Python compares whole numbers of any size.
        k = np.minimum(min(n_neighbors, float(count[:, -1].max())), count[:, -1] - 1.0)
        before = np.clip(k[:, None] - (count - v), 0.0, v)
        # Counts are sums of weights, which need not be whole.
        beyond = (count >= (k + 1.0)[:, None] * (1.0 - SINGULAR)).argmax(axis=1)
        farther = d[np.arange(len(rows)), beyond]
        alphas = 0.5 * (k * farther - (before * d).sum(axis=1))
        w = self.weights[rows]
        return np.array([w.sum(), w @ np.maximum(alphas, 0.0), w @ farther])

    def similarities(self, alpha: float) -> Floats:
        """Return t ≥ 0 of least Σ_j v_ij(d_ij t_ij + α t_ij²) with Σ_j v_ij t_ij = 1, row by row.

        t_ij = (η_i − d_ij)₊/(2α); the nearest p are above zero while d_p Σv − Σvd < 2α.
        """
        if len(self.distances) == 0:
            return self.distances
        d, v = self._sorted()
        mass, sums = np.cumsum(v, axis=1), np.cumsum(v * d, axis=1)
        last = (d * mass - sums < 2.0 * alpha).sum(axis=1) - 1
        at = (np.arange(len(d)), last)
        # A row alone in its class has no neighbours.
        alone = mass[at] <= 0
        eta = (2.0 * alpha + sums[at]) / np.where(alone, 1.0, mass[at])
        t = np.maximum(eta[:, None] - self.distances, 0.0) / (2.0 * alpha)
        t[alone] = 0.0
        return t
