"""Which sets of units keep the rules: can a part be completed, and if not, what is in the way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from exactk.errors import InputError, listing
from exactk.problem import Problem
from exactk.rules import Rules
from exactk.search.units import Clashes, Units

__all__ = ["Feasible", "InfeasibleError", "check_feasible", "possible_sizes"]

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Counts = npt.NDArray[np.int64]

# Costs are sums: one that is this share above the budget is at the budget.
ROUNDING = 1e-9
# Rounds of cutting off sets with clashes before the question is given up as open.
MOST_CUTS = 200


class InfeasibleError(InputError):
    """No set of columns keeps all constraints."""


@dataclass(frozen=True, eq=False)
class _Totals:
    """What a set of units adds up to."""

    size: int
    cost: float
    counts: Counts
    clashes: Counts


class Feasible:
    """The sets of units that keep the rules of a problem at one size.

    Parameters
    ----------
    units : Units
    k : int
    """

    def __init__(self, units: Units, k: int) -> None:
        rules = units.rules
        self.units, self.k = units, k
        self.weights, self.costs = units.weights, units.costs
        self.budget = np.inf if rules.budget is None else rules.budget * (1 + ROUNDING) + 1e-300
        self.clashes = Clashes(units, rules.max_correlation)
        self.low = np.array([family.at_least for family in rules.families], dtype=np.int64)
        self.high = np.array(
            [k if family.at_most is None else family.at_most for family in rules.families],
            dtype=np.int64,
        )
        self.shares = np.zeros((len(rules.families), len(units)), dtype=np.int64)
        for f, family in enumerate(rules.families):
            inside = np.zeros(units.problem.n_features, dtype=bool)
            inside[list(family.columns)] = True
            self.shares[f] = np.where(units.spread(inside), self.weights, 0)
        alive = units.alive
        self._plain = (
            rules.max_correlation is None
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
            self.clashes.count(which),
        )

    def keeps(self, chosen: Sequence[int]) -> bool:
        """Whether a set keeps all rules."""
        at = self.totals(chosen)
        return bool(
            at.size == self.k
            and at.cost <= self.budget
            and (at.counts >= self.low).all()
            and (at.counts <= self.high).all()
            and not at.clashes[list(chosen)].any()
            and set(self.units.included) <= set(chosen)
            and self.units.alive[list(chosen)].all()
        )

    def swaps(self, chosen: Sequence[int], at: _Totals, out: int) -> Flags:
        """Return which units may come in for `out`, a unit of a set that keeps all rules."""
        left = at.counts - self.shares[:, out]
        fits = self.units.alive & (self.weights == self.weights[out])
        fits &= at.cost - self.costs[out] + self.costs <= self.budget
        for f in range(len(self.low)):
            count = left[f] + self.shares[f]
            fits &= (count >= self.low[f]) & (count <= self.high[f])
        if self.clashes.limit is not None:
            fits &= at.clashes - self.clashes.of(out) == 0
        fits[list(chosen)] = False
        return fits

    def additions(self, chosen: Sequence[int]) -> Flags:
        """Return which units may be added as far as the set itself goes, not its completion."""
        at = self.totals(chosen)
        fits = self.units.alive & (at.size + self.weights <= self.k)
        fits &= at.cost + self.costs <= self.budget
        fits &= (at.counts[:, None] + self.shares <= self.high[:, None]).all(axis=0)
        fits &= at.clashes == 0
        fits[list(chosen)] = False
        return fits

    @property
    def is_plain(self) -> bool:
        """Whether counting alone tells if a set can be completed."""
        return self._plain

    def completable(self, chosen: Sequence[int]) -> bool:
        """Whether a set can be completed to one that keeps all rules."""
        if not self._plain:
            found = self._filled(chosen, -self.costs)
            return (found or self.complete(chosen, np.zeros(len(self.units)))) is not None
        at = self.totals(chosen)
        free = self.units.alive.copy()
        free[list(chosen)] = False
        there = (self.shares[:, free] > 0).sum(axis=1)
        need = np.maximum(self.low - at.counts, 0)
        room = np.minimum(self.high - at.counts, there)
        outside = int((free & ~(self.shares > 0).any(axis=0)).sum())
        left = self.k - at.size
        return bool(
            (need <= room).all() and need.sum() <= left <= room.sum() + outside and left >= 0
        )

    def _filled(self, chosen: Sequence[int], values: Floats) -> list[int] | None:
        """Add the unit of highest value that fits, again and again; None where that fails.

        What families lack comes first. Far cheaper than the integer program, which has the last
        word where this finds nothing.
        """
        filled = list(chosen)
        while not self.keeps(filled):
            fits = self.additions(filled)
            lacking = self.shares[:, filled].sum(axis=1) < self.low
            if lacking.any():
                fits &= (self.shares[lacking] > 0).any(axis=0)
            if not fits.any():
                return None
            filled.append(int(np.argmax(np.where(fits, values, -np.inf))))
        return filled

    def complete(self, chosen: Sequence[int], values: Floats) -> list[int] | None:
        """Return a set that contains `chosen` and keeps all rules, of the highest total value.

        None if there is none. A small mixed-integer program; sets with clashes are cut off as
        they turn up, each time with all units that clash with each other.
        """
        from scipy.optimize import Bounds, LinearConstraint, milp
        from scipy.sparse import csr_array, vstack

        n = len(self.units)
        low, high = np.zeros(n), self.units.alive.astype(float)
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
        for _ in range(MOST_CUTS):
            found = milp(
                -values / scale,
                integrality=np.ones(n),
                bounds=Bounds(low, high),
                constraints=LinearConstraint(matrix, np.array(floor), np.array(ceiling)),
            )
            if found.x is None:
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
        raise InputError(
            f"whether any {self.k} columns keep max_correlation={self.clashes.limit:g} beside the "
            f"other constraints could not be decided; raise it, or ask for a smaller k"
        )

    def draw(self, chosen: Sequence[int], rng: np.random.Generator) -> list[int] | None:
        """Return a random set that contains `chosen` and keeps all rules; None if there is none."""
        if not self._plain:
            values = rng.random(len(self.units))
            return self._filled(chosen, values) or self.complete(chosen, values)
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
            if self.clashes.limit is None:
                break
            clash = self.clashes.of(unit)
            pairs = [(unit, other) for other in solution[i + 1 :] if clash[other]]
            cuts += [self.clashes.clique(*pair) for pair in pairs]
        return cuts


def check_feasible(problem: Problem, k: int) -> None:
    """Raise an error that names the constraints in conflict, if no set of size k keeps them."""
    if problem.rules is None or _is_feasible(problem, k):
        return
    rules, blamed = problem.rules, []
    units = Units(problem)
    n_included = int(units.weights[units.included].sum())
    if n_included > k:
        names = listing(units.names[u] for u in units.included)
        raise InfeasibleError(
            f"k={k} is less than include asks for: {names} count {n_included}; ask for at least "
            f"k={n_included}, or include fewer"
        )
    for part in _parts(problem):
        without = part.drop(rules)
        # What can be left out without a way opening has no part in the conflict.
        if _is_feasible(problem.under(without), k):
            blamed.append(part.text)
        else:
            rules = without
    sizes = possible_sizes(problem, min(problem.n_usable, 3 * k + 20))
    near = sorted(sizes, key=lambda size: abs(size - k))[:3]
    way = f"; sizes that they allow: {', '.join(map(str, sorted(near)))}" if near else "; relax one"
    if not blamed:
        raise InfeasibleError(
            f"k={k} cannot be made up of the columns and groups that can be chosen{way}"
        )
    raise InfeasibleError(f"no set of k={k} keeps all of: {'; '.join(blamed)}{way}")


def possible_sizes(problem: Problem, k_max: int) -> list[int]:
    """Return the sizes up to k_max for which some set keeps the rules."""
    return [k for k in range(1, k_max + 1) if _is_feasible(problem, k)]


def _is_feasible(problem: Problem, k: int) -> bool:
    feasible = Feasible(Units(problem), k)
    if feasible.keeps(feasible.units.included):
        return True
    return feasible.completable(feasible.units.included)


@dataclass(frozen=True)
class _Part:
    """One constraint: what to call it, and the field of the rules with and without it."""

    text: str
    field: str
    item: Any = None

    def drop(self, rules: Rules) -> Rules:
        """Return the rules without this one."""
        now = getattr(rules, self.field)
        if self.field == "families":
            name, without = self.item
            changed: Any = tuple(replace(f, **without) if f.name == name else f for f in now)
        elif self.field == "include":
            changed = tuple(p for p in now if p not in self.item)
        elif self.field == "exclude":
            changed = ()
        else:
            changed = None
        return replace(rules, **{self.field: changed})


def _parts(problem: Problem) -> list[_Part]:
    """Return the constraints of a problem one by one, those that are blamed last first."""
    rules, units = problem.rules or Rules(), Units(problem)
    parts = []
    if rules.max_correlation is not None:
        parts.append(_Part(f"max_correlation={rules.max_correlation:g}", "max_correlation"))
    if rules.budget is not None:
        parts.append(_Part(f"budget={rules.budget:g}", "budget"))
    for family in rules.families:
        # Each bound by itself: the one may be in the way and the other not.
        if family.at_most is not None:
            text = f"at most {family.at_most} of {family.name!r}"
            parts.append(_Part(text, "families", (family.name, {"at_most": None})))
        if family.at_least:
            text = f"at least {family.at_least} of {family.name!r}"
            parts.append(_Part(text, "families", (family.name, {"at_least": 0})))
    for unit in units.included:
        columns = set(units.columns(unit).tolist())
        parts.append(_Part(f"include {units.names[unit]!r}", "include", columns))
    if rules.exclude:
        names = [problem.name(p) for p in rules.exclude]
        parts.append(_Part(f"exclude {listing(names)}", "exclude"))
    return parts
