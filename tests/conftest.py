"""The benchmark data, and the last line of a run: what was left out, and why."""

from __future__ import annotations

import os
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
NO_DATA = "the benchmark data folder is absent (set EXACTK_DATA)"


def data_folder() -> Path | None:
    """The folder of benchmark data sets: EXACTK_DATA, else shared/data beside the checkout."""
    given = os.environ.get("EXACTK_DATA")
    folder = Path(given) if given else ROOT.parent / "shared" / "data"
    return folder if folder.is_dir() else None


@pytest.fixture(scope="session")
def shared_data() -> Path:
    folder = data_folder()
    if folder is None:
        pytest.skip(NO_DATA)
    return folder


# Before marks are looked at.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    no_torch, no_anndata = find_spec("torch") is None, find_spec("anndata") is None
    for item in items:
        if no_torch and isinstance(item, pytest.DoctestItem) and _imports(item.path, "torch"):
            item.add_marker(pytest.mark.skip(reason="torch is absent (examples)"))
        if isinstance(item, pytest.DoctestItem) and _imports(item.path, "anndata"):
            item.add_marker("omics")
        if no_anndata and item.get_closest_marker("omics"):
            item.add_marker(pytest.mark.skip(reason="anndata is absent"))
        if "shared_data" in getattr(item, "fixturenames", ()):
            item.add_marker("shared_data")


def _imports(module: Path, library: str) -> bool:
    return f"import {library}" in module.read_text(encoding="utf-8")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reasons: Counter[str] = Counter()
    for report in terminalreporter.stats.get("skipped", []):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        reasons[reason.removeprefix("Skipped: ")] += 1
    deselected = len(terminalreporter.stats.get("deselected", []))
    if deselected:
        chosen = terminalreporter.config.option.markexpr or terminalreporter.config.option.keyword
        reasons[f"not asked for ({chosen})" if chosen else "not asked for"] = deselected
    terminalreporter.section("left out", sep="-")
    if not reasons:
        terminalreporter.write_line("nothing left out")
    for reason, count in reasons.most_common():
        noun = "test" if count == 1 else "tests"
        terminalreporter.write_line(f"left out: {count} {noun}: {reason}")
