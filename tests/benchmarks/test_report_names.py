"""Names of robots and methods are text in reports: nothing in them is run or styled."""

from __future__ import annotations

from pathlib import Path

import pytest

from linkwork_bench.report.html import html
from linkwork_bench.report.markdown import markdown
from linkwork_bench.report.page import Cell, Dot, Dots, Head, Page, Row, Section, Sheet
from nasty_names import NASTY, check


def report(text: str) -> Page:
    rows = [Row((Cell(text, hint=text), Cell("1")), text), Row((Cell("other"), Cell("2")), "other")]
    sheet = Sheet([Head(text, text, False), Head("x", "aba")], rows, text)
    dots = Dots(text, text, [(text, text, [Dot(text, 1.0), Dot("aba", 2.0)])])
    section = Section(text, text, [text], plots=[dots], sheets=[sheet], notes=[text])
    return Page(text, [text], [section], [("1", text)])


@pytest.mark.parametrize("kind", NASTY)
def test_the_report(page, kind: str, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    file = tmp_path / "report.html"
    file.write_text(html(report(NASTY[kind])), encoding="utf-8")
    page.goto(file.as_uri())
    check(page, NASTY[kind])
    told = markdown(report(NASTY[kind]))
    assert "<" not in told.replace("&lt;", "")
    assert "](" not in told.replace("\\(", "")
