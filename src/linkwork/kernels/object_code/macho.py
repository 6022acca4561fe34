"""The symbols of object code in Mach-O (64 bits; macOS), if it is intact.

A header is followed by load commands: one segment with all sections, each with relocations of its own, and one symbol
table with its names.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from linkwork.kernels.object_code.symbols import Symbols, need

MAGIC = b"\xcf\xfa\xed\xfe"
HEADER, COMMAND, SEGMENT, SECTION = "<4xIIIIIII", "<II", "<16xQQQQiiII", "<16x16xQQIIIIIIII"
TABLE, SYMBOL, RELOCATION = "<IIII", "<IBBHQ", "<II"
OBJECT, LC_SEGMENT_64, LC_SYMTAB = 1, 0x19, 0x2

RELOCATIONS = {0x01000007: range(10), 0x0100000C: range(12)}
"""Relocation types by machine: x86-64, ARM."""

KIND, EXTERNAL, UNDEFINED, IN_SECTION, ABSOLUTE = 0x0E, 0x01, 0x0, 0xE, 0x2
"""In the type of a symbol: the bits that say where it is, that others see it, and the places."""

ZEROS = (0x1, 0xC)
"""Types of section without content in the file."""

LARGEST_ALIGNMENT = 12
"""As a power of two."""

ADDEND = {0x0100000C: 10}
"""Relocations whose symbol is a number: ARM64_RELOC_ADDEND."""


def symbols(data: bytes) -> Symbols:
    """The symbols of object code; ValueError or struct.error if it is damaged."""
    need(data.startswith(MAGIC))
    machine, _, kind, count, size, _, _ = struct.unpack_from(HEADER, data)
    at, end = struct.calcsize(HEADER), struct.calcsize(HEADER) + size
    need(machine in RELOCATIONS and kind == OBJECT and end <= len(data))
    sections: list[tuple[int, ...]] = []
    table = None
    for _ in range(count):
        command, length = struct.unpack_from(COMMAND, data, at)
        need(length >= struct.calcsize(COMMAND) and length % 8 == 0 and at + length <= end)
        if command == LC_SEGMENT_64:
            need(not sections)
            sections = _sections(data, at + 8, length - 8)
        elif command == LC_SYMTAB:
            need(table is None)
            table = struct.unpack_from(TABLE, data, at + 8)
        at += length
    need(at == end and bool(sections) and table is not None)
    assert table is not None
    found = _symbols(data, table, sections)
    for _, size, _, _, offset, relocations, *_ in sections:
        for place, what in _entries(data, offset, relocations, RELOCATION):
            index, width, external, how = what & 0xFFFFFF, 1 << (what >> 25 & 3), what >> 27 & 1, what >> 28
            need(how in RELOCATIONS[machine] and place + width <= size)
            known = table[1] if external else len(sections) + 1
            need(how == ADDEND.get(machine) or index < known)
    return found


def _sections(data: bytes, at: int, length: int) -> list[tuple[int, ...]]:
    """Address, size, offset, alignment, offset and number of relocations, flags and the rest of each."""
    *_, count, _ = struct.unpack_from(SEGMENT, data, at)
    first, each = at + struct.calcsize(SEGMENT), struct.calcsize(SECTION)
    need(struct.calcsize(SEGMENT) + count * each <= length)
    found = [struct.unpack_from(SECTION, data, first + k * each) for k in range(count)]
    for _, size, offset, alignment, _, _, flags, *_ in found:
        need(alignment <= LARGEST_ALIGNMENT)
        need(flags & 0xFF in ZEROS or offset + size <= len(data))
        need(size < len(data) + (1 << 20))
    return found


def _symbols(data: bytes, table: tuple[int, ...], sections: list[tuple[int, ...]]) -> Symbols:
    offset, count, names, size = table
    need(size > 0 and names + size <= len(data) and data[names + size - 1] == 0)
    found = Symbols(set(), set())
    for name, kind, section, _, value in _entries(data, offset, count, SYMBOL):
        need(name < size and kind & KIND in (UNDEFINED, IN_SECTION, ABSOLUTE))
        text = data[names + name : data.index(b"\0", names + name)].decode()
        if kind & KIND == UNDEFINED:
            need(bool(text) and kind & EXTERNAL != 0 and value == 0)  # a function that another object has
            found.missing.add(text)
        else:
            if kind & KIND == IN_SECTION:
                need(0 < section <= len(sections))
                start, length = sections[section - 1][:2]
                need(start <= value <= start + length)
            found.defined.add(text)
    return found


def _entries(data: bytes, offset: int, count: int, form: str) -> Iterator[tuple[int, ...]]:
    need(offset + count * struct.calcsize(form) <= len(data))
    return struct.iter_unpack(form, data[offset : offset + count * struct.calcsize(form)])
