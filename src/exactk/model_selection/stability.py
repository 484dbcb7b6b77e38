"""Stability of a selection: the same search on many half-samples of the rows."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from exactk.errors import InputError
from exactk.methods import registry
from exactk.methods.base import Method, generator
from exactk.model_selection.cross_validation import check_lone_class, row_groups
from exactk.params import validated
from exactk.problem.constraints import Rules
from exactk.problem.problem import Problem
from exactk.question import Question, read_question
from exactk.result import Answer, Result, Status
from exactk.search.feasibility import InfeasibleError
from exactk.search.selection_frequency import (
    Features,
    HalfSampleSupports,
    collect_supports,
    most_frequent,
    size_in,
)
from exactk.search.subsampling import check_rows, half_samples, number_groups
from exactk.solver import grade, solve, solve_path
from exactk.types import Floats, Indices
from exactk.utils.monitor import Monitor
from exactk.utils.progress import show_count
from exactk.utils.records_table import RecordsTable, TableResult
from exactk.utils.set_similarity import mean_jaccard, nogueira_index, nogueira_interval, wilson

__all__ = ["FrequencyGroup", "SizeFrequencies", "Stability", "measure_stability", "stability"]

COLUMNS = (
    "feature", "index", "frequency", "standard_error", "low", "high", "frequency_group", "in_full",
    "selected",
)  # fmt: skip
# Effort of `exchange` on a half-sample. Without effort, some searches miss the best set, and
# half-samples look less alike than they are; a tenth of the default effort finds nearly all.
EFFORT = 0.1
# Greedy steps and swaps alone: for expensive searches, and for paths, which go from size to size.
NO_EFFORT = 0.0
# Half of three groups is one group or two; four groups have halves of equal size.
LEAST_GROUPS = 4
# Seconds for the paths of all half-samples together: fewer half-samples are enough for frequencies.
PATH_SECONDS = 20.0


@dataclass(frozen=True)
class FrequencyGroup:
    """Features that are selected about equally often.

    Attributes
    ----------
    names : tuple of str
    indices : tuple of int
        Their columns in the user's table; the first column of a group of several.
    """

    names: tuple[str, ...]
    indices: tuple[int, ...]

    def __len__(self) -> int:
        """Return the number of features."""
        return len(self.names)


@dataclass(frozen=True, eq=False)
class SizeFrequencies:
    """How often each feature is selected in half-samples, for every number of features.

    Attributes
    ----------
    sizes : list of int
    names : tuple of str
        Features; those that are selected most often over all sizes come first.
    values : ndarray of shape (n_sizes, n_features)
        Share of the half-samples in which each feature is selected.
    indices : ndarray of shape (n_sizes,)
        Nogueira's stability index of each size, nan where every feature is in every set.
    n_subsamples : int
        Number of half-samples with a path of all sizes.
    """

    sizes: list[int]
    names: tuple[str, ...] = field(repr=False)
    values: Floats = field(repr=False)
    indices: Floats = field(repr=False)
    n_subsamples: int

    @property
    def table(self) -> RecordsTable:
        """One row for each size: ``k``, the stability ``index``, and a column for each feature."""
        rows = zip(self.sizes, self.indices, self.values, strict=True)
        return RecordsTable(["k", "index", *self.names], [(k, i, *row) for k, i, row in rows])

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values, fit for JSON."""
        return {"n_subsamples": self.n_subsamples, "table": self.table.to_plain()}


