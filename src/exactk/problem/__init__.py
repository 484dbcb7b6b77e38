"""The optimisation problem: data, target, loss, ridge and constraints."""
