"""The page of a report in a real browser: no errors, no requests, accessible."""

from __future__ import annotations

import pytest

from tests.report_browser import background, shown
from tests.unit.report.choices import HOSTILE, pages, unfold

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return pages(tmp_path_factory.mktemp("choices"))


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["wine", "diabetes", "hostile", "many", "alike"])
def test_nothing_stands_in_the_way_of_anybody(visit, name, scheme):
    from axe_playwright_python.sync_playwright import Axe

    view = visit(name, color_scheme=scheme)
    unfold(view)
    found = Axe().run(view).response
    assert len(found["passes"]) > 20
    assert [(one["id"], one["nodes"][0]["html"]) for one in found["violations"]] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_numbers_on_a_map_can_be_read_on_their_colours(visit, scheme):
    view = visit("wine", color_scheme=scheme)
    worst = view.evaluate("""() => {
      const parts = (colour) => colour.match(/[\\d.]+/g).slice(0, 3).map(Number);
      const light = (rgb) => {
        const [r, g, b] = rgb.map((c) => c / 255)
          .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
      };
      const paper = parts(getComputedStyle(document.body).backgroundColor);
      let least = Infinity;
      let count = 0;
      for (const text of document.querySelectorAll('svg .on-cell')) {
        const cell = text.previousElementSibling;
        const share = Number(cell.getAttribute('fill-opacity'));
        const fill = parts(getComputedStyle(cell).fill);
        const seen = fill.map((c, i) => share * c + (1 - share) * paper[i]);
        const pair = [light(parts(getComputedStyle(text).fill)), light(seen)].sort((a, b) => b - a);
        least = Math.min(least, (pair[0] + 0.05) / (pair[1] + 0.05));
        count += 1;
      }
      return [least, count];
    }""")
    assert worst[1] > 30
    assert worst[0] >= 4.5


@pytest.mark.parametrize("width", [360, 760, 1600])
@pytest.mark.parametrize("name", ["wine", "diabetes", "hostile", "many", "alike"])
def test_the_page_is_not_wider_than_the_screen(visit, name, width):
    view = visit(name, viewport={"width": width, "height": 800})
    unfold(view)
    assert view.evaluate("document.documentElement.scrollWidth") <= width


def test_hostile_names_do_not_run_and_can_be_read(visit):
    view = visit("hostile")
    unfold(view)
    for picture in view.locator("main svg[role=img]").all():
        picture.scroll_into_view_if_needed()
        picture.hover(force=True, position={"x": 5, "y": 5})
    for heading in view.locator("th button").all():
        heading.click()
    assert view.evaluate("window.hacked") is None
    assert view.locator("script").count() == 1
    assert view.locator("main img").count() == 0
    table = view.locator("#chosen table").first.inner_text()
    assert HOSTILE[1] in table
    assert "<script>window.hacked = 6</script>" in view.locator("#asked").inner_text()
    assert "'<script>.csv'" in view.locator("#made").inner_text()


def test_every_picture_says_what_it_shows(visit):
    view = visit("wine")
    names = view.evaluate(
        "[...document.querySelectorAll('main svg[role=img]')].map(e => "
        "[e.getAttribute('aria-label'), e.querySelector(':scope > desc')?.textContent])"
    )
    assert len(names) > 8
    assert all(name and about for name, about in names)
    assert len({name for name, _ in names}) == len(names)


def test_the_table_of_features_sorts_by_mouse_and_by_key(visit):
    view = visit("wine")
    table = view.locator("#chosen table").first
    heading = table.locator("th").filter(has_text="loss increase")
    at = heading.evaluate("e => e.cellIndex")
    values = f"t => [...t.tBodies[0].rows].map(r => Number(r.cells[{at}].dataset.v))"
    before = table.evaluate(values)
    heading.get_by_role("button").click()
    assert table.evaluate(values) == sorted(before)
    heading.get_by_role("button").press("Enter")
    assert table.evaluate(values) == sorted(before, reverse=True)
    assert sorted(before) != before


def test_the_choice_is_marked_in_every_curve(visit):
    view = visit("diabetes")
    assert view.locator("#sizes figure").count() == 3
    assert view.locator("#sizes figure .ring").count() == 3
    sentence = view.locator("#sizes p").first.inner_text()
    k = view.locator("h1").inner_text().split()[0]
    assert f"held-out rows is {k}." in sentence
    assert view.locator("#sizes figure").nth(1).locator(".value").text_content() == f"k = {k}"


def test_dark_by_choice_and_paper_is_white(visit):
    view = visit("wine", color_scheme="light")
    view.get_by_role("button", name="Dark").click()
    assert background(view) == "rgb(20, 23, 27)"
    pictures = shown(view, "main svg[role=img]")
    view.emulate_media(media="print")
    assert background(view) == "rgb(255, 255, 255)"
    assert shown(view, "main svg[role=img]") == pictures
    assert not view.locator("nav").is_visible()
    assert len(view.pdf(format="A4")) > 10_000


def test_sections_are_reached_from_the_side(visit):
    view = visit("wine")
    view.get_by_role("link", name="Proof", exact=True).click()
    top = view.locator("#proof").evaluate("e => e.getBoundingClientRect().top")
    assert 0 <= top < 900
    assert view.evaluate("location.hash") == "#proof"


def test_it_is_a_page_without_a_script(visit):
    view = visit("wine", java_script_enabled=False)
    assert view.locator("#chosen table").first.is_visible()
    assert view.locator("#sizes figure svg").first.is_visible()
    assert not view.locator("#controls").is_visible()
