"""What the same search explains of targets that are shuffled over the rows.

A shuffled target leaves XᵀX as it is. So permuted problems share one Gram matrix, and XᵀY of many
targets comes from a few products.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from exactk.data.design_matrix import far_from_zero
from exactk.data.gram import WholeGram
from exactk.data.targets import apply_class_weights
from exactk.evaluation.fold_data import EvaluationData, Selection
from exactk.methods.base import generator
from exactk.model_selection.cross_validation import row_groups
from exactk.params import Integer
from exactk.problem.problem import Problem
from exactk.result import Status
from exactk.solver import solve
from exactk.types import Floats, Indices
from exactk.utils.progress import show_count

__all__ = [
    "permutation_null",
    "permuted_problems",
]


# Bytes that shuffled targets, and their products with all columns, may take at a time.
BATCH_BYTES = 2**26


def permuted_problems(
    problem: Problem, n: int, seed: object = None, *, groups: Any = None
) -> Iterator[Problem]:
    """Make problems of the same table with the target permuted over its rows.

    The Gram matrix is shared, and so are ridge and rules. One row keeps all its outputs: a label,
    or several numbers together. With weights the rows keep theirs, and targets go round among rows
    of weight above zero, so that each of them can meet each weight. What classes weigh follows
    the labels.

    Parameters
    ----------
    problem : Problem
        Made of a table; one that is passed over is read into memory, if it fits.
    n : int
        How many.
    seed : int, Generator or None
        None is a fixed seed.
    groups : array-like of shape (n_rows,) or None
        Rows of one group are not independent. Where all rows of each group have the same target,
        groups exchange their targets; where they have not, targets go round within each group.

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
    >>> from exactk import solve
    >>> round(solve(problem, 2).explained, 2), round(solve(shuffled[0], 2).explained, 2)
    (0.57, 0.02)
    """
    Integer(0)("n", n)
    rng = generator(seed)
    problem = problem.in_memory()
    shuffle = _shuffle(problem, groups)
    make = _anew if _weighs_by_label(problem) else _problems
    return make(problem, (shuffle(rng) for _ in range(n)))


def _weighs_by_label(problem: Problem) -> bool:
    """Whether what a row counts hangs on its label: by its class, or by scores of weighted ones."""
    scored = problem.target is not None and problem.target.scores is not None
    return bool(problem.class_weights) or (scored and problem.weights is not None)


def _anew(problem: Problem, orders: Iterator[Indices]) -> Iterator[Problem]:
    """The same by tables of their own: weights that stay where the labels were would tell."""
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
            # A batch would stay in memory as long as one of its problems does.
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
    """Return what draws, for each row, the row whose target it is given."""
    rows, target = problem.rows, problem.target
    assert rows is not None
    assert target is not None
    alive = np.arange(rows.n_rows) if problem.weights is None else np.flatnonzero(problem.weights)

    def filled(order: Indices) -> Indices:
        # Rows without weight are in no sum, and keep what they have.
        whole = np.arange(rows.n_rows)
        whole[alive] = order
        return whole

    if groups is None:
        return lambda rng: filled(rng.permutation(alive))
    codes = _group_codes(groups, rows.n_rows)[alive]
    _, first, codes = np.unique(codes, return_index=True, return_inverse=True)
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


def _group_codes(groups: Any, n_rows: int) -> Indices:
    codes: Indices = np.unique(row_groups(groups, n_rows), return_inverse=True)[1]
    return codes


def permutation_null(
    data: EvaluationData, whole: Selection, n: int, random_state: Any, verbose: int
) -> tuple[float, npt.NDArray[np.float64], str]:
    """Search the true target and permuted ones alike, with the k and the ridge of the true one.

    Returns
    -------
    observed : float
        Share of the true target that is explained.
    null : ndarray
        The same for each permuted one; fewer than `n` if the user stopped it.
    message : str
        That it was stopped, else empty.
    """
    problem = data.problem.with_ridge(whole.ridge)
    observed = _explained(problem, data, whole.k)
    if observed is None:
        raise KeyboardInterrupt
    null: list[float] = []
    message = ""
    with show_count("permutations", n, verbose) as show:
        try:
            for other in permuted_problems(problem, n, random_state, groups=data.groups):
                found = _explained(other, data, whole.k)
                if found is None:
                    raise KeyboardInterrupt
                null.append(found)
                show(len(null))
        except KeyboardInterrupt:
            message = f"stopped by the user after {len(null)} of {n} permutations"
    return observed, np.array(null), message


def _explained(problem: Problem, data: EvaluationData, k: int) -> float | None:
    """The share that the search explains, ridge term taken off; None if the user stopped it."""
    with warnings.catch_warnings():
        # What is wrong with a search was said of the true target, not once more a hundred times.
        warnings.simplefilter("ignore")
        result = solve(problem, k, data.config.method, time_limit=data.config.time_limit)
    if result.status == Status.INTERRUPTED:
        return None
    return 1.0 - result.objective / result.total
