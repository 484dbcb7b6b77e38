"""The objective and the best subset by definition: standardise, `lstsq`, try every subset.

Nothing here comes from the package: these are the reference that the tests compare it with.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from exactk.types import Floats


def one_hot(labels: Any) -> Floats:
    labels = np.asarray(labels)
    return (labels[:, None] == np.unique(labels)[None, :]).astype(np.float64)


class Reference:
    """min ‖√w(HY − HX_S W)‖² + ridge·‖W‖² on standardised columns, as the definition says it."""

    def __init__(
        self,
        X: Any,
        y: Any,
        *,
        ridge: float = 0.0,
        scale: bool = True,
        weights: Any = None,
    ) -> None:
        X = np.asarray(X, dtype=np.float64)
        y = np.asarray(y)
        classes = y.ndim == 1 and y.dtype.kind in "iUOb"
        Y = one_hot(y) if classes else y.astype(np.float64).reshape(len(y), -1)
        w = np.ones(len(X)) if weights is None else np.asarray(weights, dtype=np.float64)
        root = np.sqrt(w)[:, None]
        centred = X - np.average(X, axis=0, weights=w)
        spread = np.sqrt((w @ centred**2) / (w.sum() - 1.0))
        self.usable = [j for j in range(X.shape[1]) if np.ptp(X[w > 0, j]) > 0]
        if scale:
            centred[:, self.usable] /= spread[self.usable]
        self.X = root * centred
        self.Y = root * (Y - np.average(Y, axis=0, weights=w))
        self.total = float((self.Y**2).sum())
        self.penalty = ridge * float((self.X[:, self.usable] ** 2).sum()) / len(self.usable)

    def fit(self, support: Iterable[int]) -> tuple[Floats, float]:
        """Coefficients of the standardised columns (k × c) and the objective."""
        S = list(support)
        k, c = len(S), self.Y.shape[1]
        if k == 0:
            return np.zeros((0, c)), self.total
        design = np.vstack([self.X[:, S], np.sqrt(self.penalty) * np.eye(k)])
        target = np.vstack([self.Y, np.zeros((k, c))])
        # Columns of very different size are brought to one length for the sake of rounding.
        length = np.sqrt((design**2).sum(axis=0))
        W = np.linalg.lstsq(design / length, target, rcond=1e-7)[0] / length[:, None]
        return W, float(((target - design @ W) ** 2).sum())

    def objective(self, support: Iterable[int]) -> float:
        return self.fit(support)[1]

    def best(self, k: int) -> tuple[tuple[int, ...], float]:
        """The best subset and its objective, by trying all."""
        return min(
            ((S, self.objective(S)) for S in combinations(self.usable, k)), key=lambda pair: pair[1]
        )

    def greedy(self, k: int) -> tuple[list[int], list[float]]:
        """Forward selection, each step by fitting every candidate."""
        order: list[int] = []
        trace = []
        for _ in range(k):
            left = [p for p in self.usable if p not in order]
            objectives = [self.objective([*order, p]) for p in left]
            order.append(left[int(np.argmin(objectives))])
            trace.append(min(objectives))
        return order, trace

    def best_swap(self, support: Iterable[int]) -> float:
        """The lowest objective that exchanging one member can reach."""
        S = list(support)
        outside = [p for p in self.usable if p not in S]
        return min(
            (self.objective([*S[:i], *S[i + 1 :], p]) for i in range(len(S)) for p in outside),
            default=np.inf,
        )


def make_classes(
    n: int = 60, d: int = 9, c: int = 3, seed: int = 0
) -> tuple[Floats, npt.NDArray[np.int64]]:
    """Correlated columns, classes that hang on several of them, no ties."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) @ (np.eye(d) + 0.4 * rng.standard_normal((d, d)))
    scores = X @ rng.standard_normal((d, c)) + 2.0 * rng.standard_normal((n, c))
    y = scores.argmax(axis=1)
    y[:c] = np.arange(c)
    return X, y


def make_numbers(n: int = 60, d: int = 9, c: int = 1, seed: int = 0) -> tuple[Floats, Floats]:
    """The same with numbers for a target."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) @ (np.eye(d) + 0.4 * rng.standard_normal((d, d)))
    Y = X @ rng.standard_normal((d, c)) + 3.0 * rng.standard_normal((n, c))
    return X, Y[:, 0] if c == 1 else Y
