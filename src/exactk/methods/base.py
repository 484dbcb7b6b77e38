"""What every method is: parameters that scikit-learn can see, and one `run`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from functools import cache

import numpy as np
from sklearn.base import BaseEstimator

from exactk.errors import InputError
from exactk.monitor import Monitor
from exactk.problem import Problem
from exactk.result import Answer

__all__ = ["Method", "generator"]


class Method(BaseEstimator):
    """Base of all methods.

    ``__init__`` stores keywords and nothing else; `run` checks them and computes. A method never
    prints, warns, times or grades itself: `exactk.solve` does, the same way for all.
    """

    @classmethod
    @cache
    def option_names(cls) -> list[str]:
        """Return the names of the parameters."""
        names: list[str] = cls._get_param_names()
        return names

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

    def run_path(self, problem: Problem, k_max: int, monitor: Monitor) -> Iterator[Answer]:
        """Pick k columns for k = 1..k_max; methods that can share work between sizes do."""
        for k in range(1, k_max + 1):
            yield self.run(problem, k, monitor)


def generator(random_state: object) -> np.random.Generator:
    """Return the random generator of a seed; None is a fixed seed, so answers repeat."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31))
    if random_state is None:
        return np.random.default_rng(0)
    whole = isinstance(random_state, (int, np.integer)) and not isinstance(random_state, bool)
    if whole and int(random_state) >= 0:  # type: ignore[call-overload]  # an integer by now
        return np.random.default_rng(int(random_state))  # type: ignore[call-overload]  # as above
    raise InputError(
        f"random_state must be None, an integer that is zero or more, or a NumPy generator, "
        f"not {random_state!r}"
    )
