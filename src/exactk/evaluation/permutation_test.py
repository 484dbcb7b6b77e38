"""The permutation test: the same search on targets that are shuffled over the rows.

Shuffling the target does not change XᵀX. Permuted problems therefore share one Gram matrix, and
XᵀY of many targets comes from a few matrix products.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np

from exactk.data.design_matrix import far_from_zero
from exactk.data.gram import WholeGram
from exactk.data.targets import apply_class_weights
from exactk.methods.base import generator
from exactk.model_selection.cross_validation import row_groups
from exactk.problem.problem import Problem
from exactk.types import Floats, Indices

__all__ = ["permuted_problems"]

# Bytes for shuffled targets and their products with all columns.
BATCH_BYTES = 2**26


def permuted_problems(
    problem: Problem, n: int, seed: object = None, *, groups: Any = None
) -> Iterator[Problem]:
    """Make problems of the same table with the target shuffled over its rows.

    Gram matrix, ridge and constraints are shared. All outputs of a row stay together. Row weights
    stay with their rows, and only rows of weight above zero exchange targets; class weights
    follow the labels.

    Parameters
    ----------
    problem : Problem
        A streamed table is loaded into memory.
    n : int
    seed : int, Generator or None
    groups : array-like of shape (n_rows,) or None
        Rows of one group are not independent. If all rows of each group have the same target,
        groups exchange their targets; otherwise targets are shuffled within each group.

    Yields
    ------
    Problem

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> problem = Problem.from_arrays(*load_iris(return_X_y=True))
    >>> shuffled = list(permuted_problems(problem, 3))
    >>> [other.gram is problem.gram for other in shuffled]
    [True, True, True]
    """
    rng = generator(seed)
    problem = problem.in_memory()
    shuffle = _shuffle(problem, groups)
    make = _anew if _weighs_by_label(problem) else _problems
    return make(problem, (shuffle(rng) for _ in range(n)))


def _weighs_by_label(problem: Problem) -> bool:
    """Whether the weight of a row depends on its label."""
    scored = problem.target is not None and problem.target.scores is not None
    return bool(problem.class_weights) or (scored and problem.weights is not None)


def _anew(problem: Problem, orders: Iterator[Indices]) -> Iterator[Problem]:
    """The same with a Gram matrix for each problem, as the weights follow the labels."""
    assert problem.rows is not None
    assert problem.target is not None
    for order in orders:
        target, weights = problem.target.subset(order), problem.row_weights
        for class_weight in problem.class_weights:
            weights = apply_class_weights(class_weight, target, weights)
        made = Problem.from_rows(
            problem.rows, target, weights, ridge=problem.ridge, scale=problem.scaled,
            gram="auto" if isinstance(problem.gram, WholeGram) else "columns",
            memory_limit=problem.memory_limit,
        )  # fmt: skip
        yield replace(
            made.with_settings_of(problem),
            base_weights=problem.base_weights,
            class_weights=problem.class_weights,
        )


def _problems(problem: Problem, orders: Iterator[Indices]) -> Iterator[Problem]:
    rows, target = problem.rows, problem.target
    assert rows is not None
    assert target is not None
    widest = max(rows.n_rows, rows.n_features)
    at_once = max(1, BATCH_BYTES // (8 * widest * problem.n_outputs))
    # In the units of the table; the scatter of the problem is that of scaled columns.
    varies = problem.x_scale > 0
    raw = np.zeros(problem.n_features)
    raw[varies] = problem.scatter[varies] / problem.x_scale[varies] ** 2
    offset = far_from_zero(problem.x_mean, raw, problem.weight)
    while batch := list(islice(orders, at_once)):
        made = [_centred(target.take(order), problem.weights) for order in batch]
        side_by_side = np.hstack([weighted for _, _, weighted in made])
        products = rows.centred_products(side_by_side, problem.x_mean, offset)
        products *= problem.x_scale
        parts = products.reshape(len(batch), problem.n_outputs, problem.n_features)
        for order, (mean, total, _), cross in zip(batch, made, parts, strict=True):
            # A view would keep the whole batch in memory.
            own = cross.copy()
            own.setflags(write=False)
            mean.setflags(write=False)
            shuffled = replace(
                problem, target=target.subset(order), y_mean=mean, total=total, cross=own
            )
            yield shuffled.with_rules(problem.rules)


def _centred(Y: Floats, weights: Floats | None) -> tuple[Floats, float, Floats]:
    """The mean, ‖HY‖², and the centred rows, each times its weight."""
    mean = np.average(Y, axis=0, weights=weights)
    centred = Y - mean
    weighted = centred if weights is None else centred * weights[:, None]
    return mean, float(np.einsum("ij,ij->", centred, weighted)), weighted


def _shuffle(problem: Problem, groups: Any) -> Callable[[np.random.Generator], Indices]:
    """Return a function that draws, for each row, the row whose target it gets."""
    rows, target = problem.rows, problem.target
    assert rows is not None
    assert target is not None
    alive = np.arange(rows.n_rows) if problem.weights is None else np.flatnonzero(problem.weights)

    def filled(order: Indices) -> Indices:
        # Rows of weight zero keep their target.
        whole = np.arange(rows.n_rows)
        whole[alive] = order
        return whole

    if groups is None:
        return lambda rng: filled(rng.permutation(alive))
    labels = row_groups(groups, rows.n_rows)[alive]
    _, first, codes = np.unique(labels, return_index=True, return_inverse=True)
    Y = target.take(alive)
    if np.array_equal(Y, Y[first][codes]):
        return lambda rng: filled(alive[first[rng.permutation(len(first))][codes]])
    members = [np.flatnonzero(codes == code) for code in range(len(first))]

    def within(rng: np.random.Generator) -> Indices:
        order = np.empty(len(alive), dtype=np.intp)
        for part in members:
            order[part] = rng.permutation(part)
        return filled(alive[order])

    return within
