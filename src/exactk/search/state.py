"""A support and everything that prices its moves: adding, dropping and swapping columns.

With G = A_SS⁻¹, V = G·B_S (coefficients), T = A_{·S}·G, C = B − A_{·S}·V and
D_p = A_pp − Σ_i T_pi·A_pi, the objective changes by

* adding p:      − ‖C_p‖² / D_p
* dropping i:    + ‖V_i‖² / G_ii
* i out, p in:   + ‖V_i‖²/G_ii − ‖C_p + (T_pi/G_ii)·V_i‖² / (D_p + T_pi²/G_ii)

A move updates C and D by one rank, O(d(k + c)) beside the Gram column. Two bounds spare most of
the pricing of swaps and change nothing in the answer. A swap cannot gain more than adding p
alone, g_p = ‖C_p‖²/D_p. And with r = A_pp/D_p − 1, the most that p can stand in for any member,
a swap that gains at all needs min_i ‖V_i‖²/G_ii < g_p·(√r + √(1 + r))² ≤ g_p·(4r + 2).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import IntEnum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from exactk.problem.problem import Problem
from exactk.types import Floats, Indices
from exactk.utils.linalg import DEPENDENT

__all__ = ["TIE", "Marks", "Move", "Outcome", "State", "price_swaps"]

Marks = npt.NDArray[np.uint64]

# Gains closer than this share of ‖HY‖² are ties, and ties go to the lowest column index: the
# answer must not hang on the order in which sums were rounded.
TIE = 1e-11
# A member of which less than 1/TIGHT is left beside the others makes a support tight.
ILL_CONDITIONED = 1e3
# Swap candidates priced first; the others only where their bound is above what these reach.
FIRST_PRICED = 128
# Columns priced together where all of them are: work space for them fits the cache.
PRICED_AT_ONCE = 4096


class Move(NamedTuple):
    """Member number `slot` out (-1: none), column `column` in; the objective falls by `gain`."""

    gain: float
    slot: int
    column: int


class Outcome(IntEnum):
    """How a descent by swaps ended."""

    ENDED = 0
    KNOWN = 1
    STALLED = 2
    PAUSED = 3


class State:
    """A support of up to `capacity` columns, with what prices its moves (NumPy).

    Parameters
    ----------
    problem : Problem
    capacity : int
        Most columns that it will hold.

    Attributes
    ----------
    size : int
        Columns held now.
    objective : float
        f of these columns, by updates since the last `refresh`.
    moves : int
        Columns added and dropped so far, a measure of work that no clock disturbs.
    swaps : int
        Swaps taken so far.
    fixed : list of int
        Columns that the problem's rules want in: always held, in the first slots, never let go.
    """

    def __init__(self, problem: Problem, capacity: int) -> None:
        d, c = problem.n_features, problem.n_outputs
        self.problem = problem
        self.diagonal = problem.diagonal
        self.floor = DEPENDENT * self.diagonal
        self.tie_tolerance = TIE * problem.total
        self.size = 0
        self.moves = 0
        self.swaps = 0
        self.objective = problem.total
        self._penalty = problem.penalty
        self._S = np.zeros(capacity, dtype=np.int64)
        self._AS = np.empty((capacity, d))
        self._G = np.zeros((capacity, capacity))
        self._V = np.zeros((capacity, c))
        self.C = problem.cross.copy()
        self.D = self.diagonal.copy()
        self.fixed = [] if problem.rules is None else list(problem.rules.include)
        self._hold_fixed()

    def _hold_fixed(self) -> None:
        if self.fixed and not self.load([]):
            raise AssertionError("columns to be held depend on each other: see `native.serves`")

    @property
    def support(self) -> list[int]:
        """Columns held, by slot: in order of entry as long as none was dropped."""
        members: list[int] = self._S[: self.size].tolist()
        return members

    @property
    def is_ill_conditioned(self) -> bool:
        """Whether some member nearly depends on the others, so that rounding may matter."""
        k, S = self.size, self._S[: self.size]
        return bool((np.diagonal(self._G)[:k] * self.diagonal[S] > ILL_CONDITIONED).any())

    def load(self, support: Iterable[int]) -> bool:
        """Hold exactly these columns; whether they are independent (else it is not usable)."""
        members = list(support)
        if self.fixed:
            members = [*self.fixed, *(p for p in members if p not in self.fixed)]
        S = np.array(members, dtype=np.int64)
        self.size = len(S)
        self.moves += self.size
        self._S[: self.size] = S
        if self.size:
            self.problem.gram.take(S, self._AS[: self.size])
            self._AS[np.arange(self.size), S] += self._penalty
        return self.refresh()

    def copy(self) -> State:
        """Return an independent state of the same columns."""
        other = type(self)(self.problem, len(self._S))
        k = self.size
        for name in ("_S", "_AS", "_V"):
            getattr(other, name)[:k] = getattr(self, name)[:k]
        other._G[:k, :k] = self._G[:k, :k]
        other.C[...] = self.C
        other.D[...] = self.D
        other._set(k, self.objective)
        return other

    def _set(self, size: int, objective: float) -> None:
        self.size, self.objective = size, objective

    def refresh(self) -> bool:
        """Recompute everything from the columns held; whether they are independent."""
        k, S = self.size, self._S[: self.size]
        self.C[...] = self.problem.cross
        self.D[...] = self.diagonal
        self.objective = self.problem.total
        if k == 0:
            return True
        # Until it turns out otherwise: a support that cannot be factored must never look good.
        self.objective = np.inf
        AS, V, G = self._AS[:k], self._V[:k], self._G[:k, :k]
        try:
            factor = np.linalg.cholesky(AS[:, S])
        except np.linalg.LinAlgError:
            return False
        if not (np.diagonal(factor) ** 2 > self.floor[S]).all():
            return False
        inverse = np.linalg.inv(factor)
        np.matmul(inverse.T, inverse, out=G)
        if not (np.diagonal(G) * self.floor[S] < 1.0).all():
            return False
        B_S = self.problem.cross[:, S].T
        np.matmul(G, B_S, out=V)
        self.C -= V.T @ AS
        self.D -= np.einsum("ij,ij->j", G @ AS, AS)
        self.D[S] = 0.0
        self.objective = self.problem.total - float(np.einsum("ij,ij->", V, B_S))
        return True

    def add(self, p: int) -> None:
        """Add column p, which must be independent of those held."""
        k = self.size
        self.moves += 1
        self._AS[k] = self.problem.gram.column(p)
        self._AS[k, p] += self._penalty
        self._append_column(p)

    def _append_column(self, p: int) -> None:
        """Take in column p, whose part of A stands in row `size` of AS."""
        k, AS = self.size, self._AS
        D_p, C_p = float(self.D[p]), self.C[:, p].copy()
        T_p = self._G[:k, :k] @ AS[:k, p]
        residual = AS[k] - T_p @ AS[:k]
        self.C -= np.outer(C_p / D_p, residual)
        self.D -= residual**2 / D_p
        self.D[p] = 0.0
        self._G[:k, :k] += np.outer(T_p, T_p / D_p)
        self._G[:k, k] = self._G[k, :k] = -T_p / D_p
        self._G[k, k] = 1.0 / D_p
        self._V[:k] -= np.outer(T_p, C_p / D_p)
        self._V[k] = C_p / D_p
        self.objective -= float(C_p @ C_p) / D_p
        self._S[k] = p
        self.size = k + 1

    def drop(self, slot: int) -> None:
        """Drop the member in a slot; the last member takes that slot."""
        last = self.size - 1
        G, V, AS, S = self._G, self._V, self._AS, self._S
        g, v = G[slot, : self.size].copy(), V[slot].copy()
        T_i = g @ AS[: self.size]
        G_ii = float(g[slot])
        self.objective += float(v @ v) / G_ii
        self.C += np.outer(v / G_ii, T_i)
        self.D += T_i**2 / G_ii
        G[: self.size, : self.size] -= np.outer(g, g / G_ii)
        V[: self.size] -= np.outer(g, v / G_ii)
        if slot != last:
            AS[slot], V[slot], S[slot] = AS[last], V[last], S[last]
            G[slot, : self.size] = G[last, : self.size]
            G[: self.size, slot] = G[: self.size, last]
        self.size = last
        self.D[S[:last]] = 0.0

    def swap(self, move: Move) -> None:
        """Drop the member in the move's slot, then add its column."""
        self.moves += 1
        self.swaps += 1
        self.drop(move.slot)
        self.add(move.column)

    def gains(self) -> Floats:
        """How much adding each column lowers the objective; -inf where it depends on those held."""
        square = np.einsum("ij,ij->j", self.C, self.C)
        barred = np.full_like(square, -np.inf)
        return np.divide(square, self.D, out=barred, where=self.D > self.floor)

    def losses(self) -> Floats:
        """How much the objective rises when the member in each slot is dropped."""
        V = self._V[: self.size]
        return np.einsum("ij,ij->i", V, V) / np.diagonal(self._G)[: self.size]

    def best_addition(self) -> Move | None:
        """The addition that lowers the objective most; None if no column is independent."""
        gains = self.gains()
        column = int(np.argmax(gains >= gains.max() - self.tie_tolerance))
        return Move(float(gains[column]), -1, column) if gains[column] >= 0 else None

    def best_drop(self) -> int:
        """The slot whose member costs least to drop; of ties that with the lowest column."""
        losses = self.losses()
        losses[: len(self.fixed)] = np.inf
        slots = np.flatnonzero(losses <= losses.min() + self.tie_tolerance)
        return int(slots[np.argmin(self._S[slots])])

    def best_swap(self) -> Move | None:
        """The swap that lowers the objective most; None if none does."""
        if self.size <= len(self.fixed):
            return None
        S = self._S[: self.size]
        losses = self.losses()
        columns, gains = self._viable(losses)
        if len(columns) > 2 * FIRST_PRICED:
            top = np.argpartition(gains, -FIRST_PRICED)[-FIRST_PRICED:]
            so_far = self._price(columns[top], losses).max()
            columns = columns[gains > max(so_far, 0.0) - self.tie_tolerance]
        if len(columns) == 0:
            return None
        gain = self._price(columns, losses)
        best = float(gain.max())
        if not best > self.tie_tolerance:
            return None
        at = int(np.argmax(gain.max(axis=0) >= best - self.tie_tolerance))
        slots = np.flatnonzero(gain[:, at] >= best - self.tie_tolerance)
        slot = int(slots[np.argmin(S[slots])])
        return Move(float(gain[slot, at]), slot, int(columns[at]))

    def _viable(self, losses: Floats) -> tuple[Indices, Floats]:
        """Columns outside that may gain by a swap, by the two bounds, and the first bound."""
        free = self.D > self.floor
        gains = np.maximum(self.gains(), 0.0)
        stand_in = np.divide(self.diagonal, self.D, out=np.ones_like(self.D), where=free)
        reach = gains * (4.0 * np.maximum(stand_in, 1.0) - 2.0)
        # Columns that depend on those held may still replace the member they depend on.
        gains[~free & (self.diagonal > 0)] = np.inf
        viable = (reach > losses[len(self.fixed) :].min()) | np.isinf(gains)
        viable[self._S[: self.size]] = False
        columns = np.flatnonzero(viable)
        return columns, gains[columns]

    def swap_gains(self) -> Floats:
        """How much taking each column in for some member lowers the objective.

        The member is the best one to let go. Below zero where no swap gains; -inf for members, for
        columns that cannot be chosen, and where a bound shows that no swap can gain.
        """
        out = np.full(len(self.D), -np.inf)
        if self.size > len(self.fixed):
            losses = self.losses()
            columns, _ = self._viable(losses)
            for start in range(0, len(columns), PRICED_AT_ONCE):
                part = columns[start : start + PRICED_AT_ONCE]
                out[part] = self._price(part, losses).max(axis=0)
        return out

    def descend(
        self,
        zobrist_keys: Marks,
        known: Marks,
        limit: int,
        stop: Callable[[], bool] = lambda: False,
    ) -> Outcome:
        """Take the steepest swap until none lowers the objective.

        Parameters
        ----------
        zobrist_keys : ndarray of uint64
            A random number for each column; those of a support add up to its key.
        known : ndarray of uint64
            Keys of ends that are known: no need to arrive there.
        limit : int
            Pause after this many swaps.
        stop : callable
            Asked after each swap that needed a pass over the table; pause if it says so.

        Returns
        -------
        Outcome
            STALLED means that rounding promised a gain which the swap did not bring.
        """
        ends = set(known.tolist())
        for _ in range(limit):
            if int(zobrist_keys[self._S[: self.size]].sum()) in ends:
                return Outcome.KNOWN
            move = self.best_swap()
            if move is None:
                return Outcome.ENDED
            before, at_hand = self.objective, self.problem.gram.holds(move.column)
            self.swap(move)
            if not self.objective < before:
                return Outcome.STALLED
            if not at_hand and stop():
                return Outcome.PAUSED
        return Outcome.PAUSED

    def _price(self, columns: Indices, losses: Floats) -> Floats:
        """Fall of the objective (k × m) for every member out and each of `columns` in."""
        k = self.size
        G = self._G[:k, :k]
        T = G @ self._AS[:k, columns]
        C, D, floor = self.C[:, columns], self.D[columns], self.floor[columns]
        gain = price_swaps(np.diagonal(G), self._V[:k], T, C, D, floor, losses)
        gain[: len(self.fixed)] = -np.inf
        return gain


def price_swaps(
    G_ii: Floats, V: Floats, T: Floats, C: Floats, D: Floats, floor: Floats, losses: Floats
) -> Floats:
    """Return the fall of the objective (k × m) for each member out and each of m columns in.

    Parameters
    ----------
    G_ii : ndarray of shape (k,)
        Diagonal of G.
    V : ndarray of shape (k, c)
    T : ndarray of shape (k, m)
    C : ndarray of shape (c, m)
    D, floor : ndarray of shape (m,)
        What is left of each column beside the members, and what is too little of it.
    losses : ndarray of shape (k,)
        What dropping each member costs.
    """
    each = G_ii[:, None]
    ratio = T / each
    gain = ratio * (losses[:, None] * each)
    gain += 2.0 * (V @ C)
    gain *= ratio
    gain += np.einsum("ij,ij->j", C, C)
    ratio *= T
    ratio += D
    independent = ratio > floor
    np.divide(gain, ratio, out=gain, where=independent)
    gain -= losses[:, None]
    gain[~independent] = -np.inf
    return gain
