"""The units of y and the offsets of X change nothing, whatever their size."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from exactk import InputError, Moments, Problem, solve
from exactk.search.native_state import make_state
from exactk.search.state import State


@pytest.mark.parametrize("make", [State, make_state])
def test_nothing_left_to_add_with_large_y(make: Any) -> None:
    rng = np.random.default_rng(1)
    X = rng.standard_normal((30, 4))
    state = make(Problem.from_arrays(X, 1e8 * rng.standard_normal(30)), 4)
    assert state.load(range(4))
    assert state.best_addition() is None
    assert state.best_swap() is None


@pytest.mark.parametrize("offset", [1e3, 1e8])
@pytest.mark.parametrize(("gram", "form"), [("full", np.asarray), ("columns", sparse.csr_array)])
def test_offsets_of_nearly_equal_columns(offset: float, gram: Any, form: Any) -> None:
    rng = np.random.default_rng(2)
    a, b = rng.standard_normal((2, 30))
    X = np.column_stack([a + offset, a + 1e-3 * b + offset, rng.standard_normal(30)])
    y = rng.standard_normal(30) + b
    Z = X[:, :2] - X[:, :2].mean(axis=0)
    Z -= Z.mean(axis=0)
    centred = y - y.mean()
    fit = Z @ np.linalg.lstsq(Z, centred, rcond=None)[0]
    expected = ((centred - fit) ** 2).sum()
    found = Problem.from_arrays(form(X), y, gram=gram).objective([0, 1])
    assert found == pytest.approx(expected, rel=1e-10 * max(offset, 1e4))


def test_near_dependence_is_no_proof_without_rows() -> None:
    rng = np.random.default_rng(3)
    x, b = rng.standard_normal((2, 40))
    X = np.column_stack([x, x + 1e-5 * b, rng.standard_normal((40, 3))])
    best = solve(Problem.from_arrays(X, b), 2, "exhaustive")
    assert best.status == "optimal"
    # The difference of two near copies is y itself.
    assert best.support.tolist() == [0, 1]
    assert best.objective < 1e-6 * best.total
    moments = Moments.from_arrays(X, b)
    assert solve(Problem.from_moments(moments), 2, "exhaustive").status == "converged"


def test_labels_of_any_kind_are_serialisable() -> None:
    dates = np.array(["2020-01-01", "2021-01-01"], dtype="M8[D]")[np.arange(20) % 2]
    X = np.random.default_rng(4).standard_normal((20, 3))
    result = solve(Problem.from_arrays(X, dates, task="classification"), 1)
    assert json.loads(result.to_json())["classes"] == ["2020-01-01", "2021-01-01"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"ridge": 1e308}, "ridge must be zero or more, and at most"),
        ({"memory_limit": None}, "memory_limit must be"),
        ({"memory_limit": -1}, "memory_limit must be"),
        ({"feature_names": 3}, "feature_names must be a list"),
        ({"sample_weight": np.ones(20) * 1j}, "complex"),
    ],
)
def test_odd_parameters(options: dict[str, Any], words: str) -> None:
    X = np.random.default_rng(5).standard_normal((20, 3))
    with pytest.raises(InputError, match=words):
        Problem.from_arrays(X, np.arange(20) % 2, **options)
