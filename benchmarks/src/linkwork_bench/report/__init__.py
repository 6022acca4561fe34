"""Results as a report: one self-contained HTML file, or Markdown."""

from __future__ import annotations

from linkwork_bench.report.build import page_of
from linkwork_bench.report.html import html
from linkwork_bench.report.markdown import markdown

__all__ = ["html", "markdown", "page_of"]
