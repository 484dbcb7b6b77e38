"""Cross-validation folds of a Problem: by moments where they fit, by weights where not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from exactk.errors import InputError
from exactk.moments import Moments, leave_one_out
from exactk.problem import Problem
from exactk.sources import Rows
from exactk.targets import Target

__all__ = ["Fold", "make_folds"]

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]


@dataclass(frozen=True)
class Fold:
    """A training problem and the rows held out from it."""

    train: Problem
    rows: Rows
    target: Target
    weights: Floats | None
    held_out: Indices

    def squared_error(self, support: Indices, coef: Floats, intercept: Floats) -> float:
        """Weighted squared error of a fit on the rows held out."""
        x = self.rows.columns(support)[self.held_out]
        y = self.target.take(self.held_out)
        left = y - intercept - x @ coef.T
        weights = 1.0 if self.weights is None else self.weights[self.held_out][:, None]
        return float((weights * left**2).sum())


def make_folds(problem: Problem, n_folds: int, rng: np.random.Generator) -> list[Fold]:
    """Split the rows of a problem at random, classes spread evenly.

    One pass over the table gives the moments of every fold, and training moments are merges of
    the others. Where d × d matrices of all folds are too large, a training problem is the same
    table with the weights of its held-out rows set to zero, read column by column.
    """
    rows, target = problem.rows, problem.target
    if rows is None or target is None:
        raise InputError(
            "this problem was made of moments and has no rows to split; cross-validate with the "
            "moments of the folds, or give the ridge as a number"
        )
    if not 2 <= n_folds <= problem.n_rows:
        raise InputError(f"n_folds must be 2..{problem.n_rows}, not {n_folds}")
    parts = _split(target, problem.weights, rows.n_rows, n_folds, rng)
    common: dict[str, Any] = {"ridge": problem.ridge, "scale": problem.scaled}
    matrices = 8 * problem.n_features**2 * 3 * n_folds
    if matrices <= problem.memory_limit and rows.gram_cost < problem.n_features * rows.pass_cost:
        moments = [_moments(rows, target, problem.weights, part) for part in parts]
        trains = [
            Problem.from_moments(rest, classes=problem.classes, **common)
            for rest in leave_one_out(moments)
        ]
    else:
        base = np.ones(rows.n_rows) if problem.weights is None else problem.weights
        trains = []
        for part in parts:
            weights = base.copy()
            weights[part] = 0.0
            trains.append(
                Problem.from_rows(
                    rows, target, weights, memory_limit=problem.memory_limit, **common
                )
            )
    return [
        Fold(train, rows, target, problem.weights, part)
        for train, part in zip(trains, parts, strict=True)
    ]


def _moments(rows: Rows, target: Target, weights: Floats | None, part: Indices) -> Moments:
    held = target.subset(part)
    return rows.take(part).moments(held, None if weights is None else weights[part])


def _split(
    target: Target,
    weights: Floats | None,
    n_rows: int,
    n_folds: int,
    rng: np.random.Generator,
) -> list[Indices]:
    """Deal the rows of non-zero weight out, class by class, after a shuffle."""
    alive = np.arange(n_rows) if weights is None else np.flatnonzero(weights)
    shuffled = rng.permutation(alive)
    if target.codes is not None:
        shuffled = shuffled[np.argsort(target.codes[shuffled], kind="stable")]
    return [np.sort(shuffled[fold::n_folds]) for fold in range(n_folds)]
