"""Methods side by side on the user's own rows: the same folds, each choosing within them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf, isfinite, nan, sqrt
from typing import Any

import numpy as np

from exactk.errors import ExactkError, InputError, UnknownOptionError, did_you_mean
from exactk.estimators.selector import TopKSelector
from exactk.evaluation.competitors import Competitor, make_competitors, named_methods
from exactk.evaluation.fold_data import ArrayData, EvaluationData, ProblemData
from exactk.evaluation.holdout import (
    check_sizes,
    estimator_name,
    make_scorer,
    make_splits,
    score_baseline,
    score_columns,
    search_seed,
)
from exactk.evaluation.sklearn_baselines import OutOfTimeError
from exactk.model_selection.cross_validation import Split
from exactk.model_selection.scoring import HoldoutScorer
from exactk.params import Seed
from exactk.problem.constraints import CONSTRAINTS
from exactk.problem.problem import Problem
from exactk.result import Status
from exactk.solver import check_time_limit
from exactk.utils.progress import show_count
from exactk.utils.records_table import RecordsTable

__all__ = [
    "DEFAULT_METHODS",
    "Comparison",
    "MethodOutcome",
    "compare",
    "tabulate",
]


COLUMNS = (
    "method", "mean", "standard_error", "difference", "difference_error", "objective", "excess",
    "stability", "seconds", "shared", "features", "status", "note",
)  # fmt: skip
FOLD_COLUMNS = ("method", "fold", "score", "features")
# An objective below this share of the one without columns is rounding, and no more than another.
ROUNDING = 1e-15


@dataclass(frozen=True, eq=False)
class Comparison:
    """What `compare` found.

    Attributes
    ----------
    table : RecordsTable
        One row a method, in the order in which they were asked for: method; mean and
        standard_error of its honest scores; difference of the mean to that of the first method,
        and difference_error, its standard error over the folds, fold by fold (folds share
        training rows, so that both errors are a guide and no test); objective of the
        features chosen on all rows, by the problem, ridge term included; excess, by how much that
        is above the least of those that keep the constraints, as a share of it (below it, where
        it does not keep them; infinite, where the least is nothing but rounding); stability,
        Nogueira's index of the choices of the folds; seconds that choosing on all rows took, with
        all that is made of the table for it; shared, how many of its features are among those of
        the first method; features, chosen on all rows; status; note. A method that gave no answer
        has status "refused", "time_limit" or "error", nan for its figures, and the reason as its
        note.
    folds : RecordsTable
        One row a method and fold: method, fold, score, features.
    k : int
    ridge : float
        Of the objective, and of the methods of exactk on all rows.
    baseline : float
        Mean score of the commonest class, or of the mean, of the training rows.
    all_features : float
        Mean score of the same estimator with every column that may be chosen; nan where the table
        has more than 1,000 columns or 2,000,000 values, or the estimator cannot be trained on all.
    scoring, estimator : str
    task : {"classification", "regression"}
    n_rows, n_features, n_folds : int
    message : str
        What was not done as asked, else empty.
    splits : list of (train, test)
        Numbers of the rows.
    """

    table: RecordsTable
    folds: RecordsTable
    k: int
    ridge: float
    baseline: float
    all_features: float
    scoring: str
    estimator: str
    task: str
    n_rows: int
    n_features: int
    n_folds: int
    message: str
    splits: list[Split] = field(repr=False)

    def to_frame(self, library: str = "pandas") -> Any:
        """Return `table` as a frame of pandas, or of ``library="polars"``."""
        return self.table.to_frame(library)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold; nan becomes None."""
        figures = {"baseline": self.baseline, "all_features": self.all_features}
        return {
            "k": self.k, "scoring": self.scoring, "estimator": self.estimator, "task": self.task,
            "n_rows": self.n_rows, "n_features": self.n_features, "n_folds": self.n_folds,
            "ridge": self.ridge,
            **{name: value if isfinite(value) else None for name, value in figures.items()},
            "message": self.message, "methods": json.loads(self.table.to_json()),
            "folds": json.loads(self.folds.to_json()),
        }  # fmt: skip

    def to_json(self, **options: Any) -> str:
        """Return `to_dict` as JSON; options go to ``json.dumps``."""
        return json.dumps(self.to_dict(), **options)

    def lines(self, *, seconds: bool = True) -> list[str]:
        """Return the table as aligned lines for the eye, numbers rounded."""
        first, *_ = rows = self.table.to_dicts()
        head = ["method", self.scoring, "difference", "excess", "stability", "seconds", "shared"]
        table = RecordsTable(head, [_shown(row, row is first) for row in rows])
        return table[[name for name in head if seconds or name != "seconds"]].to_text().splitlines()

    def __repr__(self) -> str:
        """Return the figures in a few lines."""
        whole = f", {self.all_features:.3f} all" if isfinite(self.all_features) else ""
        notes = [f"{row['method']}: {row['note']}" for row in self.table if row["note"]]
        return "\n".join(
            [
                f"{self.scoring} of {self.estimator} on {self.k} of {self.n_features} features "
                f"chosen within each of {self.n_folds} folds",
                *self.lines(seconds=False),
                f"{self.baseline:.3f} with no features{whole}",
                *notes,
            ]
        )


