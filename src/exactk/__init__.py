"""Pick exactly k features out of d: the best k that can be found, fast.

Examples
--------
>>> from sklearn.datasets import load_iris
>>> import exactk
>>> X, y = load_iris(return_X_y=True)
>>> exactk.TopKSelector(k=2).fit(X, y).get_support(indices=True)
array([1, 3])
"""

from exactk._version import __version__
from exactk.choose.ridge import resolve_ridge
from exactk.errors import ExactkError, InputError, UnknownMethodError, UnknownOptionError
from exactk.moments import Moments
from exactk.problem import Problem
from exactk.result import Path, Result, Status
from exactk.selector import TopKSelector
from exactk.solve import solve, solve_path

__all__ = [
    "ExactkError",
    "InputError",
    "Moments",
    "Path",
    "Problem",
    "Result",
    "Status",
    "TopKSelector",
    "UnknownMethodError",
    "UnknownOptionError",
    "__version__",
    "resolve_ridge",
    "solve",
    "solve_path",
]
