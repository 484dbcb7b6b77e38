"""Rows of a stream in memory: the same, in the same order, or refused before they are read."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from exactk import InputError, Moments, Problem, TopKSelector, solve
from exactk.errors import Setting
from exactk.methods import registry
from exactk.model_selection.ridge import cv_ridge
from exactk.streaming.target_encoding import TargetEncoding
from exactk.streaming.to_memory import TooLargeError, read_into_memory
from tests.arrays import ArrayStream
from tests.support import over, says

Array = np.ndarray[Any, Any]
ROOM = 2**20


def table(n: int = 90, d: int = 5) -> tuple[Array, Array]:
    rng = np.random.default_rng(n)
    y = rng.choice(["ash", "oak", "yew"], n)
    return rng.normal(size=(n, d)) + (y == "oak")[:, None] * np.linspace(0, 2, d), y


class Backwards(ArrayStream):
    """Parts come home in the wrong order, and how many rows there are is not known."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self.n_rows = None

    def reduce(self, fold: Any, on_rows: Any = None) -> Any:
        class Turned:
            def __getattr__(self, name: str) -> Any:
                return getattr(fold, name)

            def merge(self, one: Any, other: Any) -> Any:
                return fold.merge(other, one)

            def __reduce__(self) -> Any:
                return pickle.loads, (pickle.dumps(fold),)

        return super().reduce(Turned(), on_rows)  # type: ignore[arg-type]


CLASSES = TargetEncoding(labels=True, classes=np.array(["ash", "oak", "yew"]))


@pytest.mark.parametrize("kind", [ArrayStream, Backwards])
def test_rows_come_in_the_order_of_the_table(kind: Any) -> None:
    X, y = table()
    found = read_into_memory(kind(X, y, n_parts=4, n_blocks=3), CLASSES, limit=ROOM)
    np.testing.assert_array_equal(found.X, X)
    assert found.codes is not None
    assert np.array(["ash", "oak", "yew"])[found.codes].tolist() == y.tolist()
    assert found.values is None
    assert found.weights is None


def test_rows_that_count() -> None:
    X, _ = table()
    w = np.random.default_rng(0).integers(0, 3, len(X)).astype(float)
    w[30:50] = 0.0
    numbers = np.random.default_rng(1).normal(size=(len(X), 2))
    stream = ArrayStream(X, numbers, w, n_parts=7)
    coding = TargetEncoding(labels=False, n_outputs=2)
    found = read_into_memory(stream, coding, limit=ROOM)
    np.testing.assert_array_equal(found.X, X[w > 0])
    np.testing.assert_array_equal(found.values, numbers[w > 0])
    np.testing.assert_array_equal(found.weights, w[w > 0])


def test_too_many_rows_are_refused_before_any_is_read() -> None:
    X, y = table()
    stream = ArrayStream(X, y)
    needed = 90 * 5 * 8
    assert len(read_into_memory(stream, CLASSES, limit=needed).X) == 90
    stream.passes = 0
    with says("90 rows of 5 columns", "3,600 bytes", "memory_limit (3,599)", "fewer columns"):
        read_into_memory(stream, CLASSES, limit=needed - 1)
    assert stream.passes == 0


def test_where_the_number_of_rows_is_unknown_reading_stops_when_it_shows() -> None:
    X, y = table()

    class Counting(Backwards):
        blocks_read = 0

        def blocks(self, part: int, rows: Any) -> Any:
            for block in super().blocks(part, rows):
                Counting.blocks_read += 1
                yield block

    # One part of nine blocks of ten rows: 25 rows fit, so that the third block is too much.
    with pytest.raises(TooLargeError, match="30 rows so far of 5 columns take 1,200 bytes"):
        read_into_memory(Counting(X, y, n_parts=1, n_blocks=9), CLASSES, limit=8 * 25 * 5)
    assert Counting.blocks_read == 3
    # Parts that fit singly but not together.
    with pytest.raises(TooLargeError, match="and more of 5 columns"):
        read_into_memory(Backwards(X, y, n_parts=9), CLASSES, limit=8 * 25 * 5)


def test_a_value_that_is_none_is_named() -> None:
    X, y = table()
    X[50, 2] = np.nan
    with pytest.raises(InputError, match=r"'x2' .* part 1, rows 15 to 29 .* first in row 20"):
        read_into_memory(ArrayStream(X, y, n_parts=3), CLASSES, limit=ROOM)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["text", "int", "bool", "float", "two"])
def test_a_problem_in_memory_is_that_of_the_arrays(kind: str, weighted: bool) -> None:
    X, labels = table()
    rng = np.random.default_rng(3)
    y: Array = {
        "text": labels,
        "int": np.unique(labels, return_inverse=True)[1],
        "bool": labels == "oak",
        "float": X[:, 1] + rng.normal(size=90),
        "two": X[:, :2] + rng.normal(size=(90, 2)),
    }[kind]
    w = rng.integers(0, 3, 90).astype(float) if weighted else None
    held = Problem.from_arrays(X, y, sample_weight=w, ridge=0.2, feature_names=list("vwxyz"))
    stream = ArrayStream(X, y, w)
    stream.feature_names = tuple("vwxyz")
    made = Problem.from_stream(stream, ridge=0.2)
    found = made.in_memory()
    assert found.in_memory() is found
    assert held.in_memory() is held
    assert found.feature_names == held.feature_names
    assert found.ridge == 0.2
    assert found.task == held.task
    assert found.rows is not None
    assert found.target is not None
    alive = slice(None) if w is None else w > 0
    np.testing.assert_array_equal(found.rows.columns(np.arange(5)), X[alive])
    if held.classes is None:
        np.testing.assert_array_equal(found.target.values, np.asarray(y)[alive].reshape(-1, 2 if kind == "two" else 1))  # fmt: skip # noqa: E501
    else:
        assert held.target is not None
        np.testing.assert_array_equal(found.target.classes, held.classes)
        assert held.target.codes is not None
        np.testing.assert_array_equal(found.target.codes, held.target.codes[alive])
    for S in ([0], [3, 1], [0, 1, 2, 3, 4]):
        assert found.objective(S) == pytest.approx(held.objective(S), rel=1e-10)


