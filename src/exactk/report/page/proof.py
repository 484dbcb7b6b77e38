"""Whether a better set exists, in plain words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from exactk.report.markup import Markup, join, label, tag
from exactk.report.numbers import DASH, plural, short
from exactk.report.page.phrases import constraint_note, group_digits, names_of, percent_of

__all__ = ["proof_section"]

Record = Mapping[str, Any]


def proof_section(record: Record) -> Markup:
    """Return what is proven about the selection."""
    found = record["certificate"]
    if found is None:
        why = record["missing_parts"]["certificate"]
        return join(
            tag("p", tag("strong", "Not proven"), ": ", label(why), "."),
            tag("p", "The search found no better set, but that is no proof."),
        )
    k, kept = record["selection"]["k"], constraint_note(found)
    if found["better"]:
        return _better(record, found)
    if found["proven"]:
        words = f": no other set of {plural(k, 'feature')}{kept} has a lower objective."
        verdict = tag("p", tag("strong", "Proven"), words)
    elif found["lower"] <= 0:
        verdict = tag(
            "p", tag("strong", "Not proven"),
            ": no bound on the best possible objective was found in the given time. The search "
            "found no better set, but that is no proof.",
        )  # fmt: skip
    else:
        verdict = tag(
            "p", tag("strong", "Not proven"),
            f": a better set{kept} could lower the objective by at most "
            f"{percent_of(found['gap'])}."
            + (" More time may close the gap." if found["status"] == "time_limit" else ""),
        )  # fmt: skip
    nodes = f"{group_digits(found['nodes'])} node{'s' if found['nodes'] != 1 else ''}"
    took = f"{nodes} explored in {short(found['seconds'], 3)} s."
    better = (
        tag("p", "The proof found these features. They are better than those of the search.")
        if found["improved"]
        else ""
    )
    exact = tag(
        "details",
        tag("summary", "The certificate in full"),
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
        "it is proven that no set of this size has a lower one"
        if found["proven"]
        else "it is not proven that this is the lowest"
    )
    return join(
        tag("p", tag("strong", "A better set exists"), f": the objective is {lower} lower with ",
            names_of(found["better"]), f"; {proven}."),
        tag("p", label(method), " selects by its own criterion, and this report is about its "
            "selection. The method exchange selects by the objective."),
    )  # fmt: skip
