"""Tables of records: rows of named values, for a frame, for JSON, for CSV or for the eye."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from html import escape
from typing import Any, overload

import numpy as np

from exactk.errors import InputError, MissingExtraError
from exactk.params import Choice
from exactk.utils.formatting import csv_text, escape_controls

__all__ = ["RecordsTable", "TableResult", "notebook_html"]

# Rows shown at either end of a long table, and characters of a long value.
SHOWN_ROWS = 30
SHOWN_WIDTH = 48
# A browser breaks lines.
SHOWN_WIDTH_HTML = 240
MISSING = 'this needs {0}: pip install "exactk[{0}]"'


class RecordsTable(Sequence[dict[str, Any]]):
    """A table of plain Python values, one row an observation, that needs no other library.

    Parameters
    ----------
    columns : sequence of str
    rows : sequence of sequence
        Values in the order of the columns; NumPy's are made plain, NaN stays NaN.

    Examples
    --------
    >>> table = RecordsTable(["k", "error"], [(1, 0.5), (2, 0.25)])
    >>> table
    k  error
    1  0.5
    2  0.25
    >>> table["error"], table[0]
    ([0.5, 0.25], {'k': 1, 'error': 0.5})
    >>> table[["error"]].head(1)
    error
    0.5
    >>> table.to_json()
    '[{"k": 1, "error": 0.5}, {"k": 2, "error": 0.25}]'
    """

    def __init__(self, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        self.columns = tuple(columns)
        self._rows = tuple(tuple(_plain(value) for value in row) for row in rows)
        for row in self._rows:
            if len(row) != len(self.columns):
                raise InputError(
                    f"a row of {len(row)} values for {len(self.columns)} columns", parameter="rows"
                )

    @overload
    def __getitem__(self, which: str) -> list[Any]: ...
    @overload
    def __getitem__(self, which: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, which: slice | list[str]) -> RecordsTable: ...
    def __getitem__(
        self, which: str | int | slice | list[str]
    ) -> list[Any] | dict[str, Any] | RecordsTable:
        """Return a column by name, a row by number, some columns, or some rows."""
        if isinstance(which, list):
            return RecordsTable(which, list(zip(*(self[name] for name in which), strict=True)))
        if isinstance(which, str):
            if which not in self.columns:
                raise KeyError(which)
            at = self.columns.index(which)
            return [row[at] for row in self._rows]
        if isinstance(which, slice):
            return RecordsTable(self.columns, self._rows[which])
        return dict(zip(self.columns, self._rows[which], strict=True))

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self._rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Iterate over the rows as dictionaries."""
        return (dict(zip(self.columns, row, strict=True)) for row in self._rows)

    def __eq__(self, other: object) -> bool:
        """Whether both have the same columns and values; NaN is the same as NaN."""
        return (
            isinstance(other, RecordsTable)
            and self.columns == other.columns
            # Text of the values: nan is not equal to itself, its text is.
            and repr(self._rows) == repr(other._rows)
        )

    __hash__ = None  # type: ignore[assignment]  # holds lists

    def head(self, rows: int = 5) -> RecordsTable:
        """Return the first rows."""
        return self[:rows]

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return a list of rows."""
        return list(self)

    def to_json(self, **options: Any) -> str:
        """Return a list of rows as JSON, NaN as null; options go to ``json.dumps``."""
        return json.dumps(self.to_plain(), **options)

    def to_plain(self) -> list[dict[str, Any]]:
        """Return one dict for each row with values that JSON can hold: NaN is None."""
        return [{name: _for_json(value) for name, value in row.items()} for row in self]

    def to_csv(self) -> str:
        """Return CSV with a header; lists within a value are separated by semicolons."""
        return csv_text([self.columns, *([_for_csv(value) for value in row] for row in self._rows)])

    def to_pandas(self) -> Any:
        """Return a pandas DataFrame."""
        try:
            import pandas as pd
        except ImportError as error:
            raise MissingExtraError(MISSING.format("pandas")) from error
        return pd.DataFrame({name: self[name] for name in self.columns})

    def to_polars(self) -> Any:
        """Return a polars DataFrame."""
        try:
            import polars as pl
        except ImportError as error:
            raise MissingExtraError(MISSING.format("polars")) from error
        return pl.DataFrame({name: self[name] for name in self.columns}, strict=False)

    def to_frame(self, library: str = "pandas") -> Any:
        """Return a frame of pandas or polars.

        Parameters
        ----------
        library : {"pandas", "polars"}

        Raises
        ------
        MissingExtraError
            The library is not installed.

        Examples
        --------
        >>> RecordsTable(["k", "error"], [(1, 0.5), (2, 0.25)]).to_frame()
           k  error
        0  1   0.50
        1  2   0.25
        """
        Choice(("pandas", "polars"))("library", library)
        return self.to_pandas() if library == "pandas" else self.to_polars()

    def to_text(self, rows: int | None = None, width: int | None = SHOWN_WIDTH) -> str:
        """Return aligned columns for the eye.

        Parameters
        ----------
        rows : int or None
            How many of a long table at most.
        width : int or None
            How many characters of a long value at most.
        """
        shown, left_out = self._shown(rows)
        head = [escape_controls(name) for name in self.columns]
        cells = [head, *([_for_text(value, width) for value in row] for row in shown)]
        widths = [max(len(line[j]) for line in cells) for j in range(len(self.columns))]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
            for line in cells
        ]
        return "\n".join([*lines, *([f"... and {left_out} rows more"] if left_out else [])])

    def _shown(self, rows: int | None) -> tuple[Sequence[Sequence[Any]], int]:
        most = len(self) if rows is None else rows
        return self._rows[:most], max(0, len(self) - most)

    def __repr__(self) -> str:
        """Return aligned columns, the first rows of a long table."""
        return self.to_text(SHOWN_ROWS)

    def _repr_html_(self) -> str:
        """Return a table for a notebook."""
        shown, left_out = self._shown(SHOWN_ROWS)
        head = "".join(f"<th>{escape(escape_controls(name))}</th>" for name in self.columns)
        body = "".join(
            "<tr>"
            + "".join(f"<td>{escape(_for_text(value, SHOWN_WIDTH_HTML))}</td>" for value in row)
            + "</tr>"
            for row in shown
        )
        more = f"<p>and {left_out} rows more</p>" if left_out else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


class TableResult(ABC):
    """What all results have in common: a table, plain values, JSON, a frame and notebook HTML.

    A subclass has an attribute or property `table`, a `to_dict` and a readable ``__repr__``; one
    that has a picture also has ``plot(ax=None)``, which returns the matplotlib Axes.

    Examples
    --------
    >>> class Sizes(TableResult):
    ...     table = RecordsTable(["k", "error"], [(1, 0.5)])
    ...
    ...     def to_dict(self):
    ...         return {"sizes": self.table.to_plain()}
    >>> Sizes().to_json()
    '{"sizes": [{"k": 1, "error": 0.5}]}'
    """

    table: RecordsTable

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values, fit for JSON; NaN and infinity are None."""

    def to_json(self, **options: Any) -> str:
        """Return `to_dict` as JSON; options go to ``json.dumps``."""
        return json.dumps(self.to_dict(), **options)

    def to_frame(self, library: str = "pandas") -> Any:
        """Return `table` as a pandas frame, or as a polars frame with ``library="polars"``."""
        return self.table.to_frame(library)

    def _repr_html_(self) -> str:
        return notebook_html(self.table, repr(self))


def notebook_html(table: RecordsTable, words: str) -> str:
    """Return a table with words beneath it, which may be a user's, for a notebook.

    Parameters
    ----------
    table : RecordsTable
    words : str

    Examples
    --------
    >>> notebook_html(RecordsTable(["k"], [(1,)]), "1 < 2").endswith("</table><p>1 &lt; 2</p>")
    True
    """
    return f"{table._repr_html_()}<p>{escape(words)}</p>"


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    return value


def _for_json(value: Any) -> Any:
    if isinstance(value, float) and not np.isfinite(value):
        return None
    if isinstance(value, list):
        return [_for_json(part) for part in value]
    return value if isinstance(value, (str, int, float)) or value is None else str(value)


def _for_csv(value: Any) -> Any:
    if isinstance(value, list):
        return ";".join(str(part) for part in value)
    return "" if value is None or value != value else value


def _for_text(value: Any, width: int | None = SHOWN_WIDTH) -> str:
    if value is None or value != value:
        return ""
    if isinstance(value, float):
        return f"{value:.6g}"
    text = escape_controls(", ".join(map(str, value)) if isinstance(value, list) else value)
    return text if width is None or len(text) <= width else text[: width - 3] + "..."
