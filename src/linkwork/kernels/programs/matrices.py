"""The recording backend: matrices of references to the values of the program that is being traced.

An algorithm that runs on it records a straight line of scalar operations. Constants fold and equal values are shared
while it runs (kernels/programs/value_numbering.py), so a trace costs what the structure of the robot needs:
microseconds per operation, linear in the size of the mechanism.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from linkwork.backends.ops import Array
from linkwork.backends.written_out import WrittenOut
from linkwork.kernels.programs.from_casadi import as_scalar_function, read_casadi
from linkwork.kernels.programs.value_numbering import ONE, ZERO, Values


class Matrix:
    """A matrix whose entries are values of a program: row-major signed references."""

    __slots__ = ("refs", "shape", "values")
    __array_ufunc__ = None  # NumPy leaves mixed operations to this class
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, values: Values, shape: tuple[int, int], refs: Sequence[int]) -> None:
        self.values, self.shape, self.refs = values, shape, refs

    def __repr__(self) -> str:
        return f"Matrix({self.shape[0]} x {self.shape[1]})"

    @property
    def T(self) -> Matrix:
        rows, columns = self.shape
        if rows == 1 or columns == 1:
            return Matrix(self.values, (columns, rows), self.refs)
        return Matrix(self.values, (columns, rows), [x for j in range(columns) for x in self.refs[j::columns]])

    def __getitem__(self, at: tuple[Any, Any]) -> Matrix:
        i, j = at
        rows, columns = self.shape
        if type(i) is int and type(j) is int:
            if not (-rows <= i < rows and -columns <= j < columns):
                raise IndexError(f"entry ({i}, {j}) of a {rows} x {columns} matrix")
            return Matrix(self.values, (1, 1), [self.refs[(i % rows) * columns + j % columns]])
        chosen, across = _places(i, rows), _places(j, columns)
        refs = self.refs
        if columns == 1 and len(across) == 1:
            return Matrix(self.values, (len(chosen), 1), [refs[r] for r in chosen])
        return Matrix(self.values, (len(chosen), len(across)), [refs[r * columns + c] for r in chosen for c in across])

    def __matmul__(self, other: Any) -> Matrix:
        if not isinstance(other, Matrix):
            if not isinstance(other, np.ndarray):
                return NotImplemented
            other = _constant(self.values, other)
        (rows, inner), (rows_b, columns) = self.shape, other.shape
        if inner != rows_b:
            raise ValueError(f"a {rows} x {inner} matrix times a {rows_b} x {columns} one")
        add, mul = self.values.add, self.values.mul
        a, b, refs = self.refs, other.refs, []
        for i in range(rows):
            row = [(k * columns, x) for k, x in enumerate(a[i * inner : (i + 1) * inner]) if x]
            for j in range(columns):
                total = ZERO
                for k, x in row:
                    y = b[k + j]
                    if y:
                        total = add(total, mul(x, y)) if total else mul(x, y)
                refs.append(total)
        return Matrix(self.values, (rows, columns), refs)

    def __rmatmul__(self, other: Any) -> Matrix:
        return _constant(self.values, other) @ self

    def __neg__(self) -> Matrix:
        neg = self.values.neg
        return Matrix(self.values, self.shape, [neg(x) for x in self.refs])

    def __add__(self, other: Any) -> Matrix:
        return _elementwise(self.values, self.values.add, self, other)

    def __radd__(self, other: Any) -> Matrix:
        return _elementwise(self.values, self.values.add, other, self)

    def __sub__(self, other: Any) -> Matrix:
        return _elementwise(self.values, self.values.sub, self, other)

    def __rsub__(self, other: Any) -> Matrix:
        return _elementwise(self.values, self.values.sub, other, self)

    def __mul__(self, other: Any) -> Matrix:
        return _elementwise(self.values, self.values.mul, self, other)

    def __rmul__(self, other: Any) -> Matrix:
        return _elementwise(self.values, self.values.mul, other, self)

    def __truediv__(self, other: Any) -> Matrix:
        return _elementwise(self.values, self.values.div, self, other)

    def __rtruediv__(self, other: Any) -> Matrix:
        return _elementwise(self.values, self.values.div, other, self)

    def __pow__(self, other: Any) -> Matrix:
        return _elementwise(self.values, self.values.pow, self, other)

    def __lt__(self, other: Any) -> Matrix:
        return _compared("lt", self.values, self, other)

    def __le__(self, other: Any) -> Matrix:
        return _compared("le", self.values, self, other)

    def __gt__(self, other: Any) -> Matrix:
        return _compared("lt", self.values, other, self)

    def __ge__(self, other: Any) -> Matrix:
        return _compared("le", self.values, other, self)

    def __bool__(self) -> bool:
        raise TypeError("a traced value is neither true nor false: use xp.where, or xp.is_zero for structure")


class Square(NamedTuple):
    """A symmetric matrix, and the rows of its factors by column: refs[i, j] = left[i] . right[j]."""

    refs: Sequence[int]
    left: Sequence[Mapping[int, int]]
    right: Sequence[Mapping[int, int]]


class Tracer(WrittenOut):
    """A backend that records one program of at most `limit` operations; `single` is for float32."""

    name = "tracing"
    dense = False

    def __init__(self, limit: int | None = None, single: bool = False) -> None:
        self.values, self.single = Values(limit), single
        self.inputs: dict[str, int] = {}
        self.squares: list[Square] = []

    def symbol(self, name: str, size: int) -> Matrix:
        """The next input of the program, a column."""
        port = len(self.inputs)
        self.inputs[name] = size
        return Matrix(self.values, (size, 1), [2 * self.values.number(("input", port, e)) for e in range(size)])

    def constant(self, a: Any) -> Matrix:
        return _constant(self.values, a)

    def zeros(self, rows: int, cols: int = 1) -> Matrix:
        return Matrix(self.values, (rows, cols), [ZERO] * (rows * cols))

    def eye(self, n: int) -> Matrix:
        return Matrix(self.values, (n, n), [ONE if i == j else ZERO for i in range(n) for j in range(n)])

    def matrix(self, rows: Sequence[Sequence[Array]]) -> Matrix:
        refs = [_scalar(self.values, x) for row in rows for x in row]
        return Matrix(self.values, (len(rows), len(refs) // max(len(rows), 1)), refs)

    def vstack(self, parts: Sequence[Array]) -> Matrix:
        blocks = [_matrix(self.values, p) for p in parts]
        refs: list[int] = []
        for block in blocks:
            refs.extend(block.refs)
        columns = max((block.shape[1] for block in blocks), default=1)
        rows = sum(block.shape[0] for block in blocks)
        if rows * columns != len(refs):
            raise ValueError(f"blocks of shapes {[b.shape for b in blocks]} do not stack")
        return Matrix(self.values, (rows, columns), refs)

    def hstack(self, parts: Sequence[Array]) -> Matrix:
        return self.vstack([_matrix(self.values, p).T for p in parts]).T

    def cross(self, a: Array, b: Array) -> Matrix:
        (x, y, z), n = a.refs, self.values.neg
        skew = Matrix(self.values, (3, 3), [ZERO, n(z), y, z, ZERO, n(x), n(y), x, ZERO])
        return skew @ _matrix(self.values, b)

    def sin(self, x: Array) -> Matrix:
        return self._each("sin", x)

    def cos(self, x: Array) -> Matrix:
        return self._each("cos", x)

    def sqrt(self, x: Array) -> Matrix:
        return self._each("sqrt", x)

    def atan2(self, y: Array, x: Array) -> Matrix:
        return _elementwise(self.values, lambda a, b: self.values.apply("atan2", a, b), y, x)

    def apply(self, function: str, x: Array) -> Matrix:
        return self._each(function, x)

    def where(self, condition: Array, yes: Array, no: Array) -> Matrix:
        parts = [_matrix(self.values, x) for x in (condition, yes, no)]
        rows, columns = next((p.shape for p in parts if p.shape != (1, 1)), (1, 1))
        triples = zip(*(_spread(p, rows, columns).refs for p in parts), strict=True)
        return Matrix(self.values, (rows, columns), [self.values.select(*x) for x in triples])

    def is_zero(self, a: Array) -> bool:
        return not any(a.refs)

    def held(self, a: Array) -> Matrix:
        """With a = x / m, the trace of m a is x: a `guarded` node in between keeps that a product."""
        refs = [self.values.apply("guarded", ref & ~1, ref & ~1) ^ (ref & 1) for ref in a.refs]
        return Matrix(self.values, a.shape, refs)

    def symmetric(self, a: Array) -> Matrix:
        n, refs = a.shape[0], a.refs
        return Matrix(self.values, a.shape, [refs[max(i, j) * n + min(i, j)] for i in range(n) for j in range(n)])

    def square(self, a: Array, left: Sequence[Mapping[int, Array]], right: Sequence[Mapping[int, Array]]) -> Matrix:
        factors = ([{k: _scalar(self.values, x) for k, x in row.items()} for row in part] for part in (left, right))
        self.squares.append(Square(a.refs, *factors))
        return _matrix(self.values, a)

    def fewest(self, candidates: Sequence[Callable[[], Array]], share: float = 1.0) -> Matrix:
        best: Matrix = candidates[0]()
        for make in candidates[1:]:
            count = int(share * self.values.needed(best.refs))
            with self.values.aside(count):
                other = make()
                best = other if self.values.needed(other.refs) < count else best
        return best

    def call(self, function: Any, *args: Array) -> tuple[Matrix, ...]:
        nodes, results = read_casadi(as_scalar_function(function))
        signed = self.values.replay(nodes, lambda node: int(args[node[1]].refs[node[2]]))
        shapes = [function.size_out(k) for k in range(function.n_out())]
        return tuple(Matrix(self.values, s, [signed[v] for v in r]) for s, r in zip(shapes, results, strict=True))

    def _each(self, kind: str, x: Array) -> Matrix:
        m = _matrix(self.values, x)
        return Matrix(self.values, m.shape, [self.values.apply(kind, ref) for ref in m.refs])


def _places(index: Any, size: int) -> Sequence[int]:
    """The rows or columns that an index selects."""
    if isinstance(index, slice):
        return range(*index.indices(size))
    chosen = [int(index)] if np.ndim(index) == 0 else [int(k) for k in index]
    if any(not -size <= k < size for k in chosen):
        raise IndexError(f"index {index} of {size} rows or columns")
    return [k % size for k in chosen]


def _scalar(values: Values, x: Any) -> int:
    if isinstance(x, Matrix):
        (ref,) = x.refs
        return ref
    return values.constant(float(x))


def _constant(values: Values, a: Any) -> Matrix:
    a = np.asarray(a, dtype=float)
    rows, columns = a.shape if a.ndim == 2 else (a.size, 1)
    return Matrix(values, (rows, columns), [values.constant(x) for x in a.ravel().tolist()])


def _matrix(values: Values, x: Any) -> Matrix:
    return x if isinstance(x, Matrix) else _constant(values, x)


def _elementwise(values: Values, operation: Callable[[int, int], int], a: Any, b: Any) -> Matrix:
    """Entry by entry, with broadcasting of numbers, rows and columns."""
    a, b = _matrix(values, a), _matrix(values, b)
    if a.shape != b.shape:
        rows, columns = (x if y == 1 else y for x, y in zip(a.shape, b.shape, strict=True))
        a, b = _spread(a, rows, columns), _spread(b, rows, columns)
    return Matrix(values, a.shape, list(map(operation, a.refs, b.refs)))


def _spread(a: Matrix, rows: int, columns: int) -> Matrix:
    if a.shape == (rows, columns):
        return a
    if a.shape == (1, 1):
        return Matrix(a.values, (rows, columns), [a.refs[0]] * (rows * columns))
    if a.shape == (rows, 1):
        return Matrix(a.values, (rows, columns), [x for x in a.refs for _ in range(columns)])
    if a.shape == (1, columns):
        return Matrix(a.values, (rows, columns), list(a.refs) * rows)
    raise ValueError(f"a {a.shape[0]} x {a.shape[1]} matrix does not broadcast to {rows} x {columns}")


def _compared(kind: str, values: Values, a: Any, b: Any) -> Matrix:
    return _elementwise(values, lambda x, y: values.apply(kind, x, y), a, b)
