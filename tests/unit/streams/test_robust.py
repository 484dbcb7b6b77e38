"""Reweighted methods on tables that are not held: iterations are those of the rows in memory."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from exactk import InputError, Moments, Problem, Status, registry, solve, solve_path
from exactk.choose.ridge import cv_ridge
from exactk.iterative.course import OutOfTimeError
from exactk.iterative.irls import AliveRows
from exactk.iterative.passes import pass_table
from exactk.iterative.table import standard_table
from exactk.monitor import Monitor
from exactk.streams.coding import Coding
from exactk.streams.reweighted import Affine, PowerLoss, ReweightedFold
from tests.arrays import ArrayStream
from tests.support import over, says

Array = np.ndarray[Any, Any]
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def columns(n: int = 1500, d: int = 9, seed: int = 0) -> Array:
    """Columns that hang together, of different units, far from zero."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) @ (np.eye(d) + 0.3 * rng.normal(size=(d, d)))
    return X * np.geomspace(1, 100, d) + 300.0


def classes() -> tuple[Array, Array]:
    X, rng = columns(), np.random.default_rng(1)
    y = rng.choice(["ash", "oak", "yew"], len(X), p=[0.5, 0.3, 0.2])
    X[y == "oak", 2] += 4.0
    X[y == "yew", 6] -= 60.0
    return X, y


def numbers(outputs: int) -> tuple[Array, Array]:
    """Numbers of which one in twenty is wrong, and far off."""
    X, rng = columns(), np.random.default_rng(2)
    clean = np.column_stack([X[:, 0] - X[:, 3] / 5, X[:, 5] / 20]) + rng.normal(size=(len(X), 2))
    clean[:75] += 300.0 * rng.standard_t(2, (75, 2))
    return X, clean[:, 0] if outputs == 1 else clean


TABLES = {"classes": classes(), "two numbers": numbers(2), "one number": numbers(1)}
# A constant column and a copy are no candidates.
TABLES["odd columns"] = (
    np.column_stack([classes()[0][:, :5], np.ones(1500), 3.0 - classes()[0][:, 2]]),
    classes()[1],
)
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "rfs": ("rfs", {}),
    "rfs, more penalty": ("rfs", {"lam": 60.0, "labels": "centred"}),
    "gsrfs, r = 2": ("gsrfs", {"p": 0.7, "labels": "one-hot"}),
    "gsrfs, r = 1.5": ("gsrfs", {"r": 1.5, "p": 1.0, "labels": "one-hot", "lam": 5.0}),
    "gsrfs, smoothed": ("gsrfs", {"r": 1.0, "p": 0.5, "epsilon": 1e-4}),
    "erfs": ("erfs", {"p": 0.8, "lam": 3.0}),
    "mtfs": ("mtfs", {"lam": 50.0}),
    "rk1u": ("rk1u", {}),
    "crfs": ("crfs", {}),
    "crfs, sigma": ("crfs", {"sigma": 0.8, "labels": "plus-minus"}),
    "dlsr": ("dlsr", {"lam": 300.0}),
}


def both(table: str, weighted: bool = False, **named: Any) -> tuple[Problem, Problem, ArrayStream]:
    X, y = TABLES[table]
    w = np.random.default_rng(3).integers(0, 3, len(X)) * 0.5 if weighted else None
    stream = ArrayStream(X, y, w, n_parts=4, n_blocks=3)
    return (
        Problem.from_arrays(X, y, sample_weight=w, **named),
        Problem.from_stream(stream, **named),
        stream,
    )


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("table", ["classes", "two numbers", "odd columns"])
@pytest.mark.parametrize("method", list(METHODS))
def test_every_iteration_is_that_of_the_rows(method: str, table: str, weighted: bool) -> None:
    name, options = METHODS[method]
    held, made, stream = both(table, weighted)
    if registry.method_class(name).needs_classes and held.classes is None:
        return
    stream.passes = 0
    wanted, found = solve(held, 3, name, **options), solve(made, 3, name, **options)
    assert found.support.tolist() == wanted.support.tolist()
    assert found.order.tolist() == wanted.order.tolist()
    assert found.status == wanted.status == Status.CONVERGED
    assert len(found.trace) == len(wanted.trace)
    np.testing.assert_allclose(found.trace, wanted.trace, rtol=1e-9)
    assert found.objective == pytest.approx(wanted.objective, rel=1e-10)
    # A pass an iteration, none for squared loss; medians of numbers take one look each here.
    squared = getattr(registry.create(name, **options), "orders", (1.0,))[0] == 2.0
    medians = 0 if held.classes is not None else 2
    assert stream.passes == (0 if squared else len(found.trace) + medians)


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("lam", [0.1, 30.0])
def test_with_one_number_the_same_optimum_is_approached(weighted: bool, lam: float) -> None:
    # As many rows as columns are fitted exactly in the end, and the way there hangs on the last
    # digits, in memory as well: what is compared is where it ends, which is convex.
    held, made, _ = both("one number", weighted)
    options: dict[str, Any] = {"lam": lam, "tol": 1e-7, "max_iter": 400}
    wanted, found = (solve(problem, 3, "rfs", **options) for problem in (held, made))
    assert found.support.tolist() == wanted.support.tolist()
    assert found.trace[-1] == pytest.approx(wanted.trace[-1], rel=1e-8)
    np.testing.assert_allclose(found.trace[:4], wanted.trace[:4], rtol=1e-9)
    assert np.diff(found.trace).max() <= 1e-9 * found.trace[-1]


