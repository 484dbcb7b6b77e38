"""Which rows to learn from and which to test on: a share of each class, or folds.

Classes are taken in the order in which they first occur, so a split does not depend on what they
are called.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from exactk.errors import InputError
from exactk.methods.base import generator
from exactk.params import Choice, Integer, Number
from exactk.types import Indices

__all__ = ["fold_splits", "share_split"]

SplitTask = Literal["auto", "classification", "regression"]

_TASK = Choice(options=("auto", "classification", "regression"))


def share_split(
    y: Any, train: float, random_state: object = None, *, task: SplitTask = "auto"
) -> tuple[Indices, Indices]:
    """Draw a share of the rows to learn from, in the same proportion of each class.

    The rest is to test on. Of a class of two rows or more at least one row comes to either side;
    a class of one row is learnt from. Numbers are drawn without regard to their values.

    Parameters
    ----------
    y : array-like of shape (n,) or (n, c)
        Labels or outputs.
    train : float
        Share to learn from, between 0 and 1.
    random_state : int, Generator or None
        None is a fixed seed.
    task : {"auto", "classification", "regression"}
        What y holds; "auto" takes fractional types and several columns for numbers.

    Returns
    -------
    train_rows, test_rows : ndarray of intp
        Sorted.

    Examples
    --------
    >>> train_rows, test_rows = share_split(["a"] * 5 + ["b"] * 10, 0.6, 0)
    >>> train_rows.size, test_rows.size, int((train_rows < 5).sum())
    (9, 6, 3)
    """
    Number("(0, 1)")("train", train)
    codes = _class_codes(y, task)
    rng = generator(random_state)
    counts = np.bincount(codes)
    wanted = _class_shares(counts, train, rng)
    chosen = [
        rng.permutation(np.flatnonzero(codes == code))[:size] for code, size in enumerate(wanted)
    ]
    train_rows = np.sort(np.concatenate(chosen))
    test_rows = np.setdiff1d(np.arange(codes.size), train_rows)
    if test_rows.size == 0:
        raise InputError(
            f"y has no class of two rows or more ({codes.size} rows): nothing is left to test on",
            parameter="y",
        )
    return train_rows, test_rows


def _class_shares(counts: Indices, train: float, rng: np.random.Generator) -> Indices:
    """Rows to take of each class: its share, whole, and the whole share of all rows in total.

    The rows that rounding down leaves over go to the classes that lost most by it, drawn among
    equals. Where many classes have the same few rows, rounding each by itself would move the
    total: 60 % of 14 rows is 8, and of 120 such classes 57 % of the rows.
    """
    exact = train * counts
    sizes = np.clip(np.floor(exact + 1e-9).astype(np.intp), 1, np.maximum(counts - 1, 1))
    short = round(train * int(counts.sum())) - int(sizes.sum())
    if short > 0:
        order = np.lexsort((rng.permutation(len(counts)), -np.round(exact - sizes, 9)))
        order = order[sizes[order] < counts[order] - 1]
        sizes[order[:short]] += 1
    return sizes


def fold_splits(
    y: Any, folds: int, random_state: object = None, *, task: SplitTask = "auto"
) -> list[tuple[Indices, Indices]]:
    """Deal the rows out into folds, each class evenly, and test on one fold after the other.

    Every row is tested once, and folds differ by one row at most. A class may have fewer rows than
    there are folds: each of its rows is then in a fold of its own, so that only a class of one row
    is ever tested without having been learnt.

    Parameters
    ----------
    y : array-like of shape (n,) or (n, c)
        Labels or outputs.
    folds : int
        Between 2 and the number of rows.
    random_state : int, Generator or None
        None is a fixed seed.
    task : {"auto", "classification", "regression"}
        As in `share_split`.

    Returns
    -------
    list of (train_rows, test_rows)
        Sorted, one pair for each fold.

    Examples
    --------
    >>> splits = fold_splits([0, 0, 0, 0, 1, 1], 3, 0)
    >>> [test_rows.size for _, test_rows in splits]
    [2, 2, 2]
    """
    codes = _class_codes(y, task)
    Integer(2, codes.size)("folds", folds)
    shuffled = generator(random_state).permutation(codes.size)
    dealt = shuffled[np.argsort(codes[shuffled], kind="stable")]
    everything = np.arange(codes.size)
    tests = [np.sort(dealt[fold::folds]) for fold in range(folds)]
    return [(np.setdiff1d(everything, test), test) for test in tests]


def _class_codes(y: Any, task: str) -> Indices:
    """A number for each row's class, in order of first occurrence; all 0 for numbers."""
    _TASK("task", task)
    values = np.asarray(y)
    if values.ndim not in (1, 2) or len(values) < 2:
        raise InputError(
            f"y must have two rows or more to split, not shape {values.shape}", parameter="y"
        )
    if task == "regression" or values.ndim == 2 or (task == "auto" and values.dtype.kind == "f"):
        if task == "classification":
            raise InputError(
                f"y has shape {values.shape}: classes are split by one label a row", parameter="y",
                hint="give one column, or task='regression'",
            )  # fmt: skip
        return np.zeros(len(values), dtype=np.intp)
    try:
        _, first, codes = np.unique(values, return_index=True, return_inverse=True)
    except TypeError as error:
        raise InputError(
            f"y mixes labels that cannot be sorted together ({error})", parameter="y",
            hint="make them all strings or all numbers",
        ) from error  # fmt: skip
    place = np.empty(first.size, dtype=np.intp)
    place[np.argsort(first)] = np.arange(first.size)
    found: Indices = place[codes.ravel()]
    return found
