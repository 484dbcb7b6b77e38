"""The methods of an evaluation: each selects features on the rows that it is given."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import nan
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from exactk.data.gram import GramMode
from exactk.errors import InputError, UnknownMethodError, suggest
from exactk.evaluation.baselines import BASELINES, TrainingData
from exactk.methods import registry
from exactk.methods.base import Method
from exactk.model_selection.choose_k import AutoK, choose_k
from exactk.model_selection.cross_validation import training_problem
from exactk.native.threads import limit_threads
from exactk.problem.constraints import Rules
from exactk.problem.problem import Problem
from exactk.result import Answer, Result, Status
from exactk.search.selection_frequency import Features
from exactk.solver import grade, solve
from exactk.types import Floats, Indices
from exactk.utils.monitor import Monitor
from exactk.utils.set_similarity import nogueira_index

__all__ = [
    "BaselineMethod",
    "FoldMethod",
    "SolverMethod",
    "configured_method",
    "known_methods",
    "named_methods",
]


class FoldMethod(ABC):
    """A method of an evaluation.

    Attributes
    ----------
    problem : Problem
        Of all rows, in memory.
    ridge : "auto", "cv", float or None
        None is the ridge of the problem.
    groups : ndarray or None
        Of all rows, for the inner folds that choose k.
    keeps_constraints : bool
        Whether its sets keep the constraints of the problem.
    is_foreign : bool
        Whether it is a class of the user, which may raise any error.
    gram : {"auto", "columns"}
        How the Gram matrix of training rows is computed.
    """

    keeps_constraints: bool = True
    is_foreign: bool = False
    gram: GramMode = "auto"

    def __init__(self, problem: Problem, ridge: Any = None, groups: Any = None) -> None:
        self.problem, self.ridge, self.groups = problem, ridge, groups

    def select(self, rows: Indices, k: int | AutoK) -> Result:
        """Select k features on these rows alone."""
        groups = None if self.groups is None else self.groups[rows]
        part = training_problem(self.problem, rows, gram=self.gram)
        return self.search(part, k, self.ridge, groups)

    @abstractmethod
    def search(
        self, part: Problem, k: int | AutoK, ridge: Any = None, groups: Any = None
    ) -> Result:
        """Select k features of a problem that was made of some rows."""

    @abstractmethod
    def members(self, sets: Sequence[Indices]) -> Floats:
        """Return 1 for each set and each selectable feature that it has, 0 otherwise."""

    def stability(self, sets: Sequence[Indices]) -> float:
        """Return Nogueira's index of the sets of the folds; nan for a single fold."""
        if len(sets) < 2:
            return nan
        members = self.members(sets)
        return nogueira_index(members) if members.size else 1.0


