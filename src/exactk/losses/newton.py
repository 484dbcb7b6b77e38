"""Likelihoods, fitted by Newton steps."""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property, lru_cache
from math import inf

import numpy as np

from exactk.losses.base import Criterion, Fits
from exactk.losses.softmax_native import Limits
from exactk.types import Floats, Indices

__all__ = ["LikelihoodCriterion", "half_hessian", "products"]


# Beyond so many unknowns, or outputs, a system is solved by conjugate gradients, not factored.
MANY_UNKNOWNS, MANY_OUTPUTS = 800, 64
# Bytes of the entries of all h beyond which NumPy does without them.
MOST_ENTRIES = 2**28
# Products of a Hessian with a vector for one Newton step, at most, and how well they solve it.
MOST_PRODUCTS = 60
FORCING = 0.02
# Least share of the step's promise that it must keep, and halvings until it is given up.
ARMIJO = 1e-4
MOST_HALVINGS = 40
# A last step that still moves a prediction by this much leads to no end.
SEPARATED_MOVE = 0.05
# By how much more than a Newton step promises a fit may still fall.
REACH = 3.0
# ω of a row for prices, beside the largest: rows that are certain still have some.
LEAST_CURVATURE = 1e-4
# Beside the diagonal: directions in which the likelihood is flat must not end a fit. Where all rows
# are certain so many are, and steps lead so far, that it takes more, up to this.
JITTER, MOST_JITTER = 1e-12, 1e3
# A step that cannot be taken is the end if it promises no more than this share of the objective:
# what is left is rounding.
REST = 1e-10


class LikelihoodCriterion(Criterion):
    """A deviance, twice the negative log-likelihood; it is convex in the predictions.

    A Newton step solves with half of the Hessian, Σ_i (z_i z_iᵀ) ⊗ h_i plus the ridge, where h_i is
    r × r. Its r(r + 1)/2 blocks are one product of two matrices: the entries of all h_i, and those
    of all z_i z_iᵀ. A step is halved until it keeps a share of what it promised.
    """

    def __init__(self, T: Floats, w: Floats, basis: Floats, offset: Floats) -> None:
        super().__init__(T, w, basis, offset)
        self.pairs: tuple[Indices, Indices] = self._pairs()
        first, second = self.pairs
        self.places = np.full((self.n_outputs, self.n_outputs), len(first))
        self.places[first, second] = self.places[second, first] = np.arange(len(first))

    def _pairs(self) -> tuple[Indices, Indices]:
        """Return the entries of h that are not zero throughout, on and above the diagonal."""
        return np.triu_indices(self.n_outputs)

    @property
    def scale(self) -> float:
        """What the deviance is about, in its own units: less than a share of it is nothing."""
        return float(self.w.sum())

    @abstractmethod
    def forward(self, F: Floats) -> tuple[float, Floats]:
        """Return the deviance of one F (n × r), and what `slope` needs to know of it."""

    @abstractmethod
    def working_residuals(self, means: Floats) -> Floats:
        """Return the force (n × r), weights included."""

    @abstractmethod
    def derivatives(self, means: Floats) -> tuple[Floats, Floats]:
        """Return the force (n × r) and the entries of h (pairs × n), weights included."""

    @abstractmethod
    def mean_curvature(self, means: Floats) -> Floats:
        """Return the mean of h over the directions that count, for each row, weights included."""

    @abstractmethod
    def hessian_product(self, means: Floats, Z: Floats, theta: Floats) -> Floats:
        """Return half the Hessian, without a ridge, times coefficients (q × r)."""

    @property
    def limits(self) -> Limits:
        """What compiled fits keep as these do."""
        return Limits(
            scale=self.scale, reach=REACH, armijo=ARMIJO, halvings=MOST_HALVINGS, rest=REST,
            jitter=JITTER, unknowns=MANY_UNKNOWNS,
        )  # fmt: skip

    def is_small(self, theta: Floats) -> bool:
        """Whether a system with so many coefficients (q × r) is worth a factorisation."""
        return theta.size <= MANY_UNKNOWNS and theta.shape[1] <= MANY_OUTPUTS

    def fits_in_memory(self, theta: Floats) -> bool:
        """Whether NumPy may do so, which holds the entries of all h."""
        return self.is_small(theta) and 8 * len(self.pairs[0]) * len(self.T) <= MOST_ENTRIES

    def model(self, F: Floats) -> tuple[Floats, Floats]:  # noqa: D102
        means = self.forward(F)[1]
        omega = self.mean_curvature(means)
        # All rows may be so certain that none bends any more.
        return self.working_residuals(means), np.maximum(
            omega, LEAST_CURVATURE * float(omega.max()) or 1e-12
        )

    def curvature(self) -> float:  # noqa: D102
        F = np.broadcast_to(self.null()[0], self.T.shape)
        return float(self.model(F)[1].sum() / self.w.sum())

    @cached_property
    def null_scale(self) -> float:
        """The deviance of a model without columns, or nearly: nothing is worth more."""
        return float(self.value(np.broadcast_to(self.centre(), self.T.shape)[None])[0])

    def value(self, F: Floats) -> Floats:  # noqa: D102
        return np.array([self.forward(each)[0] for each in F])

    def fits(  # noqa: D102
        self,
        Z: Floats,
        penalty: float,
        theta: Floats,
        *,
        steps: int,
        tol: float,
        ceiling: float = inf,
    ) -> Fits:
        m = len(Z)
        theta, values = theta.copy(), np.empty(m)
        converged, separated = np.zeros(m, dtype=bool), np.zeros(m, dtype=bool)
        for i in range(m):
            # A step that overflows is halved until it does not.
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                search = _NewtonFit(self, Z[i], penalty, theta[i])
                converged[i], separated[i] = search.run(steps, tol, ceiling)
            theta[i], values[i] = search.theta, search.value
        return Fits(theta, values, converged, separated)


