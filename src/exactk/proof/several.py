"""Proofs of several sets: of every size, and of the best few of one size."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Self, overload

from exactk.errors import InputError
from exactk.proof.certificate import TABLE_COLUMNS, Certificate, at_least, from_mapping
from exactk.result import Path, Status
from exactk.tidy import Tidy, notebook_html

__all__ = ["BestSets", "CertifiedPath"]


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
    def table(self) -> Tidy:
        """One row a size: k, objective, lower bound, gap, whether it is proven, and the names."""
        return Tidy(TABLE_COLUMNS, [one.row for one in self._certificates])

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
    def table(self) -> Tidy:
        """One row a set: rank, objective, excess over the best as a share, and the features."""
        best = self.objectives[0] if self.objectives else 0.0
        rows = [
            # At a perfect fit what differs is rounding.
            (rank, objective, objective / best - 1.0 if best > 0 else 0.0, names)
            for rank, (objective, names) in enumerate(
                zip(self.objectives, self.names, strict=True), start=1
            )
        ]
        return Tidy(["rank", "objective", "excess", "features"], rows)

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
            bound = f"; none is below {at_least(self.lower)}" if self.lower > 0 else ""
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
