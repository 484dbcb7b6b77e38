"""Warnings about the data, and how to make the same report again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from exactk.report.markup import Markup, join, label, tag
from exactk.report.page.phrases import group_digits

__all__ = ["reproduce_section", "warnings_section"]

Record = Mapping[str, Any]

# Kinds of remarks that one word does not tell.
HEADS = {
    "constant": "constant columns", "duplicated": "duplicate columns", "coded": "text columns",
    "collinear": "collinear columns", "imbalanced": "imbalanced classes", "empty": "empty classes",
    "tiny": "tiny classes", "wide": "more columns than rows",
}  # fmt: skip


def warnings_section(record: Record) -> Markup:
    """Return warnings about the data."""
    found = record["warnings"]
    if not found:
        about = record["settings"]
        sought = ["constant, duplicate or collinear columns among those that matter"]
        sought += ["repeated rows"] if about["rows_compared"] else []
        sought += ["tiny or very imbalanced classes"] if about["classes"] else []
        return tag("p", f"No warnings: no {', no '.join(sought)}.")
    said = [
        tag(
            "li",
            tag("strong", HEADS.get(one["kind"], one["kind"])),
            ": ",
            label(one["text"]),
            class_="serious" if one["serious"] else None,
        )
        for one in found
    ]
    return tag("ul", *said, class_="remarks")


def reproduce_section(record: Record) -> Markup:
    """Return the command, the code, the versions and the fingerprint of the table."""
    about = record["settings"]
    parts = []
    if about["command"]:
        parts += [
            tag("p", "This report:"),
            _copied(about["command"], "Command of this report"),
        ]
    if about["code"]:
        parts += [
            tag("p", "The same report in Python:"),
            _copied(about["code"], "Code in Python"),
        ]
    facts = [
        *((name, found) for name, found in record["versions"].items()),
        ("made", record["made"]),
        ("seed", "fixed" if about["seed"] is None else str(about["seed"])),
        ("rows", group_digits(about["n_rows"])),
        ("SHA-256 of the table", about["checksum"]),
    ]
    entries = [tag("div", tag("dt", name), tag("dd", label(text))) for name, text in facts if text]
    return join(*parts, tag("dl", *entries, class_="facts"))


def _copied(text: str, name: str) -> Markup:
    # What scrolls must be reachable by keyboard.
    return tag(
        "pre", tag("code", text), class_="command", tabindex="0", role="region", aria_label=name
    )
