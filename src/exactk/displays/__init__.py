"""Pictures of answers with matplotlib (extra ``plots``), which is imported when one is drawn."""

from exactk.displays.base import Display
from exactk.displays.explain import ExplainDisplay
from exactk.displays.path import PathDisplay
from exactk.displays.score import NullDisplay, ScoreDisplay
from exactk.displays.stability import StabilityDisplay

__all__ = [
    "Display",
    "ExplainDisplay",
    "NullDisplay",
    "PathDisplay",
    "ScoreDisplay",
    "StabilityDisplay",
]
