"""Proof: how far a choice of columns is from the best possible one."""
