"""How well selected features predict rows that neither selection nor estimator has seen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from math import inf, nan, sqrt
from typing import Any

import numpy as np

from exactk.errors import ExactkError, InputError
from exactk.evaluation.baselines import BASELINES, OutOfTimeError
from exactk.evaluation.fold_methods import (
    BaselineMethod,
    FoldMethod,
    SolverMethod,
    configured_method,
    named_methods,
)
from exactk.evaluation.holdout import FoldScores
from exactk.evaluation.permutation_test import permuted_problems
from exactk.evaluation.result import COLUMNS, FOLD_COLUMNS, Evaluation
from exactk.methods.base import Method, generator
from exactk.model_selection.choose_k import AutoK
from exactk.model_selection.cross_validation import Split, make_splits, row_groups
from exactk.params import validated
from exactk.problem.problem import Problem
from exactk.question import GIVEN, is_auto, read_problem, read_question
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
        Trained on the selected columns of X; of a frame it gets a frame, but an array of encoded
        columns if X has text columns. None is logistic regression, or ridge regression for
        numbers, on standardised columns. Other names are "svm", "knn" and "forest".
    scoring : str, callable or None
        Score of scikit-learn, higher is better. None is "accuracy", or "r2" for numbers.
    cv : int, scikit-learn splitter, iterable of (train, test), or None
        A number of folds is stratified by class; None is five, or fewer if there are fewer rows or
        groups.
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
        Maximum seconds of each selection. A method of scikit-learn then has no answer.
    random_state : int, Generator or None
        Seed of the folds, the searches and the permutations; None is a fixed seed.
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
    method       score          difference      excess  n_shared  stability
    exchange     0.944 ± 0.018  reference       0.00%   3 of 3    1.000
    selectkbest  0.927 ± 0.016  -0.017 ± 0.014  27.53%  2 of 3    1.000
    score without features 0.399, with all features 0.983
    score if features are selected on all rows 0.944, optimism +0.000
    0 of 19 shuffled targets did as well (p = 0.05)
    """
    return measure_evaluation(**locals())


def measure_evaluation(
    X: Any, y: Any, *, k: Any, features: Any, method: Any, compare_with: Any, estimator: Any,
    scoring: Any, cv: Any, groups: Any, n_permutations: int, ridge: Any, effort: Any,
    time_limit: Any, random_state: Any, verbose: int, known: Result | None = None, **table: Any,
) -> Evaluation:  # fmt: skip
    """Return the evaluation of a question; the other parameters are those of `evaluate`.

    Parameters
    ----------
    known : Result or None
        What the method has selected on all rows, so that it need not search again.
    """
    names = named_methods(method, () if features is not None else compare_with)
    if features is not None:
        names = {GIVEN: method} | named_methods(None, compare_with)
    limit, seed = check_time_limit(time_limit), _seed(random_state)
    given: Result | None = None
    wanted: int | AutoK
    if k is not None and features is None and is_auto(k):
        problem = read_problem(X, y, **table).in_memory(verbose=verbose)
        wanted = k if isinstance(k, AutoK) else AutoK()
    else:
        question = read_question(
            X, y, k=k, features=features, ridge=ridge, random_state=seed, **table
        )
        problem, wanted = question.problem.in_memory(verbose=verbose), question.k
        if features is not None:
            given, ridge = question.solved(), problem.ridge
    if ridge is None and not isinstance(X, Problem):
        ridge = "auto"
    groups = _row_groups(groups, problem)

    def made(one: str | Method, *, is_reference: bool) -> FoldMethod:
        if isinstance(one, str) and one in BASELINES:
            return BaselineMethod(one, problem, time_limit=limit, seed=seed)
        own = configured_method(one, effort, seed, is_reference=is_reference)
        return SolverMethod(problem, own, ridge=ridge, groups=groups, time_limit=limit, seed=seed)

    methods = {
        name: made(one, is_reference=not place) for place, (name, one) in enumerate(names.items())
    }
    splits = make_splits(problem, cv, groups, random_state)
    scores = FoldScores(X, problem, splits, estimator, scoring)
    run = _Run(problem, splits, scores, groups, is_given=given is not None)
    message, null = run.run(methods, wanted, given or known, verbose), np.empty(0)
    if n_permutations and not message:
        null, message = run.shuffled(n_permutations, random_state, verbose)
    return run.evaluation(null, message)


def _seed(random_state: object) -> int | None:
    """Return one number for all folds: a generator would go on from one to the next."""
    if random_state is None or isinstance(random_state, (int, np.integer)):
        return None if random_state is None else int(random_state)
    return int(generator(random_state).integers(2**31))


def _row_groups(groups: Any, problem: Problem) -> Any:
    if isinstance(groups, Mapping):
        raise InputError(
            parameter="groups", value=groups, expected="one label for each row",
            hint="give groups of features as constraints={'feature_groups': ...}",
        )  # fmt: skip
    assert problem.rows is not None
    return None if groups is None else row_groups(groups, problem.rows.n_rows)


