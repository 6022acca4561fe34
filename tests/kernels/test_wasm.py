"""Programs as WebAssembly, run in a real browser, against the interpreter."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import pytest
from test_iterate import cube_root

from linkwork.errors import KernelError
from linkwork.kernels.export import wasm
from linkwork.kernels.export.wasm import wasm_module
from linkwork.kernels.programs.iterate import IterativeProgram
from linkwork.kernels.programs.operations import ARITY, LIBM
from linkwork.kernels.programs.program import Port, Program

RUN = """async ([binary, ports, rows]) => {
  const math = { fmod: (a, b) => a % b };
  for (const name of Object.getOwnPropertyNames(Math)) math[name] = Math[name];
  const bytes = Uint8Array.from(atob(binary), (c) => c.charCodeAt(0));
  const { instance } = await WebAssembly.instantiate(bytes, { math });
  const memory = new Float64Array(instance.exports.memory.buffer);
  const port = (n) => memory.subarray(ports[n][0], ports[n][0] + ports[n][1]);
  return rows.map((row) => {
    for (const [name, values] of Object.entries(row)) port(name).set(values.map(Number));
    instance.exports.f();
    return Object.keys(ports).filter((n) => n.endsWith("'")).map((n) => [n, [...port(n)].map(String)]);
  });
}"""


def run(page: Any, program: Program | IterativeProgram, rows: list[dict[str, Any]]) -> list[dict[str, np.ndarray]]:
    """The outputs of the program in the browser, for every row of inputs; numbers travel as text, NaN included."""
    module = wasm_module({"f": program})
    sent = [{n: [_text(v) for v in np.ravel(x)] for n, x in row.items()} for row in rows]
    found = page.evaluate(RUN, [base64.b64encode(module.binary).decode(), module.ports, sent])
    return [
        {n[:-1]: np.array([float(v.replace("Infinity", "inf")) for v in x]) for n, x in outputs} for outputs in found
    ]


def _text(x: float) -> str:
    return repr(float(x)).replace("inf", "Infinity").replace("nan", "NaN")


KINDS = [k for k in ARITY if k not in ("fma", "fms", "fnma", "fnms", "sincos", "sin_of", "cos_of")]
EXACT = [k for k in KINDS if k not in LIBM and k not in ("sin", "cos")]


def one_of_each(kinds: list[str]) -> Program:
    """Every operation on the numbers a, b and c."""
    nodes: list[Any] = [("input", 0, 0), ("input", 0, 1), ("input", 0, 2)]
    nodes += [(kind, *range(ARITY[kind])) for kind in kinds]
    return Program([Port("x", (3,))], [Port("y", (len(kinds),))], nodes, [range(3, len(nodes))])


SPECIAL = [0.0, -0.0, 1.0, -2.5, 1e-310, 1e300, np.inf, -np.inf, np.nan]
ROWS = [np.array([a, b, c]) for a in SPECIAL for b in SPECIAL for c in (0.0, 3.0, np.nan)]


def test_operations_are_exact(page):
    program = one_of_each(EXACT)
    found = run(page, program, [{"x": x} for x in ROWS])
    for x, result in zip(ROWS, found, strict=True):
        np.testing.assert_array_equal(result["y"], program.interpret(x)[0], err_msg=str(x))


def test_functions_are_accurate(page):
    """Sines within two units in the last place up to the limit, and those of the browser beyond it."""
    kinds = [k for k in KINDS if k not in EXACT]
    program, rng = one_of_each(kinds), np.random.default_rng(0)
    rows = [*rng.uniform(-1, 1, (50, 3)), *rng.uniform(0, 20, (50, 3)), *10 ** rng.uniform(-8, 12, (100, 3))]
    rows += [np.array([k * np.pi / 2, 1.0, 1.0]) for k in range(-8, 63000, 4099)]
    found = run(page, program, [{"x": x} for x in rows])
    for x, result in zip(rows, found, strict=True):
        with np.errstate(all="ignore"):
            np.testing.assert_allclose(result["y"], program.interpret(x)[0], rtol=2e-15, atol=1e-300, err_msg=str(x))


def fused(chunks: int = 1) -> Program:
    """Sums of products in every form that can be fused, again and again."""
    nodes: list[Any] = [("input", 0, k) for k in range(4)]
    x = [0, 1, 2, 3]
    for k in range(60 * chunks):
        n = len(nodes)
        kinds = [("add", n, x[2]), ("sub", n, x[2]), ("sub", x[2], n), ("neg", n + 2)]
        nodes += [("mul", x[0], x[1]), kinds[k % 3], ("add", n + 1, x[3]), ("neg", n + 2), ("sin", n + 3)]
        x = [x[1], x[2], x[3], n + 4]
    return Program([Port("x", (4,))], [Port("y", (4,)), Port("none", (0,))], nodes, [[*x], []])


@pytest.mark.parametrize("length", [7, 50, 10_000])
def test_chunks_hand_on_what_others_need(page, monkeypatch, length: int):
    monkeypatch.setattr(wasm, "CHUNK", length)
    program, x = fused(), np.array([0.3, -0.7, 1.1, 0.2])
    (result,) = run(page, program, [{"x": x}])
    np.testing.assert_allclose(result["y"], program.interpret(x)[0], rtol=1e-13)


def test_a_loop_ends_as_its_interpreter_does(page):
    """Newton's square root of a: within the tolerance, after too many iterations, and of what has none."""
    given = [Port("a", (1,)), Port("x", (1,))]
    one: list[Any] = [("input", 0, 0), ("const", 1.0), ("add", 0, 1)]
    start = Program(given[:1], [Port("x", (1,)), Port("residual", (1,))], one, [[2], [2]], "start")
    nodes: list[Any] = [("input", 0, 0), ("input", 1, 0), ("div", 0, 1), ("add", 1, 2), ("const", 0.5), ("mul", 3, 4)]
    nodes += [("sub", 5, 1), ("fabs", 6)]
    step = Program(given, [Port("x", (1,)), Port("residual", (1,))], nodes, [[5], [7]], "iterate")
    program = IterativeProgram(start, step, name="root")
    rows = [
        {"a": [a], "tolerance": [t], "max_iterations": [m]} for a in (2.0, 1e8, np.nan) for t, m in ((1e-6, 99), (0, 3))
    ]
    for row, result in zip(rows, run(page, program, rows), strict=True):
        expected = program.interpret(*(np.array(row[p.name], dtype=float) for p in program.inputs))
        for port, value in zip(program.outputs, expected, strict=True):
            np.testing.assert_array_equal(result[port.name], value, err_msg=f"{port.name} of {row}")


def test_further_loops(page):
    program = cube_root()
    rows = [{"a": [a], "tolerance": [1e-9], "max_iterations": [2.0]} for a in (1.0, 700.0)]
    for row, result in zip(rows, run(page, program, rows), strict=True):
        expected = program.interpret(*(np.array(row[p.name], dtype=float) for p in program.inputs))
        for port, value in zip(program.outputs, expected, strict=True):
            np.testing.assert_array_equal(result[port.name], value, err_msg=f"{port.name} of {row}")


def test_ports_of_one_name_have_one_size():
    with pytest.raises(KernelError, match="two sizes"):
        wasm_module({"f": one_of_each(["add"]), "g": fused()})
