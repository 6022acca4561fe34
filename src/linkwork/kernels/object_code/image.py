"""From a program to an image: the object code of its chunks and its driver, ready to cache or to link."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from linkwork.kernels.codegen.driver import (
    Frame,
    attempt,
    chunk_names,
    driver_module,
    iteration_loop,
    left_out,
    row_of,
    second_attempt,
    step_calls,
    whole_step,
)
from linkwork.kernels.codegen.gathered_states import TILES
from linkwork.kernels.codegen.gathering_driver import gathering_driver, with_lists
from linkwork.kernels.codegen.lane_transpose import transposition_module
from linkwork.kernels.codegen.lower import ATTRIBUTES, Shape, lower_chunk
from linkwork.kernels.codegen.product_code import Tile, product_module
from linkwork.kernels.codegen.python_calls import object_module
from linkwork.kernels.codegen.symmetric_product_code import square_module
from linkwork.kernels.codegen.target import Target
from linkwork.kernels.codegen.vector_math import sincos_function
from linkwork.kernels.object_code.compile import emitter
from linkwork.kernels.programs.fuse import fuse
from linkwork.kernels.programs.garbage import collector_paused
from linkwork.kernels.programs.iterate import IterativeProgram
from linkwork.kernels.programs.output_stores import ZEROS, with_puts
from linkwork.kernels.programs.products import ProductProgram
from linkwork.kernels.programs.program import Port, Program
from linkwork.kernels.programs.schedule import Code, Layout, Schedule, schedule
from linkwork.kernels.programs.symmetric_products import Squared

SINCOS, MOVED = 40, 2
"""Instructions for the sines and cosines of a register, and for moving one number of every lane in or out."""


LARGE = 700 * 1024
"""Bytes of matrices above which outputs of a batch are moved out as soon as they are complete, and others take their
place: more than that, with the code, does not fit the second-level cache of most processors (a tenth of the time of a
humanoid on four limbs; below, moving all in the end is as fast or up to 5 % faster)."""


@dataclass(frozen=True)
class Options:
    """How to compile: so many lanes of this type, ``chunk`` operations per function, for this target.

    Without ``loop``, loops that are rarely needed are missing (see :mod:`linkwork.kernels.programs.iterate`).
    """

    scalar: str  # "double" or "float"
    lanes: int
    target: Target
    chunk: int = 1500
    loop: bool = True

    @property
    def shape(self) -> Shape:
        return Shape(self.scalar, self.lanes)

    @property
    def register(self) -> int:
        """How many numbers a vector register of the target holds; one of 256 bits at most for single states.

        Some hundred products in registers of 512 bits lower a processor's clock, by a fifth on Ice Lake: the rest of
        the program loses several times what the sines of one state gain.
        """
        lanes = self.target.lanes("float64" if self.scalar == "double" else "float32")
        return lanes if self.lanes > 1 else min(lanes, 32 // self.shape.size)

    @property
    def held(self) -> int:
        """How many values a chunk holds in registers at once; the rest is for the compiler's temporaries."""
        return self.target.registers - 4


@dataclass(frozen=True)
class Image:
    """Compiled code, not yet in executable memory."""

    objects: tuple[bytes, ...]
    workspace: int  # bytes
    lanes: int
    cost: int  # instructions per tile of that many states
    tiles: int = 1  # how many of these a thread takes at a time, if there are enough


def build(program: Program | IterativeProgram | ProductProgram, options: Options) -> Image:
    """Fuse, schedule and lower; modules are compiled as soon as they are written."""
    with emitter(options.target) as modules, collector_paused():
        if isinstance(program, ProductProgram) and program.is_faster_straight(options.lanes):
            program = program.unrolled()
        if isinstance(program, IterativeProgram):
            needs = lower_iterative(program, options, modules)
        elif isinstance(program, ProductProgram):
            needs = lower_products(program, options, modules)
        else:
            needs = lower(program, options, modules)
        return Image(tuple(modules.objects()), needs.workspace, options.lanes, needs.cost, needs.tiles)


class Modules(Protocol):
    """A sink for IR modules: a list, or something that compiles them."""

    def append(self, module: str, /) -> None: ...


class Needs(NamedTuple):
    """Bytes of workspace, instructions per tile, tiles that a thread takes at a time."""

    workspace: int
    cost: int
    tiles: int = 1


