"""``exactk list``: the methods and the losses, with their parameters."""

from __future__ import annotations

from typing import Any

from exactk.cli.framework import Call, LazyGroup, Listing, aligned, argument, command

__all__ = ["list_", "list_losses", "list_methods"]


list_ = LazyGroup(
    "list",
    "List methods and losses.",
    {
        "methods": ("exactk.cli.list:list_methods", "Selection methods, or the parameters of one."),
        "losses": ("exactk.cli.list:list_losses", "Losses and their parameters."),
    },
)


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
    rows = [{"name": known, **_facts(known)} for known in registry.names()]
    width = max(len(row["name"]) for row in rows) + 2
    lines = [
        f"{row['name']:{width}}{row['family']}, {row['reference']}\n{'':{width}}{row['summary']}"
        for row in rows
    ]
    return call.emit(Listing("methods", rows), lines)


def _facts(name: str) -> dict[str, Any]:
    """Return what is known of a method."""
    from exactk.methods import registry

    info, needs = registry.describe(name), registry.method_class(name).needs()
    return {
        "family": info.family, "summary": info.summary, "reference": info.reference, "needs": needs
    }  # fmt: skip


def _show_method(call: Call, name: str) -> int:
    import inspect

    from exactk.methods import registry

    facts, kind = _facts(name), registry.method_class(name)
    rows = [
        {
            "name": parameter,
            "default": one.default,
            "expected": str(kind.checks[parameter]) if parameter in kind.checks else None,
        }
        for parameter, one in inspect.signature(kind).parameters.items()
    ]
    options = {f"  {row['name']}={row['default']}": row["expected"] or " " for row in rows}
    lines = [f"{name}: {facts['summary']} ({facts['reference']})", *facts["needs"]]
    lines += ["", *(line.rstrip() for line in aligned(options))] if rows else []
    return call.emit(Listing("parameters", rows, name=name, **facts), lines)


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
    return call.emit(Listing("losses", rows), lines)
