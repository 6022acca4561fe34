"""Linear-quadratic problems over a horizon, by Riccati's recursion in machine code.

    min  sum_t 1/2 x'Q x + u'S x + 1/2 u'R u + q'x + r'u,     x_{t+1} = A x + B u + b

from x_0 on, with matrices of each knot. With the cost to go 1/2 x'V x + s'x, V = Q and s = q at the end, knots do

    p = s + V b
    F = Q + A'V A,    G = S + B'V A,    H = R + B'V B + damping,    f = q + A'p,    h = r + B'p
    K = -H^-1 G,      k = -H^-1 h,      V = F + G'K,                s = f + G'k

and then, forward in time, u = k + K x. F and V are computed on one side of their diagonal. -H^-1 comes of a Cholesky
factorisation in straight-line code; all the rest is products (kernels/programs/products.py): n^2 (3 n + 5 m) + 4 n m^2
operations or so, for n states and m controls.
"""

from __future__ import annotations

from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from linkwork.backends import Array, Ops
from linkwork.checks import NOT_NEGATIVE, Refused, checked, real_array, shown, whole
from linkwork.errors import InputError, listing
from linkwork.functions.options import OPTIONS
from linkwork.kernels.calls.sweep import Copy, SweepKernel, SweepProgram, in_rows
from linkwork.kernels.programs.products import Factor, Product, Rows, mirror
from linkwork.kernels.programs.program import Port, Program
from linkwork.kernels.programs.trace import Symbol, trace

BLOCK = 8
"""Rows of a symmetric matrix that are computed together, from the first of them on: the columns of a register."""

AXES = {"A": 3, "B": 3, "Q": 3, "R": 3, "S": 3, "q": 2, "r": 2, "b": 2, "x0": 1}
"""Axes of the arrays of one problem."""

END = ("Q", "q")
"""Those that the end has, too."""

FAR = 1e30
"""What no cost reaches."""


class LinearQuadratic(NamedTuple):
    """The minimiser of a linear-quadratic problem.

    States `x` (T + 1, n) and controls `u` (T, m), the policy u = k + K x in `K` (T, m, n) and `k` (T, m), the gradient
    `s` (T, n) of the cost to go at x = 0, by how much controls reduce the cost, `decrease` = 1/2 sum h'H^-1 h, and
    `factored`: of how many knots, from the end, H was positive definite. Where that is less than T, there is no
    minimum, and everything else is zero: add damping.
    """

    x: np.ndarray
    u: np.ndarray
    K: np.ndarray
    k: np.ndarray
    s: np.ndarray
    decrease: np.ndarray
    factored: np.ndarray


