"""The options that constrain a choice: what in, what out, together, how many of, at what cost."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import click

from exactk.cli.options import words
from exactk.errors import InputError, join_items
from exactk.problem.constraints import CONSTRAINTS

__all__ = ["CostOptions", "constraint_options", "constraints_of"]


@dataclass(frozen=True)
class CostOptions:
    """What each column costs, and the file that says so."""

    file: str
    costs: dict[str, float]


def _named_lists(
    context: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> dict[str, list[str]]:
    """Read NAME=COLUMN,COLUMN pairs."""
    named: dict[str, list[str]] = {}
    for value in values:
        name, equals, columns = value.partition("=")
        name = name.strip()
        if not equals or not name or not columns.strip():
            raise click.BadParameter(f"{value!r} is not of the form NAME=COLUMN,COLUMN.")
        if name in named:
            raise click.BadParameter(f"{name!r} is given twice.")
        named[name] = words(context, parameter, (columns,))
    return named


def _bounds(
    context: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> int | dict[str, int] | None:
    """Read one number for every family, or FAMILY=NUMBER pairs."""
    if len(values) == 1 and re.fullmatch(r"\d+", values[0]):
        return int(values[0])
    bounds: dict[str, int] = {}
    for value in values:
        name, _, number = value.rpartition("=")
        name = name.strip()
        if not name and re.fullmatch(r"\d+", value):
            raise click.BadParameter(
                f"{value!r} is for every family and goes alone; give FAMILY=NUMBER for each."
            )
        if not name or not re.fullmatch(r"\d+", number.strip()):
            raise click.BadParameter(
                f"{value!r} is neither a number, for every family, nor of the form FAMILY=NUMBER."
            )
        if name in bounds:
            raise click.BadParameter(f"{name!r} is given twice.")
        bounds[name] = int(number)
    return bounds or None


def _prices(
    context: click.Context, parameter: click.Parameter, value: str | None
) -> CostOptions | None:
    """Read a CSV file of two columns, names and costs, below a header."""
    if value is None:
        return None
    try:
        return CostOptions(value, _read_costs(value))
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(
            f"--costs {value!r} is not CSV in UTF-8; a header and lines NAME,COST are wanted"
        ) from error


def _read_costs(value: str) -> dict[str, float]:
    costs: dict[str, float] = {}
    with open(value, newline="", encoding="utf-8") as file:
        for number, line in enumerate(csv.reader(file), start=1):
            if not line or (number == 1 and not _is_number(line[-1])):
                # The first line is a header, unless a number stands in it.
                continue
            where = f"--costs {value!r}, line {number}"
            if len(line) != 2:
                raise InputError(f"{where}: a name and a cost are wanted, not {len(line)} values")
            name, cost = line
            if name in costs:
                raise InputError(f"{where}: {name!r} is there twice")
            try:
                costs[name] = float(cost)
            except ValueError:
                raise InputError(f"{where}: {cost!r} is not a number") from None
    if not costs:
        raise InputError(f"--costs {value!r} has no costs: a header and lines NAME,COST are wanted")
    return costs


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def constraint_options() -> list[Callable[..., Any]]:
    """Return the options, in the order of the help."""
    return [
        click.option("--include", multiple=True, metavar="COLUMN,...", callback=words,
                     help="Always in; repeatable."),
        click.option("--exclude", multiple=True, metavar="COLUMN,...", callback=words,
                     help="Never in; repeatable. (--drop does not even read a column.)"),
        click.option("--group", "feature_groups", multiple=True, metavar="NAME=COLUMN,...",
                     callback=_named_lists,
                     help="Columns that enter together; repeatable. (Rows: --groups.)"),
        click.option("--count", type=click.Choice(["groups", "columns"]), default="groups",
                     show_default=True, help="Whether a group is one of the K, or many."),
        click.option("--family", "families", multiple=True, metavar="NAME=COLUMN,...",
                     callback=_named_lists,
                     help="Columns whose chosen ones are counted; repeatable."),
        click.option("--at-least", multiple=True, metavar="[FAMILY=]N", callback=_bounds,
                     help="Fewest of a family, or of each."),
        click.option("--at-most", multiple=True, metavar="[FAMILY=]N", callback=_bounds,
                     help="Most of a family, or of each."),
        click.option("--costs", metavar="FILE", callback=_prices,
                     help="CSV file with a header and lines NAME,COST."),
        click.option("--budget", type=float, help="What the chosen columns may cost together."),
        click.option("--max-correlation", type=float, metavar="R",
                     help="Largest absolute correlation of two chosen columns."),
    ]  # fmt: skip


def _quotas(
    families: dict[str, list[str]],
    at_least: int | dict[str, int] | None,
    at_most: int | dict[str, int] | None,
) -> dict[str, dict[str, Any]]:
    """Return families and their bounds as `Problem.with_constraints` has them."""
    quotas: dict[str, dict[str, Any]] = {
        name: {"columns": columns} for name, columns in families.items()
    }
    for name, bound in (("at_least", at_least), ("at_most", at_most)):
        option = f"--{name.replace('_', '-')}"
        if bound is not None and not families:
            raise click.UsageError(f"{option} counts columns of families; give --family as well.")
        bounds = dict.fromkeys(families, bound) if isinstance(bound, int) else bound or {}
        for family, number in bounds.items():
            if family not in quotas:
                known = join_items(families)
                raise click.UsageError(
                    f"{option}: there is no family {family!r}; there are {known}."
                )
            quotas[family][name] = number
    return quotas


def constraints_of(options: dict[str, Any]) -> dict[str, Any]:
    """Take those that were given out of all options, as `Problem.with_constraints` has them."""
    quotas = _quotas(*(options.pop(name) for name in ("families", "at_least", "at_most")))
    asked = {name: options.pop(name) for name in CONSTRAINTS if name != "quotas"}
    asked["quotas"] = quotas
    if asked["costs"] is not None:
        asked["costs"] = asked["costs"].costs
    given = {name: value for name, value in asked.items() if value not in (None, [], {})}
    if given.get("count") == "groups":
        del given["count"]
    return given
