"""The selection in a few sentences, and the settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from exactk.report.markup import Markup, join, label, tag
from exactk.report.numbers import short
from exactk.report.page.phrases import (
    MEASURES,
    agreement,
    constraint_note,
    criterion_label,
    format_score,
    group_digits,
    percent_of,
    scoring_name,
)
from exactk.report.page.warnings import warnings_box
from exactk.report.selection_report import OUT_OF_TIME

__all__ = ["settings_section", "summary_section"]

Record = Mapping[str, Any]

# Names in the first sentence; all of them stand in the table.
LEAD_NAMES = 8


def summary_section(record: Record) -> Markup:
    """Return the summary at the top of the page."""
    choice, target = record["selection"], record["settings"]["target"]
    shown, left = choice["selected"][:LEAD_NAMES], len(choice["selected"]) - LEAD_NAMES
    names = [part for name in shown for part in (", ", tag("strong", label(name)))]
    measure = MEASURES.get(record["settings"]["loss"], "loss")
    lead = tag(
        "p",
        *names[1:],
        f" and {left} more" if left > 0 else "",
        f" {'explains' if len(choice['selected']) == 1 else 'explain'} "
        f"{percent_of(choice['explained'])} of the {measure} of ",
        label(target),
        f" in {group_digits(record['settings']['n_rows'])} rows.",
        class_="lead",
    )
    ended = []
    if record["interrupted"]:
        ended.append("Stopped early; sections are missing.")
    if OUT_OF_TIME in record["reasons"]:
        ended.append("The time limit was reached; sections are missing.")
    banner = join(*(tag("p", words, class_="banner") for words in ended))
    return join(lead, banner, _cards(record), _serious(record), warnings_box(record))


def _cards(record: Record) -> Markup:
    cards = [_card(name, *words) for name, words in _facts(record)]
    return tag("div", *cards, class_="cards")


def _card(name: str, figure: str, words: object) -> Markup:
    return tag(
        "div",
        tag("p", name, class_="card-name"),
        tag("p", figure, class_="figure-of"),
        tag("p", words),
        class_="card",
    )


def _facts(record: Record) -> list[tuple[str, tuple[str, object]]]:
    return [
        ("On held-out rows", _score_card(record)),
        ("Stability", _stability_card(record)),
        ("Proof", _proof_card(record)),
    ]


def _score_card(record: Record) -> tuple[str, object]:
    score = record["score"]
    if score is None:
        return _missing(record, "score")
    name, without = scoring_name(score["scoring"]), format_score(score["baseline_score"])
    return (
        f"{format_score(score['test_score'])} ± {format_score(score['standard_error'])}",
        join(label(name), f", features selected anew within each fold; {without} without "
             f"features"),
    )  # fmt: skip


def _stability_card(record: Record) -> tuple[str, object]:
    stable, selected = record["stability"], record["selection"]["selected"]
    if stable is None:
        return _missing(record, "stability")
    core = [name for name in selected if name in stable["core"]]
    return (
        short(stable["index"], 2),
        f"{agreement(stable['index'])}: 1 is the same features in every half-sample, 0 is chance; "
        f"{len(core)} of {len(selected)} are selected in at least "
        f"{percent_of(stable['threshold'])} of the half-samples",
    )


def _missing(record: Record, part: str) -> tuple[str, object]:
    return "not measured", label(record["missing_parts"][part])


def _proof_card(record: Record) -> tuple[str, object]:
    certificate = record["certificate"]
    if certificate is None:
        return "not proven", label(record["missing_parts"]["certificate"])
    if certificate["better"]:
        return "not the best", "another set of this size has a lower objective"
    if certificate["proven"]:
        kept = constraint_note(certificate)
        return "proven", f"no other set of this size{kept} has a lower objective"
    if certificate["lower"] <= 0:
        return "open", "no bound was found; there may be a better set"
    gap = percent_of(certificate["gap"])
    return "open", f"no set can have an objective more than {gap} lower"


def _serious(record: Record) -> Markup:
    found = [one for one in record["warnings"] if one["serious"]]
    return join(*(tag("p", label(one["text"]), class_="banner warning") for one in found))


def settings_section(record: Record) -> Markup:
    """Return the settings: table, target, number of features, method and constraints."""
    about = record["settings"]
    choice = record["selection"]
    facts = [
        ("table", about["table"]),
        ("target", f"{about['target']} ({about['task']})"),
        ("rows", group_digits(about["n_rows"]) + (", weighted" if about["weighted"] else "")),
        ("features", group_digits(about["n_features"])),
        ("classes", _classes(about["classes"])),
        ("assumed", "; ".join(about["assumptions"])),
        ("number of features", _size(record)),
        ("minimised", _objective(about)),
        ("constraints", _constraints(about["constraints"])),
        ("method", _method(about, choice)),
        ("held-out rows", _folds(record)),
    ]
    entries = [tag("div", tag("dt", name), tag("dd", label(text))) for name, text in facts if text]
    return tag("dl", *entries, class_="facts")


def _classes(classes: list[Record] | None) -> str:
    if not classes:
        return ""
    shown = [f"{one['label']} ({one['rows']:,g})" for one in classes[:12]]
    more = f" and {len(classes) - 12} more" if len(classes) > 12 else ""
    return f"{len(classes)}: {', '.join(shown)}{more} (rows of each)"


def _size(record: Record) -> str:
    about, found = record["settings"], record["sizes"]
    if about["k"] is not None:
        return f"{about['k']}, as requested"
    rules = {
        "one_se": "the smallest within one standard error of the best",
        "paired": "the smallest within one standard error of the difference to the best",
        "best": "the best",
    }
    if not found["is_chosen"]:
        return f"{record['selection']['k']}, the largest size found; no size was chosen"
    return (
        f"{record['selection']['k']}, chosen among 1 to {found['rows'][-1]['k']}: "
        f"{rules.get(found['rule'], found['rule'])} by {criterion_label(found['criterion'])}"
    )


def _objective(about: Record) -> str:
    ridge = about["ridge"]
    rule = f" ({about['ridge_rule']})" if isinstance(about["ridge_rule"], str) else ""
    loss = {
        "squared": "squared error of a linear fit on "
        + ("standardised columns" if about["standardised"] else "columns as they are"),
        "logistic": "deviance of a multinomial logistic regression",
        "poisson": "deviance of a Poisson regression",
        "optimal_scoring": "squared error of optimal scores, the criterion of discriminants",
    }.get(about["loss"], f"{about['loss']} loss of a linear fit")
    given = "".join(f", {name} = {value}" for name, value in about["loss_options"].items())
    weights = f", classes weighted ({about['class_weights']})" if about["class_weights"] else ""
    return f"{loss}{given}{weights}, ridge {short(ridge, 3)}{rule}"


def _constraints(rules: Record) -> str:
    return "; ".join(f"{name} = {value}" for name, value in rules.items())


def _method(about: Record, choice: Record) -> str:
    given = ", ".join(f"{name} = {value}" for name, value in about["options"].items())
    seconds = short(choice["seconds"], 3)
    return f"{about['method']}{f' ({given})' if given else ''}, {choice['status']}, {seconds} s"


def _folds(record: Record) -> str:
    score = record["score"]
    if not score:
        return ""
    groups = ", groups of rows kept together" if record["settings"]["grouped"] else ""
    return f"{score['n_folds']} folds, {score['estimator']} on the selected features{groups}"
