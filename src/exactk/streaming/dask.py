"""Dask arrays and dataframes: partitions are folded where they are, and merged in a tree.

Whatever scheduler is active does the work: a distributed cluster, threads, processes, or the
caller alone. Only what the whole table has come to reaches the caller. Tasks change nothing that
they are given, so one whose worker dies is run again elsewhere and gives the same.
"""

from __future__ import annotations

import itertools
import operator
import uuid
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from exactk.data.arrow import check_roles
from exactk.data.frames import frame_to_array
from exactk.data.open_table import check_names, is_dask
from exactk.errors import InputError, show_value
from exactk.native.threads import one_blas_thread
from exactk.streaming.arrow import named_features
from exactk.streaming.base import (
    OnRows,
    Part,
    PartitionError,
    Reducer,
    Stream,
    merge_partitions,
    reduce_partition,
    unwrap,
)
from exactk.streaming.partitions import PartitionReader, is_plain_array, kind_of

__all__ = [
    "DaskStream",
    "Parts",
    "TargetInfo",
    "align_partitions",
    "aligned",
    "check_weights",
    "inspect_target",
    "is_array",
    "is_frame",
    "is_framed",
    "open_dask",
    "partitions",
    "refuse_blocks",
    "with_row_counts",
]


@dataclass(frozen=True)
class Parts:
    """A collection as delayed partitions, with their numbers of rows where these are known."""

    delayed: list[Any]
    sizes: tuple[int, ...] | None = None


@dataclass(frozen=True, eq=False)
class TargetInfo:
    """What a target holds, and its name where it has one."""

    kind: str
    n_outputs: int
    name: str | None


def is_array(values: Any) -> bool:
    """Whether values are a dask array."""
    return is_dask(values) and hasattr(type(values), "rechunk")


def is_frame(values: Any) -> bool:
    """Whether values are a dask dataframe."""
    return is_framed(values) and values.ndim == 2


def is_framed(values: Any) -> bool:
    """Whether values are a dask dataframe or series; a delayed object claims any attribute."""
    wanted = ("map_partitions", "ndim")
    return is_dask(values) and all(hasattr(type(values), name) for name in wanted)


def partitions(collection: Any) -> Parts:
    """Cut a collection into partitions of whole rows."""
    if not is_array(collection):
        return Parts(collection.to_delayed())
    if collection.ndim == 2 and len(collection.chunks[1]) > 1:
        collection = collection.rechunk({1: -1})
    sizes = collection.chunks[0]
    return Parts(
        collection.to_delayed().reshape(-1).tolist(),
        None if np.isnan(sizes).any() else tuple(map(int, sizes)),
    )


def with_row_counts(table: Parts, collection: Any) -> Parts:
    """Count the rows of partitions of unknown sizes: a pass, over one column where there are."""
    import dask

    if table.sizes is not None:
        return table
    parts = table.delayed
    if is_frame(collection):
        narrow = partitions(collection[[collection.columns[0]]]).delayed
        # Dask may cut one column in another way (see `align_partitions`); then all are read to
        # count them.
        parts = narrow if len(narrow) == len(parts) else parts
    return Parts(table.delayed, dask.compute(*(dask.delayed(len)(part) for part in parts)))


def align_partitions(collection: Any, others: dict[str, Any]) -> tuple[Parts, dict[str, list[Any]]]:
    """Cut a dataframe, and the series and frames that go with it, into the same partitions.

    Left to itself Dask may cut each in its own way: a column of a folder of Parquet is less to
    read than all the others, and so several files become one partition of it.
    """
    import dask
    import dask.dataframe as dd

    for what, values in others.items():
        if values.npartitions != collection.npartitions:
            raise InputError(
                f"X has {collection.npartitions} partitions, {what} has {values.npartitions}: "
                f"repartition both alike, or make {what} a column of the dataframe", parameter=what,
            )  # fmt: skip
    if not others:
        return partitions(collection), {}
    packed = dd.map_partitions(
        _pack,
        collection,
        *others.values(),
        align_dataframes=False,
        meta=collection._meta,
        # What comes is a tuple, and goes no further than to the tasks that read it.
        enforce_metadata=False,
    ).to_delayed()
    unpack = dask.delayed(operator.getitem, traverse=False)
    table, *sides = ([unpack(pack, number) for pack in packed] for number in range(1 + len(others)))
    return Parts(table), dict(zip(others, sides, strict=True))


def _pack(*parts: Any) -> tuple[Any, ...]:
    return parts


