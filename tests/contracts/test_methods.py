"""What every registered method must keep, read from the registry: a new line here is tested."""

from __future__ import annotations

import json
import pickle
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from exactk import (
    InputError,
    Moments,
    Problem,
    Result,
    Status,
    TopKSelector,
    UnknownOptionError,
    solve,
    solve_path,
)
from exactk.methods import registry
from tests.oracles.brute import Reference, make_classes, make_numbers
from tests.support import over, refused

# An end at the iteration limit is an end that the contract allows; each method's own tests
# look at its status.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

every_method = pytest.mark.parametrize("name", over(registry.names()))
# Statuses that claim no more than what the contract checks.
ENDS = {Status.OPTIMAL, Status.CONVERGED, Status.MAX_ITER}


# Columns as a few levels have equal scores where there are seven rows, and ties go to the lowest
# index, whichever column stands there (see test_filters.py).
OF_LEVELS = {"infogain", "chi2", "mrmr", "cfs"}


def tables() -> dict[str, tuple[Any, Any]]:
    """Small tables without ties, one for each kind of target and shape."""
    return {
        "classes": make_classes(45, 8, 3, seed=0),
        "two classes": make_classes(40, 7, 2, seed=1),
        "one number": make_numbers(40, 8, 1, seed=2),
        "several numbers": make_numbers(40, 7, 3, seed=3),
        "fewer rows than columns": make_classes(7, 9, 2, seed=4),
    }


TABLES = tables()
every_table = pytest.mark.parametrize("table", list(TABLES))


@cache
def optimum_of(table: str, ridge: float, k: int) -> float:
    """The least objective of all sets of k columns: the same for every method."""
    return Reference(*TABLES[table], ridge=ridge).best(k)[1]


@every_method
@every_table
def test_exactly_k_and_never_below_the_optimum(name: str, table: str) -> None:
    X, y = TABLES[table]
    ridge = 0.2 if table in ("two classes", "one number") else 0.0
    problem, reference = Problem.from_arrays(X, y, ridge=ridge), Reference(X, y, ridge=ridge)
    if refused(name, problem):
        return
    for k in (1, 2, 5):
        result = solve(problem, k, name)
        assert result.k == k
        assert len(set(result.support.tolist())) == k
        assert (np.diff(result.support) > 0).all()
        assert sorted(result.order.tolist()) == result.support.tolist()
        assert result.coef.shape == (problem.n_outputs, k)
        assert result.status in ENDS
        optimum = optimum_of(table, ridge, k)
        slack = 1e-8 * reference.total
        assert result.objective >= optimum - slack
        assert result.objective == pytest.approx(reference.objective(result.support), abs=slack)
        if result.status == Status.OPTIMAL:
            assert result.objective == pytest.approx(optimum, abs=slack)


@every_method
@every_table
def test_permuted_columns_permute_the_answer(name: str, table: str) -> None:
    X, y = TABLES[table]
    shuffle = np.random.default_rng(0).permutation(X.shape[1])
    if refused(name, Problem.from_arrays(X, y)):
        return
    if table == "fewer rows than columns" and name in OF_LEVELS:
        return
    for k in (1, 3):
        plain = solve(Problem.from_arrays(X, y), k, name)
        moved = solve(Problem.from_arrays(X[:, shuffle], y), k, name)
        assert sorted(shuffle[moved.support].tolist()) == plain.support.tolist()
        assert shuffle[moved.order].tolist() == plain.order.tolist()
        assert moved.objective == pytest.approx(plain.objective, rel=1e-9)


@every_method
def test_the_same_seed_the_same_answer(name: str) -> None:
    X, y = make_classes(60, 14, 4, seed=8)
    problem = Problem.from_arrays(X, y)
    options = {"random_state": 5} if "random_state" in registry.create(name).get_params() else {}
    one, two = (solve(problem, 4, name, **options) for _ in range(2))
    assert one.support.tolist() == two.support.tolist()
    assert one.trace == two.trace
    np.testing.assert_array_equal(one.coef, two.coef)


