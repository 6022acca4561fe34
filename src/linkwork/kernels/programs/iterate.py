"""Programs with a loop: start, iterate until the residual is small, finish.

Three straight-line programs are connected by the names of their ports. ``start`` takes the user's inputs and
gives a state and a ``residual`` of one element. ``iterate`` takes any of the inputs and of the state, and gives a
new ``residual`` and whatever part of the state it changes; the rest (factors, say) is handed on as it is.
``finish`` turns inputs and state into outputs; without it, the outputs are the state that ``iterate`` changes.

Every lane stops on its own, and its state no longer changes, when its residual is at most its ``tolerance``
(or is not a number), or after its ``max_iterations``. Both are inputs, after the user's. The outputs end with
``iterations`` and ``residual``, or, if ``finish`` certifies what it gives, with one ``report`` of three numbers.

A program may have ``further`` loops over the same state, for lanes that need more. Its ``finish`` then has another
output, ``excess``, which says how good the results are: lanes in which that is at most the tolerance are done, and most
programs end here. In the others one loop after the other goes on where the one before has left a residual above the
tolerance, with so many iterations more; a loop that begins ``anew`` finishes first, and takes the excess for the
residual. What only a further loop needs, a state of its own included, is computed by its ``prepare``, and only if some
lane takes the loop. In the end all is finished again.

If a program is ``uneven``, few states take many more iterations than most: in a batch these are solved in tiles of
their own (:mod:`linkwork.kernels.codegen.gathering_driver`).

A program that is certified and ``rarely`` iterates, or one with further loops, is compiled without these first; they
follow when a report says that a state needs them, or a step of a rollout does.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from linkwork.errors import KernelError, listing
from linkwork.kernels.programs.program import Array, Node, Port, Program, broadcast
from linkwork.lazy import cached_property

if TYPE_CHECKING:
    import casadi as ca

_ONE = (1,)

CERTIFICATE = ("violation", "bound")
"""Outputs of a ``finish`` that certifies the others: they are right if the violation is at most tolerance * bound."""

REPORT = Port("report", (3,))
"""The report of a certified program: solver iterations (the first included), the violation, and 1, or NaN if it is too
large. A check for results that are not numbers finds that NaN."""


EXCESS = Port("excess", _ONE)
"""The output of a ``finish`` before further loops that is to be at most the tolerance."""

FEW, SHARE, MORE = 4, 0.125, 16
"""How many iterations of the first loop an attempt makes: these, and a share of those that are allowed; and how many
more, of all loops, a second attempt."""

FURTHER = ("test", "prepare", "iterate", "blend")
"""The parts of a further loop, in order."""


class Further(NamedTuple):
    """A further loop: how many iterations more it may take, and whether it begins ``anew``."""

    limit: int
    anew: bool = False


class Loop(NamedTuple):
    """The programs of a further loop."""

    prepare: Program
    iterate: Program
    how: Further


class IterativeProgram:
    """A start, an iteration with a residual, and optionally a finish; see the module's text for the rules."""

    def __init__(
        self,
        start: Program,
        iterate: Program,
        finish: Program | None = None,
        outputs: Sequence[str] | None = None,
        name: str | None = None,
        rarely: bool = False,
        further: Sequence[Loop] = (),
        uneven: bool = False,
    ) -> None:
        self.start, self.iterate, self.further, self.uneven = start, iterate, tuple(further), uneven
        self.name = name or start.name
        self.source: Callable[[], ca.Function] | None = None
        self.state = {port.name: port for port in start.outputs}
        known = {**self.state, **{port.name: port for port in start.inputs}}
        if len(known) != len(start.inputs) + len(start.outputs):
            raise KernelError(f"'{self.name}': an input and a state have the same name")
        for part in (start, iterate):
            if Port("residual", _ONE) not in part.outputs:
                raise KernelError(f"'{part.name}' has no output 'residual' of one element")
        changed = [port.name for port in iterate.outputs if port.name != "residual"]
        self.finish = finish or _selection([self.state[n] for n in (outputs or changed) if n in self.state])
        for part in (self.iterate, self.finish):
            self._check_ports(part.inputs, known, f"input of '{part.name}'")
        self._check_ports(self.iterate.outputs, self.state, f"output of '{iterate.name}'")
        for loop in self.further:
            handed = {port.name: port for port in loop.prepare.outputs}
            self._check_ports(loop.prepare.inputs, known, f"input of '{loop.prepare.name}'")
            known |= handed
            self._check_ports(loop.iterate.inputs, known, f"input of '{loop.iterate.name}'")
            self._check_ports(loop.iterate.outputs, self.state | handed, f"output of '{loop.iterate.name}'")
        if self.further and EXCESS not in self.finish.outputs:
            raise KernelError(f"'{self.name}' has further loops, and a finish without '{EXCESS.name}'")
        control = [Port("tolerance", _ONE), Port("max_iterations", _ONE)]
        self.inputs = (*start.inputs, *control)
        certified = {*CERTIFICATE} <= {port.name for port in self.finish.outputs}
        self.last = _reporting(self.finish) if certified else self.finish
        self.counted = () if certified else (Port("iterations", _ONE), Port("residual", _ONE))
        self.outputs = (*(port for port in self.last.outputs if port != EXCESS), *self.counted)
        self.rarely = bool(self.further) or (rarely and certified)
        reserved = {"tolerance", "max_iterations", "iterations", "running", "left"} & known.keys()
        if reserved:
            raise KernelError(f"'{self.name}': the names {listing(sorted(reserved))} belong to the loop")

    @property
    def digest(self) -> str:
        """A name for the content."""
        own = (self.start, self.iterate, self.finish, *(part for loop in self.further for part in loop[:2]))
        parts = [part.digest + repr((part.inputs, part.outputs)) for part in own]
        parts += [repr(loop.how) for loop in self.further] + ["uneven"] * self.uneven
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()

    @property
    def operations(self) -> int:
        """Arithmetic operations of start and finish; every iteration adds ``iterate.operations``."""
        return self.start.operations + self.finish.operations

    def counts(self) -> dict[str, dict[str, int]]:
        """Operations by kind, for each part of the first loop."""
        return {"start": self.start.counts(), "iterate": self.iterate.counts(), "finish": self.finish.counts()}

    def check(self) -> IterativeProgram:
        """Check the parts."""
        for part in self.parts().values():
            part.check()
        return self

    def interpret(self, *arrays: ArrayLike, dtype: str = "float64") -> tuple[Array, ...]:
        """The loop in NumPy: the definition of what every kernel of this program computes."""
        inputs, batch = broadcast(self.inputs, arrays, np.dtype(dtype))
        rows = 1 if batch is None else batch
        everything = {
            port.name: np.broadcast_to(x, (rows, *port.shape)) for port, x in zip(self.inputs, inputs, strict=True)
        }

        def evaluate(part: Program) -> dict[str, Array]:
            given = [everything[port.name] for port in part.inputs]
            results = part.interpret(*given, dtype=dtype)
            return {
                port.name: np.broadcast_to(x if given else x[None], (rows, *port.shape))
                for port, x in zip(part.outputs, results, strict=True)
            }

        def running(limit: int) -> Array:
            most = everything["max_iterations"] + np.asarray(limit, dtype)
            return np.asarray((everything["residual"] > everything["tolerance"]) & (everything["iterations"] < most))

        def repeat(iterate: Program, limit: int, left: Array | bool = True) -> None:
            while (active := running(limit) & left).any():
                for name, new in evaluate(iterate).items():
                    mask = active.reshape(rows, *[1] * (new.ndim - 1))
                    everything[name] = np.where(mask, new, everything[name])
                everything["iterations"] = everything["iterations"] + active

        everything.update(evaluate(self.start))
        everything["iterations"] = np.zeros((rows, 1), dtype)
        repeat(self.iterate, 0)
        ends = evaluate(self.last)
        left = ends[EXCESS.name] > everything["tolerance"] if self.further else np.zeros((rows, 1), bool)
        if left.any():
            for loop in self.further:
                if loop.how.anew:
                    everything["residual"] = evaluate(self.last)[EXCESS.name]
                if (running(loop.how.limit) & left).any():
                    everything.update(evaluate(loop.prepare))
                    repeat(loop.iterate, loop.how.limit, left)
            ends = evaluate(self.last)
        everything.update({port.name + "''": ends[port.name] for port in self.last.outputs})
        counted = {port.name for port in self.counted}
        outputs = [everything[port.name + "''" * (port.name not in counted)] for port in self.outputs]
        return tuple(x[0] if batch is None else np.asarray(x, dtype) for x in outputs)

    def parts(self) -> dict[str, Program]:
        """The straight-line programs of a kernel, fused and ordered once for all of its forms."""
        return self._parts

    @cached_property
    def _parts(self) -> dict[str, Program]:
        """The parts; the driver calls them in its loop.

        ``finish`` makes the report too, if there is one. ``test`` decides which lanes continue; ``blend`` copies the
        primed outputs of ``iterate`` to the state, ``anew`` the excess to the residual. ``end`` decides which lanes are
        left for further loops.
        """
        start = _also(self.start, Port("iterations", _ONE), 0.0)
        parts = {"start": start, "test": _test(), "iterate": self.iterate, "blend": _blend(self.iterate.outputs)}
        parts["finish"] = self.last
        if self.further:
            parts["end"] = _end()
        for key, loop in zip(self.letters, self.further, strict=True):
            made = _test(loop.how.limit, left=True), *loop[:2], _blend(loop.iterate.outputs)
            parts |= {"anew" + key: _anew()} if loop.how.anew else {}
            parts |= {name + key: part for name, part in zip(FURTHER, made, strict=True)}
        return parts

    @property
    def letters(self) -> list[str]:
        """What the names of the parts of further loops end with."""
        return [f"_{chr(ord('b') + k)}" for k in range(len(self.further))]

    def first_parts(self) -> dict[str, Program]:
        """The parts without further loops, or without the one loop that is rarely needed.

        States that need what is missing are those that are ``left``, or ``running``.
        """
        whole = ("start", "test", "iterate", "blend", "finish", "end") if self.further else ("start", "test", "finish")
        parts = {name: self.parts()[name] for name in whole}
        missing = _reported("missing", "left" if self.further else "running", 0, math.nan)
        return parts | {"missing": missing} if REPORT in self.last.outputs else parts

    def attempt_parts(self) -> dict[str, Program]:
        """What an attempt has besides the parts of the first loop (kernels/codegen/gathered_states.py).

        ``patience`` decides which lanes continue in it, ``unsolved`` which lanes are ``left``. These are ``excused``:
        their report has no NaN, for they are not done.
        """
        parts = {"patience": _test(most=0), "unsolved": _unsolved(after_end=bool(self.further))}
        excused = _reported("excused", "left", 2, 1.0)
        return parts | {"excused": excused} if REPORT in self.last.outputs else parts

    def second_attempt_parts(self) -> dict[str, Program]:
        """What a second attempt has besides: tests of patience for all loops, and which lanes are ``left``.

        States that have made fewer iterations than are allowed took the step as a whole.
        """
        loops = zip(self.letters, self.further, strict=True)
        parts = {"patience_again" + key: _test(loop.how.limit, left=True, most=MORE) for key, loop in loops}
        return parts | {"patience_again": _test(most=MORE), "unsolved_again": _made(MORE)}

    def _check_ports(self, ports: Sequence[Port], known: dict[str, Port], what: str) -> None:
        for port in ports:
            if port.name not in known:
                raise KernelError(f"{what}: '{port.name}' is unknown; valid: {listing(known)}")
            if known[port.name].shape != port.shape:
                raise KernelError(f"{what}: '{port.name}' has shape {port.shape}, not {known[port.name].shape}")


