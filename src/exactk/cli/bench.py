"""``exactk bench``: the papers' experiments, run, resumed, shown and made into a page."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from exactk.cli.options import list_format, sizes_of, words
from exactk.cli.output import check_output
from exactk.errors import InputError, join_items

if TYPE_CHECKING:
    from exactk.papers.experiments.recipe import Recipe
    from exactk.papers.experiments.runner import RunSummary

__all__ = ["bench"]

INTERRUPTED = 130
FOLDER = "exactk-bench"
# More reasons than a person reads.
REASONS = 10


@click.group(invoke_without_command=True)
@click.pass_context
def bench(context: click.Context) -> None:
    """Reproduce the papers' tables and figures, and compare methods on the same terms."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


@bench.command("list")
@list_format
def list_recipes(style: str) -> None:
    """List the recipes: what of which paper each shows, and which of its data are here."""
    from exactk.papers.datasets import available
    from exactk.papers.experiments.reading import read_recipe, recipe_names

    rows = []
    for name in recipe_names():
        recipe = read_recipe(name)
        here, absent = available(recipe.datasets)
        rows.append(
            {
                "name": name,
                "paper": recipe.paper,
                "shows": list(recipe.reproduces),
                "title": recipe.title,
                "here": here,
                "absent": absent,
            }
        )
    if style == "json":
        click.echo(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    width = max((len(row["name"]) for row in rows), default=0)
    for row in rows:
        shows = f"{row['paper']}: {', '.join(row['shows'])}" if row["shows"] else row["paper"]
        click.echo(f"{row['name']:{width}}  {row['title']} ({shows})")
        click.echo(f"{'':{width}}  data here: {', '.join(row['here']) or 'none'}")
        if row["absent"]:
            click.echo(f"{'':{width}}  absent: {', '.join(row['absent'])}")


@bench.command()
@click.argument("recipes", nargs=-1, required=True, metavar="RECIPE...")
@click.option("--quick", is_flag=True, help="A small version, for minutes.")
@click.option(
    "--methods",
    multiple=True,
    callback=words,
    metavar="A,B",
    help="Only these: labels of the recipe or names of methods; others join with their defaults.",
)
@click.option(
    "--without",
    multiple=True,
    callback=words,
    metavar="A,B",
    help="All but these methods, by label or name.",
)
@click.option(
    "--datasets", multiple=True, callback=words, metavar="A,B", help="These data sets instead."
)
@click.option("--repeats", type=click.IntRange(min=1), help="So many repeats instead.")
@click.option(
    "--sizes",
    multiple=True,
    callback=sizes_of,
    metavar="K,K",
    help="These k instead: 5,10 or 1-80.",
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Cells at a time, one thread each.",
)
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of all draws."
)
@click.option(
    "--time-limit",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="For one solve; by default that of the recipe.",
)
@click.option(
    "--store",
    type=click.Path(),
    metavar="FILE",
    help=f"Where records go; by default {FOLDER}/NAME.jsonl, and {FOLDER}/quick with --quick.",
)
@click.option("--retry-failed", is_flag=True, help="Run cells again that failed or were late.")
@click.option("--list-cells", is_flag=True, help="Show what would run, and run nothing.")
@click.option("--quiet", is_flag=True, help="No progress.")
def run(
    recipes: tuple[str, ...],
    quick: bool,
    methods: list[str],
    without: list[str],
    datasets: list[str],
    repeats: int | None,
    sizes: list[int],
    jobs: int,
    seed: int,
    time_limit: float | None,
    store: str | None,
    retry_failed: bool,
    list_cells: bool,
    quiet: bool,
) -> int:
    """Run experiments, or go on with them where they were stopped.

    RECIPE is a name, a table or figure (such as gsrfs-figure3), a TOML file of your own, or all.
    Every finished cell is recorded at once: killed at any moment, the same command goes on.
    """
    from exactk.cli.bench_tables import render
    from exactk.papers.experiments.merge import gather

    chosen = [
        recipe.restrict(
            quick=quick,
            methods=methods,
            without=without,
            datasets=datasets,
            repeats=repeats,
            sizes=sizes,
        )
        for recipe in _recipes(recipes)
    ]
    # Data and stores of all are looked at first: a mistake in the last is not told hours later.
    if store == "":
        raise InputError("--store '' is no file name; leave it out for the usual place")
    places = [Path(store) if store else _place(recipe, quick) for recipe in chosen]
    runnable = _check(chosen, places, seed, retry_failed, list_cells)
    if list_cells:
        return 0
    for number, (recipe, place) in enumerate(runnable, start=1):
        of = f" ({number} of {len(runnable)})" if len(runnable) > 1 else ""
        if recipe.exclusive and jobs > 1 and not quiet:
            _print_line(f"{recipe.name} measures time, so its cells run one at a time")
        try:
            summary = _run(recipe, place, of, jobs, seed, time_limit, retry_failed, quiet)
        except KeyboardInterrupt:
            _print_line(
                f"interrupted; what is finished is in {place}; the same command goes on from there"
            )
            return INTERRUPTED
        _print_summary(summary, place)
        records = [r for r in gather([place]) if recipe.name in (r.get("recipe"), r.get("name"))]
        click.echo(render(records, "text"), nl=False)
    return 0


