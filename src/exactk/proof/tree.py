"""What a proof explores: parts of the space of all sets, each with a bound of its own."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from exactk.problem import Problem

__all__ = ["BoundTree", "Explored", "Found", "Part", "Stop", "Tree"]

# Set to 1 by whoever wants an exploration to end; compiled code looks at it, too.
Stop = npt.NDArray[np.int64]


class Found(NamedTuple):
    """Columns of the problem, sorted, and their objective."""

    columns: tuple[int, ...]
    objective: float


@dataclass(frozen=True, eq=False)
class Part:
    """Some of the sets: none of them has an objective below `bound`.

    `state` is known to the tree that made the part.
    """

    bound: float
    state: object = field(repr=False)


@dataclass(eq=False)
class Explored:
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

    found: list[Found] = field(default_factory=list)
    left: list[Part] = field(default_factory=list)
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

    def root(self) -> list[Part]:
        """Return parts that together hold all sets."""
        ...

    def rest(self) -> None:
        """Let go of what can be made anew when there is more to explore."""
        ...

    def explore(
        self, part: Part, ceiling: float, n_best: int, stop: Stop, *, quick: bool
    ) -> Explored:
        """Look for sets with an objective below the ceiling in a part, for a while.

        Parameters
        ----------
        part : Part
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
    """A bound, and no way to raise it: there are too many sets to look at.

    Parameters
    ----------
    problem : Problem
    bound : float
    """

    threads = 1
    assumptions: tuple[str, ...] = ()

    def __init__(self, problem: Problem, bound: float) -> None:
        self.tolerance = 1e-9 * problem.total
        self._bound = bound

    def rest(self) -> None:
        """Hold nothing."""

    def root(self) -> list[Part]:
        """Return all sets as one part."""
        return [Part(self._bound, None)]

    def explore(
        self, part: Part, ceiling: float, n_best: int, stop: Stop, *, quick: bool
    ) -> Explored:
        """Leave it at that."""
        return Explored(is_sure=False)
