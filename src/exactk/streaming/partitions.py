"""Partitions of a Dask collection, NumPy arrays or pandas frames, become blocks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from exactk.data.targets import first_word
from exactk.errors import InputError, join_items
from exactk.streaming.arrow import rows_per_block
from exactk.streaming.base import Block, EncodedLabels, Location
from exactk.types import Floats

__all__ = ["PartitionReader", "is_plain_array", "kind_of"]


KINDS = {"b": "bool", "i": "int", "u": "int", "f": "float", "O": "text", "U": "text", "T": "text"}
NUMBERS: dict[str, Any] = {"bool": np.bool_, "int": np.int64, "float": np.float64}


def kind_of(dtype: Any, what: str) -> str:
    """Return what a column of a NumPy or pandas dtype holds, or raise where it cannot be used.

    Examples
    --------
    >>> kind_of(np.dtype("uint8"), "y"), kind_of(np.dtype("U3"), "y")
    ('int', 'text')
    """
    categories = getattr(dtype, "categories", None)
    if categories is not None:
        return kind_of(categories.dtype, what)
    kind = KINDS.get(dtype.kind)
    # Arrow columns of decimals, lists and the like are objects to pandas, but no labels.
    other = hasattr(dtype, "pyarrow_dtype") and dtype.kind == "O" and "string" not in str(dtype)
    if kind is None or other:
        raise InputError(
            f"{what} has dtype {dtype}, which is neither numbers nor labels", parameter=what
        )
    return kind


def is_plain_array(values: Any) -> bool:
    """Whether values are a NumPy array of one number a cell: not masked, not sparse, not on a GPU.

    Examples
    --------
    >>> is_plain_array(np.zeros(2)), is_plain_array(np.ma.zeros(2))
    (True, False)
    """
    return isinstance(values, np.ndarray) and not isinstance(values, (np.ma.MaskedArray, np.matrix))


@dataclass(frozen=True, eq=False)
class PartitionReader:
    """How the partitions of a table are read: sent once, used by every task.

    Attributes
    ----------
    names : tuple of str
        Of the features.
    y_kind : {"text", "bool", "int", "float"}
    n_outputs : int
    features : tuple or None
        Labels of the columns of a frame; None where X is an array.
    targets : tuple or None
        Columns of the frame to predict; None where y is given apart.
    weights : object
        Column of the frame with weights; None where there are none or they are given apart.
    """

    names: tuple[str, ...]
    y_kind: str
    n_outputs: int = 1
    features: tuple[Any, ...] | None = None
    targets: tuple[Any, ...] | None = None
    weights: Any = None

    def blocks(self, number: int, X: Any, y: Any = None, weights: Any = None) -> Iterator[Block]:
        """Cut one partition into blocks.

        Raises
        ------
        InputError
            The partition is not what the collection promised.
        """
        source = f"partition {number}"
        self._check(X, source)
        if self.targets is not None:
            y = X[list(self.targets)] if self.n_outputs > 1 else X[self.targets[0]]
        if self.weights is not None:
            weights = X[self.weights]
        for what, other in (("y", y), ("weights", weights)):
            if other is not None and len(other) != len(X):
                raise InputError(
                    f"{source} of X has {len(X)} rows, that of {what} has {len(other)}: partition "
                    f"both alike, or make {what} a column of the frame", parameter=what,
                )  # fmt: skip
        step = rows_per_block(len(self.names))
        for start in range(0, len(X), step):
            rows, location = slice(start, start + step), Location(source, number, start)
            weight = None
            if weights is not None:
                weight = _floats(_cut(weights, rows), "the weights", source).reshape(-1)
            yield Block(
                self._features(_cut(X, rows), source),
                self._target(_cut(y, rows), location),
                weight,
                location,
            )

    def _check(self, X: Any, source: str) -> None:
        if self.features is None:
            if not is_plain_array(X):
                raise InputError(
                    f"{source} of X is a {_type(X)}, not a NumPy array", parameter="X",
                    hint="convert the blocks with X.map_blocks first",
                )  # fmt: skip
            if X.ndim != 2 or X.shape[1] != len(self.names):
                raise InputError(
                    f"{source} of X has shape {X.shape}, not n × {len(self.names)}", parameter="X"
                )
            return
        absent = [name for name in self.features if name not in X.columns]
        if absent:
            raise InputError(f"{source} of X has no column {join_items(absent)}", parameter="X")

    def _features(self, rows: Any, source: str) -> Floats:
        if self.features is None:
            return _floats(rows, "X", source)
        rows = rows[list(self.features)]
        try:
            return _floats(rows, "X", source)
        except InputError:
            for name, label in zip(self.names, self.features, strict=True):
                _floats(rows[label], f"column {name!r}", source)
            raise

    def _target(self, values: Any, location: Location) -> npt.NDArray[Any] | EncodedLabels:
        if self.n_outputs > 1:
            return _floats(values, "y", location.source)
        if values.ndim == 2:
            values = values.iloc[:, 0] if hasattr(values, "iloc") else values[:, 0]
        if self.y_kind == "text":
            return _labels(values, location)
        if isinstance(values.dtype, np.dtype) and values.dtype.kind in "fiub":
            return np.asarray(values)
        if self.y_kind == "int" and hasattr(values, "isna") and not values.isna().any():
            # Straight to whole numbers: labels beyond 2^53 would run together as floats.
            return np.asarray(values.to_numpy(dtype=np.int64))
        numbers = _floats(values, "y", location.source)
        # What is missing is a NaN now, and whoever counts the rows names it.
        whole = np.isfinite(numbers).all()
        return numbers.astype(NUMBERS[self.y_kind]) if whole else numbers


def _cut(values: Any, rows: slice) -> Any:
    return values.iloc[rows] if hasattr(values, "iloc") else values[rows]


def _type(values: Any) -> str:
    return f"{type(values).__module__.partition('.')[0]}.{type(values).__name__}"


def _floats(values: Any, what: str, source: str) -> Floats:
    """Copy numbers, true and false to float64 in Fortran order; what is missing becomes NaN."""
    try:
        if isinstance(values, np.ndarray):
            return np.array(values, dtype=np.float64, order="F")
        copied = values.to_numpy(dtype=np.float64, na_value=np.nan, copy=True)
        return np.asfortranarray(copied)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{what} in {source} has {first_word(np.asarray(values))!r}, which is not a number",
            parameter="X", hint="correct it, or leave the column out",
        ) from error  # fmt: skip


def _labels(values: Any, location: Location) -> EncodedLabels:
    import pandas as pd

    try:
        codes, found = pd.factorize(values)
    except TypeError as error:
        raise InputError(
            f"y in {location.source} has lists or dicts, which are not labels", parameter="y"
        ) from error
    missing = np.flatnonzero(codes < 0)
    if missing.size:
        first = int(missing[0])
        raise InputError(
            f"y is missing in {location.rows(first, first + 1)}", parameter="y",
            hint="drop those rows or fill them in first",
        )  # fmt: skip
    labels = found.tolist()
    kinds = {type(label) for label in labels}
    if len(kinds) > 1 and not kinds <= {int, float}:
        shown = join_items(sorted(kind.__name__ for kind in kinds))
        raise InputError(
            f"y mixes labels that cannot be sorted together in {location.source} ({shown})",
            parameter="y", hint="make them all strings or all numbers",
        )  # fmt: skip
    if bytes in kinds:
        raise InputError(
            f"y holds bytes in {location.source}", parameter="y",
            hint="decode them to strings first",
        )  # fmt: skip
    if any(isinstance(label, float) and label != round(label) for label in labels):
        raise InputError(
            f"y holds fractions as objects in {location.source}", parameter="y",
            hint="make them numbers with astype('float64')",
        )  # fmt: skip
    return EncodedLabels(codes.astype(np.intp), labels)
