"""Loading the libraries that the build compiled, and running tasks on threads.

NumPy defines every function that is compiled here; tests hold both to the same answers. The
libraries use no headers of Python or NumPy, so one wheel serves all Python versions.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from threading import local
from typing import Any

__all__ = [
    "built_library",
    "limit_threads",
    "one_blas_thread",
    "open_library",
    "run_in_threads",
    "threads_allowed",
]  # fmt: skip

_thread = local()

# Numbers of a table up to which an estimator of scikit-learn gains nothing by more threads.
FEW = 2**18


def built_library(name: str) -> Path:
    """Where the build puts the library that is compiled from ``<name>.c``."""
    suffix = ".dll" if sys.platform == "win32" else ".so"
    return Path(__file__).with_name(f"_{name}{suffix}")


def open_library(
    path: Path, symbol: str, wanted: int, loader: Callable[[str], Any] = ctypes.CDLL
) -> Any:
    """Return a library, or None: not built here, or switched off by ``EXACTK_NATIVE=0``.

    Parameters
    ----------
    path : Path
    symbol : str
        A function without arguments that says what the library was built for.
    wanted : int
        What it must say: a library built for another machine or version is left alone.
    loader : callable
        ``ctypes.CDLL`` lets other threads run meanwhile, ``ctypes.PyDLL`` does not.
    """
    if os.environ.get("EXACTK_NATIVE") == "0" or not path.exists():
        return None
    try:
        loaded = loader(str(path))
        function = getattr(loaded, symbol)
        function.restype = ctypes.c_int64
        return loaded if function() == wanted else None
    except (OSError, AttributeError):
        return None


def threads_allowed() -> int:
    """Threads that the process may use; `OMP_NUM_THREADS` is honoured."""
    allowed = os.environ.get("OMP_NUM_THREADS", "")
    try:
        threads = len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        threads = os.cpu_count() or 1
    return min(threads, int(allowed)) if allowed.isdigit() and int(allowed) else threads


@cache
def _thread_pools() -> Any:
    # scikit-learn brings it along.
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def one_blas_thread() -> Any:
    """Return a context in which BLAS has one thread, for many small products.

    Threads that wait for each other after every product of a few thousand numbers gain nothing,
    and lose much where other processes want the cores.

    Examples
    --------
    >>> with one_blas_thread():
    ...     pass
    """
    return _thread_pools().limit(limits=1, user_api="blas")


def limit_threads(size: int) -> Any:
    """Return a context for an estimator that is fitted to so many numbers: one thread for few.

    Examples
    --------
    >>> with limit_threads(1000):
    ...     pass
    """
    return one_blas_thread() if size <= FEW else nullcontext()


def run_in_threads(tasks: Iterable[Callable[[], None]]) -> None:
    """Run tasks in as many threads as the process may use.

    When one fails, or Ctrl-C ends the wait, those not begun are dropped and those under way are
    waited for: none writes to an array after this has returned.
    """
    threads = threads_allowed()
    todo = list(tasks)
    # A task that waits for a thread of the pool may hold the last one itself.
    if threads == 1 or len(todo) == 1 or getattr(_thread, "is_ours", False):
        for task in todo:
            task()
        return
    pool, given = _pool(os.getpid(), threads), list[Future[None]]()
    try:
        for task in todo:
            given.append(pool.submit(task))
        for done in given:
            done.result()
    except BaseException:
        wait([one for one in given if not one.cancel()])
        raise


@cache
def _pool(process: int, threads: int) -> ThreadPoolExecutor:
    """Threads that wait for work; a process that was forked has none of its parent's."""
    return ThreadPoolExecutor(threads, thread_name_prefix="exactk", initializer=_mark_thread)


def _mark_thread() -> None:
    _thread.is_ours = True
