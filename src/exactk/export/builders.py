"""Parts of an exported selection, from a solved problem or a fitted selector."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from exactk.data.categories import Category
from exactk.errors import InputError
from exactk.types import Floats

if TYPE_CHECKING:
    from exactk.problem.problem import Problem
    from exactk.proof.results import Certificate
    from exactk.result import Result

__all__ = ["ChosenFeature", "parts_of_problem", "parts_of_selector"]


@dataclass(frozen=True)
class ChosenFeature:
    """A column of the user's table that was chosen.

    Attributes
    ----------
    name : str
    index : int
        Its place in the table that was fitted, counted from 0.
    levels : tuple of str or None
        Of text or a category all that its rows held; None where it holds numbers.
    reference : str or None
        The level without a coefficient.
    """

    name: str
    index: int
    levels: tuple[str, ...] | None = None
    reference: str | None = None

    @classmethod
    def coded(cls, name: str, index: int, category: Category | None) -> ChosenFeature:
        """Return the feature with the levels of its category, if it is one."""
        if category is None:
            return cls(name, index)
        return cls(name, index, category.levels, category.reference)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, fit for JSON."""
        levels = None if self.levels is None else list(self.levels)
        return {
            "name": self.name, "index": self.index, "levels": levels, "reference": self.reference,
        }  # fmt: skip


def parts_of_problem(
    problem: Problem, result: Result, certificate: Certificate | None, target: str | None
) -> dict[str, Any]:
    """Return the parts of a choice for what was chosen in a problem."""
    S = problem.check_support(result.support)
    if tuple(problem.name(j) for j in S.tolist()) != result.feature_names:
        raise InputError(
            "result is of another problem: its columns have other names there", parameter="result"
        )
    if certificate is not None and certificate.result.support.tolist() != S.tolist():
        raise InputError(
            "certificate is of other columns than result", parameter="certificate",
            hint="export certificate.result",
        )  # fmt: skip
    chosen = problem.table_columns(S)
    categories = {category.column: category for category in problem.categories}
    named = problem.given_names is not None
    names = [problem.original_names[j] if named else problem.name(j) for j in chosen]
    columns = np.flatnonzero(np.isin(problem.input_columns, chosen))
    # A column that a category is coded as may be without a coefficient.
    coef = np.zeros((problem.n_outputs, len(columns)))
    coef[:, np.searchsorted(columns, S)] = result.coef
    ranked = dict.fromkeys(problem.input_columns[result.order].tolist())
    places = dict(zip(chosen, names, strict=True))
    return _parts(
        result,
        certificate,
        features=[ChosenFeature.coded(name, j, categories.get(j)) for j, name in places.items()],
        order=[places[j] for j in ranked],
        n_features_in=int(problem.input_columns[-1]) + 1,
        feature_names_in=problem.original_names if named else None,
        task=problem.task,
        target=target,
        classes=problem.classes,
        coef=coef,
        intercept=result.intercept,
    )


def parts_of_selector(selector: Any) -> dict[str, Any]:
    """Return the parts for a fitted selector, with the fit that it predicts with, if it does."""
    result, coding = selector.result_, selector._coding
    chosen = np.flatnonzero(selector.support_).tolist()
    known = getattr(selector, "feature_names_in_", None)
    names = [f"x{j}" if known is None else str(known[j]) for j in chosen]
    places = dict(zip(chosen, names, strict=True))
    return _parts(
        result,
        getattr(selector, "certificate_", None),
        features=[
            ChosenFeature.coded(name, j, coding.get(at))
            for at, (j, name) in enumerate(places.items())
        ],
        order=[places[j] for j in selector.selected_.tolist()],
        n_features_in=int(selector.n_features_in_),
        feature_names_in=None if known is None else known.tolist(),
        task=selector._task,
        target=None,
        classes=getattr(selector, "classes_", None),
        coef=selector.coef_[:, selector._columns],
        intercept=selector.intercept_,
        # An estimator has brought its coefficients to what it predicts with.
        ready=hasattr(selector, "predict"),
    )


def _parts(
    result: Result,
    certificate: Certificate | None,
    *,
    features: Sequence[ChosenFeature],
    order: Sequence[str],
    feature_names_in: Sequence[str] | None,
    task: str,
    classes: npt.NDArray[Any] | None,
    coef: Floats,
    intercept: Floats,
    ready: bool = False,
    **rest: Any,
) -> dict[str, Any]:
    kind, labels = (None, None) if classes is None else _labels(classes)
    return dict(
        features=tuple(features),
        order=tuple(order),
        feature_names_in=None if feature_names_in is None else tuple(feature_names_in),
        task=task,
        classes=labels,
        class_kind=kind,
        k=result.k,
        method=result.method,
        loss=result.loss,
        ridge=float(result.ridge),
        objective=float(result.objective),
        total=float(result.total),
        status=str(result.status),
        proven=None if certificate is None else bool(certificate.proven),
        gap=None if certificate is None else float(certificate.gap),
        predicts=_prediction(result.loss, task, classes is not None, ready),
        intercept=tuple(intercept.tolist()),
        coef=tuple(map(tuple, coef.tolist())),
        **rest,
    )


def _prediction(loss: str, task: str, classes: bool, ready: bool) -> str | None:
    """What the scores of a fit come to."""
    if classes:
        # Scores of classes are not compared with each other; discriminants made of them are.
        return "class" if ready or loss != "optimal_scoring" else None
    if task == "classification":
        return None
    return "exp" if loss == "poisson" else "number"


def _labels(classes: npt.NDArray[Any]) -> tuple[str, tuple[Any, ...]]:
    """Labels as JSON has them, and what they were."""
    labels = tuple(classes.tolist())
    labels = tuple(one.item() if isinstance(one, np.generic) else one for one in labels)
    kinds = {type(label).__name__ for label in labels}
    kind = kinds.pop() if len(kinds) == 1 else ""
    # Dates of NumPy may be whole numbers once they are plain.
    if kind in ("int", "float", "bool", "str") and classes.dtype.kind not in "mM":
        return kind, labels
    return "text", tuple(str(label) for label in classes)