class Riccati:
    """`sweep(A, B, Q, R, q, r)`: problems of `n` states and `m` controls; see `lw.riccati`."""

    def __init__(self, n: int, m: int, dtype: str, threads: int | None) -> None:
        self.n, self.m = n, m
        self._back = {c: SweepKernel(backward(n, m, c, dtype), None, dtype, threads) for c in (False, True)}
        self._ahead = SweepKernel(forward(n, m), None, dtype, threads)

    def __repr__(self) -> str:
        return f"<Riccati's recursion, {self.n} states, {self.m} controls>"

    @property
    def operations(self) -> int:
        """Arithmetic operations at a knot, without cross terms S."""
        return self._back[False].program.operations + self._ahead.program.operations

    @checked(damping=NOT_NEGATIVE)
    def __call__(
        self,
        A: ArrayLike,
        B: ArrayLike,
        Q: ArrayLike,
        R: ArrayLike,
        q: ArrayLike,
        r: ArrayLike,
        *,
        S: ArrayLike | None = None,
        b: ArrayLike | None = None,
        x0: ArrayLike | None = None,
        damping: float = 0.0,
    ) -> LinearQuadratic:
        """Solve one problem, or as many as there are along a first axis.

        A (T, n, n), B (T, n, m), R (T, m, m), r (T, m), S (T, m, n), b (T, n), x0 (n,); Q (T + 1, n, n) and
        q (T + 1, n) have the end, too. B, R, r, S, b that are equal at all knots may be given once. `damping` is added
        to the diagonal of H. Q and R must be symmetric.
        """
        n, m = self.n, self.m
        given: dict[str, tuple[ArrayLike, tuple[int, ...]]] = {"A": (A, (n, n)), "B": (B, (n, m)), "Q": (Q, (n, n))}
        given |= {"R": (R, (m, m)), "q": (q, (n,)), "r": (r, (m,)), "b": (np.zeros(n) if b is None else b, (n,))}
        given |= {} if S is None else {"S": (S, (m, n))}
        x = {name: _array(name, value, 1, shape) for name, (value, shape) in given.items()}
        x["x0"] = _array("x0", np.zeros(n) if x0 is None else x0, 0, (n,))
        T = x["A"].shape[-3] if x["A"].ndim > 2 else 0
        batches = dict[str, int]()
        for name, y in x.items():
            axes = y.shape[: y.ndim - len(given[name][1])] if name in given else ()
            knots = T + (name in END)
            if (name in given and axes[-1:] != (knots,) and (axes or name in ("A", *END))) or not T:
                raise InputError(f"{name} has shape {y.shape}; {T} steps need {knots} of these matrices")
            if y.ndim > AXES[name]:
                batches[name] = y.shape[0]
        if len({*batches.values()}) > 1:
            raise InputError(f"numbers of problems that differ: {listing(f'{k} in {n}' for n, k in batches.items())}")
        return self._solved(x, T, damping, next(iter(batches.values()), None))

    def _solved(self, x: dict[str, np.ndarray], T: int, damping: float, batch: int | None) -> LinearQuadratic:
        """Both sweeps."""
        problems = 1 if batch is None else batch
        back, ahead = self._back["S" in x], self._ahead
        x |= {name: in_rows(x[name], x[name].shape[-2:], back.dtype) for name in "AB"}  # once for both sweeps
        lanes = 1 if problems == 1 or self.n >= 2 * back.lanes else back.lanes  # columns fill registers well enough
        end = {"V": x["Q"][..., -1, :, :], "s": x["q"][..., -1, :], "counted": np.zeros(2)}
        found = back(T, problems, {**x, **end, "damping": np.full(1, damping)}, lanes)
        then = ahead(T, problems, {**x, "x": x["x0"], "K": found["K"], "k": found["k"]}, lanes)
        states = np.empty((problems, T + 1, self.n), back.dtype)
        states[:, 0], states[:, 1:] = x["x0"], then["next"]
        counted, s = found["counted"], found["s'"]
        factored = counted[:, 0].astype(int)
        out = LinearQuadratic(states, then["u"], found["K"], found["k"], s, counted[:, 1], factored)
        reached = sum(y.reshape(problems, prod(y.shape[1:])).sum(1) for y in (states, out.u, s[:, 0]))
        reached = reached + x["Q"][..., 0, :, :].sum((-1, -2))
        odd = ~np.isfinite(reached)  # every input is in one of these
        failed = odd | (factored < T)
        if failed.any():
            if bad := [name for name, y in x.items() if not np.isfinite(y).all()]:
                raise InputError(f"not all numbers of {listing(bad)} are finite")
            for y in out[:-1]:
                y[failed] = 0
            factored[odd & (factored == T)] = 0  # numbers too large to be represented
        return LinearQuadratic(*(y[0] for y in out)) if batch is None else out


def backward(n: int, m: int, cross: bool, dtype: str) -> SweepProgram:
    """The recursion from the end to the start; sums are in place: Q becomes F, S G, R H, q f, r h, s p."""
    matrices = [
        *(Port(name, (n, n)) for name in ("V", "A", "VA", "Q")),
        *(Port(name, (n, m)) for name in ("B", "VB")),
        *(Port(name, (m, n)) for name in ("S", "K")),
        *(Port(name, (m, m)) for name in ("R", "inverse")),
        *(Port(name, (n,)) for name in ("s", "s'", "b", "q")),
        *(Port(name, (m,)) for name in ("r", "k")),
        Port("damping", (1,)),
        *(Port(name, (2,)) for name in ("counted", "count")),
    ]
    state, control = tuple(range(n)), tuple(range(m))
    A, B, S, K = (_rows(name, count) for name, count in (("A", n), ("B", n), ("S", m), ("K", m)))
    before = [
        Product(_rows("s", 1), Factor("b", (0,), state), _rows("V", n), n, add=True),
        Product(_rows("VA", n), Factor("V", state, state), A, n),
        Product(_rows("VB", n), Factor("V", state, state), B, m),
        *_upper("Q", n, Factor("A", state, state, transposed=True), "VA"),
        Product(S, Factor("B", control, state, transposed=True), _rows("VA", n), n, add=cross),
        Product(_rows("R", m), Factor("B", control, state, transposed=True), _rows("VB", n), m, add=True),
        Product(_rows("q", 1), Factor("s", (0,), state), A, n, add=True),
        Product(_rows("r", 1), Factor("s", (0,), state), B, m, add=True),
    ]
    after = [
        Product(K, Factor("inverse", control, control), S, n),
        Product(_rows("k", 1), Factor("r", (0,), control), _rows("inverse", m), m),
        *_upper("Q", n, Factor("S", state, control, transposed=True), "K"),
        Product(_rows("q", 1), Factor("r", (0,), control), K, n, add=True),
    ]
    halves = mirror("V", ((i, j) for i in state for j in range(i - i % BLOCK)))
    copies = Copy("V", "Q"), Copy("s", "q"), Copy("s'", "q"), Copy("counted", "count")
    stages = [before, factorised(m, dtype), after, *copies, [halves]]
    timed = ["A", "B", "Q", "R", "q", "r", "b", *(["S"] if cross else [])]
    named = {"fixed": ["damping"], "state": ["V", "s", "counted"], "timed": timed, "recorded": ["K", "k", "s'"]}
    return SweepProgram("riccati", matrices, stages, **named, total="counted", backward=True)  # type: ignore[arg-type]


