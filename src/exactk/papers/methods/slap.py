"""SLAP: similarities within the classes and a projection, learned together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, ClassVar

import numpy as np

from exactk.data.usable_columns import are_proportions
from exactk.methods.iteration import Start, Starts, Step
from exactk.papers.methods.base import PenaltyMethod
from exactk.papers.methods.neighbours import NeighbourLists
from exactk.papers.methods.standard_table import standard_table
from exactk.papers.methods.subspace import leading_pairs
from exactk.params import Check, Integer, Number
from exactk.problem.problem import Problem
from exactk.types import Bools, Floats, Indices
from exactk.utils.linalg import largest, row_norms

__all__ = ["SLAP"]


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
    are left out of d. An iteration costs O(r³ + n·d·r) with r that smaller number. S is sparse.
    Which rows can be neighbours is kept in lists, of all rows that stand within a reach; a list is
    made anew, in O(n_c·m) for a class of n_c rows, when its row and others have moved so far that
    a neighbour may be missing from it. The lists take O(n) memory, and O(Σ n_c²) where α is so
    large that most rows of a class are neighbours; distances of the others are never kept.

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
    Cost: O(r³ + n·d·r) an iteration, r the smaller of n and d. Memory: the standardised table, r²
    numbers, and the lists of neighbours.

    Guaranteed: exactly k columns; the objective never rises once α is set. Not the global optimum.

    The paper was known to us by its abstract and by how others describe it: the terms of the
    objective are theirs, in the form that PCAN and SOGFS by some of the same authors give them.
    Ours are: the constraint WᵀXᵀHXW = I of PCAN, for with the WᵀW = I of SOGFS and n < d the
    best projection takes all rows to one point and says nothing of the classes; one α for all
    rows, held fixed, so that the objective cannot rise and copies of a row have unique
    similarities; the start, which is S of the standardised columns and D = I; and the rule to
    stop.

    A row of whole weight w is that row w times: its copies are neighbours at distance zero, and
    equal rows of a class are merged before anything is computed. Where every row has more copies
    than `n_neighbors` all α_i are zero; α is then 1, with which about all rows of a class are
    neighbours, for those of XW have a mean square of m beside the sum of the weights. Weights that
    sum to one or less are shares and not counts, and are scaled to the number of rows.
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
        "n_neighbors": Integer(1),
        "n_components": Integer(1, none="the number of classes"),
        "max_iter": Integer(1),
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
        return _Table.of(problem)

    def starts(self, problem: Problem, k: int, prepared: _Table) -> Starts:  # noqa: D102
        return [Start(self._iterations(problem, prepared, k))]

    def _iterations(self, problem: Problem, table: _Table, k: int) -> Iterator[Step]:
        m = problem.n_outputs if self.n_components is None else int(self.n_components)
        gamma = float(self.gamma)
        near = table.neighbours(table.X)
        graph = near.similar(near.alpha(self.n_neighbors))[0]
        W = table.project(graph, np.full(table.X.shape[1], 1.0 / gamma), m)
        near = table.neighbours(table.X @ W)
        alpha = near.alpha(self.n_neighbors)
        alive, scores = np.arange(table.X.shape[1]), np.zeros(table.X.shape[1])
        value = np.inf
        for t in count(1):
            graph, local = near.similar(alpha)
            W = table.project(graph, (2.0 / gamma) * row_norms(W), m)
            norms = row_norms(W)
            last = value
            value = graph.scatter(table.X @ W) + local + gamma * float(norms.sum())
            scores[alive] = norms
            dead = norms <= DEAD * norms.max()
            if dead.any():
                # Below zero, and nearer to it the later: they keep an order among themselves.
                scores[alive[dead]] = -1.0 / (t + norms[dead] / (DEAD * norms.max()))
                alive, W = alive[~dead], W[~dead]
                table = table.without(dead)
            chosen = largest(scores, k, positive=False)
            ranked = chosen[np.argsort(-scores[chosen], kind="stable")]
            settled = bool(abs(last - value) <= self.tol * abs(value))
            yield Step(problem.candidates[ranked], value, settled)
            near.move(table.X @ W)


@dataclass(frozen=True, eq=False)
class _Table:
    """Centred columns of rows that differ from each other, with the rows of each class.

    Attributes
    ----------
    X : ndarray of shape (n, d)
    weights : ndarray of shape (n,)
        How often each row stands in the table.
    classes : list of ndarray of intp
    scatter : ndarray of shape (d, d) or None
        XᵀHX; None where n < d, as it is not needed there.
    memory : int
        Bytes that lists of neighbours may take.
    """

    X: Floats
    weights: Floats
    classes: list[Indices]
    scatter: Floats | None
    memory: int

    @classmethod
    def of(cls, problem: Problem) -> _Table:
        """Read the candidates of a problem; `solve` has checked the classes."""
        assert problem.rows is not None
        # Copies become one row: they cost nothing, and their distances no rounding.
        rows = standard_table(problem, "one-hot", merge=True)
        X, weights = rows.X, rows.root**2
        X /= rows.root[:, None]
        codes = rows.Y.argmax(axis=1)
        if problem.weights is not None and are_proportions(problem.weight):
            # Shares, not counts: neighbours are counted by weight.
            weights *= np.count_nonzero(problem.weights) / problem.weight
        classes = [np.flatnonzero(codes == c) for c in range(problem.n_outputs)]
        return cls(X, weights, classes, _scatter(X, weights), problem.memory_limit)

    def without(self, dead: Bools) -> _Table:
        """Return the table of the other columns."""
        X = np.ascontiguousarray(self.X[:, ~dead])
        if self.scatter is None:
            return replace(self, X=X, scatter=_scatter(X, self.weights))
        return replace(self, X=X, scatter=self.scatter[np.ix_(~dead, ~dead)])

    def neighbours(self, P: Floats) -> _Neighbours:
        """Return the neighbours of rows that stand at P."""
        # In proportion to the most that a class can ask for.
        most = [len(rows) ** 2 for rows in self.classes]
        return _Neighbours(
            len(P),
            self.classes,
            [
                NeighbourLists(P[rows], self.weights[rows], self.memory * size // sum(most))
                for rows, size in zip(self.classes, most, strict=True)
            ],
        )

    def project(self, graph: _Graph, E: Floats, m: int) -> Floats:
        """Return the W of least Tr(Wᵀ(2XᵀLX + E⁻¹)W) with WᵀXᵀHXW = I, given the diagonal of E.

        With XE^(1/2) = ZQᵀ and orthonormal Q: the largest ratios of zᵀZᵀHZz to zᵀ(2ZᵀLZ + I)z,
        of which the latter is far from singular.
        """
        half = np.sqrt(E)[:, None]
        if self.scatter is not None:
            C = half * graph.form(self.X) * half.T
            V = _largest_ratios(half * self.scatter * half.T, C, m)
            return half * V
        root = np.sqrt(self.weights)[:, None]
        Z = root * self.X * half.T
        values, U = leading_pairs(Z @ Z.T, len(Z))
        V = _largest_ratios(np.diag(values), graph.form(U * np.sqrt(values) / root), m)
        return half * (Z.T @ ((U / np.sqrt(values)) @ V))


def _scatter(X: Floats, weights: Floats) -> Floats | None:
    return X.T @ (weights[:, None] * X) if X.shape[1] <= len(X) else None


def _largest_ratios(T: Floats, C: Floats, m: int) -> Floats:
    """Return V with VᵀTV = I and the m largest ratios of vᵀTv to vᵀ(C + I)v."""
    C[np.diag_indices_from(C)] += 1.0
    R = np.linalg.inv(np.linalg.cholesky(C))
    ratios, Q = leading_pairs(R @ T @ R.T, m)
    V: Floats = R.T @ (Q / np.sqrt(ratios))
    return V


@dataclass(frozen=True, eq=False)
class _Graph:
    """Similarities times weights, of all classes.

    Attributes
    ----------
    S : sparse array of shape (n, n)
        Not symmetric.
    degrees : ndarray of shape (n,)
        Sums of the rows of (S + Sᵀ)/2.
    """

    S: Any
    degrees: Floats

    def form(self, Z: Floats) -> Floats:
        """Return 2ZᵀLZ."""
        product = Z.T @ (self.degrees[:, None] * Z - self.S @ Z)
        return product + product.T

    def scatter(self, P: Floats) -> float:
        """Return Σ_ij s_ij‖p_i − p_j‖²."""
        return float(np.trace(self.form(P)))


@dataclass(frozen=True, eq=False)
class _Neighbours:
    """The neighbours of all rows, each in its class.

    Attributes
    ----------
    n : int
        Number of rows.
    rows : list of ndarray of intp
        Those of each class.
    classes : list of NeighbourLists
    """

    n: int
    rows: list[Indices]
    classes: list[NeighbourLists]

    def move(self, P: Floats) -> None:
        """Take new places of the rows."""
        for rows, near in zip(self.rows, self.classes, strict=True):
            near.move(P[rows])

    def alpha(self, n_neighbors: int) -> float:
        """Return the mean α that gives a row that many neighbours."""
        sums = np.zeros(3)
        for near in self.classes:
            sums += near.alpha(n_neighbors)
        _, alpha, distance = sums / (sums[0] or 1.0)
        return float(max(alpha, LEAST_ALPHA * distance)) or 1.0

    def similar(self, alpha: float) -> tuple[_Graph, float]:
        """Return the similarities, and their part α Σ s² of the objective."""
        # Imported here, for it takes longer than all the rest of exactk.
        from scipy.sparse import coo_array

        squares = 0.0
        places, values = [np.zeros((2, 0), dtype=np.intp)], [np.zeros(0)]
        for rows, near in zip(self.rows, self.classes, strict=True):
            i, j, s, more = near.similar(alpha)
            places.append(np.stack([rows[i], rows[j]]))
            values.append(s)
            squares += more
        i, j = np.concatenate(places, axis=1)
        s = np.concatenate(values)
        degrees: Floats = np.zeros(self.n)
        for ends in (i, j):
            degrees += 0.5 * np.bincount(ends, s, self.n)
        S = coo_array((s, (i, j)), shape=(self.n, self.n)).tocsr()
        return _Graph(S, degrees), alpha * squares
