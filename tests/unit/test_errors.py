from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from exactk import Problem, errors, solve
from exactk.errors import (
    ExactkError,
    InputError,
    Setting,
    UnknownMethodError,
    UnknownOptionError,
    did_you_mean,
    join_items,
)


def test_one_family_that_scikit_learn_and_python_understand() -> None:
    assert issubclass(InputError, ExactkError)
    assert issubclass(InputError, ValueError)
    assert issubclass(UnknownMethodError, InputError)
    assert issubclass(UnknownOptionError, ExactkError)
    # An unknown keyword is a TypeError everywhere else in Python.
    assert issubclass(UnknownOptionError, TypeError)
    assert set(errors.__all__) >= {"ExactkError", "InputError"}


class Silent:
    def __repr__(self) -> str:
        raise RuntimeError("no text")


@pytest.mark.parametrize(
    "value",
    [Silent(), 10**5000, "x" * 100_000, np.zeros((60, 6)), [["a\nb"] * 60], "two\nlines"],
    ids=["silent", "int", "text", "array", "list", "lines"],
)
@pytest.mark.parametrize(
    "make",
    [Setting, lambda name, value: InputError(parameter=name, value=value, expected="a number")],
)
def test_a_value_is_shown_in_one_short_line(make: Any, value: Any) -> None:
    text = str(make("k", value))
    assert text.startswith("k")
    assert "\n" not in text
    assert len(text) < 120


@pytest.mark.parametrize(
    ("call", "parameter"),
    [
        (lambda problem, value: solve(problem, value), "k"),
        (lambda problem, value: solve(problem, 2, value), "method"),
        (lambda problem, value: solve(problem, 2, init=value), "init"),
        (lambda problem, value: solve(problem, 2, time_limit=value), "time_limit"),
        (lambda problem, value: problem.with_ridge(value), "ridge"),
        (lambda problem, value: problem.with_loss(value), "loss"),
        (lambda problem, value: problem.with_constraints(include=value), "include"),
        (lambda problem, value: problem.with_constraints(include=[value]), "include"),
        (lambda problem, value: problem.with_constraints(count=value), "count"),
        (lambda problem, value: problem.with_constraints(quotas=value), "quotas"),
        (lambda problem, value: problem.with_constraints(costs=value, budget=1), "costs"),
        (lambda problem, value: problem.check_support(value), "support"),
    ],
)
@pytest.mark.parametrize(
    "value", [Silent(), -(10**5000), np.full((60, 6), 0.5)], ids=["silent", "int", "array"]
)
def test_no_value_breaks_a_message(call: Any, parameter: str, value: Any) -> None:
    problem = Problem.from_arrays(np.eye(6)[:, :4], np.arange(6) / 7)
    with pytest.raises(InputError) as error:
        call(problem, value)
    assert error.value.parameter == parameter
    assert len(str(error.value)) < 400


@pytest.mark.parametrize(
    ("items", "limit", "text"),
    [
        ([], 5, ""),
        (["a"], 5, "'a'"),
        (["a", "b"], 2, "'a', 'b'"),
        (["a", "b", "c", "d"], 1, "'a' and 3 more"),
        ((x for x in (1, 2, 3)), 2, "'1', '2' and 1 more"),
    ],
)
def test_listing_names_the_first_and_counts_the_rest(items, limit: int, text: str) -> None:
    assert join_items(items, limit) == text


def test_nearest_suggests_only_what_is_near_whatever_the_case() -> None:
    assert "'greedy'" in did_you_mean("gredy", ["exchange", "greedy"])
    assert "'Exchange'" in did_you_mean("EXCHANG", ["Exchange", "greedy"])
    assert did_you_mean("svm", ["exchange", "greedy"]) == ""
    assert did_you_mean("x", []) == ""
