"""The pages are true: their examples run, and their figures are those of the records."""

from __future__ import annotations

import doctest
import importlib
import re
import textwrap
import tomllib
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from sklearn.datasets import load_wine

from benchmarks import alternatives, decide, growth, likelihood, losses, noise, proof, verdict
from benchmarks.__main__ import BENCHMARKS
from benchmarks.harness import read_record, record_path
from exactk.papers.experiments.cells import cells
from exactk.papers.experiments.protocols import run_cell
from exactk.papers.experiments.reading import read_recipe, recipe_names

pytestmark = pytest.mark.docs

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
MEASURED = (ROOT / "docs" / "measured.md").read_text(encoding="utf-8")
# Parts of pages, by the name in the comments around them: benchmark, page, what it shows.
SHOWN = {
    "alternatives": ("alternatives", "measured.md", alternatives.page_section),
    "decide": ("decide", "decide.md", decide.report),
    "growth": ("growth", "scale.md", growth.report),
    "likelihood": ("likelihood", "losses.md", likelihood.page),
    "losses": ("losses", "losses.md", losses.page),
    "measured": ("compare", "measured.md", verdict.page_section),
    "noise": ("noise", "losses.md", noise.page),
    "proof": ("proof", "proof.md", proof.report),
}
# The first line of an indented block in Python.
PYTHON = re.compile(r"    (?:import |from \w+ import |\w+ = exactk\.)")


PAGES = (
    "README.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "benchmarks/README.md",
    *sorted(f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md")),
)
# Pages that need no example in Python, and why; all others must have one, and it must run.
WITHOUT_EXAMPLES = {
    "ARCHITECTURE.md": "how it is built",
    "CHANGELOG.md": "what changed",
    "CONTRIBUTING.md": "how to change it",
    "benchmarks/README.md": "figures",
    "docs/adding.md": "how to extend it",
    "docs/architecture.md": "shows ARCHITECTURE.md",
    "docs/benchmarks.md": "shows benchmarks/README.md",
    "docs/changelog.md": "shows CHANGELOG.md",
    "docs/cli.md": "commands, which are run as well",
    "docs/contributing.md": "shows CONTRIBUTING.md",
    "docs/examples.md": "shows scripts, which have tests of their own",
    "docs/measured.md": "figures",
    "docs/results.md": "figures",
}
# Pages whose examples need anndata, which has an environment of its own.
OMICS = ("docs/panel.md",)


# Dask calls pandas in a way that the newest pandas warns of.
@pytest.mark.filterwarnings("ignore:The inplace keyword")
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=pytest.mark.omics) if page in OMICS else page
        for page in PAGES
        if page not in WITHOUT_EXAMPLES
    ],
)
def test_examples_run(page: str) -> None:
    results = doctest.testfile(
        str(ROOT / page), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE
    )
    assert results.attempted > 0
    assert results.failed == 0


@pytest.mark.parametrize("page", PAGES)
def test_code_that_is_only_shown_can_be_read(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    fenced = re.findall(r"^```python\n(.*?)^```$", text, flags=re.M | re.S)
    apart = re.findall(r"(?:^    .+\n)+", text, flags=re.M)
    indented = [textwrap.dedent(part) for part in apart if PYTHON.match(part)]
    for code in (*fenced, *indented):
        if ">>>" not in code:
            compile(code, page, "exec")
    # What is run stands behind the prompt, and a page that has nothing to run has no prompt.
    assert not (page in WITHOUT_EXAMPLES and re.search("^ *>>>", text, flags=re.M))


@pytest.mark.parametrize("part", SHOWN)
def test_figures_are_those_of_the_record(part: str) -> None:
    name, page, show = SHOWN[part]
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    shown = text.split(f"<!-- {part}: begin -->")[1].split(f"<!-- {part}: end -->")[0]
    assert shown.strip() == show(read_record(name)).strip()


@pytest.mark.parametrize("module", [alternatives, noise])
def test_drawings_are_those_of_the_record(module: ModuleType) -> None:
    record = read_record(module.__name__.split(".")[1])
    drawn = module.FIGURE.read_text(encoding="utf-8")
    assert drawn.strip() == module.figure(record).strip()


@pytest.mark.parametrize("name", BENCHMARKS)
def test_every_record_can_be_printed(name: str) -> None:
    module = importlib.import_module(f"benchmarks.{name}")
    assert module.PARTS
    if record_path(name).exists():
        assert "| " in module.report(read_record(name))


def test_the_headline_is_that_of_the_record() -> None:
    record = read_record("alternatives")
    assert len(record["cells"]) > 20
    assert alternatives.headline(record) in " ".join(README.split())


def test_the_readme_is_short() -> None:
    assert len(README.splitlines()) <= 120


def test_architecture_has_the_packages_in_the_order_of_the_import_contract() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["id"] == "flow")
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \|", text, flags=re.M)
    assert [re.findall(r"\w+", row) for row in rows] == [layer.split(" | ") for layer in layers]


