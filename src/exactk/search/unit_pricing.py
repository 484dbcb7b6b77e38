"""The prices of moves by whole units: the formulas of `exactk.search.state`, in blocks.

With G = A_SS⁻¹, V = G·B_S, T = G·A_S·, C = B − A_·S·V and E_P = A_PP − A_PS·G·A_SP, the objective
changes by

* adding P:      − tr(C_Pᵀ E_P⁻¹ C_P)
* dropping I:    + tr(V_Iᵀ G_II⁻¹ V_I)
* I out, P in:   the same with C_P + T_IPᵀ G_II⁻¹ V_I and E_P + T_IPᵀ G_II⁻¹ T_IP for C_P and E_P

A swap cannot gain more than adding P alone, which spares the pricing of most groups. Nothing is
updated: a set is loaded anew after each move, so that rounding does not add up and sets whose
columns depend on each other, as groups may, are no special case but for their price.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from exactk.search.state import TIE
from exactk.search.units import Units
from exactk.types import Bools, Floats, Indices
from exactk.utils.linalg import DEPENDENT, SINGULAR

__all__ = ["UnitMove", "UnitPricing"]


class UnitMove(NamedTuple):
    """A member of the set (by its unit) out, another unit in; the objective falls by `gain`."""

    gain: float
    out: int
    unit: int


@dataclass(frozen=True, eq=False)
class _SameSizeGroups:
    """Groups with the same number of columns that are not constant."""

    units: Indices
    columns: Indices
    inner: Floats


class UnitPricing:
    """A set of units with what prices its moves.

    Parameters
    ----------
    units : Units

    Attributes
    ----------
    members : list of int
        Units held, in the order in which they were given.
    objective : float
    is_deficient : bool
        Whether columns held depend on each other, so that prices take longer.
    """

    def __init__(self, units: Units) -> None:
        self.units, self.problem = units, units.problem
        problem = self.problem
        self._diagonal = np.zeros(problem.n_features)
        self._diagonal[problem.usable] = problem.scatter[problem.usable] + problem.penalty
        self._floor = DEPENDENT * self._diagonal
        self.tie_tolerance = TIE * problem.total
        self.members: list[int] = []
        self._alike = list(self._sorted_by_size())
        self.load([])

    def varying_columns(self, unit: int) -> Indices:
        """Return the columns of a unit that are not constant."""
        columns = self.units.columns(unit)
        return columns[self._diagonal[columns] > 0]

    def _sorted_by_size(self) -> Iterator[_SameSizeGroups]:
        first = len(self.units.singles)
        varying_columns = {u: self.varying_columns(u) for u in range(first, len(self.units))}
        for size in sorted({len(columns) for columns in varying_columns.values()} - {0}):
            which = [u for u, columns in varying_columns.items() if len(columns) == size]
            inner = [self.problem.gram.block(varying_columns[u]) for u in which]
            yield _SameSizeGroups(
                np.array(which, dtype=np.intp),
                np.array([varying_columns[u] for u in which], dtype=np.intp),
                np.array(inner) + self.problem.penalty * np.eye(size),
            )

    def load(self, members: Sequence[int]) -> None:
        """Hold these units."""
        problem, S = self.problem, self._hold(members)
        AS = problem.gram.take(S) if S.size else np.zeros((0, problem.n_features))
        AS[np.arange(len(S)), S] += problem.penalty
        self._G, self.is_deficient = _inverse(AS[:, S], self._diagonal[S])
        B_S = problem.cross[:, S].T
        self._AS, self._V, self._T = AS, self._G @ B_S, self._G @ AS
        self.C = problem.cross - self._V.T @ AS
        self.D = self._diagonal - np.einsum("ij,ij->j", AS, self._T)
        self.D[S] = 0.0
        self.objective = problem.total - float(np.einsum("ij,ij->", self._V, B_S))
        self._gains: Floats | None = None

    def _hold(self, members: Sequence[int]) -> Indices:
        """Note which units are held and where their columns are; return those."""
        self.members = list(members)
        parts = [self.varying_columns(u) for u in self.members]
        bounds = np.cumsum([0, *(len(part) for part in parts)])
        self._slots = [slice(a, b) for a, b in pairwise(bounds)]
        return np.concatenate([*parts, np.zeros(0, dtype=np.intp)]).astype(np.intp)

    def gains(self) -> Floats:
        """Return how much adding each unit lowers the objective; 0 for those that depend on it."""
        if self._gains is None:
            self._gains = self._priced_additions()
        return self._gains

    def _priced_additions(self) -> Floats:
        out = np.zeros(len(self.units))
        singles = self.units.singles
        out[: len(singles)] = self._single_gains(singles, self.C[:, singles], self.D[singles])
        for alike in self._alike:
            inner = alike.inner - self._between(self._AS, self._T, alike.columns)
            out[alike.units] = self._group_gains(alike.columns, inner, self.C[:, alike.columns])
        out[self.members] = 0.0
        return out

    def losses(self) -> Floats:
        """Return how much the objective rises when each member is dropped."""
        return np.array([self.loss_together([i]) for i in range(len(self.members))])

    def loss_together(self, numbers: Sequence[int]) -> float:
        """Return how much the objective rises when members with these numbers are all dropped."""
        if self.is_deficient:
            return self._without(numbers).objective - self.objective
        slots = [p for i in numbers for p in range(self._slots[i].start, self._slots[i].stop)]
        V = self._V[slots]
        return float(np.einsum("ij,ij->", V, _solve(self._G[np.ix_(slots, slots)], V)))

    def swap_gains(self, i: int, allowed: Bools, above: float | None = None) -> Floats:
        """Return how much each allowed unit in the place of member number i lowers the objective.

        Units that are not allowed have -inf. Where only the best is of interest, and only above a
        value, groups that a bound shows to be neither may have it, too.
        """
        out = np.full(len(self.units), -np.inf)
        if self.is_deficient:
            rest = self._without([i])
            fall = rest.gains() + (self.objective - rest.objective)
            out[allowed] = fall[allowed]
            return out
        slot = self._slots[i]
        V, T = self._V[slot], self._T[slot]
        spread = _solve(self._G[slot, slot], np.hstack([V, T]))
        loss = float(np.einsum("ij,ij->", V, spread[:, : V.shape[1]]))
        weight = spread[:, V.shape[1] :]
        singles = np.flatnonzero(allowed[: len(self.units.singles)])
        columns = self.units.singles[singles]
        C = self.C[:, columns] + V.T @ weight[:, columns]
        D = self.D[columns] + np.einsum("ij,ij->j", T[:, columns], weight[:, columns])
        out[singles] = self._single_gains(columns, C, D) - loss
        least = -np.inf if above is None else max(above, float(out.max(initial=-np.inf)))
        for alike in self._alike:
            which = np.flatnonzero(allowed[alike.units])
            if which.size == 0:
                continue
            P = alike.columns[which]
            if above is not None:
                promising = self.gains()[alike.units[which]] > least
                which, P = which[promising], P[promising]
            inner = alike.inner[which] - self._between(self._AS, self._T, P)
            inner += self._between(T, weight, P)
            C = self.C[:, P] + np.tensordot(V, weight[:, P], axes=(0, 0))
            out[alike.units[which]] = self._group_gains(P, inner, C) - loss
            if above is not None:
                least = max(least, float(out[alike.units].max(initial=-np.inf)))
        return out

    def best_swap(self, allowed: Sequence[Bools | None]) -> UnitMove | None:
        """Return the swap that lowers the objective most, or None if none does.

        Parameters
        ----------
        allowed : sequence of ndarray of bool, or None
            For each member which units may come in for it; None for one that stays.
        """
        best: UnitMove | None = None
        for i, fits in enumerate(allowed):
            if fits is None or not fits.any():
                continue
            above = self.tie_tolerance if best is None else best.gain
            gains = self.swap_gains(i, fits, above - self.tie_tolerance)
            top = float(gains.max())
            if top > above + (0.0 if best is None else self.tie_tolerance):
                unit = int(np.argmax(gains >= top - self.tie_tolerance))
                best = UnitMove(float(gains[unit]), self.members[i], unit)
        return best

    def _without(self, numbers: Sequence[int]) -> UnitPricing:
        rest = copy(self)
        rest.load([unit for i, unit in enumerate(self.members) if i not in numbers])
        return rest

    def _single_gains(self, columns: Indices, C: Floats, D: Floats) -> Floats:
        square = np.einsum("ij,ij->j", C, C)
        return np.divide(square, D, out=np.zeros_like(square), where=D > self._floor[columns])

    @staticmethod
    def _between(left: Floats, right: Floats, columns: Indices) -> Floats:
        """Products Σ_i left_ip·right_iq of the columns p and q of each group."""
        # Products of many small matrices at once, without einsum's planning of each.
        return left[:, columns].transpose(1, 2, 0) @ right[:, columns].transpose(1, 0, 2)

    def _group_gains(self, columns: Indices, inner: Floats, C: Floats) -> Floats:
        """tr(C_Pᵀ E_P⁻¹ C_P) for each group, by what is not dependent of E_P."""
        if len(columns) == 0:
            return np.zeros(0)
        root = 1.0 / np.sqrt(self._diagonal[columns])
        values, vectors = np.linalg.eigh(inner * root[:, :, None] * root[:, None, :])
        across = vectors.transpose(0, 2, 1) @ (C * root).transpose(1, 2, 0)
        square = np.einsum("pbc,pbc->pb", across, across)
        kept = values > DEPENDENT
        return np.divide(square, values, out=np.zeros_like(square), where=kept).sum(axis=1)


def _solve(matrix: Floats, right: Floats) -> Floats:
    """Solve with a small block of G, for a single column without the detour of a factorisation."""
    if len(matrix) == 0:
        return right
    if len(matrix) == 1:
        return right / matrix[0, 0]
    return np.asarray(np.linalg.solve(matrix, right))


def _inverse(A: Floats, diagonal: Floats) -> tuple[Floats, bool]:
    """Return the inverse of A, that of least norm where its columns depend, and whether they do."""
    if len(A) == 0:
        return np.zeros((0, 0)), False
    root = 1.0 / np.sqrt(diagonal)
    unit = A * np.outer(root, root)
    unit = 0.5 * (unit + unit.T)
    values, vectors = np.linalg.eigh(unit)
    kept = values > SINGULAR * len(A)
    inverse = (vectors[:, kept] / values[kept]) @ vectors[:, kept].T
    dependent = bool((np.diagonal(inverse) * DEPENDENT >= 1.0).any()) or not kept.all()
    return inverse * np.outer(root, root), dependent
