"""Greedy start, steepest swaps with refit, and a search over many seeds: the default method."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import inf
from typing import ClassVar

from exactk.errors import InputError, Setting
from exactk.methods.base import Method, generator, initial_supports
from exactk.params import Anything, Check, Number, Seed
from exactk.problem.problem import Problem
from exactk.result import Answer
from exactk.search.find_best import best_path, best_support
from exactk.search.loss_search import best_by_loss, best_path_by_loss, requires_rows
from exactk.utils.monitor import Monitor

__all__ = ["Exchange"]

# More effort takes days, if it ends at all, and needs a time limit.
MOST_EFFORT = 1e6


class Exchange(Method):
    """Exactly k columns such that no swap of one member lowers the objective, and then better.

    Minimises f(S) = ‖HY‖² − tr(B_Sᵀ A_SS⁻¹ B_S) over supports of k columns. A greedy support is
    improved by the steepest single swap, each followed by a refit, until no swap helps: a
    1-swap-optimal support. All d·k swaps are priced together by two matrix products
    (`exactk.search.state`). Then come rounds from other seeds: a beam of greedy supports, random
    supports, the best one with some members exchanged, dropped and regrown, or crossed with
    another good one. The best is kept; the search ends when a number of moves (columns added and
    dropped) has brought nothing: 20·k² of them, at most 1,500, times `effort`.

    Where the Gram matrix of a wide table does not fit the memory limit, the swaps and rounds take
    place in working sets of some thousand columns (`exactk.search.wide_search`), and what they find
    is held against all columns by passes over the table, until no swap with any column helps.

    Parameters
    ----------
    effort : float or None
        How long to go on without a gain, in multiples of the measured default; 0 is greedy and
        swaps alone, infinity searches until the time limit. None means 1.
    init : array-like of int, or sequence of such, or None
        Supports to start from besides the method's own, for example an earlier result's: a
        search that was stopped goes on from there.
    random_state : int, Generator, RandomState or None
        Seed of the random rounds. None is a fixed seed: the same input gives the same answer.

    Notes
    -----
    Cost: once O(n·d·(d + c)) for the Gram matrix, or O(n·d) for each of a few Gram columns more
    than k; then O(d·(k + c)) for a column added or dropped, and O(d·k·c) for the prices of all
    swaps, most of which two bounds spare. Memory: d² numbers, or d for each Gram column read.

    Guaranteed: exactly k columns; status ``converged`` means that no single swap lowers f; the
    objective is at most that of greedy forward selection. Not guaranteed: the global optimum
    (k = 1 and k = d excepted). All of this holds for wide tables too: the greedy start and the last
    word on swaps are those of all columns. Which columns the random rounds of a wide table see is
    a heuristic, most by what they gain alone or beside the best support.

    Under constraints (`Problem.with_constraints`) swaps are those that keep them. Columns that must
    be in or out cost nothing. Groups, quotas, budgets and limits of correlation are searched by
    whole units, with the block form of the same prices (`exactk.search.unit_pricing`).

    With another loss than the squared error (`Problem.with_loss`) swaps are priced by the quadratic
    model of that loss at the fit, and those with the best prices are fitted; the steepest by the
    loss itself is taken, until none of some dozens lowers it (`exactk.search.loss_search`). That is
    what ``converged`` then means: no swap in that list improves. The search starts from good
    supports by squared loss; `effort` counts rounds in which a part of the best one is dropped and
    grown anew.

    Examples
    --------
    >>> import exactk
    >>> from sklearn.datasets import load_digits
    >>> problem = exactk.Problem.from_arrays(*load_digits(return_X_y=True))
    >>> round(exactk.solve(problem, 5, effort=0).objective, 2)
    1164.92
    >>> round(exactk.solve(problem, 5).objective, 2)
    1158.47
    """

    checks: ClassVar[Mapping[str, Check]] = {
        "effort": Number("[0, inf]", none="1"),
        "init": Anything("a list of k columns, or several such lists, or None"),
        "random_state": Seed(),
    }

    takes_rules: ClassVar[bool] = True
    takes_losses: ClassVar[bool] = True

    def __init__(
        self,
        effort: float | None = None,
        init: object = None,
        random_state: object = None,
    ) -> None:
        self.effort = effort
        self.init = init
        self.random_state = random_state

    def run(self, problem: Problem, k: int, monitor: Monitor) -> Answer:  # noqa: D102
        rng, effort = generator(self.random_state), _check_effort(self.effort, monitor)
        starts = [s.tolist() for s in initial_supports(self.init, problem, k)]
        if requires_rows(problem):
            return best_by_loss(problem, k, effort, rng, monitor, starts)
        return best_support(problem, k, effort, rng, monitor, starts)

    def run_path(self, problem: Problem, k_max: int, monitor: Monitor) -> Iterator[Answer | None]:
        """Every size at once: neighbours in size give each other starts until none gains.

        The best support of size k is compared with that of k − 1 plus its best addition and that
        of k + 1 less its cheapest member, each swapped down, so the objective never rises with k.
        The rounds of random search are shared out among the sizes.
        """
        effort = _check_effort(self.effort, monitor)
        if self.init is not None:
            raise InputError(
                "init has supports of one size, and a path has many sizes", parameter="init",
                hint="leave it out",
            )  # fmt: skip
        search = best_path_by_loss if requires_rows(problem) else best_path
        return search(problem, k_max, effort, generator(self.random_state), monitor)


def _check_effort(effort: float | None, monitor: Monitor) -> float:
    if effort is None:
        return 1.0
    value = float(min(effort, inf))
    if value > MOST_EFFORT and monitor.time_limit is None:
        raise InputError(
            (Setting("effort", value), " never ends by itself"), parameter="effort", value=effort,
            hint=("give ", Setting("time_limit"), " as well"),
        )  # fmt: skip
    return value
