"""Mean ranks, and how far apart they must lie to be told apart (Friedman, Nemenyi)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, sqrt
from statistics import median

import numpy as np
from scipy.stats import chi2, rankdata, studentized_range

from exactk.papers.experiments.page.labels import higher_is_better
from exactk.papers.experiments.page.study import Study
from exactk.types import Floats

__all__ = ["MethodRanking", "critical_difference", "friedman", "ranking", "ties"]


ALPHA = 0.05
# Accuracies that differ by less are equal: they come from counts.
DIGITS = 9


@dataclass(frozen=True)
class MethodRanking:
    """Methods of a study by mean rank.

    Attributes
    ----------
    methods : list of str
        The best first.
    ranks : list of float
        Mean over data sets of the mean rank within a data set.
    blocks : int
        Data sets.
    places : int
        Comparisons: data set, k and measure.
    means : list of float or None
        Of the measures over the places that have one.
    wins : list of float
        Places where it is best; a tie is shared.
    seconds : list of float or None
        Median over data sets and sizes of the mean time.
    failed, not_run : list of int
        Places without a number: because a run failed or was cut off; because there was none.
    critical : float or None
        Nemenyi's critical difference; None with fewer than two methods or data sets.
    p_value : float or None
        Friedman's test that all methods are alike.
    """

    methods: list[str]
    ranks: list[float]
    blocks: int
    places: int
    means: list[float | None]
    wins: list[float]
    seconds: list[float | None]
    failed: list[int]
    not_run: list[int]
    critical: float | None
    p_value: float | None


def friedman(ranks: Floats) -> float | None:
    """Return the p-value of Friedman's test for ranks by block (rows) and method (columns).

    The statistic is the one for any scores within blocks, so that it also holds for ties and for
    ranks that are means over several comparisons in a block.

    Examples
    --------
    >>> round(friedman(np.array([[1.0, 2, 3]] * 6)), 5)
    0.00248
    """
    blocks, methods = ranks.shape
    centred = ranks - ranks.mean(axis=1, keepdims=True)
    spread = float((centred**2).sum())
    if blocks < 2 or methods < 2 or spread <= 0:
        return None
    statistic = (methods - 1) * float((centred.sum(axis=0) ** 2).sum()) / spread
    return float(chi2.sf(statistic, methods - 1))


def critical_difference(methods: int, blocks: int) -> float | None:
    """Return Nemenyi's critical difference of mean ranks.

    Examples
    --------
    >>> round(critical_difference(5, 10), 3)
    1.929
    """
    if methods < 2 or blocks < 2:
        return None
    quantile = float(studentized_range.ppf(1 - ALPHA, methods, inf)) / sqrt(2)
    return quantile * sqrt(methods * (methods + 1) / (6 * blocks))


def ties(ranks: Sequence[float], critical: float) -> list[tuple[int, int]]:
    """Return the longest runs of sorted ranks that the critical difference spans, first and last.

    Examples
    --------
    >>> ties([1.0, 1.5, 2.4, 4.0], 1.0)
    [(0, 1), (1, 2)]
    """
    found: list[tuple[int, int]] = []
    for first, rank in enumerate(ranks):
        last = max(i for i, other in enumerate(ranks) if other - rank <= critical)
        if last > first and (not found or last > found[-1][1]):
            found.append((first, last))
    return found


def ranking(study: Study, measures: Sequence[str]) -> MethodRanking | None:
    """Rank the methods of a study at each data set, k and measure; None without any number.

    A method without a number shares the last ranks of that place. Ranks are averaged within a data
    set first: its sizes and classifiers are no independent trials.
    """
    methods = study.selection_methods
    places = [
        (dataset, k, measure)
        for dataset in study.datasets
        for k in study.sizes
        for measure in measures
        if any(study.summary(dataset, method, k, measure) for method in methods)
    ]
    if not places:
        return None
    table = np.array([_row(study, *place) for place in places])
    ranks = rankdata(np.nan_to_num(-table.round(DIGITS), nan=inf), axis=1)
    names = np.array([dataset for dataset, _, _ in places])
    blocks = np.array([ranks[names == name].mean(axis=0) for name in dict.fromkeys(names)])
    best = ranks == ranks.min(axis=1, keepdims=True)
    wins = (best / best.sum(axis=1, keepdims=True)).sum(axis=0)
    mean = blocks.mean(axis=0)
    order = [int(j) for j in np.argsort(mean, kind="stable")]
    lacking = {
        j: [study.missing(d, methods[j], k)[0] for (d, k, _), row in zip(places, table, strict=True)
            if np.isnan(row[j])]
        for j in order
    }  # fmt: skip
    return MethodRanking(
        methods=[methods[j] for j in order],
        ranks=[float(mean[j]) for j in order],
        blocks=len(blocks),
        places=len(places),
        means=[_mean(table[:, j], measures) for j in order],
        wins=[float(wins[j]) for j in order],
        seconds=[_seconds(study, methods[j]) for j in order],
        failed=[sum(word != "not run" for word in lacking[j]) for j in order],
        not_run=[sum(word == "not run" for word in lacking[j]) for j in order],
        critical=critical_difference(len(methods), len(blocks)),
        p_value=friedman(blocks),
    )


def _row(study: Study, dataset: str, k: int, measure: str) -> list[float]:
    """Values at one place, turned so that higher is better."""
    sign = -1.0 if higher_is_better(measure) is False else 1.0
    found = [study.summary(dataset, method, k, measure) for method in study.selection_methods]
    return [sign * one.mean if one else float("nan") for one in found]


def _mean(column: Floats, measures: Sequence[str]) -> float | None:
    have = column[~np.isnan(column)]
    sign = -1.0 if higher_is_better(measures[0]) is False else 1.0
    return sign * float(have.mean()) if len(have) else None


def _seconds(study: Study, method: str) -> float | None:
    found = [study.summary(d, method, k, "seconds") for d in study.datasets for k in study.sizes]
    times = [one.mean for one in found if one]
    return median(times) if times else None
