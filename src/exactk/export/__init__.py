"""A saved selection for production."""
