"""The runner: what is recorded, what is reused, and that neither order nor jobs matter."""

from __future__ import annotations

import os
import random
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from exactk.papers.experiments import runner
from exactk.papers.experiments.cells import cells
from exactk.papers.experiments.merge import latest
from exactk.papers.experiments.pool import Outcome
from exactk.papers.experiments.recipe import Recipe
from exactk.papers.experiments.runner import DatasetInfo, hard_limit, plan, run
from exactk.papers.experiments.store import Store
from tests.support import says

FAKE = "tests.unit.papers.experiments.fakes:measure"
TIMES = ("seconds", "wall", "finished")


def recipe(**changes: object) -> Recipe:
    values: dict[str, object] = {
        "name": "small",
        "title": "A small one",
        "protocol": "fit",
        "datasets": ["wine", "iris"],
        "sizes": [2, 3],
        "repeats": 2,
        "methods": [
            {"label": "CD-LSR", "method": "cdlsr"},
            {"label": "fine", "method": "fisher"},
        ],
    }
    return Recipe.from_dict(values | changes)


def untimed(records):
    """Cells by key without what differs from run to run."""
    found = {}
    for record in records:
        if record["type"] == "cell":
            results = [
                {name: value for name, value in result.items() if name != "seconds"}
                for result in record["results"]
            ]
            found[record["key"]] = {
                name: value for name, value in record.items() if name not in TIMES
            } | {"results": results}
    return found


class Here:
    """A pool without processes, for what has nothing to do with them."""

    def __init__(self, target, jobs):
        module, _, name = target.partition(":")
        self.function = getattr(import_module(module), name)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def run(self, tasks, on_start):
        for task in tasks:
            on_start(task)
            try:
                yield Outcome(task.key, "done", self.function(*task.args), "", 1.0)
            except ValueError as error:
                yield Outcome(task.key, "failed", None, f"ValueError: {error}", 1.0)


@pytest.fixture
def fake(monkeypatch):
    """Measure nothing: a label says what happens, and data sets are but names."""
    monkeypatch.setattr(runner, "MEASURE", FAKE)
    facts = {name: DatasetInfo(10, 4, 3, f"sum of {name}") for name in ("wine", "iris")}

    def data(names):
        absent = {
            name: f"exactk papers datasets fetch {name}" for name in names if name not in facts
        }
        return {name: facts[name] for name in names if name in facts}, absent

    monkeypatch.setattr(runner, "_data", data)
    return facts


@pytest.fixture
def here(fake, monkeypatch):
    """The same without processes."""
    monkeypatch.setattr(runner, "Pool", Here)
    return fake


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_what_fails_is_recorded_and_the_run_goes_on(fake, tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "AROUND_SECONDS", 0.5)
    labels = ["fine", "raise", "memory", "segfault", "hang", "last"]
    methods = [{"label": label, "method": "fisher"} for label in labels]
    small = recipe(methods=methods, datasets=["wine", "lung"], repeats=1)
    seen = []
    summary = run(small, tmp_path / "s.jsonl", time_limit=0.1, on_progress=seen.append)
    assert (summary.done, summary.failed, summary.time_limit, summary.reused) == (2, 3, 1, 0)
    assert summary.left_out == {"lung": "exactk papers datasets fetch lung"}
    records = {r["method"]: r for r in Store(tmp_path / "s.jsonl").records() if r["type"] == "cell"}
    assert list(records) == labels
    assert {label: r["status"] for label, r in records.items()} == dict(
        zip(labels, ["done", "failed", "failed", "failed", "time_limit", "done"], strict=True)
    )
    assert records["raise"]["reason"].startswith("ValueError: k is too large")
    assert records["memory"]["reason"].startswith("out of memory")
    assert records["segfault"]["reason"] == "the process crashed (SIGSEGV)"
    assert records["hang"]["reason"] == "no answer within 0.9 s"
    assert records["hang"]["results"] == []
    assert records["hang"]["rows"] == 10, "known although the worker said nothing"
    assert summary.reasons["raise", records["raise"]["reason"]] == ["wine"]
    assert [state.done for state in seen if state.record] == [1, 2, 3, 4, 5, 6]
    assert seen[0].remaining is None
    assert seen[-1].remaining == 0
    assert "wine · fine · k=2…3 · repeat 0" in seen[0].running


