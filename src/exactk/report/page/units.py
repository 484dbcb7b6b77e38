"""What the table of features shows only on hover: coefficients per unit, and intervals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from exactk.report.markup import Markup, join, label, tag
from exactk.report.numbers import DASH, short
from exactk.report.page.phrases import percent_of
from exactk.report.tables import cell, head, table

__all__ = ["own_units"]

Record = Mapping[str, Any]


def own_units(record: Record) -> Markup:
    """Return coefficients in the units of the table and intervals of frequencies, folded away."""
    parts = [_raw(record), _intervals(record)]
    if not any(parts):
        return Markup()
    words = [
        word
        for word, part in zip(
            ("coefficients in the units of the table", "95 % intervals of the frequencies"),
            parts,
            strict=True,
        )
        if part
    ]
    said = " and ".join(words)
    return tag("details", tag("summary", f"{said[:1].upper()}{said[1:]}"), *parts, class_="numbers")


def _raw(record: Record) -> Markup:
    rows = record["coefficients"]
    if not rows:
        return Markup()
    heads = [
        head("column", numeric=False),
        *(head(name) for name in record["selection"]["outputs"]),
    ]
    body = [
        tag(
            "tr",
            tag("th", label(one["column"]), scope="row"),
            *(cell(short(raw, 5), raw) for raw in one["raw"]),
        )
        for one in rows
    ]
    caption = "Coefficients per unit of the column"
    return table(body, join(*heads), caption=caption, kind="wide")


def _intervals(record: Record) -> Markup:
    rows = [row for row in record["features"] if row["frequency"] is not None]
    if not rows:
        return Markup()
    heads = [head("feature", numeric=False), head("selected in half-samples"), head("from"),
             head("to")]  # fmt: skip
    body = [
        tag(
            "tr",
            tag("th", label(row["feature"]), scope="row"),
            *(
                cell(DASH if row[end] is None else percent_of(row[end]), row[end])
                for end in ("frequency", "low", "high")
            ),
        )
        for row in rows
    ]
    return table(
        body, join(*heads), caption="How often each feature is selected, with its 95 % interval"
    )
