"""Axes, lines and notes of figures, read back from the pictures."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import pytest

from exactk.papers.experiments.page.html import page
from exactk.papers.experiments.page.labels import name_of
from exactk.report import svg
from tests.unit.papers.experiments.page import stores
from tests.unit.papers.experiments.page.test_complete import CURVE, made, set_measure
from tests.unit.papers.experiments.page.test_page import table_rows, view_of

SVG = "{http://www.w3.org/2000/svg}"


def pictures(text: str) -> list[ET.Element]:
    found = re.findall(r"<svg (?!class=\"key).*?</svg>", text, re.S)
    return [ET.fromstring(one) for one in found]


def texts(picture: ET.Element, kind: str) -> list[ET.Element]:
    return [one for one in picture.iter(f"{SVG}text") if one.get("class") == kind]


# ---- Bars


@pytest.mark.parametrize(
    ("small", "scale", "own"),
    [(12.0, "linear", False), (3.8, "linear", True), (3.8, "log", False)],
    ids=["alike", "unlike", "log"],
)
def test_panels_of_bars_have_their_own_axis_where_one_would_not_do(small, scale, own):
    records = made([{"kind": "bars", "measure": "rmse", "scale": scale}], datasets=["a", "b"],
                   methods=["A"], sizes=[5], repeats=1)  # fmt: skip
    set_measure(records, "rmse", {("a", "A"): 55.0, ("b", "A"): small})
    text = view_of(page(records), "bars")
    axes = [[tick.text for tick in texts(one, "tick")] for one in pictures(text)]
    assert (axes[0] != axes[1]) is own
    assert ("Each panel has an axis of its own." in text) is own
    widths = [float(one.find(f".//{SVG}rect").get("width")) for one in pictures(text)]
    if own:
        # Every longest bar takes half of the 200 units or more.
        assert min(widths) > 100


# ---- Against an option


def against(values, constant, option="gamma"):
    methods = [
        *({"label": f"IPFS {v:g}", "method": "ipfs", "options": {option: v}} for v in values),
        {"label": "exchange", "method": "exchange"},
    ]
    line = stores.definition("r", [{**CURVE, "x": option}], methods=methods, sizes=[20],
                             datasets=["a"], repeats=1)  # fmt: skip
    records = [line, *stores.cells_of(line)]
    for record in records[1:]:
        # As a run writes it: the registered name of the method.
        record["name"] = "exchange" if record["method"] == "exchange" else "ipfs"
    by_method = {("a", f"IPFS {v:g}"): y for v, y in values.items()}
    set_measure(records, "svm", {**by_method, ("a", "exchange"): constant})
    return view_of(page(records), "curve")


def test_methods_without_the_option_are_a_dashed_line_across_with_their_number():
    text = against({0.001: 0.90, 1.0: 0.95, 3.0: 0.92}, 0.97)
    (picture,) = pictures(text)
    (level,) = [p for p in picture.iter(f"{SVG}path") if p.get("class") == "line level"]
    start, y, end = re.fullmatch(r"M([\d.]+) ([\d.]+)H([\d.]+)", level.get("d")).groups()
    assert (float(start), float(end)) == (svg.LEFT, svg.RIGHT)
    points = [p for p in picture.iter(f"{SVG}path") if p.get("class") == "pt"]
    highest = min(float(p.get("transform")[:-1].split()[1]) for p in points)
    assert float(y) < highest
    (name,) = texts(picture, "level-name")
    assert name.text == "exchange 97.00"
    assert "Dashed: methods without γ." in text
    # The table of its numbers has the method as well.
    assert [row[0] for row in table_rows(text, "wide")][-1] == "exchange"


def test_the_axis_of_an_option_has_its_letter_and_ticks_at_both_ends():
    text = against({0.001: 0.90, 1.0: 0.95, 3.0: 0.92}, 0.97)
    (picture,) = pictures(text)
    places = {t.text: float(t.get("x")) for t in texts(picture, "tick") if t.get("dy") is None}
    assert places["0.001"] == svg.LEFT
    assert places["3"] == svg.RIGHT
    assert min(b - a for a, b in zip(sorted(places.values()), sorted(places.values())[1:],
                                     strict=False)) > 20  # fmt: skip
    assert "γ" in [t.text for t in texts(picture, "name")]
    assert "γ = 0.001: 90.00" in text
    for option, letter in (("lam", "λ"), ("mu", "μ"), ("rho", "ρ"), ("p", "p")):
        assert f"<h4>Against {letter}</h4>" in against({0.5: 0.9, 1.0: 0.9}, 0.9, option)


@pytest.mark.parametrize("middle", [0.95, 1.0, 0.0], ids=["within", "all right", "all wrong"])
def test_an_axis_of_percentages_spans_two_points_at_least(middle):
    shift = -0.001 if middle == 1.0 else 0.001
    (picture,) = pictures(against({1.0: middle, 2.0: middle + shift}, middle))
    ticks = [float(t.text.replace("−", "-")) for t in texts(picture, "tick") if t.get("dy")]
    assert max(ticks) - min(ticks) >= 2
    assert min(ticks) <= 100 * middle <= max(ticks)
    assert min(ticks) >= 0
    assert max(ticks) <= 100


# ---- Lines


def test_the_name_of_the_axis_is_in_its_middle_below_the_ticks():
    for picture in pictures(view_of(page(made([CURVE])), "curve").split("<details")[0]):
        (name,) = [t for t in texts(picture, "name") if t.text == "k"]
        assert float(name.get("x")) == (svg.LEFT + svg.RIGHT) / 2
        assert name.get("text-anchor") == "middle"
        ticks = [float(t.get("y")) for t in texts(picture, "tick") if t.get("dy") is None]
        assert float(name.get("y")) > max(ticks) + 10


def drawn_lines(values, sizes=(1, 2, 3, 4)):
    """A panel with one line a method, and what its caption says."""
    line = stores.definition("r", [CURVE], methods=list(values), sizes=sizes, datasets=["a"],
                             repeats=1)  # fmt: skip
    records = [line, *stores.cells_of(line)]
    for record in records[1:]:
        for result, value in zip(record["results"], values[record["method"]], strict=True):
            result["measures"]["svm"] = value
    text = view_of(page(records), "curve").split("<details")[0]
    (picture,) = pictures(text)
    return text, [g for g in picture.iter(f"{SVG}g") if "series" in g.get("class")]


def test_exchange_has_the_thick_line_below_the_others_and_in_the_legend():
    text, groups = drawn_lines({"A": [0.5] * 4, "exchange": [0.5] * 4})
    assert ["heavy" in g.get("class") for g in groups] == [True, False]
    assert re.search(r'<li[^>]*><svg class="key c1 heavy".*?<bdi>exchange', text)
    assert "heavy" not in re.search(r"<li[^>]*>(.*?)<bdi>A<", text)[1]


# ---- Notes


def test_a_method_without_the_measure_is_named_once_a_figure_and_not_in_red():
    views = [{"kind": "curve", "measure": "sparsity@1e-06"}]
    records = made(views, repeats=1)
    for record in records[1:]:
        for result in record["results"]:
            if record["method"] != "exchange":
                result["measures"]["sparsity@1e-06"] = result["k"] + 1
    text = view_of(page(records), "curve").split("<details")[0]
    assert text.count("No number: <bdi>exchange</bdi>.") == 1
    assert text.count("exchange") == 1
    assert 'class="gap' not in text
    assert "Rows with norm above 10⁻⁶ against k" in text


def test_a_method_that_has_the_measure_somewhere_is_named_where_it_lacks():
    records = made([CURVE], repeats=1)
    for record in records[1:]:
        if (record["dataset"], record["method"]) == ("orl", "exchange"):
            for result in record["results"]:
                del result["measures"]["svm"]
    text = view_of(page(records), "curve").split("<details")[0]
    assert "No number: " not in text
    assert text.count('class="gap mild">no number') == 1


def test_tolerances_are_written_as_powers_of_ten():
    found = [name_of(f"sparsity@{t}").split()[-1] for t in (1e-6, 1e-4, 1e-3, 1e-2, 0.5, "x")]
    assert found == ["10⁻⁶", "10⁻⁴", "10⁻³", "10⁻²", "0.5", "x"]
