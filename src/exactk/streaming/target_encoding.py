"""Targets of a stream: what they are is settled before the pass, their labels are found in it.

Each part of a table keeps the labels that it has found; merging unites the lists. One-hot columns
of labels that a part does not have are zero, so the result is exact. A float column counts as
classes until a fraction is found, and is then read again as numbers, as in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from exactk.data.targets import MOST_CLASSES as MOST_NUMBERS
from exactk.data.targets import Task, refuse_names, refuse_one_class
from exactk.errors import InputError, Setting, join_items, show_value
from exactk.params import Choice
from exactk.streaming.base import Block, EncodedLabels, Stream
from exactk.types import Floats

__all__ = [
    "FractionsError",
    "Labels",
    "ManyNumbersError",
    "TargetEncoding",
    "check_classes",
    "check_found",
    "check_number",
    "choose_encoding",
]


# Beyond this many labels, unless they were given, the target is hardly a class; and a block of rows
# has a column for each.
MOST_CLASSES = 1_000


class FractionsError(InputError):
    """Numbers taken for labels, as they were whole so far, turn out to be fractions."""


class ManyNumbersError(InputError):
    """Whole numbers taken for labels turn out to be too many for classes."""


@dataclass(frozen=True, eq=False)
class TargetEncoding:
    """How the target of a stream is read.

    Attributes
    ----------
    labels : bool
        Whether it holds classes; otherwise numbers.
    n_outputs : int
        Columns of numbers.
    classes : ndarray or None
        The labels, sorted, if they are known before the pass.
    guessed : bool
        Whether "auto" took the values for classes: they may turn out to be amounts or names.
    """

    labels: bool
    n_outputs: int = 1
    classes: npt.NDArray[Any] | None = None
    guessed: bool = False

    def start(self) -> Labels | None:
        """Return an empty list of labels for one part of the table; None for numbers."""
        return Labels(self) if self.labels else None


def check_classes(classes: Any) -> npt.NDArray[Any] | None:
    """Return a list of labels sorted, or say what is wrong with it.

    Examples
    --------
    >>> check_classes(["b", "a"]).tolist()
    ['a', 'b']
    """
    if classes is None:
        return None
    values = np.asarray(classes)
    if values.ndim != 1 or len(values) < 2:
        raise InputError(
            parameter="classes", value=classes, expected="a list of two labels or more"
        )
    distinct = np.unique(values)
    if len(distinct) != len(values):
        raise InputError(
            f"classes names a label twice: {join_items(values.tolist())}", parameter="classes"
        )
    return distinct


def choose_encoding(stream: Stream, task: Task, classes: Any = None) -> TargetEncoding:
    """Settle how the target of a stream is read: as `exactk.data.targets` has it for arrays."""
    Choice(("auto", "classification", "regression"))("task", task)
    known = check_classes(classes)
    if known is not None and task == "regression":
        raise InputError(
            "classes was given with task='regression', which has none", parameter="classes"
        )
    if stream.n_outputs > 1:
        if known is not None or task == "classification":
            raise InputError(
                f"the target has {stream.n_outputs} columns", parameter="target",
                hint="classes come in one column",
            )  # fmt: skip
        return TargetEncoding(labels=False, n_outputs=stream.n_outputs)
    if task == "regression":
        if stream.y_kind == "text":
            raise InputError(
                f"target {stream.target or 'y'!r} holds text, not the numbers of a regression",
                parameter="target",
            )
        return TargetEncoding(labels=False)
    guessed = task == "auto" and known is None
    return TargetEncoding(labels=True, classes=known, guessed=guessed)


class Labels:
    """The labels of one part of a table, in the order in which they were met."""

    def __init__(self, target_encoding: TargetEncoding) -> None:
        self._coding = target_encoding
        known = [] if target_encoding.classes is None else target_encoding.classes.tolist()
        self._codes: dict[Any, int] = {label: code for code, label in enumerate(known)}

    def __len__(self) -> int:
        return len(self._codes)

    def one_hot(self, block: Block) -> Floats:
        """Return the one-hot rows of a block, with columns for the labels that are new in it."""
        column = self._column(block)
        self._learn(column, block)
        of = np.array([self._codes[label] for label in column.labels], dtype=np.intp)
        out = np.zeros((len(column.codes), len(self)))
        out[np.arange(len(out)), of[column.codes]] = 1.0
        return out

    def _column(self, block: Block) -> EncodedLabels:
        if isinstance(block.y, EncodedLabels):
            return _counted(block.y, block.weights)
        y = block.y if block.weights is None else block.y[block.weights > 0]
        if y.dtype.kind == "f":
            bad = np.flatnonzero(~np.isfinite(block.y))
            if bad.size:
                raise InputError(
                    f"y is missing or infinite in {block.location.rows(bad[0], bad[0] + 1)}",
                    parameter="y",
                )
            parts = np.flatnonzero(y != np.round(y))
            if parts.size:
                where = block.location.rows(0, len(block.y))
                raise FractionsError(
                    f"y holds fractions, such as {y[parts[0]]:g} in {where}, which are not classes",
                    parameter="y", hint="use task='regression', or code the classes first",
                )  # fmt: skip
        labels, codes = np.unique(block.y, return_inverse=True)
        return _counted(EncodedLabels(codes.astype(np.intp), labels.tolist()), block.weights)

    def _learn(self, column: EncodedLabels, block: Block) -> None:
        new = [label for label in column.labels if label not in self._codes]
        if not new:
            return
        if self._coding.classes is not None:
            codes = [column.labels.index(label) for label in new]
            row = int(np.flatnonzero(np.isin(column.codes, codes))[0])
            raise InputError(
                f"y holds the label {show_value(new[0])} ({block.location.rows(row, row + 1)}), "
                f"which is not among the classes given: {join_items(self._codes)}",
                parameter="classes",
            )
        check_number(len(self._codes) + len(new), self._coding, new)
        for label in new:
            self._codes[label] = len(self._codes)

    def classes(self) -> npt.NDArray[Any]:
        """Return the labels in the order of the columns."""
        labels = list(self._codes)
        text = any(isinstance(label, str) for label in labels)
        return np.array(labels, dtype=object if text else None)


def _counted(column: EncodedLabels, weights: Floats | None) -> EncodedLabels:
    """Leave out labels that only rows of weight zero have: they create no class."""
    if weights is None or (weights > 0).all():
        return column
    alive = np.unique(column.codes[weights > 0])
    if len(alive) == len(column.labels):
        return column
    to = np.zeros(len(column.labels), dtype=np.intp)
    to[alive] = np.arange(len(alive))
    return EncodedLabels(to[column.codes], [column.labels[code] for code in alive])


def check_number(
    n_classes: int, target_encoding: TargetEncoding, labels: Sequence[Any] | npt.NDArray[Any]
) -> None:
    """Raise for more labels than a target is likely to have; `labels` are some of them."""
    if target_encoding.guessed and n_classes > MOST_NUMBERS and not isinstance(labels[0], str):
        raise ManyNumbersError(
            f"y has more than {MOST_NUMBERS} different whole numbers", parameter="y",
            hint=("set ", Setting("task", "regression")),
        )  # fmt: skip
    if n_classes > MOST_CLASSES:
        raise InputError(
            f"y has more than {MOST_CLASSES:,} labels", parameter="y",
            hint=("for amounts, set ", Setting("task", "regression"), "; for classes, list them "
                  "in ", Setting("classes")),
        )  # fmt: skip


def check_found(classes: npt.NDArray[Any], n_rows: int, target_encoding: TargetEncoding) -> None:
    """Raise where the labels found in a pass are no classes."""
    refuse_one_class(classes)
    if target_encoding.guessed and isinstance(classes[0], str):
        refuse_names(classes, n_rows)