def forward(n: int, m: int) -> SweepProgram:
    """The policy followed from the start: u = k + K x, x+ = b + A x + B u, in place of k and b."""
    matrices = [Port("A", (n, n)), Port("B", (n, m)), Port("K", (m, n)), Port("k", (m,)), Port("u", (m,))]
    matrices += [Port(name, (n,)) for name in ("x", "b", "next")]
    state, control = tuple(range(n)), tuple(range(m))
    stages = [
        [Product(_rows("k", m), Factor("K", control, state), _rows("x", n), 1, add=True)],
        Copy("u", "k"),
        [
            Product(_rows("b", n), Factor("A", state, state), _rows("x", n), 1, add=True),
            Product(_rows("b", n), Factor("B", state, control), _rows("u", m), 1, add=True),
        ],
        Copy("next", "b"),
        Copy("x", "b"),
    ]
    named = {"state": ["x"], "timed": ["A", "B", "K", "k", "b"], "recorded": ["u", "next"]}
    return SweepProgram("policy", matrices, stages, **named, total="x")  # type: ignore[arg-type]


def factorised(m: int, dtype: str) -> Program:
    """-H^-1 by Cholesky's factorisation; knots whose H is positive definite and 1/2 h'H^-1 h are counted."""

    def body(xp: Ops, symbol: Symbol) -> dict[str, Array]:
        given, h, counted, damping = symbol("R", m * m), symbol("r", m), symbol("counted", 2), symbol("damping", 1)
        H = xp.vstack([given[m * i : m * (i + 1), :].T for i in range(m)])
        L = xp.cholesky(xp.symmetric(H) + damping[0, 0] * xp.eye(m))
        Y = xp.solve_lower(L, xp.eye(m))
        y = Y @ h
        decrease = 0.5 * (y.T @ y)
        good = xp.where(decrease < FAR, xp.eye(1), xp.zeros(1))  # no number is not below anything
        return {"inverse": -(Y.T @ Y), "count": counted + xp.vstack([good, decrease])}

    shapes = {"R": (m, m), "r": (m,), "inverse": (m, m)}
    return trace("factorised", body, single=dtype == "float32", shapes=shapes)


def _rows(matrix: str, count: int) -> Rows:
    return Rows(tuple((matrix, k) for k in range(count)))


def _upper(matrix: str, n: int, A: Factor, B: str) -> list[Product]:
    """Add A times B, which is symmetric, to a matrix: blocks of rows, each from its diagonal on."""
    out = []
    for first in range(0, n, BLOCK):
        rows = tuple(range(first, min(first + BLOCK, n)))
        there = tuple((B, k) for k in range(len(A.columns)))
        C = Rows(tuple((matrix, i) for i in rows), first)
        out.append(Product(C, A._replace(rows=rows), Rows(there, first), n - first, add=True))
    return out


def _array(name: str, value: ArrayLike, time: int, shape: tuple[int, ...]) -> np.ndarray:
    """An array of this shape, perhaps behind axes of time and of problems."""
    try:
        x = real_array(value)
    except Refused as why:
        raise InputError(f"{name} is no array of real numbers: {str(why) or shown(value)}") from None
    before = x.ndim - len(shape)
    if not 0 <= before <= time + 1 or x.shape[before:] != shape:
        core = ", ".join([*["T"] * time, *map(str, shape)])
        raise InputError(f"{name} has shape {x.shape}; it needs ({core}), or (problems, {core})")
    return x


@checked(n=whole(1, 1000), m=whole(1, 100), dtype=OPTIONS["dtype"], threads=OPTIONS["threads"])
def riccati(n: int, m: int, *, dtype: str = "float64", threads: int | None = None) -> Riccati:
    """`sweep(A, B, Q, R, q, r) -> x, u, K, k, ...`: problems of `n` states and `m` controls.

    The minimum of a quadratic cost over a horizon of linear steps, such as `discrete_step(...).linearize` gives, by
    Riccati's recursion in one native loop: the inner problem of DDP and of linear model-predictive control. Several
    problems are solved at once, on `threads` threads. See `Riccati.__call__` for what it takes, `LinearQuadratic` for
    what it gives.

    Examples:
        >>> sweep = lw.riccati(1, 1)
        >>> A, B, Q, R = np.ones((50, 1, 1)), [[1.0]], np.ones((51, 1, 1)), [[1.0]]
        >>> found = sweep(A, B, Q, R, np.zeros((51, 1)), [0.0], x0=[1.0])
        >>> found.K[0].round(4), found.u[0].round(4)          # the golden ratio less one
        (array([[-0.618]]), array([-0.618]))
    """
    return Riccati(n, m, dtype, threads)
