"""What runs in a worker process of `exactk.bench.pool`: take a call, make it, say how it went."""

from __future__ import annotations

import ctypes
import os
import pickle
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from multiprocessing import parent_process
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

__all__ = ["serve", "within"]

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
def within(seconds: float | None) -> Iterator[None]:
    """Have this process ended, and its task recorded as late, if the block takes longer.

    For work that may not look at the clock. Outside a worker it does nothing.

    Parameters
    ----------
    seconds : float or None
        None for no limit.

    Examples
    --------
    >>> with within(10):
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
