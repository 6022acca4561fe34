"""Whether the rows of a model are independent in usual postures.

Where not, derivatives need a pseudo-inverse.
Singular postures do not count, and neither does a wrong answer: either form says where it is none (NaN), and singular
values decide there. So this is a question of speed alone.
"""

from __future__ import annotations

import numpy as np

from linkwork.algorithms.constrained.kkt import joint_space
from linkwork.algorithms.derivatives.rows_inverse import VANISHED
from linkwork.algorithms.tree.crba import crba
from linkwork.backends import get
from linkwork.backends.triangular import cholesky, solve_lower
from linkwork.constraints.row_inertia import row_mobilities
from linkwork.joints import Free
from linkwork.model import Model, Motion
from linkwork.model.memo import cached
from linkwork.planner.iterations import samples
from linkwork.structure.independent import closed_positions

POSTURES, APART = 6, 1e-3
"""How many postures are looked at; the least singular value, of rows of length one, in most of them."""


@cached
def vanishing_rows(model: Model) -> tuple[int, ...] | None:
    """The rows that vanish where loops are closed, if the others are independent in most postures."""
    if not model.constraints:
        return ()
    try:
        found = [_in_energy(model, q) for q in _postures(model)]
    except np.linalg.LinAlgError:
        return None
    if not found:
        return None
    lengths = np.array([np.linalg.norm(W, axis=0) for W in found])
    vanish = (lengths**2 <= VANISHED * row_mobilities(model)).all(0)
    apart = [_least(W[:, ~vanish]) > APART for W in found]
    return tuple(np.flatnonzero(vanish).tolist()) if 2 * sum(apart) > len(apart) else None


def _postures(model: Model) -> list[np.ndarray]:
    """Some in which loops are closed, those through the world, too, of a mechanism that hangs on it."""
    hangs = not any(isinstance(link.joint, Free) for link in model.links)
    if hangs and all(sum(l > 0 for l in c.touches(model)) <= 1 for c in model.constraints):
        return list(closed_positions(model, range(len(model.constraints)))[1:])
    return list(samples(model).get("q", ())[:POSTURES])


def _in_energy(model: Model, q: np.ndarray) -> np.ndarray:
    """L^-1 J^T with M = L L^T: rows in coordinates in which the kinetic energy is a sum of squares."""
    motion = Motion(model, q[:, None], np.zeros((model.nv, 1)), get("numpy"))
    return solve_lower(cholesky(crba(motion)), joint_space(motion)[0].T)


def _least(W: np.ndarray) -> float:
    """The least singular value of columns, made of length one."""
    length = np.linalg.norm(W, axis=0)
    if len(length) > len(W) or not length.all():
        return 0.0
    return float(np.linalg.svd(W / length, compute_uv=False).min(initial=1.0))
