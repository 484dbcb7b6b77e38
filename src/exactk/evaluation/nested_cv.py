"""What a selection is worth on rows that it has not seen, beside the figure that leaks."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from math import isfinite, nan, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from exactk.errors import InputError
from exactk.estimators.selector import TopKSelector
from exactk.evaluation.fold_data import ArrayData, EvaluationData, ProblemData, Selection
from exactk.evaluation.holdout import (
    check_sizes,
    estimator_name,
    make_scorer,
    make_splits,
    score_baseline,
    score_columns,
    search_seed,
    stability_of,
)
from exactk.evaluation.permutation_test import permutation_null
from exactk.methods import registry
from exactk.model_selection.cross_validation import Split
from exactk.params import Integer, Seed
from exactk.problem.problem import Problem
from exactk.types import Floats
from exactk.utils.progress import show_count
from exactk.utils.records_table import RecordsTable

__all__ = ["SelectionScore", "score_selection"]

FOLD_COLUMNS = (
    "fold",
    "n_train",
    "n_test",
    "k",
    "features",
    "test_score",
    "naive_score",
    "baseline_score",
)


@dataclass(frozen=True, eq=False)
class SelectionScore:
    """What `score_selection` found.

    Attributes
    ----------
    folds : RecordsTable
        One row a fold: fold, n_train, n_test, k, features, test_score, naive_score,
        baseline_score.
    k : int
        Size of the selection on all rows.
    features : tuple of str
        What was chosen on all rows, which the naive figure is about.
    in_all_folds : tuple of str
        Features chosen in every fold.
    stability : float
        Nogueira's index of the selections of the folds over the features that can be chosen and
        need not be, as in `exactk.stability`: 1 if they agree, about 0 if they are drawn at
        random; nan for a single fold.
    observed : float
        Share of ‖HY‖² that the selection on all rows explains, less the ridge term: what the
        search looks for.
    null : ndarray
        The same after the same search, one for each permuted target.
    scoring, estimator : str
    task : {"classification", "regression"}
    n_rows, n_features : int
    message : str
        What was not done as asked, else empty.
    splits : list of (train, test)
        Numbers of the rows.
    """

    folds: RecordsTable
    k: int
    features: tuple[str, ...]
    in_all_folds: tuple[str, ...]
    stability: float
    observed: float
    null: Floats = field(repr=False)
    scoring: str
    estimator: str
    task: str
    n_rows: int
    n_features: int
    message: str
    splits: list[Split] = field(repr=False)

    @property
    def test_score(self) -> float:
        """Mean score over the folds, each selected for on its training rows alone."""
        return float(np.mean(self.folds["test_score"]))

    @property
    def naive_score(self) -> float:
        """Mean score on the same folds of the columns selected on all rows, test rows too."""
        return float(np.mean(self.folds["naive_score"]))

    @property
    def baseline_score(self) -> float:
        """Mean score of the commonest class, or of the mean, of the training rows."""
        return float(np.mean(self.folds["baseline_score"]))

    @property
    def optimism(self) -> float:
        """By how much the naive figure is better than the honest one."""
        return self.naive_score - self.test_score

    @property
    def standard_error(self) -> float:
        """Standard error of the honest mean; the folds share training rows, so it is a guide."""
        values = self.folds["test_score"]
        return float(np.std(values, ddof=1)) / sqrt(len(values)) if len(values) > 1 else nan

    @property
    def p_value(self) -> float:
        """How often a permuted target is explained as well: (1 + #) / (1 + n); nan without any."""
        n = len(self.null)
        if n == 0:
            return nan
        # Equal but for rounding is equal.
        as_good = int((self.null >= self.observed - 1e-12).sum())
        return (1 + as_good) / (1 + n)

    def to_frame(self, library: str = "pandas") -> Any:
        """Return `folds` as a frame of pandas, or of ``library="polars"``."""
        return self.folds.to_frame(library)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold; nan becomes None."""
        figures = {
            "test_score": self.test_score, "standard_error": self.standard_error,
            "naive_score": self.naive_score, "baseline_score": self.baseline_score,
            "optimism": self.optimism, "stability": self.stability,
            "p_value": self.p_value, "observed": self.observed,
        }  # fmt: skip
        return {
            "scoring": self.scoring, "estimator": self.estimator, "task": self.task,
            "n_rows": self.n_rows, "n_features": self.n_features, "k": self.k,
            **{name: value if isfinite(value) else None for name, value in figures.items()},
            "n_permutations": len(self.null), "null": self.null.tolist(),
            "features": list(self.features), "in_all_folds": list(self.in_all_folds),
            "message": self.message, "folds": json.loads(self.folds.to_json()),
        }  # fmt: skip

    def to_json(self, **options: Any) -> str:
        """Return `to_dict` as JSON; options go to ``json.dumps``."""
        return json.dumps(self.to_dict(), **options)

    def __repr__(self) -> str:
        """Return the figures in a few lines."""
        error = f" ± {self.standard_error:.3f}" if isfinite(self.standard_error) else ""
        lines = [
            f"{self.scoring} of {self.estimator} on {self.k} of {self.n_features} features, "
            f"{len(self.folds)} folds",
            f"honest    {self.test_score:.3f}{error}  (selected within each fold)",
            f"naive     {self.naive_score:.3f}  (selected on all rows, which leaks)",
            f"optimism  {self.optimism:.3f}",
            f"baseline  {self.baseline_score:.3f}  (no features)",
        ]
        if len(self.null):
            lines.append(f"p-value   {self.p_value:.3g}  ({len(self.null)} permutations)")
        return "\n".join(lines)


def score_selection(
    X: Any,
    y: Any = None,
    k: int | str | None = None,
    *,
    estimator: Any = None,
    scoring: Any = None,
    cv: Any = None,
    groups: Any = None,
    sample_weight: Any = None,
    selector: TopKSelector | None = None,
    n_permutations: int = 100,
    random_state: Any = None,
    verbose: int = 0,
    **options: Any,
) -> SelectionScore:
    """Score selection and estimator together on rows that neither has seen.

    In each fold the features are chosen on the training rows alone (k too, if it is "auto"), the
    estimator is trained on them, and scored on the rows held out: the honest figure. Beside it
    stands the naive one, where features are chosen on all rows before the folds are made: it has
    seen the test rows, and on wide tables it looks good on noise. A permutation test says how
    often the same search explains as much of a target that was shuffled over the rows.

    Parameters
    ----------
    X : array-like, sparse matrix or frame of shape (n, d), or Problem
        A `Problem` made of a table, with its own rules and ridge, in place of X, y and
        sample_weight. Another ridge is used only where one is given: ``ridge="auto"``, "cv" or a
        number among the options, or a `selector` whose ridge is not its default.
    y : array-like of shape (n,) or (n, c), or None
    k : int, "auto" or None
        How many features; None takes that of `selector`, or 10.
    estimator : estimator, str or None
        Trained on the chosen columns of X, as they are: of a frame it gets a frame. Where any
        column of X is text or categories, it gets an array of numbers instead, those columns
        coded as 0 and 1 as `Problem.from_arrays` codes them by all rows, whatever kind of table X
        is. For an encoder of one's own encode the table before, or give a Pipeline of
        encoder, selector and estimator to ``cross_val_score`` of scikit-learn. None is logistic
        regression, or ridge regression for numbers, on standardised columns. Words for others
        that are made the same way: "svm", "knn", "forest".
    scoring : str, callable or None
        A score of scikit-learn's, the higher the better. None is "accuracy", or "r2" for numbers;
        of classes of very different size "balanced_accuracy" says more.
    cv : int, splitter of scikit-learn, iterable of (train, test), or None
        A number of folds: stratified by class, or shuffled rows, or whole groups; None is five, or
        fewer where there are fewer rows or groups. A splitter is shown the rows of non-zero
        weight.
    groups : array-like of shape (n,) or None
        Rows of one group (a patient, a site) are never on both sides of a fold, and are permuted
        as in `exactk.evaluation.permutation_test.permuted_problems`. Groups of features are a
        parameter of `selector`.
    sample_weight : array-like of shape (n,) or None
        For the selection, the estimator and the score; rows of weight 0 take no part.
    selector : TopKSelector or None
        How features are chosen; it is not changed.
    n_permutations : int
        Permuted targets, each searched as the true one is, with the k and the ridge that the true
        one was given on all rows. 0 leaves the test out.
    random_state : int, Generator or None
        Seed of the folds, the search and the permutations; None is a fixed seed.
    verbose : int
        1 shows progress.
    **options
        Parameters of `TopKSelector`, such as ``method`` or ``include``. Its ``time_limit`` is for
        each selection. Where ``k="auto"``, its own ``cv``, ``scoring`` and ``estimator``, by which
        k is chosen within the training rows, are given by `selector`.

    Returns
    -------
    SelectionScore

    Raises
    ------
    KeyboardInterrupt
        After Ctrl-C within the folds: some of them are no answer. Within the permutations those
        that were made are kept, and the message says how many.

    Examples
    --------
    Noise, of which the naive figure makes a discovery:

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(60, 300)), np.arange(60) % 2
    >>> score_selection(X, y, k=10, n_permutations=19)
    accuracy of LogisticRegression on 10 of 300 features, 5 folds
    honest    0.600 ± 0.061  (selected within each fold)
    naive     0.883  (selected on all rows, which leaks)
    optimism  0.283
    baseline  0.500  (no features)
    p-value   0.45  (19 permutations)
    """
    Integer(0)("n_permutations", n_permutations)
    Seed()("random_state", random_state)
    chooser = _selector(selector, k, random_state, options)
    data: EvaluationData
    if isinstance(X, Problem):
        if y is not None or sample_weight is not None:
            raise InputError(
                "y and sample_weight cannot be given beside a Problem, which has its own"
            )
        if "ridge" not in options and chooser.ridge == TopKSelector().ridge:
            chooser.set_params(ridge=X.ridge)
        data = ProblemData(X, chooser, groups)
    else:
        data = ArrayData(X, y, sample_weight, chooser, groups)
    splits = make_splits(data, cv, random_state)
    scorer = make_scorer(data, estimator, scoring)
    check_sizes(data, splits)
    baseline = score_baseline(data, scorer, splits)
    with show_count("folds", len(splits), verbose) as show:
        whole = _choose(data, data.all_rows, "all rows")
        chosen, honest, naive = [], [], []
        for number, split in enumerate(splits, start=1):
            found = _choose(data, split[0], f"the training rows of fold {number}")
            chosen.append(found)
            honest.append(score_columns(scorer, data, split, found.support))
            naive.append(score_columns(scorer, data, split, whole.support))
            show(number)
    rows = [
        (number, len(train), len(test), found.k, found.names, *figures)
        for number, ((train, test), found, *figures) in enumerate(
            zip(splits, chosen, honest, naive, baseline, strict=True), start=1
        )
    ]
    in_all = [name for name in chosen[0].names if all(name in found.names for found in chosen)]
    observed, null, message = permutation_null(data, whole, n_permutations, random_state, verbose)
    return SelectionScore(
        folds=RecordsTable(FOLD_COLUMNS, rows), k=whole.k, features=whole.names,
        in_all_folds=tuple(in_all),
        stability=stability_of([found.support for found in chosen], data.problem),
        observed=observed, null=null,
        scoring=scorer.scoring, estimator=estimator_name(scorer.estimator), task=data.problem.task,
        n_rows=data.problem.n_rows, n_features=data.n_columns, message=message, splits=splits,
    )  # fmt: skip


def _selector(
    selector: Any, k: int | str | None, random_state: Any, options: dict[str, Any]
) -> TopKSelector:
    """A selector of one's own with all that was said, its parameters checked."""
    if selector is None:
        selector = TopKSelector()
    elif not isinstance(selector, TopKSelector):
        raise InputError(
            f"selector must be a TopKSelector, not {type(selector).__name__}; other selectors can "
            f"be scored in a scikit-learn Pipeline with cross_val_score"
        )
    known = list(selector.get_params(deep=False))
    registry.check_options("TopKSelector", known, options)
    if k is not None:
        options["k"] = k
    if random_state is not None:
        options["random_state"] = search_seed(random_state)
    chooser: TopKSelector = clone(selector).set_params(**options, verbose=0)
    return chooser


def _choose(data: EvaluationData, rows: npt.NDArray[np.intp], where: str) -> Selection:
    try:
        return data.choose(rows)
    except InputError as error:
        raise InputError(f"selection on {where}: {error}") from error
