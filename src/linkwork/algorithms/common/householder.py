"""Householder reflections without pivots: with sign(0) = +1 all lanes run the same operations.

Q = 1 - beta w w^T,     Q e = (length, 0, ..., 0),     w = e + sign(e_1) |e| (1, 0, ..., 0)
"""

from __future__ import annotations

from dataclasses import dataclass

from linkwork.backends.ops import Array, Ops


@dataclass(frozen=True)
class Reflection:
    """Q = 1 - beta w w^T, symmetric and orthogonal, with Q e = (length, 0, ..., 0)."""

    w: Array
    beta: Array
    length: Array

    def __matmul__(self, x: Array) -> Array:
        return x if self.w.shape[0] == 1 else x - self.w @ (self.beta * (self.w.T @ x))


def reflection(e: Array, xp: Ops) -> Reflection:
    """Householder's reflection of a column onto its first entry; harmless for e = 0."""
    if e.shape[0] == 1:
        return Reflection(e, 0.0, e[0, 0])
    n2, first = (e.T @ e)[0, 0], e[0, 0]
    n = xp.sqrt(n2)
    signed = xp.where(first < 0, -n, n)
    w = xp.vstack([e[0:1, :] + signed, e[1:, :]])
    return Reflection(w, 1 / xp.where(n2 > 0, n2 + first * signed, 1.0), -signed)


class QR:
    """K = Q [R; 0] for at least as many rows as columns.

    A column whose part that no earlier one has is not above `least` of it, counts as dependent on these, and R is NaN.
    """

    def __init__(self, K: Array, xp: Ops, least: float = 0.0) -> None:
        self.xp, self.columns, self.turns, rows = xp, K.shape[1], list[Reflection](), list[Array]()
        for j in range(self.columns):
            Q, size = reflection(K[:, 0:1], xp), (K[:, 0:1].T @ K[:, 0:1])[0, 0]
            if rows:
                size = size + sum(r[0, j] * r[0, j] for r in rows)
            pivot = xp.where(Q.length * Q.length > least**2 * size, Q.length, float("nan"))
            K = Q @ K[:, 1:]
            self.turns.append(Q)
            rows.append(xp.hstack([xp.zeros(1, j), xp.matrix([[pivot]]), K[0:1, :]]))
            K = K[1:, :]
        self.R = xp.vstack([xp.zeros(0, self.columns), *rows])

    def apply(self, x: Array) -> Array:
        """Q^T x, for columns."""
        done = [x[0:0, :]]
        for Q in self.turns:
            x = Q @ x
            done.append(x[0:1, :])
            x = x[1:, :]
        return self.xp.vstack([*done, x])

    def expand(self, x: Array) -> Array:
        """Q x, for columns."""
        rest = x[self.columns :, :]
        for j in reversed(range(self.columns)):
            rest = self.turns[j] @ self.xp.vstack([x[j : j + 1, :], rest])
        return rest

    def solve(self, x: Array) -> Array:
        """R^-1 x."""
        return self.xp.solve_upper(self.R, x)

    def solve_transposed(self, x: Array) -> Array:
        """R^-T x."""
        return self.xp.solve_lower(self.R.T, x)


@dataclass(frozen=True)
class Compression:
    """Rows compressed by QR to as many as columns, K = Q [R; 0]; unchanged if there are not more."""

    turns: tuple[Reflection, ...]
    rows: int
    columns: int
    xp: Ops

    def apply(self, x: Array) -> Array:
        """The part of columns over the rows that belongs to R; the rest is redundant or in conflict."""
        for Q in self.turns:
            x = Q @ x
        return x[0 : self.columns, :] if self.turns else x

    def expand(self, x: Array) -> Array:
        """Forces of the compressed rows as forces of the rows: Q [x; 0]."""
        if self.turns:
            x = self.xp.vstack([x, self.xp.zeros(self.rows - self.columns)])
        for Q in reversed(self.turns):
            x = Q @ x
        return x


def compression(K: Array, xp: Ops) -> Compression:
    """Householder's QR of K, if it has more rows than columns."""
    (rows, columns), turns = K.shape, list[Reflection]()
    for j in range(columns if rows > columns else 0):
        rest = reflection(K[j:, j : j + 1], xp)
        turns.append(Reflection(xp.vstack([xp.zeros(j), rest.w]), rest.beta, rest.length))
        K = turns[-1] @ K
    return Compression(tuple(turns), rows, columns, xp)