def _test(limit: int = 0, left: bool = False, most: int | None = None) -> Program:
    """Which lanes continue, of all or of those that are left.

    At most for so many iterations more than an attempt makes.
    """
    control = [Port(n, _ONE) for n in ("residual", "tolerance", "iterations", "max_iterations", *["left"] * left)]
    nodes: list[Node] = [("input", k, 0) for k in range(len(control))]

    def add(*node: object) -> int:
        nodes.append(node)
        return len(nodes) - 1

    allowed = add("add", 3, add("const", float(limit))) if limit else 3
    last = add("and", add("lt", 1, 0), add("lt", 2, allowed))
    if most is not None:
        last = add("and", last, add("lt", 2, _attempted(add, 3, most)))
    if left:
        last = add("and", last, 4)
    return Program(control, [Port("running", _ONE)], nodes, [[last]], "test")


def _attempted(add: Callable[..., int], allowed: int, more: int) -> int:
    """The iterations of an attempt, of those that the first loop is allowed, and so many more."""
    return add("add", add("const", float(FEW + more)), add("mul", add("const", SHARE), allowed))


def _made(more: int) -> Program:
    """Which lanes have made so many iterations more than an attempt: they are left. 1 or 0."""
    nodes: list[Node] = [("input", 0, 0), ("input", 1, 0)]

    def add(*node: object) -> int:
        nodes.append(node)
        return len(nodes) - 1

    last = add("le", _attempted(add, 1, more), 0)
    return Program(
        [Port("iterations", _ONE), Port("max_iterations", _ONE)], [Port("left", _ONE)], nodes, [[last]], "made"
    )


