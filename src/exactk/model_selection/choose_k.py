"""How many features: the best set of every size, judged by cross-validation or a criterion."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning

from exactk.errors import InputError, Setting
from exactk.methods import registry
from exactk.methods.base import Method, generator
from exactk.model_selection.criteria import PERFECT, check_criterion, criterion_values
from exactk.model_selection.cross_validation import Fold, Splits
from exactk.model_selection.scoring import FoldScorer
from exactk.params import validated
from exactk.problem.constraints import Rules
from exactk.problem.problem import Problem
from exactk.question import largest_size, read_problem
from exactk.result import Path, Result, Status
from exactk.search.feasibility import InfeasibleError
from exactk.solver import solve, solve_path
from exactk.types import Criterion, Floats, Rule
from exactk.utils.records_table import RecordsTable, TableResult

__all__ = ["FOLD_EFFORT", "AutoK", "AutoKResult", "SizeScores", "choose_k"]

# Folds are searched by greedy steps and swaps alone: each of them would pay for more.
FOLD_EFFORT = 0.0
# What is worth a warning at the size that is chosen.
WARNINGS = {
    Status.RANK_DEFICIENT: UserWarning, Status.FAILED: UserWarning,
    Status.MAX_ITER: ConvergenceWarning,
}  # fmt: skip
COLUMNS = (
    "k", "features", "support", "objective", "criterion", "mean", "standard_error", "added",
    "removed", "chosen",
)  # fmt: skip


class AutoK(BaseEstimator):
    """How ``k="auto"`` chooses the number of features; ``"auto"`` is short for ``AutoK()``.

    Parameters
    ----------
    k_max, criterion, cv, rule, scoring, estimator
        As in `choose_k`.

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
class AutoKResult(TableResult):
    """A number of features, why it was chosen, and the features.

    Attributes
    ----------
    k : int
        Number of features chosen, or the largest size found; see `is_chosen`.
    k_max : int
        Largest number of features that was requested.
    criterion : str
    rule : str
        "best" if there are no folds.
    scoring : str or None
        Name of the score, the larger the better, that replaces the squared error.
    n_folds : int
        Folds that were finished; 0 without cross-validation.
    ridge : float
        Of the fits at all sizes.
    status : Status
        ``interrupted`` after Ctrl-C; ``time_limit`` if it ended any of the searches; otherwise
        that of `result`.
    path : Path
        The best features found at every size.
    result : Result
        Those at k.
    table : RecordsTable
        One row for each size: ``k``, ``features`` (names, of groups if columns enter together) and
        ``support`` (columns of the user's table), ``objective``, ``criterion`` (what the choice is
        made by), its ``mean`` and ``standard_error`` over folds (nan without folds), the names
        ``added`` and ``removed`` since the row before, and whether the size was ``chosen``.
    message : str
        One sentence for each fact that the user should know, else empty.
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

    @property
    def is_chosen(self) -> bool:
        """False after Ctrl-C before any fold was finished: k is the largest size found."""
        return self.criterion != "cv" or self.n_folds > 0

    def __repr__(self) -> str:
        """Return one line."""
        said = f"; {self.message}" if self.message else ""
        how = f"{self.criterion}, {self.rule}" if self.is_chosen else "largest size found"
        return f"AutoKResult(k={self.k} of 1..{self.k_max}, {how}{said})"

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values, fit for JSON: the result and the table, not the whole path.

        NaN is None.
        """
        named = ("k", "k_max", "criterion", "rule", "scoring", "n_folds", "is_chosen", "ridge",
                 "message")  # fmt: skip
        return {
            **{name: getattr(self, name) for name in named},
            "status": str(self.status),
            "result": self.result.to_dict(),
            "table": self.table.to_plain(),
        }

    def plot(self, ax: Any = None) -> Any:
        """Draw the criterion of each size and return the matplotlib Axes."""
        from exactk.plots.path import PathDisplay

        return PathDisplay(self).plot(ax)


