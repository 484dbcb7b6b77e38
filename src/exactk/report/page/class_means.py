"""Values of the selected features by class, and their correlations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from exactk.report.markup import Markup, join, label, tag
from exactk.report.numbers import short
from exactk.report.page.dots import Dot, dot_plot
from exactk.report.page.maps import heat_map

__all__ = ["class_means_section"]

Record = Mapping[str, Any]

# Panels that are open; the rest is folded away.
SHOWN = 12
# Classes of a panel; more are no picture.
MOST_GROUPS = 40


def class_means_section(record: Record) -> Markup:
    """Return means by class and correlations."""
    return join(_means(record), _correlations(record))


def _means(record: Record) -> Markup:
    means, target = record["means"], record["settings"]["target"]
    titles = {
        "classes": "Mean in each class",
        "quarters": "Mean in each quarter of the target",
        "outputs": "Correlation with each output",
    }
    if means["kind"] not in titles:
        return tag("p", "Means by target need the rows of the table.", class_="empty")
    panels = [_panel(means, feature, target) for feature in means["features"]]
    notes = {
        "classes": "Dot: mean of the rows of a class; whisker: ± one standard deviation within it; "
        "dashed: mean of all rows.",
        "quarters": f"Rows in four parts by {target}. Dot: mean; whisker: ± one standard "
        f"deviation; dashed: mean of all rows.",
        "outputs": "From −1 to 1.",
    }
    more = (
        tag("details", tag("summary", f"{len(panels) - SHOWN} more"),
            tag("div", *panels[SHOWN:], class_="panels"), class_="rest")
        if len(panels) > SHOWN else ""
    )  # fmt: skip
    left = means["left_out"]
    return join(
        tag("h3", titles[means["kind"]]),
        tag("p", label(notes[means["kind"]]), class_="caption"),
        tag("div", tag("div", *panels[:SHOWN], class_="panels"), more, class_="figure"),
        tag("p", f"{left} more columns are not drawn.", class_="caption") if left else "",
    )


def _panel(means: Record, feature: Record, target: str) -> Markup:
    groups = list(zip(means["groups"], feature["means"], strict=True))[:MOST_GROUPS]
    sds = feature["sds"] or [None] * len(means["groups"])
    plain = means["kind"] == "outputs"
    dots = [
        Dot(
            group,
            value,
            sd,
            f"{group}\n{'correlation' if plain else 'mean'} {short(value)}"
            + ("" if sd is None else f", standard deviation {short(sd, 3)}"),
            slot=0 if means["kind"] == "quarters" else i,
        )
        for i, ((group, value), sd) in enumerate(zip(groups, sds, strict=False))
    ]
    name = feature["name"]
    said = "; ".join(f"{group}: {short(value, 3)}" for group, value in groups[:12])
    picture = dot_plot(
        dots, f"{name} by {target}", said, "correlation" if plain else "",
        reference=0.0 if plain else feature["mean"],
        reference_tip="no correlation" if plain else f"mean of all rows: {short(feature['mean'])}",
        ends=(-1.0, 1.0) if plain else None,
    )  # fmt: skip
    return tag("figure", tag("figcaption", label(name)), picture)


def _correlations(record: Record) -> Markup:
    found = record["correlations"]
    if len(found["names"]) < 2:
        return Markup()
    about = _strongest(found)
    picture = heat_map(
        found["names"], found["names"], found["values"], "Correlations of the selected features",
        about, what="correlation",
    )  # fmt: skip
    left = found["left_out"]
    return join(
        tag("h3", "Correlations of the selected features"),
        tag("p", about, class_="caption"),
        picture,
        tag("p", f"{left} more columns are not drawn.", class_="caption") if left else "",
    )


def _strongest(found: Record) -> str:
    """The pair that is most alike, in a sentence."""
    names, values = found["names"], found["values"]
    pairs = [
        (abs(value), value, names[i], names[j])
        for i, row in enumerate(values)
        for j, value in enumerate(row[:i])
        if value is not None
    ]
    if not pairs:
        return "No correlations are defined."
    _, value, first, second = max(pairs, key=lambda pair: pair[0])
    return f"The strongest is {short(value, 2)}, of {first} and {second}."
