"""How reliable the selection is: on held-out rows, beside other methods, in half-samples."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from exactk.report.markup import Markup, join, label, tag
from exactk.report.numbers import DASH, finite, plural, short, signed
from exactk.report.page.dots import Dot, dot_plot
from exactk.report.page.maps import heat_map
from exactk.report.page.phrases import (
    agreement,
    format_score,
    missing_part,
    names_of,
    percent_of,
    scoring_name,
    share_of,
)
from exactk.report.tables import cell, head, table

__all__ = ["scores_section", "stability_section"]

Record = Mapping[str, Any]

# Fewer shuffled targets cannot give a p-value of 0.05.
LEAST_SHUFFLES = 19
# Names in one sentence; those that are selected more rarely are counted.
MOST_NAMES = 30


def scores_section(record: Record) -> Markup:
    """Return the score on held-out rows beside the naive score, and the comparison."""
    return join(_score(record), _comparison(record))


def _score(record: Record) -> Markup:
    score = record["score"]
    if score is None:
        return missing_part(record, "score", "The score on held-out rows")
    name = scoring_name(score["scoring"])
    how = (
        "the number of features and the features are selected"
        if record["settings"]["k"] is None
        else "the features are selected"
    )
    lines = [
        (
            "selected within each fold",
            f"{format_score(score['test_score'])} ± {format_score(score['standard_error'])}",
            f"In each of {score['n_folds']} folds {how} on the training rows alone, and "
            f"{score['estimator']} is scored on the held-out rows. Expect this score on new rows.",
        ),
        (
            "selected on all rows",
            format_score(score["naive_score"]),
            "The same folds with features that were selected on all rows, held-out rows included"
            + (": too high by the difference." if _flatters(score) else "."),
        ),
        (
            "without features",
            format_score(score["baseline_score"]),
            "The most frequent class, or the mean.",
        ),
    ]
    body = [
        tag("tr", tag("th", what, scope="row"), cell(figure), tag("td", words, class_="reason"))
        for what, figure, words in lines
    ]
    heads = join(
        tag("th", "features", scope="col"),
        tag("th", label(name), scope="col", class_="number"),
        tag("th", "what it means", scope="col"),
    )
    message = tag("p", label(score["message"]), ".", class_="caption") if score["message"] else ""
    expected = table(body, heads, caption="Expected performance on new rows", kind="stacked")
    return join(expected, message, _permutations(record, score))


def _flatters(score: Record) -> bool:
    naive, honest = score["naive_score"], score["test_score"]
    return naive is not None and honest is not None and naive > honest


def _permutations(record: Record, score: Record) -> Markup:
    """Return how many shuffled targets did as well."""
    n = score["n_permutations"]
    if not n:
        return Markup()
    fixed = "" if record["settings"]["k"] else f", always {record['selection']['k']} features"
    few = f" At least {LEAST_SHUFFLES} are needed for p = 0.05." if n < LEAST_SHUFFLES else ""
    return tag(
        "p",
        f"Permutation test: {score['n_as_good']} of {plural(n, 'shuffled target')} did as well "
        f"(p = {short(score['p_value'], 2)}). The target was shuffled over the rows, and the same "
        f"search was repeated{fixed}.{few}",
    )


def _comparison(record: Record) -> Markup:
    found = record["comparison"]
    title = tag("h3", "Comparison with other methods")
    if found is None:
        return join(title, missing_part(record, "comparison", "The comparison"))
    name = scoring_name(found["scoring"])
    rows = found["methods"]
    scores = [format_score(finite(row["test_score"])) for row in rows]
    about = "; ".join(f"{row['method']}: {score}" for row, score in zip(rows, scores, strict=True))
    dots = [
        Dot(
            row["method"],
            finite(row["test_score"]),
            finite(row["standard_error"]),
            f"{row['method']}\n{name} {format_score(finite(row['test_score']))} ± "
            f"{format_score(finite(row['standard_error']))}",
            slot=i,
        )
        for i, row in enumerate(rows)
    ]
    picture = dot_plot(
        dots, f"{name} of each method on held-out rows", about, name,
        reference=finite(found["baseline_score"]),
        reference_tip=f"without features: {format_score(finite(found['baseline_score']))}",
    )  # fmt: skip
    most = finite(found["all_features_score"])
    whole = "" if most is None else f", with all features: {format_score(most)}"
    of_all = "" if record["settings"]["k"] else ", the number chosen on all rows"
    note = (
        f"{plural(found['k'], 'feature')} each{of_all}, selected within each of {found['n_folds']} "
        f"folds; "
        f"whisker: ± one standard error. Without features: "
        f"{format_score(finite(found['baseline_score']))}{whole}."
    )
    return join(
        title,
        tag("p", note, class_="caption"),
        tag("div", tag("div", tag("figure", picture), class_="panels"), class_="figure"),
        _methods(found, name),
        tag("p", label(found["message"]), ".", class_="caption") if found.get("message") else "",
    )


def _methods(found: Record, name: str) -> Markup:
    heads = [
        head("method", numeric=False), head(name), head("difference"), head("objective higher by"),
        head("stability over folds"), head("seconds"), head("shared"),
    ]  # fmt: skip
    body = []
    for i, row in enumerate(found["methods"]):
        mean, error = finite(row["test_score"]), finite(row["standard_error"])
        if mean is None:
            reason = tag("td", label(row["note"] or row["status"]), colspan="6", class_="reason")
            body.append(tag("tr", tag("th", label(row["method"]), scope="row"), reason))
            continue
        gap = finite(row["difference"]) if i else None
        spread = finite(row["difference_error"])
        apart = DASH
        if gap is not None:
            apart = signed(format_score(gap)) + (
                "" if spread is None else f" ± {format_score(spread)}"
            )
        body.append(
            tag(
                "tr",
                tag("th", label(row["method"]), _note(row["note"]), scope="row"),
                cell(f"{format_score(mean)} ± {format_score(error)}", mean),
                cell(apart, gap),
                cell(share_of(finite(row["excess"])), finite(row["excess"])),
                cell(short(finite(row["stability"]), 2), finite(row["stability"])),
                cell(short(finite(row["seconds"]), 2), finite(row["seconds"])),
                cell(f"{row['n_shared']} of {len(row['features'])}", row["n_shared"]),
            )
        )
    caption = (
        "Difference: to the first method, fold by fold. The columns after it refer to the "
        "selection on all rows: its objective above the lowest one, and features shared with the "
        "first method."
    )
    name = "Comparison of the methods"
    return join(table(body, join(*heads), caption=caption, name=name), _choices(found))


def _choices(found: Record) -> Markup:
    """Return which features each method selects: too many for a column of numbers."""
    heads = join(head("method", numeric=False), head("features on all rows", numeric=False))
    body = [
        tag(
            "tr", tag("th", label(row["method"]), scope="row"), tag("td", names_of(row["features"]))
        )
        for row in found["methods"]
        if row["features"]
    ]
    return tag(
        "details",
        tag("summary", "Features of each method"),
        table(body, heads, name="Features on all rows, by method"),
        class_="rest",
    )


def _note(note: str | None) -> Markup:
    return tag("small", " ", label(note)) if note else Markup()


def stability_section(record: Record) -> Markup:
    """Return how often features are selected in half-samples, at every size."""
    found, mapped = record["stability"], record["frequencies"]
    parts = []
    if found is None:
        parts.append(missing_part(record, "stability", "The stability in half-samples"))
    else:
        low, high = found["interval"]
        parts.append(
            tag(
                "p",
                f"The same method selects features in {found['n_subsamples']} random half-samples. "
                f"Stability index (Nogueira): {short(found['index'], 2)} ({short(low, 2)} to "
                f"{short(high, 2)}), {agreement(found['index'])}. It is 1 if all half-samples give "
                f"the same features, and 0 if they agree as often as random sets.",
            )
        )
        parts += [
            tag("p", f"{words} ({len(found[part])}): ", _often(found, part))
            for part, words in (
                ("core", f"Selected in at least {percent_of(found['threshold'])} of them"),
                (
                    "unstable",
                    f"Selected in {percent_of(found['negligible'])} to "
                    f"{percent_of(found['threshold'])}",
                ),
            )
            if found[part]
        ]
        if found["message"]:
            parts.append(tag("p", label(found["message"]), ".", class_="caption"))
    if mapped is None:
        parts.append(missing_part(record, "frequencies", "The map of frequencies over sizes"))
    else:
        parts.append(_map(record, mapped))
    return join(*parts)


def _often(found: Record, part: str) -> Markup:
    """Names with how often each is selected, the most frequent first."""
    often = {row["feature"]: row["frequency"] for row in found["frequencies"]}
    shown = [
        piece
        for name in found[part][:MOST_NAMES]
        for piece in (", ", label(name), f" {percent_of(often.get(name))}")
    ]
    left = len(found[part]) - MOST_NAMES
    return join(*shown[1:], f" and {left} more" if left > 0 else "")


def _map(record: Record, mapped: Record) -> Markup:
    k = record["selection"]["k"]
    seen = [i for i in range(len(mapped["names"])) if any(row[i] > 0 for row in mapped["values"])]
    names = [mapped["names"][i] for i in seen]
    values = [[row[i] for row in mapped["values"]] for i in seen]
    marked = mapped["sizes"].index(k) if k in mapped["sizes"] else None
    note = (
        f"How often each feature (rows) is selected at each number of features (columns), in % of "
        f"{mapped['n_subsamples']} half-samples; the frame is k = {k}."
    )
    picture = heat_map(
        names, [str(size) for size in mapped["sizes"]], values,
        "Selection frequency over the number of features", note, what="selected in",
        per_cent=True, axis="k", marked=marked,
    )  # fmt: skip
    return join(tag("h3", "Selection frequency over k"), tag("p", note, class_="caption"), picture)