def test_the_summary_of_proofs_is_that_of_the_record() -> None:
    record = read_record("proof")
    breast, digits, genes = (
        next(cell for cell in record[part] if (cell["data"], cell["k"]) == which)
        for part, which in (
            ("breast", ("breast_cancer", 1)),
            ("digits", ("digits", 10)),
            ("shared", ("srbct", 3)),
        )
    )
    middle = next(cell for cell in record["middle"] if cell["k"] == 20)
    for cell in (breast, digits, genes, middle):
        assert cell["proven"]
        assert f"{proof.seconds(proof.took(cell))} s" in MEASURED


def test_the_summary_of_losses_is_that_of_the_records() -> None:
    cells = read_record("losses")["cells"]
    for cell in cells:
        for peer in ("rpfs", "nmapg"):
            assert losses.excess(cell, peer, "loss") > 0
            assert losses.excess(cell, peer, "own") > 0
    sets = len({cell["data"] for cell in cells})
    summary = " ".join(MEASURED.split())
    assert f"in all of {len(cells)} cells ({sets} data sets, three sizes)" in summary
    record = read_record("likelihood")
    n = len(likelihood.by_cell(record))
    said = f"- exactk: objective not above any peer's in {n} of {n} cells."
    assert said in likelihood.objective_lines(record)
    assert f"has a lower deviance than exactk in any of {n} cells" in summary


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)#]+)", text)
    for link in links:
        if "://" not in link:
            assert ((ROOT / page).parent / link).exists(), link


def block(text: str, after: str) -> str:
    """The indented lines that follow some words."""
    lines = text.split(after, 1)[1].splitlines()[1:]
    end = next(i for i, line in enumerate(lines) if line and not line.startswith("    "))
    return textwrap.dedent("\n".join(lines[:end]))


def test_the_recipes_of_the_page_are_those_that_there_are() -> None:
    text = (ROOT / "docs" / "experiments.md").read_text(encoding="utf-8")
    table = text.split("## The recipes")[1].split("## ")[0]
    assert re.findall(r"^\| `([\w-]+)` \|", table, flags=re.M) == sorted(
        recipe_names(), key=table.index
    )


def test_the_worked_example_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (ROOT / "docs" / "experiments.md").read_text(encoding="utf-8")
    (tmp_path / "spread.py").write_text(block(text, "`mine/spread.py`:"), encoding="utf-8")
    recipe_file = tmp_path / "spread.toml"
    recipe_file.write_text(block(text, "`mine/spread.toml`:"), encoding="utf-8")
    np.savez(tmp_path / "cells.npz", **dict(zip("Xy", load_wine(return_X_y=True), strict=True)))
    monkeypatch.setenv("EXACTK_DATA", str(tmp_path))
    monkeypatch.syspath_prepend(tmp_path)
    recipe = read_recipe(recipe_file).restrict(datasets=["cells"], repeats=1)
    for cell in cells(recipe):
        record = run_cell(cell)
        assert record["status"] == "done"
        # Far above chance, which is 40 % for the largest of three classes.
        assert all(found["measures"]["1nn"] > 0.6 for found in record["results"])


def test_the_commands_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.M))
    assert set(re.findall(r"^    make ([a-z-]+)", README, flags=re.M)) == {"demo", "test"}
    assert {"demo", "test", "lint", "docs", "bench"} <= targets
