"""The contestants for the logistic loss: exactk, and abess and skscope as they serve best.

Peers get standardised columns, prepared before the clock starts; what jax compiles is compiled
by then, too. exactk starts from the raw table.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.data import Dataset, Floats, Ints
from benchmarks.peers import Contestant, Prepare, Run, nonzero_rows, on_all_columns

RIDGE = 1e-3
# A peer that would allocate more than this in a cell is not run there.
MEMORY = 6e9
# What ends the whole process when its callback raises, and now and then by itself.
MAY_CRASH = "skscope SCOPE"
# Weight of each column in abess's criterion: below zero, so that its path ends at size k.
LARGEST = -1e6


class TooLargeError(RuntimeError):
    """A peer would need more memory than it is given."""


def class_codes(dataset: Dataset) -> tuple[int, Ints]:
    """Number of classes, and the class of each row as a number from 0."""
    classes, codes = np.unique(dataset.y, return_inverse=True)
    return classes.size, codes


def penalty(dataset: Dataset) -> float:
    """The factor of ‖W‖² beside the deviance, for standardised columns."""
    return RIDGE * (dataset.X.shape[0] - 1)


def refuse_above(size: int, what: str) -> None:
    """Raise where a square matrix of doubles with `size` rows would be too large."""
    if 8.0 * size**2 > MEMORY:
        raise TooLargeError(f"a matrix of {8e-9 * size**2:.1f} GB ({what})")


def abess(path: bool, ridge: bool = False, **settings: Any) -> Prepare:
    """Splicing of abess at one size, or along all sizes up to k with warm starts.

    Its loss is half of the deviance plus alpha ‖W‖². For several classes its fit leaves the ridge
    out of the gradient, so that `ridge` acts in full with two classes only.
    """

    def prepare(dataset: Dataset, k: int) -> Run:
        from abess import LogisticRegression, MultinomialRegression

        classes, codes = class_codes(dataset)
        Z = dataset.standardised_by_column
        two = classes == 2
        if ridge and not two:
            refuse_above(len(codes) * classes, "rows × classes squared, abess with alpha")
        # With two classes the one vector is the difference of both columns of W.
        alpha = penalty(dataset) / (4.0 if two else 2.0) if ridge else 0.0
        options: dict[str, Any] = {
            "support_size": range(1, k + 1) if path else k,
            "ic_type": "bic",
            "ic_coef": LARGEST,
            "alpha": alpha,
            **settings,
        }

        def run() -> Ints:
            model = (LogisticRegression if two else MultinomialRegression)(**options)
            coef = model.fit(Z, codes, is_normal=False).coef_
            return nonzero_rows(coef.reshape(Z.shape[1], -1))

        return run

    return prepare


@functools.cache
def compiled() -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Objective and gradient for skscope, compiled by jax, in double precision.

    skscope's own `jit=True` would compile them anew in each call.
    """
    import jax
    from jax import numpy as jnp

    jax.config.update("jax_enable_x64", True)

    def objective(params: Any, data: Any) -> Any:
        Z, hot, factor = data
        W = params.reshape(Z.shape[1], -1)
        eta = Z @ W
        if W.shape[1] == 1:  # two classes: W is the difference of both columns
            fit = jnp.sum(jnp.logaddexp(0.0, eta)) - jnp.sum(hot * eta)
            return 2.0 * fit + 0.5 * factor * jnp.sum(W[1:] ** 2)
        fit = jnp.sum(jax.nn.logsumexp(eta, axis=1)) - jnp.sum(hot * eta)
        return 2.0 * fit + factor * jnp.sum(W[1:] ** 2)

    return jax.jit(objective), jax.jit(jax.grad(objective))


