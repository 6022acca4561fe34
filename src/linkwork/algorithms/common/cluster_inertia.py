"""The inertia of a cluster's independent velocities, coupled with output body and neighbours.

    D = G^T (H + armature) G,    U = F G,    U_n = sum H_ni (motion of body i by G)     (H, F: cluster_sweeps.py)

chignoli2023_clusters, eqs. 17-26, whose cluster subspace S_k is not formed: its products are those of H, F and G.
Penalised constraints between bodies of the cluster add to D, U and Ic; those with neighbours n give U_n and the block
that couples n with the output body (sathya2025_lcaba_proxbbo, eqs. 30-35).
"""

from __future__ import annotations

from dataclasses import dataclass

from linkwork.algorithms.common.cluster_sweeps import accelerations, composite, forces
from linkwork.algorithms.common.hessian import Hessian, Inertia, add
from linkwork.backends.ops import Array
from linkwork.model import Motion
from linkwork.spatial import ArticulatedInertia
from linkwork.structure.clusters import Cluster

Pairs = dict[tuple[int, int], Array]
"""Blocks H_ni by pairs of links (n, i)."""


@dataclass(frozen=True)
class ClusterInertia:
    """D, U (6 x ny) and Ic of a cluster; for each neighbour U_n (6 x ny) and its block with the output.

    The cluster's own `bodies` have inertias IA; `pairs` are the blocks H_ni of neighbours n, or of other bodies n of
    the cluster, with its bodies i.
    """

    bodies: dict[int, Inertia]
    pairs: Pairs
    D: Array
    U: Array
    Ic: Inertia
    near: dict[int, Array]
    coupled: dict[int, Array]


def cluster_inertia(motion: Motion, cluster: Cluster, G: Array, H: Hessian, near: tuple[int, ...]) -> ClusterInertia:
    """The inertia of a cluster whose joints move by vdot = G yddot."""
    xp, bodies = motion.xp, cluster.bodies
    IA = {i: H.own[i] for i in bodies}
    D, F, Ic = composite(motion, cluster, IA)
    D, U = xp.symmetric(G.T @ (D @ G)), F @ G
    inside = {(i, j): H.block(i, j) for i in bodies for j in bodies if i != j and H.coupled(i, j)}
    pairs = {(m, i): H.block(m, i) for m in near for i in bodies if H.coupled(m, i)}
    if inside:
        added, push, at_rest = _between_bodies(motion, cluster, G, inside)
        D, U, Ic = D + added, U + push, add(Ic, _inertia(at_rest, motion))
    Us, coupled = dict[int, Array](), dict[int, Array]()
    for m in near:
        Q, out = forces(motion, cluster, {i: pairs[m, i].T if (m, i) in pairs else xp.zeros(6, 6) for i in bodies})
        Um, C = (G.T @ Q).T, out.T
        if m == cluster.output:
            U, Ic = U + Um, add(Ic, _inertia(C + C.T, motion))
        else:
            Us[m], coupled[m] = Um, C
    return ClusterInertia(IA, {**inside, **pairs}, D, U, Ic, Us, coupled)


def _between_bodies(motion: Motion, cluster: Cluster, G: Array, inside: Pairs) -> tuple[Array, Array, Array]:
    """What forces between bodies of the cluster add to D, U and Ic."""
    xp, bodies = motion.xp, cluster.bodies
    # columns: the output body moves by unit accelerations, then each independent velocity does
    resting = accelerations(motion, cluster, xp.eye(6), xp.zeros(G.shape[0], 6))
    moving = accelerations(motion, cluster, xp.zeros(6, G.shape[1]), G)
    a = {i: xp.hstack([resting[i], moving[i]]) for i in bodies}
    f = {i: sum((B @ a[j] for (m, j), B in inside.items() if m == i), 0 * a[i]) for i in bodies}
    Q, out = forces(motion, cluster, f)
    return xp.symmetric(G.T @ Q[:, 6:]), out[:, 6:], out[:, 0:6]


def _inertia(B: Array, motion: Motion) -> ArticulatedInertia:
    """A symmetric 6 x 6 matrix as an inertia."""
    xp = motion.xp
    return ArticulatedInertia(xp.symmetric(B[0:3, 0:3]), B[0:3, 3:6], xp.symmetric(B[3:6, 3:6]), xp)
