"""Worker processes that may fail: one task each at a time, a deadline, and a reason for every end.

A task that raises, crashes its process, runs out of memory or does not come back is an outcome like
any other; the process is replaced and the next task begins. Every worker has one thread, whatever
the number of workers, so an answer does not depend on that number. What runs in a worker is in
`exactk.papers.experiments.pool`.
"""

from __future__ import annotations

import ctypes
import math
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
import traceback
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib import import_module
from multiprocessing import parent_process, resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from exactk.errors import ExactkError

__all__ = [
    "Outcome",
    "Pool",
    "Task",
    "WorkerError",
    "limit_time",
    "serve",
]


SET_PARENT_DEATH_SIGNAL = 1
# A kernel that runs out of memory ends a worker, not the run.
FIRST_TO_GO = "1000"
# Characters of a reason: some errors print whole tables.
MOST_WORDS = 500

_pipe: Connection | None = None


def serve(pipe: Connection, target: str) -> None:
    """Call a function for each tuple of arguments that comes, until the pipe ends.

    Parameters
    ----------
    pipe : Connection
        Arguments come in, and ``(status, value, reason)`` goes out. The first status is ``ready``,
        or ``broken`` if the function cannot be imported.
    target : str
        ``"package.module:function"``.
    """
    global _pipe
    _pipe = pipe
    _die_with_parent()
    # Ctrl-C reaches every process of a terminal; the parent decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(FIRST_TO_GO, encoding="ascii")
    # What a library prints must not mix with what the command prints.
    with suppress(OSError):
        os.dup2(2, 1)
    # How a solve ended is in its record.
    warnings.simplefilter("ignore")
    try:
        function = _function(target)
    except BaseException as error:
        # Of a worker process: its parent is told of every error, and ends it on Ctrl-C.
        pipe.send(("broken", None, describe(error)))
        return
    pipe.send(("ready", None, ""))
    while True:
        try:
            message = pipe.recv_bytes()
        except (EOFError, OSError):
            return
        pipe.send_bytes(_answer(function, message))


@contextmanager
def limit_time(seconds: float | None) -> Iterator[None]:
    """Have this process ended, and its task recorded as late, if the block takes longer.

    For work that may not look at the clock. Outside a worker it does nothing.

    Parameters
    ----------
    seconds : float or None
        None for no limit.

    Examples
    --------
    >>> with limit_time(10):
    ...     sum(range(10))
    45
    """
    if _pipe is None or seconds is None:
        yield
        return
    _pipe.send(("limit", seconds, ""))
    try:
        yield
    finally:
        _pipe.send(("limit", None, ""))


def _function(target: str) -> Callable[..., Any]:
    module, _, name = target.partition(":")
    function: Callable[..., Any] = getattr(import_module(module), name)
    return function


def _answer(function: Callable[..., Any], message: bytes) -> bytes:
    """Make the call; whatever comes of it is an answer, also what cannot be sent."""
    try:
        return pickle.dumps(("done", function(*pickle.loads(message)), ""))
    except BaseException as error:
        # As above: the answer of a task that failed, whatever it raised.
        return pickle.dumps(("failed", None, describe(error)))


def describe(error: BaseException) -> str:
    """Return what was raised and where, in one line.

    Examples
    --------
    >>> describe(ValueError("k is 0"))
    'ValueError: k is 0'
    """
    try:
        words = " ".join(str(error).split())
    except Exception:  # the text of an error of one's own may fail in any way
        words = "it cannot say why"
    if len(words) > MOST_WORDS:
        words = f"{words[:MOST_WORDS]}…"
    kind = "out of memory" if isinstance(error, MemoryError) else type(error).__name__
    text = f"{kind}: {words}" if words else kind
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return text
    # The name of the file says where; its folder would say whose machine it was.
    return f"{text} ({Path(frames[-1].filename).name}, line {frames[-1].lineno})"


