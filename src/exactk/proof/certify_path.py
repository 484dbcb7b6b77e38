"""Proofs of every size: they share the time, and what one shows the others use."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from exactk.problem.problem import Problem
from exactk.proof.results import CertifiedPath
from exactk.proof.run import Proof, ProofLimits, known_result
from exactk.result import Path, Status
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


def certify_path(
    problem: Problem,
    path: Path | int,
    *,
    time_limit: float | None = 60.0,
    gap: float = 1e-6,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> CertifiedPath:
    """Prove the best set of every size, or say how far from it each can be.

    After a short round for all sizes those that are still open share the time that is left, again
    and again, so that quick sizes leave theirs to the others. Without constraints, or with no more
    than columns that are in or out, the best objective never rises with k: what is proven of a
    larger size is then a bound for the smaller ones, too.

    Parameters
    ----------
    problem : Problem
    path : Path or int
        What `solve_path` gave, or the largest size, to solve for first.
    time_limit : float or None
        Seconds for all sizes together.
    gap, n_jobs, verbose
        As in `certify`.

    Returns
    -------
    CertifiedPath
        One `Certificate` for each size.

    Notes
    -----
    Ctrl-C ends it and gives what is known of every size.

    Examples
    --------
    >>> import exactk
    >>> from sklearn.datasets import load_wine
    >>> problem = exactk.Problem.from_arrays(*load_wine(return_X_y=True), ridge=0.1)
    >>> certified = exactk.certify_path(problem, 6)
    >>> certified
    CertifiedPath(6 sizes, 6 proven)
    >>> [round(bound, 2) for bound in certified.table["lower"]]
    [77.52, 48.28, 35.56, 30.38, 28.16, 26.73]
    """
    terms = ProofLimits.checked(problem, time_limit, gap, n_jobs, verbose)
    clock = Monitor(terms.limit)
    if isinstance(path, Path):
        results = [known_result(problem, result) for result in path]
    else:
        limit = terms.share(SEARCH_SHARE)
        results = list(solve_path(problem, path, time_limit=limit, verbose=verbose))
    proofs = [Proof(problem, result, terms.gap) for result in results]
    if any(result.status == Status.INTERRUPTED for result in results):
        _stop(proofs)
    else:
        _Scheduler(problem, proofs, terms, clock).run()
    seconds = clock.seconds
    return CertifiedPath([proof.certificate(seconds) for proof in proofs], seconds)


def _stop(proofs: Sequence[Proof]) -> None:
    """Note for all that are open that it was the user who ended them."""
    for proof in proofs:
        if not proof.proven:
            proof.status = Status.INTERRUPTED


class _Scheduler:
    """Turns of the sizes that are open, until none is or the time is up."""

    def __init__(
        self, problem: Problem, proofs: Sequence[Proof], terms: ProofLimits, clock: Monitor
    ) -> None:
        self.problem, self.proofs, self.terms, self.clock = problem, proofs, terms, clock
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
        left = inf if self.terms.limit is None else max(self.terms.limit - self.clock.seconds, 0.0)
        return min(left, max(share * left / n_open, LEAST_SECONDS))

    def _turn(self, proof: Proof, rounds: int, n_open: int) -> None:
        seconds = self._seconds(LATER_ROUNDS if rounds else FIRST_ROUND, n_open)
        if self.terms.limit is None:
            seconds = FIRST_SECONDS * 2.0**rounds
        with show_progress(f"proof, k={proof.k}", self.terms.verbose) as show:
            # A first bound that was cut short stays so: it gets a fair share at once.
            first = Monitor(self._seconds(1.0, n_open))
            ended = proof.run(Monitor(seconds, show), self.terms.threads, first)
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