@bench.command()
@click.argument("stores", nargs=-1, required=True, type=click.Path(), metavar="STORE...")
@click.option(
    "--format",
    "style",
    type=click.Choice(["text", "csv", "json"]),
    default="text",
    show_default=True,
    help="How to print the figures.",
)
def show(stores: tuple[str, ...], style: str) -> None:
    """Show what was measured, beside what the papers print.

    STORE is a file of records, or a folder of them.
    """
    from exactk.cli.bench_tables import render
    from exactk.papers.experiments.merge import gather

    click.echo(render(gather(_files(stores)), style), nl=False)


@bench.command()
@click.argument("stores", nargs=-1, required=True, type=click.Path(), metavar="STORE...")
@click.option(
    "-o",
    "--output",
    type=click.Path(),
    default="report.html",
    show_default=True,
    metavar="FILE",
    help="The page.",
)
@click.option("--title", help="Heading of the page.")
def report(stores: tuple[str, ...], output: str, title: str | None) -> None:
    """Make one page, readable offline, of the tables and figures.

    STORE is a file of records, or a folder of them.
    """
    from exactk.papers.experiments.merge import gather
    from exactk.papers.experiments.page.html import write_page

    files = _files(stores)
    check_output(output, "store", [str(file) for file in files])
    records = gather(files)
    names = [record["name"] for record in records if record["type"] == "recipe"]
    write_page(records, Path(output), title=title or f"exactk bench: {', '.join(names)}")
    _print_line(f"wrote {output}")


def _recipes(wanted: tuple[str, ...]) -> list[Recipe]:
    from exactk.papers.experiments.reading import read_recipe, recipe_names

    found: dict[str, Recipe] = {}
    for word in wanted:
        if word.endswith(".toml"):
            # A method of one's own lies beside the recipe that names it.
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


def _check(
    recipes: list[Recipe], places: list[Path], seed: int, retry_failed: bool, show_cells: bool
) -> list[tuple[Recipe, Path]]:
    """Return the experiments that have data here; say what is left out."""
    from exactk.papers.experiments.runner import describe_cell, plan
    from exactk.papers.experiments.store import Store

    runnable = []
    absent: dict[str, str] = {}
    for recipe, place in zip(recipes, places, strict=True):
        if place.is_dir():
            raise InputError(f"--store {str(place)!r} is a folder; give a file name")
        todo = plan(recipe, Store(place), seed=seed, retry_failed=retry_failed)
        absent |= todo.left_out
        if todo.facts:
            runnable.append((recipe, place))
        for cell in todo.todo.values() if show_cells else ():
            click.echo(f"{recipe.name}  {describe_cell(cell)}")
        if show_cells:
            _print_line(
                f"{recipe.name}: {len(todo.todo)} cells to run, {len(todo.reused)} recorded"
            )
    if not runnable:
        ways = "; ".join(f"{name}: {how}" for name, how in absent.items())
        raise InputError(f"none of the data sets is here, so nothing can run ({ways})")
    return runnable


def _run(
    recipe: Recipe,
    place: Path,
    of: str,
    jobs: int,
    seed: int,
    time_limit: float | None,
    retry_failed: bool,
    quiet: bool,
) -> RunSummary:
    from exactk.cli.bench_progress import progress
    from exactk.papers.experiments import runner

    with progress(f"{recipe.name}{of}", quiet) as show:
        return runner.run(
            recipe,
            place,
            jobs=jobs,
            time_limit=time_limit,
            retry_failed=retry_failed,
            seed=seed,
            on_progress=show,
        )


def _print_summary(summary: RunSummary, place: Path) -> None:
    """Say what became of the cells, why some have no result, and what was left out."""
    ran = summary.done + summary.failed + summary.time_limit
    counts = [f"{ran} cells run", f"{summary.reused} recorded before"]
    if summary.failed:
        counts.append(f"{summary.failed} failed")
    if summary.time_limit:
        counts.append(f"{summary.time_limit} met their time limit")
    _print_line(f"{summary.recipe}: {', '.join(counts)}; in {place}")
    reasons = list(summary.reasons.items())
    for (method, reason), where in reasons[:REASONS]:
        _print_line(f"  {method} on {', '.join(where)}: {reason}")
    if len(reasons) > REASONS:
        _print_line(f"  and {len(reasons) - REASONS} more: exactk bench show {place}")
    for name, how in summary.left_out.items():
        _print_line(f"left out: {name} (how to get it: {how})")


def _files(stores: tuple[str, ...]) -> list[Path]:
    """Return the files of records, those within a folder in its place."""
    files: list[Path] = []
    for store in map(Path, stores):
        if store.is_dir():
            inside = sorted(store.glob("*.jsonl"))
            if not inside:
                below = sorted({str(path.parent) for path in store.glob("*/*.jsonl")})
                hint = f"; those of {join_items(below)} are named by that folder" if below else ""
                raise InputError(
                    f"the folder {str(store)!r} has no store: no file *.jsonl in it{hint}"
                )
            files += inside
        elif store.exists():
            files.append(store)
        else:
            raise InputError(
                f"there is no store {os.fspath(store)!r}; exactk bench run makes one, by default "
                f"in the folder {FOLDER!r}"
            )
    return files


def _print_line(sentence: str) -> None:
    click.echo(f"exactk: {sentence}" if not sentence.startswith(" ") else sentence, err=True)
