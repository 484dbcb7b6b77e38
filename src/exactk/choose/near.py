"""Sets that are nearly as good as a given one: all of them where that can be told."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from exactk.linalg import DEPENDENT
from exactk.monitor import Monitor
from exactk.search.blocks import Blocks
from exactk.search.feasible import Feasible

__all__ = ["NearSets", "near_sets"]

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]

# Columns up to which the enumeration of all sets is tried, and nodes after which it is given up.
MOST_COLUMNS = 80
MOST_NODES = 20_000


@dataclass(frozen=True, eq=False)
class NearSets:
    """Sets of units whose objective is not above a bound.

    Attributes
    ----------
    sets : list of tuple of int
        Units, the best set first.
    objectives : list of float
    is_complete : bool
        Whether no other set has such an objective.
    """

    sets: list[tuple[int, ...]]
    objectives: list[float]
    is_complete: bool


def near_sets(
    blocks: Blocks,
    feasible: Feasible,
    start: Sequence[int],
    bound: float,
    most: int,
    monitor: Monitor,
) -> NearSets:
    """Return the sets that keep the rules and whose objective is at most `bound`.

    Every set is looked at by branch and bound where there are few columns: taking columns away
    never lowers the objective, so what is already above the bound with all columns that are left
    cannot come below it with fewer. Elsewhere, or where the branches are too many, the sets are
    those that single swaps reach from the first, over sets that are themselves near.

    Parameters
    ----------
    blocks : Blocks
    feasible : Feasible
    start : sequence of int
        Units of a set within the bound.
    bound : float
    most : int
        Give up the claim to completeness beyond this many sets; the best are given.
    monitor : Monitor
    """
    found = _enumerated(blocks, feasible, bound, most, monitor)
    complete = found is not None
    if found is None:
        found = _swapped(blocks, feasible, start, bound, most, monitor)
    best = sorted(found.items(), key=lambda item: (item[1], item[0]))[:most]
    return NearSets([key for key, _ in best], [value for _, value in best], complete)


def _swapped(
    blocks: Blocks,
    feasible: Feasible,
    start: Sequence[int],
    bound: float,
    most: int,
    monitor: Monitor,
) -> dict[tuple[int, ...], float]:
    """Sets that swaps reach, the best looked at first."""
    fixed = set(blocks.units.included)
    blocks.load(start)
    first = tuple(sorted(start))
    found = {first: blocks.objective}
    queue = [(blocks.objective, first)]
    # The objectives of the best found, negated: whoever is not among so many is of no interest.
    kept, edge = [-blocks.objective], bound
    looked = 0
    while queue and looked < most and not monitor.expired:
        _, key = heapq.heappop(queue)
        looked += 1
        blocks.load(key)
        at = feasible.totals(key)
        for i, unit in enumerate(key):
            if unit in fixed:
                continue
            falls = blocks.swap_gains(i, feasible.swaps(key, at, unit))
            reached = blocks.objective - falls
            for other in np.flatnonzero(reached <= edge).tolist():
                near, value = tuple(sorted({*key, other} - {unit})), float(reached[other])
                if value > edge or near in found:
                    continue
                found[near] = value
                heapq.heappush(queue, (value, near))
                heapq.heappush(kept, -value)
                if len(kept) > most:
                    heapq.heappop(kept)
                    edge = -kept[0]
    return found


@dataclass
class _Node:
    """Units that are in, units that may be, and the fit on the columns of all of them, sorted."""

    inside: list[int]
    free: Indices
    columns: Indices
    G: Floats
    V: Floats
    objective: float


@dataclass
class _Tree:
    """The branches of an enumeration."""

    blocks: Blocks
    feasible: Feasible
    bound: float
    most: int
    monitor: Monitor
    columns: Indices
    A: Floats
    B: Floats
    alone: bool
    found: dict[tuple[int, ...], float] = field(default_factory=dict)
    nodes: int = 0

    @property
    def is_cut_short(self) -> bool:
        """Whether there are too many branches or sets, or the time is up."""
        return self.nodes > MOST_NODES or len(self.found) > self.most or self.monitor.expired

    def without(self, node: _Node, unit: int) -> _Node:
        """Return the node after a unit is ruled out."""
        at = np.searchsorted(node.columns, self.blocks.live(unit))
        kept = np.delete(np.arange(len(node.columns)), at)
        # G_RR − G_RI·G_II⁻¹·G_IR, and likewise V: as a block is dropped in `exactk.search.blocks`.
        rows, V_out = node.G[at], node.V[at]
        inner, left = np.linalg.inv(rows[:, at]), rows.take(kept, axis=1).T
        across = left @ inner
        return _Node(
            node.inside,
            node.free[node.free != unit],
            node.columns[kept],
            node.G.take(kept, axis=0).take(kept, axis=1) - across @ left.T,
            node.V[kept] - across @ V_out,
            node.objective + float(np.einsum("ij,ij->", V_out, inner @ V_out)),
        )

    def losses(self, node: _Node) -> Floats:
        """How much the objective rises if each free unit is ruled out."""
        units = self.blocks.units
        alone = np.einsum("ij,ij->i", node.V, node.V) / np.diagonal(node.G)
        out = np.zeros(len(node.free))
        single = node.free < len(units.singles)
        out[single] = alone[np.searchsorted(node.columns, units.singles[node.free[single]])]
        for n in np.flatnonzero(~single).tolist():
            at = np.searchsorted(node.columns, self.blocks.live(int(node.free[n])))
            V = node.V[at]
            out[n] = float(np.einsum("ij,ij->", V, np.linalg.solve(node.G[np.ix_(at, at)], V)))
        return out

    def grow(self, node: _Node) -> None:
        """Look at all sets below a node."""
        weights, k = self.feasible.weights, self.feasible.k
        while not self.is_cut_short:
            self.nodes += 1
            left = k - int(weights[node.inside].sum())
            if node.objective > self.bound or left < 0 or left > int(weights[node.free].sum()):
                return
            if left == 0:
                self.record(node.inside, self.objective(node.inside))
                return
            if left == 1 and self.alone:
                self.complete(node)
                return
            losses = self.losses(node)
            # Whoever cannot be spared is in.
            needed = node.objective + losses > self.bound
            if needed.any():
                inside = node.inside + node.free[needed].tolist()
                node = replace(node, inside=inside, free=node.free[~needed])
                continue
            unit = int(node.free[np.argmax(losses)])
            rest = node.free[node.free != unit]
            self.grow(replace(node, inside=[*node.inside, unit], free=rest))
            node = self.without(node, unit)

    def objective(self, units: Sequence[int]) -> float:
        """Return the objective of a set."""
        live = np.concatenate([self.blocks.live(unit) for unit in units])
        at = np.searchsorted(self.columns, np.sort(live))
        B = self.B[at]
        return self.blocks.problem.total - float(
            np.einsum("ij,ij->", B, np.linalg.solve(self.A[at][:, at], B))
        )

    def complete(self, node: _Node) -> None:
        """Look at all sets with one more column at once."""
        singles = self.blocks.units.singles
        inside = np.searchsorted(self.columns, singles[node.inside])
        last = np.searchsorted(self.columns, singles[node.free])
        A, B = self.A[inside], self.B[inside]
        solved = np.linalg.solve(A[:, inside], np.hstack([B, A[:, last]]))
        V, T = solved[:, : B.shape[1]], solved[:, B.shape[1] :]
        C = self.B[last] - A[:, last].T @ V
        D = self.A[last, last] - np.einsum("ij,ij->j", A[:, last], T)
        held = self.blocks.problem.total - float(np.einsum("ij,ij->", B, V))
        objectives = held - np.einsum("ij,ij->i", C, C) / D
        for n in np.flatnonzero(objectives <= self.bound).tolist():
            self.record([*node.inside, int(node.free[n])], float(objectives[n]))

    def record(self, units: Sequence[int], objective: float) -> None:
        """Keep a set if it is within the bound and keeps the rules."""
        if objective <= self.bound and self.feasible.keeps(units):
            self.found[tuple(sorted(units))] = objective


def _enumerated(
    blocks: Blocks, feasible: Feasible, bound: float, most: int, monitor: Monitor
) -> dict[tuple[int, ...], float] | None:
    """All sets within the bound, or None where they cannot be counted up."""
    units, problem = blocks.units, blocks.problem
    every = np.flatnonzero(units.alive)
    columns = np.array(sorted(units.columns_of(every.tolist())), dtype=np.intp)
    columns = columns[problem.x_scale[columns] > 0]
    if len(columns) > MOST_COLUMNS:
        return None
    A = problem.gram_rows(columns)[:, columns]
    root = 1.0 / np.sqrt(np.diagonal(A))
    if np.linalg.eigvalsh(A * np.outer(root, root))[0] < DEPENDENT:
        # Losses would be those of rounding.
        return None
    G = np.asarray(np.linalg.inv(A), dtype=np.float64)
    B = np.ascontiguousarray(problem.cross[:, columns].T)
    V = G @ B
    explained = float(np.einsum("ij,ij->", V, B))
    free = np.setdiff1d(every, units.included)
    # Included columns that are constant here have no place among the others.
    alone = not units.groups and len(columns) == len(every)
    tree = _Tree(blocks, feasible, bound, most, monitor, columns, A, B, alone)
    tree.grow(_Node(list(units.included), free, columns, G, V, problem.total - explained))
    return None if tree.is_cut_short else tree.found