@dataclass(frozen=True, eq=False)
class Stability(TableResult):
    """Features that a method selects on half-samples of the rows, and how similar the sets are.

    A feature is a column, or a group of columns that are selected together.

    Attributes
    ----------
    k : int
    frequencies : ndarray of shape (n_features,)
        Share of the half-samples in which each column is selected; zero for constant columns and
        for duplicates of another column.
    supports : list of ndarray
        Columns selected in each half-sample, sorted; fewer than k if its rows do not suffice.
    index : float
        Nogueira's stability index of the features that are neither included nor excluded: 1 if
        all half-samples give the same set, 0 if they agree as often as random sets.
    interval : tuple of float
        Its confidence interval, for the half-samples drawn from these rows.
    level : float
        Level of the intervals.
    jaccard : float
        Mean over pairs of half-samples: number of features in both sets by the number in either.
    core, unstable, rare : FrequencyGroup
        Features selected in at least `threshold` of the half-samples, those between, and those
        selected in at most `negligible` of them. The most frequent come first.
    threshold, negligible : float
    expected_false : float
        Bound of Meinshausen and Bühlmann on the expected number of features in `core` that are
        unrelated to the target, if the method treats all such features alike:
        q²/((2·threshold − 1)·p), for q features selected among p.
    support : ndarray of intp
        The stability-selected columns: those of the k most frequent features. Under constraints,
        the set of the highest total frequency that keeps them. Sorted.
    result : Result
        The fit on `support` to all rows.
    full : Result
        The selection on all rows by the same search, or the one that was given as `features`.
    table : RecordsTable
        One row for each feature, the most frequent first: ``feature``, ``index`` (its first column
        in the user's table), ``frequency``, its ``standard_error`` and Wilson interval ``low`` to
        ``high``, ``frequency_group`` (core, unstable or rare), whether it is ``in_full``, and
        whether it is ``selected``.
    n_subsamples : int
        Number of half-samples.
    status : Status
        ``converged``, or ``time_limit`` or ``interrupted`` if there are fewer half-samples than
        requested.
    message : str
        One sentence for each fact that the user should know, else empty.
    method : str
    seconds : float
    by_size : SizeFrequencies or None
        The frequencies for every number of features in the same half-samples, if requested.
    """

    k: int
    frequencies: Floats = field(repr=False)
    supports: list[Indices] = field(repr=False)
    index: float
    interval: tuple[float, float]
    level: float
    jaccard: float
    core: FrequencyGroup
    unstable: FrequencyGroup
    rare: FrequencyGroup
    threshold: float
    negligible: float
    expected_false: float
    support: Indices
    result: Result = field(repr=False)
    full: Result = field(repr=False)
    table: RecordsTable = field(repr=False)
    n_subsamples: int
    status: Status
    message: str
    method: str
    seconds: float
    by_size: SizeFrequencies | None = None

    def __repr__(self) -> str:
        """Return one line."""
        low, high = self.interval
        said = f"; {self.message}" if self.message else ""
        return (
            f"Stability(k={self.k}, index {self.index:.3f} ({low:.3f} to {high:.3f}), "
            f"{len(self.core)} core, {len(self.unstable)} unstable, {len(self.rare)} rare, "
            f"{self.n_subsamples} half-samples{said})"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values, fit for JSON: the table without the single supports."""
        named = ("k", "index", "level", "jaccard", "threshold", "negligible", "expected_false",
                 "n_subsamples", "message", "method", "seconds")  # fmt: skip
        return {
            **{name: getattr(self, name) for name in named},
            "interval": list(self.interval),
            "status": str(self.status),
            **{name: list(getattr(self, name).names) for name in ("core", "unstable", "rare")},
            "support": self.support.tolist(),
            "result": self.result.to_dict(),
            "full": self.full.to_dict(),
            "table": self.table.to_plain(),
            "by_size": None if self.by_size is None else self.by_size.to_dict(),
        }

    def plot(self, ax: Any = None) -> Any:
        """Draw the frequencies as bars and return the matplotlib Axes."""
        from exactk.plots.stability import StabilityDisplay

        return StabilityDisplay(self).plot(ax)


@validated
def stability(
    X: Any,
    y: Any = None,
    *,
    k: Any = None,
    features: Any = None,
    n_subsamples: int = 100,
    method: str | Method = "exchange",
    ridge: Any = None,
    groups: Any = None,
    effort: float | None = None,
    threshold: float = 0.9,
    negligible: float = 0.05,
    level: float = 0.95,
    time_limit: float | None = None,
    random_state: Any = None,
    verbose: int = 0,
    sample_weight: Any = None,
    task: Any = "auto",
    loss: Any = None,
    class_weight: Any = None,
    constraints: Any = None,
) -> Stability:
    """Select k features on many random half-samples, and count how often each is selected.

    Half-samples come in complementary pairs, with the classes evenly in both. The draw depends on
    the seed and the values of the rows, not on their order. A row of whole weight w counts as w
    rows; other weights stay with their rows. Constraints hold in every half.

    Parameters
    ----------
    X : array-like, sparse matrix, frame, Dask collection or Problem
    y : array-like or None
    k : int, "auto", AutoK or None
        Number of features.
    features : list of str or int, Result, fitted selector or None
        An existing selection, in place of k: its number of features is k, and it is compared with
        the half-samples.
    n_subsamples : int
        Number of half-samples.
    method : str or Method
        What selects the features.
    ridge : "auto", "cv", float or None
        None is the ridge of a Problem, or "auto" for a table.
    groups : array-like of shape (n,) or None
        Rows that belong together (of a patient, a site), at least four groups. Each half-sample
        is half of the groups; classes are not spread evenly.
    effort : float or None
        Search effort in each half-sample. None is 0.1 for ``exchange``, or 0 under losses and
        constraints that make a search expensive.
    threshold : float
        Features selected at least this often are in the core.
    negligible : float
        Features selected at most this often are rare.
    level : float
        Level of the confidence intervals.
    time_limit : float or None
        Maximum time in seconds. At least two half-samples are made.
    random_state : int, Generator, RandomState or None
        Seed of the draws, and of the method if it is a number. None is a fixed seed.
    verbose : int
        1 shows a progress bar on a terminal.
    sample_weight, task, loss, class_weight, constraints
        As in `TopKSelector`; loss, class weights and constraints of a Problem are kept unless
        others are given.

    Returns
    -------
    Stability
        After Ctrl-C or at the time limit: of the half-samples made until then, at least two.

    Raises
    ------
    InputError
        There are no rows to draw from, or too few of them.

    References
    ----------
    S. Nogueira, K. Sechidis, G. Brown, JMLR 18(174), 2018. N. Meinshausen, P. Bühlmann, JRSS B 72,
    2010. R. D. Shah, R. J. Samworth, JRSS B 75, 2013.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True, as_frame=True)
    >>> found = stability(X, y, k=4, n_subsamples=40)
    >>> found.core.names
    ('proline', 'alcohol', 'color_intensity', 'flavanoids')
    >>> found.table[0]["frequency"]
    1.0
    """
    clock = Monitor(time_limit)
    question = read_question(
        X, y, k=k, features=features, ridge=ridge, method=method, groups=groups,
        random_state=random_state, time_limit=time_limit, verbose=verbose,
        sample_weight=sample_weight, task=task, loss=loss, class_weight=class_weight,
        constraints=constraints,
    )  # fmt: skip
    return measure_stability(
        question, n_subsamples=n_subsamples, method=method, groups=groups, effort=effort,
        threshold=threshold, negligible=negligible, level=level,
        time_limit=None if time_limit is None else max(time_limit - clock.seconds, 1e-9),
        random_state=random_state, verbose=verbose,
    )  # fmt: skip


def measure_stability(
    question: Question,
    *,
    k_max: int | None = None,
    n_subsamples: int = 100,
    method: str | Method = "exchange",
    groups: Any = None,
    effort: float | None = None,
    threshold: float = 0.9,
    negligible: float = 0.05,
    level: float = 0.95,
    time_limit: float | None = None,
    random_state: Any = None,
    verbose: int = 0,
) -> Stability:
    """Return the stability of a question; the other parameters are those of `stability`.

    Parameters
    ----------
    question : Question
    k_max : int or None
        Also select 1 to k_max features in the same half-samples, for `Stability.by_size`.
    """
    problem, monitor = question.problem, Monitor(time_limit)
    check_rows(problem)
    numbered = None if groups is None else _numbered_groups(problem, groups)
    rng, search = generator(random_state), _Search(problem, method, effort, random_state)
    # First: it says what is wrong with k, the method or the constraints.
    full = question.solved(method=method, time_limit=time_limit, **search.options)
    k = full.k
    halves = half_samples(
        problem, rng, n_subsamples=n_subsamples, groups=numbered,
        with_rows=search.needs_rows or not problem.loss.by_moments,
    )  # fmt: skip
    with show_count(f"{search.name}, k={k}, half-samples", n_subsamples, verbose) as show:
        gathered = collect_supports(
            halves, lambda half: search.select(half, k, k_max), monitor, show
        )
    _check_enough(gathered, problem)
    supports = [np.sort(found[0]) for found in gathered.supports]
    n, features = len(supports), Features.of(problem)
    member = features.members(supports)
    frequencies = member.mean(axis=0)
    answer = Answer(
        most_frequent(features, k, frequencies), Status.CONVERGED, n, ordered=True,
        scores=features.scores(frequencies),
    )  # fmt: skip
    result = grade(problem, k, answer, "stability", monitor.seconds)
    # Features that are in every set by a constraint say nothing about the stability.
    free = member[:, ~features.is_included]
    per_set = float(free.sum(axis=1).mean()) if free.size else 0.0
    names = [features.name(f) for f in range(len(features))]
    columns = problem.input_columns[features.first]
    order = np.lexsort((-features.gains, -frequencies))
    kind = np.where(
        frequencies >= threshold, "core", np.where(frequencies <= negligible, "rare", "unstable")
    )
    errors = np.sqrt(frequencies * (1.0 - frequencies) / n)
    low, high = wilson(frequencies, n, level)
    in_full, selected = features.members([full.support, result.support]) > 0
    rows = [
        (names[f], columns[f], frequencies[f], errors[f], low[f], high[f], str(kind[f]),
         in_full[f], selected[f])
        for f in order
    ]  # fmt: skip
    by_kind = {}
    for one in ("core", "unstable", "rare"):
        found = [f for f in order if kind[f] == one]
        by_kind[one] = FrequencyGroup(
            tuple(names[f] for f in found), tuple(int(columns[f]) for f in found)
        )
    # The normal approximation may pass the ends of the range of the index.
    low_end, high_end = nogueira_interval(free, level) if free.size else (1.0, 1.0)
    return Stability(
        k=k, frequencies=features.spread(frequencies), supports=supports,
        index=nogueira_index(free) if free.size else 1.0,
        interval=(max(low_end, -1.0), min(high_end, 1.0)),
        level=float(level),
        jaccard=mean_jaccard([set(np.flatnonzero(row).tolist()) for row in member]),
        **by_kind, threshold=float(threshold), negligible=float(negligible),
        expected_false=per_set**2 / ((2.0 * threshold - 1.0) * max(free.shape[1], 1)),
        support=result.support, result=result, full=full, table=RecordsTable(COLUMNS, rows),
        n_subsamples=n, status=gathered.status,
        message=_message(gathered, search.n_truncated, n_subsamples),
        method=search.name, seconds=monitor.seconds,
        by_size=_by_size(features, [s[1:] for s in gathered.supports if len(s) > 1]),
    )  # fmt: skip


class _Search:
    """A method with its parameters, as it selects in each half-sample.

    Attributes
    ----------
    options : dict
        Parameters of the method at one size.
    n_truncated : int
        Half-samples in which fewer than k columns were selected.
    """

    def __init__(
        self, problem: Problem, method: str | Method, effort: float | None, random_state: Any
    ) -> None:
        kind = registry.method_class(method) if isinstance(method, str) else type(method)
        self.method = method
        self.name = method if isinstance(method, str) else kind.__name__.lower()
        self.needs_rows, names = kind.needs_rows, kind.option_names()
        self.options: dict[str, Any] = {} if effort is None else {"effort": effort}
        if isinstance(random_state, (int, np.integer)) and "random_state" in names:
            self.options["random_state"] = random_state
        self._path_options = dict(self.options)
        if isinstance(method, str) and "effort" in names:
            simple = problem.rules is None or problem.rules.is_simple
            is_cheap = self.name == "exchange" and simple and problem.loss.by_moments
            self.options.setdefault("effort", EFFORT if is_cheap else NO_EFFORT)
            self._path_options.setdefault("effort", NO_EFFORT)
        self.n_truncated = 0
        self._path_seconds = 0.0

    def select(self, half: Problem, k: int, k_max: int | None) -> list[Indices]:
        """Return the columns selected at k, then those of every size up to k_max if requested."""
        with warnings.catch_warnings():
            # The message counts what would be one warning for each half-sample.
            warnings.simplefilter("ignore")
            size = size_in(half, k)
            result = solve(half, size, self.method, **self.options) if size else None
            support = _independent(half, result)
            self.n_truncated += size < k or len(support) < size
            if k_max is None or self._path_seconds > PATH_SECONDS:
                return [support]
            clock = Monitor()
            # None of a size that is impossible in this half.
            path = [_independent(half, None)] * k_max
            if most := size_in(half, k_max):
                with suppress(InfeasibleError):
                    for found in solve_path(half, most, self.method, **self._path_options):
                        path[found.k - 1] = _independent(half, found)
            if k <= k_max:
                path[k - 1] = support
            self._path_seconds += clock.seconds
        return [support, *path]


def _independent(half: Problem, result: Result | None) -> Indices:
    """Return the selected columns without those at the end that only complete the number."""
    if result is None:
        return np.zeros(0, dtype=np.intp)
    if result.status == Status.INTERRUPTED:
        raise KeyboardInterrupt
    rules = half.rules or Rules()
    if result.status != Status.RANK_DEFICIENT or not rules.is_simple:
        return result.support
    rank = half.with_ridge(0.0).refit(result.support).rank
    return np.union1d(result.order[:rank], np.array(rules.include, dtype=np.intp))


def _numbered_groups(problem: Problem, groups: Any) -> Indices:
    """Return the number of the group of each row; there must be enough groups for halves."""
    if problem.rows is None:
        raise InputError(
            "groups needs the rows in memory, and this table is streamed", parameter="groups",
            hint="call problem.in_memory() first",
        )  # fmt: skip
    numbers = number_groups(problem, row_groups(groups, problem.rows.n_rows))
    n_groups = int(numbers.max()) + 1
    if n_groups < LEAST_GROUPS:
        raise InputError(
            f"groups has {n_groups} group{'s' * (n_groups != 1)} of rows with weight above zero, "
            f"and half-samples of groups need at least {LEAST_GROUPS}",
            parameter="groups",
        )
    return numbers


def _check_enough(gathered: HalfSampleSupports, problem: Problem) -> None:
    """Raise unless at least two half-samples gave a selection."""
    done = len(gathered.supports)
    if done >= 2:
        return
    if gathered.status == Status.INTERRUPTED:
        raise KeyboardInterrupt
    check_lone_class(problem)
    raise InputError(
        f"{gathered.unfit} of {gathered.unfit + done} half-samples have a constant target, or no "
        f"columns that keep the constraints: there are too few rows for half-samples",
        parameter="X", hint="use more rows",
    )  # fmt: skip


def _message(gathered: HalfSampleSupports, n_truncated: int, n_subsamples: int) -> str:
    done = len(gathered.supports)
    said = []
    if gathered.status == Status.TIME_LIMIT:
        said.append(f"stopped at the time limit after {done} of {n_subsamples} half-samples")
    elif gathered.status == Status.INTERRUPTED:
        said.append(f"stopped by the user after {done} of {n_subsamples} half-samples")
    if gathered.unfit:
        said.append(
            f"{gathered.unfit} half-samples were left out: their target is constant, or no columns "
            f"keep the constraints"
        )
    if n_truncated:
        said.append(
            f"in {n_truncated} of {done} half-samples fewer than k columns were selected: their "
            f"rows do not suffice for k independent columns"
        )
    return "; ".join(said)


def _by_size(features: Features, paths: Sequence[Sequence[Indices]]) -> SizeFrequencies | None:
    if not paths:
        return None
    # Under constraints some sizes may be impossible in every half.
    sizes = [k for k in range(1, len(paths[0]) + 1) if any(path[k - 1].size for path in paths)]
    members = [features.members([path[k - 1] for path in paths]) for k in sizes]
    values = np.array([member.mean(axis=0) for member in members]).reshape(len(sizes), -1)
    order = np.lexsort((-features.gains, -values.sum(axis=0)))
    return SizeFrequencies(
        sizes=sizes,
        names=tuple(features.name(int(f)) for f in order),
        values=values[:, order],
        indices=np.array([_index(member[:, ~features.is_included]) for member in members]),
        n_subsamples=len(paths),
    )


def _index(free: Floats) -> float:
    """Return the stability index, or nan if every set holds every feature."""
    return nogueira_index(free) if free.size and not free.all() else np.nan
