"""The permutation test: the same search on targets that are shuffled over the rows.

Shuffling the target does not change XᵀX. Permuted problems therefore share one Gram matrix, unless
weights follow the labels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from exactk.data.design_matrix import far_from_zero
from exactk.data.gram import WholeGram
from exactk.data.targets import apply_class_weights
from exactk.methods.base import generator
from exactk.model_selection.cross_validation import row_groups
from exactk.problem.problem import Problem
from exactk.types import Indices

__all__ = ["permuted_problems"]


def permuted_problems(
    problem: Problem, n: int, seed: object = None, *, groups: Any = None
) -> Iterator[Problem]:
    """Make problems of the same table with the target shuffled over its rows.

    Gram matrix, ridge and constraints are shared. All outputs of a row stay together. Row weights
    stay with their rows, and only rows of weight above zero exchange targets; class weights
    follow the labels. If all rows of each group have the same target, groups exchange their
    targets; otherwise targets are shuffled within each group.

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
    target, weighted = problem.target, problem.weights is not None
    by_label = problem.class_weights or (target and target.scores is not None and weighted)
    make = _reweighted if by_label else _permuted
    return (make(problem, shuffle(rng)) for _ in range(n))


def _reweighted(problem: Problem, order: Indices) -> Problem:
    """The problem with its rows in another order of targets, and weights that follow the labels."""
    assert problem.rows is not None
    assert problem.target is not None
    target, weights = problem.target.subset(order), problem.row_weights
    for class_weight in problem.class_weights:
        weights = apply_class_weights(class_weight, target, weights)
    made = Problem.from_rows(
        problem.rows, target, weights, ridge=problem.ridge, scale=problem.scaled,
        gram="auto" if isinstance(problem.gram, WholeGram) else "columns",
        memory_limit=problem.memory_limit,
    )  # fmt: skip
    return replace(
        made.with_settings_of(problem),
        base_weights=problem.base_weights,
        class_weights=problem.class_weights,
    )


def _permuted(problem: Problem, order: Indices) -> Problem:
    """The problem with its rows in another order of targets."""
    rows, target, weights = problem.rows, problem.target, problem.weights
    assert rows is not None
    assert target is not None
    Y = target.take(order)
    mean = np.average(Y, axis=0, weights=weights)
    centred = Y - mean
    weighted = centred if weights is None else centred * weights[:, None]
    # In the units of the table; the scatter of the problem is that of scaled columns.
    varies = problem.x_scale > 0
    scatter = np.zeros(problem.n_features)
    scatter[varies] = problem.scatter[varies] / problem.x_scale[varies] ** 2
    offset = far_from_zero(problem.x_mean, scatter, problem.weight)
    cross = rows.centred_products(weighted, problem.x_mean, offset) * problem.x_scale
    for array in (mean, cross):
        array.setflags(write=False)
    total = float(np.einsum("ij,ij->", centred, weighted))
    shuffled = replace(problem, target=target.subset(order), y_mean=mean, total=total, cross=cross)
    return shuffled.with_rules(problem.rules)


def _shuffle(problem: Problem, groups: Any) -> Callable[[np.random.Generator], Indices]:
    """Return a function that draws, for each row, the row whose target it gets."""
    rows, target = problem.rows, problem.target
    assert rows is not None
    assert target is not None
    alive = problem.weighted_rows
    labels = np.zeros(rows.n_rows) if groups is None else row_groups(groups, rows.n_rows)
    _, first, codes = np.unique(labels[alive], return_index=True, return_inverse=True)
    Y = target.take(alive)
    are_alike = groups is not None and np.array_equal(Y, Y[first][codes])
    members = [np.flatnonzero(codes == code) for code in range(len(first))]

    def draw(rng: np.random.Generator) -> Indices:
        # Rows of weight zero keep their target.
        order = np.arange(rows.n_rows)
        if are_alike:
            order[alive] = alive[first[rng.permutation(len(first))][codes]]
            return order
        for part in members:
            order[alive[part]] = alive[rng.permutation(part)]
        return order

    return draw