class SolverMethod(FoldMethod):
    """A method of exactk, or one of the user that follows its protocol."""

    def __init__(
        self, problem: Problem, method: Method, *, ridge: Any = None, groups: Any = None,
        time_limit: float | None = None, seed: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__(problem, ridge, groups)
        self._method, self._limit, self._seed = method, time_limit, seed
        self.is_foreign = not type(method).__module__.startswith("exactk.")

    def select(self, rows: Indices, k: int | AutoK) -> Result:  # noqa: D102
        # What is computed from the rows, such as the Gram matrix, is part of the search.
        clock = Monitor()
        return replace(super().select(rows, k), seconds=clock.seconds)

    def search(  # noqa: D102
        self, part: Problem, k: int | AutoK, ridge: Any = None, groups: Any = None
    ) -> Result:
        with warnings.catch_warnings():
            # The status and the message say the same.
            warnings.simplefilter("ignore")
            if not isinstance(k, AutoK):
                part.check_k(k)
                if ridge is not None:
                    part = part.with_ridge(ridge, k, random_state=self._seed)
                result = solve(part, k, self._method, time_limit=self._limit)
            else:
                choice = choose_k(
                    part, **k.get_params(deep=False), method=self._method, ridge=ridge,
                    groups=groups if k.criterion == "cv" else None, time_limit=self._limit,
                    random_state=self._seed,
                )  # fmt: skip
                result = replace(choice.result, status=choice.status)
        if result.status == Status.INTERRUPTED:
            raise KeyboardInterrupt(result.message)
        return result

    def members(self, sets: Sequence[Indices]) -> Floats:  # noqa: D102
        features = Features.of(self.problem)
        # Features that are always included say nothing about stability.
        free: Floats = features.members(sets)[:, ~features.is_included]
        return free


class BaselineMethod(FoldMethod):
    """One of `BASELINES`: it reads columns of numbers and keeps no constraint but exclude."""

    # Only the columns that are selected are needed.
    gram = "columns"

    def __init__(
        self, name: str, problem: Problem, *, time_limit: float | None = None,
        seed: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__(problem)
        self.name, self._limit, self._seed = name, time_limit, seed or 0
        self._excluded = [] if problem.rules is None else list(problem.rules.exclude)
        self._notes = _ignored_constraints(problem)
        self.keeps_constraints = not self._notes

    def search(  # noqa: D102
        self, part: Problem, k: int | AutoK, ridge: Any = None, groups: Any = None
    ) -> Result:
        columns = np.setdiff1d(part.usable, self._excluded)
        if isinstance(k, AutoK) or k > len(columns):
            most = f"a whole number of at most {len(columns)} for {self.name}"
            raise InputError(parameter="k", value=k, expected=most)
        x, y = self._table(part, columns)
        # The clock starts with the array that scikit-learn would be given.
        clock = Monitor(self._limit)
        training = TrainingData(x, y, part.weights, part.task, self._seed, clock)
        with limit_threads(x.size), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = columns[BASELINES[self.name](training, k)]
        answer = Answer(found.tolist(), Status.CONVERGED, 0)
        result = grade(part.with_rules(None), k, answer, self.name, clock.seconds)
        notes = [*self._notes, *([result.message] if result.message else [])]
        if any(issubclass(one.category, ConvergenceWarning) for one in caught):
            notes.append("a fit stopped before it converged")
            result = replace(result, status=Status.MAX_ITER)
        return replace(result, message="; ".join(notes))

    def _table(self, part: Problem, columns: Indices) -> tuple[Floats, Any]:
        assert part.rows is not None
        assert part.target is not None
        size = 8 * part.rows.n_rows * len(columns)
        if size > part.memory_limit:
            raise InputError(
                f"{self.name} needs {part.rows.n_rows:,} rows and {len(columns):,} columns as an "
                f"array of {size / 2**30:.1f} GiB, and memory_limit is {part.memory_limit}",
                parameter="memory_limit", value=part.memory_limit, hint="raise it",
            )  # fmt: skip
        y = part.target.values if part.target.codes is None else part.target.codes
        return np.asarray(part.rows.columns(columns), dtype=np.float64), y

    def members(self, sets: Sequence[Indices]) -> Floats:  # noqa: D102
        problem = self.problem
        # Copies of a column count, too: scikit-learn does not detect them.
        free = np.setdiff1d(problem.usable, self._excluded)
        features = np.unique(problem.input_columns[free])
        held = [np.isin(features, problem.input_columns[columns]) for columns in sets]
        return np.array(held, dtype=float)


def _ignored_constraints(problem: Problem) -> list[str]:
    """Return in words what the sets of a baseline lack."""
    rules, words = problem.rules or Rules(), []
    levels = {p for category in problem.categories for p in category.columns}
    if levels:
        words.append(
            f"selects among the {problem.n_features} encoded columns, also single levels of a "
            f"category"
        )
    groups = [group for group in rules.feature_groups if not levels.issuperset(group.columns)]
    if groups or replace(rules, feature_groups=(), exclude=()) != Rules(count=rules.count):
        words.append("keeps no constraint but exclude")
    return words


def known_methods() -> list[str]:
    """Return the names of all methods that can be evaluated.

    Examples
    --------
    >>> known_methods()[-3:]
    ['selectkbest', 'rfe', 'l1']
    """
    return [*registry.names(), *BASELINES]


def named_methods(method: Any, compare_with: Any = ()) -> dict[str, str | Method]:
    """Return the methods of an evaluation by their names in its table, the reference first.

    Parameters
    ----------
    method : str, Method or None
        None if the reference is an existing selection.
    compare_with : list of str or Method, str or Method

    Examples
    --------
    >>> list(named_methods("exchange", ["rfe", "l1"]))
    ['exchange', 'rfe', 'l1']
    """
    others = [compare_with] if isinstance(compare_with, (str, Method)) else compare_with
    if others is None or not isinstance(others, Iterable):
        raise InputError(
            parameter="compare_with", value=compare_with,
            expected="a list of method names or method objects",
        )  # fmt: skip
    listed = [] if method is None else [(method, "method")]
    listed += [(other, "compare_with") for other in others]
    words = [_name(one, parameter) for one, parameter in listed]
    named: dict[str, str | Method] = {}
    for word, (one, parameter) in zip(words, listed, strict=True):
        # Two objects of one class are told apart by their parameters.
        name = word if isinstance(one, str) or words.count(word) == 1 else repr(one)
        if name in named:
            raise InputError(
                f"method {name!r} is given twice", parameter=parameter, hint="name it once"
            )
        named[name] = one
    return named


def _name(method: Any, parameter: str) -> str:
    if isinstance(method, Method):
        return type(method).__name__.lower()
    known = known_methods()
    if method not in known:
        close = suggest(method, known) if isinstance(method, str) else ""
        raise UnknownMethodError(
            f"unknown method {method!r}", parameter=parameter, value=method,
            hint=close or f"known methods: {', '.join(known)}",
        )  # fmt: skip
    return str(method)


def configured_method(
    method: str | Method, effort: Any, seed: int | None, *, is_reference: bool = True
) -> Method:
    """Return a method object with effort and seed, its parameters checked.

    Methods other than the reference ignore an effort that they do not have.

    Examples
    --------
    >>> configured_method("exchange", 0.5, 3)
    Exchange(effort=0.5, random_state=3)
    >>> configured_method("fisher", 0.5, 3, is_reference=False)
    Fisher()
    """
    made: Method = registry.create(method) if isinstance(method, str) else clone(method)
    options = made.option_names()
    given: dict[str, Any] = {}
    if effort is not None and (is_reference or "effort" in options):
        given["effort"] = effort
    if seed is not None and "random_state" in options:
        given["random_state"] = seed
    name = method if isinstance(method, str) else type(method).__name__.lower()
    registry.check_options(name, options, given)
    made.set_params(**given).check()
    return made
