"""A selection of the user, a result or columns, checked against the problem."""

from __future__ import annotations

from collections.abc import Sequence

from exactk.errors import InputError, join_items
from exactk.problem.problem import Problem
from exactk.question import has_same_objective
from exactk.result import Result
from exactk.search.feasibility import Feasible
from exactk.search.units import Units
from exactk.types import Indices

__all__ = ["check_same", "count_scope", "units_of"]


def units_of(problem: Problem, units: Units, columns: Indices) -> list[int]:
    """Return the units of the columns, or say why no method can select them."""
    found = units.units_of(columns.tolist())
    names = join_items(problem.original_names[j] for j in problem.table_columns(columns))
    if found is None:
        raise InputError(
            f"{names} cannot be selected together: constant or excluded columns, or parts of "
            f"groups, are among them",
            parameter="features",
        )  # fmt: skip
    if count_scope(units, found) is None:
        raise InputError(
            f"{names} cannot be selected together: they break constraints of the problem",
            parameter="features",
        )
    return found


def count_scope(units: Units, members: Sequence[int]) -> Feasible | None:
    """The sets of the same size that keep the rules, if this one does; copies apart if they are."""
    k = int(units.weights[list(members)].sum())
    both = (Feasible(units, k), Feasible(units, k, forbid_duplicates=False))
    return next((feasible for feasible in both if feasible.keeps(members)), None)


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
