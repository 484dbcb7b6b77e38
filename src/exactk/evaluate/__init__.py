"""How good a choice of columns is: arrays in, numbers out, the same for every method."""

from exactk.evaluate.classifiers import CLASSIFIERS, accuracy
from exactk.evaluate.comparing import compare
from exactk.evaluate.comparison import Comparison
from exactk.evaluate.grading import residual
from exactk.evaluate.honest import SelectionScore, score_selection
from exactk.evaluate.measures import (
    jaccard,
    linear_rmse,
    nogueira,
    redundancy,
    redundancy_paper,
    sparsity_level,
)
from exactk.evaluate.sizes import select_sizes
from exactk.evaluate.splits import fold_splits, share_split
from exactk.evaluate.tuning import TuneResult, tune

__all__ = [
    "CLASSIFIERS",
    "Comparison",
    "SelectionScore",
    "TuneResult",
    "accuracy",
    "compare",
    "fold_splits",
    "jaccard",
    "linear_rmse",
    "nogueira",
    "redundancy",
    "redundancy_paper",
    "residual",
    "score_selection",
    "select_sizes",
    "share_split",
    "sparsity_level",
    "tune",
]
