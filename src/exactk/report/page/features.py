"""The selected features: the loss without each, its best substitute, its coefficients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from exactk.report.markup import Markup, join, label, tag
from exactk.report.numbers import DASH, short
from exactk.report.page.phrases import MEASURES, missing_part, names_of, percent_of, share_of
from exactk.report.page.units import own_units
from exactk.report.tables import cell, head, table

__all__ = ["features_section"]

Record = Mapping[str, Any]

# Outputs whose coefficients stand in the table of features; more get a table of their own.
FEW_OUTPUTS = 3


def features_section(record: Record) -> Markup:
    """Return the table of features, their coefficients, and what is nearly as good."""
    single = _single(record)
    beside = single is not None and len(record["selection"]["outputs"]) <= FEW_OUTPUTS
    return join(
        _features(record, single if beside else None),
        "" if beside else _coefficients(record),
        own_units(record),
        _near(record),
    )


def _single(record: Record) -> dict[str, Record] | None:
    """Coefficients by feature, where each feature is one column."""
    found = {one["feature"]: one for one in record["coefficients"]}
    whole = len(found) == len(record["coefficients"])
    named = all(row["feature"] in found for row in record["features"])
    return found if whole and named else None


def _features(record: Record, coefficients: dict[str, Record] | None) -> Markup:
    rows, outputs = record["features"], record["selection"]["outputs"]
    substitutes = any(row["substitute"] for row in rows)
    frequent = any(row["frequency"] is not None for row in rows)
    scored = any(row["score"] is not None for row in rows)
    second = [head("best substitute", numeric=False), head("with it")]
    heads = [
        head("#"),
        head("feature", numeric=False),
        head("loss increase"),
        *(second if substitutes else []),
        *([head("half-samples")] if frequent else []),
        *([head("score of the filter")] if scored else []),
        *(head(name) for name in outputs if coefficients),
    ]  # fmt: skip
    above = []
    if coefficients and len(outputs) > 1:
        words = f"coefficient by {'class' if record['settings']['classes'] else 'output'}"
        above = [join(tag("td", colspan=len(heads) - len(outputs)),
                      tag("th", words, colspan=len(outputs), scope="colgroup"))]  # fmt: skip
    body = []
    for row in rows:
        cells = [
            cell(DASH if row["rank"] is None else row["rank"], row["rank"]),
            tag("th", label(row["feature"]), _held(row), scope="row"),
            cell(share_of(row["loss_fraction"]), row["loss_fraction"]),
        ]
        if substitutes:
            cells += [
                tag("td", label(row["substitute"]) if row["substitute"] else DASH),
                cell(share_of(row["substitution_fraction"]), row["substitution_fraction"]),
            ]
        if frequent:
            cells.append(_frequency(row))
        if scored:
            cells.append(cell(short(row["score"]), row["score"]))
        if coefficients:
            cells += _signed(coefficients[row["feature"]])
        body.append(tag("tr", *cells))
    caption = _caption(record, substitutes, frequent)
    name = "Selected features"
    return join(
        table(body, *above, join(*heads), caption=caption, kind="features", name=name),
        _coefficient_note(record) if coefficients else "",
    )


def _caption(record: Record, substitutes: bool, frequent: bool) -> str:
    measure = MEASURES.get(record["settings"]["loss"], "loss")
    words = (
        f"The most useful first. Loss increase: when the feature is dropped and the model is "
        f"refitted, as a share of the {measure} without features; the ridge term counts."
    )
    if substitutes:
        words += " Best substitute: the feature with the smallest loss increase in its place."
    if frequent:
        words += " Half-samples: the share of them in which it is selected."
    return words


def _coefficient_note(record: Record) -> Markup:
    what = (
        "of the score of each class, per standard deviation of the feature"
        if record["settings"]["classes"]
        else "per standard deviation of the feature"
    )
    # On paper there is nothing to point with.
    pointing = tag("span", "; point at one for the units of the table", class_="screen")
    return tag("p", f"Coefficients are {what}", pointing, ".", class_="caption")


def _held(row: Record) -> Markup:
    return tag("small", " (always included)") if row["included"] else Markup()


def _frequency(row: Record) -> Markup:
    value = row["frequency"]
    if value is None:
        return cell(DASH)
    between = f"between {percent_of(row['low'])} and {percent_of(row['high'])} (95 % interval)"
    return cell(percent_of(value), value, title=between)


def _signed(one: Record) -> list[Markup]:
    return [
        cell(short(value, 3), value, title=f"{short(raw, 5)} per unit of {one['column']}")
        for value, raw in zip(one["standardised"], one["raw"], strict=True)
    ]


def _coefficients(record: Record) -> Markup:
    outputs: Sequence[str] = record["selection"]["outputs"]
    heads = [head("feature", numeric=False), *(head(name) for name in outputs)]
    order = {row["feature"]: row["rank"] for row in record["features"]}
    # A group has a name of its own; its columns then stand last, in the order of the table.
    rows = sorted(record["coefficients"], key=lambda one: order.get(one["feature"], len(order) + 1))
    body = [tag("tr", tag("th", label(one["column"]), scope="row"), *_signed(one)) for one in rows]
    caption = f"Coefficients by {'class' if record['settings']['classes'] else 'output'}"
    return join(table(body, join(*heads), caption=caption, kind="wide"), _coefficient_note(record))


def _near(record: Record) -> Markup:
    near = record["near"]
    if near is None:
        return missing_part(record, "explanation", "The list of substitutes and alternative sets")
    return join(_sets(near, bool(record["settings"]["constraints"])), _outside(near), _pairs(near))


def _sets(near: Record, constrained: bool) -> Markup:
    others = [one for one in near["sets"] if one["added"]]
    tolerance = percent_of(near["tolerance"])
    other = "No other set that keeps the constraints" if constrained else "No other set"
    if not others:
        words = (
            f"{other} has an objective within {tolerance} of this one."
            if near["is_complete"]
            else f"{other} was found with an objective within {tolerance} of this one, but "
            f"not all sets were examined."
        )
        return join(tag("h3", "Alternative sets"), tag("p", words))
    heads = [head("rank"), head("objective higher by"), head("in", numeric=False),
             head("in place of", numeric=False)]  # fmt: skip
    body = [
        tag(
            "tr",
            cell(one["rank"], one["rank"]),
            cell(share_of(one["excess"]), one["excess"]),
            tag("td", names_of(one["added"])),
            tag("td", names_of(one["removed"])),
        )
        for one in others
    ]
    all_of = "these are all" if near["is_complete"] else "there may be more"
    caption = f"Sets whose objective is at most {tolerance} above that of the selection ({all_of})"
    name = "Alternative sets"
    return join(tag("h3", name), table(body, join(*heads), caption=caption, name=name))


def _outside(near: Record) -> Markup:
    if not near["outside"]:
        return Markup()
    heads = [head("feature", numeric=False), head("loss increase"),
             head("in place of", numeric=False)]  # fmt: skip
    body = [
        tag(
            "tr",
            tag("th", label(one["feature"]), scope="row"),
            cell(share_of(one["loss_fraction"]), one["loss_fraction"]),
            tag("td", label(one["instead_of"])),
        )
        for one in near["outside"]
    ]
    caption = "Not selected: the swap with the smallest loss increase that brings each in"
    return tag(
        "details",
        tag("summary", "Features that were nearly selected"),
        table(body, join(*heads), caption=caption),
        class_="numbers",
    )


def _pairs(near: Record) -> Markup:
    if not near["pairs"]:
        return Markup()
    said = [
        tag(
            "li",
            label(one["first"]),
            " and ",
            label(one["second"]),
            f": correlation {short(one['correlation'], 2)}",
        )
        for one in near["pairs"][:8]
    ]
    return join(
        tag("p", "Pairs of selected features that replace each other: the loss increase is small "
            "if either is dropped, and more than twice as large if both are."),
        tag("ul", *said),
    )  # fmt: skip
