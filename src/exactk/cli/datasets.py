"""``exactk datasets``: which data sets there are, getting them, and where they lie."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from exactk.cli.options import list_format
from exactk.errors import ExactkError, InputError, join_items

if TYPE_CHECKING:
    from exactk.papers.datasets import Entry
    from exactk.papers.datasets.fetching import Transfer
    from exactk.papers.datasets.local import LocalDataset

__all__ = ["datasets"]

FIELDS = (
    "name",
    "n",
    "d",
    "task",
    "classes",
    "outputs",
    "papers",
    "origin",
    "repository",
    "commit",
    "paths",
    "licence",
    "checksum",
    "note",
    "checked",
)
YOURS = "your folder"

folder_option = click.option(
    "--folder",
    type=click.Path(file_okay=False),
    metavar="FOLDER",
    help="Use this folder, not $EXACTK_DATA or the cache.",
)
paper_option = click.option(
    "--paper",
    type=click.Choice(["cdlsr", "ipfs", "rpfs", "nmapg", "gsrfs"]),
    help="Only the sets of one paper.",
)


@click.group()
def datasets() -> None:
    """Data sets of the papers: list, fetch, path."""


@datasets.command("list")
@paper_option
@click.option("--here", is_flag=True, help="Only sets that can be loaded now.")
@folder_option
@list_format
def list_sets(paper: str | None, here: bool, folder: str | None, style: str) -> None:
    """List the data sets, with their shape, papers, and whether they are here.

    Files of your own in the data folders come last; a large one is not read for its shape.
    """
    from exactk.papers.datasets import available, find
    from exactk.papers.datasets.local import local_datasets

    entries = _entries(paper)
    present = set(available([entry.name for entry in entries], folder=folder)[0])
    entries = [entry for entry in entries if entry.name in present or not here]
    own = local_datasets(folder) if paper is None else []
    if style == "json":
        rows = [
            {field: getattr(entry, field) for field in FIELDS}
            | {
                "here": entry.name in present,
                "file": _text(find(entry.name, folder=folder)),
                "fetchable": bool(entry.build),
            }
            for entry in entries
        ]
        rows += [_own_facts(mine) for mine in own]
        click.echo(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    lines: list[tuple[str, ...]] = [
        ("name", "rows", "columns", "classes", "papers", "here", "source")
    ]
    lines += [
        (
            entry.name,
            str(entry.n),
            str(entry.d),
            "-" if entry.classes is None else str(entry.classes),
            " ".join(entry.papers) or "-",
            "yes" if entry.name in present else "no",
            _source(entry),
        )
        for entry in entries
    ]
    lines += [_own_line(mine) for mine in own]
    widths = [max(len(line[column]) for line in lines) for column in range(6)]
    for line in lines:
        cells = [
            f"{cell:>{width}}" if column in (1, 2, 3) else f"{cell:{width}}"
            for column, (cell, width) in enumerate(zip(line, widths, strict=False))
        ]
        click.echo("  ".join([*cells, line[6]]))


@datasets.command("fetch")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--all", "everything", is_flag=True, help="Every set that can be fetched.")
@paper_option
@folder_option
@click.option("--force", is_flag=True, help="Download although the set is here.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    help="Give up a try after so long without a byte.",
)
@click.option("--quiet", is_flag=True, help="No progress bar.")
def fetch_sets(
    names: tuple[str, ...],
    everything: bool,
    paper: str | None,
    folder: str | None,
    force: bool,
    timeout: float,
    quiet: bool,
) -> None:
    """Download data sets from their public sources, and check them."""
    from exactk.papers.datasets import describe, fetch

    if (bool(names) + everything + (paper is not None)) != 1:
        raise click.UsageError("give names of data sets, or --all, or --paper.")
    wanted = list(dict.fromkeys(names)) or [entry.name for entry in _entries(paper) if entry.build]
    # A wrong name is said before the first byte, not after the others.
    for name in wanted:
        describe(name)
    failures: list[tuple[str, ExactkError]] = []
    with _bar(quiet) as show:
        for name in wanted:
            try:
                path = fetch(name, folder=folder, force=force, timeout=timeout, on_progress=show)
            except ExactkError as error:
                failures.append((name, error))
            else:
                click.echo(str(path))
                if (checked := describe(name).checked) != "checksum":
                    click.echo(
                        f"exactk: no checksum of {name!r} is known: {checked} alone were checked.",
                        err=True,
                    )
    _report(failures, wanted)


@datasets.command("path")
@click.argument("name", required=False)
@folder_option
def path_of(name: str | None, folder: str | None) -> None:
    """Print the folders that are looked into, or the file of the set with NAME."""
    from exactk.papers.datasets import describe, find, folders, names
    from exactk.papers.datasets.loading import missing_message

    if name is None:
        for place in folders(folder):
            click.echo(str(place))
        return
    path = find(name, folder=folder)
    if path is not None:
        click.echo(str(path))
        return
    if name in names() and (entry := describe(name)).origin != "file":
        raise InputError(f"data set {name!r} has no file: it comes from {entry.source}")
    raise InputError(missing_message(name, folder))


def _entries(paper: str | None) -> list[Entry]:
    from exactk.papers.datasets import describe, names

    entries = [describe(name) for name in names()]
    return [entry for entry in entries if paper is None or paper in entry.papers]


def _source(entry: Entry) -> str:
    unknown = entry.origin == "file" and not entry.checksum
    return (entry.repository or entry.origin) + (" (checksum unknown)" if unknown else "")


def _own_line(mine: LocalDataset) -> tuple[str, ...]:
    sizes = ("?" if size is None else str(size) for size in (mine.n, mine.d))
    classes = "-" if mine.task == "regression" else str(mine.classes or "?")
    return (mine.name, *sizes, classes, "-", "yes", YOURS)


def _own_facts(mine: LocalDataset) -> dict[str, Any]:
    """Return the same keys as for a set of the catalogue; null or empty where nothing is known."""
    known: dict[str, Any] = {
        "name": mine.name,
        "n": mine.n,
        "d": mine.d,
        "task": mine.task,
        "classes": mine.classes,
        "outputs": None,
        "papers": [],
        "origin": YOURS,
        "paths": [],
    }
    return {
        **dict.fromkeys(FIELDS, ""),
        **known,
        "here": True,
        "file": str(mine.path),
        "fetchable": False,
    }


def _report(failures: Sequence[tuple[str, ExactkError]], wanted: Sequence[str]) -> None:
    if not failures:
        return
    if len(wanted) == 1:
        raise failures[0][1]
    failed = join_items((name for name, _ in failures), limit=10)
    raise InputError(
        f"{len(failures)} of {len(wanted)} data sets could not be fetched ({failed}); "
        f"the first: {failures[0][1]}"
    )


@contextmanager
def _bar(quiet: bool) -> Iterator[Callable[[Transfer], None] | None]:
    """Show bytes on a terminal; elsewhere nobody waits for a bar."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        DownloadColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as display:
        task = display.add_task("", total=None)

        def show(transfer: Transfer) -> None:
            of = f" ({transfer.file} of {transfer.files})" if transfer.files > 1 else ""
            display.update(
                task,
                description=f"{transfer.name}{of}",
                completed=transfer.done,
                total=transfer.total,
            )

        yield show


def _text(path: Any) -> str | None:
    return None if path is None else str(path)