def _shown(row: dict[str, Any], is_first: bool) -> list[str]:
    """The cells of a method, in words."""
    if not isfinite(row["mean"]):
        return [row["method"], row["status"], "", "", "", "", ""]
    excess = "∞" if row["excess"] == inf else f"{row['excess']:z.2%}"
    difference = _with_error(row["difference"], row["difference_error"], "+z.3f")
    shared = "" if row["shared"] is None else f"{row['shared']} of {len(row['features'])}"
    return [
        row["method"],
        _with_error(row["mean"], row["standard_error"]),
        "reference" if is_first else difference,
        excess,
        # Without a sign where nothing is left but a zero.
        f"{row['stability']:z.3f}" if isfinite(row["stability"]) else "",
        f"{row['seconds']:.2g}" if row["seconds"] < 10 else f"{row['seconds']:.0f}",
        shared,
    ]


def _with_error(value: float, error: float, style: str = "z.3f") -> str:
    if not isfinite(value):
        return ""
    return f"{value:{style}} ± {error:.3f}" if isfinite(error) else f"{value:{style}}"


@dataclass(frozen=True, eq=False)
class MethodOutcome:
    """What became of one method; without scores it gave no answer.

    Attributes
    ----------
    method : str
    status, note : str
    scores : tuple of float
        One for each fold.
    chosen : tuple of tuple of str
        Features of each fold.
    features : tuple of str
        Chosen on all rows, as the three below.
    objective, stability, seconds : float
    keeps_rules : bool
        Whether the features keep the rules of the problem.
    """

    method: str
    status: str
    note: str
    scores: tuple[float, ...] = ()
    chosen: tuple[tuple[str, ...], ...] = ()
    features: tuple[str, ...] = ()
    objective: float = nan
    stability: float = nan
    seconds: float = nan
    keeps_rules: bool = True


def tabulate(
    outcomes: Sequence[MethodOutcome], total: float = 0.0
) -> tuple[RecordsTable, RecordsTable]:
    """Return the table of the methods and that of the folds; the first method is the reference.

    Parameters
    ----------
    outcomes : sequence of MethodOutcome
    total : float
        The objective without any column.

    Examples
    --------
    >>> one = MethodOutcome(
    ...     "a", "converged", "", (0.5, 0.75), (("x",), ("x",)), ("x",), 2.0, 1.0, 0.1
    ... )
    >>> other = MethodOutcome(
    ...     "b", "converged", "", (0.25, 1.0), (("y",), ("x",)), ("x",), 3.0, -1.0, 0.1
    ... )
    >>> table, folds = tabulate([one, other])
    >>> table[["method", "mean", "difference", "difference_error", "excess", "shared"]]
    method  mean   difference  difference_error  excess  shared
    a       0.625  0           0                 0       1
    b       0.625  0           0.25              0.5     1
    """
    done = [one for one in outcomes if one.scores]
    keeping = [one for one in done if one.keeps_rules] or done
    least = min((one.objective for one in keeping), default=nan)
    rows = [_row(one, outcomes[0], least, ROUNDING * total) for one in outcomes]
    folds = [
        (one.method, number, score, names)
        for one in outcomes
        for number, (score, names) in enumerate(zip(one.scores, one.chosen, strict=True), start=1)
    ]
    return RecordsTable(COLUMNS, rows), RecordsTable(FOLD_COLUMNS, folds)


