"""Where a command may write, and how: the whole text, or nothing."""

from __future__ import annotations

import glob
import json
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from exactk.errors import InputError
from exactk.utils.formatting import escape_controls

if TYPE_CHECKING:
    from exactk.utils.records_table import RecordsTable

__all__ = [
    "Listing",
    "aligned",
    "check_place",
    "note",
    "to_json",
    "to_sentence",
    "write_text",
]


class Listing:
    """Rows that a command lists, as a result.

    Parameters
    ----------
    name : str
        What the rows are, such as "methods".
    rows : sequence of mapping
        With the same keys.
    **facts
        What the rows have in common.
    """

    def __init__(self, name: str, rows: Sequence[Mapping[str, Any]], /, **facts: Any) -> None:
        self.name, self.rows, self.facts = name, rows, facts

    @property
    def table(self) -> RecordsTable:
        """The rows as a table; a dictionary is a list of NAME=VALUE."""
        from exactk.utils.records_table import RecordsTable

        columns = list(self.rows[0]) if self.rows else [self.name]
        return RecordsTable(columns, [[_flat(row[name]) for name in columns] for row in self.rows])

    def to_dict(self) -> dict[str, Any]:
        """Return the rows under their name."""
        return {**self.facts, self.name: [dict(row) for row in self.rows]}

    def __repr__(self) -> str:
        """Return the table as text."""
        return repr(self.table)


def _flat(value: Any) -> Any:
    return [f"{n}={item}" for n, item in value.items()] if isinstance(value, dict) else value


def to_sentence(message: str) -> str:
    r"""Return a message on one line with its end; control characters are shown as escapes.

    Examples
    --------
    >>> print(to_sentence("there is no\n column \x1b[31m"))
    there is no column \x1b[31m.
    """
    sentence = escape_controls(" ".join(message.split()))
    return sentence if sentence.endswith((".", "?", "!")) else f"{sentence}."


def aligned(facts: Mapping[str, Any]) -> list[str]:
    """Return one line for each fact that has a value, with the names in one column.

    Examples
    --------
    >>> aligned({"ridge": "0.1 (auto)", "loss": None, "method": "greedy"})
    ['ridge   0.1 (auto)', 'method  greedy']
    """
    known = {name: value for name, value in facts.items() if value not in (None, "")}
    width = max(map(len, known), default=0)
    return [f"{name:{width}}  {value}" for name, value in known.items()]


def note(message: str, kind: str = "Note") -> None:
    """Write a sentence to stderr."""
    click.echo(f"{kind}: {to_sentence(message)}", err=True)


def check_place(path: str, inputs: Sequence[str], option: str = "--output") -> None:
    """Raise before the work if a file cannot be written or is an input.

    Parameters
    ----------
    path : str
    inputs : sequence of str
        Files, folders or patterns that are read.
    option : str
        The option that gave the path.
    """
    wrong, hint = _flaw(Path(path), inputs)
    if wrong:
        message = f"{option} {path!r} {wrong}"
        raise InputError(message, parameter=option.lstrip("-"), hint=hint)


def _flaw(place: Path, inputs: Sequence[str]) -> tuple[str, str]:
    """Return why a place cannot be written and how to fix it, or empty words."""
    if place.is_dir():
        return "is a folder", "name a file"
    folder = Path(os.path.realpath(place)).parent
    if place.exists():
        files = [name for one in inputs for name in (one, *glob.glob(one, recursive=True))]
        if any(Path(name).exists() and place.samefile(name) for name in files):
            return "is also an input", "give another name"
        if not os.access(place, os.W_OK):
            return "cannot be written: no permission", ""
        if not place.is_file():
            # Pipes and devices are written to and not replaced.
            return "", ""
    for table in inputs:
        if Path(table).is_dir() and Path(os.path.realpath(table)) in (folder, *folder.parents):
            return f"is in the folder {table!r}, which is read as a table", "give another folder"
    if not folder.is_dir():
        return "cannot be written: its folder does not exist", ""
    if not os.access(folder, os.W_OK | os.X_OK):
        return "cannot be written: no permission in its folder", ""
    return "", ""


def write_text(text: str, path: str | None = None, option: str = "--output") -> None:
    """Print a text, or write it to a file as a whole."""
    if path is None:
        # Without a colour of its own click takes escapes out of what goes to a file or a pipe,
        # and names of columns with them.
        click.echo(text, nl=False, color=True)
        return
    from exactk.utils.atomic_write import replace_text

    try:
        replace_text(path, text)
    except OSError as error:
        raise InputError(
            f"{option} {path!r} cannot be written: {error.strerror}", parameter=option.lstrip("-")
        ) from error


def _plain(value: Any) -> Any:
    """Return a value for JSON: objects as text, NaN and infinity as None."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, (str, int)) else repr(value)


def to_json(value: Any) -> str:
    """Return JSON text that can be written as UTF-8, with a line feed at the end."""
    text = json.dumps(_plain(value), indent=2, ensure_ascii=False)
    # The name of a file may be no text.
    is_text = text.encode(errors="ignore").decode() == text
    return (text if is_text else json.dumps(_plain(value), indent=2)) + "\n"
