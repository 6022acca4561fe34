"""The proximal iteration: the method of multipliers, accelerated by conjugate residuals.

A step improves multipliers: new = lam + P (k - J a(lam)), where P is near the inverse of the Delassus matrix
L = J M^-1 J^T, and computes the error e = k - J a(new). With z = new - lam and r = k - J a(lam), L z = r - e,
and that is all that conjugate residuals on L lam = k - J a(0), preconditioned by P, need to choose the next lam:

    p <- z - beta p,   w <- (r - e) - beta w,    lam <- lam + alpha p,   r <- r - alpha w,
    beta = (r - e).w / w.w,   alpha = r.w / w.w

A step is affine in lam. The first one starts from multipliers lam0 (zero, or those of a state nearby); the others are
computed as changes, from the change d = alpha p of lam: sweeps without gravity, velocities and joint forces, over the
links that support constrained ones (sathya2025_lcaba_proxbbo, algorithms 2 and 5). That needs fewer operations, and
rounding errors are relative to the changes.

w = L p is in the range of L: the part of r that no force can change (rows in conflict) has no effect. Without conjugate
residuals, a direction in which L is smaller than P's proximal term (a posture near a singular one) by some factor takes
that many steps; with them about one. The result is always that of the last step, and its residual not extrapolated.

NumPy runs the loop in Python; traced, it becomes a native loop, and everything in a step that does not depend on lam
(factorisations, sweeps over inertias) is computed once, because a program has all dependencies.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from linkwork.backends.ops import Array, Ops, threshold
from linkwork.checks import NOT_NEGATIVE, POSITIVE, checked_class, instance, number, optional, whole

FIRST, FLAT, LEAST = 1e-2, 1e-1, 1e-2
"""The share of `tolerance` that is required after the first solver iteration, when weak directions are not
known yet; where a direction counts as redundant; and at least, however weak a direction is, because of rounding."""

FULL = 1e-5
"""The square of `redundant` relative to the singular value from which on errors count in full, 3e-4: of accelerations,
those within the tolerance are 6e-8 there. Large penalties hardly stretch steps above 1e-5, where they are 2e-6."""

ROUNDING = 1e-13
"""The share of the rows' terms below which errors are rounding, and have no direction."""

SLOWER = 0.8
"""The share of the square of their last change above which plain steps change errors no less: what is left of the
change is rounding."""

STUCK = 1e-2
"""The share of `tolerance` below which errors count as no longer changing."""

WEAK, SMALL = 0.5, 1e-2
"""What errors are worth in directions that count as weak, and the share of rows' terms that accelerations may be."""

TINY = 1e-30
"""Added to squares of sizes, so that a mechanism in which nothing moves has relative errors."""


@checked_class(
    mu=POSITIVE, tolerance=NOT_NEGATIVE, max_iterations=whole(1), redundant=number(0, 1, "a share between 0 and 1")
)
@dataclass(frozen=True)
class Prox:
    """The penalty of a proximal method and its stopping rule.

    `mu` is the penalty on violated rows in units of their effective inertia, 1 / (J M^-1 J^T): the same for a
    mechanism of any size and mass. Larger needs fewer iterations and loses more digits, about those of mu for methods
    that penalise. It stops when the largest |J a - k| of any row is at most `tolerance` times the size of the terms
    that rows are made of, when errors no longer change (rows in conflict), or after `max_iterations` solver iterations.
    Rows whose singular values, in the same units, are below `redundant` count as redundant: they are not solved for in
    such directions, and where they are still violated, the result has not converged.

    Examples:
        >>> model = four_bar()
        >>> fd = lw.forward_dynamics(model, method="lcaba", prox=lw.Prox(mu=1e6, tolerance=1e-12))
        >>> bool(fd(model.neutral(), np.zeros(3), np.zeros(3)).residual < 1e-9)
        True
    """

    mu: float = 1e7
    tolerance: float = 2e-11
    max_iterations: int = 20
    redundant: float = 1e-6

    @property
    def flat(self) -> float:
        """The least share of a step along a direction in which rows count as independent."""
        share = self.redundant**2 * self.mu
        return share / (1 + share)

    @property
    def single(self) -> Prox:
        """The same for float32, which has half the digits."""
        return Prox(self.mu**0.5, self.tolerance**0.5, self.max_iterations, self.redundant**0.5)

    @property
    def controls(self) -> dict[str, float]:
        """The numbers that a compiled loop takes after its other inputs, in order."""
        return {
            "mu": self.mu,
            "flat": self.flat,
            "tolerance": self.tolerance,
            "max_iterations": float(self.max_iterations - 1),
        }