def aligned(values: Any, table: Parts, what: str) -> list[Any]:
    """Return y or weights in partitions that go with those of the table.

    Sizes that are known are compared here, others by the tasks.
    """
    if not is_dask(values):
        return _slices(values, table, what)
    if is_array(values):
        own = partitions(values).sizes
        if own is not None and table.sizes is not None:
            _check_length(sum(own), table, what)
            if own != table.sizes:
                values = values.rechunk({0: table.sizes})
    parts = partitions(values).delayed
    if len(parts) != len(table.delayed):
        raise InputError(
            f"X has {len(table.delayed)} partitions, {what} has {len(parts)}, and their sizes are "
            f"not known: repartition both alike, make {what} a column of the dataframe, or call "
            f"compute_chunk_sizes() on arrays", parameter=what,
        )  # fmt: skip
    return parts


def _slices(values: Any, table: Parts, what: str) -> list[Any]:
    import dask

    assert table.sizes is not None
    values = _in_memory(values, what)
    _check_length(len(values), table, what)
    ends = np.cumsum((0, *table.sizes))
    rows = values.iloc if hasattr(values, "iloc") else values
    return [
        dask.delayed(rows[start:stop], traverse=False) for start, stop in itertools.pairwise(ends)
    ]


def _check_length(length: int, table: Parts, what: str) -> None:
    assert table.sizes is not None
    if length != sum(table.sizes):
        raise InputError(f"X has {sum(table.sizes)} rows, {what} has {length}", parameter=what)


def _in_memory(values: Any, what: str) -> Any:
    """Keep pandas objects, whose dtypes say more, and make an array of anything else."""
    if hasattr(values, "iloc"):
        return values
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise InputError(f"{what} has rows of different lengths", parameter=what) from error
    if array.ndim == 0:
        raise InputError(
            f"{what} must have one value a row, not be {show_value(values)}", parameter=what
        )
    return array


def _header(values: Any, what: str) -> Any:
    """What tells dtype, width and name: of a dask frame or series its empty likeness."""
    if is_array(values):
        refuse_blocks(values, what)
        return values
    if is_dask(values):
        if not is_framed(values):
            raise InputError(
                f"{what} is a dask {type(values).__name__}", parameter=what,
                hint="give an array or a series",
            )  # fmt: skip
        return values._meta
    return _in_memory(values, what)


def refuse_blocks(collection: Any, what: str) -> None:
    """Raise for a dask array whose blocks are not NumPy's: sparse, masked, or on a GPU."""
    meta = collection._meta
    if not is_plain_array(meta):
        kind = f"{type(meta).__module__.partition('.')[0]}.{type(meta).__name__}"
        raise InputError(
            f"the blocks of {what} are of type {kind}", parameter=what,
            hint=f"make them plain NumPy arrays first, for example with {what}.map_blocks",
        )  # fmt: skip


def inspect_target(y: Any) -> TargetInfo:
    """Say what a target of any kind holds, or why it cannot be one."""
    if y is None:
        raise InputError(
            "y is None: exactk requires y to be passed, but the target y is None", parameter="y",
            hint="give y, or the column of a dataframe as target",
        )  # fmt: skip
    header = _header(y, "y")
    n_outputs = 1 if header.ndim == 1 else header.shape[1]
    if header.ndim > 2 or np.isnan(n_outputs) or n_outputs == 0:
        raise InputError(
            f"y has shape {header.shape}", parameter="y",
            hint="give one target a row, or several columns",
        )  # fmt: skip
    named = header.ndim == 2 and hasattr(header, "columns")
    if named:
        dtypes = {f"target {str(name)!r}": dtype for name, dtype in header.dtypes.items()}
    else:
        dtypes = {"y": header.dtype}
    kinds = [kind_of(dtype, what) for what, dtype in dtypes.items()]
    if n_outputs > 1 and "text" in kinds:
        what = list(dtypes)[kinds.index("text")]
        raise InputError(
            f"{what} holds text", parameter="y", hint="several targets must all be numbers"
        )
    name = header.columns[0] if named else getattr(header, "name", None)
    if is_array(y) or n_outputs > 1 or name is None:
        return TargetInfo("float" if n_outputs > 1 else kinds[0], int(n_outputs), None)
    return TargetInfo(kinds[0], 1, str(name))


def check_weights(weights: Any) -> None:
    """Raise for weights that are not one number a row."""
    header = _header(weights, "weights")
    if header.ndim != 1:
        raise InputError(
            "weights must be one number a row", parameter="weights",
            hint=f"they have {header.ndim} dimensions",
        )  # fmt: skip
    if kind_of(header.dtype, "weights") == "text":
        raise InputError(
            f"weights has dtype {header.dtype}", parameter="weights", hint="they must be numbers"
        )


# How many parts one task merges; two where each is so large that a worker should hold few.
FAN_IN = 8
LARGE_PART = 2**25


@dataclass(frozen=True, eq=False)
class _Job:
    """What every task needs: one object in the graph, however many partitions there are."""

    reducer: Reducer[Any, Any]
    reader: PartitionReader


