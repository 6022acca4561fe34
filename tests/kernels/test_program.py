"""Programs: read from CasADi, counted, checked, interpreted; and the passes that rewrite them."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernels_examples import chain, everything, everything_inputs, random_function, states

from linkwork.errors import InputError, KernelError
from linkwork.kernels import Port, Program
from linkwork.kernels.programs.from_casadi import read_program
from linkwork.kernels.programs.fuse import fuse
from linkwork.kernels.programs.simplify import simplify


def casadi_values(function: ca.Function, *arrays: np.ndarray) -> list[np.ndarray]:
    """What CasADi says, batch-first and row-major."""
    rows = [[np.asarray(out) for out in function.call(list(map(ca.DM, one)))] for one in zip(*arrays, strict=True)]
    outputs = [np.stack(column) for column in zip(*rows, strict=True)]
    return [x[..., 0] if x.shape[-1] == 1 else x for x in outputs]


@pytest.mark.parametrize("optimize", [False, True])
def test_every_operation_means_what_casadi_says(optimize: bool) -> None:
    function, inputs = everything(), everything_inputs(6)
    for mine, theirs in zip(
        read_program(function, optimize).interpret(*inputs), casadi_values(function, *inputs), strict=True
    ):
        np.testing.assert_allclose(mine, theirs, rtol=1e-14, atol=1e-15)


def cost(program: Program) -> int:
    """A division costs sixteen products; a sign costs nothing."""
    return sum({"div": 16, "neg": 0}.get(kind, 1) * n for kind, n in program.counts().items())


@given(st.integers(0, 10**6), st.integers(5, 80))
def test_passes_do_not_change_the_function(seed: int, size: int) -> None:
    rng = np.random.default_rng(seed)
    function = random_function(rng, size)
    x = rng.normal(size=(5, 4))
    raw = read_program(function, optimize=False)
    simple = simplify(raw)
    fused = fuse(simple)
    expected = raw.interpret(x)[0]
    scale = np.abs(expected).max() + 1
    for program in (simple, fused):
        program.check()
        assert np.abs(program.interpret(x)[0] - expected).max() <= 1e-12 * scale * size
    assert cost(simple) <= cost(raw)
    np.testing.assert_allclose(casadi_values(function, x)[0], expected, rtol=1e-13, atol=1e-13 * scale)


def operations(build: object) -> dict[str, int]:
    x, y, z = (ca.SX.sym(n) for n in "xyz")
    return read_program(ca.Function("f", [x, y, z], build(x, y, z), ["x", "y", "z"], [])).counts()  # type: ignore[operator]


def test_common_values_are_computed_once() -> None:
    assert operations(lambda x, y, z: [x * y + z, z + y * x]) == {"add": 1, "mul": 1}
    assert operations(lambda x, y, z: [x - y, z * (y - x)]) == {"mul": 1, "neg": 1, "sub": 1}
    assert operations(lambda x, y, z: [(-x) * y, x * (-y)]) == {"mul": 1, "neg": 1}
    assert operations(lambda x, y, z: [ca.sin(x) + ca.sin(-x)]) == {}
    assert operations(lambda x, y, z: [ca.cos(x) - ca.cos(-x)]) == {}


def test_constants_fold() -> None:
    assert operations(lambda x, y, z: [x * 1 + 0 * y, (x + 0) / 1, ca.SX(2) * ca.sqrt(ca.SX(9)) - 6]) == {}
    assert operations(lambda x, y, z: [x / 4]) == {"mul": 1}
    assert operations(lambda x, y, z: [x / 3]) == {"div": 1}
    assert operations(lambda x, y, z: [2 * (3 * x)]) == {"mul": 1}


def test_quotients_with_one_divisor_share_a_reciprocal() -> None:
    assert operations(lambda x, y, z: [x / z, y / z, 1 / z]) == {"div": 1, "mul": 2}


def test_if_else_is_one_selection() -> None:
    assert operations(lambda x, y, z: [ca.if_else(x < y, y, z)]) == {"lt": 1, "select": 1}


def test_dead_code_is_removed_and_nans_are_not_invented() -> None:
    x = ca.SX.sym("x", 2)
    dead = ca.log(x[1])
    function = ca.Function("f", [x], [ca.if_else(x[0] > 0, ca.sqrt(x[0]), x[0]), 0 * dead], ["x"], ["a", "b"])
    program = read_program(function)
    assert "log" not in program.counts()
    a, b = program.interpret(np.array([-4.0, -1.0]))
    assert (a, b) == (-4.0, 0.0)


def test_products_fuse_into_sums_and_sines_pair() -> None:
    x, y, z = (ca.SX.sym(n) for n in "xyz")
    outs = [x * y + z, z - x * z, -(y * z) - x, ca.sin(x) * ca.cos(x)]
    counts = fuse(read_program(ca.Function("f", [x, y, z], outs))).counts()
    assert counts == {"fma": 1, "fnma": 1, "fnms": 1, "mul": 1, "sincos": 1}


def test_a_product_is_fused_everywhere_or_nowhere() -> None:
    x, y, z = (ca.SX.sym(n) for n in "xyz")
    both = ca.Function("f", [x, y, z], [x * y + z, x * y - ca.sqrt(z)])
    assert fuse(read_program(both)).counts() == {"fma": 1, "fms": 1, "sqrt": 1}
    kept = ca.Function("f", [x, y, z], [x * y + z, x * y])
    assert fuse(read_program(kept)).counts() == {"add": 1, "mul": 1}


def test_counts_are_exact() -> None:
    program = read_program(chain(4))
    assert program.operations == sum(program.counts().values())
    assert fuse(program).operations == program.operations
    assert set(program.counts()) <= {"add", "sub", "mul", "div", "sin", "cos", "neg"}


def test_ports_have_names_and_row_major_shapes() -> None:
    program = read_program(everything())
    assert program.inputs == (Port("x", (4,)), Port("y", (4,)), Port("m", (2, 3)))
    assert [p.shape for p in program.outputs] == [(49,), (3, 3), (2, 3), (2, 2)]
    m = np.arange(6.0).reshape(2, 3)
    _, mm, copy, zero = program.interpret(np.ones(4), np.ones(4), m)
    np.testing.assert_array_equal(copy, m)
    np.testing.assert_array_equal(mm, m.T @ m)
    np.testing.assert_array_equal(zero, np.zeros((2, 2)))


def test_what_cannot_be_lowered_is_refused() -> None:
    x, free = ca.SX.sym("x"), ca.SX.sym("free")
    with pytest.raises(KernelError, match="OP_ERF"):
        read_program(ca.Function("f", [x], [ca.erf(x)]))
    with pytest.raises(KernelError, match="free"):
        read_program(ca.Function("f", [x], [x + free], {"allow_free": True}))
    big = ca.MX.sym("A", 30, 30)
    with pytest.raises(KernelError, match="scalar operations"):
        read_program(ca.Function("f", [big], [ca.solve(big, ca.DM.ones(30), "lapackqr")]))


@pytest.mark.parametrize(
    "nodes",
    [[("add", 0, 0)], [("input", 0, 5)], [("input", 0, 0), ("add", 0)], [("const", 1)], [("magic", 0)],
     [("input", 0, 0), ("sincos", 0), ("add", 0, 1)], [("input", 0, 0), ("sin_of", 0)]],
)  # fmt: skip
def test_check_finds_malformed_programs(nodes: list[tuple[object, ...]]) -> None:
    with pytest.raises(KernelError):
        Program([Port("x", (1,))], [Port("y", (1,))], nodes, [[len(nodes) - 1]]).check()


def test_check_finds_incomplete_outputs() -> None:
    with pytest.raises(KernelError, match="incomplete"):
        Program([Port("x", (1,))], [Port("y", (2,))], [("input", 0, 0)], [[0]]).check()


def test_interpreter_broadcasts_and_checks_shapes() -> None:
    program = read_program(chain(3))
    q, v, tau = states(3, 5)
    batched = program.interpret(q, v[0], tau)
    single = program.interpret(q[2], v[0], tau[2])
    for a, b in zip(batched, single, strict=True):
        np.testing.assert_allclose(a[2], b, rtol=1e-14, atol=1e-15)
    assert [x.shape for x in program.interpret(q[:0], v[0], tau[:0])] == [(0, 3), (0, 3, 3), (0, 3)]
    with pytest.raises(InputError, match="'v'"):
        program.interpret(q, v[:, :2], tau)
    with pytest.raises(InputError, match="batch"):
        program.interpret(q, v[:4], tau)
    with pytest.raises(InputError, match="3 inputs"):
        program.interpret(q)


def test_digest_names_the_content() -> None:
    assert read_program(chain(3)).digest == read_program(chain(3)).digest
    assert read_program(chain(3)).digest != read_program(chain(4)).digest
    assert read_program(chain(3)).digest != read_program(chain(3), optimize=False).digest
