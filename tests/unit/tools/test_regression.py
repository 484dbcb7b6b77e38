from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tools.regression.answers import differences, plain, read, write


@pytest.mark.parametrize(
    ("before", "after", "equal"),
    [
        (1.0, 1.0 + 1e-8, True),
        (1.0, 1.0 + 1e-6, False),
        (0.0, 1e-9, True),
        (3, 4, False),
        ([1.0, [2, 3]], [1.0, [2, 3]], True),
        ([1.0, [2, 3]], [1.0, [3, 2]], False),
        ([1, 2], [1, 2, 3], False),
        ("optimal", "converged", False),
        ({"a": {"b": 1}}, {"a": {"b": 1, "c": 2}}, False),
    ],
)
def test_numbers_may_differ_by_rounding_and_nothing_else(
    before: Any, after: Any, equal: bool
) -> None:
    lines, changed = differences({"g/x": {"f": before}}, {"g/x": {"f": after}})
    assert (changed == 0) == equal
    assert lines[-1] == f"== g: 1 cases, {changed} changed"


def test_missing_cases_are_changes_and_cases_that_did_not_run_are_not() -> None:
    recorded = {"g/x": {"f": 1}, "h/y": {"f": 1}}
    lines, changed = differences(recorded, {"g/z": {"f": 1}, "h/y": {"not run": "no data"}})
    assert changed == 2
    assert lines == [
        "g/x: only recorded",
        "g/z: only now",
        "== g: 2 cases, 2 changed",
        "h: 1 cases not run: no data",
        "== h: 1 cases, 0 changed",
    ]


def test_long_lists_are_summarised() -> None:
    numbers = np.linspace(0, 1, 50)
    assert plain({"a": np.arange(3.0), "b": None}) == {"a": [0.0, 1.0, 2.0]}
    assert plain(numbers) == plain(list(numbers))
    assert plain(numbers) != plain(numbers[::-1])
    assert plain(numbers)[0] == 50
    assert plain(list("abcdefghij")).startswith("10 ")


def test_a_part_of_a_record_can_be_replaced(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    write(path, {"g/x": {"f": 1}, "g/y": {"f": 2}, "h/z": {"f": 3}})
    write(path, {"g/x": {"f": 9}, "h/z": {"not run": "no data"}}, only="*/[xz]")
    assert read(path) == {"g/x": {"f": 9}, "g/y": {"f": 2}, "h/z": {"f": 3}}
    assert read(path, "h/*") == {"h/z": {"f": 3}}