PROX = optional(instance(Prox, "a linkwork.Prox"))


class Step(NamedTuple):
    """New multipliers, the rows' errors with them, the squares of each row's terms added up, and `found`.

    `found` is an affine function of the multipliers: accelerations, forces of embedded loops. Of a change of
    multipliers it is the change of all these; its squares are not used.
    """

    lam: Array
    error: Array
    squares: Array
    found: Array


@dataclass(frozen=True)
class Iteration:
    """`first` is the step from `start`; `change(d)` what changes in it if that is changed by d.

    `inertias` are those of the rows, relative to the least, or None if they are alike (constraints/row_inertia.py).

    `finish(lam, found)` gives (vdot, forces); `lam` and `found` are the last step's. `errors(lam, found)` are those
    of these accelerations, where those of the iteration follow from multipliers alone: in a direction with a singular
    value s, rounding of the Gram matrix makes them miss accelerations by eps / s^2. `beside(lam, found)` is about rows
    that are not in the iteration, because they are embedded: their largest error, the size of their terms, and 1, or 0
    if the result is not certified.
    """

    start: Array
    first: Step
    change: Callable[[Array], Step]
    finish: Callable[[Array, Array], tuple[Array, Array]]
    inertias: Array | None
    xp: Ops
    beside: Callable[[Array, Array], tuple[Array, Array, Array]] | None = None
    errors: Callable[[Array, Array], Array] | None = None


class State(NamedTuple):
    """The state of an iteration: how the next start changes, conjugate residuals, the last step.

    `d` and `w` are alpha p and alpha w: how far multipliers and errors are moved along a direction. `z` is how far the
    last step went. `size` is that of all rows' terms; `heavy` the square of its ratio to that with inertias as weights.
    `worth`, `weak`, `bound` and `change` are squares: of the share of `size` that errors may have by how far steps were
    stretched, and by singular values; of the least one's product with `size`; of the largest change of an error.
    """

    d: Array
    z: Array
    r: Array
    w: Array
    square: Array
    size: Array
    heavy: Array
    worth: Array
    weak: Array
    bound: Array
    change: Array
    lam: Array
    error: Array
    found: Array


