"""Random states whose loops are closed: positions, and velocities that keep them so."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from linkwork.checks import NAMES, POSITIVE, SEED, check_memory, checked, optional, whole
from linkwork.closure.assembly import Closing, assemble, closing_of, levenberg_marquardt
from linkwork.closure.velocities import project_velocity
from linkwork.constraints import Closure, Constraint, LinkRows
from linkwork.errors import SingularError
from linkwork.model import Model
from linkwork.model.model import MODEL, WORLD

HOLDING = ("fixed", "spherical")
"""Cut joints that hold a frame at a place."""


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
    q = random_position(model, rng, only, tolerance)
    return q, project_velocity(model, q, rng.normal(size=model.nv))


def random_position(
    model: Model, rng: np.random.Generator, only: Sequence[str], tolerance: float = 1e-12
) -> np.ndarray:
    """The position of `random_state`, of joints without inertia, too."""
    q = _random_position(model, rng, only, tolerance, limited=True)
    return assemble(model, model.neutral(), only=only, tolerance=tolerance) if q is None else q


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
    positions, velocities = np.resize(np.array(found), (count, model.nq)), rng.normal(size=(count, model.nv))
    try:
        return positions, project_velocity(model, positions, velocities)
    except SingularError:  # by chance, in one of them: what is near may as well be said by joints
        return positions, project_velocity(model, positions, velocities, norm="joint")


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
    closing, free, beyond = closing_of(model, only), np.ones(model.nv, dtype=bool), list[np.ndarray]()

    def closed(start: np.ndarray) -> np.ndarray | None:
        """Closed to more digits than the tolerance, as is possible in all but singular postures."""
        found = levenberg_marquardt(closing, start, free, tol, 50)
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


def _limited(closing: Closing, q: np.ndarray, tolerance: float) -> np.ndarray | None:
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
        found = levenberg_marquardt(closing, np.clip(q, limits.lower, limits.upper), free, tolerance, 50)
        if not found.gap <= tolerance / 10:
            return None
        q = found.q
    return None


def is_contact(c: Constraint) -> bool:
    """Whether a constraint holds a frame to the origin of the world: a contact, wherever it is."""
    return isinstance(c, Closure) and WORLD in (c.a, c.b) and c.joint in HOLDING


def _placed(model: Model) -> list[str]:
    """The constraints with a place: all with a position but several frames at the origin of the world."""
    positional = [c for c in model.constraints if not isinstance(c, LinkRows)]
    placeless = {c.name for c in positional if is_contact(c)}
    return [c.name for c in positional if len(placeless) < 2 or c.name not in placeless]
