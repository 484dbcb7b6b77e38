"""The proof of one size: what is known, the tree that is explored, and its certificate."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf

import numpy as np

from exactk.native.threads import threads_allowed
from exactk.problem.constraints import Rules
from exactk.problem.fit import check_squared
from exactk.problem.problem import Problem
from exactk.proof.best_first import PROVEN, BestFirstSearch, BoundTree, Tree, relative_gap
from exactk.proof.incumbent import check_same
from exactk.proof.make_tree import make_tree
from exactk.proof.results import CONSTRAINED, Certificate
from exactk.proof.unit_tree import COPIES, UnitTree
from exactk.question import GIVEN, Question
from exactk.result import Answer, Result, Status
from exactk.search.feasibility import UndecidedError
from exactk.search.native_state import has_only_column_rules
from exactk.search.state import TIE
from exactk.solver import grade
from exactk.utils.monitor import Monitor

__all__ = ["Proof", "ProofLimits", "assumptions_of", "known_result", "why_unproven"]

# Share of the time for a bound without rules, and seconds where there is no limit.
FREE_SHARE, MOST_FREE = 0.3, 10.0
BY_PROOF = "certify"


@dataclass(frozen=True)
class ProofLimits:
    """How long a proof may take, how small a gap is enough, and on how many threads."""

    limit: float | None
    gap: float
    threads: int
    verbose: int

    @classmethod
    def checked(
        cls,
        problem: Problem,
        time_limit: float | None,
        gap: float,
        n_jobs: int | None,
        verbose: int,
    ) -> ProofLimits:
        """Return the limits; raise for a problem that has no proofs."""
        check_squared(problem, "a proof")
        # No clock counts longer.
        limit = None if time_limit is None else float(min(time_limit, 1e9))
        threads = threads_allowed() if n_jobs is None or n_jobs == -1 else int(n_jobs)
        return cls(limit, float(gap), threads, verbose)

    def share(self, part: float) -> float | None:
        """Return a part of the time."""
        return None if self.limit is None else part * self.limit


def known_result(question: Question) -> Result | None:
    """Return the selection of a question, checked against its problem; None if only k is given.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from exactk.question import read_question
    >>> known_result(read_question(*load_iris(return_X_y=True), features=[0, 1])).method
    'given'
    """
    problem = question.problem
    if question.columns is not None:
        if question.result is not None:
            check_same(problem, question.result)
        return question.solved()
    return question.result


def why_unproven(
    problem: Problem, k: int, status: Status, search: BestFirstSearch | None, gap: float = 0.0
) -> str:
    """Return why a proof ended with a gap.

    Parameters
    ----------
    problem : Problem
    k : int
    status : Status
        How the proof ended.
    search : BestFirstSearch or None
        None if it ended before a search.
    gap : float
        The gap at which the proof was to end.
    """
    if status == Status.INTERRUPTED:
        return "stopped by the user"
    if status == Status.TIME_LIMIT:
        return "the time limit ended the proof"
    if search is None:
        return "the sets that keep the constraints cannot be enumerated"
    if gap > PROVEN and relative_gap(search.lower, search.upper) <= gap:
        return f"the requested gap of {gap:g} is reached"
    if isinstance(search.tree, BoundTree):
        return search.tree.reason
    if problem.penalty > 0 and k > len(problem.candidates):
        return "only sets with duplicate columns have this size, and not all were compared"
    if not search.is_sure:
        return (
            "numerical precision: some columns are almost linear combinations of others, and not "
            "all of their sets can be compared; a larger ridge may help"
        )
    return "the bound cannot be improved further"


def assumptions_of(problem: Problem, tree: Tree | None) -> tuple[str, ...]:
    """Return what a proof of this problem takes for granted, that of its tree included."""
    constrained = (problem.rules or Rules()) != Rules(feature_groups=problem.category_groups)
    own = [CONSTRAINED] if constrained else []
    if tree is None:
        return tuple(own)
    # Trees of columns have candidates alone; one of units knows whether it needs copies.
    if problem.duplicates.size and not isinstance(tree, UnitTree):
        own.append(COPIES)
    return (*own, *tree.assumptions)


class Proof:
    """How far one result is from the best of its size.

    Parameters
    ----------
    problem : Problem
    incumbent : Result
        Of this problem.
    gap : float
        A gap that is small enough.

    Attributes
    ----------
    status : Status
    """

    def __init__(self, problem: Problem, incumbent: Result, gap: float) -> None:
        self.problem, self.incumbent, self.gap, self.k = problem, incumbent, gap, incumbent.k
        self.search: BestFirstSearch | None = None
        self.status = Status.TIME_LIMIT
        self._objective = problem.objective(incumbent.support)
        # Any of several copies will do, but two of them are in no set that is bounded, unless they
        # make up the number where there is no other way.
        stands_for = np.arange(problem.n_features)
        stands_for[problem.duplicates] = problem.originals
        needed = problem.penalty == 0 and self.k > len(problem.candidates)
        alike = len(np.unique(stands_for[incumbent.support])) < len(incumbent.support)
        self._has_copies = alike and not needed
        # What a neighbour in size has shown.
        self._floor, self._floor_tolerance = 0.0, 0.0

    def run(self, monitor: Monitor, threads: int, first_turn: Monitor | None = None) -> Status:
        """Explore until nothing is left, the gap is small enough or the time is up.

        Parameters
        ----------
        monitor : Monitor
        threads : int
        first_turn : Monitor or None
            The clock for the first bound, which is made once; None is `monitor`.
        """
        try:
            if self.search is None:
                self._free_bound(first_turn or monitor, threads)
                self.search = self._begin(first_turn or monitor)
            self.status = self.search.run(monitor, threads)
        except KeyboardInterrupt:
            self.status = Status.INTERRUPTED
        except UndecidedError:
            # There is a set that keeps the rules, but the tree cannot tell how to make others.
            self.status = Status.CONVERGED
        return self.status

    def _begin(self, clock: Monitor) -> BestFirstSearch:
        # Sets that tie with the known one may be left out, but not the known one itself.
        ceiling = self._objective + TIE * self.problem.total
        tree = make_tree(self.problem, self.k, ceiling, lambda: clock.expired)
        search = BestFirstSearch(
            self.problem, tree, [self.incumbent.support.tolist()], gap=self.gap
        )
        search.add_known(lower=self._floor)
        return search

    def _free_bound(self, clock: Monitor, threads: int) -> None:
        """Take over the bound without the rules that only the tree in NumPy keeps.

        Whoever keeps more rules is no better, and without them bounds are far better.
        """
        rules = self.problem.rules
        if rules is None or rules.feature_groups or has_only_column_rules(self.problem):
            return
        free = self.problem.with_rules(Rules(include=rules.include, exclude=rules.exclude))
        if not has_only_column_rules(free):
            return
        ceiling = self._objective + TIE * free.total
        left = None if clock.time_limit is None else clock.time_limit - clock.seconds
        limited = Monitor(MOST_FREE if left is None else max(FREE_SHARE * left, 0.0))
        search = BestFirstSearch(
            free, make_tree(free, self.k, ceiling, lambda: limited.expired), ceiling=ceiling
        )
        search.run(limited, threads)
        self.add_bound(search.lower, search.tree.tolerance)
        if search.status == Status.INTERRUPTED:
            raise KeyboardInterrupt

    @property
    def _tree(self) -> Tree | None:
        return None if self.search is None else self.search.tree

    @property
    def is_open(self) -> bool:
        """Whether more time may show more."""
        return not self.proven and self.status == Status.TIME_LIMIT

    @property
    def best(self) -> tuple[int, ...]:
        """The columns of the best set known, sorted."""
        if self.search is not None and self.improved:
            return self.search.sets[0].columns
        return tuple(self.incumbent.support.tolist())

    @property
    def improved(self) -> bool:
        """Whether a better set than the one given was found; by rounding none is better."""
        least = inf if self.search is None else self.search.upper
        return least < self._objective - TIE * self.problem.total

    @property
    def _is_outside(self) -> bool:
        """Whether the set at hand has copies, and is none of those that the bound is about."""
        return self._has_copies and not self.improved

    @property
    def upper(self) -> float:
        """Objective of the best set known."""
        return self.search.upper if self.search is not None and self.improved else self._objective

    @property
    def lower(self) -> float:
        """No set is better than this."""
        lower = self._floor if self.search is None else max(self.search.lower, self._floor)
        return 0.0 if self._is_outside else min(lower, self.upper)

    @property
    def tolerance(self) -> float:
        """What rounding may make of the bound."""
        own = 0.0 if self._tree is None else self._tree.tolerance
        return float(max(own, self._floor_tolerance))

    @property
    def proven(self) -> bool:
        """Whether the best set known is the best there is."""
        if self.search is None:
            return False
        slack = max(PROVEN * self.upper, self.tolerance)
        if self._is_outside:
            return False
        return self.search.is_proven or self.upper - self.lower <= slack

    def add_bound(self, lower: float, tolerance: float) -> None:
        """Take over a bound that was found elsewhere."""
        if lower > self._floor:
            self._floor, self._floor_tolerance = lower, tolerance
            if self.search is not None:
                self.search.add_known(lower=lower)

    def certificate(self, seconds: float) -> Certificate:
        """Return what is known by now.

        Parameters
        ----------
        seconds : float
            That it took.
        """
        proven, lower, upper = self.proven, self.lower, self.upper
        ended = Status.OPTIMAL if proven and self.status != Status.INTERRUPTED else self.status
        early = ended in (Status.INTERRUPTED, Status.TIME_LIMIT)
        message = ""
        if not proven and self._is_outside and not early:
            ended = Status.CONVERGED
            message = "the set has duplicate columns, and the bound is for sets without duplicates"
        elif not proven:
            message = why_unproven(self.problem, self.k, ended, self.search, self.gap)
        return Certificate(
            k=self.k,
            lower=lower,
            upper=upper,
            gap=relative_gap(lower, upper),
            proven=proven,
            status=ended,
            nodes=0 if self.search is None else self.search.nodes,
            seconds=seconds,
            ridge=self.problem.ridge,
            tolerance=self.tolerance,
            assumptions=assumptions_of(self.problem, self._tree),
            result=self._result(proven, seconds),
            improved=self.improved,
            message=message,
        )

    def _result(self, proven: bool, seconds: float) -> Result:
        incumbent, status = self.incumbent, Status.OPTIMAL if proven else self.status
        if self.improved:
            answer = Answer(
                self.best, status, incumbent.n_iter, incumbent.trace, scores=incumbent.scores
            )
            return grade(self.problem, self.k, answer, BY_PROOF, incumbent.seconds + seconds)
        # That columns depend on each other stays true when they are proven the best.
        if incumbent.status == Status.RANK_DEFICIENT or not (proven or incumbent.method == GIVEN):
            return incumbent
        return replace(incumbent, status=status, message="" if proven else incumbent.message)
