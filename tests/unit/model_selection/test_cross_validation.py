"""Folds: which rows train and are held out, training problems, losses and what is refused."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.special import log_softmax
from sklearn.datasets import load_wine
from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold

from exactk import Moments, Problem, choose_k, evaluate, solve
from exactk.errors import InputError
from exactk.model_selection.cross_validation import (
    Fold,
    Splits,
    deal_rows,
    make_folds,
    make_splits,
    row_groups,
    training_problem,
)
from exactk.streaming.base import Block, EncodedLabels, Location
from exactk.streaming.split import row_hashes
from tests.arrays import ArrayStream

Array = np.ndarray[Any, Any]


def dealt(problem: Problem, n_folds: int, seed: int = 0) -> list[Fold]:
    return list(Splits(problem, n_folds).folds(problem, np.random.default_rng(seed)))


def fit(support: list[int], coef: Array, intercept: Array) -> Any:
    return SimpleNamespace(support=np.array(support), coef=coef, intercept=intercept)


def table(n: int = 300, d: int = 5, seed: int = 0) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) @ (np.eye(d) + 0.4 * rng.normal(size=(d, d))) + 2.0
    numbers = X[:, 0] - X[:, 3] + 3.0 * rng.normal(size=n)
    return X, numbers, np.array(["u", "v", "w"])[np.digitize(numbers, [-2.0, 2.0])]


@settings(max_examples=25, deadline=None)
@given(
    n=st.integers(6, 40), n_folds=st.integers(2, 6), seed=st.integers(0, 2**32 - 1),
    weighted=st.booleans(),
)  # fmt: skip
def test_every_counted_row_is_held_out_once(
    n: int, n_folds: int, seed: int, weighted: bool
) -> None:
    rng = np.random.default_rng(seed)
    w = np.ones(n)
    if weighted:
        w[6:] = rng.integers(0, 3, n - 6)
    problem = Problem.from_arrays(
        rng.normal(size=(n, 3)), rng.normal(size=n), sample_weight=w if weighted else None
    )
    splits = deal_rows(problem, n_folds, rng)
    held = [test for _, test in splits]
    assert sorted(np.concatenate(held).tolist()) == np.flatnonzero(w).tolist()
    assert max(map(len, held)) - min(map(len, held)) <= 1
    for (_, test), fold in zip(splits, make_folds(problem, splits), strict=True):
        assert fold.train.n_rows == problem.n_rows - len(test)
        assert fold.weight == pytest.approx(w[test].sum())


@settings(max_examples=20, deadline=None)
@given(counts=st.lists(st.integers(5, 15), min_size=2, max_size=4), n_folds=st.integers(2, 5))
def test_classes_are_spread_evenly(counts: list[int], n_folds: int) -> None:
    rng = np.random.default_rng(0)
    y = rng.permutation(np.repeat(np.array(list("abcd"))[: len(counts)], counts))
    problem = Problem.from_arrays(rng.normal(size=(len(y), 2)), y)
    for splits in (deal_rows(problem, n_folds, rng), make_splits(problem, n_folds)):
        for _, test in splits:
            for label, count in zip("abcd", counts, strict=False):
                assert abs(int((y[test] == label).sum()) - count / n_folds) < 2


@pytest.mark.parametrize("limit", [1, 2**30], ids=["weights", "moments"])
@pytest.mark.parametrize("kind", ["dense", "csr"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("scale", [False, True])
def test_training_is_on_all_other_rows(limit: int, kind: str, weighted: bool, scale: bool) -> None:
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(40, 5)) + 3, rng.choice(["u", "v", "w"], 40)
    names = tuple("abcde")
    w = rng.integers(0, 3, 40).astype(float) if weighted else np.ones(40)
    problem = Problem.from_arrays(
        X if kind == "dense" else sparse.csr_array(X), y, feature_names=names,
        sample_weight=w if weighted else None, scale=scale, ridge=0.2, memory_limit=limit,
    )  # fmt: skip
    for fold in dealt(problem, 4):
        train = fold.by_rows[1][0]
        times = w[train].astype(int)
        expected = Problem.from_arrays(
            np.repeat(X[train], times, axis=0), np.repeat(y[train], times), scale=scale, ridge=0.2
        )
        assert fold.train.total == pytest.approx(expected.total, rel=1e-10)
        assert fold.train.ridge == 0.2
        assert fold.train.feature_names == names
        for S in ([0], [3, 1], [0, 1, 2, 3, 4]):
            found, wanted = fold.train.refit(S), expected.refit(S)
            assert found.objective == pytest.approx(wanted.objective, rel=1e-9)
            np.testing.assert_allclose(found.coef, wanted.coef, rtol=1e-7, atol=1e-10)
            np.testing.assert_allclose(found.intercept, wanted.intercept, rtol=1e-7)


def test_training_moments_agree_with_recomputed_ones_at_every_scale() -> None:
    X, y, _ = table(n=101, d=9)
    X = X * 10.0 ** np.arange(-4, 5)
    for fold in dealt(Problem.from_arrays(X, y), 5):
        train = fold.by_rows[1][0]
        again = Moments.from_arrays(X[train], y[train, None])
        size = np.sqrt(np.diagonal(again.xx))
        gram = fold.train.gram.whole() / np.outer(fold.train.x_scale, fold.train.x_scale)
        assert np.abs((gram - again.xx) / np.outer(size, size)).max() < 1e-10
        np.testing.assert_allclose(fold.train.x_mean, again.x_mean, rtol=1e-10)


def test_repeated_training_rows_count_twice() -> None:
    X, y, _ = table(n=40)
    train, test = np.r_[0:30, 0:10], np.arange(30, 40)
    for limit in (1, 2**30):
        problem = Problem.from_arrays(X, y, memory_limit=limit)
        [fold] = make_folds(problem, [(train, test)])
        expected = Problem.from_arrays(X[train], y[train])
        assert fold.train.objective([1, 4]) == pytest.approx(expected.objective([1, 4]), rel=1e-9)


def test_class_weights_are_those_of_the_training_rows_if_asked_for() -> None:
    X, _, labels = table(60)
    problem = Problem.from_arrays(X, labels, class_weight="balanced")
    rows = np.arange(0, 60, 2)
    own = Problem.from_arrays(X[rows], labels[rows], class_weight="balanced")
    np.testing.assert_allclose(training_problem(problem, rows).weights, own.weights)
    kept = training_problem(problem, rows, rebalance=False)
    np.testing.assert_allclose(kept.weights, problem.weights[rows])


def test_a_class_that_is_wholly_held_out_keeps_its_place() -> None:
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(9, 2)), np.array([0, 0, 0, 0, 1, 1, 1, 1, 2])
    for limit in (1, 2**30):
        for fold in dealt(Problem.from_arrays(X, y, memory_limit=limit), 3):
            assert fold.train.n_outputs == 3
            assert np.isfinite(fold.train.objective([0, 1]))


# Held-out losses.
def wine_fold(loss: str, held: Array) -> tuple[Array, Array, Fold]:
    X, y = load_wine(return_X_y=True)
    problem = Problem.from_arrays(X, y, loss=loss, ridge=0.05)
    [fold] = make_folds(problem, [(np.setdiff1d(np.arange(len(y)), held), held)])
    assert fold.train.loss.name == loss
    return X, y, fold


@pytest.mark.parametrize("kept", [[2], [0, 1], [0, 1, 2]])
def test_held_out_deviance_is_that_of_the_model(kept: list[int]) -> None:
    held = np.flatnonzero(np.isin(load_wine(return_X_y=True)[1], kept))[::3]
    X, y, fold = wine_fold("logistic", held)
    result = solve(fold.train, 2, effort=0)
    logs = log_softmax(X[held][:, result.support] @ result.coef.T + result.intercept, axis=1)
    wanted = -2.0 * logs[np.arange(len(held)), y[held]].sum()
    assert fold.errors([result])[0] == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize("loss", ["l21", "l2r", "huber"])
def test_held_out_robust_loss_is_that_of_the_residuals(loss: str) -> None:
    held = np.arange(0, 178, 3)
    X, y, fold = wine_fold(loss, held)
    result = solve(fold.train, 3, effort=0)
    residual = np.eye(3)[y[held]] - X[held][:, result.support] @ result.coef.T - result.intercept
    e = np.linalg.norm(residual, axis=1)
    if loss == "huber":
        grid = np.linspace(0.2, 2.0, 20_000)[:, None] * e.mean()
        z = e / grid
        wanted = (grid * (1 + np.where(z < 1.35, z**2, 2.7 * z - 1.35**2))).sum(axis=1).min()
        assert fold.errors([result])[0] == pytest.approx(wanted, rel=1e-6)
    else:
        wanted = (e ** (1.0 if loss == "l21" else 0.5)).sum()
        assert fold.errors([result])[0] == pytest.approx(wanted, rel=1e-9)


def test_held_out_scores_are_those_of_the_training_rows() -> None:
    held = np.arange(0, 178, 3)
    X, y, fold = wine_fold("optimal_scoring", held)
    result = solve(fold.train, 3, effort=0)
    score = 1 / np.sqrt(np.bincount(np.delete(y, held)))
    left = np.eye(3)[y[held]] * score - X[held][:, result.support] @ result.coef.T
    wanted = ((left - result.intercept) ** 2).sum()
    assert fold.errors([result])[0] == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize("classes", [33, 80])
def test_a_class_that_the_training_rows_lack_has_a_large_deviance(classes: int) -> None:
    rng = np.random.default_rng(0)
    y = np.r_[np.arange(2 * classes) % classes, classes]
    X = rng.standard_normal((classes + 1, 6))[y] + 0.3 * rng.standard_normal((len(y), 6))
    problem = Problem.from_arrays(X, y, loss="logistic", ridge=0.05)
    [fold] = make_folds(problem, [(np.arange(len(y) - 1), np.array([len(y) - 1]))])
    result = solve(fold.train, 2, effort=0)
    assert result.message == ""
    np.testing.assert_array_equal(result.coef[classes], 0.0)
    assert 5 < fold.errors([result])[0] < np.inf


# Streams.
def hashes(X: Array, y: Any, seed: int) -> Array:
    return row_hashes(Block(np.array(X, order="F"), y, None, Location("rows", 0, 0)), seed)


def test_hashes_depend_on_the_values_alone() -> None:
    X, numbers, labels = table(1000)
    codes = np.unique(labels, return_inverse=True)[1]
    whole = hashes(X, EncodedLabels(codes, ["u", "v", "w"]), 5)
    assert len(np.unique(whole)) == 1000
    part = hashes(X[500:], EncodedLabels(2 - codes[500:], ["w", "v", "u"]), 5)
    np.testing.assert_array_equal(part, whole[500:])
    assert (hashes(X, numbers, 5) != whole).all()
    assert (hashes(X, EncodedLabels(codes, ["u", "v", "w"]), 6) != whole).all()
    # Folds are of the same size as far as chance has it, also for few whole values.
    grid = np.stack(np.meshgrid(np.arange(100.0), np.arange(100.0)), axis=-1).reshape(-1, 2)
    sizes = np.bincount((hashes(grid, np.zeros(10_000), 0) % np.uint64(5)).astype(int))
    assert ((sizes - 2000) ** 2 / 2000).sum() < 20.0
    zero = hashes(np.array([[0.0], [-0.0]]), np.zeros(2), 0)
    assert zero[0] == zero[1]


@pytest.mark.parametrize("limit", [2**30, 8 * 25 * 3], ids=["one pass", "a pass each"])
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("classes", [False, True], ids=["numbers", "classes"])
def test_folds_of_a_stream(limit: int, weighted: bool, classes: bool) -> None:
    X, numbers, labels = table()
    y = labels if classes else numbers
    codes = np.unique(labels, return_inverse=True)[1]
    w = np.random.default_rng(1).integers(0, 3, len(X)).astype(float) if weighted else None
    stream = ArrayStream(X, y, w, n_parts=3)
    problem = Problem.from_stream(stream, ridge=0.2, memory_limit=limit)
    stream.passes = 0
    folds = dealt(problem, 4)
    assert stream.passes == (1 if limit == 2**30 else 4)
    Y = np.eye(3)[codes] if classes else numbers[:, None]
    v = np.ones(len(X)) if w is None else w
    # Which rows are held out, by hashing them here.
    target = EncodedLabels(codes, ["u", "v", "w"]) if classes else y
    of = hashes(X, target, int(np.random.default_rng(0).integers(2**63))) % np.uint64(4)
    coef, intercept = np.full((Y.shape[1], 2), 0.7), np.full(Y.shape[1], -0.3)
    for number, fold in enumerate(folds):
        out = of == number
        left = Y[out] - intercept - X[out][:, [3, 1]] @ coef.T
        wanted = float((v[out][:, None] * left**2).sum())
        assert fold.errors([fit([3, 1], coef, intercept)])[0] == pytest.approx(wanted, rel=1e-10)
        assert fold.weight == pytest.approx(v[out].sum())
        train = Problem.from_arrays(X[~out], y[~out], sample_weight=v[~out], ridge=0.2)
        assert fold.train.objective([0, 2]) == pytest.approx(train.objective([0, 2]), rel=1e-10)


@pytest.mark.parametrize("classes", [False, True], ids=["numbers", "classes"])
def test_the_folds_of_a_stream_do_not_depend_on_order_parts_or_memory(classes: bool) -> None:
    X, numbers, labels = table(120)
    y = labels if classes else numbers
    mixed = np.random.default_rng(2).permutation(len(X))
    plain = choose_k(Problem.from_stream(ArrayStream(X, y)), ridge="cv")
    for limit in (2**30, 8 * 25):
        moved = ArrayStream(X[mixed], y[mixed], n_parts=5, n_blocks=3)
        other = choose_k(Problem.from_stream(moved, memory_limit=limit), ridge="cv")
        assert (other.ridge, other.k) == (plain.ridge, plain.k)
        np.testing.assert_allclose(other.table["mean"], plain.table["mean"], rtol=1e-9)


def test_rows_of_a_stream_that_cannot_be_split_by_their_values() -> None:
    X, y = np.tile([[0.0], [1.0]], (50, 1)), np.tile([0.5, 1.5], 50)
    words = set()
    for seed in range(8):
        for limit in (2**20, 8):
            problem = Problem.from_stream(ArrayStream(X, y), memory_limit=limit)
            # All rows are in one fold, or each fold trains on equal rows.
            with pytest.raises(InputError) as error:
                choose_k(problem, cv=2, random_state=seed)
            assert error.value.parameter == "cv"
            words.add(str(error.value.message))
    assert len(words) == 2
    # The message suggests this.
    assert choose_k(problem, criterion="ebic", ridge=0.1).k == 1


# Splits.
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("seed", [0, 5])
def test_numbers_of_folds_are_those_of_scikit_learn(grouped: bool, seed: int) -> None:
    X, numbers, labels = table(60)
    groups = np.arange(60) // 4 if grouped else None
    for y, kind in ((numbers, KFold), (labels, StratifiedKFold)):
        problem = Problem.from_arrays(X, y)
        splitter = GroupKFold(4) if grouped else kind(4, shuffle=True, random_state=seed)
        found = make_splits(problem, 4, groups, seed)
        for (train, test), pair in zip(found, splitter.split(X, y, groups), strict=True):
            assert (train.tolist(), test.tolist()) == (pair[0].tolist(), pair[1].tolist())


def test_a_splitter_gets_the_target_and_the_groups() -> None:
    X, _, labels = table(60)
    groups = np.arange(60) // 4
    splitter = StratifiedGroupKFold(3)
    found = make_splits(Problem.from_arrays(X, labels), splitter, groups)
    expected = splitter.split(X, labels, groups)
    assert [test.tolist() for _, test in found] == [test.tolist() for _, test in expected]


def test_the_default_number_of_folds() -> None:
    X, y, _ = table(60)
    problem = Problem.from_arrays(X, y)
    assert len(make_splits(problem)) == 5
    assert len(make_splits(problem, groups=np.arange(60) % 3)) == 3
    assert len(make_splits(problem, KFold(3), groups=np.arange(60) // 4)) == 3
    assert len(make_splits(Problem.from_arrays(X[:4], y[:4]))) == 4
    weighted = Problem.from_arrays(X, y, sample_weight=np.arange(60) < 3)
    for train, test in make_splits(weighted):
        assert sorted([*train, *test]) == [0, 1, 2]


ALL, FEW = np.arange(60), np.arange(5)
WRONG = {
    "one fold": ("cv", {"cv": 1}),
    "more folds than rows": ("cv", {"cv": 61}),
    "no splits": ("cv", {"cv": []}),
    "text": ("cv", {"cv": "five"}),
    "a fraction": ("cv", {"cv": 2.5}),
    "no pair": ("cv", {"cv": [(0, 1, 2)]}),
    "no such row": ("cv", {"cv": [([0, 1], [99])]}),
    "nothing held out": ("cv", {"cv": [([0, 1, 2, 3], [])]}),
    "row in both": ("cv", {"cv": [(ALL, FEW)]}),
    "one training row": ("cv", {"cv": [([1], [2])]}),
    "splitter without groups": ("cv", {"cv": GroupKFold(3)}),
    "folds of groups": ("cv", {"cv": 10, "groups": ALL % 3}),
    "too few groups": ("groups", {"groups": [1, 2]}),
    "one group": ("groups", {"groups": np.zeros(60)}),
    "splitter that cuts groups": ("groups", {"cv": KFold(3), "groups": ALL % 3}),
    "pairs that cut groups": ("groups", {"cv": [(ALL[:50], ALL[50:])], "groups": ALL // 4}),
    "missing group": ("groups", {"groups": np.where(ALL == 7, np.nan, 1.0)}),
    "mixed groups": ("groups", {"groups": np.array([1, "a"] * 30, dtype=object)}),
}


@pytest.mark.parametrize("name", WRONG)
def test_splits_that_are_refused(name: str) -> None:
    X, y, _ = table(60)
    parameter, options = WRONG[name]
    problem = Problem.from_arrays(X, y)
    for call in (make_splits, Splits, choose_k):
        with pytest.raises(InputError) as error:
            call(problem, **{"cv": None, **options})
        assert error.value.parameter == parameter


def test_the_suggested_number_of_folds_works() -> None:
    X, y, _ = table(60)
    problem, groups = Problem.from_arrays(X, y), np.arange(60) % 3
    with pytest.raises(InputError, match="cv=3"):
        make_splits(problem, 10, groups)
    assert len(make_splits(problem, 3, groups)) == 3
    rare = Problem.from_arrays(X, np.where(np.arange(60) < 2, "a", "b"))
    with pytest.raises(InputError, match="cv=2") as error:
        make_splits(rare, 5)
    assert error.value.parameter == "cv"
    assert len(make_splits(rare, 2)) == 2
    assert row_groups(["a"] * 60, 60).shape == (60,)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_training_rows_of_one_class(loss: str) -> None:
    X, y = load_wine(return_X_y=True)
    y = np.where(np.arange(len(y)) == 5, 1, 0)
    alone = [(np.delete(np.arange(len(y)), [5, 6]), np.array([5, 6]))] * 2
    problem = Problem.from_arrays(X, y, loss=loss, ridge=0.05)
    for cv, parameter in ((alone, "cv"), (5, "y")):
        with pytest.raises(InputError) as error:
            choose_k(problem, k_max=2, cv=cv)
        assert error.value.parameter == parameter


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("cv", np.array(2)), ("cv", 7.5),
        ("groups", np.ma.masked_array(np.arange(40) // 4, mask=np.arange(40) < 2)),
    ],
)  # fmt: skip
def test_folds_and_groups_that_cannot_be_read(name: str, value: Any) -> None:
    X = np.random.default_rng(0).normal(size=(40, 4))
    with pytest.raises(InputError) as error:
        evaluate(X, X[:, 0], k=2, **{name: value})
    assert error.value.parameter == name
