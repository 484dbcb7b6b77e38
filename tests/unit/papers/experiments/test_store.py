"""The store: nothing finished is lost, nothing half-written is believed, nobody else writes."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys

import numpy as np
import pytest

from exactk.papers.experiments.store import Store
from tests.support import says


def cell(key: str, **values: object) -> dict[str, object]:
    return {"type": "cell", "schema": 1, "key": key, "status": "done", **values}


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path / "deep" / "folder" / "records.jsonl")
    with store.writing():
        for key in "abc":
            store.append(cell(key))
    return store


def test_records_come_back(store):
    assert [record["key"] for record in Store(store.path).records()] == ["a", "b", "c"]
    assert store.done_keys() == {"a", "b", "c"}


def test_a_store_that_is_not_there_is_empty(tmp_path):
    assert Store(tmp_path / "none.jsonl").records() == []
    assert not (tmp_path / "none.jsonl").exists()


def test_every_record_is_in_the_file_when_append_returns(store):
    with store.writing():
        store.append(cell("d"))
        assert store.path.read_text().splitlines()[-1] == json.dumps(
            cell("d"), separators=(",", ":")
        )


def test_values_are_plain(store):
    values = {
        "nan": float("nan"),
        "inside": [{"inf": np.float64("-inf"), "support": np.array([3, 1])}],
        "whole": np.int64(7),
        "flag": np.True_,
        "tuple": (1, 2.5),
        "text": "naïve · ß",
    }
    with store.writing():
        store.append(cell("d", **values))
    found = store.records()[-1]
    assert found["nan"] is None
    assert found["inside"] == [{"inf": None, "support": [3, 1]}]
    assert (found["whole"], found["flag"], found["tuple"]) == (7, True, [1, 2.5])
    assert found["text"] == "naïve · ß"


@pytest.mark.parametrize("cut", [1, 5, 9, 20, -2])
def test_a_torn_last_line_is_dropped_and_its_place_used(store, caplog, cut):
    whole = store.path.read_bytes()
    torn = json.dumps(cell("d"), separators=(",", ":")).encode()[:cut]
    store.path.write_bytes(whole + torn)
    assert store.done_keys() == {"a", "b", "c"}
    assert store.path.read_bytes() == whole + torn, "who only reads changes nothing"
    with caplog.at_level(logging.WARNING), store.writing():
        store.append(cell("e"))
    assert "cut short" in caplog.text
    assert store.path.read_bytes().startswith(whole)
    assert [record["key"] for record in store.records()] == ["a", "b", "c", "e"]


def test_zeros_at_the_end_after_a_power_cut(store):
    with store.path.open("ab") as file:
        file.write(b'{"type":"ce' + b"\0" * 50)
    with store.writing():
        store.append(cell("d"))
    assert store.done_keys() == {"a", "b", "c", "d"}


def test_a_whole_last_line_without_its_break_is_kept(store, caplog):
    store.path.write_bytes(store.path.read_bytes()[:-1])
    with store.writing():
        store.append(cell("d"))
    assert store.done_keys() == {"a", "b", "c", "d"}
    assert caplog.text == ""


def test_a_damaged_line_in_the_middle_is_named(store):
    lines = store.path.read_text().splitlines()
    lines[1] = lines[1][:-5]
    store.path.write_text("\n".join(lines) + "\n")
    with says("records.jsonl", "line 2", "delete this line"):
        store.records()
    before = store.path.read_bytes()
    with says("line 2"), store.writing():
        pass
    assert store.path.read_bytes() == before


@pytest.mark.parametrize("content", [b"a,b\n1,2\n", b"PAR1\x15\x04", b"[1, 2]", b'{"a": 1}\n'])
def test_another_file_is_not_touched(tmp_path, content):
    path = tmp_path / "table"
    path.write_bytes(content)
    with says("line 1", "not a store of exactk papers run"), Store(path).writing():
        pass
    assert path.read_bytes() == content


def test_a_newer_store_is_refused(store):
    with store.path.open("a") as file:
        file.write(json.dumps(cell("d", schema=2)) + "\n")
    with says("newer exactk", "schema 2", "line 4"):
        store.records()


def test_the_last_record_of_a_cell_counts(store):
    with store.writing():
        store.append(cell("d", status="failed"))
        store.append(cell("e", status="time_limit"))
        store.append(cell("a", seconds=2.0))
    assert store.done_keys() == set("abcde")
    assert store.done_keys(retry_failed=True) == set("abc")
    with store.writing():
        store.append(cell("d"))
    assert store.done_keys(retry_failed=True) == set("abcd")
    assert [(r["key"], r.get("seconds")) for r in store.records()] == [
        ("b", None),
        ("c", None),
        ("e", None),
        ("a", 2.0),
        ("d", None),
    ]


def test_two_runs_cannot_write_into_one_store(store):
    with store.writing():
        with (
            says("another run is writing", "records.jsonl", "--store"),
            Store(store.path).writing(),
        ):
            pass
        assert len(Store(store.path).records()) == 3, "one can look meanwhile"
    with Store(store.path).writing() as again:
        again.append(cell("d"))


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_the_lock_dies_with_its_process(store):
    code = (
        "import os, signal, sys\n"
        "from exactk.papers.experiments.store import Store\n"
        "with Store(sys.argv[1]).writing():\n"
        "    print('held', flush=True)\n"
        "    sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(store.path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "held\n"
            with says("another run is writing"), store.writing():
                pass
        finally:
            holder.kill()
    with store.writing():
        store.append(cell("d"))


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with says("cannot be written", "--store"), Store(tmp_path / "file" / "x.jsonl").writing():
        pass


def test_append_needs_the_lock(store):
    with pytest.raises(RuntimeError, match="writing"):
        store.append(cell("d"))


@pytest.mark.skipif(os.name != "posix", reason="Windows does not delete a file that is open")
@pytest.mark.parametrize("replaced", [False, True])
def test_a_store_that_is_deleted_during_a_run_stops_it(store, replaced):
    with store.writing():
        store.append(cell("d"))
        store.path.unlink()
        if replaced:
            store.path.write_bytes(b"")
        with says("records.jsonl", "deleted during the run", "put it back"):
            store.append(cell("e"))


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device of Linux")
def test_a_full_disk_names_the_store(store):
    with store.writing(), open("/dev/full", "ab") as full:
        held, store._file = store._file, full
        store._check_place = lambda file: None
        try:
            with says("records.jsonl", "No space left", "goes on from there"):
                store.append(cell("d"))
        finally:
            store._file = held
            # What the device refused stays in the buffer, and would be tried again.
            full.raw.close()
    assert store.done_keys() == {"a", "b", "c"}


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device of Linux")
@pytest.mark.parametrize("place", ["/dev/full", "/dev/null"])
def test_a_device_is_no_store(place):
    with says(place, "not a file"):
        Store(place).records()
    with says(place, "not a file"), Store(place).writing():
        pass


@pytest.mark.parametrize(
    ("line", "what"),
    [
        (cell("d", schema="1"), "schema is '1'"),
        (cell("d", schema=None), "schema is None"),
        (cell("d", results=5), "results is 5"),
        (cell("d", results=[{"k": 1, "measures": {"1nn": "x"}}]), "results[0].measures"),
        (cell("d", method=["a"]), "method is ['a']"),
        ({"type": "recipe", "name": "r"}, "no definition"),
        ({"type": "recipe", "name": "r", "definition": {"sizes": [1]}}, "no definition.datasets"),
    ],
)
def test_a_record_that_somebody_edited_is_named(store, line, what):
    with store.path.open("a") as file:
        file.write(json.dumps(line) + "\n")
    with says("records.jsonl", "line 4", what, "delete this line"):
        store.records()


def test_a_line_that_is_nested_without_end_is_damage(store):
    with store.path.open("a") as file:
        file.write('{"type":"cell","key":' + "[" * 100_000 + "\n")
    with says("line 4"):
        store.records()


def test_what_could_not_be_read_again_is_not_written(store):
    before = store.path.read_bytes()
    with store.writing(), says("cannot be recorded", "definition.title is 5"):
        store.append({"type": "recipe", "name": "r", "definition": {"title": 5}})
    assert store.path.read_bytes() == before
