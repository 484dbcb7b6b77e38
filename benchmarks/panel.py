"""The panel designer's case: k genes that tell cell types apart, from a large table of counts.

Counts of 138,732 cells and 37,509 genes, 15 types, are drawn in blocks and written to a temporary
folder (8 bytes an entry: 4.2 GB at 10 %). Every run is a process of its own, which reads them into
a CSR table (float32, int32 indices) and may use 16 GB of memory, the table included, or what the
machine has to give; seconds are those after reading the file.
"""

from __future__ import annotations

import resource
import tempfile
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

import exactk
from benchmarks import harness
from benchmarks.harness import MEGABYTE, Options, Record, Row, mark, memory

Floats = npt.NDArray[np.float32]

SHAPE = (138_732, 37_509)
QUICK_SHAPE = (6_000, 1_700)
CLASSES = 15
K = 50
FILLS = (0.01, 0.03, 0.1)
# Genes of each type that are FOLD times as frequent in its cells.
MARKERS = 20
FOLD = 8.0
SEED = 7
BLOCK_ROWS = 256
MEMORY_LIMIT = 16 * 2**30
# Left to others where the machine has less than that to give.
SPARE_MEMORY = 2 * 2**30
# A search that goes on for longer is ended; its status says so.
SEARCH_SECONDS = 120.0
QUICK_SECONDS = 10.0


@dataclass(frozen=True)
class Cells:
    """What the counts are drawn from.

    Attributes
    ----------
    base : ndarray of shape (d,)
        Expected count of each gene.
    depth : ndarray of shape (n,)
        What all counts of a cell are multiplied by.
    codes : ndarray of shape (n,)
        Type of each cell.
    markers : ndarray of shape (CLASSES, MARKERS)
        Genes that are more frequent in a type.
    """

    base: Floats
    depth: Floats
    codes: npt.NDArray[np.intp]
    markers: npt.NDArray[np.intp]

    def expected(self, rows: Any) -> Floats:
        """Expected counts of some cells."""
        out: Floats = self.depth[rows, None] * self.base
        for own, code in zip(out, self.codes[rows], strict=True):
            own[self.markers[code]] *= FOLD
        return out


def draw_cells(n: int, d: int, fill: float) -> Cells:
    """Genes and cells such that about a share `fill` of the counts is not zero."""
    rng = np.random.default_rng(SEED)
    base = rng.lognormal(0.0, 1.5, d).astype(np.float32)
    depth = rng.lognormal(0.0, 0.5, n).astype(np.float32)
    codes = rng.choice(CLASSES, n, p=rng.dirichlet(np.full(CLASSES, 3.0)))
    markers = rng.permutation(d)[: CLASSES * MARKERS].reshape(CLASSES, MARKERS)
    cells = Cells(base, depth, codes, markers)
    sample = cells.expected(rng.choice(n, min(n, 200), replace=False))
    low, high = 1e-6, 1e3
    for _ in range(40):
        middle = float(np.sqrt(low * high))
        share = float((middle * sample / (1.0 + middle * sample)).mean())
        low, high = (middle, high) if share < fill else (low, middle)
    return Cells(base * np.float32(low), depth, codes, markers)


def draw_block(cells: Cells, start: int) -> tuple[Any, Any, Any]:
    """Counts of some cells: entries a row, their genes, their values.

    Negative binomial with dispersion 1: one uniform number u gives the count ⌊log u / log q⌋ with
    q = μ / (1 + μ), which is not zero only where u is at most q.
    """
    rows = slice(start, min(start + BLOCK_ROWS, len(cells.depth)))
    q = cells.expected(rows)
    q /= 1.0 + q
    u = np.random.default_rng([SEED, start]).random(q.shape, dtype=np.float32)
    there = u <= q
    value = np.log(np.maximum(u[there], np.float32(1e-30))) / np.log(q[there])
    genes = np.nonzero(there)[1].astype(np.int32)
    return there.sum(axis=1), genes, np.maximum(np.floor(value), 1).astype(np.float32)


def write_table(folder: Path, shape: tuple[int, int], fill: float) -> None:
    """Draw the counts, block after block, and write them as the three arrays of a CSR table."""
    cells = draw_cells(*shape, fill)
    counts = [np.zeros(1, dtype=np.int64)]
    waiting: deque[Future[tuple[Any, Any, Any]]] = deque()
    with (
        (folder / "indices").open("wb") as indices,
        (folder / "data").open("wb") as data,
        ThreadPoolExecutor(2) as pool,
    ):
        for start in [*range(0, shape[0], BLOCK_ROWS), None, None, None]:
            if start is not None:
                waiting.append(pool.submit(draw_block, cells, start))
            if len(waiting) > 3 or (start is None and waiting):
                count, genes, values = waiting.popleft().result()
                counts.append(count)
                genes.tofile(indices)
                values.tofile(data)
    np.save(folder / "indptr.npy", np.cumsum(np.concatenate(counts)))
    np.save(folder / "codes.npy", cells.codes)
    np.save(folder / "markers.npy", cells.markers)


def read_table(
    folder: Path, shape: tuple[int, int]
) -> tuple[Any, npt.NDArray[np.intp], npt.NDArray[np.intp], int]:
    """The table, the types, the markers, and the bytes of the table."""
    ends = np.load(folder / "indptr.npy")
    codes, markers = np.load(folder / "codes.npy"), np.load(folder / "markers.npy")
    data = np.fromfile(folder / "data", dtype=np.float32)
    indices = np.fromfile(folder / "indices", dtype=np.int32)
    ends = ends.astype(np.int32) if ends[-1] < 2**31 else ends
    X = sparse.csr_array((data, indices, ends), shape=shape)
    return X, codes, markers, data.nbytes + indices.nbytes + ends.nbytes


