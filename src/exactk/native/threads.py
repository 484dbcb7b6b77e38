"""How many threads BLAS may take where tasks run side by side in one process.

Threaded products use NumPy only: the thread pools of NumPy's and SciPy's BLAS slow each other.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

__all__ = ["one_blas_thread"]

# The number of threads of a BLAS belongs to its process. The first task to come sets it and the
# last to go restores it; a limit around each task would be lifted by whichever ends first.
_lock = threading.Lock()
_inside = 0
_limit: Any = None


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Leave BLAS one thread while any thread of this process is inside.

    Examples
    --------
    >>> with one_blas_thread():
    ...     pass
    """
    global _inside, _limit
    with _lock:
        if _inside == 0:
            _limit = _controller().limit(limits=1, user_api="blas")
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                _limit.restore_original_limits()


@cache
def _controller() -> Any:
    """Find the libraries once: that takes milliseconds, many partitions take less."""
    # Only what is loaded can be limited, and products are made with SciPy's.
    import scipy.linalg.blas  # noqa: F401
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
