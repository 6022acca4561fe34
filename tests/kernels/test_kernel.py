"""Kernels as users call them: lanes, batches, arrays of all sorts, and what is refused."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernels_examples import chain, everything, everything_inputs, random_function, states

from linkwork.errors import InputError, KernelError
from linkwork.kernels import Kernel, Port, Program
from linkwork.kernels.programs.from_casadi import read_program

LINKS = 5
EPS = {"float64": 2.0**-52, "float32": 2.0**-23}


@pytest.fixture(scope="module")
def program() -> Program:
    return read_program(chain(LINKS))


def close(mine: Any, reference: Any, dtype: str, factor: float = 2000.0) -> None:
    for a, b in zip(mine, reference, strict=True):
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=0, atol=factor * EPS[dtype] * (1 + np.abs(b).max(initial=0)))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("lanes", [1, 2, 4, 8, 16])
def test_lanes_agree_with_numpy_and_with_one_lane_bit_for_bit(program: Program, lanes: int, dtype: str) -> None:
    kernel = Kernel(program, lanes=lanes, dtype=dtype)
    inputs = [x.astype(dtype) for x in states(LINKS, 37)]
    outputs = kernel(*inputs)
    close(outputs, program.interpret(*inputs), dtype)
    for row in range(0, 37, 5):
        for batch, one in zip(outputs, kernel(*(x[row] for x in inputs)), strict=True):
            assert one.dtype == dtype
            np.testing.assert_array_equal(batch[row], one)


@pytest.mark.parametrize("lanes", [1, 4, 8])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_every_operation(lanes: int, dtype: str) -> None:
    program = read_program(everything())
    inputs = [x.astype(dtype) for x in everything_inputs(11)]
    got, expected = Kernel(program, lanes=lanes, dtype=dtype)(*inputs), program.interpret(*inputs, dtype=dtype)
    for a, b in zip(got, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=64 * EPS[dtype], atol=8 * EPS[dtype])


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e300, -1e22])
def test_special_numbers_in_one_lane_stay_there(value: float) -> None:
    x = ca.SX.sym("x", 2)
    outs = [ca.sin(x[0]), ca.cos(x[0]), ca.fmin(x[0], x[1]), ca.sign(x[0]), x[0] < x[1], ca.fabs(x[0]) + x[1]]
    program = read_program(ca.Function("f", [x], [ca.vertcat(*outs)], ["x"], ["y"]))
    batch = np.tile([0.5, 1.5], (19, 1))
    batch[7, 0] = value
    (y,) = Kernel(program)(batch)
    np.testing.assert_allclose(y, program.interpret(batch)[0], rtol=1e-15)
    assert np.isfinite(np.delete(y, 7, axis=0)).all()


@given(st.integers(0, 10**6))
def test_random_programs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    program = read_program(random_function(rng, 40))
    x = rng.normal(size=(9, 4))
    close(Kernel(program)(x), program.interpret(x), "float64")


@pytest.mark.parametrize("batch", [0, 1, 2, 7, 8, 9, 15, 16, 17, 64, 100])
def test_batches_of_any_size(program: Program, batch: int) -> None:
    kernel = Kernel(program, lanes=8)
    inputs = states(LINKS, batch)
    outputs = kernel(*inputs)
    assert [x.shape for x in outputs] == [(batch, LINKS), (batch, 3, 3), (batch, 3)]
    if batch:
        close(outputs, program.interpret(*inputs), "float64")


def test_results_are_named_and_unbatched_inputs_serve_all(program: Program) -> None:
    kernel = Kernel(program)
    q, v, tau = states(LINKS, 12)
    result = kernel(q, v[0], tau)
    assert result._fields == ("a", "I", "f")
    assert type(result).__name__ == "Chain"
    same = kernel(q, np.tile(v[0], (12, 1)), tau)
    for a, b in zip(result, same, strict=True):
        np.testing.assert_array_equal(a, b)
    assert kernel(q[0], v[0], tau[0]).a.shape == (LINKS,)


def test_arrays_of_all_sorts_give_the_same(program: Program) -> None:
    kernel = Kernel(program)
    q, v, tau = states(LINKS, 21)
    expected = kernel(q, v, tau)
    wide = np.zeros((42, LINKS + 3))
    wide[::2, 1 : 1 + LINKS] = q
    frozen = v.copy()
    frozen.flags.writeable = False
    unaligned = np.frombuffer(b"x" + tau.tobytes(), np.uint8)[1:].view(np.float64).reshape(tau.shape)
    variants = [
        (wide[::2, 1 : 1 + LINKS], frozen, unaligned),
        (np.asfortranarray(q), v[::-1].copy()[::-1], tau.tolist()),
        (q.astype(">f8"), np.ma.masked_array(v), np.broadcast_to(tau, (1, 21, LINKS))[0]),
        (q.astype(np.longdouble), v, tau),
    ]
    for variant in variants:
        for a, b in zip(kernel(*variant), expected, strict=True):
            np.testing.assert_array_equal(a, b)
    one = kernel(q[0].tolist(), tuple(v[0]), tau[::-1][-1])
    np.testing.assert_array_equal(one.a, expected.a[0])
    whole = kernel(np.arange(LINKS), np.ones(LINKS, np.int8), np.zeros(LINKS, np.float32))
    np.testing.assert_array_equal(whole.a, kernel(np.arange(LINKS) * 1.0, np.ones(LINKS), np.zeros(LINKS)).a)


def test_repeated_rows_by_stride_zero(program: Program) -> None:
    q, v, tau = states(LINKS, 9)
    repeated = np.broadcast_to(v[0], (9, LINKS))
    np.testing.assert_array_equal(Kernel(program)(q, repeated, tau).a, Kernel(program)(q, v[0], tau).a)


@pytest.mark.parametrize("batch", [None, 1, 13])
def test_outputs_into_the_callers_arrays(program: Program, batch: int | None) -> None:
    kernel = Kernel(program)
    inputs = states(LINKS, batch)
    expected = kernel(*inputs)
    lead = () if batch is None else (batch,)
    out = [np.full((*lead, *port.shape), np.nan) for port in program.outputs]
    result = kernel(*inputs, out=out)
    for a, b, c in zip(result, out, expected, strict=True):
        assert a is b
        np.testing.assert_array_equal(b, c)


def test_outputs_may_overwrite_inputs() -> None:
    x = ca.SX.sym("x", 3)
    kernel = Kernel(read_program(ca.Function("f", [x], [x[::-1] + 1], ["x"], ["y"])))
    memory = np.arange(303.0)
    expected = memory[:300].reshape(100, 3)[:, ::-1] + 1
    kernel(memory[:300].reshape(100, 3), out=memory[3:].reshape(100, 3))
    np.testing.assert_array_equal(memory[3:].reshape(100, 3), expected)
    single = np.array([1.0, 2.0, 3.0])
    kernel(single, out=single)
    np.testing.assert_array_equal(single, [4.0, 3.0, 2.0])


@pytest.mark.parametrize("batch", [None, 4])
def test_unfit_outputs_are_refused(program: Program, batch: int | None) -> None:
    kernel, inputs = Kernel(program), states(LINKS, batch)
    lead = () if batch is None else (batch,)
    good = [np.zeros((*lead, *port.shape)) for port in program.outputs]
    frozen = good[0].copy()
    frozen.flags.writeable = False
    shape = good[0].shape
    for bad in (frozen, np.zeros((*shape[:-1], LINKS + 1)), np.zeros(shape, "f4"), [0.0] * LINKS,
                np.zeros((*shape, 2))[..., 0], None):  # fmt: skip
        with pytest.raises(InputError, match="'a'"):
            kernel(*inputs, out=[bad, *good[1:]])
    for incomplete in (good[:2], good[0], 5, {}):
        with pytest.raises(InputError, match="3 arrays"):
            kernel(*inputs, out=incomplete)


def test_outputs_do_not_share_memory() -> None:
    """Rows side by side in one array are fine; two results in one place were silently the second."""
    x = ca.SX.sym("x", 3)
    kernel, at = Kernel(read_program(ca.Function("f", [x], [x + 1, 2 * x], ["x"], ["y", "z"]))), np.ones((4, 3))
    for out in ([at] * 2, [at, at[::-1]], [np.zeros(3)] * 2):
        with pytest.raises(InputError, match="'y' and 'z' share memory"):
            kernel(np.ones(out[0].shape), out=out)
    both = np.zeros((4, 6))
    kernel(at, out=[both[:, :3], both[:, 3:]])
    np.testing.assert_array_equal(both, 2)


def test_wrong_inputs_are_refused(program: Program) -> None:
    kernel = Kernel(program)
    q, v, tau = states(LINKS, 6)
    for bad in (v[:, :-1], v[0, :-1], v[None], v[0, 0], np.zeros((LINKS, 6)), v.T):
        with pytest.raises(InputError, match=r"'v' has shape .* is needed"):
            kernel(q, bad, tau)
        with pytest.raises(InputError, match="'v'"):
            kernel(q[0], bad, tau[0])
    with pytest.raises(InputError, match="batch of 5"):
        kernel(q, v[:5], tau)
    for bad in (v.astype(complex), np.array([["a"] * LINKS] * 6), np.empty((6, LINKS), object)):
        with pytest.raises(InputError, match="real numbers"):
            kernel(q, bad, tau)
    for count in (0, 2, 4):
        with pytest.raises(InputError, match=f"{count} were given"):
            kernel(*[q[0]] * count)


@pytest.mark.parametrize("options", [{"dtype": "int32"}, {"lanes": 3}, {"lanes": 0}, {"threads": 0}])
def test_wrong_options_are_refused(program: Program, options: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        Kernel(program, **options)


@pytest.mark.parametrize("batch", [None, 1, 11])
def test_bound_buffers(program: Program, batch: int | None) -> None:
    kernel = Kernel(program)
    bound = kernel.bind(batch)
    for seed in range(3):
        inputs = states(LINKS, batch, seed)
        for mine, given_ in zip(bound.inputs, inputs, strict=True):
            mine[...] = given_
        result = bound()
        assert result is bound.outputs
        for a, b in zip(result, kernel(*inputs), strict=True):
            np.testing.assert_array_equal(a, b)
    assert bound.inputs._fields == ("q", "v", "tau")


def test_empty_ports() -> None:
    nodes = [("input", 1, 0), ("add", 0, 0)]
    program = Program([Port("none", (0,)), Port("x", (1,))], [Port("y", (1,)), Port("zero", (0, 3))], nodes, [[1], []])
    kernel = Kernel(program)
    for batch in ((), (10,)):
        y, zero = kernel(np.zeros((*batch, 0)), np.ones((*batch, 1)))
        np.testing.assert_array_equal(y, np.full((*batch, 1), 2.0))
        assert zero.shape == (*batch, 0, 3)


def test_a_program_without_inputs() -> None:
    kernel = Kernel(Program([], [Port("y", (2,))], [("const", 1.5), ("const", -2.0)], [[0, 1]]))
    np.testing.assert_array_equal(kernel().y, [1.5, -2.0])


def test_the_casadi_function_comes_back(program: Program) -> None:
    assert Kernel(program).casadi().name() == "chain"
    with pytest.raises(KernelError, match="CasADi"):
        Kernel(Program([], [Port("y", (1,))], [("const", 1.0)], [[0]])).casadi()


def test_kernels_tell_what_they_are(program: Program) -> None:
    kernel = Kernel(program, lanes=4, threads=1)
    assert kernel.operations == program.operations
    assert "lanes=4" in repr(kernel)
    assert kernel.inputs == program.inputs
    assert kernel.outputs == program.outputs


def test_long_rows_of_a_batch_start_on_cache_lines() -> None:
    """Matrices are padded to whole lines, vectors stay contiguous; either way they are what one state gives."""
    nodes: list[Any] = [("input", 0, 0), ("input", 0, 1), *(("const", float(k)) for k in range(1, 150))]
    nodes += [("mul", k % 2, 2 + k) for k in range(149)]
    products = list(range(151, 300))
    kernel = Kernel(
        Program([Port("x", (2,))], [Port("long", (149,)), Port("short", (5,))], nodes, [products, products[:5]])
    )
    x = np.random.default_rng(0).normal(size=(37, 2))
    long, short = kernel(x)
    assert all(row.ctypes.data % 64 == 0 for row in long)
    assert short.flags.c_contiguous
    assert short.ctypes.data % 64 == 0
    assert long.strides == (152 * 8, 8)
    for k in (0, 8, 36):
        one = kernel(x[k])
        np.testing.assert_array_equal(long[k], one[0])
        np.testing.assert_array_equal(short[k], one[1])
