"""The results of a store as tables: published beside measured, means, and mean ranks."""

from __future__ import annotations

import json

from exactk.papers.experiments.page.arrange import studies
from exactk.papers.experiments.page.ranks import ranking
from exactk.papers.experiments.result_tables import StoreResults
from tests.unit.papers.experiments.page import stores


def lines_of(records) -> list[list[str]]:
    return [text.split() for text in repr(StoreResults(records)).splitlines()]


def objective_store(published):
    definition = stores.definition(
        "r", [{"kind": "table", "measure": "objective"}], datasets=["srbct"], methods=["A"],
        sizes=[5], repeats=2, published={"objective": {"srbct": {"5": {"A": published}}}},
    )  # fmt: skip
    records = [definition, *stores.cells_of(definition)]
    for value, record in zip((3.0, 5.0), records[1:], strict=True):
        record["results"][0]["objective"] = value
    return records


def test_published_beside_measured():
    results = StoreResults(objective_store([2.0, 1.0]))
    heading, _, names, line, *_ = repr(results).splitlines()
    assert heading.startswith("r")
    assert heading.endswith("(2 done)")
    assert names.split() == [
        *("measure", "data", "k", "method", "published", "measured", "difference"),
        *("within", "sd", "standard", "errors"),
    ]
    # Mean 4 and standard deviation sqrt(2) of 3 and 5; the standard error of the difference has
    # 1 and 2 as variances of single runs, two runs each.
    errors = (4 - 2) / (1 / 2 + 2 / 2) ** 0.5
    assert line.split() == [
        *("objective", "srbct", "5", "A", "2", "±", "1", "4", "±", "1.414", "+2", "no"),
        f"{errors:+.1f}",
    ]
    (row,) = [row for row in results.table if row["measure"] == "objective"]
    assert (row["n"], row["mean"], row["published"], row["published_sd"]) == (2, 4.0, 2.0, 1.0)
    assert row["within_deviation"] is False
    plain = json.loads(results.to_json())
    assert plain["published"][0]["difference"] == 2.0
    assert plain["failures"] == []


def test_a_published_deviation_of_zero_is_shown():
    row = next(line for line in lines_of(objective_store([2.0, 0.0])) if line[:1] == ["objective"])
    assert row[4:7] == ["2", "±", "0"]


def test_ranks_go_by_the_measure_of_the_view_and_are_those_of_the_page():
    view = {"kind": "ranks", "measure": "linear"}
    definition = stores.definition("r", [view], methods=["A", "B"], sizes=[5], repeats=1)
    records = [definition, *stores.cells_of(definition)]
    for record in records[1:]:
        value = {"A": 0.75, "B": 0.875}[record["method"]]
        record["results"][0]["measures"] = {"linear": value}
    lines = lines_of(records)
    at = lines.index(["method", "mean", "rank", "mean", "wins", "seconds", "failed", "not", "run"])
    assert [words[:3] for words in lines[at + 1 :]] == [["B", "1.00", "87.5"], ["A", "2.00", "75"]]
    found = ranking(studies(records)[0], ("linear",))
    assert [words[0] for words in lines[at + 1 :]] == found.methods


def test_a_method_without_a_number_is_last_and_said_to_have_failed():
    view = {"kind": "ranks", "measure": "svm"}
    definition = stores.definition(
        "r", [view], datasets=["a"], methods=["A", "B"], sizes=[5], repeats=1
    )
    records = [
        definition,
        *stores.cells_of(definition, without=[("a", "A")]),
        stores.failed("r", "a", "A", 0),
    ]
    # No mean and no time: these columns are empty.
    assert lines_of(records)[-1] == ["A", "2.00", "0", "1", "0"]
    assert [one["method"] for one in StoreResults(records).to_dict()["failures"]] == ["A"]


def test_a_long_table_shows_means_over_k():
    definition = stores.definition(
        "r", [{"kind": "table", "measure": "objective"}], datasets=["a"], methods=["A"],
        sizes=list(range(1, 71)), repeats=1,
    )  # fmt: skip
    records = [definition, *stores.cells_of(definition)]
    values = [result["objective"] for record in records[1:] for result in record["results"]]
    assert len(values) == 70
    mean = sum(values) / 70
    assert ["a", "mean", "A", f"{mean:.4g}", "1"] in lines_of(records)


def test_no_records():
    assert repr(StoreResults([])) == "no records yet"
    assert len(StoreResults([]).table) == 0
