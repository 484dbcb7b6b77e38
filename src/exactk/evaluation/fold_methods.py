"""The methods of an evaluation: each selects columns on the training rows that it is given."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import isnan, nan
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from exactk.errors import InputError, UnknownMethodError, suggest
from exactk.evaluation.baselines import BASELINES, TrainingData
from exactk.methods import registry
from exactk.methods.base import Method
from exactk.model_selection.choose_k import AutoK, choose_k
from exactk.model_selection.cross_validation import training_problem
from exactk.native.threads import limit_threads
from exactk.problem.constraints import Rules
from exactk.problem.problem import Problem
from exactk.question import GIVEN
from exactk.result import Result, Status
from exactk.search.selection_frequency import Features
from exactk.solver import solve
from exactk.types import Floats, Indices
from exactk.utils.monitor import Monitor
from exactk.utils.set_similarity import nogueira_index

__all__ = [
    "BaselineMethod",
    "FixedColumns",
    "FoldMethod",
    "Selection",
    "SolverMethod",
    "configured_method",
    "known_methods",
    "named_methods",
]


@dataclass(frozen=True)
class Selection:
    """Columns of the problem that a method selected, and how it ended.

    Attributes
    ----------
    columns : ndarray of intp
    k : int
        Number of features; a group may count as one.
    status, note : str
    ridge, explained : float
        Ridge of the search, and the explained share.
    seconds : float
    """

    columns: Indices
    k: int
    status: str
    note: str
    ridge: float
    explained: float
    seconds: float = nan


class FoldMethod(ABC):
    """A method of an evaluation.

    Parameters
    ----------
    name : str
    problem : Problem
        Of all rows, in memory.
    time_limit : float or None
        Of each selection, in seconds.
    groups : ndarray or None
        Of the rows, for the inner folds that choose k.

    Attributes
    ----------
    keeps_constraints : bool
        Whether its sets keep the constraints of the problem.
    is_foreign : bool
        Whether the method is a class of the user, which may raise any error.
    """

    keeps_constraints: bool = True
    is_foreign: bool = False

    def __init__(
        self, name: str, problem: Problem, time_limit: float | None = None, groups: Any = None
    ) -> None:
        self.name, self.problem, self.time_limit, self._groups = name, problem, time_limit, groups

    def select(self, rows: Indices, k: int | AutoK) -> Selection:
        """Select k features on these rows alone."""
        clock = Monitor()
        groups = None if self._groups is None else self._groups[rows]
        found = self.search(training_problem(self.problem, rows), k, groups)
        # What is computed from the rows is part of the search, unless the method says otherwise.
        return replace(found, seconds=clock.seconds) if isnan(found.seconds) else found

    @abstractmethod
    def search(self, part: Problem, k: int | AutoK, groups: Any = None) -> Selection:
        """Select k features of a problem that was made of some rows."""

    def stability(self, sets: Sequence[Indices]) -> float:
        """Return Nogueira's index of the sets of the folds; nan for a single fold."""
        if len(sets) < 2:
            return nan
        members = self._members(sets)
        return nogueira_index(members) if members.size else 1.0

    @abstractmethod
    def _members(self, sets: Sequence[Indices]) -> Floats:
        """Return which set has which feature."""


