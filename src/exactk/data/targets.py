"""One coding of targets: classes to one-hot columns, numbers to columns, whatever they came as."""

from __future__ import annotations

import datetime as dt
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse
from sklearn.utils.multiclass import type_of_target

from exactk.errors import InputError, Row, Setting, Text, join_items, show_value
from exactk.params import Choice
from exactk.types import Floats

__all__ = [
    "LEAST_WEIGHT",
    "MANY_CLASSES",
    "MOST_CLASSES",
    "MOST_EXACT",
    "MOST_WEIGHT",
    "OFFSET",
    "TOO_ALIKE",
    "WEIGHT",
    "Target",
    "Task",
    "apply_class_weights",
    "assume_amounts",
    "encode_target",
    "encode_weights",
    "first_word",
    "guess_whole_numbers",
    "is_missing",
    "refuse_masked",
    "refuse_names",
    "refuse_one_class",
]

Task = Literal["auto", "classification", "regression"]

# Up to this many different whole numbers are classes, more than MOST_CLASSES are amounts. Between
# the two they are amounts if more than RARE_SHARE of them have fewer than ROWS_PER_CLASS rows.
MANY_CLASSES = 20
MOST_CLASSES = 200
ROWS_PER_CLASS = 5
RARE_SHARE = 0.1
# Sums of weights are multiplied with each other, and float64 ends at 1.8e308.
MOST_WEIGHT = 1e140
LEAST_WEIGHT = 1e-140
WEIGHT = Setting("sample_weight")
# From here on float64 does not have every whole number.
MOST_EXACT = 2.0**53
TOO_ALIKE = "y is the same in every row, or differs too little for float64"
OFFSET = "if it differs, subtract an offset, such as its smallest value"


@dataclass(frozen=True, eq=False)
class Target:
    """The target in the form that moments need.

    Attributes
    ----------
    task : {"classification", "regression"}
    classes : ndarray or None
        Sorted labels, one per output; None unless the rows carry one label each.
    codes : ndarray of intp or None
        Index into `classes` per row; -1 for a row of weight zero whose label occurs nowhere else.
    values : ndarray or None
        The n × c numbers when there are no codes.
    scores : ndarray or None
        Factor of each column of Y; None is 1.
    assumption : Text
        What was assumed about the target, and which parameter changes it; empty if nothing was.
    """

    task: Literal["classification", "regression"]
    classes: npt.NDArray[Any] | None
    codes: npt.NDArray[np.intp] | None
    values: Floats | None
    scores: Floats | None = None
    assumption: Text = ""

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        rows = self.codes if self.codes is not None else self.values
        assert rows is not None
        return len(rows)

    @property
    def n_outputs(self) -> int:
        """Number of columns of Y."""
        if self.classes is not None:
            return len(self.classes)
        assert self.values is not None
        return int(self.values.shape[1])

    def block(self, start: int, stop: int) -> Floats:
        """Rows ``start:stop`` of Y as float64; one-hot rows are made here, never for all rows."""
        if self.codes is None:
            assert self.values is not None
            values = self.values[start:stop]
            return values if self.scores is None else values * self.scores
        codes = self.codes[start:stop]
        block = np.zeros((len(codes), self.n_outputs))
        known = codes >= 0
        scores = 1.0 if self.scores is None else self.scores[codes[known]]
        block[np.flatnonzero(known), codes[known]] = scores
        return block

    def subset(self, rows: Any) -> Target:
        """Return the target of some rows, with the same classes."""
        codes = None if self.codes is None else self.codes[rows]
        values = None if self.values is None else self.values[rows]
        return Target(self.task, self.classes, codes, values, self.scores)

    def take(self, rows: Any) -> Floats:
        """Some rows of Y, by any NumPy index."""
        part = self.subset(rows)
        return part.block(0, part.n_rows)


