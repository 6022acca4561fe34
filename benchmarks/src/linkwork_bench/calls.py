"""`linkwork bench calls`: the cost of calls from Python for one robot, beside Pinocchio's bindings.

Each function is measured three ways, in turns: called (`f(q, v)`), bound to fixed buffers (`f.bind()`), and its machine
code alone, in a native loop over states, one at a time. The cost of a call is its time less that of the machine code.
Inputs that are not arrays of the kernel's type are a table of their own: bare numbers, lists, arrays to be converted.
Calls in JAX and PyTorch are beside them where these are installed (frameworks.py).
"""

from __future__ import annotations

import json as written
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

import linkwork as lw
from linkwork.functions.function import Function
from linkwork.kernels.calls.kernel import Kernel
from linkwork_bench.frameworks import overheads

LOOP, STATES, ROUNDS = 1000, 50, 21
"""Calls in a round, states of a native loop (so few that results stay in the cache), rounds for a median."""

CALL, BOUND, PEER = 1.0, 0.3, 2.0
"""Targets: us of a call and of a bound call beyond the machine code, and how much faster than Pinocchio."""


@dataclass
class Cost:
    """Medians in us for one state: the machine code, a call, a bound call.

    Pinocchio's, where it has the same.
    """

    function: str
    method: str
    kernel: float
    call: float
    bound: float
    pinocchio: float | None = None

    @property
    def beyond(self) -> tuple[float, float]:
        """The cost of a call and of a bound call beyond the machine code."""
        return self.call - self.kernel, self.bound - self.kernel


def standing(robot: str, feet: list[str]) -> tuple[lw.Model, lw.Model]:
    """A robot with a free base, without and with its feet on the ground."""
    free = lw.load(robot, base="free", passive=False)
    return free, free.with_constraints(*(lw.surface(foot) for foot in feet))


def functions(free: lw.Model, held: lw.Model) -> dict[str, tuple[Function, tuple[np.ndarray, ...]]]:
    """One of each factory, with inputs for one state."""
    rng = np.random.default_rng(0)
    q, v, tau = free.neutral(), 0.1 * rng.normal(size=free.nv), rng.normal(size=free.nv)
    b = rng.normal(size=held.rows)
    joints = [link.joint_name for link in free.links[1:]]
    a = lw.forward_dynamics(held, method="kkt", backend="numpy")(q, v, tau).a
    return {
        "forward_dynamics": (lw.forward_dynamics(free), (q, v, tau)),
        "forward_dynamics, two feet": (lw.forward_dynamics(held), (q, v, tau)),
        "forward_dynamics, direct": (lw.forward_dynamics(held, method="ltl"), (q, v, tau)),
        "impulse": (lw.impulse(held), (q, v)),
        "inverse_dynamics": (lw.inverse_dynamics(free), (q, v, tau)),
        "constrained_inverse_dynamics": (lw.constrained_inverse_dynamics(held, joints), (q, v, a)),
        "mass_matrix": (lw.mass_matrix(free), (q,)),
        "forward_kinematics": (lw.forward_kinematics(free), (q,)),
        "constraint_jacobian": (lw.constraint_jacobian(held), (q,)),
        "constraint_error": (lw.constraint_error(held), (q, v)),
        "delassus": (lw.delassus(held), (q,)),
        "operational_space_inertia": (lw.operational_space_inertia(held), (q, b)),
    }


