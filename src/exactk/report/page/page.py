"""The page on a choice: what was asked, what was found, and how far it can be trusted."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from exactk.report.document import document, side_bar, write_document
from exactk.report.markup import Markup, join, label, tag
from exactk.report.page.class_means import class_means_section
from exactk.report.page.features import features_section
from exactk.report.page.glossary import glossary
from exactk.report.page.performance import scores_section, stability_section
from exactk.report.page.proof import proof_section
from exactk.report.page.reproducibility import reproduce_section, warnings_section
from exactk.report.page.sizes import sizes_section
from exactk.report.page.summary import settings_section, summary_section

__all__ = ["selection_page", "write_selection_page"]

# Anchor, what to call it in the list at the side, and who draws it.
SECTIONS = (
    ("asked", "What was asked", settings_section),
    ("chosen", "The chosen features", features_section),
    ("worth", "What they are worth", scores_section),
    ("sizes", "How many", sizes_section),
    ("stability", "How stable", stability_section),
    ("look", "What they look like", class_means_section),
    ("proof", "Is there anything better?", proof_section),
    ("warnings", "About the data", warnings_section),
    ("made", "How to make this again", reproduce_section),
    ("words", "What the words mean", glossary),
)


def selection_page(record: Mapping[str, Any]) -> str:
    """Return a self-contained HTML page on the record of an investigation.

    Parameters
    ----------
    record : mapping
        Of `exactk.SelectionReport`. Whatever its names hold is shown as text.

    Returns
    -------
    str
    """
    k, target = record["selection"]["k"], record["settings"]["target"]
    title = f"{k} of {record['settings']['n_features']:,} features for {target}"
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
                tag("header", tag("h1", label(title)), summary_section(record)),
                *drawn,
                _foot(record),
                id="results",
            ),
            class_="page choice",
        ),
    )


def write_selection_page(record: Mapping[str, Any], path: Path) -> Path:
    """Write the page of `selection_page` to a file and return its path.

    Parameters
    ----------
    record : mapping
    path : Path

    Raises
    ------
    InputError
        The file cannot be written.
    """
    return write_document(selection_page(record), path)


def _side() -> Markup:
    links = [tag("li", tag("a", name, href=f"#{anchor}")) for anchor, name, _ in SECTIONS]
    return side_bar(links, "Sections")


def _foot(record: Mapping[str, Any]) -> Markup:
    words = f"Made by exactk {record['versions']['exactk']} on {record['made'][:10]}."
    return join(tag("footer", words))