def encode_weights(sample_weight: Any, n_rows: int) -> Floats | None:
    """Check sample weights: one finite, non-negative number a row, not all zero."""
    if sample_weight is None:
        return None
    refuse_masked(sample_weight, "sample_weight")
    try:
        raw = np.asarray(sample_weight)
        if raw.dtype.kind == "c":
            raise InputError(
                "Complex data not supported: sample_weight has complex values",
                parameter="sample_weight",
            )
        weights = raw.astype(np.float64)
    except InputError:
        raise
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(
            "sample_weight must be numbers, one for each row", parameter="sample_weight"
        ) from error
    if weights.ndim == 0:
        weights = np.full(n_rows, float(weights))
    if weights.ndim != 1:
        raise InputError(
            "Sample weights must be 1D array or scalar", parameter="sample_weight",
            hint=f"sample_weight has shape {weights.shape}",
        )  # fmt: skip
    if weights.shape[0] != n_rows:
        raise InputError(
            f"sample_weight.shape == {weights.shape}, expected ({n_rows},): one weight for each "
            f"row of X", parameter="sample_weight",
        )  # fmt: skip
    bad = np.flatnonzero(~np.isfinite(weights))
    if bad.size:
        raise InputError(
            (WEIGHT, f" is NaN or infinite in {bad.size} row(s), first in ", Row(bad[0])),
            parameter="sample_weight",
        )
    negative = np.flatnonzero(weights < 0)
    if negative.size:
        raise InputError(
            (
                WEIGHT, f" is negative in {negative.size} row(s), first in ", Row(negative[0]),
                f" ({weights[negative[0]]:g})",
            ),
            parameter="sample_weight", hint="weights must be zero or more",
        )  # fmt: skip
    if not weights.any():
        raise InputError(
            (WEIGHT, " is zero for every row"), parameter="sample_weight",
            hint="give some rows a weight above zero",
        )  # fmt: skip
    if weights.max() > MOST_WEIGHT:
        row = int(np.argmax(weights))
        raise InputError(
            (WEIGHT, f" is {weights[row]:g} in ", Row(row), ", too large for float64 sums"),
            parameter="sample_weight",
            hint="divide all weights by the largest one, which changes nothing but their unit",
        )
    if weights.max() < LEAST_WEIGHT:
        raise InputError(
            ("the largest value of ", WEIGHT, f" is {weights.max():g}, too small for sums"),
            parameter="sample_weight",
            hint="divide all weights by the largest one, which changes nothing but their unit",
        )
    return weights


def apply_class_weights(class_weight: Any, target: Target, weights: Floats | None) -> Floats | None:
    """Return the weights of the rows times those of their classes.

    Parameters
    ----------
    class_weight : None, "balanced" or mapping of label to float
        "balanced" makes all classes weigh the same, together as much as the rows do. Labels that a
        mapping does not name weigh 1.
    target : Target
    weights : ndarray or None

    Examples
    --------
    >>> apply_class_weights("balanced", encode_target(["a", "b", "b", "b"]), None).round(4).tolist()
    [2.0, 0.6667, 0.6667, 0.6667]
    """
    if class_weight is None:
        return weights
    if target.codes is None or target.classes is None:
        raise InputError(
            "class_weight is for classes, and y has numbers or several labels for each row",
            parameter="class_weight", value=class_weight,
            hint=("set ", Setting("task", "classification"), " if they are classes, or give ",
                  Setting("sample_weight")),
        )  # fmt: skip
    codes, rows = target.codes, np.ones(target.n_rows) if weights is None else weights
    if isinstance(class_weight, str) and class_weight == "balanced":
        counts = np.bincount(
            codes[codes >= 0], weights=rows[codes >= 0], minlength=target.n_outputs
        )
        # A class may have no rows that count, as in a sample.
        there = counts > 0
        each = np.divide(rows.sum(), there.sum() * counts, out=np.ones_like(counts), where=there)
    elif isinstance(class_weight, Mapping):
        each = _named_weights(class_weight, target.classes)
    else:
        raise InputError(
            parameter="class_weight", value=class_weight,
            expected="None, 'balanced' or a dict of label to weight",
        )  # fmt: skip
    # Rows whose label is not known have weight zero.
    return encode_weights(rows * each[np.maximum(codes, 0)], target.n_rows)


def _named_weights(class_weight: Mapping[Any, Any], classes: npt.NDArray[Any]) -> Floats:
    labels, each = classes.tolist(), np.ones(len(classes))
    codes = {label: code for code, label in enumerate(labels)}
    # The keys of a TOML file are text, whatever the labels are.
    texts = {str(label): code for label, code in codes.items() if not isinstance(label, str)}
    texts |= {text.removesuffix(".0"): code for text, code in texts.items()}
    found = {label: codes.get(label, texts.get(label)) for label in class_weight}
    complete = set(found.values()).issuperset(codes.values())
    for label, weight in class_weight.items():
        code = found[label]
        if code is None and complete:
            # A fold may lack a class; where all that there are have a weight, that is no slip.
            continue
        if code is None:
            raise InputError(
                f"class_weight names {show_value(label)}, which is no class of y: "
                f"{', '.join(map(repr, labels[:6]))}", parameter="class_weight",
            )  # fmt: skip
        number = isinstance(weight, (int, float, np.number)) and not isinstance(weight, bool)
        if not number or not 0 < weight <= MOST_WEIGHT:
            raise InputError(
                f"class_weight must be numbers above 0, at most {MOST_WEIGHT:g}, and is "
                f"{show_value(weight)} for {label!r}",
                parameter="class_weight", hint="to leave a class out, leave out its rows",
            )  # fmt: skip
        each[code] = weight
    return each


