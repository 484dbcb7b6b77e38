"""Which records of a store belong together when recipes, sizes or data changed between its runs."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from typing import Any

from exactk.errors import InputError
from exactk.papers.experiments.cells import Cell
from exactk.papers.experiments.schema import missing_fields
from exactk.papers.experiments.store import Store

__all__ = ["gather", "latest", "merge_records", "setup_of"]

Record = dict[str, Any]


def setup_of(cell: Cell) -> str:
    """Return a short name of how a cell is measured: method, parameters, split and measures."""
    identity = cell.identity()
    parts = [identity[name] for name in ("variant", "protocol", "split", "measure")]
    text = json.dumps(parts, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def gather(paths: Iterable[str | os.PathLike[str]]) -> list[Record]:
    """Return what the stores at these places hold together, without what was replaced.

    Raises
    ------
    InputError
        If a file is not a store, or has a record that lacks what every table needs.

    Examples
    --------
    >>> gather(["nothing-yet.jsonl"])
    []
    """
    recipes: dict[str, Record] = {}
    cells: list[Record] = []
    for path in paths:
        for record in Store(path).records():
            if record["type"] == "cell":
                if lacks := missing_fields(record):
                    raise InputError(
                        f"the record {record['key']!r} of the store {os.fspath(path)!r} has no "
                        f"{lacks[0]}: delete its line, and its cell runs again", parameter="store",
                    )  # fmt: skip
                cells.append(record)
            else:
                recipes[record["name"]] = merge_records(recipes.get(record["name"]), record)
    return latest([*recipes.values(), *cells])


def merge_records(before: Mapping[str, Any] | None, now: Record) -> Record:
    """Return the record of a recipe that also covers what an earlier run of it measured.

    Methods, data sets, sizes and repeats add up, so that a method that is run later stands beside
    the others; in all else the new recipe counts.

    Examples
    --------
    >>> old = {
    ...     "definition": {
    ...         "datasets": ["iris"],
    ...         "sizes": [2],
    ...         "repeats": 5,
    ...         "methods": [{"label": "A"}],
    ...     },
    ...     "setups": {"A": "1"},
    ... }
    >>> new = {
    ...     "definition": {
    ...         "datasets": ["wine"],
    ...         "sizes": [2, 4],
    ...         "repeats": 3,
    ...         "methods": [{"label": "B"}],
    ...     },
    ...     "setups": {"B": "2"},
    ... }
    >>> both = merge_records(old, new)
    >>> both["definition"]["datasets"], both["definition"]["sizes"], both["definition"]["repeats"]
    (['iris', 'wine'], [2, 4], 5)
    >>> [method["label"] for method in both["definition"]["methods"]], both["setups"]
    (['A', 'B'], {'A': '1', 'B': '2'})
    """
    if before is None:
        return now
    old, new = before["definition"], now["definition"]
    fresh = {variant["label"]: variant for variant in new["methods"]}
    definition = {
        **new,
        "methods": [
            *(fresh.pop(variant["label"], variant) for variant in old["methods"]),
            *fresh.values(),
        ],
        "datasets": list(dict.fromkeys([*old["datasets"], *new["datasets"]])),
        "sizes": sorted({*old["sizes"], *new["sizes"]}),
        "repeats": max(old["repeats"], new["repeats"]),
    }
    tables = {
        name: {**before.get(name, {}), **now.get(name, {})} for name in ("setups", "checksums")
    }
    return {**now, "definition": definition, **tables}


def latest(records: Iterable[Record]) -> list[Record]:
    """Leave out what a later run replaced, so that a mean is over like things.

    Cells of a method whose parameters were changed under the same label, or of data that were
    replaced under the same name, are dropped; of results for the same draw and size, measured
    with other sizes beside it, the last is kept, and a failure only where nothing came after it.

    Parameters
    ----------
    records : iterable of dict
        As `Store.records` gives them.

    Examples
    --------
    >>> cell = {"type": "cell", "recipe": "r", "method": "A", "dataset": "iris", "setup": "1"}
    >>> first = cell | {"key": "x", "repeat": 0, "results": [{"k": 1}]}
    >>> second = cell | {"key": "y", "repeat": 0, "results": [{"k": 1}, {"k": 2}]}
    >>> [record["key"] for record in latest([first, second])]
    ['y']
    >>> latest([{"type": "recipe", "name": "r", "setups": {"A": "2"}}, first])[1:]
    []
    """
    records = list(records)
    recipes = {record["name"]: record for record in records if record["type"] == "recipe"}
    seen: set[tuple[Any, ...]] = set()
    kept: list[Record] = []
    for record in reversed(records):
        if record["type"] == "recipe":
            kept.append(record)
            continue
        recipe = recipes.get(record["recipe"], {})
        for table, entry, value in (
            ("setups", "method", "setup"),
            ("checksums", "dataset", "checksum"),
        ):
            if recipe.get(table, {}).get(record[entry], record.get(value)) != record.get(value):
                break
        else:
            draw = tuple(record.get(part) for part in ("recipe", "method", "dataset", "seed"))
            draw += (record.get("repeat"),)
            results = [found for found in record["results"] if (*draw, found["k"]) not in seen]
            seen.update((*draw, found["k"]) for found in results)
            # What failed, and was measured with other sizes beside it later, is history as well.
            wanted = [found["k"] for found in record["results"]] or record.get("sizes") or [None]
            if results or any((*draw, k) not in seen for k in wanted):
                kept.append({**record, "results": results})
    return kept[::-1]
