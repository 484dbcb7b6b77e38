"""Spark tables: a real session on this machine, with tasks that may fail and be tried again."""

from __future__ import annotations

import os
import pickle
import signal
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from exactk import Problem, solve
from exactk.data.moments import Moments
from exactk.data.targets import encode_target
from exactk.errors import InputError
from exactk.streaming import spark as spark_module
from exactk.streaming.base import Block, Reducer
from exactk.streaming.moments import MomentsReducer, stream_moments
from exactk.streaming.spark import FETCHES, _fetched, open_spark
from exactk.streaming.target_encoding import TargetEncoding

Array = np.ndarray[Any, Any]

pytestmark = [
    pytest.mark.spark,
    # pyspark itself says so when it is imported beside a pandas that is newer than it.
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
    # Older versions leave it to Python to close the sockets that results came through.
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]
FEATURES = [f"x{j}" for j in range(6)]


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    from pyspark import cloudpickle
    from pyspark.sql import SparkSession

    # Workers cannot import this file, whose folds they are to run.
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        builder = SparkSession.builder.master("local[2,4]").appName("exactk")
        for name, value in {
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            # A minute of small jobs is over before optimised code would pay.
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
            "spark.driver.memory": "512m",
            "spark.log.level": "OFF",
            "spark.sql.codegen.wholeStage": "false",
            "spark.sql.shuffle.partitions": "2",
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
        }.items():
            builder = builder.config(name, value)
        # Spark leaves its handler of Ctrl-C, which fails once the session has ended.
        handler = signal.getsignal(signal.SIGINT)
        session = builder.getOrCreate()
        yield session
        session.stop()
        signal.signal(signal.SIGINT, handler)


@pytest.fixture
def settings(spark: Any) -> Iterator[Any]:
    """Settings of the session, put back after the test."""
    held: dict[str, str | None] = {}

    def change(name: str, value: str) -> None:
        held.setdefault(name, spark.conf.get(name, None))
        spark.conf.set(name, value)

    yield change
    for name, value in held.items():
        if value is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, value)


@pytest.fixture
def table(spark: Any, settings: Any) -> Any:
    """Makes a data frame of columns; part i of them begins at row i·n // parts."""
    import pyarrow as pa

    def make(columns: dict[str, Any], parts: int = 3) -> Any:
        settings("spark.sql.leafNodeDefaultParallelism", str(parts))
        return spark.createDataFrame(pa.table(columns))

    return make


@pytest.fixture
def frame(table: Any) -> Any:
    """Makes a data frame of X, y and weights."""

    def make(X: Any, y: Any, parts: int = 3, w: Any = None) -> Any:
        columns = {**dict(zip(FEATURES, X.T.tolist(), strict=True)), "y": np.asarray(y).tolist()}
        return table(columns if w is None else {**columns, "w": w}, parts)

    return make


def rows(n: int = 400, offset: float = 0.0) -> tuple[Array, Array]:
    rng = np.random.default_rng(n)
    y = rng.choice(["ash", "oak", "yew"], n, p=[0.6, 0.3, 0.1])
    X = rng.normal(size=(n, 6)) + (y == "oak")[:, None] * np.linspace(0, 2, 6) + offset
    return X, y


def held_moments(X: Array, y: Array, w: Array | None = None) -> Moments:
    """The moments by their definition, in extended precision."""
    weight = (np.ones(len(X)) if w is None else w).astype(np.longdouble)
    Y = encode_target(y).block(0, len(y))
    X, Y = X.astype(np.longdouble), Y.astype(np.longdouble)
    x_mean, y_mean = weight @ X / weight.sum(), weight @ Y / weight.sum()
    Z, U = X - x_mean, Y - y_mean
    heavy = weight[:, None] * Z
    return Moments(len(X), float(weight.sum()), x_mean, y_mean, heavy.T @ Z, heavy.T @ U, U.T @ U)


def close(found: Moments, wanted: Moments, rtol: float = 1e-10) -> None:
    assert found.n_rows == wanted.n_rows
    assert found.weight == pytest.approx(wanted.weight, rel=1e-14)
    for name in ("x_mean", "y_mean", "xx", "xy"):
        exact = getattr(wanted, name)
        error = np.abs(getattr(found, name) - exact).max() / np.abs(exact).max()
        assert error < rtol, (name, error)


