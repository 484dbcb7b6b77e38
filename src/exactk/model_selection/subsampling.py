"""One search, on all rows and on halves of them, and the grade of what the halves agree on."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from exactk.methods.base import Method
from exactk.model_selection.path_runner import read_method
from exactk.problem.constraints import Rules
from exactk.problem.problem import Problem
from exactk.result import Answer, Result, Status
from exactk.search.selection_frequency import size_in
from exactk.solver import grade, solve, solve_path
from exactk.types import Floats, Indices

__all__ = ["HalfSampleSearch", "grade_features", "usual_effort"]


# How hard half-samples are searched at one size. Without effort some end in a set that is not their
# best, and halves look less alike than they are; a tenth of the usual finds nearly all of the best.
EFFORT = 0.1
# Greedy steps and swaps alone, where a search is dear, or where a path goes from size to size.
NO_EFFORT = 0.0


class HalfSampleSearch:
    """The method with its options, as it chooses on all rows and on each half of them."""

    def __init__(
        self, method: str | Method, effort: float | None, random_state: object, options: Any
    ) -> None:
        kind, self.options = read_method(method, effort, random_state, options)
        self.method = method
        self.name = method if isinstance(method, str) else kind.__name__.lower()
        self.needs_rows = kind.needs_rows
        if isinstance(method, str) and "effort" in kind.option_names():
            self.options.setdefault("effort", NO_EFFORT)
        self.n_truncated = 0

    def on_all_rows(self, problem: Problem, k: int) -> Result:
        """Choose on all rows."""
        return solve(problem, k, self.method, **self.options)

    def in_half(self, half: Problem, k: int) -> list[Indices] | None:
        """Choose on a half of the rows; None if the user has stopped it."""
        size = size_in(half, k)
        if size == 0:
            self.n_truncated += 1
            return [np.zeros(0, dtype=np.intp)]
        with warnings.catch_warnings():
            # Of a hundred half-samples; what matters of them is in the message.
            warnings.simplefilter("ignore")
            result = self.on_all_rows(half, size)
        if result.status == Status.INTERRUPTED:
            return None
        support = _independent(half, result)
        self.n_truncated += len(support) < len(result.support) or size < k
        return [support]

    def path_in_half(self, half: Problem, k_max: int) -> list[Indices] | None:
        """Choose 1 to k_max columns on a half of the rows; None if the user has stopped it.

        Of a size that the half cannot have the columns are none.
        """
        found = [np.zeros(0, dtype=np.intp) for _ in range(k_max)]
        most = size_in(half, k_max)
        if most == 0:
            return found
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            path = solve_path(half, most, self.method, **self.options)
        for result in path:
            if result.status == Status.INTERRUPTED:
                return None
            found[result.k - 1] = _independent(half, result)
        return found


def usual_effort(problem: Problem, method: str | Method) -> float | None:
    """Return how hard the halves of a problem are searched; None for methods that do not search.

    Examples
    --------
    >>> problem = Problem.from_arrays(np.eye(4), [0, 0, 1, 1])
    >>> usual_effort(problem, "exchange"), usual_effort(problem, "fisher")
    (0.1, None)
    >>> usual_effort(problem.with_loss("logistic"), "exchange")
    0.0
    """
    if method != "exchange":
        return None
    simple = problem.rules is None or problem.rules.is_simple
    return EFFORT if simple and problem.loss.by_moments else NO_EFFORT


def _independent(half: Problem, result: Result) -> Indices:
    """The chosen columns without those that only make up the number, which come last."""
    rules = half.rules or Rules()
    if result.status != Status.RANK_DEFICIENT or not rules.is_simple:
        return result.support
    rank = half.with_ridge(0.0).refit(result.support).rank
    return np.union1d(result.order[:rank], np.array(rules.include, dtype=np.intp))


def grade_features(
    problem: Problem, k: int, chosen: list[int], scores: Floats, n_subsamples: int
) -> Result:
    """Return the fit on columns that were chosen already, as `solve` grades it."""
    answer = Answer(chosen, Status.CONVERGED, n_subsamples, ordered=True, scores=scores)
    return grade(problem, k, answer, "stability")
