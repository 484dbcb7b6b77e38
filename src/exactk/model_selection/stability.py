"""How stable a choice is: the same search on many halves of the rows, and what it agrees on."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from exactk.errors import InputError
from exactk.methods.base import Method, generator
from exactk.model_selection.cross_validation import row_groups
from exactk.model_selection.subsampling import HalfSampleSearch, grade_features, usual_effort
from exactk.params import Integer, Number
from exactk.problem.problem import Problem
from exactk.result import Result, Status
from exactk.search.selection_frequency import (
    Features,
    HalfSampleSupports,
    collect_supports,
    most_frequent,
)
from exactk.search.subsampling import check_rows, half_samples, number_groups
from exactk.types import Floats, Indices
from exactk.utils.monitor import Monitor
from exactk.utils.progress import show_count
from exactk.utils.records_table import RecordsTable, notebook_html
from exactk.utils.set_similarity import mean_jaccard, nogueira_index, nogueira_interval, wilson

__all__ = ["FrequencyGroup", "Stability", "check_enough", "numbered_groups", "stability"]


# Fifty complementary pairs, as Shah and Samworth have them.
N_SAMPLES = 100
CORE = 0.9
NEGLIGIBLE = 0.05
# Of three groups there are three halves, and as many others.
LEAST_GROUPS = 4
COLUMNS = (
    "feature", "index", "frequency", "standard_error", "low", "high", "part", "in_full",
    "selected",
)  # fmt: skip


@dataclass(frozen=True)
class FrequencyGroup:
    """Some features: names, and their numbers among the columns of the user's table.

    Of a group of several columns it is the first.
    """

    names: tuple[str, ...]
    indices: tuple[int, ...]

    def __len__(self) -> int:
        """Return how many features these are."""
        return len(self.names)


@dataclass(frozen=True, eq=False)
class Stability:
    """What a method chooses on halves of the rows, and how far it agrees with itself.

    A feature is a column, or a group of columns that enter together.

    Attributes
    ----------
    k : int
    frequencies : ndarray of shape (n_features,)
        Share of the half-samples in which each column was chosen; zero for constant columns and
        for copies of another, which is chosen in their place.
    supports : list of ndarray
        Columns chosen in each half-sample, sorted; fewer than k where its rows do not tell more.
    index : float
        Nogueira's stability index over the features that can be chosen and need not be: 1 if
        every half-sample gives the same, 0 if chance would agree as well.
    interval : tuple of float
        Its confidence interval, for the half-samples drawn from these rows.
    level : float
        That of the intervals.
    jaccard : float
        Mean over pairs of half-samples of the features in both by those in either.
    core, unstable, rare : Part
        Features chosen in at least `threshold` of the half-samples, those between, which stand in
        for each other, and those in at most `negligible` of them. The most frequent first.
    threshold, negligible : float
    expected_false : float
        Bound of Meinshausen and Bühlmann on the expected number of features in `core` that have
        nothing to do with the target, if all such features are alike to the method:
        q²/((2·threshold − 1)·p), for q features chosen among p.
    support : ndarray of intp
        The stability-selected columns: those of the k most frequent features, under rules the
        set of the highest total frequency that keeps them. Sorted.
    result : Result
        The fit on `support` to all rows.
    full : Result
        What the same search chooses on all rows.
    table : RecordsTable
        One row a feature, the most frequent first: ``feature``, ``index`` (of its first column in
        the user's table), ``frequency``, its ``standard_error`` and Wilson interval ``low`` to
        ``high``, ``part`` (core, unstable or rare), whether it is ``in_full``, and whether
        it is ``selected``.
    n_subsamples : int
        Half-samples made.
    status : Status
        ``converged``, or ``time_limit`` or ``interrupted`` where fewer were made than asked for.
    message : str
        One sentence for each thing that the user should know, else empty.
    method : str
    seconds : float
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

    def __repr__(self) -> str:
        """Return one line."""
        low, high = self.interval
        return (
            f"Stability(k={self.k}, index {self.index:.3f} ({low:.3f} to {high:.3f}), "
            f"{len(self.core)} core, {len(self.unstable)} unstable, {len(self.rare)} "
            f"rare, {self.n_subsamples} half-samples)"
        )

    def _repr_html_(self) -> str:
        """Return the table for a notebook."""
        return notebook_html(self.table, repr(self))

    def to_frame(self, library: str = "pandas") -> Any:
        """Return `table` as a frame of pandas, or of ``library="polars"``."""
        return self.table.to_frame(library)

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values, fit for JSON: the table, and not each support."""
        named = ("k", "index", "level", "jaccard", "threshold", "negligible", "expected_false",
                 "n_subsamples", "message", "method", "seconds")  # fmt: skip
        out: dict[str, Any] = {name: getattr(self, name) for name in named}
        out |= {"interval": list(self.interval), "status": str(self.status)}
        for name in ("core", "unstable"):
            out[name] = list(getattr(self, name).names)
        return out | {
            "support": self.support.tolist(),
            "result": self.result.to_dict(),
            "full": self.full.to_dict(),
            "table": json.loads(self.table.to_json()),
        }

    def to_json(self, **options: Any) -> str:
        """Return it as JSON; options go to ``json.dumps``."""
        return json.dumps(self.to_dict(), **options)


def stability(
    problem: Problem,
    k: int,
    *,
    n_subsamples: int = N_SAMPLES,
    method: str | Method = "exchange",
    effort: float | None = None,
    threshold: float = CORE,
    negligible: float = NEGLIGIBLE,
    level: float = 0.95,
    groups: Any = None,
    random_state: object = None,
    time_limit: float | None = None,
    verbose: int = 0,
    **options: Any,
) -> Stability:
    """Choose k features on many random halves of the rows, and count.

    Halves come in complementary pairs, classes spread evenly over both. The draw depends on the
    seed and the values of the rows, not on their order; a row of whole weight w is w rows, other
    weights stay with their rows. Rules of the problem hold in every half.

    Parameters
    ----------
    problem : Problem
        Made of a table, or of files, Dask or Spark. The rows of a stream that is too large to be
        held are drawn by a hash of their values: another draw than that of the same rows in memory.
    k : int
    n_subsamples : int
        How many half-samples, two or more.
    method : str or Method
        What chooses, as in `solve`.
    effort : float or None
        How hard a method that searches does so. None is 0.1 for `exchange`, and 0, greedy and
        swaps alone, under losses and constraints that make a search dear.
    threshold : float
        Frequency from which on a feature is in the core, above 0.5.
    negligible : float
        Frequency up to which a feature is as good as never chosen, below 0.5.
    level : float
        Of the confidence intervals.
    groups : array-like of shape (n,) or None
        Which rows belong together (of a patient, a site), four groups or more, of rows in memory.
        Each half is then half of the groups, whole, drawn by their sorted labels; classes are not
        spread. Groups of features are constraints of the problem.
    random_state : int, Generator, RandomState or None
        Seed of the draws, and of the method where that takes a number. None is a fixed seed.
    time_limit : float or None
        Seconds after which no more half-samples are begun; two are always made.
    verbose : int
        1 shows a progress bar on a terminal.
    **options
        Parameters of the method.

    Returns
    -------
    Stability
        Of those half-samples that were done when time was up or the user stopped it, two at least.

    Raises
    ------
    InputError
        No rows to draw from, too few of them, or what `solve` refuses.

    References
    ----------
    S. Nogueira, K. Sechidis, G. Brown, JMLR 18(174), 2018. N. Meinshausen, P. Bühlmann, JRSS B 72,
    2010. R. D. Shah, R. J. Samworth, JRSS B 75, 2013.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> data = load_wine()
    >>> problem = Problem.from_arrays(data.data, data.target, feature_names=data.feature_names)
    >>> found = stability(problem, 4, n_subsamples=40)
    >>> found.core.names
    ('proline', 'flavanoids', 'color_intensity', 'alcohol')
    >>> found.table[0]["frequency"]
    1.0
    """
    if not isinstance(problem, Problem):
        raise InputError(f"problem must be an exactk.Problem, not {type(problem).__name__}")
    Integer(2)("n_subsamples", n_subsamples)
    Number("(0.5, 1]")("threshold", threshold)
    Number("[0, 0.5)")("negligible", negligible)
    Number("(0, 1)")("level", level)
    Number("(0, inf]", none="no limit")("time_limit", time_limit)
    check_rows(problem)
    numbered = None if groups is None else numbered_groups(problem, groups)
    if effort is None and "effort" not in options:
        effort = usual_effort(problem, method)
    rng, search = generator(random_state), HalfSampleSearch(method, effort, random_state, options)
    monitor = Monitor(time_limit)
    # First: it says what is wrong with k, the method or the rules.
    full = search.on_all_rows(problem, k)
    if full.status == Status.INTERRUPTED:
        raise KeyboardInterrupt
    by_rows = search.needs_rows or not problem.loss.by_moments
    halves = half_samples(
        problem, rng, n_subsamples=n_subsamples, with_rows=by_rows, groups=numbered
    )
    with show_count(f"{search.name}, k={k}, half-samples", n_subsamples, verbose) as show:
        gathered = collect_supports(halves, lambda half: search.in_half(half, k), monitor, show)
    check_enough(gathered)
    supports = [np.sort(found) for (found,) in gathered.supports]
    features = Features.of(problem)
    member = features.members(supports)
    frequencies = member.mean(axis=0)
    chosen = most_frequent(features, full.k, frequencies)
    result = grade_features(problem, full.k, chosen, features.scores(frequencies), len(supports))
    # What the rules have in every set says nothing of how stable the choice is.
    free = member[:, ~features.is_included]
    order = np.lexsort((-features.gains, -frequencies))
    parts = np.where(
        frequencies >= threshold,
        "core",
        np.where(frequencies <= negligible, "rare", "unstable"),
    )
    return Stability(
        k=full.k,
        frequencies=features.spread(frequencies),
        supports=supports,
        index=nogueira_index(free) if free.size else 1.0,
        interval=nogueira_interval(free, level) if free.size else (1.0, 1.0),
        level=float(level),
        jaccard=mean_jaccard([set(np.flatnonzero(row).tolist()) for row in member]),
        core=_part(features, order[parts[order] == "core"]),
        unstable=_part(features, order[parts[order] == "unstable"]),
        rare=_part(features, order[parts[order] == "rare"]),
        threshold=float(threshold),
        negligible=float(negligible),
        expected_false=_expected_false(free, threshold),
        support=result.support,
        result=replace(result, seconds=monitor.seconds),
        full=full,
        table=_table(features, order, frequencies, parts, len(supports), level, full, result),
        n_subsamples=len(supports),
        status=gathered.status,
        message=_message(gathered, search.n_truncated, n_subsamples),
        method=search.name,
        seconds=monitor.seconds,
    )


def numbered_groups(problem: Problem, groups: Any) -> Indices:
    """Return the number of the group of each row, of which there must be enough to be halved."""
    if problem.rows is None:
        raise InputError(
            "groups needs the rows in memory, and this table is passed over; call "
            "problem.in_memory() first"
        )
    numbers = number_groups(problem, row_groups(groups, problem.rows.n_rows))
    there = int(numbers.max()) + 1
    if there < LEAST_GROUPS:
        raise InputError(
            f"groups has {there} group{'s' * (there != 1)} of rows of weight above zero, and half "
            f"of the groups can be drawn of {LEAST_GROUPS} or more"
        )
    return numbers


def check_enough(gathered: HalfSampleSupports) -> None:
    """Raise where fewer than two half-samples gave a choice."""
    if len(gathered.supports) >= 2:
        return
    if gathered.status == Status.INTERRUPTED:
        raise KeyboardInterrupt
    raise InputError(
        f"of {gathered.unfit + len(gathered.supports)} half-samples {gathered.unfit} have a "
        f"constant target, or no columns that keep the constraints: there are too few rows to "
        f"be halved"
    )


def _message(gathered: HalfSampleSupports, n_truncated: int, n_subsamples: int) -> str:
    done = len(gathered.supports)
    words = []
    if gathered.status == Status.TIME_LIMIT:
        words.append(f"the time limit ended it after {done} of {n_subsamples} half-samples")
    elif gathered.status == Status.INTERRUPTED:
        words.append(f"stopped by the user after {done} of {n_subsamples} half-samples")
    if gathered.unfit:
        words.append(
            f"{gathered.unfit} half-samples were left out: their target is constant, or no columns "
            f"keep the constraints"
        )
    if n_truncated:
        words.append(
            f"in {n_truncated} of {done} half-samples fewer than k columns could be told apart"
        )
    return "; ".join(words)


def _part(features: Features, which: Indices) -> FrequencyGroup:
    indices = tuple(int(features.problem.input_columns[features.first[f]]) for f in which)
    return FrequencyGroup(tuple(features.name(int(f)) for f in which), indices)


def _expected_false(free: Floats, threshold: float) -> float:
    if free.size == 0:
        return 0.0
    chosen = float(free.sum(axis=1).mean())
    return chosen**2 / ((2.0 * threshold - 1.0) * free.shape[1])


def _table(
    features: Features,
    order: Indices,
    frequencies: Floats,
    parts: npt.NDArray[np.str_],
    n: int,
    level: float,
    full: Result,
    result: Result,
) -> RecordsTable:
    errors = np.sqrt(frequencies * (1.0 - frequencies) / n)
    low, high = wilson(frequencies, n, level)
    in_full, selected = features.members([full.support, result.support]) > 0
    origins = features.problem.input_columns
    return RecordsTable(
        COLUMNS,
        [
            (
                features.name(int(f)), origins[features.first[f]], frequencies[f], errors[f],
                low[f], high[f], str(parts[f]), in_full[f], selected[f],
            )
            for f in order
        ],
    )  # fmt: skip
