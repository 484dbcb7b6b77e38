"""mRMR against its definition and against two other libraries, where they keep to it."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.feature_selection import f_classif

from exactk import Problem, Result, Status, solve, solve_path
from exactk.papers.filters.mrmr import MRMR
from exactk.utils.monitor import Monitor, Progress
from tests.oracles.brute import make_classes

Array = np.ndarray[Any, Any]
EVERY = [(scheme, measure) for scheme in ("mid", "miq") for measure in ("mi", "f")]


def three_levels(X: Array) -> Array:
    low, high = (X.mean(axis=0) + sign * 0.5 * X.std(axis=0) for sign in (-1, 1))
    return np.where(X < low, 0, np.where(X > high, 2, 1))


def information(a: Array, b: Array) -> float:
    """Mutual information of two columns of levels, in nats, by definition."""
    joint = np.zeros((a.max() + 1, b.max() + 1))
    np.add.at(joint, (a, b), 1 / len(a))
    independent, seen = np.outer(joint.sum(axis=1), joint.sum(axis=0)), joint > 0
    return float((joint[seen] * np.log(joint[seen] / independent[seen])).sum())


def by_definition(X: Array, y: Array, k: int, scheme: str, measure: str) -> tuple[list[int], Any]:
    """Every criterion from scratch, each step; and the criteria of the last step."""
    d, L = X.shape[1], three_levels(X)
    if measure == "mi":
        D = np.array([information(L[:, p], y) for p in range(d)])
        R = np.array([[information(L[:, p], L[:, q]) for q in range(d)] for p in range(d)])
    else:
        D, R = f_classif(X, y)[0], np.abs(np.corrcoef(X.T))
    if scheme == "miq":
        R = np.maximum(R, 0.001)
    order, trace = [int(np.argmax(D))], [D.max()]
    while len(order) < k:
        mean = R[:, order].mean(axis=1)
        value = D - mean if scheme == "mid" else D / mean
        value[order] = -np.inf
        order.append(int(np.argmax(value)))
        trace.append(value.max())
    return order, trace


def run(X: Array, y: Array, k: int, **options: Any) -> Result:
    return solve(Problem.from_arrays(X, y), k, "mrmr", **options)


@pytest.mark.parametrize(("scheme", "measure"), EVERY)
@pytest.mark.parametrize("load", [load_wine, load_breast_cancer])
def test_by_definition(load: Any, scheme: str, measure: str) -> None:
    X, y = load(return_X_y=True)
    order, trace = by_definition(X, y, 12, scheme, measure)
    result = run(X, y, 12, scheme=scheme, measure=measure)
    assert result.order.tolist() == order
    np.testing.assert_allclose(result.trace, trace, rtol=1e-8)
    assert result.status == Status.CONVERGED
    assert result.n_iter == 12


@pytest.mark.parametrize(("scheme", "measure"), EVERY)
def test_whole_weights_are_repeated_rows(scheme: str, measure: str) -> None:
    X, y = make_classes(70, 12, 3, seed=1)
    w = np.random.default_rng(1).integers(0, 4, 70)
    weighted = solve(
        Problem.from_arrays(X, y, sample_weight=w), 6, "mrmr", scheme=scheme, measure=measure
    )
    order, trace = by_definition(np.repeat(X, w, axis=0), np.repeat(y, w), 6, scheme, measure)
    assert weighted.order.tolist() == order
    np.testing.assert_allclose(weighted.trace, trace, rtol=1e-8)


@pytest.mark.peers
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_fcq_is_that_of_mrmr_selection(seed: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import mrmr as peer
        import pandas as pd

        X, y = make_classes(80, 30, 3, seed=seed)
        theirs = peer.mrmr_classif(
            pd.DataFrame(X), pd.Series(y), 12, relevance="f", redundancy="c", denominator="mean",
            n_jobs=1, show_progress=False,
        )  # fmt: skip
    assert run(X, y, 12, scheme="miq", measure="f").order.tolist() == theirs


@pytest.mark.peers
def test_information_is_that_of_skfeature() -> None:
    """Its mutual information in bits, and its greedy loop as far as that keeps to the definition.

    The fork skfeature-chappers weighs the sum of redundancies by a constant, 0.8 unless told, where
    the mean has 1/|S|, and its ``mrmr`` gives back ranks of ranks: with a weight of 1 its loop
    agrees for the first two columns, and beyond them it answers another question.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from skfeature.function.information_theoretical_based.LCSI import lcsi
        from skfeature.utility import entropy_estimators as estimators

        for seed in range(4):
            X, y = make_classes(60, 12, 3, seed=seed)
            L = three_levels(X)
            result = run(X, y, 2)
            theirs = lcsi(L, y, mode="index", beta=1.0, gamma=0.0, n_selected_features=2)
            assert result.order.tolist() == list(theirs)
            bits = estimators.midd(L[:, result.order[0]], y)
            assert result.trace[0] == pytest.approx(bits * np.log(2), rel=1e-9)


