"""Proofs of every size, which share the time and their bounds."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any

from exactk.errors import InputError
from exactk.params import validated
from exactk.problem.problem import Problem
from exactk.proof.results import CertifiedPath
from exactk.proof.run import Proof, ProofLimits, known_result
from exactk.question import largest_size, read_problem, read_question
from exactk.result import Path, Result, Status
from exactk.search.native_state import has_only_column_rules, make_state
from exactk.search.path import make_monotone
from exactk.solver import solve_path
from exactk.utils.monitor import Monitor
from exactk.utils.progress import show_progress

__all__ = ["certify_path"]

# Share of the time that the search of all sizes may take.
SEARCH_SHARE = 0.25
# Share of the time left that the first round takes, and each later one, all its sizes together.
FIRST_ROUND, LATER_ROUNDS = 0.1, 0.5
# Seconds that a size gets at least when its turn comes, and in a first round without a limit.
LEAST_SECONDS, FIRST_SECONDS = 0.05, 0.2


@validated
def certify_path(
    X: Any,
    y: Any = None,
    *,
    k_max: int | None = None,
    path: Path | None = None,
    time_limit: float | None = 60.0,
    gap: float = 1e-6,
    n_jobs: int | None = None,
    ridge: Any = None,
    random_state: Any = None,
    verbose: int = 0,
    sample_weight: Any = None,
    task: Any = "auto",
    loss: Any = None,
    class_weight: Any = None,
    constraints: Any = None,
) -> CertifiedPath:
    """Prove the best set of every size, or say how much better each can be.

    After a short round for all sizes, those that are not proven share the remaining time. Without
    constraints other than included and excluded columns, the best objective never rises with k:
    a bound for a larger size is then a bound for the smaller ones, too.

    Parameters
    ----------
    X : array-like, sparse matrix, frame, Dask collection or Problem
    y : array-like or None
    k_max : int or None
        The largest number of features. None is 50, or fewer for a small table.
    path : Path or None
        A result of `solve_path` to prove, in place of k_max.
    time_limit : float or None
        Maximum time in seconds for all sizes together.
    gap, n_jobs
        As in `certify`.
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
    CertifiedPath
        One `Certificate` for each size. After Ctrl-C those that are not proven have the status
        ``interrupted`` and the bounds found until then.

    Examples
    --------
    >>> import exactk
    >>> from sklearn.datasets import load_wine
    >>> certified = exactk.certify_path(*load_wine(return_X_y=True), k_max=6)
    >>> certified
    CertifiedPath(6 sizes, 6 proven)
    >>> [round(bound, 2) for bound in certified.table["lower"]]
    [77.52, 48.28, 35.56, 30.38, 28.16, 26.73]
    """
    clock = Monitor(time_limit)
    first = _first(path)
    if first is not None and k_max is not None:
        raise InputError("path has its own sizes", parameter="k_max", hint="give k_max or path")
    if first is not None and not isinstance(X, Problem):
        loss = first.loss if loss is None else loss
        ridge = first.ridge if ridge is None else ridge
    problem = read_problem(
        X, y, sample_weight=sample_weight, task=task, loss=loss, class_weight=class_weight,
        constraints=constraints,
    )  # fmt: skip
    limits = ProofLimits.checked(problem, time_limit, gap, n_jobs, verbose)
    if path is None:
        k_max = largest_size(problem) if k_max is None else problem.check_k(k_max)
    if ridge is None and not isinstance(X, Problem):
        ridge = "auto"
    if ridge is not None:
        problem = problem.with_ridge(ridge, k_max, random_state=random_state)
    results = _results(problem, path, k_max, limits, random_state)
    proofs = [Proof(problem, result, limits.gap) for result in results]
    if path is None and any(result.status == Status.INTERRUPTED for result in results):
        _stop(proofs)
    else:
        _Scheduler(problem, proofs, limits, clock).run()
    seconds = clock.seconds
    return CertifiedPath([proof.certificate(seconds) for proof in proofs], seconds)


def _first(path: Any) -> Result | None:
    """Return the first result of a path, or None if none is given."""
    if path is None:
        return None
    if not isinstance(path, Path) or len(path) == 0:
        raise InputError(parameter="path", value=path, expected="a Path of solve_path")
    return path[0]


def _results(
    problem: Problem, path: Path | None, k_max: int | None, limits: ProofLimits, random_state: Any
) -> list[Result]:
    if path is None:
        assert k_max is not None
        return list(
            solve_path(
                problem, k_max, time_limit=limits.share(SEARCH_SHARE), verbose=limits.verbose,
                random_state=random_state,
            )
        )  # fmt: skip
    known = (known_result(read_question(problem, features=result)) for result in path)
    return [result for result in known if result is not None]


def _stop(proofs: Sequence[Proof]) -> None:
    """Mark all open proofs as stopped by the user."""
    for proof in proofs:
        if not proof.proven:
            proof.status = Status.INTERRUPTED


class _Scheduler:
    """Gives the open sizes their turns, until none is open or the time is up."""

    def __init__(
        self, problem: Problem, proofs: Sequence[Proof], limits: ProofLimits, clock: Monitor
    ) -> None:
        self.problem, self.proofs, self.limits, self.clock = problem, proofs, limits, clock
        rules = problem.rules
        self._is_monotone = (rules is None or rules.is_simple) and has_only_column_rules(problem)
        self._improved = 0

    def run(self) -> None:
        rounds = 0
        try:
            # Large sizes first: what they show holds for the smaller ones.
            while open_ones := [proof for proof in reversed(self.proofs) if proof.is_open]:
                for proof in open_ones:
                    if self.clock.expired:
                        return
                    if proof.is_open:
                        self._turn(proof, rounds, len(open_ones))
                self._lift()
                rounds += 1
        except KeyboardInterrupt:
            self._share()
            _stop(self.proofs)

    def _seconds(self, share: float, n_open: int) -> float:
        """Seconds for one of so many sizes that have a share of what is left together."""
        left = (
            inf if self.limits.limit is None else max(self.limits.limit - self.clock.seconds, 0.0)
        )
        return min(left, max(share * left / n_open, LEAST_SECONDS))

    def _turn(self, proof: Proof, rounds: int, n_open: int) -> None:
        seconds = self._seconds(LATER_ROUNDS if rounds else FIRST_ROUND, n_open)
        if self.limits.limit is None:
            seconds = FIRST_SECONDS * 2.0**rounds
        with show_progress(f"proof, k={proof.k}", self.limits.verbose) as show:
            # A first bound that was cut short stays so: it gets a fair share at once.
            first = Monitor(self._seconds(1.0, n_open))
            ended = proof.run(Monitor(seconds, show), self.limits.threads, first)
        if ended == Status.INTERRUPTED:
            raise KeyboardInterrupt
        self._share()

    def _share(self) -> None:
        """Hand bounds down to the smaller sizes."""
        if not self._is_monotone:
            return
        for larger, smaller in zip(self.proofs[:0:-1], self.proofs[-2::-1], strict=True):
            # Every set of the smaller size is a part of one of the larger size.
            if larger.k == smaller.k + 1 <= len(self.problem.candidates):
                smaller.add_bound(larger.lower, larger.tolerance)

    def _lift(self) -> None:
        """Hand better sets up to the larger sizes: with a column more none is worse."""
        improved = sum(proof.improved for proof in self.proofs)
        if not self._is_monotone or improved == self._improved:
            return
        self._improved = improved
        fit = [proof for proof in self.proofs if proof.k <= len(self.problem.candidates)]
        state = make_state(self.problem, fit[-1].k)
        risen = make_monotone(self.problem, state, [proof.best for proof in fit])
        for proof, support in zip(fit, risen, strict=True):
            if support != proof.best and proof.search is not None:
                proof.search.add_known([support])
