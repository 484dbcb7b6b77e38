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
from exactk.solver import check_time_limit

__all__ = ["check_against", "check_baselines", "validate_settings"]


def validate_settings(
    settings: Settings, effort: float | None, time_limit: float | None
) -> Settings:
    """Return the settings as plain values, effort and seed among the options, all of them checked.

    Parameters
    ----------
    settings : Settings
        As they were given.
    effort : float or None
    time_limit : float or None
    """
    _check_numbers(settings)
    check_time_limit(time_limit)
    baselines = check_baselines(settings.method, settings.methods)
    kind, options = read_method(settings.method, effort, settings.random_state, settings.options)
    if isinstance(settings.method, str) and time_limit and "effort" in kind.option_names():
        # None would be "until the time is up", and others are to have theirs.
        options.setdefault("effort", 1.0)
    check_options(settings.method_name, kind.option_names(), options)
    found = replace(
        settings, k=_int(settings.k), k_max=_int(settings.k_max),
        random_state=_int(settings.random_state),
        cv=_folds(settings.cv), methods=baselines, options=options,
    )  # fmt: skip
    found.own_method().check()
    return found


def check_against(settings: Settings, problem: Problem) -> None:
    """Raise for settings that this problem cannot have.

    Parameters
    ----------
    settings : Settings
    problem : Problem
    """
    if settings.k is not None:
        problem.check_k(settings.k)
    largest_size(problem, settings.k_max)
    if settings.groups is not None and problem.rows is not None:
        row_groups(settings.groups, problem.rows.n_rows)
    if settings.cv is not None and is_number(settings.cv):
        Integer(2, problem.n_rows, none="five folds")("cv", settings.cv)
    # What the default cannot do is said in its place on the page.
    several = problem.task == "classification" and problem.classes is None
    by_name = settings.estimator is not None and several
    made = read_estimator(settings.estimator, problem.task, several_labels=by_name)
    if settings.scoring is not None:
        read_scoring(settings.scoring, made)


def _check_numbers(settings: Settings) -> None:
    Integer(1, none="chosen")("k", settings.k)
    check_size_options(settings.criterion, settings.rule, settings.k_max, settings.cv)
    if settings.k is not None and settings.k_max is not None and settings.k_max < settings.k:
        raise InputError(f"k_max={settings.k_max} is less than k={settings.k}; ask for more sizes")
    Number("[0, inf]")("certify", settings.certify)
    Integer(0)("n_subsamples", settings.n_subsamples)
    if settings.n_subsamples == 1:
        raise InputError("n_subsamples must be 0 or at least 2, not 1")
    Integer(0)("n_permutations", settings.n_permutations)
    # Many parts are made of the same seed, which a generator would not give them twice.
    Integer(0, none="a fixed seed")("random_state", settings.random_state)


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
