"""What speaks against the choice, said before anything else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from exactk.report.choice.phrases import POOR, figure_of, scoring_name
from exactk.report.markup import Markup, join, label, tag
from exactk.report.numbers import finite, plural, short, signed

__all__ = ["doubts"]

Record = Mapping[str, Any]

# A rival is better if its lead is more than so many standard errors.
CLEARLY = 2.0
# What chance would do as often is no finding.
BY_CHANCE = 0.05


def doubts(record: Record) -> Markup:
    """Return what a reader in a hurry would not find in the tables; nothing where all is well."""
    found = [*_rivals(record), *_chance(record), *_unstable(record), *_other_size(record)]
    if not found:
        return Markup()
    return tag(
        "div",
        tag("p", tag("strong", "Before you rely on it")),
        tag("ul", *(tag("li", one) for one in found)),
        class_="banner doubts",
    )


def _rivals(record: Record) -> Iterator[Markup]:
    found = record["comparison"]
    for row in found["methods"][1:] if found else ():
        gap, error = finite(row["difference"]), finite(row["difference_error"])
        if gap is not None and error is not None and gap > max(CLEARLY * error, 0.0):
            yield join(
                label(row["method"]),
                f" chooses {plural(found['k'], 'feature')} that do better on rows held out: "
                f"{signed(figure_of(gap))} ± {figure_of(error)} ",
                label(scoring_name(found["scoring"])),
                ".",
            )


def _chance(record: Record) -> Iterator[Markup]:
    score = record["score"]
    if score and score["p_value"] is not None and score["p_value"] > BY_CHANCE:
        yield join(
            f"Chance would explain as much: p = {short(score['p_value'], 2)} over shuffled targets."
        )


def _unstable(record: Record) -> Iterator[Markup]:
    stable = record["stability"]
    if stable and stable["index"] is not None and stable["index"] < POOR:
        yield join(
            f"Halves of the rows give other features (stability {short(stable['index'], 2)}): take "
            f"the list as one of many that do about as well."
        )


def _other_size(record: Record) -> Iterator[Markup]:
    found, k = record["sizes"], record["choice"]["k"]
    if not found or record["asked"]["k"] is None or found["criterion"] != "cv":
        return
    row = next((one for one in found["rows"] if one["k"] == k), None)
    limit = _limit(found["rows"])
    if row is None or limit is None or finite(row["criterion"]) is None:
        return
    if row["criterion"] > limit:
        more = "more" if found["chosen"] > k else "fewer"
        yield join(
            f"{plural(found['chosen'], 'feature')}, {more} than were asked for, have an error on "
            f"rows held out that is lower by more than its standard error."
        )


def _limit(rows: Sequence[Record]) -> float | None:
    """One standard error above the least error."""
    there = [row for row in rows if finite(row["criterion"]) is not None]
    best = min(there, key=lambda row: row["criterion"], default=None)
    error = None if best is None else finite(best["standard_error"])
    return None if best is None or error is None else best["criterion"] + error
