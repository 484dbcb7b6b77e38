"""What a worker says of an error."""

from __future__ import annotations

from exactk.papers.experiments.pool import MOST_WORDS, describe


def test_an_error_that_cannot_be_printed_still_has_a_name():
    class MuteError(Exception):
        def __str__(self) -> str:
            raise ValueError

    assert describe(MuteError()) == "MuteError: it cannot say why"


def test_a_long_reason_is_cut():
    text = describe(ValueError("x" * 10_000))
    assert len(text) < MOST_WORDS + 50
    assert text.endswith("x…")
