"""Where data sets lie: the folders that are looked into, and the file of a set in them."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from exactk.errors import InputError
from exactk.papers.datasets.catalogue import Entry, dataset_names, describe

__all__ = [
    "Located",
    "available",
    "find",
    "folders",
    "local_files",
    "locate",
    "names",
    "target_folder",
]

VARIABLE = "EXACTK_DATA"
TABLES = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet", ".pq")
SUFFIXES = (".npz", ".mat", *TABLES)
NAME = re.compile(r"\w[\w.+-]*")


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
        ``folder`` alone if given; else those of $EXACTK_DATA, if set (several are separated as in
        $PATH: by ":", on Windows by ";"), and then the cache folder of the user.

    Examples
    --------
    >>> folders("data") == [Path("data")]
    True
    """
    if folder is not None:
        return [_expanded(folder)]
    cache = _cache_folder()
    if named := _named_folders():
        return named + ([cache] if cache else [])
    if cache is None:
        raise InputError(
            "there is no home folder to keep data sets in", parameter="folder",
            hint=f"set {VARIABLE} to a folder of yours",
        )  # fmt: skip
    return [cache]


def target_folder(folder: str | os.PathLike[str] | None = None) -> Path:
    """Where a fetched set is put: the first of `folders`."""
    return folders(folder)[0]


def names(*, own: bool = False, folder: str | os.PathLike[str] | None = None) -> list[str]:
    """Names of all data sets of the catalogue, and of one's own files if wanted.

    Parameters
    ----------
    own : bool
        Whether the names of other files that `load` reads follow those of the catalogue.
    folder : path-like, optional
        Where these files are; as in `load`.

    Examples
    --------
    >>> "srbct" in names(), "wine" in names(), "gsrfs-synthetic-10" in names()
    (True, True, True)
    """
    return dataset_names() + (list(local_files(folder)) if own else [])


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
    if isinstance(wanted, str):
        raise InputError(
            f"wanted must be a list of names, such as [{wanted!r}], not a name alone",
            parameter="wanted",
        )
    here: list[str] = []
    missing: list[str] = []
    for name in dataset_names() if wanted is None else wanted:
        (here if _is_here(name, folder) else missing).append(name)
    return here, missing


def locate(name: str, folder: str | os.PathLike[str] | None = None) -> Located | None:
    """Find the files of a set: NAME.npz, the source's own files, NAME.mat, or a table."""
    if not isinstance(name, str):
        raise InputError(f"the name of a data set must be text, not {name!r}", parameter="name")
    if not NAME.fullmatch(name):
        raise InputError(
            f"data set name {name!r} must be a plain file name without its ending", parameter="name"
        )
    entry = describe(name) if name in dataset_names() else None
    if entry is not None and entry.origin != "file":
        return None
    for place in _searched(folder):
        if located := _in_folder(name, entry, place):
            return located
    return None


def local_files(folder: str | os.PathLike[str] | None = None) -> dict[str, Path]:
    """Names and files of the sets that are here without being in the catalogue, by name."""
    entries = [describe(name) for name in dataset_names()]
    # A file of a source belongs to the set of the catalogue that is made of it.
    sources = {_plain(Path(path).name) for entry in entries if entry.build for path in entry.paths}
    taken = {_plain(entry.name) for entry in entries}
    found: dict[str, Path] = {}
    for place in _searched(folder):
        ranked: dict[str, list[tuple[int, str, Path]]] = {}
        for path in _content(place):
            rank = next((i for i, s in enumerate(SUFFIXES) if _plain(path.name).endswith(s)), None)
            if rank is None or _plain(path.name) in sources:
                continue
            name = path.name[: -len(SUFFIXES[rank])]
            if NAME.fullmatch(name) and _plain(name) not in taken and path.is_file():
                ranked.setdefault(_plain(name), []).append((rank, name, path))
        for files in ranked.values():
            best = min(rank for rank, _, _ in files)
            found |= {name: path for rank, name, path in files if rank == best}
        # What an earlier folder has hides the same name in a later one.
        taken |= set(ranked)
    return dict(sorted(found.items()))


def _is_here(name: str, folder: str | os.PathLike[str] | None) -> bool:
    if name in dataset_names() and describe(name).origin != "file":
        return True
    return locate(name, folder) is not None


def _searched(folder: str | os.PathLike[str] | None) -> list[Path]:
    """Return the folders that exist; one that the user named but that does not is an error."""
    for place in _named_folders() if folder is None else ():
        if not place.is_dir():
            what = "is no folder" if place.exists() else "does not exist"
            raise InputError(
                f"{VARIABLE} names {str(place)!r}, which {what}",
                parameter="folder",
                hint=(
                    "make that folder, or set "
                    f"{VARIABLE} to one that exists (several are separated by {os.pathsep!r})"
                ),
            )
    return [place for place in folders(folder) if place.is_dir()]


def _named_folders() -> list[Path]:
    parts = os.environ.get(VARIABLE, "").split(os.pathsep)
    return [_expanded(part) for part in parts if part]


def _content(place: Path) -> list[Path]:
    try:
        return sorted(place.iterdir())
    except OSError as error:
        raise InputError(
            f"folder {str(place)!r} cannot be read: {error.strerror}", parameter="folder"
        ) from error


def _in_folder(name: str, entry: Entry | None, place: Path) -> Located | None:
    # Case and dashes differ between copies of the same file: GLI-85.mat, GLI_85.mat.
    present: dict[str, Path] = {}
    for path in _content(place):
        # Of several, the one that is spelt as it was asked for.
        if path.name.startswith(f"{name}."):
            present[_plain(path.name)] = path
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


def _expanded(folder: str | os.PathLike[str]) -> Path:
    try:
        return Path(folder).expanduser()
    except RuntimeError as error:
        raise InputError(
            f"folder {os.fspath(folder)!r}: there is no such home folder", parameter="folder"
        ) from error


def _cache_folder() -> Path | None:
    """Return where the user's cache is; None for a user without a home, as in some containers."""
    try:
        home = Path.home()
    except RuntimeError:
        home = None
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or (home and home / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = home and home / "Library" / "Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or (home and home / ".cache")
    return Path(base) / "exactk" if base else None
