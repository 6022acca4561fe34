"""Inverse dynamics: the recursive Newton-Euler algorithm.

    tau = M(q) vdot + c(q, v) - sum J_l^T fext_l - applied

Featherstone, Rigid Body Dynamics Algorithms, table 5.1, on classical accelerations (see model/motion.py). O(n).
"""

from __future__ import annotations

from collections.abc import Mapping

from linkwork.backends.ops import Array
from linkwork.model.motion import Motion


def rnea(
    motion: Motion,
    vdot: Array | None,
    fext: Array | None = None,
    applied: Array | None = None,
    pulls: Mapping[int, Array] | None = None,
) -> Array:
    """Joint forces for the accelerations `vdot` (None: zero, which gives the bias force c).

    Those `applied` act anyway, as springs and damping do; `pulls` are more forces on links, in their own coordinates.
    """
    motion = motion.classical
    t, xp = motion.model.topology, motion.xp
    X, S, I = motion.X, motion.S, motion.I

    # pass 1, base to tips: accelerations, and the force that each link needs
    a, b = motion.accelerations(vdot), motion.bias(fext)
    f = [I[i] @ a[i] + b[i] for i in range(len(X))]
    for i, pull in (pulls or {}).items():
        f[i] = f[i] - pull

    # pass 2, tips to base: each joint carries its link and all links behind
    tau = [xp.zeros(0)] * len(X)
    for i in reversed(t.links):
        tau[i] = S[i].T @ f[i]
        if vdot is not None and motion.has_armature(i):
            tau[i] = tau[i] + motion.armature(i) @ vdot[t.v_slices[i], :]
        p = t.parent[i]
        if p:
            f[p] = f[p] + X[i].T @ f[i]
    return xp.vstack(tau) if applied is None else xp.vstack(tau) - applied