class DaskStream(Stream):
    """A Dask array or dataframe that is passed over; made by `open_dask`.

    Examples
    --------
    >>> import dask.array as da
    >>> stream = open_dask(da.ones((6, 2), chunks=(2, 2)), [0, 1, 0, 1, 0, 1])
    >>> stream.feature_names, stream.n_rows, stream.y_kind
    (('x0', 'x1'), 6, 'int')
    """

    hint = " of Problem.from_dask"

    def __init__(
        self,
        reader: PartitionReader,
        target: str | None,
        sides: list[tuple[Any, Any, Any]],
        n_rows: int | None,
    ) -> None:
        self.feature_names, self.target = reader.names, target
        self.y_kind, self.n_outputs = reader.y_kind, reader.n_outputs
        self.n_rows = n_rows
        self._reader, self._sides = reader, sides

    def reduce(self, reducer: Reducer[Any, Part], on_rows: OnRows | None = None) -> Part:  # noqa: D102
        import dask

        (whole,) = dask.compute(self._tree(reducer), traverse=False)
        if on_rows is not None and self.n_rows is not None:
            on_rows(self.n_rows, self.n_rows)
        return unwrap(whole)

    def _tree(self, reducer: Reducer[Any, Any]) -> Any:
        """Return the delayed result of a pass."""
        import dask
        from dask.delayed import Delayed

        # Keys that no other pass has: a cluster keeps results by key, and folds differ.
        mark = uuid.uuid4().hex
        job = dask.delayed(_Job(reducer, self._reader), name=f"exactk-job-{mark}", traverse=False)
        read = dask.delayed(fold_partition, traverse=False)
        merge = dask.delayed(merge_group, traverse=False)
        level = [
            read(job, number, *sides, dask_key_name=f"exactk-fold-{mark}-{number}")
            for number, sides in enumerate(self._sides)
        ]
        fan_in = FAN_IN if 8 * self.n_features**2 <= LARGE_PART else 2
        height = 0
        while len(level) > 1:
            height += 1
            groups = [level[start : start + fan_in] for start in range(0, len(level), fan_in)]
            level = [
                merge(job, *group, dask_key_name=f"exactk-merge-{mark}-{height}-{number}")
                for number, group in enumerate(groups)
            ]
        # Dask culls layer by layer, and each delayed call is a layer: of 5,000 partitions that took
        # most of a minute, and of one flat graph takes a moment.
        return Delayed(level[0].key, dict(level[0].dask))


def fold_partition(job: _Job, number: int, X: Any, y: Any, weights: Any) -> Any:
    """Fold one partition: a task."""
    with one_blas_thread():
        part = reduce_partition(job.reducer, job.reader.blocks(number, X, y, weights))
    if isinstance(part, PartitionError) and part.location[0] != number:
        # Refused before its first block, which would have said where it is.
        return replace(part, location=(number, 0))
    return part


def merge_group(job: _Job, *parts: Any) -> Any:
    """Merge what some partitions have come to: a task."""
    held = [part for part in parts if part is not None]
    if len(held) > 1:
        # Folds may add to the first in place; but a task that is run again needs it as it was.
        held[0] = deepcopy(held[0])
    return merge_partitions(job.reducer, held)


def open_dask(
    X: Any,
    y: Any = None,
    *,
    target: str | Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    weights: Any = None,
) -> DaskStream:
    """Open a Dask array or dataframe; nothing is computed yet but what is named below.

    Parameters
    ----------
    X : dask array of shape (n, d), or dask dataframe
        In any chunks. A collection that is not persisted is computed anew by every pass.
    y : dask array, series or frame, array-like, or None
        The target, unless it is a column of X. With the same partitions as X, or of known sizes.
        For one in memory the sizes of the partitions of X are counted if they are unknown.
    target : str, sequence of str, or None
        Column of the dataframe to predict; several for several numbers.
    columns : sequence of str or None
        Features of a dataframe, or names for the columns of an array.
    drop : sequence of str
        Columns to leave out.
    weights : str, dask array or series, array-like, or None
        Row weights: a column of the dataframe, or given as y.

    Returns
    -------
    DaskStream

    Raises
    ------
    InputError
        Not a Dask collection, text among the features, names that are not there, or parts that
        do not go together.

    Examples
    --------
    >>> import dask.dataframe as dd
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"height": [1.5, 2.5, 3.5], "tree": ["ash", "oak", "oak"]})
    >>> stream = open_dask(dd.from_pandas(frame, npartitions=2), target="tree")
    >>> stream.feature_names, stream.target, stream.y_kind
    (('height',), 'tree', 'text')
    """
    if isinstance(y, str):
        raise InputError(
            f"y is the text {y!r}", parameter="y", hint=f"a column of X is named with target={y!r}"
        )
    if is_array(X):
        reader, collection, name = _open_array(X, y, target, columns, drop, weights)
    elif is_frame(X):
        reader, collection, name = _open_frame(X, y, target, columns, drop, weights)
    else:
        raise InputError(
            f"X is a {type(X).__name__}, and not a dask array or dataframe", parameter="X",
            hint="Problem.from_arrays takes tables in memory",
        )  # fmt: skip
    beside = {"y": y, "weights": weights if reader.weights is None else None}
    together: dict[str, list[Any]] = {}
    if is_array(X):
        table = partitions(collection)
    else:
        framed = {what: values for what, values in beside.items() if is_framed(values)}
        table, together = align_partitions(collection, framed)
    if any(values is not None and not is_dask(values) for values in beside.values()):
        table = with_row_counts(table, collection)
    sides = [
        together.get(what)
        or ([None] * len(table.delayed) if values is None else aligned(values, table, what))
        for what, values in beside.items()
    ]
    return DaskStream(
        reader,
        name,
        list(zip(table.delayed, *sides, strict=True)),
        None if table.sizes is None else sum(table.sizes),
    )


