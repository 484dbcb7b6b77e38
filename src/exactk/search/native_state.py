"""The same moves in C, where the library could be built; see `native/search.c`."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from exactk.native.loader import built_library, open_library
from exactk.problem.problem import Problem
from exactk.search.state import Marks, Move, Outcome, State

__all__ = [
    "NativeState",
    "has_only_column_rules",
    "library",
    "library_path",
    "make_state",
]


_POINTER = ctypes.c_void_p
# Columns priced together, as in `native/search.c`.
LANES = 64
# What `exactk_descend` returns when the column to come in must be fetched first.
NEEDS_COLUMN = 4
# Above this many products a refresh is faster by matrix multiplication.
BLAS_PAYS = 300_000_000


class _Fields(ctypes.Structure):
    """Mirror of the struct in `native/search.c`."""

    _fields_ = (
        *((name, ctypes.c_int64) for name in ("d", "c", "capacity", "size")),
        *((name, ctypes.c_double) for name in ("tie_tolerance", "total", "objective")),
        *((name, _POINTER) for name in ("diagonal", "floor", "cross", "S", "AS", "G", "V", "C")),
        *((name, _POINTER) for name in ("D", "row", "bound", "small", "lanes", "square")),
        ("gain", ctypes.c_double),
        ("slot", ctypes.c_int64),
        ("column", ctypes.c_int64),
        ("penalty", ctypes.c_double),
        *((name, _POINTER) for name in ("columns", "zobrist_keys", "known")),
        ("n_known", ctypes.c_int64),
        ("swaps", ctypes.c_int64),
        ("fixed", ctypes.c_int64),
    )


def library_path() -> Path:
    """Where the build puts the compiled moves."""
    return built_library("search")


@cache
def library() -> Any:
    """The compiled moves, or None if they cannot be used; then NumPy's give the same answers."""
    # PyDLL keeps the interpreter's lock: another thread cannot free a column under a move.
    loaded = open_library(
        library_path(), "exactk_layout", ctypes.sizeof(_Fields), loader=ctypes.PyDLL
    )
    if loaded is None:
        return None
    loaded.exactk_border.argtypes = loaded.exactk_drop.argtypes = (_POINTER, ctypes.c_int64)
    loaded.exactk_border.restype = loaded.exactk_drop.restype = None
    loaded.exactk_descend.argtypes = (_POINTER, ctypes.c_int64)
    loaded.exactk_descend.restype = ctypes.c_int
    for name in ("exactk_best_addition", "exactk_best_swap", "exactk_refresh"):
        getattr(loaded, name).argtypes = (_POINTER,)
        getattr(loaded, name).restype = ctypes.c_int
    return loaded


class NativeState(State):
    """A `State` whose moves run in C."""

    def __init__(self, problem: Problem, capacity: int) -> None:
        super().__init__(problem, capacity)
        self._library = library()
        d, c = problem.n_features, problem.n_outputs
        self._work = {
            "row": np.empty(d), "bound": np.empty(d), "small": np.empty(2 * capacity + c),
            "lanes": np.empty((2 * capacity + c) * LANES), "square": np.empty((capacity, capacity)),
        }  # fmt: skip
        fields = _Fields(
            d=d, c=c, capacity=capacity, size=0,
            tie_tolerance=self.tie_tolerance, total=problem.total, objective=self.objective,
            penalty=problem.penalty,
        )  # fmt: skip
        arrays = {
            "diagonal": self.diagonal, "floor": self.floor, "cross": problem.cross, "S": self._S,
            "AS": self._AS, "G": self._G, "V": self._V, "C": self.C, "D": self.D,
            **self._work,
        }  # fmt: skip
        for name, array in arrays.items():
            setattr(fields, name, array.ctypes.data)
        self._fields = fields
        self._address = ctypes.addressof(fields)
        fields.fixed = len(self.fixed)
        super()._hold_fixed()

    def _hold_fixed(self) -> None:
        """Wait for the arrays that the compiled moves need."""

    def _set(self, size: int, objective: float) -> None:
        super()._set(size, objective)
        self._fields.size, self._fields.objective = size, objective

    def refresh(self) -> bool:  # noqa: D102
        if self.size**2 * self.problem.n_features > BLAS_PAYS:
            independent = super().refresh()
            self._set(self.size, self.objective)
            return independent
        self._fields.size = self.size
        independent = bool(self._library.exactk_refresh(self._address))
        self.objective = self._fields.objective
        return independent

    def _append_column(self, p: int) -> None:
        self._library.exactk_border(self._address, p)
        self.size, self.objective = self.size + 1, self._fields.objective

    def drop(self, slot: int) -> None:  # noqa: D102
        self._library.exactk_drop(self._address, slot)
        self.size, self.objective = self.size - 1, self._fields.objective

    def best_addition(self) -> Move | None:  # noqa: D102
        if not self._library.exactk_best_addition(self._address):
            return None
        return Move(self._fields.gain, -1, self._fields.column)

    def best_swap(self) -> Move | None:  # noqa: D102
        if not self._library.exactk_best_swap(self._address):
            return None
        return Move(self._fields.gain, self._fields.slot, self._fields.column)

    def descend(  # noqa: D102
        self,
        zobrist_keys: Marks,
        known: Marks,
        limit: int,
        stop: Callable[[], bool] = lambda: False,
    ) -> Outcome:
        fields = self._fields
        fields.zobrist_keys, fields.known = zobrist_keys.ctypes.data, known.ctypes.data
        fields.n_known = len(known)
        while limit > 0:
            fields.columns = self.problem.gram.addresses().ctypes.data
            outcome = self._library.exactk_descend(self._address, limit)
            self.objective = fields.objective
            self.moves += 2 * fields.swaps
            self.swaps += fields.swaps
            limit -= fields.swaps + 1
            if outcome != NEEDS_COLUMN:
                return Outcome(outcome)
            before = self.objective
            self.swap(Move(fields.gain, fields.slot, fields.column))
            if not self.objective < before:
                return Outcome.STALLED
            if stop():
                return Outcome.PAUSED
        return Outcome.PAUSED


def has_only_column_rules(problem: Problem) -> bool:
    """Whether a state can keep the problem's rules: columns in and out, and no more.

    Those that must be in must not be constant, as they may be in a fold, nor depend on each
    other; `exactk.search.unit_search` serves all that a state does not.
    """
    rules = problem.rules
    if rules is None or not (rules.include or not rules.is_simple):
        return True
    if not rules.is_simple or not np.isin(rules.include, problem.usable).all():
        return False
    state = State(replace(problem, rules=None), len(rules.include))
    return state.load(rules.include)


def make_state(problem: Problem, capacity: int) -> State:
    """Return a state whose moves are compiled if they can be."""
    return State(problem, capacity) if library() is None else NativeState(problem, capacity)
