"""What a loss is: parameters, the targets that it takes, and itself once it has a target.

The search needs two things of a `Criterion`: its value, and at a fit a force and a weight for each
row. With these the formulas of squared loss price every move, and the value decides.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from exactk.data.targets import Target, Task
from exactk.errors import InputError, Setting
from exactk.params import Check
from exactk.types import Bools, Floats, Indices

if TYPE_CHECKING:
    from exactk.losses.softmax_native import CompiledSoftmax

__all__ = [
    "Criterion",
    "Fits",
    "Loss",
    "contrasts",
    "design",
    "reduced_outputs",
]


@dataclass(frozen=True, eq=False)
class Fits:
    """Fits on several supports.

    Attributes
    ----------
    theta : ndarray of shape (m, q, r)
        Coefficients, the intercepts last.
    values : ndarray of shape (m,)
        Objectives, ridge term included.
    converged : ndarray of bool
        Whether the fit has come to its end; not so where it was given up for it could not come
        below the ceiling, or where the steps were used up.
    separated : ndarray of bool
        Whether coefficients grow without end while the loss falls to a limit: separated classes.
    """

    theta: Floats
    values: Floats
    converged: Bools
    separated: Bools


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

    def cold_start(self, Z: Floats, penalty: float) -> Floats:
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


class Loss(BaseEstimator, ABC):
    """Base of the losses: its parameters are those of ``__init__``, stored as they are.

    Attributes
    ----------
    name : str
    summary : str
        What is summed over the rows.
    task : {"auto", "classification", "regression"}
        What y is taken for where nothing else is said.
    by_moments : bool
        Whether it is a squared error, so that moments are enough and proofs are possible.
    convex : bool
        Whether a fit on given columns has one minimum, so that enumeration is a proof.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    task: ClassVar[Task] = "auto"
    by_moments: ClassVar[bool] = False
    checks: ClassVar[Mapping[str, Check]] = {}

    @property
    def convex(self) -> bool:
        """Whether what is minimised over the coefficients has no local minima."""
        return True

    @classmethod
    def option_names(cls) -> list[str]:
        """Return the names of the parameters."""
        names: list[str] = cls._get_param_names()
        return names

    def check(self) -> None:
        """Raise for a parameter that is out of its range."""
        for name, check in self.checks.items():
            check(name, getattr(self, name))

    def check_task(self, task: str, *, classes: bool) -> None:
        """Raise for a target that it is not made for.

        Parameters
        ----------
        task : {"classification", "regression"}
        classes : bool
            Whether each row has one label.
        """
        return

    def check_rows(self, target: Target, weights: Floats, numbers: Indices) -> None:
        """Raise for values that a model cannot be fitted to.

        Parameters
        ----------
        target : Target
        weights : ndarray of shape (n,)
        numbers : ndarray of shape (n,)
            Of the rows, as the user counts them.
        """
        return

    @abstractmethod
    def bind(self, target: Target, weights: Floats) -> Criterion:
        """Return the loss of a target, as a function of what a model predicts for each row.

        Parameters
        ----------
        target : Target
            Of rows that count: none has weight zero.
        weights : ndarray of shape (n,)
        """

    def total(self, target: Target, weights: Floats) -> Callable[[Floats], float]:
        """Return what sums the loss of predictions for all outputs (n × outputs), fitted or not.

        Parameters
        ----------
        target, weights
            As in `bind`.
        """
        criterion = self.bind(target, weights)
        return lambda P: float(criterion.value(((P - criterion.offset) @ criterion.basis)[None])[0])

    def __eq__(self, other: object) -> bool:
        """Whether both are the same loss with the same parameters."""
        return type(self) is type(other) and self.get_params() == other.get_params()

    def __hash__(self) -> int:
        """Return a number that equal losses share."""
        return hash((type(self), tuple(sorted(self.get_params().items()))))


def contrasts(n_classes: int) -> Floats:
    """Return orthonormal columns that are orthogonal to a constant: one fewer than classes.

    What a model says of all classes alike says nothing; in these coordinates it is left out, and
    norms stay as they are.

    Examples
    --------
    >>> contrasts(2).round(4).ravel().tolist()
    [0.7071, -0.7071]
    """
    # Differences to the mean of the later ones, Helmert's choice.
    out = np.zeros((n_classes, n_classes - 1))
    for j in range(n_classes - 1):
        left = n_classes - j
        out[j, j] = np.sqrt((left - 1) / left)
        out[j + 1 :, j] = -1.0 / np.sqrt(left * (left - 1))
    return out


def reduced_outputs(target: Target) -> tuple[Floats, Floats, Floats]:
    """Return the target in coordinates without what is constant, those, and what was taken off.

    Returns
    -------
    T : ndarray of shape (n, r)
    basis : ndarray of shape (n_outputs, r)
    offset : ndarray of shape (n_outputs,)
        Rows of the target are ``offset + basis @ T[i]``.
    """
    Y = target.block(0, target.n_rows)
    c = Y.shape[1]
    if target.codes is None or c < 2:
        return Y, np.eye(c), np.zeros(c)
    # One-hot rows add up to one: of c numbers c − 1 are free.
    basis = contrasts(c)
    return Y @ basis, basis, np.full(c, 1.0 / c)


def refuse_numbers(name: str, task: str, classes: bool) -> None:
    """Raise where a loss is for classes, one a row, and the target is something else."""
    if classes:
        return
    what = "numbers" if task == "regression" else "several labels a row"
    loss = Setting("loss", "squared")
    way: tuple[str | Setting, ...] = ("give one column of y, or take ", loss)
    if task == "regression":
        way = (
            "if they are classes, set ", Setting("task", "classification"), " (TopKClassifier has "
            "it), or take ", loss, ", 'huber' or 'l21'",
        )  # fmt: skip
    raise InputError(
        f"loss {name!r} is for classes, one a row, and y holds {what}", parameter="loss", hint=way,
    )  # fmt: skip
