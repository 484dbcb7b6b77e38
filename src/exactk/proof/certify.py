"""The face of the room: whether a set is the best there is, and if not, how far it may be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from exactk.problem.problem import Problem
from exactk.proof.best_sets import best_sets
from exactk.proof.certify_path import certify_path
from exactk.proof.results import Certificate
from exactk.proof.run import Proof, ProofLimits, known_result
from exactk.result import Result, Status
from exactk.solver import solve
from exactk.utils.monitor import Monitor
from exactk.utils.progress import show_progress

if TYPE_CHECKING:
    from typing import Any

__all__ = ["best_sets", "certify", "certify_path"]

# Share of the time that a search before the proof may take; most end long before.
SEARCH_SHARE = 0.5


def certify(
    problem: Problem,
    result: Result | Sequence[str | int] | int,
    *,
    time_limit: float | None = 60.0,
    gap: float = 1e-6,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> Certificate:
    """Prove that a set of columns is the best of its size, or say how far from it it can be.

    All sets of the same size that keep the constraints of the problem are looked at, most of them
    by bounds for many at once. The bound only rises and the best set only improves, so that the
    certificate is right whenever the time is up.

    Parameters
    ----------
    problem : Problem
        The one that was solved, with its ridge and its constraints: both are a part of what is
        proven.
    result : Result, list of str or int, or int
        What to prove: a result of any method, columns by name or number, or a k to solve for
        first.
    time_limit : float or None
        Seconds for all of it; None goes on until it is proven, which may be never.
    gap : float
        End as soon as the gap is this small; up to a millionth it goes on until it is proven.
    n_jobs : int or None
        Threads; None and -1 are as many as the process may use.
    verbose : int
        1 shows a progress bar on a terminal, with the bound and the gap.

    Returns
    -------
    Certificate
        Its `result` is the set that was given, or a better one that was found on the way.

    Raises
    ------
    InputError
        The result is of another table, ridge or target, or breaks constraints of the problem.

    Notes
    -----
    Ctrl-C ends the proof and gives the certificate so far, with status ``interrupted``.

    Examples
    --------
    >>> import exactk
    >>> from sklearn.datasets import load_breast_cancer
    >>> problem = exactk.Problem.from_arrays(*load_breast_cancer(return_X_y=True))
    >>> certificate = exactk.certify(problem, exactk.solve(problem, 5))
    >>> certificate.proven, round(certificate.upper, 4), str(certificate.result.status)
    (True, 70.3327, 'optimal')
    >>> exactk.certify(problem, [0, 1, 2, 3, 4]).result.support
    array([ 2,  7, 20, 21, 23])
    """
    terms = ProofLimits.checked(problem, time_limit, gap, n_jobs, verbose)
    clock = Monitor(terms.limit)
    known = _known(problem, result, terms)
    proof = Proof(problem, known, terms.gap)
    if known.status == Status.INTERRUPTED and not isinstance(result, Result):
        # Whoever stopped the search does not want to wait for a proof.
        proof.status = Status.INTERRUPTED
        return proof.certificate(clock.seconds)
    with show_progress(f"proof, k={known.k}", verbose) as show:
        left = None if terms.limit is None else max(terms.limit - clock.seconds, 0.0)
        proof.run(Monitor(left, show), terms.threads)
    return proof.certificate(clock.seconds)


def _known(problem: Problem, result: Any, terms: ProofLimits) -> Result:
    if isinstance(result, (int, np.integer)) and not isinstance(result, bool):
        limit = terms.share(SEARCH_SHARE)
        return solve(problem, int(result), effort=1.0, time_limit=limit, verbose=terms.verbose)
    return known_result(problem, result)
