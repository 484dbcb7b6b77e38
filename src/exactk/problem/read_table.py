"""Read a problem from a file, a folder, a pattern, an .h5ad file or a file of moments.

A small table is read into memory; a folder, a pattern or a large table is streamed.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from exactk.data.h5ad import is_h5ad, read_h5ad, stored_bytes
from exactk.data.targets import WEIGHT, Task
from exactk.errors import InputError, Row, Setting, join_items, suggest
from exactk.params import String, validated
from exactk.problem.problem import Problem
from exactk.streaming.base import Block, EncodedLabels, Reducer, Stream
from exactk.streaming.folders import find_files, is_pattern
from exactk.streaming.to_memory import TooLargeError

if TYPE_CHECKING:
    from exactk.streaming.anndata import AnnDataStream
    from exactk.streaming.files import FileStream

__all__ = ["TableData", "TableRoles", "is_streamed", "match_labels", "open_stream", "read_table"]

# A table that takes more bytes in memory as float64 is streamed.
LARGE_TABLE = 2**28
# The matrix of an .h5ad file stays sparse in memory, and is dense when it is streamed.
LARGE_CELLS = 2**31
# A number in a text file takes at least two bytes with its separator, and 8 bytes in memory.
TEXT_GROWTH = 4
# A gzipped text is about this many times longer when it is unpacked.
UNPACKED = 4
# First bytes of a file of moments, which is a zip archive.
ZIP = b"PK\x03\x04"


@dataclass(frozen=True, eq=False)
class TableData:
    """A problem that was read from a file.

    Attributes
    ----------
    problem : Problem
        Without a ridge.
    groups : ndarray of shape (n_rows,) or None
        Group of each row of the problem.
    target : str
        Name of the target.
    """

    problem: Problem
    groups: npt.NDArray[Any] | None
    target: str


@dataclass(frozen=True)
class TableRoles:
    """What the columns of a table are used for; see `read_table`."""

    target: str
    columns: Sequence[str] | None = None
    drop: Sequence[str] = ()
    weights: str | None = None
    groups: str | None = None
    task: Task = "auto"
    layer: str | None = None
    gene_names: str | None = None


@validated
def read_table(
    path: str | os.PathLike[str],
    target: str | None = None,
    *,
    columns: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    weights: str | None = None,
    groups: str | None = None,
    task: Task = "auto",
    classes: Sequence[Any] | None = None,
    layer: str | None = None,
    gene_names: str | None = None,
    memory_limit: int | None = None,
    verbose: int = 0,
) -> TableData:
    r"""Read a table of any size from disk and make a problem of it.

    Parameters
    ----------
    path : path
        A file (CSV, TSV, Parquet, Arrow, Feather or .h5ad; text may be gzipped), a folder, a
        pattern such as ``"data/*.parquet"``, or a file of moments. A folder, a pattern or a
        table of more than 256 MB in memory (.h5ad: 2 GB) is streamed. Text columns are encoded
        only if the table is read into memory.
    target : str or None
        Column to predict; in an .h5ad file a column of `obs`. Moments know their target.
    columns : sequence of str or None
        Features; None uses all columns that have no other role.
    drop : sequence of str
        Columns to ignore.
    weights : str or None
        Column with the weight of each row.
    groups : str or None
        Column with the group of each row, such as a patient: text or whole numbers. It is not a
        feature, and the rows are loaded into memory.
    task : {"auto", "classification", "regression"}
    classes : sequence or None
        All class labels, if they are known in advance: another label is an error. The table is
        streamed.
    layer : str or None
        Layer of an .h5ad file in place of `X`.
    gene_names : str or None
        Column of `var` of an .h5ad file with the names of the features.
    memory_limit : int or None
        Bytes that the Gram matrix or loaded rows may take; None is the default of `Problem`.
    verbose : int
        1 shows how many rows of a streamed table were read.

    Returns
    -------
    TableData

    Raises
    ------
    InputError
        The file cannot be read, or a column is missing or cannot have its role.

    Examples
    --------
    >>> import tempfile
    >>> from exactk import solve
    >>> text = "height,colour,patient,ill\n1.5,red,a,no\n2.5,blue,a,yes\n2.0,blue,b,yes\n"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "visits.csv").write_text(text)
    ...     data = read_table(f"{folder}/visits.csv", "ill", groups="patient")
    >>> data.problem.original_names, data.groups.tolist()
    (('height', 'colour'), ['a', 'a', 'b'])
    >>> solve(data.problem, 1).selected
    ('colour',)
    """
    path = _check_names(path, target, groups)
    columns = None if columns is None else tuple(columns)
    drop, classes = tuple(drop), None if classes is None else list(classes)
    limit: dict[str, Any] = {} if memory_limit is None else {"memory_limit": memory_limit}
    if _is_moments(path):
        rows = {
            "weights": weights, "groups": groups, "classes": classes, "layer": layer,
            "gene_names": gene_names, "task": None if task == "auto" else task,
        }  # fmt: skip
        _refuse(rows, f"cannot be changed for the moments in {path!r}")
        problem, made_of = _read_moments(path, target, columns, drop)
        return TableData(replace(problem, **limit), None, made_of)
    if target is None:
        raise InputError("target is missing", parameter="target", hint="name the column to predict")
    roles = TableRoles(target, columns, drop, weights, groups, task, layer, gene_names)
    if classes is not None or is_streamed(path):
        stream, labels = match_labels(open_stream([path], roles), classes or ())
        problem = Problem.from_stream(stream, task=task, classes=labels, verbose=verbose, **limit)
        if groups is None:
            return TableData(problem, None, target)
        try:
            # Only rows in memory can be split by groups.
            problem = problem.in_memory(verbose=verbose)
        except TooLargeError as error:
            error.hint = (
                Setting("groups", groups), " needs the rows in memory: raise ",
                Setting("memory_limit"), " or name fewer columns",
            )  # fmt: skip
            error.args = (error.text(),)
            raise
        return TableData(problem, _stream_groups(path, roles, problem), target)
    if is_h5ad(path):
        adata = _open_cells(path, roles, backed=False)
        problem = Problem.from_anndata(
            adata, target, layer=layer, names=gene_names, weights=weights, task=task, **limit
        )
        return TableData(problem, _cell_groups(adata, roles), target)
    from exactk.data import files

    _refuse({"layer": layer, "gene_names": gene_names}, f"is for .h5ad files, not for {path!r}")
    parts = files.split_table(
        files.read_table(path), target, columns=columns, weights=weights, groups=groups,
        drop=drop, text=True,
    )  # fmt: skip
    with _errors_of_file(files.KINDS[files.suffix_of(path)] == "text", weights):
        problem = Problem.from_arrays(
            parts.features, parts.target, sample_weight=parts.weights, task=task, **limit
        )
    return TableData(problem, _check_groups(groups, parts.groups), target)


def _check_names(path: Any, target: Any, groups: Any) -> str:
    """Return the path as text; `target` and `groups` are names here, and data elsewhere."""
    for name, value in (("target", target), ("groups", groups)):
        String(empty=True, none="no column")(name, value)
    if not isinstance(path, (str, os.PathLike)) or not isinstance(os.fspath(path), str):
        raise InputError(parameter="path", value=path, expected="the name of a file or folder")
    return os.fspath(path)


@contextmanager
def _errors_of_file(is_text: bool, weights: str | None) -> Iterator[None]:
    """Let errors name the column of weights and the lines of a text file."""

    def named(part: str | Setting) -> str | Setting:
        if isinstance(part, Row) and is_text:
            return part.line
        return f"column {weights!r}" if part == WEIGHT else part

    try:
        yield
    except InputError as error:
        if not isinstance(error.message, (str, Setting)):
            error.message = tuple(named(part) for part in error.message)
        if error.parameter == WEIGHT.name:
            error.parameter = "weights"
        error.args = (error.text(),)
        raise


def is_streamed(path: str) -> bool:
    """Return whether a table is a folder, a pattern or too large to be read into memory.

    Examples
    --------
    >>> is_streamed("data/*.csv")
    True
    """
    if os.path.isdir(path) or is_pattern(path):
        return True
    if is_h5ad(path):
        return stored_bytes(path) > LARGE_CELLS
    try:
        size = Path(path).stat().st_size
    except OSError:
        return False
    return _bytes_in_memory(path, size) > LARGE_TABLE


def open_stream(paths: Sequence[str], roles: TableRoles) -> FileStream | AnnDataStream:
    """Open files, folders and patterns, or one .h5ad file, as a stream."""
    if len(paths) == 1 and is_h5ad(paths[0]) and os.path.isfile(paths[0]):
        from exactk.data.anndata import read_anndata
        from exactk.streaming.anndata import AnnDataStream

        adata = _open_cells(paths[0], roles, backed=is_streamed(paths[0]))
        cells = read_anndata(
            adata, roles.target, layer=roles.layer, names=roles.gene_names, weights=roles.weights
        )
        return AnnDataStream(cells, roles.task, paths[0])
    from exactk.streaming.files import open_files

    given = {"layer": roles.layer, "gene_names": roles.gene_names}
    _refuse(given, f"is for .h5ad files, not for {paths[0]!r}")
    return open_files(
        list(paths), roles.target, columns=roles.columns or None, drop=roles.drop,
        weights=roles.weights, groups=roles.groups, task=roles.task,
    )  # fmt: skip


def match_labels(
    stream: FileStream | AnnDataStream, classes: Sequence[Any], known: Sequence[Any] = ()
) -> tuple[Stream, list[Any] | None]:
    """Return the stream and the class labels, both with labels of one type.

    Labels that are given as text are converted to the type of the target. A target of a text
    file whose first labels look like numbers becomes text if a label is not a number.

    Parameters
    ----------
    stream : FileStream or AnnDataStream
    classes : sequence
        Labels that the user gave.
    known : sequence
        Labels of earlier moments, which this table is added to.
    """
    if not any(isinstance(label, str) for label in (*classes, *known)):
        return stream, list(classes) or None
    if not any(isinstance(label, str) for label in known):
        try:
            return stream, _convert(classes, stream.y_kind)
        except InputError:
            if not stream.promote:
                raise
    from exactk.streaming.files import FileStream

    if isinstance(stream, FileStream):
        stream = stream.with_text_labels()
    return stream, list(classes) or None


def _convert(classes: Sequence[Any], kind: str) -> list[Any] | None:
    """Return labels of text as the target has them: numbers are read."""
    truths = {"true": True, "false": False}
    read: dict[str, tuple[Callable[[Any], Any], str]] = {
        "bool": (lambda label: truths[str(label).lower()], "true and false"),
        "int": (int, "whole numbers"),
        "float": (float, "numbers"),
    }
    convert, expected = read.get(kind, (lambda label: label, ""))
    try:
        return [convert(label) for label in classes] or None
    except (KeyError, ValueError) as error:
        raise InputError(
            f"classes are {join_items(classes)}, and the target has {expected}",
            parameter="classes", value=classes,
        ) from error  # fmt: skip


def _bytes_in_memory(path: str, size: int) -> float:
    """Return the bytes that a table takes as float64, at most; infinity if that is unknown."""
    from exactk.data.files import require_pyarrow
    from exactk.streaming.formats import read_schema

    (found,) = find_files(path)
    if found.kind == "text":
        return TEXT_GROWTH * (_unpacked(path, size) if path.lower().endswith(".gz") else size)
    require_pyarrow()
    file, schema = read_schema(found)
    return math.inf if file.n_rows is None else 8 * file.n_rows * len(schema.names)


def _unpacked(path: str, size: int) -> int:
    """Return the length of a gzipped text: the last four bytes have that of the last part."""
    with open(path, "rb") as file:
        file.seek(max(0, size - 4))
        return max(UNPACKED * size, int.from_bytes(file.read(4), "little"))


def _refuse(given: dict[str, Any], why: str) -> None:
    """Raise for a parameter that this kind of file does not have."""
    for name, value in given.items():
        if value is not None:
            raise InputError(
                (Setting(name, value), f" {why}"), parameter=name, value=value, hint="leave it out"
            )


def _open_cells(path: str, roles: TableRoles, *, backed: bool) -> Any:
    """Open an .h5ad file with the genes that are features; its layers are always read."""
    from exactk.data.anndata import gene_names, keep_genes
    from exactk.data.arrow import check_roles

    given = [name for name in (roles.target, roles.weights, roles.groups) if name is not None]
    check_roles(given, [roles.target], roles.weights, (), roles.groups)
    adata = read_h5ad(path, backed=backed)
    names = gene_names(adata.var, roles.gene_names, "gene_names")
    return keep_genes(adata, names, roles.columns or (), roles.drop)


def _cell_groups(
    adata: Any, roles: TableRoles, *, all_rows: bool = True
) -> npt.NDArray[Any] | None:
    from exactk.data.anndata import obs_column

    if roles.groups is None:
        return None
    values = obs_column(adata, roles.groups, "groups")
    if roles.weights is not None and not all_rows:
        values = values[obs_column(adata, roles.weights, "weights") > 0]
    return _check_groups(roles.groups, values)


def _stream_groups(path: str, roles: TableRoles, problem: Problem) -> npt.NDArray[Any] | None:
    """Return the group of each row that was loaded: those of weight zero were left out."""
    assert roles.groups is not None
    if is_h5ad(path):
        adata = read_h5ad(path, backed=True)
        values = _cell_groups(adata, roles, all_rows=False)
        adata.file.close()
        return values
    # A stream needs a feature. This one was read before: any error is about the groups.
    alone = replace(
        roles, target=roles.groups, groups=None, columns=[problem.original_names[0]], drop=(),
        task="classification",
    )  # fmt: skip
    try:
        pieces = open_stream([path], alone).reduce(_Groups())
    except InputError as error:
        raise InputError(
            f"groups column {roles.groups!r}: {error}", parameter="groups", value=roles.groups
        ) from error
    return _check_groups(roles.groups, np.concatenate([pieces[at] for at in sorted(pieces)]))


# Labels of each block, by its place in the table.
Pieces = dict[tuple[int, int], npt.NDArray[Any]]


class _Groups(Reducer[Pieces, Pieces]):
    """Keeps the target of rows of positive weight."""

    def begin(self) -> Pieces:
        return {}

    def add(self, state: Pieces, block: Block) -> None:
        values = block.y
        if isinstance(values, EncodedLabels):
            values = np.array(values.labels, dtype=object)[values.codes]
        counted = slice(None) if block.weights is None else block.weights > 0
        state[block.location.part, block.location.first_row] = np.array(values[counted])

    def close(self, state: Pieces) -> Pieces | None:
        return state or None

    def merge(self, one: Pieces, other: Pieces) -> Pieces:
        return {**one, **other}


def _check_groups(name: str | None, values: npt.NDArray[Any] | None) -> npt.NDArray[Any] | None:
    """Return the groups, or raise unless they are two or more of text or whole numbers."""
    if values is None:
        return None
    parted = values[values != np.round(values)] if values.dtype.kind == "f" else values[:0]
    if parted.size or len(set(values.tolist())) < 2:
        flaw = f"the number {parted[0]:g}" if parted.size else "one group only"
        raise InputError(
            f"groups column {name!r} has {flaw}", parameter="groups", value=name,
            hint="give two groups or more, named by text or whole numbers",
        )  # fmt: skip
    return values


def _is_moments(path: str) -> bool:
    # A pipe must not be opened: that waits for its writer.
    if os.path.isfile(path):
        with suppress(OSError), open(path, "rb") as file:
            return file.read(len(ZIP)) == ZIP
    return False


def _read_moments(
    path: str, target: str | None, columns: Sequence[str] | None, drop: Sequence[str]
) -> tuple[Problem, str]:
    """Return the problem of a file of moments and the name of its target."""
    from exactk.data.moments import Moments

    moments = Moments.load(path)
    if target is not None and moments.target not in (None, target):
        raise InputError(
            f"the moments in {path!r} have the target {moments.target!r}, not {target!r}",
            parameter="target", value=target, hint="leave it out",
        )  # fmt: skip
    names = moments.feature_names or ()
    for parameter, asked in (("columns", columns or ()), ("drop", drop)):
        unknown = next((name for name in asked if name not in names), None)
        if unknown is not None:
            raise InputError(
                f"column {unknown!r} is not in {path!r}", parameter=parameter, value=unknown,
                hint=suggest(unknown, names),
            )  # fmt: skip
    if columns or drop:
        kept = tuple(name for name in (columns or names) if name not in drop)
        if not kept:
            raise InputError(f"{path!r} has no columns that are not dropped", parameter="drop")
        moments = moments.with_columns(kept)
    return Problem.from_moments(moments, overwrite=True), target or moments.target or "y"