def peers(free: lw.Model, feet: list[str]) -> dict[str, Callable[[], Any]]:
    """The same by Pinocchio's bindings, where it has the same function; nothing if it is not installed."""
    try:
        import pinocchio as pin
    except ImportError:
        return {}
    from linkwork.interop import pinocchio, to_pinocchio

    model = to_pinocchio(free)
    data, at = model.createData(), pinocchio(free, model)
    q = at.q_to(free.neutral())
    ours, theirs = lw.mass_matrix(free)(free.neutral()).M, pin.crba(model, data, q)
    if not np.isclose(np.trace(ours), np.trace(theirs)):
        raise RuntimeError("Pinocchio's mass matrix differs")
    frames = [model.getFrameId(foot) for foot in feet]

    def kinematics() -> None:
        pin.forwardKinematics(model, data, q)
        pin.updateFramePlacements(model, data)

    def jacobians() -> list[np.ndarray]:
        pin.computeJointJacobians(model, data, q)
        pin.updateFramePlacements(model, data)
        return [pin.getFrameJacobian(model, data, frame, pin.LOCAL) for frame in frames]

    return {
        "mass_matrix": lambda: pin.crba(model, data, q),
        "forward_kinematics": kinematics,
        "constraint_jacobian": jacobians,
    }


def native(f: Function, inputs: tuple[np.ndarray, ...]) -> Callable[[], Any]:
    """The machine code on STATES states, one at a time, in one call."""
    settings = {} if f.prox is None else {n: [x] for n, x in f.prox.controls.items()}
    bound = Kernel(f.program, lanes=1, threads=1, defaults=f.defaults, settings=settings).bind(STATES)
    for buffer, x in zip(bound.inputs, inputs, strict=False):
        buffer[...] = x
    return bound


