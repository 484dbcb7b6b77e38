"""What the deep methods share: the table as networks read it, layers, and the training of them.

PyTorch is imported inside functions only: without it everything else of exactk works.
"""
