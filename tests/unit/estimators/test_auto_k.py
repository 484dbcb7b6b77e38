"""TopKSelector(k="auto"): what it chooses, what it tells of it, and how metadata reach it."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, cross_validate
from sklearn.pipeline import make_pipeline

from exactk import AutoKResult, Problem, TopKSelector, choose_k, solve_path
from exactk.methods.exchange import Exchange
from exactk.utils.records_table import RecordsTable
from tests.support import says

Array = np.ndarray[Any, Any]


def data(n: int = 120, d: int = 15, noise: float = 1.5) -> tuple[Array, Array]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)) + 0.5 * rng.normal(size=(n, 1))
    return X, X[:, 1] - 2 * X[:, 4] + X[:, 7] + noise * rng.normal(size=n)


X, Y = data()


@pytest.mark.parametrize("criterion", ["cv", "bic", "ebic", "aicc", "cp"])
def test_it_chooses_what_choose_k_chooses(criterion: str) -> None:
    selector = TopKSelector(k="auto", criterion=criterion).fit(X, Y)
    choice = choose_k(Problem.from_arrays(X, Y), criterion=criterion, ridge="auto")
    assert selector.k_ == choice.k == selector.get_support().sum()
    assert isinstance(selector.choice_, AutoKResult)
    assert isinstance(selector.path_, RecordsTable)
    assert selector.path_ == choice.table
    assert selector.selected_.tolist() == choice.result.order.tolist()
    assert selector.objective_ == choice.result.objective
    assert selector.transform(X).shape == (len(X), choice.k)
    assert selector.ranking_[~selector.support_].tolist() == [choice.k + 1] * (15 - choice.k)


def test_all_parameters_are_handed_on() -> None:
    options: dict[str, Any] = {
        "k_max": 5, "cv": 3, "rule": "best", "scoring": "r2", "estimator": LinearRegression(),
    }  # fmt: skip
    selector = TopKSelector(k="auto", ridge=0.3, random_state=7, effort=0, **options).fit(X, Y)
    problem = Problem.from_arrays(X, Y, ridge=0.3)
    choice = choose_k(problem, effort=0, random_state=7, **options)
    assert selector.path_ == choice.table
    assert (selector.choice_.k_max, selector.choice_.n_folds) == (5, 3)
    # A configured method object is the same.
    given = TopKSelector(k="auto", method=Exchange(effort=0), ridge=0.3, random_state=7, **options)
    assert given.fit(X, Y).path_ == choice.table


def test_a_fixed_number_leaves_no_trace_of_an_earlier_choice() -> None:
    selector = TopKSelector(k="auto").fit(X, Y)
    selector.set_params(k=4).fit(X, Y)
    assert selector.k_ == 4
    assert not hasattr(selector, "path_")
    assert not hasattr(selector, "choice_")


def test_ridge_by_cross_validation_is_that_of_the_largest_size() -> None:
    selector = TopKSelector(k="auto", k_max=6, ridge="cv").fit(X, Y)
    assert selector.ridge_ == Problem.from_arrays(X, Y).with_ridge("cv", 6).ridge
    with says("ridge", "None"):
        TopKSelector(k="auto", ridge=None).fit(X, Y)


def test_path_goes_up_to_the_largest_size() -> None:
    selector = TopKSelector(k="auto", k_max=4, ridge=0)
    expected = solve_path(Problem.from_arrays(X, Y), 4)
    found = selector.path(X, Y)
    assert [r.support.tolist() for r in found] == [r.support.tolist() for r in expected]
    assert len(TopKSelector(k="auto").path(X, Y)) == 15
    assert len(selector.path(X, Y, k_max=2)) == 2


def test_weights_are_repeated_rows_for_a_criterion() -> None:
    w = np.random.default_rng(1).integers(0, 3, len(X))
    one = TopKSelector(k="auto", criterion="bic", ridge=0).fit(X, Y, sample_weight=w)
    rows = np.repeat(np.arange(len(X)), w)
    other = TopKSelector(k="auto", criterion="bic", ridge=0).fit(X[rows], Y[rows])
    assert one.selected_.tolist() == other.selected_.tolist()


def test_sparse_tables() -> None:
    dense = TopKSelector(k="auto", k_max=6).fit(X, Y)
    for table in (sparse.csr_array(X), sparse.csc_matrix(X)):
        found = TopKSelector(k="auto", k_max=6).fit(table, Y)
        np.testing.assert_allclose(found.path_["mean"], dense.path_["mean"], rtol=1e-9)
        assert found.k_ == dense.k_


def test_frames_with_categories_speak_of_their_columns() -> None:
    pl = pytest.importorskip("polars")
    rng = np.random.default_rng(3)
    colour = rng.choice(["red", "green", "blue"], len(X))
    frame = pl.DataFrame({f"c{j}": X[:, j] for j in range(6)}).with_columns(
        pl.Series("colour", colour)
    )
    y = 3.0 * (colour == "red") - 3.0 * (colour == "blue") + X[:, 4] + 0.1 * Y
    selector = TopKSelector(k="auto").fit(frame, y)
    for row in selector.path_:
        assert len(row["features"]) == row["k"]
        assert set(row["features"]) <= set(frame.columns)
    assert selector.path_[selector.k_ - 1]["features"] == list(selector.get_feature_names_out())
    assert {"colour", "c4"} <= set(selector.get_feature_names_out())


@pytest.mark.dask
def test_dask_tables() -> None:
    import dask.array as da

    table, y = da.from_array(X, chunks=(50, 15)), da.from_array(Y, chunks=50)
    expected = TopKSelector(k="auto", criterion="ebic").fit(X, Y)
    found = TopKSelector(k="auto", criterion="ebic").fit(table, y)
    assert found.k_ == expected.k_
    np.testing.assert_allclose(found.path_["criterion"], expected.path_["criterion"], rtol=1e-8)
    # Squared error needs no more than the moments of the folds.
    assert TopKSelector(k="auto", k_max=6).fit(table, y).k_ == 3


def test_groups_reach_the_splitter() -> None:
    groups = np.repeat(np.arange(12), 10)
    by_number = TopKSelector(k="auto", cv=4).fit(X, Y, groups=groups)
    by_splitter = TopKSelector(k="auto", cv=GroupKFold(4)).fit(X, Y, groups=groups)
    assert by_number.path_ == by_splitter.path_
    with says("GroupKFold", "groups"):
        TopKSelector(k="auto", cv=GroupKFold(4)).fit(X, Y)
    # Where nothing is split they are not used.
    TopKSelector(k=3).fit(X, Y, groups=groups)
    TopKSelector(k="auto", criterion="bic").fit(X, Y, groups=groups)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"k_max": 0}, ["k_max", "at least 1", "0"]),
        ({"k_max": 2.5}, ["k_max", "2.5"]),
        ({"criterion": "aic"}, ["criterion", "'aic'", "did you mean 'aicc'?"]),
        ({"rule": "1se"}, ["rule", "'one_se', 'paired' or 'best'", "'1se'"]),
        ({"cv": "five"}, ["cv", "splitter", "'five'"]),
        ({"cv": 1}, ["cv", "at least 2", "1"]),
        ({"cv": 2.5}, ["cv", "2.5"]),
        ({"count": "column"}, ["count", "'groups' or 'columns'", "'column'"]),
        ({"k": "some"}, ["k must be", "'auto'", "'some'"]),
        ({"method": "exchnage"}, ["did you mean 'exchange'"]),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
@pytest.mark.parametrize("k", [3, "auto"])
def test_parameters_are_checked_before_the_table_whatever_k_is(
    options: dict[str, Any], words: list[str], k: int | str
) -> None:
    table: Any = "no table at all"
    for call in ("fit", "path"):
        with says(*words):
            getattr(TopKSelector(**{"k": k, **options}), call)(table, None)


def test_groups_of_rows_have_one_for_each() -> None:
    for k in (3, "auto"):
        with says("groups", "120 rows", "(1,)"):
            TopKSelector(k=k).fit(X, Y, groups=[1])
    folds = KFold(3)
    assert TopKSelector(k=3, cv=folds.split(X), k_max=400).fit(X, Y).k_ == 3


@pytest.fixture
def routing() -> Any:
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.mark.usefixtures("routing")
def test_metadata_are_routed() -> None:
    groups = np.repeat(np.arange(12), 10)
    weights = np.random.default_rng(1).integers(1, 3, len(X)).astype(float)
    splitter = GroupKFold(4)
    selector = TopKSelector(k="auto", k_max=5, cv=splitter).set_fit_request(
        sample_weight=True, groups=True
    )
    last = LinearRegression().set_fit_request(sample_weight=False)
    pipeline = make_pipeline(selector, last)
    with pytest.raises(TypeError, match="groups"):
        make_pipeline(clone(selector).set_fit_request(groups=False), last).fit(
            X, Y, sample_weight=weights, groups=groups
        )
    pipeline.fit(X, Y, sample_weight=weights, groups=groups)
    alone = clone(selector).fit(X, Y, sample_weight=weights, groups=groups)
    assert pipeline[0].path_ == alone.path_
    scores = cross_validate(pipeline, X, Y, cv=GroupKFold(3), params={"groups": groups})[
        "test_score"
    ]
    assert np.isfinite(scores).all()


@pytest.mark.usefixtures("routing")
def test_weighted_scores_do_not_ask_for_routing() -> None:
    labels = np.digitize(Y, [0.0])
    weights = np.random.default_rng(1).integers(0, 3, len(X))
    selector = TopKSelector(k="auto", k_max=3, scoring="accuracy", cv=KFold(3))
    assert selector.fit(X, labels, sample_weight=weights).path_["mean"][0] > 0.5


def test_in_a_grid_search() -> None:
    pipeline = make_pipeline(TopKSelector(k="auto"), LinearRegression())
    grid = {"topkselector__k": [1, "auto"], "topkselector__criterion": ["ebic"]}
    search = GridSearchCV(pipeline, grid, cv=3).fit(X, Y)
    assert search.best_params_["topkselector__k"] == "auto"
    inner = TopKSelector(k="auto", estimator=LogisticRegression(C=3.0))
    assert inner.get_params()["estimator__C"] == 3.0
    assert clone(inner).estimator is not inner.estimator


def test_estimators_are_not_fitted_themselves() -> None:
    model = LinearRegression()
    TopKSelector(k="auto", k_max=2, estimator=model).fit(X, Y)
    assert not hasattr(model, "coef_")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"k": "automatic"}, ["k must be a whole number or 'auto'", "'automatic'"]),
        ({"k_max": 0}, ["k_max", "0", "of at least 1"]),
        ({"criterion": "mdl"}, ["criterion", "'mdl'"]),
        ({"rule": "two_se"}, ["rule", "'two_se'"]),
        ({"scoring": "r2", "criterion": "bic"}, ["scoring", "criterion='cv'"]),
        ({"cv": 0}, ["cv", "0"]),
    ],
    ids=["k", "k_max", "criterion", "rule", "scoring", "cv"],
)
def test_bad_parameters(options: dict[str, Any], words: list[str]) -> None:
    with says(*words):
        TopKSelector(**{"k": "auto", **options}).fit(X, Y)


def test_folds_that_leak_and_scores_that_do_not_fit_the_target_are_refused() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    y = X[:, 0] + rng.normal(size=60)
    leaking = [(np.arange(50), np.arange(40, 60)), (np.arange(10, 60), np.arange(10))]
    with says("fold 1", "tests rows that it is trained on"):
        TopKSelector(k="auto", cv=leaking).fit(X, y)
    with says("scoring accuracy", "fails on a fold"):
        TopKSelector(k="auto", scoring="accuracy").fit(X, y)


def test_a_best_size_at_the_end_is_reported() -> None:
    X, y = load_wine(return_X_y=True)
    short = TopKSelector(k="auto", k_max=3).fit(X, y).choice_
    assert "larger k_max than 3" in short.message
    assert json.loads(short.to_json())["message"] == short.message
    assert TopKSelector(k="auto", k_max=13).fit(X, y).choice_.message == ""


def test_the_problem_of_a_selector_is_the_one_that_it_solves() -> None:
    X, y = load_wine(return_X_y=True)
    selector = TopKSelector(k=3, include=[1], ridge=0.7)
    before = selector.problem(X, y)
    assert (before.ridge, before.rules.include) == (0.7, (1,))
    auto = TopKSelector(k="auto", k_max=5).fit(X, y)
    problem = auto.problem(X, y)
    assert problem.ridge == auto.ridge_
    assert problem.objective(auto.get_support(indices=True)) == pytest.approx(auto.objective_)
