"""Mass matrix: the composite rigid body algorithm.

    M_ij = S_i^T I^c_k S_j,   k the outer link of i and j

Featherstone, Rigid Body Dynamics Algorithms, table 6.2. O(n d), d the depth of the tree.
"""

from __future__ import annotations

from linkwork.algorithms.tree.composites import composite_inertias
from linkwork.backends.ops import Array
from linkwork.model.motion import Motion, found_once


@found_once
def crba(motion: Motion) -> Array:
    """The joint-space mass matrix M(q), nv x nv."""
    return assemble(motion, crba_blocks(motion))


def crba_blocks(motion: Motion) -> dict[tuple[int, int], Array]:
    """The blocks M[i, j] for each link i and each link j that carries it (lower triangle)."""
    t, X, S = motion.model.topology, motion.X, motion.S
    Ic = composite_inertias(motion)
    M: dict[tuple[int, int], Array] = {}
    for i in reversed(t.links):
        # the composite of link i and all behind it, moved by joint i alone
        F = Ic[i] @ S[i]
        M[i, i] = motion.xp.symmetric(S[i].T @ F) + motion.armature(i)
        # that force, projected onto each joint on the path to the base
        for child, j in zip(reversed(t.supports[i]), reversed(t.supports[i][:-1]), strict=False):
            F = X[child].T @ F
            M[i, j] = F.T @ S[j]
    return M


def assemble(motion: Motion, blocks: dict[tuple[int, int], Array]) -> Array:
    """The full symmetric matrix of blocks given for (link, carrying link)."""
    return assemble_general(motion, {**{(j, i): b.T for (i, j), b in blocks.items()}, **blocks})


def assemble_general(motion: Motion, blocks: dict[tuple[int, int], Array]) -> Array:
    """The full matrix, nv x nv, of blocks given for two links."""
    t, xp = motion.model.topology, motion.xp
    nv = [s.stop - s.start for s in t.v_slices]
    moving = [i for i in t.links if nv[i]]
    rows = [xp.hstack([blocks.get((i, j), xp.zeros(nv[i], nv[j])) for j in moving]) for i in moving]
    return xp.vstack(rows) if rows else xp.zeros(0, 0)
