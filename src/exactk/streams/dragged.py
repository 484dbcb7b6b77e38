"""A pass over a stream that drags the targets of classes apart, as DLSR does."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from exactk.streams.base import Block, Fold
from exactk.streams.coding import Coding, Labels
from exactk.streams.reweighted import Affine, counted_rows

__all__ = ["DragFold", "Dragged"]

Floats = npt.NDArray[np.float64]


@dataclass
class Dragged:
    """What a pass has come to.

    Attributes
    ----------
    XT : ndarray of shape (m, c)
        XᵀT of the next targets T = Y + B∘M.
    T_sum : ndarray of shape (c,)
        Their weighted sum.
    loss : float
        ‖XW + 1tᵀ − T‖².
    n_rows : int
        Rows of positive weight.
    """

    XT: Floats
    T_sum: Floats
    loss: float
    n_rows: int


@dataclass
class _State:
    labels: Labels | None
    found: Dragged


class DragFold(Fold[_State, Dragged]):
    """Finds the M ≥ 0 that goes with W and t, and the products with the targets that it makes.

    Parameters
    ----------
    coding : Coding
        Of classes, known by now.
    affine : Affine
        One-hot rows stay as they are.
    W : ndarray of shape (m, c)
    t : ndarray of shape (c,)
    """

    def __init__(self, coding: Coding, affine: Affine, W: Floats, t: Floats) -> None:
        self.coding, self.affine, self.t = coding, affine, t
        self.coefficients = affine.factor[:, None] * W

    def begin(self) -> _State:  # noqa: D102
        shape = self.coefficients.shape
        return _State(self.coding.start(), Dragged(np.zeros(shape), np.zeros(shape[1]), 0.0, 0))

    def add(self, state: _State, block: Block) -> None:  # noqa: D102
        X, Y, weights = counted_rows(block, self.coding, state.labels, self.affine)
        found, w = state.found, weights[:, None]
        B = np.where(Y > 0, 1.0, -1.0)
        E = X @ self.coefficients + self.t - Y
        BM = B * np.maximum(B * E, 0.0)
        T = w * (Y + BM)
        found.XT += self.affine.factor[:, None] * (X.T @ T)
        found.T_sum += T.sum(axis=0)
        found.loss += float((w * (E - BM) ** 2).sum())
        found.n_rows += len(X)

    def close(self, state: _State) -> Dragged | None:  # noqa: D102
        return state.found if state.found.n_rows else None

    def merge(self, one: Dragged, other: Dragged) -> Dragged:  # noqa: D102
        return Dragged(
            one.XT + other.XT,
            one.T_sum + other.T_sum,
            one.loss + other.loss,
            one.n_rows + other.n_rows,
        )
