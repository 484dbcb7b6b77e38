"""``exactk report``: one page on a choice, to read, to pass on and to defend."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING

import click

from exactk.cli.options import distinct_items, size_or_auto
from exactk.cli.output import check_output, write_output
from exactk.cli.reproduce import checksum, command_line, python_code
from exactk.cli.row_groups import open_grouped
from exactk.cli.score import ESTIMATORS
from exactk.cli.search_options import SearchOptions, SizeOptions, search_options, size_options
from exactk.cli.table_options import TableOptions, show_warnings, table_options
from exactk.cli.wording import as_options

if TYPE_CHECKING:
    from exactk.methods.base import Method
    from exactk.report.selection_report import SelectionReport

__all__ = ["report"]

INTERRUPTED = 130


@click.command()
@table_options
@click.option(
    "-k",
    callback=size_or_auto,
    default="auto",
    show_default=True,
    metavar="NUMBER|auto",
    help="How many features to pick; auto chooses the number, as exactk path does.",
)
@size_options
@click.option(
    "--methods",
    "baselines",
    multiple=True,
    metavar="NAME,...",
    callback=distinct_items,
    help="What to compare with: methods, and selectkbest, rfe and l1 of scikit-learn, "
    "which are the default; none leaves it out.",
)
@click.option(
    "--estimator",
    type=click.Choice(ESTIMATORS),
    help="What is trained on the features; logistic for classes, ridge for numbers.",
)
@click.option(
    "--scoring",
    metavar="NAME",
    help="A score of scikit-learn; accuracy for classes, r2 for numbers.",
)
@click.option(
    "--certify",
    "seconds",
    type=click.FloatRange(min=0),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="How long to prove that there is nothing better, at most; 0 leaves it out.",
)
@click.option(
    "--samples",
    type=click.IntRange(min=0),
    default=100,
    show_default=True,
    help="Halves of the rows for stability; 0 leaves it out.",
)
@click.option(
    "--permutations",
    type=click.IntRange(min=0),
    default=100,
    show_default=True,
    help="Shuffled targets for the permutation test; 0 leaves it out.",
)
@search_options
@click.option(
    "--record",
    type=click.Path(),
    metavar="FILE",
    help="Write the numbers behind the page there, too, as JSON.",
)
@click.option("-o", "--output", type=click.Path(), default="report.html", show_default=True,
              metavar="FILE", help="The page.")  # fmt: skip
def report(
    source: TableOptions,
    k: int | None,
    sizing: SizeOptions,
    baselines: list[str],
    estimator: str | None,
    scoring: str | None,
    seconds: float,
    samples: int,
    permutations: int,
    search: SearchOptions,
    record: str | None,
    output: str,
) -> int:
    """Pick columns of TABLE and write one page on them: what, why, how sure, beside what.

    The page is one HTML file that opens without a network: the features with what each is worth,
    its best substitute, how often it is chosen on halves of the rows and its coefficients;
    accuracy and objective against the number of features; what the choice is worth on rows held
    out, beside the usual alternatives; whether any other set is better; what is odd about the
    data; and how to make it again. Ctrl-C ends it with what is done. --time-limit is for all of
    it.
    """
    from exactk.methods.registry import create
    from exactk.report.investigate import BASELINES, investigate
    from exactk.report.validation import check_baselines

    options = search.options()
    if samples == 1:
        raise click.UsageError("--samples must be 0 or at least 2: one half agrees with itself.")
    if baselines == ["none"]:
        baselines = []
    elif baselines:
        check_baselines(search.method, baselines)
    else:
        baselines = list(BASELINES)
    what, inputs = source.inputs
    check_output(output, what, inputs)
    if record is not None:
        _check_record(record, output, what, inputs)
    seed = options.get("random_state", search.seed)
    method: str | Method = search.method
    if options.keys() & signature(investigate).parameters.keys() - {"effort", "random_state"}:
        # A parameter of the method that is called as one of the investigation is.
        method, options = create(search.method, **options), {}
    options.pop("random_state", None)
    with show_warnings(source.quiet):
        problem, target, groups = open_grouped(source, sizing.row_groups)
        found = investigate(
            problem, k=k, k_max=sizing.k_max, criterion=sizing.criterion or "cv",
            rule=sizing.rule or "one_se", cv=sizing.folds, groups=groups, method=method,
            methods=baselines, ridge=source.ridge, estimator=estimator, scoring=scoring,
            certify=seconds, n_subsamples=samples, n_permutations=permutations,
            time_limit=search.time_limit, random_state=seed, verbose=source.verbose, target=target,
            **options,
        )  # fmt: skip
    certificate = found.record["certificate"]
    improved = certificate is not None and certificate["improved"] and not certificate["better"]
    code = python_code(
        source, search, sizing, k, problem, held=found.record["settings"]["in_memory"],
        seconds=seconds if improved else None,
    )  # fmt: skip
    # Who reads the page has given options, and knows of no parameters.
    reasons = {part: as_options(why) for part, why in found.missing_parts.items()}
    asked = found.record["settings"] | {
        "table": source.table or source.moments,
        "command": command_line(click.get_current_context()),
        "code": code,
        "checksum": checksum(source.table),
    }
    if source.constraints:
        asked["constraints"] = {
            name: _constraint_text(rule) for name, rule in source.constraints.items()
        }
    found = replace(found, record={**found.record, "settings": asked, "missing_parts": reasons})
    write_output(found.to_html(), output)
    if record is not None:
        write_output(_json(found), record, "--record")
    left_out = [
        part for part in found.missing_parts if "not asked for" not in found.missing_parts[part]
    ]
    for part in left_out:
        source.echo(f"without {part}: {found.missing_parts[part]}")
    source.echo(f"wrote {output}")
    return INTERRUPTED if found.interrupted else 0


def _json(found: SelectionReport) -> str:
    """The record, with a name of a file that is no text as an escape of JSON."""
    text = found.to_json(indent=2, ensure_ascii=False)
    return re.sub("[\ud800-\udfff]", lambda one: f"\\u{ord(one[0]):04x}", text) + "\n"


def _constraint_text(rule: object) -> str:
    """A constraint in a line."""
    text = json.dumps(rule, ensure_ascii=False, default=str)
    return text if len(text) <= 300 else f"{text[:297]}..."


def _check_record(record: str, output: str, what: str, inputs: list[str]) -> None:
    if Path(record).resolve() == Path(output).resolve():
        raise click.UsageError(f"--record {record!r} is the page itself; give another name.")
    check_output(record, what, inputs, "--record")
