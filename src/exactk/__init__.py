"""Select the best k features of a table, and report how good they are.

Examples
--------
>>> from sklearn.datasets import load_iris
>>> import exactk
>>> X, y = load_iris(return_X_y=True)
>>> exactk.TopKSelector(k=2).fit(X, y).get_support(indices=True)
array([1, 3])
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from exactk import losses
from exactk._version import __version__
from exactk.data.moments import Moments
from exactk.errors import ExactkError, InputError, UnknownMethodError, UnknownOptionError
from exactk.model_selection.choose_k import AutoKResult, choose_k
from exactk.model_selection.explain import Explanation, explain
from exactk.model_selection.stability import Stability, stability
from exactk.problem.problem import Problem
from exactk.proof.certify import best_sets, certify, certify_path
from exactk.proof.results import BestSets, Certificate, CertifiedPath
from exactk.result import Path, Result, Status
from exactk.search.feasibility import InfeasibleError
from exactk.solve import solve, solve_path

if TYPE_CHECKING:
    from exactk.estimators.predictors import TopKClassifier, TopKRegressor
    from exactk.estimators.selector import TopKSelector
    from exactk.evaluation.compare import Comparison, compare
    from exactk.evaluation.nested_cv import SelectionScore, score_selection
    from exactk.export.saved_selection import SavedSelection
    from exactk.report.investigate import investigate
    from exactk.report.selection_report import SelectionReport

__all__ = [
    "AutoKResult",
    "BestSets",
    "Certificate",
    "CertifiedPath",
    "Comparison",
    "ExactkError",
    "Explanation",
    "InfeasibleError",
    "InputError",
    "Moments",
    "Path",
    "Problem",
    "Result",
    "SavedSelection",
    "SelectionReport",
    "SelectionScore",
    "Stability",
    "Status",
    "TopKClassifier",
    "TopKRegressor",
    "TopKSelector",
    "UnknownMethodError",
    "UnknownOptionError",
    "__version__",
    "best_sets",
    "certify",
    "certify_path",
    "choose_k",
    "compare",
    "explain",
    "investigate",
    "losses",
    "score_selection",
    "solve",
    "solve_path",
    "stability",
]


# Where names live that take longer to import than all the rest of exactk, scikit-learn's
# feature_selection above all: they are imported when they are asked for.
_LATE = {
    "Comparison": "exactk.evaluation.compare",
    "SelectionReport": "exactk.report.selection_report",
    "SavedSelection": "exactk.export.saved_selection",
    "SelectionScore": "exactk.evaluation.nested_cv",
    "TopKClassifier": "exactk.estimators.predictors",
    "TopKRegressor": "exactk.estimators.predictors",
    "TopKSelector": "exactk.estimators.selector",
    "compare": "exactk.evaluation.compare",
    "investigate": "exactk.report.investigate",
    "score_selection": "exactk.evaluation.nested_cv",
}


def __getattr__(name: str) -> Any:
    if name in _LATE:
        return getattr(import_module(_LATE[name]), name)
    raise AttributeError(f"module 'exactk' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
