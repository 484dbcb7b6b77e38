"""The time to go: from like cells, and sensible before there are any."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from exactk.papers.experiments.eta import TimeEstimate


def cell(dataset: str, label: str) -> SimpleNamespace:
    return SimpleNamespace(dataset=dataset, variant=SimpleNamespace(label=label))


def ended(dataset: str, method: str, wall: float) -> dict[str, object]:
    return {"dataset": dataset, "method": method, "wall": wall}


def test_nothing_is_known_at_first():
    assert TimeEstimate([], [cell("iris", "A")], 1).seconds() is None


def test_cells_of_the_same_kind_give_the_estimate():
    guess = TimeEstimate([ended("iris", "A", 2.0)], [cell("iris", "A")] * 6, 2)
    assert guess.seconds() == pytest.approx(6.0)
    guess.add_cell(ended("iris", "A", 4.0))
    assert guess.seconds() == pytest.approx(5 * 3.0 / 2)


def test_a_new_pair_is_guessed_from_its_method_and_its_data():
    before = [ended("iris", "A", 1.0), ended("wine", "A", 10.0), ended("iris", "B", 4.0)]
    guess = TimeEstimate(before, [cell("wine", "B")], 1).seconds()
    # B on iris takes 4, and wine is twice the mean of all.
    assert guess == pytest.approx(4.0 * 10.0 / 5.0)


def test_all_done_is_nothing_left():
    guess = TimeEstimate([], [cell("iris", "A")], 1)
    guess.add_cell(ended("iris", "A", 0.0))
    assert guess.seconds() == 0.0
