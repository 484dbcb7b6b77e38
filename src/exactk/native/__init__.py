"""The compiled code: loading it, and limits on threads."""
