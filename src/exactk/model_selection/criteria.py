"""How good a fit is for its size, without folds: BIC, EBIC, AICc and Mallows' Cp from moments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf, lgamma, log

import numpy as np

from exactk.errors import InputError
from exactk.losses.likelihood import Logistic, Poisson
from exactk.params import Choice
from exactk.problem.problem import Problem
from exactk.result import Result
from exactk.types import Floats, Indices
from exactk.utils.linalg import SINGULAR

__all__ = ["CRITERIA", "check_criterion", "counted_rows", "criterion_values", "degrees_of_freedom"]


# A residual below this share of ‖HY‖² is rounding: fits that reach it are equally perfect.
PERFECT = 1e-12


@dataclass(frozen=True)
class _Size:
    """What a criterion knows of one fit, and of the table that it was made on.

    Attributes
    ----------
    n, values : float
        Rows, and numbers that the fit has to explain: rows times free outputs.
    error : float
        Squared error for each of those numbers.
    coefficients : float
        Intercepts and effective coefficients of all outputs.
    log_models : float
        Logarithm of how many models of this size there were to choose from.
    likelihood : bool
        Whether the error is a deviance already.
    """

    n: float
    values: float
    error: float
    coefficients: float
    log_models: float

    likelihood: bool = False

    @property
    def parameters(self) -> float:
        """The coefficients, and for squared loss the variance of the errors."""
        return self.coefficients + (0.0 if self.likelihood else 1.0)

    @property
    def deviance(self) -> float:
        """Minus twice the logarithm of the likelihood, a constant aside."""
        return self.values * (self.error if self.likelihood else log(self.error))


def _bic(size: _Size) -> float:
    return size.deviance + size.parameters * log(size.n)


def _ebic(size: _Size) -> float:
    return _bic(size) + 2.0 * size.log_models


def _aicc(size: _Size) -> float:
    spare = size.values - size.parameters - 1.0
    if spare <= 0:
        return inf
    return size.deviance + 2.0 * size.parameters * size.values / spare


_OF_LIKELIHOOD: dict[str, Callable[[_Size], float]] = {
    "bic": _bic, "ebic": _ebic, "aicc": _aicc,
}  # fmt: skip
LIKELIHOOD_CRITERIA = tuple(_OF_LIKELIHOOD)
CRITERIA = (*LIKELIHOOD_CRITERIA, "cp")


def criterion_values(problem: Problem, results: Sequence[Result], criterion: str) -> Floats:
    """Return an information criterion of each fit; the smallest is the best.

    Errors are taken as Gaussian with one variance for all of the N = n·c′ numbers of the target:
    n rows (the sum of the weights where they count rows, see `counted_rows`) and c′ outputs,
    c − 1 for one-hot classes, whose errors sum to zero in each row. A fit has p = c′·(df + 1) + 1
    parameters: its coefficients and intercepts, and the variance. With a ridge, df =
    tr(A_SS⁻¹(A_SS − ridge)) is less than the number of columns (`degrees_of_freedom`).

    * ``"bic"``: N log(RSS/N) + p log n. It is log n and not log N because the information about a
      coefficient grows with the rows alone: each one belongs to one output (Schwarz 1978).
    * ``"ebic"``: adds 2 log C(d, k), for a search among many columns finds some that fit by
      chance (Chen & Chen 2008, with γ = 1); d candidates, k chosen, those that must be in not
      counted. For k > d/2 the middle counts, C(d, d/2): the paper has k far below d, and there
      are fewer sets of nearly all columns than of half of them.
    * ``"aicc"``: N log(RSS/N) + 2pN/(N − p − 1), AIC corrected for few rows (Hurvich & Tsai 1989);
      infinite where p leaves no degree of freedom.
    * ``"cp"``: RSS/σ² − N + 2(p − 1), with σ² from least squares on all candidates (Mallows 1973).

    With loss "logistic" or "poisson" the deviance of the fit takes the place of N log(RSS/N), and
    there is no variance among the parameters.

    An RSS below 10⁻¹² of ‖HY‖² is rounding and taken as 10⁻¹²‖HY‖²: among perfect fits the
    smallest wins.

    Parameters
    ----------
    problem : Problem
    results : sequence of Result
        Fits on this problem, with its ridge.
    criterion : {"bic", "ebic", "aicc", "cp"}

    Returns
    -------
    ndarray

    Raises
    ------
    InputError
        For "cp" where columns leave no rows to estimate the variance.

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
    sizes = [_size(problem, result.support, result.residual) for result in results]
    if criterion != "cp":
        return np.array([_OF_LIKELIHOOD[criterion](size) for size in sizes])
    variance = _variance(problem)
    return np.array([s.values * (s.error / variance - 1.0) + 2.0 * s.coefficients for s in sizes])


