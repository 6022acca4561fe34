"""Products with first and second derivatives of a function, by the entries of its inputs.

Frameworks that differentiate know arrays, not charts: for them a quaternion is four numbers. What they differentiate is

    F(q, v, ...) = f(n(q), v, ...),    n: quaternions, and [cos sin] of planar joints, divided by their lengths,

which is f where f is defined. With x all inputs, y all outputs, J = dF/dx and weights w of the outputs there are

    forward  J dx                  second_forward  (d/dx J dx) dx'
    reverse  J^T w                 second_reverse  (d/dx J^T w) dx'

each the transpose of another one, or of itself. Second ones are first ones differentiated operation by operation.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from linkwork.backends import Array, Ops
from linkwork.errors import InputError, UnsupportedError
from linkwork.functions.differentiation.derivative_products import Forward, Reverse
from linkwork.functions.differentiation.differentiated import Columns, Differentiated
from linkwork.functions.differentiation.row_slopes import put
from linkwork.functions.function import Function
from linkwork.kernels.programs.differentiate import tangents
from linkwork.kernels.programs.matrices import Matrix, Tracer
from linkwork.kernels.programs.program import Port
from linkwork.kernels.programs.value_numbering import ZERO
from linkwork.lazy import cached_property

Symbol = Callable[[str, int], Array]


class Output(NamedTuple):
    """A result of a function: its name and shape."""

    name: str
    shape: tuple[int, ...]


class Family:
    """A compiled function with its products, made when first asked for.

    `smooth` is the same function without outputs that are not to be differentiated.
    """

    def __init__(self, of: Function[Any], smooth: Function[Any] | None = None) -> None:
        if of.backend != "kernel":
            raise InputError(f"this needs a function with backend='kernel', and its backend is '{of.backend}'")
        self.of, self.smooth, self._made = of, smooth or of, dict[tuple[str, ...], Function[Any]]()

    @property
    def inputs(self) -> tuple[Port, ...]:
        """Names and shapes of the inputs."""
        return self.of.kernel.given

    @property
    def outputs(self) -> tuple[Output, ...]:
        """Names and shapes of the outputs that are differentiated."""
        return tuple(Output(p.name, p.shape) for p in self.of.kernel.outputs if p.name != "report")

    @property
    def reports(self) -> bool:
        """Whether the last output is a report: solver iterations, residual, and 1 if that is small."""
        return self.of.kernel.outputs[-1].name == "report"

    @cached_property
    def solves(self) -> bool:
        """Whether results say that they have `converged`."""
        return self.reports or hasattr(self.of._results(()).type, "converged")

    @cached_property
    def result(self) -> Any:
        """The class of results: a named tuple of the outputs, with `converged` behind them where that is said."""
        names = tuple(x.name for x in self.outputs)
        known = self.of._results(names).type
        fields = known._fields if len(known._fields) == len(names) else names
        return _tuples(known.__name__, (*fields, "converged") if self.solves else tuple(fields))

    @property
    def free(self) -> tuple[str, ...]:
        """The inputs that have derivatives; contact modes and forces to start from have none."""
        return tuple(n for n in self.of.inputs if n not in Differentiated.FIXED)

    def operands(self, kind: str, wrt: Sequence[Sequence[str]]) -> list[str]:
        """What a product takes, in order: x, then directions or weights, then changes."""
        first = ["w_" + y.name for y in self.outputs] if kind.endswith("reverse") else ["d" + n for n in [*wrt, ()][0]]
        second = ["c" + n for n in wrt[1]] if len(wrt) > 1 else []
        return [*(port.name for port in self.inputs), *first, *second]

    def made(self, kind: str, *wrt: tuple[str, ...]) -> Function[Any]:
        """One of KINDS, by some inputs: those of the first derivative, and those of the second."""
        key = (kind, *("/".join(names) for names in wrt))
        if key not in self._made:
            self._made[key] = KINDS[kind](self.of if kind == "value" else self.smooth, *wrt)
        return self._made[key]


@cache
def _tuples(name: str, fields: tuple[str, ...]) -> Any:
    return namedtuple(name, fields)


def value(of: Function[Any]) -> Function[Any]:
    """The function itself."""
    return of


class EntryForward(Forward):
    """(x, dx) -> J dx."""

    def __init__(self, of: Function[Any], wrt: Sequence[str]) -> None:
        sizes = {"d" + n: of.inputs[n] for n in wrt}
        Differentiated.__init__(self, "entry_jvp", of, wrt, sizes)
        self._shapes.update({"d" + n: of._shapes[n] for n in wrt if n in of._shapes})

    def _changes(self, xp: Tracer, inputs: Mapping[str, Array]) -> Columns:
        seeds: Columns = {}
        for n in self.wrt:
            change = inputs["d" + n]
            put(seeds, inputs[n], 0, along(self, inputs["q"], change, xp) if n == "q" else change)
        return seeds


class EntryReverse(Reverse):
    """(x, w) -> J^T w."""

    def __init__(self, of: Function[Any], wrt: Sequence[str]) -> None:
        self.of, self.model = of, of.model
        Differentiated.__init__(self, "entry_vjp", of, wrt, {"w_" + n: k for n, k in self.outputs.items()})
        self._shapes.update({"g_" + n: of._shapes[n] for n in wrt if n in of._shapes})

    def _pulled(self, q: Array, gradient: Array, xp: Ops) -> Array:
        return along(self, q, gradient, xp)


class Second(Differentiated):
    """(x, directions or weights, dx') -> the change of a first product, for changes of `along` inputs."""

    def __init__(self, first: EntryForward | EntryReverse, suffix: str, onward: Sequence[str]) -> None:
        self.first, self.onward = first, tuple(onward)
        more = {n: k for n, k in first.inputs.items() if n not in first.of.inputs}
        changes = {"c" + n: first.of.inputs[n] for n in onward}
        super().__init__(f"{suffix}_{'_'.join(onward)}", first.of, first.wrt, {**more, **changes})
        self._shapes.update({n: s for n, s in first._shapes.items() if n in more or n.startswith("g_")})
        self._shapes.update({"c" + n: first.of._shapes[n] for n in onward if n in first.of._shapes})

    def _traced(self, xp: Ops, inputs: dict[str, Array], symbol: Symbol) -> dict[str, Array]:
        assert isinstance(xp, Tracer)
        there, seeds = dict(inputs), Columns()
        for n in self.onward:
            put(seeds, inputs[n], 0, inputs["c" + n])
        if "q" in inputs:
            there["q"], lengths = normalised(self, inputs["q"], xp)
            if "dq" in inputs:
                there["dq"] = inputs["dq"] / lengths
        found = dict(self.first._traced(xp, there, symbol))
        if "g_q" in found:
            found["g_q"] = found["g_q"] / lengths
        changes = tangents(xp.values, [r >> 1 for x in found.values() for r in x.refs], seeds)
        self._shapes.update({n: s for n, s in self.first._shapes.items() if n in found})
        return {n: _changed(xp, changes, x) for n, x in found.items()}


def second_forward(of: Function[Any], wrt: Sequence[str], onward: Sequence[str]) -> Function[Any]:
    """(x, dx, dx') -> (d/dx J dx) dx'."""
    return Second(EntryForward(of, wrt), "second_jvp", onward)


def second_reverse(of: Function[Any], wrt: Sequence[str], onward: Sequence[str]) -> Function[Any]:
    """(x, w, dx') -> (d/dx J^T w) dx'."""
    return Second(EntryReverse(of, wrt), "second_vjp", onward)


KINDS: Mapping[str, Callable[..., Function[Any]]] = {
    "value": value,
    "forward": EntryForward,
    "reverse": EntryReverse,
    "second_forward": second_forward,
    "second_reverse": second_reverse,
}


def along(function: Function[Any], q: Array, x: Array, xp: Ops) -> Array:
    """x without what is along unit parts of q: the derivative of n(q), which is symmetric, times x."""
    out, model = x, function.model
    for i in model.topology.links:
        for part in model.unit_parts(i):
            unit = q[part, :]
            straight = x[part, :] - unit * (unit.T @ x[part, :])[0, 0]
            out = xp.vstack([out[: part.start, :], straight, out[part.stop :, :]])
    return out


def normalised(function: Function[Any], q: Array, xp: Ops) -> tuple[Array, Array]:
    """n(q), and the lengths by which its entries were divided."""
    model = function.model
    lengths = xp.constant([[1.0]] * model.nq)
    for i in model.topology.links:
        for part in model.unit_parts(i):
            length = xp.sqrt((q[part, :].T @ q[part, :])[0, 0])
            ones = xp.constant([[1.0]] * (part.stop - part.start)) * length
            lengths = xp.vstack([lengths[: part.start, :], ones, lengths[part.stop :, :]])
    return q / lengths, lengths


def _changed(xp: Tracer, changes: Mapping[int, Mapping[int, int]], x: Matrix) -> Matrix:
    """The change of every entry of a matrix."""
    refs = [changes.get(r >> 1, {}).get(0, ZERO) for r in x.refs]
    return Matrix(xp.values, x.shape, [xp.values.neg(d) if r & 1 else d for r, d in zip(x.refs, refs, strict=True)])


def refuse_third(function: Function[Any]) -> UnsupportedError:
    """What is said where a third derivative is asked for."""
    return UnsupportedError(f"third derivatives of {function.name} are not available")
