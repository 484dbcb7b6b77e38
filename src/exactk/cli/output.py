"""Where a command may write, and writing there: the whole text, or nothing."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from pathlib import Path

import click

from exactk.errors import InputError
from exactk.utils.atomic_write import replace_text

__all__ = ["check_output", "print_as_is", "write_output"]


def check_output(output: str, what: str, inputs: Sequence[str], option: str = "--output") -> None:
    """Refuse a place that cannot be written, or is an input, before the work and not after it.

    Parameters
    ----------
    output : str
    what : str
        What the inputs are, in one word.
    inputs : sequence of str
        Files, folders or patterns.
    option : str
        What the place was given as.
    """
    place = Path(output)
    if place.is_dir():
        raise InputError(f"{option} {output!r} is a folder; give a file name")
    if place.exists():
        if any(place.samefile(file) for file in _files(inputs)):
            raise InputError(f"{option} {output!r} is the {what} itself; give another name")
        if not os.access(place, os.W_OK):
            raise InputError(f"{option} {output!r} cannot be written: no permission")
        if not place.is_file():
            # Pipes and devices are written to and not replaced.
            return
    folder = Path(os.path.realpath(place)).parent
    for name in inputs:
        if Path(name).is_dir() and Path(os.path.realpath(name)) in (folder, *folder.parents):
            raise InputError(
                f"{option} {output!r} lies in {name!r}, which is read: the next time it would be "
                f"taken for a part of the table; give another place"
            )
    if not folder.is_dir():
        raise InputError(f"{option} {output!r} cannot be written: its folder does not exist")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(f"{option} {output!r} cannot be written: no permission in its folder")


def _files(inputs: Sequence[str]) -> list[str]:
    """Those that exist; a pattern stands for the files it matches."""
    found: list[str] = []
    for name in inputs:
        found += [name] if Path(name).exists() else glob.glob(name, recursive=True)
    return found


def print_as_is(text: str) -> None:
    """Print a text to stdout with all that is in it."""
    # Without a colour of its own click takes escapes out of what goes to a file or a pipe, and
    # names of columns with them.
    click.echo(text, nl=False, color=True)


def write_output(text: str, output: str | None, option: str = "--output") -> None:
    """Print a text, or write it to a file."""
    if output is None:
        print_as_is(text)
        return
    try:
        replace_text(output, text)
    except OSError as error:
        raise InputError(f"{option} {output!r} cannot be written: {error.strerror}") from error