class Census(Reducer[dict[int, int], dict[int, int]]):
    """Rows of each partition."""

    def begin(self) -> dict[int, int]:
        return {}

    def add(self, state: dict[int, int], block: Block) -> None:
        part = block.location.part
        assert block.location.first_row == state.get(part, 0)
        state[part] = state.get(part, 0) + len(block.X)

    def close(self, state: dict[int, int]) -> dict[int, int] | None:
        return state or None

    def merge(self, one: dict[int, int], other: dict[int, int]) -> dict[int, int]:
        assert not one.keys() & other.keys()
        return one | other


class FailsOnce(MomentsReducer):
    """Fails once in a worker, at a place of choice, after rows have been counted there."""

    def __init__(self, where: str, how: str, marker: Path) -> None:
        super().__init__(tuple(FEATURES), TargetEncoding(labels=True), "y")
        self.where, self.how, self.marker = where, how, marker

    def _fail(self) -> None:
        try:
            os.close(os.open(self.marker, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return
        if self.how == "dies":
            os._exit(1)
        raise OSError("the disk of this worker is gone")

    def close(self, state: Any) -> Moments | None:
        if self.where == "fold":
            self._fail()
        return super().close(state)

    def merge(self, one: Moments, other: Moments) -> Moments:
        if self.where == "merge":
            self._fail()
        return super().merge(one, other)


@pytest.mark.parametrize("parts", [1, 2, 7])
def test_partitions_do_not_matter(frame: Any, parts: int) -> None:
    X, y = rows()
    problem = Problem.from_spark(frame(X, y, parts), "y")
    assert problem.classes is not None
    assert problem.classes.tolist() == ["ash", "oak", "yew"]
    assert problem.feature_names == tuple(FEATURES)
    held = Problem.from_arrays(X, y)
    for k in range(1, 6):
        assert solve(problem, k).support.tolist() == solve(held, k).support.tolist()


@pytest.mark.parametrize(
    ("offset", "rtol"), [(0.0, 1e-10), (1e6, 1e-8)], ids=["plain", "far-from-zero"]
)
def test_moments_in_any_order_of_the_rows(frame: Any, offset: float, rtol: float) -> None:
    X, y = rows(offset=offset)
    mixed = np.random.default_rng(1).permutation(len(X))
    wanted = held_moments(X, y)
    for order, parts in ((np.arange(len(X)), 3), (mixed, 5)):
        found = stream_moments(open_spark(frame(X[order], y[order], parts), "y"))
        close(found, wanted, rtol)


def test_partitions_that_are_empty_or_know_some_classes(frame: Any) -> None:
    X, y = rows()
    df = frame(X, y).repartition(7, "y")
    census = open_spark(df, "y").reduce(Census())
    assert sum(census.values()) == len(X)
    # Three classes, so at most three partitions have rows, and no row of another class.
    assert 1 < len(census) <= 3
    close(stream_moments(open_spark(df, "y")), held_moments(X, y))


def test_all_partitions_are_folded_and_one_part_is_collected(
    frame: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = rows()
    df = frame(X, y, parts=9)
    collected: list[list[Any]] = []
    iterate = type(df).toLocalIterator

    def spy(self: Any) -> Iterator[Any]:
        collected.append(list(iterate(self)))
        return iter(collected[-1])

    monkeypatch.setattr(type(df), "toLocalIterator", spy)
    for name in ("collect", "first", "take", "toArrow", "toPandas"):
        monkeypatch.delattr(type(df), name)
    census = open_spark(df, "y").reduce(Census())
    bounds = [part * len(X) // 9 for part in range(10)]
    assert [census[part] for part in range(9)] == np.diff(bounds).tolist()
    found = stream_moments(open_spark(df, "y"))
    assert len(collected) == 2
    for received, whole in zip(collected, (census, found), strict=True):
        assert {row.sender for row in received} == {0}
        assert sum(len(row.body) for row in received) == received[0].size
        assert received[0].size == len(pickle.dumps(whole, pickle.HIGHEST_PROTOCOL))


@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_three_levels_of_merging_and_parts_in_pieces(
    table: Any, settings: Any, adaptive: str
) -> None:
    settings("spark.sql.adaptive.enabled", adaptive)
    settings("spark.sql.shuffle.partitions", "17")
    settings("spark.sql.execution.arrow.maxRecordsPerBatch", "20000")
    X = np.random.default_rng(3).normal(size=(60, 120))
    y = X[:, 7] + np.random.default_rng(4).normal(size=60)
    found = stream_moments(open_spark(table({"v": X.tolist(), "y": y}, parts=6), "y"))
    assert found.xx.nbytes > 20 * spark_module.SMALLEST_PIECE
    close(found, held_moments(X, y))


def test_weights_are_repetitions_and_zero_is_no_row(frame: Any) -> None:
    X, y = rows()
    w = np.random.default_rng(2).integers(0, 4, len(X)).astype(float)
    w[y == "yew"] = 0.0
    found = stream_moments(open_spark(frame(X, y, w=w), "y", weights="w"))
    again = np.repeat(np.arange(len(X)), w.astype(int))
    assert found.classes is not None
    assert found.classes.tolist() == ["ash", "oak"]
    assert found.n_rows == np.count_nonzero(w)
    close(replace(found, n_rows=len(again)), held_moments(X[again], y[again]))


@pytest.mark.parametrize(
    "y",
    [
        np.arange(400) % 3,
        np.arange(400) % 2 == 0,
        (np.arange(400) % 3).astype(float),
        np.random.default_rng(0).normal(size=400),
    ],
    ids=["int", "bool", "whole", "float"],
)
def test_targets_are_what_they_are_for_arrays(frame: Any, y: Array) -> None:
    X, _ = rows()
    held, found = Problem.from_arrays(X, y), Problem.from_spark(frame(X, y), "y")
    assert found.task == held.task
    if held.classes is None:
        assert found.classes is None
    else:
        assert found.classes is not None
        assert found.classes.tolist() == held.classes.tolist()
    np.testing.assert_allclose(found.cross, held.cross, rtol=1e-9, atol=1e-9)


def test_several_targets_and_named_columns(frame: Any) -> None:
    X, y = rows()
    df = frame(X, y)
    found = Problem.from_spark(df, ["x1", "x4"], columns=["x5", "x0", "x2"])
    held = Problem.from_arrays(X[:, [5, 0, 2]], X[:, [1, 4]])
    assert (found.task, found.feature_names) == ("regression", ("x5", "x0", "x2"))
    np.testing.assert_allclose(found.cross, held.cross, rtol=1e-9, atol=1e-9)
    dropped = open_spark(df, "y", drop=["x3"])
    assert dropped.feature_names == ("x0", "x1", "x2", "x4", "x5")


def test_every_type_of_number(table: Any) -> None:
    kinds = ["boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal(12,3)"]
    rng = np.random.default_rng(5)
    X = rng.integers(-50, 50, size=(60, 8)) / np.array([1, 1, 1, 1, 1, 4, 8, 8])
    X[:, 0] = X[:, 0] > 0
    y = np.arange(60) % 2
    df = table({**dict(zip(kinds, X.T, strict=True)), "y": y}, 2)
    typed = df.selectExpr(*[f"cast(`{kind}` AS {kind}) AS `{kind}`" for kind in kinds], "y")
    assert [kind for _, kind in typed.dtypes[:-1]] == kinds
    found = stream_moments(open_spark(typed, "y"))
    assert found.feature_names == tuple(kinds)
    close(found, held_moments(X, y))


def test_vectors_from_an_assembler_keep_their_names(frame: Any) -> None:
    from pyspark.ml.feature import VectorAssembler

    X, y = rows()
    df = VectorAssembler(inputCols=FEATURES, outputCol="v").transform(frame(X, y))
    stream = open_spark(df, "y", columns="v")
    assert stream.feature_names == tuple(FEATURES)
    close(stream_moments(stream), held_moments(X, y))


@pytest.mark.parametrize("kind", ["array<float>", "array<int>", "vectors"])
def test_a_column_of_vectors_or_arrays(spark: Any, table: Any, kind: str) -> None:
    X = np.random.default_rng(6).integers(-2, 3, size=(90, 5)).astype(float)
    y = np.where(X[:, 2] + X[:, 3] > 0, "high", "low")
    if kind == "vectors":
        lines = [(vector(X[i], sparse=i % 2 == 0), str(y[i])) for i in range(len(X))]
        df = spark.createDataFrame(lines, ["v", "y"])
    else:
        df = table({"v": X.tolist(), "y": y.tolist()}).selectExpr(f"cast(v AS {kind}) AS v", "y")
    stream = open_spark(df, "y")
    assert stream.feature_names == ("v[0]", "v[1]", "v[2]", "v[3]", "v[4]")
    close(stream_moments(stream), held_moments(X, y))


def vector(values: Array, *, sparse: bool) -> Any:
    from pyspark.ml.linalg import Vectors

    filled = np.flatnonzero(values)
    if sparse:
        return Vectors.sparse(len(values), filled, values[filled])
    return Vectors.dense(values)


@pytest.mark.parametrize(
    ("where", "how"), [("fold", "raises"), ("fold", "dies"), ("merge", "dies")]
)
def test_a_task_that_fails_once_is_tried_again_and_counts_once(
    frame: Any, tmp_path: Path, where: str, how: str
) -> None:
    X, y = rows()
    marker = tmp_path / "failed"
    found = open_spark(frame(X, y, parts=4), "y").reduce(FailsOnce(where, how, marker))
    assert marker.exists()
    close(found, held_moments(X, y))


@pytest.mark.parametrize("value", [None, float("nan"), float("inf")], ids=["null", "nan", "inf"])
def test_a_value_that_is_none_is_named_with_its_place(frame: Any, value: float | None) -> None:
    X, y = rows(100)
    held = X.astype(object)
    held[61, 3] = held[90, 1] = value
    # 100 rows in 4 partitions: row 11 of partition 2.
    with pytest.raises(InputError, match=r"column 'x3' .*partition 2, .*\brow 11\b"):
        Problem.from_spark(frame(held, y, parts=4), "y")


def test_labels_and_weights_that_are_none(frame: Any) -> None:
    X, y = rows(60)
    labels = y.astype(object)
    labels[45] = None
    with pytest.raises(InputError, match=r"column 'y' is missing in partition 1, row 15 "):
        Problem.from_spark(frame(X, labels, parts=2), "y")
    w = np.ones(60)
    w[45] = -1.0
    with pytest.raises(InputError, match=r"the weight in partition 1, row 15 .*is -1"):
        Problem.from_spark(frame(X, y, parts=2, w=w), "y", weights="w")
    with pytest.raises(InputError, match=r"label 'yew' \(partition \d, row .* classes given"):
        Problem.from_spark(frame(X, y), "y", classes=["ash", "oak"])


@pytest.mark.parametrize(
    ("row", "value", "message"),
    [
        (13, [1.0], r"'v' has 1 entries in partition 1, row 3 \(from 0\), and 3 elsewhere"),
        (13, None, r"'v' is missing in partition 1, row 3 "),
        (13, [1.0, None, 2.0], r"'v\[1\]' is missing or infinite in 1 .*partition 1,.* row 3;"),
        (0, [], r"'v' has no entries in the first row"),
        (0, None, r"'v' is missing in the first row"),
    ],
    ids=["short", "missing", "gap", "empty-first", "missing-first"],
)
def test_vectors_of_other_lengths_or_with_gaps(
    table: Any, row: int, value: Any, message: str
) -> None:
    vectors: list[Any] = [[float(i), 1.0, 2.0] for i in range(20)]
    vectors[row] = value
    with pytest.raises(InputError, match=f"^column {message}"):
        Problem.from_spark(table({"v": vectors, "y": np.arange(20) % 2}, parts=2), "y")


def test_names_that_spark_would_take_apart(frame: Any) -> None:
    X, y = rows(80)
    odd = ["a.b", "A", "a", "with `ticks`", "c[0]", "two words"]
    df = frame(X, y).toDF(*odd, "the label")
    found = stream_moments(open_spark(df, "the label"))
    assert (found.feature_names, found.target) == (tuple(odd), "the label")
    close(found, held_moments(X, y))


def test_columns_are_checked_before_any_job(spark: Any) -> None:
    # A job would raise Spark's own error.
    df = spark.range(5).selectExpr(
        "cast(raise_error('a job ran') AS double) AS height",
        "'x' AS name",
        "array('x') AS words",
        "array(1.0D) AS numbers",
        "current_timestamp() AS time",
        "1 AS label",
    )

    def refusal(*arguments: Any, **options: Any) -> str:
        with pytest.raises(InputError) as caught:
            open_spark(*arguments, **options)
        return str(caught.value)

    some = {"columns": ["height"]}
    assert "target column 'lable' is not in the table; did you mean 'label'?" in refusal(
        df, "lable", **some
    )
    assert "'heigth' is not in the table; did you mean 'height'?" in refusal(
        df, "label", columns=["heigth"]
    )
    assert "1 feature column is not numeric (string): 'name'" in refusal(
        df, "label", drop=["numbers", "words", "time"]
    )
    assert "not numeric" in refusal(df, "label", columns=["height", "words", "time"])
    assert "'numbers' holds vectors, and stands beside 1 other" in refusal(
        df, "label", columns=["height", "numbers"]
    )
    assert "weights column 'name' is string" in refusal(df, "label", weights="name", **some)
    assert "target column 'time' is timestamp" in refusal(df, "time", **some)
    assert "more than one column named 'name'" in refusal(
        df.select("height", "name", "name", "label"), "label"
    )
    streaming = spark.readStream.format("rate").load()
    assert "streaming" in refusal(streaming, "value")
    assert "not list" in refusal([1, 2], "label")


def test_a_table_without_rows(spark: Any, frame: Any) -> None:
    X, y = rows(20)
    with pytest.raises(InputError, match="no rows"):
        Problem.from_spark(frame(X, y).where("x0 > 1e9"), "y")
    with pytest.raises(InputError, match="no rows"):
        Problem.from_spark(spark.createDataFrame([], "v array<double>, y int"), "y")


def test_parts_are_put_together_from_pieces_in_any_order(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = [np.arange(5_000.0), np.arange(700.0)]
    pieces: list[Any] = []
    monkeypatch.setattr(spark_module, "BATCH_BYTES", 3 * spark_module.SMALLEST_PIECE)
    for sender, part in enumerate(parts):
        monkeypatch.setattr(spark_module, "_partition", lambda sender=sender: sender)
        batches = list(spark_module.Sender(4, spark_module.SMALLEST_PIECE).send(part))
        # 40,000 and 5,600 bytes in pieces of 4,096, three to a batch.
        assert len(batches) == (4, 1)[sender]
        for batch in batches:
            assert batch.num_rows <= 3
            pieces += [tuple(row.values())[1:] for row in batch.to_pylist()]
    np.random.default_rng(0).shuffle(pieces)
    found = sorted(spark_module.unpacked(iter(pieces)), key=len)
    np.testing.assert_array_equal(found[0], parts[1])
    np.testing.assert_array_equal(found[1], parts[0])
    with pytest.raises(RuntimeError, match="1 partitions incompletely"):
        list(spark_module.unpacked(iter(pieces[1:])))


def test_a_result_that_two_attempts_had_a_share_in_is_fetched_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(spark_module, "_partition", lambda: 0)

    def pieces(part: Array) -> list[Any]:
        batches = spark_module.Sender(None, spark_module.SMALLEST_PIECE).send(part)
        return [tuple(row.values()) for batch in batches for row in batch.to_pylist()]

    class Shares:
        """Gives what a task had sent at each fetch."""

        def __init__(self, *sent: list[Any]) -> None:
            self.sent = list(sent)

        def toLocalIterator(self) -> Iterator[Any]:
            return iter(self.sent.pop(0))

    one, other = pieces(np.arange(2_000.0)), pieces(np.arange(2_000.0)[::-1].copy())
    assert len(one) == len(other) > 2
    mixed = [*one[:2], *other[2:]]
    again = Shares(mixed, other)
    (found,) = _fetched(again)  # type: ignore[arg-type]
    np.testing.assert_array_equal(found, np.arange(2_000.0)[::-1])
    (found,) = _fetched(Shares([*one[:2], *pieces(np.arange(2_000.0))[2:]]))  # type: ignore[arg-type]
    np.testing.assert_array_equal(found, np.arange(2_000.0))
    with pytest.raises(RuntimeError, match="partition 0 again while its result was fetched"):
        _fetched(Shares(*[mixed] * FETCHES))  # type: ignore[arg-type]


def test_parts_are_merged_in_the_order_of_the_partitions(frame: Any, settings: Any) -> None:
    settings("spark.sql.shuffle.partitions", "1")
    X, y = rows()
    census = open_spark(frame(X, y, parts=9), "y").reduce(Census())
    assert list(census) == list(range(9))
