"""Regressors: forces, momenta and energies as linear functions of the links' inertial parameters.

    tau = M vdot + c = Y(q, v, vdot) pi,    p = M v = Y(q, v) pi,    T = Y(q, v) pi,    U = Y(q) pi

with ten parameters of each link, pi_l = [m  h  Ixx Ixy Iyy Ixz Iyz Izz], h = m c, inertia about the link's origin. The
force that a link needs, with classical accelerations a, alpha (model/motion.py), is f_l = A_l pi_l,

    A_l = [a  L  0;  0  -a^  K],    L = alpha^ + w^ w^,    K = P(alpha) + w^ P(w),    P(x) [Ixx ... Izz] = I x,

and its momentum the same with a = v, alpha = w, and no products of velocities. Joint j carries all links behind it:
Y_jl = S_j^T (X^T ... X^T A_l). Atkeson, An and Hollerbach, "Estimation of inertial parameters of manipulator loads and
links", 1986; Khalil and Dombre, chapter 9. O(n d), as many blocks as joints carry links.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import numpy as np

from linkwork.algorithms.derivatives.base_frame_motion import Rooted
from linkwork.backends.ops import Array, Ops
from linkwork.model import Motion
from linkwork.model.body import TRIANGLE
from linkwork.spatial import angular, linear
from linkwork.spatial.vectors import skew


def torque_regressor(motion: Motion, vdot: Array) -> Array:
    """Y(q, v, vdot), nv x 10 nlinks: joint forces of the links' inertias alone."""
    xp, blocks = motion.xp, []
    # pass 1, base to tips: velocities and accelerations, and the force of each link by its parameters
    felt = motion.classical.accelerations(vdot)
    for i in motion.model.topology.links:
        a, alpha, w = linear(felt[i]), angular(felt[i]), angular(motion.V[i])
        if (share := weightless_share(motion, i)) != 0:
            a = a + share * motion.gravity[i]
        L = skew(alpha, xp) + xp.cross(w, skew(w, xp))
        blocks.append(_block(a, L, _products(alpha, xp) + xp.cross(w, _products(w, xp)), xp))
    return _joint_rows(motion, blocks)


def momentum_regressor(motion: Motion) -> Array:
    """Y(q, v), nv x 10 nlinks: the generalised momentum M v of the links' inertias, without armature."""
    xp, blocks = motion.xp, []
    for i in motion.model.topology.links:
        v, w = linear(motion.V[i]), angular(motion.V[i])
        blocks.append(_block(v, skew(w, xp), _products(w, xp), xp))
    return _joint_rows(motion, blocks)


def kinetic_regressor(motion: Motion) -> Array:
    """Y(q, v), 1 x 10 nlinks: T = sum m v^2 / 2 + h (v x w) + w^T I w / 2."""
    xp, parts = motion.xp, [motion.xp.zeros(1, 0)]
    for i in motion.model.topology.links:
        v, w = linear(motion.V[i]), angular(motion.V[i])
        parts += [v.T @ v / 2, xp.cross(v, w).T, w.T @ _products(w, xp) / 2]
    return xp.hstack(parts)


def potential_regressor(motion: Motion) -> Array:
    """Y(q), 1 x 10 nlinks: U = -g^T sum (m p + R h), zero at the world's origin."""
    xp, parts = motion.xp, [motion.xp.zeros(1, 0)]
    for i in motion.model.topology.links:
        pulled = 1.0 - weightless_share(motion, i)
        height = -(motion.gravity[0].T @ motion.poses[i][1])
        parts += [pulled * height, -pulled * motion.gravity[i].T, xp.zeros(1, 6)]
    return xp.hstack(parts)


def weightless_share(motion: Motion, i: int) -> float:
    """The share of link i that gravity does not pull."""
    link = motion.model.links[i]
    return link.weightless.mass / link.inertia.mass if link.weightless.mass else 0.0


SHARE = 0.8
"""Of the operations from link to link that common axes must save to save time: with 0.9 of them Talos takes 1.01 of the
time, iCub with 0.52 of them 0.66 (0.75 in batches)."""


def _joint_rows(motion: Motion, blocks: list[Array]) -> Array:
    """Pass 2: each joint carries the blocks of its link and of all links behind.

    Joints whose axes are along those of their links move a block in few operations, and it goes from link to link. Any
    others do not: blocks are turned once, and axes of joints are moved to them.
    """
    return motion.xp.fewest([partial(_link_by_link, motion, blocks), partial(_in_common_axes, motion, blocks)], SHARE)


def _in_common_axes(motion: Motion, blocks: list[Array]) -> Array:
    """Blocks and axes of joints in the axes of their tree's first link, at the origin of the block's."""
    t, xp, poses = motion.model.topology, motion.xp, Rooted(motion).poses
    own = dict(zip(t.links, blocks, strict=True))

    def turned(i: int, x: Array) -> Array:
        R = poses[i][0]
        return xp.vstack([R @ linear(x), R @ angular(x)])

    F, S = ({i: turned(i, x[i]) for i in t.links} for x in (own, motion.S))

    def row(i: int, l: int) -> Array:
        if i == l:
            return motion.S[i].T @ own[i]
        if i not in t.supports[l]:
            return xp.zeros(S[i].shape[1], 10)
        moved = linear(S[i]) - xp.cross(poses[l][1] - poses[i][1], angular(S[i]))
        return moved.T @ linear(F[l]) + angular(S[i]).T @ angular(F[l])

    return xp.hstack([xp.zeros(t.nv, 0), *(xp.vstack([row(i, l) for i in t.links]) for l in t.links)])


def _link_by_link(motion: Motion, blocks: list[Array]) -> Array:
    """Tips to base."""
    t, xp = motion.model.topology, motion.xp
    behind, rows = [{i: A} for i, A in enumerate([xp.zeros(6, 10), *blocks])], [xp.zeros(0, 10 * len(blocks))]
    for i in reversed(t.links):
        F, S = xp.hstack(list(behind[i].values())), motion.S[i]
        own, none = _by_link(behind[i], S.T @ F), xp.zeros(S.shape[1], 10)
        rows.append(xp.hstack([own.get(l, none) for l in t.links]))
        if p := t.parent[i]:
            behind[p] |= _by_link(behind[i], motion.X[i].T @ F)
    return xp.vstack(rows[::-1])


def _by_link(links: Iterable[int], F: Array) -> dict[int, Array]:
    """Blocks of ten columns, by the links whose parameters they belong to."""
    return {l: F[:, 10 * n : 10 * (n + 1)] for n, l in enumerate(links)}


def _block(a: Array, L: Array, K: Array, xp: Ops) -> Array:
    """A = [a L 0; 0 -a^ K], 6 x 10."""
    return xp.vstack([xp.hstack([a, L, xp.zeros(3, 6)]), xp.hstack([xp.zeros(3), -skew(a, xp), K])])


def _products(x: Array, xp: Ops) -> Array:
    """P(x), 3 x 6, with P(x) [Ixx Ixy Iyy Ixz Iyz Izz] = I x."""
    return sum((x[k, 0] * xp.constant(P) for k, P in enumerate(PRODUCTS)), xp.zeros(3, 6))


PRODUCTS = np.zeros((3, 3, 6))
"""P(x) = sum x_k PRODUCTS[k]."""
for _n, (_i, _j) in enumerate(TRIANGLE):
    PRODUCTS[_j, _i, _n] = PRODUCTS[_i, _j, _n] = 1.0
