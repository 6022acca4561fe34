"""Inputs given by the addresses of their memory, integers that nobody checks, as LLVM IR."""

from __future__ import annotations

from linkwork.kernels.fields import fields, stored
from linkwork.kernels.python_layout import ADDRESSES, STRICT

DECLARED = "declare ptr @PyLong_AsVoidPtr(ptr)"
"""What the code calls."""


def asks_for_addresses() -> str:
    """The code that finds out whether inputs are addresses."""
    return f"""{fields(("%strict", "%words", STRICT, "i64"))}
  %named = and i64 %strict, {ADDRESSES}
  %raw = icmp ne i64 %named, 0"""


def address(k: int) -> list[str]:
    """The code that takes input ``k`` as an address if it is one, and continues with the object otherwise."""
    return [
        f"  br i1 %raw, label %address{k}, label %object{k}",
        f"address{k}:",
        f"  %memory{k} = call ptr @PyLong_AsVoidPtr(ptr %o{k})",
        stored(f"%memory{k}", "%table", 16 * k, f"m{k}"),
        stored("0", "%table", 16 * k + 8, f"ms{k}", "i64"),
        f"  br label %port{k + 1}",
        f"object{k}:",
    ]
