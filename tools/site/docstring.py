"""A numpydoc docstring taken apart, as far as the pages of methods need it."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["Docstring", "as_rst", "take_apart"]

HEADING = re.compile(r"^([A-Z][A-Za-z ]+)\n-{3,}\n", flags=re.M)
# Paragraphs of the notes that have a heading of their own on the page.
NAMED = ("Cost", "Guaranteed")


@dataclass(frozen=True)
class Docstring:
    """What a method says of itself.

    Attributes
    ----------
    text : str
        What stands before the first section.
    parameters : dict
        Name to description.
    named : dict
        Paragraphs of the notes that begin with ``Cost:`` or ``Guaranteed:``, without that word.
    notes, references, examples : str
    """

    text: str
    parameters: dict[str, str]
    named: dict[str, str]
    notes: str
    references: str
    examples: str


def take_apart(doc: str) -> Docstring:
    r"""Take a cleaned docstring apart.

    Examples
    --------
    >>> doc = take_apart("Does it.\n\nNotes\n-----\nCost: O(d)\na step.\n\nOurs.")
    >>> doc.text, doc.named, doc.notes
    ('Does it.', {'Cost': 'O(d)\na step.'}, 'Ours.')
    """
    text, *rest = HEADING.split(doc)
    sections = {title: body.strip("\n") for title, body in zip(rest[::2], rest[1::2], strict=True)}
    named, notes = {}, []
    for paragraph in sections.get("Notes", "").split("\n\n"):
        word, colon, told = paragraph.partition(":")
        if colon and word in NAMED:
            named[word] = told.strip()
        else:
            notes.append(paragraph)
    return Docstring(
        text.strip(),
        _parameters(sections.get("Parameters", "")),
        named,
        "\n\n".join(notes).strip("\n"),
        sections.get("References", ""),
        sections.get("Examples", ""),
    )


def as_rst(text: str) -> str:
    r"""Return plain text of a docstring such that Sphinx shows what it says.

    Formulas that stand apart, indented, are shown as they are; bars are bars and not the ends of
    a substitution.

    Examples
    --------
    >>> print(as_rst("With |x| the next is\n\n    a + b"))
    With \|x\| the next is
    <BLANKLINE>
    ::
    <BLANKLINE>
        a + b
    """
    parts, apart = [], False
    for paragraph in text.split("\n\n"):
        formula = paragraph.startswith("    ")
        if formula and not apart:
            parts.append("::")
        apart = formula
        parts.append(paragraph if formula else _with_bars(paragraph))
    return "\n\n".join(parts)


def _with_bars(paragraph: str) -> str:
    pieces = re.split(r"(``.*?``)", paragraph, flags=re.S)
    return "".join(p if p.startswith("``") else p.replace("|", r"\|") for p in pieces)


def _parameters(section: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for entry in re.split(r"\n(?=\S)", section):
        head, _, told = entry.partition("\n")
        names = head.split(" : ")[0]
        text = " ".join(line.strip() for line in told.splitlines())
        found |= {name.strip(): text for name in names.split(",") if name.strip()}
    return found