class Loop:
    """A loop over one column x: `first()`, `next(x)` give x and the residual; `finish(x)` the results.

    Errors e of rows are compared with the size of their terms t, all rows alike, and once more with their inertias I:

        max |e_r| / |t|,   max sqrt(I_r) |e_r| / |sqrt(I) t|        (whichever is larger)

    Angles of a small robot accelerate a thousand times as much as its points, which would keep as many digits less.

    Where |w| is below `flat` times |r| (`Prox.flat`), rows are redundant or in conflict, and the step is plain. A step
    removes a share of the error in each direction, and r.w / r.r is the mean of these shares: where that is below
    `flat`, it is not stretched either. There, w may be what is left of other errors, and r.w that of the conflict.
    """

    def __init__(self, iteration: Iteration, flat: Array | float) -> None:
        self.of, self.xp, self.flat = iteration, iteration.xp, flat
        self._sizes = [x.shape[0] for x in self._begin()]

    @property
    def size(self) -> int:
        """The length of x."""
        return sum(self._sizes)

    def first(self) -> tuple[Array, Array]:
        """x after the first step, and its relative error."""
        state = self._begin()
        worst = self._worst(state.error, state.heavy)
        return self.xp.vstack(list(state)), self.xp.sqrt(worst / (state.bound + TINY))

    def next(self, x: Array) -> tuple[Array, Array]:
        """x after one more step, and its relative error, or the relative change of errors if that is smaller.

        Zero where forces no longer change what is left: rows are in conflict, or redundant but for rounding.
        """
        xp, old = self.xp, self._split(x)
        more = self.of.change(old.d)
        lam, error, z = old.lam + more.lam, old.error + more.error, old.z + (more.lam - old.d)
        change = old.r - error
        beta = dot(xp, change, old.w) / old.square
        p, w = z - beta * old.d, change - beta * old.w
        square = dot(xp, w, w)
        noise, before, along = threshold(xp, ROUNDING) * old.size, dot(xp, old.r, old.r), dot(xp, old.r, w)
        moves = xp.where(before > noise * noise, square, 0.0) > self.flat * self.flat * before
        stretches = xp.where(moves, along, 0.0) > self.flat * before
        alpha = xp.where(stretches, along / xp.where(stretches, square, 1.0), 1.0)
        # an error of the rows is one of accelerations sqrt(alpha) times as large, by the usual penalty
        stretch = xp.where(alpha > 1, alpha, 1.0)
        worth = xp.where(moves, 1 / stretch, FLAT**2)
        worth = xp.where(worth < old.worth, xp.where(worth > LEAST**2, worth, LEAST**2), old.worth)
        weak = self._weak(stretch)
        weak = xp.where(weak < old.weak, xp.where(weak > LEAST**2, weak, LEAST**2), old.weak)
        size = old.size * old.size
        bound = xp.where(weak < worth, weak, worth) * size
        square, w = xp.where(moves, alpha * alpha * square, 1 / TINY), alpha * w
        found, change = old.found + more.found, self._worst(more.error, old.heavy)
        kept = old.size, old.heavy, worth, weak, bound, change
        state = State(alpha * p, z, old.r - w, w, square, *kept, lam, error, found)
        left, moved = self._worst(error, old.heavy) / (bound + TINY), change / (STUCK**2 * size + TINY)
        ended = xp.where(moves, 0.0, change) > SLOWER * old.change
        return xp.vstack(list(state)), xp.sqrt(xp.where(ended, 0.0, xp.where(moved < left, moved, left)))

    def ended(self, x: Array, residual: Array) -> Array:
        """x, from which no further step changes anything where the loop would have ended.

        Conjugate residuals of what is left then, errors in directions that count as redundant, would find forces there.
        """
        state = self._split(x)
        goes_on = residual[0, 0] > threshold(self.xp, Prox.tolerance)
        return self.xp.vstack(list(state._replace(d=self.xp.where(goes_on, state.d, 0 * state.d))))

    def finish(self, x: Array) -> tuple[Array, Array, Array, Array]:
        """Accelerations, forces, the largest error of a row, and the size that the tolerance is relative to."""
        state, (vdot, forces) = self._split(x), self.results(x)
        error = state.error if self.of.errors is None else self.of.errors(state.lam, state.found)
        most, worst = largest_square(self.xp, error), self._worst(error, state.heavy)
        share = self.xp.where(most > 0, most / self.xp.where(most > 0, worst, 1.0), 1.0)
        left, bound = self.xp.sqrt(most), self.xp.sqrt(state.bound * share)
        if self.of.beside is not None:
            more, size, trusted = self.of.beside(state.lam, state.found)
            left, bound = self.xp.where(more <= left, left, more), self.xp.where(size <= bound, bound, size)
            bound = self.xp.where(trusted > 0, bound, -1.0)
        return vdot, forces, left, bound

    def results(self, x: Array) -> tuple[Array, Array]:
        """Accelerations and forces."""
        state = self._split(x)
        return self.of.finish(state.lam, state.found)

    def worth(self, x: Array, before: Array) -> Array:
        """What an error of rows is worth in the weakest direction along which steps were stretched.

        It is as `before` if none was. Where rows are redundant none is, and the share of the tolerance is FLAT.
        """
        worth = self._split(x).worth
        stretched = self.xp.where(worth < FLAT**2, worth, before)
        return self.xp.where(worth > FLAT**2, worth, stretched)

    def violation(self, x: Array, vdot: Array, worth: Array | None = None) -> Array:
        """|J a - k| relative to the size of the rows' terms, for the accelerations `vdot` of x.

        Of embedded rows it is the largest error, if that is more. In weak directions it counts by its `worth`: the same
        error of rows is a larger one of accelerations there, which may be SMALL beside the terms of rows.
        """
        xp, state = self.xp, self._split(x)
        error = state.error if self.of.errors is None else self.of.errors(state.lam, state.found)
        square = dot(xp, error, error)
        if self.of.inertias is not None:
            other = state.heavy * dot(xp, error, self.of.inertias * error)
            square = xp.where(other <= square, square, other)
        square = square / (state.size * state.size + TINY)
        if worth is not None:
            counts = worth * worth
            counts = xp.where(worth < WEAK, SMALL * counts, counts)
            square = square / (counts * counts)
        if self.of.beside is not None:
            more, size, _ = self.of.beside(state.lam, state.found)
            other = more * more / (size * size + TINY)
            square = xp.where(other <= square, square, other)
        return xp.sqrt(square)

    def _begin(self) -> State:
        (lam, error, squares, found), xp, one = self.of.first, self.xp, self.xp.eye(1)
        z, square, inertias = lam - self.of.start, added(xp, squares), self.of.inertias
        heavy = xp.zeros(0) if inertias is None else square / (added(xp, inertias * squares) + TINY)
        size, bound = xp.sqrt(square), FIRST**2 * square
        return State(z, z, error, 0 * z, one, size, heavy, one, one, bound, one / TINY, lam, error, found)

    def _weak(self, alpha: Array) -> Array:
        """The square of a singular value s, relative to the least one in whose direction errors count in full.

        A step removes the share s^2 mu / (1 + s^2 mu) = 1 / alpha of its errors, and `flat` of those of redundant rows.
        """
        if self.xp.single:
            return self.xp.eye(1)
        return FULL * (1 - self.flat) / (self.flat * (alpha - 1) + TINY)

    def _worst(self, error: Array, heavy: Array) -> Array:
        """The largest square of an error, with inertias as weights if it is larger, 1 x 1."""
        most, inertias = largest_square(self.xp, error), self.of.inertias
        if inertias is None:
            return most
        other = heavy * _in_pairs(self.xp, inertias * (error * error), lambda a, b: self.xp.where(a <= b, b, a))
        return self.xp.where(other <= most, most, other)

    def _split(self, x: Array) -> State:
        parts, start = [], 0
        for n in self._sizes:
            parts.append(x[start : start + n, :])
            start += n
        return State(*parts)


