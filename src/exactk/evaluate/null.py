"""What the same search explains of targets that are shuffled over the rows."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt

from exactk.choose.permuted import permuted_problems
from exactk.evaluate.parts import Chosen, Given
from exactk.problem import Problem
from exactk.progress import counting
from exactk.result import Status
from exactk.solve import solve

__all__ = ["permutation_null"]


def permutation_null(
    given: Given, whole: Chosen, n: int, random_state: Any, verbose: int
) -> tuple[float, npt.NDArray[np.float64], str]:
    """Search the true target and permuted ones alike, with the k and the ridge of the true one.

    Returns
    -------
    observed : float
        Share of the true target that is explained.
    null : ndarray
        The same for each permuted one; fewer than `n` if the user stopped it.
    message : str
        That it was stopped, else empty.
    """
    problem = given.problem.with_ridge(whole.ridge)
    observed = _explained(problem, given, whole.k)
    if observed is None:
        raise KeyboardInterrupt
    null: list[float] = []
    message = ""
    with counting("permutations", n, verbose) as show:
        try:
            for other in permuted_problems(problem, n, random_state, groups=given.groups):
                found = _explained(other, given, whole.k)
                if found is None:
                    raise KeyboardInterrupt
                null.append(found)
                show(len(null))
        except KeyboardInterrupt:
            message = f"stopped by the user after {len(null)} of {n} permutations"
    return observed, np.array(null), message


def _explained(problem: Problem, given: Given, k: int) -> float | None:
    """The share that the search explains, ridge term taken off; None if the user stopped it."""
    with warnings.catch_warnings():
        # What is wrong with a search was said of the true target, not once more a hundred times.
        warnings.simplefilter("ignore")
        result = solve(problem, k, given.asked.method, time_limit=given.asked.time_limit)
    if result.status == Status.INTERRUPTED:
        return None
    return 1.0 - result.objective / result.total
