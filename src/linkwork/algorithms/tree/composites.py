"""Composite inertias: of each link together with all links that it carries.

    I^c_i = I_i + sum over children c of X_c^T I^c_c X_c

Featherstone, Rigid Body Dynamics Algorithms, table 6.2. Entry 0 is the whole mechanism about the world's origin. Parts
that are not used (rotational inertias, where only first moments are needed) are not part of a trace. O(n).
"""

from __future__ import annotations

from collections.abc import Sequence

from linkwork.model.motion import Motion
from linkwork.spatial import RigidInertia


def composite_inertias(motion: Motion, bodies: Sequence[RigidInertia] | None = None) -> list[RigidInertia]:
    """The composite of `bodies` (default: the links' inertias) on each link, in link coordinates."""
    t, Ic = motion.model.topology, list(bodies or motion.I)
    for i in reversed(t.links):
        Ic[t.parent[i]] = Ic[t.parent[i]] + motion.X[i].congruence(Ic[i])
    return Ic
