"""``exactk papers datasets``: which data sets there are, where they are, and downloads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from exactk.cli.framework import Call, LazyGroup, Listing, argument, command, option
from exactk.errors import ExactkError, InputError, join_items

if TYPE_CHECKING:
    from exactk.papers.datasets import Entry
    from exactk.papers.datasets.fetching import Transfer

__all__ = ["datasets", "fetch_sets", "list_sets", "path_of"]

PAPERS = ("cdlsr", "ipfs", "rpfs", "nmapg", "gsrfs")
OWN = "your folder"

datasets = LazyGroup(
    "datasets",
    """List and download the data sets of the papers.

    Data sets are looked for in the folders of the environment variable
    EXACTK_DATA, then in the cache of the user.
    """,
    {
        "list": ("exactk.cli.datasets:list_sets", "List the data sets."),
        "fetch": ("exactk.cli.datasets:fetch_sets", "Download data sets and check them."),
        "path": ("exactk.cli.datasets:path_of", "Print the data folders, or the file of a set."),
    },
)

folder_option = option("--folder", type=click.Path(file_okay=False), section="Input",
                       metavar="FOLDER", help="Folder of the data sets.")  # fmt: skip
paper_option = option("--paper", type=click.Choice(PAPERS), section="Input",
                      metavar="PAPER", help=f"Only those of {', '.join(PAPERS)}.")  # fmt: skip


@command("papers datasets list")
@paper_option
@folder_option
def list_sets(call: Call, paper: str | None, folder: str | None) -> int:
    """List the data sets with their shape, papers and source.

    Files of your own in the data folders come last. A large one is not read for
    its shape.
    """
    from exactk.papers.datasets import available, find
    from exactk.papers.datasets.local import local_datasets
    from exactk.utils.records_table import RecordsTable

    entries = _entries(paper)
    here = set(available([entry.name for entry in entries], folder=folder)[0])
    rows: list[dict[str, Any]] = []
    for entry in entries:
        path = find(entry.name, folder=folder)
        unknown = " (checksum unknown)" if entry.origin == "file" and not entry.checksum else ""
        rows.append(
            {
                **asdict(entry),
                "source": (entry.repository or entry.origin) + unknown,
                "checked": entry.checked,
                "here": entry.name in here,
                "file": None if path is None else str(path),
                "fetchable": bool(entry.build),
            }
        )
    for own in local_datasets(folder) if paper is None else ():
        facts = {**asdict(own), "here": True, "file": str(own.path), "source": OWN, "papers": ()}
        rows.append({name: facts.get(name) for name in rows[0]})
    names = ("name", "n", "d", "classes")
    table = RecordsTable(
        ["name", "rows", "columns", "classes", "papers", "here", "source"],
        [
            (*(row[name] for name in names), " ".join(row["papers"]),
             "yes" if row["here"] else "no", row["source"])
            for row in rows
        ],
    )  # fmt: skip
    return call.emit(Listing("datasets", rows), [table.to_text()])


@command("papers datasets fetch", formats=())
@argument("names", nargs=-1, metavar="[NAME]...")
@option("--all", "everything", is_flag=True, section="Input", help="Every data set.")
@paper_option
@folder_option
def fetch_sets(
    call: Call, names: tuple[str, ...], everything: bool, paper: str | None, folder: str | None
) -> int:
    """Download data sets from their public sources and check them.

    The files are printed. A data set that is here is not downloaded again.
    """
    from exactk.papers.datasets import describe, fetch

    if (bool(names) + everything + (paper is not None)) != 1:
        raise InputError("give names of data sets, or --all, or --paper", parameter="names")
    wanted = list(dict.fromkeys(names)) or [entry.name for entry in _entries(paper) if entry.build]
    # A wrong name is an error before the first download.
    entries = [describe(name) for name in wanted]
    failed: dict[str, ExactkError] = {}
    with _show_transfers(call.verbose) as show:
        for entry in entries:
            try:
                path = fetch(entry.name, folder=folder, on_progress=show)
            except ExactkError as error:
                failed[entry.name] = error
                continue
            click.echo(str(path))
            if entry.checked != "checksum":
                call.say(f"{entry.name}: no checksum is known; checked were {entry.checked}")
    if failed:
        first = next(iter(failed.values()))
        if len(wanted) == 1:
            raise first
        raise InputError(
            f"{len(failed)} of {len(wanted)} data sets could not be downloaded "
            f"({join_items(failed, limit=10)}); the first: {first}",
            parameter="names",
        ) from first
    return 0


@command("papers datasets path", formats=())
@argument("name", required=False)
@folder_option
def path_of(call: Call, name: str | None, folder: str | None) -> int:
    """Print the data folders, or the file of the data set NAME."""
    from exactk.papers.datasets import describe, find, folders, names
    from exactk.papers.datasets.loading import missing_message

    if name is None:
        for place in folders(folder):
            click.echo(str(place))
        return 0
    path = find(name, folder=folder)
    if path is not None:
        click.echo(str(path))
        return 0
    if name in names() and (entry := describe(name)).origin != "file":
        raise InputError(
            f"data set {name!r} has no file: it is from {entry.source}", parameter="name"
        )
    raise InputError(missing_message(name, folder), parameter="name")


@contextmanager
def _show_transfers(verbose: int) -> Iterator[Callable[[Transfer], None] | None]:
    """Show the bytes of downloads on a terminal until the block ends."""
    from exactk.utils.progress import find_bar

    bar = find_bar() if verbose else None
    if bar is None:
        yield None
        return
    with bar("downloading") as draw:

        def show(transfer: Transfer) -> None:
            of = f" ({transfer.file} of {transfer.files})" if transfer.files > 1 else ""
            size = "" if transfer.total is None else f" of {transfer.total / 1e6:.1f}"
            words = f"{transfer.name}{of}: {transfer.done / 1e6:.1f}{size} MB"
            draw(transfer.done, transfer.total, words)

        yield show


def _entries(paper: str | None) -> list[Entry]:
    from exactk.papers.datasets import describe, names

    entries = [describe(name) for name in names()]
    return [entry for entry in entries if paper is None or paper in entry.papers]
