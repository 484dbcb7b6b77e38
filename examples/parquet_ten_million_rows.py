"""Ten million rows of Parquet, read once: five columns of twenty, in bounded memory.

For whoever has more rows than memory. Needs ``pip install "exactk[arrow]"``, and 0.9 GB of disk
for a temporary folder, which is removed at the end. Run it with

    python examples/parquet_ten_million_rows.py [--rows 10_000_000]
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
from pathlib import Path
from time import perf_counter

import numpy as np
import pyarrow as pa
from pyarrow import parquet

import exactk

COLUMNS = 20
FILE_ROWS = 100_000
WEIGHTS = {"usage_3": 0.8, "usage_7": -0.5, "usage_11": 0.4, "usage_12": 0.3, "usage_18": -0.2}


def some_rows(n: int, rng: np.random.Generator) -> pa.Table:
    """Make rows whose columns come with their neighbours, and a target made of five of them."""
    X = rng.standard_normal((n, COLUMNS), dtype=np.float32)
    X[:, 1:] += np.float32(0.5) * X[:, :-1]
    table = {f"usage_{j}": np.ascontiguousarray(X[:, j]) for j in range(COLUMNS)}
    churn = 2 * rng.standard_normal(n, dtype=np.float32)
    for name, weight in WEIGHTS.items():
        churn += np.float32(weight) * table[name]
    return pa.table({**table, "churn": churn})


def write(folder: Path, rows: int) -> None:
    """Write one file after the other; no two are ever in memory."""
    rng = np.random.default_rng(0)
    for start in range(0, rows, FILE_ROWS):
        table = some_rows(min(FILE_ROWS, rows - start), rng)
        path = folder / f"part-{start // FILE_ROWS:03}.parquet"
        # Random digits neither compress nor repeat.
        parquet.write_table(table, path, compression="none", use_dictionary=False)


def peak_megabytes() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak / 1e3  # bytes, or kilobytes


def main(rows: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        write(folder := Path(name), rows)
        files = sorted(folder.iterdir())
        size = sum(file.stat().st_size for file in files)
        before, start = peak_megabytes(), perf_counter()
        problem = exactk.Problem.from_files(folder, target="churn")
        result = exactk.solve(problem, len(WEIGHTS))
        seconds = perf_counter() - start
        peak, start = peak_megabytes(), perf_counter()
        # File after file keeps nothing, and takes less time than a scan of the whole folder.
        assert problem.n_rows == sum(parquet.read_table(file).num_rows for file in files)
        plain = perf_counter() - start
    print(f"rows           {problem.n_rows:,} in {len(files)} files, {size / 1e6:,.0f} MB")
    print(f"chosen         {', '.join(result.feature_names)}")
    print(f"planted found  {len(set(result.feature_names) & set(WEIGHTS))} of {len(WEIGHTS)}")
    times = f"{seconds / plain:.1f} times as long as pyarrow takes to read the files"
    print(f"one pass       {seconds:.1f} s, {times}")
    print(f"peak memory    {peak:.0f} MB in all, {before:.0f} MB while the files were written")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    main(parser.parse_args().rows)
