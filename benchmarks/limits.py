"""How near exactk comes to what the machine allows: wide data, tall data, import.

wide    time at effort=0 beside single passes over X
tall    moments beside `X.T @ X`: rate and memory
import  `import exactk` after `import sklearn.base`
"""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
from collections.abc import Iterator

import numpy as np

import exactk
from benchmarks import data, harness
from benchmarks.harness import MEGABYTE, Options, Record, Row, mark, memory
from exactk.data.moments import Moments

SIZES = (1, 5, 10, 20, 50)
TALL_SHAPES = ((2_000, 1_000), (200_000, 500))
WIDE_FACTOR = 2.5
TALL_RATE = 0.7
IMPORT_SECONDS = 0.1


def wide(options: Options) -> Iterator[Row]:
    """Total time at effort=0 against the passes over X that cannot be avoided.

    The denominator is one `X.T @ Y` and one `X.T @ x` for each Gram column that was read.
    """
    dataset = data.load("wide")
    X, Y = dataset.X, dataset.outputs
    column = np.ascontiguousarray(X[:, 0])
    cross = harness.timed(lambda: X.T @ Y, runs=20).best
    one_pass = harness.timed(lambda: X.T @ column, runs=20).best
    for k in SIZES[:3] if options.quick else SIZES:

        def run(k: int = k) -> int:
            problem = exactk.Problem.from_arrays(X, dataset.y, task="regression")
            exactk.solve(problem, k, effort=0)
            return int(problem.gram_columns_read)

        timing = harness.timed(run, runs=7, budget=5.0)
        floor = cross + timing.value * one_pass
        yield {
            "k": k,
            "seconds": timing.best,
            "columns_read": timing.value,
            "cross_seconds": cross,
            "pass_seconds": one_pass,
            "factor": timing.best / floor,
        }


def make_tall(n: int, d: int) -> tuple[data.Floats, data.Floats]:
    """Random rows, written in place so that making them leaves no larger peak behind."""
    rng = np.random.default_rng(n)
    X = np.empty((n, d))
    rng.standard_normal(out=X)
    return X, rng.standard_normal((n, 5))


def tall_rate(n: int, d: int) -> Row:
    """Rate of accumulating moments relative to a plain `X.T @ X`, run in turns."""
    X, Y = make_tall(n, d)
    plain: list[float] = []
    ours: list[float] = []
    for _ in range(3):
        plain.extend(harness.timed(lambda: X.T @ X, runs=3, budget=3.0).seconds)
        ours.extend(harness.timed(lambda: Moments.from_arrays(X, Y), runs=3, budget=3.0).seconds)
    return {"plain_seconds": min(plain), "seconds": min(ours), "rate": min(plain) / min(ours)}


def tall_memory(n: int, d: int) -> Row:
    """Peak memory beyond X and Y while moments are accumulated: of the process and of Python."""
    X, Y = make_tall(n, d)
    # The first product makes BLAS take its own buffers, which no caller can avoid.
    small = X[:1_000]
    (small.T @ small).sum()
    Moments.from_arrays(small[:, :10], Y[: len(small)])
    before = memory("VmRSS")
    Moments.from_arrays(X, Y)
    peak = memory("VmHWM")
    tracemalloc.start()
    Moments.from_arrays(X, Y)
    traced = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return {
        "process_bytes": max(0, peak - before),
        "python_bytes": traced,
        "allowed_bytes": 3 * d * d * 8 + 64 * MEGABYTE,
    }


def tall(options: Options) -> Iterator[Row]:
    """Rate and memory for each tall shape; memory in a new process, where the peak is new."""
    for n, d in TALL_SHAPES[:1] if options.quick else TALL_SHAPES:
        peak = harness.in_new_process(tall_memory, n, d)
        yield {"rows": n, "features": d, **tall_rate(n, d), **peak}


def import_time(options: Options) -> Iterator[Row]:
    """Seconds that `import exactk` takes after `import sklearn.base`, in new processes."""
    code = (
        "import time; a = time.perf_counter(); import sklearn.base; b = time.perf_counter(); "
        "import exactk; print(b - a, time.perf_counter() - b)"
    )
    found = []
    for _ in range(3 if options.quick else 9):
        call = [sys.executable, "-c", code]
        answer = subprocess.run(call, capture_output=True, text=True, check=True).stdout
        found.append([float(word) for word in answer.split()])
    base, added = zip(*found, strict=True)
    yield {"sklearn_seconds": min(base), "added_seconds": min(added)}


PARTS = {"wide": wide, "tall": tall, "import": import_time}


def report(record: Record) -> str:
    """The measurements as Markdown, each against its target."""
    parts = [f"{record['date']}, {record['processor']}, {record['threads']} threads."]
    if "wide" in record:
        parts.append(f"Wide (500 × 20,000), effort=0; target: at most {WIDE_FACTOR} times.")
        header = ["k", "ms", "Gram columns read", "X.T @ Y, ms", "X.T @ x, ms", "times"]
        rows = [
            [
                str(r["k"]),
                harness.milliseconds(r["seconds"]),
                str(r["columns_read"]),
                harness.milliseconds(r["cross_seconds"]),
                harness.milliseconds(r["pass_seconds"]),
                f"{r['factor']:.2f} {mark(r['factor'] <= WIDE_FACTOR)}",
            ]
            for r in record["wide"]
        ]
        parts.append(harness.markdown(header, rows))
    if "tall" in record:
        parts.append(
            f"Tall, moments against `X.T @ X`; targets: at least {TALL_RATE:.0%} of its rate, "
            "memory beyond X under three d × d matrices and 64 MB."
        )
        header = ["shape", "X.T @ X, ms", "moments, ms", "rate", "process MB", "Python MB", "of MB"]
        rows = [
            [
                f"{r['rows']:,} × {r['features']:,}",
                harness.milliseconds(r["plain_seconds"]),
                harness.milliseconds(r["seconds"]),
                f"{r['rate']:.0%} {mark(r['rate'] >= TALL_RATE)}",
                f"{r['process_bytes'] / MEGABYTE:.0f} "
                f"{mark(r['process_bytes'] < r['allowed_bytes'])}",
                f"{r['python_bytes'] / MEGABYTE:.0f}",
                f"{r['allowed_bytes'] / MEGABYTE:.0f}",
            ]
            for r in record["tall"]
        ]
        parts.append(harness.markdown(header, rows))
    parts += [
        f"`import exactk` after `import sklearn.base` ({row['sklearn_seconds']:.2f} s): "
        f"{row['added_seconds']:.3f} s more {mark(row['added_seconds'] <= IMPORT_SECONDS)}; "
        f"target: at most {IMPORT_SECONDS} s."
        for row in record.get("import", ())
    ]
    return "\n\n".join(parts)
