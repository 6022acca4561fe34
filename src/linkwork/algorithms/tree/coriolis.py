"""The Coriolis matrix C, with C v + g = c and dM/dt - 2 C skew-symmetric.

    B_i = 1/2 [(V x*) I - I (V x) + (I V) xbar*] = [[0, -P^], [0, Q]]
    P = m v + w x h,    Q = -h^ v^ - w^ (tr(I) / 2 - I)
    C_ij = S_i^T (I^c_j Sdot_j + B^c_j S_j),    C_ji = (Sdot_i^T I^c_j + S_i^T (B^c_j)^T) S_j,    i supports j

Echeandia and Wensing, "Numerical methods to compute the Coriolis matrix and Christoffel symbols for rigid-body
systems", 2021, algorithm 1. Their 6 x 6 matrix B has twelve different entries when it is written out as above, and
keeps that form between frames: P turns, and a translation by r changes Q by -r^ P^. O(n d), d the depth of the tree.
"""

from __future__ import annotations

from dataclasses import dataclass

from linkwork.algorithms.tree.composites import composite_inertias
from linkwork.algorithms.tree.crba import assemble_general
from linkwork.backends.ops import Array, Ops
from linkwork.joints import Free
from linkwork.model import Motion
from linkwork.spatial import RigidInertia, angular, linear
from linkwork.spatial.inertia import turn_general
from linkwork.spatial.vectors import cross_motion, skew


def coriolis_matrix(motion: Motion) -> Array:
    """C(q, v), nv x nv."""
    t, X, S, xp = motion.model.topology, motion.X, motion.S, motion.xp

    # pass 1, base to tips: rates of the subspaces, and B of each link
    Sdot = [cross_motion(V, s, xp) + rate for V, s, rate in zip(motion.V, S, _rates(motion), strict=True)]
    Ic, Bc = composite_inertias(motion), [VelocityProducts.of(I, V) for I, V in zip(motion.I, motion.V, strict=True)]

    # pass 2, tips to base: composites, and their forces at each joint on the path to the base
    C: dict[tuple[int, int], Array] = {}
    for j in reversed(t.links):
        F1, F2, F3 = Ic[j] @ Sdot[j] + Bc[j] @ S[j], Ic[j] @ S[j], Bc[j].transposed(S[j])
        C[j, j] = S[j].T @ F1 + _turning_armature(motion, j)
        for child, i in zip(reversed(t.supports[j]), reversed(t.supports[j][:-1]), strict=False):
            F1, F2, F3 = X[child].T @ F1, X[child].T @ F2, X[child].T @ F3
            C[i, j] = S[i].T @ F1
            C[j, i] = (Sdot[i].T @ F2 + S[i].T @ F3).T
        if p := t.parent[j]:
            Bc[p] = Bc[p] + X[j].congruence(Bc[j])
    return assemble_general(motion, C)


@dataclass(frozen=True)
class VelocityProducts:
    """B = [[0, -P^], [0, Q]]."""

    P: Array
    Q: Array
    xp: Ops

    @staticmethod
    def of(I: RigidInertia, V: Array) -> VelocityProducts:
        """B of a link that moves with V."""
        v, w, xp = linear(V), angular(V), I.xp
        half = (I.I[0, 0] + I.I[1, 1] + I.I[2, 2]) / 2
        Q = xp.cross(w, I.I) - half * skew(w, xp) - xp.cross(I.h, skew(v, xp))
        return VelocityProducts(I.mass * v + xp.cross(w, I.h), Q, xp)

    def __add__(self, other: VelocityProducts) -> VelocityProducts:
        return VelocityProducts(self.P + other.P, self.Q + other.Q, self.xp)

    def __matmul__(self, m: Array) -> Array:
        return self.xp.vstack([-self.xp.cross(self.P, angular(m)), self.Q @ angular(m)])

    def transposed(self, m: Array) -> Array:
        """B^T m."""
        xp = self.xp
        return xp.vstack([xp.zeros(3, m.shape[1]), xp.cross(self.P, linear(m)) + self.Q.T @ angular(m)])

    def translated(self, p: Array) -> VelocityProducts:
        """Seen from a frame in which this frame's origin is at `p`."""
        return VelocityProducts(self.P, self.Q - self.xp.cross(p, skew(self.P, self.xp)), self.xp)

    def rotated(self, R: Array) -> VelocityProducts:
        """Seen from a frame in which this frame has the axes R."""
        return VelocityProducts(R @ self.P, R @ self.Q @ R.T, self.xp)

    def turned(self, axis: int, c: Array, s: Array, R: Array) -> VelocityProducts:
        """Seen from a frame in which this frame is turned about a coordinate axis, R being that rotation."""
        return VelocityProducts(R @ self.P, turn_general(self.Q, axis, c, s, self.xp), self.xp)


def _rates(motion: Motion) -> list[Array]:
    """The apparent rate of each joint's subspace, 6 x nv."""
    return [
        l.joint.subspace_rate(motion.joint_q(i), motion.joint_v(i), motion.xp) if i else motion.xp.zeros(6, 0)
        for i, l in enumerate(motion.model.links)
    ]


def _turning_armature(motion: Motion, i: int) -> Array:
    """Armature m of a free joint in its parent's axes needs m (vdot + w x v): the second part."""
    link, xp = motion.model.links[i], motion.xp
    n = link.joint.nv
    if not (isinstance(link.joint, Free) and link.joint.armature_axes == "parent"):
        return xp.zeros(n, n)
    m = float(link.armature[0])
    turning = xp.hstack([m * skew(motion.joint_v(i)[3:6, :], xp), xp.zeros(3, 3)])
    return xp.vstack([turning, xp.zeros(3, 6)])
