"""CFS: its merit, its search against all subsets, and how it comes to exactly k."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy.stats import entropy

from exactk import Problem, Result, Status, solve, solve_path
from exactk.papers.filters.cfs import CFS, merit
from exactk.utils.monitor import Monitor, Progress
from tests.oracles.brute import make_classes

Array = np.ndarray[Any, Any]


def information(a: Array, b: Array) -> float:
    """Mutual information of two columns of levels, in nats, by definition."""
    joint = np.zeros((a.max() + 1, b.max() + 1))
    np.add.at(joint, (a, b), 1 / len(a))
    independent, seen = np.outer(joint.sum(axis=1), joint.sum(axis=0)), joint > 0
    return float((joint[seen] * np.log(joint[seen] / independent[seen])).sum())


def uncertainty(a: Array, b: Array) -> float:
    sizes = [entropy(np.unique(x, return_counts=True)[1]) for x in (a, b)]
    return 2 * information(a, b) / sum(sizes)


class Brute:
    """The merit of every subset by definition."""

    def __init__(self, X: Array, y: Array) -> None:
        low, high = (X.mean(axis=0) + sign * 0.5 * X.std(axis=0) for sign in (-1, 1))
        L = np.where(X < low, 0, np.where(X > high, 2, 1))
        self.d = X.shape[1]
        self.cf = np.array([uncertainty(x, y) for x in L.T])
        self.ff = np.array([[uncertainty(a, b) for a in L.T] for b in L.T])

    def merit(self, S: Any) -> float:
        S = list(S)
        k = len(S)
        r_cf = self.cf[S].mean()
        pairs = [self.ff[a, b] for a, b in combinations(S, 2)]
        r_ff = np.mean(pairs) if pairs else 0.0
        return float(k * r_cf / np.sqrt(k + k * (k - 1) * r_ff))

    def best(self, k: int) -> float:
        return max(self.merit(S) for S in combinations(range(self.d), k))

    def greedy(self, S: list[int], k: int) -> list[int]:
        S = list(S)
        while len(S) < k:
            S.append(max(set(range(self.d)) - set(S), key=lambda p: self.merit([*S, p])))
        return S


def run(X: Array, y: Array, k: int, **options: Any) -> Result:
    return solve(Problem.from_arrays(X, y), k, "cfs", **options)


# A worked example: outlook, temperature, humidity and wind, their correlations with the class and
# with each other, and the merits of subsets by hand to three digits, such as
# 0.315 / √(2 + 2·0.022) = 0.220 for outlook and humidity.
GOLF_CLASS = {"O": 0.130, "T": 0.025, "H": 0.185, "W": 0.081}
GOLF_PAIRS = {"OT": 0.116, "OH": 0.022, "OW": 0.007, "TH": 0.248, "TW": 0.028, "HW": 0.000}


@pytest.mark.parametrize(
    ("subset", "value"),
    [("H", 0.185), ("OH", 0.220), ("TH", 0.133), ("HW", 0.188), ("OHW", 0.226)],
)
def test_the_worked_example(subset: str, value: float) -> None:
    pairs = sum(GOLF_PAIRS["".join(pair)] for pair in combinations(subset, 2))
    found = merit(len(subset), sum(GOLF_CLASS[name] for name in subset), pairs)
    assert found == pytest.approx(value, abs=6e-4)


@pytest.mark.parametrize("seed", range(6))
def test_with_patience_for_all_subsets_the_best_is_found(seed: int) -> None:
    X, y = make_classes(50, 8, 3, seed=seed)
    brute = Brute(X, y)
    for k in (1, 2, 4, 6, 8):
        result = run(X, y, k, patience=1000)
        assert result.trace[-1] == pytest.approx(brute.best(k), rel=1e-9)
        assert brute.merit(result.support) == pytest.approx(brute.best(k), rel=1e-9)


def test_the_default_patience_finds_the_best_in_most() -> None:
    hits, tries = 0, 0
    for seed in range(12):
        X, y = make_classes(50, 9, 3, seed=100 + seed)
        brute = Brute(X, y)
        for k in (2, 3, 5):
            found, best = brute.merit(run(X, y, k).support), brute.best(k)
            assert found <= best + 1e-9
            hits, tries = hits + (found > best - 1e-9), tries + 1
    assert hits > 0.8 * tries, (hits, tries)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_trace_is_the_merit_along_the_order(seed: int) -> None:
    X, y = make_classes(60, 12, 3, seed=seed)
    brute, result = Brute(X, y), run(X, y, 7)
    expected = [brute.merit(result.order[:i]) for i in range(1, 8)]
    np.testing.assert_allclose(result.trace, expected, rtol=1e-9)
    assert result.scores is None
    assert result.status == Status.CONVERGED


def test_beyond_the_best_size_columns_are_added_one_by_one() -> None:
    # Two columns tell the class, the others are noise: the best merit has few columns.
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300)
    X = rng.standard_normal((300, 14))
    X[:, [3, 8]] += 2.0 * y[:, None]
    brute, result = Brute(X, y), run(X, y, 10, patience=1)
    peak = int(np.argmax(result.trace)) + 1
    assert 2 <= peak <= 6
    assert {3, 8} <= set(result.order[:peak].tolist())
    assert result.order.tolist() == brute.greedy(result.order[:peak].tolist(), 10)
    assert (np.diff(result.trace[peak - 1 :]) < 0).all()


def test_more_patience_is_never_worse() -> None:
    for seed in range(6):
        X, y = make_classes(40, 12, 4, seed=seed)
        merits = [run(X, y, 4, patience=patience).trace[-1] for patience in (1, 5, 50, 1000)]
        assert (np.diff(merits) >= -1e-12).all()


def test_a_near_copy_is_left_out() -> None:
    # Column 1 is column 0 with a little noise; column 2 tells less of the class, but it is new.
    rng = np.random.default_rng(3)
    y = rng.integers(0, 2, 400)
    X = rng.standard_normal((400, 3))
    X[:, 0] += 2.0 * y
    X[:, 1] = X[:, 0] + 0.05 * rng.standard_normal(400)
    X[:, 2] += 1.6 * y
    gains = solve(Problem.from_arrays(X, y), 2, "infogain").scores
    assert gains[2] < min(gains[:2])
    assert 2 in run(X, y, 2).support


def test_whole_weights_are_repeated_rows() -> None:
    X, y = make_classes(70, 9, 3, seed=1)
    w = np.random.default_rng(1).integers(0, 4, 70)
    weighted = solve(Problem.from_arrays(X, y, sample_weight=w), 4, "cfs", patience=1000)
    brute = Brute(np.repeat(X, w, axis=0), np.repeat(y, w))
    assert weighted.trace[-1] == pytest.approx(brute.best(4), rel=1e-9)


def test_a_path_has_the_answer_of_each_size() -> None:
    X, y = make_classes(60, 10, 3, seed=2)
    problem = Problem.from_arrays(X, y)
    for result in solve_path(problem, 7, "cfs"):
        alone = solve(problem, result.k, "cfs")
        assert result.order.tolist() == alone.order.tolist()
        assert result.trace == alone.trace


class _Stop(Monitor):
    """Time is up, or Ctrl-C comes, after some reports."""

    def __init__(self, after: int, interrupt: bool) -> None:
        super().__init__(on_progress=self._see)
        self.after, self.interrupt, self.seen = after, interrupt, 0

    def _see(self, progress: Progress) -> None:
        self.seen += 1
        if self.interrupt and self.seen >= self.after:
            raise KeyboardInterrupt

    @property
    def expired(self) -> bool:
        return not self.interrupt and self.seen >= self.after


@pytest.mark.parametrize("interrupt", [False, True])
@pytest.mark.parametrize("after", [1, 2, 4, 9])
def test_when_stopped_the_subset_is_filled_up(interrupt: bool, after: int) -> None:
    X, y = make_classes(80, 15, 3, seed=6)
    problem, brute = Problem.from_arrays(X, y), Brute(X, y)
    answer = CFS().run(problem, 12, _Stop(after, interrupt))
    assert answer.status == (Status.INTERRUPTED if interrupt else Status.TIME_LIMIT)
    assert len(set(answer.support)) == 12
    kept = len(answer.trace)
    assert kept >= 1
    np.testing.assert_allclose(
        answer.trace, [brute.merit(answer.support[:i]) for i in range(1, kept + 1)], rtol=1e-9
    )
    rest = [brute.merit([*answer.support[:kept], p]) for p in answer.support[kept:]]
    assert (np.diff(rest) <= 1e-9).all()


def test_a_path_that_is_stopped_has_every_size() -> None:
    X, y = make_classes(80, 15, 3, seed=6)
    problem = Problem.from_arrays(X, y)
    answers = list(CFS().run_path(problem, 9, _Stop(12, interrupt=False)))
    assert [len(set(answer.support)) for answer in answers] == list(range(1, 10))
    statuses = [answer.status for answer in answers]
    assert statuses[0] == Status.CONVERGED
    assert statuses[-1] == Status.TIME_LIMIT
    ended = statuses.index(Status.TIME_LIMIT)
    for answer in answers[ended + 1 :]:
        assert list(answer.support[:ended]) == list(answers[ended].support[:ended])
