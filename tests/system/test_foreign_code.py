"""Machine code for macOS and Windows: what it needs is known, damage is found, and it computes right where it can run.

Object code of macOS runs on any system that has its processor, because LLVM's linker takes Mach-O everywhere and C
functions are called alike; that of Windows is called by a function that changes from one convention to the other.
"""

from __future__ import annotations

import ctypes
import struct
from functools import cache

import llvmlite.binding as llvm
import numpy as np
import pytest

import linkwork as lw
from linkwork.kernels.calls.arrays import Rows, table_of
from linkwork.kernels.calls.executable import Workspace
from linkwork.kernels.codegen.native_calls import FRESH
from linkwork.kernels.codegen.python_layout import PYTHON
from linkwork.kernels.codegen.target import Target
from linkwork.kernels.object_code.compile import Linked, _symbols, emit
from linkwork.kernels.object_code.image import Image, Options, build
from linkwork.kernels.object_code.validity import complete, symbols
from linkwork.kernels.programs.operations import LIBM
from linkwork.robots.mechanisms import arm
from linkwork.system.code import MEMORY, ROUNDING, architecture, inserted, triple_for, underscore, unsupported

WINDOWS, MAC, APPLE_SILICON = "x86_64-pc-windows-msvc-elf", "x86_64-apple-darwin22.6.0", "arm64-apple-darwin23.1.0"
SYSTEMS = {
    "windows": Target(WINDOWS, "haswell", ""),
    "old windows": Target(WINDOWS, "x86-64", ""),
    "mac": Target(MAC, "haswell", ""),
    "apple silicon": Target(APPLE_SILICON, "apple-m1", ""),
    "linux on arm": Target.named("neon"),
    "old linux": Target.named("sse2"),
}
ELF, MACH_O = b"\x7fELF", b"\xcf\xfa\xed\xfe"
YIELDS = ("sched_yield",)  # of the system that the tests run on
HERE = architecture(Target.host().triple)


@cache
def model() -> lw.Model:
    return arm(3)


@cache
def image(system: str, lanes: int | None = None, dtype: str = "float64") -> Image:
    target, scalar = SYSTEMS[system], "double" if dtype == "float64" else "float"
    program = lw.forward_dynamics(model(), method="aba", dtype=dtype).program
    return build(program, Options(scalar, lanes or target.lanes(dtype), target))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("lanes", [None, 1])
@pytest.mark.parametrize("system", SYSTEMS)
def test_every_object_is_intact_and_needs_what_is_known(system: str, lanes: int | None, dtype: str) -> None:
    target, made = SYSTEMS[system], image(system, lanes, dtype)
    assert {data[:4] for data in made.objects} == {MACH_O if "apple" in target.triple else ELF}
    known = {*LIBM.values(), "sin", "cos", *PYTHON, "PyArray_Empty", *YIELDS}
    known |= {*inserted("win32" if "windows" in system else "linux")}
    assert complete(made.objects, known, underscore(target.triple))
    defined = set().union(*(symbols(data).defined for data in made.objects))
    assert {underscore(target.triple) + name for name in ("run", "run_bound", "run_shared")} <= defined
    assert not complete(made.objects, known - {"Py_IncRef"}, underscore(target.triple)), "what is missing is seen"


def test_large_frames_are_probed_on_windows() -> None:
    """A frame of more than a page must touch its pages in order: `__chkstk` does so, and is among what is inserted."""
    target = SYSTEMS["windows"]
    text = "define void @f() { %m = alloca [20000 x i8]\n call void @g(ptr %m)\n ret void }\ndeclare void @g(ptr)"
    (data,) = emit([text], target)
    assert symbols(data).missing == {"__chkstk", "g"}
    assert "__chkstk" in inserted("win32")
    assert "__chkstk" not in inserted("linux")


def test_old_processors_round_by_calls() -> None:
    """SSE2 has no instruction that rounds: kernels with `floor` are found in the cache nevertheless."""
    text = "define double @f(double %x) { %y = call double @llvm.floor.f64(double %x)\n ret double %y }\n"
    (data,) = emit([text + "declare double @llvm.floor.f64(double)"], Target.named("sse2"))
    assert symbols(data).missing == {"floor"}
    assert complete([data], _symbols())
    assert {*MEMORY, *ROUNDING} <= _symbols().keys()


