"""Kinetic and potential energy.

    T = 1/2 sum V_l^T I_l V_l + 1/2 sum v_i^T (armature) v_i = 1/2 v^T M v,    U = -g^T sum (m_l p_l + R_l h_l)

O(n). What is fixed to the world counts in U; what gravity does not pull does not.
"""

from __future__ import annotations

from linkwork.algorithms.tree.gravity import pulled
from linkwork.backends.ops import Array
from linkwork.model import Motion


def kinetic_energy(motion: Motion) -> Array:
    """T, rotors (armature) included, 1 x 1."""
    total = motion.xp.zeros(1)
    for l in motion.model.topology.links:
        v = motion.joint_v(l)
        total = total + motion.V[l].T @ (motion.I[l] @ motion.V[l]) + v.T @ (motion.armature(l) @ v)
    return total / 2


def potential_energy(motion: Motion) -> Array:
    """U, zero at the world's origin, 1 x 1."""
    return -(motion.gravity[0].T @ pulled(motion)[0].h)
