"""What a loss is: parameters, the targets that it takes, and itself once it has a target."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator

from exactk.checks import Check
from exactk.errors import InputError
from exactk.losses.criterion import Criterion
from exactk.targets import Target, Task

__all__ = ["Loss", "contrasts", "outputs_apart"]

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]


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


def outputs_apart(target: Target) -> tuple[Floats, Floats, Floats]:
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
    way = (
        "give task='classification' (TopKClassifier has it) if they are classes, or take "
        "loss='squared', 'huber' or 'l21'"
        if task == "regression"
        else "give one column of y, or take loss='squared'"
    )
    raise InputError(f"loss {name!r} is for classes, one a row, and y holds {what}; {way}")
