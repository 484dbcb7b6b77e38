"""Linear support vector machines, one for each pair of classes, as libsvm has them.

libsvm needs millions of small steps where a large C meets classes that overlap. Such pairs, and no
others, are solved by an interior-point method instead, whose steps cost n·k² and are few.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from exactk.types import Floats, Indices

__all__ = ["LinearSVM", "fit_svm", "hinge_objective", "interior_point"]


# Up to this C libsvm is left alone: it is quick there, and its answer is the usual one.
MODEST_COST = 1.0
# Steps of libsvm for one pair, beyond which the interior-point method takes less time.
MOST_STEPS = 5_000
# That method takes ten to thirty, and ends when the gap is this share of the objective.
MOST_INNER_STEPS = 100
GAP = 1e-8
# Share of the way to the border of what is allowed.
TO_BORDER = 0.995


@dataclass(frozen=True, eq=False)
class LinearSVM:
    """One hyperplane for each pair of classes i < j, above zero on the side of i.

    Attributes
    ----------
    coef : ndarray of shape (n_pairs, k)
    intercept : ndarray of shape (n_pairs,)
    n_classes : int
    """

    coef: Floats
    intercept: Floats
    n_classes: int

    def predict(self, Z: Floats) -> Indices:
        """Return the class that wins most pairs; of equals the first."""
        wins = Z @ self.coef.T + self.intercept > 0
        first, second = np.triu_indices(self.n_classes, 1)
        # Pairs come in the order of their first class; of the second they are sorted.
        by_second = np.argsort(second, kind="stable")
        starts = np.searchsorted(first, np.arange(self.n_classes - 1))
        ends = np.searchsorted(second[by_second], np.arange(1, self.n_classes))
        votes = np.zeros((len(Z), self.n_classes), dtype=np.intp)
        votes[:, :-1] += np.add.reduceat(wins, starts, axis=1, dtype=np.intp)
        votes[:, 1:] += np.add.reduceat(~wins[:, by_second], ends, axis=1, dtype=np.intp)
        return votes.argmax(axis=1)


def fit_svm(Z: Floats, codes: Indices, C: float) -> LinearSVM:
    """Fit ½‖w‖² + C·Σ max(0, 1 − y(wᵀz + b)) for each pair of classes.

    Parameters
    ----------
    Z : ndarray of shape (n, k)
        Standardised columns.
    codes : ndarray of intp
        Classes 0, 1 and so on, each of them present, two or more.
    C : float

    Returns
    -------
    LinearSVM

    Examples
    --------
    >>> model = fit_svm(np.array([[-1.0], [1.0]]), np.array([0, 1]), 1.0)
    >>> model.coef, model.predict(np.array([[-0.1], [0.1]]))
    (array([[-1.]]), array([0, 1]))
    """
    from sklearn.svm import SVC

    steps = MOST_STEPS if C > MODEST_COST else -1
    with warnings.catch_warnings():
        # What the limit cut short is solved below.
        warnings.simplefilter("ignore")
        model = SVC(kernel="linear", C=C, max_iter=steps).fit(Z, codes)
    found = _hyperplanes(model)
    for pair in np.flatnonzero(model.n_iter_ >= steps) if steps > 0 else ():
        i, j = (int(side[pair]) for side in np.triu_indices(found.n_classes, 1))
        rows = np.flatnonzero((codes == i) | (codes == j))
        solved = interior_point(Z[rows], np.where(codes[rows] == i, 1.0, -1.0), C)
        if solved is None:
            # Not seen to happen; patience is then the way.
            return _hyperplanes(SVC(kernel="linear", C=C).fit(Z, codes))
        found.coef[pair], found.intercept[pair] = solved
    return found


def _hyperplanes(model: Any) -> LinearSVM:
    """The machine of a fitted `SVC`; its own ``coef_`` takes long where classes are many."""
    n_classes = len(model.classes_)
    ends = np.cumsum(model.n_support_)
    parts = [slice(end - size, end) for end, size in zip(ends, model.n_support_, strict=True)]
    # By class, what its support vectors add to the pairs with each of the others.
    shares = np.array([model.dual_coef_[:, part] @ model.support_vectors_[part] for part in parts])
    first, second = np.triu_indices(n_classes, 1)
    # Of two classes scikit-learn turns the sign, so that the second is above zero.
    sign = -1.0 if n_classes == 2 else 1.0
    coef = sign * (shares[first, second - 1] + shares[second, first])
    return LinearSVM(coef, sign * model.intercept_, n_classes)


def hinge_objective(Z: Floats, y: Floats, C: float, w: Floats, b: float) -> float:
    """Return ½‖w‖² + C·Σ max(0, 1 − y(wᵀz + b)).

    Examples
    --------
    >>> hinge_objective(np.array([[2.0]]), np.array([1.0]), 10.0, np.array([0.25]), 0.0)
    5.03125
    """
    return float(0.5 * w @ w + C * np.maximum(1.0 - y * (Z @ w + b), 0.0).sum())


def interior_point(Z: Floats, y: Floats, C: float) -> tuple[Floats, float] | None:
    """Return w and b of the machine for two classes, or None if the method does not converge.

    Mehrotra's predictor and corrector for min ½‖w‖² + C·Σ hinge losses and its dual,
    max Σα − ½‖Gᵀα‖² over 0 ≤ α ≤ C and yᵀα = 0 with G = diag(y)Z; each step solves one system in
    w and b. It ends when the two are within 1e-8 of each other, relative to the first.

    Parameters
    ----------
    Z : ndarray of shape (n, k)
    y : ndarray of shape (n,)
        1 or −1, both present.
    C : float

    Examples
    --------
    >>> w, b = interior_point(np.array([[-1.0], [1.0]]), np.array([-1.0, 1.0]), 1.0)
    >>> w.round(6), abs(round(b, 6))
    (array([1.]), 0.0)
    """
    n, k = Z.shape
    # The last coefficient is b, which has no penalty.
    G = np.column_stack([Z, np.ones(n)]) * y[:, None]
    penalty = np.append(np.ones(k), 0.0)
    v = np.zeros(k + 1)
    alpha, low, high = np.full(n, C / 2.0), np.ones(n), np.full(n, 2.0)
    with np.errstate(all="ignore"):
        for _ in range(MOST_INNER_STEPS):
            room = C - alpha
            pull = alpha @ G
            primal = hinge_objective(Z, y, C, v[:k], float(v[k]))
            dual = float(alpha.sum() - 0.5 * pull[:k] @ pull[:k])
            if not np.isfinite(primal):
                return None
            # The dual is a bound only where its equality holds.
            if primal - dual <= GAP * primal and abs(pull[k]) <= GAP * C * n:
                return v[:k], float(v[k])
            weight = 1.0 / (low / alpha + high / room)
            left = G @ v - 1.0 - low + high
            M = G.T @ (G * weight[:, None])
            M[np.diag_indices_from(M)] += penalty
            point = _Point(alpha, room, low, high, G, weight, left, pull - penalty * v)
            try:
                _, d_alpha, d_low, d_high = point.direction(M, 0.0, 0.0)
                mu = point.distance()
                ahead = point.moved(point.reach(d_alpha, d_low, d_high), d_alpha, d_low, d_high)
                centre = mu * (ahead / mu) ** 3
                dv, d_alpha, d_low, d_high = point.direction(
                    M, centre - d_alpha * d_low, centre + d_alpha * d_high
                )
            except np.linalg.LinAlgError:
                return None
            step = point.reach(d_alpha, d_low, d_high)
            v = v + step * dv
            alpha, low, high = alpha + step * d_alpha, low + step * d_low, high + step * d_high
    return None


@dataclass(frozen=True, eq=False)
class _Point:
    """An interior point, what its system is made of, and how far it can move."""

    alpha: Floats
    room: Floats
    low: Floats
    high: Floats
    G: Floats
    weight: Floats
    left: Floats
    imbalance: Floats

    def direction(
        self, M: Floats, aim_low: Floats | float, aim_high: Floats | float
    ) -> tuple[Floats, Floats, Floats, Floats]:
        """Change of v, α, low and high towards α·low = aim_low and (C − α)·high = aim_high."""
        to_low = aim_low / self.alpha - self.low
        to_high = aim_high / self.room - self.high
        right = self.weight * (to_low - to_high - self.left)
        dv: Floats = np.linalg.solve(M, self.imbalance + right @ self.G).astype(np.float64)
        d_alpha = right - self.weight * (self.G @ dv)
        d_low = to_low - self.low / self.alpha * d_alpha
        d_high = to_high + self.high / self.room * d_alpha
        return dv, d_alpha, d_low, d_high

    def distance(self) -> float:
        """Mean of α·low and (C − α)·high, which are zero at the solution."""
        return float(self.alpha @ self.low + self.room @ self.high) / (2 * len(self.alpha))

    def moved(self, step: float, d_alpha: Floats, d_low: Floats, d_high: Floats) -> float:
        """The same after a step."""
        below = (self.alpha + step * d_alpha) @ (self.low + step * d_low)
        above = (self.room - step * d_alpha) @ (self.high + step * d_high)
        return float(below + above) / (2 * len(self.alpha))

    def reach(self, d_alpha: Floats, d_low: Floats, d_high: Floats) -> float:
        """The longest step, 1 at most, that keeps all four above zero."""
        most = 1.0
        for value, change in (
            (self.alpha, d_alpha),
            (self.room, -d_alpha),
            (self.low, d_low),
            (self.high, d_high),
        ):
            falls = change < 0
            if falls.any():
                most = min(most, TO_BORDER * float((-value[falls] / change[falls]).min()))
        return most
