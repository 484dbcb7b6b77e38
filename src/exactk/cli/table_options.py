"""The table that a command is about: options that say which, and the problem made of them."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import reduce, wraps
from typing import TYPE_CHECKING, Any

import click

from exactk.cli.constraint_options import CostOptions, constraint_options, constraints_of
from exactk.cli.options import (
    classes_option,
    columns_option,
    drop_option,
    gene_names_option,
    layer_option,
    memory_option,
    only_one,
    weights_option,
)
from exactk.cli.settings import read_settings
from exactk.cli.tables import TableRoles, open_problem
from exactk.cli.wording import as_options, as_sentence
from exactk.errors import ExactkError, InputError, did_you_mean

if TYPE_CHECKING:
    from exactk.data.targets import Task
    from exactk.losses.base import Loss
    from exactk.problem.problem import Problem

__all__ = ["TableOptions", "show_warnings", "table_options"]


@dataclass(frozen=True)
class TableOptions:
    """What the options of a command say about its table, as they were given."""

    table: str | None
    moments: str | None
    target: str | None
    ridge: str | float
    columns: list[str]
    drop: tuple[str, ...]
    weights: str | None
    task: Task
    loss: Loss
    class_weight: str | None
    classes: list[str]
    layer: str | None
    gene_names: str | None
    memory_limit: int | None
    quiet: bool
    constraints: dict[str, Any]
    costs_file: str | None

    @property
    def verbose(self) -> int:
        """1 where progress is shown."""
        return 0 if self.quiet else 1

    @property
    def inputs(self) -> tuple[str, list[str]]:
        """What an output must not overwrite, and what that is."""
        what, files = "input", [str(self.moments)]
        if self.table is not None:
            what, files = "table", [self.table]
        if self.costs_file is not None:
            what, files = f"{what} or the file of costs", [*files, self.costs_file]
        return what, files

    def echo(self, message: str) -> None:
        """Say a sentence that an answer comes with, unless there is none or nobody listens."""
        if message and not self.quiet:
            click.echo(f"exactk: {as_sentence(as_options(message))}", err=True)

    def open(self) -> tuple[Problem, str]:
        """Return the problem, its ridge still to be set, and the name of the target."""
        problem, target = self._read()
        problem = problem.with_loss(self.loss)
        if self.class_weight is not None:
            problem = problem.with_class_weight(self.class_weight, verbose=self.verbose)
        if self.constraints:
            problem = problem.with_constraints(**self.constraints)
        return problem, target

    def _read(self) -> tuple[Problem, str]:
        if self.table is not None and self.target is not None:
            from exactk.losses.registry import task_of

            parts = TableRoles(
                self.target,
                self.columns,
                self.drop,
                self.weights,
                task_of(self.loss, self.task),
                self.classes,
                self.layer,
                self.gene_names,
            )
            problem = open_problem(
                self.table, parts, quiet=self.quiet, memory_limit=self.memory_limit
            )
            return problem, self.target
        rows = {
            "--weights": self.weights, "--task": self.task != "auto", "--classes": self.classes,
            "--layer": self.layer, "--gene-names": self.gene_names,
        }  # fmt: skip
        _refuse_rows(rows, self.ridge)
        return _from_moments(str(self.moments), self.columns, self.drop, self.memory_limit)

    def facts(self, problem: Problem, target: str) -> dict[str, Any]:
        """Return what was asked for and of what, for the record in an output."""
        return {
            "table": self.table,
            "moments": self.moments,
            "target": target,
            "weights": self.weights,
            "columns": self.columns or None,
            "dropped": list(self.drop),
            **({"layer": self.layer} if self.layer else {}),
            **({"gene_names": self.gene_names} if self.gene_names else {}),
            **({"constraints": self.constraints} if self.constraints else {}),
            "ridge_rule": self.ridge,
            "loss_options": self.loss.get_params(),
            **({"class_weight": self.class_weight} if self.class_weight else {}),
            "task": problem.task,
            "n_rows": problem.n_rows,
            "n_features": len(problem.original_names),
        }


def table_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options that say which table; it gets them as one `source`."""
    names = [part.name for part in fields(TableOptions)]

    @wraps(command)
    def gathered(**options: Any) -> Any:
        prices: CostOptions | None = options["costs"]
        options["costs_file"] = None if prices is None else prices.file
        options["constraints"] = constraints_of(options)
        source = TableOptions(**{name: options.pop(name) for name in names})
        return command(source=source, **options)

    return reduce(lambda wrapped, option: option(wrapped), reversed(_options()), gathered)