@every_method
def test_inputs_are_left_untouched(name: str) -> None:
    X, y = (array.copy() for array in TABLES["classes"])
    weights = np.random.default_rng(2).uniform(0.5, 2, len(y))
    copies = [X.copy(), y.copy(), weights.copy()]
    for array in (X, y, weights):
        array.setflags(write=False)
    problem = Problem.from_arrays(X, y, sample_weight=weights, ridge=0.1)
    cross, diagonal = problem.cross.copy(), problem.diagonal.copy()
    first = problem.gram_rows([2])[0]
    method = registry.create(name)
    before = method.get_params()
    solve(problem, 3, method)
    solve_path(problem, 3, method)
    for array, copy in zip((X, y, weights), copies, strict=True):
        np.testing.assert_array_equal(array, copy)
    np.testing.assert_array_equal(problem.cross, cross)
    np.testing.assert_array_equal(problem.diagonal, diagonal)
    np.testing.assert_array_equal(problem.gram_rows([2])[0], first)
    assert method.get_params() == before
    assert set(vars(method)) == set(before), "a method keeps nothing but its parameters"


@every_method
def test_one_column_and_all_columns(name: str) -> None:
    X, y = TABLES["classes"]
    problem, reference = Problem.from_arrays(X, y), Reference(X, y)
    everything = solve(problem, 8, name)
    assert everything.support.tolist() == list(range(8))
    assert everything.objective == pytest.approx(reference.objective(range(8)), rel=1e-9)
    assert solve(problem, 1, name).k == 1
    lone = Problem.from_arrays(X[:, [3]], y)
    assert solve(lone, 1, name).support.tolist() == [0]


@every_method
def test_constant_columns_are_never_chosen(name: str) -> None:
    X, y = TABLES["classes"]
    X = np.column_stack([np.zeros(45), X[:, :4], np.full(45, 1e6)])
    problem = Problem.from_arrays(X, y)
    assert solve(problem, 4, name).support.tolist() == [1, 2, 3, 4]
    assert set(solve(problem, 2, name).support.tolist()) <= {1, 2, 3, 4}
    with pytest.raises(InputError, match=r"k=5.*4 usable"):
        solve(problem, 5, name)


@every_method
def test_more_columns_than_the_rank_is_said(name: str) -> None:
    X, y = make_classes(30, 3, 3, seed=3)
    X = np.column_stack([X, X @ np.random.default_rng(0).standard_normal((3, 3))])
    problem = Problem.from_arrays(X, y)
    with pytest.warns(UserWarning, match=r"only 3 .* independent"):
        result = solve(problem, 5, name)
    assert result.status == Status.RANK_DEFICIENT
    assert "independent" in result.message
    assert len(set(result.support.tolist())) == 5
    # Three independent columns span all: that is the best there is.
    assert result.objective == pytest.approx(Reference(X, y).objective([0, 1, 2]), rel=1e-8)


@every_method
def test_methods_and_results_survive_pickle_and_json(name: str) -> None:
    X, y = TABLES["classes"]
    method = registry.create(name)
    again = pickle.loads(pickle.dumps(method))
    assert type(again) is type(method)
    assert again.get_params() == method.get_params() == clone(method).get_params()
    problem = Problem.from_arrays(X, y)
    result = solve(problem, 3, again)
    assert result.support.tolist() == solve(problem, 3, name).support.tolist()
    assert pickle.loads(pickle.dumps(result)) == result
    assert Result.from_json(result.to_json()) == result


@every_method
def test_options_are_seen_set_and_checked(name: str) -> None:
    X, y = TABLES["classes"]
    method = registry.create(name)
    assert method.option_names() == sorted(method.get_params())
    for option, value in method.get_params().items():
        assert registry.create(name, **{option: value}).get_params()[option] == value
    with pytest.raises(UnknownOptionError, match=rf"{name}.*no_such_option"):
        registry.create(name, no_such_option=1)
    with pytest.raises(UnknownOptionError, match=rf"{name}.*no_such_option"):
        solve(Problem.from_arrays(X, y), 2, method, no_such_option=1)


