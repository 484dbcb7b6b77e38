"""``exactk select``: a table and a k in, the k columns out."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from exactk.cli.options import (
    classes_option,
    columns_option,
    drop_option,
    memory_option,
    only_one,
    weights_option,
)
from exactk.cli.output import check_output, write_output
from exactk.cli.render import STYLES, render
from exactk.cli.tables import Parts, open_problem
from exactk.errors import InputError, nearest

if TYPE_CHECKING:
    from exactk.problem import Problem
    from exactk.result import Result
    from exactk.targets import Task

__all__ = ["select"]

INTERRUPTED = 130


def _ridge(context: click.Context, parameter: click.Parameter, value: str) -> str | float:
    """Turn the words ``auto`` and ``cv``, or a number that is not negative, into what they mean."""
    if value in ("auto", "cv"):
        return value
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not 0 <= number < math.inf:
        raise click.BadParameter(f"{value!r} is neither 'auto', 'cv' nor a number of at least 0.")
    return number


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


def _table(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    _ask_or_take(context, parameter, value is not None)
    return value


def _target(
    context: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> str | None:
    _ask_or_take(context, parameter, bool(values))
    return only_one(context, parameter, values) if values else None


def _ask_or_take(context: click.Context, parameter: click.Parameter, given: bool) -> None:
    """Ask for what is not given, unless it is in the moments; refuse it if it is in both."""
    in_moments = context.params.get("moments") is not None
    if not in_moments and not given:
        raise click.MissingParameter(ctx=context, param=parameter)
    if in_moments and given:
        raise click.UsageError(
            f"--from-moments goes without {parameter.get_error_hint(context)}, which the moments "
            f"were made of; give one of the two."
        )


@click.command()
@click.argument("table", type=click.Path(), required=False, metavar="TABLE", callback=_table)
@click.option(
    "--from-moments",
    "moments",
    type=click.Path(),
    is_eager=True,
    metavar="FILE",
    help="Moments made by exactk stats, in place of TABLE and --target.",
)
@click.option(
    "--target", multiple=True, metavar="COLUMN", callback=_target, help="Column to predict."
)
@click.option("-k", type=click.IntRange(min=1), required=True, help="How many features to pick.")
@click.option("--method", default="exchange", show_default=True, help="See: exactk methods.")
@click.option(
    "--ridge",
    callback=_ridge,
    metavar="auto|cv|NUMBER",
    default="auto",
    show_default=True,
    help="Penalty, relative to the size of the columns.",
)
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
@columns_option
@drop_option
@weights_option
@click.option(
    "--task",
    type=click.Choice(["auto", "classification", "regression"]),
    default="auto",
    show_default=True,
    help="What the target is; auto goes by its values.",
)
@classes_option
@memory_option
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
@click.option("--quiet", is_flag=True, help="No progress bar, no warnings.")
def select(
    table: str | None,
    moments: str | None,
    target: str | None,
    k: int,
    method: str,
    ridge: str | float,
    effort: float | None,
    time_limit: float | None,
    columns: list[str],
    drop: tuple[str, ...],
    weights: str | None,
    task: Task,
    classes: list[str],
    memory_limit: int | None,
    style: str,
    output: str | None,
    settings: dict[str, Any],
    seed: int | None,
    quiet: bool,
) -> int:
    """Pick exactly K columns of TABLE that predict the target best.

    TABLE is a file, a folder or a quoted pattern: CSV or TSV (.gz too), Parquet, Arrow or
    Feather. Every column that is not the target, the weights or dropped is a feature, and must be
    numeric. Large tables are not read into memory but passed over. In place of TABLE and
    --target, --from-moments takes what exactk stats has made of them, or of many tables.
    """
    from exactk.registry import create, method_class

    given = dict(settings)
    for name, value, flag in (("effort", effort, "--effort"), ("random_state", seed, "--seed")):
        if value is not None and name in settings:
            raise click.UsageError(f"{name!r} is given twice, by {flag} and by -O.")
    if effort is not None:
        given["effort"] = effort
    if seed is not None and "random_state" in method_class(method).option_names():
        given["random_state"] = seed
    # What is wrong with the parameters is said before the table is read.
    create(method, **given).check()
    if output is not None:
        check_output(output, *(("table", [table]) if table else ("input", [str(moments)])))
    if moments is not None:
        _refuse_rows({"--weights": weights, "--task": task != "auto", "--classes": classes}, ridge)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if table is not None and target is not None:
            parts = Parts(target, columns, drop, weights, task, classes)
            problem = open_problem(table, parts, quiet=quiet, memory_limit=memory_limit)
        else:
            problem, target = _from_moments(str(moments), columns, drop, memory_limit)
        problem, result = _solve(problem, k, method, ridge, time_limit, quiet, given)
    if not quiet:
        for message in dict.fromkeys(str(warning.message) for warning in caught):
            click.echo(f"exactk: {message}.", err=True)
    if result.status == "interrupted" and not quiet:
        click.echo(f"exactk: {result.message}.", err=True)
    facts = {
        "table": table,
        "moments": moments,
        "target": target,
        "weights": weights,
        "columns": columns or None,
        "dropped": list(drop),
        "ridge_rule": ridge,
        "options": given,
        "task": problem.task,
        "n_rows": problem.n_rows,
        "n_features": problem.n_features,
    }
    write_output(render(result, problem, style, facts), output)
    return INTERRUPTED if result.status == "interrupted" else 0


def _refuse_rows(options: dict[str, Any], ridge: str | float) -> None:
    """Raise for options that ask for rows where there are only their moments."""
    for option, given in options.items():
        if given:
            raise click.UsageError(
                f"--from-moments goes without {option}: give it to exactk stats build."
            )
    if ridge == "cv":
        raise click.UsageError(
            "--ridge cv splits the rows of a table, and moments have none; give --ridge auto or a "
            "number."
        )


def _from_moments(
    file: str, columns: Sequence[str], drop: Sequence[str], memory_limit: int | None
) -> tuple[Problem, str]:
    """The problem, and the name of its target."""
    from exactk.moments import Moments
    from exactk.problem import Problem

    moments = Moments.load(file)
    if columns or drop:
        names = moments.feature_names or ()
        for name in (*columns, *drop):
            if name not in names:
                raise InputError(f"column {name!r} is not in {file!r}{nearest(name, names)}")
        kept = tuple(name for name in (columns or names) if name not in drop)
        if not kept:
            raise InputError(f"{file!r} has no feature columns besides those that are dropped")
        moments = moments.with_columns(kept)
    problem = Problem.from_moments(moments, overwrite=True)
    if memory_limit is not None:
        problem = replace(problem, memory_limit=memory_limit)
    return problem, moments.target or "y"


def _solve(
    problem: Problem,
    k: int,
    method: str,
    ridge: str | float,
    time_limit: float | None,
    quiet: bool,
    options: dict[str, Any],
) -> tuple[Problem, Result]:
    from exactk.choose.ridge import resolve_ridge
    from exactk.solve import solve

    problem = problem.with_ridge(
        resolve_ridge(ridge, problem, k, random_state=options.get("random_state"))
    )
    result = solve(problem, k, method, time_limit=time_limit, verbose=0 if quiet else 1, **options)
    return problem, result
