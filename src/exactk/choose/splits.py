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

__all__ = ["Splits"]

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
        in memory. A splitter is shown the target and the groups, and a column of zeros as table.
    groups : array-like or None
        One a row. Rows of a group stay together: a number of folds is then of groups.

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
        if isinstance(cv, str):
            raise InputError(f"cv must be a number of folds or a splitter, not {cv!r}")
        number = cv is None or isinstance(cv, (int, np.integer))
        if number:
            self.n_folds = _number(problem, cv)
        if not number or groups is not None:
            self._given = _read(problem, cv, self.n_folds if number else None, groups)
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


def _number(problem: Problem, cv: Any) -> int:
    rows = problem.n_rows
    if rows < 2:
        raise InputError(f"cross-validation needs two rows at least, and there are {rows}")
    if cv is None:
        return min(N_FOLDS, rows)
    Whole(2, rows)("cv", cv)
    return int(cv)


def _read(problem: Problem, cv: Any, n_folds: int | None, groups: Any) -> list[Split]:
    rows, target = problem.rows, problem.target
    if rows is None or target is None:
        what = "cv as a splitter" if n_folds is None else "groups"
        raise InputError(
            f"{what} needs the rows in memory, and this table is passed over; give cv as a number "
            f"of folds without groups, or call problem.in_memory() first"
        )
    if groups is not None:
        groups = np.asarray(groups)
        if groups.shape != (rows.n_rows,):
            raise InputError(
                f"groups has shape {groups.shape}, expected ({rows.n_rows},): one for each row"
            )
    if n_folds is not None:
        cv = _by_groups(n_folds, groups)
    y = target.values if target.codes is None else target.codes
    try:
        if hasattr(cv, "split"):
            pairs = list(cv.split(np.zeros((rows.n_rows, 1)), _flat(y), groups))
        else:
            pairs = list(cv)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"cv={cv!r} is neither a number of folds nor a splitter that can split these "
            f"{rows.n_rows} rows: {error}"
        ) from error
    if not pairs:
        raise InputError(f"cv={cv!r} yields no splits; give a number of folds such as cv=5")
    return [_checked(pair, number, rows.n_rows) for number, pair in enumerate(pairs, start=1)]


def _by_groups(n_folds: int, groups: npt.NDArray[Any]) -> Any:
    # Imported here, for it takes longer than all the rest of exactk.
    from sklearn.model_selection import GroupKFold

    there = len(np.unique(groups))
    if there < 2:
        raise InputError("groups has one group only; cross-validation needs two at least")
    return GroupKFold(min(n_folds, there))


def _flat(y: Any) -> Any:
    return y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y


def _checked(pair: Any, number: int, n_rows: int) -> Split:
    if not isinstance(pair, Sequence) or len(pair) != 2:
        raise InputError(f"split {number} of cv must be a pair (train, test) of row numbers")
    train, held = (_indices(part, number, n_rows) for part in pair)
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
