"""What is left of columns beside those that must be in, against fits of the rows."""

from __future__ import annotations

import numpy as np
import pytest

from exactk import Problem
from exactk.proof.column_tree import ColumnProblem, make_column_problem
from exactk.types import Floats
from tests.oracles.brute import Reference, make_classes, make_numbers


def _set(problem: Problem, k: int) -> ColumnProblem:
    column_problem = make_column_problem(problem, k)
    assert column_problem is not None
    return column_problem


def _left_by_fits(X: Floats, Y: Floats, ridge: float, inside: list[int]) -> tuple[Floats, Floats]:
    """E and CCᵀ of all other columns: residuals of the rows, with the ridge as rows of its own."""
    reference = Reference(X, Y, ridge=ridge)
    d, c = X.shape[1], reference.Y.shape[1]
    rows = np.vstack([reference.X, np.sqrt(reference.penalty) * np.eye(d)])
    target = np.vstack([reference.Y, np.zeros((d, c))])
    others = [j for j in range(d) if j not in inside]
    Q = np.linalg.qr(rows[:, inside])[0]
    left = rows[:, others] - Q @ (Q.T @ rows[:, others])
    left /= np.linalg.norm(left, axis=0)
    products = left.T @ (target - Q @ (Q.T @ target))
    return left.T @ left, products @ products.T


@pytest.mark.parametrize("ridge", [0.0, 0.3])
@pytest.mark.parametrize("inside", [[], [4], [6, 1, 3]])
def test_what_is_left_is_that_of_residuals(ridge: float, inside: list[int]) -> None:
    X, Y = make_numbers(d=8, c=2, seed=3)
    problem = Problem.from_arrays(X, Y, ridge=ridge)
    if inside:
        problem = problem.with_constraints(include=inside)
    column_problem = _set(problem, 5)
    E, K = _left_by_fits(X, Y, ridge, inside)
    everything = np.arange(len(E))
    assert column_problem.m == 5 - len(inside)
    assert column_problem.columns.tolist() == [j for j in range(8) if j not in inside]
    assert column_problem.block(everything) == pytest.approx(E, abs=1e-12)
    assert column_problem.gram(everything) == pytest.approx(E, abs=1e-12)
    some = np.array([3, 0, 2])
    assert column_problem.block(some) == pytest.approx(E[np.ix_(some, some)], abs=1e-12)
    assert column_problem.gram(some) == pytest.approx(E[some], abs=1e-12)
    assert column_problem.C @ column_problem.C.T == pytest.approx(K, rel=1e-10, abs=1e-9)
    # What is chosen on top of those inside explains what it does in the whole problem.
    for S in ([0], [1, 4], [0, 2, 3]):
        C = column_problem.C[S]
        explained = float((C * np.linalg.solve(E[np.ix_(S, S)], C)).sum())
        columns = [*inside, *column_problem.columns[S].tolist()]
        assert column_problem.total - explained == pytest.approx(problem.objective(columns))
    reference = Reference(X, Y, ridge=ridge)
    assert column_problem.total == pytest.approx(reference.objective(inside))


def test_columns_that_are_out_and_copies_are_not_there() -> None:
    X, y = make_classes(d=7)
    X = np.column_stack([X, 1.0 - X[:, 2], np.ones(len(X))])
    problem = Problem.from_arrays(X, y).with_constraints(exclude=[0, 5])
    column_problem = _set(problem, 3)
    assert column_problem.columns.tolist() == [1, 2, 3, 4, 6]
    assert column_problem.inside == ()


def test_classes_have_an_output_less() -> None:
    X, y = make_classes(c=4, n=80)
    problem = Problem.from_arrays(X, y)
    column_problem = _set(problem, 3)
    reference = Reference(X, y)
    products = (reference.X / np.linalg.norm(reference.X, axis=0)).T @ reference.Y
    assert products.shape[1] == 4
    assert column_problem.C.shape[1] == 3
    assert column_problem.C @ column_problem.C.T == pytest.approx(products @ products.T, abs=1e-10)


def test_outputs_that_say_the_same_count_once() -> None:
    X, y = make_numbers(d=5)
    Y = np.column_stack([y, 2.0 * y, -y])
    column_problem = _set(Problem.from_arrays(X, Y), 2)
    assert column_problem.C.shape == (5, 1)
    alone = _set(Problem.from_arrays(X, y), 2)
    assert column_problem.C @ column_problem.C.T == pytest.approx(6.0 * alone.C @ alone.C.T)


def test_a_target_that_nothing_explains_has_one_output_of_zeros() -> None:
    x = np.array([1.0, -1.0, 1.0, -1.0])
    X = np.column_stack([x, [1.0, 1.0, -1.0, -1.0]])
    column_problem = _set(Problem.from_arrays(X, np.array([1.0, -1.0, -1.0, 1.0])), 1)
    assert column_problem.C.shape == (2, 1)
    assert np.abs(column_problem.C).max() < 1e-12


@pytest.mark.parametrize(("share", "is_near"), [(1e-2, False), (1e-5, True)])
def test_columns_that_those_inside_make_up_are_for_another_tree(
    share: float, is_near: bool
) -> None:
    X, y = make_numbers(d=6)
    X[:, 4] = X[:, 0] + X[:, 2] + share * X[:, 4]
    problem = Problem.from_arrays(X, y).with_constraints(include=[0, 2])
    assert (make_column_problem(problem, 4) is None) == is_near
    # By themselves they are not made up.
    assert make_column_problem(problem.with_constraints(include=[0]), 4) is not None


@pytest.mark.parametrize("share", [1e-1, 1e-2, 1e-3])
def test_rounding_grows_with_what_is_taken_away(share: float) -> None:
    X, y = make_numbers(d=6)
    X[:, 4] = X[:, 0] + share * X[:, 4]
    problem = Problem.from_arrays(X, y)
    assert _set(problem, 4).grown == 1.0
    column_problem = _set(problem.with_constraints(include=[0]), 4)
    unit = Reference(X, y).X
    unit = unit / np.linalg.norm(unit, axis=0)
    r = float(unit[:, 0] @ unit[:, 4])
    assert column_problem.grown == pytest.approx((1.0 + abs(r)) ** 2 / (1.0 - r**2), rel=1e-6)
    both = _set(problem.with_constraints(include=[0, 4]), 4)
    some = np.array([0, 2])
    values = np.linalg.eigvalsh(unit[:, [0, 4, 1, 3]].T @ unit[:, [0, 4, 1, 3]])
    assert both.least_eigenvalue(some) == pytest.approx(values[0], rel=1e-6)
