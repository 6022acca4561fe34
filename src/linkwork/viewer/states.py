"""Poses over time: links, centre of mass, the two ends of each constraint and the force between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from linkwork.backends.numpy_ import NUMPY
from linkwork.closure.assembly import assemble
from linkwork.constraints import Closure, Constraint, LinkRows
from linkwork.errors import AssemblyError, InputError
from linkwork.model import WORLD, Model, Motion
from linkwork.simulation.records.trajectory import column_names

if TYPE_CHECKING:
    from linkwork.simulation.records.trajectory import Trajectory


@dataclass(frozen=True)
class States:
    """Where links are and what constraints do, over F states.

    Positions (F, L, 3) and rotations (F, L, 3, 3) of links, the world first; centre of mass (F, 3); for each constraint
    that acts between links, its ends (F, C, 2, 3), force on the first one (F, C, 3) and whether it acts (F, C). `named`
    has these constraints, `indices` the rows of the trajectory.
    """

    t: np.ndarray
    positions: np.ndarray
    rotations: np.ndarray
    com: np.ndarray
    ends: np.ndarray
    forces: np.ndarray
    active: np.ndarray
    named: tuple[Constraint, ...]
    indices: np.ndarray


def spatial_constraints(model: Model) -> tuple[Constraint, ...]:
    """The constraints that act at a place: closures, contacts and rods."""
    return tuple(c for c in model.constraints if hasattr(c, "a") and hasattr(c, "b"))


def is_contact(c: Constraint) -> bool:
    """Whether it holds a frame to the world itself, as `point` and `surface` do; all others are loops."""
    return isinstance(c, Closure) and WORLD in (c.a, c.b)


def loops(model: Model) -> list[str]:
    """The names of the constraints that a posture must satisfy.

    All that have a position, but for contacts.
    """
    return [c.name for c in model.constraints if not isinstance(c, LinkRows) and not is_contact(c)]


def posture(model: Model) -> tuple[np.ndarray, list[str]]:
    """The neutral configuration with loops closed; if they cannot be, the best one found and a note."""
    closing = loops(model)
    try:
        return assemble(model, model.neutral(), only=closing) if closing else model.neutral(), []
    except AssemblyError as problem:
        return problem.q, [str(problem)]


def states_at(model: Model, q: np.ndarray) -> States:
    """One configuration, or several as rows, without forces and times."""
    q = np.atleast_2d(np.asarray(q, dtype=float))
    if q.ndim != 2 or q.shape[1] != model.nq:
        raise InputError(f"q has shape {q.shape}; this model needs ({model.nq},)")
    if len(q) == 0:
        raise InputError("there is no configuration in q to show")
    return _states(model, np.arange(float(len(q))), q, None, None, np.arange(len(q)))


def states_of(model: Model, trajectory: Trajectory, fps: float = 50.0) -> States:
    """The states of a motion nearest to `fps` per second of it.

    Forces if it has those of the model's constraints.
    """
    check_fits(model, trajectory)
    if not fps > 0:
        raise InputError(f"frames per second are a number above zero, not {fps!r}")
    t = np.asarray(trajectory.t)
    wanted = np.append(np.arange(t[0], t[-1], 1 / fps), t[-1])
    after = np.clip(np.searchsorted(t, wanted), 1, max(len(t) - 1, 1)) if len(t) > 1 else np.zeros(1, dtype=int)
    nearest = np.where(np.abs(t[after - 1] - wanted) < np.abs(t[after] - wanted), after - 1, after)
    index = np.unique(nearest)
    forces = has_forces(model, trajectory)
    return _states(
        model,
        t[index],
        trajectory.q[index],
        trajectory.lam[index] if forces else None,
        trajectory.active[index] if forces else None,
        index,
    )


def check_fits(model: Model, trajectory: Trajectory) -> None:
    """Refuse a motion of another robot."""
    ours, theirs = column_names(model)["q"], trajectory.names["q"]
    if len(trajectory) == 0:
        raise InputError("the trajectory has no states")
    if ours != theirs:
        raise InputError(
            f"the trajectory is not one of '{model.name}': it has {len(theirs)} positions "
            f"({', '.join(theirs[:4])}, ...), the model {len(ours)} ({', '.join(ours[:4])}, ...); "
            "load the robot with the base= that it was simulated with"
        )


def has_forces(model: Model, trajectory: Trajectory) -> bool:
    """Whether the forces of the trajectory are those of the model's constraints."""
    return model.rows > 0 and column_names(model)["lam"] == trajectory.names["lam"]


