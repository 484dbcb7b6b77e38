"""One file that needs nothing else, opens without a network and runs nothing foreign."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.resources import files
from pathlib import Path

from exactk._version import __version__
from exactk.errors import InputError
from exactk.report.markup import Markup, tag
from exactk.utils.atomic_write import replace_text

__all__ = ["document", "side_bar", "write_document"]


def document(title: str, *body: object) -> str:
    """Return a page with its styles and its script inside.

    Its content security policy forbids everything else.

    Parameters
    ----------
    title : str
    *body
        Markup, or text that is escaped.
    """
    whole = tag("body", *body, tag("script", Markup(_asset("report.js"))))
    return f"<!DOCTYPE html>\n{tag('html', _head(title), whole, lang='en')}\n"


def write_document(text: str, path: Path) -> Path:
    """Write a page to a file, whole or not at all, and return its path.

    Raises
    ------
    InputError
        The file cannot be written.
    """
    try:
        replace_text(path, text)
    except OSError as error:
        raise InputError(
            f"the report {str(path)!r} cannot be written: {error.strerror}",
            parameter="path", hint="give another place",
        ) from error  # fmt: skip
    return path


def side_bar(links: list[Markup], what: str) -> Markup:
    """Return the bar beside a page: links to its parts, and the button for the dark theme.

    Parameters
    ----------
    links : list of Markup
        Items of a list.
    what : str
        What they lead to, for screen readers.
    """
    theme = tag(
        "button", "Dark", type="button", id="theme", class_="theme", aria_label="Dark theme"
    )
    return tag(
        "aside",
        tag("nav", tag("ul", *links), aria_label=what),
        tag("form", theme, id="controls", class_="controls", aria_label="Appearance"),
        class_="side",
    )


@cache
def _asset(name: str) -> str:
    return (files("exactk.report") / "assets" / name).read_text(encoding="utf-8").strip()


def _hash(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"


def _head(title: str) -> Markup:
    policy = (
        f"default-src 'none'; style-src {_hash(_asset('report.css'))}; "
        f"script-src {_hash(_asset('report.js'))}; img-src data:; base-uri 'none'; "
        f"form-action 'none'"
    )
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("meta", name="generator", content=f"exactk {__version__}"),
        # Without this a browser asks for one.
        tag("link", rel="icon", href="data:,"),
        tag("title", title),
        tag("style", Markup(_asset("report.css"))),
    )
