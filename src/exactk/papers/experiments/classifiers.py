"""Accuracy of a few standard classifiers on a test part, all learnt from the training part."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from exactk.errors import InputError, did_you_mean, join_items
from exactk.papers.experiments.column_check import checked_table, standardiser
from exactk.papers.experiments.linear_svm import fit_svm
from exactk.papers.experiments.splits import fold_splits
from exactk.params import Seed
from exactk.types import Floats, Indices

__all__ = ["CLASSIFIERS", "COSTS", "accuracy", "check_classifier"]


# The C that "svm-tuned" chooses from, and the folds it chooses by.
COSTS = (1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0)
FOLDS = 5
# Numbers in a block of distances.
BLOCK = 2**20
# Distances that differ by less than this share of the squared norms differ by rounding.
ROUNDING = 1e-13
# Ridge for each row: without effect but where columns depend on each other.
NEGLIGIBLE = 1e-8


def accuracy(
    classifier: str,
    X_train: Any,
    y_train: Any,
    X_test: Any,
    y_test: Any,
    *,
    random_state: object = None,
) -> float:
    """Return the share of test rows that a classifier gets right.

    Columns are standardised (mean 0, standard deviation 1 with n − 1, constant ones 0) by the
    training part alone. A test row whose class does not occur in training counts as wrong.

    Parameters
    ----------
    classifier : {"1nn", "svm", "svm-tuned", "linear"}
        "1nn" is the nearest training row; of rows at the same distance the first. "svm" is the
        linear support vector machine, C = 1, one for each pair of classes as in libsvm.
        "svm-tuned" is the same with C from 10⁻³, 10⁻², …, 10², the best in five stratified folds
        of the training part (fewer where no class has five rows; equals go to the smaller C), each
        standardised by itself; where libsvm takes very long for C > 1 an interior-point method
        finds the same machine. "linear" is the least-squares fit of one-hot classes with
        intercept, the largest output wins; the paper of CD-LSR, whose figure 3 uses "a linear
        classifier", does not say which. It has a negligible ridge, 10⁻⁸ a row, so that columns
        may depend on each other.
    X_train, X_test : array-like of shape (n, k) and (m, k)
        The chosen columns.
    y_train, y_test : array-like of shape (n,) and (m,)
        Labels.
    random_state : int, Generator or None
        Seed of the folds of "svm-tuned"; None is a fixed seed.

    Returns
    -------
    float

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> [round(accuracy(name, X[::2], y[::2], X[1::2], y[1::2]), 4) for name in CLASSIFIERS]
    [0.96, 0.9733, 0.9733, 0.8667]
    """
    predict = _PREDICTORS[check_classifier(classifier)]
    Seed()("random_state", random_state)
    X, T = checked_table("X_train", X_train), checked_table("X_test", X_test)
    if X.shape[1] == 0:
        raise InputError(
            "X_train has no columns: a classifier needs a support of one or more",
            parameter="X_train",
        )
    if X.shape[1] != T.shape[1]:
        raise InputError(
            f"X_train has {X.shape[1]} columns, X_test {T.shape[1]}", parameter="X_test"
        )
    y, wanted = _labels("y_train", y_train, len(X)), _labels("y_test", y_test, len(T))
    if (y.dtype.kind in "US") != (wanted.dtype.kind in "US"):
        raise InputError(
            f"y_train holds {y.dtype} and y_test {wanted.dtype}: not the same labels",
            parameter="y_test",
        )
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise InputError(
            f"y_train has one class, {str(classes[0])!r}: a classifier needs two or more",
            parameter="y_train", hint="split within the classes (share_split, fold_splits)",
        )  # fmt: skip
    return float((classes[predict(X, codes, T, random_state)] == wanted).mean())


def check_classifier(name: str) -> str:
    """Return the name of a classifier, or raise with the nearest one.

    Examples
    --------
    >>> check_classifier("svm-tunde")
    Traceback (most recent call last):
    ...
    exactk.errors.InputError: unknown classifier 'svm-tunde'; did you mean 'svm-tuned'? (known:
    1nn, svm, svm-tuned, linear)
    """
    if name not in CLASSIFIERS:
        raise InputError(
            f"unknown classifier {name!r}{did_you_mean(str(name), CLASSIFIERS)} (known: "
            f"{', '.join(CLASSIFIERS)})", parameter="classifier",
        )  # fmt: skip
    return name


def _labels(name: str, y: Any, n_rows: int) -> npt.NDArray[Any]:
    labels = np.asarray(y)
    if labels.shape != (n_rows,):
        raise InputError(
            f"{name} must be {n_rows} labels, one a row, not shape {labels.shape}", parameter=name
        )
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        bad = np.flatnonzero(~np.isfinite(labels))
        raise InputError(
            f"{name} has NaN or infinity in {bad.size} row(s), first in row {bad[0]}",
            parameter=name,
        )
    if labels.dtype.kind == "O" and len({type(label) for label in labels}) > 1:
        kinds = sorted({type(label).__name__ for label in labels})
        raise InputError(
            f"{name} mixes labels of types {join_items(kinds)}", parameter=name,
            hint="give them one type",
        )  # fmt: skip
    if any(label is None for label in labels[:1]):
        raise InputError(f"{name} has no labels: they are None", parameter=name)
    return labels


def _standardised(X: Floats, T: Floats) -> tuple[Floats, Floats]:
    scale = standardiser(X)
    return scale.apply(X), scale.apply(T)


def _compact(X: Floats, T: Floats) -> tuple[Floats, Floats]:
    """Standardised parts, of wide tables in coordinates with the same inner products."""
    Z, T = _standardised(X, T)
    if Z.shape[1] <= len(Z):
        return Z, T
    # What is across the space of the training rows does not matter to a linear rule.
    Q, R = np.linalg.qr(Z.T)
    return np.ascontiguousarray(R.T), T @ Q


def _nearest_row(X: Floats, codes: Indices, T: Floats, random_state: object) -> Indices:
    Z, T = _standardised(X, T)
    squares = np.einsum("ij,ij->i", Z, Z)
    largest = squares.max()
    found = np.empty(len(T), dtype=np.intp)
    size = max(BLOCK // len(Z), 1)
    for start in range(0, len(T), size):
        part = T[start : start + size]
        # Less the squared norm of the test row, which is the same for all training rows.
        distances = part @ Z.T
        distances *= -2.0
        distances += squares
        slack = ROUNDING * (np.einsum("ij,ij->i", part, part) + largest)
        near = distances <= (distances.min(axis=1) + slack)[:, None]
        found[start : start + size] = near.argmax(axis=1)
    return codes[found]


def _svm(X: Floats, codes: Indices, T: Floats, random_state: object) -> Indices:
    Z, T = _compact(X, T)
    return fit_svm(Z, codes, 1.0).predict(T)


def _tuned_svm(X: Floats, codes: Indices, T: Floats, random_state: object) -> Indices:
    Z, T = _compact(X, T)
    return fit_svm(Z, codes, best_cost(X, codes, random_state)).predict(T)


def best_cost(X: Floats, codes: Indices, random_state: object) -> float:
    """Return the C of the best mean accuracy over folds of the training part."""
    folds = min(max(int(np.bincount(codes).max()), 2), FOLDS)
    scores = np.zeros(len(COSTS))
    for train, test in fold_splits(codes, folds, random_state):
        present, local = np.unique(codes[train], return_inverse=True)
        if len(present) < 2:
            # Whatever C is, the one class that is left is the answer.
            scores += (codes[test] == present[0]).mean()
            continue
        Z, T = _compact(X[train], X[test])
        for i, C in enumerate(COSTS):
            found = present[fit_svm(Z, local, C).predict(T)]
            scores[i] += (found == codes[test]).mean()
    # Sums of the same accuracies in another order differ by rounding.
    return COSTS[int(np.argmax(scores.round(12)))]


def _least_squares(X: Floats, codes: Indices, T: Floats, random_state: object) -> Indices:
    Z, T = _compact(X, T)
    Y = np.eye(int(codes.max()) + 1)[codes]
    mean = Y.mean(axis=0)
    A = Z.T @ Z
    A[np.diag_indices_from(A)] += NEGLIGIBLE * len(Z)
    outputs: Floats = mean + T @ np.linalg.solve(A, Z.T @ (Y - mean))
    return outputs.argmax(axis=1)


_PREDICTORS: dict[str, Callable[[Floats, Indices, Floats, object], Indices]] = {
    "1nn": _nearest_row,
    "svm": _svm,
    "svm-tuned": _tuned_svm,
    "linear": _least_squares,
}
CLASSIFIERS = tuple(_PREDICTORS)
