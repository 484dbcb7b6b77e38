"""Methods side by side on the user's own rows: the same folds, each choosing within them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from math import nan
from typing import Any

import numpy as np

from exactk.checks import Seed
from exactk.choose.folds import Split
from exactk.choose.scoring import Trial
from exactk.constraints import CONSTRAINTS
from exactk.errors import ExactkError, InputError, UnknownOptionError, nearest
from exactk.evaluate.comparison import Comparison, Outcome, tabulate
from exactk.evaluate.contenders import Contender, contenders, named_methods
from exactk.evaluate.parts import Given, GivenArrays, GivenProblem
from exactk.evaluate.rivals import OutOfTimeError
from exactk.evaluate.trials import (
    check_sizes,
    estimator_name,
    make_splits,
    make_trial,
    score_baseline,
    score_columns,
    search_seed,
)
from exactk.problem import Problem
from exactk.progress import counting
from exactk.result import Status
from exactk.selector import TopKSelector
from exactk.solve import check_time_limit

__all__ = ["DEFAULT_METHODS", "compare"]

DEFAULT_METHODS = ("exchange", "selectkbest", "rfe", "l1")
# Parameters of a selector that say something of every method; groups are those of rows here.
OPTIONS = (
    "scale", "task", "loss", "class_weight", "effort",
    *(name for name in CONSTRAINTS if name != "groups"),
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
        Names of methods (`exactk.registry.names`), method objects, and the usual alternatives of
        scikit-learn: "selectkbest" (F statistic of each column), "rfe" (recursive elimination with
        logistic or ridge regression) and "l1" (L1-penalised logistic regression or lasso, at the
        penalty that leaves k). The first is the one that the others are compared with. None is
        exchange and the three.
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
        Of every method of exactk: ``scale``, ``task``, ``loss``, ``class_weight``, ``effort``, and
        constraints such as ``include``, as in `TopKSelector`. Groups of features are given by a
        `Problem`. The alternatives keep ``exclude`` alone, which their notes say, and choose
        among the columns that categories are coded as.

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
    given = _given(X, y, sample_weight, chooser, groups)
    k = given.problem.check_k(k)
    listed = contenders(named, given, seed, limit)
    splits = make_splits(given, cv, random_state)
    trial = make_trial(given, estimator, scoring)
    check_sizes(given, splits)
    baseline = score_baseline(given, trial, splits)
    graded = given.asked.with_ridge(given.problem, k)
    outcomes, message = _run(listed, given, graded, trial, splits, verbose)
    whole = nan
    if not message:
        try:
            whole = _all_features(given, trial, splits)
        except KeyboardInterrupt:
            message = "stopped by the user before the score with all features"
    total = graded.total if graded.loss.by_moments else graded.without_columns[1]
    table, folds = tabulate(outcomes, total)
    return Comparison(
        table=table, folds=folds, k=k, ridge=graded.ridge, baseline=float(np.mean(baseline)),
        all_features=whole, scoring=trial.scoring, estimator=estimator_name(trial.estimator),
        task=given.problem.task, n_rows=given.problem.n_rows, n_features=given.n_columns,
        n_folds=len(splits), message=message or _missing(outcomes), splits=splits,
    )  # fmt: skip


def _check_options(options: dict[str, Any]) -> None:
    for name in options:
        if name == "method":
            raise UnknownOptionError("compare has no option 'method'; give methods=[...]")
        if name not in OPTIONS:
            raise UnknownOptionError(
                f"compare has no option {name!r}{nearest(name, OPTIONS)} (its options are "
                f"{', '.join(OPTIONS)}); parameters of one method go into a method object, such as "
                f"exactk.registry.create('gsrfs', lam=0.1)"
            )


def _given(X: Any, y: Any, sample_weight: Any, chooser: TopKSelector, groups: Any) -> Given:
    if not isinstance(X, Problem):
        return GivenArrays(X, y, sample_weight, chooser, groups)
    if y is not None or sample_weight is not None:
        raise InputError("y and sample_weight cannot be given beside a Problem, which has its own")
    return GivenProblem(X, chooser, groups)


def _run(
    listed: list[Contender],
    given: Given,
    graded: Problem,
    trial: Trial,
    splits: list[Split],
    verbose: int,
) -> tuple[list[Outcome], str]:
    """Try one method after the other; what was done until Ctrl-C, and that it came."""
    outcomes: list[Outcome] = []
    each = len(splits) + 1
    with counting("selections", each * len(listed), verbose) as show:
        try:
            for place, contender in enumerate(listed):
                done = place * each

                def count(number: int, done: int = done) -> None:
                    show(done + number)

                outcomes.append(_outcome(contender, given, graded, trial, splits, count))
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
    contender: Contender,
    given: Given,
    graded: Problem,
    trial: Trial,
    splits: list[Split],
    count: Callable[[int], None],
) -> Outcome:
    """Choose on all rows and within the folds; a method that cannot is told why."""
    try:
        return _tried(contender, given, graded, trial, splits, count)
    except OutOfTimeError as error:
        return Outcome(contender.name, str(Status.TIME_LIMIT), str(error))
    except ExactkError as error:
        return Outcome(contender.name, "refused", str(error))
    except Exception as error:  # a method of one's own may raise anything
        return Outcome(contender.name, "error", f"{type(error).__name__}: {error}")


def _tried(
    contender: Contender,
    given: Given,
    graded: Problem,
    trial: Trial,
    splits: list[Split],
    count: Callable[[int], None],
) -> Outcome:
    whole = contender.choose(given.all_rows)
    fit = graded.refit(whole.support)
    if fit.interrupted:
        raise KeyboardInterrupt
    count(1)
    picked, scores = [], []
    for number, split in enumerate(splits, start=2):
        found = contender.choose(split[0])
        picked.append(found)
        scores.append(score_columns(trial, given, split, found.support))
        count(number)
    ends = Counter(found.status for found in picked if found.status in UNUSUAL)
    notes = [whole.note] if whole.note else []
    notes += [f"{status} in {n} of {len(splits)} folds" for status, n in sorted(ends.items())]
    return Outcome(
        method=contender.name, status=whole.status, note="; ".join(notes),
        scores=tuple(scores), chosen=tuple(given.names_of(found.support) for found in picked),
        features=given.names_of(whole.support), objective=fit.objective,
        stability=contender.stability([found.support for found in picked]), seconds=whole.seconds,
        keeps_rules=contender.keeps_rules,
    )  # fmt: skip


def _all_features(given: Given, trial: Trial, splits: list[Split]) -> float:
    """The score with all columns that may be chosen, where that is cheap."""
    problem = given.problem
    out = [] if problem.rules is None else list(problem.rules.exclude)
    columns = np.setdiff1d(np.arange(problem.n_features), out)
    if len(columns) > ALL_COLUMNS or len(columns) * problem.n_rows > ALL_VALUES:
        return nan
    try:
        return float(np.mean([score_columns(trial, given, split, columns) for split in splits]))
    except Exception:
        # No more than a figure beside those that were asked for, whatever an estimator raises.
        return nan


def _missing(outcomes: list[Outcome]) -> str:
    first = outcomes[0]
    if first.scores:
        return ""
    return f"{first.method}, with which the others are compared, gave no answer ({first.note})"
