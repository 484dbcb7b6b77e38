"""Moments that are saved, exchanged and merged: those of all rows together, or an error."""

from __future__ import annotations

import itertools
import json
import re
import zipfile
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exactk import Moments, Problem, solve
from exactk.errors import InputError
from exactk.streaming.moments import stream_moments
from tests.arrays import ArrayStream
from tests.unit.data.test_archive import rewrite

Array = np.ndarray[Any, Any]
ARRAYS = ("x_mean", "y_mean", "xx", "xy", "yy")
NAMES = ("height", "ß\n", 'a "quoted", \\name', "\U0001f333")


def table(n: int = 90, d: int = 4, offset: float = 0.0, seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    y = rng.choice(["ash", "oak", "yew"], n)
    return rng.normal(size=(n, d)) + (y == "oak")[:, None] * np.arange(d) + offset, y


def classed(X: Array, y: Array, weights: Array | None = None, **facts: Any) -> Moments:
    """Moments with the classes that y holds."""
    classes, codes = np.unique(y, return_inverse=True)
    moments = Moments.from_arrays(X, np.eye(len(classes))[codes], weights)
    return replace(moments, classes=classes, **facts)


def assert_same(one: Moments, other: Moments) -> None:
    """The same to the bit."""
    assert (one.n_rows, one.weight) == (other.n_rows, other.weight)
    assert (one.feature_names, one.target) == (other.feature_names, other.target)
    for name in ARRAYS:
        a, b = getattr(one, name), getattr(other, name)
        assert a.shape == b.shape
        assert np.ascontiguousarray(a).tobytes() == np.ascontiguousarray(b).tobytes(), name
    if one.classes is None or other.classes is None:
        assert one.classes is other.classes
    else:
        assert one.classes.dtype == other.classes.dtype
        assert one.classes.tolist() == other.classes.tolist()


def assert_close(found: Moments, X: Array, Y: Array, w: Array | None, rtol: float) -> None:
    """Moments by definition, in extended precision; products in units of the columns' lengths."""
    X, Y = X.astype(np.longdouble), Y.astype(np.longdouble)
    weight = np.ones(len(X), dtype=np.longdouble) if w is None else w.astype(np.longdouble)
    total = weight.sum()
    x_mean, y_mean = weight @ X / total, weight @ Y / total
    Z, U = X - x_mean, Y - y_mean
    x, y = np.sqrt(weight @ Z**2), np.sqrt(weight @ U**2)
    # Of a class that no row has, or a constant column, nothing but rounding is left.
    x, y = np.maximum(x, 1e-3), np.maximum(y, 1e-3)
    assert found.n_rows == np.count_nonzero(weight)
    assert found.weight == pytest.approx(float(total), rel=1e-12)
    for name, wanted, unit in (
        ("x_mean", x_mean, x + np.abs(x_mean)),
        ("y_mean", y_mean, y + np.abs(y_mean)),
        ("xx", (weight[:, None] * Z).T @ Z, np.outer(x, x)),
        ("xy", (weight[:, None] * Z).T @ U, np.outer(x, y)),
        ("yy", (weight[:, None] * U).T @ U, np.outer(y, y)),
    ):
        error = float(np.max(np.abs(getattr(found, name) - wanted) / unit, initial=0.0))
        assert error <= rtol, (name, error)


# --- files -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "y",
    [
        np.arange(90) % 3,
        (np.arange(90) % 3).astype(np.int8),
        np.arange(90) % 2 == 0,
        (np.arange(90) % 3).astype(float),
        np.array(["ash", "öl\n", ""])[np.arange(90) % 3],
        np.array(["ash", "oak", "yew"], dtype=object)[np.arange(90) % 3],
    ],
    ids=["int", "int8", "bool", "float", "text", "object"],
)
@pytest.mark.parametrize("names", [None, NAMES], ids=["plain", "named"])
def test_round_trip(tmp_path: Path, y: Array, names: Any) -> None:
    X, _ = table(offset=1e5)
    moments = classed(X, y, feature_names=names, target="what? \"'\n")
    for place in (tmp_path / "m.npz", str(tmp_path / "ohne Endung ü")):
        moments.save(place)
        assert_same(Moments.load(place), moments)


