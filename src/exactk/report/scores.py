"""What a choice is worth: at every size, on rows held out, and beside other methods."""

from __future__ import annotations

from typing import Any

from exactk.estimators.selector import TopKSelector
from exactk.evaluation.compare import Comparison, compare
from exactk.evaluation.nested_cv import SelectionScore, score_selection
from exactk.model_selection.choose_k import AutoKResult, choose_k
from exactk.problem.problem import Problem
from exactk.report.figure_data import plain
from exactk.report.settings import PartRunner, Settings
from exactk.result import Result

__all__ = ["comparison_part", "score_part", "scored_sizes", "sizes_part"]

# Seconds for each choice of a number where searches are dear: what is left is then greedy.
PATIENCE = 5.0


def scored_sizes(
    problem: Problem, k_max: int, settings: Settings, seconds: float | None, splits: Any = None
) -> AutoKResult:
    """Return the score on rows held out at every size, on the folds of the score if there is one.

    Figures of one page that tell of the same size should come from the same rows.
    """
    scoring = settings.scoring
    if scoring is None and settings.estimator is None:
        scoring = "accuracy" if problem.task == "classification" else "r2"
    return choose_k(
        problem.in_memory(), k_max, method=settings.method, cv=splits or settings.cv,
        groups=None if splits else settings.groups, rule=settings.rule, scoring=scoring,
        estimator=settings.estimator, verbose=settings.verbose, time_limit=seconds,
        **{"random_state": settings.random_state, **settings.options, **_light(settings)},
    )  # fmt: skip


def _light(settings: Settings) -> dict[str, Any]:
    """Search all rows without effort: the columns of this path are not shown."""
    return {"effort": 0.0} if settings.method == "exchange" else {}


def sizes_part(choice: AutoKResult, scored: AutoKResult | None, result: Result) -> dict[str, Any]:
    """Return one row a size: objective, error and score on rows held out, and who came and went."""
    scores = {} if scored is None else {row["k"]: row for row in scored.table}
    rows: list[dict[str, Any]] = []
    before: list[str] = []
    for row in choice.table:
        here = row["k"] == result.k
        score = scores.get(row["k"], {})
        objective = result.objective if here else row["objective"]
        features = list(result.selected if here else row["features"])
        rows.append(
            {
                "k": row["k"],
                "objective": objective,
                # Without any column all of the target is left.
                "left": objective / result.total,
                "criterion": plain(row["criterion"]),
                "standard_error": plain(row["standard_error"]),
                "score": _number(score.get("mean")),
                "score_error": _number(score.get("standard_error")),
                "features": features,
                "added": [name for name in features if name not in before],
                "removed": [name for name in before if name not in features],
                "requested": here,
            }
        )
        before = features
    return {
        "rows": rows,
        "criterion": choice.criterion,
        "rule": choice.rule,
        "chosen": choice.k,
        "n_folds": choice.n_folds,
        "message": choice.message,
        "scoring": None if scored is None else scored.scoring,
        "score_chosen": None if scored is None else scored.k,
        "score_rule": None if scored is None else scored.rule,
        "score_folds": None if scored is None else scored.n_folds,
    }


def score_part(problem: Problem, settings: Settings, runner: PartRunner) -> SelectionScore:
    """Return what selection and estimator are worth on rows that neither has seen."""
    # A selection for all rows, one a fold, and one for each shuffled target.
    pieces = settings.n_permutations + 7
    seconds = runner.seconds(pieces)
    if seconds is None and settings.k is None and settings.is_expensive(problem):
        seconds = PATIENCE
    selector = TopKSelector(
        "auto" if settings.k is None else settings.k, method=settings.own_method(problem),
        k_max=settings.k_max,
        criterion=settings.criterion, rule=settings.rule, cv=settings.inner_folds,
        time_limit=seconds,
    )  # fmt: skip
    return score_selection(
        problem, selector=selector, ridge=settings.ridge, estimator=settings.estimator,
        scoring=settings.scoring, cv=settings.cv, groups=settings.groups,
        n_permutations=settings.n_permutations, random_state=settings.random_state,
        verbose=settings.verbose,
    )  # fmt: skip


def comparison_part(
    problem: Problem, result: Result, settings: Settings, runner: PartRunner
) -> Comparison:
    """Return the same number of features by other methods, on the same folds."""
    methods = [settings.own_method(problem), *settings.methods]
    return compare(
        problem, k=result.k, methods=methods, ridge=settings.ridge,
        estimator=settings.estimator, scoring=settings.scoring,
        cv=settings.cv, groups=settings.groups, random_state=settings.random_state,
        verbose=settings.verbose, time_limit=runner.seconds(6 * len(methods)),
    )  # fmt: skip


def _number(value: Any) -> float | None:
    return None if value is None else plain(value)
