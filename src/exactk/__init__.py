"""Select the best k features of a table, and report how good they are.

Everything is imported when it is first used, so that ``exactk --help`` starts quickly.

Examples
--------
>>> from sklearn.datasets import load_iris
>>> import exactk
>>> X, y = load_iris(return_X_y=True)
>>> exactk.TopKSelector(k=2).fit(X, y).get_support(indices=True)
array([1, 3])
"""

from __future__ import annotations

from exactk._version import __version__

# The command line handles Ctrl-C only when this module is imported: nothing else is, not typing.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from exactk import losses, plots
    from exactk.data.moments import Moments
    from exactk.errors import ExactkError, InputError, UnknownMethodError, UnknownOptionError
    from exactk.estimators.predictors import TopKClassifier, TopKRegressor
    from exactk.estimators.selector import TopKSelector
    from exactk.evaluation.evaluate import Evaluation, evaluate
    from exactk.export.saved_selection import SavedSelection
    from exactk.methods import registry
    from exactk.model_selection.choose_k import AutoK, AutoKResult, choose_k
    from exactk.model_selection.explain import Explanation, explain
    from exactk.model_selection.stability import Stability, stability
    from exactk.papers import datasets
    from exactk.problem.constraints import Constraints
    from exactk.problem.problem import Problem
    from exactk.problem.read_table import TableData, read_table
    from exactk.proof.certify import best_sets, certify, certify_path
    from exactk.proof.results import BestSets, Certificate, CertifiedPath
    from exactk.report.investigate import investigate
    from exactk.report.selection_report import SelectionReport
    from exactk.result import Path, Result, Status
    from exactk.search.feasibility import InfeasibleError
    from exactk.solver import solve, solve_path

__all__ = [
    "AutoK",
    "AutoKResult",
    "BestSets",
    "Certificate",
    "CertifiedPath",
    "Constraints",
    "Evaluation",
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
    "Stability",
    "Status",
    "TableData",
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
    "datasets",
    "evaluate",
    "explain",
    "investigate",
    "losses",
    "plots",
    "read_table",
    "registry",
    "solve",
    "solve_path",
    "stability",
]

_MODULES = {
    "datasets": "exactk.papers.datasets",
    "losses": "exactk.losses",
    "plots": "exactk.plots",
    "registry": "exactk.methods.registry",
}
_NAMES = {
    "data.moments": ["Moments"],
    "errors": ["ExactkError", "InputError", "UnknownMethodError", "UnknownOptionError"],
    "estimators.predictors": ["TopKClassifier", "TopKRegressor"],
    "estimators.selector": ["TopKSelector"],
    "evaluation.evaluate": ["Evaluation", "evaluate"],
    "export.saved_selection": ["SavedSelection"],
    "model_selection.choose_k": ["AutoK", "AutoKResult", "choose_k"],
    "model_selection.explain": ["Explanation", "explain"],
    "model_selection.stability": ["Stability", "stability"],
    "problem.constraints": ["Constraints"],
    "problem.problem": ["Problem"],
    "problem.read_table": ["TableData", "read_table"],
    "proof.certify": ["best_sets", "certify", "certify_path"],
    "proof.results": ["BestSets", "Certificate", "CertifiedPath"],
    "report.investigate": ["investigate"],
    "report.selection_report": ["SelectionReport"],
    "result": ["Path", "Result", "Status"],
    "search.feasibility": ["InfeasibleError"],
    "solver": ["solve", "solve_path"],
}
_MODULE_OF = {name: f"exactk.{module}" for module, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _MODULES:
        return import_module(_MODULES[name])
    if name in _MODULE_OF:
        return getattr(import_module(_MODULE_OF[name]), name)
    raise AttributeError(f"module 'exactk' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