def encode_target(y: Any, task: Task = "auto", weights: Floats | None = None) -> Target:
    """Code a target of any kind.

    Parameters
    ----------
    y : array-like of shape (n,) or (n, c)
        Labels (strings, integers, booleans, categoricals), numbers, several outputs, or a
        multilabel indicator.
    task : {"auto", "classification", "regression"}
        "auto" takes text, booleans and few whole numbers for classes; see `guess_whole_numbers`.
    weights : ndarray or None
        Rows of weight zero do not create classes.

    Returns
    -------
    Target

    Examples
    --------
    >>> encode_target(["b", "a", "b"]).block(0, 3)
    array([[0., 1.],
           [1., 0.],
           [0., 1.]])
    >>> encode_target([0.5, 1.5]).task
    'regression'
    """
    Choice(("auto", "classification", "regression"))("task", task)
    values = _as_array(y)
    _refuse_missing(values)
    counted = values if weights is None else values[weights > 0]
    if _holds_dates(values):
        _refuse_dates(counted, task)
    assumption: Text = ""
    if task == "auto":
        alive = None if weights is None else weights[weights > 0]
        task, assumption = _guess_task(counted, alive, values)
    by_number = task == "regression" or values.ndim == 2
    target = _code_numbers(values, task) if by_number else _code_labels(values, counted)
    return replace(target, assumption=assumption)


def _as_array(y: Any) -> npt.NDArray[Any]:
    if y is None:
        raise _of_y("y is None: exactk requires y to be passed, but the target y is None")
    if issparse(y):
        raise _of_y("y is a sparse matrix", hint="make it dense with y.toarray()")
    refuse_masked(y, "y")
    try:
        values = np.asarray(y)
    except ValueError as error:
        raise _of_y("y has rows of different lengths") from error
    if values.dtype.kind == "O" and any(np.ndim(value) for value in values.ravel()):
        raise _of_y("y has lists, tuples or arrays", hint="give one label or number for each row")
    if values.dtype.kind == "O" and any(isinstance(v, Decimal) for v in values.ravel()):
        values = values.astype(np.float64) if _all_numbers(values.ravel()) else values
    if values.dtype.kind == "S" or (values.dtype.kind == "O" and _has_bytes(values)):
        raise _of_y("y has bytes", hint="decode them to strings first")
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim not in (1, 2) or values.size == 0:
        raise _of_y(
            f"y should be a 1d array, one target for each row, or 2d, several outputs for each "
            f"row; got an array of shape {values.shape} instead"
        )
    if np.iscomplexobj(values):
        raise _of_y("Complex data not supported: y has complex values")
    return values