@validated
def choose_k(
    X: Any,
    y: Any = None,
    *,
    k_max: int | None = None,
    criterion: Criterion = "cv",
    cv: Any = None,
    rule: Rule = "one_se",
    scoring: Any = None,
    estimator: Any = None,
    method: str | Method = "exchange",
    ridge: Any = None,
    groups: Any = None,
    effort: float | None = None,
    time_limit: float | None = None,
    random_state: Any = None,
    verbose: int = 0,
    sample_weight: Any = None,
    task: Any = "auto",
    loss: Any = None,
    class_weight: Any = None,
    constraints: Any = None,
) -> AutoKResult:
    """Choose how many features to select, and which.

    The best features of every size 1..k_max are found on all rows. For cross-validation each fold
    gets a path of its own, found on its training rows alone, and the loss of each size on the
    held-out rows decides.

    Parameters
    ----------
    X : array-like, sparse matrix, frame, Dask collection or Problem
    y : array-like or None
    k_max : int or None
        Largest size to try; all columns if there are fewer. None is 50, or fewer for a small
        table: at most all candidates, and half of the degrees of freedom of the smallest training
        set, (n − 1) / 2.
    criterion : {"cv", "bic", "ebic", "aicc", "cp"}
        Cross-validation, or an information criterion of the fits to all rows (see
        `exactk.model_selection.criteria.criterion_values`), computed without splitting rows.
    cv : int, scikit-learn splitter, iterable of (train, test), or None
        Folds; None is five, or fewer if there are fewer rows or groups. Rows in memory are dealt
        out at random, classes spread evenly; streamed rows by their values. A splitter needs rows
        in memory and sees those of non-zero weight.
    rule : {"one_se", "paired", "best"}
        "one_se" chooses the smallest size whose mean is within one standard error of the best
        mean. "paired" uses the standard error of the difference between the two sizes, fold by
        fold, which is smaller because hard rows are hard for both. "best" chooses the size with
        the best mean, as all do if there are no standard errors.
    scoring : str, callable or None
        With criterion "cv", a score of scikit-learn (the larger the better) in place of the
        squared error, of an estimator that is trained in each fold on the features of each size.
    estimator : estimator, str or None
        What is trained and scored, as in `exactk.evaluate`. Without `scoring` its own ``score``
        counts.
    method : str or Method
        As in `exactk.solve`.
    ridge : "auto", "cv", float or None
        None is the ridge of a Problem, or "auto" for a table; "cv" is cross-validated at k_max.
    groups : array-like or None
        One label for each row. Rows of one group stay together.
    effort : float or None
        Search effort on all rows. Folds are searched by greedy steps and swaps alone.
    time_limit : float or None
        Maximum time in seconds. After it, what is left is done by greedy steps alone.
    random_state : int, Generator, RandomState or None
        Seed of the folds and of the search. None is a fixed seed.
    verbose : int
        1 shows progress bars on a terminal.
    sample_weight, task, loss, class_weight, constraints
        As in `TopKSelector`; loss, class weights and constraints of a Problem are kept unless
        others are given.

    Returns
    -------
    AutoKResult
        After Ctrl-C: a choice among the sizes that were found, by the folds that were finished.

    Raises
    ------
    KeyboardInterrupt
        Ctrl-C came before any size was found.

    Notes
    -----
    A size counts only if it is feasible in every fold: a column may be constant in training rows,
    or the constraints too strict. At least one feature is chosen, even if none helps. The squared
    error is a mean over rows, a score a mean over folds, and so is its standard error.

    Examples
    --------
    >>> import exactk
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> choice = choose_k(X, y, task="regression")
    >>> choice
    AutoKResult(k=5 of 1..10, cv, one_se)
    >>> choice.result.feature_names
    ('sex', 'bmi', 'bp', 's3', 's5')
    >>> choose_k(X, y, task="regression", criterion="bic").k
    5
    """
    search = _Search(method, effort, time_limit, random_state, verbose)
    problem = read_problem(
        X, y, sample_weight=sample_weight, task=task, loss=loss, class_weight=class_weight,
        constraints=constraints,
    )  # fmt: skip
    if ridge is None and not isinstance(X, Problem):
        ridge = "auto"
    if criterion != "cv":
        check_criterion(problem, criterion)
        for_folds = {"cv": cv, "scoring": scoring, "estimator": estimator, "groups": groups}
        for name, value in for_folds.items():
            of_ridge = name == "groups" and ridge == "cv"
            if value is not None and not of_ridge:
                raise InputError(
                    f"{name} is for cross-validation, and criterion is {criterion!r}",
                    parameter=name, hint=("leave it out, or use ", Setting("criterion", "cv")),
                )  # fmt: skip
    if problem.rows is None and (search.kind.needs_rows or not problem.loss.by_moments):
        problem = problem.in_memory(verbose=verbose)
    splits = Splits(problem, cv, groups) if criterion == "cv" else None
    scored = scoring is not None or estimator is not None
    scorer = FoldScorer(problem, scoring, estimator) if scored else None
    k_max = largest_size(problem, k_max, None if splits is None else splits.smallest_training)
    if ridge is not None:
        problem = problem.with_ridge(ridge, k_max, random_state=search.seed, groups=groups)
    path = search.path(problem, k_max, 2 if splits is None else splits.n_folds + 2)
    if splits is None:
        scores = _by_criterion(problem, path, criterion)
    else:
        scores = _by_folds(problem, path, k_max, splits, scorer, search)
    k = scores.pick(rule)
    result = search.refine(problem, path, k)
    path = Path([result if other.k == k else other for other in path])
    if splits is None:
        scores = _by_criterion(problem, path, criterion)
    return AutoKResult(
        k=k, k_max=k_max, criterion=criterion, rule="best" if splits is None else rule,
        n_folds=scores.n_folds, ridge=problem.ridge,
        scoring=None if scorer is None else scorer.name, status=search.status or result.status,
        path=path, result=result, table=_table(problem, path, scores, k),
        message=_message(problem, scores, splits, search),
    )  # fmt: skip


