"""The site: built without a broken link, it asks no other server, and its search finds methods (extra `docs`)."""

from __future__ import annotations

import subprocess
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import linkwork as lw

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pytest.importorskip("mkdocs", reason="no mkdocs: pip install -e '.[docs]'")
    pytest.importorskip("mkdocstrings_handlers.python", reason="no mkdocstrings: pip install -e '.[docs]'")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def test_every_public_name_has_its_place(site):
    text = "".join(page.read_text() for page in (site / "reference").glob("*.html"))
    for name in set(lw.__all__) - {"__version__"}:
        assert f'id="linkwork.{name}"' in text, name


def test_the_front_page_has_a_mechanism_to_play_with(site):
    assert 'src="live.html"' in (site / "index.html").read_text()
    assert '"live":{' in (site / "live.html").read_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_in_a_browser(site, page, scheme):
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        home = f"http://127.0.0.1:{server.server_port}/"
        asked: list[str] = []
        page.on("request", lambda r: asked.append(r.url))
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": 1300, "height": 800})
        page.goto(home + "architecture.html")
        assert page.locator(".diagram svg").count() == 2
        page.fill("input.md-search__input", "lcaba")
        page.wait_for_selector(".md-search-result__item a")
        assert all(url.startswith((home, "data:", "blob:")) for url in asked)
        dark = page.evaluate("document.body.getAttribute('data-md-color-scheme')") == "slate"
        assert dark is (scheme == "dark")
        server.shutdown()
