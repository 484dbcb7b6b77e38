"""The documentation builds without a warning, asks nothing of the network, leaves nothing out."""

from __future__ import annotations

import doctest
import importlib
import inspect
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest

import exactk
from benchmarks.harness import read_record
from exactk.methods import registry
from tests.conftest import CHROMIUM

ROOT = Path(__file__).resolve().parents[1]
pytestmark = pytest.mark.docs

HEADINGS = ("What it does", "Cost", "Guarantee", "Options", "Measured", "Example")
OUTSIDE = re.compile(r"(?:https?:)?//", flags=re.I)
# Prose, code, wide tables, pictures, a page of a method, of the API and of the theme.
LOOKED_AT = (
    "index.html", "start.html", "measured.html", "losses.html", "report.html", "cli.html",
    "methods/exchange.html", "api/exactk.TopKSelector.html", "examples/demo.html", "search.html",
)  # fmt: skip


class Page(HTMLParser):
    """What a page loads, where its links lead, and the places that links can lead to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.links: list[str] = []
        self.ids: set[str] = set()
        self.headings: list[str] = []
        self.text = path.read_text(encoding="utf-8")
        self._heading = False
        self.feed(self.text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.ids |= {given[name] for name in ("id", "name") if name in given}
        self.loads += [given[name] for name in ("src", "srcset", "poster", "data") if name in given]
        if tag == "link":
            self.loads.append(given.get("href", ""))
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        self._heading = tag in ("h1", "h2", "h3") or (self._heading and tag != "a")

    def handle_data(self, data: str) -> None:
        if self._heading:
            self.headings.append(data.strip())

    def handle_endtag(self, tag: str) -> None:
        if tag in ("h1", "h2", "h3"):
            self._heading = False


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    asked = ["-q", "-W", "--keep-going", "-b", "html", "-d", str(folder / "doctrees")]
    command = [sys.executable, "-m", "sphinx", *asked, str(ROOT / "docs"), str(folder / "html")]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        env={**os.environ, "PYTHONPATH": paths},
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return folder / "html"


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[str, Page]:
    found = {path.relative_to(site).as_posix(): Page(path) for path in site.rglob("*.html")}
    assert len(found) > 80
    return found


def test_every_page_is_there(pages: dict[str, Page]) -> None:
    for page in (ROOT / "docs").glob("*.md"):
        assert f"{page.stem}.html" in pages
    # Each can be reached from the first: what the navigation does not list is lost.
    first = set(pages["index.html"].links)
    for page in (ROOT / "docs").glob("*.md"):
        assert page.stem == "index" or f"{page.stem}.html" in first, page.stem


def test_no_page_asks_anything_of_the_network(site: Path, pages: dict[str, Page]) -> None:
    for name, page in pages.items():
        assert [load for load in page.loads if OUTSIDE.match(load)] == [], name
    styles = list(site.rglob("*.css"))
    assert styles
    for style in styles:
        text = style.read_text(encoding="utf-8")
        asked = re.findall(r"url\(\s*['\"]?((?:https?:)?//[^)]*)|@import\s+([^;]*)", text)
        assert asked == [], style.name
    # No fonts, no libraries: what comes along is small.
    assert sum(path.stat().st_size for path in (site / "_static").rglob("*")) < 2_000_000


def test_links_within_the_site_lead_somewhere(site: Path, pages: dict[str, Page]) -> None:
    checked = 0
    for name, page in pages.items():
        for link in page.links:
            if OUTSIDE.match(link) or link.startswith("mailto:"):
                continue
            path, _, part = unquote(link).partition("#")
            target = (site / name).parent / path if path else site / name
            key = target.resolve().relative_to(site.resolve()).as_posix()
            assert key in pages, f"{name}: {link}"
            assert not part or part in pages[key].ids, f"{name}: {link}"
            checked += 1
    assert checked > 5_000


@pytest.mark.parametrize("name", registry.names())
def test_every_method_has_a_whole_page(name: str, pages: dict[str, Page]) -> None:
    page = pages[f"methods/{name}.html"]
    assert [title for title in HEADINGS if title not in page.headings] == []
    cls = registry.method_class(name)
    for option, parameter in inspect.signature(cls).parameters.items():
        assert f"{option}={parameter.default}" in page.text
    assert registry.describe(name).reference.split(",")[0].replace("&", "&amp;") in page.text
    assert "&gt;&gt;&gt; " in page.text


def test_what_a_page_says_was_measured_is_in_the_records(pages: dict[str, Page]) -> None:
    for cell in read_record("comparison")["quality"]:
        text = re.sub(r"<[^>]+>", " ", pages[f"methods/{cell['method']}.html"].text)
        words = " ".join(text.split())
        accuracies = f"{100 * cell['nearest']:.1f} {100 * cell['svm']:.1f}"
        shown = rf"{cell['data']} {cell['k']} (?:[+-][\d.]+%|&gt; 10 times) {accuracies} "
        assert re.search(shown, words), cell
    results = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    for place, name, rank in re.findall(r"^\| (\d+) \| (\w+) \| ([\d.]+) \|", results, flags=re.M):
        text = pages[f"methods/{name}.html"].text
        assert f"place {place}, mean rank" in " ".join(text.split()), name
        assert rank in text


def test_every_public_name_has_a_page(pages: dict[str, Page]) -> None:
    modules = {"datasets", "losses", "plots", "registry"}
    assert modules < set(exactk.__all__)
    for full in ("exactk", *(getattr(exactk, module).__name__ for module in modules)):
        for name in importlib.import_module(full).__all__:
            if name not in {"__version__", *modules}:
                # The same object in a module and in the package has one page.
                home = full if f"api/{full}.{name}.html" in pages else "exactk"
                assert f"{home}.{name}" in pages[f"api/{home}.{name}.html"].text


def test_every_command_is_shown_with_its_options(pages: dict[str, Page]) -> None:
    from tools.site.commands import anchor, commands, find

    page = pages["cli.html"]
    for words in commands():
        assert anchor(words) in page.ids
        for parameter in find(words).params:
            # --quiet and --debug work in every command; the help of exactk has them.
            for option in [] if getattr(parameter, "hidden", False) else parameter.opts:
                assert not option.startswith("--") or option in page.text


def test_files_of_the_repository_are_linked_as_pages(pages: dict[str, Page]) -> None:
    assert "benchmarks.html#which-ridge" in pages["losses.html"].links
    assert "experiments.html" in pages["adding.html"].links
    assert "results.html" in pages["benchmarks.html"].links
    assert "examples/demo.html" in pages["examples.html"].links
    for name, page in pages.items():
        assert [link for link in page.links if ".md" in link] == [], name


@pytest.mark.browser
def test_no_page_is_wider_than_a_phone(site: Path, pages: dict[str, Page]) -> None:
    from playwright.sync_api import sync_playwright

    asked: list[str] = []
    wide = []
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        view = browser.new_page(viewport={"width": 390, "height": 800})
        view.on("request", lambda request: asked.append(request.url))
        for name in pages:
            view.goto((site / name).as_uri())
            if view.evaluate("document.documentElement.scrollWidth") > 390:
                wide.append(name)
        view.goto((site / "search.html").as_uri() + "?q=certify")
        view.wait_for_selector("#search-results li a")
        browser.close()
    assert wide == []
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []


@pytest.mark.browser
# Colours do not go by the width, nor what scrolls by the colours.
@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 375)])
def test_nothing_stands_in_the_way_of_anybody(site: Path, scheme: str, width: int) -> None:
    from axe_playwright_python.sync_playwright import Axe
    from playwright.sync_api import sync_playwright

    found = []
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        view = browser.new_page(
            viewport={"width": width, "height": 800},
            color_scheme="dark" if scheme == "dark" else "light",
        )
        for name in LOOKED_AT:
            view.goto((site / name).as_uri())
            # Boxes that scroll become stops for keys once they are laid out.
            view.evaluate("() => new Promise((r) => requestAnimationFrame(() => setTimeout(r)))")
            answer = Axe().run(view).response
            assert len(answer["passes"]) > 20
            found += [(name, one["id"], one["nodes"][0]["html"]) for one in answer["violations"]]
        browser.close()
    assert found == []


@pytest.mark.browser
def test_a_picture_keeps_its_size_on_a_phone_and_follows_the_theme(site: Path) -> None:
    from playwright.sync_api import sync_playwright

    seen = "all => all.filter(i => i.checkVisibility()).map(i => [i.src.split('/').pop(), i.width])"
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        view = browser.new_page(viewport={"width": 375, "height": 800}, color_scheme="dark")
        view.goto((site / "report.html").as_uri())
        assert view.eval_on_selector_all(".picture img", seen) == [["report-dark.png", 720]]
        view.evaluate("document.body.dataset.theme = 'light'")
        assert view.eval_on_selector_all(".picture img", seen) == [["report.png", 720]]
        view.wait_for_selector('.picture[tabindex="0"]')
        browser.close()


def test_drawings_have_colours_for_the_dark() -> None:
    drawings = list((ROOT / "docs" / "img").glob("*.svg"))
    assert drawings
    for drawing in drawings:
        text = drawing.read_text(encoding="utf-8")
        light, _, dark = text.partition("@media (prefers-color-scheme: dark)")
        names = set(re.findall(r"(--\w+): #", light))
        assert names >= {"--paper", "--ink", "--c0"}
        assert names == set(re.findall(r"(--\w+): #", dark)), drawing.name
        # A colour that is named anywhere else is the same in both.
        assert re.findall(r"(?:fill|stroke|color)[:=]\s*\"?#", text) == [], drawing.name


def test_numbers_are_not_broken(pages: dict[str, Page]) -> None:
    cell = r'<td class="([^"]*)"><p>(?:<strong>)?([^<]+)'
    cells = [found for name in ("measured", "results")
             for found in re.findall(cell, pages[f"{name}.html"].text)]  # fmt: skip
    numbers = [(kind, text) for kind, text in cells if " ± " in text]
    assert len(numbers) > 100
    assert [text for kind, text in numbers if "whole" not in kind] == []


@pytest.mark.parametrize(
    "module", ["api", "commands", "docstring", "links", "looks", "measured", "methods", "rst"]
)
def test_the_examples_of_the_tools_run(module: str) -> None:
    results = doctest.testmod(importlib.import_module(f"tools.site.{module}"))
    assert results.failed == 0
