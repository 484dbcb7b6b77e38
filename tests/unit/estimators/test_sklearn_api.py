"""TopKSelector among scikit-learn's own: its checks, pipelines, searches, routing, containers."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from exactk import TopKSelector
from exactk.methods.exchange import Exchange

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

# What the checks look at is the selector's own, and the same for all methods; a method may differ
# in how it reads the table: the Gram matrix, rows, levels of rows for classes alone.
SELECTORS = [
    TopKSelector(k=1),
    TopKSelector(k=1, ridge="cv", method=Exchange(effort=0)),
    TopKSelector(k=1, method="rfs"),
    TopKSelector(k=1, method="infogain"),
]


# Some methods of the papers do not converge within the papers' iterations, and say so.
not_converged = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@not_converged
@parametrize_with_checks(SELECTORS)
def test_scikit_learn_accepts_it(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.fixture(scope="module")
def wine() -> tuple[Any, Any]:
    return load_wine(return_X_y=True, as_frame=True)


def test_a_pipeline_passes_on_the_selected_columns(wine: tuple[Any, Any]) -> None:
    X, y = wine
    pipeline = make_pipeline(StandardScaler(), TopKSelector(k=4), LogisticRegression())
    pipeline.fit(X, y)
    assert pipeline[-1].n_features_in_ == 4
    names = pipeline[:-1].get_feature_names_out()
    alone = TopKSelector(k=4).fit(X, y)
    assert names.tolist() == alone.get_feature_names_out().tolist()
    by_hand = LogisticRegression().fit(StandardScaler().fit_transform(X[names]), y)
    np.testing.assert_array_equal(
        pipeline.predict(X), by_hand.predict(StandardScaler().fit_transform(X[names]))
    )


def test_a_grid_search_over_k_and_over_the_options_of_the_method() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    pipeline = make_pipeline(
        StandardScaler(), TopKSelector(method=Exchange()), KNeighborsClassifier(3)
    )
    grid = {"topkselector__k": [1, 5], "topkselector__method__effort": [0, 0.2]}
    search = GridSearchCV(pipeline, grid, cv=3).fit(X, y)
    assert search.best_params_["topkselector__k"] == 5
    chosen = search.best_estimator_[1]
    assert chosen.method.effort == search.best_params_["topkselector__method__effort"]
    assert chosen.support_.sum() == 5
    # Each candidate is scored as it would be alone.
    single = clone(pipeline).set_params(topkselector__k=1, topkselector__method__effort=0)
    at = search.cv_results_["params"].index(
        {"topkselector__k": 1, "topkselector__method__effort": 0}
    )
    expected = cross_val_score(single, X, y, cv=3).mean()
    assert search.cv_results_["mean_test_score"][at] == pytest.approx(expected)


@not_converged
def test_methods_themselves_can_be_searched_over(wine: tuple[Any, Any]) -> None:
    pipeline = make_pipeline(TopKSelector(k=3), StandardScaler(), LogisticRegression())
    methods = ["exchange", "rfs", "relieff"]
    search = GridSearchCV(pipeline, {"topkselector__method": methods}, cv=3)
    search.fit(*wine)
    assert len(search.cv_results_["params"]) == len(methods)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_clones_and_pickles(wine: tuple[Any, Any]) -> None:
    X, y = wine
    selector = TopKSelector(k=3, method=Exchange(effort=0.5), ridge=0.2, random_state=1)
    twin = clone(selector)
    assert twin.get_params()["method__effort"] == 0.5
    assert twin.method is not selector.method
    assert not hasattr(twin, "support_")
    selector.fit(X, y)
    again = pickle.loads(pickle.dumps(selector))
    assert again.result_ == selector.result_
    np.testing.assert_array_equal(again.transform(X), selector.transform(X))
    np.testing.assert_array_equal(twin.fit(X, y).support_, selector.support_)


def test_parameters_of_the_method_are_parameters_of_the_selector() -> None:
    selector = TopKSelector(method=Exchange())
    assert {"method__effort", "method__init", "method__random_state"} <= set(selector.get_params())
    selector.set_params(method__effort=3.0, k=2)
    assert selector.method.effort == 3.0
    with pytest.raises(ValueError, match="efort"):
        selector.set_params(method__efort=1)


@pytest.fixture
def routing() -> Any:
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.mark.usefixtures("routing")
def test_sample_weights_are_routed_through_a_pipeline(wine: tuple[Any, Any]) -> None:
    X, y = wine
    # Weights that leave out a third of the rows change the selection.
    weights = np.where(np.arange(len(y)) % 3 == 0, 0.0, 1.0) * (1 + (y == 1) * 9)
    selector = TopKSelector(k=2, ridge=0).set_fit_request(sample_weight=True)
    last = LogisticRegression(max_iter=10_000).set_fit_request(sample_weight=False)
    pipeline = make_pipeline(selector, last).fit(X, y, sample_weight=weights)
    alone = TopKSelector(k=2, ridge=0).fit(X, y, sample_weight=weights)
    np.testing.assert_array_equal(pipeline[0].coef_, alone.coef_)
    ignored = make_pipeline(clone(selector).set_fit_request(sample_weight=False), clone(last))
    unweighted = TopKSelector(k=2, ridge=0).fit(X, y)
    assert not np.allclose(unweighted.coef_, alone.coef_)
    with pytest.raises(TypeError, match="sample_weight"):
        ignored.fit(X, y, sample_weight=weights)


@pytest.mark.parametrize("container", ["pandas", "polars"])
def test_set_output(wine: tuple[Any, Any], container: str) -> None:
    X, y = wine
    kind = {"pandas": pd.DataFrame, "polars": pl.DataFrame}[container]
    for table in (X, X.to_numpy(), pl.from_pandas(X)):
        selector = TopKSelector(k=3).set_output(transform=container).fit(table, y)
        out = selector.transform(table)
        assert isinstance(out, kind)
        assert list(out.columns) == selector.get_feature_names_out().tolist()
        np.testing.assert_array_equal(out.to_numpy(), X.to_numpy()[:, selector.support_])


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, "arrow"])
def test_frames_of_every_kind_select_the_same_names(wine: tuple[Any, Any], make: Any) -> None:
    X, y = wine
    columns = {name: X[name].to_numpy() for name in X}
    table = pa.table(columns) if make == "arrow" else make(columns)
    plain = TopKSelector(k=4).fit(X.to_numpy(), y.to_numpy())
    selector = TopKSelector(k=4).fit(table, y)
    np.testing.assert_array_equal(selector.support_, plain.support_)
    names = X.columns[plain.support_].tolist()
    assert list(selector.result_.feature_names) == names
    assert selector.get_feature_names_out().tolist() == names
    assert selector.feature_names_in_.tolist() == list(X.columns)
    out = np.asarray(selector.transform(table))
    np.testing.assert_array_equal(out, X.to_numpy()[:, plain.support_])


@pytest.mark.parametrize(
    "make", [sparse.csr_matrix, sparse.csc_matrix, sparse.csr_array, sparse.coo_array]
)
def test_sparse_tables_stay_sparse(make: Any) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 12)) * (rng.random((60, 12)) < 0.3)
    y = rng.integers(0, 3, 60)
    dense = TopKSelector(k=4, ridge=0).fit(X, y)
    selector = TopKSelector(k=4, ridge=0).fit(make(X), y)
    np.testing.assert_array_equal(selector.support_, dense.support_)
    np.testing.assert_allclose(selector.coef_, dense.coef_, atol=1e-9)
    out = selector.transform(make(X))
    assert sparse.issparse(out)
    np.testing.assert_array_equal(out.toarray(), X[:, dense.support_])
    back = selector.inverse_transform(out)
    assert sparse.issparse(back)
    np.testing.assert_array_equal(back.toarray(), X * dense.support_)


def test_inverse_transform_puts_zeros_for_the_rest(wine: tuple[Any, Any]) -> None:
    X, y = wine
    selector = TopKSelector(k=3).fit(X.to_numpy(), y)
    back = selector.inverse_transform(selector.transform(X.to_numpy()))
    np.testing.assert_array_equal(back, X.to_numpy() * selector.support_)


def test_other_columns_than_fitted_are_refused(wine: tuple[Any, Any]) -> None:
    X, y = wine
    selector = TopKSelector(k=3).fit(X, y)
    with pytest.raises(ValueError, match="feature names"):
        selector.transform(X.rename(columns={"ash": "ashes"}))
    with pytest.raises(ValueError, match="12 features"):
        TopKSelector(k=3).fit(X.to_numpy(), y).transform(X.to_numpy()[:, :12])
