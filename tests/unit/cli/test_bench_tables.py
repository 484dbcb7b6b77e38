"""Tables of ``exactk bench``: the figures that a person reads in the terminal."""

from __future__ import annotations

from exactk.cli.bench_tables import render
from exactk.papers.experiments.page.arrange import studies
from exactk.papers.experiments.page.ranks import ranking
from tests.unit.papers.experiments.page import stores


def test_ranks_go_by_the_measure_of_the_view_and_are_those_of_the_page():
    view = {"kind": "ranks", "measure": "linear"}
    line = stores.definition("r", [view], methods=["A", "B"], sizes=[5], repeats=1)
    records = [line, *stores.cells_of(line)]
    for record in records[1:]:
        value = {"A": 0.75, "B": 0.875}[record["method"]]
        record["results"][0]["measures"] = {"linear": value}
    lines = [text.split() for text in render(records, "text").splitlines()]
    at = lines.index(["method", "mean", "rank", "mean", "wins", "seconds", "failed", "not", "run"])
    assert [words[:3] for words in lines[at + 1 :]] == [["B", "1.00", "87.5"], ["A", "2.00", "75"]]
    found = ranking(studies(records)[0], ("linear",))
    assert [words[0] for words in lines[at + 1 :]] == found.methods


def test_a_method_without_a_number_is_last_and_said_to_have_failed():
    view = {"kind": "ranks", "measure": "svm"}
    line = stores.definition("r", [view], datasets=["a"], methods=["A", "B"], sizes=[5], repeats=1)
    records = [
        line, *stores.cells_of(line, without=[("a", "A")]), stores.failed("r", "a", "A", 0)
    ]  # fmt: skip
    last = render(records, "text").splitlines()[-1].split()
    # No mean and no time: these columns are empty.
    assert last == ["A", "2.00", "0", "1", "0"]


def test_a_stated_deviation_of_zero_is_shown():
    published = {"objective": {"srbct": {"5": {"A": [2.0, 0.0]}}}}
    view = {"kind": "table", "measure": "objective"}
    line = stores.definition(
        "r", [view], datasets=["srbct"], methods=["A"], sizes=[5], repeats=1, published=published
    )
    records = [line, *stores.cells_of(line)]
    row = next(text for text in render(records, "text").splitlines() if text.startswith("objec"))
    assert "2 ± 0" in row


def test_no_records_is_said():
    assert render([], "text") == "no records yet\n"
