"""How many columns: the whole path of sizes, judged by cross-validation or by a criterion."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from exactk.errors import InputError
from exactk.methods.base import Method
from exactk.model_selection.criteria import CRITERIA, PERFECT, check_criterion, criterion_values
from exactk.model_selection.cross_validation import HeldOut, Splits, check_cv
from exactk.model_selection.path_runner import Clock, PathRunner
from exactk.model_selection.ridge import find_ridge
from exactk.model_selection.scoring import FoldScorer
from exactk.params import Choice, Integer
from exactk.problem.problem import Problem
from exactk.result import Path, Result, Status
from exactk.search.feasibility import InfeasibleError
from exactk.types import Criterion, Floats, Rule
from exactk.utils.records_table import RecordsTable, notebook_html

__all__ = [
    "AutoK",
    "AutoKResult",
    "SizeScores",
    "by_criterion",
    "by_folds",
    "check_size_options",
    "choose_k",
    "largest_size",
    "pick_size",
    "weighted_mean",
]


@dataclass(frozen=True, eq=False)
class SizeScores:
    """What each size is worth.

    Attributes
    ----------
    sizes : list of int
    values : ndarray
        What the choice is made by.
    means, standard_errors : ndarray
        Of the values over folds; nan without folds.
    signed : ndarray
        The values, the smaller the better.
    se_difference : ndarray
        Standard error, over folds, of the difference to the best size.
    """

    sizes: list[int]
    values: Floats
    means: Floats
    standard_errors: Floats
    signed: Floats
    se_difference: Floats


def by_criterion(problem: Problem, path: Path, criterion: str) -> SizeScores:
    """Judge the sizes of a path by a criterion of its fits on all rows."""
    values = criterion_values(problem, path, criterion)
    none = np.full(len(path), np.nan)
    return SizeScores([result.k for result in path], values, none, none, values, none)


def by_folds(
    problem: Problem,
    path: Path,
    k_max: int,
    splits: Splits,
    scorer: FoldScorer | None,
    search: PathRunner,
    clock: Clock,
) -> SizeScores:
    """Judge each size by its mean over the folds, each of which has a path of its own.

    Sizes that some fold cannot have are left out.
    """
    found: list[dict[int, float]] = []
    weights: list[float] = []
    for fold in splits.folds(problem, search.rng, with_rows=search.kind.needs_rows):
        left = max(splits.n_folds - len(found), 1)
        own = _fold_path(fold.train, k_max, search, clock.share(left + 1))
        errors = scorer or _mean_errors
        values = errors(fold, own).tolist() if len(own) else []
        found.append(dict(zip([result.k for result in own], values, strict=True)))
        weights.append(fold.weight)
    sizes = [result.k for result in path if all(result.k in fold for fold in found)]
    if not sizes:
        ruled = problem.rules is not None
        raise InputError(
            f"no size from 1 to k_max={k_max} can be had in every fold"
            f"{' under the constraints' if ruled else ''}; give fewer folds, "
            f"{'relax a constraint, ' if ruled else ''}or use criterion='ebic'"
        )
    table = np.array([[fold[k] for k in sizes] for fold in found])
    # The squared error is a mean over rows, a score one over folds.
    shares = np.array(weights) if scorer is None else None
    means, spread = weighted_mean(table, shares)
    signed = -means
    if scorer is None:
        # Below this an error is rounding, and among perfect fits the smallest is the best.
        signed = np.maximum(means, PERFECT * problem.objective([]) / problem.weight)
    best = int(np.argmin(signed))
    # What a fold has hard rows for is hard for every size, and cancels.
    _, to_best = weighted_mean(table - table[:, best : best + 1], shares)
    return SizeScores(sizes, means, means, spread, signed, to_best)


def _fold_path(
    train: Problem, k_max: int, search: PathRunner, seconds: float | None
) -> Sequence[Result]:
    """The path of a fold; without results where its rows allow no size up to k_max."""
    most = min(k_max, train.n_usable)
    if most == 0:
        return ()
    try:
        return search.path(train, most, seconds, fold=True)
    except InfeasibleError:
        # What the rules ask for may be constant, or correlated, in the rows of one fold.
        return ()


def weighted_mean(values: Floats, weights: Floats | None = None) -> tuple[Floats, Floats]:
    """Return the mean over rows of a table, and its standard error.

    With K rows of weights w and values e, the standard error of the mean ē is
    √(Σ w²(e − ē)² · K/(K − 1)) / Σw: that of a plain mean where weights are equal.

    Parameters
    ----------
    values : ndarray of shape (K, m)
    weights : ndarray of shape (K,) or None

    Returns
    -------
    mean, standard_error : ndarray of shape (m,)
        The standard error of a single row is nan.

    Examples
    --------
    >>> mean, error = weighted_mean(np.array([[1.0], [3.0]]), np.array([3.0, 1.0]))
    >>> mean.tolist(), error.tolist()
    ([1.5], [0.75])
    """
    n = len(values)
    w = np.ones(n) if weights is None else weights
    mean: Floats = np.average(values, axis=0, weights=w)
    if n < 2:
        return mean, np.full_like(mean, np.nan)
    squares = (w[:, None] ** 2 * (values - mean) ** 2).sum(axis=0)
    return mean, np.sqrt(squares * n / (n - 1)) / w.sum()


def _mean_errors(fold: HeldOut, results: Sequence[Result]) -> Floats:
    return fold.errors(results) / fold.weight


# Largest size that is tried unless the user names one.
MOST_SIZES = 50
CHOICES = ("cv", *CRITERIA)
RULES = ("one_se", "paired", "best")
COLUMNS = (
    "k", "features", "support", "objective", "criterion", "mean", "standard_error", "added",
    "removed", "chosen",
)  # fmt: skip


class AutoK(BaseEstimator):
    """How ``k="auto"`` chooses the number of features; ``"auto"`` is short for ``AutoK()``.

    Parameters
    ----------
    k_max : int or None
        Largest number of features to try. None is 50, or fewer for a small table: at most all
        candidate columns, and half of the degrees of freedom of the smallest training set.
    criterion : {"cv", "bic", "ebic", "aicc", "cp"}
        Cross-validation, or an information criterion of the fits to all rows.
    cv : int, scikit-learn splitter, iterable of (train, test), or None
        Folds of criterion "cv"; None is five, or fewer if there are fewer rows or groups.
    rule : {"one_se", "paired", "best"}
        "one_se" chooses the smallest number of features whose mean is within one standard error
        of the best mean. "paired" uses the standard error of the difference between the two, fold
        by fold. "best" chooses the number with the best mean.
    scoring : str, callable or None
        With criterion "cv", a score of scikit-learn in place of the squared error.
    estimator : estimator, str or None
        Estimator that is trained on the selected features and scored. None is logistic
        regression for classes, ridge regression for numbers.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from exactk import AutoK, TopKSelector
    >>> X, y = load_diabetes(return_X_y=True)
    >>> TopKSelector(k=AutoK(criterion="bic"), task="regression").fit(X, y).k_
    5
    """

    def __init__(
        self,
        *,
        k_max: int | None = None,
        criterion: Criterion = "cv",
        cv: Any = None,
        rule: Rule = "one_se",
        scoring: Any = None,
        estimator: Any = None,
    ) -> None:
        self.k_max = k_max
        self.criterion = criterion
        self.cv = cv
        self.rule = rule
        self.scoring = scoring
        self.estimator = estimator


@dataclass(frozen=True, eq=False)
class AutoKResult:
    """A size, why it was chosen, and the columns.

    Attributes
    ----------
    k : int
        The size chosen.
    k_max : int
        The largest size that was tried.
    criterion : str
    rule : str
        "best" wherever there are no folds.
    scoring : str or None
        Name of the score, the larger the better, that took the place of the squared error.
    n_folds : int
        0 where the criterion needs none.
    ridge : float
        Of the fits at all sizes.
    status : Status
        ``time_limit`` where any of the searches was ended by it, else that of `result`.
    path : Path
        The best columns found at every size.
    result : Result
        Those at k.
    table : RecordsTable
        One row a size: ``k``, ``features`` (names in the user's table, and of groups that enter
        together) and ``support`` (columns of the user's table), ``objective``,
        ``criterion`` (what the choice was made by), its ``mean`` and ``standard_error`` over
        folds (nan without folds), the names ``added`` and ``removed`` since the row before, and
        whether the size was ``chosen``.
    message : str
        A sentence where the best size is the largest that was tried: there may be better ones.
    """

    k: int
    k_max: int
    criterion: str
    rule: str
    scoring: str | None
    n_folds: int
    ridge: float
    status: Status
    path: Path
    result: Result
    table: RecordsTable
    message: str = ""

    def __repr__(self) -> str:
        """Return one line."""
        return f"AutoKResult(k={self.k} of 1..{self.k_max}, {self.criterion}, {self.rule})"

    def _repr_html_(self) -> str:
        """Return the table for a notebook."""
        return notebook_html(self.table, repr(self))

    def to_frame(self, library: str = "pandas") -> Any:
        """Return `table` as a frame of pandas, or of ``library="polars"``."""
        return self.table.to_frame(library)

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values, fit for JSON: the result and the table, not the whole path.

        NaN is None.
        """
        named = ("k", "k_max", "criterion", "rule", "scoring", "n_folds", "ridge")
        out: dict[str, Any] = {name: getattr(self, name) for name in named}
        out["status"], out["message"] = str(self.status), self.message
        return {**out, "result": self.result.to_dict(), "table": json.loads(self.table.to_json())}

    def to_json(self, **options: Any) -> str:
        """Return the choice as JSON; options go to ``json.dumps``."""
        return json.dumps(self.to_dict(), **options)


def choose_k(
    problem: Problem,
    k_max: int | None = None,
    *,
    criterion: str = "cv",
    method: str | Method = "exchange",
    cv: Any = None,
    rule: str = "one_se",
    ridge: str | float | None = None,
    effort: float | None = None,
    time_limit: float | None = None,
    random_state: object = None,
    verbose: int = 0,
    scoring: Any = None,
    estimator: Any = None,
    groups: Any = None,
    **options: Any,
) -> AutoKResult:
    """Choose how many columns, and which.

    The best columns of every size 1..k_max are found on all rows. By cross-validation each fold
    then has a path of its own, found on its training rows alone, and the error of each size on
    the rows held out decides.

    Parameters
    ----------
    problem : Problem
    k_max : int or None
        The largest size to try; where there are fewer columns, all of them. None is 50, or less
        where columns or rows are few: at most all candidates, and half of the degrees of freedom
        of the smallest training set, (n − 1) / 2.
    criterion : {"cv", "bic", "ebic", "aicc", "cp"}
        Cross-validation, or a criterion of the fits on all rows (see
        `exactk.model_selection.criteria.criterion_values`), which needs no rows and no folds.
    method : str or Method
        As in `exactk.solve`.
    cv : int, splitter of scikit-learn, iterable of (train, test), or None
        Folds; None is five, or fewer where there are fewer rows or `groups`. Rows in memory are
        dealt out at random with classes spread evenly, those of files and clusters by their
        values. A splitter needs rows in memory, and is shown those of non-zero weight.
    rule : {"one_se", "paired", "best"}
        "one_se" takes the smallest size whose mean is within one standard error of the best mean,
        that of the best size over folds. "paired" takes the standard error of the difference
        between the two sizes, fold by fold: smaller, for what makes a fold hard is common to both.
        Where there is none (other criteria, a single split) they take the best, too.
    ridge : "auto", "cv", float or None
        None is that of the problem; "cv" is cross-validated at k_max, before the sizes are.
    effort : float or None
        Of the search on all rows, as in `exactk.solve`. The folds are searched by greedy steps
        and swaps alone.
    time_limit : float or None
        Seconds for all of it. Once they are over, what is left is done by greedy steps alone.
    random_state : int, Generator, RandomState or None
        Seed of the split and of the search.
    verbose : int
        1 shows progress bars on a terminal.
    scoring : str, callable or None
        With criterion "cv" a score in place of the squared error, the larger the better, of an
        estimator that is fitted anew on the columns of each size in each fold.
    estimator : estimator, str or None
        What is scored, as in `exactk.score_selection`: None is logistic regression, or ridge
        regression for numbers, on standardised columns. Without `scoring` its own ``score``
        counts.
    groups : array-like or None
        One for each row, for the splitter; with a number of folds, rows of one group stay
        together.
    **options
        Parameters of the method.

    Returns
    -------
    AutoKResult

    Raises
    ------
    KeyboardInterrupt
        After Ctrl-C: a choice among sizes that were not all tried would be no choice.

    Notes
    -----
    Only sizes that all folds can have count: a column may be constant in a training set, and the
    constraints may then not be kept. At least one column is chosen, also where none helps. The
    squared error is a mean over rows, a score a mean over folds, and the standard error is that of
    this mean.

    Examples
    --------
    >>> import exactk
    >>> from sklearn.datasets import load_diabetes
    >>> problem = exactk.Problem.from_arrays(*load_diabetes(return_X_y=True), task="regression")
    >>> choice = choose_k(problem, ridge="auto")
    >>> choice
    AutoKResult(k=5 of 1..10, cv, one_se)
    >>> choice.result.feature_names
    ('x1', 'x2', 'x3', 'x6', 'x8')
    >>> choose_k(problem, criterion="bic").k
    5
    """
    _check_words(problem, criterion, rule, scoring, estimator, cv, groups)
    clock = Clock(time_limit)
    search = PathRunner(method, effort, random_state, verbose, options)
    by_rows = search.kind.needs_rows or not problem.loss.by_moments
    if by_rows and problem.stream is not None:
        problem = problem.in_memory(verbose=verbose)
    splits = Splits(problem, cv, groups) if criterion == "cv" else None
    scorer = (
        FoldScorer(problem, scoring, estimator)
        if scoring is not None or estimator is not None
        else None
    )
    k_max = largest_size(problem, k_max, splits)
    if ridge is not None:
        found = find_ridge(ridge, problem, k_max, random_state=search.seed)
        problem = problem.with_ridge(found)
    n_folds = 0 if splits is None else splits.n_folds
    path = search.path(problem, k_max, clock.share(n_folds + 2))
    if splits is None:
        scores = by_criterion(problem, path, criterion)
    else:
        scores = by_folds(problem, path, k_max, splits, scorer, search, clock)
    spread = scores.se_difference if rule == "paired" else scores.standard_errors
    k = pick_size(scores.sizes, scores.signed, spread, rule)
    result = search.refine_at(problem, path, k, clock.share(1))
    path = Path([result if other.k == k else other for other in path])
    if splits is None and search.improved:
        scores = by_criterion(problem, path, criterion)
    if splits is None:
        rule = "best"
    return AutoKResult(
        k=k, k_max=k_max, criterion=criterion, rule=rule, n_folds=n_folds, ridge=problem.ridge,
        scoring=None if scorer is None else scorer.name,
        status=Status.TIME_LIMIT if search.out_of_time else result.status,
        path=path, result=result, table=_table(problem, path, scores, k),
        message=_best_is_largest(problem, scores, k_max),
    )  # fmt: skip


def pick_size(
    sizes: Sequence[int],
    losses: Sequence[float] | Floats,
    standard_errors: Sequence[float] | Floats,
    rule: str,
) -> int:
    """Return the size with the least loss, or the smallest within a standard error of it.

    By "paired" the standard errors are those of the differences to the best.

    Examples
    --------
    >>> pick_size([1, 2, 3], [5.0, 2.1, 2.0], [0.3, 0.3, 0.3], "one_se")
    2
    >>> pick_size([1, 2, 3], [5.0, 2.1, 2.0], [0.3, 0.05, 0.0], "paired")
    3
    >>> pick_size([1, 2, 3], [5.0, 2.1, 2.0], [0.3, 0.3, 0.3], "best")
    3
    """
    values = np.asarray(losses, dtype=np.float64)
    best = int(np.argmin(values))
    if not np.isfinite(values[best]):
        raise InputError(
            "there are too few rows for any size by this criterion; use criterion='ebic' or "
            "criterion='cv'"
        )
    spread = np.asarray(standard_errors, dtype=np.float64)
    if rule == "best" or not np.isfinite(spread[best]):
        return int(sizes[best])
    allowed = spread if rule == "paired" else spread[best]
    return int(sizes[int(np.argmax(values <= values[best] + allowed))])


def check_size_options(criterion: Any, rule: Any, k_max: Any, cv: Any) -> None:
    """Raise for words and numbers that no problem allows, before one is made.

    Examples
    --------
    >>> check_size_options("bic", 1, None, None)
    Traceback (most recent call last):
    ...
    exactk.errors.InputError: rule must be 'one_se', 'paired' or 'best', not 1
    """
    Choice(options=CHOICES)("criterion", criterion)
    Choice(options=RULES)("rule", rule)
    Integer(1, none="a default")("k_max", k_max)
    check_cv(cv)


def _check_words(
    problem: Problem, criterion: str, rule: str, scoring: Any, estimator: Any, cv: Any, groups: Any
) -> None:
    if not isinstance(problem, Problem):
        raise InputError(f"problem must be an exactk.Problem, not {type(problem).__name__}")
    check_size_options(criterion, rule, None, None)
    if criterion != "cv":
        check_criterion(problem, criterion)
    for_folds = {"scoring": scoring, "estimator": estimator, "cv": cv, "groups": groups}
    for name, value in for_folds.items():
        if criterion != "cv" and value is not None:
            raise InputError(
                f"{name} is for cross-validation, and criterion={criterion!r} needs none; leave "
                f"{name} out, or give criterion='cv'"
            )


def largest_size(problem: Problem, k_max: int | None, splits: Splits | None = None) -> int:
    """Return the largest size to try: what was given, or the default that `choose_k` names.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> largest_size(Problem.from_arrays(*load_iris(return_X_y=True)), None)
    4
    """
    Integer(1, none="a default")("k_max", k_max)
    problem.check_k(1)
    if k_max is not None:
        # A limit that cannot be reached is kept; training rows may have fewer columns than all.
        return min(int(k_max), problem.n_usable)
    rules = problem.rules
    rows = problem.n_rows if splits is None else splits.smallest_training
    there = len(problem.candidates) if rules is None else rules.size_of(problem.candidates)
    must = 1 if rules is None else max(1, rules.size_of(rules.include))
    return max(min(there, MOST_SIZES, (rows - 1) // 2), must)


def _best_is_largest(problem: Problem, scores: SizeScores, k_max: int) -> str:
    """Say so where the best size is the largest that was tried, and more could have been."""
    best = scores.sizes[int(np.argmin(scores.signed))]
    if best < scores.sizes[-1] or best >= len(problem.candidates):
        return ""
    return (
        f"of the sizes tried the largest, k = {best}, is the best: a larger k_max than {k_max} may "
        f"give another choice"
    )


def _table(problem: Problem, path: Path, scores: SizeScores, k: int) -> RecordsTable:
    place = {size: i for i, size in enumerate(scores.sizes)}
    column = _places(problem)
    rows, before = [], frozenset[str]()
    for result in path:
        if result.k not in place:
            continue
        i = place[result.k]
        names = sorted(result.selected, key=column.__getitem__)
        added = [name for name in names if name not in before]
        values = (scores.values[i], scores.means[i], scores.standard_errors[i])
        chosen = (names, problem.table_columns(result.support), result.objective)
        removed = sorted(before.difference(names), key=column.__getitem__)
        rows.append((result.k, *chosen, *values, added, removed, result.k == k))
        before = frozenset(names)
    return RecordsTable(COLUMNS, rows)


def _places(problem: Problem) -> dict[str, int]:
    """Where columns and groups stand in the user's table; a group where its first column does."""
    places = {name: j for j, name in enumerate(problem.original_names)}
    for group in () if problem.rules is None else problem.rules.feature_groups:
        places[group.name] = int(problem.input_columns[min(group.columns)])
    return places
