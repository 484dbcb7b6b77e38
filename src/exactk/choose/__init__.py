"""Choices that the data make: how much ridge, how many columns, how stable, and why these."""
