"""From the records of a store to one study a recipe, checked on the way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from exactk.errors import InputError
from exactk.papers.experiments.merge import latest
from exactk.papers.experiments.page.study import Study
from exactk.papers.experiments.store import SCHEMA
from exactk.report.numbers import finite

__all__ = ["studies"]

Record = Mapping[str, Any]

# What a cell must say for anything to be drawn of it.
NEEDED = ("recipe", "dataset", "method", "status", "repeat")


def studies(records: Iterable[Any]) -> list[Study]:
    """Arrange the records of a store by recipe, in the order in which recipes first appear.

    Parameters
    ----------
    records : iterable of mapping
        As in the store: recipes and cells. Of several records of one cell the last counts.

    Raises
    ------
    InputError
        If there are none, or one is not what a store holds.
    """
    checked: list[dict[str, Any]] = []
    for number, record in enumerate(records, start=1):
        kind = record.get("type") if isinstance(record, Mapping) else None
        if kind == "recipe" and isinstance(record.get("definition"), Mapping):
            checked.append({**record, "name": str(record.get("name"))})
        elif kind == "cell":
            _check_cell(record, number)
            checked.append(_completed(record, number))
        else:
            raise InputError(
                f"record {number} has type {kind!r}",
                parameter="store",
                hint=(
                    "a store holds 'recipe' (with its definition) "
                    "and 'cell' (is this a file that exactk papers run wrote?)"
                ),
            )
    if not checked:
        raise InputError(
            "the store holds no records", parameter="store",
            hint="run a recipe first: exactk papers run",
        )  # fmt: skip
    definitions: dict[str, Mapping[str, Any]] = {}
    cells: dict[str, dict[str, Record]] = {}
    for record in checked:
        cells.setdefault(record["recipe"] if record["type"] == "cell" else record["name"], {})
    for record in latest(checked):
        if record["type"] == "recipe":
            definitions[record["name"]] = record["definition"]
        else:
            # Of a cell that was tried again, the last record counts.
            cells[record["recipe"]].pop(record["key"], None)
            cells[record["recipe"]][record["key"]] = record
    return [Study(name, definitions.get(name, {}), list(cells[name].values())) for name in cells]


def _completed(record: Record, number: int) -> dict[str, Any]:
    """Fill in what may be absent without harm, so that nothing behind has to ask."""
    results = [
        {**result, "measures": _numbers(result.get("measures") or {})}
        for result in record.get("results") or ()
        if result.get("k") is not None
    ]
    return {
        "key": f"record {number}", "sizes": [], "reason": "", **record,
        "recipe": str(record["recipe"]), "dataset": str(record["dataset"]),
        "method": str(record["method"]), "results": results,
    }  # fmt: skip


def _numbers(measures: Mapping[str, Any]) -> dict[str, float]:
    return {
        str(name): value for name, raw in measures.items() if (value := finite(raw)) is not None
    }


def _check_cell(record: Record, number: int) -> None:
    schema = record.get("schema", SCHEMA)
    if not isinstance(schema, int) or schema > SCHEMA:
        raise InputError(
            f"record {number} has schema {schema!r}, and this exactk reads up to {SCHEMA}",
            parameter="store", hint="update exactk",
        )  # fmt: skip
    lacking = [name for name in NEEDED if record.get(name) is None]
    if lacking:
        raise InputError(
            f"record {number} is a cell without {', '.join(lacking)}", parameter="store"
        )
