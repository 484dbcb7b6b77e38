"""Very wide dense tables, mapped from a file: time, memory, passes over the table, objective.

The columns come in groups that share a factor, the target is a sum of some of them and noise. Each
run has a process of its own, in which the peak of resident memory (mapped pages of the file count)
is its own as well.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

import exactk
from benchmarks.harness import Options, Record, Row, in_new_process, mark, markdown, memory

THREADS = 1
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


def measure(folder: Path, k: int, method: str, effort: float | None) -> Row:
    """One solve in this process, from the mapped file to the result."""
    start = time.perf_counter()
    mapped = np.load(folder / "X.npy", mmap_mode="r")
    problem = exactk.Problem.from_arrays(mapped, np.load(folder / "y.npy"), task="regression")
    made = time.perf_counter()
    result = exactk.solve(problem, k, method, **({} if effort is None else {"effort": effort}))
    return {
        "read_seconds": made - start,
        "solve_seconds": time.perf_counter() - made,
        "peak_bytes": memory("VmHWM"),
        "columns_read": problem.gram_columns_read,
        "passes": problem.passes,
        "objective": result.objective,
        "share_left": result.residual / result.total,
        "status": str(result.status),
    }


def run(name: str, options: Options) -> Iterator[Row]:
    """All solves of a case, each in a process of its own; a quick run has few columns."""
    case = CASES[name]
    if options.quick:
        case = replace(case, features=case.features // 20)
    with tempfile.TemporaryDirectory() as folder:
        write_table(case, Path(folder))
        for method, effort in SOLVES:
            found = in_new_process(measure, Path(folder), case.k, method, effort)
            yield {
                "case": name, "rows": case.rows, "features": case.features, "k": case.k,
                "method": method, "effort": effort, **found,
            }  # fmt: skip


PARTS = {name: partial(run, name) for name in CASES}


def solves(record: Record) -> list[Row]:
    """The rows of all cases of a record."""
    return [row for name in CASES for row in record.get(name, ())]


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
            str(r["passes"]),
            f"{r['share_left']:.5f}",
            r["status"],
        ]
        for r in solves(record)
    ]
    wide = [r["peak_bytes"] for r in record.get("wide", ())]
    lines = [
        f"{record['date']}, {record['processor']}, {record['threads']} threads, float32 files.",
        markdown(header, rows),
    ]
    if wide:
        most = max(wide)
        lines.append(
            f"Memory at 1,000 × 200,000: at most {most / GIGABYTE:.2f} GB "
            f"{mark(most <= MEMORY_TARGET)}; target: {MEMORY_TARGET / GIGABYTE:.0f} GB."
        )
    return "\n\n".join(lines)
