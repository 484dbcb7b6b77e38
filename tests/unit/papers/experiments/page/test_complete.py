"""What the page says of runs that are small, partial, single or in folds."""

from __future__ import annotations

import re

import pytest

from exactk.papers.experiments.page.html import page
from exactk.papers.experiments.page.provenance import command
from exactk.papers.experiments.page.study import Study
from exactk.papers.experiments.reading import read_recipe, recipe_names
from tests.unit.papers.experiments.page import stores
from tests.unit.papers.experiments.page.test_page import table_rows, view_of

CURVE = {"kind": "curve", "measure": "svm", "scale": "percent"}
VIEWS = [
    {"kind": "table", "measure": "svm"},
    CURVE,
    {"kind": "bars", "measure": "seconds"},
    {"kind": "trace", "measure": "own"},
    {"kind": "ranks", "measure": "svm"},
    {"kind": "profile", "measure": "weights"},
]


def made(views, **more):
    line = stores.definition("r", views, **more)
    return [line, *stores.cells_of(line)]


def set_measure(records, name, values):
    """Give every result of a method the same measure."""
    for record in records[1:]:
        for result in record["results"]:
            result["measures"][name] = values[record["dataset"], record["method"]]


# ---- Small versions


def test_a_small_version_says_so_above_its_text_and_in_the_contents():
    text = page(made(VIEWS, small=True))
    main, side = text.split("<main")[1], text.split("<main")[0]
    assert '<bdi>Title of r (small version)</bdi></h2><p class="banner">Small version' in main
    assert main.index("banner") < main.index("What was done.")
    assert "Title of r (small version)" in side
    plain = page(made(VIEWS))
    assert "mall version" not in plain


@pytest.mark.parametrize("name", recipe_names())
def test_the_command_of_a_small_version_is_quick_and_no_more(name):
    recipe = read_recipe(name)
    small = recipe.restrict(quick=True)
    expected = f"exactk papers run {name}{' --quick' if recipe.quick else ''}"
    assert command(Study(name, small.to_dict(), [])) == expected


def test_the_command_of_a_small_version_says_what_differs_from_it():
    recipe = read_recipe("cdlsr-figure3").restrict(quick=True, methods=["exchange"], sizes=[5])
    definition = recipe.to_dict()
    found = command(Study("cdlsr-figure3", definition, []))
    assert found == "exactk papers run cdlsr-figure3 --quick --methods exchange --sizes 5"
    quick = {"datasets": definition["datasets"], "sizes": [5], "methods": ["exchange"]}
    found = command(Study("mine", {**definition, "quick": quick, "repeats": 1}, []))
    assert found == "exactk papers run PATH/TO/mine.toml --quick --repeats 1"


# ---- What was not run


def test_data_sets_and_methods_without_a_cell_are_named_in_a_line_and_nowhere_else():
    line = stores.definition("r", VIEWS, datasets=["srbct", "colon", "lung"])
    without = [(d, m) for d in ("colon", "lung") for m in ("CD-LSR", "exchange", "RPFS")]
    records = [line, *stores.cells_of(line, without=[*without, ("srbct", "RPFS")])]
    text = page(records)
    main = text.split("<main")[1].split('id="origin"')[0]
    note = "Not run: <bdi>colon</bdi>, <bdi>lung</bdi> (no data there, or not asked for)"
    assert main.count(note) == 1
    assert main.count("Not run: <bdi>RPFS</bdi> (") == 1
    for name in ("colon", "lung", "RPFS"):
        assert main.count(name) == 1
    assert "not run</" not in main.replace("not run</bdi>", "")
    lead = re.search('class="lead">(.*?)</p>', text)[1]
    assert (
        lead == "1 recipe, 10 cells run, all of them finished; 2 data sets of the recipes not run."
    )
    # The command still asks for all.
    assert "--datasets srbct,colon,lung --methods CD-LSR,exchange,RPFS" in text


def test_after_a_full_run_the_headline_says_no_more():
    lead = re.search('class="lead">(.*?)</p>', page(made(VIEWS)))[1]
    assert lead == "1 recipe, 30 cells run, all of them finished."


def test_sizes_that_were_not_run_on_a_data_set_have_no_panel():
    line = stores.definition("r", [{"kind": "bars", "measure": "seconds"}], repeats=1)
    records = [line]
    for dataset, sizes in (("srbct", [5]), ("orl", [10])):
        records += [stores.cell("r", dataset, m, 0, sizes) for m in ("CD-LSR", "exchange")]
    text = view_of(page(records), "bars")
    assert text.count("<figure") == 2
    assert "not run" not in text.split("<details")[0]


