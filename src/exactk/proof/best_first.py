"""Exploring a tree: the part with the lowest bound first, several at once, until none is left.

The search knows nothing of columns: a `Tree` branches and bounds. It can stop and continue at any
point, and the problem itself computes the objective of every set that a tree finds.
"""

from __future__ import annotations

import heapq
from bisect import insort
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from itertools import count
from math import inf
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from exactk.problem.problem import Problem
from exactk.result import Status
from exactk.utils.monitor import Monitor

__all__ = [
    "PROVEN",
    "BestFirstSearch",
    "BoundTree",
    "FoundSet",
    "Node",
    "NodeResult",
    "Stop",
    "Tree",
    "relative_gap",
]


# Set to 1 by whoever wants an exploration to end; compiled code looks at it, too.
Stop = npt.NDArray[np.int64]


class FoundSet(NamedTuple):
    """Columns of the problem, sorted, and their objective."""

    columns: tuple[int, ...]
    objective: float


@dataclass(frozen=True, eq=False)
class Node:
    """Some of the sets: none of them has an objective below `bound`.

    `state` is known to the tree that made the part.
    """

    bound: float
    state: object = field(repr=False)


@dataclass(eq=False)
class NodeResult:
    """What came of looking at a part.

    Attributes
    ----------
    found : list of Found
        Sets below the ceiling, as the tree prices them; the best `n_best` of the part are among
        them, as far as it was looked at.
    left : list of Part
        What was not looked at.
    nodes : int
        Parts that were bounded or looked through on the way.
    is_sure : bool
        Whether every set that was passed over is known to be no better than the ceiling; where
        columns depend on each other it may not be possible to tell.
    """

    found: list[FoundSet] = field(default_factory=list)
    left: list[Node] = field(default_factory=list)
    nodes: int = 0
    is_sure: bool = True


class Tree(Protocol):
    """All sets of one size that keep the rules, cut into parts.

    Attributes
    ----------
    tolerance : float
        Bounds are right to this much, in units of the objective.
    threads : int
        How many explorations may go on side by side.
    assumptions : tuple of str
        What the bounds rest on besides arithmetic.
    """

    tolerance: float
    threads: int
    assumptions: tuple[str, ...]

    def root(self) -> list[Node]:
        """Return parts that together hold all sets."""
        ...

    def release(self) -> None:
        """Let go of what can be made anew when there is more to explore."""
        ...

    def explore(
        self, node: Node, ceiling: float, n_best: int, stop: Stop, *, quick: bool
    ) -> NodeResult:
        """Look for sets with an objective below the ceiling in a part, for a while.

        Parameters
        ----------
        node : Part
        ceiling : float
            Sets whose objective is not below it are of no interest.
        n_best : int
            How many sets are wanted: those worse than so many that were found here are of no
            interest either.
        stop : ndarray of one int64
            End soon once it is not zero.
        quick : bool
            Whether to come back after a few milliseconds rather than a fraction of a second.
        """
        ...


class BoundTree:
    """A bound that no search improves: there are too many sets to look at.

    Parameters
    ----------
    problem : Problem
    bound : float
    reason : str
        Why there is no search.
    """

    threads = 1
    assumptions: tuple[str, ...] = ()

    def __init__(self, problem: Problem, bound: float, reason: str = "") -> None:
        self.tolerance = 1e-9 * problem.total
        self._bound, self.reason = bound, reason

    def release(self) -> None:
        """Hold nothing."""

    def root(self) -> list[Node]:
        """Return all sets as one part."""
        return [Node(self._bound, None)]

    def explore(
        self, node: Node, ceiling: float, n_best: int, stop: Stop, *, quick: bool
    ) -> NodeResult:
        """Leave it at that."""
        return NodeResult(is_sure=False)


# A set within this share of the best possible is the best, as far as anyone can tell.
PROVEN = 1e-6
# Seconds between looks at the clock while others work.
LOOK_EVERY = 0.05


