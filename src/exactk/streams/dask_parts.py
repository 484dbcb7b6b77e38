"""Dask collections as lists of delayed partitions, and what goes with them row by row."""

from __future__ import annotations

import itertools
import operator
from dataclasses import dataclass
from typing import Any

import numpy as np

from exactk.errors import InputError
from exactk.sources.open import is_dask
from exactk.streams.partitions import is_plain_array, kind_of

__all__ = [
    "GivenTarget",
    "Parts",
    "aligned",
    "check_weights",
    "counted",
    "in_step",
    "is_array",
    "is_frame",
    "is_framed",
    "look_at_target",
    "partitions",
    "refuse_blocks",
]


@dataclass(frozen=True)
class Parts:
    """A collection as delayed partitions, with their numbers of rows where these are known."""

    delayed: list[Any]
    sizes: tuple[int, ...] | None = None


@dataclass(frozen=True, eq=False)
class GivenTarget:
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


def counted(table: Parts, collection: Any) -> Parts:
    """Count the rows of partitions of unknown sizes: a pass, over one column where there are."""
    import dask

    if table.sizes is not None:
        return table
    parts = table.delayed
    if is_frame(collection):
        narrow = partitions(collection[[collection.columns[0]]]).delayed
        # Dask may cut one column in another way (see `in_step`); then all are read to count them.
        parts = narrow if len(narrow) == len(parts) else parts
    return Parts(table.delayed, dask.compute(*(dask.delayed(len)(part) for part in parts)))


def in_step(collection: Any, others: dict[str, Any]) -> tuple[Parts, dict[str, list[Any]]]:
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
                f"repartition both alike, or make {what} a column of the dataframe"
            )
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
            f"compute_chunk_sizes() on arrays"
        )
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
        raise InputError(f"X has {sum(table.sizes)} rows, {what} has {length}")


def _in_memory(values: Any, what: str) -> Any:
    """Keep pandas objects, whose dtypes say more, and make an array of anything else."""
    if hasattr(values, "iloc"):
        return values
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise InputError(f"{what} is not a rectangular array: {error}") from error
    if array.ndim == 0:
        raise InputError(f"{what} must have one value a row, not be {values!r}")
    return array


def _header(values: Any, what: str) -> Any:
    """What tells dtype, width and name: of a dask frame or series its empty likeness."""
    if is_array(values):
        refuse_blocks(values, what)
        return values
    if is_dask(values):
        if not is_framed(values):
            raise InputError(f"{what} is a dask {type(values).__name__}; give an array or a series")
        return values._meta
    return _in_memory(values, what)


def refuse_blocks(collection: Any, what: str) -> None:
    """Raise for a dask array whose blocks are not NumPy's: sparse, masked, or on a GPU."""
    meta = collection._meta
    if not is_plain_array(meta):
        kind = f"{type(meta).__module__.partition('.')[0]}.{type(meta).__name__}"
        raise InputError(
            f"the blocks of {what} are of type {kind}; make them plain NumPy arrays first, for "
            f"example with {what}.map_blocks"
        )


def look_at_target(y: Any) -> GivenTarget:
    """Say what a target of any kind holds, or why it cannot be one."""
    if y is None:
        raise InputError(
            "y is None: exactk requires y to be passed, but the target y is None; give y, or the "
            "column of a dataframe as target"
        )
    header = _header(y, "y")
    n_outputs = 1 if header.ndim == 1 else header.shape[1]
    if header.ndim > 2 or np.isnan(n_outputs) or n_outputs == 0:
        raise InputError(f"y has shape {header.shape}; give one target a row, or several columns")
    named = header.ndim == 2 and hasattr(header, "columns")
    if named:
        dtypes = {f"target {str(name)!r}": dtype for name, dtype in header.dtypes.items()}
    else:
        dtypes = {"y": header.dtype}
    kinds = [kind_of(dtype, what) for what, dtype in dtypes.items()]
    if n_outputs > 1 and "text" in kinds:
        what = list(dtypes)[kinds.index("text")]
        raise InputError(f"{what} holds text; several targets must all be numbers")
    name = header.columns[0] if named else getattr(header, "name", None)
    if is_array(y) or n_outputs > 1 or name is None:
        return GivenTarget("float" if n_outputs > 1 else kinds[0], int(n_outputs), None)
    return GivenTarget(kinds[0], 1, str(name))


def check_weights(weights: Any) -> None:
    """Raise for weights that are not one number a row."""
    header = _header(weights, "weights")
    if header.ndim != 1:
        raise InputError(f"weights must be one number a row; they have {header.ndim} dimensions")
    if kind_of(header.dtype, "weights") == "text":
        raise InputError(f"weights has dtype {header.dtype}; they must be numbers")
