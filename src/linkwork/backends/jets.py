"""Numbers with derivatives, on top of any backend.

With them a relation in plain NumPy is differentiated while it runs. A jet has a value x of a backend (a float, or a
reference of a trace), first derivatives in several directions, and a second one along one of these, time. Operations
apply the chain rule,

    df = f' dx,    d2f/dt2 = f' d2x/dt2 + f'' (dx/dt)^2,

so that one run of phi(q) gives its Jacobian and its drift. Derivatives that are zero by structure are left out. NumPy
takes jets as objects: `np.sin` of one, or of an array of them, calls their method `sin`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from typing import Any, NoReturn

import numpy as np

from linkwork.backends.numpy_ import NumpyOps
from linkwork.backends.ops import Array, Ops

TIME = -1
"""The direction in which there is a second derivative."""


class Jet:
    """A number `x` of a backend, its derivatives `d` by direction, and the second one `dd` along TIME."""

    __slots__ = ("d", "dd", "x", "xp")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, xp: Ops, x: Array, d: Mapping[int, Array] | None = None, dd: Array | None = None) -> None:
        self.xp, self.x, self.d, self.dd = xp, x, d or {}, dd

    def __repr__(self) -> str:
        return f"Jet({self.x!r})"

    def _linear(self, f: Callable[[Array], Array]) -> Jet:
        """f(x) of a function that is its own derivative: a product with a number."""
        return Jet(self.xp, f(self.x), {k: f(d) for k, d in self.d.items()}, None if self.dd is None else f(self.dd))

    def _chain(self, value: Array, slope: Array, bend: Array | None) -> Jet:
        """A function of x, from its value, f' and f''; None stands for zero."""
        dd = None if self.dd is None else slope * self.dd
        if TIME in self.d and bend is not None:
            dd = _sum(dd, bend * (self.d[TIME] * self.d[TIME]))
        return Jet(self.xp, value, {k: slope * d for k, d in self.d.items()}, dd)

    # operators

    def __pos__(self) -> Jet:
        return self

    def __neg__(self) -> Jet:
        return self._linear(lambda x: -x)

    def __add__(self, other: Any) -> Any:
        if isinstance(other, Real):
            return Jet(self.xp, self.x + float(other), self.d, self.dd)
        if not isinstance(other, Jet):
            return NotImplemented
        d = {k: _sum(self.d.get(k), other.d.get(k)) for k in {**self.d, **other.d}}
        return Jet(self.xp, self.x + other.x, d, _sum(self.dd, other.dd))

    def __radd__(self, other: Any) -> Any:
        return self + other

    def __sub__(self, other: Any) -> Any:
        return self + -other if isinstance(other, Real | Jet) else NotImplemented

    def __rsub__(self, other: Any) -> Any:
        return -self + other if isinstance(other, Real) else NotImplemented

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, Real):
            factor = float(other)
            return self._linear(lambda x: factor * x)
        if not isinstance(other, Jet):
            return NotImplemented
        x, y = self.x, other.x
        d = {k: _sum(_times(x, other.d.get(k)), _times(y, self.d.get(k))) for k in {**self.d, **other.d}}
        dd = _sum(_times(x, other.dd), _times(y, self.dd))
        if TIME in self.d and TIME in other.d:
            dd = _sum(dd, 2.0 * (self.d[TIME] * other.d[TIME]))
        return Jet(self.xp, x * y, d, dd)

    def __rmul__(self, other: Any) -> Any:
        return self * other

    def __truediv__(self, other: Any) -> Any:
        if isinstance(other, Real):
            divisor = float(other)
            return self._linear(lambda x: x / divisor)
        return self * other.reciprocal() if isinstance(other, Jet) else NotImplemented

    def __rtruediv__(self, other: Any) -> Any:
        return self.reciprocal() * other if isinstance(other, Real) else NotImplemented

    def __pow__(self, other: Any) -> Any:
        if not isinstance(other, Real):
            return (self.log() * other).exp() if isinstance(other, Jet) else NotImplemented
        n = float(other)
        slope = self._constant(n) if n in (0.0, 1.0) else n * self.x ** (n - 1.0)
        bend = None if n in (0.0, 1.0) else n * (n - 1.0) * (self.x ** (n - 2.0) if n != 2.0 else self._constant(1.0))
        return self._chain(self.x**n, slope, bend)

    def __rpow__(self, other: Any) -> Any:
        return (self * np.log(float(other))).exp() if isinstance(other, Real) else NotImplemented

    def __abs__(self) -> Jet:
        sign = self.xp.where(self.x < 0.0, self._constant(-1.0), self._constant(1.0))
        return self._linear(lambda x: sign * x)

    # functions that NumPy calls by these names

    def reciprocal(self) -> Jet:
        r = 1.0 / self.x
        return self._chain(r, -r * r, 2.0 * r * r * r)

    def sqrt(self) -> Jet:
        root = self.xp.sqrt(self.x)
        slope = 0.5 / root
        return self._chain(root, slope, -0.5 * slope / self.x)

    def exp(self) -> Jet:
        e = self.xp.apply("exp", self.x)
        return self._chain(e, e, e)

    def log(self) -> Jet:
        r = 1.0 / self.x
        return self._chain(self.xp.apply("log", self.x), r, -r * r)

    def sin(self) -> Jet:
        s, c = self.xp.sin(self.x), self.xp.cos(self.x)
        return self._chain(s, c, -s)

    def cos(self) -> Jet:
        s, c = self.xp.sin(self.x), self.xp.cos(self.x)
        return self._chain(c, -s, -c)

    def tan(self) -> Jet:
        t = self.xp.apply("tan", self.x)
        slope = 1.0 + t * t
        return self._chain(t, slope, 2.0 * t * slope)

    def arcsin(self) -> Jet:
        slope = 1.0 / self.xp.sqrt(1.0 - self.x * self.x)
        return self._chain(self.xp.apply("asin", self.x), slope, self.x * slope * slope * slope)

    def arccos(self) -> Jet:
        slope = -1.0 / self.xp.sqrt(1.0 - self.x * self.x)
        return self._chain(self.xp.apply("acos", self.x), slope, self.x * slope * slope * slope)

    def arctan(self) -> Jet:
        slope = 1.0 / (1.0 + self.x * self.x)
        return self._chain(self.xp.apply("atan", self.x), slope, -2.0 * self.x * slope * slope)

    def sinh(self) -> Jet:
        s, c = self.xp.apply("sinh", self.x), self.xp.apply("cosh", self.x)
        return self._chain(s, c, s)

    def cosh(self) -> Jet:
        s, c = self.xp.apply("sinh", self.x), self.xp.apply("cosh", self.x)
        return self._chain(c, s, c)

    def tanh(self) -> Jet:
        t = self.xp.apply("tanh", self.x)
        slope = 1.0 - t * t
        return self._chain(t, slope, -2.0 * t * slope)

    def hypot(self, other: Any) -> Any:
        return (self * self + other * other).sqrt()

    def arctan2(self, other: Any) -> Jet:
        """The angle of (other, self): with r^2 = x^2 + y^2,

        dz = (x dy - y dx) / r^2,    d2z/dt2 = (x d2y - y d2x) / r^2 - dz/dt dr^2/dt / r^2.
        """
        x, y = (other if isinstance(other, Jet) else self._of(other)), self
        over = 1.0 / (x.x * x.x + y.x * y.x)
        d = {k: over * _sum(_times(x.x, y.d.get(k)), _times(-y.x, x.d.get(k))) for k in {**x.d, **y.d}}
        dd = _times(over, _sum(_times(x.x, y.dd), _times(-y.x, x.dd)))
        if TIME in d:
            grows = _sum(_times(x.x, x.d.get(TIME)), _times(y.x, y.d.get(TIME)))
            dd = _sum(dd, _times(-2.0 * d[TIME] * over, grows))
        return Jet(self.xp, self.xp.atan2(y.x, x.x), d, dd)

    def _constant(self, a: float) -> Array:
        return self.xp.constant([[a]])[0, 0]

    def _of(self, a: float) -> Jet:
        return Jet(self.xp, self._constant(a))

    # what it cannot do

    def _undecided(self, other: Any = None) -> NoReturn:
        raise TypeError("a relation is run once for all configurations: it cannot branch on values or compare them")

    __bool__ = __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _undecided

    def __float__(self) -> NoReturn:
        raise TypeError("a relation is run once for all configurations: use NumPy's functions, np.sin not math.sin")


def _sum(a: Array | None, b: Array | None) -> Array | None:
    return b if a is None else a if b is None else a + b


def _times(factor: Array, a: Array | None) -> Array | None:
    return None if a is None else factor * a


class JetOps(NumpyOps):
    """The contract of backends for columns of jets: what formulas of joints need to be differentiated."""

    name = "jets"

    def matrix(self, rows: Sequence[Sequence[Any]]) -> Array:
        return np.array(rows, dtype=object)

    def cross(self, a: Array, b: Array) -> Array:
        return np.cross(a, b, axis=0)


JETS = JetOps()
