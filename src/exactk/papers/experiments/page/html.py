"""The page of a benchmark: a section for each recipe, and how it was made."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from exactk._version import __version__
from exactk.papers.experiments.page.arrange import studies
from exactk.papers.experiments.page.provenance import origin
from exactk.papers.experiments.page.register import StyleRegister
from exactk.papers.experiments.page.sections import section
from exactk.papers.experiments.page.study import Study
from exactk.report.document import document, side_bar, write_document
from exactk.report.markup import Markup, label, tag
from exactk.report.numbers import plural

__all__ = ["page", "write_page"]

TITLE = "exactk: experiments"


def page(records: Iterable[Mapping[str, Any]], *, title: str = TITLE) -> str:
    """Return a self-contained HTML page on the records of a store.

    Parameters
    ----------
    records : iterable of mapping
        Recipes and cells, as `exactk.papers.experiments.store.Store.records` gives them.
    title : str

    Returns
    -------
    str
        A document with its styles, script and pictures inside.

    Examples
    --------
    >>> result = {"k": 2, "objective": 3.0, "measures": {"1nn": 0.5}}
    >>> cell = {
    ...     "type": "cell",
    ...     "recipe": "mine",
    ...     "dataset": "iris",
    ...     "method": "<b>",
    ...     "status": "done",
    ...     "repeat": 0,
    ...     "results": [result],
    ... }
    >>> text = page([cell])
    >>> "&lt;b&gt;" in text, "<b><" in text
    (True, False)
    """
    found = studies(records)
    register = StyleRegister.style_index(found)
    anchors = _anchors(found)
    main = [section(study, register, anchors[study.name]) for study in found]
    return document(
        title,
        tag("a", "Skip to the results", href="#results", class_="skip"),
        tag(
            "div",
            _side(found, anchors),
            tag(
                "main",
                tag("header", tag("h1", label(title)), _count(found)),
                *main,
                origin(found),
                tag("footer", f"Made by exactk {__version__} from its records alone."),
                id="results",
            ),
            class_="page",
        ),
    )


def write_page(
    records: Iterable[Mapping[str, Any]], path: str | Path, *, title: str = TITLE
) -> Path:
    """Write the page of `page` to a file and return its path.

    Parameters
    ----------
    records : iterable of mapping
    path : str or path
    title : str

    Raises
    ------
    InputError
        If there are no records, or the file cannot be written.
    """
    return write_document(page(records, title=title), Path(path))


def _anchors(found: Iterable[Study]) -> dict[str, str]:
    """Return a name for each section that a link can hold, whatever the recipe is called."""
    anchors: dict[str, str] = {}
    for number, study in enumerate(found, start=1):
        plain = re.sub(r"[^a-z0-9]+", "-", study.name.lower())[:60].strip("-") or "recipe"
        taken = plain in anchors.values() or plain in ("results", "origin", "controls")
        anchors[study.name] = f"{plain}-{number}" if taken else plain
    return anchors


def _count(found: list[Study]) -> Markup:
    cells = sum(len(study.cells) for study in found)
    troubles = sum(len(study.failures) for study in found)
    words = f"{plural(len(found), 'recipe')}, {plural(cells, 'cell')} run"
    if cells:
        words += f", {troubles} of them did not finish" if troubles else ", all of them finished"
    # What was run may have finished without being all that the recipes ask for.
    gone = sum(
        len(study.requested_datasets) - len(study.datasets) for study in found if study.cells
    )
    if gone:
        words += f"; {plural(gone, 'data set')} of the recipes not run"
    return tag("p", f"{words}.", class_="lead")


def _side(found: list[Study], anchors: dict[str, str]) -> Markup:
    links = [
        tag(
            "li",
            tag(
                "a",
                label(study.title),
                href=f"#{anchors[study.name]}",
            ),
        )
        for study in found
    ]
    links.append(tag("li", tag("a", "How this was made", href="#origin")))
    return side_bar(links, "Recipes")
