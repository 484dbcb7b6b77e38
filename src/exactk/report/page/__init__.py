"""The HTML page of a report: one module per section."""
