"""Cross-validation folds of a Problem: by moments where they fit, by weights where not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from exactk.errors import InputError
from exactk.moments import Moments, leave_one_out
from exactk.problem import Problem
from exactk.sources import Rows
from exactk.streams.split import SplitFold
from exactk.targets import Target

__all__ = ["Fold", "HeldOut", "StreamFold", "fold_by_fold", "make_folds"]

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]


class HeldOut(Protocol):
    """A training problem, and what is held out from it."""

    @property
    def train(self) -> Problem:
        """The problem of the other rows."""
        ...

    def squared_error(self, support: Indices, coef: Floats, intercept: Floats) -> float:
        """Weighted squared error of a fit on the rows held out."""
        ...


@dataclass(frozen=True, eq=False)
class StreamFold:
    """A training problem and the moments of the rows held out: squared error needs no more."""

    train: Problem
    held: Moments

    def squared_error(self, support: Indices, coef: Floats, intercept: Floats) -> float:
        """Weighted squared error of a fit on the rows held out."""
        held, S = self.held, support
        about_means = (
            np.trace(held.yy)
            - 2.0 * np.einsum("cj,jc->", coef, held.xy[S])
            + np.einsum("ci,ij,cj->", coef, held.xx[np.ix_(S, S)], coef)
        )
        off = held.y_mean - intercept - coef @ held.x_mean[S]
        return max(float(about_means), 0.0) + held.weight * float(off @ off)


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


def fold_by_fold(problem: Problem, n_folds: int, rng: np.random.Generator) -> Iterator[HeldOut]:
    """Split the rows of a problem, wherever they are, and give one fold after the other.

    The rows of a stream go to folds by a hash of their values: the split depends neither on their
    order nor on the parts that they come in, but it is another than that of the same rows in
    memory, folds are of nearly the same size only, and equal rows stay together. One pass makes
    the moments of all folds; where they do not fit in memory side by side, each fold takes a pass
    of its own.
    """
    if problem.rows is not None or problem.stream is None:
        yield from make_folds(problem, n_folds, rng)
        return
    _check_number(problem, n_folds)
    seed = int(rng.integers(2**63))
    names, stream = problem.stream.feature_names, problem.stream
    if 8 * problem.n_features**2 * 3 * n_folds <= problem.memory_limit:
        found = stream.reduce(SplitFold(names, problem.coding, n_folds, seed))
        parts = [part for part in found if part is not None]
        _check_spread(len(parts))
        for held, rest in zip(parts, leave_one_out(parts), strict=True):
            yield StreamFold(_train(problem, rest), held)
        return
    for fold in range(n_folds):
        own, others = stream.reduce(SplitFold(names, problem.coding, n_folds, seed, alone=fold))
        _check_spread(1 if others is None else 2)
        if own is not None and others is not None:
            yield StreamFold(_train(problem, others), own)


def _train(problem: Problem, moments: Moments) -> Problem:
    train = Problem.from_moments(
        moments, classes=problem.classes, ridge=problem.ridge, scale=problem.scaled
    )
    return train.under(problem.rules)


def _check_number(problem: Problem, n_folds: int) -> None:
    if not 2 <= n_folds <= problem.n_rows:
        raise InputError(f"n_folds must be 2..{problem.n_rows}, not {n_folds}")


def _check_spread(n_folds: int) -> None:
    if n_folds < 2:
        raise InputError(
            "the rows have too few different values to be split by them; give the ridge as a number"
        )


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
    _check_number(problem, n_folds)
    parts = _split(target, problem.weights, rows.n_rows, n_folds, rng)
    matrices = 8 * problem.n_features**2 * 3 * n_folds
    if matrices <= problem.memory_limit and rows.gram_cost < problem.n_features * rows.pass_cost:
        moments = [_moments(rows, target, problem.weights, part) for part in parts]
        trains = [_train(problem, rest) for rest in leave_one_out(moments)]
    else:
        base = np.ones(rows.n_rows) if problem.weights is None else problem.weights
        trains = []
        for part in parts:
            weights = base.copy()
            weights[part] = 0.0
            train = Problem.from_rows(
                rows, target, weights, ridge=problem.ridge, scale=problem.scaled,
                memory_limit=problem.memory_limit,
            )  # fmt: skip
            trains.append(train.under(problem.rules))
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
