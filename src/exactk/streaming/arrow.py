"""Arrow record batches become blocks: what files and Spark have in common."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from exactk.data.arrow import (
    check_roles,
    choose_features,
    decode_column,
    is_number,
    is_text,
    named_features,
    plain_type,
)
from exactk.errors import InputError, join_items
from exactk.streaming.base import Block, EncodedLabels, Location
from exactk.types import Floats

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "MissingError",
    "Roles",
    "blocks_of",
    "cut",
    "fill",
    "finish_block",
    "named_features",
    "resolve_roles",
    "rows_per_block",
    "target_kind",
    "to_block",
]


# Large enough that a product costs more than the calls around it, small enough for the cache
# and for one a worker.
BLOCK_BYTES = 16 * 2**20
# With few rows a product mostly waits for the d × d matrix that it is added to.
FEWEST_ROWS = 1_024
# Classes, however many, take a column each for as long as the block is in use.
MOST_ROWS = 32_768


class MissingError(InputError):
    """A value is missing in a row."""

    row: int


@dataclass(frozen=True)
class Roles:
    """Which columns of a table are what.

    Attributes
    ----------
    features : tuple of str
    targets : tuple of str
        One column, or several of numbers.
    weights : str or None
    y_kind : {"text", "bool", "int", "float"}
        What the target is read as.
    """

    features: tuple[str, ...]
    targets: tuple[str, ...]
    weights: str | None = None
    y_kind: str = "float"

    @property
    def columns(self) -> list[str]:
        """Names of all columns that need be read."""
        return list(dict.fromkeys((*self.features, *self.targets, *filter(None, [self.weights]))))


def rows_per_block(n_features: int) -> int:
    """Return how many rows a block should have."""
    return min(MOST_ROWS, max(FEWEST_ROWS, BLOCK_BYTES // (8 * max(1, n_features))))


def resolve_roles(
    schema: pa.Schema,
    target: str | Sequence[str],
    *,
    columns: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    weights: str | None = None,
    groups: str | None = None,
    task: str = "auto",
) -> Roles:
    """Settle which columns of a table are what, and check their types.

    Parameters
    ----------
    schema : pyarrow.Schema
    target : str or sequence of str
        Column to predict; several must hold numbers.
    columns : sequence of str or None
        Features; None takes every column that has no other part.
    drop : sequence of str
        Columns to leave out, as is an index that pandas stored.
    weights : str or None
    groups : str or None
        Column with the group of each row; it is not a feature.
    task : {"auto", "classification", "regression"}
        Numbers are read as float64 for a regression.

    Returns
    -------
    Roles

    Raises
    ------
    InputError
        A column is not there, has two parts to play, or holds what its part cannot use.

    Examples
    --------
    >>> import pyarrow as pa
    >>> schema = pa.schema({"height": pa.float32(), "name": pa.string(), "label": pa.string()})
    >>> resolve_roles(schema, "label", drop=["name"])
    Roles(features=('height',), targets=('label',), weights=None, y_kind='text')
    """
    targets = (target,) if isinstance(target, str) else tuple(target)
    if not targets:
        raise InputError("target names no column", parameter="target")
    known = schema.names
    repeated = [name for name, count in Counter(known).items() if count > 1]
    if repeated:
        raise InputError(
            f"the table has more than one column named {join_items(repeated)}", parameter="path",
            hint="rename them",
        )  # fmt: skip
    check_roles(known, targets, weights, drop, groups)
    features = choose_features(schema, columns, {*targets, weights, groups, *drop})
    _refuse_wrong_types(schema, features, weights)
    return Roles(features, targets, weights, _kind_of_targets(schema, targets, task))


def _refuse_wrong_types(schema: pa.Schema, features: Sequence[str], weights: str | None) -> None:
    """Raise for features and weights that do not hold numbers."""
    kinds = {name: schema.field(name).type for name in (*features, *filter(None, [weights]))}
    wrong = [name for name in features if not is_number(plain_type(kinds[name]))]
    if wrong:
        shown = ", ".join(sorted({str(kinds[name]) for name in wrong})[:3])
        count = "1 feature column is" if len(wrong) == 1 else f"{len(wrong)} feature columns are"
        raise InputError(
            f"{count} not numeric ({shown}): {join_items(wrong)}", parameter="columns",
            hint=f"drop them, or recode{_why_not(kinds[name] for name in wrong)}",
        )  # fmt: skip
    if weights is not None and not is_number(plain_type(kinds[weights])):
        raise InputError(
            f"weights column {weights!r} is {kinds[weights]}", parameter="weights",
            hint="it must hold numbers",
        )  # fmt: skip


def _why_not(kinds: Iterable[Any]) -> str:
    """Say why text is refused here that other tables may hold; nothing for other kinds."""
    if not any(is_text(plain_type(kind)) for kind in kinds):
        return ""
    return (
        ": text columns are encoded only if the whole table is read into memory (a frame, or one "
        "file that is not large, without a list of classes)"
    )


def target_kind(kind: Any) -> str | None:
    """Return what a column of this type holds as a target; None if it cannot be one.

    Examples
    --------
    >>> import pyarrow as pa
    >>> target_kind(pa.dictionary(pa.int8(), pa.string())), target_kind(pa.uint8())
    ('text', 'int')
    """
    import pyarrow as pa

    kind = plain_type(kind)
    if is_text(kind):
        return "text"
    if pa.types.is_boolean(kind):
        return "bool"
    if pa.types.is_integer(kind):
        return "int"
    return "float" if is_number(kind) else None


def _kind_of_targets(schema: pa.Schema, targets: Sequence[str], task: str) -> str:
    kinds = []
    for name in targets:
        kind = target_kind(schema.field(name).type)
        if kind is None or (kind == "text" and len(targets) > 1):
            wanted = "numbers" if len(targets) > 1 else "numbers or UTF-8 labels"
            raise InputError(
                f"target column {name!r} is {schema.field(name).type}", parameter="target",
                hint=f"it must hold {wanted}",
            )  # fmt: skip
        kinds.append(kind)
    if len(kinds) > 1 or (task == "regression" and kinds[0] != "text"):
        return "float"
    return kinds[0]


def blocks_of(
    batches: Iterable[pa.RecordBatch], roles: Roles, location: Location
) -> Iterator[Block]:
    """Make blocks of a useful size of the batches of one part of a table, whatever their sizes.

    Parameters
    ----------
    batches : iterable of pyarrow.RecordBatch
    roles : Roles
    location : Location
        Of the first row.
    """
    for group in cut(batches, repeat(rows_per_block(len(roles.features)))):
        block = to_block(group, roles, location)
        location = location.after(len(block.X))
        yield block


def cut(batches: Iterable[pa.RecordBatch], sizes: Iterable[int]) -> Iterator[list[pa.RecordBatch]]:
    """Cut and gather batches into groups of these numbers of rows; the last may have fewer.

    Examples
    --------
    >>> import pyarrow as pa
    >>> batches = [pa.record_batch({"a": range(5)}), pa.record_batch({"a": range(3)})]
    >>> [[len(piece) for piece in group] for group in cut(batches, [4, 3, 9])]
    [[4], [1, 2], [1]]
    """
    group: list[pa.RecordBatch] = []
    sizes = iter(sizes)
    missing = next(sizes, 0)
    for batch in batches:
        start = 0
        while missing and start < batch.num_rows:
            piece = batch.slice(start, missing)
            start += piece.num_rows
            missing -= piece.num_rows
            group.append(piece)
            if not missing:
                yield group
                group, missing = [], next(sizes, 0)
    if group:
        yield group


def to_block(
    batches: pa.RecordBatch | Sequence[pa.RecordBatch], roles: Roles, location: Location
) -> Block:
    """Make one block of one or several batches.

    Parameters
    ----------
    batches : pyarrow.RecordBatch or sequence of them
        With the same columns, at least those of the layout, in any order.
    roles : Roles
    location : Location
        Of the first row.

    Raises
    ------
    InputError
        A value is missing, or a column holds what its part cannot use; named with its place.

    Examples
    --------
    >>> import pyarrow as pa
    >>> batch = pa.record_batch({"a": [1, 2], "b": [True, False], "y": ["u", "v"]})
    >>> block = to_block(batch, Roles(("a", "b"), ("y",), y_kind="text"), Location("t", 0, 0))
    >>> block.X.tolist(), block.y.codes.tolist(), block.y.labels
    ([[1.0, 1.0], [2.0, 0.0]], [0, 1], ['u', 'v'])
    """
    pieces = list(batches) if isinstance(batches, Sequence) else [batches]
    X = np.empty((sum(piece.num_rows for piece in pieces), len(roles.features)), order="F")
    fill([X], pieces, range(X.shape[1]), roles, location)
    return finish_block(X, pieces, roles, location)


def fill(
    blocks: Sequence[Floats],
    pieces: Sequence[pa.RecordBatch],
    columns: Iterable[int],
    roles: Roles,
    location: Location,
) -> None:
    """Copy some of the features into their columns of the blocks that the rows go to, in turn."""
    spans = _spans([len(X) for X in blocks], [piece.num_rows for piece in pieces])
    missing: list[MissingError] = []
    for j in columns:
        try:
            _spread(blocks, j, pieces, spans, roles.features[j], location)
        except MissingError as error:
            missing.append(error)
    if missing:
        raise min(missing, key=lambda error: error.row)


def _spread(
    blocks: Sequence[Floats],
    j: int,
    pieces: Sequence[pa.RecordBatch],
    spans: Sequence[Sequence[tuple[int, slice, slice]]],
    name: str,
    location: Location,
) -> None:
    """Copy one feature into its column of several blocks."""
    start = 0
    for piece, parts in zip(pieces, spans, strict=True):
        values = _numbers(piece.column(name), name, location, start)
        for number, there, here in parts:
            blocks[number][there, j] = values[here]
        start += piece.num_rows


def _spans(blocks: Sequence[int], pieces: Sequence[int]) -> list[list[tuple[int, slice, slice]]]:
    """For each piece, which of its rows go to which rows of which block."""
    spans = []
    number = used = 0
    for size in pieces:
        parts, done = [], 0
        while done < size and number < len(blocks):
            step = min(size - done, blocks[number] - used)
            parts.append((number, slice(used, used + step), slice(done, done + step)))
            done, used = done + step, used + step
            if used == blocks[number]:
                number, used = number + 1, 0
        spans.append(parts)
    return spans


def finish_block(
    X: Floats, pieces: Sequence[pa.RecordBatch], roles: Roles, location: Location
) -> Block:
    """Put the target and the weights of the same rows beside the features."""
    weights = None
    if roles.weights is not None:
        weights = np.empty(len(X))
        _fill(weights, pieces, roles.weights, location)
    return Block(X, _target(pieces, roles, location, len(X)), weights, location)


def _fill(out: Floats, pieces: Sequence[pa.RecordBatch], name: str, location: Location) -> None:
    """Copy one column of numbers."""
    start = 0
    for piece in pieces:
        stop = start + piece.num_rows
        out[start:stop] = _numbers(piece.column(name), name, location, start)
        start = stop


def _numbers(column: Any, name: str, location: Location, start: int) -> npt.NDArray[Any]:
    column = decode_column(column)
    if not is_number(column.type):
        raise InputError(
            f"column {name!r} of {location.source} is {column.type}", parameter="columns",
            hint="it must hold numbers",
        )  # fmt: skip
    _refuse_nulls(column, name, location, start)
    values: npt.NDArray[Any] = column.to_numpy(zero_copy_only=False)
    return values


def _refuse_nulls(column: Any, name: str, location: Location, start: int) -> None:
    if column.null_count:
        row = start + int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
        error = MissingError(
            f"column {name!r} is missing in {location.rows(row, row + 1)}",
            parameter="X",
            hint="fill it in, drop those rows, or leave the column out",
        )
        error.row = location.first_row + row
        raise error


def _target(
    pieces: Sequence[pa.RecordBatch], roles: Roles, location: Location, n_rows: int
) -> npt.NDArray[Any] | EncodedLabels:
    if roles.y_kind == "text":
        return _labels(pieces, roles.targets[0], location)
    if roles.y_kind == "float":
        values = np.empty((n_rows, len(roles.targets)), order="F")
        for j, name in enumerate(roles.targets):
            _fill(values[:, j], pieces, name, location)
        return values[:, 0] if len(roles.targets) == 1 else values
    (name,) = roles.targets
    start, parts = 0, []
    for piece in pieces:
        kind = piece.schema.field(name).type
        if target_kind(kind) != roles.y_kind:
            raise InputError(
                f"target column {name!r} of {location.source} is {kind}, and was taken for "
                f"{roles.y_kind}", parameter="target",
            )  # fmt: skip
        parts.append(_numbers(piece.column(name), name, location, start))
        start += piece.num_rows
    return np.concatenate(parts)


def _labels(pieces: Sequence[pa.RecordBatch], name: str, location: Location) -> EncodedLabels:
    """Codes and labels of a column of text; only labels that occur are listed."""
    import pyarrow as pa

    known: dict[str, int] = {}
    start, codes = 0, []
    for piece in pieces:
        column = piece.column(name)
        if not is_text(plain_type(column.type)):
            raise InputError(
                f"target column {name!r} of {location.source} is {column.type}, and was "
                "taken for text", parameter="target",
            )  # fmt: skip
        # A null may also stand in the dictionary, where it is not counted.
        if not pa.types.is_dictionary(column.type) or column.dictionary.null_count:
            column = decode_column(column)
        _refuse_nulls(column, name, location, start)
        if pa.types.is_string_view(column.type):
            column = column.cast(pa.large_string())
        if not pa.types.is_dictionary(column.type):
            column = column.dictionary_encode()
        held = column.indices.to_numpy(zero_copy_only=False).astype(np.intp)
        used = np.flatnonzero(np.bincount(held, minlength=len(column.dictionary)))
        to = np.zeros(len(column.dictionary), dtype=np.intp)
        labels = column.dictionary.take(pa.array(used)).to_pylist()
        # A dictionary may list a label twice.
        to[used] = [known.setdefault(label, len(known)) for label in labels]
        codes.append(to[held])
        start += piece.num_rows
    return EncodedLabels(np.concatenate(codes), list(known))
