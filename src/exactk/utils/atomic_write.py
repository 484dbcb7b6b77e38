"""Output that is there whole or not at all: a full disk or Ctrl-C leaves the old file, or none."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

__all__ = ["replace_file", "replace_text"]


@contextlib.contextmanager
def replace_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file for writing that takes its name when the block ends, and only then.

    Until then it is a hidden file in the same folder, which is removed if the block fails for
    whatever reason. A link keeps its place: what it points to is replaced. Pipes and devices
    cannot be replaced and are written to.

    Parameters
    ----------
    path : path-like

    Yields
    ------
    binary file

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "answer.txt")
    ...     with replace_file(path) as file:
    ...         early = path.exists()
    ...         _ = file.write(b"42")
    ...     early, path.read_text()
    (False, '42')
    """
    place = Path(path)
    if place.exists() and not place.is_file():
        with place.open("wb") as file:
            yield file
        return
    target = Path(os.path.realpath(place))
    # Its own name, and not one made of the target's, which may be as long as a name can be.
    made = target.with_name(f".exactk-{secrets.token_hex(8)}.part")
    try:
        with made.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            shutil.copymode(target, made)
        os.replace(made, target)
    except BaseException as error:
        # Whether it can be removed or not, the first error is the one to tell.
        with contextlib.suppress(OSError):
            made.unlink(missing_ok=True)
        if isinstance(error, OSError) and str(error.filename) == str(made):
            # The hidden file is nobody's but ours.
            raise OSError(error.errno, error.strerror, os.fspath(path)) from None
        raise


def replace_text(path: str | os.PathLike[str], text: str) -> None:
    r"""Write a text as it is, in UTF-8, whole or not at all.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     replace_text(Path(folder, "a.txt"), "one\n")
    ...     Path(folder, "a.txt").read_bytes()
    b'one\n'
    """
    with replace_file(path) as file:
        file.write(text.encode("utf-8"))
