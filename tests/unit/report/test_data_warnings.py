"""Warnings about a table: each kind is found where it applies, and only there."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import LinearRegression

from exactk import Problem, solve
from exactk.data.moments import Moments
from exactk.report.data_warnings import class_rows, find_warnings

NAMES = ["a", "b", "c", "d", "e"]


def normal(n=120, d=5, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def labels(X, noise=1.0, seed=1):
    rng = np.random.default_rng(seed)
    return np.where(X[:, 0] + noise * rng.normal(size=len(X)) > 0, "yes", "no")


def warnings_in(problem, k=2):
    return {one.kind: one for one in find_warnings(problem, solve(problem, k))}


def warnings_of(X, y, k=2, **options):
    return warnings_in(Problem.from_arrays(X, y, **options), k)


def test_an_ordinary_table_has_none():
    X = normal()
    assert warnings_of(X, labels(X)) == {}
    assert warnings_of(X, X @ [1, 1, 0, 0, 0] + normal(d=1, seed=2)[:, 0]) == {}


def test_constant_columns():
    X, weights = normal(), np.ones(120)
    X[:, 3], weights[:5] = 7, 0
    found = warnings_of(X, labels(X), feature_names=NAMES)
    assert list(found) == ["constant"]
    assert found["constant"].names == ("d",)
    # Only rows without weight have another value.
    X[:5, 3] = 1
    assert "constant" in warnings_of(X, labels(X), sample_weight=weights)
    assert "constant" not in warnings_of(X, labels(X))


def test_copies():
    X = normal()
    X[:, 4] = 3 - 2 * X[:, 0]
    found = warnings_of(X, labels(X), feature_names=NAMES)
    assert list(found) == ["duplicated"]
    assert found["duplicated"].names == ("e",)
    assert "'e' of 'a'" in found["duplicated"].text
    X[:, 4] += 1e-3 * normal(d=1, seed=5)[:, 0]
    assert "duplicated" not in warnings_of(X, labels(X), k=1)


def inflation(X, j):
    """1 / (1 − R²) of a regression of one column on the others."""
    rest = np.delete(X, j, axis=1)
    return 1 / (1 - LinearRegression().fit(rest, X[:, j]).score(rest, X[:, j]))


@pytest.mark.parametrize("noise", [0.1, 0.25, 0.5, 2.0])
def test_collinear_is_variance_inflation_above_ten(noise):
    X = normal()
    X[:, 2] = X[:, 0] + X[:, 1] + noise * X[:, 2]
    y = X @ [1.0, -1.0, 2.0, 0, 0]
    problem = Problem.from_arrays(X, y, feature_names=NAMES).with_constraints(
        include=["a", "b", "c"]
    )
    found = warnings_in(problem, 3)
    factors = {name: inflation(X[:, :3], j) for j, name in enumerate("abc")}
    high = {name: factor for name, factor in factors.items() if factor > 10}
    assert ("collinear" in found) == bool(high)
    if high:
        assert set(found["collinear"].names) == set(high)
    for name, factor in high.items():
        assert f"'{name}' ({factor:.0f})" in found["collinear"].text


@pytest.mark.parametrize("small", [2, 8, 20, 21])
def test_uneven_and_tiny_classes(small):
    found = warnings_of(normal(), np.array(["big"] * (120 - small) + ["small"] * small))
    # From five times the rows on, and below ten rows; the serious come first.
    order = {2: ["tiny", "imbalanced"], 8: ["imbalanced", "tiny"], 20: ["imbalanced"], 21: []}
    assert list(found) == order[small]
    if small == 20:
        assert "5 times the rows" in found["imbalanced"].text
        assert found["imbalanced"].names == ("big", "small")
    if small < 10:
        assert f"'small' ({small})" in found["tiny"].text
        assert found["tiny"].serious == (small == 2)


def test_balanced_weights_are_not_advised_to_who_has_them():
    X = normal()
    problem = Problem.from_arrays(X, ["big"] * 105 + ["small"] * 15)
    plain = warnings_in(problem)
    assert "Balanced class weights and" in plain["imbalanced"].text
    problem = problem.with_class_weight("balanced")
    weighed = warnings_in(problem)
    assert "7 times the rows" in weighed["imbalanced"].text
    assert "Balanced class weights and" not in weighed["imbalanced"].text


@pytest.mark.parametrize("size", [1e-6, 1 / 120, 1.0, 1e6])
def test_weights_of_any_size_say_the_same(size):
    X = normal()
    y = labels(X)
    assert warnings_of(X, y, sample_weight=np.full(120, size)) == {}
    few = np.array(["big"] * 112 + ["small"] * 8)
    found = warnings_of(X, few, sample_weight=np.full(120, size))
    assert "'small' (8)" in found["tiny"].text


def test_a_class_without_rows_is_said_and_not_divided_by(tmp_path):
    X, y = normal(), np.array(["u"] * 80 + ["v"] * 40)
    path = tmp_path / "table.csv"
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])]).assign(y=y)
    frame.to_csv(path, index=False)
    problem = Problem.from_files(path, "y", classes=["u", "v", "zz"])
    found = warnings_in(problem)
    assert found["empty"].names == ("zz",)
    assert {"imbalanced", "tiny"}.isdisjoint(found)


def test_rows_of_classes():
    X, y = normal(), np.array(["u"] * 60 + ["v"] * 40 + ["w"] * 20)
    assert class_rows(Problem.from_arrays(X, y)).tolist() == [60, 40, 20]
    weights = np.full(120, 0.25)
    weights[::2] = 0
    problem = Problem.from_arrays(X, y, sample_weight=weights)
    assert class_rows(problem).tolist() == [30, 20, 10]
    assert class_rows(problem.with_class_weight("balanced")).tolist() == [30, 20, 10]
    assert class_rows(problem.with_loss("optimal_scoring")).tolist() == [30, 20, 10]
    assert class_rows(Problem.from_arrays(X, X[:, 0])) is None


def test_few_rows_and_wide():
    X = normal(39, 5)
    y = labels(X, 0.3)
    assert "few rows" not in warnings_of(X, y, k=3)
    found = warnings_of(X, y, k=4)
    assert "39 rows for 4 columns" in found["few rows"].text
    assert "wide" not in found
    X = normal(20, 21)
    found = warnings_of(X, X[:, 0] + normal(20, 1, seed=4)[:, 0], k=1)
    assert list(found) == ["wide"]
    assert "more columns (21) than rows (20)" in found["wide"].text
    X = X[:, :20]
    assert "wide" not in warnings_of(X, X[:, 0] + normal(20, 1, seed=4)[:, 0], k=1)


def test_a_column_that_gives_the_target_away():
    X = normal()
    y = 3 * X[:, 2] + 1
    found = warnings_of(X, y, feature_names=NAMES)
    assert found["given away"].serious
    assert found["given away"].names == ("c",)
    assert "100.00%" in found["given away"].text
    rng = np.random.default_rng(8)
    # A share of 0.001 is where it begins; by the correlation of one column with the target.
    for noise in (0.02, 0.028, 0.036, 0.05):
        y = X[:, 2] + noise * rng.normal(size=120)
        left = 1 - np.corrcoef(X[:, 2], y)[0, 1] ** 2
        assert ("given away" in warnings_of(X, y)) == (left < 1e-3)


# A step of 0.1 is not exact in binary.
@pytest.mark.parametrize(("start", "step"), [(0, 1), (50, -0.5), (0, 0.1)])
def test_the_number_of_the_row(start, step):
    X, y = normal(), np.array(["u"] * 60 + ["v"] * 60)
    X[:, 3] = start + step * np.arange(120)
    found = warnings_of(X, y, k=1, feature_names=NAMES)
    assert found["row number"].serious
    assert found["row number"].names == ("d",)
    # Not selected, no matter.
    assert "row number" not in warnings_of(X, labels(X, 0.1), k=1)
    X[[3, 4], 3] = X[[4, 3], 3]
    assert "row number" not in warnings_of(X, y, k=1)


def test_repeated_rows():
    X = normal()
    X[7] = X[90]
    found = warnings_of(X, labels(X))
    assert list(found) == ["repeated rows"]
    assert found["repeated rows"].text.startswith("1 row is equal")
    X[8] = X[90]
    assert warnings_of(X, labels(X))["repeated rows"].text.startswith("2 rows are equal")
    # A row that counts for nothing is nobody's copy.
    weights = np.ones(120)
    weights[[7, 8]] = 0
    assert "repeated rows" not in warnings_of(X, labels(X), sample_weight=weights)


def test_chosen_text_of_many_levels_may_be_there_by_chance():
    levels = [f"level {i % 12}" for i in range(120)]
    frame = pd.DataFrame({"place": levels, "colour": ["red", "blue", "green"] * 40})
    y = np.where(np.arange(120) % 12 < 6, "u", "v")
    problem = Problem.from_arrays(frame.assign(x=normal()[:, 0]), y)
    found = warnings_in(problem)
    assert found["many levels"].names == ("place",)
    assert "'place' (12)" in found["many levels"].text
    without = problem.with_constraints(exclude=["place"])
    assert "many levels" not in warnings_in(without)


def test_text_is_coded():
    X = normal()
    table = pl.DataFrame(
        {
            "a": X[:, 0],
            "b": X[:, 1],
            "c": X[:, 2],
            "colour": list("rgb") * 40,
            "sex": ["m", "f"] * 60,
        }
    )
    found = warnings_of(table, labels(X))
    assert list(found) == ["coded"]
    assert found["coded"].names == ("colour", "sex")


def test_moments_alone():
    X = normal()
    X[:, 3] = 7
    codes = np.array([0] * 110 + [1] * 10)
    moments = Moments.from_arrays(X, np.eye(2)[codes], sample_weight=np.full(120, 0.5))
    problem = Problem.from_moments(
        Moments(**{**vars(moments), "feature_names": tuple(NAMES), "classes": np.array(["u", "v"])})
    )
    assert class_rows(problem) == pytest.approx([110, 10])
    found = list(warnings_in(problem))
    assert found == ["constant", "imbalanced"]


def test_streams_that_are_passed_over(tmp_path):
    X = normal()
    X[:, 3] = 7
    table = pl.DataFrame(X, schema=NAMES).with_columns(y=pl.Series(labels(X)))
    table.write_parquet(tmp_path / "t.parquet")
    problem = Problem.from_files(tmp_path / "t.parquet", "y")
    found = list(warnings_in(problem))
    assert found == ["constant"]


def test_many_names_are_cut_short():
    X = normal(200, 30)
    X[:, 10:] = 1
    found = warnings_of(X, labels(X))["constant"]
    assert "14 more" in found.text
    assert len(found.names) == 20
