"""SPEC: columns that vary little along the edges of a graph of the rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np

from exactk.papers.filters.base import BLOCK_VALUES, ClassTable, Scorer, class_table, scatters
from exactk.params import Check, Choice, Integer
from exactk.problem.problem import Problem
from exactk.types import Floats
from exactk.utils.monitor import Monitor

__all__ = ["SPEC"]


# Squared distances closer than this, beside the mean squared distance, are equal.
EQUAL = 1e-10


class SPEC(Scorer):
    """Score each column by how smooth it is on a graph of the rows that knows the classes.

    With weights S_ij of the edges, degrees D = diag(S1), the normalised Laplacian
    L = D^(−½)(D − S)D^(−½) with eigenpairs (λ_j, ξ_j) in rising order, a centred column f and
    f̂ = D^(½)f/‖D^(½)f‖,

    * φ₁ = f̂ᵀLf̂, φ₂ = φ₁/(1 − (f̂ᵀξ₁)²): small for a good column, so the score is −φ;
    * φ₃ = Σ_{j=2..c} (2 − λ_j)(f̂ᵀξ_j)² over the leading eigenvectors without ξ₁ ∝ D^(½)1, for c
      classes: large for a good column.

    ``graph="neighbours"``: i and j of the same class are joined by S_ij = exp(−‖x_i − x_j‖²/τ), τ
    the mean squared distance of two rows, if one of them is among the `n_neighbors` nearest of its
    class to the other; each row is also joined to itself. Rows at the same distance are neighbours
    together, and a row of weight w counts as w rows, so neither the order of rows nor weights in
    place of copies change anything.

    ``graph="classes"``: S_ij = 1/n_l for two rows of class l. Then D = I, φ₁ = φ₂ is the share of
    the scatter that lies within the classes, φ₃ twice the rest, and all three give the order of
    the Fisher score. Nothing of it is formed: moments say it all.

    All columns go through the sparse S at once. No eigenvectors are computed: ξ₁ is known, and so
    are those of φ₃, for each connected part q of the graph has the eigenvector D^(½)1_q with λ = 0,
    and there are at least as many parts as classes. Where there are more, all of them count, since
    no choice of c among equal eigenvalues is better than another.

    Parameters
    ----------
    graph : {"neighbours", "classes"}
    n_neighbors : int
        Nearest rows to which each is joined. The paper of IPFS tunes it in {4, 6, 8, 10}; the
        default is in the lower half, for classes of a few dozen rows. It has no effect on the graph
        of classes.
    phi : {1, 2, 3}
        Which φ. The second does not depend on where a column is centred.

    Notes
    -----
    Cost: O(d·Σ n_l²) for the distances within the classes and O(n·K·d) for the scores, K
    neighbours; O(d·c) for the class graph. Memory: the table, the distances of one class, a sparse
    graph.

    Guaranteed: the k highest scores. Columns are judged one by one, on a graph that all of them
    made.

    The class graph is the paper's own for supervised selection; as a default it would only be the
    Fisher score under another name. Distances cost n_l²·d for a class of n_l rows, as products of
    matrices. The paper allows a function of λ that increases; here it is λ itself.

    References
    ----------
    Z. Zhao, H. Liu, "Spectral feature selection for supervised and unsupervised learning", ICML
    2007.

    Examples
    --------
    >>> import exactk
    >>> from sklearn.datasets import load_iris
    >>> problem = exactk.Problem.from_arrays(*load_iris(return_X_y=True))
    >>> result = exactk.solve(problem, 2, method="spec")
    >>> result.support, result.scores.round(3)
    (array([2, 3]), array([-0.054, -0.075, -0.016, -0.026]))
    """

    unit: ClassVar[float] = 1.0
    checks: ClassVar[Mapping[str, Check]] = {
        "graph": Choice(options=("neighbours", "classes")),
        "n_neighbors": Integer(1),
        "phi": Choice(options=(1, 2, 3)),
    }

    def __init__(
        self,
        graph: Literal["neighbours", "classes"] = "neighbours",
        n_neighbors: int = 6,
        phi: Literal[1, 2, 3] = 2,
    ) -> None:
        self.graph = graph
        self.n_neighbors = n_neighbors
        self.phi = phi

    def score(self, problem: Problem, monitor: Monitor) -> Floats:  # noqa: D102
        if self.graph == "classes":
            return self._on_classes(problem)
        table = class_table(problem)
        return self._on_graph(
            table.X, table.labels.weights, neighbour_graph(table, self.n_neighbors)
        )

    def _on_classes(self, problem: Problem) -> Floats:
        between, within = scatters(problem)
        between /= between + within
        return 2.0 * between if self.phi == 3 else between - 1.0

    def _on_graph(self, X: Floats, weights: Floats, S: Any) -> Floats:
        from scipy.sparse.csgraph import connected_components

        # The sums over a table in which each row stands as often as its weight says.
        degrees = weights * (S @ weights)
        count, which = connected_components(S, directed=False)
        parts = np.zeros((count, len(X)))
        parts[which, np.arange(len(X))] = degrees
        volumes = parts.sum(axis=1)
        scores, step = np.empty(X.shape[1]), max(1, BLOCK_VALUES // len(X))
        for start in range(0, X.shape[1], step):
            F = X[:, start : start + step]
            size = degrees @ F**2
            trivial = (degrees @ F) ** 2 / degrees.sum()
            if self.phi == 3:
                leading = ((parts @ F) ** 2 / volumes[:, None]).sum(axis=0)
                phi = 2.0 * (leading - trivial) / size
            else:
                G = weights[:, None] * F
                rough = np.maximum(size - np.einsum("ij,ij->j", G, S @ G), 0.0)
                phi = -rough / (size if self.phi == 1 else size - trivial)
            scores[start : start + step] = phi
        return scores


def neighbour_graph(table: ClassTable, n_neighbors: int) -> Any:
    """Return S of the nearest neighbours within each class, sparse and symmetric."""
    # Imported here, for it takes longer than all the rest of exactk.
    from scipy.sparse import coo_array

    X, w = table.X, table.labels.weights
    centre = w @ X / w.sum()
    tau = 2.0 * float(w @ ((X - centre) ** 2).sum(axis=1)) / float(w.sum())
    rows, columns, values = [], [], []
    for c in range(table.labels.n_classes):
        members = np.flatnonzero(table.labels.codes == c)
        Z, squares = X[members], (X[members] ** 2).sum(axis=1)
        step = max(1, BLOCK_VALUES // len(members))
        for start in range(0, len(members), step):
            part = slice(start, min(start + step, len(members)))
            distance = squares[part][:, None] + squares - 2.0 * (Z[part] @ Z.T)
            np.maximum(distance, 0.0, out=distance)
            own = np.arange(part.start, part.stop)
            distance[own - start, own] = 0.0
            # Python compares whole numbers of any size.
            mass = min(n_neighbors, float(w.sum())) + 1.0
            reach = _reach(distance, w[members], mass)
            i, j = np.nonzero(distance <= reach[:, None] + EQUAL * tau)
            rows.append(members[i + start])
            columns.append(members[j])
            values.append(np.exp(-distance[i, j] / tau))
    S = coo_array(
        (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))),
        shape=(len(X), len(X)),
    ).tocsr()
    return S.maximum(S.T).tocsr()


def _reach(distance: Floats, weights: Floats, mass: float) -> Floats:
    """How far each row must go to find this much weight, its own included."""
    order = np.argsort(distance, axis=1)
    found = np.cumsum(weights[order], axis=1)
    # Where a class has less the last of its rows is far enough.
    enough = np.minimum((found < mass * (1.0 - EQUAL)).sum(axis=1), distance.shape[1] - 1)
    at = np.arange(len(distance))
    reach: Floats = distance[at, order[at, enough]]
    return reach
