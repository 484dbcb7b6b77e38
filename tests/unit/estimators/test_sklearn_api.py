"""The estimators in scikit-learn: checks, nested parameters, pipelines, searches, containers."""

from __future__ import annotations

import copy
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

from exactk import Constraints, TopKClassifier, TopKRegressor, TopKSelector, losses
from exactk.methods.exchange import Exchange

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

# The default instances, and one for each way to read the table (Gram matrix, rows, levels), to
# predict (probabilities, none, numbers) and to search (likelihood, squares, reweighted squares).
ESTIMATORS = [
    TopKSelector(),
    TopKClassifier(),
    TopKRegressor(),
    TopKSelector(k=1, ridge="cv", method=Exchange(effort=0)),
    TopKSelector(k=1, method="rfs"),
    TopKSelector(k=1, method="infogain"),
    TopKSelector(k=1, loss="logistic", task="classification"),
    TopKClassifier(k=2, loss="optimal_scoring", class_weight="balanced"),
    TopKClassifier(k=2, loss=losses.create("huber", epsilon=2.0)),
    TopKRegressor(k=1, constraints=Constraints(max_correlation=0.999)),
]


# Some methods of the papers do not converge within the papers' iterations, and say so.
not_converged = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@not_converged
@pytest.mark.filterwarnings("ignore:k=10 is more than:UserWarning")
@parametrize_with_checks(ESTIMATORS)
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


@pytest.mark.parametrize("kind", [TopKSelector, TopKClassifier])
def test_constraints_are_nested_parameters(kind: Any, wine: tuple[Any, Any]) -> None:
    X, y = wine
    constraints = Constraints(include=["ash"])
    model = kind(k=3, constraints=constraints)
    assert model.get_params()["constraints__include"] == ["ash"]
    twin = clone(model).set_params(constraints__exclude=["proline"])
    assert (constraints.exclude, twin.constraints.exclude) == (None, ["proline"])
    names = set(twin.fit(X, y).get_feature_names_out())
    assert "ash" in names
    assert "proline" not in names
    grid = {"constraints__max_correlation": [0.3, None]}
    search = GridSearchCV(
        kind(k=3, constraints=Constraints()), grid, cv=3, scoring=lambda m, X, y: m.objective_
    ).fit(X, y)
    # The objective under a constraint is never lower.
    assert search.best_params_ == {"constraints__max_correlation": 0.3}


def test_a_dict_of_constraints_is_not_changed(wine: tuple[Any, Any]) -> None:
    given = {"include": ["ash"], "quotas": {"two": {"columns": [1, 2], "at_most": 1}}}
    before = copy.deepcopy(given)
    selector = TopKSelector(k=3, constraints=given).fit(*wine)
    by_object = TopKSelector(k=3, constraints=Constraints(**given)).fit(*wine)
    assert given == before
    assert selector.constraints is given
    assert clone(selector).constraints == given
    assert selector.selected_.tolist() == by_object.selected_.tolist()


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