@every_method
def test_name_object_and_selector_agree(name: str) -> None:
    X, y = TABLES["classes"]
    problem = Problem.from_arrays(X, y)
    result = solve(problem, 3, name)
    for method in (name, registry.create(name)):
        selector = TopKSelector(k=3, method=method, ridge=0).fit(X, y)
        assert selector.get_support(indices=True).tolist() == result.support.tolist()
        assert selector.selected_.tolist() == result.order.tolist()
        assert selector.objective_ == pytest.approx(result.objective, rel=1e-12)
        assert selector.result_.method == name
    parameters = TopKSelector(method=registry.create(name)).get_params()
    assert {f"method__{option}" for option in registry.create(name).get_params()} <= set(parameters)


def test_the_command_line_offers_them_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("click")
    pytest.importorskip("pyarrow")
    from exactk.cli import main

    def run(*words: str) -> Any:
        with pytest.raises(SystemExit) as stop:
            main([*words, "--format", "json"])
        assert not stop.value.code
        return json.loads(capsys.readouterr().out)["result"]

    assert [line["name"] for line in run("list", "methods")["methods"]] == registry.names()
    X, y = TABLES["classes"]
    names = [f"c{j}" for j in range(X.shape[1])]
    table = tmp_path / "table.csv"
    np.savetxt(table, np.column_stack([X, y]), delimiter=",", fmt="%.17g",
               header=",".join([*names, "y"]), comments="")  # fmt: skip
    words = ("y", "-k", "3", "--ridge", "0", "--task", "classification")
    # One that uses the Gram matrix, one that reads rows, and one that needs classes.
    for name in ("exchange", "rfs", "relieff"):
        expected = solve(Problem.from_arrays(X, y), 3, name)
        found = run("select", str(table), *words, "--method", name)
        assert found["support"] == expected.support.tolist()


# Its sizes start from each other, or share what they found.
WARM_PATHS = {"exchange", "nmapg"}


@every_method
def test_a_path_has_every_size(name: str) -> None:
    problem = Problem.from_arrays(*TABLES["classes"])
    path = solve_path(problem, 8, name)
    assert [len(set(result.support.tolist())) for result in path] == list(range(1, 9))
    for result in path:
        assert result.method == name
        assert result.objective >= optimum_of("classes", 0.0, result.k) - 1e-8 * problem.total
    for k in (1, 4):
        alone = solve(problem, k, name)
        if name not in WARM_PATHS:
            assert path.at(k).support.tolist() == alone.support.tolist()
            assert path.at(k).trace == alone.trace


# Values that an option refuses: those of most options of this name, and where they differ.
REFUSED: dict[str, list[Any]] = {
    "C": [0],
    "annealing": [0],
    "batch_size": [0],
    "bins": [0, 1, 256, "mdl"],
    "end_temperature": [0],
    "hidden": [0, 100_001],
    "labels": ["hot"],
    "lam": [0],
    "learning_rate": [0],
    "max_iter": [0, 1.5],
    "mu": [0],
    "n_components": [0],
    "n_neighbors": [0],
    "n_starts": [0, 2.0],
    "p": [0, 1.0001],
    "patience": [0],
    "perturbation": [0],
    "random_state": [-1, 1.5, "x"],
    "selector_rate": [0],
    "stage_iter": [0],
    "start_temperature": [0],
    "warm_up": [0],
    "width": [0],
}
REFUSED_BY: dict[str, dict[str, list[Any]]] = {
    "exchange": {"effort": ["high", [1]]},
    "exhaustive": {"max_subsets": [0.5, "many", None]},
    "stability": {"n_subsamples": [1, 2.5]},
    "ipfs": {"gamma": [0], "rho": [0], "mu": [1], "solver": ["conjugate", None]},
    "rpfs": {"rho": [0.99], "row_norm": ["l3", 2]},
    "nmapg": {
        "algorithm": [3, "1"], "rho": [0], "rho_share": [0, 1.1], "sigma": [0, 1], "epsilon": [0],
        "eta": [1], "tau": [1], "step": ["spectrum"], "penalty": ["smooth"],
    },
    "pgd": {"eta": [0, np.inf]},
    "gsrfs": {"r": [0, 2.1]},
    "infogain": {"bins": ["counts"]},
    "mrmr": {"scheme": ["mi"], "measure": ["F"]},
    "ttest": {"equal_var": [1], "combine": ["sum"]},
    "spec": {"graph": ["class"], "phi": [4]},
    "ilfs": {"n_tokens": [1, 256], "topics": ["free"]},
    "covth": {"t": [1, -0.1], "rule": ["h"]},
    "svmrfe": {"step": [0, 0.0, 1.0, 2.5, -1, "half", True]},
    "crfs": {"sigma": [0]},
    "sfs": {"loss": ["l1"], "accelerate": [1]},
    "slap": {"gamma": [0]},
    "cae": {"mode": ["unsupervised"]},
    "firdl": {"n_masks": [3, 10_001]},
}  # fmt: skip


