"""Filters: methods that score every column, one file each."""
