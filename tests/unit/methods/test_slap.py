"""SLAP: its two steps against their definitions, its objective, weights, and small classes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.linalg import eigh
from scipy.optimize import minimize

from exactk import Problem, Result, Status, solve, solve_path
from exactk.methods.slap import SLAP, _Neighbours, _Table
from tests.oracles.brute import make_classes
from tests.support import says

Array = np.ndarray[Any, Any]


def run(X: Array, y: Array, k: int, **options: Any) -> Result:
    return solve(Problem.from_arrays(X, y), k, "slap", **options)


def squares(P: Array) -> Array:
    return ((P[:, None, :] - P[None, :, :]) ** 2).sum(axis=2)


def graph_matrix(graph: Any, n: int) -> Array:
    A = np.zeros((n, n))
    for rows, block in graph:
        A[np.ix_(rows, rows)] = block
    return A


def test_exactly_k_neighbours_with_the_alpha_of_a_row() -> None:
    rng = np.random.default_rng(0)
    P = rng.standard_normal((12, 3))
    near = _Neighbours.of(P, np.ones(12))
    d = squares(P)
    for k in (1, 3, 5):
        alphas = []
        for i in range(12):
            others = np.sort(np.delete(d[i], i))
            alphas.append(0.5 * (k * others[k] - others[:k].sum()))
            t = near.similarities(alphas[-1] * (1 - 1e-9))[i]
            nearest = np.argsort(np.where(np.arange(12) == i, np.inf, d[i]))[:k]
            assert sorted(np.flatnonzero(np.delete(t, i) > 0)) == sorted(
                j - (j > i) for j in nearest
            )
            # The closed form of Nie, Wang and Huang (2014).
            expected = (others[k] - d[i, nearest]) / (k * others[k] - others[:k].sum())
            np.testing.assert_allclose(t[nearest], expected, atol=1e-6)
        size, total, _ = near.alpha(k)
        assert total / size == pytest.approx(np.mean(alphas))


def test_similarities_solve_their_problem() -> None:
    rng = np.random.default_rng(1)
    near = _Neighbours.of(rng.standard_normal((8, 2)), rng.integers(1, 4, 8).astype(float))
    t = near.similarities(0.7)
    for i in range(8):
        v, d = near.masses[i], near.distances[i]
        assert v @ t[i] == pytest.approx(1.0)

        def cost(s: Array, v: Array = v, d: Array = d) -> float:
            return float(v @ (d * s + 0.7 * s**2))

        best = minimize(
            cost, np.full(8, 1 / v.sum()), bounds=[(0, None)] * 8,
            constraints={"type": "eq", "fun": lambda s, v=v: v @ s - 1}, options={"ftol": 1e-14},
        )  # fmt: skip
        assert cost(t[i]) <= best.fun + 1e-9


def test_similarities_of_a_weighted_row_are_those_of_its_copies() -> None:
    rng = np.random.default_rng(2)
    P, w = rng.standard_normal((6, 2)), np.array([1, 3, 2, 1, 1, 4])
    which = np.repeat(np.arange(6), w)
    merged, repeated = _Neighbours.of(P, w.astype(float)), _Neighbours.of(P[which], np.ones(12))
    for alpha in (0.05, 1.0):
        one, two = merged.similarities(alpha), repeated.similarities(alpha)
        off = ~np.eye(12, dtype=bool)
        np.testing.assert_allclose(one[np.ix_(which, which)][off], two[off], atol=1e-12)
    for k in (1, 2, 5, 9):
        np.testing.assert_allclose(merged.alpha(k), repeated.alpha(k), rtol=1e-12)


@pytest.mark.parametrize(("n", "d"), [(40, 9), (12, 30)])
def test_w_solves_its_eigenproblem(n: int, d: int) -> None:
    X, y = make_classes(n, d, 3, seed=0)
    table = _Table.of(Problem.from_arrays(X, y))
    graph, _ = table.similar(table.X, table.alpha(table.X, 3))
    E = np.random.default_rng(0).uniform(0.1, 2.0, d)
    W = table.project(graph, E, 3)
    Z = (X - X.mean(axis=0)) / X.std(axis=0, ddof=1)
    A = graph_matrix(graph, n)
    M = 2.0 * Z.T @ (np.diag(A.sum(axis=1)) - A) @ Z + np.diag(1.0 / E)
    S_t = Z.T @ Z
    # The least μ of Mw = μS_tw are the inverses of the greatest of S_tw = νMw.
    expected = 1.0 / eigh(S_t, M, eigvals_only=True)[::-1][:3]
    np.testing.assert_allclose(W.T @ S_t @ W, np.eye(3), atol=1e-9)
    np.testing.assert_allclose(np.sort(np.diag(W.T @ M @ W)), expected, rtol=1e-8)


@pytest.mark.parametrize("gamma", [1e-3, 1e-1, 1.0, 1e1, 1e3])
@pytest.mark.parametrize(("n", "d"), [(60, 12), (20, 50)])
def test_the_objective_never_rises(gamma: float, n: int, d: int) -> None:
    for seed in range(3):
        result = run(*make_classes(n, d, 3, seed), 4, gamma=gamma, tol=1e-6)
        trace = np.array(result.trace)
        assert (np.diff(trace) <= 1e-10 * trace[:-1]).all()
        assert trace[0] > trace[-1]
        assert result.status == Status.CONVERGED


def test_at_the_end_neither_step_changes_anything() -> None:
    X, y = make_classes(60, 6, 3, seed=2)
    table = _Table.of(Problem.from_arrays(X, y))
    gamma, m = 0.1, 3
    alpha = table.alpha(table.X, 5)
    W = table.project(table.similar(table.X, alpha)[0], np.full(6, 1 / gamma), m)
    alpha = table.alpha(table.X @ W, 5)
    for _ in range(2000):
        graph, _ = table.similar(table.X @ W, alpha)
        W = table.project(graph, 2 / gamma * np.linalg.norm(W, axis=1), m)
    # Stationary: the gradient of the Lagrangian, 2MW = 2S_tWΛ, where rows are not zero.
    A = graph_matrix(table.similar(table.X @ W, alpha)[0], 60)
    L = np.diag(A.sum(axis=1)) - A
    norms = np.linalg.norm(W, axis=1)
    alive = norms > 1e-6 * norms.max()
    half = 2.0 * table.X.T @ (L @ (table.X @ W))
    half[alive] += 0.5 * gamma * W[alive] / norms[alive, None]
    multipliers = W.T @ half
    gap = half - table.X.T @ (table.X @ W) @ multipliers
    assert np.abs(gap[alive]).max() < 1e-4 * np.abs(half).max()
    # And zero is the best for the others: the subgradient is within its ball.
    assert (np.linalg.norm(gap[~alive], axis=1) <= 0.5 * gamma * (1 + 1e-6)).all()


def test_planted_columns_are_found() -> None:
    # Four of 60 columns carry three classes; by chance 0.27 of four would be found.
    for n in (150, 40):
        found = []
        for seed in range(5):
            rng = np.random.default_rng(seed)
            X, y = rng.standard_normal((n, 60)), np.arange(n) % 3
            columns = rng.choice(60, 4, replace=False)
            X[:, columns] += 2.0 * rng.standard_normal((3, 4))[y]
            found.append(len(set(columns) & set(run(X, y, 4).support)))
        assert np.mean(found) >= 2.0


@pytest.mark.parametrize("sizes", [(1, 12, 12), (2, 12, 12), (2, 2, 2), (1, 1, 5), (3, 4, 6)])
def test_small_classes_have_fewer_neighbours(sizes: tuple[int, ...]) -> None:
    y = np.repeat(np.arange(len(sizes)), sizes)
    X = np.random.default_rng(0).standard_normal((len(y), 8)) + y[:, None]
    result = run(X, y, 3)
    assert result.k == 3
    assert np.isfinite(result.trace).all()


def test_ties_do_not_hang_on_the_order_of_rows() -> None:
    rng = np.random.default_rng(3)
    X, y = rng.integers(0, 2, (60, 8)).astype(float), np.arange(60) % 3
    X[:, 2] = np.where(rng.random(60) < 0.8, y == 1, X[:, 2])
    wanted = run(X, y, 3)
    for seed in range(4):
        move = np.random.default_rng(seed).permutation(60)
        found = run(X[move], y[move], 3)
        assert found.support.tolist() == wanted.support.tolist()
        assert found.trace[-1] == pytest.approx(wanted.trace[-1], rel=1e-7)


def test_a_path_cuts_one_run() -> None:
    X, y = make_classes(40, 9, 3, seed=1)
    path = solve_path(Problem.from_arrays(X, y), 5, "slap")
    for k in (1, 3, 5):
        assert path.at(k).support.tolist() == run(X, y, k).support.tolist()


def test_more_penalty_more_rows_that_are_zero() -> None:
    X, y = make_classes(60, 15, 3, seed=4)
    table, counts = _Table.of(Problem.from_arrays(X, y)), []
    for gamma in (1e-3, 1.0, 1e2):
        alpha = table.alpha(table.X, 5)
        W = table.project(table.similar(table.X, alpha)[0], np.full(15, 1 / gamma), 2)
        alpha = table.alpha(table.X @ W, 5)
        for _ in range(300):
            W = table.project(
                table.similar(table.X @ W, alpha)[0], 2 / gamma * np.linalg.norm(W, axis=1), 2
            )
        norms = np.linalg.norm(W, axis=1)
        counts.append(int((norms > 1e-3 * norms.max()).sum()))
    assert counts[0] > counts[1] >= counts[2]


@pytest.mark.parametrize(
    ("option", "bad", "words"),
    [
        ("gamma", 0, "a number in (0, inf), not 0"),
        ("n_neighbors", 0, "a whole number of at least 1, not 0"),
        ("n_components", 0, "or None (the number of classes), not 0"),
    ],
)
def test_options_are_checked(option: str, bad: Any, words: str) -> None:
    with says(f"{option} must be", words):
        run(*make_classes(30, 6, 3, seed=0), 2, **{option: bad})


def test_the_defaults_are_those_of_the_comparison() -> None:
    defaults = SLAP().get_params()
    assert (defaults["n_neighbors"], defaults["n_components"]) == (5, None)
    X, y = make_classes(40, 9, 3, seed=1)
    assert run(X, y, 3).trace == run(X, y, 3, n_components=3).trace


def test_a_class_too_large_for_its_distances() -> None:
    X = np.random.default_rng(0).normal(size=(200, 3))
    problem = Problem.from_arrays(X, np.arange(200) // 150, memory_limit=100_000)
    with says("slap", "150 rows", "memory_limit=100,000", "method='spec'"):
        solve(problem, 1, "slap")
