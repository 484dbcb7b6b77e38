"""The words of the page, for who has not met them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from exactk.report.markup import Markup, tag

__all__ = ["glossary"]

WORDS = (
    ("objective", "What the search makes as small as it can: the error of the best linear fit on "
     "the chosen features, plus the ridge term. Lower is better."),
    ("ridge", "What large coefficients cost. “auto” goes by the shape of the table; 0 is plain "
     "least squares."),
    ("explained", "How much of the error without any feature the chosen ones take away, on the "
     "rows they were chosen on. It is no promise for new rows."),
    ("rows held out, folds", "The rows are dealt into parts. Each part in turn is set aside; "
     "features are chosen and a model is trained on the others, and scored on it."),
    ("±, standard error", "How far a mean over folds is usually off. Differences of one or two "
     "of them mean little."),
    ("one-standard-error rule", "The smallest size whose error is within one standard error of "
     "the lowest: about as good, with fewer features."),
    ("stability", "How far the features chosen on random halves of the rows agree: 1 if all are "
     "the same, 0 if chance would do as well."),
    ("permutation test", "The target is shuffled over the rows, so that there is nothing to "
     "find, and the search is run again: what it then explains is chance."),
    ("coefficient", "How much the score of a class, or the target, rises with the feature, the "
     "other features as they are."),
    ("best substitute", "The feature that costs least in place of one that is taken away."),
    ("converged, optimal", "How a search ended: no swap of one feature for another is better, "
     "or no other set at all is, which is then proven."),
)  # fmt: skip


def glossary(_: Mapping[str, Any]) -> Markup:
    """Return the words of the page with their meaning, the same on every page."""
    entries = [tag("div", tag("dt", word), tag("dd", meaning)) for word, meaning in WORDS]
    return tag("dl", *entries, class_="facts glossary")
