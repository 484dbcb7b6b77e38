"""What a proof over single columns has to do with: the columns left to choose from."""

from __future__ import annotations

from collections.abc import Sequence
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
    grown : float
        How many times larger rounding of A is in what is left of a column, as a share of it.
    """

    problem: Problem
    inside: tuple[int, ...]
    columns: Indices
    m: int
    C: Floats
    root: Floats
    held: Floats
    explained: float
    grown: float = 1.0

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

    def least_eigenvalue(self, which: Indices) -> float:
        """Return that of the Gram matrix of some columns and those inside, all of unit size."""
        together = np.append(np.array(self.inside, dtype=np.intp), self.columns[which])
        A = self.problem.gram_rows(together)[:, together]
        root = 1.0 / np.sqrt(np.diagonal(A))
        return float(np.linalg.eigvalsh(A * np.outer(root, root))[0])


def prepare(problem: Problem, k: int, needed: Sequence[int] = ()) -> Setting | None:
    """Return the setting of a problem whose rules are columns in and out at most.

    None where some column is made up by those that must be in, nearly: then rounding may decide.

    Parameters
    ----------
    problem : Problem
    k : int
    needed : sequence of int
        Columns that every set of interest has, besides those that the rules want in.
    """
    wanted = () if problem.rules is None else problem.rules.include
    inside = tuple(int(p) for p in (*wanted, *needed))
    columns = np.setdiff1d(problem.candidates, inside)
    B, left = problem.cross, problem.diagonal[columns].copy()
    held, explained, grown = np.empty((0, problem.n_features)), 0.0, 1.0
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
        # An error of A enters with the coefficients of those inside on either side.
        size = np.sqrt(np.append(np.diagonal(AS[:, list(inside)]), problem.diagonal[columns]))
        V = np.abs(np.linalg.solve(factor.T, held[:, columns])) * size[: len(inside), None]
        grown = float(((size[len(inside) :] + V.sum(axis=0)) ** 2 / left).max(initial=1.0))
    root = 1.0 / np.sqrt(left)
    C = _fewest_outputs(B[:, columns].T * root[:, None])
    return Setting(problem, inside, columns, k - len(inside), C, root, held, explained, grown)


def _fewest_outputs(C: Floats) -> Floats:
    """The same products in as few outputs as do.

    Only CCᵀ counts, and one-hot classes have an output too many.
    """
    left, sizes, _ = np.linalg.svd(C, full_matrices=False)
    keep = sizes > max(C.shape) * float(np.finfo(np.float64).eps) * sizes[0]
    return np.ascontiguousarray(left[:, keep] * sizes[keep]) if keep.any() else C[:, :1] * 0.0
