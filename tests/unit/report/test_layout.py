"""The page of a report fits screen, telephone and paper, and works by mouse and by keyboard."""

from __future__ import annotations

import pytest

from tests.report_browser import pixels, shown
from tests.unit.report.choices import MAKERS, pages, record, unfold

pytestmark = pytest.mark.browser

PHONE = {"viewport": {"width": 375, "height": 800}}
# A4 between margins of a centimetre, at 96 units an inch.
PAPER = {"viewport": {"width": 718, "height": 1000}}
CUT_OFF = """[...document.querySelectorAll('.scroll')]
  .filter(e => e.scrollWidth > e.clientWidth).map(e => e.getAttribute('aria-label'))"""


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return pages(tmp_path_factory.mktemp("choices"))


def test_ordinary_tables_are_whole_on_a_screen(visit):
    for name in ("wine", "diabetes"):
        view = visit(name)
        unfold(view)
        assert view.evaluate(CUT_OFF) == []


def test_a_table_that_goes_on_has_a_shadow_at_that_edge(visit):
    view = visit("wine", **PHONE)
    box = view.locator("#chosen .scroll").first
    box.scroll_into_view_if_needed()

    def edge():
        # Between the box and its first row there is nothing but the background.
        place = box.bounding_box()
        clip = {"x": place["x"] + place["width"] - 3, "y": place["y"] + 2, "width": 2, "height": 3}
        return pixels(view.screenshot(clip=clip))

    def is_paper(found):
        return found == {b"\xff\xff\xff"} or found == {b"\xff\xff\xff\xff"}

    assert not is_paper(edge())
    box.evaluate("e => { e.scrollLeft = e.scrollWidth; }")
    assert is_paper(edge())


def test_names_of_rows_stay_when_a_table_is_scrolled(visit):
    view = visit("wine", **PHONE)
    boxes = view.locator("#chosen .scroll, #worth .scroll")
    seen = 0
    for box in boxes.all():
        if not box.is_visible() or not box.evaluate("e => e.scrollWidth > e.clientWidth"):
            continue
        places = box.evaluate("""e => {
          e.scrollLeft = e.scrollWidth;
          const left = e.getBoundingClientRect().left;
          return [...e.querySelectorAll('tbody th')]
            .map(t => t.getBoundingClientRect().left - left);
        }""")
        assert places == [0.0] * len(places)
        seen += len(places)
    assert seen >= 8
    heading = view.locator("#chosen thead th").filter(has_text="feature").first
    assert heading.evaluate("e => getComputedStyle(e).position") == "sticky"


def test_prose_in_a_table_needs_no_scrolling(visit):
    view = visit("wine", **PHONE)
    assert "Expected performance on new rows" not in view.evaluate(CUT_OFF)
    figure = view.locator("#worth .stacked tbody tr").first
    name, number, words = (figure.locator("> *").nth(i).bounding_box() for i in range(3))
    assert name["y"] == pytest.approx(number["y"], abs=4)
    assert words["y"] >= name["y"] + name["height"] - 1
    assert words["width"] > 300


def test_rows_of_names_are_not_towers(visit):
    view = visit("alike")
    unfold(view)
    tallest = view.evaluate(
        "Math.max(...[...document.querySelectorAll('tbody tr')].map(e => e.clientHeight))"
    )
    assert tallest < 120


@pytest.mark.parametrize("name", MAKERS)
def test_paper_is_wide_enough(visit, name):
    view = visit(name, **PAPER)
    unfold(view)
    view.emulate_media(media="print")
    assert view.evaluate("document.documentElement.scrollWidth") <= 718
    ends = view.evaluate(
        "[...document.querySelectorAll('table, svg, pre')]"
        ".map(e => e.getBoundingClientRect().right)"
    )
    assert max(ends) <= 718.5
    assert shown(view, "nav") == shown(view, ".copyable button") == shown(view, ".screen") == 0


def test_numbers_of_many_classes_say_on_paper_whose_they_are(visit):
    view = visit("many", **PAPER)
    table = view.locator("#chosen table.spread").first
    view.emulate_media(media="print")
    outputs = record("many")["settings"]["outputs"]
    row = table.locator("tbody tr").first.locator("td")
    said = row.evaluate_all("cells => cells.map(e => getComputedStyle(e, '::before').content)")
    assert said == [f'"{name}: "' for name in outputs]


@pytest.mark.parametrize("name", ["alike", "many", "hostile"])
def test_names_in_a_picture_differ_and_lie_within_it(visit, name):
    view = visit(name, **PHONE)
    unfold(view)
    found = view.evaluate("""[...document.querySelectorAll('main svg[role=img]')].map(picture => {
      const room = picture.getBoundingClientRect();
      const texts = [...picture.querySelectorAll('text')];
      const over = texts.map(text => {
        const box = text.getBoundingClientRect();
        return Math.max(room.left - box.left, box.right - room.right, room.top - box.top);
      });
      const rows = texts.filter(t => t.matches('.row-name:not([transform])'));
      const columns = texts.filter(t => t.matches('.row-name[transform]'));
      const said = (list) => list.map(t => t.firstChild.textContent);
      return [picture.getAttribute('aria-label'), Math.max(...over), said(rows), said(columns)];
    })""")
    assert len(found) > 5
    for title, over, rows, columns in found:
        assert over < 1, title
        assert len(set(rows)) == len(rows), title
        assert len(set(columns)) == len(columns), title


