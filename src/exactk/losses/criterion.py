"""A loss that has its target: values, a quadratic model, and fits on few columns, many at once.

A model predicts F = Zᵀθ, with Z the q × n columns of a support and a last one of ones, and θ of
q × r. The objective is the sum of the losses of the rows plus ``penalty·‖θ‖²``, the row of the
intercept excepted. Near F a loss is like ω·‖z − F‖² for each row, with ω·(z − F) the force: half of
the gradient, downhill. All functions take several F at once, in the first axis.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from exactk.losses.softmax_native import CompiledSoftmax

__all__ = ["Criterion", "Fits", "design"]

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Fits:
    """Fits on several supports.

    Attributes
    ----------
    theta : ndarray of shape (m, q, r)
        Coefficients, the intercepts last.
    values : ndarray of shape (m,)
        Objectives, ridge term included.
    settled : ndarray of bool
        Whether the fit has come to its end; not so where it was given up for it could not come
        below the ceiling, or where the steps were used up.
    endless : ndarray of bool
        Whether coefficients grow without end while the loss falls to a limit: separated classes.
    """

    theta: Floats
    values: Floats
    settled: Flags
    endless: Flags


class Criterion(ABC):
    """A loss with its target.

    Attributes
    ----------
    T : ndarray of shape (n, r)
        The target, in coordinates that leave out what is constant.
    w : ndarray of shape (n,)
        Weights of the rows, none zero.
    basis : ndarray of shape (n_outputs, r)
    offset : ndarray of shape (n_outputs,)
        Outputs are ``offset + basis @ f`` of what a model predicts.
    """

    def __init__(self, T: Floats, w: Floats, basis: Floats, offset: Floats) -> None:
        self.T, self.w, self.basis, self.offset = T, w, basis, offset

    @property
    def n_outputs(self) -> int:
        """How many numbers a model predicts for each row."""
        return self.T.shape[1]

    @abstractmethod
    def value(self, F: Floats) -> Floats:
        """Return the sum of the losses, for each of several F of n × r."""

    @abstractmethod
    def model(self, F: Floats) -> tuple[Floats, Floats]:
        """Return the force (n × r) and ω (n) of one F, for prices: ω is kept from being huge."""

    @abstractmethod
    def curvature(self) -> float:
        """Return how strongly the loss bends, the mean ω, where a model explains nothing."""

    @abstractmethod
    def centre(self) -> Floats:
        """Return the intercepts of a model without columns, or what a fit may start from."""

    @abstractmethod
    def fits(
        self,
        Z: Floats,
        penalty: float,
        theta: Floats,
        *,
        steps: int,
        tol: float,
        ceiling: float = inf,
    ) -> Fits:
        """Fit on the columns of several supports.

        Parameters
        ----------
        Z : ndarray of shape (m, q, n)
            As `design` gives them.
        penalty : float
        theta : ndarray of shape (m, q, r)
            To start from.
        steps : int
            Most steps.
        tol : float
            Share of the objective by which a step must lower it for another one to be made.
        ceiling : float
            A fit that will not come below it may be left unfinished.
        """

    def compiled(self, X: Floats, penalty: float) -> CompiledSoftmax | None:
        """Return the same in C for the columns of a table (m × n), or None where there is none."""
        return None

    def cold(self, Z: Floats, penalty: float) -> Floats:
        """Return coefficients to start the fits on several supports from, where none are known."""
        m, q, _ = Z.shape
        theta = np.zeros((m, q, self.n_outputs))
        theta[:, -1] = self.centre()
        return theta

    def null(self) -> tuple[Floats, float]:
        """Return the intercepts of a model without columns, and its loss."""
        Z = np.ones((1, 1, len(self.T)))
        fit = self.fits(Z, 0.0, self.centre()[None, None], steps=1000, tol=1e-13)
        return fit.theta[0, 0], float(fit.values[0])

    def outputs(self, theta: Floats) -> tuple[Floats, Floats]:
        """Return coefficients (outputs × columns) and intercepts of one fit, of all outputs."""
        return self.basis @ theta[:-1].T, self.offset + self.basis @ theta[-1]


def design(columns: Floats) -> Floats:
    """Return columns (m × k × n) with a last one of ones.

    Examples
    --------
    >>> design(np.zeros((1, 1, 3)))
    array([[[0., 0., 0.],
            [1., 1., 1.]]])
    """
    m, k, n = columns.shape
    Z = np.empty((m, k + 1, n))
    Z[:, :k] = columns
    Z[:, k] = 1.0
    return Z
