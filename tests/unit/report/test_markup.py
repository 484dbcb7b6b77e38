"""Whatever is written into the page stays text."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exactk.report.markup import FORBIDDEN, Markup, escape, join, tag
from tests.unit.papers.experiments.page.stores import HOSTILE


class Reader(HTMLParser):
    """What a browser would see: tags, attributes and text."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_text_comes_back_as_it_was_and_makes_no_tag(text):
    reader = Reader()
    reader.feed(tag("p", text, title=text))
    reader.close()
    expected = FORBIDDEN.sub("\ufffd", text)
    assert [name for name, _ in reader.tags] == ["p"]
    assert reader.tags[0][1] == {"title": expected}
    assert reader.text == expected


@given(st.text())
def test_any_text_is_encodable_and_opens_nothing(text):
    written = escape(text)
    written.encode("utf-8")
    assert not set("<>\"'") & set(written)


def test_markup_is_not_escaped_twice():
    assert join(tag("b", "a & b"), " & ") == "<b>a &amp; b</b> &amp; "
    assert isinstance(join("a"), Markup)


def test_attributes():
    assert (
        tag("input", checked=True, hidden=False, data_x=None, value=0)
        == '<input checked="" value="0">'
    )
