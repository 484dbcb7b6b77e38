"""What the workers of these tests are made to do."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

# Before the first task: unpickling a cell would count its imports as time of the task.
import exactk.papers.experiments.cells  # noqa: F401
from exactk.papers.experiments.pool import limit_time


def square(x: float) -> float:
    return x * x


def act(what: str) -> Any:
    """End in one of the ways in which a task can end."""
    if what == "raise":
        raise ValueError("k is\ntoo large")
    if what == "memory":
        raise MemoryError("Unable to allocate 9 EiB")
    if what == "leave":
        sys.exit("enough")
    if what == "exit":
        os._exit(3)
    if what == "segfault":
        os.kill(os.getpid(), signal.SIGSEGV)
    if what == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if what == "interrupt":
        os.kill(os.getpid(), signal.SIGINT)
    if what == "lambda":
        return lambda: None
    if what == "hang":
        time.sleep(120)
    if what == "spin":
        while True:
            pass
    if what == "hang within":
        with limit_time(0.3):
            time.sleep(120)
    if what == "late but outside":
        with limit_time(0.2):
            pass
        time.sleep(0.4)
    return what


def threads() -> dict[str, Any]:
    """How many threads the libraries of a worker would use."""
    import numpy as np
    import sklearn  # noqa: F401  (brings OpenMP)
    from threadpoolctl import threadpool_info

    np.ones((2, 2)) @ np.ones((2, 2))
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    return {
        "environment": [os.environ.get(name) for name in names],
        "pools": [pool["num_threads"] for pool in threadpool_info()],
    }


def tell_and_spin(place: str) -> None:
    """Write one's number to a file and never come back."""
    Path(place).write_text(str(os.getpid()))
    act("spin")


def measure(cell: Any, time_limit: float | None) -> dict[str, Any]:
    """Stand in for a protocol: the label says what happens."""
    act(cell.variant.label)
    results = [{"k": k, "objective": cell.seed / k, "measures": {}} for k in cell.sizes]
    return {"status": "done", "reason": "", "seconds": 0.5, "results": results}


def measure_other_data(cell: Any, time_limit: float | None) -> dict[str, Any]:
    """Measure a table that is not the one that the run began with."""
    return {"status": "done", "reason": "", "seconds": 0.5, "results": [], "checksum": "another"}
