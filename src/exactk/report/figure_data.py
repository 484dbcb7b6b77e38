"""Numbers behind the figures of the selected features: coefficients, correlations, means."""

from __future__ import annotations

from typing import Any

import numpy as np

from exactk.problem.problem import Problem
from exactk.result import Result
from exactk.types import Floats, Indices

__all__ = ["coefficients", "correlations", "features", "group_means", "plain"]


# A picture of more is no picture; those that entered first are shown.
MOST_COLUMNS = 40
PARTS = ("lowest quarter", "second", "third", "highest quarter")


def features(problem: Problem, result: Result) -> list[dict[str, Any]]:
    """Return rank, name and score of each selected feature; included ones last, without a rank.

    Parameters
    ----------
    problem : Problem
    result : Result

    Examples
    --------
    >>> from exactk import solve
    >>> from sklearn.datasets import load_iris
    >>> problem = Problem.from_arrays(*load_iris(return_X_y=True)).with_constraints(include=[0])
    >>> [(row["rank"], row["feature"]) for row in features(problem, solve(problem, 2))]
    [(1, 'x2'), (None, 'x0')]
    """
    ranked: list[dict[str, Any]] = []
    last: list[dict[str, Any]] = []
    for name in result.selected:
        columns = list(problem.find_columns([name]))
        held = any(problem.name(j) in result.included for j in columns)
        score = None
        if result.scores is not None and not np.isnan(result.scores[columns]).all():
            score = plain(np.nanmax(result.scores[columns]))
        row = {"rank": None if held else len(ranked) + 1, "feature": name}
        (last if held else ranked).append({**row, "included": held, "score": score})
    return [*ranked, *last]


def correlations(problem: Problem, columns: Indices) -> dict[str, Any]:
    """Return the correlations among some columns, in their order.

    Parameters
    ----------
    problem : Problem
    columns : ndarray of intp

    Returns
    -------
    dict
        ``names``, and ``values`` as a list of rows; None where a column is constant.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> problem = Problem.from_arrays(*load_iris(return_X_y=True))
    >>> round(correlations(problem, np.array([2, 3]))["values"][0][1], 4)
    0.9629
    """
    shown = columns[:MOST_COLUMNS]
    block = problem.gram.block(shown)
    size = np.sqrt(np.diagonal(block))
    with np.errstate(divide="ignore", invalid="ignore"):
        values = np.clip(block / np.outer(size, size), -1.0, 1.0)
    return {
        "names": [problem.name(j) for j in shown],
        "values": [[plain(value) for value in row] for row in values],
        "left_out": len(columns) - len(shown),
    }


def coefficients(problem: Problem, columns: Indices, coef: Floats) -> list[dict[str, Any]]:
    """Return the coefficients of columns, in units of the table and per standard deviation.

    Parameters
    ----------
    problem : Problem
    columns : ndarray of intp
    coef : ndarray of shape (n_outputs, n_columns)
        In units of the table, as in `Result.coef`.
    """
    _, spread = _whole(problem, columns)
    return [
        {
            "column": problem.name(j),
            "feature": problem.original_names[problem.input_columns[j]],
            "raw": [plain(value) for value in coef[:, i]],
            "standardised": [plain(value) for value in coef[:, i] * spread[i]],
        }
        for i, j in enumerate(columns.tolist())
    ]


