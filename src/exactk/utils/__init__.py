"""Small helpers without knowledge of feature selection."""
