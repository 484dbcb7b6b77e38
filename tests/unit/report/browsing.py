"""Which browser there is, and what tests ask of a page in it."""

from __future__ import annotations

import os
import shutil
from importlib.util import find_spec

import pytest

REQUIRED = os.environ.get("EXACTK_BROWSER") == "required"
CHROMIUM = (
    os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
)
NEEDS_BROWSER = [
    pytest.mark.skipif(find_spec("playwright") is None, reason="playwright is absent (the page)"),
    pytest.mark.skipif(CHROMIUM is None and not REQUIRED, reason="chromium is absent (the page)"),
]


def shown(view, selector):
    """How many of these take room on the screen."""
    return view.evaluate(
        "s => [...document.querySelectorAll(s)].filter(e => e.getClientRects().length).length",
        selector,
    )


def background(view):
    return view.evaluate("getComputedStyle(document.body).backgroundColor")
