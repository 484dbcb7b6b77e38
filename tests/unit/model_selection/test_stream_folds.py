"""Folds of a table that is passed over: dealt out by values, and cross-validated by moments."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from exactk import Problem, solve
from exactk.model_selection.cross_validation import StreamFold, fold_by_fold
from exactk.model_selection.ridge import GRID, cv_ridge
from exactk.streaming.base import Block, EncodedLabels, Location
from exactk.streaming.split import row_hashes
from tests.arrays import ArrayStream
from tests.support import says

Array = np.ndarray[Any, Any]


def table(n: int = 300, d: int = 5, seed: int = 0) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) @ (np.eye(d) + 0.4 * rng.normal(size=(d, d))) + 2.0
    numbers = X[:, 0] - X[:, 3] + 3.0 * rng.normal(size=n)
    return X, numbers, np.array(["u", "v", "w"])[np.digitize(numbers, [-2.0, 2.0])]


def block_of(X: Array, y: Any) -> Block:
    return Block(np.array(X, order="F"), y, None, Location("rows", 0, 0))


def test_hashes_go_with_values_alone() -> None:
    X, numbers, labels = table(1000)
    codes = np.unique(labels, return_inverse=True)[1]
    whole = row_hashes(block_of(X, EncodedLabels(codes, ["u", "v", "w"])), 5)
    assert len(np.unique(whole)) == 1000
    part = row_hashes(block_of(X[500:], EncodedLabels(2 - codes[500:], ["w", "v", "u"])), 5)
    np.testing.assert_array_equal(part, whole[500:])
    assert (row_hashes(block_of(X, numbers), 5) != whole).all()
    assert (row_hashes(block_of(X, EncodedLabels(codes, ["u", "v", "w"])), 6) != whole).all()
    # Folds are of the same size, as far as chance has it, also where values are whole and few.
    whole_numbers = np.stack(np.meshgrid(np.arange(100.0), np.arange(100.0)), axis=-1)
    folds = row_hashes(block_of(whole_numbers.reshape(-1, 2), np.zeros(10_000)), 0) % np.uint64(5)
    sizes = np.bincount(folds.astype(int))
    assert ((sizes - 2000) ** 2 / 2000).sum() < 20.0
    zero = row_hashes(block_of(np.array([[0.0], [-0.0]]), np.zeros(2)), 0)
    assert zero[0] == zero[1]


@pytest.mark.parametrize("limit", [2**30, 8 * 25 * 3], ids=["one pass", "a pass each"])
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("classes", [False, True], ids=["numbers", "classes"])
def test_folds_of_a_stream(limit: int, weighted: bool, classes: bool) -> None:
    X, numbers, labels = table()
    y = labels if classes else numbers
    w = np.random.default_rng(1).integers(0, 3, len(X)).astype(float) if weighted else None
    stream = ArrayStream(X, y, w, n_parts=3)
    problem = Problem.from_stream(stream, ridge=0.2, memory_limit=limit)
    stream.passes = 0
    folds = list(fold_by_fold(problem, 4, np.random.default_rng(0)))
    assert stream.passes == (1 if limit == 2**30 else 4)
    Y = np.eye(3)[np.unique(labels, return_inverse=True)[1]] if classes else numbers[:, None]
    v = np.ones(len(X)) if w is None else w
    # Which rows are held out, by hashing them here; that of numbers is of Y too.
    coded = (
        EncodedLabels(np.unique(labels, return_inverse=True)[1], ["u", "v", "w"]) if classes else y
    )
    seed = int(np.random.default_rng(0).integers(2**63))
    of = row_hashes(block_of(X, coded), seed) % np.uint64(4)
    coef, intercept, S = np.full((Y.shape[1], 2), 0.7), np.full(Y.shape[1], -0.3), np.array([3, 1])
    for number, fold in enumerate(folds):
        assert isinstance(fold, StreamFold)
        out = of == number
        left = Y[out] - intercept - X[out][:, S] @ coef.T
        wanted = float((v[out][:, None] * left**2).sum())
        fit = SimpleNamespace(support=S, coef=coef, intercept=intercept)
        assert fold.errors([fit])[0] == pytest.approx(wanted, rel=1e-10)
        train = Problem.from_arrays(X[~out], y[~out], sample_weight=v[~out], ridge=0.2)
        assert fold.train.objective([0, 2]) == pytest.approx(train.objective([0, 2]), rel=1e-10)


@pytest.mark.parametrize("classes", [False, True], ids=["numbers", "classes"])
def test_the_ridge_of_a_stream_does_not_hang_on_order_parts_or_memory(classes: bool) -> None:
    X, numbers, labels = table(120)
    y = labels if classes else numbers
    mixed = np.random.default_rng(2).permutation(len(X))
    plain = Problem.from_stream(ArrayStream(X, y))
    wanted = cv_ridge(plain, 2)
    assert wanted in GRID
    moved = ArrayStream(X[mixed], y[mixed], n_parts=5, n_blocks=3)
    assert cv_ridge(Problem.from_stream(moved), 2) == wanted
    assert cv_ridge(Problem.from_stream(moved, memory_limit=8 * 25), 2) == wanted
    errors = [
        sum(
            float(fold.errors([found])[0])
            for fold in fold_by_fold(plain, 5, np.random.default_rng(0))
            for found in [solve(fold.train.with_ridge(ridge), 2, effort=0)]
        )
        for ridge in GRID
    ]
    assert wanted == GRID[int(np.argmin(errors))]


def test_rows_that_cannot_be_split_by_their_values() -> None:
    X, y = np.tile([[0.0], [1.0]], (50, 1)), np.tile([0.5, 1.5], 50)
    stream = ArrayStream(X, y)
    split = {}
    for seed in range(20):
        drawn = int(np.random.default_rng(seed).integers(2**63))
        both = row_hashes(block_of(X[:2], y[:2]), drawn) % np.uint64(2)
        split[bool(both[0] != both[1])] = seed
    for limit in (2**20, 8):
        problem = Problem.from_stream(stream, memory_limit=limit)
        with says("too few different values", "ridge as a number"):
            list(fold_by_fold(problem, 2, np.random.default_rng(split[False])))
        # One kind of row on either side: there is nothing to predict.
        with says("y is the same in every row"):
            list(fold_by_fold(problem, 2, np.random.default_rng(split[True])))
    with says("n_folds must be 2..100, not 1"):
        list(fold_by_fold(Problem.from_stream(stream), 1, np.random.default_rng(0)))
