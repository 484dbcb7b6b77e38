"""What a cell records, computed again from the raw tables with scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_digits, load_wine
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from exactk import Problem, solve
from exactk.papers.experiments.cells import Cell, cells
from exactk.papers.experiments.protocols import run_cell
from exactk.papers.experiments.protocols.cell import dataset_of, draw
from exactk.papers.experiments.recipe import Recipe
from exactk.papers.experiments.tuning import tune
from tests.support import says


def cells_of(**changes: Any) -> list[Cell]:
    values: dict[str, Any] = {
        "name": "small",
        "title": "A small experiment",
        "protocol": "classify",
        "datasets": ["wine"],
        "sizes": [2, 4],
        "repeats": 1,
        "split": {"train": 0.6},
        "measure": {"classifiers": ["1nn"]},
        "methods": [{"label": "F", "method": "fisher"}],
        **changes,
    }
    return cells(Recipe.from_dict(values))


def test_classify_scores_rows_that_the_method_never_saw() -> None:
    X, y = load_wine(return_X_y=True)
    (cell,) = cells_of()
    train, test = draw(cell, dataset_of("wine"))
    assert not set(train) & set(test)
    assert len(train) + len(test) == len(y)
    record = run_cell(cell)
    chosen = solve(Problem.from_arrays(X[train], y[train]), 2, "fisher")
    found = record["results"][0]
    assert found["support"] == chosen.support.tolist()
    model = make_pipeline(StandardScaler(), KNeighborsClassifier(1))
    columns = found["support"]
    model.fit(X[train][:, columns], y[train])
    assert found["measures"]["1nn"] == pytest.approx(model.score(X[test][:, columns], y[test]))
    assert (record["rows"], record["features"], record["classes"]) == (178, 13, 3)
    assert record["status"] == "done"
    assert record["seconds"] > 0


def test_folds_test_every_row_once() -> None:
    X, _ = load_wine(return_X_y=True)
    found = cells_of(split={"folds": 4})
    tested = np.concatenate([draw(cell, dataset_of("wine"))[1] for cell in found])
    assert sorted(tested.tolist()) == list(range(len(X)))


def test_all_features_is_the_baseline_of_every_size() -> None:
    X, y = load_wine(return_X_y=True)
    (cell,) = cells_of(methods=[{"label": "All", "method": "all"}])
    train, test = draw(cell, dataset_of("wine"))
    model = make_pipeline(StandardScaler(), KNeighborsClassifier(1)).fit(X[train], y[train])
    scores = [found["measures"]["1nn"] for found in run_cell(cell)["results"]]
    assert scores == [pytest.approx(model.score(X[test], y[test]))] * 2


def test_a_grid_is_tuned_within_the_training_part() -> None:
    (cell,) = cells_of(
        datasets=["digits"],
        sizes=[10],
        methods=[{"label": "G", "method": "rfs", "grid": {"lam": [1e-3, 1e6]}}],
        measure={"classifiers": ["1nn"], "tune_folds": 3, "tune_classifier": "1nn"},
    )
    (found,) = run_cell(cell)["results"]
    X, y = load_digits(return_X_y=True)
    train, _ = draw(cell, dataset_of("digits"))
    settings = cell.variant.settings()
    best = tune(
        X[train], y[train], 10, settings, method="rfs", classifier="1nn", folds=3,
        random_state=cell.seed,
    )  # fmt: skip
    assert found["chosen"] == best.options
    again = solve(Problem.from_arrays(X[train], y[train]), 10, "rfs", **best.options)
    assert found["support"] == again.support.tolist()


def test_sizes_beyond_the_table_are_said_and_the_others_measured() -> None:
    (cell,) = cells_of(sizes=[3, 14, 99])
    record = run_cell(cell)
    assert [found["k"] for found in record["results"]] == [3]
    assert "14, 99" in record["reason"]


def test_classify_needs_classes() -> None:
    (cell,) = cells_of(datasets=["diabetes"])
    with says("'diabetes'", "regress"):
        run_cell(cell)


def test_fit_grades_by_one_objective_and_keeps_the_own_one() -> None:
    X, y = load_wine(return_X_y=True)
    found = cells_of(
        protocol="fit",
        split={},
        repeats=4,
        sizes=[3],
        measure={"trace": True, "one_start": True},
        methods=[{"label": "CD", "method": "cdlsr"}],
    )
    results = [run_cell(cell)["results"][0] for cell in found]
    Y = np.eye(3)[y] - np.eye(3)[y].mean(axis=0)
    for result in results:
        columns = result["support"]
        fit = LinearRegression().fit(X[:, columns], Y)
        expected = ((Y - fit.predict(X[:, columns])) ** 2).sum()
        assert result["objective"] == pytest.approx(expected)
        assert result["own"] == result["trace"][-1]
    # Each repeat is another random start.
    assert len({tuple(result["trace"]) for result in results}) > 1


def test_a_share_to_fit_is_the_same_for_all_starts() -> None:
    found = cells_of(
        protocol="fit",
        split={"train": 0.5},
        repeats=2,
        sizes=[3],
        methods=[{"label": "ours", "method": "exchange"}],
    )
    # The search ends at the same best set from either seed, so the rows must be the same.
    first, second = (run_cell(cell)["results"][0] for cell in found)
    assert first["objective"] == second["objective"]


def test_fit_keeps_details_and_counts_rows_above_a_tolerance() -> None:
    (cell,) = cells_of(
        protocol="fit",
        split={},
        sizes=[3],
        measure={"details": ["row_norms"], "sparsity": [0.0, 1e9]},
        methods=[{"label": "R", "method": "rpfs"}],
    )
    (found,) = run_cell(cell)["results"]
    assert len(found["details"]["row_norms"]) == 13
    assert found["measures"]["sparsity@0"] == sum(v > 0 for v in found["details"]["row_norms"])
    assert found["measures"]["sparsity@1e+09"] == 0


def test_redundancy_by_both_definitions() -> None:
    X, _ = load_wine(return_X_y=True)
    (cell,) = cells_of(
        protocol="fit",
        split={},
        sizes=[3],
        measure={"redundancy": True},
    )
    (found,) = run_cell(cell)["results"]
    pairs = np.abs(np.corrcoef(X[:, found["support"]].T))[np.triu_indices(3, 1)]
    assert found["measures"]["redundancy"] == pytest.approx(pairs.mean())


def test_regress_predicts_unseen_outputs() -> None:
    X, y = load_diabetes(return_X_y=True)
    cell, *_ = cells_of(
        protocol="regress",
        datasets=["diabetes"],
        split={"folds": 3},
        sizes=[3],
        measure={},
        methods=[{"label": "ours", "method": "exchange"}],
    )
    (found,) = run_cell(cell)["results"]
    train, test = draw(cell, dataset_of("diabetes"))
    columns = found["support"]
    # The catalogue's tables are in single precision, whatever they came in.
    X = X.astype(np.float32).astype(np.float64)
    model = LinearRegression().fit(X[train][:, columns], y[train])
    error = y[test] - model.predict(X[test][:, columns])
    assert found["measures"]["rmse"] == pytest.approx(np.sqrt((error**2).mean()))


def test_planted_columns_that_were_found_are_counted() -> None:
    cell, *_ = cells_of(
        protocol="regress",
        datasets=["planted"],
        sizes=[dataset_of("planted").informative.size],
        measure={},
        methods=[{"label": "ours", "method": "exchange"}],
    )
    (found,) = run_cell(cell)["results"]
    planted = set(dataset_of("planted").informative.tolist())
    expected = len(planted & set(found["support"])) / len(planted)
    assert found["measures"]["recovered"] == expected > 0.5
