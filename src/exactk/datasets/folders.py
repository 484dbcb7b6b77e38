"""Where data sets lie: the folders that are looked into, and the file of a set in them."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from exactk.datasets.catalogue import Entry, describe, names
from exactk.errors import InputError

__all__ = ["Located", "available", "find", "folders", "locate", "target_folder"]

VARIABLE = "EXACTK_DATA"
TABLES = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet", ".pq")
SUFFIXES = (".npz", ".mat", *TABLES)


@dataclass(frozen=True)
class Located:
    """The file or files of one set.

    Attributes
    ----------
    files : tuple of Path
    raw : bool
        Whether these are the files of the source, which the entry's builder understands.
    """

    files: tuple[Path, ...]
    raw: bool


def folders(folder: str | os.PathLike[str] | None = None) -> list[Path]:
    """Folders that are looked into for a data set, in this order; they need not exist.

    Parameters
    ----------
    folder : path-like, optional
        Look here and nowhere else.

    Returns
    -------
    list of Path
        ``folder`` alone if given; else $EXACTK_DATA, if set, and the cache folder of the user.

    Examples
    --------
    >>> folders("data") == [Path("data")]
    True
    """
    if folder is not None:
        return [Path(folder).expanduser()]
    named = os.environ.get(VARIABLE)
    return [Path(named).expanduser(), _cache_folder()] if named else [_cache_folder()]


def target_folder(folder: str | os.PathLike[str] | None = None) -> Path:
    """Where a fetched set is put: the first of `folders`."""
    return folders(folder)[0]


def find(name: str, *, folder: str | os.PathLike[str] | None = None) -> Path | None:
    """Path of a data set's file, or of the first one if it has several; None if it is not here.

    Sets of scikit-learn and synthetic ones have no file.

    Examples
    --------
    >>> find("wine") is None
    True
    """
    located = locate(name, folder)
    return None if located is None else located.files[0]


def available(
    wanted: Iterable[str] | None = None, *, folder: str | os.PathLike[str] | None = None
) -> tuple[list[str], list[str]]:
    """Split names into those that `load` finds here and those that it does not.

    Parameters
    ----------
    wanted : iterable of str, optional
        All of the catalogue by default.
    folder : path-like, optional
        As in `load`.

    Examples
    --------
    >>> available(["wine", "planted"])
    (['wine', 'planted'], [])
    """
    here: list[str] = []
    missing: list[str] = []
    for name in names() if wanted is None else wanted:
        (here if _is_here(name, folder) else missing).append(name)
    return here, missing


def locate(name: str, folder: str | os.PathLike[str] | None = None) -> Located | None:
    """Find the files of a set: NAME.npz, the source's own files, NAME.mat, or a table."""
    if not re.fullmatch(r"\w[\w.+-]*", name):
        raise InputError(f"data set name {name!r} must be a plain file name without its ending")
    entry = describe(name) if name in names() else None
    if entry is not None and entry.origin != "file":
        return None
    for place in folders(folder):
        if place.is_dir() and (located := _in_folder(name, entry, place)):
            return located
    return None


def _is_here(name: str, folder: str | os.PathLike[str] | None) -> bool:
    if name in names() and describe(name).origin != "file":
        return True
    return locate(name, folder) is not None


def _in_folder(name: str, entry: Entry | None, place: Path) -> Located | None:
    # Case and dashes differ between copies of the same file: GLI-85.mat, GLI_85.mat.
    present: dict[str, Path] = {}
    for path in sorted(place.iterdir()):
        present.setdefault(_plain(path.name), path)
    npz = present.get(_plain(f"{name}.npz"))
    if npz is not None:
        return Located((npz,), raw=False)
    if entry is not None and entry.build:
        parts = [_part(path, place, present) for path in entry.paths]
        if all(parts):
            return Located(tuple(part for part in parts if part), raw=True)
    for suffix in SUFFIXES[1:]:
        file = present.get(_plain(name + suffix))
        if file is not None:
            return Located((file,), raw=False)
    return None


def _part(path: str, place: Path, present: dict[str, Path]) -> Path | None:
    """Look for one file of the source: under its own name, or at its place in the repository."""
    nested = place / path
    if nested.is_file():
        return nested
    return None if path.endswith(".pgm") else present.get(_plain(path.rpartition("/")[2]))


def _plain(name: str) -> str:
    return name.lower().replace("-", "_")


def _cache_folder() -> Path:
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "exactk"
