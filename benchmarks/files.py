"""How near files that are passed over come to what the machine allows: rate and memory.

`Problem.from_files` is set beside reading the same files alone, in the fastest of the ways that
pyarrow offers with two cores, and the Gram matrix of the same blocks in memory alone (`X.T @ X`,
two threads): all in turns in one run, from the page cache. Target: at least 60 % of the rate of
the slower of the two. Where both use both cores in full, one after the other takes their sum, and
the rate cannot exceed the share that the slower one has in it: that is the column "possible".
"""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import harness
from benchmarks.harness import MEGABYTE, Options, Record, Row, mark, memory

RATE = 0.6
GROUP = 100_000
PLAIN = {"compression": "none", "use_dictionary": False}
ROUNDS = 3


@dataclass(frozen=True)
class Case:
    """A table in a file."""

    rows: int
    columns: int
    dtype: str = "float64"
    group: int = GROUP
    options: dict[str, Any] = field(default_factory=dict)
    suffix: str = ".parquet"


CASES = {
    "100": Case(1_500_000, 100),
    "100 plain": Case(1_500_000, 100, options=PLAIN),
    "100 float32": Case(3_000_000, 100, dtype="float32"),
    "100 float32 plain": Case(3_000_000, 100, dtype="float32", options=PLAIN),
    "100 one group": Case(1_048_576, 100, group=1_048_576),
    "500": Case(300_000, 500),
    "500 plain": Case(300_000, 500, options=PLAIN),
    "500 float32": Case(500_000, 500, dtype="float32"),
    "500 float32 plain": Case(500_000, 500, dtype="float32", options=PLAIN),
    "csv": Case(100_000, 100, suffix=".csv"),
}


def write(case: Case, path: Path) -> None:
    """Write random rows, one row group after the other."""
    import pyarrow as pa
    from pyarrow import csv, parquet

    rng = np.random.default_rng(case.columns)
    names = [*(f"x{j}" for j in range(case.columns)), "label"]
    writer: Any = None
    for start in range(0, case.rows, case.group):
        rows = min(case.group, case.rows - start)
        columns = [rng.standard_normal(rows).astype(case.dtype) for _ in range(case.columns)]
        labels = np.array(["a", "b", "c"])[rng.integers(0, 3, rows)]
        table = pa.table([*columns, labels], names=names)
        if writer is None and case.suffix == ".csv":
            writer = csv.CSVWriter(path, table.schema)
        elif writer is None:
            writer = parquet.ParquetWriter(path, table.schema, **case.options)
        writer.write_table(table, rows) if case.suffix != ".csv" else writer.write_table(table)
    writer.close()


def ways_to_read(path: Path) -> dict[str, Callable[[], Any]]:
    """The ways of pyarrow to go through a file in batches that use both cores."""
    import pyarrow.dataset as ds
    from pyarrow import csv, parquet

    def scan() -> None:
        for _ in ds.dataset(path, format=path.suffix[1:]).to_batches():
            pass

    def stream_text() -> None:
        for _ in csv.open_csv(path):
            pass

    def iterate() -> None:
        with parquet.ParquetFile(path) as file:
            for _ in file.iter_batches(65_536, use_threads=True):
                pass

    def groups_apart() -> None:
        def read(lane: int) -> None:
            with parquet.ParquetFile(path) as file:
                for group in range(lane, file.num_row_groups, 2):
                    file.read_row_group(group, use_threads=False)

        with ThreadPoolExecutor(2) as pool:
            list(pool.map(read, range(2)))

    if path.suffix == ".csv":
        return {
            "dataset": scan,
            "open_csv": stream_text,
            "read_csv": lambda: csv.read_csv(path),
        }
    return {"dataset": scan, "iter_batches": iterate, "row groups in two threads": groups_apart}


def gram(case: Case) -> Callable[[], Any]:
    """Products of as many blocks as the table has, from memory that no cache holds."""
    from exactk.streaming.arrow import rows_per_block

    rows = rows_per_block(case.columns)
    rng = np.random.default_rng(0)
    blocks = [rng.standard_normal((rows, case.columns)) for _ in range(24)]
    count, rest = divmod(case.rows, rows)

    def run() -> None:
        total = np.zeros((case.columns, case.columns))
        for i in range(count):
            block = blocks[i % len(blocks)]
            total += block.T @ block
        last = blocks[0][:rest]
        total += last.T @ last

    return run


