"""The ridge by rule and by cross-validation, against the formula and the errors of folds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from exactk import (
    AutoK,
    Moments,
    Problem,
    Status,
    TopKSelector,
    choose_k,
    evaluate,
    investigate,
    solve,
    stability,
)
from exactk.errors import InputError
from exactk.evaluation.fold_methods import FoldMethod
from exactk.methods.exchange import Exchange
from exactk.model_selection import ridge as ridge_module
from exactk.model_selection.cross_validation import training_problem
from exactk.model_selection.ridge import GRID, auto_ridge, cv_ridge, find_ridge
from exactk.question import read_question
from tests.support import every_pair

Array = np.ndarray[Any, Any]
TINY = 1


def data(n: int = 60, d: int = 5, seed: int = 0, noise: float = 1.0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) @ (np.eye(d) + 0.4 * rng.normal(size=(d, d))) + 2
    return X, X[:, 0] - X[:, 3] + noise * rng.normal(size=n)


@pytest.mark.parametrize(
    ("n", "d", "expected"),
    [(100, 3, 0.1), (20, 20, 0.1), (10, 90, 0.3), (4, 100, 0.5), (2, 3000, 3.0), (3, 300, 1.0)],
)
def test_auto_is_a_tenth_of_the_root_of_the_shape(n: int, d: int, expected: float) -> None:
    X = np.random.default_rng(0).normal(size=(n, d))
    assert auto_ridge(Problem.from_arrays(X, np.arange(n) / 3)) == pytest.approx(expected)


def test_auto_counts_usable_columns_weights_and_likelihoods() -> None:
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(10, 400)), rng.normal(size=10)
    X[:, 40:] = 1.0
    assert auto_ridge(Problem.from_arrays(X, y)) == pytest.approx(0.2)
    w = np.array([0, 0, 0, 0, 0, 0, 2, 2, 3, 3])
    X = rng.normal(size=(10, 360))
    assert auto_ridge(Problem.from_arrays(X, y, sample_weight=w)) == pytest.approx(0.6)
    likelihood = Problem.from_arrays(X, y > 0, loss="logistic")
    assert auto_ridge(likelihood) == pytest.approx(0.1 * auto_ridge(Problem.from_arrays(X, y > 0)))


@every_pair(
    seed=[0, 1, 2], weighted=[False, True], limit=[TINY, 2**30], k=[1, 5], classes=[False, True]
)
def test_cv_picks_the_ridge_with_the_least_error(
    weighted: bool, limit: int, k: int, seed: int, classes: bool
) -> None:
    # One column and all of them: sizes at which any search finds the best.
    X, y = data(n=24, seed=seed, noise=6.0)
    labels = np.digitize(y, np.quantile(y, [0.3, 0.7]))
    w = np.random.default_rng(seed).integers(0, 3, len(X)).astype(float) if weighted else None
    problem = Problem.from_arrays(X, labels if classes else y, sample_weight=w, memory_limit=limit)
    errors = []
    for ridge in GRID:
        choice = choose_k(problem, k_max=k, cv=5, ridge=ridge, random_state=seed)
        errors.append(choice.table["mean"][-1])
    assert cv_ridge(problem, k, random_state=seed) == GRID[int(np.argmin(errors))]


def test_noise_needs_more_ridge_than_signal() -> None:
    X, clean = data(n=40, noise=0.01)
    assert cv_ridge(Problem.from_arrays(X, clean), 2) == min(GRID)
    noise = np.random.default_rng(5).normal(size=40)
    assert cv_ridge(Problem.from_arrays(X, noise), 3) == max(GRID)


def test_groups_stay_together_wherever_the_ridge_is_found() -> None:
    rng = np.random.default_rng(0)
    base, noise = rng.normal(size=(30, 12)), 3.0 * rng.normal(size=30)
    groups = np.repeat(np.arange(30), 8)
    X = base[groups] + 0.01 * rng.normal(size=(240, 12))
    y = X[:, 0] + noise[groups] + 0.01 * rng.normal(size=240)
    problem = Problem.from_arrays(X, y)
    expected = cv_ridge(problem, 6, groups=groups)
    assert expected > 10 * cv_ridge(problem, 6)
    by_hand = [
        choose_k(problem, k_max=6, groups=groups, ridge=ridge).table["mean"][-1] for ridge in GRID
    ]
    assert expected == GRID[int(np.argmin(by_hand))]
    options: dict[str, Any] = {"ridge": "cv", "groups": groups, "effort": 0}
    by_bic = AutoK(k_max=6, criterion="bic")
    few = {"n_permutations": 0, "n_subsamples": 0, "certify": 0, "compare_with": ()}
    found = {
        "with_ridge": problem.with_ridge("cv", 6, groups=groups).ridge,
        "choose_k": choose_k(X, y, k_max=6, **options).ridge,
        "bic": choose_k(X, y, k_max=6, criterion="bic", **options).ridge,
        "evaluate": evaluate(X, y, k=6, **options).ridge,
        "evaluate, auto": evaluate(X, y, k=by_bic, cv=2, **options).ridge,
        "evaluate, given": evaluate(X, y, features=range(6), **options).ridge,
        "stability": stability(X, y, k=6, n_subsamples=2, **options).result.ridge,
        "investigate": investigate(X, y, k=6, **options, **few).result.ridge,
        "investigate, auto": investigate(X, y, k=by_bic, **options, **few).result.ridge,
        "selector": TopKSelector(6, ridge="cv").fit(X, y, groups=groups).ridge_,
        "selector, auto": TopKSelector(by_bic, ridge="cv").fit(X, y, groups=groups).ridge_,
        "read_question": read_question(X, y, k=6, ridge="cv", groups=groups).problem.ridge,
    }
    assert found == dict.fromkeys(found, expected)
    rows = np.flatnonzero(groups < 20)
    part = training_problem(problem, rows)
    method = FoldMethod(problem, Exchange(), ridge="cv", groups=groups)
    assert method.select(rows, 6).ridge == cv_ridge(part, 6, groups=groups[rows])


def test_the_seed_and_few_rows() -> None:
    problem = Problem.from_arrays(*data(noise=3.0))
    assert cv_ridge(problem, 2, random_state=3) == cv_ridge(problem, 2, random_state=3)
    assert cv_ridge(Problem.from_arrays(*data(n=4)), 1) in GRID


def test_all_that_has_a_ridge_finds_the_same() -> None:
    X, y = data(noise=3.0)
    problem = Problem.from_arrays(X, y)
    found = {"auto": auto_ridge(problem), "cv": cv_ridge(problem, 2), 0.25: 0.25, 0: 0.0}
    for ridge, expected in found.items():
        assert find_ridge(ridge, problem, 2) == problem.with_ridge(ridge, 2).ridge == expected
        fitted = TopKSelector(k=2, ridge=ridge).fit(X, y)
        assert fitted.ridge_ == expected
        best = solve(problem.with_ridge(expected), 2)
        assert fitted.objective_ == pytest.approx(best.objective)
    assert problem.with_ridge(np.float32(0.5), 2).ridge == 0.5
    assert problem.ridge == 0.0


def test_sparse_tables_are_cross_validated_too() -> None:
    X, y = data(noise=3.0)
    expected = cv_ridge(Problem.from_arrays(X, y), 2)
    for limit in (TINY, 2**30):
        problem = Problem.from_arrays(sparse.csr_array(X), y, memory_limit=limit)
        assert cv_ridge(problem, 2) == expected


def test_ctrl_c_before_all_ridges_were_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    fits = []

    def interrupted(*args: Any, **options: Any) -> Any:
        fits.append(solve(*args, **options))
        status = Status.INTERRUPTED if len(fits) == 12 else Status.CONVERGED
        return replace(fits[-1], status=status)

    monkeypatch.setattr(ridge_module, "solve", interrupted)
    problem = Problem.from_arrays(*data())
    with pytest.raises(KeyboardInterrupt):
        choose_k(problem, ridge="cv")
    assert len(fits) == 12


@pytest.mark.parametrize("ridge", ["Auto", "none", -1, np.nan, True])
def test_what_is_no_ridge(ridge: Any) -> None:
    X, y = data()
    calls = (
        lambda: Problem.from_arrays(X, y).with_ridge(ridge, 2),
        lambda: TopKSelector(k=2, ridge=ridge).fit(X, y),
        lambda: choose_k(X, y, ridge=ridge),
    )
    for call in calls:
        with pytest.raises(InputError) as error:
            call()
        assert error.value.parameter == "ridge"


def test_cross_validation_that_is_impossible() -> None:
    X, y = data()
    problem = Problem.from_arrays(X, y)
    for wrong, k, parameter in (
        (problem, 9, "k"),
        (problem, None, "k"),
        (Problem.from_moments(Moments.from_arrays(X, y)), 2, "ridge"),
    ):
        with pytest.raises(InputError) as error:
            wrong.with_ridge("cv", k)
        assert error.value.parameter == parameter
