"""The papers' neural methods. PyTorch is imported here only, when it is used."""
