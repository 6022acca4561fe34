"""LLVM IR that reads and writes fields of structures."""

from __future__ import annotations

from itertools import count

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
