"""Rounds of search by a loss that needs rows: swaps priced by its model, taken by its value.

On the way down only the few swaps with the best prices are fitted. Only the best set at the end
must pass the test of the whole list, which is what the status ``converged`` means.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil, inf

import numpy as np

from exactk.data.dense import DenseRows
from exactk.data.targets import Target
from exactk.errors import InputError
from exactk.losses.newton import LikelihoodCriterion
from exactk.problem.constraints import Rules
from exactk.problem.problem import Problem
from exactk.result import Answer, Status
from exactk.search.find_best import good_supports
from exactk.search.loss_pricing import ALL_SWAPS, TIE, LossTable, QuadraticModel, Support
from exactk.search.newton_pricing import SecondOrderModel
from exactk.types import Bools, Floats, Indices
from exactk.utils.monitor import Monitor

__all__ = ["LossLocalSearch"]

_Trial = tuple[list[int], Floats]

# Swaps that are fitted before the steepest of them is taken; where none improves, the next so
# many by price, and then those, and where all swaps are few, the rest: then the support is an end.
LISTS = (6, 12, 24)
# The same for likelihoods, whose fits cost more and whose prices are better.
LIKELIHOOD_LISTS = (2, 4, 8)
# Swaps by the plain model whose columns get a price by the whole Hessian of a likelihood; swaps by
# that price whose loss is looked at where the price foresees it, and how many of them at once.
POOL = 64
FORESEEN, LOOK_EVERY = 24, 8
# Additions that are fitted before the best of them is taken.
ADDITIONS, LIKELIHOOD_ADDITIONS = 3, 1
# Steps and tolerance of the fits that compare, and of those that count.
TRIAL_STEPS, TRIAL_TOLERANCE = 24, 1e-4
FULL_STEPS, FULL_TOLERANCE = 90, 1e-6
# The settings behind effort=1: rounds without a gain before the search ends, and at most.
PATIENCE = 2
MOST_PATIENCES = 3
KICKED_OF = 12
# Effort of a search of the model.
MODEL_EFFORT = 0.1
# Supports that are fitted to find some to descend from, and those.
STARTS, DESCENTS = 12, 2


class LossLocalSearch:
    """The best support of one size by a loss, and the rounds that look for better ones.

    Parameters
    ----------
    table : LossTable
    k : int
    rng : Generator
    monitor : Monitor

    Attributes
    ----------
    best : Support or None
    trace : list of float
    swaps : int
    """

    def __init__(
        self, table: LossTable, k: int, rng: np.random.Generator, monitor: Monitor
    ) -> None:
        self.table, self.k, self.rng, self.monitor = table, k, rng, monitor
        self.tie_tolerance = TIE * max(abs(table.problem.null_model[1]), np.finfo(float).tiny)
        self.best: Support | None = None
        self.trace: list[float] = []
        self.swaps = 0
        self._ends: set[tuple[int, ...]] = set()
        self._light_ends: set[tuple[int, ...]] = set()
        self._seen: set[tuple[int, ...]] = set()
        self._by_likelihood = isinstance(table.criterion, LikelihoodCriterion)
        self._lists = LIKELIHOOD_LISTS if self._by_likelihood else LISTS
        self._additions = LIKELIHOOD_ADDITIONS if self._by_likelihood else ADDITIONS

    @property
    def _few_swaps(self) -> bool:
        """Whether all swaps are tried, each to its end, before a support counts as one."""
        table = self.table
        return (self.k - len(table.fixed)) * (len(table) - self.k) <= ALL_SWAPS

    @property
    def support(self) -> list[int]:
        """Columns of the problem that are the best."""
        assert self.best is not None
        chosen: list[int] = self.table.columns[list(self.best.members)].tolist()
        return chosen

    def answer(self, status: Status) -> Answer:
        """Return the best support with the fit by which it is that."""
        assert self.best is not None
        trace, steps = tuple(self.trace), self.swaps + self.k
        return Answer(self.support, status, steps, trace, theta=self.best.theta)

    def run(self, starts: Sequence[Sequence[int]], effort: float, *, grown: bool = False) -> Status:
        """Descend from the starts (places in the table), then from parts of what was found.

        Parameters
        ----------
        starts : sequence of sequence of int
        effort : float
        grown : bool
            Whether one of the starts came about by the loss, column by column, as on a path.
        """
        try:
            # The first is that of the least effort: what more of it finds can only be better.
            self.descend(self.grow(self.fitted(starts[0]), self.k))
            self.polish()
            if effort > 0 and self._by_likelihood and not (grown or self.monitor.expired):
                # What squared loss would choose may be far from what a likelihood would.
                self.descend(self.grow(self.fitted(self.table.fixed), self.k))
            self.descend_from(starts[1:])
            if effort > 0:
                self._rounds(effort)
            self.polish()
        except KeyboardInterrupt:
            if self.best is None:
                raise
            return Status.INTERRUPTED
        return Status.TIME_LIMIT if self.monitor.expired else Status.CONVERGED

    def fitted(self, members: Sequence[int], theta: Floats | None = None) -> Support:
        """Return a support with a fit that counts."""
        start = None if theta is None else theta[None]
        fits = self.table.fits([members], start, steps=FULL_STEPS, tol=FULL_TOLERANCE)
        return self._taken(_sorted(members, fits.theta[0], float(fits.values[0])))

    def _taken(self, support: Support) -> Support:
        if len(support.members) == self.k:
            self._offer(support)
        return support

    def descend(self, support: Support, *, thorough: bool = False) -> Support:
        """Take the steepest of the best priced swaps until none of them lowers the loss.

        Only what is the best in the end has to stand the test of the whole list (`thorough`).
        """
        ends = self._ends if thorough else self._light_ends
        while support.members not in ends and not self.monitor.expired:
            better = self.best_swap(support, thorough=thorough)
            if better is None:
                ends.add(support.members)
                break
            support = better
            self.swaps += 1
        return support

    def polish(self) -> None:
        """Hold the best support against the whole list, and what is then found, until none is."""
        while self.best is not None and self.best.members not in self._ends:
            if self.monitor.expired:
                return
            self.descend(self.best, thorough=True)

    def best_swap(self, support: Support, *, thorough: bool = True) -> Support | None:
        """Return the best neighbour among those with the best prices; None if none is better."""
        gains = QuadraticModel(self.table, support).swaps()
        pairs: list[tuple[int, int]] = []
        if self._has_second_order(support):
            better, priced = self._best_foreseen(support, gains, thorough)
            if better is not None:
                return better
            gains = np.where(priced, gains, -inf)
        else:
            most = _most(gains, sum(self._lists)) if thorough else sum(self._lists[:-1])
            slots, columns = np.divmod(_highest(gains, most), gains.shape[1])
            pairs = list(zip(slots.tolist(), columns.tolist(), strict=True))
        if thorough:
            pairs += self._unpriced(gains, support)
        trials = [_swapped(support, *pair) for pair in pairs]
        return self._first_better(len(trials), lambda part: self._best_of(support, trials[part]))

    def _has_second_order(self, support: Support) -> bool:
        """Whether swaps can be priced by a whole Hessian."""
        criterion = self.table.criterion
        if not isinstance(criterion, LikelihoodCriterion):
            return False
        if self.table.compiled(self.k) is not None:
            return criterion.is_small(support.theta)
        return criterion.fits_in_memory(support.theta)

    def _best_foreseen(
        self, support: Support, plain: Floats, thorough: bool
    ) -> tuple[Support | None, Bools]:
        """The same by second-order prices, and by the loss where these lead.

        And which of the swaps have such a price.
        """
        priced = np.zeros(plain.shape, dtype=bool)
        most = _most(plain, FORESEEN) if thorough else LOOK_EVERY
        columns = np.unique(_highest(plain, max(POOL, most)) % plain.shape[1])
        if len(columns) == 0:
            return None, priced
        model = SecondOrderModel(self.table, support, columns)
        prices = model.swaps()
        priced[:, columns] = prices > -inf
        slots, at = np.divmod(_highest(prices, most), len(columns))
        ceiling, values = support.value - self.tie_tolerance, np.zeros(0)
        given_up_above = inf if thorough and self._few_swaps else ceiling

        def best_of(chosen: Indices) -> Support | None:
            fits = model.fits(
                slots[chosen], at[chosen],
                steps=FULL_STEPS, tol=FULL_TOLERANCE, ceiling=given_up_above,
            )  # fmt: skip
            best = int(np.argmin(fits.values))
            if not fits.values[best] < ceiling:
                return None
            number = chosen[best]
            members = model.members(int(slots[number]), int(at[number]))
            return self._taken(_sorted(members, fits.theta[best], float(fits.values[best])))

        for start in range(0, len(slots), LOOK_EVERY):
            part = slice(start, start + LOOK_EVERY)
            values = np.append(values, model.fits(slots[part], at[part], steps=0, tol=0.0).values)
            best = int(np.argmin(values))
            if values[best] < ceiling:
                # What is better before it is fitted is better still after that.
                return best_of(np.array([best])), priced
        order = np.argsort(values, kind="stable")
        if not thorough:
            order = order[: LIKELIHOOD_LISTS[0]]
        return self._first_better(len(order), lambda part: best_of(order[part])), priced

    def _unpriced(self, gains: Floats, support: Support) -> list[tuple[int, int]]:
        """Swaps without a price, where all swaps are few.

        These are with columns that seem to depend on members: the model cannot tell what they are
        worth, and of nearly equal columns the difference may be worth much.
        """
        table, members = self.table, support.members
        if not self._few_swaps:
            return []
        free = [i for i, p in enumerate(members) if p not in table.fixed]
        others = [p for p in range(len(table)) if p not in members]
        return [(i, p) for i in free for p in others if not gains[i, p] > -inf]

    def _first_better(
        self, count: int, best_of: Callable[[slice], Support | None]
    ) -> Support | None:
        """Return the best of the first few trials that hold a better one."""
        done = 0
        # Where all swaps are in the list, the last part of it is the rest.
        for more in (*self._lists, count if count <= ALL_SWAPS else 0):
            if done >= count or (done and self.monitor.expired):
                return None
            better = best_of(slice(done, done + more))
            done += more
            if better is not None:
                return better
        return None

    def _best_of(self, support: Support, trials: Sequence[_Trial]) -> Support | None:
        ceiling = support.value - self.tie_tolerance
        fits = self.table.fits(
            [members for members, _ in trials], np.array([theta for _, theta in trials]),
            steps=TRIAL_STEPS, tol=TRIAL_TOLERANCE, ceiling=inf if self._few_swaps else ceiling,
        )  # fmt: skip
        at = int(np.argmin(fits.values))
        # A trial may be short of its end by more than it is short of the ceiling.
        if fits.values[at] > ceiling + 10 * TRIAL_TOLERANCE * abs(ceiling):
            return None
        found = self.fitted(trials[at][0], fits.theta[at])
        return found if found.value < ceiling else None

    def grow(self, support: Support, size: int, barred: Sequence[int] = ()) -> Support:
        """Add the best of the best priced columns until there are `size`.

        Where time is up before that, the best of that size is given, if there is one.

        Parameters
        ----------
        support : Support
        size : int
        barred : sequence of int
            Columns of which none is the first to come in.
        """
        out, grown = list(barred), False
        while len(support.members) < size:
            best = self.best
            if best is not None and len(best.members) == size and self.monitor.expired:
                return best
            gains = QuadraticModel(self.table, support).additions()
            gains[[*out, *support.members]] = -inf
            priced = _highest(gains, self._additions).tolist()
            if not priced:
                # All others depend on the members, or were barred: any will do.
                rest = (p for p in range(len(self.table)) if p not in support.members)
                priced = [next(rest)]
            found = [[*support.members, p] for p in priced]
            theta = np.insert(support.theta, -1, 0.0, axis=0)
            fits = self.table.fits(
                found, np.repeat(theta[None], len(found), axis=0),
                steps=TRIAL_STEPS, tol=TRIAL_TOLERANCE,
            )  # fmt: skip
            at = int(np.argmin(fits.values))
            support = Support(tuple(found[at]), fits.theta[at], float(fits.values[at]))
            out, grown = [], True
        return self.fitted(support.members, support.theta) if grown else support

    def _offer(self, support: Support) -> None:
        if self.best is None or support.value < self.best.value - self.tie_tolerance:
            self.best = support
            self.trace.append(support.value)

    def search_model(self, support: Support) -> None:
        """Search the quadratic model at a fit as a squared problem, and go on from what is good.

        The model of a robust loss bounds it from above, but for rows that are fitted nearly
        exactly: what is better by the model is so by the loss.
        """
        table = self.table
        F = table.predict(support.members, support.theta)
        force, omega = table.criterion.model(F)
        target = Target("regression", None, None, F + force / omega[:, None])
        try:
            problem = Problem.from_rows(
                DenseRows(table.X.T, None), target, omega, scale=False,
                memory_limit=table.problem.memory_limit,
            )  # fmt: skip
        except InputError:
            # Weights so uneven that the model's target is next to constant: nothing to search.
            return
        size = float(problem.scatter[problem.usable].mean())
        problem = problem.with_ridge(table.penalty / size)
        if table.fixed:
            problem = problem.with_rules(Rules(include=table.fixed))
        found = good_supports(
            problem, self.k, MODEL_EFFORT, self.rng, self.monitor, [list(support.members)]
        )
        self.descend_from(found)

    def descend_from(self, starts: Sequence[Sequence[int]]) -> None:
        """Fit several supports, and descend from the best few of them by the loss."""
        new = [tuple(sorted(start)) for start in starts if len(start) == self.k]
        new = [start for start in dict.fromkeys(new) if start not in self._seen][:STARTS]
        if not new or (self.best is not None and self.monitor.expired):
            return
        self._seen.update(new)
        fits = self.table.fits(new, steps=TRIAL_STEPS, tol=TRIAL_TOLERANCE)
        for at in np.argsort(fits.values, kind="stable")[:DESCENTS].tolist():
            self.descend(self.fitted(new[at], fits.theta[at]))

    def _rounds(self, effort: float) -> None:
        """Drop a part of the best support and complete it another way, until that brings none."""
        patience = effort * PATIENCE
        since, rounds = 0, 0
        while not self.monitor.expired:
            if since >= patience or rounds >= MOST_PATIENCES * patience:
                return
            assert self.best is not None
            before = self.best.value
            if self._by_likelihood or rounds % 2:
                self._perturb(self.best)
            else:
                self.search_model(self.best)
            rounds, since = (
                rounds + 1,
                0 if self.best.value < before - self.tie_tolerance else since + 1,
            )
            end = min(rounds + patience - since, MOST_PATIENCES * patience)
            self.monitor.report(rounds, None if end == inf else ceil(end), self.best.value)

    def _perturb(self, best: Support) -> None:
        free = [i for i, p in enumerate(best.members) if p not in self.table.fixed]
        if not free:
            return
        size = min(len(free), KICKED_OF)
        least = max(1, ceil(0.3 * size))
        n_out = int(self.rng.integers(least, max(least, int(0.6 * size)) + 1))
        out = self.rng.permutation(free)[:n_out].tolist()
        keep = [i for i in range(len(best.members)) if i not in out]
        gone = [best.members[i] for i in out]
        if len(self.table) - len(best.members) < len(gone):
            return
        members, theta = [best.members[i] for i in keep], best.theta[[*keep, -1]]
        fits = self.table.fits([members], theta[None], steps=TRIAL_STEPS, tol=TRIAL_TOLERANCE)
        rest = Support(tuple(members), fits.theta[0], float(fits.values[0]))
        self.descend(self.grow(rest, self.k, barred=gone))


def _swapped(support: Support, slot: int, column: int) -> _Trial:
    """A swap: members, the new one last, and their coefficients before it, none for the new one."""
    members = [*support.members, column]
    del members[slot]
    return members, np.insert(np.delete(support.theta, slot, axis=0), -1, 0.0, axis=0)


def _sorted(members: Sequence[int], theta: Floats, value: float) -> Support:
    """A support from a fit on its members in any order."""
    order = np.argsort(members, kind="stable").tolist()
    return Support(tuple(int(members[i]) for i in order), theta[[*order, -1]], value)


def _most(gains: Floats, usual: int) -> int:
    """Return how many swaps are looked at: all, where these are few."""
    possible = int((gains > -inf).sum())
    return possible if possible <= ALL_SWAPS else usual


def _highest(gains: Floats, most: int) -> Indices:
    """Return the places of the highest prices, flat, highest first; of equal ones the first."""
    flat = gains.ravel()
    most = min(most, int((flat > -inf).sum()))
    if most == 0:
        return np.zeros(0, dtype=np.intp)
    top = np.argpartition(-flat, most - 1)[:most]
    order: Indices = top[np.lexsort((top, -flat[top]))]
    return order
