"""What readers of object files have in common."""

from __future__ import annotations

from typing import NamedTuple


class Symbols(NamedTuple):
    """The symbols that object code defines, and those that it needs."""

    defined: set[str]
    missing: set[str]


def need(condition: bool) -> None:
    """Raise ValueError unless this holds."""
    if not condition:
        raise ValueError("this is not object code")
