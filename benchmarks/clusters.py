"""One table by every door: arrays, Parquet, Dask and Spark on the cores of this machine.

python -m benchmarks.clusters             1,000,000 × 100, kept in results/clusters.json
python -m benchmarks.clusters --rows 100000 --columns 500
python -m benchmarks.clusters --report    the table of the kept record again

Each door is set beside what its engine needs to read the same files without exactk, Spark also
beside handing its rows to Python and doing nothing with them, and all beside one plain
`X.T @ X` of the rows in memory. All engines have the same number of cores, files come from the
page cache, and starting a cluster or a session is not counted.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import harness

Record = dict[str, Any]
Door = tuple[Callable[[], Any], dict[str, Callable[[], Any]]]

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


def arrays(X: Any, y: Any) -> Door:
    from exactk import Problem

    return lambda: Problem.from_arrays(X, y), {}


def files(folder: Path) -> Door:
    import pyarrow.dataset as ds

    from exactk import Problem

    def read() -> None:
        for _ in ds.dataset(folder).to_batches():
            pass

    return lambda: Problem.from_files(folder, "y"), {"read": read}


@contextmanager
def dask(folder: Path, cores: int) -> Iterator[Door]:
    import dask.dataframe as dd
    from distributed import Client, LocalCluster

    from exactk import Problem

    cluster = LocalCluster(
        n_workers=cores, threads_per_worker=1, processes=True, dashboard_address=":0"
    )
    with cluster, Client(cluster):
        frame = dd.read_parquet(folder)
        numbers = frame.drop(columns="y")
        yield (
            lambda: Problem.from_dask(frame, target="y"),
            {"read": lambda: numbers.sum().compute()},
        )


@contextmanager
def spark(folder: Path, cores: int) -> Iterator[Door]:
    from pyspark.sql import SparkSession, functions

    from exactk import Problem

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
        lambda: Problem.from_spark(frame, "y"),
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


def measure(n: int, d: int, cores: int) -> Record:
    """Time everything in turns, so that no one has the quiet moments for itself."""
    from exactk import solve

    X, y = make_rows(n, d)
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        write_files(X, y, folder)
        doors: dict[str, Door] = {
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
            for door, (make, parts) in doors.items():
                supports[door] = solve(note(door, make), CHOSEN).support.tolist()
                for part, run in parts.items():
                    note(f"{door} {part}", run)
        size = sum(path.stat().st_size for path in folder.iterdir())
    best = {task: min(times) for task, times in seconds.items()}
    return {
        "rows": n,
        "columns": d,
        "files": FILES,
        "file_bytes": size,
        "gram_seconds": best["gram"],
        "doors": [
            {
                "door": door,
                "seconds": best[door],
                "read_seconds": best.get(f"{door} read"),
                "hand_over_seconds": best.get(f"{door} hand_over"),
                "times_gram": best[door] / best["gram"],
                "same_columns": supports[door] == supports["arrays"],
            }
            for door in doors
        ],
    }


def report(record: Record) -> str:
    """The measurements as Markdown."""
    header = [
        "door", "exactk, s", "engine reads alone, s", "rows handed to Python, s",
        "times `X.T @ X`", f"the same {CHOSEN} columns",
    ]  # fmt: skip
    rows = [
        [
            r["door"],
            f"{r['seconds']:.2f}",
            *["–" if r[key] is None else f"{r[key]:.2f}" for key in ENGINE],
            f"{r['times_gram']:.1f}",
            "yes" if r["same_columns"] else "no",
        ]
        for r in record["doors"]
    ]
    head = (
        f"{record['date']}, {record['processor']}, {record['threads']} cores; "
        f"{record['rows']:,} × {record['columns']:,} and five classes in {record['files']} files, "
        f"{record['file_bytes'] / 1e6:,.0f} MB; `X.T @ X` alone {record['gram_seconds']:.2f} s."
    )
    return head + "\n\n" + harness.markdown(header, rows)


ENGINE = ("read_seconds", "hand_over_seconds")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.clusters", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--columns", type=int, default=COLUMNS)
    parser.add_argument("--report", action="store_true", help="print the kept record, run nothing")
    options = parser.parse_args(arguments)
    if options.report:
        stored = harness.RESULTS / "clusters.json"
        print(report(json.loads(stored.read_text(encoding="utf-8"))))
        return
    harness.pin_threads(options.threads)
    record = harness.circumstances(options.threads)
    record |= measure(options.rows, options.columns, options.threads)
    if (options.rows, options.columns) == (ROWS, COLUMNS):
        harness.write_record("clusters", record)
    print(report(record))


if __name__ == "__main__":
    main()
