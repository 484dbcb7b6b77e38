"""The cases of ``cases.txt``: each has a name and a call that returns an answer."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tools.regression import calls, tables

Cases = Iterator[tuple[str, Callable[[], Any]]]

DEEP = ("cae", "firdl")
METHODS = [name for name in calls.method_names() if name not in DEEP]
# The values of the names in headings.
VALUES: dict[str, Any] = {
    "METHOD": METHODS, "DEEP_METHOD": DEEP,
    "REGRESSION_METHOD": [name for name in METHODS if not calls.needs_classes(name)],
    "CLASS_LOSS": [name for name in calls.loss_names() if name != "poisson"],
    "NUMBER_LOSS": [name for name in calls.loss_names() if name not in calls.CLASS_LOSSES],
    "TABLE": ("wine", "cancer", "correlated", "linnerud", "multilabel", "genes", "copies", "digits",
              "srbct", "lymphoma", "jaffe"),
    "LOADED": [name for name in tables.LOADED if name != "array"],
    "SOURCE": ("array", *tables.FILES, *tables.OTHERS),
    "SMALL_MEMORY": ("t.csv", "folder", "Dask frame"),
}  # fmt: skip
GROUPS = {"a": [0, 1], "b": [2, 3, 8]}
QUOTAS = {"f": ([0, 1, 2, 3], 1, 2), "g": ([6, 7, 8, 9], 0, 1)}
COSTS = [1.0 + j % 4 for j in range(10)]
EVERYTHING = {"include": [1], "groups": {"b": [2, 3]}, "quotas": QUOTAS, "costs": COSTS,
              "budget": 9.0, "max_correlation": 0.8}  # fmt: skip


def cases() -> Cases:
    """Return the name of each case and its call, to be made before the next one is taken."""
    rows, group, name = tables.table("rows")[0], "", None
    space = {**vars(tables), **vars(calls), **globals(), "X": rows[tables.NAMES]}
    space |= {column: rows[column].to_numpy() for column in "yvwg"}
    questions: dict[str, str] = {}
    for line in Path(__file__).with_suffix(".txt").read_text().splitlines():
        if line.startswith("["):
            group, name, *_ = [*line[1:-1].split(), None]
            os.environ["OMP_NUM_THREADS"] = "2" if group == "threads" else "1"
        elif line.startswith("#") or not line:
            continue
        elif group == "questions":
            question, _, questions[question] = line.partition(": ")
        elif group == "cli":
            yield f"{group}/{line}", lambda line=line: calls.command(line)
        else:
            for value in VALUES[name] if name else [None]:
                words = line.replace(name, repr(value)) if name else line
                for case, call in _calls(words, questions, space):
                    yield f"{group}/{case}", call


def _calls(line: str, questions: dict[str, str], space: dict[str, Any]) -> Cases:
    """Return the name and call of a line, or of each of its questions."""
    problem, _, asked = line.partition(" -> ")
    if not asked:
        yield line, lambda: eval(line, space)
        return
    k, _, names = asked.partition(": ")
    for name in names.split(", "):
        code = questions[name]
        yield (
            f"{problem}: {name}",
            lambda code=code: eval(code, {**space, "P": eval(problem, space), "K": int(k)}),
        )
