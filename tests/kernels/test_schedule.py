"""Order, registers, chunks and slots: the invariants on which the lowering relies."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernels_examples import chain, random_function, states

import linkwork as lw
from linkwork.kernels import Kernel, Program
from linkwork.kernels.codegen.target import Target
from linkwork.kernels.object_code.image import Options, lower
from linkwork.kernels.programs.from_casadi import read_program
from linkwork.kernels.programs.fuse import fuse
from linkwork.kernels.programs.order import AHEAD, LATENCY, USUAL_LATENCY, allocate, arguments, order
from linkwork.kernels.programs.schedule import Code, Layout, Schedule, Sincos, schedule
from linkwork.robots import mechanisms as mech


def replay(plan: Schedule, size: int, inputs: np.ndarray, first: int) -> np.ndarray:
    """Execute a schedule on a workspace, slot by slot, as its machine code would."""
    from linkwork.kernels.programs.operations import SEMANTICS

    nodes = plan.program.nodes
    workspace = np.full(size, np.nan)
    workspace[first : first + inputs.size] = inputs
    for step in plan.steps:
        if isinstance(step, Sincos):
            x = workspace[step.argument : step.argument + step.count]
            workspace[step.sine : step.sine + step.count] = np.sin(x)
            workspace[step.cosine : step.cosine + step.count] = np.cos(x)
            continue
        held: dict[int, float] = {}

        def read(a: int, held: dict[int, float] = held) -> float:
            if nodes[a][0] == "const":
                return float(nodes[a][1])
            if a not in held:
                held[a] = workspace[plan.loads[a]]
            return held[a]

        for i, gone in zip(step.order, step.allocation.drops, strict=True):
            if nodes[i][0] not in ("const", "input", "sin_of", "cos_of"):
                held[i] = float(SEMANTICS[nodes[i][0]](*(np.float64(read(a)) for a in nodes[i][1:])))
            for slot in plan.stores.get(i, ()):
                workspace[slot] = read(i)
            for a in gone:
                held.pop(a, None)
    return workspace


@given(st.integers(0, 10**6), st.integers(3, 60), st.integers(3, 12), st.sampled_from([1, 8]), st.booleans())
def test_schedules_compute_the_program(seed: int, chunk: int, registers: int, padding: int, keep: bool) -> None:
    rng = np.random.default_rng(seed)
    program = fuse(read_program(random_function(rng, 70)))
    layout = Layout(padding)
    plan = schedule(program, chunk, registers, layout, keep=keep)
    x = rng.normal(size=4)
    workspace = replay(plan, layout.size, x, layout.named["x"])
    y = workspace[layout.named["y'"] :][:12]
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(y, program.interpret(x)[0], rtol=1e-12)
    if keep:
        np.testing.assert_array_equal(workspace[layout.named["x"] :][:4], x)


def code_of(program: Program) -> list[int]:
    return [i for i, n in enumerate(program.nodes) if n[0] not in ("const", "input", "sincos", "sin_of", "cos_of")]


def waiting(program: Program, sequence: list[int]) -> int:
    """How long a processor that looks AHEAD takes for the operations in this order, less one for each."""
    finish: dict[int, int] = {}
    now = 0
    for v in sequence:
        start = max((finish.get(a, 0) for a in arguments(program.nodes[v])), default=0)
        now = max(now, start - AHEAD) + 1
        finish[v] = max(now, start) + LATENCY.get(program.nodes[v][0], USUAL_LATENCY)
    return now - len(sequence)


@pytest.mark.parametrize("robot", ["chain", "tree"])
def test_the_order_is_valid_needs_less_memory_and_waits_less(robot: str) -> None:
    model = mech.chain(12) if robot == "chain" else mech.random_tree(18, seed=1)
    program = fuse(lw.forward_dynamics(model, method="aba").program)
    block = code_of(program)
    better = order(program, block)
    assert sorted(better) == block
    position = {v: t for t, v in enumerate(better)}
    inside = set(block)
    assert all(position[a] < position[v] for v in block for a in arguments(program.nodes[v]) if a in inside)
    before, after = (len(allocate(program, o, 28).spilled) for o in (block, better))
    assert after < 0.85 * before
    assert waiting(program, better) <= waiting(program, block)


@pytest.mark.parametrize("registers", [4, 10, 28])
def test_never_more_values_than_registers(registers: int) -> None:
    program = fuse(read_program(chain(6)))
    block = code_of(program)
    held: set[int] = set()
    for v, gone in zip(block, allocate(program, block, registers).drops, strict=True):
        held |= {a for a in arguments(program.nodes[v]) if program.nodes[a][0] != "const"} | {v}
        held -= set(gone)
        assert len(held) <= registers


def test_all_sines_of_the_joints_are_one_step() -> None:
    plan = schedule(fuse(read_program(chain(9))), 100, 28, Layout(8))
    assert [step.count for step in plan.steps if isinstance(step, Sincos)] == [9]


def test_chunks_are_equal_and_bounded() -> None:
    plan = schedule(fuse(read_program(chain(20))), 300, 28, Layout(8))
    sizes = [len(step.order) for step in plan.steps if isinstance(step, Code)][1:]
    assert len(sizes) > 2
    assert max(sizes) <= 300
    assert max(sizes) - min(sizes) <= 1


def test_code_grows_with_the_program_and_the_workspace_is_reused() -> None:
    options = Options("double", 8, Target.host())
    texts: dict[int, list[str]] = {50: [], 200: []}
    small, large = (lower(read_program(chain(n)), options, modules) for n, modules in texts.items())
    assert 3.5 < sum(map(len, texts[200])) / sum(map(len, texts[50])) < 4.5
    assert large.workspace < 4.5 * small.workspace
    assert max(map(len, texts[200])) < 1.6 * max(map(len, texts[50]))


def test_a_long_program_in_many_chunks() -> None:
    program = read_program(chain(60))
    inputs = states(60, 10)
    for a, b in zip(Kernel(program)(*inputs), program.interpret(*inputs), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-11 * (1 + np.abs(b).max()))
