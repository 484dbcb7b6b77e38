"""Cross-validation folds: which rows train, which are held out, and the loss on those.

Folds share nothing. Where the loss allows it, training problems are made of moments: one pass over
the rows gives the moments of every fold, and those of the training rows are sums of the others.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from exactk.data.design_matrix import DesignMatrix
from exactk.data.gram import GramMode
from exactk.data.moments import Moments, leave_one_out
from exactk.data.targets import Target, is_missing, refuse_masked
from exactk.errors import ConstantTargetError, InputError, Setting
from exactk.methods.base import generator
from exactk.params import PARAMS, Integer
from exactk.problem.problem import Problem
from exactk.result import Result
from exactk.streaming.split import SplitReducer
from exactk.types import Floats, Indices

__all__ = [
    "Fold", "Split", "Splits", "check_lone_class", "deal_rows", "is_number", "make_folds",
    "make_splits", "row_groups", "training_problem",
]  # fmt: skip

N_FOLDS = 5
# Training rows and held-out rows.
Split = tuple[Indices, Indices]


@dataclass(frozen=True, eq=False)
class Fold:
    """A training problem, and its held-out rows or their moments.

    Attributes
    ----------
    train : Problem
        Of the training rows alone.
    weight : float
        Weight of the held-out rows, or their number.
    held : Moments or None
        Of the held-out rows.
    by_rows : tuple of Problem and pair of ndarray, or None
        The problem with all rows in memory; its training rows and those held out.
    """

    train: Problem
    weight: float
    held: Moments | None = None
    by_rows: tuple[Problem, Split] | None = None

    def errors(self, results: Sequence[Result]) -> Floats:
        """Return the weighted sums of the loss of several fits over the held-out rows."""
        if self.held is not None:
            return np.array([_squared_error(self.train, self.held, r) for r in results])
        assert self.by_rows is not None
        source, (_, held) = self.by_rows
        rows, target = _table(source)
        union = np.unique(np.concatenate([r.support for r in results]))
        w = np.ones(len(held)) if source.weights is None else source.weights[held]
        held, w = held[w > 0], w[w > 0]
        x, target = rows.columns(union)[held], target.subset(held)
        predictions = [
            x[:, np.searchsorted(union, r.support)] @ r.coef.T + r.intercept for r in results
        ]
        loss, scale = self.train.loss, self.train.output_scale
        unit = 1.0 if scale is None else scale
        if loss.by_moments:
            Y = replace(target, scores=None).block(0, len(held)) * _scores(self.train)
            return np.array([w @ ((Y - P * unit) ** 2).sum(axis=1) for P in predictions])
        total = loss.total(replace(target, scores=scale), w)
        return np.array([total(P * unit) for P in predictions])


def _table(problem: Problem) -> tuple[DesignMatrix, Target]:
    """Return the rows in memory and the target."""
    assert problem.rows is not None
    assert problem.target is not None
    return problem.rows, problem.target


def _squared_error(train: Problem, held: Moments, result: Result) -> float:
    """Return the squared error from moments, of classes with the scores of the training problem."""
    S, scores = result.support, _scores(train)
    coef, intercept = result.coef, result.intercept
    if train.output_scale is None:
        # Fits of scored classes are in units of the scores, those of numbers in units of y.
        coef, intercept = coef / scores[:, None], intercept / scores
    by_output = (
        np.diagonal(held.yy)
        - 2.0 * np.einsum("cj,jc->c", coef, held.xy[S])
        + np.einsum("cj,cj->c", coef @ held.xx[np.ix_(S, S)], coef)
    )
    off = held.y_mean - intercept - coef @ held.x_mean[S]
    about_means = max(float(scores**2 @ by_output), 0.0)
    return about_means + held.weight * float(scores**2 @ off**2)


def _scores(train: Problem) -> Floats:
    """Return the value of each class in its output; ones for numbers."""
    target = train.target
    if target is None or target.scores is None:
        return np.ones(train.n_outputs)
    return target.scores


class Splits:
    """How the rows of a problem are split: into a number of folds, or by a splitter or groups.

    Parameters are those of `make_splits`; a number of folds also serves streams.
    `smallest_training` is the fewest training rows of a fold, as far as it is known before.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> splits = Splits(Problem.from_arrays(*load_iris(return_X_y=True)), None)
    >>> splits.n_folds, splits.smallest_training
    (5, 120)
    """

    def __init__(self, problem: Problem, cv: Any, groups: Any = None) -> None:
        if problem.rows is None and problem.stream is None:
            raise InputError(
                "the problem was made of moments and has no rows for cross-validation",
                parameter="criterion", value="cv",
                hint=("use ", Setting("criterion", "ebic"), ", or make the problem from the table"),
            )  # fmt: skip
        self._given: list[Split] | None = None
        if is_number(cv) and groups is None:
            self.n_folds = _number_of_folds(cv, problem.n_rows)
            self.smallest_training = problem.n_rows - -(-problem.n_rows // self.n_folds)
            return
        if problem.rows is None:
            wrong = "groups" if is_number(cv) else "cv"
            raise InputError(
                (Setting(wrong), " needs the rows in memory, and this table is streamed"),
                parameter=wrong,
                hint="give cv as a number of folds without groups, or call problem.in_memory() "
                "first",
            )  # fmt: skip
        self._given = _splits(problem, cv, groups, problem.weights)
        self.n_folds = len(self._given)
        self.smallest_training = min(len(train) for train, _ in self._given)

    def folds(
        self, problem: Problem, rng: np.random.Generator, *, with_rows: bool = False
    ) -> Iterator[Fold]:
        """Return the folds of the problem, which may have another ridge by now.

        The generator deals rows in memory out at random. Streamed rows go to folds by a hash of
        their values: the split does not depend on their order or parts, and equal rows stay
        together. With `with_rows` training problems have their rows, for methods that read them.
        """
        if self._given is None and problem.rows is None and problem.loss.by_moments:
            return _stream_folds(problem, self.n_folds, rng)
        problem = problem.in_memory()
        splits = self._given or deal_rows(problem, self.n_folds, rng)
        return make_folds(problem, splits, with_rows=with_rows)


def is_number(cv: Any) -> bool:
    """Return whether folds are given as a number, or left to the default."""
    return cv is None or isinstance(cv, (int, np.integer))


def _number_of_folds(cv: int | None, n_rows: int) -> int:
    if n_rows < 2:
        raise InputError(
            f"cross-validation needs at least two rows, and there are {n_rows}", parameter="cv"
        )
    Integer(2, n_rows, none="five folds")("cv", cv)
    return min(N_FOLDS, n_rows) if cv is None else int(cv)


def row_groups(groups: Any, n_rows: int) -> npt.NDArray[Any]:
    """Return the group of each row as an array, or say what is wrong with it."""
    refuse_masked(groups, "groups")
    values = np.asarray(groups)
    if values.shape != (n_rows,):
        raise InputError(
            f"groups must be one label for each of the {n_rows} rows, and its shape is "
            f"{values.shape}",
            parameter="groups",
        )
    if values.dtype.kind in "fOMm":
        missing = np.flatnonzero(np.frompyfunc(is_missing, 1, 1)(values))
        if missing.size:
            raise InputError(
                f"groups has no label for {missing.size} of {n_rows} rows, the first of them row "
                f"{missing[0]}",
                parameter="groups", hint="give a row that is alone a label of its own",
            )  # fmt: skip
    if values.dtype == object:
        try:
            np.unique(values)
        except TypeError as error:
            raise InputError(
                "groups has labels of different types, which cannot be sorted",
                parameter="groups", hint="use numbers only, or text only",
            ) from error  # fmt: skip
    return values


def _group_folds(cv: int | None, groups: npt.NDArray[Any]) -> Any:
    """Return a splitter of whole groups; only the default number is reduced if there are fewer."""
    # Imported here, as below, because it takes longer than all the rest of exactk.
    from sklearn.model_selection import GroupKFold

    found = len(np.unique(groups))
    if found < 2:
        raise InputError(
            "groups has only one group, and cross-validation needs at least two",
            parameter="groups",
        )
    if cv is not None and found < cv:
        raise InputError(
            f"{cv} folds of whole groups need {cv} groups, and there are {found}",
            parameter="cv", value=cv, hint=("use ", Setting("cv", found), " or fewer"),
        )  # fmt: skip
    return GroupKFold(min(N_FOLDS, found) if cv is None else int(cv))


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
    if is_number(cv) and groups is None:
        cv = _stratified(problem, cv, random_state)
    return _splits(problem, cv, groups, problem.row_weights)


def _stratified(problem: Problem, cv: int | None, random_state: object) -> Any:
    """Return the splitter of scikit-learn for a number of folds."""
    from sklearn.model_selection import KFold, StratifiedKFold

    alive, target = _rows_with_weight(problem, problem.row_weights), _table(problem)[1]
    n_folds = _number_of_folds(cv, len(alive))
    if isinstance(random_state, (int, np.integer)):
        # The same number gives the folds that it gives in scikit-learn.
        seed = int(random_state) % 2**32
    else:
        seed = 0 if random_state is None else int(generator(random_state).integers(2**31))
    if target.codes is None:
        return KFold(n_folds, shuffle=True, random_state=seed)
    assert problem.classes is not None
    present, counts = np.unique(target.codes[alive], return_counts=True)
    count = int(counts.min())
    check_lone_class(problem)
    if cv is None:
        n_folds = min(n_folds, count)
    if count < n_folds:
        label = problem.classes[present[counts.argmin()]]
        raise InputError(
            f"class {str(label)!r} has {count} rows, fewer than the {n_folds} folds",
            parameter="cv", value=n_folds,
            hint=("use ", Setting("cv", count), " or fewer, join it with another class, or leave "
                  "its rows out"),
        )  # fmt: skip
    return StratifiedKFold(n_folds, shuffle=True, random_state=seed)


def check_lone_class(problem: Problem) -> None:
    """Raise if a class has one row of non-zero weight, which cannot be trained on and held out."""
    target = problem.target
    if problem.rows is None or target is None or target.codes is None or problem.classes is None:
        return
    alive = _rows_with_weight(problem, problem.row_weights)
    present, counts = np.unique(target.codes[alive], return_counts=True)
    if counts.min() > 1:
        return
    numbers = problem.classes.dtype.kind in "iuf"
    amounts = (", or, if y holds amounts, use ", Setting("task", "regression")) if numbers else ()
    raise InputError(
        f"class {str(problem.classes[present[counts.argmin()]])!r} has 1 row, and needs at least 2 "
        f"to be trained on and held out",
        parameter="y", hint=("join it with another class or leave its row out", *amounts),
    )  # fmt: skip


def _splits(problem: Problem, cv: Any, groups: Any, weights: Floats | None) -> list[Split]:
    """Return the splits of a splitter, of pairs, or of whole groups, without rows of weight 0."""
    from sklearn.model_selection import check_cv

    target, alive = _table(problem)[1], _rows_with_weight(problem, weights)
    y = target.values if target.codes is None else target.codes
    assert y is not None
    labels_of_groups = None if groups is None else row_groups(groups, len(y))
    groups = None if labels_of_groups is None else labels_of_groups[alive]
    if is_number(cv):
        Integer(2, len(alive), none="five folds")("cv", cv)
        cv = _group_folds(cv, groups)
    try:
        splitter = check_cv(cv)
    except (TypeError, ValueError) as error:
        expected = str(PARAMS["cv"].check)
        raise InputError(parameter="cv", value=cv, expected=expected) from error
    labels = y[alive, 0] if y.ndim == 2 and y.shape[1] == 1 else y[alive]
    try:
        with warnings.catch_warnings():
            # The pairs are checked below.
            warnings.filterwarnings("ignore", "The groups parameter is ignored", UserWarning)
            pairs = list(splitter.split(np.zeros((len(alive), 1)), labels, groups))
    except (TypeError, ValueError) as error:
        # How scikit-learn says that a splitter does not suit these rows.
        raise InputError(
            f"{type(cv).__name__} cannot split these {len(alive)} rows: {error}",
            parameter="cv", hint="use a number of folds, or another splitter",
        ) from error  # fmt: skip
    if not pairs:
        raise InputError("cv has no splits", parameter="cv", hint=("use ", Setting("cv", 5)))
    # A splitter sees the rows of non-zero weight alone, pairs have numbers of all rows.
    rows = alive if hasattr(cv, "split") else np.arange(len(y))
    splits = []
    for number, pair in enumerate(pairs, start=1):
        train, test = (rows[part] for part in _checked(pair, number, len(rows)))
        train, test = train[np.isin(train, alive)], test[np.isin(test, alive)]
        if train.size < 2 or test.size == 0:
            raise InputError(
                f"fold {number} has {train.size} training rows and {test.size} test rows of "
                f"weight above zero",
                parameter="cv", hint="use fewer folds",
            )  # fmt: skip
        if labels_of_groups is not None:
            cut = np.intersect1d(labels_of_groups[train], labels_of_groups[test])
            if cut.size:
                raise InputError(
                    f"fold {number} of cv trains on rows of group {str(cut[0])!r} and holds others "
                    f"of it out",
                    parameter="groups",
                    hint="use a number of folds, or a splitter that keeps groups, such as "
                    "GroupKFold",
                )  # fmt: skip
        if target.codes is not None and len(np.unique(target.codes[train])) < 2:
            raise InputError(
                f"all training rows of fold {number} are of one class",
                parameter="cv", hint="use other folds",
            )  # fmt: skip
        splits.append((train, test))
    return splits


def _rows_with_weight(problem: Problem, weights: Floats | None) -> Indices:
    n_rows = _table(problem)[1].n_rows
    return np.arange(n_rows) if weights is None else np.flatnonzero(weights)


def _checked(pair: Any, number: int, n_rows: int) -> Split:
    """Return a pair of row numbers, of numbers or masks."""
    parts = []
    for part in pair if isinstance(pair, Sequence) and len(pair) == 2 else [None]:
        rows = np.asarray(part)
        if rows.dtype == bool and rows.shape == (n_rows,):
            rows = np.flatnonzero(rows)
        whole = rows.ndim == 1 and rows.size > 0 and rows.dtype.kind in "iu"
        if not whole or rows.min() < 0 or rows.max() >= n_rows:
            raise InputError(
                f"split {number} of cv must be a pair (train, test) of row numbers from 0 to "
                f"{n_rows - 1}, at least one in each part",
                parameter="cv",
            )
        parts.append(rows.astype(np.intp))
    train, test = parts
    if np.intersect1d(train, test).size:
        raise InputError(f"split {number} of cv tests rows that it is trained on", parameter="cv")
    return train, test


def training_problem(
    problem: Problem, rows: Indices, *, rebalance: bool = True, gram: GramMode = "auto"
) -> Problem:
    """Return the problem of some rows alone: everything that is learned, is learned from them.

    All steps that train on part of the rows get their problem here. Class weights are computed from
    these rows alone if `rebalance`; otherwise rows keep the weight that they have in the whole
    problem. `gram` says how the Gram matrix is computed.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> problem = Problem.from_arrays(*load_iris(return_X_y=True), ridge=0.5)
    >>> training_problem(problem, np.arange(0, 150, 2))
    Problem(75 rows, 4 features (4 usable), 3 outputs, classification, ridge 0.5)
    """
    table, target = _table(problem)
    weights = None if problem.weights is None else problem.weights[rows]
    if rebalance:
        weights = problem.weights_of(rows)
    part = Problem.from_rows(
        table.take(rows), target.subset(rows), weights, ridge=problem.ridge,
        scale=problem.scaled, memory_limit=problem.memory_limit, gram=gram,
    )  # fmt: skip
    return part.with_settings_of(problem)


def deal_rows(problem: Problem, n_folds: int, rng: np.random.Generator) -> list[Split]:
    """Split the rows of non-zero weight at random, classes spread evenly."""
    alive, target = _rows_with_weight(problem, problem.weights), _table(problem)[1]
    _number_of_folds(n_folds, len(alive))
    shuffled = rng.permutation(alive)
    if target.codes is not None:
        if len(np.unique(target.codes[alive])) == 2:
            check_lone_class(problem)
        shuffled = shuffled[np.argsort(target.codes[shuffled], kind="stable")]
    parts = [np.sort(shuffled[fold::n_folds]) for fold in range(n_folds)]
    return [(np.setdiff1d(alive, part), part) for part in parts]


def make_folds(
    problem: Problem, splits: Sequence[Split], *, with_rows: bool = False
) -> Iterator[Fold]:
    """Make folds of training rows and held-out rows, one after the other.

    Splits may overlap, repeat rows or leave rows out. If every row is held out once, as usual, the
    moments of training rows are sums of those of the other folds. With `with_rows` training
    problems have their rows, for methods that read them.
    """
    alive = _rows_with_weight(problem, problem.weights)
    tests = np.sort(np.concatenate([test for _, test in splits]))
    partition = np.array_equal(tests, alive) and all(
        np.array_equal(np.sort(np.concatenate(pair)), alive) for pair in splits
    )
    n_matrices = (3 if partition else 2) * len(splits)
    if with_rows or not problem.loss.by_moments or not _affords_moments(problem, n_matrices):
        for pair in splits:
            with _in_a_fold():
                # The classes weigh as in the whole table: the losses of folds are comparable.
                train = training_problem(problem, pair[0], rebalance=False)
            test = pair[1]
            weight = len(test) if problem.weights is None else problem.weights[test].sum()
            yield Fold(train, float(weight), None, (problem, pair))
        return
    held = [_moments(problem, test) for _, test in splits]
    rest = leave_one_out(held) if partition else [_moments(problem, train) for train, _ in splits]
    for moments, own, pair in zip(rest, held, splits, strict=True):
        yield Fold(_of_moments(problem, moments), own.weight, own, (problem, pair))


def _affords_moments(problem: Problem, n_matrices: int) -> bool:
    rows, d = _table(problem)[0], problem.n_features
    fits = 8 * d**2 * n_matrices <= problem.memory_limit
    return fits and rows.gram_cost < d * rows.pass_cost


def _moments(problem: Problem, part: Indices) -> Moments:
    rows, target = _table(problem)
    weights = None if problem.weights is None else problem.weights[part]
    return rows.take(part).moments(replace(target.subset(part), scores=None), weights)


@contextmanager
def _in_a_fold() -> Iterator[None]:
    """Tell what is wrong with training rows from what is wrong with the table."""
    try:
        yield
    except ConstantTargetError as error:
        raise InputError(
            "y is the same in all training rows of a fold", parameter="cv",
            hint=("use other folds, or ", Setting("criterion", "ebic"), " and a number as ",
                  Setting("ridge")),
        ) from error  # fmt: skip


@_in_a_fold()
def _of_moments(problem: Problem, moments: Moments) -> Problem:
    train = Problem.from_moments(
        moments, classes=problem.classes, ridge=problem.ridge, scale=problem.scaled,
        feature_names=problem.given_names,
    )  # fmt: skip
    return train.with_settings_of(problem)


def _stream_folds(problem: Problem, n_folds: int, rng: np.random.Generator) -> Iterator[Fold]:
    """Split streamed rows by their values: one pass for all folds if memory allows it."""
    stream, seed = problem.stream, int(rng.integers(2**63))
    assert stream is not None
    names, encoding = stream.feature_names, problem.target_encoding
    if 8 * problem.n_features**2 * 3 * n_folds <= problem.memory_limit:
        found = stream.reduce(SplitReducer(names, encoding, n_folds, seed))
        parts = [part for part in found if part is not None]
        if len(parts) < 2:
            raise _too_few_values()
        for held, rest in zip(parts, leave_one_out(parts), strict=True):
            yield Fold(_of_moments(problem, rest), held.weight, held)
        return
    for fold in range(n_folds):
        own, others = stream.reduce(SplitReducer(names, encoding, n_folds, seed, only_fold=fold))
        if others is None:
            raise _too_few_values()
        if own is not None:
            yield Fold(_of_moments(problem, others), own.weight, own)


def _too_few_values() -> InputError:
    return InputError(
        "the rows have too few different values to be split by them", parameter="cv",
        hint=("use ", Setting("criterion", "ebic"), " and a number as ", Setting("ridge")),
    )  # fmt: skip
