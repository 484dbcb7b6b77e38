"""Answer every question about a selection and collect the answers in a report.

Each part is computed by the public function of its question. A part that fails, that the time
limit does not reach or that the user stops is None, and the report says why.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from math import inf
from typing import Any, TypeVar

import numpy as np

from exactk.errors import ExactkError, InputError
from exactk.evaluation.evaluate import Evaluation, measure_evaluation
from exactk.evaluation.fold_methods import configured_method, named_methods
from exactk.evaluation.holdout import FoldScores
from exactk.methods import registry
from exactk.methods.base import Method, generator
from exactk.model_selection.choose_k import AutoK, AutoKResult, choose_k
from exactk.model_selection.cross_validation import is_number, make_splits
from exactk.model_selection.explain import explain
from exactk.model_selection.scoring import read_estimator, read_scoring
from exactk.model_selection.stability import Stability, measure_stability
from exactk.params import defaults_of, validate
from exactk.problem.problem import Problem
from exactk.proof.certify import certify as prove
from exactk.question import Question, is_auto, largest_size, read_problem
from exactk.report import figure_data
from exactk.report.data_warnings import find_warnings
from exactk.report.facts import (
    call_source,
    changed_parameters,
    name_of_target,
    python_code,
    table_facts,
    versions,
)
from exactk.report.selection_report import INTERRUPTED, OUT_OF_TIME, SelectionReport
from exactk.result import Result, Status
from exactk.solver import solve
from exactk.types import Task
from exactk.utils.records_table import RecordsTable

__all__ = ["investigate"]

# Sizes beyond the requested one that the figures show.
LEAST_SIZES = 10
# Alternative sets that the page lists, and seconds for them without a time limit.
NEAR_SETS, NEAR_SECONDS = 20, 20.0
# Features in the map of frequencies over sizes.
MAPPED = 30

Found = TypeVar("Found")


def investigate(
    X: Any,
    y: Any = None,
    *,
    k: int | str | AutoK = "auto",
    method: str | Method = "exchange",
    compare_with: Sequence[str | Method] = ("selectkbest", "rfe", "l1"),
    estimator: Any = None,
    scoring: Any = None,
    cv: Any = None,
    groups: Any = None,
    certify: bool | float = 60.0,
    n_subsamples: int = 100,
    n_permutations: int = 100,
    ridge: str | float | None = None,
    effort: float | None = None,
    time_limit: float | None = None,
    random_state: Any = None,
    verbose: int = 0,
    target: str | None = None,
    sample_weight: Any = None,
    task: Task = "auto",
    loss: Any = None,
    class_weight: Any = None,
    constraints: Any = None,
) -> SelectionReport:
    """Select features, answer all questions about the selection and collect them in a report.

    The report says what each feature contributes and what could replace it, whether a better set
    exists, how stable the selection is, how other numbers of features compare, how good the
    selection is on held-out rows and beside other methods, and what is unusual about the table.

    Parameters
    ----------
    X : array-like, sparse matrix, frame or Problem
    y : array-like or None
        The target; None if X is a Problem.
    k : int, "auto" or AutoK
        Number of features. To choose it, `AutoK` has folds of its own within training rows.
    method : str or Method
    compare_with : list of str or Method
        Other methods to evaluate on the same folds; an empty list leaves the comparison out.
    estimator, scoring
        What is trained on the selected features, and its score, as in `exactk.evaluate`.
    cv : int, scikit-learn splitter, iterable of (train, test), or None
        Folds of the evaluation and of the other numbers of features; None is five.
    groups : array-like or None
        Group of each row; rows of one group stay together in every split.
    certify : float or bool
        Seconds for the proof of optimality; 0 or False leaves it out.
    n_subsamples : int
        Number of half-samples; 0 leaves the stability out.
    n_permutations : int
        Number of shuffled targets; 0 leaves the permutation test out.
    ridge : "auto", "cv", float or None
        None is the ridge of a Problem, or "auto" for a table.
    effort : float or None
        Search effort.
    time_limit : float or None
        Maximum time in seconds for the whole report, shared among its parts.
    random_state : int, Generator, RandomState or None
        Seed of all parts; None is a fixed seed.
    verbose : int
        1 shows progress.
    target : str or None
        Name of the target on the page; None is the name of y, if it has one.
    sample_weight, task, loss, class_weight, constraints
        As in `exactk.TopKSelector`; those of a Problem are kept unless others are given.

    Returns
    -------
    SelectionReport
        After Ctrl-C with the parts that were finished, and `interrupted` True.

    Raises
    ------
    KeyboardInterrupt
        Ctrl-C before any selection was found.

    Examples
    --------
    >>> import exactk
    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True, as_frame=True)
    >>> report = exactk.investigate(X, y, k=4, n_subsamples=20, n_permutations=0, compare_with=())
    >>> report.result.selected
    ('proline', 'color_intensity', 'flavanoids', 'alcohol')
    >>> report.certificate.proven, report.warnings["kind"]
    (True, [])
    """
    given = dict(locals())
    # Zero leaves a part out; only here.
    left_out = {name for name in ("certify", "n_subsamples") if given[name] == 0}
    checked = {name: value for name, value in given.items() if name not in left_out}
    validate(checked, defaults_of(investigate))
    parts = _Parts(time_limit, 5 + bool(certify) + bool(n_subsamples))
    problem = read_problem(
        X, y, sample_weight=sample_weight, task=task, loss=loss, class_weight=class_weight,
        constraints=constraints,
    )  # fmt: skip
    if problem.stream is not None:
        # If the rows do not fit, each part that needs them says so.
        with suppress(InputError):
            problem = problem.in_memory(verbose=verbose)
    if ridge is None and not isinstance(X, Problem):
        ridge = "auto"
    if not (random_state is None or isinstance(random_state, (int, np.integer))):
        # All parts get the same seed.
        random_state = int(generator(random_state).integers(2**31))
    if not (is_number(cv) or hasattr(cv, "split")) and np.iterable(cv):
        # Pairs of rows can often be read only once.
        cv = list(cv)
    named = named_methods(method, compare_with)
    del named[next(iter(named))]
    size = problem.check_k(k) if not is_auto(k) else k if isinstance(k, AutoK) else AutoK()
    question = _Question(
        problem, size, method, tuple(named.values()), estimator, scoring, cv, groups, ridge,
        effort, random_state, verbose,
    )  # fmt: skip
    question.check()
    call = call_source(changed_parameters(investigate, {**given, "compare_with": compare_with}))
    settings = {
        "made": datetime.now(UTC).replace(microsecond=0).isoformat(),
        "versions": versions(),
        "target": name_of_target(y) if target is None else str(target),
        "call": call,
        "code": python_code(call, None, "problem" if isinstance(X, Problem) else "X, y"),
        "grouped": groups is not None,
        "k": None if isinstance(size, AutoK) else size,
        "ridge_rule": ridge if isinstance(ridge, str) else None,
        "seed": None if random_state is None else int(random_state),
        "table": None, "command": None, "checksum": None,
        **table_facts(problem),
    }  # fmt: skip
    return _answer(question, parts, settings, certify, n_subsamples, n_permutations)


@dataclass(frozen=True)
class _Question:
    """What an investigation was asked, as all parts need it."""

    problem: Problem
    k: int | AutoK
    method: str | Method
    compare_with: tuple[str | Method, ...]
    estimator: Any
    scoring: Any
    cv: Any
    groups: Any
    ridge: Any
    effort: float | None
    seed: int | None
    verbose: int

    def check(self) -> None:
        """Raise for parameters that cannot be used, before the first search."""
        configured_method(self.method, self.effort, self.seed)
        problem = self.problem
        if problem.rows is not None and (self.cv is not None or self.groups is not None):
            assert self.splits  # made now, so that folds that cannot be used are an error
        if self.estimator is not None or self.scoring is not None:
            several = problem.task == "classification" and problem.classes is None
            made = read_estimator(self.estimator, problem.task, several_labels=several)
            if self.scoring is not None:
                read_scoring(self.scoring, made)
            if problem.rows is not None:
                # Without features, on all rows: whether the score is defined for the target.
                rows = problem.weighted_rows
                FoldScores(problem, problem, [(rows, rows)], self.estimator, self.scoring)

    @cached_property
    def splits(self) -> Any:
        """The folds of all scores; as they were given if the rows are not in memory."""
        if self.problem.rows is None:
            return self.cv
        return make_splits(self.problem, self.cv, self.groups, self.seed)

    @property
    def is_foreign(self) -> bool:
        """Whether estimator or score are of the user."""
        own = self.estimator is not None and not isinstance(self.estimator, str)
        return own or callable(self.scoring)

    @property
    def light_effort(self) -> float | None:
        """Effort of repeated searches: 0 if text columns or constraints make them slow."""
        rules = self.problem.rules
        is_long = rules is not None and not rules.is_simple and self.method == "exchange"
        return 0.0 if is_long and self.effort is None else self.effort

    @property
    def common(self) -> dict[str, Any]:
        """Parameters that several parts take."""
        return {"method": self.method, "random_state": self.seed, "verbose": self.verbose}


class _Parts:
    """The parts of a report as they are computed: why parts are missing, and what time is left.

    `left` is the number of parts to compute, among which the time is shared.
    """

    def __init__(self, time_limit: float | None, left: int) -> None:
        self.left = left
        self.missing: dict[str, str] = {}
        self.interrupted = False
        self._end = None if time_limit is None else time.monotonic() + time_limit

    def seconds(self, pieces: int = 1, most: float | None = None) -> float | None:
        """Return the time of the next part, or of each of its pieces."""
        if self._end is None:
            return most
        share = max((self._end - time.monotonic()) / max(self.left, 1) / pieces, 1e-9)
        return share if most is None else min(share, most)

    def run(
        self, name: str, call: Callable[[], Found], *, is_foreign: bool = False
    ) -> Found | None:
        """Return one part, or None with a reason in `missing`; code of the user may fail."""
        found = None
        if self.interrupted:
            self.missing[name] = INTERRUPTED
        elif self._end is not None and time.monotonic() >= self._end:
            self.missing[name] = OUT_OF_TIME
        else:
            try:
                found = call()
                self.interrupted = getattr(found, "status", None) == Status.INTERRUPTED
            except KeyboardInterrupt:
                self.interrupted = True
                self.missing[name] = INTERRUPTED
            except ExactkError as error:
                self.missing[name] = str(error)
            except Exception as error:
                # An estimator, score or method of the user may raise anything; our own bugs pass.
                if not is_foreign:
                    raise
                self.missing[name] = f"{type(error).__name__}: {error}"
        self.left -= 1
        return found

    def finish(self, call: Callable[[], Found]) -> Found:
        """Return what takes a moment, although Ctrl-C comes: nothing found before is lost."""
        try:
            return call()
        except KeyboardInterrupt:
            self.interrupted = True
            return call()


def _answer(
    asked: _Question, parts: _Parts, settings: dict[str, Any], certify: bool | float,
    n_subsamples: int, n_permutations: int,
) -> SelectionReport:  # fmt: skip
    """Compute all parts."""
    choice, found = _select(asked, parts)
    parts.left -= 1 if choice is None else 2
    problem = asked.problem.with_ridge(found.ridge)
    parts.interrupted = Status.INTERRUPTED in (found.status, choice and choice.status)
    result, certificate, stable, evaluation = found, None, None, None
    if certify:
        limit = 60.0 if certify is True else float(certify)
        certificate = parts.run("certificate", lambda: prove(
            problem, features=found, time_limit=parts.seconds(most=limit), verbose=asked.verbose,
        ))  # fmt: skip
    if certificate is not None and _minimises(asked.method):
        # Another method selects by its own criterion: its set stays, and the page compares.
        result = certificate.result
    explanation = parts.run("explanation", lambda: explain(
        problem, features=result, max_sets=NEAR_SETS, random_state=asked.seed,
        time_limit=parts.seconds(most=NEAR_SECONDS),
    ))  # fmt: skip
    k_max = _shown_sizes(asked, choice, result)
    if n_subsamples:
        stable = parts.run("stability", lambda: measure_stability(
            Question(problem, result.k, result.order, result), k_max=k_max,
            n_subsamples=n_subsamples, groups=asked.groups, time_limit=parts.seconds(),
            **asked.common,
        ))  # fmt: skip
    if choice is None:
        choice = parts.run("choice", lambda: _choose(problem, asked, parts, k_max, asked.splits))
    evaluation = parts.run(
        "evaluation", lambda: _evaluate(asked, parts, found, n_permutations),
        is_foreign=asked.is_foreign,
    )  # fmt: skip
    scores = parts.run(
        "scores", lambda: _scores(problem, asked, parts, k_max), is_foreign=asked.is_foreign
    )
    losses = None
    if not problem.loss.by_moments:
        # No explanation, which needs moments.
        losses = parts.run("losses", lambda: _drop_losses(problem, result))
    figures = parts.finish(lambda: _figures(problem, result, choice, scores))
    figures |= {"losses": losses, "frequencies": _frequencies(stable)}
    warnings = parts.finish(lambda: find_warnings(problem, result))
    columns = ("kind", "serious", "text", "names")
    return SelectionReport(
        result=result, choice=choice, certificate=certificate, stability=stable,
        explanation=explanation, evaluation=evaluation,
        warnings=RecordsTable(columns, [[getattr(w, name) for name in columns] for w in warnings]),
        missing_parts=parts.missing, interrupted=parts.interrupted,
        settings=settings, figures=figures,
    )  # fmt: skip


def _minimises(method: str | Method) -> bool:
    """Whether a method selects by the objective itself, as a proof does."""
    kind = registry.method_class(method) if isinstance(method, str) else type(method)
    return kind.takes_losses


def _select(asked: _Question, parts: _Parts) -> tuple[AutoKResult | None, Result]:
    """Return the selection on all rows, and how its number of features was chosen."""
    problem = asked.problem
    if isinstance(asked.k, AutoK):
        # A number of folds is dealt as in `choose_k`; a splitter may shuffle each time.
        cv = asked.cv if is_number(asked.cv) else asked.splits
        choice = _choose(problem, asked, parts, None, cv)
        return choice, choice.result
    if asked.ridge is not None:
        problem = problem.with_ridge(
            asked.ridge, asked.k, random_state=asked.seed, groups=asked.groups
        )
    method = configured_method(asked.method, asked.effort, asked.seed)
    return None, solve(problem, asked.k, method, time_limit=parts.seconds(), verbose=asked.verbose)


def _choose(
    problem: Problem, asked: _Question, parts: _Parts, k_max: int | None, cv: Any
) -> AutoKResult:
    """Return the choice of the number of features, or what it would be."""
    auto = asked.k if isinstance(asked.k, AutoK) else AutoK(k_max=k_max)
    by_folds = auto.criterion == "cv"
    options = auto.get_params(deep=False)
    if by_folds and options["cv"] is None:
        options["cv"] = cv
    ridge = asked.ridge if k_max is None else None
    return choose_k(
        problem, **options, ridge=ridge,
        groups=asked.groups if by_folds or ridge == "cv" else None, effort=asked.light_effort,
        time_limit=parts.seconds(), **asked.common,
    )  # fmt: skip


def _shown_sizes(asked: _Question, choice: AutoKResult | None, result: Result) -> int:
    """Return the largest number of features in figures: more than were requested."""
    if choice is not None:
        return choice.k_max
    usual = largest_size(asked.problem)
    return max(min(usual, max(2 * result.k, LEAST_SIZES)), result.k)


def _evaluate(asked: _Question, parts: _Parts, found: Result, n_permutations: int) -> Evaluation:
    # A search on all rows is known; one for each fold and shuffled target, and other methods.
    pieces, share = n_permutations + 6 * (1 + len(asked.compare_with)), parts.seconds()
    return measure_evaluation(
        asked.problem, None, k=asked.k, features=None, compare_with=asked.compare_with,
        estimator=asked.estimator, scoring=asked.scoring, cv=asked.splits, groups=asked.groups,
        n_permutations=n_permutations, ridge=asked.ridge, effort=asked.light_effort,
        time_limit=None if share is None else share / pieces, known=found,
        end=inf if share is None else time.monotonic() + share, **asked.common,
    )  # fmt: skip


def _scores(problem: Problem, asked: _Question, parts: _Parts, k_max: int) -> AutoKResult:
    """Return the score on the held-out rows of the evaluation for every number of features."""
    scoring = asked.scoring
    if scoring is None and asked.estimator is None:
        scoring = "accuracy" if problem.task == "classification" else "r2"
    rule = asked.k.rule if isinstance(asked.k, AutoK) else "one_se"
    return choose_k(
        problem.in_memory(), k_max=k_max, cv=asked.splits, rule=rule, scoring=scoring,
        estimator=asked.estimator, effort=0.0 if asked.method == "exchange" else asked.effort,
        time_limit=parts.seconds(), **asked.common,
    )  # fmt: skip


def _drop_losses(problem: Problem, result: Result) -> list[dict[str, Any]]:
    """Return the rise of the objective without each feature, by fits to the rows."""
    rows = []
    for name in result.selected:
        rest = np.setdiff1d(result.support, problem.find_columns([name]))
        loss = problem.objective(rest) - result.objective
        rows.append({"feature": name, "loss": loss, "loss_fraction": loss / result.total})
    return rows


def _figures(
    problem: Problem, result: Result, choice: AutoKResult | None, scores: AutoKResult | None
) -> dict[str, Any]:
    """Return the numbers of figures that are in no part."""
    explained = {} if choice is None else {str(one.k): one.explained for one in choice.path}
    return {
        "features": figure_data.features(problem, result),
        "coefficients": figure_data.coefficients(problem, result.support, result.coef),
        "correlations": figure_data.correlations(problem, result.order),
        "means": figure_data.group_means(problem, result.order),
        "explained": explained | {str(result.k): result.explained},
        "scores": None if scores is None else scores.to_dict(),
    }


def _frequencies(stable: Stability | None) -> dict[str, Any] | None:
    """Return how often the most frequent features are selected at every number of features."""
    if stable is None or stable.by_size is None:
        return None
    found = stable.by_size
    return {
        "sizes": found.sizes,
        "names": list(found.names[:MAPPED]),
        "values": found.values[:, :MAPPED].tolist(),
        "n_subsamples": found.n_subsamples,
    }
