"""The best sets of one size, and whether the list is complete."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any

import numpy as np

from exactk.params import validated
from exactk.problem.problem import Problem
from exactk.proof.best_first import BestFirstSearch, FoundSet
from exactk.proof.make_tree import make_tree
from exactk.proof.results import BestSets
from exactk.proof.run import ProofLimits, assumptions_of, why_unproven
from exactk.question import count_scope, read_question
from exactk.result import Result, Status
from exactk.search.feasibility import UndecidedError
from exactk.search.native_state import has_only_column_rules
from exactk.search.state import TIE
from exactk.search.unit_pricing import UnitPricing
from exactk.search.units import Units
from exactk.solver import solve
from exactk.utils.monitor import Monitor
from exactk.utils.progress import show_progress

__all__ = ["best_sets"]

# Share of the time that the search before the proof may take.
SEARCH_SHARE = 0.5
# Sets that are listed if no number is given: without and with a limit of their objective.
FEW_SETS, MANY_SETS = 10, 1_000


@validated
def best_sets(
    X: Any,
    y: Any = None,
    *,
    k: Any = None,
    n_best: int | None = None,
    within: float | None = None,
    time_limit: float | None = 60.0,
    n_jobs: int | None = None,
    ridge: Any = None,
    random_state: Any = None,
    verbose: int = 0,
    sample_weight: Any = None,
    task: Any = "auto",
    loss: Any = None,
    class_weight: Any = None,
    constraints: Any = None,
) -> BestSets:
    """List the best sets of k features, and say whether the list is proven to be complete.

    Parameters
    ----------
    X : array-like, sparse matrix, frame, Dask collection or Problem
    y : array-like or None
    k : int, "auto" or AutoK
        Number of features.
    n_best : int or None
        Largest number of sets. None is 10, or up to 1,000 with `within`.
    within : float or None
        List only sets whose objective is at most ``1 + within`` times the best; 0.01 is 1 %.
    time_limit : float or None
        Maximum time in seconds. None ends only when the list is complete.
    n_jobs : int or None
        Number of threads; None and -1 are all processors that the process may use.
    ridge : "auto", "cv", float or None
        None is the ridge of a Problem, or "auto" for a table. The ridge is a part of the proof.
    random_state : int, Generator, RandomState or None
        Seed of the search before the proof. None is a fixed seed.
    verbose : int
        1 shows a progress bar on a terminal, with the bound and the gap.
    sample_weight, task, loss, class_weight, constraints
        As in `TopKSelector`; the loss must be squared. The constraints are a part of the proof.

    Returns
    -------
    BestSets
        After Ctrl-C it has the status ``interrupted`` and the sets found until then.

    Examples
    --------
    >>> import exactk
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> best = exactk.best_sets(X, y, k=3, within=0.02, ridge=0)
    >>> best.is_complete
    True
    >>> best.table
    rank  objective  excess     features
    1     76.2388    0          x20, x21, x27
    2     77.0352    0.0104452  x1, x20, x27
    3     77.6255    0.0181887  x21, x22, x27
    """
    clock = Monitor(time_limit)
    question = read_question(
        X, y, k=k, ridge=ridge, random_state=random_state, time_limit=time_limit, verbose=verbose,
        sample_weight=sample_weight, task=task, loss=loss, class_weight=class_weight,
        constraints=constraints,
    )  # fmt: skip
    problem, incumbent = question.problem, question.result
    limits = ProofLimits.checked(problem, time_limit, 0.0, n_jobs, verbose)
    if incumbent is None:
        incumbent = solve(
            problem, question.k, effort=1.0, time_limit=limits.share(SEARCH_SHARE),
            random_state=random_state, verbose=verbose,
        )  # fmt: skip
    if n_best is None:
        n_best = FEW_SETS if within is None else MANY_SETS
    ranking = _Ranking(problem, incumbent, int(n_best), within)
    if incumbent.status == Status.INTERRUPTED:
        return ranking.listed(clock.seconds)
    with show_progress(f"best sets, k={incumbent.k}", verbose) as show:
        left = None if limits.limit is None else max(limits.limit - clock.seconds, 0.0)
        ranking.run(Monitor(left, show), limits.threads)
    return ranking.listed(clock.seconds)


class _Ranking:
    """The list as it grows."""

    def __init__(
        self, problem: Problem, incumbent: Result, n_best: int, within: float | None
    ) -> None:
        self.problem, self.incumbent, self.n_best, self.within = problem, incumbent, n_best, within
        self.search: BestFirstSearch | None = None
        self.status = Status.INTERRUPTED
        self.slack = TIE * problem.total

    def run(self, monitor: Monitor, threads: int) -> None:
        try:
            starts = self._starts()
            # Sets at the ceiling are in; what a tree finds lies below it.
            ceiling = self._most(self.incumbent.objective) + self.slack
            tree = make_tree(
                self.problem,
                self.incumbent.k,
                min(ceiling, self._last(starts)),
                lambda: monitor.expired,
            )
            # One more than is listed tells whether there are others within the limit.
            wanted = self.n_best + (self.within is not None)
            search = BestFirstSearch(self.problem, tree, starts, ceiling=ceiling, n_best=wanted)
            self.search = search
            ended = search.run(monitor, threads)
        except KeyboardInterrupt:
            return
        except UndecidedError:
            self.status = Status.CONVERGED
            return
        if search.is_closed:
            self.status = Status.OPTIMAL
        elif ended != Status.INTERRUPTED:
            self.status = Status.TIME_LIMIT if monitor.expired else Status.CONVERGED

    def _most(self, best: float) -> float:
        return inf if self.within is None else (1.0 + self.within) * best + self.slack

    def _last(self, starts: Sequence[Sequence[int]]) -> float:
        """Objective above which no set is among those wanted, as so many are known already."""
        incumbent = sorted(self.problem.objective(start) for start in starts)
        return incumbent[self.n_best] + self.slack if len(incumbent) > self.n_best else inf

    def _starts(self) -> list[list[int]]:
        """The best set found and those a swap away: the sooner the list is full, the better."""
        units = Units(self.problem)
        support = self.incumbent.support.tolist()
        members = units.units_of(support)
        feasible = None if members is None else count_scope(units, members)
        if members is None or feasible is None or self.n_best == 1:
            return [support]
        blocks = UnitPricing(units)
        blocks.load(members)
        at, swaps = feasible.totals(members), list[tuple[float, int, int]]()
        for i, unit in enumerate(members):
            if unit not in units.included:
                falls = blocks.swap_gains(i, feasible.swaps(members, at, unit))
                nearest = np.argsort(-falls, kind="stable")[: self.n_best]
                swaps += [(-float(falls[u]), unit, int(u)) for u in nearest if falls[u] > -inf]
        near = sorted(swaps)[: self.n_best]
        sets = [[*(m for m in members if m != out), new] for _, out, new in near]
        listed = [units.columns_of(one) for one in sets]
        if has_only_column_rules(self.problem):
            # Of copies one is a candidate, and lists have candidates alone.
            listed = [one for one in listed if not np.isin(one, self.problem.duplicates).any()]
        return [support, *listed]

    def listed(self, seconds: float) -> BestSets:
        """Return what is known by now."""
        search, problem = self.search, self.problem
        found: Sequence[FoundSet] = () if search is None else search.sets
        if not found:
            support = tuple(self.incumbent.support.tolist())
            found = [FoundSet(support, problem.objective(support))]
        most = self._most(found[0].objective)
        kept = [one for one in found if one.objective <= most]
        has_more = self.within is not None and len(kept) > self.n_best
        kept = kept[: self.n_best]
        units = Units(problem)
        is_complete = search is not None and search.is_closed
        return BestSets(
            k=self.incumbent.k,
            n_best=self.n_best,
            within=None if self.within is None else float(self.within),
            sets=tuple(tuple(problem.table_columns(one.columns)) for one in kept),
            names=tuple(_names(units, one) for one in kept),
            objectives=tuple(one.objective for one in kept),
            is_complete=is_complete,
            has_more=has_more,
            lower=0.0 if search is None else search.lower,
            status=self.status,
            nodes=0 if search is None else search.nodes,
            seconds=seconds,
            ridge=problem.ridge,
            tolerance=0.0 if search is None else float(search.tree.tolerance),
            assumptions=assumptions_of(problem, None if search is None else search.tree),
            message=""
            if is_complete
            else why_unproven(problem, self.incumbent.k, self.status, search),
        )


def _names(units: Units, one: FoundSet) -> tuple[str, ...]:
    members = units.units_of(one.columns)
    assert members is not None  # sets are made of units
    return tuple(units.names[u] for u in members)
