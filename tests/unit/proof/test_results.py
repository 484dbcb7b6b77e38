"""What proofs give back: sentences that claim no more than is known, and plain values."""

from __future__ import annotations

import copy
import json
import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

from exactk import (
    BestSets,
    Certificate,
    CertifiedPath,
    Problem,
    Status,
    best_sets,
    certify,
    certify_path,
)
from exactk.proof.results import round_down, round_up
from tests.support import says


@pytest.fixture(scope="module")
def problem() -> Problem:
    return Problem.from_arrays(*load_iris(return_X_y=True), ridge=0.1)


@pytest.fixture(scope="module")
def found(problem: Problem) -> Certificate:
    return certify(problem, k=2)


def test_a_proof_in_words(found: Certificate) -> None:
    assert found.summary.startswith("Proven: ")
    assert f"{found.upper:.6g} (ridge 0.1" in found.summary
    assert (found.message, found.assumptions) == ("", ())
    assert "Reason" not in found.summary
    assert str(found) == found.summary
    assert repr(found).startswith("Certificate(k=2, proven, ")


def test_an_open_gap_in_words(found: Certificate) -> None:
    short = replace(
        found, lower=60.123456789, upper=62.0, gap=(62 - 60.123456789) / 62, proven=False,
        status=Status.TIME_LIMIT, tolerance=1.5e-7, nodes=74, message="the reason",
    )  # fmt: skip
    # Never more than is known: the gap is rounded up, the bound down.
    assert short.summary == (
        "Not proven: better 2 columns could lower the objective of 62 by at most 3.1 %, to 60.1234 "
        "(ridge 0.1; right to 2e-07). Reason: the reason; 74 nodes explored."
    )
    assert "no nodes explored" in replace(short, nodes=0).summary
    assert "1 node explored" in replace(short, nodes=1).summary
    assert "no bound" in replace(short, lower=0.0, gap=1.0).summary
    assert "gap 3.1 %" in repr(short)
    assert "the reason" in repr(short)


def test_assumptions_and_better_sets_are_said(found: Certificate) -> None:
    better = replace(found, improved=True)
    assert "better than the given one" in better.summary
    assert replace(better, assumptions=("a", "b")).summary.endswith(" Assumed: a; b.")
    alone = replace(found, k=1, result=replace(found.result, support=np.array([0])))
    assert "no other 1 column has " in alone.summary


@pytest.mark.parametrize("seed", range(5))
def test_numbers_are_rounded_to_the_safe_side(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for value in 10.0 ** rng.uniform(-12, 12, 200) * rng.uniform(1, 10, 200):
        assert float(round_down(value)) <= value <= float(round_up(value))
        assert float(round_up(value, 2)) <= value * 1.11
        assert float(round_down(value, 2)) >= value * 0.89
    assert (round_down(0.0), round_up(0.0)) == ("0", "0")
    assert round_down(9.9999999) == "9.99999"
    assert round_up(9.9999999) == "10"


def test_json_and_pickle_and_copies(problem: Problem, found: Certificate) -> None:
    values = json.loads(found.to_json())
    assert values["summary"] == found.summary
    assert values["status"] == "optimal"
    assert Certificate.from_dict(values) == found
    for same in (pickle.loads(pickle.dumps(found)), copy.deepcopy(found)):
        assert same == found
        assert same.summary == found.summary
    path, best = certify_path(problem, k_max=3), best_sets(problem, k=2, n_best=3)
    assert CertifiedPath.from_json(path.to_json()) == path
    assert BestSets.from_json(best.to_json()) == best
    assert pickle.loads(pickle.dumps(path)) == path
    assert pickle.loads(pickle.dumps(best)) == best


def test_what_cannot_be_read_is_named(found: Certificate) -> None:
    with says("not a Certificate", "k, lower"):
        Certificate.from_dict({})
    with says("not a CertifiedPath"):
        CertifiedPath.from_dict({"k": 1})
    with says("not a BestSets", "sets"):
        BestSets.from_dict(found.to_dict())
    for values in ([1], {**found.to_dict(), "status": "done"}):
        with says("not a Certificate") as error:
            Certificate.from_dict(values)  # type: ignore[arg-type]
        assert error.value.parameter == "values"
    values = found.to_dict()
    del values["message"]
    assert Certificate.from_dict(values) == found


def test_a_path_is_a_sequence_and_a_table(problem: Problem) -> None:
    path = certify_path(problem, k_max=3)
    assert len(path) == 3
    assert [one.k for one in path] == path.sizes == [1, 2, 3]
    assert path[-1] == path.at(3)
    assert list(path[:2]) == [path.at(1), path.at(2)]
    assert path.table.columns == ("k", "objective", "lower", "gap", "proven", "selected")
    assert path.table[1]["selected"] == list(path.at(2).result.selected)
    assert repr(path) == "CertifiedPath(3 sizes, 3 proven)"
    with says("k = 1, 2, 3") as error:
        path.at(4)
    assert (error.value.parameter, error.value.value) == ("k", 4)


def test_how_a_path_ended(problem: Problem) -> None:
    one, two, three = certify_path(problem, k_max=3)
    late = replace(two, proven=False, status=Status.TIME_LIMIT)
    stopped = replace(three, proven=False, status=Status.INTERRUPTED)
    assert CertifiedPath([one, late, three]).status == Status.TIME_LIMIT
    assert CertifiedPath([one, late, stopped]).status == Status.INTERRUPTED
    assert not CertifiedPath([one, late]).proven


def test_a_list_of_sets_in_words(problem: Problem) -> None:
    every = best_sets(problem, k=2, within=0.5)
    assert every.summary.startswith("Proven: there are no other sets of 2 within 50 % of the best")
    best = best_sets(problem, k=2, n_best=3, within=0.5)
    assert best.has_more
    assert not every.has_more
    assert best.sets == every.sets[:3]
    assert best.summary.startswith("Proven: these are the 3 best sets of 2 within 50 % of the best")
    assert str(best) == best.summary
    assert repr(best) == "BestSets(k=2, 3 sets, complete)"
    assert best.table["rank"] == [1, 2, 3]
    assert best.table["excess"][0] == 0
    assert best.table["excess"][1] == pytest.approx(best.objectives[1] / best.objectives[0] - 1)
    still = replace(
        best, is_complete=False, lower=29.99999999, within=None, assumptions=("a",), message="why"
    )
    assert still.summary.startswith("Not proven: other sets of 2 may have a lower objective")
    assert "below 29.9999 (" in still.summary
    assert "Reason: why; " in still.summary
    assert still.summary.endswith(" Assumed: a.")


def test_what_a_notebook_shows() -> None:
    X, y = load_iris(return_X_y=True)
    frame = pd.DataFrame(X, columns=["a<b", "width", "length", "other"])
    problem = Problem.from_arrays(frame, y, ridge=0.1)
    one = certify(problem, k=4)
    assert "a&lt;b" in one._repr_html_()
    assert "<p>Proven: " in one._repr_html_()
    assert certify_path(problem, k_max=3)._repr_html_().count("<tr>") == 1 + 3
    sets = best_sets(problem, k=2, n_best=3)._repr_html_()
    assert sets.count("<tr>") == 1 + 3
    assert "<p>Proven: " in sets
