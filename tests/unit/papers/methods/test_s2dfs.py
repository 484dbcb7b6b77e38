"""S2DFS: the best trace ratio by enumeration, and a ratio that never falls."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from sklearn.feature_selection import f_classif

from exactk import Problem, Result, Status, solve
from tests.oracles.brute import make_classes

Array = np.ndarray[Any, Any]


def uneven(n: int, d: int, c: int, seed: int) -> tuple[Array, Array]:
    """Classes in columns of very different scatter, which matter if nothing is standardised."""
    X, y = make_classes(n, d, c, seed)
    rng = np.random.default_rng(seed)
    return X @ (np.eye(d) + 0.2 * rng.normal(size=(d, d))) * 10.0 ** rng.uniform(-1, 1, d), y


def scatters(X: Array, y: Array, *, scale: bool) -> tuple[Array, Array]:
    """S_b and S_w by their definitions, with 1e-8 of the mean scatter on the diagonal of S_w."""
    if scale:
        X = X / X.std(axis=0, ddof=1)
    X = X - X.mean(axis=0)
    S_b, S_w = np.zeros((2, X.shape[1], X.shape[1]))
    for label in np.unique(y):
        rows = X[y == label]
        mean = rows.mean(axis=0)
        S_b += len(rows) * np.outer(mean, mean)
        S_w += (rows - mean).T @ (rows - mean)
    return S_b, S_w + 1e-8 * np.mean(X**2) * len(X) * np.eye(X.shape[1])


def trace_ratio(S_b: Array, S_w: Array, S: Any, m: int) -> float:
    """The best ratio on some columns, by the plain iteration, which finds the optimum."""
    B, W = S_b[np.ix_(S, S)], S_w[np.ix_(S, S)]
    ratio = 0.0
    for _ in range(25):
        V = np.linalg.eigh(B - ratio * W)[1][:, -m:]
        ratio = float(np.trace(V.T @ B @ V) / np.trace(V.T @ W @ V))
    return ratio


def best(S_b: Array, S_w: Array, k: int, m: int) -> tuple[float, list[int]]:
    every = (list(S) for S in combinations(range(len(S_b)), k))
    return max((trace_ratio(S_b, S_w, S, m), S) for S in every)


def run(X: Array, y: Array, k: int, *, scale: bool = True, **options: Any) -> Result:
    return solve(Problem.from_arrays(X, y, scale=scale), k, "s2dfs", **options)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("scale", [True, False])
def test_with_m_equal_to_k_it_is_the_global_optimum(seed: int, scale: bool) -> None:
    X, y = uneven(40, 9, 3, seed)
    S_b, S_w = scatters(X, y, scale=scale)
    for k in (1, 3, 5):
        result = run(X, y, k, scale=scale)
        optimum = max(
            S_b.diagonal()[list(S)].sum() / S_w.diagonal()[list(S)].sum()
            for S in combinations(range(9), k)
        )
        assert result.trace[-1] == pytest.approx(optimum, rel=1e-6)
        assert (np.diff(result.trace) >= 0).all()
        assert result.status == Status.CONVERGED


def test_which_for_standardised_columns_is_the_order_of_f() -> None:
    for seed in range(5):
        X, y = uneven(60, 15, 3, seed)
        expected = sorted(np.argsort(-f_classif(X, y)[0])[:5].tolist())
        assert run(X, y, 5).support.tolist() == expected
    # And not without: the sum of ratios is not the ratio of sums.
    different = [
        run(*uneven(60, 15, 3, seed), 5, scale=False).support.tolist()
        != run(*uneven(60, 15, 3, seed), 5).support.tolist()
        for seed in range(5)
    ]
    assert any(different)


@pytest.mark.parametrize("scale", [True, False])
def test_with_a_smaller_m_it_is_near_the_optimum_and_never_above(scale: bool) -> None:
    shares = []
    for seed in range(5):
        X, y = uneven(50, 8, 3, seed)
        S_b, S_w = scatters(X, y, scale=scale)
        for k, m in ((3, 1), (4, 2)):
            result = run(X, y, k, scale=scale, n_components=m)
            reached = trace_ratio(S_b, S_w, result.support, m)
            assert result.trace[-1] == pytest.approx(reached, rel=1e-5)
            shares.append(reached / best(S_b, S_w, k, m)[0])
    assert max(shares) <= 1 + 1e-6
    # The columns that are best one by one reach less.
    assert np.mean(shares) > 0.9


@pytest.mark.parametrize(("n", "d"), [(60, 20), (24, 50)])
@pytest.mark.parametrize("gram", ["full", "columns"])
def test_the_ratio_never_falls(n: int, d: int, gram: Any) -> None:
    rises = 0
    for seed in range(6):
        X, y = uneven(n, d, 4, seed)
        problem = Problem.from_arrays(X, y, gram=gram)
        for k, m in ((6, 2), (8, 5)):
            result = solve(problem, k, "s2dfs", n_components=m)
            steps = np.diff(result.trace)
            assert (steps >= -1e-9 * np.array(result.trace[1:])).all()
            rises += result.trace[-1] > result.trace[0] * (1 + 1e-6)
    assert rises > 3


def test_at_the_end_w_solves_the_problem_of_its_own_ratio() -> None:
    X, y = uneven(50, 12, 3, 1)
    S_b, S_w = scatters(X, y, scale=True)
    result = run(X, y, 5, n_components=2, tol=1e-13)
    S, ratio = result.support, result.trace[-1]
    inner = np.linalg.eigvalsh((S_b - ratio * S_w)[np.ix_(S, S)])[-2:].sum()
    assert inner == pytest.approx(0.0, abs=1e-6 * np.trace(S_b))


@pytest.mark.parametrize("m", [1, 2, 4])
def test_rows_and_whole_gram_agree(m: int) -> None:
    for n, d in ((40, 12), (15, 30)):
        X, y = uneven(n, d, 3, 0)
        problems = [
            Problem.from_arrays(X, y, gram="full"),
            Problem.from_arrays(X, y, gram="columns", ridge=2.0),
        ]
        one, two = (solve(problem, 5, "s2dfs", n_components=m) for problem in problems)
        assert one.support.tolist() == two.support.tolist()
        assert one.trace[-1] == pytest.approx(two.trace[-1], rel=1e-6)


def test_columns_that_tell_the_classes_apart_only_together() -> None:
    # The difference of columns 3 and 7 is the class, either alone says little: in each of six
    # tables a pair drawn by chance is this one with probability 1/190.
    pairs, alone = 0, 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X, y = rng.standard_normal((150, 20)), np.arange(150) % 2
        X[:, 7] = X[:, 3] + 0.1 * X[:, 7] + 0.5 * y
        pairs += run(X, y, 2, n_components=1).support.tolist() == [3, 7]
        alone += run(X, y, 2).support.tolist() == [3, 7]
    assert pairs == 6
    assert alone <= 3


def test_classes_that_do_not_overlap_have_a_finite_ratio() -> None:
    y = np.repeat([0, 1, 2], 5)
    X = np.random.default_rng(0).standard_normal((15, 9))
    X[:, 4] = y
    for m in (None, 1, 2):
        result = run(X, y, 3, n_components=m)
        assert np.isfinite(result.trace).all()
        assert 4 in result.support
