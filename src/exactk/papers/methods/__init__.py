"""The papers' methods, one module per method."""
