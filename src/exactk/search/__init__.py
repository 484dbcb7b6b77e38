"""Moves on supports, priced from the Gram matrix: forward steps, drops and swaps."""