@dataclass(frozen=True)
class _Fold:
    """What a method selected in a fold, and its scores."""

    result: Result
    score: float
    naive: float
    predictions: Any


@dataclass
class _Outcome:
    """A method, what it selected on all rows, and its folds; no folds if it has no answer."""

    name: str
    method: FoldMethod
    status: str = ""
    note: str = ""
    whole: Result | None = None
    objective: float = nan
    folds: list[_Fold] = field(default_factory=list)

    @property
    def scores(self) -> list[float]:
        return [fold.score for fold in self.folds]


class _Run:
    """Runs methods one after the other until all are done or the user stops.

    Attributes
    ----------
    outcomes : list of _Outcome
        The reference first; after Ctrl-C it may have some of the folds.
    """

    def __init__(
        self, problem: Problem, splits: list[Split], scores: FoldScores, groups: Any, *,
        is_given: bool,
    ) -> None:  # fmt: skip
        self._problem, self._splits, self._scores, self._groups = problem, splits, scores, groups
        self._is_given = is_given
        self._all_features, self.outcomes = nan, list[_Outcome]()
        assert problem.rows is not None
        self._n_rows = problem.rows.n_rows

    @property
    def _whole(self) -> Result:
        """The selection of the reference on all rows."""
        whole = self.outcomes[0].whole
        assert whole is not None
        return whole

    def run(
        self, methods: dict[str, FoldMethod], k: int | AutoK, known: Result | None, verbose: int
    ) -> str:
        """Evaluate the methods; return after how many of them the user stopped, if so."""
        n, n_folds = len(methods), len(self._splits)
        with show_count("selections", n * (n_folds + 1), verbose) as show:
            try:
                for place, (name, method) in enumerate(methods.items()):
                    at = place * (n_folds + 1)
                    outcome = _Outcome(name, method, whole=None if place else known)
                    self._evaluate(outcome, k, lambda done, at=at: show(at + done))
                self._all_features = self._scores.all_features()
            except KeyboardInterrupt:
                finished = len(self.outcomes[0].folds) if self.outcomes else 0
                if not finished:
                    raise
                if finished < n_folds:
                    return f"stopped by the user after {finished} of {n_folds} folds"
                if len(self.outcomes) < n:
                    return f"stopped by the user after {len(self.outcomes)} of {n} methods"
                return "stopped by the user before the score with all features"
        return ""

    def _evaluate(self, outcome: _Outcome, k: int | AutoK, show: Any) -> None:
        is_reference = not self.outcomes
        sizes: list[int | AutoK] = [k] * (len(self._splits) + 1)
        if is_reference:
            # Its finished folds are an answer even if the user stops.
            self.outcomes.append(outcome)
        elif isinstance(k, AutoK):
            sizes = [self._whole.k, *(fold.result.k for fold in self.outcomes[0].folds)]
        try:
            self._select(outcome, sizes, show, keep=is_reference)
        except Exception as error:
            # A method of the user may raise anything; our own bugs pass. Without the reference
            # there is no evaluation.
            known = isinstance(error, ExactkError)
            if is_reference or not (known or outcome.method.is_foreign):
                raise
            note = str(error) if known else f"{type(error).__name__}: {error}"
            status = "refused" if known else "error"
            outcome = _Outcome(outcome.name, outcome.method, status, note)
            if isinstance(error, OutOfTimeError):
                outcome.status = str(Status.TIME_LIMIT)
        if not is_reference:
            self.outcomes.append(outcome)

    def _select(self, outcome: _Outcome, sizes: Sequence[Any], show: Any, *, keep: bool) -> None:
        whole, weights = outcome.whole, self._problem.row_weights
        if whole is None:
            rows = np.flatnonzero(np.ones(self._n_rows) if weights is None else weights)
            whole = outcome.method.select(rows, sizes[0])
        outcome.whole, outcome.status = whole, str(whole.status)
        fit = self._problem.with_ridge(self._whole.ridge).refit(whole.support)
        if fit.interrupted:
            raise KeyboardInterrupt
        outcome.objective = fit.objective
        show(1)
        for fold, (train, _) in enumerate(self._splits):
            try:
                is_fixed = keep and self._is_given
                found = whole if is_fixed else outcome.method.select(train, sizes[fold + 1])
            except InputError as error:
                raise InputError(
                    f"training rows of fold {fold + 1}: {error}", parameter=error.parameter,
                    value=error.value,
                ) from error  # fmt: skip
            score, predictions = self._scores.score(fold, found.support, keep=keep)
            naive, _ = self._scores.score(fold, whole.support)
            outcome.folds.append(_Fold(found, score, naive, predictions))
            show(fold + 2)
        ends = Counter(one.result.status for one in outcome.folds)
        notes = [f"{s} in {ends[s]} of {len(self._splits)} folds" for s in UNUSUAL if ends[s]]
        outcome.note = "; ".join([*([whole.message] if whole.message else []), *notes])

    def shuffled(self, n: int, random_state: Any, verbose: int) -> tuple[Floats, str]:
        """Return the shares explained of shuffled targets, and whether the user stopped."""
        method, whole, null = self.outcomes[0].method, self._whole, list[float]()
        problem = self._problem.with_ridge(whole.ridge)
        with show_count("permutations", n, verbose) as show, suppress(KeyboardInterrupt):
            for other in permuted_problems(problem, n, random_state, groups=self._groups):
                null.append(method.search(other, whole.k).explained)
                show(len(null))
        stopped = f"stopped by the user after {len(null)} of {n} permutations"
        return np.array(null), stopped if len(null) < n else ""

    def evaluation(self, null: Floats, message: str) -> Evaluation:
        """Return what was found."""
        problem, whole, scores = self._problem, self._whole, self._scores
        n_folds = len(self.outcomes[0].folds)
        return Evaluation(
            table=self._table(), folds=self._fold_table(), predictions=self._predictions(),
            splits=self._splits[:n_folds], k=whole.k, features=self._names(whole),
            baseline_score=float(np.mean(scores.baseline[:n_folds])),
            all_features_score=self._all_features, observed=whole.explained, null=null,
            ridge=whole.ridge, scoring=scores.scoring, estimator=scores.estimator,
            task=problem.task, n_rows=problem.n_rows, n_features=len(problem.original_names),
            message="; ".join(filter(None, [message, AS_GIVEN if self._is_given else ""])),
            status=Status.INTERRUPTED if message else whole.status,
        )  # fmt: skip

    def _names(self, result: Result) -> tuple[str, ...]:
        """Return the columns of the user's table behind a selection."""
        names = self._problem.original_names
        return tuple(names[j] for j in np.unique(self._problem.input_columns[result.support]))

    def _predictions(self) -> list[Any]:
        found: list[Any] = [None] * self._n_rows
        for fold, (_, test) in zip(self.outcomes[0].folds, self._splits, strict=False):
            if fold.predictions is not None:
                for row, value in zip(test, np.asarray(fold.predictions).tolist(), strict=True):
                    found[row] = value
        return found

    def _fold_table(self) -> RecordsTable:
        rows = [
            (
                one.name, number, len(train), len(test), fold.result.k,
                self._names(fold.result), fold.score, fold.naive, baseline,
            )
            for one in self.outcomes
            for number, (fold, (train, test), baseline) in enumerate(
                zip(one.folds, self._splits, self._scores.baseline, strict=False), start=1
            )
        ]  # fmt: skip
        return RecordsTable(FOLD_COLUMNS, rows)

    def _table(self) -> RecordsTable:
        first, problem = self.outcomes[0], self._problem
        names = set(self._names(self._whole))
        done = [one for one in self.outcomes if one.folds]
        keeping = [one for one in done if one.method.keeps_constraints] or done
        least = min(one.objective for one in keeping)
        total = problem.total if problem.loss.by_moments else problem.null_model[1]
        rows: list[dict[str, Any]] = []
        for one in self.outcomes:
            row: dict[str, Any] = dict.fromkeys(COLUMNS, nan)
            row |= {"k": None, "n_shared": None, "features": (), "status": one.status}
            row |= {"method": one.name, "note": one.note}
            rows.append(row)
            if one.whole is None:
                continue
            row["test_score"], row["standard_error"] = _mean(one.scores)
            pairs = zip(one.scores, first.scores, strict=True)
            row["difference"], row["difference_error"] = _mean([a - b for a, b in pairs])
            row["naive_score"] = float(np.mean([fold.naive for fold in one.folds]))
            row["k"], row["seconds"] = one.whole.k, one.whole.seconds
            row["objective"] = one.objective
            row["excess"] = _excess(one.objective, least, ROUNDING * total)
            if not (one is first and self._is_given):
                sets = [fold.result.support for fold in one.folds]
                row["stability"] = one.method.stability(sets)
            row["features"] = self._names(one.whole)
            row["n_shared"] = len(names.intersection(row["features"]))
        return RecordsTable(COLUMNS, [list(row.values()) for row in rows])


def _excess(objective: float, least: float, nothing: float) -> float:
    """Return the share by which an objective is above the least; a tiny one is rounding error."""
    if least > nothing:
        return objective / least - 1.0
    return inf if objective > nothing else 0.0


def _mean(values: Sequence[float]) -> tuple[float, float]:
    error = float(np.std(values, ddof=1)) / sqrt(len(values)) if len(values) > 1 else nan
    return float(np.mean(values)), error
