"""What each size of a path is worth: a criterion of its fits, or errors on rows held out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from exactk.choose.criteria import PERFECT, criterion_values
from exactk.choose.folds import HeldOut
from exactk.choose.scoring import FoldScorer
from exactk.choose.searches import Clock, PathSearch
from exactk.choose.splits import Splits
from exactk.errors import InputError
from exactk.problem import Problem
from exactk.result import Path, Result
from exactk.search.feasible import InfeasibleError

__all__ = ["Judged", "by_criterion", "by_folds", "weighted_mean"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Judged:
    """What each size is worth.

    Attributes
    ----------
    sizes : list of int
    values : ndarray
        What the choice is made by.
    means, standard_errors : ndarray
        Of the values over folds; nan without folds.
    signed : ndarray
        The values, the smaller the better.
    to_best : ndarray
        Standard error, over folds, of the difference to the best size.
    """

    sizes: list[int]
    values: Floats
    means: Floats
    standard_errors: Floats
    signed: Floats
    to_best: Floats


def by_criterion(problem: Problem, path: Path, criterion: str) -> Judged:
    """Judge the sizes of a path by a criterion of its fits on all rows."""
    values = criterion_values(problem, path, criterion)
    none = np.full(len(path), np.nan)
    return Judged([result.k for result in path], values, none, none, values, none)


def by_folds(
    problem: Problem,
    path: Path,
    k_max: int,
    splits: Splits,
    scorer: FoldScorer | None,
    search: PathSearch,
    clock: Clock,
) -> Judged:
    """Judge each size by its mean over the folds, each of which has a path of its own.

    Sizes that some fold cannot have are left out.
    """
    found: list[dict[int, float]] = []
    weights: list[float] = []
    for fold in splits.folds(problem, search.rng, with_rows=search.kind.needs_rows):
        left = max(splits.n_folds - len(found), 1)
        own = _fold_path(fold.train, k_max, search, clock.share(left + 1))
        errors = scorer or _mean_errors
        values = errors(fold, own).tolist() if len(own) else []
        found.append(dict(zip([result.k for result in own], values, strict=True)))
        weights.append(fold.weight)
    sizes = [result.k for result in path if all(result.k in fold for fold in found)]
    if not sizes:
        ruled = problem.rules is not None
        raise InputError(
            f"no size from 1 to k_max={k_max} can be had in every fold"
            f"{' under the constraints' if ruled else ''}; give fewer folds, "
            f"{'relax a constraint, ' if ruled else ''}or use criterion='ebic'"
        )
    table = np.array([[fold[k] for k in sizes] for fold in found])
    # The squared error is a mean over rows, a score one over folds.
    shares = np.array(weights) if scorer is None else None
    means, spread = weighted_mean(table, shares)
    signed = -means
    if scorer is None:
        # Below this an error is rounding, and among perfect fits the smallest is the best.
        signed = np.maximum(means, PERFECT * problem.objective([]) / problem.weight)
    best = int(np.argmin(signed))
    # What a fold has hard rows for is hard for every size, and cancels.
    _, to_best = weighted_mean(table - table[:, best : best + 1], shares)
    return Judged(sizes, means, means, spread, signed, to_best)


def _fold_path(
    train: Problem, k_max: int, search: PathSearch, seconds: float | None
) -> Sequence[Result]:
    """The path of a fold; without results where its rows allow no size up to k_max."""
    most = min(k_max, train.n_usable)
    if most == 0:
        return ()
    try:
        return search.path(train, most, seconds, fold=True)
    except InfeasibleError:
        # What the rules ask for may be constant, or correlated, in the rows of one fold.
        return ()


def weighted_mean(values: Floats, weights: Floats | None = None) -> tuple[Floats, Floats]:
    """Return the mean over rows of a table, and its standard error.

    With K rows of weights w and values e, the standard error of the mean ē is
    √(Σ w²(e − ē)² · K/(K − 1)) / Σw: that of a plain mean where weights are equal.

    Parameters
    ----------
    values : ndarray of shape (K, m)
    weights : ndarray of shape (K,) or None

    Returns
    -------
    mean, standard_error : ndarray of shape (m,)
        The standard error of a single row is nan.

    Examples
    --------
    >>> mean, error = weighted_mean(np.array([[1.0], [3.0]]), np.array([3.0, 1.0]))
    >>> mean.tolist(), error.tolist()
    ([1.5], [0.75])
    """
    n = len(values)
    w = np.ones(n) if weights is None else weights
    mean: Floats = np.average(values, axis=0, weights=w)
    if n < 2:
        return mean, np.full_like(mean, np.nan)
    squares = (w[:, None] ** 2 * (values - mean) ** 2).sum(axis=0)
    return mean, np.sqrt(squares * n / (n - 1)) / w.sum()


def _mean_errors(fold: HeldOut, results: Sequence[Result]) -> Floats:
    return fold.errors(results) / fold.weight
