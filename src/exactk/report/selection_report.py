"""`SelectionReport`: the parts of one investigation, and the page that is drawn from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from html import escape
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from exactk.errors import InputError, Setting
from exactk.report.facts import python_code
from exactk.result import Result
from exactk.utils.formatting import escape_controls
from exactk.utils.records_table import RecordsTable, TableResult, notebook_html

if TYPE_CHECKING:
    from exactk.evaluation.evaluate import Evaluation
    from exactk.model_selection.choose_k import AutoKResult
    from exactk.model_selection.explain import Explanation
    from exactk.model_selection.stability import Stability
    from exactk.proof.results import Certificate

__all__ = ["INTERRUPTED", "OUT_OF_TIME", "SelectionReport", "check_replaceable"]

PARTS = ("choice", "certificate", "stability", "explanation", "evaluation")
# Reasons why a part is missing.
INTERRUPTED = "stopped by the user"
OUT_OF_TIME = "the time limit was reached before this part began"
# Columns of the table of features, and those that a notebook shows if they have values.
COLUMNS = (
    "rank", "feature", "loss", "loss_fraction", "substitute", "substitution_cost",
    "substitution_fraction", "included", "frequency", "low", "high", "group", "score",
)  # fmt: skip
SHOWN = ("rank", "feature", "loss_fraction", "substitute", "substitution_fraction", "frequency",
         "group")  # fmt: skip
# A page of exactk says so in its first lines.
MARKER, MARKER_WITHIN = b'<meta name="generator" content="exactk ', 4096


@dataclass(frozen=True, eq=False)
class SelectionReport(TableResult):
    """What `exactk.investigate` found: a selection and the answers to questions about it.

    A part that was not requested, or could not be computed, is None.

    Attributes
    ----------
    result : Result
        The selection: the better one if the proof found a better one.
    choice : AutoKResult or None
        The other numbers of features, and how k was chosen if it was.
    certificate : Certificate or None
    stability : Stability or None
    explanation : Explanation or None
    evaluation : Evaluation or None
        Score on held-out rows, comparison with other methods, permutation test.
    warnings : RecordsTable
        Warnings about the table, the serious ones first: kind, serious, text, names.
    missing_parts : dict
        Why a requested part is missing, by the name of the part.
    interrupted : bool
        Whether Ctrl-C stopped it before all parts were computed.
    settings : mapping
        The changed parameters as Python source, and facts about the table; plain values.
    figures : mapping
        The numbers behind the other figures of the page; plain values.

    Examples
    --------
    >>> import exactk
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> report = exactk.investigate(X, y, k=2, n_subsamples=10, n_permutations=0, compare_with=())
    >>> report
    SelectionReport(2 of 4 features for 'target': petal width (cm), sepal width (cm))
    >>> report.table[["feature", "substitute"]]
    feature           substitute
    petal width (cm)  petal length (cm)
    sepal width (cm)  petal length (cm)
    >>> report.to_html().startswith("<!DOCTYPE html>")
    True
    """

    result: Result
    choice: AutoKResult | None
    certificate: Certificate | None
    stability: Stability | None
    explanation: Explanation | None
    evaluation: Evaluation | None
    warnings: RecordsTable
    missing_parts: dict[str, str]
    interrupted: bool
    settings: Mapping[str, Any] = field(repr=False)
    figures: Mapping[str, Any] = field(repr=False)

    def __repr__(self) -> str:
        """Return one line."""
        names = escape_controls(", ".join(self.result.selected))
        return (
            f"SelectionReport({len(self.result.selected)} of {self.settings['n_features']} "
            f"features for {self.settings['target']!r}: {names})"
        )

    def _repr_html_(self) -> str:
        table = self.table
        known = [name for name in SHOWN if any(value is not None for value in table[name])]
        shown = notebook_html(table[known], repr(self))
        warnings = "".join(f"<p>{escape(text)}</p>" for text in self.warnings["text"])
        return f"{shown}{warnings}<p>The whole page: <code>.save('report.html')</code></p>"

    @property
    def table(self) -> RecordsTable:  # type: ignore[override]  # computed
        """One row for each selected feature, with what every part says about it.

        ``rank`` and ``included`` as in `Result`; ``loss`` when it is dropped and ``substitute``
        as in `Explanation`; ``frequency`` with its interval ``low`` to ``high`` and ``group`` as
        in `Stability`; ``score`` of a filter.
        """
        from exactk.report.page.record import feature_rows

        rows = feature_rows(self.to_dict())
        return RecordsTable(COLUMNS, [[row[name] for name in COLUMNS] for row in rows])

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values, fit for JSON; the page is drawn from them alone."""
        parts = {name: getattr(self, name) for name in PARTS}
        return {
            "format": "exactk-selection-report",
            "version": 2,
            "result": self.result.to_dict(),
            **{name: None if part is None else part.to_dict() for name, part in parts.items()},
            "warnings": self.warnings.to_plain(),
            "missing_parts": dict(self.missing_parts),
            "interrupted": self.interrupted,
            "settings": dict(self.settings),
            "figures": dict(self.figures),
        }

    def with_source(
        self, *, command: str | None = None, checksum: str | None = None, **read: Any
    ) -> SelectionReport:
        """Return the report with the file that the table was read from, for the page.

        Parameters
        ----------
        command : str or None
            The command that made the report.
        checksum : str or None
            SHA-256 of the file.
        **read
            Parameters of `exactk.read_table`: path, target and those that were changed.
        """
        read["path"] = str(read["path"])
        code = python_code(self.settings["call"], read, "")
        source = {"table": read["path"], "command": command, "checksum": checksum}
        return replace(self, settings={**self.settings, **source, "code": code})

    def to_html(self) -> str:
        """Return the page: one document that needs nothing else."""
        from exactk.report.page.page import selection_page

        return selection_page(self.to_dict())

    def save(self, path: str | PathLike[str], *, overwrite: bool = False) -> Path:
        """Write the page to a file and return its path.

        Parameters
        ----------
        path : path
        overwrite : bool
            Replace an existing file also if exactk did not write it.

        Raises
        ------
        InputError
            The file exists and is not a page of exactk, or it cannot be written.
        """
        from exactk.report.document import write_document

        check_replaceable(path, overwrite=overwrite)
        return write_document(self.to_html(), Path(path))


def check_replaceable(path: str | PathLike[str], *, overwrite: bool = False) -> None:
    """Raise if a file exists that exactk did not write, unless it may be overwritten."""
    place = Path(path)
    if overwrite or not place.is_file():
        return
    with place.open("rb") as file:
        start = file.read(MARKER_WITHIN)
    if start and MARKER not in start:
        raise InputError(
            f"{str(place)!r} exists and is not a report of exactk",
            parameter="overwrite", value=overwrite,
            hint=("give another name, or ", Setting("overwrite", True)),
        )  # fmt: skip
