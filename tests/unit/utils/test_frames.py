"""Whatever is found comes out as a frame of pandas or polars."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris, load_wine
from sklearn.exceptions import NotFittedError

import exactk
from exactk import InputError, Problem, TopKSelector
from exactk.errors import MissingExtraError
from exactk.result import Result
from exactk.utils.records_table import RecordsTable

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")


@pytest.fixture(scope="module")
def wine() -> Problem:
    data = load_wine()
    labels = np.array(["barolo", "grignolino", "barbera"])[data.target]
    return Problem.from_arrays(data.data, labels, ridge=0.1, feature_names=data.feature_names)


def test_a_result_has_one_row_a_feature(wine: Problem) -> None:
    result = exactk.solve(wine, 4)
    frame = result.to_frame()
    assert list(frame.columns) == [
        "rank", "index", "feature", "coef:barbera", "coef:barolo", "coef:grignolino",
    ]  # fmt: skip
    assert frame["rank"].tolist() == [1, 2, 3, 4]
    assert frame["index"].tolist() == result.order.tolist()
    assert frame["feature"].tolist() == list(result.selected)
    assert frame.index.tolist() == [0, 1, 2, 3]
    # The coefficients go with their features: they predict what the fit does.
    X = load_wine().data
    scores = X[:, frame["index"]] @ frame.filter(like="coef:").to_numpy() + result.intercept
    np.testing.assert_allclose(scores, X[:, result.support] @ result.coef.T + result.intercept)
    assert (scores.argmax(axis=1) == wine.target.codes).mean() > 0.9


def test_numbers_have_plain_coefficients() -> None:
    X, y = load_diabetes(return_X_y=True)
    one = exactk.solve(Problem.from_arrays(X, y, task="regression"), 2).to_frame()
    assert list(one.columns) == ["rank", "index", "feature", "coef"]
    two = exactk.solve(Problem.from_arrays(X, np.column_stack([y, y**2])), 2).to_frame()
    assert list(two.columns) == ["rank", "index", "feature", "coef:0", "coef:1"]


def test_scores_stand_beside_what_they_chose(wine: Problem) -> None:
    result = exactk.solve(wine, 3, method="fisher")
    frame = result.to_frame()
    assert frame["score"].tolist() == result.scores[result.order].tolist()
    assert frame["score"].is_monotonic_decreasing


def test_the_index_is_that_of_the_users_table() -> None:
    rng = np.random.default_rng(0)
    colour = np.array(["red", "blue", "white", "red"])[np.arange(60) % 4]
    size = rng.normal(size=60)
    table = pd.DataFrame({"colour": colour, "noise": rng.normal(size=60), "size": size})
    y = size + (colour == "blue") + 2.0 * (colour == "white")
    result = exactk.solve(Problem.from_arrays(table, y), 2)
    frame = result.to_frame()
    assert set(zip(frame["feature"], frame["index"], strict=True)) == {
        ("colour=blue", 0), ("colour=white", 0), ("size", 2),
    }  # fmt: skip
    assert Result.from_json(result.to_json()).to_frame().equals(frame)
    assert TopKSelector(k=2, ridge=0).fit(table, y).to_frame()["index"].tolist() == (
        frame["index"].tolist()
    )


def test_results_of_earlier_files_have_a_frame(wine: Problem) -> None:
    result = exactk.solve(wine, 3)
    values = result.to_dict()
    del values["input_columns"]
    assert Result.from_dict(values) == result
    assert Result.from_dict(values).to_frame().equals(result.to_frame())


def test_a_selector_has_the_frame_of_its_result() -> None:
    X, y = load_iris(return_X_y=True, as_frame=True)
    selector = TopKSelector(k=2)
    with pytest.raises(NotFittedError):
        selector.to_frame()
    assert selector.fit(X, y).to_frame().equals(selector.result_.to_frame())
    assert isinstance(selector.to_frame("polars"), pl.DataFrame)


def test_a_path_has_one_row_a_size(wine: Problem) -> None:
    path = exactk.solve_path(wine, 4)
    frame = path.to_frame()
    assert frame["k"].tolist() == [1, 2, 3, 4]
    assert frame["objective"].tolist() == path.objectives.tolist()
    assert frame["explained"].is_monotonic_increasing
    held: set[str] = set()
    for row in frame.itertuples():
        held = (held - set(row.removed)) | set(row.added)
        assert held == set(row.features)
        assert [wine.feature_names.index(name) for name in sorted(
            row.features, key=wine.feature_names.index)] == row.support  # fmt: skip


def tables(problem: Problem) -> dict[str, tuple[Any, RecordsTable]]:
    """Everything that has a frame, and the table that it should show."""
    certified, best = (
        exactk.certify_path(problem, k_max=2),
        exactk.best_sets(problem, k=2, n_best=3),
    )
    stable = exactk.stability(problem, k=2, n_subsamples=10)
    choice = exactk.choose_k(problem, k_max=3)
    score = exactk.evaluate(*load_wine(return_X_y=True), k=2, effort=0)
    explained = exactk.explain(problem, k=3)
    return {
        "certified path": (certified, certified.table),
        "certificate": (certified.at(2), certified.table[1:]),
        "best sets": (best, best.table),
        "stability": (stable, stable.table),
        "choice": (choice, choice.table),
        "score": (score, score.table),
        "explanation": (explained, explained.selected_features),
    }


def test_everything_has_a_frame(wine: Problem) -> None:
    for name, (found, table) in tables(wine).items():
        frame = found.to_frame()
        assert isinstance(frame, pd.DataFrame), name
        assert list(frame.columns) == list(table.columns), name
        # By its text: NaN is not equal to itself.
        assert repr(frame.to_dict("records")) == repr(table.to_dicts()), name
        other = found.to_frame(library="polars")
        assert isinstance(other, pl.DataFrame), name
        assert (other.columns, len(other)) == (list(table.columns), len(table)), name


def test_an_explanation_has_several(wine: Problem) -> None:
    explained = exactk.explain(wine, k=3, why_not=["ash"])
    for name in ("selected_features", "runners_up", "why_not", "alternatives", "pairs"):
        table = getattr(explained, name)
        assert list(table.to_frame().columns) == list(table.columns)
        assert len(table.to_frame("polars")) == len(table)
    assert explained.to_frame().equals(explained.selected_features.to_frame())


def test_libraries_that_are_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    table = RecordsTable(["k"], [(1,)])
    with pytest.raises(InputError, match="library must be 'pandas' or 'polars', not 'dask'"):
        table.to_frame("dask")
    for library in ("pandas", "polars"):
        monkeypatch.setitem(sys.modules, library, None)
        with pytest.raises(MissingExtraError, match=rf'pip install "exactk\[{library}\]"'):
            table.to_frame(library)
