"""SLAP: its two steps against their definitions, moving rows, its objective, weights, memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.linalg import eigh
from scipy.optimize import minimize

from exactk import Problem, Result, Status, solve
from exactk.papers.methods import neighbours
from exactk.papers.methods.neighbours import NeighbourLists
from exactk.papers.methods.slap import SLAP, _Graph, _Table
from tests.oracles.brute import make_classes
from tests.support import says

Array = np.ndarray[Any, Any]


def run(X: Array, y: Array, k: int, **options: Any) -> Result:
    return solve(Problem.from_arrays(X, y), k, "slap", **options)


def squares(P: Array) -> Array:
    return ((P[:, None, :] - P[None, :, :]) ** 2).sum(axis=2)


def symmetric(graph: _Graph) -> Array:
    S: Array = graph.S.toarray()
    return 0.5 * (S + S.T)


def first_steps(table: _Table, gamma: float, m: int) -> tuple[Array, float]:
    near, d = table.neighbours(table.X), table.X.shape[1]
    W = table.project(near.similar(near.alpha(5))[0], np.full(d, 1 / gamma), m)
    return W, table.neighbours(table.X @ W).alpha(5)


def next_step(table: _Table, W: Array, alpha: float, gamma: float, m: int) -> Array:
    graph = table.neighbours(table.X @ W).similar(alpha)[0]
    return table.project(graph, 2 / gamma * np.linalg.norm(W, axis=1), m)


def make_class(P: Array, weights: Array) -> NeighbourLists:
    return NeighbourLists(P, weights.astype(float), 2**30)


def similarities(near: NeighbourLists, alpha: float) -> Array:
    """The matrix t, with that of a row to its copies on the diagonal."""
    n = len(near.weights)
    i, j, s, _ = near.similar(alpha)
    t = np.zeros((n, n))
    np.add.at(t, (i, j), s / (near.weights[i] * near.weights[j]))
    for lists in near.lists:
        t[lists.rows, lists.rows] = lists.eta / (2 * alpha)
    return t


def projected(d: Array, v: Array, alpha: float) -> Array:
    """The t of least Σ v(dt + αt²) with Σ vt = 1 for each row, by bisection."""
    low, high = np.zeros((len(d), 1)), np.full((len(d), 1), d.max() + 2 * alpha / v[v > 0].min())
    for _ in range(80):
        middle = 0.5 * (low + high)
        less = (v * np.maximum(middle - d, 0.0)).sum(axis=1, keepdims=True) < 2 * alpha
        low, high = np.where(less, middle, low), np.where(less, high, middle)
    t: Array = np.where(v > 0, np.maximum(high - d, 0.0) / (2 * alpha), 0.0)
    return t


def test_exactly_k_neighbours_with_the_alpha_of_a_row() -> None:
    rng = np.random.default_rng(0)
    P = rng.standard_normal((12, 3))
    near = make_class(P, np.ones(12))
    d = squares(P)
    for k in (1, 3, 5):
        alphas = []
        for i in range(12):
            others = np.sort(np.delete(d[i], i))
            alphas.append(0.5 * (k * others[k] - others[:k].sum()))
            t = similarities(near, alphas[-1] * (1 - 1e-9))[i]
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
    P, w = rng.standard_normal((8, 2)), rng.integers(1, 4, 8).astype(float)
    t = similarities(make_class(P, w), 0.7)
    for i in range(8):
        v, d = w - (np.arange(8) == i), squares(P)[i]
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
    merged, repeated = make_class(P, w), make_class(P[which], np.ones(12))
    for alpha in (0.05, 1.0):
        one, two = similarities(merged, alpha), similarities(repeated, alpha)
        off = ~np.eye(12, dtype=bool)
        np.testing.assert_allclose(one[np.ix_(which, which)][off], two[off], atol=1e-12)
    for k in (1, 2, 5, 9):
        np.testing.assert_allclose(merged.alpha(k), repeated.alpha(k), rtol=1e-12)


@pytest.mark.parametrize("width", [3, 48])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("alpha", [1e-3, 1e-1, 1e3])
def test_lists_are_exact_while_rows_move(
    width: int, weighted: bool, alpha: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(neighbours, "LIST", width)
    # Blocks of a few rows each.
    monkeypatch.setattr(neighbours, "BLOCK_VALUES", 1000)
    rng = np.random.default_rng(4)
    # A dense middle and rows far out: some have many neighbours, some few.
    P = rng.standard_normal((150, 2)) * rng.choice([0.1, 1.0, 20.0], 150)[:, None]
    w = rng.uniform(0.3, 3.0, 150) if weighted else np.ones(150)
    near = make_class(P, w)
    for size in (0.0, 0.01, 0.01, 0.3, 0.05, 5.0, 0.01):
        turn = np.linalg.qr(rng.standard_normal((2, 2)))[0]
        P = (P + size * rng.standard_normal(P.shape)) @ turn + rng.standard_normal(2)
        near.move(P)
        v = np.tile(w, (150, 1))
        np.fill_diagonal(v, np.maximum(w - 1.0, 0.0))
        t = np.where(v > 0, similarities(near, alpha), 0.0)
        np.testing.assert_allclose(t, projected(squares(P), v, alpha), atol=1e-9 / alpha)
        np.testing.assert_allclose((v * t).sum(axis=1), 1.0, rtol=1e-6)


def test_lists_last_while_rows_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    P = rng.standard_normal((400, 3))
    near = make_class(P, np.ones(400))
    near.similar(0.05)
    made: list[int] = []
    nearest = near._nearest

    def spy(rows: Array, *others: Any) -> Any:
        made.extend(rows)
        return nearest(rows, *others)

    monkeypatch.setattr(near, "_nearest", spy)
    near.move(P @ np.linalg.qr(rng.standard_normal((3, 3)))[0] + 7.0)
    near.similar(0.05)
    assert not made
    near.move(P + 0.3 * rng.standard_normal(P.shape))
    near.similar(0.05)
    assert made


@pytest.mark.parametrize(("n", "d"), [(40, 9), (12, 30)])
def test_w_solves_its_eigenproblem(n: int, d: int) -> None:
    X, y = make_classes(n, d, 3, seed=0)
    table = _Table.of(Problem.from_arrays(X, y))
    near = table.neighbours(table.X)
    graph, _ = near.similar(near.alpha(3))
    E = np.random.default_rng(0).uniform(0.1, 2.0, d)
    W = table.project(graph, E, 3)
    Z = (X - X.mean(axis=0)) / X.std(axis=0, ddof=1)
    A = symmetric(graph)
    M = 2.0 * Z.T @ (np.diag(A.sum(axis=1)) - A) @ Z + np.diag(1.0 / E)
    S_t = Z.T @ Z
    # The least μ of Mw = μS_tw are the inverses of the greatest of S_tw = νMw.
    expected = 1.0 / eigh(S_t, M, eigvals_only=True)[::-1][:3]
    np.testing.assert_allclose(W.T @ S_t @ W, np.eye(3), atol=1e-9)
    np.testing.assert_allclose(np.sort(np.diag(W.T @ M @ W)), expected, rtol=1e-8)


@pytest.mark.parametrize("gamma", [1e-3, 1.0, 1e3])
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
    W, alpha = first_steps(table, gamma, m)
    for _ in range(2000):
        W = next_step(table, W, alpha, gamma, m)
    # Stationary: the gradient of the Lagrangian, 2MW = 2S_tWΛ, where rows are not zero.
    A = symmetric(table.neighbours(table.X @ W).similar(alpha)[0])
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


def test_more_penalty_more_rows_that_are_zero() -> None:
    X, y = make_classes(60, 15, 3, seed=4)
    table, counts = _Table.of(Problem.from_arrays(X, y)), []
    for gamma in (1e-3, 1.0, 1e2):
        W, alpha = first_steps(table, gamma, 2)
        for _ in range(300):
            W = next_step(table, W, alpha, gamma, 2)
        norms = np.linalg.norm(W, axis=1)
        counts.append(int((norms > 1e-3 * norms.max()).sum()))
    assert counts[0] > counts[1] >= counts[2]


def test_the_defaults_are_those_of_the_comparison() -> None:
    defaults = SLAP().get_params()
    assert (defaults["n_neighbors"], defaults["n_components"]) == (5, None)
    X, y = make_classes(40, 9, 3, seed=1)
    assert run(X, y, 3).trace == run(X, y, 3, n_components=3).trace


def test_rows_with_more_copies_than_neighbours() -> None:
    for seed in range(3):
        rng = np.random.default_rng(seed)
        rows, labels = rng.standard_normal((12, 7)), np.arange(12) % 2
        X, y = np.repeat(rows, 9, axis=0), np.repeat(labels, 9)
        wanted = run(X, y, 3)
        move = rng.permutation(len(X))
        weighted = Problem.from_arrays(rows, labels, sample_weight=np.full(12, 9))
        for found in (run(X[move], y[move], 3), solve(weighted, 3, "slap")):
            assert found.order.tolist() == wanted.order.tolist()
            np.testing.assert_allclose(found.trace, wanted.trace, rtol=1e-9)


def test_copies_cost_nothing() -> None:
    rng = np.random.default_rng(0)
    X, y = np.repeat(rng.standard_normal((6, 5)), 100, axis=0), np.repeat(np.arange(6) % 2, 100)
    table = _Table.of(Problem.from_arrays(X, y))
    assert table.X.shape == (6, 5)
    np.testing.assert_allclose(table.weights, 100)
    # The same row in two classes stays two rows.
    assert len(_Table.of(Problem.from_arrays(X[:200], np.arange(200) % 2)).X) == 4


@pytest.mark.parametrize("total", [1.0, 0.5, 1e-6])
def test_weights_that_are_shares(total: float) -> None:
    X, y = make_classes(64, 9, 3, seed=1)
    counts = np.random.default_rng(0).integers(0, 4, 64).astype(float)
    problem = Problem.from_arrays(X, y, sample_weight=counts * (0.999 * total / counts.sum()))
    found, counts = _Table.of(problem).weights, counts[counts > 0]
    # As many as there are rows, 1 on average.
    np.testing.assert_allclose(found, counts / counts.mean())
    even = Problem.from_arrays(X, y, sample_weight=np.full(64, total / 64))
    assert solve(even, 3, "slap").order.tolist() == run(X, y, 3).order.tolist()


def test_memory_for_neighbours_and_not_for_all_rows() -> None:
    X = np.random.default_rng(0).normal(size=(2000, 3))
    y = np.arange(2000) % 2
    # Distances of all rows of a class would take 8 MB each.
    assert solve(Problem.from_arrays(X, y, memory_limit=6_000_000), 1, "slap").k == 1
    with says("slap", "1,000 rows", "memory_limit", "method='spec'"):
        # Nearly all rows of a class are neighbours.
        solve(Problem.from_arrays(X, y, memory_limit=6_000_000), 1, "slap", n_neighbors=900)
