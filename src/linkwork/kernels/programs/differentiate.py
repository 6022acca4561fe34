"""Derivatives of programs, exact and sparse: forward (tangents) and reverse (adjoints).

Each operation z = f(x, y, ...) is linear in small changes, dz = f_x dx + f_y dy, and `SLOPES` has for each kind the
functions dx -> f_x dx. Forward mode adds these up from inputs to results; reverse mode applies the same functions from
results to inputs, because a product with a number is its own transpose.

Tangents are sparse: a value has entries only for the columns on which it depends. They start from *seeds*, values whose
derivatives are known: inputs, and any other value, a link's velocity say, for which a formula needs fewer operations
than the chain of operations that computes it. What lies behind a seed is not differentiated.

Where a program has no derivative: that of |x| at zero is 0, of a root infinite; minima and maxima have that of the
argument taken; comparisons, `floor`, `ceil` and `sign` have zero everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence

from linkwork.kernels.programs.matrices import Matrix
from linkwork.kernels.programs.program import Port, Program
from linkwork.kernels.programs.simplify import finished
from linkwork.kernels.programs.value_numbering import ONE, ZERO, Values

Tangent = dict[int, int]
"""The derivative of a value: a signed reference for each column on which it depends."""

Slope = Callable[[int], int]
"""The product with a partial derivative, as a function of signed references."""

Rule = Callable[[Values, int, Sequence[int]], Sequence[Slope | None]]
"""The slopes of an operation, from its value and its arguments; None stands for zero."""


def tangents(values: Values, wanted: Iterable[int], seeds: Mapping[int, Tangent]) -> dict[int, Tangent]:
    """The derivatives of the nodes `wanted` and of all nodes between them and the seeds."""
    known = dict(seeds)
    for n in _between(values, wanted, seeds):
        total: Tangent = {}
        for argument, slope in _slopes(values, n):
            for column, d in known.get(argument, {}).items():
                part = slope(d)
                total[column] = values.add(total[column], part) if column in total else part
        known[n] = {column: d for column, d in total.items() if d != ZERO}
    return known


def adjoints(values: Values, weights: Mapping[int, int], of: Sequence[int]) -> list[int]:
    """The derivatives of sum w_n z_n, for weights w by nodes, by the nodes `of`."""
    total = {n: w for n, w in weights.items() if w != ZERO}
    for n in reversed(_between(values, weights, set(of))):
        if n in total:
            for argument, slope in _slopes(values, n):
                part = slope(total[n])
                total[argument] = values.add(total[argument], part) if argument in total else part
    return [total.get(n, ZERO) for n in of]


def slopes(value: Matrix, x: Matrix, by: Matrix) -> Matrix:
    """(dvalue / dx) `by`, in a trace: columns `value` and x, and a matrix with a row for every entry of x."""
    values, width = value.values, by.shape[1]
    rows = [by.refs[k * width : (k + 1) * width] for k in range(len(x.refs))]
    seeds = {ref >> 1: {c: d for c, d in enumerate(row) if d != ZERO} for ref, row in zip(x.refs, rows, strict=True)}
    found = tangents(values, [ref >> 1 for ref in value.refs], seeds)
    refs = [_signed(found.get(ref >> 1, {}).get(c, ZERO), ref, values) for ref in value.refs for c in range(width)]
    return Matrix(values, (len(value.refs), width), refs)


def jvp(program: Program, wrt: Sequence[str]) -> Program:
    """(x, ..., dx, ...) -> dy, ...: derivatives along changes of some inputs, named `d` + input."""
    values, read = _opened(program)
    ports = [program.inputs[k] for k in _places(program, wrt)]
    changes = [Port("d" + port.name, port.shape) for port in ports]
    seeds = {
        read(k, e): {0: 2 * values.number(("input", len(program.inputs) + c, e))}
        for c, k in enumerate(_places(program, wrt))
        for e in range(program.inputs[k].size)
    }
    results = _results(values, program)
    found = tangents(values, (x >> 1 for result in results for x in result), seeds)
    refs = [[_signed(found.get(x >> 1, {}).get(0, ZERO), x, values) for x in result] for result in results]
    outputs = [Port("d" + port.name, port.shape) for port in program.outputs]
    return finished(Program([*program.inputs, *changes], outputs, (), [()] * len(outputs), program.name), values, refs)


def vjp(program: Program, wrt: Sequence[str]) -> Program:
    """(x, ..., weights of y, ...) -> gradients: of sum w y, by some inputs.

    Weights are named `w` + output.
    """
    values, read = _opened(program)
    first = len(program.inputs)
    weights = [Port("w" + port.name, port.shape) for port in program.outputs]
    by_node: dict[int, int] = {}
    for k, result in enumerate(_results(values, program)):
        for e, x in enumerate(result):
            w = _signed(2 * values.number(("input", first + k, e)), x, values)
            by_node[x >> 1] = values.add(by_node[x >> 1], w) if x >> 1 in by_node else w
    places = _places(program, wrt)
    refs = [adjoints(values, by_node, [read(k, e) for e in range(program.inputs[k].size)]) for k in places]
    outputs = [Port("g" + program.inputs[k].name, program.inputs[k].shape) for k in places]
    return finished(Program([*program.inputs, *weights], outputs, (), [()] * len(outputs), program.name), values, refs)


def jacobian(program: Program, output: str, wrt: str) -> Program:
    """dy/dx, rows of y by columns of x, by forward mode with one column for each element of x."""
    values, read = _opened(program)
    (k,), p = _places(program, [wrt]), [port.name for port in program.outputs].index(output)
    size = program.inputs[k].size
    result = _results(values, program)[p]
    found = tangents(values, (x >> 1 for x in result), {read(k, e): {e: ONE} for e in range(size)})
    refs = [_signed(found.get(x >> 1, {}).get(e, ZERO), x, values) for x in result for e in range(size)]
    port = Port(f"d{output}_d{wrt}", (len(result), size))
    return finished(Program(program.inputs, [port], (), [()], program.name), values, [refs])


def _opened(program: Program) -> tuple[Values, Callable[[int, int], int]]:
    """A table with the nodes of a program, and the node of an element of an input."""
    values = Values()
    return values, lambda port, element: values.number(("input", port, element))


def _results(values: Values, program: Program) -> list[list[int]]:
    """The program's results as signed references, its nodes simplified on the way."""
    signed = values.replay(program.nodes, lambda node: 2 * values.number(node))
    return [[signed[v] for v in result] for result in program.results]


