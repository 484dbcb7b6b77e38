"""Problem: a table and a target, checked once, as every method sees them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from exactk.data.accumulate import BENIGN_RATIO
from exactk.data.dense import DenseRows
from exactk.data.design_matrix import DesignMatrix
from exactk.data.duplicates import find_duplicates
from exactk.data.gram import Gram, GramMode, WholeGram, choose_gram, column_gram, scale_in_place
from exactk.data.moments import Margins, Moments
from exactk.data.open_table import check_names, open_rows
from exactk.data.targets import Target, Task, apply_class_weights, encode_target, encode_weights
from exactk.data.usable_columns import UnitColumns, column_scales, usable_columns
from exactk.errors import InputError, Setting, Text, join_items
from exactk.losses.base import Loss
from exactk.losses.registry import task_of
from exactk.losses.squared import Squared
from exactk.problem.constraints import Rules
from exactk.problem.constructors import Constructors, show_reading
from exactk.problem.fit import Fit, WithLoss
from exactk.problem.from_anndata import FromAnnData
from exactk.problem.validation import check_one_hot, check_ridge, check_total, matching_weights
from exactk.problem.with_constraints import WithConstraints
from exactk.streaming.base import Stream
from exactk.streaming.target_encoding import TargetEncoding
from exactk.streaming.to_memory import check_unchanged, read_into_memory
from exactk.types import Floats, Indices
from exactk.utils.linalg import (
    gram_rounding,
    least_squares,
    solve_dependent,
    solve_unit_diagonal,
    sum_rounding,
    wide_least_squares,
)

__all__ = ["MEMORY_LIMIT", "Fit", "Problem"]


MEMORY_LIMIT = 2**30
# A fit on nearly dependent columns goes back to the rows unless there are more values to read.
FEW_VALUES = 2**24
# Weights that differ by more than this factor may make sums lose digits.
UNEVEN = 1e4
# Rounding above this share of an objective is worth a look at the rows.
VISIBLE = 1e-7


@dataclass(frozen=True, eq=False)
class Problem(Constructors, FromAnnData, WithConstraints, WithLoss):
    """The problem (P): pick k columns with the least ``‖HY − HX_S W‖² + ridge·‖W‖²``.

    Make one with `from_arrays` or `from_anndata`, of a table too large for that with `from_files`,
    `from_dask` or `from_spark`, or with `from_moments`; it is not changed by
    anything afterwards.
    Columns are standardised (mean 0, standard deviation 1 with n − 1) unless ``scale=False``;
    constant columns are never candidates. In the notation of the docs, A = XᵀHX with the ridge
    on its diagonal and B = XᵀHY, both of standardised columns.

    Attributes
    ----------
    n_rows, n_features, n_outputs : int
    feature_names : tuple of str
    task : str
        "classification" or "regression".
    classes : ndarray or None
        Sorted labels, one for each output.
    usable : ndarray of intp
        Columns that are not constant.
    candidates : ndarray of intp
        Usable columns that are not copies (up to shift, scale and sign) of an earlier one.
    duplicates, originals : ndarray of intp
        Usable columns that are, and the candidate that each copies.
    total : float
        ‖HY‖², the objective of the empty set.
    ridge : float
        Relative ridge: ``ridge · tr(XᵀHX) / n_usable`` is added to the diagonal.
    rules : Rules or None
        What a choice of columns must keep; see `with_constraints`.
    loss : Loss
        What takes the place of the squared error, if it is another; see `with_loss`. The
        attributes above are those of the squared error all the same.
    scaled_outputs : bool
        Whether several numeric outputs are standardised, too; see `with_scaled_outputs`.
    assumptions : tuple of Text
        What was assumed about the target.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> problem = Problem.from_arrays(*load_iris(return_X_y=True))
    >>> problem
    Problem(150 rows, 4 features (4 usable), 3 outputs, classification, ridge 0)
    >>> round(problem.objective([2, 3]), 4)
    47.6774
    """

    n_rows: int
    given_names: tuple[str, ...] | None
    task: str
    classes: npt.NDArray[Any] | None
    usable: Indices
    candidates: Indices
    duplicates: Indices
    originals: Indices
    total: float
    ridge: float
    scaled: bool
    weight: float
    x_mean: Floats
    x_scale: Floats
    y_mean: Floats
    cross: Floats
    scatter: Floats
    gram: Gram
    rows: DesignMatrix | None
    target: Target | None
    weights: Floats | None
    memory_limit: int
    stream: Stream | None = None
    rules: Rules | None = None
    loss: Loss = field(default_factory=Squared)
    # Whether several numeric outputs are divided by their standard deviations.
    scaled_outputs: bool = False
    # Sums of squares of the outputs as they were given, about their means.
    y_scatter: Floats | None = None
    target_assumption: Text = ""
    # Weights before those of classes, in a list of one; empty where classes have none.
    base_weights: tuple[Floats | None, ...] = ()
    # What those of classes were asked to be, one after the other.
    class_weights: tuple[Any, ...] = ()

    @classmethod
    def from_arrays(
        cls,
        X: Any,
        y: Any,
        *,
        sample_weight: Any = None,
        ridge: float = 0.0,
        scale: bool = True,
        feature_names: Sequence[str] | None = None,
        task: Task = "auto",
        loss: str | Loss = "squared",
        class_weight: Any = None,
        gram: GramMode = "auto",
        memory_limit: int = MEMORY_LIMIT,
    ) -> Problem:
        """Make a problem of a table in memory.

        Parameters
        ----------
        X : array-like, scipy sparse, pandas or polars frame, Arrow table, of shape (n, d)
            Any numeric dtype; kept by reference, read in blocks, never changed or copied whole.
            Text and categories of a frame are coded: a column of 0 and 1 for each level but the
            most frequent one, all of which enter together and count as one; see `categories`.
        y : array-like of shape (n,) or (n, c)
            Classes of any kind, numbers, several outputs, or a multilabel indicator.
        sample_weight : array-like of shape (n,) or None
            A whole weight w is the same as the row w times, 0 the same as no row.
        ridge : float
            Relative ridge, see the class.
        scale : bool
            Standardise the columns.
        feature_names : sequence of str or None
        task : {"auto", "classification", "regression"}
            Type of the target. "auto" is that of the loss, if it has one. Otherwise text, booleans
            and few whole numbers are classes, and many whole numbers (more than 200, or more than
            20 of which a tenth is rare) are amounts; `assumptions` says what was assumed.
        loss : str or Loss
            What is minimised; see `with_loss`.
        class_weight : None, "balanced" or mapping of label to float
            What rows of a class weigh, times their own weight; "balanced" makes all classes weigh
            the same.
        gram : {"auto", "full", "columns"}
            Whole Gram matrix, single columns on demand, or whichever costs less.
        memory_limit : int
            Bytes that the Gram matrix or its kept columns may take.

        Returns
        -------
        Problem
        """
        rows = open_rows(X, feature_names, sample_weight)
        weights = encode_weights(sample_weight, rows.n_rows)
        target = encode_target(y, task_of(loss, task), matching_weights(weights, y))
        if target.n_rows != rows.n_rows:
            raise InputError(
                f"X has {rows.n_rows} rows, y has {target.n_rows}", parameter="y",
                hint="give one target for each row",
            )  # fmt: skip
        weighed = apply_class_weights(class_weight, target, weights)
        problem = cls.from_rows(
            rows, target, weighed, ridge=ridge, scale=scale, gram=gram, memory_limit=memory_limit
        ).with_loss(loss)
        if class_weight is not None:
            problem = replace(problem, base_weights=(weights,), class_weights=(class_weight,))
        groups = problem.category_groups
        return problem.with_rules(Rules(feature_groups=groups)) if groups else problem

    @classmethod
    def from_rows(
        cls,
        rows: DesignMatrix,
        target: Target,
        weights: Floats | None,
        *,
        ridge: float = 0.0,
        scale: bool = True,
        gram: GramMode = "auto",
        memory_limit: int = MEMORY_LIMIT,
    ) -> Problem:
        """Make a problem of an opened table and a coded target, with squared loss."""
        # How classes are scored follows from the rows that there are: see `with_loss`.
        target = replace(target, scores=None)
        read = choose_gram(rows, target, weights, gram, memory_limit)
        usable = usable_columns(read, rows, weights)
        x_scale = column_scales(read, usable, scale)
        held: Gram
        if isinstance(read, Moments):
            held = WholeGram(scale_in_place(read.xx, x_scale))
            scatter = held.whole().diagonal().copy()
        else:
            held = column_gram(rows, target, weights, read, x_scale, gram, memory_limit)
            scatter = read.scatter * x_scale**2
        held.passes = 1
        return cls._build(
            read, usable, x_scale, scatter, held, ridge=ridge, scale=scale,
            names=rows.feature_names, rows=rows, target=target, weights=weights,
            memory_limit=memory_limit,
        )  # fmt: skip

    @classmethod
    def from_moments(
        cls,
        moments: Moments,
        *,
        classes: Any = None,
        ridge: float = 0.0,
        scale: bool = True,
        feature_names: Sequence[str] | None = None,
        overwrite: bool = False,
    ) -> Problem:
        """Make a problem of moments, wherever they were accumulated.

        Parameters
        ----------
        moments : Moments
        classes : array-like or None
            Labels of the outputs if they are one-hot classes; None takes those of the moments.
        ridge, scale
            As in `from_arrays`.
        feature_names : sequence of str or None
            None takes those of the moments.
        overwrite : bool
            Take the Gram matrix over instead of copying it; the moments must not be used again.

        Returns
        -------
        Problem
        """
        moments = moments.validate()
        usable = usable_columns(moments)
        x_scale = column_scales(moments, usable, scale)
        matrix = moments.xx if overwrite else moments.xx.copy(order="K")
        held = WholeGram(scale_in_place(matrix, x_scale))
        names = check_names(moments.feature_names if feature_names is None else feature_names)
        classes = moments.classes if classes is None else classes
        if names is not None and len(names) != len(moments.x_mean):
            raise InputError(
                f"feature_names has {len(names)} names, the moments {len(moments.x_mean)} columns",
                parameter="feature_names",
            )
        task: Any = "regression" if classes is None else "classification"
        labels = None if classes is None else np.asarray(classes)
        if labels is not None and len(labels) != len(moments.y_mean):
            raise InputError(
                f"classes has {len(labels)} labels, the moments {len(moments.y_mean)} outputs",
                parameter="classes",
            )
        if labels is not None:
            check_one_hot(moments, labels)
        return cls._build(
            moments, usable, x_scale, held.whole().diagonal().copy(), held, ridge=ridge,
            scale=scale, names=names, rows=None,
            target=Target(task=task, classes=labels, codes=None, values=None),
            weights=None, memory_limit=MEMORY_LIMIT,
        )  # fmt: skip

    @classmethod
    def _build(
        cls,
        read: Margins | Moments,
        usable: Indices,
        x_scale: Floats,
        scatter: Floats,
        held: Gram,
        *,
        ridge: float,
        scale: bool,
        names: tuple[str, ...] | None,
        rows: DesignMatrix | None,
        target: Target,
        weights: Floats | None,
        memory_limit: int,
    ) -> Problem:
        if not isinstance(scale, (bool, np.bool_)):
            raise InputError(parameter="scale", value=scale, expected="True or False")
        total = check_total(float(np.trace(read.yy)), target, weights, read.y_mean)
        cross = np.ascontiguousarray(read.xy.T * x_scale)
        with np.errstate(over="ignore", invalid="ignore"):
            too_large = not np.isfinite((cross**2).sum())
        if too_large:
            raise InputError(
                "products of X and y overflow float64: rescale y, or the columns (scale=True does)",
                parameter="X",
            )
        size = np.zeros(len(x_scale))
        size[usable] = np.sqrt(scatter[usable])
        table = UnitColumns(held, rows, weights, read.x_mean, x_scale, size)
        duplicates, originals = find_duplicates(
            cross, size, total, table.random_projection, table.pairwise_correlation
        )
        problem = cls(
            n_rows=read.n_rows,
            given_names=names,
            task=target.task,
            classes=target.classes,
            usable=usable,
            candidates=np.setdiff1d(usable, duplicates) if duplicates.size else usable,
            duplicates=duplicates,
            originals=originals,
            total=total,
            ridge=check_ridge(ridge),
            scaled=bool(scale),
            weight=read.weight,
            x_mean=read.x_mean.copy(),
            x_scale=x_scale,
            y_mean=read.y_mean.copy(),
            cross=cross,
            scatter=scatter,
            gram=held,
            rows=rows,
            target=target,
            weights=weights,
            memory_limit=memory_limit,
            y_scatter=np.diagonal(read.yy).copy(),
            target_assumption=target.assumption,
        )
        for array in (usable, problem.candidates, duplicates, originals, x_scale, cross, scatter):
            array.setflags(write=False)
        problem.x_mean.setflags(write=False)
        problem.y_mean.setflags(write=False)
        return problem

    def __repr__(self) -> str:
        """Return one line: size, task and ridge."""
        return (
            f"Problem({self.n_rows} rows, {self.n_features} features ({self.n_usable} usable), "
            f"{self.n_outputs} outputs, {self.task}, ridge {self.ridge:g}"
            f"{'' if isinstance(self.loss, Squared) else f', {self.loss.name} loss'})"
        )

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the columns; x0, x1 and so on where the table gave none."""
        return tuple(self.name(j) for j in range(self.n_features))

    def name(self, j: int) -> str:
        """Name of one column."""
        return f"x{j}" if self.given_names is None else self.given_names[j]

    @property
    def n_features(self) -> int:
        """Number of columns of X, constant ones included."""
        return len(self.x_scale)

    @property
    def n_outputs(self) -> int:
        """Number of columns of Y."""
        return len(self.cross)

    @property
    def n_usable(self) -> int:
        """Number of columns that are not constant."""
        return len(self.usable)

    @cached_property
    def penalty(self) -> float:
        """What ‖W‖² of standardised columns is multiplied by; squared losses add it to A.

        With another loss it is relative to how that bends, for which rows must be in memory.
        """
        if self.n_usable == 0 or self.ridge == 0:
            return 0.0
        return self.ridge * float(self.scatter[self.usable].mean()) * self.curvature

    @cached_property
    def diagonal(self) -> Floats:
        """Diagonal of A, ridge included; zero for columns that are no candidates."""
        diagonal = np.zeros(self.n_features)
        diagonal[self.candidates] = self.scatter[self.candidates] + self.penalty
        diagonal.setflags(write=False)
        return diagonal

    @cached_property
    def by_relevance(self) -> Indices:
        """Positions of the candidates, those that explain most by themselves first.

        An order that goes with the columns, wherever they stand in the table.
        """
        S = self.candidates
        alone = (self.cross[:, S] ** 2).sum(axis=0) / self.diagonal[S]
        order: Indices = np.argsort(-alone, kind="stable")
        order.setflags(write=False)
        return order

    @property
    def gram_columns_read(self) -> int:
        """Gram columns fetched by a pass over the table so far (0 when it was whole at once)."""
        return self.gram.columns_read

    @property
    def passes(self) -> int:
        """Passes over a table in memory so far, the first reading included; 0 for streams."""
        return self.gram.passes

    @property
    def row_weights(self) -> Floats | None:
        """Weights of the rows as they were given, without those of their classes."""
        return self.base_weights[0] if self.base_weights else self.weights

    def weights_of(self, rows: Indices) -> Floats | None:
        """Weights of some rows as if there were no others: classes are balanced among these."""
        weights = None if self.row_weights is None else self.row_weights[rows]
        for class_weight in self.class_weights:
            assert self.target is not None
            weights = apply_class_weights(class_weight, self.target.subset(rows), weights)
        return weights

    def with_settings_of(self, other: Problem) -> Problem:
        """Return the same problem with the settings of one that has the same columns.

        These are rules, loss, whether outputs are scaled, and what was assumed about the target.
        """
        problem = replace(
            self.with_rules(other.rules),
            scaled_outputs=other.scaled_outputs,
            target_assumption=other.target_assumption,
        )
        return problem.with_loss(other.loss)

    @property
    def assumptions(self) -> tuple[Text, ...]:
        """What was assumed about the target, and which parameter changes it.

        Examples
        --------
        >>> from exactk.errors import render
        >>> problem = Problem.from_arrays([[0.0], [1.0], [3.0], [4.0]], [1, 2, 3, 1])
        >>> [render(assumption) for assumption in problem.assumptions]
        ["y has 3 different whole numbers, which are taken as classes; if they are amounts, set
        task='regression'"]
        """
        found = (self.target_assumption,) if self.target_assumption else ()
        if self.output_scale is None:
            return found
        scaled = (
            f"the {self.n_outputs} outputs are divided by their standard deviations, so that all "
            f"of them count; coefficients and predictions are in the units of y"
        )
        return (*found, scaled)

    def with_ridge(
        self, ridge: float | str, k: int | None = None, *, random_state: object = None,
        groups: Any = None,
    ) -> Problem:  # fmt: skip
        """Return the same problem with another ridge; the Gram matrix is shared.

        Parameters
        ----------
        ridge : float, "auto" or "cv"
            "auto" is a rule of the shape of the table; "cv" chooses by cross-validation.
        k : int or None
            Number of features for which "cv" chooses.
        random_state : int, Generator or None
            Seed of the split of "cv".
        groups : array-like of shape (n,) or None
            One label for each row. Rows of one group stay in one fold of "cv".

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> problem = Problem.from_arrays(*load_iris(return_X_y=True))
        >>> problem.with_ridge(0.5).ridge, problem.with_ridge("auto").ridge
        (0.5, 0.1)
        """
        if isinstance(ridge, str):
            # Cross-validation solves problems: the one import of a package that imports this one.
            from exactk.model_selection.ridge import find_ridge

            ridge = find_ridge(ridge, self, k, random_state=random_state, groups=groups)
        return replace(self, ridge=check_ridge(ridge))

    @property
    def target_encoding(self) -> TargetEncoding:
        """How the target of its stream is read: as it was when the problem was made."""
        return TargetEncoding(self.classes is not None, self.n_outputs, self.classes)

    def in_memory(self, *, verbose: int = 0) -> Problem:
        """Return the same problem with its rows in memory; itself, if they are there already.

        Parameters
        ----------
        verbose : int
            1 shows how many rows were read.

        Raises
        ------
        InputError
            The rows take more than `memory_limit`, or the problem was made of moments alone.
        """
        if self.rows is not None:
            return self
        if self.stream is None:
            raise InputError(
                "this problem was made of moments and has no rows to read",
                parameter="X",
                hint=(
                    "make it of the table: Problem.from_arrays, from_files, from_dask or from_spark"
                ),
            )
        with show_reading(verbose) as show:
            read = read_into_memory(
                self.stream, self.target_encoding, limit=self.memory_limit, on_rows=show
            )
        check_unchanged(len(read.X), self.n_rows)
        task: Any = self.task
        scores = None if self.target is None else self.target.scores
        target = Target(task, self.classes, read.codes, read.values, scores)
        rows = DenseRows(read.X, self.given_names)
        return replace(self, rows=rows, target=target, weights=read.weights, stream=None)

    def gram_rows(self, indices: Any) -> Floats:
        """Return columns of A = XᵀHX, ridge included, as the rows of a new m × d array."""
        indices = np.asarray(indices, dtype=np.intp)
        out = self.gram.take(indices)
        out[np.arange(len(indices)), indices] += self.penalty
        return out

    def objective(self, support: Any) -> float:
        """Return f(S), the least ``‖HY − HX_S W‖² + ridge·‖W‖²`` on these columns.

        With another loss, the least of that in place of the squared error.

        Parameters
        ----------
        support : array-like of int

        Returns
        -------
        float

        Notes
        -----
        Columns that nearly depend on each other, or leave nearly nothing of the target, are
        fitted from the rows. With σ the least singular value of the columns at unit norm, the
        objective is then right to about eps / σ of `total`, and columns with σ below eps·max(n, k)
        times the largest one are dependent.

        Of moments alone, and where the columns have more than 2^24 values, there is only the
        Gram matrix. What depends on others but for σ² near its rounding, at least 1e-12·k, then
        counts as dependent, which may put the objective too high; otherwise it is right to some
        √n·eps / σ² of `total`, two digits at worst.
        """
        S = self.check_support(support)
        if not self.loss.by_moments:
            return self.fit_loss(S).objective
        return self._fit_standardised(S)[1]

    def refit(self, support: Any, theta: Floats | None = None) -> Fit:
        """Fit on these columns and give coefficients in the units of the table.

        Parameters
        ----------
        support : array-like of int
        theta : ndarray of shape (len(support) + 1, r) or None
            Coefficients that a search by another loss than the squared error has come to: of
            several local minima the lowest counts, and one alone is found sooner.

        Returns
        -------
        Fit
            Coefficients in the order of `support`.
        """
        S = self.check_support(support)
        if not self.loss.by_moments:
            return self.fit_loss(S, theta)
        V, objective, rank = self._fit_standardised(S)
        coef = np.ascontiguousarray(V.T) * self.x_scale[S]
        residual = max(objective - self.penalty * float((V**2).sum()), 0.0)
        fit = Fit(coef, self.y_mean - coef @ self.x_mean[S], objective, residual, rank)
        return self.in_units_of_y(fit)

    def _fit_standardised(self, S: Indices) -> tuple[Floats, float, int]:
        """Solve A_SS V = B_S; the least-norm solution where columns depend on each other."""
        V = np.zeros((len(S), self.n_outputs))
        live = np.flatnonzero(self.x_scale[S] > 0)
        if live.size == 0:
            return V, self.total, 0
        V[live], objective, rank = self._fit_varying(S[live])
        return V, objective, rank

    def _fit_varying(self, S: Indices) -> tuple[Floats, float, int]:
        """From the Gram matrix where that is exact enough, else from the rows if it can be."""
        if self.rows is not None and len(S) > self.rows.n_rows:
            return wide_least_squares(*self.standardised(S), self.weights, self.penalty)
        A = self.gram.block(S) + self.penalty * np.eye(len(S))
        root = 1.0 / np.sqrt(np.diagonal(A))
        A, B = A * np.outer(root, root), self.cross[:, S].T * root[:, None]
        V, rank = solve_unit_diagonal(A, B), len(S)
        readable = self.reads_rows(len(S))
        if readable and (V is None or self._is_doubtful(S, V, B)):
            return least_squares(*self.standardised(S), self.weights, self.penalty)
        if V is None:
            noise = sum_rounding(self.n_rows) * float((self.rounding_factor_x[S] ** 2).sum())
            V, rank = solve_dependent(A, B, noise)
        return V * root[:, None], self._left(V, B), rank

    def _left(self, V: Floats, B: Floats) -> float:
        """What a solution of A V = B leaves of the target."""
        return max(self.total - float(np.einsum("ij,ij->", V, B)), 0.0)

    def _is_doubtful(self, S: Indices, V: Floats, B: Floats) -> bool:
        """Whether rounding may be seen in what V leaves: large terms that nearly cancel."""
        total, lost = self.total * self.rounding_factor_y, V * self.rounding_factor_x[S][:, None]
        return gram_rounding(lost, total, self.n_rows) > VISIBLE * self._left(V, B)

    def reads_rows(self, size: int) -> bool:
        """Whether a fit on so many columns goes back to the rows where the Gram matrix may err."""
        return self.rows is not None and self.rows.n_rows * size <= FEW_VALUES

    @cached_property
    def _spread(self) -> float:
        """The same factor for weights: a few heavy rows may lie far from where sums began."""
        if self.weights is None:
            return 1.0
        counted = self.weights[self.weights > 0]
        ratio = float(counted.max() / counted.min())
        return ratio if ratio > UNEVEN else 1.0

    @cached_property
    def rounding_factor_x(self) -> Floats:
        """Root of the factor by which a mean enlarges the rounding of sums about zero."""
        offset = np.zeros(self.n_features)
        S = self.usable
        offset[S] = self.x_mean[S] * (self.x_scale[S] * np.sqrt(self.weight / self.scatter[S]))
        # Columns further from zero were centred first.
        lost: Floats = np.sqrt(np.maximum(1.0 + np.minimum(offset**2, BENIGN_RATIO), self._spread))
        return lost

    @cached_property
    def rounding_factor_y(self) -> float:
        """That factor for the sum of squares of the target."""
        offset = np.abs(self.y_mean).max() * np.sqrt(self.weight / self.total)
        return max(1.0 + min(float(offset) ** 2, BENIGN_RATIO), self._spread)

    def standardised(self, S: Indices) -> tuple[Floats, Floats]:
        """The rows of some columns and of the target, centred."""
        rows, target = self.rows, self.target
        assert rows is not None
        assert target is not None
        x = (rows.columns(S) - self.x_mean[S]) * self.x_scale[S]
        y = target.block(0, rows.n_rows) - self.y_mean
        # The rounding of a mean would show where columns nearly cancel each other.
        counted = np.ones(rows.n_rows) if self.weights is None else self.weights
        for z in (x, y):
            z -= counted @ z / self.weight
        return x, y

    def check_support(self, support: Any) -> Indices:
        """Return a support as indices, or say what is wrong with it."""
        values = np.asarray(support)
        if values.size == 0:
            return np.zeros(0, dtype=np.intp)
        if values.ndim != 1 or values.dtype.kind not in "iu":
            raise InputError(
                parameter="support", value=support, expected="a list of column indices"
            )
        out_of_range = values[(values < 0) | (values >= self.n_features)]
        if out_of_range.size:
            raise InputError(
                f"column index {out_of_range[0]} is not in 0..{self.n_features - 1}",
                parameter="support",
            )
        if len(np.unique(values)) != len(values):
            raise InputError(
                f"a support names each column once: {values.tolist()}", parameter="support"
            )
        return values.astype(np.intp)

    def check_k(self, k: Any) -> int:
        """Return k as an int, or say why it cannot be met."""
        if isinstance(k, (bool, np.bool_)) or not isinstance(k, (int, np.integer)):
            raise InputError(parameter="k", value=k, expected="a whole number")
        if k < 1:
            raise InputError(parameter="k", value=k, expected="at least 1")
        most = self.n_usable if self.rules is None else self.rules.size_of(self.usable)
        if k > most:
            constant = np.setdiff1d(np.arange(self.n_features), self.usable)
            why = (
                f" ({constant.size} of {self.n_features} are constant: "
                f"{join_items(self.name(j) for j in constant[:6])})"
                if constant.size
                else ""
            )
            way = f"ask for k <= {most}" if most else "give columns that vary"
            raise InputError(
                (Setting("k", k), f" is more than the {most} usable columns{why}, ", Setting("X"),
                 f" has {self.n_features} feature(s)"), parameter="k", hint=way,
            )  # fmt: skip
        return int(k)
