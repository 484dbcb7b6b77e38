"""Frequencies at every size: those of `stability` at each, whatever the order of the rows."""

from __future__ import annotations

import time

import numpy as np
import pytest

from exactk import Problem, stability
from exactk.errors import UnknownOptionError
from exactk.model_selection.frequencies import frequencies_by_size
from exactk.model_selection.subsampling import HalfSampleSearch
from exactk.result import Status
from exactk.search.subsampling import half_samples
from exactk.utils.set_similarity import nogueira_index
from tests.support import says


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 7))
    X[:, 1] = X[:, 0] + rng.normal(size=80)
    y = np.where(X[:, 0] + X[:, 1] + X[:, 3] + rng.normal(size=80) > 0, "yes", "no")
    return X, y


@pytest.fixture(scope="module")
def problem(table):
    return Problem.from_arrays(*table, feature_names=list("abcdefg"))


def by_name(found, k):
    return dict(zip(found.names, found.values[found.sizes.index(k)].tolist(), strict=True))


# What chooses k columns and what chooses a path of them agree where columns enter one by one.
@pytest.mark.parametrize("method", ["greedy", "fisher", "mrmr"])
def test_frequencies_are_those_of_stability_at_each_size(problem, method):
    found = frequencies_by_size(problem, 4, n_subsamples=12, method=method, random_state=3)
    assert found.sizes == [1, 2, 3, 4]
    assert (found.n_subsamples, found.status) == (12, Status.CONVERGED)
    for k in found.sizes:
        one = stability(problem, k, n_subsamples=12, method=method, random_state=3)
        expected = {row["feature"]: row["frequency"] for row in one.table}
        assert by_name(found, k) == pytest.approx(expected)
        assert found.indices[k - 1] == pytest.approx(one.index)


def test_every_set_is_as_good_as_that_of_a_single_size(problem):
    # A path hands good sets on from size to size, and may end below the search of one size.
    k_max, seed = 4, np.random.default_rng(5)
    halves = list(half_samples(problem, seed, n_subsamples=6, with_rows=False, groups=None))
    search = HalfSampleSearch("exchange", None, 5, {})
    for half in halves:
        path = search.path_in_half(half, k_max)
        for k, support in enumerate(path, start=1):
            (single,) = search.in_half(half, k)
            assert half.objective(support) <= half.objective(single) * (1 + 1e-9)


def test_counts_by_hand(problem):
    found = frequencies_by_size(problem, 3, n_subsamples=10, method="greedy", random_state=1)
    halves = list(
        half_samples(
            problem, np.random.default_rng(1), n_subsamples=10, with_rows=False, groups=None
        )
    )
    member = np.zeros((10, 7))
    for row, half in zip(member, halves, strict=True):
        chosen: list[int] = []
        for _ in range(2):
            rest = [j for j in range(7) if j not in chosen]
            chosen.append(min(rest, key=lambda j: half.objective(np.array(sorted([*chosen, j])))))
        row[chosen] = 1.0
    assert by_name(found, 2) == pytest.approx(
        dict(zip("abcdefg", member.mean(axis=0), strict=True))
    )
    assert found.indices[1] == pytest.approx(nogueira_index(member))


def test_shape_and_table(problem):
    found = frequencies_by_size(problem, 3, n_subsamples=8)
    assert found.values.shape == (3, 7)
    assert np.all((found.values >= 0) & (found.values <= 1))
    # Every set has as many features as its size.
    assert found.values.sum(axis=1) == pytest.approx([1, 2, 3])
    assert sorted(found.names) == list("abcdefg")
    totals = found.values.sum(axis=0)
    assert np.all(np.diff(totals) <= 1e-12)
    table = found.table(2)
    assert list(table[0]) == ["k", "index", *found.names[:2]]
    assert [row["k"] for row in table] == [1, 2, 3]
    assert table[1][found.names[0]] == found.values[1, 0]