def _end() -> Program:
    """Which lanes are left for further loops: 1 or 0."""
    control = [Port("tolerance", _ONE), Port(EXCESS.name + "''", _ONE)]
    return Program(control, [Port("left", _ONE)], [("input", 0, 0), ("input", 1, 0), ("lt", 0, 1)], [[2]], "end")


def _unsolved(after_end: bool) -> Program:
    """Which lanes are left by an attempt, after the end or because they are running: 1 or 0."""
    ports = [Port(n, _ONE) for n in ("running", "left")[: 1 + after_end]]
    nodes: list[Node] = [("input", 0, 0), *([("input", 1, 0), ("or", 0, 1)] if after_end else [])]
    return Program(ports, [Port("left", _ONE)], nodes, [[len(nodes) - 1]], "unsolved")


def _anew() -> Program:
    """The excess as residual."""
    return Program([Port(EXCESS.name + "''", _ONE)], [Port("residual", _ONE)], [("input", 0, 0)], [[0]], "anew")


def _reported(name: str, which: str, element: int, value: float) -> Program:
    """The report, with this value as an element of it in some lanes."""
    report = Port(REPORT.name + "''", REPORT.shape)
    nodes: list[Node] = [
        *(("input", 1, e) for e in range(3)),
        ("input", 0, 0),
        ("const", value),
        ("select", 3, 4, element),
    ]
    return Program([Port(which, _ONE), report], [report], nodes, [[5 if e == element else e for e in range(3)]], name)


