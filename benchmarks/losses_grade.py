"""The l2,1 loss of a choice of columns, from the rows, by code that is not exactk's."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from benchmarks.data import Dataset, Floats

# Residuals below this share of the mean one get no larger weight.
ZERO = 1e-9
# Steps at most, and the share of the value that may be missing at the end.
STEPS, CLOSE = 3_000, 1e-7


class Graded(NamedTuple):
    """A sum of row norms and a number that the least one is not below."""

    value: float
    bound: float


def l21_loss(dataset: Dataset, support: Iterable[int]) -> Graded:
    """The least ‖Y − XW − 1bᵀ‖₂,₁ on these columns, standardised; Y is one-hot."""
    Z, Y = _columns(dataset, support), dataset.outputs
    return least_row_norms(np.hstack([Z, np.ones((len(Z), 1))]), Y)


def nmapg_loss(
    dataset: Dataset, support: Iterable[int], gamma: float, *, intercept: bool = False
) -> Graded:
    """The least ‖XW − Y‖₂,₁ + γ‖W‖₂,₁ on these columns: eq. 2.3 of nmAPG, X and Y centred.

    A row γe_j of X with the target 0 adds γ‖w_j‖, so that both terms are one. An intercept is in
    no penalty.
    """
    Z, Y = _columns(dataset, support), dataset.outputs
    k = Z.shape[1]
    X = np.vstack([Z, gamma * np.eye(k)])
    if intercept:
        X = np.hstack([X, np.repeat([1.0, 0.0], [len(Z), k])[:, None]])
    return least_row_norms(X, np.vstack([Y, np.zeros((k, Y.shape[1]))]))


def _columns(dataset: Dataset, support: Iterable[int]) -> Floats:
    X = dataset.X[:, sorted(support)]
    Z: Floats = (X - X.mean(axis=0)) / X.std(axis=0, ddof=1)
    return Z


def least_row_norms(X: Floats, Y: Floats) -> Graded:
    """Minimise ‖Y − XW‖₂,₁ by reweighted least squares.

    With the weights ω of a step and its residuals E, U = ωE has XᵀU = 0. For any such U with rows
    no longer than 1 the sum of ⟨y_i, u_i⟩, which is that of ⟨e_i, u_i⟩, is not above the loss of
    any W: the bound.
    """
    weights, value, bound = np.ones(len(X)), np.inf, 0.0
    for step in range(STEPS):
        half = np.sqrt(weights)[:, None]
        W = np.linalg.lstsq(half * X, half * Y, rcond=None)[0]
        E = Y - X @ W
        e = np.sqrt((E**2).sum(axis=1))
        value = min(value, float(e.sum()))
        if step > 0:
            U = weights[:, None] * E
            longest = float(np.sqrt((U**2).sum(axis=1)).max())
            bound = max(bound, float(np.einsum("ij,ij->", E, U)) / max(longest, 1.0))
        if value - bound <= CLOSE * value:
            break
        weights = 1.0 / np.maximum(e, ZERO * e.mean())
    return Graded(value, bound)
