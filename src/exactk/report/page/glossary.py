"""The terms of the page and their meaning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from exactk.report.markup import Markup, tag

__all__ = ["glossary"]

WORDS = (
    ("objective", "What the search minimises: the loss of the best fit on the selected features, "
     "plus the ridge term. Lower is better."),
    ("ridge", "A penalty for large coefficients. “auto” depends on the shape of the table; 0 is "
     "no penalty."),
    ("explained", "1 − loss/loss without features, without the ridge term, on the rows of the "
     "selection. New rows are explained less well."),
    ("held-out rows, folds", "The rows are divided into folds. Each fold is held out once: "
     "features are selected and a model is trained on the other rows, and scored on it."),
    ("±, standard error", "The typical error of a mean over folds. Differences of one or two "
     "standard errors mean little."),
    ("one-standard-error rule", "The smallest size whose error is within one standard error of "
     "the lowest: about as good, with fewer features."),
    ("half-sample, stability", "A random half of the rows. Stability is the agreement of the "
     "features selected in half-samples: 1 if all are the same, 0 if they agree by chance."),
    ("permutation test", "The target is shuffled over the rows, so that features cannot explain "
     "it, and the search is repeated: what it then explains is chance."),
    ("coefficient", "The change of the score of a class, or of the target, per unit of the "
     "feature if the other features stay the same."),
    ("best substitute", "The feature with the smallest loss increase in place of another."),
    ("converged, optimal", "How a search ended. Converged: no swap of one feature for another is "
     "better. Optimal: it is proven that no set is better."),
)  # fmt: skip


def glossary(_: Mapping[str, Any]) -> Markup:
    """Return the terms of the page with their meaning, the same on every page."""
    entries = [tag("div", tag("dt", word), tag("dd", meaning)) for word, meaning in WORDS]
    return tag("dl", *entries, class_="facts glossary")
