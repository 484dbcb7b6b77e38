"""SLAP: similarities within the classes and a projection, learned together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from itertools import count
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from exactk.checks import Check, Number, Whole
from exactk.columns import are_shares
from exactk.errors import InputError
from exactk.iterative.course import Start, Starts, Step
from exactk.iterative.subspace import leading_pairs
from exactk.iterative.table import standard_table
from exactk.linalg import SINGULAR, largest, row_norms
from exactk.methods.base import PenaltyMethod
from exactk.problem import Problem

__all__ = ["SLAP"]

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]
Bools = npt.NDArray[np.bool_]

# α beside the mean distance, at least: without it similarities to equal distances are not unique.
LEAST_ALPHA = 1e-6
# A row of W this small beside the largest is zero, and stays so.
DEAD = 1e-10
# Length of a list of neighbours at first, and by how much it grows where it is too short. A longer
# one lasts for more iterations, each of which takes longer.
LIST = 48
WIDER = 4
# Bytes for an entry of a list: its place and distance, and what is made of them on the way to S.
ENTRY = 48
# Values of a block of rows: some megabytes, so that a pass over it stays near the caches.
BLOCK_VALUES = 2**18


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
        if problem.weights is not None and are_shares(problem.weight):
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
                _Class(P[rows], self.weights[rows], self.memory * size // sum(most))
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
    classes : list of _Class
    """

    n: int
    rows: list[Indices]
    classes: list[_Class]

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


