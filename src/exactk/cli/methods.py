"""``exactk methods``: what can be given to ``--method``, and its options."""

from __future__ import annotations

import inspect
import json
from typing import Any

import click

from exactk.cli.options import list_format

__all__ = ["methods"]

FIELDS = ("name", "family", "summary", "reference")


@click.command()
@click.argument("name", required=False)
@list_format
def methods(name: str | None, style: str) -> None:
    """List the methods, or the options of the one with NAME.

    exactk compare and exactk report also take selectkbest, rfe and l1 of scikit-learn, to compare
    with.
    """
    from exactk.methods import registry

    if name is not None:
        _describe(name, style)
        return
    infos = [registry.describe(known) for known in registry.names()]
    if style == "json":
        rows = [
            {field: getattr(info, field) for field in FIELDS}
            | {"needs": registry.method_class(info.name).needs()}
            for info in infos
        ]
        click.echo(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    name_width = max(len(info.name) for info in infos)
    family_width = max(len(info.family) for info in infos)
    for info in infos:
        click.echo(f"{info.name:{name_width}}  {info.family:{family_width}}  {info.summary}")
        click.echo(f"{'':{name_width}}  {'':{family_width}}  {info.reference}")


def _describe(name: str, style: str) -> None:
    """Print one method: what it does, and each option with its default and range."""
    from exactk.methods import registry

    info, cls = registry.describe(name), registry.method_class(name)
    defaults = inspect.signature(cls).parameters
    options: list[dict[str, Any]] = [
        {
            "name": option,
            "default": parameter.default,
            "range": str(cls.checks[option]) if option in cls.checks else None,
        }
        for option, parameter in defaults.items()
    ]
    needs = cls.needs()
    if style == "json":
        facts = {field: getattr(info, field) for field in FIELDS}
        shown = {**facts, "needs": needs, "options": options}
        click.echo(json.dumps(shown, indent=2, ensure_ascii=False))
        return
    click.echo(f"{info.name}: {info.summary} ({info.reference})")
    if needs:
        click.echo(f"{'; '.join(needs)}")
    if options:
        width = max(len(f"{o['name']}={o['default']}") for o in options)
        click.echo()
        for option in options:
            text = f"{option['name']}={option['default']}"
            click.echo(f"  {text:{width}}  {option['range'] or ''}".rstrip())
