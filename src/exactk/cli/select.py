"""``exactk select``: a table and a k in, the k columns out."""

from __future__ import annotations

import math
import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from exactk.cli.render import STYLES, render
from exactk.errors import InputError

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


def _only_one(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> str:
    """Refuse a second target: taken for a feature it would leak into the answer."""
    if len(values) > 1:
        raise click.BadParameter(
            f"given {len(values)} times ({', '.join(values)}); there is one target here, and the "
            f"others need --drop (several outputs: exactk.Problem.from_arrays in Python)"
        )
    return values[0]


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
@click.argument("table", type=click.Path())
@click.option(
    "--target",
    required=True,
    multiple=True,
    metavar="COLUMN",
    callback=_only_one,
    help="Column to predict.",
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
@click.option("--drop", multiple=True, metavar="COLUMN", help="Leave a column out; repeatable.")
@click.option("--weights", metavar="COLUMN", help="Column of row weights.")
@click.option(
    "--task",
    type=click.Choice(["auto", "classification", "regression"]),
    default="auto",
    show_default=True,
    help="What the target is; auto goes by its values.",
)
@click.option(
    "--format",
    "style",
    type=click.Choice(STYLES),
    default="text",
    show_default=True,
    help="How to print the result.",
)
@click.option("--output", type=click.Path(), metavar="FILE", help="Write there, not to stdout.")
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
    table: str,
    target: str,
    k: int,
    method: str,
    ridge: str | float,
    effort: float | None,
    time_limit: float | None,
    drop: tuple[str, ...],
    weights: str | None,
    task: Task,
    style: str,
    output: str | None,
    settings: dict[str, Any],
    seed: int | None,
    quiet: bool,
) -> int:
    """Pick exactly K columns of TABLE that predict the target best.

    TABLE is a CSV or TSV file (.gz too) or a Parquet file. Every column that is not the
    target, the weights or dropped is a feature, and must be numeric.
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
    _check_output(output, table)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        problem, result = _solve(
            _problem(table, target, weights, drop, task), k, method, ridge, time_limit, quiet, given
        )
    if not quiet:
        for message in dict.fromkeys(str(warning.message) for warning in caught):
            click.echo(f"exactk: {message}.", err=True)
    if result.status == "interrupted" and not quiet:
        click.echo(f"exactk: {result.message}.", err=True)
    facts = {
        "table": table,
        "target": target,
        "weights": weights,
        "dropped": list(drop),
        "ridge_rule": ridge,
        "options": given,
        "task": problem.task,
        "n_rows": problem.n_rows,
        "n_features": problem.n_features,
    }
    _write(render(result, problem, style, facts), output)
    return INTERRUPTED if result.status == "interrupted" else 0


def _problem(
    table: str, target: str, weights: str | None, drop: tuple[str, ...], task: Task
) -> Problem:
    from exactk.problem import Problem
    from exactk.sources.files import read_table, split_table

    parts = split_table(read_table(table), target, weights=weights, drop=drop)
    return Problem.from_arrays(parts.features, parts.target, sample_weight=parts.weights, task=task)


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


def _check_output(output: str | None, table: str) -> None:
    """Refuse a place that cannot be written, before the work and not after it."""
    if output is None:
        return
    place = Path(output)
    if place.is_dir():
        raise InputError(f"--output {output!r} is a folder; give a file name")
    if place.exists():
        if Path(table).exists() and place.samefile(table):
            raise InputError(f"--output {output!r} is the table itself; give another name")
        if not os.access(place, os.W_OK):
            raise InputError(f"--output {output!r} cannot be written: no permission")
    elif not place.parent.is_dir():
        raise InputError(f"--output {output!r} cannot be written: its folder does not exist")
    elif not os.access(place.parent, os.W_OK | os.X_OK):
        raise InputError(f"--output {output!r} cannot be written: no permission in its folder")


def _write(text: str, output: str | None) -> None:
    if output is None:
        click.echo(text, nl=False)
        return
    try:
        Path(output).write_text(text, encoding="utf-8", newline="")
    except OSError as error:
        raise InputError(f"--output {output!r} cannot be written: {error.strerror}") from error
