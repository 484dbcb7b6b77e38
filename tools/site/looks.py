"""What eyes need: numbers in one piece, pictures that can be read on a phone and in the dark."""

from __future__ import annotations

import re
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx

__all__ = ["frame_pictures", "is_number", "keep_numbers_whole"]

# What is longer is a sentence that begins with a number, and may be broken.
LONGEST = 20
# A table of so many columns is set smaller.
MANY = 8
NUMBER = re.compile(r"[<>≤≥]?\s?[+−-]?\d")


def is_number(text: str) -> bool:
    """Return whether a cell holds a number with what belongs to it, such as its deviation.

    Examples
    --------
    >>> is_number("57.05 ± 0.9"), is_number("2.79 (+122.94%)")
    (True, True)
    >>> is_number("+11.1 (ahead in 24, level in 2 of 28)"), is_number("exactk")
    (False, False)
    """
    return len(text) <= LONGEST and NUMBER.match(text) is not None


def keep_numbers_whole(app: Sphinx, doctree: nodes.document) -> None:
    """Mark cells of numbers and tables of many columns for the style sheet."""
    for group in doctree.findall(nodes.tgroup):
        if group["cols"] >= MANY and isinstance(group.parent, nodes.table):
            group.parent["classes"].append("many")
        for entry in group.findall(nodes.entry):
            if is_number(entry.astext().strip()):
                entry["classes"].append("whole")


def frame_pictures(app: Sphinx, doctree: nodes.document) -> None:
    """Put each picture that stands by itself into a box that scrolls, with its dark twin.

    The twin of ``report.png`` is ``report-dark.png`` beside it, where there is one. A drawing
    needs none: it has both sets of colours.
    """
    folder = Path(app.srcdir) / Path(app.env.docname).parent
    for picture in list(doctree.findall(nodes.image)):
        if not isinstance(picture.parent, nodes.paragraph) or len(picture.parent) > 1:
            continue
        twin = picture.deepcopy()
        path = Path(picture["uri"])
        twin["uri"] = path.with_stem(f"{path.stem}-dark").as_posix()
        shown = [picture]
        if (folder / twin["uri"]).exists():
            picture["classes"].append("only-light")
            twin["classes"].append("only-dark")
            shown.append(twin)
        picture.parent.replace_self(nodes.container("", *shown, classes=["picture"]))
