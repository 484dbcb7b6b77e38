"""Proofs of several sets: of every size, and of the best few of one size."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from html import escape
from math import ceil, floor, log10
from typing import Any, Self, overload

from exactk.errors import InputError
from exactk.result import Path, Result, Status
from exactk.utils.records_table import RecordsTable, notebook_html

__all__ = [
    "TABLE_COLUMNS",
    "BestSets",
    "Certificate",
    "CertifiedPath",
    "from_mapping",
    "round_down",
    "round_up",
]


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
            slack = round_up(max(self.upper - self.lower, self.tolerance), 1)
            have = "has" if self.k == 1 else "have"
            return (
                f"Proven: no other {these} {have} a lower objective than {self.upper:.6g} "
                f"({under}; right to {slack})."
            )
        end = ENDS.get(self.status, "")
        if self.lower <= 0:
            return f"Not proven{end}: no bound on the best possible objective was found ({under})."
        return (
            f"Not proven{end}: the best possible objective is at least {round_down(self.lower)}, "
            f"at most {round_up(100 * self.gap, 2)} % below the {self.upper:.6g} of these {these} "
            f"({under}; right to {round_up(self.tolerance, 1)})."
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
    def table(self) -> RecordsTable:
        """One row: k, objective, lower bound, gap, whether it is proven, and the names.

        The columns one by one, with their coefficients, are in ``result.table``.
        """
        return RecordsTable(TABLE_COLUMNS, [self.row])

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


def round_down(value: float, digits: int = 6) -> str:
    """Return a number rounded down: what is said of a bound is never more than is known.

    Examples
    --------
    >>> round_down(60.123456789), round_down(2.9999999)
    ('60.1234', '2.99999')
    """
    return f"{_rounded(value, digits, floor):.{digits}g}"


def round_up(value: float, digits: int = 6) -> str:
    """Return a number rounded up.

    Examples
    --------
    >>> round_up(3.14159, 2), round_up(0.0, 1)
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


