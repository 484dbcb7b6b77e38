"""Run cases, store their answers, and compare them with stored ones."""

from __future__ import annotations

import contextlib
import json
import math
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from fnmatch import fnmatch
from itertools import groupby
from pathlib import Path
from typing import Any
from warnings import catch_warnings, simplefilter
from zlib import crc32

import numpy as np

# Numbers differ if |a - b| > max(RELATIVE · max(|a|, |b|), ABSOLUTE); the rest must be equal.
RELATIVE, ABSOLUTE = 1e-7, 1e-8
# Longer lists are summarised, those of whole numbers only if they are longer still.
LONG, LONG_WHOLE = 8, 24

Answers = dict[str, Any]


def plain(value: Any) -> Any:
    """Return a value as JSON has it: numbers with nine digits, long lists as a summary.

    The summary of numbers is how many there are, their norm, two weighted sums as shares of the
    norm, and how many are missing, if any; that of other lists is the length and a checksum.
    """
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items() if one is not None}
    if isinstance(value, float):
        return float(f"{value:.9g}") if math.isfinite(value) else str(value)
    if hasattr(value, "__array__"):
        return plain(np.asarray(value).tolist())
    if not isinstance(value, list | tuple):
        return value if isinstance(value, bool | int | None) else str(value)
    items = list(_items(value))
    kinds = {type(one) for one in items}
    if len(items) <= (LONG_WHOLE if kinds <= {int, bool} else LONG):
        return [plain(one) for one in value]
    if float not in kinds or str in kinds:
        text = " ".join(f"{one:.5g}" if isinstance(one, float) else str(one) for one in items)
        return f"{len(items)} {crc32(text.encode()):08x}"
    array = np.array([math.nan if one is None else float(one) for one in items])
    missing = int((~np.isfinite(array)).sum())
    array = np.nan_to_num(array, posinf=0.0, neginf=0.0)
    norm = float(np.linalg.norm(array))
    sums = np.array([array.sum(), array @ np.cos(np.arange(len(array)))]) / (norm or 1.0)
    return [
        len(items),
        plain(norm),
        *(np.round(sums, 9) + 0.0).tolist(),
        *[missing] * bool(missing),
    ]


def _items(value: Any) -> Iterator[Any]:
    for one in value:
        one = np.asarray(one).tolist() if hasattr(one, "__array__") else one
        if isinstance(one, list | tuple):
            yield from _items(one)
        else:
            yield one


def run(only: str = "*") -> Answers:
    """Return the answers of the cases whose name matches a pattern."""
    from tools.regression import calls, cases, tables

    answers: Answers = {}
    seconds: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), catch_warnings():
        simplefilter("ignore")
        tables.write_files()
        for name, call in cases.cases():
            if not fnmatch(name, only):
                continue
            if name in answers:
                raise ValueError(f"two cases are called {name}")
            begun = time.perf_counter()
            try:
                answer = plain(calls.fields(call()))
                answers[name] = answer if isinstance(answer, dict) else {"value": answer}
            except tables.NotHereError as error:
                answers[name] = {"not run": str(error)}
            except Exception as error:  # the class of any error is the answer
                at = getattr(error, "parameter", None)
                answers[name] = {"error": type(error).__name__} | ({"at": at} if at else {})
                if not isinstance(error, calls.ExactkError):
                    print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr)
            seconds[_group(name)] += time.perf_counter() - begun
    counts = Counter(map(_group, answers))
    for group, count in counts.items():
        print(f"{group}: {count} cases, {seconds[group]:.0f} s", file=sys.stderr)
    return answers


def read(path: Path, only: str = "*") -> Answers:
    """Read the cases of a record that match a pattern."""
    groups = json.loads(path.read_text(encoding="utf-8"))
    every = {
        f"{group}/{case}": one for group, cases in groups.items() for case, one in cases.items()
    }
    return {name: answer for name, answer in every.items() if fnmatch(name, only)}


def write(path: Path, answers: Answers, only: str = "*") -> None:
    """Write a record, a line for each case; cases that were not run stay as they are."""
    stored = read(path) if path.exists() else {}
    kept = {n for n in stored if not fnmatch(n, only) or "not run" in answers.get(n, ())}
    answers |= {n: stored[n] for n in kept}
    groups = []
    for group, names in groupby(sorted(answers), _group):
        lines = (f"{json.dumps(name.partition('/')[2])}:{_json(answers[name])}" for name in names)
        groups.append(f'"{group}":{{\n' + ",\n".join(lines) + "\n}")
    path.write_text("{" + ",\n".join(groups) + "}\n", encoding="utf-8")


def _group(name: str) -> str:
    return name.partition("/")[0]


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def differences(recorded: Answers, now: Answers) -> tuple[list[str], int]:
    """Return a line for each difference and a few for each group, and how many cases differ."""
    lines, total = list[str](), 0
    for group, grouped in groupby(sorted(recorded | now), _group):
        names, not_run, changed = list(grouped), Counter[str](), 0
        for name in names:
            pair = recorded.get(name), now.get(name)
            missing = [one["not run"] for one in pair if one and "not run" in one]
            not_run.update(missing[:1])
            if None in pair:
                found = ["only now" if pair[0] is None else "only recorded"]
            else:
                found = [] if missing else list(_unequal("", *pair))
            lines += [f"{name}: {one}" for one in found]
            changed += bool(found)
        lines += [f"{group}: {count} cases not run: {why}" for why, count in not_run.items()]
        lines.append(f"== {group}: {len(names)} cases, {changed} changed")
        total += changed
    return lines, total


def _unequal(field: str, before: Any, after: Any) -> Iterator[str]:
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted(before | after):
            pair = before.get(key, "absent"), after.get(key, "absent")
            yield from _unequal(f"{field}.{key}".lstrip("."), *pair)
    elif not _same(before, after):
        yield f"{field} recorded {_json(before)}, now {_json(after)}".lstrip()


def _same(before: Any, after: Any) -> bool:
    if isinstance(before, list) and isinstance(after, list):
        return len(before) == len(after) and all(map(_same, before, after))
    if isinstance(before, float) and isinstance(after, float):
        return math.isclose(before, after, rel_tol=RELATIVE, abs_tol=ABSOLUTE)
    return before == after
