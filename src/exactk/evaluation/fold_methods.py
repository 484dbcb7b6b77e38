"""The methods of an evaluation: each selects features on the rows that it is given."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import nan
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from exactk.errors import InputError, UnknownMethodError, suggest
from exactk.evaluation.baselines import BASELINES, Baseline
from exactk.methods import registry
from exactk.methods.base import Method
from exactk.model_selection.choose_k import AutoK, choose_k
from exactk.model_selection.cross_validation import training_problem
from exactk.problem.constraints import Rules
from exactk.problem.problem import Problem
from exactk.question import GIVEN
from exactk.result import Result, Status
from exactk.search.selection_frequency import Features
from exactk.solver import solve
from exactk.types import Indices
from exactk.utils.monitor import Monitor
from exactk.utils.set_similarity import nogueira_index

__all__ = ["FoldMethod", "configured_method", "named_methods"]


class FoldMethod:
    """A method object, or one of `BASELINES`, on the rows of a problem in memory.

    `notes` are constraints that it ignores, in words; `problem` has the others. Groups of rows
    are for the inner folds that choose k or the ridge.
    """

    def __init__(
        self, problem: Problem, method: str | Method, *, ridge: Any = None, groups: Any = None,
        time_limit: float | None = None, seed: int | None = None,
    ) -> None:  # fmt: skip
        self.problem, self.notes = problem, list[str]()
        if isinstance(method, str):
            self.problem, self.notes = problem.with_rules(None), _ignored_constraints(problem)
            method = Baseline(method, (problem.rules or Rules()).exclude, seed)
            ridge = None
        self._method, self._ridge, self._groups = method, ridge, groups
        self._limit, self._seed = time_limit, seed
        # A class of the user may raise any error.
        self.is_foreign = not type(method).__module__.startswith("exactk.")

    def select(self, rows: Indices, k: int | AutoK) -> Result:
        """Select k features on these rows alone."""
        groups, clock = None if self._groups is None else self._groups[rows], Monitor()
        if isinstance(self._method, Baseline):
            # It needs no Gram matrix, and its time is that of scikit-learn.
            return self.search(training_problem(self.problem, rows, gram="columns"), k)
        found = self.search(training_problem(self.problem, rows), k, self._ridge, groups)
        return replace(found, seconds=clock.seconds)

    def search(
        self, part: Problem, k: int | AutoK, ridge: Any = None, groups: Any = None
    ) -> Result:
        """Select k features of a problem that was made of some rows."""
        method, seed = self._method, self._seed
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            if not isinstance(k, AutoK):
                part.check_k(k)
                if ridge is not None:
                    part = part.with_ridge(ridge, k, random_state=seed, groups=groups)
                result = solve(part, k, method, time_limit=self._limit)
            else:
                choice = choose_k(
                    part, **k.get_params(deep=False), method=method, ridge=ridge,
                    groups=groups if "cv" in (k.criterion, ridge) else None,
                    time_limit=self._limit, random_state=seed,
                )  # fmt: skip
                result = replace(choice.result, status=choice.status)
        if result.status == Status.INTERRUPTED:
            raise KeyboardInterrupt(result.message)
        if not isinstance(method, Baseline):
            # Warnings say the same as the status and the message.
            return result
        notes = [*self.notes, *([result.message] if result.message else [])]
        if any(issubclass(one.category, ConvergenceWarning) for one in caught):
            notes.append("a fit stopped before it converged")
            result = replace(result, status=Status.MAX_ITER)
        return replace(result, message="; ".join(notes))

    def stability(self, sets: Sequence[Indices]) -> float:
        """Return Nogueira's index of the sets of the folds; nan for a single fold."""
        if len(sets) < 2:
            return nan
        if isinstance(self._method, Baseline):
            # Copies of a column count, too: scikit-learn does not detect them.
            inputs = self.problem.input_columns
            free = np.unique(inputs[np.setdiff1d(self.problem.usable, self._method.exclude)])
            members = np.array([np.isin(free, inputs[columns]) for columns in sets], dtype=float)
        else:
            features = Features.of(self.problem)
            # Features that are always included say nothing about stability.
            members = features.members(sets)[:, ~features.is_included]
        return nogueira_index(members) if members.size else 1.0


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


def named_methods(
    method: str | Method, compare_with: Any = (), *, is_given: bool = False
) -> dict[str, str | Method]:
    """Return the methods of an evaluation by their names in its table, the reference first.

    The reference has another name if it is an existing selection that is given.

    Examples
    --------
    >>> list(named_methods("exchange", ["rfe", "l1"]))
    ['exchange', 'rfe', 'l1']
    """
    others = [compare_with] if isinstance(compare_with, (str, Method)) else compare_with
    if not isinstance(others, Iterable):
        raise InputError(
            parameter="compare_with", value=compare_with,
            expected="a list of method names or method objects",
        )  # fmt: skip
    listed = [(method, "method"), *((other, "compare_with") for other in others)]
    words = [_name(one, parameter) for one, parameter in listed]
    if is_given:
        words[0] = GIVEN
    named: dict[str, str | Method] = {}
    for word, (one, parameter) in zip(words, listed, strict=True):
        # Objects of the same class are distinguished by their parameters.
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
    known = [*registry.names(), *BASELINES]
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
    name = method if isinstance(method, str) else type(method).__name__.lower()
    made: Method = registry.create(method) if isinstance(method, str) else clone(method)
    options = made.option_names()
    given: dict[str, Any] = {}
    if effort is not None and (is_reference or "effort" in options):
        given["effort"] = effort
    if seed is not None and "random_state" in options:
        given["random_state"] = seed
    registry.check_options(name, options, given)
    made.set_params(**given).check()
    return made
