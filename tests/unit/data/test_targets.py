"""Targets of every kind become the same one-hot columns or numbers, or are refused by name."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from exactk import Problem, TopKSelector, investigate, read_table
from exactk.data.targets import apply_class_weights, encode_target, encode_weights
from exactk.errors import InputError, Setting, render
from tests.support import says

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

WORDS = ["no", "yes", "no", "maybe", "yes", "no"]
CODES = [1, 2, 1, 0, 2, 1]
ONE_HOT = np.array([[0, 1, 0], [0, 0, 1], [0, 1, 0], [1, 0, 0], [0, 0, 1], [0, 1, 0]])


@pytest.mark.parametrize(
    "y",
    [
        WORDS,
        tuple(WORDS),
        np.array(WORDS),
        np.array(WORDS, dtype=object),
        np.array(WORDS)[:, None],
        pd.Series(WORDS),
        pd.Series(WORDS, index=[5, 1, 4, 0, 2, 3]),
        pd.Series(WORDS, dtype="category"),
        pd.Series(WORDS, dtype="string"),
        pd.Categorical(WORDS, categories=["yes", "never", "no", "maybe"]),
        pd.Index(WORDS),
        pd.DataFrame({"y": WORDS}),
        pl.Series(WORDS),
        pl.Series(WORDS, dtype=pl.Categorical),
        pl.DataFrame({"y": WORDS}),
        pa.array(WORDS),
        pa.chunked_array([WORDS[:2], WORDS[2:]]),
        pa.array(WORDS).dictionary_encode(),
    ],
    ids=lambda y: f"{type(y).__module__.split('.')[0]}.{type(y).__name__}",
)
def test_labels_of_any_container(y: Any) -> None:
    target = encode_target(y)
    assert target.task == "classification"
    assert target.classes is not None
    assert target.classes.tolist() == ["maybe", "no", "yes"]
    assert (target.block(0, 6) == ONE_HOT).all()
    assert (target.block(2, 4) == ONE_HOT[2:4]).all()
    assert (target.n_rows, target.n_outputs) == (6, 3)


@pytest.mark.parametrize(
    ("y", "classes"),
    [
        ([0, 1, 0], [0, 1]),
        ([-3, 7, -3], [-3, 7]),
        ([2.0, 1.0, 2.0], [1.0, 2.0]),
        ([True, False, True], [False, True]),
        (np.array([2, 1, 2], dtype=np.uint8), [1, 2]),
        (np.array([2, 1, 2], dtype=object), [1, 2]),
        (np.array([True, False, True], dtype=object), [False, True]),
        (["10", "9", "10"], ["10", "9"]),
        (pd.Series([2, 1, 2], dtype="Int64"), [1, 2]),
        (pd.Series([True, False, True], dtype="boolean"), [False, True]),
        (pl.Series([True, False, True]), [False, True]),
        (pa.array([True, False, True]), [False, True]),
        (pa.array([2, 1, 2]), [1, 2]),
    ],
)
def test_numbers_and_booleans_as_labels(y: Any, classes: list[Any]) -> None:
    target = encode_target(y)
    assert target.task == "classification"
    assert target.classes is not None
    assert target.classes.tolist() == classes
    own = list(np.asarray(y))
    expected = [[float(label == value) for label in classes] for value in own]
    assert target.block(0, 3).tolist() == expected


@settings(max_examples=15, deadline=None)
@given(st.lists(st.text(max_size=3), min_size=2, max_size=30).filter(lambda y: len(set(y)) > 1))
def test_any_text_is_a_label(y: list[str]) -> None:
    target = encode_target(np.array(y, dtype=object))
    assert target.classes is not None
    assert [target.classes[row.argmax()] for row in target.block(0, len(y))] == y
    assert (target.block(0, len(y)).sum(axis=1) == 1).all()


@pytest.mark.parametrize(
    "y",
    [
        [0.5, 1.5, 3.0],
        np.array([0.5, 1.5, 3.0], dtype=np.float32),
        np.array([0.5, 1.5, 3.0], dtype=object),
        np.array([[0.5], [1.5], [3.0]]),
        pd.Series([0.5, 1.5, 3.0]),
        pl.Series([0.5, 1.5, 3.0]),
        pa.array([0.5, 1.5, 3.0]),
        [Decimal("0.5"), Decimal("1.5"), Decimal("3")],
        [Decimal("0.5"), 1.5, 3],
    ],
    ids=lambda y: f"{type(y).__module__.split('.')[0]}.{type(y).__name__}",
)
def test_fractions_are_amounts(y: Any) -> None:
    target = encode_target(y)
    assert (target.task, target.classes, target.n_outputs) == ("regression", None, 1)
    assert target.block(0, 3).tolist() == [[0.5], [1.5], [3.0]]


def test_task_regression_takes_integers_and_booleans_as_numbers() -> None:
    assert encode_target([0, 1, 5], "regression").block(0, 3).tolist() == [[0], [1], [5]]
    assert encode_target([True, False], "regression").block(0, 2).tolist() == [[1], [0]]


@pytest.mark.parametrize("make", [np.array, pd.DataFrame, lambda y: pl.DataFrame(y, orient="row")])
def test_several_outputs(make: Any) -> None:
    amounts = [[0.5, 1.0], [1.5, 2.0], [2.5, 7.0]]
    target = encode_target(make(amounts))
    assert (target.task, target.classes, target.n_outputs) == ("regression", None, 2)
    assert target.block(1, 3).tolist() == amounts[1:]
    assert target.take(np.array([2, 0])).tolist() == [amounts[2], amounts[0]]


@pytest.mark.parametrize("dtype", [int, bool, float])
def test_multilabel_indicators_are_columns(dtype: type) -> None:
    labels = np.array([[1, 0, 1], [0, 0, 1], [1, 1, 0]], dtype=dtype)
    target = encode_target(labels)
    assert (target.task, target.classes, target.n_outputs) == ("classification", None, 3)
    assert (target.block(0, 3) == labels).all()


def test_sparse_indicators_have_a_hint() -> None:
    with says("y", "sparse", "toarray"):
        encode_target(sparse.csr_matrix(np.eye(3)))


@pytest.mark.parametrize("dtype", [np.int64, np.uint8, float, object])
def test_many_rare_whole_numbers_are_amounts(dtype: Any) -> None:
    ages = (np.arange(60) % 30).astype(dtype)
    target = encode_target(ages)
    assert (target.task, target.n_outputs) == ("regression", 1)
    assert "30 different whole numbers" in render(target.assumption)
    assert Setting("task", "classification") in target.assumption
    assert encode_target(ages, "classification").n_outputs == 30
    assert encode_target(ages, "regression").assumption == ""
    assert encode_target(ages.astype(int).astype(str)).n_outputs == 30


def test_many_whole_numbers_that_float64_cannot_tell_apart_are_amounts() -> None:
    assert encode_target([10**30 + i for i in range(60)]).task == "regression"
    assert encode_target([10**30 + i % 2 for i in range(60)]).n_outputs == 2


@pytest.mark.parametrize("task", ["auto", "regression"])
@pytest.mark.parametrize("least", [2**60, 2**63, 10**30])
def test_a_target_that_float64_cannot_tell_apart_is_not_called_constant(
    least: int, task: Any, tmp_path: Path
) -> None:
    y = [least + i for i in range(60)]
    X = np.random.default_rng(0).normal(size=(60, 2))
    path = tmp_path / "large.csv"
    lines = [f"{a},{b},{value}" for (a, b), value in zip(X, y, strict=True)]
    path.write_text("\n".join(["a,b,y", *lines]))
    for make in (
        lambda: Problem.from_arrays(X, y, task=task),
        lambda: Problem.from_files(path, "y", task=task),
        lambda: read_table(path, "y", task=task),
    ):
        with says("too little for float64", "subtract an offset") as error:
            make()
        assert error.value.parameter == "y"


@pytest.mark.parametrize(
    ("n_classes", "n_rows"), [(3, 150), (20, 40), (30, 900), (40, 400), (120, 1680), (200, 3000)]
)
def test_whole_numbers_of_many_rows_each_are_classes(n_classes: int, n_rows: int) -> None:
    target = encode_target(np.arange(n_rows) % n_classes)
    assert target.n_outputs == n_classes
    assert Setting("task", "regression") in target.assumption


def test_two_numbers_text_and_fractions_need_no_assumption() -> None:
    for y in ([0, 1, 1, 0], [True, False], ["a", "b", "c"], [0.5, 1.5, 2.5]):
        assert encode_target(y).assumption == ""


@pytest.mark.parametrize("seed", range(3))
def test_counts_of_hundreds_of_values_are_amounts(seed: int) -> None:
    rng = np.random.default_rng(seed)
    counts = rng.poisson(np.exp(rng.normal(4.5, 0.8, 5000)))
    n = len(np.unique(counts))
    assert n * 5 < len(counts)
    target = encode_target(counts)
    assert target.task == "regression"
    assert f"{n} different whole numbers" in render(target.assumption)
    for n_different, rows in ((284, 1000), (711, 4000), (284, 20_000)):
        assert encode_target(np.arange(rows) % n_different).task == "regression"


def test_what_is_said_about_whole_numbers_can_be_done() -> None:
    for y in (np.arange(90) % 30, np.arange(90) % 3):
        target = encode_target(y)
        setting = next(part for part in target.assumption if getattr(part, "name", "") == "task")
        other = encode_target(y, setting.value)
        assert {target.task, other.task} == {"classification", "regression"}


def test_rows_of_different_numbers_are_counted_by_weight() -> None:
    y = np.arange(125) % 25
    # A number that has next to no weight is rare, whatever the unit of the weights.
    weights = np.where(y < 5, 0.1, 1.0)
    for unit in (1.0, 1e-3):
        assert encode_target(y, weights=unit * weights).task == "regression"
        assert encode_target(y, weights=np.full(125, unit)).task == "classification"


@pytest.mark.parametrize(
    ("y", "count", "row"),
    [
        ([1.0, np.nan, 2.0, np.nan], 2, 1),
        ([1.5, 2.5, np.inf], 1, 2),
        ([-np.inf, 2.5, 1.0], 1, 0),
        (["a", None, "b"], 1, 1),
        (np.array(["a", float("nan"), "b"], dtype=object), 1, 1),
        (np.array([1, None, 2], dtype=object), 1, 1),
        (pd.Series(["a", None, "b"]), 1, 1),
        (pd.Series(["a", pd.NA, "b"], dtype="string"), 1, 1),
        (pd.Series([1, None, 2], dtype="Int64"), 1, 1),
        (pd.Categorical(["a", None, "b"]), 1, 1),
        (pl.Series(["a", None, "b"]), 1, 1),
        (pl.Series([1, None, 2]), 1, 1),
        (pa.array(["a", None, "b"]), 1, 1),
        (np.array(["2020-01-01", "NaT"], dtype="M8[D]"), 1, 1),
        ([[1.0, 2.0], [np.nan, 1.0]], 1, 1),
    ],
    # A repr may hold an address, and names must be the same in every process.
    ids=lambda y: f"{type(y).__module__.split('.')[0]}.{type(y).__name__}",
)
def test_missing_and_infinite_values_are_counted(y: Any, count: int, row: int) -> None:
    for task in ("auto", "classification", "regression"):
        with says("y contains NaN", f"{count} of them", f"row {row}", "drop those rows"):
            encode_target(y, task)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (None, ["y is None"]),
        (3, ["shape ()"]),
        ([], ["shape (0,)"]),
        (np.zeros((2, 2, 2)), ["shape (2, 2, 2)"]),
        ([1j, 2.0], ["Complex data not supported", "y"]),
        ([1, "a", 2], ["mixes labels", "int", "str", "all strings"]),
        (["a", "a", "a"], ["1 class", "a", "at least two classes"]),
        ([7, 7], ["1 class", "7", "at least two"]),
        ([["a", "b"], ["b", "a"]], ["'a'", "not a number"]),
        ([[1, 2], [3]], ["y"]),
        ([b"a", b"b"], ["bytes"]),
        (np.ma.array([1.5, 2.5, 3.5], mask=[0, 0, 1]), ["masked", "row 2"]),
    ],
    ids=repr,
)
def test_what_is_no_target(y: Any, words: list[str]) -> None:
    if isinstance(y, list) and y and y[0] == 1 and "a" in y:
        y = np.array(y, dtype=object)
    with says(*words) as error:
        encode_target(y)
    assert error.value.parameter == "y"


def test_task_and_target_must_agree() -> None:
    with says("continuous", "fractions", "task='regression'"):
        encode_target([0.5, 1.5], "classification")
    with says("numbers", "regression", "'a'", "row 1"):
        encode_target(["1", "a", "b"], "regression")
    with says("task must be", "'classification'", "'clasification'"):
        encode_target([0, 1], "clasification")  # type: ignore[arg-type]


@pytest.mark.parametrize("labels", [["a", "b", "c"], [3, 1, 2], [2.0, 3.0, 1.0]])
def test_a_class_without_weight_vanishes(labels: list[Any]) -> None:
    y = np.array(labels)[[0, 1, 2, 0, 1, 2]]
    target = encode_target(y, weights=np.array([1.0, 1, 0, 2, 1, 0]))
    assert target.classes is not None
    assert target.classes.tolist() == sorted(labels[:2])
    shown = target.block(0, 6)
    assert (shown[[2, 5]] == 0).all()
    assert (shown[[0, 1, 3, 4]].sum(axis=1) == 1).all()
    with says("1 class", "non-zero weight"):
        encode_target(y, weights=np.array([1.0, 0, 0, 2, 0, 0]))


def test_weights_decide_what_is_counted() -> None:
    # Fractions, many classes and text in rows of weight 0 do not count.
    y, w = np.array([0.0, 1.0, 0.5, 1.0]), np.array([1.0, 1.0, 0.0, 1.0])
    assert encode_target(y, weights=w).task == "classification"
    ages = np.arange(60)
    w = (ages < 2).astype(float)
    assert encode_target(ages, weights=w).n_outputs == 2


def test_input_is_not_changed() -> None:
    y = np.array([0.5, 1.5, 2.5])
    y.setflags(write=False)
    Problem.from_arrays(np.eye(3, 2), y, sample_weight=[1, 2, 3]).objective([0])
    assert y.tolist() == [0.5, 1.5, 2.5]


@pytest.mark.parametrize(
    "w", [[1, 0, 2], (1, 0, 2), pd.Series([1, 0, 2]), pl.Series([1, 0, 2]), pa.array([1, 0, 2])]
)
def test_weights_of_any_container(w: Any) -> None:
    weights = encode_weights(w, 3)
    assert weights is not None
    assert weights.tolist() == [1.0, 0.0, 2.0]
    assert weights.dtype == np.float64


def test_one_weight_for_all_and_none() -> None:
    weights = encode_weights(2, 3)
    assert weights is not None
    assert weights.tolist() == [2.0, 2.0, 2.0]
    assert encode_weights(None, 3) is None


@pytest.mark.parametrize(
    ("w", "words"),
    [
        ([1, -1, -2], ["sample_weight", "negative", "2", "row 1"]),
        ([1, np.nan, 1], ["sample_weight", "NaN", "row 1"]),
        ([1, 1, np.inf], ["sample_weight", "1", "infinite", "row 2"]),
        ([1, None, 1], ["sample_weight", "NaN", "row 1"]),
        ([0, 0, 0], ["sample_weight", "zero for every row"]),
        ([1, 2], ["sample_weight", "(2,)", "(3,)"]),
        ([[1], [2], [3]], ["1D", "sample_weight", "(3, 1)"]),
        (["a", "b", "c"], ["sample_weight", "numbers"]),
        (np.ma.array([1.0, 2.0, 3.0], mask=[0, 1, 0]), ["masked", "row 1"]),
        ([1, 1e308, 1], ["sample_weight is 1e+308 in row 1", "too large", "divide all weights"]),
        ([1e-310, 1e-310, 1e-310], ["1e-310", "too small", "divide all weights"]),
    ],
)
def test_what_is_no_weight(w: Any, words: list[str]) -> None:
    with says(*words) as error:
        encode_weights(w, 3)
    assert error.value.parameter == "sample_weight"


def test_weights_of_classes() -> None:
    target = encode_target(["a", "b", "b", "c"])
    # A label that no row has is a slip, unless every class that there is has a weight.
    with says("class_weight", "'d'"):
        apply_class_weights({"a": 2.0, "d": 3.0}, target, None)
    found = apply_class_weights({"a": 2.0, "b": 1.0, "c": 1.0, "d": 3.0}, target, None)
    assert found is not None
    assert found.tolist() == [2.0, 1.0, 1.0, 1.0]
    # A class without rows that count does not take part.
    empty = apply_class_weights("balanced", target, np.array([1.0, 1.0, 1.0, 0.0]))
    assert empty is not None
    np.testing.assert_allclose(empty, [1.5, 0.75, 0.75, 0.0])
    with says("class_weight", "above 0", "'b'"):
        apply_class_weights({"b": 0.0}, target, None)
    with says("class_weight is for classes"):
        apply_class_weights("balanced", encode_target([0.5, 1.5]), None)


@pytest.mark.parametrize(
    ("y", "label"),
    [
        *[([0, 1, 1], label) for label in (1, 1.0, np.int64(1), "1")],
        *[([0.0, 1.0, 1.0], label) for label in (1, 1.0, "1", "1.0")],
        ([False, True, True], "True"),
    ],
)
def test_weights_name_numbers_by_their_text_too(y: list[Any], label: Any) -> None:
    found = apply_class_weights({label: 2}, encode_target(y), None)
    assert found is not None
    assert found.tolist() == [1.0, 2.0, 2.0]


@pytest.mark.parametrize("weight", [1e308, np.inf, 0, "1"])
def test_weights_of_classes_that_cannot_be_are_not_those_of_rows(weight: Any) -> None:
    with pytest.raises(InputError) as error:
        apply_class_weights({0: weight, 1: 1}, encode_target([0, 1, 1]), None)
    assert error.value.parameter == "class_weight"


@pytest.mark.parametrize("container", [list, np.array, pd.Series, lambda y: np.array(y, object)])
@pytest.mark.parametrize("weight", [0.0, 1.0])
def test_a_word_among_numbers_is_named_with_its_row(container: Any, weight: float) -> None:
    y = container([*range(37), "?", *range(37, 59)])
    weights = np.array([weight, *[1.0] * 59])
    with says("'?'", "not a number", "row 37", "task='classification'") as error:
        encode_target(y, weights=weights)
    assert error.value.parameter == "y"


DAYS = pd.date_range("2020", periods=60)


@pytest.mark.parametrize(
    ("y", "kind"),
    [
        (DAYS, "datetime64"),
        (DAYS.to_series().dt.tz_localize("UTC"), "Timestamp"),
        ([day.date() for day in DAYS], "(date)"),
        (DAYS - DAYS[0], "timedelta64"),
        (pl.Series(DAYS.to_numpy()), "datetime64"),
        # Two rows each are no more a class.
        (DAYS.repeat(2), "60 different dates"),
        (DAYS[:4], "4 different dates"),
    ],
    ids=["pandas", "zone", "date", "duration", "polars", "pairs", "few rows"],
)
def test_dates_are_no_classes(y: Any, kind: str) -> None:
    with says("dates or durations", kind, "such as days", "labels as text"):
        encode_target(y)
    with says("dates or durations", "which are not numbers", "such as days"):
        encode_target(y, "regression")


def test_a_few_dates_of_many_rows_each_are_labels() -> None:
    target = encode_target(DAYS[:3].repeat(20))
    assert (target.task, target.n_outputs) == ("classification", 3)
    assert encode_target(DAYS, "classification").n_outputs == 60
    with says("dates or durations", "not numbers"):
        encode_target(np.array([DAYS, DAYS]).T)


def test_dates_come_to_no_problem() -> None:
    X = np.random.default_rng(0).normal(size=(60, 4))
    for done in (lambda: TopKSelector(2).fit(X, DAYS), lambda: investigate(X, DAYS, k=2)):
        with says("60 different dates or durations (datetime64", "such as days"):
            done()
