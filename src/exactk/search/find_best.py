"""The whole search: greedy, swaps and rounds, by columns or by units, in memory or in passes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from exactk.problem.problem import Problem
from exactk.result import Answer, Status
from exactk.search.local_search import LocalSearch
from exactk.search.native_state import has_only_column_rules, make_state
from exactk.search.path import PathSearch, make_monotone
from exactk.search.unit_search import UnitSearch, unit_path
from exactk.search.wide_search import WidePathSearch, WideSearch
from exactk.search.working_set import GreedyPrefetch, working_set
from exactk.utils.monitor import Monitor

__all__ = ["best_path", "best_support", "good_supports"]


def best_support(
    problem: Problem,
    k: int,
    effort: float,
    rng: np.random.Generator,
    monitor: Monitor,
    starts: Sequence[Sequence[int]] = (),
) -> Answer:
    """Search for the best k columns that keep the problem's rules, if it has any.

    Parameters
    ----------
    problem : Problem
    k : int
    effort : float
        0 is greedy and swaps alone.
    rng : Generator
    monitor : Monitor
    starts : sequence of list of int
        Supports to start from besides the greedy one.

    Returns
    -------
    Answer
    """
    if not has_only_column_rules(problem):
        units = UnitSearch(problem, k, rng, monitor)
        status = units.run(starts, effort)
        return Answer(units.support, status, units.swaps + len(units.best), tuple(units.trace))
    state, working = make_state(problem, k), working_set(problem, k)
    found = GreedyPrefetch(problem, k).grow(state, k)
    greedy = state.support
    if not found:
        return Answer(greedy, Status.RANK_DEFICIENT, len(greedy), ordered=True)
    if _is_trivial(problem, k):
        return Answer(greedy, Status.OPTIMAL, k, (state.objective,), ordered=True)
    search: LocalSearch | WideSearch
    if working is None:
        search = LocalSearch(state, k, rng, monitor)
    else:
        search = WideSearch(state, k, working, rng, monitor)
    status = search.run([greedy, *starts], effort)
    unchanged = search.best == tuple(sorted(greedy))
    best = greedy if unchanged else search.best
    return Answer(best, status, search.swaps + k, tuple(search.trace), ordered=unchanged)


def good_supports(
    problem: Problem,
    k: int,
    effort: float,
    rng: np.random.Generator,
    monitor: Monitor,
    starts: Sequence[Sequence[int]] = (),
) -> list[list[int]]:
    """Return the best supports that a search meets, the best first: starts for another one.

    Parameters
    ----------
    problem, k, effort, rng, monitor, starts
        As in `best_support`.

    Raises
    ------
    KeyboardInterrupt
        The user has stopped it: the other search is to end, too.
    """
    state = (
        make_state(problem, k)
        if has_only_column_rules(problem) and working_set(problem, k) is None
        else None
    )
    if state is None or not GreedyPrefetch(problem, k).grow(state, k) or _is_trivial(problem, k):
        answer = best_support(problem, k, effort, rng, monitor, starts)
        if answer.status == Status.INTERRUPTED:
            raise KeyboardInterrupt
        return [list(answer.support)]
    search = LocalSearch(state, k, rng, monitor)
    if search.run([state.support, *starts], effort) == Status.INTERRUPTED:
        raise KeyboardInterrupt
    return [list(key) for key in sorted(search.elite, key=lambda key: (search.elite[key], key))]


def _n_fixed(problem: Problem) -> int:
    return 0 if problem.rules is None else len(problem.rules.include)


def _is_trivial(problem: Problem, k: int) -> bool:
    """Whether greedy selection is the best there is: all must be in, or all but one column."""
    return k - _n_fixed(problem) in (0, 1) or k == len(problem.candidates)


def best_path(
    problem: Problem, k_max: int, effort: float, rng: np.random.Generator, monitor: Monitor
) -> Iterator[Answer | None]:
    """Search all sizes up to k_max together, then give them in order.

    Parameters
    ----------
    problem : Problem
    k_max : int
    effort : float
    rng : Generator
    monitor : Monitor

    Yields
    ------
    Answer or None
        None for a size at which no set keeps the rules.
    """
    if not has_only_column_rules(problem):
        yield from unit_path(problem, k_max, effort, rng, monitor)
        return
    state, working = make_state(problem, max(k_max, _n_fixed(problem))), working_set(problem, k_max)
    foresight, prefixes = GreedyPrefetch(problem, k_max), []
    if state.size > k_max:
        yield from [None] * k_max
        return
    if state.size:
        prefixes.append(problem.objective(state.support))
    while state.size < k_max and foresight.grow(state, state.size + 1):
        exact = (
            state.objective if not state.is_ill_conditioned else problem.objective(state.support)
        )
        prefixes.append(exact)
    first = state.size - len(prefixes) + 1
    greedy, rank = state.support, state.size
    sizes: PathSearch | WidePathSearch
    if working is None:
        sizes = PathSearch(state, greedy, prefixes, rng, monitor)
    else:
        sizes = WidePathSearch(state, working, greedy, prefixes, rng, monitor)
    ended = Status.CONVERGED
    try:
        sizes.run(effort)
    except KeyboardInterrupt:
        ended = Status.INTERRUPTED
    if ended == Status.CONVERGED and monitor.expired:
        ended = Status.TIME_LIMIT
    supports, traces = make_monotone(problem, state, sizes.bests), sizes.traces
    for k in range(1, k_max + 1):
        if k < first:
            yield None
        elif k > rank:
            yield Answer(supports[-1], Status.RANK_DEFICIENT, rank)
        else:
            status = Status.OPTIMAL if _is_trivial(problem, k) else ended
            trace = tuple(traces[k - first])
            yield Answer(supports[k - first], status, sizes.swaps + k, trace)