def measured(f: Function, inputs: tuple[np.ndarray, ...], peer: Callable[[], Any] | None, rounds: int) -> list[float]:
    """Medians in us: the machine code, a call, a bound call, and the peer's if there is one."""
    one, bound = native(f, inputs), f.bind()
    for buffer, x in zip(bound.inputs, inputs, strict=False):
        buffer[...] = x
    repeated: list[Callable[[], Any]] = [lambda: f(*inputs), bound, *([] if peer is None else [peer])]
    for call in repeated:
        call()
    took: list[list[float]] = [[] for _ in range(1 + len(repeated))]
    for _ in range(rounds):
        took[0].append(_timed(one, LOOP // STATES))
        for spent, call in zip(took[1:], repeated, strict=True):
            spent.append(_timed(call, LOOP))
    return [1e6 * float(np.median(spent)) / LOOP for spent in took]


def _timed(call: Callable[[], Any], times: int) -> float:
    """Processor time of this thread, without other work on the machine."""
    begin = time.thread_time()
    for _ in range(times):
        call()
    return time.thread_time() - begin


def costs(free: lw.Model, held: lw.Model, feet: list[str], rounds: int = ROUNDS) -> list[Cost]:
    """The cost of calls of all functions."""
    others, found = peers(free, feet), []
    for name, (f, inputs) in functions(free, held).items():
        found.append(Cost(name, f.method, *measured(f, inputs, others.get(name), rounds)))
    return found


@dataclass
class Given:
    """A call with inputs of another form: us of a call, and what it takes more than one with arrays."""

    function: str
    inputs: str
    call: float
    more: float


def forms(x: np.ndarray) -> dict[str, Any]:
    """One input in other forms; a bare number only if it has one entry."""
    forms = {"list": x.tolist(), "float32": x.astype("float32"), "strided": np.repeat(x, 2)[::2]}
    bare: dict[str, Any] = {"float": float(x[0]), "numpy.float64": x[0]} if x.shape == (1,) else {}
    return {**bare, **forms}


def inputs_given(free: lw.Model, rounds: int = ROUNDS) -> list[Given]:
    """A step and forward dynamics with their last input, or all inputs, in other forms."""
    q, v = free.neutral(), np.zeros(free.nv)
    functions: list[tuple[str, Function, tuple[np.ndarray, ...]]] = [
        ("step", lw.step(free, [lw.Contact(free.links[-1].name)]), (q, v, v, np.array([1e-3]))),
        ("forward_dynamics", lw.forward_dynamics(free), (q, v, v)),
    ]
    found = []
    for name, f, inputs in functions:
        calls: dict[str, Callable[[], Any]] = {"arrays": partial(f, *inputs)}
        calls |= {
            f"{what} for {[*f.inputs][len(inputs) - 1]}": partial(f, *inputs[:-1], x)
            for what, x in forms(inputs[-1]).items()
        }
        calls["lists for all"] = partial(f, *(x.tolist() for x in inputs))
        calls["arrays by name"] = partial(f, **dict(zip(f.inputs, inputs, strict=False)))
        calls["arrays, out="] = partial(f, *inputs, out=f(*inputs))
        took = {
            what: 1e6 * float(np.median([_timed(call, LOOP) for _ in range(rounds)])) / LOOP
            for what, call in calls.items()
        }
        found += [Given(name, what, us, us - took["arrays"]) for what, us in took.items()]
    return found


def calls_command(
    robot: Annotated[str, typer.Option("--robot", help="A robot that lw.load finds.")] = "talos",
    feet: Annotated[str, typer.Option("--feet", help="Links on the ground.")] = "leg_left_6_link,leg_right_6_link",
    rounds: Annotated[int, typer.Option("--rounds", min=1, help="Rounds, of which the median counts.")] = ROUNDS,
    json: Annotated[Path | None, typer.Option("--json", help="Write every figure to this file (JSON lines).")] = None,
) -> None:
    """Calls from Python for one state, of every function, beside the machine code alone.

    Pinocchio's bindings are beside them.
    """
    from rich.console import Console
    from rich.table import Table

    names = [foot for foot in feet.split(",") if foot]
    found = costs(*standing(robot, names), names, rounds)
    table = Table(title=f"{robot}: us for one state (processor time, median of {rounds} rounds)")
    for heading in ("function", "method", "kernel", "call", "beyond", "bound", "beyond", "Pinocchio", "ratio"):
        table.add_column(heading, justify="left" if heading in ("function", "method") else "right")
    for c in found:
        call, bound = c.beyond
        theirs = ["", ""] if c.pinocchio is None else [f"{c.pinocchio:.2f}", f"{c.pinocchio / c.call:.1f}"]
        times = [f"{x:.2f}" for x in (c.kernel, c.call, call, c.bound, bound)]
        table.add_row(c.function, c.method, *times, *theirs)
    console = Console(width=None if sys.stdout.isatty() else 120)
    console.print(table)
    worst, worst_bound = (max(c.beyond[k] for c in found) for k in (0, 1))
    console.print(f"a call costs at most {worst:.2f} us beyond its kernel (asked for: {CALL}), a bound one ", end="")
    console.print(f"{worst_bound:.2f} us (asked for: {BOUND})")
    ratios = [c.pinocchio / c.call for c in found if c.pinocchio is not None]
    if ratios:
        console.print(f"at least {min(ratios):.1f} times faster than Pinocchio's bindings (asked for: {PEER})")
    given = inputs_given(standing(robot, names)[0], rounds)
    table = Table(title="inputs in other forms: us for one state")
    for heading in ("function", "inputs", "call", "more than arrays"):
        table.add_column(heading, justify="left" if heading in ("function", "inputs") else "right")
    for g in given:
        table.add_row(g.function, g.inputs, f"{g.call:.2f}", f"{g.more:.2f}")
    console.print(table)
    f, inputs = functions(*standing(robot, names))["forward_dynamics"]
    extra = overheads(f, inputs, next(c.kernel for c in found if c.function == "forward_dynamics"), rounds)
    if extra:
        table = Table(title="forward_dynamics in other frameworks: us (processor time of all threads)")
        for heading in ("framework", "what", "time", "kernel", "beyond"):
            table.add_column(heading, justify="left" if heading in ("framework", "what") else "right")
        for o in extra:
            beyond = ["", ""] if o.kernel is None else [f"{o.kernel:.2f}", f"{o.time - o.kernel:.2f}"]
            table.add_row(o.framework, o.what, f"{o.time:.2f}", *beyond)
        console.print(table)
    if json is not None:
        rows = [*map(asdict, found), *map(asdict, given), *(o._asdict() for o in extra)]
        json.write_text("".join(written.dumps(row) + "\n" for row in rows))
