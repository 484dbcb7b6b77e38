"""What the papers' methods share: robust centres, common units, starts in turn, ends of paths."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from exactk import InputError, Problem, Status, solve
from exactk.methods import registry
from exactk.papers.methods.standard_table import standard_table
from tests.oracles.brute import make_classes, make_numbers

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def with_wrong_rows(shift: float, seed: int) -> tuple[Any, Any]:
    """Two columns make y; one row in twenty is off by `shift`, always to the same side."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((300, 10))
    y = X[:, 3] + 0.5 * X[:, 8] + 0.3 * rng.standard_normal(300)
    y[rng.choice(300, 15, replace=False)] += shift
    return X, y


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("rpfs", {}),
        ("nmapg", {}),
        ("rfs", {}),
        ("erfs", {}),
        ("gsrfs", {"r": 0.5, "p": 1.0}),
        ("crfs", {}),
        ("sfs", {"loss": "l2,1"}),
    ],
)
@pytest.mark.parametrize("shift", [50.0, 1e3])
def test_robust_losses_find_the_columns_in_spite_of_wrong_rows(
    name: str, options: dict[str, Any], shift: float
) -> None:
    for seed in range(4):
        problem = Problem.from_arrays(*with_wrong_rows(shift, seed))
        assert solve(problem, 2, name, **options).support.tolist() == [3, 8]


def test_squared_loss_does_not() -> None:
    found = [
        solve(Problem.from_arrays(*with_wrong_rows(1e4, seed)), 2).support.tolist()
        for seed in range(4)
    ]
    assert [3, 8] not in found


@pytest.mark.parametrize("repeats", [[1, 1, 1, 1], [2, 0, 3, 1], [1, 1, 0, 0], [4, 4, 4, 4]])
def test_the_robust_centre_is_the_median_of_the_repeated_rows(repeats: list[int]) -> None:
    w = np.tile(repeats, 6)
    X, Y = make_numbers(24, 5, 2, seed=1)
    table = standard_table(Problem.from_arrays(X, Y, sample_weight=w), robust=True)
    often = np.repeat(Y, w, axis=0)
    centred = often - np.median(often, axis=0)
    size = np.median(np.linalg.norm(centred, axis=1)) / np.sqrt(2)
    found = np.repeat(table.Y / table.root[:, None], w[w > 0], axis=0)
    np.testing.assert_allclose(found, centred / size, atol=1e-12)


def test_numbers_that_are_mostly_equal_still_have_a_size() -> None:
    X = np.random.default_rng(0).standard_normal((40, 3))
    y = np.where(np.arange(40) < 10, X[:, 1], 0.0)
    table = standard_table(Problem.from_arrays(X, y, task="regression"), robust=True)
    assert np.isfinite(table.Y).all()
    assert np.abs(table.Y).max() > 1


@pytest.mark.parametrize("name", ["gsrfs", "mtfs", "rfs", "rk1u", "erfs", "crfs"])
def test_a_huge_penalty_ranks_by_size_and_not_by_position(name: str) -> None:
    rng = np.random.default_rng(2)
    X = rng.standard_normal((60, 10))
    y = X[:, 7] + X[:, 4] + 0.1 * rng.standard_normal(60)
    assert solve(Problem.from_arrays(X, y), 2, name, lam=1e6).support.tolist() == [4, 7]


def test_outliers_do_not_make_ordinary_rows_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    import exactk.papers.methods.irls as irls

    X, y = make_numbers(4000, 6, 1, seed=0)
    y = y.ravel().copy()
    y[:5] += 1e7
    seen: list[int] = []
    plain = irls._exact_rows
    monkeypatch.setattr(
        irls, "_exact_rows", lambda s, m: seen.append(len(plain(s, m))) or plain(s, m)
    )
    solve(Problem.from_arrays(X, y), 2, "erfs", max_iter=20, tol=0.0)
    assert len(seen) == 20
    assert max(seen) <= 200


@pytest.mark.parametrize("name", ["cdlsr", "rpfs", "pgd"])
def test_starts_are_made_when_their_turn_comes(name: str) -> None:
    X, y = make_classes(60, 14, 3, seed=1)
    begin = time.perf_counter()
    result = solve(Problem.from_arrays(X, y), 4, name, n_starts=10**9, time_limit=0.05)
    assert result.status == Status.TIME_LIMIT
    # To make all of them would take hours and fill any memory.
    assert time.perf_counter() - begin < 60


