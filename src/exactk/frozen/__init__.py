"""What was chosen, as plain JSON: made once, read where exactk is not installed."""

from exactk.frozen.choice import FrozenChoice

__all__ = ["FrozenChoice"]
