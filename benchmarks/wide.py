"""Very wide dense tables, mapped from a file: time, memory, passes over the table, objective.

python -m benchmarks.wide            all cases, kept in results/wide.json
python -m benchmarks.wide --only narrow
python -m benchmarks.wide --report   the table of the kept record again

The columns come in groups that share a factor, the target is a sum of some of them and noise. Each
run has a process of its own, in which the peak of resident memory (mapped pages of the file count)
is its own as well. `--source` runs another copy of the package, an earlier one for example.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import harness, limits

Record = dict[str, Any]

GROUP = 20
SHARED = 0.5
ROWS_AT_ONCE = 64
GIGABYTE = 2**30
MEMORY_TARGET = 3 * GIGABYTE
SOLVES = (("greedy", None), ("exchange", 0.0), ("exchange", None))


@dataclass(frozen=True)
class Case:
    """A table of float32 with a planted target.

    Attributes
    ----------
    rows, features : int
    k : int
        How many columns carry the target, and how many are asked for.
    noise : float
        In multiples of the spread of what is planted.
    seed : int
    """

    rows: int
    features: int
    k: int
    noise: float
    seed: int


CASES = {
    "narrow": Case(1_000, 30_000, 50, 1.0, 6),
    "wide": Case(1_000, 200_000, 50, 1.0, 1),
    "very wide": Case(200, 1_000_000, 20, 0.5, 7),
}


def write_table(case: Case, folder: Path) -> None:
    """Write X.npy in pieces and y.npy."""
    rng = np.random.default_rng(case.seed)
    shape = (case.rows, case.features)
    X = np.lib.format.open_memmap(folder / "X.npy", mode="w+", dtype=np.float32, shape=shape)
    groups = -(-case.features // GROUP)
    for start in range(0, case.rows, ROWS_AT_ONCE):
        stop = min(start + ROWS_AT_ONCE, case.rows)
        factor = rng.standard_normal((stop - start, groups), dtype=np.float32)
        own = rng.standard_normal((stop - start, case.features), dtype=np.float32)
        shared = np.repeat(factor, GROUP, axis=1)[:, : case.features]
        X[start:stop] = SHARED**0.5 * shared + (1.0 - SHARED) ** 0.5 * own
    members = np.sort(rng.choice(case.features, case.k, replace=False))
    weight = rng.uniform(0.5, 1.5, case.k) * rng.choice([-1, 1], case.k)
    y = X[:, members].astype(np.float64) @ weight
    y += case.noise * y.std() * rng.standard_normal(case.rows)
    X.flush()
    np.save(folder / "y.npy", y)


def measure(folder: Path, k: int, method: str, effort: float | None) -> Record:
    """One solve in this process, from the mapped file to the result."""
    import exactk

    start = time.perf_counter()
    mapped = np.load(folder / "X.npy", mmap_mode="r")
    problem = exactk.Problem.from_arrays(mapped, np.load(folder / "y.npy"), task="regression")
    made = time.perf_counter()
    result = exactk.solve(problem, k, method, **({} if effort is None else {"effort": effort}))
    return {
        "read_seconds": made - start,
        "solve_seconds": time.perf_counter() - made,
        "peak_bytes": limits.memory("VmHWM"),
        "columns_read": problem.gram_columns_read,
        # Earlier versions did not count them.
        "passes": getattr(problem, "passes", None),
        "objective": result.objective,
        "share_left": result.residual / result.total,
        "status": str(result.status),
    }


def run(name: str, source: str | None) -> list[Record]:
    """All solves of a case, each in a process of its own."""
    case = CASES[name]
    records: list[Record] = []
    environment = dict(os.environ) if source is None else os.environ | {"PYTHONPATH": source}
    with tempfile.TemporaryDirectory() as folder:
        write_table(case, Path(folder))
        for method, effort in SOLVES:
            call = [sys.executable, "-m", "benchmarks.wide", "--measure", folder]
            call += [str(case.k), method, "default" if effort is None else str(effort)]
            answer = subprocess.run(
                call, capture_output=True, text=True, check=True, env=environment
            ).stdout
            records.append(
                {
                    "case": name, "rows": case.rows, "features": case.features, "k": case.k,
                    "method": method, "effort": effort, **json.loads(answer),
                }
            )  # fmt: skip
    return records


def report(record: Record) -> str:
    """The measurements as Markdown."""
    header = ["table, k", "method", "effort", "read, s", "solve, s", "peak GB", "Gram columns",
              "passes", "left of ‖HY‖²", "status"]  # fmt: skip
    rows = [
        [
            f"{r['rows']:,} × {r['features']:,}, {r['k']}",
            r["method"],
            "" if r["method"] == "greedy" else "default" if r["effort"] is None else "0",
            f"{r['read_seconds']:.1f}",
            f"{r['solve_seconds']:.1f}",
            f"{r['peak_bytes'] / GIGABYTE:.2f}",
            str(r["columns_read"]),
            "" if r["passes"] is None else str(r["passes"]),
            f"{r['share_left']:.5f}",
            r["status"],
        ]
        for r in record["runs"]
    ]
    wide = [r["peak_bytes"] for r in record["runs"] if r["case"] == "wide"]
    lines = [
        f"{record['date']}, {record['processor']}, {record['threads']} threads, float32 files.",
        harness.markdown(header, rows),
    ]
    if wide:
        mark = "✓" if max(wide) <= MEMORY_TARGET else "✗"
        lines.append(
            f"Memory at 1,000 × 200,000: at most {max(wide) / GIGABYTE:.2f} GB {mark}; target: "
            f"{MEMORY_TARGET / GIGABYTE:.0f} GB."
        )
    return "\n\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.wide", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", nargs="+", choices=list(CASES), default=list(CASES))
    parser.add_argument("--source", help="folder of another copy of the package; nothing is kept")
    parser.add_argument("--report", action="store_true", help="print the kept record, run nothing")
    parser.add_argument("--measure", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.measure:
        folder, k, method, effort = options.measure
        asked = None if effort == "default" or method == "greedy" else float(effort)
        print(json.dumps(measure(Path(folder), int(k), method, asked)))
        return
    if options.report:
        stored = harness.RESULTS / "wide.json"
        print(report(json.loads(stored.read_text(encoding="utf-8"))))
        return
    harness.pin_threads(options.threads)
    record = harness.circumstances(options.threads)
    record["runs"] = [r for name in options.only for r in run(name, options.source)]
    if set(options.only) == set(CASES) and options.source is None:
        harness.write_record("wide", record)
    print(report(record))


if __name__ == "__main__":
    main()
