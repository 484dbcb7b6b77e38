"""Names in pictures: how wide they are about, and how to shorten them so that they stay apart.

A picture is drawn before there is a font, so widths are estimates, on the wide side.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from functools import cache

__all__ = ["fit", "shortened", "width_of"]

# The largest that text in a picture is: report.css makes it larger on a small screen.
SIZE = 12.5
ELLIPSIS = "…"
# Widths in em of what is far from a letter of usual width, in a wide font.
WIDTHS = {
    **dict.fromkeys("il|!'.,:;j I", 0.36),
    **dict.fromkeys('()[]{}/\\ftr-"`*', 0.45),
    **dict.fromkeys("mwMW@%", 0.98),
}
USUAL, CAPITAL, FULL = 0.63, 0.76, 1.1
# Of a name that is cut, so much is left before the gap; the rest is its end.
HEAD = 4 / 7


@cache
def _em(letter: str) -> float:
    if letter in WIDTHS:
        return WIDTHS[letter]
    if unicodedata.category(letter) in ("Mn", "Me", "Cf"):
        return 0.0
    if unicodedata.east_asian_width(letter) in "WF":
        return FULL
    return CAPITAL if letter.isupper() else USUAL


def width_of(text: str) -> float:
    """Return about how wide a text is in a picture.

    Examples
    --------
    >>> width_of("WWWW") > 2 * width_of("iiii")
    True
    """
    return SIZE * sum(map(_em, text))


def _start(text: str, room: float) -> str:
    """As much of the start as there is room for."""
    used = 0.0
    for i, letter in enumerate(text):
        used += SIZE * _em(letter)
        if used > room:
            return text[:i]
    return text


def _end(text: str, room: float) -> str:
    return _start(text[::-1], room)[::-1]


def fit(text: str, room: float) -> str:
    """Shorten a text in its middle until it fits.

    Examples
    --------
    >>> fit("a rather long name, version 2", 130)
    'a rather lo…rsion 2'
    """
    if width_of(text) <= room:
        return text
    rest = room - width_of(ELLIPSIS)
    head = _start(text, rest * HEAD)
    return f"{head}{ELLIPSIS}{_end(text, rest - width_of(head))}"


def shortened(texts: Sequence[str], room: float) -> list[str]:
    """Shorten the names of one picture so that they fit and no two that differ look the same.

    Names that would look the same are shortened where they agree; if that is not enough, they are
    numbered.

    Examples
    --------
    >>> shortened(["mean of the level of A in blood", "mean of the level of B in blood"], 90)
    ['mea…A…lood', 'mea…B…lood']
    """
    names = list(dict.fromkeys(texts))
    found: dict[str, str] = {}
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(fit(name, room), []).append(name)
    for label, group in groups.items():
        if len(group) == 1:
            _keep(group[0], label, room, found)
        else:
            _tell_apart(group, room, found)
    return [found[text] for text in texts]


def _tell_apart(texts: Sequence[str], room: float, found: dict[str, str]) -> None:
    groups: dict[str, list[str]] = {}
    for text, label in zip(texts, _differing(texts, room), strict=True):
        groups.setdefault(label, []).append(text)
    for label, group in groups.items():
        # A smaller group may agree in more, and so have more room for what differs.
        if 1 < len(group) < len(texts):
            _tell_apart(group, room, found)
        else:
            for text in group:
                _keep(text, label, room, found)


def _keep(text: str, label: str, room: float, found: dict[str, str]) -> None:
    """Take a label, with a number where it is taken."""
    taken, number, free = set(found.values()), 2, label
    while free in taken:
        mark = f" ({number})"
        free = f"{_start(label, room - width_of(mark))}{mark}"
        number += 1
    found[text] = free


def _common(texts: Sequence[str]) -> int:
    """How many letters all begin with."""
    low, high = min(texts), max(texts)
    pairs = enumerate(zip(low, high, strict=False))
    return next((i for i, (a, b) in pairs if a != b), len(low))


def _differing(texts: Sequence[str], room: float) -> list[str]:
    """The part in which texts differ, with as much around it as there is room for."""
    first = _common(texts)
    last = _common([text[first:][::-1] for text in texts])
    parts = [text[first : len(text) - last] for text in texts]
    gap = width_of(ELLIPSIS)
    widest = min(max(map(width_of, parts)), room - 2 * gap)
    rest = room - 2 * gap - widest
    labels = []
    for text, part in zip(texts, parts, strict=True):
        before, after = text[:first], text[len(text) - last :]
        head, tail = _start(before, rest / 2), _end(after, rest / 2)
        labels.append(
            f"{head}{ELLIPSIS if head != before else ''}{fit(part, widest)}"
            f"{ELLIPSIS if tail != after else ''}{tail}"
        )
    return labels
