"""``exactk select``: a table and a k in, the k columns out."""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING

import click

from exactk.cli.certify import optimal_option
from exactk.cli.options import output_option, size_or_auto, style_option
from exactk.cli.output import check_output, write_output
from exactk.cli.render import render
from exactk.cli.row_groups import open_grouped
from exactk.cli.search_options import SearchOptions, SizeOptions, search_options, size_options
from exactk.cli.table_options import TableOptions, show_warnings, table_options
from exactk.errors import InputError

if TYPE_CHECKING:
    from exactk.problem.problem import Problem
    from exactk.proof.results import Certificate
    from exactk.result import Result

__all__ = ["select"]

OPEN = 1
INTERRUPTED = 130


@click.command()
@table_options
@click.option(
    "-k",
    callback=size_or_auto,
    required=True,
    metavar="NUMBER|auto",
    help="How many features to pick; auto chooses the number, as exactk path does.",
)
@size_options
@search_options
@click.option("--certify", "seconds", type=click.FloatRange(min=0, min_open=True),
              metavar="SECONDS",
              help="Then prove that no other K features are better, for so long at most; a better "
              "set that is found takes their place. See: exactk certify.")  # fmt: skip
@optimal_option
@click.option("--export", type=click.Path(), metavar="FILE",
              help="Write the choice and its linear fit there, too, as JSON for production. See: "
              "exactk apply.")  # fmt: skip
@style_option
@output_option
def select(
    source: TableOptions,
    k: int | None,
    sizing: SizeOptions,
    search: SearchOptions,
    seconds: float | None,
    require_optimal: bool,
    export: str | None,
    style: str,
    output: str | None,
) -> int:
    """Pick exactly K columns of TABLE that predict the target best.

    TABLE is a file, a folder or a quoted pattern: CSV or TSV (.gz too), Parquet, Arrow or
    Feather; or one .h5ad file, whose genes are the features and whose other columns are those of
    obs. Every column that is not the target, the weights or dropped is a feature: numbers, or
    text of few kinds, which is coded and counts as one. Large tables and folders are not read into
    memory but passed over, and must be numeric. In place of TABLE and --target, --from-moments
    takes what exactk stats has made of them, or of many tables.
    """
    from exactk.model_selection.ridge import find_ridge
    from exactk.solver import solve

    if k is not None and sizing.used_options:
        raise click.UsageError(f"{sizing.used_options[0]} goes with -k auto: here k is given.")
    options, choice = search.options(), None
    _check_places(output, export, source)
    with show_warnings(source.quiet):
        problem, target, groups = open_grouped(source, sizing.row_groups)
        if k is None:
            choice = sizing.choose(problem, source, search, options, groups)
            result = choice.result
        else:
            seed = options.get("random_state")
            ridge = find_ridge(source.ridge, problem, k, random_state=seed)
            problem = problem.with_ridge(ridge)
            result = solve(
                problem, k, search.method, time_limit=search.time_limit, verbose=source.verbose,
                **options,
            )  # fmt: skip
        certificate = _proof(problem, result, seconds, source)
    ended = result if certificate is None else certificate
    if certificate is not None:
        result = certificate.result
    if ended.status == "interrupted":
        source.echo(result.message or "stopped by the user; this is what was known until then")
    facts = {**source.facts(problem, target), "options": options}
    if choice is not None:
        source.echo(choice.message)
        facts["row_groups"] = sizing.row_groups
        facts["choice"] = {
            name: value for name, value in choice.to_dict().items() if name != "result"
        }
    if certificate is not None:
        facts["certificate"] = certificate
    write_output(render(result, problem, style, facts), output)
    if export is not None:
        _export(problem, result, certificate, target, export)
    if ended.status == "interrupted":
        return INTERRUPTED
    is_proven = result.status == "optimal" if certificate is None else certificate.proven
    if require_optimal and not is_proven and seconds is None:
        source.echo("not proven: --certify SECONDS tries to")
    return OPEN if require_optimal and not is_proven else 0


def _check_places(output: str | None, export: str | None, source: TableOptions) -> None:
    """Refuse places that cannot be written, or are the same, before any work."""
    if output is not None:
        check_output(output, *source.inputs)
    if export is None:
        return
    check_output(export, *source.inputs, option="--export")
    if output is not None and os.path.realpath(export) == os.path.realpath(output):
        raise InputError(f"--export {export!r} and --output are the same file; give another name")


def _export(
    problem: Problem, result: Result, certificate: Certificate | None, target: str, place: str
) -> None:
    from exactk.export.saved_selection import SavedSelection

    choice = SavedSelection.from_problem(problem, result, certificate, target=target)
    write_output(choice.to_json(indent=2, ensure_ascii=False) + "\n", place, "--export")


def _proof(
    problem: Problem, result: Result, seconds: float | None, source: TableOptions
) -> Certificate | None:
    """Prove a result, if that is asked for and nobody has stopped the search."""
    from exactk.proof.certify import certify

    if seconds is None or result.status == "interrupted":
        return None
    limit = None if math.isinf(seconds) else seconds
    problem = problem.with_ridge(result.ridge)
    return certify(problem, result, time_limit=limit, verbose=source.verbose)
