"""Data whose informative columns are known, drawn anew for each seed."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from exactk.errors import InputError
from exactk.papers.datasets.catalogue import Dataset, checksum
from exactk.params import Integer, Number, Seed
from exactk.types import Floats

__all__ = ["ar1_design", "make_genes", "make_outliers", "make_planted"]


def make_outliers(
    n: int = 2_000,
    d1: int = 100,
    d2: int = 700,
    c: int = 5,
    outliers: float = 0.0,
    random_state: Any = 0,
) -> Dataset:
    r"""Regression with informative, redundant and irrelevant columns and flipped rows.

    The data of section 5.1 of Peng and Fan (2017): X = [X₁, X₂, X₃, X₄] with X₁ and X₂ of d₁
    columns from N(0, 1), X₃ = (X₁ + X₂)/2 + ε redundant with ε from N(0, 0.1), X₄ of d₂ columns
    uniform on (-1, 1), and Y = X₁W₁ + X₂W₂ + ζ, W uniform on (0, 1), ζ from N(0, 0.5). Then the
    rows of a random share of the samples change sign.

    The paper does not say whether 0.1 and 0.5 are variances or standard deviations; they are
    variances here, which is what the second place of N(·, ·) usually holds. It does not
    say either whether a sign is flipped for a whole row of Y or for single values; a row is a
    sample, and the paper speaks of outlier samples.

    Parameters
    ----------
    n : int
        Rows.
    d1 : int
        Columns in each of X₁, X₂ and X₃.
    d2 : int
        Columns of X₄.
    c : int
        Outputs.
    outliers : float in [0, 1]
        Share of the rows that are flipped, rounded to whole rows.
    random_state : int, Generator or None
        The same seed gives the same X and the same Y but for the flipped rows, whatever
        `outliers` is.

    Returns
    -------
    Dataset
        `informative` holds the 2 d₁ columns of X₁ and X₂.

    References
    ----------
    H. Peng and Y. Fan, A general framework for sparsity regularized feature selection via
    iteratively reweighted least square minimization, AAAI 2017.

    Examples
    --------
    >>> data = make_outliers(n=50, d1=3, d2=4, c=2, outliers=0.1)
    >>> data.X.shape, data.y.shape, data.informative.tolist()
    ((50, 13), (50, 2), [0, 1, 2, 3, 4, 5])
    """
    _check_whole(n=n, d1=d1, c=c)
    Integer(0)("d2", d2)
    Number("[0, 1]")("outliers", outliers)
    rng = _generator(random_state)
    X1, X2 = rng.standard_normal((n, d1)), rng.standard_normal((n, d1))
    X3 = 0.5 * (X1 + X2) + np.sqrt(0.1) * rng.standard_normal((n, d1))
    X4 = rng.uniform(-1.0, 1.0, (n, d2))
    W = rng.uniform(0.0, 1.0, (2 * d1, c))
    Y = np.hstack([X1, X2]) @ W + np.sqrt(0.5) * rng.standard_normal((n, c))
    # The last draw, so that more outliers are more rows of the same permutation.
    flipped = rng.permutation(n)[: round(outliers * n)]
    Y[flipped] *= -1.0
    return _dataset("outliers", np.hstack([X1, X2, X3, X4]), Y, np.arange(2 * d1))


def make_planted(
    n: int = 500,
    d: int = 1_000,
    c: int = 3,
    k: int = 10,
    correlation: float = 0.5,
    snr: float = 1.0,
    random_state: Any = 0,
) -> Dataset:
    r"""Row-sparse regression: k planted columns among d that correlate with their neighbours.

    X is Gaussian with correlation ρ^|i-j| between columns i and j (AR(1)), Y = XW + noise, where k
    random rows of W hold standard normal numbers and the rest is zero, and the noise of each
    output has the variance of its signal divided by `snr`.

    Parameters
    ----------
    n, d, c, k : int
        Rows, columns, outputs, and informative columns.
    correlation : float in (-1, 1)
    snr : float, positive
        Variance of the signal over that of the noise, for each output.
    random_state : int, Generator or None

    Returns
    -------
    Dataset
        `informative` holds the k columns.

    Examples
    --------
    >>> data = make_planted(n=40, d=20, c=2, k=3, correlation=0.7)
    >>> data.X.shape, data.y.shape, len(data.informative)
    ((40, 20), (40, 2), 3)
    """
    _check_whole(n=n, d=d, c=c, k=k)
    if k > d:
        raise InputError(
            f"k={k} informative columns do not fit among d={d}", parameter="k",
            hint="lower k or raise d",
        )  # fmt: skip
    Number("(-1, 1)")("correlation", correlation)
    Number("(0, inf)")("snr", snr)
    rng = _generator(random_state)
    X = ar1_design(n, d, correlation, rng)
    rows = rng.choice(d, k, replace=False)
    signal = X[:, rows] @ rng.standard_normal((k, c))
    noise = rng.standard_normal((n, c)) * signal.std(axis=0)
    return _dataset("planted", X, signal + noise / np.sqrt(snr), np.sort(rows))


def make_genes(
    n: int = 100,
    d: int = 2_000,
    classes: int = 4,
    informative: int = 20,
    block: int = 50,
    correlation: float = 0.7,
    shift: float = 1.5,
    random_state: Any = 0,
) -> Dataset:
    r"""Classes among genes that are expressed together: columns in equally correlated blocks.

    The columns come in blocks of `block`; two columns correlate by `correlation` within a class
    if they share a block, else not at all, and each has variance 1 within a class. The
    informative columns, spread over the blocks at random, are shifted: each has a mean of its
    own for each class, drawn from N(0, shift²).

    Parameters
    ----------
    n, d : int
        Rows and columns.
    classes : int, at least 2
        As equal in size as `n` allows; rows are in random order.
    informative : int
        Columns that tell the classes apart.
    block : int
        Columns in a block; the last one may be smaller.
    correlation : float in [0, 1)
    shift : float, positive
        Standard deviation of the class means, in units of the deviation within a class.
    random_state : int, Generator or None

    Returns
    -------
    Dataset
        `informative` holds the shifted columns.

    Examples
    --------
    >>> data = make_genes(n=30, d=40, classes=3, informative=5, block=10)
    >>> data.X.shape, np.bincount(data.y).tolist(), len(data.informative)
    ((30, 40), [10, 10, 10], 5)
    """
    _check_whole(n=n, d=d, informative=informative, block=block)
    Integer(2, n)("classes", classes)
    if informative > d:
        raise InputError(
            f"informative={informative} columns do not fit among d={d}", parameter="informative",
            hint="lower it",
        )  # fmt: skip
    Number("[0, 1)")("correlation", correlation)
    Number("(0, inf)")("shift", shift)
    rng = _generator(random_state)
    y = rng.permutation(np.arange(n) % classes)
    common = rng.standard_normal((n, -(-d // block)))[:, np.arange(d) // block]
    X = np.sqrt(correlation) * common
    X += np.sqrt(1.0 - correlation) * rng.standard_normal((n, d))
    shifted = np.sort(rng.choice(d, informative, replace=False))
    X[:, shifted] += shift * rng.standard_normal((classes, informative))[y]
    return _dataset("genes", X, y, shifted)


def ar1_design(n: int, d: int, correlation: float, rng: np.random.Generator) -> Floats:
    """Gaussian rows whose columns i and j correlate by ``correlation ** |i - j|``.

    Examples
    --------
    >>> ar1_design(3, 2, 0.5, np.random.default_rng(0)).shape
    (3, 2)
    """
    X = rng.standard_normal((n, d))
    fresh = np.sqrt(1.0 - correlation**2)
    for j in range(1, d):
        X[:, j] = correlation * X[:, j - 1] + fresh * X[:, j]
    return X


def _dataset(name: str, X: Floats, y: npt.NDArray[Any], informative: npt.NDArray[Any]) -> Dataset:
    X = np.ascontiguousarray(X)
    return Dataset(
        name,
        X,
        y,
        "regression" if y.dtype.kind == "f" else "classification",
        checksum(X, y),
        informative.astype(np.intp),
    )


def _check_whole(**sizes: int) -> None:
    for name, size in sizes.items():
        Integer(1)(name, size)


def _generator(random_state: Any) -> np.random.Generator:
    Seed()("random_state", random_state)
    if isinstance(random_state, np.random.RandomState):
        random_state = random_state.randint(2**31)
    return np.random.default_rng(0 if random_state is None else random_state)
