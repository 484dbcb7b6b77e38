"""What the fields of a record hold: looked at once, where a store is read.

All that shows records may then rely on it, and a file that somebody edited is told by its line
instead of failing somewhere in a table or figure.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["find_fault", "missing_fields"]

Test = Callable[[Any], bool]


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _number(value: Any) -> bool:
    return _whole(value) or (isinstance(value, float) and math.isfinite(value))


def _table(value: Any) -> bool:
    return isinstance(value, Mapping)


def _list_of(test: Test) -> Test:
    return lambda value: isinstance(value, list) and all(map(test, value))


def _table_of(test: Test) -> Test:
    return lambda value: isinstance(value, Mapping) and all(map(test, value.values()))


def _or_none(test: Test) -> Test:
    return lambda value: value is None or test(value)


def _texts(value: Any) -> bool:
    return _text(value) or _list_of(_text)(value)


def _printed(value: Any) -> bool:
    """Whether this is a number of a paper, or a number and its deviation."""
    if isinstance(value, list):
        return len(value) in (1, 2) and _number(value[0]) and all(map(_or_none(_number), value))
    return _number(value)


def _by_size(value: Any) -> bool:
    return isinstance(value, Mapping) and all(
        str(k).isdecimal() and _table_of(_printed)(entry) for k, entry in value.items()
    )


_RESULT: dict[str, Test] = {
    "k": _whole,
    "measures": _table_of(_or_none(_number)),
    "support": _or_none(_list_of(_whole)),
    "trace": _or_none(_list_of(_or_none(_number))),
    "details": _or_none(_table),
    "status": _text,
    **dict.fromkeys(("objective", "own", "seconds", "n_iter"), _or_none(_number)),
}
_CELL: dict[str, Test] = {
    **dict.fromkeys(("key", "recipe", "dataset", "method", "status"), _text),
    **dict.fromkeys(("name", "protocol", "reason", "checksum", "setup"), _or_none(_text)),
    **dict.fromkeys(("rows", "features", "classes", "seed"), _or_none(_whole)),
    **dict.fromkeys(("seconds", "wall"), _or_none(_number)),
    **dict.fromkeys(("options", "machine", "versions"), _or_none(_table)),
    "repeat": _whole,
    "sizes": _list_of(_whole),
    "results": _list_of(_table),
}
_VIEW: dict[str, Test] = {
    **dict.fromkeys(("kind", "title", "scale", "x", "statistic", "caption"), _or_none(_text)),
    "measure": _or_none(_texts),
}
_DEFINITION: dict[str, Test] = {
    **dict.fromkeys(("title", "paper", "description", "protocol"), _or_none(_text)),
    **dict.fromkeys(("datasets", "reproduces"), _list_of(_text)),
    "sizes": _list_of(_whole),
    "repeats": _whole,
    "methods": _list_of(_table),
    "views": _list_of(_table),
    "split": _table,
    "measure": _table,
    "published": _table_of(_table_of(_by_size)),
}
# Without these a record cannot stand in a table.
_NEEDED = {
    "cell": ("recipe", "dataset", "method", "repeat", "status", "results"),
    "recipe": ("name", "definition"),
    "definition": ("datasets", "methods", "sizes", "repeats"),
}
_RECIPE: dict[str, Test] = {
    "name": _text,
    "definition": _table,
    "setups": _table,
    "checksums": _table,
}


def find_fault(record: Mapping[str, Any]) -> str:
    """Name the first field of a record that holds something else than exactk writes there.

    Fields that are absent are no fault: not every reader needs them all.

    Parameters
    ----------
    record : mapping
        Of type "recipe" or "cell".

    Returns
    -------
    str
        The field and its value; empty if all is well.

    Examples
    --------
    >>> find_fault({"type": "cell", "key": "a", "results": [{"k": "two"}]})
    "results[0].k is 'two'"
    >>> find_fault({"type": "cell", "key": "a", "results": [{"k": 2}]})
    ''
    """
    if record["type"] == "cell":
        return _first(record, _CELL) or _nested(record, "results", _RESULT)
    found = _first(record, _RECIPE)
    definition = record.get("definition", {})
    if found or not _table(definition):
        return found
    found = (
        _first(definition, _DEFINITION)
        or _nested(definition, "methods", {"label": _text, "options": _or_none(_table)})
        or _nested(definition, "views", _VIEW)
        or _within(definition, "measure", {"classifiers": _list_of(_text)})
        or _within(definition, "split", {"train": _or_none(_number), "folds": _or_none(_whole)})
    )
    return f"definition.{found}" if found else ""


def missing_fields(record: Mapping[str, Any]) -> list[str]:
    """Name the fields that a record must have to be shown, and does not.

    Examples
    --------
    >>> missing_fields({"type": "recipe", "name": "mine"})
    ['definition']
    """
    found = [name for name in _NEEDED[record["type"]] if name not in record]
    if record["type"] == "cell":
        for number, result in enumerate(record.get("results", ())):
            found += [] if "k" in result else [f"results[{number}].k"]
    elif not found:
        definition = record["definition"]
        found += [f"definition.{n}" for n in _NEEDED["definition"] if n not in definition]
        for number, variant in enumerate(definition.get("methods", ())):
            found += [] if "label" in variant else [f"definition.methods[{number}].label"]
    return found


def _first(values: Mapping[str, Any], tests: Mapping[str, Test]) -> str:
    for name, test in tests.items():
        if name in values and not test(values[name]):
            text = repr(values[name])
            return f"{name} is {text if len(text) <= 60 else text[:57] + '...'}"
    return ""


def _nested(values: Mapping[str, Any], name: str, tests: Mapping[str, Test]) -> str:
    for number, entry in enumerate(values.get(name) or ()):
        if found := _first(entry, tests):
            return f"{name}[{number}].{found}"
    return ""


def _within(values: Mapping[str, Any], name: str, tests: Mapping[str, Test]) -> str:
    found = _first(values.get(name) or {}, tests)
    return f"{name}.{found}" if found else ""
