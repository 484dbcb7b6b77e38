"""The record of the measurements of losses, kept as it grows: what is cut short loses nothing."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from benchmarks import harness
from benchmarks.scope import Record, Scope

NAME = "losses"


def stored() -> Record:
    """The record that is kept; empty if there is none."""
    path = harness.RESULTS / f"{NAME}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


@dataclass
class Kept:
    """Cells of each part, found by what they are of.

    Attributes
    ----------
    record : dict
    on_disk : bool
        Whether every change is written.
    """

    record: Record
    on_disk: bool = True

    def cells(self, part: str) -> list[Record]:
        """The cells of a part, to be read."""
        found: list[Record] = self.record.setdefault(part, [])
        return found

    def find(self, part: str, **key: Any) -> Record | None:
        """The cell with these values, if there is one."""
        return next((cell for cell in self.cells(part) if _has(cell, key)), None)

    def put(self, part: str, cell: Record, *names: str) -> None:
        """Put a cell in the place of that with the same values of `names`, or at the end."""
        key = {name: cell[name] for name in names}
        cells = self.cells(part)
        at = next((i for i, other in enumerate(cells) if _has(other, key)), len(cells))
        cells[at : at + 1] = [cell]

    def save(self, part: str, threads: int) -> None:
        """Write this part, with when and where it was measured last; the others stay as they are.

        Another run may have written them since this one began.
        """
        if not self.on_disk:
            return
        self.record = {**stored(), part: self.cells(part)}
        self.record.setdefault("measured", {})[part] = harness.circumstances(threads)
        # A file that is half written must not take the place of a whole one.
        written = harness.write_record(f"{NAME}.new", self.record)
        written.replace(harness.RESULTS / f"{NAME}.json")


def _has(cell: Record, key: Record) -> bool:
    return all(cell.get(name) == value for name, value in key.items())


@dataclass
class Terms(Scope):
    """What is asked for, and the record that it goes into.

    Attributes
    ----------
    add : bool
        Leave cells alone that are there already.
    names : tuple of str
        Data sets to be measured; empty for all.
    threads : int
    rpfs_limit : float
        Seconds for a run of rpfs.
    """

    kept: Kept = field(default_factory=lambda: Kept({}, on_disk=False))
    add: bool = False
    names: tuple[str, ...] = ()
    threads: int = 1
    rpfs_limit: float = 60.0

    def wants(self, name: str) -> bool:
        """Whether a data set is asked for."""
        return not self.names or name in self.names
