"""The HTML page of the papers' experiments."""
