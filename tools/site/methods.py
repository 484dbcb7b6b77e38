"""One page a method, from the registry, the docstring of its class and the records."""

from __future__ import annotations

import inspect
from pathlib import Path

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from exactk.methods import registry
from exactk.methods.base import Method
from tools.site.docstring import Docstring, as_rst, take_apart
from tools.site.measured import measured
from tools.site.rst import heading

__all__ = ["MethodTable", "families", "method_page", "method_pages"]

NOT_MEASURED = (
    "No record of ``benchmarks/results`` holds it by itself; ``exactk papers run leaderboard "
    "--methods {name}`` measures it here."
)


def method_pages(root: Path) -> dict[str, str]:
    """Return the page of every method by its name."""
    return {name: method_page(root, name) for name in registry.names()}


def method_page(root: Path, name: str) -> str:
    """Return the page of a method."""
    info, cls = registry.describe(name), registry.method_class(name)
    doc = take_apart(inspect.getdoc(cls) or "")
    figures = measured(root, name) or NOT_MEASURED.format(name=name)
    parts = [
        heading(name, "="),
        _capital(info.summary) + ".",
        facts(name, cls),
        heading("What it does"),
        as_rst(doc.text),
        heading("Cost"),
        _capital(as_rst(doc.named["Cost"])),
        heading("Guarantee"),
        _capital(as_rst(doc.named["Guaranteed"])),
        heading("Options"),
        options(cls, doc),
        *([heading("Notes"), as_rst(doc.notes)] if doc.notes else []),
        heading("Measured"),
        figures,
        heading("Example"),
        doc.examples,
        *([heading("Paper"), doc.references] if doc.references else []),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def facts(name: str, cls: type[Method]) -> str:
    """Return a field list: family, source, needs, what it keeps, class and command."""
    info = registry.describe(name)
    keeps = "all constraints" if cls.takes_rules else "of the constraints, ``exclude``"
    loss = "whichever the problem has" if cls.takes_losses else "its own; graded by the problem's"
    command = f"exactk select table.csv --target y -k 10 --method {name}"
    lines = {
        "Family": info.family,
        "Source": info.reference,
        "Needs": "; ".join(cls.needs()).replace('"', "``", 2) or "moments of the table",
        "Loss": loss,
        "Keeps": keeps,
        "Class": f"``{info.target.replace(':', '.')}``",
        "Command": f"``{command}``",
    }
    fields = "\n".join(f":{title}: {text}" for title, text in lines.items())
    return f".. rst-class:: facts\n\n{fields}"


def options(cls: type[Method], doc: Docstring) -> str:
    """Return a definition list: each option with its default, range and meaning."""
    parameters = inspect.signature(cls).parameters
    if not parameters:
        return "None."
    lines = []
    for name, parameter in parameters.items():
        allowed = f" : {cls.checks[name]}" if name in cls.checks else ""
        told = as_rst(doc.parameters.get(name, ""))
        lines.append(f"``{name}={parameter.default}``{allowed.replace('*', '')}\n    {told}")
    return "\n\n".join(lines)


def families() -> dict[str, list[str]]:
    """Return the names of the methods by family, in the order of the registry.

    Examples
    --------
    >>> families()["exact"]
    ['exhaustive']
    """
    found: dict[str, list[str]] = {}
    for name in registry.names():
        found.setdefault(registry.describe(name).family, []).append(name)
    return found


class MethodTable(SphinxDirective):
    """``method-table``: every method by family, with its line of the registry."""

    def run(self) -> list[nodes.Node]:
        """Return a heading and a table for each family."""
        found: list[nodes.Node] = []
        for family, members in families().items():
            infos = [registry.describe(name) for name in members]
            # The names become links as they do everywhere (`tools.site.links`).
            rows = [f"| `{i.name}` | {i.summary} | {i.reference} |" for i in infos]
            lines = [f"**{family}**", "", "| method | what it does | source |",
                     "| --- | --- | --- |", *rows]  # fmt: skip
            found += self.parse_text_to_nodes("\n".join(lines))
        return found


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]
