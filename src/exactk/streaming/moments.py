"""The moments of a stream, in one pass: all that squared loss needs of a table of any size."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from exactk.data.accumulate import MomentsAccumulator
from exactk.data.moments import Moments
from exactk.data.targets import (
    LEAST_WEIGHT,
    MOST_CLASSES,
    MOST_WEIGHT,
    Task,
    assume_amounts,
    guess_whole_numbers,
)
from exactk.errors import InputError, Text
from exactk.streaming.base import Block, EncodedLabels, OnRows, Reducer, Stream
from exactk.streaming.target_encoding import (
    FractionsError,
    Labels,
    ManyNumbersError,
    TargetEncoding,
    check_found,
    check_number,
    choose_encoding,
)
from exactk.types import Floats

__all__ = [
    "MomentsReducer",
    "check_block",
    "merge_found",
    "outputs",
    "read_moments",
    "stream_moments",
]


@dataclass
class _State:
    accumulator: MomentsAccumulator
    labels: Labels | None


class MomentsReducer(Reducer[_State, Moments]):
    """Adds blocks up into `Moments`.

    Parameters
    ----------
    names : tuple of str
        Columns of the table.
    target_encoding : TargetEncoding
        How its target is read.
    target : str or None
        Its name.
    """

    def __init__(
        self, names: tuple[str, ...], target_encoding: TargetEncoding, target: str | None = None
    ) -> None:
        self.names, self.target_encoding, self.target = names, target_encoding, target

    def begin(self) -> _State:  # noqa: D102
        labels = self.target_encoding.start()
        n_outputs = self.target_encoding.n_outputs if labels is None else len(labels)
        return _State(MomentsAccumulator(len(self.names), n_outputs), labels)

    def add(self, state: _State, block: Block) -> None:  # noqa: D102
        check_block(block)
        weights = block.weights
        if weights is not None and not weights.any():
            # Rows that do not count must be whole all the same, whatever block they are in.
            refuse_idle(block, self.names)
            return
        Y = outputs(block, self.target_encoding, state.labels)
        if state.labels is not None:
            state.accumulator.add_outputs(len(state.labels))
        with np.errstate(over="ignore", invalid="ignore"):
            state.accumulator.update(block.X, Y, weights)
        if not state.accumulator.is_finite:
            refuse_values(block, self.names)

    def close(self, state: _State) -> Moments | None:  # noqa: D102
        if state.accumulator.is_empty:
            return None
        moments = replace(state.accumulator.finish(), feature_names=self.names, target=self.target)
        if state.labels is None:
            return moments
        found = state.labels.classes()
        return replace(moments, classes=found).with_classes(np.sort(found))

    def merge(self, one: Moments, other: Moments) -> Moments:  # noqa: D102
        merged = one.merge(other, overwrite=True)
        if self.target_encoding.classes is None and merged.classes is not None:
            check_number(len(merged.classes), self.target_encoding, merged.classes)
        return merged


def merge_found(one: Moments | None, other: Moments | None) -> Moments | None:
    """Merge moments where there are any; the first are used up, the others stay as they are."""
    if one is None:
        # Not the others themselves: whoever merges on would add to them in place.
        return None if other is None else replace(other, xx=other.xx.copy(order="K"))
    return one if other is None else one.merge(other, overwrite=True)


def outputs(block: Block, target_encoding: TargetEncoding, labels: Labels | None) -> Floats:
    """Return the target of a block as the columns of Y."""
    if labels is not None:
        return labels.one_hot(block)
    if isinstance(block.y, EncodedLabels):
        raise InputError(
            f"y holds labels in {block.location.source}, and numbers were asked for", parameter="y"
        )
    Y = np.array(block.y, dtype=np.float64)
    _refuse_missing(Y, block)
    return Y.reshape(len(Y), target_encoding.n_outputs)


def _refuse_missing(y: npt.NDArray[Any], block: Block) -> None:
    finite = np.isfinite(y)
    bad = np.flatnonzero(~(finite if y.ndim == 1 else finite.all(axis=1)))
    if bad.size:
        first = int(bad[0])
        raise InputError(
            f"y is missing or infinite in {block.location.rows(first, first + 1)}", parameter="y",
            hint="drop those rows or fill them in first",
        )  # fmt: skip


def refuse_idle(block: Block, names: tuple[str, ...]) -> None:
    """Raise for values that are none in rows of weight zero."""
    if not np.isfinite(block.X).all():
        refuse_values(block, names)
    if not isinstance(block.y, EncodedLabels) and block.y.dtype.kind == "f":
        _refuse_missing(block.y, block)


def check_block(block: Block) -> None:
    """Raise for weights that are none."""
    if block.weights is None:
        return
    bad = np.flatnonzero(~np.isfinite(block.weights) | (block.weights < 0))
    if bad.size:
        first = int(bad[0])
        raise InputError(
            f"the weight in {block.location.rows(first, first + 1)} is {block.weights[first]:g}",
            parameter="weights", hint="weights must be zero or more",
        )  # fmt: skip
    large = np.flatnonzero(block.weights > MOST_WEIGHT)
    if large.size:
        first = int(large[0])
        raise InputError(
            f"the weight in {block.location.rows(first, first + 1)} is {block.weights[first]:g}, "
            "too large for float64 sums", parameter="weights",
            hint="divide all weights by the largest one",
        )  # fmt: skip


def refuse_values(block: Block, names: tuple[str, ...]) -> None:
    """Raise for the first column with NaN or infinity, or whose sums overflow."""
    bad = ~np.isfinite(block.X)
    columns = np.flatnonzero(bad.any(axis=0))
    if not columns.size:
        raise InputError(
            f"the values in {block.location.rows(0, len(block.X))} are too large for float64 sums "
            "of squares", parameter="X", hint="rescale the columns first",
        )  # fmt: skip
    rows = np.flatnonzero(bad[:, columns[0]])
    more = f" (and {columns.size - 1} more columns there)" if columns.size > 1 else ""
    raise InputError(
        f"column {names[columns[0]]!r} is missing or infinite in {rows.size} of the rows of "
        f"{block.location.rows(0, len(block.X))}, first in "
        f"{block.location.row(int(rows[0]))}{more}", parameter="X",
        hint="fill these in, drop those rows, or leave the column out",
    )  # fmt: skip


def stream_moments(
    stream: Stream,
    *,
    task: Task = "auto",
    classes: Any = None,
    on_rows: OnRows | None = None,
) -> Moments:
    """Return the moments of a stream, with the names of its columns and its classes.

    Parameters
    ----------
    stream : Stream
    task : {"auto", "classification", "regression"}
        "auto" takes text, true and false, and few whole numbers for classes; see
        `exactk.data.targets.guess_whole_numbers`. If numbers that were taken for classes turn out
        to be amounts, the table is read again.
    classes : array-like or None
        The labels, where they are known; else they are found in the pass.
    on_rows : callable or None
        Told how many rows were read.

    Returns
    -------
    Moments
    """
    return read_moments(stream, task=task, classes=classes, on_rows=on_rows)[0]


def read_moments(
    stream: Stream, *, task: Task, classes: Any = None, on_rows: OnRows | None = None
) -> tuple[Moments, Text]:
    """Return the moments as `stream_moments` does, and what was assumed about the target."""
    target_encoding = choose_encoding(stream, task, classes)

    def read(target_encoding: TargetEncoding) -> Moments:
        reducer = MomentsReducer(stream.feature_names, target_encoding, stream.target)
        moments = stream.reduce(reducer, on_rows)
        if moments.weight < LEAST_WEIGHT:
            raise InputError(
                f"the sum of all weights is {moments.weight:g}, too small for float64 sums",
                parameter="weights", hint="divide all weights by the largest one",
            )  # fmt: skip
        return moments

    assumption: Text = ""
    try:
        moments = read(target_encoding)
        if moments.classes is not None and target_encoding.classes is None:
            check_found(moments.classes, moments.n_rows, target_encoding)
            is_number = np.asarray(moments.classes).dtype.kind in "iuf"
            if target_encoding.guessed and is_number:
                found, assumption = guess_whole_numbers(moments.y_mean * moments.n_rows)
                target_encoding = replace(target_encoding, labels=found == "classification")
    except (FractionsError, ManyNumbersError) as error:
        if not target_encoding.guessed:
            raise
        if isinstance(error, ManyNumbersError):
            assumption = assume_amounts(f"more than {MOST_CLASSES}")
        target_encoding = replace(target_encoding, labels=False)
    if not target_encoding.labels and target_encoding.guessed:
        moments = read(TargetEncoding(labels=False))
    if moments.classes is not None and target_encoding.classes is not None:
        moments = moments.with_classes(target_encoding.classes)
    return moments, assumption
