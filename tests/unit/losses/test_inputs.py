"""What losses make of their input: weights, classes, units, separated rows, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from exactk import Problem, solve, solve_path
from exactk.errors import InputError, Row, Setting
from exactk.losses.registry import names
from tests.oracles.brute import make_classes, make_numbers
from tests.support import says

Array = np.ndarray[Any, Any]
OF_CLASSES = ["squared", "l21", "l2r", "huber", "logistic", "optimal_scoring"]
OF_NUMBERS = ["squared", "l21", "l2r", "huber", "poisson"]

every_loss = pytest.mark.parametrize("name", names())
both_ridges = pytest.mark.parametrize("ridge", [0.0, 0.1])
# A power of one half is not convex: its minima are not the same after another rounding.
OPTIONS: dict[str, dict[str, Any]] = {"l2r": {"r": 1.5}}


def data(name: str, n: int = 50, seed: int = 0) -> tuple[Array, Array]:
    """A table and a target that a loss is made for."""
    if name in ("logistic", "optimal_scoring"):
        return make_classes(n=n, d=6, seed=seed)
    X, y = make_numbers(n=n, d=6, seed=seed)
    if name == "poisson":
        y = np.random.default_rng(seed).poisson(np.exp(0.5 + 0.5 * y / y.std())).astype(float)
    return X, y


def make(name: str, X: Any, y: Any, ridge: float = 0.0, **named: Any) -> Problem:
    task = "classification" if np.asarray(y).dtype.kind != "f" else "regression"
    problem = Problem.from_arrays(X, y, ridge=ridge, task=task, **named)
    return problem.with_loss(name, **OPTIONS.get(name, {}))


def assert_same(found: Problem, wanted: Problem, rel: float = 1e-8) -> None:
    """The same penalty, and the same fits."""
    assert found.penalty == pytest.approx(wanted.penalty, rel=1e-9, abs=1e-300)
    for S in ([0, 1, 2, 3, 4, 5], [4, 1]):
        one, other = found.refit(S), wanted.refit(S)
        assert one.objective == pytest.approx(other.objective, rel=rel)
        assert one.residual == pytest.approx(other.residual, rel=1e-5)
        size = np.abs(other.coef).max()
        np.testing.assert_allclose(one.coef, other.coef, rtol=0, atol=1e-3 * size)
        np.testing.assert_allclose(one.intercept, other.intercept, rtol=1e-3, atol=1e-3)


def test_a_count_below_zero_names_its_row_and_another_loss_for_any_reader() -> None:
    X, y = data("poisson")
    y[7] = -1.5
    with says("row 7", "loss='squared'") as error:
        solve(make("poisson", X, y), 2)
    assert error.value.parameter == "y"
    assert Row(7) in error.value.message
    assert Setting("loss", "squared") in error.value.hint


@every_loss
@both_ridges
def test_weight_zero_is_no_row(name: str, ridge: float) -> None:
    X, y = data(name)
    w = np.random.default_rng(1).uniform(0.5, 2.0, len(y))
    w[[0, 1, 2, 9, 49]] = 0.0
    # What such a row holds is of no interest, be it no count or a class of its own.
    y[9] = 77 if name in OF_CLASSES and y.dtype.kind == "i" else -3.0
    X[1] = 1e8
    wanted = make(name, X[w > 0], y[w > 0], ridge, sample_weight=w[w > 0])
    assert_same(make(name, X, y, ridge, sample_weight=w), wanted)


@every_loss
@both_ridges
def test_whole_weight_is_the_row_that_many_times(name: str, ridge: float) -> None:
    X, y = data(name)
    # Uneven enough to move the median of y.
    w = np.random.default_rng(2).integers(0, 3, len(y)) + 4 * (y > np.quantile(y, 0.6))
    wanted = make(name, np.repeat(X, w, axis=0), np.repeat(y, w), ridge)
    assert_same(make(name, X, y, ridge, sample_weight=w), wanted)


@every_loss
def test_all_weights_times_one_number(name: str) -> None:
    X, y = data(name)
    w = np.random.default_rng(2).uniform(0.5, 2.0, len(y))
    once = make(name, X, y, sample_weight=w).refit([0, 1, 5])
    often = make(name, X, y, sample_weight=30.0 * w).refit([0, 1, 5])
    # Scored classes weigh 1 in all, whatever their rows do.
    share = 1.0 if name == "optimal_scoring" else 30.0
    assert often.objective == pytest.approx(share * once.objective, rel=1e-7)
    if share > 1:
        np.testing.assert_allclose(often.coef, once.coef, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", OF_CLASSES)
@both_ridges
def test_weights_of_classes_are_those_of_their_rows(name: str, ridge: float) -> None:
    X, codes = make_classes(n=70, d=6, seed=4)
    y = np.array(["b", "c", "a"])[codes]
    rows = np.random.default_rng(1).uniform(0.5, 2.0, 70)
    each = {"a": 3.0, "b": 0.25}
    wanted = make(name, X, y, ridge, sample_weight=rows * [each.get(label, 1.0) for label in y])
    assert_same(make(name, X, y, ridge, sample_weight=rows, class_weight=each), wanted)
    share = {label: rows.sum() / (3 * rows[y == label].sum()) for label in "abc"}
    wanted = make(name, X, y, ridge, sample_weight=rows * [share[label] for label in y])
    assert_same(make(name, X, y, ridge, sample_weight=rows, class_weight="balanced"), wanted)


@pytest.mark.parametrize("name", OF_CLASSES)
@both_ridges
def test_a_class_without_rows(name: str, ridge: float) -> None:
    X, y = make_classes(n=80, d=6, seed=5)
    y[0] = 3
    problem = make(name, X, y, ridge)
    kept = np.random.default_rng(0).permutation(80) < 40
    kept[0] = False
    half = Problem.from_rows(
        problem.rows, problem.target, kept * 1.0, ridge=ridge
    ).with_settings_of(problem)
    wanted = make(name, X[kept], y[kept], ridge)
    assert half.n_outputs == 4
    S = [0, 2, 3]
    fit, other = half.refit(S), wanted.refit(S)
    assert np.isfinite(fit.intercept).all()
    assert fit.objective == pytest.approx(other.objective, rel=1e-8)
    between = [coef[:3] - coef[:3].mean(axis=0) for coef in (fit.coef, other.coef)]
    np.testing.assert_allclose(*between, rtol=0, atol=1e-3 * np.abs(other.coef).max())
    assert fit.note == other.note
    if name == "logistic":
        logits = X[:, S] @ fit.coef.T + fit.intercept
        assert (np.exp(logits[:, 3] - logits[:, :3].max(axis=1)) < 1e-12).all()
    result = solve(half, 2)
    assert len(result.support) == 2
    assert np.isfinite(result.objective)


def separated(seed: int) -> tuple[Array, Array]:
    """Five columns of noise, and at place 2 one that tells the classes apart."""
    rng = np.random.default_rng(seed)
    y = np.arange(40) % 2
    X = rng.standard_normal((40, 6))
    X[:, 2] = rng.uniform(0.02, 3.0, 40) * np.where(y, 1, -1)
    return X, y


@pytest.mark.parametrize("method", ["exchange", "greedy", "exhaustive"])
@pytest.mark.parametrize("seed", range(8))
def test_separated_classes(method: str, seed: int) -> None:
    X, y = separated(seed)
    problem = Problem.from_arrays(X, y, loss="logistic")
    for k in (1, 2, 4, 6):
        result = solve(problem, k, method)
        assert k > 2 or 2 in result.support
        # The limit is 0, without columns it is 2·40·log 2.
        assert 0 <= result.objective < 1e-6
        assert result.total == pytest.approx(80 * np.log(2), rel=1e-9)
        for words in ("separated", "grow without end", "give a ridge"):
            assert words in result.message
        scores = X[:, result.support] @ result.coef.T + result.intercept
        assert (np.argmax(scores, axis=1) == y).all()


@pytest.mark.parametrize("seed", range(8))
def test_separated_classes_with_a_ridge_have_an_end(seed: int) -> None:
    X, y = separated(seed)
    problem = Problem.from_arrays(X, y, loss="logistic", ridge=0.01)
    for result in solve_path(problem, 4):
        assert result.message == ""
        assert 2 in result.support
        assert result.objective > 1.0
        assert np.abs(result.coef).max() < 20.0
    with_no_end = solve_path(problem.with_ridge(0.0), 4)
    assert max(result.objective for result in with_no_end) < 1e-6


def test_counts_of_zero_that_a_column_predicts() -> None:
    X, y = data("poisson", n=60, seed=1)
    X[:, 3] = np.arange(60) % 3 == 0
    y[X[:, 3] > 0] = 0.0
    problem = make("poisson", X, y)
    fit = problem.refit([3])
    # In the limit the others have their own mean, and these cost nothing.
    rest = y[X[:, 3] == 0]
    positive = rest[rest > 0]
    limit = 2.0 * (positive * np.log(positive / rest.mean())).sum()
    assert fit.objective == pytest.approx(limit, rel=1e-6)
    assert "grow without end" in fit.note
    assert fit.coef[0, 0] < -10
    calm = make("poisson", X, y, 0.01).refit([3])
    assert calm.note == ""
    assert calm.objective > limit
    assert -10 < calm.coef[0, 0] < 0


@pytest.mark.parametrize("name", ["squared", "l21", "l2r", "huber"])
@pytest.mark.parametrize("outputs", [1, 2])
@both_ridges
def test_units_of_the_target(name: str, outputs: int, ridge: float) -> None:
    X, Y = make_numbers(n=50, d=7, c=outputs, seed=outputs)
    wanted = solve(make(name, X, Y, ridge), 3)
    for factor, shift in ((1000.0, 0.0), (1e-3, 0.0), (-1.0, 0.0), (1.0, 1e4)):
        found = solve(make(name, X, factor * Y + shift, ridge), 3)
        assert found.support.tolist() == wanted.support.tolist()
        power = {"squared": 2.0, "l2r": 1.5}.get(name, 1.0)
        assert found.objective == pytest.approx(abs(factor) ** power * wanted.objective, rel=1e-6)
        size = np.abs(wanted.coef).max()
        np.testing.assert_allclose(found.coef / factor, wanted.coef, rtol=0, atol=1e-4 * size)
        moved = (found.intercept - shift) / factor
        np.testing.assert_allclose(moved, wanted.intercept, rtol=0, atol=1e-4 * np.abs(Y).max())


@pytest.mark.parametrize("c", [2, 4])
def test_the_ridge_goes_with_the_curvature_of_a_loss(c: int) -> None:
    X, _ = make_numbers(n=60, d=6)
    # Half the Hessian without columns: 1/c for classes of one size, the mean for counts.
    classes = make("logistic", X, np.arange(60) % c, 0.3)
    assert classes.penalty == pytest.approx(0.3 * 59 / c, rel=1e-9)
    counts = np.arange(60.0) % c
    assert make("poisson", X, counts, 0.3).penalty == pytest.approx(0.3 * 59 * counts.mean())
    assert make("squared", X, counts, 0.3).penalty == pytest.approx(0.3 * 59, rel=1e-9)


def test_weights_that_cannot_be() -> None:
    X, y = make_classes(n=40, d=4)
    for name in OF_CLASSES:
        with says("sample_weight is zero for every row"):
            Problem.from_arrays(X, y, loss=name, sample_weight=np.zeros(40))
    for tiny in (np.full(40, 1e-310), np.r_[1.0, np.full(39, 1e-310)]):
        for target in (y, X[:, 0]):
            with pytest.raises(InputError) as error:
                Problem.from_arrays(X, target, sample_weight=tiny)
            assert error.value.parameter == "sample_weight"
    with says("class_weight must be None, 'balanced' or a dict", "'even'"):
        Problem.from_arrays(X, y, class_weight="even")
    with says("class_weight must be None, 'balanced' or a dict", "[1, 2, 3]"):
        Problem.from_arrays(X, y, class_weight=[1, 2, 3])
    with says("class_weight names 9", "no class of y"):
        Problem.from_arrays(X, y, class_weight={0: 1.0, 9: 2.0})
    for bad in (0, -1.0, np.inf, np.nan, "2", None, True):
        with says("class_weight must be numbers above 0", f"{bad!r} for 1"):
            Problem.from_arrays(X, y, class_weight={1: bad})
    with says("class_weight is for classes", "task='classification'"):
        Problem.from_arrays(X, X[:, 0] + 0.5, class_weight="balanced")


def test_a_target_that_is_constant_where_it_counts() -> None:
    X, _ = make_classes(n=40, d=4)
    y = np.where(np.arange(40) < 20, 3.0, X[:, 0])
    for name in OF_NUMBERS:
        with says("y is the same in every row of weight above 0"):
            Problem.from_arrays(
                X, y, loss=name, task="regression", sample_weight=(np.arange(40) < 20) * 1.0
            )


def test_targets_that_a_loss_is_not_for() -> None:
    X, y = data("poisson")
    problem = Problem.from_arrays(X, y, task="regression")
    y[7] = -2.0
    with says("'poisson' is for counts", "-2 in row 7", "loss='squared' or 'huber'"):
        solve(Problem.from_arrays(X, y, loss="poisson", task="regression"), 2)
    with says("output 1 of y is zero in every row"):
        both = np.column_stack([np.abs(y), np.zeros(len(y))])
        solve(Problem.from_arrays(X, both, loss="poisson", task="regression"), 2)
    with says("y is the same in every row"):
        Problem.from_arrays(X, np.zeros(len(y)), loss="poisson", task="regression")
    for name in ("logistic", "optimal_scoring"):
        with says(repr(name), "is for classes", "numbers", "task='classification'"):
            problem.with_loss(name)
    X, y = make_classes()
    with says("'poisson' is for counts", "task='regression'"):
        Problem.from_arrays(X, y, loss="poisson", task="classification")
    # What a loss is made for says what whole numbers are, where nothing else does.
    assert Problem.from_arrays(X, y, loss="poisson").task == "regression"
    assert Problem.from_arrays(X, y.astype(float), loss="logistic").task == "classification"
    labels = np.column_stack([y == 0, y > 0]).astype(int)
    with says("'logistic' is for classes", "several labels a row", "one column of y"):
        Problem.from_arrays(X, labels, loss="logistic")


def test_losses_that_there_are_not() -> None:
    X, y = make_classes()
    for name, hint in (("logistik", "did you mean 'logistic'"), ("linear", "logistic")):
        with says("loss must be one of", repr(name), hint) as error:
            Problem.from_arrays(X, y, loss=name)
        assert error.value.parameter == "loss"
    problem = Problem.from_arrays(X, y)
    with pytest.raises(TypeError, match=r"loss 'l2r' has no option 'power'; it has: r"):
        problem.with_loss("l2r", power=1.0)
    for bad in (0.0, 2.1, np.nan, "1"):
        with says("r must be a number in (0, 2]", repr(bad)):
            problem.with_loss("l2r", r=bad)
    with says("epsilon must be a number in [1, 1e6]", "0.9"):
        problem.with_loss("huber", epsilon=0.9)
    with pytest.raises(InputError, match=r"support|column"):
        problem.with_loss("l21").objective([99])