def _places(program: Program, names: Sequence[str]) -> list[int]:
    known = [port.name for port in program.inputs]
    return [known.index(name) for name in names]


def _signed(derivative: int, value: int, values: Values) -> int:
    """The derivative of a signed reference, from that of its node."""
    return values.neg(derivative) if value & 1 else derivative


def _between(values: Values, wanted: Iterable[int], seeds: Container[int]) -> list[int]:
    """The nodes that depend on a seed, are none, and are needed for `wanted`, in order."""
    needed, stack = set[int](), [n for n in wanted if n not in seeds]
    while stack:
        n = stack.pop()
        if n not in needed:
            needed.add(n)
            stack += [a for a in _arguments(values, n) if a not in seeds and a not in needed]
    reached, out = set[int](), []
    for n in sorted(needed):
        if any(a in reached or a in seeds for a in _arguments(values, n)):
            reached.add(n)
            out.append(n)
    return out


def _arguments(values: Values, n: int) -> Sequence[int]:
    kind, *arguments = values.nodes[n]
    return () if kind in ("const", "input") else arguments


def _slopes(values: Values, n: int) -> list[tuple[int, Slope]]:
    """The arguments of a node, each with its slope."""
    kind, *arguments = values.nodes[n]
    slopes = SLOPES[kind](values, 2 * n, [2 * a for a in arguments])
    return [(a, slope) for a, slope in zip(arguments, slopes, strict=True) if slope is not None]


def _same(d: int) -> int:
    return d


def _times(v: Values, factor: int) -> Slope:
    return lambda d: v.mul(factor, d)


def _over(v: Values, divisor: int) -> Slope:
    return lambda d: v.div(d, divisor)


def _less(v: Values, slope: Slope) -> Slope:
    return lambda d: v.neg(slope(d))


def _if(v: Values, condition: int) -> Slope:
    return lambda d: v.if_else_zero(condition, d)


def _number(v: Values, x: float) -> int:
    return v.constant(x)


def _root_of_rest(v: Values, x: int) -> int:
    """sqrt(1 - x^2)."""
    return v.apply("sqrt", v.sub(ONE, v.mul(x, x)))


def _quotient(v: Values, z: int, x: Sequence[int]) -> Sequence[Slope | None]:
    return _over(v, x[1]), _less(v, lambda d: v.div(v.mul(z, d), x[1]))


def _power(v: Values, z: int, x: Sequence[int]) -> Sequence[Slope | None]:
    base, exponent = x
    lower = v.mul(exponent, v.pow(base, v.sub(exponent, ONE)))
    return _times(v, lower), None if v.value(exponent) is not None else _times(v, v.mul(z, v.apply("log", base)))


def _angle(v: Values, z: int, x: Sequence[int]) -> Sequence[Slope | None]:
    """atan2(y, x): (x dy - y dx) / (x^2 + y^2)."""
    square = v.add(v.mul(x[0], x[0]), v.mul(x[1], x[1]))
    return lambda d: v.div(v.mul(x[1], d), square), lambda d: v.neg(v.div(v.mul(x[0], d), square))