class CertifiedPath(Sequence[Certificate]):
    """Certificates for k = 1, 2, …, in that order: ``at(k)``, or ``path[i]`` by position.

    Under constraints sizes may be missing: those at which no set keeps them.

    Parameters
    ----------
    certificates : sequence of Certificate
    seconds : float
        For all of them together.

    Examples
    --------
    >>> import exactk
    >>> from sklearn.datasets import load_iris
    >>> problem = exactk.Problem.from_arrays(*load_iris(return_X_y=True))
    >>> path = exactk.certify_path(problem, 3)
    >>> path.proven, path.at(2).result.support
    (True, array([1, 3]))
    >>> path.table[["k", "objective", "proven", "selected"]]
    k  objective  proven  selected
    1  52.9314    True    x2
    2  42.8119    True    x3, x1
    3  40.5043    True    x2, x1, x3
    """

    def __init__(self, certificates: Sequence[Certificate], seconds: float = 0.0) -> None:
        self._certificates = tuple(certificates)
        self.seconds = seconds

    def at(self, k: int) -> Certificate:
        """Return the certificate for k columns."""
        if k not in self.sizes:
            sizes = ", ".join(map(str, self.sizes)) or "nothing"
            raise InputError(f"there are certificates for k = {sizes}, not {k}")
        return self._certificates[self.sizes.index(k)]

    @property
    def sizes(self) -> list[int]:
        """The sizes there are."""
        return [one.k for one in self._certificates]

    @property
    def proven(self) -> bool:
        """Whether the best set of every size is proven."""
        return all(one.proven for one in self._certificates)

    @property
    def status(self) -> Status:
        """How it ended: ``optimal`` where all is proven, else as the first size that is not."""
        ends = [one.status for one in self._certificates if one.status != Status.OPTIMAL]
        return Status.INTERRUPTED if Status.INTERRUPTED in ends else (*ends, Status.OPTIMAL)[0]

    @property
    def path(self) -> Path:
        """The results, as `solve_path` gives them."""
        return Path([one.result for one in self._certificates])

    @property
    def table(self) -> RecordsTable:
        """One row a size: k, objective, lower bound, gap, whether it is proven, and the names."""
        return RecordsTable(TABLE_COLUMNS, [one.row for one in self._certificates])

    def to_frame(self, library: str = "pandas") -> Any:
        """Return `table` as a frame of pandas, or of ``library="polars"``."""
        return self.table.to_frame(library)

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values, fit for JSON."""
        certificates = [one.to_dict() for one in self._certificates]
        return {"certificates": certificates, "proven": self.proven, "seconds": self.seconds}

    def to_json(self, **options: Any) -> str:
        """Return all certificates as JSON; options go to ``json.dumps``."""
        return json.dumps(self.to_dict(), **options)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Read what `to_dict` gave."""
        if "certificates" not in values:
            raise InputError("not a CertifiedPath: it lacks certificates")
        certificates = [Certificate.from_dict(one) for one in values["certificates"]]
        return cls(certificates, values.get("seconds", 0.0))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what `to_json` wrote."""
        return cls.from_dict(json.loads(text))

    @overload
    def __getitem__(self, index: int) -> Certificate: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Certificate]: ...
    def __getitem__(self, index: int | slice) -> Certificate | Sequence[Certificate]:
        """Return the certificate at a position."""
        return self._certificates[index]

    def __len__(self) -> int:
        """Return how many sizes there are."""
        return len(self._certificates)

    def __iter__(self) -> Iterator[Certificate]:
        """Iterate over the sizes."""
        return iter(self._certificates)

    def __eq__(self, other: object) -> bool:
        """Whether both hold the same certificates."""
        return isinstance(other, CertifiedPath) and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]  # holds arrays

    def __repr__(self) -> str:
        """Return one line."""
        proven = sum(one.proven for one in self._certificates)
        return f"CertifiedPath({len(self)} sizes, {proven} proven)"

    def _repr_html_(self) -> str:
        """Return the table for a notebook."""
        return self.table._repr_html_()


@dataclass(frozen=True)
class BestSets:
    """The best sets of one size, the best first.

    Attributes
    ----------
    k : int
        How many columns, as they are counted: a group may count as one.
    n_best : int
        How many sets were asked for.
    within : float or None
        Share by which their objective may be above the best.
    sets : tuple of tuple of int
        Columns of the user's table, sorted.
    names : tuple of tuple of str
        The same by name: columns, categories and groups as the user knows them.
    objectives : tuple of float
    is_complete : bool
        Whether it is proven that no other set belongs in the list. Sets that tie with the last
        one may still have been left out for it.
    has_more : bool
        Whether more sets than `n_best` lie within the limit: the list has the best of them.
    lower : float
        No set has an objective below this.
    status : Status
        How the proof ended; ``optimal`` where the list is complete.
    nodes : int
    seconds : float
    ridge : float
    tolerance : float
        What rounding may make of a bound, in units of the objective.
    assumptions : tuple of str
        What the proof takes for granted.

    Examples
    --------
    >>> import exactk
    >>> from sklearn.datasets import load_iris
    >>> problem = exactk.Problem.from_arrays(*load_iris(return_X_y=True))
    >>> best = exactk.best_sets(problem, 2, 3)
    >>> best.sets, best.is_complete
    (((1, 3), (1, 2), (2, 3)), True)
    >>> best.table
    rank  objective  excess     features
    1     42.8119    0          x1, x3
    2     44.0046    0.0278595  x1, x2
    3     47.6774    0.113648   x2, x3
    """

    k: int
    n_best: int
    within: float | None
    sets: tuple[tuple[int, ...], ...]
    names: tuple[tuple[str, ...], ...]
    objectives: tuple[float, ...]
    is_complete: bool
    has_more: bool
    lower: float
    status: Status
    nodes: int
    seconds: float
    ridge: float
    tolerance: float
    assumptions: tuple[str, ...]

    @property
    def table(self) -> RecordsTable:
        """One row a set: rank, objective, excess over the best as a share, and the features."""
        best = self.objectives[0] if self.objectives else 0.0
        rows = [
            # At a perfect fit what differs is rounding.
            (rank, objective, objective / best - 1.0 if best > 0 else 0.0, names)
            for rank, (objective, names) in enumerate(
                zip(self.objectives, self.names, strict=True), start=1
            )
        ]
        return RecordsTable(["rank", "objective", "excess", "features"], rows)

    def _repr_html_(self) -> str:
        """Return the table and the summary for a notebook."""
        return notebook_html(self.table, self.summary)

    @property
    def summary(self) -> str:
        """What is known, in a few plain sentences."""
        within = "" if self.within is None else f" within {100 * self.within:.3g} % of the best"
        these = f"sets of {self.k}{within} (ridge {self.ridge:.3g})"
        if self.is_complete:
            said = f"Proven: of all {these} no other belongs in this list of {len(self.sets)}."
            if self.has_more:
                said = (
                    f"Proven: these are the {len(self.sets)} best of all {these}; there are more."
                )
        else:
            bound = f"; none is below {round_down(self.lower)}" if self.lower > 0 else ""
            said = f"Not proven: other {these} may belong in this list of {len(self.sets)}{bound}."
        rest = f" Assumed: {'; '.join(self.assumptions)}." if self.assumptions else ""
        return said + rest

    def to_frame(self, library: str = "pandas") -> Any:
        """Return `table` as a frame of pandas, or of ``library="polars"``."""
        return self.table.to_frame(library)

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values, fit for JSON; the summary is among them."""
        out = {part.name: getattr(self, part.name) for part in fields(self)}
        for name in ("sets", "names"):
            out[name] = [list(one) for one in out[name]]
        for name in ("objectives", "assumptions"):
            out[name] = list(out[name])
        return {**out, "status": str(self.status), "summary": self.summary}

    def to_json(self, **options: Any) -> str:
        """Return the list as JSON; options go to ``json.dumps``."""
        return json.dumps(self.to_dict(), **options)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Read what `to_dict` gave; keys that it does not have are ignored."""
        known = from_mapping(cls, values)
        for name in ("sets", "names"):
            known[name] = tuple(tuple(one) for one in known[name])
        known["objectives"] = tuple(known["objectives"])
        return cls(**known)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what `to_json` wrote."""
        return cls.from_dict(json.loads(text))
