"""What several test files need."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from exactk.errors import InputError


@contextmanager
def says(*words: str) -> Iterator[pytest.ExceptionInfo[InputError]]:
    """An InputError whose message holds all of these."""
    with pytest.raises(InputError) as error:
        yield error
    missing = [word for word in words if word not in str(error.value)]
    assert not missing, f"{missing} not in {str(error.value)!r}"