def largest(xp: Ops, x: Array) -> Array:
    """The largest absolute entry of a column, 1 x 1."""
    return xp.sqrt(largest_square(xp, x))


def largest_square(xp: Ops, x: Array) -> Array:
    """The largest square of an entry of a column, 1 x 1."""
    return _in_pairs(xp, x * x, lambda a, b: xp.where(a <= b, b, a)) if x.shape[0] else xp.zeros(1)


def dot(xp: Ops, x: Array, y: Array) -> Array:
    """x^T y, 1 x 1."""
    return added(xp, x * y)


def added(xp: Ops, x: Array) -> Array:
    """The sum of the entries of a column, 1 x 1."""
    return _in_pairs(xp, x, lambda a, b: a + b) if x.shape[0] else xp.zeros(1)


def _in_pairs(xp: Ops, x: Array, join: Callable[[Array, Array], Array]) -> Array:
    """The entries of a column joined pair by pair, 1 x 1.

    A lane waits for few operations in a row then, and an iteration is mostly waiting.
    """
    while (n := x.shape[0]) > 1:
        joined = join(x[0 : n - n % 2 : 2, :], x[1:n:2, :])
        x = xp.vstack([joined, x[n - 1 : n, :]]) if n % 2 else joined
    return x


class Solution(NamedTuple):
    """The result of a loop, converged if the largest |J a - k| is at most the tolerance times `bound`."""

    vdot: Array
    lam: Array
    iterations: int
    residual: Array
    bound: Array


def run(iteration: Iteration, prox: Prox) -> Solution:
    """The loop in NumPy."""
    loop = Loop(iteration, prox.flat)
    x, residual = loop.first()
    used = 1
    while float(residual[0, 0]) > prox.tolerance and used < prox.max_iterations:
        x, residual = loop.next(x)
        used += 1
    vdot, lam, left, bound = loop.finish(x)
    return Solution(vdot, lam, used, left, bound)


def unrolled(
    iteration: Iteration, iterations: int, flat: Array | float, weak: bool = False
) -> tuple[Array, Array, Array]:
    """Accelerations, forces and violation after so many solver iterations, as straight operations."""
    loop, worth = Loop(iteration, flat), iteration.xp.eye(1)
    x, residual = loop.first()
    for n in range(1, iterations):
        x, residual = loop.next(x if n == 1 else loop.ended(x, residual))
        worth = loop.worth(x, worth)
    vdot, lam = loop.results(x)
    return vdot, lam, loop.violation(x, vdot, worth if weak else None)