def counted_rows(problem: Problem) -> float:
    """Return how many rows a problem rests on: the sum of weights that count rows, else rows.

    Weights count rows where all of them are whole. Of moments and of tables that are passed over
    no more than the sum is known: it counts where it is whole, and no less than there are rows.

    Examples
    --------
    >>> X, y = [[0.0], [1.0], [3.0]], [1.0, 2.0, 4.0]
    >>> counted_rows(Problem.from_arrays(X, y, sample_weight=[2, 3, 1]))
    6.0
    >>> counted_rows(Problem.from_arrays(X, y, sample_weight=[2.5, 3, 1]))
    3.0
    """
    rows, weight = float(problem.n_rows), float(problem.weight)
    if problem.rows is not None:
        weights = problem.weights
        whole = weights is not None and bool((weights == np.floor(weights)).all())
    else:
        whole = weight.is_integer() and weight >= rows
    return weight if whole else rows


def degrees_of_freedom(problem: Problem, support: Indices) -> float:
    """Return tr(A_SS⁻¹(A_SS − ridge)): how many columns a ridge fit is worth; k without a ridge.

    Columns that depend on others are worth nothing.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> problem = Problem.from_arrays(*load_iris(return_X_y=True))
    >>> degrees_of_freedom(problem, np.array([0, 1]))
    2.0
    >>> round(degrees_of_freedom(problem.with_ridge(0.1), np.array([0, 1])), 3)
    1.816
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


def _size(problem: Problem, support: Indices, residual: float) -> _Size:
    n = counted_rows(problem)
    outputs = problem.n_outputs - (problem.classes is not None)
    error = max(residual, PERFECT * problem.objective([])) / (problem.weight * outputs)
    # The ridge is relative to how a loss bends: its share of each column is that of squared loss.
    coefficients = outputs * (degrees_of_freedom(problem.with_squared_loss, support) + 1.0)
    by_likelihood = isinstance(problem.loss, (Logistic, Poisson))
    log_models = _log_models(problem, support)
    return _Size(n, n * outputs, error, coefficients, log_models, by_likelihood)


def _log_models(problem: Problem, support: Indices) -> float:
    """Log C(d, k), of columns or groups that may be chosen, without those that must."""
    available, chosen = len(problem.candidates), len(support)
    if problem.rules is not None:
        rules = problem.rules
        fixed = rules.size_of(rules.include)
        available, chosen = (
            rules.size_of(problem.candidates) - fixed,
            rules.size_of(support) - fixed,
        )
    # Beyond the middle there are fewer models again, which is no merit of a larger one.
    chosen = min(chosen, available // 2)
    return lgamma(available + 1) - lgamma(chosen + 1) - lgamma(available - chosen + 1)


def check_criterion(problem: Problem, criterion: str) -> None:
    """Raise where a criterion cannot be had of a problem, before it is searched.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> check_criterion(Problem.from_arrays(*load_iris(return_X_y=True)), "cp")
    """
    Choice(options=CRITERIA)("criterion", criterion)
    allowed = CRITERIA if problem.loss.by_moments else LIKELIHOOD_CRITERIA
    if not problem.loss.by_moments and not isinstance(problem.loss, (Logistic, Poisson)):
        allowed = ()
    if criterion not in allowed:
        raise InputError(
            f"criterion={criterion!r} is for squared loss{' and likelihoods' * (criterion != 'cp')}"
            f", and this problem has loss {problem.loss.name!r}; use criterion='cv'"
        )
    columns, rows = len(problem.candidates), counted_rows(problem)
    if criterion == "cp" and rows - 1 <= columns:
        raise InputError(
            f"criterion='cp' estimates the variance of the errors from a fit on all {columns} "
            f"columns, and {rows:g} rows are too few for that; use criterion='ebic' or "
            f"criterion='cv'"
        )


def _variance(problem: Problem) -> float:
    """The variance of the errors, from least squares on all candidates."""
    free, columns = problem.with_ridge(0.0), problem.candidates
    size = _size(free, columns, free.refit(columns).residual)
    return size.error * size.values / (size.values - size.coefficients)
