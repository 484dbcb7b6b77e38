"""Cross-validation folds of a Problem: by moments where they fit, by weights where not.

Folds share nothing: each has a path of its own from its training moments, at effort 0. The
squared error of every size is a quadratic form in the held-out moments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from exactk.data.design_matrix import DesignMatrix
from exactk.data.moments import Moments, leave_one_out
from exactk.data.targets import Target, is_missing
from exactk.errors import ConstantTargetError, InputError, Setting
from exactk.methods.base import generator
from exactk.params import Integer
from exactk.problem.problem import Problem
from exactk.result import Result
from exactk.streaming.split import SplitReducer
from exactk.types import Floats, Indices

__all__ = [
    "N_FOLDS",
    "Fold",
    "HeldOut",
    "Split",
    "Splits",
    "StreamFold",
    "check_cv",
    "fold_by_fold",
    "folds_of",
    "group_folds",
    "is_number",
    "list_splits",
    "make_folds",
    "make_splits",
    "row_groups",
    "training_problem",
]


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
        in memory; see `list_splits`.
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
        Integer(2, none="five folds")("cv", cv)
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


def list_splits(
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
    >>> [held.tolist() for _, held in list_splits(KFold(2), np.arange(3), None, weights)]
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


def make_splits(
    problem: Problem, cv: Any = None, groups: Any = None, random_state: object = None
) -> list[Split]:
    """Return the training and test rows of each fold of a problem with its rows in memory.

    Parameters
    ----------
    problem : Problem
        Rows of weight zero are in no fold.
    cv : int, scikit-learn splitter, iterable of (train, test), or None
        A number of folds is stratified by class, and shuffled for numbers; None is five, or fewer
        if there are fewer rows or groups.
    groups : array-like or None
        One label for each row. Rows of one group stay together.
    random_state : int, Generator or None
        Seed of the folds.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> problem = Problem.from_arrays(*load_iris(return_X_y=True))
    >>> [(len(train), len(test)) for train, test in make_splits(problem, cv=3)]
    [(100, 50), (100, 50), (100, 50)]
    """
    assert problem.rows is not None
    assert problem.target is not None
    target, weights = problem.target, problem.row_weights
    y = target.values if target.codes is None else target.codes
    assert y is not None
    alive = np.arange(len(y)) if weights is None else np.flatnonzero(weights)
    if groups is not None:
        groups = row_groups(groups, len(y))
    if is_number(cv):
        cv = _stratified(problem, cv, groups, alive, random_state)
    else:
        check_cv(cv)
    found = list_splits(cv, _flat(y), groups, weights)
    splits = [(train[np.isin(train, alive)], test[np.isin(test, alive)]) for train, test in found]
    for number, (train, test) in enumerate(splits, start=1):
        if train.size < 2 or test.size == 0:
            raise InputError(
                f"fold {number} has {train.size} training rows and {test.size} test rows of "
                f"weight above zero",
                parameter="cv", hint="use fewer folds",
            )  # fmt: skip
        if target.codes is not None and len(np.unique(target.codes[train])) < 2:
            raise InputError(
                f"all training rows of fold {number} are of one class",
                parameter="cv", hint="use other folds",
            )  # fmt: skip
    return splits


def _stratified(
    problem: Problem, cv: int | None, groups: Any, alive: Indices, random_state: object
) -> Any:
    """Return the splitter of scikit-learn for a number of folds."""
    from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold

    Integer(2, len(alive), none="five folds")("cv", cv)
    if groups is not None:
        return GroupKFold(group_folds(cv, groups[alive]))
    n_folds = min(N_FOLDS, len(alive)) if cv is None else int(cv)
    if isinstance(random_state, (int, np.integer)):
        # The same number gives the folds that it gives in scikit-learn.
        seed = int(random_state) % 2**32
    else:
        seed = 0 if random_state is None else int(generator(random_state).integers(2**31))
    assert problem.target is not None
    if problem.target.codes is None:
        return KFold(n_folds, shuffle=True, random_state=seed)
    _check_classes(problem, n_folds, alive)
    return StratifiedKFold(n_folds, shuffle=True, random_state=seed)


def _check_classes(problem: Problem, n_folds: int, alive: Indices) -> None:
    """Raise if a class has fewer rows than there are folds."""
    assert problem.target is not None
    assert problem.classes is not None
    counts = np.bincount(problem.target.codes[alive], minlength=len(problem.classes))
    counts = np.where(counts == 0, n_folds, counts)
    rarest = int(counts.argmin())
    count = int(counts[rarest])
    if count >= n_folds:
        return
    label = problem.classes[rarest]
    hint: list[Any] = ["join it with another class, or leave its rows out"]
    if count > 1:
        hint = ["use ", Setting("cv", count), " or fewer, ", *hint]
    raise InputError(
        f"class {str(label)!r} has {count} row{'s' * (count != 1)}, fewer than the {n_folds} folds",
        parameter="cv", value=n_folds, hint=hint,
    )  # fmt: skip


def training_problem(problem: Problem, rows: Indices, *, rebalance: bool = True) -> Problem:
    """Return the problem of some rows alone: everything that is learned, is learned from them.

    All steps that train on part of the rows get their problem here.

    Parameters
    ----------
    problem : Problem
        With its rows in memory.
    rows : ndarray of intp
    rebalance : bool
        Whether class weights are computed from these rows alone; otherwise rows keep the weight
        that they have in the whole problem.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> problem = Problem.from_arrays(*load_iris(return_X_y=True), ridge=0.5)
    >>> training_problem(problem, np.arange(0, 150, 2))
    Problem(75 rows, 4 features (4 usable), 3 outputs, classification, ridge 0.5)
    """
    assert problem.rows is not None
    assert problem.target is not None
    weights = None if problem.weights is None else problem.weights[rows]
    if rebalance:
        weights = problem.weights_of(rows)
    part = Problem.from_rows(
        problem.rows.take(rows), problem.target.subset(rows), weights, ridge=problem.ridge,
        scale=problem.scaled, memory_limit=problem.memory_limit,
    )  # fmt: skip
    return part.with_settings_of(problem)


def _number(problem: Problem, cv: Any) -> int:
    rows = problem.n_rows
    if rows < 2:
        raise InputError(f"cross-validation needs two rows at least, and there are {rows}")
    if cv is None:
        return min(N_FOLDS, rows)
    Integer(2, rows)("cv", cv)
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
    return list_splits(cv, _flat(y), groups, problem.weights)


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


# Rows to train on, and rows held out.
Split = tuple[Indices, Indices]


class HeldOut(Protocol):
    """A training problem, and what is held out from it."""

    @property
    def train(self) -> Problem:
        """The problem of the other rows."""
        ...

    @property
    def weight(self) -> float:
        """Weight of the rows held out, or their number."""
        ...

    def errors(self, results: Sequence[Result]) -> Floats:
        """Weighted sums of the loss of several fits over the rows held out."""
        ...


@dataclass(frozen=True, eq=False)
class StreamFold:
    """A training problem and the moments of the rows held out: squared errors need no more."""

    train: Problem
    held: Moments

    @property
    def weight(self) -> float:
        """Weight of the rows held out, or their number."""
        return self.held.weight

    def errors(self, results: Sequence[Result]) -> Floats:
        """Weighted sums of the loss of several fits over the rows held out."""
        return np.array([_error_by_moments(self.train, self.held, r) for r in results])


def _error_by_moments(train: Problem, held: Moments, result: Result) -> float:
    """The squared error, of classes as they are scored in the training problem."""
    S, scores = result.support, _scores(train)
    coef, intercept = result.coef / scores[:, None], result.intercept / scores
    by_output = (
        np.diagonal(held.yy)
        - 2.0 * np.einsum("cj,jc->c", coef, held.xy[S])
        + np.einsum("cj,cj->c", coef @ held.xx[np.ix_(S, S)], coef)
    )
    off = held.y_mean - intercept - coef @ held.x_mean[S]
    about_means = max(float(scores**2 @ by_output), 0.0)
    return about_means + held.weight * float(scores**2 @ off**2)


def _scores(train: Problem) -> Floats:
    """What stands for each class in its output; ones for numbers."""
    target = train.target
    if target is None or target.scores is None:
        return np.ones(train.n_outputs)
    return target.scores


@dataclass(frozen=True)
class Fold:
    """A training problem and the rows held out from it, with their moments where they were made."""

    train: Problem
    rows: DesignMatrix
    target: Target
    weights: Floats | None
    held_out: Indices
    trained_on: Indices
    held: Moments | None = None

    @property
    def weight(self) -> float:
        """Weight of the rows held out, or their number."""
        if self.weights is None:
            return float(len(self.held_out))
        return float(self.weights[self.held_out].sum())

    def errors(self, results: Sequence[Result]) -> Floats:
        """Weighted sums of the loss of several fits over the rows held out, each read once."""
        if self.held is not None:
            return np.array([_error_by_moments(self.train, self.held, r) for r in results])
        union = np.unique(np.concatenate([r.support for r in results]))
        counted = self.held_out
        if self.weights is not None:
            counted = counted[self.weights[counted] > 0]
        w = np.ones(len(counted)) if self.weights is None else self.weights[counted]
        x, target = self.rows.columns(union)[counted], self.target.subset(counted)
        total = self._loss(replace(target, scores=None), w)
        return np.array(
            [
                total(x[:, np.searchsorted(union, r.support)] @ r.coef.T + r.intercept)
                for r in results
            ]
        )

    def _loss(self, target: Target, w: Floats) -> Callable[[Floats], float]:
        """Return what sums the loss of predictions for all outputs over some rows."""
        loss = self.train.loss
        if not loss.by_moments:
            return loss.total(target, w)
        scores = _scores(self.train)
        Y = target.block(0, target.n_rows) * scores
        return lambda P: float(w @ ((Y - P) ** 2).sum(axis=1))


def fold_by_fold(
    problem: Problem, n_folds: int, rng: np.random.Generator, *, with_rows: bool = False
) -> Iterator[HeldOut]:
    """Split the rows of a problem, wherever they are, and give one fold after the other.

    The rows of a stream go to folds by a hash of their values: the split depends neither on their
    order nor on the parts that they come in, but it is another than that of the same rows in
    memory, folds are of nearly the same size only, and equal rows stay together. One pass makes
    the moments of all folds; where they do not fit in memory side by side, each fold takes a pass
    of its own. With rows, for methods that read them, training problems have their rows.
    """
    if problem.rows is not None or problem.stream is None:
        yield from make_folds(problem, n_folds, rng, with_rows=with_rows)
        return
    if not problem.loss.by_moments:
        yield from make_folds(problem.in_memory(), n_folds, rng)
        return
    _check_number(problem, n_folds)
    seed = int(rng.integers(2**63))
    names, stream = problem.stream.feature_names, problem.stream
    if 8 * problem.n_features**2 * 3 * n_folds <= problem.memory_limit:
        found = stream.reduce(SplitReducer(names, problem.target_encoding, n_folds, seed))
        parts = [part for part in found if part is not None]
        _check_spread(len(parts))
        for held, rest in zip(parts, leave_one_out(parts), strict=True):
            yield StreamFold(_train(problem, rest), held)
        return
    for fold in range(n_folds):
        own, others = stream.reduce(
            SplitReducer(names, problem.target_encoding, n_folds, seed, only_fold=fold)
        )
        _check_spread(1 if others is None else 2)
        if own is not None and others is not None:
            yield StreamFold(_train(problem, others), own)


@contextmanager
def _of_a_fold() -> Iterator[None]:
    """Tell what is wrong with the rows that a fold trains on from what is wrong with the table."""
    try:
        yield
    except ConstantTargetError as error:
        raise InputError(
            "y is the same in every row that one of the folds trains on: there is nothing to "
            "predict; give other folds, or choose k with criterion='ebic' and the ridge as a number"
        ) from error


@_of_a_fold()
def _train(problem: Problem, moments: Moments) -> Problem:
    train = Problem.from_moments(
        moments, classes=problem.classes, ridge=problem.ridge, scale=problem.scaled,
        feature_names=problem.given_names,
    )  # fmt: skip
    return train.with_settings_of(problem)


def _check_number(problem: Problem, n_folds: int) -> None:
    if not 2 <= n_folds <= problem.n_rows:
        raise InputError(f"n_folds must be 2..{problem.n_rows}, not {n_folds}")


def _check_spread(n_folds: int) -> None:
    if n_folds < 2:
        raise InputError(
            "the rows have too few different values to be split by them; give the ridge as a "
            "number, and choose k with criterion='ebic'"
        )


def make_folds(
    problem: Problem, n_folds: int, rng: np.random.Generator, *, with_rows: bool = False
) -> list[Fold]:
    """Split the rows of a problem at random, classes spread evenly.

    One pass over the table gives the moments of every fold, and training moments are merges of
    the others. Where d × d matrices of all folds are too large, a training problem is the same
    table with the weights of its held-out rows set to zero, read column by column.
    """
    rows, target = problem.rows, problem.target
    if rows is None or target is None:
        raise InputError(
            "this problem was made of moments and has no rows to split; cross-validate with the "
            "moments of the folds, or give the ridge as a number"
        )
    _check_number(problem, n_folds)
    parts = _split(target, problem.weights, rows.n_rows, n_folds, rng)
    if with_rows or not problem.loss.by_moments:
        every = np.arange(rows.n_rows)
        splits = [(np.setdiff1d(every, part), part) for part in parts]
        return [_fold_of_rows(problem, rows, target, split) for split in splits]
    return _left_out(problem, rows, target, parts)


def folds_of(problem: Problem, splits: Sequence[Split], *, with_rows: bool = False) -> list[Fold]:
    """Make folds of rows to train on and rows to hold out, as a splitter of scikit-learn gives.

    Where every row is held out once, as usual, the moments of a training set are a merge of the
    other folds'. Splits may also overlap, repeat or leave rows out: each is then read by itself.

    Parameters
    ----------
    problem : Problem
        With its rows in memory.
    splits : sequence of pair of ndarray of int
        Rows to train on and rows held out, by number.
    with_rows : bool
        Training problems have their rows, for methods that read them.
    """
    rows, target = problem.rows, problem.target
    if rows is None or target is None:
        raise InputError("splits are numbers of rows, and this problem has no rows in memory")
    counted = np.ones(rows.n_rows, dtype=bool) if problem.weights is None else problem.weights > 0
    for number, (train, held) in enumerate(splits, start=1):
        for part, what in ((train, "train on"), (held, "hold out")):
            if not counted[part].any():
                raise InputError(f"split {number} has no rows of non-zero weight to {what}")
    if with_rows or not problem.loss.by_moments:
        return [_fold_of_rows(problem, rows, target, split) for split in splits]
    if _is_partition(splits, np.flatnonzero(counted)):
        return _left_out(problem, rows, target, [held for _, held in splits])
    folds = []
    for train, held in splits:
        if _affords_moments(problem, rows, 2 * len(splits)):
            chosen = _train(problem, _moments(rows, target, problem.weights, train))
            moments = _moments(rows, target, problem.weights, held)
            folds.append(Fold(chosen, rows, target, problem.weights, held, train, moments))
        else:
            times = np.bincount(train, minlength=rows.n_rows).astype(np.float64)
            chosen = _reweighted(problem, rows, target, times)
            folds.append(Fold(chosen, rows, target, problem.weights, held, train))
    return folds


@_of_a_fold()
def _fold_of_rows(problem: Problem, rows: DesignMatrix, target: Target, split: Split) -> Fold:
    train, held = split
    weights = None if problem.weights is None else problem.weights[train]
    chosen = Problem.from_rows(
        rows.take(train), target.subset(train), weights, ridge=problem.ridge,
        scale=problem.scaled, memory_limit=problem.memory_limit,
    )  # fmt: skip
    return Fold(chosen.with_settings_of(problem), rows, target, problem.weights, held, train)


def _is_partition(splits: Sequence[Split], counted: Indices) -> bool:
    """Whether every row of non-zero weight is held out once, and else trained on."""
    if len(splits) < 2:
        return False
    held_out = np.sort(np.concatenate([held for _, held in splits]))
    if not np.array_equal(held_out, counted):
        return False
    return all(
        len(train) + len(held) == len(counted) and np.array_equal(np.union1d(train, held), counted)
        for train, held in splits
    )


def _left_out(
    problem: Problem, rows: DesignMatrix, target: Target, parts: Sequence[Indices]
) -> list[Fold]:
    """One fold for each part of the rows, trained on all others."""
    weights, every = problem.weights, np.arange(rows.n_rows)
    others = [np.setdiff1d(every, part) for part in parts]
    if _affords_moments(problem, rows, 3 * len(parts)):
        moments = [_moments(rows, target, weights, part) for part in parts]
        trains = [_train(problem, rest) for rest in leave_one_out(moments)]
        return [
            Fold(train, rows, target, weights, part, rest, held)
            for train, part, rest, held in zip(trains, parts, others, moments, strict=True)
        ]
    folds = []
    for part, rest in zip(parts, others, strict=True):
        times = np.ones(rows.n_rows)
        times[part] = 0.0
        train = _reweighted(problem, rows, target, times)
        folds.append(Fold(train, rows, target, weights, part, rest))
    return folds


def _affords_moments(problem: Problem, rows: DesignMatrix, n_matrices: int) -> bool:
    fits = 8 * problem.n_features**2 * n_matrices <= problem.memory_limit
    return fits and rows.gram_cost < problem.n_features * rows.pass_cost


@_of_a_fold()
def _reweighted(problem: Problem, rows: DesignMatrix, target: Target, times: Floats) -> Problem:
    """The same table, each row counted so many times."""
    weights = times if problem.weights is None else times * problem.weights
    train = Problem.from_rows(
        rows, target, weights, ridge=problem.ridge, scale=problem.scaled,
        memory_limit=problem.memory_limit,
    )  # fmt: skip
    return train.with_settings_of(problem)


def _moments(rows: DesignMatrix, target: Target, weights: Floats | None, part: Indices) -> Moments:
    held = replace(target.subset(part), scores=None)
    return rows.take(part).moments(held, None if weights is None else weights[part])


def _split(
    target: Target,
    weights: Floats | None,
    n_rows: int,
    n_folds: int,
    rng: np.random.Generator,
) -> list[Indices]:
    """Deal the rows of non-zero weight out, class by class, after a shuffle."""
    alive = np.arange(n_rows) if weights is None else np.flatnonzero(weights)
    shuffled = rng.permutation(alive)
    if target.codes is not None:
        shuffled = shuffled[np.argsort(target.codes[shuffled], kind="stable")]
    return [np.sort(shuffled[fold::n_folds]) for fold in range(n_folds)]
