"""From the words of a command line to a problem: read into memory, or passed over."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from exactk.errors import InputError, listing

if TYPE_CHECKING:
    from exactk.problem import Problem
    from exactk.streams.files import FileStream
    from exactk.targets import Task

__all__ = ["Parts", "is_passed_over", "labels_of", "open_problem", "settle_labels"]

# A table of more bytes, were it float64 in memory, is passed over.
LARGE_TABLE = 2**28
# A value in text takes two bytes or more, with what stands between, and 8 in memory.
TEXT_GROWTH = 4
# Bytes of text that a byte of gzip stands for, at least about.
UNPACKED = 4


@dataclass(frozen=True)
class Parts:
    """Which columns of a table are what, and what its target holds."""

    target: str
    columns: Sequence[str] = ()
    drop: Sequence[str] = ()
    weights: str | None = None
    task: Task = "auto"
    classes: Sequence[str] = ()


def open_problem(
    table: str, parts: Parts, *, quiet: bool, memory_limit: int | None = None
) -> Problem:
    """Make a problem of a file, a folder or a pattern; a limit of None is that of the library."""
    from exactk.problem import Problem

    limit: dict[str, Any] = {} if memory_limit is None else {"memory_limit": memory_limit}
    columns = parts.columns or None
    if parts.classes or is_passed_over(table):
        from exactk.streams.files import open_files

        stream = open_files(
            table, parts.target, columns=columns, drop=parts.drop, weights=parts.weights,
            task=parts.task,
        )  # fmt: skip
        stream, classes = settle_labels(stream, parts.classes, [])
        return Problem.from_stream(
            stream, task=parts.task, classes=classes, verbose=0 if quiet else 1, **limit
        )
    from exactk.sources.files import read_table, split_table

    split = split_table(
        read_table(table), parts.target, columns=columns, weights=parts.weights, drop=parts.drop,
        text=True,
    )  # fmt: skip
    return Problem.from_arrays(
        split.features, split.target, sample_weight=split.weights, task=parts.task, **limit
    )


def is_passed_over(table: str) -> bool:
    """Whether a table is a folder or a pattern, or too large to be read into memory."""
    from exactk.streams.folders import is_pattern

    if os.path.isdir(table) or is_pattern(table):
        return True
    try:
        size = Path(table).stat().st_size
    except OSError:
        return False
    return _bytes_in_memory(table, size) > LARGE_TABLE


def _bytes_in_memory(table: str, size: int) -> float:
    """What a table takes as float64, at most; infinity where only reading tells."""
    from exactk.sources.files import needs_pyarrow
    from exactk.streams.folders import find_files
    from exactk.streams.formats import examine

    (found,) = find_files(table)
    if found.kind == "text":
        return TEXT_GROWTH * (_unpacked(table, size) if table.lower().endswith(".gz") else size)
    needs_pyarrow()
    file, schema = examine(found)
    return math.inf if file.n_rows is None else 8 * file.n_rows * len(schema.names)


def _unpacked(table: str, size: int) -> int:
    """The length of a packed text, which gzip keeps in the last four bytes (of the last part)."""
    with open(table, "rb") as file:
        file.seek(max(0, size - 4))
        return max(UNPACKED * size, int.from_bytes(file.read(4), "little"))


def labels_of(words: Sequence[str], kind: str) -> list[Any] | None:
    """Labels as the target holds them: text stays text, and numbers are read.

    Examples
    --------
    >>> labels_of(["1", "2"], "int"), labels_of(["1", "2"], "text")
    ([1, 2], ['1', '2'])
    """
    if not words:
        return None
    truths = {"true": True, "false": False}
    try:
        if kind == "bool":
            return [truths[word.lower()] for word in words]
        if kind in ("int", "float"):
            return [int(word) if kind == "int" else float(word) for word in words]
    except (KeyError, ValueError) as error:
        wanted = {"bool": "true and false", "int": "whole numbers"}.get(kind, "numbers")
        raise InputError(f"--classes {listing(words)}: the target holds {wanted}") from error
    return list(words)


def settle_labels(
    stream: FileStream, words: Sequence[str], known: Sequence[Any]
) -> tuple[FileStream, list[Any] | None]:
    """Read the labels of a CSV file as text where others are: its own may all look like numbers."""
    from exactk.streams.files import FileStream

    as_text = any(isinstance(label, str) for label in known)
    if not as_text:
        try:
            return stream, labels_of(words, stream.y_kind)
        except InputError:
            if not stream.widen:
                raise
    if stream.widen:
        stream = FileStream(stream.files, replace(stream.layout, y_kind="text"))
    return stream, list(words) or None
