"""What every filter must keep beyond the contract of all methods: scores, and what they mean."""

from __future__ import annotations

import json

import numpy as np
import pytest

from exactk import Problem, Result, TopKSelector, solve, solve_path
from exactk.methods import registry
from exactk.papers.filters.base import Filter
from tests.oracles.brute import make_classes
from tests.support import over, says

FILTERS = [name for name in registry.names() if issubclass(registry.method_class(name), Filter)]
# Their merit is that of a set of columns, not of one.
OF_SETS = {"cfs"}
every_scorer = pytest.mark.parametrize("name", over(sorted(set(FILTERS) - OF_SETS)))


@every_scorer
@pytest.mark.parametrize("seed", [0, 1])
def test_the_k_highest_scores_are_chosen(name: str, seed: int) -> None:
    X, y = make_classes(60, 12, 3, seed=seed)
    problem = Problem.from_arrays(X, y)
    for k in (1, 4, 12):
        result = solve(problem, k, name)
        assert result.scores is not None
        assert np.isfinite(result.scores).all()
        chosen = result.scores[result.order]
        size = np.abs(result.scores).max()
        assert (np.diff(chosen) <= 1e-12 * size).all()
        others = np.delete(result.scores, result.support)
        assert chosen.min() >= others.max(initial=-np.inf) - 1e-12 * size


@every_scorer
def test_constants_have_no_score_and_copies_that_of_their_original(name: str) -> None:
    X, y = make_classes(60, 5, 3, seed=3)
    X = np.column_stack([X[:, :2], np.full(60, 3.0), X[:, 2:], 7.0 - 2.0 * X[:, 1]])
    result = solve(Problem.from_arrays(X, y), 3, name)
    scores = result.scores
    assert scores is not None
    assert np.isnan(scores).tolist() == [False, False, True, False, False, False, False]
    assert scores[6] == scores[1]
    assert not {2, 6} & set(result.support.tolist())


@every_scorer
def test_scores_reach_every_face(name: str) -> None:
    X, y = make_classes(60, 6, 3, seed=4)
    X[:, 0] = 1.0
    result = solve(Problem.from_arrays(X, y), 2, name)
    assert result.scores is not None
    selector = TopKSelector(2, method=name, ridge=0).fit(X, y)
    np.testing.assert_allclose(selector.scores_, result.scores, rtol=1e-9)
    again = Result.from_json(json.dumps(json.loads(result.to_json()), allow_nan=False))
    np.testing.assert_array_equal(again.scores, result.scores)
    assert again == result
    selector.set_params(method="greedy").fit(X, y)
    assert not hasattr(selector, "scores_")


@every_scorer
def test_a_path_is_cut_from_one_ranking(name: str) -> None:
    X, y = make_classes(60, 9, 3, seed=5)
    path = solve_path(Problem.from_arrays(X, y), 6, name)
    for result in path:
        assert result.order.tolist() == path.at(6).order[: result.k].tolist()


needs_classes = [name for name in registry.names() if registry.method_class(name).needs_classes]


@pytest.mark.parametrize("name", over(needs_classes))
def test_numbers_and_several_labels_are_refused_by_name(name: str) -> None:
    X, y = make_classes(30, 5, 3, seed=6)
    with says(name, "needs classes", "numbers", "exchange"):
        solve(Problem.from_arrays(X, X[:, 0] * 1.5), 2, name)
    several = np.column_stack([y == 0, y < 2])
    with says(name, "needs classes", "several labels a row"):
        solve(Problem.from_arrays(X, several, task="classification"), 2, name)
    # Whole numbers that are many: classes once the user says so.
    with says(name, "needs classes", "task='classification'"):
        TopKSelector(2, method=name, task="regression").fit(X, y)
    assert TopKSelector(2, method=name, task="classification").fit(X, y).support_.sum() == 2


@pytest.mark.parametrize("name", ["infogain", "chi2", "mrmr", "cfs"])
def test_of_equal_scores_the_lowest_index_is_chosen(name: str) -> None:
    # Levels renamed: as good for the classes, and no copy up to shift, scale and sign.
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 60)
    levels = np.where(rng.random(60) < 0.2, rng.integers(0, 3, 60), y)
    renamed = [np.array(names)[levels] for names in ([0, 2, 1], [1, 0, 2], [0, 1, 2])]
    X = np.column_stack([rng.integers(0, 3, 60), *renamed])
    assert solve(Problem.from_arrays(X, y), 1, name, bins="values").support.tolist() == [1]
    moved = Problem.from_arrays(X[:, [3, 0, 1, 2]], y)
    assert solve(moved, 1, name, bins="values").support.tolist() == [0]


@every_scorer
def test_copies_make_up_the_number_in_order_of_their_scores(name: str) -> None:
    X, y = make_classes(60, 3, 3, seed=3)
    X = np.column_stack([X, 1.0 - X, 2.0 * X])
    problem = Problem.from_arrays(X, y)
    with pytest.warns(UserWarning, match="only 3"):
        result = solve(problem, 5, name)
    assert result.scores is not None
    first, fillers = result.order[:3], result.order[3:]
    assert sorted(first.tolist()) == [0, 1, 2]
    # Both copies of the best column.
    assert (fillers % 3 == first[0]).all()
