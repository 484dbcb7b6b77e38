"""What a user says about folds: a number, a splitter of scikit-learn, groups; checked once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from exactk.checks import Whole
from exactk.choose.folds import HeldOut, Split, fold_by_fold, folds_of
from exactk.errors import InputError
from exactk.problem import Problem
from exactk.targets import is_missing

__all__ = ["N_FOLDS", "Splits", "check_cv", "group_folds", "is_number", "read_splits", "row_groups"]

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]

N_FOLDS = 5
NO_ROWS = (
    "cross-validation splits rows, and this problem was made of moments, which have none; use "
    "criterion='ebic', or make the problem of the table"
)


class Splits:
    """How the rows of a problem are split: into a number of folds, or as was said row by row.

    Parameters
    ----------
    problem : Problem
    cv : int, splitter of scikit-learn, iterable of pairs, or None
        Folds, dealt out at random with classes spread evenly; None is five, or one a row where
        there are fewer. A splitter, or pairs of rows to train on and rows to hold out, needs rows
        in memory; see `read_splits`.
    groups : array-like or None
        One a row. Rows of a group stay together: a number of folds is then of groups, and None as
        many as there are groups where these are fewer than five.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> splits = Splits(Problem.from_arrays(*load_iris(return_X_y=True)), None)
    >>> splits.n_folds, splits.smallest_training
    (5, 120)
    """

    def __init__(self, problem: Problem, cv: Any, groups: Any = None) -> None:
        if problem.rows is None and problem.stream is None:
            raise InputError(NO_ROWS)
        self._n_rows, self._weights = problem.n_rows, problem.weights
        self._given: list[Split] | None = None
        if is_number(cv):
            self.n_folds = _number(problem, cv)
        else:
            check_cv(cv)
        if not is_number(cv) or groups is not None:
            self._given = _read(problem, cv, groups)
            self.n_folds = len(self._given)

    @property
    def smallest_training(self) -> int:
        """Fewest rows of non-zero weight that a fold is trained on, as far as they are known."""
        if self._given is None:
            return self._n_rows - -(-self._n_rows // self.n_folds)
        weights = self._weights
        return min(
            len(train) if weights is None else int(np.count_nonzero(weights[train]))
            for train, _ in self._given
        )

    def folds(
        self, problem: Problem, rng: np.random.Generator, *, with_rows: bool = False
    ) -> Iterable[HeldOut]:
        """Return the folds of the problem, which may have another ridge by now.

        Training problems are made of moments where that is cheap, unless they must have rows.
        """
        if self._given is None:
            return fold_by_fold(problem, self.n_folds, rng, with_rows=with_rows)
        return folds_of(problem, self._given, with_rows=with_rows)


def is_number(cv: Any) -> bool:
    """Whether folds are given as a number, or left to the default."""
    return cv is None or isinstance(cv, (int, np.integer))


def check_cv(cv: Any) -> None:
    """Raise for what is no number of folds, no splitter and nothing to take pairs from.

    Examples
    --------
    >>> check_cv("five")
    Traceback (most recent call last):
    ...
    exactk.errors.InputError: cv must be a number of folds, a splitter of scikit-learn, pairs
    (train, test) of row numbers, or None (five folds), not 'five'
    """
    if is_number(cv):
        Whole(2, none="five folds")("cv", cv)
    elif isinstance(cv, str) or not (hasattr(cv, "split") or isinstance(cv, Iterable)):
        raise InputError(
            f"cv must be a number of folds, a splitter of scikit-learn, pairs (train, test) of row "
            f"numbers, or None (five folds), not {cv!r}"
        )


def row_groups(groups: Any, n_rows: int) -> npt.NDArray[Any]:
    """Return the group of each row as an array, or say what is wrong with it.

    Examples
    --------
    >>> row_groups([1, 2], 3)
    Traceback (most recent call last):
    ...
    exactk.errors.InputError: groups must name the group of each of the 3 rows, and has shape
    (2,), not (3,)
    """
    values = np.asarray(groups)
    if values.shape != (n_rows,):
        raise InputError(
            f"groups must name the group of each of the {n_rows} rows, and has shape "
            f"{values.shape}, not ({n_rows},)"
        )
    if values.dtype.kind in "fOMm":
        missing = np.flatnonzero(np.frompyfunc(is_missing, 1, 1)(values))
        if missing.size:
            raise InputError(
                f"groups has no label for {missing.size} of {n_rows} rows, the first of them row "
                f"{missing[0]}; a row that belongs to no other needs a label of its own"
            )
    if values.dtype == object:
        try:
            np.unique(values)
        except TypeError as error:
            raise InputError(f"groups has labels that cannot be sorted: {error}") from error
    return values


def group_folds(cv: int | None, groups: npt.NDArray[Any]) -> int:
    """Return how many folds of whole groups to make: as many as asked for, or by default five.

    Only the default gives way where there are fewer groups.

    Examples
    --------
    >>> group_folds(None, np.array([1, 1, 2]))
    2
    """
    there = len(np.unique(groups))
    if there < 2:
        raise InputError("groups has one group only; cross-validation needs two at least")
    if cv is not None and there < cv:
        raise InputError(
            f"cv={cv} folds of whole groups need as many groups, and groups has {there}; use "
            f"cv={there} or fewer"
        )
    return min(N_FOLDS, there) if cv is None else int(cv)


def read_splits(
    cv: Any, y: npt.NDArray[Any], groups: npt.NDArray[Any] | None, weights: Floats | None
) -> list[Split]:
    """Return the rows to train on and to hold out that a splitter, or pairs, say.

    Parameters
    ----------
    cv : splitter of scikit-learn or iterable of pairs
        A splitter is shown the target and the groups of the rows of non-zero weight alone, and a
        column of zeros as table. Pairs hold numbers of all rows, or masks.
    y : ndarray of shape (n,) or (n, c)
    groups : ndarray of shape (n,) or None
    weights : ndarray of shape (n,) or None

    Examples
    --------
    >>> from sklearn.model_selection import KFold
    >>> weights = np.array([1.0, 0.0, 1.0])
    >>> [held.tolist() for _, held in read_splits(KFold(2), np.arange(3), None, weights)]
    [[0], [2]]
    """
    alive = np.arange(len(y)) if weights is None else np.flatnonzero(weights)
    shown = hasattr(cv, "split")
    try:
        if shown:
            own = None if groups is None else groups[alive]
            pairs = list(cv.split(np.zeros((len(alive), 1)), y[alive], own))
        else:
            pairs = list(cv)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"cv={cv!r} is neither a number of folds nor a splitter that can split these "
            f"{len(alive)} rows: {error}"
        ) from error
    if not pairs:
        raise InputError(f"cv={cv!r} yields no splits; give a number of folds such as cv=5")
    n_rows = len(alive) if shown else len(y)
    splits = [_checked(pair, number, n_rows) for number, pair in enumerate(pairs, start=1)]
    return [(alive[train], alive[held]) for train, held in splits] if shown else splits


def _number(problem: Problem, cv: Any) -> int:
    rows = problem.n_rows
    if rows < 2:
        raise InputError(f"cross-validation needs two rows at least, and there are {rows}")
    if cv is None:
        return min(N_FOLDS, rows)
    Whole(2, rows)("cv", cv)
    return int(cv)


def _read(problem: Problem, cv: Any, groups: Any) -> list[Split]:
    rows, target = problem.rows, problem.target
    if rows is None or target is None:
        what = "groups" if is_number(cv) else "cv as a splitter"
        raise InputError(
            f"{what} needs the rows in memory, and this table is passed over; give cv as a number "
            f"of folds without groups, or call problem.in_memory() first"
        )
    if groups is not None:
        groups = row_groups(groups, rows.n_rows)
    if is_number(cv):
        # Imported here, for it takes longer than all the rest of exactk.
        from sklearn.model_selection import GroupKFold

        counted = groups if problem.weights is None else groups[problem.weights > 0]
        cv = GroupKFold(group_folds(cv, counted))
    y = target.values if target.codes is None else target.codes
    assert y is not None
    return read_splits(cv, _flat(y), groups, problem.weights)


def _flat(y: Any) -> Any:
    return y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y


def _checked(pair: Any, number: int, n_rows: int) -> Split:
    if not isinstance(pair, Sequence) or len(pair) != 2:
        raise InputError(f"split {number} of cv must be a pair (train, test) of row numbers")
    train, held = (_indices(part, number, n_rows) for part in pair)
    if np.intersect1d(train, held).size:
        raise InputError(f"fold {number} of cv tests rows that it is trained on")
    return train, held


def _indices(part: Any, number: int, n_rows: int) -> Indices:
    rows = np.asarray(part)
    if rows.dtype == bool and rows.shape == (n_rows,):
        rows = np.flatnonzero(rows)
    whole = rows.ndim == 1 and rows.size > 0 and rows.dtype.kind in "iu"
    if not whole or rows.min() < 0 or rows.max() >= n_rows:
        raise InputError(
            f"split {number} of cv must hold numbers of rows in 0..{n_rows - 1}, at least one to "
            f"train on and one to hold out"
        )
    return rows.astype(np.intp)
