"""How good a fit is for its number of features, without folds: BIC, EBIC, AICc and Mallows' Cp."""

from __future__ import annotations

from collections.abc import Sequence
from math import lgamma, log

import numpy as np

from exactk.errors import InputError, Setting
from exactk.losses.likelihood import Logistic, Poisson
from exactk.params import Choice
from exactk.problem.constraints import Rules
from exactk.problem.problem import Problem
from exactk.result import Result
from exactk.types import Floats, Indices
from exactk.utils.linalg import SINGULAR

__all__ = [
    "CRITERIA", "PERFECT", "check_criterion", "counted_rows", "criterion_values",
    "degrees_of_freedom", "is_likelihood",
]  # fmt: skip

CRITERIA = ("bic", "ebic", "aicc", "cp")
# A residual below this share of ‖HY‖² is rounding: fits that reach it are equally perfect.
PERFECT = 1e-12


def criterion_values(problem: Problem, results: Sequence[Result], criterion: str) -> Floats:
    """Return an information criterion of each fit; the smallest is the best.

    Errors are taken as Gaussian with one variance for all N = n·c′ numbers of the target: n rows
    (the sum of the weights where they count rows, see `counted_rows`) and c′ outputs, c − 1 for
    classes, because the errors of a row sum to zero. A fit has p = c′·(df + 1) + 1 parameters:
    coefficients, intercepts and the variance, with df from `degrees_of_freedom`.

    * ``"bic"``: N log(RSS/N) + p log n. It is log n because the information about a coefficient
      grows with the rows alone (Schwarz 1978).
    * ``"ebic"``: adds 2 log C(d, k), because a search among many columns finds some that fit by
      chance (Chen & Chen 2008, with γ = 1): d candidates, k selected, both without `include`. For
      k > d/2 the value of d/2 is used.
    * ``"aicc"``: N log(RSS/N) + 2pN/(N − p − 1), AIC corrected for few rows (Hurvich & Tsai 1989);
      infinite if p leaves no degree of freedom.
    * ``"cp"``: RSS/σ² − N + 2(p − 1), with σ² from least squares on all candidates (Mallows 1973).

    With loss "logistic" or "poisson" the deviance replaces N log(RSS/N), and there is no variance
    among the parameters. An RSS below 10⁻¹² of ‖HY‖² is rounding and counts as that: among perfect
    fits the smallest wins.

    Parameters
    ----------
    problem : Problem
    results : sequence of Result
        Fits on this problem, with its ridge.
    criterion : {"bic", "ebic", "aicc", "cp"}

    References
    ----------
    C. L. Mallows, "Some comments on Cp", Technometrics 15, 1973.
    G. Schwarz, "Estimating the dimension of a model", Annals of Statistics 6, 1978.
    C. M. Hurvich, C.-L. Tsai, "Regression and time series model selection in small samples",
    Biometrika 76, 1989.
    J. Chen, Z. Chen, "Extended Bayesian information criteria for model selection with large model
    spaces", Biometrika 95, 2008.

    Examples
    --------
    >>> import exactk
    >>> from sklearn.datasets import load_diabetes
    >>> problem = exactk.Problem.from_arrays(*load_diabetes(return_X_y=True), task="regression")
    >>> values = criterion_values(problem, exactk.solve_path(problem, 10), "bic")
    >>> int(values.argmin()) + 1
    5
    """
    check_criterion(problem, criterion)
    n, outputs = counted_rows(problem), problem.n_outputs - (problem.classes is not None)
    N, likelihood = n * outputs, is_likelihood(problem)
    floor, unit = PERFECT * problem.objective([]), problem.weight * outputs
    errors = np.array([max(result.residual, floor) / unit for result in results])
    # The ridge is relative to the curvature of a loss: its share is that of squared loss.
    squared = problem.with_squared_loss
    coefficients = np.array(
        [outputs * (degrees_of_freedom(squared, result.support) + 1.0) for result in results]
    )
    if criterion == "cp":
        # The variance of the errors, from least squares on all candidates.
        free, columns = problem.with_ridge(0.0), problem.candidates
        full = max(free.refit(columns).residual, floor) / unit
        used = outputs * (degrees_of_freedom(free.with_squared_loss, columns) + 1.0)
        variance = full * N / (N - used)
        return N * (errors / variance - 1.0) + 2.0 * coefficients
    # The variance of the errors is a parameter of squared loss.
    parameters = coefficients + (not likelihood)
    deviance = N * (errors if likelihood else np.log(errors))
    if criterion == "aicc":
        spare = N - parameters - 1.0
        added = np.full(len(spare), np.inf)
        np.divide(2.0 * parameters * N, spare, out=added, where=spare > 0)
        return deviance + added
    bic = deviance + parameters * log(n)
    if criterion == "bic":
        return bic
    return bic + 2.0 * np.array([_log_models(problem, result.support) for result in results])


