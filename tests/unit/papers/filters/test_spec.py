"""SPEC: the paper's formulas on a dense graph, and what the class graph comes to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from exactk import Problem, solve
from tests.oracles.brute import make_classes


def scores(X: Any, y: Any, weights: Any = None, **options: Any) -> Any:
    return solve(Problem.from_arrays(X, y, sample_weight=weights), 1, "spec", **options).scores


def standardised(X: Any) -> Any:
    return (X - X.mean(axis=0)) / X.std(axis=0, ddof=1)


def neighbours(X: Any, y: Any, k: int) -> Any:
    """S of the k nearest rows of the same class, entry by entry."""
    Z, n = standardised(X), len(X)
    squares = np.array([[((a - b) ** 2).sum() for b in Z] for a in Z])
    tau, S = squares.mean(), np.zeros((n, n))
    for i in range(n):
        same = [j for j in range(n) if y[j] == y[i] and j != i]
        for j in sorted(same, key=lambda j: squares[i, j])[:k]:
            S[i, j] = S[j, i] = np.exp(-squares[i, j] / tau)
        S[i, i] = 1.0
    return S


def classes(y: Any) -> Any:
    return np.array([[(a == b) / (y == a).sum() for b in y] for a in y])


def definition(X: Any, S: Any, phi: int, c: int) -> Any:
    """φ of each column from the eigenvectors of the normalised Laplacian."""
    degrees = S.sum(axis=1)
    root = np.sqrt(degrees)
    L = np.eye(len(S)) - S / np.outer(root, root)
    trivial = root / np.linalg.norm(root)
    values, vectors = np.linalg.eigh(L)
    out = []
    for f in standardised(X).T:
        f_hat = root * f / np.linalg.norm(root * f)
        if phi == 3:
            # All that are as good as the c-th, without the trivial one.
            leading = values <= values[c - 1] + 1e-9
            alpha = vectors[:, leading].T @ f_hat
            everything = ((2 - values[leading]) * alpha**2).sum()
            out.append(everything - 2 * (f_hat @ trivial) ** 2)
        else:
            first = f_hat @ L @ f_hat
            out.append(-first / (1 - (f_hat @ trivial) ** 2 if phi == 2 else 1))
    return np.array(out)


@pytest.mark.parametrize("phi", [1, 2, 3])
@pytest.mark.parametrize("k", [1, 3, 6])
@pytest.mark.parametrize("shape", [(50, 6, 3), (12, 20, 2)])
def test_neighbours_as_defined(shape: tuple[int, int, int], k: int, phi: int) -> None:
    X, y = make_classes(*shape, seed=1)
    wanted = definition(X, neighbours(X, y, k), phi, shape[2])
    found = scores(X, y, n_neighbors=k, phi=phi)
    np.testing.assert_allclose(found, wanted, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("phi", [1, 2, 3])
def test_the_class_graph_as_defined_and_in_the_order_of_fisher(phi: int) -> None:
    for seed in range(5):
        X, y = make_classes(45, 12, 3, seed=seed)
        found = scores(X, y, graph="classes", phi=phi)
        np.testing.assert_allclose(found, definition(X, classes(y), phi, 3), rtol=1e-8)
        within = sum(((X[y == c] - X[y == c].mean(0)) ** 2).sum(0) for c in range(3))
        fisher = ((X - X.mean(0)) ** 2).sum(0) / within - 1
        assert np.argsort(-found).tolist() == np.argsort(-fisher).tolist()


def test_the_graph_of_neighbours_is_another() -> None:
    orders = set()
    for k in (2, 6):
        X, y = make_classes(60, 20, 3, seed=0)
        orders.add(tuple(np.argsort(scores(X, y, n_neighbors=k)).tolist()))
    orders.add(tuple(np.argsort(scores(X, y, graph="classes")).tolist()))
    assert len(orders) == 3


@pytest.mark.parametrize("phi", [1, 2, 3])
@pytest.mark.parametrize("k", [1, 4, 7])
def test_a_weight_is_as_many_rows(k: int, phi: int) -> None:
    X, y = make_classes(40, 6, 2, seed=3)
    w = np.random.default_rng(k).integers(0, 4, 40)
    repeated = scores(np.repeat(X, w, axis=0), np.repeat(y, w), n_neighbors=k, phi=phi)
    np.testing.assert_allclose(scores(X, y, w, n_neighbors=k, phi=phi), repeated, rtol=1e-9)


def test_rows_at_the_same_distance_are_neighbours_together() -> None:
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (60, 5)).astype(float)
    y = np.arange(60) % 2
    first = scores(X, y, n_neighbors=2)
    for seed in range(3):
        move = np.random.default_rng(seed).permutation(60)
        np.testing.assert_allclose(scores(X[move], y[move], n_neighbors=2), first, rtol=1e-9)


def test_planted_columns_are_found() -> None:
    # By chance 10 of 200 columns would hold half a planted one.
    rng = np.random.default_rng(0)
    y = np.arange(120) % 3
    X = rng.standard_normal((120, 200))
    X[:, :10] += 1.5 * rng.standard_normal((3, 10))[y]
    for options in ({}, {"phi": 1}, {"phi": 3}, {"n_neighbors": 10}):
        support = solve(Problem.from_arrays(X, y), 10, "spec", **options).support
        assert (support < 10).sum() >= 8, options
