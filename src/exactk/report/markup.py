"""HTML and SVG as text that cannot be broken by what is written into it."""

from __future__ import annotations

import html
import re

__all__ = ["Markup", "escape", "join", "label", "tag"]

# Written without an end tag in HTML.
VOID = frozenset({"br", "input", "link", "meta"})
# What neither XML 1.0 nor UTF-8 can hold: control characters, lone surrogates, non-characters.
FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


class Markup(str):
    """Text that is markup already and is not escaped again."""

    __slots__ = ()


def escape(value: object) -> Markup:
    """Return a value as text that is safe in an element and in a quoted attribute.

    Characters that no document may hold become U+FFFD, so that one sees that something was there.

    Examples
    --------
    >>> escape('</script> & "more"')
    '&lt;/script&gt; &amp; &quot;more&quot;'
    >>> escape(Markup("<b>kept</b>"))
    '<b>kept</b>'
    """
    if isinstance(value, Markup):
        return value
    text = "" if value is None else FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", str(value))
    return Markup(html.escape(text, quote=True))


def join(*parts: object) -> Markup:
    """Escape what is not markup and write it one after the other."""
    return Markup("".join(escape(part) for part in parts))


def tag(name: str, /, *children: object, **attributes: object) -> Markup:
    """Return one element, its children and attributes escaped.

    Underscores in the name of an attribute become hyphens; one at its end is left out. An attribute
    that is None or False is not written.

    Examples
    --------
    >>> tag("td", "a < b", class_="number", data_v=3, hidden=False)
    '<td class="number" data-v="3">a &lt; b</td>'
    >>> tag("path", d="M0 0h5")
    '<path d="M0 0h5"></path>'
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape("" if value is True else value)}"'
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    if name in VOID:
        return Markup(f"<{name}{written}>")
    return Markup(f"<{name}{written}>{join(*children)}</{name}>")


def label(text: object) -> Markup:
    """Return somebody's text so that its direction of writing cannot disturb what stands around."""
    return tag("bdi", text)