def _options() -> list[Callable[..., Any]]:
    return [
        click.argument("table", type=click.Path(), required=False, metavar="TABLE",
                       callback=_table),
        click.option("--from-moments", "moments", type=click.Path(), is_eager=True, metavar="FILE",
                     help="Moments made by exactk stats, in place of TABLE and --target."),
        click.option("--target", multiple=True, metavar="COLUMN", callback=_target,
                     help="Column to predict; of an .h5ad table a column of obs."),
        click.option("--ridge", callback=_ridge, metavar="auto|cv|NUMBER", default="auto",
                     show_default=True, help="Penalty, relative to the size of the columns."),
        columns_option,
        drop_option,
        weights_option,
        click.option("--task", type=click.Choice(["auto", "classification", "regression"]),
                     default="auto", show_default=True,
                     help="What the target is; auto goes by its values."),
        click.option("--loss", callback=_loss, default="squared", show_default=True,
                     metavar="NAME[:PARAMETER=VALUE]",
                     help="What is minimised, such as logistic, l21 or l2r:r=0.5. See: exactk "
                     "losses."),
        click.option("--class-weight", type=click.Choice(["balanced"]),
                     help="Make all classes weigh the same."),
        classes_option,
        layer_option,
        gene_names_option,
        memory_option,
        *constraint_options(),
        click.option("--quiet", is_flag=True, help="No progress bar, no warnings."),
    ]  # fmt: skip


@contextmanager
def show_warnings(quiet: bool) -> Iterator[None]:
    """Say each warning of the work inside once, as a sentence, when it has ended."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    if not quiet:
        for message in dict.fromkeys(str(warning.message) for warning in caught):
            click.echo(f"exactk: {as_sentence(as_options(message))}", err=True)


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


def _loss(context: click.Context, parameter: click.Parameter, value: str) -> Loss:
    """Read the name of a loss, perhaps with parameters after a colon."""
    from exactk.losses import create

    name, colon, rest = value.partition(":")
    settings = read_settings(rest.split(",") if colon else (), "r=0.7")
    try:
        return create(name, **settings)
    except ExactkError as error:
        raise click.BadParameter(str(error)) from error


def _table(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    _require_unless_moments(context, parameter, value is not None)
    return value


def _target(
    context: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> str | None:
    _require_unless_moments(context, parameter, bool(values))
    return only_one(context, parameter, values) if values else None


def _require_unless_moments(
    context: click.Context, parameter: click.Parameter, source: bool
) -> None:
    """Ask for what is not given, unless it is in the moments; refuse it if it is in both."""
    in_moments = context.params.get("moments") is not None
    if not in_moments and not source:
        raise click.MissingParameter(ctx=context, param=parameter)
    if in_moments and source:
        raise click.UsageError(
            f"--from-moments goes without {parameter.get_error_hint(context)}, which the moments "
            f"were made of; give one of the two."
        )


def _refuse_rows(options: dict[str, Any], ridge: str | float) -> None:
    """Raise for options that ask for rows where there are only their moments."""
    for option, value in options.items():
        if value:
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
    from exactk.data.moments import Moments
    from exactk.problem.problem import Problem

    moments = Moments.load(file)
    if columns or drop:
        names = moments.feature_names or ()
        for name in (*columns, *drop):
            if name not in names:
                raise InputError(f"column {name!r} is not in {file!r}{did_you_mean(name, names)}")
        kept = tuple(name for name in (columns or names) if name not in drop)
        if not kept:
            raise InputError(f"{file!r} has no feature columns besides those that are dropped")
        moments = moments.with_columns(kept)
    problem = Problem.from_moments(moments, overwrite=True)
    if memory_limit is not None:
        problem = replace(problem, memory_limit=memory_limit)
    return problem, moments.target or "y"
