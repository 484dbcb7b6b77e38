"""``exactk explain``: why these columns, and not others."""

from __future__ import annotations

import json
from typing import Any

import click

from exactk._version import __version__
from exactk.cli.options import output_option, style_option, words
from exactk.cli.output import check_output, write_output
from exactk.cli.table_options import TableOptions, show_warnings, table_options
from exactk.cli.wording import as_options

__all__ = ["explain"]


@click.command()
@table_options
@click.option("-k", type=click.IntRange(min=1), help="How many features to pick and explain.")
@click.option("--features", multiple=True, metavar="COLUMN,...", callback=words,
              help="Explain these, in place of the best K; repeatable.")  # fmt: skip
@click.option("--why-not", multiple=True, metavar="COLUMN,...", callback=words,
              help="Features that are asked about; repeatable.")  # fmt: skip
@click.option("--tolerance", type=click.FloatRange(min=0), default=0.01, show_default=True,
              help="Sets are near whose objective is larger by at most this share.")  # fmt: skip
@click.option("--max-sets", type=click.IntRange(min=1), default=20, show_default=True,
              help="Most near sets to list.")  # fmt: skip
@click.option("--effort", type=click.FloatRange(min=0), help="How hard to search, as in select.")
@click.option("--seed", type=click.IntRange(min=0), help="Seed of the search.")
@click.option("--time-limit", type=click.FloatRange(min=0, min_open=True), metavar="SECONDS",
              help="Cut the list of near sets short then.")  # fmt: skip
@style_option
@output_option
def explain(
    source: TableOptions,
    k: int | None,
    features: list[str],
    why_not: list[str],
    tolerance: float,
    max_sets: int,
    effort: float | None,
    seed: int | None,
    time_limit: float | None,
    style: str,
    output: str | None,
) -> None:
    """Say what each chosen column of TABLE is worth, and what could stand in for it.

    For the best K columns, or for those that --features names: the loss of dropping each, its
    best substitute and the price; for others, by --why-not, the best set with them and the
    regret; the sets that are nearly as good, and whether these are all; pairs that stand in for
    each other. Constraints are kept throughout. CSV gives the table of chosen columns.
    """
    from exactk.model_selection.explain import explain as explained
    from exactk.model_selection.ridge import find_ridge

    if (k is None) == (not features):
        raise click.UsageError(
            "Give either -k or --features: how many to pick, or what to explain."
        )
    if output is not None:
        check_output(output, *source.inputs)
    with show_warnings(source.quiet):
        problem, target = source.open()
        size = len(features) if k is None else k
        problem = problem.with_ridge(find_ridge(source.ridge, problem, size, random_state=seed))
        chosen: Any = features if k is None else k
        found = explained(
            problem, chosen, why_not=why_not, tolerance=tolerance, max_sets=max_sets,
            effort=effort, random_state=seed, time_limit=time_limit,
        )  # fmt: skip
    source.echo(found.message)
    facts = {**source.facts(problem, target), "ridge": problem.ridge}
    if style == "csv":
        text = found.selected_features.to_csv()
    elif style == "json":
        content = {**facts, "version": __version__, **found.to_dict()}
        text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
    else:
        head = (
            f"{len(found.selected)} of {len(problem.original_names)} features for {target!r} "
            f"({problem.task}, {problem.n_rows} rows, ridge {problem.ridge:.3g})"
        )
        text = f"{head}\n\n{as_options(found.to_text())}\n"
    write_output(text, output)
