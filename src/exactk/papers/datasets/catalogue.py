"""What is known of each named data set: its shape, source, licence, checksum and caveats."""

from __future__ import annotations

import hashlib
import re
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal
from urllib.parse import quote

import numpy as np
import numpy.typing as npt

from exactk.errors import InputError, did_you_mean, join_items
from exactk.types import Floats

__all__ = [
    "PAPERS",
    "Dataset",
    "Entry",
    "Kind",
    "checksum",
    "dataset_names",
    "describe",
]


Kind = Literal["classification", "regression"]


@dataclass(frozen=True, eq=False)
class Dataset:
    """A table with its target.

    Attributes
    ----------
    name : str
    X : ndarray of float64, shape (n, d), C order
        Features as the source has them: nothing is standardised.
    y : ndarray
        Whole-number labels (n,), or outputs as float64, (n,) or (n, c).
    task : {"classification", "regression"}
    checksum : str
        SHA-256 of the content, see `checksum`.
    informative : ndarray of intp or None
        Columns that the target was made of, ascending; known for synthetic data only.
    feature_names : tuple of str or None
        Names of the columns of X; known for tables and for sets of scikit-learn.
    classes : tuple of str or None
        Names of the labels 0, 1, …; known for tables, for sets of scikit-learn, and wherever the
        labels are text.

    Examples
    --------
    >>> Dataset("two", np.eye(2), np.array([0, 1]), "classification", "")
    Dataset('two', 2 rows × 2 columns, 2 classes)

    The names of the columns that are selected:

    >>> from exactk import Problem, solve
    >>> from exactk.papers.datasets import load
    >>> wine = load("wine")
    >>> best = solve(Problem.from_arrays(wine.X, wine.y), 3, "exchange")
    >>> [wine.feature_names[column] for column in best.support]
    ['flavanoids', 'color_intensity', 'proline']
    """

    name: str
    X: Floats
    y: npt.NDArray[Any]
    task: Kind
    checksum: str
    informative: npt.NDArray[np.intp] | None = None
    feature_names: tuple[str, ...] | None = None
    classes: tuple[str, ...] | None = None

    def __repr__(self) -> str:
        rows, columns = self.X.shape
        if self.n_classes is not None:
            target = _count(self.n_classes, "class", "classes")
        else:
            target = _count(1 if self.y.ndim == 1 else self.y.shape[1], "output", "outputs")
        table = f"{_count(rows, 'row', 'rows')} × {_count(columns, 'column', 'columns')}"
        return f"{type(self).__name__}({self.name!r}, {table}, {target})"

    @property
    def n_classes(self) -> int | None:
        """Number of different labels; None for regression."""
        return len(np.unique(self.y)) if self.task == "classification" else None


def checksum(X: npt.NDArray[Any], y: npt.NDArray[Any]) -> str:
    """SHA-256 of a table and its target, the same in whatever file they were kept.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Taken as float32 if it has that type, else as float64.
    y : ndarray
        Floating values are outputs and taken as float64; anything else is a label, and only
        the order of the labels counts, not what they are called.

    Returns
    -------
    str
        64 hexadecimal digits, over the shapes and the values in C order, little-endian.

    Examples
    --------
    >>> X = np.array([[1.0, 2.0], [3.0, 4.0]])
    >>> checksum(X, np.array([0, 1])) == checksum(np.asfortranarray(X), np.array(["a", "b"]))
    True
    >>> checksum(X, np.array([0, 1])) == checksum(X, np.array([1, 0]))
    False
    """
    kind = "<f4" if X.dtype == np.float32 else "<f8"
    outputs = np.issubdtype(y.dtype, np.floating)
    target = y.astype("<f8") if outputs else np.unique(y, return_inverse=True)[1].astype("<i4")
    digest = hashlib.sha256(f"{kind} {X.shape} {target.dtype.str} {target.shape}\n".encode())
    for values in (X.astype(kind), target):
        # Adding zero turns -0.0 into 0.0: a sparse file cannot keep the difference.
        digest.update(np.ascontiguousarray(values + values.dtype.type(0)).tobytes())
    return digest.hexdigest()


def _count(number: int, one: str, several: str) -> str:
    return f"{number} {one if number == 1 else several}"


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
        How the files become one table, see `exactk.papers.datasets.builders`; empty where that is
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
            return (
                "scikit-learn"
                if self.origin == "scikit-learn"
                else "exactk.papers.datasets.synthetic"
            )
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


def dataset_names() -> list[str]:
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
        raise InputError(f"the name of a data set must be text, not {name!r}", parameter="name")
    entries = _entries()
    if name not in entries:
        others = list(entries)
        raise InputError(
            f"no data set named "
            f"{name!r}{did_you_mean(name, others) or f'; known are {join_items(others)}'}",
            parameter="name",
        )
    return entries[name]


@cache
def _entries() -> dict[str, Entry]:
    text = files("exactk.papers.datasets").joinpath("catalogue.toml").read_text(encoding="utf-8")
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
