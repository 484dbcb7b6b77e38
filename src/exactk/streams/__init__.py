"""Tables that are not held but passed over: files, Dask collections, Spark tables."""

from __future__ import annotations

from exactk.streams.base import Block, Coded, Fold, Place, Stream

__all__ = ["Block", "Coded", "Fold", "Place", "Stream"]
