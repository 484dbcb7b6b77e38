"""TopKClassifier and TopKRegressor: predictions against those of other libraries."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import StandardScaler

from exactk import (
    InputError,
    Problem,
    TopKClassifier,
    TopKRegressor,
    TopKSelector,
    certify,
    explain,
    losses,
    solve,
)
from tests.support import says

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")


@pytest.fixture(scope="module")
def wine() -> tuple[Any, Any]:
    X, y = load_wine(return_X_y=True, as_frame=True)
    return X, np.array(["barbera", "grignolino", "barolo"])[y]


def test_probabilities_are_those_of_logistic_regression_on_the_selected(
    wine: tuple[Any, Any],
) -> None:
    X, y = wine
    model = TopKClassifier(k=4, ridge=0.02).fit(X, y)
    names = model.get_feature_names_out()
    Z = StandardScaler().fit_transform(X[names]) * np.sqrt((len(X) - 1) / len(X))
    penalty = Problem.from_arrays(X, y, loss="logistic", ridge=0.02).penalty
    other = LogisticRegression(C=1 / penalty, tol=1e-10, max_iter=10_000).fit(Z, y)
    np.testing.assert_allclose(model.predict_proba(X), other.predict_proba(Z), atol=1e-5)
    np.testing.assert_array_equal(model.predict(X), other.predict(Z))
    np.testing.assert_array_equal(model.classes_, other.classes_)
    assert model.score(X, y) == other.score(Z, y)
    np.testing.assert_allclose(model.predict_log_proba(X), np.log(model.predict_proba(X)))


def test_two_classes_have_one_decision_and_two_probabilities() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    model = TopKClassifier(k=3).fit(X, y)
    decision, p = model.decision_function(X), model.predict_proba(X)
    assert decision.shape == (569,)
    assert p.shape == (569, 2)
    np.testing.assert_allclose(1 / (1 + np.exp(-decision)), p[:, 1], atol=1e-12)
    np.testing.assert_array_equal(model.predict(X), (decision > 0).astype(int))


def test_optimal_scoring_is_linear_discriminant_analysis(wine: tuple[Any, Any]) -> None:
    X, y = wine
    model = TopKClassifier(k=5, loss="optimal_scoring", ridge=0).fit(X, y)
    chosen = X[model.get_feature_names_out()]
    other = LinearDiscriminantAnalysis(solver="lsqr").fit(chosen, y)
    np.testing.assert_allclose(model.predict_proba(X), other.predict_proba(chosen), atol=1e-8)


def test_only_models_of_probabilities_give_them() -> None:
    X, y = load_wine(return_X_y=True)
    robust = TopKClassifier(k=2, loss="l21").fit(X, y)
    assert not hasattr(robust, "predict_proba")
    assert robust.score(X, y) > 0.6
    with pytest.raises(AttributeError, match="predict_proba"):
        robust.predict_proba(X)
    assert hasattr(TopKClassifier(loss="optimal_scoring"), "predict_proba")


def test_losses_of_the_wrong_kind_are_refused_with_a_hint() -> None:
    X, y = load_wine(return_X_y=True)
    several = np.column_stack([y == 0, y > 0]).astype(int)
    cases: list[tuple[Any, Any, str]] = [
        (TopKClassifier(k=2, loss="poisson"), y, "loss"),
        (TopKRegressor(k=2, loss="logistic"), y, "loss"),
        (TopKClassifier(k=2, loss="logistik"), y, "loss"),
        (TopKClassifier(k=2, certify=True), y, "certify"),
        (TopKClassifier(k=2, loss="squared"), several, "y"),
        (TopKClassifier(k=2, class_weight={5: 2.0}), y, "class_weight"),
    ]
    for model, target, parameter in cases:
        with pytest.raises(InputError) as error:
            model.fit(X, target)
        assert error.value.parameter == parameter
        assert not hasattr(model, "coef_")


def test_poisson_predicts_means() -> None:
    rng = np.random.default_rng(3)
    X = rng.standard_normal((400, 12))
    y = rng.poisson(np.exp(1.0 + 0.6 * X[:, 4] - 0.5 * X[:, 7]))
    model = TopKRegressor(k=2, loss="poisson", ridge=0).fit(X, y)
    assert model.get_support(indices=True).tolist() == [4, 7]
    predicted = model.predict(X)
    # The score equations: sums of counts and of predictions agree, also times each column.
    assert predicted.sum() == pytest.approx(y.sum(), rel=1e-8)
    np.testing.assert_allclose(X[:, [4, 7]].T @ predicted, X[:, [4, 7]].T @ y, rtol=1e-7)


UNITS = np.array([1.0, 1000.0, 0.001])


def three_outputs() -> tuple[Any, Any]:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(120, 9))
    return X, X[:, [1, 4, 7]] + 0.3 * rng.normal(size=(120, 3))


@pytest.mark.parametrize("loss", ["squared", "l21", "huber"])
@pytest.mark.parametrize("k", [3, "auto"])
def test_the_units_of_several_outputs_do_not_matter(loss: str, k: Any) -> None:
    X, Y = three_outputs()
    plain = TopKRegressor(k=k, loss=loss).fit(X, Y)
    scaled = TopKRegressor(k=k, loss=loss).fit(X, Y * UNITS)
    assert {1, 4, 7} <= set(plain.selected_.tolist())
    assert scaled.selected_.tolist() == plain.selected_.tolist()
    assert scaled.objective_ == pytest.approx(plain.objective_, rel=1e-6)
    np.testing.assert_allclose(scaled.coef_, plain.coef_ * UNITS[:, None], rtol=1e-4)
    np.testing.assert_allclose(scaled.predict(X), plain.predict(X) * UNITS, rtol=1e-3, atol=1e-7)
    if k == "auto":
        np.testing.assert_allclose(scaled.path_["mean"], plain.path_["mean"], rtol=1e-5)
    assert "standard deviations" in str(scaled.result_.assumptions)
    # A Problem takes the outputs as they are.
    one = solve(Problem.from_arrays(X, Y * UNITS), 1)
    assert one.support.tolist() == [4]
    assert one.assumptions == ()


def test_scaled_outputs_are_fitted_in_their_own_units() -> None:
    X, Y = three_outputs()
    weights = np.random.default_rng(1).integers(0, 3, len(X))
    model = TopKRegressor(k=3, ridge=0).fit(X, Y * UNITS, sample_weight=weights)
    fit = LinearRegression().fit(X[:, [1, 4, 7]], Y * UNITS, sample_weight=weights)
    np.testing.assert_allclose(model.coef_[:, [1, 4, 7]], fit.coef_, rtol=1e-9)
    np.testing.assert_allclose(model.intercept_, fit.intercept_, rtol=1e-7)
    repeated = TopKRegressor(k=3).fit(np.repeat(X, weights, axis=0), np.repeat(Y, weights, axis=0))
    weighted = TopKRegressor(k=3).fit(X, Y, sample_weight=weights)
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-9)
    # The sum of squares of an output that is divided by its standard deviation is n - 1.
    assert weighted.result_.total == pytest.approx(3 * (weights.sum() - 1))


def test_one_output_counts_and_labels_are_not_scaled() -> None:
    X, Y = three_outputs()
    counts = np.random.default_rng(0).poisson(np.exp(0.5 * Y))
    poisson = TopKRegressor(k=3, loss="poisson").fit(X, counts)
    wanted = solve(Problem.from_arrays(X, counts, loss="poisson", ridge=poisson.ridge_), 3)
    assert poisson.objective_ == pytest.approx(wanted.objective, rel=1e-12)
    one = TopKRegressor(k=2).fit(X, 7 * Y[:, 0])
    assert one.result_.total == pytest.approx(49 * ((Y[:, 0] - Y[:, 0].mean()) ** 2).sum())
    labels = TopKSelector(k=2).fit(X, (Y > 0.5).astype(int))
    share = (Y > 0.5).mean(axis=0)
    assert labels.result_.total == pytest.approx(120 * (share * (1 - share)).sum())
    for model in (poisson, one, labels):
        assert model.result_.assumptions == ()


def test_functions_of_a_table_scale_outputs_as_estimators_do() -> None:
    X, Y = three_outputs()
    model = TopKRegressor(k=3).fit(X, Y * UNITS)
    found = explain(X, Y * UNITS, features=model)
    assert found.support.tolist() == [1, 4, 7]
    assert model.problem(X, Y * UNITS).objective([1, 4, 7]) == pytest.approx(model.objective_)


def test_an_existing_selection_has_its_task() -> None:
    X, Y = three_outputs()
    grades = np.clip(Y[:, 0].round(), -2, 2).astype(int)
    model = TopKRegressor(k=2).fit(X, grades)
    for features in (model, model.result_):
        assert certify(X, grades, features=features).upper == pytest.approx(model.objective_)


@pytest.mark.dask
def test_dask_arrays_are_refused(wine: tuple[Any, Any]) -> None:
    import dask.array as da

    X, y = wine
    with pytest.raises(InputError, match="map_blocks") as error:
        TopKClassifier(k=3).fit(X, y).predict(da.from_array(X.to_numpy()))
    assert error.value.parameter == "X"


def test_text_is_coded_again_for_predictions(wine: tuple[Any, Any]) -> None:
    X, y = wine
    size = np.where(X["proline"] > 900, "large", np.where(X["proline"] > 600, "mid", "small"))
    X = X[["alcohol", "flavanoids", "hue", "ash"]].assign(size=size)
    model = TopKClassifier(k=3, constraints={"include": ["size"]}).fit(X, y)
    coded = pd.get_dummies(X, columns=["size"], dtype=float)
    kept = [
        name for name in coded if any(name.startswith(s) for s in model.get_feature_names_out())
    ]
    by_name = dict(zip(model.coded_feature_names_, model.coef_.T, strict=True))
    eta = model.intercept_ + sum(
        np.outer(coded[name], by_name[name.replace("_", "=")])
        for name in kept
        if name.replace("_", "=") in by_name
    )
    p = np.exp(eta) / np.exp(eta).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(X), p, atol=1e-10)
    assert model.score(X, y) > 0.85
    odd = X.iloc[:3].assign(size=["mid", "huge", "mid"])
    with says("'size'", "'huge'", "row 1", "'large', 'mid', 'small'"):
        model.predict(odd)


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_numbers_beside_text_are_finite_in_predictions(value: float) -> None:
    X = pl.DataFrame({"size": ["s", "m", "l"] * 50, "hue": np.arange(150) % 7.0})
    y = np.arange(150) % 3 + (np.arange(150) % 7 > 3)
    model = TopKClassifier(k=2).fit(X, y)
    odd = X.with_columns(hue=pl.Series([value] + [1.0] * 149))
    for ask in (model.predict, model.predict_proba, model.decision_function):
        with says("'hue' (1 of 150 rows)") as error:
            ask(odd)
        assert error.value.parameter == "X"


def test_classes_that_are_far_apart_are_distinguished() -> None:
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 30)
    for noise in (1e-8, 1e-9, 0.0):
        X = np.c_[rng.standard_normal(60), y + noise * rng.standard_normal(60)]
        model = TopKClassifier(k=2, loss="optimal_scoring", ridge=0).fit(X, y)
        assert model.score(X, y) == 1.0


def test_parameters_of_a_loss_can_be_searched_over(wine: tuple[Any, Any]) -> None:
    model = TopKClassifier(loss=losses.create("l2r", r=1.0))
    grid = GridSearchCV(model, {"loss__r": [0.7, 1.5], "k": [2, 5]}, cv=3).fit(*wine)
    assert set(grid.best_params_) == {"loss__r", "k"}
    assert grid.score(*wine) > 0.8


def test_a_fitted_model_keeps_its_loss() -> None:
    X, y = load_wine(return_X_y=True)
    model = TopKClassifier(k=2, loss="squared").fit(X, y).set_params(loss="logistic")
    assert not hasattr(model, "predict_proba")
    counts = TopKRegressor(k=2, loss="poisson").fit(X, y)
    wanted = counts.predict(X)
    np.testing.assert_array_equal(counts.set_params(loss="squared").predict(X), wanted)
