"""How a command searches, and how it chooses a size: options that several commands have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import reduce, wraps
from typing import TYPE_CHECKING, Any

import click

from exactk.cli.row_groups import groups_option
from exactk.cli.settings import read_settings

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from exactk.cli.table_options import TableOptions
    from exactk.model_selection.choose_k import AutoKResult
    from exactk.problem.problem import Problem

__all__ = ["SearchOptions", "SizeOptions", "search_options", "size_options"]

CRITERIA = ("cv", "bic", "ebic", "aicc", "cp")
RULES = ("one_se", "paired", "best")


@dataclass(frozen=True)
class SearchOptions:
    """What the options say about the search, as they were given."""

    method: str
    effort: float | None
    time_limit: float | None
    settings: dict[str, Any]
    seed: int | None

    def options(self) -> dict[str, Any]:
        """Return the parameters of the method, checked; what is wrong is said before any work."""
        from exactk.methods.registry import create, method_class

        own = (("effort", self.effort, "--effort"), ("random_state", self.seed, "--seed"))
        for name, value, flag in own:
            if value is not None and name in self.settings:
                raise click.UsageError(f"{name!r} is given twice, by {flag} and by -O.")
        options = dict(self.settings)
        if self.effort is not None:
            options["effort"] = self.effort
        if self.seed is not None and "random_state" in method_class(self.method).option_names():
            options["random_state"] = self.seed
        create(self.method, **options).check()
        return options


@dataclass(frozen=True)
class SizeOptions:
    """What the options say about the choice of a size; None where they say nothing."""

    k_max: int | None
    criterion: str | None
    folds: int | None
    rule: str | None
    row_groups: str | None

    @property
    def used_options(self) -> list[str]:
        """The options that were given, by name."""
        names = [part.name for part in fields(self) if getattr(self, part.name) is not None]
        return [f"--{name.removeprefix('row_').replace('_', '-')}" for name in names]

    def choose(
        self,
        problem: Problem,
        source: TableOptions,
        search: SearchOptions,
        options: dict[str, Any],
        groups: npt.NDArray[np.generic] | None,
    ) -> AutoKResult:
        """Choose the size and the columns; rows of a group stay together."""
        from exactk.model_selection.choose_k import choose_k

        # The seed is that of the split, too, also where the method has none.
        rest = {name: value for name, value in options.items() if name != "random_state"}
        return choose_k(
            problem, self.k_max, criterion=self.criterion or CRITERIA[0], method=search.method,
            cv=self.folds, rule=self.rule or RULES[0], ridge=source.ridge, groups=groups,
            time_limit=search.time_limit, verbose=source.verbose,
            random_state=options.get("random_state", search.seed), **rest,
        )  # fmt: skip


def search_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of the search; it gets them as one `search`."""
    return _gathered(command, "search", SearchOptions, _search_options())


def size_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of the choice of a size; it gets them as one `sizing`."""
    return _gathered(command, "sizing", SizeOptions, _size_options())


def _gathered(
    command: Callable[..., Any], name: str, kind: Any, options: list[Callable[..., Any]]
) -> Callable[..., Any]:
    names = [part.name for part in fields(kind)]

    @wraps(command)
    def gathered(**values: Any) -> Any:
        values[name] = kind(**{part: values.pop(part) for part in names})
        return command(**values)

    return reduce(lambda wrapped, option: option(wrapped), reversed(options), gathered)


def _search_options() -> list[Callable[..., Any]]:
    return [
        click.option("--method", default="exchange", show_default=True,
                     help="See: exactk methods."),
        click.option("--effort", type=click.FloatRange(min=0),
                     help="How hard to search; 0 stops at the first answer no swap improves."),
        click.option("--time-limit", type=click.FloatRange(min=0, min_open=True),
                     metavar="SECONDS", help="End by then, with the best found."),
        click.option("-O", "--option", "settings", multiple=True, metavar="NAME=VALUE",
                     callback=_settings,
                     help="Parameter of the method, for example lam=0.1; repeatable. See: exactk "
                     "methods NAME."),
        click.option("--seed", type=click.IntRange(min=0), help="Seed of all that is drawn."),
    ]  # fmt: skip


def _size_options() -> list[Callable[..., Any]]:
    return [
        click.option("--k-max", type=click.IntRange(min=1),
                     help="Largest size to try; 50 by default, or fewer where the table is small."),
        click.option("--criterion", type=click.Choice(CRITERIA),
                     help="What chooses the size: cross-validation (cv, the default) or a "
                     "criterion that needs no rows."),
        click.option("--folds", type=click.IntRange(min=2), help="Folds of cv; 5 by default."),
        click.option("--rule", type=click.Choice(RULES),
                     help="one_se (the default) takes the smallest size within a standard error "
                     "of the best by cv, paired goes by that of their difference."),
        groups_option,
    ]  # fmt: skip


def _settings(
    context: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> dict[str, Any]:
    return read_settings(values)
