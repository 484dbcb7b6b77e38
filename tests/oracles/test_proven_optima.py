"""Proven optima of three real data sets: the stored values hold, and the default reaches them."""

from __future__ import annotations

import json
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.preprocessing import PolynomialFeatures

from exactk import Problem, certify, solve
from exactk.proof.column_tree import library
from exactk.types import Floats
from tests.oracles.brute import Reference

STORED = json.loads(Path(__file__).with_name("proven_optima.json").read_text())["sets"]
# Half of the last decimal stored, and a little for the rounding of sums.
CLOSE = 6e-5


@cache
def table(name: str) -> tuple[Floats, npt.NDArray[Any]]:
    if name == "breast_cancer":
        return load_breast_cancer(return_X_y=True)
    if name == "digits":
        return load_digits(return_X_y=True)
    X, y = load_diabetes(return_X_y=True)
    X = PolynomialFeatures(2, include_bias=False).fit_transform(X)
    alike = np.triu(np.abs(np.corrcoef(X, rowvar=False)) > 0.99999, 1).any(axis=0)
    X = X[:, ~alike]
    assert X.shape == (442, 64)
    return X, (y - y.mean()) / y.std(ddof=1)


def cells(key: str) -> list[tuple[str, int]]:
    """Names and sizes that the file has a value for."""
    return [(name, int(k)) for name, stored in STORED.items() for k in stored[key]]


@pytest.mark.parametrize(("name", "k"), cells("enumerated_in_the_test"))
def test_the_stored_optimum_is_the_best_of_all_subsets(name: str, k: int) -> None:
    reference = Reference(*table(name))
    X = reference.X[:, reference.usable]
    A, B = X.T @ X, X.T @ reference.Y
    subsets = np.array(list(combinations(range(len(A)), k)))
    explained = 0.0
    for part in np.array_split(subsets, 1 + len(subsets) // 20_000):
        B_S = B[part]
        V = np.linalg.solve(A[part[:, :, None], part[:, None, :]], B_S)
        explained = max(explained, float((V * B_S).sum(axis=(1, 2)).max()))
    assert reference.total - explained == pytest.approx(STORED[name]["optimum"][str(k)], abs=CLOSE)


@pytest.mark.parametrize(("name", "k"), cells("optimum"))
def test_the_default_effort_reaches_the_proven_optimum(name: str, k: int) -> None:
    X, y = table(name)
    result = solve(Problem.from_arrays(X, y), k)
    assert result.objective == pytest.approx(STORED[name]["optimum"][str(k)], abs=CLOSE)
    # The figure is that of the columns named, by a fit of its own.
    own = Reference(X, y).objective(result.support)
    assert own == pytest.approx(result.objective, rel=1e-9)


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("name", list(STORED))
def test_other_seeds_reach_it_too(name: str, seed: int) -> None:
    problem = Problem.from_arrays(*table(name))
    for k in (3, 5, 8):
        result = solve(problem, k, random_state=seed)
        assert result.objective == pytest.approx(STORED[name]["optimum"][str(k)], abs=CLOSE)


@pytest.mark.parametrize(("name", "k"), cells("greedy_and_swaps"))
def test_without_effort_it_is_greedy_and_swaps(name: str, k: int) -> None:
    stored = STORED[name]["greedy_and_swaps"][str(k)]
    result = solve(Problem.from_arrays(*table(name)), k, effort=0)
    assert result.objective == pytest.approx(stored, abs=CLOSE if stored < 1000 else 0.005)


@pytest.mark.parametrize(("name", "k"), [("breast_cancer", 3), ("breast_cancer", 4)])
def test_exhaustive_agrees_on_real_data(name: str, k: int) -> None:
    problem = Problem.from_arrays(*table(name))
    best = solve(problem, k, "exhaustive").objective
    assert solve(problem, k).objective == pytest.approx(best, rel=1e-9)
    if str(k) in STORED[name]["optimum"]:
        assert best == pytest.approx(STORED[name]["optimum"][str(k)], abs=CLOSE)


def proofs() -> list[Any]:
    """All of them, those that take more than a few seconds marked."""
    long = {("digits", 8), ("digits", 9)}
    return [
        pytest.param(*one, marks=[pytest.mark.slow] * (one in long)) for one in cells("optimum")
    ]


@pytest.mark.skipif(library() is None, reason="the tree is not compiled here")
@pytest.mark.parametrize(("name", "k"), proofs())
def test_the_optimum_is_proven_once_more_from_a_bad_start(name: str, k: int) -> None:
    X, y = table(name)
    problem = Problem.from_arrays(X, y)
    start = np.random.default_rng(k).permutation(problem.candidates)[:k].tolist()
    optimum = STORED[name]["optimum"][str(k)]
    assert problem.objective(start) > optimum + 1.0
    certificate = certify(problem, features=start, time_limit=None, n_jobs=1)
    assert certificate.proven
    assert certificate.improved
    assert certificate.lower == pytest.approx(optimum, abs=CLOSE)
    own = Reference(X, y).objective(certificate.result.support)
    assert own == pytest.approx(optimum, abs=CLOSE)