def _die_with_parent() -> None:
    """Do not compute on for a run that was killed."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    threading.Thread(target=_watch_parent, daemon=True, name="exactk-watch").start()


def _watch_parent() -> None:
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


ONE_THREAD = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)
# Libraries are imported before a worker is ready, on a slow disk for long.
START_SECONDS = 300.0
# Between the end of its pipe and the end of a process.
CLOSING_SECONDS = 5.0


class WorkerError(ExactkError):
    """A worker cannot even start: no task can run."""


@dataclass(frozen=True)
class Task:
    """A call of the pool's function.

    Attributes
    ----------
    key : str
        By which its outcome is known.
    args : tuple
        Arguments; they must pickle.
    limit : float or None
        Seconds after which the worker is ended, from the moment it takes up the task.
    """

    key: str
    args: tuple[Any, ...] = ()
    limit: float | None = None


@dataclass(frozen=True)
class Outcome:
    """How a task ended.

    Attributes
    ----------
    key : str
    status : {"done", "failed", "time_limit"}
    value : object
        What the function gave back; None unless done.
    reason : str
        Why it is not done, in words.
    wall : float
        Seconds from the start of the task.
    """

    key: str
    status: str
    value: Any
    reason: str
    wall: float


@dataclass
class _Worker:
    process: BaseProcess
    pipe: Connection
    ready: bool = False
    task: Task | None = None
    began: float = field(default_factory=time.monotonic)
    limit: float = START_SECONDS
    """How long it may be silent, and from when on; at first until it is ready."""
    since: float = field(default_factory=time.monotonic)

    @property
    def until(self) -> float:
        return self.since + self.limit

    def extend_limit(self, seconds: float | None) -> None:
        """Set how long a part of the task may take; None: as long as the whole."""
        now = time.monotonic()
        whole = math.inf if self.task is None or self.task.limit is None else self.task.limit
        if seconds is None or now + seconds > self.began + whole:
            self.limit, self.since = whole, self.began
        else:
            self.limit, self.since = seconds, now

    def start_task(self, task: Task) -> None:
        began = time.monotonic()
        self.pipe.send(task.args)
        self.task, self.began = task, began
        self.extend_limit(None)

    def finish_task(self, status: str, value: Any, reason: str) -> Outcome:
        assert self.task is not None
        outcome = Outcome(self.task.key, status, value, reason, time.monotonic() - self.began)
        self.task, self.limit = None, math.inf
        return outcome

    def terminate(self) -> int | None:
        """Kill the process and return how it ended."""
        self.process.kill()
        self.process.join()
        code = self.process.exitcode
        self.pipe.close()
        self.process.close()
        return code


class Pool:
    """Processes that call one function.

    Parameters
    ----------
    target : str
        The function, as ``"package.module:function"``.
    jobs : int
        How many processes.

    Examples
    --------
    >>> with Pool("math:sqrt", jobs=1) as pool:
    ...     for outcome in pool.run([Task("two", (4.0,)), Task("none", (-1.0,))]):
    ...         print(outcome.key, outcome.status, outcome.value, outcome.reason)
    two done 2.0
    none failed None ValueError: ...
    """

    def __init__(self, target: str, jobs: int = 1) -> None:
        self.target = target
        self.jobs = jobs
        self._context = multiprocessing.get_context("spawn")
        self._workers: list[_Worker] = []

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """End all workers at once, whatever they do."""
        while self._workers:
            self._workers.pop().terminate()

    def run(
        self, tasks: Iterable[Task], on_start: Callable[[Task], None] | None = None
    ) -> Iterator[Outcome]:
        """Run all tasks and give their outcomes as they come, in any order.

        Parameters
        ----------
        tasks : iterable of Task
        on_start : callable, optional
            Told of each task that a worker takes up.

        Raises
        ------
        WorkerError
            If the function cannot be imported, or a worker cannot start.
        """
        waiting = deque(tasks)
        while waiting or any(worker.task for worker in self._workers):
            busy = sum(worker.task is not None for worker in self._workers)
            for _ in range(len(self._workers), min(self.jobs, busy + len(waiting))):
                self._workers.append(self._start())
            for worker in [w for w in self._workers if w.ready and w.task is None]:
                if waiting and self._assign(worker, waiting[0]):
                    task = waiting.popleft()
                    if on_start is not None:
                        on_start(task)
            self._wait()
            for worker in list(self._workers):
                outcome = self._poll(worker)
                if outcome is not None:
                    yield outcome

    def _start(self) -> _Worker:
        ours, theirs = self._context.Pipe()
        with _one_thread(), _no_interrupt():
            process = self._context.Process(
                target=serve, args=(theirs, self.target), name="exactk-bench", daemon=True
            )
            process.start()
        # The worker's end is then held by the worker alone: its death ends the pipe.
        theirs.close()
        return _Worker(process, ours)

    def _assign(self, worker: _Worker, task: Task) -> bool:
        """Give a task to a worker; False if it has died while it waited for one."""
        try:
            worker.start_task(task)
        except OSError:
            self._workers.remove(worker)
            worker.terminate()
            return False
        return True

    def _wait(self) -> None:
        """Sleep until a worker says something, dies, or is late."""
        if not self._workers:
            return
        until = min(worker.until for worker in self._workers)
        things = [thing for w in self._workers for thing in (w.pipe, w.process.sentinel)]
        wait(things, None if until == math.inf else max(0.0, until - time.monotonic()))

    def _poll(self, worker: _Worker) -> Outcome | None:
        """Read what a worker has to say; let it go if it is dead or late."""
        if worker.pipe.poll():
            try:
                # What it said before it died still counts.
                return self._on_message(worker, *worker.pipe.recv())
            except (EOFError, OSError):
                worker.process.join(CLOSING_SECONDS)
                return self._reap(worker, late=False)
        if not worker.process.is_alive():
            # It may have answered between the two questions.
            return None if worker.pipe.poll() else self._reap(worker, late=False)
        if time.monotonic() >= worker.until:
            return self._reap(worker, late=True)
        return None

    def _on_message(self, worker: _Worker, status: str, value: Any, reason: str) -> Outcome | None:
        if status == "ready":
            worker.ready, worker.limit = True, math.inf
        elif status == "limit":
            worker.extend_limit(value)
        elif status == "broken":
            raise WorkerError(f"a worker process cannot load {self.target!r}: {reason}")
        else:
            return worker.finish_task(status, value, reason)
        return None

    def _reap(self, worker: _Worker, late: bool) -> Outcome | None:
        self._workers.remove(worker)
        code = worker.terminate()
        if worker.task is not None:
            if late:
                return worker.finish_task(
                    "time_limit", None, f"no answer within {worker.limit:.3g} s"
                )
            return worker.finish_task("failed", None, _cause(code))
        if not worker.ready:
            raise WorkerError(
                f"a worker process does not start: {'it hangs' if late else _cause(code)}; a "
                f"script that runs benchmarks needs: if __name__ == '__main__'"
            )
        return None


def _cause(code: int | None) -> str:
    """Say how a process ended.

    Examples
    --------
    >>> _cause(3)
    'the process ended with exit code 3'
    >>> _cause(-11)
    'the process crashed (SIGSEGV)'
    """
    if code is None or code >= 0:
        return f"the process ended with exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    if name == "SIGKILL":
        return "the process was killed (SIGKILL): out of memory, or by hand"
    return f"the process crashed ({name})"


@contextmanager
def _one_thread() -> Iterator[None]:
    """Let processes that start now compute in one thread; libraries read this when they load."""
    before = {name: os.environ.get(name) for name in ONE_THREAD}
    os.environ.update(dict.fromkeys(ONE_THREAD, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def _no_interrupt() -> Iterator[None]:
    """Let processes that start now be deaf to Ctrl-C from their first moment on.

    The parent hears a Ctrl-C that comes meanwhile when the block ends.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    # Started first: it would undo the mask.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
