"""Which files a table is made of: a file, a folder, a pattern, or a list of these."""

from __future__ import annotations

import glob
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from exactk.data.files import KINDS, list_suffixes, refuse_pipe, refuse_semicolons, suffix_of
from exactk.errors import InputError, join_items

__all__ = ["Found", "Paths", "find_files", "is_pattern"]

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]

# What Hive and Spark write for a value that is missing.
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True)
class Found:
    """A file, and the columns that its folders spell out.

    Attributes
    ----------
    path : str
    kind : {"text", "Parquet", "Arrow"}
    folders : dict of str to str or None
        Names and values of folders such as ``year=2024`` below the one that was given.
    """

    path: str
    kind: str
    folders: dict[str, str | None]


def is_pattern(path: str | os.PathLike[str]) -> bool:
    """Whether a path stands for all files that match it.

    Examples
    --------
    >>> is_pattern("data/*.parquet"), is_pattern("data/day.parquet")
    (True, False)
    """
    return glob.has_magic(os.fspath(path)) and not os.path.lexists(path)


def find_files(paths: Paths) -> list[Found]:
    """Find the files of a table; those of a folder or a pattern in the order of their names.

    Parameters
    ----------
    paths : path, or sequence of paths
        In a folder, at any depth, all files count but those whose name, or whose folder's name,
        begins with a dot or an underscore.

    Raises
    ------
    InputError
        There is none, they are of several kinds, or one is given twice.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("b.csv", "a.csv", "_SUCCESS"):
    ...         Path(folder, name).touch()
    ...     [Path(found.path).name for found in find_files(folder)]
    ['a.csv', 'b.csv']
    """
    given = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    if not given:
        raise InputError("no file is given", parameter="path")
    files = [found for path in given for found in _find(path)]
    repeated = [
        path for path, n in Counter(os.path.realpath(f.path) for f in files).items() if n > 1
    ]
    if repeated:
        raise InputError(
            f"{join_items(repeated)} is given more than once: its rows would count twice",
            parameter="path",
        )
    first = files[0]
    for found in files:
        if found.kind != first.kind:
            raise InputError(
                f"files of several kinds cannot be one table: {first.path!r} is {first.kind}, "
                f"{found.path!r} is {found.kind}", parameter="path",
                hint="give a pattern such as '*.parquet'",
            )  # fmt: skip
    return files


def _find(path: str | os.PathLike[str]) -> Iterator[Found]:
    name = os.fspath(path)
    if os.path.isdir(name):
        yield from _in_folder(name)
    elif os.path.exists(name):
        refuse_pipe(name)
        refuse_semicolons(name)
        yield Found(name, KINDS[suffix_of(name)], {})
    elif is_pattern(name):
        yield from _matching(name)
    elif "://" in name:
        raise InputError(
            f"table {name!r} does not lie on a disk of this machine", parameter="path",
            hint="read it with Dask or Spark (Problem.from_dask, Problem.from_spark), or copy it",
        )  # fmt: skip
    else:
        raise InputError(f"table {name!r} does not exist", parameter="path")


def _matching(pattern: str) -> Iterator[Found]:
    matches = [
        match
        for match in sorted(glob.glob(pattern, recursive=True))
        if not os.path.basename(match).startswith("_")
    ]
    files = [match for match in matches if not os.path.isdir(match)]
    if not matches:
        raise InputError(f"no file matches {pattern!r}", parameter="path")
    if not files:
        for folder in matches:
            yield from _in_folder(folder)
        return
    for file in files:
        yield Found(file, KINDS[suffix_of(file)], {})


def _in_folder(folder: str) -> Iterator[Found]:
    names = sorted(_walk(folder))
    if not names:
        raise InputError(
            f"folder {folder!r} holds no table", parameter="path",
            hint=f"give one with {list_suffixes()}",
        )  # fmt: skip
    for name in names:
        path = os.path.join(folder, name)
        try:
            kind = KINDS[suffix_of(path)]
        except InputError as error:
            raise InputError(
                f"folder {folder!r} holds {name!r}, which is no table",
                parameter="path",
                hint=(
                    f"move it away, or give a pattern such as {os.path.join(folder, '*.parquet')!r}"
                ),
            ) from error
        yield Found(path, kind, _spelt_out(name))


def _walk(folder: str) -> Iterator[str]:
    """Paths of the files in a folder, relative to it."""

    def fail(error: OSError) -> None:
        raise InputError(
            f"folder {error.filename!r} cannot be read: {error.strerror}", parameter="path"
        ) from error

    for location, folders, files in os.walk(folder, onerror=fail, followlinks=True):
        folders[:] = [name for name in folders if not name.startswith((".", "_"))]
        for name in files:
            if not name.startswith((".", "_")):
                yield os.path.relpath(os.path.join(location, name), folder)


def _spelt_out(name: str) -> dict[str, str | None]:
    values: dict[str, str | None] = {}
    for part in Path(name).parts[:-1]:
        key, equals, value = part.partition("=")
        if equals and key:
            values[unquote(key)] = None if value == NO_VALUE else unquote(value)
    return values
