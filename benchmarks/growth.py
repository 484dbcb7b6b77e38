"""How time and memory grow with rows and with columns.

Every rung runs in a process of its own, where peak memory starts anew. Rows: Parquet files
(float32, uncompressed) of 100 columns and at most a million rows each, read with
`Problem.from_files`. Columns: an array of 1,000 rows in memory. Both have 5 classes and 10
columns that tell them apart; k is 10. Files lie in a temporary folder and are removed; a million
rows need 0.4 GB.
"""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import exactk
from benchmarks import harness
from benchmarks.harness import MEGABYTE, Options, Record, Row, memory

K = 10
CLASSES = 5
COLUMNS = 100
ROWS = 1_000
FILE_ROWS = 1_000_000
LADDERS = {
    "by_rows": [(n, COLUMNS) for n in (10_000, 100_000, 1_000_000, 10_000_000)],
    "by_columns": [(ROWS, d) for d in (100, 1_000, 10_000, 100_000)],
    # What a table of a billion rows and a thousand columns would need is told from this one.
    "sample": [(200_000, 1_000)],
}


def some_rows(n: int, d: int, seed: int) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
    """Noise, and K columns that are shifted by class."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, CLASSES, n)
    X = rng.standard_normal((n, d), dtype=np.float32)
    shift = np.random.default_rng(0).normal(0.0, 0.5, (CLASSES, K)).astype(np.float32)
    planted = np.linspace(0, d - 1, K).astype(int)
    X[:, planted] += shift[y]
    return X, y


def write_files(folder: Path, n: int, d: int) -> None:
    """Write a table as Parquet files, a block at a time."""
    import pyarrow as pa
    from pyarrow import parquet

    step = max(1, 25_000_000 // d)
    writer: Any = None
    for start in range(0, n, step):
        X, y = some_rows(min(step, n - start), d, seed=1 + start)
        table = pa.table({**{f"x{j}": X[:, j] for j in range(d)}, "y": y})
        if writer is None or start % FILE_ROWS == 0:
            if writer is not None:
                writer.close()
            writer = parquet.ParquetWriter(
                folder / f"part-{start:09d}.parquet", table.schema, compression="none",
                use_dictionary=False,
            )  # fmt: skip
        writer.write_table(table)
    writer.close()


def rung(kind: str, n: int, d: int, folder: str) -> Row:
    """Seconds and peak memory of one table, in this process."""
    X, y = some_rows(n, d, seed=1) if kind == "by_columns" else (None, None)
    base = memory("VmRSS")
    start = time.perf_counter()
    if kind == "by_columns":
        problem = exactk.Problem.from_arrays(X, y)
    else:
        problem = exactk.Problem.from_files(folder, target="y")
    read = time.perf_counter() - start
    result = exactk.solve(problem, K)
    planted = set(np.linspace(0, d - 1, K).astype(int).tolist())
    return {
        "rows": n,
        "columns": d,
        "read_seconds": read,
        "solve_seconds": time.perf_counter() - start - read,
        "memory_bytes": memory("VmHWM") - base,
        "table_bytes": 4 * n * d,
        "gram_columns": problem.gram_columns_read,
        "planted_found": len(planted & set(result.support.tolist())),
    }


def ladder(kind: str, options: Options) -> Iterator[Row]:
    """Each rung in a process of its own, with its files written before and removed afterwards."""
    shapes = LADDERS[kind]
    for n, d in shapes[: len(shapes) // 2] if options.quick else shapes:
        with tempfile.TemporaryDirectory() as folder:
            if kind != "by_columns":
                write_files(Path(folder), n, d)
            # The first run finds cold files and a cold processor; small rungs are noisy.
            runs = 3 if n * d <= 100_000_000 else 2
            found = [harness.in_new_process(rung, kind, n, d, folder) for _ in range(runs)]
        yield min(found, key=_total)


PARTS = {kind: partial(ladder, kind) for kind in LADDERS}


def _total(record: Record) -> float:
    return float(record["read_seconds"] + record["solve_seconds"])


def exponent(sizes: Sequence[float], values: Sequence[float]) -> float:
    """Slope of the values over the sizes on logarithmic axes, by least squares."""
    return float(np.polyfit(np.log(sizes), np.log(np.maximum(values, 1e-9)), 1)[0])


def exponents(rungs: Sequence[Row], size: str) -> str:
    """Fitted growth of time and memory over all rungs and over the upper half."""
    sizes = [rung[size] for rung in rungs]
    if len(rungs) < 4:
        return "Too few rungs for fitted exponents."
    upper = len(rungs) // 2
    shown = []
    for name, values in (
        ("time", [_total(rung) for rung in rungs]),
        ("memory", [rung["memory_bytes"] for rung in rungs]),
    ):
        half = exponent(sizes[upper:], values[upper:])
        shown.append(f"{name} {exponent(sizes, values):.2f} (upper half {half:.2f})")
    return f"Fitted exponents: {', '.join(shown)}."


def extrapolated(sample: Row, cores: int) -> str:
    """What a billion rows of a thousand columns would take, at the rate of the sample."""
    n, d = 1_000_000_000, sample["columns"]
    hours = n / sample["rows"] * sample["read_seconds"] * cores / 3600
    seconds, size = hours / 64 * 3600, 4 * n * d
    partitions, part = n // 250_000, 8 * d * d / MEGABYTE
    height = math.ceil(math.log(partitions, 8))
    return (
        f"{sample['rows']:,} rows of {d:,} columns were read in {sample['read_seconds']:.2f} s by "
        f"{cores} cores. At that rate 10⁹ rows take {hours:,.0f} core hours: "
        f"{seconds / 60:,.0f} minutes on 64 cores, if storage delivers their {size / 1e12:.0f} TB "
        f"(float32, uncompressed) at {size / 1e9 / seconds:,.1f} GB a second. In {partitions:,} "
        f"partitions of 250,000 rows (1 GB each) every partition comes to {part:.0f} MB, "
        f"{partitions * part / 1024:,.0f} GB in all, which workers write and merge in {height} "
        f"levels of eight; {part:.0f} MB reach the driver. The search sees only these: "
        f"{sample['solve_seconds']:.2f} s for k = {K} here, whatever the number of rows."
    )


def report(record: Record) -> str:
    """The ladders as Markdown."""
    parts = [f"{record['date']}, {record['processor']}, {record['threads']} threads."]
    for kind, size, title in (
        ("by_rows", "rows", f"Rows, {COLUMNS} columns, Parquet"),
        ("by_columns", "columns", f"Columns, {ROWS:,} rows, array"),
        ("sample", "", "A thousand columns, Parquet"),
    ):
        header = ["rows", "columns", "read, s", "solve, s", "peak MB beyond the start",
                  "table MB (float32)", "planted columns found"]  # fmt: skip
        rows = [
            [
                f"{r['rows']:,}",
                f"{r['columns']:,}",
                f"{r['read_seconds']:.3g}",
                f"{r['solve_seconds']:.3g}",
                f"{r['memory_bytes'] / MEGABYTE:,.0f}",
                f"{r['table_bytes'] / MEGABYTE:,.0f}",
                f"{r['planted_found']} of {K}",
            ]
            for r in record.get(kind, ())
        ]
        if rows:
            parts += [f"{title}:", harness.markdown(header, rows)]
        if rows and size:
            parts.append(exponents(record[kind], size))
    parts += [extrapolated(sample, record["threads"]) for sample in record.get("sample", ())]
    return "\n\n".join(parts)
