"""One method at several sizes, in one run where that gives the same answers."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from sklearn.base import clone

from exactk.errors import InputError
from exactk.methods import registry
from exactk.methods.base import Method
from exactk.methods.greedy import Greedy
from exactk.papers.filters.base import Filter
from exactk.papers.methods.base import PenaltyMethod
from exactk.problem.problem import Problem
from exactk.result import Answer, Result
from exactk.solver import solve
from exactk.utils.monitor import Monitor

__all__ = ["select_sizes", "shares_sizes"]

# Whose order of columns does not depend on k: k only cuts it.
_CUT = (Filter.run_path, PenaltyMethod.run_path, Greedy.run_path)


def select_sizes(
    problem: Problem,
    sizes: Sequence[int],
    method: str | Method = "exchange",
    *,
    time_limit: float | None = None,
    **options: Any,
) -> list[Result]:
    """Pick k columns for each of several k, as `exactk.solve` does for each of them.

    Methods whose order of columns does not depend on k run once. `exactk.solve_path` differs: it
    grades every size up to the largest, and shares the search of "exchange" out among them.
    Warnings are not shown: the status tells.

    Parameters
    ----------
    problem : Problem
    sizes : sequence of int
        Different sizes, in any order.
    method : str or Method
    time_limit : float or None
        Seconds for each run.
    **options
        Parameters of the method.

    Returns
    -------
    list of Result
        One for each size. Their seconds add up to the time of all runs, without grading; a run for
        several sizes is booked on the first of them. Scores of columns that are not chosen may be
        those of the largest size.

    Examples
    --------
    >>> import exactk
    >>> from sklearn.datasets import load_iris
    >>> problem = exactk.Problem.from_arrays(*load_iris(return_X_y=True))
    >>> [result.support.tolist() for result in select_sizes(problem, [1, 3], "fisher")]
    [[2], [0, 2, 3]]
    """
    wanted = [problem.check_k(k) for k in sizes]
    if not wanted or len(set(wanted)) < len(wanted):
        raise InputError(
            f"sizes must be different sizes, one or more, not {list(sizes)!r}", parameter="sizes"
        )
    chosen: str | Method = method
    if len(wanted) > 1 and shares_sizes(method):
        chosen, options = _one_run(method, options, max(wanted)), {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [solve(problem, k, chosen, time_limit=time_limit, **options) for k in wanted]


def shares_sizes(method: str | Method) -> bool:
    """Whether one run of a method serves every size, because k only cuts an order.

    A method with a path of its own is not trusted to give on it what single runs give: some start
    from the solution of the size before.

    Examples
    --------
    >>> shares_sizes("relieff"), shares_sizes("exchange")
    (True, False)
    """
    cls = registry.method_class(method) if isinstance(method, str) else type(method)
    return any(cls.run_path is path for path in _CUT)


class _SharedRun(Method):
    """Runs a method once for all sizes, and hands out the answer of the size that is asked for."""

    def __init__(self, inner: Method, most: int) -> None:
        self.inner = inner
        self.most = most
        self._answers: list[Answer] = []

    def __sklearn_clone__(self) -> _SharedRun:
        """Return itself, with the answers it has: `solve` works on a clone."""
        return self

    def check(self) -> None:
        self.inner.check()

    def check_problem(self, problem: Problem) -> None:
        self.inner.check_problem(problem)

    def run(self, problem: Problem, k: int, monitor: Monitor) -> Answer:
        if not self._answers:
            self._answers = [
                answer
                for answer in self.inner.run_path(problem, self.most, monitor)
                if answer is not None
            ]
        return self._answers[k - 1]


def _one_run(method: str | Method, options: dict[str, Any], most: int) -> Method:
    """Return a method of the same name and needs."""
    if isinstance(method, str):
        name, inner = method, registry.create(method, **options)
    else:
        name = type(method).__name__
        registry.check_options(name.lower(), method.option_names(), options)
        inner = clone(method).set_params(**options)
    needs = {word: getattr(inner, word) for word in ("needs_rows", "needs_classes")}
    # solve goes by the name of the class, in results and in errors.
    one_run: Method = type(name, (_SharedRun,), needs)(inner, most)
    return one_run
