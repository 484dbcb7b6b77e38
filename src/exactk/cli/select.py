"""``exactk select``: a table and a k in, the k columns out."""

from __future__ import annotations

from typing import Any

import click

from exactk.cli.given import Given, say_warnings, table_options
from exactk.cli.output import check_output, write_output
from exactk.cli.render import STYLES, render

__all__ = ["select"]

INTERRUPTED = 130


def _settings(
    context: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> dict[str, Any]:
    """Read ``name=value`` pairs; a value is a number, true, false, none, or a word."""
    settings: dict[str, Any] = {}
    for pair in values:
        name, equals, text = pair.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or not name or not text.strip():
            raise click.BadParameter(f"{pair!r} is not of the form NAME=VALUE, such as lam=0.1.")
        if name in settings:
            raise click.BadParameter(f"{name!r} is given twice.")
        settings[name] = _value(text.strip())
    return settings


def _value(text: str) -> Any:
    words = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    try:
        return int(text)
    except ValueError:
        pass
    try:
        number = float(text)
    except ValueError:
        return text
    # 1e4 is how one writes a whole number of iterations.
    return int(number) if "." not in text and number.is_integer() else number


@click.command()
@table_options
@click.option("-k", type=click.IntRange(min=1), required=True, help="How many features to pick.")
@click.option("--method", default="exchange", show_default=True, help="See: exactk methods.")
@click.option(
    "--effort",
    type=click.FloatRange(min=0),
    help="How hard to search; 0 stops at the first answer no swap improves.",
)
@click.option(
    "--time-limit",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Search until then, and give the best found.",
)
@click.option(
    "--format",
    "style",
    type=click.Choice(STYLES),
    default="text",
    show_default=True,
    help="How to print the result.",
)
@click.option(
    "-o", "--output", type=click.Path(), metavar="FILE", help="Write there, not to stdout."
)
@click.option(
    "-O",
    "--option",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    callback=_settings,
    help="Parameter of the method, for example lam=0.1; repeatable. See: exactk methods NAME.",
)
@click.option("--seed", type=click.IntRange(min=0), help="Seed of the search.")
def select(
    given: Given,
    k: int,
    method: str,
    effort: float | None,
    time_limit: float | None,
    style: str,
    output: str | None,
    settings: dict[str, Any],
    seed: int | None,
) -> int:
    """Pick exactly K columns of TABLE that predict the target best.

    TABLE is a file, a folder or a quoted pattern: CSV or TSV (.gz too), Parquet, Arrow or
    Feather. Every column that is not the target, the weights or dropped is a feature, and must be
    numeric. Large tables are not read into memory but passed over. In place of TABLE and
    --target, --from-moments takes what exactk stats has made of them, or of many tables.
    """
    from exactk.choose.ridge import resolve_ridge
    from exactk.registry import create, method_class
    from exactk.solve import solve

    options = dict(settings)
    for name, value, flag in (("effort", effort, "--effort"), ("random_state", seed, "--seed")):
        if value is not None and name in settings:
            raise click.UsageError(f"{name!r} is given twice, by {flag} and by -O.")
    if effort is not None:
        options["effort"] = effort
    if seed is not None and "random_state" in method_class(method).option_names():
        options["random_state"] = seed
    # What is wrong with the parameters is said before the table is read.
    create(method, **options).check()
    if output is not None:
        check_output(output, *given.inputs)
    with say_warnings(given.quiet):
        problem, target = given.open()
        ridge = resolve_ridge(given.ridge, problem, k, random_state=options.get("random_state"))
        problem = problem.with_ridge(ridge)
        result = solve(problem, k, method, time_limit=time_limit, verbose=given.verbose, **options)
    if result.status == "interrupted" and not given.quiet:
        click.echo(f"exactk: {result.message}.", err=True)
    facts = {**given.facts(problem, target), "options": options}
    write_output(render(result, problem, style, facts), output)
    return INTERRUPTED if result.status == "interrupted" else 0
