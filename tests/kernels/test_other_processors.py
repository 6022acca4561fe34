"""Exported C on other processors: compiled for 64-bit ARM and a Cortex-M7, run by emulators, compared with the kernel.

The Cortex-M7 has no operating system: its program is a table of vectors, a handler of the reset that switches the
floating-point unit on, and the emulator's semihosting for its output. Everything a program needs is in its file.
"""

from __future__ import annotations

import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linkwork as lw
from linkwork.functions.function import Function
from linkwork.kernels.export.c_size import estimated
from linkwork.kernels.export.c_source import REAL
from linkwork.robots.mechanisms import arm, four_bar, quadruped

STRICT = ("-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror", "-O2")
M7 = ("-mcpu=cortex-m7", "-mfpu=fpv5-d16", "-mfloat-abi=hard", "-mthumb")
CASES = ["arm", "loop", "feet"]
BOUND = {"float64": 1e-9, "float32": 2e-3}
"""Of the largest result: with fused products and without, and where an iteration ends, differ by the condition."""


def needs(*programs: str) -> pytest.MarkDecorator:
    missing = [name for name in programs if shutil.which(name) is None]
    return pytest.mark.skipif(bool(missing), reason=f"there is no {', '.join(missing)}")


on_arm = needs("aarch64-linux-gnu-gcc", "qemu-aarch64")
on_m7 = needs("arm-none-eabi-gcc", "qemu-system-arm")
for_m7 = needs("arm-none-eabi-gcc", "arm-none-eabi-nm", "arm-none-eabi-size")

SEMIHOSTING = r"""
#include <stdint.h>
extern char stack_top;
int main(void);
static int call(int what, const void *with)
{
    register int r0 __asm__("r0") = what;
    register const void *r1 __asm__("r1") = with;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}
static void say(const char *text) { call(0x04, text); }
void reset(void)
{
    *(volatile uint32_t *)0xE000ED88 |= 0xF << 20; /* the floating-point unit, for everyone */
    __asm__ volatile("dsb\n isb");
    main();
    call(0x18, (const void *)0x20026);
    for (;;) { }
}
static void fault(void)
{
    say("fault\n");
    call(0x18, (const void *)0x20023);
    for (;;) { }
}
__attribute__((section(".vectors"), used)) static const void *vectors[16] = {
    &stack_top, reset, fault, fault, fault, fault, fault
};
"""
HOSTED = r"""
#include <stdint.h>
#include <stdio.h>
static void say(const char *text) { fputs(text, stdout); }
"""
MAIN = r"""
#include "%(name)s.h"
%(arrays)s
static void show(const unsigned char *bytes, int size)
{
    char text[3] = {0};
    for (int i = 0; i < size; ++i) {
        text[0] = "0123456789abcdef"[bytes[i] >> 4];
        text[1] = "0123456789abcdef"[bytes[i] & 15];
        say(text);
    }
    say("\n");
}
int main(void)
{
    %(name)s(%(call)s);
    %(shows)s
    return 0;
}
"""
MEMORY = """
ENTRY(reset)
MEMORY { ram (rwx) : ORIGIN = 0, LENGTH = 4M }
SECTIONS {
  .text : { KEEP(*(.vectors)) *(.text*) *(.rodata*) *(.ARM.exidx*) } > ram
  .data : { *(.data*) } > ram
  .bss : { *(.bss*) *(COMMON) } > ram
  stack_top = ORIGIN(ram) + LENGTH(ram);
}
"""


@cache
def function(name: str, dtype: str) -> Function[Any]:
    if name == "arm":
        return lw.forward_dynamics(arm(4), method="aba", dtype=dtype)
    if name == "loop":
        return lw.forward_dynamics(four_bar(), method="lcaba", dtype=dtype)
    feet = [lw.point(foot) for foot in ("front_left_foot", "rear_right_foot")]
    return lw.forward_dynamics(quadruped().with_constraints(*feet), method="constrained_aba", dtype=dtype)


def inputs(f: Function[Any]) -> list[np.ndarray]:
    """One state, and the settings that calls in Python add."""
    q, v = lw.random_state(f.model, 0)
    tau = np.random.default_rng(2).normal(size=f.model.nv)
    return [np.ascontiguousarray(x, f.dtype) for x in (q, v, tau, *f._settings.values())]


