"""The rows of a local loop over its joints alone: K vdot = k, for any motion of the carrying body.

    K_l a_l + drift = 0,   a_l = (acceleration of the carrying body) + (that of its joints at constant speed) + J vdot

Rows of local loops do not depend on an acceleration that all their links have in common, so that of the body that
carries them all cancels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from linkwork.backends.ops import Array
from linkwork.constraints.base import Constraint, Rows
from linkwork.constraints.rows import constraint_rows, evaluated, jacobian_blocks, pulled, rows_jacobian

if TYPE_CHECKING:
    from linkwork.model.motion import Motion


def local_rows(motion: Motion, bodies: Sequence[int], constraints: Sequence[int]) -> tuple[Array, Array]:
    """K and k of K vdot = k over the joints of `bodies`: k less the rows' values with joints at rest.

    `bodies` are those of a local loop, each after its parent, and hang on the parent of the first.
    """
    t, xp, model = motion.model.topology, motion.xp, motion.model
    rest: dict[int, Array] = {t.parent[bodies[0]]: xp.zeros(6)}
    for i in bodies:
        rest[i] = motion.X[i] @ rest[t.parent[i]] + motion.c[i]
    k = [xp.zeros(0)]
    for index in constraints:
        c, rows = model.constraints[index], evaluated(motion, index)
        right = -rows.drift - _stabilisation(motion, c, rows)
        for l, Kl in rows.links.items():
            right = right - Kl[:, 0:3] @ motion.known[l]
            if l in rest:
                right = right - Kl @ rest[l]
        k.append(right)
    return local_jacobian(motion, bodies, constraints), xp.vstack(k)


def local_jacobian(motion: Motion, bodies: Sequence[int], constraints: Sequence[int]) -> Array:
    """K of K vdot = k over the joints of `bodies`, which does not depend on stabilisations."""
    t, xp = motion.model.topology, motion.xp
    sizes = {i: t.v_slices[i].stop - t.v_slices[i].start for i in bodies}
    K = [xp.zeros(0, sum(sizes.values()))]
    for index in constraints:
        rows = evaluated(motion, index)
        J = jacobian_blocks(motion, {l: B for l, B in rows.links.items() if l}, dict(rows.joints), relative=True)
        m = rows.drift.shape[0]
        K.append(xp.hstack([J[i] if i in J else xp.zeros(m, s) for i, s in sizes.items() if s]))
    return xp.vstack(K)


def supported_rows(
    motion: Motion, bodies: Sequence[int], constraints: Sequence[int]
) -> tuple[tuple[int, ...], Array, Array]:
    """The degrees of freedom in the rows of a local loop, and K and k of K vdot = k over them.

    They are those of `bodies`, and where a row is not relative, because two points are apart, all of the model.
    """
    xp, t = motion.xp, motion.model.topology
    if all(evaluated(motion, n).relative for n in constraints):
        own = tuple(k for i in bodies for k in range(t.v_slices[i].start, t.v_slices[i].stop))
        return own, *local_rows(motion, bodies, constraints)
    at_rest, rows = motion.accelerations(None), constraint_rows(motion, constraints)
    k = [r.k - sum((K @ at_rest[l] for l, K in r.links.items()), xp.zeros(r.k.shape[0])) for r in rows]
    J = [rows_jacobian(motion, r.links, r.joints) for r in rows]
    return tuple(range(motion.model.nv)), xp.vstack(J), xp.vstack(k)


def _stabilisation(motion: Motion, c: Constraint, rows: Rows) -> Array:
    """The stabilisation of these rows, or zero."""
    return motion.xp.zeros(rows.drift.shape[0]) if c.stabilisation is None else pulled(motion, c, rows)
