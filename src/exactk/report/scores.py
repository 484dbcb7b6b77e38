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
    problem: Problem, k_max: int, asked: Settings, seconds: float | None, splits: Any = None
) -> AutoKResult:
    """Return the score on rows held out at every size, on the folds of the score if there is one.

    Figures of one page that tell of the same size should come from the same rows.
    """
    scoring = asked.scoring
    if scoring is None and asked.estimator is None:
        scoring = "accuracy" if problem.task == "classification" else "r2"
    return choose_k(
        problem.in_memory(), k_max, method=asked.method, cv=splits or asked.cv,
        groups=None if splits else asked.groups, rule=asked.rule, scoring=scoring,
        estimator=asked.estimator, verbose=asked.verbose, time_limit=seconds,
        **{"random_state": asked.random_state, **asked.options, **_light(asked)},
    )  # fmt: skip


def _light(asked: Settings) -> dict[str, Any]:
    """Search all rows without effort: the columns of this path are not shown."""
    return {"effort": 0.0} if asked.method == "exchange" else {}


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
                "asked": here,
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


def score_part(problem: Problem, asked: Settings, work: PartRunner) -> SelectionScore:
    """Return what selection and estimator are worth on rows that neither has seen."""
    # A selection for all rows, one a fold, and one for each shuffled target.
    pieces = asked.n_permutations + 7
    seconds = work.seconds(pieces)
    if seconds is None and asked.k is None and asked.is_expensive(problem):
        seconds = PATIENCE
    selector = TopKSelector(
        "auto" if asked.k is None else asked.k, method=asked.own_method(problem), k_max=asked.k_max,
        criterion=asked.criterion, rule=asked.rule, cv=asked.inner_folds,
        time_limit=seconds,
    )  # fmt: skip
    return score_selection(
        problem, selector=selector, ridge=asked.ridge, estimator=asked.estimator,
        scoring=asked.scoring, cv=asked.cv, groups=asked.groups,
        n_permutations=asked.n_permutations, random_state=asked.random_state,
        verbose=asked.verbose,
    )  # fmt: skip


def comparison_part(
    problem: Problem, result: Result, asked: Settings, work: PartRunner
) -> Comparison:
    """Return the same number of features by other methods, on the same folds."""
    methods = [asked.own_method(problem), *asked.methods]
    return compare(
        problem, k=result.k, methods=methods, ridge=asked.ridge,
        estimator=asked.estimator, scoring=asked.scoring,
        cv=asked.cv, groups=asked.groups, random_state=asked.random_state, verbose=asked.verbose,
        time_limit=work.seconds(6 * len(methods)),
    )  # fmt: skip


def _number(value: Any) -> float | None:
    return None if value is None else plain(value)
