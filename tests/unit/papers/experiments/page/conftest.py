"""A real browser, and pages opened in it without a network."""

from __future__ import annotations

import pytest

from tests.conftest import CHROMIUM


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