class _Class:
    """Rows of one class that move, each with a list of the rows nearest to it.

    A list holds all others that stand within the reach of its row, and perhaps more. As rows
    move the reach shrinks by what the row and any other can have come nearer; a list is made anew
    when a neighbour may be missing. What lists are used for is thus exact at all times.

    Parameters
    ----------
    P : ndarray of shape (n, m)
    weights : ndarray of shape (n,)
    memory : int
        Bytes that the lists may take.
    """

    def __init__(self, P: Floats, weights: Floats, memory: int) -> None:
        self.weights, self.memory = weights, memory
        self.plain = bool((weights == 1.0).all())
        # The other copies of a row are neighbours at distance zero.
        self.copies = np.maximum(weights - 1.0, 0.0)
        self._start(P)

    def _start(self, P: Floats) -> None:
        self.P = P - P.mean(axis=0) if len(P) else P
        self.squares = np.einsum("ij,ij->i", self.P, self.P)
        self.lists: list[_Lists] = []
        if len(P) > 0:
            self._add(0, np.arange(len(P)))

    def move(self, P: Floats) -> None:
        """Take new places of the rows."""
        if len(P) == 0 or P.shape != self.P.shape:
            self._start(P)
            return
        P = P - P.mean(axis=0)
        # Distances do not change as all turn together.
        U, _, Vt = np.linalg.svd(self.P.T @ P)
        moved = row_norms(P - self.P @ (U @ Vt))
        self.P, self.squares = P, np.einsum("ij,ij->i", P, P)
        for near in self.lists:
            near.reach -= moved[near.rows] + moved.max()
            near.fresh[:] = False
            near.distances = self._distances(near)

    def _distances(self, near: _Lists) -> Floats:
        distances = np.zeros(near.columns.shape)
        for p in self.P.T:
            distances += (p[near.columns] - p[near.rows]) ** 2
        return distances

    def _nearest(self, rows: Indices, width: int, bounds: Floats | None = None) -> _Lists:
        """Make lists of the nearest others, that many.

        Parameters
        ----------
        rows : ndarray of intp of shape (r,)
        width : int
        bounds : ndarray of shape (r,) or None
            Squared distances within which at least so many are known to stand.
        """
        n = len(self.P)
        columns = np.empty((width, len(rows)), dtype=np.intp)
        distances = np.empty((width, len(rows)))
        for part in _parts(len(rows), n):
            own = rows[part]
            d = self.P[own] @ (-2.0 * self.P.T)
            d += self.squares
            d += self.squares[own, None]
            np.maximum(d, 0.0, out=d)
            d[np.arange(len(own)), own] = np.inf
            places: Indices | None = None
            if bounds is not None and width < n - 1:
                d, places = _within(d, bounds[part])
            # The row itself is the last.
            chosen = np.argpartition(d, width - 1, axis=1)[:, :width]
            distances[:, part] = np.take_along_axis(d, chosen, axis=1).T
            if places is not None:
                chosen = np.take_along_axis(places, chosen, axis=1)
            columns[:, part] = chosen.T
        reach = np.sqrt(distances.max(axis=0)) if width < n - 1 else np.full(len(rows), np.inf)
        fresh = np.ones(len(rows), dtype=bool)
        return _Lists(rows, columns, distances, reach, fresh, np.full(len(rows), np.inf))

    def _add(self, level: int, rows: Indices) -> None:
        """Make lists of a level for more rows."""
        n = len(self.P)
        width = LIST * WIDER**level
        width = n - 1 if 2 * width >= n else width
        entries = sum(near.columns.size for near in self.lists) + len(rows) * width
        if entries * ENTRY > self.memory:
            raise InputError(
                f"slap has {entries:,} similarities to look at in a class of {n:,} rows, more "
                f"than its share of memory_limit, {self.memory:,} bytes, takes; give fewer rows, "
                f"raise memory_limit in Problem.from_arrays, or use method='spec'"
            )
        lists = self._nearest(rows, width)
        if level == len(self.lists):
            self.lists.append(lists)
        else:
            self.lists[level] = self.lists[level].joined(lists)

    def _complete(self, enough: Callable[[_Lists, Indices], Bools]) -> None:
        """Renew and widen lists until all are long enough."""
        for level in count():
            if level >= len(self.lists):
                return
            near = self.lists[level]
            short = np.flatnonzero(~enough(near, np.arange(len(near.rows))))
            stale = short[~near.fresh[short]]
            if len(stale):
                # Those of the list still are that many; a little more, for rounding.
                bounds = near.distances[:, stale].max(axis=0) + SINGULAR * self.squares.max()
                near.put(stale, self._nearest(near.rows[stale], len(near.columns), bounds))
                short = short[~enough(near, short)]
            if len(short):
                self.lists[level] = near.without(short)
                self._add(level + 1, near.rows[short])

    def alpha(self, n_neighbors: int) -> Floats:
        """Return sums over the rows that have two neighbours: w, wα and w times their distance.

        α_i = (k d_{k+1} − Σ_{j ≤ k} d_j)/2 gives exactly the k nearest a similarity above zero.
        """
        total = self.weights.sum() - self.weights + self.copies
        # Python compares whole numbers of any size.
        k = np.minimum(min(n_neighbors, float(total.max(initial=0.0))), total - 1.0)
        # Counts are sums of weights, which need not be whole.
        wanted = (k + 1.0) * (1.0 - SINGULAR)

        def enough(near: _Lists, part: Indices) -> Bools:
            rows = near.rows[part]
            mass = self.weights[near.columns[:, part]].sum(axis=0) + self.copies[rows]
            found: Bools = (mass >= wanted[rows]) | np.isinf(near.reach[part])
            return found

        self._complete(enough)
        sums = np.zeros(3)
        for near in self.lists:
            for part in _parts(len(near.rows), len(near.columns)):
                rows = near.rows[part]
                d = np.vstack([np.zeros(len(rows)), near.distances[:, part]])
                v = np.vstack([self.copies[rows], self.weights[near.columns[:, part]]])
                order = np.argsort(d, axis=0, kind="stable")
                d, v = np.take_along_axis(d, order, axis=0), np.take_along_axis(v, order, axis=0)
                counts = np.cumsum(v, axis=0)
                before = np.clip(k[rows] - (counts - v), 0.0, v)
                beyond = (counts >= wanted[rows]).argmax(axis=0)
                farther = d[beyond, np.arange(len(rows))]
                alphas = 0.5 * (k[rows] * farther - (before * d).sum(axis=0))
                w = np.where(total[rows] >= 2.0, self.weights[rows], 0.0)
                sums += (w.sum(), w @ np.maximum(alphas, 0.0), w @ farther)
        return sums

    def similar(self, alpha: float) -> tuple[Indices, Indices, Floats, float]:
        """Return places and values of w_i w_j t_ij above zero, and Σ w_i v_ij t_ij².

        t ≥ 0 is of least Σ_j v_ij(d_ij t_ij + α t_ij²) with Σ_j v_ij t_ij = 1, row by row, where
        v_ij is w_j, and w_i − 1 for i itself: t_ij = (η_i − d_ij)₊/(2α).
        """

        def enough(near: _Lists, part: Indices) -> Bools:
            near.eta[part] = self._levels(near, part, alpha)
            found: Bools = near.eta[part] <= np.maximum(near.reach[part], 0.0) ** 2
            return found

        self._complete(enough)
        rows, columns, values, squares = [], [], [], 0.0
        for near in self.lists:
            for part in _parts(len(near.rows), len(near.columns)):
                eta, own = near.eta[part], near.rows[part]
                t = eta - near.distances[:, part]
                t /= 2.0 * alpha
                at, i = np.nonzero(t > 0)
                j, i, t = near.columns[:, part][at, i], own[i], t[at, i]
                s = t if self.plain else self.weights[i] * self.weights[j] * t
                squares += float(s @ t)
                squares += float((self.weights * self.copies)[own] @ (eta / (2.0 * alpha)) ** 2)
                rows.append(i)
                columns.append(j)
                values.append(s)
        if not values:
            nobody = np.zeros(0, dtype=np.intp)
            return nobody, nobody, np.zeros(0), 0.0
        return np.concatenate(rows), np.concatenate(columns), np.concatenate(values), squares

    def _levels(self, near: _Lists, which: Indices, alpha: float) -> Floats:
        """Return η with Σ_j v_ij(η_i − d_ij)₊ = 2α over the lists; too high if one is too short.

        By Newton's method from the η before: the sum is convex in η, so that from the first step
        on η is no less than the root, and it ends where no term drops out any more.
        """
        if len(near.columns) == 0:
            # A row alone in its class; without copies it has no neighbours.
            copies = self.copies[near.rows[which]]
            return np.divide(2.0 * alpha, copies, out=np.zeros(len(which)), where=copies > 0)
        eta = np.empty(len(which))
        for part in _parts(len(which), len(near.columns)):
            mine = which[part]
            rows, d = near.rows[mine], near.distances[:, mine]
            v = None if self.plain else self.weights[near.columns[:, mine]]
            vd, copies = d if v is None else v * d, self.copies[rows]
            # Rounding must not drop the nearest.
            least = np.nextafter(np.where(copies > 0, 0.0, d.min(axis=0)), np.inf)
            level, left = np.maximum(near.eta[mine], least), None
            for step in count():
                on = d < level
                now = on.sum(axis=0)
                # A first step may go up.
                if step > 1 and (now >= left).all():
                    break
                left = now
                mass = now if v is None else copies + (v * on).sum(axis=0)
                level = np.maximum((2.0 * alpha + (vd * on).sum(axis=0)) / mass, least)
            eta[part] = level
        return eta