def write(folder: Path, f: Function[Any], system: str) -> None:
    """The function, and a program that calls it and prints the bytes of its outputs."""
    f.export(folder, "f")
    kind = REAL[f.dtype].kind
    word = "uint64_t" if f.dtype == "float64" else "uint32_t"
    unsigned = np.uint64 if f.dtype == "float64" else np.uint32
    arrays, names = [], []
    for k, x in enumerate(inputs(f)):
        values = ", ".join(f"{int(w):#x}u{'ll' * (f.dtype == 'float64')}" for w in x.ravel().view(unsigned))
        arrays.append(f"static const union {{ {word} w[{x.size}]; {kind} x[{x.size}]; }} in{k} = {{ {{ {values} }} }};")
        names.append(f"in{k}.x")
    shows = []
    for k, port in enumerate(f.program.outputs):
        arrays.append(f"static {kind} out{k}[{max(port.size, 1)}];")
        names.append(f"out{k}")
        shows.append(f"show((const unsigned char *)out{k}, {port.size} * (int)sizeof out{k}[0]);")
    text = {"name": "f", "arrays": "\n".join(arrays), "call": ", ".join(names), "shows": "\n    ".join(shows)}
    (folder / "main.c").write_text(system + MAIN % text)


def compare(f: Function[Any], told: str) -> None:
    """What a program printed, with what the kernel computes."""
    given = inputs(f)
    right = f.kernel(*given[: len(f.kernel.given)])
    lines = told.splitlines()
    assert len(lines) == len(f.program.outputs), told
    for port, line, value in list(zip(f.program.outputs, lines, right, strict=False))[:2]:
        found = np.frombuffer(bytes.fromhex(line), f.dtype).reshape(port.shape)
        scale = np.abs(value).max(initial=1.0)
        np.testing.assert_allclose(found, value, rtol=0, atol=BOUND[f.dtype] * scale, err_msg=port.name)


def run(*command: str | Path) -> str:
    done = subprocess.run([str(x) for x in command], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr  # semihosting writes to either, by the version of QEMU


@on_arm
@pytest.mark.parametrize("dtype", BOUND)
@pytest.mark.parametrize("name", CASES)
def test_on_64_bit_arm(tmp_path: Path, name: str, dtype: str) -> None:
    f = function(name, dtype)
    write(tmp_path, f, HOSTED)
    sources = tmp_path / "f.c", tmp_path / "main.c"
    run("aarch64-linux-gnu-gcc", *STRICT, "-static", "-o", tmp_path / "it", *sources, "-lm")
    compare(f, run("qemu-aarch64", tmp_path / "it"))


@on_m7
@pytest.mark.parametrize("dtype", BOUND)
@pytest.mark.parametrize("name", CASES)
def test_on_a_cortex_m7(tmp_path: Path, name: str, dtype: str) -> None:
    f = function(name, dtype)
    write(tmp_path, f, SEMIHOSTING)
    (tmp_path / "memory.ld").write_text(MEMORY)
    run("arm-none-eabi-gcc", *STRICT, *M7, "-c", "-o", tmp_path / "f.o", tmp_path / "f.c")
    loose = [flag for flag in STRICT if flag not in ("-std=c99", "-pedantic")]  # a register has a name there
    run("arm-none-eabi-gcc", *loose, *M7, "-c", "-o", tmp_path / "main.o", tmp_path / "main.c")
    parts = tmp_path / "main.o", tmp_path / "f.o"
    linking = "-nostartfiles", "-T", tmp_path / "memory.ld", "-o", tmp_path / "it.elf"
    run("arm-none-eabi-gcc", *M7, *linking, *parts, "-lm", "--specs=nosys.specs")
    board = "-M", "mps2-an500", "-nographic", "-monitor", "none", "-serial", "none"
    semihosting = "-semihosting-config", "enable=on,target=native"
    compare(f, run("qemu-system-arm", *board, *semihosting, "-kernel", tmp_path / "it.elf"))


@for_m7
@pytest.mark.parametrize("dtype", BOUND)
@pytest.mark.parametrize("name", CASES)
def test_stack_code_and_state_are_what_the_header_says(tmp_path: Path, name: str, dtype: str) -> None:
    f = function(name, dtype)
    f.export(tmp_path, "f")
    run("arm-none-eabi-gcc", *STRICT, *M7, "-fstack-usage", "-c", "-o", tmp_path / "f.o", tmp_path / "f.c")
    frames = [line.split("\t") for line in (tmp_path / "f.su").read_text().splitlines()]
    assert all(how == "static" for *_, how in frames), "known before it runs"
    stack = sum(int(size) for _, size, _ in frames)  # no deeper: functions call downwards only
    code, data, zeros = map(int, run("arm-none-eabi-size", tmp_path / "f.o").splitlines()[1].split()[:3])
    assert (data, zeros) == (0, 0), "no static state"
    said = estimated(f.program, dtype)
    assert stack <= said.stack <= 4 * stack
    assert code / 1.6 <= said.code <= 1.6 * code
    needed = {line.split()[-1] for line in run("arm-none-eabi-nm", "-u", tmp_path / "f.o").splitlines()}
    ours = {"sin", "cos", "sqrt"} if dtype == "float64" else {"sinf", "cosf", "sqrtf"}
    assert needed <= ours | {"memcpy", "memset"}, "no allocation; nothing in double precision where all is single"
    header = (tmp_path / "f.h").read_text()
    assert "No allocation, no static state. Stack: " in header
    assert f"const {REAL[dtype].kind} *q" in header
