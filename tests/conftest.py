"""Markers of what tests need, the benchmark data, and the last section of a run: what was left out.

Tests with one of the markers in `FULL` run in ``make test-all`` only. A test whose package or
program is absent is skipped; with ``EXACTK_STRICT=1`` that makes the run fail.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
NO_DATA = "the benchmark data folder is absent (set EXACTK_DATA)"
CHROMIUM = (
    os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
)
FULL = ("browser", "dask", "deep", "docs", "examples", "omics", "peers", "slow", "spark")
# The packages that tests with a marker import.
PACKAGES = {
    "browser": ("playwright", "axe_playwright_python"),
    "dask": ("dask", "distributed"),
    "deep": ("torch",),
    "omics": ("anndata",),
    "peers": ("skrebate", "mrmr", "skfeature"),
    "spark": ("pyspark",),
}
# Tests that share a cluster, a session or a build of the site stay in one process.
GROUPS = ("dask", "docs", "spark", "browser")


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


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        yield browser
        browser.close()


@pytest.fixture
def visit(browser, files):
    """Open a page; at the end there must have been no complaint and no request."""
    troubles: list[str] = []
    contexts = []

    def opened(name, **options):
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        contexts.append(context)
        view = context.new_page()
        view.on("console", lambda message: troubles.append(message.text))
        view.on("pageerror", lambda error: troubles.append(str(error)))
        view.on("request", lambda request: troubles.append(request.url))
        view.goto(files[name])
        # The page itself is the only thing that may be asked for.
        assert troubles.pop(0).startswith(files[name])
        return view

    yield opened
    for context in contexts:
        context.close()
    assert troubles == []


@cache
def absent(marker: str) -> str:
    """What tests with this marker need and the machine lacks, or nothing."""
    if marker == "browser" and CHROMIUM is None:
        return "Chromium"
    if marker == "spark" and not (os.environ.get("JAVA_HOME") or shutil.which("java")):
        return "Java"
    return next((name for name in PACKAGES.get(marker, ()) if find_spec(name) is None), "")


# Before `-m` selects.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if isinstance(item, pytest.DoctestItem):
            for marker in needs(item):
                item.add_marker(marker)
        if "shared_data" in getattr(item, "fixturenames", ()):
            item.add_marker("shared_data")
        markers = full_markers(item)
        if markers:
            item.add_marker("full")
        for marker in markers:
            if absent(marker):
                item.add_marker(pytest.mark.skip(reason=f"{absent(marker)} is absent ({marker})"))
        for group in [name for name in GROUPS if name in markers][:1]:
            item.add_marker(pytest.mark.xdist_group(group))


def full_markers(item: pytest.Item) -> list[str]:
    return [name for name in FULL if item.get_closest_marker(name)]


def needs(item: pytest.DoctestItem) -> list[str]:
    """Markers of a doctest: the packages it imports. Examples of deep methods do not show it."""
    found = [
        marker
        for marker, packages in PACKAGES.items()
        if any(f"import {name}" in example.source for example in item.dtest.examples
               for name in packages)
    ]  # fmt: skip
    return [*found, "deep"] if imports_torch(item.path) else found


@cache
def imports_torch(module: Path) -> bool:
    return "import torch" in module.read_text(encoding="utf-8")


# Tests that -m or -k did not select, by marker.
not_selected: Counter[str] = Counter()


def pytest_deselected(items: list[pytest.Item]) -> None:
    for item in items:
        not_selected[", ".join(full_markers(item)) or "other"] += 1


def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["not_selected"] = dict(not_selected)
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("EXACTK_STRICT") == "1" and reporter and set(skipped(reporter)) - {NO_DATA}:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: object) -> None:
    """Take over what a worker of xdist left out; every worker collects the same tests."""
    for marker, count in getattr(node, "workeroutput", {}).get("not_selected", {}).items():
        not_selected[marker] = count


def skipped(reporter: pytest.TerminalReporter) -> Counter[str]:
    """Number of skipped tests, by reason."""
    reasons: Counter[str] = Counter()
    for report in reporter.stats.get("skipped", []):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        reasons[reason.removeprefix("Skipped: ")] += 1
    return reasons


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    terminalreporter.section("left out", sep="-")
    reasons = skipped(terminalreporter)
    for marker, count in not_selected.items():
        reasons[f"not selected ({marker})"] += count
    if not reasons:
        terminalreporter.write_line("nothing left out")
    for reason, count in reasons.most_common():
        noun = "test" if count == 1 else "tests"
        terminalreporter.write_line(f"left out: {count} {noun}: {reason}")
