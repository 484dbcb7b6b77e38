"""The k columns chosen most often over half-samples: stability selection at a fixed size."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

import numpy as np

from exactk.errors import InputError
from exactk.methods.base import Method, generator
from exactk.params import Check, Integer, Number, Seed
from exactk.problem.problem import Problem
from exactk.result import Answer, Status
from exactk.search.find_best import best_support
from exactk.search.infeasibility import possible_sizes
from exactk.search.selection_frequency import (
    Features,
    HalfSampleSupports,
    collect_supports,
    most_frequent,
    size_in,
)
from exactk.search.subsampling import LEAST_PLACES, count_places, half_samples
from exactk.types import Indices
from exactk.utils.monitor import Monitor

__all__ = ["Stability"]


# Twenty-five complementary pairs.
N_SAMPLES = 50
# Greedy and swaps alone: the same time buys more half-samples.
EFFORT = 0.0


class Stability(Method):
    """The k columns that ``exchange`` chooses most often on random halves of the rows.

    Half-samples come in complementary pairs, classes spread evenly over both. Columns that are
    chosen equally often go by what they explain alone. The draw depends on the seed and on the
    values of the rows, not on their order, and a row of whole weight w is w rows.

    Parameters
    ----------
    n_subsamples : int
        How many half-samples.
    effort : float
        How hard to search in each, as of ``exchange``; 0 is greedy and swaps alone.
    random_state : int, Generator, RandomState or None
        Seed of the draws. None is a fixed seed: the same input gives the same answer.

    Notes
    -----
    Cost: `n_subsamples` times the moments of half of the rows and a search of ``exchange`` with
    `effort`; many rows are cut into blocks whose moments are added. Memory: that of ``exchange``,
    and moments of the blocks.

    Guaranteed: exactly k columns. Not that no swap lowers the objective; a column that is chosen
    often beside others need not be useful beside those that are chosen here.

    ``scores`` of the result are the frequencies. `exactk.model_selection.stability` tells more of
    the same, and serves streams that do not fit in memory: their rows are drawn by a hash, since an
    order of all rows would have to be held, and so another draw than that of the same rows in
    memory.

    References
    ----------
    N. Meinshausen, P. Bühlmann, "Stability selection", JRSS B 72, 2010. R. D. Shah, R. J. Samworth,
    "Variable selection with error control", JRSS B 75, 2013.

    Examples
    --------
    >>> import exactk
    >>> from sklearn.datasets import load_wine
    >>> problem = exactk.Problem.from_arrays(*load_wine(return_X_y=True))
    >>> result = exactk.solve(problem, 3, "stability")
    >>> result.support, result.scores[result.support].round(2).tolist()
    (array([ 6,  9, 12]), [0.76, 0.76, 0.92])
    """

    checks: ClassVar[Mapping[str, Check]] = {
        "n_subsamples": Integer(2),
        "effort": Number("[0, 1e6]"),
        "random_state": Seed(),
    }
    needs_rows: ClassVar[bool] = True
    takes_rules: ClassVar[bool] = True

    def __init__(
        self, n_subsamples: int = N_SAMPLES, effort: float = EFFORT, random_state: object = None
    ) -> None:
        self.n_subsamples = n_subsamples
        self.effort = effort
        self.random_state = random_state

    def check_problem(self, problem: Problem) -> None:  # noqa: D102
        if count_places(problem) < LEAST_PLACES:
            raise InputError(
                f"stability needs at least {LEAST_PLACES} rows of weight above zero to draw halves "
                f"of, and there are {count_places(problem)}", parameter="X",
                hint="use method 'exchange'",
            )  # fmt: skip

    def run(self, problem: Problem, k: int, monitor: Monitor) -> Answer:  # noqa: D102
        return next(self._answers(problem, [k], monitor))

    def run_path(self, problem: Problem, k_max: int, monitor: Monitor) -> Iterator[Answer | None]:
        """Every size over the same half-samples."""
        sizes: Sequence[int] = range(1, k_max + 1)
        if problem.rules is not None:
            sizes = possible_sizes(problem, k_max)
        answers = dict(zip(sizes, self._answers(problem, sizes, monitor), strict=True))
        yield from (answers.get(k) for k in range(1, k_max + 1))

    def _answers(
        self, problem: Problem, sizes: Sequence[int], monitor: Monitor
    ) -> Iterator[Answer]:
        """Choose at all sizes in every half-sample, then give one answer for each size."""
        if not sizes:
            return
        rng = generator(self.random_state)
        # The search has a seed of its own: what it draws must not change the half-samples.
        quiet = Monitor()
        trace: list[float] = []

        def choose(half: Problem) -> list[Indices] | None:
            supports = []
            for k in sizes:
                size, support = size_in(half, k), np.zeros(0, dtype=np.intp)
                if size:
                    answer = best_support(half, size, self.effort, generator(None), quiet)
                    if answer.status == Status.INTERRUPTED:
                        return None
                    support = np.array(answer.support, dtype=np.intp)
                supports.append(support)
            trace.append(half.objective(supports[-1]))
            monitor.report(len(trace), self.n_subsamples, trace[-1])
            return supports

        halves = half_samples(problem, rng, n_subsamples=self.n_subsamples)
        gathered = collect_supports(halves, choose, monitor)
        if not gathered.supports and gathered.status == Status.CONVERGED:
            raise InputError(
                "stability finds the target constant, or the constraints impossible, in every half "
                "of the rows", parameter="method", hint="use method 'exchange'",
            )  # fmt: skip
        features = Features.of(problem)
        for place, k in enumerate(sizes):
            yield _answer(problem, features, k, [s[place] for s in gathered.supports], gathered)


def _answer(
    problem: Problem,
    features: Features,
    k: int,
    supports: list[Indices],
    gathered: HalfSampleSupports,
) -> Answer:
    if not supports:
        # Stopped before the first half-sample was done.
        answer = best_support(problem, k, 0.0, generator(None), Monitor())
        return Answer(answer.support, gathered.status, 0, ordered=answer.ordered)
    frequencies = features.members(supports).mean(axis=0)
    chosen = most_frequent(features, k, frequencies)
    return Answer(
        chosen,
        gathered.status,
        len(supports),
        ordered=True,
        scores=features.scores(frequencies),
    )