def _row(one: MethodOutcome, first: MethodOutcome, least: float, nothing: float) -> list[Any]:
    mean, error, difference, difference_error, excess, shared = nan, nan, nan, nan, nan, None
    if one.scores:
        mean, error = _mean(one.scores)
        excess = _excess(one.objective, least, nothing)
    if one.scores and first.scores:
        pairs = zip(one.scores, first.scores, strict=True)
        difference, difference_error = _mean([own - other for own, other in pairs])
        shared = len(set(one.features) & set(first.features))
    return [
        one.method, mean, error, difference, difference_error, one.objective, excess,
        one.stability, one.seconds, shared, one.features, one.status, one.note,
    ]  # fmt: skip


def _excess(objective: float, least: float, nothing: float) -> float:
    """The share by which an objective is above the least, which may be none but for rounding."""
    if least > nothing:
        return objective / least - 1.0
    return inf if objective > nothing else 0.0


def _mean(values: Sequence[float]) -> tuple[float, float]:
    error = float(np.std(values, ddof=1)) / sqrt(len(values)) if len(values) > 1 else nan
    return float(np.mean(values)), error


DEFAULT_METHODS = ("exchange", "selectkbest", "rfe", "l1")
# Parameters of a selector that say something of every method.
OPTIONS = (
    "task", "loss", "class_weight", "effort",
    *CONSTRAINTS,
)  # fmt: skip
# Beyond this a fit on all columns may take longer than all the rest.
ALL_COLUMNS, ALL_VALUES = 1_000, 2_000_000
# Ends of a choice in a fold that one should know of.
UNUSUAL = (Status.TIME_LIMIT, Status.MAX_ITER, Status.FAILED)


