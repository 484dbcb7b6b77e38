"""Explained share, error and score by number of features, with the selection marked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from exactk.report.markup import Markup, join, label, tag
from exactk.report.numbers import DASH, finite, short
from exactk.report.page.phrases import (
    MEASURES,
    criterion_label,
    format_score,
    least_error,
    missing_part,
    names_of,
    percent_of,
    scoring_name,
    share_of,
)
from exactk.report.scales import linear, whole_numbers
from exactk.report.svg import BOTTOM, LEFT, RIGHT, TOP, Plot, Point, number, y_range
from exactk.report.tables import cell, head, table

__all__ = ["sizes_section"]

Record = Mapping[str, Any]

QUICKER = (
    "The searches within the folds of these curves use less effort, so a score may differ slightly "
    "from “Performance on held-out data”."
)


def sizes_section(record: Record) -> Markup:
    """Return the curves over k, and what enters and leaves from size to size."""
    found = record["sizes"]
    if found is None:
        return missing_part(record, "sizes", "The comparison of numbers of features")
    panels = [_fit(record)]
    if found["n_folds"]:
        panels.append(_error(record))
    else:
        panels.append(_criterion(record))
    if any(row["score"] is not None for row in found["rows"]):
        panels.append(_score(record))
    note = Markup()
    if len(panels) < 3:
        note = missing_part(record, "scores", "The score by number of features")
    return join(
        tag("p", _words(record)),
        tag("p", label(found["message"]), ".", class_="caption") if found["message"] else "",
        tag("p", _marks(record), class_="caption"),
        tag("div", tag("div", *panels, class_="panels"), class_="figure"),
        note or tag("p", QUICKER, class_="caption"),
        tag(
            "details",
            tag("summary", "Features that enter and leave from size to size"),
            _table(record),
            class_="numbers",
        ),
    )


def _words(record: Record) -> str:
    found, k = record["sizes"], record["selection"]["k"]
    best = found["chosen"]
    how = criterion_label(found["criterion"])
    rule = {
        "one_se": f"The smallest size within one standard error of the best by {how} is {best}",
        "paired": f"The smallest size within one standard error of the difference to the best by "
        f"{how} is {best}",
    }.get(found["rule"], f"The best size by {how} is {best}")
    is_asked = record["settings"]["k"] is not None
    asked = f" This report is about k = {k}, as requested." if is_asked else ""
    scored = ""
    if found["score_chosen"] is not None:
        name = scoring_name(found["scoring"])
        same = found["score_rule"] == found["rule"]
        how = "with the same rule" if same else f"by the rule {found['score_rule']}"
        scored = f" By {name}, {how}, it would be {found['score_chosen']}."
    if not found["is_chosen"]:
        rule = f"No size was chosen; the largest size found is {best}"
    return f"{rule}.{scored}{asked}"


def _marks(record: Record) -> str:
    """What the ring and the dashed lines of the curves are."""
    words = (
        f"Ring: the size that the rule chooses. Dashed, from top to bottom: k = "
        f"{record['selection']['k']}, the size of this report."
    )
    if record["sizes"]["n_folds"]:
        words += " Dashed, from left to right: one standard error above the lowest error."
    return words


def _fit(record: Record) -> Markup:
    rows = record["sizes"]["rows"]
    measure = MEASURES.get(record["settings"]["loss"], "loss")
    points = [
        Point(
            row["k"],
            100 * row["explained"],
            tip=f"k = {row['k']}\nexplained: {percent_of(row['explained'])}",
        )
        for row in rows
    ]
    return _panel(
        record, points, f"{measure} explained, %", f"Explained share of the {measure}",
        "all rows", zero=True,
    )  # fmt: skip


def _error(record: Record) -> Markup:
    found = record["sizes"]
    points = _spread(found["rows"], "criterion", "standard_error", "error")
    return _panel(
        record, points, "error per row", "Error on held-out rows",
        f"mean over {found['n_folds']} folds, ± one standard error", limit=True,
    )  # fmt: skip


def _criterion(record: Record) -> Markup:
    points = _spread(record["sizes"]["rows"], "criterion", "standard_error", "value")
    name = criterion_label(record["sizes"]["criterion"])
    return _panel(record, points, name, name, "the smaller the better")


def _score(record: Record) -> Markup:
    found = record["sizes"]
    name = scoring_name(found["scoring"])
    points = _spread(found["rows"], "score", "score_error", name)
    return _panel(
        record, points, name, f"{name[:1].upper()}{name[1:]} on held-out rows",
        f"features selected within each of {found['score_folds']} folds, ± one standard error",
        mark=found["score_chosen"],
    )  # fmt: skip


def _spread(rows: Sequence[Record], value: str, error: str, name: str) -> list[Point]:
    points = []
    for row in rows:
        y, sd = finite(row[value]), finite(row[error])
        shown = DASH if y is None else f"{short(y)}" + ("" if sd is None else f" ± {short(sd, 2)}")
        points.append(Point(row["k"], y, sd, f"k = {row['k']}\n{name}: {shown}"))
    return points


def _panel(
    record: Record,
    points: Sequence[Point],
    y_name: str,
    title: str,
    note: str,
    *,
    zero: bool = False,
    limit: bool = False,
    mark: int | None = None,
) -> Markup:
    """One curve over k; the size that is shown on the page has a line, that of the rule a dot."""
    x = whole_numbers([point.x for point in points], LEFT, RIGHT)
    y = linear(y_range(points), BOTTOM, TOP, zero=zero)
    k, chosen = record["selection"]["k"], mark or record["sizes"]["chosen"]
    about = f"{title} for k = {points[0].x:g} to {points[-1].x:g}; {note}."
    plot = Plot(x, y, title, f"{about} Chosen by the rule: k = {chosen}; in this report: k = {k}.")
    plot.axes("number of features", y_name)
    place = number(x(k))
    plot.reference(f"M{place} {number(BOTTOM)}V{number(TOP)}", f"in this report: k = {k}")
    least = least_error(record["sizes"]["rows"]) if limit else None
    if least is not None:
        _one_error(plot, *least)
    plot.series(points, 0)
    at = next((point for point in points if point.x == chosen and point.y is not None), None)
    if at is not None and at.y is not None:
        plot.add(
            tag("circle", tag("title", f"chosen by the rule: k = {chosen}"), class_="ring",
                cx=number(x(at.x)), cy=number(y(at.y)), r="6.5"),
            tag("text", f"k = {chosen}", class_="value ring-name", x=number(x(at.x)),
                y=number(_beside(y(at.y))), text_anchor=_anchor(x(at.x))),
        )  # fmt: skip
    return tag("figure", tag("figcaption", title, tag("span", f" ({note})")), plot.markup())


def _anchor(place: float) -> str:
    return "start" if place < LEFT + 20 else "end" if place > RIGHT - 20 else "middle"


def _beside(place: float) -> float:
    """Above the ring, or below it where the name of the axis stands above."""
    return place + 20 if place - 11 < TOP + 8 else place - 11


def _one_error(plot: Plot, best: Record, limit: float) -> None:
    """The line below which a size is within one standard error of the best."""
    height = number(plot.y(limit))
    plot.reference(
        f"M{number(plot.x.start)} {height}H{number(plot.x.end)}",
        f"one standard error above the best, k = {best['k']}",
    )


def _table(record: Record) -> Markup:
    found = record["sizes"]
    scored = any(row["score"] is not None for row in found["rows"])
    name = scoring_name(found["scoring"]) if scored else ""
    heads = [
        head("k"), head("explained"), head(criterion_label(found["criterion"])),
        *([head(name)] if scored else []), head("in", numeric=False), head("out", numeric=False),
    ]  # fmt: skip
    body = []
    for row in found["rows"]:
        marks = [word for word, on in (("chosen by the rule", row["k"] == found["chosen"]),
                                       ("this report", row["requested"])) if on]  # fmt: skip
        note = tag("small", f" ({', '.join(marks)})") if marks else ""
        body.append(
            tag(
                "tr",
                cell(join(str(row["k"]), note), row["k"]),
                cell(share_of(row["explained"]), row["explained"]),
                cell(_with(row["criterion"], row["standard_error"]), row["criterion"]),
                *(
                    [cell(_score_with(row["score"], row["score_error"]), row["score"])]
                    if scored
                    else []
                ),
                tag("td", names_of(row["added"])),
                tag("td", names_of(row["removed"])),
            )
        )
    return table(body, join(*heads), caption="All numbers of features that were tried")


def _with(value: float | None, error: float | None) -> str:
    return short(value) + ("" if error is None else f" ± {short(error, 2)}")


def _score_with(value: float | None, error: float | None) -> str:
    return format_score(value) + ("" if error is None else f" ± {format_score(error)}")
