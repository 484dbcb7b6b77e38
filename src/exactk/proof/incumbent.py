"""A result of the user, checked against the problem."""

from __future__ import annotations

from exactk.errors import InputError
from exactk.problem.problem import Problem
from exactk.question import has_same_objective
from exactk.result import Result

__all__ = ["check_same"]


def check_same(problem: Problem, result: Result) -> None:
    """Raise unless the columns of a result have the objective here that it says."""
    if not has_same_objective(problem, result):
        raise InputError(
            f"the result is of another problem: it has an objective of {result.objective:.6g}, and "
            f"its columns have {problem.objective(result.support):.6g} here",
            parameter="features",
            hint=(
                "give the problem that it was found with, with the same rows, weights and target"
            ),
        )
