"""What every method is: parameters that scikit-learn can see, and one `run`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator

from exactk.errors import InputError
from exactk.methods.iteration import Starts, best_answer, fill_support
from exactk.params import Check, Seed
from exactk.problem.constraints import Rules
from exactk.problem.problem import Problem
from exactk.result import Answer, Status
from exactk.search.infeasibility import possible_sizes
from exactk.utils.monitor import Monitor

__all__ = [
    "IterativeMethod",
    "Method",
    "generator",
    "initial_supports",
]


class Method(BaseEstimator):
    """Base of all methods.

    ``__init__`` stores keywords and nothing else; `run` checks them and computes. A method never
    prints, warns, times or grades itself: `exactk.solve` does, the same way for all.

    Attributes
    ----------
    checks : mapping
        What each parameter may be, where that can be said without a problem.
    needs_rows : bool
        Whether it reads the rows of the table and not only their moments. `solve` loads those of
        files, Dask collections and Spark tables for it, within ``memory_limit``.
    needs_classes : bool
        Whether every row must carry one class.
    uses_target : bool
        Whether it looks at y at all.
    uses_gram : bool
        Whether it asks for so much of the Gram matrix that the selector should make it whole
        where that is cheap.
    takes_rules : bool
        Whether it keeps rules that say more than which columns are out of the question.
    takes_losses : bool
        Whether it minimises the loss of the problem, whichever that is; if not, it sees the problem
        with squared loss, and what it chose is fitted and graded by the problem's own.
    extra : str
        The extra of the package that must be installed; empty if none.
    """

    checks: ClassVar[Mapping[str, Check]] = {}
    needs_rows: ClassVar[bool] = False
    needs_classes: ClassVar[bool] = False
    uses_target: ClassVar[bool] = True
    uses_gram: ClassVar[bool] = True
    takes_rules: ClassVar[bool] = False
    takes_losses: ClassVar[bool] = False
    extra: ClassVar[str] = ""

    @classmethod
    @cache
    def option_names(cls) -> list[str]:
        """Return the names of the parameters."""
        names: list[str] = cls._get_param_names()
        return names

    @classmethod
    def needs(cls) -> list[str]:
        """Return in words what the method asks of a problem, for the help.

        Examples
        --------
        >>> Method.needs()
        []
        """
        words = {
            "needs classes, one a row": cls.needs_classes,
            "reads the rows of the table, all in memory": cls.needs_rows,
            "ignores y": not cls.uses_target,
            f'needs: pip install "exactk[{cls.extra}]"': bool(cls.extra),
        }
        return [text for text, holds in words.items() if holds]

    def check(self) -> None:
        """Raise for a parameter that is out of its range, before any work."""
        for name, check in self.checks.items():
            check(name, getattr(self, name))

    def check_problem(self, problem: Problem) -> None:
        """Raise if this method, with these parameters, cannot serve the problem."""
        return

    @abstractmethod
    def run(self, problem: Problem, k: int, monitor: Monitor) -> Answer:
        """Pick k columns.

        Parameters
        ----------
        problem : Problem
        k : int
            Between 1 and ``problem.n_usable``.
        monitor : Monitor
            To ask whether time is up and to report progress.

        Returns
        -------
        Answer
        """

    def run_path(self, problem: Problem, k_max: int, monitor: Monitor) -> Iterator[Answer | None]:
        """Pick k columns for k = 1..k_max; methods that can share work between sizes do.

        None stands for a size at which no set keeps the rules.
        """
        possible: Sequence[int] = range(1, k_max + 1)
        if problem.rules is not None and not problem.rules.is_simple:
            possible = possible_sizes(problem, k_max)
        least = 0 if problem.rules is None else problem.rules.size_of(problem.rules.include)
        for k in range(1, k_max + 1):
            answer = self.run(problem, k, monitor) if k in possible and k >= least else None
            yield answer
            if answer is not None and answer.status == Status.INTERRUPTED:
                return


class IterativeMethod(Method):
    """Base of methods that iterate from one or several starts until they converge.

    A subclass has a parameter ``max_iter``, perhaps ``n_starts``, and writes its iterations as
    generators; `exactk.methods.iteration` counts them and decides what ends them.
    """

    max_iter: int

    def prepare(self, problem: Problem) -> Any:
        """Return what serves every start and every k: a table, a factorisation."""
        return None

    @abstractmethod
    def starts(self, problem: Problem, k: int, prepared: Any) -> Starts:
        """Return the starts, with what `prepare` returned.

        Fewer than all candidates are wanted: k is below ``len(problem.candidates)``.
        """

    def check_init(self, problem: Problem, k: int) -> None:
        """Raise if the start that was given does not fit the problem."""
        return

    def run(self, problem: Problem, k: int, monitor: Monitor) -> Answer:  # noqa: D102
        self.check_init(problem, k)
        only = _single_support(problem, k)
        if only is not None:
            return only
        starts = self.starts(problem, k, self.prepare(problem))
        return best_answer(problem, k, starts, self.max_iter, monitor)

    def run_path(self, problem: Problem, k_max: int, monitor: Monitor) -> Iterator[Answer]:
        """Every size in turn; once time is up or the user has stopped it, the rest is filled up."""
        answer, prepared = None, None
        for k in range(1, k_max + 1):
            self.check_init(problem, k)
            if answer is not None and answer.status in (Status.TIME_LIMIT, Status.INTERRUPTED):
                filled = fill_support(problem, answer.support, k)
                answer = Answer(filled, answer.status, 0)
            else:
                answer = _single_support(problem, k)
                if answer is None:
                    prepared = self.prepare(problem) if prepared is None else prepared
                    starts = self.starts(problem, k, prepared)
                    answer = best_answer(problem, k, starts, self.max_iter, monitor)
            yield answer
            if k < k_max and monitor.expired:
                answer = replace(answer, status=Status.TIME_LIMIT)


def _single_support(problem: Problem, k: int) -> Answer | None:
    """All candidates, where there is nothing to choose; what is missing are copies of them."""
    columns = problem.candidates
    if len(columns) > k:
        return None
    status = Status.OPTIMAL if len(columns) == k else Status.RANK_DEFICIENT
    return Answer(columns.tolist(), status, 0)


def generator(random_state: object) -> np.random.Generator:
    """Return the random generator of a seed; None is a fixed seed, so answers repeat."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31))
    if random_state is None:
        return np.random.default_rng(0)
    Seed()("random_state", random_state)
    return np.random.default_rng(int(random_state))  # type: ignore[call-overload]  # an integer by now


def initial_supports(init: object, problem: Problem, k: int) -> list[npt.NDArray[np.intp]]:
    """Return the supports in an ``init``: none, one list of k candidates, or several."""
    if init is None:
        return []
    wrong = InputError(
        parameter="init", value=init, expected="a list of k column indices, or several such lists"
    )
    if isinstance(init, (str, bytes)) or not np.iterable(init):
        raise wrong
    items = list(init)
    nested = [not np.isscalar(item) for item in items]
    if any(nested) and not all(nested):
        raise wrong
    supports = []
    for given in items if any(nested) else [items]:
        try:
            support = problem.check_support(given)
        except InputError as error:
            raise InputError(f"init: {error}", parameter="init") from error
        rules = problem.rules or Rules()
        size = rules.size_of(support)
        if size != k:
            raise InputError(f"init has a support of {size} columns, k is {k}", parameter="init")
        # What is no candidate has no entry on the diagonal; a group may have it all the same.
        alone = [p for p in support if p not in rules.group_of]
        barred = np.array([p for p in alone if problem.diagonal[p] == 0], dtype=np.intp)
        if barred.size:
            raise InputError(
                f"init names column {barred[0]}, which is constant or a copy of another",
                parameter="init",
            )
        supports.append(support)
    return supports
