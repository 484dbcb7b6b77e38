"""How well selected features predict rows that neither selection nor estimator has seen."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf, isnan, nan, sqrt
from typing import Any

import numpy as np

from exactk.errors import ExactkError, InputError
from exactk.evaluation.baselines import BASELINES, OutOfTimeError
from exactk.evaluation.fold_methods import FoldMethod, configured_method, named_methods
from exactk.evaluation.holdout import FoldScores
from exactk.evaluation.permutation_test import permuted_problems
from exactk.evaluation.result import COLUMNS, FOLD_COLUMNS, Evaluation
from exactk.methods.base import Method, generator
from exactk.model_selection.choose_k import AutoK
from exactk.model_selection.cross_validation import make_splits
from exactk.params import validated
from exactk.problem.problem import Problem
from exactk.question import is_auto, read_problem, read_question
from exactk.result import Result, Status
from exactk.solver import check_time_limit
from exactk.types import Floats
from exactk.utils.progress import show_count
from exactk.utils.records_table import RecordsTable

__all__ = ["Evaluation", "evaluate", "measure_evaluation"]

# An objective below this share of the objective without columns is rounding error.
ROUNDING = 1e-15
# Ends of a search in a fold that the note of a method mentions.
UNUSUAL = (Status.TIME_LIMIT, Status.MAX_ITER, Status.FAILED)
AS_GIVEN = (
    "the features were given and are scored as they are: the score is optimistic if they were "
    "selected on the same rows"
)


@validated
def evaluate(
    X: Any,
    y: Any = None,
    *,
    k: Any = None,
    features: Any = None,
    method: str | Method = "exchange",
    compare_with: Any = (),
    estimator: Any = None,
    scoring: Any = None,
    cv: Any = None,
    groups: Any = None,
    n_permutations: int = 0,
    ridge: str | float | None = None,
    effort: float | None = None,
    time_limit: float | None = None,
    random_state: Any = None,
    verbose: int = 0,
    sample_weight: Any = None,
    task: Any = "auto",
    loss: Any = None,
    class_weight: Any = None,
    constraints: Any = None,
) -> Evaluation:
    """Score selected features on held-out rows, and compare methods on the same folds.

    In each fold, features are selected on the training rows alone, an estimator is trained on
    them, and it is scored on the held-out rows. The score of features that were selected on all
    rows is shown for comparison: it is too high, as the selection has seen the held-out rows. A
    permutation test counts how often the same search explains as much of a shuffled target.

    Parameters
    ----------
    X : array-like, sparse matrix or frame of shape (n, d), or Problem
    y : array-like of shape (n,) or (n, c), or None
    k : int, "auto", AutoK or None
        Number of features. If it is to be chosen, the reference chooses it on the training rows of
        each fold, and the methods of `compare_with` select as many features.
    features : list of str or int, Result, fitted selector or None
        An existing selection in place of k. It is scored as it is, which is optimistic if it was
        selected on the same rows; `method` then only searches the shuffled targets.
    method : str or Method
        The reference: a method of `exactk.registry`, or of scikit-learn as in `compare_with`.
    compare_with : list of str or Method
        Other methods. Those of scikit-learn are "selectkbest" (F statistic), "rfe" (recursive
        elimination with logistic or ridge regression) and "l1" (logistic regression or lasso with
        the L1 penalty that leaves k features). They ignore all constraints but exclude.
    estimator : estimator, str or None
        Trained on the selected columns: a frame if X is a frame without text columns, else an
        array. None is logistic regression, or ridge regression for numbers, on standardised
        columns. Other names are "svm", "knn" and "forest".
    scoring : str, callable or None
        Score of scikit-learn, higher is better. None is "accuracy", or "r2" for numbers.
    cv : int, scikit-learn splitter, iterable of (train, test), or None
        A number of folds is stratified by class, or `GroupKFold` with groups; None is five, or
        fewer if there are fewer rows, rows of a class, or groups.
    groups : array-like of shape (n,) or None
        Group of each row, such as a patient. Rows of one group stay in one fold, and are shuffled
        together or among themselves.
    n_permutations : int
        Number of shuffled targets. Each is searched with the k and the ridge of the selection on
        all rows.
    ridge : "auto", "cv", float or None
        None is the ridge of a Problem, or "auto" for a table.
    effort : float or None
        Search effort of the methods that have one.
    time_limit : float or None
        Maximum seconds of each search: on all rows, in each fold and for each shuffled target.
        A method of scikit-learn then has no answer.
    random_state : int, Generator or None
        Seed of the folds (whole groups are dealt without it), the searches and the permutations;
        None is a fixed seed.
    verbose : int
        1 shows progress.
    sample_weight, task, loss, class_weight, constraints
        As in `exactk.TopKSelector`. Estimator and score use sample weights, not class weights.

    Returns
    -------
    Evaluation
        After Ctrl-C with the folds, methods or permutations that were finished, and status
        ``interrupted``.

    Raises
    ------
    KeyboardInterrupt
        After Ctrl-C before the first fold was finished.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> import exactk
    >>> X, y = load_wine(return_X_y=True, as_frame=True)
    >>> exactk.evaluate(X, y, k=3, compare_with=["selectkbest"], n_permutations=19)
    accuracy of LogisticRegression on 3 of 13 features, 5 folds
    method       score          difference      excess  shared  stability
    exchange     0.944 ± 0.018  reference       0.00%   3 of 3  1.000
    selectkbest  0.927 ± 0.016  -0.017 ± 0.014  27.53%  2 of 3  1.000
    score without features 0.399, with all features 0.983
    score if features are selected on all rows 0.944, optimism +0.000
    0 of 19 shuffled targets did as well (p = 0.05)
    """
    # First statement: so far, the locals are the parameters alone.
    return measure_evaluation(**locals())


def measure_evaluation(
    X: Any, y: Any, *, k: Any, features: Any, method: Any, compare_with: Any, estimator: Any,
    scoring: Any, cv: Any, groups: Any, n_permutations: int, ridge: Any, effort: Any,
    time_limit: Any, random_state: Any, verbose: int, known: Result | None = None,
    end: float = inf, **table: Any,
) -> Evaluation:  # fmt: skip
    """Return the evaluation of the same parameters, with what is known to be selected.

    No search of a shuffled target starts after `end`, a time of ``time.monotonic``.
    """
    is_given = features is not None
    names = named_methods(method, compare_with, is_given=is_given)
    limit, seed = check_time_limit(time_limit), _seed(random_state)
    size: int | AutoK
    if k is not None and not is_given and is_auto(k):
        if method in BASELINES:
            raise InputError(parameter="k", value=k, expected=f"a number for {method}")
        problem = read_problem(X, y, **table).in_memory(verbose=verbose)
        size = k if isinstance(k, AutoK) else AutoK()
    else:
        question = read_question(
            X, y, k=k, features=features, ridge=ridge, groups=groups, random_state=seed, **table
        )
        problem, size = question.problem.in_memory(verbose=verbose), question.k
        if is_given:
            known, ridge = question.solved(), problem.ridge
    if ridge is None and not isinstance(X, Problem):
        ridge = "auto"
    splits = make_splits(problem, cv, groups, random_state)
    groups = None if groups is None else np.asarray(groups)
    methods = {}
    for place, (name, one) in enumerate(names.items()):
        if one not in BASELINES:
            one = configured_method(one, effort, seed, is_reference=not place)
        methods[name] = FoldMethod(
            problem, one, ridge=ridge, groups=groups, time_limit=limit, seed=seed
        )
    scores = FoldScores(X, problem, splits, estimator, scoring)
    run = _Run(problem, scores, size, is_given=is_given, is_known=known is not None)
    message, null = run.run(methods, known, verbose), np.empty(0)
    if n_permutations and not message:
        null, message = run.shuffled(n_permutations, random_state, groups, end, verbose)
    return run.evaluation(null, message)


def _seed(random_state: Any) -> int | None:
    """Return one number for all folds: a generator would go on from one to the next."""
    is_seed = random_state is None or isinstance(random_state, (int, np.integer))
    return random_state if is_seed else int(generator(random_state).integers(2**31))


@dataclass
class _Outcome:
    """A method, what it selected on all rows and in each fold, and the rows of its folds."""

    name: str
    method: FoldMethod
    whole: Result | None = None
    status: str = ""
    note: str = ""
    objective: float = nan
    results: list[Result] = field(default_factory=list)
    folds: list[dict[str, Any]] = field(default_factory=list)

    def mean(self, column: str, other: _Outcome | None = None) -> tuple[float, float]:
        """Return the mean of the folds, or of the difference to another, and its error."""
        values = np.array([row[column] for row in self.folds])
        if other is not None:
            values -= [row[column] for row in other.folds]
        n = len(values)
        return float(values.mean()), float(values.std(ddof=1)) / sqrt(n) if n > 1 else nan


class _Run:
    """Runs methods one after the other until all are done or the user stops.

    The first of the outcomes is the reference; after Ctrl-C it may have some of the folds.
    """

    def __init__(
        self, problem: Problem, scores: FoldScores, k: int | AutoK, *, is_given: bool,
        is_known: bool,
    ) -> None:  # fmt: skip
        assert problem.rows is not None
        # A shuffled target is searched once, at one k: a known selection may come from another
        # effort or time, and a chosen k from several searches.
        self._is_searched_otherwise = not is_given and (is_known or isinstance(k, AutoK))
        self._problem, self._scores, self._k, self._is_given = problem, scores, k, is_given
        self._all_features, self._observed, self.outcomes = nan, nan, list[_Outcome]()
        self._interrupted = False
        self._predictions: list[Any] = [None] * problem.rows.n_rows

    @property
    def _whole(self) -> Result:
        """The selection of the reference on all rows."""
        whole = self.outcomes[0].whole
        assert whole is not None
        return whole

    def run(self, methods: dict[str, FoldMethod], known: Result | None, verbose: int) -> str:
        """Evaluate the methods; return after how many of them the user stopped, if so."""
        n, n_folds = len(methods), len(self._scores.splits)
        with show_count("selections", n * (n_folds + 1), verbose) as show:
            try:
                for place, (name, method) in enumerate(methods.items()):
                    at = place * (n_folds + 1)
                    outcome = _Outcome(name, method, None if place else known)
                    self._evaluate(outcome, lambda done, at=at: show(at + done))
                self._all_features = self._scores.all_features()
            except KeyboardInterrupt:
                finished = len(self.outcomes[0].folds) if self.outcomes else 0
                if not finished:
                    raise
                self._interrupted = True
                if finished < n_folds:
                    return f"stopped by the user after {finished} of {n_folds} folds"
                if len(self.outcomes) < n:
                    return f"stopped by the user after {len(self.outcomes)} of {n} methods"
                return "stopped by the user before the score with all features"
        return ""

    def _evaluate(self, outcome: _Outcome, show: Any) -> None:
        """Add a method to the outcomes, or the error for which it has no answer."""
        if not self.outcomes:
            # Its finished folds are an answer even if the user stops; without it there is none.
            self.outcomes.append(outcome)
            self._select(outcome, [self._k] * (len(self._scores.splits) + 1), show)
            return
        first = self.outcomes[0]
        try:
            self._select(outcome, [self._whole.k, *(found.k for found in first.results)], show)
        except ExactkError as error:
            is_late = isinstance(error, OutOfTimeError)
            status = str(Status.TIME_LIMIT) if is_late else "refused"
            outcome = _Outcome(outcome.name, outcome.method, None, status, str(error))
        except Exception as error:
            # A method of the user may raise anything; our own bugs pass.
            if not outcome.method.is_foreign:
                raise
            note = f"{type(error).__name__}: {error}"
            outcome = _Outcome(outcome.name, outcome.method, None, "error", note)
        self.outcomes.append(outcome)

    def _select(self, outcome: _Outcome, sizes: Sequence[Any], show: Any) -> None:
        """Select on all rows and in each fold, and score what was selected."""
        whole, is_first, splits = outcome.whole, outcome is self.outcomes[0], self._scores.splits
        if whole is None:
            whole = outcome.method.select(self._problem.weighted_rows, sizes[0])
        outcome.whole, outcome.status = whole, str(whole.status)
        fit = self._problem.with_ridge(self._whole.ridge).refit(whole.support)
        if fit.interrupted:
            raise KeyboardInterrupt
        outcome.objective = fit.objective
        show(1)
        for fold, (train, test) in enumerate(splits):
            try:
                is_fixed = is_first and self._is_given
                found = whole if is_fixed else outcome.method.select(train, sizes[fold + 1])
            except InputError as error:
                raise InputError(
                    f"training rows of fold {fold + 1}: {error}", parameter=error.parameter,
                    value=error.value,
                ) from error  # fmt: skip
            score, predictions = self._scores.score(fold, found.support, keep=is_first)
            naive, _ = self._scores.score(fold, whole.support)
            row = (outcome.name, fold + 1, len(train), len(test), found.k, self._names(found),
                   score, naive, self._scores.baseline[fold])  # fmt: skip
            outcome.results.append(found)
            outcome.folds.append(dict(zip(FOLD_COLUMNS, row, strict=True)))
            for place, value in zip(test if predictions else (), predictions, strict=True):
                self._predictions[place] = value
            show(fold + 2)
        ends = Counter(found.status for found in outcome.results)
        notes = [f"{s} in {ends[s]} of {len(splits)} folds" for s in UNUSUAL if ends[s]]
        outcome.note = "; ".join([*([whole.message] if whole.message else []), *notes])

    def shuffled(
        self, n: int, random_state: Any, groups: Any, end: float, verbose: int
    ) -> tuple[Floats, str]:
        """Return the shares explained of shuffled targets, and why some are missing."""
        method, whole, null = self.outcomes[0].method, self._whole, list[float]()
        problem, why = method.problem.with_ridge(whole.ridge), ""
        with show_count("permutations", n, verbose) as show:
            try:
                if self._is_searched_otherwise:
                    self._observed = method.search(problem, whole.k).explained
                for other in permuted_problems(problem, n, random_state, groups=groups):
                    if time.monotonic() >= end:
                        why = "stopped by the time limit"
                        break
                    null.append(method.search(other, whole.k).explained)
                    show(len(null))
            except KeyboardInterrupt:
                self._interrupted, why = True, "stopped by the user"
        return np.array(null), f"{why} after {len(null)} of {n} permutations" if why else ""

    def evaluation(self, null: Floats, message: str) -> Evaluation:
        """Return what was found."""
        problem, whole, scores = self._problem, self._whole, self._scores
        folds = [list(row.values()) for one in self.outcomes for row in one.folds]
        n_folds = len(self.outcomes[0].folds)
        return Evaluation(
            table=self._table(), folds=RecordsTable(FOLD_COLUMNS, folds),
            predictions=self._predictions, splits=scores.splits[:n_folds], k=whole.k,
            features=self._names(whole), baseline_score=float(np.mean(scores.baseline[:n_folds])),
            all_features_score=self._all_features, null=null,
            observed=whole.explained if isnan(self._observed) else self._observed,
            ridge=whole.ridge, scoring=scores.scoring, estimator=scores.estimator,
            task=problem.task, n_rows=problem.n_rows, n_features=len(problem.original_names),
            message="; ".join(filter(None, [message, AS_GIVEN if self._is_given else ""])),
            status=Status.INTERRUPTED if self._interrupted else whole.status,
        )  # fmt: skip

    def _names(self, result: Result) -> tuple[str, ...]:
        """Return the columns of the user's table behind a selection."""
        names = self._problem.original_names
        return tuple(names[j] for j in np.unique(self._problem.input_columns[result.support]))

    def _table(self) -> RecordsTable:
        first, problem, rows = self.outcomes[0], self._problem, []
        done = [one for one in self.outcomes if one.folds]
        least = min(one.objective for one in [o for o in done if not o.method.notes] or done)
        # What is left below this is rounding error.
        nothing = ROUNDING * (problem.total if problem.loss.by_moments else problem.null_model[1])
        shared = set(self._names(self._whole))
        for one in self.outcomes:
            row: dict[str, Any] = dict.fromkeys(COLUMNS, nan)
            row |= {"k": None, "n_shared": None, "features": (), "status": one.status}
            row |= {"method": one.name, "note": one.note}
            rows.append(row)
            if one.whole is None:
                continue
            row["test_score"], row["standard_error"] = one.mean("test_score")
            row["difference"], row["difference_error"] = one.mean("test_score", first)
            row["naive_score"], _ = one.mean("naive_score")
            row["k"], row["seconds"] = one.whole.k, one.whole.seconds
            row["objective"] = one.objective
            row["excess"] = 0.0 if one.objective <= nothing else inf
            if least > nothing:
                row["excess"] = one.objective / least - 1.0
            if not (one is first and self._is_given):
                row["stability"] = one.method.stability([found.support for found in one.results])
            row["features"] = self._names(one.whole)
            row["n_shared"] = len(shared.intersection(row["features"]))
        return RecordsTable(COLUMNS, [list(row.values()) for row in rows])
