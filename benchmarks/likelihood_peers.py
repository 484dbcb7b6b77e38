"""The contestants for the logistic loss: abess and skscope as they serve best, and exactk.

All minimise the deviance of a multinomial model, some with the ridge of the grader and some
without. Peers get standardised columns before the clock starts; exactk gets the raw table.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.data import Dataset, Floats, Ints
from benchmarks.peers import Contestant, Prepare, Run, nonzero_rows, on_all_columns

RIDGE = 1e-3


def penalty_of(dataset: Dataset, ridge: float = RIDGE) -> float:
    """The factor of ‖W‖² beside the deviance, for standardised columns."""
    return ridge * (dataset.X.shape[0] - 1)


def class_codes(dataset: Dataset) -> tuple[int, Ints]:
    """Number of classes, and the class of each row as a number from 0."""
    classes, codes = np.unique(dataset.y, return_inverse=True)
    return classes.size, codes


def abess(path: bool, with_ridge: bool = False, weight: float | None = None, **settings: Any) -> Prepare:
    def prepare(dataset: Dataset, k: int) -> Run:
        from abess import LogisticRegression, MultinomialRegression

        classes, codes = class_codes(dataset)
        Z = dataset.standardised_by_column
        sizes = range(1, k + 1) if path else k
        estimator = LogisticRegression if classes == 2 else MultinomialRegression
        alpha = penalty_of(dataset) / (4 if classes == 2 else 2) if with_ridge else 0.0
        sw = None
        if weight is not None:
            sw = np.full(Z.shape[0], weight)
            alpha *= weight

        def run() -> Ints:
            model = estimator(support_size=sizes, ic_type="bic", ic_coef=-1e6, alpha=alpha, **settings)
            coef = model.fit(Z, codes, is_normal=False, sample_weight=sw).coef_
            return nonzero_rows(coef.reshape(Z.shape[1], -1))

        return run

    return prepare


@functools.cache
def compiled() -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Objective and gradient for skscope, compiled once by jax in double precision."""
    import jax
    from jax import numpy as jnp

    jax.config.update("jax_enable_x64", True)

    def objective(params: Any, data: Any) -> Any:
        Z, onehot, penalty = data
        W = params.reshape(Z.shape[1], -1)
        eta = Z @ W
        if W.shape[1] == 1:
            margin = jnp.where(onehot[:, 0] > 0, eta[:, 0], -eta[:, 0])
            return 2.0 * jnp.sum(jnp.logaddexp(0.0, -margin)) + penalty / 2 * jnp.sum(W[1:] ** 2)
        fit = jnp.sum(jax.nn.logsumexp(eta, axis=1)) - jnp.sum(onehot * eta)
        return 2.0 * fit + penalty * jnp.sum(W[1:] ** 2)

    return jax.jit(objective), jax.jit(jax.grad(objective))


def on_active_columns(Z: Floats, onehot: Floats, penalty: float):
    """A numeric solver for skscope that reads only the columns in play."""
    from scipy.optimize import minimize

    outputs = onehot.shape[1]
    share = penalty / 2 if outputs == 1 else penalty

    def solver(loss: Any, value_and_grad: Any, params: Floats, chosen: Ints, data: Any):
        rows = np.unique(np.asarray(chosen) // outputs)
        A = Z[:, rows]
        ridge = np.where(rows == 0, 0.0, share)[:, None]

        def value(flat: Floats):
            W = flat.reshape(-1, outputs)
            eta = A @ W
            if outputs == 1:
                total = np.logaddexp(0.0, eta)
                P = np.exp(eta - total)
                fit = total.sum()
            else:
                top = eta.max(axis=1, keepdims=True)
                P = np.exp(eta - top)
                s = P.sum(axis=1, keepdims=True)
                P /= s
                fit = (top + np.log(s)).sum()
            penal = ridge * W
            grad = 2.0 * (A.T @ (P - onehot)) + 2.0 * penal
            return 2.0 * (fit - np.vdot(onehot, eta)) + np.vdot(penal, W), grad.ravel()

        block = params.reshape(-1, outputs)
        found = minimize(value, block[rows].ravel(), method="L-BFGS-B", jac=True, options={"maxiter": 1000})
        block[rows] = found.x.reshape(-1, outputs)
        return found.fun, block.ravel()

    return solver


def skscope(solver_name: str, active=True, with_ridge: bool = True, path=False, scale=1.0, **settings: Any) -> Prepare:
    def prepare(dataset: Dataset, k: int) -> Run:
        import skscope as library

        value, slope = compiled()
        from jax import numpy as jnp

        classes, codes = class_codes(dataset)
        Z = np.column_stack([np.ones(dataset.X.shape[0]), dataset.standardised])
        n, d = Z.shape
        onehot = np.eye(classes)[codes]
        if classes == 2:
            onehot = onehot[:, 1:]
        outputs = onehot.shape[1]
        penalty = penalty_of(dataset) if with_ridge else 0.0
        data = (jnp.asarray(Z), jnp.asarray(onehot), penalty)
        group = np.repeat(np.arange(d), outputs)

        def objective(params, data):
            return value(params, data)

        def gradient(params, data):
            return slope(params, data)

        if active:
            settings["numeric_solver"] = on_active_columns(np.asfortranarray(Z), onehot, penalty)

        def run() -> Ints:
            solver = getattr(library, solver_name)(
                d * outputs, k + 1 if not path else np.arange(2, k + 2), n, preselect=[0], group=group,
                **({"ic_method": lambda loss, p, s, n: loss} if path else {}), **settings
            )
            params = np.asarray(solver.solve(objective, data=data, gradient=gradient))
            return nonzero_rows(params.reshape(d, outputs)[1:])

        value(np.zeros(d * outputs), data), slope(np.zeros(d * outputs), data)
        return run

    return prepare
