"""Rounds of search for one size: swaps downhill from one seed after another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil, inf

import numpy as np

from exactk.result import Status
from exactk.search.descent import Descent, beam_search, grow, trusted_objective
from exactk.search.state import State
from exactk.utils.monitor import Monitor

__all__ = ["LocalSearch"]

# The settings behind effort=1; benchmarks/effort.py shows what they reach and what more buys.
BEAM_WIDTH = 5
MOVES_PER_SQUARE = 20.0
MOST_MOVES = 1500.0
MOST_PATIENCES = 3
KICKED_OF = 12
ELITE = 30


class LocalSearch:
    """The best supports of one problem and size, and the rounds that look for better ones.

    Parameters
    ----------
    state : State
        Of the problem, with room for k columns; what it holds is not used.
    k : int
    rng : Generator
    monitor : Monitor
    descent : Descent or None
        To share what is known of starts and ends with searches of other sizes.

    Attributes
    ----------
    best : tuple of int
        Sorted; empty before anything was found.
    objective : float
    elite : dict
        The best supports and their objectives.
    trace : list of float
        Objectives of what was best in turn.
    """

    def __init__(
        self,
        state: State,
        k: int,
        rng: np.random.Generator,
        monitor: Monitor,
        descent: Descent | None = None,
    ) -> None:
        self.problem, self.state, self.k = state.problem, state, k
        self.rng, self.monitor = rng, monitor
        self._fixed = state.fixed
        self._free = np.setdiff1d(self.problem.candidates, self._fixed)
        self.descent = Descent(state.problem) if descent is None else descent
        self.elite: dict[tuple[int, ...], float] = {}
        self.best: tuple[int, ...] = ()
        self.objective = inf
        self.trace: list[float] = []
        self.moves: list[Callable[[], None]] = [
            # Regrowing reads few new columns and finds most; the others lead out of its reach.
            self._regrow,
            self._regrow,
            self._regrow,
            self._random,
            self._exchange_some,
            self._exchange_some_for_elite,
            self._cross,
        ]

    @property
    def swaps(self) -> int:
        """Swaps taken so far."""
        return self.state.swaps

    def run(self, starts: Sequence[Sequence[int]], effort: float) -> Status:
        """Descend from the starts, the first a good one, then search until something ends it."""
        try:
            self.add_start(starts[0])
            self.descend()
            for start in starts[1:]:
                self.descend_from(start)
            if effort > 0:
                beam = beam_search(self.problem, self.k, BEAM_WIDTH, lambda: self.monitor.expired)
                for support in beam:
                    if len(support) == self.k:
                        self.descend_from(support)
                self.perturb(effort)
        except KeyboardInterrupt:
            if not self.best:
                raise
            return Status.INTERRUPTED
        return Status.TIME_LIMIT if self.monitor.expired else Status.CONVERGED

    def add_start(self, start: Sequence[int]) -> None:
        """Note a support as it is, and load it: whatever else is found must be better."""
        if self.state.load(start):
            self.keep(self.state)
        else:
            self.offer(start, self.problem.objective(start))

    def perturb(self, effort: float) -> None:
        """Look for better supports until a number of moves has brought nothing."""
        # Small supports have few neighbours to try; beyond k = 8 more moves gain little.
        patience = effort * min(MOVES_PER_SQUARE * self.k**2, MOST_MOVES)
        first = last_gain = self.state.moves
        # Below the slack the fit is perfect and a further gain would be one of rounding.
        while not self.monitor.expired and self.objective > self.state.tie_tolerance:
            spent = self.state.moves
            if spent - last_gain >= patience or spent - first >= MOST_PATIENCES * patience:
                return
            before = self.objective
            self.moves[int(self.rng.integers(len(self.moves)))]()
            # A round that comes to nothing at once has its price too, or none would end.
            self.state.moves += 1
            if self.objective < before:
                last_gain = self.state.moves
            end = min(last_gain + patience, first + MOST_PATIENCES * patience)
            total = None if end == inf else ceil(end)
            self.monitor.report(self.state.moves, total, self.objective)

    def descend_from(self, start: Sequence[int]) -> None:
        """Swap down from a support, unless that way is known."""
        if self.descent.mark_visited(start) and self.state.load(start):
            self.descend()

    def descend(self) -> None:
        """Swap down from the state as it is and keep what is found."""
        state = self.state
        if state.objective == inf:
            return
        ended = self.descent.run(state, self.objective, lambda: self.monitor.expired)
        if ended or state.objective < self.objective:
            self.keep(state)

    def keep(self, state: State) -> None:
        """Note the support of a state that was refreshed, or is worse than the best."""
        self.offer(state.support, trusted_objective(state, self.objective))

    def offer(self, support: Sequence[int], objective: float) -> None:
        """Note a support among the good ones, and as the best if it is."""
        key = tuple(sorted(support))
        self.elite[key] = objective
        if len(self.elite) > ELITE:
            del self.elite[max(self.elite, key=lambda key: self.elite[key])]
        if objective < self.objective - self.state.tie_tolerance:
            self.best, self.objective = key, objective
            self.trace.append(objective)

    def _random(self) -> None:
        n_free = self.k - len(self._fixed)
        drawn = self.rng.choice(self._free, n_free, replace=False)
        self.descend_from([*self._fixed, *drawn.tolist()])

    def _split_best(self, least: float, most: float) -> tuple[list[int], list[int]]:
        """Members of the best support to keep and to let go, the latter a share of all."""
        size = min(self.k - len(self._fixed), KICKED_OF)
        low = max(1, ceil(least * size))
        n_out = int(self.rng.integers(low, max(low, int(most * size)) + 1))
        mixed = self.rng.permutation([p for p in self.best if p not in self._fixed]).tolist()
        return self._fixed + mixed[n_out:], mixed[:n_out]

    def _exchange_some(self) -> None:
        keep, out = self._split_best(0.0, 0.5)
        # Twice as many as there are members: without those that are members already, enough remain.
        most = min(len(self._free), 2 * self.k)
        drawn = self.rng.choice(self._free, most, replace=False)
        fresh = [p for p in drawn.tolist() if p not in self.best]
        if len(fresh) >= len(out):
            self.descend_from(keep + fresh[: len(out)])

    def _exchange_some_for_elite(self) -> None:
        keep, out = self._split_best(0.0, 0.5)
        pool = sorted({p for key in self.elite for p in key} - set(self.best))
        if len(pool) >= len(out):
            self.descend_from(keep + self.rng.choice(pool, len(out), replace=False).tolist())

    def _regrow(self) -> None:
        keep, out = self._split_best(0.3, 0.6)
        if self.state.load(keep):
            # With nothing left of them, the columns let go cannot come back before the refresh.
            self.state.D[out] = 0.0
            if grow(self.state, self.k) and self.state.refresh():
                self.descend()

    def _cross(self) -> None:
        if len(self.elite) < 2:
            return
        keys = list(self.elite)
        first, second = (set(keys[i]) for i in self.rng.choice(len(keys), 2, replace=False))
        common, rest = sorted(first & second), sorted(first ^ second)
        self.descend_from(
            common + self.rng.choice(rest, self.k - len(common), replace=False).tolist()
        )
