"""A recipe says exactly what is wrong with it, and restricts itself as asked."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from exactk.papers.experiments.cells import cells, seed_of, shares_sizes
from exactk.papers.experiments.reading import read_recipe
from exactk.papers.experiments.recipe import MethodSpec, Recipe, method_class
from tests.support import says

SMALL: dict[str, Any] = {
    "name": "small",
    "title": "A small experiment",
    "protocol": "classify",
    "datasets": ["digits", "wine"],
    "sizes": [5, 2, 5],
    "repeats": 3,
    "split": {"train": 0.6},
    "measure": {"classifiers": ["1nn"]},
    "methods": [
        {"label": "ours", "method": "exchange", "ridge": "auto"},
        {"label": "GSR-FS (p=0.5)", "method": "gsrfs", "options": {"p": 0.5}},
        {"label": "GSR-FS (p=1)", "method": "gsrfs", "grid": {"lam": [0.1, 1], "r": [1, 2]}},
        {"label": "Fisher", "method": "fisher"},
    ],
    "quick": {"datasets": ["wine"], "repeats": 1, "methods": ["ours", "Fisher"]},
}


def recipe(**changes: Any) -> Recipe:
    return Recipe.from_dict({**SMALL, **changes})


def test_sizes_are_sorted_and_given_once() -> None:
    assert recipe().sizes == [2, 5]
    assert recipe(sizes={"from": 10, "to": 30, "step": 10}).sizes == [10, 20, 30]


def test_the_grid_is_every_combination() -> None:
    variant = recipe().variant("GSR-FS (p=1)")
    assert variant.settings() == [
        {"lam": 0.1, "r": 1},
        {"lam": 0.1, "r": 2},
        {"lam": 1, "r": 1},
        {"lam": 1, "r": 2},
    ]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"protocl": "fit"}, ["no entry 'protocl'", "did you mean 'protocol'"]),
        ({"protocol": "guess"}, ["protocol", "'guess'"]),
        ({"repeats": 0}, ["repeats", "0"]),
        ({"sizes": []}, ["sizes"]),
        ({"sizes": [0]}, ["sizes", "0"]),
        ({"sizes": {"from": 1}}, ["from, to and step"]),
        ({"datasets": []}, ["datasets"]),
        ({"methods": []}, ["[[methods]]"]),
        ({"split": {}}, ["'classify'", "train or folds"]),
        ({"split": {"train": 0.6, "folds": 5}}, ["both train and folds"]),
        ({"split": {"train": 1.5}}, ["split: train", "1.5"]),
        ({"views": [{"kind": "pie"}]}, ["view 1", "'pie'"]),
        ({"methods": [{"method": "exchange"}]}, ["method 1", "label"]),
        ({"methods": [{"label": "a", "method": "exchnage"}]}, ["exchnage", "exchange"]),
        ({"methods": [{"label": "a", "method": "gsrfs", "options": {"p": 9}}]}, ["p must be"]),
        ({"methods": [{"label": "a", "method": "no.such:Thing"}]}, ["no.such:Thing"]),
        ({"methods": [{"label": "a", "method": "math:pi"}]}, ["not a subclass"]),
        ({"methods": [SMALL["methods"][0]] * 2}, ["'ours'", "labels must differ"]),
        ({"quick": {"speed": 1}}, ["quick", "'speed'"]),
        ({"quick": {"methods": ["fischer"]}}, ["'fischer'", "Fisher"]),
        ({"measure": {"classifiers": ["2nn"]}}, ["2nn", "1nn"]),
    ],
)
def test_what_is_wrong_is_named(changes: dict[str, Any], words: list[str]) -> None:
    with says(*words):
        recipe(**changes)


def test_a_missing_title_is_named() -> None:
    values = {name: value for name, value in SMALL.items() if name != "title"}
    with says("title"):
        Recipe.from_dict(values, "mine.toml")


def test_restricting_by_label_name_and_new_method() -> None:
    small = recipe()
    labels = [v.label for v in small.restrict(methods=["gsrfs", "FISHER", "relieff"]).methods]
    assert labels == ["GSR-FS (p=0.5)", "GSR-FS (p=1)", "Fisher", "relieff"]
    with says("'grsfs'", "gsrfs", "exactk list methods"):
        small.restrict(methods=["grsfs"])
    with says("repeats", "0"):
        small.restrict(repeats=0)


def test_quick_takes_the_small_version_and_words_of_the_user_win() -> None:
    quick = recipe().restrict(quick=True)
    assert (quick.datasets, quick.repeats) == (["wine"], 1)
    assert [v.label for v in quick.methods] == ["ours", "Fisher"]
    more = recipe().restrict(quick=True, repeats=2, methods=["gsrfs"], datasets=["iris"])
    assert (more.datasets, more.repeats, len(more.methods)) == (["iris"], 2, 2)


def test_a_recipe_goes_through_plain_values_and_back() -> None:
    small = recipe()
    assert Recipe.from_dict(small.to_dict()) == small


def test_files_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(
        'name = "mine"\ntitle = "t"\nprotocol = "fit"\ndatasets = ["iris"]\nsizes = [2]\n'
        'repeats = 1\n[[methods]]\nlabel = "a"\nmethod = "greedy"\n',
        encoding="utf-8",
    )
    assert read_recipe(path).methods[0].method == "greedy"
    path.write_text("name = ", encoding="utf-8")
    with says("mine.toml", "not TOML"):
        read_recipe(path)
    with says("absent.toml", "cannot be read"):
        read_recipe("absent.toml")
    with says("'cdlsr-tabel2'", "cdlsr-table2"):
        read_recipe("cdlsr-tabel2")


def test_tables_and_figures_are_names_too() -> None:
    assert read_recipe("cdlsr-figure5").name == "cdlsr-table2"
    assert read_recipe("CDLSR table2").name == "cdlsr-table2"


def test_cells_are_split_by_size_only_where_sizes_do_not_share_a_run() -> None:
    found = cells(recipe(datasets=["wine"], repeats=1))
    assert [(c.variant.label, c.sizes) for c in found] == [
        ("ours", (2,)),
        ("ours", (5,)),
        ("GSR-FS (p=0.5)", (2, 5)),
        ("GSR-FS (p=1)", (2, 5)),
        ("Fisher", (2, 5)),
    ]


def test_all_methods_of_a_repeat_see_the_same_draw() -> None:
    found = cells(recipe(split={"folds": 5}, repeats=2))
    by_draw: dict[tuple[str, int], set[int]] = {}
    for cell in found:
        by_draw.setdefault((cell.dataset, cell.repeat // 5), set()).add(cell.seed)
    assert len(by_draw) == 4
    assert all(len(seeds) == 1 for seeds in by_draw.values())
    assert len(set.union(*by_draw.values())) == 4


def test_the_key_is_made_of_what_decides_the_outcome() -> None:
    (first, *_), (again, *_) = cells(recipe()), cells(recipe())
    (other, *_) = cells(recipe(split={"train": 0.5}))
    (seeded, *_) = cells(recipe(), seed=1)
    assert first.key("sum") == again.key("sum")
    assert len({first.key("sum"), first.key("mus"), other.key("sum"), seeded.key("sum")}) == 4


def test_more_repeats_or_methods_do_not_change_the_keys_of_the_others() -> None:
    few = {cell.key("") for cell in cells(recipe().restrict(repeats=1, methods=["fisher"]))}
    many = {cell.key("") for cell in cells(recipe())}
    assert few < many


def test_seeds_differ_by_data_set_and_repeat() -> None:
    seeds = {seed_of(0, name, repeat) for name in ("a", "b") for repeat in range(50)}
    assert len(seeds) == 100


def test_who_shares_sizes() -> None:
    assert shares_sizes(MethodSpec("a", "fisher"))
    assert shares_sizes(MethodSpec("a", "all"))
    assert shares_sizes(MethodSpec("a", "nmapg", path=True))
    assert not shares_sizes(MethodSpec("a", "nmapg"))
    assert not shares_sizes(MethodSpec("a", "greedy", ridge="cv"))


def test_a_class_by_its_place() -> None:
    assert method_class("exactk.methods.greedy:Greedy").__name__ == "Greedy"


def test_fitting_again_is_left_out_where_nothing_is_drawn() -> None:
    methods = [{"label": "G", "method": "greedy"}, {"label": "C", "method": "cdlsr"}]
    found = cells(recipe(protocol="fit", split={}, methods=methods, datasets=["wine"], quick={}))
    assert [cell.variant.label for cell in found].count("G") == 1
    assert [cell.variant.label for cell in found].count("C") == 6


@pytest.mark.parametrize(
    ("published", "words"),
    [
        ({"1nn": {"digit": {"2": {"ours": 1.0}}}}, ["'digit'", "digits"]),
        ({"1nn": {"digits": {"3": {"ours": 1.0}}}}, ["'3'", "sizes"]),
        ({"1nn": {"digits": {"2": {"hours": 1.0}}}}, ["'hours'", "ours"]),
        ({"1nn": {"digits": {"2": {"ours": "high"}}}}, ["'high'", "number"]),
        ({"1nn": {"digits": {"2": 1.0}}}, ["published.1nn.digits.2", "table"]),
    ],
)
def test_printed_figures_belong_to_something(published: dict[str, Any], words: list[str]) -> None:
    with says(*words):
        recipe(published=published)


def test_a_grid_needs_an_accuracy() -> None:
    with says("'GSR-FS (p=1)'", "grid", "'fit'", "options"):
        recipe(protocol="fit", split={})


def test_quick_may_split_otherwise() -> None:
    small = recipe(split={"folds": 10}, quick={"split": {"folds": 2}})
    assert small.restrict(quick=True).split.folds == 2
    assert small.split.folds == 10
    assert Recipe.from_dict(small.to_dict()) == small


def test_an_entry_that_is_as_by_default_does_not_change_a_key() -> None:
    told = {"classifiers": ["1nn"], "trace": False, "tune_folds": 5}
    (plain, *_), (spelt, *_) = cells(recipe()), cells(recipe(measure=told))
    (other, *_) = cells(recipe(measure={**told, "trace": True}))
    assert plain.key("") == spelt.key("") != other.key("")


METHOD = {"label": "A", "method": "greedy"}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"name": []}, ["name", "text"]),
        ({"title": 5}, ["title", "text", "5"]),
        ({"reproduces": "table 2"}, ["reproduces", "list"]),
        ({"datasets": 5}, ["datasets", "list", "5"]),
        ({"datasets": "abc"}, ["datasets", "list", "'abc'"]),
        ({"measure": {"classifiers": 5}}, ["classifiers", "list"]),
        ({"measure": {"classifiers": "svm"}}, ["classifiers", "list", "'svm'"]),
        ({"measure": {"sparsity": ["a"]}}, ["sparsity", "number"]),
        ({"measure": {"norms": 5}}, ["norms", "list"]),
        ({"measure": 5}, ["measure", "table"]),
        ({"quick": 5}, ["quick", "table"]),
        ({"quick": {"methods": 5}}, ["quick.methods", "list"]),
        ({"quick": {"methods": [5]}}, ["quick.methods", "list"]),
        ({"quick": {"datasets": []}}, ["quick.datasets", "list"]),
        ({"quick": {"time_limit": -1}}, ["quick.time_limit", "-1"]),
        ({"published": 5}, ["published", "table"]),
        ({"views": 5}, ["views", "list"]),
        ({"views": [{"kind": "table", "measure": 5}]}, ["measure", "5"]),
        ({"views": [{"kind": "table", "title": 5}]}, ["title", "5"]),
        ({"methods": 5}, ["methods", "list"]),
        ({"methods": [{**METHOD, "method": 5}]}, ["method", "text", "5"]),
        ({"methods": [{**METHOD, "method": "..x:Y"}]}, ["..x:Y", "package.module:Class"]),
        ({"methods": [{**METHOD, "label": ""}]}, ["label", "text"]),
        ({"methods": [{**METHOD, "options": ["a"]}]}, ["options", "table"]),
        ({"methods": [{**METHOD, "ridge": "x"}]}, ["ridge", "auto", "'x'"]),
        ({"methods": [{**METHOD, "ridge": True}]}, ["ridge", "True"]),
        ({"methods": [{**METHOD, "ridge": float("nan")}]}, ["ridge", "nan"]),
        ({"methods": [{"label": "A", "method": "gsrfs", "grid": 5}]}, ["grid", "table"]),
        (
            {"methods": [{"label": "A", "method": "gsrfs", "grid": {"lam": 1}}]},
            ["grid.lam", "list"],
        ),
        (
            {
                "methods": [
                    {"label": "A", "method": "rfs", "options": {"lam": 1}, "grid": {"lam": [2]}}
                ]
            },
            ["'lam'", "both"],
        ),
        ({"methods": [{"label": "A", "method": "rfs", "options": {"lam": -1}}]}, ["'A'", "lam"]),
        ({"repeats": 10**20}, ["repeats"]),
        ({"sizes": {"from": 1, "to": 10**10}}, ["sizes.to"]),
    ],
    ids=str,
)
def test_entries_of_the_wrong_kind_are_named(changes: dict[str, Any], words: list[str]) -> None:
    with says(*words):
        recipe(**{"quick": {}, **changes})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("import nothing_of_this_name", ["ModuleNotFoundError"]),
        ("def (", ["SyntaxError"]),
        ("raise SystemExit", ["SystemExit"]),
        ("1 / 0", ["ZeroDivisionError"]),
        ("Mine = 5", ["not a subclass"]),
        (
            "from exactk.methods.base import Method\n"
            "class Mine(Method):\n    def __init__(self, a): self.a = a\n",
            ["cannot be made", "TypeError"],
        ),
    ],
    ids=["absent", "syntax", "exit", "error", "number", "needs an argument"],
)
def test_a_method_of_ones_own_that_cannot_be_had(
    text: str, words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own_method.py").write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "own_method", raising=False)
    with says("own_method:Mine", *words) if "made" not in words[0] else says("'A'", *words):
        recipe(quick={}, methods=[{"label": "A", "method": "own_method:Mine"}])


def test_a_file_with_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(
        '\ufeffname = "mine"\ntitle = "t"\nprotocol = "fit"\ndatasets = ["iris"]\nsizes = [2]\n'
        'repeats = 1\n[[methods]]\nlabel = "a"\nmethod = "greedy"\n',
        encoding="utf-8",
    )
    assert read_recipe(path).name == "mine"


def test_leaving_methods_out_by_label_or_name() -> None:
    labels = [v.label for v in recipe().restrict(without=["GSRFS", "fisher"]).methods]
    assert labels == ["ours"]
    assert len(recipe().restrict(without=["gsr-fs (p=1)"]).methods) == 3
    with says("'grsfs'", "gsrfs", "'ours'"):
        recipe().restrict(without=["grsfs"])
    with says("'small'", "nothing is left"):
        recipe().restrict(without=["exchange", "gsrfs", "fisher"])