class _NewtonFit:
    """One fit by Newton steps."""

    def __init__(
        self, criterion: LikelihoodCriterion, Z: Floats, penalty: float, theta: Floats
    ) -> None:
        self.criterion, self.Z = criterion, Z
        self.ridge = np.full(len(Z), penalty)
        self.ridge[-1] = 0.0
        self.theta = theta
        self.F = Z.T @ theta
        self.value, self.means = self._evaluate(theta, self.F)
        if not self.value <= criterion.null_scale:
            # Where classes are separated second-order prices may lead anywhere.
            self.theta = np.zeros_like(theta)
            self.theta[-1] = criterion.centre()
            self.F = Z.T @ self.theta
            self.value, self.means = self._evaluate(self.theta, self.F)
        self._squares: Floats | None = None
        self._jitter = JITTER

    def _evaluate(self, theta: Floats, F: Floats) -> tuple[float, Floats]:
        value, means = self.criterion.forward(F)
        return value + float(self.ridge @ (theta**2).sum(axis=1)), means

    def run(self, steps: int, tol: float, ceiling: float) -> tuple[bool, bool]:
        """Step until nothing is gained; return whether it ended so, and whether without end."""
        scale, moved = self.criterion.scale, 0.0
        is_factored = self.criterion.fits_in_memory(self.theta)
        for _ in range(steps):
            if is_factored:
                working_residuals, h = self.criterion.derivatives(self.means)
                gradient = self.Z @ working_residuals - self.ridge[:, None] * self.theta
                step = self._solve(gradient, h)
            else:
                working_residuals = self.criterion.working_residuals(self.means)
                gradient = self.Z @ working_residuals - self.ridge[:, None] * self.theta
                step = self._conjugate_gradients(gradient)
            # Half the gradient times the step: to second order what a full step gains.
            promise = float((gradient * step).sum())
            if not np.isfinite(promise):
                return False, False
            if promise < 0:
                # Rows that are certain leave a Hessian that rounding has bent the wrong way.
                self._jitter *= 1e3
                if self._jitter > MOST_JITTER:
                    return False, False
                continue
            if promise <= tol * max(self.value, scale):
                far = float(np.abs(self.Z.T @ step).max(initial=0.0))
                # As it is at hand: it doubles the digits of the coefficients.
                self._move(step, promise, halvings=1)
                return True, far > SEPARATED_MOVE
            if self.value - REACH * promise > ceiling:
                return False, False
            moved = self._move(step, promise)
            if moved > 0.0:
                self._jitter = JITTER
                continue
            if promise <= REST * max(self.value, scale):
                return True, False
            self._jitter *= 1e3
            if self._jitter > MOST_JITTER:
                return False, False
        return False, moved > SEPARATED_MOVE

    def _move(self, step: Floats, promise: float, halvings: int = MOST_HALVINGS) -> float:
        """Take the step, or a part of it; return how far predictions moved at most."""
        change = self.Z.T @ step
        share = 1.0
        for _ in range(halvings):
            theta, F = self.theta + share * step, self.F + share * change
            value, means = self._evaluate(theta, F)
            if value <= self.value - 2.0 * ARMIJO * share * promise:
                self.theta, self.F, self.value, self.means = theta, F, value, means
                return float(share * np.abs(change).max())
            share *= 0.5
        return 0.0

    def _solve(self, gradient: Floats, h: Floats) -> Floats:
        q, r = gradient.shape
        H = self._hessian(h)
        size = H.ravel()[:: q * r + 1]
        # Where all rows are certain the Hessian is zero.
        largest = float(size.max()) or 1.0
        size += self._jitter * np.maximum(size, 1e-3 * largest)
        try:
            step = np.linalg.solve(H, gradient.ravel())
        except np.linalg.LinAlgError:
            step = np.linalg.lstsq(H, gradient.ravel(), rcond=None)[0]
        return np.asarray(step.reshape(q, r))

    def _hessian(self, h: Floats) -> Floats:
        if self._squares is None:
            self._squares = products(self.Z)
        return half_hessian(h, self._squares, self.criterion, self.ridge)

    def _conjugate_gradients(self, gradient: Floats) -> Floats:
        """Solve with products alone, preconditioned by one system for all outputs."""
        Z, ridge, criterion = self.Z, self.ridge[:, None], self.criterion
        A = (Z * criterion.mean_curvature(self.means)) @ Z.T
        diagonal = A.ravel()[:: len(A) + 1]
        largest = float(diagonal.max()) or 1.0
        diagonal += self.ridge + self._jitter * np.maximum(diagonal, 1e-3 * largest)
        inverse = np.linalg.inv(A)
        x, left = np.zeros_like(gradient), gradient.copy()
        y = inverse @ left
        p, size = y.copy(), float((left * y).sum())
        enough = FORCING**2 * size
        for _ in range(MOST_PRODUCTS):
            Hp = criterion.hessian_product(self.means, Z, p) + ridge * p
            along = float((p * Hp).sum())
            if not along > 0:
                break
            x += (size / along) * p
            left -= (size / along) * Hp
            y = inverse @ left
            size, before = float((left * y).sum()), size
            if size <= enough:
                break
            p = y + (size / before) * p
        return x


