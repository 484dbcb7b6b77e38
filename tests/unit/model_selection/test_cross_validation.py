"""Folds part the rows, spread the classes, and train on all the others whichever way."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from exactk import Moments, Problem
from exactk.errors import InputError
from exactk.model_selection.cross_validation import make_folds

Array = np.ndarray[Any, Any]


def folds_of(problem: Problem, n_folds: int, seed: int = 0) -> Any:
    return make_folds(problem, n_folds, np.random.default_rng(seed))


@settings(max_examples=25, deadline=None)
@given(
    n=st.integers(6, 40),
    n_folds=st.integers(2, 6),
    seed=st.integers(0, 2**32 - 1),
    weighted=st.booleans(),
)
def test_every_counted_row_is_held_out_once(
    n: int, n_folds: int, seed: int, weighted: bool
) -> None:
    rng = np.random.default_rng(seed)
    w = np.ones(n)
    if weighted:
        w[6:] = rng.integers(0, 3, n - 6)
    problem = Problem.from_arrays(
        rng.normal(size=(n, 3)), rng.normal(size=n), sample_weight=w if weighted else None
    )
    folds = folds_of(problem, n_folds, seed)
    held = np.concatenate([fold.held_out for fold in folds])
    assert sorted(held.tolist()) == np.flatnonzero(w).tolist()
    sizes = [len(fold.held_out) for fold in folds]
    assert max(sizes) - min(sizes) <= 1
    for fold in folds:
        assert fold.train.n_rows == problem.n_rows - len(fold.held_out)


@settings(max_examples=20, deadline=None)
@given(counts=st.lists(st.integers(2, 15), min_size=2, max_size=4), n_folds=st.integers(2, 5))
def test_classes_are_spread_evenly(counts: list[int], n_folds: int) -> None:
    rng = np.random.default_rng(0)
    y = rng.permutation(np.repeat(np.array(list("abcd"))[: len(counts)], counts))
    if n_folds > len(y):
        return
    problem = Problem.from_arrays(rng.normal(size=(len(y), 2)), y)
    for fold in folds_of(problem, n_folds):
        for label, count in zip("abcd", counts, strict=False):
            there = int((y[fold.held_out] == label).sum())
            assert abs(there - count / n_folds) < 2


@pytest.mark.parametrize("limit", [1, 2**30], ids=["weights", "moments"])
@pytest.mark.parametrize("kind", ["dense", "csr"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("scale", [False, True])
def test_training_is_on_all_other_rows(limit: int, kind: str, weighted: bool, scale: bool) -> None:
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(40, 5)) + 3, rng.choice(["u", "v", "w"], 40)
    w = rng.integers(0, 3, 40).astype(float) if weighted else np.ones(40)
    problem = Problem.from_arrays(
        X if kind == "dense" else sparse.csr_array(X), y,
        sample_weight=w if weighted else None, scale=scale, ridge=0.2, memory_limit=limit,
    )  # fmt: skip
    for fold in folds_of(problem, 4):
        keep = np.ones(40, dtype=bool)
        keep[fold.held_out] = False
        times = w[keep].astype(int)
        expected = Problem.from_arrays(
            np.repeat(X[keep], times, axis=0), np.repeat(y[keep], times), scale=scale, ridge=0.2
        )
        assert fold.train.total == pytest.approx(expected.total, rel=1e-10)
        assert fold.train.ridge == 0.2
        for S in ([0], [3, 1], [0, 1, 2, 3, 4]):
            found, wanted = fold.train.refit(S), expected.refit(S)
            assert found.objective == pytest.approx(wanted.objective, rel=1e-9)
            np.testing.assert_allclose(found.coef, wanted.coef, rtol=1e-7, atol=1e-10)
            np.testing.assert_allclose(found.intercept, wanted.intercept, rtol=1e-7)


def test_a_class_that_is_wholly_held_out_keeps_its_place() -> None:
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(9, 2)), np.array([0, 0, 0, 0, 1, 1, 1, 1, 2])
    for limit in (1, 2**30):
        problem = Problem.from_arrays(X, y, memory_limit=limit)
        for fold in folds_of(problem, 3):
            assert fold.train.n_outputs == 3
            assert np.isfinite(fold.train.objective([0, 1]))


def test_a_column_constant_in_the_training_rows() -> None:
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(12, 3)), rng.normal(size=12)
    X[:, 1] = 0.0
    X[4, 1] = 1.0
    for limit in (1, 2**30):
        problem = Problem.from_arrays(X, y, memory_limit=limit)
        for fold in folds_of(problem, 4):
            expected = [0, 2] if 4 in fold.held_out else [0, 1, 2]
            assert fold.train.usable.tolist() == expected


def test_errors() -> None:
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(6, 2)), rng.normal(size=6)
    problem = Problem.from_arrays(X, y, sample_weight=[1, 1, 1, 1, 0, 0])
    with pytest.raises(InputError, match=r"n_folds must be 2\.\.4, not 5"):
        folds_of(problem, 5)
    with pytest.raises(InputError, match=r"n_folds must be 2\.\.4, not 1"):
        folds_of(problem, 1)
    with pytest.raises(InputError, match="made of moments and has no rows"):
        folds_of(Problem.from_moments(Moments.from_arrays(X, y)), 2)
