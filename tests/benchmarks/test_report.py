"""Reports: what is in them, and that a real browser shows, sorts and filters it."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from linkwork.cli.main import app
from linkwork_bench import papers, report
from linkwork_bench.records import Record, Results
from linkwork_bench.report.charts import Chart, draw, standalone
from linkwork_bench.report.markdown import table
from linkwork_bench.report.page import Bars, Cell, Curve, Dot, Dots, Head, Lines, Row, Sheet, number

if TYPE_CHECKING:
    from playwright.sync_api import Page

FACTS = {
    "date": "2026-01-02T03:04:05+00:00",
    "cpu": "a processor",
    "cores": 2,
    "load": [0.1],
    "clock": "time",
    "versions": {"linkwork": "0.1.0"},
}
TABLE2 = next(e for e in papers.PAPERS["pv_lqr"].experiments if e.id == "pv_lqr/table2")


def results() -> Results:
    """Made-up figures: ours twice as fast as published, Pinocchio from Python, and a suite against peers."""
    out = Results(dict(FACTS))
    for k, case in enumerate(TABLE2.cases):
        for method in TABLE2.methods:
            us = TABLE2.published[case.name].get(method, 2.0) / 2
            out.add([TABLE2.record(case, method, "latency", samples=[us, us * 1.1, us * 0.9], operations=100 + k)])
        out.add([TABLE2.record(case, "aba", "latency", samples=[20.0 + k], role="python", library="pinocchio")])
    scaling = next(e for e in papers.PAPERS["lcaba_proxbbo"].experiments if e.id == "lcaba_proxbbo/fig6")
    out.add(
        [
            scaling.record(c, m, "operations", samples=[(c.x or 1) * (j + 1) * 100.0])
            for c in scaling.cases
            for j, m in enumerate(scaling.methods)
        ]
    )
    counts = next(e for e in papers.PAPERS["pv_lqr"].experiments if e.id == "pv_lqr/fig2d")
    out.add([counts.record(counts.cases[0], m, "operations", samples=[1000.0]) for m in counts.methods])
    out.add([counts.record(counts.cases[1], "", "operations", note="robot file missing: <no robot>")])
    for robot, theirs in (("ur5", 1.0), ("talos", 10.0)):
        common = ("constrained", "forward_dynamics", robot, "2x6D", 6, 12)
        out.add(
            [
                Record(*common, "ours", "linkwork", "pv", "latency", [theirs / 4]),
                Record(*common, "ours", "linkwork", "pv", "batch", [theirs / 16]),
                Record(*common, "best", "pinocchio", "lcaba", "latency", [theirs]),
            ]
        )
    return out


def test_the_page_has_ours_the_published_figure_and_the_ratio() -> None:
    page = report.page_of(results())
    section = next(s for s in page.sections if s.id == "pv_lqr-table2")
    heads = [h.text for h in section.sheets[0].heads]
    assert heads[:5] == ["robot", "case", "pv", "paper", "x"]
    assert "Pinocchio from Python" in heads
    assert "MuJoCo (paper)" in heads
    last = section.sheets[0].rows[-1]
    assert [c.text for c in last.cells[:5]] == ["Talos", "2F+2H", "5.07", "10.1", "2"]
    assert "another machine" in " ".join(section.text)
    assert ("4.0 x", "constrained: theirs / ours, one state (geometric mean)") in page.highlights
    assert {"pv", "lcaba"} <= set(page.methods)
    assert {"Talos", "ur5"} <= set(page.robots)


def test_relations_stand_in_the_report_with_their_reasons() -> None:
    page = report.page_of(results())
    sheet = next(s for s in page.sections if s.id == "lcaba_proxbbo").sheets[0]
    by_claim = {row.cells[1].text: row.cells for row in reversed(sheet.rows)}  # of equal claims, the first figure's
    linear = by_claim["lcaba grows linearly (power at most 1.1)"]
    assert linear[0].text == "holds"
    broken = by_claim["proxLTL grows faster than linearly (power at least 1.3)"]
    assert (broken[0].text, broken[4].text) == ("does not hold", "not explained yet")
    assert by_claim["LCABA is ahead of proxBBO"][0].text == "not measured"


def test_markdown_has_every_table_and_escapes() -> None:
    text = report.markdown(report.page_of(results()))
    assert "| Talos | 2F+2H | 5.07 | 10.1 | 2 |" in text
    assert "&lt;no robot>" in text
    sheet = Sheet([Head("a|b", number=False), Head("n")], [Row([Cell("x|y"), Cell("1", 1.0)])])
    assert table(sheet) == "| a\\|b | n |\n| --- | ---: |\n| x\\|y | 1 |"


@pytest.mark.parametrize(
    "plot",
    [
        Lines(
            "t",
            "links",
            "operations",
            [Curve("a<b", [(1, 10.0), (100, 1e6)], "s"), Curve("c", [(1, 3.0), (9, 5.0)], "r")],
        ),
        Lines("flat", "x", "y", [Curve("a", [(1.0, 5.0), (2.0, 5.0)])]),
        Dots(
            "t", "us", [("robot", "case", [Dot("a", 0.5, low=0.4, high=0.6), Dot("b", 20, hollow=True)]), ("r", "", [])]
        ),
        Dots("t", "%", [("robot", "", [Dot("a", -40.0), Dot("b", 80.0)])], log=False),
        Bars(
            "t",
            "operations",
            [("robot", "case", "a", [("one", 3.0), ("two", 4.0)]), ("robot", "case", "b", [("all", 9.0)])],
        ),
    ],
    ids=["lines", "flat", "dots", "per cent", "bars"],
)
def test_plots_are_sound_svg_and_stay_inside(plot: Lines | Dots | Bars) -> None:
    text = standalone(draw(plot))
    root = ElementTree.fromstring(text)
    _, _, width, height = map(float, root.attrib["viewBox"].split())
    marks = [*root.iter("{http://www.w3.org/2000/svg}use"), *root.iter("{http://www.w3.org/2000/svg}text")]
    assert marks
    for mark in marks:
        x, y = (float(mark.attrib.get(name, 0.0)) for name in "xy")
        assert 0 <= x <= width
        assert 0 <= y <= height
    assert "nan" not in text.replace("nance", "")
    assert "prefers-color-scheme:dark" in text
    assert set(re.findall(r"#[0-9a-f]{6}\b", text.partition("</style>")[2])) == set()
    assert text == standalone(draw(plot))


def test_figures_say_what_they_are_and_whose() -> None:
    text = draw(
        Dots(
            "t", "us", [("robot", "case", [Dot("a<b", 0.5), Dot("b", 20, True), Dot("c", 9, True, source="published")])]
        )
    )
    assert '<g data-method="a&lt;b" data-robot="robot"><title>robot case, a&lt;b: 0.5 us</title>' in text
    assert "robot case, b: 20 us" in text  # a peer's, measured: hollow, and not published
    assert "robot case, c (published): 9 us" in text
    assert text.count("(published)") == 2  # its tooltip and the legend


def test_the_same_method_has_one_colour_in_a_plot_and_others_have_others() -> None:
    chart = Chart("")
    assert chart.colour("a") == chart.colour("a")
    assert len({chart.colour(m) for m in "abc"}) == 3


def test_numbers_are_legible() -> None:
    assert [number(x) for x in (None, 0.0, 1.2345, 12345.0, 1.5e-7)] == ["", "0", "1.23", "12\u202f345", "1.5e-07"]


def test_show_writes_pages_of_earlier_runs(tmp_path: Path) -> None:
    earlier = Results(dict(FACTS), file=tmp_path / "r.jsonl")
    earlier.add(results().records)
    done = CliRunner().invoke(
        app,
        [
            "bench",
            "show",
            str(tmp_path / "r.jsonl"),
            "--html",
            str(tmp_path / "r.html"),
            "--markdown",
            str(tmp_path / "r.md"),
        ],
    )
    assert done.exit_code == 0, done.output
    assert "Talos" in (tmp_path / "r.html").read_text()
    assert "Talos" in (tmp_path / "r.md").read_text()
    printed = CliRunner().invoke(app, ["bench", "show", str(tmp_path / "r.jsonl")])
    assert "relations hold" in printed.output


def test_the_page_needs_no_network() -> None:
    text = report.html(report.page_of(results()))
    assert not re.findall(r"(?:src|href)=\"(?!#|data:)", text)
    assert not re.findall(r"@import|url\(|https?://(?!www\.w3\.org)", text)


def test_text_of_results_cannot_break_out_of_the_page() -> None:
    evil = Results({**FACTS, "cpu": "<script>alert(1)</script>"})
    evil.add([replace(results().records[0], robot="<img src=x>", function="pv_lqr/table2")])
    assert "<script>alert" not in report.html(report.page_of(evil))
    assert "<img" not in report.html(report.page_of(evil))


# in a browser


@pytest.fixture
def shown(page: Page, tmp_path: Path) -> Page:
    file = tmp_path / "report.html"
    file.write_text(report.html(report.page_of(results())), encoding="utf-8")
    page.context.set_offline(True)
    page.goto(file.as_uri())
    return page


def column(page: Page, section: str, index: int) -> list[str]:
    return page.locator(f"#{section} tbody tr td:nth-child({index})").all_inner_texts()


def test_a_browser_shows_tables_and_sorts_them(shown: Page, tmp_path: Path) -> None:
    assert shown.locator("table").count() >= 6
    assert shown.locator("figure svg").count() >= 3
    head = shown.locator("#pv_lqr-table2 th:nth-child(3) button")
    head.click()
    rising = [float(x) for x in column(shown, "pv_lqr-table2", 3)]
    assert rising == sorted(rising)
    head.click()
    falling = [float(x) for x in column(shown, "pv_lqr-table2", 3)]
    assert falling == sorted(rising, reverse=True) != rising
    assert shown.locator("#pv_lqr-table2 th:nth-child(3)").get_attribute("aria-sort") == "descending"
    shown.screenshot(path=tmp_path / "report.png", full_page=True)
    assert (tmp_path / "report.png").stat().st_size > 20_000


def test_filters_hide_robots_and_methods_in_tables_and_plots(shown: Page) -> None:
    rows = shown.locator("#pv_lqr-table2 tbody tr:visible")
    before = rows.count()
    shown.locator(".filter[data-kind=robot] summary").click()
    shown.locator(".filter[data-kind=robot] button[data-all='']").click()
    shown.locator(".filter[data-kind=robot] input[value=Talos]").check()
    assert 0 < rows.count() == sum("Talos" in x for x in column(shown, "pv_lqr-table2", 1) if x) < before
    assert shown.locator("#pv_lqr-table2 svg [data-robot=Iiwa]:visible").count() == 0
    shown.locator("#reset").click()
    assert rows.count() == before
    shown.locator(".filter[data-kind=method] summary").click()
    shown.locator(".filter[data-kind=method] input[value=pv_early]").uncheck()
    assert shown.locator("#pv_lqr-table2 th[data-method=pv_early]:visible").count() == 0
    assert shown.locator("#pv_lqr-table2 svg [data-method=pv_early]:visible").count() == 0
    shown.locator("#reset").click()
    shown.locator("#search").fill("talos")
    assert 0 < rows.count() < before


def test_charts_are_legible_on_a_phone(shown: Page) -> None:
    shown.set_viewport_size({"width": 390, "height": 800})
    heights = shown.evaluate(
        "[...document.querySelectorAll('figure svg text')].map(t => t.getBoundingClientRect().height)"
    )
    assert min(heights) > 9
    assert shown.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_dark_and_light(shown: Page) -> None:
    def back() -> str:
        return str(shown.evaluate("getComputedStyle(document.body).backgroundColor"))

    shown.emulate_media(color_scheme="light")
    light = back()
    shown.emulate_media(color_scheme="dark")
    assert back() != light
    shown.locator("#theme").click()
    assert back() == light