def test_rows_that_all_fit_exactly_do_no_harm() -> None:
    X = columns()
    y = X[:, 0] - X[:, 3] / 5
    y[:100] += np.random.default_rng(0).normal(size=100) * 50.0
    held, made = Problem.from_arrays(X, y), Problem.from_stream(ArrayStream(X, y))
    wanted, found = solve(held, 2, "rfs"), solve(made, 2, "rfs")
    assert found.support.tolist() == wanted.support.tolist() == [0, 3]
    assert found.trace[-1] == pytest.approx(wanted.trace[-1], rel=1e-6)
    # Not convex: the values at the ends may differ, the columns should not.
    assert solve(held, 2, "erfs").support.tolist() == [0, 3]
    assert solve(made, 2, "erfs").support.tolist() == [0, 3]


@pytest.mark.parametrize("scale", [False, True])
def test_unscaled_columns(scale: bool) -> None:
    held, made, _ = both("two numbers", scale=scale, ridge=0.3)
    wanted, found = solve(held, 3, "rfs"), solve(made, 3, "rfs")
    np.testing.assert_allclose(found.trace, wanted.trace, rtol=1e-9)


@pytest.mark.parametrize(("n_parts", "n_blocks"), [(1, 1), (2, 7), (50, 1)])
def test_parts_and_order_do_not_matter(n_parts: int, n_blocks: int) -> None:
    X, y = TABLES["classes"]
    mixed = np.random.default_rng(5).permutation(len(X))
    wanted = solve(Problem.from_stream(ArrayStream(X, y)), 3, "rfs")
    stream = ArrayStream(X[mixed], y[mixed], n_parts=n_parts, n_blocks=n_blocks)
    found = solve(Problem.from_stream(stream), 3, "rfs")
    assert found.support.tolist() == wanted.support.tolist()
    np.testing.assert_allclose(found.trace, wanted.trace, rtol=1e-11)


def test_a_path_is_one_run() -> None:
    held, made, stream = both("classes")
    stream.passes = 0
    wanted, found = solve_path(held, 5, "rfs"), solve_path(made, 5, "rfs")
    assert [r.support.tolist() for r in found] == [r.support.tolist() for r in wanted]
    assert stream.passes == found[-1].n_iter


def test_squared_loss_needs_no_rows_at_all() -> None:
    X, y = TABLES["classes"]
    Y = np.eye(3)[np.unique(y, return_inverse=True)[1]]
    moments = Problem.from_moments(Moments.from_arrays(X, Y), classes=["ash", "oak", "yew"])
    held = Problem.from_arrays(X, y)
    for labels in ("centred", "one-hot", "plus-minus"):
        one, other = pass_table(moments, labels), standard_table(held, labels)
        W = np.random.default_rng(0).normal(size=(9, 3))
        wanted = ((other.X @ W - other.Y) ** 2).sum()
        assert one.squares(one.products, W) == pytest.approx(wanted, rel=1e-12)
        np.testing.assert_allclose(one.products.XX, other.X.T @ other.X, atol=1e-8)
        np.testing.assert_allclose(one.products.XY, other.X.T @ other.Y, atol=1e-8)


