"""Copies of a column, up to shift, scale and sign, are found; nothing else is taken for one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from exactk import Moments, Problem, TopKSelector, solve


def brute_copies(X: np.ndarray) -> list[int]:
    """Columns whose correlation with an earlier one is one, pair by pair."""
    R = np.abs(np.corrcoef(X.T))
    return [j for j in range(len(R)) if (R[j, :j] > 1 - 1e-9).any()]


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10_000), n_copies=st.integers(0, 6), weighted=st.booleans())
def test_they_are_those_of_the_correlations(seed: int, n_copies: int, weighted: bool) -> None:
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, size=(25, 6)).astype(float) + np.arange(25)[:, None] % 2
    source = rng.integers(0, 6, size=n_copies)
    copies = X[:, source] * rng.choice([-3.0, 0.5, 1e4], size=n_copies) + rng.normal(size=n_copies)
    X = np.column_stack([X, copies])[:, rng.permutation(6 + n_copies)]
    y = rng.normal(size=25)
    weights = rng.integers(1, 4, size=25).astype(float) if weighted else None
    problem = Problem.from_arrays(X, y, sample_weight=weights)
    repeated = X if weights is None else np.repeat(X, weights.astype(int), axis=0)
    expected = np.setdiff1d(problem.usable, brute_copies(repeated))
    assert problem.candidates.tolist() == expected.tolist()


@pytest.mark.parametrize("form", ["dense", "sparse", "moments", "float32"])
def test_every_form_of_table_shows_them(form: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 8))
    X = np.column_stack([X, -2 * X[:, 3], X[:, 0]]).astype(np.float32).astype(float)
    y = rng.normal(size=40)
    if form == "moments":
        problem = Problem.from_moments(Moments.from_arrays(X, y))
    else:
        table = {"dense": X, "sparse": sparse.csr_array(X), "float32": X.astype(np.float32)}[form]
        problem = Problem.from_arrays(table, y)
    assert problem.candidates.tolist() == list(range(8))


def test_columns_alike_to_the_target_only_are_no_copies() -> None:
    # Each column is one in a row of its own: all have the same size and product with y.
    X = np.eye(60)[:, :50]
    y = np.repeat([0.0, 1.0], [50, 10])
    assert len(Problem.from_arrays(X, y, task="regression").candidates) == 50


def test_many_copies_of_one_column() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(30, 3))
    problem = Problem.from_arrays(x[:, np.arange(600) % 3], rng.normal(size=30))
    assert problem.candidates.tolist() == [0, 1, 2]


def test_a_nearly_equal_column_stays_a_candidate() -> None:
    rng = np.random.default_rng(2)
    x = rng.normal(size=(50, 2))
    X = np.column_stack([x, x[:, 0] + 1e-3 * rng.normal(size=50)])
    assert len(Problem.from_arrays(X, x[:, 1]).candidates) == 3


def test_more_requested_than_there_are_different_columns() -> None:
    rng = np.random.default_rng(3)
    x = rng.normal(size=(50, 3))
    with pytest.warns(UserWarning, match=r"only 3 of the 5 columns"):
        selector = TopKSelector(k=5).fit(np.column_stack([x, x]), rng.normal(size=50))
    assert selector.status_ == "rank_deficient"
    assert selector.support_[:3].all()
    assert selector.support_.sum() == 5


def test_sparse_tables_stay_sparse() -> None:
    n, d = 1000, 4000
    rng = np.random.default_rng(4)
    X = sparse.csc_array((np.ones(d), (rng.integers(0, n, d), np.arange(d))), shape=(n, d))
    problem = Problem.from_arrays(X, np.arange(n) % 2, gram="columns")
    different = len(np.unique(X.indices))
    assert len(problem.candidates) == different
    assert len(solve(problem, 3, effort=0).support) == 3


@pytest.mark.parametrize("at_once", [1, 2**20])
def test_many_columns_each_with_copies_of_its_own(
    at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("exactk.data.usable_columns.PAIR_VALUES", at_once)
    rng = np.random.default_rng(2)
    source = np.concatenate([np.arange(300), rng.integers(0, 300, 500)])[rng.permutation(800)]
    X = rng.normal(size=(30, 300))[:, source] * rng.choice([-3.0, 0.5], 800) + rng.normal(size=800)
    problem = Problem.from_arrays(X, rng.integers(0, 2, 30))
    first = np.array([np.flatnonzero(source == s)[0] for s in source])
    copies = np.flatnonzero(first != np.arange(800))
    assert problem.duplicates.tolist() == copies.tolist()
    assert problem.originals.tolist() == first[copies].tolist()
