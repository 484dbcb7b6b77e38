"""``exactk papers``: run the experiments of the papers, and show what was measured."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from exactk.cli.framework import (
    Call,
    LazyGroup,
    Listing,
    argument,
    check_place,
    command,
    name_list,
    note,
    option,
    param,
    split_list,
)
from exactk.errors import InputError, Setting, join_items
from exactk.params import Integer

if TYPE_CHECKING:
    from exactk.papers.experiments.recipe import Recipe
    from exactk.papers.experiments.result_tables import StoreResults
    from exactk.papers.experiments.runner import Plan, RunProgress, RunSummary

    Planned = list[tuple[Recipe, Path, Plan]]

__all__ = ["list_recipes", "papers", "report", "run", "show"]

FOLDER = "exactk-bench"
# More reasons for failed cells than a person reads.
REASONS = 10
MOST_SIZES = 100_000
LINE_EVERY = 15.0

papers = LazyGroup(
    "papers",
    """Run the experiments of the papers and compare methods on their terms.

    A recipe describes the experiment of a table or figure. exactk papers list
    shows the recipes. Results are stored after each cell: a data set, a method
    and one draw of the rows.
    """,
    {
        "list": ("exactk.cli.papers:list_recipes", "List the recipes."),
        "run": ("exactk.cli.papers:run", "Run recipes, or continue them."),
        "show": ("exactk.cli.papers:show", "Show results beside the published values."),
        "report": ("exactk.cli.papers:report", "Write an HTML page of tables and figures."),
        "datasets": ("exactk.cli.datasets:datasets", "List and download the data sets."),
    },
)


def _sizes(context: click.Context, parameter: click.Parameter, values: Any) -> list[int]:
    """Read sizes: numbers, and ranges such as 10-100:10."""
    sizes: set[int] = set()
    for word in split_list(values, "sizes") if values else ():
        match = re.fullmatch(r"(\d{1,9})(?:-(\d{1,9})(?::(\d{1,9}))?)?", word)
        first, last, step = (int(part or 0) for part in match.groups()) if match else (0, 0, 0)
        found = range(first, (last or first) + 1, step or 1)
        if first < 1 or not found or len(found) > MOST_SIZES or word.endswith(":0"):
            raise InputError(
                parameter="sizes", value=word,
                expected="numbers of features or ranges, such as 5,10 or 1-80 or 10-100:10",
            )  # fmt: skip
        sizes.update(found)
    return sorted(sizes)


def _list_option(
    name: str, section: str, text: str, callback: Any = name_list, metavar: str = "NAME,..."
) -> Callable[[Any], Any]:
    return option(
        name, multiple=True, callback=callback, section=section, help=text, metavar=metavar
    )


@command("papers list")
def list_recipes(call: Call) -> int:
    """List the recipes with their data: downloaded (here) or not (absent)."""
    from exactk.papers.datasets import available
    from exactk.papers.experiments.reading import read_recipe, recipe_names

    rows, lines = [], []
    width = max(map(len, recipe_names()), default=0) + 2
    for name in recipe_names():
        recipe = read_recipe(name)
        here, absent = available(recipe.datasets)
        shows = list(recipe.reproduces)
        rows.append({"name": name, "paper": recipe.paper, "shows": shows, "title": recipe.title,
                     "here": here, "absent": absent})  # fmt: skip
        source = f"{recipe.paper}: {', '.join(shows)}" if shows else recipe.paper
        lines.append(f"{name:{width}}{recipe.title} ({source})")
        lines.append(f"{'':{width}}data here: {', '.join(here) or 'none'}")
        if absent:
            lines.append(f"{'':{width}}absent: {', '.join(absent)}")
    return call.emit(Listing("recipes", rows), lines)


@command(
    "papers run",
    parameters=(
        param("n_jobs", default=1, check=Integer(1), help="Cells at a time, one thread each."),
        "random_state",
        param("time_limit", help="Maximum time of one solve in seconds; else that of the recipe."),
    ),
)
@argument("recipes", nargs=-1, required=True, metavar="RECIPE...")
@option("--quick", is_flag=True, section="Input", help="Run a small version, in minutes.")
@_list_option("--datasets", "Input", "Use these data sets.")
@option("--repeats", type=click.IntRange(min=1), section="Input", metavar="NUMBER",
        help="Use this number of repeats.")  # fmt: skip
@_list_option("--sizes", "Features", "Use these numbers of features, such as 5,10 or 1-80.",
              _sizes, "NUMBER,...")  # fmt: skip
@_list_option("--methods", "Search", "Use these methods: labels of the recipe, or any method.")
@_list_option("--without", "Search", "Leave out these methods.")
@option("--retry-failed", is_flag=True, section="Search",
        help="Run cells again that failed or reached the time limit.")  # fmt: skip
@option("--store", type=click.Path(), metavar="FILE",
        help=f"Store of results; default: {FOLDER}/RECIPE.jsonl.")  # fmt: skip
@option("--list-cells", is_flag=True, help="List what would run, and run nothing.")
def run(
    call: Call, recipes: tuple[str, ...], store: str | None, retry_failed: bool, list_cells: bool,
    **changes: Any,
) -> int:  # fmt: skip
    """Run experiments, or continue them where they stopped.

    RECIPE is a name, a table or figure such as gsrfs-figure3, a TOML file of
    your own, or all. Each finished cell is stored at once: after Ctrl-C or a
    crash, the same command continues.
    """
    if store == "":
        raise InputError("--store '' is no file name", parameter="store", hint="leave it out")
    chosen = [recipe.restrict(**changes) for recipe in _recipes(recipes)]
    places = [Path(store) if store else _place(recipe, changes["quick"]) for recipe in chosen]
    # All are planned first: a mistake in the last one is not found hours later.
    planned = _plan(call, chosen, places, retry_failed, list_cells)
    if list_cells:
        rows = [
            {"recipe": recipe.name, "data": cell.dataset, "method": cell.variant.label,
             "sizes": list(cell.sizes), "repeat": cell.repeat}
            for recipe, _, todo in planned
            for cell in todo.todo.values()
        ]  # fmt: skip
        return call.emit(Listing("cells", rows))
    message = _measure(call, planned, retry_failed)
    results = _results([place for _, place, _ in planned], [one.name for one, _, _ in planned])
    results.message, results.interrupted = message, bool(message)
    return call.emit(results)


def _plan(
    call: Call, recipes: list[Recipe], places: list[Path], retry_failed: bool, counted: bool
) -> Planned:
    """Return the recipes of which data are here."""
    from exactk.papers.experiments.runner import plan
    from exactk.papers.experiments.store import Store

    planned: Planned = []
    absent: dict[str, str] = {}
    for recipe, place in zip(recipes, places, strict=True):
        if place.is_dir():
            raise InputError(
                (Setting("store", str(place)), " is a folder"), parameter="store",
                hint="give a file name",
            )  # fmt: skip
        seed = call.values.get("random_state", 0)
        todo = plan(recipe, Store(place), seed=seed, retry_failed=retry_failed)
        absent |= todo.left_out
        if todo.facts:
            planned.append((recipe, place, todo))
        if counted:
            call.say(f"{recipe.name}: {len(todo.todo)} cells to run, {len(todo.reused)} stored")
    if not planned:
        ways = "; ".join(f"{name}: {how}" for name, how in absent.items())
        raise InputError(f"none of the data sets is here ({ways})", parameter="datasets")
    return planned


def _measure(call: Call, planned: Planned, retry_failed: bool) -> str:
    """Run the cells, and return how to continue if Ctrl-C ended them."""
    from exactk.papers.experiments import runner

    options = {"jobs": call.values.get("n_jobs", 1), "seed": call.values.get("random_state", 0),
               "time_limit": call.values.get("time_limit")}  # fmt: skip
    for number, (recipe, place, _) in enumerate(planned, start=1):
        of = f" ({number} of {len(planned)})" if len(planned) > 1 else ""
        if recipe.exclusive and options["jobs"] > 1:
            call.say(f"{recipe.name} measures time, so its cells run one at a time")
        try:
            with _show_cells(f"{recipe.name}{of}", call.verbose) as show:
                summary = runner.run(
                    recipe, place, retry_failed=retry_failed, on_progress=show, **options
                )
        except KeyboardInterrupt:
            return f"finished cells are in {place}; the same command continues"
        _say_summary(call, summary, place)
    return ""


@contextmanager
def _show_cells(name: str, verbose: int) -> Iterator[Callable[[RunProgress], None] | None]:
    """Show how far a run is until the block ends: a bar, or a line every 15 seconds."""
    from exactk.utils.progress import find_bar

    last, bar = time.monotonic(), find_bar() if verbose else None
    with nullcontext() if bar is None else bar(name) as draw:

        def show(state: RunProgress) -> None:
            nonlocal last
            left = "" if state.remaining is None else f", {_duration(state.remaining)} left"
            if draw is not None:
                words = f"{state.done}/{state.total}{left} {' '.join(state.running[:1])}"
                draw(state.done, state.total, words)
            elif time.monotonic() - last >= LINE_EVERY:
                last = time.monotonic()
                note(f"{name}: {state.done} of {state.total} cells{left}")

        yield show if verbose else None


def _duration(seconds: float) -> str:
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    if whole < 48 * 3600:
        return f"{whole // 3600} h {whole % 3600 // 60:02} min"
    return f"{whole // 86400} d {round(whole % 86400 / 3600)} h"


@command("papers show")
@argument("stores", nargs=-1, required=True, type=click.Path(), metavar="STORE...")
def show(call: Call, stores: tuple[str, ...]) -> int:
    """Show what was measured beside the published values.

    STORE is a file of results, or a folder of them.
    """
    return call.emit(_results(_files(stores)))


@command("papers report", formats=())
@argument("stores", nargs=-1, required=True, type=click.Path(), metavar="STORE...")
@option("-o", "--output", type=click.Path(), default="report.html", metavar="FILE",
        help="Write the page to FILE.  [default: report.html]")  # fmt: skip
def report(call: Call, stores: tuple[str, ...]) -> int:
    """Write an HTML page of tables and figures, which can be read offline.

    STORE is a file of results, or a folder of them.
    """
    from exactk.papers.experiments.merge import gather
    from exactk.papers.experiments.page.html import write_page

    files = _files(stores)
    check_place(str(call.output), [str(file) for file in files])
    records = gather(files)
    names = [record["name"] for record in records if record["type"] == "recipe"]
    write_page(records, Path(str(call.output)), title=f"exactk papers: {', '.join(names)}")
    call.say(f"wrote {call.output}")
    return 0


def _recipes(wanted: Sequence[str]) -> list[Recipe]:
    from exactk.papers.experiments.reading import read_recipe, recipe_names

    found: dict[str, Recipe] = {}
    for word in wanted:
        if word.endswith(".toml"):
            # A method of one's own is beside the recipe that names it.
            folder = str(Path(word).resolve().parent)
            if folder not in sys.path:
                sys.path.append(folder)
        for name in recipe_names() if word == "all" else [word]:
            recipe = read_recipe(name)
            found.setdefault(recipe.name, recipe)
    return list(found.values())


def _place(recipe: Recipe, quick: bool) -> Path:
    folder = Path(FOLDER, "quick") if quick else Path(FOLDER)
    return folder / (re.sub(r"[^\w.-]+", "-", recipe.name).strip(".-") + ".jsonl")


def _say_summary(call: Call, summary: RunSummary, place: Path) -> None:
    """Say how the cells ended, why some have no result, and what was left out."""
    ran = summary.done + summary.failed + summary.time_limit
    counts = [f"{ran} cells run", f"{summary.reused} stored before"]
    if summary.failed:
        counts.append(f"{summary.failed} failed")
    if summary.time_limit:
        counts.append(f"{summary.time_limit} reached the time limit")
    call.say(f"{summary.recipe}: {', '.join(counts)}; in {place}")
    reasons = list(summary.reasons.items())
    for (method, reason), where in reasons[:REASONS]:
        call.say(f"{method} on {', '.join(where)}: {reason}")
    if len(reasons) > REASONS:
        call.say(f"{len(reasons) - REASONS} more reasons: exactk papers show {place}")
    for name, how in summary.left_out.items():
        call.say(f"left out: {name} (how to get it: {how})")


def _results(places: Sequence[Path], names: Collection[str] | None = None) -> StoreResults:
    """Return what stores have, or what they have of some recipes."""
    from exactk.papers.experiments.merge import gather
    from exactk.papers.experiments.result_tables import StoreResults

    records = gather(dict.fromkeys(places))
    if names is not None:
        records = [one for one in records if one.get("recipe", one.get("name")) in names]
    return StoreResults(records)


def _files(stores: Sequence[str]) -> list[Path]:
    """Return the files of results; a folder stands for those in it."""
    files: list[Path] = []
    for store in map(Path, stores):
        if store.is_dir():
            inside = sorted(store.glob("*.jsonl"))
            if not inside:
                below = sorted({str(path.parent) for path in store.glob("*/*.jsonl")})
                raise InputError(
                    f"the folder {str(store)!r} has no store (*.jsonl)", parameter="stores",
                    hint=f"give one of {join_items(below)}" if below else "",
                )  # fmt: skip
            files += inside
        elif store.exists():
            files.append(store)
        else:
            raise InputError(
                f"there is no store {str(store)!r}", parameter="stores",
                hint=f"exactk papers run makes one, by default in the folder {FOLDER!r}",
            )  # fmt: skip
    return files
