"""``exactk path``: the best columns of every size, and which size the data choose."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from exactk._version import __version__
from exactk.cli.options import output_option, style_option
from exactk.cli.output import check_output, write_output
from exactk.cli.row_groups import open_grouped
from exactk.cli.search_options import SearchOptions, SizeOptions, search_options, size_options
from exactk.cli.table_options import TableOptions, show_warnings, table_options

if TYPE_CHECKING:
    from exactk.model_selection.choose_k import AutoKResult
    from exactk.problem.problem import Problem

__all__ = ["path"]


@click.command()
@table_options
@size_options
@search_options
@style_option
@output_option
def path(
    source: TableOptions, sizing: SizeOptions, search: SearchOptions, style: str, output: str | None
) -> None:
    """Pick the best columns of TABLE at every size, and choose a size.

    One line a size: what the size was judged by, with its standard error over the folds, and the
    features that came and went since the line before. The size chosen is marked with a star.
    TABLE is what exactk select takes; of moments choose with --criterion ebic.
    """
    options = search.options()
    if output is not None:
        check_output(output, *source.inputs)
    with show_warnings(source.quiet):
        problem, target, groups = open_grouped(source, sizing.row_groups)
        choice = sizing.choose(problem, source, search, options, groups)
    source.echo(choice.message)
    if style == "csv":
        text = choice.table.to_csv()
    elif style == "json":
        facts = {**source.facts(problem, target), "row_groups": sizing.row_groups}
        content = {**facts, "options": options, "version": __version__, **choice.to_dict()}
        text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
    else:
        text = _text(choice, problem, source.facts(problem, target))
    write_output(text, output)


def _text(choice: AutoKResult, problem: Problem, facts: dict[str, Any]) -> str:
    from exactk.utils.records_table import RecordsTable

    folds = choice.n_folds > 0
    head = ["", "k", choice.criterion, *(["s. e."] if folds else []), "objective", "added",
            "removed"]  # fmt: skip
    rows = [
        (
            "*" if row["chosen"] else "",
            row["k"],
            row["criterion"],
            *([row["standard_error"]] if folds else []),
            row["objective"],
            row["added"],
            row["removed"],
        )
        for row in choice.table
    ]
    rule = facts["ridge_rule"]
    ridge = f"{choice.ridge:.3g}" + (f" ({rule})" if isinstance(rule, str) else "")
    found = choice.result
    how = f"{choice.rule}, {choice.n_folds} folds" if folds else "the least"
    lines = [
        f"sizes up to {choice.k_max} of {len(problem.original_names)} features for "
        f"{facts['target']!r} ({problem.task}, {problem.n_rows} rows)",
        "",
        RecordsTable(head, rows).to_text(),
        "",
        f"chosen     k = {choice.k} by {choice.criterion} ({how})",
        f"ridge      {ridge}",
        f"status     {choice.status}",
        f"method     {found.method}",
    ]
    return "\n".join(lines) + "\n"
