"""Random starts that do not hang on the order of columns, rows or classes.

Random numbers are handed out to columns in order of relevance, so that a table with its columns
moved gets the same starts.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from exactk.problem import Problem

__all__ = ["random_matrix", "random_support"]

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]


def random_support(problem: Problem, k: int, rng: np.random.Generator) -> Indices:
    """Return k candidates drawn at random, each set as likely as any other."""
    order = problem.by_relevance
    chosen: Indices = problem.candidates[order[rng.choice(len(order), size=k, replace=False)]]
    return chosen


def random_matrix(problem: Problem, rng: np.random.Generator, size: float) -> Floats:
    """Return a random W⁰ for the candidates: row norms of normal size, along the rows of XᵀHY.

    Directions drawn at random would tie the start to the order of the classes; the papers leave
    the distribution open.
    """
    order = problem.by_relevance
    sizes = np.empty(len(order))
    sizes[order] = rng.standard_normal(len(order))
    B = problem.cross[:, problem.candidates].T
    norms = np.sqrt((B**2).sum(axis=1, keepdims=True))
    directions = np.divide(B, norms, out=np.zeros_like(B), where=norms > 0)
    return size * sizes[:, None] * directions
