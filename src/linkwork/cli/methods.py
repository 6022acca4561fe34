"""`linkwork methods`: every method there is."""

from __future__ import annotations

from linkwork.algorithms import registry
from linkwork.cli.arguments import JsonOption, print_json, table_of, terminal

SHOWN = ("method", "what it does", "source", "cost")
"""The columns that fit on a terminal; --json has all of them."""


def methods_command(as_json: JsonOption = False) -> None:
    """List every method: what it computes, its source, its cost, what it takes and does with constraints."""
    rows = [m.facts() for m in registry.METHODS]
    if as_json:
        print_json(rows)
        return
    for task in dict.fromkeys(row["task"] for row in rows):
        table = table_of(task, *SHOWN)
        for row in rows:
            if row["task"] == task:
                table.add_row(*(row[heading] for heading in SHOWN))
        terminal().print(table)
