"""What gives a `Problem` another loss than the squared error, and fits it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from exactk.data.targets import apply_class_weights
from exactk.data.usable_columns import CONSTANT, degrees_of_freedom
from exactk.errors import InputError, Setting
from exactk.losses.base import Criterion, Fits, Loss, design
from exactk.losses.likelihood import Poisson
from exactk.losses.newton import LikelihoodCriterion
from exactk.losses.registry import read_loss
from exactk.losses.squared import OptimalScoring, Squared, class_scores
from exactk.types import Floats, Indices
from exactk.utils.linalg import orthogonal

if TYPE_CHECKING:
    from exactk.problem.problem import Problem

__all__ = ["Fit", "WithLoss", "check_squared"]


# Of a fit that is reported: steps, and the share of the objective that one must gain.
FIT_STEPS = 3000
FIT_TOLERANCE = 1e-14


@dataclass(frozen=True, eq=False)
class Fit:
    """A fit on some columns, in the units of the table.

    Attributes
    ----------
    coef : ndarray of shape (n_outputs, n_columns)
    intercept : ndarray of shape (n_outputs,)
    objective : float
        Loss and ridge term together.
    residual : float
        The loss alone.
    rank : int
        Independent columns among those fitted.
    note : str
        A sentence where the fit has no end, or was not brought to it; else empty.
    interrupted : bool
        Whether Ctrl-C ended it.
    """

    coef: Floats
    intercept: Floats
    objective: float
    residual: float
    rank: int
    note: str = ""
    interrupted: bool = False


class WithLoss:
    """A problem's loss, and its ways to get one."""

    def with_loss(self, loss: str | Loss = "squared", /, **options: Any) -> Problem:
        """Return the same problem with another loss in place of its own.

        Parameters
        ----------
        loss : str or Loss
            "squared", "l21", "l2r", "huber", "logistic", "poisson" or "optimal_scoring", or a loss
            object such as ``exactk.losses.create("l2r", r=0.5)``.
        **options
            Parameters of the loss, for example ``r=0.5``.

        Returns
        -------
        Problem
            With ``objective``, ``refit`` and ``penalty`` of that loss. ``exchange``, ``greedy`` and
            ``exhaustive`` choose by it; every other method chooses by its own criterion, and what
            it chose is fitted and graded by the loss.

        Examples
        --------
        >>> import exactk
        >>> from sklearn.datasets import load_iris
        >>> problem = exactk.Problem.from_arrays(*load_iris(return_X_y=True))
        >>> problem.with_loss("l2r", r=0.7).loss
        L2R(r=0.7)
        """
        problem, wanted = cast("Problem", self), read_loss(loss, **options)
        wanted.check_task(problem.task, classes=problem.classes is not None)
        if not wanted.by_moments and problem.rows is None and problem.stream is None:
            raise InputError(
                f"loss {wanted.name!r} reads the rows of the table, and this problem was made of "
                "moments", parameter="loss",
                hint=("make it of the table, or take ", Setting("loss", "squared")),
            )  # fmt: skip
        return _with_scores(problem, wanted)

    def with_scaled_outputs(self, scaled: bool = True) -> Problem:
        """Return the same problem with several numeric outputs divided by standard deviations.

        All outputs then count the same in the objective, whatever their units. Estimators and
        functions of a table do so. Coefficients and predictions stay in the units of y. One output,
        classes, and counts with Poisson loss are never scaled.

        Examples
        --------
        >>> import exactk
        >>> X, y = [[0.0], [1.0], [3.0]], [[1.0, 400.0], [2.0, 100.0], [4.0, 200.0]]
        >>> problem = exactk.Problem.from_arrays(X, y).with_scaled_outputs()
        >>> round(problem.total, 10), problem.refit([0]).coef.round(1).tolist()
        (4.0, [[1.0], [-50.0]])
        """
        problem = replace(cast("Problem", self), scaled_outputs=scaled)
        return _with_scores(problem, problem.loss)

    @property
    def output_scale(self) -> Floats | None:
        """Factors of numeric outputs that are scaled, else None."""
        target = cast("Problem", self).target
        return None if target is None or target.classes is not None else target.scores

    def in_units_of_y(self, fit: Fit) -> Fit:
        """Return a fit of scaled outputs with coefficients in the units of y."""
        scale = self.output_scale
        if scale is None:
            return fit
        return replace(fit, coef=fit.coef / scale[:, None], intercept=fit.intercept / scale)

    def with_class_weight(self, class_weight: Any, *, verbose: int = 0) -> Problem:
        """Return the same problem with rows that weigh by their class, times their own weight.

        Parameters
        ----------
        class_weight : "balanced" or mapping of label to float
            "balanced" makes all classes weigh the same; labels that a mapping does not name weigh
            1.
        verbose : int
            1 shows how many rows of a file or a cluster were read into memory.

        Examples
        --------
        >>> import exactk
        >>> problem = exactk.Problem.from_arrays([[0.0], [1.0], [3.0], [4.0]], list("abbb"))
        >>> problem.with_class_weight("balanced").y_mean
        array([0.5, 0.5])
        """
        problem = cast("Problem", self)
        held = problem.in_memory(verbose=verbose)
        assert held.rows is not None
        assert held.target is not None
        weights = apply_class_weights(class_weight, held.target, held.weights)
        weighed = problem.from_rows(
            held.rows, held.target, weights, ridge=problem.ridge, scale=problem.scaled,
            memory_limit=problem.memory_limit,
        )  # fmt: skip
        return replace(
            weighed.with_settings_of(problem), base_weights=(held.row_weights,),
            class_weights=(*held.class_weights, class_weight),
        )  # fmt: skip

    @property
    def with_squared_loss(self) -> Problem:
        """The same problem with squared loss."""
        problem = cast("Problem", self)
        return problem if isinstance(problem.loss, Squared) else problem.with_loss()

    @cached_property
    def weighted_rows(self) -> Indices:
        """Rows of weight above zero."""
        problem = cast("Problem", self)
        assert problem.rows is not None
        if problem.weights is None:
            return np.arange(problem.rows.n_rows)
        return np.flatnonzero(problem.weights > 0)

    @cached_property
    def criterion(self) -> Criterion:
        """The loss with the target of the rows that count."""
        problem = cast("Problem", self)
        if problem.rows is None or problem.target is None:
            raise InputError(
                f"loss {problem.loss.name!r} reads the rows of the table", parameter="loss",
                hint="call problem.in_memory() first",
            )  # fmt: skip
        kept, weights = self.weighted_rows, problem.weights
        w = np.ones(len(kept)) if weights is None else weights[kept]
        target = problem.target.subset(kept)
        problem.loss.check_rows(target, w, kept)
        return problem.loss.bind(target, w)

    @cached_property
    def null_model(self) -> tuple[Floats, float]:
        """Intercepts and loss of a model without any column."""
        return self.criterion.null()

    @cached_property
    def curvature(self) -> float:
        """How strongly the loss bends, the mean over rows, where a model explains nothing.

        The ridge is relative to it: it then shrinks alike whatever the loss and its units. 1 for
        squared losses.
        """
        return 1.0 if cast("Problem", self).loss.by_moments else self.criterion.curvature()

    @property
    def has_sharp_minimum(self) -> bool:
        """Whether a fit comes to the same coefficients from wherever it starts, and soon."""
        by_likelihood = isinstance(self.criterion, LikelihoodCriterion)
        return by_likelihood and cast("Problem", self).penalty > 0

    def fit_loss(self, S: Indices, theta: Floats | None = None) -> Fit:
        """Fit on some columns by a loss that needs rows, from given coefficients as well."""
        problem, criterion = cast("Problem", self), self.criterion
        live = S[problem.x_scale[S] > 0]
        x = (
            problem.standardised(live)[0][self.weighted_rows]
            if live.size
            else np.zeros((len(criterion.T), 0))
        )
        Z, back = design(x.T[None]), np.eye(len(live))
        by_steps = isinstance(criterion, LikelihoodCriterion)
        if by_steps and live.size and not problem.penalty:
            # Columns may nearly depend on each other, which Newton steps would feel.
            columns, back = orthogonal(x)
            Z = design(columns.T[None])
        if len(live) < len(S):
            theta = None
        start = self._starts(Z, theta)
        interrupted = False
        try:
            fits = criterion.fits(
                np.repeat(Z, len(start), axis=0), problem.penalty, start,
                steps=FIT_STEPS, tol=FIT_TOLERANCE,
            )  # fmt: skip
        except KeyboardInterrupt:
            if theta is None:
                raise
            # What a search has found must not be lost with its last digits.
            interrupted, none = True, np.zeros(1, dtype=bool)
            Z, back = design(x.T[None]), np.eye(len(live))
            fits = Fits(theta[None], self._values(Z, theta[None]), none, none)
        at = int(np.argmin(fits.values))
        W, b = criterion.outputs(fits.theta[at])
        coef = np.zeros((problem.n_outputs, len(S)))
        coef[:, problem.x_scale[S] > 0] = (W @ back) * problem.x_scale[live]
        value = float(fits.values[at])
        fit = Fit(
            coef=coef,
            intercept=b - coef @ problem.x_mean[S],
            objective=value,
            residual=value - problem.penalty * float((fits.theta[at, :-1] ** 2).sum()),
            rank=self.with_squared_loss.refit(S).rank,
            note=_note(bool(fits.converged[at]), bool(fits.separated[at])),
            interrupted=interrupted,
        )
        return self.in_units_of_y(fit)

    def _starts(self, Z: Floats, theta: Floats | None) -> Floats:
        """Coefficients to start a fit from that is reported.

        It must not hang on how its columns were found. So what a search has come to counts only
        where there are several minima, of which the lowest is reported, or where there is one alone
        and it is near.
        """
        problem, criterion = cast("Problem", self), self.criterion
        cold = criterion.cold_start(Z, problem.penalty)
        if not problem.loss.convex:
            # A model without columns is one of them.
            null = np.zeros_like(cold)
            null[:, -1] = self.null_model[0]
            return np.concatenate([cold, null, *([] if theta is None else [theta[None]])])
        if theta is None or not self.has_sharp_minimum:
            return cold
        both = np.concatenate([theta[None], cold])
        return both[[int(np.argmin(self._values(Z, both)))]]

    def _values(self, Z: Floats, theta: Floats) -> Floats:
        """Objectives of several coefficients on the same columns."""
        penalty = cast("Problem", self).penalty
        with np.errstate(over="ignore", invalid="ignore"):
            loss = self.criterion.value(Z[0].T @ theta)
        values: Floats = loss + penalty * (theta[:, :-1] ** 2).sum(axis=(1, 2))
        return np.where(np.isfinite(values), values, np.inf)


