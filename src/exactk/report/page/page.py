"""The page on a choice: what was asked, what was found, and how far it can be trusted."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from exactk.report.document import document, write_document
from exactk.report.markup import (
    Markup,
    join,
    label,
    tag,
)
from exactk.report.page.chosen import chosen
from exactk.report.page.class_means import look
from exactk.report.page.glossary import glossary
from exactk.report.page.proof import proof
from exactk.report.page.reproducibility import made, remarks
from exactk.report.page.sizes import sizes
from exactk.report.page.summary import asked, headline
from exactk.report.page.worth import stability, worth

__all__ = ["choice_page", "write_choice_page"]

# Anchor, what to call it in the list at the side, and who draws it.
SECTIONS = (
    ("asked", "What was asked", asked),
    ("chosen", "The chosen features", chosen),
    ("worth", "What they are worth", worth),
    ("sizes", "How many", sizes),
    ("stability", "How stable", stability),
    ("look", "What they look like", look),
    ("proof", "Is there anything better?", proof),
    ("remarks", "About the data", remarks),
    ("made", "How to make this again", made),
    ("words", "What the words mean", glossary),
)


def choice_page(record: Mapping[str, Any]) -> str:
    """Return a self-contained HTML page on the record of an investigation.

    Parameters
    ----------
    record : mapping
        Of `exactk.Dossier`. Whatever its names hold is shown as text.

    Returns
    -------
    str
    """
    k, target = record["choice"]["k"], record["asked"]["target"]
    title = f"{k} of {record['asked']['n_features']:,} features for {target}"
    drawn = [
        tag("section", tag("h2", name), draw(record), id=anchor, class_="recipe")
        for anchor, name, draw in SECTIONS
    ]
    return document(
        f"exactk: {title}",
        tag("a", "Skip to the results", href="#results", class_="skip"),
        tag(
            "div",
            _side(),
            tag(
                "main",
                tag("header", tag("h1", label(title)), headline(record)),
                *drawn,
                _foot(record),
                id="results",
            ),
            class_="page choice",
        ),
    )


def write_choice_page(record: Mapping[str, Any], path: Path) -> Path:
    """Write the page of `choice_page` to a file and return its path.

    Parameters
    ----------
    record : mapping
    path : Path

    Raises
    ------
    InputError
        The file cannot be written.
    """
    return write_document(choice_page(record), path)


def _side() -> Markup:
    links = [tag("li", tag("a", name, href=f"#{anchor}")) for anchor, name, _ in SECTIONS]
    return tag(
        "aside",
        tag("nav", tag("ul", *links), aria_label="Sections"),
        tag(
            "form",
            tag(
                "button", "Dark", type="button", id="theme", class_="theme", aria_label="Dark theme"
            ),
            id="controls",
            class_="controls",
            aria_label="Appearance",
        ),
        class_="side",
    )


def _foot(record: Mapping[str, Any]) -> Markup:
    words = f"Made by exactk {record['versions']['exactk']} on {record['made'][:10]}."
    return join(tag("footer", words))
