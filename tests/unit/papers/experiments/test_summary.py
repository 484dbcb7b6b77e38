"""Means, stability and the comparison with printed figures, by hand."""

from __future__ import annotations

from math import sqrt
from typing import Any

import pytest

from exactk.papers.experiments.summary import compare, failures, summarise


def cell(
    method: str,
    value: float,
    *,
    dataset: str = "digits",
    repeat: int = 0,
    k: int = 2,
    support: tuple[int, ...] = (0, 1),
    status: str = "done",
) -> dict[str, Any]:
    result = {
        "k": k,
        "status": "converged",
        "n_iter": 3,
        "seconds": 0.5,
        "support": list(support),
        "objective": 2.0 * value,
        "own": None,
        "measures": {"svm": value},
    }
    return {
        "type": "cell",
        "key": f"{method}/{dataset}/{repeat}/{k}",
        "recipe": "r",
        "dataset": dataset,
        "features": 10,
        "method": method,
        "sizes": [k],
        "repeat": repeat,
        "status": status,
        "reason": "" if status == "done" else "it was too hard",
        "results": [result] if status == "done" else [],
    }


def definition(**published: Any) -> dict[str, Any]:
    recipe = {
        "datasets": ["digits"],
        "sizes": [2],
        "repeats": 4,
        "methods": [{"label": "A"}, {"label": "B"}],
        "published": published,
    }
    return {"type": "recipe", "name": "r", "definition": recipe}


def rows_of(records: list[dict[str, Any]]) -> dict[tuple[str, str], Any]:
    return {(row.method, row.measure): row for row in summarise(records)}


def test_mean_and_deviation_over_repeats() -> None:
    rows = rows_of([cell("A", value, repeat=i) for i, value in enumerate((0.5, 0.7, 0.9))])
    row = rows["A", "svm"]
    assert (row.n, row.lowest, row.highest) == (3, 0.5, 0.9)
    assert row.mean == pytest.approx(0.7)
    assert row.sd == pytest.approx(0.2)
    assert row.value("max") == 0.9
    assert rows["A", "objective"].mean == pytest.approx(1.4)
    assert ("A", "own") not in rows


def test_one_repeat_has_no_deviation() -> None:
    assert rows_of([cell("A", 0.5)])["A", "svm"].sd is None


def test_stability_is_that_of_the_supports() -> None:
    same = rows_of([cell("A", 0.5, repeat=i) for i in range(3)])
    assert same["A", "jaccard"].mean == same["A", "nogueira"].mean == 1.0
    differ = rows_of([cell("A", 0.5, support=(0, 1)), cell("A", 0.5, repeat=1, support=(1, 2))])
    assert differ["A", "jaccard"].mean == pytest.approx(1 / 3)


def test_a_cell_that_ran_again_counts_once() -> None:
    rows = rows_of([cell("A", 0.1), cell("A", 0.9)])
    assert (rows["A", "svm"].n, rows["A", "svm"].mean) == (1, 0.9)


def test_printed_beside_measured_in_per_cent() -> None:
    records = [definition(svm={"digits": {"2": {"A": [60.0, 10.0], "B": 50.0, "C": 1.0}}})]
    records += [cell("A", value, repeat=i) for i, value in enumerate((0.5, 0.7, 0.9))]
    a, b, c = compare(records)
    assert a.difference == pytest.approx(10.0)
    assert a.within_deviation
    assert a.standard_errors == pytest.approx(10.0 / sqrt(100.0 / 4 + 400.0 / 3))
    assert (b.measured, b.difference, b.within_deviation, b.n) == (None, None, None, 0)
    # A method that was not asked for is there, to be set beside those that were.
    assert (c.method, c.published, c.measured) == ("C", 1.0, None)


def test_a_single_repeat_has_no_standard_error() -> None:
    records = [definition(svm={"digits": {"2": {"A": [60.0, 10.0]}}}), cell("A", 0.75)]
    (found,) = compare(records)
    assert found.difference == pytest.approx(15.0)
    assert found.within_deviation is False
    assert found.standard_errors is None


def test_figures_of_sizes_and_data_not_requested_are_left_out() -> None:
    assert compare([definition(svm={"digits": {"3": {"A": 1.0}}, "wine": {"2": {"A": 1.0}}})]) == []


def test_failures_are_kept_with_their_reason() -> None:
    (failure,) = failures([cell("A", 0.5), cell("B", 0.5, status="failed")])
    assert (failure.method, failure.status, failure.reason) == ("B", "failed", "it was too hard")


def test_recipes_that_saw_other_data_of_the_same_name():
    """One was run before the file was replaced by a narrower one."""

    def cell(recipe, key, features, support):
        return {
            "type": "cell", "key": key, "recipe": recipe, "dataset": "mine", "method": "m",
            "features": features, "status": "done",
            "results": [{"k": 2, "support": support, "measures": {}}],
        }  # fmt: skip

    records = [
        cell("old", "a", 10, [8, 9]),
        cell("old", "b", 10, [8, 7]),
        cell("new", "c", 4, [0, 1]),
        cell("new", "d", 4, [0, 1]),
    ]
    found = {row.recipe: row.mean for row in summarise(records) if row.measure == "nogueira"}
    assert found["new"] == 1.0
    assert found["old"] < 1.0


def test_rows_are_in_the_order_of_the_recipe_and_not_of_the_cells() -> None:
    records = [definition(), cell("B", 0.1, k=5), cell("B", 0.1), cell("A", 0.1, dataset="wine")]
    records += [cell("A", 0.1), cell("A", 0.1, k=5)]
    found = [(row.dataset, row.k, row.method) for row in summarise(records) if row.measure == "svm"]
    assert found == [
        ("digits", 2, "A"),
        ("digits", 2, "B"),
        ("digits", 5, "A"),
        ("digits", 5, "B"),
        ("wine", 2, "A"),
    ]
