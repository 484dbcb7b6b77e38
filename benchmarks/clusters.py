"""One table from each source: arrays, Parquet, Dask and Spark on the cores of this machine.

Each source is set beside what its engine needs to read the same files without exactk, Spark also
beside handing its rows to Python and doing nothing with them, and all beside one plain
`X.T @ X` of the rows in memory. All engines have the same number of cores, files come from the
page cache, and starting a cluster or a session is not counted.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import exactk
from benchmarks import harness
from benchmarks.harness import Options, Record, Row

Source = tuple[Callable[[], Any], dict[str, Callable[[], Any]]]

ROWS, COLUMNS = 1_000_000, 100
FILES = 8
CHOSEN = 10
ROUNDS = 3


def make_rows(n: int, d: int) -> tuple[Any, Any]:
    """Random rows of five classes that differ in some of the columns."""
    rng = np.random.default_rng(n)
    y = rng.integers(0, 5, n)
    X = rng.standard_normal((n, d))
    X[:, ::3] += y[:, None] * np.linspace(0.02, 0.5, len(range(0, d, 3)))
    return X, np.array([f"class {label}" for label in range(5)])[y]


def write_files(X: Any, y: Any, folder: Path) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    for i, rows in enumerate(np.array_split(np.arange(len(X)), FILES)):
        columns = {f"x{j}": column for j, column in enumerate(X[rows].T)}
        parquet.write_table(pa.table({**columns, "y": y[rows]}), folder / f"part-{i}.parquet")


def arrays(X: Any, y: Any) -> Source:
    return lambda: exactk.Problem.from_arrays(X, y), {}


def files(folder: Path) -> Source:
    import pyarrow.dataset as ds

    def read() -> None:
        for _ in ds.dataset(folder).to_batches():
            pass

    return lambda: exactk.Problem.from_files(folder, "y"), {"read": read}


@contextmanager
def dask(folder: Path, cores: int) -> Iterator[Source]:
    import dask.dataframe as dd
    from distributed import Client, LocalCluster

    cluster = LocalCluster(
        n_workers=cores, threads_per_worker=1, processes=True, dashboard_address=":0"
    )
    with cluster, Client(cluster):
        frame = dd.read_parquet(folder)
        numbers = frame.drop(columns="y")
        yield (
            lambda: exactk.Problem.from_dask(frame, target="y"),
            {"read": lambda: numbers.sum().compute()},
        )


@contextmanager
def spark(folder: Path, cores: int) -> Iterator[Source]:
    from pyspark.sql import SparkSession, functions

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(f"local[{cores}]").appName("benchmark")
    for name, value in {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "2g",
        "spark.log.level": "ERROR",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    frame = session.read.parquet(str(folder))
    names = [name for name in frame.columns if name != "y"]

    def hand_over() -> None:
        frame.mapInArrow(rows_only, "n long").agg(functions.sum("n")).collect()

    yield (
        lambda: exactk.Problem.from_spark(frame, "y"),
        {
            "read": lambda: frame.select(*[functions.sum(name) for name in names]).collect(),
            "hand_over": hand_over,
        },
    )
    session.stop()


def rows_only(batches: Any) -> Iterator[Any]:
    """What Python gets to see of the rows, and no more."""
    import pyarrow as pa

    for batch in batches:
        yield pa.RecordBatch.from_arrays([pa.array([batch.num_rows], pa.int64())], names=["n"])


def measure(options: Options) -> Iterator[Row]:
    """Time everything in turns, so that no one has the quiet moments for itself."""
    n, d, cores = ROWS // 10 if options.quick else ROWS, COLUMNS, options.threads
    X, y = make_rows(n, d)
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        write_files(X, y, folder)
        sources: dict[str, Source] = {
            "arrays": arrays(X, y),
            "parquet": files(folder),
            "dask": stack.enter_context(dask(folder, cores)),
            "spark": stack.enter_context(spark(folder, cores)),
        }
        seconds: dict[str, list[float]] = {}
        supports: dict[str, list[int]] = {}

        def note(task: str, run: Callable[[], Any]) -> Any:
            timing = harness.timed(run, runs=1)
            seconds.setdefault(task, []).extend(timing.seconds)
            return timing.value

        for _ in range(ROUNDS):
            note("gram", lambda: X.T @ X)
            for source, (make, parts) in sources.items():
                supports[source] = exactk.solve(note(source, make), CHOSEN).support.tolist()
                for part, run in parts.items():
                    note(f"{source} {part}", run)
        size = sum(path.stat().st_size for path in folder.iterdir())
    best = {task: min(times) for task, times in seconds.items()}
    options.settings |= {"rows": n, "columns": d, "files": FILES, "file_bytes": size}
    for source in sources:
        yield {
            "source": source,
            "seconds": best[source],
            "read_seconds": best.get(f"{source} read"),
            "hand_over_seconds": best.get(f"{source} hand_over"),
            "gram_seconds": best["gram"],
            "same_columns": supports[source] == supports["arrays"],
        }


PARTS = {"sources": measure}


def report(record: Record) -> str:
    """The measurements as Markdown."""
    header = [
        "source", "exactk, s", "engine reads alone, s", "rows handed to Python, s",
        "times `X.T @ X`", f"the same {CHOSEN} columns",
    ]  # fmt: skip
    rows = [
        [
            r["source"],
            f"{r['seconds']:.2f}",
            *["–" if r[key] is None else f"{r[key]:.2f}"
              for key in ("read_seconds", "hand_over_seconds")],
            f"{r['seconds'] / r['gram_seconds']:.1f}",
            "yes" if r["same_columns"] else "no",
        ]
        for r in record["sources"]
    ]  # fmt: skip
    head = (
        f"{record['date']}, {record['processor']}, {record['threads']} cores; "
        f"{record['rows']:,} × {record['columns']:,} and five classes in {record['files']} files, "
        f"{record['file_bytes'] / 1e6:,.0f} MB; `X.T @ X` alone "
        f"{record['sources'][0]['gram_seconds']:.2f} s."
    )
    return head + "\n\n" + harness.markdown(header, rows)
