"""Writes the table of methods in docs/choosing-an-algorithm.md from the registry.

`--check` only compares.
"""

from __future__ import annotations

import sys
from pathlib import Path

from linkwork.algorithms import registry

PAGE = Path(__file__).parents[1] / "docs" / "choosing-an-algorithm.md"
BEGIN, END = "<!-- methods: begin -->", "<!-- methods: end -->"


def table() -> str:
    rows = [m.facts() for m in registry.METHODS]
    lines = [f"| {' | '.join(rows[0])} |", "|---" * len(rows[0]) + "|"]
    for row in rows:
        row["method"] = f"`{row['method']}`"
        lines.append(f"| {' | '.join(row.values())} |")
    return "\n".join(lines)


def page() -> str:
    text = PAGE.read_text()
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}\n{table()}\n{END}{tail}"


if __name__ == "__main__":
    new = page()
    if "--check" in sys.argv:
        sys.exit(0 if new == PAGE.read_text() else f"{PAGE.name} is not up to date: run python {Path(__file__).name}")
    PAGE.write_text(new)