def lower(program: Program, options: Options, modules: Modules) -> Needs:
    """Write the modules of a straight program: its chunks and the driver that calls them."""
    if options.lanes == 1 and program.squared is not None and program.squared.fills(options.register):
        return lower_squared(program, program.squared, options, modules)
    layout, fused, shape = Layout(max(options.lanes, options.register)), fuse(program), options.shape
    blanks: tuple[frozenset[int], ...] = ()
    outlet = None
    if options.lanes > 1:
        fused, outlet = with_puts(fused, shape.lanes, shape.size, layout.region)
    else:
        blanks = tuple(left_out([fused.nodes[v] in ZEROS for v in result]) for result in fused.results)
    plan = schedule(fused, options.chunk, options.held, layout, keep=False, blanks=blanks, outlet=outlet)
    workspace = -(-layout.size * shape.bytes // 64) * 64
    places = (*places_of(layout, program.inputs), *plan.outputs)
    frame = Frame(program.inputs, program.outputs, places, shape, workspace, blanks, outlet)
    calls = step_calls(plan, shape, options.register, "chunk")
    write_chunks(plan, "chunk", options, modules)
    cost = cost_of([plan], (*program.inputs, *program.outputs))
    modules.append(driver_module(frame, calls, chunk_names(plan, "chunk"), cost))
    modules.append(object_module(frame))
    write_shared(options, modules)
    return Needs(workspace, cost)


def lower_squared(program: Program, squared: Squared, options: Options, modules: Modules) -> Needs:
    """Write the modules of a program for one state that ends in a symmetric product."""
    layout, shape = Layout(max(options.lanes, options.register)), options.shape
    start, vectors = squared.packed(options.register)
    fused, factors = fuse(start), len(start.outputs) - 3
    blanks = [left_out([fused.nodes[v] in ZEROS for v in result]) for result in fused.results[:factors]]
    plan = schedule(fused, options.chunk, options.held, layout, "", keep=False, blanks=[*blanks, *[frozenset()] * 3])
    workspace = -(-layout.size * shape.bytes // 64) * 64
    outputs = [*plan.outputs[:factors]]
    outputs.insert(squared.port, ())
    blanks.insert(squared.port, frozenset())
    k = len(program.inputs) + squared.port
    places = (*places_of(layout, program.inputs), *outputs)
    frame = Frame(program.inputs, program.outputs, places, shape, workspace, tuple(blanks), written=(k,))
    write_chunks(plan, "start", options, modules)
    register = Shape(options.scalar, options.register)
    across = min((options.target.registers - 2) // (register.lanes + 1), 3)
    modules.append(square_module(squared, layout.named, vectors, register, across))
    calls = step_calls(plan, shape, options.register, "start")
    calls += [row_of(shape, k, "%row"), f"  %odd{k} = call i1 @square(ptr %u{k}, ptr %ws)"]
    cost = cost_of([plan], program.inputs) + squared.products
    modules.append(driver_module(frame, calls, chunk_names(plan, "start"), cost))
    modules.append(object_module(frame))
    write_shared(options, modules)
    return Needs(workspace, cost)


def lower_iterative(program: IterativeProgram, options: Options, modules: Modules) -> Needs:
    """Write the modules of an iterative program: the chunks of its parts, and a driver with the loop.

    All parts share one workspace: inputs and state are found there by name. An iteration writes its results
    beside the state (names with a prime); ``blend`` copies them to the state in the lanes that are still active.
    """
    layout, gathers = (
        Layout(max(options.lanes, options.register)),
        program.uneven and options.loop and options.lanes > 1,
    )
    primes = {"iterate": "'", "finish": "''"}
    plans: dict[str, Schedule] = {}
    parts = program.parts() if options.loop else program.first_parts()
    if gathers:
        parts = parts | program.attempt_parts() | (program.second_attempt_parts() if program.further else {})
    for name, part in parts.items():
        prime = primes.get(name.split("_")[0], "")
        plans[name] = schedule(fuse(part), options.chunk, options.held, layout, prime)
        write_chunks(plans[name], name, options, modules)
    workspace = -(-layout.size * options.shape.bytes // 64) * 64
    primed = [port if port in program.counted else Port(port.name + "''", port.shape) for port in program.outputs]
    places = (*places_of(layout, program.inputs), *places_of(layout, primed))
    frame = Frame(program.inputs, program.outputs, places, options.shape, workspace)
    calls = {name: step_calls(plan, options.shape, options.register, name) for name, plan in plans.items()}
    names = [chunk for name, plan in plans.items() for chunk in chunk_names(plan, name)]
    cost = cost_of(plans.values(), (*program.inputs, *program.outputs))
    if "iterate" in plans:

        def finish(again: str) -> list[str]:
            return step_calls(plans["finish"], options.shape, options.register, "finish", again)

        further, slots = program.letters if options.loop else (), layout.named
        if gathers:
            calls["attempt"] = attempt(options.shape, calls, slots, finish)
            if program.further:
                calls["second_attempt"] = second_attempt(options.shape, calls, slots, finish, further)
            calls["whole"] = whole_step(options.shape, calls, slots, finish, further)
            modules.append(gathering_driver(frame, calls, slots, names, cost))
            frame = with_lists(frame)
        else:
            steps = iteration_loop(options.shape, calls, slots, finish, further=further)
            modules.append(driver_module(frame, steps, names, cost, calls["start"]))
    else:
        modules.append(driver_module(frame, [call for part in calls.values() for call in part], names, cost))
    modules.append(object_module(frame))
    write_shared(options, modules)
    return Needs(frame.workspace, cost, TILES if gathers else 1)


def lower_products(program: ProductProgram, options: Options, modules: Modules) -> Needs:
    """Write the modules of a program that ends in products: its start, and the products."""
    layout, shape = Layout(max(options.lanes, options.register)), options.shape
    idle = program.unstored
    start = schedule(fuse(program.start), options.chunk, options.held, layout, "", keep=False, unstored=idle)
    large = (sum(port.size for port in program.matrices.values()) - sum(map(len, idle))) * shape.bytes > LARGE
    parts = program.parts(early=large and options.lanes > 1)
    slots = program.places(layout, parts)
    workspace = -(-layout.size * shape.bytes // 64) * 64
    write_chunks(start, "start", options, modules)
    calls: list[str | int] = [*step_calls(start, shape, options.register, "start")]
    for k, part in enumerate(parts):
        modules.append(product_module(part.products, program.matrices, slots, tile_of(options), f"products{k}"))
        calls += [f"  call void @products{k}(ptr %ws, ptr %ws)", *part.done]
    places = (*places_of(layout, program.inputs), *places_of(layout, program.outputs))
    frame = Frame(program.inputs, program.outputs, places, shape, workspace)
    cost = cost_of([start], (*program.inputs, *program.outputs)) + sum(p.operations for p in program.products)
    modules.append(
        driver_module(frame, calls, [*chunk_names(start, "start"), *(f"products{k}" for k in range(len(parts)))], cost)
    )
    modules.append(object_module(frame))
    write_shared(options, modules)
    return Needs(workspace, cost)


def tile_of(options: Options) -> Tile:
    """How products of matrices are computed."""
    lanes = options.target.lanes("float64" if options.scalar == "double" else "float32")
    return Tile.of(options.shape, lanes, options.target.registers)


def places_of(layout: Layout, ports: Sequence[Port]) -> tuple[tuple[int, ...], ...]:
    """The slots of ports that have a region of their own."""
    return tuple(tuple(range(layout.named[p.name], layout.named[p.name] + p.size)) for p in ports)


def write_chunks(plan: Schedule, prefix: str, options: Options, modules: Modules) -> None:
    """The modules of a schedule's code."""
    for k, step in enumerate(plan.steps):
        if isinstance(step, Code):
            modules.append(lower_chunk(plan, step, f"{prefix}{k}", options.shape))


def write_shared(options: Options, modules: Modules) -> None:
    """The modules that all kernels of a shape have: a process compiles each of them once."""
    modules.append(transposition_module(options.shape))
    modules.append(sine_module(options))


def sine_module(options: Options) -> str:
    return sincos_function(options.scalar, options.register, options.target.has_fma) + ATTRIBUTES


def cost_of(plans: Iterable[Schedule], ports: Iterable[Port] = ()) -> int:
    """Instructions that a tile takes, some two per nanosecond.

    Its code, its sines, the ports that it moves.
    """
    steps = [step for plan in plans for step in plan.steps]
    code = sum(len(step.order) if isinstance(step, Code) else SINCOS * step.count for step in steps)
    return 1 + code + MOVED * sum(port.size for port in ports)