def refuse_masked(values: Any, name: str) -> None:
    """Raise for a masked array: without its mask, missing values would look like others."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        rows = np.argwhere(np.ma.getmaskarray(values))
        raise InputError(
            (Setting(name), f" is a masked array with {len(rows)} masked values, the first in ",
             Row(rows[0][0])),
            parameter=name, hint="fill them in, or drop those rows",
        )  # fmt: skip


def _of_y(message: Text, *, hint: Text = "") -> InputError:
    return InputError(message, parameter="y", hint=hint)


def _has_bytes(values: npt.NDArray[Any]) -> bool:
    return any(isinstance(value, bytes) for value in values.ravel())


def _holds_dates(values: npt.NDArray[Any]) -> bool:
    """Whether these are dates, times or durations, as NumPy, pandas or Python have them."""
    kinds = (dt.date, dt.timedelta, np.datetime64, np.timedelta64)
    return values.dtype.kind in "mM" or (
        values.dtype.kind == "O" and all(isinstance(value, kinds) for value in values.ravel())
    )


def _refuse_dates(values: npt.NDArray[Any], task: Task) -> None:
    """Raise for dates that are amounts of time; a few of them, of many rows each, are labels."""
    what = str(values.dtype) if values.dtype.kind in "mM" else type(values.ravel()[0]).__name__
    way = "give numbers, such as days since the first one"
    if task == "regression" or values.ndim == 2:
        raise _of_y(f"y has dates or durations ({what}), which are not numbers", hint=way)
    if task == "classification":
        return
    n_rows, n_dates = len(values), len(set(values.tolist()))
    many = n_dates > MANY_CLASSES and n_dates * ROWS_PER_CLASS > n_rows
    if many or 2 * n_dates > n_rows:
        raise _of_y(
            f"y has {n_dates} different dates or durations ({what}) in {n_rows} rows, which "
            f"would be classes",
            hint=f"{way}, or labels as text",
        )


def _refuse_missing(values: npt.NDArray[Any]) -> None:
    if values.dtype.kind == "f":
        bad = ~np.isfinite(values)
    elif values.dtype.kind in "OMm":
        # None, NaN, NaT and pandas.NA are the only common values that differ from themselves
        # or are None; comparison with pandas.NA is neither, hence the try.
        bad = np.frompyfunc(is_missing, 1, 1)(values).astype(bool)
    else:
        return
    if bad.any():
        row = int(np.argwhere(bad)[0][0])
        raise _of_y(
            f"Input y contains NaN, infinity or missing values: {int(bad.sum())} of them, the "
            f"first in row {row}",
            hint="drop those rows or fill them in first",
        )


def is_missing(value: Any) -> bool:
    """Whether a value is None, NaN, NaT, pandas.NA or infinite."""
    if value is None:
        return True
    try:
        if isinstance(value, float):
            return not np.isfinite(value)
        return bool(value != value)
    except TypeError:
        return True


Guess = tuple[Literal["classification", "regression"], Text]


def guess_whole_numbers(n_rows_of: Floats) -> Guess:
    """Return what different whole numbers in a target are, classes or amounts, and say so.

    Up to 20 different numbers are classes. More are amounts if there are more than 200 of them, or
    if more than a tenth of them have fewer than 5 rows each.

    Parameters
    ----------
    n_rows_of : ndarray
        Number of rows of each different number.

    Returns
    -------
    task : {"classification", "regression"}
    assumption : Text
        Empty for one or two numbers.

    Examples
    --------
    >>> from exactk.errors import render
    >>> guess_whole_numbers(np.full(40, 10.0))[0]
    'classification'
    >>> task, assumption = guess_whole_numbers(np.full(40, 2.0))
    >>> task, render(assumption)
    ('regression', "y has 40 different whole numbers, which are taken as amounts; if they are
    classes, set task='classification'")
    """
    n = len(n_rows_of)
    n_rare = int(np.count_nonzero(n_rows_of < ROWS_PER_CLASS - 1e-6))
    if n > MOST_CLASSES or (n > MANY_CLASSES and n_rare > RARE_SHARE * n):
        return "regression", _assumed(f"{n:,}", "amounts", "classes", "classification")
    if n <= 2:
        return "classification", ""
    return "classification", _assumed(f"{n:,}", "classes", "amounts", "regression")


def assume_amounts(n_numbers: str) -> Text:
    """Return the assumption that whole numbers are amounts, such as "more than 200" of them."""
    return _assumed(n_numbers, "amounts", "classes", "classification")


def _assumed(n_numbers: str, taken: str, other: str, task: str) -> Text:
    return (
        Setting("y"),
        f" has {n_numbers} different whole numbers, which are taken as {taken}; if they are "
        f"{other}, set ",
        Setting("task", task),
    )


def _guess_task(values: npt.NDArray[Any], weights: Floats | None, table: npt.NDArray[Any]) -> Guess:
    """Guess from the rows that count; `table` has all rows."""
    if values.dtype.kind == "O" and values.ndim == 1:
        if not _all_numbers(values):
            return _guess_task(values.astype(str), weights, table)
        try:
            numbers = values.astype(np.float64)
        except OverflowError as error:
            raise _of_y("y has numbers too large for float64", hint="rescale y") from error
        # Whole numbers may differ by less than float64 can tell.
        whole = np.array_equal(numbers, np.round(numbers))
        return _guess(values, weights, table) if whole else ("regression", "")
    if values.ndim == 1 and values.dtype.kind in "biufU":
        # As type_of_target has it, without its price and its warning of many classes.
        if values.dtype.kind == "f" and not np.array_equal(values, np.round(values)):
            return "regression", ""
        if values.dtype.kind == "b":
            return "classification", ""
        return _guess(values, weights, table)
    with warnings.catch_warnings(), np.errstate(invalid="ignore"):
        warnings.simplefilter("ignore", UserWarning)
        kind = type_of_target(values, input_name="y")
    if kind in ("continuous", "continuous-multioutput", "multiclass-multioutput"):
        return "regression", ""
    if kind == "unknown":
        raise _of_y(f"Unknown label type: y has dtype {values.dtype} and no known form")
    return "classification", ""


def _guess(values: npt.NDArray[Any], weights: Floats | None, table: npt.NDArray[Any]) -> Guess:
    """Tell classes from amounts, and from names of single rows."""
    different, codes = np.unique(values, return_inverse=True)
    if values.dtype.kind == "U":
        refuse_names(different, len(values), table)
        return "classification", ""
    n_rows_of = np.bincount(codes, weights=weights, minlength=len(different)).astype(np.float64)
    return guess_whole_numbers(n_rows_of * (len(values) / max(n_rows_of.sum(), 1e-300)))


def refuse_names(
    labels: npt.NDArray[Any], n_rows: int, table: npt.NDArray[Any] | None = None
) -> None:
    """Raise where most rows have a label of their own: a name, or a number among which is text.

    Parameters
    ----------
    labels : ndarray
        The different ones.
    n_rows : int
    table : ndarray or None
        The targets of all rows, if they are in memory.
    """
    n_labels = len(labels)
    if n_labels <= MANY_CLASSES or 2 * n_labels <= n_rows:
        return
    words = [label for label in labels.tolist() if not _is_number(label)]
    way = ("if they are classes, set ", Setting("task", "classification"))
    if 0 < 2 * len(words) < n_labels:
        word, where = words[0], tuple[str, ...]()
        if table is not None:
            row = int(np.flatnonzero(np.isin(table.astype(str), words))[0])
            word, where = str(table[row]), (" in ", Row(row))
        raise _of_y(
            (f"y has {show_value(word)}", *where, ", which is not a number as in most rows"),
            hint=("correct it; ", *way),
        )
    if n_labels == n_rows:
        raise _of_y(
            f"y has {n_labels} labels in {n_rows} rows, all different: that looks like the "
            f"name of each row, not a class", hint=way,
        )  # fmt: skip


def refuse_one_class(classes: npt.NDArray[Any]) -> None:
    """Raise for fewer than two classes."""
    if len(classes) > 1:
        return
    if classes.dtype.kind in "iuf" and (abs(classes) >= MOST_EXACT).any():
        raise _of_y(TOO_ALIKE, hint=OFFSET)
    only = f", {str(classes[0])!r}" if len(classes) else ""
    raise _of_y(
        f"y has {len(classes)} class{only}: classification needs at least two classes "
        f"(in rows of non-zero weight)"
    )


def _all_numbers(values: npt.NDArray[Any]) -> bool:
    return all(
        isinstance(v, (int, float, np.number, Decimal)) and not isinstance(v, (bool, np.bool_))
        for v in values
    )


def first_word(values: npt.NDArray[Any]) -> Any:
    """Return the first value of an array that is not a number; None if all can be read as such.

    Examples
    --------
    >>> first_word(np.array([1, "2", "high"], dtype=object))
    'high'
    """
    return next((v for v in values.ravel().tolist() if v is not None and not _is_number(v)), None)


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def _code_numbers(
    values: npt.NDArray[Any], task: Literal["classification", "regression"]
) -> Target:
    try:
        numbers = np.ascontiguousarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        shown = first_word(values)
        what = "regression" if task == "regression" else "a target of several columns"
        row = [shown in line for line in values.reshape(len(values), -1).tolist()].index(True)
        raise _of_y(
            (
                f"y has {show_value(shown)} in ",
                Row(row),
                f", which is not a number; {what} needs numbers",
            )
        ) from error
    if numbers.ndim == 1:
        numbers = numbers[:, None]
    return Target(task=task, classes=None, codes=None, values=numbers)


def _code_labels(values: npt.NDArray[Any], counted: npt.NDArray[Any]) -> Target:
    if values.dtype.kind == "f" and not np.array_equal(counted, np.round(counted)):
        raise _of_y(
            "Unknown label type: continuous. y has fractions, which are not classes",
            hint=("set ", Setting("task", "regression"), ", or give whole numbers or text"),
        )
    codes = None
    try:
        if len(counted) == len(values):
            classes, codes = np.unique(values, return_inverse=True)
        else:
            classes = np.unique(counted)
    except TypeError as error:
        kinds = sorted({type(v).__name__ for v in counted})
        raise _of_y(
            f"y mixes labels that cannot be sorted together ({join_items(kinds)})",
            hint="make them all strings or all numbers",
        ) from error
    refuse_one_class(classes)
    if codes is None:
        index = {label: code for code, label in enumerate(classes.tolist())}
        codes = np.fromiter((index.get(v, -1) for v in values.tolist()), dtype=np.intp)
    return Target(task="classification", classes=classes, codes=codes.astype(np.intp), values=None)