def test_a_copy_with_noise_is_redundant() -> None:
    # Column 1 is column 0 with a little noise; column 2 tells less of the class, but it is new.
    rng = np.random.default_rng(3)
    y = rng.integers(0, 2, 400)
    X = rng.standard_normal((400, 3))
    X[:, 0] += 2.0 * y
    X[:, 1] = X[:, 0] + 0.05 * rng.standard_normal(400)
    X[:, 2] += 1.6 * y
    gains = solve(Problem.from_arrays(X, y), 2, "infogain").scores
    assert gains[2] < min(gains[:2])
    for scheme, measure in EVERY:
        if (scheme, measure) == ("mid", "f"):
            continue  # F is hundreds where a correlation is at most one: a difference sees only F.
        assert 2 in run(X, y, 2, scheme=scheme, measure=measure).support


@pytest.mark.parametrize(("scheme", "measure"), EVERY)
def test_scores_do_not_rise_along_the_order(scheme: str, measure: str) -> None:
    X, y = make_classes(60, 20, 3, seed=4)
    result = run(X, y, 8, scheme=scheme, measure=measure)
    scores = result.scores
    assert np.isfinite(scores).all()
    assert (np.diff(scores[result.order]) <= 0).all()
    others = np.setdiff1d(np.arange(20), result.support)
    assert scores[others].max() <= scores[result.order[-1]]
    assert np.argsort(-scores).tolist()[: result.k] == result.order.tolist()


def test_no_redundancy_at_all_is_no_division_by_zero() -> None:
    # A full factorial: every pair of columns is independent, and two of them make the class.
    X = np.array(np.meshgrid(*[[0.0, 1.0]] * 4)).reshape(4, -1).T
    y = (X[:, 0] + X[:, 1]).astype(int)
    for measure in ("mi", "f"):
        result = run(X, y, 4, scheme="miq", measure=measure)
        assert set(result.order[:2].tolist()) == {0, 1}
        assert np.isfinite(result.trace).all()
        assert result.trace[1] == pytest.approx(1000 * result.trace[0])


def test_separated_classes_and_as_many_classes_as_rows() -> None:
    X, y = make_classes(30, 5, 3, seed=5)
    X[:, 3] = y
    for scheme in ("mid", "miq"):
        result = run(X, y, 3, scheme=scheme, measure="f")
        assert result.order[0] == 3
        assert np.isfinite(result.scores).all()
    alone = solve(
        Problem.from_arrays(X[:6], np.arange(6), task="classification"), 2, "mrmr", measure="f"
    )
    assert alone.k == 2


class _Stop(Monitor):
    """Time is up, or Ctrl-C comes, after some columns."""

    def __init__(self, after: int, interrupt: bool) -> None:
        super().__init__(on_progress=self._see)
        self.after, self.interrupt, self.seen = after, interrupt, []

    def _see(self, progress: Progress) -> None:
        self.seen.append(progress)
        if self.interrupt and len(self.seen) >= self.after:
            raise KeyboardInterrupt

    @property
    def expired(self) -> bool:
        return not self.interrupt and len(self.seen) >= self.after


@pytest.mark.parametrize("interrupt", [False, True])
@pytest.mark.parametrize("after", [1, 3])
def test_when_stopped_the_rest_goes_by_the_criterion(interrupt: bool, after: int) -> None:
    X, y = make_classes(80, 15, 3, seed=6)
    problem = Problem.from_arrays(X, y)
    full = MRMR().run(problem, 7, Monitor())
    answer = MRMR().run(problem, 7, _Stop(after, interrupt))
    assert answer.status == (Status.INTERRUPTED if interrupt else Status.TIME_LIMIT)
    assert answer.support[:after] == full.support[:after]
    assert answer.trace == full.trace[:after]
    assert len(set(answer.support)) == 7
    scores = answer.scores[list(answer.support)]
    assert (np.diff(scores) <= 0).all()


def test_stopped_before_the_first_column_there_is_no_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("exactk.papers.filters.mrmr.best_of", stop)
    with pytest.raises(KeyboardInterrupt):
        MRMR().run(Problem.from_arrays(*make_classes()), 2, Monitor())


def test_progress_and_path() -> None:
    X, y = make_classes(50, 9, 3, seed=7)
    problem, monitor = Problem.from_arrays(X, y), _Stop(99, interrupt=False)
    answer = MRMR().run(problem, 5, monitor)
    assert [(seen.done, seen.total) for seen in monitor.seen] == [(i, 5) for i in range(1, 6)]
    assert tuple(seen.objective for seen in monitor.seen) == answer.trace
    path = solve_path(problem, 5, "mrmr")
    for k, result in enumerate(path, start=1):
        assert result.order.tolist() == list(answer.support[:k])
        assert result.trace == answer.trace[:k]


def test_more_columns_than_differ() -> None:
    X, y = make_classes(40, 3, 2, seed=8)
    with pytest.warns(UserWarning, match="independent"):
        assert run(np.hstack([X, 2 * X]), y, 5).k == 5
