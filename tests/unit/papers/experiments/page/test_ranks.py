"""Ranks and their tests against SciPy and against published tables."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import friedmanchisquare, rankdata

from exactk.papers.experiments.page.arrange import studies
from exactk.papers.experiments.page.ranks import critical_difference, friedman, ranking, ties
from tests.unit.papers.experiments.page import stores


@pytest.mark.parametrize("digits", [1, 6], ids=["with ties", "without ties"])
def test_friedman_is_scipys(digits):
    values = np.random.default_rng(0).random((12, 5)).round(digits)
    expected = friedmanchisquare(*values.T).pvalue
    assert friedman(rankdata(values, axis=1)) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize(
    ("methods", "quantile"),
    # Table 5(a) of Demšar, JMLR 7, 2006: the two-tailed Nemenyi test at 5 %.
    [(2, 1.960), (3, 2.343), (4, 2.569), (5, 2.728), (6, 2.850), (7, 2.949), (10, 3.164)],
    ids=lambda value: str(value),
)
def test_the_critical_difference_follows_the_published_quantiles(methods, quantile):
    blocks = 14
    expected = quantile * np.sqrt(methods * (methods + 1) / (6 * blocks))
    assert critical_difference(methods, blocks) == pytest.approx(expected, rel=5e-4)


def test_no_test_on_one_data_set_or_one_method():
    assert critical_difference(5, 1) is None
    assert critical_difference(1, 5) is None
    assert friedman(np.array([[1.0, 2.0]])) is None
    assert friedman(np.array([[1.5, 1.5], [1.5, 1.5]])) is None


def test_ties_are_the_longest_runs_and_none_lies_within_another():
    ranks = [1.0, 1.2, 2.0, 2.9, 3.0, 6.0]
    found = ties(ranks, 1.0)
    assert found == [(0, 2), (2, 4)]
    brute = [(i, j) for i in range(6) for j in range(i + 1, 6) if ranks[j] - ranks[i] <= 1.0]
    longest = [a for a in brute if not any(b != a and b[0] <= a[0] and a[1] <= b[1] for b in brute)]
    assert found == longest


def test_mean_ranks_are_those_of_scipy_within_each_data_set():
    records = stores.through_json(stores.many_methods(7))
    study = studies(records)[0]
    measures = ("1nn", "svm")
    found = ranking(study, measures)
    means: dict[tuple[str, int, str], dict[str, list[float]]] = {}
    for record in records[1:]:
        for result in record["results"]:
            for measure in measures:
                place = means.setdefault((record["dataset"], result["k"], measure), {})
                place.setdefault(record["method"], []).append(result["measures"][measure])
    ranks = {
        place: rankdata([-np.mean(by_method[method]) for method in found.methods])
        for place, by_method in means.items()
    }
    datasets = {dataset for dataset, _, _ in means}
    blocks = [np.mean([ranks[p] for p in ranks if p[0] == name], axis=0) for name in datasets]
    assert found.ranks == pytest.approx(np.mean(blocks, axis=0).tolist())
    assert found.ranks == sorted(found.ranks)
    assert (found.blocks, found.places) == (len(datasets), len(means))
    assert found.wins == pytest.approx(np.sum([r == 1 for r in ranks.values()], axis=0).tolist())


def test_a_tie_is_shared_and_a_data_set_counts_once():
    line = stores.definition("r", [], datasets=["a", "b"], methods=["A", "B", "C"],
                             sizes=[5, 10], repeats=1)  # fmt: skip
    values = {
        ("a", 5): {"A": 0.9, "B": 0.9, "C": 0.5},
        ("b", 5): {"A": 0.7, "B": 0.8},
        ("b", 10): {"A": 0.7, "B": 0.8, "C": 0.6},
    }
    records = [line]
    for (dataset, k), by_method in values.items():
        for method, value in by_method.items():
            record = stores.cell("r", dataset, method, 0, [k])
            record["results"][0]["measures"] = {"svm": value}
            records.append(record)
    found = ranking(studies(records)[0], ("svm",))
    assert found.methods == ["B", "A", "C"]
    # On "a" 1.5, 1.5, 3 once; on "b" 1, 2, 3 twice, which is the mean of one data set.
    assert found.ranks == [1.25, 1.75, 3.0]
    assert found.wins == [2.5, 0.5, 0.0]
    assert found.means == pytest.approx([2.5 / 3, 2.3 / 3, 0.55])
    assert found.not_run == [0, 0, 1]


def test_a_failed_method_is_last_and_counted():
    line = stores.definition(
        "r", [], datasets=["a", "b"], methods=["A", "B", "C"], sizes=[5], repeats=1
    )
    records = [line, *stores.cells_of(line, without=[("a", "A"), ("b", "A")]),
               stores.failed("r", "a", "A", 0)]  # fmt: skip
    found = ranking(studies(records)[0], ("svm",))
    at = found.methods.index("A")
    assert at == 2
    assert found.ranks[at] == 3
    assert (found.failed[at], found.not_run[at]) == (1, 1)
    assert found.means[at] is None


def test_fewer_is_better_where_it_is():
    line = stores.definition("r", [], methods=["A", "B"], sizes=[5], repeats=1)
    records = [line, *stores.cells_of(line)]
    for record in records[1:]:
        record["results"][0]["measures"]["rmse"] = 1.0 if record["method"] == "B" else 2.0
    found = ranking(studies(records)[0], ("rmse",))
    assert found.methods == ["B", "A"]
    assert found.means == [1.0, 2.0]


def test_the_baseline_of_all_features_has_no_rank():
    records = stores.through_json(stores.many_methods(4))
    records[0]["definition"]["methods"][1]["method"] = "all"
    label = records[0]["definition"]["methods"][1]["label"]
    found = ranking(studies(records)[0], ("1nn",))
    assert len(found.methods) == 3
    assert label not in found.methods
