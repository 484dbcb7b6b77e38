"""``exactk stability``: how often each feature is chosen on halves of the rows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from exactk._version import __version__
from exactk.cli.options import output_option, style_option
from exactk.cli.output import check_output, write_output
from exactk.cli.row_groups import groups_option, open_grouped
from exactk.cli.search_options import SearchOptions, search_options
from exactk.cli.table_options import TableOptions, show_warnings, table_options

if TYPE_CHECKING:
    from exactk.model_selection.stability import Stability
    from exactk.problem.problem import Problem

__all__ = ["stability"]

INTERRUPTED = 130


@click.command()
@table_options
@click.option("-k", type=click.IntRange(min=1), required=True, help="How many features to pick.")
@click.option("--samples", type=click.IntRange(min=2), default=100, show_default=True,
              help="How many halves of the rows to choose on.")  # fmt: skip
@click.option("--threshold", type=click.FloatRange(0.5, 1, min_open=True), default=0.9,
              show_default=True,
              help="Frequency from which on a feature is in the core.")  # fmt: skip
@click.option("--negligible", type=click.FloatRange(0, 0.5, max_open=True), default=0.05,
              show_default=True,
              help="Frequency up to which a feature counts as never chosen.")  # fmt: skip
@groups_option
@search_options
@style_option
@output_option
def stability(
    source: TableOptions,
    k: int,
    samples: int,
    threshold: float,
    negligible: float,
    row_groups: str | None,
    search: SearchOptions,
    style: str,
    output: str | None,
) -> int:
    """Pick K columns of TABLE on many random halves of its rows, and count.

    Features selected in most half-samples are the core, those selected in few are rare, and the
    others are unstable: they replace each other. The stability index is 1 if every half-sample
    gives the same features and 0 if chance would agree as well. TABLE is what exactk select takes;
    moments have no rows to draw from. Half-samples are searched with a tenth of the usual effort
    unless --effort says otherwise.
    """
    from exactk.model_selection.ridge import find_ridge
    from exactk.model_selection.stability import stability as measure

    options = search.options()
    if source.moments is not None:
        raise click.UsageError(
            "--from-moments cannot be halved: the rows are needed; give TABLE and --target."
        )
    if output is not None:
        check_output(output, *source.inputs)
    # The seed is that of the draws, too, also where the method has none.
    seed = options.get("random_state", search.seed)
    rest = {name: value for name, value in options.items() if name != "random_state"}
    with show_warnings(source.quiet):
        problem, target, groups = open_grouped(source, row_groups)
        problem = problem.with_ridge(find_ridge(source.ridge, problem, k, random_state=seed))
        found = measure(
            problem, k, n_subsamples=samples, method=search.method, threshold=threshold,
            negligible=negligible, groups=groups, random_state=seed, time_limit=search.time_limit,
            verbose=source.verbose, **rest,
        )  # fmt: skip
    source.echo(found.message)
    facts = {**source.facts(problem, target), "row_groups": row_groups, "options": options}
    write_output(_rendered(found, problem, style, facts), output)
    return INTERRUPTED if found.status == "interrupted" else 0


def _rendered(found: Stability, problem: Problem, style: str, facts: dict[str, Any]) -> str:
    if style == "csv":
        return found.table.to_csv()
    if style == "json":
        content = {**facts, "version": __version__, **found.to_dict()}
        return json.dumps(content, indent=2, ensure_ascii=False) + "\n"
    return _text(found, problem, facts)


def _text(found: Stability, problem: Problem, facts: dict[str, Any]) -> str:
    from exactk.utils.records_table import RecordsTable

    low, high = found.interval
    rows = [
        (
            row["feature"],
            f"{row['frequency']:.2f}",
            f"{row['low']:.2f} to {row['high']:.2f}",
            row["part"],
            "yes" if row["in_full"] else "",
            "yes" if row["selected"] else "",
        )
        for row in found.table
        if row["part"] != "rare" or row["in_full"] or row["selected"]
    ]
    interval = f"{found.level:.0%} interval"
    head = ["feature", "frequency", interval, "part", "on all rows", "selected"]
    rule = facts["ridge_rule"]
    ridge = f"{problem.ridge:.3g}" + (f" ({rule})" if isinstance(rule, str) else "")
    false = f"at most {found.expected_false:.3g} of the core by chance, if noise is all alike"
    lines = [
        f"{found.k} of {len(problem.original_names)} features for {facts['target']!r}, chosen on "
        f"{found.n_subsamples} halves of {problem.n_rows} rows ({problem.task})",
        "",
        RecordsTable(head, rows).to_text(),
        "",
        f"index         {found.index:.3f} ({low:.3f} to {high:.3f}), mean Jaccard "
        f"{found.jaccard:.3f}",
        f"core          {len(found.core)} in {found.threshold:.0%} of the halves or more; {false}",
        f"unstable      {len(found.unstable)}",
        f"rare          {len(found.rare)} in {found.negligible:.0%} of the halves or fewer",
        f"selected      objective {found.result.objective:.6g} of {found.result.total:.6g}; "
        f"{found.full.objective:.6g} by {found.method} on all rows",
        f"ridge         {ridge}",
        f"status        {found.status}",
        f"method        {found.method}, {found.seconds:.3g} s",
    ]
    return "\n".join(lines) + "\n"
