"""How near exactk comes to what the machine allows: wide data, tall data, import.

python -m benchmarks.limits            all three, kept in results/limits.json
python -m benchmarks.limits --only import
python -m benchmarks.limits --report   the tables of the kept record again
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import data, harness

Record = dict[str, Any]

SIZES = (1, 5, 10, 20, 50)
TALL_SHAPES = ((2_000, 1_000), (200_000, 500))
WIDE_FACTOR = 2.5
TALL_RATE = 0.7
IMPORT_SECONDS = 0.1
MEGABYTE = 2**20


def wide() -> list[Record]:
    """Total time at effort=0 against the passes over X that cannot be avoided.

    The denominator is one `X.T @ Y` and one `X.T @ x` for each Gram column that was read.
    """
    import exactk

    dataset = data.load("wide")
    X, Y = dataset.X, dataset.outputs
    column = np.ascontiguousarray(X[:, 0])
    cross = harness.timed(lambda: X.T @ Y, runs=20).best
    one_pass = harness.timed(lambda: X.T @ column, runs=20).best
    records: list[Record] = []
    for k in SIZES:

        def run(k: int = k) -> int:
            problem = exactk.Problem.from_arrays(X, dataset.y, task="regression")
            exactk.solve(problem, k, effort=0)
            return int(problem.gram_columns_read)

        timing = harness.timed(run, runs=7, budget=5.0)
        floor = cross + timing.value * one_pass
        records.append(
            {
                "k": k,
                "seconds": timing.best,
                "columns_read": timing.value,
                "cross_seconds": cross,
                "pass_seconds": one_pass,
                "factor": timing.best / floor,
            }
        )
    return records


def make_tall(n: int, d: int) -> tuple[data.Floats, data.Floats]:
    """Random rows, written in place so that making them leaves no larger peak behind."""
    rng = np.random.default_rng(n)
    X = np.empty((n, d))
    rng.standard_normal(out=X)
    return X, rng.standard_normal((n, 5))


def tall_rate(n: int, d: int) -> Record:
    """Rate of accumulating moments relative to a plain `X.T @ X`, run in turns."""
    from exactk.data.moments import Moments

    X, Y = make_tall(n, d)
    plain: list[float] = []
    ours: list[float] = []
    for _ in range(3):
        plain.extend(harness.timed(lambda: X.T @ X, runs=3, budget=3.0).seconds)
        ours.extend(harness.timed(lambda: Moments.from_arrays(X, Y), runs=3, budget=3.0).seconds)
    return {"plain_seconds": min(plain), "seconds": min(ours), "rate": min(plain) / min(ours)}


def tall_memory(n: int, d: int) -> Record:
    """Peak memory beyond X and Y while moments are accumulated: of the process and of Python."""
    from exactk.data.moments import Moments

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


def memory(what: str) -> int:
    """Resident bytes of this process: "VmRSS" for now, "VmHWM" for the peak.

    The peak that `getrusage` tells starts, in a new process, at that of its parent.
    """
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(what))


def tall() -> list[Record]:
    """Rate and memory for each tall shape; memory in a fresh process, where the peak is new."""
    records: list[Record] = []
    for n, d in TALL_SHAPES:
        call = [sys.executable, "-m", "benchmarks.limits", "--memory-of", str(n), str(d)]
        answer = subprocess.run(call, capture_output=True, text=True, check=True).stdout
        records.append({"rows": n, "features": d, **tall_rate(n, d), **json.loads(answer)})
    return records


def import_time(repeats: int = 9) -> Record:
    """Seconds that `import exactk` takes after `import sklearn.base`, in fresh processes."""
    code = (
        "import time; a = time.perf_counter(); import sklearn.base; b = time.perf_counter(); "
        "import exactk; print(b - a, time.perf_counter() - b)"
    )
    base, added = [], []
    for _ in range(repeats):
        answer = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
        first, second = map(float, answer.stdout.split())
        base.append(first)
        added.append(second)
    return {"sklearn_seconds": min(base), "added_seconds": min(added)}


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
                f"{r['factor']:.2f} {word(r['factor'] <= WIDE_FACTOR)}",
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
                f"{r['rate']:.0%} {word(r['rate'] >= TALL_RATE)}",
                f"{r['process_bytes'] / MEGABYTE:.0f} "
                f"{word(r['process_bytes'] < r['allowed_bytes'])}",
                f"{r['python_bytes'] / MEGABYTE:.0f}",
                f"{r['allowed_bytes'] / MEGABYTE:.0f}",
            ]
            for r in record["tall"]
        ]
        parts.append(harness.markdown(header, rows))
    if "import" in record:
        added = record["import"]["added_seconds"]
        parts.append(
            f"`import exactk` after `import sklearn.base` "
            f"({record['import']['sklearn_seconds']:.2f} s): {added:.3f} s more "
            f"{word(added <= IMPORT_SECONDS)}; target: at most {IMPORT_SECONDS} s."
        )
    return "\n\n".join(parts)


def word(good: bool) -> str:
    """Mark of a target that is reached or missed."""
    return "✓" if good else "✗"


MEASURES: dict[str, Callable[[], Any]] = {"wide": wide, "tall": tall, "import": import_time}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.limits", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", nargs="+", choices=list(MEASURES), default=list(MEASURES))
    parser.add_argument("--report", action="store_true", help="print the kept record, run nothing")
    parser.add_argument("--memory-of", nargs=2, type=int, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.memory_of:
        print(json.dumps(tall_memory(*options.memory_of)))
        return
    if options.report:
        stored = harness.RESULTS / "limits.json"
        print(report(json.loads(stored.read_text(encoding="utf-8"))))
        return
    harness.pin_threads(options.threads)
    record = harness.circumstances(options.threads)
    record |= {name: MEASURES[name]() for name in options.only}
    if set(options.only) == set(MEASURES):
        harness.write_record("limits", record)
    print(report(record))


if __name__ == "__main__":
    main()
