"""The record of one investigation, and the page that is drawn from it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from os import PathLike
from pathlib import Path
from typing import Any

from exactk.report.page.page import selection_page, write_selection_page
from exactk.result import Result
from exactk.utils.formatting import escape_controls
from exactk.utils.records_table import RecordsTable, notebook_html

__all__ = ["SelectionReport"]

# What a notebook shows of each feature.
SHOWN = (
    "rank",
    "feature",
    "loss_fraction",
    "substitute",
    "substitution_fraction",
    "frequency",
    "part",
)


@dataclass(frozen=True, eq=False)
class SelectionReport:
    """What `exactk.investigate` found: a choice, and all that one may ask about it.

    Attributes
    ----------
    result : Result
        The choice.
    record : mapping
        Everything as plain values, fit for JSON, of which the page is drawn: what was asked,
        ``features``, ``sizes``, ``stability``, ``frequencies``, ``correlations``, ``means``,
        ``score``, ``comparison``, ``certificate``, ``remarks``. A part that could not be had is
        None, and ``missing_parts`` says why.
    interrupted : bool
        Whether the user stopped it before all parts were there.

    Examples
    --------
    >>> import exactk
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> report = exactk.investigate(X, y, k=2, n_subsamples=10, n_permutations=0, methods=())
    >>> report
    SelectionReport(2 of 4 features for 'target': petal width (cm), sepal width (cm))
    >>> report.features[["feature", "substitute"]]
    feature           substitute
    petal width (cm)  petal length (cm)
    sepal width (cm)  petal length (cm)
    >>> report.to_html().startswith("<!DOCTYPE html>")
    True
    """

    result: Result
    record: Mapping[str, Any] = field(repr=False)
    interrupted: bool = False

    def __repr__(self) -> str:
        """Return one line."""
        asked, chosen = self.record["settings"], self.result.selected
        return (
            f"SelectionReport({len(chosen)} of {asked['n_features']} features for "
            f"{asked['target']!r}: "
            f"{escape_controls(', '.join(chosen))})"
        )

    def _repr_html_(self) -> str:
        """Return the features and the remarks for a notebook; the page is for a browser."""
        known = [name for name in SHOWN if any(row[name] is not None for row in self.features)]
        features = notebook_html(self.features[known], repr(self))
        remarks = "".join(f"<p>{escape(text)}</p>" for text in self.warnings["text"])
        return f"{features}{remarks}<p>The whole page: <code>.save('report.html')</code></p>"

    @property
    def features(self) -> RecordsTable:
        """One row a chosen feature, in order of entry, with what is known of each."""
        rows = self.record["features"]
        names = [name for name in rows[0] if name != "columns"]
        return RecordsTable(names, [[row[name] for name in names] for row in rows])

    @property
    def warnings(self) -> RecordsTable:
        """What to know of the table, the serious first."""
        names = ("kind", "serious", "text")
        return RecordsTable(
            names, [[row[name] for name in names] for row in self.record["warnings"]]
        )

    @property
    def missing_parts(self) -> dict[str, str]:
        """Parts that are not there, and why."""
        return dict(self.record["missing_parts"])

    def to_frame(self, library: str = "pandas") -> Any:
        """Return `features` as a frame of pandas, or of ``library="polars"``."""
        return self.features.to_frame(library)

    def to_dict(self) -> dict[str, Any]:
        """Return the record and the result as plain values."""
        return {**self.record, "result": self.result.to_dict()}

    def to_json(self, **options: Any) -> str:
        """Return `to_dict` as JSON; options go to ``json.dumps``."""
        return json.dumps(self.to_dict(), **options)

    def to_html(self) -> str:
        """Return the page: one document that needs nothing else."""
        return selection_page(self.record)

    def save(self, path: str | PathLike[str]) -> Path:
        """Write the page to a file and return its path.

        Parameters
        ----------
        path : str or path
        """
        return write_selection_page(self.record, Path(path))
