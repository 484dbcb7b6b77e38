"""What is known of each chosen feature, and of those that nearly were."""

from __future__ import annotations

from typing import Any

import numpy as np

from exactk.model_selection.explain import Explanation, explain
from exactk.model_selection.stability import Stability
from exactk.problem.problem import Problem
from exactk.report.figure_data import plain
from exactk.result import Result

__all__ = [
    "drop_losses",
    "explain_by_moments",
    "feature_rows",
    "from_explanation",
    "near_part",
    "stability_part",
]

# What is known of each chosen feature, by its name.
Losses = dict[str, dict[str, Any]]

# Sets nearly as good that a page lists, and features that come nearest to being chosen.
NEAR_SETS = 20
NEAREST = 10
# Seconds that the list of near sets may take where no time limit is given.
PATIENCE = 20.0


def explain_by_moments(
    problem: Problem, result: Result, seed: int | None, seconds: float | None
) -> Explanation:
    """Explain a choice by its moments; raises for losses that need rows."""
    return explain(
        problem, result, max_sets=NEAR_SETS, random_state=seed,
        time_limit=PATIENCE if seconds is None else min(seconds, PATIENCE),
    )  # fmt: skip


def from_explanation(explanation: Explanation) -> Losses:
    """Return what each chosen feature is worth, and its best substitute."""
    return {row["feature"]: row for row in explanation.selected_features}


def feature_rows(
    problem: Problem, result: Result, losses: Losses, found: Stability | None
) -> list[dict[str, Any]]:
    """Return one row a chosen feature, in order of entry."""
    must = set() if problem.rules is None else set(problem.rules.include)
    stable = {} if found is None else {row["feature"]: row for row in found.table}
    rows = []
    for rank, name in enumerate(result.selected, start=1):
        own, often = losses.get(name, {}), stable.get(name, {})
        columns = problem.find_columns([name])
        rows.append(
            {
                "rank": rank,
                "feature": name,
                "columns": problem.table_columns(columns),
                **{
                    part: _plain(own.get(part))
                    for part in (
                        "loss",
                        "loss_fraction",
                        "substitute",
                        "substitution_cost",
                        "substitution_fraction",
                    )
                },
                "included": not must.isdisjoint(columns),
                **{part: _plain(often.get(part)) for part in ("frequency", "low", "high", "part")},
                "score": _score(result, columns),
            }
        )
    return rows


def near_part(explanation: Explanation) -> dict[str, Any]:
    """Return the sets and the features that are nearly as good, as plain values."""
    return {
        "tolerance": explanation.tolerance,
        "is_complete": explanation.is_complete,
        "message": explanation.message,
        "sets": [
            {name: row[name] for name in ("rank", "excess", "added", "removed")}
            for row in explanation.alternatives
        ],
        "outside": [
            {name: row[name] for name in ("feature", "loss_fraction", "instead_of")}
            for row in explanation.runners_up[:NEAREST]
        ],
        "pairs": explanation.pairs.to_dicts(),
    }


def stability_part(found: Stability, effort: float | None) -> dict[str, Any]:
    """Return how far half-samples agree, as plain values, and how hard they were searched."""
    return {
        "effort": effort,
        "index": plain(found.index),
        "interval": [plain(end) for end in found.interval],
        "level": found.level,
        "n_subsamples": found.n_subsamples,
        "threshold": found.threshold,
        "negligible": found.negligible,
        "core": list(found.core.names),
        "unstable": list(found.unstable.names),
        "frequencies": [
            {name: row[name] for name in ("feature", "frequency", "low", "high", "part")}
            for row in found.table
            if row["part"] != "rare" or row["in_full"]
        ],
        "message": found.message,
    }


def drop_losses(problem: Problem, result: Result) -> Losses:
    """Return what each feature is worth by a loss that needs rows: fits without it."""
    rows: Losses = {}
    for name in result.selected:
        rest = np.setdiff1d(result.support, problem.find_columns([name]))
        loss = problem.objective(rest) - result.objective
        rows[name] = {"loss": loss, "loss_fraction": loss / result.total}
    return rows


def _score(result: Result, columns: tuple[int, ...]) -> float | None:
    """What a filter thinks of a feature: the best of its columns."""
    if result.scores is None:
        return None
    scores = result.scores[list(columns)]
    return None if np.isnan(scores).all() else plain(np.nanmax(scores))


def _plain(value: Any) -> Any:
    return plain(value) if isinstance(value, (int, float)) else value
