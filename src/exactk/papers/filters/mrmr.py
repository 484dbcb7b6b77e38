"""mRMR: columns that tell much of the classes and little of each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar, Literal

import numpy as np

from exactk.papers.filters.base import Filter, Ranking, by_score, scatters
from exactk.papers.filters.discretise import BINS, WIDTH, LevelTable, best_of
from exactk.params import Check, Choice
from exactk.problem.problem import Problem
from exactk.result import Status
from exactk.types import Floats, Indices
from exactk.utils.monitor import Monitor

__all__ = ["MRMR"]

Pairs = Callable[[int], Floats]

# Least redundancy of two columns in a quotient: less is no more than chance, and zero would make
# any column the best.
LEAST_REDUNDANCY = 1e-3


class MRMR(Filter):
    """Take columns one after the other, each with the most relevance beside its redundancy.

    The first column is the most relevant. With S the columns taken so far, D_p the relevance of
    column p for the classes and R_ps the redundancy of two columns, the next has the largest

    * "mid": D_p − mean_{s∈S} R_ps  (Peng et al., eq. 7), or
    * "miq": D_p / mean_{s∈S} R_ps  (Ding & Peng).

    Measures are mutual information of levels, D_p = I(x_p; y) and R_ps = I(x_p; x_s) in nats, or
    the F statistic and the absolute correlation ("f": FCD and FCQ of Ding & Peng). Sums over S are
    kept, and R_ps for all p comes from one matrix product of indicators of levels, or one column
    of the Gram matrix: a step costs about n·Σ(L−1)² or n·d multiplications. Nothing is guaranteed
    but that each step is the best single one.

    Parameters
    ----------
    scheme : {"mid", "miq"}
        Difference or quotient. In a quotient no R_ps counts as less than 0.001.
    measure : {"mi", "f"}
        Mutual information of levels, or F statistic and correlation of the columns as they are.
    bins : {"sd", "values"} or int
        How columns become levels, for "mi": below, within and above mean ± width·sd; every distinct
        value, for columns that are discrete already; or that many bins of equal frequency.
    width : float
        For "sd". Half a standard deviation is the choice of Ding & Peng; at any width below 1
        every column has two levels at least.

    Notes
    -----
    Cost: O(n·d·L²) for each of the k columns, L the levels, or O(n·d) with "f". Memory: a byte for
    each value of the table, and indicators of levels where they fit.

    Guaranteed: exactly k columns, each the best single step by the criterion. Nothing of the whole
    set.

    The trace is the criterion of each column as it was taken, which may rise. Scores are therefore
    −1 for the first column, −2 for the second, and so on; after those that were taken come the
    others in the order of their criterion beside all taken but the last.

    When time is up, or the user stops it, the places left go to the highest criteria at that
    moment.

    The authors' program looks at the thousand most relevant columns only; here all take part. The
    least redundancy is that of the package mrmr-selection, which computes "miq" of "f". Of
    equal criteria the more relevant column is taken, and of equal columns that of the lowest index.
    So it is where one column tells all of the classes: beside it every other has a difference
    of zero.

    References
    ----------
    H. Peng, F. Long, C. Ding, "Feature selection based on mutual information: criteria of
    max-dependency, max-relevance, and min-redundancy", IEEE TPAMI 27(8), 2005.

    C. Ding, H. Peng, "Minimum redundancy feature selection from microarray gene expression data",
    Journal of Bioinformatics and Computational Biology 3(2), 2005.

    Examples
    --------
    >>> import exactk
    >>> from sklearn.datasets import load_breast_cancer
    >>> problem = exactk.Problem.from_arrays(*load_breast_cancer(return_X_y=True))
    >>> exactk.solve(problem, 4, method="mrmr").order
    array([22, 24, 27, 13])
    >>> exactk.solve(problem, 4, method="mrmr", scheme="miq", measure="f").order
    array([27, 22,  7, 20])
    """

    checks: ClassVar[Mapping[str, Check]] = {
        "scheme": Choice(options=("mid", "miq")),
        "measure": Choice(options=("mi", "f")),
        "bins": BINS,
        "width": WIDTH,
    }

    def __init__(
        self,
        scheme: Literal["mid", "miq"] = "mid",
        measure: Literal["mi", "f"] = "mi",
        bins: str | int = "sd",
        width: float = 0.5,
    ) -> None:
        self.scheme = scheme
        self.measure = measure
        self.bins = bins
        self.width = width

    def rank(self, problem: Problem, k: int, monitor: Monitor) -> Ranking:  # noqa: D102
        D, pairs = self._measures(problem)
        left = np.arange(len(D))
        k = min(k, len(left))
        criterion, redundancy = D.copy(), np.zeros(len(D))
        taken: list[int] = []
        trace: list[float] = []
        status = Status.CONVERGED
        try:
            while True:
                place = best_of(criterion[left], D[left])
                taken.append(int(left[place]))
                trace.append(float(criterion[left[place]]))
                left = np.delete(left, place)
                monitor.report(len(taken), k, trace[-1])
                if len(taken) == k:
                    break
                if monitor.expired:
                    status = Status.TIME_LIMIT
                    break
                redundancy += self._least(pairs(taken[-1]))
                criterion = self._criterion(D, redundancy / len(taken))
        except KeyboardInterrupt:
            if not trace:
                raise
            status = Status.INTERRUPTED
            # Wherever it was stopped, what the trace knows was taken.
            taken = taken[: len(trace)]
            left = np.setdiff1d(np.arange(len(D)), taken)
        return _ranking(taken, left, trace, criterion, status)

    def _measures(self, problem: Problem) -> tuple[Floats, Pairs]:
        """Relevance of all candidates, and the redundancy of one with all."""
        if self.measure == "mi":
            table = LevelTable(problem, self.bins, self.width)
            return table.relevance, table.information
        S = problem.candidates
        root = np.sqrt(problem.scatter[S])

        def correlations(p: int) -> Floats:
            found: Floats = np.abs(problem.gram_rows([S[p]])[0, S]) / (root * root[p])
            return found

        return _f_statistic(problem), correlations

    def _least(self, redundancy: Floats) -> Floats:
        return redundancy if self.scheme == "mid" else np.maximum(redundancy, LEAST_REDUNDANCY)

    def _criterion(self, D: Floats, R: Floats) -> Floats:
        return D - R if self.scheme == "mid" else D / R


def _ranking(
    taken: list[int], left: Indices, trace: list[float], criterion: Floats, status: Status
) -> Ranking:
    """All candidates: those that were taken, then the others by what they are worth beside them."""
    others = left[by_score(criterion[left])]
    order = np.concatenate([np.array(taken, dtype=np.intp), others])
    scores = np.empty(len(order))
    scores[order] = -np.arange(1.0, len(order) + 1.0)
    return Ranking(order, scores, trace, status)


def _f_statistic(problem: Problem) -> Floats:
    """F of the analysis of variance."""
    between, within = scatters(problem)
    # As many classes as rows leave no degree of freedom, and weights may be shares, not counts.
    degrees = problem.weight - problem.n_outputs
    degrees = degrees if degrees > 0 else problem.weight
    F: Floats = (between / (problem.n_outputs - 1)) / (within / degrees)
    return F
