"""Covariance thresholding: a dense eigenvector, ties, components, memory, planted columns."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from scipy.linalg import block_diag

from exactk import Moments, Problem, solve
from tests.support import says


def correlated(n: int, R: Any, seed: int = 0) -> Any:
    """A table whose correlations are exactly R."""
    Z = np.random.default_rng(seed).standard_normal((n, len(R)))
    Z -= Z.mean(axis=0)
    Q = np.linalg.qr(Z)[0]
    return Q @ np.linalg.cholesky(R).T


def table(n: int = 120, d: int = 30, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) + rng.standard_normal((n, 4)) @ rng.standard_normal((4, d))
    return X, rng.standard_normal(n)


def eigenvector(X: Any, t: float, rule: str) -> Any:
    R = np.corrcoef(X.T)
    off = R - np.diag(np.diag(R))
    kept = np.where(np.abs(off) >= t, off, 0.0)
    if rule == "soft":
        kept = np.sign(kept) * np.maximum(np.abs(kept) - t, 0.0)
    return np.abs(np.linalg.eigh(kept + np.eye(len(R)))[1][:, -1])


@pytest.mark.parametrize("rule", ["hard", "soft"])
@pytest.mark.parametrize("t", [None, 0.0, 0.2, 0.4])
def test_the_leading_eigenvector(t: float | None, rule: str) -> None:
    X, y = table()
    wanted = eigenvector(X, 5 / np.sqrt(120) if t is None else t, rule)
    found = solve(Problem.from_arrays(X, y), 1, "covth", t=t, rule=rule).scores
    inside = wanted > 1e-8
    assert inside.sum() >= 20
    np.testing.assert_allclose(found[inside], wanted[inside], atol=1e-8)
    assert (found[~inside] < 0).all()


def test_lanczos_and_the_full_decomposition_agree() -> None:
    X, y = table(150, 400, seed=1)
    found = solve(Problem.from_arrays(X, y), 1, "covth", t=0.3).scores
    np.testing.assert_allclose(found, eigenvector(X, 0.3, "hard"), atol=1e-8)


def test_columns_outside_come_by_their_squared_correlations() -> None:
    strong, weak = 0.1 * np.eye(3) + 0.9, 0.4 * np.eye(3) + 0.6
    R = block_diag(strong, weak, np.eye(2))
    R[3, 6] = R[6, 3] = 0.1
    X = correlated(100, R)
    result = solve(Problem.from_arrays(X, np.linspace(0, 1, 100)), 8, "covth", t=0.5)
    assert sorted(result.order[:3].tolist()) == [0, 1, 2]
    np.testing.assert_allclose(result.scores[:3], np.sqrt(1 / 3), atol=1e-8)
    assert result.order[3] == 3, "its correlation with column 6 lifts it above its like"
    assert sorted(result.order[4:6].tolist()) == [4, 5]
    assert result.order[6:].tolist() == [6, 7]
    q = ((R - np.eye(8)) ** 2).sum(axis=1) / 7
    np.testing.assert_allclose(result.scores[3:], q[3:] - 1, atol=1e-8)


def test_components_of_the_same_eigenvalue_are_taken_together() -> None:
    pair = np.array([[1.0, 0.8], [0.8, 1.0]])
    R = block_diag(pair, pair, 0.5 * np.eye(2) + 0.5)
    R[0, 4] = R[4, 0] = 0.2
    X = correlated(80, R)
    for seed in range(6):
        move = np.random.default_rng(seed).permutation(6)
        result = solve(Problem.from_arrays(X[:, move], np.linspace(0, 1, 80)), 4, "covth", t=0.4)
        assert sorted(move[result.support].tolist()) == [0, 1, 2, 3]
        # Column 0 has one correlation more than the others.
        assert move[result.order[0]] == 0
        np.testing.assert_allclose(result.scores[result.support], np.sqrt(0.5), atol=1e-8)


def test_nothing_above_the_threshold() -> None:
    R = np.eye(4)
    R[1, 3] = R[3, 1] = 0.3
    R[0, 3] = R[3, 0] = 0.1
    result = solve(Problem.from_arrays(correlated(60, R), np.linspace(0, 1, 60)), 2, "covth")
    assert result.order.tolist() == [3, 1]
    assert (result.scores < 0).all()


def test_the_target_is_not_looked_at() -> None:
    X, y = table()
    first = solve(Problem.from_arrays(X, y), 5, "covth")
    other = solve(Problem.from_arrays(X, np.arange(120) % 3), 5, "covth")
    assert first.order.tolist() == other.order.tolist()


def test_whole_weights_count_as_rows_in_the_threshold() -> None:
    X, y = table(40)
    w = np.random.default_rng(0).integers(0, 6, 40)
    weighted = solve(Problem.from_arrays(X, y, sample_weight=w), 5, "covth").scores
    repeated = Problem.from_arrays(np.repeat(X, w, axis=0), np.repeat(y, w))
    np.testing.assert_allclose(weighted, solve(repeated, 5, "covth").scores, atol=1e-8)


def test_moments_serve_and_the_ridge_does_not_matter() -> None:
    X, y = table()
    wanted = solve(Problem.from_arrays(X, y), 5, "covth").scores
    moments = Problem.from_moments(Moments.from_arrays(X, y[:, None]), ridge=3.0)
    np.testing.assert_allclose(solve(moments, 5, "covth").scores, wanted, atol=1e-8)
    columns = Problem.from_arrays(X, y, gram="columns", scale=False)
    np.testing.assert_allclose(solve(columns, 5, "covth").scores, wanted, atol=1e-8)


@pytest.mark.parametrize("rule", ["hard", "soft"])
def test_wide_tables_with_weights(rule: str) -> None:
    # More columns than a block has.
    X, y = table(60, 400, seed=2)
    w = np.random.default_rng(0).integers(0, 4, 60)
    X[:, 7] = 1e5 - 1e-3 * X[:, 7]
    wanted = eigenvector(np.repeat(X, w, axis=0), 0.4, rule)
    found = solve(Problem.from_arrays(X, y, sample_weight=w), 1, "covth", t=0.4, rule=rule).scores
    np.testing.assert_allclose(found, wanted, atol=1e-7)
    alone = solve(Problem.from_arrays(X, y, sample_weight=w), 1, "covth", t=0.99, rule=rule).scores
    R = np.corrcoef(np.repeat(X, w, axis=0).T)
    q = ((R**2).sum(axis=1) - 1) / 399
    np.testing.assert_allclose(alone[alone < 0], q[alone < 0] - 1, atol=1e-9)
    assert (alone < 0).sum() > 300


def test_wide_tables_leave_no_matrix_behind() -> None:
    X = np.random.default_rng(0).standard_normal((40, 3000))
    problem = Problem.from_arrays(X, np.arange(40) % 2)
    tracemalloc.start()
    try:
        solve(problem, 5, "covth", t=0.7)
        left, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # Of the 72 MB of the matrix some blocks at a time, and nothing in the end.
    assert peak < 8 * 3000**2 / 2
    assert left < 2e6


def test_a_sparse_spike_is_found() -> None:
    # The paper's model: one spike on 8 of 300 columns; by chance 8 would hold 0.2 of them.
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((200, 300))
        X[:, :8] += rng.standard_normal((200, 1)) * rng.choice([-1.5, 1.5], 8)
        result = solve(Problem.from_arrays(X, rng.standard_normal(200)), 8, "covth")
        assert result.support.tolist() == list(range(8))


def test_few_rows_need_a_threshold_and_much_memory_is_refused() -> None:
    X, y = table(25)
    with says("covth needs more than 25 rows", "there are 25", "give t"):
        solve(Problem.from_arrays(X, y), 2, "covth")
    assert solve(Problem.from_arrays(X, y), 2, "covth", t=0.5).k == 2
    X, y = table()
    small = Problem.from_arrays(X, y, memory_limit=4000)
    with says("covth keeps more than", "memory_limit=4,000", "a larger t"):
        solve(small, 2, "covth", t=0.1)
    with says("t must be a number in [0, 1), or None (5/√n), not 1"):
        solve(small, 2, "covth", t=1)
