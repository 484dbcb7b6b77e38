"""What puts a `Problem` under rules: constraints by name, and rules that another problem has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from exactk.data.categories import Category
from exactk.errors import InputError, join_items
from exactk.params import validate
from exactk.problem.constraints import Columns, Constraints, Group, Rules, make_rules
from exactk.types import Indices

if TYPE_CHECKING:
    from exactk.problem.problem import Problem

__all__ = ["WithConstraints"]


class WithConstraints:
    """What the columns of a problem are called, and a problem's ways to get rules."""

    @property
    def categories(self) -> tuple[Category, ...]:
        """Columns of the user's table that are coded as columns of 0 and 1 in this one.

        Examples
        --------
        >>> import polars as pl
        >>> from exactk import Problem
        >>> table = pl.DataFrame(
        ...     {"sex": ["f", "m", "f", "m"], "colour": ["red", "blue", "red", "white"]}
        ... )
        >>> problem = Problem.from_arrays(table, [1.0, 2.0, 4.0, 8.0])
        >>> problem.feature_names
        ('sex=m', 'colour=blue', 'colour=white')
        >>> problem.original_names, problem.input_columns.tolist()
        (('sex', 'colour'), [0, 1, 1])
        """
        rows = cast("Problem", self).rows
        return () if rows is None else rows.categories

    @cached_property
    def input_columns(self) -> Indices:
        """Index in the user's table of what each column codes; its own where nothing is coded."""
        steps = np.ones(cast("Problem", self).n_features, dtype=np.intp)
        for category in self.categories:
            steps[list(category.columns[1:])] = 0
        columns: Indices = np.cumsum(steps) - 1
        columns.setflags(write=False)
        return columns

    @cached_property
    def original_names(self) -> tuple[str, ...]:
        """Names of the columns of the user's table."""
        coded = {category.first: category.name for category in self.categories}
        first = np.flatnonzero(np.diff(self.input_columns, prepend=-1))
        problem = cast("Problem", self)
        return tuple(coded.get(j, problem.name(j)) for j in first.tolist())

    @cached_property
    def category_groups(self) -> tuple[Group, ...]:
        """Categories that are coded as several columns, which enter together."""
        return tuple(
            Group(category.name, category.columns)
            for category in self.categories
            if len(category.columns) > 1
        )

    def table_columns(self, columns: Any) -> list[int]:
        """Return the columns of the user's table behind columns of this problem, sorted.

        Examples
        --------
        >>> import polars as pl
        >>> from exactk import Problem
        >>> table = pl.DataFrame({"colour": ["red", "blue", "white", "red"], "size": [1, 2, 4, 5]})
        >>> problem = Problem.from_arrays(table, [1.0, 2.0, 4.0, 8.0])
        >>> problem.feature_names, problem.table_columns([2])
        (('colour=blue', 'colour=white', 'size'), [1])
        """
        found: list[int] = np.unique(
            self.input_columns[np.asarray(columns, dtype=np.intp)]
        ).tolist()
        return found

    def with_constraints(
        self, constraints: Constraints | Mapping[str, Any] | None = None, **fields: Any
    ) -> Problem:
        """Return the same problem with these constraints in place of any that it has.

        Parameters
        ----------
        constraints : Constraints, mapping or None
        **fields
            The same as keywords, such as ``include=["age"]``; see `Constraints`.

        Returns
        -------
        Problem

        Raises
        ------
        InputError
            A name is unknown, or constraints contradict each other. `solve` reports whether any
            k columns can keep them, and which constraints conflict.

        Examples
        --------
        >>> import exactk
        >>> from sklearn.datasets import load_breast_cancer
        >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
        >>> problem = exactk.Problem.from_arrays(X, y)
        >>> problem = problem.with_constraints(include=["mean texture"], max_correlation=0.5)
        >>> exactk.solve(problem, 3).feature_names
        ('mean texture', 'worst perimeter', 'worst smoothness')
        """
        problem = cast("Problem", self)
        given = Constraints.of({**Constraints.of(constraints).to_dict(), **fields})
        validate(given.get_params(deep=False))
        rules = make_rules(
            _columns(problem), problem.category_groups, **given.get_params(deep=False)
        )
        if rules is not None:
            constant = np.setdiff1d(rules.include, problem.usable)
            alone = [p for p in constant if p not in rules.group_of]
            if alone:
                names = [problem.original_names[j] for j in problem.table_columns(alone)]
                raise InputError(
                    f"{join_items(names)} is constant and has no information about the target",
                    parameter="include", value=given.include, hint="leave it out",
                )  # fmt: skip
        return self.with_rules(rules)

    def find_columns(self, columns: Any, what: str = "columns") -> tuple[int, ...]:
        """Return the columns of this problem behind names or numbers, sorted.

        Parameters
        ----------
        columns : str, int, or list of such
            Columns and categories as the table has them, groups by name.
        what : str
            What to call them in an error.

        Examples
        --------
        >>> import exactk
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True, as_frame=True)
        >>> exactk.Problem.from_arrays(X, y).find_columns(["petal width (cm)", 0])
        (0, 3)
        """
        problem = cast("Problem", self)
        known = _columns(problem)
        for group in () if problem.rules is None else problem.rules.feature_groups:
            known.add_group(group.name, group.columns)
        return known.find_all(what, columns)

    def with_rules(self, rules: Rules | None) -> Problem:
        """Return the same problem under rules that were made for its columns.

        For problems derived from another one, such as its folds: a column that must be in is then
        in even if it is constant there.

        Examples
        --------
        >>> import exactk
        >>> from sklearn.datasets import load_iris
        >>> problem = exactk.Problem.from_arrays(*load_iris(return_X_y=True))
        >>> problem.with_rules(Rules(exclude=(3,))).candidates
        array([0, 1, 2])
        """
        problem = cast("Problem", self)
        if rules is None and problem.rules is None:
            return problem
        candidates = np.setdiff1d(problem.usable, problem.duplicates)
        if rules is not None:
            candidates = _candidates(problem, candidates, rules)
        candidates.setflags(write=False)
        return replace(problem, rules=rules, candidates=candidates)


def _columns(problem: Problem) -> Columns:
    starts = np.flatnonzero(np.diff(problem.input_columns)) + 1
    parts = [part.tolist() for part in np.split(np.arange(problem.n_features), starts)]
    return Columns(problem.original_names, parts, problem.feature_names)


def _candidates(problem: Problem, candidates: Indices, rules: Rules) -> Indices:
    barred = np.asarray(rules.exclude, dtype=np.intp)
    wanted = np.asarray(rules.include, dtype=np.intp)
    candidates = np.setdiff1d(candidates, barred)
    stands_for = np.arange(problem.n_features)
    stands_for[problem.duplicates] = problem.originals
    touched = np.intersect1d(stands_for[np.concatenate([barred, wanted])], problem.originals)
    # One of several copies is a candidate: one that must be in, or the first that may be.
    for original in touched:
        alike = np.append(problem.duplicates[problem.originals == original], original)
        asked = np.intersect1d(alike, wanted)
        chosen = asked if asked.size else np.setdiff1d(alike, barred)[:1]
        candidates = np.union1d(np.setdiff1d(candidates, alike), chosen)
    return candidates
