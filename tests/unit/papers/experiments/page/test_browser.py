"""The page in a real browser: headless Chromium, from a file, without a network."""

from __future__ import annotations

import pytest

from exactk.papers.experiments.page.html import write_page
from tests.report_browser import background, pixels, shown
from tests.unit.papers.experiments.page import stores

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    made = {"all": stores.every_view(2), "hostile": stores.hostile(), "many": stores.many_methods()}
    return {
        name: write_page(stores.through_json(records), folder / f"{name}.html").as_uri()
        for name, records in made.items()
    }


def test_a_screenshot_is_not_blank(visit):
    view = visit("all")
    size = {"width": 500, "height": 300}
    view.set_viewport_size(size)
    view.locator("figure svg").first.scroll_into_view_if_needed()
    assert len(pixels(view.screenshot())) > 50


def test_sorting_by_click_and_by_key(visit):
    view = visit("all")
    table = view.locator("table.standings").first
    heading = table.locator("th").filter(has_text="median time")
    values = "t => [...t.tBodies[0].rows].map(r => Number(r.cells[5].dataset.v))"
    heading.get_by_role("button").click()
    assert heading.get_attribute("aria-sort") == "ascending"
    assert table.evaluate(values) == sorted(table.evaluate(values))
    heading.get_by_role("button").press("Enter")
    assert heading.get_attribute("aria-sort") == "descending"
    assert table.evaluate(values) == sorted(table.evaluate(values), reverse=True)
    names = table.locator("th").filter(has_text="method")
    names.get_by_role("button").press("Space")
    assert heading.get_attribute("aria-sort") == "none"
    labels = table.evaluate("t => [...t.tBodies[0].rows].map(r => r.cells[1].textContent)")
    assert labels == sorted(labels, key=str.lower)


def test_what_is_missing_is_sorted_last_either_way(visit):
    view = visit("all")
    table = view.locator("table.wide").first
    # The column of orl at k = 5, where RPFS failed.
    place = 4
    button = table.locator("thead tr").nth(1).locator("th").nth(place).get_by_role("button")
    for _ in range(2):
        button.click()
        cells = table.evaluate(
            f"t => [...t.tBodies[0].rows].map(r => r.cells[{place}].textContent)"
        )
        assert cells[-1] == "failed"
        assert "failed" not in cells[:-1]


def test_dark_by_the_system_and_by_choice(visit):
    light, dark = "rgb(255, 255, 255)", "rgb(20, 23, 27)"
    assert background(visit("all", color_scheme="dark")) == dark
    view = visit("all", color_scheme="light")
    assert background(view) == light
    view.get_by_role("button", name="Dark").click()
    assert background(view) == dark
    assert view.get_by_role("button", name="Light").is_visible()


def test_paper_has_no_controls_and_is_white(visit):
    view = visit("all", color_scheme="dark")
    panels = shown(view, "main figure")
    assert view.locator("#controls").is_visible()
    view.emulate_media(media="print")
    assert not view.locator("#controls").is_visible()
    assert not view.locator("nav").is_visible()
    assert shown(view, "main figure") == panels
    assert background(view) == "rgb(255, 255, 255)"
    assert len(view.pdf(format="A4")) > 10_000


@pytest.mark.parametrize("width", [400, 760, 1600])
@pytest.mark.parametrize("name", ["all", "hostile", "many"])
def test_the_page_is_not_wider_than_the_screen(visit, name, width):
    view = visit(name, viewport={"width": width, "height": 800})
    assert view.evaluate("document.documentElement.scrollWidth") <= width


def test_captions_are_within_a_small_screen(visit):
    view = visit("many", viewport={"width": 420, "height": 800})
    ends = view.evaluate(
        "[...document.querySelectorAll('.tabled > .caption')]"
        ".filter(e => e.getClientRects().length).map(e => e.getBoundingClientRect().right)"
    )
    assert len(ends) >= 1
    assert max(ends) <= 420
    # The table itself is wider, or the test would show nothing.
    assert view.locator(".standings").first.evaluate("e => e.scrollWidth") > 420


def test_names_and_numbers_of_the_rank_diagram_are_apart(visit):
    view = visit("many")
    gaps = view.locator(".diagram").evaluate(
        "d => [...d.querySelectorAll('.series')].map(g => {"
        " const [a, b] = ['.tick', '.row-name'].map(s => g.querySelector(s).getBBox());"
        " return Math.max(b.x - a.x - a.width, a.x - b.x - b.width); })"
    )
    assert len(gaps) == 32
    assert min(gaps) >= 6


def test_without_a_script_it_is_a_page_all_the_same(visit):
    view = visit("all", java_script_enabled=False)
    assert not view.locator("#controls").is_visible()
    assert view.locator("table.wide").first.is_visible()
    assert view.locator("figure svg").first.is_visible()
    assert view.locator("th button").count() == 0


def test_hostile_text_does_not_run(visit):
    view = visit("hostile")
    assert view.evaluate("window.hacked") is None
    assert view.locator("main img").count() == 0
    assert view.locator("script").count() == 1
