"""From the words of a command line to a problem: read into memory, or passed over."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from exactk.errors import InputError, join_items

if TYPE_CHECKING:
    from exactk.data.targets import Task
    from exactk.problem.problem import Problem
    from exactk.streaming.anndata import AnnDataStream
    from exactk.streaming.base import Stream
    from exactk.streaming.files import FileStream

__all__ = [
    "TableRoles",
    "is_streamed",
    "labels_of",
    "match_label_types",
    "open_problem",
    "open_stream",
]

# A table of more bytes, were it float64 in memory, is passed over.
LARGE_TABLE = 2**28
# The matrix of an AnnData stays sparse in memory; passed over, each of its blocks is dense.
LARGE_CELLS = 2**31
# A value in text takes two bytes or more, with what stands between, and 8 in memory.
TEXT_GROWTH = 4
# Bytes of text that a byte of gzip stands for, at least about.
UNPACKED = 4


@dataclass(frozen=True)
class TableRoles:
    """Which columns of a table are what, and what its target holds.

    The target and the weights of an AnnData are columns of its `obs`, all others are genes; it
    alone has a layer, and a column of `var` that names the genes.
    """

    target: str
    columns: Sequence[str] = ()
    drop: Sequence[str] = ()
    weights: str | None = None
    task: Task = "auto"
    classes: Sequence[str] = ()
    layer: str | None = None
    gene_names: str | None = None


def open_problem(
    table: str, parts: TableRoles, *, quiet: bool, memory_limit: int | None = None
) -> Problem:
    """Make a problem of a file, a folder or a pattern; a limit of None is that of the library."""
    from exactk.problem.problem import Problem

    limit: dict[str, Any] = {} if memory_limit is None else {"memory_limit": memory_limit}
    if parts.classes or is_streamed(table):
        stream, classes = match_label_types(open_stream([table], parts), parts.classes, [])
        return Problem.from_stream(
            stream, task=parts.task, classes=classes, verbose=0 if quiet else 1, **limit
        )
    from exactk.data.h5ad import is_h5ad

    if is_h5ad(table):
        adata = _open_cells(table, parts, backed=False)
        return Problem.from_anndata(
            adata, parts.target, layer=parts.layer, names=parts.gene_names, weights=parts.weights,
            task=parts.task, **limit,
        )  # fmt: skip
    from exactk.data.files import read_table, split_table

    _refuse_cells(table, parts)
    split = split_table(
        read_table(table), parts.target, columns=parts.columns or None, weights=parts.weights,
        drop=parts.drop, text=True,
    )  # fmt: skip
    return Problem.from_arrays(
        split.features, split.target, sample_weight=split.weights, task=parts.task, **limit
    )


def open_stream(tables: Sequence[str], parts: TableRoles) -> FileStream | AnnDataStream:
    """Open files, folders and patterns, or one AnnData, to be passed over."""
    from exactk.data.h5ad import is_h5ad

    if len(tables) == 1 and is_h5ad(tables[0]) and os.path.isfile(tables[0]):
        from exactk.data.anndata import read_anndata
        from exactk.streaming.anndata import AnnDataStream

        adata = _open_cells(tables[0], parts, backed=is_streamed(tables[0]))
        cells = read_anndata(
            adata, parts.target, layer=parts.layer, names=parts.gene_names, weights=parts.weights
        )
        return AnnDataStream(cells, parts.task, tables[0])
    from exactk.streaming.files import open_files

    _refuse_cells(tables[0], parts)
    return open_files(
        list(tables), parts.target, columns=parts.columns or None, drop=parts.drop,
        weights=parts.weights, task=parts.task,
    )  # fmt: skip


def is_streamed(table: str) -> bool:
    """Whether a table is a folder or a pattern, or too large to be read into memory."""
    from exactk.data.h5ad import is_h5ad, stored_bytes
    from exactk.streaming.folders import is_pattern

    if os.path.isdir(table) or is_pattern(table):
        return True
    if is_h5ad(table):
        return stored_bytes(table) > LARGE_CELLS
    try:
        size = Path(table).stat().st_size
    except OSError:
        return False
    return _bytes_in_memory(table, size) > LARGE_TABLE


def _open_cells(table: str, parts: TableRoles, *, backed: bool) -> Any:
    """Open an AnnData with the genes that are features; its layers are always read."""
    from exactk.data.anndata import gene_names, keep_genes
    from exactk.data.h5ad import read_h5ad

    for role, column in (
        ("weights", parts.weights),
        *(("columns", name) for name in parts.columns),
    ):
        if column == parts.target:
            raise InputError(f"--target {column!r} is among --{role}, too; give it one part")
    adata = read_h5ad(table, backed=backed)
    return keep_genes(adata, gene_names(adata.var, parts.gene_names), parts.columns, parts.drop)


def _refuse_cells(table: str, parts: TableRoles) -> None:
    """Raise for what only an AnnData has."""
    for option, value in (("--layer", parts.layer), ("--gene-names", parts.gene_names)):
        if value is not None:
            raise InputError(f"{option} {value!r} is for .h5ad tables, and {table!r} is none")


def _bytes_in_memory(table: str, size: int) -> float:
    """What a table takes as float64, at most; infinity where only reading tells."""
    from exactk.data.files import require_pyarrow
    from exactk.streaming.folders import find_files
    from exactk.streaming.formats import read_schema

    (found,) = find_files(table)
    if found.kind == "text":
        return TEXT_GROWTH * (_unpacked(table, size) if table.lower().endswith(".gz") else size)
    require_pyarrow()
    file, schema = read_schema(found)
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
        raise InputError(f"--classes {join_items(words)}: the target holds {wanted}") from error
    return list(words)


def match_label_types(
    stream: FileStream | AnnDataStream, words: Sequence[str], known: Sequence[Any]
) -> tuple[Stream, list[Any] | None]:
    """Read the labels of a CSV file as text where others are: its own may all look like numbers."""
    from exactk.streaming.files import FileStream

    as_text = any(isinstance(label, str) for label in known)
    if not as_text:
        try:
            return stream, labels_of(words, stream.y_kind)
        except InputError:
            if not stream.promote:
                raise
    if isinstance(stream, FileStream):
        stream = stream.with_text_labels()
    return stream, list(words) or None
