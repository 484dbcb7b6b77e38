"""Choices that the data make: how much ridge (and, to come, how many columns)."""
