"""Texts that several sections of the page use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from exactk.report.markup import Markup, label, tag
from exactk.report.numbers import DASH, finite, short

__all__ = [
    "MEASURES",
    "POOR",
    "agreement",
    "constraint_note",
    "criterion_label",
    "format_score",
    "group_digits",
    "least_error",
    "missing_part",
    "names_of",
    "percent_of",
    "scoring_name",
    "share_of",
]  # fmt: skip

# What a loss without columns is called.
MEASURES = {"squared": "squared error", "logistic": "deviance", "poisson": "deviance"}
# Agreement below this is poor.
POOR = 0.4
# Shares below this are the rounding of a fit.
ROUNDING = 1e-9
CRITERIA = {
    "cv": "the error on held-out rows",
    "bic": "BIC",
    "ebic": "extended BIC",
    "aicc": "corrected AIC",
    "cp": "Mallows’ Cp",
}


def agreement(index: float | None) -> str:
    """Return a word for how far sets agree: the usual steps of such indices (Fleiss, 1981).

    Examples
    --------
    >>> agreement(0.9), agreement(0.5), agreement(0.1), agreement(None)
    ('excellent', 'fair to good', 'poor', 'not known')
    """
    if index is None:
        return "not known"
    return "excellent" if index > 0.75 else "fair to good" if index >= POOR else "poor"


def criterion_label(criterion: str) -> str:
    """Return what a size was chosen by.

    Examples
    --------
    >>> criterion_label("cv")
    'the error on held-out rows'
    """
    return CRITERIA.get(criterion, criterion)


def group_digits(number: float) -> str:
    """Return a whole number with its thousands apart.

    Examples
    --------
    >>> group_digits(12345)
    '12,345'
    """
    return f"{number:,}"


def percent_of(share: float | None) -> str:
    """Return a share in per cent, with the digits that one reads.

    Examples
    --------
    >>> [percent_of(s) for s in (0.7861, 0.9996, 1.0, 0.00012, 3e-16, None)]
    ['78.6 %', '99.96 %', '100 %', '0.012 %', '0 %', '–']
    """
    if share is None:
        return DASH
    # Below this it is rounding, as of copies that stand in for each other.
    value = 100 * share if abs(share) > ROUNDING else 0.0
    # Near none and near all the digits that count come later.
    near = min(abs(value), abs(100 - value))
    digits = 1 if near >= 1 or near == 0 else 2 if near >= 0.01 else 3
    if abs(value) < 1 and value:
        return f"{short(value, 2)} %"
    text = f"{value:.{digits}f}"
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text} %".replace(
        "-", "\N{MINUS SIGN}"
    )


def share_of(share: float | None) -> str:
    """Return a share in per cent for a column of a table: one decimal, more for small ones.

    Examples
    --------
    >>> [share_of(s) for s in (0.08, 0.5961, 0.0, 0.0002)]
    ['8.0 %', '59.6 %', '0 %', '0.02 %']
    """
    if share is None or share == 0 or abs(share) < 0.0005:
        return percent_of(share)
    return f"{100 * share:.1f} %".replace("-", "\N{MINUS SIGN}")


def format_score(score: float | None) -> str:
    """Return a score with three decimals, as scores are compared.

    Examples
    --------
    >>> format_score(0.94312), format_score(None)
    ('0.943', '–')
    """
    return DASH if score is None else f"{score:.3f}".replace("-", "\N{MINUS SIGN}")


def scoring_name(scoring: str) -> str:
    """Return a score of scikit-learn as one says it.

    Examples
    --------
    >>> scoring_name("balanced_accuracy"), scoring_name("r2")
    ('balanced accuracy', 'R²')
    """
    return {"r2": "R²", "roc_auc": "area under the ROC curve"}.get(
        scoring, scoring.replace("_", " ")
    )


def constraint_note(certificate: Mapping[str, Any]) -> str:
    """Return which sets a proof is about, where that is not all of them.

    Examples
    --------
    >>> constraint_note({"constrained": True}), constraint_note({"constrained": False})
    (' that keeps the constraints', '')
    """
    return " that keeps the constraints" if certificate["constrained"] else ""


def least_error(rows: Any) -> tuple[Mapping[str, Any], float] | None:
    """Return the size with the least error, and one standard error above it; None without one."""
    there = [row for row in rows if finite(row["criterion"]) is not None]
    best = min(there, key=lambda row: row["criterion"], default=None)
    error = None if best is None else finite(best["standard_error"])
    return None if best is None or error is None else (best, best["criterion"] + error)


def names_of(names: Any) -> Markup:
    """Return names in a row; each keeps its own direction of writing."""
    parts = [part for name in names for part in (", ", label(name))]
    return tag("span", *parts[1:], class_="names") if parts else Markup()


def missing_part(record: Mapping[str, Any], part: str, what: str) -> Markup:
    """Say why a part of the page is not there."""
    why = record["missing_parts"][part]
    return tag("p", f"{what} is missing: ", label(why), ".", class_="empty")
