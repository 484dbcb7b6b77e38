"""Files of any size: a folder of Parquet, CSV or Arrow is a table that is passed over."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from exactk.data.arrow import pandas_index, plain_type
from exactk.data.files import refuse_other_encoding, require_pyarrow
from exactk.errors import InputError, join_items
from exactk.native.threads import threads_allowed
from exactk.streaming.arrow import Roles, resolve_roles, target_kind
from exactk.streaming.base import OnRows, PartitionError, Reducer, Stream, unwrap
from exactk.streaming.csv import WIDER, OtherKindError
from exactk.streaming.folders import Found, Paths, find_files
from exactk.streaming.formats import TableFile, read_schema, windows_of
from exactk.streaming.parallel_fold import Window, fold_windows, window_rows

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["FileStream", "folder_columns", "open_files", "refuse_repeated"]

Part = TypeVar("Part")

# As a number is written, and no longer than int64 can be: a leading zero is part of a name.
WHOLE_NUMBER = re.compile(r"0|-?[1-9][0-9]{0,18}")


class FileStream(Stream):
    """A table in files, read by as many threads as the process may use.

    Parameters
    ----------
    files : sequence of TableFile
    roles : Roles
    promote : bool
        Whether the kind of the target was inferred from its first rows, and may change.
    threads : int or None
        None takes as many as the process may use.
    """

    def __init__(
        self,
        files: Sequence[TableFile],
        roles: Roles,
        *,
        promote: bool = False,
        threads: int | None = None,
    ) -> None:
        self.files, self.promote, self.threads = tuple(files), promote, threads
        self._take(roles)
        self.n_outputs = len(roles.targets)
        self.target = roles.targets[0] if self.n_outputs == 1 else None
        counts = [file.n_rows for file in self.files]
        known = [count for count in counts if count is not None]
        self.n_rows = sum(known) if len(known) == len(counts) else None

    def _take(self, roles: Roles) -> None:
        self.roles, self.feature_names, self.y_kind = roles, roles.features, roles.y_kind

    def with_text_labels(self) -> FileStream:
        """Return the stream with a target of text, where its first rows alone say otherwise."""
        if not self.promote:
            return self
        roles = replace(self.roles, y_kind="text")
        return FileStream(self.files, roles, threads=self.threads)

    def reduce(self, reducer: Reducer[Any, Part], on_rows: OnRows | None = None) -> Part:  # noqa: D102
        threads = self.threads or threads_allowed()
        rows = window_rows(self.n_features, threads, reducer.n_matrices)
        while True:
            try:
                whole: Part | PartitionError | None = fold_windows(
                    self._windows(threads, rows), self.roles, reducer,
                    threads=threads, on_rows=on_rows, total=self.n_rows,
                )  # fmt: skip
                return unwrap(whole)
            except OtherKindError:
                self._take(replace(self.roles, y_kind=WIDER[self.roles.y_kind]))

    def _windows(self, threads: int, rows: int) -> Generator[Window, None, None]:
        for part, file in enumerate(self.files):
            yield from windows_of(file, self.roles, part, threads, rows, promote=self.promote)


def open_files(
    paths: Paths,
    target: str | Sequence[str],
    *,
    columns: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    weights: str | None = None,
    groups: str | None = None,
    task: str = "auto",
) -> FileStream:
    r"""Open files for passing over; all of them are looked at, and none is read yet.

    Parameters
    ----------
    paths : path, or sequence of paths
        A file, a folder (all files in it, at any depth), or a pattern such as
        ``"data/*.parquet"``: Parquet, CSV or TSV (.gz too), Arrow or Feather. Folders such as
        ``year=2024`` below the one given are a column of the table.
    target : str or sequence of str
        Column to predict; several for several numbers.
    columns : sequence of str or None
        Features; None takes every column that has no other part, and all files must then have the
        same ones. Others are not read.
    drop : sequence of str
        Columns to leave out, as is an index that pandas stored.
    weights : str or None
        Column of row weights.
    groups : str or None
        Column with the group of each row; it is checked, and is not a feature.
    task : {"auto", "classification", "regression"}
        Numbers are read as float64 for a regression.

    Returns
    -------
    FileStream

    Raises
    ------
    InputError
        A file cannot be read, or its columns or their types are not those of the others.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "monday.csv").write_text("height,label\n1.5,a\n2.5,b\n")
    ...     _ = Path(folder, "tuesday.csv").write_text("height,label\n0.5,b\n3.5,c\n")
    ...     stream = open_files(folder, "label")
    >>> stream.feature_names, stream.y_kind, len(stream.files)
    (('height',), 'text', 2)
    """
    require_pyarrow()
    found = find_files(paths)
    looked = [read_schema(one) for one in found]
    files = [file for file, _ in looked]
    schemas = [schema for _, schema in looked]
    for file, schema in looked:
        refuse_repeated(file.path, schema)
    extra = folder_columns(found, schemas[0])
    files = [
        replace(file, constants={name: values[i] for name, values in extra.items()})
        for i, file in enumerate(files)
    ]
    targets = (target,) if isinstance(target, str) else tuple(target)
    named = None if columns is None else {*columns, *targets, *filter(None, [weights, groups])}
    schema = _common(files, schemas, named, set(drop), targets)
    for name, values in extra.items():
        schema = schema.append(_field(name, values))
    try:
        roles = resolve_roles(
            schema, target, columns=columns, drop=drop, weights=weights, groups=groups, task=task
        )
    except InputError:
        for file, held in looked:
            # Arrow reads text in another encoding as bytes.
            if file.kind == "text" and "binary" in map(str, held.types):
                refuse_other_encoding(file.path)
        raise
    guessed = files[0].kind == "text" and task != "regression" and len(targets) == 1
    return FileStream(files, roles, promote=guessed)


def refuse_repeated(path: str, schema: pa.Schema) -> None:
    """Raise for a file without columns, or with two of one name."""
    if not schema.names:
        raise InputError(f"table {path!r} has no columns", parameter="path")
    repeated = [name for name, count in Counter(schema.names).items() if count > 1]
    if repeated:
        raise InputError(
            f"table {path!r} has more than one column named {join_items(repeated)}",
            parameter="path", hint="rename them",
        )  # fmt: skip


def folder_columns(found: Sequence[Found], schema: pa.Schema) -> dict[str, list[Any]]:
    """Columns that the names of the folders spell out: whole numbers if all values are."""
    names = found[0].folders
    for one in found:
        if one.folders.keys() != names.keys():
            raise InputError(
                f"the folders of {one.path!r} spell out the columns {join_items(one.folders)}, "
                "those "
                f"of {found[0].path!r} {join_items(names)}", parameter="path",
            )  # fmt: skip
    columns: dict[str, list[Any]] = {}
    for name in names:
        if name in schema.names:
            continue
        values = [one.folders[name] for one in found]
        if all(value is None or _is_whole(value) for value in values):
            columns[name] = [None if value is None else int(value) for value in values]
        else:
            columns[name] = list(values)
    return columns


def _is_whole(text: str) -> bool:
    """Whether a text is a whole number, and one that a column can hold."""
    return WHOLE_NUMBER.fullmatch(text) is not None and -(2**63) <= int(text) < 2**63


def _field(name: str, values: Sequence[Any]) -> pa.Field:
    import pyarrow as pa

    return pa.field(name, pa.array(values).type)


def _common(
    files: Sequence[TableFile],
    schemas: Sequence[pa.Schema],
    named: set[str] | None,
    drop: set[str],
    targets: Sequence[str],
) -> pa.Schema:
    """The schema of all files together, or an error that names the file that is not like others."""
    import pyarrow as pa

    first, held = schemas[0], dict(zip(schemas[0].names, schemas[0].types, strict=True))
    source = dict.fromkeys(held, files[0].path)
    for file, schema in zip(files, schemas, strict=True):
        if schema.equals(first):
            continue
        wanted = (set(held) if named is None else named & set(held)) - drop
        _check_columns(
            file, schema, files[0].path, wanted, named is None, pandas_index(first) | drop
        )
        for name in (name for name in first.names if name in wanted and name in schema.names):
            kind = schema.field(name).type
            both = _merged_type(
                held[name], kind, is_target=name in targets, text=file.kind == "text"
            )
            if both is None:
                raise InputError(
                    f"column {name!r} is {kind} in {file.path!r} and {held[name]} in "
                    f"{source[name]!r}", parameter="path",
                )  # fmt: skip
            if pa.types.is_null(held[name]):
                source[name] = file.path
            held[name] = both
    return pa.schema([pa.field(name, kind) for name, kind in held.items()], metadata=first.metadata)


def _check_columns(
    file: TableFile,
    schema: pa.Schema,
    first: str,
    wanted: set[str],
    all_of_them: bool,
    out: set[str],
) -> None:
    index = pandas_index(schema)
    missing = [name for name in sorted(wanted - out) if name not in schema.names]
    if missing:
        raise InputError(
            f"table {file.path!r} lacks the column {join_items(missing)} of {first!r}",
            parameter="path",
        )
    more = [name for name in schema.names if name not in wanted | out | index]
    if all_of_them and more:
        raise InputError(
            f"table {file.path!r} has the column {join_items(more)}, which {first!r} has not",
            parameter="path", hint="drop it, or name the columns that are features",
        )  # fmt: skip


def _merged_type(one: Any, other: Any, *, is_target: bool, text: bool) -> Any:
    """A type for both, None if there is none: labels do not mix with numbers."""
    import pyarrow as pa

    if one == other or pa.types.is_null(plain_type(other)):
        return one
    if pa.types.is_null(plain_type(one)):
        return other
    kinds = (target_kind(one), target_kind(other))
    if None in kinds:
        return None
    if kinds[0] == kinds[1]:
        return one
    if is_target and text:
        # Text says nothing of types: the target is what all its values can be read as.
        order = [*WIDER, "text"]
        return max(one, other, key=lambda kind: order.index(target_kind(kind) or "text"))
    if "text" in kinds or (is_target and "bool" in kinds):
        return None
    return pa.float64()