class _Search:
    """The searches of one choice: a method, its effort and seed, and the time that is left.

    `status` is ``interrupted`` or ``time_limit`` if that ended a search, else None.
    """

    def __init__(
        self, method: Any, effort: float | None, time_limit: float | None, random_state: Any,
        verbose: int,
    ) -> None:  # fmt: skip
        self._end = None if time_limit is None else time.perf_counter() + time_limit
        self.rng = generator(random_state)
        # A generator would make a fold depend on the folds before it; a number does not.
        plain = random_state is None or isinstance(random_state, (int, np.integer))
        self.seed = random_state if plain else int(self.rng.integers(2**31))
        self.kind = registry.method_class(method) if isinstance(method, str) else type(method)
        known = self.kind.option_names()
        options: dict[str, Any] = {} if effort is None else {"effort": effort}
        if self.seed is not None and "random_state" in known:
            options["random_state"] = self.seed
        self._method, self._verbose, self._options = method, verbose, options
        self._in_folds = {**options, "effort": FOLD_EFFORT} if "effort" in known else options
        self.status: Status | None = None

    @property
    def interrupted(self) -> bool:
        """Whether the user has stopped it; there is no search after that."""
        return self.status == Status.INTERRUPTED

    def path(self, problem: Problem, k_max: int, parts: int, *, in_fold: bool = False) -> Path:
        """Return the path of a problem, as the first of so many parts of the work left."""
        options = self._in_folds if in_fold else self._options
        with warnings.catch_warnings():
            # Only the size that is chosen deserves a warning.
            warnings.simplefilter("ignore", UserWarning)
            path = solve_path(
                problem, k_max, self._method, time_limit=self._share(parts),
                verbose=self._verbose, **options,
            )  # fmt: skip
        for result in path:
            self._watch(result)
        if in_fold and self.interrupted:
            # Part of a path does not judge the sizes.
            raise KeyboardInterrupt
        return path

    def refine(self, problem: Problem, path: Path, k: int) -> Result:
        """Return the result at k, searched as long as if k had been given."""
        found = path.at(k)
        if found.status in WARNINGS:
            warnings.warn(found.message, WARNINGS[found.status], stacklevel=4)
        settled = found.status in (*WARNINGS, Status.OPTIMAL)
        if found.method != "exchange" or settled or self.interrupted:
            return found
        try:
            again = solve(
                problem, k, self._method, time_limit=self._share(1), verbose=self._verbose,
                init=found.support, **self._options,
            )  # fmt: skip
        except KeyboardInterrupt:
            self.status = Status.INTERRUPTED
            return found
        self._watch(again)
        return again if again.objective <= found.objective else found

    def _share(self, parts: int) -> float | None:
        """Return the seconds of the next of so many parts; hardly any if the time is over."""
        return None if self._end is None else max((self._end - time.perf_counter()) / parts, 1e-9)

    def _watch(self, result: Result) -> None:
        if result.status == Status.INTERRUPTED:
            self.status = Status.INTERRUPTED
        elif result.status == Status.TIME_LIMIT and not self.interrupted:
            self.status = Status.TIME_LIMIT


