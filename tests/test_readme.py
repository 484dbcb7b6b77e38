"""The README says what is so: its examples run, and its figures are those of the record."""

from __future__ import annotations

import doctest
import json
import re
from pathlib import Path

import pytest

from benchmarks.verdict import readme_section

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_examples_run() -> None:
    results = doctest.testfile(
        str(ROOT / "README.md"), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE
    )
    assert results.attempted > 5
    assert results.failed == 0


def test_figures_are_those_of_the_record() -> None:
    kept = ROOT / "benchmarks" / "results" / "compare.json"
    record = json.loads(kept.read_text(encoding="utf-8"))
    shown = README.split("<!-- measured: begin -->")[1].split("<!-- measured: end -->")[0]
    assert shown.strip() == readme_section(record).strip()


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "benchmarks/README.md"])
def test_links_lead_somewhere(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)#]+)", text)
    for link in links:
        if "://" not in link:
            assert ((ROOT / page).parent / link).exists(), link


def test_the_commands_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.M))
    assert set(re.findall(r"^    make ([a-z-]+)", README, flags=re.M)) == {"demo", "test"}
    assert {"demo", "test", "lint", "bench"} <= targets
