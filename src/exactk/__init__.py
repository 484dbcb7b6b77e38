"""Pick exactly k features out of d: the best k that can be found, fast.

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
from exactk.choose.explain import Explanation, explain
from exactk.choose.ridge import resolve_ridge
from exactk.choose.sizes import SizeChoice, choose_k
from exactk.choose.stability import Stability, stability
from exactk.errors import ExactkError, InputError, UnknownMethodError, UnknownOptionError
from exactk.moments import Moments
from exactk.problem import Problem
from exactk.proof.certificate import Certificate
from exactk.proof.certify import best_sets, certify, certify_path
from exactk.proof.several import BestSets, CertifiedPath
from exactk.result import Path, Result, Status
from exactk.search.feasible import InfeasibleError
from exactk.solve import solve, solve_path

if TYPE_CHECKING:
    from exactk.dossier import Dossier, investigate
    from exactk.estimators import TopKClassifier, TopKRegressor
    from exactk.evaluate.comparing import compare
    from exactk.evaluate.comparison import Comparison
    from exactk.evaluate.honest import SelectionScore, score_selection
    from exactk.frozen import FrozenChoice
    from exactk.selector import TopKSelector

__all__ = [
    "BestSets",
    "Certificate",
    "CertifiedPath",
    "Comparison",
    "Dossier",
    "ExactkError",
    "Explanation",
    "FrozenChoice",
    "InfeasibleError",
    "InputError",
    "Moments",
    "Path",
    "Problem",
    "Result",
    "SelectionScore",
    "SizeChoice",
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
    "resolve_ridge",
    "score_selection",
    "solve",
    "solve_path",
    "stability",
]


# Where names live that take longer to import than all the rest of exactk, scikit-learn's
# feature_selection above all: they are imported when they are asked for.
_LATE = {
    "Comparison": "exactk.evaluate.comparison",
    "Dossier": "exactk.dossier",
    "FrozenChoice": "exactk.frozen",
    "SelectionScore": "exactk.evaluate.honest",
    "TopKClassifier": "exactk.estimators",
    "TopKRegressor": "exactk.estimators",
    "TopKSelector": "exactk.selector",
    "compare": "exactk.evaluate.comparing",
    "investigate": "exactk.dossier",
    "score_selection": "exactk.evaluate.honest",
}


def __getattr__(name: str) -> Any:
    if name in _LATE:
        return getattr(import_module(_LATE[name]), name)
    raise AttributeError(f"module 'exactk' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
