"""What is known of each named data set: its shape, source, licence, checksum and caveats."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal
from urllib.parse import quote

from exactk.datasets.model import Kind
from exactk.errors import InputError, listing, nearest

__all__ = ["PAPERS", "Entry", "describe", "known"]

PAPERS = ("cdlsr", "ipfs", "rpfs", "nmapg", "gsrfs")
RAW = "https://raw.githubusercontent.com"

Origin = Literal["file", "scikit-learn", "synthetic"]


@dataclass(frozen=True)
class Entry:
    """One data set of the catalogue.

    Attributes
    ----------
    name : str
    n, d : int
        Rows and columns.
    task : {"classification", "regression"}
    classes : int or None
        Number of classes; None for regression.
    outputs : int
        Columns of the target of a regression; 1 for classes.
    papers : tuple of str
        Papers that use it, or that it stands in for: of "cdlsr", "ipfs", "rpfs", "nmapg", "gsrfs".
    origin : {"file", "scikit-learn", "synthetic"}
        Whether it is read from a file, part of scikit-learn, or generated.
    repository, commit : str
        Where on GitHub its file was read; empty unless `origin` is "file".
    paths : tuple of str
        The file or files there.
    build : str
        How the files become one table, see `exactk.datasets.builders`; empty where that is
        left to the reader of `how`.
    licence : str
        What is known of it.
    checksum : str
        Of the content, values rounded to float32; empty where none is known.
    counts : tuple of int
        Sizes of the classes, largest first, where they stand in for a checksum.
    note : str
        What differs from the paper, and other things to know.
    how : str
        How to make the file where `build` is empty.
    """

    name: str
    n: int
    d: int
    task: Kind
    classes: int | None
    outputs: int
    papers: tuple[str, ...]
    origin: Origin
    repository: str
    commit: str
    paths: tuple[str, ...]
    build: str
    licence: str
    checksum: str
    counts: tuple[int, ...]
    note: str
    how: str

    @property
    def source(self) -> str:
        """Where it comes from, in one line."""
        if self.origin != "file":
            return "scikit-learn" if self.origin == "scikit-learn" else "exactk.datasets.synthetic"
        paths = self.paths if len(self.paths) <= 5 else (self.paths[0], "…", self.paths[-1])
        return f"github.com/{self.repository} at {self.commit[:7]}: {', '.join(paths)}"

    @property
    def checked(self) -> str:
        """What of a file is held against the catalogue; empty where there is no file."""
        if self.origin != "file":
            return ""
        if self.checksum:
            return "checksum"
        return "shape and class sizes" if self.counts else "shape and number of classes"

    def addresses(self, base: str = RAW) -> tuple[str, ...]:
        """Where its files can be downloaded; `base` replaces the address of the server."""
        root = f"{base.rstrip('/')}/{self.repository}/{self.commit}"
        return tuple(f"{root}/{quote(path)}" for path in self.paths)


def known() -> list[str]:
    """Names of all data sets of the catalogue."""
    return list(_entries())


def describe(name: str) -> Entry:
    """Look up one data set of the catalogue.

    Examples
    --------
    >>> entry = describe("srbct")
    >>> entry.n, entry.d, entry.classes, entry.papers
    (83, 2308, 4, ('cdlsr',))
    >>> describe("srbtc")
    Traceback (most recent call last):
    ...
    exactk.errors.InputError: no data set named 'srbtc'; did you mean 'srbct'?
    """
    if not isinstance(name, str):
        raise InputError(f"the name of a data set must be text, not {name!r}")
    entries = _entries()
    if name not in entries:
        others = list(entries)
        raise InputError(
            f"no data set named {name!r}{nearest(name, others) or f'; known are {listing(others)}'}"
        )
    return entries[name]


@cache
def _entries() -> dict[str, Entry]:
    text = files("exactk.datasets").joinpath("catalogue.toml").read_text(encoding="utf-8")
    content = tomllib.loads(text)
    return {
        name: _entry(name, facts, content["repositories"])
        for name, facts in content["sets"].items()
    }


def _entry(name: str, facts: dict[str, Any], repositories: dict[str, Any]) -> Entry:
    repository = facts.get("repository", "")
    home = repositories.get(repository, {"commit": "", "licence": facts.get("licence", "")})
    return Entry(
        name=name,
        n=facts["n"],
        d=facts["d"],
        task="classification" if "classes" in facts else "regression",
        classes=facts.get("classes"),
        outputs=facts.get("outputs", 1),
        papers=tuple(facts.get("papers", ())),
        origin=facts.get("origin", "file"),
        repository=repository,
        commit=home["commit"],
        paths=tuple(path for pattern in facts.get("paths", ()) for path in _expand(pattern)),
        build=facts.get("build", ""),
        licence=home["licence"],
        checksum=facts.get("checksum", ""),
        counts=tuple(facts.get("counts", ())),
        note=facts.get("note", ""),
        how=" ".join(facts.get("how", "").split()),
    )


def _expand(pattern: str) -> list[str]:
    """Write out a path with a range such as ``s{1..40}`` in it."""
    found = re.search(r"\{(\d+)\.\.(\d+)\}", pattern)
    if found is None:
        return [pattern]
    first, last = int(found[1]), int(found[2])
    head, tail = pattern[: found.start()], pattern[found.end() :]
    return [path for number in range(first, last + 1) for path in _expand(f"{head}{number}{tail}")]
