"""The algebra of scalar values: value numbering with signs, and constants that fold.

Every value is a *signed reference*: node number times two, plus one when the value is the negative of the node.
Negation is then free, ``a - b`` and ``b - a`` share a node, ``(-a) * b`` is ``-(a * b)``, and so on; signs that remain
at the end become ``neg`` nodes, or are absorbed by subtractions and fused operations.

The algebra is that of finite numbers (``x * 0 = 0``, ``x - x = 0``): it may lose a NaN, but never makes one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress

import numpy as np

from linkwork.kernels.programs.operations import COMMUTATIVE, COMPARISONS, SEMANTICS
from linkwork.kernels.programs.program import Node

ZERO, ONE = 0, 2
"""The references of these two numbers, the same in every table."""

_ODD = frozenset({"sin", "tan", "asin", "atan", "sinh", "tanh", "sign"})
_EVEN = frozenset({"cos", "cosh", "fabs"})


class Outgrown(Exception):
    """A trace has more operations than it was allowed."""


class Values:
    """Hash-consed nodes, and the operations that make signed references of signed references.

    At most `limit` nodes.
    """

    def __init__(self, limit: int | None = None) -> None:
        self._limit = math.inf if limit is None else limit
        self.nodes: list[Node] = []
        self._number: dict[Node, int] = {}
        self._constants: dict[int, float] = {}  # of the nodes that are constants: their values, never negative
        self._special: dict[str, Callable[..., int]] = {
            "add": self.add,
            "sub": self.sub,
            "mul": self.mul,
            "div": self.div,
            "neg": self.neg,
            "if_else_zero": self.if_else_zero,
            "select": self.select,
            "not": self.logical_not,
            "pow": self.pow,
        }
        assert (self.constant(0.0), self.constant(1.0)) == (ZERO, ONE)

    def number(self, node: Node) -> int:
        """The number of this node, added if new."""
        n = self._number.setdefault(node, len(self.nodes))
        if n == len(self.nodes):
            self.nodes.append(node)
            if n > self._limit:
                raise Outgrown(f"more than {self._limit} operations")
        return n

    def needed(self, refs: Iterable[int]) -> int:
        """How many operations these values need."""
        seen, stack = set[int](), [r >> 1 for r in refs]
        while stack:
            n = stack.pop()
            if n not in seen and self.nodes[n][0] not in ("const", "input"):
                seen.add(n)
                stack += self.nodes[n][1:]
        return len(seen)

    @contextmanager
    def aside(self, worth: int) -> Iterator[None]:
        """Record what may not be used: it does not count for the limit, and ends after `worth` nodes."""
        limit, before = self._limit, len(self.nodes)
        self._limit = before + worth
        with suppress(Outgrown):
            yield
        self._limit = limit + len(self.nodes) - before

    def constant(self, value: float) -> int:
        """Constants are stored without sign, so that 2 and -2 are one node; a NaN keeps its own."""
        value = float(value)
        size = abs(value) + 0.0
        n = self.number(("const", size))
        self._constants[n] = size
        return 2 * n + (value < 0.0)

    def value(self, x: int) -> float | None:
        """The number that a reference stands for, None unless it is a constant."""
        size = self._constants.get(x >> 1)
        return -size if size is not None and x & 1 else size

    def plain(self, x: int) -> int:
        """The node of exactly this value, its sign written out."""
        if not x & 1:
            return x >> 1
        size = self._constants.get(x >> 1)
        return self.number(("neg", x >> 1) if size is None else ("const", -size))

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

    def replay(self, nodes: Iterable[Node], read: Callable[[Node], int]) -> list[int]:
        """The values of nodes of another program; `read` gives those of its inputs."""
        signed: list[int] = []
        for node in nodes:
            kind = node[0]
            if kind == "const":
                signed.append(self.constant(node[1]))
            elif kind == "input":
                signed.append(read(node))
            else:
                signed.append(self.apply(kind, *(signed[a] for a in node[1:])))
        return signed

    def neg(self, x: int) -> int:
        return x ^ 1 if x > 1 else ZERO

    def sub(self, x: int, y: int) -> int:
        return self.add(x, y ^ 1)

    def add(self, x: int, y: int) -> int:
        if x <= 1:
            return y if y != 1 else ZERO
        if y <= 1:
            return x
        if x == y ^ 1:
            return ZERO
        a, b = x >> 1, y >> 1
        p, q = self.nodes[a], self.nodes[b]
        kind, other = p[0], q[0]
        if kind == other == "const":
            return self.constant((-p[1] if x & 1 else p[1]) + (-q[1] if y & 1 else q[1]))
        if (  # the few sums that may be known: most additions end here
            ((kind == "add" or kind == "sub") and (p[1] == b or p[2] == b))
            or ((other == "add" or other == "sub") and (q[1] == a or q[2] == a))
            or (kind == other and (kind == "if_else_zero" or (kind == "mul" and p[1] == p[2] and q[1] == q[2])))
        ):
            known = self._sum_of_known(x, y)
            if known is not None:
                return known
        if (x ^ y) & 1 == 0:
            return 2 * self.number(("add", a, b) if a < b else ("add", b, a)) + (x & 1)
        minuend, subtrahend = (b, a) if x & 1 else (a, b)
        if minuend < subtrahend:
            return 2 * self.number(("sub", minuend, subtrahend))
        return 2 * self.number(("sub", subtrahend, minuend)) + 1

    def mul(self, x: int, y: int) -> int:
        if x <= 3 or y <= 3:  # 0, 1 and -1
            if x <= 1 or y <= 1:
                return ZERO
            return y ^ (x & 1) if x <= 3 else x ^ (y & 1)
        sign = (x ^ y) & 1
        a, b = (x >> 1, y >> 1) if x < y else (y >> 1, x >> 1)
        p, q = self.nodes[a], self.nodes[b]
        if q[0] == "const":
            a, b, p, q = b, a, q, p
        if p[0] != "const":
            if p[0] == "div" or q[0] == "div":
                for (kind, *parts), other in ((p, b), (q, a)):
                    if kind == "div":
                        dividend, divisor = parts
                        if divisor == other:
                            return 2 * int(dividend) ^ sign  # (x / a) a
                        if dividend == ONE >> 1:  # x (1 / a) is x / a, so that it meets a again; see share_reciprocals
                            return self.div(2 * other, 2 * divisor) ^ sign
        elif q[0] == "const":
            return self.constant(p[1] * q[1]) ^ sign
        elif q[0] == "mul" and q[1] in self._constants:
            return self.mul(self.constant(p[1] * self._constants[q[1]]), 2 * q[2]) ^ sign
        return 2 * self.number(("mul", a, b)) + sign  # constants first

    def div(self, x: int, y: int) -> int:
        cx, cy = self.value(x), self.value(y)
        if cx is not None and cy is not None and cy != 0.0:
            return self.constant(cx / cy)
        if cx == 0.0 and cy is None:
            return x
        if x >> 1 == y >> 1 and cy is None:
            return ONE ^ ((x ^ y) & 1)
        if cy is not None and cy != 0.0 and math.frexp(abs(cy))[0] == 0.5 and 1.0 / cy != math.inf:
            return self.mul(x, self.constant(1.0 / cy))  # a power of two: exact
        kind, *parts = self.nodes[x >> 1]
        if kind == "mul" and y >> 1 in parts and cy is None:
            return 2 * int(parts[parts[0] == y >> 1]) ^ ((x ^ y) & 1)  # (a b) / a
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

    def select(self, condition: int, yes: int, no: int) -> int:
        c = self.value(condition)
        if c is not None:
            return yes if c != 0.0 else no
        if yes == no:
            return yes
        return 2 * self.number(("select", condition >> 1, self.plain(yes), self.plain(no)))

    def if_else_zero(self, condition: int, x: int) -> int:
        c, cx = self.value(condition), self.value(x)
        if c is not None:
            return x if c != 0.0 else ZERO
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

    def _sum_of_known(self, x: int, y: int) -> int | None:
        """Sums that need no operation: (a - b) + b, sin^2 + cos^2, and CasADi's if_else."""
        p, q = self.nodes[x >> 1], self.nodes[y >> 1]
        for one, (kind, *parts), other in ((x, p, y), (y, q, x)):
            if kind == "add" or kind == "sub":
                a, b = 2 * int(parts[0]) ^ (one & 1), 2 * int(parts[1]) ^ (one & 1) ^ int(kind == "sub")
                if a == other ^ 1:
                    return b
                if b == other ^ 1:
                    return a
        if p[0] == q[0] == "mul" and p[1] == p[2] and q[1] == q[2] and (x ^ y) & 1 == 0:
            first, second = self.nodes[p[1]], self.nodes[q[1]]
            if first[1:] == second[1:] and {first[0], second[0]} == {"sin", "cos"}:
                return ONE ^ (x & 1)
        if p[0] == q[0] == "if_else_zero":  # (c ? a : 0) + (!c ? b : 0)
            if self.nodes[p[1]] == ("not", q[1]):
                x, y, p, q = y, x, q, p
            elif self.nodes[q[1]] != ("not", p[1]):
                return None
            return self.select(2 * p[1], 2 * p[2] + (x & 1), 2 * q[2] + (y & 1))
        return None


def _double(value: float | None) -> float:
    return np.float64(value)  # NumPy's rules for 1/0 and sqrt(-1), not Python's exceptions
