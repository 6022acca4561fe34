"""Derivatives of inverse dynamics, in the tangent space of the configuration.

    d tau / dq   and   d tau / dv   of   tau = M(q) vdot + c(q, v) - sum J_l^T f_l        (d tau / d vdot is M)

Carpentier and Mansard, "Analytical derivatives of rigid body dynamics algorithms", 2018; Singh, Russell and Wensing,
"Efficient analytical derivatives of rigid-body dynamics using spatial vector algebra", 2022, algorithm 1. O(n d), d the
depth of the tree. Moving joint i by S_i changes the velocities of all links behind it, seen from them, by Psid, and
I A + V x* I V by Ic Psidd + 2 Bc Psid; what carries the joint also feels its force f turn with it, S x* f:

    Psid = V_p x S + (dS/dq) v,         Psidd = A_p x S + V_p x Psid + V x (dS/dq) v + (dS/dq) vdot + dbias/dq
    F_q = Ic Psidd + 2 Bc Psid,         F_v = Ic (V_p x S + V x S + dbias/dv) + 2 Bc S

    j carries i:      d tau_j / dq_i = S_j^T (F_q + S_i x* f_i)           d tau_j / dv_i = S_j^T F_v
    j is i or behind: d tau_j / dq_i = S_j^T (Ic_j Psidd + 2 Bc_j Psid)   and so on;  j = i has (dS/dq)^T f_i, too

A free base, S = 1, can itself take the accelerations by which its own position and velocity change all others: as far
as they are M times Psidd, or M times (V_p x S + V x S), its columns are known without M. `of_base` has those, and
dq, dv are then what is left.

Not in the papers: this, joints whose S depends on q (universal), and 2 B without its zero blocks
(base_frame_motion.py). External forces are fixed to their links.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from linkwork.algorithms.derivatives.base_frame_motion import Rooted
from linkwork.backends.ops import Array
from linkwork.model import Motion
from linkwork.spatial.vectors import angular, columns_cross_force, cross_motion

Blocks = dict[tuple[int, int], Array]
"""Blocks of a matrix over joints, by the links that these move; missing ones are zero."""


class RneaDerivatives(NamedTuple):
    """Blocks of d tau / dq and d tau / dv, by links.

    And of each joint Psid, Psidd and V_p x S + V x S + dbias/dv.

    These are the changes of velocities dV = Psid and accelerations dA + V x dV = Psidd of all links behind a joint for
    a change of its position, and the latter for a change of its velocity; that changes velocities by S.
    """

    dq: Blocks
    dv: Blocks
    Psid: list[Array]
    Psidd: list[Array]
    Sdot: list[Array]
    of_base: dict[int, tuple[Array, Array]]


def rnea_derivatives(
    rooted: Rooted, vdot: Array, forces: Mapping[int, Array], but_for_bases: bool = False
) -> RneaDerivatives:
    """At accelerations `vdot`, with external `forces` on links (6 x 1, in link coordinates).

    With `but_for_bases` columns of free bases are less M times `of_base`.
    """
    t, xp = rooted.topology, rooted.xp
    S, V, U, Ic, Bc = rooted.S, rooted.V, rooted.U, rooted.Ic, rooted.Bc
    A = rooted.accelerations(vdot)
    f = rooted.forces(A, forces)

    # pass 1, base to tips: what a change of each joint does to velocities and accelerations behind it
    Psid, Psidd, Sdot = list(rooted.P), list(S), list(S)
    for i in t.links:
        vJ, slopes = V[i] - V[t.parent[i]], rooted.slopes(i, vdot)
        Psid[i] = rooted.P[i] + slopes.velocity
        Psidd[i] = cross_motion(rooted.parent_acceleration(i, A), S[i], xp) + cross_motion(V[t.parent[i]], Psid[i], xp)
        Psidd[i] = Psidd[i] + cross_motion(V[i], slopes.velocity, xp) + slopes.acceleration
        turning = cross_motion(vJ, S[i], xp) if S[i].shape[1] > 1 else 0 * S[i]
        Sdot[i] = rooted.P[i] + rooted.P[i] + turning + slopes.bias
    of_base = {i: (Psidd[i], Sdot[i]) for i in t.links if but_for_bases and rooted.is_free_base(i)}
    for i in of_base:
        Psidd[i], Sdot[i] = 0 * S[i], 0 * S[i]

    # pass 2: each joint i, and each joint j that carries it
    dq: Blocks = {}
    dv: Blocks = {}
    for i in t.links:
        W, lift = Bc[i].transposed(S[i]), rooted.lift(i)
        Fq, Fv = Ic[i] @ Psidd[i] + Bc[i] @ Psid[i] + lift @ S[i], Ic[i] @ Sdot[i] + Bc[i] @ S[i]
        turned = columns_cross_force(S[i], f[i], xp)
        for j in t.supports[i]:
            dq[i, j] = U[i].T @ Psidd[j] + W.T @ angular(Psid[j]) + S[i].T @ (lift @ S[j])
            dv[i, j] = U[i].T @ Sdot[j] + W.T @ angular(S[j])
            if j != i:
                dq[j, i], dv[j, i] = S[j].T @ (Fq + turned), S[j].T @ Fv
        dq[i, i], dv[i, i] = dq[i, i] + rooted.subspace_force(i, f[i]), dv[i, i] + rooted.armature_slope(i)
    for i, (by_q, by_v) in of_base.items():
        armature = rooted.motion.armature(i)
        dq[i, i], dv[i, i] = dq[i, i] - armature @ by_q, dv[i, i] - armature @ by_v
    return RneaDerivatives(dq, dv, Psid, Psidd, Sdot, of_base)


def placed(motion: Motion, blocks: Blocks) -> Array:
    """The whole matrix of blocks over joints, nv x nv."""
    t, xp = motion.model.topology, motion.xp
    size = [s.stop - s.start for s in t.v_slices]
    moving = [i for i in t.links if size[i]]
    rows = [[blocks.get((i, j), xp.zeros(size[i], size[j])) for j in moving] for i in moving]
    return xp.vstack([xp.zeros(0, t.nv), *(xp.hstack(row) for row in rows)])