def run_exactk(X: Any, codes: Any, effort: float | None) -> Row:
    """Read the margins and select K columns; without an effort, until the time is up."""
    options = {"effort": float("inf") if effort is None else effort}
    limit = QUICK_SECONDS if X.shape == QUICK_SHAPE else SEARCH_SECONDS
    start = time.perf_counter()
    problem = exactk.Problem.from_arrays(X, codes)
    read = time.perf_counter()
    result = exactk.solve(problem, K, time_limit=limit, **options)
    done = time.perf_counter()
    return {
        "read_seconds": read - start,
        "seconds": done - start,
        "status": str(result.status),
        "gram_columns": problem.gram_columns_read,
        "passes": problem.passes,
        "support": result.support.tolist(),
    }


def run_pass(X: Any, codes: Any) -> Row:
    """One plain product of SciPy: the least that anything has to do."""
    Y = np.eye(CLASSES)[codes]
    start = time.perf_counter()
    X.T @ Y
    return {"seconds": time.perf_counter() - start}


def run_filter(X: Any, codes: Any) -> Row:
    """The K best columns one by one, by scikit-learn's F-test."""
    from sklearn.feature_selection import SelectKBest, f_classif

    start = time.perf_counter()
    with np.errstate(divide="ignore", invalid="ignore"), warnings.catch_warnings():
        # It names the columns that are constant, all of them.
        warnings.simplefilter("ignore")
        chosen = SelectKBest(f_classif, k=K).fit(X, codes).get_support(indices=True)
    return {"seconds": time.perf_counter() - start, "support": chosen.tolist()}


RUNS: dict[str, Callable[[Any, Any], Record]] = {
    "X.T @ Y": run_pass,
    "SelectKBest": run_filter,
    "exactk, effort=0": lambda X, codes: run_exactk(X, codes, 0),
    "exactk": lambda X, codes: run_exactk(X, codes, None),
}


def available() -> int:
    """Bytes of memory that the system can give without swapping."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))


def child(folder: Path, shape: tuple[int, int], name: str) -> Row:
    """One run in this process: its own record, peak memory, and how good its columns are."""
    limit = min(MEMORY_LIMIT, available() - SPARE_MEMORY)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    X, codes, markers, size = read_table(folder, shape)
    before = time.process_time()
    try:
        record = {"run": name, **RUNS[name](X, codes)}
    except MemoryError:
        reason = f"more than {limit / 2**30:.0f} GB of memory"
        return {"run": name, "failed": reason, "table_bytes": size}
    record |= {
        "cpu_seconds": time.process_time() - before,
        "peak_bytes": memory("VmHWM"),
        "table_bytes": size,
        "entries": int(X.nnz),
    }
    chosen = record.pop("support", None)
    if chosen is not None:
        problem = exactk.Problem.from_arrays(X, codes)
        record["explained"] = 1.0 - problem.objective(chosen) / problem.total
        record["markers"] = int(np.isin(chosen, markers).sum())
        record["types"] = int(np.isin(markers, chosen).any(axis=1).sum())
    return record


def measure(fill: float, options: Options) -> Iterator[Row]:
    """All runs on one table."""
    shape = QUICK_SHAPE if options.quick else SHAPE
    with tempfile.TemporaryDirectory() as name:
        write_table(Path(name), shape, fill)
        for run in RUNS:
            found = harness.in_new_process(child, Path(name), shape, run)
            yield {"fill": fill, "rows": shape[0], "features": shape[1], **found}


PARTS = {f"{fill:.0%}": partial(measure, fill) for fill in FILLS}


def report(record: Record) -> str:
    """The measurements as a Markdown table, memory against its target."""
    runs = [row for part in PARTS for row in record.get(part, ())]
    shape = f"{runs[0]['rows']:,} × {runs[0]['features']:,}"
    header = [
        "filled", "run", "reading, s", "seconds", "CPU s", "of X.T @ Y", "table GB", "peak GB",
        "Gram columns", "passes", "explained", "markers", "types", "status",
    ]  # fmt: skip
    plain = {r["fill"]: r.get("seconds") for r in runs if r["run"] == "X.T @ Y"}
    rows = []
    for r in runs:
        if "failed" in r:
            rows.append([f"{r['fill']:.0%}", r["run"], *[""] * 11, r["failed"]])
            continue
        base = plain.get(r["fill"])
        peak = r["peak_bytes"]
        rows.append(
            [
                f"{r['fill']:.0%}",
                r["run"],
                f"{r['read_seconds']:.1f}" if "read_seconds" in r else "",
                f"{r['seconds']:.1f}",
                f"{r['cpu_seconds']:.1f}",
                f"{r['seconds'] / base:.2f}" if base else "",
                f"{r['table_bytes'] / 1024 / MEGABYTE:.2f}",
                f"{peak / 1024 / MEGABYTE:.2f} {mark(peak <= MEMORY_LIMIT)}",
                str(r.get("gram_columns", "")),
                str(r.get("passes", "")),
                f"{r['explained']:.4f}" if "explained" in r else "",
                str(r.get("markers", "")),
                str(r.get("types", "")),
                r.get("status", ""),
            ]
        )
    return "\n\n".join(
        [
            f"{record['date']}, {record['processor']}, {record['threads']} threads.",
            f"Counts of {shape}, {CLASSES} types, k = {K}; target: at most 16 GB. Markers: how "
            f"many of the columns are among the {CLASSES * MARKERS} planted; types: how many of "
            f"the {CLASSES} have one; explained: share of ‖HY‖² after a fit.",
            harness.markdown(header, rows),
        ]
    )