def test_what_is_recorded_is_not_run_again(here, tmp_path):
    methods = [{"label": label, "method": "fisher"} for label in ("fine", "raise")]
    small = recipe(methods=methods, repeats=1)

    def counts(**options):
        found = run(small, tmp_path / "s.jsonl", **options)
        assert list(found.reasons.items()) == [
            (("raise", "ValueError: k is\ntoo large"), ["wine", "iris"])
        ]
        return found.reused, found.done, found.failed

    assert counts() == (0, 2, 2)
    lines = (tmp_path / "s.jsonl").read_bytes()
    assert counts() == (4, 0, 0)
    assert (tmp_path / "s.jsonl").read_bytes() == lines
    assert counts(retry_failed=True) == (2, 0, 2)


def test_a_record_says_where_it_comes_from(here, tmp_path):
    run(recipe(), tmp_path / "s.jsonl", seed=5)
    records = [r for r in Store(tmp_path / "s.jsonl").records() if r["type"] == "cell"]
    assert len(records) == len(cells(recipe())) == 10
    assert {record["run_seed"] for record in records} == {5}
    one = records[0]
    assert {"processor", "cores", "system"} < set(one["machine"])
    assert one["machine"]["threads"] == 1
    assert {"python", "exactk", "numpy", "scipy", "scikit-learn"} <= set(one["versions"])
    assert one["checksum"] == "sum of wine"
    assert one["seconds"] == 0.5, "that of the solver, not of the cell"
    by_draw = {}
    for record in records:
        by_draw.setdefault((record["dataset"], record["repeat"]), set()).add(record["seed"])
    assert all(len(seeds) == 1 for seeds in by_draw.values()), "methods see the same draws"
    assert len(set.union(*by_draw.values())) == 4


def test_other_data_seeds_and_parameters_are_other_cells(here, tmp_path):
    store = tmp_path / "s.jsonl"
    methods = [{"label": "fine", "method": "gsrfs", "options": {"lam": 1.0}}]
    small = recipe(methods=methods, repeats=1, sizes=[2])
    assert run(small, store).done == 2
    assert run(small, store).done == 0
    assert run(small, store, seed=1).done == 2
    here["wine"] = DatasetInfo(10, 4, 3, "another table of this name")
    assert run(small, store).done == 1
    methods[0]["options"] = {"lam": 2.0}
    changed = recipe(methods=methods, repeats=1, sizes=[2])
    assert run(changed, store).done == 2
    records = latest(Store(store).records())
    found = [(r["dataset"], r["checksum"], r["options"]) for r in records if r["type"] == "cell"]
    assert sorted(found, key=str) == [
        ("iris", "sum of iris", {"lam": 2.0}),
        ("wine", "another table of this name", {"lam": 2.0}),
    ]


def test_data_that_change_under_a_run_are_noticed(here, tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "MEASURE", "tests.unit.papers.experiments.fakes:measure_other_data")
    summary = run(recipe(datasets=["wine"], repeats=1), tmp_path / "s.jsonl")
    assert summary.failed == 3
    assert {reason for _, reason in summary.reasons} == {
        "the data of 'wine' changed during the run"
    }


def test_times_are_measured_one_at_a_time(fake, tmp_path, caplog):
    most = []
    with caplog.at_level("INFO"):
        run(
            recipe(exclusive=True),
            tmp_path / "s.jsonl",
            jobs=2,
            on_progress=lambda state: most.append(len(state.running)),
        )
    assert max(most) == 1
    assert "one at a time" in caplog.text


def test_a_plan_runs_nothing(here, tmp_path):
    found = plan(recipe(), Store(tmp_path / "s.jsonl"))
    assert (len(found.todo), found.reused) == (10, ())
    assert not (tmp_path / "s.jsonl").exists()


