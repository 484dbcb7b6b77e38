"""Dask collections: the answer of the same rows in memory, on every scheduler, whatever happens."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from exactk import Problem, TopKSelector, solve
from exactk.data.moments import Moments
from exactk.errors import InputError
from exactk.streaming.dask import DaskStream, merge_group, open_dask
from exactk.streaming.moments import MomentsReducer, stream_moments
from exactk.streaming.target_encoding import choose_encoding
from tests.unit.streaming import reducers as folds
from tests.unit.streaming.test_moments import close

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")

pytestmark = pytest.mark.dask

Array = np.ndarray[Any, Any]
NAMES = [f"gene {j}" for j in range(7)]
N_ROWS = 600


def rows(offset: float = 0.0) -> tuple[Array, Array]:
    rng = np.random.default_rng(3)
    y = rng.choice(["ash", "oak", "yew"], N_ROWS, p=[0.5, 0.3, 0.2])
    shift = (y == "oak")[:, None] * np.linspace(0, 2, 7) + (y == "yew")[:, None] * np.eye(7)[2]
    return rng.normal(size=(N_ROWS, 7)) + shift + offset, y


def frame() -> pd.DataFrame:
    X, y = rows()
    return pd.DataFrame(X, columns=NAMES).assign(tree=y)


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    # A busy machine may take longer than the usual 15 seconds to restart a worker that was killed,
    # and a cluster would then do without it for good; or longer than 30 to answer at all.
    patience = {
        "distributed.deploy.lost-worker-timeout": "300s",
        "distributed.comm.timeouts.connect": "300s",
        "distributed.comm.timeouts.tcp": "300s",
    }
    with (
        dask.config.set(patience),
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            # Any free port: tests that run side by side have a cluster each.
            dashboard_address="127.0.0.1:0",
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture(params=["synchronous", "threads", "cluster"])
def scheduler(request: pytest.FixtureRequest) -> Iterator[str]:
    # A client in Dask's configuration would be pickled, in vain, when a worker is restarted.
    cluster = request.param == "cluster"
    with (
        request.getfixturevalue("client").as_current()
        if cluster
        else dask.config.set(scheduler=request.param, num_workers=4)
    ):
        yield request.param


@pytest.fixture
def on_cluster(client: Any) -> Iterator[Any]:
    with client.as_current():
        yield client


def same_supports(found: Problem, held: Problem) -> None:
    for k in range(1, 6):
        one, other = solve(found, k), solve(held, k)
        assert one.support.tolist() == other.support.tolist()
        assert one.objective == pytest.approx(other.objective, rel=1e-10)


@pytest.mark.usefixtures("scheduler")
class TestSameAnswer:
    def test_an_array(self) -> None:
        X, y = rows()
        found = stream_moments(open_dask(da.from_array(X, chunks=(70, 3)), da.from_array(y)))
        assert found.classes is not None
        assert found.classes.tolist() == ["ash", "oak", "yew"]
        assert (found.n_rows, found.feature_names) == (N_ROWS, tuple(f"x{j}" for j in range(7)))
        close(found, X, y)

    def test_a_dataframe(self) -> None:
        X, y = rows()
        problem = Problem.from_dask(dd.from_pandas(frame(), npartitions=11), target="tree")
        assert problem.feature_names == tuple(NAMES)
        assert problem.classes is not None
        assert problem.classes.tolist() == ["ash", "oak", "yew"]
        same_supports(problem, Problem.from_arrays(X, y))

    def test_rows_in_another_order_and_other_partitions(self) -> None:
        X, y = rows()
        mixed = np.random.default_rng(1).permutation(N_ROWS)
        problem = Problem.from_dask(
            da.from_array(X[mixed], chunks=(17, 7)), da.from_array(y[mixed], chunks=90)
        )
        same_supports(problem, Problem.from_arrays(X, y))

    def test_means_a_million_times_the_spread(self) -> None:
        X, y = rows(offset=1e6)
        found = stream_moments(open_dask(da.from_array(X, chunks=(50, 7)), da.from_array(y)))
        close(found, X, y, rtol=1e-8)

    def test_partitions_without_rows_and_with_one_class_each(self) -> None:
        table = frame().sort_values("tree")
        cuts = [(0, 0), (0, 100), (100, 100), (100, 430), (430, N_ROWS)]
        collection = dd.from_map(lambda cut: table.iloc[slice(*cut)], cuts, meta=table.iloc[:0])
        close(
            stream_moments(open_dask(collection, target="tree")),
            table[NAMES].to_numpy(),
            table["tree"].to_numpy(),
        )

    def test_weights_are_repetitions(self) -> None:
        X, y = rows()
        w = np.random.default_rng(2).integers(0, 3, N_ROWS)
        table = dd.from_pandas(frame().assign(w=w), npartitions=4)
        again = np.repeat(np.arange(N_ROWS), w)
        array = da.from_array(X, chunks=(140, 7))
        for stream in (
            open_dask(table, target="tree", weights="w"),
            open_dask(table[NAMES], table["tree"], weights=table["w"]),
            open_dask(array, da.from_array(y), weights=da.from_array(w, chunks=33)),
            open_dask(array, y, weights=w),
        ):
            close(stream_moments(stream), X[again], y[again])

    def test_numbers_to_predict(self) -> None:
        X, _ = rows()
        table = frame().drop(columns="tree").assign(one=X[:, 1] + X[:, 4], two=X[:, 2] ** 2)
        collection = dd.from_pandas(table, npartitions=3)
        problem = Problem.from_dask(collection, target="one")
        assert problem.task == "regression"
        assert problem.feature_names == (*NAMES, "two")
        both = Problem.from_dask(collection, target=["one", "two"], drop=["gene 0"])
        assert both.feature_names == tuple(NAMES[1:])
        two = table[["one", "two"]].to_numpy()
        held = Problem.from_arrays(X[:, 1:], two)
        same_supports(both, held)
        for given in (collection[["one", "two"]], da.from_array(two, chunks=(200, 1)), two):
            same_supports(Problem.from_dask(collection[NAMES[1:]], given), held)

    def test_a_flaw_is_named_with_partition_column_and_row(self) -> None:
        X, y = rows()
        array = da.from_array(X, chunks=(200, 7))
        flaw = partial(folds.flawed, row=150, column=3, value=np.nan)
        spoilt = array.map_blocks(flaw, dtype=float, meta=array._meta)
        with pytest.raises(InputError, match=r"'x3' .* partition 1, .* first in row 150"):
            Problem.from_dask(spoilt, y)


@pytest.mark.parametrize(
    "target",
    [
        pd.Series(["a", "b"] * 300, dtype=object),
        pd.Series(["a", "b"] * 300, dtype="string[pyarrow]"),
        pd.Series(["b", "a"] * 300, dtype="category"),
        pd.Series([2, 1] * 300, dtype="category"),
        pd.Series([2, 1] * 300, dtype="Int64"),
        pd.Series([True, False] * 300, dtype="boolean"),
        pd.Series([True, False] * 300),
        pd.Series([7, 8, 9] * 200, dtype="uint8"),
        pd.Series([7.0, 8.0, 9.0] * 200),
    ],
    ids=["object", "pyarrow", "category", "numbered", "Int64", "boolean", "bool", "uint8", "whole"],
)
def test_classes_of_every_kind(target: pd.Series) -> None:
    X, _ = rows()
    table = frame().assign(tree=target)
    held = Problem.from_arrays(X, target)
    assert held.classes is not None
    apart = dd.from_pandas(table, npartitions=5)
    for found in (
        Problem.from_dask(apart, target="tree"),
        Problem.from_dask(apart[NAMES], apart["tree"]),
        Problem.from_dask(apart[NAMES], target),
        Problem.from_dask(da.from_array(X, chunks=(99, 7)), target),
    ):
        assert found.classes is not None
        assert found.classes.tolist() == held.classes.tolist()
        np.testing.assert_allclose(found.cross, held.cross, rtol=1e-9, atol=1e-9)


def test_unused_and_unknown_categories_are_no_classes() -> None:
    table = frame().astype({"tree": pd.CategoricalDtype(["yew", "oak", "ash", "elm"])})
    known = dd.from_pandas(table, npartitions=3)
    unknown = known.assign(tree=known["tree"].cat.as_unknown())
    for collection in (known, unknown):
        problem = Problem.from_dask(collection, target="tree")
        assert problem.classes is not None
        assert problem.classes.tolist() == ["ash", "oak", "yew"]


def test_features_of_every_numeric_kind() -> None:
    _, y = rows()
    table = frame()
    table["gene 0"] = table["gene 0"] > 0
    table["gene 1"] = table["gene 1"].round().astype("Int64")
    table["gene 2"] = table["gene 2"].astype("float32")
    table["gene 3"] = (table["gene 3"] > 0).astype("boolean")
    table["gene 4"] = table["gene 4"].round().astype("int16")
    found = stream_moments(open_dask(dd.from_pandas(table, npartitions=4), target="tree"))
    close(found, table[NAMES].astype(float).to_numpy(), y)


def test_missing_values_of_nullable_columns_are_named() -> None:
    table = frame()
    table["gene 1"] = table["gene 1"].round().astype("Int64")
    table.loc[455, "gene 1"] = pd.NA
    with pytest.raises(InputError, match=r"'gene 1' .* partition 2, .* first in row 55;"):
        Problem.from_dask(dd.from_pandas(table, npartitions=3), target="tree")


@pytest.mark.parametrize(
    "values",
    [
        pd.Series(["a", "b", None] * 200),
        pd.Series([1, 2, None] * 200, dtype="Int64"),
        pd.Series(["a", "b", None] * 200, dtype="category"),
        pd.Series([0.5, 1.5, None] * 200),
    ],
    ids=["text", "Int64", "category", "float"],
)
def test_missing_targets_are_named(values: pd.Series) -> None:
    table = dd.from_pandas(frame().assign(tree=values), npartitions=2)
    with pytest.raises(InputError, match=r"y is missing .*partition 0, row 2 \(from 0\)"):
        Problem.from_dask(table, target="tree")


def test_chunks_of_unknown_sizes() -> None:
    X, y = rows()
    table = dd.from_pandas(frame(), npartitions=4)
    values = table[NAMES].values
    assert np.isnan(values.shape[0])
    held = Problem.from_arrays(X, y)
    for given in (table["tree"], y, y.tolist()):
        same_supports(Problem.from_dask(values, given), held)
    signs = table["gene 0"] > 0
    same_supports(Problem.from_dask(values, signs.values), Problem.from_arrays(X, X[:, 0] > 0))
    with pytest.raises(InputError, match=r"X has 4 partitions, y has 6, and their sizes"):
        open_dask(values, da.from_array(y, chunks=100))


def test_parts_that_do_not_go_together() -> None:
    X, y = rows()
    array, table = da.from_array(X, chunks=(200, 7)), dd.from_pandas(frame(), npartitions=3)
    with pytest.raises(InputError, match="X has 600 rows, y has 599"):
        open_dask(array, y[1:])
    with pytest.raises(InputError, match="X has 600 rows, y has 599"):
        open_dask(array, da.from_array(y[1:]))
    with pytest.raises(InputError, match="X has 600 rows, weights has 2"):
        open_dask(array, y, weights=[1.0, 2.0])
    shifted = da.from_array(y, chunks=((199, 201, 200),))
    with pytest.raises(InputError, match="partition 0 of X has 200 rows, that of y has 199"):
        Problem.from_dask(table[NAMES], shifted)


def test_names_and_kinds_are_checked_before_anything_is_computed() -> None:
    table = dd.from_pandas(frame().assign(note="x", day=pd.Timestamp("2024-01-01")), npartitions=2)
    table = table.map_partitions(folds.explode, meta=table._meta)
    for words, given in {
        r"not numbers: 'note', 'day'": {"target": "tree"},
        r"'gene 1' cannot be a feature": {"target": "gene 1", "columns": ["gene 1"]},
        r"'leaf' is not in the table": {"target": "leaf"},
        r"did you mean 'gene 0'": {"target": "tree", "columns": ["gene0"]},
        r"target 'day' has dtype datetime64": {"target": "day", "columns": NAMES},
        r"weights has dtype": {"target": "tree", "columns": NAMES, "weights": "note"},
        r"'tree' holds text; several": {"target": ["gene 0", "tree"], "columns": NAMES[1:]},
        r"y is None": {"columns": NAMES},
        r"both y and target": {"y": [1], "target": "tree"},
        r"no feature columns": {"target": "tree", "drop": [*NAMES, "note", "day"]},
    }.items():
        with pytest.raises(InputError, match=words):
            open_dask(table, **given)


def test_what_is_no_table() -> None:
    X, y = rows()
    array = da.from_array(X, chunks=(200, 7))
    for words, given in {
        r"X is a ndarray, and not a dask": (X, y),
        r"X is a Delayed.*, and not a dask array": (dask.delayed(X), y),
        r"X has shape \(600,\)": (array[:, 0], y),
        r"X has dtype <U3": (da.from_array(np.tile(y, (2, 1)).T), y),
        r"blocks of X are of type numpy.MaskedArray": (da.ma.masked_less(array, 0), y),
        r"y must have one value a row": (array, 3),
        r"y is None": (array, None),
    }.items():
        with pytest.raises(InputError, match=words):
            open_dask(*given)
    for words, options in {
        r"target names a column of a dataframe": {"target": "x1"},
        r"weights names a column of a dataframe": {"weights": "x1"},
        r"columns has 1 names, X has 7": {"columns": ["a"]},
        r"dropped column 'x9' is not in": {"drop": ["x9"]},
    }.items():
        with pytest.raises(InputError, match=words):
            open_dask(array, y, **options)


def test_blocks_that_are_not_what_was_promised() -> None:
    from scipy import sparse

    X, y = rows()
    array = da.from_array(X, chunks=(300, 7))
    lying = array.map_blocks(sparse.csr_array, meta=array._meta, dtype=float)
    with pytest.raises(InputError, match=r"partition 0 of X is a scipy\.csr_array"):
        Problem.from_dask(lying, y)
    table = dd.from_pandas(frame(), npartitions=2)
    for words, pair in {
        r"fractions as objects in partition 0.*astype": (0.5, 1.0),
        r"y holds bytes in partition 0": (b"a", b"b"),
        r"mixes labels .*partition 0 \('int', 'str'\)": ("a", 1),
        r"y in partition 0 has lists or dicts": ([1], [2]),
    }.items():
        odd = np.empty(N_ROWS, dtype=object)
        odd[:] = pair * (N_ROWS // 2)
        with pytest.raises(InputError, match=words):
            Problem.from_dask(array, odd)
    texts = table.map_partitions(lambda part: part.assign(**{"gene 2": "no"}), meta=table._meta)
    with pytest.raises(InputError, match=r"column 'gene 2' in partition 0 has 'no'"):
        Problem.from_dask(texts, target="tree")


def test_columns_of_an_array_can_be_named_and_dropped() -> None:
    X, y = rows()
    problem = Problem.from_dask(
        da.from_array(X, chunks=(200, 7)), y, columns=NAMES, drop=["gene 2", "gene 6"]
    )
    assert problem.feature_names == tuple(NAMES[j] for j in (0, 1, 3, 4, 5))
    same_supports(problem, Problem.from_arrays(X[:, [0, 1, 3, 4, 5]], y))


def test_a_merge_leaves_its_parts_as_they_were() -> None:
    """A task that is run again, after a worker was lost, must find what it found first."""
    X, y = rows()
    stream = open_dask(da.from_array(X, chunks=(300, 7)), y)
    job = _job(stream)
    first, second = (
        stream_moments(open_dask(da.from_array(X[some], chunks=(300, 7)), y[some]))
        for some in (slice(300), slice(300, 600))
    )
    before = first.xx.copy()
    merge_group(job, first, second)
    np.testing.assert_array_equal(first.xx, before)


def _job(stream: DaskStream) -> Any:
    from exactk.streaming.dask import _Job

    return _Job(moments_fold(stream), stream._reader)


def moments_fold(stream: DaskStream, kind: type[MomentsReducer] = MomentsReducer) -> Any:
    return kind(stream.feature_names, choose_encoding(stream, "auto"), stream.target)


BLAS_THREADS = """
from threadpoolctl import threadpool_info, threadpool_limits
import scipy.linalg.blas
from exactk.native.threads import one_blas_thread

