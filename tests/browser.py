"""A page in a real browser: headless Chromium, drawing WebGL in software. Without one, tests that need it skip.

`conftest.py` gives the fixture `page` to every test. What a page must not do fails the test that opened it:
an uncaught error, or an error on its console.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
ARGUMENTS = (
    "--no-sandbox",
    "--enable-unsafe-swiftshader",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--mute-audio",
)
SIZE = {"width": 1000, "height": 700}


def executable() -> str:
    """The browser's path: LINKWORK_BROWSER, or the first of NAMES that is installed; skips where there is none."""
    named = os.environ.get("LINKWORK_BROWSER")
    found = named or next((path for path in map(shutil.which, NAMES) if path), None)
    if found is None:
        pytest.skip("no Chromium: install one (Debian: apt-get install chromium) or set LINKWORK_BROWSER to its path")
    return found


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A browser for the tests of one file."""
    api = pytest.importorskip("playwright.sync_api", reason="no playwright: pip install -e '.[test]'")
    path = executable()
    with api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=path, headless=True, args=list(ARGUMENTS))
        yield opened
        opened.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """An empty page; `page.context.set_offline(True)` cuts it off from any network."""
    context = browser.new_context(viewport=SIZE)  # type: ignore[arg-type]
    opened = context.new_page()
    opened.set_default_timeout(20_000)
    problems: list[str] = []
    opened.on("pageerror", lambda error: problems.append(f"uncaught: {error}"))
    opened.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    yield opened
    context.close()
    assert not problems, "the page complained: " + "; ".join(problems)
