"""Velocities that keep loops closed: min |v' - v|_M  with  J v' = 0."""

from __future__ import annotations

import numpy as np

from linkwork.algorithms.tree.crba import crba
from linkwork.backends.numpy_ import NUMPY
from linkwork.backends.ops import SINGULAR
from linkwork.checks import POSITIONS, VELOCITIES, checked, choice
from linkwork.constraints import jacobian
from linkwork.errors import InputError, SingularError, listing
from linkwork.model import Model, Motion
from linkwork.model.model import MODEL

REDUNDANT = 1e-10
"""Singular values of the rows, relative to the largest, below which they count as redundant."""


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
