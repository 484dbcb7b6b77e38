"""``exactk methods``: what can be given to ``--method``."""

from __future__ import annotations

import json

import click

__all__ = ["methods"]


@click.command()
@click.option(
    "--format",
    "style",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="How to print the list.",
)
def methods(style: str) -> None:
    """List the methods: name, family, summary and reference."""
    from exactk import registry

    infos = [registry.describe(name) for name in registry.names()]
    if style == "json":
        fields = ("name", "family", "summary", "reference")
        rows = [{field: getattr(info, field) for field in fields} for info in infos]
        click.echo(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    name_width = max(len(info.name) for info in infos)
    family_width = max(len(info.family) for info in infos)
    for info in infos:
        click.echo(f"{info.name:{name_width}}  {info.family:{family_width}}  {info.summary}")
        click.echo(f"{'':{name_width}}  {'':{family_width}}  {info.reference}")
