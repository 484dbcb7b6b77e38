from __future__ import annotations

import pytest

from exactk import errors
from exactk.errors import (
    ExactkError,
    InputError,
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