def _note(converged: bool, separated: bool) -> str:
    if separated:
        return (
            "the classes (or counts of zero) are separated by these columns, so that no "
            "coefficients are the best: the loss falls to a limit while they grow without end; "
            "give a ridge, or a larger one"
        )
    return "" if converged else "the fit on the chosen columns was not brought to its end"


def _with_scores(problem: Problem, loss: Loss) -> Problem:
    """Return the problem with another loss, and with the outputs multiplied as it needs them."""
    target, is_numeric = problem.target, problem.task == "regression" and problem.n_outputs > 1
    of_classes = isinstance(loss, OptimalScoring)
    of_numbers = problem.scaled_outputs and is_numeric and not isinstance(loss, Poisson)
    are_scored = target is not None and target.scores is not None
    if target is None or (of_classes or of_numbers) == are_scored:
        return replace(problem, loss=loss)
    before = np.ones(problem.n_outputs) if target.scores is None else target.scores
    after = np.ones(problem.n_outputs)
    if of_numbers or is_numeric:
        assert problem.y_scatter is not None
        if of_numbers:
            mean = problem.y_mean / before
            varies = problem.y_scatter > problem.weight * (CONSTANT * np.abs(mean)) ** 2
            after[varies] = np.sqrt(degrees_of_freedom(problem.weight) / problem.y_scatter[varies])
        total = float(after**2 @ problem.y_scatter)
    else:
        shares = problem.y_mean / before
        if of_classes:
            after = class_scores(shares, problem.weight)
        total = float(problem.weight * (after**2 * shares * (1.0 - shares)).sum())
    ratio = after / before
    cross, y_mean = problem.cross * ratio[:, None], problem.y_mean * ratio
    for array in (cross, y_mean):
        array.setflags(write=False)
    scores = after if of_classes or of_numbers else None
    return replace(
        problem, loss=loss, cross=np.ascontiguousarray(cross), y_mean=y_mean, total=total,
        target=replace(target, scores=scores),
    )  # fmt: skip


def check_squared(problem: Problem, what: str) -> None:
    """Raise where something that rests on moments is asked of a loss that needs rows.

    Examples
    --------
    >>> import exactk
    >>> from sklearn.datasets import load_iris
    >>> problem = exactk.Problem.from_arrays(*load_iris(return_X_y=True), loss="l21")
    >>> check_squared(problem, "explain")
    Traceback (most recent call last):
    ...
    exactk.errors.InputError: explain is for squared loss, and this problem has loss 'l21'; use
    loss='squared'
    """
    if not problem.loss.by_moments:
        raise InputError(
            f"{what} is for squared loss, and this problem has loss {problem.loss.name!r}",
            parameter="loss", hint=("use ", Setting("loss", "squared")),
        )  # fmt: skip