@dataclass(eq=False)
class _Lists:
    """Lists of one width.

    Attributes
    ----------
    rows : ndarray of intp of shape (r,)
        The rows that they are lists of.
    columns : ndarray of intp of shape (width, r)
        Those nearest to them.
    distances : ndarray of shape (width, r)
        Squared.
    reach : ndarray of shape (r,)
        Distance, not squared, within which no other row is missing.
    fresh : ndarray of bool of shape (r,)
        Whether the row has not moved since.
    eta : ndarray of shape (r,)
        Squared distance at which similarity ends.
    """

    rows: Indices
    columns: Indices
    distances: Floats
    reach: Floats
    fresh: Bools
    eta: Floats

    def put(self, part: Indices, lists: _Lists) -> None:
        """Put other lists in the place of some."""
        for mine, other in zip(self._arrays(), lists._arrays(), strict=True):
            mine[..., part] = other

    def joined(self, lists: _Lists) -> _Lists:
        """Return these and others of the same width."""
        pairs = zip(self._arrays(), lists._arrays(), strict=True)
        return _Lists(*(np.concatenate(pair, axis=-1) for pair in pairs))

    def without(self, part: Indices) -> _Lists:
        """Return all but some."""
        return _Lists(*(np.delete(array, part, axis=-1) for array in self._arrays()))

    def _arrays(self) -> list[npt.NDArray[Any]]:
        return [getattr(self, field.name) for field in fields(self)]


def _within(d: Floats, bounds: Floats) -> tuple[Floats, Indices]:
    """Move what is within the bound of its row to the left, and return its places; then inf."""
    i, j = np.nonzero(d <= bounds[:, None])
    counts = np.bincount(i, minlength=len(d))
    at = np.arange(len(i)) - np.repeat(np.cumsum(counts) - counts, counts)
    shape = (len(d), int(counts.max(initial=0)))
    values, places = np.full(shape, np.inf), np.zeros(shape, dtype=np.intp)
    values[i, at], places[i, at] = d[i, j], j
    return values, places


def _parts(n: int, width: int) -> Iterator[slice]:
    """Cut n rows of some width into blocks."""
    step = max(1, BLOCK_VALUES // max(1, width))
    return (slice(start, min(start + step, n)) for start in range(0, n, step))
