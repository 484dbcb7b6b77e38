"""Moments of a stream: those of the same rows in memory, whatever the parts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from exactk import Problem, solve
from exactk.data.moments import Moments
from exactk.data.targets import encode_target
from exactk.errors import InputError, Setting
from exactk.streaming.moments import merge_found, stream_moments
from tests.arrays import ArrayStream

Array = np.ndarray[Any, Any]


def rows(n: int = 400, d: int = 6, offset: float = 0.0) -> tuple[Array, Array]:
    rng = np.random.default_rng(n)
    y = rng.choice(["ash", "oak", "yew"], n, p=[0.6, 0.3, 0.1])
    X = rng.normal(size=(n, d)) + (y == "oak")[:, None] * np.linspace(0, 2, d) + offset
    return X, y


def close(one: Moments, X: Array, y: Array, w: Array | None = None, rtol: float = 1e-10) -> None:
    """The moments by their definition, in extended precision."""
    weight = (np.ones(len(X)) if w is None else w).astype(np.longdouble)
    X, Y = X.astype(np.longdouble), encode_target(y).block(0, len(y)).astype(np.longdouble)
    x_mean, y_mean = weight @ X / weight.sum(), weight @ Y / weight.sum()
    Z, U = X - x_mean, Y - y_mean
    for name, wanted in {
        "x_mean": x_mean,
        "y_mean": y_mean,
        "xx": (weight[:, None] * Z).T @ Z,
        "xy": (weight[:, None] * Z).T @ U,
        "yy": (weight[:, None] * U).T @ U,
    }.items():
        error = np.abs(getattr(one, name) - wanted).max() / np.abs(wanted).max()
        assert error < rtol, (name, error)


@pytest.mark.parametrize(("n_parts", "n_blocks"), [(1, 1), (3, 2), (7, 5), (400, 1)])
def test_parts_and_blocks_do_not_matter(n_parts: int, n_blocks: int) -> None:
    X, y = rows()
    found = stream_moments(ArrayStream(X, y, n_parts=n_parts, n_blocks=n_blocks))
    assert found.classes is not None
    assert found.classes.tolist() == ["ash", "oak", "yew"]
    assert (found.n_rows, found.weight, found.target) == (400, 400.0, "y")
    close(found, X, y)


def test_the_order_of_the_rows_does_not_matter() -> None:
    X, y = rows()
    mixed = np.random.default_rng(1).permutation(len(X))
    problem = Problem.from_stream(ArrayStream(X, y))
    other = Problem.from_stream(ArrayStream(X[mixed], y[mixed], n_parts=5))
    held = Problem.from_arrays(X, y)
    for k in range(1, 6):
        wanted = solve(held, k)
        for made in (problem, other):
            found = solve(made, k)
            assert found.support.tolist() == wanted.support.tolist()
            assert found.objective == pytest.approx(wanted.objective, rel=1e-10)


def test_means_a_million_times_the_spread() -> None:
    X, y = rows(offset=1e6)
    close(stream_moments(ArrayStream(X, y, n_parts=7)), X, y, rtol=1e-8)


def test_weights_are_repetitions_and_zero_is_no_row() -> None:
    X, y = rows()
    y[y == "yew"] = "ash"
    y[:40] = "zoo"
    w = np.random.default_rng(2).integers(0, 4, len(X)).astype(float)
    w[:40] = 0.0
    found = stream_moments(ArrayStream(X, y, w, n_parts=4))
    again = np.repeat(np.arange(len(X)), w.astype(int))
    assert found.classes is not None
    assert found.classes.tolist() == ["ash", "oak"]
    close(found, X[again], y[again])


@pytest.mark.parametrize(
    "y",
    [
        np.arange(400) % 3,
        np.arange(400) % 2 == 0,
        (np.arange(400) % 3).astype(float),
        np.random.default_rng(0).normal(size=400),
        np.random.default_rng(0).normal(size=(400, 2)),
    ],
    ids=["int", "bool", "whole", "float", "two"],
)
def test_targets_are_what_they_are_for_arrays(y: Array) -> None:
    X, _ = rows()
    held, found = Problem.from_arrays(X, y), Problem.from_stream(ArrayStream(X, y))
    assert found.task == held.task
    if held.classes is None:
        assert found.classes is None
    else:
        assert found.classes is not None
        assert found.classes.tolist() == held.classes.tolist()
        assert found.classes.dtype == held.classes.dtype
    np.testing.assert_allclose(found.cross, held.cross, rtol=1e-9, atol=1e-9)


def test_whole_numbers_that_turn_out_to_be_amounts_are_read_again() -> None:
    X, _ = rows()
    y = np.arange(400.0) % 4
    y[399] = 0.5
    stream = ArrayStream(X, y)
    assert Problem.from_stream(stream).task == "regression"
    assert stream.passes == 2
    with pytest.raises(InputError, match=r"0\.5 in part 2, rows .* task='regression'"):
        Problem.from_stream(stream, task="classification")


def test_classes_that_are_known() -> None:
    X, y = rows()
    found = stream_moments(ArrayStream(X, y), classes=["yew", "oak", "ash", "elm"])
    assert found.classes is not None
    assert found.classes.tolist() == ["ash", "elm", "oak", "yew"]
    assert found.y_mean[1] == 0.0
    with pytest.raises(InputError, match=r"label 'ash' \(part 0, row \d+ .* classes given"):
        stream_moments(ArrayStream(X, y), classes=["oak", "yew"])
    with pytest.raises(InputError, match="twice"):
        stream_moments(ArrayStream(X, y), classes=["oak", "oak"])


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_value_that_is_none_is_named_with_its_place(value: float) -> None:
    X, y = rows()
    X[257, 3] = value
    # 400 rows in 4 parts of 2 blocks: row 57 of part 2, in its second block.
    with pytest.raises(InputError, match=r"'x3' .* part 2, rows 50 to 99 .* first in row 57"):
        stream_moments(ArrayStream(X, y, n_parts=4))


def test_the_first_problem_of_several_is_reported() -> None:
    X, y = rows()
    X[390, 1] = X[150, 2] = np.nan
    with pytest.raises(InputError, match=r"'x2'.* part 1,"):
        stream_moments(ArrayStream(X, y, n_parts=4))


@pytest.mark.parametrize(
    ("value", "words"),
    [(-1.0, "is -1"), (np.nan, "is nan"), (1e308, r"is 1e\+308, too large .*; divide all weights")],
)
def test_weights_that_are_none(value: float, words: str) -> None:
    X, y = rows()
    w = np.ones(len(X))
    w[120] = value
    with pytest.raises(InputError, match=rf"weight in part 1, row 20 \(from 0\) {words}"):
        stream_moments(ArrayStream(X, y, w, n_parts=4))


def test_numbers_that_are_missing() -> None:
    X, _ = rows()
    y = np.linspace(0, 1, len(X))
    y[333] = np.nan
    with pytest.raises(InputError, match=r"y is missing or infinite in part 3, row 33 "):
        stream_moments(ArrayStream(X, y, n_parts=4))


def test_one_class_and_too_many() -> None:
    X, y = rows()
    with pytest.raises(InputError, match="1 class, 'ash'"):
        stream_moments(ArrayStream(X, np.full(400, "ash")))
    with pytest.raises(InputError, match="all different"):
        stream_moments(ArrayStream(X, np.array([f"id{i}" for i in range(400)])))
    with pytest.raises(InputError, match="holds text"):
        stream_moments(ArrayStream(X, y), task="regression")


@pytest.mark.parametrize("n_different", [30, 250, 400])
@pytest.mark.parametrize("dtype", [int, float])
def test_many_whole_numbers_are_amounts_as_in_memory(n_different: int, dtype: type) -> None:
    X, _ = rows()
    y = (np.arange(400) * 7 % n_different).astype(dtype)
    y[:10] = 0
    wanted = Problem.from_arrays(X, y)
    found = Problem.from_stream(ArrayStream(X, y, n_parts=4))
    assert (found.task, wanted.task) == (("regression",) * 2 if n_different > 90 else
                                         ("classification",) * 2)  # fmt: skip
    np.testing.assert_allclose(found.total, wanted.total)
    assert [part for part in found.assumptions[0] if isinstance(part, Setting)] == [
        part for part in wanted.assumptions[0] if isinstance(part, Setting)
    ]
    said = Problem.from_stream(ArrayStream(X, y), task="classification")
    assert said.n_outputs == len(np.unique(y))
    assert said.assumptions == ()


def test_products_that_do_not_fit() -> None:
    X, y = rows()
    with pytest.raises(InputError, match=r"6 columns need 288 bytes .* memory_limit"):
        Problem.from_stream(ArrayStream(X, y), memory_limit=287)


@pytest.mark.parametrize("limit", ["4GB", None, -1, 1e9, True], ids=repr)
def test_a_limit_that_is_no_number_of_bytes(limit: Any) -> None:
    X, y = rows()
    with pytest.raises(InputError, match="memory_limit must be a number of bytes, zero or more"):
        Problem.from_stream(ArrayStream(X, y), memory_limit=limit)


@pytest.mark.parametrize("n_parts", [1, 4, 400])
def test_a_row_of_no_weight_must_be_whole_whatever_block_it_is_in(n_parts: int) -> None:
    X, y = rows()
    w = np.ones(len(X))
    w[200:300] = 0.0
    X[257, 3] = np.nan
    with pytest.raises(InputError, match="column 'x3' is missing"):
        stream_moments(ArrayStream(X, y, w, n_parts=n_parts))


def test_labels_of_all_parts_together_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("exactk.streaming.target_encoding.MOST_CLASSES", 5)
    X, _ = rows()
    y = np.array([f"c{i // 100 * 2 + i % 2}" for i in range(400)])
    with pytest.raises(InputError, match="more than 5 labels"):
        stream_moments(ArrayStream(X, y, n_parts=4))
    found = stream_moments(ArrayStream(X, y, n_parts=4), classes=[f"c{i}" for i in range(8)])
    assert len(found.y_mean) == 8


def test_merging_what_is_there_leaves_the_others_as_they_are() -> None:
    X, _ = rows()
    first, second = (
        Moments.from_arrays(X[part], X[part, :1]) for part in np.split(np.arange(400), 2)
    )
    before = [first.xx.copy(), second.xx.copy()]
    whole = merge_found(merge_found(None, first), second)
    assert whole is not None
    np.testing.assert_allclose(whole.xx, Moments.from_arrays(X, X[:, :1]).xx, rtol=1e-10, atol=1e-9)
    assert [first.xx.tolist(), second.xx.tolist()] == [held.tolist() for held in before]


def test_a_merge_keeps_the_names_that_one_side_has() -> None:
    X, _ = rows()
    bare = Moments.from_arrays(X, X[:, :1])
    named = replace(bare, feature_names=tuple("abcdef"), target="t")
    for merged in (bare.merge(named), named.merge(bare)):
        assert (merged.feature_names, merged.target) == (tuple("abcdef"), "t")