def test_text_of_pictures_has_the_size_of_text(visit):
    sizes = """[...document.querySelectorAll('main svg[role=img] text')].map(e =>
      parseFloat(getComputedStyle(e).fontSize) * e.getScreenCTM().a
        * (e.hasAttribute('transform') ? 1 / Math.cos(50 * Math.PI / 180) : 1))"""
    for width in (375, 700, 1280, 1600):
        found = visit("wine", viewport={"width": width, "height": 800}).evaluate(sizes)
        assert min(found) >= 9.9
        assert max(found) <= 14.5


def test_maps_have_a_key_and_their_numbers_in_a_table(visit):
    view = visit("many")
    for section, ends, axis in (
        ("stability", ["0", "50", "100 %"], "k"),
        ("look", ["−1", "0", "1"], ""),
    ):
        place = view.locator(f"#{section}")
        texts = place.locator("svg.map text").all_text_contents()
        assert texts[-3:] == ends
        fold = place.locator("details").filter(has_text="Numbers of this figure")
        assert not fold.locator("table").is_visible()
        fold.locator("summary").press("Enter")
        assert fold.locator("table").is_visible()
        assert fold.locator("thead td").text_content() == axis
    names, values = (record("many")["figures"]["correlations"][key] for key in ("names", "values"))
    row = view.locator("#look details table tbody tr").nth(1)
    assert row.locator("th").text_content() == names[1]
    assert row.locator("td").first.text_content() == f"{values[1][0]:.2f}".replace("-", "−")


@pytest.mark.parametrize("allowed", [True, False])
def test_the_command_is_copied_and_that_is_said(visit, allowed):
    view = visit("wine")
    if not allowed:
        view.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(); }")
    view.evaluate("""() => addEventListener('copy', () => {
      window.byHand = getSelection().toString(); })""")
    button = view.get_by_role("button", name="Copy: Command of this report")
    view.context.grant_permissions(["clipboard-read", "clipboard-write"])
    button.click()
    view.get_by_role("status").filter(has_text="Copied").wait_for(state="attached")
    assert button.text_content() == "Copied"
    command = record("wine")["settings"]["command"]
    assert view.evaluate("window.byHand ?? null") == (None if allowed else command)
    assert view.evaluate("navigator.clipboard.readText()") == command
    still = visit("wine", java_script_enabled=False)
    assert still.locator("pre.command").count() == 2
    assert still.locator("#made button").count() == 0


def test_a_command_is_one_line_on_a_telephone(visit):
    view = visit("wine", **PHONE)
    block = view.locator("pre.command").first
    assert block.evaluate("e => e.firstElementChild.getClientRects().length") == 1
    assert block.evaluate("e => e.scrollWidth > e.clientWidth")


def test_a_telephone_begins_with_the_title(visit):
    view = visit("wine", **PHONE)
    assert view.locator("h1").bounding_box()["y"] < 100
    assert view.locator("nav ul").evaluate("e => e.scrollWidth > e.clientWidth")
    view.get_by_role("link", name="Reproduce this report").click()
    assert view.locator("#made").bounding_box()["y"] < 800


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_and_controls_can_be_seen(visit, scheme):
    view = visit("wine", color_scheme=scheme)
    ratios = view.evaluate("""() => {
      const light = (colour) => {
        const [r, g, b] = colour.match(/[\\d.]+/g).slice(0, 3).map((c) => c / 255)
          .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
      };
      const paper = light(getComputedStyle(document.body).backgroundColor);
      const probe = document.body.appendChild(document.createElement('i'));
      const colours = [...Array(8).keys()].map((i) => {
        probe.className = `c${i}`;
        return getComputedStyle(probe).color;
      });
      const arrow = getComputedStyle(document.querySelector('th button'), '::after');
      return [...colours, arrow.color].map((colour) => {
        const pair = [light(colour), paper].sort((a, b) => b - a);
        return (pair[0] + 0.05) / (pair[1] + 0.05);
      });
    }""")
    assert len(ratios) == 9
    assert min(ratios) >= 3
    sizes = view.locator("#chosen thead button").evaluate_all(
        "all => all.filter(e => e.offsetParent).map(e => e.getBoundingClientRect().height)"
    )
    assert min(sizes) >= 24
    name = "Dark theme" if scheme == "light" else "Light theme"
    assert view.get_by_role("button", name=name, exact=True).is_visible()


def test_the_marks_of_the_curves_are_explained(visit):
    said = visit("wine").locator("#sizes").inner_text()
    assert "Ring: the size that the rule chooses." in said
    assert "k = 4, the size of this report" in said
    assert "one standard error above the lowest error" in said