def group_means(problem: Problem, columns: Indices) -> dict[str, Any]:
    """Return the mean of columns in each class, or in each quarter of a target of numbers.

    Means of classes come from moments; the spread within them, and quarters, from rows. With
    several outputs it is the correlation with each.

    Parameters
    ----------
    problem : Problem
    columns : ndarray of intp

    Returns
    -------
    dict
        ``kind`` ("classes", "quarters", "outputs" or "none"), ``groups`` (labels), and for each
        of ``features`` its ``name``, ``mean``, ``sd``, and ``means`` and ``sds`` by group.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> found = group_means(Problem.from_arrays(X, y), np.array([3]))
    >>> [round(mean, 3) for mean in found["features"][0]["means"]]
    [0.246, 1.326, 2.026]
    """
    shown = columns[:MOST_COLUMNS]
    if problem.classes is not None:
        kind, groups = "classes", [str(label) for label in problem.classes]
        means, sds = _by_class(problem, shown)
    elif problem.rows is None or problem.target is None:
        kind, groups = "none", []
        means, sds = np.zeros((0, len(shown))), None
    elif problem.n_outputs > 1:
        kind, groups = "outputs", [f"output {i}" for i in range(problem.n_outputs)]
        means, sds = _by_output(problem, shown), None
    else:
        kind, groups = "quarters", list(PARTS)
        means, sds = _by_quarter(problem, shown)
    mean, sd = _whole(problem, shown)
    features = [
        {
            "name": problem.name(j),
            "mean": plain(mean[i]),
            "sd": plain(sd[i]),
            "means": [plain(value) for value in means[:, i]],
            "sds": None if sds is None else [plain(value) for value in sds[:, i]],
        }
        for i, j in enumerate(shown.tolist())
    ]
    return {
        "kind": kind,
        "groups": groups,
        "features": features,
        "left_out": len(columns) - len(shown),
    }


def plain(value: Any) -> float | None:
    """Return a number for JSON; None where it is not finite."""
    number = float(value)
    return number if np.isfinite(number) else None


def _by_class(problem: Problem, columns: Indices) -> tuple[Floats, Floats | None]:
    target, rows = problem.target, problem.rows
    if rows is not None and target is not None and target.codes is not None:
        # As the rows are, whatever classes weigh in the choice.
        return _weighted(problem, columns, np.eye(problem.n_outputs)[target.codes])
    squared = problem.with_squared_loss
    scale = _scale(squared, columns)
    offsets = squared.cross[:, columns] / scale / (squared.y_mean * squared.weight)[:, None]
    return squared.x_mean[columns] + offsets, None


def _whole(problem: Problem, columns: Indices) -> tuple[Floats, Floats]:
    """Means and deviations of columns over all rows as they are, whatever their classes weigh."""
    if problem.base_weights and problem.rows is not None:
        means, sds = _weighted(problem, columns, np.ones((problem.rows.n_rows, 1)))
        return means[0], sds[0]
    squared, counted = problem.with_squared_loss, problem.n_rows
    variances = squared.scatter[columns] / squared.weight * (counted / (counted - 1.0))
    return squared.x_mean[columns], np.sqrt(variances) / _scale(squared, columns)


def _scale(squared: Problem, columns: Indices) -> Floats:
    """What columns were divided by; those that are constant by nothing."""
    return np.where(squared.x_scale[columns] > 0, squared.x_scale[columns], 1.0)


def _by_quarter(problem: Problem, columns: Indices) -> tuple[Floats, Floats]:
    assert problem.target is not None
    assert problem.target.values is not None
    y = problem.target.values[:, 0]
    weights = problem.row_weights
    limits = np.quantile(y if weights is None else y[weights > 0], (0.25, 0.5, 0.75))
    return _weighted(problem, columns, np.eye(len(PARTS))[np.searchsorted(limits, y)])


def _weighted(problem: Problem, columns: Indices, member: Floats) -> tuple[Floats, Floats]:
    """Means and deviations of columns in each group of rows."""
    assert problem.rows is not None
    x, weights = problem.rows.columns(columns), problem.row_weights
    if weights is not None:
        member = member * weights[:, None]
    total, counted = member.sum(axis=0)[:, None], (member > 0).sum(axis=0)[:, None]
    # Of one row there is no deviation, of none not even a mean.
    with np.errstate(divide="ignore", invalid="ignore"):
        means: Floats = member.T @ x / total
        squares = np.stack([w @ (x - mean) ** 2 for w, mean in zip(member.T, means, strict=True)])
        sds: Floats = np.sqrt(squares / total * (counted / (counted - 1.0)))
    return means, sds


def _by_output(problem: Problem, columns: Indices) -> Floats:
    x, y = problem.with_squared_loss.standardised(columns)
    w = np.ones(len(x)) if problem.weights is None else problem.weights
    size = np.outer(np.sqrt(w @ y**2), np.sqrt(w @ x**2))
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Floats = (y * w[:, None]).T @ x / size
    return found
