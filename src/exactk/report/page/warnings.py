"""What speaks against the choice, said before anything else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from scipy.special import stdtrit

from exactk.report.markup import Markup, join, label, tag
from exactk.report.numbers import finite, plural, short, signed
from exactk.report.page.phrases import POOR, format_score, least_error, scoring_name

__all__ = ["warnings_box"]

Record = Mapping[str, Any]

# What chance would do as often is no finding.
BY_CHANCE = 0.05


def warnings_box(record: Record) -> Markup:
    """Return what a reader in a hurry would not find in the tables; nothing where all is well."""
    found = [*_baselines(record), *_chance(record), *_unstable(record), *_other_size(record)]
    if not found:
        return Markup()
    return tag(
        "div",
        tag("p", tag("strong", "Before you rely on it")),
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
            f" chooses {plural(found['k'], 'feature')} that do better on rows held out: "
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
            f"What the features explain cannot be told from chance: p = "
            f"{short(score['p_value'], 2)} over shuffled targets."
        )


def _unstable(record: Record) -> Iterator[Markup]:
    stable = record["stability"]
    if stable and stable["index"] is not None and stable["index"] < POOR:
        yield join(
            f"Halves of the rows give other features (stability {short(stable['index'], 2)}): take "
            f"the list as one of many that do about as well."
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
            f"The error on rows held out is lowest with {plural(best['k'], 'feature')}; with {k}, "
            f"as asked, it is higher by more than its standard error. The rule would take "
            f"{found['chosen']}."
        )
