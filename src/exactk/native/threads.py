"""Running tasks on threads, and how many threads BLAS may take meanwhile.

Threaded products use NumPy only: the thread pools of NumPy's and SciPy's BLAS slow each other.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, nullcontext
from functools import cache
from typing import Any

__all__ = ["limit_threads", "one_blas_thread", "run_in_threads", "threads_allowed"]

_thread = threading.local()

# Numbers of a table up to which an estimator of scikit-learn gains nothing by more threads.
FEW = 2**18

# The number of threads of a BLAS belongs to its process. The first task to come sets it and the
# last to go restores it; a limit around each task would be lifted by whichever ends first.
_lock = threading.Lock()
_inside = 0
_limit: Any = None


def threads_allowed() -> int:
    """Threads that the process may use; `OMP_NUM_THREADS` is honoured."""
    allowed = os.environ.get("OMP_NUM_THREADS", "")
    try:
        threads = len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        threads = os.cpu_count() or 1
    return min(threads, int(allowed)) if allowed.isdigit() and int(allowed) else threads


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Leave BLAS one thread while any thread of this process is inside.

    Threads that wait for each other after every product of a few thousand numbers gain nothing,
    and lose much where other processes want the cores.

    Examples
    --------
    >>> with one_blas_thread():
    ...     pass
    """
    global _inside, _limit
    with _lock:
        if _inside == 0:
            _limit = _controller().limit(limits=1, user_api="blas")
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                _limit.restore_original_limits()


@cache
def _controller() -> Any:
    """Find the libraries once: that takes milliseconds, many partitions take less."""
    # Only what is loaded can be limited, and products are made with SciPy's.
    import scipy.linalg.blas  # noqa: F401
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


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
        # After Ctrl-C, too, no thread may go on with arrays that the caller gives back.
        wait([one for one in given if not one.cancel()])
        raise


@cache
def _pool(process: int, threads: int) -> ThreadPoolExecutor:
    """Threads that wait for work; a process that was forked has none of its parent's."""
    return ThreadPoolExecutor(threads, thread_name_prefix="exactk", initializer=_mark_thread)


def _mark_thread() -> None:
    _thread.is_ours = True
