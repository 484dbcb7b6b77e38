"""Greedy start, steepest swaps with refit, and a search over many seeds: the default method."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from math import ceil, inf
from typing import ClassVar

import numpy as np

from exactk.checks import Check, Given, Number, Seed
from exactk.errors import InputError
from exactk.methods.base import Method, generator, given_supports
from exactk.monitor import Monitor
from exactk.problem import Problem
from exactk.result import Answer, Status
from exactk.search.descent import Descent, beam_search, grow
from exactk.search.native import make_state
from exactk.search.state import State

__all__ = ["Exchange"]

# The settings behind effort=1; benchmarks/effort.py shows what they reach and what more buys.
BEAM_WIDTH = 5
MOVES_PER_SQUARE = 20.0
MOST_MOVES = 1500.0
MOST_PATIENCES = 3
KICKED_OF = 12
# A path spends this many times the rounds of its largest size, over all sizes together.
PATH_SHARE = 2.0
ELITE = 30


class Exchange(Method):
    """Exactly k columns such that no swap of one member lowers the objective, and then better.

    Minimises f(S) = ‖HY‖² − tr(B_Sᵀ A_SS⁻¹ B_S) over supports of k columns. A greedy support is
    improved by the steepest single swap, each followed by a refit, until no swap helps: a
    1-swap-optimal support. All d·k swaps are priced together by two matrix products
    (`exactk.search.state`). Then come rounds from other seeds: a beam of greedy supports, random
    supports, the best one with some members exchanged, dropped and regrown, or crossed with
    another good one. The best is kept; the search ends when a number of moves (columns added and
    dropped) has brought nothing: 20·k² of them, at most 1,500, times `effort`.

    Parameters
    ----------
    effort : float or None
        How long to go on without a gain, in multiples of the measured default; 0 is greedy and
        swaps alone. None means 1, or "until the time limit" where one is given.
    init : array-like of int, or sequence of such, or None
        Supports to start from besides the method's own, for example an earlier result's: a
        search that was stopped goes on from there.
    random_state : int, Generator, RandomState or None
        Seed of the random rounds. None is a fixed seed: the same input gives the same answer.

    Notes
    -----
    Guaranteed: exactly k columns; status ``converged`` means that no single swap lowers f; the
    objective is at most that of greedy forward selection. Not guaranteed: the global optimum
    (k = 1 and k = d excepted).

    Examples
    --------
    >>> import exactk
    >>> from sklearn.datasets import load_digits
    >>> problem = exactk.Problem.from_arrays(*load_digits(return_X_y=True))
    >>> round(exactk.solve(problem, 5, effort=0).objective, 2)
    1164.92
    >>> round(exactk.solve(problem, 5).objective, 2)
    1158.47
    """

    checks: ClassVar[Mapping[str, Check]] = {
        "effort": Number("[0, inf]", none="1, or until the time limit"),
        "init": Given("a list of k columns, or several such lists, or None"),
        "random_state": Seed(),
    }

    def __init__(
        self,
        effort: float | None = None,
        init: object = None,
        random_state: object = None,
    ) -> None:
        self.effort = effort
        self.init = init
        self.random_state = random_state

    def run(self, problem: Problem, k: int, monitor: Monitor) -> Answer:  # noqa: D102
        rng, effort = generator(self.random_state), _check_effort(self.effort, monitor)
        starts = [s.tolist() for s in given_supports(self.init, problem, k)]
        state = make_state(problem, k)
        found = grow(state, k)
        greedy = state.support
        if not found:
            return Answer(greedy, Status.RANK_DEFICIENT, len(greedy), ordered=True)
        if k in (1, len(problem.candidates)):
            return Answer(greedy, Status.OPTIMAL, k, (state.objective,), ordered=True)
        search = _Search(state, k, rng, monitor)
        status = search.go([greedy, *starts], effort)
        unchanged = search.best == tuple(sorted(greedy))
        best = greedy if unchanged else search.best
        return Answer(best, status, state.swaps + k, tuple(search.trace), ordered=unchanged)

    def run_path(self, problem: Problem, k_max: int, monitor: Monitor) -> Iterator[Answer]:
        """Every size at once: neighbours in size give each other starts until none gains.

        The best support of size k is compared with that of k − 1 plus its best addition and that
        of k + 1 less its cheapest member, each swapped down, so the objective never rises with k.
        The rounds of random search are shared out among the sizes.
        """
        effort = 1.0 if self.effort is None else _check_effort(self.effort, monitor)
        if self.init is not None:
            raise InputError("init is a support of one size; a path has many: leave it out")
        return _Path(problem, k_max, generator(self.random_state), monitor).go(effort)


def _check_effort(effort: float | None, monitor: Monitor) -> float:
    if effort is None:
        return 1.0 if monitor.time_limit is None else inf
    value = float(min(effort, inf))
    if np.isinf(value) and monitor.time_limit is None:
        raise InputError("effort=inf never ends by itself: give a time_limit as well")
    return value


class _Search:
    """The best supports of one problem and size, and the rounds that look for better ones."""

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

    def go(self, starts: Sequence[Sequence[int]], effort: float) -> Status:
        """Descend from the starts, the first a good one, then search until something ends it."""
        try:
            self.seed(starts[0])
            self.descend()
            for start in starts[1:]:
                self.descend_from(start)
            if effort > 0:
                beam = beam_search(self.problem, self.k, BEAM_WIDTH, lambda: self.monitor.expired)
                for support in beam:
                    if len(support) == self.k:
                        self.descend_from(support)
                self.rounds(effort)
        except KeyboardInterrupt:
            if not self.best:
                raise
            return Status.INTERRUPTED
        return Status.TIME_LIMIT if self.monitor.expired else Status.CONVERGED

    def seed(self, start: Sequence[int]) -> None:
        """Note a support as it is, and load it: whatever else is found must be better."""
        if self.state.load(start):
            self.keep(self.state)
        else:
            self.offer(start, self.problem.objective(start))

    def rounds(self, effort: float) -> None:
        """Look for better supports until a number of moves has brought nothing."""
        # Small supports have few neighbours to try; beyond k = 8 more moves gain little.
        patience = effort * min(MOVES_PER_SQUARE * self.k**2, MOST_MOVES)
        first = last_gain = self.state.moves
        # Below the slack the fit is perfect and a further gain would be one of rounding.
        while not self.monitor.expired and self.objective > self.state.slack:
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
        if self.descent.is_new(start) and self.state.load(start):
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
        objective = state.objective
        if objective < self.objective and state.is_tight:
            # The problem goes back to the rows where the Gram matrix has lost digits.
            objective = self.problem.objective(state.support)
        self.offer(state.support, objective)

    def offer(self, support: Sequence[int], objective: float) -> None:
        """Note a support among the good ones, and as the best if it is."""
        key = tuple(sorted(support))
        self.elite[key] = objective
        if len(self.elite) > ELITE:
            del self.elite[max(self.elite, key=lambda key: self.elite[key])]
        if objective < self.objective - self.state.slack:
            self.best, self.objective = key, objective
            self.trace.append(objective)

    def _random(self) -> None:
        self.descend_from(self.rng.choice(self.problem.candidates, self.k, replace=False).tolist())

    def _split_best(self, least: float, most: float) -> tuple[list[int], list[int]]:
        """Members of the best support to keep and to let go, the latter a share of all."""
        size = min(self.k, KICKED_OF)
        low = max(1, ceil(least * size))
        n_out = int(self.rng.integers(low, max(low, int(most * size)) + 1))
        mixed = self.rng.permutation(self.best).tolist()
        return mixed[n_out:], mixed[:n_out]

    def _exchange_some(self) -> None:
        keep, out = self._split_best(0.0, 0.5)
        # Twice as many as there are members: without those that are members already, enough remain.
        most = min(len(self.problem.candidates), 2 * self.k)
        drawn = self.rng.choice(self.problem.candidates, most, replace=False)
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


class _Path:
    """The best supports of every size, each a neighbour's start."""

    def __init__(
        self, problem: Problem, k_max: int, rng: np.random.Generator, monitor: Monitor
    ) -> None:
        self.problem, self.monitor = problem, monitor
        state = make_state(problem, k_max)
        self.prefixes: list[float] = []
        while state.size < k_max and grow(state, state.size + 1):
            exact = state.objective if not state.is_tight else problem.objective(state.support)
            self.prefixes.append(exact)
        self.greedy = state.support
        self.rank = len(self.greedy)
        self.k_max = k_max
        self.state = state
        descent = Descent(problem)
        self.searches = [_Search(state, k, rng, monitor, descent) for k in range(1, self.rank + 1)]

    def go(self, effort: float) -> Iterator[Answer]:
        """Search all sizes, then give them in order."""
        interrupted = False
        try:
            for k, search in enumerate(self.searches, start=1):
                search.offer(self.greedy[:k], self.prefixes[k - 1])
                if not self.monitor.expired:
                    search.seed(self.greedy[:k])
                    search.descend()
            self._sweep()
            if effort > 0:
                for search in self.searches[1:]:
                    search.rounds(effort * PATH_SHARE / self.k_max)
                self._sweep()
        except KeyboardInterrupt:
            if not all(search.best for search in self.searches):
                raise
            interrupted = True
        self._close()
        for k in range(1, self.k_max + 1):
            yield self._answer(k, interrupted)

    def _close(self) -> None:
        """Make sure, however the search ended, that a column more is never worse."""
        # As `solve` will grade it: what a state believes may differ in the last digits.
        least = self.problem.objective(self.searches[0].best)
        for smaller, larger in pairwise(self.searches):
            objective = self.problem.objective(larger.best)
            if objective > least:
                larger.best = tuple(sorted(self._one_more(smaller.best)))
                objective = self.problem.objective(larger.best)
            least = larger.objective = objective

    def _one_more(self, support: Sequence[int]) -> list[int]:
        """Return a support with the best addition, or any where they all depend on it."""
        if self.state.load(support) and grow(self.state, len(support) + 1):
            return self.state.support
        spare = next(p for p in self.problem.candidates if p not in support)
        return [*support, int(spare)]

    def _answer(self, k: int, interrupted: bool) -> Answer:
        search = self.searches[min(k, self.rank) - 1]
        if k > self.rank:
            return Answer(search.best, Status.RANK_DEFICIENT, self.rank)
        status = Status.CONVERGED
        if interrupted or self.monitor.expired:
            status = Status.INTERRUPTED if interrupted else Status.TIME_LIMIT
        if k in (1, len(self.problem.candidates)):
            status = Status.OPTIMAL
        return Answer(search.best, status, search.state.swaps + k, tuple(search.trace))

    def _sweep(self) -> None:
        """Pass starts up and down the sizes until nothing changes."""
        changed = True
        while changed and not self.monitor.expired:
            before = [search.objective for search in self.searches]
            ups = [(k - 1, k) for k in range(2, self.rank + 1)]
            downs = [(k + 1, k) for k in range(self.rank - 1, 1, -1)]
            for neighbour, k in ups + downs:
                if not self.monitor.expired:
                    self._start_from(neighbour, k)
            after = [search.objective for search in self.searches]
            changed = any(new < old for new, old in zip(after, before, strict=True))
            self.monitor.report(self.rank, None, after[-1])

    def _start_from(self, neighbour: int, k: int) -> None:
        """Give size k the neighbour's best support with a column more or less."""
        state = self.state
        if not state.load(self.searches[neighbour - 1].best):
            return
        if neighbour > k:
            state.drop(state.best_drop())
        elif not grow(state, k):
            return
        self.searches[k - 1].descend_from(state.support)
