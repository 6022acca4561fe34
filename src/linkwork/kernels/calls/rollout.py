"""Programs that step through time: a whole horizon inside one native loop.

One program is the step, a straight line or one with a loop of its own (iterate.py). Its ports are distinguished by
name: *state* ports are inputs and outputs, *timed* inputs change with time (each value is held for some steps), all
other inputs are fixed over the horizon, and all other outputs (forces, say) are *extras*. *Carried* ports are handed
from step to step like the state but are not part of it (forces to start from, the largest error so far): they are not
recorded, only their last values are returned, and they do not count in the length of a state. Where none is given,
what one step from zero gives is where they start. The state stays in the workspace of its tile; only the timed inputs
and, every so many steps, the recorded outputs are transposed.

Every lane fails on its own. A lane *fails* when a step gives something that is not a number, or a state whose length
exceeds the input ``limit``: it then keeps its last valid state, its extras are zero, and other lanes are not affected.
``survived`` counts the steps that each lane took.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from linkwork import chunked_arrays as interruptible
from linkwork.errors import InputError, KernelError, listing
from linkwork.forks import BUSY
from linkwork.kernels.cache import object_cache as cache
from linkwork.kernels.calls.arrays import Array, address
from linkwork.kernels.calls.executable import Executable, loaded
from linkwork.kernels.calls.interruptible_run import Task
from linkwork.kernels.calls.thread_pool import nothing
from linkwork.kernels.codegen.driver import Frame, attempt, chunk_names, step_calls, whole_step
from linkwork.kernels.codegen.python_calls import object_module
from linkwork.kernels.codegen.rollout_blocks import Block, block_driver
from linkwork.kernels.codegen.target import Target
from linkwork.kernels.codegen.time_driver import time_driver
from linkwork.kernels.object_code.compile import emitter
from linkwork.kernels.object_code.image import (
    Image,
    Modules,
    Needs,
    Options,
    cost_of,
    places_of,
    write_chunks,
    write_shared,
)
from linkwork.kernels.programs.fuse import fuse
from linkwork.kernels.programs.garbage import collector_paused
from linkwork.kernels.programs.iterate import EXCESS, IterativeProgram
from linkwork.kernels.programs.program import Node, Port, Program
from linkwork.kernels.programs.schedule import Layout, Schedule, schedule
from linkwork.lazy import cached_property
from linkwork.system.cores import cores

_ONE = (1,)
INNER = "step_"
PRIMED = (INNER + "iterate", INNER + "finish")
"""Programs whose results are written beside the state, under names with a prime, until `blend` copies them: a step, or
these parts of its loops."""

EXPECTED = 8
"""Iterations of a loop within a step, as far as its time is estimated."""

COUNTED = ("iterations", "residual")
"""Outputs of a loop within a step that are not recorded."""

LIMIT, ALIVE, SURVIVED = Port("limit", _ONE), Port("alive", _ONE), Port("survived", _ONE)
LEFT = Port("left", _ONE)


class RolloutProgram:
    """A step, the names of its state, of its timed inputs and of what is carried; see the module's text."""

    def __init__(
        self,
        step: Program | IterativeProgram,
        state: Sequence[str],
        timed: Sequence[str],
        carried: Sequence[str] = (),
    ) -> None:
        state = (*state, *carried)
        self.step, self.name = step, step.name
        inputs, outputs = ({p.name: p for p in ports} for ports in (step.inputs, step.outputs))
        self.iterates = outputs.keys() >= {*COUNTED}
        outputs = {name: port for name, port in outputs.items() if name not in COUNTED}
        for name in state:
            if name not in inputs or name not in outputs or inputs[name].shape != outputs[name].shape:
                raise KernelError(f"'{step.name}': state '{name}' is not an input and an output of one shape")
        for name in timed:
            if name not in inputs or name in state:
                raise KernelError(f"'{step.name}': '{name}' is not an input that can change; valid: {listing(inputs)}")
        reserved = {p.name for p in (LIMIT, ALIVE, SURVIVED)} & (inputs.keys() | outputs.keys())
        if reserved:
            raise KernelError(f"'{step.name}': the names {listing(sorted(reserved))} belong to the loop")
        self.state = tuple(inputs[n] for n in state)
        self.carried = tuple(inputs[n] for n in carried)
        self.timed = tuple(inputs[n] for n in timed)
        self.fixed = tuple(p for p in step.inputs if p.name not in {*state, *timed}) + (LIMIT,)
        self.extras = tuple(p for p in outputs.values() if p.name not in state)
        self.settled = tuple(Port(p.name + "''", p.shape) for p in self.extras)  # an input may have the same name

    def frames(self, records: int) -> dict[Port, int]:
        """How many values of each port are returned: all records, or the last of what is carried."""
        return {p: 1 if p in self.carried else records for p in (*self.state, *self.extras)}

    @property
    def digest(self) -> str:
        """A name for the content."""
        ports = repr((self.step.inputs, self.step.outputs, self.state, self.timed, self.carried))
        return hashlib.sha256(f"rollout {self.step.digest} {ports}".encode()).hexdigest()

    def parts(self, whole: bool = True, blocks: bool = False) -> dict[str, Program]:
        """The programs of the loop: `start` once, then `step` and `blend`, which decides which lanes fail.

        In place of a step with a loop of its own there are its parts, with a prefix. If it is not the `whole` step,
        lanes that would need the rest of it fail. In `blocks` there are attempts, too (rollout_blocks.py): after
        these, `hold` lets the lanes that are left wait.
        """
        start = Program([], [ALIVE, SURVIVED], [("const", 1.0), ("const", 0.0)], [[0], [1]], "start")
        step = getattr(self.step, "whole", self.step)
        if not isinstance(step, IterativeProgram):
            return {"start": start, "step": step, "blend": self._blend()}
        parts = (step.parts() if whole else step.first_parts()) | (step.attempt_parts() if blocks else {})
        ends = {"blend": self._blend(fails=not whole)} | ({"hold": self._blend(waits=True)} if blocks else {})
        return {"start": start, **{INNER + name: part for name, part in parts.items()}, **ends}

    def _blend(self, fails: bool = False, waits: bool = False) -> Program:
        """The state after a step in lanes that take it; those that are left fail, or wait as they were."""
        inputs, nodes = [ALIVE, SURVIVED, LIMIT], list[Node](("input", k, 0) for k in range(3))
        fresh: dict[str, list[int]] = {}
        for port in (*self.state, *self.extras):
            fresh[port.name] = [len(nodes) + e for e in range(port.size)]
            nodes += [("input", len(inputs), e) for e in range(port.size)]
            inputs.append(Port(port.name + "'", port.shape))

        def add(*node: object) -> int:
            nodes.append(node)
            return len(nodes) - 1

        bounded = [port for port in self.state if port not in self.carried]
        others = [port for port in (*self.state, *self.extras) if port not in bounded]
        length = [add("mul", n, n) for port in bounded for n in fresh[port.name]]
        length += [add("sub", n, n) for port in others for n in fresh[port.name]]  # zero, if it is a number
        while len(length) > 1:
            length = [
                add("add", *pair) if len(pair) == 2 else pair[0]
                for pair in (length[k : k + 2] for k in range(0, len(length), 2))
            ]
        taken = alive = add("and", 0, add("lt", length[0], add("mul", 2, 2)))
        waiting = []
        if fails or waits:
            left = add("input", len(inputs), 0)
            inputs.append(LEFT)
            taken = alive = add("and", alive, add("not", left))
        if waits:
            waiting = [add("and", 0, left)]
            alive = add("or", taken, *waiting)
        results = [[alive], [add("add", 1, taken)], *([waiting] if waits else [])]
        for port in self.state:
            old = [add("input", len(inputs), e) for e in range(port.size)]
            inputs.append(port)
            results.append([add("select", taken, n, o) for n, o in zip(fresh[port.name], old, strict=True)])
        for port in self.extras:
            results.append([add("if_else_zero", taken, n) for n in fresh[port.name]])
        outputs = [ALIVE, SURVIVED, *([LEFT] if waits else []), *self.state, *self.settled]
        return Program(inputs, outputs, nodes, results, "blend")


