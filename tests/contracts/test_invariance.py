"""What must not change the answer: names, order, container, layout, units, engine, threads."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import exactk
from exactk import Problem, Result, TopKSelector
from exactk.methods import registry
from exactk.methods.base import IterativeMethod
from exactk.papers.filters.base import Filter
from exactk.search import native_state
from tests.support import over, refused

Array = np.ndarray[Any, Any]
K = 3
SOURCE = Path(exactk.__file__).resolve().parents[1]

# An end at the iteration limit is an end that the contract allows; each method's own tests
# look at its status.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

every_method = pytest.mark.parametrize("method", over(registry.names()))
# One for each way of reading a problem: the Gram matrix, rows of numbers, levels, distances, and
# the moments of each class.
few_methods = pytest.mark.parametrize(
    "method", ["exchange", "rfs", "infogain", "relieff", "fisher"]
)


def data(seed: int = 0, n: int = 90, d: int = 11) -> tuple[Array, Array]:
    """Three classes that four correlated columns of many tell apart, at several scales."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    X = rng.normal(size=(n, d)) @ (np.eye(d) + 0.3 * rng.normal(size=(d, d)))
    X[:, [1, 4]] += np.array([[0, 0], [1.5, 0], [0, 1.5]])[y]
    X[:, [6, 9]] += 0.7 * np.array([[0, 1], [1, 0], [0, 0]])[y]
    return X * 10.0 ** rng.integers(-2, 3, d) + rng.normal(size=d), y


def solve(X: Any, y: Any, method: str, k: int = K, **named: Any) -> Result:
    return exactk.solve(Problem.from_arrays(X, y, **({"ridge": 0.1} | named)), k, method)


def assert_same(found: Result, wanted: Result, rel: float = 1e-9) -> None:
    assert found.support.tolist() == wanted.support.tolist()
    assert found.order.tolist() == wanted.order.tolist()
    assert found.objective == pytest.approx(wanted.objective, rel=rel)
    np.testing.assert_allclose(found.coef, wanted.coef, rtol=1e3 * rel, atol=1e3 * rel)
    np.testing.assert_allclose(found.intercept, wanted.intercept, rtol=1e3 * rel, atol=1e3 * rel)


@every_method
def test_names_of_classes_and_order_of_rows(method: str) -> None:
    X, y = data()
    wanted = solve(X, y, method)
    move = np.random.default_rng(0).permutation(len(X))
    for labels in (["zeta", "beta", "eta"], [7, -1, 3]):
        found = solve(X[move], np.array(labels)[y[move]], method)
        assert found.classes == tuple(sorted(labels))
        # Row i of the coefficients belongs to class i, under whatever name it sorts.
        rows = np.argsort(labels)
        assert_same(
            found, replace(wanted, coef=wanted.coef[rows], intercept=wanted.intercept[rows])
        )
    two = solve(X, y == 1, method)
    assert solve(X, y != 1, method).support.tolist() == two.support.tolist()


@pytest.mark.parametrize("labels", [[2.0, 0.0, 1.0], ["10", "9", "a"]])
def test_labels_of_any_kind(labels: list[Any]) -> None:
    X, y = data(1)
    found, wanted = solve(X, np.array(labels)[y], "exchange"), solve(X, y, "exchange")
    assert found.support.tolist() == wanted.support.tolist()
    assert found.classes == tuple(sorted(labels))


@every_method
@pytest.mark.parametrize("gram", ["full", "columns"])
def test_whole_weight_is_the_row_that_many_times(method: str, gram: str) -> None:
    """Sparse where the Gram matrix is read in columns; rows without weight leave no trace."""
    X, y = data()
    w = np.random.default_rng(0).integers(0, 4, len(X))
    wanted = solve(np.repeat(X, w, axis=0), np.repeat(y, w), method)
    X, y = X.copy(), y.copy()
    X[w == 0], y[w == 0] = 1e9, 5
    table = X if gram == "full" else sparse.csr_array(X)
    found = solve(table, y, method, sample_weight=w, gram=gram)
    assert_same(found, wanted, 1e-8)
    assert found.classes == (0, 1, 2), "a class without weight is none"