class SolverMethod(FoldMethod):
    """A method of exactk, or one of the user that follows its protocol.

    Parameters
    ----------
    name, problem, time_limit, groups
        As in `FoldMethod`.
    method : Method
    ridge : "auto", "cv", float or None
        None is the ridge of the problem.
    seed : int or None
        Of the ridge and of the choice of k.
    """

    def __init__(
        self, name: str, problem: Problem, time_limit: float | None = None, groups: Any = None,
        *, method: Method, ridge: Any = None, seed: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__(name, problem, time_limit, groups)
        self._method, self._ridge, self._seed = method, ridge, seed
        self.is_foreign = not type(method).__module__.startswith("exactk.")

    def search(self, part: Problem, k: int | AutoK, groups: Any = None) -> Selection:  # noqa: D102
        with warnings.catch_warnings():
            # The status and the note say the same.
            warnings.simplefilter("ignore")
            result = self._solve(part, k, groups)
        if result.status == Status.INTERRUPTED:
            raise KeyboardInterrupt(result.message)
        return selection_of(result)

    def _solve(self, part: Problem, k: int | AutoK, groups: Any) -> Result:
        if not isinstance(k, AutoK):
            part.check_k(k)
            if self._ridge is not None:
                part = part.with_ridge(self._ridge, k, random_state=self._seed)
            return solve(part, k, self._method, time_limit=self.time_limit)
        choice = choose_k(
            part, **k.get_params(deep=False), method=self._method, ridge=self._ridge,
            groups=groups if k.criterion == "cv" else None, time_limit=self.time_limit,
            random_state=self._seed,
        )  # fmt: skip
        if choice.status == Status.INTERRUPTED:
            raise KeyboardInterrupt(choice.message)
        return choice.result

    def _members(self, sets: Sequence[Indices]) -> Floats:
        features = Features.of(self.problem)
        # Features that are always included say nothing about stability.
        free: Floats = features.members(sets)[:, ~features.is_included]
        return free


class BaselineMethod(FoldMethod):
    """A method of scikit-learn, which reads columns of numbers and keeps no constraint but exclude.

    Parameters
    ----------
    name, problem, time_limit
        As in `FoldMethod`; the name is one of `BASELINES`.
    seed : int or None
    """

    def __init__(
        self, name: str, problem: Problem, time_limit: float | None = None, *,
        seed: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__(name, problem, time_limit)
        self._seed = seed or 0
        self._excluded = [] if problem.rules is None else list(problem.rules.exclude)
        self._notes = _ignored_constraints(problem)
        self.keeps_constraints = not self._notes

    def search(self, part: Problem, k: int | AutoK, groups: Any = None) -> Selection:  # noqa: D102
        if isinstance(k, AutoK):
            raise InputError(
                f"{self.name} does not choose the number of features", parameter="k", value=k,
                hint="give k as a number, or another method",
            )  # fmt: skip
        training, columns = self._training(part, k)
        with limit_threads(training.x.size), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = columns[BASELINES[self.name](training, k)]
        seconds = training.monitor.seconds
        unfinished = any(issubclass(one.category, ConvergenceWarning) for one in caught)
        notes = [*self._notes, *(["a fit stopped before it converged"] if unfinished else [])]
        status = Status.MAX_ITER if unfinished else Status.CONVERGED
        total = part.total if part.loss.by_moments else part.null_model[1]
        explained = 1.0 - part.refit(found).residual / total if total > 0 else 0.0
        return Selection(found, k, str(status), "; ".join(notes), part.ridge, explained, seconds)

    def _training(self, part: Problem, k: int) -> tuple[TrainingData, Indices]:
        columns = np.setdiff1d(part.usable, self._excluded)
        if k > len(columns):
            raise InputError(
                f"only {len(columns)} columns can be selected", parameter="k", value=k,
                hint=f"use k={len(columns)} or less",
            )  # fmt: skip
        assert part.rows is not None
        assert part.target is not None
        size = 8 * part.rows.n_rows * len(columns)
        if size > part.memory_limit:
            raise InputError(
                f"{self.name} needs {part.rows.n_rows:,} rows and {len(columns):,} columns as an "
                f"array of {size / 2**30:.1f} GiB, and memory_limit is {part.memory_limit}",
                parameter="memory_limit", value=part.memory_limit, hint="raise it",
            )  # fmt: skip
        x = np.asarray(part.rows.columns(columns), dtype=np.float64)
        y = part.target.values if part.target.codes is None else part.target.codes
        assert y is not None
        # The clock starts with the array that scikit-learn would be given.
        clock = Monitor(self.time_limit)
        return TrainingData(x, y, part.weights, part.task, self._seed, clock), columns

    def _members(self, sets: Sequence[Indices]) -> Floats:
        problem = self.problem
        # Copies of a column count, too: scikit-learn does not detect them.
        free = np.setdiff1d(problem.usable, self._excluded)
        features = np.unique(problem.input_columns[free])
        held = [np.isin(features, problem.input_columns[columns]) for columns in sets]
        return np.array(held, dtype=float)


class FixedColumns(FoldMethod):
    """An existing selection, which is evaluated as it is.

    Parameters
    ----------
    problem : Problem
    result : Result
    """

    def __init__(self, problem: Problem, result: Result) -> None:
        super().__init__(GIVEN, problem)
        self._given = replace(selection_of(result), status=GIVEN, note="", seconds=0.0)

    def select(self, rows: Indices, k: int | AutoK) -> Selection:  # noqa: D102
        return self._given

    def search(self, part: Problem, k: int | AutoK, groups: Any = None) -> Selection:  # noqa: D102
        return self._given

    def stability(self, sets: Sequence[Indices]) -> float:  # noqa: D102
        return nan

    def _members(self, sets: Sequence[Indices]) -> Floats:
        raise NotImplementedError


def selection_of(result: Result) -> Selection:
    """Return what an evaluation needs of a result."""
    return Selection(
        result.support, result.k, str(result.status), result.message, result.ridge,
        result.explained,
    )  # fmt: skip


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
        None for an existing selection, which has no method.
    compare_with : list of str or Method, str or Method

    Examples
    --------
    >>> list(named_methods("exchange", ["rfe", "l1"]))
    ['exchange', 'rfe', 'l1']
    """
    single = isinstance(compare_with, (str, Method))
    others = [compare_with] if single else compare_with
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

    Parameters
    ----------
    method : str or Method
    effort : float or None
    seed : int or None
    is_reference : bool
        Other methods ignore an effort that they do not have.

    Examples
    --------
    >>> configured_method("exchange", 0.5, 3)
    Exchange(effort=0.5, random_state=3)
    >>> configured_method("fisher", 0.5, 3, is_reference=False)
    Fisher()
    """
    kind = registry.method_class(method) if isinstance(method, str) else type(method)
    name = method if isinstance(method, str) else kind.__name__.lower()
    options = kind.option_names()
    given: dict[str, Any] = {}
    if effort is not None and (is_reference or "effort" in options):
        given["effort"] = effort
    if seed is not None and "random_state" in options:
        given["random_state"] = seed
    registry.check_options(name, options, given)
    made: Method = kind() if isinstance(method, str) else clone(method)
    made.set_params(**given)
    made.check()
    return made
