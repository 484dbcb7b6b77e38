"""TopKSelector: what its attributes mean, what it leaves alone, what it refuses."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression

from exactk import (
    AutoK,
    Constraints,
    InputError,
    Problem,
    Status,
    TopKSelector,
    UnknownMethodError,
    UnknownOptionError,
    solve,
    solve_path,
)
from exactk.errors import Setting
from exactk.methods.exchange import Exchange
from exactk.methods.greedy import Greedy
from tests.oracles.brute import Reference, make_classes, make_numbers, one_hot

X, Y = make_classes(50, 8, 3, seed=2)


def test_the_defaults() -> None:
    assert TopKSelector().get_params() == {
        "k": 10, "method": "exchange", "loss": "squared", "ridge": "auto", "task": "auto",
        "class_weight": None, "constraints": None, "effort": None, "time_limit": None,
        "certify": False, "random_state": None, "verbose": 0,
    }  # fmt: skip


@pytest.mark.parametrize("k", [1, 3, 8])
def test_mask_order_and_ranks_tell_the_same_story(k: int) -> None:
    selector = TopKSelector(k=k, ridge=0).fit(X, Y)
    reference = Reference(X, Y)
    assert np.flatnonzero(selector.support_).tolist() == list(reference.best(k)[0])
    assert selector.support_.dtype == bool
    np.testing.assert_array_equal(selector.get_support(), selector.support_)
    # Entry order: each next member lowers the objective of those before it most.
    left = np.flatnonzero(selector.support_).tolist()
    for position, member in enumerate(selector.selected_.tolist()):
        before = selector.selected_[:position].tolist()
        assert member == min(left, key=lambda p: reference.objective([*before, p]))
        left.remove(member)
        assert selector.ranking_[member] == position + 1
    assert (selector.ranking_[~selector.support_] == k + 1).all()
    np.testing.assert_array_equal(selector.transform(X), X[:, selector.support_])


def test_coefficients_are_those_of_a_linear_regression_on_the_chosen() -> None:
    selector = TopKSelector(k=3, ridge=0).fit(X, Y)
    chosen = selector.support_
    fit = LinearRegression().fit(X[:, chosen], one_hot(Y))
    assert selector.coef_.shape == (3, 8)
    np.testing.assert_allclose(selector.coef_[:, chosen], fit.coef_, atol=1e-9)
    assert (selector.coef_[:, ~chosen] == 0).all()
    np.testing.assert_allclose(selector.intercept_, fit.intercept_, atol=1e-9)
    residual = one_hot(Y) - (X @ selector.coef_.T + selector.intercept_)
    assert selector.objective_ == pytest.approx((residual**2).sum(), rel=1e-9)


def test_classes_and_regression() -> None:
    names = np.array(["low", "mid", "top"])
    assert TopKSelector(k=2).fit(X, names[Y]).classes_.tolist() == ["low", "mid", "top"]
    numbers = make_numbers(50, 8, 2, seed=2)[1]
    selector = TopKSelector(k=2).fit(X, numbers)
    assert not hasattr(selector, "classes_")
    assert selector.coef_.shape == (2, 8)
    assert TopKSelector(k=2, task="regression").fit(X, Y).coef_.shape == (1, 8)


def test_what_was_assumed_about_whole_numbers_is_in_the_result() -> None:
    selector = TopKSelector(k=2).fit(X, Y)
    assert str(Setting("task", "regression")) in selector.result_.assumptions[0]
    assert TopKSelector(k=2, task="classification").fit(X, Y).result_.assumptions == ()
    amounts = (100 * X[:, 0]).round().astype(int)
    selector.fit(X, amounts)
    assert (selector.coef_.shape, selector.selected_[0]) == ((1, 8), 0)
    (assumption,) = selector.result_.to_dict()["assumptions"]
    assert "task='classification'" in assumption


def test_weights_count() -> None:
    weights = np.random.default_rng(0).integers(0, 4, 50)
    weighted = TopKSelector(k=3, ridge=0).fit(X, Y, sample_weight=weights)
    repeated = TopKSelector(k=3, ridge=0).fit(X.repeat(weights, axis=0), Y.repeat(weights))
    np.testing.assert_array_equal(weighted.support_, repeated.support_)
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-9)


def test_effort_and_seed_of_the_selector_reach_the_method() -> None:
    data = load_wine(return_X_y=True)
    plain = TopKSelector(k=6, effort=0, ridge=0).fit(*data)
    assert plain.n_iter_ == solve(Problem.from_arrays(*data), 6, effort=0).n_iter
    seeded = TopKSelector(k=6, random_state=9, ridge=0).fit(*data)
    assert seeded.result_.trace == solve(Problem.from_arrays(*data), 6, random_state=9).trace
    overruled = TopKSelector(k=6, method=Exchange(effort=5), effort=0, ridge=0).fit(*data)
    assert overruled.n_iter_ == plain.n_iter_
    # A seed is of no use to a method without chance, and does no harm.
    assert TopKSelector(k=2, method="greedy", random_state=1).fit(*data).support_.sum() == 2


def test_a_time_limit_reaches_the_method() -> None:
    selector = TopKSelector(k=4, effort=np.inf, time_limit=0.05).fit(X, Y)
    assert selector.status_ == Status.TIME_LIMIT
    assert selector.support_.sum() == 4


def test_a_path_leaves_the_selector_as_it_is() -> None:
    selector = TopKSelector(k=4, ridge=0)
    path = selector.path(X, Y)
    assert len(path) == 4
    assert vars(selector) == vars(TopKSelector(k=4, ridge=0))
    with pytest.raises(NotFittedError):
        selector.transform(X)
    expected = solve_path(Problem.from_arrays(X, Y), 4)
    assert [r.support.tolist() for r in path] == [r.support.tolist() for r in expected]
    frame, labels = load_wine(return_X_y=True, as_frame=True)
    selector.fit(frame, labels)
    before = dict(vars(selector))
    assert len(selector.path(X, Y, k_max=2, sample_weight=np.ones(50))) == 2
    assert vars(selector) == before
    with pytest.raises(InputError, match=r"k=9 .*8 usable"):
        selector.path(X, Y, k_max=9)


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("k", 0), ("k", -3), ("k", 2.0), ("k", True), ("k", "all"), ("k", None), ("k", AutoK),
        ("method", 42), ("method", Greedy), ("method", None), ("method", ""),
        ("loss", None), ("loss", "logistik"), ("ridge", "best"), ("ridge", -1), ("ridge", np.nan),
        ("task", "ranking"), ("task", None), ("class_weight", "even"), ("constraints", ["x0"]),
        ("constraints", {"includes": ["x0"]}), ("effort", -1), ("effort", "more"),
        ("time_limit", 0), ("time_limit", np.nan), ("certify", "yes"), ("certify", None),
        ("certify", 0), ("certify", -1), ("certify", np.nan), ("certify", [60]),
        ("random_state", -1), ("verbose", -1),
    ],
)  # fmt: skip
def test_a_bad_parameter_is_named(parameter: str, value: Any) -> None:
    with pytest.raises(InputError) as error:
        TopKSelector(**{"k": 2, parameter: value}).fit(X, Y)
    assert error.value.parameter == parameter


@pytest.mark.parametrize(
    "parameters",
    [
        {"k": 0}, {"k": AutoK(criterion="aic")}, {"k": AutoK(rule="1se")}, {"k": AutoK(k_max=0)},
        {"constraints": {"max_correlation": 2}}, {"constraints": Constraints(count="column")},
        {"constraints": {"budget": -1}}, {"loss": "cubic"}, {"certify": True, "loss": "huber"},
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("call", ["fit", "path", "problem"])
def test_parameters_are_checked_before_the_table(parameters: dict[str, Any], call: str) -> None:
    table: Any = "no table at all"
    with pytest.raises(InputError) as error:
        getattr(TopKSelector(**parameters), call)(table, None)
    assert error.value.parameter not in ("X", "y", None)


def test_a_method_that_does_not_exist_is_named() -> None:
    with pytest.raises(UnknownMethodError, match="did you mean 'exchange'") as error:
        TopKSelector(k=2, method="exchnage").fit(X, Y)
    assert error.value.parameter == "method"
    with pytest.raises(UnknownOptionError, match="effort"):
        TopKSelector(k=2, method="rfs", effort=1).fit(X, Y)


@pytest.mark.parametrize("k", [9, 100])
def test_all_columns_are_kept_if_k_is_larger(k: int) -> None:
    with pytest.warns(UserWarning, match=rf"k={k} is more than the 8 columns"):
        selector = TopKSelector(k=k, ridge=0).fit(X, Y)
    assert selector.support_.all()
    assert (selector.k_, selector.k) == (8, k)
    np.testing.assert_array_equal(selector.transform(X), X)
    assert selector.objective_ == pytest.approx(Reference(X, Y).objective(range(8)))
    with pytest.raises(InputError) as error:
        solve(Problem.from_arrays(X, Y), k)
    assert error.value.parameter == "k"


def test_columns_that_cannot_be_selected_are_left_out_if_k_is_larger() -> None:
    table = np.c_[X, np.ones(50)]
    with pytest.warns(UserWarning, match="than the 7 columns"):
        selector = TopKSelector(k=10, constraints={"exclude": [2]}).fit(table, Y)
    assert selector.get_support(indices=True).tolist() == [0, 1, 3, 4, 5, 6, 7]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert TopKSelector(k=8).fit(table, Y).k_ == 8


def spoiled(value: float) -> Any:
    out = X.copy()
    out[[4, 7], 5] = value
    return out


@pytest.mark.parametrize(
    ("X", "y", "weights", "parameter"),
    [
        (X, None, None, "y"), (X, Y[:-1], None, "y"), (X, np.where(Y == 1, np.nan, Y), None, "y"),
        (X, np.zeros(50, dtype=int), None, "y"), (X, Y, np.ones(49), "sample_weight"),
        (X, Y, -np.ones(50), "sample_weight"), (X, Y, np.zeros(50), "sample_weight"),
        (X, Y, np.full(50, np.nan), "sample_weight"), (spoiled(np.nan), Y, None, "X"),
        (spoiled(np.inf), Y, None, "X"), (X[0], Y, None, "X"), (X[:0], Y[:0], None, "X"),
        (X[:, :0], Y, None, "X"), (X[:1], Y[:1], None, "X"), (X.astype(str), Y, None, "X"),
        (np.ones((50, 3)), Y, None, "k"),
    ],
)  # fmt: skip
def test_bad_tables_are_refused(X: Any, y: Any, weights: Any, parameter: str) -> None:
    with pytest.raises(InputError) as error:
        TopKSelector(k=2).fit(X, y, sample_weight=weights)
    assert error.value.parameter == parameter


def test_after_ctrl_c_the_best_is_kept_and_loops_end(monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("exactk.utils.monitor.Monitor.report", stop)
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 12)), np.arange(40) % 3
    selector = TopKSelector(k=4)
    with pytest.raises(KeyboardInterrupt, match="best found"):
        selector.fit(X, y)
    assert selector.status_ == "interrupted"
    assert selector.transform(X).shape == (40, 4)


def test_a_proof_after_the_search() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    plain = TopKSelector(k=5, ridge=0).fit(X, y)
    assert not hasattr(plain, "certificate_")
    selector = TopKSelector(k=5, ridge=0, certify=True).fit(X, y)
    assert selector.proven_ is True
    assert selector.status_ == "optimal"
    assert selector.gap_ == 0
    assert selector.lower_bound_ == pytest.approx(70.3327, abs=5e-5)
    assert selector.certificate_.result is selector.result_
    assert "Proven: no other 5 columns" in selector.certificate_.summary
    selector.set_params(certify=False).fit(X, y)
    for name in ("certificate_", "gap_", "lower_bound_", "proven_"):
        assert not hasattr(selector, name)


def test_a_better_set_takes_the_place_of_the_methods() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    alone = TopKSelector(k=4, method="fisher").fit(X, y)
    selector = TopKSelector(k=4, method="fisher", certify=30).fit(X, y)
    assert selector.certificate_.improved
    assert selector.objective_ < alone.objective_
    assert selector.objective_ == selector.lower_bound_ == selector.certificate_.upper
    assert selector.result_.method == "certify"
    support = np.flatnonzero(selector.support_)
    assert support.tolist() == sorted(selector.selected_) == selector.result_.support.tolist()
    assert np.flatnonzero(selector.coef_.any(axis=0)).tolist() == support.tolist()
    np.testing.assert_allclose(selector.scores_, alone.scores_)


def test_an_open_proof_is_no_failure() -> None:
    X, y = load_wine(return_X_y=True)
    selector = TopKSelector(k=6, certify=1e-6).fit(X, y)
    assert selector.proven_ is False
    assert selector.status_ == "converged"
    assert 0 < selector.gap_ <= 1
    assert selector.lower_bound_ < selector.objective_


def test_ctrl_c_in_the_choice_of_k_starts_no_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    class StopsInAFold(Exchange):
        def run(self, problem: Problem, k: int, monitor: Any) -> Any:
            if problem.n_rows < 178:
                raise KeyboardInterrupt
            return super().run(problem, k, monitor)

        def run_path(self, problem: Problem, k_max: int, monitor: Any) -> Any:
            if problem.n_rows < 178:
                raise KeyboardInterrupt
            return super().run_path(problem, k_max, monitor)

    monkeypatch.setattr("exactk.proof.run.make_tree", lambda *given: pytest.fail("a proof began"))
    X, y = load_wine(return_X_y=True)
    selector = TopKSelector(k=AutoK(k_max=3), method=StopsInAFold(), certify=True)
    with pytest.raises(KeyboardInterrupt, match="Ctrl-C"):
        selector.fit(X, y)
    assert selector.status_ == "interrupted"
    assert selector.transform(X).shape == (178, selector.k_)


def test_a_fit_that_failed_leaves_no_fitted_selector() -> None:
    X, y = load_wine(return_X_y=True)
    selector = TopKSelector(k=3, constraints={"include": [0, 1], "max_correlation": 0.0})
    with pytest.raises(InputError):
        selector.fit(X, y)
    with pytest.raises(NotFittedError):
        selector.transform(X)


def test_ctrl_c_in_a_proof_leaves_a_fitted_selector(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*arguments: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr("exactk.proof.run.make_tree", interrupt)
    X, y = load_wine(return_X_y=True)
    selector = TopKSelector(k=3, certify=True)
    with pytest.raises(KeyboardInterrupt):
        selector.fit(X, y)
    assert selector.transform(X).shape == (178, 3)
    assert selector.certificate_.status == "interrupted"
    assert selector.status_ == "converged"
