"""What the scripts share: threads, the clock, records and tables."""

from __future__ import annotations

import json
import math
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from importlib import metadata
from pathlib import Path
from typing import Any, Generic, TypeVar

T = TypeVar("T")

RESULTS = Path(__file__).resolve().parent / "results"
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


def geometric_mean(values: Iterable[float]) -> float:
    """Geometric mean; of nothing, not a number."""
    logs = [math.log(value) for value in values]
    return math.exp(statistics.fmean(logs)) if logs else math.nan


def processor() -> str:
    """Name of the processor's model, as the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.machine()


def installed_versions() -> dict[str, str]:
    """Versions of the libraries that take part, as far as they are installed."""
    found: dict[str, str] = {}
    for name in LIBRARIES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def circumstances(threads: int) -> dict[str, Any]:
    """When, with which versions and on what kind of machine: nothing that names the machine."""
    return {
        "date": date.today().isoformat(),
        "python": platform.python_version(),
        "versions": installed_versions(),
        "threads": threads,
        "cores": os.cpu_count(),
        "processor": processor(),
    }


def write_record(name: str, record: dict[str, Any], folder: Path = RESULTS) -> Path:
    """Write a record as JSON into the results folder and return where it is."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    path.write_text(as_json(record), encoding="utf-8")
    return path


def as_json(record: dict[str, Any]) -> str:
    """JSON with one line for each item of each part: short, and changes show line by line."""

    def compact(value: Any) -> str:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)

    parts = []
    for key, value in rounded(record).items():
        if not value:
            text = compact(value)
        elif isinstance(value, dict):
            items = [f"  {compact(inner)}: {compact(item)}" for inner, item in value.items()]
            text = "{\n" + ",\n".join(items) + "\n }"
        elif isinstance(value, list):
            text = "[\n" + ",\n".join(f"  {compact(item)}" for item in value) + "\n ]"
        else:
            text = compact(value)
        parts.append(f" {compact(key)}: {text}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def rounded(value: Any) -> Any:
    """Floats with ten significant digits, infinities and nans as null, the rest as it is."""
    if isinstance(value, float):
        return float(f"{value:.10g}") if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: rounded(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [rounded(inner) for inner in value]
    return value


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
