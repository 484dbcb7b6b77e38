"""FSPCA: its optimum on small problems, its bounds, and that it cannot fall."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest

from exactk import Problem, Result, Status, solve
from exactk.papers.methods.fspca import FSPCA
from tests.oracles.brute import make_classes
from tests.support import says

Array = np.ndarray[Any, Any]


def correlated(n: int, d: int, rank: int, seed: int, noise: float = 0.3) -> Array:
    """Columns of very different scatter that follow a few factors."""
    rng = np.random.default_rng(seed)
    factors = rng.standard_normal((n, rank)) * np.linspace(3, 1, rank)
    return factors @ rng.standard_normal((rank, d)) + noise * rng.standard_normal((n, d))


def covariance(X: Array, scale: bool) -> Array:
    """By NumPy; divided by the mean variance, which is the unit of the trace."""
    A = np.corrcoef(X, rowvar=False) if scale else np.cov(X, rowvar=False)
    return A / np.diag(A).mean()


def value(A: Array, S: Any, m: int) -> float:
    return float(np.linalg.eigvalsh(A[np.ix_(S, S)])[-m:].sum())


def best(A: Array, k: int, m: int) -> float:
    return max(value(A, list(S), m) for S in combinations(range(len(A)), k))


def run(X: Array, k: int, *, scale: bool = True, **options: Any) -> Result:
    y = np.arange(len(X)) % 2
    return solve(Problem.from_arrays(X, y, scale=scale), k, "fspca", **options)


@pytest.mark.filterwarnings("ignore:only . of the . columns")
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("rank", [2, 3])
def test_of_low_rank_it_is_the_global_optimum(seed: int, rank: int) -> None:
    X = correlated(30, 9, rank, seed, noise=0.0)
    A = covariance(X, scale=False)
    for k in (3, 5):
        result = run(X, k, scale=False, n_components=3)
        assert value(A, result.support, 3) == pytest.approx(best(A, k, 3), rel=1e-9)
        assert result.n_iter == 1


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize(("n", "d"), [(40, 9), (6, 10)])
def test_it_keeps_its_bounds(seed: int, scale: bool, n: int, d: int) -> None:
    X = correlated(n, d, 4, seed, noise=1.0)
    A = covariance(X, scale)
    eigenvalues = np.linalg.eigvalsh(A)[::-1]
    for k, m in ((2, 1), (4, 2), (5, 1), (5, 4)):
        result = run(X, k, scale=scale, n_components=m)
        found, optimum = value(A, result.support, m), best(A, k, m)
        assert result.trace[-1] == pytest.approx(found, rel=1e-9)
        assert found <= optimum * (1 + 1e-9)
        assert found >= optimum * k / d
        assert found >= optimum - eigenvalues[m : 2 * m].sum() - 1e-9


def test_it_is_near_the_optimum_and_in_a_fifth_of_tables_there() -> None:
    ratios = []
    for seed in range(40):
        A = covariance(correlated(40, 9, 4, seed, noise=1.0), scale=True)
        found = run(correlated(40, 9, 4, seed, noise=1.0), 4, n_components=2).trace[-1]
        ratios.append(found / best(A, 4, 2))
    assert np.mean(ratios) > 0.97
    assert np.mean(np.array(ratios) > 1 - 1e-9) > 0.2


def test_the_objective_never_falls_and_often_rises() -> None:
    longer = 0
    for seed in range(30):
        result = run(correlated(50, 40, 12, seed, noise=2.0), 8, n_components=2)
        assert (np.diff(result.trace) >= -1e-9).all()
        assert result.status == Status.CONVERGED
        longer += result.trace[-1] > result.trace[0] * (1 + 1e-6)
    assert longer > 5, "the iterations would not be tested"


def test_at_the_end_the_support_is_a_fixed_point() -> None:
    for seed in range(5):
        X = correlated(50, 20, 6, seed, noise=1.0)
        A, k, m = covariance(X, scale=True), 6, 2
        S = run(X, k, n_components=m).support
        W = np.zeros((20, m))
        W[S] = np.linalg.eigh(A[np.ix_(S, S)])[1][:, -m:]
        P = A @ W @ np.linalg.pinv(W.T @ A @ W) @ W.T @ A
        assert sorted(np.argsort(-np.diag(P))[:k]) == S.tolist()


def test_it_finds_the_columns_that_follow_one_factor() -> None:
    # Six of 200 columns share a factor; by chance 0.18 of the six would be found.
    found = 0
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((80, 200))
        X[:, 50:56] += 1.5 * rng.standard_normal((80, 1))
        found += len({50, 51, 52, 53, 54, 55} & set(run(X, 6, n_components=1).support.tolist()))
    assert found >= 28


def test_the_target_has_no_part_in_it() -> None:
    X, y = make_classes(40, 12, 3, seed=0)
    other = np.random.default_rng(1).permutation(y)
    for k in (1, 3, 6):
        one, two = (solve(Problem.from_arrays(X, t), k, "fspca") for t in (y, other))
        assert one.support.tolist() == two.support.tolist()
        assert one.trace == two.trace


@pytest.mark.parametrize(("n", "d"), [(60, 12), (12, 60)])
def test_moments_rows_and_ridge_make_no_difference(n: int, d: int) -> None:
    X, y = correlated(n, d, 5, 0, noise=1.0), np.arange(n) % 3
    traces = [
        solve(Problem.from_arrays(X, y, gram=gram, ridge=ridge), 5, "fspca", n_components=2).trace
        for gram in ("full", "columns")
        for ridge in (0.0, 3.0)
    ]
    for trace in traces[1:]:
        np.testing.assert_allclose(trace, traces[0], rtol=1e-9)


def test_many_columns_by_lanczos_as_by_the_whole_spectrum() -> None:
    X = correlated(700, 400, 8, 0, noise=1.0)
    A = covariance(X, scale=True)
    values, vectors = np.linalg.eigh(A)
    diagonal = (vectors[:, -3:] ** 2) @ values[-3:]
    with pytest.warns(UserWarning, match="raise max_iter"):
        first = run(X, 10, n_components=3, max_iter=1)
    assert sorted(np.argsort(-diagonal)[:10].tolist()) == first.support.tolist()


def test_the_dimension_is_half_of_k_and_at_most_k() -> None:
    X = correlated(40, 12, 5, 3, noise=1.0)
    for k, m in ((1, 1), (2, 1), (5, 3), (6, 3)):
        assert run(X, k).trace == run(X, k, n_components=m).trace
    assert run(X, 4, n_components=99).trace == run(X, 4, n_components=4).trace
    # Any four standardised columns have a trace of four.
    assert run(X, 4, n_components=4).trace[-1] == pytest.approx(4.0)


@pytest.mark.parametrize("option", ["n_components", "max_iter"])
def test_options_are_checked(option: str) -> None:
    options: dict[str, Any] = {option: 0}
    with says(f"{option} must be a whole number of at least 1", "not 0"):
        run(correlated(20, 6, 2, 0), 2, **options)
    assert FSPCA.uses_target is False