def counted_rows(problem: Problem) -> float:
    """Return the number of rows: the sum of the weights if they count rows, else the rows.

    Weights count rows if all of them are whole. For moments and streams only the sum is known: it
    counts if it is whole and at least the number of rows.
    """
    rows, weight = float(problem.n_rows), float(problem.weight)
    if problem.rows is None:
        return weight if weight.is_integer() and weight >= rows else rows
    # Without the weights of classes, which count no rows.
    weights = problem.row_weights
    whole = weights is not None and bool((weights == np.floor(weights)).all())
    return float(weights.sum()) if weights is not None and whole else rows


def degrees_of_freedom(problem: Problem, support: Indices) -> float:
    """Return tr(A_SS⁻¹(A_SS − ridge)), the effective number of columns of a ridge fit.

    Without a ridge it is k; columns that depend on others add nothing.
    """
    live = support[problem.scatter[support] > 0]
    if live.size == 0:
        return 0.0
    gram = problem.gram.block(live)
    if problem.penalty == 0:
        root = 1.0 / np.sqrt(np.diagonal(gram))
        values = np.linalg.eigvalsh(gram * np.outer(root, root))
        return float(np.count_nonzero(values > SINGULAR * len(live)))
    values = np.maximum(np.linalg.eigvalsh(gram), 0.0)
    return float((values / (values + problem.penalty)).sum())


def is_likelihood(problem: Problem) -> bool:
    """Return whether the loss of a problem is a deviance."""
    return isinstance(problem.loss, (Logistic, Poisson))


def _log_models(problem: Problem, support: Indices) -> float:
    """Return the logarithm of the number of sets of this size."""
    rules = problem.rules or Rules()
    fixed = rules.size_of(rules.include)
    d = rules.size_of(problem.candidates) - fixed
    # There are fewer sets of nearly all columns than of half of them, which is no merit.
    k = min(rules.size_of(support) - fixed, d // 2)
    return lgamma(d + 1) - lgamma(k + 1) - lgamma(d - k + 1)


def check_criterion(problem: Problem, criterion: str) -> None:
    """Raise if a criterion cannot be computed for a problem."""
    Choice(options=CRITERIA)("criterion", criterion)
    of_loss = criterion != "cp" and is_likelihood(problem)
    if not (problem.loss.by_moments or of_loss):
        raise InputError(
            f"criterion {criterion!r} does not exist for loss {problem.loss.name!r}",
            parameter="criterion", value=criterion, hint=("use ", Setting("criterion", "cv")),
        )  # fmt: skip
    columns, rows = len(problem.candidates), counted_rows(problem)
    if criterion == "cp" and rows - 1 <= columns:
        raise InputError(
            f"criterion 'cp' needs a fit to all {columns} columns, and there are only {rows:g} "
            f"rows",
            parameter="criterion", value=criterion,
            hint=("use ", Setting("criterion", "ebic"), " or ", Setting("criterion", "cv")),
        )  # fmt: skip
