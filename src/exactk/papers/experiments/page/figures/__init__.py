"""Figures in the form that the papers give them, one module a kind."""

from __future__ import annotations
