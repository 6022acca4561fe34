"""The effective inertia of rows: the unit of penalties, for accuracy at any size and mass.

    unit_c = 1 / max diag(J M^-1 J^T)   over the rows of constraint c, and of all that share a degree of freedom with it

The maximum, because penalties lose digits where they are much larger than the inertia they act on. One unit for
all constraints that share a degree of freedom, because only these can be in conflict, and then the solution is that of
least squares, in which all rows must have the same weight. Units are numbers, found once for a model in a few postures;
rows that nearly vanish in all of them count by their levers (rows.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from linkwork.backends.numpy_ import NUMPY
from linkwork.constraints.rows import rows_jacobian, uncancelled
from linkwork.model.memo import cached
from linkwork.model.model import Model
from linkwork.model.motion import Motion

LEAST = 1e-2
"""The least mobility of rows, relative to that without cancellation."""

POSTURES = 2
"""Random postures in which units are found, besides the neutral one."""


def units(model: Model, which: Sequence[int] | None = None) -> list[float]:
    """The least effective inertia of the rows of each constraint, or of some, in units of these rows."""
    return _units(model, tuple(range(len(model.constraints)) if which is None else which))


@cached
def _units(model: Model, which: tuple[int, ...]) -> list[float]:
    plain = replace(model, constraints=tuple(model.constraints[n].original for n in which))
    felt = np.zeros(len(plain.constraints))
    support = np.zeros((len(plain.constraints), plain.nv), dtype=bool)
    postures = [plain.neutral(), *(plain.random_q(seed) for seed in range(POSTURES))] if plain.constraints else []
    for q in postures:
        motion = Motion(plain, q[:, None], np.zeros((plain.nv, 1)), NUMPY)
        moved = {l: rows_jacobian(motion, {l: np.eye(6)}, {}) for l in plain.topology.links}
        M_inv = _mobility(motion, moved)
        for n, c in enumerate(plain.constraints):
            rows = c.evaluate(motion)
            terms = [(uncancelled(motion, l, K) @ moved[l] ** 2, K @ moved[l]) for l, K in rows.links.items() if l]
            terms += [(J * J, J) for J in (rows_jacobian(motion, {}, {i: G}) for i, G in rows.joints.items())]
            J = sum((x for _, x in terms), np.zeros((1, plain.nv)))
            levers = sum((squares @ np.diagonal(M_inv) for squares, _ in terms), np.zeros(1))
            felt[n] = max(felt[n], np.einsum("ij,ji->i", J, M_inv @ J.T).max(), LEAST * levers.max())
            support[n] |= (J != 0).any(axis=0)
    return [1 / x if x > 0 else 1.0 for x in (felt[group].max() for group in _sharing(support))]


def _mobility(motion: Motion, moved: dict[int, np.ndarray]) -> np.ndarray:
    """M^-1, with M the sum of J^T I J over all links, and rotors."""
    M = np.diag(np.concatenate([np.zeros(0), *(link.armature for link in motion.model.links[1:])]))
    for l, J in moved.items():
        M = M + J.T @ motion.I[l].articulated().matrix() @ J
    # a joint that moves no inertia is an error elsewhere; here it must not affect the others
    return np.linalg.pinv(M, hermitian=True)


def _sharing(support: np.ndarray) -> list[np.ndarray]:
    """For each constraint all that are connected with it by shared degrees of freedom."""
    meet = (support.astype(int) @ support.T.astype(int)) > 0
    np.fill_diagonal(meet, True)
    while ((wider := meet @ meet) != meet).any():
        meet = wider
    return [np.flatnonzero(row) for row in meet]
