"""The browser of the tests itself: it draws with WebGL, and where there is none the tests say what to install."""

from __future__ import annotations

import pytest

import browser as shared


def test_the_browser_draws_with_webgl(page):
    page.set_content(
        "<canvas></canvas><script>document.title = "
        "document.querySelector('canvas').getContext('webgl2') ? 'drawn' : 'none'</script>"
    )
    assert page.title() == "drawn"


def test_a_missing_browser_is_a_skip_that_says_what_to_do(environment):
    environment.pop("LINKWORK_BROWSER", None)
    environment["PATH"] = ""
    with pytest.raises(pytest.skip.Exception, match="apt-get install chromium"):
        shared.executable()