def _blend(changed: Sequence[Port]) -> Program:
    """The state after an iteration in lanes that run, and as it was in others; the iterations counted."""
    inputs = [Port("running", _ONE), Port("iterations", _ONE)]
    inputs += [Port(port.name + prime, port.shape) for port in changed for prime in ("'", "")]
    nodes: list[Node] = [("input", 0, 0), ("input", 1, 0), ("add", 0, 1)]
    results: list[list[int]] = [[2]]
    for k, port in enumerate(changed):
        results.append([])
        for e in range(port.size):
            n = len(nodes)
            nodes += [("input", 2 * k + 2, e), ("input", 2 * k + 3, e), ("select", 0, n, n + 1)]
            results[-1].append(n + 2)
    return Program(inputs, [Port("iterations", _ONE), *changed], nodes, results, "blend")


def _selection(ports: Sequence[Port]) -> Program:
    """The finish that returns parts of the state as they are."""
    nodes: list[Node] = [("input", k, e) for k, port in enumerate(ports) for e in range(port.size)]
    results, place = [], 0
    for port in ports:
        results.append(list(range(place, place + port.size)))
        place += port.size
    return Program(ports, ports, nodes, results, "finish")


def _reporting(finish: Program) -> Program:
    """The finish with a report in place of its certificate."""
    n, k = len(finish.nodes), len(finish.inputs)
    results = {port.name: list(nodes) for port, nodes in zip(finish.outputs, finish.results, strict=True)}
    (violation,), (bound,) = (results.pop(name) for name in CERTIFICATE)
    nodes: list[Node] = [
        *finish.nodes,
        ("input", k, 0),
        ("input", k + 1, 0),
        ("const", 1.0),
        ("const", math.nan),
        ("add", n, n + 2),
        ("mul", n + 1, bound),
        ("le", violation, n + 5),
        ("select", n + 6, n + 2, n + 3),
    ]
    outputs = [*(port for port in finish.outputs if port.name not in CERTIFICATE), REPORT]
    inputs = [*finish.inputs, Port("iterations", _ONE), Port("tolerance", _ONE)]
    return Program(inputs, outputs, nodes, [*results.values(), [n + 4, violation, n + 7]], finish.name)


def _also(program: Program, port: Port, value: float) -> Program:
    """The program with one more output, a constant."""
    nodes = [*program.nodes, ("const", value)]
    results = [*program.results, [len(nodes) - 1]]
    return Program(program.inputs, [*program.outputs, port], nodes, results, program.name)