def test_round_trip_of_numbers_and_weights(tmp_path: Path) -> None:
    X, _ = table()
    w = np.random.default_rng(1).uniform(0, 2, len(X))
    w[:9] = 0
    moments = Moments.from_arrays(X, X[:, :2] * 3, w)
    moments.save(tmp_path / "m.npz")
    back = Moments.load(tmp_path / "m.npz")
    assert_same(back, moments)
    assert back.n_rows == 81


def test_round_trip_of_a_stream(tmp_path: Path) -> None:
    X, y = table()
    moments = stream_moments(ArrayStream(X, y))
    moments.save(tmp_path / "m.npz")
    assert_same(Moments.load(tmp_path / "m.npz"), moments)


def test_a_matrix_with_halves_of_its_own_is_kept(tmp_path: Path) -> None:
    X, y = table()
    moments = classed(X, y)
    moments.xx[2, 1] = np.nextafter(moments.xx[2, 1], 1e9)
    moments.save(tmp_path / "m.npz")
    assert_same(Moments.load(tmp_path / "m.npz"), moments)


def test_saving_changes_nothing_and_replaces(tmp_path: Path) -> None:
    X, y = table()
    moments, other = classed(X, y), classed(X[:40], y[:40])
    before = moments.xx.copy()
    other.save(tmp_path / "m.npz")
    moments.save(tmp_path / "m.npz")
    assert (moments.xx == before).all()
    assert_same(Moments.load(tmp_path / "m.npz"), moments)


