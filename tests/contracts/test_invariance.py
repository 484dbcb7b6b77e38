"""What must not change the answer: names, order, container, layout, units, engine, threads."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import exactk
from exactk import Problem, Result, TopKSelector, registry
from exactk.filters.base import Filter
from exactk.methods.base import IterativeMethod
from exactk.search import native
from tests.support import over, refused

Array = np.ndarray[Any, Any]
K = 3
SOURCE = Path(exactk.__file__).resolve().parents[1]

# An end at the iteration limit is an end that the contract allows; each method's own tests
# look at its status.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

every_method = pytest.mark.parametrize("method", over(registry.names()))
every_seed = pytest.mark.parametrize("seed", [0, 1, 2])


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
@every_seed
def test_names_and_codes_of_classes(method: str, seed: int) -> None:
    X, y = data(seed)
    wanted = solve(X, y, method)
    for labels in (["zeta", "beta", "eta"], [7, -1, 3], [2.0, 0.0, 1.0], ["10", "9", "a"]):
        found = solve(X, np.array(labels)[y], method)
        assert found.support.tolist() == wanted.support.tolist()
        assert found.order.tolist() == wanted.order.tolist()
        assert found.objective == pytest.approx(wanted.objective, rel=1e-10)
        assert found.classes == tuple(sorted(labels))
        # Row i of the coefficients belongs to class i, under whatever name it sorts.
        rows = np.argsort(labels)
        np.testing.assert_allclose(found.coef, wanted.coef[rows], rtol=1e-7, atol=1e-9)
    two = solve(X, y == 1, method)
    assert solve(X, y != 1, method).support.tolist() == two.support.tolist()


@every_method
@every_seed
def test_order_of_columns(method: str, seed: int) -> None:
    X, y = data(seed)
    wanted = solve(X, y, method)
    for trial in range(3):
        move = np.random.default_rng(trial).permutation(X.shape[1])
        found = solve(X[:, move], y, method)
        assert sorted(move[found.support]) == wanted.support.tolist()
        assert move[found.order].tolist() == wanted.order.tolist()
        assert found.objective == pytest.approx(wanted.objective, rel=1e-9)


@every_method
@every_seed
def test_order_of_rows(method: str, seed: int) -> None:
    X, y = data(seed)
    move = np.random.default_rng(seed).permutation(len(X))
    assert_same(solve(X[move], y[move], method), solve(X, y, method))


@every_method
@every_seed
@pytest.mark.parametrize("gram", ["full", "columns"])
def test_whole_weight_is_the_row_that_many_times(method: str, seed: int, gram: str) -> None:
    X, y = data(seed)
    w = np.random.default_rng(seed).integers(0, 4, len(X))
    repeated = solve(np.repeat(X, w, axis=0), np.repeat(y, w), method)
    assert_same(solve(X, y, method, sample_weight=w, gram=gram), repeated)
    assert_same(solve(sparse.csr_array(X), y, method, sample_weight=w, gram=gram), repeated, 1e-8)


@every_method
@pytest.mark.parametrize("gram", ["full", "columns"])
@pytest.mark.parametrize("where", ["before", "among"])
def test_weight_zero_is_no_row(method: str, gram: str, where: str) -> None:
    X, y = data()
    extra = np.full((len(X), X.shape[1]), 1e9)
    move = np.random.default_rng(0).permutation(2 * len(X)) if where == "among" else slice(None)
    all_X = np.vstack([extra, X])[move]
    all_y = np.concatenate([np.full(len(X), 5), y])[move]
    w = np.repeat([0.0, 1.0], len(X))[move]
    wanted = solve(all_X[w > 0], all_y[w > 0], method)
    found = solve(all_X, all_y, method, sample_weight=w, gram=gram)
    assert_same(found, wanted)
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
@every_seed
def test_copies_of_columns_are_not_chosen_twice(method: str, seed: int) -> None:
    X, y = data(seed)
    d = X.shape[1]
    wanted = solve(X, y, method, ridge=0.0)
    twice = solve(np.hstack([X, X]), y, method, ridge=0.0)
    assert twice.support.tolist() == wanted.support.tolist(), "ties go to the lowest index"
    copies = np.hstack([X, -3 * X + 1])
    found = solve(copies, y, method, ridge=0.0)
    assert sorted(found.support % d) == wanted.support.tolist()
    assert found.objective == pytest.approx(wanted.objective, rel=1e-6)


@pytest.mark.parametrize("face", ["solve", "selector"])
def test_never_two_copies_while_another_helps(face: str) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 4))
    y = 2 * x[:, 0] + 0.6 * x[:, 1] + 0.3 * x[:, 2] + 0.5 * rng.normal(size=200)
    X = np.hstack([x, x, x])
    for k in (2, 3, 4):
        if face == "solve":
            support = solve(X, y, "exchange", k, ridge=0.0).support
        else:
            support = TopKSelector(k=k).fit(X, y).get_support(indices=True)
        assert len(set(support % 4)) == k, support


@every_method
@every_seed
@pytest.mark.parametrize("gram", ["full", "columns", "auto"])
def test_container_and_layout(method: str, seed: int, gram: str) -> None:
    X, y = data(seed)
    X = X.astype(np.float32).astype(np.float64)
    wanted = solve(X, y, method)
    tables = [
        np.asfortranarray(X),
        np.repeat(X, 2, axis=1)[:, ::2],
        X.tolist(),
        sparse.csr_array(X),
        sparse.csc_matrix(X),
        X.astype(np.float32),
        np.asfortranarray(X, dtype=np.float32),
        sparse.csr_array(X.astype(np.float32)),
    ]
    for table in tables:
        assert_same(solve(table, y, method, gram=gram), wanted, 1e-8)


@every_seed
def test_frames(seed: int) -> None:
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    pa = pytest.importorskip("pyarrow")
    X, y = data(seed)
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


@every_seed
def test_through_the_selector(seed: int) -> None:
    X, y = data(seed)
    wanted = TopKSelector(k=K).fit(X, y)
    rng = np.random.default_rng(seed)
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


@every_method
@every_seed
def test_single_precision_loses_no_column(method: str, seed: int) -> None:
    X, y = data(seed)
    found, wanted = solve(X.astype(np.float32), y, method), solve(X, y, method)
    assert found.support.tolist() == wanted.support.tolist()
    assert found.objective == pytest.approx(wanted.objective, rel=1e-4)


@every_method
@every_seed
def test_units_of_the_columns(method: str, seed: int) -> None:
    X, y = data(seed)
    wanted = solve(X, y, method)
    rng = np.random.default_rng(seed)
    factors = 10.0 ** rng.integers(-40, 40, X.shape[1]) * rng.choice([-1, 1], X.shape[1])
    found = solve(X * factors, y, method)
    assert found.support.tolist() == wanted.support.tolist()
    assert found.objective == pytest.approx(wanted.objective, rel=1e-9)
    np.testing.assert_allclose(found.coef * factors[found.support], wanted.coef, rtol=1e-6)
    moved = solve(X / X.std(axis=0) + 1e5, y, method)
    assert moved.support.tolist() == wanted.support.tolist()
    assert moved.objective == pytest.approx(wanted.objective, rel=1e-7)


@every_method
@every_seed
def test_units_of_the_target(method: str, seed: int) -> None:
    X, y = data(seed)
    amounts = X[:, 1] / X[:, 1].std() + y + np.random.default_rng(seed).normal(size=len(y))
    if refused(method, Problem.from_arrays(X, amounts)):
        return
    wanted = solve(X, amounts, method)
    for factor, shift in ((1e-6, 0.0), (-1e6, 3.0), (1.0, 1e6)):
        found = solve(X, factor * amounts + shift, method)
        assert found.support.tolist() == wanted.support.tolist()
        assert found.objective == pytest.approx(factor**2 * wanted.objective, rel=1e-7)


# The others make no such moves.
of_moves = [
    name
    for name in registry.names()
    if not issubclass(registry.method_class(name), IterativeMethod | Filter)
]


@pytest.mark.skipif(native.library() is None, reason="the compiled moves were not built")
@pytest.mark.parametrize("method", of_moves)
@pytest.mark.parametrize("ridge", [0.0, 0.1])
@pytest.mark.parametrize("gram", ["full", "columns"])
def test_compiled_and_plain_moves(
    method: str, ridge: float, gram: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = [data(seed, n=60, d=14) for seed in range(3)] + [data(3, n=20, d=30)]
    problems = [Problem.from_arrays(X, y, ridge=ridge, gram=gram) for X, y in tables]
    compiled = [exactk.solve(problem, 4, method) for problem in problems]
    paths = [exactk.solve_path(problem, 5, method) for problem in problems[:2]]
    monkeypatch.setattr(native, "library", lambda: None)
    for problem, wanted in zip(problems, compiled, strict=True):
        assert_same(exactk.solve(problem, 4, method), wanted)
    for problem, wanted_path in zip(problems, paths, strict=False):
        for found, wanted in zip(exactk.solve_path(problem, 5, method), wanted_path, strict=True):
            assert_same(found, wanted)


SCRIPT = """
import json, sys
import numpy as np
import exactk
from sklearn.datasets import load_breast_cancer, load_digits
rng = np.random.default_rng(0)
wide = rng.normal(size=(60, 900)).astype(np.float32)
tables = [load_digits(return_X_y=True), load_breast_cancer(return_X_y=True),
          (wide, np.argmax(wide[:, :3] + wide[:, 3:6], axis=1))]
out = [exactk.search.native.library() is not None]
for X, y in tables:
    problem = exactk.Problem.from_arrays(X, y, ridge=0.1)
    for k, effort in ((3, 0), (8, 0), (5, 0.2)):
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
