"""The command line ``exactk``. This module imports little, so that Ctrl-C is handled early."""

from __future__ import annotations

import os
import signal
import sys
from importlib.util import find_spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType
    from typing import Any, NoReturn

__all__ = ["interrupted", "main", "start_work"]

NEEDED = ("click", "rich", "pyarrow")
BAD_INPUT = 2
INTERRUPTED = 130
NOTHING = "Error: interrupted; nothing was written.\n"
# Seconds until Ctrl-C is tried again while a module is being imported.
RETRY = 0.02


class _Ctrl:
    """What Ctrl-C did and does: before the work starts, it ends the process at once."""

    pressed = False
    working = False


def main(args: Sequence[str] | None = None) -> NoReturn:
    """Run one command and exit: 0 done, 2 wrong usage or input, 130 interrupted.

    Parameters
    ----------
    args : sequence of str, optional
        Words of the command line; those of the process by default.
    """
    try:
        with _Handlers():
            code = _run(args)
    except KeyboardInterrupt:
        sys.stderr.write(NOTHING)
        code = INTERRUPTED
    if args is None:
        # The command is done: Ctrl-C has nothing left to stop while the process ends.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.exit(code)


def _run(args: Sequence[str] | None) -> int:
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        sys.stderr.write(
            f"Error: the command line needs {', '.join(missing)}; "
            'install with: pip install "exactk[cli]"\n'
        )
        return BAD_INPUT
    from exactk.cli.app import run

    return run(args)


def start_work() -> None:
    """Make Ctrl-C raise KeyboardInterrupt from now on, so that a result can be returned."""
    _Ctrl.working = True


def interrupted() -> bool:
    """Return whether Ctrl-C was pressed."""
    return _Ctrl.pressed


class _Handlers:
    """Handles Ctrl-C inside a block of the main thread, and restores the handlers after it."""

    def __enter__(self) -> None:
        _Ctrl.pressed = _Ctrl.working = False
        self.before: Any = None
        if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
            # A script runs this in the background: its Ctrl-C is for others.
            return
        try:
            self.before = signal.signal(signal.SIGINT, _on_interrupt)
        except ValueError:
            # Only the main thread has signals.
            return
        self.hook = sys.unraisablehook
        sys.unraisablehook = self._unraisable
        if hasattr(signal, "setitimer"):
            self.alarm = signal.signal(signal.SIGALRM, _on_interrupt)

    def __exit__(self, *error: object) -> None:
        if self.before is None:
            return
        sys.unraisablehook = self.hook
        if signal.getsignal(signal.SIGINT) is _on_interrupt:
            signal.signal(signal.SIGINT, self.before)
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, self.alarm)

    def _unraisable(self, problem: Any) -> None:
        """Raise an interrupt again that came where Python cannot raise, such as a destructor."""
        if isinstance(problem.exc_value, KeyboardInterrupt) and hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, RETRY)
        else:
            self.hook(problem)


def _on_interrupt(number: int, frame: FrameType | None) -> None:
    _Ctrl.pressed = True
    if not _Ctrl.working:
        os.write(2, NOTHING.encode())
        os._exit(INTERRUPTED)
    if hasattr(signal, "setitimer") and _is_importing(frame):
        # Libraries turn an interrupt during their import into other errors, or lose it.
        signal.setitimer(signal.ITIMER_REAL, RETRY)
        return
    raise KeyboardInterrupt


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back
    return False
