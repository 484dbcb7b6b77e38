"""TopKSelector with k="auto" or AutoK: what it chooses, and how parameters and metadata arrive."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_validate
from sklearn.pipeline import make_pipeline

from exactk import AutoK, InputError, Problem, TopKSelector, choose_k
from exactk.methods.exchange import Exchange

Array = np.ndarray[Any, Any]


def data(n: int = 120, d: int = 15, noise: float = 1.5) -> tuple[Array, Array]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)) + 0.5 * rng.normal(size=(n, 1))
    return X, X[:, 1] - 2 * X[:, 4] + X[:, 7] + noise * rng.normal(size=n)


X, Y = data()


@pytest.mark.parametrize("criterion", ["cv", "bic", "ebic", "aicc", "cp"])
def test_it_chooses_what_choose_k_chooses(criterion: str) -> None:
    selector = TopKSelector(k=AutoK(criterion=criterion)).fit(X, Y)  # type: ignore[arg-type]
    choice = choose_k(X, Y, criterion=criterion)  # type: ignore[arg-type]
    assert selector.k_ == choice.k == selector.get_support().sum()
    assert selector.path_ == choice.table
    assert selector.selected_.tolist() == choice.result.order.tolist()
    assert selector.objective_ == choice.result.objective
    assert selector.transform(X).shape == (len(X), choice.k)
    assert selector.ranking_[~selector.support_].tolist() == [choice.k + 1] * (15 - choice.k)


def test_all_parameters_are_handed_on() -> None:
    options: dict[str, Any] = {
        "k_max": 5, "cv": 3, "rule": "best", "scoring": "r2", "estimator": LinearRegression(),
    }  # fmt: skip
    auto = AutoK(**options)
    selector = TopKSelector(k=auto, ridge=0.3, random_state=7, effort=0).fit(X, Y)
    problem = Problem.from_arrays(X, Y, ridge=0.3)
    choice = choose_k(problem, effort=0, random_state=7, **options)
    assert selector.path_ == choice.table
    assert (selector.choice_.k_max, selector.choice_.n_folds) == (5, 3)
    # A configured method object is the same.
    given = TopKSelector(k=auto, method=Exchange(effort=0), ridge=0.3, random_state=7)
    assert given.fit(X, Y).path_ == choice.table
    assert given.k is auto
    assert auto.get_params(deep=False) == {"criterion": "cv", **options}


def test_parameters_of_an_object_are_parameters_of_the_selector() -> None:
    auto = AutoK(k_max=5)
    selector = TopKSelector(k=auto)
    assert selector.get_params()["k__k_max"] == 5
    twin = clone(selector).set_params(k__k_max=3, k__criterion="bic")
    assert (twin.k.k_max, twin.k.criterion, auto.k_max, auto.criterion) == (3, "bic", 5, "cv")
    assert twin.fit(X, Y).choice_.k_max == 3
    grid = GridSearchCV(
        make_pipeline(selector, LinearRegression()), {"topkselector__k__k_max": [1, 4]}, cv=3
    )
    assert grid.fit(X, Y).best_params_ == {"topkselector__k__k_max": 4}
    assert auto.k_max == 5


@pytest.mark.dask
def test_dask_tables() -> None:
    import dask.array as da

    table, y = da.from_array(X, chunks=(50, 15)), da.from_array(Y, chunks=50)
    expected = TopKSelector(k=AutoK(criterion="ebic")).fit(X, Y)
    found = TopKSelector(k=AutoK(criterion="ebic")).fit(table, y)
    assert found.k_ == expected.k_
    np.testing.assert_allclose(found.path_["criterion"], expected.path_["criterion"], rtol=1e-8)
    # Squared error needs no more than the moments of the folds.
    assert TopKSelector(k=AutoK(k_max=6)).fit(table, y).k_ == 3


def test_groups_reach_the_splitter() -> None:
    groups = np.repeat(np.arange(12), 10)
    by_number = TopKSelector(k=AutoK(cv=4)).fit(X, Y, groups=groups)
    by_splitter = TopKSelector(k=AutoK(cv=GroupKFold(4))).fit(X, Y, groups=groups)
    assert by_number.path_ == by_splitter.path_
    # If nothing is split they are not used.
    TopKSelector(k=3).fit(X, Y, groups=groups)
    TopKSelector(k=AutoK(criterion="bic")).fit(X, Y, groups=groups)


@pytest.mark.parametrize("k", [3, "auto"])
def test_groups_of_rows_have_one_for_each(k: Any) -> None:
    with pytest.raises(InputError) as error:
        TopKSelector(k=k).fit(X, Y, groups=[1])
    assert error.value.parameter == "groups"


@pytest.fixture
def routing() -> Any:
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.mark.usefixtures("routing")
def test_metadata_are_routed() -> None:
    groups = np.repeat(np.arange(12), 10)
    weights = np.random.default_rng(1).integers(1, 3, len(X)).astype(float)
    splitter = GroupKFold(4)
    selector = TopKSelector(k=AutoK(k_max=5, cv=splitter)).set_fit_request(
        sample_weight=True, groups=True
    )
    last = LinearRegression().set_fit_request(sample_weight=False)
    pipeline = make_pipeline(selector, last)
    pipeline.fit(X, Y, sample_weight=weights, groups=groups)
    alone = clone(selector).fit(X, Y, sample_weight=weights, groups=groups)
    assert pipeline[0].path_ == alone.path_
    found = cross_validate(pipeline, X, Y, cv=GroupKFold(3), params={"groups": groups})
    assert np.isfinite(found["test_score"]).all()


def test_the_problem_of_a_selector_is_the_one_that_it_solves() -> None:
    X, y = load_wine(return_X_y=True)
    selector = TopKSelector(k=3, constraints={"include": [1]}, ridge=0.7)
    before = selector.problem(X, y)
    assert (before.ridge, before.rules.include) == (0.7, (1,))
    auto = TopKSelector(k=AutoK(k_max=5)).fit(X, y)
    problem = auto.problem(X, y)
    assert problem.ridge == auto.ridge_
    assert problem.objective(auto.get_support(indices=True)) == pytest.approx(auto.objective_)
