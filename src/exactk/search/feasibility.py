"""Which sets of units keep the rules, and how a part of one can be completed.

Counting decides where it is enough; otherwise a greedy completion is tried, then an integer program
(HiGHS through SciPy) with a time limit. Conflicts of correlated columns are added to the program as
they turn up. If the time ends, the question stays open and the error says so.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from exactk.errors import InputError
from exactk.search.units import CorrelationConflicts, Units
from exactk.types import Bools, Floats

__all__ = ["Feasible", "InfeasibleError", "UndecidedError"]

Counts = npt.NDArray[np.int64]

# Costs are sums: one that is this share above the budget is at the budget.
ROUNDING = 1e-9
# Seconds that an integer program may take before the question is given up as open.
SECONDS = 10.0
# Completions of a set with clashes that are tried before the integer program, and for how long.
TRIES, TRY_SECONDS = 40, 1.0
# Units up to which the clashes of all pairs are held together, one byte each.
MOST_PAIRED = 4096
# What SciPy's milp says when its time is up.
OUT_OF_TIME = 1


class InfeasibleError(InputError):
    """No set of columns keeps all constraints."""


class UndecidedError(InfeasibleError):
    """Whether any set keeps all constraints could not be told in time, and none was found."""


@dataclass(frozen=True, eq=False)
class _Totals:
    """What a set of units adds up to."""

    size: int
    cost: float
    counts: Counts
    conflicts: Counts


class Feasible:
    """The sets of units that keep the rules of a problem at one size.

    Parameters
    ----------
    units : Units
    k : int
    forbid_duplicates : bool
        Whether copies of a column are kept apart: of several, one is chosen.
    seconds : float
        Most time for one integer program.
    """

    def __init__(
        self, units: Units, k: int, *, forbid_duplicates: bool = True, seconds: float = SECONDS
    ) -> None:
        rules = units.rules
        self.units, self.k, self.seconds = units, k, seconds
        self.weights, self.costs = units.weights, units.costs
        self.budget = np.inf if rules.budget is None else rules.budget * (1 + ROUNDING) + 1e-300
        self.correlation_conflicts = CorrelationConflicts(
            units, rules.max_correlation, forbid_duplicates=forbid_duplicates
        )
        # More than k is as good as k + 1, and numbers of any length are short then.
        self.low = np.array([min(q.at_least, k + 1) for q in rules.quotas], dtype=np.int64)
        most = [k if q.at_most is None else min(q.at_most, k) for q in rules.quotas]
        self.high = np.array(most, dtype=np.int64)
        self.shares = np.zeros((len(rules.quotas), len(units)), dtype=np.int64)
        for f, quota in enumerate(rules.quotas):
            inside = np.zeros(units.problem.n_features, dtype=bool)
            inside[list(quota.columns)] = True
            self.shares[f] = np.where(units.spread(inside), self.weights, 0)
        alive = units.selectable
        self._plain = (
            not self.correlation_conflicts.is_active
            and rules.budget is None
            and bool((self.weights[alive] == 1).all())
            and bool(((self.shares > 0).sum(axis=0) <= 1).all())
        )

    def totals(self, chosen: Sequence[int]) -> _Totals:
        """Return what a set adds up to."""
        which = list(chosen)
        return _Totals(
            int(self.weights[which].sum()),
            float(self.costs[which].sum()),
            self.shares[:, which].sum(axis=1),
            self.correlation_conflicts.count(which),
        )

    def keeps(self, chosen: Sequence[int]) -> bool:
        """Whether a set keeps all rules."""
        at = self.totals(chosen)
        return bool(
            at.size == self.k
            and at.cost <= self.budget
            and (at.counts >= self.low).all()
            and (at.counts <= self.high).all()
            and not at.conflicts[list(chosen)].any()
            and set(self.units.included) <= set(chosen)
            and self.units.selectable[list(chosen)].all()
        )

    def swaps(self, chosen: Sequence[int], at: _Totals, out: int) -> Bools:
        """Return which units may come in for `out`, a unit of a set that keeps all rules."""
        left = at.counts - self.shares[:, out]
        fits = self.units.selectable & (self.weights == self.weights[out])
        fits &= at.cost - self.costs[out] + self.costs <= self.budget
        for f in range(len(self.low)):
            count = left[f] + self.shares[f]
            fits &= (count >= self.low[f]) & (count <= self.high[f])
        if self.correlation_conflicts.is_active:
            fits &= at.conflicts - self.correlation_conflicts.of(out) == 0
        fits[list(chosen)] = False
        return fits

    def additions(self, chosen: Sequence[int]) -> Bools:
        """Return which units may be added as far as the set itself goes, not its completion."""
        at = self.totals(chosen)
        fits = self.units.selectable & (at.size + self.weights <= self.k)
        fits &= at.cost + self.costs <= self.budget
        fits &= (at.counts[:, None] + self.shares <= self.high[:, None]).all(axis=0)
        fits &= at.conflicts == 0
        fits[list(chosen)] = False
        return fits

    @property
    def is_plain(self) -> bool:
        """Whether counting alone tells if a set can be completed."""
        return self._plain

    @property
    def is_closed(self) -> bool:
        """Whether what is left of a set that keeps the rules keeps those of its size."""
        return bool((self.low == 0).all() and (self.weights[self.units.selectable] == 1).all())

    def completable(self, chosen: Sequence[int]) -> bool:
        """Whether a set can be completed to one that keeps all rules, as far as can be told."""
        if not self._plain:
            try:
                return self.completed(chosen) is not None
            except UndecidedError:
                return False
        at = self.totals(chosen)
        free = self.units.selectable.copy()
        free[list(chosen)] = False
        there = (self.shares[:, free] > 0).sum(axis=1)
        need = np.maximum(self.low - at.counts, 0)
        room = np.minimum(self.high - at.counts, there)
        outside = int((free & ~(self.shares > 0).any(axis=0)).sum())
        left = self.k - at.size
        return bool(
            (need <= room).all() and need.sum() <= left <= room.sum() + outside and left >= 0
        )

    def completed(self, chosen: Sequence[int]) -> list[int] | None:
        """Return any set that contains `chosen` and keeps all rules; None if there is none."""
        found = self._filled(chosen, -self.costs)
        if found is None and self.correlation_conflicts.is_active:
            found = self._filled_at_random(chosen)
        return found or self.complete(chosen, np.zeros(len(self.units)))

    def _filled(self, chosen: Sequence[int], values: Floats) -> list[int] | None:
        """Add the unit of highest value that fits, again and again; None where that fails.

        What quotas lack comes first. Far cheaper than the integer program, which has the last
        word where this finds nothing.
        """
        filled = list(chosen)
        while not self.keeps(filled):
            fits = self._wanted(filled)
            if not fits.any():
                return None
            filled.append(int(np.argmax(np.where(fits, values, -np.inf))))
        return filled

    def _filled_at_random(self, chosen: Sequence[int]) -> list[int] | None:
        """The same, and of what fits first what clashes least with the rest; several tries."""
        if len(self.units) > MOST_PAIRED:
            return None
        pairs, rng = self.correlation_conflicts.pairs(), np.random.default_rng(0)
        until = time.perf_counter() + min(TRY_SECONDS, self.seconds)
        for _ in range(TRIES):
            filled = list(chosen)
            while not self.keeps(filled):
                fits = np.flatnonzero(self._wanted(filled))
                if fits.size == 0:
                    break
                degree = pairs[np.ix_(fits, fits)].sum(axis=1)
                # A little chance: the same way would fail again.
                blurred = degree + 0.2 * rng.random(len(fits)) * (1 + degree)
                filled.append(int(fits[np.argmin(blurred)]))
            else:
                return filled
            if time.perf_counter() > until:
                break
        return None

    def _wanted(self, chosen: Sequence[int]) -> Bools:
        """Units that may be added; where quotas lack members, of those."""
        fits = self.additions(chosen)
        lacking = self.shares[:, list(chosen)].sum(axis=1) < self.low
        if lacking.any():
            fits &= (self.shares[lacking] > 0).any(axis=0)
        return fits

    def complete(self, chosen: Sequence[int], values: Floats) -> list[int] | None:
        """Return a set that contains `chosen` and keeps all rules, of the highest total value.

        None if there is none. A small mixed-integer program; sets with clashes are cut off as
        they turn up, each time with all units that clash with each other.

        Raises
        ------
        UndecidedError
            The program did not end in time.
        """
        from scipy.optimize import Bounds, LinearConstraint, milp
        from scipy.sparse import csr_array, vstack

        n, until = len(self.units), time.perf_counter() + self.seconds
        low, high = np.zeros(n), self.units.selectable.astype(float)
        low[list(chosen)] = low[self.units.included] = 1.0
        if n == 0 or (low > high).any():
            return None
        rows, floor, ceiling = [self.weights[None]], [float(self.k)], [float(self.k)]
        if np.isfinite(self.budget):
            rows, floor, ceiling = [*rows, self.costs[None]], [*floor, 0.0], [*ceiling, self.budget]
        if len(self.low):
            rows.append(self.shares)
            floor, ceiling = [*floor, *self.low.tolist()], [*ceiling, *self.high.tolist()]
        matrix: Any = csr_array(np.vstack(rows).astype(float))
        scale = float(np.abs(values).max()) or 1.0
        while (left := until - time.perf_counter()) > 0:
            found = milp(
                -values / scale,
                integrality=np.ones(n),
                bounds=Bounds(low, high),
                constraints=LinearConstraint(matrix, np.array(floor), np.array(ceiling)),
                options={"time_limit": left},
            )
            if found.x is None:
                if found.status == OUT_OF_TIME:
                    break
                return None
            solution = np.flatnonzero(found.x > 0.5).tolist()
            cuts = self._cuts(solution)
            if not cuts:
                # The solver's tolerance is not ours.
                return solution if self.keeps(solution) else None
            extra = np.zeros((len(cuts), n))
            for row, clique in zip(extra, cuts, strict=True):
                row[clique] = 1.0
            matrix = vstack([matrix, csr_array(extra)])
            floor, ceiling = [*floor, *[0.0] * len(cuts)], [*ceiling, *[1.0] * len(cuts)]
        raise UndecidedError(
            f"no set of k={self.k} was found that keeps all constraints, and whether there is one "
            f"could not be told in {self.seconds:.3g} seconds", parameter="constraints",
            hint="relax one, or ask for a smaller k",
        )  # fmt: skip

    def draw(self, chosen: Sequence[int], rng: np.random.Generator) -> list[int] | None:
        """Return a random set that contains `chosen` and keeps all rules; None if there is none."""
        if not self._plain:
            values = rng.random(len(self.units))
            try:
                return self._filled(chosen, values) or self.complete(chosen, values)
            except UndecidedError:
                return None
        drawn = list(chosen)
        while not self.keeps(drawn):
            fits = rng.permutation(np.flatnonzero(self.additions(drawn))).tolist()
            found = next((u for u in fits if self.completable([*drawn, u])), None)
            if found is None:
                return None
            drawn.append(found)
        return drawn

    def _cuts(self, solution: list[int]) -> list[list[int]]:
        """Return sets of units, of which at most one may be in, that a solution has two of."""
        cuts = []
        for i, unit in enumerate(solution):
            if not self.correlation_conflicts.is_active:
                break
            clash = self.correlation_conflicts.of(unit)
            pairs = [(unit, other) for other in solution[i + 1 :] if clash[other]]
            cuts += [self.correlation_conflicts.clique(*pair) for pair in pairs]
        return cuts
