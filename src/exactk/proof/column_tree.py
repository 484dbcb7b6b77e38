"""The tree over single columns, compiled."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import addressof
from dataclasses import dataclass
from functools import cache
from math import inf
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from exactk.native.loader import built_library, open_library
from exactk.problem.problem import Problem
from exactk.proof.best_first import FoundSet, Node, NodeResult, Stop
from exactk.proof.bounds import Relaxed
from exactk.search.descent import Descent
from exactk.search.native_state import make_state
from exactk.search.state import TIE
from exactk.types import Floats, Indices

__all__ = [
    "CONDITIONED",
    "ColumnProblem",
    "ColumnTree",
    "Task",
    "library",
    "library_path",
    "make_column_problem",
]


# Below this least eigenvalue of a Gram matrix with unit diagonal rounding may decide.
CONDITIONED = 1e-7


@dataclass(frozen=True, eq=False)
class ColumnProblem:
    """The columns that may be chosen, beside those that must be in.

    Attributes
    ----------
    problem : Problem
    inside : tuple of int
        Columns that must be in.
    columns : ndarray of intp of shape (d,)
        Columns that may be.
    m : int
        How many of these are to be chosen.
    C : ndarray of shape (d, c)
        What is left of their products with the target, for columns of unit size and in as few
        outputs as will do.
    root : ndarray of shape (d,)
        One over the size of what is left of each column.
    held : ndarray of shape (i, n_features)
        ``heldᵀ held`` is the part of A that those inside account for.
    explained : float
        What those inside explain.
    grown : float
        How many times larger rounding of A is in what is left of a column, as a share of it.
    """

    problem: Problem
    inside: tuple[int, ...]
    columns: Indices
    m: int
    C: Floats
    root: Floats
    held: Floats
    explained: float
    grown: float = 1.0

    @property
    def total(self) -> float:
        """What those inside do not explain."""
        return self.problem.total - self.explained

    def gram(self, which: Indices) -> Floats:
        """Return rows of the Gram matrix with unit diagonal, for positions in `columns`."""
        p = self.columns[which]
        rows = self.problem.gram_rows(p)[:, self.columns]
        if len(self.held):
            rows -= self.held[:, p].T @ self.held[:, self.columns]
        rows *= self.root
        rows *= self.root[which, None]
        return rows

    def block(self, which: Indices) -> Floats:
        """Return the Gram matrix of some columns."""
        if len(self.held) or len(which) < len(self.columns):
            rows = self.gram(which)[:, which]
        else:
            rows = self.problem.gram.block(self.columns)
            rows *= np.outer(self.root, self.root)
        out: Floats = 0.5 * (rows + rows.T)
        np.fill_diagonal(out, 1.0)
        return out

    def least_eigenvalue(self, which: Indices) -> float:
        """Return that of the Gram matrix of some columns and those inside, all of unit size."""
        together = np.append(np.array(self.inside, dtype=np.intp), self.columns[which])
        A = self.problem.gram_rows(together)[:, together]
        root = 1.0 / np.sqrt(np.diagonal(A))
        return float(np.linalg.eigvalsh(A * np.outer(root, root))[0])


def make_column_problem(
    problem: Problem, k: int, needed: Sequence[int] = ()
) -> ColumnProblem | None:
    """Return the setting of a problem whose rules are columns in and out at most.

    None where some column is made up by those that must be in, nearly: then rounding may decide.

    Parameters
    ----------
    problem : Problem
    k : int
    needed : sequence of int
        Columns that every set of interest has, besides those that the rules want in.
    """
    wanted = () if problem.rules is None else problem.rules.include
    inside = tuple(int(p) for p in (*wanted, *needed))
    columns = np.setdiff1d(problem.candidates, inside)
    B, left = problem.cross, problem.diagonal[columns].copy()
    held, explained, grown = np.empty((0, problem.n_features)), 0.0, 1.0
    if inside:
        AS = problem.gram_rows(inside)
        factor = np.linalg.cholesky(AS[:, list(inside)])
        held = np.linalg.solve(factor, AS)
        solved = np.linalg.solve(factor, B[:, list(inside)].T)
        explained = float((solved**2).sum())
        B = B - solved.T @ held
        left -= (held[:, columns] ** 2).sum(axis=0)
        if not (left > CONDITIONED * problem.diagonal[columns]).all():
            return None
        # An error of A enters with the coefficients of those inside on either side.
        size = np.sqrt(np.append(np.diagonal(AS[:, list(inside)]), problem.diagonal[columns]))
        V = np.abs(np.linalg.solve(factor.T, held[:, columns])) * size[: len(inside), None]
        grown = float(((size[len(inside) :] + V.sum(axis=0)) ** 2 / left).max(initial=1.0))
    root = 1.0 / np.sqrt(left)
    C = _fewest_outputs(B[:, columns].T * root[:, None])
    return ColumnProblem(problem, inside, columns, k - len(inside), C, root, held, explained, grown)


def _fewest_outputs(C: Floats) -> Floats:
    """The same products in as few outputs as do.

    Only CCᵀ counts, and one-hot classes have an output too many.
    """
    left, sizes, _ = np.linalg.svd(C, full_matrices=False)
    keep = sizes > max(C.shape) * float(np.finfo(np.float64).eps) * sizes[0]
    return np.ascontiguousarray(left[:, keep] * sizes[keep]) if keep.any() else C[:, :1] * 0.0


_POINTER, _WHOLE, _REAL = ctypes.c_void_p, ctypes.c_int64, ctypes.c_double


class Task(ctypes.Structure):
    """Mirror of the struct in `native/proof.c`."""

    _fields_ = (
        *((name, _WHOLE) for name in ("d", "c", "k", "stride")),
        *((name, _POINTER) for name in ("A", "B", "work", "stop")),
        *((name, _REAL) for name in ("margin", "threshold")),
        *((name, _WHOLE) for name in ("budget", "n_in", "n_free")),
        *((name, _POINTER) for name in ("inside", "free", "delta", "weight")),
        *((name, _WHOLE) for name in ("n_best", "n_found")),
        *((name, _POINTER) for name in ("found_value", "found_sets")),
        ("n_open", _WHOLE),
        *((name, _POINTER) for name in ("open_bound", "open_counts", "open_columns")),
        *((name, _POINTER) for name in ("open_delta", "open_weight")),
        *((name, _WHOLE) for name in ("nodes", "spent")),
        ("bound_statistics", _POINTER),
        ("bounds", _WHOLE),
        ("doubt", _REAL),
        *((name, _WHOLE) for name in ("n_doubts", "most_doubts", "overflow")),
        ("doubts", _POINTER),
    )


def library_path() -> Path:
    """Where the build puts the compiled tree."""
    return built_library("proof")


@cache
def library() -> Any:
    """The compiled tree, or None if it cannot be used; then `UnitTree` gives the same answers."""
    # CDLL lets other threads run meanwhile: all that a call touches is its own or constant.
    loaded = open_library(library_path(), "exactk_proof_layout", ctypes.sizeof(Task))
    if loaded is None:
        return None
    loaded.exactk_proof_room.argtypes = (_WHOLE,) * 5
    loaded.exactk_proof_room.restype = _WHOLE
    loaded.exactk_proof_statistics_size.restype = _WHOLE
    loaded.exactk_prove.argtypes = (_POINTER,)
    loaded.exactk_prove.restype = None
    return loaded


Whole = npt.NDArray[np.int64]

# Sets that a call can hand over to be priced from the rows, before it gives up the claim to have
# seen all.
MOST_DOUBTS = 4096
# Products after which a call comes back: a few milliseconds, and a tenth of a second.
QUICK_BUDGET, BUDGET = 20_000_000, 400_000_000


class ColumnNode(NamedTuple):
    """A part of the tree: columns that are in, columns that may be, and what bounds them."""

    inside: Whole
    free: Whole
    delta: Floats
    weights: Floats


class ColumnTree:
    """Sets of m columns, by branch and bound in C.

    Parameters
    ----------
    column_problem : ColumnProblem
    relaxed : Relaxed
        The columns that are left, with diagonal and weights for their bounds.
    E : ndarray of shape (r, r)
        The Gram matrix of these columns, with unit diagonal.
    tolerance : float
    margin : float
        How much E − Δ is kept above singular.
    doubt : float
        Above zero for columns that may depend on each other: then parts have no bounds, m is at
        most three, every set is looked at, and those in which less than this is left of a column
        beside the others are priced from the rows.
    """

    assumptions: tuple[str, ...] = ()

    def __init__(
        self,
        column_problem: ColumnProblem,
        relaxed: Relaxed,
        E: Floats,
        *,
        tolerance: float,
        margin: float = 0.0,
        doubt: float = 0.0,
    ) -> None:
        if doubt > 0 and column_problem.m > 3:
            raise ValueError(
                f"without bounds there are too many sets of {column_problem.m} columns"
            )
        self.column_problem, self.relaxed, self.tolerance = column_problem, relaxed, tolerance
        self.margin, self.doubt = margin, doubt
        d, c = len(E), column_problem.C.shape[1]
        self._stride = (d + 7) // 8 * 8
        self._A, self._B = np.zeros((d, self._stride)), np.zeros((c, self._stride))
        self._A[:, :d] = E
        self._B[:, :d] = column_problem.C[relaxed.columns].T
        self._workspaces: list[_Workspace] = []
        self._lock = Lock()
        room = 8 * library().exactk_proof_room(
            d, c, column_problem.m, self._stride, int(doubt == 0)
        )
        self.threads = max(1, column_problem.problem.memory_limit // room)
        self._guessing = Lock()
        # Whether sets in doubt are priced by more than the Gram matrix.
        self.has_rows = column_problem.problem.reads_rows(
            column_problem.m + len(column_problem.inside)
        )
        self._state = make_state(
            column_problem.problem, column_problem.m + len(column_problem.inside)
        )
        self._descent = Descent(column_problem.problem)

    def root(self) -> list[Node]:
        """Return what the relaxation has left, as one part."""
        relaxed = self.relaxed
        bound = self.column_problem.total - relaxed.explained
        everything = np.arange(len(relaxed.columns), dtype=np.int64)
        state = ColumnNode(everything[:0], everything, relaxed.delta, relaxed.weights)
        return [Node(max(bound, 0.0), state)]

    def explore(
        self, node: Node, ceiling: float, n_best: int, stop: Stop, *, quick: bool
    ) -> NodeResult:
        """Look at a part in C; other threads may do so at the same time."""
        with self._lock:
            workspace = self._workspaces.pop() if self._workspaces else _Workspace(self)
        try:
            node_result = workspace.explore(
                node, self._needed(ceiling, n_best), n_best, stop, quick=quick
            )
        finally:
            with self._lock:
                self._workspaces.append(workspace)
        if node_result.left and not stop[0]:
            node_result.found += self._guess(
                min(node_result.left, key=lambda left: left.bound), ceiling
            )
        return node_result

    def release(self) -> None:
        """Let go of work space."""
        self._workspaces.clear()

    def _guess(self, node: Node, ceiling: float) -> list[FoundSet]:
        """The columns of most weight in a part, and where swaps lead from there, if that is new."""
        branch, column_problem = node.state, self.column_problem
        assert isinstance(branch, ColumnNode)
        heaviest = np.argsort(-branch.weights, kind="stable")[
            : column_problem.m - len(branch.inside)
        ]
        columns = list(self.columns_of(np.append(branch.inside, branch.free[heaviest])))
        # Columns of the table may be fetched on the way, which one thread does at a time.
        with self._guessing:
            if not self._descent.mark_visited(columns) or not self._state.load(columns):
                return []
            self._descent.run(self._state, ceiling)
            if not self._state.objective < ceiling:
                return []
            return [FoundSet(tuple(sorted(self._state.support)), self._state.objective)]

    def _needed(self, ceiling: float, n_best: int) -> float:
        """What a set must explain to be of interest.

        One that is better by a rounding is none; but a list takes in those that may belong there,
        for all that is found is priced once more.
        """
        if ceiling == inf:
            return -inf
        exact = n_best == 1 and self.doubt == 0
        slack = TIE * self.column_problem.problem.total if exact else -self.tolerance
        return self.column_problem.total - ceiling + slack

    def columns_of(self, members: Whole) -> tuple[int, ...]:
        """Return the columns of the problem, those that must be in among them."""
        chosen = self.column_problem.columns[self.relaxed.columns[members]]
        return tuple(sorted([*self.column_problem.inside, *chosen.tolist()]))


class _Workspace:
    """Work space of one thread, and what it has learnt of which bounds pay."""

    def __init__(self, tree: ColumnTree) -> None:
        self.tree = tree
        (d, stride), c, m = tree._A.shape, len(tree._B), tree.column_problem.m
        bounds = int(tree.doubt == 0)
        self._arrays = {
            "work": np.empty(library().exactk_proof_room(d, c, m, stride, bounds)),
            "open_bound": np.empty(m + 2),
            "open_counts": np.empty((m + 2, 2), dtype=np.int64),
            "open_columns": np.empty((m + 2, m + d), dtype=np.int64),
            "open_delta": np.empty((m + 2, d)),
            "open_weight": np.empty((m + 2, d)),
            "bound_statistics": np.zeros(library().exactk_proof_statistics_size()),
            "doubts": np.empty((0 if bounds else MOST_DOUBTS, m), dtype=np.int64),
        }
        self._task = Task(
            d=d, c=c, k=m, stride=stride, A=tree._A.ctypes.data, B=tree._B.ctypes.data,
            margin=tree.margin, bounds=bounds, doubt=tree.doubt,
            most_doubts=len(self._arrays["doubts"]),
        )  # fmt: skip
        for name, array in self._arrays.items():
            setattr(self._task, name, array.ctypes.data)

    def explore(
        self, node: Node, needed: float, n_best: int, stop: Stop, *, quick: bool
    ) -> NodeResult:
        tree, task = self.tree, self._task
        state = node.state
        assert isinstance(state, ColumnNode)
        values = np.empty(n_best)
        sets = np.empty((n_best, max(tree.column_problem.m, 1)), dtype=np.int64)
        task.n_in, task.n_free = len(state.inside), len(state.free)
        task.inside, task.free = state.inside.ctypes.data, state.free.ctypes.data
        task.delta, task.weight = state.delta.ctypes.data, state.weights.ctypes.data
        task.found_value, task.found_sets = values.ctypes.data, sets.ctypes.data
        task.n_best, task.threshold, task.stop = n_best, needed, stop.ctypes.data
        task.budget = QUICK_BUDGET if quick else BUDGET
        task.n_found = task.n_open = task.n_doubts = task.overflow = task.nodes = task.spent = 0
        library().exactk_prove(addressof(task))
        m, total = tree.column_problem.m, tree.column_problem.total
        found = [
            FoundSet(tree.columns_of(sets[i, :m]), total - float(values[i]))
            for i in range(task.n_found)
        ]
        # Their objective is told by the rows; until then they count as good.
        doubts = self._arrays["doubts"][: task.n_doubts]
        found += [FoundSet(tree.columns_of(members), 0.0) for members in doubts]
        sure = not task.overflow and (not len(doubts) or tree.has_rows)
        return NodeResult(found, self._left(node.bound), task.nodes, is_sure=sure)

    def _left(self, bound: float) -> list[Node]:
        """Return the parts that the call did not come to."""
        m, arrays, parts = self.tree.column_problem.m, self._arrays, []
        for i in range(self._task.n_open):
            n_in, n_free = arrays["open_counts"][i].tolist()
            columns = arrays["open_columns"][i]
            own = self.tree.column_problem.total - float(arrays["open_bound"][i])
            state = ColumnNode(
                columns[:n_in].copy(),
                columns[m : m + n_free].copy(),
                arrays["open_delta"][i, :n_free].copy(),
                arrays["open_weight"][i, :n_free].copy(),
            )
            parts.append(Node(max(bound, own), state))
        return parts