def lower_rollout(program: RolloutProgram, options: Options, modules: Modules) -> Needs:
    """Write the modules: chunks of the parts, and a driver with loops over tiles and time."""
    layout, shape = Layout(max(options.lanes, options.register)), options.shape
    inputs = (*program.fixed, *program.state, *program.timed)
    outputs = (*program.state, *program.settled, SURVIVED)
    blocks = program.iterates and options.loop and options.lanes > 1
    for port in (*program.state, ALIVE, SURVIVED) if blocks else ():
        layout.port(port.name, port.size)
    kept = layout.size * shape.bytes
    plans: dict[str, Schedule] = {}
    for name, part in program.parts(options.loop, blocks).items():
        prime = "'" if name == "step" or name.startswith(PRIMED) else ""
        plans[name] = schedule(fuse(part), options.chunk, options.held, layout, prime)
        write_chunks(plans[name], name, options, modules)
        if (excess := EXCESS.name + "'") in layout.named:  # as loops without a loop over time have it
            layout.named[excess + "'"] = layout.named[excess]
    for port in inputs:
        layout.port(port.name, port.size)
    tile = -(-layout.size * shape.bytes // 64) * 64
    block = Block(kept, tile, shape) if blocks else None
    workspace = tile if block is None else block.workspace
    frame = Frame(inputs, outputs, (*places_of(layout, inputs), *places_of(layout, outputs)), shape, workspace)
    calls = {name: step_calls(plan, shape, options.register, name) for name, plan in plans.items()}
    names = [chunk for name, plan in plans.items() for chunk in chunk_names(plan, name)]
    cost = cost_of(plans.values())
    if "step" not in plans:
        inner = {name.removeprefix(INNER): lines for name, lines in calls.items() if name.startswith(INNER)}
        further = [name.removeprefix("prepare") for name in inner if name.startswith("prepare")]

        def finish(again: str) -> list[str]:
            return step_calls(plans[INNER + "finish"], shape, options.register, INNER + "finish", again)

        calls["step"] = whole_step(shape, inner, layout.named, finish, further)
        cost += EXPECTED * cost_of([plans[INNER + "iterate"]])
    if block is not None:
        calls["attempt"] = [*attempt(shape, inner, layout.named, finish), *calls["hold"]]
        calls["whole"] = [*calls["step"], *calls["blend"]]
        fixed, timed = len(program.fixed), len(program.timed)
        modules.append(block_driver(frame, block, fixed, timed, calls, layout.named, names, cost))
    else:
        modules.append(time_driver(frame, len(program.timed), calls, names, cost))
    modules.append(object_module(Frame((), (), (), shape, workspace)))
    write_shared(options, modules)
    return Needs(workspace, cost, 1 if block is None else block.tiles)


class TimedKernel:
    """A program with a loop over time as native code, for one state or a batch.

    ``threads`` splits batches and never changes a result.
    """

    def __init__(
        self,
        program: Any,
        lanes: int | None = None,
        dtype: str = "float64",
        threads: int | None = None,
        target: Target | None = None,
    ) -> None:
        self.program, self.dtype = program, np.dtype(dtype)
        self.target = target or Target.host()
        self.lanes = self.target.lanes(dtype) if lanes is None else lanes
        self.threads = cores() if threads is None else threads
        if self.threads < 1:
            raise InputError(f"threads={threads}: at least one is needed")
        self._forms: dict[tuple[int, bool], Executable] = {}

    def form(self, lanes: int, whole: bool = True) -> Executable:
        """The executable with this many lanes: from memory, from the disk cache, or compiled now.

        Unless the ``whole`` is asked for, loops that are rarely needed may be missing.
        """
        form = self._forms.get((lanes, True)) or (None if whole else self._forms.get((lanes, False)))
        return form or self._made(lanes, whole)

    def _made(self, lanes: int, whole: bool) -> Executable:
        """The same from the disk cache, or compiled now."""
        with BUSY:
            for loop in (True,) if whole else (True, False):
                options = Options("double" if self.dtype == np.float64 else "float", lanes, self.target, loop=loop)
                key = cache.key_of(self.program.digest, options)
                form = self._forms.get((lanes, loop)) or loaded(key, ())
                if form is not None:
                    break
            else:
                with emitter(options.target) as modules, collector_paused():
                    needs = self._lower(options, modules)
                    image = Image(tuple(modules.objects()), needs.workspace, lanes, needs.cost, needs.tiles)
                cache.save(key, image)
                form = Executable(image, ())
            self._forms[lanes, loop] = form
            return form

    def _lower(self, options: Options, modules: Modules) -> Needs:
        """Write the modules of the program."""
        raise NotImplementedError


class RolloutKernel(TimedKernel):
    """A rollout as native code.

    Loops of a step that are rarely needed are compiled when a lane needs them; all is then computed again.
    """

    program: RolloutProgram
    _all = False

    def _lower(self, options: Options, modules: Modules) -> Needs:
        return lower_rollout(self.program, options, modules)

    def __call__(
        self, steps: int, every: int, inputs: Mapping[str, ArrayLike], batch: int, look: Callable[[], None] = nothing
    ) -> dict[str, Array]:
        """Run, and ``look()`` every few milliseconds.

        ``inputs`` has (n,) or (B, n) for fixed and state ports, (K, n) or (B, K, n) for timed ones. K values of a timed
        input are held for steps / K steps each. The results are (B, steps / every, n) for each state and extra,
        (B, 1, n) for what is carried, and ``survived`` (B,).
        """
        start = {port.name: np.zeros(port.size) for port in self.program.carried if port.name not in inputs}
        if start:
            now = {port.name: np.asarray(inputs[port.name])[..., :1, :] for port in self.program.timed}
            first = self._run(1, 1, {**inputs, **now, **start}, batch, look)
            start = {name: first[name][:, 0] for name in start}
        return self._run(steps, every, {**inputs, **start}, batch, look)

    def _run(
        self, steps: int, every: int, inputs: Mapping[str, ArrayLike], batch: int, look: Callable[[], None]
    ) -> dict[str, Array]:
        """Results of steps from all states given."""
        program, table = self.program, [steps, every]
        kept = []
        for port in (*program.fixed, *program.state):
            x, stride = self._rows(inputs[port.name], 1)
            kept.append(x)
            table += [address(x), stride, 0, steps]
        for port in program.timed:
            x, stride = self._rows(inputs[port.name], 2)
            kept.append(x)
            table += [address(x), stride, port.size, steps // x.shape[-2]]
        results: dict[str, Array] = {}
        for name, size, recorded in self._recorded:
            frames = steps // every if recorded else 1
            y = results[name] = np.empty((batch, frames, size), self.dtype)
            table += [address(y), frames * size, size if recorded else 0, every]
        survived = np.empty((batch, 1), self.dtype)
        table += [address(survived), 1, 0, steps]
        packed, kept = np.array(table, np.int64), [*kept, *results.values(), survived]

        def run(form: Executable) -> None:
            Task(form, packed, kept, batch, form.image.cost * steps, self.threads).run(look)

        if batch:
            lanes, rarely = 1 if batch == 1 else self.lanes, program.step.rarely
            run(form := self.form(lanes, whole=not rarely or self._all))
            # a lane that failed may need loops that are not there
            if form is not self._forms.get((lanes, True)) and (survived < steps).any():
                self._all = True
                run(self.form(lanes))
        return {**results, "survived": survived[:, 0].astype(int)}

    @cached_property
    def _recorded(self) -> list[tuple[str, int, bool]]:
        """Outputs: name, size, and whether all records are returned; of what is carried, the last is."""
        program = self.program
        return [(p.name, p.size, p not in program.carried) for p in (*program.state, *program.extras)]

    def _rows(self, values: ArrayLike, ndim: int) -> tuple[Array, int]:
        """An array of contiguous rows, and how many elements they are apart."""
        x = interruptible.packed(np.asarray(values), self.dtype)
        return x, math.prod(x.shape[1:]) if x.ndim > ndim else 0
