"""How often each feature is chosen on halves of the rows, at every size at once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from exactk.errors import InputError
from exactk.methods.base import Method, generator
from exactk.model_selection.stability import check_enough, numbered_groups
from exactk.model_selection.subsampling import HalfSampleSearch
from exactk.params import Integer, Number
from exactk.problem.problem import Problem
from exactk.result import Status
from exactk.search.selection_frequency import Features, collect_supports
from exactk.search.subsampling import check_rows, half_samples
from exactk.types import Floats
from exactk.utils.monitor import Monitor
from exactk.utils.progress import show_count
from exactk.utils.records_table import RecordsTable
from exactk.utils.set_similarity import nogueira_index

__all__ = ["Frequencies", "frequencies_by_size"]


# Twenty-five complementary pairs: enough to see where a feature comes in and whether it stays.
N_SAMPLES = 50


@dataclass(frozen=True, eq=False)
class Frequencies:
    """How often each feature is chosen on halves of the rows, for every size.

    Attributes
    ----------
    sizes : list of int
    names : tuple of str
        Features, those that are chosen most often over all sizes first.
    values : ndarray of shape (n_sizes, n_features)
        Share of the half-samples in which each is chosen.
    indices : ndarray of shape (n_sizes,)
        Nogueira's stability index of each size, nan where every feature is in every set.
    n_subsamples : int
        Half-samples made.
    status : Status
        ``converged``, or ``time_limit`` or ``interrupted`` where fewer were made than asked for.
    """

    sizes: list[int]
    names: tuple[str, ...] = field(repr=False)
    values: Floats = field(repr=False)
    indices: Floats = field(repr=False)
    n_subsamples: int
    status: Status

    def table(self, most: int | None = None) -> RecordsTable:
        """Return one row a size: ``k``, the stability ``index``, and a column a feature."""
        names = self.names[:most]
        return RecordsTable(
            ["k", "index", *names],
            [
                (k, index, *row[: len(names)])
                for k, index, row in zip(self.sizes, self.indices, self.values, strict=True)
            ],
        )


def frequencies_by_size(
    problem: Problem,
    k_max: int,
    *,
    n_subsamples: int = N_SAMPLES,
    method: str | Method = "exchange",
    effort: float | None = None,
    groups: Any = None,
    random_state: object = None,
    time_limit: float | None = None,
    verbose: int = 0,
    **options: Any,
) -> Frequencies:
    """Choose 1 to k_max features on many random halves of the rows, and count.

    Each half-sample has one path of sizes; the draws are those of `exactk.stability`.

    Parameters
    ----------
    problem : Problem
    k_max : int
        The largest size.
    n_subsamples, method, effort, groups, random_state, time_limit, verbose, **options
        As in `exactk.stability`; effort None is 0, for a path goes from size to size.

    Returns
    -------
    Frequencies

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> data = load_wine()
    >>> problem = Problem.from_arrays(data.data, data.target, feature_names=data.feature_names)
    >>> found = frequencies_by_size(problem, 3, n_subsamples=20)
    >>> found.names[:3]
    ('proline', 'flavanoids', 'color_intensity')
    >>> found.values[:, 0].tolist()
    [0.85, 0.65, 0.9]
    """
    if not isinstance(problem, Problem):
        raise InputError(f"problem must be an exactk.Problem, not {type(problem).__name__}")
    Integer(2)("n_subsamples", n_subsamples)
    Number("(0, inf]", none="no limit")("time_limit", time_limit)
    k_max = problem.check_k(k_max)
    check_rows(problem)
    numbered = None if groups is None else numbered_groups(problem, groups)
    search = HalfSampleSearch(method, effort, random_state, options)
    by_rows = search.needs_rows or not problem.loss.by_moments
    halves = half_samples(
        problem,
        generator(random_state),
        n_subsamples=n_subsamples,
        with_rows=by_rows,
        groups=numbered,
    )
    with show_count(f"half-samples, k=1..{k_max}", n_subsamples, verbose) as show:
        gathered = collect_supports(
            halves, lambda half: search.path_in_half(half, k_max), Monitor(time_limit), show
        )
    check_enough(gathered)
    features = Features.of(problem)
    # Of a size that no half can have, under rules, there is nothing to count.
    sizes = [k for k in range(1, k_max + 1) if any(s[k - 1].size for s in gathered.supports)]
    members = [features.members([s[k - 1] for s in gathered.supports]) for k in sizes]
    values = np.array([member.mean(axis=0) for member in members])
    order = np.lexsort((-features.gains, -values.sum(axis=0)))
    return Frequencies(
        sizes=sizes,
        names=tuple(features.name(int(f)) for f in order),
        values=values[:, order],
        indices=np.array([_index(member[:, ~features.is_included]) for member in members]),
        n_subsamples=len(gathered.supports),
        status=gathered.status,
    )


def _index(free: Floats) -> float:
    """The stability index; of sets that hold everything there is none."""
    return nogueira_index(free) if free.size and not free.all() else np.nan
