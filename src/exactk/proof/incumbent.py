"""What a user says was chosen: a result or columns, read and held against the problem."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from exactk.errors import InputError, join_items
from exactk.problem.problem import Problem
from exactk.result import Result
from exactk.search.feasibility import Feasible
from exactk.search.units import Units
from exactk.types import Indices

__all__ = ["check_same", "columns_of", "count_scope", "units_of"]


# Objectives of the same columns that differ by no more, as a share of themselves and of the total,
# differ by rounding: another machine adds in another order.
SAME, SAME_OF_TOTAL = 1e-6, 1e-9


def columns_of(problem: Problem, chosen: Any, what: str) -> Indices:
    """Return the columns of a result, in order of entry, or of names and numbers.

    Parameters
    ----------
    problem : Problem
    chosen : Result, or list of str or int
        Numbers are those of the user's table.
    what : str
        What to call them in an error.

    Examples
    --------
    >>> import exactk
    >>> from sklearn.datasets import load_iris
    >>> problem = exactk.Problem.from_arrays(*load_iris(return_X_y=True))
    >>> columns_of(problem, [3, "x0"], "chosen")
    array([0, 3])
    >>> columns_of(problem.with_ridge(0.5), exactk.solve(problem, 2), "chosen")
    Traceback (most recent call last):
    ...
    exactk.errors.InputError: the result was found with ridge=0, this problem has ridge=0.5; give
    problem.with_ridge(0.0)
    """
    if isinstance(chosen, Result):
        columns = problem.check_support(chosen.order)
        if tuple(problem.name(p) for p in np.sort(columns)) != chosen.feature_names:
            raise InputError(
                f"the result is of another table: it has the columns "
                f"{join_items(chosen.feature_names)}"
            )
        if chosen.ridge != problem.ridge:
            raise InputError(
                f"the result was found with ridge={chosen.ridge:g}, this problem has "
                f"ridge={problem.ridge:g}; give problem.with_ridge({chosen.ridge!r})"
            )
        return columns
    numbers = isinstance(chosen, np.ndarray) or any(not isinstance(c, str) for c in chosen)
    if numbers and problem.categories:
        raise InputError(
            f"{what} has numbers, and the table has columns of text, each of which is several "
            f"columns here: give names, or the Result itself"
        )
    if isinstance(chosen, np.ndarray):
        mask = chosen.dtype == bool and chosen.shape == (len(problem.original_names),)
        chosen = (np.flatnonzero(chosen) if mask else chosen).tolist()
    twice = [one for n, one in enumerate(chosen) if one in list(chosen)[:n]]
    if twice and not isinstance(chosen, str):
        raise InputError(f"{what} names {twice[0]!r} twice")
    return np.array(problem.find_columns(chosen, what), dtype=np.intp)


def units_of(problem: Problem, units: Units, columns: Indices) -> list[int]:
    """Return the units that columns are, or say why no method can have chosen them."""
    found = units.units_of(columns.tolist())
    names = join_items(problem.original_names[j] for j in problem.table_columns(columns))
    if found is None:
        raise InputError(
            f"{names} cannot have been chosen: constant or excluded columns, or parts of groups, "
            f"are among them"
        )
    if count_scope(units, found) is None:
        raise InputError(f"{names} cannot have been chosen: they break constraints of the problem")
    return found


def count_scope(units: Units, members: Sequence[int]) -> Feasible | None:
    """The sets of the same size that keep the rules, if this one does; copies apart if they are."""
    k = int(units.weights[list(members)].sum())
    both = (Feasible(units, k), Feasible(units, k, forbid_duplicates=False))
    return next((feasible for feasible in both if feasible.keeps(members)), None)


def check_same(problem: Problem, result: Result) -> None:
    """Raise unless the columns of a result have the objective here that it says."""
    objective = problem.objective(result.support)
    slack = SAME * max(objective, result.objective) + SAME_OF_TOTAL * problem.total
    if not abs(objective - result.objective) <= slack:
        raise InputError(
            f"the result is of another problem: it has an objective of {result.objective:.6g}, and "
            f"its columns have {objective:.6g} here; give the problem that it was found with, with "
            f"the same rows, weights and target"
        )