def compare(
    X: Any,
    y: Any = None,
    k: int = 10,
    methods: Any = None,
    *,
    estimator: Any = None,
    scoring: Any = None,
    cv: Any = None,
    groups: Any = None,
    sample_weight: Any = None,
    ridge: str | float | None = None,
    time_limit: float | None = None,
    random_state: Any = None,
    verbose: int = 0,
    **options: Any,
) -> Comparison:
    """Compare methods of selection on rows that neither selection nor estimator has seen.

    In each fold every method chooses k features on the same training rows alone, the same
    estimator is trained on them, and scored on the same rows held out. Beside the scores stand
    the objective of what each chooses on all rows, how stable its choices are, how long it takes
    and what it shares with the first method. Whatever a method needs of the rows, such as their
    means, it takes from the training rows.

    Parameters
    ----------
    X : array-like, sparse matrix or frame of shape (n, d), or Problem
        A `Problem` made of a table, with its own rules and loss, in place of X, y and
        sample_weight.
    y : array-like of shape (n,) or (n, c), or None
    k : int
        How many features.
    methods : list of str or Method, or None
        Names of methods (`exactk.methods.registry.names`), method objects, and the usual
        alternatives of scikit-learn: "selectkbest" (F statistic of each column), "rfe" (recursive
        elimination with logistic or ridge regression) and "l1" (L1-penalised logistic regression or
        lasso, at the penalty that leaves k). The first is the one that the others are compared
        with. None is exchange and the three.
    estimator, scoring, cv, groups, sample_weight
        As in `exactk.score_selection`; weights reach every method, the alternatives too.
    ridge : "auto", "cv", float or None
        Of the objective, as in `TopKSelector`. None is "auto", or the ridge that a `Problem` has.
    time_limit : float or None
        Seconds for each selection, if it does not end sooner by itself. A method of exactk then
        gives the best found, an alternative no answer.
    random_state : int, Generator or None
        Seed of the folds and of the methods; None is a fixed seed.
    verbose : int
        1 shows progress.
    **options
        Of every method of exactk: ``task``, ``loss``, ``class_weight``, ``effort``, and
        constraints such as ``include``, as in `TopKSelector`. The alternatives keep
        ``exclude`` alone, which their notes say, and choose among the columns that categories are
        coded as.

    Returns
    -------
    Comparison
        A method that refuses the problem, or fails, is a row with the reason in its note.

    Raises
    ------
    InputError
        Also where no method gives an answer.
    KeyboardInterrupt
        After Ctrl-C before any method was done; later those that were done are kept, and the
        message says so.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> import exactk
    >>> X, y = load_wine(return_X_y=True, as_frame=True)
    >>> exactk.compare(X, y, k=3, methods=["exchange", "fisher", "selectkbest"])
    accuracy of LogisticRegression on 3 of 13 features chosen within each of 5 folds
    method       accuracy       difference      excess  stability  shared
    exchange     0.944 ± 0.018  reference       0.00%   1.000      3 of 3
    fisher       0.927 ± 0.016  -0.017 ± 0.014  27.53%  1.000      2 of 3
    selectkbest  0.927 ± 0.016  -0.017 ± 0.014  27.53%  1.000      2 of 3
    0.399 with no features, 0.983 all
    """
    Seed()("random_state", random_state)
    named = named_methods(DEFAULT_METHODS if methods is None else methods)
    limit = check_time_limit(time_limit)
    _check_options(options)
    seed = search_seed(random_state)
    if ridge is None:
        ridge = X.ridge if isinstance(X, Problem) else "auto"
    chooser = TopKSelector(k=k, ridge=ridge, time_limit=limit, random_state=seed, **options)
    data = _evaluation_data(X, y, sample_weight, chooser, groups)
    k = data.problem.check_k(k)
    listed = make_competitors(named, data, seed, limit)
    splits = make_splits(data, cv, random_state)
    scorer = make_scorer(data, estimator, scoring)
    check_sizes(data, splits)
    baseline = score_baseline(data, scorer, splits)
    graded_problem = data.config.with_ridge(data.problem, k)
    outcomes, message = _run(listed, data, graded_problem, scorer, splits, verbose)
    whole = nan
    if not message:
        try:
            whole = _all_features(data, scorer, splits)
        except KeyboardInterrupt:
            message = "stopped by the user before the score with all features"
    total = graded_problem.total if graded_problem.loss.by_moments else graded_problem.null_model[1]
    table, folds = tabulate(outcomes, total)
    return Comparison(
        table=table, folds=folds, k=k, ridge=graded_problem.ridge,
        baseline=float(np.mean(baseline)), all_features=whole, scoring=scorer.scoring,
        estimator=estimator_name(scorer.estimator), task=data.problem.task,
        n_rows=data.problem.n_rows, n_features=data.n_columns,
        n_folds=len(splits), message=message or _missing(outcomes), splits=splits,
    )  # fmt: skip


def _check_options(options: dict[str, Any]) -> None:
    for name in options:
        if name == "method":
            raise UnknownOptionError("compare has no option 'method'; give methods=[...]")
        if name not in OPTIONS:
            raise UnknownOptionError(
                f"compare has no option {name!r}{did_you_mean(name, OPTIONS)} (its options are "
                f"{', '.join(OPTIONS)}); parameters of one method go into a method object, such as "
                f"exactk.methods.registry.create('gsrfs', lam=0.1)"
            )


def _evaluation_data(
    X: Any, y: Any, sample_weight: Any, chooser: TopKSelector, groups: Any
) -> EvaluationData:
    if not isinstance(X, Problem):
        return ArrayData(X, y, sample_weight, chooser, groups)
    if y is not None or sample_weight is not None:
        raise InputError("y and sample_weight cannot be given beside a Problem, which has its own")
    return ProblemData(X, chooser, groups)


