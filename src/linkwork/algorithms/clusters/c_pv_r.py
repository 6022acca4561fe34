"""Delassus matrix of contacts with local loops resolved, at most six rows over long paths of clusters.

    Lambda^-1_cd = L_cd + K_c Omega K_d^T   for rows that meet on a body,   Omega of the body's own six motions

PV-OSIMr (sathya2023_pv_osimr, algorithm 3) on the cluster tree of chignoli2023_clusters, which leaves that open: where
more than six rows meet on a body, its six motions are propagated through the clusters in their place, if that saves
operations (structure/row_compression.py, which sees joints and not clusters). O(N l^3 + m^2). Rows on single links.
"""

from __future__ import annotations

from linkwork.algorithms.clusters.c_efpa import single_bodies
from linkwork.algorithms.common.blocks import Blocks
from linkwork.algorithms.common.certificates import determined
from linkwork.algorithms.common.recursion import recursion
from linkwork.algorithms.delassus.pv_r import Held, expanded
from linkwork.backends.ops import Array
from linkwork.model import Motion
from linkwork.structure.clusters import clusters
from linkwork.structure.row_compression import meetings


def c_pv_r(motion: Motion) -> Array:
    """J G (G^T M G)^-1 G^T J^T, m x m over the rows that are in no cluster, in the model's order."""
    xp, r = motion.xp, recursion(motion, clusters(motion.model))
    ends = single_bodies(r, "c_pv_r")
    sizes = [KT.shape[1] for _, KT in ends]
    crowded = meetings(motion.model.topology, [link for link, _ in ends], sizes)
    at: dict[int, Held] = {}
    for c, (link, KT) in enumerate(ends):
        at.setdefault(link, {})[c] = KT

    # pass 2, tips to base: `c_pv`, with a body itself in place of many rows
    L: dict[tuple[int, int], Array] = {(c, c): xp.zeros(m, m) for c, m in enumerate(sizes)}
    met: list[tuple[int, Held]] = []
    for node in r.nodes:
        pushes: dict[int, list[Array]] = {}
        for i in (i for i in node.cluster.bodies if i in at):
            held = at.pop(i)
            if i in crowded and sum(KT.shape[1] for KT in held.values()) > 6:
                new = len(sizes) + len(met)
                met.append((new, held))
                held, L[new, new] = {new: xp.eye(6)}, xp.zeros(6, 6)
            for c, KT in held.items():
                pushes[c], felt, _ = node.propagate({i: KT}, {})
                at.setdefault(node.cluster.output, {})[c] = felt[node.cluster.output]
        for k, d_inv in enumerate(node.pivots):
            for c, e in pushes.items():
                for d in (d for d in pushes if d >= c):
                    product = (d_inv * e[k]).T @ pushes[d][k]
                    product = xp.symmetric(product) if c == d else product
                    L[c, d] = L[c, d] + product if (c, d) in L else product

    # pass 3, base to tips: from the bodies back to the rows that met there
    inside = {c for _, members in met for c in members}
    known = {pair: block for pair, block in L.items() if not inside & set(pair)}
    for body, members in reversed(met):
        known = expanded(motion, body, members, known, L)
    matrix = Blocks(sizes, {(c, d): block for (c, d), block in known.items() if d < len(sizes)}, xp).matrix()
    return matrix + determined(motion, r.tree)[0, 0]
