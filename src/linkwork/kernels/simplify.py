"""The algebraic pass: value numbering with signs, constant folding, dead code.

Every value is kept as a *signed reference*: node number times two, plus one when the value is the negative of the
node. Negation is then free, ``a - b`` and ``b - a`` share a node, ``(-a) * b`` is ``-(a * b)``, and so on; what
signs remain at the end are given back as ``neg`` nodes, or taken up by subtractions and fused operations.

The algebra is that of finite numbers (``x * 0 = 0``, ``x - x = 0``): it may lose a NaN, but never makes one.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable

import numpy as np

from linkwork.kernels.operations import COMMUTATIVE, COMPARISONS, SEMANTICS
from linkwork.kernels.program import Node, Program

_ODD = frozenset({"sin", "tan", "asin", "atan", "sinh", "tanh", "sign"})
_EVEN = frozenset({"cos", "cosh", "fabs"})


def simplify(program: Program) -> Program:
    """The same function with fewer operations."""
    values = Values()
    signed: list[int] = []
    for node in program.nodes:
        kind = node[0]
        if kind == "const":
            signed.append(values.constant(node[1]))
        elif kind == "input":
            signed.append(2 * values.number(node))
        else:
            signed.append(values.apply(kind, *(signed[a] for a in node[1:])))
    results = tuple(tuple(values.plain(signed[v]) for v in result) for result in program.results)
    return share_reciprocals(remove_dead(program.derive(values.nodes, results))).check()


def share_reciprocals(program: Program) -> Program:
    """``x / d, y / d, ...`` become ``r = 1 / d; x * r, y * r, ...``: a division costs sixteen products.

    CasADi turns ``x * (1 / d)`` into ``x / d``; this undoes it, at one more rounding per quotient.
    """
    quotients = Counter(node[2] for node in program.nodes if node[0] == "div")
    nodes: list[Node] = []
    place: list[int] = []
    reciprocals: dict[int, int] = {}
    for node in program.nodes:
        new = node if node[0] in ("const", "input") else (node[0], *(place[a] for a in node[1:]))
        if node[0] == "div" and quotients[node[2]] > 1:
            divisor = new[2]
            if divisor not in reciprocals:
                nodes += [("const", 1.0), ("div", len(nodes), divisor)]
                reciprocals[divisor] = len(nodes) - 1
            if program.nodes[node[1]] == ("const", 1.0):
                place.append(reciprocals[divisor])
                continue
            new = ("mul", new[1], reciprocals[divisor])
        nodes.append(new)
        place.append(len(nodes) - 1)
    results = tuple(tuple(place[v] for v in result) for result in program.results)
    return program.derive(nodes, results)


def remove_dead(program: Program) -> Program:
    """Keep what the outputs need, in the same order."""
    nodes = program.nodes
    alive = bytearray(len(nodes))
    for result in program.results:
        for v in result:
            alive[v] = 1
    for i in range(len(nodes) - 1, -1, -1):
        if alive[i] and nodes[i][0] not in ("const", "input"):
            for a in nodes[i][1:]:
                alive[a] = 1
    place = [0] * len(nodes)
    kept: list[Node] = []
    for i, node in enumerate(nodes):
        if alive[i]:
            place[i] = len(kept)
            kept.append(node if node[0] in ("const", "input") else (node[0], *(place[a] for a in node[1:])))
    results = tuple(tuple(place[v] for v in result) for result in program.results)
    return program.derive(kept, results)


class Values:
    """Hash-consed nodes, and the algebra that makes signed references of signed references."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self._number: dict[Node, int] = {}
        self._special: dict[str, Callable[..., int]] = {
            "add": self.add,
            "sub": lambda x, y: self.add(x, y ^ 1),
            "mul": self.mul,
            "div": self.div,
            "neg": lambda x: x ^ 1,
            "if_else_zero": self.if_else_zero,
            "not": self.logical_not,
            "pow": self.pow,
        }

    def number(self, node: Node) -> int:
        """The number of this node, new or known."""
        n = self._number.get(node)
        if n is None:
            n = self._number[node] = len(self.nodes)
            self.nodes.append(node)
        return n

    def constant(self, value: float) -> int:
        """Constants are stored without sign, so that 2 and -2 are one node; a NaN keeps its own."""
        value = float(value)
        negative = math.copysign(1.0, value) < 0.0
        return 2 * self.number(("const", abs(value) + 0.0)) + (negative and value != 0.0)

    def value(self, x: int) -> float | None:
        """The number that a reference stands for, None unless it is a constant."""
        node = self.nodes[x >> 1]
        if node[0] != "const":
            return None
        return float(-node[1] if x & 1 else node[1])

    def plain(self, x: int) -> int:
        """The node of exactly this value, its sign written out."""
        if not x & 1:
            return x >> 1
        node = self.nodes[x >> 1]
        if node[0] == "const":
            return self.number(("const", -node[1]))
        return self.number(("neg", x >> 1))

    def apply(self, kind: str, *arguments: int) -> int:
        """Any operation of signed references."""
        special = self._special.get(kind)
        if special is not None:
            return special(*arguments)
        constants = [self.value(x) for x in arguments]
        if all(c is not None for c in constants):
            return self.constant(float(SEMANTICS[kind](*map(_double, constants))))
        if kind in _ODD:
            return 2 * self.number((kind, arguments[0] >> 1)) + (arguments[0] & 1)
        if kind in _EVEN:
            return 2 * self.number((kind, arguments[0] >> 1))
        places = [self.plain(x) for x in arguments]
        if kind in COMMUTATIVE:
            places.sort()
        return 2 * self.number((kind, *places))

    def add(self, x: int, y: int) -> int:
        cx, cy = self.value(x), self.value(y)
        if cx is not None and cy is not None:
            return self.constant(cx + cy)
        if cx == 0.0:
            return y
        if cy == 0.0:
            return x
        if x == y ^ 1:
            return self.constant(0.0)
        chosen = self._as_select(x, y)
        if chosen is not None:
            return chosen
        a, b = x >> 1, y >> 1
        if (x ^ y) & 1 == 0:
            return 2 * self.number(("add", min(a, b), max(a, b))) + (x & 1)
        minuend, subtrahend = (b, a) if x & 1 else (a, b)
        if minuend < subtrahend:
            return 2 * self.number(("sub", minuend, subtrahend))
        return 2 * self.number(("sub", subtrahend, minuend)) + 1

    def mul(self, x: int, y: int) -> int:
        cx, cy = self.value(x), self.value(y)
        if cx is not None and cy is not None:
            return self.constant(cx * cy)
        if cy is not None:
            x, y, cx, cy = y, x, cy, cx
        sign = (x ^ y) & 1
        a, b = x >> 1, y >> 1
        if cx is not None:
            if cx == 0.0:
                return self.constant(0.0)
            if abs(cx) == 1.0:
                return 2 * b + sign
            inner = self.nodes[b]
            if inner[0] == "mul" and self.nodes[inner[1]][0] == "const":
                product = self.constant(abs(cx) * self.nodes[inner[1]][1])
                return self.mul(product, 2 * inner[2]) ^ sign
            return 2 * self.number(("mul", a, b)) + sign  # constants first
        return 2 * self.number(("mul", min(a, b), max(a, b))) + sign

    def div(self, x: int, y: int) -> int:
        cx, cy = self.value(x), self.value(y)
        if cx is not None and cy is not None and cy != 0.0:
            return self.constant(cx / cy)
        if cx == 0.0 and cy is None:
            return x
        if cy is not None and cy != 0.0 and math.frexp(abs(cy))[0] == 0.5 and 1.0 / cy != math.inf:
            return self.mul(x, self.constant(1.0 / cy))  # a power of two: exact
        return 2 * self.number(("div", x >> 1, y >> 1)) + ((x ^ y) & 1)

    def pow(self, x: int, y: int) -> int:
        """Small whole powers are products."""
        exponent = self.value(y)
        if exponent in (1.0, 2.0, 3.0, 4.0):
            square = self.mul(x, x)
            return {1.0: x, 2.0: square, 3.0: self.mul(square, x), 4.0: self.mul(square, square)}[exponent]
        if exponent == 0.5:
            return self.apply("sqrt", x)
        cx = self.value(x)
        if cx is not None and exponent is not None:
            return self.constant(float(SEMANTICS["pow"](_double(cx), _double(exponent))))
        return 2 * self.number(("pow", self.plain(x), self.plain(y)))

    def if_else_zero(self, condition: int, x: int) -> int:
        c, cx = self.value(condition), self.value(x)
        if c is not None:
            return x if c != 0.0 else self.constant(0.0)
        if cx == 0.0:
            return x
        if cx == 1.0 and self.nodes[condition >> 1][0] in COMPARISONS:
            return condition
        return 2 * self.number(("if_else_zero", condition >> 1, x >> 1)) + (x & 1)

    def logical_not(self, x: int) -> int:
        c = self.value(x)
        if c is not None:
            return self.constant(float(c == 0.0))
        inner = self.nodes[x >> 1]
        if inner[0] == "not" and self.nodes[inner[1]][0] in COMPARISONS:
            return int(2 * inner[1])
        return 2 * self.number(("not", x >> 1))

    def _as_select(self, x: int, y: int) -> int | None:
        """CasADi's if_else, ``(c ? a : 0) + (!c ? b : 0)``, is one selection."""
        a, b = self.nodes[x >> 1], self.nodes[y >> 1]
        if a[0] != "if_else_zero" or b[0] != "if_else_zero":
            return None
        if self.nodes[a[1]] == ("not", b[1]):
            x, y, a, b = y, x, b, a
        elif self.nodes[b[1]] != ("not", a[1]):
            return None
        yes, no = 2 * a[2] + (x & 1), 2 * b[2] + (y & 1)
        return 2 * self.number(("select", a[1], self.plain(yes), self.plain(no)))


def _double(value: float | None) -> float:
    return np.float64(value)  # NumPy's rules for 1/0 and sqrt(-1), not Python's exceptions
