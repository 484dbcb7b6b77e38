"""A progress line for a person who waits: a bar by rich where it can draw one, else log lines."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from importlib.util import find_spec

from exactk.utils.monitor import Progress

__all__ = ["find_bar", "row_bar", "show_count", "show_progress"]

logger = logging.getLogger(__name__)

Draw = Callable[[int, int | None, str], None]

# Often enough to show life, rare enough not to fill a log.
LOG_EVERY = 5.0


@contextmanager
def show_progress(description: str, verbose: int) -> Iterator[Callable[[Progress], None] | None]:
    """Show how far a method is until the block ends, if that is wanted.

    Parameters
    ----------
    description : str
        Words in front of the bar.
    verbose : int
        0 shows nothing.

    Yields
    ------
    callable or None
        Give it to `Monitor` as `on_progress`.

    Examples
    --------
    >>> with show_progress("exchange, k=5", verbose=0) as show:
    ...     print(show)
    None
    """
    if not verbose:
        yield None
        return
    if drawing := find_bar():
        with drawing(description) as draw:
            yield lambda p: draw(p.done, p.total, _words(p))
        return
    log = _log_lines()

    def show(progress: Progress) -> None:
        of = "" if progress.total is None else f" of {progress.total}"
        log(f"{description}: step {progress.done}{of}, {_words(progress)}")

    yield show


def _words(progress: Progress) -> str:
    return ", ".join(filter(None, (f"objective {progress.objective:.6g}", progress.note)))


@contextmanager
def _rich_bar(description: str) -> Iterator[Draw]:
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as RichProgress

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[words]}", markup=False),
        TimeElapsedColumn(),
    )
    with RichProgress(*columns, console=Console(stderr=True), transient=True) as display:
        task = display.add_task(description, total=None, words="")

        def show(done: int, total: int | None, words: str) -> None:
            display.update(task, completed=done, total=total, words=words)

        yield show


def _log_lines() -> Callable[[str], None]:
    """Return a function that logs what it is given, if the last line is some time ago."""
    last = time.monotonic()

    def log(line: str) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= LOG_EVERY:
            last = now
            logger.info(line)

    return log


def find_bar() -> Callable[[str], AbstractContextManager[Draw]] | None:
    """Return what draws a bar where a person looks, or None."""
    if find_spec("rich") is None:
        return None
    # Who is in a notebook has imported IPython, whose shell then has a kernel. There rich draws
    # with ipywidgets, and warns without them.
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    in_notebook = getattr(shell, "kernel", None) is not None
    can_draw = find_spec("ipywidgets") is not None if in_notebook else sys.stderr.isatty()
    return _rich_bar if can_draw else None


@contextmanager
def row_bar(description: str) -> Iterator[Callable[[int, int | None], None]]:
    """Show how many rows were read until the block ends.

    Parameters
    ----------
    description : str
        Words in front of the bar.

    Yields
    ------
    callable
        Takes the rows read, and how many there are or None.

    Examples
    --------
    >>> with row_bar("reading") as show:
    ...     show(1_000, None)
    """
    if drawing := find_bar():
        with drawing(description) as draw:
            yield lambda done, total: draw(done, total, f"{done:,} rows")
        return
    log = _log_lines()

    def show(done: int, total: int | None) -> None:
        of = "" if total is None else f" of {total:,}"
        log(f"{description}: {done:,}{of} rows")

    yield show


@contextmanager
def show_count(what: str, total: int, verbose: int) -> Iterator[Callable[[int], None]]:
    """Show how many are done until the block ends, if that is wanted.

    Parameters
    ----------
    what : str
        What the pieces are, in front of the bar.
    total : int
    verbose : int
        0 shows nothing.

    Yields
    ------
    callable
        Takes how many are done.

    Examples
    --------
    >>> with show_count("folds", 5, verbose=0) as show:
    ...     show(1)
    """
    if not verbose:
        yield lambda done: None
        return
    if drawing := find_bar():
        with drawing(what) as draw:
            yield lambda done: draw(done, total, f"{done} of {total}")
        return
    log = _log_lines()
    yield lambda done: log(f"{what}: {done} of {total}")