# ---- Printed figures of methods that were not run


def test_printed_figures_of_methods_that_were_not_run_stand_grey_beside_the_measured():
    published = {"svm": {"a": {"5": {"Old": [90.0, 1.0], "Older": 80.0, "New": [95.0, 2.0]}}}}
    records = made([{"kind": "table", "measure": "svm", "scale": "percent"}], datasets=["a", "b"],
                   methods=["New"], sizes=[5], repeats=2, published=published)  # fmt: skip
    set_measure(records, "svm", {("a", "New"): 0.96, ("b", "New"): 0.5})
    text = page(records)
    assert table_rows(text, "wide") == [
        ["New", "96.00 ± 0.00", "50.00 ± 0.00"],
        ["Old not measured", "90.00 ± 1.00", "–"],
        ["Older not measured", "80.00", "–"],
    ]
    assert text.count('<tr class="unmeasured">') == 2
    assert [row[2] for row in table_rows(text, "compare")] == ["New"]
    assert "1 printed number, 1 measured here; 1 of 1 within" in text
    assert "did not finish" not in text
    assert 'class="gap"' not in text


def test_without_a_printed_figure_of_what_was_run_there_is_no_comparison():
    published = {"svm": {"a": {"5": {"Old": 90.0}}}}
    text = page(made([{"kind": "table", "measure": "svm"}], datasets=["a"], methods=["New"],
                     sizes=[5], published=published))  # fmt: skip
    assert "sortable compare" not in text
    # Not in per cent: in the units of the view.
    assert table_rows(text, "wide")[1] == ["Old not measured", "0.9"]


# ---- What captions say


@pytest.mark.parametrize(
    ("split", "repeats", "trials", "words"),
    [
        ({"train": 0.6}, 1, 1, "a single repeat"),
        ({"train": 0.6}, 3, 3, "over 3 repeats"),
        ({"folds": 5}, 1, 5, "over 5 folds"),
        ({"folds": 5}, 2, 10, "over 2 × 5 folds"),
    ],
    ids=["one", "repeats", "folds", "repeated folds"],
)
def test_captions_say_over_what_a_mean_is(split, repeats, trials, words):
    line = stores.definition("r", VIEWS[:4], repeats=trials, split=split)
    records = [line, *stores.cells_of(line)]
    line["definition"]["repeats"] = repeats
    text = page(records)
    captions = re.findall('class="caption">(.*?)</p>', text)
    told = [one for one in captions if words in one.lower()]
    # The table, and each of three figures; numbers of two of them once more.
    assert len(told) == 6
    has_spread = [one for one in captions if "standard deviation" in one]
    assert len(has_spread) == (0 if trials == 1 else 6)


def test_a_band_is_spoken_of_only_where_one_is_drawn():
    records = made([CURVE], repeats=3)
    places = {(d, m): 0.5 for d in ("srbct", "orl") for m in ("CD-LSR", "exchange", "RPFS")}
    assert "band: ± one standard deviation" in page(records)
    set_measure(records, "svm", places)
    assert "band" not in view_of(page(records), "curve").split('<p class="caption">')[1]


@pytest.mark.parametrize(("count", "many"), [(7, False), (8, True)])
def test_bands_of_many_methods_are_not_drawn(count, many):
    text = view_of(page(made([CURVE], methods=[f"m{i}" for i in range(count)])), "curve")
    assert ('class="figure many"' in text) is many
    assert ('class="band"' not in text) is many
    assert ("band: ± one standard deviation" not in text) is many


def test_a_recipe_on_redundancy_does_not_speak_of_accuracy():
    views = [{"kind": "bars", "measure": "redundancy"}]
    text = page(made(views, measure={"redundancy": True, "classifiers": []}))
    assert "accuracy on rows held out" not in text
    assert "features chosen on the training rows" in text
    assert "accuracy on rows held out" in page(made(views))


def test_captions_stand_outside_the_box_that_scrolls():
    text = page(stores.every_view(2))
    assert "<caption" not in text
    boxes = re.findall(r'<div class="scroll".*?</div>', text, re.S)
    assert len(boxes) > 5
    assert not any('class="caption"' in box for box in boxes)
