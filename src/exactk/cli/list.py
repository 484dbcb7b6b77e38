"""``exactk list``: the methods and the losses, with their parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from exactk.cli.framework import Call, LazyGroup, argument, command
from exactk.cli.framework.options import HELP

if TYPE_CHECKING:
    from exactk.utils.records_table import RecordsTable

__all__ = ["Listing", "list_", "list_losses", "list_methods", "show_help"]


@click.pass_context
def show_help(context: click.Context) -> None:
    """Show the help of a group that was called without a command."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


list_ = LazyGroup(
    "list",
    help="List methods and losses.",
    lazy={
        "methods": ("exactk.cli.list:list_methods", "Selection methods, or the parameters of one."),
        "losses": ("exactk.cli.list:list_losses", "Losses and their parameters."),
    },
    callback=show_help,
    invoke_without_command=True,
    context_settings=HELP,
)


class Listing:
    """Rows that a command lists, as a result.

    Parameters
    ----------
    name : str
        What the rows are, such as "methods".
    rows : sequence of mapping
        With the same keys.
    **facts
        What the rows have in common.
    """

    def __init__(self, name: str, rows: Sequence[Mapping[str, Any]], /, **facts: Any) -> None:
        self.name = name
        self.rows = rows
        self.facts = facts

    @property
    def table(self) -> RecordsTable:
        """The rows as a table; a dictionary is a list of NAME=VALUE."""
        from exactk.utils.records_table import RecordsTable

        columns = list(self.rows[0]) if self.rows else [self.name]
        return RecordsTable(columns, [[_flat(row[name]) for name in columns] for row in self.rows])

    def to_dict(self) -> dict[str, Any]:
        """Return the rows under their name."""
        return {**self.facts, self.name: [dict(row) for row in self.rows]}

    def __repr__(self) -> str:
        """Return the table as text."""
        return repr(self.table)


def _flat(value: Any) -> Any:
    if isinstance(value, dict):
        return [f"{name}={item}" for name, item in value.items()]
    return value


@command("list methods")
@argument("name", required=False)
def list_methods(call: Call, name: str | None) -> int:
    """List the selection methods, or the parameters of the method NAME.

    exactk evaluate and exactk report also compare with selectkbest, rfe and l1
    of scikit-learn. Give parameters as in --method gsrfs:lam=0.1,r=1.
    """
    from exactk.methods import registry

    if name is not None:
        return _show_method(call, name)
    rows = []
    for known in registry.names():
        info = registry.describe(known)
        rows.append(
            {
                "name": known,
                "family": info.family,
                "summary": info.summary,
                "reference": info.reference,
                "needs": registry.method_class(known).needs(),
            }
        )
    width = max(len(row["name"]) for row in rows) + 2
    lines = (
        f"{row['name']:{width}}{row['family']}, {row['reference']}\n{'':{width}}{row['summary']}"
        for row in rows
    )
    return call.emit(Listing("methods", rows), "\n".join(lines))


def _show_method(call: Call, name: str) -> int:
    import inspect

    from exactk.methods import registry

    info, kind = registry.describe(name), registry.method_class(name)
    rows = [
        {
            "name": parameter,
            "default": one.default,
            "expected": str(kind.checks[parameter]) if parameter in kind.checks else None,
        }
        for parameter, one in inspect.signature(kind).parameters.items()
    ]
    facts = {
        "name": name,
        "family": info.family,
        "summary": info.summary,
        "reference": info.reference,
        "needs": kind.needs(),
    }
    width = max((len(f"{row['name']}={row['default']}") for row in rows), default=0) + 2
    lines = [f"{name}: {info.summary} ({info.reference})", *kind.needs()]
    lines += [""] if rows else []
    lines += [
        f"  {row['name'] + '=' + str(row['default']):{width}}{row['expected'] or ''}".rstrip()
        for row in rows
    ]
    return call.emit(Listing("parameters", rows, **facts), "\n".join(lines))


@command("list losses")
def list_losses(call: Call) -> int:
    """List the losses that can be minimised, with their parameters.

    The methods exchange, greedy and exhaustive minimise the loss. Other methods
    select by their own criterion; the loss then fits and scores the selection.
    """
    from exactk.losses.registry import create, loss_class, names

    rows, lines = [], []
    width = max(map(len, names())) + 2
    for name in names():
        kind, parameters = loss_class(name), create(name).get_params()
        rows.append({"name": name, "summary": kind.summary, "parameters": parameters})
        lines.append(f"{name:{width}}{kind.summary}")
        lines += [
            f"{'':{width}}--loss {name}:{parameter}={value} ({parameter}: {kind.checks[parameter]})"
            for parameter, value in parameters.items()
        ]
    return call.emit(Listing("losses", rows), "\n".join(lines))
