"""What the benchmarks share: records, options, clocks, processes and tables."""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import date
from importlib import metadata
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Generic, ParamSpec, TypeVar

from exactk.utils.atomic_write import replace_text

P = ParamSpec("P")
T = TypeVar("T")

Row = dict[str, Any]
Record = dict[str, Any]

RESULTS = Path(__file__).resolve().parent / "results"
MEGABYTE = 2**20
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)
LIBRARIES = (
    "exactk", "numpy", "scipy", "scikit-learn", "abess", "fastcan", "skglm", "skrebate",
    "mrmr-selection", "skfeature-chappers", "torch", "skscope", "jax",
)  # fmt: skip


class Options(argparse.Namespace):
    """Options of a run, and what its parts tell the runner.

    Attributes
    ----------
    only : list of str
        Parts to measure.
    quick : bool
    add : bool
        Keep the stored rows, and measure only those that are missing.
    threads : int
    settings : dict
        Kept in the record beside the rows of the part that is being measured.
    command : str
        The command that measures this part, with the defaults of the options.
    missing : set of str
        Data sets that cannot be loaded here; a part that lacks one is not stored.
    rows : list of dict
        Rows of the part that is being measured, with the stored ones if `add` is set.
    """

    def __init__(self) -> None:
        self.add = False
        self.settings: dict[str, Any] = {}
        self.command = ""
        self.missing: set[str] = set()
        self.rows: list[Row] = []

    def has(self, **values: Any) -> bool:
        """Whether a row of this part has these values."""
        return any(all(row.get(name) == value for name, value in values.items())
                   for row in self.rows)  # fmt: skip


def record_path(name: str) -> Path:
    """Path of the record of a benchmark."""
    return RESULTS / f"{name}.jsonl"


def read_parts(name: str) -> dict[str, tuple[Row, list[Row]]]:
    """Return the header and the rows of each part of a stored record; empty without a record."""
    parts: dict[str, tuple[Row, list[Row]]] = {}
    path = record_path(name)
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        item = json.loads(line)
        if "benchmark" in item:
            header, rows = item, list[Row]()
            parts[item["part"]] = header, rows
        else:
            rows.append(item)
    return parts


def write_parts(name: str, parts: dict[str, tuple[Row, list[Row]]]) -> None:
    """Store a record: for each part a line with its header, and a line for each row."""
    items = [item for header, rows in parts.values() for item in (header, *rows)]
    lines = [json.dumps(rounded(item), ensure_ascii=False, allow_nan=False) for item in items]
    RESULTS.mkdir(exist_ok=True)
    replace_text(record_path(name), "\n".join(lines) + "\n")


def make_header(name: str, part: str, options: Options) -> Row:
    """Return how, when and with what a part is measured; nothing that names the machine."""
    from exactk.papers.experiments.environment import machine

    return {
        "benchmark": name,
        "part": part,
        "command": options.command,
        "date": date.today().isoformat(),
        "python": platform.python_version(),
        "versions": installed_versions(),
        "threads": options.threads,
        "cores": os.cpu_count(),
        "processor": machine()["processor"],
        "settings": options.settings,
    }


def store_part(name: str, part: str, options: Options) -> None:
    """Put what was measured of a part into the stored record; the other parts stay."""
    new = {part: (make_header(name, part, options), options.rows)}
    write_parts(name, {**read_parts(name), **new})


def as_record(parts: dict[str, tuple[Row, list[Row]]]) -> Record:
    """Return what reports read: the rows of each part, and all settings, by name.

    Date, versions, threads and so on are those of the first part; ``headers`` has those of all.
    """
    headers = {part: header for part, (header, _) in parts.items()}
    record = dict(next(iter(headers.values())))
    for part, (header, rows) in parts.items():
        record |= {**header["settings"], part: rows}
    return {**record, "headers": headers}


def read_record(name: str) -> Record:
    """Return the stored record of a benchmark; end the program if there is none."""
    parts = read_parts(name)
    if not parts:
        sys.exit(f"there is no record of {name}; make it: python -m benchmarks {name}")
    return as_record(parts)


def rounded(value: Any) -> Any:
    """Floats with ten significant digits, infinities and nans as null, the rest as it is."""
    if isinstance(value, float):
        return float(f"{value:.10g}") if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: rounded(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [rounded(inner) for inner in value]
    return value


def installed_versions() -> dict[str, str]:
    """Versions of the libraries that are installed."""
    found: dict[str, str] = {}
    for name in LIBRARIES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


@dataclass(frozen=True)
class Timing(Generic[T]):
    """Seconds of repeated runs, and what the last of them returned."""

    seconds: tuple[float, ...]
    value: T

    @property
    def best(self) -> float:
        """The shortest run: the least disturbed by whatever else the machine does."""
        return min(self.seconds)

    @property
    def median(self) -> float:
        """The median run."""
        return statistics.median(self.seconds)


def timed(run: Callable[[], T], runs: int = 5, budget: float = 1.0) -> Timing[T]:
    """Call `run` up to `runs` times, but not again once `budget` seconds are spent."""
    seconds: list[float] = []
    while True:
        start = time.perf_counter()
        value = run()
        seconds.append(time.perf_counter() - start)
        if len(seconds) >= runs or sum(seconds) >= budget:
            return Timing(tuple(seconds), value)


def pin_threads(threads: int) -> None:
    """Start this process anew with `threads` threads for every numerical library.

    The libraries read these variables when they are loaded, so that setting them later would
    not reach all of them alike.
    """
    wanted = dict.fromkeys(THREAD_VARIABLES, str(threads))
    if any(os.environ.get(name) != value for name, value in wanted.items()):
        os.environ.update(wanted)
        sys.stdout.flush()
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


def in_new_process(function: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
    """Return what a function returns in a new process, whose peak memory is its own."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(function, *args, **options).result()


def memory(what: str) -> int:
    """Resident bytes of this process on Linux: "VmRSS" for now, "VmHWM" for the peak."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(what))


def geometric_mean(values: Iterable[float]) -> float:
    """Geometric mean; of nothing, not a number."""
    logs = [math.log(value) for value in values]
    return math.exp(statistics.fmean(logs)) if logs else math.nan


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table: first column to the left, the others to the right."""
    lines = [
        "| " + " | ".join(header) + " |",
        "| " + " | ".join(["---"] + ["---:"] * (len(header) - 1)) + " |",
    ]
    lines.extend("| " + " | ".join(row) + " |" for row in rows)
    return "\n".join(lines)


def milliseconds(seconds: float) -> str:
    """Seconds as milliseconds with about three digits."""
    value = 1e3 * seconds
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def mark(good: bool) -> str:
    """Mark of a target that is met or missed."""
    return "✓" if good else "✗"
