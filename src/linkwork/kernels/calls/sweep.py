"""Sweeps over a horizon: products of matrices and small programs at every knot, in one native loop.

    for every knot:   timed matrices are read;   stages, one after another;   some matrices are recorded

A stage is a `Program`, a list of products (products.py) or a `Copy`. All of them share one workspace, where matrices
are found by name: a stage reads what the stage before it wrote, and the next knot what no stage has overwritten.
Knots may be taken in either direction. In a batch lanes are problems; for one problem, products have columns in lanes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from linkwork.chunked_arrays import copied, typed
from linkwork.kernels.calls.arrays import Array, address
from linkwork.kernels.calls.interruptible_run import Task
from linkwork.kernels.calls.rollout import TimedKernel
from linkwork.kernels.codegen.driver import Frame, chunk_names, step_calls
from linkwork.kernels.codegen.product_code import product_module
from linkwork.kernels.codegen.python_calls import object_module
from linkwork.kernels.codegen.time_driver import time_driver
from linkwork.kernels.object_code.image import (
    Modules,
    Needs,
    Options,
    cost_of,
    places_of,
    tile_of,
    write_chunks,
    write_shared,
)
from linkwork.kernels.programs.fuse import fuse
from linkwork.kernels.programs.products import Product, Transfer
from linkwork.kernels.programs.program import Port, Program
from linkwork.kernels.programs.schedule import Layout, Schedule, schedule


class Copy(NamedTuple):
    """A matrix becomes equal to another one of its size."""

    to: str
    source: str


Stage = Program | Sequence[Product | Transfer] | Copy


class SweepProgram:
    """Stages over matrices.

    Those of `state` and `fixed` are given at the start, `timed` ones anew at every knot. `recorded` ones are written at
    every knot, `total` once at the end. `backward` takes the last knot first.
    """

    def __init__(
        self,
        name: str,
        matrices: Sequence[Port],
        stages: Sequence[Stage],
        *,
        fixed: Sequence[str] = (),
        state: Sequence[str],
        timed: Sequence[str],
        recorded: Sequence[str],
        total: str,
        backward: bool = False,
    ) -> None:
        self.name, self.stages, self.backward = name, tuple(stages), backward
        self.matrices = {port.name: port for port in matrices}
        self.once = tuple(self.matrices[n] for n in (*fixed, *state))
        self.timed = tuple(self.matrices[n] for n in timed)
        self.recorded, self.total = tuple(self.matrices[n] for n in recorded), self.matrices[total]

    @property
    def digest(self) -> str:
        """A name for the content."""
        stages = [s.digest if isinstance(s, Program) else repr(s) for s in self.stages]
        ports = repr((self.matrices, self.once, self.timed, self.recorded, self.total))
        return hashlib.sha256("\n".join(["sweep", *stages, ports]).encode()).hexdigest()

    @property
    def operations(self) -> int:
        """Arithmetic operations at a knot."""
        return sum(
            s.operations if isinstance(s, Program) else sum(p.operations for p in s)
            for s in self.stages
            if not isinstance(s, Copy)
        )


def lower_sweep(program: SweepProgram, options: Options, modules: Modules) -> Needs:
    """Write the modules: chunks and products of all stages, and a driver with loops over tiles and time."""
    layout, shape = Layout(max(options.lanes, options.register)), options.shape
    slots = {n: layout.port(n, port.size) for n, port in program.matrices.items()}
    plans, calls, names, products = list[Schedule](), list[str](), list[str](), 0
    for k, stage in enumerate(program.stages):
        prefix = f"stage{k}_"
        if isinstance(stage, Program):
            plan = schedule(fuse(stage), options.chunk, options.held, layout, "")
            write_chunks(plan, prefix, options, modules)
            plans.append(plan)
            calls += step_calls(plan, shape, options.register, prefix)
            names += chunk_names(plan, prefix)
        elif isinstance(stage, Copy):
            calls += _copied(prefix, slots[stage.to], slots[stage.source], program.matrices[stage.to].size, shape.bytes)
        else:
            modules.append(product_module(stage, program.matrices, slots, tile_of(options), prefix))
            calls.append(f"  call void @{prefix}(ptr %ws, ptr %ws)")
            names.append(prefix)
            products += sum(p.operations for p in stage)
    workspace = -(-layout.size * shape.bytes // 64) * 64
    inputs, outputs = (*program.once, *program.timed), (*program.recorded, program.total)
    frame = Frame(inputs, outputs, (*places_of(layout, inputs), *places_of(layout, outputs)), shape, workspace)
    cost = cost_of(plans, (*program.timed, *program.recorded)) + products
    modules.append(time_driver(frame, len(program.timed), {"start": [], "step": calls, "blend": []}, names, cost))
    modules.append(object_module(Frame((), (), (), shape, workspace)))
    write_shared(options, modules)
    return Needs(workspace, cost)


def _copied(tag: str, to: int, source: int, count: int, size: int) -> list[str]:
    """The call that copies so many slots of the workspace, of this size in bytes."""
    arguments = f"ptr align {size} %{tag}t, ptr align {size} %{tag}s, i64 {size * count}, i1 false"
    return [
        f"  %{tag}t = getelementptr i8, ptr %ws, i64 {size * to}",
        f"  %{tag}s = getelementptr i8, ptr %ws, i64 {size * source}",
        f"  call void @llvm.memcpy.p0.p0.i64({arguments})",
    ]


class SweepKernel(TimedKernel):
    """A sweep as native code."""

    program: SweepProgram

    def _lower(self, options: Options, modules: Modules) -> Needs:
        return lower_sweep(self.program, options, modules)

    def __call__(self, knots: int, problems: int, inputs: Mapping[str, Array], lanes: int) -> dict[str, Array]:
        """Run over all knots of all problems.

        `inputs` has (problems, ...) for fixed matrices and the state, (problems, knots, ...) for timed ones; the first
        axes may be missing where all are equal. Results are (problems, knots, ...) for what is recorded, and the total
        (problems, ...).
        """
        p, table, kept, size = self.program, [knots, 1], list[Array](), self.dtype.itemsize
        found = {port.name: np.empty((problems, knots, *port.shape), self.dtype) for port in p.recorded}
        found[p.total.name] = np.empty((problems, *p.total.shape), self.dtype)
        given = (p.once, inputs, False), (p.timed, inputs, True), (p.recorded, found, True), ((p.total,), found, False)
        for ports, arrays, timed in given:
            for port in ports:
                x = in_rows(arrays[port.name], port.shape, self.dtype)
                kept.append(x)
                start, strides, axes = address(x), x.strides, x.ndim - len(port.shape)
                row, step = strides[0] if axes > timed else 0, strides[axes - 1] if timed and axes else 0
                if p.backward:
                    start, step = start + step * (knots - 1), -step
                table += (start, row // size, step // size, 1 if timed else knots)
        form = self.form(lanes)
        Task(form, np.array(table, np.int64), kept, problems, form.image.cost * knots, self.threads).run()
        return found


def in_rows(x: Array, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Arrays of this shape behind other axes, each of them contiguous."""
    if x.dtype == dtype and x.flags.c_contiguous:
        return x
    expected = dtype.itemsize
    for size, stride in zip(shape[::-1], x.strides[::-1], strict=False):
        if stride != expected and size > 1:
            return copied(x, dtype)
        expected *= size
    return typed(x, dtype)
