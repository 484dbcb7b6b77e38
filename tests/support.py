"""What several test files need."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import combinations, product
from typing import Any

import pytest

from exactk import Problem, solve
from exactk.errors import InputError
from exactk.methods import registry


@contextmanager
def says(*words: str) -> Iterator[pytest.ExceptionInfo[InputError]]:
    """An InputError whose message holds all of these."""
    with pytest.raises(InputError) as error:
        yield error
    missing = [word for word in words if word not in str(error.value)]
    assert not missing, f"{missing} not in {str(error.value)!r}"


def runs_here(name: str) -> bool:
    """Whether what a method needs beside the core is installed."""
    return not registry.method_class(name).extra or find_spec("torch") is not None


def over(names: Iterable[str]) -> list[Any]:
    """Methods as test parameters; those that need torch have the marker `deep`."""
    return [
        pytest.param(name, marks=[pytest.mark.deep] * bool(registry.method_class(name).extra))
        for name in names
    ]


def refused(name: str, problem: Problem) -> bool:
    """Whether a method does not serve a problem of this kind, which it must say by its name."""
    method = registry.create(name)
    if method.needs_classes and problem.classes is None:
        with pytest.raises(InputError, match=rf"'{name}' needs classes.*'exchange'"):
            solve(problem, 1, name)
        return True
    try:
        method.check_problem(problem)
    except InputError:
        with pytest.raises(InputError, match=rf"^{name}\b.*rows"):
            solve(problem, 1, name)
        return True
    return False


def every_pair(*, indirect: Sequence[str] = (), **levels: Sequence[Any]) -> pytest.MarkDecorator:
    """Parametrise a test so that any two levels of different parameters meet in some case.

    Far fewer cases than all combinations (16 of 96 for 4 x 3 x 4 x 2), and a fault that depends on
    one parameter or on two is still met. Names in `indirect` are fixtures.
    """
    combined = [tuple(enumerate(case)) for case in product(*map(range, map(len, levels.values())))]
    pairs = {case: set(combinations(case, 2)) for case in combined}
    missing = set().union(*pairs.values())
    chosen = []
    while missing:
        best = max(combined, key=lambda case: len(pairs[case] & missing))
        missing -= pairs[best]
        chosen.append(best)
    columns = list(levels.values())
    cases = [tuple(columns[i][level] for i, level in case) for case in sorted(chosen)]
    return pytest.mark.parametrize(tuple(levels), cases, indirect=list(indirect))
