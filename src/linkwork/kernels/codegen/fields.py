"""Words of structures in memory, as LLVM IR: loaded, and stored, at an offset in bytes."""

from __future__ import annotations

from itertools import count

CACHE_LINE = 64
"""Bytes that memory moves by."""


def field_of(name: str, base: str, offset: int, kind: str = "ptr") -> list[str]:
    """The lines that load ``name`` from behind ``base``."""
    place = f"%at_{name[1:]}"
    return [
        f"  {place} = getelementptr i8, ptr {base}, i64 {offset}",
        f"  {name} = load {kind}, ptr {place}, align {4 if kind == 'i32' else 8}",
    ]


def fields(*fields: tuple[str, str, int, str]) -> str:
    """The code that loads several."""
    return "\n".join(line for field in fields for line in field_of(*field))


def stored(value: str, base: str, offset: int | str, name: str, kind: str = "ptr") -> str:
    """The code that stores ``value`` behind ``base``; ``name`` is for its place."""
    return f"""  %to_{name} = getelementptr i8, ptr {base}, i64 {offset}
  store {kind} {value}, ptr %to_{name}, align 8"""


_PLACES = count()


def load(name: str, base: str, offset: int, kind: str = "ptr") -> str:
    """`name = *(base + offset)`."""
    place = f"%l{next(_PLACES)}"
    return f"""  {place} = getelementptr i8, ptr {base}, i64 {offset}
  {name} = load {kind}, ptr {place}, align {4 if kind == "i32" else 8}"""


def store(base: str, offset: int, value: str, kind: str = "ptr") -> str:
    """`*(base + offset) = value`."""
    place = f"%s{next(_PLACES)}"
    return f"""  {place} = getelementptr i8, ptr {base}, i64 {offset}
  store {kind} {value}, ptr {place}, align {4 if kind == "i32" else 8}"""
