"""Whether any other set is better, in plain words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from exactk.report.markup import Markup, join, label, tag
from exactk.report.numbers import DASH, plural, short
from exactk.report.page.phrases import constraint_note, group_digits, names_of, percent_of

__all__ = ["proof_section"]

Record = Mapping[str, Any]


def proof_section(record: Record) -> Markup:
    """Return what is proven of the choice, in plain words."""
    found = record["certificate"]
    if found is None:
        why = record["missing_parts"].get("certificate", "it was not tried")
        return join(
            tag("p", tag("strong", "Not proven"), ": ", label(why), "."),
            tag("p", "That nothing better was found is no proof that there is nothing."),
        )
    k, kept = record["selection"]["k"], constraint_note(found)
    if found["better"]:
        return _better(record, found)
    if found["proven"]:
        words = f": every other set of {plural(k, 'feature')}{kept} was ruled out."
        verdict = tag("p", tag("strong", "No. This is proven"), words)
    elif found["lower"] <= 0:
        verdict = tag(
            "p", tag("strong", "Not proven"),
            ": perhaps. No bound on the best possible objective was found in the time given. That "
            "nothing better was found is no proof.",
        )  # fmt: skip
    else:
        verdict = tag(
            "p", tag("strong", "Not proven"),
            f": perhaps. The search found nothing better, and whatever the best set{kept} is, its "
            f"objective is at most {percent_of(found['gap'])} below that of this one."
            + (" More time may close the gap." if found["status"] == "time_limit" else ""),
        )  # fmt: skip
    took = (
        f"{group_digits(found['nodes'])} part{'s' if found['nodes'] != 1 else ''} of the space of "
        "all "
        f"sets looked at in {short(found['seconds'], 3)} s."
    )
    better = (
        tag("p", "The proof found these features: they are better than what the search had found.")
        if found["improved"]
        else ""
    )
    exact = tag(
        "details",
        tag("summary", "The certificate, word by word"),
        tag("p", label(found["summary"])),
        tag("p", took),
        class_="numbers",
    )
    return join(verdict, better, exact)


def _better(record: Record, found: Record) -> Markup:
    """Say which set is better by the objective than what a method chose by something else."""
    method, own = record["selection"]["method"], record["selection"]["objective"]
    lower = percent_of(1.0 - found["upper"] / own) if own > 0 else DASH
    proven = (
        "no other set of this size has a lower one: that is proven"
        if found["proven"]
        else "whether that is the lowest is not proven"
    )
    return join(
        tag("p", tag("strong", "Yes"), f", by the objective: it is {lower} lower with ",
            names_of(found["better"]), f"; {proven}."),
        tag("p", label(method), " chooses by a criterion of its own, and this page is about what "
            "it chose. To choose by the objective, take the method exchange."),
    )  # fmt: skip
