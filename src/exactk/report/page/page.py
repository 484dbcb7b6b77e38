"""The page on a selection: what was requested, what was found, and how reliable it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from exactk.report.document import document, side_bar
from exactk.report.markup import Markup, join, label, tag
from exactk.report.page.class_means import class_means_section
from exactk.report.page.features import features_section
from exactk.report.page.glossary import glossary
from exactk.report.page.performance import scores_section, stability_section
from exactk.report.page.proof import proof_section
from exactk.report.page.record import page_record
from exactk.report.page.reproducibility import reproduce_section, warnings_section
from exactk.report.page.sizes import sizes_section
from exactk.report.page.summary import settings_section, summary_section

__all__ = ["selection_page"]

# Anchor, what to call it in the list at the side, and who draws it.
SECTIONS = (
    ("asked", "Settings", settings_section),
    ("chosen", "Selected features", features_section),
    ("worth", "Performance on held-out data", scores_section),
    ("sizes", "Number of features", sizes_section),
    ("stability", "Stability", stability_section),
    ("look", "Means and correlations", class_means_section),
    ("proof", "Proof", proof_section),
    ("warnings", "Data warnings", warnings_section),
    ("made", "Reproduce this report", reproduce_section),
    ("words", "Glossary", glossary),
)


def selection_page(report: Mapping[str, Any]) -> str:
    """Return the self-contained HTML page of a report.

    Parameters
    ----------
    report : mapping
        Of `exactk.SelectionReport.to_dict`. Whatever its names hold is shown as text.

    Returns
    -------
    str
    """
    record = page_record(report)
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


def _side() -> Markup:
    links = [tag("li", tag("a", name, href=f"#{anchor}")) for anchor, name, _ in SECTIONS]
    return side_bar(links, "Sections")


def _foot(record: Mapping[str, Any]) -> Markup:
    words = f"Made by exactk {record['versions']['exactk']} on {record['made'][:10]}."
    return join(tag("footer", words))
