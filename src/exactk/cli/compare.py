"""``exactk compare``: methods side by side on rows that they have not seen."""

from __future__ import annotations

import json
from math import isfinite
from typing import TYPE_CHECKING, Any

import click

from exactk._version import __version__
from exactk.cli.options import distinct_items, output_option, style_option
from exactk.cli.output import check_output, write_output
from exactk.cli.row_groups import groups_option, open_grouped
from exactk.cli.score import ESTIMATORS
from exactk.cli.table_options import TableOptions, show_warnings, table_options
from exactk.cli.wording import as_options
from exactk.utils.formatting import escape_controls

if TYPE_CHECKING:
    from exactk.evaluation.compare import Comparison

__all__ = ["compare"]

INTERRUPTED = 130


@click.command()
@table_options
@click.option("-k", type=click.IntRange(min=1), required=True, help="How many features to pick.")
@click.option("--methods", multiple=True, metavar="NAME,...", callback=distinct_items,
              help="Methods (see: exactk methods) and selectkbest, rfe, l1 of scikit-learn; the "
              "others are compared with the first. By default exchange and these.")  # fmt: skip
@click.option("--folds", type=click.IntRange(min=2), default=5, show_default=True,
              help="Parts of the rows that are held out in turn.")  # fmt: skip
@click.option("--estimator", type=click.Choice(ESTIMATORS),
              help="What is trained; logistic for classes, ridge for numbers.")  # fmt: skip
@click.option("--scoring", metavar="NAME",
              help="A score of scikit-learn; accuracy for classes, r2 for numbers.")  # fmt: skip
@groups_option
@click.option("--time-limit", type=click.FloatRange(min=0, min_open=True), metavar="SECONDS",
              help="For each selection of each method.")  # fmt: skip
@click.option("--seed", type=click.IntRange(min=0), help="Seed of the folds and the methods.")
@style_option
@output_option
def compare(
    source: TableOptions,
    k: int,
    methods: list[str],
    folds: int,
    estimator: str | None,
    scoring: str | None,
    row_groups: str | None,
    time_limit: float | None,
    seed: int | None,
    style: str,
    output: str | None,
) -> int:
    """Compare methods that pick K columns of TABLE, on rows held out.

    In each fold every method picks its features on the same training rows alone, the same
    estimator is trained on them, and scored on the same rows held out. A method that cannot be
    used here is a line with the reason. TABLE is what exactk select takes, and must fit in memory.
    """
    from exactk.evaluation.compare import DEFAULT_METHODS
    from exactk.evaluation.compare import compare as run
    from exactk.evaluation.competitors import named_methods

    asked = named_methods(methods or DEFAULT_METHODS)
    if source.moments is not None:
        raise click.UsageError(
            "--from-moments cannot be compared on: rows are held out, and moments have none; give "
            "TABLE and --target."
        )
    if output is not None:
        check_output(output, *source.inputs)
    with show_warnings(source.quiet):
        problem, target, groups = open_grouped(source, row_groups)
        found = run(
            problem, k=k, methods=list(asked), estimator=estimator, scoring=scoring, cv=folds,
            groups=groups, ridge=source.ridge, time_limit=time_limit, random_state=seed,
            verbose=source.verbose,
        )  # fmt: skip
    source.echo(found.message)
    facts = {**source.facts(problem, target), "row_groups": row_groups, "seed": seed}
    write_output(_rendered(found, style, facts), output)
    return INTERRUPTED if len(found.table) < len(asked) else 0


def _rendered(found: Comparison, style: str, facts: dict[str, Any]) -> str:
    if style == "csv":
        return found.table.to_csv()
    if style == "json":
        content = {**facts, "version": __version__, **found.to_dict()}
        return json.dumps(content, indent=2, ensure_ascii=False) + "\n"
    return _text(found, facts)


def _text(found: Comparison, facts: dict[str, Any]) -> str:
    first = found.table[0]["method"]
    done = [row for row in found.table if row["features"]]
    width = max(len(row["method"]) for row in found.table)
    notes = [f"{row['method']:{width}}  {escape_controls(as_options(row['note']))}"
             for row in found.table if row["note"]]  # fmt: skip
    whole = f", with all {found.all_features:.3f}" if isfinite(found.all_features) else ""
    lines = [
        f"{found.scoring} of {found.estimator} on {found.k} of {found.n_features} features for "
        f"{facts['target']!r} ({found.task}, {found.n_rows} rows, {found.n_folds} folds)",
        "",
        *found.lines(),
        "",
        "Features were chosen within each fold, on its training rows alone, and scored on the "
        "rows held out; ±: standard",
        f"error. With no features {found.baseline:.3f}{whole}. Difference: to {first}, fold by "
        f"fold. Stability 1: all folds agree.",
        f"Excess (objective above the least), seconds and shared (with {first}) are of the choice "
        f"on all rows:",
        "",
        *(
            f"{row['method']:{width}}  {escape_controls(', '.join(row['features']))}"
            for row in done
        ),
        *(["", *notes] if notes else []),
    ]
    return "\n".join(lines) + "\n"
