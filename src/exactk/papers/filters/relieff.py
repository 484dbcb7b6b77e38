"""ReliefF: how a column differs between near rows of other classes and of the same class."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from exactk.papers.filters.base import Filter, Labels, Ranking, by_score
from exactk.papers.filters.base import labels as labels_of
from exactk.papers.filters.distances import city_block, nearest_shares, pair_sums
from exactk.papers.methods.standard_table import whole_table
from exactk.params import Check, Integer
from exactk.problem.problem import Problem
from exactk.result import Status
from exactk.types import Floats, Indices
from exactk.utils.monitor import Monitor

__all__ = ["ReliefF"]


# Distances that differ by less than this, relatively, differ by rounding.
SAME = 1e-10
# Up to this many distances are held at once, each computed only once.
WHOLE = 2**22
# Beyond that, rows are compared with all others in blocks of so many distances.
BLOCK = 2**22


class ReliefF(Filter):
    """Score each column by its mean difference to near misses less that to near hits.

    For every row i of class r, with diff(a, b) = |a − b| / range of the column,

        W += Σ_{c≠r} P(c)/(1 − P(r)) · mean over the K nearest rows of class c of diff
             − mean over the K nearest other rows of class r of diff,

    divided by the number of rows (Kononenko's extension of Relief to many classes, weighted by
    prior). Near is by the sum of the differences of all columns. Every row is used, none drawn at
    random. A class of fewer than K rows gives all it has.

    All distances cost O(n²d/2), the sums O(n·K·c·d). Beyond some two thousand rows, rows are taken
    in blocks, each spread over the whole table; when time is up or the user stops it, the
    scores are those of the rows until then.

    Parameters
    ----------
    n_neighbors : int
        K, neighbours of each class.

    Notes
    -----
    Cost: O(n²·d) for the distances and O(n·K·c·d) for the sums. Memory: the table, and distances of
    a block of rows.

    Guaranteed: the k highest scores. They see columns that matter only together, as long as few
    others blur which rows are near.

    Neighbours count with their weights: the nearest rows until their weights reach K, and a row
    of weight w has itself as a neighbour with weight w − 1, so that whole weights mean repeated
    rows. Rows at the same distance share the last place instead of taking it by their order.
    Columns that are copies of another do not count twice in a distance.

    References
    ----------
    K. Kira, L. A. Rendell, "A practical approach to feature selection", ICML 1992.
    I. Kononenko, "Estimating attributes: analysis and extensions of RELIEF", ECML 1994.
    M. Robnik-Šikonja, I. Kononenko, "Theoretical and empirical analysis of ReliefF and
    RReliefF", Machine Learning 53, 2003.

    Examples
    --------
    >>> import exactk
    >>> from sklearn.datasets import load_iris
    >>> problem = exactk.Problem.from_arrays(*load_iris(return_X_y=True))
    >>> result = exactk.solve(problem, 2, method="relieff")
    >>> result.support, result.scores.round(3)
    (array([2, 3]), array([0.14 , 0.123, 0.359, 0.375]))
    """

    checks: ClassVar[Mapping[str, Check]] = {"n_neighbors": Integer(1)}

    def __init__(self, n_neighbors: int = 10) -> None:
        self.n_neighbors = n_neighbors

    def rank(self, problem: Problem, k: int, monitor: Monitor) -> Ranking:  # noqa: D102
        labels = labels_of(problem)
        Z = _unit_ranges(problem, labels.rows)
        n, total = len(Z), float(labels.weights.sum())
        blocks = 1 if n * n <= WHOLE else -(-n * n // BLOCK)
        by_class = np.argsort(labels.codes, kind="stable")
        sums, weight, status = np.zeros(Z.shape[1]), 0.0, Status.CONVERGED
        for number in range(blocks):
            try:
                # Of the rows in order of their class every so-many-th: a fair share of each.
                rows = np.sort(by_class[number::blocks])
                sums += self._block(Z, labels, rows, whole=blocks == 1)
            except KeyboardInterrupt:
                if number == 0:
                    raise
                status = Status.INTERRUPTED
                break
            weight += float(labels.weights[rows].sum())
            monitor.report(number + 1, blocks, 0.0)
            if number + 1 < blocks and monitor.expired:
                status = Status.TIME_LIMIT
                break
        # The prior is that of all rows, whichever were used.
        scores = sums * (total / weight)
        return Ranking(by_score(scores, 1.0), scores, status=status)

    def _block(self, Z: Floats, labels: Labels, rows: Indices, *, whole: bool) -> Floats:
        """What some rows add to the scores."""
        D = city_block(Z) if whole else city_block(Z[rows], Z)
        G = self._pair_weights(D, labels, rows)
        if whole:
            # Each pair once, in whichever row it was found.
            G = np.triu(G + G.T, 1)
        first, second = np.nonzero(G)
        return pair_sums(Z, rows[first].astype(np.int32), second.astype(np.int32), G[first, second])

    def _pair_weights(self, D: Floats, labels: Labels, rows: Indices) -> Floats:
        """Weight with which the difference of row i and row j counts, for the rows i of a block."""
        sizes = labels.sizes
        prior = sizes / sizes.sum()
        own = labels.codes[rows]
        even = bool((labels.weights == 1.0).all())
        # Of misses by their prior among all misses, of hits with a minus sign.
        factor = np.tile(prior, (len(prior), 1)) / (1.0 - prior)[:, None] / sizes.sum()
        np.fill_diagonal(factor, -1.0 / sizes.sum())
        if even:
            found = nearest_shares(D, labels.codes, rows, self.n_neighbors, factor, SAME)
            if found is not None:
                return found
        G = np.empty_like(D)
        for c in range(len(sizes)):
            members = np.flatnonzero(labels.codes == c)
            w = labels.weights[members]
            for hit in (False, True):
                which = np.flatnonzero((own == c) == hit)
                if which.size == 0:
                    continue
                near = D[np.ix_(which, members)]
                w_near = w
                if hit:
                    at = np.arange(len(which)), np.searchsorted(members, rows[which])
                    w_near = np.tile(w, (len(which), 1))
                    # A row is not its own neighbour, but what else its weight stands for is.
                    w_near[at] = np.maximum(w_near[at] - 1.0, 0.0)
                    if even:
                        near[at] = np.inf
                # Python compares whole numbers of any size.
                room = np.minimum(min(self.n_neighbors, float(sizes.sum())), w_near.sum(axis=-1))
                share = (_shares_even if even else _shares)(near, w_near, room)
                times = labels.weights[rows[which]] * factor[own[which], c]
                share *= (times / np.maximum(room, 1e-300))[:, None]
                G[np.ix_(which, members)] = share
        return G


def _unit_ranges(problem: Problem, rows: Indices | None) -> Floats:
    """The rows that count, columns from 0 to 1."""
    Z = whole_table(problem)
    Z = Z if rows is None else Z[rows]
    Z -= Z.min(axis=0)
    Z *= 1.0 / Z.max(axis=0)
    return Z


def _shares_even(near: Floats, weights: Floats, room: Floats) -> Floats:
    """As `_shares`, for rows that all count once."""
    K = int(np.max(room))
    if K == 0:
        return np.zeros_like(near)
    edge = np.partition(near, K - 1, axis=1)[:, K - 1 : K]
    within = near < edge * (1.0 - SAME)
    level = near <= edge * (1.0 + SAME)
    level &= ~within
    left = K - np.count_nonzero(within, axis=1)
    share = within.astype(np.float64)
    share += level * (left / np.count_nonzero(level, axis=1))[:, None]
    return share


def _shares(near: Floats, weights: Floats, room: Floats) -> Floats:
    """How much of each row is among the nearest whose weights reach `room`.

    Parameters
    ----------
    near : ndarray of shape (b, m)
        Distances.
    weights : ndarray of shape (m,) or (b, m)
    room : float or ndarray of shape (b,)

    Returns
    -------
    ndarray of shape (b, m)
    """
    weights, room = np.broadcast_to(weights, near.shape), np.broadcast_to(room, len(near))
    order = np.argsort(near, axis=1, kind="stable")
    reached = np.cumsum(np.take_along_axis(weights, order, axis=1), axis=1)
    # The last of them; a sum that falls short by rounding still reaches.
    last = np.minimum((reached < room[:, None] * (1.0 - SAME)).sum(axis=1), near.shape[1] - 1)
    edge = np.take_along_axis(near, np.take_along_axis(order, last[:, None], axis=1), axis=1)
    within = near < edge * (1.0 - SAME)
    level = (near <= edge * (1.0 + SAME)) & ~within
    inside, on = (weights * within).sum(axis=1), (weights * level).sum(axis=1)
    left = np.divide(room - inside, on, out=np.zeros(len(near)), where=on > 0)
    share: Floats = weights * (within + level * left[:, None])
    return share
