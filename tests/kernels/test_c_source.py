"""C export: compiles without a warning, and computes the same."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import casadi as ca
import mpmath
import numpy as np
import pytest
from kernels_examples import chain, everything, everything_inputs, states
from test_iterate import cube_root, problem, proximal

from linkwork.kernels import Kernel, Program
from linkwork.kernels.export.c_project import export
from linkwork.kernels.export.c_source import identifier
from linkwork.kernels.programs.from_casadi import read_program
from linkwork.kernels.programs.iterate import IterativeProgram

COMPILER = shutil.which(os.environ.get("CC", "cc")) or shutil.which("gcc") or shutil.which("clang")
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C compiler")


def build(directory: Path, name: str) -> Any:
    library = directory / f"{name}.so"
    flags = ["-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror", "-O1", "-fPIC", "-shared"]
    command = [str(COMPILER), *flags, "-o", str(library), str(directory / f"{name}.c"), "-lm"]
    subprocess.run(command, check=True, capture_output=True, text=True)
    return getattr(ctypes.CDLL(str(library)), name)


def call(function: Any, program: Program | IterativeProgram, inputs: list[Any]) -> list[np.ndarray]:
    arrays = [np.ascontiguousarray(x, float) for x in inputs] + [np.empty(port.shape) for port in program.outputs]
    function(*(ctypes.c_void_p(x.ctypes.data) for x in arrays))
    return arrays[len(inputs) :]


@needs_compiler
def test_a_program_in_c(tmp_path: Path) -> None:
    program = read_program(chain(5))
    written = export(program, tmp_path / "new")
    assert [path.name for path in written] == ["chain.c", "chain.h", "CMakeLists.txt"]
    inputs = states(5, None)
    for a, b in zip(call(build(tmp_path / "new", "chain"), program, inputs), program.interpret(*inputs), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-13)


@needs_compiler
def test_every_operation_in_c(tmp_path: Path) -> None:
    program = read_program(everything())
    export(program, tmp_path, name="all of it")
    function = build(tmp_path, "all_of_it")
    inputs = everything_inputs(6)
    for k in range(6):
        row = [x[k] for x in inputs]
        for a, b in zip(call(function, program, row), program.interpret(*row), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-14, atol=1e-15)


@needs_compiler
@pytest.mark.parametrize("finish", [False, True])
def test_an_iterative_program_in_c(tmp_path: Path, finish: bool) -> None:
    program = proximal(finish)
    export(program, tmp_path)
    function = build(tmp_path, "proximal")
    inputs = [*(x[0] for x in problem(1)), [1e-9], [300.0]]
    for a, b in zip(call(function, program, inputs), program.interpret(*inputs), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-11)


@needs_compiler
def test_further_loops_in_c(tmp_path: Path) -> None:
    program = cube_root()
    export(program, tmp_path)
    function = build(tmp_path, "cube_root")
    for a in (1.0, 700.0):
        inputs = [[a], [1e-9], [2.0]]
        for x, y in zip(call(function, program, inputs), program.interpret(*inputs), strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-13, atol=1e-12)


@needs_compiler
def test_constants_that_are_no_numbers(tmp_path: Path) -> None:
    x = ca.SX.sym("x")
    outs = ca.vertcat(ca.fmin(x, np.inf), ca.fmax(x, -np.inf), x - 1.5, ca.if_else(x > 0, np.nan, x))
    program = read_program(ca.Function("odd", [x], [outs], ["x"], ["y"]))
    export(program, tmp_path)
    (y,) = call(build(tmp_path, "odd"), program, [[2.0]])
    np.testing.assert_array_equal(y, [2.0, 2.0, 0.5, np.nan])


def test_unused_and_equal_names(tmp_path: Path) -> None:
    a, b = ca.SX.sym("a", 2), ca.SX.sym("b", 2)
    function = ca.Function("f", [a, b], [a * 2], ["x", "unused"], ["x"], {"allow_duplicate_io_names": True})
    text = Kernel(read_program(function)).c_source()
    assert "(void)unused;" in text
    assert "x_out[1]" in text
    export(read_program(function), tmp_path)
    if COMPILER:
        (doubled,) = call(build(tmp_path, "f"), read_program(function), [[1.0, 2.0], [0.0, 0.0]])
        np.testing.assert_array_equal(doubled, [2.0, 4.0])


@pytest.mark.skipif(shutil.which("cmake") is None or COMPILER is None, reason="no CMake")
def test_the_project_builds(tmp_path: Path) -> None:
    folder = tmp_path / "both"
    export(read_program(chain(2)), folder, "small")
    export(read_program(chain(3)), folder, "large")
    subprocess.run(["cmake", "-S", folder, "-B", tmp_path / "build"], check=True, capture_output=True)
    subprocess.run(["cmake", "--build", tmp_path / "build"], check=True, capture_output=True)
    assert list((tmp_path / "build").glob("libboth*"))


@needs_compiler
def test_functions_of_one_folder_are_one_library(tmp_path: Path) -> None:
    """All sources in one library, with the same program under two names: no symbol but the functions is shared."""
    programs = {"one": read_program(chain(3)), "two": read_program(chain(3)), "loop": proximal(True)}
    for name, program in programs.items():
        export(program, tmp_path, name)
    project = (tmp_path / "CMakeLists.txt").read_text()
    sources = sorted(tmp_path.glob("*.c"))
    assert [path.name for path in sources] == ["loop.c", "one.c", "two.c"]
    assert all(f"  {path.name}" in project for path in sources)
    library = tmp_path / "all.so"
    flags = ["-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror", "-O1", "-fPIC", "-shared"]
    subprocess.run([str(COMPILER), *flags, "-o", str(library), *map(str, sources), "-lm"], check=True)
    made, inputs = ctypes.CDLL(str(library)), states(3, None)
    for name in ("one", "two"):
        results = call(getattr(made, name), programs[name], inputs)
        for a, b in zip(results, programs[name].interpret(*inputs), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-13)
    if shutil.which("nm"):
        listed = subprocess.run(
            ["nm", "-D", "--defined-only", str(library)], capture_output=True, text=True, check=True
        )
        public = {line.split()[-1] for line in listed.stdout.splitlines() if " T " in line}
        assert {n for n in public if not n.startswith("_")} == set(programs)


def test_a_project_of_the_users_own_is_left(tmp_path: Path) -> None:
    (tmp_path / "CMakeLists.txt").write_text("project(mine)\n")
    (tmp_path / "mine.c").write_text("int mine;\n")
    assert [path.name for path in export(read_program(chain(2)), tmp_path)] == ["chain.c", "chain.h"]
    assert (tmp_path / "CMakeLists.txt").read_text() == "project(mine)\n"
    (tmp_path / "CMakeLists.txt").unlink()
    assert len(export(read_program(chain(2)), tmp_path)) == 3
    assert "mine" not in (tmp_path / "CMakeLists.txt").read_text().replace("mine_", "")


@needs_compiler
def test_sines_in_c(tmp_path: Path) -> None:
    """Within 2 ulp of the true value: next to quarter turns, at the limit and beyond, and for what is no number."""
    rng = np.random.default_rng(0)
    quarters = np.arange(-200, 200) * np.pi / 2
    x = np.concatenate([quarters, rng.uniform(-1e5, 1e5, 1500), rng.uniform(-4, 4, 1500), [1e5, -1e5, 3e9, 0.0, -0.0]])
    angle = ca.SX.sym("x")
    program = read_program(ca.Function("sines", [angle], [ca.sin(angle), ca.cos(angle)], ["x"], ["s", "c"]))
    export(program, tmp_path)
    function = build(tmp_path, "sines")
    assert np.isnan([call(function, program, [[a]]) for a in (np.nan, np.inf, -np.inf)]).all()
    with mpmath.workdps(40):
        for a in x:
            for (found,), true in zip(call(function, program, [[a]]), (mpmath.sin, mpmath.cos), strict=True):
                exact = true(mpmath.mpf(float(a)))
                assert abs((mpmath.mpf(float(found)) - exact) / np.spacing(float(exact))) <= 2, a


def single(function: Any, program: Program, inputs: list[Any]) -> list[np.ndarray]:
    """`call` for arrays of float."""
    arrays = [np.ascontiguousarray(x, np.float32) for x in inputs]
    arrays += [np.empty(port.shape, np.float32) for port in program.outputs]
    function(*(ctypes.c_void_p(x.ctypes.data) for x in arrays))
    return arrays[len(inputs) :]


@needs_compiler
def test_every_operation_in_single_precision(tmp_path: Path) -> None:
    program, eps = read_program(everything()), np.finfo(np.float32).eps
    export(program, tmp_path, name="all", dtype="float32")
    text = (tmp_path / "all.c").read_text()
    assert "double" not in text.replace("(double)k", "").replace("(double)y", ""), "but where pi/2 is subtracted"
    function, inputs = build(tmp_path, "all"), [x.astype(np.float32) for x in everything_inputs(6)]
    for k in range(6):
        row = [x[k] for x in inputs]
        for a, b in zip(single(function, program, row), program.interpret(*row, dtype="float32"), strict=True):
            np.testing.assert_allclose(a, b, rtol=64 * eps, atol=8 * eps)


@needs_compiler
def test_sines_in_single_precision(tmp_path: Path) -> None:
    """Within 2 ulp of the true value, as in double precision."""
    rng = np.random.default_rng(0)
    quarters = np.arange(-200, 200) * np.pi / 2
    x = np.concatenate([quarters, rng.uniform(-1e5, 1e5, 1500), rng.uniform(-4, 4, 1500), [1e5, 3e9, 0.0, -0.0]])
    angle = ca.SX.sym("x")
    program = read_program(ca.Function("sines", [angle], [ca.sin(angle), ca.cos(angle)], ["x"], ["s", "c"]))
    export(program, tmp_path, dtype="float32")
    function = build(tmp_path, "sines")
    assert np.isnan([single(function, program, [[a]]) for a in (np.nan, np.inf, -np.inf)]).all()
    for a in x.astype(np.float32):
        for (found,), true in zip(single(function, program, [[a]]), (np.sin, np.cos), strict=True):
            exact = true(np.float64(a))
            assert abs(found - exact) <= 2 * np.spacing(np.float32(abs(exact))), a


def test_names_become_identifiers() -> None:
    assert [identifier(n) for n in ("a b", "2x", "ok_1", "", "ü")] == ["a_b", "f_2x", "ok_1", "f_", "_"]
