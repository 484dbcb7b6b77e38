"""What speaks against the selection, shown first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from scipy.special import stdtrit

from exactk.report.markup import Markup, join, label, tag
from exactk.report.numbers import finite, plural, short, signed
from exactk.report.page.phrases import POOR, format_score, least_error, scoring_name

__all__ = ["warnings_box"]

Record = Mapping[str, Any]

# A larger p-value is no finding.
BY_CHANCE = 0.05


def warnings_box(record: Record) -> Markup:
    """Return the most important warnings; nothing if there are none."""
    found = [*_baselines(record), *_chance(record), *_unstable(record), *_other_size(record)]
    if not found:
        return Markup()
    return tag(
        "div",
        tag("p", tag("strong", "Warnings")),
        tag("ul", *(tag("li", one) for one in found)),
        class_="banner doubts",
    )


def _baselines(record: Record) -> Iterator[Markup]:
    found = record["comparison"]
    for row in found["methods"][1:] if found else ():
        gap, error = finite(row["difference"]), finite(row["difference_error"])
        if gap is None or error is None or gap <= _clearly(found["n_folds"]) * error:
            continue
        yield join(
            label(row["method"]),
            f" selects {plural(found['k'], 'feature')} that score higher on held-out rows: "
            f"{signed(format_score(gap))} ± {format_score(error)} ",
            label(scoring_name(found["scoring"])),
            *((" (", label(row["note"]), ")") if row["note"] else ()),
            ".",
        )


def _clearly(n_folds: int) -> float:
    """How many standard errors over so many folds are no accident, nineteen times of twenty."""
    return float(stdtrit(max(n_folds - 1, 1), 0.975))


def _chance(record: Record) -> Iterator[Markup]:
    score = record["score"]
    if not score or score["p_value"] is None or score["p_value"] <= BY_CHANCE:
        return
    # Of few shuffled targets none can show that.
    if 1.0 / (1 + score["n_permutations"]) <= BY_CHANCE:
        yield join(
            f"The features may explain the target by chance: {score['n_as_good']} of "
            f"{score['n_permutations']} shuffled targets did as well."
        )


def _unstable(record: Record) -> Iterator[Markup]:
    stable = record["stability"]
    if stable and stable["index"] is not None and stable["index"] < POOR:
        yield join(
            f"Half-samples give other features (stability {short(stable['index'], 2)}). Other sets "
            f"of features may do about as well."
        )


def _other_size(record: Record) -> Iterator[Markup]:
    found, k = record["sizes"], record["selection"]["k"]
    if not found or record["settings"]["k"] is None or found["criterion"] != "cv":
        return
    row = next((one for one in found["rows"] if one["k"] == k), None)
    least = least_error(found["rows"])
    if row is None or least is None or finite(row["criterion"]) is None:
        return
    best, limit = least
    if row["criterion"] > limit:
        yield join(
            f"The error on held-out rows is lowest with {plural(best['k'], 'feature')}; with {k}, "
            f"as requested, it is higher by more than its standard error. The rule would choose "
            f"{found['chosen']}."
        )
