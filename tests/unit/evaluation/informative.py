"""Tables in which two columns tell the target, and the others nothing."""

from __future__ import annotations

import numpy as np


def make_classes(n=90, d=16, seed=0):
    rng = np.random.default_rng(seed)
    y = np.array(["no", "yes", "maybe"])[np.arange(n) % 3]
    X = rng.normal(size=(n, d))
    X[:, 4] += 1.5 * (y == "yes")
    X[:, 9] += 1.5 * (y == "no")
    return X, y


def make_numbers(n=80, d=16, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, X[:, 3] - 2 * X[:, 11] + rng.normal(size=n)