def _states(
    model: Model, t: np.ndarray, q: np.ndarray, lam: np.ndarray | None, active: np.ndarray | None, indices: np.ndarray
) -> States:
    named, links = spatial_constraints(model), len(model.links)
    F, C = len(q), len(named)
    out = States(
        t,
        np.zeros((F, links, 3)),
        np.zeros((F, links, 3, 3)),
        np.zeros((F, 3)),
        np.zeros((F, C, 2, 3)),
        np.zeros((F, C, 3)),
        np.ones((F, C), dtype=bool),
        named,
        indices,
    )
    starts = np.cumsum([0, *(c.rows for c in model.constraints)])
    rows = [(c, n, starts[n]) for n, c in enumerate(model.constraints) if c in named]
    for k in range(F):
        motion = Motion(model, q[k][:, None], np.zeros((model.nv, 1)), NUMPY)
        for i, (R, p) in enumerate(motion.poses):
            out.rotations[k, i], out.positions[k, i] = R, p[:, 0]
        out.com[k] = _centre(model, out.positions[k], out.rotations[k])
        for m, (c, n, start) in enumerate(rows):
            out.ends[k, m] = [_at(model, frame, out.positions[k], out.rotations[k]) for frame in closure_ends(c)]
            if lam is not None and active is not None:
                l = model.frame(closure_ends(c)[0]).link
                on_first = np.asarray(c.evaluate(motion).links[l]).T @ lam[k, start : start + c.rows]
                out.forces[k, m] = out.rotations[k, l] @ on_first[:3]
                out.active[k, m] = active[k, n] > 0
    return out


def closure_ends(c: Constraint) -> tuple[str, str]:
    return c.a, c.b  # type: ignore[attr-defined]


def _at(model: Model, name: str, p: np.ndarray, R: np.ndarray) -> np.ndarray:
    frame = model.frame(name)
    return np.asarray(p[frame.link] + R[frame.link] @ frame.placement.p)


def _centre(model: Model, p: np.ndarray, R: np.ndarray) -> np.ndarray:
    """The centre of mass; of a massless model, the place of its last link."""
    if not model.mass > 0:
        return np.asarray(p[-1])
    moments = [l.inertia.mass * (p[i] + R[i] @ l.inertia.com) for i, l in enumerate(model.links)]
    return np.asarray(np.sum(moments, axis=0) / model.mass)


def quaternions(R: np.ndarray) -> np.ndarray:
    """[x y z w] of rotations (..., 3, 3), by the one of four formulas that divides by most."""
    xx, yy, zz = R[..., 0, 0], R[..., 1, 1], R[..., 2, 2]
    xw, yw, zw = R[..., 2, 1] - R[..., 1, 2], R[..., 0, 2] - R[..., 2, 0], R[..., 1, 0] - R[..., 0, 1]
    xy, xz, yz = R[..., 0, 1] + R[..., 1, 0], R[..., 0, 2] + R[..., 2, 0], R[..., 1, 2] + R[..., 2, 1]
    ways = np.stack(
        [
            np.stack(row, axis=-1)
            for row in (
                (1 + xx - yy - zz, xy, xz, xw),
                (xy, 1 - xx + yy - zz, yz, yw),
                (xz, yz, 1 - xx - yy + zz, zw),
                (xw, yw, zw, 1 + xx + yy + zz),
            )
        ],
        axis=-2,
    )
    best = np.argmax(np.diagonal(ways, axis1=-2, axis2=-1), axis=-1)  # four times the squares of the components
    q = np.take_along_axis(ways, np.asarray(best)[..., None, None], axis=-2)[..., 0, :]
    return np.asarray(q / np.linalg.norm(q, axis=-1, keepdims=True))
