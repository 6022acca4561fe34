"""The symbols of object code in ELF (64 bits; Linux, and Windows in this library), if it is intact."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from linkwork.kernels.object_code.symbols import Symbols, need

MAGIC = b"\x7fELF\x02\x01\x01"
HEADER, SECTION, SYMBOL, RELOCATION = "<16xHHIQQQIHHHHHH", "<IIQQQQIIQQ", "<IBBHQQ", "<QQq"
RELOCATABLE, SYMTAB, STRTAB, RELA, NOBITS = 1, 2, 3, 4, 8
KINDS = (0, 1, SYMTAB, STRTAB, RELA, 7, NOBITS, 0x6FFF4C03, 0x70000001)
"""Kinds of section that LLVM writes: nothing, code and data, tables, notes, zeros, significant addresses, unwinding."""

LARGEST_ALIGNMENT = 4096

RELOCATIONS = {62: (1, 2, 4, 9, 10, 11, 24, 25, 26, 41, 42), 183: range(257, 313)}
"""Relocation types of LLVM's linker, by machine: x86-64, ARM."""

WIDE = (1, 24, 25, 257, 260)
"""Those of 64 bits."""

ABSOLUTE = 0xFFF1
"""The section index of undefined symbols."""


class _Section(NamedTuple):
    name: int
    kind: int
    offset: int
    size: int
    link: int
    info: int
    each: int


def symbols(data: bytes) -> Symbols:
    """The symbols of object code; ValueError or struct.error if it is damaged."""
    need(data.startswith(MAGIC))
    kind, machine, _, _, _, at, _, _, _, _, each, count, names = struct.unpack_from(HEADER, data)
    need(kind == RELOCATABLE and machine in RELOCATIONS and each == struct.calcsize(SECTION) and names < count)
    need(at + each * count <= len(data))
    sections = []
    for k in range(count):
        name, kind, _, _, offset, size, link, info, align, each = struct.unpack_from(SECTION, data, at + 64 * k)
        need(kind in KINDS and align & (align - 1) == 0 and align <= LARGEST_ALIGNMENT)
        need(kind in (0, NOBITS) or offset + size <= len(data))
        need(kind != NOBITS or size < len(data) + (1 << 20))
        need(link < count)
        sections.append(_Section(name, kind, offset, size, link, info, each))
    listed = _strings(data, sections[names])
    need(all(section.name < listed.size for section in sections))
    tables = [k for k, s in enumerate(sections) if s.kind == SYMTAB]
    need(len(tables) == 1)
    found, held = _symbols(data, sections, sections[tables[0]])
    for section in sections:
        if section.kind == RELA:
            need(section.link == tables[0] and section.info < count)
            target = sections[section.info]
            for place, info, _ in _entries(data, section, RELOCATION):
                how = info & 0xFFFFFFFF
                need(how in RELOCATIONS[machine] and 0 < info >> 32 < held)
                need(place + (8 if how in WIDE else 4) <= target.size)
    return found


def _symbols(data: bytes, sections: list[_Section], table: _Section) -> tuple[Symbols, int]:
    names = _strings(data, sections[table.link])
    found = Symbols(set(), set())
    for k, (name, info, _, section, value, _) in enumerate(_entries(data, table, SYMBOL)):
        need(name < names.size)
        if k and not section:
            need(name > 0 and info >> 4 in (1, 2) and info & 15 in (0, 2))  # a function that another object has
        need(section == ABSOLUTE or (section < len(sections) and (not section or value <= sections[section].size)))
        start = names.offset + name
        text = data[start : data.index(b"\0", start)].decode()
        if section:
            found.defined.add(text)
        elif text:
            found.missing.add(text)
    return found, table.size // table.each


def _strings(data: bytes, section: _Section) -> _Section:
    """The section, if it is a string table whose names are all terminated."""
    need(section.kind == STRTAB and section.size > 0 and data[section.offset + section.size - 1] == 0)
    return section


def _entries(data: bytes, section: _Section, form: str) -> Iterator[tuple[int, ...]]:
    """One after another: thousands of them in a list make Python look for garbage in all that is loaded."""
    need(section.each == struct.calcsize(form) and section.size % section.each == 0)
    return struct.iter_unpack(form, data[section.offset : section.offset + section.size])
