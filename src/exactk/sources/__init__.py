"""A table of any kind becomes rows that give moments: the only place that knows what it was."""

from __future__ import annotations

from exactk.sources.base import Rows
from exactk.sources.open import check_names, open_rows

__all__ = ["Rows", "check_names", "open_rows"]