def _taken(kind: str) -> Rule:
    """The argument that a minimum or a maximum takes."""

    def slopes(v: Values, z: int, x: Sequence[int]) -> Sequence[Slope | None]:
        first = v.apply("le", *(x if kind == "fmin" else x[::-1]))
        return _if(v, first), _if(v, v.logical_not(first))

    return slopes


def _remainder(v: Values, z: int, x: Sequence[int]) -> Sequence[Slope | None]:
    return _same, _less(v, _times(v, v.div(v.sub(x[0], z), x[1])))


def _fused(product: int, rest: int) -> Rule:
    """product a b + rest c, the signs being 1 or -1."""

    def slopes(v: Values, z: int, x: Sequence[int]) -> Sequence[Slope | None]:
        a, b = _times(v, x[1]), _times(v, x[0])
        return [slope if sign > 0 else _less(v, slope) for slope, sign in ((a, product), (b, product), (_same, rest))]

    return slopes


def _half(kind: str) -> Rule:
    """sin_of and cos_of: the derivative of a `sincos` node is that of its argument."""

    def slopes(v: Values, z: int, x: Sequence[int]) -> Sequence[Slope | None]:
        other = v.apply("cos_of" if kind == "sin_of" else "sin_of", x[0])
        return [_times(v, other) if kind == "sin_of" else _less(v, _times(v, other))]

    return slopes


def _of_sign(v: Values, z: int, x: Sequence[int]) -> Sequence[Slope | None]:
    """copysign(x, y) = |x| times the sign of y."""
    return _times(v, v.mul(v.apply("sign", x[0]), v.apply("copysign", ONE, x[1]))), None


def _constant(v: Values, z: int, x: Sequence[int]) -> Sequence[Slope | None]:
    return [None] * len(x)


SLOPES: dict[str, Rule] = {
    "add": lambda v, z, x: (_same, _same),
    "sub": lambda v, z, x: (_same, v.neg),
    "mul": lambda v, z, x: (_times(v, x[1]), _times(v, x[0])),
    "div": _quotient,
    "neg": lambda v, z, x: [v.neg],
    "sqrt": lambda v, z, x: [lambda d: v.div(v.mul(_number(v, 0.5), d), z)],
    "fabs": lambda v, z, x: [_times(v, v.apply("sign", x[0]))],
    "sin": lambda v, z, x: [_times(v, v.apply("cos", x[0]))],
    "cos": lambda v, z, x: [_less(v, _times(v, v.apply("sin", x[0])))],
    "tan": lambda v, z, x: [_times(v, v.add(ONE, v.mul(z, z)))],
    "asin": lambda v, z, x: [_over(v, _root_of_rest(v, x[0]))],
    "acos": lambda v, z, x: [_less(v, _over(v, _root_of_rest(v, x[0])))],
    "atan": lambda v, z, x: [_over(v, v.add(ONE, v.mul(x[0], x[0])))],
    "sinh": lambda v, z, x: [_times(v, v.apply("cosh", x[0]))],
    "cosh": lambda v, z, x: [_times(v, v.apply("sinh", x[0]))],
    "tanh": lambda v, z, x: [_times(v, v.sub(ONE, v.mul(z, z)))],
    "exp": lambda v, z, x: [_times(v, z)],
    "log": lambda v, z, x: [_over(v, x[0])],
    "expm1": lambda v, z, x: [_times(v, v.add(ONE, z))],
    "log1p": lambda v, z, x: [_over(v, v.add(ONE, x[0]))],
    "pow": _power,
    "fmin": _taken("fmin"),
    "fmax": _taken("fmax"),
    "atan2": _angle,
    "hypot": lambda v, z, x: [lambda d: v.div(v.mul(x[0], d), z), lambda d: v.div(v.mul(x[1], d), z)],
    "copysign": _of_sign,
    "fmod": _remainder,
    "select": lambda v, z, x: (None, _if(v, x[0]), _if(v, v.logical_not(x[0]))),
    "if_else_zero": lambda v, z, x: (None, _if(v, x[0])),
    "guarded": lambda v, z, x: (_same, None),
    "fma": _fused(1, 1),
    "fms": _fused(1, -1),
    "fnma": _fused(-1, 1),
    "fnms": _fused(-1, -1),
    "sincos": lambda v, z, x: [_same],
    "sin_of": _half("sin_of"),
    "cos_of": _half("cos_of"),
    **dict.fromkeys(("sign", "floor", "ceil", "lt", "le", "eq", "ne", "and", "or", "not"), _constant),
}
"""The slopes of every operation."""
