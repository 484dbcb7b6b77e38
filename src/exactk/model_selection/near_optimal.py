"""Sets that are nearly as good as a given one: all of them where that can be told."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from exactk.proof.best_first import BestFirstSearch, Tree
from exactk.proof.make_tree import make_tree
from exactk.proof.unit_tree import UnitTree
from exactk.result import Status
from exactk.search.feasibility import Feasible
from exactk.search.unit_pricing import UnitPricing
from exactk.utils.monitor import Monitor

__all__ = ["NearSets", "near_sets"]

# Columns up to which the enumeration of all sets is tried.
MOST_COLUMNS = 80
# Nodes after which it is given up, and seconds, for where columns depend nodes take long.
MOST_NODES, MOST_SECONDS = 20_000, 5.0
# Above the bound sets are looked for up to this share of the total: bounds are rounded.
SLACK = 1e-7


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
    blocks: UnitPricing,
    feasible: Feasible,
    start: Sequence[int],
    bound: float,
    most: int,
    monitor: Monitor,
) -> NearSets:
    """Return the sets that keep the rules and whose objective is at most `bound`.

    Every set is looked at by branch and bound (`exactk.proof`) where there are few columns.
    Elsewhere, or where the branches are too many, the sets are those that were found until then
    and those that single swaps reach from the first, over sets that are themselves near.

    Parameters
    ----------
    blocks : UnitPricing
    feasible : Feasible
    start : sequence of int
        Units of a set within the bound.
    bound : float
    most : int
        Give up the claim to completeness beyond this many sets; the best are given.
    monitor : Monitor
    """
    listed, complete = _enumerated(blocks, feasible, start, bound, most, monitor)
    found = listed if complete else _swapped(blocks, feasible, start, bound, most, monitor) | listed
    best = sorted(found.items(), key=lambda item: (item[1], item[0]))[:most]
    return NearSets([key for key, _ in best], [value for _, value in best], complete)


class _NodeLimit(Monitor):
    """A monitor whose time is also up after so many nodes."""

    nodes = 0

    @property
    def expired(self) -> bool:
        return self.nodes > MOST_NODES or super().expired

    def report(self, done: int, total: int | None, objective: float, note: str = "") -> None:
        self.nodes = done


def _tree(feasible: Feasible, bound: float) -> Tree:
    """The tree of the sets that are asked for."""
    units = feasible.units
    if units.rules.is_simple and not units.has_duplicates:
        # What is at the bound is to be found, whatever rounding makes of it.
        return make_tree(units.problem, feasible.k, bound + SLACK * units.problem.total)
    # Whether copies are kept apart goes with the set that is explained.
    return UnitTree(units.problem, feasible.k, feasible)


def _enumerated(
    blocks: UnitPricing,
    feasible: Feasible,
    start: Sequence[int],
    bound: float,
    most: int,
    monitor: Monitor,
) -> tuple[dict[tuple[int, ...], float], bool]:
    """Sets within the bound, and whether these are all."""
    units, problem = blocks.units, blocks.problem
    if len(units.columns_of(np.flatnonzero(units.selectable).tolist())) > MOST_COLUMNS:
        return {}, False
    tree = _tree(feasible, bound)
    ceiling = bound + min(2.0 * tree.tolerance, SLACK * problem.total)
    own = tuple(sorted(units.columns_of(start)))
    search = BestFirstSearch(problem, tree, [own], ceiling=ceiling, n_best=most + 1)
    left = MOST_SECONDS
    if monitor.time_limit is not None:
        left = max(min(left, monitor.time_limit - monitor.seconds), 0.0)
    # One thread: whether the list is complete must not hang on how many there are.
    if search.run(_NodeLimit(left), 1) == Status.INTERRUPTED:
        raise KeyboardInterrupt
    # The set itself is near, and its objective by another way may be a rounding above the bound.
    near = [one for one in search.sets if one.objective <= bound or one.columns == own]
    found = {tuple(units.units_of(columns) or ()): objective for columns, objective in near}
    return found, search.is_closed and len(found) <= most


def _swapped(
    blocks: UnitPricing,
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
