"""The optional dependency of the deep methods."""

from __future__ import annotations

from importlib.util import find_spec

from exactk.errors import MissingExtraError

__all__ = ["need_torch"]


def need_torch(method: str) -> None:
    """Raise unless PyTorch is installed.

    Parameters
    ----------
    method : str
        The name of the method that asks.
    """
    if find_spec("torch") is None:
        raise MissingExtraError(
            f"{method} trains networks with PyTorch (torch), which is not installed: "
            f'pip install "exactk[deep]", or use a method that does not need it such as '
            f"'exchange'"
        )
