"""Whether object code is valid for a linker: LLVM's aborts the process on what is not.

Everything that the linker reads is checked: sections, names, symbols and relocations. Instructions are not: files are
sealed (see :mod:`linkwork.kernels.cache.folder`), and this check is against accidental damage.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

from linkwork.kernels.object_code import elf, macho
from linkwork.kernels.object_code.symbols import Symbols


def symbols(data: bytes) -> Symbols:
    """The symbols of object code in any of these formats; ValueError or struct.error if it is damaged."""
    return macho.symbols(data) if data.startswith(macho.MAGIC) else elf.symbols(data)


def complete(objects: Iterable[bytes], known: Iterable[str], underscore: str = "") -> bool:
    """Whether all objects are intact, and what they do not define is in others or ``known``.

    In object code, known names follow an ``underscore`` where the system has one.
    """
    try:
        found = [symbols(data) for data in objects]
    except (ValueError, struct.error):
        return False
    there = {underscore + name for name in known}.union(*(s.defined for s in found))
    return bool(found) and all(s.missing <= there for s in found)