def from_files(path: Path) -> Any:
    from exactk import Problem

    return Problem.from_files(path, "label")


def from_pandas(path: Path) -> Any:
    """What is done without such a door: read all, then multiply."""
    import pandas as pd

    frame = pd.read_csv(path) if path.suffix == ".csv" else pd.read_parquet(path)
    X = frame.drop(columns="label").to_numpy(dtype=np.float64)
    X = X - X.mean(axis=0)
    return X.T @ X


WHOLE = {"exactk": from_files, "pandas": from_pandas}


def peak(who: str, path: Path) -> int:
    """Peak memory of this process beyond what it takes to import the libraries."""
    for library in ("exactk", "pandas", "pyarrow.csv", "pyarrow.parquet", "scipy.linalg.blas"):
        import_module(library)
    before = memory("VmRSS")
    WHOLE[who](path)
    return memory("VmHWM") - before


def run_case(name: str, options: Options) -> Iterator[Row]:
    """One case, with a tenth of its rows in a quick run."""
    case = CASES[name]
    if options.quick:
        case = replace(case, rows=case.rows // 10)
    with tempfile.TemporaryDirectory() as folder:
        yield measure(name, case, Path(folder) / f"table{case.suffix}")


def measure(name: str, case: Case, path: Path) -> Row:
    """Time everything in turns, so that no one has the quiet moments for itself."""
    write(case, path)
    tasks: dict[str, Callable[[], Any]] = {
        **{f"read: {way}": run for way, run in ways_to_read(path).items()},
        "gram": gram(case),
        "exactk": lambda: from_files(path),
        "pandas": lambda: from_pandas(path),
    }
    best, work = dict.fromkeys(tasks, math.inf), dict.fromkeys(tasks, math.inf)
    for _ in range(ROUNDS):
        for task, run in tasks.items():
            before = time.process_time()
            best[task] = min(best[task], harness.timed(run, runs=1).best)
            work[task] = min(work[task], time.process_time() - before)
    way = min((task for task in best if task.startswith("read: ")), key=lambda task: best[task])
    least = min(work[task] for task in work if task.startswith("read: "))
    slower = max(best[way], best["gram"])
    return {
        "case": name,
        "rows": case.rows,
        "columns": case.columns,
        "dtype": case.dtype,
        "file_bytes": path.stat().st_size,
        "read_way": way.removeprefix("read: "),
        "read_seconds": best[way],
        "gram_seconds": best["gram"],
        "seconds": best["exactk"],
        "rate": slower / best["exactk"],
        "possible": slower / (best[way] + best["gram"]),
        # Processor seconds, which neighbours on the machine disturb less.
        "read_work": least,
        "gram_work": work["gram"],
        "work": work["exactk"],
        "work_rate": max(least, work["gram"]) / work["exactk"],
        "pandas_seconds": best["pandas"],
        "peak_bytes": harness.in_new_process(peak, "exactk", path),
        "pandas_peak_bytes": harness.in_new_process(peak, "pandas", path),
        "reads": {task.removeprefix("read: "): best[task] for task in best if "read: " in task},
    }


PARTS = {name: partial(run_case, name) for name in CASES}


def report(record: Record) -> str:
    """The measurements as Markdown."""
    header = [
        "table", "rows", "file MB", "reading alone, s", "X.T @ X alone, s", "exactk, s",
        f"rate (target {RATE:.0%})", "possible", "by processor time", "peak MB",
        "pandas, s", "pandas peak MB",
    ]  # fmt: skip
    rows = [
        [
            f"{r['case']}",
            f"{r['rows']:,}",
            f"{r['file_bytes'] / 1e6:,.0f}",
            f"{r['read_seconds']:.2f} ({r['read_way']})",
            f"{r['gram_seconds']:.2f}",
            f"{r['seconds']:.2f}",
            f"{r['rate']:.0%} {mark(r['rate'] >= RATE)}",
            f"{r['possible']:.0%}",
            f"{r['work_rate']:.0%} ({r['read_work']:.1f}, {r['gram_work']:.1f}, {r['work']:.1f} s)",
            f"{r['peak_bytes'] / MEGABYTE:,.0f}",
            f"{r['pandas_seconds']:.2f}",
            f"{r['pandas_peak_bytes'] / MEGABYTE:,.0f}",
        ]
        for name in CASES
        for r in record.get(name, ())
    ]
    head = f"{record['date']}, {record['processor']}, {record['threads']} threads."
    return head + "\n\n" + harness.markdown(header, rows)
