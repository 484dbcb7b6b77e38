"""Columns of text or categories become columns of 0 and 1, and remember what they were.

A category becomes one column per level except the most frequent level. A rule lets these columns
enter together. Only the selector and the command line translate them back.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from exactk.errors import InputError, Row, join_items

__all__ = ["Category", "Levels", "check_coded_size", "name_coded_columns", "read_levels"]

# A column with more levels than this, and than this share of the rows, is taken for an identifier:
# it tells rows, or patients, apart and says nothing of others. Whoever declares a category has
# thought about it, and may have more.
FEW_LEVELS = 20
IDENTIFIER_SHARE, DECLARED_SHARE = 0.2, 0.5
# Where no more of the levels than this are something else, the others being numbers, the column is
# one of numbers with marks for what is missing.
MARKS_SHARE = 0.5
# Zeros and ones that all categories of a table may take together.
MOST_BYTES = 2**30


@dataclass(frozen=True)
class Category:
    """A column of the user's table that is coded as one or more columns of 0 and 1.

    Attributes
    ----------
    name : str
        Name of the column.
    column : int
        Its index in the user's table.
    first : int
        Index of its first coded column.
    levels : tuple of str
        What its rows hold, sorted.
    reference : str
        The level without a column: the most frequent one, the first of several.

    Examples
    --------
    >>> colour = Category(
    ...     "colour", column=2, first=2, levels=("blue", "red", "white"), reference="red"
    ... )
    >>> colour.columns
    (2, 3)
    """

    name: str
    column: int
    first: int
    levels: tuple[str, ...]
    reference: str

    @property
    def columns(self) -> tuple[int, ...]:
        """Indices of the coded columns: one fewer than levels, and one where there is one level."""
        return tuple(range(self.first, self.first + max(1, len(self.levels) - 1)))


@dataclass(frozen=True, eq=False)
class Levels:
    """One column read: its levels, which of them each row has, and the one that is left out.

    Attributes
    ----------
    labels : tuple of str
        All different.
    codes : ndarray of intp of shape (n,)
    reference : int
    """

    labels: tuple[str, ...]
    codes: npt.NDArray[np.intp]
    reference: int

    @property
    def coded_labels(self) -> tuple[str, ...]:
        """Labels of the coded columns; a single level has a column, which is constant."""
        if len(self.labels) == 1:
            return self.labels
        return self.labels[: self.reference] + self.labels[self.reference + 1 :]

    def write(self, out: npt.NDArray[Any]) -> None:
        """Write the coded columns, n × max(1, L − 1)."""
        if len(self.labels) == 1:
            out[:] = 1
            return
        out[:] = 0
        rows = np.flatnonzero(self.codes != self.reference)
        codes = self.codes[rows]
        out[rows, codes - (codes > self.reference)] = 1


def read_levels(
    values: Sequence[Any],
    name: str,
    *,
    declared: bool,
    weights: npt.NDArray[np.float64] | None = None,
) -> Levels:
    """Find the levels of a column and the one that most rows have.

    Parameters
    ----------
    values : sequence
        One for each row, none missing.
    name : str
        The column, for messages.
    declared : bool
        Whether the table itself says that these are categories, so that they may be of any kind.
    weights : ndarray of shape (n,) or None
        What each row counts. A level that only rows of weight zero have is none, and such rows are
        taken for ones of the reference level.

    Raises
    ------
    InputError
        Values that are not text, text that is numbers or mostly so, or as many levels as an
        identifier has.

    Examples
    --------
    >>> levels = read_levels(["red", "blue", "red"], "colour", declared=False)
    >>> levels.labels, levels.coded_labels
    (('blue', 'red'), ('blue',))
    """
    seen: dict[Any, int] = {}
    codes = np.fromiter(
        (seen.setdefault(value, len(seen)) for value in values), np.intp, len(values)
    )
    size = np.bincount(codes, weights, minlength=len(seen))
    n_rows = len(values) if weights is None else int(np.count_nonzero(weights))
    ordered = _sorted([level for level, weight in zip(seen, size, strict=True) if weight > 0])
    if not declared:
        _refuse_other_values(ordered, name)
        _refuse_numbers(ordered, name, values)
    share = DECLARED_SHARE if declared else IDENTIFIER_SHARE
    if len(ordered) > max(FEW_LEVELS, share * n_rows):
        raise InputError(
            f"column {name!r} has {len(ordered)} different values in {n_rows} rows and looks "
            f"like an identifier; drop it, or merge its values into fewer"
            + ("" if declared else ", or declare it categorical"), parameter="X",
        )  # fmt: skip
    old = np.array([seen[level] for level in ordered], dtype=np.intp)
    # Of several most frequent levels argmax takes the first.
    reference = int(size[old].argmax())
    new = np.full(len(seen), reference, dtype=np.intp)
    new[old] = np.arange(len(old))
    return Levels(_labels(ordered), new[codes], reference)


def _refuse_other_values(levels: Iterable[Any], name: str) -> None:
    kinds = sorted({type(level).__name__ for level in levels if not isinstance(level, str)})
    if kinds:
        raise InputError(
            f"column {name!r} holds values beside text that are not text ({join_items(kinds)})",
            parameter="X", hint="make them all text or all numbers, or drop it",
        )  # fmt: skip


def _refuse_numbers(levels: Sequence[str], name: str, values: Sequence[Any]) -> None:
    """Raise for numbers that became text by mistake, or by a few marks such as "?" among them."""
    others = [level for level in levels if not _is_number(level)]
    if len(others) > MARKS_SHARE * len(levels):
        return
    if others:
        marks = set(others)
        row = next(i for i, value in enumerate(values) if value in marks)
        raise InputError(
            (
                f"column {name!r} has numbers as text, and beside them {join_items(others)}, "
                "first in ",
                Row(row),
            ),
            parameter="X",
            hint="replace these or remove their rows, leave the column out, or, if all of its "
            "values are labels, make it a categorical column in Python",
        )
    raise InputError(
        f"column {name!r} has numbers as text ({join_items(levels, limit=3)})", parameter="X",
        hint="convert it to numbers, or to a categorical type if they are labels",
    )  # fmt: skip


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _sorted(levels: Sequence[Any]) -> list[Any]:
    try:
        return sorted(levels)
    except TypeError:  # categories of several kinds have no order of their own
        return sorted(levels, key=lambda level: (str(level), repr(level)))


def _labels(levels: Sequence[Any]) -> tuple[str, ...]:
    """Levels as text; those that look the same, such as 1 and "1", as Python writes them."""
    texts = [str(level) for level in levels]
    count = Counter(texts)
    return tuple(
        text if count[text] == 1 else repr(level) for text, level in zip(texts, levels, strict=True)
    )


def name_coded_columns(name: str, labels: Sequence[str], taken: set[str]) -> list[str]:
    """Name coded columns "colour=red", and otherwise where another column has that name.

    Parameters
    ----------
    name : str
    labels : sequence of str
    taken : set of str
        Names that there are; the new ones are added.

    Examples
    --------
    >>> name_coded_columns("colour", ["blue", "red"], {"size", "colour=red"})
    ['colour=blue', 'colour=red (2)']
    """
    names = []
    for label in labels:
        plain = chosen = f"{name}={label}"
        number = 1
        while chosen in taken:
            number += 1
            chosen = f"{plain} ({number})"
        taken.add(chosen)
        names.append(chosen)
    return names


def check_coded_size(levels: dict[str, Levels], n_rows: int, itemsize: int) -> None:
    """Raise, before memory is taken, where the coded columns are too many for these rows."""
    widths = {name: len(found.coded_labels) for name, found in levels.items()}
    taken = n_rows * itemsize * sum(widths.values())
    if taken > MOST_BYTES:
        widest = sorted(widths, key=lambda name: -widths[name])
        shown = ", ".join(f"{name!r} ({len(levels[name].labels)} levels)" for name in widest[:3])
        raise InputError(
            f"the categories of X would take {taken / 2**30:.1f} GiB as columns of 0 and 1, most "
            f"of it for {shown}", parameter="X", hint="merge rare levels, or drop such columns",
        )  # fmt: skip
