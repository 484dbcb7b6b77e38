"""Pictures of answers with matplotlib (extra ``plots``), which is imported when one is drawn."""

from exactk.plots.base import Display
from exactk.plots.explain import ExplainDisplay
from exactk.plots.path import PathDisplay
from exactk.plots.score import NullDisplay, ScoreDisplay
from exactk.plots.stability import StabilityDisplay

__all__ = [
    "Display",
    "ExplainDisplay",
    "NullDisplay",
    "PathDisplay",
    "ScoreDisplay",
    "StabilityDisplay",
]
