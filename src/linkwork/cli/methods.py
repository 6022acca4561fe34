"""`linkwork methods`: every method there is."""

from __future__ import annotations

from rich.table import Table

from linkwork.algorithms import registry
from linkwork.cli.arguments import JsonOption, print_json, terminal


def methods_command(as_json: JsonOption = False) -> None:
    """List every method: what it computes, its source, its cost, what it takes and does with constraints."""
    rows = [m.facts() for m in registry.METHODS]
    if as_json:
        print_json(rows)
        return
    table = Table()
    for heading in rows[0]:
        table.add_column(heading)
    for row in rows:
        table.add_row(*row.values())
    terminal().print(table)