@every_method
def test_every_option_refuses_what_is_out_of_its_range(name: str) -> None:
    X, y = TABLES["classes"]
    problem = Problem.from_arrays(X, y)
    for option, value in registry.create(name).get_params().items():
        bad = REFUSED.get(option, []) + REFUSED_BY.get(name, {}).get(option, [])
        if isinstance(value, (int, float)) and option != "random_state":
            bad = [*bad, -1, np.nan, "much", None]
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            bad = [*bad, np.inf, True]
        assert bad or option == "init", f"{option} is not tried"
        for wrong in bad:
            # Before any work, also where there is nothing to choose.
            for k in (3, 8):
                with pytest.raises(InputError, match=rf"^{option}\b") as error:
                    solve(problem, k, name, **{option: wrong})
                assert repr(wrong) in str(error.value)
            with pytest.raises(InputError, match=rf"^{option}\b"):
                solve_path(problem, 3, name, **{option: wrong})


@every_method
def test_moments_serve_or_the_rows_are_requested(name: str) -> None:
    X, y = TABLES["classes"]
    problem = Problem.from_moments(Moments.from_arrays(X, np.eye(3)[y]), classes=[0, 1, 2])
    if registry.method_class(name).needs_rows:
        # All columns, too, though no row would be read for them.
        for k in (3, 8):
            for gate in (solve, solve_path):
                with pytest.raises(InputError, match=rf"{name}.*reads the rows.*from_arrays"):
                    gate(problem, k, name)
    else:
        expected = solve(Problem.from_arrays(X, y), 3, name)
        found = solve(problem, 3, name)
        assert found.support.tolist() == expected.support.tolist()
        np.testing.assert_allclose(found.trace, expected.trace, rtol=1e-8)


@every_method
def test_a_target_that_one_column_determines(name: str) -> None:
    rng = np.random.default_rng(0)
    X = np.column_stack([np.ones(50), rng.standard_normal((50, 4))])
    problem = Problem.from_arrays(X, 1e7 * X[:, 1])
    if refused(name, problem):
        return
    support = solve(problem, 2, name).support
    assert 1 in support or not registry.method_class(name).uses_target
    assert 0 not in support, "a constant column was taken for a gain"


# Their search looks at the ridge of the problem; the others only grade with it.
OF_THE_RIDGE = {"exchange", "greedy", "exhaustive", "stability", "cdlsr", "pgd"}


@every_method
def test_the_ridge_has_no_part_in_the_search_of_the_papers(name: str) -> None:
    if name in OF_THE_RIDGE:
        return
    plain = Problem.from_arrays(*TABLES["classes"])
    found, wanted = solve(plain.with_ridge(5.0), 3, name), solve(plain, 3, name)
    assert found.support.tolist() == wanted.support.tolist()
    assert found.trace == wanted.trace
