"""Prove that a set of features is the best of its size, or bound how much better one can be."""

from __future__ import annotations

from typing import Any

from exactk.params import validated
from exactk.proof.best_sets import best_sets
from exactk.proof.certify_path import certify_path
from exactk.proof.results import Certificate
from exactk.proof.run import Proof, ProofLimits, known_result
from exactk.question import read_question
from exactk.result import Status
from exactk.solver import solve
from exactk.utils.monitor import Monitor
from exactk.utils.progress import show_progress

__all__ = ["best_sets", "certify", "certify_path"]

# Share of the time that the search before the proof may take; most searches need far less.
SEARCH_SHARE = 0.5


@validated
def certify(
    X: Any,
    y: Any = None,
    *,
    k: Any = None,
    features: Any = None,
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
) -> Certificate:
    """Prove that a set of features is the best of its size, or say how much better one can be.

    All sets of this size that keep the constraints are compared, most of them by bounds for many
    sets at once. The bound only rises and the best set only improves, so the certificate is right
    whenever it ends.

    Parameters
    ----------
    X : array-like, sparse matrix, frame, Dask collection or Problem
    y : array-like or None
    k : int, "auto", AutoK or None
        Number of features to select first.
    features : list of str or int, Result, fitted selector or None
        An existing selection to prove, in place of k.
    time_limit : float or None
        Maximum time in seconds, with the search. None ends only when the set is proven.
    gap : float
        Stop when the gap is this small; up to a millionth it continues until the set is proven.
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
    Certificate
        Its `result` is the set that was given, or a better one. After Ctrl-C it has the status
        ``interrupted`` and the bound found until then.

    Raises
    ------
    InputError
        The selection is of another table, ridge or target, or breaks constraints.

    Examples
    --------
    >>> import exactk
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> certificate = exactk.certify(X, y, k=5, ridge=0)
    >>> certificate.proven, round(certificate.upper, 4), str(certificate.result.status)
    (True, 70.3327, 'optimal')
    >>> exactk.certify(X, y, features=[0, 1, 2, 3, 4], ridge=0).result.support
    array([ 2,  7, 20, 21, 23])
    """
    clock = Monitor(time_limit)
    question = read_question(
        X, y, k=k, features=features, ridge=ridge, random_state=random_state,
        time_limit=time_limit, verbose=verbose, sample_weight=sample_weight, task=task, loss=loss,
        class_weight=class_weight, constraints=constraints,
    )  # fmt: skip
    problem = question.problem
    limits = ProofLimits.checked(problem, time_limit, gap, n_jobs, verbose)
    known = known_result(question)
    if known is None:
        known = solve(
            problem, question.k, effort=1.0, time_limit=limits.share(SEARCH_SHARE),
            random_state=random_state, verbose=verbose,
        )  # fmt: skip
    proof = Proof(problem, known, limits.gap)
    if known.status == Status.INTERRUPTED and question.columns is None:
        # A user who stopped the search does not want to wait for a proof.
        proof.status = Status.INTERRUPTED
        return proof.certificate(clock.seconds)
    with show_progress(f"proof, k={known.k}", verbose) as show:
        left = None if limits.limit is None else max(limits.limit - clock.seconds, 0.0)
        proof.run(Monitor(left, show), limits.threads)
    return proof.certificate(clock.seconds)