def test_a_path_goes_on_from_zero_after_a_size_that_diverged() -> None:
    X, y = make_classes(40, 8, 3, seed=2)
    problem = Problem.from_arrays(X, y)
    method = registry.create("nmapg")
    prepared = method.prepare(problem)
    prepared.last = np.full_like(prepared.last, np.nan)
    [start] = method.starts(problem, 3, prepared)
    assert next(start.steps).value == pytest.approx(solve(problem, 3, "nmapg").trace[0])


@pytest.mark.parametrize("solver", ["direct", "woodbury", "cg", "auto"])
def test_ipfs_reports_what_does_not_fit_in_memory(solver: str) -> None:
    X, y = make_classes(60, 40, 3, seed=0)
    problem = Problem.from_arrays(X, y, gram="columns", memory_limit=8 * 1000)
    with pytest.raises(InputError, match=rf"solver='{solver}'.*60 rows and 40 columns.*memory"):
        solve(problem, 3, "ipfs", solver=solver)


def test_nmapg_without_rho_refuses_a_gamma_that_leaves_none() -> None:
    X, y = make_classes(40, 8, 3, seed=2)
    with pytest.raises(InputError, match=r"gamma=1e\+06 .*give rho"):
        solve(Problem.from_arrays(X, y), 2, "nmapg", gamma=1e6)


@pytest.mark.parametrize("name", ["rfs", "erfs"])
@pytest.mark.parametrize(("n", "d"), [(30, 28), (60, 20), (60, 200)])
def test_rows_drawn_with_replacement_are_rows_with_weights(name: str, n: int, d: int) -> None:
    X, y = make_classes(n, d, 3, seed=3)
    drawn = np.random.default_rng(3).integers(0, n, n)
    counts = np.bincount(drawn, minlength=n)
    options = {"labels": "centred", "lam": 0.1}
    repeated = solve(Problem.from_arrays(X[drawn], y[drawn]), 5, name, **options)
    weighted = solve(Problem.from_arrays(X, y, sample_weight=counts), 5, name, **options)
    assert repeated.status == weighted.status == Status.CONVERGED
    assert repeated.support.tolist() == weighted.support.tolist()
    np.testing.assert_allclose(repeated.trace, weighted.trace, rtol=1e-6)


def test_a_step_length_is_found_where_the_columns_add_up_to_a_constant() -> None:
    counts = np.random.default_rng(0).multinomial(64, np.ones(120) / 120, size=256).astype(float)
    problem = Problem.from_arrays(counts, np.tile([0, 1], 128), scale=False)
    result = solve(problem, 3, "pgd")
    assert (np.diff(result.trace) <= 1e-9 * problem.total).all()


@pytest.mark.parametrize("name", ["rfs", "erfs", "gsrfs"])
def test_a_row_that_is_zero_throughout_does_not_break_it(name: str) -> None:
    corners = np.stack(np.meshgrid(*[[-1.0, 1.0]] * 3), axis=-1).reshape(-1, 3)
    X = np.vstack([corners, np.zeros(3)])
    y = X @ [3.0, 2, 1] + np.array([1.0, -1, 0, 0, 0, 0, 1, -1, 0])
    result = solve(Problem.from_arrays(X, y, task="regression"), 2, name)
    assert result.status == Status.CONVERGED
    assert result.support.tolist() == [0, 1]


def test_starts_of_rpfs_are_compared_where_one_fits_exactly() -> None:
    X = np.array([[1.0, 1, 1], [-1, 1, -1], [1, -1, -1], [-1, -1, 1]])
    problem = Problem.from_arrays(X, X[:, 0], scale=False, task="regression")
    assert solve(problem, 1, "rpfs", n_starts=3).support.tolist() == [0]


@pytest.mark.parametrize("solver", ["direct", "woodbury", "cg"])
def test_ipfs_diverges_alike_in_all_its_forms(solver: str) -> None:
    X, y = make_classes(40, 8, 3, seed=1)
    with pytest.warns(UserWarning, match="the iterates diverged"):
        result = solve(Problem.from_arrays(X, y), 2, "ipfs", solver=solver, mu=1e200)
    assert result.status == Status.FAILED
