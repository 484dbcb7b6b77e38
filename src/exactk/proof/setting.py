"""What a proof over single columns has to do with: the columns left to choose from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from exactk.problem import Problem

__all__ = ["CONDITIONED", "Setting", "prepare"]

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]

# Below this least eigenvalue of a Gram matrix with unit diagonal rounding may decide.
CONDITIONED = 1e-7


@dataclass(frozen=True, eq=False)
class Setting:
    """The columns that may be chosen, beside those that must be in.

    Attributes
    ----------
    problem : Problem
    inside : tuple of int
        Columns that must be in.
    columns : ndarray of intp of shape (d,)
        Columns that may be.
    m : int
        How many of these are to be chosen.
    C : ndarray of shape (d, c)
        What is left of their products with the target, for columns of unit size and in as few
        outputs as will do.
    root : ndarray of shape (d,)
        One over the size of what is left of each column.
    held : ndarray of shape (i, n_features)
        ``heldᵀ held`` is the part of A that those inside account for.
    explained : float
        What those inside explain.
    """

    problem: Problem
    inside: tuple[int, ...]
    columns: Indices
    m: int
    C: Floats
    root: Floats
    held: Floats
    explained: float

    @property
    def total(self) -> float:
        """What those inside do not explain."""
        return self.problem.total - self.explained

    def gram(self, which: Indices) -> Floats:
        """Return rows of the Gram matrix with unit diagonal, for positions in `columns`."""
        p = self.columns[which]
        rows = self.problem.gram_rows(p)[:, self.columns]
        if len(self.held):
            rows -= self.held[:, p].T @ self.held[:, self.columns]
        rows *= self.root
        rows *= self.root[which, None]
        return rows

    def block(self, which: Indices) -> Floats:
        """Return the Gram matrix of some columns."""
        if len(self.held) or len(which) < len(self.columns):
            rows = self.gram(which)[:, which]
        else:
            rows = self.problem.gram.block(self.columns)
            rows *= np.outer(self.root, self.root)
        out: Floats = 0.5 * (rows + rows.T)
        np.fill_diagonal(out, 1.0)
        return out


def prepare(problem: Problem, k: int) -> Setting | None:
    """Return the setting of a problem whose rules are columns in and out at most.

    None where some column is made up by those that must be in, nearly: then rounding may decide.

    Parameters
    ----------
    problem : Problem
    k : int
    """
    inside = () if problem.rules is None else tuple(int(p) for p in problem.rules.include)
    columns = np.setdiff1d(problem.candidates, inside)
    B, left = problem.cross, problem.diagonal[columns].copy()
    held, explained = np.empty((0, problem.n_features)), 0.0
    if inside:
        AS = problem.gram_rows(inside)
        factor = np.linalg.cholesky(AS[:, list(inside)])
        held = np.linalg.solve(factor, AS)
        solved = np.linalg.solve(factor, B[:, list(inside)].T)
        explained = float((solved**2).sum())
        B = B - solved.T @ held
        left -= (held[:, columns] ** 2).sum(axis=0)
        if not (left > CONDITIONED * problem.diagonal[columns]).all():
            return None
    root = 1.0 / np.sqrt(left)
    C = _fewest_outputs(B[:, columns].T * root[:, None])
    return Setting(problem, inside, columns, k - len(inside), C, root, held, explained)


def _fewest_outputs(C: Floats) -> Floats:
    """The same products in as few outputs as do.

    Only CCᵀ counts, and one-hot classes have an output too many.
    """
    values, vectors = np.linalg.eigh(C.T @ C)
    # Squares: what is left out is below rounding.
    keep = values > 1e-15 * values[-1]
    return np.ascontiguousarray(C @ vectors[:, keep]) if keep.any() else C[:, :1] * 0.0
