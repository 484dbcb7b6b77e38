"""Search in a wide table: in a working set, and then held against all columns, until both agree."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import numpy as np

from exactk.result import Status
from exactk.search.descent import Descent, trusted_objective
from exactk.search.local_search import MOST_PATIENCES, LocalSearch
from exactk.search.native_state import make_state
from exactk.search.path import PathSearch, Support
from exactk.search.state import State
from exactk.search.working_set import WorkingSet, highest
from exactk.types import Indices
from exactk.utils.monitor import Monitor

__all__ = ["WidePathSearch", "WideSearch"]


# The rounds of a set spend at most this effort; then another set has its turn.
SET_EFFORT = 0.25
# Shares of a set: columns that gain by a swap, by an addition, and beside parts of the support.
SHARE = 0.2
PARTS = 4
PART_OUT = 24
# Sizes of a path that choose the columns of its first set.
FIRST_SIZES = 8


def _descended(
    descent: Descent, state: State, incumbent: float, monitor: Monitor
) -> tuple[list[int], float]:
    """Swap down from the support in a state; where that led and the objective there."""
    if not descent.run(state, stop=lambda: monitor.expired):
        # It was left on the way, after updates that nobody has checked.
        state.refresh()
    return state.support, trusted_objective(state, incumbent)


class WideSearch:
    """As `LocalSearch`, where the search takes place in working sets.

    The end is a support that no swap with any column of the table improves, as it is for
    `LocalSearch`. What the rounds on the way can reach hangs on the sets, whose choice is a
    heuristic: the columns that explain most alone, and those that gain most beside the best
    support, by addition or swap, and beside random parts of it.

    Parameters
    ----------
    state : State
        Of the whole problem.
    k : int
    working : WorkingSet
    rng : Generator
    monitor : Monitor
    """

    def __init__(
        self, state: State, k: int, working: WorkingSet, rng: np.random.Generator, monitor: Monitor
    ) -> None:
        self.problem, self.state, self.k = state.problem, state, k
        self.working, self.rng, self.monitor = working, rng, monitor
        self.descent = Descent(state.problem)
        self.best: Support = ()
        self.objective = inf
        self.trace: list[float] = []
        self.swaps = self._moves = 0
        self._elite: dict[Support, float] = {}
        self._doubted: Support = ()

    def run(self, starts: Sequence[Sequence[int]], effort: float) -> Status:
        """Descend from the starts, the first a good one, then search until something ends it."""
        try:
            return self._go(starts, effort)
        except KeyboardInterrupt:
            if not self.best:
                raise
            return Status.INTERRUPTED

    def _go(self, starts: Sequence[Sequence[int]], effort: float) -> Status:
        self._offer(starts[0], self.problem.objective(starts[0]))
        independent = self.state.load(self.best)
        others, left, most = list(starts[1:]), effort, MOST_PATIENCES * effort
        if effort == 0 and not others and independent and self.state.best_swap() is None:
            return Status.CONVERGED
        while not self.monitor.expired:
            share = min(left, most, SET_EFFORT)
            before = self.objective
            self._fill(others, varied=share > 0)
            status = self._search(others, share)
            if status != Status.CONVERGED:
                return status
            others = []
            lacking = self._has_room()
            # As in `LocalSearch`: a gain gives new patience, and that has an end.
            left, most = effort if self.objective < before else left - share, most - share
            # No more effort, or a perfect fit, which nothing can better.
            ended = min(left, most) <= 0 or self.objective <= self.state.tie_tolerance
            if ended and not lacking:
                return Status.CONVERGED
        return Status.TIME_LIMIT

    def _offer(self, support: Sequence[int], objective: float) -> None:
        if objective < self.objective - self.state.tie_tolerance:
            self.best, self.objective = tuple(sorted(support)), objective
            self.trace.append(objective)

    def _fill(self, others: Sequence[Sequence[int]], varied: bool) -> None:
        """Choose the columns of the set, while the state holds the best support."""
        share = int(SHARE * self.working.size)
        state = self.state
        groups: list[Sequence[int] | Indices] = [self.best]
        if np.isfinite(state.objective):
            groups += [highest(state.swap_gains(), share), *others, highest(state.gains(), share)]
        groups += self._elite
        if varied:
            groups += [self._beside_a_part(share // PARTS) for _ in range(PARTS)]
        self.working.fill(groups)

    def _beside_a_part(self, most: int) -> Indices:
        """The columns that gain most beside a random part of the best support."""
        free = [p for p in self.best if p not in self.state.fixed]
        out = self.rng.permutation(free)[: max(1, min(self.k, PART_OUT) // 2)]
        if not self.state.load([p for p in self.best if p not in out]):
            most = 0
        return highest(self.state.gains(), most)

    def _search(self, others: Sequence[Sequence[int]], effort: float) -> Status:
        """Search the set, from the best support and other starts."""
        working = self.working
        for start in others:
            if not working.has(start) and not self.monitor.expired:
                self._descend_among_all(start)
        ways = [self.best, *(start for start in others if working.has(start))]
        small = make_state(working.small, self.k)
        small.moves = self._moves
        search = LocalSearch(small, self.k, self.rng, self.monitor)
        for support, objective in ((self.best, self.objective), *self._elite.items()):
            if working.has(support):
                search.offer(working.to_local(support), objective)
        status = search.run([working.to_local(way) for way in ways], effort)
        self._moves, self.swaps = small.moves, self.swaps + small.swaps
        self._elite = {tuple(working.to_global(key)): f for key, f in search.elite.items()}
        # What was best in between is part of the trace.
        least = self.objective - self.state.tie_tolerance
        self.trace += [objective for objective in search.trace[:-1] if objective < least]
        self._offer(working.to_global(search.best), search.objective)
        return status

    def _has_room(self) -> bool:
        """Whether some column, of all there are, still improves the best support by a swap."""
        if not self.state.load(self.best):
            return False
        move = self.state.best_swap()
        if move is None:
            return False
        if self._doubted != self.best and not self.working.has(move.column):
            self._doubted = self.best
            return True
        # The set had the column and saw no gain, by rounding: what all columns say counts.
        before = self.objective
        self._descend_among_all(self.best)
        return self.objective < before

    def _descend_among_all(self, start: Sequence[int]) -> None:
        state = self.state
        before = state.swaps
        if state.load(start):
            self._offer(*_descended(self.descent, state, self.objective, self.monitor))
        self.swaps += state.swaps - before


class WidePathSearch:
    """As `PathSearch`, where the search takes place in working sets that all sizes share.

    Parameters
    ----------
    state : State
        Of the whole problem, with room for the largest size.
    working : WorkingSet
    greedy : sequence of int
        A greedy support in order of entry.
    prefixes : sequence of float
        Objective of each of its prefixes.
    rng : Generator
    monitor : Monitor
    """

    def __init__(
        self,
        state: State,
        working: WorkingSet,
        greedy: Sequence[int],
        prefixes: Sequence[float],
        rng: np.random.Generator,
        monitor: Monitor,
    ) -> None:
        self.state, self.working = state, working
        self.greedy, self.prefixes = list(greedy), list(prefixes)
        self.rng, self.monitor = rng, monitor
        self.descent = Descent(state.problem)
        self.first = len(greedy) - len(prefixes) + 1
        self.bests: list[Support] = [
            tuple(sorted(self.greedy[:k])) for k in range(self.first, len(greedy) + 1)
        ]
        self._doubted: set[Support] = set()
        self.objectives = list(prefixes)
        self.traces = [[objective] for objective in prefixes]
        self.swaps = 0

    def run(self, effort: float) -> None:
        """Search all sizes; Ctrl-C is passed on, and what was found until then is kept."""
        # What is of use to a size is of use to its neighbours: some will do at first.
        lacking = np.unique(np.linspace(0, len(self.bests) - 1, FIRST_SIZES).astype(np.intp))
        while lacking.size and not self.monitor.expired:
            self.working.fill([self.greedy, *self._useful(lacking), *reversed(self.bests)])
            self._search(effort)
            effort, lacking = 0.0, self._lacking()

    def _search(self, effort: float) -> None:
        working = self.working
        small = make_state(working.small, len(self.greedy))
        sizes = PathSearch(
            small, working.to_local(self.greedy), self.prefixes, self.rng, self.monitor
        )
        for best, objective in zip(self.bests, self.objectives, strict=True):
            if working.has(best):
                sizes.offer(working.to_local(best), objective)
        try:
            sizes.run(effort)
        finally:
            # An interrupt leaves what was found until then.
            self.swaps += small.swaps
            for best, objective in zip(sizes.bests, sizes.objectives, strict=True):
                self._offer(working.to_global(best), objective)

    def _offer(self, support: Sequence[int], objective: float) -> None:
        i = len(support) - self.first
        if objective < self.objectives[i] - self.state.tie_tolerance:
            self.bests[i], self.objectives[i] = tuple(sorted(support)), objective
            self.traces[i].append(objective)

    def _lacking(self) -> Indices:
        """Numbers of the best supports that some column, of all there are, improves by a swap."""
        members = sorted({p for best in self.bests for p in best})
        self.state.problem.gram.prefetch(np.array(members, dtype=np.intp))
        lacking = []
        for i, best in enumerate(self.bests):
            if i == 0 or self.monitor.expired or not self.state.load(best):
                continue
            move = self.state.best_swap()
            if move is None:
                continue
            if best not in self._doubted and not self.working.has(move.column):
                self._doubted.add(best)
                lacking.append(i)
            elif self._descend_among_all():
                lacking.append(i)
        return np.array(lacking, dtype=np.intp)

    def _descend_among_all(self) -> bool:
        """Swap down from the support in the state; whether that brought a gain."""
        state = self.state
        swaps, before = state.swaps, self.objectives[state.size - self.first]
        self._offer(*_descended(self.descent, state, before, self.monitor))
        self.swaps += state.swaps - swaps
        return self.objectives[state.size - self.first] < before

    def _useful(self, which: Indices) -> list[Indices]:
        """For each of these best supports, the columns that gain most by a swap or an addition."""
        each = max(2, int(SHARE * self.working.size / max(1, len(which))))
        groups: list[Indices] = []
        for i in which:
            if self.state.load(self.bests[i]):
                by_swap = highest(self.state.swap_gains(), each)
                # The most useful of all sizes come before the others of any.
                groups.insert(0, by_swap[:1])
                groups += [by_swap, highest(self.state.gains(), each)]
        return groups