def _open_array(
    X: Any, y: Any, target: Any, columns: Any, drop: Sequence[str], weights: Any
) -> tuple[PartitionReader, Any, str | None]:
    """Check an array and what goes with it; returns how it is read, and what of it."""
    if X.ndim != 2 or np.isnan(X.shape[1]):
        raise InputError(
            f"X has shape {X.shape}", parameter="X", hint="it must have n rows and d known columns"
        )
    if target is not None or isinstance(weights, str):
        what = "target" if target is not None else "weights"
        raise InputError(
            f"{what} names a column of a dataframe, and X is a dask array: give "
            f"{'y' if what == 'target' else 'weights'} as an array", parameter=what,
        )  # fmt: skip
    refuse_blocks(X, "X")
    if X.dtype.kind not in "fiub":
        raise InputError(
            f"X has dtype {X.dtype}, which is not a number", parameter="X",
            hint="convert it with X.astype('float64')",
        )  # fmt: skip
    names = check_names(columns) or tuple(f"x{j}" for j in range(X.shape[1]))
    if len(names) != X.shape[1]:
        raise InputError(
            f"columns has {len(names)} names, X has {X.shape[1]} columns", parameter="columns"
        )
    check_roles(names, (), None, drop)
    kept = [j for j, name in enumerate(names) if name not in set(drop)]
    if not kept:
        raise InputError("X has no columns, or all of them are dropped", parameter="X")
    if len(kept) < len(names):
        X, names = X[:, kept], tuple(names[j] for j in kept)
    if weights is not None:
        check_weights(weights)
    given = inspect_target(y)
    return PartitionReader(names, given.kind, given.n_outputs), X, given.name


def _open_frame(
    X: Any, y: Any, target: Any, columns: Any, drop: Sequence[str], weights: Any
) -> tuple[PartitionReader, Any, str | None]:
    """Check a dataframe and what goes with it; returns how it is read, and what of it."""
    meta = X._meta
    library = type(meta).__module__.partition(".")[0]
    if library != "pandas":
        raise InputError(
            f"the partitions of X are {library} frames", parameter="X",
            hint="convert them to pandas first",
        )  # fmt: skip
    if y is not None and target is not None:
        raise InputError(
            f"both y and target={target!r} were given", parameter="target", hint="give one of them"
        )
    targets = () if target is None else (target,) if isinstance(target, str) else tuple(target)
    weight = weights if isinstance(weights, str) else None
    features = _features_of(meta, targets, weight, columns, drop)
    label_of = {str(label): label for label in meta.columns}
    # Names that occur twice and columns that are not numbers: as in a frame in memory.
    frame_to_array(meta[[label_of[name] for name in features]])
    if weight is not None:
        check_weights(meta[label_of[weight]])
    elif weights is not None:
        check_weights(weights)
    given = inspect_target(meta[[label_of[name] for name in targets]] if targets else y)
    reader = PartitionReader(
        features,
        given.kind,
        given.n_outputs,
        tuple(label_of[name] for name in features),
        tuple(label_of[name] for name in targets) or None,
        None if weight is None else label_of[weight],
    )
    read = dict.fromkeys((*features, *targets, *filter(None, [weight])))
    return reader, X[[label_of[name] for name in read]], given.name


def _features_of(
    meta: Any, targets: Sequence[str], weight: str | None, columns: Any, drop: Sequence[str]
) -> tuple[str, ...]:
    """Names of the columns of a dataframe that can be chosen."""
    known = [str(label) for label in meta.columns]
    check_roles(known, targets, weight, drop)
    out = {*targets, weight, *drop}
    if columns is not None:
        return named_features(columns, known, out)
    features = tuple(name for name in known if name not in out)
    if not features:
        raise InputError(
            "X has no feature columns besides the target, weights and drops", parameter="X"
        )
    return features