def test_weights_through_the_selector() -> None:
    X, y = data()
    w = np.random.default_rng(0).integers(0, 4, len(X))
    for ridge in ("auto", 0.0):
        weighted = TopKSelector(k=K, ridge=ridge).fit(X, y, sample_weight=w)
        repeated = TopKSelector(k=K, ridge=ridge).fit(np.repeat(X, w, axis=0), np.repeat(y, w))
        assert weighted.ridge_ == repeated.ridge_
        assert_same(weighted.result_, repeated.result_)


@every_method
def test_copies_of_columns_are_not_chosen_twice(method: str) -> None:
    X, y = data()
    d = X.shape[1]
    for k in (K, d):
        wanted = solve(X, y, method, k, ridge=0.0)
        twice = solve(np.hstack([X, X]), y, method, k, ridge=0.0)
        assert twice.support.tolist() == wanted.support.tolist(), "ties go to the lowest index"
        found = solve(np.hstack([X, -3 * X + 1]), y, method, k, ridge=0.0)
        assert sorted(found.support % d) == wanted.support.tolist()
        assert found.objective == pytest.approx(wanted.objective, rel=1e-6)


CONTAINERS: dict[str, Callable[[Array], Any]] = {
    "Fortran": np.asfortranarray,
    "strided": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "list": lambda X: X.tolist(),
    "CSR": sparse.csr_array,
    "CSC": sparse.csc_matrix,
    "single": lambda X: X.astype(np.float32),
    "single Fortran": lambda X: np.asfortranarray(X, dtype=np.float32),
    "single CSR": lambda X: sparse.csr_array(X.astype(np.float32)),
}


@few_methods
@pytest.mark.parametrize("container", list(CONTAINERS))
def test_container_and_layout(method: str, container: str) -> None:
    X, y = data()
    X = X.astype(np.float32).astype(np.float64)
    wanted = solve(X, y, method)
    for gram in ("full", "columns", "auto"):
        assert_same(solve(CONTAINERS[container](X), y, method, gram=gram), wanted, 1e-8)


@every_method
def test_sparse_single_precision_in_columns(method: str) -> None:
    """Everything that a method may read in another way than the rest, at once."""
    X, y = data(2)
    X = X.astype(np.float32).astype(np.float64)
    table = sparse.csc_array(X.astype(np.float32))
    assert_same(solve(table, y, method, gram="columns"), solve(X, y, method), 1e-8)


def test_frames() -> None:
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    pa = pytest.importorskip("pyarrow")
    X, y = data()
    names = [f"f{j}" for j in range(X.shape[1])]
    columns = dict(zip(names, X.T.copy(), strict=True))
    wanted = TopKSelector(k=K).fit(X, y)
    for frame in (pd.DataFrame(columns), pl.DataFrame(columns), pa.table(columns)):
        result = solve(frame, y, "exchange")
        assert_same(result, solve(X, y, "exchange"))
        assert result.feature_names == tuple(names[p] for p in result.support)
        fitted = TopKSelector(k=K).fit(frame, y)
        assert (fitted.support_ == wanted.support_).all()
        assert fitted.result_.feature_names == tuple(names[p] for p in fitted.result_.support)
        np.testing.assert_allclose(fitted.coef_, wanted.coef_, rtol=1e-7, atol=1e-9)


def test_through_the_selector() -> None:
    X, y = data()
    wanted = TopKSelector(k=K).fit(X, y)
    rng = np.random.default_rng(0)
    rows, columns = rng.permutation(len(X)), rng.permutation(X.shape[1])
    same = [
        (X, np.array(["c", "a", "b"])[y]),
        (X[rows], y[rows]),
        (np.asfortranarray(X), y),
        (sparse.csc_array(X), y),
        (X.astype(np.float32), y),
        (X * 1e5, y),
    ]
    for table, target in same:
        fitted = TopKSelector(k=K).fit(table, target)
        assert (fitted.support_ == wanted.support_).all()
        assert fitted.selected_.tolist() == wanted.selected_.tolist()
        assert fitted.objective_ == pytest.approx(wanted.objective_, rel=1e-4)
    moved = TopKSelector(k=K).fit(X[:, columns], y)
    assert (moved.support_ == wanted.support_[columns]).all()
    assert (moved.ranking_ == wanted.ranking_[columns]).all()


@few_methods
def test_single_precision_loses_no_column(method: str) -> None:
    X, y = data()
    found, wanted = solve(X.astype(np.float32), y, method), solve(X, y, method)
    assert found.support.tolist() == wanted.support.tolist()
    assert found.objective == pytest.approx(wanted.objective, rel=1e-4)


