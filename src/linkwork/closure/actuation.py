"""Which joints are actuated, and whether that is enough for all motions that the constraints allow."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from linkwork.backends.numpy_ import NUMPY
from linkwork.closure.velocities import REDUNDANT
from linkwork.constraints import Closure, LinkRows, jacobian
from linkwork.errors import ActuationError, listing
from linkwork.model import WORLD, Model, Motion
from linkwork.structure.independent import away_from_neutral, near_neutral


def actuated_freedoms(model: Model, joints: Sequence[str] | None = None) -> np.ndarray:
    """Which degrees of freedom are actuated: those of `joints` or, for None, as the model says."""
    t, driven = model.topology, np.zeros(model.nv, dtype=bool)
    moved = [i for i in t.links if model.links[i].actuated] if joints is None else [model.joint(j) for j in joints]
    for i in moved:
        driven[t.v_slices[i]] = True
    return driven


def check_actuation(model: Model, driven: np.ndarray) -> None:
    """Refuse motors that do not drive all motions that the constraints allow.

    Tested in a random posture with closed loops, and so for nearly all: with J N = 0, the driven rows of N have full
    column rank. Contacts hold links wherever they are: closed too, all feet would be in one place, the world's origin.
    """
    loops = [
        n
        for n, c in enumerate(model.constraints)
        if not isinstance(c, LinkRows) and not (isinstance(c, Closure) and WORLD in (c.a, c.b))
    ]
    q = next(away_from_neutral(model, loops), None)
    q = near_neutral(model, loops) if q is None else q  # any posture will do
    N = _allowed(jacobian(Motion(model, q[:, None], np.zeros((model.nv, 1)), NUMPY)))
    _, s, directions = np.linalg.svd(N[driven])
    found = int(np.count_nonzero(s > REDUNDANT))
    if found < N.shape[1]:
        free = N @ directions[found:].T
        share = np.linalg.norm(free, axis=1)
        moving = [
            model.links[i].joint_name for i in model.topology.links if np.any(share[model.topology.v_slices[i]] > 1e-6)
        ]
        raise ActuationError(
            f"'{model.name}' can move in {N.shape[1]} ways and its motors ({np.count_nonzero(driven)}) push {found} of "
            f"them; nothing drives {listing(moving)}. Name more joints in actuated=, add contacts, or pass "
            "underactuated=True for accelerations that are known to be possible"
        )


def _allowed(J: np.ndarray) -> np.ndarray:
    """A basis of the velocities that rows allow, orthonormal."""
    if not J.size:
        return np.eye(J.shape[1])
    _, s, Vt = np.linalg.svd(J)
    return np.asarray(Vt[np.count_nonzero(s > REDUNDANT * s[0]) :].T)