def test_moments_alone_have_no_rows() -> None:
    X, _ = table()
    problem = Problem.from_moments(Moments.from_arrays(X, X[:, 0]))
    with says("made of moments", "no rows to read", "from_arrays", "from_files"):
        problem.in_memory()


def test_a_table_that_has_changed_is_refused() -> None:
    X, y = table()
    stream = ArrayStream(X, y)
    problem = Problem.from_stream(stream)
    stream.X, stream.y = X[:60], y[:60]
    for read in (problem.in_memory, lambda: solve(problem, 2, "rfs")):
        with says("has 60 rows", "had 90", "make the problem anew"):
            read()


def test_a_method_that_compares_rows_reads_them_by_itself() -> None:
    X, y = table()
    stream = ArrayStream(X, y)
    problem = Problem.from_stream(stream)
    stream.passes = 0
    found = solve(problem, 2, "relieff")
    assert stream.passes == 1
    assert found.support.tolist() == solve(Problem.from_arrays(X, y), 2, "relieff").support.tolist()


def test_what_does_not_fit_is_refused_with_the_ways_out() -> None:
    X, y = table()
    problem = Problem.from_stream(ArrayStream(X, y), memory_limit=3000)
    with says("'relieff' needs all rows in memory", "3,600 bytes", "memory_limit (3,000)",
              "raise memory_limit", "fewer columns", "exchange", "fisher") as error:  # fmt: skip
        solve(problem, 2, "relieff")
    # The command line has an option in place of it.
    assert Setting("memory_limit") in error.value.message
    assert Setting("memory_limit") in error.value.hint
    assert "mrmr" not in str(error.value)
    assert "rfs" not in str(error.value)
    # This needs passes alone.
    assert solve(problem, 2).k == 2


def test_bad_options_come_before_any_reading() -> None:
    X, y = table()
    stream = ArrayStream(X, y)
    problem = Problem.from_stream(stream)
    stream.passes = 0
    with says("n_neighbors"):
        solve(problem, 2, "relieff", n_neighbors=0)
    numbers = Problem.from_stream(ArrayStream(X, X[:, 0] * 1.5))
    with says("'relieff' needs classes"):
        solve(numbers, 2, "relieff")
    assert stream.passes == 0
    assert TopKSelector(2, method="rfs").fit(X, y).support_.sum() == 2


NUMBERS = table(60, 8)[0]
TARGETS = {"classes": np.arange(60) % 3, "numbers": NUMBERS[:, 0] + np.sin(np.arange(60.0))}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("target", list(TARGETS))
@pytest.mark.parametrize("name", over(registry.names()))
def test_every_method_runs_on_a_stream_or_says_why_not(name: str, target: str) -> None:
    X, y = NUMBERS, TARGETS[target]
    held, stream = Problem.from_arrays(X, y), ArrayStream(X, y)
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
    if method.needs_rows:
        with says(f"'{name}' needs all rows in memory", "memory_limit (3,360)", "exchange"):
            solve(tight, 3, name)
    else:
        assert solve(tight, 3, name).support.tolist() == wanted.support.tolist()


@pytest.mark.parametrize("source", ["parquet", "dask"])
@pytest.mark.parametrize("name", ["rfs", "crfs", "dlsr", "relieff"])
def test_methods_that_need_rows_load_those_of_files_and_dask(
    name: str, source: str, tmp_path: Path
) -> None:
    X, y = table(300, 6)
    wanted = solve(Problem.from_arrays(X, y), 3, name)
    if source == "parquet":
        made = parquet(tmp_path, X, y)
        assert solve(made, 3, name).support.tolist() == wanted.support.tolist()
        return
    with pytest.importorskip("dask").config.set(scheduler="synchronous"):
        assert solve(in_dask(X, y), 3, name).support.tolist() == wanted.support.tolist()


def parquet(folder: Path, X: Array, y: Array) -> Problem:
    """Three files of several row groups each."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    for number, rows in enumerate(np.array_split(np.arange(len(X)), 3)):
        held = {f"x{j}": X[rows, j] for j in range(X.shape[1])} | {"y": y[rows]}
        pq.write_table(pa.table(held), folder / f"{number}.parquet", row_group_size=40)
    return Problem.from_files(folder, "y")


def in_dask(X: Array, y: Array) -> Problem:
    da = pytest.importorskip("dask.array")
    return Problem.from_dask(da.from_array(X, chunks=(80, -1)), y)


def test_the_ridge_is_the_same_from_files_and_dask(tmp_path: Path) -> None:
    X, y = table(300, 6)
    with pytest.importorskip("dask").config.set(scheduler="synchronous"):
        made = Problem.from_stream(ArrayStream(X, y)), parquet(tmp_path, X, y), in_dask(X, y)
        assert len({cv_ridge(problem, 3) for problem in made}) == 1


@pytest.mark.parametrize("name", registry.names())
def test_the_help_says_what_methods_read(name: str) -> None:
    method = registry.method_class(name)
    assert ("in memory" in " ".join(method.needs())) == method.needs_rows
