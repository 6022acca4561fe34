"""Every page of docs/tutorials runs as it is printed: its Python blocks in order, with the output that it shows."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
BLOCK = re.compile(r"^```(python|text)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_page(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A `text` block is what the `python` block before it prints."""
    monkeypatch.chdir(tmp_path)
    text, names, printed = page.read_text(), {}, ""
    for block in BLOCK.finditer(text):
        kind, code = block.groups()
        if kind == "text":
            assert printed == code, page.name
            continue
        line = text.count("\n", 0, block.start(2))
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(compile("\n" * line + code, str(page), "exec"), names)
        printed = out.getvalue()


def test_every_page_is_listed() -> None:
    """In the navigation of the site, and on the first page of the tutorials."""
    navigation, first = (ROOT / "mkdocs.yml").read_text(), (ROOT / "docs" / "tutorials" / "index.md").read_text()
    for page in PAGES:
        assert f"tutorials/{page.name}" in navigation
        assert page.name == "index.md" or f"]({page.name})" in first