def test_hard_limit_counts_the_solves():
    tuned = {"label": "a", "method": "gsrfs", "grid": {"lam": [0.1, 1.0], "r": [1.0, 2.0, 0.5]}}
    small = recipe(
        protocol="classify",
        split={"train": 0.5},
        methods=[tuned, {"label": "b", "method": "exchange"}],
        repeats=1,
    )
    one, *others = [c for c in cells(small) if c.dataset == "wine"]
    assert hard_limit(one, 10.0) == 60 + 2 * 10 * len(one.sizes) * (1 + 6 * 5)
    assert hard_limit(others[-1], 10.0) == 80.0


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"jobs": 0}, ["jobs", "0"]),
        ({"seed": -1}, ["seed", "-1"]),
        ({"time_limit": 0.0}, ["time_limit", "0"]),
    ],
)
def test_wrong_numbers_are_named_before_any_work(here, tmp_path, changes, words):
    with says(*words):
        run(recipe(), tmp_path / "s.jsonl", **changes)
    assert not (tmp_path / "s.jsonl").exists()


def test_an_unknown_data_set_is_a_mistake(tmp_path):
    with says("'wien'", "exactk papers datasets list"):
        run(recipe(datasets=["wien"]), tmp_path / "s.jsonl")


@pytest.fixture(scope="module")
def real(tmp_path_factory) -> tuple[Recipe, Path]:
    """One unbroken run with true methods, tuned ones and ones with random starts among them."""
    values = {
        "protocol": "classify",
        "split": {"train": 0.6},
        "measure": {"classifiers": ["1nn", "svm"], "tune_folds": 2, "redundancy": True},
        "methods": [
            {"label": "CD-LSR", "method": "cdlsr"},
            {"label": "ReliefF", "method": "relieff"},
            {"label": "GSR-FS", "method": "gsrfs", "grid": {"lam": [0.1, 10.0]}},
            {"label": "exchange", "method": "exchange", "ridge": "auto"},
        ],
    }
    small = recipe(**values)
    store = tmp_path_factory.mktemp("real") / "one.jsonl"
    assert run(small, store, jobs=1).failed == 0
    return small, store


def test_neither_jobs_nor_order_change_a_record(real, tmp_path, monkeypatch):
    small, store = real

    def shuffled(recipe, seed=0):
        found = cells(recipe, seed)
        random.Random(3).shuffle(found)
        return found

    monkeypatch.setattr(runner, "cells", shuffled)
    run(small, tmp_path / "two.jsonl", jobs=2)
    one, two = (untimed(Store(path).records()) for path in (store, tmp_path / "two.jsonl"))
    assert list(one) != list(two), "they did run in another order"
    assert one == two


def test_solver_time_is_less_than_the_cell_took(real):
    records = [r for r in Store(real[1]).records() if r["type"] == "cell"]
    assert all(0 < record["seconds"] < record["wall"] for record in records)


def test_a_file_that_changes_between_runs_is_read_again(tmp_path, monkeypatch):
    monkeypatch.setenv("EXACTK_DATA", str(tmp_path))
    monkeypatch.setattr(runner, "Pool", Here)
    monkeypatch.setattr(runner, "MEASURE", FAKE)
    methods = [{"label": "fine", "method": "fisher"}]
    small = recipe(datasets=["mine"], repeats=1, methods=methods)
    for seed in (0, 1):
        X = np.random.default_rng(seed).normal(size=(20 + seed, 4))
        np.savez(tmp_path / "mine.npz", X=X, y=np.arange(20 + seed) % 2)
        assert run(small, tmp_path / "s.jsonl").done == 1
    rows = [r["rows"] for r in Store(tmp_path / "s.jsonl").records() if r["type"] == "cell"]
    assert rows == [20, 21]


def test_numbers_are_not_classified(tmp_path):
    """Said before the first cell, not by each of them."""
    asked = recipe(protocol="classify", split={"train": 0.5}, datasets=["wine", "diabetes"])
    with says("'diabetes'", "numbers as target", "protocol 'regress'"):
        plan(asked, Store(tmp_path / "none.jsonl"))


def test_a_method_whose_library_is_absent_is_left_out_and_named(tmp_path, monkeypatch):
    monkeypatch.setattr("exactk.papers.deep.training.find_spec", lambda name: None)
    deep = [{"label": "CAE", "method": "cae"}, {"label": "fine", "method": "fisher"}]
    found = plan(recipe(methods=deep), Store(tmp_path / "a.jsonl"))
    assert {cell.variant.label for cell in found.todo.values()} == {"fine"}
    assert found.left_out == {"CAE": 'pip install "exactk[deep]"'}
