"""The report as one HTML page that needs nothing else: style, script and plots are in it."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from importlib import resources

from linkwork_bench.report.charts import draw
from linkwork_bench.report.page import Cell, Head, Page, Row, Section, Sheet
from linkwork_bench.report.theme import BY_SYSTEM, DARK_THEME, LIGHT_THEME


def html(page: Page) -> str:
    """The page as text."""
    contents = "".join(
        f'<a class="l{s.level}" href="#{escape(s.id)}">{escape(s.short or s.title)}</a>' for s in page.sections
    )
    facts = "".join(f"<p>{escape(text)}</p>" for text in page.facts)
    cards = "".join(f"<div><b>{escape(a)}</b><span>{escape(b)}</span></div>" for a, b in page.highlights)
    body = "".join(_section(s) for s in page.sections)
    themes = f"{BY_SYSTEM}:root[data-theme=light]{{{LIGHT_THEME}}}:root[data-theme=dark]{{{DARK_THEME}}}"
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(page.title)}</title><link rel="icon" href="data:,"><style>{themes}{_file("page.css")}</style></head>
<body><header><h1>{escape(page.title)}</h1>{facts}</header>
<div class="cards">{cards}</div>
<nav class="bar">{_filter("robot", page.robots)}{_filter("method", page.methods)}
<input id="search" type="search" placeholder="find in tables" aria-label="find in tables">
<button id="reset" type="button">show all</button><button id="theme" type="button">dark / light</button></nav>
<div class="columns"><nav class="contents">{contents}</nav><main>{body}</main></div>
<script>{_file("page.js")}</script></body></html>
"""


def _section(s: Section) -> str:
    text = "".join(f"<p>{escape(t)}</p>" for t in s.text)
    plots = "".join(f"<figure>{draw(p, title=p.title != s.title)}</figure>" for p in s.plots)
    sheets = "".join(_sheet(t) for t in s.sheets)
    notes = ""
    if s.notes:
        items = "".join(f"<li>{escape(n)}</li>" for n in s.notes)
        notes = f"<details class=notes><summary>{len(s.notes)} not measured</summary><ul>{items}</ul></details>"
    head = f"<h{s.level}>{escape(s.title)}</h{s.level}>"
    return f'<section id="{escape(s.id)}">{head}{text}{plots}{sheets}{notes}</section>'


def _sheet(sheet: Sheet) -> str:
    caption = f"<caption>{escape(sheet.title)}</caption>" if sheet.title else ""
    heads = "".join(_head(h) for h in sheet.heads)
    rows = "".join(_row(r, sheet.heads) for r in sheet.rows)
    return f"<div class=scroll><table>{caption}<thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>"


def _head(h: Head) -> str:
    of = f' data-method="{escape(h.method)}"' if h.method else ""
    return f'<th scope="col"{of}{" class=n" if h.number else ""}><button type="button">{escape(h.text)}</button></th>'


def _row(r: Row, heads: Sequence[Head]) -> str:
    of = f' data-robot="{escape(r.robot)}"' if r.robot else ""
    return f"<tr{of}>{''.join(_cell(c, h) for c, h in zip(r.cells, heads, strict=True))}</tr>"


def _cell(c: Cell, h: Head) -> str:
    kinds = " ".join(x for x in (c.kind, "n" if h.number else "") if x)
    of = f' data-method="{escape(h.method)}"' if h.method else ""
    sort = "" if c.sort is None else f' data-sort="{c.sort!r}"'
    hint = f' title="{escape(c.hint)}"' if c.hint else ""
    look = f' class="{kinds}"' if kinds else ""
    return f"<td{look}{of}{sort}{hint}>{escape(c.text)}</td>"


def _filter(kind: str, names: Sequence[str]) -> str:
    if len(names) < 2:
        return ""
    boxes = "".join(f'<label><input type="checkbox" checked value="{escape(n)}">{escape(n)}</label>' for n in names)
    return (
        f'<details class="filter" data-kind="{kind}"><summary>{kind}s <b></b></summary><div>'
        f'<p><button type="button" data-all="1">all</button><button type="button" data-all="">none</button></p>'
        f"{boxes}</div></details>"
    )


def _file(name: str) -> str:
    return resources.files("linkwork_bench.report").joinpath(name).read_text(encoding="utf-8")
