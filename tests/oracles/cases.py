"""Stored reference cases, and bounds of a robust fit that weak duality proves.

Nothing here comes from the package but `Problem`, which is what its methods read.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.optimize import minimize
from sklearn.datasets import load_digits
from threadpoolctl import threadpool_limits

from exactk import Problem
from exactk.types import Floats

FOLDER = Path(__file__).parent / "cases"
SMALL = ("small1", "small2", "small3out", "wide4")


@cache
def stored(method: str) -> dict[str, Any]:
    """What is known of a method, for each table."""
    return json.loads((FOLDER / f"{method}.json").read_text(encoding="utf-8"))


@cache
def table(name: str) -> tuple[Floats, npt.NDArray[np.int64]]:
    """X and the classes of a reference case."""
    if name == "digitsA":
        X, y = load_digits(return_X_y=True)
        X, y = X[:300], y[:300]
        return X[:, np.ptp(X, axis=0) > 0], y
    held = stored("tables")[name]
    return np.array(held["X"]), np.array(held["y"])


@cache
def problem(name: str) -> Problem:
    return Problem.from_arrays(*table(name))


def every_run(method: str, *names: str) -> pytest.MarkDecorator:
    """Parametrise a test by table and run: all that are stored, or those of some tables."""
    pairs = [
        pytest.param(name, run, id=f"{name}-{number}")
        for name in names or stored(method)
        for number, run in enumerate(stored(method)[name]["runs"])
    ]
    return pytest.mark.parametrize(("name", "run"), pairs)


def robust_numbers(Y: Floats) -> Floats:
    """Numbers as the methods of robust loss read them: about their medians, of median size 1."""
    Y = Y.reshape(len(Y), -1)
    Y = Y - np.median(Y, axis=0)
    return Y / (np.median(np.linalg.norm(Y, axis=1)) / np.sqrt(Y.shape[1]))


def robust_bounds(X: Floats, Y: Floats, lam: Floats, least: float = 1e-7) -> tuple[float, float]:
    """Bounds, from below and above, of min ‖Y − XW‖₂,₁ + Σ λ_j‖w_j‖, λ_j zero or more.

    For every Θ with rows of norm at most 1 and ‖x_jᵀΘ‖ ≤ λ_j, ⟨Y, Θ⟩ is below the minimum. Newton's
    method on the objective with √(‖·‖² + δ²) for ‖·‖ ends at such a Θ, the rows of Y − XW divided
    by these roots, for one δ after another. Whatever is missing is mended by projection and
    scaling, so that nothing hangs on how well it converged but the width of the bounds.
    """
    d, c = X.shape[1], Y.shape[1]
    W, delta, lower, upper = np.zeros((d, c)), 1.0, 0.0, np.inf
    while delta >= least:
        # The systems are too small for several threads, which only wait for each other.
        with threadpool_limits(1):
            W = _newton(X, Y, lam, delta, W)
        E = Y - X @ W
        upper = min(upper, float(np.linalg.norm(E, axis=1).sum() + lam @ np.linalg.norm(W, axis=1)))
        Theta = _feasible(X, lam, E / _roots(E, delta)[:, None])
        lower = max(lower, float((Y * Theta).sum()))
        delta *= 0.2
    return lower, upper


def _newton(X: Floats, Y: Floats, lam: Floats, delta: float, W: Floats) -> Floats:
    """Minimise Σ √(‖y_i − Wᵀx_i‖² + δ²) + Σ λ_j √(‖w_j‖² + δ²)."""
    shape = W.shape

    def value(w: Floats) -> float:
        V = w.reshape(shape)
        return float(_roots(Y - X @ V, delta).sum() + lam @ _roots(V, delta))

    def slope(w: Floats) -> Floats:
        V = w.reshape(shape)
        E = Y - X @ V
        pull = (lam / _roots(V, delta))[:, None] * V
        return (pull - X.T @ (E / _roots(E, delta)[:, None])).ravel()

    def curvature(w: Floats) -> Floats:
        V = w.reshape(shape)
        H = np.einsum("ia,ib,ijk->ajbk", X, X, _bends(Y - X @ V, delta), optimize=True)
        j = np.arange(len(V))
        H[j, :, j, :] += lam[:, None, None] * _bends(V, delta)
        return H.reshape(w.size, w.size)

    found = minimize(
        value, W.ravel(), jac=slope, hess=curvature, method="trust-exact",
        options={"gtol": 1e-9, "maxiter": 60},
    )  # fmt: skip
    return found.x.reshape(shape)


def _feasible(X: Floats, lam: Floats, Theta: Floats) -> Floats:
    """Project on what λ_j = 0 asks for, and shorten as far as the rest does."""
    free, bound = X[:, lam == 0], lam > 0
    if free.size:
        Theta = Theta - free @ np.linalg.lstsq(free, Theta, rcond=None)[0]
    share = np.linalg.norm(X[:, bound].T @ Theta, axis=1) / lam[bound]
    return Theta / max(1.0, np.linalg.norm(Theta, axis=1).max(), share.max(initial=0.0))


def _roots(E: Floats, delta: float) -> Floats:
    return np.sqrt((E**2).sum(axis=1) + delta**2)


def _bends(E: Floats, delta: float) -> Floats:
    """Second derivatives of √(‖e‖² + δ²), for each row e."""
    s = _roots(E, delta)[:, None, None]
    return (np.eye(E.shape[1]) - E[:, :, None] * E[:, None, :] / s**2) / s
