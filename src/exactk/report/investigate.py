"""Answer every question about a selection and collect the answers in a report.

Each part is computed by itself. A part that fails, or that the user stops, is None with a reason,
and the page says so. The page is drawn from the record alone, which is plain JSON.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import numpy as np

from exactk.errors import InputError
from exactk.evaluation.compare import Comparison
from exactk.methods.base import Method
from exactk.model_selection.choose_k import AutoKResult, choose_k, largest_size
from exactk.model_selection.frequencies import Frequencies, frequencies_by_size
from exactk.model_selection.path_runner import Clock
from exactk.model_selection.ridge import find_ridge
from exactk.model_selection.stability import stability
from exactk.model_selection.subsampling import usual_effort
from exactk.problem.problem import Problem
from exactk.proof.certify import certify as prove
from exactk.proof.results import Certificate
from exactk.report import figure_data
from exactk.report.data_warnings import find_warnings
from exactk.report.feature_table import (
    drop_losses,
    explain_by_moments,
    feature_rows,
    from_explanation,
    near_part,
    stability_part,
)
from exactk.report.scores import comparison_part, score_part, scored_sizes, sizes_part
from exactk.report.selection_report import SelectionReport
from exactk.report.serialize import (
    certificate_to_dict,
    frequency_map_to_dict,
    selection_to_dict,
    settings_to_dict,
)
from exactk.report.settings import PartRunner, Settings, versions
from exactk.report.validation import check_against, validate_settings
from exactk.result import Result, Status
from exactk.solver import solve

__all__ = ["BASELINES", "investigate"]

# What people use when they do not use this.
BASELINES = ("selectkbest", "rfe", "l1")
# Sizes beyond the one that was asked for, so that one sees what more would bring.
LEAST_SIZES = 10
# Seconds that the map of frequencies may take where no time limit is given: one of fewer halves is
# a map as well.
PATIENCE = 20.0
# Pieces of work among which a time limit is shared out.
PARTS = 9


def investigate(
    X: Any,
    y: Any = None,
    k: int | str | None = None,
    *,
    k_max: int | None = None,
    method: str | Method = "exchange",
    ridge: str | float | None = None,
    criterion: str = "cv",
    rule: str = "one_se",
    cv: Any = None,
    groups: Any = None,
    methods: Sequence[Any] = BASELINES,
    estimator: Any = None,
    scoring: Any = None,
    certify: float = 60.0,
    n_subsamples: int = 100,
    n_permutations: int = 100,
    effort: float | None = None,
    time_limit: float | None = None,
    random_state: int | None = None,
    verbose: int = 0,
    target: str | None = None,
    sample_weight: Any = None,
    task: Any = "auto",
    **options: Any,
) -> SelectionReport:
    """Choose features and find out all that one may ask about the choice.

    Which they are and what each is worth; what could stand in for them; whether there is any
    better set; how stable they are; what other sizes would bring; what they are worth on rows held
    out, beside the usual alternatives; and what is odd about the table. Ctrl-C ends it with the
    parts that are done.

    Parameters
    ----------
    X : array-like, sparse matrix or frame of shape (n, d), or Problem
        A `Problem` with its constraints, loss and weights in place of X, y, sample_weight and
        task.
    y : array-like of shape (n,) or (n, c), or None
    k : int, "auto" or None
        How many features; "auto" or None chooses the number.
    k_max : int or None
        The largest size that is tried or, where k is given, shown.
    method : str or Method
    ridge : "auto", "cv", float or None
        As in `TopKSelector`. None is "auto", or the ridge that a `Problem` has.
    criterion, rule, cv
        How a number is chosen, as in `exactk.choose_k`; cv are the folds of all scores. Within
        the training rows of others a number of folds is kept, and a splitter is not: five folds.
    groups : array-like of shape (n,) or None
        Rows that belong together, which no split parts.
    methods : sequence of str or Method
        What to compare with, as in `exactk.compare`; empty leaves the comparison out.
    estimator, scoring
        What is trained on the features and how it is scored, as in `exactk.score_selection`.
    certify : float
        Seconds for the proof that there is nothing better; 0 leaves it out.
    n_subsamples : int
        Halves of the rows for stability; 0 leaves it out.
    n_permutations : int
        Shuffled targets for the permutation test; 0 leaves it out.
    effort : float or None
        How hard the method searches.
    time_limit : float or None
        Seconds for all of it, shared out among the parts.
    random_state : int or None
        Seed of everything; None is a fixed seed.
    verbose : int
        1 shows progress.
    target : str or None
        What to call the target; None is the name of y, if it has one.
    sample_weight, task
        As in `Problem.from_arrays`.
    **options
        Parameters of a method that is given by name.

    Returns
    -------
    SelectionReport
        With `to_html` and `save` for the page, and the record behind it.

    Raises
    ------
    KeyboardInterrupt
        After Ctrl-C before there is a choice.

    Examples
    --------
    >>> import exactk
    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True, as_frame=True)
    >>> report = exactk.investigate(X, y, k=4, n_subsamples=20, n_permutations=0, methods=())
    >>> report.result.selected
    ('proline', 'color_intensity', 'flavanoids', 'alcohol')
    >>> report.record["certificate"]["proven"], report.warnings["kind"]
    (True, [])
    """
    number: Any = None if k == "auto" else k
    if ridge is None:
        ridge = X.ridge if isinstance(X, Problem) else "auto"
    settings = validate_settings(
        Settings(
            number, k_max, criterion, rule, cv, groups, method, dict(options), ridge, certify,
            n_subsamples, n_permutations, methods, estimator, scoring, random_state, verbose,
        ),
        effort, time_limit,
    )  # fmt: skip
    named = _name_of(y) if target is None else str(target)
    problem = _problem(X, y, sample_weight, task, settings)
    runner = PartRunner(Clock(time_limit), PARTS)
    result, choice, certificate = _choice(problem, settings, runner)
    problem = problem.with_ridge(result.ridge)
    found = _parts(problem, result, choice, certificate, settings, runner)
    record = {
        "format": "exactk-selection-report",
        "version": 1,
        "made": datetime.now(UTC).replace(microsecond=0).isoformat(),
        "versions": versions(),
        "settings": settings_to_dict(problem, settings, result, named),
        "selection": selection_to_dict(result, problem),
        **found,
        "warnings": [
            remark.to_dict() for remark in runner.retry_once(lambda: find_warnings(problem, result))
        ],
        "missing_parts": runner.missing_parts,
    }
    return SelectionReport(result, record, runner.stopped)


def _name_of(y: Any) -> str:
    """What a series, or a frame of one column, calls itself."""
    columns = list(getattr(y, "columns", ()))
    name = columns[0] if len(columns) == 1 else getattr(y, "name", None)
    return "y" if name is None else str(name)


def _problem(X: Any, y: Any, sample_weight: Any, task: Any, settings: Settings) -> Problem:
    """The problem, its rows in memory where they fit."""
    if isinstance(X, Problem):
        if y is not None or sample_weight is not None or task != "auto":
            raise InputError(
                "y, sample_weight and task cannot be given beside a Problem, which has its own"
            )
        problem = X
    elif y is None:
        raise InputError("y is None: give the target beside X, or one Problem in place of both")
    else:
        problem = Problem.from_arrays(X, y, sample_weight=sample_weight, task=task)
    if problem.stream is not None:
        # Where they do not fit, what needs rows says so, part by part.
        with suppress(InputError):
            problem = problem.in_memory(verbose=settings.verbose)
    check_against(settings, problem)
    return problem


def _choice(
    problem: Problem, settings: Settings, runner: PartRunner
) -> tuple[Result, AutoKResult | None, Certificate | None]:
    """The features, how many by choice or by demand, proven if that can be done in time."""
    choice = None
    if settings.k is None:
        choice = _sizes(problem, settings, settings.k_max, runner, settings.ridge)
        result = choice.result
    else:
        ridge = find_ridge(settings.ridge, problem, settings.k, random_state=settings.random_state)
        result = solve(
            problem.with_ridge(ridge), settings.k, settings.method, time_limit=runner.seconds(),
            verbose=settings.verbose, **settings.options,
        )  # fmt: skip
    runner.left -= 1
    problem = problem.with_ridge(result.ridge)
    if result.status == Status.INTERRUPTED:
        # Whoever stops a search may want what it has found, but nothing more.
        runner.stopped = True
    certificate = runner.run_part("certificate", lambda: _proof(problem, result, settings, runner))
    if certificate is not None and settings.minimises:
        # What others choose by is not the objective: theirs stays, and the page says what is lower.
        result = certificate.result
    return result, choice, certificate


def _proof(
    problem: Problem, result: Result, settings: Settings, runner: PartRunner
) -> Certificate | None:
    if settings.certify == 0:
        raise InputError("a proof was not asked for")
    share = runner.seconds()
    limit = settings.certify if share is None else min(share, settings.certify)
    return prove(
        problem, result, time_limit=None if np.isinf(limit) else limit, verbose=settings.verbose
    )


def _sizes(
    problem: Problem,
    settings: Settings,
    k_max: int | None,
    runner: PartRunner,
    ridge: str | float | None = None,
) -> AutoKResult:
    return choose_k(
        problem, k_max, criterion=settings.criterion, method=settings.method, **settings.by_folds,
        ridge=ridge, time_limit=runner.seconds(), verbose=settings.verbose,
        **{"random_state": settings.random_state, **settings.fast_options(problem)},
    )  # fmt: skip


def _shown_sizes(problem: Problem, settings: Settings, result: Result) -> int:
    """The largest size of the figures: some more than were chosen."""
    usual = largest_size(problem, settings.k_max)
    if settings.k is None or settings.k_max is not None:
        return usual
    return max(min(usual, max(2 * result.k, LEAST_SIZES)), result.k)


def _parts(
    problem: Problem,
    result: Result,
    choice: AutoKResult | None,
    certificate: Certificate | None,
    settings: Settings,
    runner: PartRunner,
) -> dict[str, Any]:
    """Everything that can be asked of the choice."""
    seed, k_max = settings.random_state, _shown_sizes(problem, settings, result)
    why = runner.run_part(
        "explanation", lambda: explain_by_moments(problem, result, seed, runner.seconds())
    )
    stable = runner.run_part("stability", lambda: _stability(problem, result, settings, runner))
    if choice is None:
        choice = runner.run_part("sizes", lambda: _sizes(problem, settings, k_max, runner))
    score = runner.run_part("score", lambda: score_part(problem, settings, runner))
    splits = None if score is None else score.splits
    scored = runner.run_part(
        "scores", lambda: scored_sizes(problem, k_max, settings, runner.seconds(), splits)
    )
    mapped = runner.run_part("frequencies", lambda: _frequencies(problem, k_max, settings, runner))
    compared = runner.run_part("comparison", lambda: _comparison(problem, result, settings, runner))
    losses = (
        runner.run_part("losses", lambda: drop_losses(problem, result))
        if why is None
        else from_explanation(why)
    )
    return {
        "features": runner.retry_once(lambda: feature_rows(problem, result, losses or {}, stable)),
        "coefficients": runner.retry_once(
            lambda: figure_data.coefficients(problem, result.support, result.coef)
        ),
        "near": None if why is None else near_part(why),
        "certificate": None if certificate is None else certificate_to_dict(certificate, result),
        "stability": None
        if stable is None
        else stability_part(stable, usual_effort(problem, settings.method)),
        "sizes": None if choice is None else sizes_part(choice, scored, result),
        "frequencies": None if mapped is None else frequency_map_to_dict(mapped),
        "score": None if score is None else score.to_dict(),
        "comparison": None if compared is None else compared.to_dict(),
        "correlations": runner.retry_once(lambda: figure_data.correlations(problem, result.order)),
        "means": runner.retry_once(lambda: figure_data.group_means(problem, result.order)),
    }


def _stability(problem: Problem, result: Result, settings: Settings, runner: PartRunner) -> Any:
    if settings.n_subsamples == 0:
        raise InputError("half-samples were not asked for")
    return stability(
        problem, result.k, n_subsamples=settings.n_subsamples, method=settings.method,
        groups=settings.groups, random_state=settings.random_state, time_limit=runner.seconds(),
        verbose=settings.verbose, **settings.half_options,
    )  # fmt: skip


def _frequencies(
    problem: Problem, k_max: int, settings: Settings, runner: PartRunner
) -> Frequencies:
    if settings.n_subsamples == 0:
        raise InputError("half-samples were not asked for")
    share = runner.seconds()
    return frequencies_by_size(
        problem, k_max, n_subsamples=max(settings.n_subsamples // 2, 2), method=settings.method,
        groups=settings.groups, random_state=settings.random_state,
        time_limit=PATIENCE if share is None else min(share, PATIENCE), verbose=settings.verbose,
        **settings.half_options,
    )  # fmt: skip


def _comparison(
    problem: Problem, result: Result, settings: Settings, runner: PartRunner
) -> Comparison:
    if not settings.methods:
        raise InputError("a comparison was not asked for")
    return comparison_part(problem, result, settings, runner)
