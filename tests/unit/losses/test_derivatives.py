"""What losses say of themselves, against differences of their values: forces, Hessians, bounds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from exactk.data.targets import encode_target
from exactk.losses.base import Criterion, contrasts
from exactk.losses.newton import LikelihoodCriterion, half_hessian
from exactk.losses.registry import create, names
from exactk.losses.reweighted import ResidualCriterion

Array = np.ndarray[Any, Any]
N = 14

# Name, parameters, and what the target holds: so many classes, numbers or counts a row.
LIKELIHOODS = [
    ("logistic", {}, "classes", 2),
    ("logistic", {}, "classes", 4),
    ("poisson", {}, "counts", 1),
    ("poisson", {}, "counts", 3),
]
OF_RESIDUALS = [
    ("l21", {}, "numbers", 1),
    ("l21", {}, "numbers", 3),
    ("l21", {}, "classes", 4),
    ("l2r", {"r": 0.5}, "numbers", 2),
    ("l2r", {"r": 1.5}, "numbers", 1),
    ("l2r", {"r": 2.0}, "classes", 3),
    ("huber", {}, "numbers", 1),
    ("huber", {"epsilon": 1.0}, "numbers", 2),
    ("huber", {"epsilon": 3.0}, "classes", 3),
]
Kind = tuple[str, dict[str, Any], str, int]


def _name(kind: Kind) -> str:
    name, options, target, count = kind
    return "-".join([name, *map(str, options.values()), target, str(count)])


every_loss = pytest.mark.parametrize("kind", LIKELIHOODS + OF_RESIDUALS, ids=_name)
of_residuals = pytest.mark.parametrize("kind", OF_RESIDUALS, ids=_name)
likelihoods = pytest.mark.parametrize("kind", LIKELIHOODS, ids=_name)


def bound(kind: Kind, rng: np.random.Generator) -> Any:
    """A loss with a random target and uneven weights."""
    name, options, target, count = kind
    if target == "classes":
        y = encode_target(np.r_[np.arange(count), rng.integers(0, count, N - count)])
    elif target == "counts":
        y = encode_target(rng.poisson(2.0, (N, count)), "regression")
    else:
        y = encode_target(2.0 * rng.standard_normal((N, count)) + 5.0, "regression")
    return create(name, **options).bind(y, rng.uniform(0.3, 3.0, N))


def near(criterion: Criterion, rng: np.random.Generator) -> Array:
    """Predictions of a poor model."""
    return criterion.centre() + rng.standard_normal(criterion.T.shape)


def differences(function: Any, at: Array, step: float) -> Array:
    """Central differences, entry by entry."""
    out = np.empty(at.shape)
    for place in np.ndindex(*at.shape):
        up, down = at.copy(), at.copy()
        up[place] += step
        down[place] -= step
        out[place] = (function(up) - function(down)) / (2 * step)
    return out


def test_every_loss_that_needs_rows_is_here() -> None:
    here = {kind[0] for kind in LIKELIHOODS + OF_RESIDUALS}
    assert here == set(names()) - {"squared", "optimal_scoring"}


@every_loss
@pytest.mark.parametrize("seed", range(3))
def test_the_force_is_half_the_gradient_downhill(kind: Kind, seed: int) -> None:
    rng = np.random.default_rng(seed)
    criterion = bound(kind, rng)
    F = near(criterion, rng)
    wanted = -0.5 * differences(lambda G: criterion.value(G[None])[0], F, 1e-6)
    force, omega = criterion.model(F)
    size = np.abs(wanted).max()
    np.testing.assert_allclose(force, wanted, rtol=1e-5, atol=1e-6 * size)
    assert omega.shape == (N,)
    assert (omega > 0).all()
    assert np.isfinite(omega).all()


@every_loss
def test_values_of_several_predictions_at_once(kind: Kind) -> None:
    rng = np.random.default_rng(0)
    criterion = bound(kind, rng)
    several = np.stack([near(criterion, rng) for _ in range(4)])
    one_by_one = [criterion.value(F[None])[0] for F in several]
    np.testing.assert_allclose(criterion.value(several), one_by_one, rtol=1e-13)
    assert len(set(one_by_one)) == 4


@likelihoods
@pytest.mark.parametrize("q", [1, 3])
def test_half_the_hessian(kind: Kind, q: int) -> None:
    rng = np.random.default_rng(q)
    criterion = bound(kind, rng)
    assert isinstance(criterion, LikelihoodCriterion)
    r = criterion.n_outputs
    Z, theta = rng.standard_normal((q, N)), 0.5 * rng.standard_normal((q, r))
    ridge = rng.uniform(0.1, 2.0, q)

    def value(t: Array) -> float:
        t = t.reshape(q, r)
        return float(criterion.value((Z.T @ t)[None])[0] + ridge @ (t**2).sum(axis=1))

    def gradient(t: Array) -> Array:
        return differences(value, t, 1e-4)

    wanted = np.empty((q * r, q * r))
    for j, unit in enumerate(1e-4 * np.eye(q * r)):
        wanted[j] = (gradient(theta.ravel() + unit) - gradient(theta.ravel() - unit)) / 4e-4
    a, b = np.triu_indices(q)
    force, h = criterion.derivatives(criterion.forward(Z.T @ theta)[1])
    found = half_hessian(h, Z[a] * Z[b], criterion, ridge)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5 * np.abs(wanted).max())
    # The force beside h is that of prices, and both come from the same predictions.
    np.testing.assert_allclose(force, criterion.model(Z.T @ theta)[0], rtol=1e-12)


@of_residuals
@pytest.mark.parametrize("seed", range(3))
def test_weights_bound_the_loss_from_above(kind: Kind, seed: int) -> None:
    rng = np.random.default_rng(seed)
    criterion = bound(kind, rng)
    assert isinstance(criterion, ResidualCriterion)
    F = near(criterion, rng)
    e = criterion.norms(F[None])
    omega, here = criterion.weights(e)[0], criterion.value(F[None])[0]

    def gap(G: Array) -> float:
        """What lies between the bound that was made at F and the loss, at G."""
        squares = criterion.norms(G[None])[0] ** 2 - e[0] ** 2
        return float(here + omega @ squares - criterion.value(G[None])[0])

    for size in 10.0 ** np.arange(-4, 4):
        for _ in range(20):
            G = F + size * rng.standard_normal(F.shape)
            assert gap(G) >= -1e-10 * max(here, criterion.value(G[None])[0])
    # It touches at F: a step that is a thousand times shorter leaves a millionth of the gap.
    D = rng.standard_normal(F.shape)
    near_by, nearer = gap(F + 1e-2 * D), gap(F + 1e-5 * D)
    assert abs(nearer) <= 2e-6 * near_by + 1e-12 * here


@of_residuals
def test_rows_without_residual_have_finite_weights(kind: Kind) -> None:
    rng = np.random.default_rng(0)
    criterion = bound(kind, rng)
    fitted = near(criterion, rng)
    fitted[:5] = criterion.T[:5]
    for F in (fitted, criterion.T):
        weights = criterion.weights(criterion.norms(F[None]))
        force, omega = criterion.model(F)
        for found in (weights, force, omega, criterion.value(F[None])):
            assert np.isfinite(found).all()
        assert (weights > 0).all()
        assert (omega > 0).all()
        assert not force[:5].any(), "nothing pulls at a row that is fitted exactly"
    # Nothing is left: the loss is at its least, but for the least scale.
    assert criterion.value(criterion.T[None])[0] <= 1e-7 * criterion.value(fitted[None])[0]


def _huber(y: Array, w: Array, epsilon: float) -> Any:
    return create("huber", epsilon=epsilon).bind(encode_target(y, "regression"), w)


def _scaled_loss(e: Array, w: Array, epsilon: float, sigma: float) -> float:
    """Huber's loss at a given scale, as its definition says it."""
    z = e / sigma
    rows = np.where(z <= epsilon, z**2, 2.0 * epsilon * z - epsilon**2)
    return float(w @ (sigma + sigma * rows))