@pytest.mark.parametrize("r", [0.5, 1.0])
@pytest.mark.parametrize("most", [0, 5, 40])
def test_a_pass_against_its_formula(r: float, most: int) -> None:
    """Rows apart and products together are XᵀS₁X, however many are apart."""
    rng = np.random.default_rng(0)
    X, Y, w = rng.normal(size=(200, 4)) + 7.0, rng.normal(size=(200, 2)), rng.uniform(0, 2, 200)
    W = rng.normal(size=(3, 2))
    affine = Affine(np.array([0, 2, 3]), np.array([7.0, 7.1, 6.9]), np.array([1.0, 2.0, 0.5]),
                    np.array([0.1, -0.2]), 1.7)  # fmt: skip
    Z, U = (X[:, [0, 2, 3]] - affine.mean) * affine.factor, (Y - affine.shift) / 1.7
    e = np.linalg.norm(Z @ W - U, axis=1)
    S1 = w * (r / 2) * e ** (r - 2)
    limit = float(np.quantile((2 / r) * e ** (2 - r), 0.1))
    fold = ReweightedFold(
        Coding(False, 2), affine, W, PowerLoss(r), limit=limit if most else 0.0, most=most
    )
    found = ArrayStream(X, Y, w, n_parts=3, n_blocks=3).reduce(fold)
    assert found.loss == pytest.approx(w @ e**r, rel=1e-12)
    assert found.n_rows == 200
    assert len(found.apart.inverse) == min(most, 20)
    wanted = np.sort((2 / r) * e ** (2 - r))[: len(found.apart.inverse)]
    np.testing.assert_allclose(np.sort(found.apart.inverse), wanted, rtol=1e-9)
    A, share = found.apart.X * affine.factor, found.apart.weights / found.apart.inverse
    m, scales = found.moments, np.outer(affine.factor, affine.factor)
    XX = (m.xx + m.weight * np.outer(m.x_mean, m.x_mean)) * scales + (share[:, None] * A).T @ A
    np.testing.assert_allclose(XX, (S1[:, None] * Z).T @ Z, rtol=1e-10)
    XY = (m.xy + m.weight * np.outer(m.x_mean, m.y_mean)) * affine.factor[:, None]
    XY = XY + (share[:, None] * A).T @ found.apart.Y
    np.testing.assert_allclose(XY, (S1[:, None] * Z).T @ U, rtol=1e-9, atol=1e-9)


def parquet(folder: Path, X: Array, y: Array) -> Problem:
    """Three files of several row groups each."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    for number, rows in enumerate(np.array_split(np.arange(len(X)), 3)):
        held = {f"x{j}": X[rows, j] for j in range(X.shape[1])} | {"y": y[rows]}
        pq.write_table(pa.table(held), folder / f"{number}.parquet", row_group_size=170)
    return Problem.from_files(folder, "y")


def in_dask(X: Array, y: Array) -> Problem:
    da = pytest.importorskip("dask.array")
    return Problem.from_dask(da.from_array(X, chunks=(400, -1)), y)


@pytest.mark.parametrize("source", ["parquet", "dask"])
@pytest.mark.parametrize("table", ["classes", "one number"])
@pytest.mark.parametrize("name", ["rfs", "crfs", "relieff", "rpfs"])
def test_files_and_dask(source: str, table: str, name: str, tmp_path: Path) -> None:
    X, y = TABLES[table]
    held = Problem.from_arrays(X, y)
    if registry.method_class(name).needs_classes and held.classes is None:
        return
    made = parquet(tmp_path, X, y) if source == "parquet" else in_dask(X, y)
    with scheduler():
        wanted, found = solve(held, 3, name), solve(made, 3, name)
        assert found.support.tolist() == wanted.support.tolist()
        if found.trace:
            assert found.trace[-1] == pytest.approx(wanted.trace[-1], rel=1e-6)
        sampled = solve(made.resampled(3, "half"), 3, name)
        other = solve(made.resampled(3, "half").in_memory(), 3, name)
        assert sampled.support.tolist() == other.support.tolist()


def scheduler() -> Any:
    """No threads of Dask's, where it is there."""
    return pytest.importorskip("dask").config.set(scheduler="synchronous")


def test_the_ridge_is_the_same_from_files_and_dask(tmp_path: Path) -> None:
    X, y = TABLES["classes"]
    with scheduler():
        found = {
            cv_ridge(problem, 3)
            for problem in (
                Problem.from_stream(ArrayStream(X, y)), parquet(tmp_path, X, y), in_dask(X, y)
            )
        }  # fmt: skip
    assert len(found) == 1


