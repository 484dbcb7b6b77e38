"""What the papers' iterative methods share: the course of their iterations, and their table."""
