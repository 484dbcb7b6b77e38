"""Rows of a class that move from one iteration to the next, and who is near whom.

The similarities of `exactk.papers.methods.slap` are made of them; they stay exact however rows
move.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from itertools import count
from typing import Any

import numpy as np
import numpy.typing as npt

from exactk.errors import InputError
from exactk.types import Bools, Floats, Indices
from exactk.utils.linalg import SINGULAR, row_norms

__all__ = ["NeighbourLists"]


# Length of a list of neighbours at first, and by how much it grows where it is too short. A longer
# one lasts for more iterations, each of which takes longer.
LIST = 48
WIDER = 4
# Bytes for an entry of a list: its place and distance, and what is made of them on the way to S.
ENTRY = 48
# Values of a block of rows: some megabytes, so that a pass over it stays near the caches.
BLOCK_VALUES = 2**18


class NeighbourLists:
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
        self.repeats = np.maximum(weights - 1.0, 0.0)
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
                f"than its share of memory_limit, {self.memory:,} bytes, takes",
                parameter="memory_limit",
                hint=(
                    "give fewer rows, "
                    "raise memory_limit in Problem.from_arrays, or use method='spec'"
                ),
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
        total = self.weights.sum() - self.weights + self.repeats
        # Python compares whole numbers of any size.
        k = np.minimum(min(n_neighbors, float(total.max(initial=0.0))), total - 1.0)
        # Counts are sums of weights, which need not be whole.
        wanted = (k + 1.0) * (1.0 - SINGULAR)

        def enough(near: _Lists, part: Indices) -> Bools:
            rows = near.rows[part]
            mass = self.weights[near.columns[:, part]].sum(axis=0) + self.repeats[rows]
            found: Bools = (mass >= wanted[rows]) | np.isinf(near.reach[part])
            return found

        self._complete(enough)
        sums = np.zeros(3)
        for near in self.lists:
            for part in _parts(len(near.rows), len(near.columns)):
                rows = near.rows[part]
                d = np.vstack([np.zeros(len(rows)), near.distances[:, part]])
                v = np.vstack([self.repeats[rows], self.weights[near.columns[:, part]]])
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
                squares += float((self.weights * self.repeats)[own] @ (eta / (2.0 * alpha)) ** 2)
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
            repeats = self.repeats[near.rows[which]]
            return np.divide(2.0 * alpha, repeats, out=np.zeros(len(which)), where=repeats > 0)
        eta = np.empty(len(which))
        for part in _parts(len(which), len(near.columns)):
            mine = which[part]
            rows, d = near.rows[mine], near.distances[:, mine]
            v = None if self.plain else self.weights[near.columns[:, mine]]
            vd, repeats = d if v is None else v * d, self.repeats[rows]
            # Rounding must not drop the nearest.
            least = np.nextafter(np.where(repeats > 0, 0.0, d.min(axis=0)), np.inf)
            level, left = np.maximum(near.eta[mine], least), None
            for step in count():
                on = d < level
                now = on.sum(axis=0)
                # A first step may go up.
                if step > 1 and (now >= left).all():
                    break
                left = now
                mass = now if v is None else repeats + (v * on).sum(axis=0)
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
