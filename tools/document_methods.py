"""Writes the table of methods in docs/choosing-an-algorithm.md from the registry; `--check` only compares."""

from __future__ import annotations

import sys
from pathlib import Path

from linkwork.algorithms.registry import METHODS

PAGE = Path(__file__).parents[1] / "docs" / "choosing-an-algorithm.md"
BEGIN, END = "<!-- methods: begin -->", "<!-- methods: end -->"
ROWS = {
    "none": "no constraints",
    "link": "contacts",
    "any": "contacts, loops, couplings",
    "loops": "local loops, couplings",
    "clusters": "contacts, local loops, couplings",
}


def table() -> str:
    lines = [
        "| task | method | what it does | source | cost | constraints | redundant rows | run-time modes |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for m in METHODS:
        traits = [ROWS[m.rows], "yes" if m.redundant else "no", "yes" if m.modes else "no"]
        if m.rows == "none" or m.task == "delassus":
            traits[1:] = ["", ""]
        task = m.task.replace("_", " ")
        what = m.summary + (" (soft)" if m.soft and "soft" not in m.summary else "")
        lines.append(f"| {task} | `{m.name}` | {what} | {m.source} | {m.cost} | {' | '.join(traits)} |")
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