def relative_gap(lower: float, upper: float) -> float:
    """Return how far `upper` may be above the best possible, as a share of itself.

    Examples
    --------
    >>> relative_gap(9.0, 10.0), relative_gap(0.0, 0.0)
    (0.1, 0.0)
    """
    return max(upper - lower, 0.0) / upper if upper > 0 else 0.0


class BestFirstSearch:
    """The best sets of a tree, and a bound that only rises.

    Parameters
    ----------
    problem : Problem
    tree : Tree
    starts : sequence of tuple of int
        Sets that are known.
    gap : float
        A gap that is small enough; up to `PROVEN` the tree is explored to its end.
    ceiling : float
        Sets with a higher objective are of no interest.
    n_best : int
        How many of the best sets are wanted.

    Attributes
    ----------
    sets : list of Found
        The best found, the best first.
    lower : float
        No set is better than this.
    nodes : int
    is_sure : bool
        Whether nothing was passed over that could not be priced.
    status : Status
    """

    def __init__(
        self,
        problem: Problem,
        tree: Tree,
        starts: Sequence[Sequence[int]] = (),
        *,
        gap: float = 0.0,
        ceiling: float = inf,
        n_best: int = 1,
    ) -> None:
        self.problem, self.tree, self.gap, self.n_best = problem, tree, gap, n_best
        self._ceiling = ceiling
        self.sets: list[FoundSet] = []
        self._known: set[tuple[int, ...]] = set()
        self._take([FoundSet(tuple(sorted(start)), 0.0) for start in starts])
        self.lower, self.nodes, self.is_sure = 0.0, 0, True
        self.status = Status.CONVERGED
        self._numbers = count()
        self._heap: list[tuple[float, int, Node]] = []
        # Parts that were taken out and have not come back: wherever Ctrl-C falls, none is lost.
        self._out: dict[int, Node] = {}
        self._begun = False

    @property
    def upper(self) -> float:
        """Objective of the best set found."""
        return self.sets[0].objective if self.sets else inf

    @property
    def is_closed(self) -> bool:
        """Whether every part was looked at."""
        return self._begun and not self._heap and not self._out and self.is_sure

    @property
    def is_proven(self) -> bool:
        """Whether no set is better than the best found, to a millionth of it or to rounding."""
        slack = max(PROVEN * self.upper, self.tree.tolerance)
        return self.is_closed or (self._begun and self.upper - self.lower <= slack)

    @property
    def ceiling(self) -> float:
        """Objective from which on sets are of no interest."""
        full = len(self.sets) == self.n_best
        return min(self._ceiling, self.sets[-1].objective) if full else self._ceiling

    def run(self, monitor: Monitor, threads: int) -> Status:
        """Explore until nothing is left, the gap is small enough or the time is up.

        It may be called again and goes on where it was.
        """
        try:
            if not self._begun:
                self._push(self.tree.root())
                self._begun = True
            self._push(list(self._out.values()))
            self._out.clear()
            self._note()
            self._first(monitor)
            if self._is_open:
                self._together(monitor, max(1, min(threads, self.tree.threads)))
        except KeyboardInterrupt:
            self.status = Status.INTERRUPTED
            return self.status
        finally:
            self.tree.release()
        if self.is_proven:
            self.status = Status.OPTIMAL
        elif self._is_open and monitor.expired:
            self.status = Status.TIME_LIMIT
        else:
            self.status = Status.CONVERGED
        return self.status

    def add_known(self, sets: Sequence[Sequence[int]] = (), lower: float = 0.0) -> None:
        """Take over what is known from elsewhere: sets, and a bound that no set is below."""
        self._take([FoundSet(tuple(sorted(columns)), 0.0) for columns in sets])
        self._prune()
        self.lower = max(self.lower, min(lower, self.upper))

    @property
    def _is_enough(self) -> bool:
        # A bound from elsewhere may leave nothing open, whatever parts there are.
        if self.n_best == 1 and self.lower >= self.upper:
            return True
        return self.gap > PROVEN and relative_gap(self.lower, self.upper) <= self.gap

    @property
    def _is_open(self) -> bool:
        return bool(self._heap) and not self._is_enough

    def _first(self, monitor: Monitor) -> None:
        """A few short looks: most small problems end here, and threads would not pay."""
        stop = np.zeros(1, dtype=np.int64)
        for _ in range(4):
            if not self._is_open or monitor.expired:
                return
            node = self._pop()
            node_result = self.tree.explore(node, self.ceiling, self.n_best, stop, quick=True)
            self._merge(node, node_result, monitor)

    def _together(self, monitor: Monitor, threads: int) -> None:
        """Explore several parts side by side."""
        stop = np.zeros(1, dtype=np.int64)
        running: dict[Future[NodeResult], Node] = {}
        with ThreadPoolExecutor(threads, thread_name_prefix="exactk-proof") as pool:
            try:
                while (self._is_open and not monitor.expired) or running:
                    if monitor.expired or self._is_enough:
                        stop[0] = 1
                    while not stop[0] and self._heap and len(running) < threads:
                        node = self._pop()
                        job = pool.submit(
                            self.tree.explore, node, self.ceiling, self.n_best, stop,
                            quick=len(self._heap) + len(running) < threads - 1,
                        )  # fmt: skip
                        running[job] = node
                    done, _ = wait(running, LOOK_EVERY, return_when=FIRST_COMPLETED)
                    for job in done:
                        node = running.pop(job)
                        self._merge(node, job.result(), monitor)
            except BaseException:
                # What was under way is waited for; what does not come back stays among the parts.
                stop[0] = 1
                for job, node in running.items():
                    if not job.cancel():
                        self._merge(node, job.result(), monitor)
                raise

    def _pop(self) -> Node:
        node = self._heap[0][2]
        self._out[id(node)] = node
        heapq.heappop(self._heap)
        return node

    def _push(self, parts: Sequence[Node]) -> None:
        for node in parts:
            if node.bound < self.ceiling:
                heapq.heappush(self._heap, (node.bound, next(self._numbers), node))

    def _prune(self) -> None:
        """Let go of parts that hold nothing of interest any more."""
        if any(entry[0] >= self.ceiling for entry in self._heap):
            kept = [entry for entry in self._heap if entry[0] < self.ceiling]
            heapq.heapify(kept)
            self._heap = kept

    def _merge(self, node: Node, node_result: NodeResult, monitor: Monitor) -> None:
        self.nodes += node_result.nodes
        self.is_sure &= node_result.is_sure
        before = self.ceiling
        self._take(node_result.found)
        self._push(node_result.left)
        if self.ceiling < before:
            self._prune()
        # After a Ctrl-C a part may be there twice; it is done with whichever comes back first.
        self._out.pop(id(node), None)
        self._note()
        gap = relative_gap(self.lower, self.upper)
        monitor.report(
            self.nodes, None, self.upper, f"bound {self.lower:.6g}, gap {100 * gap:.2g} %"
        )

    def _note(self) -> None:
        """Raise the bound to that of the part that is worst off."""
        parts = [node.bound for node in self._out.values()]
        if self._heap:
            parts.append(self._heap[0][0])
        if self.is_sure:
            # Parts above the ceiling were let go.
            self.lower = max(self.lower, min([*parts, self.upper, self._ceiling]))

    def _take(self, found: Sequence[FoundSet]) -> None:
        """Keep new sets among the best, with the objective that the problem itself gives them."""
        for columns, _ in found:
            if columns in self._known:
                continue
            objective = self.problem.objective(columns)
            if objective <= self.ceiling or not self.sets:
                # Sorted at once: the last one is the ceiling for the next.
                insort(self.sets, FoundSet(columns, objective), key=lambda one: (one[1], one[0]))
                del self.sets[self.n_best :]
            self._known.add(columns)
