"""Text for others: control characters are seen and not obeyed, and CSV reads back."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exactk.utils.formatting import csv_text, escape_controls

WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b[31mb", r"a\x1b[31mb"),
        ("\a\t\r\n", r"\x07\t\r\n"),
        ("\u202egpj.exe\u2066", r"\u202egpj.exe\u2066"),
        ("\x9b2J\x85\u2028", r"\x9b2J\x85\u2028"),
        ("\ud800", r"\ud800"),
        # Joiners are part of words and of signs, and a backslash is what it is.
        ("می\u200cخواهم 👩‍🔬 a\\b", "می\u200cخواهم 👩‍🔬 a\\b"),
    ],
)
def test_what_a_terminal_would_obey_is_shown(text: str, shown: str) -> None:
    assert escape_controls(text) == shown


@given(st.text())
def test_shown_text_is_one_line_that_can_be_written(text: str) -> None:
    shown = escape_controls(text)
    assert len(shown.splitlines()) <= 1
    shown.encode("utf-8")
    assert escape_controls(shown) == shown


@given(st.lists(st.lists(WORDS, min_size=2, max_size=2), min_size=1), st.sampled_from(",\t"))
def test_csv_reads_back(rows: list[list[str]], delimiter: str) -> None:
    text = csv_text(rows, delimiter)
    assert list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)) == rows
    assert text.endswith("\n")
    assert not text.endswith("\r\n")
