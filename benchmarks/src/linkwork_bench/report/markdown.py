"""The report as Markdown: tables and text, for READMEs and issues."""

from __future__ import annotations

from linkwork_bench.report.page import Page, Section, Sheet


def markdown(page: Page) -> str:
    """The page as text."""
    parts = [f"# {_plain(page.title)}", "  \n".join(map(_plain, page.facts))]
    if page.highlights:
        parts.append("\n".join(f"- **{_plain(figure)}** {_plain(text)}" for figure, text in page.highlights))
    parts += [_section(s) for s in page.sections]
    return "\n\n".join(parts) + "\n"


def table(sheet: Sheet) -> str:
    """One table."""
    heads = [_plain(h.text) for h in sheet.heads]
    rule = ["---:" if h.number else "---" for h in sheet.heads]
    rows = [[_plain(c.text) for c in row.cells] for row in sheet.rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in [heads, rule, *rows])


def _section(s: Section) -> str:
    parts = [f"{'#' * s.level} {_plain(s.title)}", *map(_plain, s.text)]
    for sheet in s.sheets:
        parts += [*([f"*{_plain(sheet.title)}*"] if sheet.title else []), table(sheet)]
    if s.notes:
        parts.append("Not measured:\n" + "\n".join(f"- {_plain(n)}" for n in s.notes))
    return "\n\n".join(parts)


def _plain(text: str) -> str:
    """Text that Markdown leaves as it is."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;").replace("](", "]\\(")