@pytest.mark.parametrize("system", ["apple silicon", "mac", "windows"])
def test_damage_is_found_or_harmless(system: str) -> None:
    """Whatever bit flips and wherever a file ends, the check says no or raises nothing but its two errors."""
    data, rng = image(system).objects[-1], np.random.default_rng(0)
    for _ in range(300):
        damaged = bytearray(data)
        damaged[int(rng.integers(len(data)))] ^= 1 << int(rng.integers(8))
        complete([bytes(damaged)], [])
    for length in range(0, len(data), 97):
        assert not complete([data[:length]], ["sin", "cos"], underscore(SYSTEMS[system].triple))


def test_tables_that_point_outside_are_refused() -> None:
    """In Mach-O: commands, sections, symbols, relocations."""
    data = image("apple silicon").objects[-1]
    assert symbols(data)
    for form, offset, value in [("<I", 16, 4000), ("<I", 20, 1 << 30), ("<I", 4, 7), ("<I", 12, 2)]:
        damaged = bytearray(data)
        struct.pack_into(form, damaged, offset, value)
        with pytest.raises((ValueError, struct.error)):
            symbols(bytes(damaged))


def called(target: Target, made: Image) -> list[np.ndarray]:
    """The outputs of 13 states, and what NumPy says."""
    program = lw.forward_dynamics(model(), method="aba").program
    rng = np.random.default_rng(3)
    inputs = [rng.uniform(-1, 1, (13, *port.shape)) for port in program.inputs]
    outputs = [np.zeros((13, *port.shape)) for port in program.outputs]
    objects, name, engine = list(made.objects), "run_bound", target
    for known, address in _symbols().items():
        llvm.add_symbol(underscore(target.triple) + known, address)  # macOS itself removes the underscore
    if "windows" in target.triple:
        thunk = "declare win64cc i64 @run_bound(ptr, i64)\ndefine i64 @thunk(ptr %c, i64 %m) {\n"
        thunk += "%r = call win64cc i64 @run_bound(ptr %c, i64 %m)\nret i64 %r }"
        engine, name = Target.host(), "thunk"
        objects += emit([thunk], engine)
    linked, workspace = Linked(objects, [name], engine), Workspace(made.workspace)
    table = table_of([Rows(x, x[0].size) for x in (*inputs, *outputs)])
    context = np.concatenate([np.array([0, 13, workspace.address], np.int64), table])
    run = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)(linked.address(name))
    assert run(context.ctypes.data, FRESH) == 0
    right = lw.forward_dynamics(model(), method="kkt", backend="numpy")(*inputs).a
    return [outputs[0], right]


@pytest.mark.parametrize("lanes", [None, 1])
@pytest.mark.parametrize("system", SYSTEMS)
def test_foreign_code_computes_the_same(system: str, lanes: int | None) -> None:
    target = SYSTEMS[system]
    if architecture(target.triple) != HERE:
        pytest.skip(f"code for {architecture(target.triple)}, and this is {HERE}")
    if target.register_bits > Target.host().register_bits:
        pytest.skip("this processor has no such registers")
    found, right = called(target, image(system, lanes))
    np.testing.assert_allclose(found, right, rtol=0, atol=1e-14 * np.abs(right).max())


def test_triples() -> None:
    assert triple_for("x86_64-pc-windows-msvc") == WINDOWS
    assert triple_for(WINDOWS) == WINDOWS
    assert triple_for(APPLE_SILICON) == APPLE_SILICON
    assert architecture(APPLE_SILICON) == "aarch64"
    assert unsupported(APPLE_SILICON) is unsupported(WINDOWS) is unsupported("x86_64-unknown-linux-musl") is None
    assert "x86-64 Python" in str(unsupported("aarch64-pc-windows-msvc-elf"))
    assert "backend='numpy'" in str(unsupported("riscv64-unknown-linux-gnu"))
    apple, windows = SYSTEMS["apple silicon"], SYSTEMS["windows"]
    assert (apple.lanes("float64"), apple.registers, apple.has_fma) == (2, 32, True)
    assert (windows.lanes("float64"), windows.registers, windows.has_fma) == (4, 16, True)
