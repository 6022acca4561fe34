"""A shared library whose functions are addresses in this process: for tools that only load libraries.

Each function jumps to its address. On Linux the file is written here, byte by byte: an ELF header, the tables by which
the loader finds names (gABI, chapter 5), and the jumps. No linker is needed, and it takes no time. Elsewhere a C
compiler makes it. It serves this process alone, and is deleted once it is loaded.
"""

from __future__ import annotations

import shutil
import struct
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from linkwork.errors import KernelError
from linkwork.kernels.codegen.target import Target
from linkwork.system.code import LOADS_ELF, architecture

PAGE = 1 << 16
"""A multiple of the page size of every processor."""

MACHINES = {"x86_64": 62, "aarch64": 183}
"""ELF's numbers of processors."""

SHARED = 3
"""ELF's number of shared libraries."""

LOAD, DYNAMIC, STACK = 1, 2, 0x6474E551
"""Kinds of segments."""

HASH, STRTAB, SYMTAB, STRSZ, SYMENT, SONAME = 4, 5, 6, 10, 11, 14
"""Kinds of entries of the dynamic section."""


def write(path: Path, functions: Mapping[str, int]) -> None:
    """Write a library of these functions, names and addresses."""
    if LOADS_ELF:
        path.write_bytes(elf(functions, architecture(Target.host().triple)))
        return
    compiler = next((found for name in ("cc", "clang", "gcc") if (found := shutil.which(name))), None)
    if compiler is None:
        raise KernelError(
            "a library for CasADi needs a C compiler on this system (cc, clang or gcc), and none was found"
        )
    source = path.with_suffix(".c")
    source.write_text(_c_jumps(functions), encoding="utf-8")
    done = subprocess.run([compiler, "-shared", "-O1", "-o", str(path), str(source)], capture_output=True, text=True)
    if done.returncode:
        raise KernelError(f"{compiler} could not make a library for CasADi: {done.stderr[-500:]}")


def elf(functions: Mapping[str, int], processor: str) -> bytes:
    """An ELF shared object: one page that is read and executed, and behind it one that the loader writes."""
    names = list(functions)
    strings = b"\0" + b"".join(name.encode() + b"\0" for name in (*names, "linkwork"))
    offsets = [0]
    for name in (*names, "linkwork"):
        offsets.append(offsets[-1] + len(name) + 1)
    starts = [offset + 1 for offset in offsets]
    buckets = _hash_table(names)
    header, segments = 64, 4 * 56
    at_symbols = header + segments
    at_strings = at_symbols + 24 * (len(names) + 1)
    at_hash = -(-(at_strings + len(strings)) // 8) * 8
    at_code = -(-(at_hash + len(buckets)) // 16) * 16
    code = b"".join(_jump(address, processor) for address in functions.values())
    size = len(_jump(0, processor))
    end = at_code + len(code)
    at_dynamic = -(-end // PAGE) * PAGE

    symbols = b"\0" * 24
    for k, start in enumerate(starts[: len(names)]):
        symbols += struct.pack("<IBBHQQ", start, 0x12, 0, 1, at_code + k * size, size)  # global function
    found = {HASH: at_hash, SYMTAB: at_symbols, STRTAB: at_strings, STRSZ: len(strings), SYMENT: 24, SONAME: starts[-2]}
    dynamic = b"".join(struct.pack("<QQ", tag, value) for tag, value in [*found.items(), (0, 0)])

    def segment(kind: int, flags: int, at: int, length: int, alignment: int) -> bytes:
        return struct.pack("<IIQQQQQQ", kind, flags, at, at, at, length, length, alignment)

    out = struct.pack(
        "<4sBBBB8sHHIQQQIHHHHHH", b"\x7fELF", 2, 1, 1, 0, b"", SHARED, MACHINES[processor],
        1, 0, header, 0, 0, 64, 56, 4, 64, 0, 0,
    )  # fmt: skip
    out += segment(LOAD, 5, 0, end, PAGE)
    out += segment(LOAD, 6, at_dynamic, len(dynamic), PAGE)
    out += segment(DYNAMIC, 6, at_dynamic, len(dynamic), 8)
    out += segment(STACK, 6, 0, 0, 16)
    for at, part in ((at_symbols, symbols), (at_strings, strings), (at_hash, buckets), (at_code, code)):
        out = out.ljust(at, b"\0") + part
    return out.ljust(at_dynamic, b"\0") + dynamic


def _jump(address: int, processor: str) -> bytes:
    """Jump to an address, by a register that calls do not keep."""
    if processor == "x86_64":
        return b"\x48\xb8" + struct.pack("<Q", address) + b"\xff\xe0" + b"\x90" * 4  # mov rax; jmp rax
    return struct.pack("<IIQ", 0x58000050, 0xD61F0200, address)  # ldr x16, 8 bytes on; br x16


def _hash_table(names: Sequence[str]) -> bytes:
    """The table by which the loader finds symbols: chains of those with equal hashes, from number 1 on."""
    count = max(1, len(names))
    buckets, chains = [0] * count, [0] * (len(names) + 1)
    for number, name in enumerate(names, start=1):
        h = 0
        for byte in name.encode():
            h = (h << 4) + byte
            high = h & 0xF0000000
            h = (h ^ (high >> 24)) & ~high & 0xFFFFFFFF
        chains[number], buckets[h % count] = buckets[h % count], number
    words = [count, len(chains), *buckets, *chains]
    return struct.pack(f"<{len(words)}I", *words)


def _c_jumps(functions: Mapping[str, int]) -> str:
    """The same in C: machine code is the same whatever the arguments are, as these are at most five words."""
    word = "unsigned long long"
    parts = [f"{word} a, {word} b, {word} c, {word} d, {word} e", "a, b, c, d, e"]
    lines = ["#ifdef _WIN32\n#define OPEN __declspec(dllexport)\n#else\n#define OPEN\n#endif"]
    for name, address in functions.items():
        kind = "double" if name.endswith("_default_in") else word
        lines.append(f"OPEN {kind} {name}({parts[0]}) {{ return (({kind} (*)({parts[0]})){address}ULL)({parts[1]}); }}")
    return "\n".join(lines)