def half_hessian(
    h: Floats, squares: Floats, criterion: LikelihoodCriterion, ridge: Floats
) -> Floats:
    """Return Σ_i (z_i z_iᵀ) ⊗ h_i plus the ridge, of qr × qr.

    Parameters
    ----------
    h : ndarray of shape (pairs, n)
        Entries of h_i, as `LikelihoodCriterion.slope` gives them.
    squares : ndarray of shape (q(q + 1)/2, n)
        Entries of z_i z_iᵀ on and above the diagonal.
    criterion : LikelihoodCriterion
    ridge : ndarray of shape (q,)
    """
    q, r = len(ridge), criterion.n_outputs
    # A last row of zeros for entries of h that are.
    blocks = np.zeros((len(h) + 1, len(squares)))
    np.matmul(h, squares.T, out=blocks[:-1])
    places, whole = criterion.places[None, :, None, :], _triangle(q)[2][:, None, :, None]
    H: Floats = blocks[places, whole].reshape(q * r, q * r)
    H.ravel()[:: q * r + 1] += np.repeat(ridge, r)
    return H


def products(Z: Floats) -> Floats:
    """Return the products of all pairs of rows, each pair once.

    Examples
    --------
    >>> products(np.array([[1.0, 2.0], [3.0, 4.0]])).tolist()
    [[1.0, 4.0], [3.0, 8.0], [9.0, 16.0]]
    """
    a, b, _ = _triangle(len(Z))
    return Z[a] * Z[b]


@lru_cache(maxsize=64)
def _triangle(q: int) -> tuple[Indices, Indices, Indices]:
    """Rows and columns of the entries on and above a diagonal, and which of them each entry is."""
    a, b = np.triu_indices(q)
    whole = np.empty((q, q), dtype=np.intp)
    whole[a, b] = whole[b, a] = np.arange(len(a))
    return a, b, whole
