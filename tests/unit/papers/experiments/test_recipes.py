"""The recipes that ship: readable files that say what the papers say."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from importlib.resources import files
from math import isfinite
from pathlib import Path
from typing import Any

import pytest

from exactk.methods import registry
from exactk.papers.datasets import describe
from exactk.papers.experiments.classifiers import CLASSIFIERS
from exactk.papers.experiments.reading import read_recipe, recipe_names
from exactk.papers.experiments.recipe import ALL_FEATURES, Recipe
from tests.support import runs_here

FOLDER = Path(str(files("exactk.papers.experiments") / "recipes"))
FILES = sorted(path.name for path in FOLDER.glob("*.toml"))
# Always there, whatever has been downloaded.
BUILT_IN = {"digits", "breast_cancer", "wine", "iris", "diabetes"}
DEEP = {"cae", "firdl"}
PLAIN = {"objective", "own", "seconds", "n_iter"}
# The tables and figures that the experiments of the five papers consist of.
ASKED = {
    "cdlsr": {"figure 3", "figure 4", "table 2", "figure 5", "table 3"},
    "ipfs": {"figure 2", "figure 3", "figure 4"},
    "rpfs": {"figure 1", "figure 2", "figure 3", "table 2"},
    "nmapg": {f"figure {number}" for number in range(1, 6)},
    "gsrfs": {"figure 2", "table 2", "figure 3", "table 3"},
}


def content(file: str) -> dict[str, Any]:
    return tomllib.loads((FOLDER / file).read_text(encoding="utf-8"))


def recipe_of(file: str) -> Recipe:
    return read_recipe(content(file)["name"])


def published(recipe: Recipe) -> Iterator[tuple[str, str, str, str, Any]]:
    """Every printed number: measure, data set, k, label, value."""
    for measure, by_dataset in recipe.published.items():
        for dataset, by_size in by_dataset.items():
            for k, by_label in by_size.items():
                for label, value in by_label.items():
                    yield measure, dataset, k, label, value


@pytest.mark.parametrize("file", FILES)
def test_a_file_is_named_as_its_recipe(file: str) -> None:
    name = content(file)["name"]
    assert file == name.replace("-", "_") + ".toml"
    assert name in recipe_names()
    # As a file it is read like one of the user's own.
    assert read_recipe(FOLDER / file) == read_recipe(name)


def test_names_are_unique_and_every_table_and_figure_has_one_recipe() -> None:
    assert len(recipe_names()) == len(FILES) == len({content(file)["name"] for file in FILES})
    shown: dict[str, list[str]] = {}
    for name in recipe_names():
        recipe = read_recipe(name)
        shown.setdefault(recipe.paper, []).extend(recipe.reproduces)
    assert shown.pop("exactk") == []
    assert {paper: sorted(what) for paper, what in shown.items()} == {
        paper: sorted(what) for paper, what in ASKED.items()
    }


@pytest.mark.parametrize(("paper", "what"), [(p, w) for p in ASKED for w in sorted(ASKED[p])])
def test_a_table_or_figure_is_found_by_its_name(paper: str, what: str) -> None:
    recipe = read_recipe(f"{paper}-{what.replace(' ', '')}")
    assert recipe.paper == paper
    assert what in recipe.reproduces


@pytest.mark.parametrize("file", FILES)
def test_methods_are_registered_and_accept_their_options(file: str) -> None:
    for entry in content(file)["methods"]:
        if entry["method"] == ALL_FEATURES:
            continue
        assert entry["method"] in registry.names()
        options = entry.get("options", {})
        if not runs_here(entry["method"]):
            continue
        registry.create(entry["method"], **options).check()
        for name, values in entry.get("grid", {}).items():
            assert name not in options, f"{entry['label']} fixes {name} and searches it"
            assert len(set(values)) == len(values) > 1
            for value in values:
                registry.create(entry["method"], **{**options, name: value}).check()


@pytest.mark.parametrize("file", FILES)
def test_only_protocol_classify_searches_a_grid(file: str) -> None:
    recipe = recipe_of(file)
    searched = [variant.label for variant in recipe.methods if variant.grid]
    assert not searched or recipe.protocol == "classify"


@pytest.mark.parametrize("file", FILES)
def test_labels_can_be_given_on_the_command_line(file: str) -> None:
    labels = [variant.label for variant in recipe_of(file).methods]
    # A comma outside parentheses parts two labels.
    assert not [label for label in labels if re.search(r",(?![^(]*\))", label)]
    assert len({label.lower() for label in labels}) == len(labels)


@pytest.mark.parametrize("file", FILES)
def test_exchange_takes_part_with_the_ridge_of_its_purpose(file: str) -> None:
    recipe = recipe_of(file)
    ours = recipe.variant("exchange")
    assert ours.method == "exchange"
    assert ours.ridge == (0.0 if recipe.protocol == "fit" else "auto")
    if recipe.paper != "exactk":
        assert recipe.methods[0].method == recipe.paper, "the paper's own method comes first"


@pytest.mark.parametrize("file", FILES)
def test_data_sets_are_catalogued_and_fit_the_protocol(file: str) -> None:
    recipe = recipe_of(file)
    for name in [*recipe.datasets, *recipe.quick["datasets"]]:
        entry = describe(name)
        assert (entry.classes is None) == (recipe.protocol == "regress")
    assert recipe.paper == "exactk" or max(recipe.sizes) <= min(
        describe(name).d for name in recipe.datasets
    )


@pytest.mark.parametrize("file", FILES)
def test_views_show_what_is_measured(file: str) -> None:
    recipe = recipe_of(file)
    measured = {*PLAIN, *recipe.measure.classifiers}
    measured |= {f"sparsity@{tol:g}" for tol in recipe.measure.sparsity}
    if recipe.measure.redundancy:
        measured |= {"redundancy"}
    if recipe.protocol == "regress":
        measured |= {"rmse", "recovered"}
    assert set(recipe.measure.classifiers) <= set(CLASSIFIERS)
    assert recipe.views
    for view in recipe.views:
        names = {view.measure} if isinstance(view.measure, str) else set(view.measure)
        known = set(recipe.measure.details) if view.kind == "profile" else measured
        assert names <= known, f"{view.title} shows {names - known}, which nothing measures"
        if view.kind == "trace":
            assert recipe.measure.trace
        if view.x not in ("k", "iteration"):
            having = [v.label for v in recipe.methods if view.x in v.options]
            assert len(having) > 2
    asked = {f"{word.capitalize()} " for shown in recipe.reproduces for word in shown.split()[:1]}
    titles = " ".join(view.title for view in recipe.views)
    assert all(word in titles for word in asked)


@pytest.mark.parametrize("file", FILES)
def test_the_small_version_is_small_and_always_has_data(file: str) -> None:
    recipe = recipe_of(file)
    small = recipe.restrict(quick=True)
    assert BUILT_IN & set(small.datasets)
    assert set(small.datasets) - BUILT_IN, "and one set that is not built in"
    assert len(small.sizes) <= 3
    assert small.repeats <= 5
    assert not DEEP & {variant.method for variant in small.methods}
    assert "exchange" in [variant.label for variant in small.methods]
    least = min(describe(name).d for name in small.datasets)
    assert max(small.sizes) <= least


@pytest.mark.parametrize("file", FILES)
def test_printed_numbers_have_a_place(file: str) -> None:
    recipe = recipe_of(file)
    labels = {variant.label for variant in recipe.methods}
    shown = {view.measure for view in recipe.views if view.kind == "table"}
    for measure, dataset, k, label, value in published(recipe):
        assert measure in shown
        assert dataset in recipe.datasets
        assert int(k) in recipe.sizes
        assert label in labels
        pair = value if isinstance(value, list) else [value]
        assert 1 <= len(pair) <= 2
        assert all(isinstance(part, float) and isfinite(part) and part >= 0 for part in pair)
        # Percent are of the paper, not shares of one.
        assert measure not in CLASSIFIERS or 50 < pair[0] < 100


# One row of each table, read from the papers a second time.
ROWS: list[tuple[str, str, str, str, dict[str, Any]]] = [
    ("cdlsr-table2", "objective", "jaffe", "10",
     {"IPFS": [189.4, 11.9], "PGD": [94.98, 8.5], "RPFS": [74.07, 4.8], "CD-LSR": [68.36, 8.5]}),
    ("cdlsr-table2", "own", "srbct", "5", {"PGD": [38.6, 9.0], "CD-LSR": [12.91, 2.1]}),
    ("cdlsr-table3", "seconds", "usps", "5",
     {"IPFS": [36.8, 4.62], "PGD": [624.9, 16.1], "RPFS": [3.114, 0.31], "CD-LSR": [3.376, 0.66]}),
    ("gsrfs-table2", "svm-tuned", "orl_full", "50",
     {"ReliefF": [56.5, 6.12], "mRMR": [87.81, 3.23], "MTFS": [74.0, 3.6], "RFS": [80.25, 2.74],
      "Extended RFS (p=0.5)": [88.44, 2.11], "RK1U (p=0.5)": [90.13, 1.81],
      "GSR-FS (p=1.0)": [90.88, 2.83], "GSR-FS (p=0.75)": [91.5, 2.27],
      "GSR-FS (p=0.5)": [91.13, 2.93], "GSR-FS (p=0.25)": [90.06, 2.33]}),
    ("gsrfs-table3", "seconds", "ar", "100",
     {"ReliefF": 37.13, "mRMR": 24.67, "RFS": 67.44, "Extended RFS (p=0.5)": 48.92,
      "RK1U (p=0.5)": 2070.54, "GSR-FS (p=1.0)": 62.08, "GSR-FS (p=0.75)": 30.19,
      "GSR-FS (p=0.5)": 26.36, "GSR-FS (p=0.25)": 20.49}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "measure", "dataset", "k", "row"), ROWS, ids=[f"{row[0]}-{row[1]}" for row in ROWS]
)
def test_a_row_of_a_table_is_as_printed(
    name: str, measure: str, dataset: str, k: str, row: dict[str, Any]
) -> None:
    assert read_recipe(name).published[measure][dataset][k] == row


def test_the_table_of_rpfs_is_as_printed() -> None:
    own = read_recipe("rpfs-table2").published["own"]
    assert {k: own["allaml"][k]["RPFS"] for k in own["allaml"]} == {
        "1": [6.06, 2.26],
        "5": [2.45, 1.24],
        "8": [1.28, 0.85],
        "10": [0.92, 0.56],
    }


@pytest.mark.parametrize(
    ("name", "measure", "count", "means", "deviations"),
    [
        # Sums over a whole table, computed from the text of the paper.
        ("cdlsr-table2", "objective", 24, 2146.544, 117.8),
        ("cdlsr-table3", "seconds", 12, 749.044, 22.52),
        ("rpfs-table2", "own", 16, 162.11, 19.42),
        ("gsrfs-table2", "svm-tuned", 60, 5302.84, 79.42),
        ("gsrfs-table3", "seconds", 54, 42929.48, 0.0),
    ],
)
def test_tables_are_whole(
    name: str, measure: str, count: int, means: float, deviations: float
) -> None:
    values = [value for shown, *_, value in published(read_recipe(name)) if shown == measure]
    pairs = [value if isinstance(value, list) else [value, 0.0] for value in values]
    assert len(pairs) == count
    assert sum(mean for mean, _ in pairs) == pytest.approx(means, abs=1e-6)
    assert sum(deviation for _, deviation in pairs) == pytest.approx(deviations, abs=1e-6)


def test_own_objectives_of_cdlsr_are_those_of_its_table() -> None:
    table = read_recipe("cdlsr-table2").published
    for dataset, by_size in table["own"].items():
        for k, row in by_size.items():
            assert set(row) == {"PGD", "CD-LSR"}
            assert row == {label: table["objective"][dataset][k][label] for label in row}


def test_best_published_cells_are_those_to_reach() -> None:
    table = read_recipe("gsrfs-table2").published["svm-tuned"]
    best = {name: max(value[0] for value in table[name]["50"].values()) for name in table}
    to_reach = {"semeion": 86.97, "orl_full": 91.50, "isolet_full": 94.10, "ar": 94.51}
    assert {name: best[name] for name in to_reach} == to_reach


def test_the_leaderboard_has_every_method_that_serves_large_tables() -> None:
    recipe = read_recipe("leaderboard")
    methods = [variant.method for variant in recipe.methods]
    assert sorted(methods) == sorted(set(registry.names()) - {"exhaustive"})
    assert not any(variant.options or variant.grid for variant in recipe.methods)
    # The same people, words or images are there once.
    for same in (("leu", "allaml", "leukemia"), ("isolet", "isolet_full"), ("orl", "orl_full"),
                 ("mnist", "mnist49"), ("lung", "lung56")):  # fmt: skip
        assert len(set(same) & set(recipe.datasets)) == 1