def _run(
    listed: list[Competitor],
    data: EvaluationData,
    graded_problem: Problem,
    scorer: HoldoutScorer,
    splits: list[Split],
    verbose: int,
) -> tuple[list[MethodOutcome], str]:
    """Try one method after the other; what was done until Ctrl-C, and that it came."""
    outcomes: list[MethodOutcome] = []
    each = len(splits) + 1
    with show_count("selections", each * len(listed), verbose) as show:
        try:
            for place, competitor in enumerate(listed):
                done = place * each

                def count(number: int, done: int = done) -> None:
                    show(done + number)

                outcomes.append(_outcome(competitor, data, graded_problem, scorer, splits, count))
        except KeyboardInterrupt:
            if not any(one.scores for one in outcomes):
                raise
            return outcomes, f"stopped by the user after {len(outcomes)} of {len(listed)} methods"
    if not any(one.scores for one in outcomes):
        # The same of all, as where the score does not go with the estimator, is said once.
        why: dict[str, list[str]] = {}
        for one in outcomes:
            why.setdefault(one.note, []).append(one.method)
        reasons = "; ".join(f"{', '.join(names)}: {note}" for note, names in why.items())
        raise InputError(f"no method gave an answer: {reasons}")
    return outcomes, ""


def _outcome(
    competitor: Competitor,
    data: EvaluationData,
    graded_problem: Problem,
    scorer: HoldoutScorer,
    splits: list[Split],
    count: Callable[[int], None],
) -> MethodOutcome:
    """Choose on all rows and within the folds; a method that cannot is told why."""
    try:
        return _evaluate_method(competitor, data, graded_problem, scorer, splits, count)
    except OutOfTimeError as error:
        return MethodOutcome(competitor.name, str(Status.TIME_LIMIT), str(error))
    except ExactkError as error:
        return MethodOutcome(competitor.name, "refused", str(error))
    except Exception as error:  # a method of one's own may raise anything
        return MethodOutcome(competitor.name, "error", f"{type(error).__name__}: {error}")


def _evaluate_method(
    competitor: Competitor,
    data: EvaluationData,
    graded_problem: Problem,
    scorer: HoldoutScorer,
    splits: list[Split],
    count: Callable[[int], None],
) -> MethodOutcome:
    whole = competitor.choose(data.all_rows)
    fit = graded_problem.refit(whole.support)
    if fit.interrupted:
        raise KeyboardInterrupt
    count(1)
    picked, scores = [], []
    for number, split in enumerate(splits, start=2):
        found = competitor.choose(split[0])
        picked.append(found)
        scores.append(score_columns(scorer, data, split, found.support))
        count(number)
    ends = Counter(found.status for found in picked if found.status in UNUSUAL)
    notes = [whole.note] if whole.note else []
    notes += [f"{status} in {n} of {len(splits)} folds" for status, n in sorted(ends.items())]
    return MethodOutcome(
        method=competitor.name, status=whole.status, note="; ".join(notes),
        scores=tuple(scores), chosen=tuple(data.names_of(found.support) for found in picked),
        features=data.names_of(whole.support), objective=fit.objective,
        stability=competitor.stability([found.support for found in picked]), seconds=whole.seconds,
        keeps_rules=competitor.keeps_rules,
    )  # fmt: skip


def _all_features(data: EvaluationData, scorer: HoldoutScorer, splits: list[Split]) -> float:
    """The score with all columns that may be chosen, where that is cheap."""
    problem = data.problem
    out = [] if problem.rules is None else list(problem.rules.exclude)
    columns = np.setdiff1d(np.arange(problem.n_features), out)
    if len(columns) > ALL_COLUMNS or len(columns) * problem.n_rows > ALL_VALUES:
        return nan
    try:
        return float(np.mean([score_columns(scorer, data, split, columns) for split in splits]))
    except Exception:
        # No more than a figure beside those that were asked for, whatever an estimator raises.
        return nan


def _missing(outcomes: list[MethodOutcome]) -> str:
    first = outcomes[0]
    if first.scores:
        return ""
    return f"{first.method}, with which the others are compared, gave no answer ({first.note})"
