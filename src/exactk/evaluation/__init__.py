"""Scores of a selection on held-out rows, beside other methods."""
