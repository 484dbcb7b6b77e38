"""The searches that a choice of size is made of: a path on all rows, one a fold, a last one."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from exactk.errors import InputError
from exactk.methods import registry
from exactk.methods.base import Method, generator
from exactk.params import Number
from exactk.problem.problem import Problem
from exactk.result import Path, Result, Status
from exactk.solver import solve, solve_path

__all__ = ["FOLD_EFFORT", "Clock", "PathRunner", "read_method"]

# How hard the folds are searched: greedy and swaps alone, for every fold would pay for more.
FOLD_EFFORT = 0.0


def read_method(
    method: str | Method, effort: float | None, seed: object, options: Mapping[str, Any]
) -> tuple[type[Method], dict[str, Any]]:
    """Return the class of a method, and its options with effort and seed where it takes them.

    Parameters
    ----------
    method : str or Method
    effort : float or None
        None says nothing of it.
    seed : object
        Where it is no number, the method gets none.
    options : mapping
        Further ones; a ``random_state`` among them counts before the seed.

    Examples
    --------
    >>> kind, options = read_method("exchange", 0.5, 3, {})
    >>> kind.__name__, options
    ('Exchange', {'effort': 0.5, 'random_state': 3})
    """
    kind = registry.method_class(method) if isinstance(method, str) else type(method)
    if not issubclass(kind, Method):
        raise InputError(f"method must be a name or a method object, not {method!r}")
    read = dict(options)
    if effort is not None:
        read["effort"] = effort
    if isinstance(seed, (int, np.integer)) and "random_state" in kind.option_names():
        read.setdefault("random_state", seed)
    return kind, read


class Clock:
    """What is left of a time limit, shared out among the parts of the work still to do.

    Examples
    --------
    >>> Clock(None).share(3) is None, Clock(60).share(3) <= 20
    (True, True)
    """

    def __init__(self, limit: float | None) -> None:
        Number("(0, inf]", none="no limit")("time_limit", limit)
        self._end = None if limit is None else time.perf_counter() + limit

    @property
    def is_over(self) -> bool:
        """Whether the time is up."""
        return self._end is not None and time.perf_counter() >= self._end

    def share(self, parts: int) -> float | None:
        """Return seconds for the next of so many parts; hardly any when time is up."""
        if self._end is None:
            return None
        return max((self._end - time.perf_counter()) / parts, 1e-9)


class PathRunner:
    """A method with its options; every run of it starts from nothing but its problem.

    Attributes
    ----------
    kind : type
        Class of the method.
    rng : Generator
        Of the split of the rows.
    seed : int or None
        Of every search.
    out_of_time : bool
        Whether any search was ended by its time limit.
    improved : bool
        Whether `refine_at` found better columns than the path had.
    """

    def __init__(
        self,
        method: str | Method,
        effort: float | None,
        random_state: object,
        verbose: int,
        options: dict[str, Any],
    ) -> None:
        self.rng = generator(random_state)
        # A generator would carry something over from one fold to the next; a number does not.
        plain = random_state is None or isinstance(random_state, (int, np.integer))
        self.seed = random_state if plain else int(self.rng.integers(2**31))
        self.kind, options = read_method(method, effort, self.seed, options)
        has_effort = "effort" in self.kind.option_names()
        self.in_folds = {**options, "effort": FOLD_EFFORT} if has_effort else options
        self.method, self.options, self.verbose = method, options, verbose
        self.out_of_time = self.improved = False

    def path(
        self, problem: Problem, k_max: int, seconds: float | None, *, fold: bool = False
    ) -> Path:
        """Return the path of a problem; what is stopped by the user stays stopped."""
        with warnings.catch_warnings():
            # The largest sizes may be more than there are independent columns; only the size
            # that is chosen is worth a warning.
            warnings.filterwarnings("ignore", "only .* are independent", UserWarning)
            path = solve_path(
                problem, k_max, self.method, time_limit=seconds, verbose=self.verbose,
                **(self.in_folds if fold else self.options),
            )  # fmt: skip
        for result in path:
            self._watch(result)
        return path

    def refine_at(self, problem: Problem, path: Path, k: int, seconds: float | None) -> Result:
        """Return the result at k, searched for as long as if k had been asked for."""
        found = next(result for result in path if result.k == k)
        if found.status == Status.RANK_DEFICIENT:
            warnings.warn(found.message, UserWarning, stacklevel=3)
        settled = found.status in (Status.RANK_DEFICIENT, Status.OPTIMAL)
        if found.method != "exchange" or settled:
            return found
        options = {**self.options, "init": found.support}
        if options.get("effort") is None:
            # With a time limit None would be "until then".
            options["effort"] = 1.0
        again = solve(problem, k, self.method, time_limit=seconds, verbose=self.verbose, **options)
        self._watch(again)
        self.improved = again.objective < found.objective
        return again if again.objective <= found.objective else found

    def _watch(self, result: Result) -> None:
        if result.status == Status.INTERRUPTED:
            raise KeyboardInterrupt
        self.out_of_time |= result.status == Status.TIME_LIMIT