@dataclass(frozen=True, eq=False)
class SizeScores:
    """The values of the sizes, also with the best as the smallest, and their standard errors.

    Standard errors are over folds, of the values and of their differences to the best; nan without
    folds.
    """

    sizes: list[int]
    values: Floats
    signed: Floats
    standard_errors: Floats
    se_difference: Floats
    n_folds: int = 0

    def pick(self, rule: str) -> int:
        """Return the size that a rule chooses, or the largest if nothing is known of them."""
        if np.isnan(self.signed).all():
            return self.sizes[-1]
        best = int(np.argmin(self.signed))
        if not np.isfinite(self.signed[best]):
            raise InputError(
                "there are too few rows for any size by this criterion", parameter="criterion",
                hint=("use ", Setting("criterion", "ebic"), " or ", Setting("criterion", "cv")),
            )  # fmt: skip
        if rule == "best" or not np.isfinite(self.standard_errors[best]):
            return self.sizes[best]
        allowed = self.se_difference if rule == "paired" else self.standard_errors[best]
        return self.sizes[int(np.argmax(self.signed <= self.signed[best] + allowed))]


def _by_criterion(problem: Problem, path: Path, criterion: str) -> SizeScores:
    """Score the sizes of a path by a criterion of its fits to all rows."""
    values = criterion_values(problem, path, criterion)
    unknown = np.full(len(path), np.nan)
    return SizeScores(path.sizes, values, values, unknown, unknown)


