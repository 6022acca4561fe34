"""Names that would run or be styled if a page took them for more than text, and the check that none of that happens."""

from __future__ import annotations

import time

RUN = "document.title='run'"
NASTY = {
    "iframe": f'<iframe srcdoc="<script>parent.{RUN}</script>"></iframe>',
    "image": f"<img src=x onerror={RUN}>",
    "expression": f"{{{RUN}}}",
    "link": f"[x](javascript:{RUN}) ![x](x) <a href=javascript:{RUN}>x</a>",
    "script": f"</script><script>{RUN}</script>",
    "code": f"```\n{RUN}\n``` **x** `x` \"'&amp;&lt;",
}


def check(page: object, text: str) -> None:
    """The page shows the name and runs nothing of it."""
    shown = " ".join(text.split())
    page.wait_for_function("text => document.body.innerText.replace(/\\s+/g, ' ').includes(text)", arg=shown)  # type: ignore[attr-defined]
    time.sleep(0.3)
    assert page.title() != "run"  # type: ignore[attr-defined]
    for tag in ("iframe", "img[src=x]", 'a[href^="javascript"]'):
        assert page.locator(tag).count() == 0  # type: ignore[attr-defined]
