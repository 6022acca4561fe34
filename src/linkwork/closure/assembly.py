"""Positions that close every loop: phi(q) = 0 by Levenberg-Marquardt on the manifold.

    q <- q + d,   d = -(D^T D + lambda)^-1 D^T phi,   D = dphi/dq,   lambda = nu |phi|^2

D is the derivative of the traced phi, because the rows J that dynamics needs are D only where phi is zero. With a
damping that vanishes like |phi|^2 convergence is quadratic for redundant rows too (Yamashita and Fukushima 2001);
singular postures, such as a four-bar lying flat, are reached at a slower, linear rate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from linkwork.backends.ops import Array, Ops
from linkwork.checks import NAMES, POSITIONS, POSITIVE, SEED, checked, optional, whole
from linkwork.constraints import Constraint, LinkRows, position_error
from linkwork.errors import AssemblyError, not_found
from linkwork.model import Model, Motion
from linkwork.model.memo import cached
from linkwork.model.model import MODEL

Residual = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
"""phi and D at q."""

MAX_DAMPING = 1e16
"""Where Levenberg-Marquardt gives up: steps this short no longer change anything."""


@checked(
    model=MODEL,
    q=POSITIONS,
    locked=NAMES,
    only=optional(NAMES),
    tolerance=POSITIVE,
    max_iterations=whole(1),
    attempts=whole(1, 1000),
    seed=SEED,
)
def assemble(
    model: Model,
    q: object,
    *,
    locked: Sequence[str] = (),
    only: Sequence[str] | None = None,
    tolerance: float = 1e-12,
    max_iterations: int = 100,
    attempts: int = 10,
    seed: int = 0,
) -> np.ndarray:
    """A position near `q` in which the constraints hold: |phi| <= tolerance in every row (m, rad).

    `q`, of shape (nq,) or (batch, nq), has quaternions as [x y z w] and may be far from closed. Joints named in
    `locked` keep their positions. All constraints with a position are closed, contacts with the world among them, or
    those named in `only`; rows may be redundant. If the search does not converge within `max_iterations` steps, it
    starts again from `q` moved at random (by `seed`), further each time, `attempts` times in all. Joints with springs
    move only if the others cannot close the loops: else a mechanism would start with loaded springs. AssemblyError says
    which constraints stay open and by how much, and has the best position found. Joint limits are ignored.

    Examples:
        >>> model = four_bar()
        >>> q = lw.assemble(model, [0.3, 0.0, 0.0], locked=["crank_joint"])
        >>> np.allclose(q, [0.3, -0.3, 0.3])
        True
    """
    start = np.array(q, dtype=float)
    closing, free = closing_of(model, only), _free(model, locked)
    if start.ndim == 2:
        states = [_assembled(closing, s, free, tolerance, max_iterations, attempts, seed) for s in start]
        return np.array(states).reshape(start.shape)
    return _assembled(closing, start, free, tolerance, max_iterations, attempts, seed)


@dataclass(frozen=True)
class Closing:
    """A model, those of its constraints that are to be closed, and their phi and D."""

    model: Model
    constraints: tuple[Constraint, ...]
    residual: Residual


@dataclass(frozen=True)
class Found:
    q: np.ndarray
    phi: np.ndarray

    @property
    def gap(self) -> float:
        return float(np.abs(self.phi).max(initial=0.0))


def _assembled(
    closing: Closing,
    start: np.ndarray,
    free: np.ndarray,
    tolerance: float,
    max_iterations: int,
    attempts: int,
    seed: int,
) -> np.ndarray:
    """The first attempt that closes; the error of the best one if none does."""
    model, rng, best = closing.model, np.random.default_rng(seed), None
    rigid = free & _free(model, [l.joint_name for l in model.links if l.passive.stiffness.any()])
    if rigid.any() and not np.array_equal(rigid, free):
        found = levenberg_marquardt(closing, start, rigid, tolerance, max_iterations)
        if found.gap <= tolerance:
            return found.q
    for k in range(attempts):
        shake = 0.0 if k == 0 else min(0.05 * 2.0**k, np.pi)
        moved = model.integrate(start, shake * free * rng.normal(size=model.nv)) if k else start
        found = levenberg_marquardt(closing, moved, free, tolerance, max_iterations)
        if found.gap <= tolerance:
            return found.q
        if best is None or found.phi @ found.phi < best.phi @ best.phi:
            best = found
    assert best is not None
    raise _failure(closing, best, tolerance, not free.all())


def levenberg_marquardt(
    closing: Closing, q: np.ndarray, free: np.ndarray, tolerance: float, max_iterations: int
) -> Found:
    """Closed, or where |phi| does not fall any more."""
    phi, D = closing.residual(q)
    nu, idle = 1e-2, 0
    for _ in range(max_iterations):
        if np.abs(phi).max(initial=0.0) <= tolerance or idle == 3:
            break
        size = float(phi @ phi)
        while nu < MAX_DAMPING:
            step = np.zeros(len(free))
            step[free] = _damped_step(D[:, free], phi, nu * size)
            if not np.isfinite(step).all():  # phi has no derivative here
                return Found(closing.model.normalised(q), phi)
            there = closing.model.integrate(q, step)
            phi_there, D_there = closing.residual(there)
            left = float(phi_there @ phi_there)
            if left < size:
                idle = idle + 1 if left > 0.999 * size else 0  # slow convergence to a gap that cannot be closed
                q, phi, D, nu = there, phi_there, D_there, max(nu / 10, 1e-8)
                break
            nu *= 4
        else:
            break
    for _ in range(3):  # on to rounding: in an open loop redundant rows are independent, and would forbid it to move
        size, step = float(phi @ phi), np.zeros(len(free))
        if np.abs(phi).max(initial=0.0) > tolerance:
            break
        step[free] = _damped_step(D[:, free], phi, 0.0)
        if not np.isfinite(step).all():
            break
        there = closing.model.integrate(q, step)
        phi_there, D_there = closing.residual(there)
        if not phi_there @ phi_there < size / 4:
            break
        q, phi, D = there, phi_there, D_there
    return Found(closing.model.normalised(q), phi)


def _damped_step(D: np.ndarray, phi: np.ndarray, damping: float) -> np.ndarray:
    """The d that minimises |D d + phi|^2 + damping |d|^2, by the smaller of the two Gram matrices.

    The damping is never below what redundant rows need; that costs digits of the step, not of the solution.
    """
    wide = D.shape[0] < D.shape[1]
    G = D @ D.T if wide else D.T @ D
    shift = max(damping, 1e-13 * float(np.diagonal(G).max(initial=0.0)), np.finfo(float).tiny)
    G = G + shift * np.eye(len(G))
    return np.asarray(-D.T @ np.linalg.solve(G, phi) if wide else -np.linalg.solve(G, D.T @ phi))


CLOSED_IN_FILES = 1e-4
"""Gaps (m, rad) below this are due to lengths that a file gives with few digits."""


def _rounded_up(gap: float) -> float:
    """The next power of ten above a gap."""
    return float(10.0 ** np.ceil(np.log10(gap)))


def _failure(closing: Closing, best: Found, tolerance: float, locked: bool) -> AssemblyError:
    gaps, start = [], 0
    for c in closing.constraints:
        gap = float(np.linalg.norm(best.phi[start : start + c.rows]))
        start += c.rows
        if gap > tolerance:
            gaps.append((c.name, gap))
    gaps.sort(key=lambda g: -g[1])
    shown = ", ".join(f"'{name}' by {gap:.3g}" for name, gap in gaps[:8]) + (", ..." if len(gaps) > 8 else "")
    remedy = "unlock joints, " if locked else ""
    largest = gaps[0][1] if gaps else 0.0
    if largest < CLOSED_IN_FILES:
        remedy = f"pass tolerance={_rounded_up(largest):g} if the file has its lengths with so few digits, {remedy}"
    return AssemblyError(
        f"'{closing.model.name}' cannot be closed: {len(gaps)} of {len(closing.constraints)} constraints stay open (m, "
        f"rad): {shown}; {remedy}start from a better guess, correct the lengths, or name those to close in only= "
        "(a contact pulls its frame to the frame of the world that it names)",
        best.q,
        tuple(gaps),
    )


def _free(model: Model, locked: Sequence[str]) -> np.ndarray:
    """Which degrees of freedom may move."""
    free = np.ones(model.nv, dtype=bool)
    for name in locked:
        free[model.topology.v_slices[model.joint(name)]] = False
    return free


def closing_of(model: Model, only: Sequence[str] | None) -> Closing:
    """The constraints to close: those that have a position, or those named."""
    positional = {n: c for n, c in enumerate(model.constraints) if not isinstance(c, LinkRows)}
    names = [c.name for c in positional.values()]
    for name in only or ():
        if name not in names:
            raise not_found("constraint with a position", name, names)
    which = tuple(n for n, c in positional.items() if only is None or c.name in only)
    return Closing(model, tuple(positional[n] for n in which), _differentiated(model, which))


@cached
def _differentiated(model: Model, which: tuple[int, ...]) -> Residual:
    """phi(q) and D = (dphi/dq) dq/dv of some constraints, traced once: that takes longer than solving."""
    from linkwork.kernels.programs.differentiate import slopes
    from linkwork.kernels.programs.python_source import python_function
    from linkwork.kernels.programs.trace import trace

    model = replace(model, constraints=tuple(model.constraints[n] for n in which))

    def body(xp: Ops, symbol: Callable[[str, int], Array]) -> dict[str, Array]:
        q = symbol("q", model.nq)
        phi = position_error(Motion(model, q, xp.zeros(model.nv), xp))
        return {"phi": phi, "D": slopes(phi, q, _rates(model, q, xp))}

    function = python_function(trace("assembly", body, shapes={"D": (model.rows, model.nv)}))

    def residual(at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        phi, D = function(at)
        return phi, D

    return residual


def _rates(model: Model, q: Array, xp: Ops) -> Array:
    """dq/dv, nq x nv: a block for each joint."""
    t, rows = model.topology, [xp.zeros(0, model.nv)]
    for i in t.links:
        joint, at, span = model.links[i].joint, q[t.q_slices[i], :], t.v_slices[i]
        block = [joint.rate(at, xp.constant(e), xp) for e in np.eye(joint.nv)]
        rows.append(xp.hstack([xp.zeros(joint.nq, span.start), *block, xp.zeros(joint.nq, model.nv - span.stop)]))
    return xp.vstack(rows)
