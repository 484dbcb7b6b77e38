"""Splits: shares of each class, folds, and what they do not depend on."""

from __future__ import annotations

import numpy as np
import pytest

from exactk.papers.experiments.splits import fold_splits, share_split
from tests.support import says

LYMPHOMA = np.repeat(np.arange(9), [46, 10, 9, 11, 6, 6, 4, 2, 2])
SHUFFLED = np.random.default_rng(3).permutation(LYMPHOMA)


@pytest.mark.parametrize("train", [0.2, 0.6, 0.7, 0.99])
@pytest.mark.parametrize("seed", [0, 1])
def test_each_class_gives_its_share(train: float, seed: int) -> None:
    train_rows, test_rows = share_split(SHUFFLED, train, seed)
    assert np.array_equal(np.sort(np.concatenate([train_rows, test_rows])), np.arange(96))
    for label, count in enumerate(np.bincount(SHUFFLED)):
        learnt = int((SHUFFLED[train_rows] == label).sum())
        assert 1 <= learnt < count
        assert learnt in (1, count - 1) or abs(learnt - train * count) < 1.0


@pytest.mark.parametrize("train", [0.2, 0.5, 0.6])
def test_the_total_is_the_share_of_all_rows(train: float) -> None:
    # Each class by itself would give 8 of 14 rows at 60 %.
    y = np.repeat(np.arange(120), 14)
    train_rows, _ = share_split(y, train, 0)
    assert train_rows.size == round(train * y.size)
    learnt = np.bincount(y[train_rows])
    assert learnt.min() == int(train * 14)
    assert learnt.max() <= int(train * 14) + 1
    # Which classes give one more is drawn, and not always the first.
    again = np.bincount(y[share_split(y, train, 1)[0]])
    assert train == 0.5 or not np.array_equal(learnt, again)


def test_a_single_row_is_learnt_from() -> None:
    train_rows, test_rows = share_split(["a", "b", "b", "b"], 0.3, 5)
    assert 0 in train_rows
    assert test_rows.size == 2


def test_numbers_are_split_without_regard_to_their_values() -> None:
    y = np.arange(10.0)
    train_rows, test_rows = share_split(y, 0.6, 0)
    assert (train_rows.size, test_rows.size) == (6, 4)
    same = share_split(np.random.default_rng(0).random((10, 3)), 0.6, 0)
    assert np.array_equal(same[0], train_rows)
    assert np.array_equal(share_split(y.astype(int), 0.6, 0, task="regression")[0], train_rows)


def test_names_of_classes_do_not_matter() -> None:
    renamed = np.array(list("qzabxmkcd"))[SHUFFLED]
    assert np.array_equal(share_split(SHUFFLED, 0.5, 7)[0], share_split(renamed, 0.5, 7)[0])
    pairs = zip(fold_splits(SHUFFLED, 4, 7), fold_splits(renamed, 4, 7), strict=True)
    assert all(np.array_equal(one[1], other[1]) for one, other in pairs)


def test_the_seed_decides() -> None:
    first, again, other = (share_split(SHUFFLED, 0.5, seed)[0] for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    assert np.array_equal(first, share_split(SHUFFLED, 0.5, np.random.default_rng(1))[0])
    rng = np.random.default_rng(1)
    draws = [share_split(SHUFFLED, 0.5, rng)[0] for _ in range(2)]
    assert not np.array_equal(*draws)


@pytest.mark.parametrize("folds", [2, 3, 5, 10])
def test_every_row_is_tested_once_and_classes_are_spread(folds: int) -> None:
    splits = fold_splits(SHUFFLED, folds, 0)
    assert len(splits) == folds
    tested = np.concatenate([test for _, test in splits])
    assert np.array_equal(np.sort(tested), np.arange(96))
    sizes = [test.size for _, test in splits]
    assert max(sizes) - min(sizes) <= 1
    for train, test in splits:
        assert np.array_equal(np.sort(np.concatenate([train, test])), np.arange(96))
        # Rare classes too: no row is tested whose class was not learnt.
        assert set(SHUFFLED[test]) <= set(SHUFFLED[train])
    counts = np.array([np.bincount(SHUFFLED[test], minlength=9) for _, test in splits])
    assert (counts.max(axis=0) - counts.min(axis=0) <= 1).all()


def test_only_a_class_of_one_row_is_tested_unlearnt() -> None:
    y = np.array([0] * 7 + [1])
    unlearnt = [set(y[test]) - set(y[train]) for train, test in fold_splits(y, 4, 0)]
    assert sorted(map(len, unlearnt)) == [0, 0, 0, 1]


def test_folds_of_numbers() -> None:
    splits = fold_splits(np.linspace(0, 1, 11), 3, 0)
    assert sorted(test.size for _, test in splits) == [3, 4, 4]


def test_what_cannot_be_split_is_refused() -> None:
    with says("train", "(0, 1)", "1.5"):
        share_split([0, 0, 1, 1], 1.5)
    with says("folds", "from 2 to 4", "5"):
        fold_splits([0, 0, 1, 1], 5)
    with says("no class of two rows"):
        share_split([0, 1, 2], 0.5)
    with says("two rows or more"):
        share_split([0], 0.5)
    with says("one label a row"):
        fold_splits(np.eye(4), 2, task="classification")
    with says("random_state", "-3"):
        share_split([0, 0, 1, 1], 0.5, -3)
    with says("task", "'kmeans'"):
        share_split([0, 0, 1, 1], 0.5, task="kmeans")  # type: ignore[arg-type]
    with says("cannot be sorted"):
        fold_splits(np.array([1, "a", None, 2], dtype=object), 2)
