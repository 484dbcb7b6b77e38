"""The data sets of the comparison, and the one function that grades a support."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

import exactk
from benchmarks.harness import Options
from exactk.papers import datasets
from exactk.papers.datasets import make_planted

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

FOLDER_VARIABLE = "EXACTK_DATA"
FILES = ("srbct", "allaml", "lymphoma", "warppie10p", "coil20", "isolet")
BUILT_IN = ("digits", "tall", "wide")
CELLS = FILES + BUILT_IN


@dataclass(frozen=True)
class Dataset:
    """A table with its target.

    Attributes
    ----------
    name : str
        Short name.
    X : ndarray of shape (n, d)
        Raw features in float64 and C order, as a user would have them.
    y : ndarray
        Class labels (n,), or real outputs (n, c).
    """

    name: str
    X: Floats
    y: NDArray[np.generic]

    @property
    def is_classification(self) -> bool:
        """True when `y` holds labels rather than outputs."""
        return self.y.ndim == 1

    @property
    def task(self) -> Literal["classification", "regression"]:
        """What `y` holds, in the words of exactk."""
        return "classification" if self.is_classification else "regression"

    @cached_property
    def outputs(self) -> Floats:
        """Centred one-hot classes, or centred outputs: the HY of the objective."""
        if self.is_classification:
            classes, codes = np.unique(self.y, return_inverse=True)
            raw = np.eye(classes.size)[codes]
        else:
            raw = self.y.astype(np.float64)
        centred: Floats = raw - raw.mean(axis=0)
        return centred

    @cached_property
    def total(self) -> float:
        """Squared norm of `outputs`: the objective of the empty support."""
        return float(np.sum(self.outputs**2))

    @cached_property
    def usable(self) -> Ints:
        """Indices of the columns that are not constant."""
        return np.flatnonzero(np.ptp(self.X, axis=0) > 0)

    @cached_property
    def standardised(self) -> Floats:
        """The usable columns with mean 0 and standard deviation 1 (n - 1), in C order."""
        Z = self.X[:, self.usable]
        Z = Z - Z.mean(axis=0)
        scaled: Floats = np.ascontiguousarray(Z / Z.std(axis=0, ddof=1))
        return scaled

    @cached_property
    def standardised_by_column(self) -> Floats:
        """The same as `standardised`, in Fortran order."""
        by_column: Floats = np.asfortranarray(self.standardised)
        return by_column

    def objective(self, support: Iterable[int]) -> float:
        """Residual sum of squares of a least-squares fit on `support`, without ridge.

        Every contestant is graded by this function, from the rows, by an orthogonal
        factorisation: none of them computes its answer this way.
        """
        chosen = np.asarray(sorted(support), dtype=np.intp)
        if chosen.size == 0:
            return self.total
        Z = self.X[:, chosen] - self.X[:, chosen].mean(axis=0)
        Z /= Z.std(axis=0, ddof=1)
        coef = np.linalg.lstsq(Z, self.outputs, rcond=None)[0]
        return float(np.sum((self.outputs - Z @ coef) ** 2))


def folder() -> Path | None:
    """Folder of the data: $EXACTK_DATA, else that beside the project, else None (the cache)."""
    named = os.environ.get(FOLDER_VARIABLE)
    project = Path(__file__).resolve().parents[1]
    path = Path(named) if named else project.parent / "shared" / "data"
    return path if path.is_dir() else None


def load(name: str) -> Dataset:
    """Load one data set of the comparison by name."""
    if name == "tall":
        made = make_planted(2_000, 1_000, 5, 20, 0.7, random_state=21_240)
    elif name == "wide":
        made = make_planted(500, 20_000, 3, 10, 0.0, random_state=40_240)
    else:
        made = datasets.load(name, folder=folder())
    return Dataset(name, made.X, made.y)


def available(names: Iterable[str] = CELLS) -> tuple[list[str], list[str]]:
    """Split `names` into those that can be loaded here and those that are left out."""
    here: list[str] = []
    missing: list[str] = []
    for name in names:
        present = name in BUILT_IN or bool(datasets.available([name], folder=folder())[0])
        (here if present else missing).append(name)
    return here, missing


def sets(options: Options, names: Iterable[str], quick: int = 1) -> Iterator[Dataset]:
    """Load those of the named sets that are here, one after the other; few in a quick run."""
    here, missing = available(names)
    options.missing.update(missing)
    yield from map(load, here[:quick] if options.quick else here)


def build(dataset: Dataset) -> exactk.Problem:
    """The problem of a data set, ridge 0."""
    return exactk.Problem.from_arrays(dataset.X, dataset.y, task=dataset.task)


def solve(problem: exactk.Problem, k: int, method: str, **options: Any) -> exactk.Result:
    """Solve without the warnings about iteration limits, which the status tells, too."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return exactk.solve(problem, k, method, **options)
