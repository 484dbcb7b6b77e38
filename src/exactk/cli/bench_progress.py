"""How far a benchmark is: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from exactk.papers.experiments.runner import RunProgress

__all__ = ["duration", "progress"]

LINE_EVERY = 15.0
Show = Callable[["RunProgress"], None]


@contextmanager
def progress(name: str, quiet: bool = False) -> Iterator[Show]:
    """Show a run on standard error until the block ends.

    Parameters
    ----------
    name : str
        Words in front.
    quiet : bool
        Show nothing.

    Yields
    ------
    callable
        Takes a `RunProgress`.
    """
    if quiet:
        yield lambda _: None
    elif sys.stderr.isatty():
        with _bar(name) as show:
            yield show
    else:
        yield _lines(name)


def duration(seconds: float) -> str:
    """Return a time that a person can read.

    Examples
    --------
    >>> duration(42.4), duration(125), duration(7380), duration(200000)
    ('42 s', '2 min 05 s', '2 h 03 min', '2 d 8 h')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    if whole < 48 * 3600:
        return f"{whole // 3600} h {whole % 3600 // 60:02} min"
    return f"{whole // 86400} d {round(whole % 86400 / 3600)} h"


def _left(state: RunProgress) -> str:
    return "" if state.remaining is None else f"{duration(state.remaining)} left"


@contextmanager
def _bar(name: str) -> Iterator[Show]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[count]}", markup=False),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}", markup=False),
        TextColumn("{task.fields[running]}", markup=False),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as display:
        task = display.add_task(name, total=None, count="", left="", running="")

        def show(state: RunProgress) -> None:
            display.update(
                task,
                completed=state.done,
                total=state.total,
                count=f"{state.done}/{state.total}",
                left=_left(state),
                running=state.running[0] if state.running else "",
            )

        yield show


def _lines(name: str) -> Show:
    last = time.monotonic()

    def show(state: RunProgress) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= LINE_EVERY:
            last = now
            left = _left(state)
            text = f"exactk: {name}: {state.done} of {state.total} cells{left and ', ' + left}"
            click.echo(text, err=True)

    return show
