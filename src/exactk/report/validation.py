"""What may be asked of an investigation: everything is checked before the first search."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from exactk.errors import InputError
from exactk.evaluation.competitors import named_methods
from exactk.methods.base import Method
from exactk.methods.registry import check_options
from exactk.model_selection.choose_k import check_size_options, largest_size
from exactk.model_selection.cross_validation import is_number, row_groups
from exactk.model_selection.path_runner import read_method
from exactk.model_selection.scoring import read_estimator, read_scoring
from exactk.params import Integer, Number
from exactk.problem.problem import Problem
from exactk.report.settings import Settings
from exactk.solve import check_time_limit

__all__ = ["check_against", "check_baselines", "validate_settings"]


def validate_settings(asked: Settings, effort: float | None, time_limit: float | None) -> Settings:
    """Return the settings as plain values, effort and seed among the options, all of them checked.

    Parameters
    ----------
    asked : Settings
        As they were given.
    effort : float or None
    time_limit : float or None
    """
    _check_numbers(asked)
    check_time_limit(time_limit)
    rivals = check_baselines(asked.method, asked.methods)
    kind, options = read_method(asked.method, effort, asked.random_state, asked.options)
    if isinstance(asked.method, str) and time_limit and "effort" in kind.option_names():
        # None would be "until the time is up", and others are to have theirs.
        options.setdefault("effort", 1.0)
    check_options(asked.method_name, kind.option_names(), options)
    found = replace(
        asked, k=_int(asked.k), k_max=_int(asked.k_max), random_state=_int(asked.random_state),
        cv=_folds(asked.cv), methods=rivals, options=options,
    )  # fmt: skip
    found.own_method().check()
    return found


def check_against(asked: Settings, problem: Problem) -> None:
    """Raise for settings that this problem cannot have.

    Parameters
    ----------
    asked : Settings
    problem : Problem
    """
    if asked.k is not None:
        problem.check_k(asked.k)
    largest_size(problem, asked.k_max)
    if asked.groups is not None and problem.rows is not None:
        row_groups(asked.groups, problem.rows.n_rows)
    if asked.cv is not None and is_number(asked.cv):
        Integer(2, problem.n_rows, none="five folds")("cv", asked.cv)
    # What the default cannot do is said in its place on the page.
    several = problem.task == "classification" and problem.classes is None
    by_name = asked.estimator is not None and several
    made = read_estimator(asked.estimator, problem.task, several_labels=by_name)
    if asked.scoring is not None:
        read_scoring(asked.scoring, made)


def _check_numbers(asked: Settings) -> None:
    Integer(1, none="chosen")("k", asked.k)
    check_size_options(asked.criterion, asked.rule, asked.k_max, asked.cv)
    if asked.k is not None and asked.k_max is not None and asked.k_max < asked.k:
        raise InputError(f"k_max={asked.k_max} is less than k={asked.k}; ask for more sizes")
    Number("[0, inf]")("certify", asked.certify)
    Integer(0)("n_subsamples", asked.n_subsamples)
    if asked.n_subsamples == 1:
        raise InputError("n_subsamples must be 0 or at least 2, not 1")
    Integer(0)("n_permutations", asked.n_permutations)
    # Many parts are made of the same seed, which a generator would not give them twice.
    Integer(0, none="a fixed seed")("random_state", asked.random_state)


def check_baselines(method: Any, methods: Any) -> tuple[Any, ...]:
    """Return what a method is compared with, or say what is wrong with it.

    Examples
    --------
    >>> check_baselines("exchange", ["rfe"])
    ('rfe',)
    >>> check_baselines("exchange", ["rfe", "exchange"])
    Traceback (most recent call last):
    ...
    exactk.errors.InputError: methods names 'exchange', which the others are compared with; leave
    it out
    """
    if isinstance(methods, (str, Method)) or not isinstance(methods, Iterable):
        raise InputError(
            f"methods must be a list of names or method objects, empty for no comparison, not "
            f"{methods!r}"
        )
    listed = tuple(methods)
    if isinstance(method, str) and method in listed:
        raise InputError(
            f"methods names {method!r}, which the others are compared with; leave it out"
        )
    if listed:
        named_methods(listed)
    return listed


def _folds(cv: Any) -> Any:
    """Pairs of rows are gone through by every part, and some can be gone through only once."""
    return cv if is_number(cv) or hasattr(cv, "split") else list(cv)


def _int(value: int | None) -> int | None:
    return None if value is None else int(value)
