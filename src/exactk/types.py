"""Type aliases for arrays and for parameters that are one of a few words."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

__all__ = ["Bools", "Count", "Criterion", "Floats", "Indices", "Rule", "Task"]

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]

Task = Literal["auto", "classification", "regression"]
Count = Literal["groups", "columns"]
Criterion = Literal["cv", "bic", "ebic", "aicc", "cp"]
Rule = Literal["one_se", "paired", "best"]
