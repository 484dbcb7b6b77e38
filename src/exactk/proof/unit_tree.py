"""Branch and bound over units, in NumPy: every kind of rule, and columns that depend on each other.

A part is what is in and what is free. All of its columns together have an objective that none of
its sets is below (leaps and bounds), and it rises when a unit is ruled out. A unit without which
it rises above the ceiling must be in. The last unit is added in closed form.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import inf

import numpy as np

from exactk.native.threads import one_blas_thread
from exactk.problem.problem import Problem
from exactk.proof.best_first import FoundSet, Node, NodeResult, Stop
from exactk.proof.unrestricted_fit import Fit, UnrestrictedFit
from exactk.search.feasibility import Feasible
from exactk.search.infeasibility import find_feasible
from exactk.search.state import TIE
from exactk.search.units import Units
from exactk.types import Floats, Indices

__all__ = [
    "Propagation",
    "UnitTree",
]


# Costs are sums in some order: what is above the budget by less than this may be at it.
ROUNDING = 1e-9


class Propagation:
    """Which units may still come in, and whether enough of them do.

    Parameters
    ----------
    feasible : Feasible
    """

    def __init__(self, feasible: Feasible) -> None:
        self.feasible, self.weights, self.k = feasible, feasible.weights, feasible.k
        self._budget = feasible.budget * (1 + ROUNDING)
        self._has_budget = bool(np.isfinite(feasible.budget))
        self._ruled = (
            self._has_budget or len(feasible.low) > 0 or feasible.correlation_conflicts.is_active
        )  # fmt: skip

    def left(self, inside: Sequence[int]) -> int:
        """Return how many of the k are missing."""
        return self.k - int(self.weights[list(inside)].sum())

    def __call__(self, inside: list[int], free: Indices) -> tuple[list[int], Indices] | None:
        """Return the units in and the units free as the rules have them; None if no set is left.

        Parameters
        ----------
        inside : list of int
            Units that are in.
        free : ndarray of intp
            Units that may be.
        """
        while True:
            left = self.left(inside)
            if left < 0:
                return None
            kept = free[self.weights[free] <= left]
            if self._ruled:
                within = self._within(inside, kept, left)
                if within is None:
                    return None
                kept = within
            there = int(self.weights[kept].sum())
            if there < left:
                return None
            if there > left or left == 0:
                return inside, kept
            # Whoever is left is needed.
            inside, free = inside + kept.tolist(), kept[:0]

    def _within(self, inside: list[int], free: Indices, left: int) -> Indices | None:
        """The free units that keep the rules beside those in; None where a rule is broken."""
        feasible = self.feasible
        at = feasible.totals(inside)
        if (
            at.cost > self._budget
            or (at.counts > feasible.high).any()
            or at.conflicts[inside].any()
        ):
            return None
        shares = feasible.shares[:, free]
        fits = (at.counts[:, None] + shares <= feasible.high[:, None]).all(axis=0)
        fits &= at.cost + feasible.costs[free] <= self._budget
        fits &= at.conflicts[free] == 0
        free = free[fits]
        need = feasible.low - at.counts
        if (need > left).any() or (need > feasible.shares[:, free].sum(axis=1)).any():
            return None
        if self._has_budget and at.cost + self._cheapest(free, left) > self._budget:
            return None
        return free

    def _cheapest(self, free: Indices, left: int) -> float:
        """The least that so many of the k cost, were units divisible."""
        weights, costs = self.weights[free], self.feasible.costs[free]
        order = np.argsort(costs / weights, kind="stable")
        before = np.cumsum(weights[order]) - weights[order]
        taken = np.clip((left - before) / weights[order], 0.0, 1.0)
        return float((costs[order] * taken).sum())


# Rough seconds of an exploration, of a step in it, and of a fit for each column cubed: by what it
# should take, not by the clock, so that a tree is explored in the same way every time.
QUICK, LONG = 5e-3, 0.2
STEP, PRICE, CUBED = 1e-4, 1e-4, 3e-9
# A column of which this share is left beside others can be priced by the Gram matrix to within
# this share of the total.
SAFE, NEAR = 1e-4, 1e-7

COPIES = (
    "columns that agree to ten digits, up to shift, scale and sign, are copies, of which one is "
    "chosen at most"
)


@dataclass(frozen=True, eq=False)
class _Node:
    """Units that are in, units that may be, and the fit on the columns of all of them."""

    inside: list[int]
    free: Indices
    bound: float
    fit: Fit | None = None


class UnitTree:
    """All sets of one size that keep the rules of a problem.

    Parameters
    ----------
    problem : Problem
    k : int
    feasible : Feasible or None
        Which sets of units there are; None for those that `exhaustive` looks at.

    Attributes
    ----------
    tolerance : float
        Bounds are right to this much.
    threads : int
    assumptions : tuple of str
        What the bounds rest on besides arithmetic.

    Raises
    ------
    UndecidedError
        Whether any set keeps the rules could not be told in time.

    Examples
    --------
    >>> import exactk, numpy as np
    >>> from sklearn.datasets import load_iris
    >>> problem = exactk.Problem.from_arrays(*load_iris(return_X_y=True))
    >>> tree = UnitTree(problem.with_constraints(exclude=[3]), 2)
    >>> root = tree.root()[0]
    >>> explored = tree.explore(root, np.inf, 1, np.zeros(1, dtype=np.int64), quick=False)
    >>> explored.found[-1].columns, explored.left
    ((1, 2), [])
    """

    threads = 1

    def __init__(self, problem: Problem, k: int, feasible: Feasible | None = None) -> None:
        self.problem, self.k = problem, k
        self.units = Units(problem) if feasible is None else feasible.units
        self._only: tuple[int, ...] | None = None
        free = self._open(feasible)
        live = [self._live(u) for u in range(len(self.units))]
        used = [live[u] for u in [*self.units.included, *free.tolist()]]
        columns = np.unique(np.concatenate([*used, np.zeros(0, dtype=np.intp)])).astype(np.intp)
        self.allowed = UnrestrictedFit(problem, columns)
        self.places = [np.searchsorted(columns, part).astype(np.intp) for part in live]
        self.tolerance = self.allowed.tolerance
        self.assumptions = self.allowed.assumptions
        if self._keeps_apart():
            self.assumptions = (COPIES, *self.assumptions)
        self._free = free

    def _open(self, feasible: Feasible | None) -> Indices:
        """Choose the sets that there are; return the units that may come in."""
        problem, units = self.problem, self.units
        rules = problem.rules
        self._is_empty = self._has_candidates = False
        if feasible is None and (rules is None or (rules.is_simple and not rules.include)):
            # Copies are no candidates, and make up the number where there is no other way.
            columns, self._has_candidates = problem.candidates, True
            if self.k > len(columns):
                barred = () if rules is None else rules.exclude
                spare = np.setdiff1d(problem.usable, [*columns, *barred])
                spare = spare[: self.k - len(columns)]
                self._only = tuple(sorted([*columns.tolist(), *spare.tolist()]))
                self._is_empty = len(self._only) < self.k
            self.feasible = Feasible(units, self.k, forbid_duplicates=False)
            free = np.flatnonzero(np.isin(units.singles, columns))
        else:
            if feasible is None:
                settled = find_feasible(units, self.k)
                self._is_empty = settled is None
                feasible = Feasible(units, self.k) if settled is None else settled[0]
            self.feasible = feasible
            free = np.setdiff1d(np.flatnonzero(units.selectable), units.included)
        self.narrow = Propagation(self.feasible)
        return free.astype(np.intp)

    def _keeps_apart(self) -> bool:
        """Whether copies of a column are not chosen together: with a ridge that may be better."""
        if self._has_candidates:
            return bool(self.problem.duplicates.size)
        units, correlation_conflicts = self.units, self.feasible.correlation_conflicts
        return units.has_duplicates and any(
            bool((correlation_conflicts.of(u) & units.duplicates_of(u)).any())
            for u in range(len(units.singles))
        )

    def _live(self, unit: int) -> Indices:
        columns = self.units.columns(unit)
        return columns[self.problem.x_scale[columns] > 0]

    def root(self) -> list[Node]:
        """Return parts that together hold all sets."""
        if self._is_empty:
            return []
        if self._only is not None:
            # With a ridge it matters which copies make up the number, and not all are looked at.
            shared = self.problem.penalty > 0
            return [Node(0.0 if shared else self.problem.objective(self._only), None)]
        node = self.fitted(_Node(list(self.units.included), self._free, 0.0))
        return [Node(node.bound, replace(node, fit=None))]

    def explore(
        self, part: Node, ceiling: float, n_best: int, stop: Stop, *, quick: bool
    ) -> NodeResult:
        """Look for sets with an objective below the ceiling in a part, for a while."""
        if self._only is not None:
            sure = self.problem.penalty == 0
            return NodeResult([FoundSet(self._only, part.bound)], nodes=1, is_sure=sure)
        node = part.state
        assert isinstance(node, _Node)
        with one_blas_thread():
            return _Exploration(self, ceiling, n_best).run(node, stop, QUICK if quick else LONG)

    def release(self) -> None:
        """Hold nothing but the fit of all columns."""

    def fitted(self, node: _Node) -> _Node:
        """Return a node with the fit on its columns."""
        units = [*node.inside, *node.free.tolist()]
        at = np.sort(np.concatenate([*(self.places[u] for u in units), np.zeros(0, dtype=np.intp)]))
        fit = self.allowed.fit(at.astype(np.intp))
        return replace(node, fit=fit, bound=max(node.bound, fit.objective))


@dataclass(eq=False)
class _Exploration:
    """One exploration: what it has found and what it may look at next."""

    tree: UnitTree
    ceiling: float
    n_best: int
    explored: NodeResult = field(default_factory=NodeResult)
    stack: list[_Node] = field(default_factory=list)
    spent: float = 0.0

    def __post_init__(self) -> None:
        # The objectives of the best found, negated: the worst of them on top.
        self._kept: list[float] = []

    @property
    def edge(self) -> float:
        """A part whose bound is not below this has no set of interest, but for rounding."""
        return self.ceiling - TIE * self.tree.problem.total

    def run(self, node: _Node, stop: Stop, most: float) -> NodeResult:
        """Look depth first, until nothing is left or it has taken long enough."""
        self.stack = [node]
        while self.stack and not stop[0] and self.spent < most:
            self.visit(self.stack.pop())
        self.explored.left = [
            Node(node.bound, replace(node, fit=None))
            for node in self.stack
            if node.bound < self.edge
        ]
        return self.explored

    def visit(self, node: _Node) -> None:
        """Look at a node: drop it, price its sets, or branch."""
        tree = self.tree
        self.explored.nodes += 1
        while True:
            self.spent += STEP
            narrowed = tree.narrow(node.inside, node.free)
            if narrowed is None:
                return
            node = self.updated(node, *narrowed)
            if node.bound >= self.edge:
                return
            left = tree.narrow.left(node.inside)
            if left == 0:
                self.price(node.inside)
                return
            if left == 1:
                self.complete(node)
                return
            fit = node.fit
            assert fit is not None
            losses = self.losses(node, fit)
            removed = int(tree.feasible.weights[node.free].sum()) - left
            rise = self.least_rise(node.free, losses, removed)
            node = replace(node, bound=max(node.bound, fit.objective + rise))
            if node.bound >= self.edge:
                return
            # Whoever cannot be spared is in.
            needed = fit.objective + losses >= self.edge
            if not needed.any():
                self.branch(node, fit, losses)
                return
            inside = node.inside + node.free[needed].tolist()
            node = replace(node, inside=inside, free=node.free[~needed])

    def updated(self, node: _Node, inside: list[int], free: Indices) -> _Node:
        """The node with the fit on what the rules have left of it."""
        gone = np.setdiff1d(node.free, [*inside, *free.tolist()])
        node = replace(node, inside=inside, free=free)
        if node.fit is None:
            node = self.tree.fitted(node)
        elif gone.size:
            node = self.without(node, gone.tolist())
        assert node.fit is not None
        self.spent += CUBED * len(node.fit.at) ** (3 if not node.fit.is_well else 2)
        return node

    def without(self, node: _Node, units: Sequence[int]) -> _Node:
        """The node after units were ruled out."""
        assert node.fit is not None
        places = np.concatenate([self.tree.places[u] for u in units])
        fit = self.tree.allowed.without(node.fit, places)
        return replace(node, fit=fit, bound=max(node.bound, fit.objective))

    def losses(self, node: _Node, fit: Fit) -> Floats:
        """How much the objective rises if each free unit is ruled out; 0 where that is unknown."""
        out = np.zeros(len(node.free))
        if not fit.is_well or len(fit.at) == 0:
            return out
        alone = fit.losses()
        places = [self.tree.places[u] for u in node.free.tolist()]
        single = np.array([len(part) == 1 for part in places], dtype=bool)
        if single.any():
            at = np.concatenate([part for part in places if len(part) == 1])
            out[single] = alone[np.searchsorted(fit.at, at)]
        for n in np.flatnonzero(~single).tolist():
            out[n] = fit.loss_together(places[n])
        return out

    def least_rise(self, free: Indices, losses: Floats, removed: int) -> float:
        """How much the objective rises at the least: of so much weight the dearest unit goes."""
        order = np.argsort(losses, kind="stable")
        reached = np.cumsum(self.tree.feasible.weights[free[order]]) >= removed
        return float(losses[order[np.argmax(reached)]]) if removed > 0 else 0.0

    def branch(self, node: _Node, fit: Fit, losses: Floats) -> None:
        """Put the two parts on the stack, that with the unit on top."""
        number = int(np.argmax(losses))
        if not fit.is_well:
            # Without it the others may be independent enough to be priced.
            places = [self.tree.places[u] for u in node.free.tolist()]
            weak = [fit.weak[np.searchsorted(fit.at, part)].sum() for part in places]
            number = int(np.argmax(weak))
        unit = int(node.free[number])
        rest = np.delete(node.free, number)
        self.spent += CUBED * len(fit.at) ** (2 if fit.is_well else 3)
        out = self.without(replace(node, free=rest), [unit])
        if out.bound < self.edge:
            self.stack.append(out)
        self.stack.append(replace(node, inside=[*node.inside, unit], free=rest))

    def complete(self, node: _Node) -> None:
        """Look at all sets with one more unit at once."""
        assert node.fit is not None
        prices, is_exact = self.last_prices(node, node.fit), node.fit.is_well
        self.spent += PRICE
        slack = 0.0 if is_exact else NEAR * self.tree.problem.total
        # The best first: it lowers the ceiling for the others.
        for n in np.argsort(prices, kind="stable").tolist():
            if prices[n] - slack >= self.ceiling:
                break
            units = [*node.inside, int(node.free[n])]
            if is_exact and np.isfinite(prices[n]):
                self.record(units, float(prices[n]))
            else:
                self.price(units)

    def last_prices(self, node: _Node, fit: Fit) -> Floats:
        """Objectives with each free unit, -inf where they must be computed one by one.

        Those are groups, and columns that nearly depend on those in.
        """
        places = self.tree.places
        prices = np.full(len(node.free), -inf)
        single = np.array([len(places[u]) == 1 for u in node.free.tolist()], dtype=bool)
        if single.any():
            none = np.zeros(0, dtype=np.intp)
            inside = np.concatenate([*(places[u] for u in node.inside), none])
            last = np.concatenate([places[u] for u in node.free[single].tolist()])
            found = self.tree.allowed.one_more(inside, last, 0.0 if fit.is_well else SAFE)
            if found is not None:
                prices[single] = found
        return prices

    def price(self, units: Sequence[int]) -> None:
        """Look at one set."""
        self.spent += PRICE
        tree = self.tree
        columns = tree.units.columns_of(units)
        places = np.concatenate([*(tree.places[u] for u in units), np.zeros(0, dtype=np.intp)])
        floor = tree.allowed.least_objective(np.sort(places).astype(np.intp))
        if floor is not None and floor < self.ceiling:
            self.explored.is_sure = False
        self.record(units, tree.problem.objective(columns))

    def record(self, units: Sequence[int], objective: float) -> None:
        """Keep a set if it is below the ceiling and keeps the rules."""
        if objective >= self.ceiling or not self.tree.feasible.keeps(units):
            return
        columns = tuple(sorted(self.tree.units.columns_of(units)))
        self.explored.found.append(FoundSet(columns, objective))
        heapq.heappush(self._kept, -objective)
        if len(self._kept) > self.n_best:
            heapq.heappop(self._kept)
        if len(self._kept) == self.n_best:
            self.ceiling = min(self.ceiling, -self._kept[0])
