"""What a proof gives back: a bound, a gap, and a sentence that can be quoted."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from html import escape
from math import ceil, floor, log10
from typing import Any, Self

from exactk.errors import InputError
from exactk.result import Result, Status
from exactk.tidy import Tidy

__all__ = ["TABLE_COLUMNS", "Certificate", "at_least", "at_most", "from_mapping"]

# What a row of a table of certificates holds.
TABLE_COLUMNS = ("k", "objective", "lower", "gap", "proven", "selected")
# How a proof ended before its end, in the words of a summary.
ENDS = {
    Status.TIME_LIMIT: " before the time limit",
    Status.INTERRUPTED: " before it was stopped",
}
CONSTRAINED = "only sets that keep the constraints count"


@dataclass(frozen=True)
class Certificate:
    """How far a set of k columns is from the best possible one.

    Attributes
    ----------
    k : int
        How many columns, as they are counted: a group may count as one.
    lower : float
        No set has an objective below this.
    upper : float
        Objective of the best set known, that of `result`.
    gap : float
        ``(upper − lower) / upper``: by how much the objective could fall at most, as a share.
    proven : bool
        Whether `result` is the best there is, to a millionth of its objective or to `tolerance`.
    status : Status
        How the proof ended: ``optimal`` (proven), ``converged`` (the gap that was asked for is
        reached, or rounding allows no better bound), ``time_limit`` or ``interrupted``.
    nodes : int
        Parts of the space of all sets that were looked at.
    seconds : float
        For all of it, the search before the proof included where there was one.
    ridge : float
        The relative ridge, which is a part of what was proven.
    tolerance : float
        What rounding may make of a bound, in units of the objective.
    assumptions : tuple of str
        What the proof takes for granted.
    result : Result
        The best set known: the one that was given, or a better one that took its place.
    improved : bool
        Whether it is a better one.

    Examples
    --------
    >>> import exactk
    >>> from sklearn.datasets import load_iris
    >>> problem = exactk.Problem.from_arrays(*load_iris(return_X_y=True))
    >>> certificate = exactk.certify(problem, 2)
    >>> certificate.proven, certificate.gap
    (True, 0.0)
    >>> print(certificate.summary)
    Proven: no other 2 columns have a lower objective than 42.8119 (ridge 0; right to ...).
    >>> Certificate.from_json(certificate.to_json()) == certificate
    True
    """

    k: int
    lower: float
    upper: float
    gap: float
    proven: bool
    status: Status
    nodes: int
    seconds: float
    ridge: float
    tolerance: float
    assumptions: tuple[str, ...]
    result: Result
    improved: bool = False

    def __str__(self) -> str:
        """Return the summary."""
        return self.summary

    def _repr_html_(self) -> str:
        """Return the columns and the summary for a notebook."""
        return f"<p>{escape(', '.join(self.result.selected))}</p><p>{escape(self.summary)}</p>"

    @property
    def summary(self) -> str:
        """What is known, in a few plain sentences."""
        said = [self._verdict()]
        if self.improved:
            said.append("They are better than those that were given, and took their place.")
        rest = [one for one in self.assumptions if one != CONSTRAINED]
        if rest:
            said.append(f"Assumed: {'; '.join(rest)}.")
        return " ".join(said)

    def _verdict(self) -> str:
        # Of a group all columns are chosen, and it may count as one.
        these = f"{self.k} {self._noun}"
        if CONSTRAINED in self.assumptions:
            these += " that keep the constraints"
        under = f"ridge {self.ridge:.3g}"
        if self.proven:
            slack = at_most(max(self.upper - self.lower, self.tolerance), 1)
            have = "has" if self.k == 1 else "have"
            return (
                f"Proven: no other {these} {have} a lower objective than {self.upper:.6g} "
                f"({under}; right to {slack})."
            )
        end = ENDS.get(self.status, "")
        if self.lower <= 0:
            return f"Not proven{end}: no bound on the best possible objective was found ({under})."
        return (
            f"Not proven{end}: the best possible objective is at least {at_least(self.lower)}, at "
            f"most {at_most(100 * self.gap, 2)} % below the {self.upper:.6g} of these {these} "
            f"({under}; right to {at_most(self.tolerance, 1)})."
        )

    @property
    def _noun(self) -> str:
        noun = "column" if len(self.result.support) == self.k else "feature"
        return noun if self.k == 1 else f"{noun}s"

    @property
    def row(self) -> tuple[Any, ...]:
        """Its row in a table of certificates, under `TABLE_COLUMNS`."""
        return (self.k, self.upper, self.lower, self.gap, self.proven, self.result.selected)

    @property
    def table(self) -> Tidy:
        """One row: k, objective, lower bound, gap, whether it is proven, and the names.

        The columns one by one, with their coefficients, are in ``result.table``.
        """
        return Tidy(TABLE_COLUMNS, [self.row])

    def to_frame(self, library: str = "pandas") -> Any:
        """Return `table` as a frame of pandas, or of ``library="polars"``."""
        return self.table.to_frame(library)

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values, fit for JSON; the summary is among them."""
        out = {part.name: getattr(self, part.name) for part in fields(self)}
        out["status"], out["assumptions"] = str(self.status), list(self.assumptions)
        return {**out, "result": self.result.to_dict(), "summary": self.summary}

    def to_json(self, **options: Any) -> str:
        """Return the certificate as JSON; options go to ``json.dumps``."""
        return json.dumps(self.to_dict(), **options)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Read what `to_dict` gave; keys that a Certificate does not have are ignored."""
        known = from_mapping(cls, values)
        known["result"] = Result.from_dict(known["result"])
        return cls(**known)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what `to_json` wrote."""
        return cls.from_dict(json.loads(text))


def from_mapping(kind: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a class from what its `to_dict` gave, status and tuples restored."""
    wanted = [part.name for part in fields(kind)]
    if not isinstance(values, Mapping):
        raise InputError(f"not a {kind.__name__}: {values!r}")
    missing = [name for name in wanted if name not in values]
    if missing:
        raise InputError(f"not a {kind.__name__}: it lacks {', '.join(missing)}")
    known = {name: values[name] for name in wanted}
    if known["status"] not in [str(status) for status in Status]:
        raise InputError(f"not a {kind.__name__}: it has a status of {known['status']!r}")
    known["status"] = Status(known["status"])
    known["assumptions"] = tuple(known["assumptions"])
    return known


def at_least(value: float, digits: int = 6) -> str:
    """Return a number rounded down: what is said of a bound is never more than is known.

    Examples
    --------
    >>> at_least(60.123456789), at_least(2.9999999)
    ('60.1234', '2.99999')
    """
    return f"{_rounded(value, digits, floor):.{digits}g}"


def at_most(value: float, digits: int = 6) -> str:
    """Return a number rounded up.

    Examples
    --------
    >>> at_most(3.14159, 2), at_most(0.0, 1)
    ('3.2', '0')
    """
    return f"{_rounded(value, digits, ceil):.{digits}g}"


def _rounded(value: float, digits: int, whole: Any) -> float:
    if value == 0:
        return 0.0
    places = digits - 1 - floor(log10(abs(value)))
    # As text: a power of ten that is no float would bring its own rounding.
    shown = float(f"{value:.{digits}g}")
    if (whole is floor and shown <= value) or (whole is ceil and shown >= value):
        return shown
    step = 10.0**-places
    return float(f"{shown - step if whole is floor else shown + step:.{digits}g}")
