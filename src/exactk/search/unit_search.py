"""The search for the best set of units that keeps the rules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext, suppress
from math import inf

import numpy as np

from exactk.native.threads import one_blas_thread
from exactk.problem.problem import Problem
from exactk.result import Answer, Status
from exactk.search.feasibility import SECONDS, Feasible, UndecidedError
from exactk.search.infeasibility import check_feasible, find_feasible, possible_sizes
from exactk.search.loss_unit_pricing import make_unit_pricing
from exactk.search.path import PATH_SHARE
from exactk.search.unit_pricing import UnitPricing
from exactk.search.units import Units
from exactk.types import Floats
from exactk.utils.monitor import Monitor

__all__ = ["UnitSearch", "greedy_units", "grow_units", "unit_entry_order", "unit_path"]


# The settings behind effort=1, as those of `exactk.search.local_search`; loading a set costs more
# here.
MOVES_PER_SQUARE = 6.0
MOST_MOVES = 250.0
MOST_PATIENCES = 3
FITTED_SHARE = 0.1
# Additions tried in turn before the completion of the set is left to the integer program.
TRIES = 4
# Seconds that an integer program has at least, however little is left of a time limit.
LEAST_SECONDS = 0.2
# Up to so many columns a product is too small to share out among threads.
FEW_COLUMNS = 4096


def grow_units(blocks: UnitPricing, feasible: Feasible, start: Sequence[int]) -> list[int]:
    """Add the best unit that leaves the set completable, until it has its size.

    Parameters
    ----------
    blocks : UnitPricing
        Holds the result afterwards.
    feasible : Feasible
    start : sequence of int
        Units that can be completed.

    Returns
    -------
    list of int
        In order of entry.
    """
    chosen = list(start)
    while True:
        blocks.load(chosen)
        if feasible.keeps(chosen):
            return chosen
        gains = np.where(feasible.additions(chosen), blocks.gains(), -inf)
        if not feasible.is_plain:
            ahead = _next_unplain(feasible, chosen, gains, blocks.tie_tolerance)
        else:
            ahead = [_next_plain(feasible, chosen, gains, blocks.tie_tolerance)]
        chosen += ahead


def _ordered(gains: Floats, tie_tolerance: float) -> list[int]:
    """Units by gain, the highest first; of ties the lowest."""
    top = float(gains.max())
    if top == -inf:
        return []
    first = int(np.argmax(gains >= top - tie_tolerance))
    order = np.argsort(-gains, kind="stable")
    found: list[int] = order[gains[order] > -inf].tolist()
    return [first, *(u for u in found if u != first)]


def _next_plain(feasible: Feasible, chosen: list[int], gains: Floats, tie_tolerance: float) -> int:
    """The best unit after which the set can still be completed."""
    return next(u for u in _ordered(gains, tie_tolerance) if feasible.completable([*chosen, u]))


def _next_unplain(
    feasible: Feasible, chosen: list[int], gains: Floats, tie_tolerance: float
) -> list[int]:
    """As above; after a few tries all that is missing at once, by value of single additions."""
    for unit in _ordered(gains, tie_tolerance)[:TRIES]:
        if feasible.completable([*chosen, unit]):
            return [unit]
    values = np.where(np.isfinite(gains), gains, 0.0)
    whole = feasible.complete(chosen, values)
    if whole is None:
        # What was completable before is so no more by the solver's tolerance.
        raise UndecidedError(
            f"no way was found to complete a set to k={feasible.k}", parameter="constraints"
        )
    return [u for u in whole if u not in chosen]


class UnitSearch:
    """The best sets of units of one size, and the rounds that look for better ones.

    Parameters
    ----------
    problem : Problem
        With rules.
    k : int
    rng : Generator
    monitor : Monitor
    blocks : UnitPricing or None
        To share what does not depend on the size with searches of other sizes.

    Attributes
    ----------
    best : list of int
        Units, in the order of the greedy choice if no swap was made.
    objective : float
    trace : list of float
    swaps : int
    """

    def __init__(
        self,
        problem: Problem,
        k: int,
        rng: np.random.Generator,
        monitor: Monitor,
        blocks: UnitPricing | None = None,
    ) -> None:
        self.blocks = make_unit_pricing(problem) if blocks is None else blocks
        self.units, self.problem, self.k = self.blocks.units, problem, k
        self.feasible, self._witness = _find_feasible_set(problem, self.units, k, _seconds(monitor))
        self.rng, self.monitor = rng, monitor
        self.best: list[int] = []
        self.objective = inf
        self.trace: list[float] = []
        self.swaps = self.moves = 0
        self._fixed = set(self.units.included)
        self._seen: set[frozenset[int]] = set()

    @property
    def support(self) -> list[int]:
        """Columns of the best set."""
        return self.units.columns_of(self.best)

    def run(self, starts: Sequence[Sequence[int]], effort: float) -> Status:
        """Search from the greedy set, from others, and then from parts of what was found."""
        few = self.problem.n_features <= FEW_COLUMNS
        try:
            with one_blas_thread() if few else nullcontext():
                self._go(starts, effort)
        except KeyboardInterrupt:
            if not self.best:
                raise
            return Status.INTERRUPTED
        return Status.TIME_LIMIT if self.monitor.expired else Status.CONVERGED

    def _go(self, starts: Sequence[Sequence[int]], effort: float) -> None:
        self.grow_from(self.units.included)
        self.descend_from(self._witness)
        for start in starts:
            units = self.units.units_of(start)
            if units is not None and self.feasible.keeps(units):
                self.descend_from(units)
        if effort > 0:
            self._rounds(effort)

    def grow_from(self, start: Sequence[int]) -> None:
        """Complete a set greedily and swap down from there."""
        try:
            grown = grow_units(self.blocks, self.feasible, start)
        except UndecidedError:
            grown = self._witness
            self.blocks.load(grown)
        self.moves += len(grown) - len(start)
        if not self.best:
            # However soon the clock ends it, there is something to give.
            self._offer(grown)
        self.descend_from(grown)

    def descend_from(self, start: Sequence[int]) -> None:
        """Take the steepest swap that keeps the rules until none lowers the objective."""
        blocks, feasible, chosen = self.blocks, self.feasible, list(start)
        if frozenset(chosen) in self._seen:
            return
        self._seen.add(frozenset(chosen))
        if blocks.members != chosen:
            blocks.load(chosen)
        while not self.monitor.expired:
            at = feasible.totals(chosen)
            allowed = [
                None if unit in self._fixed else feasible.swaps(chosen, at, unit)
                for unit in blocks.members
            ]
            move = blocks.best_swap(allowed)
            if move is None:
                break
            before = blocks.objective
            chosen = [u for u in chosen if u != move.out] + [move.unit]
            blocks.load(chosen)
            self.moves, self.swaps = self.moves + 2, self.swaps + 1
            if not blocks.objective < before:
                # Rounding promised a gain that the swap did not bring.
                break
        self._seen.add(frozenset(chosen))
        self._offer(chosen)

    def _offer(self, chosen: Sequence[int]) -> None:
        objective = self.blocks.objective
        if objective < self.objective and self.blocks.is_deficient:
            objective = self.problem.objective(self.units.columns_of(chosen))
        if objective < self.objective - self.blocks.tie_tolerance:
            self.best, self.objective = list(chosen), objective
            self.trace.append(objective)

    def _rounds(self, effort: float) -> None:
        """Drop a part of the best set and complete the rest another way, until that brings none."""
        patience = effort * min(MOVES_PER_SQUARE * self.k**2, MOST_MOVES)
        if not self.problem.loss.by_moments:
            # A move is then priced by some dozen fits, not by a formula.
            patience *= FITTED_SHARE
        first = last_gain = self.moves
        while not self.monitor.expired and self.objective > self.blocks.tie_tolerance:
            spent = self.moves
            if spent - last_gain >= patience or spent - first >= MOST_PATIENCES * patience:
                return
            before = self.objective
            free = [u for u in self.best if u not in self._fixed]
            if not free:
                return
            n_out = int(self.rng.integers(1, max(2, int(0.6 * len(free)) + 1)))
            out = set(self.rng.permutation(free)[:n_out].tolist())
            keep = [u for u in self.best if u not in out]
            if self.rng.random() < 0.5:
                self._regrow(keep, out)
            else:
                self._redraw(keep)
            self.moves += 1
            if self.objective < before:
                last_gain = self.moves
            end = min(last_gain + patience, first + MOST_PATIENCES * patience)
            self.monitor.report(self.moves, None if end == inf else int(end), self.objective)

    def _regrow(self, keep: list[int], out: set[int]) -> None:
        """Complete a part greedily, its first new unit none of those that were let go."""
        self.blocks.load(keep)
        fits = self.feasible.additions(keep)
        fits[list(out)] = False
        gains = np.where(fits, self.blocks.gains(), -inf)
        # One of the best few, drawn: the same part must not always lead the same way.
        for unit in self.rng.permutation(_ordered(gains, self.blocks.tie_tolerance)[:TRIES]):
            if fits[unit] and self.feasible.completable([*keep, int(unit)]):
                self.grow_from([*keep, int(unit)])
                return

    def _redraw(self, keep: list[int]) -> None:
        """Complete a part at random."""
        drawn = self.feasible.draw(keep, self.rng)
        if drawn is not None:
            self.moves += len(drawn) - len(keep)
            self.descend_from(drawn)


def _find_feasible_set(
    problem: Problem, units: Units, k: int, seconds: float = SECONDS
) -> tuple[Feasible, list[int]]:
    """The sets of a size that keep the rules and one of them; an error if there is none."""
    found = find_feasible(units, k, seconds)
    if found is None:
        check_feasible(problem, k, seconds)
        raise AssertionError("the same question had two answers")
    return found


def _seconds(monitor: Monitor) -> float:
    """What one integer program may take of the time that is left."""
    if monitor.time_limit is None:
        return SECONDS
    return float(np.clip(monitor.time_limit - monitor.seconds, LEAST_SECONDS, SECONDS))


def unit_entry_order(problem: Problem, support: Sequence[int]) -> list[int]:
    """Return the columns of whole units in the order in which greedy selection takes the units."""
    blocks = make_unit_pricing(problem)
    units = blocks.units
    left = units.units_of(support)
    assert left is not None  # what keeps the rules is made of whole units
    order: list[int] = []
    while left:
        blocks.load(order)
        gains = blocks.gains()[left]
        order.append(left.pop(int(np.argmax(gains >= gains.max() - blocks.tie_tolerance))))
    return units.columns_of(order)


def greedy_units(problem: Problem, k: int) -> Answer:
    """Forward selection by units that keeps the rules."""
    blocks = make_unit_pricing(problem)
    feasible, chosen = _find_feasible_set(problem, blocks.units, k)
    # Where it cannot be told what a step leads to, any set that keeps the rules has to do.
    with suppress(UndecidedError):
        chosen = grow_units(blocks, feasible, blocks.units.included)
    blocks.load(chosen)
    return Answer(
        blocks.units.columns_of(chosen), Status.CONVERGED, len(chosen), (blocks.objective,)
    )


def unit_path(
    problem: Problem, k_max: int, effort: float, rng: np.random.Generator, monitor: Monitor
) -> Iterator[Answer | None]:
    """Search every size that the rules allow, each from the size before as well."""
    blocks, possible = make_unit_pricing(problem), possible_sizes(problem, k_max)
    before: list[int] = []
    ended = Status.CONVERGED
    for k in range(1, k_max + 1):
        if k not in possible:
            yield None
            continue
        search = UnitSearch(problem, k, rng, monitor, blocks)
        if before and search.feasible.completable(before):
            search.grow_from(before)
        # An interrupt ends the path: what is left is grown from what there is.
        share = 0.0 if ended == Status.INTERRUPTED else effort * PATH_SHARE / len(possible)
        status = search.run([], share)
        ended = status if ended != Status.INTERRUPTED else ended
        before = search.best
        yield Answer(search.support, ended, search.swaps + len(before), tuple(search.trace))