def test_a_time_limit_ends_a_pass_over_files(tmp_path: Path) -> None:
    X, y = TABLES["classes"]
    problem = parquet(tmp_path, X, y)
    found = solve(problem, 3, "rfs", time_limit=1e-9)
    assert (found.status, found.n_iter) == (Status.TIME_LIMIT, 1)
    table = pass_table(problem, "centred")
    table.monitor = Monitor(time_limit=1e-9)
    rows, W = AliveRows(9), np.zeros((9, 3))
    table.reweigh(rows, W, PowerLoss(1.0))
    with pytest.raises(OutOfTimeError):
        table.reweigh(rows, W, PowerLoss(1.0))
    # The threads are gone, and the files can be read again.
    assert solve(problem, 3).k == 3


class Slow(ArrayStream):
    """Takes its time over a pass, and says how far it is."""

    wait = 0.0
    interrupt_in = 10**9

    def reduce(self, fold: Any, on_rows: Any = None) -> Any:
        if on_rows is not None and self.wait:
            for done in range(50):
                time.sleep(self.wait)
                on_rows(done, 50)
        if self.passes + 1 == self.interrupt_in:
            raise KeyboardInterrupt
        return super().reduce(fold, on_rows)


@pytest.mark.parametrize("name", ["rfs", "crfs", "dlsr"])
def test_a_time_limit_ends_a_pass_and_keeps_the_last_step(name: str) -> None:
    stream = Slow(*TABLES["classes"])
    problem = Problem.from_stream(stream)
    # A pass would take half a second; the first is always made.
    stream.passes, stream.wait = 0, 0.01
    found = solve(problem, 3, name, time_limit=0.6)
    assert found.status == Status.TIME_LIMIT
    assert (found.n_iter, stream.passes) == (1, 1)
    assert found.k == 3


@pytest.mark.parametrize("name", ["rfs", "crfs", "dlsr"])
def test_an_interrupt_in_a_pass_keeps_the_last_step(name: str) -> None:
    stream = Slow(*TABLES["classes"])
    problem = Problem.from_stream(stream)
    stream.passes, stream.interrupt_in = 0, 3
    found = solve(problem, 3, name)
    assert found.status == Status.INTERRUPTED
    assert found.n_iter == 2
    # Before there is any step nothing could be kept.
    stream.passes, stream.interrupt_in = 0, 1
    with pytest.raises(KeyboardInterrupt):
        solve(problem, 3, name)


SMALL = columns(60, 8, 7)
SMALL_Y = {"classes": np.arange(60) % 3, "numbers": SMALL[:, 0] + np.sin(np.arange(60.0))}


@pytest.mark.parametrize("target", list(SMALL_Y))
@pytest.mark.parametrize("name", over(registry.names()))
def test_every_method_runs_on_a_stream_or_says_why_not(name: str, target: str) -> None:
    y = SMALL_Y[target]
    held, stream = Problem.from_arrays(SMALL, y), ArrayStream(SMALL, y)
    made, tight = Problem.from_stream(stream), Problem.from_stream(stream, memory_limit=8 * 60 * 7)
    method = registry.method_class(name)
    if method.needs_classes and held.classes is None:
        with says(f"'{name}' needs classes", "'exchange'"):
            solve(made, 3, name)
        return
    try:
        registry.create(name).check_problem(held)
    except InputError:
        with pytest.raises(InputError):
            solve(made, 3, name)
        return
    found, wanted = solve(made, 3, name), solve(held, 3, name)
    assert found.support.tolist() == wanted.support.tolist()
    assert found.objective == pytest.approx(wanted.objective, rel=1e-9)
    if method.needs_rows and not method.reads_streams:
        with says(f"'{name}' needs all rows in memory", "memory_limit (3,360)", "exchange"):
            solve(tight, 3, name)
    else:
        assert solve(tight, 3, name).support.tolist() == wanted.support.tolist()


@pytest.mark.parametrize("name", registry.names())
def test_the_help_says_what_streams_can_do(name: str) -> None:
    method = registry.method_class(name)
    words = " ".join(method.needs())
    assert ("reads the rows" in words) == method.needs_rows
    assert ("in memory" in words) == (method.needs_rows and not method.reads_streams)
    assert ("a pass an iteration" in words) == method.reads_streams
    assert method.needs_rows or not method.reads_streams
