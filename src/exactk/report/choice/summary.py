"""The choice in a few sentences, and what was asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from exactk.report.choice.phrases import (
    MEASURES,
    because,
    comma,
    figure_of,
    percent_of,
    scoring_name,
)
from exactk.report.markup import Markup, join, label, tag
from exactk.report.numbers import plural, short

__all__ = ["asked", "headline"]

Record = Mapping[str, Any]


def headline(record: Record) -> Markup:
    """Return what a reader in a hurry should know."""
    choice, target = record["choice"], record["asked"]["target"]
    names = [part for name in choice["selected"] for part in (", ", tag("strong", label(name)))]
    measure = MEASURES.get(record["asked"]["loss"], "loss")
    lead = tag(
        "p",
        *names[1:],
        f" {'explains' if len(choice['selected']) == 1 else 'explain'} "
        f"{percent_of(choice['explained'])} of the {measure} of ",
        label(target),
        f" in {comma(record['asked']['n_rows'])} rows.",
        class_="lead",
    )
    stopped = [part for part, why in record["absent"].items() if why.startswith("stopped")]
    banner = (
        tag("p", "This was stopped before its end: some parts below are missing.", class_="banner")
        if stopped
        else ""
    )
    return join(lead, banner, _cards(record), _serious(record))


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
    score, stable, certificate = record["score"], record["stability"], record["certificate"]
    found: list[tuple[str, tuple[str, object]]] = []
    if score:
        name = scoring_name(score["scoring"])
        without = figure_of(score["baseline"])
        found.append(
            (
                "On rows held out",
                (
                    f"{figure_of(score['honest'])} ± {figure_of(score['standard_error'])}",
                    f"{name}, features chosen anew within each fold; {without} without any feature",
                ),
            )
        )
    if stable:
        core = [name for name in record["choice"]["selected"] if name in stable["core"]]
        found.append(
            (
                "Stability",
                (
                    short(stable["index"], 2),
                    f"1 would be the same features on every half of the rows, 0 chance; "
                    f"{len(core)} of {len(record['choice']['selected'])} are chosen in at least "
                    f"{percent_of(stable['threshold'])} of the halves",
                ),
            )
        )
    if certificate:
        found.append(("Proof", _proof_card(certificate)))
    fit = f"of the loss is explained by {plural(record['choice']['k'], 'feature')} on all rows"
    found.append(("Fit", (percent_of(record["choice"]["explained"]), fit)))
    return found


def _proof_card(certificate: Record) -> tuple[str, str]:
    if certificate["better"]:
        return "not the best", "another set of this size has a lower objective"
    if certificate["proven"]:
        return "proven", "no other set of this size has a lower objective"
    if certificate["lower"] <= 0:
        return "open", "no bound was found: there may be a better set"
    gap = percent_of(certificate["gap"])
    return "open", f"no set can have an objective more than {gap} lower"


def _serious(record: Record) -> Markup:
    found = [one for one in record["remarks"] if one["serious"]]
    return join(*(tag("p", label(one["text"]), class_="banner warning") for one in found))


def asked(record: Record) -> Markup:
    """Return the question: table, target, size, method and rules."""
    about = record["asked"]
    choice = record["choice"]
    facts = [
        ("table", about["table"]),
        ("target", f"{about['target']} ({about['task']})"),
        ("rows", comma(about["n_rows"]) + (", weighted" if about["weighted"] else "")),
        ("features", comma(about["n_features"])),
        ("classes", _classes(about["classes"])),
        ("how many", _size(record)),
        ("minimised", _objective(about)),
        ("constraints", _constraints(about["constraints"])),
        ("method", _method(about, choice)),
        ("rows held out", _folds(record)),
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
    about, found = record["asked"], record["sizes"]
    if about["k"] is not None:
        return f"{about['k']}, as asked"
    rules = {
        "one_se": "the smallest within one standard error of the best",
        "paired": "the smallest that is not worse than the best by more than the standard error of "
        "the difference",
        "best": "the best",
    }
    return (
        f"{record['choice']['k']}, chosen among 1 to {found['rows'][-1]['k']}: "
        f"{rules.get(found['rule'], found['rule'])} by {because(found['criterion'])}"
    )


def _objective(about: Record) -> str:
    ridge = about["ridge"]
    rule = f" ({about['ridge_rule']})" if isinstance(about["ridge_rule"], str) else ""
    loss = {
        "squared": "squared error of a linear fit on standardised columns",
        "logistic": "deviance of a multinomial logistic regression",
        "poisson": "deviance of a Poisson regression",
        "optimal_scoring": "squared error of optimal scores, the criterion of discriminants",
    }.get(about["loss"], f"{about['loss']} loss of a linear fit")
    return f"{loss}, ridge {short(ridge, 3)}{rule}"


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
    groups = ", groups of rows kept together" if record["asked"]["grouped"] else ""
    return f"{len(score['folds'])} folds, {score['estimator']} on the chosen features{groups}"
