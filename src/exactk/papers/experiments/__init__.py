"""The papers' experiments: recipes, a runner that can be stopped, and their records."""
