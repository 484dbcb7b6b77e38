"""``exactk losses``: what can be given to ``--loss``."""

from __future__ import annotations

import json

import click

from exactk.cli.options import list_format

__all__ = ["losses"]


@click.command()
@list_format
def losses(style: str) -> None:
    """List the losses: what is minimised on the chosen columns, and their parameters."""
    from exactk.losses import create, loss_class, names

    if style == "json":
        listed = [
            {
                "name": name,
                "summary": loss_class(name).summary,
                "options": create(name).get_params(),
            }
            for name in names()
        ]
        click.echo(json.dumps(listed, indent=2, ensure_ascii=False))
        return
    width = max(map(len, names()))
    for name in names():
        kind = loss_class(name)
        click.echo(f"{name:{width}}  {kind.summary}")
        for option, value in create(name).get_params().items():
            click.echo(
                f"{'':{width}}  {option}={value}, {kind.checks[option]}: {name}:{option}={value}"
            )
    click.echo(
        "\n--loss NAME, or NAME:PARAMETER=VALUE. exchange, greedy and exhaustive choose by it;\n"
        "other methods choose by their own criterion, and it fits and grades what they chose."
    )
