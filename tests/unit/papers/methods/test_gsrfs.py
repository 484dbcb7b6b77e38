"""GSR-FS: its orders, its labels, its ranking of all columns, and its options."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from exactk import Problem, Result, Status, TopKSelector, solve, solve_path
from exactk.papers.methods.gsrfs import GSRFS
from tests.oracles.brute import Reference, make_classes, make_numbers, one_hot
from tests.support import says


@pytest.fixture(scope="module")
def data() -> tuple[Any, Any]:
    return make_classes(50, 12, 3, seed=6)


@pytest.fixture(scope="module")
def problem(data: tuple[Any, Any]) -> Problem:
    return Problem.from_arrays(*data)


def run(problem: Problem, k: int = 4, **options: Any) -> Result:
    return solve(problem, k, "gsrfs", **options)


def test_the_defaults_are_those_of_the_paper() -> None:
    # Section 5.3: r = 2, λ = 1, and a change of the objective below 1e-4 ends it. Section 2: the
    # label of a row is 1 in its class and −1 in the others.
    defaults = GSRFS().get_params()
    assert {name: defaults[name] for name in ("r", "lam", "tol", "labels")} == {
        "r": 2.0, "lam": 1.0, "tol": 1e-4, "labels": "plus-minus",
    }  # fmt: skip


@pytest.mark.parametrize("value", [2, 2.0, np.float32(2), np.int64(2)])
def test_the_ends_of_the_ranges_are_allowed(problem: Problem, value: Any) -> None:
    assert run(problem, r=value, p=type(value)(1)).trace == run(problem, r=2.0, p=1.0).trace


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("labels", "coded"),
    [
        ("centred", lambda Y: Y - Y.mean(axis=0)),
        ("one-hot", lambda Y: Y),
        ("plus-minus", lambda Y: 2.0 * Y - 1.0),
    ],
)
def test_labels_are_coded_as_requested(
    data: Any, problem: Problem, labels: str, coded: Any
) -> None:
    X, Y = Reference(*data).X, coded(one_hot(data[1]))
    W = np.linalg.solve(X.T @ X + 3.0 * np.eye(12), X.T @ Y)
    norms = np.linalg.norm(W, axis=1)
    for r, p in ((2.0, 0.5), (1.0, 1.0)):
        value = (np.linalg.norm(X @ W - Y, axis=1) ** r).sum() + 3.0 * (norms**p).sum()
        result = run(problem, r=r, p=p, lam=3.0, labels=labels, max_iter=1)
        assert result.trace[0] == pytest.approx(value, rel=1e-9)
        assert result.support.tolist() == sorted(np.argsort(-norms)[:4].tolist())


def test_numbers_have_no_labels() -> None:
    problem = Problem.from_arrays(*make_numbers(40, 8, 2, seed=1))
    traces = {run(problem, labels=name).trace for name in ("centred", "one-hot", "plus-minus")}
    assert len(traces) == 1


def test_a_smaller_tol_goes_on_from_where_a_larger_one_ends(problem: Problem) -> None:
    short, long = (run(problem, tol=tol) for tol in (1e-2, 1e-6))
    assert short.n_iter < long.n_iter
    assert long.trace[: short.n_iter] == short.trace
    for result, tol in ((short, 1e-2), (long, 1e-6)):
        changes = np.abs(np.diff(result.trace))
        assert changes[-1] <= tol < changes[:-1].min()


def test_a_smaller_r_is_not_misled_by_wild_rows() -> None:
    rng = np.random.default_rng(7)
    X = rng.standard_normal((80, 10))
    y = 3.0 * X[:, 2] - 2.0 * X[:, 6] + 0.1 * rng.standard_normal(80)
    # Six rows with a target that follows another column, a hundred times as strongly.
    y[:6] = 300.0 * X[:6, 0]
    problem = Problem.from_arrays(X, y)
    assert 0 in run(problem, 2, r=2).support
    for r in (1.0, 0.5):
        assert run(problem, 2, r=r).support.tolist() == [2, 6]


@pytest.mark.parametrize("lam", [10.0, 1e20])
@pytest.mark.parametrize(("r", "p"), [(2.0, 0.5), (2.0, 1.0), (1.0, 1.0), (0.5, 0.5)])
def test_a_large_penalty_still_ranks_the_columns(lam: float, r: float, p: float) -> None:
    X, y = make_classes(50, 12, 3, seed=6)
    moved = np.arange(12)[::-1]
    plain = run(Problem.from_arrays(X, y), lam=lam, r=r, p=p)
    other = run(Problem.from_arrays(X[:, moved], y), lam=lam, r=r, p=p)
    assert sorted(moved[other.support].tolist()) == plain.support.tolist()
    assert plain.k == 4


def test_a_penalty_beyond_all_reason_ranks_the_columns_one_by_one(data: Any) -> None:
    # W is XᵀY/λ, to all digits: the first iteration decides who dies last.
    reference = Reference(*data)
    B = reference.X.T @ (2.0 * one_hot(data[1]) - 1.0)
    expected = sorted(np.argsort(-np.linalg.norm(B, axis=1))[:4].tolist())
    result = run(Problem.from_arrays(*data), lam=1e20, p=1.0)
    assert result.support.tolist() == expected


@pytest.mark.parametrize(("lam", "r"), [(1e200, 2.0), (1e300, 1.0), (1e308, 0.5)])
def test_a_penalty_that_underflows_ends_with_k_columns(
    problem: Problem, lam: float, r: float
) -> None:
    result = run(problem, lam=lam, r=r)
    assert result.status == Status.CONVERGED
    assert len(set(result.support.tolist())) == 4
    assert np.isfinite(result.coef).all()
    assert result.trace[-1] == pytest.approx(50 * 3 ** (r / 2), rel=1e-9)


def test_a_path_of_one_and_one_candidate() -> None:
    X, y = make_classes(50, 3, 3, seed=6)
    (only,) = solve_path(Problem.from_arrays(X, y), 1, "gsrfs")
    assert only.support.tolist() == run(Problem.from_arrays(X, y), 1).support.tolist()
    lone = Problem.from_arrays(X[:, [0, 0]], y)
    with pytest.warns(UserWarning, match="only 1 of the 2 columns"):
        path = solve_path(lone, 2, "gsrfs")
    assert [r.support.tolist() for r in path] == [[0], [0, 1]]
    assert [r.status for r in path] == [Status.OPTIMAL, Status.RANK_DEFICIENT]


def test_a_configured_method_in_the_selector(data: Any, problem: Problem) -> None:
    method = GSRFS(r=1.0, p=0.25, lam=5.0, labels="centred")
    selector = TopKSelector(k=4, method=method, ridge=0).fit(*data)
    expected = run(problem, r=1.0, p=0.25, lam=5.0, labels="centred")
    assert np.flatnonzero(selector.support_).tolist() == expected.support.tolist()
    assert selector.result_.trace == expected.trace
    assert selector.result_.method == "gsrfs"
    assert selector.get_params()["method__lam"] == 5.0
    selector.set_params(method__lam=0.5)
    assert method.lam == 0.5
    with says("lam must be a number in (0, inf), not -1"):
        TopKSelector(k=4, method=GSRFS(lam=-1)).fit(*data)


def test_a_grid_search_reaches_its_parameters(data: Any) -> None:
    X, y = data
    # Against noise that only a small k and the right columns leave out.
    X = np.column_stack([X, 5.0 * np.random.default_rng(0).standard_normal((50, 30))])
    pipeline = make_pipeline(TopKSelector(k=4, method=GSRFS()), KNeighborsClassifier())
    grid = {
        "topkselector__method__lam": [0.1, 10.0, 1e3],
        "topkselector__method__p": np.array([0.5, 1.0]),
        "topkselector__method__labels": np.array(["centred", "plus-minus"]),
    }
    search = GridSearchCV(pipeline, grid, cv=3, error_score="raise").fit(X, y)
    assert len(search.cv_results_["params"]) == 12
    best = search.best_params_
    fitted = search.best_estimator_[0]
    assert fitted.method.lam == best["topkselector__method__lam"]
    options = {name.rpartition("__")[2]: value for name, value in best.items()}
    expected = solve(Problem.from_arrays(X, y, ridge=fitted.ridge_), 4, "gsrfs", **options)
    assert np.flatnonzero(fitted.support_).tolist() == expected.support.tolist()
    assert len(set(search.cv_results_["mean_test_score"])) > 1


def test_rows_that_die_where_the_floor_underflows() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 10)), rng.integers(3, size=60)
    result = solve(Problem.from_arrays(X, y), 3, "gsrfs", p=0.02, r=1.0, lam=5.0)
    assert result.support.tolist() == [1, 2, 4]
