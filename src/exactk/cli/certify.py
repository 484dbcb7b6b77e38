"""``exactk certify``: are these columns the best there are, and if that stays open, how far off."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import reduce, wraps
from typing import TYPE_CHECKING, Any

import click

from exactk._version import __version__
from exactk.cli.from_result import PreviousResult, result_option
from exactk.cli.options import output_option, style_option, words
from exactk.cli.output import check_output, write_output
from exactk.cli.render import render
from exactk.cli.table_options import TableOptions, show_warnings, table_options

if TYPE_CHECKING:
    from exactk.problem.problem import Problem
    from exactk.proof.results import BestSets, CertifiedPath

__all__ = ["certify", "optimal_option"]

OPEN = 1
INTERRUPTED = 130

optimal_option = click.option(
    "--require-optimal", is_flag=True, help="Exit with code 1 unless the features are proven best."
)


@dataclass(frozen=True)
class _CertifyOptions:
    """What is to be proven, as the options say it."""

    k: int | None
    features: list[str]
    earlier: PreviousResult | None
    path: bool
    best: int | None
    within: float | None

    def check(self, context: click.Context) -> None:
        """Refuse options that do not go together, before anything is read."""
        ways = [self.k is not None, bool(self.features), self.earlier is not None]
        if sum(ways) != 1:
            raise click.UsageError(
                "Give one of -k, --features and --from-result: how many features to pick and "
                "prove, or which."
            )
        if self.path and self.best is not None:
            raise click.UsageError("--path and --best are two questions; give one of them.")
        if self.k is None and (self.path or self.best is not None):
            raise click.UsageError("--path and --best go with -k.")
        if self.within is not None and self.best is None:
            raise click.UsageError("--within goes with --best.")
        ridge = context.get_parameter_source("ridge")
        if self.earlier is not None and ridge == click.core.ParameterSource.COMMANDLINE:
            raise click.UsageError("--from-result brings its ridge; leave --ridge out.")


def _wanted_options(command: Callable[..., Any]) -> Callable[..., Any]:
    names = [part.name for part in fields(_CertifyOptions)]

    @wraps(command)
    def gathered(**values: Any) -> Any:
        wanted = _CertifyOptions(**{name: values.pop(name) for name in names})
        wanted.check(click.get_current_context())
        return command(wanted=wanted, **values)

    options = [
        click.option("-k", type=click.IntRange(min=1),
                     help="How many features to pick and prove."),
        click.option("--features", multiple=True, metavar="COLUMN,...", callback=words,
                     help="Prove these, in place of the best K found; repeatable."),
        result_option,
        click.option("--path", is_flag=True, help="Prove every size up to K."),
        click.option("--best", type=click.IntRange(min=1), metavar="N",
                     help="List the N best sets, and whether there are others as good."),
        click.option("--within", type=click.FloatRange(min=0), metavar="SHARE",
                     help="With --best: only sets with an objective larger by at most this share."),
    ]  # fmt: skip
    return reduce(lambda wrapped, option: option(wrapped), reversed(options), gathered)


@click.command()
@table_options
@_wanted_options
@click.option("--gap", type=click.FloatRange(0, 1), default=1e-6, show_default=True,
              help="A gap that is small enough, as a share of the objective.")  # fmt: skip
@click.option("--time-limit", type=click.FloatRange(min=0, min_open=True), default=60.0,
              show_default=True, metavar="SECONDS",
              help="Give what is known by then; inf goes on until it is proven.")  # fmt: skip
@click.option("--jobs", type=click.IntRange(min=1), help="Threads; all that there are by default.")
@click.option("--seed", type=click.IntRange(min=0), help="Seed of --ridge cv.")
@optimal_option
@style_option
@output_option
def certify(
    source: TableOptions,
    wanted: _CertifyOptions,
    gap: float,
    time_limit: float,
    jobs: int | None,
    seed: int | None,
    require_optimal: bool,
    style: str,
    output: str | None,
) -> int:
    """Prove that no other K columns of TABLE are better, or say how much better they can be.

    For the best K columns found, for those that --features names, or for those of an earlier
    exactk select. Where the proof finds a better set, it is given in their place. It is about the
    objective that exactk select minimises, with the same ridge and constraints. The bound holds
    whenever the time is up, also after Ctrl-C.
    """
    from exactk.model_selection.ridge import find_ridge

    source = source if wanted.earlier is None else wanted.earlier.source(source)
    if output is not None:
        what, files = source.inputs
        more = [] if wanted.earlier is None else [wanted.earlier.file]
        check_output(output, what, [*files, *more])
    limit = None if math.isinf(time_limit) else time_limit
    terms: dict[str, Any] = {"time_limit": limit, "n_jobs": jobs, "verbose": source.verbose}
    with show_warnings(source.quiet):
        problem, target = source.open()
        size = len(wanted.features) if wanted.k is None else wanted.k
        ridge = find_ridge(source.ridge, problem, size, random_state=seed)
        problem = problem.with_ridge(ridge)
        facts = source.facts(problem, target)
        text, proven, status = _answer(problem, wanted, gap, terms, style, facts)
    if status == "interrupted":
        source.echo("stopped by the user; this is what was known until then")
    write_output(text, output)
    if status == "interrupted":
        return INTERRUPTED
    return OPEN if require_optimal and not proven else 0


def _answer(
    problem: Problem,
    wanted: _CertifyOptions,
    gap: float,
    terms: dict[str, Any],
    style: str,
    facts: dict[str, Any],
) -> tuple[str, bool, str]:
    """The output, whether all that was asked for is proven, and how it ended."""
    from exactk.proof.certify import best_sets, certify_path
    from exactk.proof.certify import certify as prove

    if wanted.path:
        path = certify_path(problem, int(wanted.k or 0), gap=gap, **terms)
        return _rendered(path, problem, style, facts), path.proven, path.status
    if wanted.best is not None:
        best = best_sets(problem, int(wanted.k or 0), wanted.best, within=wanted.within, **terms)
        return _rendered(best, problem, style, facts), best.is_complete, best.status
    earlier = None if wanted.earlier is None else wanted.earlier.result
    found = prove(problem, earlier or wanted.features or int(wanted.k or 0), gap=gap, **terms)
    text = render(found.result, problem, style, {**facts, "certificate": found})
    # A set of the user's own that another took the place of is not the best.
    own = earlier is not None or bool(wanted.features)
    return text, found.proven and not (own and found.improved), found.status


def _rendered(
    found: CertifiedPath | BestSets, problem: Problem, style: str, facts: dict[str, Any]
) -> str:
    if style == "csv":
        return found.table.to_csv()
    if style == "json":
        content = {**facts, "ridge": problem.ridge, "version": __version__, **found.to_dict()}
        return json.dumps(content, indent=2, ensure_ascii=False) + "\n"
    return _text(found, problem, facts)


def _text(found: CertifiedPath | BestSets, problem: Problem, facts: dict[str, Any]) -> str:
    from exactk.proof.results import CertifiedPath, round_down, round_up
    from exactk.utils.records_table import RecordsTable

    if isinstance(found, CertifiedPath):
        what = f"sizes up to {found.sizes[-1]}"
        head = ["k", "objective", "at least", "gap", "proven", "features"]
        rows: list[tuple[Any, ...]] = [
            (
                row["k"],
                row["objective"],
                f"{row['lower']:.6g}" if row["proven"] else round_down(row["lower"]),
                f"{round_up(100 * row['gap'], 2)} %",
                "yes" if row["proven"] else "no",
                row["selected"],
            )
            for row in found.table
        ]
        proven = sum(row["proven"] for row in found.table)
        said = f"{proven} of {len(found)} sizes are proven."
        said += f" Assumed: {'; '.join(found[0].assumptions)}." if found[0].assumptions else ""
    else:
        what = f"best sets of {found.k}"
        head = ["rank", "objective", "excess", "features"]
        rows = [
            (row["rank"], row["objective"], f"{100 * row['excess']:.3g} %", row["features"])
            for row in found.table
        ]
        said = found.summary
    rule = facts["ridge_rule"]
    ridge = f"{problem.ridge:.3g}" + (f" ({rule})" if isinstance(rule, str) else "")
    lines = [
        f"{what} of {len(problem.original_names)} features for {facts['target']!r} "
        f"({problem.task}, {problem.n_rows} rows)",
        "",
        # Whole: sets that differ in their last column must not look the same.
        RecordsTable(head, rows).to_text(width=None),
        "",
        f"proof      {said}",
        f"ridge      {ridge}",
        f"status     {found.status}, {found.seconds:.3g} s",
    ]
    return "\n".join(lines) + "\n"
