"""What a problem refuses before any work: ridges, targets and moments that cannot be."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from exactk.data.moments import Moments
from exactk.data.targets import MOST_EXACT, OFFSET, TOO_ALIKE, WEIGHT, Target
from exactk.data.usable_columns import TINY_SQUARE
from exactk.errors import ConstantTargetError, InputError, join_items
from exactk.types import Floats

__all__ = ["check_one_hot", "check_ridge", "check_total", "matching_weights"]


# A larger ridge would only overflow; at this one every coefficient is zero to the last digit.
MOST_RIDGE = 1e100


def check_ridge(ridge: Any) -> float:
    """Return the ridge as a float, or say what it must be."""
    if isinstance(ridge, bool) or not isinstance(ridge, (int, float, np.integer, np.floating)):
        named = isinstance(ridge, str) and ridge in ("auto", "cv")
        raise InputError(
            parameter="ridge", value=ridge, expected="a number that is zero or more",
            hint="Problem.with_ridge also takes 'auto' and 'cv'" if named else "",
        )  # fmt: skip
    try:
        value = float(ridge)
    except OverflowError:
        value = np.inf
    if not 0 <= value <= MOST_RIDGE:
        raise InputError(
            parameter="ridge", value=ridge, expected=f"zero or more, and at most {MOST_RIDGE:g}"
        )
    return value


def check_one_hot(moments: Moments, labels: npt.NDArray[Any]) -> None:
    """Raise where the outputs cannot be classes, one a row."""
    if len(set(labels.tolist())) != len(labels):
        raise InputError(
            f"classes names a label twice: {join_items(map(str, labels.tolist()))}",
            parameter="classes",
        )
    share, n = moments.y_mean, moments.weight
    # Of zeros and ones with a single one in each row the scatter follows from the means.
    wanted = n * (np.diag(share) - np.outer(share, share))
    if share.min() < -1e-9 or not np.allclose(moments.yy, wanted, rtol=0, atol=1e-6 * n):
        raise InputError(
            "classes was given, but the outputs of these moments are not one-hot classes, one a "
            "row: make them of zeros and ones, or leave classes out", parameter="classes",
        )  # fmt: skip


def check_total(total: float, target: Target, weights: Floats | None, y_mean: Floats) -> float:
    """Return ‖HY‖², or say why it cannot be used."""
    if not np.isfinite(total):
        raise InputError(
            "the values of y are too large for float64 sums of squares", parameter="y",
            hint="rescale y",
        )  # fmt: skip
    if total < TINY_SQUARE:
        values, of_weight = target.values if target.codes is None else target.codes[:, None], ""
        if weights is not None and (weights == 0).any():
            values = None if values is None else values[weights > 0]
            of_weight = " of weight above 0"
        if values is not None and (values != values[:1]).any():
            if weights is not None and np.square(values - values.mean(axis=0)).sum() > TINY_SQUARE:
                raise InputError(
                    (WEIGHT, " is too small in some rows beside others: in all rows that count y "
                     "is the same"),
                    parameter="sample_weight", hint="give weights of a similar size",
                )  # fmt: skip
            raise InputError(
                "y varies too little for sums of squares in float64", parameter="y",
                hint="rescale y",
            )  # fmt: skip
        if np.abs(y_mean).max() >= MOST_EXACT:
            raise ConstantTargetError(TOO_ALIKE, parameter="y", hint=OFFSET)
        raise ConstantTargetError(
            f"y is the same in every row{of_weight}: there is nothing to predict", parameter="y"
        )
    return total


def matching_weights(weights: Floats | None, y: Any) -> Floats | None:
    """Weights, if as many as targets: the lengths are compared, with a message, later."""
    try:
        return weights if weights is None or len(weights) == len(y) else None
    except TypeError:
        return None
