"""Forces on links as joint forces: tau = sum J_l^T f_l."""

from __future__ import annotations

from collections.abc import Mapping

from linkwork.backends.ops import Array
from linkwork.model.motion import Motion


def carried_by_joints(motion: Motion, forces: Mapping[int, Array]) -> Array:
    """The joint forces, nv x 1, of [force; torque] at the origins of links, in link axes."""
    xp, t, felt = motion.xp, motion.model.topology, dict(forces)
    parts = {i: xp.zeros(t.v_slices[i].stop - t.v_slices[i].start) for i in t.links}
    for i in reversed(t.links):
        if i in felt:
            parts[i] = motion.S[i].T @ felt[i]
            above = motion.X[i].T @ felt[i]
            felt[t.parent[i]] = felt[t.parent[i]] + above if t.parent[i] in felt else above
    return xp.vstack([xp.zeros(0), *(parts[i] for i in t.links)])
