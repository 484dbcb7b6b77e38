"""The question and its answer as plain values, fit for JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from exactk.errors import join_items
from exactk.model_selection.frequencies import Frequencies
from exactk.problem.problem import Problem
from exactk.proof.results import CONSTRAINED, Certificate
from exactk.report.data_warnings import class_rows, rows_are_compared
from exactk.report.figure_data import plain
from exactk.report.settings import Settings
from exactk.result import Result

__all__ = [
    "certificate_to_dict",
    "frequency_map_to_dict",
    "rules_to_dict",
    "selection_to_dict",
    "settings_to_dict",
]

# Features of the map of frequencies over sizes.
MAPPED = 30
# Names in the words of a constraint.
MOST_NAMES = 12


def frequency_map_to_dict(found: Frequencies) -> dict[str, Any]:
    """Return how often features are chosen at each size, those that are chosen most."""
    return {
        "sizes": found.sizes,
        "names": list(found.names[:MAPPED]),
        "values": found.values[:, :MAPPED].tolist(),
        "indices": [plain(index) for index in found.indices],
        "n_subsamples": found.n_subsamples,
    }


def certificate_to_dict(found: Certificate, result: Result) -> dict[str, Any]:
    """Return what is proven, and a better set than that of the record where one was found."""
    told = {name: value for name, value in found.to_dict().items() if name != "result"}
    differs = found.improved and set(found.result.selected) != set(result.selected)
    return {
        **told,
        "constrained": CONSTRAINED in found.assumptions,
        "better": list(found.result.selected) if differs else None,
    }


def selection_to_dict(result: Result, problem: Problem) -> dict[str, Any]:
    """Return what was chosen, and how the search ended."""
    return {
        "k": result.k,
        "selected": list(result.selected),
        "objective": result.objective,
        "residual": result.residual,
        "total": result.total,
        "explained": result.explained,
        "status": str(result.status),
        "message": result.message,
        "seconds": result.seconds,
        "method": result.method,
        "outputs": _outputs(result, problem),
        "intercept": [plain(value) for value in result.intercept],
    }


def _outputs(result: Result, problem: Problem) -> list[str]:
    if result.classes is not None:
        return [str(label) for label in result.classes]
    several = problem.n_outputs > 1
    return [f"output {i}" for i in range(problem.n_outputs)] if several else ["coefficient"]


def _parameters(settings: Settings) -> dict[str, Any]:
    """What was said of the method; an object says all."""
    if isinstance(settings.method, str):
        return settings.options
    return {**settings.method.get_params(), **settings.options}


def rules_to_dict(problem: Problem) -> dict[str, str]:
    """Return the constraints of a problem in words, those of its categories left out.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> held = Problem.from_arrays(X, y).with_constraints(exclude=[3], max_correlation=0.9)
    >>> rules_to_dict(held)
    {'exclude': "'petal width (cm)'", 'max_correlation': '0.9'}
    """
    rules = problem.rules
    if rules is None:
        return {}

    def names(columns: Sequence[int]) -> str:
        found = dict.fromkeys(problem.original_names[problem.input_columns[j]] for j in columns)
        return join_items(found, MOST_NAMES)

    coded = {group.name for group in problem.category_groups}
    groups = [
        f"{one.name}: {names(one.columns)}" for one in rules.feature_groups if one.name not in coded
    ]
    quotas = [
        f"{one.at_least} to {'any number' if one.at_most is None else one.at_most} of {one.name}: "
        f"{names(one.columns)}"
        for one in rules.quotas
    ]
    said = {
        "include": names(rules.include),
        "exclude": names(rules.exclude),
        "feature_groups": "; ".join(groups),
        "quotas": "; ".join(quotas),
        "budget": "" if rules.budget is None else f"{rules.budget:g}",
        "max_correlation": "" if rules.max_correlation is None else f"{rules.max_correlation:g}",
    }
    return {name: text for name, text in said.items() if text}


def settings_to_dict(
    problem: Problem,
    settings: Settings,
    result: Result,
    target: str,
) -> dict[str, Any]:
    """Return what was asked for, and of which table."""
    counts = class_rows(problem)
    return {
        "table": None,
        "command": None,
        "code": None,
        "checksum": None,
        "constraints": rules_to_dict(problem),
        "target": target,
        "task": problem.task,
        "loss": problem.loss.name,
        "loss_options": {
            name: _plain_or_text(value) for name, value in problem.loss.get_params().items()
        },
        "standardised": problem.scaled,
        "class_weights": ", ".join(str(weight) for weight in problem.class_weights) or None,
        "n_rows": problem.n_rows,
        "n_features": len(problem.original_names),
        "classes": None
        if counts is None or problem.classes is None
        else [
            {"label": str(label), "rows": float(count)}
            for label, count in zip(problem.classes, counts, strict=True)
        ],
        "k": settings.k,
        "k_max": settings.k_max,
        "method": result.method,
        "options": {
            name: value if isinstance(value, (int, str)) else _plain_or_text(value)
            for name, value in _parameters(settings).items()
            if value is not None
        },
        "ridge": result.ridge,
        "ridge_rule": settings.ridge if isinstance(settings.ridge, str) else float(settings.ridge),
        "in_memory": problem.rows is not None,
        "rows_compared": rows_are_compared(problem),
        "weighted": problem.row_weights is not None,
        "grouped": settings.groups is not None,
        "seed": settings.random_state,
    }


def _plain_or_text(value: Any) -> Any:
    """A number that JSON has, else the text of a value."""
    number = plain(value) if isinstance(value, float) else None
    return str(value) if number is None else number
