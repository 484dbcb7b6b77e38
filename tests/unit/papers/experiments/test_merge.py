"""Which records belong together after recipes and data have changed."""

from __future__ import annotations

from exactk.papers.experiments.cells import cells
from exactk.papers.experiments.merge import gather, latest, merge_records, setup_of
from exactk.papers.experiments.recipe import Recipe
from exactk.papers.experiments.store import Store
from tests.support import says


def cell(key: str, sizes: list[int], **values: object) -> dict[str, object]:
    facts = {"recipe": "r", "method": "A", "dataset": "iris", "setup": "s", "checksum": "c"}
    results = [{"k": k, "objective": float(ord(key))} for k in sizes]
    return {"type": "cell", "key": key, "seed": 0, "repeat": 0} | facts | values | {
        "results": results,
        "status": "done" if sizes else "failed",
    }  # fmt: skip


def definition(**values: object) -> dict[str, object]:
    content = {"datasets": ["iris"], "sizes": [1], "repeats": 1, "methods": [{"label": "A"}]}
    return {"type": "recipe", "name": "r", "definition": content} | values


def kept(records):
    return [(r["key"], [x["k"] for x in r["results"]]) for r in latest(records) if "key" in r]


def test_each_draw_and_size_counts_once():
    records = [
        cell("a", [1, 2]),
        cell("b", [2, 3]),
        cell("c", [2], repeat=1),
        cell("d", [2], seed=1),
    ]
    assert kept(records) == [("a", [1]), ("b", [2, 3]), ("c", [2]), ("d", [2])]


def test_failures_stay_until_their_sizes_are_measured():
    failed = cell("a", []) | {"sizes": [1, 2]}
    assert kept([failed, cell("b", [1])]) == [("a", []), ("b", [1])]
    assert kept([failed, cell("b", [1, 2, 3])]) == [("b", [1, 2, 3])]
    assert kept([failed, cell("b", [1, 2], repeat=1)]) == [("a", []), ("b", [1, 2])]
    # A later failure counts, although there was a result before.
    assert kept([cell("b", [1, 2, 3]), failed]) == [("b", [1, 2, 3]), ("a", [])]


def test_what_was_replaced_goes():
    now = definition(setups={"A": "new"}, checksums={"iris": "c"})
    records = [
        now,
        cell("a", [1], setup="old"),
        cell("b", [1], setup="new", checksum="old"),
        cell("c", [1], setup="new"),
        cell("d", [1], method="B", setup="any"),
        cell("e", [1], recipe="other", setup="any"),
    ]
    assert kept(records) == [("c", [1]), ("d", [1]), ("e", [1])]


def test_a_method_that_is_run_later_joins():
    first = definition(setups={"A": "1"}, checksums={"iris": "c"})
    second = definition(setups={"B": "2", "A": "3"}, checksums={"wine": "d"})
    second["definition"] = {
        "datasets": ["wine"], "sizes": [5], "repeats": 9, "title": "new",
        "methods": [{"label": "B"}, {"label": "A", "options": {"x": 1}}],
    }  # fmt: skip
    both = merge_records(first, second)
    assert both["definition"] == {
        "title": "new",
        "datasets": ["iris", "wine"],
        "sizes": [1, 5],
        "repeats": 9,
        "methods": [{"label": "A", "options": {"x": 1}}, {"label": "B"}],
    }
    assert both["setups"] == {"A": "3", "B": "2"}
    assert both["checksums"] == {"iris": "c", "wine": "d"}
    assert merge_records(None, first) == first


def test_stores_are_read_together(tmp_path):
    for name, record in (("one", cell("a", [1])), ("two", cell("b", [2]))):
        with Store(tmp_path / name).writing() as store:
            store.append(definition())
            store.append(record)
    found = gather([tmp_path / "one", tmp_path / "two"])
    assert [record["type"] for record in found] == ["recipe", "cell", "cell"]


def test_a_setup_is_what_a_method_is_measured_by():
    def setups(**changes):
        values = {
            "name": "r", "title": "t", "protocol": "fit", "datasets": ["iris", "wine"],
            "sizes": [1, 2], "repeats": 2, "methods": [{"label": "A", "method": "gsrfs"}],
        }  # fmt: skip
        found = {setup_of(cell) for cell in cells(Recipe.from_dict(values | changes))}
        assert len(found) == 1, "the same on all data, at all sizes, in all repeats"
        return found

    before = setups()
    assert setups(sizes=[1], repeats=5) == before
    assert setups(split={"train": 0.2}) != before
    assert setups(methods=[{"label": "A", "method": "gsrfs", "options": {"lam": 3.0}}]) != before


def test_a_cell_that_no_table_can_show_is_named(tmp_path):
    place = tmp_path / "one.jsonl"
    place.write_text('{"type": "cell", "key": "a", "status": "done"}\n')
    with says("one.jsonl", "'a'", "has no recipe"):
        gather([place])