def _shifted_loss(e: Array, w: Array, epsilon: float, sigma: float) -> float:
    """The same less 2·epsilon·e for each row, which no scale changes and rounding comes from."""
    short = np.maximum(epsilon - e / sigma, 0.0)
    return float(sigma * (w @ (1.0 - epsilon**2 + short**2)))


def _residuals() -> Iterator[tuple[str, Array]]:
    rng = np.random.default_rng(7)
    plain = np.abs(rng.standard_normal(30))
    yield "plain", plain
    yield "heavy", np.abs(rng.standard_t(1.0, 30))
    yield "equal", np.full(30, 0.7)
    # Exact fits: some, so many that there is just still a scale, and nearly all.
    for count in (3, 12, 25):
        exact = plain.copy()
        exact[rng.permutation(30)[:count]] = 0.0
        yield f"{count} exact", exact
    yield "one outlier", np.where(np.arange(30) == 4, 1e6, plain)
    yield "tiny and huge", 10.0 ** rng.integers(-6, 7, 30)


RESIDUALS = dict(_residuals())


@pytest.mark.parametrize("epsilon", [1.0, 1.1, 1.35, 2.0, 5.0])
@pytest.mark.parametrize("which", RESIDUALS)
@pytest.mark.parametrize("weighted", [False, True])
def test_scale_of_huber(epsilon: float, which: str, weighted: bool) -> None:
    e, rng = RESIDUALS[which], np.random.default_rng(3)
    w = 10.0 ** rng.uniform(-2, 2, len(e)) if weighted else np.ones(len(e))
    criterion = _huber(e, w, epsilon)
    sigma = float(criterion.scales(e[None])[0])
    # It is convex in sigma, so that it has one valley in logarithms, too.
    grid = np.linspace(np.log(1e-12), np.log(2.0 * e.max()), 400)
    at = int(np.argmin([_shifted_loss(e, w, epsilon, s) for s in np.exp(grid)]))
    found = minimize_scalar(
        lambda s: _shifted_loss(e, w, epsilon, np.exp(s)),
        bounds=(grid[max(at - 1, 0)], grid[min(at + 1, 399)]),
        method="bounded",
        options={"xatol": 1e-10},
    )
    wanted = float(np.exp(found.x))
    if epsilon == 1.0:
        # Any scale up to the least residual does as well.
        assert _shifted_loss(e, w, epsilon, max(sigma, 1e-12)) <= found.fun + 1e-9 * w @ e
    elif at == 0:
        # Too many rows are fitted exactly: the smaller the scale, the smaller the loss.
        assert sigma == 0.0
    else:
        assert sigma == pytest.approx(wanted, rel=1e-5)
    assert criterion.total(e[None])[0] == pytest.approx(
        _scaled_loss(e, w, epsilon, wanted), rel=1e-7
    )


def test_scales_of_several_rows_of_residuals() -> None:
    e = np.array(list(RESIDUALS.values()))
    w = np.random.default_rng(0).uniform(0.5, 2.0, e.shape[1])
    criterion = _huber(e[0], w, 1.35)
    alone = [criterion.scales(row[None])[0] for row in e]
    np.testing.assert_allclose(criterion.scales(e), alone, rtol=1e-14)


@pytest.mark.parametrize("c", [2, 3, 7])
def test_contrasts(c: int) -> None:
    Q = contrasts(c)
    assert Q.shape == (c, c - 1)
    np.testing.assert_allclose(Q.T @ Q, np.eye(c - 1), atol=1e-14)
    np.testing.assert_allclose(Q.sum(axis=0), 0.0, atol=1e-14)