def _by_folds(
    problem: Problem, path: Path, k_max: int, splits: Splits, scorer: FoldScorer | None,
    search: _Search,
) -> SizeScores:  # fmt: skip
    """Score each size by its mean over the folds that were finished; nan if none was.

    Sizes that are not feasible in some fold are left out.
    """
    unknown = np.full(len(path), np.nan)
    nothing = SizeScores(path.sizes, unknown, unknown, unknown, unknown)
    if search.interrupted:
        return nothing
    done: list[tuple[dict[int, float], float]] = []
    try:
        for fold in splits.folds(problem, search.rng, with_rows=search.kind.needs_rows):
            own: Sequence[Result] = ()
            if most := min(k_max, fold.train.n_usable):
                parts = max(splits.n_folds - len(done), 1) + 1
                # Columns that the constraints need may be constant or correlated in these rows.
                with suppress(InfeasibleError):
                    own = search.path(fold.train, most, parts, in_fold=True)
            values = (scorer or _mean_errors)(fold, own).tolist() if own else []
            found = dict(zip([result.k for result in own], values, strict=True))
            # The squared error is a mean over rows, a score a mean over folds.
            done.append((found, fold.weight if scorer is None else 1.0))
    except KeyboardInterrupt:
        search.status = Status.INTERRUPTED
    if not done:
        return nothing
    sizes = [k for k in path.sizes if all(k in found for found, _ in done)]
    if not sizes:
        ruled = problem.rules is not None
        raise InputError(
            f"no size from 1 to {k_max} is feasible in every fold",
            parameter="constraints" if ruled else "cv",
            hint=("relax a constraint, " if ruled else "", "use fewer folds, or use ",
                  Setting("criterion", "ebic")),
        )  # fmt: skip
    table = np.array([[found[k] for k in sizes] for found, _ in done])
    shares = np.array([share for _, share in done])
    means, spread = _weighted_mean(table, shares)
    signed = -means
    if scorer is None:
        # Below this an error is rounding, and among perfect fits the smallest is the best.
        signed = np.maximum(means, PERFECT * problem.objective([]) / problem.weight)
    best = int(np.argmin(signed))
    # Hard rows of a fold are hard for every size, and cancel.
    _, difference = _weighted_mean(table - table[:, best : best + 1], shares)
    return SizeScores(sizes, means, signed, spread, difference, len(done))


def _mean_errors(fold: Fold, results: Sequence[Result]) -> Floats:
    return fold.errors(results) / fold.weight


def _weighted_mean(values: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Return the mean over K rows of weights w, and its standard error (nan for a single row).

    The standard error of the mean ē is √(Σ w²(e − ē)² · K/(K − 1)) / Σw, that of a plain mean for
    equal weights.
    """
    n = len(values)
    mean: Floats = np.average(values, axis=0, weights=weights)
    if n < 2:
        return mean, np.full_like(mean, np.nan)
    squares = (weights[:, None] ** 2 * (values - mean) ** 2).sum(axis=0)
    return mean, np.sqrt(squares * n / (n - 1)) / weights.sum()


def _message(problem: Problem, scores: SizeScores, splits: Splits | None, search: _Search) -> str:
    if not search.interrupted:
        is_last = scores.pick("best") == scores.sizes[-1] < len(problem.candidates)
        return "Best size is the largest tried; use a larger k_max." if is_last else ""
    if splits is None or scores.n_folds == splits.n_folds:
        return "Stopped by Ctrl-C: a longer search may find better features."
    if scores.n_folds == 0:
        return (
            "Stopped by Ctrl-C before any fold was finished: no size was chosen, and this is the "
            "largest size found."
        )
    return f"Stopped by Ctrl-C after {scores.n_folds} of {splits.n_folds} folds."


def _table(problem: Problem, path: Path, scores: SizeScores, k: int) -> RecordsTable:
    place = {name: j for j, name in enumerate(problem.original_names)}
    for group in (problem.rules or Rules()).feature_groups:
        # A group stands where its first column does.
        place[group.name] = int(problem.input_columns[min(group.columns)])
    rows, before, is_chosen = [], frozenset[str](), not np.isnan(scores.values).all()
    for result in path:
        if result.k not in scores.sizes:
            continue
        i = scores.sizes.index(result.k)
        mean = scores.values[i] if scores.n_folds else np.nan
        values = (scores.values[i], mean, scores.standard_errors[i])
        names = sorted(result.selected, key=place.__getitem__)
        added = [name for name in names if name not in before]
        removed = sorted(before.difference(names), key=place.__getitem__)
        columns = problem.table_columns(result.support)
        rows.append(
            (
                result.k,
                names,
                columns,
                result.objective,
                *values,
                added,
                removed,
                is_chosen and result.k == k,
            )
        )
        before = frozenset(names)
    return RecordsTable(COLUMNS, rows)
