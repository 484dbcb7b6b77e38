"""Results of proofs: of one set, of every size, and of the best sets of one size."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from math import ceil, floor, log10
from typing import Any, NoReturn, Self, overload

from exactk.errors import InputError
from exactk.result import Path, Result, Status
from exactk.utils.records_table import RecordsTable, TableResult, notebook_html

__all__ = [
    "TABLE_COLUMNS",
    "BestSets",
    "Certificate",
    "CertifiedPath",
    "from_mapping",
    "round_down",
    "round_up",
]


# Columns of a table of certificates.
TABLE_COLUMNS = ("k", "objective", "lower", "gap", "proven", "selected")
CONSTRAINED = "only sets that keep the constraints count"


@dataclass(frozen=True)
class Certificate(TableResult):
    """How far a set of k features is from the best possible one.

    Attributes
    ----------
    k : int
        Number of features: a group of columns may count as one.
    lower : float
        No set has an objective below this bound.
    upper : float
        Objective of the best set known, that of `result`.
    gap : float
        ``(upper − lower) / upper``: a better set could lower the objective by at most this share.
    proven : bool
        Whether `result` is the best set, to a millionth of its objective or to `tolerance`.
    status : Status
        How the proof ended: ``optimal`` (proven), ``converged`` (see `message`), ``time_limit`` or
        ``interrupted``.
    nodes : int
        Number of nodes of the search tree that were explored.
    seconds : float
        Time of the proof, with the search before it.
    ridge : float
        The relative ridge, which is a part of what was proven.
    tolerance : float
        Largest effect of rounding on the bound, in units of the objective.
    assumptions : tuple of str
        What the proof assumes.
    result : Result
        The best set known: the one that was given, or a better one.
    improved : bool
        Whether it is a better one.
    message : str
        Why the proof ended with a gap; empty if the set is proven.

    Examples
    --------
    >>> import exactk
    >>> from sklearn.datasets import load_iris
    >>> certificate = exactk.certify(*load_iris(return_X_y=True), k=2, ridge=0)
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
    message: str = ""

    def __str__(self) -> str:
        """Return the summary."""
        return self.summary

    def __repr__(self) -> str:
        """Return one line."""
        end = "proven" if self.proven else f"not proven, gap {round_up(100 * self.gap, 2)} %"
        said = f"; {self.message}" if self.message else ""
        return (
            f"Certificate(k={self.k}, {end}, objective {self.upper:.6g}, "
            f"{_count_nodes(self.nodes)}{said})"
        )

    def _repr_html_(self) -> str:
        return notebook_html(self.table, self.summary)

    @property
    def summary(self) -> str:
        """What is known, in a few plain sentences."""
        said = [self._verdict()]
        if self.message:
            said.append(f"Reason: {self.message}; {_count_nodes(self.nodes)}.")
        if self.improved:
            said.append("This set is better than the given one.")
        rest = [one for one in self.assumptions if one != CONSTRAINED]
        if rest:
            said.append(f"Assumed: {'; '.join(rest)}.")
        return " ".join(said)

    def _verdict(self) -> str:
        # Of a group all columns are selected, and it may count as one.
        these = f"{self.k} {self._noun}"
        if CONSTRAINED in self.assumptions:
            these += " that keep the constraints"
        ridge = f"ridge {self.ridge:.3g}"
        if self.proven:
            slack = round_up(max(self.upper - self.lower, self.tolerance), 1)
            have = "has" if self.k == 1 else "have"
            return (
                f"Proven: no other {these} {have} a lower objective than {self.upper:.6g} "
                f"({ridge}; right to {slack})."
            )
        if self.lower <= 0:
            return f"Not proven: no bound on the objective of {these} was found ({ridge})."
        return (
            f"Not proven: better {these} could lower the objective of {self.upper:.6g} by at most "
            f"{round_up(100 * self.gap, 2)} %, to {round_down(self.lower)} ({ridge}; right to "
            f"{round_up(self.tolerance, 1)})."
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
    def table(self) -> RecordsTable:  # type: ignore[override]  # computed at first use
        """One row: k, objective, lower bound, gap, whether it is proven, and the names.

        The columns one by one, with their coefficients, are in ``result.table``.
        """
        return RecordsTable(TABLE_COLUMNS, [self.row])

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values, fit for JSON; the summary is among them."""
        out = {part.name: getattr(self, part.name) for part in fields(self)}
        out["status"], out["assumptions"] = str(self.status), list(self.assumptions)
        return {**out, "result": self.result.to_dict(), "summary": self.summary}

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
        _refuse(kind, values, repr(values))
    # This field came later than the first certificates that were written.
    values = {"message": "", **values}
    missing = [name for name in wanted if name not in values]
    if missing:
        _refuse(kind, values, f"{', '.join(missing)} missing")
    known = {name: values[name] for name in wanted}
    if known["status"] not in [str(status) for status in Status]:
        _refuse(kind, values, f"status is {known['status']!r}")
    known["status"] = Status(known["status"])
    known["assumptions"] = tuple(known["assumptions"])
    return known


def _refuse(kind: type, values: object, why: str) -> NoReturn:
    raise InputError(f"not a {kind.__name__}: {why}", parameter="values", value=values)


def _count_nodes(nodes: int) -> str:
    count = "no" if nodes == 0 else f"{nodes:,}"
    return f"{count} node{'s' * (nodes != 1)} explored"


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


class CertifiedPath(TableResult, Sequence[Certificate]):
    """Certificates for k = 1, 2, …, in that order: ``at(k)``, or ``path[i]`` by position.

    Under constraints sizes may be missing: those for which no set keeps the constraints.

    Parameters
    ----------
    certificates : sequence of Certificate
    seconds : float
        For all of them together.

    Examples
    --------
    >>> import exactk
    >>> from sklearn.datasets import load_iris
    >>> path = exactk.certify_path(*load_iris(return_X_y=True), k_max=3, ridge=0)
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
            raise InputError(
                f"there are certificates for k = {sizes}, not {k}", parameter="k", value=k
            )
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
    def table(self) -> RecordsTable:  # type: ignore[override]  # computed at first use
        """One row for each size: k, objective, lower bound, gap, whether it is proven, names."""
        return RecordsTable(TABLE_COLUMNS, [one.row for one in self._certificates])

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values, fit for JSON."""
        certificates = [one.to_dict() for one in self._certificates]
        return {"certificates": certificates, "proven": self.proven, "seconds": self.seconds}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Read what `to_dict` gave."""
        if "certificates" not in values:
            _refuse(cls, values, "certificates missing")
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


@dataclass(frozen=True)
class BestSets(TableResult):
    """The best sets of one size, the best first.

    Attributes
    ----------
    k : int
        Number of features: a group of columns may count as one.
    n_best : int
        Number of sets that were requested.
    within : float or None
        Share by which their objective may be above the best.
    sets : tuple of tuple of int
        Columns of the user's table, sorted.
    names : tuple of tuple of str
        The same by name: columns, categories and groups.
    objectives : tuple of float
    is_complete : bool
        Whether it is proven that no other set belongs in the list. Sets with the same objective
        as the last one may be missing.
    has_more : bool
        Whether there are more sets than `n_best` within the limit: the list has the best of them.
    lower : float
        No set has an objective below this bound.
    status : Status
        How the proof ended; ``optimal`` if the list is complete.
    nodes : int
        Number of nodes of the search tree that were explored.
    seconds : float
    ridge : float
    tolerance : float
        Largest effect of rounding on the bound, in units of the objective.
    assumptions : tuple of str
        What the proof assumes.
    message : str
        Why the list may be incomplete; empty if it is complete.

    Examples
    --------
    >>> import exactk
    >>> from sklearn.datasets import load_iris
    >>> best = exactk.best_sets(*load_iris(return_X_y=True), k=2, n_best=3, ridge=0)
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
    message: str = ""

    @property
    def table(self) -> RecordsTable:  # type: ignore[override]  # computed at first use
        """One row for each set: rank, objective, excess over the best as a share, features."""
        best = self.objectives[0] if self.objectives else 0.0
        rows = [
            # At a perfect fit all differences are rounding.
            (rank, objective, objective / best - 1.0 if best > 0 else 0.0, names)
            for rank, (objective, names) in enumerate(
                zip(self.objectives, self.names, strict=True), start=1
            )
        ]
        return RecordsTable(["rank", "objective", "excess", "features"], rows)

    def __str__(self) -> str:
        """Return the summary."""
        return self.summary

    def __repr__(self) -> str:
        """Return one line."""
        end = "complete" if self.is_complete else f"may be incomplete: {self.message}"
        plural = "s" * (len(self.sets) != 1)
        return f"BestSets(k={self.k}, {len(self.sets)} set{plural}, {end})"

    def _repr_html_(self) -> str:
        return notebook_html(self.table, self.summary)

    @property
    def summary(self) -> str:
        """What is known, in a few plain sentences."""
        n, size, ridge = len(self.sets), f"of {self.k}", f"ridge {self.ridge:.3g}"
        limit = "" if self.within is None else f" within {100 * self.within:.3g} % of the best"
        if self.is_complete and self.has_more:
            said = f"Proven: these are the {n} best sets {size}{limit}; there are more ({ridge})."
        elif self.is_complete and limit:
            said = f"Proven: there are no other sets {size}{limit} ({ridge})."
        elif self.is_complete:
            said = f"Proven: no other set {size} has a lower objective than these {n} ({ridge})."
        else:
            bound = f"; none has one below {round_down(self.lower)}" if self.lower > 0 else ""
            said = (
                f"Not proven: other sets {size}{limit} may have a lower objective than these {n}"
                f"{bound} ({ridge})."
            )
        if self.message:
            said += f" Reason: {self.message}; {_count_nodes(self.nodes)}."
        return f"{said} Assumed: {'; '.join(self.assumptions)}." if self.assumptions else said

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values, fit for JSON; the summary is among them."""
        out = {part.name: getattr(self, part.name) for part in fields(self)}
        for name in ("sets", "names"):
            out[name] = [list(one) for one in out[name]]
        for name in ("objectives", "assumptions"):
            out[name] = list(out[name])
        return {**out, "status": str(self.status), "summary": self.summary}

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
