"""What an explanation holds, and how it reads."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from exactk.errors import InputError, listing
from exactk.texts import visible
from exactk.tidy import Tidy

__all__ = ["Explanation"]

Indices = npt.NDArray[np.intp]

TABLES = ("members", "outside", "why_not", "alternatives", "pairs")
# Columns outside that a reader is shown.
NEAREST = 5


@dataclass(frozen=True, eq=False)
class Explanation:
    """Why these columns were chosen, and not others.

    Prices are rises of the objective, which is the squared error and the ridge term; as `share`
    they are parts of ‖HY‖², the objective of the empty set.

    Attributes
    ----------
    selected : tuple of str
        The columns (or groups, or categories) that are explained.
    support : ndarray of int
        Columns of the user's table, as wherever numbers of columns stand here.
    objective, total : float
    members : Tidy
        One row for each that was chosen: the loss when it is dropped, its best substitute, and
        what the objective rises by with the substitute in its place (below zero, it would fall).
    outside : Tidy
        Those not chosen that come nearest: what the cheapest swap that brings each in costs, and
        for whom it comes in. At most so much is its regret.
    why_not : Tidy
        For each that was asked about: its regret, that is how much worse the best set found is
        that contains it, and that set.
    alternatives : Tidy
        Sets within the tolerance, the best first, by what they add and remove.
    is_complete : bool
        Whether there is no other set within the tolerance.
    tolerance : float
    pairs : Tidy
        Pairs of members that stand in for each other: most of what they are worth together is
        lost only if both go.
    message : str
        A sentence where one is needed: a better set was found, or the time ran out.
    """

    selected: tuple[str, ...]
    support: Indices
    objective: float
    total: float
    members: Tidy
    outside: Tidy
    why_not: Tidy
    alternatives: Tidy
    is_complete: bool
    tolerance: float
    pairs: Tidy
    message: str = ""

    def to_frame(self, library: str = "pandas", *, table: str = "members") -> Any:
        """Return one of the tables as a frame of pandas, or of ``library="polars"``.

        Parameters
        ----------
        library : {"pandas", "polars"}
        table : {"members", "outside", "why_not", "alternatives", "pairs"}
        """
        if table not in TABLES:
            raise InputError(f"table must be one of {listing(TABLES)}, not {table!r}")
        chosen: Tidy = getattr(self, table)
        return chosen.to_frame(library)

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values, fit for JSON."""
        return {
            "selected": list(self.selected),
            "support": self.support.tolist(),
            "objective": self.objective,
            "total": self.total,
            "tolerance": self.tolerance,
            "is_complete": self.is_complete,
            "message": self.message,
            **{name: json.loads(getattr(self, name).to_json()) for name in TABLES},
        }

    def to_json(self, **options: Any) -> str:
        """Return the explanation as JSON; options go to ``json.dumps``."""
        return json.dumps(self.to_dict(), **options)

    def __repr__(self) -> str:
        """Return what `to_text` does."""
        return self.to_text()

    def to_text(self) -> str:
        """Return the tables for a reader, most important first."""
        near = "these are all" if self.is_complete else "there may be others"
        within = f"sets within {self.tolerance:.3g} of the objective"
        lines = [
            *_part("chosen, and how much worse the fit is without them", self.members, {
                "feature": "feature", "share": "dropped", "substitute": "best substitute",
                "price_share": "substituted"}),
            *_part("asked about", self.why_not, {
                "feature": "feature", "share": "regret", "added": "brings", "removed": "for"}),
            *(f"{visible(row['feature'])}: {row['note']}" for row in self.why_not if row["note"]),
            *_part("nearest of the others", self.outside[:NEAREST], {
                "feature": "feature", "share": "price", "instead_of": "for"}),
            *_part(f"{within} ({len(self.alternatives)}; {near})", self.alternatives, {
                "rank": "rank", "excess": "excess", "added": "added", "removed": "removed"}),
            *_part("pairs that stand in for each other", self.pairs, {
                "first": "first", "second": "second", "correlation": "correlation",
                "overlap": "overlap"}),
            "",
            "Shares are of the squared error without any feature; the excess is of the objective.",
        ]  # fmt: skip
        return "\n".join(lines[1:])


def _part(title: str, table: Tidy, columns: dict[str, str]) -> list[str]:
    """A table with some of its columns, under other names, or nothing if it is empty."""
    if not len(table):
        return []
    rows = [tuple(_shown(name, row[name]) for name in columns) for row in table]
    return ["", f"{title}:", Tidy(list(columns.values()), rows).to_text()]


def _shown(name: str, value: Any) -> Any:
    """Shares as percent."""
    if name in ("share", "price_share", "excess") and value == value:
        return f"{value:.2%}"
    return f"{value:.2f}" if isinstance(value, float) and value == value else value
