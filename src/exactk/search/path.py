"""The search for every size at once: neighbours in size are each other's starts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from exactk.problem.problem import Problem
from exactk.search.descent import Descent, grow
from exactk.search.local_search import LocalSearch
from exactk.search.state import State
from exactk.utils.monitor import Monitor

__all__ = ["PathSearch", "make_monotone"]

Support = tuple[int, ...]

# A path spends this many times the rounds of its largest size, over all sizes together.
PATH_SHARE = 2.0


class PathSearch:
    """The best supports of every size, each a neighbour's start.

    Parameters
    ----------
    state : State
        Of the problem, with room for the largest size.
    greedy : sequence of int
        A greedy support in order of entry.
    prefixes : sequence of float
        Objective of each of its prefixes of at least one column that holds all that must be in:
        as many sizes are searched as there are.
    rng : Generator
    monitor : Monitor
    """

    def __init__(
        self,
        state: State,
        greedy: Sequence[int],
        prefixes: Sequence[float],
        rng: np.random.Generator,
        monitor: Monitor,
    ) -> None:
        self.state, self.monitor = state, monitor
        self.greedy, self.rank = list(greedy), len(greedy)
        self.first = self.rank - len(prefixes) + 1
        self._passed_on: set[tuple[int, Support]] = set()
        descent = Descent(state.problem)
        sizes = range(self.first, self.rank + 1)
        self._searches = [LocalSearch(state, k, rng, monitor, descent) for k in sizes]
        for k, objective in enumerate(prefixes, start=self.first):
            self.offer(self.greedy[:k], objective)

    @property
    def bests(self) -> list[Support]:
        """The best support of each size."""
        return [search.best for search in self._searches]

    @property
    def objectives(self) -> list[float]:
        """Their objectives."""
        return [search.objective for search in self._searches]

    @property
    def traces(self) -> list[list[float]]:
        """Objectives of what was best in turn, for each size."""
        return [search.trace for search in self._searches]

    @property
    def swaps(self) -> int:
        """Swaps taken so far."""
        return self.state.swaps

    def offer(self, support: Sequence[int], objective: float) -> None:
        """Note a support of any size."""
        self._searches[len(support) - self.first].offer(support, objective)

    def run(self, effort: float) -> None:
        """Search all sizes; Ctrl-C is passed on, and what was found until then is kept."""
        for search in self._searches:
            if not self.monitor.expired:
                search.add_start(search.best)
                search.descend()
        self._sweep()
        if effort > 0:
            for search in self._searches[1:]:
                search.perturb(effort * PATH_SHARE / self.rank)
            self._sweep()

    def _sweep(self) -> None:
        """Pass starts up and down the sizes until nothing changes."""
        changed = True
        while changed and not self.monitor.expired:
            before = self.objectives
            ups = [(k - 1, k) for k in range(self.first + 1, self.rank + 1)]
            downs = [(k + 1, k) for k in range(self.rank - 1, self.first, -1)]
            for neighbour, k in ups + downs:
                if not self.monitor.expired:
                    self._start_from(neighbour, k)
            after = self.objectives
            changed = any(new < old for new, old in zip(after, before, strict=True))
            self.monitor.report(self.rank, None, after[-1])

    def _start_from(self, neighbour: int, k: int) -> None:
        """Give size k the neighbour's best support with a column more or less."""
        state, best = self.state, self._searches[neighbour - self.first].best
        # Once is enough: the same support would lead the same way.
        if (k, best) in self._passed_on:
            return
        self._passed_on.add((k, best))
        if not state.load(best):
            return
        if neighbour > k:
            state.drop(state.best_drop())
        elif not grow(state, k):
            return
        self._searches[k - self.first].descend_from(state.support)


def make_monotone(problem: Problem, state: State, bests: Sequence[Support]) -> list[Support]:
    """Make sure, however a search ended, that a column more is never worse.

    Parameters
    ----------
    problem : Problem
    state : State
        Of the problem, with room for the largest size.
    bests : sequence of tuple of int
        A support of each size, from some size on.

    Returns
    -------
    list of tuple of int
    """
    supports: list[Support] = []
    least = np.inf
    for best in bests:
        # As `solve` will grade it: what a state believes may differ in the last digits.
        objective = problem.objective(best)
        if objective > least:
            best = tuple(sorted(_one_more(problem, state, supports[-1])))
            objective = problem.objective(best)
        supports.append(best)
        least = objective
    return supports


def _one_more(problem: Problem, state: State, support: Support) -> list[int]:
    """Return a support with the best addition, or any where they all depend on it."""
    if state.load(support) and grow(state, len(support) + 1):
        return state.support
    spare = next(p for p in problem.candidates if p not in support)
    return [*support, int(spare)]
