"""The estimators in scikit-learn: checks, nested parameters, pipelines, searches, containers."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.model_selection import GridSearchCV
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
