"""Consistent states: positions that close every loop, velocities that keep them closed.

    assemble          phi(q) = 0 by Levenberg-Marquardt on the manifold,
                      q <- q + d,   d = -(D^T D + lambda)^-1 D^T phi,   D = dphi/dq,   lambda = nu |phi|^2
    project_velocity  min |v' - v|_M  with  J v' = 0

D is the derivative of the traced phi, because the rows J that dynamics needs are D only where phi is zero. With a
damping that vanishes like |phi|^2 convergence is quadratic for redundant rows too (Yamashita and Fukushima 2001);
singular postures, such as a four-bar lying flat, are reached at a slower, linear rate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from linkwork.algorithms.tree.crba import crba
from linkwork.backends.numpy_ import NUMPY
from linkwork.backends.ops import SINGULAR, Array, Ops
from linkwork.checks import (
    NAMES,
    POSITIONS,
    POSITIVE,
    SEED,
    VELOCITIES,
    check_memory,
    checked,
    choice,
    optional,
    whole,
)
from linkwork.constraints import Closure, Constraint, LinkRows, jacobian, position_error
from linkwork.errors import AssemblyError, InputError, SingularError, listing, not_found
from linkwork.model import Model, Motion
from linkwork.model.memo import cached
from linkwork.model.model import MODEL, WORLD

Residual = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
"""phi and D at q."""

MAX_DAMPING = 1e16
"""Where Levenberg-Marquardt gives up: steps this short no longer change anything."""

HOLDING = ("fixed", "spherical")
"""Cut joints that hold a frame at a place."""

REDUNDANT = 1e-10
"""Singular values of the rows, relative to the largest, below which they count as redundant."""


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
    closing, free = _closing(model, only), _free(model, locked)
    if start.ndim == 2:
        states = [_assembled(closing, s, free, tolerance, max_iterations, attempts, seed) for s in start]
        return np.array(states).reshape(start.shape)
    return _assembled(closing, start, free, tolerance, max_iterations, attempts, seed)


@checked(model=MODEL, q=POSITIONS, v=VELOCITIES, norm=choice("norm", ("mass", "joint")))
def project_velocity(model: Model, q: object, v: object, *, norm: str = "mass") -> np.ndarray:
    """The velocity nearest to `v` that all constraints allow at `q`: J v' = 0.

    Nearest in kinetic energy (norm="mass"): v' is the velocity after an inelastic impact of all constraints. With
    norm="joint" it is nearest in the sum of squares of joint velocities, which needs no mass. Shapes are (nq,) and
    (nv,), or (batch, nq) and (batch, nv); quaternions in `q` are [x y z w]. Where joints move no inertia and
    constraints do not determine their velocities, norm="mass" ends with an error that names them.

    Examples:
        >>> model = four_bar()
        >>> q, _ = lw.random_state(model, 0)
        >>> v = lw.project_velocity(model, q, np.ones(3))
        >>> bool(np.abs(lw.constraint_error(model)(q, v).rate).max() < 1e-9)
        True
    """
    at, speed = np.array(q, dtype=float), np.array(v, dtype=float)
    if at.ndim not in (1, 2) or at.shape[-1] != model.nq or speed.shape != (*at.shape[:-1], model.nv):
        raise InputError(
            f"q and v have shapes {at.shape} and {speed.shape}; this model needs ({model.nq},) and "
            f"({model.nv},), or (batch, {model.nq}) and (batch, {model.nv})"
        )
    if not model.rows:
        return speed
    if norm == "mass":
        model.check_forward()
    if at.ndim == 2:
        return np.array([_projected(model, x, y, norm) for x, y in zip(at, speed, strict=True)]).reshape(speed.shape)
    return _projected(model, at, speed, norm)


@checked(model=MODEL, seed=SEED, batch=optional(whole()), only=optional(NAMES), tolerance=POSITIVE)
def random_state(
    model: Model,
    seed: int | np.random.Generator = 0,
    *,
    batch: int | None = None,
    only: Sequence[str] | None = None,
    tolerance: float = 1e-12,
) -> tuple[np.ndarray, np.ndarray]:
    """A random position in which the constraints (those in `only`) hold, and a velocity that all allow.

    Starts from `model.random_q`, within the joint limits, and closes; joints that this moves out of their limits are
    put onto them, and the others close once more. Where that fails several times, it starts from a closed position near
    neutral that is moved at random. If no position within the limits is found, it is a closed one beyond them; if
    nothing closes but that near neutral, it is that one: mechanisms may be singular in every posture.

    Contacts are closed where they have a place: at the frame of the world that they name. Several points or surfaces
    that name the world itself (`lw.point(foot)` of four feet) have none, because all would be at its origin: they stay
    where the random posture has them, each at its own place, and only velocities obey them. Name frames of the world,
    or list constraints in `only`, to have them closed. One alone is closed, at the origin.

    The same seed gives the same state; `batch` gives as many, as rows; `tolerance` is that of `assemble`.
    Quaternions in q are [x y z w].

    Examples:
        >>> q, v = lw.random_state(four_bar(), 0, batch=5)
        >>> q.shape, v.shape
        ((5, 3), (5, 3))
    """
    if only is None:
        only = _placed(model)
    rng = np.random.default_rng(seed)
    if batch is not None:
        check_memory(f"batch={batch}", batch * (model.nq + model.nv), "take fewer states at a time")
        states = [random_state(model, rng, only=only, tolerance=tolerance) for _ in range(batch)]
        return (
            np.array([s[0] for s in states]).reshape(batch, model.nq),
            np.array([s[1] for s in states]).reshape(batch, model.nv),
        )
    q = _random_position(model, rng, only, tolerance, limited=True)
    if q is None:
        q = assemble(model, model.neutral(), only=only, tolerance=tolerance)
    return q, project_velocity(model, q, rng.normal(size=model.nv))


def closed_states(model: Model, rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    """`count` random closed positions, and velocities that all constraints allow, as rows.

    Faster than `random_state`: after the first failure, the positions found so far and the one near neutral are
    repeated with other velocities. AssemblyError if there is none.
    """
    found = list[np.ndarray]()
    while len(found) < count:
        q = _random_position(model, rng, None, 1e-12, attempts=1)
        found.append(assemble(model, model.neutral()) if q is None else q)
        if q is None:
            break
    positions = np.resize(np.array(found), (count, model.nq))
    return positions, project_velocity(model, positions, rng.normal(size=(count, model.nv)))


def _random_position(
    model: Model,
    rng: np.random.Generator,
    only: Sequence[str] | None,
    tol: float,
    attempts: int = 3,
    limited: bool = False,
) -> np.ndarray | None:
    """A random closed position, or None if nothing closes: from random starts, then near neutral.

    If `limited`, one within the joint limits, where any of the starts leads to one.
    """
    closing, free, beyond = _closing(model, only), np.ones(model.nv, dtype=bool), list[np.ndarray]()

    def closed(start: np.ndarray) -> np.ndarray | None:
        """Closed to more digits than the tolerance, as is possible in all but singular postures."""
        found = _levenberg_marquardt(closing, start, free, tol, 50)
        if not found.gap <= tol / 10:
            return None
        q = _limited(closing, found.q, tol) if limited else found.q
        beyond.extend([] if q is not None else [found.q])
        return q

    for k in range(4 * attempts):
        if k >= attempts and not beyond:  # more of them only where it is the limits that are missed
            break
        q = closed(model.random_q(rng))
        if q is not None:
            return q
    near = assemble(model, model.neutral(), only=only, tolerance=tol)
    for size in (0.5, 0.25, 0.1, 0.02):  # a step along the closed positions; a shorter one where a long one fails
        q = closed(model.integrate(near, size * rng.normal(size=model.nv)))
        if q is not None:
            return q
    return beyond[0] if beyond else None


def _limited(closing: _Closing, q: np.ndarray, tolerance: float) -> np.ndarray | None:
    """A closed position within the joint limits, near a closed one; None if none is found.

    Joints that are beyond their limits are put onto them and held there while the others close, as often as there are
    others that leave theirs.
    """
    model, t, limits = closing.model, closing.model.topology, closing.model.limits
    free = np.ones(model.nv, dtype=bool)
    for _ in range(model.nv + 1):
        outside = {i for i in t.links if ((q < limits.lower) | (q > limits.upper))[t.q_slices[i]].any()}
        if not outside:
            return q
        for i in outside:
            free[t.v_slices[i]] = False
        found = _levenberg_marquardt(closing, np.clip(q, limits.lower, limits.upper), free, tolerance, 50)
        if not found.gap <= tolerance / 10:
            return None
        q = found.q
    return None


def _placed(model: Model) -> list[str]:
    """The constraints with a place: all with a position but several frames at the origin of the world."""
    positional = [c for c in model.constraints if not isinstance(c, LinkRows)]
    placeless = {c.name for c in positional if isinstance(c, Closure) and WORLD in (c.a, c.b) and c.joint in HOLDING}
    return [c.name for c in positional if len(placeless) < 2 or c.name not in placeless]


@dataclass(frozen=True)
class _Closing:
    """A model, those of its constraints that are to be closed, and their phi and D."""

    model: Model
    constraints: tuple[Constraint, ...]
    residual: Residual


@dataclass(frozen=True)
class _Found:
    q: np.ndarray
    phi: np.ndarray

    @property
    def gap(self) -> float:
        return float(np.abs(self.phi).max(initial=0.0))


def _assembled(
    closing: _Closing,
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
        found = _levenberg_marquardt(closing, start, rigid, tolerance, max_iterations)
        if found.gap <= tolerance:
            return found.q
    for k in range(attempts):
        shake = 0.0 if k == 0 else min(0.05 * 2.0**k, np.pi)
        moved = model.integrate(start, shake * free * rng.normal(size=model.nv)) if k else start
        found = _levenberg_marquardt(closing, moved, free, tolerance, max_iterations)
        if found.gap <= tolerance:
            return found.q
        if best is None or found.phi @ found.phi < best.phi @ best.phi:
            best = found
    assert best is not None
    raise _failure(closing, best, tolerance, not free.all())


def _levenberg_marquardt(
    closing: _Closing, q: np.ndarray, free: np.ndarray, tolerance: float, max_iterations: int
) -> _Found:
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
                return _Found(closing.model.normalised(q), phi)
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
    return _Found(closing.model.normalised(q), phi)


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


def _failure(closing: _Closing, best: _Found, tolerance: float, locked: bool) -> AssemblyError:
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


def _projected(model: Model, q: np.ndarray, v: np.ndarray, norm: str) -> np.ndarray:
    """v - L^-T W^+ J v  with  W = J L^-T  and  M = L L^T; twice, against rounding.

    Singular values below REDUNDANT times the largest count as redundant: they are due to imperfect closure.
    """
    motion = Motion(model, q[:, None], np.zeros((model.nv, 1)), NUMPY)
    J = jacobian(motion)
    L = _factor(model, crba(motion)) if norm == "mass" else np.eye(model.nv)
    W = NUMPY.solve_lower(L, J.T).T
    back = NUMPY.solve_upper(L.T, np.linalg.pinv(W, rcond=REDUNDANT))
    out = v[:, None]
    for _ in range(2):
        out = out - back @ (J @ out)
    return np.asarray(out[:, 0])


def _factor(model: Model, M: np.ndarray) -> np.ndarray:
    """L of M = L L^T; SingularError names the joints that move no inertia."""
    idle = idle_joints(model, M)
    if idle:
        raise SingularError(
            f"'{model.name}': in this position the joints {listing(idle)} move no inertia, so that kinetic energy does "
            "not tell which velocities are near; give their links an inertia, the joints an armature, or take "
            "norm='joint'"
        )
    return np.asarray(NUMPY.cholesky(M))


def idle_joints(model: Model, M: np.ndarray) -> list[str]:
    """The joints in motions without kinetic energy, where M with ones on its diagonal is singular."""
    t, names = model.topology, [l.joint_name for l in model.links]
    size = np.sqrt(np.maximum(np.diagonal(M), 0.0))
    if not np.isfinite(M).all() or not size.all():
        moved = np.isfinite(M).all(axis=1) & (size > 0)
    else:
        values, vectors = np.linalg.eigh(M / np.outer(size, size))
        moved = np.abs(vectors[:, values <= SINGULAR * model.nv]).max(axis=1, initial=0.0) < 0.1
    return [names[i] for i in t.links if not moved[t.v_slices[i]].all()]


def _free(model: Model, locked: Sequence[str]) -> np.ndarray:
    """Which degrees of freedom may move."""
    free = np.ones(model.nv, dtype=bool)
    for name in locked:
        free[model.topology.v_slices[model.joint(name)]] = False
    return free


def _closing(model: Model, only: Sequence[str] | None) -> _Closing:
    """The constraints to close: those that have a position, or those named."""
    positional = {n: c for n, c in enumerate(model.constraints) if not isinstance(c, LinkRows)}
    names = [c.name for c in positional.values()]
    for name in only or ():
        if name not in names:
            raise not_found("constraint with a position", name, names)
    which = tuple(n for n, c in positional.items() if only is None or c.name in only)
    return _Closing(model, tuple(positional[n] for n in which), _differentiated(model, which))


@cached
def _differentiated(model: Model, which: tuple[int, ...]) -> Residual:
    """phi(q) and D = (dphi/dq) dq/dv of some constraints, traced once: that takes longer than solving."""
    from linkwork.kernels.differentiate import slopes
    from linkwork.kernels.python_source import python_function
    from linkwork.kernels.trace import trace

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
