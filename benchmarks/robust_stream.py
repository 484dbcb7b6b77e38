"""Robust loss on a table that is not held: passes, seconds, and what it is good for.

python -m benchmarks.robust_stream            1,000,000 × 50 in Parquet, kept in results
python -m benchmarks.robust_stream --quick    50,000 × 50, printed
python -m benchmarks.robust_stream --report   the table of the kept record again

One row in twenty is wrong: its target follows columns that have nothing to do with the others.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks import harness

if TYPE_CHECKING:
    import exactk

Record = dict[str, Any]

FEATURES, PLANTED, DECOYS, OUTLIERS = 50, 10, 10, 0.05
FILES = 8
# Of squared loss; of l2,1 loss; and the same at a tolerance that goes with the size of its
# objective, which is a sum over the rows.
CONTESTANTS: dict[str, tuple[str, float | None]] = {
    "exchange (squared loss)": ("exchange", None),
    "mtfs (squared loss)": ("mtfs", None),
    "rfs, tol = 1e-4 (default)": ("rfs", 1e-4),
    "rfs, tol = 1e-6·n": ("rfs", 1e-6),
}


def write_table(folder: Path, n: int, seed: int = 0) -> None:
    """Planted columns first, then decoys, which one row in twenty follows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(seed)
    names = [f"x{j}" for j in range(FEATURES)]
    clean = rng.choice([-1.0, 1.0], PLANTED) * rng.uniform(0.5, 1.0, PLANTED)
    for number, rows in enumerate(np.array_split(np.arange(n), FILES)):
        X = rng.standard_normal((len(rows), FEATURES))
        y = X[:, :PLANTED] @ clean + rng.standard_normal(len(rows))
        wrong = rng.random(len(rows)) < OUTLIERS
        decoys = X[wrong, PLANTED : PLANTED + DECOYS]
        y[wrong] = 100.0 * (decoys.sum(axis=1) + rng.standard_normal(len(decoys)))
        columns = {name: X[:, j] for j, name in enumerate(names)} | {"y": y}
        pq.write_table(pa.table(columns), folder / f"part-{number}.parquet")


class Counted:
    """Counts the passes over a stream and times them."""

    def __init__(self, problem: exactk.Problem) -> None:
        self.seconds: list[float] = []
        self.stream = problem.stream
        assert self.stream is not None
        plain = self.stream.reduce

        def reduce(fold: Any, on_rows: Any = None) -> Any:
            start = time.perf_counter()
            try:
                return plain(fold, on_rows)
            finally:
                self.seconds.append(time.perf_counter() - start)

        self.stream.reduce = reduce  # type: ignore[method-assign]  # that is how it is timed


def pass_by_pass(problem: exactk.Problem, turns: int = 9) -> Record:
    """Seconds of a pass for moments and of one that weighs rows, the least of several turns."""
    from exactk.iterative.irls import AliveRows
    from exactk.iterative.passes import pass_table
    from exactk.streams.moments import stream_moments
    from exactk.streams.reweighted import PowerLoss

    assert problem.stream is not None
    table, rows = pass_table(problem, "centred"), AliveRows(FEATURES)
    W = table.products.solve(rows, 1.0)
    plain, weighing = [], []
    for _ in range(turns):
        start = time.perf_counter()
        stream_moments(problem.stream, task="regression")
        middle = time.perf_counter()
        table.reweigh(rows, W, PowerLoss(1.0))
        plain.append(middle - start)
        weighing.append(time.perf_counter() - middle)
    return {
        "moments_seconds": min(plain),
        "weighing_seconds": min(weighing),
        "times": min(weighing) / min(plain),
    }


def measure(n: int) -> Record:
    """Single passes, and every contestant, on the same files."""
    import warnings

    import exactk

    records: list[Record] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_table(folder, n)
        problem = exactk.Problem.from_files(folder, "y", task="regression")
        passes = pass_by_pass(problem)
        counted = Counted(problem)
        for words, (method, tol) in CONTESTANTS.items():
            counted.seconds.clear()
            options: Record = {} if tol is None else {"tol": tol if tol == 1e-4 else tol * n}
            start = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                result = exactk.solve(problem, PLANTED, method, **options)
            records.append(
                {
                    "method": words,
                    "rows": n,
                    "features": FEATURES,
                    "planted_found": int((result.support < PLANTED).sum()),
                    "planted": PLANTED,
                    "status": str(result.status),
                    "iterations": result.n_iter,
                    "passes": len(counted.seconds),
                    "seconds": time.perf_counter() - start,
                }
            )
    return {"passes": passes, "contestants": records}


def report(record: Record) -> str:
    """The measurements as Markdown."""
    first, passes = record["contestants"][0], record["passes"]
    header = ["method", "planted found", "iterations", "passes", "seconds"]
    rows = [
        [
            r["method"],
            f"{r['planted_found']} of {r['planted']}",
            str(r["iterations"]),
            str(r["passes"]),
            f"{r['seconds']:.1f}",
        ]
        for r in record["contestants"]
    ]
    return "\n\n".join(
        [
            f"{record['date']}, {record['processor']}, {record['threads']} threads; "
            f"{first['rows']:,} × {first['features']} in Parquet, {OUTLIERS:.0%} of rows wrong.",
            f"A pass for moments: {passes['moments_seconds']:.2f} s. A pass that weighs each row: "
            f"{passes['weighing_seconds']:.2f} s, {passes['times']:.2f} times as long.",
            harness.markdown(header, rows),
        ]
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.robust_stream", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="50,000 rows, printed and not kept")
    parser.add_argument("--report", action="store_true", help="print the kept record, run nothing")
    options = parser.parse_args(arguments)
    if options.report:
        stored = harness.RESULTS / "robust_stream.json"
        print(report(json.loads(stored.read_text(encoding="utf-8"))))
        return
    harness.pin_threads(options.threads)
    record = harness.circumstances(options.threads)
    record |= measure(50_000 if options.quick else 1_000_000)
    if not options.quick:
        harness.write_record("robust_stream", record)
    print(report(record))


if __name__ == "__main__":
    main()