def threads():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}

with threadpool_limits(2, user_api="blas"):
    one, other = one_blas_thread(), one_blas_thread()
    one.__enter__()
    other.__enter__()
    one.__exit__(None, None, None)
    assert threads() == {1}, threads()
    other.__exit__(None, None, None)
    assert threads() == {2}, threads()
"""


def test_blas_keeps_one_thread_until_the_last_task_has_left() -> None:
    # In a process of its own: here a task of another test's scheduler may still be inside.
    subprocess.run([sys.executable, "-c", BLAS_THREADS], check=True)


@pytest.mark.usefixtures("on_cluster")
def test_only_the_merged_part_reaches_the_caller() -> None:
    import os

    X = da.ones((4000, 3), chunks=(100, 3))
    stream = open_dask(X, da.zeros(4000, chunks=100))
    folds.ARRIVED.clear()
    counted = stream.reduce(folds.Counting())
    assert counted.n_rows == 4000
    assert folds.ARRIVED == [4000]
    assert counted.processes
    assert os.getpid() not in counted.processes


def test_the_fold_is_in_the_graph_once() -> None:
    """Not once a partition: it may carry weights for every column."""
    X, y = rows()
    stream = open_dask(da.from_array(X, chunks=(10, 7)), da.from_array(y, chunks=10))
    fold = moments_fold(stream)
    fold.ballast = np.zeros(125_000)
    graph = dict(stream._tree(fold).__dask_graph__())
    assert len(pickle.dumps(fold)) > 1_000_000
    heavy = [key for key, task in graph.items() if len(pickle.dumps(task)) > 500_000]
    assert len(heavy) == 1


@pytest.mark.usefixtures("on_cluster")
def test_a_persisted_table_is_not_computed_again(tmp_path: Path) -> None:
    X, y = rows()

    def noted(block: Array) -> Array:
        with (tmp_path / "reads").open("a") as file:
            file.write("x")
        return block

    array = da.from_array(X, chunks=(200, 7)).map_blocks(noted, meta=np.empty((0, 0)))
    kept = array.persist()
    distributed.wait(kept)
    for _ in range(2):
        same_supports(Problem.from_dask(kept, y), Problem.from_arrays(X, y))
    assert (tmp_path / "reads").read_text() == "xxx"


@pytest.mark.usefixtures("on_cluster")
@pytest.mark.parametrize("moment", ["add", "merge"])
def test_a_worker_that_is_killed_does_not_change_the_answer(moment: str, tmp_path: Path) -> None:
    X, y = rows()
    stream = open_dask(da.from_array(X, chunks=(60, 7)), da.from_array(y))
    fold = moments_fold(stream, folds.Deadly).arm(tmp_path / "killed", moment)
    found = stream.reduce(fold)
    assert (tmp_path / "killed").exists()
    close(found, X, y)


class TestSelector:
    @pytest.mark.usefixtures("scheduler")
    def test_arrays(self) -> None:
        X, y = rows()
        array = da.from_array(X, chunks=(110, 4))
        wanted = TopKSelector(3).fit(X, y)
        for target in (da.from_array(y), y, y.tolist()):
            found = TopKSelector(3).fit(array, target)
            assert found.selected_.tolist() == wanted.selected_.tolist()
            assert found.ridge_ == wanted.ridge_
            assert found.classes_.tolist() == wanted.classes_.tolist()
            np.testing.assert_allclose(found.coef_, wanted.coef_, rtol=1e-9, atol=1e-12)
        assert found.n_features_in_ == 7
        assert not hasattr(found, "feature_names_in_")
        less = found.transform(array)
        assert isinstance(less, da.Array)
        np.testing.assert_array_equal(less.compute(), wanted.transform(X))

    @pytest.mark.usefixtures("scheduler")
    def test_dataframes(self) -> None:
        table = frame()
        collection = dd.from_pandas(table, npartitions=4)
        wanted = TopKSelector(3).fit(table[NAMES], table["tree"])
        found = TopKSelector(3).fit(collection[NAMES], collection["tree"])
        assert found.feature_names_in_.tolist() == NAMES
        assert found.get_feature_names_out().tolist() == wanted.get_feature_names_out().tolist()
        less = found.transform(collection[NAMES])
        assert isinstance(less, dd.DataFrame)
        chosen = wanted.get_feature_names_out().tolist()
        pd.testing.assert_frame_equal(less.compute(), table[chosen])
        again = pickle.loads(pickle.dumps(found))
        assert again.transform(collection[NAMES]).columns.tolist() == chosen

    def test_transform_computes_nothing(self) -> None:
        X, y = rows()
        fitted = TopKSelector(2).fit(X, y)
        array = da.from_array(X, chunks=(200, 7)).map_blocks(folds.explode, meta=np.empty((0, 0)))
        assert fitted.transform(array).shape == (N_ROWS, 2)
        named = TopKSelector(2).fit(frame()[NAMES], y)
        table = dd.from_pandas(frame()[NAMES], npartitions=2)
        table = table.map_partitions(folds.explode, meta=table._meta)
        assert len(named.transform(table).columns) == 2

    def test_transform_of_other_columns(self) -> None:
        X, y = rows()
        collection = dd.from_pandas(frame(), npartitions=2)
        named = TopKSelector(2).fit(collection[NAMES], collection["tree"])
        with pytest.raises(ValueError, match="unseen at fit time:\n- tree"):
            named.transform(collection)
        with pytest.raises(ValueError, match="must be in the same order"):
            named.transform(collection[NAMES[::-1]])
        plain = TopKSelector(2).fit(X, y)
        with pytest.raises(ValueError, match="X has 6 features, but TopKSelector is expecting 7"):
            plain.transform(da.from_array(X[:, 1:]))
        plain.set_output(transform="pandas")
        with pytest.raises(InputError, match="would load a whole Dask table"):
            plain.transform(da.from_array(X))

    def test_path_weights_and_regression(self) -> None:
        X, _ = rows()
        y, w = X[:, 1] - X[:, 5] + 0.1 * X[:, 0], np.arange(N_ROWS) % 3
        array = da.from_array(X, chunks=(200, 7))
        wanted = TopKSelector().path(X, y, k_max=4, sample_weight=w)
        for weight in (w, da.from_array(w, chunks=50)):
            found = TopKSelector().path(array, da.from_array(y), k_max=4, sample_weight=weight)
            assert [r.support.tolist() for r in found] == [r.support.tolist() for r in wanted]

    def test_fit_transform_and_no_target(self) -> None:
        X, y = rows()
        array = da.from_array(X, chunks=(200, 7))
        less = TopKSelector(2).fit_transform(array, y)
        assert isinstance(less, da.Array)
        assert less.shape == (N_ROWS, 2)
        with pytest.raises(ValueError, match="requires y to be passed"):
            TopKSelector(2).fit(array, None)
        with pytest.raises(InputError, match="sample_weight must be one number for each row"):
            TopKSelector(2).fit(array, y, sample_weight="w")


def test_from_arrays_names_the_right_constructor() -> None:
    X, y = rows()
    with pytest.raises(InputError, match=r"X is a dask Array.*Problem\.from_dask"):
        Problem.from_arrays(da.from_array(X), y)
    with pytest.raises(InputError, match=r"X is a dask DataFrame.*Problem\.from_dask"):
        Problem.from_arrays(dd.from_pandas(frame(), npartitions=1), y)


@pytest.mark.parametrize("apart", ["dask", "numpy"])
def test_a_column_that_dask_cuts_in_another_way(tmp_path: Path, apart: str) -> None:
    """Of a folder of Parquet one column is little to read: Dask makes one partition of files."""
    X, y = rows()
    held_frame = frame()
    for number, part in enumerate(np.array_split(np.arange(len(X)), 3)):
        held_frame.iloc[part].to_parquet(tmp_path / f"{number}.parquet")
    read = dd.read_parquet(tmp_path)
    assert len(read["tree"].to_delayed()) < len(read.drop(columns="tree").to_delayed())
    given = read["tree"] if apart == "dask" else y
    found = stream_moments(open_dask(read.drop(columns="tree"), given))
    np.testing.assert_allclose(found.xx, Moments.from_arrays(X, X[:, :1]).xx, rtol=1e-10, atol=1e-8)
    held = Problem.from_arrays(X, y)
    np.testing.assert_allclose(Problem.from_moments(found).cross, held.cross, rtol=1e-9, atol=1e-9)


def test_the_hint_for_a_wide_table_is_one_that_exists(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = (da.from_array(part, chunks=100) for part in rows())
    with pytest.raises(InputError, match=r"raise memory_limit of Problem\.from_dask"):
        Problem.from_dask(X, y, memory_limit=100)
    monkeypatch.setattr("exactk.streaming.dask.DaskStream.n_features", 10**5)
    with pytest.raises(InputError, match=r"raise memory_limit of Problem\.from_dask"):
        TopKSelector(2).fit(X, y)
    monkeypatch.undo()
    tight = Problem.from_dask(X, y, memory_limit=8 * 49)
    with pytest.raises(InputError, match=r"Problem\.from_dask, or name fewer col"):
        solve(tight, 2, "relieff")


def test_a_name_in_place_of_y() -> None:
    with pytest.raises(InputError, match="named with target='tree'"):
        Problem.from_dask(dd.from_pandas(frame(), npartitions=2), "tree")
