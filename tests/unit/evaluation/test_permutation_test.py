"""Shuffled targets: the same problems as of a shuffled table, with one Gram matrix."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from exactk import InputError, Moments, Problem, solve
from exactk.evaluation.permutation_test import permuted_problems

KINDS = ("classes", "number", "numbers")


def _table(kind: str, seed: int = 0, n: int = 40, d: int = 12):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X[:, 3] = 1e5 + 1e-3 * X[:, 3]  # so far from zero that it must be centred on its own
    X[:, 5] = 2.0  # constant
    X[:, 7] = -3 * X[:, 1] + 1  # a copy
    y = {
        "classes": rng.choice(["a", "b", "c"], size=n),
        "number": X[:, 0] + rng.normal(size=n),
        "numbers": X[:, [0, 2]] + rng.normal(size=(n, 2)),
    }[kind]
    return X, y


def _target(problem: Problem):
    """The target of a problem as `from_arrays` takes it."""
    target = problem.target
    return target.values if target.codes is None else target.classes[target.codes]


def _agree(ours: Problem, other: Problem):
    np.testing.assert_allclose(ours.cross, other.cross, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(ours.y_mean, other.y_mean, rtol=1e-12)
    assert ours.total == pytest.approx(other.total, rel=1e-12)
    for support in ([0, 3], [1, 2, 4, 6, 8], [9]):
        assert ours.objective(support) == pytest.approx(other.objective(support), rel=1e-10)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_same_as_a_table_with_the_permuted_target(kind, weighted):
    X, y = _table(kind)
    weights = np.arange(40) % 4 + 0.5 if weighted else None
    options = {"sample_weight": weights, "ridge": 0.2}
    problem = Problem.from_arrays(X, y, **options).with_constraints({"exclude": [0, 2]})
    for other in permuted_problems(problem, 3, 1):
        again = Problem.from_arrays(X, _target(other), **options).with_rules(problem.rules)
        _agree(other, again)
        np.testing.assert_array_equal(other.candidates, again.candidates)
        assert solve(other, 3).support.tolist() == solve(again, 3).support.tolist()
        assert other.gram is problem.gram
        assert not np.allclose(other.cross, problem.cross)
        ours, theirs = (np.reshape(rows, (40, -1)) for rows in (_target(other), y))
        assert sorted(map(tuple, ours)) == sorted(map(tuple, theirs))


@pytest.mark.parametrize("loss", ["squared", "logistic", "optimal_scoring"])
@pytest.mark.parametrize("class_weight", [None, "balanced", {"a": 3.0, "b": 0.5}])
def test_weights_of_classes_go_with_the_labels(class_weight, loss):
    X, y = _table("classes")
    y = np.where(np.arange(40) < 30, "a", y)
    weights = np.arange(40) % 4 + 0.5
    options = {"sample_weight": weights, "class_weight": class_weight, "ridge": 0.2, "loss": loss}
    problem = Problem.from_arrays(X, y, **options)
    for other in permuted_problems(problem, 3, 1):
        again = Problem.from_arrays(X, _target(other), **options)
        np.testing.assert_allclose(other.weights, again.weights)
        np.testing.assert_array_equal(other.row_weights, weights)
        assert np.allclose(other.weights, problem.weights) == (class_weight is None)
        ours, theirs = solve(other, 3), solve(again, 3)
        assert ours.support.tolist() == theirs.support.tolist()
        assert ours.objective == pytest.approx(theirs.objective, rel=1e-9)
        assert ours.total == pytest.approx(theirs.total, rel=1e-9)


def test_rows_of_weight_zero_keep_out():
    X, y = _table("classes")
    y = y.astype(object)
    weights = np.ones(40)
    weights[:6], y[:6] = 0.0, "only here"
    problem = Problem.from_arrays(X, y.astype(str), sample_weight=weights)
    without = Problem.from_arrays(X[6:], y[6:].astype(str))
    for other in permuted_problems(problem, 3):
        codes = other.target.codes
        assert (codes[:6] == -1).all()
        again = Problem.from_arrays(X[6:], other.classes[codes[6:]])
        _agree(other, again)
        assert other.total == pytest.approx(without.total)


def test_sparse_tables_and_single_gram_columns():
    X, y = _table("classes")
    X[np.abs(X) < 0.8] = 0.0
    for table in (sparse.csr_array(X), sparse.csc_array(X)):
        problem = Problem.from_arrays(table, y, gram="columns")
        for other in permuted_problems(problem, 2):
            _agree(other, Problem.from_arrays(X, _target(other)))
            assert other.gram is problem.gram


def test_groups_with_one_target_each_exchange_it():
    X, _ = _table("number")
    groups = np.repeat(np.arange(10), 4)
    y = np.array(["u", "v"])[np.arange(10) % 2][groups]
    seen = set()
    for other in permuted_problems(Problem.from_arrays(X, y), 20, groups=groups):
        codes = other.target.codes.reshape(10, 4)
        assert (codes == codes[:, :1]).all()
        assert codes[:, 0].sum() == 5
        seen.add(tuple(codes[:, 0]))
        _agree(other, Problem.from_arrays(X, _target(other)))
    assert len(seen) > 10


def test_groups_with_several_targets_permute_within():
    X, y = _table("number")
    groups = [f"p{i % 8}" for i in range(40)]
    for other in permuted_problems(Problem.from_arrays(X, y), 3, groups=groups):
        mixed = other.target.values[:, 0]
        assert not np.array_equal(mixed, y)
        for start in range(8):
            assert sorted(mixed[start::8]) == sorted(y[start::8])


def test_passed_over_tables_are_read(tmp_path):
    pytest.importorskip("pyarrow")
    X, y = _table("number")
    file = tmp_path / "table.csv"
    np.savetxt(file, np.c_[X[:, :3], y], delimiter=",", header="a,b,c,y", comments="")
    problem = Problem.from_files(file, "y")
    for other in permuted_problems(problem, 2):
        again = Problem.from_arrays(X[:, :3], other.target.values)
        np.testing.assert_allclose(other.cross, again.cross, rtol=1e-9, atol=1e-9)
        assert other.gram is problem.gram


def test_errors_come_before_any_work():
    X, y = _table("number")
    problem = Problem.from_arrays(X, y)
    with pytest.raises(InputError) as error:
        permuted_problems(problem, 1, groups=[1, 2])
    assert error.value.parameter == "groups"
    moments = Problem.from_moments(Moments.from_arrays(X, y))
    with pytest.raises(InputError, match="moments"):
        permuted_problems(moments, 1)
    assert list(permuted_problems(problem, 0)) == []
