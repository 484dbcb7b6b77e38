"""The search by a loss that needs rows: swaps priced by its model, taken by its own value."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, islice
from math import ceil, comb, inf

import numpy as np
import numpy.typing as npt

from exactk.errors import InputError
from exactk.losses.newton import LikelihoodCriterion
from exactk.monitor import Monitor
from exactk.problem import Problem
from exactk.result import Answer, Status
from exactk.search.best import best_path, best_support
from exactk.search.model import TIE, LossTable, Model, Support
from exactk.search.newton_model import NewtonModel
from exactk.search.sizes import PATH_SHARE

__all__ = [
    "FITS_COST",
    "LossSearch",
    "best_by_loss",
    "best_path_by_loss",
    "enumerate_by_loss",
    "greedy_by_loss",
    "needs_fits",
]

Floats = npt.NDArray[np.float64]

# Swaps that are fitted before the steepest of them is taken; where none improves, the next so
# many by price, and then those: after that the support is an end.
LISTS = (6, 12, 24)
# The same for likelihoods, whose fits cost more and whose prices are better.
LIKELIHOOD_LISTS = (2, 4, 8)
# Swaps by the plain model whose columns get a price by the whole Hessian of a likelihood.
POOL = 64
# With so many swaps or fewer all of them are in the list.
ALL_SWAPS = 64
# Additions that are fitted before the best of them is taken.
ADDITIONS = 3
# Steps and tolerance of the fits that compare, and of those that count.
TRIAL_STEPS, TRIAL_TOLERANCE = 45, 1e-4
FULL_STEPS, FULL_TOLERANCE = 300, 1e-6
# The settings behind effort=1: rounds without a gain before the search ends, and at most.
PATIENCE = 4
MOST_PATIENCES = 3
KICKED_OF = 12
ELITE = 12
# Share of effort for the squared search that gives the first support.
SEED_EFFORT = 0.25
# Subsets that are fitted side by side, and what a fit costs beside a closed form.
BATCH = 256
FITS_COST = 50


@dataclass(frozen=True, eq=False)
class _Trial:
    """Members, the new one last, and coefficients to start a fit from."""

    members: list[int]
    theta: Floats

    @classmethod
    def of(cls, support: Support, slot: int, column: int) -> _Trial:
        """A swap, with the coefficients of the members that stay and none for the new one."""
        members, theta = list(support.members), np.delete(support.theta, slot, axis=0)
        del members[slot]
        return cls([*members, column], np.insert(theta, -1, 0.0, axis=0))


class LossSearch:
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
        self.slack = TIE * max(abs(table.problem.without_columns[1]), np.finfo(float).tiny)
        self.best: Support | None = None
        self.trace: list[float] = []
        self.swaps = 0
        self.elite: dict[tuple[int, ...], float] = {}
        self._ends: set[tuple[int, ...]] = set()
        self._by_likelihood = isinstance(table.criterion, LikelihoodCriterion)
        self._lists = LIKELIHOOD_LISTS if self._by_likelihood else LISTS

    @property
    def support(self) -> list[int]:
        """Columns of the problem that are the best."""
        assert self.best is not None
        return self.table.columns[list(self.best.members)].tolist()  # type: ignore[no-any-return]

    def go(self, starts: Sequence[Sequence[int]], effort: float) -> Status:
        """Descend from the starts (places in the table), then from parts of what was found."""
        try:
            for start in starts:
                support = self.fitted(start)
                self.descend(support if len(start) == self.k else self.grow(support, self.k))
            if effort > 0:
                self._rounds(effort)
        except KeyboardInterrupt:
            if self.best is None:
                raise
            return Status.INTERRUPTED
        return Status.TIME_LIMIT if self.monitor.expired else Status.CONVERGED

    def fitted(self, members: Sequence[int], theta: Floats | None = None) -> Support:
        """Return a support with a fit that counts."""
        order = np.argsort(np.asarray(members, dtype=np.intp), kind="stable")
        chosen = tuple(int(members[i]) for i in order)
        if theta is None:
            theta = self.table.start(len(chosen) + 1)
        else:
            theta = theta[[*order.tolist(), -1]]
        fits = self.table.fits([chosen], theta[None], steps=FULL_STEPS, tol=FULL_TOLERANCE)
        support = Support(chosen, fits.theta[0], float(fits.values[0]))
        if len(chosen) == self.k:
            self._offer(support)
        return support

    def descend(self, support: Support) -> Support:
        """Take the steepest of the best priced swaps until none of them lowers the loss."""
        while support.members not in self._ends and not self.monitor.expired:
            better = self.best_swap(support)
            if better is None:
                self._ends.add(support.members)
                break
            support = better
            self.swaps += 1
        return support

    def best_swap(self, support: Support) -> Support | None:
        """Return the best neighbour among those with the best prices; None if none is better."""
        trials = self._trials(support)
        done = 0
        # Where all swaps are in the list, the last part of it is the rest.
        for count in (*self._lists, len(trials) if len(trials) <= ALL_SWAPS else 0):
            better = self._best_of(support, trials[done : done + count])
            done += count
            if better is not None or done >= len(trials) or self.monitor.expired:
                return better
        return None

    def _trials(self, support: Support) -> list[_Trial]:
        """Return the swaps that are worth a fit, the best first."""
        gains = Model(self.table, support).swaps()
        width = gains.shape[1]
        possible = int((gains > -inf).sum())
        most = possible if possible <= ALL_SWAPS else sum(LISTS)
        if self._by_likelihood:
            columns = np.unique(_highest(gains, max(POOL, most)) % width)
            return self._refined(support, columns, most) if len(columns) else []
        slots, columns = np.divmod(_highest(gains, most), width)
        return [_Trial.of(support, i, p) for i, p in zip(slots.tolist(), columns.tolist(), strict=True)]

    def _refined(self, support: Support, columns: npt.NDArray[np.intp], most: int) -> list[_Trial]:
        """The same by second-order prices, and then by the loss where these lead."""
        model = NewtonModel(self.table, support, columns)
        slots, at = np.divmod(_highest(model.swaps(), most), len(columns))
        trials = []
        for slot, j in zip(slots.tolist(), at.tolist(), strict=True):
            plain = _Trial.of(support, slot, int(columns[j]))
            foreseen = replace(plain, theta=model.start(slot, j))
            values = [self.table.value(trial.members, trial.theta) for trial in (plain, foreseen)]
            trials.append((min(values), foreseen if values[1] <= values[0] else plain))
        return [trial for _, trial in sorted(trials, key=lambda pair: pair[0])]

    def _best_of(self, support: Support, trials: Sequence[_Trial]) -> Support | None:
        if not trials:
            return None
        ceiling = support.value - self.slack
        fits = self.table.fits(
            [trial.members for trial in trials], np.array([trial.theta for trial in trials]),
            steps=TRIAL_STEPS, tol=TRIAL_TOLERANCE, ceiling=ceiling,
        )  # fmt: skip
        at = int(np.argmin(fits.values))
        # A trial may be short of its end by more than it is short of the ceiling.
        if fits.values[at] > ceiling + 10 * TRIAL_TOLERANCE * abs(ceiling):
            return None
        found = self.fitted(trials[at].members, fits.theta[at])
        return found if found.value < ceiling else None

    def grow(self, support: Support, size: int, barred: Sequence[int] = ()) -> Support:
        """Add the best of the best priced columns until there are `size`.

        Parameters
        ----------
        support : Support
        size : int
        barred : sequence of int
            Columns of which none is the first to come in.
        """
        out = list(barred)
        while len(support.members) < size:
            gains = Model(self.table, support).additions()
            gains[[*out, *support.members]] = -inf
            best = _highest(gains, ADDITIONS).tolist()
            if not best:
                # All others depend on the members, or were barred: any will do.
                rest = (p for p in range(len(self.table)) if p not in support.members)
                best = [next(rest)]
            found = [[*support.members, p] for p in best]
            theta = np.insert(support.theta, -1, 0.0, axis=0)
            fits = self.table.fits(
                found, np.repeat(theta[None], len(found), axis=0),
                steps=TRIAL_STEPS, tol=TRIAL_TOLERANCE,
            )  # fmt: skip
            at = int(np.argmin(fits.values))
            support = Support(tuple(found[at]), fits.theta[at], float(fits.values[at]))
            out = []
        return self.fitted(support.members, support.theta)

    def _offer(self, support: Support) -> None:
        self.elite[support.members] = support.value
        if len(self.elite) > ELITE:
            del self.elite[max(self.elite, key=lambda key: self.elite[key])]
        if self.best is None or support.value < self.best.value - self.slack:
            self.best = support
            self.trace.append(support.value)

    def _rounds(self, effort: float) -> None:
        """Drop a part of the best support and complete it another way, until that brings none."""
        patience = effort * PATIENCE
        since, rounds = 0, 0
        while not self.monitor.expired:
            if since >= patience or rounds >= MOST_PATIENCES * patience:
                return
            assert self.best is not None
            before = self.best.value
            self._kick(self.best)
            rounds, since = rounds + 1, 0 if self.best.value < before - self.slack else since + 1
            end = min(rounds + patience - since, MOST_PATIENCES * patience)
            self.monitor.report(rounds, None if end == inf else ceil(end), self.best.value)

    def _kick(self, best: Support) -> None:
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


def _highest(gains: Floats, most: int) -> npt.NDArray[np.intp]:
    """Return the places of the highest prices, flat, highest first; of equal ones the first."""
    flat = gains.ravel()
    most = min(most, int((flat > -inf).sum()))
    if most == 0:
        return np.zeros(0, dtype=np.intp)
    top = np.argpartition(-flat, most - 1)[:most]
    order: npt.NDArray[np.intp] = top[np.lexsort((top, -flat[top]))]
    return order


def needs_fits(problem: Problem) -> bool:
    """Whether a problem is searched here: by a loss that needs rows, column by column.

    Under rules about groups, families, costs or correlations `exactk.search.constrained` searches
    by units, whatever the loss.
    """
    return not problem.loss.by_moments and (problem.rules is None or problem.rules.is_simple)


def best_by_loss(
    problem: Problem,
    k: int,
    effort: float,
    rng: np.random.Generator,
    monitor: Monitor,
    starts: Sequence[Sequence[int]] = (),
) -> Answer:
    """Search for the best k columns by the loss of a problem.

    Parameters
    ----------
    problem : Problem
        With rows in memory and rules that at most include and exclude columns.
    k, effort, rng, monitor, starts
        As in `exactk.search.best.best_support`.
    """
    table = LossTable(problem)
    search = LossSearch(table, k, rng, monitor)
    if _is_settled(search):
        return _only_choice(search)
    seed = best_support(problem.squared, k, min(effort, 1.0) * SEED_EFFORT, rng, monitor)
    places = [_places(table, start) for start in (seed.support, *starts)]
    status = search.go(places, effort)
    return Answer(search.support, status, search.swaps + k, tuple(search.trace))


def _places(table: LossTable, columns: Sequence[int]) -> list[int]:
    return np.searchsorted(table.columns, columns).tolist()  # type: ignore[no-any-return]


def _is_settled(search: LossSearch) -> bool:
    """Whether there is nothing to choose."""
    return search.k >= len(search.table) or search.k == len(search.table.fixed)


def _only_choice(search: LossSearch) -> Answer:
    """All columns, or those that must be in."""
    table, k = search.table, search.k
    columns = table.columns if k >= len(table) else table.columns[list(table.fixed)]
    status = Status.OPTIMAL if len(columns) == k else Status.RANK_DEFICIENT
    return Answer(columns.tolist(), status, 0)


def best_path_by_loss(
    problem: Problem, k_max: int, effort: float, rng: np.random.Generator, monitor: Monitor
) -> Iterator[Answer | None]:
    """Search every size, each from the size before and from the best by squared loss.

    So the loss never rises with the size.
    """
    table = LossTable(problem)
    squared = best_path(problem.squared, k_max, min(effort, 1.0) * SEED_EFFORT, rng, monitor)
    before: Support | None = None
    ended = Status.CONVERGED
    for k, seed in enumerate(squared, start=1):
        if seed is None:
            yield None
            continue
        search = LossSearch(table, k, rng, monitor)
        if _is_settled(search):
            yield _only_choice(search)
            continue
        if before is not None:
            # However soon it ends: a size more is never worse.
            search.grow(before, k)
        starts = [_places(table, seed.support)]
        if search.best is not None:
            starts.append(list(search.best.members))
        if ended != Status.INTERRUPTED:
            ended = search.go(starts, effort * PATH_SHARE / k_max)
        elif search.best is None:
            search.fitted(starts[0])
        before = search.best
        yield Answer(search.support, ended, search.swaps + k, tuple(search.trace))


def greedy_by_loss(problem: Problem, k_max: int, monitor: Monitor) -> Iterator[Answer | None]:
    """Forward selection: the best of the best priced additions, one after the other."""
    table = LossTable(problem)
    search = LossSearch(table, len(table.fixed), np.random.default_rng(0), monitor)
    support = search.fitted(table.fixed)
    order, trace = [*table.fixed], [support.value]
    yield from [None] * min(len(order) - 1, k_max)
    for k in range(max(1, len(order)), k_max + 1):
        if k > len(order) and len(order) < len(table):
            search.k = k
            support = search.grow(support, k)
            order.append(next(p for p in support.members if p not in order))
            trace.append(support.value)
        monitor.report(k, k_max, support.value)
        status = Status.OPTIMAL if len(order) == len(table) else Status.CONVERGED
        if len(order) < k:
            status = Status.RANK_DEFICIENT
        yield Answer(table.columns[order].tolist(), status, k, tuple(trace), ordered=True)


def enumerate_by_loss(problem: Problem, k: int, most: int, monitor: Monitor) -> Answer:
    """Fit every set of k columns.

    Parameters
    ----------
    problem : Problem
        With rules that at most include and exclude columns.
    k : int
    most : int
        Refuse problems with more sets than this.
    monitor : Monitor
    """
    table = LossTable(problem)
    search = LossSearch(table, k, np.random.default_rng(0), monitor)
    if _is_settled(search):
        return _only_choice(search)
    free = [p for p in range(len(table)) if p not in table.fixed]
    left = k - len(table.fixed)
    count = comb(len(free), left)
    if count > most:
        raise InputError(
            f"exhaustive search would fit loss {problem.loss.name!r} on {count:,} subsets ({left} "
            f"of {len(free)} columns), more than {most:,}, which is max_subsets over "
            f"{FITS_COST:,}; use method='exchange', a smaller k, or raise max_subsets"
        )
    status = Status.OPTIMAL if problem.loss.convex else Status.CONVERGED
    best, least, done = (), inf, 0
    subsets = ([*table.fixed, *chosen] for chosen in combinations(free, left))
    try:
        while batch := list(islice(subsets, BATCH)):
            start = np.repeat(table.start(k + 1)[None], len(batch), axis=0)
            fits = table.fits(batch, start, steps=FULL_STEPS, tol=1e-9, ceiling=least)
            at = int(np.argmin(fits.values))
            if fits.values[at] < least:
                best, least = tuple(batch[at]), float(fits.values[at])
            done += len(batch)
            monitor.report(done, count, least)
            if done < count and monitor.expired:
                status = Status.TIME_LIMIT
                break
    except KeyboardInterrupt:
        if not best:
            raise
        status = Status.INTERRUPTED
    return Answer(table.columns[list(best)].tolist(), status, done)