@every_method
def test_units_of_the_columns(method: str) -> None:
    X, y = data()
    wanted = solve(X, y, method)
    rng = np.random.default_rng(0)
    factors = 10.0 ** rng.integers(-40, 40, X.shape[1]) * rng.choice([-1, 1], X.shape[1])
    found = solve(X * factors, y, method)
    assert found.support.tolist() == wanted.support.tolist()
    assert found.objective == pytest.approx(wanted.objective, rel=1e-9)
    np.testing.assert_allclose(found.coef * factors[found.support], wanted.coef, rtol=1e-6)
    moved = solve(X / X.std(axis=0) + 1e5, y, method)
    assert moved.support.tolist() == wanted.support.tolist()
    assert moved.objective == pytest.approx(wanted.objective, rel=1e-7)


@every_method
def test_units_of_the_target(method: str) -> None:
    X, y = data()
    amounts = X[:, 1] / X[:, 1].std() + y + np.random.default_rng(0).normal(size=len(y))
    if refused(method, Problem.from_arrays(X, amounts)):
        return
    wanted = solve(X, amounts, method, ridge=0.0)
    for factor, shift in ((1e-9, 0.0), (-1e6, 3.0), (1.0, 1e6), (1e40, 0.0)):
        found = solve(X, factor * amounts + shift, method, ridge=0.0)
        assert found.support.tolist() == wanted.support.tolist()
        assert found.status == wanted.status
        assert found.objective == pytest.approx(factor**2 * wanted.objective, rel=1e-7)


# The others make no such moves.
of_moves = [
    name
    for name in registry.names()
    if not issubclass(registry.method_class(name), IterativeMethod | Filter)
]


@pytest.mark.skipif(native_state.library() is None, reason="the compiled moves were not built")
@pytest.mark.parametrize("method", of_moves)
@pytest.mark.parametrize(("ridge", "gram"), [(0.0, "columns"), (0.1, "full")])
def test_compiled_and_plain_moves(
    method: str, ridge: float, gram: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = [data(seed, n=60, d=14) for seed in range(3)] + [data(3, n=20, d=30)]
    problems = [Problem.from_arrays(X, y, ridge=ridge, gram=gram) for X, y in tables]
    compiled = [exactk.solve(problem, 4, method) for problem in problems]
    paths = [exactk.solve_path(problem, 5, method) for problem in problems[:2]]
    monkeypatch.setattr(native_state, "library", lambda: None)
    for problem, wanted in zip(problems, compiled, strict=True):
        assert_same(exactk.solve(problem, 4, method), wanted)
    for problem, wanted_path in zip(problems, paths, strict=False):
        for found, wanted in zip(exactk.solve_path(problem, 5, method), wanted_path, strict=True):
            assert_same(found, wanted)


SCRIPT = """
import json, sys
import numpy as np
import exactk
from exactk.search import native_state
from sklearn.datasets import load_breast_cancer, load_digits
rng = np.random.default_rng(0)
wide = rng.normal(size=(60, 300)).astype(np.float32)
tables = [load_digits(return_X_y=True), load_breast_cancer(return_X_y=True),
          (wide, np.argmax(wide[:, :3] + wide[:, 3:6], axis=1))]
out = [native_state.library() is not None]
for X, y in tables:
    problem = exactk.Problem.from_arrays(X, y, ridge=0.1)
    for k, effort in ((8, 0), (5, 0.1)):
        result = exactk.solve(problem, k, effort=effort)
        out.append([result.order.tolist(), result.objective])
print(json.dumps(out))
"""


def _run(**environment: str) -> tuple[bool, list[Any]]:
    env = {**os.environ, "PYTHONPATH": str(SOURCE), **environment}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=env, capture_output=True, text=True, check=True
    )
    compiled, *answers = json.loads(done.stdout)
    return compiled, answers


def test_threads_and_engine() -> None:
    counts = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    _, one = _run(**dict.fromkeys(counts, "1"))
    _, two = _run(**dict.fromkeys(counts, "2"))
    compiled, plain = _run(EXACTK_NATIVE="0", **dict.fromkeys(counts, "2"))
    assert not compiled, "EXACTK_NATIVE=0 switches the compiled moves off"
    for other in (two, plain):
        for (order, objective), (wanted, value) in zip(other, one, strict=True):
            assert order == wanted
            assert objective == pytest.approx(value, rel=1e-9)