def test_order_of_the_rows_does_not_matter(table):
    X, y = table
    order = np.random.default_rng(7).permutation(len(y))
    one = frequencies_by_size(Problem.from_arrays(X, y), 3, n_subsamples=10)
    two = frequencies_by_size(Problem.from_arrays(X[order], y[order]), 3, n_subsamples=10)
    for k in (1, 2, 3):
        assert by_name(one, k) == by_name(two, k)


def test_groups_of_rows_stay_together(problem):
    groups = np.arange(80) // 8
    found = frequencies_by_size(
        problem, 3, n_subsamples=8, method="greedy", groups=groups, random_state=2
    )
    for k in (1, 3):
        one = stability(problem, k, n_subsamples=8, method="greedy", groups=groups, random_state=2)
        expected = {row["feature"]: row["frequency"] for row in one.table}
        assert by_name(found, k) == pytest.approx(expected)
    with says("groups has 2 groups", "4 or more"):
        frequencies_by_size(problem, 3, groups=np.arange(80) % 2)


def test_rules(problem):
    held = problem.with_constraints(include=["g"], exclude=["a"])
    found = frequencies_by_size(held, 3, n_subsamples=8)
    assert all(by_name(found, k)["g"] == 1.0 for k in found.sizes)
    assert "a" not in found.names
    together = problem.with_constraints(feature_groups={"pair": ["a", "b"]})
    found = frequencies_by_size(together, 2, n_subsamples=8)
    assert "pair" in found.names
    assert not {"a", "b"} & set(found.names)
    assert found.values.sum(axis=1) == pytest.approx([1, 2])


def test_all_features_have_no_index(problem):
    found = frequencies_by_size(problem, 7, n_subsamples=4)
    assert np.isnan(found.indices[-1])
    assert found.values[-1].tolist() == [1.0] * 7


def test_a_loss_that_reads_rows(problem):
    found = frequencies_by_size(problem.with_loss("logistic"), 2, n_subsamples=4, random_state=0)
    one = stability(problem.with_loss("logistic"), 1, n_subsamples=4, random_state=0)
    assert by_name(found, 1) == {row["feature"]: row["frequency"] for row in one.table}


def test_time_limit_and_ctrl_c(problem, monkeypatch):
    start = time.perf_counter()
    found = frequencies_by_size(problem, 3, n_subsamples=10_000, time_limit=0.05)
    assert time.perf_counter() - start < 5
    assert found.status == Status.TIME_LIMIT
    assert 2 <= found.n_subsamples < 10_000

    whole, calls = HalfSampleSearch.path_in_half, []

    def stop_at(number):
        def path(self, half, k_max):
            calls.append(half)
            if len(calls) == number:
                raise KeyboardInterrupt
            return whole(self, half, k_max)

        return path

    monkeypatch.setattr(HalfSampleSearch, "path_in_half", stop_at(4))
    found = frequencies_by_size(problem, 3, n_subsamples=10)
    assert (found.status, found.n_subsamples) == (Status.INTERRUPTED, 3)
    calls.clear()
    # There is no frequency of less than two.
    monkeypatch.setattr(HalfSampleSearch, "path_in_half", stop_at(2))
    with pytest.raises(KeyboardInterrupt):
        frequencies_by_size(problem, 3, n_subsamples=10)


def test_bad_arguments(problem):
    with says("problem must be an exactk.Problem, not list"):
        frequencies_by_size([1], 2)
    with says("n_subsamples", "at least 2", "not 1"):
        frequencies_by_size(problem, 2, n_subsamples=1)
    with says("time_limit", "not 0"):
        frequencies_by_size(problem, 2, time_limit=0)
    with says("k=8 is more than the 7 usable columns"):
        frequencies_by_size(problem, 8)
    with pytest.raises(UnknownOptionError, match="method 'exchange' has no option 'lam'"):
        frequencies_by_size(problem, 2, lam=1)