def test_what_was_loaded_can_be_solved_and_changed(tmp_path: Path) -> None:
    X, y = table()
    classed(X, y, feature_names=NAMES).save(tmp_path / "m.npz")
    problem = Problem.from_moments(Moments.load(tmp_path / "m.npz"), overwrite=True)
    held = solve(Problem.from_arrays(X, y, feature_names=NAMES), 2)
    found = solve(problem, 2)
    assert found.feature_names == held.feature_names
    assert found.objective == pytest.approx(held.objective, rel=1e-10)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"xx": np.full((4, 4), np.nan)}, "xx holds NaN"),
        ({"xy": np.zeros((4, 2))}, r"xy has shape \(4, 2\), not \(4, 3\)"),
        ({"weight": np.inf}, "weight must be above 0"),
        ({"feature_names": ("a", "b")}, "feature_names has 2 entries, not 4"),
        ({"feature_names": ("a", "b", "c", "a")}, "feature_names has an entry twice"),
        ({"classes": np.array(["a", "b", "a"])}, "classes has an entry twice"),
        ({"classes": np.array([b"a", b"b", b"c"])}, "label b'a' cannot be saved"),
    ],
)
def test_what_cannot_be_used_is_not_saved(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        replace(classed(*table()), **change).save(tmp_path / "m.npz")
    assert list(tmp_path.iterdir()) == []


def test_every_byte_that_changes_is_noticed_or_does_not_matter(tmp_path: Path) -> None:
    path = tmp_path / "m.npz"
    X, y = table(d=2)
    moments = classed(X, y, feature_names=("a", "b"), target="y")
    moments.save(path)
    whole = path.read_bytes()
    for place in range(len(whole)):
        changed = bytearray(whole)
        changed[place] ^= 0x04
        path.write_bytes(changed)
        try:
            found = Moments.load(path)
        except InputError as refused:
            named = str(path) in str(refused)
            found = moments
        else:
            named = True
        assert named, place
        assert_same(found, moments)


@pytest.mark.parametrize(
    "facts",
    [
        {"n_rows": "many"},
        {"n_rows": 2.5},
        {"n_rows": -3},
        {"n_rows": 0},
        {"n_rows": True},
        {"weight": None},
        {"weight": -1.0},
        {"feature_names": 5},
        {"feature_names": ["a"]},
        {"classes": {"dtype": "|O", "labels": [None, 1, 2]}},
        {"classes": {"dtype": "nonsense", "labels": [0, 1, 2]}},
        {"classes": {"dtype": "|i1", "labels": [0, 1, 999]}},
        {"classes": {"dtype": "<i8", "labels": [0, 2, 1]}},
        {"classes": {"dtype": "<i8", "labels": [0, 1, 1]}},
        {"classes": {"dtype": "|O", "labels": [0, "a", 1]}},
        {"classes": {"dtype": "<f8", "labels": ["a", "b", "c"]}},
        {"classes": {"labels": [0, 1, 2]}},
        {"classes": [0, 1, 2]},
    ],
    ids=json.dumps,
)
def test_facts_that_make_no_sense_under_a_true_checksum(
    tmp_path: Path, facts: dict[str, Any]
) -> None:
    path = tmp_path / "m.npz"
    classed(*table()).save(path)
    with zipfile.ZipFile(path) as archive:
        true = json.loads(archive.read("header.json"))["facts"]
    rewrite(path, facts={**true, **facts})
    with pytest.raises(InputError, match=re.escape(f"{str(path)!r} holds no moments that can be")):
        Moments.load(path)


def test_arrays_that_do_not_fit_each_other(tmp_path: Path) -> None:
    from exactk.data.archive import read_archive, write_archive
    from exactk.data.moments import ARRAYS as SIZES

    path = tmp_path / "m.npz"
    classed(*table()).save(path)
    header, arrays = read_archive(path, "moments", 1, SIZES)
    for changed, message in (
        ({**arrays, "xy": arrays["xy"][:3]}, r"xy has shape \(3, 3\), not d × c with d = 4, c = 3"),
        ({**arrays, "x_mean": np.full(4, np.inf)}, "x_mean holds NaN or infinity"),
        ({k: v for k, v in arrays.items() if k != "yy"}, "yy"),
        ({**arrays, "zz": np.ones(2)}, "zz"),
    ):
        write_archive(path, "moments", 1, header.facts, changed)
        with pytest.raises(InputError, match=f"holds no moments that can be used: .*{message}"):
            Moments.load(path)


def test_products_that_no_table_has() -> None:
    X, y = table()
    for change, message in (
        ((1, 1, -1.0), r"xx\[1, 1\] is -1, and a sum of squares cannot be negative"),
        ((3, 0, 1e3), r"xx is not symmetric: \[0, 3\] is .* and \[3, 0\] is 1000"),
        ((2, 3, -1e3), r"xx is not symmetric: \[2, 3\] is -1000 and \[3, 2\] is"),
    ):
        moments = classed(X, y)
        i, j, value = change
        moments.xx[i, j] = value
        with pytest.raises(InputError, match=message):
            moments.validate()


def test_products_apart_in_strips_of_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = table(d=9)
    for rows in (1, 2, 4, 9):
        monkeypatch.setattr("exactk.data.moments.STRIP_BYTES", 8 * 9 * rows)
        for i, j in itertools.permutations(range(9), 2):
            moments = classed(X, y)
            assert moments.validate().n_rows == 90
            moments.xx[i, j] += 1.0
            with pytest.raises(InputError, match=rf"\[{min(i, j)}, {max(i, j)}\] is"):
                moments.validate()


@pytest.mark.parametrize("offset", [0.0, 1e6, -1e12])
def test_rounding_is_no_error(offset: float) -> None:
    """Products from raw sums, as others make them: halves differ, and constants go below zero."""
    X, y = table(offset=offset)
    X[:, 1] = offset + 0.1
    n = len(X)
    moments = classed(X, y)
    raw = X.T @ X - np.outer(X.sum(axis=0), X.mean(axis=0)) if abs(offset) < 1e7 else moments.xx
    raw[1, 1] = -1e-16 * n * offset**2
    raw[0, 2] = np.nextafter(raw[0, 2], np.inf)
    found = replace(moments, xx=raw, n_rows=np.int64(n)).validate()
    assert (found.xx == raw).all()
    assert type(found.n_rows) is int


# --- merging ---------------------------------------------------------------------------------


def test_columns_in_another_order_are_matched_by_name() -> None:
    X, y = table()
    names, order = ("a", "b", "c", "d"), [2, 0, 3, 1]
    one = classed(X[:50], y[:50], feature_names=names)
    two = classed(X[50:, order], y[50:], feature_names=tuple(names[j] for j in order))
    codes = np.unique(y, return_inverse=True)[1]
    merged = one.merge(two)
    assert merged.feature_names == names
    assert_close(merged, X, np.eye(3)[codes], None, 1e-12)
    turned = two.merge(one)
    assert turned.feature_names == ("c", "a", "d", "b")
    assert_close(turned, X[:, order], np.eye(3)[codes], None, 1e-12)


def test_classes_that_one_part_has_not_seen() -> None:
    X, y = table()
    order = np.argsort(y, kind="stable")
    X, y = X[order], y[order]
    first = int(np.flatnonzero(y != "ash")[0])
    merged = classed(X[:first], y[:first]).merge(classed(X[first:], y[first:]))
    assert merged.classes is not None
    assert merged.classes.tolist() == ["ash", "oak", "yew"]
    assert_close(merged, X, np.eye(3)[np.unique(y, return_inverse=True)[1]], None, 1e-12)


def test_weights_are_repetitions_across_parts() -> None:
    X, y = table()
    w = np.random.default_rng(3).integers(0, 4, len(X)).astype(float)
    again = np.repeat(np.arange(len(X)), w.astype(int))
    merged = classed(X[:30], y[:30], w[:30]).merge(classed(X[30:], y[30:], w[30:]))
    wanted = classed(X[again], y[again])
    assert merged.weight == pytest.approx(wanted.weight)
    for name in ARRAYS:
        np.testing.assert_allclose(getattr(merged, name), getattr(wanted, name), atol=1e-10)


def test_overwriting_gives_the_same() -> None:
    X, y = table()
    one, two = classed(X[:30], y[:30]), classed(X[30:], y[30:])
    wanted = one.merge(two)
    kept = two.xx.copy()
    merged = one.merge(two, overwrite=True)
    assert_same(merged, wanted)
    assert np.shares_memory(merged.xx, one.xx)
    assert (two.xx == kept).all()


X0, Y0 = table()


@pytest.mark.parametrize(
    ("one", "two", "message"),
    [
        (
            {"feature_names": ("a", "b", "c", "d")},
            {"feature_names": ("a", "b", "c", "e")},
            "only one of the two has 'd', 'e'",
        ),
        ({"target": "y"}, {"target": "z"}, "target 'y' cannot merge with those of 'z'"),
        (
            {"classes": np.array([1, 2, 3])},
            {"classes": np.array(["1", "2", "3"])},
            "'numbers', 'strings'",
        ),
        (
            {"classes": np.array([1, 2, 3])},
            {"classes": np.array([True, False, "x"], dtype=object)},
            "different kinds",
        ),
        ({"classes": None}, {}, "classes cannot merge with moments of numbers"),
        ({}, {"classes": None}, "classes cannot merge with moments of numbers"),
    ],
    ids=["names", "targets", "kinds", "mixed", "numbers", "classes"],
)
def test_what_does_not_go_together(one: dict[str, Any], two: dict[str, Any], message: str) -> None:
    left, right = replace(classed(X0, Y0), **one), replace(classed(X0, Y0), **two)
    for overwrite in (False, True):
        before = left.xx.copy()
        with pytest.raises(InputError, match=message):
            left.merge(right, overwrite=overwrite)
        assert (left.xx == before).all()


def test_numbers_of_two_dtypes_are_one_kind() -> None:
    X, _ = table()
    codes = np.arange(90) % 2
    merged = classed(X[:40], codes[:40]).merge(classed(X[40:], codes[40:].astype(float) + 1))
    assert merged.classes is not None
    assert merged.classes.tolist() == [0.0, 1.0, 2.0]


@pytest.mark.parametrize(
    ("one", "two", "message"),
    [
        (np.array([False, True]), np.array([0, 1]), "'numbers', 'true or false'"),
        (np.array([0, 2**53 + 1]), np.array([0.0, 1.0]), "of int64 and float64 cannot be told"),
        (np.array([-1, 0]), np.array([0, 2**64 - 1], np.uint64), "told apart as float64"),
    ],
    ids=["truths", "floats", "unsigned"],
)
def test_labels_that_would_become_others(one: Array, two: Array, message: str) -> None:
    X, _ = table()
    y = np.arange(90) % 2
    first, second = classed(X, one[y]), classed(X, two[y])
    with pytest.raises(InputError, match=message):
        first.merge(second)


def test_three_sites_in_any_order_choose_the_same(tmp_path: Path) -> None:
    X, y = table(n=200, d=8, offset=1e4)
    # The third has not seen every class.
    sites = [slice(0, 120), slice(120, 190), np.flatnonzero(y[190:] != "ash") + 190]
    paths = []
    for number, rows in enumerate(sites):
        paths.append(tmp_path / f"{number}.npz")
        classed(X[rows], y[rows], feature_names=tuple("abcdefgh")).save(paths[-1])
    every = np.concatenate([np.arange(200)[rows] for rows in sites])
    held = Problem.from_arrays(X[every], y[every])
    for order in itertools.permutations(paths):
        merged = reduce(Moments.merge, map(Moments.load, order))
        for k in (1, 3, 5):
            found, wanted = solve(Problem.from_moments(merged), k), solve(held, k)
            assert found.support.tolist() == wanted.support.tolist()
            assert found.objective == pytest.approx(wanted.objective, rel=1e-9)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    parts=st.lists(st.integers(0, 4), min_size=3, max_size=60),
    offset=st.sampled_from([0.0, 1.0, -1e3, 1e6]),
    weighted=st.booleans(),
    by_class=st.booleans(),
    data=st.data(),
)
def test_any_split_in_any_order_and_grouping_is_the_whole(
    seed: int, parts: list[int], offset: float, weighted: bool, by_class: bool, data: st.DataObject
) -> None:
    rng = np.random.default_rng(seed)
    part = np.array(parts)
    # Sorted by class most parts miss some; every part has its columns in an order of its own.
    y = rng.integers(0, 4, len(part)) if not by_class else part % 4
    X = rng.normal(size=(len(part), 3)) * [1.0, 1e-3, 1e3] + offset * np.array([1.0, 1e-3, 1e3])
    w = rng.integers(1, 5, len(part)).astype(float) if weighted else None
    names = np.array(["a", "b", "c"])
    held = []
    for number in data.draw(st.permutations(sorted(set(parts)))):
        rows, order = part == number, rng.permutation(3)
        own = None if w is None else w[rows]
        moments = classed(X[rows][:, order], y[rows], own, feature_names=tuple(names[order]))
        held.append(moments)
    while len(held) > 1:
        left = held.pop(data.draw(st.integers(0, len(held) - 1)))
        right = held.pop(data.draw(st.integers(0, len(held) - 1)))
        held.append(left.merge(right))
    classes, codes = np.unique(y, return_inverse=True)
    assert held[0].classes is not None
    assert held[0].classes.tolist() == classes.tolist()
    whole = held[0].with_columns(("a", "b", "c"))
    # Means a million times the spread leave ten of sixteen digits before any sum.
    assert_close(whole, X, np.eye(len(classes))[codes], w, 1e-11 if abs(offset) < 2 else 1e-8)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    sizes=st.tuples(*[st.integers(1, 30)] * 3),
    offset=st.sampled_from([0.0, -1e3, 1e6]),
)
def test_merging_commutes_and_associates(seed: int, sizes: tuple[int, ...], offset: float) -> None:
    rng = np.random.default_rng(seed)
    a, b, c = (
        classed(rng.normal(offset, 1.0, (n, 3)), rng.choice(["u", "v", "w"], n)) for n in sizes
    )
    pairs = [(a.merge(b), b.merge(a)), (a.merge(b).merge(c), a.merge(b.merge(c)))]
    for one, two in pairs:
        assert one.n_rows == two.n_rows
        assert one.weight == two.weight
        assert one.classes is not None
        assert two.classes is not None
        assert one.classes.tolist() == two.classes.tolist()
        x = np.sqrt(np.diagonal(one.xx).max()) + 1.0
        y = np.sqrt(np.diagonal(one.yy).max()) + 1.0
        units = {"x_mean": x + abs(offset), "y_mean": y, "xx": x * x, "xy": x * y, "yy": y * y}
        for name, unit in units.items():
            apart = np.abs(getattr(one, name) - getattr(two, name)).max()
            assert apart <= (1e-8 if offset else 1e-14) * unit, name


def test_a_column_constant_in_every_part() -> None:
    # Constant with one value: of no use. With another value in each part: as good as any.
    X, y = table()
    X[:, 0], X[:, 1] = 0.1, np.repeat([0.1, 0.7], 45)
    parts = [classed(X[rows], y[rows]) for rows in (slice(0, 45), slice(45, 90))]
    problem = Problem.from_moments(parts[0].merge(parts[1]))
    assert problem.usable.tolist() == [1, 2, 3]
