"""The page without a browser: well formed, escaped, complete, with the right numbers."""

from __future__ import annotations

import base64
import hashlib
import re
import statistics
from html.parser import HTMLParser
from xml.etree import ElementTree as ET

import pytest

from exactk.papers.experiments.cells import cells
from exactk.papers.experiments.page.figures.trace import pooled
from exactk.papers.experiments.page.html import page, write_page
from exactk.papers.experiments.page.provenance import command
from exactk.papers.experiments.page.study import Study
from exactk.papers.experiments.reading import read_recipe, recipe_names
from exactk.report.markup import VOID, escape
from tests.support import says
from tests.unit.papers.experiments.page import stores

STORES = {
    "every view": stores.every_view,
    "one repeat": lambda: stores.every_view(repeats=1),
    "32 methods": stores.many_methods,
    "hostile": stores.hostile,
}
FIGURES = [
    {"kind": "curve", "measure": "svm"},
    {"kind": "trace", "measure": "own", "x": "iteration"},
    {"kind": "bars", "measure": "seconds", "scale": "log"},
]


@pytest.fixture(scope="module")
def pages():
    return {name: page(stores.through_json(make())) for name, make in STORES.items()}


class Balance(HTMLParser):
    """Fails where an element is closed that is not the last one opened."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag, attrs):
        assert len(dict(attrs)) == len(attrs), f"an attribute of {tag} is given twice"
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open, f"{tag} was not open"
        assert self.open.pop() == tag


def read(text: str) -> Balance:
    reader = Balance()
    reader.feed(text)
    reader.close()
    assert reader.open == []
    return reader


def table_rows(text: str, kind: str) -> list[list[str]]:
    """The texts of the body of the first table of a kind."""
    body = re.search(rf'<table class="sortable {kind}">.*?<tbody>(.*?)</tbody>', text, re.S)[1]
    strip = re.compile(r"<[^>]+>")
    return [
        [
            strip.sub("", found).strip()
            for found in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.S)
        ]
        for row in re.findall(r"<tr[^>]*>(.*?)</tr>", body, re.S)
    ]


def view_of(text: str, kind: str) -> str:
    """The first view of a kind, up to the next one."""
    return text.split(f'<section class="view {kind}">')[1].split('<section class="view ')[0]


@pytest.mark.parametrize("name", STORES)
def test_the_document_is_well_formed(pages, name):
    reader = read(pages[name])
    ids = [attrs["id"] for _, attrs in reader.seen if "id" in attrs]
    assert len(ids) == len(set(ids))
    links = {attrs["href"][1:] for tag, attrs in reader.seen if tag == "a"}
    assert links <= set(ids)


@pytest.mark.parametrize("name", STORES)
def test_every_picture_is_xml_with_a_name(pages, name):
    pictures = re.findall(r"<svg.*?</svg>", pages[name], re.S)
    named = 0
    for picture in pictures:
        root = ET.fromstring(picture)
        if root.get("role") == "img":
            named += 1
            assert root.get("aria-label")
            assert root.find("{http://www.w3.org/2000/svg}title").text == root.get("aria-label")
        assert not re.search(r"\b(nan|inf|None)\b", re.sub(r"<title>.*?</title>", "", picture))
    assert named > 3


@pytest.mark.parametrize("name", STORES)
def test_nothing_comes_from_outside(pages, name):
    for tag, attrs in read(pages[name]).seen:
        assert tag not in ("img", "iframe", "object", "embed", "base")
        assert tag != "script" or attrs == {}
        assert tag != "link" or attrs == {"rel": "icon", "href": "data:,"}
        assert not any(key.startswith("on") or key in ("src", "style") for key in attrs)
        assert attrs.get("href", "#")[:1] == "#" or tag == "link"
    assert "url(" not in pages[name]
    assert "@import" not in pages[name]


def test_the_policy_allows_this_script_and_these_styles_alone(pages):
    text = pages["every view"]
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', text)[1].replace(
        "&#x27;", "'"
    )
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    for element in ("script", "style"):
        inside = re.search(rf"<{element}>(.*?)</{element}>", text, re.S)[1]
        digest = base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()
        assert f"{element}-src 'sha256-{digest}'" in policy


def test_hostile_text_is_written_as_text_everywhere(pages):
    text = pages["hostile"]
    assert text.count("<script>") == text.count("</script>") == 1
    for tag, attrs in read(text).seen:
        assert tag in {
            "html", "head", "meta", "link", "title", "style", "body", "a", "div", "aside", "nav",
            "ul", "li", "bdi", "form", "button", "details", "summary", "span", "input", "label",
            "main", "header", "h1", "h2", "h3", "h4", "h5", "p", "section", "dl", "dt", "dd",
            "table", "caption", "thead", "tbody", "tr", "th", "td", "svg", "g", "path", "rect",
            "text", "desc", "figure", "figcaption", "b", "i", "small", "pre", "code", "footer",
            "script",
        }, (tag, attrs)  # fmt: skip
    for words in stores.HOSTILE:
        assert text.count(escape(words)) > 5
    text.encode("utf-8")


def test_measured_numbers_are_means_with_deviations():
    line = stores.definition("r", [{"kind": "table", "measure": "svm", "scale": "percent"}],
                             datasets=["a"], methods=["A", "B"], sizes=[5], repeats=3)  # fmt: skip
    records = [line, *stores.cells_of(line)]
    values = {"A": [0.91, 0.93, 0.95], "B": [0.5, 0.6, 0.4]}
    for record in records[1:]:
        value = values[record["method"]][record["repeat"]]
        record["results"][0]["measures"] = {"svm": value}
    rows = table_rows(page(records), "wide")
    assert rows == [["A", "93.00 ± 2.00"], ["B", "50.00 ± 10.00"]]
    assert statistics.stdev(values["B"]) == pytest.approx(0.1)
    assert "over 3 repeats" in page(records)


def test_one_repeat_has_no_deviation(pages):
    rows = table_rows(pages["one repeat"], "wide")
    assert all("±" not in text for row in rows for text in row)
    assert "nan" not in " ".join(text for row in rows for text in row)
    assert 'class="band"' not in pages["one repeat"]


def test_published_beside_measured():
    published = {"svm": {"a": {"5": {"A": [90.0, 1.0], "B": [49.5, 0.6], "C": 77.0}}}}
    line = stores.definition("r", [{"kind": "table", "measure": "svm", "scale": "percent"}],
                             datasets=["a"], methods=["A", "B", "C", "D"], sizes=[5], repeats=2,
                             published=published)  # fmt: skip
    records = [line, *stores.cells_of(line)]
    for record in records[1:]:
        middle = {"A": 0.93, "B": 0.5, "C": 0.77, "D": 0.1}[record["method"]]
        offset = 0.01 if record["repeat"] else -0.01
        record["results"][0]["measures"] = {"svm": middle + offset}
    rows = table_rows(page(records), "compare")
    assert rows == [
        ["a", "5", "A", "90.00 ± 1", "93.00 ± 1.414", "2", "+3.00", "+2.4", "no, better"],
        ["a", "5", "B", "49.50 ± 0.6", "50.00 ± 1.414", "2", "+0.50", "+0.5", "yes"],
        ["a", "5", "C", "77.00", "77.00 ± 1.414", "2", "0.00", "–", "none stated"],
    ]
    assert "1 of 2 within the stated deviation" in page(records)


def test_failures_and_gaps_are_shown_with_reasons(pages):
    text = pages["every view"]
    rows = table_rows(text, "troubles")
    assert [row[1:] for row in rows] == [
        ["RPFS", "5–20 (3)", "failed", "5", "SVD did not converge"],
        ["nmAPG", "5–20 (3)", "time limit", "1", "more than 300 s"],
    ]
    wide = {row[0]: row[1:] for row in table_rows(text, "wide")}
    assert wide["RPFS"][3:6] == ["failed"] * 3
    assert wide["nmAPG"][6:9] == ["time limit"] * 3
    assert wide["ReliefF"][9:12] == ["not run"] * 3
    assert "85 done, 5 failed, 1 met the time limit" in text


def test_fewer_repeats_than_usual_are_counted():
    line = stores.definition("r", [{"kind": "table", "measure": "svm"}], repeats=4, sizes=[5])
    records = [line, *stores.cells_of(line)]
    gone = next(i for i, r in enumerate(records) if r.get("method") == "RPFS")
    records[gone] = stores.failed("r", records[gone]["dataset"], "RPFS", records[gone]["repeat"])
    rows = {row[0]: row[1] for row in table_rows(page(records), "wide")}
    assert rows["RPFS"].endswith("n = 3")
    assert "n =" not in rows["exchange"]


def test_how_it_was_made(pages):
    text = pages["every view"]
    for words in ("Example 3000", "1.26.0", "exactk papers run PATH/TO/cdlsr-all.toml",
                  "1000, 1001, 1002", hashlib.sha256(b"srbct").hexdigest(),
                  "2026-11-16T07:00:00Z"):  # fmt: skip
        assert words in text


def test_a_trace_that_ended_keeps_its_last_value():
    means, deviations = pooled([[3.0], [5.0, 1.0]])
    assert means == [4.0, 2.0]
    assert deviations == pytest.approx([2**0.5, 2**0.5])


def test_the_last_record_of_a_cell_counts():
    line = stores.definition("r", [{"kind": "table", "measure": "svm"}], datasets=["a"],
                             methods=["A"], sizes=[5], repeats=1)  # fmt: skip
    bad = stores.failed("r", "a", "A", 0)
    good = stores.cell("r", "a", "A", 0, [5])
    good["results"][0]["measures"] = {"svm": 0.25}
    assert bad["key"] == good["key"]
    assert table_rows(page([line, bad, good]), "wide") == [["A", "0.25"]]


def test_cells_without_their_recipe_get_tables():
    text = page([stores.cell("lost", "a", "A", r, [5]) for r in range(2)])
    assert text.count('class="sortable wide"') > 5
    assert "exactk papers run PATH/TO/lost.toml" in text


def test_a_recipe_without_cells_says_so():
    text = page([stores.definition("r", stores.VIEWS)])
    assert "Nothing was run yet." in text


@pytest.mark.parametrize(
    ("records", "words"),
    [
        ([], ["no records", "exactk papers run"]),
        ([{"type": "figure"}], ["record 1", "'figure'", "'cell'"]),
        ([3], ["record 1", "None"]),
        ([{"type": "cell", "dataset": "a"}], ["record 1", "recipe", "method"]),
        ([{**stores.cell("r", "a", "A", 0, [5]), "schema": 2}], ["schema 2", "update"]),
    ],
    ids=["empty", "type", "no mapping", "no fields", "newer"],
)
def test_what_is_no_store_is_refused(records, words):
    with says(*words):
        page(records)


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    with says("nowhere", "cannot be written"):
        write_page(stores.every_view(1), tmp_path / "nowhere" / "report.html")


def test_the_page_is_a_function_of_the_records(tmp_path):
    records = stores.through_json(stores.every_view(2))
    path = write_page(records, tmp_path / "a.html", title="Mine <b>")
    assert path.read_text(encoding="utf-8") == page(records, title="Mine <b>")
    assert "<title>Mine &lt;b&gt;</title>" in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", recipe_names())
def test_every_recipe_that_comes_with_exactk_has_its_views(name):
    recipe = read_recipe(name)
    small = recipe.restrict(datasets=recipe.datasets[:1], sizes=recipe.sizes[-2:], repeats=2)
    line = {"type": "recipe", "name": name, "definition": small.to_dict()}
    records = [line, *stores.cells_of(line)]
    views = line["definition"]["views"]
    measures = {
        m
        for v in views
        for m in ([v["measure"]] if isinstance(v["measure"], str) else v["measure"])
    }
    for record in records[1:]:
        for result in record["results"]:
            result["measures"].update(
                dict.fromkeys(measures - {"own", "objective", "seconds"}, 0.5)
            )
    text = page(stores.through_json(records))
    read(text)
    assert text.count('<section class="view ') == len(views)
    for view in views:
        assert escape(view["title"]) in text
    assert "does not know" not in text
    assert "No numbers" not in text
    assert "No method kept" not in text


def test_many_panels_of_bars_are_summed_up_by_their_median():
    views = [{"kind": "bars", "measure": "seconds", "scale": "log"}]
    names = [f"d{i}" for i in range(9)]
    line = stores.definition("r", views, datasets=names, methods=["A", "B"], repeats=1)
    records = [line, *stores.cells_of(line)]
    for number, record in enumerate(r for r in records[1:] if r["method"] == "A"):
        for result in record["results"]:
            result["seconds"] = float(number + 1)
    text = page(records)
    assert "A\nmedian: 5 (n = 27)" in text
    assert text.count("<figure") == 1 + 27


def test_the_command_says_what_differs_from_the_recipe_and_the_seed():
    recipe = read_recipe("cdlsr-table2")

    def of(restricted, seed):
        first = cells(restricted, seed)[0]
        made = [
            stores.cell(recipe.name, first.dataset, first.variant.label, first.repeat, first.sizes,
                        seed=first.seed, run_seed=seed)
        ]  # fmt: skip
        return command(Study(recipe.name, restricted.to_dict(), made))

    assert of(recipe, 0) == "exactk papers run cdlsr-table2"
    small = recipe.restrict(datasets=["jaffe"], sizes=[1, 2, 3, 9], repeats=2)
    assert of(small, 20_261_116) == (
        "exactk papers run cdlsr-table2 --datasets jaffe --sizes 1-3,9 --repeats 2 --seed 20261116"
    )


def test_what_differs_by_rounding_is_equally_good_and_has_no_deviation():
    line = stores.definition("r", [{"kind": "table", "measure": "objective"}], datasets=["a"],
                             methods=["A", "B", "C"], sizes=[5], repeats=2)  # fmt: skip
    records = [line, *stores.cells_of(line)]
    for record in records[1:]:
        value = {"A": 9.0, "B": 9.0 * (1 + 1e-13 * record["repeat"]), "C": 9.1}[record["method"]]
        record["results"][0]["objective"] = value
    text = page(records)
    assert [row[1] for row in table_rows(text, "wide")] == ["9 ± 0", "9 ± 0", "9.1 ± 0"]
    assert text.count("<b>9</b>") == 2


def test_a_data_set_where_every_method_failed_says_so():
    line = stores.definition("r", FIGURES, repeats=1)
    lacking = [("orl", method) for method in ("CD-LSR", "exchange", "RPFS")]
    records = [line, *stores.cells_of(line, without=lacking)]
    records += [stores.failed("r", *place, 0, sizes=[5, 10, 20]) for place in lacking]
    for kind in ("curve", "trace", "bars"):
        text = view_of(page(records), kind)
        panels = re.findall(r"<figcaption><b><bdi>orl</bdi></b>.*?</figure>", text)
        assert panels, kind
        for panel in panels:
            assert len(re.findall('class="gap"[^>]*>failed', panel)) == 3, kind


def test_short_and_long_traces_share_a_log_axis():
    line = stores.definition("r", [{"kind": "trace", "measure": "own", "x": "iteration"}],
                             datasets=["a"], methods=["A", "B"], sizes=[5], repeats=1)  # fmt: skip
    records = [line, *stores.cells_of(line)]
    for record in records[1:]:
        length = 8 if record["method"] == "A" else 1000
        record["results"][0]["trace"] = [1.0 + 1 / (i + 1) for i in range(length)]
    text = page(records)
    assert "iteration, log scale" in text
    paths = re.findall(r'class="line" d="M([^"]*L[^"]*)"', text)
    lines = [[float(place.split()[0]) for place in path.split("L")] for path in paths]
    short, long = sorted(lines, key=len)
    assert len(short) == 8
    assert 24 < len(long) <= 120
    assert short[:8] == long[:8]
    # Of a thousand iterations the first ten take a third of the axis.
    third = long[0] + (long[-1] - long[0]) / 3
    assert len([x for x in long if x <= third + 0.1]) >= 8
    assert short[-1] < third
    assert len(re.findall(r"<title>B\niteration \d+:", text)) <= 24