def fit_on_active(Z: Floats, hot: Floats, factor: float) -> Callable[..., tuple[float, Floats]]:
    """A numeric solver for skscope: L-BFGS, as its own, but reads only the columns in play.

    Its own would take the gradient for all columns in every step.
    """
    from scipy.optimize import minimize

    outputs = hot.shape[1]
    share = factor / 2 if outputs == 1 else factor

    def solve(
        loss: Any, value_and_grad: Any, params: Floats, chosen: Ints, data: Any
    ) -> tuple[float, Floats]:
        rows = np.unique(np.asarray(chosen, dtype=np.intp) // outputs)
        A = Z[:, rows]
        ridge = np.where(rows == 0, 0.0, share)[:, None]

        def value(flat: Floats) -> tuple[float, Floats]:
            W = flat.reshape(-1, outputs)
            eta = A @ W
            if outputs == 1:
                total = np.logaddexp(0.0, eta)
                P = np.exp(eta - total)
            else:
                top = eta.max(axis=1, keepdims=True)
                P = np.exp(eta - top)
                sums = P.sum(axis=1, keepdims=True)
                P /= sums
                total = top + np.log(sums)
            shrunk = ridge * W
            fit = 2.0 * (total.sum() - np.vdot(hot, eta)) + np.vdot(shrunk, W)
            return float(fit), (2.0 * (A.T @ (P - hot) + shrunk)).ravel()

        W = np.array(params, dtype=np.float64).reshape(-1, outputs)
        options = {"maxiter": 1000}
        found = minimize(value, W[rows].ravel(), method="L-BFGS-B", jac=True, options=options)
        W[rows] = found.x.reshape(-1, outputs)
        return float(found.fun), W.ravel()

    return solve


def skscope(solver: str, path: bool = False, ridge: bool = True, **settings: Any) -> Prepare:
    """A solver of skscope on the graded objective itself; the intercepts are a group of their own.

    `path` goes through all sizes up to k with warm starts.
    """

    def prepare(dataset: Dataset, k: int) -> Run:
        import skscope as library

        classes, codes = class_codes(dataset)
        Z = np.column_stack([np.ones(len(codes)), dataset.standardised])
        hot = np.eye(classes)[codes][:, 1 if classes == 2 else 0 :]
        outputs, size = hot.shape[1], Z.shape[1] * hot.shape[1]
        if solver == "ScopeSolver":
            refuse_above(size, "coefficients squared, ScopeSolver")
        factor = penalty(dataset) if ridge else 0.0
        value, slope = compiled()
        from jax import numpy as jnp

        data = (jnp.asarray(Z), jnp.asarray(hot), factor)
        options = {
            "sparsity": np.arange(2, k + 2) if path else k + 1,
            "sample_size": len(codes),
            "preselect": [0],
            "group": np.repeat(np.arange(Z.shape[1]), outputs),
            "numeric_solver": fit_on_active(np.asfortranarray(Z), hot, factor),
            **settings,
        }
        if path:
            options["ic_method"] = largest

        def objective(params: Any, data: Any) -> Any:  # skscope counts the arguments
            return value(params, data)

        def gradient(params: Any, data: Any) -> Any:
            return slope(params, data)

        def run() -> Ints:
            model = getattr(library, solver)(size, **options)
            params = model.solve(objective, data=data, gradient=gradient)
            return nonzero_rows(np.asarray(params).reshape(-1, outputs)[1:])

        for compile_now in (objective, gradient):
            compile_now(np.zeros(size), data).block_until_ready()
        return run

    return prepare


def largest(loss: float, dimension: int, sparsity: int, rows: int) -> float:
    """A criterion for skscope by which the largest size is the best."""
    return -float(sparsity)


def exactk_ridge(dataset: Dataset) -> float:
    """The ridge with which exactk has the penalty of the grader.

    Its ridge is relative to the curvature of the loss, which depends on the classes.
    """
    import exactk as library

    unit = library.Problem.from_arrays(dataset.X, dataset.y, loss="logistic", ridge=1.0)
    return penalty(dataset) / unit.penalty


def exactk(**options: Any) -> Prepare:
    """Our own library from the raw table: building the Problem is part of the run."""

    def prepare(dataset: Dataset, k: int) -> Run:
        import exactk as library

        ridge = exactk_ridge(dataset)

        def run() -> Ints:
            problem = library.Problem.from_arrays(
                dataset.X, dataset.y, loss="logistic", ridge=ridge
            )
            return np.asarray(library.solve(problem, k, **options).support, dtype=np.intp)

        return run

    return prepare


EXACTK = "exactk"
EXACTK_FAST = "exactk effort=0"

OURS = (
    Contestant(EXACTK_FAST, "exactk", "effort=0", exactk(effort=0)),
    Contestant(EXACTK, "exactk", "defaults", exactk()),
)

WIDE = {"splicing_type": 1, "important_search": 0}

PEERS = tuple(
    Contestant(name, name.replace(",", "").split()[0], settings, on_all_columns(prepare))
    for name, settings, prepare in (
        ("abess", "support_size=k", abess(path=False)),
        ("abess ridge", "support_size=k, alpha", abess(path=False, ridge=True)),
        (
            "abess, thorough",
            "support_size=k, splicing_type=1, important_search=0",
            abess(path=False, **WIDE),
        ),
        ("abess path", "support_size=1..k", abess(path=True)),
        (
            "abess path, long fits",
            "support_size=1..k, splicing_type=1, exchange_num=10, primary_model_fit_max_iter=100",
            abess(True, splicing_type=1, exchange_num=10, primary_model_fit_max_iter=100),
        ),
        (
            "abess path, thorough",
            "support_size=1..k, splicing_type=1, important_search=0",
            abess(path=True, **WIDE),
        ),
        (
            "abess path, thorough, ridge",
            "support_size=1..k, splicing_type=1, important_search=0, alpha",
            abess(path=True, ridge=True, **WIDE),
        ),
        ("skscope OMP", "OMPSolver", skscope("OMPSolver")),
        ("skscope GraSP", "GraspSolver", skscope("GraspSolver")),
        ("skscope FoBa", "FobaSolver", skscope("FobaSolver", max_iter=1000)),
        ("skscope SCOPE", "ScopeSolver", skscope("ScopeSolver")),
        (
            "skscope SCOPE, taper",
            "ScopeSolver, splicing_type='taper'",
            skscope("ScopeSolver", splicing_type="taper"),
        ),
        (
            "skscope SCOPE, path",
            "ScopeSolver, sparsity=1..k, greedy=False",
            skscope("ScopeSolver", path=True, greedy=False),
        ),
    )
)
