"""The special cases of gsrfs, and the ten iterative methods on what is hard for any of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from exactk import Problem, UnknownOptionError, solve
from exactk.methods import registry
from tests.oracles.brute import make_classes

# An end at the iteration limit is an end like others here.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

KIN = ("mtfs", "rfs", "erfs", "rk1u")
every_kin = pytest.mark.parametrize("name", KIN)


def defaults(name: str) -> dict[str, Any]:
    return registry.create(name).get_params()


@pytest.mark.parametrize(
    ("name", "orders"), [("mtfs", set()), ("rfs", set()), ("erfs", {"p"}), ("rk1u", {"p"})]
)
def test_only_the_orders_that_are_free_are_options(name: str, orders: set[str]) -> None:
    # Table 1 of the paper of gsrfs: r and p are fixed, p is free, or both are one.
    assert set(defaults(name)) & {"r", "p"} == orders
    assert set(defaults(name)) - orders == set(defaults("gsrfs")) - {"r", "p"}
    for option in {"r", "p"} - orders:
        with pytest.raises(UnknownOptionError, match=rf"'{name}' has no option '{option}'"):
            registry.create(name, **{option: 1.0})


@every_kin
def test_the_defaults_are_those_of_the_paper_of_gsrfs(name: str) -> None:
    # Section 5.3: λ = 1 and a change below 1e-4 for all of them; section 5.2: p = 0.5 for the
    # extended RFS and RK1U.
    named = defaults(name)
    assert (named["lam"], named["tol"], named["labels"]) == (1.0, 1e-4, "plus-minus")
    assert named.get("p", 0.5) == 0.5


@pytest.mark.parametrize(("name", "other"), [("erfs", "rfs"), ("rk1u", "mtfs")])
def test_at_order_one_two_of_them_are_the_other_two(name: str, other: str) -> None:
    problem = Problem.from_arrays(*make_classes(40, 10, 3, seed=1))
    for lam in (0.5, 20.0):
        assert (
            solve(problem, 3, name, p=1, lam=lam).trace == solve(problem, 3, other, lam=lam).trace
        )
    assert solve(problem, 3, name).trace != solve(problem, 3, other).trace


@pytest.mark.parametrize(
    ("name", "misled"), [("mtfs", True), ("rk1u", True), ("rfs", False), ("erfs", False)]
)
def test_wild_rows_mislead_squared_losses_alone(name: str, misled: bool) -> None:
    rng = np.random.default_rng(7)
    X = rng.standard_normal((80, 10))
    y = 3.0 * X[:, 2] - 2.0 * X[:, 6] + 0.1 * rng.standard_normal(80)
    # Six rows with a target that follows another column, a hundred times as strongly.
    y[:6] = 300.0 * X[:6, 0]
    found = solve(Problem.from_arrays(X, y), 2, name).support.tolist()
    assert (0 in found) == misled
    assert (found == [2, 6]) != misled
