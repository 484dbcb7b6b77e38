"""The documentation site: pages that are made of the code and the records when it is built.

A Sphinx extension. Before anything is read it writes a page for each method of the registry and
the index of the API; while reading it answers the directives ``command-help`` and
``method-table``, leads links to files of the repository to their pages and marks what the style
sheet is to set apart; at the end it links names in code type to what they name.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config

from tools.site.api import index_page
from tools.site.commands import CommandHelp
from tools.site.links import LinkNames, lead_home, lead_included_home
from tools.site.looks import frame_pictures, keep_numbers_whole
from tools.site.methods import MethodTable, method_pages
from tools.site.rst import heading

__all__ = ["setup"]

ROOT = Path(__file__).resolve().parents[2]


def setup(app: Sphinx) -> dict[str, Any]:
    """Tell Sphinx what there is."""
    # Before Sphinx looks for pages, so that these are among them.
    app.connect("config-inited", write_pages)
    app.connect("autodoc-skip-member", leave_out)
    app.connect("autodoc-process-signature", without_fields)
    app.connect("source-read", lead_home)
    app.connect("include-read", lead_included_home)
    app.connect("doctree-read", trim)
    app.connect("doctree-read", keep_numbers_whole)
    # Before Sphinx collects the pictures, so that the dark ones are among them.
    app.connect("doctree-read", frame_pictures, priority=400)
    app.add_directive("command-help", CommandHelp)
    app.add_directive("method-table", MethodTable)
    app.add_post_transform(LinkNames)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def leave_out(
    app: Sphinx, kind: str, name: str, member: object, skip: bool, options: object
) -> bool | None:
    """Leave out members that other packages give to our classes, and scikit-learn's routing."""
    # Properties have no module of their own, but their functions have.
    function = getattr(member, "fget", None) or getattr(member, "func", None) or member
    home = getattr(function, "__module__", None) or ""
    routing = name.startswith("set_") and name.endswith("_request")
    return True if routing or not home.startswith("exactk") else None


def without_fields(
    app: Sphinx, kind: str, name: str, member: object, *signature: object
) -> tuple[str, None] | None:
    """Leave out the fields of data classes, which functions make and users read."""
    return ("", None) if kind == "class" and is_dataclass(member) else None


def trim(app: Sphinx, doctree: nodes.document) -> None:
    """Take away the empty line that doctest wants at the end of an example."""
    for block in doctree.findall(nodes.literal_block):
        if block.astext().endswith("\n") and len(block.children) == 1:
            block.rawsource = block.astext().rstrip("\n")
            block[:] = [nodes.Text(block.rawsource)]


def write_pages(app: Sphinx, config: Config) -> None:
    """Write the pages that are generated; those that have not changed are left alone."""
    docs = Path(app.srcdir)
    write_all(docs / "methods", method_pages(ROOT))
    index = index_page()
    # Sphinx makes the pages of the names that the index lists.
    write_all(
        docs / "api", {"index": index}, others=re.findall(r"^   (exactk[\w.]+)$", index, re.M)
    )
    write_all(docs / "examples", example_pages(ROOT))


def example_pages(root: Path) -> dict[str, str]:
    """Return a page for each script of the examples, which the page of examples links to."""
    return {
        script.stem: f":orphan:\n\n{heading(script.name, '=')}\n\n"
        f".. literalinclude:: ../../examples/{script.name}\n   :language: python\n"
        for script in sorted((root / "examples").glob("*.py"))
    }


def write_all(folder: Path, pages: dict[str, str], *, others: Collection[str] = ()) -> None:
    """Write pages by name; a page of what is gone, neither here nor among the others, goes."""
    folder.mkdir(exist_ok=True)
    for old in folder.glob("*.rst"):
        if old.stem not in pages and old.stem not in others:
            old.unlink()
    for name, text in pages.items():
        path = folder / f"{name}.rst"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
